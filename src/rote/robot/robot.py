"""The interface that all robots share.

Whatever a robot or its wire does not support raises `UnsupportedError`; check `abilities` first:

    states      `state`, `states` and `on_state`
    stop        `stop`: always there
    teach       `teach`           save      `save`: a recording kept after a failed save
    pause       `Take.pause`      overwrite `teach(overwrite=True)`
    list        `actions`         play      `play` and `start`
    tempo       `play` with speed, duration, loop or interpolation
    frames      `send`, `sync_parameters`, `play` with frames or keyframes, `teach` with a loop
                or compensation: supported by the documented frames only
    stream      `play_track`, and to follow in `lead`
    store       `store_track`
    rename, delete, presets (`perform`), hand (`move_by_hand`)
    mode        `modes`           lie       `modes.lie_down`
    voice       `audio.say` and `audio.light`
    sound       `audio.sound`     hear      `audio.add_listener`
    walk, pose, control           a quadruped's own; see `rote.robot.quadruped.robot`
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Unpack

from rote import messages as m
from rote.findings import Finding
from rote.messages import Interpolation, Keyframe, RobotState, Sound
from rote.model.family import Build, Family
from rote.motion.keyframes.search import Compressed
from rote.motion.track import Track
from rote.robot.api_values import Actions, ModeReport, SoundReport, TopicMessage, WaitListener
from rote.robot.leading import Leading
from rote.robot.play_options import PlayKeywords
from rote.robot.playing import Playing
from rote.robot.streamed_motion import Offload, TrackCheck
from rote.robot.streaming import Streaming
from rote.robot.teaching import Teaching
from rote.robot.ticker import TimedStart

if TYPE_CHECKING:
    from rote.motion.files.library import Library


class Modes(Protocol):
    """The posture modes of a robot: `robot.modes`."""

    async def read(self) -> ModeReport:
        """Return the mode the robot is in."""

    def stand(self) -> Awaitable[ModeReport]:
        """Bring the robot into a balanced stand; awaiting it waits until the robot stands."""

    def damp(self, *, yes: bool = False) -> Awaitable[ModeReport]:
        """Damp all joints: a standing robot sinks to the floor. A standing G1 needs `yes=True`."""

    def lie_down(self) -> Awaitable[ModeReport]:
        """Make the robot lie down. The command is sent when this returns; it does not wait."""


class Audio(Protocol):
    """The voice, light, loudspeaker and microphone of a robot: `robot.audio`."""

    async def say(self, text: str, language: str = "en") -> None:
        """Make the robot speak; return when the robot has accepted."""

    async def light(self, red: int, green: int, blue: int) -> None:
        """Set the colour of the light on the robot's head, 0 to 255 each."""

    async def sound(self, sound: Sound | str | Path) -> SoundReport:
        """Play a sound on the robot's loudspeaker, and return when it is over.

        A path is read as a sound file. Cancelling it ends the sound.
        """

    def add_listener(
        self, listener: Callable[[m.HeardSpeech | m.SoundState], object]
    ) -> Callable[[], None]:
        """Call `listener` with recognised speech and with loudspeaker start and end events.

        Return a function that removes it.
        """


class Robot(Protocol):
    """One connected robot. `rote.connect` returns it connected; there is no unconnected one."""

    # ---- what it is -----------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """The URL of the robot."""

    @property
    def abilities(self) -> frozenset[str]:
        """What this robot can do over this wire; the names are in the module's docstring."""

    @property
    def build(self) -> Build:
        """Which machine it is: its joints, in the order of a state's positions."""

    @property
    def family(self) -> Family | None:
        """The kind of robot; None if rote does not know the machine."""

    @property
    def modes(self) -> Modes:
        """Its posture modes: read, stand, damp, lie down."""

    @property
    def audio(self) -> Audio:
        """Its voice, light, loudspeaker and microphone."""

    # ---- connection and state -------------------------------------------------------------------

    @property
    def state(self) -> RobotState | None:
        """The newest state that the robot reported; None before the first."""

    def states(self) -> AsyncIterator[RobotState]:
        """Yield the robot's states as they arrive; raises `LinkError` when the robot is lost."""

    def on_state(self, listener: Callable[[RobotState], object]) -> Callable[[], None]:
        """Call `listener` with every state. Return a function that removes it."""

    def on_topic(self, topic: str, listener: Callable[[TopicMessage], None]) -> Callable[[], None]:
        """Call `listener` with every message on a topic. Return a function that removes it."""

    def on_waiting(self, listener: WaitListener) -> Callable[[], None]:
        """Call `listener` with a `Waiting` when rote begins to wait for the robot (until the arms
        are at rest, or an action is listed), and with None when the wait is over.

        Return a function that removes the listener.
        """

    async def preflight(self) -> list[Finding]:
        """Return the findings that matter before the robot moves, the worst first."""

    async def take_findings(self) -> list[Finding]:
        """Return why a take on this computer would be poorer than the robot's own recording.

        Nothing is sent to the robot. `preflight` includes these findings.
        """

    async def describe(self) -> dict[str, Any]:
        """Return what the robot reports besides its state: modes, versions, and the like."""

    async def controller(self) -> str | None:
        """Return which controller drives the robot: "" in debug mode, None if not reported."""

    async def stop(self) -> None:
        """Stop whatever plays or is being taught. Always allowed, and safe to repeat."""

    @property
    def stop_pending(self) -> bool:
        """Whether a stop was requested and the robot has not confirmed it; it is sent first after a
        reconnect.
        """

    def check_streamable(self) -> None:
        """Raise `UnsupportedError`, with a remedy, if no track can be streamed over this
        connection.
        """

    def check_wanted(self, ability: str) -> None:
        """Raise if connecting for an ability is not safe in the robot's current state."""

    async def close(self) -> None:
        """End what was begun over this connection, then close it. Safe to repeat.

        Joints that are being taught hold, a playback stops softly. `async with rote.connect(...)`
        closes the connection by itself.
        """

    # ---- teaching and playing -------------------------------------------------------------------

    def teach(
        self,
        name: str,
        *,
        overwrite: bool = False,
        force: bool = False,
        library: "Library | None" = None,
        loop: bool = False,
        compensation: Sequence[float] = (),
    ) -> Teaching:
        """Teach a motion: joints are soft inside the `async with` block and hold again after it.

        The block's value is a `Take`. `overwrite` replaces an action of the same name, `force`
        skips rote's own checks, a `library` keeps the take on this computer's disk. Raises
        `BadRequestError` for an impossible name, and on entering `CautionError` or `RefusedError`
        if teaching is not possible now.
        """

    async def check_teachable(
        self, name: str, *, overwrite: bool = False, force: bool = False
    ) -> bool:
        """Raise what `teach` would raise; return whether it would replace an action."""

    async def save(
        self,
        name: str,
        duration_s: float,
        *,
        overwrite: bool = False,
        loop: bool = False,
        frames: int = 0,
    ) -> str:
        """Save the recording the robot still holds; return the robot's note, usually ""."""

    async def actions(self) -> Actions:
        """Return the presets and the taught actions."""

    def play(
        self,
        name: str | int,
        *,
        speed: float | None = None,
        duration: float | None = None,
        loop: bool = False,
        interpolation: str | Interpolation = Interpolation.LINEAR,
        frames: int = 0,
        keyframes: Sequence[Keyframe] = (),
    ) -> Playing:
        """Play a taught action, by its name or by its number in the list.

        Await the result to wait for the end, iterate over it to watch, or call its `stop`.
        """

    async def start(self, name: str | int, **options: Unpack[PlayKeywords]) -> Playing:
        """Like `play`, but return only when the robot has accepted; raise if it refuses.

        The options are the keyword arguments of `play`.
        """

    def play_track(
        self,
        track: Track,
        *,
        rate_hz: float = 250.0,
        speed: float = 1.0,
        force: bool = False,
        mapped: bool = False,
        hands: bool = False,
        checked: TrackCheck | None = None,
        offload: Offload | None = None,
        at: float | TimedStart | None = None,
        imported: bool = False,
    ) -> Streaming:
        """Play a track of this computer; use the result like that of `play`.

        `rate_hz` poses per second are sent; `speed` is a factor. The track is checked first: errors
        raise `UnsafeMotionError`, warnings `WarnedMotionError` unless `force` is true. A track of
        another build raises `OtherBuildError`; with `mapped` it is played by joint names. Joints of
        hands are played only with `hands`. A `checked` result for this very track is
        reused. `offload` runs the slow work elsewhere. `at` is when the motion itself begins, by
        the event loop's clock. An imported motion raises `ImportedMotionError` on a real
        robot unless `imported` is true; play it at half speed first.
        """

    def lead(
        self, *followers: "Robot", mirrored: bool = False, soft: bool | None = None
    ) -> Leading:
        """Let the arms of other robots follow this one inside the `async with` block.

        The arms of this robot are soft meanwhile and a person moves them. A robot that plays is
        only watched; `soft` overrides this. With `mirrored`, left and right are exchanged. The
        block's value is a `Mirroring`. However it ends, the soft arms hold again and the followers
        come to rest softly; a stop of one robot stops all.
        """

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
        """Store a track of this computer as a taught action of at most `budget` keyframes.

        `overwrite` replaces an action of the same name.

        Return the keyframes and their deviation. Raises `UnsafeMotionError` if they differ too much
        from the track. `offload` runs the slow work elsewhere. `imported` is as for `play_track`.
        """

    async def perform(self, preset: int | str) -> None:
        """Perform a factory action, by its id or name, and wait for its end."""

    async def rename(self, old: str, new: str) -> None:
        """Rename a taught action. Raises `RefusedError` if `new` exists or `old` does not."""

    async def delete(self, name: str) -> None:
        """Delete a taught action for good. Raises `RefusedError` if there is none of that name."""

    def check_can_delete(self) -> None:
        """Raise `UnsupportedError` if this robot cannot delete; nothing is sent to it."""

    async def move_by_hand(self, script: str, seconds: float) -> None:
        """Let the scripted hand of a simulated robot move its soft joints for `seconds`."""

    async def send(self, command: int, payload: bytes = b"") -> m.Reply:
        """Check and send one documented frame; return the robot's answer."""

    async def sync_parameters(self, parameters: bytes) -> None:
        """Send the robot parameters that only it understands."""
