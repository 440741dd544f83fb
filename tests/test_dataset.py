"""Datasets: the arrays of records against a walk of their own, and files."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import PLAYERS, Players, any_rules, over, played_games
from spite_env import Game, Rules, spite_and_malice_v0
from spite_env.cli import main
from spite_env.dataset import Dataset, from_records, load
from spite_env.record import Recorder, RecordError, write_records

PAIR = ("greedy", "random")

#: A match in which games and matches of every outcome are frequent.
MATCH = Rules.mini().replace(payoff_size=4, match_points=5, max_games=4, first_player="random", recycle="set_aside")

SHOWN = ("observation", "action_mask", "action", "player")


class Walk:
    """Plays a batch to its end, records it, and takes down every decision by itself, game by game."""

    def __init__(self, game: Game, seed: int = 0, forfeits: float = 0.0) -> None:
        self.records: list[dict[str, Any]] = []
        self.rows: list[list[dict[str, Any]]] = [[] for _ in range(game.num_games)]
        players, rng = Players(game.rules, game.num_games, seed), np.random.default_rng(seed)
        with Recorder(game, PAIR, self.records.append):
            while not over(game).all():
                losers = np.flatnonzero(~over(game) & (rng.random(game.num_games) < forfeits))
                game.forfeit(losers)
                live = np.flatnonzero(~over(game))
                actions = players.choose(game)
                views, masks, movers = game.observe(), game.legal_actions(), game.current_player
                for g in live.tolist():
                    row = (views[g], masks[g], actions[g], movers[g])
                    self.rows[g].append(dict(zip(SHOWN, row, strict=True)))
                game.step(actions[live], live)

    def column(self, name: str) -> Any:
        return np.array([row[name] for rows in self.rows for row in rows])


def assert_same(data: Dataset, other: Dataset) -> None:
    assert list(data.columns) == list(other.columns)
    for name, column in data.columns.items():
        np.testing.assert_array_equal(column, other[name], name)
        assert column.dtype == other[name].dtype
    np.testing.assert_array_equal(data.players, other.players)
    for name in ("rules", "encoding", "side_depth", "reward", "gamma"):
        assert getattr(data, name) == getattr(other, name)


def check(game: Game, *, forfeits: float = 0.0, reward: str = "win", gamma: float = 1.0) -> Dataset:
    """Compare the dataset of a batch of new games with the walk through it and with what the core says of its end."""
    walk = Walk(game, seed=3, forfeits=forfeits)
    table = game.observation
    data = from_records(walk.records, encoding=table.encoding, side_depth=table.side_depth, reward=reward, gamma=gamma)
    for name in SHOWN:
        np.testing.assert_array_equal(data[name], walk.column(name) if data.num_rows else data[name], name)
    assert data.num_rows == sum(map(len, walk.rows))
    lengths = [len(rows) for rows in walk.rows]
    np.testing.assert_array_equal(data["episode"], np.repeat(np.arange(game.num_games), lengths))

    winner, points = game.winner, np.abs(np.diff(game.points))[:, 0]
    pay = {"win": 1.0, "points": points, "margin": points / game.rules.payoff_size}[reward]
    earned = pay * ((winner == 0).astype(float) - (winner == 1))
    for g in range(game.num_games):
        for player in PLAYERS:
            rows = (data["episode"] == g) & (data["player"] == player)
            left = np.arange(np.count_nonzero(rows))[::-1]
            own = earned[g] if player == 0 else -earned[g]
            np.testing.assert_allclose(data["return"][rows], own * gamma**left, rtol=1e-6)
            np.testing.assert_array_equal(data["terminated"][rows], (left == 0) & game.terminated[g])
            np.testing.assert_array_equal(data["truncated"][rows], (left == 0) & game.truncated[g])
    return data


# -- against the walk ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reward", ["win", "points", "margin"])
def test_full_games(reward: str) -> None:
    data = check(Game(Rules(payoff_size=6), 12, seed=1), reward=reward)
    np.testing.assert_array_equal(data["game"], data["episode"])
    assert set(np.unique(np.sign(data["return"]))) >= {-1, 1}
    assert data["observation"].flags.c_contiguous
    assert data["action_mask"].flags.c_contiguous
    assert {name: column.dtype for name, column in data.columns.items()} == {
        "observation": np.uint8,
        "action_mask": np.bool_,
        "action": np.int64,
        "player": np.int8,
        "game": np.int64,
        "return": np.float32,
        "terminated": np.bool_,
        "truncated": np.bool_,
        "episode": np.int64,
    }


@given(rules=any_rules(), seed=st.integers(0, 2**32), gamma=st.sampled_from([0.0, 0.5, 1.0]))
@settings(max_examples=15)
def test_any_rules(rules: Rules, seed: int, gamma: float) -> None:
    check(Game(rules, 4, seed, encoding="compact", side_depth=1), reward="margin", gamma=gamma, forfeits=0.01)


def test_forfeits() -> None:
    game = Game(Rules.mini(), 40, seed=2, encoding="compact")
    data = check(game, forfeits=0.2)
    assert any(not (data["game"] == g).any() for g in range(40)), "no forfeit before a first decision"
    assert check(Game(Rules.mini(), 3, seed=2), forfeits=1.0).num_rows == 0


def test_truncated_games() -> None:
    data = check(Game(Rules.mini().replace(max_steps=7, payoff_size=4), 20, seed=2))
    assert data["truncated"].any()
    assert data["terminated"].any()
    assert not data["return"][data["truncated"]].any()


def test_games_from_positions() -> None:
    rules = Rules.classic()
    under_way = played_games(rules, 8, seed=5, most=60)
    check(Game.from_positions(rules, [under_way.position(g) for g in range(8)], seed=1))


def test_the_recorded_chance_counts_and_not_the_seed() -> None:
    walk = Walk(Game(Rules.classic().replace(payoff_size=8), 4, seed=1, encoding="compact"))
    records = [{**record, "seed": record["seed"] + 1} for record in walk.records]
    assert any(event["type"] == "return" for record in records for event in record["events"])
    np.testing.assert_array_equal(from_records(records, encoding="compact")["observation"], walk.column("observation"))


def test_more_records_than_are_replayed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    walk = Walk(Game(MATCH, 6, seed=4))
    whole = from_records(walk.records)
    monkeypatch.setattr("spite_env.dataset.BATCH", 4)
    assert_same(from_records(iter(walk.records)), whole)


# -- matches -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reward", ["win", "points"])
def test_the_episode_of_a_match_is_the_match(reward: str) -> None:
    game = Game(MATCH, 20, seed=4)
    data = check(game, reward=reward, gamma=0.9)
    assert data["terminated"].any()
    assert data["truncated"].any()
    assert data["game"].max() > data["episode"].max() == 19
    check(Game(MATCH, 10, seed=4), reward=reward, forfeits=0.02)


def test_a_match_whose_last_games_are_missing_is_truncated() -> None:
    records = next(
        records
        for records in (Walk(Game(MATCH, 1, seed)).records for seed in range(100))
        if len(records) > 1 and from_records(records)["terminated"].any()
    )
    whole, cut = from_records(records), from_records(records[:-1])
    rows = slice(cut.num_rows)
    np.testing.assert_array_equal(cut["observation"], whole["observation"][rows])
    assert whole["return"][rows].all()
    assert not cut["return"].any()
    assert not cut["terminated"].any()
    assert sorted(cut["player"][cut["truncated"]]) == [0, 1]


# -- using it ----------------------------------------------------------------------------------------------------------


def test_transitions_are_those_of_the_environment() -> None:
    """The order that the module tells of puts each player's transitions one after the other."""
    records: list[dict[str, Any]] = []
    env = spite_and_malice_v0.raw_env(MATCH, reward="points")
    players = Players(MATCH, 1, seed=5)
    seen: dict[tuple[int, int], list[tuple[Any, ...]]] = {}
    with Recorder(env.game, PAIR, records.append):
        for episode in range(3):
            env.reset(seed=episode)
            for agent in env.agent_iter():
                observation, reward, termination, truncation, _ = env.last()
                rows = seen.setdefault((episode, env.possible_agents.index(agent)), [])
                done = termination or truncation
                action = None if done else int(players.choose(env.game)[0])
                rows.append((observation["observation"], reward, termination, truncation, action))
                env.step(action)

    data = from_records(records, reward="points")
    order = np.lexsort((data["player"], data["episode"]))
    at = 0
    for episode, player in sorted(seen):
        for now, then in zip(seen[episode, player], seen[episode, player][1:], strict=False):
            row = order[at]
            assert data["action"][row] == now[-1]
            np.testing.assert_array_equal(data["observation"][row], now[0])
            _, reward, terminated, truncated, _ = then
            assert data["terminated"][row] == terminated
            assert data["truncated"][row] == truncated
            if terminated or truncated:
                assert data["return"][row] == reward
            else:
                assert reward == 0
                np.testing.assert_array_equal(data["observation"][order[at + 1]], then[0])
            at += 1
    assert at == data.num_rows


def test_decisions_of_one_player_or_of_winners() -> None:
    records = Walk(Game(MATCH, 8, seed=1)).records
    for record in records:  # some of them with swapped seats
        if record["seed"] % 2:
            record["players"].reverse()
    whole = from_records(records)
    assert whole.players.tolist() == [record["players"] for record in records]
    names = whole.players[whole["game"], whole["player"]]
    greedy = from_records(records, player="greedy")
    assert 0 < greedy.num_rows < whole.num_rows
    for name, column in whole.columns.items():
        np.testing.assert_array_equal(greedy[name], column[names == "greedy"])
    winners = from_records(records, winners=True, gamma=0.0)
    for name in SHOWN:
        np.testing.assert_array_equal(winners[name], whole[name][whole["return"] > 0])
    both = from_records(records, player="greedy", winners=True)
    np.testing.assert_array_equal(both["action"], whole["action"][(names == "greedy") & (whole["return"] > 0)])


def test_the_layout_of_the_observations_goes_with_them() -> None:
    data = from_records(Walk(Game(Rules.mini(), 2, seed=1)).records, side_depth=0)
    assert data.observation_table.slices == Game(Rules.mini(), side_depth=0).observation.slices


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def records() -> str:
    return json.dumps(Walk(Game(Rules.mini(), 5, seed=1)).records)


def test_a_wrong_record_is_named(records: str, tmp_path: Path) -> None:
    wrong = json.loads(records)
    del wrong[3]["events"][0]
    with pytest.raises(RecordError, match=r"record 3 \(seed \d+\): event 0: ") as caught:
        from_records(wrong)
    assert (caught.value.record, caught.value.event) == (3, 0)
    with pytest.raises(RecordError, match="record 0: None is no record"):
        from_records([None])  # type: ignore[list-item]
    file = tmp_path / "games.jsonl"
    file.write_text("{}\n")
    with pytest.raises(RecordError, match="line 1: format"):
        from_records(file)


def test_all_records_have_the_same_rules(records: str) -> None:
    other = Walk(Game(Rules.mini().replace(payoff_size=3), 1)).records
    with pytest.raises(RecordError, match=r"record 5: rules: 'payoff_size' is 3, expected 2 as in the records before"):
        from_records(json.loads(records) + other)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"encoding": "twohot"}, "encoding='twohot' is not allowed"),
        ({"side_depth": -1}, "side_depth=-1 is not allowed"),
        ({"reward": "money"}, "reward='money' is not allowed"),
        ({"gamma": 1.5}, "gamma=1.5 is not allowed"),
        ({"gamma": float("nan")}, "gamma=nan is not allowed"),
        ({"player": "nobody"}, "player='nobody' is in no record; the players are greedy, random"),
    ],
)
def test_wrong_arguments_are_refused(options: dict[str, Any], message: str, records: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_records(json.loads(records), **options)


def test_no_record_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no record"):
        from_records([])


# -- files -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["onehot", "compact"])
def test_files_round_trip(encoding: str, tmp_path: Path) -> None:
    records = Walk(Game(MATCH, 3, seed=4)).records
    data = from_records(records, encoding=encoding, side_depth=2, reward="margin", gamma=0.5, player="random")
    data.save(tmp_path / "data.npz")
    assert_same(load(tmp_path / "data.npz"), data)
    assert [file.name for file in tmp_path.iterdir()] == ["data.npz"]


def test_files_are_read_with_numpy_alone(records: str, tmp_path: Path) -> None:
    data = from_records(json.loads(records))
    data.save(tmp_path / "data.npz")
    with np.load(tmp_path / "data.npz", allow_pickle=False) as archive:
        for name, column in data.columns.items():
            np.testing.assert_array_equal(archive[name], column)
        assert json.loads(str(archive["rules"])) == Rules.mini().to_dict()
        assert archive["players"].tolist() == [list(PAIR)] * 5
        sizes = dict(zip(archive["slice_names"].tolist(), archive["slice_places"].tolist(), strict=True))
        start, stop = sizes["own_hand"]
        hand = archive["observation"][0, start:stop]
    deal = json.loads(records)[0]
    assert "".join(card * count for card, count in zip("A23K", hand.tolist(), strict=True)) == "".join(
        sorted(deal["deal"]["hands"][deal["first_player"]], key="A23K".index)
    )


def _rewritten(change: Callable[[dict[str, Any]], object]) -> Callable[[bytes], bytes]:
    """Return what changes the arrays of an archive."""

    def rewrite(data: bytes) -> bytes:
        with np.load(io.BytesIO(data)) as archive:
            arrays = dict(archive)
        change(arrays)
        file = io.BytesIO()
        np.savez(file, **arrays)
        return file.getvalue()

    return rewrite


def _foreign_zip(_: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("hello.txt", "hello")
    return file.getvalue()


def _pickled(arrays: dict[str, Any]) -> None:
    arrays["players"] = arrays["players"].astype(object)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: b"", "no whole .npz archive"),
        (lambda data: b"hello", "no whole .npz archive"),
        (lambda data: data[: len(data) // 2], "no whole .npz archive"),
        (lambda data: data[:300] + bytes([data[300] ^ 1]) + data[301:], ""),
        (_foreign_zip, "format"),
        (_rewritten(lambda arrays: arrays.pop("return")), "return"),
        (_rewritten(lambda arrays: arrays.update(format=np.array("other/1"))), "format 'other/1' is unknown"),
        (_rewritten(lambda arrays: arrays.update(action=arrays["action"][:-1])), "is .* of shape"),
        (_rewritten(lambda arrays: arrays.update(player=arrays["player"] * 1.0)), "player is float64 of shape"),
        (_rewritten(lambda arrays: arrays.update(side_depth=np.array(2))), "slice_places are .*; in this version"),
        (_rewritten(lambda arrays: arrays.update(rules=np.array('{"ranks": 99}'))), "ranks=99"),
        (_rewritten(lambda arrays: arrays.update(rules=np.array("{"))), ""),
        (_rewritten(_pickled), "allow_pickle=False"),
    ],
)
def test_damaged_and_foreign_files_are_refused(
    damage: Callable[[bytes], bytes], message: str, records: str, tmp_path: Path
) -> None:
    file = tmp_path / "data.npz"
    from_records(json.loads(records)).save(file)
    damaged = damage(file.read_bytes())
    file.write_bytes(damaged)
    with pytest.raises(ValueError, match=f"data.npz' is no dataset, or a damaged one: .*{message}"):
        load(file)
    assert file.read_bytes() == damaged


def test_any_flipped_byte_is_found_or_harmless(records: str, tmp_path: Path) -> None:
    file = tmp_path / "data.npz"
    data = from_records(json.loads(records), encoding="compact")
    data.save(file)
    whole = file.read_bytes()
    rng = np.random.default_rng(0)
    refused = 0
    for place in rng.integers(len(whole), size=150).tolist():
        damaged = bytearray(whole)
        damaged[place] ^= 1 << rng.integers(8)
        file.write_bytes(damaged)
        try:
            found = load(file)
        except ValueError as error:
            assert "data.npz" in str(error)  # noqa: PT017 (it need not be raised)
            refused += 1
        else:
            assert_same(found, data)
    assert refused > 100


def test_a_failed_save_leaves_the_old_file(records: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = from_records(json.loads(records))
    file = tmp_path / "data.npz"
    file.write_text("precious")

    def fail(*_: Any, **__: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(np, "savez_compressed", fail)
    with pytest.raises(OSError, match="no space left"):
        data.save(file)
    assert file.read_text() == "precious"
    assert list(tmp_path.iterdir()) == [file]


def test_missing_files_are_not_called_damaged(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nowhere.npz")
    with pytest.raises(FileNotFoundError):
        from_records(tmp_path / "nowhere.jsonl")


# -- the command -------------------------------------------------------------------------------------------------------


def test_the_command_writes_what_the_function_returns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    games, out = str(tmp_path / "games.jsonl"), str(tmp_path / "games.npz")
    assert main(["duel", *PAIR, "--rules", "mini", "--games", "20", "--json", "--records", games]) == 0
    capsys.readouterr()
    words = ["--encoding=compact", "--side-depth=1", "--reward=points", "--gamma=0.9", "--player=greedy", "--winners"]
    assert main(["dataset", games, out, *words]) == 0
    options = {"encoding": "compact", "side_depth": 1, "reward": "points", "gamma": 0.9}
    data = from_records(games, **options, player="greedy", winners=True)  # type: ignore[arg-type]
    assert_same(load(out), data)
    assert capsys.readouterr().out == f"20 records, {data.num_rows} decisions\n"


def test_the_command_never_overwrites_its_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "games.jsonl"
    write_records(file, Walk(Game(Rules.mini(), 2)).records)
    before = file.read_bytes()
    assert main(["dataset", str(file), str(file)]) == 2
    assert "ends in .npz" in capsys.readouterr().err
    assert file.read_bytes() == before


def test_the_command_names_a_wrong_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = Walk(Game(Rules.mini(), 2)).records
    records[1]["result"]["points"] = [9, 9]
    file, out = tmp_path / "games.jsonl", tmp_path / "games.npz"
    write_records(file, records)
    out.write_text("precious")
    assert main(["dataset", str(file), str(out)]) == 2
    assert "record 1" in capsys.readouterr().err
    assert out.read_text() == "precious"
