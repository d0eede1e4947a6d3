"""What a robot reports about itself, as states in the joint order of its build."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from rote.messages import Phase, RobotState
from rote.session.recognition import Identity
from rote.session.teaching import ClockWatch
from rote.transport.base_client import AudioListener, StateFeed, StateListener, add_listener
from rote.wire.services import faults as wire_faults
from rote.wire.services import rpc
from rote.wire.services.lowstate import JointColumns

JOINTS_OLD_S = 2.5
"""Positions older than this are marked as not measured: a robot silent for this long counts as
lost.
"""
ARMS_OLD_S = 3.0
"""The robot reports its arm state ten times per second; an older report is not used."""
_FRESH_S = 0.15
"""Joint reports newer than this arrive many times per second; states are then made from them."""
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
        self.mode = -1
        self.clockless = False
        """Whether the robot reports no time, so that states have this computer's time."""
        self._loop = asyncio.get_running_loop()
        self._states = StateFeed()
        self._audio_listeners: list[AudioListener] = []
        self._motors_reported = asyncio.Event()
        self._ticks = ClockWatch()
        self._arms_at: float | None = None
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
        idle = state is not None and state.phase in (Phase.NONE, Phase.RETURN)
        return state is not None and idle and state.phase_told and not state.recording

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
        self.mode = mode
        if self.identity.on_mode(mode):
            self._on_build_changed()

    def note_arms(self, arms: rpc.ArmState) -> None:
        """Process the arm state; if the robot reports no joints, publish a state from it."""
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
        """Note that a motion was requested, which no stop has ended yet."""
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
        """Called when the robot turns out to be a different build."""
        self.build = self.identity.build

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

    def _time_us(self, joints: JointColumns | None, now: float) -> int:
        """Return the robot's clock, or this computer's if the robot reports none that advances."""
        if joints is not None:
            self.clockless |= joints.tick_ms is None or self._ticks.update(joints.tick_ms, now)
        last = joints or self._joints
        if self.clockless or last is None or last.tick_ms is None:
            return int(now * 1e6)
        return last.tick_ms * 1000 + (0 if joints is last else int((now - self._joints_at) * 1e6))

    def _make_state(self, measured: JointColumns | None) -> RobotState:
        """Return the current state; `measured` are joints that were just reported, if any."""
        now = self._loop.time()
        time_us = self._time_us(measured, now)
        if measured is not None:
            self._joints, self._joints_at = measured, now
        elif now - self._joints_at > JOINTS_OLD_S:
            self._joints = None
        joints = self._joints or _NO_JOINTS
        recording = self.teaching
        holding = self.arms.holding
        return RobotState(
            mode=self.mode,
            arms_soft=recording,
            recording=recording,
            phase=Phase.NONE if holding else _PHASES.get(self.arms.activity, Phase.NONE),
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
            joints_told=measured is not None,
            phase_told=self._arms_at is not None and now - self._arms_at <= ARMS_OLD_S,
        )
