"""Spite & Malice as a reinforcement-learning environment: one vectorised core for one game or ten thousand."""

from spite_env.actions import ActionTable
from spite_env.envs import spite_and_malice_v0
from spite_env.game import Game
from spite_env.policies import Policy, random_legal_actions
from spite_env.rules import Rules

__version__ = "0.1.0"
__all__ = ["ActionTable", "Game", "Policy", "Rules", "random_legal_actions", "spite_and_malice_v0"]
