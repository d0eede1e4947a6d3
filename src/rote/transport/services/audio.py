"""Speech, sounds and the light of the service voice."""

from rote import messages as m
from rote.transport.services.connection import RpcConnection
from rote.transport.wires import unsupported
from rote.wire.services import rpc

_APP = "rote"
"""The name under which we play sounds."""


class ServiceAudio:
    """One robot's loudspeaker and light."""

    def __init__(self, connection: RpcConnection, *, plays_sounds: bool) -> None:
        self._connection = connection
        self._plays_sounds = plays_sounds
        self._speech_number = 0

    async def say_text(self, command: m.Say) -> m.Reply:
        """Say a text."""
        self._speech_number += 1
        language = m.LANGUAGES[command.language]
        await self._connection.call(rpc.speak(command.text, language, self._speech_number))
        return m.Status()

    async def set_light(self, command: m.SetLight) -> m.Reply:
        """Set the colour of the light."""
        await self._connection.call(rpc.set_light(command.red, command.green, command.blue))
        return m.Status()

    async def play_sound(self, command: m.PlaySound) -> m.Reply:
        """Play a part of a sound. Raises `UnsupportedError` if the wire does not carry sounds."""
        if not self._plays_sounds:
            raise unsupported("play a sound", self._connection.wire, "sound")
        await self._connection.call(rpc.play_sound(_APP, command.stream, command.pcm))
        return m.Status()

    async def stop_sound(self, _: m.StopSound) -> m.Reply:
        """Stop the sound that this client plays."""
        await self._connection.call(rpc.stop_sound(_APP))
        return m.Status()
