"""Stable-Baselines3: one learner against opponents that are part of the environment, any number of games at once.

Every row of the vectorised environment is one game with the learner in one seat. A step is the learner's decision,
followed by all the opponent's decisions until the learner is to move again or the game has ended, so that a step's
reward is what happened to the learner up to its next decision. No Python object stands behind a game: all rows are one
:class:`~spite_env.game.Game`, and the opponents choose for all waiting rows together.

    env = SpiteVecEnv(1024, opponent="greedy")
    model = MaskablePPO("MlpPolicy", env)

Masks reach ``MaskablePPO`` through ``env_method("action_masks")``, as one array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spite_env import streams
from spite_env.game import Game
from spite_env.policies import (
    Actions,
    Mask,
    NetworkPolicy,
    Policy,
    decide,
    make_policy,
    policy_name,
    random_legal_actions,
)
from spite_env.rewards import check_reward, rewards
from spite_env.rules import Rules, checked_integer
from spite_env.state import NO_WINNER, Index

try:
    import torch
    from gymnasium.spaces import Discrete
    from stable_baselines3.common.vec_env import VecEnv
except ImportError as error:  # pragma: no cover
    raise ImportError(
        f"spite_env.envs.sb3 needs Stable-Baselines3 ({error}); install it with: pip install 'spite_env[train]'"
    ) from error

#: A policy, its name, or pairs of those and weights: each game's opponent is drawn by the weights.
Opponent = str | Policy | Sequence[tuple[str | Policy, float]]

#: Deals in a row without a decision of the learner, after which a reset gives up.
MOST_DEALS = 1000

_OUTCOMES = ("loss", "draw", "win")
# What a row draws random numbers for, besides its cards.
_SEAT, _OPPONENT, _PAYOFF_SIZE, _POLICY = range(0x5B3_0, 0x5B3_4)


class ModelPolicy(NetworkPolicy):
    """A frozen copy of an SB3 model's network, as a :class:`~spite_env.policies.Policy`.

    Args:
        model: What to copy: a maskable SB3 algorithm, or its policy. None plays at random until :meth:`update`.
        deterministic: Whether to take the most probable action; else actions are drawn from the network's distribution.
    """

    def __init__(self, model: Any = None, deterministic: bool = False) -> None:
        super().__init__(deterministic)
        self.network: Any = None
        if model is not None:
            self.update(model)

    def update(self, model: Any) -> None:
        """Copy the weights that ``model`` (an algorithm or its policy) has now; later training doesn't change them."""
        source = getattr(model, "policy", model)
        if self.network is None:  # built anew: during training a policy holds tensors that can't be deep-copied
            with torch.random.fork_rng(devices=[]):  # the first weights are drawn, and thrown away
                self.network = type(source)(**source._get_constructor_parameters()).to(source.device)
        self.network.load_state_dict(source.state_dict())
        self.network.set_training_mode(False)

    def sizes(self) -> tuple[int, int]:
        """Return the features and the actions that the network was built for."""
        return self.network.observation_space.shape[0], int(self.network.action_space.n)

    def probabilities(self, observation: NDArray[np.uint8], action_mask: Mask) -> NDArray[np.float32]:
        """Return the network's probabilities, float32 ``(n, actions)``."""
        with torch.no_grad():
            seen = torch.as_tensor(observation, device=self.network.device)
            return self.network.get_distribution(seen, action_mask).distribution.probs.cpu().numpy()

    def act(self, observation: NDArray[np.uint8], action_mask: Mask, infosets: Any, indices: Actions) -> Actions:
        """Choose actions, see :meth:`NetworkPolicy.act <spite_env.policies.NetworkPolicy.act>`."""
        if self.network is None:
            return random_legal_actions(action_mask, self._uniform(indices))
        return super().act(observation, action_mask, infosets, indices)


class SpiteVecEnv(VecEnv):
    """Games of one learner against drawn opponents, as a Stable-Baselines3 ``VecEnv``.

    Args:
        num_envs: Games played at once; 256 to 1024 make the most of a CPU.
        opponent: A policy, its name, or ``(policy or name, weight)`` pairs, from which each game draws its opponent.
            The policies get no ``infosets`` and aren't told when a row's next game begins: they must not need either.
        rules: The variant, or the name of a preset; default ``Rules()``.
        encoding: ``"onehot"`` or ``"compact"``, see :class:`~spite_env.observation.ObservationTable`.
        side_depth: Cards below the top of each side pile that an observation shows one by one.
        reward: ``"win"``, ``"points"`` or ``"margin"``, see :mod:`spite_env.rewards`.
        seat: The learner's seat: 0, 1, or ``"random"`` for each game.
        shaping: Scale of a potential-based reward added for pay-off cards (Ng, Harada and Russell, 1999). The
            potential is ``shaping * (opponent's - own pay-off cards) / rules.payoff_size`` at each of the learner's
            decisions, and 0 once the game has ended by its rules; a step adds ``gamma * potential after - potential
            before``. It moves rewards to where pay-off cards go, without changing which policy is best. 0: none.
        gamma: The learner's discount, for the shaping only.
        card_reward: Reward added for each pay-off card that the learner gets rid of, and taken away for each of the
            opponent's. Unlike the shaping it changes what is best: running the stock out no longer costs nothing.
        payoff_sizes: Sizes that each game's pay-off piles are drawn from, for a curriculum; the cards left over are in
            the stock. None deals ``rules.payoff_size``. :meth:`set_payoff_sizes` changes it for the games to come.
        seed: An integer from 0 to 2**64 - 1. :meth:`seed` followed by :meth:`reset` repeats everything.

    Observations are uint8 ``(num_envs, features)`` of the learner's view, rewards float32 ``(num_envs,)``, all of them
    new arrays at each step. An ended game is dealt anew within the step; one that ends before the learner's first
    decision is dealt anew without a trace. The info of a step that ended a game holds ``terminal_observation`` (the
    learner's view of the ended game), ``TimeLimit.truncated`` and ``episode``: ``r`` the game's reward without shaping,
    ``l`` the learner's decisions, ``outcome`` (``"win"``, ``"draw"`` or ``"loss"``), ``payoff`` and ``opponent_payoff``
    (cards left), ``size`` (cards dealt to each pay-off pile), ``seat`` and ``opponent`` (its place in the mixture).

    Attributes:
        game: The :class:`~spite_env.game.Game` behind it.
        seats: The learner's seat in each row, int ``(num_envs,)``.
        opponents: The opponent of each row, as its place in the mixture, int ``(num_envs,)``.
        sizes: The pay-off cards that each player of a row was dealt, int ``(num_envs,)``.

    Raises:
        ValueError: an argument out of range, or an unknown policy.
    """

    def __init__(
        self,
        num_envs: int,
        opponent: Opponent = "random",
        rules: Rules | str | None = None,
        *,
        encoding: str = "onehot",
        side_depth: int = 3,
        reward: str = "win",
        seat: int | str = "random",
        shaping: float = 0.0,
        gamma: float = 0.99,
        card_reward: float = 0.0,
        payoff_sizes: Iterable[int] | None = None,
        seed: int = 0,
    ) -> None:
        if isinstance(seat, bool) or seat not in (0, 1, "random"):
            raise ValueError(f"seat={seat!r} is not allowed; it is 0, 1 or 'random'")
        if not 0 <= shaping < np.inf or not 0 <= gamma <= 1 or not 0 <= card_reward < np.inf:
            raise ValueError(
                f"shaping={shaping!r}, gamma={gamma!r}, card_reward={card_reward!r}: shaping and card_reward are "
                "finite and 0 or more, gamma is from 0 to 1"
            )
        seed = checked_integer("seed", seed, 0, 2**64 - 1)
        self.game = Game(rules, num_envs, seed, encoding=encoding, side_depth=side_depth)
        self.rules = self.game.rules
        self.reward = check_reward(reward)
        self.seat = seat
        self.shaping = shaping
        self.gamma = gamma
        self.card_reward = card_reward
        self.render_mode = None
        self._policies, self._shares = _mixture(opponent)
        self.set_payoff_sizes(payoff_sizes)
        super().__init__(num_envs, self.game.observation.space, Discrete(self.game.actions.n))
        self.seats = np.zeros(num_envs, np.intp)
        self.opponents = np.zeros(num_envs, np.intp)
        self.sizes = np.full(num_envs, self.rules.payoff_size)
        self._lengths = np.zeros(num_envs, np.int64)
        self._leads = np.zeros(num_envs)
        self._all = np.arange(num_envs)
        self._no_infos: list[dict[str, Any]] = [{} for _ in range(num_envs)]
        self._next_seed: int | None = seed

    # Settings

    def set_payoff_sizes(self, sizes: Iterable[int] | None) -> None:
        """Draw the pay-off piles of the games to come from ``sizes``; None: ``rules.payoff_size``.

        Raises:
            ValueError: no size, a size that isn't from 1 to ``rules.payoff_size``, or a match.
        """
        most = self.rules.payoff_size
        listed = None if sizes is None else [checked_integer("payoff_sizes", size, 1, most) for size in sizes]
        if listed is not None:
            if not listed:
                raise ValueError("payoff_sizes=[] is not allowed; give at least one size")
            if self.rules.match_points is not None:
                raise ValueError("payoff_sizes need single games: rules.match_points must be None")
        self._sizes = None if listed is None or set(listed) == {self.rules.payoff_size} else np.array(listed)

    def set_weights(self, weights: Sequence[float]) -> None:
        """Draw the opponents of the games to come with these weights, one for each of the mixture.

        Raises:
            ValueError: not one weight for each opponent, or weights that are negative or all 0.
        """
        self._shares = _shares(weights, len(self._policies))

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Have the next :meth:`reset` start from ``seed``; None leaves things as they are."""
        if seed is not None:
            self._next_seed = checked_integer("seed", seed, 0, 2**64 - 1)
        return [seed] * self.num_envs

    # What SB3 calls

    def reset(self) -> NDArray[np.uint8]:
        """Deal all games anew and return the learner's first views, uint8 ``(num_envs, features)``."""
        seed, self._next_seed = self._next_seed, None
        if seed is not None:
            self.game.reset(seed=seed)
            keys = streams.combine(streams.seeds_for(seed, 1), _POLICY)
            for policy, word in zip(self._policies, streams.words(keys, len(self._policies))[0], strict=True):
                policy.reset(self.rules, self.num_envs, int(word))
        self._open(self._all, deal=seed is None)
        self._reset_seeds()
        self._reset_options()
        return self.game.observe()

    def step_async(self, actions: NDArray[Any]) -> None:
        """Take the learner's actions, integers ``(num_envs,)``, for :meth:`step_wait`."""
        self._actions = actions

    def step_wait(self) -> tuple[NDArray[np.uint8], NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """Make the learner's decision and the opponents' answers in every game; deal ended games anew.

        Raises:
            ValueError: an action of the learner that isn't legal, nothing is changed then; or one of an opponent, after
                which the environment has to be reset.
        """
        game = self.game
        game.step(self._actions)
        self._lengths += 1
        self._let_opponents_move()
        truncated = game.truncated
        dones = game.terminated | truncated
        earned = rewards(game, self.reward)[self._all, self.seats].astype(np.float32)
        infos = self._no_infos.copy()
        ended = np.flatnonzero(dones)
        if ended.size:
            self._describe(infos, ended, earned, truncated)
        earned += self._extra(dones & ~truncated)
        if ended.size:
            self._open(ended)
        return game.observe(), earned, dones, infos

    def action_masks(self) -> NDArray[np.bool_]:
        """Return the learner's legal actions, bool ``(num_envs, actions)``, a new array."""
        return np.array(self.game.legal_actions(), order="C")

    def env_method(
        self, method_name: str, *method_args: Any, indices: int | Iterable[int] | None = None, **method_kwargs: Any
    ) -> list[Any]:
        """Call a method once. ``action_masks`` returns one array of all rows in a list, as SB3's masking allows."""
        if method_name == "action_masks":
            masks = self.action_masks()
            return [masks] if indices is None else list(masks[list(self._get_indices(indices))])
        method: Callable[..., Any] = getattr(self, method_name)
        result = method(*method_args, **method_kwargs)
        return [result for _ in self._get_indices(indices)]

    def has_attr(self, attr_name: str) -> bool:
        """Return whether the environment has an attribute."""
        return hasattr(self, attr_name)

    def get_attr(self, attr_name: str, indices: int | Iterable[int] | None = None) -> list[Any]:
        """Return an attribute, the same for every row."""
        value = getattr(self, attr_name)
        return [value for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: int | Iterable[int] | None = None) -> None:
        """Set an attribute for all rows."""
        setattr(self, attr_name, value)

    def env_is_wrapped(self, wrapper_class: type[Any], indices: int | Iterable[int] | None = None) -> list[bool]:
        """Return False for every row: there are no wrapped environments inside."""
        return [False for _ in self._get_indices(indices)]

    def close(self) -> None:
        """Do nothing: there is nothing to release."""

    # Inside

    def _open(self, games: Index, deal: bool = True) -> None:
        """Deal games, if they aren't yet, and play them up to the learner's first decision."""
        opened = games
        attempts = 0
        while games.size:
            if attempts == MOST_DEALS:
                raise RuntimeError(f"{attempts} games in a row ended before the learner's first decision")
            attempts += 1
            if deal:
                self.game.reset(games)
            deal = True
            self.sizes[games] = self.rules.payoff_size
            if self._sizes is not None:
                self._shorten(games)
            coin = self._uniform(games, _SEAT) < 0.5
            self.seats[games] = coin if self.seat == "random" else self.seat
            self.opponents[games] = np.searchsorted(self._shares, self._uniform(games, _OPPONENT), side="right")
            self._let_opponents_move()
            games = games[self.game.state.over[games]]
        self._lengths[opened] = 0
        self._leads[opened] = self._lead()[opened]

    def _shorten(self, games: Index) -> None:
        """Start these games again with fewer pay-off cards; the others go into the stock."""
        assert self._sizes is not None
        drawn = self._sizes[(self._uniform(games, _PAYOFF_SIZE) * self._sizes.size).astype(np.intp)]
        self.sizes[games] = drawn
        positions = []
        for game, size in zip(games, drawn, strict=True):
            position = self.game.position(game)
            position["payoff"] = [pile[-size:] for pile in position["payoff"]]
            del position["stock"]
            positions.append(position)
        self.game.reset(games, positions=positions)

    def _let_opponents_move(self) -> None:
        """Move for the opponents until, in every game, the learner is to move or the game has ended."""
        game = self.game
        while True:
            waiting = np.flatnonzero((game.current_player != self.seats) & ~game.state.over)
            if not waiting.size:
                return
            actions = np.empty(waiting.size, np.intp)
            chooser = self.opponents[waiting]
            for number, policy in enumerate(self._policies):
                at = np.flatnonzero(chooser == number)
                if at.size:
                    actions[at] = decide(policy, policy_name(policy), game, waiting[at])
            game.step(actions, waiting)

    def _describe(
        self, infos: list[dict[str, Any]], ended: Index, earned: NDArray[np.float32], truncated: NDArray[np.bool_]
    ) -> None:
        """Put the results of ended games into the infos of their rows."""
        views = np.where(self.seats[ended, None] == 0, *(self.game.observe(viewer, ended) for viewer in (0, 1)))
        winner = self.game.winner[ended].astype(np.intp)
        outcome = np.where(winner == NO_WINNER, 1, np.where(winner == self.seats[ended], 2, 0))
        own, other = self._payoff_left()
        for row, game in enumerate(ended.tolist()):
            infos[game] = {
                "terminal_observation": views[row],
                "TimeLimit.truncated": bool(truncated[game]),
                "episode": {
                    "r": float(earned[game]),
                    "l": int(self._lengths[game]),
                    "outcome": _OUTCOMES[outcome[row]],
                    "payoff": int(own[game]),
                    "opponent_payoff": int(other[game]),
                    "size": int(self.sizes[game]),
                    "seat": int(self.seats[game]),
                    "opponent": int(self.opponents[game]),
                },
            }

    def _payoff_left(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the learner's and the opponent's pay-off cards in each game."""
        left = self.game.state.pile_size[:, 0].astype(np.int64)
        return left[self.seats, self._all], left[1 - self.seats, self._all]

    def _lead(self) -> NDArray[np.float64]:
        """Return how many pay-off cards fewer than its opponent the learner has in each game."""
        own, other = self._payoff_left()
        return (other - own).astype(np.float64)

    def _extra(self, over: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Return the rewards for the pay-off cards of this step, beside that of the game."""
        before, after = self._leads, self._lead()
        self._leads = after
        potential = self.shaping / self.rules.payoff_size
        shaped = potential * (self.gamma * np.where(over, 0.0, after) - before)
        extra: NDArray[np.float32] = (shaped + self.card_reward * (after - before)).astype(np.float32)
        return extra

    def _uniform(self, games: Index, purpose: int) -> NDArray[np.float64]:
        """Return a random number for each of these games, which depends on its row's seed and episode alone."""
        state = self.game.state
        return streams.uniform(streams.combine(streams.combine(state.seed[games], purpose), state.episode[games]))


def _mixture(opponent: Opponent) -> tuple[list[Policy], NDArray[np.float64]]:
    """Return the policies of a mixture and their cumulative shares."""
    pairs = list(opponent) if isinstance(opponent, Sequence) and not isinstance(opponent, str) else [(opponent, 1.0)]
    if not pairs or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):
        raise ValueError(f"opponent={opponent!r} is not allowed; give a policy, a name, or (policy, weight) pairs")
    policies = [make_policy(policy) for policy, _ in pairs]
    return policies, _shares([weight for _, weight in pairs], len(pairs))


def _shares(weights: Sequence[float], count: int) -> NDArray[np.float64]:
    given = np.array(weights, np.float64)
    if given.shape != (count,) or not (given >= 0).all() or not 0 < given.sum() < np.inf:
        raise ValueError(f"weights {list(weights)!r} are not allowed; give {count} numbers, 0 or more, not all 0")
    shares: NDArray[np.float64] = given.cumsum() / given.sum()
    shares[given.cumsum() >= given.sum()] = np.inf
    return shares
