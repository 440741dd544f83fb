"""A file is whole, or as it was."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from spite_env.files import whole_file


def write_and_fail(path: Path) -> None:
    with whole_file(path) as file:
        file.write(b"new")
        raise KeyError


def test_a_file_takes_its_name_once_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"old")
    with pytest.raises(KeyError):
        write_and_fail(path)
    assert path.read_bytes() == b"old"
    with whole_file(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]
    other = tmp_path / "other"
    other.write_bytes(b"")
    assert path.stat().st_mode == other.stat().st_mode


def test_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("target")
    with whole_file(tmp_path / "link") as file:
        file.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"new"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
def test_what_is_no_plain_file_is_written_into(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with whole_file(pipe) as file:
        file.write(b"new")
    assert os.read(reader, 10) == b"new"
    os.close(reader)
    assert pipe.is_fifo()


@pytest.mark.parametrize(("name", "message"), [("", "no file's name"), ("none/out", "is no folder"), (".", "a folder")])
def test_a_place_that_takes_no_file_is_refused(
    name: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OSError, match=message), whole_file(name):
        pass
    assert not list(tmp_path.iterdir())
