"""Gymnasium: one learner in one seat, the opponent being part of the environment; one game, or a batch of them.

.. code-block:: python

    import gymnasium
    import spite_env  # enters the environments into Gymnasium's registry

    env = gymnasium.make("SpiteAndMalice-v0", opponent="greedy", seat="random", rules="classic")
    observation, info = env.reset(seed=7)
    done = False
    while not done:
        action = env.action_space.sample(info["action_mask"])
        observation, reward, terminated, truncated, info = env.step(action)
        done = terminated or truncated

    envs = gymnasium.make_vec("SpiteAndMalice-v0", num_envs=1024, opponent="greedy")

``SpiteAndMaliceMatch-v0`` plays matches to 50 points. A step is the learner's decision with the opponent's answers to
it. Both classes take the arguments of :class:`~spite_env.envs.seat.SeatGames`, and

- ``observation``: ``"box"``, the learner's view alone, or ``"dict"``, with ``observation`` and ``action_mask`` as in
  the PettingZoo environment;
- ``render_mode`` (of one game): None, ``"human"`` (a window that follows every step), ``"ansi"``, ``"svg"`` or
  ``"rgb_array"``, see :mod:`spite_env.render.modes`;
- ``perspective`` (of one game): ``"learner"``, from whose seat the table is drawn, or ``"all"``, for debugging, which
  turns every card up.

Every info holds ``action_mask``, the learner's legal actions as int8 ``(actions,)``. The info of a reset also holds
``redeals``, and that of a last step all that :meth:`~spite_env.envs.seat.SeatGames.results` says.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, Space
from gymnasium.vector import VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from spite_env import position as positions_module
from spite_env.envs.seat import Opponent, SeatGames, rows_of
from spite_env.game import Game
from spite_env.render import Table, describe, svg
from spite_env.render.modes import RENDER_FPS, RENDER_MODES, Renderer
from spite_env.rules import Rules, checked_integer

#: What an observation can be.
OBSERVATIONS = ("box", "dict")


class SpiteEnv(gymnasium.Env[Any, Any]):
    """One game with a learner in one seat; the module explains the arguments.

    An action is an integer; ``action_masks()`` is what sb3-contrib's ``MaskablePPO`` asks for. ``reset(seed)`` deals
    the game that every other door deals for this seed, ``reset()`` the next one; ``options={"position": {...}}`` starts
    from a position.

    Attributes:
        games: The :class:`~spite_env.envs.seat.SeatGames` behind it, hidden cards included; for reading.

    Raises:
        ValueError: an argument that is not allowed.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 (as Gymnasium declares it)
        "render_modes": list(RENDER_MODES),
        "render_fps": RENDER_FPS,
    }

    def __init__(
        self,
        opponent: Opponent = "greedy",
        rules: Rules | str | None = None,
        *,
        observation: str = "box",
        render_mode: str | None = None,
        perspective: str = "learner",
        **settings: Any,
    ) -> None:
        self._renderer = Renderer(render_mode)
        self.render_mode = render_mode
        if perspective not in ("learner", "all"):
            raise ValueError(f"perspective={perspective!r} is not allowed; it is 'learner' or 'all'")
        self.perspective = perspective
        self.games = SeatGames(1, opponent, rules, **settings)
        self.observation = _check_observation(observation)
        self.observation_space = _observation_space(self.games.game, observation)
        self.action_space = Discrete(self.games.game.actions.n)

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode, see the class.

        Raises:
            ValueError: an impossible seed or position, or an unknown option, nothing is changed then; or a position in
                which the learner never comes to move.
        """
        if seed is not None:
            seed = checked_integer("seed", seed, 0, 2**64 - 1)
        self.games.reset(seed, positions_module.in_options(options))
        super().reset(seed=seed)
        self._follow()
        observation, mask = self._view()
        return observation, {"action_mask": mask, "redeals": int(self.games.redeals[0])}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Make the learner's decision and the opponent's answers.

        Raises:
            ValueError: an action out of range; with ``illegal="raise"`` also one that is not legal. Nothing is changed.
            RuntimeError: the episode has ended, or none has been started.
        """
        try:
            number = operator.index(action)
        except TypeError:
            raise ValueError(f"action {action!r} is not allowed; it is an integer") from None
        reward, terminated, truncated = self.games.step_alone(number)
        self._follow()
        observation, mask = self._view()
        info: dict[str, Any] = {"action_mask": mask}
        if terminated or truncated:
            info |= next(rows_of(self.games.results(np.zeros(1, np.intp))))
        return observation, reward, terminated, truncated, info

    def action_masks(self) -> NDArray[np.bool_]:
        """Return the learner's legal actions, bool ``(actions,)``, a new array."""
        return self.games.game.legal_actions()[0].copy()

    def render(self) -> Any:
        """Return the table as drawn in the render mode; in mode ``"human"``, show it and return None.

        Raises:
            ImportError: the mode needs pygame, which is not installed; the message says how to install it.
            RuntimeError: there is no display for a window.
        """
        return self._renderer.render(self._look)

    def close(self) -> None:
        """Close the window of render mode ``"human"``."""
        self._renderer.close()

    def _follow(self) -> None:
        if self.render_mode == "human":
            self.render()

    def _look(self) -> Table:
        games = self.games
        player, action = int(games.last_players[0]), int(games.last_actions[0])
        last_move = None if player < 0 else (player, None if action < 0 else action)
        viewer = "all" if self.perspective == "all" else int(games.seats[0])
        return describe(games.game, 0, viewer, last_move=last_move, names=self._names())

    def _repr_html_(self) -> str:
        """Return a picture for notebooks."""
        return svg(self._look())

    def _names(self) -> tuple[str, str]:
        opponent = self.games.names[self.games.opponents[0]]
        return ("learner", opponent) if self.games.seats[0] == 0 else (opponent, "learner")

    def _view(self) -> tuple[Any, NDArray[np.int8]]:
        """Return the learner's observation and its legal actions."""
        view, mask = self.games.game._look(int(self.games.seats[0]))
        return view if self.observation == "box" else {"observation": view, "action_mask": mask.copy()}, mask


class SpiteVectorEnv(VectorEnv[Any, Any, Any]):
    """Any number of games as one environment, without sub-environments; the module explains the arguments.

    ``reset(seed)`` takes one integer or one for each game, as :class:`~spite_env.game.Game` does. Ended games are dealt
    anew in the same step (``AutoresetMode.SAME_STEP``): ``final_obs`` and ``final_info`` say how they ended. Wrappers
    of Gymnasium that change observations don't take this mode, and those that count episodes only count right from
    Gymnasium 1.4 on.

    Attributes:
        games: The :class:`~spite_env.envs.seat.SeatGames` behind it, hidden cards included; for reading.

    Raises:
        ValueError: an argument that is not allowed.
    """

    def __init__(
        self,
        num_envs: int = 1,
        opponent: Opponent = "greedy",
        rules: Rules | str | None = None,
        *,
        observation: str = "box",
        max_episode_steps: int | None = None,
        **settings: Any,
    ) -> None:
        if max_episode_steps is not None:
            raise ValueError(
                f"max_episode_steps={max_episode_steps!r} is not allowed; set max_steps of the rules, which counts the "
                "decisions of both players"
            )
        self.games = SeatGames(num_envs, opponent, rules, **settings)
        self.observation = _check_observation(observation)
        self.num_envs = num_envs
        self.single_observation_space = _observation_space(self.games.game, observation)
        self.single_action_space = Discrete(self.games.game.actions.n)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.metadata = {"autoreset_mode": _same_step(), "render_modes": []}

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode in every game; a position in ``options`` is that of all of them.

        Raises:
            ValueError: as that of :meth:`SpiteEnv.reset`.
        """
        positions = positions_module.in_options(options)
        self.games.reset(seed, None if positions is None else positions * self.num_envs)
        super().reset(seed=seed if isinstance(seed, int) else None)
        mask = self._mask()
        infos = {"action_mask": mask, "redeals": self.games.redeals.copy()}
        every = np.ones(self.num_envs, np.bool_)
        return self._views(self.games.observe(), mask), infos | {f"_{name}": every.copy() for name in infos}

    def step(
        self, actions: Any
    ) -> tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Make the learner's decision and the opponents' answers in every game; deal ended games anew.

        Raises:
            ValueError: as that of :meth:`SpiteEnv.step`.
        """
        rewards, terminations, truncations = self.games.step(actions)
        ended = np.flatnonzero(terminations | truncations)
        infos = self._final(ended) if ended.size else {}
        if ended.size:
            self.games.deal(ended)
            infos |= self._spread({"redeals": self.games.redeals[ended]}, ended)
        mask = self._mask()
        infos |= {"action_mask": mask, "_action_mask": np.ones(self.num_envs, np.bool_)}
        return self._views(self.games.observe(), mask), rewards, terminations, truncations, infos

    def action_masks(self) -> NDArray[np.bool_]:
        """Return the learner's legal actions, bool ``(num_envs, actions)``, a new array."""
        return self.games.game.legal_actions().copy("K")

    def _mask(self) -> NDArray[np.int8]:
        return self.action_masks().view(np.int8)

    def _views(self, views: NDArray[np.uint8], mask: NDArray[np.int8]) -> Any:
        return views if self.observation == "box" else {"observation": views, "action_mask": mask.copy()}

    def _final(self, ended: NDArray[np.intp]) -> dict[str, Any]:
        """Return the infos on games that have just ended, in the words of Gymnasium's vector environments."""
        views, mask = self.games.observe(ended), np.zeros((ended.size, self.games.game.actions.n), np.int8)
        final = np.full(self.num_envs, None, object)
        for row, game in enumerate(ended.tolist()):
            final[game] = self._views(views[row], mask[row])
        among = np.zeros(self.num_envs, np.bool_)
        among[ended] = True
        told = self._spread({"action_mask": mask, **self.games.results(ended)}, ended)
        return {"final_obs": final, "_final_obs": among, "final_info": told, "_final_info": among.copy()}

    def _spread(self, columns: Mapping[str, NDArray[Any]], games: NDArray[np.intp]) -> dict[str, Any]:
        """Return arrays over all games with values of some, and for each of them which games those are."""
        spread: dict[str, Any] = {}
        for name, values in columns.items():
            fill, dtype = (None, object) if values.dtype.kind == "U" else (0, values.dtype)
            spread[name] = np.full((self.num_envs, *values.shape[1:]), fill, dtype)
            spread[name][games] = values
            spread[f"_{name}"] = np.zeros(self.num_envs, np.bool_)
            spread[f"_{name}"][games] = True
        return spread


def _check_observation(kind: str) -> str:
    if kind not in OBSERVATIONS:
        raise ValueError(f"observation={kind!r} is not allowed; it is one of {', '.join(map(repr, OBSERVATIONS))}")
    return kind


def _observation_space(game: Game, kind: str) -> Space[Any]:
    space = game.observation.space
    if kind == "box":
        return space
    return Dict(observation=space, action_mask=Box(0, 1, (game.actions.n,), np.int8))


def _same_step() -> Any:
    """Return the mode of autoreset; the oldest Gymnasium had no word for it."""
    modes = getattr(gymnasium.vector, "AutoresetMode", None)
    return modes.SAME_STEP if modes else "SameStep"
