"""Sounds on this computer: read, primed, and begun at their moment on a device without sound."""

import asyncio
import struct
import sys
import wave
from pathlib import Path

import pytest

from rote.errors import BadRequestError, MissingExtraError
from rote.messages import Sound
from rote.transport.sound import CHANNELS, RATE_HZ, Loudspeaker, read_sound, sound_seconds

pytest.importorskip("miniaudio", reason="miniaudio is not installed")


def write(path: Path, rate_hz: int, channels: int, frames: int) -> Path:
    with wave.open(str(path), "wb") as file:
        file.setparams((channels, 2, rate_hz, 0, "NONE", ""))
        file.writeframes(struct.pack("<h", 5000) * frames * channels)
    return path


def silence(seconds: float) -> Sound:
    return Sound(bytes(round(seconds * RATE_HZ) * CHANNELS * 2), RATE_HZ, CHANNELS)


def test_a_file_is_brought_to_the_rate_that_is_wanted(tmp_path: Path) -> None:
    path = write(tmp_path / "a.wav", 44_100, 1, 22_050)
    assert sound_seconds(path) == pytest.approx(0.5)
    for rate_hz, channels in ((16_000, 1), (48_000, 2)):
        sound = read_sound(path, rate_hz, channels)
        assert sound.seconds == pytest.approx(0.5, abs=0.002)
        middle = len(sound.pcm) // 2 // 4 * 4
        assert struct.unpack_from("<h", sound.pcm, middle)[0] == pytest.approx(5000, abs=50)


def test_a_file_that_is_no_sound_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(b"RIFFnothing")
    for path in (tmp_path / "a.wav", tmp_path / "gone.mp3"):
        for look in (sound_seconds, lambda each: read_sound(each, 16_000, 1)):
            with pytest.raises(BadRequestError, match=path.name):
                look(path)


def test_without_the_extra_a_plain_file_is_read_and_others_name_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "miniaudio", None)
    plain = write(tmp_path / "plain.wav", 16_000, 1, 800)
    assert read_sound(plain, 16_000, 1).seconds == pytest.approx(0.05)
    assert sound_seconds(plain) == pytest.approx(0.05)
    with pytest.raises(MissingExtraError, match=r"rote-robot\[sound\]"):
        read_sound(plain, 48_000, 2)


def test_a_sound_begins_at_its_moment_and_two_sound_at_once() -> None:
    async def main() -> None:
        speaker = Loudspeaker(mute=True)
        try:
            now_s = asyncio.get_running_loop().time()
            first = speaker.play(silence(0.05), now_s + 0.2)
            second = speaker.play(silence(0.02), now_s + 0.2)
            began_s = await asyncio.wait_for(asyncio.gather(first, second), 10.0)
            for each in began_s:
                assert each >= now_s + 0.2 - speaker.resolution_s
            async with asyncio.timeout(10.0):
                while speaker.playing:
                    await asyncio.sleep(0.01)
        finally:
            speaker.close()
            speaker.close()

    asyncio.run(main())


def test_silence_ends_a_sound_that_waits_and_one_that_plays() -> None:
    async def main() -> None:
        speaker = Loudspeaker(mute=True)
        try:
            now_s = asyncio.get_running_loop().time()
            plays, waits = speaker.play(silence(60.0), now_s), speaker.play(silence(1), now_s + 60)
            await asyncio.wait_for(plays, 10.0)
            speaker.silence()
            assert not speaker.playing
            with pytest.raises(asyncio.CancelledError):
                await asyncio.wait_for(waits, 10.0)
        finally:
            speaker.close()

    asyncio.run(main())


def test_samples_are_played_whole_once_and_in_their_place() -> None:
    """The block is what the device gets: no sample is lost or doubled between two of them."""

    async def main() -> None:
        speaker = Loudspeaker(mute=True)
        speaker._device.stop()  # from here on this test asks for the blocks
        try:
            count = 1000
            samples = [value for n in range(count) for value in (n, -n)]
            sound = Sound(struct.pack(f"<{2 * count}h", *samples), RATE_HZ, CHANNELS)
            speaker.play(sound, 0.0)
            blocks = b"".join(speaker.mix_block(frames) for frames in (480, 1, 480, 480))
            got = struct.unpack(f"<{len(blocks) // 2}h", blocks)
            assert list(got[: 2 * count]) == samples
            assert set(got[2 * count :]) == {0}
            loud = Sound(struct.pack("<2h", 30_000, -30_000), RATE_HZ, CHANNELS)
            speaker.play(loud, 0.0), speaker.play(loud, 0.0)
            assert struct.unpack("<2h", speaker.mix_block(1)) == (32_767, -32_768)
        finally:
            speaker.close()

    asyncio.run(main())


@pytest.mark.parametrize("cut", range(1, 6))
def test_a_file_that_was_cut_off_is_played_to_its_last_whole_sample(
    cut: int, tmp_path: Path
) -> None:
    whole = write(tmp_path / "whole.wav", RATE_HZ, CHANNELS, 100)
    (tmp_path / "cut.wav").write_bytes(whole.read_bytes()[:-cut])
    sound = read_sound(tmp_path / "cut.wav", RATE_HZ, CHANNELS)
    assert len(sound.pcm) == 4 * (99 if cut <= 4 else 98)

    async def main() -> None:
        speaker = Loudspeaker(mute=True)
        try:
            await asyncio.wait_for(speaker.play(sound, 0.0), 10.0)
        finally:
            speaker.close()

    asyncio.run(main())
