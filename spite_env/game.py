"""The vectorised core: how the game is played, for any number of games at once.

No Python loop runs over games. The state is field-major (see :mod:`spite_env.state`); a decision touches, in each game,
only the few cells that it changes, through flat indices ``row * stride + game``. What happens often is
written once more in :mod:`spite_env.kernels`, for compiling and for batches of one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spite_env import position as positions_module
from spite_env import streams
from spite_env.acceleration import kernels, runs_compiled
from spite_env.actions import ActionTable
from spite_env.arguments import checked_actions, checked_games, checked_payoff_sizes, checked_viewers
from spite_env.observation import ObservationTable
from spite_env.rules import Rules, checked_integer, checked_rules
from spite_env.state import NO_WINNER, Bytes, Index, State
from spite_env.streams import Purpose

#: Called with the kind of an event, the games it happened in, and one array for each detail; see :class:`Game`.
Listener = Callable[..., None]

#: What a discard adds to its first rows.
_DISCARD_CHANGE = np.array([-1, -1, -1, 1, 1]).astype(np.uint8)[:, None]

#: What an uncovered pay-off card adds to its rows.
_REVEAL_CHANGE = np.array([-1, 1, 1]).astype(np.uint8)[:, None]


@functools.cache
def _hand_rows(rules: Rules) -> Index:
    """Return the rows that count a hand card, int ``(3, 2, kinds)`` by player and kind.

    They are the card's count in the hand, the hand's size, and the card's count among the hidden cards.
    """
    player, kind = np.arange(2)[:, None], np.arange(rules.kinds)
    rows = (
        State.row(rules, "hand", player, kind),
        State.row(rules, "hand_size", player),
        State.row(rules, "hidden", kind),
    )
    return np.stack(np.broadcast_arrays(*rows))


@functools.cache
def _reveal_rows(rules: Rules) -> Index:
    """Return the rows that an uncovered pay-off card changes, int ``(3, kinds)``: those of hidden and seen cards."""
    return np.concatenate((State.row(rules, "hidden")[None], State.row(rules, "seen")))


@functools.cache
def _discard_rows(rules: Rules) -> Index:
    """Return the rows that a discard changes, int ``(7, 2, discards)`` by player and discard.

    They are those of the hand card, the card's count in the pile, the pile's size, its top, and its place 0.
    """
    rank, side = np.divmod(np.arange(rules.kinds * rules.side_piles), rules.side_piles)
    player = np.arange(2)[:, None]
    row = functools.partial(State.row, rules)
    rows = np.broadcast_arrays(
        *_hand_rows(rules)[:, :, rank],
        row("side_tally", player, side, rank),
        row("pile_size", player, 1 + side),
        row("pile_top", player, 1 + side),
        row("pile", player, 1 + side, 0),
    )
    return np.stack(rows)


class Game:
    """A batch of games of Spite & Malice.

    Args:
        rules: The variant, or the name of a preset; default ``Rules()``.
        num_games: Games in the batch.
        seed: One integer (game 0 has that seed, game ``i`` a mix of it and ``i``), or one for each game.
        encoding: ``"onehot"`` or ``"compact"``, see :class:`~spite_env.observation.ObservationTable`.
        side_depth: Cards below the top of each side pile that an observation shows one by one.
        autoreset: Whether an ended game is dealt anew within the step that ended it.
        compiled: Whether the core runs compiled, which is faster and does the same. True needs Numba (the extra
            ``fast``); None is True where Numba is installed.

    A game plays exactly as ``spite_and_malice_v0.env`` does after ``reset(seed=its seed)``. An ended game stays as it
    ended, has an all-false mask and ignores its action until it is reset; with ``autoreset`` its flags, its result and
    :attr:`final_observation` stay readable until its next step.

    Attributes:
        actions: The :class:`~spite_env.actions.ActionTable`.
        observation: The :class:`~spite_env.observation.ObservationTable`.
        compiled: Whether the core runs compiled.
        state: The storage, hidden cards included; for reading only.
        listener: None, or a function told of every event as it happens: ``listener(kind, games, **details)`` with the
            kinds ``"play"`` (player, source, card, center), ``"discard"`` (player, card, side), ``"end_turn"``
            (player), ``"recycle"`` (player, center, cards), ``"return"`` (player, tally), ``"draw"`` (player, card),
            ``"end"`` (winner, points, truncated, forfeit; ``state.over`` says whether the match is over too),
            ``"deal"`` () and, for a reset to a position, ``"position"`` (). Copies and pickles have none.

    Raises:
        ValueError: an argument out of range.
        ImportError: ``compiled`` is True, and Numba is not installed.
    """

    def __init__(
        self,
        rules: Rules | str | None = None,
        num_games: int = 1,
        seed: int | Sequence[int] | NDArray[np.integer] = 0,
        *,
        encoding: str = "onehot",
        side_depth: int = 3,
        autoreset: bool = False,
        compiled: bool | None = None,
    ) -> None:
        rules = checked_rules(rules)
        num_games = checked_integer("num_games", num_games, 1)
        self._attach(
            rules,
            State(rules, num_games),
            ActionTable(rules),
            ObservationTable(rules, encoding, side_depth),
            autoreset,
            runs_compiled(compiled),
        )
        self.reset(seed=streams.seeds_for(seed, num_games))

    def _attach(
        self,
        rules: Rules,
        state: State,
        actions: ActionTable,
        observation: ObservationTable,
        autoreset: bool,
        compiled: bool,
    ) -> None:
        self.rules = rules
        self.state = state
        self.actions = actions
        self.observation = observation
        self.autoreset = autoreset
        self.compiled = compiled
        self.num_games = state.num_games
        self.listener: Listener | None = None
        self._all = np.arange(self.num_games)
        self._mask: NDArray[np.bool_] | None = None
        self._ended_games: Index = self._all[:0]
        self._final_views = np.empty((2, observation.n, 0), np.uint8)  # of both players, in the order of _ended_games
        self._deck = np.array(rules.deck, np.uint8)[:, None]
        self._layout = kernels().layout_of(rules)
        self._layout_numbers = kernels().layout_numbers(rules)
        self._hand_rows = _hand_rows(rules)
        self._discard_rows = _discard_rows(rules)
        self._reveal_rows = _reveal_rows(rules)

    @classmethod
    def from_positions(
        cls,
        rules: Rules,
        positions: Sequence[Mapping[str, Any]],
        seed: int | Sequence[int] | NDArray[np.integer] = 0,
        **options: Any,
    ) -> Game:
        """Return a batch with one game for each position (see :mod:`spite_env.position`); ``options`` as for `Game`.

        Raises:
            ValueError: an impossible position; the message says which and why.
        """
        game = cls(rules, len(positions), seed, **options)
        game.reset(seed=seed, positions=positions)
        return game

    @classmethod
    def stacked(cls, batches: Sequence[Game]) -> Game:
        """Return an independent ``Game`` of copies of the games of all these batches, which have the same rules.

        Raises:
            ValueError: no batch, or different rules.
        """
        if len({batch.rules for batch in batches}) != 1:
            raise ValueError(f"{len(batches)} batches can't be stacked: give one or more, all with the same rules")
        first = batches[0]
        stacked = cls.__new__(cls)
        state = State.stacked([batch.state for batch in batches])
        stacked._attach(first.rules, state, first.actions, first.observation, autoreset=False, compiled=first.compiled)
        stacked._clear_result(np.flatnonzero(~state.over))  # what autoreset leaves to be read
        return stacked

    # What a game shows

    @property
    def current_player(self) -> NDArray[np.int64]:
        """The player to move, int64 ``(num_games,)``; in an ended game the last one who could."""
        return self.state.player.astype(np.int64)

    @property
    def terminated(self) -> NDArray[np.bool_]:
        """Whether each game (or match) ended by its rules, bool ``(num_games,)``."""
        return self.state.terminated.copy()

    @property
    def truncated(self) -> NDArray[np.bool_]:
        """Whether each game (or match) was cut at its limit, bool ``(num_games,)``."""
        return self.state.truncated.copy()

    @property
    def winner(self) -> NDArray[np.int8]:
        """The winner of each ended game (or match), int8 ``(num_games,)``; -1 is none."""
        return self.state.winner.copy()

    @property
    def points(self) -> NDArray[np.int16]:
        """Points of an ended game's winner, or the scores of a match, of both players, int16 ``(num_games, 2)``."""
        return self.state.points.T.copy()

    @property
    def final_observation(self) -> Bytes:
        """With ``autoreset``, both players' views of the games that ended in their last step.

        uint8 ``(num_games, 2, features)``; zeros for the other games.
        """
        final = np.zeros((self.num_games, 2, self.observation.n), np.uint8)
        final[self._ended_games] = self._final_views.transpose(2, 0, 1)
        return final

    def legal_actions(self, indices: ArrayLike | None = None) -> NDArray[np.bool_]:
        """Return the mover's legal actions in all games, or in those in ``indices``.

        Returns:
            bool ``(games, n)``; all false where a game has ended. It is stored action by action (its transpose is
            C-contiguous), and read-only: copy it to change it.
        """
        if indices is not None:
            mask = self._legal(checked_games(indices, self.num_games, repeats=True))
            mask.flags.writeable = False
            return mask.T
        if self._mask is None:
            self._mask = self._legal(slice(None))
            self._mask.flags.writeable = False
        return self._mask.T

    def observe(
        self, viewer: ArrayLike | None = None, indices: ArrayLike | None = None, table: ObservationTable | None = None
    ) -> Bytes:
        """Return what a player sees in all games, or in those in ``indices``.

        Args:
            viewer: The player, or one for each game; None is each game's mover.
            indices: The games.
            table: Another layout than the games' own, for the same rules.

        Returns:
            uint8 ``(games, features)``, described by the table; a new array, stored feature by feature (its transpose
            is C-contiguous).

        Raises:
            ValueError: an impossible viewer or index, or a table for other rules.
        """
        games = None if indices is None else checked_games(indices, self.num_games, repeats=True)
        if table is None:
            table = self.observation
        elif table.rules != self.rules:
            raise ValueError(f"the observation table is one for {table.rules}; this game's rules are {self.rules}")
        viewers = checked_viewers(viewer, self.num_games if games is None else games.size)
        if games is None and self.compiled:
            games = self._all
        return table.encode(self.state, viewers, games, self.compiled)

    def _look(self, viewer: int) -> tuple[Bytes, NDArray[np.int8]]:
        """Return a player's view of the only game of the batch, and its legal actions: none unless it is to move.

        Returns:
            uint8 ``(features,)`` and int8 ``(n,)``, new arrays.
        """
        s, table = self.state, self.observation
        if self.compiled:
            view, mask = np.empty(table.n, np.uint8), np.empty(self.actions.n, np.uint8)
            kernels().look(s.padded_cells, s.over, self._layout_numbers, *table._plan, 0, viewer, view, mask)
            return view, mask.view(np.int8)
        legal = self.legal_actions()[0] if s.player[0] == viewer else np.zeros(self.actions.n)
        return self.observe(viewer)[0], legal.astype(np.int8)

    def position(self, index: int) -> dict[str, Any]:
        """Return the whole state of one game, hidden cards included, as a position."""
        return positions_module.read(self.state, index)

    def copy(self, indices: ArrayLike | None = None) -> Game:
        """Return an independent ``Game`` of copies of all games, or of those in ``indices`` (repeats allowed)."""
        games = self._all if indices is None else checked_games(indices, self.num_games, repeats=True)
        copied = self.__class__.__new__(self.__class__)
        copied._attach(
            self.rules, self.state.take(games), self.actions, self.observation, self.autoreset, self.compiled
        )
        if self._ended_games.size:
            places = np.full(self.num_games, -1)
            places[self._ended_games] = np.arange(self._ended_games.size)
            places = places[games]
            copied._ended_games = np.flatnonzero(places >= 0)
            copied._final_views = self._final_views[..., places[places >= 0]]
        return copied

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "listener": None, "_mask": None}

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        self.__dict__.update(attributes)
        self.compiled = self.compiled and kernels().COMPILED  # it may have been pickled elsewhere

    def __copy__(self) -> Game:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Game:
        return self.copy()

    def _repr_html_(self) -> str:
        """Return a picture of the first game for notebooks, from the seat of the player to move."""
        from spite_env.render import describe, svg  # only whoever looks needs what draws

        more = f"<p>game 0 of {self.num_games}</p>" if self.num_games > 1 else ""
        return svg(describe(self)) + more

    # What changes it

    def reset(
        self,
        indices: ArrayLike | None = None,
        seed: int | Sequence[int] | NDArray[np.integer] | None = None,
        positions: Sequence[Mapping[str, Any]] | None = None,
        payoff_sizes: ArrayLike | None = None,
    ) -> None:
        """Deal all games anew, or those in ``indices``.

        Args:
            indices: The games, no one twice.
            seed: As for :class:`Game`, counted over the games reset; None goes to each game's next episode.
            positions: Start these games from positions instead of a deal, one for each game reset.
            payoff_sizes: Deal smaller pay-off piles: sizes from 1 to ``rules.payoff_size``, one for each game reset or
                one for all. What lies below in the usual deal is put under the stock. Not for matches.

        Raises:
            ValueError: an impossible index, seed, position or size; nothing is changed then.
        """
        s = self.state
        games = self._all if indices is None else checked_games(indices, self.num_games)
        if seed is None:
            seeds, episodes = s.seed[games], s.episode[games] + np.uint64(1)
        else:
            seeds, episodes = streams.seeds_for(seed, games.size), np.zeros(games.size, np.uint64)
        parsed = None if positions is None else positions_module.parse(self.rules, positions, games.size)
        sizes = None if payoff_sizes is None else checked_payoff_sizes(payoff_sizes, games.size, self.rules)
        if parsed is not None and sizes is not None:
            raise ValueError("positions and payoff_sizes exclude each other: a position has its own pay-off piles")
        s.seed[games] = seeds
        s.episode[games] = episodes
        self._clear_result(games)
        self._open_episode(games)
        if parsed is not None:
            positions_module.place(s, games, parsed)
            self._tell("position", games)
        else:
            self._deal(games, payoff_sizes=sizes)
        self._mask = None

    def _revisit(self, episodes: ArrayLike, game_numbers: ArrayLike, starters: ArrayLike) -> None:
        """Deal all games as their seeds deal them in given episodes, and there within a match; for tools.

        Args:
            episodes: Each game's episode, integers ``(num_games,)``; 0 is the one that ``reset(seed=...)`` deals.
            game_numbers: Each game's number within its match.
            starters: Who starts the games whose number is not 0; who starts the others is up to the rules.
        """
        s = self.state
        s.episode[:] = episodes
        self._clear_result(self._all)
        self._open_episode(self._all)
        s.game_number[:] = game_numbers
        self._open_game(self._all)
        later = s.game_number > 0
        self._deal(self._all[~later])
        self._deal(self._all[later], np.asarray(starters, np.uint8)[later])
        self._mask = None

    def _branch(self, seeds: streams.Words) -> None:
        """Let all games go on with random numbers from new seeds, and not be dealt anew when they end; for search."""
        s = self.state
        s.seed[:] = seeds
        s.episode[:] = 0
        self._start_streams(self._all)
        self.autoreset = False
        self._clear_result(np.flatnonzero(~s.over))

    def step(self, actions: ArrayLike, indices: ArrayLike | None = None) -> None:
        """Make one decision in every game, or in those in ``indices``.

        Args:
            actions: Integers ``(num_games,)``, or one for each of ``indices``. Those of ended games are ignored.
            indices: The games, no one twice.

        Raises:
            ValueError: an action that is not legal (the first one is named, with its game and what is legal there), or
                arguments of a wrong shape or type; nothing is changed then.
        """
        games = self._all if indices is None else checked_games(indices, self.num_games)
        chosen = checked_actions(actions, games.size)
        s = self.state
        live = ~s.over[games]
        if np.count_nonzero(live) < live.size:
            games, chosen = games[live], chosen[live]
        self._check_legal(games, chosen)
        self._step(games, chosen)

    def _step(self, games: Index, chosen: Index) -> None:
        """Make decisions that are known to be legal, no game twice."""
        if self.autoreset:
            self._clear_result(games[self.state.terminated[games] | self.state.truncated[games]])
        if self.listener is None and self.compiled:
            self._step_compiled(games, chosen)
        elif self.listener is None and self.num_games == games.size == 1:
            kernels().step_alone(self, int(chosen[0]))
        else:
            self._step_together(games, chosen)
        self._settle(games)

    def _step_compiled(self, games: Index, chosen: Index) -> None:
        s = self.state
        outcomes = np.empty(games.size, np.int8)
        if kernels().step(s.padded_cells, s.steps, s.key, s.shuffles, self._layout_numbers, games, chosen, outcomes):
            self._end_compiled(games, outcomes)

    def _step_if_legal(self, action: int) -> bool:
        """Make a decision in the only game of the batch if it is legal, and return whether it is."""
        if not 0 <= action < self.actions.n:
            return False
        if not self.compiled or self.listener is not None or self.autoreset:
            if not self.legal_actions()[0, action]:
                return False
            self._step(self._all, np.array([action]))
            return True
        s = self.state
        batch = (s.padded_cells, s.over, s.steps, s.key, s.shuffles, self._layout_numbers)
        outcome = kernels().step_if_legal(*batch, 0, action)
        if outcome == kernels().ILLEGAL:
            return False
        self._mask = None
        if outcome != kernels().GOES_ON:
            self._end_compiled(self._all, np.array([outcome], np.int8))
        return True

    def _end_compiled(self, games: Index, outcomes: NDArray[np.int8]) -> None:
        decided, cut = np.flatnonzero(outcomes >= NO_WINNER), np.flatnonzero(outcomes == kernels().TRUNCATED)
        if decided.size:
            self._end(games[decided], outcomes[decided])
        if cut.size:
            self._end(games[cut], NO_WINNER, truncated=True)

    def _play_on(
        self,
        games: Index,
        seats: Index,
        plays: Index,
        first: int,
        seeds: streams.Words,
        decisions: streams.Words,
        last_actions: Index,
    ) -> None:
        """Let a :class:`~spite_env.policies.PriorityPolicy` play compiled, until ``seats`` are to move or a game ends.

        The arguments are those of :func:`spite_env.kernels.play_on`; in ``games``, no one twice, others than ``seats``
        are to move.
        """
        if len(seeds) < self.num_games:
            raise ValueError(f"the policy was reset for {len(seeds)} games, and the batch has {self.num_games}")
        s = self.state
        outcomes = np.empty(games.size, np.int8)
        batch = (s.padded_cells, s.steps, s.key, s.shuffles, self._layout_numbers, games)
        if kernels().play_on(*batch, seats, plays, first, seeds, decisions, outcomes, last_actions):
            self._end_compiled(games, outcomes)
        self._mask = None

    def _step_together(self, games: Index, chosen: Index) -> None:
        s = self.state
        steps = s.steps[games] + 1
        s.steps[games] = steps
        at_limit = steps >= self.rules.max_steps
        is_play = chosen < self.actions.num_plays
        passing = games
        if np.count_nonzero(is_play):
            self._play(games[is_play], chosen[is_play])
            passing, chosen = games[~is_play], chosen[~is_play]
        is_end = chosen == self.actions.end_turn
        if np.count_nonzero(is_end):
            self._tell("end_turn", passing[is_end], player=s.player[passing[is_end]])
            self._discard(passing[~is_end], chosen[~is_end])
        else:
            self._discard(passing, chosen)
        self._pass_turn(passing)
        if np.count_nonzero(at_limit):
            late = games[at_limit]
            self._end(late[~s.over[late] & (s.steps[late] > 0)], NO_WINNER, truncated=True)

    def forfeit(self, indices: ArrayLike) -> None:
        """End games (or matches) as lost by the player to move.

        The other player wins, with the cards left in the loser's pay-off pile as points. Ended games stay as they are.

        Raises:
            ValueError: an impossible index.
        """
        games = checked_games(indices, self.num_games)
        games = games[~self.state.over[games]]
        if self.autoreset:
            self._clear_result(games)
        self._end(games, (1 - self.state.player[games]).astype(np.int8), forfeit=True)
        self._settle(games)

    # Checks

    def _check_legal(self, games: Index, chosen: Index) -> None:
        if self._mask is None and games.size < self.num_games:
            mask, columns = self._legal(games), np.arange(games.size)
        else:
            mask, columns = self.legal_actions().T, games
        if self.compiled:
            first = kernels().first_illegal(mask.view(np.uint8), columns, chosen)
        else:
            exists = chosen.view(np.uintp) < self.actions.n
            legal = exists & mask[np.where(exists, chosen, 0), columns]
            first = -1 if np.count_nonzero(legal) == legal.size else int(np.argmin(legal))
        if first >= 0:
            raise ValueError(self._refusal(int(chosen[first]), int(games[first])))

    def _refusal(self, action: int, game: int) -> str:
        table = self.actions
        exists = 0 <= action < table.n
        name = f"{action} ({table.text(action)})" if exists else f"{action}"
        known = "" if exists else f" (actions are 0 to {table.n - 1})"
        legal = np.flatnonzero(self._legal(np.array([game]))[:, 0])
        listed = ", ".join(f"{number} ({table.text(number)})" for number in legal.tolist())
        return f"action {name} is not legal in game {game}{known}; the legal actions are {listed}"

    # The rules

    def _legal(self, at: slice | Index) -> NDArray[np.bool_]:
        """Return the legal actions of some games, bool ``(n, games)``."""
        s, rules, table = self.state, self.rules, self.actions
        if self.compiled:
            games = self._all if isinstance(at, slice) else at
            mask = np.empty((table.n, games.size), np.bool_)
            kernels().legal_actions(s.padded_cells, s.over, self._layout_numbers, games, mask.view(np.uint8))
            return mask
        if isinstance(at, slice) and self.num_games == 1:
            return kernels().legal_actions_alone(self)
        player = s.player[at]
        held = self._of_player("hand", at, player) > 0
        tops = self._of_player("pile_top", at, player)
        need = s.center_size[:, at] + np.uint8(1)
        over = s.over[at]
        count = player.size
        mask = np.empty((table.n, count), np.bool_)
        plays = mask[: table.num_plays].reshape(rules.center_piles, table.num_sources, count)
        np.equal(tops, need[:, None], out=plays[:, : rules.side_piles + 1])
        plays[:, : rules.side_piles + 1] |= tops == rules.kinds
        natural = s.center_size[:, at].astype(np.intp) * count + np.arange(count)
        plays[:, -2] = held.reshape(-1)[natural]
        plays[:, -1] = held[-1]
        mask[table.num_plays : table.end_turn].reshape(rules.kinds, rules.side_piles, count)[:] = held[:, None]
        mask[table.end_turn] = ~held.any(axis=0)
        if np.count_nonzero(over):
            mask[:, over] = False
        return mask

    def _play(self, games: Index, actions: Index) -> None:
        """Play a card to a centre pile; then, in this order: win check, recycling, mid-turn refill."""
        if not games.size:
            return
        s, rules, n = self.state, self.rules, self.state.stride
        piles = rules.side_piles + 1
        center, source = np.divmod(actions, self.actions.num_sources)
        player = s.player[games].astype(np.intp)
        height_at = center * n + games
        height = s.flat["center_size"][height_at].astype(np.intp)

        from_pile = source < piles
        card = np.where(source == piles, height + 1, rules.kinds).astype(np.uint8)
        top_at = ((player * piles + source) * n + games)[from_pile]
        card[from_pile] = s.flat["pile_top"][top_at]
        self._tell("play", games, player=player, source=source, card=card, center=center)

        top = self._uncover(top_at, games[from_pile])
        revealed = (source[from_pile] == 0) & (top > 0)
        reveal_at = self._reveal_rows[:, top[revealed] - 1] * n + games[from_pile][revealed]
        s.flat_cells[reveal_at] += _REVEAL_CHANGE
        from_side = from_pile & (source > 0)
        tally_at = (player * rules.side_piles + source - 1) * rules.kinds + card - 1
        s.flat["side_tally"][(tally_at * n + games)[from_side]] -= 1
        from_hand = ~from_pile
        self._take_from_hand(games[from_hand], player[from_hand], card[from_hand])

        s.flat["center_size"][height_at] = height + 1
        s.flat["center_wild"][(center * rules.ranks + height) * n + games] = card == rules.kinds

        won = s.flat["pile_size"][player * piles * n + games] == 0
        complete = (height + 1 == rules.ranks) & ~won
        if np.count_nonzero(complete):
            self._recycle(games[complete], center[complete])
        if rules.refill_mid_turn:
            empty = (s.flat["hand_size"][player * n + games] == 0) & ~won
            self._refill(games[empty])
        if np.count_nonzero(won):
            self._end(games[won], player[won])

    def _uncover(self, top_at: Index, games: Index) -> Bytes:
        """Take the top card off piles, given by their flat index, and return the new tops."""
        s, n = self.state, self.state.stride
        size = s.flat["pile_size"][top_at] - np.uint8(1)
        s.flat["pile_size"][top_at] = size
        pile = top_at // n
        place = pile * s.pile.shape[2] + size
        top = s.flat["pile"][place * n + games]
        s.flat["pile_top"][top_at] = top
        return top

    def _discard(self, games: Index, actions: Index) -> None:
        if not games.size:
            return
        s = self.state
        number = actions - self.actions.num_plays
        player = s.player[games].astype(np.intp)
        rank = number // self.rules.side_piles
        card = (rank + 1).astype(np.uint8)
        self._tell("discard", games, player=player, card=card, side=number - rank * self.rules.side_piles)
        at = self._discard_rows[:, player, number]
        at *= s.stride
        at += games
        cells = s.flat_cells
        counts = cells[at[:5]]
        counts += _DISCARD_CHANGE
        cells[at[:5]] = counts
        cells[at[5]] = card
        cells[at[6] + counts[4].astype(np.intp) * s.stride] = card

    def _take_from_hand(self, games: Index, player: Index, card: Bytes) -> None:
        at = self._hand_rows[:, player, card - 1] * self.state.stride + games
        self.state.flat_cells[at] -= 1

    def _pass_turn(self, games: Index) -> None:
        if games.size:
            self.state.player[games] ^= 1
            self._refill(games)

    def _refill(self, games: Index) -> None:
        """Refill the mover's hand, returning set-aside cards first where the stock is short; then the stock check."""
        if not games.size:
            return
        s, rules, n = self.state, self.rules, self.state.stride
        player = s.player[games].astype(np.intp)
        size_at = player * n + games
        lack = np.uint8(rules.hand_size) - s.flat["hand_size"][size_at]
        if rules.recycle == "set_aside":
            returning = (lack > s.stock_size[games]) & (s.set_aside_size[games] > 0)
            if np.count_nonzero(returning):
                self._return(games[returning])
        stock = s.stock_size[games]
        drawn = np.minimum(lack, stock)
        self._draw(games, player, stock, drawn)
        stock -= drawn
        s.stock_size[games] = stock
        s.flat["hand_size"][size_at] += drawn
        ended = drawn < lack
        if rules.stock_end == "empty":
            ended |= (stock == 0) & (s.set_aside_size[games] == 0)
        if np.count_nonzero(ended):
            self._end(games[ended], NO_WINNER)

    def _draw(self, games: Index, player: Index, stock: Bytes, drawn: Bytes) -> None:
        """Move the top ``drawn`` of ``stock`` cards to hands, one a game at a time."""
        s, n = self.state, self.state.stride
        stock_at = stock.astype(np.intp) * n + games
        hand_at = (player * self.rules.kinds - 1) * n + games
        for earlier in range(int(drawn.max())):
            drawing = drawn > earlier
            if np.count_nonzero(drawing) < drawing.size:
                games, player, drawn = games[drawing], player[drawing], drawn[drawing]
                stock_at, hand_at = stock_at[drawing], hand_at[drawing]
            stock_at -= n
            card = s.flat["stock"][stock_at]
            s.flat["hand"][hand_at + card.astype(np.intp) * n] += 1
            self._tell("draw", games, player=player, card=card)

    def _recycle(self, games: Index, center: Index) -> None:
        """Clear completed centre piles; their kings are kings again."""
        s, rules = self.state, self.rules
        heights = np.arange(rules.ranks)
        rows = center[:, None] * rules.ranks + heights
        wild_at = rows * s.stride + games[:, None]
        wild = s.flat["center_wild"][wild_at]
        cards = np.where(wild, rules.kinds, heights + 1).astype(np.uint8)
        s.flat["center_wild"][wild_at] = 0
        s.flat["center_size"][center * s.stride + games] = 0
        tally = np.concatenate((1 - wild, wild.sum(axis=1, keepdims=True, dtype=np.uint8)), axis=1).T
        if rules.recycle == "set_aside":
            s.set_aside[:, games] += tally
            s.set_aside_size[games] += rules.ranks
        elif rules.recycle == "bottom":
            self._hide(games, tally)
            self._put_under_stock(games, streams.shuffle(cards, self._shuffle_keys(games)))
        else:
            self._hide(games, tally)
            old = s.stock_size[games]
            most = int(old.max())
            # The stock comes last: where a card stands decides its random number, and other games decide `most`.
            pool = np.concatenate((cards, s.stock[:most, games].T), axis=1)
            valid = np.ones(pool.shape, np.bool_)
            valid[:, rules.ranks :] = np.arange(most) < old[:, None]
            shuffled = streams.shuffle(pool, self._shuffle_keys(games), valid)
            s.stock[: pool.shape[1], games] = shuffled.T
            s.stock_size[games] = old + np.uint8(rules.ranks)
        self._tell("recycle", games, player=s.player[games], center=center, cards=cards)

    def _return(self, games: Index) -> None:
        """Shuffle the set-aside cards and put them under the stock."""
        s = self.state
        tally = s.set_aside[:, games]
        last = np.cumsum(tally, axis=0)
        places = np.arange(int(last[-1].max()))
        cards = 1 + (last[:, :, None] <= places).sum(axis=0, dtype=np.uint8)
        valid = places < last[-1][:, None]
        self._put_under_stock(games, streams.shuffle(cards, self._shuffle_keys(games), valid), last[-1])
        self._hide(games, tally)
        s.set_aside[:, games] = 0
        s.set_aside_size[games] = 0
        self._tell("return", games, player=s.player[games], tally=tally)

    def _hide(self, games: Index, tally: Bytes) -> None:
        """Count cards as hidden again; what both players have seen of the deck until then is noted."""
        s = self.state
        known = self._deck - s.hidden[:, games] + s.hand[:, :, games]
        s.seen[:, :, games] = np.maximum(s.seen[:, :, games], known)
        s.hidden[:, games] += tally

    def _put_under_stock(self, games: Index, cards: Bytes, count: NDArray[Any] | None = None) -> None:
        """Put the first ``count`` (default: all) of each row of ``cards`` under the stock."""
        s = self.state
        added = np.full(games.size, cards.shape[1]) if count is None else count.astype(np.intp)
        size = s.stock_size[games] + added
        place = np.arange(int(size.max()))[:, None]
        moved_at = np.maximum(place - added, 0) * s.stride + games
        below = cards.T[np.minimum(place[:, 0], cards.shape[1] - 1)]
        s.stock[: place.size, games] = np.where(place < added, below, s.flat["stock"][moved_at])
        s.stock_size[games] = size

    def _shuffle_keys(self, games: Index) -> streams.Words:
        s = self.state
        occurrence = s.shuffles[games]
        s.shuffles[games] = occurrence + 1
        return streams.combine(streams.combine(s.key[games], Purpose.SHUFFLE), occurrence.astype(np.uint64))

    def _end(self, games: Index, winner: NDArray[Any] | int, *, truncated: bool = False, forfeit: bool = False) -> None:
        """End games, and with them their episodes; where a match goes on, deal its next game."""
        s, rules = self.state, self.rules
        winner = np.broadcast_to(np.asarray(winner, np.int8), games.shape)
        left = s.pile_size[1 - winner.astype(np.intp) * (winner != NO_WINNER), 0, games]
        points = left * (winner == np.arange(2)[:, None])
        if rules.match_points is None or forfeit:
            s.points[:, games] = points
            s.winner[games] = winner
            s.truncated[games] = truncated
            s.terminated[games] = not truncated
            s.over[games] = True
            self._tell("end", games, winner=winner, points=points, truncated=truncated, forfeit=forfeit)
            return
        s.scores[:, games] += points
        s.game_number[games] += 1
        decided = (s.scores[:, games] >= rules.match_points).any(axis=0)
        limit = ~decided & (s.game_number[games] >= rules.max_games)
        s.winner[games] = np.where(decided, winner, NO_WINNER)
        s.points[:, games] = np.where(decided | limit, s.scores[:, games], 0)
        s.terminated[games] = decided
        s.truncated[games] = limit
        s.over[games] = decided | limit
        self._tell("end", games, winner=winner, points=points, truncated=truncated, forfeit=forfeit)
        going_on = games[~(decided | limit)]
        if going_on.size:
            self._open_game(going_on)
            self._deal(going_on, 1 - s.starter[going_on])

    def _settle(self, games: Index) -> None:
        """Finish a change of some games: deal anew what it ended, if that is asked for."""
        self._mask = None
        if not self.autoreset:
            return
        s = self.state
        ended = games[s.over[games]]
        if ended.size:
            views = [self.observation.encode(s, viewer, ended, self.compiled).T for viewer in (0, 1)]
            self._ended_games = np.concatenate((self._ended_games, ended))
            self._final_views = np.concatenate((self._final_views, views), axis=-1)
            s.episode[ended] += np.uint64(1)
            s.over[ended] = False
            self._open_episode(ended)
            self._deal(ended)

    def _clear_result(self, games: Index) -> None:
        s = self.state
        for flag in (s.terminated, s.truncated, s.over):
            flag[games] = False
        s.winner[games] = NO_WINNER
        s.points[:, games] = 0
        if games.size and self._ended_games.size:
            kept = np.isin(self._ended_games, games, invert=True, kind="table")
            self._ended_games, self._final_views = self._ended_games[kept], self._final_views[..., kept]

    def _open_episode(self, games: Index) -> None:
        self.state.game_number[games] = 0
        self.state.scores[:, games] = 0
        self._open_game(games)

    def _open_game(self, games: Index) -> None:
        """Start the random numbers and the counters of a game."""
        self._start_streams(games)
        self.state.steps[games] = 0

    def _start_streams(self, games: Index) -> None:
        s = self.state
        if self.compiled:
            kernels().start_streams(s.seed, s.episode, s.game_number, s.key, s.shuffles, games)
            return
        episode_key = streams.combine(s.seed[games], s.episode[games])
        s.key[games] = streams.combine(episode_key, s.game_number[games].astype(np.uint64))
        s.shuffles[games] = 0

    def _deal(self, games: Index, starter: Bytes | None = None, payoff_sizes: Index | None = None) -> None:
        """Deal games; without a given ``starter`` the rules name who starts."""
        if not self.compiled:
            self._deal_together(games, starter)
        else:
            s = self.state
            starters = np.full(games.size, -1, np.int8) if starter is None else starter.astype(np.int8)
            by_rules = kernels().BY_RULES.get(self.rules.first_player, self.rules.first_player)
            kernels().deal(s.padded_cells, s.key, self._layout_numbers, games, starters, by_rules)
        if payoff_sizes is None or not games.size:
            self._tell("deal", games)
        else:
            self._shorten_payoff(games, payoff_sizes)
            self._tell("position", games)

    def _deal_together(self, games: Index, starter: Bytes | None) -> None:
        s, rules = self.state, self.rules
        payoff, hand = rules.payoff_size, rules.hand_size
        cards, named = self._shuffle_decks(games, deal_ties_anew=starter is None)
        starter = named if starter is None else starter
        piles = cards[:, : 2 * payoff].reshape(-1, 2, payoff)
        hands = cards[:, 2 * payoff : 2 * (payoff + hand)].reshape(-1, hand)
        stock = cards[:, 2 * (payoff + hand) :]
        # One bin for each kind of card in each hand; cards count from 1.
        bins = hands + np.arange(-1, (len(hands) - 1) * rules.kinds, rules.kinds)[:, None]
        held = np.bincount(bins.reshape(-1), minlength=len(hands) * rules.kinds)
        s.clear_table(games)
        s.player[games] = starter
        s.starter[games] = starter
        s.hand[:, :, games] = held.reshape(-1, 2, rules.kinds).transpose(1, 2, 0)
        s.hand_size[:, games] = hand
        s.pile[:, 0, 1 : payoff + 1, games] = piles
        s.pile_size[:, 0, games] = payoff
        tops = piles[:, :, -1].T
        s.pile_top[:, 0, games] = tops
        s.hidden[:, games] = self._deck
        for top in tops:
            s.hidden[top - 1, games] -= 1
        s.stock[: stock.shape[1], games] = stock.T
        s.stock_size[games] = stock.shape[1]

    def _shorten_payoff(self, games: Index, sizes: Index) -> None:
        """Leave the top ``sizes`` cards of pay-off piles just dealt; bury the others."""
        s, most, rows = self.state, self.rules.payoff_size, np.arange(games.size)[:, None]
        piles = s.pile[:, 0, 1 : most + 1, games]
        buried = (most - sizes)[:, None]
        kept = np.minimum(buried + np.arange(most), most - 1)
        s.pile[:, 0, 1 : most + 1, games] = piles[rows[:, :, None], np.arange(2)[:, None], kept[:, None]]
        s.pile_size[:, 0, games] = sizes
        place = np.arange(2 * most)
        player = (place >= buried).astype(np.intp)
        below = piles[rows, player, np.minimum(place - player * buried, most - 1)]
        self._put_under_stock(games, below, 2 * buried[:, 0])

    def _shuffle_decks(self, games: Index, *, deal_ties_anew: bool) -> tuple[Bytes, Bytes]:
        """Return shuffled decks, uint8 ``(games, num_cards)``, and who starts by the rules."""
        s, rules = self.state, self.rules
        keys = streams.combine(s.key[games], Purpose.DEAL)
        deck = np.repeat(np.arange(1, rules.kinds + 1, dtype=np.uint8), rules.deck)
        cards = streams.shuffle(deck, streams.combine(keys, 0))
        if rules.first_player == "higher_payoff":
            tops = [rules.payoff_size - 1, 2 * rules.payoff_size - 1]
            attempt = 0
            while deal_ties_anew and (tied := np.flatnonzero(cards[:, tops[0]] == cards[:, tops[1]])).size:
                attempt += 1
                cards[tied] = streams.shuffle(deck, streams.combine(keys[tied], attempt))
            starter = (cards[:, tops[1]] > cards[:, tops[0]]).astype(np.uint8)
        elif rules.first_player == "random":
            coin = streams.words(streams.combine(s.key[games], Purpose.STARTER), 1)[:, 0]
            starter = (coin >> np.uint64(63)).astype(np.uint8)
        else:
            starter = np.full(games.size, rules.first_player, np.uint8)
        return cards, starter

    # Helpers

    def _of_player(self, field: str, at: slice | Index, player: Bytes) -> Bytes:
        """Select each mover's part of a field of shape (2, rows, games), in all games or in some."""
        first, second = getattr(self.state, field)
        if isinstance(at, slice):
            return first ^ ((first ^ second) & (np.uint8(0) - player))  # without a branch
        rows, n = len(first), self.state.stride
        return self.state.flat[field][np.arange(rows)[:, None] * n + (player.astype(np.intp) * (rows * n) + at)]

    def _tell(self, kind: str, games: Index, **details: Any) -> None:
        if self.listener is not None:
            self.listener(kind, games, **details)
