"""A client of the robot's services on DDS: the same requests as over WebRTC, and streamed arms."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

from rote import messages as m
from rote.errors import CautionError, LinkError, NoAnswerError, RefusedError
from rote.messages import Code
from rote.model.family import Build, Hand
from rote.model.registry import modes_of
from rote.platform.loop import to_the_end
from rote.session.arm_stream import ArmSetpoint
from rote.session.recognition import Identity
from rote.session.rpc import ChannelTiming
from rote.transport.base_client import ThreadSafeSender
from rote.transport.dds.arm_streamer import ArmStreamer
from rote.transport.dds.connection import DdsConnection
from rote.transport.dds.guardian import Guardian, can_guard, encode_hands
from rote.transport.dds.participant import DdsTarget, Outlet
from rote.transport.dds.reports import DdsReports
from rote.transport.services.client import ServicesClient
from rote.transport.tap import Tap
from rote.transport.wires import DDS
from rote.wire.dds import lowlevel as dds_lowlevel
from rote.wire.services import rpc

_log = logging.getLogger("rote")

VERSION_API = 1
"""The id of the request by which every service reports the version of its interface."""
_PROBE_AFTER_S = 1.0
"""After this silence, a request tests whether the robot is alive. A robot that publishes does so
hundreds of times per second, and one that is silent for 2.5 s counts as lost.
"""
_PROBES = (rpc.CHECK_MODE, rpc.GET_FSM, rpc.LIST_ACTIONS)
"""Probe requests: reads that every robot answers, at least with a refusal."""
_CHECK_S = 0.02
"""Interval of the check whether the robot has sent a message after a stop."""


class _EncodedSetpoint(NamedTuple):
    """One setpoint of a stream, with the samples to write for it."""

    setpoint: ArmSetpoint
    arms: bytes
    hands: tuple[tuple[Outlet, bytes], ...] = ()
    """For each hand, its writer and the sample."""


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
            self._encode_setpoints, self._write_setpoint, self._note_stop, self._get_arm_readers
        )
        self.dds = DdsConnection(
            target, timing, before_close=self._streamer.wait_until_released, tap=tap
        )
        self.guardian: Guardian | None = None
        reports = DdsReports(
            Identity(target.build), self.dds, self._streamer, every_state=every_state
        )
        super().__init__(url, self.dds, reconnect=reconnect, reports=reports, abilities=DDS)

    async def _on_connected(self) -> None:
        await super()._on_connected()
        topics = self.dds.topics
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
            guardian, self.guardian = self.guardian, None
            if guardian is not None:
                await to_the_end(guardian.close())

    def _before_loss(self) -> None:
        self._streamer.fade()
        super()._before_loss()

    async def version(self, service: str) -> str:
        """Return the interface version that a service reports."""
        return (await self.call(rpc.Call(service, VERSION_API), read=True)).text

    async def list_running_services(self) -> frozenset[str]:
        """Return the names of the robot's processes that run behind its services."""
        answer = await self.call(rpc.LIST_SERVICES, read=True)
        return rpc.decode_running_services(answer.text)

    def _on_pulse(self) -> None:
        """Probe a robot that publishes nothing: an answer shows that it is alive."""
        super()._on_pulse()
        topics, session = self.dds.topics, self.dds.session
        if topics is None or session.silent_s(self.connection.now()) < _PROBE_AFTER_S:
            return
        probe = next((call for call in _PROBES if topics.offers(call.service)), None)
        if probe is not None:
            session.request(probe, self.connection.now())
            self.connection.flush()

    # ---- streaming ------------------------------------------------------------------------------

    async def ask(self, command: m.Command) -> m.Reply:
        """Carry out a command by the services, or by the stream."""
        if isinstance(command, m.BeginStream):
            await self._modes.refresh_mode()
            return self._begin_stream(command)
        if isinstance(command, m.StopMotion) and self._streamer.phase is not None:
            self._streamer.stop("a stop was requested")
            if self.connection.failure is None:
                return await self.connection.confirm_stop(self._confirm_release())
        return await super().ask(command)

    async def _confirm_release(self) -> m.Reply:
        """Wait for a message from the robot, or raise `LinkError` once it counts as lost.

        The setpoints that release the arms have no answer, and a silent robot may not receive them.
        """
        session, now = self.session, self.connection.now
        requested_at = now()
        while self.session is session and self.connection.failure is None:
            has_reported_since = self.dds.session.silent_s(now()) < now() - requested_at
            if has_reported_since:
                return m.Status()
            await asyncio.sleep(_CHECK_S)
        raise self.connection.failure or NoAnswerError(
            "the stop was sent, but the robot was lost before it sent another message",
            "Look at the robot; if it moves, use its remote: L2+B.",
        )

    def _begin_stream(self, command: m.BeginStream) -> m.Reply:
        """Begin a stream; raise `RoteError` if the robot cannot follow one now."""
        topics, state, build = self.dds.topics, self.latest, self.build
        if self.connection.failure is not None:
            raise self.connection.failure
        if topics is None or state is None or not state.has_joints:
            raise self._make_no_reader_error()
        if problem := self.identity.find_stream_problem():
            raise CautionError(*problem)
        if not topics.arms.matched:
            raise self._make_no_reader_error()
        if not modes_of(build).balanced(state.mode):
            raise RefusedError(Code.WRONG_STATE, *m.explain(Code.WRONG_STATE))
        if self.reports.arms.holding:
            raise RefusedError(Code.HOLDING, *m.explain(Code.HOLDING))
        busy = self.reports.arms.activity is not rpc.RpcActivity.IDLE
        if busy or self._streamer.phase is not None:
            raise RefusedError(Code.BUSY, *m.explain(Code.BUSY))
        streamed_hands = tuple(self._find_hand_to_command(side) for side in command.hands)
        # The newest state may be older than the first report of a new hand.
        body_rad = state.joints_rad[: len(build.bare.joints)]
        fingers_rad = self.reports.fingers_rad
        self.reports.note_motion()
        self.stop_reason = ""
        self._start_guardian(build, streamed_hands)
        self._streamer.begin(body_rad + fingers_rad, build, streamed_hands)
        return m.Status()

    def _start_guardian(self, build: Build, streamed_hands: tuple[Hand, ...]) -> None:
        """Let a guardian process release the arms of this stream if this program is killed.

        A system that cannot run the process streams without it.
        """
        if self.guardian is not None and not self.guardian.is_running:
            _log.warning("the process that guards streams has ended; another one is started")
            self.guardian.abandon()
            self.guardian = None
        if self.guardian is None and can_guard(self._loop):
            try:
                self.guardian = Guardian(self.dds.target)
            except OSError as error:
                _log.warning(
                    "the process that releases the arms if this program is killed cannot be "
                    "started: %s",
                    error,
                )
        if self.guardian is not None:
            self.guardian.begin(build, streamed_hands, self.identity.machine)

    def _find_hand_to_command(self, side: str) -> Hand:
        """Return the hand of a side that can be streamed to, or raise why it cannot."""
        hand = next((hand for hand in self.build.hands if hand.side == side), None)
        if hand is None or side in self.reports.silent_hands:
            problem = "the robot reports no" if hand is None else "the robot no longer reports its"
            raise NoAnswerError(f"{problem} {side} hand", "Play the motion without the hands.")
        if self.dds.topics is None or not self.dds.topics.hand_writer(hand).matched:
            raise NoAnswerError(
                f"no program on the robot reads {hand.command_topic}",
                "The hand reports but takes no commands. Check its service on the robot, or "
                "play without the hands.",
            )
        return hand

    def _make_no_reader_error(self) -> NoAnswerError:
        topics = self.dds.topics
        problem = f"no program on the robot reads {dds_lowlevel.ARM_SDK_TOPIC}"
        if (
            topics is not None
            and dds_lowlevel.OLD_ARM_SDK_TOPIC in topics.bus.discovered_topics()[1]
        ):
            return NoAnswerError(
                f"{problem}; it has {dds_lowlevel.OLD_ARM_SDK_TOPIC}, the name in older software",
                "Update the robot to stream motions, or teach and play them with the arm service.",
            )
        return NoAnswerError(problem, "Make the robot stand balanced, and leave debug mode.")

    def ready(self, poses: Sequence[m.StreamPose]) -> Callable[[int], bool]:
        """Prepare the poses of the stream that was begun, and return a function that sends one by
        its index.

        The function sends nothing and returns False once the stream has ended.
        """
        return ThreadSafeSender(self._streamer.prepare_poses(poses))

    def _note_stop(self, reason: str) -> None:
        self.reports.note_stop()
        self.stop_reason = reason

    def _encode_setpoints(
        self, setpoints: Sequence[ArmSetpoint], build: Build, streamed_hands: tuple[Hand, ...]
    ) -> list[_EncodedSetpoint]:
        """Encode setpoints for writing; called from any thread."""
        topics = self.dds.topics
        arms = dds_lowlevel.encode_arm_commands(
            [setpoint.joints_rad for setpoint in setpoints],
            [setpoint.weight for setpoint in setpoints],
            build=build,
            mode_machine=self.identity.machine,
        )
        if not streamed_hands or topics is None:
            return [_EncodedSetpoint(*pair) for pair in zip(setpoints, arms, strict=True)]
        outlets = [topics.hand_writer(hand) for hand in streamed_hands]
        encoded = []
        for arms_sample, setpoint in zip(arms, setpoints, strict=True):
            hand_samples = encode_hands(setpoint, streamed_hands)
            hands = tuple(zip(outlets, hand_samples, strict=True))
            encoded.append(_EncodedSetpoint(setpoint, arms_sample, hands))
        return encoded

    def _get_arm_readers(self) -> frozenset[int]:
        """Return the handles of all readers of arm setpoints."""
        topics = self.dds.topics
        return frozenset() if topics is None else topics.arms.readers()

    def _write_setpoint(self, encoded: _EncodedSetpoint) -> None:
        """Write an encoded setpoint; called from any thread."""
        topics = self.dds.topics
        if topics is None:
            return
        if self.guardian is not None:
            self.guardian.note(encoded.setpoint)
        try:
            topics.arms.write(encoded.arms)
        except LinkError:
            self.session.dropped["arm command"] += 1
        for outlet, sample in encoded.hands:
            try:
                outlet.write(sample)
            except LinkError:
                self.session.dropped["hand command"] += 1
