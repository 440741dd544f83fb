"""Pictures of a game for people: :func:`describe` says what is seen, the other modules draw it."""

from spite_env.render.table import Table, describe
from spite_env.render.vector import svg

__all__ = ["Table", "describe", "svg"]
