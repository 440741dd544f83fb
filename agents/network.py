"""A trained network as a policy, on NumPy alone: ``network`` is the best one that the repository's trainers have made.

``agents.network:PATH`` names the policy in another file of weights, such as ``runs/<name>/network.npz``, which
``experiments/ppo_selfplay.py`` writes. ``experiments/export.py`` makes such files from other checkpoints.

A file of weights is a plain ``.npz``: ``weight0`` ``(inputs, units)``, ``bias0``, ``weight1`` and so on, and ``about``,
a JSON text with the keys of :class:`About`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import reduce
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spite_env.actions import ActionTable
from spite_env.files import whole_file
from spite_env.observation import ObservationTable, observation_slices
from spite_env.policies import Actions, Evaluation, Mask, SeededPolicy, drawn_actions
from spite_env.rules import Rules
from spite_env.symmetry import Symmetry

#: The weights of the policy ``network``.
WEIGHTS = Path(__file__).with_name("network.npz")

OWNERS = ("own", "opponent")

FORMAT = "spite-and-malice-network/1"

ACTIVATIONS: dict[str, Callable[[Any], Any]] = {"relu": lambda x: np.maximum(x, 0), "tanh": np.tanh}


class View(NamedTuple):
    """Positions in the form in which a network sees them.

    Attributes:
        inputs: uint8 ``(n, inputs)``.
        mask: bool ``(n, actions)``; what the network chooses from.
        actions: int ``(n, actions)``; the game's action that each of the network's actions stands for.
    """

    inputs: NDArray[np.uint8]
    mask: Mask
    actions: Actions


class PlainView:
    """The observation and the mask as they are."""

    def __init__(self, rules: Rules, encoding: str, side_depth: int) -> None:
        self.table = ActionTable(rules)
        self.size = self.features = ObservationTable(rules, encoding, side_depth).n

    def __call__(self, observation: NDArray[np.uint8], action_mask: Mask) -> View:
        actions = np.broadcast_to(np.arange(self.table.n), action_mask.shape)
        return View(np.ascontiguousarray(observation), action_mask, actions)


class SortedView:
    """One form for all positions that differ only in the order of the piles, with what can be told from it at once.

    Centre piles are sorted by height, each player's side piles by their top cards, the highest first. Of centre piles
    of the same height, and of empty side piles, only the first can be chosen. The inputs are the observation, the mask,
    and for each centre pile and each rank, in the order in which the pile will take them, six flags: whether the rank
    is on top of the own or of the opponent's pay-off pile, in the hand, on top of an own side pile, shown below one, or
    on top of one of the opponent's side piles.

    Args:
        rules: The variant.
        encoding: That of the observations; only ``"onehot"`` has such a view.
        side_depth: Side-pile cards that these show below the tops.

    Attributes:
        table: The game's actions.
        features: Features of an observation.
        size: Number of inputs.

    Raises:
        ValueError: another encoding.
    """

    def __init__(self, rules: Rules, encoding: str, side_depth: int) -> None:
        if encoding != "onehot":
            raise ValueError(f"encoding={encoding!r} is not allowed for sorted inputs; it is 'onehot'")
        self.rules = rules
        self.table = ActionTable(rules)
        observation = ObservationTable(rules, encoding, side_depth)
        self._slices, self._depth = observation.slices, side_depth + 1
        self._symmetry = Symmetry(rules, encoding, side_depth)
        self.features = observation.n
        self._relative = observation.n + self.table.n
        self.size = self._relative + 6 * rules.center_piles * rules.ranks
        self._ranks = np.arange(1, rules.kinds + 1, dtype=np.uint8)
        self._places = (rules.kinds + 1) ** np.arange(side_depth + 1)[::-1]

    def __call__(self, observation: NDArray[np.uint8], action_mask: Mask) -> View:
        rules, count, rows = self.rules, len(observation), np.arange(len(observation))[:, None]
        heights = self._cards(observation, "center_height")
        tops = self._cards(observation, "own_side_cards").reshape(count, rules.side_piles, self._depth) @ self._places
        other = self._cards(observation, "opponent_side_cards").reshape(count, rules.side_piles, self._depth)
        orders = {"centers": heights, "own_sides": tops, "opponent_sides": other @ self._places}
        orders = {name: np.argsort(~key, axis=1, kind="stable") for name, key in orders.items()}
        numbers = np.broadcast_to(np.arange(self.table.n, dtype=np.int16), (count, self.table.n))
        seen, moved, _ = self._symmetry.apply(observation, numbers, np.zeros(count, np.intp), **orders)
        actions = moved.astype(np.intp)
        heights, tops = heights[rows, orders["centers"]], tops[rows, orders["own_sides"]]

        mask = np.take_along_axis(action_mask, actions, axis=1)
        same = heights[:, 1:] == heights[:, :-1]
        plays = mask[:, : self.table.num_plays].reshape(count, rules.center_piles, self.table.num_sources)
        plays[:, 1:] &= ~same[:, :, None]
        empty = tops[:, :-1] == 0
        discards = mask[:, self.table.num_plays : -1].reshape(count, rules.kinds, rules.side_piles)
        discards[:, :, 1:] &= ~empty[:, None]

        inputs = np.empty((count, self.size), np.uint8)
        inputs[:, : self.features] = seen
        inputs[:, self.features : self._relative] = mask
        self._add_relative(inputs, heights)
        return View(inputs, mask, actions)

    def _cards(self, observation: NDArray[np.uint8], name: str) -> NDArray[np.uint8]:
        """Return the cards in a slice of one-hot flags, ``(n, cards)``; 0 is none."""
        flags = np.ascontiguousarray(observation[:, self._slices[name]])
        kinds = self.rules.kinds
        cards: NDArray[np.uint8] = flags.reshape(len(flags), flags.shape[1] // kinds, kinds) @ self._ranks
        return cards

    def of_actions(self, view: View, actions: Actions) -> Actions:
        """Return the network's actions that stand for these actions of the game, int ``(n,)``."""
        chosen: Actions = (view.actions == actions[:, None]).argmax(axis=1)
        rows = np.arange(chosen.size)
        for _ in range(max(self.rules.center_piles, self.rules.side_piles) - 1):  # to the first of equal piles
            step = np.where(chosen < self.table.num_plays, self.table.num_sources, 1)
            chosen -= step * ~view.mask[rows, chosen]
        return chosen

    def _add_relative(self, inputs: NDArray[np.uint8], heights: NDArray[np.uint8]) -> None:
        """Flag where each rank is, in the order in which each centre pile will take them."""
        rules, count, ranks = self.rules, len(inputs), self.rules.ranks

        def flags(name: str) -> NDArray[np.uint8]:
            features = inputs[:, self._slices[name]]
            return features.reshape(count, features.shape[1] // rules.kinds, rules.kinds)[:, :, :ranks]

        payoff = [flags(f"{owner}_payoff_top")[:, 0] for owner in OWNERS]
        hand = np.minimum(flags("own_hand")[:, 0], 1)
        own, other = (
            reduce(np.bitwise_or, np.split(flags(f"{owner}_side_cards"), rules.side_piles, axis=1)) for owner in OWNERS
        )
        below = reduce(np.bitwise_or, own[:, 1:].swapaxes(0, 1), np.zeros_like(hand))
        found = np.stack([*payoff, hand, own[:, 0], below, other[:, 0]], axis=2)
        order = (heights[:, :, None].astype(np.intp) + np.arange(ranks)) % ranks
        block = inputs[:, self._relative :].reshape(count, found.shape[2], rules.center_piles, ranks)
        block[:] = found[np.arange(count)[:, None, None], order].transpose(0, 3, 1, 2)


VIEWS: dict[str, type[PlainView] | type[SortedView]] = {"plain": PlainView, "sorted": SortedView}


@dataclass(frozen=True)
class About:
    """What a network was trained for.

    Attributes:
        rules: Every field of the rules.
        encoding: The encoding of the observations.
        side_depth: Side-pile cards that these show below the tops.
        view: What it sees of them: ``"plain"`` or ``"sorted"``.
        activation: Between its layers: ``"relu"`` or ``"tanh"``.
        format: The version of all this.
    """

    rules: dict[str, Any]
    encoding: str
    side_depth: int
    view: str
    activation: str
    format: str = FORMAT


class Network:
    """A multilayer perceptron that gives each action a logit.

    Args:
        about: What it was trained for.
        layers: ``(weights (inputs, units), biases)`` of each layer.

    Raises:
        ValueError: something unknown in ``about``, or weights that don't fit it.
    """

    def __init__(self, about: About, layers: Sequence[tuple[NDArray[Any], NDArray[Any]]]) -> None:
        for key, known in (("format", {FORMAT: 0}), ("view", VIEWS), ("activation", ACTIVATIONS)):
            if getattr(about, key) not in known:
                raise ValueError(f"{key}={getattr(about, key)!r} is not known; it is one of {', '.join(known)}")
        self.about = about
        self.rules = Rules(**about.rules)
        self.view = VIEWS[about.view](self.rules, about.encoding, about.side_depth)
        self.features = self.view.features
        self.layers = [(np.asarray(weight, np.float32), np.asarray(bias, np.float32)) for weight, bias in layers]
        sizes = [self.view.size, *(bias.size for _, bias in self.layers)]
        shapes = [weight.shape for weight, _ in self.layers]
        flat = all(bias.ndim == 1 for _, bias in self.layers)
        if not flat or shapes != list(pairwise(sizes)) or sizes[-1] != self.view.table.n:
            raise ValueError(f"weights of shapes {shapes} don't fit {sizes[0]} inputs and {self.view.table.n} actions")
        if not all(np.isfinite(array).all() for layer in self.layers for array in layer):
            raise ValueError("some weights are not finite")

    @classmethod
    def of_linear(cls, about: About, layers: Iterable[Any]) -> Network:
        """Return the network of PyTorch's linear layers, a copy."""
        pairs = ((layer.weight.detach().cpu().numpy(), layer.bias.detach().cpu().numpy()) for layer in layers)
        return cls(about, [(weight.T.copy(), bias.copy()) for weight, bias in pairs])

    @classmethod
    def load(cls, path: str | Path) -> Network:
        """Read a file of weights.

        Raises:
            FileNotFoundError: no such file.
            ValueError: the file holds something else.
        """
        try:
            with open(path, "rb") as whole, np.load(whole, allow_pickle=False) as file:
                about = About(**json.loads(str(file["about"])))
                count = sum(name.startswith("weight") for name in file.files)
                return cls(about, [(file[f"weight{layer}"], file[f"bias{layer}"]) for layer in range(count)])
        except OSError:
            raise
        except Exception as error:  # of all the kinds that a damaged archive gives rise to
            raise ValueError(f"{path} is no file of weights, or a damaged one: {error}") from error

    def save(self, path: str | Path, dtype: Any = np.float16) -> None:
        """Write a file of weights, with numbers of this type; until it is complete, an old file stays as it was.

        Raises:
            ValueError: a weight is too large for the type.
        """
        arrays: dict[str, Any] = {}
        most = np.finfo(dtype).max
        for layer, (weight, bias) in enumerate(self.layers):
            if max(np.abs(weight).max(), np.abs(bias).max()) > most:
                raise ValueError(f"dtype={dtype!r} is not allowed: a weight is larger than its largest number, {most}")
            arrays |= {f"weight{layer}": weight.astype(dtype), f"bias{layer}": bias.astype(dtype)}
        with whole_file(path) as file:
            np.savez_compressed(file, about=json.dumps(asdict(self.about)), **arrays)

    def log_probabilities(self, view: View) -> NDArray[np.float32]:
        """Return the logarithms of the probabilities of the network's actions, float32 ``(n, actions)``."""
        activate = ACTIVATIONS[self.about.activation]
        x = view.inputs.astype(np.float32)
        for weight, bias in self.layers[:-1]:
            x = activate(x @ weight + bias)
        weight, bias = self.layers[-1]
        logits = np.where(view.mask, x @ weight + bias, -np.inf)
        logits -= logits.max(axis=1, keepdims=True)
        logits -= np.log(np.exp(logits).sum(axis=1, keepdims=True))
        return logits


class NetworkPolicy(SeededPolicy):
    """The policy of a trained network.

    Args:
        network: The network, or its file.
        deterministic: Whether to take the most probable action; else actions are drawn from the network's distribution.

    Raises:
        FileNotFoundError: no such file.
        ValueError: no file of weights.
    """

    needs_observation = True

    def __init__(self, network: Network | str | Path = WEIGHTS, deterministic: bool = True) -> None:
        self.network = network if isinstance(network, Network) else Network.load(network)
        self.deterministic = deterministic
        self._last: tuple[View, NDArray[np.float32]] | None = None

    def reset(self, rules: Rules, num_games: int, seed: int) -> None:
        """Begin new games, see :class:`~spite_env.policies.Policy`.

        Raises:
            ValueError: rules whose observations or actions are others than those that the network was trained with.
        """
        about, trained = self.network.about, self.network.rules
        layouts = [observation_slices(variant, about.side_depth) for variant in (rules, trained)]
        if layouts[0] != layouts[1]:
            names = ("ranks", "copies", "wilds", "hand_size", "side_piles", "center_piles")
            wanted, given = (", ".join(f"{name}={getattr(r, name)}" for name in names) for r in (trained, rules))
            raise ValueError(f"the network was trained for games with {wanted}, and these have {given}")
        super().reset(rules, num_games, seed)
        self.observation_table = ObservationTable(rules, about.encoding, about.side_depth)

    def act(self, observation: NDArray[np.uint8], action_mask: Mask, infosets: Any, indices: Actions) -> Actions:
        """Choose actions, see :class:`~spite_env.policies.Policy`.

        Raises:
            ValueError: observations of another size than the network was trained with.
        """
        about = self.network.about
        if observation.shape[1] != self.network.features:
            raise ValueError(
                f"the network was trained with {self.network.features} features (encoding={about.encoding!r}, "
                f"side_depth={about.side_depth}), and these observations have {observation.shape[1]}"
            )
        view = self.network.view(observation, action_mask)
        scores = self.network.log_probabilities(view)
        self._last = view, scores
        if self.deterministic:
            chosen = scores.argmax(axis=1)
        else:
            chosen = drawn_actions(np.exp(scores.astype(np.float64)), self._uniform(indices))
        picked: Actions = view.actions[np.arange(chosen.size), chosen]
        return picked

    @property
    def evaluation(self) -> Evaluation | None:
        """The network's probabilities in its last decisions.

        Of actions that come to the same, only one has a probability.
        """
        if self._last is None:
            return None
        view, scores = self._last
        probabilities = np.zeros(scores.shape)
        np.put_along_axis(probabilities, view.actions, np.exp(scores.astype(np.float64)), axis=1)
        return Evaluation("the network's probabilities", probabilities)


def __getattr__(name: str) -> NetworkPolicy:
    """Load the weights in the file ``name``, so that ``agents.network:PATH`` is the name of a policy."""
    if not name.endswith(".npz"):
        raise AttributeError(f"agents.network has no {name!r}; agents.network:PATH is the policy in a .npz file")
    return NetworkPolicy(name)
