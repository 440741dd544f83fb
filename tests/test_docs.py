"""The README and the pages in docs/ do what they say: code and commands run, tables are the generated ones."""

from __future__ import annotations

import pkgutil
import re
import shlex
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

import agents
import spite_env
from spite_env import Rules
from spite_env.cli import main

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

#: What a block needs that has one of these words in it.
EXTRAS = {"sb3": "sb3_contrib", "rllib": "ray", "spite-env ": "rich", "tournament": "choix"}


class Block(NamedTuple):
    """A block of code in a page, and the number of lines above it."""

    language: str
    line: int
    code: str


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    found = re.finditer(r"^```(python|bash)\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    return [Block(match[1], text.count("\n", 0, match.start(2)), match[2]) for match in found]


def run_python(page: Path, block: Block) -> None:
    """Run a block of Python by itself; where it fails, the traceback shows its line in the page."""
    exec(compile("\n" * block.line + block.code, page, "exec"), {"__name__": "docs"})


def run_commands(block: Block) -> None:
    """Run those of a block's commands that are the library's own; the others take long."""
    for line in block.code.splitlines():
        command, *arguments = shlex.split(line, comments=True) or [""]
        if command == "spite-env":
            assert main(arguments) == 0, line


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.name)
def test_code_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    missing = set()
    for block in blocks(page):
        lacking = {extra for word, extra in EXTRAS.items() if word in block.code and not find_spec(extra)}
        missing |= lacking
        if block.language == "bash":
            if "rich" not in lacking:
                run_commands(block)
        elif "envs.rllib" not in block.code and not lacking:  # tests/test_rllib.py runs those
            run_python(page, block)
    if missing - {"ray"}:
        pytest.skip(f"some blocks need {', '.join(sorted(missing))}")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_named_scripts_and_targets_exist(page: Path) -> None:
    text = page.read_text()
    for script in re.findall(r"python (experiments/\w+\.py)", text):
        assert (ROOT / script).is_file(), script
    for target in re.findall(r"(?:^|`)make ([a-z-]+)", text, flags=re.MULTILINE):
        assert f"\n{target}: " in (ROOT / "Makefile").read_text(), target


def test_the_readmes_links_lead_to_files() -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", README)
    assert links
    for link in links:
        assert (ROOT / link).exists(), link


def test_the_reference_lists_every_module() -> None:
    listed = re.findall(r"^   ((?:spite_env|agents)\.\S+)$", (ROOT / "docs" / "api.md").read_text(), flags=re.MULTILINE)
    modules = [
        module.name
        for package in (spite_env, agents)
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        if not module.ispkg and "._" not in module.name
    ]
    assert sorted(listed) == sorted(modules)


def test_the_citation_names_this_version() -> None:
    fields = dict(re.findall(r"^([\w-]+): *(.*)$", (ROOT / "CITATION.cff").read_text(), flags=re.MULTILINE))
    assert fields["version"] == spite_env.__version__
    assert {"cff-version", "message", "title", "authors"} <= fields.keys()


def test_the_table_of_rules_is_generated() -> None:
    assert Rules.describe() in README


def test_tested_versions_are_the_pinned_ones() -> None:
    pins = dict(re.findall(r"^(\S+)==([^;\s]+)", (ROOT / "constraints.txt").read_text(), flags=re.MULTILINE))
    packages = {
        "PettingZoo": ["pettingzoo"],
        "Gymnasium": ["gymnasium"],
        "Stable-Baselines3": ["stable-baselines3", "sb3-contrib"],
        "RLlib": ["ray"],
    }
    table = README.partition("tested version |\n")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| ([\w-]+).* (\d\S+) \|$", table, flags=re.MULTILINE)
    assert {name for name, _ in rows} == set(packages)
    for name, version in rows:
        assert {pins[package] for package in packages[name]} == {version}, name


def test_result_tables_are_those_that_the_scripts_wrote() -> None:
    results = re.findall(r"<!-- (experiments/results/\S+\.md) -->\n(.*?)<!-- end -->", README, flags=re.DOTALL)
    assert results
    for path, table in results:
        assert table.strip() == (ROOT / path).read_text().strip(), path
