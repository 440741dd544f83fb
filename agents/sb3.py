"""Models trained with Stable-Baselines3, as policies: ``agents.sb3:PATH`` names the one in the file ``PATH``.

For example, ``spite-env duel agents.sb3:runs/demo/model.zip greedy`` plays what ``make demo`` has trained.
"""

from __future__ import annotations

from pathlib import Path

from sb3_contrib import MaskablePPO

from spite_env.envs.sb3 import ModelPolicy


class Sb3Policy(ModelPolicy):
    """A trained model.

    Args:
        path: The model's zip file.
        deterministic: Whether to take the most probable action instead of drawing one.

    Raises:
        FileNotFoundError: no such file.
    """

    def __init__(self, path: str | Path, deterministic: bool = True) -> None:
        super().__init__(MaskablePPO.load(path, device="cpu"), deterministic)


def __getattr__(name: str) -> Sb3Policy:
    """Load the model in the file ``name``, so that ``agents.sb3:PATH`` is the name of a policy."""
    if not name.endswith(".zip"):
        raise AttributeError(f"agents.sb3 has no {name!r}; agents.sb3:PATH is the policy in a .zip file")
    if not Path(name).is_file():
        raise AttributeError(f"there is no file {name!r}")
    return Sb3Policy(name)
