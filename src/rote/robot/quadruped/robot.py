"""An A1 or Go1 quadruped, real or simulated: walk it, drive its joints, teach its legs by hand.

    async with rote.connect("a1://192.168.123.161") as robot:               # the walking controller
        robot.walk(0.3)
        await asyncio.sleep(2)
        await robot.stop()

    async with rote.connect("a1://192.168.123.10?level=low") as robot:      # the motors
        await robot.control(step)

Every command passes a `Safety`. If a protection trips, the robot is damped at once, for at least a
second; the running operation raises `ProtectionError`, and no command is accepted until `arm`.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rote.errors import (
    BadRequestError,
    ProtectionError,
    RefusedError,
    RoteError,
    TimeLimitError,
    UnsupportedError,
)
from rote.findings import Finding, FindingKind, Severity
from rote.messages import Code, Phase, RobotState, explain
from rote.model.a1 import A1 as A1_FAMILY
from rote.model.a1 import A1_BUILD, A1_JOINTS
from rote.model.family import Build, Family
from rote.motion.track import Track
from rote.platform.loop import to_the_end
from rote.robot.api_values import ModeReport, check_name, check_seconds
from rote.robot.quadruped import command_check
from rote.robot.quadruped import commands as a1_commands
from rote.robot.quadruped import motion as a1_motion
from rote.robot.quadruped.commands import Gait, HighMode
from rote.robot.quadruped.control import BRAKED, A1RobotClient, Control, State, Step, hold_position
from rote.robot.quadruped.loop import LoopStats
from rote.robot.quadruped.motion import LegMotion
from rote.robot.quadruped.playing import LegPlaying
from rote.robot.quadruped.safety import Safety
from rote.robot.quadruped.teaching import LegTeachingBackend
from rote.robot.state_feed import iterate_states
from rote.robot.streaming import Offload, TimedStart, TrackCheck, check_origin, check_rate
from rote.robot.take import Take
from rote.robot.teaching import Teaching
from rote.robot.unfinished import Unfinished
from rote.robot.unsupported import CannotRobot
from rote.session.a1 import Level, neutral
from rote.text import Act, Text
from rote.transport.a1.client import STALE_S
from rote.transport.base_client import add_listener
from rote.transport.wires import unsupported
from rote.wire.a1.motors import LEG_MOTORS, MotorCmds
from rote.wire.a1.values import Command, Dialect, HighState, LowCmd, LowState

if TYPE_CHECKING:
    from rote.motion.files.library import Library

MOTORS = {"teach": "be taught by hand", "stream": "play a motion", "control": "drive motors"}
"""Abilities that need the motors (the low level), with a text for each."""
_GET_UP_S = 5.0
_STATE_TIMEOUT_S = 0.5
"""Timeout for a state before an operation begins, in seconds."""
HOLDS_S = (0.01, 0.5)
"""Range of `hold_s`, after which a command expires, in seconds."""
UP_M = 0.2
"""A robot whose body is higher than this stands, in metres."""


@dataclass(frozen=True, slots=True)
class A1Status:
    """The state of an A1 at one moment, as text and in SI units."""

    level: str
    dialect: str
    mode: str
    height_m: float | None
    """The height of the body; not known at the motors' level."""
    place_m: tuple[float, float] | None
    roll_rad: float
    pitch_rad: float
    yaw_rad: float
    joints_rad: tuple[float, ...] | None
    hottest_c: int | None
    """The hottest motor."""
    battery_percent: int | None
    """Reported by a Go1 only."""
    trouble: str
    """Why commands are not accepted any more; empty if all is well."""


class _SentCommand:
    """The result of a command that was already sent; awaiting it waits for `until`, if given."""

    def __init__(
        self, report: ModeReport, until: Callable[[], Awaitable[object]] | None = None
    ) -> None:
        self._report = report
        self._until = until

    def __await__(self) -> Generator[Any, None, ModeReport]:
        if self._until is not None:
            yield from self._until().__await__()
        return self._report


class A1(CannotRobot):
    """One connected A1 or Go1. `rote.connect` returns it connected.

    Beside what all robots have (`rote.robot.robot.Robot`), an A1 walks, poses, and lets your
    function drive its motors. `native` and `native_states` are its states as it sends them. Every
    command may raise `ProtectionError` or `LinkError` while there is `trouble`, `UnsupportedError`
    at the wrong level, and `BadRequestError` for a number out of range.
    """

    _wire = "a1"

    def __init__(
        self,
        client: A1RobotClient,
        safety: Safety | None = None,
        close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`close` closes the connection and everything opened for it; default: `client.close`."""
        self._client = client
        self._close = client.close if close is None else close
        self._unfinished = Unfinished()
        self.safety: Safety = safety or Safety("go1" if client.dialect is Dialect.GO1 else "a1")
        """The safety checks; every command passes them."""
        self.trouble: RoteError | None = None
        """The tripped protection or the lost connection; no commands are accepted until `arm`."""
        self._control: Control | None = None
        self._playing: LegPlaying | None = None
        self._is_driven = self._is_soft = False
        self._commanded: MotorCmds | None = None
        """The current motor command while no control function runs."""
        self._is_held = False
        """Whether that command is the hold of a stop."""
        self._stops = 0
        """Number of stops: a request made before a stop must not begin after it."""
        self._stop_listeners: list[Callable[[], None]] = []
        client.on_state(self._on_state)
        client.on_trouble(self._set_trouble)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.build.name} at {self.url}>"

    @property
    def url(self) -> str:
        """The URL of the robot."""
        return self._client.url

    @property
    def level(self) -> Level:
        """What it is connected to: the walking controller (high) or the motors (low)."""
        return self._client.level

    @property
    def dialect(self) -> Dialect:
        """The robot's dialect. On the low level, which is the same for all A1, their newest."""
        return self._client.dialect

    @property
    def abilities(self) -> frozenset[str]:
        """What can be done at this level."""
        if self.level is Level.LOW:
            return frozenset({"states", "stop", "teach", "pause", "stream", "control"})
        # Dialect 3.2 has no command to lie down.
        lie = frozenset() if self.dialect is Dialect.A1_3_2 else frozenset({"lie"})
        return frozenset({"states", "stop", "walk", "pose", "mode"}) | lie

    @property
    def build(self) -> Build:
        """Which machine it is: its twelve joints."""
        return A1_BUILD

    @property
    def family(self) -> Family:
        """The A1 and Go1 quadrupeds."""
        return A1_FAMILY

    @property
    def native(self) -> State | None:
        """The newest state as the robot sent it: of its walking controller, or of its motors."""
        return self._client.latest

    @property
    def state(self) -> RobotState | None:
        """The newest state, in the form that all robots share."""
        native = self._client.latest
        return None if native is None else self._to_robot_state(native)

    def _to_robot_state(self, native: State) -> RobotState:
        motors, high = native.motors, native if isinstance(native, HighState) else None
        battery = None if native.bms is None else native.bms.charge_percent
        trouble = () if self.trouble is None else (str(self.trouble),)
        legs = slice(0, LEG_MOTORS)
        return RobotState(
            mode=-1 if high is None else high.mode,
            arms_soft=self._is_soft,
            recording=self._is_soft,
            phase=Phase.NONE if self._playing is None else self._playing.phase,
            joints_rad=() if motors is None else tuple(motors.q_rad[legs].tolist()),
            velocities_rad_s=() if motors is None else tuple(motors.dq_rad_s[legs].tolist()),
            accelerometer_m_s2=native.imu.accelerometer_m_s2,
            gyroscope_rad_s=native.imu.gyroscope_rad_s,
            foot_force_n=(),  # its units are not published
            time_us=native.tick or round(self._client.now() * 1e6),
            temperatures_c=()
            if motors is None
            else tuple(float(each) for each in motors.temperature_c[legs]),
            battery_percent=battery,
            faults=trouble,
        )

    def status(self) -> A1Status:
        """Return the newest state as an `A1Status`."""
        state = self._latest_state()
        high = state if isinstance(state, HighState) else None
        motors = state.motors
        roll, pitch, yaw = state.imu.rpy_rad
        return A1Status(
            level=self.level.value,
            dialect=self.dialect.value,
            mode="motors" if high is None else mode_text(high.mode),
            height_m=None if high is None else high.body_height_m,
            place_m=None if high is None else (high.position_m[0], high.position_m[1]),
            roll_rad=roll,
            pitch_rad=pitch,
            yaw_rad=yaw,
            joints_rad=None if motors is None else tuple(motors.q_rad[:LEG_MOTORS].tolist()),
            hottest_c=None if motors is None else int(motors.temperature_c[:LEG_MOTORS].max()),
            battery_percent=None if state.bms is None else state.bms.charge_percent,
            trouble="" if self.trouble is None else str(self.trouble),
        )

    def states(self) -> AsyncIterator[RobotState]:
        """Yield states as they arrive; raises `LinkError` when the robot is lost. A slow reader
        misses some.
        """
        return iterate_states(self.on_state, self._on_loss)

    def on_state(self, listener: Callable[[RobotState], object]) -> Callable[[], None]:
        """Call `listener` with every state. Return a function that removes it."""
        return self._client.on_state(lambda native: listener(self._to_robot_state(native)))

    def native_states(self) -> AsyncIterator[State]:
        """Yield states as the robot sends them; raises when it is lost. A slow reader
        misses some.
        """
        return iterate_states(self._client.on_state, self._on_loss)

    def on_native_state(self, listener: Callable[[State], object]) -> Callable[[], None]:
        """Call `listener` with every state as the robot sends it. Return a function that removes
        it.
        """
        return self._client.on_state(listener)

    def on_trouble(self, listener: Callable[[RoteError], object]) -> Callable[[], None]:
        """Call `listener` when a protection trips or the robot is lost. Return a function that
        removes it.
        """
        return self._client.on_trouble(listener)

    def on_stop(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` when the robot is stopped. Return a function that removes it."""
        return add_listener(self._stop_listeners, listener)

    # ---- any command ----------------------------------------------------------------------------

    def send_command(
        self, command: Command, *, hold_s: float | None = None, force: bool = False
    ) -> None:
        """Send exactly this `HighCmd` or `LowCmd` repeatedly, until another command.

        For everything without a method of its own: lights, foot height, a position to walk to, the
        fields of the remote. Every number is checked against its range and the robot's state; if
        one is not allowed, `BadRequestError` is raised and nothing is sent. `force` permits what is
        deliberately dangerous: flips and dances, letting a standing robot sink.

        With `hold_s` it may be called from any thread, and the command expires after that time: if
        no other command has arrived by then, a walking robot stands and driven motors brake.
        """
        is_low = isinstance(command, LowCmd)
        self._require_level(
            Level.LOW if is_low else Level.HIGH, f"be sent a {type(command).__name__}"
        )
        if hold_s is not None and not HOLDS_S[0] <= hold_s <= HOLDS_S[1]:
            raise BadRequestError(
                f"a command cannot hold for {hold_s} s",
                f"Choose {HOLDS_S[0]:g} to {HOLDS_S[1]:g} s.",
            )
        self._check_not_busy()
        self._ask(self._check_command(command, force=force), hold_s)

    def _check_command(self, command: Command, *, force: bool) -> Command:
        state = self._latest_state()
        if isinstance(command, LowCmd):
            assert isinstance(state, LowState)
            return command_check.check_low(command, self.dialect, self.safety, state)
        assert isinstance(state, HighState)
        place_m = (state.position_m[0], state.position_m[1])
        seen = command_check.ObservedState(place_m, is_down(state), stands(state))
        command_check.check_high(command, self.dialect, seen, force=force)
        return command

    # ---- always ---------------------------------------------------------------------------------

    async def stop(self) -> None:
        """Stop whatever is running. Always allowed, and safe to repeat.

        A walking robot stands. Driven legs hold the last measured position, and brake if they were
        driven by velocity or torque alone; legs that are being taught are
        braked. Nothing that was requested before a stop begins after it.
        """
        self._stops += 1
        for listener in tuple(self._stop_listeners):
            listener()
        if self._playing is not None:
            self._playing.give_up()
        if self._control is not None:
            self._control.stop()
        elif self.level is Level.HIGH and self.trouble is None:
            self._client.command(neutral(self.level, self.dialect))
            self._is_driven = False
        elif self._is_driven and not self._is_held:
            self._hold_legs()

    def _hold_legs(self) -> None:
        """Hold the legs at their measured position, or brake them if it is unknown."""
        state, motors = self._client.poll(), BRAKED
        is_fresh = self._client.now() - self._client.state_received_s <= STALE_S[self.level]
        if is_fresh and self._commanded is not None and isinstance(state, LowState):
            motors = hold_position(self._commanded, state.motors)
        self._client.command(LowCmd(motors=motors))
        self._commanded, self._is_held = motors, True

    def damp(self, *, yes: bool = False) -> Awaitable[ModeReport]:
        """Make the legs go limp softly, at once: all motors damp themselves. The robot sinks.

        This is the robot's emergency stop, so it never asks for confirmation: `yes` has no effect.

        The command is sent when this returns; there is no need to await it. The high level of
        dialect 3.2 has no such command; there the robot stands.
        """
        if self._playing is not None:
            self._playing.give_up()
        if self._control is not None:
            self._control.stop()
        self._client.trip()
        self._set_trouble(
            ProtectionError("stop", "damping was requested", "Call robot.arm() to go on.")
        )
        return _SentCommand(self._mode_report(HighMode.DAMP))

    def arm(self) -> None:
        """Accept commands again after a protection has tripped, once a person has looked at the
        robot.
        """
        self._client.arm()
        self.trouble = None
        self._is_driven = False
        self.safety.reset()

    # ---- the walking controller -----------------------------------------------------------------

    def walk(
        self,
        forward_m_s: float = 0.0,
        left_m_s: float = 0.0,
        turn_rad_s: float = 0.0,
        *,
        gait: Gait = Gait.TROT,
        body_height_m: float = 0.0,
        foot_raise_m: float = 0.0,
    ) -> None:
        """Walk at this speed until another command: forward, left, and turning left.

        `body_height_m` and `foot_raise_m` are relative to the usual heights. For a distance or an
        angle use `Bot`.
        """
        velocity = (forward_m_s, left_m_s, turn_rad_s)
        self._ask_high(
            a1_commands.walk_command(
                self.dialect,
                velocity,
                gait=gait,
                body_height_m=body_height_m,
                foot_raise_m=foot_raise_m,
            )
        )

    def pose(
        self,
        *,
        roll_rad: float = 0.0,
        pitch_rad: float = 0.0,
        yaw_rad: float = 0.0,
        body_height_m: float = 0.0,
    ) -> None:
        """Stand on the spot with the body turned (rad), lowered or raised (m), until another
        command.
        """
        self._ask_high(
            a1_commands.pose_command(
                self.dialect,
                roll_rad=roll_rad,
                pitch_rad=pitch_rad,
                yaw_rad=yaw_rad,
                body_height_m=body_height_m,
            )
        )

    async def mode(self) -> ModeReport:
        """Return the mode of the walking controller."""
        self._require_level(Level.HIGH, "report its mode")
        state = self._latest_state()
        assert isinstance(state, HighState)
        return self._mode_report(state.mode)

    def _mode_report(self, mode: int) -> ModeReport:
        return ModeReport.of(mode, self.family.modes)

    def stand(self) -> Awaitable[ModeReport]:
        """Stand upright on the spot. The command is sent when this returns.

        Awaiting it waits until the robot stands; a lying robot gets up.
        """
        self.pose()
        return _SentCommand(self._mode_report(HighMode.STAND), self._wait_until_up)

    async def _wait_until_up(self) -> None:
        state = self._latest_state()
        assert isinstance(state, HighState)
        if not stands(state):
            await self.get_up()

    def lie_down(self) -> Awaitable[ModeReport]:
        """Lie down; dialect 3.2 cannot. The command is sent when this returns."""
        self._ask_high(a1_commands.mode_command(self.dialect, HighMode.LIE_DOWN))
        return _SentCommand(self._mode_report(HighMode.LIE_DOWN))

    def rise(self) -> None:
        """Begin to get up; `get_up` also waits for it."""
        if self.dialect is not Dialect.A1_3_2:
            self._ask_high(a1_commands.mode_command(self.dialect, HighMode.GET_UP))
        else:
            self.stand()

    async def get_up(self) -> None:
        """Get up from lying or from damping; return when the robot stands.

        Raises `TimeLimitError` if it does not stand in time.
        """
        self.rise()
        try:
            async with asyncio.timeout(_GET_UP_S):
                async for state in self.native_states():
                    if isinstance(state, HighState) and state.body_height_m > UP_M:
                        break
        except TimeoutError:
            raise TimeLimitError(
                f"the robot did not get up within {_GET_UP_S:g} s",
                "See that nothing holds it, and that it lies on its belly.",
            ) from None
        self.stand()

    def _ask_high(self, command: Command) -> None:
        self._require_level(Level.HIGH, "walk or pose")
        self._ask(command)

    # ---- the motors -----------------------------------------------------------------------------

    def set_motors(self, motors: MotorCmds) -> None:
        """Command the motors until another command; for more than that use `control`."""
        self._require_level(Level.LOW, "drive motors")
        self._check_not_busy()
        self._ask(self._check_command(LowCmd(motors=motors), force=False))

    async def control(
        self,
        step: Step,
        *,
        period_s: float = 0.002,
        cpu: int | None = None,
        realtime: bool = False,
    ) -> LoopStats:
        """Let `step` drive the motors until it returns None: `step(state, seconds) -> MotorCmds`.

        It is called every `period_s` seconds in its own thread, on `cpu` and with real-time
        priority if requested. If it does not return a new command within 20 ms, raises, or returns
        an impossible command, the robot is damped and this raises `ProtectionError` or the
        function's own error. Return the statistics.
        """
        stats, _ = await self._run_control(step, period_s, cpu=cpu, realtime=realtime)
        return stats

    async def _run_control(
        self,
        step: Step,
        period_s: float = 0.002,
        *,
        cpu: int | None = None,
        realtime: bool = False,
        stops: int | None = None,
    ) -> tuple[LoopStats, bool]:
        """Run a control function, unless the robot was stopped since `stops` was read."""
        stops = self._stops if stops is None else stops
        self._require_level(Level.LOW, "drive motors")
        self._check_not_busy()
        await self._wait_for_state()
        self._check_not_busy()
        self._check_not_stopped_since(stops)
        commanded = self._commanded if self._is_driven else None
        self._control = Control(self._client, self.safety, step, period_s, commanded)
        self._is_driven = self._is_held = False
        try:
            ran = await self._control.run(cpu=cpu, realtime=realtime)
            self._is_driven = True
            self._commanded, self._is_held = self._control.last_motors, not ran[1]
            return ran
        except Exception as error:
            if isinstance(error, ProtectionError) and self.trouble is None:
                self._set_trouble(error)
            elif self.trouble is None:
                self._set_trouble(
                    ProtectionError("control", f"the control function raised {error!r}")
                )
            raise
        finally:
            self._control = None

    async def move_to(self, joints_rad: Sequence[float], seconds: float | None = None) -> LoopStats:
        """Move the legs softly to these twelve angles in rad, in `seconds` if given, and hold them
        there.
        """
        goal = np.asarray(joints_rad, dtype=float)
        if goal.shape != (LEG_MOTORS,) or not np.isfinite(goal).all():
            raise BadRequestError(f"a pose of an A1 is {LEG_MOTORS} finite angles in rad")
        for joint, angle in zip(A1_JOINTS, goal.tolist(), strict=True):
            low, high = self.safety.lower_rad[joint.index], self.safety.upper_rad[joint.index]
            if not low <= angle <= high:
                raise BadRequestError(
                    f"{joint.name} cannot go to {angle:g} rad", f"Choose {low:g} to {high:g} rad."
                )
        if seconds is not None:
            check_seconds(seconds, "a move")
        self._require_level(Level.LOW, "drive motors")
        a1_motion.check_move(self._legs(), goal, seconds)
        poses = np.vstack([a1_motion.plan_soft_move(self._legs(), goal, seconds), goal])
        motion = a1_motion.LegMotion("a move", poses, len(poses) - 1)
        motion_clock = a1_motion.MotionClock()
        stats, _ = await self._run_control(
            lambda _, time_s: motion.motors(motion_clock.at(time_s)), realtime=True
        )
        return stats

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
        """Teach a motion: the legs are soft inside the `async with` block, and braked after it.

        The robot must lie or hang: soft legs carry nothing, and `force` does not change that. An A1
        stores no motions, so the take is on this computer only; with a `library` it is on its disk
        while it is recorded. Arguments and errors are those of `Robot.teach`.
        """
        self._check_teach_arguments(name, overwrite=overwrite)
        if loop or compensation:
            self._raise_unsupported("be taught with a loop or compensation", "frames")
        self._check_not_busy()
        backend = LegTeachingBackend(
            self._client,
            self.safety,
            self._wait_for_state,
            self._make_legs_soft,
            self._end_softness,
            self._on_teaching_end,
        )
        take = Take(name, self.build, self._wire, self._pause)
        return Teaching(backend, take, library, self._unfinished)

    async def check_teachable(
        self, name: str, *, overwrite: bool = False, force: bool = False
    ) -> bool:
        """Raise what `teach` would raise, except that the legs may be taught right now. Return
        False: an A1 stores no actions, so none is replaced.
        """
        self._check_teach_arguments(name, overwrite=overwrite)
        self._check_not_busy(teaches=True)
        return False

    def _check_teach_arguments(self, name: str, *, overwrite: bool) -> None:
        self._require_level(Level.LOW, "be taught by hand")
        if overwrite:
            self._raise_unsupported("keep actions, so that none can be overwritten")
        check_name(name)

    async def _pause(self, paused: bool) -> None:
        """Do nothing: the take is on this computer only."""

    def play_track(
        self,
        track: Track,
        *,
        rate_hz: float = a1_motion.RATE_HZ,
        speed: float = 1.0,
        force: bool = False,
        mapped: bool = False,
        hands: bool = False,
        checked: TrackCheck | None = None,
        offload: Offload | None = None,
        at: float | TimedStart | None = None,
        imported: bool = False,
    ) -> LegPlaying:
        """Play a track of the twelve joints, and hold its last pose; `stop` ends it earlier.

        It is always checked, whatever `checked` says, and begins with a soft move from the current
        leg positions. Legs are always driven 500 times a second, and warnings do not prevent an A1
        from playing. `at` is when the motion itself begins, by the event loop's clock. A
        motion that others made needs `imported` on a real robot.
        """
        check_origin(track, self.url, imported=imported)
        check_rate(rate_hz)
        if hands:
            raise unsupported("play hands", self._wire, "hands")
        self.check_streamable()
        self._check_not_busy()
        ready, stops = None, self._stops
        if offload is None:
            ready = a1_motion.prepare(track, self.safety, self._legs().tolist(), speed)

        async def prepare() -> LegMotion:
            if ready is not None:
                return ready
            assert offload is not None
            even = await offload(a1_motion.check_and_sample, track, self.safety, speed)
            self._check_not_stopped_since(stops)
            return a1_motion.with_approach(track, even, self._legs().tolist())

        start = TimedStart(at) if isinstance(at, int | float) else at
        self._playing = LegPlaying(
            track.source or "a track",
            prepare,
            lambda step: self._run_control(step, realtime=True, stops=stops),
            self.stop,
            self._current_robot_state,
            start,
            lambda: self._legs().tolist(),
        )
        return self._playing.noted_in(self._unfinished)

    def _current_robot_state(self) -> RobotState:
        return self._to_robot_state(self._latest_state())

    async def describe(self) -> dict[str, Any]:
        """Return its dialect and level, and a summary of the newest state."""
        status = self.status()
        return {
            "dialect": status.dialect,
            "level": status.level,
            "mode": status.mode,
            "height_m": status.height_m,
            "battery_percent": status.battery_percent,
            "hottest_c": status.hottest_c,
        }

    async def preflight(self) -> list[Finding]:
        """Return what a person should know before the robot moves, the worst first."""
        found = findings(self)
        order = list(Severity)
        return sorted(found, key=lambda finding: order.index(finding.severity))

    def check_streamable(self) -> None:
        """Raise `UnsupportedError` if the walking controller drives the motors."""
        self._require_level(
            Level.LOW,
            "play a motion",
            "Let it lie or hang, and connect to its motors: level=low in its URL.",
        )

    def check_wanted(self, ability: str) -> None:
        """Raise `BadRequestError` if the robot stands and the ability needs its motors: it would
        sink.
        """
        native = self.native
        if ability in MOTORS and isinstance(native, HighState) and stands(native):
            raise standing_robot_error()

    async def close(self) -> None:
        """End what was begun over this connection, then close it. Safe to repeat.

        Legs that are being taught are braked, a playback stops. `async with rote.connect(...)`
        closes the connection by itself. Cancelling it does not interrupt it.
        """
        await to_the_end(self._end_and_close())

    async def _end_and_close(self) -> None:
        try:
            await self._unfinished.end()
        finally:
            await self._close()

    def _legs(self) -> "np.ndarray[tuple[int, ...], np.dtype[np.float64]]":
        state = self._latest_state()
        assert state.motors is not None
        return np.array(state.motors.q_rad[:LEG_MOTORS], dtype=np.float64)

    # ---- guarding -------------------------------------------------------------------------------

    def _ask(self, command: Command, hold_s: float | None = None, *, teaches: bool = False) -> None:
        self._check_not_busy(teaches=teaches)
        self._check_not_stale()
        self._client.command(command, hold_s)
        self._is_held = False
        self._is_driven = command != neutral(self.level, self.dialect)
        self._commanded = command.motors if isinstance(command, LowCmd) else None

    def _make_legs_soft(self, command: LowCmd) -> None:
        """Make the legs compliant. The command drives nothing, so no supervision is needed."""
        self._ask(command, teaches=True)
        self._is_driven, self._is_soft = False, True

    def _end_softness(self) -> None:
        self._is_soft = False

    def _check_not_busy(self, *, teaches: bool = False) -> None:
        if self.trouble is not None:
            raise self.trouble
        if self._control is not None:
            raise BadRequestError(
                "a control function drives the motors", "Stop it first: await robot.stop()."
            )
        if self._is_soft and not teaches:
            raise BadRequestError("the legs are being taught", "Leave the teaching first.")

    def _check_not_stopped_since(self, stops: int) -> None:
        if self._stops != stops:
            raise RefusedError(Code.SUPERSEDED, *explain(Code.SUPERSEDED))

    def _check_not_stale(self) -> None:
        """Raise `ProtectionError` if the newest state is stale."""
        self._client.poll()
        silence_s = self._client.now() - self._client.state_received_s
        if silence_s > STALE_S[self.level]:
            raise _stale_error(silence_s)

    async def _wait_for_state(self) -> None:
        """Wait for a new state; raise `ProtectionError` if none arrives in time."""
        try:
            async with asyncio.timeout(_STATE_TIMEOUT_S):
                async for _ in self.native_states():
                    return
        except TimeoutError:
            raise _stale_error(self._client.now() - self._client.state_received_s) from None

    def _on_state(self, state: State) -> None:
        # A control function is checked in its own loop. Soft legs may be anywhere.
        if self._control is not None:
            return
        try:
            if self._is_driven:
                self.safety.check(state, commanded=self._commanded)
            elif self._is_soft:
                self.safety.check_remote(state)
        except ProtectionError as error:
            self._client.trip()
            self._set_trouble(error)

    def _set_trouble(self, error: RoteError) -> None:
        if self.trouble is None:
            self.trouble = error
            self._is_driven = False
            for listener in tuple(self._stop_listeners):
                listener()

    def _on_teaching_end(self, listener: Callable[[RoteError], None]) -> Callable[[], None]:
        """Call `listener` with the error that ends a teaching: trouble, or a stop."""
        return self.on_stop(lambda: listener(self.trouble or _stopped_error()))

    def _on_loss(self, listener: Callable[[RoteError], None]) -> Callable[[], None]:
        """Call `listener` when the robot is lost; a tripped protection is no loss."""

        def on_trouble(error: RoteError) -> None:
            if not isinstance(error, ProtectionError):
                listener(error)

        return self._client.on_trouble(on_trouble)

    def _latest_state(self) -> State:
        assert self._client.latest is not None, "a connected robot has sent a state"
        return self._client.latest

    def _require_level(self, level: Level, what: str, remedy: str = "") -> None:
        if self.level is not level:
            required, here = (
                f"a1://...?level={level.value}",
                f"a1:// at the {self.level.value} level",
            )
            raise UnsupportedError(what, here, (required,), remedy)


def _stale_error(silence_s: float) -> ProtectionError:
    return ProtectionError(
        "stale",
        f"no state came for {1000 * silence_s:.0f} ms, so nothing is begun",
        "Look at the robot and the network between, then try again.",
    )


def _stopped_error() -> RefusedError:
    return RefusedError(
        Code.NOT_TEACHING,
        "the teaching was ended by a stop",
        "Use what was recorded until then, or teach again.",
    )


def is_down(state: HighState) -> bool:
    """Whether the walking controller reports that it lies, or that its legs are soft."""
    return state.mode in (HighMode.LIE_DOWN, HighMode.DAMP)


def stands(state: HighState) -> bool:
    """Whether the walking controller carries the robot on its feet."""
    return not is_down(state) and state.body_height_m > UP_M


def standing_robot_error(remedy: str = "") -> BadRequestError:
    """Return the error for taking over the motors of a standing robot."""
    return BadRequestError(
        "the robot stands, and would sink if its motors were taken over",
        remedy
        or Text(
            "Lay it down first: {lie}. A hanging one too: its legs must be soft.",
            lie=Act.LIE_DOWN,
        ),
    )


def mode_text(mode: int) -> str:
    """Return a mode of the walking controller as text."""
    try:
        return HighMode(mode).name.lower().replace("_", " ")
    except ValueError:
        return f"mode {mode:d}"


_LOW_PERCENT = 20


def findings(robot: A1) -> list[Finding]:
    """Return the reasons not to move an A1 or Go1."""
    status, native, found = robot.status(), robot.native, []
    if isinstance(native, HighState) and is_down(native):
        message = "the robot lies or hangs: it walks once it has got up"
        remedy = Text("Let it get up: {get_up}.", get_up=Act.GET_UP)
        found.append(Finding(Severity.NOTE, message, remedy, kind=FindingKind.MODE))
    if status.battery_percent is not None and status.battery_percent < _LOW_PERCENT:
        message = f"the battery has {status.battery_percent} %"
        found.append(
            Finding(Severity.WARNING, message, "Charge it first.", kind=FindingKind.BATTERY)
        )
    hottest, most = status.hottest_c, robot.safety.limits.temperature_c
    if hottest is not None and most is not None and hottest > most:
        message = f"a motor has {hottest} °C, and a protection trips above {most:g} °C"
        cool = "Let the robot lie and cool down."
        found.append(Finding(Severity.ERROR, message, cool, kind=FindingKind.TEMPERATURE))
    elif (trouble := robot.trouble) is not None:
        found.append(Finding(Severity.ERROR, trouble.text, trouble.remedy, kind=FindingKind.FAULT))
    return found
