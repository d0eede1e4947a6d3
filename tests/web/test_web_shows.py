"""Shows on the pendant: the files of the command line, checked and drawn; GO, STOP and who may."""

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
import wave
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from forked import Rote
from rote.motion.files.library import Library
from rote.stage.demo import demo_take
from rote.stage.keys import StageKeys
from rote.stage.show.check import check_show
from rote.stage.show.file import (
    CLIP_FIELDS,
    CUE_FIELDS,
    ROLE_FIELDS,
    SECTION_FIELDS,
    TRIGGER_FIELDS,
)
from rote.stage.show_files import read_show
from rote.stage.stage import TRY_STAGE
from rote.stage.watcher import StageWatcher
from rote.transport.zenoh.bus import StageBus
from rote.web.routes.shows import SHEET_POLICY
from rote.web.work import shows as show_work
from virtual import run
from web.pendant import Browser, one_browser

SHOW: dict[str, Any] = {
    "rote_show": 1,
    "title": "Two greet",
    "roles": {"left": {}, "right": {}},
    "sections": [
        {
            "name": "hello",
            "clips": [
                {"role": "left", "take": "wave", "to_s": 2.0},
                {"role": "right", "take": "bow", "at_s": 0.5, "to_s": 2.0},
            ],
        },
        {"name": "again", "clips": [{"role": "left", "take": "wave"}]},
    ],
}


def _library(home: Path) -> Library:
    library = Library(home / "takes")
    for name in ("wave", "bow"):
        library.save(demo_take(name), name)
    return library


def _keep(path: Path, document: dict[str, Any]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(document))


def _kept(path: Path) -> dict[str, Any]:
    kept: dict[str, Any] = json.loads(path.read_text())
    return kept


def _wav(path: Path) -> bytes:
    """Half a second of silence, then half a second as loud as it can be."""
    samples = np.concatenate([np.zeros(4000), np.full(4000, 32767)]).astype("<i2")
    with wave.open(str(path), "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(samples.tobytes())
    return path.read_bytes()


# ---- files --------------------------------------------------------------------------------------


def test_a_show_is_kept_in_the_file_that_the_command_line_runs(tmp_path: Path) -> None:
    library = _library(tmp_path)

    async def story() -> None:
        async with one_browser(tmp_path) as (_, browser):
            saved = await browser.post("/shows/save", name="greet", show=SHOW)
            path = tmp_path / "shows" / "greet.json"
            assert saved["path"] == str(path)
            assert _kept(path)["roles"] == SHOW["roles"]
            show, own = read_show(path)
            assert [section.name for section in show.sections] == ["hello", "again"]

            told = await browser.post("/shows/check", show=SHOW)
            own = type(own)(own.folder, library)
            exact = check_show(show, own.take, own.sound_s).as_json()
            assert told["ok"] is exact["ok"] is True
            assert [each["message"] for each in told["findings"]] == [
                each["message"] for each in exact["findings"]
            ]

            opened = await browser.get("/shows/greet")
            assert (opened["tag"], opened["name"]) == (saved["tag"], "greet")
            await browser.post("/shows/cast", name="greet", cast={"left": "ann", "right": "bob"})
            await browser.post("/shows/rename", old="greet", new="hello all")
            shelf = await browser.get("/shows")
            assert [each["name"] for each in shelf["shows"]] == ["hello all"]
            assert shelf["casts"] == {"hello all": {"left": "ann", "right": "bob"}}
            await browser.post("/shows/delete", name="hello all")
            assert (await browser.get("/shows"))["shows"] == []
            assert len(list((tmp_path / "shows" / ".trash").iterdir())) == 1

    run(story())


def test_a_file_that_somebody_else_has_changed_is_not_overwritten(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (_, browser):
            saved = await browser.post("/shows/save", name="greet", show=SHOW)
            refused = await browser.refused("/shows/save", 409, name="greet", show=SHOW)
            assert refused["error"] == "show-exists"
            path = tmp_path / "shows" / "greet.json"
            _keep(path, {**SHOW, "title": "by hand"})
            refused = await browser.refused(
                "/shows/save", 409, name="greet", show=SHOW, known=saved["tag"]
            )
            assert refused["error"] == "changed-show"
            assert _kept(path)["title"] == "by hand"
            await browser.post(
                "/shows/save", name="greet", show=SHOW, known=saved["tag"], replace=True
            )
            assert _kept(path)["title"] == "Two greet"

    run(story())


def test_bad_names_and_bad_shows_are_refused_and_write_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (_, browser):
            for name in ("../out", "a/b", ".hidden", "x.cast", "x.report"):
                await browser.refused("/shows/save", 400, name=name, show=SHOW)
            empty = {**SHOW, "sections": [{"name": "nothing", "clips": [], "cues": []}]}
            refused = await browser.refused("/shows/save", 400, name="greet", show=empty)
            assert "nothing" in refused["message"]
            lost = {**SHOW, "sections": [{"name": "x", "clips": [{"role": "no", "take": "w"}]}]}
            await browser.refused("/shows/save", 400, name="greet", show=lost)
            await browser.refused("/shows/save", 422, name="greet", show={**SHOW, "more": 1})
            for path in ("/shows/none", "/shows/sounds/none.wav/peaks"):
                assert (await browser.ask("GET", path)).status_code == 404
            response = await browser.ask("GET", "/shows/sounds/..%2F..%2Fx.wav/file")
            assert response.status_code in {400, 404}
            assert not list((tmp_path / "shows").glob("*")) if (tmp_path / "shows").exists() else 1

    run(story())


def test_findings_and_curves_say_role_and_second(tmp_path: Path) -> None:
    _library(tmp_path)
    clips = [
        {"role": "left", "take": "wave"},
        {"role": "left", "take": "bow", "at_s": 1.5},
        {"role": "right", "take": "bow", "at_s": 1.0},
    ]
    show = {**SHOW, "sections": [{"name": "hello", "clips": clips}]}

    async def story() -> None:
        async with one_browser(tmp_path) as (_, browser):
            told = await browser.post("/shows/check", show=show)
            assert told["ok"] is False
            first = told["findings"][0]
            assert (first["severity"], first["kind"]) == ("error", "overlap")
            assert (first["section"], first["role"], first["time_s"]) == ("hello", "left", 1.5)
            drawn = await browser.post("/shows/curves", show=show, section="hello")
            (right,) = drawn["roles"]  # what cannot be compiled is not drawn
            assert (right["role"], right["at_s"]) == ("right", 1.0)
            assert right["times_s"][0] == 0.0
            assert len(right["times_s"]) == len(right["joints_rad"]) <= 600
            exact = demo_take("bow")
            assert np.allclose(right["joints_rad"][0], exact.joints_rad[0], atol=1e-3)
            assert np.allclose(right["joints_rad"][-1], exact.joints_rad[-1], atol=1e-3)
            await browser.refused("/shows/curves", 400, show=show, section="nowhere")

    run(story())


def test_a_sound_is_kept_beside_the_shows_and_drawn(tmp_path: Path) -> None:
    data = _wav(tmp_path / "made.wav")

    async def add(browser: Browser, name: str, content: bytes) -> int:
        files = {"file": (name, content, "audio/wav")}
        response = await browser.ask("POST", "/shows/sounds/upload", files=files)
        return int(response.status_code)

    async def story() -> None:
        async with one_browser(tmp_path) as (_, browser):
            assert await add(browser, "bell.wav", data) == 200
            assert await add(browser, "bell.wav", data) == 409
            assert await add(browser, "odd.wav", b"no sound") == 400
            assert await add(browser, "bell.mp3", data) == 400
            shelf = await browser.get("/shows")
            assert shelf["sounds"] == [{"name": "bell.wav", "duration_s": 1.0}]
            drawn = await browser.get("/shows/sounds/bell.wav/peaks")
            assert len(drawn["peaks"]) == 400
            assert max(drawn["peaks"][:199]) == 0.0
            assert min(drawn["peaks"][201:]) == 1.0
            response = await browser.ask("GET", "/shows/sounds/bell.wav/file")
            assert response.content == data

    run(story())


def test_a_locked_show_tells_why_it_is_refused_until_it_is_unlocked(tmp_path: Path) -> None:
    _library(tmp_path)

    async def story() -> None:
        async with one_browser(tmp_path) as (_, browser):
            saved = await browser.post("/shows/save", name="greet", show=SHOW)
            assert saved["lock"] is None
            locked = await browser.post("/shows/lock", name="greet", locked=True)
            assert locked["lock"]["locked"] != ""
            assert (await browser.get("/shows/greet"))["lock"] == locked["lock"]
            await browser.post("/shows/rename", old="greet", new="hello")
            assert (await browser.get("/shows/hello"))["lock"] == locked["lock"]

            show = {**SHOW, "title": "changed"}
            saved = await browser.post("/shows/save", name="hello", show=show, known=saved["tag"])
            assert "the show file" in saved["lock"]["problem"]
            assert "changed after it was locked" in saved["lock"]["problem"]
            assert (await browser.post("/shows/lock", name="hello", locked=False))["lock"] is None
            await browser.post("/shows/lock", name="hello", locked=True)
            await browser.post("/shows/delete", name="hello")
            await browser.post("/shows/save", name="hello", show=SHOW)
            assert (await browser.get("/shows/hello"))["lock"] is None
            await browser.refused("/shows/lock", 404, name="none", locked=True)

    run(story())


def test_the_cue_sheet_is_a_page_that_loads_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (_, browser):
            await browser.post("/shows/save", name="greet", show={**SHOW, "title": "<b>Two</b>"})
            await browser.post("/shows/cast", name="greet", cast={"left": "ann", "right": "bob"})
            response = await browser.ask("GET", "/shows/greet/sheet")
            assert response.headers["content-type"].startswith("text/html")
            assert response.headers.get_list("content-security-policy") == [SHEET_POLICY]
            assert "left (ann)" in response.text
            assert "&lt;b&gt;Two&lt;/b&gt;" in response.text
            assert (await browser.ask("GET", "/shows/none/sheet")).status_code == 404

    run(story())


def test_the_editor_has_every_field_of_a_show() -> None:
    folder = Path(__file__).parents[2] / "page" / "src" / "screens" / "show"
    source = "".join(path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.tsx")))
    fields = (SECTION_FIELDS, ROLE_FIELDS, TRIGGER_FIELDS, CLIP_FIELDS, CUE_FIELDS)
    names = {field.name for each in fields for field in each}
    assert [name for name in sorted(names) if not re.search(rf"\b{name}\b", source)] == []


def test_without_a_stage_the_page_is_told_so_and_go_is_refused(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (_, browser):
            assert (await browser.get("/stage"))["there"] is False
            assert browser.latest["stage"]["there"] is False
            refused = await browser.refused("/stage/go", 409, show="greet", cast={"left": "ann"})
            assert refused["error"] == "no-stage"
            assert "Show screen" in refused["remedy"]
            await browser.refused("/stage/release", 409)
            assert (await browser.post("/stop"))["stopped"] == "nothing"

    run(story())


# ---- a stage, in real time ----------------------------------------------------------------------


class _Page:
    """A browser that a link was opened with, in real time."""

    def __init__(self, ends: ExitStack, base: str, token: str) -> None:
        self._headers = {"Authorization": f"Bearer {token}"}
        self.socket = ends.enter_context(
            connect(
                base.replace("http", "ws") + "/api/live",
                additional_headers=self._headers,
                proxy=None,
                ping_interval=None,
            )
        )
        self._headers["X-Rote-Client"] = json.loads(self.socket.recv())["client"]
        self.http = ends.enter_context(
            httpx.Client(base_url=f"{base}/api", headers=self._headers, timeout=60)
        )
        over = threading.Event()
        living = threading.Thread(target=self._live, args=(over,))
        living.start()
        ends.callback(living.join)
        ends.callback(over.set)

    def post(self, path: str, **body: Any) -> httpx.Response:
        return self.http.post(path, json=body)

    def _live(self, over: threading.Event) -> None:
        """Say every now and then that this browser is there, and read what it is told."""
        while not over.wait(0.3):
            try:
                self.socket.send('{"type":"alive"}')
                while True:
                    self.socket.recv(timeout=0)
            except TimeoutError:
                continue
            except ConnectionClosed:
                return

    def stage(self) -> dict[str, Any]:
        told: dict[str, Any] = self.http.get("/stage").json()
        return told

    def until(self, found: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        """Ask until the stage is like this."""
        end_s = time.monotonic() + 40
        while not found(stage := self.stage()):
            assert time.monotonic() < end_s, json.dumps(stage)
            time.sleep(0.1)
        return stage


def _go_until(
    page: _Page, wanted: dict[str, Any], found: Callable[[dict[str, Any]], object]
) -> dict[str, Any]:
    """Press GO once every robot is at rest, and wait for a state of the show."""
    page.until(_is_at_rest)
    begun = page.post("/stage/go", **wanted, force=True)
    assert begun.status_code == 200, begun.text
    again = page.post("/stage/go", **wanted, force=True)
    assert again.status_code == 409, json.dumps(page.stage())
    stage = page.until(lambda now: now["run"] is None or found(now))
    assert stage["run"] is not None, json.dumps(stage)
    return stage


def _is_at_rest(stage: dict[str, Any]) -> bool:
    """Whether no show runs, no stop holds, and every robot has returned from its last motion."""
    return (stage["run"], stage["stop"]) == (None, None) and all(
        each["ready"] and each["phase"] == "idle" and not each["moving"] for each in stage["robots"]
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def _process(home: Path, *words: str) -> Iterator["subprocess.Popen[str]"]:
    environment = os.environ | {"ROTE_HOME": str(home)}
    with Rote(*words, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            yield process
        finally:
            process.terminate()


@contextmanager
def _staged(
    home: Path, sections: int
) -> Iterator[tuple["subprocess.Popen[str]", _Page, _Page, str]]:
    """A server with a stage of two simulated robots: it, a teacher, a watcher, and where it is."""
    pytest.importorskip("zenoh", reason="eclipse-zenoh is not installed")
    _library(home)
    endpoint = f"127.0.0.1:{_free_port()}"
    _keep(home / "shows" / "greet.json", {**SHOW, "sections": SHOW["sections"][:sections]})
    agent = ("agent", "sim://g1", "--at", endpoint, "--name")
    web = ("web", "--no-browser", "--port", "0", "--json", "--token", "a-token-for-a-show")
    with (
        _process(home, *agent, "ann"),
        _process(home, *agent, "bob"),
        _process(home, *web, "--stage", endpoint) as server,
        ExitStack() as ends,
    ):
        assert server.stdout is not None
        ready = json.loads(server.stdout.readline())
        base, _, token = ready["url"].partition("/?token=")
        teacher = _Page(ends, base, token)
        watcher = _Page(ends, base, ready["watch_url"].partition("token=")[2])
        teacher.until(lambda stage: [each["ready"] for each in stage["robots"]] == [True, True])
        yield server, teacher, watcher, endpoint


WANTED: dict[str, Any] = {"show": "greet", "cast": {"left": "ann", "right": "bob"}}


@pytest.mark.quiet  # a conductor or agent that is kept waiting for a second ends the section
def test_roles_apply_to_go_everybody_stops_and_the_servers_end_stops_the_show(
    tmp_path: Path,
) -> None:
    with _staged(tmp_path, 1) as (server, teacher, watcher, endpoint):
        assert watcher.post("/stage/go", **WANTED, force=True).status_code == 403
        missing = teacher.post("/stage/go", show="greet", cast={"left": "ann"})
        assert "no robot plays" in missing.json()["message"]
        stale = teacher.post("/stage/go", **WANTED, known="of another file")
        assert stale.json()["error"] == "changed-show"
        assert teacher.stage()["run"] is None

        # Who only watches may stop, and nothing else of the cue list.
        _go_until(teacher, WANTED, lambda now: now["run"]["state"] == "playing")
        said = watcher.post("/stop").json()["message"]
        assert "on the stage have confirmed the STOP" in said or "not all robots have" in said
        stage = teacher.until(lambda stage: stage["run"]["state"] == "stopped")
        stage = teacher.until(lambda stage: stage["stop"]["unconfirmed"] == [])
        assert stage["stop"]["obstacles"] == {"ann": "", "bob": ""}
        assert teacher.post("/stage/go", **WANTED).json()["error"] == "stop-holds"
        for verb in ("pause", "resume", "back", "skip", "finish"):
            assert watcher.post("/stage/cue", verb=verb).status_code == 403
        assert watcher.post("/stage/release").status_code == 403
        assert teacher.post("/stage/release").json()["stop"] is None
        again = teacher.until(lambda stage: stage["run"]["state"] == "waiting")
        assert again["run"]["section"] == "hello"
        refused = teacher.post("/stage/cue", verb="jump", section="nowhere")
        assert (refused.status_code, refused.json()["error"]) == (400, "bad-request")
        assert teacher.post("/stage/cue", verb="fly").status_code == 422
        assert teacher.post("/stage/cue", verb="finish").status_code == 200
        stage = teacher.until(lambda stage: stage["run"] is None)
        assert (stage["last"]["show"], stage["last"]["sections"]) == ("greet", [])
        file = tmp_path / "shows" / "greet.report.json"
        teacher.until(lambda _: _kept(file)["over"])  # written once the robots have confirmed
        assert "stopped" in _kept(file)["interruptions"][0]

        # The server ends in the middle of a section: its robots are told to stop before that.
        _go_until(teacher, WANTED, lambda now: any(each["moving"] for each in now["robots"]))
        server.send_signal(signal.SIGINT)
        assert server.wait(20) in {0, 130}
        assert asyncio.run(_phases(endpoint)) == {"ann": "stopped", "bob": "stopped"}


@pytest.mark.soak
def test_a_section_waits_for_its_own_go_and_a_stop_ends_the_waiting(tmp_path: Path) -> None:
    with _staged(tmp_path, 2) as (_, teacher, watcher, endpoint):
        stage = _go_until(teacher, WANTED, lambda now: now["run"]["state"] == "waiting")
        assert (stage["run"]["section"], stage["run"]["waits"]) == ("again", "go")
        wrong = teacher.post("/stage/go", **WANTED, section="hello")
        assert wrong.json()["error"] == "another-section"
        watcher.post("/stop")
        teacher.until(lambda stage: stage["run"]["state"] == "stopped")
        teacher.post("/stage/cue", verb="finish")
        stage = teacher.until(lambda stage: stage["run"] is None)
        assert [each["name"] for each in stage["last"]["sections"]] == ["hello"]

        assert teacher.post("/stage/release").status_code == 200
        # A stop from elsewhere: it ends the show here, and is confirmed to whoever asked for it.
        _go_until(teacher, WANTED, lambda now: any(each["moving"] for each in now["robots"]))
        assert asyncio.run(_stopped_elsewhere(endpoint)) == ()
        stage = teacher.until(lambda stage: stage["run"]["state"] == "stopped")
        assert stage["stop"]["by"] == "somebody else"


async def _stopped_elsewhere(endpoint: str) -> tuple[str, ...]:
    """Stop the stage beside its conductor; return who has not confirmed it."""
    bus = await StageBus.join(endpoint)
    try:
        watcher = StageWatcher(bus, StageKeys(TRY_STAGE), conducted=True)
        async with asyncio.timeout(30):
            while len(watcher.agents) < 2:
                await asyncio.sleep(0.1)
        return await watcher.stop("somebody else")
    finally:
        await bus.close()


async def _phases(endpoint: str) -> dict[str, str]:
    """Return what the agents tell of themselves to whoever comes next."""
    bus = await StageBus.conduct(endpoint)
    try:
        watcher = StageWatcher(bus, StageKeys(TRY_STAGE), conducted=False)
        async with asyncio.timeout(30):
            while len(watcher.agents) < 2:
                await asyncio.sleep(0.1)
        return {name: each.phase for name, each in watcher.agents.items()}
    finally:
        await bus.close()


def test_a_sound_that_was_cut_off_is_drawn_as_far_as_it_goes(tmp_path: Path) -> None:
    data = _wav(tmp_path / "cut.wav")
    (tmp_path / "cut.wav").write_bytes(data[:-1])
    drawn = json.loads(show_work.peaks(tmp_path, "cut.wav"))
    assert len(drawn["peaks"]) == 400
