"""One learner against opponents that are part of the environment: what all single-seat environments share.

A step is the learner's decision, followed by all the opponent's decisions until the learner is to move again or the
game has ended, so that a step's reward is what happened to the learner up to its next decision. All games are one
:class:`~spite_env.game.Game`, and each opponent chooses for all games that wait for it together.
"""

from __future__ import annotations

import copy
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spite_env import streams
from spite_env.arguments import checked_actions
from spite_env.curriculum import Dealer
from spite_env.game import Game
from spite_env.policies import Policy, PriorityPolicy, is_legal, make_policy, move, policy_name
from spite_env.rewards import check_reward, rewards
from spite_env.rules import Rules, checked_number, checked_rules
from spite_env.state import NO_WINNER, Index

#: A policy, its name, or pairs of those and weights: each game's opponent is drawn by the weights.
Opponent = str | Policy | Sequence[tuple[str | Policy, float]]

#: Deals in a row without a decision of the learner, after which a game is given up.
MOST_DEALS = 1000

_OUTCOMES = np.array(["loss", "draw", "win"])
# What a game draws random numbers for, besides its cards.
_SEAT, _OPPONENT, _POLICY = range(0x5EA7_0, 0x5EA7_3)


@dataclass(frozen=True, kw_only=True)
class SeatSettings:
    """The settings that the single-seat environments share, all of them optional.

    Attributes:
        encoding: ``"onehot"`` or ``"compact"``, see :class:`~spite_env.observation.ObservationTable`.
        side_depth: Cards below the top of each side pile that an observation shows one by one.
        match_points: Play matches to as many points instead of single games; None leaves that to the rules.
        reward: ``"win"``, ``"points"`` or ``"margin"``, see :mod:`spite_env.rewards`.
        seat: The learner's seat: 0, 1, or ``"random"`` for each game.
        illegal: What an illegal action of the learner does. ``"lose"``: the opponent wins, with the learner's remaining
            pay-off cards as points. ``"raise"``: a ``ValueError`` names the legal actions, and nothing is changed. An
            action out of range raises always.
        payoff_sizes: Sizes that each game's pay-off piles are drawn from, see :class:`~spite_env.curriculum.Dealer`.
        shaping: Scale of a potential-based reward added for pay-off cards (Ng, Harada and Russell, 1999). The
            potential is ``shaping * (opponent's - own pay-off cards) / rules.payoff_size`` at each of the learner's
            decisions, and 0 once the game has ended by its rules; a step adds ``gamma * potential after - potential
            before``. It moves rewards to where pay-off cards go, without changing which policy is best. 0: none. Not
            for matches.
        gamma: The learner's discount, for the shaping only.
        card_reward: Reward added for each pay-off card that the learner gets rid of, and taken away for each of the
            opponent's. Unlike the shaping it changes what is best: running the stock out no longer costs nothing. Not
            for matches.

    Raises:
        ValueError: a setting out of range.
    """

    encoding: str = "onehot"
    side_depth: int = 3
    match_points: int | None = None
    reward: str = "win"
    seat: int | str = "random"
    illegal: str = "lose"
    payoff_sizes: Iterable[int] | None = None
    shaping: float = 0.0
    gamma: float = 0.99
    card_reward: float = 0.0

    def __post_init__(self) -> None:
        check_reward(self.reward)
        if isinstance(self.seat, (bool, float)) or self.seat not in (0, 1, "random"):
            raise ValueError(f"seat={self.seat!r} is not allowed; it is 0, 1 or 'random'")
        if self.illegal not in ("lose", "raise"):
            raise ValueError(f"illegal={self.illegal!r} is not allowed; it is 'lose' or 'raise'")
        checked_number("shaping", self.shaping, 0)
        checked_number("gamma", self.gamma, 0, 1)
        checked_number("card_reward", self.card_reward, 0)


class SeatGames:
    """Games of one learner against drawn opponents.

    Args:
        num_games: Games played at once.
        opponent: A policy, its name, or ``(policy or name, weight)`` pairs, from which each game draws its opponent.
            Of a policy object a shallow copy plays, so that several environments can share one. The policies aren't
            told when a row's next game begins: they must not need to know.
        rules: The variant, or the name of a preset; default ``Rules()``.
        settings: Those of :class:`SeatSettings`.

    Attributes:
        game: The :class:`~spite_env.game.Game` behind it.
        dealer: What deals it; ``dealer.set_payoff_sizes`` moves a curriculum on.
        seats: The learner's seat in each game, int ``(num_games,)``.
        policies: The mixture's opponents.
        names: Their names.
        opponents: The opponent of each game, as its place in the mixture, int ``(num_games,)``.
        redeals: How often each game was dealt anew, because it had ended before the learner's first decision, int
            ``(num_games,)``.
        last_players: Who made the last decision of each game, int ``(num_games,)``; -1 is nobody.
        last_actions: What it was, int ``(num_games,)``; -1 is a forfeit.

    Raises:
        ValueError: an argument that is not allowed.
    """

    def __init__(
        self, num_games: int, opponent: Opponent = "greedy", rules: Rules | str | None = None, **settings: Any
    ) -> None:
        known = [field.name for field in fields(SeatSettings)]
        for name in settings:
            if name not in known:
                raise TypeError(f"unknown setting {name!r}; the settings are {', '.join(known)}")
        self.settings = SeatSettings(**settings)
        rules = checked_rules(rules)
        if self.settings.match_points is not None:
            rules = rules.replace(match_points=self.settings.match_points)
        if rules.match_points is not None and (self.settings.card_reward or self.settings.shaping):
            raise ValueError("shaping and card_reward need single games: rules.match_points must be None")
        self.game = Game(rules, num_games, encoding=self.settings.encoding, side_depth=self.settings.side_depth)
        self.rules = rules
        self.policies, self._shares = _mixture(opponent)
        self.names = [policy_name(policy) for policy in self.policies]
        self.dealer = Dealer(self.game, self.settings.payoff_sizes)
        self.seats = np.zeros(num_games, np.intp)
        self.opponents = np.zeros(num_games, np.intp)
        self.redeals = np.zeros(num_games, np.int64)
        self.last_players = np.full(num_games, -1)
        self.last_actions = np.full(num_games, -1)
        self._all = np.arange(num_games)
        table, every = self.game.actions, np.arange(self.game.actions.n)
        source = np.where(every < table.num_plays, every % table.num_sources, -1)
        self._is_wild = source == table.num_sources - 1
        self._is_from_pile = (source >= 0) & (source <= rules.side_piles)
        self._pile_of_action = np.where(self._is_from_pile, source, 0)
        self._lengths = np.zeros(num_games, np.int64)
        self._kings = np.zeros(num_games, np.int64)
        self._forfeits = np.zeros(num_games, np.bool_)
        self._leads = np.zeros(num_games)
        self._pays_for_cards = self.settings.shaping > 0 or self.settings.card_reward > 0
        self._seeded = False
        self._ready = False

    def set_weights(self, weights: Sequence[float]) -> None:
        """Draw the opponents of the games to come with these weights, one for each of the mixture.

        Raises:
            ValueError: not one weight for each opponent, or weights that are negative or all 0.
        """
        self._shares = _shares(weights, len(self.policies))

    # Playing

    def reset(
        self, seed: int | Sequence[int] | None = None, positions: Sequence[Mapping[str, Any]] | None = None
    ) -> None:
        """Start all games, and play them up to the learner's first decision.

        Args:
            seed: As for :class:`~spite_env.game.Game`; None goes to the next episode, and at first draws a seed from
                the operating system.
            positions: Start from positions instead of deals, one for each game.

        Raises:
            ValueError: an impossible seed or position, nothing is changed then; or a position in which the learner
                never comes to move, after which only another reset is possible.
        """
        if seed is None and not self._seeded:
            seed = secrets.randbits(64)
        if positions is None:
            self.dealer.deal(self._all, seed)
        else:
            self.game.reset(seed=seed, positions=positions)
            self.dealer.payoff_sizes[:] = self.game.state.pile_size[:, 0].max(axis=0)
        self._ready = False
        if seed is not None:
            keys = streams.combine(self.game.state.seed[:1], _POLICY)
            for policy, word in zip(self.policies, streams.words(keys, len(self.policies))[0], strict=True):
                policy.reset(self.rules, self.game.num_games, int(word))
            self._seeded = True
        self._open(self._all, redeal=positions is None)
        self._ready = True

    def deal(self, games: Index) -> None:
        """Deal the next episode of some games, and play it up to the learner's first decision.

        Raises:
            RuntimeError: the learner never comes to move.
        """
        self._ready = False
        self.dealer.deal(games)
        self._open(games)
        self._ready = True

    def step(self, actions: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]]:
        """Make the learner's decision and the opponents' answers in every game.

        Args:
            actions: Integers ``(num_games,)``.

        Returns:
            The learner's rewards, float64 ``(num_games,)``; whether its games have ended by their rules, and whether
            they were cut, bool ``(num_games,)``. Ended games wait for :meth:`deal`.

        Raises:
            ValueError: an action that is not allowed, nothing is changed then; or an illegal one of an opponent, after
                which only a reset is possible.
            RuntimeError: a game has not been started, or has ended.
        """
        self._check_ready()
        game = self.game
        chosen = checked_actions(actions, game.num_games)
        legal = is_legal(game.legal_actions(), chosen)
        are_legal = np.count_nonzero(legal) == legal.size
        kings = self._are_kings(chosen if are_legal else np.where(legal, chosen, game.actions.end_turn))
        if are_legal:
            game._step(self._all, chosen)
        elif self.settings.illegal == "raise":
            game.step(chosen)
        else:
            lost = ~legal & (chosen >= 0) & (chosen < game.actions.n)
            playing = np.flatnonzero(~lost)
            game.step(chosen[playing], playing)
            game.forfeit(np.flatnonzero(lost))
        self.last_players[:] = self.seats
        self.last_actions[:] = chosen if are_legal else np.where(legal, chosen, -1)
        self._forfeits = ~legal
        self._kings += kings
        self._lengths += 1
        self._ready = False
        self._let_opponents_move(self._all)
        self._ready = True
        return self._earned(), game.terminated, game.truncated

    def step_alone(self, action: int) -> tuple[float, bool, bool]:
        """Do what :meth:`step` does for the only game: reward, whether it has ended by its rules, whether it was cut.

        NumPy would take several times as long for one game.
        """
        self._check_ready()
        game, seat = self.game, int(self.seats[0])
        is_king = 0 <= action < game.actions.n and self._is_king(action, seat)
        if not game._step_if_legal(action):
            return tuple(value.item() for value in self.step([action]))  # type: ignore[return-value]
        state = game.state
        self.last_players[0], self.last_actions[0] = seat, action
        self._forfeits[0] = False
        self._kings[0] += is_king
        self._lengths[0] += 1
        self._ready = False
        while state.player[0] != seat and not state.over[0]:
            self.last_players[0] = 1 - seat
            self._let_move(int(self.opponents[0]), self._all)
        self._ready = True
        if not state.over[0] and not self._pays_for_cards:
            return 0.0, False, False
        return float(self._earned()[0]), bool(state.terminated[0]), bool(state.truncated[0])

    def observe(self, games: Index | None = None) -> NDArray[np.uint8]:
        """Return the learner's views of all games, or of some, uint8 ``(games, features)``."""
        if self.game.num_games == 1 and games is None:
            return self.game.observe(int(self.seats[0]))
        return self.game.observe(self.seats if games is None else self.seats[games], games)

    def results(self, games: Index) -> dict[str, NDArray[Any]]:
        """Return what there is to say of ended games, arrays ``(games,)``.

        Returns:
            ``reward`` (without shaping and rewards for cards), ``length`` (the learner's decisions), ``outcome``
            (``"win"``, ``"draw"`` or ``"loss"``), ``forfeit`` (lost by an illegal action), ``payoff`` and
            ``opponent_payoff`` (cards left), ``kings`` (played by the learner), ``payoff_size`` (cards dealt to each
            pay-off pile), ``seat``, ``opponent`` (its place in the mixture) and ``redeals``.
        """
        winner = self.game.winner.astype(np.intp)
        outcome = np.where(winner == NO_WINNER, 1, np.where(winner == self.seats, 2, 0))
        left = self.game.state.pile_size[:, 0].astype(np.int64)
        told = {
            "reward": self._own(rewards(self.game, self.settings.reward).T),
            "length": self._lengths,
            "outcome": _OUTCOMES[outcome],
            "forfeit": self._forfeits,
            "payoff": self._own(left),
            "opponent_payoff": self._own(left[::-1]),
            "kings": self._kings,
            "payoff_size": self.dealer.payoff_sizes,
            "seat": self.seats,
            "opponent": self.opponents,
            "redeals": self.redeals,
        }
        return {name: values[games] for name, values in told.items()}

    # Inside

    def _open(self, games: Index, redeal: bool = True) -> None:
        """Seat the players of new games, and let the opponents move up to the learner's first decision."""
        state = self.game.state
        opened = games
        episode = state.seed[games], state.episode[games]
        draws_seat = self.settings.seat == "random"
        self.seats[games] = streams.uniform_of_episode(*episode, _SEAT) < 0.5 if draws_seat else self.settings.seat
        if len(self.policies) > 1:
            drawn = streams.uniform_of_episode(*episode, _OPPONENT)
            self.opponents[games] = np.searchsorted(self._shares, drawn, side="right")
        self.redeals[games] = 0
        self.last_players[games] = -1
        while games.size:
            self._let_opponents_move(games)
            games = games[state.over[games]]
            if games.size and not redeal:
                raise ValueError(f"position {games[0]} ends before the learner's first decision")
            if games.size:
                self.redeals[games] += 1
                self.last_players[games] = -1
                if self.redeals[games].max() == MOST_DEALS:
                    raise RuntimeError(f"{MOST_DEALS} games in a row ended before the learner's first decision")
                self.dealer.deal(games)
        self._lengths[opened] = 0
        self._kings[opened] = 0
        self._leads[opened] = self._lead()[opened]

    def _let_opponents_move(self, games: Index) -> None:
        """Move for the opponents until, in each of these games, the learner is to move or the game has ended."""
        state = self.game.state
        while True:
            games = games[(state.player[games] != self.seats[games]) & ~state.over[games]]
            if not games.size:
                return
            self.last_players[games] = 1 - self.seats[games]
            chooser = self.opponents[games]
            for number in range(len(self.policies)):
                waiting = games if len(self.policies) == 1 else games[chooser == number]
                if waiting.size:
                    self._let_move(number, waiting)

    def _let_move(self, number: int, games: Index) -> None:
        """Have an opponent make its next decision in some games, or all up to the learner's next one."""
        game, policy = self.game, self.policies[number]
        compiled = game.compiled and game.listener is None
        if compiled and isinstance(policy, PriorityPolicy) and policy._plays_on:
            policy._play_on(game, games, self.seats[games], self.last_actions)
        else:
            self.last_actions[games] = move(policy, self.names[number], game, games)

    def _check_ready(self) -> None:
        if not self._ready or np.count_nonzero(self.game.state.over):
            raise RuntimeError("a game has not been started, or has ended: call reset()")

    def _is_king(self, action: int, seat: int) -> bool:
        """Return what :meth:`_are_kings` returns, for the only game."""
        if self._is_from_pile[action]:
            return bool(self.game.state.pile_top[seat, self._pile_of_action[action], 0] == self.rules.kinds)
        return bool(self._is_wild[action])

    def _are_kings(self, actions: Index) -> NDArray[np.bool_]:
        """Return which of the learner's actions play a king."""
        tops = self.game.state.pile_top[self.seats, self._pile_of_action[actions], self._all]
        return self._is_wild[actions] | self._is_from_pile[actions] & (tops == self.rules.kinds)

    def _own(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the learner's of both players' values ``(2, num_games)``."""
        return values[self.seats, self._all]

    def _lead(self) -> NDArray[np.float64]:
        """Return how many pay-off cards fewer than its opponent the learner has in each game."""
        left = self.game.state.pile_size[:, 0].astype(np.float64)
        return self._own(left[::-1] - left)

    def _earned(self) -> NDArray[np.float64]:
        """Return the learner's rewards of the step that has just been made."""
        game = self.game
        earned = np.zeros(game.num_games)
        if np.count_nonzero(game.state.over):
            earned += self._own(rewards(game, self.settings.reward).T)
        if self._pays_for_cards:
            earned += self._for_cards(game.terminated)
        return earned

    def _for_cards(self, terminated: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the rewards for the pay-off cards of this step, beside that of the game."""
        before, after = self._leads, self._lead()
        self._leads = after
        potential = self.settings.shaping / self.rules.payoff_size
        shaped = potential * (self.settings.gamma * np.where(terminated, 0.0, after) - before)
        return shaped + self.settings.card_reward * (after - before)


def rows_of(columns: Mapping[str, NDArray[Any]]) -> Iterator[dict[str, Any]]:
    """Yield a dictionary of plain Python values for each place of some arrays."""
    for values in zip(*(column.tolist() for column in columns.values()), strict=True):
        yield dict(zip(columns, values, strict=True))


def _mixture(opponent: Opponent) -> tuple[list[Policy], NDArray[np.float64]]:
    """Return the policies of a mixture and their cumulative shares."""
    pairs = list(opponent) if isinstance(opponent, Sequence) and not isinstance(opponent, str) else [(opponent, 1.0)]
    if not pairs or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):
        raise ValueError(f"opponent={opponent!r} is not allowed; give a policy, a name, or (policy, weight) pairs")
    policies = [copy.copy(make_policy(policy)) for policy, _ in pairs]
    return policies, _shares([weight for _, weight in pairs], len(pairs))


def _shares(weights: Sequence[float], count: int) -> NDArray[np.float64]:
    try:
        given = np.array(weights, np.float64)
    except (TypeError, ValueError):
        given = np.empty(0)
    if given.shape != (count,) or not (given >= 0).all() or not 0 < given.sum() < np.inf:
        raise ValueError(f"weights {weights!r} are not allowed; give {count} numbers, 0 or more, not all 0")
    shares: NDArray[np.float64] = given.cumsum() / given.sum()
    shares[given.cumsum() >= given.sum()] = np.inf
    return shares
