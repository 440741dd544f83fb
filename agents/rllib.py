"""Modules trained with Ray's RLlib, as policies: ``agents.rllib:PATH`` names the learner in the checkpoint ``PATH``.

``PATH`` is the folder of an algorithm's checkpoint, or of another module in one, such as
``checkpoint/learner_group/learner/rl_module/frozen_0``. For example,
``spite-env duel agents.rllib:runs/rllib/checkpoint greedy --set payoff_size=2`` plays what
``python experiments/train_rllib.py`` has trained. Such a checkpoint holds pickles: load only those that you trust.
"""

from __future__ import annotations

from pathlib import Path

from spite_env.envs.rllib import ModulePolicy, load_module


def __getattr__(name: str) -> ModulePolicy:
    """Load the module in the folder ``name``, so that ``agents.rllib:PATH`` is the name of a policy."""
    if not Path(name).is_dir():
        raise AttributeError(f"agents.rllib has no {name!r}; agents.rllib:PATH is the policy in a checkpoint's folder")
    return ModulePolicy(load_module(name), deterministic=True)
