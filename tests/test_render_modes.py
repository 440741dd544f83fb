"""The render modes of both environments: what they return, from whose seat, the window, films, notebooks."""

from __future__ import annotations

import copy
import pickle
import random
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import gymnasium
import numpy as np
import pytest

from helpers import PLAYERS, played_games, rehidden
from spite_env import Game, Rules, spite_and_malice_v0
from spite_env.envs.gym import SpiteEnv
from spite_env.render import describe, svg
from spite_env.render.modes import RENDER_MODES

MINI = Rules.mini()
AGENTS = ("player_0", "player_1")
PICTURES = ("ansi", "svg", "rgb_array")


def advance(env: Any) -> None:
    """Make the first legal decision."""
    env.step(int(env.last()[0]["action_mask"].nonzero()[0][0]))


def window() -> Any:
    """Return what the window shows, as an array; None if there is no window."""
    import pygame

    surface = pygame.display.get_surface() if pygame.display.get_init() else None
    return None if surface is None else pygame.surfarray.array3d(surface).swapaxes(0, 1)


def same(first: Any, second: Any) -> bool:
    return bool(np.array_equal(first, second))


def need_pygame(mode: str) -> None:
    if mode in ("rgb_array", "human"):
        pytest.importorskip("pygame")


# -- modes and perspectives --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", PICTURES)
def test_each_mode_returns_its_kind_of_picture(mode: str) -> None:
    need_pygame(mode)
    single = gymnasium.make("SpiteAndMalice-v0", rules=MINI, render_mode=mode)
    for env in (spite_and_malice_v0.env(MINI, mode), single):
        env.reset(seed=1)
        picture = env.render()
        if mode == "rgb_array":
            assert (picture.dtype, picture.ndim, picture.shape[2]) == (np.uint8, 3, 3)
        else:
            assert isinstance(picture, str)
            assert picture.startswith("<svg" if mode == "svg" else "┌")
        env.close()
        env.close()


@pytest.mark.parametrize("mode", PICTURES)
@pytest.mark.parametrize("rules", [MINI, Rules(match_points=50)])
def test_nothing_drawn_for_a_player_depends_on_a_card_it_cannot_see(mode: str, rules: Rules) -> None:
    need_pygame(mode)
    rng = random.Random(2)
    game = played_games(rules, 2 if mode == "rgb_array" else 8, seed=6, most=60)
    everything = 0
    for index in range(game.num_games):
        position = game.position(index)
        for viewer in PLAYERS:
            changed = rehidden(position, viewer, rng)
            env, single = (
                spite_and_malice_v0.env(rules, mode, perspective=AGENTS[viewer]),
                SpiteEnv("random", rules, render_mode=mode, seat=position["turn"]),
            )
            debugging = spite_and_malice_v0.env(rules, mode, perspective="all")
            drawn: list[list[Any]] = [[], []]
            for pictures, variant in zip(drawn, (position, changed), strict=True):
                for each in (env, single, debugging) if viewer == position["turn"] else (env, env, debugging):
                    each.reset(seed=1, options={"position": variant})
                    pictures.append(each.render())
            (own, learners, every), (own_changed, learners_changed, every_changed) = drawn
            assert same(own, own_changed)
            assert same(learners, learners_changed)
            everything += not same(every, every_changed)
    if mode != "rgb_array":  # it shows no more than the top of the stock
        assert everything


def test_a_perspective_stays_in_its_seat() -> None:
    envs = {name: spite_and_malice_v0.env(render_mode="ansi", perspective=name) for name in ("mover", *AGENTS, "all")}
    movers = set()
    for _ in range(25):
        for env in envs.values():
            advance(env) if env.unwrapped.agents else env.reset(seed=2)
        texts = {name: env.render() for name, env in envs.items()}
        mover = envs["mover"].agent_selection
        movers.add(mover)
        assert texts["mover"] == texts[mover]
        assert len(set(texts.values())) == 3
        for player, agent in enumerate(AGENTS):
            hand = " ".join(envs["mover"].unwrapped.position()["hands"][player])
            assert texts[agent].split("stock")[1].split("hand")[1].startswith(f"    {hand} ")
            assert f"hand    {hand} " in texts["all"]
        assert "##" not in texts["all"]
    assert movers == set(AGENTS)


def test_the_learner_can_look_at_everything() -> None:
    env = SpiteEnv("random", "mini", render_mode="ansi", perspective="all", seat=1)
    env.reset(seed=3)
    assert "##" not in str(env.render())
    assert "learner" in str(env.render()).split("stock")[1]


@pytest.mark.parametrize("make", [spite_and_malice_v0.env, spite_and_malice_v0.raw_env, SpiteEnv])
def test_modes_and_perspectives_that_do_not_exist_are_refused(make: Any) -> None:
    for mode in ("rgb", "film", "", 3, True):
        with pytest.raises(ValueError, match=r"render_mode=.* is not allowed; it is None or one of \['human', 'ansi'"):
            make(render_mode=mode)
    for perspective in ("player_2", 0, None, "everything"):
        with pytest.raises(ValueError, match=r"perspective=.* is not allowed; it is .*'all'"):
            make(perspective=perspective)


def test_metadata_names_all_modes() -> None:
    for env in (spite_and_malice_v0.env(), SpiteEnv()):
        assert env.metadata["render_modes"] == list(RENDER_MODES) == ["human", *PICTURES]
        assert env.metadata["render_fps"] > 0


@pytest.mark.parametrize("mode", ["human", "rgb_array"])
@pytest.mark.parametrize("make", [spite_and_malice_v0.env, SpiteEnv])
def test_without_pygame_the_error_says_what_to_install(make: Any, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pygame", None)
    with pytest.raises(ImportError, match=r"pip install 'spite_env\[render\]'"):  # noqa: PT012
        env = make(render_mode=mode)
        assert mode == "rgb_array"  # made, since libraries ask for this mode without ever rendering
        env.reset(seed=1)
        env.render()


# -- the last move -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seat", PLAYERS)
def test_the_learner_sees_what_the_opponent_did_last(seat: int) -> None:
    env = SpiteEnv("random", "mini", render_mode="ansi", seat=seat, illegal="lose")
    heard: list[str] = []

    def listen(kind: str, games: Any, **details: Any) -> None:
        if kind in ("play", "discard"):
            heard.append(("learner: " if details["player"][0] == seat else "RandomPolicy: ") + kind)
        elif kind in ("deal", "position"):
            heard.clear()

    env.games.game.listener = listen
    answered = 0
    for seed in range(6):
        env.reset(seed=seed)
        done = False
        while not done:
            last = str(env.render()).split("last: ")[1:]
            if heard:
                answered += heard[-1].startswith("Random")
                who, what = last[0].split(": ")
                assert f"{who}: {'discard' if what.startswith('discard') else 'play'}" == heard[-1]
            else:
                assert not last
            done = any(env.step(env.action_masks().argmax())[2:4])
    assert answered
    env.reset(seed=7)
    env.step(env.action_masks().argmin())
    assert str(env.render()).endswith("last: learner: forfeits")


# -- the window --------------------------------------------------------------------------------------------------------


def test_the_window_follows_every_step_by_itself() -> None:
    pygame = pytest.importorskip("pygame")
    from spite_env.render.raster import rgb_array

    env = spite_and_malice_v0.env("classic", "human")
    for _ in range(4):
        advance(env) if env.unwrapped.agents else env.reset(seed=2)
        raw = env.unwrapped
        last = raw._last_move
        np.testing.assert_array_equal(window(), rgb_array(describe(raw.game, last_move=last), 500))
    assert env.render() is None
    assert pygame.display.get_caption()[0] == "Spite & Malice"
    twin = pickle.loads(pickle.dumps(copy.deepcopy(env)))
    advance(twin)
    env.close()
    assert window() is None
    env.close()

    single = SpiteEnv("random", "mini", render_mode="human")
    single.reset(seed=4)
    before = window()
    single.step(single.action_masks().argmax())
    assert not same(before, window())
    assert single.render() is None
    single.close()
    assert window() is None


def test_a_closed_window_stays_closed_and_the_game_goes_on() -> None:
    pygame = pytest.importorskip("pygame")
    env = spite_and_malice_v0.env("mini", "human")
    env.reset(seed=2)
    pygame.event.post(pygame.event.Event(pygame.QUIT))
    for agent in env.agent_iter():
        _, _, termination, truncation, _ = env.last()
        if termination or truncation:
            env.step(None)
        else:
            advance(env)
            assert window() is None, agent
    other = spite_and_malice_v0.env("mini", "human")
    other.reset(seed=2)
    assert window() is not None
    other.close()


@pytest.mark.skipif(sys.platform != "linux", reason="what a display is depends on the system")
@pytest.mark.parametrize("driver", ["no such driver", None])
def test_without_a_display_the_error_says_what_does_without(
    driver: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    pygame = pytest.importorskip("pygame")
    pygame.display.quit()
    for name in ("SDL_VIDEODRIVER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    if driver:
        monkeypatch.setenv("SDL_VIDEODRIVER", driver)
    env = spite_and_malice_v0.env("mini", "human")
    with pytest.raises(RuntimeError, match=r"'human' needs a display .*; 'ansi', 'svg' and 'rgb_array' do without"):
        env.reset(seed=2)


# -- films and notebooks -----------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Setting the shape on a NumPy array:DeprecationWarning:moviepy")
def test_gymnasium_records_a_film(tmp_path: Path) -> None:
    pytest.importorskip("pygame")
    moviepy = pytest.importorskip("moviepy")
    env = gymnasium.make("SpiteAndMalice-v0", rules="mini", opponent="random", render_mode="rgb_array")
    env = gymnasium.wrappers.RecordVideo(env, str(tmp_path / "films"), episode_trigger=lambda _: True)
    info = env.reset(seed=3)[1]
    frames, done = 1, False
    while not done:
        *_, terminated, truncated, info = env.step(env.action_space.sample(info["action_mask"]))
        done = terminated or truncated
        frames += 1
    env.close()
    [film] = tmp_path.glob("films/*.mp4")
    clip = moviepy.VideoFileClip(str(film))
    assert clip.fps == SpiteEnv.metadata["render_fps"]
    assert clip.n_frames == frames
    clip.close()


def test_a_notebook_shows_games_by_itself() -> None:
    raw, env = spite_and_malice_v0.raw_env(MINI), spite_and_malice_v0.env(MINI)
    single, game = SpiteEnv("random", MINI, seat=1), Game(MINI, num_games=3, seed=1)
    assert raw._repr_html_() is None
    assert env._repr_html_() is None
    for each in (raw, env, single):
        each.reset(seed=1)
        picture = each._repr_html_()
        ElementTree.fromstring(str(picture))
        assert "face down" in str(picture)
    assert raw._repr_html_() == env._repr_html_() == svg(describe(raw.game))
    assert game.copy([0])._repr_html_() == svg(describe(game))
    assert game._repr_html_() == svg(describe(game)) + "<p>game 0 of 3</p>"
