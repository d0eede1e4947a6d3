"""A client of the robot's services on DDS: the same requests as over WebRTC, and streamed arms.

The robot publishes hundreds of states per second. The client takes only as many as people can
watch, except while the robot records: then it takes every state.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from rote import messages as m
from rote.errors import CautionError, LinkError, NoAnswerError, RefusedError
from rote.messages import Code, Phase, RobotState
from rote.model.family import Build, Hand, attach_hands
from rote.model.registry import family_of
from rote.platform.loop import to_the_end
from rote.session.arm_stream import ArmSetpoint
from rote.session.hand_readings import HandReadings
from rote.session.rpc import ChannelTiming
from rote.transport.base_client import ThreadSafeSender
from rote.transport.dds.arm_streamer import ArmStreamer
from rote.transport.dds.connection import SPORT_TOPIC, DdsConnection
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
_PROBES = (rpc.CHECK_MODE, rpc.GET_FSM, rpc.LIST_ACTIONS)
"""Requests for that: reads that every robot answers, at least with a refusal."""
_WATCHED_MS = 20
"""Interval of the states for people: fifty per second."""
_CLOSE_MS = _WATCHED_MS // 2
"""States that arrive earlier than this after the last one are not reported."""
_HANDS_S, _CHECK_S = 0.3, 0.02
"""Timeout for hands to report after the robot was connected, and the interval of the check."""


class _Command(NamedTuple):
    """The samples of one setpoint of a stream."""

    setpoint: ArmSetpoint
    arms: bytes
    hands: tuple[tuple[Outlet, bytes], ...] = ()


class DdsClient(ServicesClient):
    """A client of one robot on DDS."""

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
        """Make a client; with `every_state` it reports every state that the robot publishes."""
        self._every_state = every_state
        self._streamer = ArmStreamer(
            self._pack_commands, self._write_command, self._note_stop, self._arm_readers
        )
        self._dds = DdsConnection(
            target,
            self._on_sample,
            timing,
            before_close=self._streamer.wait_until_released,
            tap=tap,
        )
        self._scripted: frozenset[str] = frozenset()
        self._guardian: Guardian | None = None
        super().__init__(url, self._dds, reconnect=reconnect, build=target.build)
        self.abilities = DDS
        self._reported_ms = self._tick_ms = 0
        self._hands = HandReadings()
        self._hands_by_topic: dict[str, Hand] = {}
        self._expect_hands()

    def _subscribe_topics(self) -> None:
        """Subscribe to nothing: published data arrives by `_on_sample`."""

    async def _on_connected(self) -> None:
        await super()._on_connected()
        topics = self._dds.topics
        # Only rote's own simulated robot listens there.
        by_hand = topics is not None and topics.hand.matched
        self._scripted = frozenset({"hand"} if by_hand else ())
        await self._wait_for_hands()
        self._update_abilities()
        self._set_joint_pace()

    def _set_joint_pace(self) -> None:
        """Set how often joint states are taken: each one only while the robot records."""
        if self._dds.topics is not None:
            self._dds.topics.joints.pace(None if self._needs_every_state() else _WATCHED_MS / 1000)

    def _needs_every_state(self) -> bool:
        return self._every_state or self._arms.activity is rpc.RpcActivity.RECORDING

    async def close(self) -> None:
        """Release the arms softly, then close the connection. Safe to call twice."""
        self._streamer.fade()
        try:
            await self._streamer.wait_until_released()
        finally:
            await super().close()
            guardian, self._guardian = self._guardian, None
            if guardian is not None:
                await to_the_end(guardian.close())

    def _before_loss(self) -> None:
        self._streamer.fade()
        super()._before_loss()

    async def version(self, service: str) -> str:
        """Return the interface version that a service reports."""
        return (await self.call(rpc.Call(service, VERSION_API), read=True)).text

    def _on_pulse(self) -> None:
        """Send a request to a robot that publishes nothing: its answer shows that it is alive."""
        super()._on_pulse()
        topics, session = self._dds.topics, self._dds.session
        if topics is None or session.silent_s(self.connection.now()) < _ASK_AFTER_S:
            return
        probe = next((call for call in _PROBES if topics.offers(call.service)), None)
        if probe is not None:
            session.request(probe, self.connection.now())
            self.connection.flush()

    # ---- hands ----------------------------------------------------------------------------------

    def _expect_hands(self) -> None:
        """Subscribe to the hands that a robot of this family may have."""
        family = family_of(self.identity.build)
        possible = () if family is None else family.hands
        self._hands_by_topic = {hand.state_topic: hand for hand in possible}
        self._dds.subscribe_to_hands(possible)

    async def _wait_for_hands(self) -> None:
        """Wait a moment for hands that have not reported yet."""
        until = self._loop.time() + _HANDS_S
        while self._loop.time() < until and (topics := self._dds.topics) is not None:
            there = [hand for hand, inlet in topics.hands.items() if inlet.matched]
            if set(there) <= set(self._hands.attached):
                return
            await asyncio.sleep(_CHECK_S)

    def _read_hand(self, hand: Hand, data: bytes) -> None:
        reading, now = dds_hands.decode_state(data, hand), self._loop.time()
        if self._hands.add_report(hand, reading, now, self._tick_ms / 1000):
            self.build = attach_hands(self.identity.build, self._hands.attached)
            self._update_abilities()
        if self._dds.topics is not None:
            self._dds.topics.hand_writer(hand)  # so that its reader is found before a stream begins

    def _update_abilities(self) -> None:
        self.abilities = DDS | self._scripted | ({"hands"} if self._hands.attached else set())

    # ---- samples from the robot -----------------------------------------------------------------

    def _on_sample(self, topic: str, data: bytes) -> None:
        """Process what was published on a topic."""
        reader = _READERS.get(topic)
        if reader is not None:
            reader(self, data)
        elif topic in self._hands_by_topic:
            self._read_hand(self._hands_by_topic[topic], data)

    def _read_lowstate(self, data: bytes) -> None:
        tick_ms, machine = dds_lowlevel.head_of(data)
        # A robot without a clock always sends the same number, mostly 0.
        has_clock = tick_ms > 0 and not self._ticks.update(tick_ms, self._loop.time())
        tick_ms = tick_ms if has_clock else int(self._loop.time() * 1000)
        self._tick_ms = tick_ms
        if self._needs_every_state() or not 0 <= tick_ms - self._reported_ms < _CLOSE_MS:
            self._reported_ms = tick_ms
            self._recognise_motors(machine, dds_lowlevel.MOTORS)
            joints = dds_lowlevel.joints_of(data, self.identity.build)
            joints = joints if has_clock else joints._replace(tick_ms=None)
            self.identity.on_missing_columns(joints.missing)
            self._publish_state(self._make_state(joints))

    def _read_mode(self, data: bytes) -> None:
        self._note_mode(cdr.decode_mode(data))

    def _read_battery(self, data: bytes) -> None:
        self._battery = cdr.decode_battery(data)

    def _read_arms(self, data: bytes) -> None:
        self._note_arms(rpc.decode_arm_state(cdr.decode_text(data)))
        self._set_joint_pace()
        released = self._arms.activity is rpc.RpcActivity.RELEASING
        if released and self._streamer.phase is not Phase.RETURN:
            self._streamer.stop("another client, or the robot itself, released the arms")

    def _read_audio(self, data: bytes) -> None:
        audio = rpc.decode_audio(cdr.decode_text(data))
        if audio is not None:
            self._notify_audio(audio)

    def _on_build_changed(self) -> None:
        family = family_of(self.build)
        super()._on_build_changed()
        self._streamer.stop("the robot turned out to be another machine")
        if family is not family_of(self.build):
            self._hands.forget()
            self._update_abilities()
            self._expect_hands()
        self.build = attach_hands(self.build, self._hands.attached)

    def _with_hands(self, state: RobotState) -> RobotState:
        """Return a state with the joints of the hands as its last columns."""
        now = self._loop.time()
        positions, velocities, celsius = self._hands.read(now, self._tick_ms / 1000)
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

    def _make_state(self, measured: JointColumns | None) -> RobotState:
        state = super()._make_state(measured)
        if measured is not None:
            if self._hands.attached:
                state = self._with_hands(state)
            idle = self._arms.activity is rpc.RpcActivity.IDLE
            self._streamer.on_joints(state.joints_rad, measured.tick_ms, idle=idle)
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
        """Wait for a message from the robot, or raise `LinkError` once it counts as lost.

        Setpoints have no answer, and a silent robot may not receive the release either.
        """
        session, now = self.session, self.connection.now
        requested_at = now()
        while self.session is session and self.connection.failure is None:
            if self._dds.session.silent_s(now()) < now() - requested_at:
                return m.Status()
            await asyncio.sleep(_CHECK_S)
        raise self.connection.failure or NoAnswerError(
            "the stop was sent, and the robot was lost before it sent another message",
            "Look at the robot; if it moves, use its remote: L2+B.",
        )

    def _begin_stream(self, command: m.BeginStream) -> m.Reply:
        topics, state, build = self._dds.topics, self.latest, self.build
        if self.connection.failure is not None:
            raise self.connection.failure
        if topics is None or state is None:
            raise self._make_no_reader_error()
        if problem := self.identity.stream_problem():
            raise CautionError(*problem)
        if not topics.arms.matched:
            raise self._make_no_reader_error()
        family = family_of(build)
        if family is None or not family.modes.balanced(state.mode):
            raise RefusedError(Code.WRONG_STATE, *m.explain(Code.WRONG_STATE))
        if self._arms.holding:
            raise RefusedError(Code.HOLDING, *m.explain(Code.HOLDING))
        busy = self._arms.activity is not rpc.RpcActivity.IDLE
        if busy or self._streamer.phase is not None:
            raise RefusedError(Code.BUSY, *m.explain(Code.BUSY))
        following = tuple(self._find_hand_to_command(side) for side in command.hands)
        # The newest state may be older than the first report of a new hand.
        body_rad = state.joints_rad[: len(build.bare.joints)]
        now = self._loop.time()
        fingers_rad = self._hands.read(now, self._tick_ms / 1000).joints_rad
        self._stopped, self.stop_reason = False, ""
        self._start_guardian(build, following)
        self._streamer.begin(body_rad + fingers_rad, build, following)
        return m.Status()

    def _start_guardian(self, build: Build, following: tuple[Hand, ...]) -> None:
        """Have the arms released if this program is killed while it streams."""
        if self._guardian is not None and not self._guardian.is_running:
            _log.warning("the process that guards streams has ended; another one is started")
            self._guardian.abandon()
            self._guardian = None
        if self._guardian is None and can_guard(self._loop):
            try:
                self._guardian = Guardian(self._dds.target)
            except OSError as error:
                _log.warning(
                    "nothing releases the arms if this program is killed while it streams: the "
                    "process for that cannot be started: %s",
                    error,
                )
        if self._guardian is not None:
            self._guardian.begin(build, following, self.identity.machine)

    def _find_hand_to_command(self, side: str) -> Hand:
        """Return the hand of a side that can be streamed to, or raise why it cannot."""
        hand = next((hand for hand in self.build.hands if hand.side == side), None)
        if hand is None or side in self._hands.silent(self._loop.time()):
            seen = "the robot reports no" if hand is None else "the robot no longer reports its"
            raise NoAnswerError(f"{seen} {side} hand", "Play it without the hands.")
        if self._dds.topics is None or not self._dds.topics.hand_writer(hand).matched:
            raise NoAnswerError(
                f"no program on the robot reads {hand.command_topic}",
                "The hand reports but takes no commands: check its service on the robot, or play "
                "without the hands.",
            )
        return hand

    def _make_no_reader_error(self) -> NoAnswerError:
        topics = self._dds.topics
        seen = f"no program on the robot reads {dds_lowlevel.ARM_SDK_TOPIC}"
        if (
            topics is not None
            and dds_lowlevel.OLD_ARM_SDK_TOPIC in topics.bus.discovered_topics()[1]
        ):
            return NoAnswerError(
                f"{seen}; there is {dds_lowlevel.OLD_ARM_SDK_TOPIC}, which older software calls it",
                "Update the robot to stream motions, or teach and play them by the arm service.",
            )
        return NoAnswerError(seen, "The robot must stand balanced, and not in debug mode.")

    def ready(self, poses: Sequence[m.StreamPose]) -> Callable[[int], bool]:
        """Prepare the poses of the stream that was begun, and return a function that sends one by
        its index.

        The function sends nothing and returns False once the stream has ended.
        """
        return ThreadSafeSender(self._streamer.ready(poses))

    def _note_stop(self, reason: str) -> None:
        self._stopped = True
        self.stop_reason = reason

    def _pack_commands(
        self, setpoints: Sequence[ArmSetpoint], build: Build, following: tuple[Hand, ...]
    ) -> list[_Command]:
        """Encode setpoints for writing; called from any thread."""
        topics = self._dds.topics
        arms = dds_lowlevel.encode_arm_commands(
            [setpoint.joints_rad for setpoint in setpoints],
            [setpoint.weight for setpoint in setpoints],
            build=build,
            mode_machine=self.identity.machine,
        )
        if not following or topics is None:
            return [_Command(*each) for each in zip(setpoints, arms, strict=True)]
        outlets = [topics.hand_writer(hand) for hand in following]
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
        topics = self._dds.topics
        return frozenset() if topics is None else topics.arms.readers()

    def _write_command(self, command: _Command) -> None:
        """Write an encoded setpoint; called from any thread."""
        topics = self._dds.topics
        if topics is None:
            return
        if self._guardian is not None:
            self._guardian.note(command.setpoint)
        try:
            topics.arms.write(command.arms)
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
