"""A robot that speaks `rote.messages`: it stores taught motions and plays them itself."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Unpack

from rote import messages as m
from rote.errors import BadRequestError, RefusedError, RoteError
from rote.findings import Finding
from rote.messages import Code, Interpolation, RobotState
from rote.model.family import Build, Family
from rote.model.registry import family_of
from rote.motion.keyframes.search import Compressed
from rote.motion.track import Track
from rote.platform.loop import to_the_end
from rote.robot.action_store import ActionStore
from rote.robot.api_values import Actions, RobotClient, TopicMessage, WaitListener, check_seconds
from rote.robot.arm_requests import ArmRequests
from rote.robot.audio import MessageAudio
from rote.robot.following import Following
from rote.robot.frame_sender import FrameSender
from rote.robot.inspector import Inspector
from rote.robot.leading import NAME as LEADER_NAME
from rote.robot.leading import FollowerParts, LeaderParts, Leading
from rote.robot.link import RobotLink
from rote.robot.message_teaching import Teacher, TeachOptions
from rote.robot.modes import MessageModes
from rote.robot.play_options import PlayKeywords, PlayOptions, TrackOptions
from rote.robot.player import Player
from rote.robot.playing import Playing
from rote.robot.robot import Audio, Modes, Robot
from rote.robot.streamed_motion import Offload, TrackCheck
from rote.robot.streamer import Streamer
from rote.robot.streaming import Streaming
from rote.robot.teaching import Teaching
from rote.robot.ticker import TimedStart

if TYPE_CHECKING:
    from rote.motion.files.library import Library


class MessageRobot:
    """One connected robot. `rote.connect` returns it connected; there is no unconnected one.

    Every method that asks the robot may raise `LinkError` (if it is lost or does not answer) and
    `RefusedError` (if it refuses), and `UnsupportedError` if this wire cannot do it.
    """

    def __init__(
        self, client: RobotClient, close: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        """`close` closes the connection and everything opened for it; default: `client.close`."""
        self._client = client
        self._close = client.close if close is None else close
        self._link = link = RobotLink(client)
        self._arms = arms = ArmRequests(link)
        self._store = store = ActionStore(link, arms)
        self._modes = modes = MessageModes(link)
        self._audio = MessageAudio(link)
        self._teacher = Teacher(link, store, arms, modes)
        self._player = Player(link, store, arms)
        self._streamer = Streamer(link, store, arms)
        self._frames = FrameSender(link, store, arms, modes)
        self._inspector = Inspector(link, store, modes)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.build.name} at {self.url}>"

    # ---- what it is -----------------------------------------------------------------------------

    @property
    def build(self) -> Build:
        """Which machine it is: its joints, in the order of a state's positions."""
        return self._client.build

    @property
    def family(self) -> Family | None:
        """The kind of robot; None if rote does not know the machine."""
        return family_of(self.build)

    @property
    def url(self) -> str:
        """The URL of the robot."""
        return self._client.url

    @property
    def abilities(self) -> frozenset[str]:
        """What can be done over this wire: list, teach, play, stop, mode, states, ..."""
        return self._client.abilities

    @property
    def modes(self) -> Modes:
        """Its posture modes: read, stand, damp."""
        return self._modes

    @property
    def audio(self) -> Audio:
        """Its voice, light, loudspeaker and microphone, on wires that support them."""
        return self._audio

    # ---- connection and state -------------------------------------------------------------------

    @property
    def state(self) -> RobotState | None:
        """The newest state that the robot reported; None before the first."""
        return self._client.latest

    @property
    def stop_pending(self) -> bool:
        """Whether a stop was requested and the robot has not confirmed it.

        A teaching whose end the robot has not confirmed counts too: its arms may be soft. After a
        reconnect the stop is sent before anything else.
        """
        return self._client.stop_pending

    def states(self) -> AsyncIterator[RobotState]:
        """Yield the robot's states as they arrive; raises `LinkError` when the robot is lost.

        A reader that is too slow misses the oldest states, never the newest.
        """
        return self._link.states()

    def on_state(self, listener: Callable[[RobotState], object]) -> Callable[[], None]:
        """Call `listener` with every state, at once. Return a function that removes it."""
        return self._client.on_state(listener)

    def on_topic(self, topic: str, listener: Callable[[TopicMessage], None]) -> Callable[[], None]:
        """Call `listener` with every message on one of the robot's topics, on wires that have
        topics.

        A topic may have any number of listeners. Return a function that removes this one.
        """
        self._link.require_ability("topics", "listen to topics")
        return self._client.on_topic(topic, listener)

    def on_waiting(self, listener: WaitListener) -> Callable[[], None]:
        """Call `listener` with each `Waiting` when it begins, and with None when it is over.

        rote waits until arms have come to rest, and until the robot lists a new action. Return a
        function that removes the listener.
        """
        return self._link.on_waiting(listener)

    async def controller(self) -> str | None:
        """Return which controller drives the robot: "" in debug mode, None if not reported."""
        return await self._inspector.read_controller()

    async def describe(self) -> dict[str, Any]:
        """Return its mode, its controller, and the versions that its services report."""
        return await self._inspector.describe()

    async def preflight(self) -> list[Finding]:
        """Return the findings that matter before the robot moves, the worst first."""
        return await self._inspector.find_problems()

    async def take_findings(self) -> list[Finding]:
        """Return why a take on this computer would be poorer than the robot's own recording.

        Nothing is sent to the robot. `preflight` includes these findings.
        """
        return await self._inspector.find_take_problems()

    def check_wanted(self, ability: str) -> None:
        """Do nothing: connecting to this robot is always safe."""

    async def stop(self) -> None:
        """Stop whatever plays or is being taught, softly. Always allowed, and safe to repeat."""
        await self._link.stop()

    async def close(self) -> None:
        """End what was begun over this connection, then close it. Safe to repeat.

        Joints that are being taught hold, a playback stops softly. `async with rote.connect(...)`
        closes the connection by itself. Cancelling this call does not interrupt it. Raises
        `LinkError` if the robot did not confirm a stop.
        """
        await to_the_end(self._end_and_close())

    async def _end_and_close(self) -> None:
        try:
            await self._link.unfinished.end_all()
            if self.stop_pending:
                with suppress(RoteError):  # the first failure of this stop was reported
                    await self.stop()
        finally:
            await self._close()

    # ---- teaching and playing -------------------------------------------------------------------

    async def actions(self) -> Actions:
        """Return the presets and the taught actions. Raises `DecodeError` if the robot's answer is
        not a list of actions.
        """
        return await self._store.read_list()

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
        """Teach a motion: the arms are soft inside the `async with` block.

        They hold again however the block ends. On success the robot stores the motion as `name`,
        and the block's value, a `Take`, has its track on this computer. A name that exists is
        refused before anything goes soft, unless `overwrite` allows replacing the older motion;
        robots with services lose the older motion even if the block fails. `force` skips rote's own
        checks (free slots, the mode, arms that are never reported as soft) and lets the robot
        decide. With a `library` the take is also written to disk while it is recorded, so that a
        crash loses at most a second of it.

        With `loop` the robot later repeats the motion until it is stopped. `compensation` are the
        11 values in keep-alives; no document explains them. Only the documented frames support
        these two.
        """
        options = TeachOptions(overwrite, force, loop, tuple(map(float, compensation)))
        return self._teacher.teach(name, options, library)

    async def check_teachable(
        self, name: str, *, overwrite: bool = False, force: bool = False
    ) -> bool:
        """Raise what `teach` would raise because of the name, a full store, or the mode.

        Return whether teaching may replace an action: the robot has one of that name, or its list
        cannot be read.
        """
        return await self._teacher.check_teachable(name, overwrite=overwrite, force=force)

    async def save(
        self,
        name: str,
        duration_s: float,
        *,
        overwrite: bool = False,
        loop: bool = False,
        frames: int = 0,
    ) -> str:
        """Save the recording the robot still holds, after the save at the end of `teach` failed.

        The whole recording is stored; `duration_s` and `frames` only describe it. With `overwrite`
        it replaces an action of that name; with `loop` the robot repeats it when it is played.
        Returns the robot's note, usually "".
        """
        return await self._teacher.save(
            name, duration_s, overwrite=overwrite, loop=loop, frames=frames
        )

    def play(
        self,
        name: str | int,
        *,
        speed: float | None = None,
        duration: float | None = None,
        loop: bool = False,
        interpolation: str | Interpolation = Interpolation.LINEAR,
        frames: int = 0,
        keyframes: Sequence[m.Keyframe] = (),
    ) -> Playing:
        """Play a taught action. Await the result to wait for the end, or iterate over it to watch.

        A `str` is its name, an `int` its number in the list, counted from 1. A name of more than 31
        bytes is accepted once `actions` has listed it. The playback begins with a soft move to the
        first pose and ends with a soft return. `speed` 0.5 takes twice as long; `duration` sets the
        length in seconds instead. `interpolation` is linear, cubic or smooth. `frames` limits the
        playback to the first frames (0: all); `keyframes` replace the stored motion. Only the
        documented frames support these two.
        """
        options = PlayOptions(
            speed=speed,
            duration=duration,
            loop=loop,
            interpolation=interpolation,
            frames=frames,
            keyframes=keyframes,
        )
        return self._player.play(name, options)

    async def start(self, name: str | int, **options: Unpack[PlayKeywords]) -> Playing:
        """Like `play`, but return only when the robot has accepted; raise if it refuses.

        The options are the keyword arguments of `play`. For a name of more than 31 bytes the
        robot's list is read first.
        """
        return await self._player.start(name, PlayOptions(**options))

    async def perform(self, preset: int | str) -> None:
        """Perform a factory action, by its id or name, and wait for its end.

        Some factory actions hold their last pose until `stop` or `close`, or for 20 s. Raises
        `RefusedError` if there is no such preset, `NotBegunError` if no motion began.
        """
        await self._player.perform(preset)

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
        """Play a track of this computer by sending `rate_hz` poses per second.

        Use the result like that of `play`; awaiting it returns a `StreamReport`. `speed` 0.5 takes
        twice as long.

        The track is checked by `rote.motion.check.rules` before anything is sent. An error raises
        `UnsafeMotionError`; a warning raises `WarnedMotionError` unless `force` is true. The arms
        start softly from where they are and return softly to rest, even if the motion is stopped,
        this program stalls, or the connection is lost.

        A track of another build raises `OtherBuildError`, which lists the joints that would be left
        out or stay at rest; with `mapped` it is played by joint names.

        Joints of hands are left out, and `left_out` of the result names them. With `hands` they are
        played too, on robots that report them: softly from where the fingers are, and released at
        the end.

        `checked` is an earlier check result for this very track; then only contact is checked
        again, from the current joint positions.

        Preparing and checking a long track takes a while and blocks the event loop. `offload` runs
        that elsewhere; errors are then raised when the result is awaited.

        `at` is when the motion itself begins, by the event loop's clock: the approach starts early
        enough for the arms to reach the first pose at that time. The time of a `TimedStart` can be
        set later.

        An imported motion (`track.origin`) raises `ImportedMotionError` on a real robot unless
        `imported` is true: a person has inspected it. Play it with `speed=0.5` first.
        """
        options = TrackOptions(
            rate_hz=rate_hz,
            speed=speed,
            force=force,
            mapped=mapped,
            hands=hands,
            checked=checked,
            offload=offload,
            at=at,
            imported=imported,
        )
        return self._streamer.play_track(track, options)

    async def follow(self, *, rate_hz: float = 250.0, contact: bool = True) -> Following:
        """Let the arms follow live poses; return once the robot has accepted.

        Pass poses to `aim` of the result, and `end` it. Each pose is checked when it arrives; the
        arms move there within limits of speed and acceleration, softly to the first. Raises what
        `play_track` raises if the robot or the wire cannot stream. With `contact=False` poses are
        not checked for contact, which takes some milliseconds each.
        """
        return await self._streamer.follow(rate_hz=rate_hz, contact=contact)

    def lead(self, *followers: Robot, mirrored: bool = False, soft: bool | None = None) -> Leading:
        """Let the arms of other robots follow this one inside the `async with` block.

        The arms of this robot are soft meanwhile and a person moves them. A robot that plays is
        only watched; `soft` overrides this. With `mirrored`, left and right are exchanged. The
        block's value, a `Mirroring`, shows how the others follow.

        Followers approach slowly before the arms get soft, then follow within limits of speed and
        acceleration. A follower holds its pose instead of moving to one in which it would touch
        itself. If a robot is lost or stopped, or this robot reports nothing for 0.3 s, the block is
        interrupted and the reason is raised. However it ends, the soft arms hold again and the
        followers come to rest; a stop of one robot stops all.

        Raises `BadRequestError` for robots without arms or one that is named twice, and
        `UnsupportedError` for a follower that cannot be streamed to.
        """
        parts = []
        for follower in followers:
            if not isinstance(follower, MessageRobot):
                raise BadRequestError(
                    f"{follower.url} has no arms ({follower.build.title})",
                    "Only robots with arms can lead or follow.",
                )
            parts.append(FollowerParts(follower._link, follower._streamer))
        options = TeachOptions(overwrite="overwrite" in self.abilities, record=False)
        leader = LeaderParts(self._link, lambda: self._teacher.teach(LEADER_NAME, options))
        return Leading(leader, parts, mirrored=mirrored, soft=soft)

    def check_streamable(self) -> None:
        """Raise `UnsupportedError` if this wire cannot stream, or the machine or its motors are not
        known.
        """
        self._streamer.check_streamable()

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
        """Store a track of this computer on the robot as a taught action.

        The track is reduced to the at most `budget` keyframes that approximate it best; the robot
        plays straight lines between them, and the result reports the deviation. If the motion would
        change too much, this raises `UnsafeMotionError` and stores nothing; use `play_track`. With
        `overwrite` it replaces an action of that name. With `loop` the robot later repeats it until
        it is stopped. `offload` runs the slow work elsewhere. `imported` is as for `play_track`.
        """
        return await self._streamer.store_track(
            track,
            name,
            budget=budget,
            overwrite=overwrite,
            loop=loop,
            offload=offload,
            imported=imported,
        )

    async def rename(self, old: str, new: str) -> None:
        """Rename a taught action. Raises `RefusedError` if `new` exists or `old` does not."""
        await self._store.rename(old, new)

    async def delete(self, name: str) -> None:
        """Delete a taught action. It cannot be undone.

        Raises `RefusedError` if there is no action of that name.
        """
        await self._store.delete(name)

    def check_can_delete(self) -> None:
        """Raise `UnsupportedError` if this wire cannot delete. Sends nothing to the robot."""
        self._store.check_can_delete()

    async def move_by_hand(self, script: str, seconds: float) -> None:
        """Let the scripted hand of a simulated robot move the soft joints for `seconds`.

        `script` is one of `HAND_SCRIPTS`. Raises `BadRequestError` if the robot does not know it.
        """
        if not script or len(script.encode()) > m.MAX_NAME_BYTES:
            raise BadRequestError(f"there is no hand script {script!r}")
        move = m.MoveByHand(script, round(check_seconds(seconds, "a hand script") * 1000))
        try:
            await self._link.ask(move)
        except RefusedError as refused:
            if refused.code != Code.BAD_PAYLOAD:
                raise
            raise BadRequestError(
                f"the robot does not know the hand script {script!r}",
                f"Simulated robots know {', '.join(m.HAND_SCRIPTS)}.",
            ) from None

    async def send(self, command: int, payload: bytes = b"") -> m.Reply:
        """Send one documented frame for an experiment, and return the robot's answer.

        The frame is decoded, checked, and handled like the corresponding method: whatever that
        method refuses is refused here. Unknown commands are not sent. A payload of less than 44
        bytes is padded with zeros. The layouts are in docs/protocol/frames.md. A teaching entered
        by a frame ends with `send(0x0E)`, a `stop`, or when the connection is closed.
        """
        return await self._frames.send(command, payload)

    async def sync_parameters(self, parameters: bytes) -> None:
        """Send parameters, up to 44 bytes that only the robot understands."""
        await self._frames.sync_parameters(parameters)


class G1(MessageRobot):
    """One connected G1. `rote.connect` returns it connected; there is no unconnected one."""
