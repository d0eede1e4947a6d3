"""A simulated A1 or Go1 as a whole: it obeys commands, moves in time, and reports its state.

It has no sockets; the caller advances its clock. One level drives it at a time: the first to send
commands keeps control until it has been silent for long; the other is answered but not obeyed.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from rote.errors import BadRequestError
from rote.session.a1 import Level
from rote.sim.core import SimNotice
from rote.sim.quadruped.body import BRAKE_NM_S_RAD, LIMP, STEP_S, Drive, LegHand, QuadrupedBody
from rote.sim.quadruped.faults import A1Health
from rote.sim.quadruped.legs import (
    A1_BUILD,
    GO1_BUILD,
    GRAVITY_M_S2,
    JOINTS,
    Three,
    quaternion,
    rotation_rows,
    wrap_angle,
)
from rote.sim.quadruped.walker import HEIGHT_M, LIE_RAD, Posture, Stepper, Walker, walk_goal_from
from rote.wire.a1 import codec as wire
from rote.wire.a1 import values as a1_values
from rote.wire.a1.motors import POSITION_OFF_RAD, SERVO, VELOCITY_OFF_RAD_S, MotorState, MotorStates
from rote.wire.a1.values import (
    SOFT_STOP,
    AnyHeader,
    BmsState,
    Cartesian,
    Dialect,
    Go1Header,
    Header,
    HighState,
    Imu,
    LowCmd,
    LowState,
    Remote,
)

REST_STEPS, _STILL_RAD_S = 500, 0.005
"""After this many steps without a driver and without a faster joint, the body is not simulated."""
HEALTH_EVERY = 50
"""Steps between two updates of battery and motors: 10 Hz."""
LOW_FLAG, HIGH_FLAG, GO1_HIGH_FLAG = 0xFF, 0x00, 0xEE
"""The level flag in the header of a frame."""
OVERHEATED = 0x08
"""The mode that an overheated motor reports, by a public report."""
_HEAT_CODE = 4
"""The error code that it reports."""
STARTS = ("stand", "lie", "damp", "hung")
"""How a robot may start; `hung` means on a rope, with its feet in the air."""


class A1World:
    """One simulated A1, or Go1 if that is its dialect."""

    def __init__(
        self, *, dialect: Dialect = Dialect.A1_3_3_4, seed: int = 0, start: str = "stand"
    ) -> None:
        if start not in STARTS:
            raise BadRequestError(f"an A1 cannot start in {start!r}", f"Use: {', '.join(STARTS)}.")
        self.dialect = dialect
        self.is_go1 = dialect is Dialect.GO1
        build = GO1_BUILD if self.is_go1 else A1_BUILD
        standing = Stepper(build).compute_joints(HEIGHT_M, (0.0, 0.0, 0.0))
        self.body = QuadrupedBody(
            build, LIE_RAD if start == "lie" else standing, hung=start == "hung"
        )
        posture = {"stand": Posture.STANDING, "lie": Posture.LYING}.get(start, Posture.DAMPED)
        self.walker = Walker(self.body, old=dialect is Dialect.A1_3_2, posture=posture)
        self.health = A1Health(build)
        self.driver: Level | None = None
        """The level that drives the robot now."""
        self.time_s = 0.0
        self.remote = Remote()
        """The state of the wireless remote; L2 and B together make the legs go limp."""
        self.notices: list[SimNotice] = []
        """The newest hundred; the code that shows them clears the list."""
        self.ignored = 0
        """Number of commands that were valid but not obeyed."""
        self._low = LIMP
        self._modes = [SERVO] * JOINTS
        self._random = np.random.default_rng(seed)
        self._steps = self._idle_steps = 0
        self._noted: set[str] = set()

    # ---- time -----------------------------------------------------------------------------------

    def advance(self, seconds: float) -> None:
        """Advance time by `seconds`."""
        for _ in range(round(seconds / STEP_S)):
            self.step()

    def step(self) -> None:
        """Advance by `STEP_S`."""
        self._steps += 1
        self.time_s = self._steps * STEP_S
        if self._steps % HEALTH_EVERY == 0:
            for message in self.health.advance(
                self.time_s, HEALTH_EVERY * STEP_S, self.body.torque_nm
            ):
                self.note(message)
        if self.remote.buttons & SOFT_STOP == SOFT_STOP:
            self._apply_soft_stop()
        if self._is_idle():
            return
        if self.driver is Level.LOW:
            drive, balance = self._low, None
        else:
            drive, balance = self.walker.drive()
        if any(self.health.hot):
            drive = _brake_hot_motors(drive, self.health.hot)
        self.body.step(self.time_s, drive, balance)

    def _is_idle(self) -> bool:
        """Whether the simulation is idle: no driver, and no motion for a while."""
        if self.driver is not None or self.body.held_by_hand or any(self.health.hot):
            self._idle_steps = 0
        elif self._idle_steps < REST_STEPS:
            moves = any(abs(speed) > _STILL_RAD_S for speed in self.body.dq_rad_s)
            self._idle_steps = 0 if moves else self._idle_steps + 1
        return self._idle_steps >= REST_STEPS

    def _apply_soft_stop(self) -> None:
        if self._low is not LIMP or self.walker.posture is not Posture.DAMPED:
            self.note("stop by the remote: the legs go limp")
        self._low, self._idle_steps = LIMP, 0
        self.walker.go_limp()

    # ---- commands -------------------------------------------------------------------------------

    def obey(self, command: a1_values.Command) -> bool:
        """Carry out a command; return False if it is not obeyed."""
        level = Level.LOW if isinstance(command, LowCmd) else Level.HIGH
        if not self._may_drive(level, command.header):
            self.ignored += 1
            return False
        if self.driver is not level:
            self._take_control(level)
        if isinstance(command, LowCmd):
            self._low = self._convert_low_command(command)
        else:
            goal = walk_goal_from(command)
            if goal.mode not in self.walker.known_modes:
                self._note_once(f"mode {goal.mode:d} is unknown to this robot")
                self.ignored += 1
                return False
            before = self.walker.posture
            self.walker.follow(goal)
            if self.walker.posture is not before:
                self.note(f"the robot is {self.walker.posture.name.lower()}")
        return True

    def _may_drive(self, level: Level, header: AnyHeader | None) -> bool:
        """Whether a command may be obeyed; the operator gets a notice of the reason against it.

        Its flag must fit its level, the other level must not drive the robot, and the remote must
        not hold a soft stop.
        """
        flag = self._make_frame_header(level).level if header is None else header.level
        flag_is_low, command_is_low = flag == LOW_FLAG, level is Level.LOW
        if flag_is_low is not command_is_low:
            self._note_once(
                f"a {level.value}-level command with level flag {flag:#04x} is not obeyed"
            )
            return False
        if self.driver not in (None, level):
            self._note_once(
                f"the {level.value} level is not obeyed: the other one drives the robot"
            )
            return False
        return self.remote.buttons & SOFT_STOP != SOFT_STOP

    def _take_control(self, level: Level) -> None:
        self.driver = level
        self._noted.clear()
        self.note(f"the {level.value} level drives the robot")
        if level is Level.LOW:
            self.walker.go_limp()

    def _convert_low_command(self, command: LowCmd) -> Drive:
        """Keep the motors' modes, and return the drive that carries out a low-level command."""
        motors = command.motors
        self._modes = motors.mode[:JOINTS].tolist()
        commands = zip(
            self._modes,
            motors.q_rad[:JOINTS].tolist(),
            motors.dq_rad_s[:JOINTS].tolist(),
            motors.kp_nm_rad[:JOINTS].tolist(),
            motors.kd_nm_s_rad[:JOINTS].tolist(),
            motors.tau_nm[:JOINTS].tolist(),
            strict=True,
        )
        return Drive(*zip(*(_resolve_motor_command(*numbers) for numbers in commands), strict=True))

    def handle_silence(self, level: Level) -> None:
        """Let the motors brake, or stop walking, because the driving level sends no commands."""
        if self.driver is not level:
            return
        if level is Level.LOW:
            self._low = LIMP
            self.note("no low-level command: the motors brake")
        else:
            self.walker.stop_walking()
            self.note("no high-level command: the robot stays where it is")

    def forget(self, level: Level) -> None:
        """Handle that the client of a level is gone; if it drove the robot, any level may drive."""
        if self.driver is level:
            self.driver = None
            self._low = LIMP
            self.walker.stop_walking()
            self.note(f"the {level.value} level is gone")

    def attach(self, hand: LegHand | None) -> None:
        """Attach a hand that takes hold as soon as the legs are soft; None removes it."""
        self.body.attach(hand)

    # ---- state ----------------------------------------------------------------------------------

    def state(self, level: Level) -> a1_values.State:
        """Return the robot's current state at a level."""
        return self.low_state() if level is Level.LOW else self.high_state()

    def low_state(self) -> LowState:
        """Return the state at the low level: motors and sensors, with noise."""
        force, estimate = self._read_foot_forces()
        return LowState(
            header=self._make_frame_header(Level.LOW),
            imu=self._read_imu(),
            motors=self._read_motors(),
            foot_force=force,
            foot_force_estimate=estimate,
            tick=self._read_clock_us(),
            remote=self.remote.pack(),
            bms=self._read_battery(),
        )

    def high_state(self) -> HighState:
        """Return the state at the high level, as far as the dialect has fields for it."""
        body, walker = self.body, self.walker
        force, estimate = self._read_foot_forces()
        state = HighState(
            header=self._make_frame_header(Level.HIGH),
            mode=walker.mode,
            imu=self._read_imu(),
            position_m=(body.x_m, body.y_m, body.height_m),
            velocity_m_s=(body.ahead_m_s, body.left_m_s, body.rise_m_s),
            yaw_speed_rad_s=body.turn_rad_s,
            body_height_m=body.height_m,
            foot_position_m=_to_cartesian(foot[:3] for foot in body.feet),
            foot_velocity_m_s=_to_cartesian(body.feet_speed_m_s()),
            foot_force=force,
            foot_force_estimate=estimate,
            remote=self.remote.pack(),
            rise_speed_m_s=body.rise_m_s,
            tick=self._read_clock_us(),
            progress=walker.progress,
            gait=walker.gait,
            foot_raise_height_m=walker.raise_m,
            motors=self._read_motors() if self._reports_motors else None,
            bms=self._read_battery(),
            obstacle_m=(0.0,) * 4,
        )
        fitted = wire.fit(state, self.dialect)
        assert isinstance(fitted, HighState)
        return fitted

    @property
    def _reports_motors(self) -> bool:
        return self.dialect in (Dialect.A1_3_3_4, Dialect.GO1)

    def _make_frame_header(self, level: Level) -> AnyHeader:
        if self.is_go1:
            return Go1Header(LOW_FLAG if level is Level.LOW else GO1_HIGH_FLAG)
        return Header(LOW_FLAG if level is Level.LOW else HIGH_FLAG)

    def _read_clock_us(self) -> int:
        """Return the robot's clock in microseconds modulo 2**32, as in Unitree's header."""
        return (round(self.time_s * 1e6) + self.health.clock_jump_us) % 2**32

    def _read_imu(self) -> Imu:
        """Return what the sensor in the trunk measures, with noise."""
        body = self.body
        roll, pitch = body.roll_rad, body.pitch_rad
        yaw = wrap_angle(body.heading_rad + self.walker.yaw_rad)
        noise = self._random.standard_normal(6).tolist()
        upward_m_s2 = GRAVITY_M_S2 if body.hung else GRAVITY_M_S2 + body.rise_m_s2
        rates = (body.roll_rad_s, body.pitch_rad_s, body.turn_rad_s)
        return Imu(
            quaternion(roll, pitch, yaw),
            tuple(rate + 0.002 * error for rate, error in zip(rates, noise[:3], strict=True)),
            tuple(  # row 2 is the upward direction in the trunk's frame
                share * upward_m_s2 + 0.02 * error
                for share, error in zip(rotation_rows(roll, pitch)[2], noise[3:], strict=True)
            ),
            (roll, pitch, yaw),
            40,  # temperature in °C
        )

    def _read_motors(self) -> MotorStates:
        body, health = self.body, self.health
        rows = zip(
            self._modes if self.driver is Level.LOW else [SERVO] * JOINTS,
            body.q_rad,
            body.dq_rad_s,
            body.ddq_rad_s2,
            body.torque_nm,
            health.temperatures_c,
            health.hot,
            strict=True,
        )
        return MotorStates.of(
            MotorState(
                OVERHEATED if hot else mode,
                *(q, dq, ddq, torque),
                *(q, dq, ddq),  # the raw values are the same here
                min(int(celsius), 127),
                (_HEAT_CODE if hot else 0, 0),
            )
            for mode, q, dq, ddq, torque, celsius, hot in rows
        )

    def _read_foot_forces(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the measured force on each foot in N, with noise, and the robot's estimate."""
        forces = self.body.foot_force_n
        noise = self._random.standard_normal(len(forces)).tolist()
        measured = tuple(
            round(max(force + 0.5 * error, 0.0)) for force, error in zip(forces, noise, strict=True)
        )
        return measured, tuple(round(force) for force in forces)

    def _read_battery(self) -> BmsState | None:
        """Return the battery state of a Go1; None for an A1, whose frames do not contain it."""
        if not self.is_go1:
            return None
        return BmsState(
            charge_percent=int(self.health.battery_percent),
            current_ma=-2500,
            battery_c=(30, 30),
            controller_c=(35, 35),
            cells_mv=(3200 + int(8 * self.health.battery_percent),) * 10,
        )

    # ---- notices --------------------------------------------------------------------------------

    def note(self, message: str) -> None:
        """Add a notice for the operator."""
        self.notices.append(SimNotice(self.time_s, message))
        del self.notices[:-100]

    def _note_once(self, message: str) -> None:
        """Add a notice once per driver, not with every command."""
        if message not in self._noted:
            self._noted.add(message)
            self.note(message)


# Rounded to 32 bits, because the frames transport them so.
_POSITION_OFF = float(np.float32(POSITION_OFF_RAD))
_VELOCITY_OFF = float(np.float32(VELOCITY_OFF_RAD_S))


def _resolve_motor_command(
    mode: int, q: float, dq: float, kp: float, kd: float, torque: float
) -> tuple[float, float, float, float, float]:
    """Return the q, dq, kp, kd and torque that carry out one motor's command.

    Outside servo mode the motor only brakes. For a q or dq marked as off, the gain becomes 0.
    """
    if mode != SERVO:
        return 0.0, 0.0, 0.0, BRAKE_NM_S_RAD, 0.0
    if q == _POSITION_OFF:
        q = kp = 0.0
    if dq == _VELOCITY_OFF:
        dq = kd = 0.0
    return q, dq, max(kp, 0.0), max(kd, 0.0), torque


def _brake_hot_motors(drive: Drive, hot: Sequence[bool]) -> Drive:
    """Return the drive with overheated motors only braking."""
    brake = (0.0, 0.0, 0.0, BRAKE_NM_S_RAD, 0.0)
    rows = zip(hot, zip(*drive, strict=True), strict=True)
    return Drive(*zip(*(brake if is_hot else row for is_hot, row in rows), strict=True))


def _to_cartesian(rows: Iterable[Three]) -> tuple[Cartesian, Cartesian, Cartesian, Cartesian]:
    """Convert the rows of the four feet."""
    first, second, third, fourth = (Cartesian(*row) for row in rows)
    return first, second, third, fourth
