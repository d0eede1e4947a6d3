"""A client of the robot's services on DDS: the same requests as over WebRTC, and streamed arms."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

from rote import messages as m
from rote.errors import CautionError, LinkError, NoAnswerError, RefusedError
from rote.messages import Code
from rote.model.family import Build, Hand
from rote.model.registry import family_of
from rote.platform.loop import to_the_end
from rote.session.arm_stream import ArmSetpoint
from rote.session.recognition import Identity
from rote.session.rpc import ChannelTiming
from rote.transport.base_client import ThreadSafeSender
from rote.transport.dds.arm_streamer import ArmStreamer
from rote.transport.dds.connection import DdsConnection
from rote.transport.dds.guardian import Guardian, can_guard
from rote.transport.dds.participant import DdsTarget, Outlet
from rote.transport.dds.reports import DdsReports
from rote.transport.services.client import ServicesClient
from rote.transport.tap import Tap
from rote.transport.wires import DDS
from rote.wire.dds import hands as dds_hands
from rote.wire.dds import lowlevel as dds_lowlevel
from rote.wire.services import rpc

_log = logging.getLogger("rote")

VERSION_API = 1
"""The request by which every service reports the version of its interface."""
_ASK_AFTER_S = 1.0
"""A robot silent for this long is asked something. One that publishes does so hundreds of times per
second, and one that is silent for 2.5 s counts as lost.
"""
_PROBES = (rpc.CHECK_MODE, rpc.GET_FSM, rpc.LIST_ACTIONS)
"""Requests for that: reads that every robot answers, at least with a refusal."""
_CHECK_S = 0.02


class _Command(NamedTuple):
    """The samples of one setpoint of a stream."""

    setpoint: ArmSetpoint
    arms: bytes
    hands: tuple[tuple[Outlet, bytes], ...] = ()


class DdsClient(ServicesClient):
    """A client of one robot on DDS."""

    reports: DdsReports

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
        self._streamer = ArmStreamer(
            self._pack_commands, self._write_command, self._note_stop, self._arm_readers
        )
        self._dds = DdsConnection(
            target, timing, before_close=self._streamer.wait_until_released, tap=tap
        )
        self._guardian: Guardian | None = None
        reports = DdsReports(
            Identity(target.build), self._dds, self._streamer, every_state=every_state
        )
        super().__init__(url, self._dds, reconnect=reconnect, reports=reports, abilities=DDS)

    async def _on_connected(self) -> None:
        await super()._on_connected()
        topics = self._dds.topics
        # Only rote's own simulated robot listens there.
        self._has_scripted_hand = topics is not None and bool(topics.hand.matched)
        await self.reports.wait_for_hands()
        self.reports.set_joint_pace()

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
        if self.reports.arms.holding:
            raise RefusedError(Code.HOLDING, *m.explain(Code.HOLDING))
        busy = self.reports.arms.activity is not rpc.RpcActivity.IDLE
        if busy or self._streamer.phase is not None:
            raise RefusedError(Code.BUSY, *m.explain(Code.BUSY))
        following = tuple(self._find_hand_to_command(side) for side in command.hands)
        # The newest state may be older than the first report of a new hand.
        body_rad = state.joints_rad[: len(build.bare.joints)]
        fingers_rad = self.reports.fingers_rad
        self.reports.note_motion()
        self.stop_reason = ""
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
        if hand is None or side in self.reports.silent_hands:
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
        self.reports.note_stop()
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
