# mypy: disable-error-code="import-not-found"
"""The peers that are measured beside this library: other environments, mostly of card games, with random legal play.

They live in a virtual environment of their own: ``python -m experiments.peers --install`` fills the one it runs in, and
``python -m experiments.peers NAME`` serves a subject, see `experiments.measuring.Remote`. Counted are the choices of
players, forced ones too. What else a library does takes its time and is not counted:

PettingZoo
    Each agent's last, empty step. ``env`` is what users are told to make; ``raw_env`` has no wrappers.
OpenSpiel
    Chance nodes, the deal among them; in these games all outcomes of one are equally likely. Legal actions are a list,
    and so is the observation, the tensor.
RLCard
    Nothing. Legal actions are the keys of a dictionary, the observation is an array.
PGX
    Nothing: ended games are dealt anew within the step. The batch is one compiled call, choice of the actions included;
    compiling is part of the warm-up.
TextArena
    Drawing, which is a command there, given at the start of a turn and whenever nothing else is left. Observation and
    legal moves are a text; the moves are read from its last line, as an agent has to. It ends no game in which a player
    has neither a card in hand nor a move: such a game is given up. A game is a new environment, because a second reset
    goes on with what was left of the deck. Without wrappers (``-raw``); those for language models make it slower.
"""

from __future__ import annotations

import functools
import json
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from experiments.measuring import Player, Subject, aec_player, chooser, serve

CONSTRAINTS = Path(__file__).with_name("peers_constraints.txt")
REQUIREMENTS = ("pettingzoo[classic]", "open_spiel", "rlcard", "pgx", "textarena")
#: Why what could not be installed could not; beside the interpreter.
FAILURES = Path(sys.prefix, "failures.json")
BATCH = 4096


def pettingzoo(module: str, door: str) -> Player:
    """Return a player of one of PettingZoo's classic games."""
    from importlib import import_module

    return aec_player(getattr(import_module(f"pettingzoo.classic.{module}"), door)())


def open_spiel(name: str) -> Player:
    """Return a player of one of OpenSpiel's games, for two."""
    import pyspiel

    game = pyspiel.load_game(name)
    choose = chooser()

    def play(decisions: int) -> int:
        made = 0
        while made < decisions:
            state = game.new_initial_state()
            while not state.is_terminal():
                if not state.is_chance_node():
                    state.observation_tensor()
                    made += 1
                state.apply_action(choose(state.legal_actions()))
        return made

    return play


def rlcard(name: str) -> Player:
    """Return a player of one of RLCard's games."""
    from rlcard import make

    env = make(name, config={"seed": 1})
    choose = chooser()

    def play(decisions: int) -> int:
        made = 0
        while made < decisions:
            state, _ = env.reset()
            while not env.is_over():
                state, _ = env.step(choose(list(state["legal_actions"])))
                made += 1
        return made

    return play


def pgx(name: str) -> Player:
    """Return a player of a batch of one of PGX's games."""
    import jax
    from pgx import make
    from pgx.experimental.wrappers import auto_reset

    env = make(name)

    def step(state: Any, key: Any) -> Any:
        key, choice, game = jax.random.split(key, 3)
        sums = state.legal_action_mask.cumsum(axis=1)
        actions = (sums <= jax.random.uniform(choice, (BATCH, 1)) * sums[:, -1:]).sum(axis=1)
        return jax.vmap(auto_reset(env.step, env.init))(state, actions, jax.random.split(game, BATCH)), key

    compiled = jax.jit(step)
    key = jax.random.PRNGKey(1)
    state = jax.jit(jax.vmap(env.init))(jax.random.split(key, BATCH))

    def play(decisions: int) -> int:
        nonlocal state, key
        made = 0
        while made < decisions:
            state, key = compiled(state, key)
            made += BATCH
        jax.block_until_ready(state)
        return made

    return play


def textarena() -> Player:
    """Return a player of TextArena's own Spite & Malice."""
    from textarena import make

    choose = chooser()
    random.seed(1)  # of its shuffles

    def play(decisions: int) -> int:
        made = 0
        while made < decisions:
            env = make("SpiteAndMalice-v0-raw")
            env.reset(num_players=2)
            mover, drew, done = None, False, False
            while not done:
                player, messages = env.get_observation()
                moves = messages[-1][1].rpartition("Available Moves: ")[2].split(", ")[1:]  # the first is to draw
                if player != mover or not (moves or drew):
                    mover, drew = player, True
                    done, _ = env.step("[draw]")
                elif moves:
                    drew = False
                    done, _ = env.step(choose(moves))
                    made += 1
                else:
                    break
        return made

    return play


SUBJECTS = {
    "PettingZoo, connect_four_v3.raw_env": Subject(
        functools.partial(pettingzoo, "connect_four_v3", "raw_env"), "pettingzoo"
    ),
    "PettingZoo, connect_four_v3.env": Subject(functools.partial(pettingzoo, "connect_four_v3", "env"), "pettingzoo"),
    "PettingZoo, leduc_holdem_v4.env": Subject(functools.partial(pettingzoo, "leduc_holdem_v4", "env"), "pettingzoo"),
    "PettingZoo, texas_holdem_v4.env": Subject(functools.partial(pettingzoo, "texas_holdem_v4", "env"), "pettingzoo"),
    "OpenSpiel, gin_rummy": Subject(functools.partial(open_spiel, "gin_rummy"), "open_spiel"),
    "OpenSpiel, crazy_eights": Subject(functools.partial(open_spiel, "crazy_eights(players=2)"), "open_spiel"),
    "RLCard, uno": Subject(functools.partial(rlcard, "uno"), "rlcard"),
    "RLCard, gin-rummy": Subject(functools.partial(rlcard, "gin-rummy"), "rlcard"),
    "PGX, connect_four, batch 4096": Subject(functools.partial(pgx, "connect_four"), "pgx"),
    "PGX, leduc_holdem, batch 4096": Subject(functools.partial(pgx, "leduc_holdem"), "pgx"),
    "PGX, sparrow_mahjong, batch 4096": Subject(functools.partial(pgx, "sparrow_mahjong"), "pgx"),
    "TextArena, SpiteAndMalice": Subject(textarena, "textarena", makes="a text"),
}


def install() -> None:
    """Install every peer by itself, so that one that fails costs no other; why it did goes to ``FAILURES``."""
    failures = {}
    for requirement in REQUIREMENTS:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--constraint", str(CONSTRAINTS), requirement]
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            print(done.stderr, file=sys.stderr)
            reasons = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
            failures[requirement.partition("[")[0]] = reasons[0] if reasons else f"pip ended with {done.returncode}"
    FAILURES.write_text(json.dumps(failures, indent=2) + "\n")


def subject(name: str) -> Subject:
    """Return a subject; making it raises what pip said, where its package could not be installed."""
    found = SUBJECTS[name]
    failures = json.loads(FAILURES.read_text()) if FAILURES.exists() else {}
    if found.package not in failures:
        return found
    reason = failures[found.package]

    def make() -> Player:
        raise ImportError(reason)

    return replace(found, make=make)


if __name__ == "__main__":
    if sys.argv[1] == "--install":
        install()
    else:
        serve(subject(sys.argv[1]))
