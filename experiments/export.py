"""Export a trained network to a small file of weights, which ``agents.network`` plays on NumPy alone.

    python experiments/export.py runs/mine/checkpoint.pt agents/network.npz     # of experiments/ppo_selfplay.py
    python experiments/export.py runs/train/model.zip mine.npz --rules g4a      # a MaskablePPO of Stable-Baselines3
    python experiments/export.py mine.npz mine.npz --against expert             # duels anew, of weights once exported

The weights are written as float16 (``--dtype float32`` keeps them as they are): the probabilities of actions then
differ by less than 0.001 or so. Beside them, in a ``.md`` and a ``.json``, stand the command and the settings of the
training, its length, and duels. A model of Stable-Baselines3 doesn't know the rules of the games that it
was trained in, nor their encoding: say it where they are not the default.
"""

from __future__ import annotations

import argparse
import json
import pickle
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from agents.network import About, Network, NetworkPolicy
from experiments.options import destination, even_number, known_policy, seed_number
from experiments.ppo_selfplay import Agent, Args
from experiments.reporting import write_duels
from spite_env import Rules
from spite_env.arena import duel


def from_sb3(model: Any, rules: Rules, encoding: str = "onehot", side_depth: int = 3) -> Network:
    """Return the policy of a MaskablePPO model (or of its policy) with an MLP.

    Raises:
        ValueError: another kind of network, or one of other games.
    """
    policy = getattr(model, "policy", model)
    activation = {nn.Tanh: "tanh", nn.ReLU: "relu"}.get(policy.activation_fn)
    if activation is None or type(policy.features_extractor).__name__ != "FlattenExtractor":
        raise ValueError("only networks of linear layers with tanh or relu can be exported")
    about = About(rules.to_dict(), encoding, side_depth, "plain", activation)
    modules = [*policy.mlp_extractor.policy_net, policy.action_net]
    return Network.of_linear(about, [module for module in modules if isinstance(module, nn.Linear)])


def from_checkpoint(path: Path) -> tuple[Network, dict[str, Any]]:
    """Return the policy in a checkpoint of ``experiments/ppo_selfplay.py``, and the notes on its training.

    Raises:
        ValueError: the file holds something else.
    """
    state = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(state, dict) or "agent" not in state or "args" not in state:
        raise ValueError(f"{path} is no checkpoint of experiments/ppo_selfplay.py")
    settings = json.loads(state["args"])
    agent = Agent(Args(**settings))
    agent.load_state_dict(state["agent"])
    notes = ("commands", "decisions", "seconds", "machine", "curve")
    return agent.export(), {key: state[key] for key in notes} | {"settings": settings}


def from_model(path: Path, preset: str, encoding: str, side_depth: int) -> tuple[Network, dict[str, Any]]:
    """Return the policy in a model of Stable-Baselines3, and what is known of its training.

    Raises:
        ValueError: the file holds something else, or a network of other games.
    """
    from sb3_contrib import MaskablePPO

    model = MaskablePPO.load(path, device="cpu")
    notes = path.with_name("config.json")
    commands = [json.loads(notes.read_text())["machine"]["command"]] if notes.is_file() else []
    training = {"decisions": int(model.num_timesteps), "settings": {"seed": model.seed}, "commands": commands}
    return from_sb3(model, Rules.preset(preset), encoding, side_depth), training


def from_weights(path: Path) -> tuple[Network, dict[str, Any]]:
    """Return the network of a file of weights, and the notes on its training that stand beside it.

    Raises:
        ValueError: the file holds something else.
        OSError: there are no notes.
    """
    return Network.load(path), json.loads(path.with_suffix(".json").read_text())["training"]


def main(arguments: Sequence[str] | None = None) -> Network:
    """Export, duel, and write down where the weights come from; return the network as it was written."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "source", type=Path, help="checkpoint (.pt) of ppo_selfplay.py, model (.zip) of MaskablePPO, or weights (.npz)"
    )
    parser.add_argument("target", type=destination, help="file of weights to write (.npz)")
    parser.add_argument("--dtype", choices=["float16", "float32"], default="float16", help="default float16")
    parser.add_argument("--rules", default="g4a", help="preset of a .zip's rules (default g4a)")
    parser.add_argument("--encoding", default="onehot", help="encoding of a .zip's observations (default onehot)")
    parser.add_argument("--side-depth", type=int, default=3, help="side-pile cards that these show (default 3)")
    parser.add_argument(
        "--against", nargs="+", type=known_policy, default=["greedy"], help="policies to duel with (default greedy)"
    )
    parser.add_argument("--games", type=even_number, default=4000, help="games of each duel (default 4000)")
    parser.add_argument("--seed", type=seed_number, default=3_000_000, help="seed of the duels (default 3000000)")
    args = parser.parse_args(arguments)
    read: dict[str, Callable[[Path], tuple[Network, dict[str, Any]]]] = {
        ".pt": from_checkpoint,
        ".zip": partial(from_model, preset=args.rules, encoding=args.encoding, side_depth=args.side_depth),
        ".npz": from_weights,
    }
    for path, suffixes in ((args.source, tuple(read)), (args.target, (".npz",))):
        if path.suffix not in suffixes:
            parser.error(f"{path} should end in {' or '.join(suffixes)}")
    if not args.source.is_file():
        parser.error(f"there is no file {args.source}")
    try:
        network, training = read[args.source.suffix](args.source)
    except (OSError, ValueError, RuntimeError, pickle.UnpicklingError) as error:
        parser.error(f"{args.source} can't be exported: {error}")
    network.save(args.target, args.dtype)
    written = Network.load(args.target)
    results = [
        duel(
            NetworkPolicy(written),
            other,
            written.rules,
            games=args.games,
            seed=args.seed,
            names=(args.target.stem, other),
        )
        for other in args.against
    ]
    text = write_duels(args.target.with_suffix(""), results, {"training": training})
    text += f"\nTrained for {training['decisions']:,} decisions, seed {training['settings']['seed']}"
    text += f", {training['seconds'] / 60:.0f} minutes" if "seconds" in training else ""
    text += "".join(
        f", {'then' if number else 'by'} `{command}`" for number, command in enumerate(training["commands"])
    )
    text += "\n"
    args.target.with_suffix(".md").write_text(text)
    print(text)
    return written


if __name__ == "__main__":
    main()
