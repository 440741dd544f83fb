"""Self-play in both seats: a stream in which every decision of either player is a sample.

One network plays both seats: it sees each position from the mover's side and values it for the mover. As the game is
zero-sum, what a position is worth to the other player is the negative of that; so an estimate changes its sign exactly
where the mover changes, and keeps it through the several decisions of one turn::

    stream = SelfPlay(512, seed=1)
    for t in range(horizon):
        observation, action_mask = stream.observe(), stream.action_masks()
        actions, values[t] = agent(observation, action_mask)
        rewards[t], ended[t], _, switched[t] = stream.step(actions)
    values[horizon] = agent.value(stream.observe())
    advantages, returns = negamax_gae(rewards, values, ended, switched, gamma=0.995, gae_lambda=0.95)

``experiments/ppo_selfplay.py`` is a whole trainer built on it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spite_env.curriculum import Dealer
from spite_env.game import Game
from spite_env.rewards import check_reward, rewards
from spite_env.rules import Rules
from spite_env.state import Index

#: What :meth:`SelfPlay.results` tells of an ended game (or match). ``winner`` is -1 where nobody won, ``length`` counts
#: the decisions of both players, ``payoff_left`` holds the pay-off cards left to player 0 and 1.
RESULT = np.dtype(
    [
        ("game", np.intp),
        ("winner", np.int8),
        ("truncated", np.bool_),
        ("length", np.int64),
        ("payoff_size", np.uint8),
        ("payoff_left", np.uint8, (2,)),
    ]
)


class Step(NamedTuple):
    """What a decision in every game led to; all arrays are new and of shape ``(num_games,)``.

    Attributes:
        rewards: float32; those of the player who decided. The other player's are the negatives.
        ended: bool; whether the game ended, by its rules or at its limit. The next observation is of a new deal then.
        truncated: bool; whether it ended at its limit of decisions.
        switched: bool; whether the other player is to move in what the decision led to. In a truncated game this speaks
            of the position in which it was cut; where a game ended by its rules, it is false.
    """

    rewards: NDArray[np.float32]
    ended: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    switched: NDArray[np.bool_]


class SelfPlay:
    """A batch of games whose every decision is asked for, and which are dealt anew as they end.

    Args:
        num_games: Games in the batch.
        rules: The variant, or the name of a preset; default ``Rules()``.
        encoding: ``"onehot"`` or ``"compact"``, see :class:`~spite_env.observation.ObservationTable`.
        side_depth: Cards below the top of each side pile that an observation shows one by one.
        reward: ``"win"``, ``"points"`` or ``"margin"``, see :mod:`spite_env.rewards`.
        card_reward: Reward for each pay-off card played, taken from the other player. It may be changed at any time.
        payoff_sizes: Sizes that each game's pay-off piles are drawn from, see :class:`~spite_env.curriculum.Dealer`.
        seed: As for :class:`~spite_env.game.Game`: the games are those of a ``Game`` with this seed and ``autoreset``.

    Attributes:
        game: The :class:`~spite_env.game.Game` behind it.
        dealer: What deals it; ``dealer.set_payoff_sizes`` moves the curriculum on.
        final_observation: uint8 ``(k, features)``: the last views of the mover in the ``k`` games that were truncated
            in the last step, in the games' order; to value them instead of counting a cut game as a draw.

    Raises:
        ValueError: an argument out of range.
    """

    def __init__(
        self,
        num_games: int,
        rules: Rules | str | None = None,
        *,
        encoding: str = "onehot",
        side_depth: int = 3,
        reward: str = "win",
        card_reward: float = 0.0,
        payoff_sizes: Iterable[int] | None = None,
        seed: int = 0,
    ) -> None:
        if not 0 <= card_reward < np.inf:
            raise ValueError(f"card_reward={card_reward!r} is not allowed; it is finite and 0 or more")
        self.game = Game(rules, num_games, seed, encoding=encoding, side_depth=side_depth)
        self.rules = self.game.rules
        self.num_games = self.game.num_games
        self.reward = check_reward(reward)
        self.card_reward = card_reward
        self.dealer = Dealer(self.game, payoff_sizes)
        self._all = np.arange(self.num_games)
        self._lengths = np.zeros(self.num_games, np.int64)
        self._results: list[NDArray[Any]] = []
        self.final_observation = self._no_observation = np.empty((0, self.game.observation.n), np.uint8)
        self.dealer.deal(self._all, seed)

    def observe(self) -> NDArray[np.uint8]:
        """Return what the mover of each game sees, uint8 ``(num_games, features)``, a new array."""
        return self.game.observe()

    def action_masks(self) -> NDArray[np.bool_]:
        """Return the mover's legal actions in each game, bool ``(num_games, actions)``, a new array."""
        return np.array(self.game.legal_actions(), order="C")

    def step(self, actions: ArrayLike) -> Step:
        """Make the mover's decision in every game, and deal ended games anew.

        Args:
            actions: Integers ``(num_games,)``.

        Raises:
            ValueError: an action that isn't legal; nothing is changed then.
        """
        game = self.game
        decided = game.current_player
        game.step(actions)
        self._lengths += 1
        chosen = np.asarray(actions)
        from_payoff = (chosen < game.actions.num_plays) & (chosen % game.actions.num_sources == 0)
        earned = rewards(game, self.reward)[self._all, decided] + self.card_reward * from_payoff
        terminated, truncated = game.terminated, game.truncated
        ended = terminated | truncated
        switched = (game.current_player != decided) & ~terminated
        self.final_observation = self._no_observation
        if ended.any():
            self._end(np.flatnonzero(ended), truncated)
        return Step(earned.astype(np.float32), ended, truncated, switched)

    def results(self) -> NDArray[Any]:
        """Return the games that have ended since the last call (or the start), a structured array of :data:`RESULT`."""
        ended, self._results = self._results, []
        return np.concatenate([np.empty(0, RESULT), *ended])

    def _end(self, games: Index, truncated: NDArray[np.bool_]) -> None:
        """Note how games ended, and deal them anew."""
        game = self.game
        cut = games[truncated[games]]
        if cut.size:
            self.final_observation = game.observe(indices=cut)
        result = np.empty(games.size, RESULT)
        result["game"] = games
        result["winner"] = game.winner[games]
        result["truncated"] = truncated[games]
        result["length"] = self._lengths[games]
        result["payoff_size"] = self.dealer.payoff_sizes[games]
        result["payoff_left"] = game.state.pile_size[:, 0, games].T
        self._results.append(result)
        self.dealer.deal(games)
        self._lengths[games] = 0


def negamax_gae(
    rewards: NDArray[Any],
    values: NDArray[Any],
    ended: NDArray[np.bool_],
    switched: NDArray[np.bool_],
    *,
    gamma: float,
    gae_lambda: float,
    final_values: NDArray[Any] | None = None,
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return generalised advantage estimates for both players' decisions in one sequence.

    With the sign ``s = -1`` where the mover changes and 1 where it stays, a decision's error and advantage are those of
    Schulman et al. (2016, arXiv:1506.02438), with everything that comes later seen from the decider's side::

        delta[t] = rewards[t] + gamma * s[t] * next_value[t] - values[t]
        advantage[t] = delta[t] + gamma * gae_lambda * s[t] * advantage[t + 1]     (the second term only within a game)

    ``next_value`` is ``values[t + 1]``; where a game ended it is that of ``final_values``. The discount counts the
    decisions of both players: a reward ``k`` decisions later, whoever makes them, weighs ``gamma ** k``.

    Args:
        rewards: ``(T, N)``, of the player who decided, see :class:`Step`.
        values: ``(T + 1, N)``, each position's value to its mover; the last row is that after the last decision.
        ended: bool ``(T, N)``, see :class:`Step`.
        switched: bool ``(T, N)``, see :class:`Step`.
        gamma: Discount of a decision.
        gae_lambda: Weight of longer estimates.
        final_values: ``(T, N)``, the values, to the mover, of the positions in which games were truncated, and 0
            elsewhere; None counts a truncated game as a draw.

    Returns:
        The advantages and the returns (advantages + values), float32 ``(T, N)``.

    Raises:
        ValueError: shapes that don't fit together, or flags that are no bool.
    """
    if np.ndim(rewards) != 2:
        raise ValueError(f"rewards have the shape {np.shape(rewards)}; it must be (T, N)")
    length, count = np.shape(rewards)
    ended, switched = (_flags(name, array) for name, array in (("ended", ended), ("switched", switched)))
    others = {"values": values, "ended": ended, "switched": switched, "final_values": final_values}
    for name, array in others.items():
        wanted = (length + (name == "values"), count)
        if array is not None and np.shape(array) != wanted:
            raise ValueError(f"{name} has the shape {np.shape(array)}; with these rewards it must be {wanted}")
    sign = np.where(switched, np.float32(-1), np.float32(1))
    after = np.where(ended, 0 if final_values is None else final_values, values[1:])
    deltas = rewards + gamma * sign * after - values[:-1]
    carried = gamma * gae_lambda * sign * ~ended
    advantages = np.empty((length, count), np.float32)
    advantage = np.zeros(count)
    for t in reversed(range(length)):
        advantage = deltas[t] + carried[t] * advantage
        advantages[t] = advantage
    return advantages, (advantages + values[:-1]).astype(np.float32)


def _flags(name: str, array: Any) -> NDArray[np.bool_]:
    flags = np.asarray(array)
    if flags.dtype != np.bool_:
        raise ValueError(f"{name} are {flags.dtype}; they must be bool")
    return flags
