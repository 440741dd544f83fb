"""The one protocol by which everything is measured: subjects take turns, for about as long each, after a warm-up.

A player is a function that makes at least as many decisions as asked for, and says how many. It chooses every legal
action with the same probability, and starts a new game where one has ended. Seconds are of processor time, all threads
together, on one core: what else the machine does disturbs them little.

This module needs nothing but Python, so that it also runs where neither this library nor NumPy is installed.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(__file__).resolve().parent.parent

Player = Callable[[int], int]
#: Lets a player play, and returns how many decisions it made in how many seconds.
TimedPlayer = Callable[[int], tuple[int, float]]
Choice = TypeVar("Choice")
Name = TypeVar("Name")


@dataclass(frozen=True)
class Subject:
    """Something to measure.

    Attributes:
        make: Returns its player.
        package: The distribution whose version goes with its figures; None is this library.
        makes: What is made at each decision.
        listed: Whether it stands in the table, or only in a plot.
    """

    make: Callable[[], Player]
    package: str | None = None
    makes: str = "mask, observation"
    listed: bool = True


class UnavailableError(Exception):
    """A subject that can't be measured here; the message says why."""


def chooser(seed: int = 1) -> Callable[[Sequence[Choice]], Choice]:
    """Return a function that picks one of some choices at random, at next to no cost."""
    uniform = random.Random(seed).random
    return lambda choices: choices[int(uniform() * len(choices))]


def aec_player(env: Any) -> Player:
    """Return a player of a PettingZoo environment; the last, empty step of each agent is no decision."""
    choose: Callable[[Any], Any] = chooser()
    env.reset(seed=1)

    def play(decisions: int) -> int:
        made = 0
        while made < decisions:
            env.reset()
            while env.agents:
                observation, _, terminated, truncated, _ = env.last()
                if terminated or truncated:
                    env.step(None)
                    continue
                env.step(int(choose(observation["action_mask"].nonzero()[0])))
                made += 1
        return made

    return play


def pin_to_one_core() -> None:
    """Keep this process, and those that it starts, on one core, where the system can."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def measure(players: Mapping[Name, TimedPlayer], repeats: int, seconds: float) -> dict[Name, list[float]]:
    """Return each player's decisions a second, once for each repeat.

    The players take turns, forwards and backwards, so that what else the machine does strikes all alike.

    Args:
        players: By name.
        repeats: Turns of each player.
        seconds: About how long a turn is.
    """
    decisions = {name: warmed_up(play, seconds) for name, play in players.items()}
    rates: dict[Name, list[float]] = {name: [] for name in players}
    for repeat in range(repeats):
        print(f"repeat {repeat + 1} of {repeats}", file=sys.stderr, flush=True)
        for name in list(players)[:: -1 if repeat % 2 else 1]:
            made, elapsed = players[name](decisions[name])
            rates[name].append(made / elapsed)
    return rates


def warmed_up(play: TimedPlayer, seconds: float) -> int:
    """Let a player play until its pace is known, and return how many decisions it makes in so many seconds."""
    made, elapsed = play(1)
    while elapsed < seconds / 2:
        made, elapsed = play(4 * made)
    return max(1, int(made / elapsed * seconds))


def timed(play: Player) -> TimedPlayer:
    """Return a player of this process with its time."""

    def play_timed(decisions: int) -> tuple[int, float]:
        started = time.process_time()
        made = play(decisions)
        return made, time.process_time() - started

    return play_timed


def serve(subject: Subject) -> None:
    """Be the other end of a `Remote`: answer each line of standard input by one of standard output."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print is no answer
    try:
        play = timed(subject.make())
        play(1)
        version = metadata.version(subject.package) if subject.package else ""
        print(json.dumps({"version": version}), file=answers)
    except Exception as error:
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}), file=answers)
        return
    for line in sys.stdin:
        print(json.dumps(play(int(line))), file=answers)


class Remote:
    """A timed player in a process of its own: another interpreter, or another revision of this library.

    Args:
        python: The interpreter.
        module: Run as a script, it calls `serve` with the subject that its argument names.
        name: The subject.
        folder: Where it runs, and where it finds the packages of this repository before it looks elsewhere.

    Attributes:
        version: The version of the subject's package, if it names one.

    Raises:
        UnavailableError: the subject can't be measured; the message says why.
    """

    def __init__(self, python: str, module: str, name: str, folder: Path = ROOT) -> None:
        self._name = name
        path = os.pathsep.join(map(str, (folder, ROOT)))
        try:
            self._process = subprocess.Popen(
                [os.path.abspath(python), "-m", module, name],
                cwd=folder,  # which Python puts before all other places
                env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": "0"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        except OSError as error:
            raise UnavailableError(f"{python} does not run: {error.strerror}") from error
        try:
            first = self._answer()
            if "error" in first:
                raise UnavailableError(first["error"])
        except UnavailableError:
            self.close()
            raise
        self.version: str = first["version"]

    def __call__(self, decisions: int) -> tuple[int, float]:
        """Let it play; its own process takes the time."""
        assert self._process.stdin is not None
        print(decisions, file=self._process.stdin, flush=True)
        made, elapsed = self._answer()
        return made, elapsed

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise UnavailableError(f"the process of {self._name!r} ended with status {self._process.wait()}")
        return json.loads(line)

    def close(self) -> None:
        """Let the process end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def __enter__(self) -> Remote:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
