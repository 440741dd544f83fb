"""The render modes of the environments, and what each makes of a table.

=============  =========================================================================================
``ansi``       a text
``svg``        a picture as text, see :func:`spite_env.render.vector.svg`
``rgb_array``  a picture as pixels, uint8 ``(height, 600, 3)``; needs pygame-ce, but no display
``human``      the same picture in a window, which never waits; needs pygame-ce
=============  =========================================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium

from spite_env.render import ansi
from spite_env.render.raster import Window, rgb_array
from spite_env.render.table import Table
from spite_env.render.vector import svg

_PICTURES: dict[str, Callable[[Table], Any]] = {"ansi": ansi.board, "svg": svg, "rgb_array": rgb_array}

RENDER_MODES = ("human", *_PICTURES)

#: Decisions shown in a second of film.
RENDER_FPS = 2


class Renderer:
    """Draws an environment's tables in its render mode.

    Args:
        mode: One of :data:`RENDER_MODES`, or None.

    Raises:
        ValueError: another mode.
        ImportError: mode ``"human"``, and pygame is not installed; the message says how to install it.
    """

    def __init__(self, mode: str | None) -> None:
        if mode is not None and mode not in RENDER_MODES:
            raise ValueError(f"render_mode={mode!r} is not allowed; it is None or one of {list(RENDER_MODES)}")
        self.mode = mode
        self._window = Window() if mode == "human" else None

    def render(self, look: Callable[[], Table]) -> Any:
        """Return the picture of what ``look`` returns; None in mode ``"human"``, which shows it, and without a mode.

        Raises:
            ImportError: mode ``"rgb_array"``, and pygame is not installed; the message says how to install it.
            RuntimeError: mode ``"human"``, and there is no display.
        """
        if self.mode is None:
            gymnasium.logger.warn(
                "render() does nothing without a render_mode: pass one, such as 'ansi', when making the environment"
            )
            return None
        if self._window is None:
            return _PICTURES[self.mode](look())
        self._window.show(look())
        return None

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._window is not None:
            self._window.close()
