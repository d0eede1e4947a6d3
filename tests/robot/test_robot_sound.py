"""Sounds on a robot: sent as samples, measured by what the robot reports, and ended at once."""

import asyncio
import math
import struct
import wave
from pathlib import Path

import pytest

from rig import rig
from rote.errors import BadRequestError, UnsupportedError
from rote.messages import SOUND_RATE_HZ, HeardSpeech, Sound, SoundState


def tone(seconds: float) -> bytes:
    count = round(seconds * SOUND_RATE_HZ)
    return struct.pack(f"<{count}h", *(round(9000 * math.sin(0.2 * n)) for n in range(count)))


def test_a_robot_plays_a_file_and_its_start_is_measured(tmp_path: Path) -> None:
    path = tmp_path / "tone.wav"
    pcm = tone(0.3)
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, SOUND_RATE_HZ, 0, "NONE", ""))
        file.writeframes(pcm)

    async def main() -> None:
        async with rig("dds") as one, one.connect() as robot:
            report = await robot.audio.sound(path)
            assert report.seconds == pytest.approx(0.3)
            assert report.completed
            assert report.began_after_s is not None
            assert report.began_after_s >= 0.0
            assert one.world.voice.played == pcm

    asyncio.run(main())


def test_a_long_sound_arrives_whole_in_parts_and_cancelling_ends_it() -> None:
    async def main() -> None:
        async with rig("dds") as one, one.connect() as robot:
            heard: list[HeardSpeech | SoundState] = []
            robot.audio.add_listener(heard.append)
            pcm = tone(3.2)
            task = asyncio.ensure_future(robot.audio.sound(Sound(pcm, SOUND_RATE_HZ, 1)))
            async with asyncio.timeout(20.0):
                while len(one.world.voice.played) < len(pcm):
                    await asyncio.sleep(0.02)
            assert one.world.voice.played == pcm
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            async with asyncio.timeout(20.0):
                while SoundState(False) not in heard:
                    await asyncio.sleep(0.02)
            one.world.voice.recognise_speech("good evening")
            async with asyncio.timeout(20.0):
                while HeardSpeech("good evening") not in heard:
                    await asyncio.sleep(0.02)

    asyncio.run(main())


def test_a_wire_that_carries_no_sound_says_which_does() -> None:
    async def main() -> None:
        async with rig("webrtc") as one, one.connect() as robot:
            with pytest.raises(UnsupportedError) as refused:
                await robot.audio.sound(Sound(tone(0.1), SOUND_RATE_HZ, 1))
            assert refused.value.wires_that_can == ("dds://",)
            with pytest.raises(UnsupportedError):
                robot.audio.add_listener(lambda _: None)

    asyncio.run(main())


def test_samples_of_another_rate_are_refused_before_anything_is_sent() -> None:
    async def main() -> None:
        async with rig("dds") as one, one.connect() as robot:
            for sound in (Sound(tone(0.1), 48_000, 1), Sound(b"", SOUND_RATE_HZ, 1)):
                with pytest.raises(BadRequestError):
                    await robot.audio.sound(sound)
            assert one.world.voice.played == b""

    asyncio.run(main())
