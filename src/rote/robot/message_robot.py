"""A robot that speaks `rote.messages`: it stores taught motions and plays them itself."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rote import messages as m
from rote.errors import (
    BadRequestError,
    CautionError,
    DecodeError,
    LinkError,
    NoAnswerError,
    NotSavedError,
    RefusedError,
    RoteError,
    TimeLimitError,
    UnsupportedError,
)
from rote.findings import Finding
from rote.messages import Code, Interpolation, Phase, RobotState, Sound
from rote.model.family import Build, Family, Modes
from rote.model.registry import family_of
from rote.motion.keyframes.search import Compressed
from rote.motion.track import Track
from rote.platform.loop import clock_of, to_the_end
from rote.robot import preflight, sending, storing, streaming
from rote.robot.api_values import (
    UNREPORTED_MODE,
    Actions,
    ModeReport,
    Preset,
    RobotClient,
    SoundReport,
    TaughtAction,
    TopicMessage,
    Waiting,
    WaitListener,
    Waits,
    check_colour,
    check_name,
    check_seconds,
    check_speech,
)
from rote.robot.following import Following, LivePoses, check_path_contact
from rote.robot.message_teaching import MessageTeachingBackend, TeachingHooks
from rote.robot.motion_watch import JointWatch, MotionWatch
from rote.robot.playing import ActionPlaying, Playing
from rote.robot.sounding import SoundPlayer
from rote.robot.state_feed import iterate_states
from rote.robot.streaming import (
    Offload,
    PoseStreaming,
    StreamedMotion,
    Streaming,
    TimedStart,
    TrackCheck,
)
from rote.robot.take import MIN_RATE_HZ, Take
from rote.robot.teaching import Teaching
from rote.robot.unfinished import Unfinished
from rote.text import Act, Text
from rote.transport.base_client import add_listener, notify_listeners
from rote.transport.sound import read_sound
from rote.transport.wires import unsupported, wires_with

if TYPE_CHECKING:
    from rote.motion.files.library import Library

MODE_CHANGE_S = 10.0
RELEASE_S = 10.0
"""Time limit for the arms to settle after a teaching; after that a refused motion is an error. In
the logs of a G1 the release begins after up to 0.9 s and takes about 4.1 s; this is twice that.
"""
LINGERS_S = 4.0
"""How long after a refusal arms may still be reported as soft, or not at all, although a teaching
of another client has ended: up to 0.9 s in the logs of a G1, and an R1 reports every 3 s.
"""
LISTED_S = 10.0
"""How long a robot may take to list what it was taught: some write the file only after the same
release.
"""
PRESET_S = 40.0
"""How long a factory action may take: those of a G1 last less than 10 s, and waiting for the
answer, which comes at the end, is given up after 30 s.
"""
_RETRY_S = 0.5
"""Interval between two requests to the robot while waiting, in seconds."""
_POLL_S = 0.25
"""Interval between two checks for a timeout, in seconds."""
_MOTIONLESS_S = 0.5
"""After a teaching, joints that have not moved for this many seconds are at rest. During a
release all of them move.
"""
_JOINTS_S = 3.0
"""How long a robot may take to report its joints: enough for one that does so once per second."""
_RATE_STATES = 5
"""Number of states used to estimate the report rate."""
_CONTROLLER_S = 3.0
_MAX_F32 = 3.4028234e38
_HEALTH_S = 1.5
_log = logging.getLogger("rote")
_BY_FORCE = Text("The robot was not asked. To leave it to the robot: {force}.", force=Act.FORCE)
_REPORT_MACHINE = Text(
    "Name the build if you know it: {name_build}. Otherwise please send us the doctor's "
    "report on this robot: {doctor}.",
    name_build=Act.NAME_BUILD,
    doctor=Act.DOCTOR,
)


class MessageRobot:
    """One connected robot. `rote.connect` returns it connected; there is no unconnected one.

    Every method that asks the robot may raise `LinkError` (if it is lost or does not answer) and
    `RefusedError` (if its answer is no), and `UnsupportedError` if this wire cannot do it.
    """

    def __init__(
        self, client: RobotClient, close: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        """`close` closes the connection and everything opened for it; default: `client.close`."""
        self._client = client
        self._close = client.close if close is None else close
        self._unfinished = Unfinished()
        self._loop = asyncio.get_running_loop()
        self._stops = 0
        self._stop_listeners: list[Callable[[bool], None]] = []
        self._waiting_starts: set[TimedStart] = set()
        self._teaching = False
        self._taught: dict[str, float] = {}
        """Loop time at which each teaching of this connection ended, by action name."""
        self._known_names: frozenset[str] = frozenset()
        """The names in the robot's newest list."""
        self._wait_listeners: list[WaitListener] = []

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.build.name} at {self.url}>"

    @property
    def build(self) -> Build:
        """Which machine it is: its joints, in the order of a state's positions."""
        return self._client.build

    @property
    def family(self) -> Family | None:
        """The kind of robot; None if rote does not know the machine."""
        return family_of(self.build)

    @property
    def _modes(self) -> Modes:
        family = self.family
        return Modes(all=()) if family is None else family.modes

    @property
    def url(self) -> str:
        """The URL of the robot."""
        return self._client.url

    @property
    def abilities(self) -> frozenset[str]:
        """What can be done over this wire: list, teach, play, stop, mode, states, ..."""
        return self._client.abilities

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

    # ---- actions --------------------------------------------------------------------------------

    async def actions(self) -> Actions:
        """Return the presets and the taught actions. Raises `DecodeError` if the answer is
        no list.
        """
        reply = await self._ask(m.ListActions())
        if not isinstance(reply, m.ActionList):
            raise DecodeError(
                "the robot answered without a list when it was asked for its actions",
                "Ask again; if it stays so, its software is one that rote does not know.",
            )
        taught = (
            TaughtAction(entry.name, entry.duration_ms / 1000, position)
            for position, entry in enumerate(reply.actions, start=1)
        )
        self._known_names = frozenset(entry.name for entry in reply.actions)
        presets = tuple(Preset(entry.id, entry.name) for entry in reply.presets)
        return Actions(presets=presets, taught=tuple(taught), notes=reply.notes)

    async def _list_if_readable(self) -> Actions:
        """Return the actions; if the list is refused or unreadable, only a note about it."""
        try:
            return await self.actions()
        except (DecodeError, RefusedError) as error:
            return Actions((), (), (f"its list of actions cannot be read: {error}",))

    def on_waiting(self, listener: WaitListener) -> Callable[[], None]:
        """Call `listener` with each `Waiting` when it begins, and with None when it is over.

        rote waits until arms have come to rest, and until the robot lists a new action. Return a
        function that removes the listener.
        """
        return add_listener(self._wait_listeners, listener)

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
        and the block's value, a `Take`, holds its track on our side. A name that exists is refused
        before anything gets soft, unless `overwrite` allows losing the older motion; a robot whose
        services are asked loses it then even if the block fails. `force` skips the checks that are
        only rote's own (free slots, the mode, arms that are never reported as soft) and leaves them
        to the robot. With a `library` the take is also written to our own disk while it is made, so
        that a crash loses at most a second of it.

        With `loop` the robot later repeats it until it is stopped. `compensation` are the 11 values
        in keep-alives; no document explains them. Only the documented frames support these two.
        """
        check_name(name)
        values = _check_compensation(compensation)
        if loop or values:
            self._require_ability("frames", "be taught with a loop or compensation")
        if overwrite:
            self._require_ability("overwrite", "overwrite actions")
        stops = self._stops

        async def check() -> bool:
            exists = await self.check_teachable(name, overwrite=overwrite, force=force)
            self._check_not_stopped_since(stops)
            return exists

        pauser = self._pause_recording if "pause" in self.abilities else None
        take = Take(name, self.build, self._client.wire, pauser)
        backend = MessageTeachingBackend(
            self._client,
            self._teaching_hooks(check),
            name,
            overwrite=overwrite,
            loop=loop,
            compensation=values,
            force=force,
        )
        return Teaching(backend, take, library, self._unfinished)

    def _teaching_hooks(self, check: Callable[[], Awaitable[bool]]) -> TeachingHooks:
        return TeachingHooks(
            check,
            self._ask,
            self._enter_teaching,
            self._wait_until_listed,
            self._note_teaching,
            lambda listener: add_listener(self._stop_listeners, listener),
        )

    def _note_teaching(self, name: str, on: bool) -> None:
        self._teaching = on
        if not on:
            self._taught[name] = self._loop.time()

    async def _enter_teaching(self, command: m.EnterTeaching) -> None:
        """Request soft arms; retry while they settle after an earlier teaching."""
        asked_s, stops = self._loop.time(), self._stops
        while True:
            self._check_not_stopped_since(stops)
            try:
                await self._ask(command)
            except RefusedError as refused:
                until = self._idle_deadline(asked_s)
                if refused.code != Code.BUSY or until is None:
                    raise
                await self._wait_until_idle(command.name, until)
            else:
                self._supersede_stop(stops)
                return

    async def _pause_recording(self, paused: bool) -> None:
        await self._ask(m.PauseRecording(paused))

    async def check_teachable(
        self, name: str, *, overwrite: bool = False, force: bool = False
    ) -> bool:
        """Raise what `teach` would raise: for the name, the free places, or the mode.

        Return whether the robot has an action of that name, which teaching would replace. If its
        list cannot be read, it may have one.
        """
        check_name(name)
        actions = await self._list_if_readable()
        if not actions.is_readable:
            if not force:
                await self._check_balanced()
            return True
        exists = actions.find(name) is not None
        if exists and not overwrite:
            raise self._name_exists_error()
        if force:
            return exists
        if not exists and actions.free_places <= 0:
            raise self._store_full_error()
        await self._check_balanced()
        return exists

    async def _check_balanced(self) -> None:
        """Refuse a mode without balance; an unknown mode is left to the robot."""
        if self.build.known:
            mode = await self.mode()
            if mode.known and not mode.balanced:
                message, remedy = m.explain(Code.WRONG_STATE)
                raise CautionError(
                    f"{message}: mode {mode.id}, {mode.name}",
                    f"{remedy} {_BY_FORCE}",
                    Code.WRONG_STATE,
                )

    async def save(
        self,
        name: str,
        duration_s: float,
        *,
        overwrite: bool = False,
        loop: bool = False,
        frames: int = 0,
    ) -> str:
        """Save the recording the robot still holds, after a save at the end of `teach` failed.

        It is stored whole and at its own length: `duration_s` and `frames` only describe it. With
        `overwrite` it replaces an action of that name; with `loop` it will be repeated. Returns the
        robot's note, usually "".
        """
        self._require_ability("save", "save a recording afterwards")
        check_name(name)
        save = m.SaveAction(
            name=name,
            created_s=int(time.time()),
            duration_ms=round(check_seconds(duration_s, "a recording") * 1000),
            frames=_check_frames(frames),
            loop=loop,
            replace=overwrite,
        )
        reply = await self._ask(save)
        return reply.note if isinstance(reply, m.Status) else ""

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
        """Play a taught action; await the result for its end, iterate it to watch, or `stop` it.

        A `str` is its name, an `int` its number in the list, counted from 1; a name of more than 31
        bytes is known once `actions` has listed it. It begins with a soft
        move to the first pose and ends with a soft return. `speed` 0.5 takes twice as long;
        `duration` sets the length in seconds instead. `interpolation` is linear, cubic or smooth.
        `frames` plays only so many from the start, 0 all; `keyframes` are played instead of what is
        stored. Only the documented frames support these two.
        """
        if not isinstance(name, int) and name not in self._known_names:
            check_name(name, in_use=True)  # the names that the robot lists are its own choice
        how = _parse_interpolation(interpolation)
        _check_tempo(speed, duration)
        if speed is not None or duration is not None or loop or how:
            self._require_ability("tempo", "change how an action is played")
        if _check_frames(frames) or keyframes:
            self._require_ability("frames", "play a part of an action, or keyframes instead")
            _check_part(speed, frames, len(keyframes))
        instead = sending.check_keyframes(keyframes, self.build)
        stops = self._stops

        async def begin(on_request_sent: Callable[[], None]) -> float:
            action = await self._find_action(name)
            requested_s = duration if duration is not None else 0.0
            if speed is not None:
                requested_s = check_seconds(action.duration_s / speed, "a playback")
            play = m.PlayAction(
                action=action.position,
                frames=frames,
                duration_ms=round(requested_s * 1000),
                interpolation=how,
                loop=loop,
                keyframes=instead,
                name=action.name,
            )
            await self._request_motion(play, action.name, stops, on_request_sent)
            # Only the robot knows how long a part of the action takes.
            return requested_s or (0.0 if frames or instead else action.duration_s)

        def stopped() -> bool:
            return self._stops != stops and not self.stop_pending

        playing = ActionPlaying(
            self._client, str(name), begin, self.stop, stopped=stopped, loop=loop
        )
        return playing.noted_in(self._unfinished)

    async def start(
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
        """Like `play`, but return only when the robot has accepted; raise if it refuses.

        A name that is too long for a new action may be one of the robot's own: the list is read.
        """
        if isinstance(name, str) and m.name_problem(name) and not m.name_problem(name, None):
            await self.actions()
        playing = self.play(
            name,
            speed=speed,
            duration=duration,
            loop=loop,
            interpolation=interpolation,
            frames=frames,
            keyframes=keyframes,
        )
        return await playing.started()

    async def send(self, command: int, payload: bytes = b"") -> m.Reply:
        """Send one documented frame for an experiment, and return the robot's answer.

        The frame is decoded, checked, and handled like the corresponding method: whatever that
        method refuses is refused here. Unknown commands are not sent. A
        payload of less than 44 bytes is filled up with zeros. The layouts are in
        docs/protocol/frames.md. A teaching that is entered so ends with `send(0x0E)`, a `stop`, or
        when the connection is closed.
        """
        self._require_ability("frames", "send single frames")
        message = sending.read(command, payload, self.build)
        if isinstance(message, m.StopMotion):
            await self.stop()
        elif isinstance(message, m.EnterTeaching):
            await self._check_balanced()
            await self._enter_teaching(message)
            self._note_teaching("", True)
        elif isinstance(message, m.ExitTeaching):
            await self._ask(message)
            self._note_teaching("", False)
        elif isinstance(message, m.PlayAction):
            await self._send_play(message)
        elif isinstance(message, m.ChangeMode):
            await self._send_mode(message.mode)
        else:
            return await self._ask(message)
        return m.Status()

    async def _send_play(self, play: m.PlayAction) -> None:
        action = await self._find_action(play.action)
        await self._request_motion(play, action.name, self._stops, lambda: None)

    async def _send_mode(self, mode: int) -> None:
        self._check_mode_changeable()
        facts = self._modes.find(mode)
        if facts is None or not facts.stiff:
            raise CautionError(
                f"mode {mode:d} may let the robot sink, and is not entered by a single frame",
                Text("Use {sure}, or the robot's remote.", sure=Act.SINK),
            )
        await self._change_mode(mode)

    async def sync_parameters(self, parameters: bytes) -> None:
        """Send parameters, up to 44 bytes that only the robot understands, on wires that can."""
        self._require_ability("frames", "sync parameters")
        await self._ask(m.SyncParameters(bytes(parameters)))

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
        """Play a track of this computer by sending `rate_hz` poses per second, on wires that can
        stream.

        Use the result like that of `play`; awaiting it returns a `StreamReport`. `speed` 0.5 takes
        twice as long.

        The track is checked before anything is sent, like `rote.motion.check.rules` does. An error
        raises `UnsafeMotionError`; a warning raises `WarnedMotionError` unless `force` is true. The
        arms start softly from where they are and end softly at rest. They do so as well if the
        motion is stopped, if this program is held up, or if the connection is cut.

        A track of another build raises `OtherBuildError`, which lists the joints that would be left
        out or stay at rest; with `mapped` it is played by joint names.

        Joints of hands are left out, and `left_out` of the result names them. With `hands` they are
        played too, on robots that report them: softly from where the fingers are, and released at
        the end.

        A caller that has `checked` this very track passes the result; then only contact is checked
        again, from the current joint positions.

        Preparing and checking a long track takes a while and blocks the event loop. `offload` runs
        that elsewhere; what forbids the motion is then raised by the result.

        `at` is when the motion itself begins, by the event loop's clock: the approach starts early
        enough for the arms to reach the first pose at that time. The time of a `TimedStart` can be
        set later.

        An imported motion (`track.origin`) raises `ImportedMotionError` on a real robot unless
        `imported` is true: a person has inspected it. Play it with `speed=0.5` first.
        """
        self.check_streamable()
        streaming.check_origin(track, self.url, imported=imported)
        if hands:
            self._require_hands()
        _check_tempo(speed, None)
        prepared: StreamedMotion | None = None
        if offload is None:
            prepared = streaming.prepare(
                track, self.build, rate_hz, speed, force=force, mapped=mapped, known=checked
            )
            if hands:
                prepared = streaming.with_hands(prepared, track, speed)
        client, build = self._client, self.build
        ticker = streaming.Ticker(rate_hz)
        stops = self._stops
        start = TimedStart(at) if isinstance(at, int | float) else at

        async def begin(on_request_sent: Callable[[], None]) -> float:
            motion = prepared
            if motion is None:
                assert offload is not None
                motion = await offload(
                    streaming.prepare,
                    track,
                    build,
                    rate_hz,
                    speed,
                    force=force,
                    mapped=mapped,
                    known=checked,
                )
                if hands:
                    motion = await offload(streaming.with_hands, motion, track, speed)
            await motion.check_contact(await self._next_joint_state(), offload)
            await self._begin_stream(motion, ticker, start, stops, on_request_sent)
            return motion.seconds

        name, left_out = track.source or "a track", streaming.finger_columns(track, build)
        playing = PoseStreaming(
            client,
            name,
            begin,
            self.stop,
            ticker,
            left_out=() if hands else left_out,
            stopped=lambda: self._stops != stops,
        )
        return playing.noted_in(self._unfinished)

    async def _begin_stream(
        self,
        motion: StreamedMotion,
        ticker: streaming.Ticker,
        start: TimedStart | None,
        stops: int,
        on_request_sent: Callable[[], None],
    ) -> None:
        """Request the stream and start sending poses: now, or in time for `start`."""
        stream = m.BeginStream(motion.fingers.sides)
        if start is None:
            poses = motion.poses(await self._next_joint_state())
            await self._request_motion(stream, motion.name, stops, on_request_sent)
            ticker.start(self._client.ready(poses), len(poses))
            return
        approach_s = motion.approach_s(await self._next_joint_state())
        self._waiting_starts.add(start)
        try:
            at_s = await start.wait(approach_s + streaming.ASKING_S)
        finally:
            self._waiting_starts.discard(start)
        await self._request_motion(stream, motion.name, stops, on_request_sent)
        try:
            clock = clock_of(self._loop)
            state = await self._next_joint_state()
            poses = motion.poses(state, at_s - clock())
            began_s = at_s - poses.first / motion.rate_hz
            streaming.check_in_time(clock() - began_s)
        except BaseException:
            # The robot has accepted, and nothing will be sent.
            with suppress(RoteError):
                await to_the_end(self.stop())
            raise
        ticker.start(self._client.ready(poses), len(poses), began_s, poses.first)

    async def follow(self, *, rate_hz: float = 250.0, contact: bool = True) -> Following:
        """Let the arms follow live poses; return once the robot has accepted.

        Pass poses to `aim` of the result, and `end` it. Each pose is checked when it arrives; the
        arms move there within limits of speed and acceleration, softly to the first. Raises what
        `play_track` raises for a robot or a wire that cannot. With `contact=False` poses are not
        checked for contact, which takes some milliseconds each.
        """
        self.check_streamable()
        streaming.check_rate(rate_hz)
        ticker, stops = streaming.Ticker(rate_hz), self._stops

        async def begin(on_request_sent: Callable[[], None]) -> LivePoses:
            state = await self._next_joint_state()
            live = LivePoses(self.build, state.joints_rad, rate_hz)
            live.on_last = ticker.stop
            if contact:  # now, so that no pose has to wait until the body model is built
                here = np.array([live.pose_rad, live.pose_rad])
                await asyncio.to_thread(check_path_contact, here, self.build)
            await self._request_motion(m.BeginStream(), "following", stops, on_request_sent)
            ticker.start(self._client.ready(live), len(live))
            return live

        following = Following(self._client, begin, self.stop, ticker, contact=contact)
        following.noted_in(self._unfinished)
        await following.started()
        return following

    def _require_hands(self) -> None:
        """Raise `UnsupportedError` if this wire cannot command hands."""
        if f"{self._client.wire}://" not in wires_with("hands"):
            raise unsupported("play hands", self._client.wire, "hands")

    def check_streamable(self) -> None:
        """Raise `UnsupportedError` if this wire cannot stream, or the machine or its motors are not
        known.
        """
        self._require_ability("stream", "stream a motion")
        build = self.build
        if build.stream is None:
            raise UnsupportedError(
                f"stream to this robot ({build.title}): {build.no_stream}",
                f"{self._client.wire}://",
                remedy=_REPORT_MACHINE
                if not build.known
                else "Teach it, and play what it was taught.",
            )

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
        """Store a track that is on our side as a taught action, on wires that can.

        The robot gets the `budget` keyframes that come closest to it, and plays straight lines
        between them; the result reports the deviation. If the motion would change too much, it
        raises `UnsafeMotionError` and stores nothing: `play_track` plays the track as it is. With
        `overwrite` it replaces an action of that name. With `loop` the robot later repeats it until
        it is stopped. `offload` runs the slow work elsewhere. `imported` is as for `play_track`.
        """
        self._require_ability("store", "store a motion that it was not taught")
        streaming.check_origin(track, self.url, imported=imported)
        check_name(name)
        run = offload or asyncio.to_thread
        whole = await run(storing.make_storable, track, self.build)
        compressed = await run(storing.compress, whole, self.build, budget)
        save = m.SaveAction(
            name=name,
            created_s=int(time.time()),
            duration_ms=round(whole.duration_s * 1000),
            keyframes=compressed.keyframes,
            loop=loop,
            replace=overwrite,
        )
        await self._ask(save)
        return compressed

    async def stop(self) -> None:
        """Stop whatever plays or is being taught, softly. Always allowed, and safe to repeat."""
        self._stops += 1
        for start in self._waiting_starts:
            start.give_up()
        taught = tuple(self._stop_listeners)
        notify_listeners(taught, False, self._loop)
        try:
            await self._ask(m.StopMotion())
            self._unfinished.settle()
        finally:
            notify_listeners(taught, True, self._loop)

    async def say(self, text: str, language: str = "en") -> None:
        """Make the robot speak, on wires that support it; return when the robot has accepted.

        Raises `BadRequestError` for a language that the robot does not speak.
        """
        self._require_ability("voice", "speak")
        await self._ask(check_speech(text, language))

    async def light(self, red: int, green: int, blue: int) -> None:
        """Set the colour of the light on the robot's head, 0 to 255 each, on wires that support it.

        A robot takes a new colour 5 times a second at most.
        """
        self._require_ability("voice", "change its light")
        await self._ask(check_colour(red, green, blue))

    async def sound(self, sound: Sound | str | Path) -> SoundReport:
        """Play a sound on the robot's loudspeaker, on wires that can, and return when it is over.

        A path is read as a sound file: WAV of 16 kHz, one channel and 16 bits always, others with
        the extra `sound`. Another sound ends this one. Cancelling it ends the sound too.
        """
        self._require_ability("sound", "play a sound")
        if not isinstance(sound, Sound):
            sound = await asyncio.to_thread(read_sound, sound, m.SOUND_RATE_HZ, 1)
        return await SoundPlayer(self._client, sound).play()

    def on_audio(
        self, listener: Callable[[m.HeardSpeech | m.SoundState], object]
    ) -> Callable[[], None]:
        """Call `listener` with recognised speech and with loudspeaker start and end events, on
        wires that support it.

        Return a function that removes it.
        """
        self._require_ability("hear", "hear")
        return self._client.on_audio(listener)

    async def perform(self, preset: int | str) -> None:
        """Perform a factory action, by its id or name, and wait for its end, on wires that can.

        Some factory actions hold their last pose. `stop` and `close` release it; after 20 s the
        robot does so itself. Raises `RefusedError` if there is no such preset, `NotBegunError` if
        no motion began.
        """
        self._require_ability("presets", "perform factory actions")
        stops = self._stops
        actions = await self._list_if_readable()
        presets = actions.presets
        found = next((p for p in presets if preset in (p.id, p.name)), None)
        if found is None and isinstance(preset, int):
            found = Preset(preset, str(preset))  # A list may be incomplete; the robot knows.
        if found is None and not actions.is_readable:
            raise _unreadable_list_error(
                f"which factory action {preset!r} is", actions, "Name it by its id."
            )
        if found is None:
            known = ", ".join(f"{each.id} {each.name}" for each in presets) or "none"
            message = f"there is no preset {preset!r}"
            raise RefusedError(Code.NO_SUCH_ACTION, message, f"This robot has: {known}.")
        await self._watch_preset(found, stops)

    async def _watch_preset(self, preset: Preset, stops: int) -> None:
        """Request a factory action and wait for its end; the reply alone proves no motion."""
        watch, loop = MotionWatch(preset.name, most_s=PRESET_S), self._loop
        seen = asyncio.Event()

        def on_state(state: RobotState) -> None:
            watch.on_state(state, loop.time())
            seen.set()

        def on_request_sent() -> None:
            watch.on_request_sent(self.build, self._client.latest, loop.time())

        forget = self._client.on_state(on_state)
        try:
            await self._request_motion(m.PlayPreset(preset.id), preset.name, stops, on_request_sent)
        except BaseException:
            forget()
            raise
        try:
            watch.on_accepted(0.0, loop.time())
            # A release may move nothing, and after a stop there is nothing to wait for.
            while preset.id != m.RELEASE_PRESET and self._stops == stops:
                state = self._client.latest
                if watch.begun and (state is None or state.phase is Phase.NONE):
                    return
                if (timeout_error := watch.timeout_error(loop.time())) is not None:
                    raise timeout_error
                seen.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(_POLL_S):
                        await seen.wait()
        except (asyncio.CancelledError, TimeLimitError, NoAnswerError):
            with suppress(RoteError):
                await to_the_end(self.stop())
            raise
        finally:
            forget()

    async def rename(self, old: str, new: str) -> None:
        """Rename a taught action, on wires that can. Raises `RefusedError` if `new` exists or `old`
        does not.
        """
        self._require_ability("rename", "rename actions")
        check_name(new, may_be_long="save" not in self.abilities)
        actions = await self._list_if_readable()
        if actions.find(old) is None and not actions.notes:
            raise _refused_error(Code.NO_SUCH_ACTION)
        if actions.find(new) is not None:
            raise _refused_error(Code.NAME_EXISTS)
        await self._ask(m.RenameAction(old, new))

    async def delete(self, name: str) -> None:
        """Delete a taught action, on wires that can. It cannot be undone.

        Raises `RefusedError` if there is no action of that name.
        """
        self.check_can_delete()
        actions = await self._list_if_readable()
        if actions.find(name) is None and not actions.notes:
            raise _refused_error(Code.NO_SUCH_ACTION)
        await self._ask(m.DeleteAction(name))

    def check_can_delete(self) -> None:
        """Raise `UnsupportedError` if this wire cannot delete; nothing is asked of the robot."""
        self._require_ability("delete", "delete actions")

    # ---- the robot itself -----------------------------------------------------------------------

    def states(self) -> AsyncIterator[RobotState]:
        """Yield the robot's states as they arrive; raises `LinkError` when the robot is lost.

        A reader that is too slow misses the oldest states, never the newest.
        """
        return iterate_states(self._client.on_state, self._client.on_loss)

    def on_state(self, listener: Callable[[RobotState], object]) -> Callable[[], None]:
        """Call `listener` with every state, at once. Return a function that removes it."""
        return self._client.on_state(listener)

    def on_topic(self, topic: str, listener: Callable[[TopicMessage], None]) -> Callable[[], None]:
        """Call `listener` with every message on one of the robot's topics, on wires that have
        topics.

        A topic may have any number of listeners. Return a function that removes this one.
        """
        self._require_ability("topics", "listen to topics")
        return self._client.on_topic(topic, listener)

    async def controller(self) -> str | None:
        """Return which controller drives the robot: "" in debug mode, None if not reported."""
        if "controller" not in self.abilities:
            return None
        try:
            async with asyncio.timeout(_CONTROLLER_S):
                reply = await self._ask(m.ReadController())
        except (TimeoutError, RefusedError):
            return None  # Older firmware does not know this request.
        assert isinstance(reply, m.Controller)
        return reply.name

    async def describe(self) -> dict[str, Any]:
        """Return its mode, its controller, and the versions that its services report."""
        mode = await self.mode()
        return {
            "mode": {"id": mode.id, "name": mode.name},
            "controller": await self.controller(),
            "versions": await self._read_versions(),
        }

    async def _read_versions(self) -> dict[str, str]:
        ask = getattr(self._client, "version", None)  # exists only on wires with services
        versions: dict[str, str] = {}
        family = self.family
        if ask is not None and family is not None:
            for service in family.services:
                with suppress(RoteError):
                    versions[service.name] = await ask(service.name)
        return versions

    async def mode(self) -> ModeReport:
        """Return the mode the robot is in; its id is -1 if the robot does not report it."""
        state = await self._next_state()
        if state.mode == UNREPORTED_MODE and "controller" in self.abilities:
            with suppress(RefusedError, NoAnswerError, DecodeError):
                await self._ask(m.ReadMode())
            state = self._client.latest or state
        return ModeReport.of(state.mode, self._modes)

    async def preflight(self) -> list[Finding]:
        """Return what a person should know before the robot moves, the worst first."""
        state = await self._next_state()
        if state.battery_percent is None and "health" in self.abilities:
            await self._wait_for_battery_level()
        actions, controller = await self._list_if_readable(), await self.controller()
        return preflight.findings(
            self._client.latest,
            actions,
            self.build,
            controller,
            missing=self._client.missing,
            is_slow=await self._reports_slowly(),
        )

    async def take_findings(self) -> list[Finding]:
        """Return what makes a take on this computer poorer than the robot's own recording. Nothing
        is sent to the robot. `preflight` includes these findings.
        """
        return preflight.take_findings(self._client.missing, is_slow=await self._reports_slowly())

    async def _reports_slowly(self) -> bool:
        """Whether the joints are reported, but less than `MIN_RATE_HZ` times per second."""
        reports = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(_RATE_STATES / MIN_RATE_HZ):
                async for state in self.states():
                    reports += state.joints_told and bool(state.joints_rad)
                    if reports == _RATE_STATES:
                        return False
        latest = self._client.latest
        return latest is not None and bool(latest.joints_rad)

    async def stand(self) -> ModeReport:
        """Bring the robot into a balanced stand, mode by mode, and wait until it stands.

        Return the mode it is in then. Raises `CautionError` if rote knows no way there from the
        current mode.
        """
        self._check_mode_changeable()
        while not (mode := await self.mode()).balanced:
            if mode.id not in self._modes.to_stand:
                raise CautionError(
                    f"rote knows no way from mode {mode.id}, {mode.name}, to a balanced stand",
                    "The robot was not asked. Use its remote: L2+UP, then R1+X.",
                    Code.WRONG_STATE,
                )
            *others, last = self._modes.to_stand[mode.id]
            for following in others:
                with suppress(NoAnswerError):
                    await self._change_mode(following)
                    break
            else:
                await self._change_mode(last)
        return mode

    async def damp(self, *, yes: bool = False) -> ModeReport:
        """Damp all joints: they go limp, and a standing robot sinks to the floor.

        Hold the robot or hang it on its gantry first, then pass `yes=True`. Without `yes`, a robot
        whose joints hold raises `CautionError` and stays as it is. (The documents call the soft
        arms of teaching "damping" too; that is `teach`.)
        """
        self._check_mode_changeable()
        if self._modes.damp is None:
            raise UnsupportedError("damp its joints", f"{self.build.title}")
        if not yes:
            await self._check_safe_to_damp()
        return await self._change_mode(self._modes.damp)

    async def _check_safe_to_damp(self) -> None:
        """Raise `CautionError` if joints hold, or may hold: a robot standing on them would sink."""
        mode = await self.mode()
        facts = self._modes.find(mode.id)
        if facts is None or facts.stiff:
            raise CautionError(
                f"damping makes all joints go limp, and a standing robot sinks to the floor: "
                f"it is in mode {mode.id}, {mode.name}",
                Text("Hold it or hang it up first, then confirm: {sure}.", sure=Act.SINK),
            )

    def check_wanted(self, ability: str) -> None:
        """Raise nothing: connecting changes nothing about this robot."""

    def lie_down(self) -> Awaitable[ModeReport]:
        """Raise `UnsupportedError`: robots of this kind have no command to lie down."""
        raise unsupported("lie down", self._client.wire, "lie")

    def _check_mode_changeable(self) -> None:
        """Raise `UnsupportedError` if this wire, or rote for this machine, cannot change modes."""
        self._require_ability("mode", "change its mode")
        if not self.build.known:
            raise UnsupportedError(
                f"be put into another mode by rote: it is {self.build.title}",
                "this robot",
                remedy=_REPORT_MACHINE,
            )

    async def move_by_hand(self, script: str, seconds: float) -> None:
        """Let the scripted hand of a simulated robot move the soft joints for `seconds`.

        `script` is one of `HAND_SCRIPTS`. Raises `BadRequestError` if the robot does not know it.
        """
        if not script or len(script.encode()) > m.MAX_NAME_BYTES:
            raise BadRequestError(f"there is no hand {script!r}")
        move = m.MoveByHand(script, round(check_seconds(seconds, "a hand") * 1000))
        try:
            await self._ask(move)
        except RefusedError as refused:
            if refused.code != Code.BAD_PAYLOAD:
                raise
            raise BadRequestError(
                f"the robot knows no hand {script!r}",
                f"Simulated robots know {', '.join(m.HAND_SCRIPTS)}.",
            ) from None

    async def close(self) -> None:
        """End what was begun over this connection, then close it. Safe to repeat.

        Joints that are being taught hold, a playback stops softly. `async with rote.connect(...)`
        closes the connection by itself. Cancelling it does not interrupt it. Raises `LinkError` if
        the robot did not confirm a stop.
        """
        await to_the_end(self._end_and_close())

    async def _end_and_close(self) -> None:
        try:
            await self._unfinished.end()
            if self.stop_pending:
                with suppress(RoteError):  # its failure was reported before
                    await self.stop()
        finally:
            await self._close()

    # ---- inside ---------------------------------------------------------------------------------

    async def _ask(self, command: m.Command) -> m.Reply:
        _log.info("ask %s", command)
        reply = await self._client.ask(command)
        _log.info("reply %s", reply)
        if isinstance(reply, m.Status) and reply.code != Code.OK:
            if reply.code == Code.NAME_EXISTS and isinstance(command, m.SaveAction):
                raise self._name_exists_error()
            raise _refused_error(reply.code, reply.note)
        return reply

    async def _request_motion(
        self, command: m.Command, name: str, stops: int, on_request_sent: Callable[[], None]
    ) -> None:
        """Request a motion. If no reply arrives, or the caller is cancelled first, stop the robot:
        the motion may have begun.

        While arms settle after a teaching, the robot refuses every motion as busy: retry.
        """
        asked_s = self._loop.time()
        await self._wait_until_motionless(name, asked_s + RELEASE_S)
        while True:
            self._check_not_stopped_since(stops)
            on_request_sent()
            try:
                await self._ask(command)
            except RefusedError as refused:
                until = self._idle_deadline(asked_s)
                if refused.code != Code.BUSY or until is None:
                    raise
                await self._wait_until_idle(name, until)
            except (asyncio.CancelledError, LinkError):
                with suppress(RoteError):
                    await to_the_end(self.stop())
                raise
            else:
                self._teaching = False  # a motion ends it, or was refused
                self._unfinished.settle()
                self._supersede_stop(stops)
                return

    def _supersede_stop(self, stops: int) -> None:
        """Forget an unconfirmed stop once the robot has accepted something requested after it."""
        if self._stops == stops:
            self._client.stop_pending = False

    def _idle_deadline(self, asked_s: float) -> float | None:
        """Return the time by which arms that were busy at `asked_s` should settle by themselves.

        Arms settle after a teaching, or while they return from a motion. Arms that are reported as
        soft may be those of a teaching that has just ended elsewhere. Returns None if that time is
        over, or if this client teaches.
        """
        now, state = self._loop.time(), self._client.latest
        if self._teaching:
            return None
        until = asked_s
        if self._taught_lately or (state is not None and state.phase is Phase.RETURN):
            until += RELEASE_S
        elif state is None or not state.phase_told or state.recording:
            until += LINGERS_S
        return until if now < until else None

    @property
    def _taught_lately(self) -> bool:
        """Whether arms may be coming to rest after a teaching of this connection."""
        now = self._loop.time()
        return any(now - ended < RELEASE_S for ended in self._taught.values())

    async def _wait_until_idle(self, name: str, until: float) -> None:
        """Wait until the arms that refused a motion are idle, if the robot reports it."""
        with self._announce_wait(Waiting(Waits.RELEASE, name, RELEASE_S)):
            await asyncio.sleep(_RETRY_S)
            with suppress(TimeoutError):
                async with asyncio.timeout_at(until):
                    async for state in self.states():
                        if not state.phase_told or not _is_settling(state):
                            return

    async def _wait_until_motionless(self, name: str, until: float) -> None:
        """After a teaching of this connection, wait until the joints are motionless.

        For robots that report joints but no arm phase: a joint that still moves when the motion is
        requested would be mistaken for the start of the motion.
        """
        state = self._client.latest
        if state is None or state.phase_told or not state.joints_told:
            return
        if self._teaching or not self._taught_lately:
            return
        joints = JointWatch(self.build)
        with self._announce_wait(Waiting(Waits.RELEASE, name, RELEASE_S)), suppress(TimeoutError):
            async with asyncio.timeout_at(until):
                async for state in self.states():
                    if state.joints_told:
                        joints.on_state(state, self._loop.time())
                    if joints.motionless_s(self._loop.time()) >= _MOTIONLESS_S:
                        return

    @contextmanager
    def _announce_wait(self, what: Waiting) -> Iterator[None]:
        notify_listeners(self._wait_listeners, what, self._loop)
        try:
            yield
        finally:
            notify_listeners(self._wait_listeners, None, self._loop)

    async def _find_action(self, name: str | int) -> TaughtAction:
        """Return a taught action by name or number; a newly taught action may be listed late."""
        actions = await self._list_if_readable()
        if isinstance(name, int):
            numbered = actions.numbered(name)
            if numbered is None and actions.notes:
                raise _unreadable_list_error(
                    f"which action is number {name}", actions, "Play it by its name."
                )
            if numbered is None:
                known = ", ".join(f"{each.position} {each.name}" for each in actions.taught)
                message = f"there is no action number {name}"
                raise RefusedError(
                    Code.NO_SUCH_ACTION, message, f"On the robot: {known or 'nothing yet'}."
                )
            return numbered
        if not actions.notes and actions.find(name) is None and name in self._taught:
            with suppress(NotSavedError):
                return await self._wait_until_listed(name)
        action = actions.find(name)
        if action is None and actions.notes:
            if self._plays_by_number:
                raise _unreadable_list_error(f"whether it has {name!r}", actions, "Ask again.")
            return TaughtAction(name, 0.0, 0)  # the robot itself knows
        if action is None:
            known = ", ".join(each.name for each in actions.taught) or "nothing yet"
            message = f"there is no action {name!r}"
            raise RefusedError(Code.NO_SUCH_ACTION, message, f"On the robot: {known}.")
        return action

    @property
    def _plays_by_number(self) -> bool:
        """Whether an action is requested by its number in the list, as in the documented frames."""
        return "frames" in self.abilities

    async def _wait_until_listed(self, name: str) -> TaughtAction:
        """Poll the list until it contains the newly taught action."""
        until = self._taught.get(name, self._loop.time()) + LISTED_S
        actions = await self.actions()
        action = actions.find(name)
        if action is None:
            with self._announce_wait(Waiting(Waits.LISTED, name, LISTED_S)):
                while action is None and self._loop.time() < until:
                    await asyncio.sleep(_RETRY_S)
                    actions = await self.actions()
                    action = actions.find(name)
        if action is None and actions.notes:
            raise _unreadable_list_error(f"whether it has {name!r}", actions, "Ask again.")
        if action is None:
            raise NotSavedError(
                f"the robot ended the recording and does not list {name!r} after {LISTED_S:.0f} s",
                Text(
                    "Look what it has: {list}. What it reported while it was taught is kept here: "
                    "{takes}. Then teach again.",
                    list=Act.LIST,
                    takes=Act.TAKES,
                ),
            )
        return action

    def _check_not_stopped_since(self, stops: int) -> None:
        # A motion that was requested before a stop, and not yet sent, must not move the robot after
        # it.
        if self._stops != stops:
            raise _refused_error(Code.SUPERSEDED)

    async def _next_state(self) -> RobotState:
        """Return a state that is reported after this call."""
        with suppress(TimeoutError):
            async with asyncio.timeout(MODE_CHANGE_S):
                async for state in self.states():
                    return state
        raise NoAnswerError(
            "the robot answers, but reports no state",
            "Try again; if it stays so, switch the robot off and on.",
        )

    async def _next_joint_state(self) -> RobotState:
        """Return a state that is reported after this call and contains the joints' positions."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_JOINTS_S):
                async for state in self.states():
                    if state.joints_told and state.joints_rad:
                        return state
        raise NoAnswerError(
            "the robot does not report its joints, so nothing is streamed to it",
            Text(
                "Teach it and play what it was taught; or see why it is silent: {doctor}.",
                doctor=Act.DOCTOR,
            ),
        )

    async def _wait_for_battery_level(self) -> None:
        """Wait a moment for the battery level, which robots report once per second."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_HEALTH_S):
                async for state in self.states():
                    if state.battery_percent is not None:
                        return

    async def _change_mode(self, mode: int) -> ModeReport:
        await self._ask(m.ChangeMode(mode))
        # Accepted is not done: ask until the robot reports the mode.
        try:
            async with asyncio.timeout(MODE_CHANGE_S):
                async for state in self.states():
                    if state.mode == mode:
                        break
        except TimeoutError:
            raise NoAnswerError(
                f"the robot accepted mode {mode:d} and is still not in it",
                "Look at the robot; try the buttons of its remote.",
            ) from None
        return ModeReport.of(mode, self._modes)

    def _store_full_error(self) -> CautionError:
        message, remedy = m.explain(Code.STORE_FULL)
        if "delete" in self.abilities:
            remedy = Text("Delete one that is not needed: {delete}.", delete=Act.DELETE)
        elif "overwrite" in self.abilities:
            remedy = Text(
                "Replace one that is not needed: teach by its name, with {overwrite}. A simulated "
                "robot can also begin with another store: {other}.",
                overwrite=Act.OVERWRITE,
                other=Act.OTHER_STORE,
            )
        advice = Text("{remedy} {by_force}", remedy=remedy, by_force=_BY_FORCE)
        return CautionError(message, advice, Code.STORE_FULL)

    def _name_exists_error(self) -> RefusedError:
        message, remedy = m.explain(Code.NAME_EXISTS)
        if "overwrite" in self.abilities:
            remedy = Text(
                "Choose another name, or replace that action: {overwrite}.", overwrite=Act.OVERWRITE
            )
        return RefusedError(Code.NAME_EXISTS, message, remedy)

    def _require_ability(self, ability: str, what: str) -> None:
        if ability not in self.abilities:
            raise unsupported(what, self._client.wire, ability)


def _is_settling(state: RobotState) -> bool:
    """Whether a recording or a motion is just ending."""
    return state.phase is Phase.RETURN or state.recording


def _unreadable_list_error(unknown: str, actions: Actions, remedy: str) -> DecodeError:
    """Return the error for an action list that could not be read."""
    return DecodeError(f"{unknown} is not known: {'; '.join(actions.notes)}", remedy)


def _refused_error(code: int, note: str = "") -> RefusedError:
    message, remedy = m.explain(code)
    return RefusedError(code, f"{message} ({note})" if note else message, remedy)


def _check_compensation(values: Sequence[float]) -> tuple[float, ...]:
    """Return compensation values that can be sent; raise `BadRequestError` otherwise."""
    if values and len(values) != m.COMPENSATIONS:
        raise BadRequestError(
            f"{len(values)} compensation values", f"A keep-alive carries {m.COMPENSATIONS}."
        )
    if not all(abs(value) <= _MAX_F32 for value in values):  # a NaN fails here too
        raise BadRequestError(
            "a compensation value is not a number of 32 bits", "Use finite numbers."
        )
    return tuple(float(value) for value in values)


def _check_frames(frames: int) -> int:
    if not 0 <= frames <= 0xFFFF_FFFF:
        raise BadRequestError(f"{frames} frames are not possible", "0 means all of them.")
    return frames


def _check_part(speed: float | None, frames: int, keyframes: int) -> None:
    if speed is not None:
        raise BadRequestError(
            "how long a part of an action or other keyframes take at a speed is not known",
            "Give `duration` instead.",
        )
    if keyframes and frames > keyframes:
        raise BadRequestError(f"{frames} of {keyframes} keyframes", "Leave `frames` out.")


def _parse_interpolation(value: str | Interpolation) -> Interpolation:
    if isinstance(value, Interpolation):
        return value
    try:
        return Interpolation[value.upper()]
    except KeyError:
        known = ", ".join(kind.name.lower() for kind in Interpolation)
        raise BadRequestError(f"there is no interpolation {value!r}", f"Use: {known}.") from None


def _check_tempo(speed: float | None, duration: float | None) -> None:
    if speed is not None and duration is not None:
        raise BadRequestError("speed and duration exclude each other", "Give one of them.")
    if duration is not None:
        check_seconds(duration, "a playback")
    if speed is not None:
        streaming.check_playing_speed(speed)
