"""Spite & Malice as a PettingZoo environment (AEC: the agents act one after the other).

.. code-block:: python

    from spite_env import spite_and_malice_v0

    env = spite_and_malice_v0.env()
    env.reset(seed=7)
    for agent in env.agent_iter():
        observation, reward, termination, truncation, info = env.last()
        done = termination or truncation
        env.step(None if done else env.action_space(agent).sample(observation["action_mask"]))

====================  ================================================================================================
Import                ``from spite_env import spite_and_malice_v0``
Agents                ``player_0``, ``player_1``; a player acts until a discard (or ``end_turn``) ends the turn
Action space          ``Discrete(74)`` with the default rules
Observation space     ``Dict(observation=Box(0, high, (767,), uint8), action_mask=Box(0, 1, (74,), int8))``, by default
State space           ``Box(0, high, (1236,), uint8)`` with the default rules
Render modes          ``"human"`` (a window), ``"ansi"`` (a text), ``"svg"``, ``"rgb_array"``
====================  ================================================================================================

Settings
--------

``env(rules=None, render_mode=None, reward="win", encoding="onehot", side_depth=3, perspective="mover")``, and
``raw_env`` with the same:

- ``rules``: the variant, a :class:`~spite_env.rules.Rules` or the name of a preset; default ``Rules.g4a()``. With
  ``match_points`` an episode is a match.
- ``render_mode``: None, ``"human"``, ``"ansi"``, ``"svg"`` or ``"rgb_array"``, see below.
- ``reward``: ``"win"``, ``"points"`` or ``"margin"``, see below.
- ``encoding``: ``"onehot"`` or ``"compact"``, and ``side_depth``: the cards below the top of each side pile that are
  shown one by one. :mod:`spite_env.observation` explains both.
- ``perspective``: from whose seat the table is drawn: ``"mover"``, ``"player_0"``, ``"player_1"`` or ``"all"``.

``raw_env`` raises :class:`IllegalActionError` (a ``ValueError``) on an illegal action, which names the legal ones, and
changes nothing. ``env`` adds :class:`ForfeitWrapper`: whoever makes an illegal action loses the episode. Anything that
is not a legal action counts, also an action out of range, a float, a bool, or None from an agent that is still in the
game. ``env`` also refuses calls before the first ``reset``.

``pettingzoo.utils.turn_based_aec_to_parallel(env())`` plays the same episodes through the parallel API, where all
actions but the mover's are ignored; ``aec_to_parallel``, for games in which all act at once, refuses the environment.

Observations
------------

``{"observation": uint8 (features,), "action_mask": int8 (actions,)}``, the agent's own view of the table in both parts.
``env.unwrapped.game.observation.describe()`` prints the layout. Both agents can be observed at any time; whoever is not
to move gets a mask of zeros, as does everybody after the end. Every call returns new arrays.

Actions
-------

See :mod:`spite_env.actions` for the numbering. ``env.unwrapped.actions`` turns actions into texts and back.

Rewards
-------

The rewards are 0 until the episode ends and always sum to zero. ``"win"``: +1 and -1. ``"points"``: plus and minus the
winner's points, which are the cards left in the loser's pay-off pile; in a match, the difference of the scores.
``"margin"``: the same divided by the size of a pay-off pile. A draw (the stock has run out) ends as a termination with
0, a game or match cut at its limit as a truncation with 0. An illegal action in ``env`` is a termination too: the
opponent has won, with the offender's remaining pay-off cards as points (also in a match, whatever the scores were), and
both infos are ``{"forfeit": offender}``. All other infos are empty.

Reset
-----

``reset(seed)`` starts the first episode of that seed, ``reset()`` the next one. Before any seed was given, one is drawn
from the operating system. ``options={"position": {...}}`` starts in the middle of a turn from a position (see
:mod:`spite_env.position`); ``env.unwrapped.position()`` returns the current one.

State
-----

``state()`` is one vector for both players, hidden cards included, and a function of the position alone: two states are
equal exactly if their positions are. ``env.unwrapped.state_slices`` names its parts, in this order: ``turn``,
``scores``, ``hands`` (cards of each rank), ``pile_sizes``, ``center_sizes``, ``center_kings`` (1 where the card at that
height is a king), ``set_aside`` (cards of each rank), ``stock_size``, ``piles`` and ``stock``. Parts of both players
hold player 0's first; the first of a player's piles is the pay-off pile, then come the side piles. The cards of
``piles`` and ``stock`` are ranks (1 ace to ``kinds`` king), top card (in the stock: the next one drawn) first, filled
up with 0.

Rendering
---------

``render()`` draws the table with the last move and the legal plays. In mode ``"ansi"`` it returns a text, in ``"svg"``
a picture as text, and in ``"rgb_array"`` pixels, uint8 ``(height, 600, 3)``, where the height depends on the rules
alone. In ``"human"`` the picture is in a window that follows every step by itself and never waits: to watch a game,
pause between the steps. When the window is closed, the game goes on without it. Pixels and the window need pygame-ce
(``pip install 'spite_env[render]'``), the window also a display. A notebook shows the environment as a picture in any
mode.

By default the table is seen from the seat of the agent to move: its hand, and backs in place of all cards that it can't
see. On the next player's turn that player's hand is shown, so two people at one screen should take turns looking at it.
``perspective="player_0"`` stays in that seat. ``perspective="all"`` turns every card up, for debugging.

Version history
---------------

- v0: the first version. Any change that changes a seeded game or an observation makes a v1.
"""

from __future__ import annotations

import operator
import secrets
from collections.abc import Mapping
from itertools import accumulate
from math import prod
from typing import Any, TypeAlias, cast

import numpy as np
import pettingzoo
from gymnasium.spaces import Box, Dict, Discrete, Space
from numpy.typing import NDArray
from pettingzoo.utils.env import AECEnv
from pettingzoo.utils.wrappers import OrderEnforcingWrapper

from spite_env import position as positions_module
from spite_env.actions import ActionTable
from spite_env.game import Game
from spite_env.render import Table, describe, svg
from spite_env.render.modes import RENDER_FPS, RENDER_MODES, Renderer
from spite_env.render.table import Decision, Viewer
from spite_env.rewards import check_reward, rewards
from spite_env.rules import MAX_COUNT, Rules
from spite_env.state import Bytes, State

__all__ = ["ForfeitWrapper", "IllegalActionError", "env", "raw_env"]

AGENTS = ("player_0", "player_1")

#: The viewer of :func:`~spite_env.render.describe` for each perspective.
_VIEWERS: dict[str, Viewer] = {"mover": None, AGENTS[0]: 0, AGENTS[1]: 1, "all": "all"}

Observation: TypeAlias = dict[str, NDArray[Any]]

#: The name in PettingZoo's registry, where there is one.
REGISTERED_ID = "spite_env/spite_and_malice_v0"


def env(
    rules: Rules | str | None = None,
    render_mode: str | None = None,
    reward: str = "win",
    encoding: str = "onehot",
    side_depth: int = 3,
    perspective: str = "mover",
) -> ForfeitWrapper:
    """Return the environment in which an illegal action loses; the module explains the arguments.

    Raises:
        ValueError: an argument that is not allowed.
    """
    return ForfeitWrapper(raw_env(rules, render_mode, reward, encoding, side_depth, perspective))


class IllegalActionError(ValueError):
    """An action that is not legal; the message names it and the legal ones."""


class raw_env(AECEnv[str, Any, Any]):  # noqa: N801 (PettingZoo's name)
    """The environment itself, in which an illegal action raises; the module explains the arguments.

    Attributes:
        game: The :class:`~spite_env.game.Game` of one game that is played, hidden cards included; for reading, and for
            setting its ``listener``.
        actions: The :class:`~spite_env.actions.ActionTable`.
        state_space: The space of :meth:`state`.
        state_slices: Where each part of :meth:`state` stands, by name.

    Raises:
        ValueError: an argument that is not allowed.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 (as PettingZoo declares it)
        "name": "spite_and_malice_v0",
        "render_modes": list(RENDER_MODES),
        "is_parallelizable": False,
        "render_fps": RENDER_FPS,
    }

    def __init__(
        self,
        rules: Rules | str | None = None,
        render_mode: str | None = None,
        reward: str = "win",
        encoding: str = "onehot",
        side_depth: int = 3,
        perspective: str = "mover",
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._renderer = Renderer(render_mode)
        self.render_mode = render_mode
        if perspective not in _VIEWERS:
            raise ValueError(f"perspective={perspective!r} is not allowed; it is one of {list(_VIEWERS)}")
        self.perspective = perspective
        self.reward = check_reward(reward)
        self.game = Game(rules, encoding=encoding, side_depth=side_depth)
        self.rules = self.game.rules
        self.possible_agents = list(AGENTS)
        self.agents: list[str] = []
        self.action_spaces = {}
        self.observation_spaces = {}
        for agent in AGENTS:
            mask = Box(0, 1, (self.actions.n,), dtype=np.int8)
            self.action_spaces[agent] = Discrete(self.actions.n)
            self.observation_spaces[agent] = Dict(observation=self.game.observation.space, action_mask=mask)
        self.state_slices, self.state_space = _state_layout(self.rules)
        self._seeded = False
        self._last_move: Decision | None = None

    @property
    def actions(self) -> ActionTable:
        """The numbering of actions."""
        return self.game.actions

    def observation_space(self, agent: str) -> Space[Any]:
        """Return an agent's observation space, the same object on each call."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Space[Any]:
        """Return an agent's action space, the same object on each call."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: Mapping[str, Any] | None = None) -> None:
        """Start an episode: the first one of ``seed``, or the next one.

        Args:
            seed: An integer from 0 to 2**64 - 1, or None.
            options: ``{"position": {...}}`` starts from a position instead of a deal.

        Raises:
            ValueError: an impossible seed or position, or an unknown option; nothing is changed then.
        """
        positions = positions_module.in_options(options)
        if seed is None and not self._seeded:
            seed = secrets.randbits(64)
        self.game.reset(seed=None if seed is None else [seed], positions=positions)
        self._seeded = True
        self._last_move = None
        self._skip_agent_selection = None  # type: ignore[assignment]
        self.agents = list(AGENTS)
        self.terminations, self.truncations = dict.fromkeys(AGENTS, False), dict.fromkeys(AGENTS, False)
        self.rewards, self._cumulative_rewards = dict.fromkeys(AGENTS, 0.0), dict.fromkeys(AGENTS, 0.0)
        self._after_change()

    def step(self, action: int | None) -> None:
        """Make a decision of the agent to move; None takes an agent away whose episode has ended.

        Raises:
            IllegalActionError: an action that is not legal; nothing is changed then.
            ValueError: an action other than None of an agent whose episode has ended.
            RuntimeError: no episode is going on.
        """
        if not self.agents:
            raise RuntimeError("no episode is going on: call reset()")
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        number = _number(action)
        if not self.game._step_if_legal(number):
            raise self._refusal(action, number)
        self._last_move = AGENTS.index(agent), number
        self._cumulative_rewards[agent] = 0.0
        self._after_change()

    def forfeit(self) -> None:
        """End the episode as lost by the agent to move; nothing happens to an episode that has ended.

        Raises:
            RuntimeError: no episode has been started.
        """
        game = self._started_game()
        if game.state.over[0]:
            return
        agent = self.agent_selection
        game.forfeit([0])
        self._last_move = AGENTS.index(agent), None
        self._cumulative_rewards[agent] = 0.0
        self._after_change()
        for info in self.infos.values():
            info["forfeit"] = agent

    def observe(self, agent: str) -> Observation:
        """Return an agent's own view, at any time.

        Returns:
            ``observation``, uint8 ``(features,)``, and ``action_mask``, int8 ``(actions,)``, all zeros unless the agent
            is to move; both are new arrays.

        Raises:
            ValueError: no such agent.
            RuntimeError: no episode has been started.
        """
        game = self._started_game()
        if agent not in AGENTS:
            raise ValueError(f"agent {agent!r} does not exist; the agents are {' and '.join(AGENTS)}")
        observation, mask = game._look(AGENTS.index(agent))
        return {"observation": observation, "action_mask": mask}

    def state(self) -> Bytes:
        """Return everything, hidden cards included, as a new vector, uint8 ``state_space.shape``.

        Raises:
            RuntimeError: no episode has been started.
        """
        return _encode_state(self._started_game().state)

    def position(self) -> dict[str, Any]:
        """Return everything, hidden cards included, as a position that ``reset`` takes as an option.

        Raises:
            RuntimeError: no episode has been started.
        """
        return self._started_game().position(0)

    def render(self) -> Any:
        """Return the table as drawn in the render mode; in mode ``"human"``, show it and return None.

        Raises:
            ImportError: the mode needs pygame, which is not installed; the message says how to install it.
            RuntimeError: no episode has been started, or there is no display for a window.
        """
        self._started_game()
        return self._renderer.render(self._look)

    def close(self) -> None:
        """Close the window of render mode ``"human"``."""
        self._renderer.close()

    def _look(self) -> Table:
        return describe(self.game, 0, _VIEWERS[self.perspective], last_move=self._last_move)

    def _repr_html_(self) -> str | None:
        """Return a picture for notebooks, once an episode has been started."""
        return svg(self._look()) if self._seeded else None

    def _started_game(self) -> Game:
        if not self._seeded:
            raise RuntimeError("no episode has been started: call reset()")
        return self.game

    def _refusal(self, action: Any, number: int) -> IllegalActionError:
        name = f"{action!r} ({self.actions.text(number)})" if 0 <= number < self.actions.n else f"{action!r}"
        legal = np.flatnonzero(self.game.legal_actions()[0]).tolist()
        listed = ", ".join(f"{other} ({self.actions.text(other)})" for other in legal)
        return IllegalActionError(f"action {name} is not legal for {self.agent_selection}; the legal ones are {listed}")

    def _after_change(self) -> None:
        """Read off the game whose turn it is, and whether and how the episode has ended."""
        state = self.game.state
        self.agent_selection = AGENTS[state.player[0]]
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in AGENTS}
        if state.over[0]:
            self.terminations = dict.fromkeys(AGENTS, bool(state.terminated[0]))
            self.truncations = dict.fromkeys(AGENTS, bool(state.truncated[0]))
            self.rewards = dict(zip(AGENTS, rewards(self.game, self.reward)[0].tolist(), strict=True))
            self._accumulate_rewards()
        if self.render_mode == "human":
            self.render()

    def _clear_rewards(self) -> None:
        self.rewards = dict.fromkeys(self.rewards, 0.0)


class ForfeitWrapper(OrderEnforcingWrapper[str, Any, Any]):
    """Makes an illegal action lose the episode, and refuses calls before the first reset."""

    def step(self, action: int | None) -> None:
        """Make a decision of the agent to move, or lose by an illegal action; see :meth:`raw_env.step`."""
        try:
            super().step(action)
        except IllegalActionError:
            cast(raw_env, self.unwrapped).forfeit()

    def last(self, observe: bool = True) -> tuple[Observation | None, float, bool, bool, dict[str, Any]]:
        """Return what the agent to move is told: observation, reward since its last decision, two ends, info."""
        # The same as PettingZoo's own, but passed through at once instead of value by value.
        return self.env.last(observe) if self._has_reset else super().last(observe)

    def __str__(self) -> str:
        return str(self.env)

    def _repr_html_(self) -> str | None:
        return cast(raw_env, self.unwrapped)._repr_html_()


def _number(action: Any) -> int:
    """Return an action as a plain integer; -1 for what is none."""
    try:
        return -1 if isinstance(action, (bool, np.bool_)) else operator.index(action)
    except TypeError:
        return -1


def _state_layout(rules: Rules) -> tuple[dict[str, slice], Box]:
    """Return the places of the parts of the state vector, and its space."""
    kinds, cards, centers, piles = rules.kinds, rules.num_cards, rules.center_piles, 1 + rules.side_piles
    parts: dict[str, tuple[tuple[int, ...], int]] = {  # shapes and largest values
        "turn": ((1,), 1),
        "scores": ((2,), MAX_COUNT),
        "hands": ((2, kinds), rules.hand_size),
        "pile_sizes": ((2, piles), cards),
        "center_sizes": ((centers,), rules.ranks),
        "center_kings": ((centers, rules.ranks), 1),
        "set_aside": ((kinds,), cards),
        "stock_size": ((1,), cards),
        "piles": ((2, piles, cards), kinds),
        "stock": ((cards,), kinds),
    }
    sizes = [prod(shape) for shape, _ in parts.values()]
    slices = {name: slice(stop - size, stop) for name, size, stop in zip(parts, sizes, accumulate(sizes), strict=True)}
    high = np.repeat(np.array([most for _, most in parts.values()], np.uint8), sizes)
    return slices, Box(np.zeros_like(high), high, dtype=np.uint8)


def _encode_state(state: State) -> Bytes:
    """Return the state vector of the only game."""
    parts = (
        state.player,
        state.scores,
        state.hand,
        state.pile_size,
        state.center_size,
        state.center_wild,
        state.set_aside,
        state.stock_size,
        _top_first(state.pile[:, :, 1:, 0], state.pile_size[:, :, 0]),
        _top_first(state.stock[:, 0], state.stock_size),
    )
    return np.concatenate([part.ravel() for part in parts])


def _top_first(cards: Bytes, sizes: Bytes) -> Bytes:
    """Turn piles upside down, uint8 ``(..., cards)``, with zeros in place of whatever stands above their tops."""
    place = sizes[..., None].astype(np.intp) - np.arange(1, cards.shape[-1] + 1)
    place = place.reshape(cards.shape)
    turned: Bytes = np.take_along_axis(cards, np.maximum(place, 0), axis=-1) * (place >= 0)
    return turned


def _register() -> None:
    """Enter the environment in PettingZoo's registry; its older versions have none."""
    if hasattr(pettingzoo, "register") and REGISTERED_ID.replace("_v", "-v") not in pettingzoo.aec_registry:
        pettingzoo.register("aec", REGISTERED_ID, entry_point=f"{__name__}:env")


_register()
