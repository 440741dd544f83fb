"""Draw the pictures of the README: a game seen from one seat, as a still and as a film of some moves.

    python experiments/picture.py

They are written to ``docs``. Both are SVG: the library's own drawing.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np

from spite_env import Game
from spite_env.policies import make_policy, move
from spite_env.render import describe, svg

DOCS = Path(__file__).parent.parent / "docs"

#: Who plays both seats, the game's seed, and the decisions that the film shows.
PLAYER, SEED, FIRST, LAST = "playout", 7, 60, 84

#: Seconds that each picture of the film stands.
PACE = 1.2

_STYLE = """\
.frame {{ visibility: hidden; animation: show {cycle:g}s step-end infinite }}
@keyframes show {{ 0% {{ visibility: visible }} {part:g}% {{ visibility: hidden }} }}
@media (prefers-reduced-motion) {{ .frame {{ animation: none }} .frame:last-child {{ visibility: visible }} }}"""


def pictures() -> list[str]:
    """Return the game after each of the decisions, as SVG."""
    game, policy, drawn = Game(seed=SEED), make_policy(PLAYER), []
    policy.reset(game.rules, 1, SEED)
    for decision in range(1, LAST + 1):
        player = int(game.current_player[0])
        (action,) = move(policy, PLAYER, game, np.array([0]))
        if decision >= FIRST:
            drawn.append(svg(describe(game, viewer=0, last_move=(player, int(action))), width=400))
    return drawn


def film(drawn: list[str]) -> str:
    """Return pictures of the same size as one SVG that shows one after the other, again and again.

    Every line that some of them share is in there once. Who wants no motion sees the last one.
    """
    opening = drawn[0].partition("\n")[0]
    frames = [picture.splitlines()[2:-1] for picture in drawn]  # without the <svg> element and its title
    numbers = {line: number for number, line in enumerate(dict.fromkeys(itertools.chain(*frames)))}
    style = _STYLE.format(cycle=PACE * len(frames), part=100 / len(frames))
    lines = [opening, "<title>some moves of a game</title>", f"<style>{style}</style>", "<defs>"]
    lines += [f'<g id="part{number}">{line}</g>' for line, number in numbers.items()]
    lines.append("</defs>")
    for place, frame in enumerate(frames):
        parts = "".join(f'<use href="#part{numbers[line]}"/>' for line in frame)
        lines.append(f'<g class="frame" style="animation-delay: {PACE * place:g}s">{parts}</g>')
    return "\n".join([*lines, "</svg>"])


def main() -> None:
    """Write the pictures."""
    drawn = pictures()
    (DOCS / "game.svg").write_text(drawn[0] + "\n")
    (DOCS / "film.svg").write_text(film(drawn) + "\n")


if __name__ == "__main__":
    main()
