"""The walking controller of a simulated A1: it stands, walks, poses, lies down, gets up, gives way.

What each mode does follows Unitree's header. Speed limits, how fast it gets up, and what it does in
modes for show (9 to 13) are our choice: it stands through those.
"""

import math
from enum import Enum, auto
from typing import NamedTuple

from rote.sim.quadruped.body import LIMP, STEP_S, Balance, Drive, QuadrupedBody
from rote.sim.quadruped.gait import RAISE_M, Stepper, minimum_jerk, toward
from rote.sim.quadruped.legs import GRAVITY_M_S2, JOINTS, LEGS, Row, Three, bounded, wrapped
from rote.wire.a1.values import HighCmd, ScaledHighCmd

HEIGHT_M = 0.28
"""The height of the standing trunk over the ground, by Unitree's header."""
HEIGHTS_M = (0.16, 0.34)
LIE_RAD = (0.0, 1.32, -2.69) * LEGS
MAX_EULER_RAD = (0.5, 0.45, 0.5)
RISE_S = 1.5
IDLE, STAND, WALK, GO_TO, LIE_DOWN, GET_UP, DAMP, RECOVER = 0, 1, 2, 3, 5, 6, 7, 8
MODES = frozenset(range(14)) - {4}
OLD_MODES = frozenset({IDLE, STAND, WALK})

FORWARD_M_S, BACKWARD_M_S, ASIDE_M_S, TURN_RAD_S = 1.0, 0.7, 0.4, 2.0 * math.pi / 3.0
"""The speeds that 1 means in dialect 3.2, by a public report."""
HEIGHT_SHARE_M = 0.1
"""The same for the height of the body; a guess."""
_STRIDES = {0: (1.5, 0.5), 1: (1.5, 0.5), 2: (2.0, 0.36), 3: (0.5, 0.7), 4: (0.7, 0.6)}
"""By gait: the maximum speed forward in m/s, and the time of a step."""
_MAX_ASIDE_M_S, _MAX_TURN_RAD_S = 0.8, 2.5
_SPEED_UP_M_S2, _TURN_UP_RAD_S2, _LIFT_M_S, _LEAN_RAD_S = 2.5, 8.0, 0.2, 1.5
_GO_TO_M_S = (0.3, 0.6, 0.9)
_KP, _KD = (180.0,) * JOINTS, (6.0,) * JOINTS
_THERE_M = 0.01
_STILL: Three = (0.0, 0.0, 0.0)


class Posture(Enum):
    """What the legs are doing."""

    STANDING = auto()
    RISING = auto()
    LOWERING = auto()
    LYING = auto()
    DAMPED = auto()


class Wish(NamedTuple):
    """A high-level command in SI units, whatever its dialect."""

    mode: int = IDLE
    gait: int = 0
    along_m_s: tuple[float, float] = (0.0, 0.0)
    turn_rad_s: float = 0.0
    euler_rad: tuple[float, float, float] = (0.0, 0.0, 0.0)
    lift_m: float = 0.0
    """How much higher than usual the trunk should be."""
    raise_m: float = RAISE_M
    place_m: tuple[float, float] = (0.0, 0.0)
    speed_level: int = 0


def wish_of(command: HighCmd | ScaledHighCmd) -> Wish:
    """Return what a command asks for."""
    if isinstance(command, HighCmd):
        roll, pitch, yaw = command.euler_rad
        return Wish(
            mode=command.mode,
            gait=command.gait,
            along_m_s=(command.velocity_m_s[0], command.velocity_m_s[1]),
            turn_rad_s=command.yaw_speed_rad_s,
            euler_rad=(roll, pitch, yaw),
            lift_m=command.body_height_m,
            raise_m=bounded(RAISE_M + command.foot_raise_height_m, 0.01, 0.15),
            place_m=(command.position_m[0], command.position_m[1]),
            speed_level=command.speed_level,
        )
    forward, left, turn, height = (
        bounded(share, -1.0, 1.0)
        for share in (command.forward, command.left, command.turn, command.body_height)
    )
    return Wish(
        mode=command.mode,
        gait=1,
        along_m_s=(forward * (FORWARD_M_S if forward > 0 else BACKWARD_M_S), left * ASIDE_M_S),
        turn_rad_s=turn * TURN_RAD_S,
        euler_rad=(command.roll_rad, command.pitch_rad, command.yaw_rad),
        lift_m=height * HEIGHT_SHARE_M,
    )


class Walker:
    """Drives a body as commanded."""

    def __init__(self, body: QuadrupedBody, *, old: bool = False, posture: Posture) -> None:
        self._body = body
        self._old = old
        """Whether it is a sport mode of dialect 3.2, which has only three modes."""
        self.posture = posture
        self.mode = {Posture.LYING: LIE_DOWN, Posture.DAMPED: DAMP}.get(posture, IDLE)
        self.progress = 0.0
        self.wish = Wish()
        self.raise_m = RAISE_M
        self._stepper = Stepper(body.build)
        self._velocity = self._euler = _STILL
        """Ahead, left and about the vertical; roll, pitch and yaw over the feet."""
        self._height = HEIGHT_M
        self._from: Row = tuple(body.q_rad)
        self._last: Row = self._from
        self._moved_s = self._started_m = 0.0

    @property
    def gait(self) -> int:
        """The current gait; 0 if it does not walk."""
        return (self.wish.gait or 1) if self._stepper.stepping else 0

    @property
    def yaw_rad(self) -> float:
        """How far the trunk is twisted over its feet."""
        return self._euler[2] if self.posture is Posture.STANDING else 0.0

    @property
    def known_modes(self) -> frozenset[int]:
        """The modes that this controller accepts."""
        return OLD_MODES if self._old else MODES

    def follow(self, wish: Wish) -> None:
        """Accept a command; one that the posture does not allow changes nothing."""
        if wish.mode not in self.known_modes:
            return
        changed = wish.mode != self.mode
        if wish.mode == DAMP:
            self.give_way()
        elif wish.mode == LIE_DOWN:
            if self.posture in (Posture.STANDING, Posture.RISING):
                self._begin(Posture.LOWERING)
        elif self.posture in (Posture.DAMPED, Posture.LYING):
            # An older sport mode has no command to get up.
            if wish.mode in (GET_UP, RECOVER) or (self._old and wish.mode != IDLE):
                self._begin(Posture.RISING)
            else:
                return
        elif self.posture is Posture.LOWERING:
            if wish.mode not in (GET_UP, RECOVER):
                return
            self._begin(Posture.RISING)
        self.mode = wish.mode
        self.wish, self.raise_m = wish, wish.raise_m
        if changed:
            self.progress = 0.0
            self._started_m = math.hypot(*self._aim())

    def rest(self) -> None:
        """Stop walking and keep the pose: no commands arrive any more."""
        self.wish = self.wish._replace(along_m_s=(0.0, 0.0), turn_rad_s=0.0)
        if self.mode in (WALK, GO_TO):
            self.mode = IDLE
            self.wish = Wish()

    def give_way(self) -> None:
        """Make the legs soft."""
        if self.posture is not Posture.DAMPED:
            self.posture, self.mode = Posture.DAMPED, DAMP
            self.wish = Wish(mode=DAMP)
            self._velocity = _STILL

    def _begin(self, posture: Posture) -> None:
        self.posture, self._moved_s = posture, 0.0
        self._from = self._last = tuple(self._body.q_rad)
        self._velocity = self._euler = _STILL
        self._height = HEIGHT_M
        self._stepper.reset()

    # ---- each step ------------------------------------------------------------------------------

    def drive(self) -> tuple[Drive, Balance | None]:
        """Return the servos' command for the next `STEP_S`, and how the trunk moves."""
        if self.posture is Posture.DAMPED:
            return LIMP, None
        if self.posture in (Posture.RISING, Posture.LOWERING):
            return self._move()
        if self.posture is Posture.LYING:
            return self._servo(LIE_RAD), None
        self._approach()
        self._stepper.step(self._velocity, _stride(self.wish.gait)[1], self.raise_m)
        drive = self._servo(self._stepper.joints(self._height, self._euler), supports=True)
        return drive, Balance(*self._euler[:2], *self._velocity)

    def _move(self) -> tuple[Drive, Balance | None]:
        """Get up, or lie down."""
        rising = self.posture is Posture.RISING
        self._moved_s += STEP_S
        self.progress = min(self._moved_s / RISE_S, 1.0)
        goal = self._stepper.joints(HEIGHT_M, _STILL) if rising else LIE_RAD
        share = minimum_jerk(self.progress)
        target = [a + (b - a) * share for a, b in zip(self._from, goal, strict=True)]
        if self._moved_s >= RISE_S:
            self.posture = Posture.STANDING if rising else Posture.LYING
        return self._servo(target, supports=True), Balance(0.0, 0.0, *_STILL)

    def _approach(self) -> None:
        """Change speed, height and tilt towards the commanded ones, as fast as legs can."""
        velocity, euler, lift = self._wanted()
        faster, turn = _SPEED_UP_M_S2 * STEP_S, _TURN_UP_RAD_S2 * STEP_S
        self._velocity = (
            toward(self._velocity[0], velocity[0], faster),
            toward(self._velocity[1], velocity[1], faster),
            toward(self._velocity[2], velocity[2], turn),
        )
        height = bounded(HEIGHT_M + lift, *HEIGHTS_M)
        self._height = toward(self._height, height, _LIFT_M_S * STEP_S)
        roll, pitch, yaw = (
            toward(now, wanted, _LEAN_RAD_S * STEP_S)
            for now, wanted in zip(self._euler, euler, strict=True)
        )
        self._euler = (roll, pitch, yaw)

    def _wanted(self) -> tuple[Three, Three, float]:
        """Return the velocity, the tilt, and how much higher than usual the trunk should be."""
        wish = self.wish
        if wish.mode == STAND:
            roll, pitch, yaw = (
                bounded(angle, -most, most)
                for angle, most in zip(wish.euler_rad, MAX_EULER_RAD, strict=True)
            )
            return _STILL, (roll, pitch, yaw), wish.lift_m
        if wish.mode == WALK:
            ahead, left = wish.along_m_s
            most = _stride(wish.gait)[0]
            velocity = (
                bounded(ahead, -most * BACKWARD_M_S, most),
                bounded(left, -_MAX_ASIDE_M_S, _MAX_ASIDE_M_S),
                bounded(wish.turn_rad_s, -_MAX_TURN_RAD_S, _MAX_TURN_RAD_S),
            )
            return velocity, _STILL, wish.lift_m
        if wish.mode == GO_TO:
            return self._toward_place(), _STILL, wish.lift_m
        return _STILL, _STILL, 0.0

    def _aim(self) -> tuple[float, float]:
        """Return the distance to the commanded position, in the world's directions."""
        x, y = (bounded(part, -1e6, 1e6) for part in self.wish.place_m)
        return x - self._body.x_m, y - self._body.y_m

    def _toward_place(self) -> Three:
        """Return the velocity that leads to a position, and to the commanded heading there."""
        heading, (x, y) = self._body.heading_rad, self._aim()
        left_m = math.hypot(x, y)
        self.progress = 1.0 - min(left_m / max(self._started_m, 1e-3), 1.0)
        speed = min(2.0 * left_m, _GO_TO_M_S[min(self.wish.speed_level, 2)])
        if left_m < _THERE_M:
            self.progress, speed = 1.0, 0.0
        bearing = math.atan2(y, x) - heading
        turn = bounded(2.0 * wrapped(self.wish.euler_rad[2] - heading), -1.0, 1.0)
        return speed * math.cos(bearing), speed * math.sin(bearing), turn

    def _servo(self, target_rad: Row, *, supports: bool = False) -> Drive:
        speeds = [
            bounded((new - old) / STEP_S, -most, most)
            for new, old, most in zip(
                target_rad, self._last, self._body.build.speed_rad_s, strict=True
            )
        ]
        self._last = target_rad
        feed: list[float] = []
        for foot, force in zip(self._body.feet, self._carries(supports), strict=True):
            for own, load in zip(foot.weight_nm, foot.torques(0.0, 0.0, force), strict=True):
                feed.append(-own - load)
        return Drive(target_rad, speeds, _KP, _KD, feed)

    def _carries(self, supports: bool) -> list[float]:
        """Return the expected force of the ground on each foot."""
        forces = self._body.foot_force_n
        stands = [ok and n > 0.0 for ok, n in zip(self._stepper.standing, forces, strict=True)]
        if not supports or not any(stands):
            return [0.0] * LEGS
        each_n = self._body.build.mass_kg * GRAVITY_M_S2 / sum(stands)
        return [each_n if standing else 0.0 for standing in stands]


def _stride(gait: int) -> tuple[float, float]:
    return _STRIDES.get(gait, _STRIDES[1])
