"""Stable-Baselines3: one learner against opponents that are part of the environment, any number of games at once.

.. code-block:: python

    env = SpiteVecEnv(1024, opponent="greedy")
    model = MaskablePPO("MlpPolicy", env)

No Python object stands behind a game, see :mod:`spite_env.envs.seat`. Masks reach ``MaskablePPO`` through
``env_method("action_masks")``, as one array; algorithms without masks learn from losing by illegal actions. SB3's
``DummyVecEnv`` and ``SubprocVecEnv`` work too, over the environments of :mod:`spite_env.envs.gym`, but are far slower.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from spite_env import position as positions_module
from spite_env.envs.seat import Opponent, SeatGames, rows_of
from spite_env.policies import Actions, Mask, ProbabilityPolicy, random_legal_actions
from spite_env.rules import Rules, checked_integer

try:
    import torch
    from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
    from stable_baselines3.common.vec_env import VecEnv
except ImportError as error:  # pragma: no cover
    raise ImportError(
        f"spite_env.envs.sb3 needs Stable-Baselines3 ({error}); install it with: pip install 'spite_env[train]'"
    ) from error


class ModelPolicy(ProbabilityPolicy):
    """A frozen copy of an SB3 model's network, as a :class:`~spite_env.policies.Policy`.

    Args:
        model: What to copy: a maskable SB3 algorithm, or its policy. None plays at random until :meth:`update`.
        deterministic: Whether to take the most probable action; else actions are drawn from the network's distribution.
    """

    def __init__(self, model: Any = None, deterministic: bool = False) -> None:
        super().__init__(deterministic)
        self._shared: dict[str, Any] = {"network": None}  # with the copies that play in environments
        if model is not None:
            self.update(model)

    @property
    def network(self) -> Any:
        """The network; None before the first :meth:`update`."""
        return self._shared["network"]

    def update(self, model: Any) -> None:
        """Copy the weights that ``model`` (an algorithm or its policy) has now; later training doesn't change them.

        Raises:
            ValueError: ``model`` is none that takes masks and plain observations.
        """
        source = getattr(model, "policy", model)
        if not isinstance(source, MaskableActorCriticPolicy) or not isinstance(source.observation_space, Box):
            raise ValueError(
                f"{model!r} is not allowed; it is a model of sb3-contrib with masks, such as a MaskablePPO with an "
                "'MlpPolicy', or its policy"
            )
        if self.network is None:  # built anew: during training a policy holds tensors that can't be deep-copied
            with torch.random.fork_rng(devices=[]):  # the first weights are drawn, and thrown away
                self._shared["network"] = type(source)(**source._get_constructor_parameters()).to(source.device)
        self.network.load_state_dict(source.state_dict())
        self.network.set_training_mode(False)

    def sizes(self) -> tuple[int, int]:
        """Return the features and the actions that the network was built for."""
        return self.network.observation_space.shape[0], int(self.network.action_space.n)

    def probabilities(self, observation: NDArray[np.uint8], action_mask: Mask) -> NDArray[np.float32]:
        """Return the network's probabilities, float32 ``(n, actions)``."""
        with torch.no_grad():
            seen = torch.as_tensor(observation, device=self.network.device)
            return self.network.get_distribution(seen, action_mask).distribution.probs.cpu().numpy()

    def act(self, observation: NDArray[np.uint8], action_mask: Mask, infosets: Any, indices: Actions) -> Actions:
        """Choose actions, see :meth:`ProbabilityPolicy.act <spite_env.policies.ProbabilityPolicy.act>`."""
        if self.network is None:
            return random_legal_actions(action_mask, self._uniform(indices))
        return super().act(observation, action_mask, infosets, indices)


class SpiteVecEnv(VecEnv):
    """Games of one learner against drawn opponents, as a Stable-Baselines3 ``VecEnv``.

    Args:
        num_envs: Games played at once; 256 to 1024 make the most of a CPU.
        opponent: A policy, its name, or ``(policy or name, weight)`` pairs, from which each game draws its opponent.
        rules: The variant, or the name of a preset; default ``Rules()``.
        seed: An integer from 0 to 2**64 - 1. :meth:`seed` followed by :meth:`reset` repeats everything.
        settings: Those of :class:`~spite_env.envs.seat.SeatSettings`.

    Observations are uint8 ``(num_envs, features)`` of the learner's view, rewards float32 ``(num_envs,)``, all of them
    new arrays at each step. An ended game is dealt anew within the step. The info of a step that ended a game holds
    ``terminal_observation`` (the learner's view of the ended game), ``TimeLimit.truncated`` and ``episode``: ``r``,
    ``l`` and ``t`` (seconds since the environment was made) as SB3's ``Monitor`` has them, and all that
    :meth:`~spite_env.envs.seat.SeatGames.results` says. ``r`` is without shaping and rewards for cards.

    Attributes:
        games: The :class:`~spite_env.envs.seat.SeatGames` behind it.
        game: The :class:`~spite_env.game.Game` behind those.
        rules: The variant.

    Raises:
        ValueError: an argument that is not allowed.
    """

    def __init__(
        self,
        num_envs: int,
        opponent: Opponent = "greedy",
        rules: Rules | str | None = None,
        *,
        seed: int = 0,
        **settings: Any,
    ) -> None:
        self._next_seed: int | None = checked_integer("seed", seed, 0, 2**64 - 1)
        self.games = SeatGames(num_envs, opponent, rules, **settings)
        self.game = self.games.game
        self.rules = self.games.rules
        self.render_mode = None
        super().__init__(num_envs, self.game.observation.space, Discrete(self.game.actions.n))
        self._started = time.perf_counter()

    def set_payoff_sizes(self, sizes: Iterable[int] | None) -> None:
        """Move the curriculum on, see :class:`~spite_env.curriculum.Dealer`."""
        self.games.dealer.set_payoff_sizes(sizes)

    def set_weights(self, weights: Sequence[float]) -> None:
        """Draw the opponents of the games to come with other weights, see `SeatGames.set_weights`."""
        self.games.set_weights(weights)

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Have the next :meth:`reset` start from ``seed``; None leaves things as they are."""
        if seed is not None:
            self._next_seed = checked_integer("seed", seed, 0, 2**64 - 1)
        return [seed] * self.num_envs

    def reset(self) -> NDArray[np.uint8]:
        """Start all games and return the learner's first views, uint8 ``(num_envs, features)``.

        Options that were set before say from which positions: one for every row, or none for any.

        Raises:
            ValueError: an impossible position or option.
        """
        positions = [position for options in self._options for position in positions_module.in_options(options) or []]
        self.games.reset(self._next_seed, positions or None)
        self._next_seed = None
        self._reset_seeds()
        self._reset_options()
        return self.games.observe()

    def step_async(self, actions: NDArray[Any]) -> None:
        """Take the learner's actions, integers ``(num_envs,)``, for :meth:`step_wait`."""
        self._actions = actions

    def step_wait(self) -> tuple[NDArray[np.uint8], NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """Make the learner's decision and the opponents' answers in every game; deal ended games anew.

        Raises:
            ValueError: as `SeatGames.step` does.
        """
        earned, terminated, truncated = self.games.step(self._actions)
        dones = terminated | truncated
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        ended = np.flatnonzero(dones)
        if ended.size:
            elapsed = round(time.perf_counter() - self._started, 6)
            told = zip(ended.tolist(), rows_of(self.games.results(ended)), self.games.observe(ended), strict=True)
            for game, results, view in told:
                infos[game] = {
                    "terminal_observation": view,
                    "TimeLimit.truncated": bool(truncated[game]),
                    "episode": {"r": results["reward"], "l": results["length"], "t": elapsed, **results},
                }
            self.games.deal(ended)
        return self.games.observe(), earned.astype(np.float32), dones, infos

    def action_masks(self) -> NDArray[np.bool_]:
        """Return the learner's legal actions, bool ``(num_envs, actions)``, a new array."""
        return self.game.legal_actions().copy("K")

    def env_method(
        self, method_name: str, *method_args: Any, indices: int | Iterable[int] | None = None, **method_kwargs: Any
    ) -> list[Any]:
        """Call a method once. ``action_masks`` returns one array of all rows in a list, as SB3's masking allows."""
        if method_name == "action_masks":
            masks = self.action_masks()
            return [masks] if indices is None else list(masks[list(self._get_indices(indices))])
        method: Callable[..., Any] = getattr(self, method_name)
        result = method(*method_args, **method_kwargs)
        return [result for _ in self._get_indices(indices)]

    def has_attr(self, attr_name: str) -> bool:
        """Return whether the environment has an attribute."""
        return hasattr(self, attr_name)

    def get_attr(self, attr_name: str, indices: int | Iterable[int] | None = None) -> list[Any]:
        """Return an attribute, the same for every row."""
        value = getattr(self, attr_name)
        return [value for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: int | Iterable[int] | None = None) -> None:
        """Set an attribute for all rows."""
        setattr(self, attr_name, value)

    def env_is_wrapped(self, wrapper_class: type[Any], indices: int | Iterable[int] | None = None) -> list[bool]:
        """Return False for every row: there are no wrapped environments inside."""
        return [False for _ in self._get_indices(indices)]

    def close(self) -> None:
        """Do nothing: there is nothing to release."""
