"""A robot by its services on DDS: the same requests as over WebRTC, and arms that can be streamed.

What the robot publishes is thinned out to what people watch, except while it records: then every
state counts, and there are hundreds a second. Meanwhile they are not even taken one by one.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from rote import messages as m
from rote.errors import CautionError, LinkError, NoAnswerError, RefusedError
from rote.messages import Code, Phase, RobotState
from rote.model.family import Build, Hand, wearing
from rote.model.registry import family_of
from rote.platform.loop import to_the_end
from rote.session.arm_stream import ArmSetpoint
from rote.session.hand_readings import HandReadings
from rote.session.rpc import ChannelTiming
from rote.transport.base_client import FromAnywhere
from rote.transport.dds.arm_streamer import ArmStreamer
from rote.transport.dds.connection import SPORT_TOPIC, DdsWay
from rote.transport.dds.guardian import Guardian, can_guard
from rote.transport.dds.participant import DdsTarget, Outlet
from rote.transport.services_client import ServicesClient
from rote.transport.tap import Tap
from rote.transport.wires import DDS
from rote.wire.dds import cdr
from rote.wire.dds import hands as dds_hands
from rote.wire.dds import lowlevel as dds_lowlevel
from rote.wire.services import rpc
from rote.wire.services.lowstate import BMS_TOPIC, JointColumns
from rote.wire.services.lowstate import SPORT_TOPIC as SLOW_SPORT_TOPIC

_log = logging.getLogger("rote")

VERSION_API = 1
"""The request by which every service reports the version of its interface."""
_ASK_AFTER_S = 1.0
"""A robot silent for this long is asked something. One that publishes does so hundreds of times per
second, and one that is silent for 2.5 s counts as lost.
"""
_SIGNS = (rpc.CHECK_MODE, rpc.GET_FSM, rpc.LIST_ACTIONS)
"""What it is asked then: reads that every robot answers, at least with a refusal."""
_WATCHED_MS = 20
"""States for people: fifty a second."""
_CLOSE_MS = _WATCHED_MS // 2
"""States that come all the same, nearer to the last than this, are not told."""
_HANDS_S, _LOOK_S = 0.3, 0.02
"""How long hands may take to report after the robot was connected, and how often that is
checked.
"""


class _Command(NamedTuple):
    """What is written at one moment of a stream."""

    setpoint: ArmSetpoint
    arms: bytes
    hands: tuple[tuple[Outlet, bytes], ...] = ()


class DdsClient(ServicesClient):
    """One client's conversation with one robot on DDS."""

    def __init__(
        self,
        url: str,
        target: DdsTarget,
        timing: ChannelTiming | None = None,
        *,
        reconnect: bool = True,
        every_state: bool = False,
        tap: Tap | None = None,
    ) -> None:
        """Make a client; with `every_state` it tells all that the robot publishes."""
        self._every_state = every_state
        self._streamer = ArmStreamer(self._pack, self._write, self._note_stop, self._arm_readers)
        self._way = DdsWay(target, self._take, timing, before_close=self._streamer.faded, tap=tap)
        self._scripted: frozenset[str] = frozenset()
        self._guardian: Guardian | None = None
        super().__init__(url, self._way, reconnect=reconnect, build=target.build)
        self.abilities = DDS
        self._reported_ms = self._told_ms = 0
        self._hands = HandReadings()
        self._hands_by_topic: dict[str, Hand] = {}
        self._expect_hands()

    def _listen(self) -> None:
        """Subscribe to nothing here: published data arrives by `_take`."""

    async def _greet(self) -> None:
        await super()._greet()
        lines = self._way.lines
        # Only rote's own simulated robot listens there.
        by_hand = lines is not None and lines.hand.matched
        self._scripted = frozenset({"hand"} if by_hand else ())
        await self._first_hands()
        self._know_abilities()
        self._pace()

    def _pace(self) -> None:
        """Take the joints as fast as they are needed: one by one only while the robot records."""
        if self._way.lines is not None:
            self._way.lines.joints.pace(None if self._wants_all() else _WATCHED_MS / 1000)

    def _wants_all(self) -> bool:
        return self._every_state or self._arms.activity is rpc.RpcActivity.RECORDING

    async def close(self) -> None:
        """Release the arms softly, then close the connection. Safe to call twice."""
        self._streamer.fade()
        try:
            await self._streamer.faded()
        finally:
            await super().close()
            guardian, self._guardian = self._guardian, None
            if guardian is not None:
                await to_the_end(guardian.close())

    def _losing(self) -> None:
        self._streamer.fade()
        super()._losing()

    async def version(self, service: str) -> str:
        """Return the version of its interface that a service reports."""
        return (await self.call(rpc.Call(service, VERSION_API), read=True)).text

    def _pulse(self) -> None:
        """Ask a robot that publishes nothing for a sign of life: its answer is one."""
        super()._pulse()
        lines, session = self._way.lines, self._way.session
        if lines is None or session.silent_s(self.connection.now()) < _ASK_AFTER_S:
            return
        asked = next((call for call in _SIGNS if lines.offers(call.service)), None)
        if asked is not None:
            session.request(asked, self.connection.now())
            self.connection.flush()

    # ---- hands ----------------------------------------------------------------------------------

    def _expect_hands(self) -> None:
        """Subscribe to the hands that a robot of this family may wear."""
        family = family_of(self.identity.build)
        may_wear = () if family is None else family.hands
        self._hands_by_topic = {hand.state_topic: hand for hand in may_wear}
        self._way.listen_to(may_wear)

    async def _first_hands(self) -> None:
        """Wait a moment for hands that have not reported yet."""
        until = self._loop.time() + _HANDS_S
        while self._loop.time() < until and (lines := self._way.lines) is not None:
            there = [hand for hand, inlet in lines.hands.items() if inlet.matched]
            if set(there) <= set(self._hands.worn):
                return
            await asyncio.sleep(_LOOK_S)

    def _read_hand(self, hand: Hand, data: bytes) -> None:
        reading, now = dds_hands.decode_state(data, hand), self._loop.time()
        if self._hands.hear(hand, reading, now, self._told_ms / 1000):
            self.build = wearing(self.identity.build, self._hands.worn)
            self._know_abilities()
        if self._way.lines is not None:
            self._way.lines.commands_to(hand)  # so that its reader is found before a stream begins

    def _know_abilities(self) -> None:
        self.abilities = DDS | self._scripted | ({"hands"} if self._hands.worn else set())

    # ---- what the robot says --------------------------------------------------------------------

    def _take(self, topic: str, data: bytes) -> None:
        """Process what was published on a topic."""
        reader = _READERS.get(topic)
        if reader is not None:
            reader(self, data)
        elif topic in self._hands_by_topic:
            self._read_hand(self._hands_by_topic[topic], data)

    def _read_lowstate(self, data: bytes) -> None:
        tick_ms, machine = dds_lowlevel.head_of(data)
        # A robot without a clock always sends the same number, mostly 0.
        told = tick_ms > 0 and not self._ticks.see(tick_ms, self._loop.time())
        tick_ms = tick_ms if told else int(self._loop.time() * 1000)
        self._told_ms = tick_ms
        if self._wants_all() or not 0 <= tick_ms - self._reported_ms < _CLOSE_MS:
            self._reported_ms = tick_ms
            self._see_motors(machine, dds_lowlevel.MOTORS)
            joints = dds_lowlevel.joints_of(data, self.identity.build)
            joints = joints if told else joints._replace(tick_ms=None)
            self.identity.see_missing(joints.missing)
            self._report(self._state(joints))

    def _read_mode(self, data: bytes) -> None:
        self._note_mode(cdr.decode_mode(data))

    def _read_battery(self, data: bytes) -> None:
        self._battery = cdr.decode_battery(data)

    def _read_arms(self, data: bytes) -> None:
        self._note_arms(rpc.decode_arm_state(cdr.decode_text(data)))
        self._pace()
        let_go = self._arms.activity is rpc.RpcActivity.RELEASING
        if let_go and self._streamer.phase is not Phase.RETURN:
            self._streamer.stop("another client, or the robot itself, released the arms")

    def _read_audio(self, data: bytes) -> None:
        audio = rpc.decode_audio(cdr.decode_text(data))
        if audio is not None:
            self._note_audio(audio)

    def _know(self) -> None:
        family = family_of(self.build)
        super()._know()
        self._streamer.stop("the robot turned out to be another machine")
        if family is not family_of(self.build):
            self._hands.forget()
            self._know_abilities()
            self._expect_hands()
        self.build = wearing(self.build, self._hands.worn)

    def _with_hands(self, state: RobotState) -> RobotState:
        """Return a state with the joints of the hands as its last columns."""
        now = self._loop.time()
        positions, velocities, celsius = self._hands.read(now, self._told_ms / 1000)
        silent = self._hands.silent(now)
        if lost := [hand.side for hand in self._streamer.hands if hand.side in silent]:
            self._streamer.stop(f"the {lost[0]} hand reported no positions any more")
        return replace(
            state,
            joints_rad=state.joints_rad + positions,
            velocities_rad_s=state.velocities_rad_s + velocities,
            temperatures_c=state.temperatures_c + celsius,
            silent_hands=silent,
        )

    def _state(self, told: JointColumns | None) -> RobotState:
        state = super()._state(told)
        if told is not None:
            if self._hands.worn:
                state = self._with_hands(state)
            idle = self._arms.activity is rpc.RpcActivity.IDLE
            self._streamer.see(state.joints_rad, told.tick_ms, idle=idle)
        phase = self._streamer.phase
        if phase is None:
            return state
        return replace(state, phase=phase, stopped_early=self._stopped)

    # ---- streaming ------------------------------------------------------------------------------

    async def ask(self, command: m.Command) -> m.Reply:
        """Carry out a command by the services, or by the stream."""
        if isinstance(command, m.BeginStream):
            return self._begin_stream(command)
        if isinstance(command, m.StopMotion) and self._streamer.phase is not None:
            self._streamer.stop("a stop was requested")
            if self.connection.failure is None:
                return await self.connection.confirm_stop(self._confirm_release())
        return await super().ask(command)

    async def _confirm_release(self) -> m.Reply:
        """Wait until the robot is heard, or raise `LinkError` once it counts as lost.

        Setpoints have no answer, and a silent robot may not receive the release either.
        """
        session, now = self.session, self.connection.now
        requested_at = now()
        while self.session is session and self.connection.failure is None:
            if self._way.session.silent_s(now()) < now() - requested_at:
                return m.Status()
            await asyncio.sleep(_LOOK_S)
        raise self.connection.failure or NoAnswerError(
            "the stop was sent, and the robot was lost before it was heard again",
            "Look at the robot; if it moves, use its remote: L2+B.",
        )

    def _begin_stream(self, command: m.BeginStream) -> m.Reply:
        lines, state, build = self._way.lines, self.latest, self.build
        if self.connection.failure is not None:
            raise self.connection.failure
        if lines is None or state is None:
            raise self._unobeyed()
        if problem := self.identity.stream_problem():
            raise CautionError(*problem)
        if not lines.arms.matched:
            raise self._unobeyed()
        family = family_of(build)
        if family is None or not family.modes.balanced(state.mode):
            raise RefusedError(Code.WRONG_STATE, *m.explain(Code.WRONG_STATE))
        if self._arms.holding:
            raise RefusedError(Code.HOLDING, *m.explain(Code.HOLDING))
        busy = self._arms.activity is not rpc.RpcActivity.IDLE
        if busy or self._streamer.phase is not None:
            raise RefusedError(Code.BUSY, *m.explain(Code.BUSY))
        following = tuple(self._obeying(side) for side in command.hands)
        # The newest state may be older than the first report of a new hand.
        body_rad = state.joints_rad[: len(build.bare.joints)]
        now = self._loop.time()
        fingers_rad = self._hands.read(now, self._told_ms / 1000).joints_rad
        self._stopped, self.stop_reason = False, ""
        self._guard(build, following)
        self._streamer.begin(body_rad + fingers_rad, build, following)
        return m.Status()

    def _guard(self, build: Build, following: tuple[Hand, ...]) -> None:
        """Have the arms released if this program is killed while it streams."""
        if self._guardian is not None and not self._guardian.is_running:
            _log.warning("the process that guards streams has ended; another one is started")
            self._guardian.abandon()
            self._guardian = None
        if self._guardian is None and can_guard(self._loop):
            try:
                self._guardian = Guardian(self._way.target)
            except OSError as error:
                _log.warning(
                    "nothing releases the arms if this program is killed while it streams: the "
                    "process for that cannot be started: %s",
                    error,
                )
        if self._guardian is not None:
            self._guardian.begin(build, following, self.identity.machine)

    def _obeying(self, side: str) -> Hand:
        """Return the hand of a side that can be streamed to, or raise why it cannot."""
        hand = next((hand for hand in self.build.hands if hand.side == side), None)
        if hand is None or side in self._hands.silent(self._loop.time()):
            seen = "the robot reports no" if hand is None else "nothing is heard any more of its"
            raise NoAnswerError(f"{seen} {side} hand", "Play it without the hands.")
        if self._way.lines is None or not self._way.lines.commands_to(hand).matched:
            raise NoAnswerError(
                f"nobody obeys {hand.command_topic}",
                "The hand reports and takes no commands: look at its service on the robot, or play "
                "without the hands.",
            )
        return hand

    def _unobeyed(self) -> NoAnswerError:
        lines = self._way.lines
        seen = f"nobody obeys {dds_lowlevel.ARM_SDK_TOPIC}"
        if lines is not None and dds_lowlevel.OLD_ARM_SDK_TOPIC in lines.bus.seen()[1]:
            return NoAnswerError(
                f"{seen}; there is {dds_lowlevel.OLD_ARM_SDK_TOPIC}, which older software calls it",
                "Update the robot to stream motions, or teach and play them by the arm service.",
            )
        return NoAnswerError(seen, "The robot must stand balanced, and not in debug mode.")

    def ready(self, poses: Sequence[m.StreamPose]) -> Callable[[int], bool]:
        """Prepare the poses of the stream that was begun, and return a function that sends one by
        its place.

        The function sends nothing and returns False once the stream has ended.
        """
        return FromAnywhere(self._streamer.ready(poses))

    def _note_stop(self, reason: str) -> None:
        self._stopped = True
        self.stop_reason = reason

    def _pack(
        self, setpoints: Sequence[ArmSetpoint], build: Build, following: tuple[Hand, ...]
    ) -> list[_Command]:
        """Make setpoints ready to be written; called from any thread."""
        lines = self._way.lines
        arms = dds_lowlevel.encode_arm_commands(
            [setpoint.joints_rad for setpoint in setpoints],
            [setpoint.weight for setpoint in setpoints],
            build=build,
            mode_machine=self.identity.machine,
        )
        if not following or lines is None:
            return [_Command(*each) for each in zip(setpoints, arms, strict=True)]
        outlets = [lines.commands_to(hand) for hand in following]
        commands = []
        for data, setpoint in zip(arms, setpoints, strict=True):
            first, hands = 0, list[tuple[Outlet, bytes]]()
            for hand, outlet in zip(following, outlets, strict=True):
                own = setpoint.hands_rad[first : first + len(hand.joints)]
                first += len(hand.joints)
                packed = dds_hands.encode_command(own, setpoint.weight, hand=hand)
                hands.append((outlet, packed))
            commands.append(_Command(setpoint, data, tuple(hands)))
        return commands

    def _arm_readers(self) -> frozenset[int]:
        lines = self._way.lines
        return frozenset() if lines is None else lines.arms.readers()

    def _write(self, command: _Command) -> None:
        """Write what was packed; called from any thread."""
        lines = self._way.lines
        if lines is None:
            return
        if self._guardian is not None:
            self._guardian.note(command.setpoint)
        try:
            lines.arms.write(command.arms)
        except LinkError:
            self.session.dropped["arm command"] += 1
        for outlet, data in command.hands:
            try:
                outlet.write(data)
            except LinkError:
                self.session.dropped["hand command"] += 1


_READERS: dict[str, Callable[[DdsClient, bytes], None]] = {
    dds_lowlevel.LOWSTATE_TOPIC: DdsClient._read_lowstate,
    SPORT_TOPIC: DdsClient._read_mode,
    SLOW_SPORT_TOPIC: DdsClient._read_mode,
    BMS_TOPIC: DdsClient._read_battery,
    rpc.ARM_STATE_TOPIC: DdsClient._read_arms,
    rpc.AUDIO_TOPIC: DdsClient._read_audio,
}
