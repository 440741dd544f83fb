"""A table as pixels, and in a window: drawn by pygame, which is imported at the first picture."""

from __future__ import annotations

import functools
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spite_env.render.layout import LOOKS, WIDTH, Box, Text, layout
from spite_env.render.table import Table
from spite_env.rules import checked_integer

#: Width of a picture in pixels; the height is even too, as films want it.
PIXELS = 600

_WINDOW_PIXELS = 500
_FINER = 2  # pictures are drawn so much larger and then scaled down, for smooth edges
_EM = 16 / 11  # what pygame calls the size of its own font, by the size that others call it
_DASH = 4


def rgb_array(table: Table, width: int = PIXELS) -> NDArray[np.uint8]:
    """Return the picture of a table, uint8 ``(height, width, 3)``, equal for equal tables. It needs no display.

    The height depends on the rules alone.

    Args:
        table: What :func:`~spite_env.render.table.describe` returns.
        width: Width in pixels, from 100 to 4000.

    Raises:
        ValueError: another width.
        ImportError: pygame is not installed; the message says how to install it.
    """
    picture = _surface(table, checked_integer("width", width, 100, 4000))
    pixels = np.frombuffer(_pygame().image.tobytes(picture, "RGB"), np.uint8)
    return pixels.reshape(picture.get_height(), width, 3).copy()


class Window:
    """A window that shows tables and never waits for anybody.

    It opens with the first table. When its user has closed it, it stays closed. A process has one window; whoever draws
    last is seen there.

    Raises:
        ImportError: pygame is not installed; the message says how to install it.
    """

    def __init__(self) -> None:
        _pygame()
        self._open = self._unwanted = False

    def show(self, table: Table) -> None:
        """Show a table.

        Raises:
            RuntimeError: there is no display.
        """
        if self._unwanted:
            return
        pygame = _pygame()
        picture = _surface(table, _WINDOW_PIXELS)
        screen = self._screen(picture.get_size())
        screen.blit(picture, (0, 0))
        pygame.display.flip()
        if any(event.type == pygame.QUIT for event in pygame.event.get()):
            self.close()
            self._unwanted = True

    def close(self) -> None:
        """Close the window, if it is open; the next table opens it again."""
        if self._open:
            self._open = False
            _pygame().display.quit()

    def _screen(self, size: tuple[int, int]) -> Any:
        """Return the surface that the window shows, and open one if there is none of this size."""
        pygame = _pygame()
        try:
            pygame.display.init()
            if pygame.display.get_driver() == "offscreen" and "SDL_VIDEODRIVER" not in os.environ:
                raise pygame.error("none was found")
            screen = pygame.display.get_surface()
            if screen is None or screen.get_size() != size:
                screen = pygame.display.set_mode(size)
                pygame.display.set_caption("Spite & Malice")
        except pygame.error as error:
            pygame.display.quit()
            raise RuntimeError(
                f"render_mode='human' needs a display ({error}); 'ansi', 'svg' and 'rgb_array' do without"
            ) from error
        self._open = True
        return screen


def _pygame() -> Any:
    """Return pygame, or raise ImportError with what installs it."""
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    try:
        import pygame
    except ImportError as error:
        raise ImportError("pixels and windows need pygame-ce: pip install 'spite_env[render]'") from error
    return pygame


def _surface(table: Table, width: int) -> Any:
    pygame, drawing = _pygame(), layout(table)
    scale = _FINER * width / WIDTH
    height = 2 * round(drawing.height * width / WIDTH / 2)
    canvas = pygame.Surface((_FINER * width, _FINER * height), depth=32)
    canvas.fill("white")
    pygame.font.init()
    # Pygame's own font is the same everywhere. It isn't kept: whoever calls pygame.quit() makes fonts useless.
    font = functools.cache(lambda size: pygame.font.Font(None, size))
    for part in drawing.parts:
        for shape in part.shapes:
            if isinstance(shape, Box):
                _draw_box(pygame, canvas, shape, scale)
            else:
                _draw_text(canvas, shape, font(round(_EM * scale * shape.size)), scale)
    return pygame.transform.smoothscale(canvas, (width, height))


def _draw_box(pygame: Any, canvas: Any, box: Box, scale: float) -> None:
    look = LOOKS[box.look]
    rect = pygame.Rect(*(round(scale * number) for number in (box.x, box.y, box.width, box.height)))
    radius, edge = round(scale * box.radius), max(1, round(scale * look.edge_width))
    if look.fill:
        pygame.draw.rect(canvas, look.fill, rect, border_radius=radius)
    if look.edge and look.dashed:
        step = round(_DASH * scale)
        for x in range(rect.left + radius, rect.right - radius, 2 * step):
            length = min(step, rect.right - radius - x)
            for y in (rect.top, rect.bottom):
                canvas.fill(look.edge, (x, y - edge // 2, length, edge))
        for y in range(rect.top + radius, rect.bottom - radius, 2 * step):
            length = min(step, rect.bottom - radius - y)
            for x in (rect.left, rect.right):
                canvas.fill(look.edge, (x - edge // 2, y, edge, length))
    elif look.edge:  # half of it lies outside
        pygame.draw.rect(canvas, look.edge, rect.inflate(edge, edge), edge, radius + edge // 2)


def _draw_text(canvas: Any, text: Text, font: Any, scale: float) -> None:
    picture = font.render(text.text, True, text.color)
    shift = {"start": 0.0, "middle": 0.5, "end": 1.0}[text.anchor] * picture.get_width()
    canvas.blit(picture, (round(scale * text.x - shift), round(scale * text.y) - font.get_ascent()))
