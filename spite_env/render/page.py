"""A replay as one HTML page that needs nothing else: no network, no fonts, no other files."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from html import escape
from importlib import resources
from typing import Any

from spite_env.render.table import counted
from spite_env.render.vector import svg
from spite_env.replay import Frame, Replay
from spite_env.rules import Rules

#: Actions that a page shows of an evaluation.
MOST_CHOICES = 8

#: What a page says of the cards that it shows, by perspective.
_SEEN = {
    "0": "what {0} sees",
    "1": "what {1} sees",
    "mover": "what the player to move sees",
    "all": "every card, hidden ones too",
}


def page(replay: Replay, perspective: str = "mover") -> str:
    """Return the page of a replay; this has all its frames made.

    The pictures differ in few of their elements. So the page holds each element once, and of each frame the numbers of
    its elements.

    Args:
        replay: The replay.
        perspective: Whose eyes it is seen with, see :meth:`~spite_env.replay.Frame.table`.
    """
    names = replay.players
    elements: dict[str, int] = {}
    sources: dict[str, int] = {}
    frames = [_frame(frame, perspective, names, elements, sources) for frame in replay]
    title = f"{names[0]} against {names[1]}"
    decisions = counted(sum(frame.last is not None for frame in replay.frames), "decision")
    about = [replay.about, _variant(replay.rules), decisions, f"shown is {_SEEN[perspective].format(*names)}"]
    asked = [frame.evaluation.about for frame in replay.frames if frame.evaluation]
    data = {"names": names, "elements": list(elements), "sources": list(sources), "frames": frames}
    template = resources.files("spite_env.render").joinpath("page.html").read_text("utf-8")
    script = template.rpartition("<script>")[2].partition("</script>")[0]
    values = {
        "title": escape(title),
        "about": escape("; ".join(about)),
        "curve": escape(asked[0] if asked else "as the players to move tell"),
        "script-hash": b64encode(sha256(script.encode()).digest()).decode(),
        "data": _in_script(data),
    }
    return re.sub(r"\{\{([a-z-]+)\}\}", lambda place: values[place[1]], template)


def _frame(
    frame: Frame, perspective: str, names: tuple[str, str], elements: dict[str, int], sources: dict[str, int]
) -> dict[str, Any]:
    """Return what a page holds of a frame; elements and sources that are new get the next numbers."""
    table = frame.table(perspective, names)
    drawing = re.split(r"(?<=>)\s*(?=<)", svg(table))  # between elements; in texts angle brackets are escaped
    opinions = [
        {
            "who": opinion.who,
            "source": sources.setdefault(opinion.about, len(sources)),
            "value": _rounded(opinion.value),
            "choices": [
                [choice.text, _rounded(choice.probability), _rounded(choice.value), choice.taken]
                for choice in opinion.choices
            ],
        }
        for opinion in frame.opinions(names, MOST_CHOICES)
    ]
    last = frame.last and {"player": frame.last.player, "text": frame.last.text, "card": frame.last.card}
    return {
        "drawing": [elements.setdefault(element, len(elements)) for element in drawing],
        "mover": int(frame.game.state.player[0]),
        "headline": table.headline,
        "last": last,
        "chance": _rounded(frame.chance),
        "opinions": opinions,
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _variant(rules: Rules) -> str:
    """Return in which fields the rules are others than the default ones."""
    usual = Rules().to_dict()
    other = [f"{name}={value}" for name, value in rules.to_dict().items() if value != usual[name]]
    return f"rules with {', '.join(other)}" if other else "default rules"


def _in_script(data: Any) -> str:
    """Return JSON that can't end the element it stands in."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
