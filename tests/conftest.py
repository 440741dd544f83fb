"""How much the property tests try.

The default is deterministic. To try much more: ``pytest -m soak --hypothesis-profile=soak``, or the profile alone.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # windows that nobody sees

COMMON = {"deadline": None, "database": None, "suppress_health_check": [HealthCheck.too_slow]}

settings.register_profile("default", derandomize=True, max_examples=60, **COMMON)
settings.register_profile("soak", max_examples=2000, **COMMON)
settings.load_profile("default")
