"""A robot's voice, light, loudspeaker and microphone."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from rote import messages as m
from rote.errors import BadRequestError, RoteError
from rote.messages import Sound
from rote.platform.loop import clock_of, to_the_end
from rote.robot.api_values import RobotClient, SoundReport, check_colour, check_speech
from rote.robot.link import RobotLink
from rote.transport.sound import read_sound

PART_S = 3.0
"""A sound is sent in parts of this many seconds, as in Unitree's example."""
AHEAD_S = 2.0
"""A part is sent this many seconds before the previous one ends."""
BEGIN_TIMEOUT_S = 2.0
"""Timeout for the report that playback began; some robots never send one."""
MAX_SOUND_S = 600.0


class SoundPlayer:
    """Plays one sound on one robot."""

    def __init__(self, client: RobotClient, sound: Sound) -> None:
        if (sound.rate_hz, sound.channels) != (m.SOUND_RATE_HZ, 1):
            raise BadRequestError(
                f"the sound has {sound.rate_hz} Hz and {sound.channels} channels; a robot plays "
                f"{m.SOUND_RATE_HZ} Hz and one channel",
                f"Convert it, or read the file with read_sound(path, {m.SOUND_RATE_HZ}, 1).",
            )
        if not 0.0 < sound.seconds <= MAX_SOUND_S:
            raise BadRequestError(
                f"a sound of {sound.seconds:.0f} s cannot be played",
                f"Choose more than 0 and at most {MAX_SOUND_S:.0f} s.",
            )
        self._client, self._sound = client, sound
        self._loop = asyncio.get_running_loop()
        self._clock = clock_of(self._loop)
        self._began_at: asyncio.Future[float] = self._loop.create_future()
        """When the robot reported that playback began, by `_clock`."""
        self._ended = asyncio.Event()

    async def play(self) -> SoundReport:
        """Play the sound, and return when it is over."""
        requested_s = self._clock()
        remove_listener = self._client.on_audio(self._on_audio)
        try:
            await self._send_parts(requested_s)
            await self._wait_until_over(requested_s)
        except BaseException:
            with suppress(RoteError):
                await to_the_end(self._client.ask(m.StopSound()))
            raise
        finally:
            remove_listener()
        if not self._began_at.done():
            return SoundReport(self._sound.seconds, None, completed=True)
        began_s = self._began_at.result()
        # Reports may be a little late; a much shorter sound was interrupted by another client.
        completed = self._clock() - began_s > 0.9 * self._sound.seconds - 0.1
        return SoundReport(self._sound.seconds, began_s - requested_s, completed)

    def _on_audio(self, audio: m.HeardSpeech | m.SoundState) -> None:
        if isinstance(audio, m.SoundState):
            if audio.playing and not self._began_at.done():
                self._began_at.set_result(self._clock())
            elif not audio.playing and self._began_at.done():
                self._ended.set()

    async def _send_parts(self, requested_s: float) -> None:
        """Send all parts, each `AHEAD_S` before it is due; return early if the sound ended."""
        part_bytes = int(PART_S * m.SOUND_RATE_HZ) * m.SAMPLE_BYTES
        stream = f"{self._loop.time():.6f}"  # an id that no other sound of this program has
        for number, offset in enumerate(range(0, len(self._sound.pcm), part_bytes)):
            due_s = requested_s + number * PART_S - AHEAD_S
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), max(0.0, due_s - self._clock()))
            if self._ended.is_set():
                return
            part = self._sound.pcm[offset : offset + part_bytes]
            await self._client.ask(m.PlaySound(stream, part))

    async def _wait_until_over(self, requested_s: float) -> None:
        """Wait until the robot reports the end, or for the sound's length if it reports nothing."""
        with suppress(TimeoutError):
            left_s = requested_s + BEGIN_TIMEOUT_S - self._clock()
            await asyncio.wait_for(asyncio.shield(self._began_at), max(0.0, left_s))
        began_s = self._began_at.result() if self._began_at.done() else requested_s
        left_s = began_s + self._sound.seconds - self._clock()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), max(0.0, left_s) + BEGIN_TIMEOUT_S)


class MessageAudio:
    """Implements `robot.audio` for a robot that understands `rote.messages`."""

    def __init__(self, link: RobotLink) -> None:
        self._link = link

    async def say(self, text: str, language: str = "en") -> None:
        """Make the robot speak, on wires that support it; return when the robot has accepted.

        Raises `BadRequestError` for a language that the robot does not speak.
        """
        self._link.require_ability("voice", "speak")
        await self._link.ask(check_speech(text, language))

    async def light(self, red: int, green: int, blue: int) -> None:
        """Set the colour of the light on the robot's head, 0 to 255 each, on wires that support it.

        A robot takes a new colour 5 times a second at most.
        """
        self._link.require_ability("voice", "change its light")
        await self._link.ask(check_colour(red, green, blue))

    async def sound(self, sound: Sound | str | Path) -> SoundReport:
        """Play a sound on the robot's loudspeaker, and return when it is over.

        A path is read as a sound file: WAV with 16 kHz, one channel and 16 bits; other formats need
        the extra `sound`. Starting another sound, or cancelling this call, ends the sound.
        """
        self._link.require_ability("sound", "play a sound")
        if not isinstance(sound, Sound):
            sound = await asyncio.to_thread(read_sound, sound, m.SOUND_RATE_HZ, 1)
        return await SoundPlayer(self._link.client, sound).play()

    def add_listener(
        self, listener: Callable[[m.HeardSpeech | m.SoundState], object]
    ) -> Callable[[], None]:
        """Call `listener` with recognised speech and with loudspeaker start and end events, on
        wires that support it.

        Return a function that removes it.
        """
        self._link.require_ability("hear", "hear")
        return self._link.client.on_audio(listener)
