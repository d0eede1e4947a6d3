"""A simulated A1 or Go1 as a whole: it obeys commands, moves in time, and reports its state.

It has no sockets; the caller advances its clock. One level drives it at a time: the first to send
commands keeps it until it has long been silent; the other is answered but not obeyed.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from rote.errors import BadRequestError
from rote.session.a1 import Level
from rote.sim.quadruped.body import BRAKE_NM_S_RAD, LIMP, STEP_S, Drive, LegHand, QuadrupedBody
from rote.sim.quadruped.faults import A1Health
from rote.sim.quadruped.gait import Stepper
from rote.sim.quadruped.legs import (
    A1_BUILD,
    GO1_BUILD,
    GRAVITY_M_S2,
    JOINTS,
    Three,
    quaternion,
    tilted,
    wrapped,
)
from rote.sim.quadruped.walker import HEIGHT_M, LIE_RAD, Posture, Walker, wish_of
from rote.sim.world import SimNotice
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
"""After this many steps without a driver and without a faster joint, the body is not computed."""
HEALTH_EVERY = 50
"""Steps between two updates of battery and motors: 10 Hz."""
LOW_FLAG, HIGH_FLAG = 0xFF, {True: 0xEE, False: 0x00}
OVERHEATED = 0x08
"""The mode that an overheated motor reports, by a public report."""
_HEAT_CODE = 4
STARTS = ("stand", "lie", "damp", "hung")


class A1World:
    """One simulated A1, or Go1 where that is its dialect."""

    def __init__(
        self, *, dialect: Dialect = Dialect.A1_3_3_4, seed: int = 0, start: str = "stand"
    ) -> None:
        if start not in STARTS:
            raise BadRequestError(
                f"an A1 does not begin in {start!r}", f"Use: {', '.join(STARTS)}."
            )
        self.dialect = dialect
        self.is_go1 = dialect is Dialect.GO1
        build = GO1_BUILD if self.is_go1 else A1_BUILD
        standing = Stepper(build).joints(HEIGHT_M, (0.0, 0.0, 0.0))
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
        """The state of the wireless remote; L2 and B together make the legs give way."""
        self.notices: list[SimNotice] = []
        """The newest hundred; whoever shows them clears the list."""
        self.ignored = 0
        """Commands that were valid and not obeyed."""
        self._low = LIMP
        self._modes = [SERVO] * JOINTS
        self._random = np.random.default_rng(seed)
        self._steps = self._still = 0
        self._said: set[str] = set()

    # ---- time -----------------------------------------------------------------------------------

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        for _ in range(round(seconds / STEP_S)):
            self.step()

    def step(self) -> None:
        """Let `STEP_S` pass."""
        self._steps += 1
        self.time_s = self._steps * STEP_S
        if self._steps % HEALTH_EVERY == 0:
            for message in self.health.advance(
                self.time_s, HEALTH_EVERY * STEP_S, self.body.torque_nm
            ):
                self.note(message)
        if self.remote.buttons & SOFT_STOP == SOFT_STOP:
            self._soft_stop()
        if self._is_at_rest():
            return
        if self.driver is Level.LOW:
            drive, balance = self._low, None
        else:
            drive, balance = self.walker.drive()
        if any(self.health.hot):
            drive = _without(drive, self.health.hot)
        self.body.step(self.time_s, drive, balance)

    def _is_at_rest(self) -> bool:
        """Whether nobody drives and nothing has moved for a while: then nothing will."""
        if self.driver is not None or self.body.held_by_hand or any(self.health.hot):
            self._still = 0
        elif self._still < REST_STEPS:
            moves = any(abs(speed) > _STILL_RAD_S for speed in self.body.dq_rad_s)
            self._still = 0 if moves else self._still + 1
        return self._still >= REST_STEPS

    def _soft_stop(self) -> None:
        if self._low is not LIMP or self.walker.posture is not Posture.DAMPED:
            self.note("the remote says stop: the legs give way")
        self._low, self._still = LIMP, 0
        self.walker.give_way()

    # ---- what a client can ask ------------------------------------------------------------------

    def obey(self, command: a1_values.Command) -> bool:
        """Carry out a command; return False if it is not obeyed."""
        level = Level.LOW if isinstance(command, LowCmd) else Level.HIGH
        if not self._may_drive(level, command.header):
            self.ignored += 1
            return False
        if self.driver is not level:
            self._take(level)
        if isinstance(command, LowCmd):
            self._low = self._driven(command)
        else:
            wish = wish_of(command)
            if wish.mode not in self.walker.known_modes:
                self._once(f"mode {wish.mode:d} means nothing to this robot")
                self.ignored += 1
                return False
            before = self.walker.posture
            self.walker.follow(wish)
            if self.walker.posture is not before:
                self.note(f"the robot is {self.walker.posture.name.lower()}")
        return True

    def _may_drive(self, level: Level, header: AnyHeader | None) -> bool:
        flag = self._header(level).level if header is None else header.level
        if (flag == LOW_FLAG) is not (level is Level.LOW):
            self._once(f"a {level.value}-level command with level flag {flag:#04x} is not obeyed")
            return False
        if self.driver not in (None, level):
            self._once(f"the {level.value} level is not obeyed: the other one drives the robot")
            return False
        return self.remote.buttons & SOFT_STOP != SOFT_STOP

    def _take(self, level: Level) -> None:
        self.driver = level
        self._said.clear()
        self.note(f"the {level.value} level drives the robot")
        if level is Level.LOW:
            self.walker.give_way()

    def _driven(self, command: LowCmd) -> Drive:
        """Return what the motors do with a low-level command."""
        motors = command.motors
        self._modes = motors.mode[:JOINTS].tolist()
        asked = zip(
            self._modes,
            motors.q_rad[:JOINTS].tolist(),
            motors.dq_rad_s[:JOINTS].tolist(),
            motors.kp_nm_rad[:JOINTS].tolist(),
            motors.kd_nm_s_rad[:JOINTS].tolist(),
            motors.tau_nm[:JOINTS].tolist(),
            strict=True,
        )
        return Drive(*zip(*(_motor(*numbers) for numbers in asked), strict=True))

    def fall_silent(self, level: Level) -> None:
        """Note that the driver was silent for a while: motors brake, a walking robot stands."""
        if self.driver is not level:
            return
        if level is Level.LOW:
            self._low = LIMP
            self.note("no low-level command: the motors brake")
        else:
            self.walker.rest()
            self.note("no high-level command: the robot stays where it is")

    def forget(self, level: Level) -> None:
        """Note that the driver is gone: the other level may drive."""
        if self.driver is level:
            self.driver = None
            self._low = LIMP
            self.walker.rest()
            self.note(f"the {level.value} level is gone")

    def attach(self, hand: LegHand | None) -> None:
        """Let a hand take hold of the legs as soon as they are soft; None removes it."""
        self.body.attach(hand)

    # ---- what a client can see ------------------------------------------------------------------

    def state(self, level: Level) -> a1_values.State:
        """Return what the robot reports at a level now."""
        return self.low_state() if level is Level.LOW else self.high_state()

    def low_state(self) -> LowState:
        """Return the report of motors and sensors, with noise."""
        force, estimate = self._forces()
        return LowState(
            header=self._header(Level.LOW),
            imu=self._imu(),
            motors=self._motors(),
            foot_force=force,
            foot_force_estimate=estimate,
            tick=self._tick(),
            remote=self.remote.pack(),
            bms=self._bms(),
        )

    def high_state(self) -> HighState:
        """Return the report of the walking controller, as far as the dialect has fields for it."""
        body, walker = self.body, self.walker
        force, estimate = self._forces()
        state = HighState(
            header=self._header(Level.HIGH),
            mode=walker.mode,
            imu=self._imu(),
            position_m=(body.x_m, body.y_m, body.height_m),
            velocity_m_s=(body.ahead_m_s, body.left_m_s, body.rise_m_s),
            yaw_speed_rad_s=body.turn_rad_s,
            body_height_m=body.height_m,
            foot_position_m=_points(foot[:3] for foot in body.feet),
            foot_velocity_m_s=_points(body.feet_speed_m_s()),
            foot_force=force,
            foot_force_estimate=estimate,
            remote=self.remote.pack(),
            rise_speed_m_s=body.rise_m_s,
            tick=self._tick(),
            progress=walker.progress,
            gait=walker.gait,
            foot_raise_height_m=walker.raise_m,
            motors=self._motors() if self._tells_motors else None,
            bms=self._bms(),
            obstacle_m=(0.0,) * 4,
        )
        fitted = wire.fit(state, self.dialect)
        assert isinstance(fitted, HighState)
        return fitted

    @property
    def _tells_motors(self) -> bool:
        return self.dialect in (Dialect.A1_3_3_4, Dialect.GO1)

    def _header(self, level: Level) -> AnyHeader:
        flag = LOW_FLAG if level is Level.LOW else HIGH_FLAG[self.is_go1]
        return Go1Header(flag) if self.is_go1 else Header(flag)

    def _tick(self) -> int:
        """The robot's clock in microseconds, in 32 bits, as Unitree's header says."""
        return (round(self.time_s * 1e6) + self.health.clock_jump_us) % 2**32

    def _imu(self) -> Imu:
        body = self.body
        roll, pitch = body.roll_rad, body.pitch_rad
        yaw = wrapped(body.heading_rad + self.walker.yaw_rad)
        noise = self._random.standard_normal(6).tolist()
        pull = GRAVITY_M_S2 if body.hung else GRAVITY_M_S2 + body.rise_m_s2
        rates = (body.roll_rad_s, body.pitch_rad_s, body.turn_rad_s)
        return Imu(
            quaternion(roll, pitch, yaw),
            tuple(rate + 0.002 * error for rate, error in zip(rates, noise[:3], strict=True)),
            tuple(
                share * pull + 0.02 * error
                for share, error in zip(tilted(roll, pitch)[2], noise[3:], strict=True)
            ),
            (roll, pitch, yaw),
            40,
        )

    def _motors(self) -> MotorStates:
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
                *(q, dq, ddq),
                min(int(celsius), 127),
                (_HEAT_CODE if hot else 0, 0),
            )
            for mode, q, dq, ddq, torque, celsius, hot in rows
        )

    def _forces(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        forces = self.body.foot_force_n
        noise = self._random.standard_normal(len(forces)).tolist()
        noisy = (round(max(n + 0.5 * e, 0.0)) for n, e in zip(forces, noise, strict=True))
        return tuple(noisy), tuple(round(force) for force in forces)

    def _bms(self) -> BmsState | None:
        if not self.is_go1:
            return None
        return BmsState(
            charge_percent=int(self.health.battery_percent),
            current_ma=-2500,
            battery_c=(30, 30),
            controller_c=(35, 35),
            cells_mv=(3200 + int(8 * self.health.battery_percent),) * 10,
        )

    # ---- for people -----------------------------------------------------------------------------

    def note(self, message: str) -> None:
        """Add a notice for whoever watches the robot."""
        self.notices.append(SimNotice(self.time_s, message))
        del self.notices[:-100]

    def _once(self, message: str) -> None:
        """Add a notice once, not five hundred times per second."""
        if message not in self._said:
            self._said.add(message)
            self.note(message)


# With the precision of the frames' 32 bits.
_POSITION_OFF = float(np.float32(POSITION_OFF_RAD))
_VELOCITY_OFF = float(np.float32(VELOCITY_OFF_RAD_S))


def _motor(
    mode: int, q: float, dq: float, kp: float, kd: float, torque: float
) -> tuple[float, float, float, float, float]:
    """Return what one motor does with its command: q, dq, kp, kd and an additional torque."""
    if mode != SERVO:
        return 0.0, 0.0, 0.0, BRAKE_NM_S_RAD, 0.0
    if q == _POSITION_OFF:
        q = kp = 0.0
    if dq == _VELOCITY_OFF:
        dq = kd = 0.0
    return q, dq, max(kp, 0.0), max(kd, 0.0), torque


def _without(drive: Drive, hot: Sequence[bool]) -> Drive:
    """Return the same drive with the motors that are too hot only braking."""
    brake = (0.0, 0.0, 0.0, BRAKE_NM_S_RAD, 0.0)
    rows = zip(hot, zip(*drive, strict=True), strict=True)
    return Drive(*zip(*(brake if is_hot else row for is_hot, row in rows), strict=True))


def _points(rows: Iterable[Three]) -> tuple[Cartesian, Cartesian, Cartesian, Cartesian]:
    a, b, c, d = (Cartesian(*row) for row in rows)
    return a, b, c, d
