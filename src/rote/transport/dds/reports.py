"""Reports that arrive as DDS samples, including those of hands.

The robot publishes hundreds of states per second. Only fifty of them are taken, which is enough to
watch it, except while the robot records: then every state is taken.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from rote.messages import Phase, RobotState
from rote.model.family import Hand, attach_hands
from rote.model.registry import family_of
from rote.session.hand_readings import HandReadings
from rote.session.recognition import Identity
from rote.transport.base_client import notify_listeners
from rote.transport.dds.arm_streamer import ArmStreamer
from rote.transport.dds.connection import SPORT_TOPIC, DdsConnection
from rote.transport.services.reports import RobotReports
from rote.wire.dds import cdr
from rote.wire.dds import hands as dds_hands
from rote.wire.dds import lowlevel as dds_lowlevel
from rote.wire.services import rpc
from rote.wire.services.lowstate import BMS_TOPIC, JointColumns
from rote.wire.services.lowstate import SPORT_TOPIC as SLOW_SPORT_TOPIC

_REPORT_INTERVAL_MS = 20
"""Interval of reported states while the robot does not record: fifty per second."""
_MIN_INTERVAL_MS = _REPORT_INTERVAL_MS // 2
"""States that arrive earlier than this after the last one are not reported."""
_HANDS_S, _CHECK_S = 0.3, 0.02
"""Timeout for hands to report after the robot was connected, and the interval of the check."""


class DdsReports(RobotReports):
    """Decodes samples, and ends a stream if they show that it cannot continue."""

    def __init__(
        self,
        identity: Identity,
        connection: DdsConnection,
        streamer: ArmStreamer[Any],
        *,
        every_state: bool = False,
    ) -> None:
        """With `every_state` every state that the robot publishes is reported."""
        super().__init__(identity)
        self._connection, self._streamer, self._every_state = connection, streamer, every_state
        self._reported_ms = self._tick_ms = 0
        """The robot's times, in ms, of the last reported state and of the last one that arrived."""
        self._hands = HandReadings()
        self._hands_by_topic: dict[str, Hand] = {}
        self._expect_hands()
        connection.on_sample(self._on_sample)

    @property
    def abilities(self) -> frozenset[str]:
        """Abilities that the robot has because of what it reports: attached hands."""
        return frozenset({"hands"} if self._hands.attached else ())

    @property
    def silent_hands(self) -> tuple[str, ...]:
        """The sides of attached hands that no longer report."""
        return self._hands.find_silent_sides(self._loop.time())

    @property
    def fingers_rad(self) -> tuple[float, ...]:
        """The positions of the joints of all attached hands."""
        return self._hands.read(self._loop.time(), self._tick_ms / 1000).joints_rad

    def set_joint_pace(self) -> None:
        """Take every joint state if all are needed, otherwise fifty per second."""
        topics = self._connection.topics
        if topics is not None:
            topics.joints.pace(None if self._needs_every_state() else _REPORT_INTERVAL_MS / 1000)

    def _needs_every_state(self) -> bool:
        return self._every_state or self.teaching

    # ---- hands ----------------------------------------------------------------------------------

    def _expect_hands(self) -> None:
        """Subscribe to all hands that a robot of this family may have."""
        family = family_of(self.identity.build)
        possible = () if family is None else family.hands
        self._hands_by_topic = {hand.state_topic: hand for hand in possible}
        self._connection.subscribe_to_hands(possible)

    async def wait_for_hands(self) -> None:
        """Wait up to `_HANDS_S` until all hands on the bus have reported."""
        give_up_s = self._loop.time() + _HANDS_S
        while self._loop.time() < give_up_s and (topics := self._connection.topics) is not None:
            present = [hand for hand, inlet in topics.hands.items() if inlet.matched]
            if set(present) <= set(self._hands.attached):
                return
            await asyncio.sleep(_CHECK_S)

    def _read_hand(self, hand: Hand, data: bytes) -> None:
        reading, now = dds_hands.decode_state(data, hand), self._loop.time()
        is_new_hand = self._hands.add_report(hand, reading, now, self._tick_ms / 1000)
        if is_new_hand:
            self.build = attach_hands(self.identity.build, self._hands.attached)
        topics = self._connection.topics
        if topics is not None:
            topics.hand_writer(hand)  # so that its reader is found before a stream begins

    # ---- samples --------------------------------------------------------------------------------

    def _on_sample(self, topic: str, data: bytes) -> None:
        """Process what was published on a topic."""
        reader = _SAMPLE_READERS.get(topic)
        if reader is not None:
            reader(self, data)
        elif topic in self._hands_by_topic:
            self._read_hand(self._hands_by_topic[topic], data)

    def _read_lowstate(self, data: bytes) -> None:
        """Process a joint state, unless it follows too soon after the last one."""
        tick_ms, machine = dds_lowlevel.read_tick_and_machine(data)
        # A robot without a clock always sends the same number, mostly 0.
        has_clock = tick_ms > 0 and not self._ticks.update(tick_ms, self._loop.time())
        tick_ms = tick_ms if has_clock else int(self._loop.time() * 1000)
        self._tick_ms = tick_ms
        # After a restart of the robot its clock is behind.
        is_too_soon = 0 <= tick_ms - self._reported_ms < _MIN_INTERVAL_MS
        if self._needs_every_state() or not is_too_soon:
            self._reported_ms = tick_ms
            self._recognise_motors(machine, dds_lowlevel.MOTORS)
            joints = dds_lowlevel.decode_joints(data, self.identity.build)
            self._note_joints(joints if has_clock else joints._replace(tick_ms=None))

    def _read_mode(self, data: bytes) -> None:
        self.note_mode(cdr.decode_mode(data))

    def _read_battery(self, data: bytes) -> None:
        self._battery = cdr.decode_battery(data)

    def _read_arms(self, data: bytes) -> None:
        self.note_arms(rpc.decode_arm_state(cdr.decode_text(data)))
        self.set_joint_pace()
        released = self.arms.activity is rpc.RpcActivity.RELEASING
        if released and self._streamer.phase is not Phase.RETURN:
            self._streamer.stop("another client, or the robot itself, released the arms")

    def _read_audio(self, data: bytes) -> None:
        audio = rpc.decode_audio(cdr.decode_text(data))
        if audio is not None:
            notify_listeners(self._audio_listeners, audio, self._loop)

    def _on_build_changed(self) -> None:
        family = family_of(self.build)
        super()._on_build_changed()
        self._streamer.stop("the robot turned out to be another machine")
        if family is not family_of(self.build):
            self._hands.forget()
            self._expect_hands()
        self.build = attach_hands(self.build, self._hands.attached)

    # ---- states ---------------------------------------------------------------------------------

    def _append_hand_joints(self, state: RobotState) -> RobotState:
        """Return the state with the joints of the hands appended; end a stream to a silent hand."""
        now = self._loop.time()
        positions, velocities, celsius = self._hands.read(now, self._tick_ms / 1000)
        silent = self._hands.find_silent_sides(now)
        if lost := [hand.side for hand in self._streamer.hands if hand.side in silent]:
            self._streamer.stop(f"the {lost[0]} hand stopped reporting its positions")
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
                state = self._append_hand_joints(state)
            idle = self.arms.activity is rpc.RpcActivity.IDLE
            self._streamer.on_joints(state.joints_rad, measured.tick_ms, idle=idle)
        phase = self._streamer.phase
        if phase is None:
            return state
        return replace(state, phase=phase, stopped_early=self._stopped_early)


_SAMPLE_READERS: dict[str, Callable[[DdsReports, bytes], None]] = {
    dds_lowlevel.LOWSTATE_TOPIC: DdsReports._read_lowstate,
    SPORT_TOPIC: DdsReports._read_mode,
    SLOW_SPORT_TOPIC: DdsReports._read_mode,
    BMS_TOPIC: DdsReports._read_battery,
    rpc.ARM_STATE_TOPIC: DdsReports._read_arms,
    rpc.AUDIO_TOPIC: DdsReports._read_audio,
}
