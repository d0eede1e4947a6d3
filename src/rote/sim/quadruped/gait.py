"""How a simulated A1 steps: where each foot should be, for a speed along the ground and a turn.

Diagonal legs step together. A standing foot stays in place while the body moves over it; a swinging
foot goes to where it will be needed next.
"""

from math import copysign, pi, sin

from rote.sim.quadruped.body import STEP_S
from rote.sim.quadruped.legs import LEGS, LegDimensions, Three, joints_for, rotation_rows

STANCE = 0.55
"""The share of a step's time in which a foot stands."""
RAISE_M = 0.08
"""How high a foot goes, by Unitree's header."""
_FIRST = (0.0, 0.5, 0.5, 0.0)
_MIN_M, _MIN_M_S = 0.004, 0.01


def minimum_jerk(share: float) -> float:
    """Return the position of a smooth move from 0 to 1."""
    u = min(max(share, 0.0), 1.0)
    return u**3 * (10.0 - 15.0 * u + 6.0 * u * u)


def toward(value: float, target: float, most: float) -> float:
    """Return `value` moved towards `target` by no more than `most`."""
    return value + copysign(min(abs(target - value), most), target - value)


class Stepper:
    """The feet of one robot, each near the place below its thigh."""

    def __init__(self, build: LegDimensions) -> None:
        self._build = build
        self._under = [build.under(leg) for leg in range(LEGS)]
        self.reset()

    def reset(self) -> None:
        """Stand still with all feet in their places."""
        self._offsets = [(0.0, 0.0)] * LEGS
        self._lifted = [(0.0, 0.0)] * LEGS
        self._raised = [0.0] * LEGS
        self.standing = [True] * LEGS
        """Which feet should be on the ground."""
        self.stepping = False
        self._phase = 0.0

    def step(self, velocity: Three, period_s: float, raise_m: float) -> None:
        """Advance by `STEP_S`, with that velocity of the trunk ahead, left and about the vertical.

        It stops stepping when the trunk stands and the feet are in their places.
        """
        moving = any(abs(part) > _MIN_M_S for part in velocity)
        if not self.stepping and not moving:
            return
        self.stepping = True
        self._phase = (self._phase + STEP_S / period_s) % 1.0
        for leg in range(LEGS):
            self._step_leg(leg, velocity, period_s, raise_m)
        in_place = all(abs(x) < _MIN_M and abs(y) < _MIN_M for x, y in self._offsets)
        if not moving and in_place and all(self.standing):
            self.reset()

    def _step_leg(self, leg: int, velocity: Three, period_s: float, raise_m: float) -> None:
        ahead, left, turn = velocity
        under_x, under_y = self._under[leg]
        over_x, over_y = ahead - turn * under_y, left + turn * under_x
        phase = (self._phase + _FIRST[leg]) % 1.0
        x, y = self._offsets[leg]
        if phase < STANCE:
            self.standing[leg], self._raised[leg] = True, 0.0
            self._offsets[leg] = (x - STEP_S * over_x, y - STEP_S * over_y)
            return
        if self.standing[leg]:
            self.standing[leg], self._lifted[leg] = False, (x, y)
        share = (phase - STANCE) / (1.0 - STANCE)
        smooth, half_s = minimum_jerk(share), period_s * STANCE / 2.0
        x, y = self._lifted[leg]
        self._offsets[leg] = (
            x + (over_x * half_s - x) * smooth,
            y + (over_y * half_s - y) * smooth,
        )
        self._raised[leg] = raise_m * sin(pi * share) ** 2

    def joints(self, height_m: float, euler_rad: Three) -> list[float]:
        """Return the twelve joints for the trunk at that height and tilt over these feet."""
        (a, b, c), (d, e, f), (g, h, i) = rotation_rows(*euler_rad)
        joints: list[float] = []
        for leg, ((under_x, under_y), (off_x, off_y), raised) in enumerate(
            zip(self._under, self._offsets, self._raised, strict=True)
        ):
            x, y, z = under_x + off_x, under_y + off_y, raised - height_m
            place = (x * a + y * d + z * g, x * b + y * e + z * h, x * c + y * f + z * i)
            joints += joints_for(self._build, leg, *place)
        return joints
