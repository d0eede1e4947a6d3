"""Retimes a path: as fast as limits of speed, acceleration and jerk allow.

The path is the recorded motion without its noise, within `TOLERANCE_RAD`. The highest speed along
it within the limits of speed and acceleration is found by reachability, in one backward and one
forward pass. The resulting motion has steps in its acceleration. Averaging it over a window, whose
length follows from the limits of acceleration and jerk, removes them. An average of poses is never
faster than the poses, and on a straight path from rest to rest it is time-optimal. If it would
leave the path by more than the tolerance, the position on the path is averaged instead. If the
result is still too fast somewhere, the speed there is lowered and the search repeats. The quickest
of several candidates is used, and any remaining excess is removed by stretching the whole motion.

The guarantees are measured on the returned samples: all limits hold everywhere on the smooth curve
through them (a cubic spline that holds before and after). Speed and acceleration also hold for the
interpolation of players, at twenty times the rate, over any interval as long as a sample. Nothing
can be guaranteed over shorter intervals: a curve that never overshoots stops at every turn, so its
acceleration has steps, and its jerk at twenty times the rate is that of the steps alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rote.errors import BadRequestError
from rote.messages import Interpolation
from rote.motion.check.limits import (
    MAX_PLAYED_RAD_S,
    RETIME_RAD_S2,
    RETIME_RAD_S3,
    playback_limits_rad_s,
)
from rote.motion.edit.align import nearest_moments
from rote.motion.edit.spline import curve, peaks, slopes
from rote.motion.interpolate import sample
from rote.motion.track import Array, Mark, Track
from rote.motion.track_build import joints_of

__all__ = ["retime", "recorded_path", "RateLimits", "Limit"]

TOLERANCE_RAD = 0.01
"""The maximum deviation of a joint from the recorded path."""
FINER = 20
"""Limits hold at this many times the rate of the samples."""

Limit = float | Sequence[float] | Mapping[str, float]
"""One number for all joints, one per column, or some by name."""

_GRID_HZ = 100.0
_MIN_GRID, _MAX_GRID = 64, 240_000
_CALM_HZ = 5.0  # hands move slower than this; what is faster may be noise
_NOISE_SHARE = 0.95  # of the tolerance may go into smoothing; the rest is for resampling
_MAX_SPEEDUP = 20.0  # through a pause, where no limit binds
_TURN_STEPS = 3.0  # a turn counts as distance: that of its bend in this many steps of the path
_TURN_SAMPLES, _TURN_SHARE = 2.5, 0.82  # what players make of a parabola around its lowest point
_STILL_SHARE = 0.01  # the speed that a pause counts as, relative to the highest speed
_ROUNDS, _FLAT_ROUNDS, _STRICT_ROUNDS = 10, 7, 6
_POLISHED = 3  # candidates that are refined, of those that were tried
_ROUGHLY_FINER = 5
_LAW_HZ, _LAW_FINER = 400.0, 2
_AROUND_S = 0.02  # how far from its time by the time law a pose is searched
_GOAL = 0.9995  # of a limit
_MAX_S = 2 * 3600.0
_MAX_STEPS = 4_000_000
_LONG = 10_000  # steps of a path above which fewer candidates are tried
_BLOCK = 1 << 10  # samples that are measured together


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

    def at(self, positions_s: Array) -> Array:
        return curve(self.step_s, self.joints_rad, positions_s)


class _TimeLaw(NamedTuple):
    """The position on the path over played time, evenly sampled, and the poses there."""

    step_s: float
    path_s: Array
    """The position on the path, in seconds of the recording; (n,)."""
    joints_rad: Array
    """(n, joints)."""

    @property
    def length_s(self) -> float:
        return self.step_s * (len(self.path_s) - 1)


class _Smoothing(NamedTuple):
    """One way to smooth a motion."""

    share: float
    """The share of the acceleration limit to use: less needs less jerk and a shorter window."""
    windows: tuple[float, ...]
    """The windows to average over, in times of acceleration over jerk."""
    corners: tuple[float, ...]
    """Further windows, in samples: no corner is sharper than samples can represent."""
    poses: bool
    """Whether poses are averaged, or positions on the path."""


_BARE = (
    _Smoothing(1.0, (1.0,), (2.0, 2.0), poses=True),
    _Smoothing(0.98, (1.0,), (2.0, 2.0), poses=True),
    _Smoothing(1.0, (1.0,), (1.0,), poses=True),
)
"""Windows of only a few samples, for jerk limits that need hardly more."""
_SHARP = (
    *_BARE,
    _Smoothing(0.99, (1.0,), (2.0,), poses=True),
    _Smoothing(0.98, (1.0,), (1.5, 1.5), poses=True),
    _Smoothing(0.98, (1.0,), (1.0,), poses=True),
)
"""The candidates if acceleration over jerk is less than a sample. Which of them is the quickest
depends on where the corners of the acceleration fall between samples, so all are tried.
"""
_POSES = (
    *_BARE,
    *(_Smoothing(share, (1.3, 0.4), (1.0, 1.0), poses=True) for share in (1.0, 0.93)),
    *(_Smoothing(share, (2.0,), (1.0, 1.0), poses=True) for share in (1.0, 0.93, 0.85)),
    *(_Smoothing(share, (1.0,), (2.0, 1.0), poses=True) for share in (0.85, 0.7, 0.55, 0.4, 0.3)),
)
_PLACES = tuple(
    _Smoothing(1.0, (window, window / 2), (1.0,), poses=False) for window in (0.7, 1.2, 2.0)
)
_FEW = (
    _Smoothing(0.93, (2.0,), (1.0, 1.0), poses=True),
    _Smoothing(0.85, (1.3, 0.4), (1.0, 1.0), poses=True),
)


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
    limits = _rate_limits(track, velocity, acceleration, jerk)
    rate = max(track.rate_hz, 50.0) if rate_hz is None else float(rate_hz)
    if not 10.0 <= rate <= 2000.0:
        raise BadRequestError(f"the rate is {rate:g} Hz; possible is 10 to 2000 Hz")
    path = _denoised_path(track)
    most_speed = _MAX_SPEEDUP if fastest else 1.0
    reach = _Reach(path, limits, most_speed, rate)
    long = len(path.joints_rad) > _LONG
    tried: list[tuple[_RetimedSamples, _Smoothing, Array]] = []
    for way in _smoothing_candidates(limits, rate, long=long):
        if tried and long and not way.poses:
            break  # needed only for paths that averaged poses would leave
        best_s = min((float(found.times_s[-1]) for found, _, _ in tried), default=np.inf)
        if reach.least_s(way.share) >= best_s:
            continue
        law, caps = _find_time_law(reach, limits, rate, way)
        found = _stretch_until_within_limits(track, law, limits, rate, way)
        if found is not None:
            tried.append((found, way, caps))
    assert tried  # averaged positions stay on the path
    tried.sort(key=lambda each: float(each[0].times_s[-1]))
    best = tried[0][0]
    for _, way, caps in tried[: 1 if long else _POLISHED]:
        law, _ = _find_time_law(reach, limits, rate, way, caps)
        found = _stretch_until_within_limits(track, law, limits, rate, way, float(best.times_s[-1]))
        best = best if found is None else found
    return _make_track(track, best)


def _smoothing_candidates(limits: RateLimits, rate: float, *, long: bool) -> tuple[_Smoothing, ...]:
    """Return the smoothings that are worth trying."""
    if float((limits.rad_s2 / limits.rad_s3).max()) * rate < 1.0:
        return (_BARE[0], _PLACES[1]) if long else _SHARP + _PLACES[:1]
    return (*_FEW, _PLACES[1]) if long else _POSES + _PLACES


def _rate_limits(
    track: Track, velocity: Limit | None, acceleration: Limit | None, jerk: Limit | None
) -> RateLimits:
    fast = {
        name: float(playback_limits_rad_s([joint])[0]) for name, joint in joints_of(track).items()
    }
    return RateLimits(
        _per_joint(track, "velocity", velocity, fast, MAX_PLAYED_RAD_S),
        _per_joint(track, "acceleration", acceleration, {}, RETIME_RAD_S2),
        _per_joint(track, "jerk", jerk, {}, RETIME_RAD_S3),
    )


def _per_joint(
    track: Track, what: str, limit: Limit | None, known: Mapping[str, float], usual: float
) -> Array:
    """Return one limit per column; a joint that is not named has the usual limit."""
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


def recorded_path(track: Track) -> tuple[float, Array]:
    """Return the path that a track is retimed along: seconds between poses, and poses."""
    path = _denoised_path(track)
    return path.step_s, path.joints_rad


def _denoised_path(track: Track) -> _Path:
    """Return the recorded motion without its noise, evenly, from its first pose to its last."""
    origin_s = track.times_s - track.times_s[0]
    steps = max(round(track.duration_s * max(track.rate_hz, _GRID_HZ)), _MIN_GRID)
    if steps > _LONG:
        steps = max(round(track.duration_s * _GRID_HZ), _LONG)
    while steps <= _MAX_GRID:
        at_s = np.linspace(0.0, track.duration_s, steps + 1)
        recorded = sample(origin_s, track.joints_rad, at_s, Interpolation.CUBIC)
        step_s = track.duration_s / steps
        path = _Path(step_s, _remove_noise(recorded, step_s))
        if np.abs(path.at(origin_s) - track.joints_rad).max() < TOLERANCE_RAD:
            return path
        steps *= 2  # unevenly spaced samples fall between those of the path
    raise BadRequestError(
        f"{len(track)} samples over {track.duration_s:.0f} s are too many or too rough to retime",
        "Trim, resample or smooth the track first.",
    )


def _remove_noise(values: Array, step_s: float) -> Array:
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


class _Reach:
    """Which speeds along a path can be reached and left again within speed and acceleration.

    The speed is measured along a path length that grows with the movement of the joints, so that
    neither a slow beginning nor a pause of the recording costs precision. Where all joints turn
    back at once, it grows with their bend.
    """

    def __init__(self, path: _Path, limits: RateLimits, most_speed: float, rate: float) -> None:
        self.path = path
        rates = np.gradient(path.joints_rad, path.step_s, axis=0)
        bends = np.zeros_like(rates)
        bends[1:-1] = np.diff(path.joints_rad, 2, axis=0) / path.step_s**2
        moved = np.square(rates / limits.rad_s2).sum(axis=1)
        turned = np.square(bends / limits.rad_s2).sum(axis=1) * (_TURN_STEPS * path.step_s) ** 2
        still = _STILL_SHARE * np.sqrt((moved + turned).max()) + 1e-9
        self._way = np.sqrt(moved + turned + still**2)  # per second of the recording
        growth = np.gradient(self._way, path.step_s)
        first = rates / self._way[:, None]
        second = (bends - first * growth[:, None]) / np.square(self._way)[:, None]
        self._steps = path.step_s * (self._way[1:] + self._way[:-1]) / 2
        fast = (limits.rad_s / np.maximum(np.abs(first), 1e-12)).min(axis=1)
        self._caps = np.minimum(most_speed * self._way, fast)
        # A joint's acceleration is first * u + second * x, with x the speed squared and u half its
        # slope. It keeps within its limit while -room + bend * x <= u <= room + bend * x.
        first = np.where(np.abs(first) < 1e-12, 1e-12, first)
        most_rad_s2 = np.where(_find_turns(first, second, limits.rad_s2, rate), _TURN_SHARE, 1.0)
        room, bend = most_rad_s2 * limits.rad_s2 / np.abs(first), -second / first
        self._most = _max_squared_speed(room, bend)
        steps = np.append(self._steps, 0.0)[:, None]
        self._gain, self._push = 1.0 + 2.0 * steps * bend, 2.0 * steps * room
        falls = self._gain < -1e-9
        halts = np.where(falls, self._push / np.where(falls, -self._gain, 1.0), np.inf)
        self._most = np.minimum(self._most, halts.min(axis=1))
        self._inverse = np.where(self._gain > 1e-9, 1.0 / np.maximum(self._gain, 1e-9), np.inf)

    def fresh_caps(self) -> Array:
        """Return the highest speeds that the limits of speed allow, (grid,)."""
        return np.array(self._caps)

    def speeds(self, caps: Array, share: float) -> Array:
        """Return the highest speed per position, 0 at both ends, with a share of acceleration."""
        # One step per position, a million in all: no new arrays are allocated.
        most = np.minimum(caps**2, share * self._most).tolist()
        last = len(most) - 1
        push = list(share * self._push)
        gain, inverse = list(self._gain), list(self._inverse)
        reached = np.empty(self._gain.shape[1])
        add, multiply, least = np.add, np.multiply, np.minimum.reduce
        x = most[last] = 0.0
        for i in range(last - 1, -1, -1):
            add(push[i], x, reached)
            x = most[i] = min(most[i], float(least(multiply(reached, inverse[i], reached))))
        x = most[0] = 0.0
        for i in range(last):
            multiply(gain[i], x, reached)
            fastest = float(least(add(reached, push[i], reached)))
            x = most[i + 1] = max(min(most[i + 1], fastest), 0.0)
        return np.asarray(np.sqrt(most))

    def least_s(self, share: float) -> float:
        """Return the minimum duration with a share of acceleration."""
        return self._duration_s(self.speeds(self._caps, share))

    def _duration_s(self, speeds: Array) -> float:
        means = np.maximum((speeds[1:] + speeds[:-1]) / 2, 1e-6 * self._way.max())
        return float((self._steps / means).sum())

    def positions(self, speeds: Array, rate: float, step_s: float) -> tuple[Array, Array]:
        """Return the positions on the path at even times, (n,), and the times of its samples."""
        means = np.maximum((speeds[1:] + speeds[:-1]) / 2, 1e-6 * self._way.max())
        at_s = np.concatenate([[0.0], np.cumsum(self._steps / means)])
        _check_length(float(at_s[-1]), rate)
        even_s = np.arange(np.ceil(at_s[-1] / step_s) + 1.0) * step_s
        known_s = np.arange(float(len(speeds))) * self.path.step_s
        return _hermite(at_s, known_s, speeds / self._way, even_s), at_s


def _find_turns(first: Array, second: Array, most_rad_s2: Array, rate: float) -> NDArray[np.bool_]:
    """Return where a joint turns back, including a few samples around it, (grid, joints).

    There, players interpolate with more acceleration than the samples have.
    """
    near = np.abs(first) <= _TURN_SAMPLES / rate * np.sqrt(most_rad_s2 * np.abs(second))
    crossed = first[1:] * first[:-1] < 0
    near[1:] |= crossed
    near[:-1] |= crossed
    return np.asarray(near & (second != 0))


def _max_squared_speed(room: Array, bend: Array) -> Array:
    """Return the largest x at each position for which some u suits all joints; (grid,)."""
    most = np.empty(len(room))
    for begin in range(0, len(most), 1000):
        some, bent = room[begin : begin + 1000], bend[begin : begin + 1000]
        against = bent[:, :, None] - bent[:, None, :]
        both = some[:, :, None] + some[:, None, :]
        x = np.where(against > 0, both / np.where(against > 0, against, 1.0), np.inf)
        most[begin : begin + 1000] = x.min(axis=(1, 2))
    return most


def _hermite(times_s: Array, values: Array, slopes: Array, at_s: Array) -> Array:
    """Return a monotone cubic through values with these slopes, at the times `at_s`."""
    width = np.diff(times_s)
    secants = np.diff(values) / width
    left = np.clip(np.searchsorted(times_s, at_s, side="right") - 1, 0, len(width) - 1)
    u = np.clip((at_s - times_s[left]) / width[left], 0.0, 1.0)
    most = 3.0 * secants[left]
    begin, end = np.minimum(slopes[left], most), np.minimum(slopes[left + 1], most)
    return np.asarray(
        values[left]
        + u * u * (3.0 - 2.0 * u) * (values[left + 1] - values[left])
        + width[left] * u * (1.0 - u) * ((1.0 - u) * begin - u * end)
    )


def _find_time_law(
    reach: _Reach, limits: RateLimits, rate: float, way: _Smoothing, caps: Array | None = None
) -> tuple[_TimeLaw, Array]:
    """Return a time law and the speeds it was capped at.

    It is the fastest one, smoothed, and slowed where that exceeds a limit. With the `caps` of a law
    that was found before, it is slowed where the samples of that law would break a guarantee.
    """
    strict = caps is not None
    finer = 1 if len(reach.path.joints_rad) > _LONG else _LAW_FINER
    step_s = 1.0 / (rate * max(finer, round(_LAW_HZ / rate)))
    longest_s = way.share * float((limits.rad_s2 / limits.rad_s3).max())
    sizes = [int(np.ceil(window * longest_s / step_s)) for window in way.windows]
    sizes += [max(round(samples / rate / step_s), 1) for samples in way.corners]
    reached = sum(sizes) // 2
    caps = reach.fresh_caps() if caps is None else caps
    for number in range(_STRICT_ROUNDS if strict else _ROUNDS):
        speeds = reach.speeds(caps, way.share)
        positions, at_s = reach.positions(speeds, rate, step_s)
        law = _smooth_law(reach.path, positions, step_s, sizes, poses=way.poses)
        brisk, jerky = _sampled_excess(law, rate, limits) if strict else _law_excess(law, limits)
        if max(brisk.max(), jerky.max()) <= 1.0:
            break
        moments = at_s / step_s + (sum(sizes) - len(sizes)) / 2
        caps = np.minimum(caps, speeds / _max_excess_around(brisk, reached, moments))
        # A jerk limit is exceeded where the speed has a peak, so the peak is flattened.
        peaks_too = (
            speeds
            if strict or number >= _FLAT_ROUNDS
            else _highest_speeds(speeds, at_s, reached * step_s)
        )
        caps = np.minimum(caps, peaks_too / _max_excess_around(jerky, 2 * reached, moments))
        caps = np.maximum(caps, 1e-4 * reach.fresh_caps())
    return law, caps


def _max_excess_around(excess: Array, reached: int, moments: Array) -> Array:
    """Return the greatest excess within `reached` steps of each moment, at least 1."""
    wide = sliding_max(excess, reached)
    return np.maximum(np.interp(moments, np.arange(len(wide)), wide), 1.0)


def _highest_speeds(speeds: Array, at_s: Array, around_s: float) -> Array:
    """Return the highest speed within `around_s` before or after, (grid,)."""
    even_s = np.linspace(0.0, float(at_s[-1]), 4 * len(at_s))
    even = np.interp(even_s, at_s, speeds)
    wide = sliding_max(even, int(np.ceil(around_s / max(even_s[1], 1e-9))))
    return np.maximum(np.interp(at_s, even_s, wide), speeds)


def sliding_max(values: Array, reach: int) -> Array:
    """Return the greatest value up to `reach` elements before and after each."""
    reach = min(reach, len(values))
    width, found = 1, np.pad(values, reach, constant_values=-np.inf)
    while 2 * width <= 2 * reach + 1:
        found = np.maximum(found[:-width], found[width:])
        width *= 2
    rest = 2 * reach + 1 - width
    return np.maximum(found[: len(values)], found[rest : rest + len(values)])


def _smooth_law(
    path: _Path, positions: Array, step_s: float, sizes: list[int], *, poses: bool
) -> _TimeLaw:
    """Return the law of these positions, averaged in time over windows of `sizes` steps."""
    path_s = np.clip(_running_means(positions[:, None], sizes)[:, 0], 0.0, path.length_s)
    joints_rad = _running_means(path.at(positions), sizes) if poses else path.at(path_s)
    return _TimeLaw(step_s, path_s, joints_rad)


def _running_means(values: Array, sizes: list[int]) -> Array:
    """Return running means over windows, one after the other; before and after, values hold."""
    first, last = values[:1].copy(), values[-1:].copy()
    for size in sizes:
        held = [np.repeat(first, size, axis=0), values, np.repeat(last, size - 1, axis=0)]
        # Relative to the first value, so that long sums lose no digits.
        sums = np.cumsum(np.concatenate(held) - first, axis=0)
        values = (sums[size:] - sums[:-size]) / size + first
    return values


def _law_excess(law: _TimeLaw, limits: RateLimits) -> tuple[Array, Array]:
    """Return how much slower each moment must be to respect speed and acceleration, and jerk.

    Both are (n,). Before and after, the pose is held.
    """
    values, step_s = law.joints_rad, law.step_s
    brisk, jerky = np.zeros(len(values)), np.zeros(len(values))
    for column, rad_s, rad_s2, rad_s3 in zip(values.T, *limits, strict=True):
        slopes = np.concatenate([column[:1], column[:1], column, column[-1:]])
        for order, most in enumerate((rad_s, rad_s2, rad_s3), start=1):
            slopes = np.diff(slopes) / step_s
            worst = (np.abs(slopes[: len(values)]) / most) ** (1.0 / order)
            np.maximum(jerky if order > 2 else brisk, worst, out=jerky if order > 2 else brisk)
    return brisk, jerky


def _sampled_excess(law: _TimeLaw, rate: float, limits: RateLimits) -> tuple[Array, Array]:
    """Return the same for the guarantees of the law's samples."""
    times_s = np.arange(np.ceil(law.length_s * rate) + 1.0) / rate
    values = curve(law.step_s, law.joints_rad, times_s)
    brisk, jerky = np.zeros(len(values)), np.zeros(len(values))
    for rows, (speeds, bends, jerks) in slopes(1.0 / rate, values):
        at = np.clip(rows, 0, len(values) - 1)
        fast = (speeds / limits.rad_s).max(axis=1)
        np.maximum.at(brisk, at, np.maximum(fast, (bends / limits.rad_s2).max(axis=1) ** 0.5))
        np.maximum.at(jerky, at, (jerks / limits.rad_s3).max(axis=1) ** (1 / 3))
    for begin, shown in _playback_excess_blocks(values, rate, limits, _ROUGHLY_FINER):
        at = np.clip(np.arange(begin, begin + len(shown)), 0, len(values) - 1)
        np.maximum.at(brisk, at, shown)
    fine_s = np.arange(float(len(law.path_s))) * law.step_s
    return np.interp(fine_s, times_s, brisk), np.interp(fine_s, times_s, jerky)


# ---- the samples --------------------------------------------------------------------------------


class _RetimedSamples(NamedTuple):
    """Samples that keep all limits."""

    times_s: Array
    joints_rad: Array
    law: _TimeLaw
    off_rad: float


def _stretch_until_within_limits(
    track: Track,
    law: _TimeLaw,
    limits: RateLimits,
    rate: float,
    way: _Smoothing,
    best_s: float = np.inf,
) -> _RetimedSamples | None:
    """Return the samples of a law, stretched until all limits hold.

    None if they are not quicker than `best_s`, or if averaged poses leave the path. Averaged
    positions leave it only by the distance between samples, and come nearer as they get slower.
    """
    least = 1.0
    while True:
        _check_length(law.length_s, rate)
        steps = max(int(np.ceil(law.length_s * rate - 1e-6)), 4)
        if steps / rate >= best_s:
            return None
        law = law._replace(step_s=law.step_s * steps / rate / law.length_s)
        times_s = np.arange(steps + 1) / rate
        joints_rad = curve(law.step_s, law.joints_rad, times_s)
        joints_rad[0], joints_rad[-1] = law.joints_rad[0], law.joints_rad[-1]
        slower = _required_slowdown(joints_rad, rate, limits)
        if slower <= 1.0:
            off_rad = _max_deviation(track, law, joints_rad, rate)
            if off_rad <= TOLERANCE_RAD:
                return _RetimedSamples(times_s, joints_rad, law, off_rad)
            if way.poses:
                return None
            least += 0.02
        least += 0.002
        law = law._replace(step_s=law.step_s * max(slower / _GOAL, least))


def _check_length(seconds: float, rate: float) -> None:
    most_s = min(_MAX_S, _MAX_STEPS / rate)
    if seconds > most_s:
        raise BadRequestError(
            f"with these limits it would take {seconds:.0f} s or more; "
            f"{most_s:.0f} s are possible at {rate:g} Hz",
            "Allow more, or smooth the track first.",
        )


def _required_slowdown(joints_rad: Array, rate: float, limits: RateLimits) -> float:
    """Return the factor by which the samples must be slowed for the limits to hold."""
    found = peaks(1.0 / rate, joints_rad)
    smooth = max(
        float((peak / most).max() ** (1.0 / order))
        for order, (peak, most) in enumerate(zip(found, limits, strict=True), start=1)
    )
    shown = max(
        float(each.max()) for _, each in _playback_excess_blocks(joints_rad, rate, limits, FINER)
    )
    return max(smooth, shown)


def _playback_excess_blocks(
    joints_rad: Array, rate: float, limits: RateLimits, finer: int
) -> Iterator[tuple[int, Array]]:
    """Yield the same for the interpolation of players, in blocks with their first sample."""
    ends = [np.repeat(joints_rad[:1], 2, axis=0), joints_rad, np.repeat(joints_rad[-1:], 2, axis=0)]
    held = np.concatenate(ends)
    for begin in range(0, len(held) - 4, _BLOCK):
        yield begin - 1, _playback_excess(held[begin : begin + _BLOCK + 6], rate, limits, finer)


def _playback_excess(joints_rad: Array, rate: float, limits: RateLimits, finer: int) -> Array:
    """Return how much slower each sample but the last two must be, (n - 2,).

    This is for speed and acceleration over any interval as long as a sample.
    """
    excess = np.zeros(len(joints_rad) - 2)
    steps = np.abs(np.diff(joints_rad, axis=0)).max(axis=0) * rate / limits.rad_s
    bends = np.abs(np.diff(joints_rad, 2, axis=0)).max(axis=0) * rate**2 / limits.rad_s2
    # It is at most twice as fast as from sample to sample, and bends 2.2 times as much.
    near = np.flatnonzero((2.0 * steps > 1.0) | (2.2 * bends > 1.0))
    if not near.size:
        return excess
    at_s = np.arange((len(joints_rad) - 1) * finer + 1) / (finer * rate)
    chosen = np.ascontiguousarray(joints_rad[:, near])
    shown = sample(np.arange(len(joints_rad)) / rate, chosen, at_s, Interpolation.CUBIC)
    speeds = (shown[finer:] - shown[:-finer]) * rate
    gains = (speeds[finer:] - speeds[:-finer]) * rate
    fast = (np.abs(speeds) / limits.rad_s[near]).max(axis=1)
    bent = (np.abs(gains) / limits.rad_s2[near]).max(axis=1) ** 0.5
    np.maximum(excess, fast[:-1].reshape(-1, finer).max(axis=1)[: len(excess)], out=excess)
    rows = bent[:-1].reshape(-1, finer).max(axis=1)
    np.maximum(excess[: len(rows)], rows, out=excess[: len(rows)])
    # The last moments of all.
    excess[-1] = max(excess[-1], fast[-finer - 1 :].max(), bent[-1])
    return excess


def _max_deviation(track: Track, law: _TimeLaw, joints_rad: Array, rate: float) -> float:
    """Return the largest distance of any joint from where it was recorded, sample by sample."""
    recorded_s = track.times_s - track.times_s[0]
    times_s = np.arange(len(joints_rad)) / rate
    guess_s = _times_at(law, recorded_s)
    worst = 0.0
    for begin in range(0, len(track), 16 * _BLOCK):
        part = slice(begin, begin + 16 * _BLOCK)
        poses = track.joints_rad[part]
        at_s = nearest_moments(poses, times_s, joints_rad, guess_s[part], _AROUND_S)
        worst = max(worst, float(np.abs(curve(1.0 / rate, joints_rad, at_s) - poses).max()))
    return worst


def _times_at(law: _TimeLaw, positions_s: Array) -> Array:
    """Return the times at which the law is at these positions on the path."""
    rising = law.path_s + 1e-12 * np.arange(len(law.path_s))
    return np.asarray(np.interp(positions_s, rising, np.arange(len(law.path_s)) * law.step_s))


def _make_track(track: Track, found: _RetimedSamples) -> Track:
    begin_s = float(track.times_s[0])
    marked = _times_at(found.law, np.array([mark.time_s - begin_s for mark in track.marks]))
    marks = [
        Mark(begin_s + float(moment_s), mark.label)
        for mark, moment_s in zip(track.marks, marked, strict=True)
    ]
    lasts_s = float(found.times_s[-1])
    root = track.root
    if root is not None:
        law_s = np.arange(len(found.law.path_s)) * found.law.step_s
        at_s = begin_s + np.interp(found.times_s, law_s, found.law.path_s)
        root = root.at(track.times_s, at_s)
    return track.edited(
        f"retime {track.duration_s:.2f} to {lasts_s:.2f} s, "
        f"path kept within {found.off_rad:.4f} rad",
        times_s=begin_s + found.times_s,
        joints_rad=found.joints_rad,
        marks=tuple(marks),
        root=root,
    )
