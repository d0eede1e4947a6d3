"""A robot's voice, light, loudspeaker and microphone."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from rote import messages as m
from rote.messages import Sound
from rote.robot.api_values import SoundReport, check_colour, check_speech
from rote.robot.link import RobotLink
from rote.robot.sounding import SoundPlayer
from rote.transport.sound import read_sound


class MessageAudio:
    """What `robot.audio` is for a robot that speaks `rote.messages`."""

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
        """Play a sound on the robot's loudspeaker, on wires that can, and return when it is over.

        A path is read as a sound file: WAV of 16 kHz, one channel and 16 bits always, others with
        the extra `sound`. Another sound ends this one. Cancelling it ends the sound too.
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
