"""The policy protocol, the policies random and greedy, and the look-up of policies by name.

A policy plays any number of games at once. Its choices in a game depend on that game's policy seed and on what has
happened there, never on the other games or on its place in the batch.
"""

from __future__ import annotations

import importlib
import importlib.util
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from spite_env import streams
from spite_env.acceleration import kernels
from spite_env.actions import ActionTable
from spite_env.information import InformationSets
from spite_env.rules import Rules, checked_integer

if TYPE_CHECKING:
    from spite_env.game import Game
    from spite_env.observation import ObservationTable

Actions = NDArray[np.intp]
Mask = NDArray[np.bool_]
Values = NDArray[np.floating[Any]]


class PolicyError(ValueError):
    """A policy did what it must not do.

    Attributes:
        playable: The legal ones of its actions, and -1 in place of the others, int ``(n,)``; None if it returned none.
    """

    playable: Actions | None = None


@dataclass(frozen=True)
class Evaluation:
    """What a policy thinks of decisions in ``n`` games; whatever it can't tell is None.

    Values are results to expect for the player to move: 1 is a win, -1 a loss, 0 a draw.

    Attributes:
        about: How all this was come by, in a few words to show beside it.
        probabilities: How the choice spreads over the actions, float ``(n, actions)``, each row adding up to 1: the
            probabilities of drawing them, or what else the policy weighs them by, as a search does by its rollouts.
        action_values: The value of each action, float ``(n, actions)``; NaN where it isn't known.
        value: The value of the position, float ``(n,)``; NaN where it isn't known.
    """

    about: str
    probabilities: Values | None = None
    action_values: Values | None = None
    value: Values | None = None

    def of(self, places: Sequence[int]) -> Evaluation:
        """Return what is thought of some of the ``n`` decisions, given by their places from 0 on."""
        parts = (self.probabilities, self.action_values, self.value)
        return Evaluation(self.about, *(None if part is None else part[list(places)] for part in parts))


class Policy(Protocol):
    """What plays one side of a batch of games.

    A policy that ignores observations may say so with an attribute ``needs_observation = False``: it is then given
    zeros, and saves the time that encoding takes. One that reads a certain layout keeps the
    :class:`~spite_env.observation.ObservationTable` in an attribute ``observation_table``, made by its ``reset``: it
    is then given observations of that layout, whatever the game's own is. One that can tell what it thinks of its
    decisions keeps in an attribute ``evaluation`` an :class:`Evaluation` of those that its ``act`` made last, in their
    order; None if it has made none.
    """

    def reset(self, rules: Rules, num_games: int, seed: int) -> None:
        """Begin new games 0 to ``num_games - 1``; ``seed`` determines all random choices."""

    def act(
        self,
        observation: NDArray[np.uint8],
        action_mask: Mask,
        infosets: InformationSets | None,
        indices: Actions,
    ) -> Actions:
        """Choose actions in the games in which the policy is to move.

        Args:
            observation: uint8 ``(n, features)``, each game's mover's view.
            action_mask: bool ``(n, actions)``; every row has a true value.
            infosets: What the movers know, to sample games from (see :mod:`spite_env.information`); None where that is
                not possible.
            indices: int ``(n,)``, the games in question.

        Returns:
            Legal actions, int ``(n,)``.
        """


def evaluation_of(policy: Policy, name: str, action_mask: Mask) -> Evaluation | None:
    """Return what a policy thinks of the decisions that it has just made; None if it doesn't tell.

    Args:
        policy: The policy.
        name: What a message calls it.
        action_mask: bool ``(n, actions)``; what it chose from.

    Raises:
        PolicyError: it tells something impossible.
    """
    told: Evaluation | None = getattr(policy, "evaluation", None)
    if told is None:
        return None
    every, most = action_mask.shape, 1 + 1e-6
    for what, values, shape, least in (
        ("probabilities", told.probabilities, every, 0.0),
        ("action_values", told.action_values, every, -most),
        ("value", told.value, every[:1], -most),
    ):
        if values is None:
            continue
        known = np.isfinite(values) if least == 0 else ~np.isnan(values)
        if values.shape != shape or (known < (least == 0)).any() or ((values < least) | (values > most))[known].any():
            raise PolicyError(
                f"policy {name!r} tells impossible {what}: they are of shape {values.shape}, from {np.min(values)} to "
                f"{np.max(values)}; allowed is shape {shape}, from {round(least)} to 1"
            )
    return told


def decide(policy: Policy, name: str, game: Game, games: Actions, first: int = 0) -> Actions:
    """Ask a policy for its actions in some games, in which it is to move, and check them.

    Args:
        policy: The policy.
        name: What a message calls it.
        game: The batch.
        games: Games of the batch, int ``(n,)``.
        first: The number by which the policy knows the batch's game 0.

    Returns:
        Legal actions, int ``(n,)``.

    Raises:
        PolicyError: it returned something else; the message names the policy.
    """
    if getattr(policy, "needs_observation", True):
        observation = game.observe(indices=games, table=getattr(policy, "observation_table", None))
    else:
        observation = np.zeros((games.size, game.observation.n), np.uint8)
    mask = game.legal_actions(games)
    actions = np.asarray(policy.act(observation, mask, InformationSets(game, games), games + first))
    if actions.shape != games.shape or actions.dtype.kind not in "iu":
        raise PolicyError(
            f"policy {name!r} returned {actions.dtype} of shape {actions.shape}; it must return integers of shape "
            f"{games.shape}"
        )
    legal = is_legal(mask, actions)
    if not legal.all():
        wrong = int(np.argmin(legal))
        error = PolicyError(
            f"policy {name!r} chose action {actions[wrong]} in game {games[wrong] + first}, which is not legal there; "
            f"legal are {', '.join(map(game.actions.text, np.flatnonzero(mask[wrong]).tolist()))}"
        )
        error.playable = np.where(legal, actions.astype(np.intp), -1)
        raise error
    return actions.astype(np.intp)


def move(policy: Policy, name: str, game: Game, games: Actions, first: int = 0) -> Actions:
    """Have a policy make its decisions in some games; arguments, result and errors are those of :func:`decide`."""
    actions = decide(policy, name, game, games, first)
    game._step(games, actions)
    return actions


def is_legal(action_mask: Mask, actions: Actions) -> Mask:
    """Return which of some integers are legal actions of their rows, bool ``(n,)``."""
    exists = (actions >= 0) & (actions < action_mask.shape[1])
    if np.count_nonzero(exists) == exists.size:
        return action_mask[np.arange(exists.size), actions]
    return exists & action_mask[np.arange(exists.size), np.where(exists, actions, 0)]


def random_legal_actions(action_mask: Mask, uniform: NDArray[np.float64]) -> Actions:
    """Choose an action in each row, every legal one with the same probability.

    Args:
        action_mask: bool ``(n, actions)``, a true value in every row for a meaningful choice. Fastest as
            ``Game.legal_actions`` hands it out, stored action by action.
        uniform: Random numbers in [0, 1), float64 ``(n,)``.

    Returns:
        int ``(n,)``.
    """
    mask = action_mask.T
    compiles = mask.flags.c_contiguous and mask.dtype == np.bool_ and len(mask) < 2**16
    if compiles and kernels().COMPILED and uniform.shape == mask.shape[1:] and uniform.dtype == np.float64:
        return kernels().random_legal_actions(mask.view(np.uint8), uniform)
    return _random_legal_actions(action_mask, uniform)


def _random_legal_actions(action_mask: Mask, uniform: NDArray[np.float64]) -> Actions:
    """Do the same on NumPy's arrays."""
    by_action = action_mask.T.astype(np.min_scalar_type(action_mask.shape[1]))
    if len(uniform) < 32:
        np.add.accumulate(by_action, axis=0, out=by_action)
    else:  # the same sums, but with long inner loops
        for before, row in itertools.pairwise(by_action):
            row += before
    wanted = (uniform * by_action[-1]).astype(by_action.dtype)
    return (by_action <= wanted).sum(axis=0, dtype=by_action.dtype).astype(np.intp)


def drawn_actions(weights: NDArray[np.float64], uniform: NDArray[np.float64]) -> Actions:
    """Choose an action in each row, with probabilities in proportion to ``weights``.

    Args:
        weights: 0 or more, float64 ``(n, actions)``.
        uniform: Random numbers in [0, 1), float64 ``(n,)``.

    Returns:
        int ``(n,)``.
    """
    sums = weights.cumsum(axis=1)
    drawn: Actions = (sums <= uniform[:, None] * sums[:, -1:]).sum(axis=1)
    return drawn


class SeededPolicy:
    """Random numbers for policies: one stream a game, moved on by each decision in that game."""

    needs_observation = False

    def reset(self, rules: Rules, num_games: int, seed: int) -> None:
        """Begin new games, see :class:`Policy`."""
        self._table = ActionTable(rules)
        self._seeds = streams.seeds_for(seed, num_games)
        self._decisions = np.zeros(num_games, np.uint64)

    def _keys(self, indices: Actions) -> streams.Words:
        """Return keys of random numbers for the next decision of some games."""
        count = self._decisions[indices]
        self._decisions[indices] = count + np.uint64(1)
        return streams.combine(self._seeds[indices], count)

    def _uniform(self, indices: Actions) -> NDArray[np.float64]:
        return streams.uniform(self._keys(indices))


class GuidedPolicy(SeededPolicy):
    """Asks another policy, ``_guide``, and is therefore shown what that one reads."""

    _guide: Policy

    @property
    def needs_observation(self) -> bool:  # type: ignore[override]
        """Whether the other policy needs observations."""
        return getattr(self._guide, "needs_observation", True)

    @property
    def observation_table(self) -> ObservationTable | None:
        """The layout that the other policy reads."""
        return getattr(self._guide, "observation_table", None)


class PriorityPolicy(SeededPolicy):
    """The first legal play of a fixed order; where none is legal, a uniformly random discard or ``end_turn``."""

    def plays(self, table: ActionTable) -> list[int]:
        """Return the plays that are considered, best first."""
        raise NotImplementedError

    def reset(self, rules: Rules, num_games: int, seed: int) -> None:
        """Begin new games, see :class:`Policy`."""
        super().reset(rules, num_games, seed)
        plays = self.plays(self._table)
        for play in plays:
            checked_integer("a play", play, 0, self._table.num_plays - 1)
        self._order = np.array(plays, np.intp)
        self._first_other = self._table.num_plays

    def act(self, observation: NDArray[np.uint8], action_mask: Mask, infosets: Any, indices: Actions) -> Actions:
        """Choose actions, see :class:`Policy`."""
        first = self._first_other
        chosen = first + random_legal_actions(action_mask[:, first:], self._uniform(indices))
        for play in self._order[::-1]:
            np.copyto(chosen, play, where=action_mask[:, play])
        return chosen

    @property
    def _plays_on(self) -> bool:
        """Whether ``_play_on`` does what :meth:`act` does: nobody has changed how it chooses."""
        kind = type(self)
        drawn = kind._keys is SeededPolicy._keys and kind._uniform is SeededPolicy._uniform
        own = vars(self).keys().isdisjoint(("act", "_keys", "_uniform"))
        return own and kind.act is PriorityPolicy.act and drawn

    def _play_on(self, game: Game, games: Actions, seats: Actions, last_actions: Actions) -> None:
        """Make all decisions in some games at once until ``seats`` are to move or a game ends, compiled.

        Args:
            game: A batch that runs compiled.
            games: Games in which others are to move, int ``(n,)``.
            seats: Whom to stop for, int ``(n,)``.
            last_actions: Of all games of the batch; the last actions are written there.
        """
        game._play_on(games, seats, self._order, self._first_other, self._seeds, self._decisions, last_actions)


class RandomPolicy(PriorityPolicy):
    """Uniform over the legal actions."""

    def plays(self, table: ActionTable) -> list[int]:
        """Return no play: none comes before any other action."""
        return []

    def reset(self, rules: Rules, num_games: int, seed: int) -> None:
        """Begin new games, see :class:`Policy`."""
        super().reset(rules, num_games, seed)
        self._first_other = 0


class GreedyPolicy(PriorityPolicy):
    """Plays whatever fits: the pay-off top first, then, centre by centre, side tops and hand; hand kings last."""

    def plays(self, table: ActionTable) -> list[int]:
        """Return the plays that are considered, best first."""
        centers = range(table.rules.center_piles)
        sources = range(1, table.num_sources - 1)
        payoff = [table.play(center, 0) for center in centers]
        naturals = [table.play(center, source) for center in centers for source in sources]
        return [*payoff, *naturals, *(table.play(center, table.num_sources - 1) for center in centers)]


class ProbabilityPolicy(SeededPolicy):
    """Acts by the probabilities that a network gives the actions; subclasses ask the network.

    Args:
        deterministic: Whether to take the most probable action; else actions are drawn.
    """

    needs_observation = True
    evaluation: Evaluation | None = None

    def __init__(self, deterministic: bool = False) -> None:
        self.deterministic = deterministic

    def sizes(self) -> tuple[int, int]:
        """Return the features and the actions that the network was built for."""
        raise NotImplementedError

    def probabilities(self, observation: NDArray[np.uint8], action_mask: Mask) -> Values:
        """Return the network's probabilities, ``(n, actions)``."""
        raise NotImplementedError

    def act(self, observation: NDArray[np.uint8], action_mask: Mask, infosets: Any, indices: Actions) -> Actions:
        """Choose actions, see :class:`Policy`.

        Raises:
            ValueError: the observation or the mask has not the size that the network was built for.
        """
        wanted = self.sizes()
        if (observation.shape[1], action_mask.shape[1]) != wanted:
            raise ValueError(
                f"the model was trained with {wanted[0]} features and {wanted[1]} actions, and this game has "
                f"{observation.shape[1]} and {action_mask.shape[1]}; use its training's rules, encoding and side_depth"
            )
        probabilities = self.probabilities(np.ascontiguousarray(observation), np.array(action_mask))
        weights = np.where(action_mask, probabilities.astype(np.float64) + 1e-12, 0.0)
        self.evaluation = Evaluation("the network's probabilities", weights / weights.sum(axis=1, keepdims=True))
        if self.deterministic:
            best: Actions = weights.argmax(axis=1)
            return best
        return drawn_actions(weights, self._uniform(indices))


#: The policies of the library by name; all others are in ``agents``.
POLICIES: dict[str, type[Policy]] = {"random": RandomPolicy, "greedy": GreedyPolicy}


def policy_name(policy: str | Policy) -> str:
    """Return what to call a policy: its name, or that of its class."""
    return policy if isinstance(policy, str) else type(policy).__name__


def make_policy(policy: str | Policy) -> Policy:
    """Return a policy: a new one for its short name or ``package.module:attribute``, an object as it is.

    Short names are looked up here, then in the ``agents`` package of a checkout. An attribute is called without
    arguments if it is a class or a function.

    Raises:
        ValueError: an unknown name (the message lists the known ones), or no policy.
    """
    if not isinstance(policy, str):
        if isinstance(policy, type) or not all(callable(getattr(policy, name, None)) for name in ("reset", "act")):
            raise ValueError(
                f"{policy!r} is no policy: it needs the methods reset and act (of an instance, not a class)"
            )
        return policy
    if policy in POLICIES:
        return POLICIES[policy]()
    if ":" in policy:
        return _imported(policy)
    agents = _agents()
    if policy in agents:
        return _imported(agents[policy])
    missing = "" if agents else " (the other agents come with a checkout of the repository)"
    raise ValueError(
        f"unknown policy {policy!r}; the known ones are {', '.join(policy_names())}{missing}, or package.module:name"
    )


def policy_names() -> list[str]:
    """Return the short names that :func:`make_policy` knows."""
    return [*POLICIES, *_agents()]


def _agents() -> dict[str, str]:
    """Return where the agents of a checkout are, by name; none where there is no checkout."""
    if importlib.util.find_spec("agents") is None:
        return {}
    agents: dict[str, str] = getattr(importlib.import_module("agents"), "AGENTS", {})
    return agents


def _imported(name: str) -> Policy:
    """Return the policy ``package.module:attribute``; whatever goes wrong in there is an error of the name."""
    module, _, attribute = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
        made: Policy = found() if isinstance(found, type) or not hasattr(found, "act") else found
        if isinstance(made, str):
            raise TypeError(f"{made!r} is no policy")
        return make_policy(made)
    except (Exception, SystemExit) as error:
        raise ValueError(f"policy {name!r} can't be loaded: {error!r}") from error
