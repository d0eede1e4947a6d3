"""A stage with one robot in this process: sounds, words, what it holds and what it learns."""

import asyncio
import json
import socket
import struct
import wave
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rig import Rig, rig
from rote.errors import BadRequestError
from rote.messages import Phase
from rote.platform import paths
from rote.platform.system import free_port
from rote.session.stage_events import ConductorEvent, SectionRefused
from rote.stage.agent import Agent
from rote.stage.conductor import SectionError
from rote.stage.keys import StageKeys
from rote.stage.leads import SOUND_LEAD
from rote.stage.score_file import MAX_BYTES
from rote.stage.stage import TRY_STAGE, Stage, open_stage
from rote.transport.zenoh.bus import StageBus
from rote.wire.osc import decode

pytest.importorskip("zenoh", reason="eclipse-zenoh is not installed")
pytest.importorskip("miniaudio", reason="miniaudio is not installed")

CAST = {"left": "ann"}


@dataclass
class Try:
    """A stage with one agent, and the simulated robot behind it."""

    stage: Stage
    rig: Rig
    agent: Agent
    endpoint: str


@asynccontextmanager
async def try_stage(wire: str = "dds") -> AsyncIterator[Try]:
    endpoint = f"127.0.0.1:{free_port()}"
    async with open_stage(endpoint=endpoint, mute=True) as opened, rig(wire) as one:
        bus = await StageBus.join(endpoint)
        try:
            async with one.connect() as robot:
                agent = Agent(bus, robot, "ann", TRY_STAGE)
                task = asyncio.ensure_future(agent.run())
                try:
                    assert await opened.conductor.wait_for_agents(("ann",), 30.0) == ()
                    yield Try(opened, one, agent, endpoint)
                finally:
                    task.cancel()
                    await asyncio.gather(task, return_exceptions=True)
        finally:
            await bus.close()


async def until(found: Callable[[], object], within_s: float = 30.0) -> None:
    async with asyncio.timeout(within_s):
        while not found():
            await asyncio.sleep(0.02)


def tone(path: Path, seconds: float, rate_hz: int = 16_000) -> bytes:
    pcm = struct.pack("<h", 4000) * round(seconds * rate_hz)
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, rate_hz, 0, "NONE", ""))
        file.writeframes(pcm)
    return pcm


def written(folder: Path, *sections: dict[str, Any]) -> Path:
    show = {"rote_show": 1, "roles": {"left": {}}, "sections": list(sections)}
    path = folder / "show.json"
    path.write_text(json.dumps(show))
    return path


def test_sounds_light_and_osc_are_played_and_measured_and_a_word_begins_a_section(
    tmp_path: Path,
) -> None:
    pcm = tone(tmp_path / "bell.wav", 0.2)
    tone(tmp_path / "music.wav", 0.3, 44_100)
    desk = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    desk.bind(("127.0.0.1", 0))
    desk.settimeout(10.0)
    cues = [
        {"sound": "music.wav", "at_s": 0.1},
        {"osc": "/cue/1/go", "to": f"127.0.0.1:{desk.getsockname()[1]}", "at_s": 0.1},
        {"role": "left", "sound": "bell.wav", "at_s": 0.2},
        {"role": "left", "light": [1, 2, 3], "at_s": 0.2},
    ]
    show = written(
        tmp_path,
        {"name": "ring", "start": {"on": "after"}, "cues": cues},
        {
            "name": "answer",
            "start": {"on": "heard", "word": "evening"},
            "cues": [{"role": "left", "say": "Good evening"}],
        },
    )

    async def main() -> None:
        async with try_stage() as one:
            playing = asyncio.ensure_future(one.stage.play(show, CAST))
            await until(lambda: one.rig.world.voice.light == (1, 2, 3))
            assert decode(desk.recv(1000))[0].address == "/cue/1/go"
            await until(lambda: one.agent.session.run is None)
            await asyncio.sleep(0.3)
            assert not playing.done()
            one.rig.world.voice.recognise_speech("Good EVENING everybody")
            report = await asyncio.wait_for(playing, 30.0)
            ring, answer = (section.as_json() for section in report.sections)
            assert one.rig.world.voice.played == pcm
            assert [(cue["cue"], cue["by"]) for cue in ring["cues"]] == [
                ("sound music.wav", None),
                ("osc /cue/1/go", None),
                ("sound bell.wav", "ann"),
                ("light #010203", "ann"),
            ]
            assert all(isinstance(cue["late_ms"], float) for cue in ring["cues"])
            assert [cue["cue"] for cue in answer["cues"]] == ["say Good evening"]

    try:
        asyncio.run(main())
    finally:
        desk.close()


def test_a_stop_ends_a_sound_here_and_on_the_robot(tmp_path: Path) -> None:
    tone(tmp_path / "long.wav", 60.0)
    cues = [{"sound": "long.wav"}, {"role": "left", "sound": "long.wav"}]
    show = written(tmp_path, {"name": "long", "cues": cues})

    async def main() -> None:
        async with try_stage() as one:
            playing = asyncio.ensure_future(one.stage.play(show, CAST, automatic=True))
            await until(lambda: one.rig.world.voice.played)
            answer = await one.stage.stop("a test")
            assert answer.confirmed_s is not None
            with pytest.raises(SectionError, match="a test"):
                await asyncio.wait_for(playing, 30.0)
            speaker = one.stage.own_cues.speaker
            assert speaker is not None
            assert not speaker.playing
            told = [notice.message for notice in one.rig.world.notices]
            assert any("sounds of 'rote' stop" in each for each in told)

    asyncio.run(main())


def test_a_stop_ends_a_section_in_which_no_robot_takes_part(tmp_path: Path) -> None:
    tone(tmp_path / "a.wav", 0.1)
    show = written(tmp_path, {"name": "alone", "cues": [{"sound": "a.wav", "at_s": 60.0}]})

    async def main() -> None:
        async with try_stage() as one:
            playing = asyncio.ensure_future(one.stage.play(show, CAST, automatic=True))
            await until(lambda: one.stage.own_cues.speaker and one.stage.own_cues.speaker.playing)
            await one.stage.stop("a test")
            with pytest.raises(SectionError, match="a test"):
                await asyncio.wait_for(playing, 30.0)
            with pytest.raises(SectionError, match="stop is active"):
                await one.stage.play(show, CAST, automatic=True)

    asyncio.run(main())


def test_a_robot_that_cannot_play_sounds_refuses_before_the_section(tmp_path: Path) -> None:
    tone(tmp_path / "a.wav", 0.1)
    show = written(tmp_path, {"name": "ring", "cues": [{"role": "left", "sound": "a.wav"}]})

    async def main() -> None:
        async with try_stage("webrtc") as one:
            with pytest.raises(SectionError, match="play sounds"):
                await one.stage.play(show, CAST, automatic=True)

    asyncio.run(main())


def test_an_agent_tells_what_its_robot_holds_and_keeps_what_it_learns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROTE_HOME", str(tmp_path / "home"))
    show = written(tmp_path, {"name": "own", "clips": [{"role": "left", "action": "stored 0"}]})

    async def main() -> None:
        async with try_stage("udp") as one:
            one.rig.fill(2)
            await until(lambda: one.stage.robots["ann"].holds == ("stored 0", "stored 1"))
            report = await one.stage.play(show, CAST, automatic=True)
            assert len(report.sections[0].starts_s) == 1

    asyncio.run(main())
    kept = json.loads(paths.agent_file(TRY_STAGE, "ann").read_text())
    lead_s = kept["leads_s"]["stored 0"]

    async def again() -> None:
        async with try_stage("udp") as one:
            assert one.agent.leads.leads_s == {"stored 0": lead_s}

    asyncio.run(again())
    paths.agent_file(TRY_STAGE, "ann").write_text('{"leads_s": {"stored 0": "soon", "x": 1e9}}')
    asyncio.run(_without_leads())


def test_an_agent_that_ends_saves_what_it_learned_last() -> None:
    async def main() -> None:
        async with try_stage("udp") as one:
            one.agent.leads.learn("stored 0", 0.25)

    asyncio.run(main())
    assert json.loads(paths.agent_file(TRY_STAGE, "ann").read_text())["leads_s"] == {
        "stored 0": 0.25
    }


async def _without_leads() -> None:
    async with try_stage("udp") as one:
        assert one.agent.leads.leads_s == {}


def test_a_sound_is_requested_as_much_earlier_as_the_robot_was_seen_to_need(tmp_path: Path) -> None:
    tone(tmp_path / "bell.wav", 0.2)
    cue = {"role": "left", "sound": "bell.wav", "at_s": 1.0}
    show = written(tmp_path, {"name": "ring", "start": {"on": "after"}, "cues": [cue]})
    file = paths.agent_file(TRY_STAGE, "ann")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"leads_s": {SOUND_LEAD: 0.9}}))

    async def main() -> None:
        async with try_stage() as one:
            (section,) = (await one.stage.play(show, CAST)).sections
            (ring,) = section.as_json()["cues"]
            assert ring["late_ms"] < 0.0, "this robot needs much less"

    asyncio.run(main())
    assert 0.0 <= json.loads(file.read_text())["leads_s"][SOUND_LEAD] < 0.9


def test_a_sound_that_is_missing_is_found_by_the_check(tmp_path: Path) -> None:
    show = written(tmp_path, {"name": "ring", "cues": [{"role": "left", "sound": "gone.wav"}]})

    async def main() -> None:
        async with try_stage("udp") as one:
            with pytest.raises(BadRequestError, match=r"gone\.wav"):
                await one.stage.play(show, CAST, automatic=True)

    asyncio.run(main())


def test_a_flood_of_messages_keeps_no_stop_from_being_confirmed(tmp_path: Path) -> None:
    async def main() -> None:
        async with try_stage("udp") as one:
            bus = await StageBus.join(one.endpoint)
            keys = StageKeys(TRY_STAGE)
            try:
                for number in range(5000):
                    bus.publish(keys.state("bob"), b'{"name": "bob", "beat": %d}' % number)
                    bus.publish(keys.state("eve"), b"[" * 4000)
                answer = await one.stage.stop("a test")
                assert answer.unconfirmed == ()
                assert answer.confirmed_s is not None
                assert set(one.stage.robots) == {"ann"}
            finally:
                await bus.close()

    asyncio.run(main())


@pytest.mark.parametrize("size", [100, MAX_BYTES + 1])
def test_bytes_that_are_no_score_or_too_many_are_refused_and_nobody_moves(size: int) -> None:
    async def main() -> None:
        async with try_stage("udp") as one:
            refused: asyncio.Future[SectionRefused] = asyncio.get_running_loop().create_future()

            def look(event: ConductorEvent) -> None:
                if isinstance(event, SectionRefused) and not refused.done():
                    refused.set_result(event)

            conductor = one.stage.conductor
            conductor.on_event(look)
            blob = conductor._store_blob(bytes(size))
            conductor.session.play("one", {"ann": blob}, conductor._clock())
            event = await asyncio.wait_for(refused, 60.0)
            assert event.agents == ("ann",)
            assert "score" in event.reason
            assert one.rig.world.state().phase is Phase.NONE

    asyncio.run(main())
