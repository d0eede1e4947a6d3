"""Methods that not every robot supports: each raises `UnsupportedError` until a robot
overrides it.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NoReturn, Unpack

from rote import messages as m
from rote.errors import UnsupportedError
from rote.findings import Finding
from rote.messages import Sound
from rote.motion.keyframes.search import Compressed
from rote.motion.track import Track
from rote.robot.api_values import Actions, ModeReport, SoundReport, TopicMessage, WaitListener
from rote.robot.leading import Leading
from rote.robot.play_options import PlayKeywords
from rote.robot.playing import Playing
from rote.robot.robot import Audio, Modes, Robot
from rote.robot.streamed_motion import Offload
from rote.text import Act, Text
from rote.transport.wires import unsupported

_PLAY_TAKE_REMEDY = Text("Its motions are takes on this computer: {play}.", play=Act.PLAY_TRACK)


class CannotModes:
    """The modes of a robot that reports and changes none."""

    def __init__(self, wire: str) -> None:
        self._wire = wire

    async def read(self) -> ModeReport:
        """Raise `UnsupportedError`: this robot reports no mode."""
        raise unsupported("report its mode", self._wire, "mode")

    def stand(self) -> Awaitable[ModeReport]:
        """Raise `UnsupportedError`: this robot has no command to stand."""
        raise unsupported("stand", self._wire, "mode")

    def damp(self, *, yes: bool = False) -> Awaitable[ModeReport]:
        """Raise `UnsupportedError`: this robot has no command to damp its joints."""
        raise unsupported("damp its joints", self._wire, "mode")

    def lie_down(self) -> Awaitable[ModeReport]:
        """Raise `UnsupportedError`: this robot has no command to lie down."""
        raise unsupported("lie down", self._wire, "lie")


class CannotAudio:
    """The audio of a robot that has none."""

    def __init__(self, wire: str) -> None:
        self._wire = wire

    async def say(self, text: str, language: str = "en") -> None:
        """Raise `UnsupportedError`: it has no voice."""
        raise unsupported("speak", self._wire, "voice")

    async def light(self, red: int, green: int, blue: int) -> None:
        """Raise `UnsupportedError`: it has no light of this kind."""
        raise unsupported("change its light", self._wire, "voice")

    async def sound(self, sound: Sound | str | Path) -> SoundReport:
        """Raise `UnsupportedError`: it has no loudspeaker that clients can use."""
        raise unsupported("play a sound", self._wire, "sound")

    def add_listener(
        self, listener: Callable[[m.HeardSpeech | m.SoundState], object]
    ) -> Callable[[], None]:
        """Raise `UnsupportedError`: it has no microphone interface."""
        raise unsupported("hear", self._wire, "hear")


class CannotRobot:
    """A base of robots: the methods of `Robot` that not every robot supports, as refusals."""

    _wire: str = ""

    def _raise_unsupported(self, what: str, ability: str = "", remedy: str = "") -> NoReturn:
        """Raise `UnsupportedError`; with an `ability`, it names the wires that have the ability."""
        if ability:
            raise unsupported(what, self._wire, ability, remedy)
        raise UnsupportedError(what, f"{self._wire}://", remedy=remedy)

    @property
    def modes(self) -> Modes:
        """Modes whose methods all raise `UnsupportedError`."""
        return CannotModes(self._wire)

    @property
    def audio(self) -> Audio:
        """Audio whose methods all raise `UnsupportedError`."""
        return CannotAudio(self._wire)

    @property
    def stop_pending(self) -> bool:
        """Always False: this robot confirms no stop."""
        return False

    async def take_findings(self) -> list[Finding]:
        """Return no findings: the take on this computer is this robot's only recording."""
        return []

    async def actions(self) -> Actions:
        """Raise `UnsupportedError`: this robot stores no actions."""
        self._raise_unsupported("store actions", remedy=_PLAY_TAKE_REMEDY)

    async def save(
        self,
        name: str,
        duration_s: float,
        *,
        overwrite: bool = False,
        loop: bool = False,
        frames: int = 0,
    ) -> str:
        """Raise `UnsupportedError`: this robot stores no recording."""
        self._raise_unsupported("save a recording afterwards", "save")

    def play(self, name: str | int, **options: Unpack[PlayKeywords]) -> Playing:
        """Raise `UnsupportedError`: this robot stores no actions."""
        self._raise_unsupported("play an action of its own", remedy=_PLAY_TAKE_REMEDY)

    async def start(self, name: str | int, **options: Unpack[PlayKeywords]) -> Playing:
        """Raise `UnsupportedError`: this robot stores no actions."""
        self._raise_unsupported("play an action of its own", remedy=_PLAY_TAKE_REMEDY)

    def lead(self, *followers: Robot, mirrored: bool = False, soft: bool | None = None) -> Leading:
        """Raise `UnsupportedError`: this robot has no arms."""
        self._raise_unsupported("lead others: it has no arms")

    async def store_track(
        self,
        track: Track,
        name: str,
        *,
        budget: int = m.MAX_KEYFRAMES,
        overwrite: bool = False,
        loop: bool = False,
        offload: Offload | None = None,
        imported: bool = False,
    ) -> Compressed:
        """Raise `UnsupportedError`: this robot stores no actions."""
        self._raise_unsupported("store a motion", remedy=_PLAY_TAKE_REMEDY)

    async def perform(self, preset: int | str) -> None:
        """Raise `UnsupportedError`: this robot has no factory actions."""
        self._raise_unsupported("perform factory actions", "presets")

    async def rename(self, old: str, new: str) -> None:
        """Raise `UnsupportedError`: this robot stores no actions."""
        self._raise_unsupported("rename actions", "rename")

    async def delete(self, name: str) -> None:
        """Raise `UnsupportedError`: this robot stores no actions."""
        self.check_can_delete()

    def check_can_delete(self) -> None:
        """Raise `UnsupportedError`: this robot stores no actions."""
        self._raise_unsupported("delete actions", "delete")

    async def move_by_hand(self, script: str, seconds: float) -> None:
        """Raise `UnsupportedError`: this robot has no scripted hand."""
        self._raise_unsupported("have a scripted hand at its joints", "hand")

    def on_topic(self, topic: str, listener: Callable[[TopicMessage], None]) -> Callable[[], None]:
        """Raise `UnsupportedError`: this robot has no topics."""
        self._raise_unsupported("listen to topics", "topics")

    def on_waiting(self, listener: WaitListener) -> Callable[[], None]:
        """Never call `listener`: rote does not wait for this robot. Return a function that does
        nothing.
        """
        return lambda: None

    async def controller(self) -> str | None:
        """Return None: this robot does not report its controller."""
        return None

    async def send(self, command: int, payload: bytes = b"") -> m.Reply:
        """Raise `UnsupportedError`: this robot does not use the documented frames."""
        self._raise_unsupported("send single frames", "frames")

    async def sync_parameters(self, parameters: bytes) -> None:
        """Raise `UnsupportedError`: this robot does not use the documented frames."""
        self._raise_unsupported("sync parameters", "frames")
