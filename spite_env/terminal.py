"""A terminal as a screen that is drawn anew, and its keys one by one."""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from spite_env.render.ansi import show

#: What keys send that are no characters, after the escape character or, on Windows, after a prefix.
_NAMES = {
    **dict.fromkeys(("[C", "OC", "M"), "right"),
    **dict.fromkeys(("[D", "OD", "K"), "left"),
    **dict.fromkeys(("[H", "OH", "[1~", "[7~", "G"), "home"),
    **dict.fromkeys(("[F", "OF", "[4~", "[8~", "O"), "end"),
    "": "escape",
}

if sys.platform == "win32":
    import msvcrt

    class Keys:
        """The keys of this terminal."""

        def read(self, seconds: float) -> str:
            """Wait for a key, for so long at most; return its character or name, or an empty text if there was none."""
            end = time.monotonic() + seconds
            while not msvcrt.kbhit():
                if time.monotonic() >= end:
                    return ""
                time.sleep(0.01)
            key = msvcrt.getwch()
            if key in "\x00\xe0":
                return _NAMES.get(msvcrt.getwch(), "unknown")
            return "escape" if key == "\x1b" else key

    @contextmanager
    def keys() -> Iterator[Keys]:
        """Have keys read one by one, without an echo."""
        yield Keys()

else:
    import select
    import termios
    import tty

    class Keys:
        """The keys of this terminal."""

        def __init__(self) -> None:
            self._pressed: list[str] = []

        def read(self, seconds: float) -> str:
            """Wait for a key, for so long at most; return its character or name, or an empty text if there was none."""
            if not self._pressed:
                file = sys.stdin.fileno()
                if not select.select([file], [], [], seconds)[0]:
                    return ""
                sent = os.read(file, 1024).decode(errors="replace")
                found = re.findall(r"\x1b((?:[[O][0-9;]*[A-Za-z~])?)|([^\x1b])", sent)
                self._pressed = [key or _NAMES.get(code, "unknown") for code, key in found] or ["end of input"]
            return self._pressed.pop(0)

    @contextmanager
    def keys() -> Iterator[Keys]:
        """Have keys read one by one, without an echo."""
        file = sys.stdin.fileno()
        before = termios.tcgetattr(file)
        try:
            tty.setcbreak(file)
            yield Keys()
        finally:
            termios.tcsetattr(file, termios.TCSADRAIN, before)


def is_terminal() -> bool:
    """Return whether somebody sits before this process: it reads keys and writes to a screen."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def size() -> tuple[int, int]:
    """Return the columns and lines that a screen can show."""
    columns, lines = shutil.get_terminal_size()
    return columns, max(1, lines - 1)  # the cursor stands in the last one


@contextmanager
def screen() -> Iterator[None]:
    """Have a screen of its own, which leaves what was there before as it was."""
    if sys.platform == "win32":
        os.system("")  # has the console understand what follows
    print("\x1b[?1049h\x1b[?25l", end="")
    try:
        yield
    finally:
        print("\x1b[?25h\x1b[?1049l", end="", flush=True)


def draw(lines: Sequence[str]) -> None:
    """Show lines from the top of the screen on, as far as it reaches."""
    columns, most = size()
    show("\x1b[H" + "\n".join(f"{line[:columns]}\x1b[K" for line in lines[:most]) + "\x1b[J")
