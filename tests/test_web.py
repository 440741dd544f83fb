"""The page: what the server sends, what it refuses, and a browser that plays."""

from __future__ import annotations

import http.client
import json
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from helpers import SHORT_MATCH, rehidden
from spite_env import Game, Rules
from spite_env.cli import main
from spite_env.play.session import Session
from spite_env.play.tables import MOST_TABLES, Table, Tables
from spite_env.policies import RandomPolicy
from spite_env.record import Record, read_records
from spite_env.verify import verify_file

pytest.importorskip("flask")
pytest.importorskip("waitress")

from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from spite_env.play.web import MOST_BODY, create_app

MINI, SMALL = Rules.mini(), Rules(payoff_size=4)
SVG = "{http://www.w3.org/2000/svg}"

View = dict[str, Any]


class Page:
    """What a page does, through the framework's test client."""

    def __init__(self, tables: Tables, client: FlaskClient | None = None, **choice: Any) -> None:
        self.tables = tables
        self.client = client or create_app(tables).test_client()
        self.bodies: list[str] = []
        opened = self.post("/api/tables", choice)
        assert opened.status_code == 201
        self.name = opened.get_json()["name"]
        self.view: View = opened.get_json()

    @property
    def table(self) -> Table:
        table = self.tables.find(self.name)
        assert table is not None
        return table

    def post(self, path: str, body: Any, **options: Any) -> TestResponse:
        answer = self.client.post(path, json=body, **options)
        self.bodies.append(answer.get_data(as_text=True))
        return answer

    def get(self, path: str = "") -> TestResponse:
        answer = self.client.get(f"/api/tables/{self.name}{path}")
        self.bodies.append(answer.get_data(as_text=True))
        return answer

    def do(self, deed: str, status: int = 200, **body: Any) -> View:
        answer = self.post(f"/api/tables/{self.name}/{deed}", {"revision": self.view["revision"], **body})
        assert answer.status_code == status, answer.get_data(as_text=True)
        told: View = answer.get_json()
        if status == 200:
            self.view = told
        return told

    def play_on(self, seed: int, each: Callable[[], object] = lambda: None, undo: float = 0.0) -> None:
        rng = random.Random(seed)
        while not self.view["over"]:
            each()
            if undo and self.view["can_undo"] and rng.random() < undo:
                self.do("undo")
            else:
                self.do("play", action=rng.choice(self.view["moves"])["action"])


def page(rules: Rules = SMALL, against: str = "greedy", **options: Any) -> Page:
    return Page(Tables(against, rules, **{"seed": 5, "hint": "greedy", **options}))


# -- what is sent --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seat", [0, 1])
@pytest.mark.parametrize(
    "rules", [Rules(), Rules.classic(), SHORT_MATCH, MINI], ids=["g4a", "classic", "match", "mini"]
)
def test_whole_games_send_nothing_that_the_seat_does_not_see(rules: Rules, seat: int) -> None:
    """What is sent is the same with all hidden cards dealt anew, and its pictures show their backs."""
    playing, rng = page(rules, seat=seat, seed=987654321987), random.Random(1)
    different = pictures = 0

    def check() -> None:
        nonlocal different, pictures
        view, session = playing.view, playing.table._session
        assert set(view) <= {
            *("revision", "opponent", "seat", "match", "headline", "picture", "frames", "moves", "log", "results"),
            *("can_undo", "over", "seed", "records", "notice", "told", "name"),
        }
        for picture in (view["picture"], *view["frames"]):
            assert_backs(picture, rules)
            pictures += 1
        position = session.game.position(0)
        other = rehidden(position, seat, rng)
        different += other != position
        real, session.game = session.game, Game.from_positions(rules, [other])
        imagined = playing.table.view()
        session.game = real
        assert imagined == {name: value for name, value in view.items() if name not in ("told", "name")} | {
            "frames": []
        }
        assert playing.get("/records").get_data() == b""
        if rng.random() < 0.2:
            playing.do("hint")
        if rng.random() < 0.2:
            playing.view = playing.get().get_json()

    playing.play_on(seed=1, each=check, undo=0.3)
    for picture in (playing.view["picture"], *playing.view["frames"]):
        assert_backs(picture, rules)
    assert different > (rules != MINI) * 5
    assert pictures > 4
    *before, last = playing.bodies
    assert not any("987654321987" in body for body in before)
    assert '"seed":"987654321987"' in last


def assert_backs(picture: str, rules: Rules) -> None:
    """Assert that a picture shows the opponent's hand, the stock and all below the pay-off tops as backs alone."""
    parts = {part.get("data-place"): part for part in ET.fromstring(picture).iter(f"{SVG}g")}
    cards = set(rules.characters)
    for place, shown in (("opponent-hand", 0), ("stock", 0), ("payoff", 1), ("opponent-payoff", 1)):
        texts = [text.text for text in parts[place].iter(f"{SVG}text")]
        assert len({text for text in texts if text in cards}) <= shown
        title = parts[place].findtext(f"{SVG}title") or ""
        told = re.sub(r"\d+ (cards?|face down)", "", title.partition(":")[2])
        assert len(re.findall(r"\b[A2-9TJQK]\b", told)) <= shown, title


def test_a_reload_keeps_the_game_and_a_frame_is_sent_for_each_move_of_the_opponent() -> None:
    playing = page(Rules())
    frames = []
    for _ in range(8):
        before = len(playing.view["log"])
        discard = next(move for move in playing.view["moves"] if move["text"].startswith("discard"))
        view = playing.do("play", action=discard["action"])
        theirs = [text for who, text in view["log"][before:] if who == "greedy"]
        assert len(view["frames"]) == len(theirs)
        frames += view["frames"]
        assert playing.get().get_json() == {name: value for name, value in view.items() if name != "told"} | {
            "frames": []
        }
    assert len(frames) > 10
    assert len(set(frames)) == len(frames)


def test_moves_name_places_of_the_picture() -> None:
    playing = page(seat=1)

    def check() -> None:
        parts = ET.fromstring(playing.view["picture"]).iter(f"{SVG}g")
        places = {part.get("data-place") for part in parts}
        for move in playing.view["moves"]:
            assert {move["source"], move["target"]} <= places

    playing.play_on(seed=3, each=check)


def test_the_page_and_its_files_are_served_with_rules_for_the_browser() -> None:
    client = page().client
    for path in ("/", "/table/anything", "/page/play.js", "/page/play.css"):
        with client.get(path) as answer:
            assert answer.status_code == 200
            assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
            assert answer.headers["Referrer-Policy"] == "no-referrer"
            assert answer.headers["Cache-Control"] == "no-store"
    known = client.get("/api/agents").get_json()
    assert known["opponent"] == known["hint"] == "greedy"
    assert {"random", "greedy"} <= set(known["agents"])


def test_records_are_there_once_a_game_is_over_and_go_on_with_the_next(tmp_path: Path) -> None:
    saved: list[Record] = []
    playing = page(MINI, write=saved.append)
    playing.play_on(seed=1)
    assert playing.view["records"] == len(saved) == 1
    playing.do("new", seed="17", match=True, seat=1, opponent="random")
    assert (playing.view["opponent"], playing.view["seat"], playing.view["match"]) == ("random", 1, True)
    assert playing.view["seed"] is None
    while not playing.view["results"]:
        playing.do("play", action=playing.view["moves"][0]["action"])
    assert len(saved) == 1  # a record tells the seed, and with it the next games of the match
    playing.do("new", match=False)
    answer = playing.get("/records")
    assert answer.headers["Content-Disposition"] == "attachment; filename=games.jsonl"
    file = tmp_path / "games.jsonl"
    file.write_bytes(answer.get_data())
    assert verify_file(file, check_seed=True) == ([], len(saved))
    assert len(saved) > 2
    assert [record["result"]["outcome"] == "forfeit" for record in saved] == [False] * (len(saved) - 1) + [True]
    assert list(read_records(file)) == saved


def test_a_record_that_can_not_be_saved_is_kept_and_saved_later() -> None:
    saved: list[Record] = []
    full = True

    def write(record: Record) -> None:
        if full:
            raise OSError("no space left")
        saved.append(record)

    playing = page(MINI, write=write)
    playing.play_on(seed=1)
    assert "no space left" in playing.view["notice"]
    assert playing.get("/records").get_data().count(b"\n") == 1
    full = False
    playing.do("new")
    assert len(saved) == 1


# -- several pages -------------------------------------------------------------------------------------------------


def test_two_pages_do_not_disturb_each_other() -> None:
    def alone(seed: int) -> list[Record]:
        one = page(seed=seed)
        one.play_on(seed)
        return one.table.records

    tables = Tables("greedy", SMALL, hint="greedy")
    client = create_app(tables).test_client()
    pages = [Page(tables, client, seed=str(seed)) for seed in (1, 2)]
    rngs = [random.Random(seed) for seed in (1, 2)]
    while not all(each.view["over"] for each in pages):
        for each, rng in zip(pages, rngs, strict=True):
            if not each.view["over"]:
                each.do("hint")
                each.do("play", action=rng.choice(each.view["moves"])["action"])
    assert [each.table.records for each in pages] == [alone(1), alone(2)]
    with client.get("/") as answer:
        assert "Set-Cookie" not in answer.headers


def test_the_table_that_was_left_alone_longest_makes_room() -> None:
    saved: list[Record] = []
    tables = Tables("greedy", MINI, hint="greedy", seed=1, write=saved.append)
    client = create_app(tables).test_client()
    first, second = (Page(tables, client, seat=seat) for seat in (0, 1))
    for each in (first, second):
        while not each.view["over"] and not each.view["log"]:
            each.do("play", action=each.view["moves"][0]["action"])
    first.do("hint", **({} if not first.view["over"] else {"status": 400}))
    before = len(saved)
    for _ in range(MOST_TABLES - 1):
        Page(tables, client)
    assert first.get().status_code == 200
    assert "closed" in second.do("play", 404, action=0)["error"]
    assert len(saved) >= before
    tables.close()
    assert first.get().status_code == 404
    assert all(record["result"]["outcome"] in ("win", "forfeit") for record in saved)


# -- what is refused -----------------------------------------------------------------------------------------------


def test_a_move_that_is_sent_twice_or_for_an_older_table_is_refused() -> None:
    playing = page()
    action = playing.view["moves"][-1]["action"]
    sent = {"revision": playing.view["revision"], "action": action}
    path = f"/api/tables/{playing.name}/play"
    assert playing.post(path, sent).status_code == 200
    after = playing.get().get_json()
    again = playing.post(path, sent)
    assert again.status_code == 409
    assert "changed since" in again.get_json()["error"]
    assert again.get_json()["table"] == after
    for deed in ("undo", "hint", "new"):
        assert playing.post(f"/api/tables/{playing.name}/{deed}", {"revision": sent["revision"]}).status_code == 409
    for revision in (-1, after["revision"] + 1, 10**40):
        assert playing.post(path, {"revision": revision, "action": action}).status_code == 409
    assert playing.get().get_json() == after


def test_a_revision_never_comes_back() -> None:
    playing = page(
        seed=next(
            seed
            for seed in range(99)
            if any(m["source"] == "hand-A" for m in page(seed=seed).view["moves"] if "center" in m["target"])
        )
    )
    play = next(move["action"] for move in playing.view["moves"] if move["text"] == "hand>center0")
    seen = [playing.view["revision"]]
    for _ in range(3):
        playing.do("play", action=play)
        seen.append(playing.view["revision"])
        playing.do("undo")
        seen.append(playing.view["revision"])
    assert seen == sorted(set(seen))


@pytest.mark.parametrize(
    ("deed", "body", "complaint"),
    [
        ("play", {"action": 999}, "not legal"),
        ("play", {"action": -1}, "not legal"),
        ("play", {"action": 10**30}, "integers"),
        ("play", {"action": 1.0}, "action=1.0 is not allowed; it is an integer"),
        ("play", {"action": True}, "an integer"),
        ("play", {"action": None}, "an integer"),
        ("play", {"action": [1]}, "an integer"),
        ("play", {}, "'action' is missing"),
        ("play", {"action": 1, "card": "K"}, "unknown field 'card'"),
        ("play", {"action": 1, "revision": "1"}, "revision='1'"),
        ("undo", {}, "taken back"),
        ("undo", {"steps": 3}, "unknown field 'steps'"),
        ("hint", {"agent": "nobody"}, "unknown agent 'nobody'; the known ones are greedy"),
        ("hint", {"agent": "os:system"}, "unknown agent 'os:system'"),
        ("hint", {"agent": "x" * 3000}, "unknown agent"),
        ("hint", {"agent": 7}, "agent=7 is not allowed; it is a text"),
        ("new", {"opponent": "agents.sb3:/etc/passwd"}, "unknown agent"),
        ("new", {"opponent": ["greedy"]}, "a text"),
        ("new", {"seat": 2}, "seat=2"),
        ("new", {"seat": "0"}, "an integer"),
        ("new", {"match": 1}, "true or false"),
        ("new", {"seed": "x"}, "seed 'x'"),
        ("new", {"seed": "-1"}, "seed '-1'"),
        ("new", {"seed": "1" * 3000}, "seed '111"),
        ("new", {"seed": 7}, "a text"),
    ],
)
def test_garbage_in_a_request_is_refused_and_changes_nothing(deed: str, body: View, complaint: str) -> None:
    playing = page()
    before = playing.get().get_json()
    assert complaint in playing.do(deed, 400, **body)["error"]
    assert playing.get().get_json() == before
    playing.do("play", action=before["moves"][0]["action"])


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"7", b"null", b'"play"', b"\xff\xfe", b"[" * 4000, b'{"revision": NaN}', b"9" * 4090]
)
def test_a_body_that_is_no_object_is_refused(body: bytes) -> None:
    playing = page()
    before = playing.get().get_json()
    for path in ("/api/tables", *(f"/api/tables/{playing.name}/{deed}" for deed in ("play", "undo", "hint", "new"))):
        answer = playing.client.post(path, data=body, content_type="application/json")
        assert answer.status_code == 400
        assert "body" in answer.get_json()["error"] or "revision" in answer.get_json()["error"]
    assert playing.get().get_json() == before


def test_what_is_not_there_is_not_found() -> None:
    playing = page()
    for method, path in (
        ("GET", "/api/tables/nobody"),
        ("GET", "/api/tables/nobody/records"),
        ("GET", "/page/../web.py"),
        ("GET", "/page/%2e%2e/web.py"),
        ("GET", "/nothing"),
        ("POST", "/api/tables/nobody/undo"),
        ("POST", f"/api/tables/{playing.name}/cheat"),
    ):
        answer = playing.client.open(path, method=method, json={"revision": 1} if method == "POST" else None)
        assert answer.status_code == 404
        assert answer.get_json()["error"]
    assert playing.client.post(f"/api/tables/{playing.name}", json={}).status_code == 405
    assert playing.client.get(f"/api/tables/{playing.name}/play").status_code == 405


def test_other_sites_are_refused() -> None:
    playing = page()
    before = playing.get().get_json()
    for host in ("evil.example", "evil.example:8000", "127.0.0.1.evil.example", ""):
        answer = playing.client.get("/", headers={"Host": host})
        assert answer.status_code == 400
        assert answer.get_json()["error"]
    for host in ("127.0.0.1:8123", "localhost", "localhost:1"):
        with playing.client.get("/", headers={"Host": host}) as answer:
            assert answer.status_code == 200
    sent = {"revision": before["revision"], "action": before["moves"][0]["action"]}
    path = f"/api/tables/{playing.name}/play"
    for origin in ("http://evil.example", "null", "http://localhost:1", "https://localhost"):
        for each, body in ((path, sent), ("/api/tables", {})):
            answer = playing.client.post(each, json=body, headers={"Origin": origin})
            assert answer.status_code == 403
            assert "can't play here" in answer.get_json()["error"]
    form = json.dumps(sent)
    for content_type in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", None):
        assert playing.client.post(path, data=form, content_type=content_type).status_code == 415
    assert playing.get().get_json() == before
    assert playing.client.post(path, json=sent, headers={"Origin": "http://localhost"}).status_code == 200


def test_a_body_that_is_too_large_is_refused() -> None:
    playing = page()
    for size in (MOST_BODY + 1, 10**6):
        answer = playing.client.post("/api/tables", data=b" " * size, content_type="application/json")
        assert answer.status_code == 413
        assert answer.get_json()["error"]
    assert playing.get().status_code == 200


class Dud(RandomPolicy):
    """Fails at its first decision, or can't begin at all."""

    rules: Rules | None = None

    def reset(self, rules: Rules, num_games: int, seed: int) -> None:
        if rules.match_points is not None:
            raise ValueError("it plays no matches")

    def act(self, *arguments: Any) -> Any:
        raise ZeroDivisionError("out of ideas")


def test_an_opponent_that_fails_is_told_of_and_the_server_stays_up() -> None:
    playing = page(against=f"{__name__}:Dud")
    while not playing.view["over"]:
        playing.do("play", action=playing.view["moves"][-1]["action"])
    assert playing.view["notice"] == "out of ideas"
    assert "human wins" in playing.view["results"][0]
    before = playing.get().get_json()
    assert "no matches" in playing.do("new", 400, match=True)["error"]
    assert playing.get().get_json() == before
    playing.do("new", opponent="greedy")
    assert playing.view["notice"] is None


def test_a_fault_of_the_server_is_an_answer_too(monkeypatch: pytest.MonkeyPatch) -> None:
    playing = page()
    with monkeypatch.context() as broken:
        broken.setattr(Session, "undo", lambda self: 1 // 0)
        assert playing.do("undo", 500)["error"]
    playing.do("play", action=playing.view["moves"][0]["action"])


def test_without_the_framework_the_command_names_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "spite_env.play.web")
    monkeypatch.setitem(sys.modules, "waitress", None)
    assert main(["play", "--web", "--against", "greedy"]) == 2
    assert "pip install 'spite_env[play]'" in capsys.readouterr().err


# -- a server ------------------------------------------------------------------------------------------------------


@contextmanager
def serving(*words: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Run ``spite-env play --web`` on a free port."""
    command = [sys.executable, "-m", "spite_env", "play", "--web", "--port", "0", "--against", "greedy", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            told = re.search(r"http://127\.0\.0\.1:(\d+)/", process.stdout.readline())
            assert told is not None
            yield process, int(told[1])
        finally:
            process.kill()


def ask(port: int, method: str, path: str, body: Any = None) -> tuple[int, View]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    headers = {"Content-Type": "application/json"} if method == "POST" else {}
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    answer = connection.getresponse()
    told = json.loads(answer.read())
    connection.close()
    return answer.status, told


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_the_server_survives_garbage_and_saves_what_is_played_when_it_is_stopped(tmp_path: Path) -> None:
    file = tmp_path / "games.jsonl"
    with serving("--records", str(file)) as (process, port):
        _, table = ask(port, "POST", "/api/tables", {})
        path = f"/api/tables/{table['name']}"
        for garbage in (b"\x00\xff\r\n\r\n", b"GET / HTTP/1.1\r\nHost: " + b"x" * 20_000 + b"\r\n\r\n", b"POST /api"):
            with socket.create_connection(("127.0.0.1", port), timeout=30) as raw:
                raw.sendall(garbage)
        huge = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        huge.request("POST", "/api/tables", b" " * 100_000, {"Content-Type": "application/json"})
        assert huge.getresponse().status == 413
        huge.close()
        status, _ = ask(
            port, "POST", f"{path}/play", {"revision": table["revision"], "action": table["moves"][0]["action"]}
        )
        assert status == 200

        with socket.socket() as other:
            other.bind(("127.0.0.2", port))  # is free: the server listens at one address alone

        again = [sys.executable, "-m", "spite_env", "play", "--web", "--port", str(port), "--against", "greedy"]
        second = subprocess.run(again, capture_output=True, text=True, timeout=60)
        assert second.returncode == 2
        assert f"port {port} can't be used: Address already in use; take another one by --port" in second.stderr
        assert "Traceback" not in second.stderr

        assert ask(port, "GET", path)[0] == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    [record] = read_records(file)
    assert record["result"]["by"] == 0
    assert verify_file(file, check_seed=True) == ([], 1)


# -- a browser -----------------------------------------------------------------------------------------------------

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Any]:
    """Chromium without a window, driven by Selenium."""
    webdriver = pytest.importorskip("selenium.webdriver")
    driver = shutil.which("chromedriver")
    if CHROMIUM is None or driver is None:
        pytest.skip("needs Chromium and its driver")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for word in (
        "headless",
        "no-sandbox",
        "disable-gpu",
        "disable-quic",
        "no-first-run",
        "disable-background-networking",
    ):
        options.add_argument(f"--{word}")
    for word in (
        "disable-component-update",
        "disable-sync",
        "force-prefers-reduced-motion",
        f"user-data-dir={tmp_path}",
    ):
        options.add_argument(f"--{word}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    chromium = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        chromium.set_window_size(400, 900)
        yield chromium
        assert chromium.get_log("browser") == []  # neither an error nor something that the page's own rules forbid
    finally:
        chromium.quit()


def places(browser: Any, kind: str, *, wait: bool = True) -> dict[str, Any]:
    """Return the elements of a kind by place, once the page has nothing to do."""
    from selenium.webdriver.support.ui import WebDriverWait

    if wait:
        idle = "return document.querySelector('#picture svg') && !document.querySelector('.waiting')"
        WebDriverWait(browser, 30).until(lambda _: browser.execute_script(idle))
    found = browser.find_elements("css selector", f"#picture .place{kind}")
    return {element.get_attribute("data-place"): element for element in found}


def test_a_whole_game_is_clicked_through(browser: Any, tmp_path: Path) -> None:
    rng, file = random.Random(1), tmp_path / "games.jsonl"
    with serving("--set", "payoff_size=2", "--seed", "3", "--records", str(file)) as (_, port):
        browser.get(f"http://127.0.0.1:{port}/")
        clicks = 0
        while sources := places(browser, ".can-drag"):
            rng.choice([*sources.values()]).click()
            targets = places(browser, ".lit", wait=False)
            if targets:  # a click ends the turn at once
                plays = [place for place in targets if place.startswith("center")]
                targets[rng.choice(plays or [*targets])].click()
            clicks += 1
        assert clicks > 3
        assert "The seed was 3." in browser.find_element("id", "status").text
        assert browser.find_element("id", "records").is_displayed()
        assert verify_file(file, check_seed=True) == ([], 1)


def test_a_game_is_dragged_and_typed_and_kept_on_reload(browser: Any) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait

    def said() -> list[str]:
        places(browser, "")
        return [line.text for line in browser.find_elements("css selector", "#log li") if line.text.startswith("human")]

    with serving("--seed", "3") as (_, port):
        browser.get(f"http://127.0.0.1:{port}/")
        card = next(element for place, element in places(browser, ".can-drag").items() if place.startswith("hand"))
        name = card.get_attribute("data-place").removeprefix("hand-")
        ActionChains(browser).drag_and_drop(card, places(browser, "")["opponent-side1"]).perform()
        assert said() == []
        ActionChains(browser).drag_and_drop(card, places(browser, "")["side2"]).perform()
        assert said() == [f"human: discard {name}>side2"]

        address = browser.current_url
        assert "/table/" in address
        before = browser.find_element("id", "picture").get_attribute("textContent")
        browser.refresh()
        places(browser, "")
        assert browser.current_url == address
        assert browser.find_element("id", "picture").get_attribute("textContent") == before

        keys = ActionChains(browser)
        keys.send_keys(Keys.TAB).perform()
        for _ in range(60):  # to a hand card, by the arrows
            if (browser.switch_to.active_element.get_attribute("data-place") or "").startswith("hand"):
                break
            ActionChains(browser).send_keys(Keys.ARROW_RIGHT).perform()
        ActionChains(browser).send_keys(Keys.ENTER).perform()
        assert places(browser, ".taken")
        ActionChains(browser).send_keys(Keys.ESCAPE).perform()
        assert not places(browser, ".taken")
        ActionChains(browser).send_keys("h").perform()
        places(browser, "")
        assert "expert would play: " in browser.find_element("id", "told").text
        assert len(places(browser, ".hinted")) in (1, 2)
        count = len(said())
        ActionChains(browser).send_keys(Keys.ENTER, Keys.ENTER).perform()
        assert len(said()) == count + 1

        browser.switch_to.new_window("tab")
        browser.get(f"http://127.0.0.1:{port}/")
        assert said() == []
        assert browser.current_url != address

        browser.get(f"{address}x")
        WebDriverWait(browser, 30).until(lambda _: browser.find_element("id", "status").text == "No table here")
        assert "no such table" in browser.find_element("id", "told").text
        assert "404" in browser.get_log("browser")[0]["message"]
        browser.find_element("css selector", "#new button").click()
        assert said() == []
        assert places(browser, ".can-drag")
