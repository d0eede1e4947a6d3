"""Sounds: read from files, and played by this computer's loudspeaker at a given moment.

The loudspeaker runs all the time and plays silence, so that a sound begins within a block and not
after the time that a device needs to open. What is measured is when a sound's first sample was
handed to the device; how long the device needs until it is heard is not known here.
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
"""What the loudspeaker of this computer plays."""
BLOCK_MS = 10
MAX_FILE_BYTES = 512 * 2**20
_FULL_SCALE = 2**15
_LOOK_S = 0.05


def read_sound(path: str | Path, rate_hz: int, channels: int) -> Sound:
    """Read a sound file and bring it to this rate and this many channels.

    A WAV file that has them already needs no further package. Others (WAV, FLAC, MP3, Ogg Vorbis)
    need the extra `sound`. Raises `BadRequestError` for a file that cannot be read.
    """
    file = Path(path)
    plain = _plain_wav(file, rate_hz, channels)
    if plain is not None:
        return plain
    miniaudio = _miniaudio(f"the sound {file.name}")
    try:
        _check_size(file)
        decoded = miniaudio.decode_file(
            str(file), miniaudio.SampleFormat.SIGNED16, channels, rate_hz
        )
    except (miniaudio.MiniaudioError, OSError) as error:
        raise _unreadable(file, error) from None
    return Sound(decoded.samples.tobytes(), rate_hz, channels)


def sound_seconds(path: str | Path) -> float:
    """Return how long a sound file is. Raises `BadRequestError` for one that cannot be read."""
    file = Path(path)
    try:
        with wave.open(str(file), "rb") as opened:
            return opened.getnframes() / opened.getframerate()
    except (wave.Error, EOFError, ZeroDivisionError):
        pass
    except OSError as error:
        raise _unreadable(file, error) from None
    miniaudio = _miniaudio(f"the sound {file.name}")
    try:
        _check_size(file)
        return float(miniaudio.get_file_info(str(file)).duration)
    except (miniaudio.MiniaudioError, OSError) as error:
        raise _unreadable(file, error) from None


def _check_size(file: Path) -> None:
    if file.stat().st_size > MAX_FILE_BYTES:
        raise OSError(0, f"it has more than {MAX_FILE_BYTES // 2**20} MB")


def _unreadable(file: Path, error: Exception) -> BadRequestError:
    why = getattr(error, "strerror", None) or str(error)
    return BadRequestError(
        f"the sound {file.name!r} cannot be read: {why}", "Convert it to WAV, FLAC, MP3 or Ogg."
    )


def _plain_wav(file: Path, rate_hz: int, channels: int) -> Sound | None:
    """Read a WAV file that has the wanted form already; None for any other file."""
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
        raise _unreadable(file, error) from None
    return None


def _miniaudio(what: str) -> Any:
    try:
        import miniaudio  # noqa: PLC0415 - optional, the extra `sound`
    except ImportError:
        raise MissingExtraError(what, "sound") from None
    return miniaudio


class _Voice:
    """One sound that is to be played, or plays."""

    def __init__(
        self, samples: "np.ndarray[Any, np.dtype[np.int16]]", at_s: float, begun: Callable[..., Any]
    ) -> None:
        self.samples, self.at_s, self.begun = samples, at_s, begun
        self.place = 0
        """How many of its frames were played."""


class Loudspeaker:
    """This computer's loudspeaker. Open it before it is needed, and close it in every ending."""

    def __init__(self, *, mute: bool = False) -> None:
        """With `mute` nothing is heard; all else happens, measured in the same way.

        Raises `LinkError` if this computer has no loudspeaker.
        """
        miniaudio = _miniaudio("sound on this computer")
        self._loop = asyncio.get_running_loop()
        self._clock = clock_of(self._loop)
        self._voices: list[_Voice] = []
        self._lock = threading.Lock()
        self.resolution_s = BLOCK_MS / 1000
        """How exactly a start is known: the length of a block."""
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
            raise _no_loudspeaker(str(error)) from None
        if silent:
            self._device.close()
            raise _no_loudspeaker("there is no sound device")
        blocks = self._blocks()
        next(blocks)
        self._device.start(blocks)

    def play(self, sound: Sound, at_s: float) -> "asyncio.Future[float]":
        """Play a sound from `at_s` of the event loop's clock on; one in the past begins at once.

        Return when its first sample was handed to the device, as a future. It is cancelled if the
        sound is ended before.
        """
        if (sound.rate_hz, sound.channels) != (RATE_HZ, CHANNELS):
            raise BadRequestError(
                f"this computer plays {RATE_HZ} samples a second of {CHANNELS} channels"
            )
        begun: asyncio.Future[float] = self._loop.create_future()
        samples = np.frombuffer(sound.pcm, "<i2").reshape(-1, CHANNELS)

        def tell(when_s: float | None) -> None:
            if not begun.done():
                begun.cancel() if when_s is None else begun.set_result(when_s)

        def told(when_s: float | None) -> None:
            if not self._loop.is_closed():
                self._loop.call_soon_threadsafe(tell, when_s)

        with self._lock:
            self._voices.append(_Voice(samples, at_s, told))
        return begun

    @property
    def playing(self) -> bool:
        """Whether a sound plays, or is going to."""
        with self._lock:
            return bool(self._voices)

    async def over(self) -> None:
        """Wait until no sound plays any more, nor is going to."""
        while True:
            if not self.playing:
                return
            await asyncio.sleep(_LOOK_S)

    def silence(self) -> None:
        """End all sounds now, and those that wait for their moment."""
        with self._lock:
            ended, self._voices = self._voices, []
        for each in ended:
            each.begun(None)

    def close(self) -> None:
        """End all sounds and leave the device. Safe to repeat."""
        self.silence()
        self._device.close()

    def _blocks(self) -> Generator[bytes, int, None]:
        """Yield what is played next; called in a thread of the device."""
        frames = yield b""
        while True:
            frames = yield self._block(frames)

    def _block(self, frames: int) -> bytes:
        now_s = self._clock()
        with self._lock:
            voices = list(self._voices)
        if not voices:
            return bytes(frames * CHANNELS * SAMPLE_BYTES)
        mixed = np.zeros((frames, CHANNELS), np.int32)
        done = [each for each in voices if self._mix(each, mixed, now_s)]
        if done:
            with self._lock:
                self._voices = [each for each in self._voices if each not in done]
        return mixed.clip(-_FULL_SCALE, _FULL_SCALE - 1).astype("<i2").tobytes()

    def _mix(self, voice: _Voice, mixed: "np.ndarray[Any, Any]", now_s: float) -> bool:
        """Add a sound's next samples to a block; return whether that was its end."""
        first = 0
        if voice.place == 0:
            first = max(0, round((voice.at_s - now_s) * RATE_HZ))
            if first >= len(mixed):
                return False
            voice.begun(now_s + first / RATE_HZ)
        part = voice.samples[voice.place : voice.place + len(mixed) - first]
        mixed[first : first + len(part)] += part
        voice.place += max(1, len(part))
        return voice.place >= len(voice.samples)


def _no_loudspeaker(why: str) -> LinkError:
    return LinkError(
        f"this computer cannot play sounds: {why}", "Connect a loudspeaker, or play without sound."
    )
