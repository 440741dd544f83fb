"""How `make docs` builds the documentation. What pages say in double braces comes from the code and the results."""

import json
import re
from pathlib import Path

import spite_env
from agents.network import WEIGHTS, Network
from spite_env import Game, Rules
from spite_env.rewards import REWARDS

ROOT = Path(__file__).parent.parent

project = "spite_env"
author = "The spite_env authors"
copyright = author
release = spite_env.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
templates_path = ["_templates"]
html_theme = "furo"
html_title = f"spite_env {release}"

# The reference needs none of the libraries behind the extras. Docstrings say types, with shapes, in words.
autodoc_mock_imports = ["choix", "matplotlib", "ray", "rich", "sb3_contrib", "stable_baselines3", "torch"]
autodoc_default_options = {"members": True}
autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_use_ivar = True
napoleon_attr_annotations = False

# Every reference has to lead somewhere, but for those to what others have written.
nitpicky = True
nitpick_ignore_regex = [("py:class", r"(?!spite_env|agents).*")]

game, network = Game(), Network.load(WEIGHTS)
ladder = json.loads((ROOT / "experiments" / "results" / "ladder.json").read_text())
layers = [network.view.size, *(bias.size for _, bias in network.layers)]

myst_enable_extensions = ["substitution"]
myst_heading_anchors = 3
myst_substitutions = {
    "rules_table": Rules.describe(),
    "observation_table": game.observation.describe(),
    "action_table": game.actions.describe(),
    "rewards_table": "\n".join(
        ["| reward | of the winner |", "|---|---|", *(f"| `{name}` | {text} |" for name, text in REWARDS.items())]
    ),
    "num_features": game.observation.n,
    "num_actions": game.actions.n,
    "pins": dict(re.findall(r"^([\w-]+)==([^;\s]+)", (ROOT / "constraints.txt").read_text(), flags=re.MULTILINE)),
    "ladder_command": f"```bash\n{ladder['machine']['command']}\n```",
    "ladder_minutes": f"{ladder['tournament']['seconds'] / 60:.0f}",
    "ladder_cores": ladder["machine"]["cores"],
    "network_layers": ", ".join(map(str, layers)),
    "network_weights": f"{sum(weight.size + bias.size for weight, bias in network.layers):,}",
    "network_view": f"`{network.about.view}`",
    "network_encoding": f"`{network.about.encoding}`",
}
