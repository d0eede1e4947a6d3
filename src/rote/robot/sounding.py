"""Plays a sound on a robot's loudspeaker: sent in parts, slightly ahead of playback."""

import asyncio
from contextlib import suppress

from rote import messages as m
from rote.errors import BadRequestError, RoteError
from rote.messages import Sound
from rote.platform.loop import clock_of, to_the_end
from rote.robot.api_values import RobotClient, SoundReport

PART_S = 3.0
"""Length of a part in seconds, as in the manufacturer's example."""
AHEAD_S = 2.0
"""How long before the end of a part the next one is sent, in seconds."""
BEGINS_S = 2.0
"""Timeout for the report that playback began; some robots never send one."""
MAX_SOUND_S = 600.0


class SoundPlayer:
    """Plays one sound on one robot."""

    def __init__(self, client: RobotClient, sound: Sound) -> None:
        if (sound.rate_hz, sound.channels) != (m.SOUND_RATE_HZ, 1):
            raise BadRequestError(
                f"a robot plays {m.SOUND_RATE_HZ} samples a second of one channel, not "
                f"{sound.rate_hz} of {sound.channels}",
                "Read the file with these.",
            )
        if not 0.0 < sound.seconds <= MAX_SOUND_S:
            raise BadRequestError(
                f"a sound of {sound.seconds:.0f} s cannot be played",
                f"Choose more than 0 and at most {MAX_SOUND_S:.0f} s.",
            )
        self._client, self._sound = client, sound
        self._loop = asyncio.get_running_loop()
        self._clock = clock_of(self._loop)
        self._begun: asyncio.Future[float] = self._loop.create_future()
        self._ended = asyncio.Event()

    async def play(self) -> SoundReport:
        """Play it, and return when it is over."""
        asked_s = self._clock()
        forget = self._client.on_audio(self._on_audio)
        try:
            await self._send_parts(asked_s)
            await self._wait_until_over(asked_s)
        except BaseException:
            with suppress(RoteError):
                await to_the_end(self._client.ask(m.StopSound()))
            raise
        finally:
            forget()
        begun_s = self._begun.result() - asked_s if self._begun.done() else None
        played_s = self._clock() - asked_s - (begun_s or 0.0)
        # Much too short: another client has interrupted the sound.
        completed = begun_s is None or played_s > 0.9 * self._sound.seconds - 0.1
        return SoundReport(self._sound.seconds, begun_s, completed)

    def _on_audio(self, audio: m.HeardSpeech | m.SoundState) -> None:
        if isinstance(audio, m.SoundState):
            if audio.playing and not self._begun.done():
                self._begun.set_result(self._clock())
            elif not audio.playing and self._begun.done():
                self._ended.set()

    async def _send_parts(self, asked_s: float) -> None:
        """Send all parts, each in time."""
        size = int(PART_S * m.SOUND_RATE_HZ) * m.SAMPLE_BYTES
        stream = f"{self._loop.time():.6f}"
        for number, start in enumerate(range(0, len(self._sound.pcm), size)):
            due_s = asked_s + number * PART_S - AHEAD_S
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), max(0.0, due_s - self._clock()))
            if self._ended.is_set():
                return
            await self._client.ask(m.PlaySound(stream, self._sound.pcm[start : start + size]))

    async def _wait_until_over(self, asked_s: float) -> None:
        """Wait until the robot reports the end, or for the sound's length if it reports nothing."""
        with suppress(TimeoutError):
            left_s = asked_s + BEGINS_S - self._clock()
            await asyncio.wait_for(asyncio.shield(self._begun), max(0.0, left_s))
        begun_s = self._begun.result() if self._begun.done() else asked_s
        left_s = begun_s + self._sound.seconds - self._clock()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), max(0.0, left_s) + BEGINS_S)
