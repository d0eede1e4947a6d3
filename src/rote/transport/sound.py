"""Sounds: read from files, and played by this computer's loudspeaker at a given time.

The device runs all the time and plays silence, so that a sound begins within one block, without the
time to open the device. The start of a sound is measured when its first sample is handed to the
device; the latency of the device itself is unknown.
"""

import asyncio
import threading
import wave
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import numpy as np

from rote.errors import BadRequestError, LinkError, MissingExtraError
from rote.messages import SAMPLE_BYTES, Sound
from rote.platform.loop import clock_of

RATE_HZ, CHANNELS = 48_000, 2
"""The format that the loudspeaker of this computer plays."""
BLOCK_MS = 10
MAX_FILE_BYTES = 512 * 2**20
_FULL_SCALE = 2**15
_CHECK_S = 0.05


def read_sound(path: str | Path, rate_hz: int, channels: int) -> Sound:
    """Read a sound file and convert it to this sample rate and number of channels.

    A WAV file that needs no conversion needs no further package. Others (WAV, FLAC, MP3, Ogg
    Vorbis) need the extra `sound`. Raises `BadRequestError` for a file that cannot be read.
    """
    file = Path(path)
    plain = _read_matching_wav(file, rate_hz, channels)
    if plain is not None:
        return plain
    miniaudio = _import_miniaudio(f"the sound {file.name}")
    try:
        _check_size(file)
        decoded = miniaudio.decode_file(
            str(file), miniaudio.SampleFormat.SIGNED16, channels, rate_hz
        )
    except (miniaudio.MiniaudioError, OSError) as error:
        raise _make_unreadable_error(file, error) from None
    return Sound(decoded.samples.tobytes(), rate_hz, channels)


def sound_seconds(path: str | Path) -> float:
    """Return the duration of a sound file. Raises `BadRequestError` if it cannot be read."""
    file = Path(path)
    try:
        with wave.open(str(file), "rb") as opened:
            return opened.getnframes() / opened.getframerate()
    except (wave.Error, EOFError, ZeroDivisionError):
        pass
    except OSError as error:
        raise _make_unreadable_error(file, error) from None
    miniaudio = _import_miniaudio(f"the sound {file.name}")
    try:
        _check_size(file)
        return float(miniaudio.get_file_info(str(file)).duration)
    except (miniaudio.MiniaudioError, OSError) as error:
        raise _make_unreadable_error(file, error) from None


def _check_size(file: Path) -> None:
    if file.stat().st_size > MAX_FILE_BYTES:
        raise OSError(0, f"it has more than {MAX_FILE_BYTES // 2**20} MB")


def _make_unreadable_error(file: Path, error: Exception) -> BadRequestError:
    why = getattr(error, "strerror", None) or str(error)
    return BadRequestError(
        f"the sound {file.name!r} cannot be read: {why}", "Convert it to WAV, FLAC, MP3 or Ogg."
    )


def _read_matching_wav(file: Path, rate_hz: int, channels: int) -> Sound | None:
    """Read a WAV file that needs no conversion; return None for any other file."""
    try:
        _check_size(file)
        with wave.open(str(file), "rb") as opened:
            form = opened.getframerate(), opened.getnchannels(), opened.getsampwidth()
            if form == (rate_hz, channels, SAMPLE_BYTES):
                read = opened.readframes(opened.getnframes())
                # A file that was cut off may end within a sample.
                whole = len(read) - len(read) % (channels * SAMPLE_BYTES)
                return Sound(read[:whole], rate_hz, channels)
    except (wave.Error, EOFError):
        return None
    except OSError as error:
        raise _make_unreadable_error(file, error) from None
    return None


def _import_miniaudio(what: str) -> Any:
    try:
        import miniaudio  # noqa: PLC0415 - optional, the extra `sound`
    except ImportError:
        raise MissingExtraError(what, "sound") from None
    return miniaudio


class _Voice:
    """One sound that is scheduled or playing."""

    def __init__(
        self, samples: "np.ndarray[Any, np.dtype[np.int16]]", at_s: float, begun: Callable[..., Any]
    ) -> None:
        self.samples, self.at_s, self.begun = samples, at_s, begun
        self.position = 0
        """Number of frames played so far."""


class Loudspeaker:
    """This computer's loudspeaker. Open it before it is needed, and always close it."""

    def __init__(self, *, mute: bool = False) -> None:
        """With `mute` nothing is audible; everything else happens, with the same measurements.

        Raises `LinkError` if this computer has no loudspeaker.
        """
        miniaudio = _import_miniaudio("sound on this computer")
        self._loop = asyncio.get_running_loop()
        self._clock = clock_of(self._loop)
        self._voices: list[_Voice] = []
        self._lock = threading.Lock()
        self.resolution_s = BLOCK_MS / 1000
        """Resolution of a measured start: the length of a block."""
        try:
            self._device = miniaudio.PlaybackDevice(
                miniaudio.SampleFormat.SIGNED16,
                CHANNELS,
                RATE_HZ,
                buffersize_msec=BLOCK_MS,
                backends=[miniaudio.Backend.NULL] if mute else None,
                app_name="rote",
            )
            silent = self._device.backend == "Null" and not mute
        except miniaudio.MiniaudioError as error:
            raise _make_no_loudspeaker_error(str(error)) from None
        if silent:
            self._device.close()
            raise _make_no_loudspeaker_error("there is no sound device")
        blocks = self._generate_blocks()
        next(blocks)
        self._device.start(blocks)

    def play(self, sound: Sound, at_s: float) -> "asyncio.Future[float]":
        """Play a sound from `at_s` of the event loop's clock on; one in the past begins at once.

        Return a future with the time when its first sample was handed to the device. It is
        cancelled if the sound is ended before that.
        """
        if (sound.rate_hz, sound.channels) != (RATE_HZ, CHANNELS):
            raise BadRequestError(
                f"this computer plays {RATE_HZ} samples a second of {CHANNELS} channels"
            )
        begun: asyncio.Future[float] = self._loop.create_future()
        samples = np.frombuffer(sound.pcm, "<i2").reshape(-1, CHANNELS)

        def resolve(when_s: float | None) -> None:
            if not begun.done():
                begun.cancel() if when_s is None else begun.set_result(when_s)

        def on_begun(when_s: float | None) -> None:
            if not self._loop.is_closed():
                self._loop.call_soon_threadsafe(resolve, when_s)

        with self._lock:
            self._voices.append(_Voice(samples, at_s, on_begun))
        return begun

    @property
    def playing(self) -> bool:
        """Whether a sound is playing or scheduled."""
        with self._lock:
            return bool(self._voices)

    async def wait_until_silent(self) -> None:
        """Wait until no sound is playing or scheduled."""
        while True:
            if not self.playing:
                return
            await asyncio.sleep(_CHECK_S)

    def silence(self) -> None:
        """End all playing and scheduled sounds now."""
        with self._lock:
            ended, self._voices = self._voices, []
        for each in ended:
            each.begun(None)

    def close(self) -> None:
        """End all sounds and leave the device. Safe to repeat."""
        self.silence()
        self._device.close()

    def _generate_blocks(self) -> Generator[bytes, int, None]:
        """Yield the blocks to play; called in a thread of the device."""
        frames = yield b""
        while True:
            frames = yield self._mix_block(frames)

    def _mix_block(self, frames: int) -> bytes:
        now_s = self._clock()
        with self._lock:
            voices = list(self._voices)
        if not voices:
            return bytes(frames * CHANNELS * SAMPLE_BYTES)
        mixed = np.zeros((frames, CHANNELS), np.int32)
        done = [each for each in voices if self._mix_voice(each, mixed, now_s)]
        if done:
            with self._lock:
                self._voices = [each for each in self._voices if each not in done]
        return mixed.clip(-_FULL_SCALE, _FULL_SCALE - 1).astype("<i2").tobytes()

    def _mix_voice(self, voice: _Voice, mixed: "np.ndarray[Any, Any]", now_s: float) -> bool:
        """Add a sound's next samples to a block; return whether the sound has ended."""
        first = 0
        if voice.position == 0:
            first = max(0, round((voice.at_s - now_s) * RATE_HZ))
            if first >= len(mixed):
                return False
            voice.begun(now_s + first / RATE_HZ)
        part = voice.samples[voice.position : voice.position + len(mixed) - first]
        mixed[first : first + len(part)] += part
        voice.position += max(1, len(part))
        return voice.position >= len(voice.samples)


def _make_no_loudspeaker_error(why: str) -> LinkError:
    return LinkError(
        f"this computer cannot play sounds: {why}", "Connect a loudspeaker, or play without sound."
    )
