"""What several tests share: layouts, ways to play, a log of events, counts of cards, and statistics."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from math import sqrt
from typing import Any

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray

from spite_env import ActionTable, Game, Rules
from spite_env.rules import PRESETS

Position = dict[str, Any]

ALL_PRESETS = tuple(Rules.preset(name) for name in PRESETS)

#: A match in which games of every outcome are frequent.
SHORT_MATCH = Rules(payoff_size=4, match_points=9, max_games=5, first_player="random", recycle="set_aside")

PLAYERS = (0, 1)

#: A browser, if there is one, and what has it open no window and ask no network.
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
CHROMIUM_OPTIONS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


# -- hand-made games -------------------------------------------------------------------------------------------------


def lay(
    rules: Rules,
    *,
    mover: int = 0,
    payoff: str | None = None,
    hand: str = "",
    sides: Sequence[str] = (),
    opponent_payoff: str | None = None,
    opponent_hand: str = "",
    opponent_sides: Sequence[str] = (),
    centers: Sequence[str] = (),
    stock: str | None = None,
    set_aside: str = "",
    scores: tuple[int, int] | None = None,
) -> Position:
    """Return a position from the mover's side. Piles are strings, bottom to top; those left out are empty.

    Pay-off piles that are left out hold one card, a nine if there is one. Without a stock all cards that are not named
    are in it. ``scores`` are the mover's and the opponent's.
    """

    def padded(piles: Sequence[str], count: int) -> list[list[str]]:
        return [list(pile) for pile in [*piles, *[""] * (count - len(piles))]]

    def seated(own: Any, other: Any) -> list[Any]:
        return [own, other] if mover == 0 else [other, own]

    any_card = rules.characters[min(8, rules.ranks - 1)]
    position = {
        "payoff": seated(list(payoff or any_card), list(opponent_payoff or any_card)),
        "hands": seated(list(hand), list(opponent_hand)),
        "sides": seated(padded(sides, rules.side_piles), padded(opponent_sides, rules.side_piles)),
        "centers": padded(centers, rules.center_piles),
        "set_aside": list(set_aside),
        "turn": mover,
    }
    if stock is not None:
        position["stock"] = list(stock)
    if scores is not None:
        position["scores"] = seated(*scores)
    return position


def start(rules: Rules, *, seed: int = 0, **layout: Any) -> Game:
    """Return one game that starts from a layout, see :func:`lay`."""
    return Game.from_positions(rules, [lay(rules, **layout)], seed)


def do(game: Game, *texts: str) -> Position:
    """Play actions by their texts in a batch of one, and return the position after them.

    All ways to run the core must do the same: on NumPy's arrays, a batch of one in plain Python, and compiled.
    """
    for text in texts:
        action = game.actions.parse(text)
        alone, twins = game.copy(), game.copy([0, 0])
        ways = [game, alone, twins, alone.copy(), twins.copy()]
        for batch in ways[1:3]:
            batch.compiled = False
        for batch in ways:
            batch.step([action] * batch.num_games)
        assert all(snapshot(batch, batch.num_games - 1) == snapshot(game, 0) for batch in ways)
    return game.position(0)


def legal_texts(game: Game, index: int = 0) -> set[str]:
    """Return the texts of all legal actions of a game, which must not depend on the way that the core runs."""
    for same in (game.copy([index]), game.copy([index, index])):
        np.testing.assert_array_equal(same.legal_actions()[0], game.legal_actions()[index])
        same = same.copy()
        same.compiled = False
        np.testing.assert_array_equal(same.legal_actions()[0], game.legal_actions()[index])
    return {game.actions.text(number) for number in np.flatnonzero(game.legal_actions()[index]).tolist()}


def heap(rules: Rules, height: int) -> str:
    """Return a centre pile of natural cards."""
    return rules.characters[:height]


def over(game: Game) -> NDArray[np.bool_]:
    return game.terminated | game.truncated


# -- exhaustive search -------------------------------------------------------------------------------------------------


def moves(game: Game) -> Iterator[tuple[int, Game]]:
    """Yield each legal action of a single game, and the game after it."""
    for action in np.flatnonzero(game.legal_actions()[0]).tolist():
        after = game.copy()
        after.step([action])
        yield action, after


def turn_key(game: Game) -> str:
    """Return the same text for positions that differ in nothing but the order of equal piles of one owner."""
    position = game.position(0)
    for piles in (position["centers"], *position["sides"]):
        piles.sort()
    return json.dumps(position)


def wins_this_turn(game: Game, seen: set[str] | None = None) -> bool:
    """Return whether the mover can win by plays alone."""
    seen = set() if seen is None else seen
    mover = game.current_player[0]
    for action, after in moves(game):
        if action < game.actions.num_plays:
            if over(after)[0]:
                return bool(after.winner[0] == mover)
            name = turn_key(after)
            if name not in seen:
                seen.add(name)
                if wins_this_turn(after, seen):
                    return True
    return False


# -- random games ----------------------------------------------------------------------------------------------------


class Players:
    """Random ways to play, one for each game and seat, that together reach every corner of the rules.

    Some play anything, some whatever fits, some nothing but the pay-off card, some try to get rid of their hand, some
    change their mind at every decision.
    """

    def __init__(self, rules: Rules, num_games: int, seed: int, only: str | None = None) -> None:
        table = ActionTable(rules)
        self.rng = np.random.default_rng(seed)
        liking = {name: np.zeros(table.n) for name in ("any", "fitting", "hoarding", "emptying")}
        for number in range(table.n):
            source, _, _ = table.text(number).partition(">")
            is_play = number < table.num_plays
            liking["fitting"][number] = 2 * (source == "payoff") + is_play
            liking["hoarding"][number] = 2 * (source == "payoff") + (not is_play)
            liking["emptying"][number] = 2 * (source in ("hand", "wild")) + is_play
        self.liking = np.stack(list(liking.values()))
        if only is None:
            self.style = self.rng.integers(len(liking) + 1, size=(num_games, 2))
        else:
            self.style = np.full((num_games, 2), list(liking).index(only))

    def choose(self, game: Game) -> NDArray[np.intp]:
        """Return an action for every game, legal where the game goes on."""
        mask = game.legal_actions()
        styles = self.style[np.arange(game.num_games), game.current_player]
        moody = self.rng.integers(len(self.liking), size=game.num_games)
        styles = np.where(styles == len(self.liking), moody, styles)
        return np.where(mask, self.rng.random(mask.shape) + self.liking[styles], -1).argmax(axis=1)


def played_games(rules: Rules, num_games: int, seed: int, most: int, **options: Any) -> Game:
    """Return games that go on, each after a random number of decisions up to ``most``."""
    game = Game(rules, num_games, seed, autoreset=True, **options)
    players = Players(rules, num_games, seed)
    decisions = players.rng.integers(most + 1, size=num_games)
    for done in range(most):
        (moving,) = np.nonzero(decisions > done)
        game.step(players.choose(game)[moving], moving)
    game.autoreset = False
    return game


def random_position(rules: Rules, rng: random.Random) -> Position:
    """Return any position at all, also one that no play reaches."""
    deck = Counter(dict(zip(rules.characters, rules.deck, strict=True)))
    centers: list[list[str]] = []
    for _ in range(rules.center_piles):
        pile: list[str] = []
        for natural in rules.characters[: rng.randrange(rules.ranks)]:
            card = rng.choice([natural, natural, "K"])
            if not deck[card] or deck.total() <= 2:
                break
            deck[card] -= 1
            pile.append(card)
        centers.append(pile)
    cards = list(deck.elements())
    rng.shuffle(cards)

    def take(most: int, least: int = 0, keep: int = 0) -> list[str]:
        count = max(min(rng.randint(least, max(least, most)), len(cards) - keep), least)
        return [cards.pop() for _ in range(count)]

    payoff = [take(rules.payoff_size, least=1, keep=1), take(rules.payoff_size, least=1)]
    hands = [take(rules.hand_size) for _ in PLAYERS]
    sides = [[take(rng.choice([0, 3, 12])) for _ in range(rules.side_piles)] for _ in PLAYERS]
    set_aside = sorted(take(2 * rules.ranks), key=rules.characters.index) if rules.recycle == "set_aside" else []
    most_points = 0 if rules.match_points is None else rules.match_points - 1
    return {
        "payoff": payoff,
        "hands": [sorted(hand, key=rules.characters.index) for hand in hands],
        "sides": sides,
        "centers": centers,
        "stock": take(rng.choice([0, 1, rules.hand_size, len(cards), len(cards)])),
        "set_aside": set_aside,
        "turn": rng.randrange(2),
        "scores": [rng.randint(0, most_points) for _ in PLAYERS],
    }


def rehidden(position: Position, viewer: int, rng: random.Random) -> Position:
    """Return a position with all that a viewer can't see dealt anew, every pile as large as before."""
    other_hand = position["hands"][1 - viewer]
    hidden = [*other_hand, *position["stock"], *(card for pile in position["payoff"] for card in pile[:-1])]
    rng.shuffle(hidden)

    def take(count: int) -> list[str]:
        return [hidden.pop() for _ in range(count)]

    hands = list(position["hands"])
    hands[1 - viewer] = take(len(other_hand))
    payoff = [take(len(pile) - 1) + pile[-1:] for pile in position["payoff"]]
    return position | {"hands": hands, "payoff": payoff, "stock": take(len(position["stock"]))}


@st.composite
def any_rules(draw: st.DrawFn) -> Rules:
    """Draw rules in which every field takes all kinds of values."""
    ranks, wilds = draw(st.integers(1, 12)), draw(st.integers(0, 18))
    copies = draw(st.integers(0, min(12, (255 - wilds) // ranks)))
    cards = ranks * copies + wilds
    assume(cards > 4)
    payoff_size = draw(st.integers(1, min(8, (cards - 1) // 2 - 1)))
    hand_size = draw(st.integers(1, min(8, (cards - 1) // 2 - payoff_size)))
    kinds = (copies > 0) * ranks + (wilds > 0)
    starts = [0, 1, "random", *["higher_payoff"] * (kinds > 1)]
    return Rules(
        ranks=ranks,
        copies=copies,
        wilds=wilds,
        payoff_size=payoff_size,
        hand_size=hand_size,
        side_piles=draw(st.integers(1, 5)),
        center_piles=draw(st.integers(1, 5)),
        refill_mid_turn=draw(st.booleans()),
        recycle=draw(st.sampled_from(["shuffle", "bottom", "set_aside"])),
        stock_end=draw(st.sampled_from(["empty", "short"])),
        first_player=draw(st.sampled_from(starts)),
        match_points=draw(st.none() | st.integers(1, min(20, 256 - cards))),
        max_games=draw(st.integers(1, 4)),
        max_steps=draw(st.integers(1, 60) | st.integers(100, 300)),
    )


# -- looking at games ------------------------------------------------------------------------------------------------


class EventLog:
    """Listens to a batch: what happened in each game, in the words of a game record, and what chance decided.

    Attributes:
        events: The events of each game that goes on.
        finished: For each game of the batch its ended games: outcome, winner, points and events.
        outcomes: What each shuffle and deal came to, oldest first, until someone takes it out.
    """

    def __init__(self, game: Game) -> None:
        self.game = game
        self.characters = game.rules.characters
        self.events: list[list[dict[str, Any]]] = [[] for _ in range(game.num_games)]
        self.finished: list[list[dict[str, Any]]] = [[] for _ in range(game.num_games)]
        self.outcomes: list[deque[tuple[str, Any]]] = [deque() for _ in range(game.num_games)]
        game.listener = self

    def __call__(self, kind: str, games: NDArray[np.intp], **details: Any) -> None:
        for row, index in enumerate(games.tolist()):
            getattr(self, f"_{kind}")(index, row, **details)

    def _add(self, index: int, kind: str, player: int, **details: Any) -> None:
        self.events[index].append({"type": kind, "player": int(player), **details})

    def _card(self, card: int) -> str:
        return self.characters[card - 1]

    def _play(self, index: int, row: int, *, player: Any, source: Any, card: Any, center: Any) -> None:
        sides = self.game.rules.side_piles
        where = ("payoff", *(f"side:{side}" for side in range(sides)), "hand", "hand")[source[row]]
        self._add(index, "play", player[row], source=where, card=self._card(card[row]), center=int(center[row]))

    def _discard(self, index: int, row: int, *, player: Any, card: Any, side: Any) -> None:
        self._add(index, "discard", player[row], card=self._card(card[row]), side=int(side[row]))

    def _end_turn(self, index: int, row: int, *, player: Any) -> None:
        self._add(index, "end_turn", player[row])

    def _recycle(self, index: int, row: int, *, player: Any, center: Any, cards: Any) -> None:
        stock = self.game.position(index)["stock"]
        pile = [self._card(card) for card in cards[row]]
        self._add(index, "recycle", player[row], center=int(center[row]), cards=pile, stock=stock)
        if self.game.rules.recycle != "set_aside":
            self.outcomes[index].append(("recycle", stock))

    def _return(self, index: int, row: int, *, player: Any, tally: Any) -> None:
        stock = self.game.position(index)["stock"]
        cards = [card for card, count in zip(self.characters, tally[:, row], strict=True) for _ in range(count)]
        self._add(index, "return", player[row], cards=cards, stock=stock)
        self.outcomes[index].append(("return", stock))

    def _draw(self, index: int, row: int, *, player: Any, card: Any) -> None:
        events = self.events[index]
        if not events or events[-1]["type"] != "draw":
            self._add(index, "draw", player[row], cards=[])
        assert events[-1]["player"] == player[row]
        events[-1]["cards"].append(self._card(card[row]))

    def _end(self, index: int, row: int, *, winner: Any, points: Any, truncated: bool, forfeit: bool) -> None:
        won = winner[row] >= 0
        outcome = "forfeit" if forfeit else "win" if won else "truncated" if truncated else "draw"
        self.finished[index].append(
            {
                "outcome": outcome,
                "winner": int(winner[row]) if won else None,
                "points": points[:, row].tolist(),
                "events": self.events[index],
            }
        )
        self.events[index] = []

    def _position(self, index: int, row: int) -> None:
        self.events[index] = []

    def _deal(self, index: int, row: int) -> None:
        position = self.game.position(index)
        self.outcomes[index].append(("deal", {key: position[key] for key in ("payoff", "hands", "stock")}))


def deck_of(rules: Rules) -> Counter[str]:
    return Counter(dict(zip(rules.characters, rules.deck, strict=True)))


def cards_of(position: Position) -> Counter[str]:
    """Count all cards of a position."""
    sides = [pile for piles in position["sides"] for pile in piles]
    piles = [*position["payoff"], *position["hands"], *sides, *position["centers"]]
    return Counter(card for pile in [*piles, position["stock"], position.get("set_aside", [])] for card in pile)


def count_cards(game: Game) -> NDArray[np.intp]:
    """Count the cards of each kind in each game from the piles themselves, ``(kinds, num_games)``."""
    s, kinds = game.state, game.rules.kinds
    piles, stock = s.pile[:, :, : int(s.pile_size.max()) + 1], s.stock[: int(s.stock_size.max())]
    below_top = np.arange(piles.shape[2])[:, None] <= s.pile_size[:, :, None]
    in_stock = np.arange(stock.shape[0])[:, None] < s.stock_size
    heights = np.arange(1, game.rules.ranks + 1)[:, None]
    center = np.where(s.center_wild, kinds, heights) * (heights <= s.center_size[:, None])
    games = np.arange(game.num_games)
    counts = np.zeros((kinds + 1) * game.num_games, np.intp)
    for cards in (piles * below_top, stock * in_stock, center):
        counts += np.bincount((cards.astype(np.intp) * game.num_games + games).ravel(), minlength=counts.size)
    return counts.reshape(kinds + 1, -1)[1:] + s.hand.sum(axis=0, dtype=np.intp) + s.set_aside


def check_bookkeeping(game: Game) -> None:
    """Assert that what the storage keeps twice agrees."""
    s = game.state
    kinds = np.arange(1, game.rules.kinds + 1)[:, None, None]
    tops = np.take_along_axis(s.pile, s.pile_size[:, :, None].astype(np.intp), axis=2)[:, :, 0]
    np.testing.assert_array_equal(s.pile_top, tops)
    assert not s.pile[:, :, 0].any(), "there is a card under a pile"
    np.testing.assert_array_equal(s.hand_size, s.hand.sum(axis=1))
    np.testing.assert_array_equal(s.set_aside_size, s.set_aside.sum(axis=0))
    in_pile = np.arange(s.pile.shape[2])[:, None] <= s.pile_size[:, :, None]
    sides = (s.pile * in_pile)[:, 1:]
    np.testing.assert_array_equal(s.side_tally, (sides[:, :, None] == kinds).sum(axis=3))
    below_top = np.arange(s.pile.shape[2])[:, None] < s.pile_size[:, 0, None]
    in_stock = np.arange(s.stock.shape[0])[:, None] < s.stock_size
    face_down = ((s.pile[:, 0] * below_top)[:, None] == kinds).sum(axis=(0, 2))
    in_stock_by_kind = ((s.stock * in_stock)[None] == kinds).sum(axis=1)
    np.testing.assert_array_equal(s.hidden, face_down + in_stock_by_kind + s.hand.sum(axis=0))
    # What lies face down has been seen by nobody.
    assert (face_down <= np.array(game.rules.deck)[:, None] - s.seen).all()
    above = np.arange(game.rules.ranks)[:, None] >= s.center_size[:, None]
    assert not (s.center_wild * above).any(), "there is a king above a centre pile"


def snapshot(game: Game, index: int) -> dict[str, Any]:
    """Return all that a game shows, and what its future depends on."""
    wide = ("seed", "episode", "game_number", "shuffles", "steps", "starter")
    return {
        "position": game.position(index),
        "mask": game.legal_actions()[index].tolist(),
        "views": [game.observe(viewer)[index].tolist() for viewer in PLAYERS],
        "current_player": int(game.current_player[index]),
        "result": [array[index].tolist() for array in (game.terminated, game.truncated, game.winner, game.points)],
        "seen": game.state.seen[..., index].tolist(),
        **{name: int(getattr(game.state, name)[index]) for name in wide},
    }


def storage(game: Game) -> list[bytes]:
    """Return every bit of a batch's state."""
    _, (_, cells, wide) = game.state.__reduce__()
    return [cells.tobytes(), *(array.tobytes() for array in wide.values()), game.final_observation.tobytes()]


# -- statistics ------------------------------------------------------------------------------------------------------


def chi_square(observed: ArrayLike, expected: ArrayLike) -> float:
    observed, expected = np.asarray(observed, np.float64), np.asarray(expected, np.float64)
    return float(((observed - expected) ** 2 / expected).sum())


def chi_square_limit(freedom: int, deviations: float = 5.0) -> float:
    """Return what a chi-square statistic exceeds as rarely as a normal one exceeds ``deviations`` (Wilson-Hilferty)."""
    ninth = 2 / (9 * freedom)
    return freedom * (1 - ninth + deviations * sqrt(ninth)) ** 3


def check_remedy(module: str, missing: str, extra: str) -> None:
    """Assert that a module which needs what is missing names the extra to install."""
    code = f"import sys; sys.modules[{missing!r}] = None; import {module}"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "ImportError" in result.stderr
    assert f"pip install 'spite_env[{extra}]'" in result.stderr
