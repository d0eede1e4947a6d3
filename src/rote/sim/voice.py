"""The service `voice` of the simulated robot: speech, sounds, volume and the light on its head.

There is no audio output: requests are checked, stored and shown as notices. Ids and parameters are
those of Unitree's clients. A sound takes as long as its samples, and speech about as long as a
person needs; meanwhile the robot reports on `rt/audio_msg` that it plays.
"""

from rote.errors import PayloadError
from rote.messages import SAMPLE_BYTES, SOUND_RATE_HZ
from rote.wire.services import rpc
from rote.wire.services.rpc import VoiceApi

SERVICE, VERSION = rpc.VOICE, "1.0.0.0"
BAD_VALUE = 100
"""The code for a parameter that the service cannot accept."""
LETTER_S = 0.06
"""Speaking time per letter in seconds; a guess."""
_MAX_VOLUME, _MAX_COLOUR = 100, 255
_SPEECH = "speech"


class Voice:
    """The state of the robot's loudspeaker and light."""

    def __init__(self) -> None:
        self.volume = 60
        self.light = (0, 0, 255)
        """Red, green, blue; blue means that the robot is well."""
        self.played = b""
        """The samples of the sound that plays, or played last."""
        self._playing: tuple[str, str] | None = None
        """The names of the application and the stream that play; None if nothing plays."""
        self._ends_s = 0.0
        self._messages: list[str] = []
        self._recognised_count = 0

    def handle_request(
        self, api_id: int, parameter: str, binary: bytes = b"", now_s: float = 0.0
    ) -> tuple[str, str]:
        """Carry out a request; return the data of the answer, and a notice for the operator.

        Raises `PayloadError` for a parameter that cannot be accepted.
        """
        data, message = "", ""
        parameters = rpc.read_json(parameter) if parameter else {}
        if api_id == VoiceApi.GET_VOLUME:
            data = rpc.write_json({"volume": self.volume})
        elif api_id == VoiceApi.SPEAK:
            rpc.read_field(parameters, "speaker_id", int, 0)  # raises if it is no integer
            text = rpc.read_field(parameters, "text", str)
            self._start_playing((_SPEECH, ""), now_s, LETTER_S * len(text))
            message = f"it says {text!r}"
        elif api_id == VoiceApi.PLAY:
            message = self._play_sound(parameters, binary, now_s)
        elif api_id == VoiceApi.STOP:
            app = rpc.read_field(parameters, "app_name", str)
            if self._playing is not None and self._playing[0] == app:
                self._stop_playing()
            message = f"the sounds of {app!r} stop"
        elif api_id == VoiceApi.SET_VOLUME:
            self.volume = _read_bounded(parameters, "volume", _MAX_VOLUME)
            message = f"its volume is now {self.volume} %"
        elif api_id == VoiceApi.SET_LIGHT:
            red, green, blue = (_read_bounded(parameters, key, _MAX_COLOUR) for key in "RGB")
            self.light = (red, green, blue)
            message = f"its light is now {self.light}"
        return data, message

    def recognise_speech(self, text: str) -> None:
        """Publish `text` as speech that the robot recognised."""
        self._recognised_count += 1
        message = {"index": self._recognised_count, "text": text, "confidence": 0.9, "angle": 0}
        self._messages.append(rpc.write_json(message))

    def take_messages(self, now_s: float) -> list[str]:
        """Return and clear the messages to publish on `rt/audio_msg`."""
        if self._playing is not None and now_s >= self._ends_s:
            self._stop_playing()
        messages, self._messages = self._messages, []
        return messages

    def _play_sound(self, parameters: object, pcm: bytes, now_s: float) -> str:
        """Play samples, or append them to the stream that plays; return a notice if it is new."""
        stream = (
            rpc.read_field(parameters, "app_name", str, ""),
            rpc.read_field(parameters, "stream_id", str),
        )
        if len(pcm) % SAMPLE_BYTES:
            raise PayloadError("a sound needs two bytes per sample: the last one is incomplete")
        seconds = len(pcm) / SAMPLE_BYTES / SOUND_RATE_HZ
        if self._playing == stream and now_s < self._ends_s:
            self._ends_s += seconds
            self.played += pcm
            return ""
        self._start_playing(stream, now_s, seconds)
        self.played = pcm
        return f"it plays the sound {stream[1]!r}"

    def _start_playing(self, stream: tuple[str, str], now_s: float, seconds: float) -> None:
        if self._playing is not None:
            self._stop_playing()
        self._playing, self._ends_s = stream, now_s + seconds
        self._messages.append(rpc.write_json({"play_state": 1}))

    def _stop_playing(self) -> None:
        self._playing = None
        self._messages.append(rpc.write_json({"play_state": 0}))


def _read_bounded(parameters: object, key: str, maximum: int) -> int:
    value = rpc.read_field(parameters, key, int)
    if not 0 <= value <= maximum:
        raise PayloadError(f"{key!r} must be 0 to {maximum}, not {value}")
    return value
