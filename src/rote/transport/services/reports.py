"""What a robot reports about itself, as states in the joint order of its build."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from rote.messages import UNREPORTED_MODE, Phase, RobotState
from rote.model.family import Build
from rote.model.registry import family_of
from rote.session.recognition import Identity
from rote.session.teaching import ClockWatch
from rote.transport.base_client import AudioListener, StateFeed, StateListener, add_listener
from rote.transport.services.connection import RpcConnection
from rote.wire.services import faults as wire_faults
from rote.wire.services import rpc
from rote.wire.services.lowstate import (
    BMS_TOPIC,
    LOWSTATE_TOPIC,
    SPORT_TOPIC,
    JointColumns,
    decode_battery,
    decode_fsm,
    decode_lowstate,
    select_joints,
)
from rote.wire.webrtc import channel

JOINTS_OLD_S = 2.5
"""States omit positions older than this: a robot silent for this long counts as lost."""
ARMS_OLD_S = 3.0
"""An arm state older than this is ignored. A G1 reports its arm state ten times per second."""
_ARM_PERIODS = 2.5
"""For a family that reports arm states rarely, the maximum age in periods of these reports."""
MODE_OLD_S = 3.0
"""A mode that was reported longer ago than this counts as unknown: in some modes an R1 reports
none, and a person may have changed it by the remote.
"""
_FRESH_S = 0.15
"""If the newest joint report is younger than this, reports of joints arrive often enough that no
other report needs a state of its own.
"""
_RECOGNISE_S = 1.0
"""Timeout for a newly connected robot to report which machine it is."""

_PHASES = {
    rpc.RpcActivity.PLAYING: Phase.PLAYING,
    rpc.RpcActivity.PRESET: Phase.PLAYING,
    rpc.RpcActivity.RELEASING: Phase.RETURN,
}
_NO_JOINTS = JointColumns(None, (), (), (), ())


class RobotReports:
    """The newest reports of one robot, and the states made from them."""

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        self.build = identity.build
        """Which robot it is. Before it has reported its joints: the named build, or the
        default G1.
        """
        self.latest: RobotState | None = None
        """The newest state of the robot."""
        self.arms = rpc.ArmState()
        self.clockless = False
        """Whether the robot reports no time, so that states have this computer's time."""
        self._loop = asyncio.get_running_loop()
        self._states = StateFeed()
        self._audio_listeners: list[AudioListener] = []
        self._motors_reported = asyncio.Event()
        self._ticks = ClockWatch()
        self._mode, self._mode_at = UNREPORTED_MODE, 0.0
        self._arms_at: float | None = None
        self._arms_old_s = _compute_arms_old_s(self.build)
        self._joints: JointColumns | None = None
        self._joints_at = self._published_at = 0.0
        self._battery: float | None = None
        self._faults: dict[tuple[int, int], str] = {}
        self._stopped_early = False

    @property
    def abilities(self) -> frozenset[str]:
        """Abilities that the robot has because of what it reports."""
        return frozenset()

    @property
    def mode(self) -> int:
        """The mode of the robot's controller; -1 if it was not reported lately."""
        is_recent = self._loop.time() - self._mode_at <= MODE_OLD_S
        return self._mode if is_recent else UNREPORTED_MODE

    @property
    def arms_known(self) -> bool:
        """Whether the robot has reported its arm state since it was connected."""
        return self._arms_at is not None

    @property
    def teaching(self) -> bool:
        """Whether the robot reports that it records with soft arms."""
        return self.arms.activity is rpc.RpcActivity.RECORDING

    @property
    def idle(self) -> bool:
        """Whether the robot reported that its arms neither play nor record."""
        state = self.latest
        if state is None:
            return False
        idle = state.phase in (Phase.NONE, Phase.RETURN)
        return idle and state.has_phase and not state.recording

    def on_state(self, listener: StateListener) -> Callable[[], None]:
        """Call `listener` with every state. Return a function that removes it."""
        return self._states.on_state(listener)

    def on_audio(self, listener: AudioListener) -> Callable[[], None]:
        """Call `listener` with recognised speech, and when a sound begins and ends.

        Return a function that removes it.
        """
        return add_listener(self._audio_listeners, listener)

    async def wait_until(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Wait at most `seconds` until `condition()` is true; return whether it is."""
        state_arrived = asyncio.Event()
        remove_listener = self.on_state(lambda _: state_arrived.set())
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    while not condition():
                        state_arrived.clear()
                        await state_arrived.wait()
        finally:
            remove_listener()
        return condition()

    async def wait_for_recognition(self) -> None:
        """Wait until the robot has reported its joints, which many do within milliseconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_RECOGNISE_S):
                await self._motors_reported.wait()

    # ---- reports --------------------------------------------------------------------------------

    def note_mode(self, mode: int) -> None:
        """Process the mode of the robot's controller."""
        self._mode, self._mode_at = mode, self._loop.time()
        if self.identity.on_mode(mode):
            self._on_build_changed()

    def note_arms(self, arms: rpc.ArmState) -> None:
        """Process the arm state, and publish a state unless a joint report will do so soon."""
        now = self._loop.time()
        self.arms, self._arms_at = arms, now
        if now - self._joints_at > _FRESH_S:
            self.publish_state()

    def forget_arms(self) -> None:
        """Forget the arm state, which is unknown after a loss."""
        self.arms, self._arms_at = rpc.ArmState(), None

    def note_faults(self, faults: wire_faults.Faults) -> None:
        """Process faults that the robot reports."""
        if faults.change is wire_faults.Change.ALL:
            self._faults.clear()
        for fault in faults.faults:
            if faults.change is wire_faults.Change.REMOVED:
                self._faults.pop((fault.source, fault.code), None)
            else:
                self._faults[fault.source, fault.code] = fault.message

    def note_motion(self) -> None:
        """Note that a motion was requested: states no longer report that one stopped early."""
        self._stopped_early = False

    def note_stop(self) -> None:
        """Note that a stop was requested; states report the motion as stopped early."""
        self._stopped_early = True

    def _recognise_motors(self, machine: int, slots: int) -> None:
        """Process the machine number, and the number of motor slots in the report."""
        if self.identity.on_motors(machine, slots):
            self._on_build_changed()
        self._motors_reported.set()

    def _note_joints(self, joints: JointColumns) -> None:
        """Process joints in the order of the build, and publish a state."""
        self.identity.on_missing_columns(joints.missing)
        self.publish_state(joints)

    def _on_build_changed(self) -> None:
        """Adopt the recognised build; called when the robot turns out to be a different one."""
        self.build = self.identity.build
        self._arms_old_s = _compute_arms_old_s(self.build)

    # ---- states ---------------------------------------------------------------------------------

    def publish_state(self, measured: JointColumns | None = None) -> None:
        """Make a state and notify the listeners; `measured` are joints that were just reported."""
        self.latest = self._make_state(measured)
        self._published_at = self._loop.time()
        self._states.notify(self.latest)

    def publish_if_older(self, seconds: float) -> None:
        """Publish a state if the last one was published at least `seconds` ago."""
        if self._loop.time() - self._published_at >= seconds:
            self.publish_state()

    def _compute_state_time_us(self, joints: JointColumns | None, now: float) -> int:
        """Return the time of a state by the robot's clock, or by this computer's if the robot
        reports no clock that advances. Without new `joints`, extrapolate from the last ones.
        """
        if joints is not None:
            self.clockless |= joints.tick_ms is None or self._ticks.update(joints.tick_ms, now)
        last = joints or self._joints
        if self.clockless or last is None or last.tick_ms is None:
            return int(now * 1e6)
        age_s = 0.0 if joints is last else now - self._joints_at
        return last.tick_ms * 1000 + int(age_s * 1e6)

    def _make_state(self, measured: JointColumns | None) -> RobotState:
        """Return the current state; `measured` are joints that were just reported, if any."""
        now = self._loop.time()
        time_us = self._compute_state_time_us(measured, now)
        if measured is not None:
            self._joints, self._joints_at = measured, now
        elif now - self._joints_at > JOINTS_OLD_S:
            self._joints = None
        joints = self._joints or _NO_JOINTS
        recording = self.teaching
        holding = self.arms.holding
        # While the arms hold the last pose of a preset, nothing plays.
        phase = Phase.NONE if holding else _PHASES.get(self.arms.activity, Phase.NONE)
        return RobotState(
            mode=self.mode,
            arms_soft=recording,
            recording=recording,
            phase=phase,
            stopped_early=self._stopped_early,
            joints_rad=joints.joints_rad,
            velocities_rad_s=joints.velocities_rad_s,
            accelerometer_m_s2=joints.accelerometer_m_s2,
            gyroscope_rad_s=joints.gyroscope_rad_s,
            foot_force_n=(),
            time_us=time_us,
            temperatures_c=joints.temperatures_c,
            battery_percent=self._battery,
            faults=tuple(self._faults.values()),
            holding=holding,
            has_joints=measured is not None,
            has_phase=self._arms_at is not None and now - self._arms_at <= self._arms_old_s,
        )


def _compute_arms_old_s(build: Build) -> float:
    """Return the age in seconds from which an arm state of this build is ignored."""
    family = family_of(build)
    return ARMS_OLD_S if family is None else max(ARMS_OLD_S, _ARM_PERIODS * family.arm_state_s)


class ChannelReports(RobotReports):
    """Decodes messages of a data channel."""

    def __init__(self, identity: Identity, connection: RpcConnection) -> None:
        super().__init__(identity)
        connection.on_faults(self.note_faults)
        connection.on_topic(LOWSTATE_TOPIC, self._on_joints)
        connection.on_topic(SPORT_TOPIC, self._on_mode)
        connection.on_topic(rpc.ARM_STATE_TOPIC, self._on_arm_state)
        connection.on_topic(BMS_TOPIC, self._on_battery)

    def _on_joints(self, message: channel.ChannelMessage) -> None:
        slots = decode_lowstate(message.data)
        self._recognise_motors(slots.mode_machine, len(slots.joints_rad))
        self._note_joints(select_joints(slots, self.build))

    def _on_mode(self, message: channel.ChannelMessage) -> None:
        self.note_mode(decode_fsm(message.data))

    def _on_arm_state(self, message: channel.ChannelMessage) -> None:
        data = message.data
        self.note_arms(
            rpc.decode_arm_state(data) if isinstance(data, str) else rpc.read_arm_state(data)
        )

    def _on_battery(self, message: channel.ChannelMessage) -> None:
        self._battery = decode_battery(message.data)
