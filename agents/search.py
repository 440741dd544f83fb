"""Search over sampled worlds: what is hidden is dealt anew many times, and every candidate move is tried in each deal.

For a decision, games that fit what the player knows are sampled (see :mod:`spite_env.information`); in each of them all
candidates are played out with the same shuffles to come, by one policy for both sides, for some turns; who leads then
is estimated. All rollouts of all games are one batch. Candidates are halved from round to round, so that the good
ones get most of the rollouts (sequential halving: Karnin, Koren and Somekh, 2013). The move of the prior policy stands
unless another one is better by more than chance explains.
"""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.playout import rank_sets
from spite_env import streams
from spite_env.game import Game
from spite_env.information import InformationSets
from spite_env.policies import (
    Actions,
    Evaluation,
    GuidedPolicy,
    Mask,
    Policy,
    SeededPolicy,
    make_policy,
    move,
    policy_name,
)
from spite_env.rules import Rules, checked_integer, checked_number
from spite_env.streams import Words

Values = NDArray[np.float64]

#: What is worth how many pay-off cards: a king in the hand, each rank that isn't lacking below the pay-off card,
#: and to be able to reach that card at the start of one's turn; and how steeply a lead raises the chances of winning.
#: They are the coefficients of a logistic regression on the results of 3,000 games of the playout policy with itself.
KING, GAP, REACH, SLOPE = 0.7, 0.4, 0.8, 0.65

#: One of so many candidates gets to the next round.
SHRINK = 3

#: From so many worlds on, a standard error says how far a mean can be trusted.
ENOUGH_WORLDS = 32

#: Less than this is rounding.
NOTHING = 1e-9


class SearchPolicy(GuidedPolicy):
    """Rollouts of candidate moves in sampled worlds.

    Args:
        rollouts: Rollouts for each move, though no fewer than it takes to try every candidate in one world a round.
            The fewer they are, the rarer a move is found to be better than the prior's.
        milliseconds: Time for each move instead: as many rollouts as the last move's speed lets expect. That isn't
            reproducible.
        prior: The policy whose move stands if none is better, or its name.
        rollout: The policy that plays on in a rollout, or its name; ``"playout"`` takes less time, most of all without
            Numba.
        turns: Turns that a rollout looks ahead, the present one included; an even number.
        confidence: Standard errors by which a move must be better than the prior's. With 0 chance often decides; with
            2 most of what the rollouts find is forgone, because a decision has too few of them for that.
    """

    def __init__(
        self,
        rollouts: int = 256,
        milliseconds: int | None = None,
        *,
        prior: str | Policy = "expert",
        rollout: str | Policy = "expert",
        turns: int = 4,
        confidence: float = 1.0,
    ) -> None:
        self.rollouts = checked_integer("rollouts", rollouts, 1)
        self.milliseconds = None if milliseconds is None else checked_integer("milliseconds", milliseconds, 1)
        self.turns = checked_integer("turns", turns, 1)
        if self.turns % 2:
            raise ValueError(f"turns={turns!r} is not allowed; both players get equally many, so it is an even number")
        self.confidence = checked_number("confidence", confidence, 0)
        self._guide, self._rollout = make_policy(prior), make_policy(rollout)
        if isinstance(self._rollout, SeededPolicy):
            raise ValueError(f"rollout={policy_name(rollout)!r} is not allowed; rollouts take no random choices")
        self._speed = 2.0  # rollouts a millisecond
        self.evaluation: Evaluation | None = None
        self._about = (
            f"each move's share of the rollouts, and who was ahead after {turns} turns of them; the move of "
            f"{policy_name(prior)} stands unless another one is clearly better"
        )

    def reset(self, rules: Rules, num_games: int, seed: int) -> None:
        """Begin new games, see :class:`~spite_env.policies.Policy`."""
        super().reset(rules, num_games, seed)
        self._sets = rank_sets(rules)
        self._guide.reset(rules, num_games, seed)
        self._game_rules = rules.replace(match_points=None)  # a match is searched game by game
        self._rollout.reset(self._game_rules, 1, seed)

    def act(
        self, observation: NDArray[np.uint8], action_mask: Mask, infosets: InformationSets | None, indices: Actions
    ) -> Actions:
        """Choose actions, see :class:`~spite_env.policies.Policy`."""
        if infosets is None:
            raise ValueError("the search needs infosets, to sample what is hidden")
        seeds = self._keys(indices)
        view = infosets.sample(1, seeds)
        chosen = self._guide.act(observation, action_mask, infosets, indices)
        candidates = self._candidates(view, action_mask)
        candidates[np.arange(len(chosen)), chosen] = True
        shares, values = np.zeros(candidates.shape), np.full(candidates.shape, np.nan)
        shares[np.arange(len(chosen)), chosen] = 1
        (games,) = np.nonzero(candidates.sum(axis=1) > 1)
        if games.size:
            started = time.perf_counter()
            rollouts = self.rollouts if self.milliseconds is None else max(1, int(self._speed * self.milliseconds))
            bar = _progress_bar(rollouts * games.size)
            chosen[games], shares[games], values[games] = self._best(
                infosets.select(games), seeds[games], candidates[games], chosen[games], rollouts, bar
            )
            bar.close()
            self._speed = rollouts * games.size / (time.perf_counter() - started) / 1000
        self.evaluation = Evaluation(self._about, shares, values, values[np.arange(len(chosen)), chosen])
        return chosen

    def _candidates(self, view: Game, action_mask: Mask) -> Mask:
        """Return the actions worth trying: none where the pay-off card fits, and one of those that come to the same."""
        s, table, rules = view.state, view.actions, view.rules
        candidates = action_mask.copy()
        plays = candidates[:, : table.num_plays].reshape(-1, rules.center_piles, table.num_sources)
        for center in range(1, rules.center_piles):
            plays[:, center] &= (s.center_size[:center] != s.center_size[center]).all(axis=0)[:, None]
        discards = candidates[:, table.num_plays : table.end_turn].reshape(-1, rules.kinds, rules.side_piles)
        empty = s.pile_size[s.player, 1:, np.arange(view.num_games)] == 0
        discards &= ~(empty & (empty.cumsum(axis=1) > 1))[:, None]
        payoff = plays[:, :, 0].any(axis=1)
        candidates[payoff] = False
        return candidates

    def _best(
        self, infosets: InformationSets, seeds: Words, candidates: Mask, prior: Actions, rollouts: int, bar: Any
    ) -> tuple[Actions, Values, Values]:
        """Return the best candidate of each game, and every action's share of the rollouts and its mean value in them.

        An *arm* is a candidate of a game. What counts is by how much it is better than the prior's in the same world.
        """
        arm_game, arm_action = np.nonzero(candidates)
        is_prior = prior[arm_game] == arm_action
        rounds = np.ceil(np.log(candidates.sum(axis=1)) / np.log(SHRINK) - 1e-9).astype(np.intp)
        kept = np.ones(arm_game.size, np.bool_)
        tries, total, squares, worth = np.zeros((4, arm_game.size))
        for number in range(int(rounds.max())):
            arms = np.flatnonzero(kept & (rounds[arm_game] > number))
            game = arm_game[arms]
            counts = np.bincount(game, minlength=len(candidates))
            worlds = np.maximum(rollouts // np.maximum(rounds * counts, 1), 1)[game]
            deals = infosets.sample(int(worlds.max()), streams.combine(seeds, number))
            deals.rules = self._game_rules
            # One row for each arm and each of its game's worlds.
            first = np.cumsum(worlds) - worlds
            row_arm = np.repeat(np.arange(arms.size), worlds)
            row_world = np.arange(row_arm.size) - first[row_arm]
            rows = deals.copy(game[row_arm] * worlds.max() + row_world)
            value = self._play_out(rows, arm_action[arms[row_arm]], bar)
            worth[arms] += np.bincount(row_arm, value)
            first_of_prior = np.zeros(len(candidates), np.intp)
            first_of_prior[game[is_prior[arms]]] = first[is_prior[arms]]
            value -= value[first_of_prior[game[row_arm]] + row_world]
            tries[arms] += worlds
            total[arms] += np.bincount(row_arm, value)
            squares[arms] += np.bincount(row_arm, value**2)
            # The best go on, and the prior's.
            order = arms[np.lexsort((-total[arms] / tries[arms], game))]
            place = np.arange(order.size) - (np.cumsum(counts) - counts)[game]
            kept[order] = (place < np.ceil(counts[game] / SHRINK)) | is_prior[order]
        mean = total / tries
        variance = np.maximum(squares - tries * mean**2, 0) / np.maximum(tries - 1, 1)
        doubt = np.sqrt(variance / tries) * np.maximum(ENOUGH_WORLDS / tries, 1)
        surplus = np.where(is_prior, NOTHING, mean - self.confidence * doubt)
        surplus[~kept | ((tries < 2) & ~is_prior)] = -np.inf
        last = np.cumsum(candidates.sum(axis=1)) - 1
        shares, values = np.zeros(candidates.shape), np.full(candidates.shape, np.nan)
        shares[candidates], values[candidates] = tries, worth / tries
        best = arm_action[np.lexsort((surplus, arm_game))[last]]
        return best, shares / shares.sum(axis=1, keepdims=True), values

    def _play_out(self, game: Game, actions: Actions, bar: Any) -> Values:
        """Make these moves, play on, and return the values for those who were to move."""
        viewer = game.state.player.copy()
        live, turn, mover = np.arange(game.num_games), np.zeros(game.num_games, np.intp), viewer
        game.step(actions)
        while live.size:
            player = game.state.player[live]
            turn += player != mover
            going = ~game.state.over[live] & (turn < self.turns)
            bar.update(live.size - np.count_nonzero(going))
            live, turn, mover = live[going], turn[going], player[going]
            if live.size:
                move(self._rollout, "rollout", game, live)
        return self._value(game, viewer)

    def _value(self, game: Game, viewer: NDArray[np.uint8]) -> Values:
        """Return what games are worth to their viewers, from -1 (lost) to 1 (won)."""
        s = game.state
        value = np.where(s.winner < 0, 0.0, np.where(s.winner == viewer, 1.0, -1.0))
        going = np.flatnonzero(~s.over)
        viewer = viewer[going]
        lead = self._standing(game, viewer, going, REACH) - self._standing(game, 1 - viewer, going, 0.0)
        value[going] = np.tanh(SLOPE * lead / np.sqrt(s.pile_size[:, 0, going].sum(axis=0, dtype=np.float64) + 1))
        return value

    def _standing(self, game: Game, player: NDArray[np.uint8], at: Actions, reach: float) -> Values:
        """Return how well a player stands, in pay-off cards."""
        s, sets = game.state, self._sets
        hand, tops = s.hand[player, :, at].T, s.pile_top[player, :, at].T.astype(np.intp)
        needed = sets.needed[s.center_size[:, at], tops[0]] & ~(sets.of_tally(hand) | sets.of_cards(tops[1:]))
        gap = sets.size[needed].min(axis=0)
        return KING * hand[-1] - GAP * gap + reach * (gap <= hand[-1]) - s.pile_size[player, 0, at]


def _progress_bar(total: int) -> Any:
    """Return a bar that shows up on a terminal after a second; where tqdm is missing, one that never does."""
    try:
        from tqdm import tqdm  # type: ignore[import-untyped]
    except ImportError:
        return SimpleNamespace(update=lambda count: None, close=lambda: None)
    return tqdm(total=total, unit=" rollouts", delay=1, leave=False, disable=None)
