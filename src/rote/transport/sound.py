"""Sounds: read from files, and played by this computer's loudspeaker at a given time.

The device runs all the time and plays silence, so that a sound begins within one block, without the
time to open the device. The start of a sound is measured when its first sample is handed to the
device; the latency of the device itself is unknown.
"""

import asyncio
import math
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
"""Duration of the audio that the device requests at once."""
MAX_FILE_BYTES = 512 * 2**20
_FULL_SCALE = 2**15  # one more than the largest sample of 16 bits
_CHECK_S = 0.05
"""Interval of the check whether all sounds have ended."""


def read_sound(path: str | Path, rate_hz: int, channels: int) -> Sound:
    """Read a sound file and convert it to this sample rate and number of channels.

    A WAV file that needs no conversion needs no further package. Others (WAV, FLAC, MP3, Ogg
    Vorbis) need the extra `sound`. Raises `BadRequestError` for a file that cannot be read.
    """
    file = Path(path)
    matching = _read_matching_wav(file, rate_hz, channels)
    if matching is not None:
        return matching
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
    """Return a sound file's duration in seconds. Raises `BadRequestError` if it is unreadable."""
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
    """Raise `OSError`, as for a file that cannot be read, if the file is too large."""
    if file.stat().st_size > MAX_FILE_BYTES:
        raise OSError(0, f"it is larger than {MAX_FILE_BYTES // 2**20} MB")


def _make_unreadable_error(file: Path, error: Exception) -> BadRequestError:
    reason = getattr(error, "strerror", None) or str(error)
    return BadRequestError(
        f"the sound {file.name!r} cannot be read: {reason}", "Convert it to WAV, FLAC, MP3 or Ogg."
    )


def _read_matching_wav(file: Path, rate_hz: int, channels: int) -> Sound | None:
    """Read a WAV file that needs no conversion; return None for any other file."""
    try:
        _check_size(file)
        with wave.open(str(file), "rb") as opened:
            wav_format = opened.getframerate(), opened.getnchannels(), opened.getsampwidth()
            if wav_format == (rate_hz, channels, SAMPLE_BYTES):
                pcm = opened.readframes(opened.getnframes())
                # A file that was cut off may end within a sample.
                size = len(pcm) - len(pcm) % (channels * SAMPLE_BYTES)
                return Sound(pcm[:size], rate_hz, channels)
    except (wave.Error, EOFError):
        return None
    except OSError as error:
        raise _make_unreadable_error(file, error) from None
    return None


def _import_miniaudio(what: str) -> Any:
    """Return the library miniaudio; raise `MissingExtraError`, which says that `what` needs it."""
    try:
        import miniaudio  # noqa: PLC0415 - optional, the extra `sound`
    except ImportError:
        raise MissingExtraError(what, "sound") from None
    return miniaudio


class _Voice:
    """One sound that is scheduled or playing."""

    def __init__(
        self,
        samples: "np.ndarray[Any, np.dtype[np.int16]]",
        at_s: float,
        on_begun: Callable[..., Any],
    ) -> None:
        """`on_begun` is called with the measured start in seconds; with None if it is cancelled."""
        self.samples, self.at_s, self.on_begun = samples, at_s, on_begun
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
        self._pause: tuple[float, float | None] | None = None
        """When the newest pause begins and ends; the end is None until `release`."""
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
            # Without a sound device, miniaudio falls back to one that plays nothing.
            is_missing = self._device.backend == "Null" and not mute
        except miniaudio.MiniaudioError as error:
            raise _make_no_loudspeaker_error(str(error)) from None
        if is_missing:
            self._device.close()
            raise _make_no_loudspeaker_error("there is no sound device")
        blocks = self._generate_blocks()
        next(blocks)  # up to the first yield, where it waits for the device's first request
        self._device.start(blocks)

    def play(self, sound: Sound, at_s: float) -> "asyncio.Future[float]":
        """Play a sound from `at_s` by the event loop's clock, or at once if that time has passed.

        Return a future with the time when its first sample was handed to the device. It is
        cancelled if the sound is ended before that.
        """
        if (sound.rate_hz, sound.channels) != (RATE_HZ, CHANNELS):
            raise BadRequestError(
                f"a sound of {sound.rate_hz} Hz and {sound.channels} channels cannot be played",
                f"Convert it to {RATE_HZ} Hz and {CHANNELS} channels with read_sound.",
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

    def hold(self, at_s: float) -> None:
        """Pause all sounds from `at_s` on; `release` continues them where they were."""
        with self._lock:
            self._pause = (at_s, None)

    def release(self, at_s: float) -> None:
        """Continue from `at_s` on; sounds scheduled for later are delayed by the pause."""
        with self._lock:
            if self._pause is None:
                return
            begin_s, _ = self._pause
            self._pause = (begin_s, at_s)
            for voice in self._voices:
                has_begun = voice.position > 0
                if not has_begun and voice.at_s >= begin_s:
                    voice.at_s += at_s - begin_s

    @property
    def playing(self) -> bool:
        """Whether a sound is playing or scheduled."""
        with self._lock:
            return bool(self._voices)

    async def wait_until_silent(self) -> None:
        """Wait until no sound is playing or scheduled."""
        while self.playing:  # noqa: ASYNC110 - the device reports no end
            await asyncio.sleep(_CHECK_S)

    def silence(self) -> None:
        """End all playing and scheduled sounds now."""
        with self._lock:
            ended, self._voices, self._pause = self._voices, [], None
        for voice in ended:
            voice.on_begun(None)

    def close(self) -> None:
        """End all sounds and leave the device. Safe to repeat."""
        self.silence()
        self._device.close()

    def _generate_blocks(self) -> Generator[bytes, int, None]:
        """Yield audio in a thread of the device, which sends in the number of frames it needs."""
        frames = yield b""
        while True:
            frames = yield self.mix_block(frames)

    def mix_block(self, frames: int) -> bytes:
        """Return the next `frames` samples per channel of all sounds together, as 16-bit PCM."""
        now_s = self._clock()
        with self._lock:
            voices = list(self._voices)
            begin_s, end_s = self._pause or (math.inf, None)
        is_paused = now_s >= begin_s and (end_s is None or now_s < end_s)
        if not voices or is_paused:
            return bytes(frames * CHANNELS * SAMPLE_BYTES)
        mixed = np.zeros((frames, CHANNELS), np.int32)
        ended = [voice for voice in voices if self._mix_voice(voice, mixed, now_s)]
        if ended:
            with self._lock:
                self._voices = [voice for voice in self._voices if voice not in ended]
        return mixed.clip(-_FULL_SCALE, _FULL_SCALE - 1).astype("<i2").tobytes()

    def _mix_voice(self, voice: _Voice, mixed: "np.ndarray[Any, Any]", now_s: float) -> bool:
        """Add a sound's next frames to the block of `now_s`; return whether the sound has ended."""
        first = 0  # the frame of the block at which the sound begins or continues
        if voice.position == 0:
            first = max(0, round((voice.at_s - now_s) * RATE_HZ))
            if first >= len(mixed):
                return False
            voice.on_begun(now_s + first / RATE_HZ)
        part = voice.samples[voice.position : voice.position + len(mixed) - first]
        mixed[first : first + len(part)] += part
        voice.position += len(part)
        return voice.position >= len(voice.samples)


def _make_no_loudspeaker_error(reason: str) -> LinkError:
    return LinkError(
        f"this computer cannot play sounds: {reason}",
        "Connect a loudspeaker, or play without sound.",
    )
