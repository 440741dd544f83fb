"""The network on NumPy alone, its file of weights, the sorted view, and exports."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from agents.network import ACTIVATIONS, About, Network, NetworkPolicy, PlainView, SortedView
from helpers import heap, lay, played_games
from spite_env import Game, Rules
from spite_env.arena import duel
from spite_env.policies import make_policy

RULES = {"g4a": Rules(), "mini": Rules.mini(), "classic": Rules.classic(), "one center": Rules(center_piles=1)}


def some_network(rules: Rules, view: str = "sorted", activation: str = "relu", seed: int = 0) -> Network:
    about = About(rules.to_dict(), "onehot", 3, view, activation)
    kind = {"sorted": SortedView, "plain": PlainView}[view](rules, "onehot", 3)
    rng = np.random.default_rng(seed)
    sizes = [kind.size, 24, 16, kind.table.n]
    layers = [(rng.normal(size=pair) / pair[0] ** 0.3, rng.normal(size=pair[1])) for pair in pairwise(sizes)]
    return Network(about, layers)


def permuted(game: Game, rng: np.random.Generator) -> tuple[Game, list[list[int]]]:
    """Return the games with their piles in other orders, and those of the centre piles."""
    positions, orders = [], []
    for index in range(game.num_games):
        position = game.position(index)
        order = rng.permutation(game.rules.center_piles).tolist()
        position["centers"] = [position["centers"][center] for center in order]
        position["sides"] = [[piles[side] for side in rng.permutation(len(piles))] for piles in position["sides"]]
        positions.append(position)
        orders.append(order)
    return Game.from_positions(game.rules, positions), orders


def tops(game: Game, index: int) -> list[tuple[str, ...]]:
    """Return the cards of the mover's side piles that the network sees one by one."""
    position = game.position(index)
    return [tuple(pile[-4:]) for pile in position["sides"][position["turn"]]]


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
def test_the_sorted_view_does_not_depend_on_the_order_of_piles(rules: Rules) -> None:
    game = played_games(rules, 60, 1, 60)
    other, orders = permuted(game, np.random.default_rng(2))
    view = SortedView(rules, "onehot", 3)
    views = [view(batch.observe(), batch.legal_actions()) for batch in (game, other)]
    compared = 0
    for index in range(60):
        heights = [len(pile) for pile in game.position(index)["centers"]]
        piles = [tuple(pile[-4:]) for player in game.position(index)["sides"] for pile in player if pile]
        if len(set(heights)) < len(heights) or len(set(piles)) < len(piles):
            continue  # equal piles keep the order in which they stand
        compared += 1
        np.testing.assert_array_equal(views[0].inputs[index], views[1].inputs[index])
        np.testing.assert_array_equal(views[0].mask[index], views[1].mask[index])
        for action in np.flatnonzero(views[0].mask[index]).tolist():
            texts = [game.actions.text(int(each.actions[index, action])) for each in views]
            if "center" in texts[0]:
                here, there = (int(text.partition("center")[2]) for text in texts)
                assert orders[index][there] == here
    assert compared > 5 or rules == Rules.mini()


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
def test_every_legal_action_has_one_that_stands_for_it(rules: Rules) -> None:
    game = played_games(rules, 80, 3, 40)
    view = SortedView(rules, "onehot", 3)
    seen = view(game.observe(), game.legal_actions())
    legal = game.legal_actions()
    assert seen.mask.any(axis=1).all()
    np.testing.assert_array_equal(
        np.sort(seen.actions, axis=1), np.broadcast_to(np.arange(game.actions.n), legal.shape)
    )
    assert legal[np.nonzero(seen.mask)[0], seen.actions[seen.mask]].all()
    merged = 0
    for action in range(game.actions.n):
        games = np.flatnonzero(legal[:, action])
        chosen = view.of_actions(view(game.observe(indices=games), legal[games]), np.full(games.size, action))
        assert seen.mask[games, chosen].all()
        for index, stand_in in zip(games.tolist(), seen.actions[games, chosen].tolist(), strict=True):
            if stand_in == action:
                continue
            merged += 1
            centers = game.position(index)["centers"]
            same, here = game.actions.text(stand_in), game.actions.text(action)
            if "center" in same:
                assert same.partition(">")[0] == here.partition(">")[0]
                assert len(centers[int(same[-1])]) == len(centers[int(here[-1])])
            else:
                assert same.partition(">")[0] == here.partition(">")[0]
                assert tops(game, index)[int(same[-1])] == tops(game, index)[int(here[-1])] == ()
    assert merged or rules == Rules.mini()


def test_the_view_flags_where_the_next_cards_of_each_centre_pile_are() -> None:
    rules = Rules()
    position = lay(
        rules,
        payoff="9",
        opponent_payoff="2",
        hand="A3K",
        sides=["5T", "8"],
        opponent_sides=["", "4J"],
        centers=[heap(rules, height) for height in (2, 7, 0)],
    )
    game = Game.from_positions(rules, [position])
    flags = SortedView(rules, "onehot", 3)(game.observe(), game.legal_actions()).inputs[0, -216:].reshape(6, 3, 12)
    places = {"9": 0, "2": 1, "A": 2, "3": 2, "T": 3, "8": 3, "5": 4, "J": 5}
    expected = np.zeros((6, 3, 12), np.uint8)
    for center, height in enumerate((7, 2, 0)):
        for card, place in places.items():
            expected[place, center, (rules.characters.index(card) - height) % 12] = 1
    np.testing.assert_array_equal(flags, expected)


def test_views_leave_what_they_are_given_alone() -> None:
    game = played_games(Rules(), 20, 5, 60)
    for view in (SortedView(game.rules, "onehot", 3), PlainView(game.rules, "onehot", 3)):
        observation, mask = game.observe(), np.array(game.legal_actions())
        before = observation.tobytes(), mask.tobytes()
        view(observation, mask)
        assert (observation.tobytes(), mask.tobytes()) == before


@pytest.mark.parametrize("view", ["sorted", "plain"])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_probabilities_and_choices(view: str, activation: str) -> None:
    game = played_games(Rules(), 50, 6, 60)
    network = some_network(game.rules, view, activation)
    seen = network.view(game.observe(), game.legal_actions())
    x = seen.inputs.astype(np.float64)
    for weight, bias in network.layers[:-1]:
        x = x @ weight + bias
        x = np.tanh(x) if activation == "tanh" else x * (x > 0)
    weights = np.exp(x @ network.layers[-1][0] + network.layers[-1][1]) * seen.mask
    expected = weights / weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(np.exp(network.log_probabilities(seen)), expected, rtol=1e-3, atol=1e-6)

    best, drawn = NetworkPolicy(network), NetworkPolicy(network, deterministic=False)
    for policy in (best, drawn):
        policy.reset(game.rules, 50, 1)
    arguments = (game.observe(), game.legal_actions(), None, np.arange(50))
    np.testing.assert_array_equal(best.act(*arguments), seen.actions[np.arange(50), expected.argmax(axis=1)])
    counts = np.zeros(expected.shape)
    for _ in range(400):
        actions = drawn.act(*arguments)
        counts[np.arange(50), (seen.actions == actions[:, None]).argmax(axis=1)] += 1
    np.testing.assert_allclose(counts / 400, expected, atol=0.13)
    assert not counts[~seen.mask].any()


def test_a_file_of_weights_keeps_the_network(tmp_path: Path) -> None:
    network = some_network(Rules.mini())
    game = played_games(network.rules, 50, 6, 20)
    seen = network.view(game.observe(), game.legal_actions())
    for dtype, tolerance in (("float32", 0), ("float16", 5e-3)):
        path = tmp_path / f"{dtype}.npz"
        network.save(path, dtype)
        loaded = Network.load(path)
        assert loaded.about == network.about
        difference = np.exp(loaded.log_probabilities(seen)) - np.exp(network.log_probabilities(seen))
        assert np.abs(difference).max() <= tolerance
    name = f"agents.network:{path}"
    result = duel(name, "random", "mini", games=20)
    assert result.wins + result.draws + result.losses == 20


def test_weights_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    network = some_network(Rules.mini())
    weight, bias = network.layers[-1]
    for wrong, message in (
        ((weight * np.nan, bias), "not finite"),
        ((weight, bias[:, None]), "don't fit"),
        ((weight[:-1], bias), "don't fit"),
    ):
        with pytest.raises(ValueError, match=message):
            Network(network.about, [*network.layers[:-1], wrong])
    large = Network(network.about, [*network.layers[:-1], (weight + 1e6, bias)])
    with pytest.raises(ValueError, match="larger than its largest number"):
        large.save(tmp_path / "large.npz")
    assert not list(tmp_path.iterdir())


def test_foreign_games_and_files_are_refused(tmp_path: Path) -> None:
    network = some_network(Rules.mini())
    policy = NetworkPolicy(network)
    with pytest.raises(ValueError, match=r"was trained for games with ranks=3.*and these have ranks=12"):
        policy.reset(Rules(), 1, 0)
    policy.reset(replace(Rules.mini(), first_player=1, max_steps=9), 1, 0)
    assert duel(policy, "random", "mini", games=4, encoding="compact", side_depth=0).games == 4  # it asks for its own
    game = Game("mini", encoding="compact")
    with pytest.raises(ValueError, match=r"trained with \d+ features \(encoding='onehot', side_depth=3\)"):
        policy.act(game.observe(), game.legal_actions(), None, np.arange(1))
    bad = tmp_path / "bad.npz"
    np.savez(bad, weight0=np.zeros((2, 2)))
    with pytest.raises(ValueError, match=r"bad.npz is no file of weights"):
        Network.load(bad)
    bad.write_bytes(b"nothing")
    with pytest.raises(ValueError, match=r"bad.npz is no file of weights"):
        Network.load(bad)
    np.savez(bad, about=np.array([{}], object))
    with pytest.raises(ValueError, match=r"bad.npz is no file of weights"):
        Network.load(bad)
    network.save(bad)
    whole = bad.read_bytes()
    turned = bytes(255 - byte for byte in whole[200:260])
    for content in (b"", whole[: len(whole) // 2], whole[:200] + turned + whole[260:]):
        bad.write_bytes(content)
        with pytest.raises(ValueError, match=r"bad.npz is no file of weights"):
            Network.load(bad)
    with pytest.raises(FileNotFoundError):
        Network.load(tmp_path / "none.npz")
    with pytest.raises(ValueError, match=r"none\.npz"):
        make_policy(f"agents.network:{tmp_path / 'none.npz'}")
    with pytest.raises(ValueError, match=r"weights of shapes .* don't fit"):
        Network(network.about, network.layers[:2])
    with pytest.raises(ValueError, match="view='upside down' is not known"):
        Network(replace(network.about, view="upside down"), network.layers)
    with pytest.raises(ValueError, match="encoding='compact' is not allowed"):
        SortedView(Rules(), "compact", 3)


def test_the_policy_in_the_repository_plays_without_torch() -> None:
    code = (
        "import sys; from spite_env.arena import duel; result = duel('network', 'greedy', games=40, seed=5); "
        "assert result.wins > result.losses, result; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[1])
    weights = Path(__file__).parents[1] / "agents" / "network.npz"
    assert weights.stat().st_size < 2_000_000
    assert weights.with_suffix(".md").exists()


# -- training and exports --------------------------------------------------------------------------------------------


def maskable_model(rules: Rules, **options: Any) -> Any:
    pytest.importorskip("torch")
    pytest.importorskip("sb3_contrib")
    from sb3_contrib import MaskablePPO

    from spite_env.envs.sb3 import SpiteVecEnv

    env = SpiteVecEnv(8, "greedy", rules)
    return MaskablePPO("MlpPolicy", env, n_steps=16, batch_size=64, seed=0, policy_kwargs=options, device="cpu").learn(
        256
    )


@pytest.mark.parametrize("activation", ["Tanh", "ReLU"])
def test_an_exported_sb3_model_has_the_same_probabilities(activation: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    model = maskable_model(Rules(), net_arch=[32, 24], activation_fn=getattr(torch.nn, activation))
    from experiments.export import main

    model.save(tmp_path / "model.zip")
    game = played_games(Rules(), 60, 8, 80)
    mask = np.array(game.legal_actions())
    with torch.no_grad():
        seen = torch.as_tensor(np.ascontiguousarray(game.observe()))
        expected = model.policy.get_distribution(seen, mask).distribution.probs.numpy()
    for dtype, tolerance in (("float32", 1e-5), ("float16", 1e-3)):
        target = tmp_path / f"{dtype}.npz"
        network = main([str(tmp_path / "model.zip"), str(target), "--dtype", dtype, "--games", "4"])
        found = np.exp(network.log_probabilities(network.view(game.observe(), mask)))
        np.testing.assert_allclose(found, expected, atol=tolerance)
        assert "seed 0" in target.with_suffix(".md").read_text()

    weights = target.read_bytes()
    main([str(target), str(target), "--dtype", dtype, "--games", "6"])
    assert target.read_bytes() == weights
    assert "| 6 |" in target.with_suffix(".md").read_text()
    assert "seed 0" in target.with_suffix(".md").read_text()


@pytest.mark.parametrize("suffix", ["pt", "zip"])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--games 3", "--games: '3' is not allowed"),
        ("--against nobody", "unknown policy 'nobody'"),
        ("--games 4", "source.{suffix} can't be exported"),
    ],
)
def test_an_export_that_cannot_be_leaves_the_file_as_it_was(
    options: str, message: str, suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("sb3_contrib")
    pytest.importorskip("tyro")
    from experiments.export import main

    source, target = tmp_path / f"source.{suffix}", tmp_path / "target.npz"
    source.write_text("damaged")
    target.write_text("weights")
    with pytest.raises(SystemExit, match="2"):
        main([str(source), str(target), *options.split()])
    assert message.format(suffix=suffix) in capsys.readouterr().err
    assert target.read_text() == "weights"


def trained(tmp_path: Path, *options: str) -> NDArray[Any]:
    """Train as quickly as can be, and return the weights."""
    pytest.importorskip("tyro")
    pytest.importorskip("torch.utils.tensorboard")
    from experiments.ppo_selfplay import main

    results = main(["--quick", "--runs", str(tmp_path), *options])
    assert results[0].games == 40
    name = options[options.index("--name") + 1]
    with np.load(tmp_path / name / "network.npz") as file:
        return np.concatenate([file[key].ravel() for key in file.files if key != "about"])


def test_training_repeats_resumes_and_exports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch = pytest.importorskip("torch")
    first = trained(tmp_path, "--name", "one", "--seed", "1", "--teacher", "greedy", "--anchor", "0.1")
    again = trained(tmp_path, "--name", "two", "--seed", "1", "--teacher", "greedy", "--anchor", "0.1")
    other = trained(tmp_path, "--name", "three", "--seed", "2", "--curriculum", "0.5")
    np.testing.assert_array_equal(first, again)
    assert (first.shape, (first == other).all()) == (other.shape, False)

    state = torch.load(tmp_path / "three" / "checkpoint.pt", weights_only=True)
    resumed = trained(tmp_path, "--name", "three", "--seed", "2", "--resume", "--decisions", "8192")
    assert torch.load(tmp_path / "three" / "checkpoint.pt", weights_only=True)["iteration"] == state["iteration"] + 2
    assert (resumed != other).any()

    from experiments.export import main
    from experiments.ppo_selfplay import QUICK, Agent

    network = main([str(tmp_path / "one" / "checkpoint.pt"), str(tmp_path / "out.npz"), "--games", "4"])
    agent = Agent(QUICK)
    agent.load_state_dict(torch.load(tmp_path / "one" / "checkpoint.pt", weights_only=True)["agent"])
    game = played_games(Rules.mini(), 60, 8, 20)
    seen = agent.view(game.observe(), game.legal_actions())
    with torch.no_grad():
        expected = agent(torch.from_numpy(seen.inputs), torch.from_numpy(seen.mask))[0].exp().numpy()
    np.testing.assert_allclose(np.exp(network.log_probabilities(seen)), expected, atol=2e-3)
    told = (tmp_path / "out.md").read_text()
    assert told in capsys.readouterr().out
    assert "7,168 decisions, seed 1, 0 minutes, by `python" in told
    torch.save({"agent": 1}, tmp_path / "other.pt")
    for arguments, message in (
        (["none.pt", "out.npz"], "there is no file none.pt"),
        (["model.bin", "out.npz"], "model.bin should end in .pt or .zip"),
        ([str(tmp_path / "one" / "checkpoint.pt"), "out.zip"], "out.zip should end in .npz"),
        ([str(tmp_path / "other.pt"), str(tmp_path / "out.npz")], "other.pt is no checkpoint"),
    ):
        with pytest.raises(SystemExit):
            main(arguments)
        assert message in capsys.readouterr().err


def test_imitation_learns_what_the_teacher_does(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    trained(tmp_path, "--name", "pupil", "--teacher", "tests.test_network:last_action", "--lessons", "20000",
            "--decisions", "0", "--lr", "0.003", "--duel-every", "1000")  # fmt: skip
    game = played_games(Rules.mini(), 200, 9, 20)
    policy = NetworkPolicy(tmp_path / "pupil" / "network.npz")
    policy.reset(game.rules, 200, 0)
    arguments = (game.observe(), game.legal_actions(), None, np.arange(200))
    view = policy.network.view
    assert isinstance(view, SortedView)
    seen = view(*arguments[:2])
    wanted = view.of_actions(seen, LastAction().act(*arguments))
    chosen = view.of_actions(seen, policy.act(*arguments))
    assert (wanted == chosen).mean() > 0.9


class LastAction:
    """A teacher that is easy to imitate, and that nobody would follow by chance."""

    def reset(self, rules: Rules, num_games: int, seed: int) -> None:
        pass

    def act(self, observation: Any, action_mask: Any, infosets: Any, indices: Any) -> Any:
        return action_mask.shape[1] - 1 - action_mask[:, ::-1].argmax(axis=1)


def last_action() -> LastAction:
    return LastAction()
