"""What of this library is measured: the core at several batch sizes, and the doors into it.

Choosing the action is counted, and so is dealing ended games anew. Where the opponent, who plays at random too, is part
of the environment, only the learner's decisions are counted, unless the subject's name says otherwise.

Run as a script it serves one of these subjects, see `experiments.measuring.Remote`.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

import gymnasium
import numpy as np

from experiments.measuring import Player, Subject, aec_player, chooser, serve
from spite_env import Game, Rules, random_legal_actions
from spite_env.observation import ObservationTable

#: Steps over which the deals of `staggered` games are spread: about as many as a game of random play lasts.
STAGES = 64
BATCHES = tuple(4**power for power in range(9))
LISTED_BATCHES = (1, 256, 4096, 65_536)
#: Limits on the length of games, by which the share of games that end in each step is varied; they divide STAGES.
LENGTHS = (1, 2, 4, 8, 16, 32)


class CorePlayer:
    """Plays a batch of games in the core.

    Args:
        batch: Games.
        encoding: Of the observation that is made at each decision; None makes none.
        max_steps: Decisions after which a game is truncated.
        compiled: As for :class:`~spite_env.game.Game`.
        autoreset: As for :class:`~spite_env.game.Game`; without, ended games are reset by a call.

    Attributes:
        made: Decisions so far.
        ended: Games that have ended so far.
    """

    def __init__(
        self,
        batch: int,
        encoding: str | None = None,
        max_steps: int = Rules().max_steps,
        compiled: bool | None = None,
        autoreset: bool = False,
    ) -> None:
        self.game = staggered(max_steps).copy(np.arange(batch) % staggered(max_steps).num_games)
        self.game.autoreset = autoreset
        if compiled is not None:
            self.game.compiled = compiled
        self.table = None if encoding is None else ObservationTable(self.game.rules, encoding)
        self.rng = np.random.default_rng(1)
        self.made = self.ended = 0

    def __call__(self, decisions: int) -> int:
        """Make at least so many decisions, and return how many."""
        game = self.game
        made = 0
        while made < decisions:
            if self.table is not None:
                game.observe(table=self.table)
            ended = step_at_random(game, self.rng)
            if ended.size and not game.autoreset:
                game.reset(ended)
            self.ended += ended.size
            made += game.num_games
        self.made += made
        return made


def step_at_random(game: Game, rng: np.random.Generator) -> np.ndarray[Any, np.dtype[np.intp]]:
    """Make a random legal decision in every game, and return which games have ended."""
    game.step(random_legal_actions(game.legal_actions(), rng.random(game.num_games)))
    return np.flatnonzero(game.terminated | game.truncated)


@functools.cache
def staggered(max_steps: int) -> Game:
    """Return games that are as far on as games are at any moment of a long run, so that in each step some end."""
    game = Game(Rules(max_steps=max_steps), 16 * STAGES, seed=1)
    rng = np.random.default_rng(1)
    stage = np.arange(game.num_games) % STAGES
    for step in range(STAGES):
        ended = step_at_random(game, rng)
        game.reset(np.union1d(ended, np.flatnonzero(stage == step)))
    return game


def aec(door: str) -> Player:
    """Return a player of one AEC game."""
    from spite_env import spite_and_malice_v0

    return aec_player(getattr(spite_and_malice_v0, door)())


def single_seat(both: bool = False) -> Player:
    """Return a player of one game of a learner in Gymnasium; ``both`` counts the opponent's decisions, too."""
    import spite_env.envs.gym  # noqa: F401

    env = gymnasium.make("SpiteAndMalice-v0", opponent="random", disable_env_checker=True)
    choose = chooser()
    env.reset(seed=1)
    state = env.unwrapped.games.game.state  # type: ignore[attr-defined]

    def play(decisions: int) -> int:
        made = 0
        while made < decisions:
            _, info = env.reset()
            over = False
            while not over:
                _, _, terminated, truncated, info = env.step(choose(info["action_mask"].nonzero()[0]))
                over = terminated or truncated
            made += int(state.steps[0]) if both else info["length"]
        return made

    return play


def learners(env: Any) -> Player:
    """Return a player of a batch of games of learners, in Gymnasium or in Stable-Baselines3."""
    rng = np.random.default_rng(1)
    env.reset()

    def play(decisions: int) -> int:
        made = 0
        while made < decisions:
            env.step(random_legal_actions(env.action_masks(), rng.random(env.num_envs)))
            made += env.num_envs
        return made

    play(STAGES * env.num_envs)
    return play


def vector() -> Player:
    """Return a player of Gymnasium's batch."""
    from spite_env.envs.gym import SpiteVectorEnv

    return learners(SpiteVectorEnv(1024, "random"))


def sb3() -> Player:
    """Return a player of Stable-Baselines3's batch."""
    from spite_env.envs.sb3 import SpiteVecEnv

    return learners(SpiteVecEnv(1024, "random", seed=1))


def curve(encoding: str | None) -> dict[int, str]:
    """Return the names of the core's subjects by batch size."""
    ending = {None: "", "compact": ", compact observation", "onehot": ", one-hot observation"}[encoding]
    return {batch: f"core, batch {batch}{ending}" for batch in BATCHES}


def by_length() -> dict[int, str]:
    """Return the names of the core's subjects by the length at which games are truncated."""
    return {length: f"core, batch 4096, games of {length}" for length in LENGTHS}


CORE = {
    name: Subject(
        functools.partial(CorePlayer, batch, encoding),
        makes="mask" if encoding is None else "mask, observation",
        listed=batch in LISTED_BATCHES if encoding is None else batch == 4096,
    )
    for encoding in (None, "compact", "onehot")
    for batch, name in curve(encoding).items()
}
SHORT = {
    name: Subject(functools.partial(CorePlayer, 4096, None, length), makes="mask", listed=False)
    for length, name in by_length().items()
}
NUMPY = {
    f"core, batch {batch}, not compiled": Subject(functools.partial(CorePlayer, batch, compiled=False), makes="mask")
    for batch in (1, 256, 4096)
}
AUTORESET = {"core, batch 4096, autoreset": Subject(functools.partial(CorePlayer, 4096, autoreset=True), makes="mask")}
DOORS = {
    "AEC raw_env": Subject(functools.partial(aec, "raw_env")),
    "AEC env": Subject(functools.partial(aec, "env")),
    "Gymnasium, one game": Subject(single_seat),
    "Gymnasium, one game, both seats": Subject(functools.partial(single_seat, both=True)),
    "Gymnasium, batch 1024": Subject(vector),
    "Stable-Baselines3, batch 1024": Subject(sb3),
}
SUBJECTS = {**CORE, **AUTORESET, **NUMPY, **SHORT, **DOORS}


if __name__ == "__main__":
    serve(SUBJECTS[sys.argv[1]])
