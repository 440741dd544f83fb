"""Spite and Malice in plain Python, one game or match at a time: slow, obvious, and independent of the library.

It is a statement of the rules to test a faster implementation against. It owns no randomness: every chance outcome
is asked of the caller, and checked to be a possible one. Cards are the characters `A 2..9 T J Q K`, K being the wild
king. All piles run bottom to top.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

NATURALS = "A23456789TJQ"
KING = "K"
ORDER = NATURALS + KING


class Move(NamedTuple):
    """One numbered action."""

    kind: str  # "play", "discard" or "end_turn"
    what: str = ""  # a play's source: "payoff", "side:0", "hand" (the natural card), "wild"; or the card to discard
    pile: int = 0  # the centre or side pile it goes to


class Reference:
    """A game, or a match of games where `match_points` is set, played by action numbers.

    `chance(kind, cards)` supplies every random outcome:

    - "recycle", the cards being shuffled: the whole new stock, after a centre pile was completed;
    - "return", the cards set aside: the whole new stock, these cards having been shuffled and put under the old one;
    - "deal", nothing: the next game of a match, `{"payoff": [..2 piles], "hands": [..2 hands], "stock": [..]}`.

    An impossible answer is an `AssertionError`. A game starts from a full `deal`, `first_player` to move, or in the
    middle of a turn from a `position`; `first_player` says there who started that game, so the other starts the next.
    """

    def __init__(
        self,
        rules: dict[str, Any],
        chance: Callable[[str, list[str]], Any],
        *,
        deal: dict[str, Any] | None = None,
        first_player: int = 0,
        position: dict[str, Any] | None = None,
    ) -> None:
        assert (deal is None) != (position is None), "give either a deal or a position"
        assert first_player in (0, 1), f"first_player is the player who actually starts, 0 or 1, not {first_player!r}"
        self.rules = rules
        self.chance = chance
        self.kinds = NATURALS[: rules["ranks"]] + KING
        self.moves = self._all_moves()

        self.terminated = False
        self.truncated = False
        self.winner: int | None = None
        self.points = [0, 0]
        self.finished: list[dict[str, Any]] = []
        self.scores = [0, 0]

        if deal is not None:
            self._start_deal(deal, first_player)
        elif position is not None:
            self._start_position(position, first_player)

    # -- starting --------------------------------------------------------------------------------------------------

    def _start_deal(self, deal: dict[str, Any], first_player: int) -> None:
        """Lay out a new game. Both hands are dealt full, so nothing is drawn or checked before the first decision."""
        self._check_deal(deal)
        sides: list[list[list[str]]] = [[[] for _ in range(self.rules["side_piles"])] for _ in range(2)]
        centers: list[list[str]] = [[] for _ in range(self.rules["center_piles"])]
        layout = dict(deal, sides=sides, centers=centers, turn=first_player, scores=self.scores)
        self._start_position(layout, first_player)

    def _start_position(self, position: dict[str, Any], first_player: int) -> None:
        """Begin a game as it lies. Cards not on the table are out of this game; no draw and no check come first."""
        self.payoff: list[list[str]] = [list(pile) for pile in position["payoff"]]
        self.hands: list[list[str]] = [list(hand) for hand in position["hands"]]
        self.sides: list[list[list[str]]] = [[list(pile) for pile in piles] for piles in position["sides"]]
        self.centers: list[list[str]] = [list(pile) for pile in position["centers"]]
        self.stock: list[str] = list(position["stock"])
        self.set_aside: list[str] = list(position.get("set_aside", []))
        self.turn: int = position["turn"]
        self.scores = list(position.get("scores", [0, 0]))
        if self.rules["match_points"] is not None:
            self.points = list(self.scores)
        self.first_player = first_player
        self.steps = 0
        self.events: list[dict[str, Any]] = []

    def _check_deal(self, deal: dict[str, Any]) -> None:
        """A deal uses the whole deck, gives both players their due and leaves the rest as the stock."""
        assert set(deal) == {"payoff", "hands", "stock"}, f"a deal has payoff, hands and stock, not {sorted(deal)}"
        for name, size in (("payoff", self.rules["payoff_size"]), ("hands", self.rules["hand_size"])):
            sizes = [len(cards) for cards in deal[name]]
            assert sizes == [size, size], f"the deal's {name} have {sizes} cards, not {size} each"
        deck = Counter(NATURALS[: self.rules["ranks"]] * self.rules["copies"])
        deck[KING] = self.rules["wilds"]
        dealt = Counter(card for pile in (*deal["payoff"], *deal["hands"], deal["stock"]) for card in pile)
        assert dealt == deck, f"the deal is not the deck: {dealt} instead of {deck}"

    # -- actions ---------------------------------------------------------------------------------------------------

    def _all_moves(self) -> list[Move]:
        """Every action in the order of its number: the plays centre by centre, the discards card by card, end_turn."""
        side_piles = range(self.rules["side_piles"])
        sources = ["payoff", *(f"side:{side}" for side in side_piles), "hand", "wild"]
        plays = [Move("play", source, center) for center in range(self.rules["center_piles"]) for source in sources]
        discards = [Move("discard", card, side) for card in self.kinds for side in side_piles]
        return [*plays, *discards, Move("end_turn")]

    def text(self, action: int) -> str:
        """An action in words, such as `side2>center1`, `wild>center0`, `discard 7>side3` or `end_turn`."""
        move = self.moves[action]
        if move.kind == "play":
            return f"{move.what.replace(':', '')}>center{move.pile}"
        if move.kind == "discard":
            return f"discard {move.what}>side{move.pile}"
        return "end_turn"

    def legal(self) -> list[int]:
        """The numbers of all legal actions, none once the episode is over."""
        if self.terminated or self.truncated:
            return []
        return [number for number, move in enumerate(self.moves) if self._allowed(move)]

    def _allowed(self, move: Move) -> bool:
        """No play is ever forced, and a turn ends by a discard; only a player without cards in hand may just stop."""
        hand = self.hands[self.turn]
        if move.kind == "end_turn":
            return not hand
        if move.kind == "discard":
            return move.what in hand
        card = self._offered(move)
        return card == KING or card == self._needed(move.pile)

    def _needed(self, center: int) -> str:
        """The natural card that fits: every card on the pile, a king too, counts as the rank of its place."""
        return NATURALS[len(self.centers[center])]

    def _offered(self, move: Move) -> str | None:
        """The card a play would take from its source, if there is one: of piles, only the top card is available."""
        hand = self.hands[self.turn]
        if move.what in ("hand", "wild"):
            card = KING if move.what == "wild" else self._needed(move.pile)
            return card if card in hand else None
        pile = self._source_pile(move.what)
        return pile[-1] if pile else None

    def _source_pile(self, source: str) -> list[str]:
        """The mover's pay-off pile or one of its own side piles."""
        if source == "payoff":
            return self.payoff[self.turn]
        return self.sides[self.turn][int(source.removeprefix("side:"))]

    # -- playing ---------------------------------------------------------------------------------------------------

    def step(self, action: int) -> None:
        """Carry out one decision and all that follows from it; an illegal one is a `ValueError` and changes nothing."""
        legal = self.legal()
        if action not in legal:
            raise ValueError(f"illegal action {action!r}; legal: {[f'{a} ({self.text(a)})' for a in legal]}")
        move = self.moves[action]
        self.steps += 1
        outcome = self._play(move) if move.kind == "play" else self._pass_turn(move)
        if outcome is None and self.steps >= self.rules["max_steps"]:
            outcome = "truncated"
        if outcome is not None:
            self._end_game(outcome)

    def _play(self, move: Move) -> str | None:
        """Put a card on a centre pile: first the win is checked, then the pile is completed, then the hand refilled."""
        card = self._offered(move)
        assert card is not None
        if move.what in ("hand", "wild"):
            source = "hand"
            self.hands[self.turn].remove(card)
        else:
            source = move.what
            self._source_pile(source).pop()
        self.centers[move.pile].append(card)
        self._event("play", source=source, card=card, center=move.pile)

        if not self.payoff[self.turn]:
            return "win"
        if len(self.centers[move.pile]) == self.rules["ranks"]:
            self._recycle(move.pile)
        if self.rules["refill_mid_turn"] and not self.hands[self.turn]:
            return self._refill()
        return None

    def _pass_turn(self, move: Move) -> str | None:
        """End the turn, as a rule by a discard on an own side pile; the other player's turn begins with a refill."""
        if move.kind == "discard":
            self.hands[self.turn].remove(move.what)
            self.sides[self.turn][move.pile].append(move.what)
            self._event("discard", card=move.what, side=move.pile)
        else:
            self._event("end_turn")
        self.turn = 1 - self.turn
        return self._refill()

    def _recycle(self, center: int) -> None:
        """A completed pile leaves its place: into the whole stock, under the stock, or aside."""
        pile = self.centers[center]
        self.centers[center] = []
        if self.rules["recycle"] == "set_aside":
            self.set_aside += pile
        elif self.rules["recycle"] == "shuffle":
            self.stock = self._shuffled("recycle", self.stock + pile, on_top=[])
        else:
            self.stock = self._shuffled("recycle", pile, on_top=self.stock)
        self._event("recycle", center=center, cards=list(pile), stock=list(self.stock))

    def _refill(self) -> str | None:
        """Fill the mover's hand from the stock, then see whether the stock has run out, which makes a draw."""
        hand = self.hands[self.turn]
        wanted = self.rules["hand_size"] - len(hand)
        if wanted > len(self.stock) and self.set_aside:
            returned = in_order(self.set_aside)
            self.stock = self._shuffled("return", returned, on_top=self.stock)
            self.set_aside = []
            self._event("return", cards=returned, stock=list(self.stock))

        drawn = [self.stock.pop() for _ in range(min(wanted, len(self.stock)))]
        hand += drawn
        if drawn:
            self._event("draw", cards=drawn)

        incomplete = len(drawn) < wanted
        run_out = not self.stock and not self.set_aside
        if incomplete or (run_out and self.rules["stock_end"] == "empty"):
            return "draw"
        return None

    def _shuffled(self, kind: str, cards: list[str], on_top: list[str]) -> list[str]:
        """Ask for the new stock: `cards` in any order at the bottom, `on_top` as it is above them."""
        stock = list(self.chance(kind, list(cards)))
        below, above = stock[: len(cards)], stock[len(cards) :]
        assert above == on_top, f"{kind}: above the {len(cards)} shuffled cards lie {above}, not {on_top}"
        assert Counter(below) == Counter(cards), f"{kind}: {below} is no order of {cards}"
        return stock

    def _event(self, kind: str, **details: Any) -> None:
        self.events.append({"type": kind, "player": self.turn, **details})

    # -- ending ----------------------------------------------------------------------------------------------------

    def _end_game(self, outcome: str) -> None:
        """Score the game: a winner, who is always the mover, gets a point for each pay-off card of the opponent."""
        winner = self.turn if outcome == "win" else None
        points = [0, 0]
        if winner is not None:
            points[winner] = len(self.payoff[1 - winner])
        result = {"outcome": outcome, "winner": winner, "points": list(points)}
        game = {"first_player": self.first_player, "scores_before": list(self.scores), "events": list(self.events)}
        self.finished.append(game | result)
        if self.rules["match_points"] is None:
            self.points = points
            self.winner = winner
            self.truncated = outcome == "truncated"
            self.terminated = not self.truncated
        else:
            self.scores = [score + gained for score, gained in zip(self.scores, points, strict=True)]
            self.points = list(self.scores)
            self._go_on_with_match(winner)

    def _go_on_with_match(self, game_winner: int | None) -> None:
        """A match ends with enough points or after too many games; else the other player starts a new game."""
        if game_winner is not None and self.scores[game_winner] >= self.rules["match_points"]:
            self.winner = game_winner
            self.terminated = True
        elif len(self.finished) >= self.rules["max_games"]:
            self.truncated = True
        else:
            self._start_deal(self.chance("deal", []), 1 - self.first_player)

    # -- looking ---------------------------------------------------------------------------------------------------

    def position(self) -> dict[str, Any]:
        """Everything on the table, hidden cards too; an ended game stays as it ended."""
        return {
            "payoff": [list(pile) for pile in self.payoff],
            "hands": [in_order(hand) for hand in self.hands],
            "sides": [[list(pile) for pile in piles] for piles in self.sides],
            "centers": [list(pile) for pile in self.centers],
            "stock": list(self.stock),
            "set_aside": in_order(self.set_aside),
            "turn": self.turn,
            "scores": list(self.scores),
        }


def in_order(cards: list[str]) -> list[str]:
    """The cards sorted from A to K."""
    return sorted(cards, key=ORDER.index)
