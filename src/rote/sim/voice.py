"""The service `voice` of the simulated robot: speech, sounds, volume and the light on its head.

Nothing is heard: requests are checked, stored and shown as notices. Ids and parameters are those of
Unitree's clients. Over DDS a sound comes as bytes beside the parameter; they are ignored.
"""

from enum import IntEnum

from rote.errors import PayloadError
from rote.wire import rpc

SERVICE, VERSION = "voice", "1.0.0.0"
BAD_VALUE = 100
"""The code for a parameter that the service cannot accept."""
_MAX_VOLUME, _MAX_COLOUR = 100, 255


class VoiceApi(IntEnum):
    """The requests of the service."""

    SPEAK = 1001
    RECOGNISE = 1002
    PLAY = 1003
    STOP = 1004
    GET_VOLUME = 1005
    SET_VOLUME = 1006
    SET_LIGHT = 1010


class Voice:
    """The state of the robot's loudspeaker and light."""

    def __init__(self) -> None:
        self.volume = 60
        self.light = (0, 0, 255)
        """Red, green, blue; blue means that the robot is well."""

    def ask(self, api_id: int, parameter: str) -> tuple[str, str]:
        """Carry out a request; return the data of the answer, and a text for people who watch.

        Raises `PayloadError` for a parameter that cannot be accepted.
        """
        data, message = "", ""
        said = rpc.read_json(parameter) if parameter else {}
        if api_id == VoiceApi.GET_VOLUME:
            data = rpc.write_json({"volume": self.volume})
        elif api_id == VoiceApi.SPEAK:
            rpc.read(said, "speaker_id", int, 0)
            message = f"it says {rpc.read(said, 'text', str)!r}"
        elif api_id == VoiceApi.PLAY:
            message = f"it plays the sound {rpc.read(said, 'stream_id', str)!r}"
        elif api_id == VoiceApi.STOP:
            message = f"the sounds of {rpc.read(said, 'app_name', str)!r} stop"
        elif api_id == VoiceApi.SET_VOLUME:
            self.volume = _within(said, "volume", _MAX_VOLUME)
            message = f"its volume is now {self.volume} %"
        elif api_id == VoiceApi.SET_LIGHT:
            red, green, blue = (_within(said, key, _MAX_COLOUR) for key in "RGB")
            self.light = (red, green, blue)
            message = f"its light is now {self.light}"
        return data, message


def _within(said: object, key: str, most: int) -> int:
    value = rpc.read(said, key, int)
    if not 0 <= value <= most:
        raise PayloadError(f"{key!r} is 0 to {most}, not {value}")
    return value
