"""What gets installed: the wheel and what is in it, the library on its own, the command line of a checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("package")  # one worker, so that the wheel is built once

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = Path(sys.executable).parent

PLAY_A_GAME = """
from spite_env import spite_and_malice_v0

env = spite_and_malice_v0.env()
env.reset(seed=7)
returns = dict.fromkeys(env.possible_agents, 0)
for agent in env.agent_iter():
    observation, reward, termination, truncation, info = env.last()
    returns[agent] += reward
    if termination or truncation:
        env.step(None)
    else:
        env.step(env.action_space(agent).sample(observation["action_mask"]))
assert not env.agents
assert sorted(returns.values()) in ([-1, 1], [0, 0]), returns
"""

LIST_HEAVY_MODULES = """
import sys
import spite_env
from spite_env import spite_and_malice_v0

heavy = "choix flask matplotlib pandas pygame ray rich sb3_contrib scipy stable_baselines3 torch waitress"
print(*sorted(set(heavy.split()) & sys.modules.keys()))
"""


def run(*command: str | Path, cwd: Path, status: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command away from the checkout and without what could lead back there."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    result = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    assert result.returncode == status, f"{command}\n{result.stdout}\n{result.stderr}"
    return result


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    [wheel] = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment that holds the wheel and what it requires."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, with_pip=False)
    pip = [sys.executable, "-m", "pip", "--python", folder / "bin" / "python"]
    run(*pip, "install", "--constraint", ROOT / "constraints.txt", wheel, cwd=folder)
    return folder / "bin"


def test_wheel_holds_the_library_alone(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    library = {path for path in (ROOT / "spite_env").rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    metadata = {name for name in names if name.split("/")[0].endswith(".dist-info")}
    assert names - metadata == {path.relative_to(ROOT).as_posix() for path in library}
    assert "spite_env/py.typed" in names


def test_wheel_plays_a_game_on_its_own(installed: Path, tmp_path: Path) -> None:
    run(installed / "python", "-c", PLAY_A_GAME, cwd=tmp_path)


def test_wheel_has_a_command_that_says_where_other_agents_are(installed: Path, tmp_path: Path) -> None:
    duel = [installed / "spite-env", "duel", "--games", "2", "--seed", "1", "--json"]
    assert json.loads(run(*duel, "greedy", "random", cwd=tmp_path).stdout)
    refusal = run(*duel, "hoarder", "random", cwd=tmp_path, status=2).stderr
    assert "checkout" in refusal
    assert "Traceback" not in refusal


def test_import_is_light(tmp_path: Path) -> None:
    assert run(sys.executable, "-c", LIST_HEAVY_MODULES, cwd=tmp_path).stdout.split() == []


def test_command_of_a_checkout_finds_agents_from_any_folder(tmp_path: Path) -> None:
    command = f"{SCRIPTS}/spite-env duel hoarder random --games 4 --seed 1 --json"
    assert json.loads(run(*command.split(), cwd=tmp_path).stdout)
