"""The pictures of the README are what the code draws today."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from experiments.picture import DOCS, PACE, film, pictures


@pytest.fixture(scope="module")
def drawn() -> list[str]:
    return pictures()


def test_the_committed_pictures_are_drawn_by_this_code(drawn: list[str]) -> None:
    advice = "run python experiments/picture.py"
    assert (DOCS / "game.svg").read_text() == drawn[0] + "\n", advice
    assert (DOCS / "film.svg").read_text() == film(drawn) + "\n", advice


def test_the_film_shows_all_of_every_picture_one_after_the_other(drawn: list[str]) -> None:
    root = ET.fromstring(film(drawn))
    svg = "{http://www.w3.org/2000/svg}"
    parts = {part.get("id"): part[0] for part in root.iter(f"{svg}g") if part.get("id")}
    frames = root.findall(f"{svg}g[@class='frame']")
    for number, (frame, picture) in enumerate(zip(frames, drawn, strict=True)):
        shown = [parts[use.get("href", "")[1:]] for use in frame]
        wanted = list(ET.fromstring(picture))[1:]  # without the title
        assert [ET.tostring(part).strip() for part in shown] == [ET.tostring(part).strip() for part in wanted]
        assert frame.get("style") == f"animation-delay: {number * PACE:g}s"
    assert len(parts) < sum(len(frame) for frame in frames) / 3  # what stays the same is there once


def test_the_film_is_small(drawn: list[str]) -> None:
    assert len(film(drawn)) < 150_000
    assert len(set(drawn)) == len(drawn)
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg\")", film(drawn))  # nothing is loaded
