"""``python -m spite_env`` is the command ``spite-env``."""

import sys

from spite_env.cli import main

sys.exit(main())
