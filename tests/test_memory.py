"""How much memory games take."""

from __future__ import annotations

import subprocess
import sys

import pytest

from helpers import ALL_PRESETS
from spite_env import Game, Rules

MILLION = """
import resource
import numpy as np
from spite_env import Game, random_legal_actions
game = Game(num_games=10**6, seed=1, compiled={compiled})
rng = np.random.default_rng(1)
for _ in range(70):
    game.step(random_legal_actions(game.legal_actions(), rng.random(game.num_games)))
    ended = np.flatnonzero(game.terminated | game.truncated)
    if ended.size:
        game.reset(ended)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.parametrize("rules", ALL_PRESETS, ids=str)
def test_a_game_takes_a_kilobyte_or_two(rules: Rules) -> None:
    state = Game(rules, 1000).state
    assert state.nbytes / 1000 <= (1536 if rules.num_cards <= 104 else 2560)


@pytest.mark.soak
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the peak is measured in Linux's kilobytes")
@pytest.mark.parametrize("compiled", [None, False], ids=["as installed", "NumPy"])
def test_a_million_games_step_in_8_gigabytes(compiled: bool | None) -> None:
    code = MILLION.format(compiled=compiled)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) * 1024 < 8e9
