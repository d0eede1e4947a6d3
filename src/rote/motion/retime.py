"""The same path at another pace: as fast as limits of speed, acceleration and jerk allow.

The path is the recorded motion with its noise taken out, within `TOLERANCE_RAD`; its parameter is
the recorded time, so that a pause or a turn is a smooth place like any other. Along it the highest
speed is found by reachability, a pass backwards and one forwards. Averaging that speed over a
short window bounds the jerk. Where the result is still too fast, the speed there is lowered and
all is done again; what is left is taken away by stretching the whole.

What is promised is measured on the samples that are returned, at ten times their rate: all limits
on the smooth curve through them (a cubic spline that holds before and after); speed and
acceleration also on what players interpolate, over any stretch as long as a sample. Closer there
is nothing to promise: a curve that never overshoots stops dead at every turn, so that its
acceleration has steps, and its jerk at ten times the rate is that of the steps alone.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from rote.errors import BadRequestError
from rote.messages import Interpolation
from rote.motion.interpolate import sample
from rote.motion.limits import (
    MAX_PLAYED_RAD_S,
    RETIME_RAD_S2,
    RETIME_RAD_S3,
    most_played_rad_s,
)
from rote.motion.spline import curve
from rote.motion.track import Array, Mark, Track
from rote.motion.track_build import joints_of

__all__ = ["retime", "RateLimits", "Limit"]

TOLERANCE_RAD = 0.01
"""No joint moves further from the recorded path than this."""
FINER = 10
"""Limits hold at this many times the rate of the samples."""

Limit = float | Sequence[float] | Mapping[str, float]
"""One number for all joints, one per column, or some by name."""

_GRID_HZ = 100.0
_MIN_GRID, _MAX_GRID = 64, 60_000
_CALM_HZ = 5.0  # hands move slower than this; what is faster may be noise
_NOISE_SHARE = 0.95  # the share of the tolerance for smoothing; the rest is for resampling
_MAX_SPEEDUP = 20.0  # through a pause, where no limit applies
_ROUNDS = 6
_LAW_FINER = 4
_WINDOWS = (0.7, 1.2, 2.0)  # times acceleration over jerk: which is best depends on the motion
_MIN_WINDOW_S = 0.05
_GOAL = 0.997  # of a limit
_MAX_STEPS = 300_000


class RateLimits(NamedTuple):
    """The maximum per joint, each (joints,)."""

    rad_s: Array
    rad_s2: Array
    rad_s3: Array


class _Path(NamedTuple):
    """The motion over recorded time, evenly sampled."""

    step_s: float
    joints_rad: Array
    """(grid, joints)."""

    @property
    def length_s(self) -> float:
        return self.step_s * (len(self.joints_rad) - 1)

    def at(self, places_s: Array) -> Array:
        return curve(self.step_s, self.joints_rad, places_s)


class _Law(NamedTuple):
    """The time law: positions on the path, evenly in played time."""

    step_s: float
    path_s: Array


def retime(
    track: Track,
    *,
    velocity: Limit | None = None,
    acceleration: Limit | None = None,
    jerk: Limit | None = None,
    rate_hz: float | None = None,
    fastest: bool = False,
) -> Track:
    """Return the same motion, from rest to rest, within limits, and never faster than recorded.

    `velocity`, `acceleration` and `jerk` are in rad/s, rad/s2 and rad/s3: one number, one per
    column, or some by joint name; the defaults suit an arm. With `fastest` the motion is as fast as
    the limits allow, even if it was recorded slower. The history states the largest deviation from
    the path. Raises `BadRequestError` for a limit that is not a positive number or cannot be met.
    """
    track.require_samples(2)
    limits = _limits(track, velocity, acceleration, jerk)
    rate = max(track.rate_hz, 50.0) if rate_hz is None else float(rate_hz)
    if not 10.0 <= rate <= 2000.0:
        raise BadRequestError(f"the rate is {rate:g} Hz; possible is 10 to 2000 Hz")
    path = _path(track)
    most_speed = _MAX_SPEEDUP if fastest else 1.0
    laws = [_law(path, limits, rate, most_speed, window) for window in _WINDOWS]
    tried = [_settled(track, path, law, limits, rate) for law in laws]
    times_s, joints_rad, law, off_rad = min(tried, key=lambda result: result[0][-1])
    return _result(track, times_s, joints_rad, law, off_rad)


def _limits(
    track: Track, velocity: Limit | None, acceleration: Limit | None, jerk: Limit | None
) -> RateLimits:
    fast = {name: float(most_played_rad_s([joint])[0]) for name, joint in joints_of(track).items()}
    return RateLimits(
        _per_joint(track, "velocity", velocity, fast, MAX_PLAYED_RAD_S),
        _per_joint(track, "acceleration", acceleration, {}, RETIME_RAD_S2),
        _per_joint(track, "jerk", jerk, {}, RETIME_RAD_S3),
    )


def _per_joint(
    track: Track, what: str, limit: Limit | None, known: Mapping[str, float], usual: float
) -> Array:
    """Return one limit per column; a joint that is not named has its usual one."""
    named = limit if isinstance(limit, Mapping) else {}
    track.choose_joints(named or track.names)
    if limit is None or isinstance(limit, Mapping):
        values = np.array([named.get(n, known.get(n, usual)) for n in track.names])
    else:
        values = np.array(limit, dtype=np.float64)
    if values.shape not in {(), (len(track.names),)}:
        raise BadRequestError(
            f"{values.size} limits of {what} do not fit {len(track.names)} joints",
            "Give one for all, one per joint, or some by name.",
        )
    # Written this way round, the comparison refuses NaN as well.
    if not ((values > 0) & (values <= 1e6)).all():
        raise BadRequestError(f"a limit of {what} is above 0 and at most 1e6, not {limit}")
    return np.broadcast_to(values, (len(track.names),)).astype(np.float64)


# ---- the path -----------------------------------------------------------------------------------


def _path(track: Track) -> _Path:
    """Return the recorded motion without its noise, evenly, from its first pose to its last."""
    origin_s = track.times_s - track.times_s[0]
    steps = max(round(track.duration_s * max(track.rate_hz, _GRID_HZ)), _MIN_GRID)
    while steps <= _MAX_GRID:
        at_s = np.linspace(0.0, track.duration_s, steps + 1)
        recorded = sample(origin_s, track.joints_rad, at_s, Interpolation.CUBIC)
        step_s = track.duration_s / steps
        path = _Path(step_s, _calmed(recorded, step_s))
        if np.abs(path.at(origin_s) - track.joints_rad).max() < TOLERANCE_RAD:
            return path
        steps *= 2  # samples that are not evenly apart fall between those of the path
    raise BadRequestError(
        f"{len(track)} samples over {track.duration_s:.0f} s are too many or too rough to retime",
        "Trim, resample or smooth the track first.",
    )


def _calmed(values: Array, step_s: float) -> Array:
    """Remove, joint by joint, as much of the high frequencies as the tolerance allows."""
    samples = len(values)
    line = values[0] + np.linspace(0.0, 1.0, samples)[:, None] * (values[-1] - values[0])
    bent = values - line
    # Extended as an odd function about its ends it has no step, and the ends stay where they are.
    swings = np.fft.rfft(np.concatenate([bent, -bent[-2:0:-1]]), axis=0)
    hz = np.fft.rfftfreq(2 * samples - 2, step_s)[:, None]
    low, high = np.full(values.shape[1], np.log(_CALM_HZ)), np.full(values.shape[1], np.log(1e4))
    calm = bent
    for _ in range(9):
        middle = (low + high) / 2
        gain = 1.0 / (1.0 + (hz / np.exp(middle)) ** 8)
        tried = np.fft.irfft(swings * gain, 2 * samples - 2, axis=0)[:samples]
        near = np.abs(tried - bent).max(axis=0) <= _NOISE_SHARE * TOLERANCE_RAD
        calm = np.where(near, tried, calm)
        low, high = np.where(near, low, middle), np.where(near, middle, high)
    return np.asarray(line + calm)


# ---- the fastest pace on it ---------------------------------------------------------------------


def _law(path: _Path, limits: RateLimits, rate: float, most_speed: float, window: float) -> _Law:
    """Return the time law: the fastest there is, smoothed, slowed where that was too fast."""
    step_s = 1.0 / (_LAW_FINER * rate)
    window_s = window * max(float((limits.rad_s2 / limits.rad_s3).max()), _MIN_WINDOW_S)
    width = int(np.ceil(window_s / step_s))
    reach = _Reach(path, limits.rad_s2)
    speeds = np.abs(np.gradient(path.joints_rad, path.step_s, axis=0))
    caps = np.minimum(most_speed, (limits.rad_s / np.maximum(speeds, 1e-9)).min(axis=1))
    for _ in range(_ROUNDS):
        law = _smoothed(path, reach.speeds(caps), step_s, width)
        excess = _excess(path.at(law.path_s), step_s, limits)
        if excess.max() <= 1.0:
            break
        caps = _lowered(path, law, caps, excess, width)
    return law


class _Reach:
    """Which speeds along a path can be reached and left again within an acceleration limit."""

    def __init__(self, path: _Path, most_rad_s2: Array) -> None:
        first = np.gradient(path.joints_rad, path.step_s, axis=0)
        second = np.zeros_like(first)
        second[1:-1] = np.diff(path.joints_rad, 2, axis=0) / path.step_s**2
        first = np.where(np.abs(first) < 1e-9, 1e-9, first)
        # A joint's acceleration is first * u + second * x, with x the path speed squared and u
        # half its slope. It keeps within its limit while -room + bend * x <= u <= room + bend * x.
        self._room, self._bend = most_rad_s2 / np.abs(first), -second / first
        self._step_s = path.step_s
        self._most = self._agreed()
        self._gain = 1.0 + 2.0 * path.step_s * self._bend
        self._push = 2.0 * path.step_s * self._room
        falls = self._gain < -1e-9
        halts = np.where(falls, self._push / np.where(falls, -self._gain, 1.0), np.inf)
        self._most = np.minimum(self._most, halts.min(axis=1))
        self._inverse = np.where(self._gain > 1e-9, 1.0 / np.maximum(self._gain, 1e-9), np.inf)

    def _agreed(self) -> Array:
        """Return the largest x at each place for which all joints leave some u; (grid,)."""
        most = np.empty(len(self._room))
        for begin in range(0, len(most), 1000):
            room, bend = self._room[begin : begin + 1000], self._bend[begin : begin + 1000]
            against = bend[:, :, None] - bend[:, None, :]
            both = room[:, :, None] + room[:, None, :]
            x = np.where(against > 0, both / np.where(against > 0, against, 1.0), np.inf)
            most[begin : begin + 1000] = x.min(axis=(1, 2))
        return most

    def speeds(self, caps: Array) -> Array:
        """Return the highest speed at each place, 0 at both ends; `caps` are (grid,)."""
        most = np.minimum(caps**2, self._most)
        last = len(most) - 1
        x = 0.0
        most[last] = x
        for i in range(last - 1, -1, -1):
            x = min(most[i], ((x + self._push[i]) * self._inverse[i]).min())
            most[i] = x
        x = most[0] = 0.0
        for i in range(last):
            x = max(min(most[i + 1], (x * self._gain[i] + self._push[i]).min()), 0.0)
            most[i + 1] = x
        return np.sqrt(most)


def _smoothed(path: _Path, speeds: Array, step_s: float, width: int) -> _Law:
    """Return the law of these path speeds, averaged in time over `width` steps and half of it."""
    means = np.maximum((speeds[1:] + speeds[:-1]) / 2, 1e-6)
    at_s = np.concatenate([[0.0], np.cumsum(path.step_s / means)])
    _check_length(float(at_s[-1]), 1.0 / (_LAW_FINER * step_s))
    even_s = np.arange(int(np.ceil(at_s[-1] / step_s)) + 1) * step_s
    places = np.interp(even_s, at_s, np.arange(len(speeds)) * path.step_s)
    paces = np.diff(places)
    for size in (width, width // 2 + 1):
        paces = np.convolve(paces, np.full(size, 1.0 / size))
    path_s = np.concatenate([[0.0], np.cumsum(paces)])
    return _Law(step_s, np.minimum(path_s * (path.length_s / path_s[-1]), path.length_s))


def _excess(values: Array, step_s: float, limits: RateLimits) -> Array:
    """Return how much slower each moment must be for all limits to hold; 1 where they do.

    `values` is (n, joints); the result is (n,). Before and after, the pose is held.
    """
    held = np.concatenate([values[:1], values[:1], values, values[-1:]])
    excess = np.zeros(len(values))
    for order, most in enumerate(limits, start=1):
        slopes = np.abs(np.diff(held, order, axis=0)) / step_s**order
        worst = (slopes / most).max(axis=1) ** (1.0 / order)
        excess = np.maximum(excess, worst[: len(values)])
    return excess


def _lowered(path: _Path, law: _Law, caps: Array, excess: Array, width: int) -> Array:
    """Return caps that are lower where the law was too fast, and a window around it."""
    padded = np.pad(excess, (width, width), mode="edge")
    wide = np.lib.stride_tricks.sliding_window_view(padded, 2 * width + 1).max(axis=1)
    paces = np.gradient(law.path_s, law.step_s)
    places = np.arange(len(caps)) * path.step_s
    rising = law.path_s + 1e-12 * np.arange(len(law.path_s))
    wanted = np.interp(places, rising, np.where(wide > 1.0, paces / wide, np.inf))
    return np.asarray(np.minimum(caps, np.maximum(wanted, 1e-3)))


# ---- the samples --------------------------------------------------------------------------------


def _settled(
    track: Track, path: _Path, law: _Law, limits: RateLimits, rate: float
) -> tuple[Array, Array, _Law, float]:
    """Return times, poses, the law and the largest deviation, stretched until all holds."""
    least = 1.0
    while True:
        least += 0.02
        length_s = law.step_s * (len(law.path_s) - 1)
        _check_length(length_s, rate)
        steps = max(int(np.ceil(length_s * rate - 1e-6)), 4)
        law = law._replace(step_s=law.step_s * steps / rate / length_s)
        joints_rad = path.at(_places(law, np.arange(steps + 1) / rate))
        off_rad = _deviation(track, law, joints_rad, rate)
        slower = _promised(joints_rad, rate, limits)
        if slower <= 1.0 and off_rad <= TOLERANCE_RAD:
            return np.arange(steps + 1) / rate, joints_rad, law, off_rad
        law = law._replace(step_s=law.step_s * max(slower / _GOAL, least))


def _check_length(seconds: float, rate: float) -> None:
    if seconds * rate > _MAX_STEPS:
        raise BadRequestError(
            f"with these limits it would take {seconds:.0f} s or more; "
            f"{_MAX_STEPS / rate:.0f} s are possible at {rate:g} Hz",
            "Allow more, or smooth the track first.",
        )


def _places(law: _Law, at_s: Array) -> Array:
    """Return where on the path the law is at these moments."""
    places = curve(law.step_s, law.path_s[:, None], at_s)[:, 0]
    return np.clip(places, 0.0, law.path_s[-1])


def _promised(joints_rad: Array, rate: float, limits: RateLimits) -> float:
    """Return by how much the samples must be slower for the limits to hold on their curve."""
    fine_s = 1.0 / (FINER * rate)
    # A few samples before and after, where the curve swings out and in.
    at_s: Array = np.arange(-4.0 * FINER, (len(joints_rad) + 3) * FINER + 1) * fine_s
    smooth = _excess(curve(1.0 / rate, joints_rad, at_s), fine_s, limits)
    shown = sample(np.arange(len(joints_rad)) / rate, joints_rad, at_s, Interpolation.CUBIC)
    speeds = (shown[FINER:] - shown[:-FINER]) * rate
    gains = (speeds[FINER:] - speeds[:-FINER]) * rate
    most = max((np.abs(speeds) / limits.rad_s).max(), (np.abs(gains) / limits.rad_s2).max() ** 0.5)
    return float(max(smooth.max(), most))


def _deviation(track: Track, law: _Law, joints_rad: Array, rate: float) -> float:
    """Return the largest distance of any joint from where it was recorded, sample by sample."""
    recorded_s = track.times_s - track.times_s[0]
    played = curve(1.0 / rate, joints_rad, _moments(law, recorded_s))
    return float(np.abs(played - track.joints_rad).max())


def _moments(law: _Law, places_s: Array) -> Array:
    """Return when the law is at these places of the path."""
    rising = law.path_s + 1e-12 * np.arange(len(law.path_s))
    return np.asarray(np.interp(places_s, rising, np.arange(len(law.path_s)) * law.step_s))


def _result(track: Track, times_s: Array, joints_rad: Array, law: _Law, off_rad: float) -> Track:
    begin_s = float(track.times_s[0])
    marked = _moments(law, np.array([mark.time_s - begin_s for mark in track.marks]))
    marks = [
        Mark(begin_s + float(moment_s), mark.label)
        for mark, moment_s in zip(track.marks, marked, strict=True)
    ]
    return track.edited(
        f"retime {track.duration_s:.2f} to {times_s[-1]:.2f} s, path kept within {off_rad:.4f} rad",
        times_s=begin_s + times_s,
        joints_rad=joints_rad,
        marks=tuple(marks),
    )
