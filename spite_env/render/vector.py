"""A table as SVG: text, equal for equal tables, that needs nothing else to be shown."""

from __future__ import annotations

from html import escape

from spite_env.render.layout import LOOKS, Box, Drawing, Part, Shape, layout
from spite_env.render.table import Table

#: Fonts that are found on most screens, all with upright figures.
_FONTS = "Verdana, 'DejaVu Sans', sans-serif"


def svg(table: Table, width: int | None = None) -> str:
    """Return the picture of a table as an ``<svg>`` element.

    Every pile and hand card is a ``<g>`` with its place in ``data-place`` (see :mod:`spite_env.render.table`) and its
    marks among its classes, for a page to build on. Paint is given by attributes, so that CSS overrides
    it, and nothing has an ``id``, so that one page can hold several pictures.

    Args:
        table: What :func:`~spite_env.render.table.describe` returns.
        width: Width in pixels; None fills the page's column, up to 600 pixels.
    """
    drawing = layout(table)
    size = f'width="{width}"' if width else 'style="width: 100%; max-width: 600px"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {drawing.width} {drawing.height}" {size} role="img" '
        f'font-family="{_FONTS}" class="spite-table">\n{_body(drawing)}\n</svg>'
    )


def _body(drawing: Drawing) -> str:
    return "\n".join([f"<title>{escape(drawing.title)}</title>", *map(_part, drawing.parts)])


def _part(part: Part) -> str:
    shapes = "".join(map(_shape, part.shapes))
    if not part.place:
        return f"<g>{shapes}</g>"
    classes = " ".join(("place", *part.marks))
    title = f"<title>{escape(part.title)}</title>"
    return f'<g class="{classes}" data-place="{part.place}">{title}{shapes}</g>'


def _shape(shape: Shape) -> str:
    if isinstance(shape, Box):
        look = LOOKS[shape.look]
        edge = f' stroke="{look.edge}" stroke-width="{look.edge_width:g}"' if look.edge else ""
        dashes = ' stroke-dasharray="4"' if look.dashed else ""
        return (
            f'<rect class="{shape.look}" x="{shape.x:g}" y="{shape.y:g}" width="{shape.width:g}" '
            f'height="{shape.height:g}" rx="{shape.radius:g}" fill="{look.fill or "none"}"{edge}{dashes}/>'
        )
    weight = ' font-weight="bold"' if shape.bold else ""
    return (
        f'<text x="{shape.x:g}" y="{shape.y:g}" font-size="{shape.size:g}" fill="{shape.color}" '
        f'text-anchor="{shape.anchor}"{weight}>{escape(shape.text)}</text>'
    )
