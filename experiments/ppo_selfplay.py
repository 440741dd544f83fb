"""Train a network by playing both seats against itself: proximal policy optimisation in one file.

    python experiments/ppo_selfplay.py --quick                          # some seconds, to see whether it runs
    python experiments/ppo_selfplay.py --name mine                      # a run in runs/mine, from nothing
    python experiments/ppo_selfplay.py --name pupil --teacher expert    # imitation first, which is much faster
    python experiments/ppo_selfplay.py --name mine --resume             # go on from the run's checkpoint

Every decision of both players is a sample (see ``spite_env.selfplay``). The details, in the order in which they happen:

1.  One network for both seats: an MLP with ReLU, from which a linear layer gives the logits and another one the value.
    Orthogonal weights: scale sqrt(2) inside, 0.01 for the logits, 1 for the value.
2.  It sees positions from the mover's side, with the piles sorted (``agents.network.SortedView``), so that the order of
    the piles, which means nothing, need not be learned.
3.  Illegal actions get no probability and no gradient: their logits are replaced before the softmax.
4.  With ``--teacher``, the network first learns to imitate a policy: the teacher plays both seats, now and then a move
    is drawn from the network instead, and the cross-entropy to the teacher's choice is minimised. The value learns as
    it does later.
5.  Rewards: 1 for a win, -1 for a loss, and ``--card-reward`` for each pay-off card, taken from the other player. It
    falls to 0 by ``--card-reward-until`` of the run, so that in the end nothing but winning counts.
6.  A curriculum, with ``--curriculum``: pay-off piles grow from 1 card to the full size within that share of the run.
7.  Advantages: GAE in which the sign turns with the mover. The discount counts the decisions of both players. A
    truncated game continues with the value of its last position.
8.  Each rollout is shuffled and cut into minibatches for ``--epochs`` passes. Advantages are normalised a minibatch.
9.  Loss: the clipped surrogate, plus half the squared error of the value, minus the entropy bonus, which falls
    linearly to ``--entropy-end``; with ``--anchor`` also the divergence from the network that imitated the teacher.
    Passes stop early where the policy has moved by ``--target-kl``.
10. Adam (epsilon 1e-5, fused), a learning rate that falls linearly, and gradients clipped by their global norm.

Everything is written to ``runs/<name>``: settings, TensorBoard logs, duels with greedy on the way (``curve.csv``), the
checkpoint, the weights for ``agents.network``, and the final duels. A seed repeats its run on the same machine; a
resumed run deals new games, so that it is not the run that was never stopped.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import tyro
from torch import nn
from torch.utils.tensorboard import SummaryWriter

from agents.network import About, Network, NetworkPolicy, SortedView, View
from experiments.reporting import machine, write_curve, write_duels
from spite_env import Rules
from spite_env.arena import DuelResult, duel
from spite_env.files import whole_file
from spite_env.policies import decide, make_policy
from spite_env.selfplay import SelfPlay, negamax_gae

Tensor = torch.Tensor

#: Logit of an illegal action.
ILLEGAL = -1e8


@dataclass(frozen=True)
class Args:
    """Everything that a training depends on."""

    name: str = "selfplay"
    """the run's folder in --runs"""
    runs: Path = Path("runs")
    """where the folders of runs are"""
    seed: int = 0
    """seed of the weights, the games and all choices"""
    quick: bool = False
    """train for some seconds only, on a small variant, to see whether it runs; other options still count"""
    resume: bool = False
    """go on from the run's checkpoint, if there is one"""
    threads: int = 1
    """torch's threads"""

    rules: str = "g4a"
    """preset of the rules"""
    side_depth: int = 3
    """side-pile cards shown below the tops"""
    card_reward: float = 0.05
    """reward for a pay-off card at the start"""
    card_reward_until: float = 0.8
    """share of the run within which it falls to 0"""
    curriculum: float = 0.0
    """share of the run within which pay-off piles grow to their full size; 0: they have it from the start"""

    decisions: int = 30_000_000
    """decisions of both players"""
    games: int = 512
    """games played at once"""
    rollout: int = 32
    """decisions of each game between updates"""
    hidden: tuple[int, ...] = (256, 256)
    """sizes of the hidden layers"""
    epochs: int = 3
    """passes over each rollout"""
    minibatch: int = 1024
    """decisions of a minibatch"""
    lr: float = 5e-4
    """learning rate at the start"""
    lr_end: float = 5e-5
    """learning rate at the end"""
    gamma: float = 0.997
    """discount of a decision"""
    gae_lambda: float = 0.95
    """lambda of the advantage estimates"""
    clip: float = 0.2
    """how far the probability of an action may move in one update"""
    entropy: float = 0.01
    """weight of the entropy bonus at the start"""
    entropy_end: float = 0.001
    """weight of the entropy bonus at the end"""
    value_weight: float = 0.5
    """weight of the value's loss"""
    max_norm: float = 0.5
    """largest norm of a gradient"""
    target_kl: float = 0.03
    """divergence from the policy that played, above which passes stop; 0: never"""

    teacher: str = ""
    """policy to imitate first"""
    lessons: int = 3_000_000
    """decisions of the imitation, which come before --decisions"""
    lesson_epochs: int = 2
    """passes over each rollout of the imitation"""
    lesson_minibatch: int = 512
    """decisions of a minibatch of the imitation"""
    lesson_lr: float = 1e-3
    """learning rate at the start of the imitation; it falls linearly to --lr"""
    explore: float = 0.1
    """share of the teacher's decisions that the network makes instead"""
    anchor: float = 0.0
    """weight of the divergence from the network that imitated the teacher, at the start; it falls to 0"""

    duel_every: int = 100
    """rollouts between duels with greedy, and between checkpoints"""
    duel_games: int = 400
    """games of these duels"""
    final_games: int = 4000
    """games of each duel at the end"""


QUICK = Args(
    name="selfplay-quick",
    rules="mini",
    decisions=6144,
    lessons=1024,
    games=64,
    rollout=16,
    minibatch=256,
    lesson_minibatch=256,
    hidden=(32, 32),
    duel_every=3,
    duel_games=20,
    final_games=40,
)


class Batch(NamedTuple):
    """Decisions, and what the update needs to know of them, each ``(n, ...)``."""

    inputs: Tensor
    mask: Tensor
    action: Tensor
    log_probability: Tensor
    value: Tensor
    advantage: Tensor
    returns: Tensor


class Agent(nn.Module):
    """The network: logits and a value from a common trunk."""

    def __init__(self, args: Args) -> None:
        super().__init__()
        self.args = args
        self.view = SortedView(Rules.preset(args.rules), "onehot", args.side_depth)
        sizes = [self.view.size, *args.hidden]
        layers = [nn.Linear(*pair) for pair in pairwise(sizes)]
        self.trunk = nn.Sequential(*(module for layer in layers for module in (layer, nn.ReLU())))
        self.policy = nn.Linear(sizes[-1], self.view.table.n)
        self.value = nn.Linear(sizes[-1], 1)
        for layer, scale in [*((layer, 2**0.5) for layer in layers), (self.policy, 0.01), (self.value, 1.0)]:
            nn.init.orthogonal_(layer.weight, scale)
            nn.init.zeros_(layer.bias)

    def forward(self, inputs: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return the logarithms of the probabilities ``(n, actions)``, and the values ``(n,)``."""
        features = self.trunk(inputs.float())
        logits = self.policy(features).masked_fill(~mask, ILLEGAL)
        return logits.log_softmax(dim=1), self.value(features)[:, 0]

    def export(self) -> Network:
        """Return the policy for ``agents.network``."""
        about = About(self.view.rules.to_dict(), "onehot", self.args.side_depth, "sorted", "relu")
        layers = [layer for layer in self.trunk if isinstance(layer, nn.Linear)]
        return Network.of_linear(about, [*layers, self.policy])


class Trainer:
    """A run: the network, its optimiser, the games, and how far it has come."""

    def __init__(self, args: Args) -> None:
        self.args = args
        self.folder = args.runs / args.name
        self.folder.mkdir(parents=True, exist_ok=True)
        torch.set_num_threads(args.threads)
        torch.manual_seed(args.seed)
        self.agent, self.anchor = Agent(args), Agent(args)
        self.view, self.rules = self.agent.view, self.agent.view.rules
        self.optimizer = torch.optim.Adam(self.agent.parameters(), lr=args.lr, eps=1e-5, fused=True)
        self.iteration, self.seconds = 0, 0.0
        self.curve: list[dict[str, float]] = []
        self.commands: list[str] = []
        per_rollout = args.games * args.rollout
        self.lessons = -(-args.lessons // per_rollout) if args.teacher else 0
        self.iterations = self.lessons + -(-args.decisions // per_rollout)
        if args.resume and (self.folder / "checkpoint.pt").exists():
            self.load()
        self.commands.append(machine()["command"])
        (self.folder / "config.json").write_text(
            json.dumps({**dataclasses.asdict(args), "machine": machine()}, indent=2, default=str) + "\n"
        )
        self.stream = SelfPlay(
            args.games, self.rules, side_depth=args.side_depth, seed=args.seed + (self.iteration << 32)
        )
        self.teacher = make_policy(args.teacher or "random")
        self.teacher.reset(self.rules, args.games, args.seed)
        self.writer = SummaryWriter(str(self.folder / "tensorboard"), purge_step=self.decisions)

    @property
    def decisions(self) -> int:
        """Decisions so far."""
        return self.iteration * self.args.games * self.args.rollout

    def load(self) -> None:
        """Go on from the checkpoint."""
        state = torch.load(self.folder / "checkpoint.pt", weights_only=True)
        self.agent.load_state_dict(state["agent"])
        self.anchor.load_state_dict(state["anchor"])
        self.optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["random"])
        self.iteration, self.seconds = state["iteration"], state["seconds"]
        self.curve, self.commands = state["curve"], state["commands"]

    def save(self) -> None:
        """Write the checkpoint, and the weights for ``agents.network``."""
        state = {
            "agent": self.agent.state_dict(),
            "anchor": self.anchor.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "random": torch.get_rng_state(),
            "iteration": self.iteration,
            "seconds": self.seconds,
            "curve": self.curve,
            "commands": self.commands,
            "decisions": self.decisions,
            "args": json.dumps(dataclasses.asdict(self.args), default=str),
            "machine": machine(),
        }
        with whole_file(self.folder / "checkpoint.pt") as file:
            torch.save(state, file)
        self.agent.export().save(self.folder / "network.npz")

    # One iteration

    def schedule(self) -> float:
        """Set what changes during the run, and return how much of the self-play is done, from 0 to 1."""
        args = self.args
        done = max(0, self.iteration - self.lessons) / max(1, self.iterations - self.lessons)
        self.stream.card_reward = args.card_reward * max(0.0, 1 - done / max(args.card_reward_until, 1e-9))
        size = self.rules.payoff_size
        if done < args.curriculum:
            size = 1 + int((size - 1) * done / args.curriculum)
        self.stream.dealer.set_payoff_sizes(None if size == self.rules.payoff_size else range(1, size + 1))
        lr = args.lr + (args.lr_end - args.lr) * done
        if self.iteration < self.lessons:
            lr += (args.lesson_lr - args.lr) * (1 - self.iteration / self.lessons)
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        return done

    def play(self, imitate: bool) -> Batch:
        """Play a rollout; to imitate, the teacher chooses most actions, and all that are to be learned."""
        args, stream = self.args, self.stream
        shape, everywhere = (args.rollout, args.games), np.arange(args.games)
        inputs = torch.empty((*shape, self.view.size), dtype=torch.uint8)
        mask = torch.empty((*shape, self.view.table.n), dtype=torch.bool)
        action = torch.empty(shape, dtype=torch.int64)
        log_probability = torch.empty(shape)
        values = np.empty((args.rollout + 1, args.games), np.float32)
        rewards, final_values = np.empty(shape, np.float32), np.zeros(shape, np.float32)
        ended, switched = np.empty(shape, np.bool_), np.empty(shape, np.bool_)
        with torch.no_grad():
            for t in range(args.rollout):
                view = self.view(stream.observe(), stream.action_masks())
                inputs[t], mask[t] = torch.from_numpy(view.inputs), torch.from_numpy(view.mask)
                log_probabilities, value = self.agent(inputs[t], mask[t])
                drawn = (log_probabilities.exp() / torch.empty_like(log_probabilities).exponential_()).argmax(dim=1)
                played = learned = drawn
                if imitate:
                    learned = torch.from_numpy(self.lesson(view))
                    played = torch.where(torch.rand(args.games) < args.explore, drawn, learned)
                action[t], values[t] = learned, value.numpy()
                log_probability[t] = log_probabilities.gather(1, learned[:, None])[:, 0]
                step = stream.step(view.actions[everywhere, played.numpy()])
                rewards[t], ended[t], switched[t] = step.rewards, step.ended, step.switched
                if step.truncated.any():
                    final_values[t, step.truncated] = self.value(stream.final_observation)
            values[-1] = self.value(stream.observe(), stream.action_masks())
        advantages, returns = negamax_gae(
            rewards,
            values,
            ended,
            switched,
            gamma=args.gamma,
            gae_lambda=args.gae_lambda,
            final_values=final_values,
        )
        rows = (inputs, mask, action, log_probability, *map(torch.from_numpy, (values[:-1], advantages, returns)))
        return Batch(*(row.flatten(0, 1) for row in rows))

    def lesson(self, view: View) -> np.ndarray[Any, np.dtype[np.intp]]:
        """Return what the teacher would do in every game, as the network's actions."""
        everywhere = np.arange(self.args.games)
        return self.view.of_actions(view, decide(self.teacher, self.args.teacher, self.stream.game, everywhere))

    def value(self, observation: np.ndarray[Any, np.dtype[np.uint8]], mask: Any = None) -> Any:
        """Return the values of positions to their movers; the mask of those that were cut is all false."""
        if mask is None:
            mask = np.zeros((len(observation), self.view.table.n), np.bool_)
        view = self.view(observation, mask)
        return self.agent(torch.from_numpy(view.inputs), torch.from_numpy(view.mask))[1].numpy()

    def update(self, batch: Batch, imitate: bool, done: float) -> dict[str, float]:
        """Learn from a rollout, and return what is worth a look."""
        args = self.args
        entropy_weight = args.entropy + (args.entropy_end - args.entropy) * done
        anchor_weight = 0.0 if imitate or not self.lessons else args.anchor * (1 - done)
        if anchor_weight:
            with torch.no_grad():
                anchored, _ = self.anchor(batch.inputs, batch.mask)
        notes: list[dict[str, float]] = []
        epochs, minibatch = (args.lesson_epochs, args.lesson_minibatch) if imitate else (args.epochs, args.minibatch)
        for _ in range(epochs):
            divergence = 0.0
            for rows in torch.randperm(len(batch.action)).tensor_split(-(-len(batch.action) // minibatch)):
                part = Batch(*(column[rows] for column in batch))
                log_probabilities, value = self.agent(part.inputs, part.mask)
                chosen = log_probabilities.gather(1, part.action[:, None])[:, 0]
                probabilities = log_probabilities.exp()
                entropy = -(probabilities * log_probabilities).sum(dim=1).mean()
                value_loss = 0.5 * (value - part.returns).square().mean()
                log_ratio = chosen - part.log_probability
                if imitate:
                    policy_loss = -chosen.mean()
                else:
                    advantage = (part.advantage - part.advantage.mean()) / (part.advantage.std() + 1e-8)
                    ratio = log_ratio.exp()
                    clipped = ratio.clamp(1 - args.clip, 1 + args.clip)
                    policy_loss = -torch.minimum(ratio * advantage, clipped * advantage).mean()
                    policy_loss = policy_loss - entropy_weight * entropy
                if anchor_weight:
                    distance = (probabilities * (log_probabilities - anchored[rows])).sum(dim=1).mean()
                    policy_loss = policy_loss + anchor_weight * distance
                self.optimizer.zero_grad()
                (policy_loss + args.value_weight * value_loss).backward()
                nn.utils.clip_grad_norm_(self.agent.parameters(), args.max_norm)
                self.optimizer.step()
                with torch.no_grad():
                    divergence = float((log_ratio.expm1() - log_ratio).mean())
                    note = {"policy": policy_loss, "value": value_loss, "entropy": entropy}
                    notes.append({**{key: float(loss) for key, loss in note.items()}, "divergence": divergence})
            if not imitate and 0 < args.target_kl < divergence:
                break
        means = {f"losses/{key}": float(np.mean([note[key] for note in notes])) for key in notes[0]}
        error = float((batch.returns - batch.value).var() / (batch.returns.var() + 1e-8))
        return {**means, "losses/explained_variance": 1 - error, "losses/updates": len(notes)}

    # The run

    def train(self) -> None:
        """Play and learn to the end."""
        args = self.args
        started = time.perf_counter() - self.seconds
        while self.iteration < self.iterations:
            imitate = self.iteration < self.lessons
            begun, before = time.perf_counter(), self.decisions
            done = self.schedule()
            batch = self.play(imitate)
            played = time.perf_counter()
            notes = self.update(batch, imitate, done)
            self.iteration += 1
            if self.iteration == self.lessons:
                self.anchor.load_state_dict(self.agent.state_dict())
            now = time.perf_counter()
            self.seconds = now - started
            notes["speed/decisions_per_second"] = (self.decisions - before) / (now - begun)
            notes["speed/share_of_playing"] = (played - begun) / (now - begun)
            notes |= self.games_played()
            for key, note in notes.items():
                self.writer.add_scalar(key, note, self.decisions)
            if self.iteration % args.duel_every == 0 or self.iteration in (self.lessons, self.iterations):
                self.measure(notes)
                self.save()
                started = time.perf_counter() - self.seconds  # measuring is no training
        self.writer.close()

    def games_played(self) -> dict[str, float]:
        """Return how the games ended that have ended since the last call."""
        results = self.stream.results()
        if not results.size:
            return {}
        decided = results["winner"] >= 0
        return {
            "games/draws": float(1 - decided.mean()),
            "games/length": float(results["length"].mean()),
            "games/payoff_left": float(results["payoff_left"].mean()),
        }

    def measure(self, notes: dict[str, float]) -> None:
        """Duel with greedy, and add a row to the curve."""
        result = self.duel("greedy", self.args.duel_games, seed=2_000_000 + self.args.seed)
        row = {"decisions": self.decisions, "seconds": round(self.seconds, 1)}
        row |= {"wins": result.wins, "draws": result.draws + result.truncated, "losses": result.losses}
        row |= {"length": result.mean_length, "entropy": notes["losses/entropy"]}
        row |= {"explained_variance": notes["losses/explained_variance"]}
        self.curve.append(row)
        self.writer.add_scalar("greedy/margin", result.margin, self.decisions)
        write_curve(self.folder / "curve.csv", self.curve)
        print(*(f"{key} {round(value, 3)}" for key, value in row.items()), sep=", ", flush=True)

    def duel(self, other: str, games: int, seed: int) -> DuelResult:
        """Duel the network, taking its most probable actions, with another policy."""
        policy = NetworkPolicy(self.agent.export())
        return duel(policy, other, self.rules, games=games, seed=seed, names=(self.args.name, other))

    def report(self) -> list[DuelResult]:
        """Duel with greedy and with the teacher, print the table, and write it."""
        others = dict.fromkeys(["greedy", self.args.teacher or "greedy"])
        results = [self.duel(other, self.args.final_games, seed=1_000_000 + self.args.seed) for other in others]
        details = {
            "settings": json.loads(json.dumps(dataclasses.asdict(self.args), default=str)),
            "commands": self.commands,
            "decisions": self.decisions,
            "training_seconds": round(self.seconds, 1),
        }
        print(write_duels(self.folder / "duels", results, details))
        return results


def main(arguments: Sequence[str] | None = None) -> list[DuelResult]:
    """Train and duel; return the duels."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    args = tyro.cli(Args, description=__doc__, args=given, default=QUICK if "--quick" in given else Args())
    trainer = Trainer(args)
    trainer.train()
    return trainer.report()


if __name__ == "__main__":
    main()
