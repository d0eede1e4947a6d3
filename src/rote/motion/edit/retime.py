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
from itertools import pairwise
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
from rote.motion.edit.spline import find_spline_peaks, iterate_peak_rates, sample_spline
from rote.motion.interpolate import sample, sliding_max
from rote.motion.track import Array, Mark, Track
from rote.motion.track_build import joints_of

__all__ = ["retime", "recorded_path", "RateLimits", "Limit"]

TOLERANCE_RAD = 0.01
"""The maximum deviation of a joint from the recorded path."""
FINER = 20
"""Limits hold at this many times the rate of the samples."""

Limit = float | Sequence[float] | Mapping[str, float]
"""One number for all joints, one per column, or some by name."""

_GRID_HZ, _LONG_GRID_HZ = 200.0, 100.0  # rates of the path's samples; the second for long paths
_MIN_GRID, _MAX_GRID = 64, 240_000  # steps of a path
_HAND_HZ = 5.0  # hands move slower than this; higher frequencies may be noise
_NOISE_SHARE = 0.95  # of the tolerance may go into smoothing; the rest is for resampling
_PATH_SHARE = 0.98  # of the tolerance may be used by the path, so that no motion on it is refused
_MAX_SPEEDUP = 20.0  # through a pause, where no limit binds
_TURN_STEPS = 3.0  # a turn counts as distance: that of its bend in this many steps of the path
_TURN_SAMPLES, _TURN_SHARE = 2.5, 0.82  # players exceed the acceleration around a turn
_REST_SHARE = 0.1  # of the acceleration, for a step of the path with rest at both its ends
_STILL_SHARE = 0.01  # the speed that a pause counts as, relative to the highest speed
_ROUNDS, _REFINE_ROUNDS = 10, 6  # rounds to find a time law, and to refine one
_FLATTEN_ROUNDS = 7  # of these rounds, those that flatten peaks of the speed
_MAX_REFINED = 3  # candidates that are refined
_COARSE_FINER = 5  # what `FINER` is while a law is refined
_LAW_HZ, _LAW_FINER = 400.0, 2  # a law has at least this rate, and so many steps per sample
_SEARCH_REACH_S = 0.02  # how far from its time by the time law a pose is searched
_NEARBY_MOMENTS = 41  # that are compared with a pose
_MIN_SHARE = 1e-3  # of the acceleration, where samples of a law break a limit
_TARGET_SHARE = 0.9995  # of a limit is aimed at
_EXPLAINED_RATIO = 2.0  # if the result is this many times as long, the history says why
_MAX_S, _MAX_STEPS = 2 * 3600.0, 4_000_000  # length and samples of a result
_LONG_PATH_STEPS = 10_000  # steps of a path above which fewer candidates are tried
_BLOCK = 1 << 10  # samples that are processed together
_MIN_STRETCH_STEP, _MIN_DEVIATION_STEP = 0.002, 0.02
"""By how much a law is stretched at least to meet the limits, and to come nearer to the path."""


class RateLimits(NamedTuple):
    """The maximum speed, acceleration and jerk of each joint, each (joints,)."""

    rad_s: Array
    rad_s2: Array
    rad_s3: Array


class _Path(NamedTuple):
    """The motion over recorded time, evenly sampled. A position on it is a time in s from 0."""

    step_s: float
    joints_rad: Array
    """(grid, joints)."""

    @property
    def length_s(self) -> float:
        return self.step_s * (len(self.joints_rad) - 1)

    def at(self, positions_s: Array) -> Array:
        return sample_spline(self.step_s, self.joints_rad, positions_s)


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
    """The windows to average over, as multiples of the acceleration limit over the jerk limit."""
    corners: tuple[float, ...]
    """The lengths of further windows in samples. They round corners that are too sharp for samples
    to represent.
    """
    poses: bool
    """Whether poses are averaged; otherwise positions on the path are."""


_SHORT_WINDOWS = (
    _Smoothing(1.0, (1.0,), (2.0, 2.0), poses=True),
    _Smoothing(0.98, (1.0,), (2.0, 2.0), poses=True),
    _Smoothing(1.0, (1.0,), (1.0,), poses=True),
)
"""Windows of only a few samples, for jerk limits that need hardly more."""
_SHARP_CANDIDATES = (
    *_SHORT_WINDOWS,
    _Smoothing(0.99, (1.0,), (2.0,), poses=True),
    _Smoothing(0.98, (1.0,), (1.5, 1.5), poses=True),
    _Smoothing(0.98, (1.0,), (1.0,), poses=True),
)
"""The candidates if acceleration over jerk is less than a sample. Which of them is the quickest
depends on where the corners of the acceleration fall between samples, so all are tried.
"""
_POSE_CANDIDATES = (
    *_SHORT_WINDOWS,
    *(_Smoothing(share, (1.3, 0.4), (1.0, 1.0), poses=True) for share in (1.0, 0.93)),
    *(_Smoothing(share, (2.0,), (1.0, 1.0), poses=True) for share in (1.0, 0.93, 0.85)),
    *(_Smoothing(share, (1.0,), (2.0, 1.0), poses=True) for share in (0.85, 0.7, 0.55, 0.4, 0.3)),
)
_POSITION_CANDIDATES = tuple(
    _Smoothing(1.0, (window, window / 2), (1.0,), poses=False) for window in (0.7, 1.2, 2.0)
)
_LONG_PATH_CANDIDATES = (
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
    the path and, if the result is more than twice as long, the reason. Raises `BadRequestError` for
    a limit that is not a positive number or cannot be met.
    """
    track.require_samples(2)
    limits = _make_rate_limits(track, velocity, acceleration, jerk)
    rate = max(track.rate_hz, 50.0) if rate_hz is None else float(rate_hz)
    if not 10.0 <= rate <= 2000.0:
        raise BadRequestError(f"the rate is {rate:g} Hz; the range is 10 to 2000 Hz")
    path = _make_denoised_path(track)
    max_speedup = _MAX_SPEEDUP if fastest else 1.0
    reachable = _ReachableSpeeds(path, limits, max_speedup, rate)
    is_long_path = len(path.joints_rad) > _LONG_PATH_STEPS
    candidates: list[tuple[_RetimedSamples, _Smoothing, _Bounds]] = []
    for smoothing in _select_smoothings(limits, rate, is_long_path=is_long_path):
        if candidates and is_long_path and not smoothing.poses:
            break  # averaged positions are needed only if averaged poses leave the path
        best_s = min((float(samples.times_s[-1]) for samples, _, _ in candidates), default=np.inf)
        if reachable.min_duration_s(smoothing.share) >= best_s:
            continue  # it cannot become the quickest
        law, bounds = _find_time_law(reachable, limits, rate, smoothing)
        samples = _stretch_until_within_limits(track, law, limits, rate, smoothing)
        if samples is not None:
            candidates.append((samples, smoothing, bounds))
    assert candidates  # averaged positions stay on the path
    candidates.sort(key=lambda each: float(each[0].times_s[-1]))
    best = candidates[0][0]
    for _, smoothing, bounds in candidates[: 1 if is_long_path else _MAX_REFINED]:
        law, _ = _find_time_law(reachable, limits, rate, smoothing, bounds)
        samples = _stretch_until_within_limits(
            track, law, limits, rate, smoothing, float(best.times_s[-1])
        )
        best = best if samples is None else samples
    return _make_track(track, best, path, limits)


def _select_smoothings(
    limits: RateLimits, rate: float, *, is_long_path: bool
) -> tuple[_Smoothing, ...]:
    """Return the smoothings that are worth trying."""
    ramp_samples = float((limits.rad_s2 / limits.rad_s3).max()) * rate
    if ramp_samples < 1.0:  # the acceleration can reach its limit within a sample
        if is_long_path:
            return _SHORT_WINDOWS[0], _POSITION_CANDIDATES[1]
        return _SHARP_CANDIDATES + _POSITION_CANDIDATES[:1]
    if is_long_path:
        return (*_LONG_PATH_CANDIDATES, _POSITION_CANDIDATES[1])
    return _POSE_CANDIDATES + _POSITION_CANDIDATES


def _make_rate_limits(
    track: Track, velocity: Limit | None, acceleration: Limit | None, jerk: Limit | None
) -> RateLimits:
    """Return the limits for all joints of a track; a limit that is None has its default."""
    joint_limits = {
        name: float(playback_limits_rad_s([joint])[0]) for name, joint in joints_of(track).items()
    }
    return RateLimits(
        _expand_limit(track, "velocity", velocity, joint_limits, MAX_PLAYED_RAD_S),
        _expand_limit(track, "acceleration", acceleration, {}, RETIME_RAD_S2),
        _expand_limit(track, "jerk", jerk, {}, RETIME_RAD_S3),
    )


def _expand_limit(
    track: Track, what: str, limit: Limit | None, known: Mapping[str, float], default: float
) -> Array:
    """Return one limit per column; `what` names the quantity in errors.

    A joint for which `limit` states none has its `known` limit, otherwise `default`.
    """
    named = limit if isinstance(limit, Mapping) else {}
    track.choose_joints(named or track.names)
    if limit is None or isinstance(limit, Mapping):
        values = np.array([named.get(name, known.get(name, default)) for name in track.names])
    else:
        values = np.array(limit, dtype=np.float64)
    if values.shape not in {(), (len(track.names),)}:
        raise BadRequestError(
            f"{values.size} limits of {what} do not fit {len(track.names)} joints",
            "Give one limit for all joints, one per joint, or some by name.",
        )
    # Written this way round, the comparison refuses NaN as well.
    if not ((values > 0) & (values <= 1e6)).all():
        raise BadRequestError(f"a limit of {what} must be above 0 and at most 1e6, not {limit}")
    return np.broadcast_to(values, (len(track.names),)).astype(np.float64)


# ---- the path -----------------------------------------------------------------------------------


def recorded_path(track: Track) -> tuple[float, Array]:
    """Return the path that a track is retimed along: the time between poses in s, and the poses."""
    path = _make_denoised_path(track)
    return path.step_s, path.joints_rad


def _make_denoised_path(track: Track) -> _Path:
    """Return the recorded motion without its noise, evenly sampled, with the same ends.

    Raises `BadRequestError` if it would need too many samples to stay within the tolerance.
    """
    origin_s = track.times_s - track.times_s[0]
    steps = max(round(track.duration_s * max(track.rate_hz, _GRID_HZ)), _MIN_GRID)
    if steps >= _LONG_PATH_STEPS:
        # Every step costs time, so a long path has fewer per second.
        steps = max(round(track.duration_s * _LONG_GRID_HZ), _LONG_PATH_STEPS - 1)
    while steps <= _MAX_GRID:
        at_s = np.linspace(0.0, track.duration_s, steps + 1)
        recorded = sample(origin_s, track.joints_rad, at_s, Interpolation.CUBIC)
        step_s = track.duration_s / steps
        path = _Path(step_s, _remove_noise(recorded, step_s))
        if np.abs(path.at(origin_s) - track.joints_rad).max() < _PATH_SHARE * TOLERANCE_RAD:
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
    deviation = values - line
    # Extended as an odd function about its ends it has no step, and the ends stay where they are.
    spectrum = np.fft.rfft(np.concatenate([deviation, -deviation[-2:0:-1]]), axis=0)
    hz = np.fft.rfftfreq(2 * samples - 2, step_s)[:, None]
    # Bisect the logarithm of each joint's cutoff frequency.
    low, high = np.full(values.shape[1], np.log(_HAND_HZ)), np.full(values.shape[1], np.log(1e4))
    smoothed = deviation
    for _ in range(9):
        log_cutoff = (low + high) / 2
        # The gain of a fourth-order Butterworth filter run forwards and backwards.
        gain = 1.0 / (1.0 + (hz / np.exp(log_cutoff)) ** 8)
        filtered = np.fft.irfft(spectrum * gain, 2 * samples - 2, axis=0)[:samples]
        within_tolerance = np.abs(filtered - deviation).max(axis=0) <= _NOISE_SHARE * TOLERANCE_RAD
        smoothed = np.where(within_tolerance, filtered, smoothed)
        low = np.where(within_tolerance, low, log_cutoff)
        high = np.where(within_tolerance, log_cutoff, high)
    return np.asarray(line + smoothed)


# ---- the fastest pace on it ---------------------------------------------------------------------


class _ReachableSpeeds:
    """The speeds along a path that can be reached, and left again, within the limits.

    These are the limits of speed and acceleration. The speed is that of the path length s, which
    grows with the movement of the joints, so that neither a slow beginning nor a pause of the
    recording costs precision. Where all joints turn back at once, s grows with their bend.
    """

    def __init__(self, path: _Path, limits: RateLimits, max_speedup: float, rate_hz: float) -> None:
        self.path = path
        dq_ds, d2q_ds2 = self._measure_length(limits)
        joint_caps = (limits.rad_s / np.maximum(np.abs(dq_ds), 1e-12)).min(axis=1)
        self._caps = np.minimum(max_speedup * self._length_rate, joint_caps)
        self._bound_steps(dq_ds, d2q_ds2, limits, rate_hz)

    def _measure_length(self, limits: RateLimits) -> tuple[Array, Array]:
        """Measure the path length s at each sample of the path.

        Return the first and second derivative of the joint angles q by s, both (grid, joints).
        """
        joints_rad, step_s = self.path.joints_rad, self.path.step_s
        rates = np.gradient(joints_rad, step_s, axis=0)
        accelerations = np.zeros_like(rates)
        accelerations[1:-1] = np.diff(joints_rad, 2, axis=0) / step_s**2
        # Path length per second of the recording: the joints' speeds, weighted by their limits.
        # Bends count too, and a small minimum keeps it above 0 in pauses.
        squared_movement = np.square(rates / limits.rad_s2).sum(axis=1)
        squared_turn = np.square(accelerations / limits.rad_s2).sum(axis=1)
        squared_turn *= (_TURN_STEPS * step_s) ** 2
        min_length_rate = _STILL_SHARE * np.sqrt((squared_movement + squared_turn).max()) + 1e-9
        self._length_rate = np.sqrt(squared_movement + squared_turn + min_length_rate**2)
        self._step_lengths = step_s * (self._length_rate[1:] + self._length_rate[:-1]) / 2
        length_rate_slope = np.gradient(self._length_rate, step_s)
        dq_ds = rates / self._length_rate[:, None]
        curvature = accelerations - dq_ds * length_rate_slope[:, None]
        return dq_ds, curvature / np.square(self._length_rate)[:, None]

    def _bound_steps(
        self, dq_ds: Array, d2q_ds2: Array, limits: RateLimits, rate_hz: float
    ) -> None:
        """Compute by how much the squared speed x may change from one position to the next.

        A joint's acceleration is dq_ds * u + d2q_ds2 * x, with u half the slope of x. It keeps
        within its limit while -slack + slope * x <= u <= slack + slope * x. Over a step of length
        d, x grows by 2 * d * u, so that the next x is at most gain * x + push.
        """
        dq_ds = np.where(np.abs(dq_ds) < 1e-12, 1e-12, dq_ds)
        is_turn = _find_turns(dq_ds, d2q_ds2, limits.rad_s2, rate_hz)
        usable_share = np.where(is_turn, _TURN_SHARE, 1.0)
        slack, slope = usable_share * limits.rad_s2 / np.abs(dq_ds), -d2q_ds2 / dq_ds
        # The mean speed of a move over a step that speeds up for half of it and then slows down.
        self._rest_to_rest_speeds = (
            np.sqrt(_REST_SHARE * self._step_lengths * slack[1:].min(axis=1)) / 2
        )
        self._max_squared = _find_max_squared_speeds(slack, slope)
        steps = np.append(self._step_lengths, 0.0)[:, None]
        gain, push = 1.0 + 2.0 * steps * slope, 2.0 * steps * slack
        # With a negative gain, a higher x would make the next x negative.
        is_falling = gain < -1e-9
        max_before_halt = np.where(is_falling, push / np.where(is_falling, -gain, 1.0), np.inf)
        self._max_squared = np.minimum(self._max_squared, max_before_halt.min(axis=1))
        inverse_gain = np.where(gain > 1e-9, 1.0 / np.maximum(gain, 1e-9), np.inf)
        self._speeding_up = _list_binding_joints(push, gain)
        self._slowing_down = _list_binding_joints(push, inverse_gain)

    def speed_caps(self) -> Array:
        """Return the highest speeds that the limits of speed allow, (grid,)."""
        return np.array(self._caps)

    def find_speeds(self, caps: Array, share: Array) -> Array:
        """Return the highest speed up to `caps` at each position, (grid,), 0 at both ends.

        `share` is the share of the acceleration limits to use at each position, (grid,).
        """
        # x, push and gain are those of `_bound_steps`. First backwards, so that it is possible to
        # slow down in time, then forwards.
        # One step per position, a million in all: plain numbers are faster than short arrays.
        squared = np.minimum(caps**2, share * self._max_squared).tolist()
        shares = share.tolist()
        last = len(squared) - 1
        x = squared[last] = 0.0
        for i in range(last - 1, -1, -1):
            fastest, share_here = squared[i], shares[i]
            for push, inverse_gain in self._slowing_down[i]:
                reached = (share_here * push + x) * inverse_gain
                if reached < fastest:  # noqa: PLR1730 # `min` takes three times as long
                    fastest = reached
            x = squared[i] = fastest
        x = squared[0] = 0.0
        for i in range(last):
            fastest, share_here = squared[i + 1], shares[i]
            for push, gain in self._speeding_up[i]:
                reached = gain * x + share_here * push
                if reached < fastest:  # noqa: PLR1730
                    fastest = reached
            x = squared[i + 1] = max(fastest, 0.0)
        return np.asarray(np.sqrt(squared))

    def min_duration_s(self, share: float) -> float:
        """Return the minimum duration in s with a share of the acceleration limits."""
        speeds = self.find_speeds(self._caps, np.full(len(self._caps), share))
        return float((self._step_lengths / self._compute_mean_speeds(speeds)).sum())

    def _compute_mean_speeds(self, speeds: Array) -> Array:
        """Return the mean speed of each step, (grid - 1,).

        From rest to rest, as between the last poses of a pause, it is not 0 but that of a move
        which speeds up and slows down again.
        """
        means = (speeds[1:] + speeds[:-1]) / 2
        return np.where(means < 1e-6 * self._length_rate.max(), self._rest_to_rest_speeds, means)

    def find_positions(self, speeds: Array, rate: float, step_s: float) -> tuple[Array, Array]:
        """Return the positions on the path every `step_s`, (n,), if it is played at these speeds.

        Also return the times at which the samples of the path are played, (grid,). `rate` is that
        of the result, which limits its length.
        """
        at_s = np.concatenate(
            [[0.0], np.cumsum(self._step_lengths / self._compute_mean_speeds(speeds))]
        )
        _check_length(float(at_s[-1]), rate)
        even_s = np.arange(np.ceil(at_s[-1] / step_s) + 1.0) * step_s
        path_s = np.arange(float(len(speeds))) * self.path.step_s
        return _interpolate_hermite(at_s, path_s, speeds / self._length_rate, even_s), at_s


def _list_binding_joints(pushes: Array, factors: Array) -> list[list[tuple[float, float]]]:
    """Return the push and factor of the joints that can limit the speed, by position.

    Both arrays are (grid, joints). A joint whose push and factor are both no lower than those of
    another never limits the speed, so it is left out.
    """
    order = np.argsort(pushes, axis=1, kind="stable")
    pushes = np.take_along_axis(pushes, order, axis=1)
    factors = np.take_along_axis(factors, order, axis=1)
    # In the order of their pushes, a joint binds only if its factor is below all before it.
    binds = np.ones(factors.shape, dtype=bool)
    binds[:, 1:] = factors[:, 1:] < np.minimum.accumulate(factors, axis=1)[:, :-1]
    pairs = list(zip(pushes[binds].tolist(), factors[binds].tolist(), strict=True))
    ends = np.cumsum(binds.sum(axis=1)).tolist()
    return [pairs[begin:end] for begin, end in pairwise((0, *ends))]


def _find_turns(
    dq_ds: Array, d2q_ds2: Array, max_rad_s2: Array, rate_hz: float
) -> NDArray[np.bool_]:
    """Return where a joint turns back, (grid, joints), including a few samples around each turn.

    There, the interpolation of players has more acceleration than the samples.
    """
    # Around a turn, dq_ds changes by at most sqrt(max_rad_s2 * |d2q_ds2|) per second.
    is_turn = np.abs(dq_ds) <= _TURN_SAMPLES / rate_hz * np.sqrt(max_rad_s2 * np.abs(d2q_ds2))
    crossed = dq_ds[1:] * dq_ds[:-1] < 0
    is_turn[1:] |= crossed
    is_turn[:-1] |= crossed
    return np.asarray(is_turn & (d2q_ds2 != 0))


def _find_max_squared_speeds(slack: Array, slope: Array) -> Array:
    """Return the largest squared speed x at each position that all joints' limits allow; (grid,).

    A joint allows an acceleration u along the path if -slack + slope * x <= u <= slack + slope * x.
    Some u fits all joints while the lower bound of each is below the upper bound of each other.
    """
    result = np.empty(len(slack))
    for begin in range(0, len(result), _BLOCK):
        block = slice(begin, begin + _BLOCK)
        slacks, slopes = slack[block], slope[block]
        slope_gaps = slopes[:, :, None] - slopes[:, None, :]
        slack_sums = slacks[:, :, None] + slacks[:, None, :]
        is_rising = slope_gaps > 0
        x = np.where(is_rising, slack_sums / np.where(is_rising, slope_gaps, 1.0), np.inf)
        result[block] = x.min(axis=(1, 2))
    return result


def _interpolate_hermite(times_s: Array, values: Array, slopes: Array, at_s: Array) -> Array:
    """Return the monotone cubic through values with these slopes, at the times `at_s`."""
    steps_s = np.diff(times_s)
    secants = np.diff(values) / steps_s
    left = np.clip(np.searchsorted(times_s, at_s, side="right") - 1, 0, len(steps_s) - 1)
    u = np.clip((at_s - times_s[left]) / steps_s[left], 0.0, 1.0)
    max_slopes = 3.0 * secants[left]  # a steeper cubic would not be monotone
    start_slopes = np.minimum(slopes[left], max_slopes)
    end_slopes = np.minimum(slopes[left + 1], max_slopes)
    return np.asarray(
        values[left]
        + u * u * (3.0 - 2.0 * u) * (values[left + 1] - values[left])
        + steps_s[left] * u * (1.0 - u) * ((1.0 - u) * start_slopes - u * end_slopes)
    )


class _Bounds(NamedTuple):
    """The bounds of a time law at each position, both (grid,)."""

    caps: Array
    """The highest speed."""
    shares: Array
    """The share of the acceleration limits to use."""


def _find_time_law(
    reachable: _ReachableSpeeds,
    limits: RateLimits,
    rate: float,
    smoothing: _Smoothing,
    bounds: _Bounds | None = None,
) -> tuple[_TimeLaw, _Bounds]:
    """Return the fastest time law, smoothed and slowed where it exceeds a limit, and its bounds.

    With the `bounds` of an earlier law, that law is refined: slowed where its samples at `rate`, or
    their playback, would exceed a limit.
    """
    is_refining = bounds is not None
    steps_per_sample = 1 if len(reachable.path.joints_rad) > _LONG_PATH_STEPS else _LAW_FINER
    step_s = 1.0 / (rate * max(steps_per_sample, round(_LAW_HZ / rate)))
    sizes = _compute_window_sizes(smoothing, limits, rate, step_s)
    reach_steps = sum(sizes) // 2
    max_speeds = reachable.speed_caps()
    caps, shares = bounds or _Bounds(max_speeds, np.full(len(max_speeds), smoothing.share))
    for round_number in range(_REFINE_ROUNDS if is_refining else _ROUNDS):
        speeds = reachable.find_speeds(caps, shares)
        positions, at_s = reachable.find_positions(speeds, rate, step_s)
        law = _smooth_law(reachable.path, positions, step_s, sizes, poses=smoothing.poses)
        rate_excess, jerk_excess = (
            _measure_sampled_excess(law, rate, limits)
            if is_refining
            else _measure_law_excess(law, limits)
        )
        if max(rate_excess.max(), jerk_excess.max()) <= 1.0:
            break
        # Averaging delays each position by half of every window.
        moments = at_s / step_s + (sum(sizes) - len(sizes)) / 2
        slowdowns = _find_max_excess_around(rate_excess, reach_steps, moments)
        jerk_slowdowns = _find_max_excess_around(jerk_excess, 2 * reach_steps, moments)
        caps = np.minimum(caps, speeds / slowdowns)
        if is_refining:
            # Near rest a lower speed alone changes nothing: the acceleration along the path does.
            shares = np.maximum(shares / slowdowns**2, _MIN_SHARE * smoothing.share)
        # A jerk limit is exceeded where the speed has a peak, so the peak is flattened.
        reference_speeds = (
            speeds
            if is_refining or round_number >= _FLATTEN_ROUNDS
            else _find_highest_speeds(speeds, at_s, reach_steps * step_s)
        )
        caps = np.minimum(caps, reference_speeds / jerk_slowdowns)
        caps = np.maximum(caps, 1e-4 * max_speeds)
    return law, _Bounds(caps, shares)


def _compute_window_sizes(
    smoothing: _Smoothing, limits: RateLimits, rate: float, step_s: float
) -> list[int]:
    """Return the windows of a smoothing in steps of `step_s`."""
    ramp_s = smoothing.share * float((limits.rad_s2 / limits.rad_s3).max())
    sizes = [int(np.ceil(window * ramp_s / step_s)) for window in smoothing.windows]
    return sizes + [max(round(samples / rate / step_s), 1) for samples in smoothing.corners]


def _find_max_excess_around(excess: Array, reach: int, moments: Array) -> Array:
    """Return the greatest excess within `reach` steps of each moment, at least 1.

    Moments are in steps. If two neighbours are further apart, excess between them counts for both.
    """
    sliding = np.append(sliding_max(excess, reach), 1.0)
    rows = np.clip(np.floor(moments).astype(np.intp), 0, len(excess))
    after = np.maximum.reduceat(sliding, rows)  # from each moment to the next
    return np.asarray(np.maximum(np.maximum(after, np.append(1.0, after[:-1])), 1.0))


def _find_highest_speeds(speeds: Array, at_s: Array, around_s: float) -> Array:
    """Return the highest speed within `around_s` before or after, (grid,)."""
    even_s = np.linspace(0.0, float(at_s[-1]), 4 * len(at_s))
    even_speeds = np.interp(even_s, at_s, speeds)
    sliding = sliding_max(even_speeds, int(np.ceil(around_s / max(even_s[1], 1e-9))))
    return np.maximum(np.interp(at_s, even_s, sliding), speeds)


def _smooth_law(
    path: _Path, positions: Array, step_s: float, sizes: list[int], *, poses: bool
) -> _TimeLaw:
    """Return the time law of these positions on the path, averaged over windows of `sizes` steps.

    Either the poses are averaged, or only the positions.
    """
    path_s = np.clip(_compute_running_means(positions[:, None], sizes)[:, 0], 0.0, path.length_s)
    joints_rad = _compute_running_means(path.at(positions), sizes) if poses else path.at(path_s)
    return _TimeLaw(step_s, path_s, joints_rad)


def _compute_running_means(values: Array, sizes: list[int]) -> Array:
    """Return running means, (n, columns), over a window of each size, one after the other.

    Before the first and after the last value, that value is repeated.
    """
    first, last = values[:1].copy(), values[-1:].copy()
    for size in sizes:
        held = [np.repeat(first, size, axis=0), values, np.repeat(last, size - 1, axis=0)]
        # Relative to the first value, so that long sums lose no digits.
        sums = np.cumsum(np.concatenate(held) - first, axis=0)
        values = (sums[size:] - sums[:-size]) / size + first
    return values


def _measure_law_excess(law: _TimeLaw, limits: RateLimits) -> tuple[Array, Array]:
    """Return by what factors each moment of a law must be slower, both (n,).

    The first is for the limits of speed and acceleration, the second for that of jerk. Before and
    after the law, the pose is held.
    """
    values, step_s = law.joints_rad, law.step_s
    worst = np.zeros((3, len(values)))  # speed, acceleration and jerk, in shares of their limits
    for column, *joint_limits in zip(values.T, *limits, strict=True):
        derivative = np.concatenate([column[:1], column[:1], column, column[-1:]])
        for row, limit in zip(worst, joint_limits, strict=True):
            derivative = np.diff(derivative) / step_s
            np.maximum(row, np.abs(derivative[: len(values)]) / limit, out=row)
    # Slowing down by a factor lowers accelerations by its square and jerks by its cube.
    return np.maximum(worst[0], worst[1] ** 0.5), worst[2] ** (1 / 3)


def _measure_sampled_excess(law: _TimeLaw, rate: float, limits: RateLimits) -> tuple[Array, Array]:
    """Return what `_measure_law_excess` does, but measured on the samples that will be returned.

    They are measured as a spline and as players interpolate them, at `rate`.
    """
    times_s = np.arange(np.ceil(law.length_s * rate) + 1.0) / rate
    values = sample_spline(law.step_s, law.joints_rad, times_s)
    rate_excess, jerk_excess = np.zeros(len(values)), np.zeros(len(values))
    for rows, (speeds, bends, jerks) in iterate_peak_rates(1.0 / rate, values):
        indices = np.clip(rows, 0, len(values) - 1)
        speed_excess = (speeds / limits.rad_s).max(axis=1)
        acceleration_excess = (bends / limits.rad_s2).max(axis=1) ** 0.5
        np.maximum.at(rate_excess, indices, np.maximum(speed_excess, acceleration_excess))
        np.maximum.at(jerk_excess, indices, (jerks / limits.rad_s3).max(axis=1) ** (1 / 3))
    for begin, playback_excess in _iterate_playback_excess(values, rate, limits, _COARSE_FINER):
        indices = np.clip(np.arange(begin, begin + len(playback_excess)), 0, len(values) - 1)
        np.maximum.at(rate_excess, indices, playback_excess)
    fine_s = np.arange(float(len(law.path_s))) * law.step_s
    return np.interp(fine_s, times_s, rate_excess), np.interp(fine_s, times_s, jerk_excess)


# ---- the samples --------------------------------------------------------------------------------


class _RetimedSamples(NamedTuple):
    """Samples within all limits, and the law that they were taken from."""

    times_s: Array
    joints_rad: Array
    law: _TimeLaw
    deviation_rad: float
    """The largest deviation from the recorded path."""


def _stretch_until_within_limits(
    track: Track,
    law: _TimeLaw,
    limits: RateLimits,
    rate: float,
    smoothing: _Smoothing,
    best_s: float = np.inf,
) -> _RetimedSamples | None:
    """Return the samples of a law, stretched until all limits hold.

    None if they are not quicker than `best_s`, or if averaged poses leave the path. Averaged
    positions leave it only by the distance between samples, and come nearer as they get slower.
    """
    min_stretch = 1.0
    while True:
        _check_length(law.length_s, rate)
        steps = max(int(np.ceil(law.length_s * rate - 1e-6)), 4)  # rounding errors add no step
        if steps / rate >= best_s:
            return None
        # The law lasts a whole number of samples.
        law = law._replace(step_s=law.step_s * steps / rate / law.length_s)
        times_s = np.arange(steps + 1) / rate
        joints_rad = sample_spline(law.step_s, law.joints_rad, times_s)
        joints_rad[0], joints_rad[-1] = law.joints_rad[0], law.joints_rad[-1]
        slowdown = _measure_required_slowdown(joints_rad, rate, limits)
        if slowdown <= 1.0:
            deviation_rad = _measure_max_deviation(track, law, joints_rad, rate)
            if deviation_rad <= TOLERANCE_RAD:
                return _RetimedSamples(times_s, joints_rad, law, deviation_rad)
            if smoothing.poses:
                return None
            min_stretch += _MIN_DEVIATION_STEP
        min_stretch += _MIN_STRETCH_STEP  # grows in each round, so that the search ends
        law = law._replace(step_s=law.step_s * max(slowdown / _TARGET_SHARE, min_stretch))


def _check_length(seconds: float, rate: float) -> None:
    """Raise `BadRequestError` if a motion of this length would be too long at this rate."""
    max_s = min(_MAX_S, _MAX_STEPS / rate)
    if seconds > max_s:
        raise BadRequestError(
            f"with these limits it would take {seconds:.0f} s or more, but at most {max_s:.0f} "
            f"s are possible at {rate:g} Hz",
            "Raise the limits, or smooth the track first.",
        )


def _measure_required_slowdown(joints_rad: Array, rate: float, limits: RateLimits) -> float:
    """Return the factor by which the samples must be slowed for the limits to hold."""
    # Slowing down by a factor lowers accelerations by its square and jerks by its cube.
    curve_peaks = find_spline_peaks(1.0 / rate, joints_rad)
    curve_slowdown = max(
        float((peak / limit).max() ** (1.0 / order))
        for order, (peak, limit) in enumerate(zip(curve_peaks, limits, strict=True), start=1)
    )
    playback_slowdown = max(
        float(excess.max())
        for _, excess in _iterate_playback_excess(joints_rad, rate, limits, FINER)
    )
    return max(curve_slowdown, playback_slowdown)


def _iterate_playback_excess(
    joints_rad: Array, rate: float, limits: RateLimits, finer: int
) -> Iterator[tuple[int, Array]]:
    """Yield `_measure_playback_excess` in blocks, each with the index of its first sample."""
    # Players hold the first and last pose. The interpolation next to a sample depends on its
    # neighbours, so blocks overlap.
    held = np.pad(joints_rad, ((2, 2), (0, 0)), mode="edge")
    for begin in range(0, len(held) - 4, _BLOCK):
        block = held[begin : begin + _BLOCK + 6]
        yield begin - 1, _measure_playback_excess(block, rate, limits, finer)


def _measure_playback_excess(
    joints_rad: Array, rate: float, limits: RateLimits, finer: int
) -> Array:
    """Return by what factor each sample but the last two must be slower for players, (n - 2,).

    Players interpolate between samples. The limits of speed and acceleration count over any
    interval as long as the time between two samples; such intervals begin `finer` times per sample.
    """
    excess = np.zeros(len(joints_rad) - 2)
    # The greatest speed and acceleration from sample to sample, as shares of the limits.
    steps = np.abs(np.diff(joints_rad, axis=0)).max(axis=0) * rate / limits.rad_s
    bends = np.abs(np.diff(joints_rad, 2, axis=0)).max(axis=0) * rate**2 / limits.rad_s2
    # Interpolated joints are at most twice as fast as from sample to sample, and bend at most 2.2
    # times as much; joints within the limits even then need not be interpolated.
    near_limit = np.flatnonzero((2.0 * steps > 1.0) | (2.2 * bends > 1.0))
    if not near_limit.size:
        return excess
    at_s = np.arange((len(joints_rad) - 1) * finer + 1) / (finer * rate)
    checked = np.ascontiguousarray(joints_rad[:, near_limit])
    played = sample(np.arange(len(joints_rad)) / rate, checked, at_s, Interpolation.CUBIC)
    speeds = (played[finer:] - played[:-finer]) * rate
    accelerations = (speeds[finer:] - speeds[:-finer]) * rate
    speed_excess = (np.abs(speeds) / limits.rad_s[near_limit]).max(axis=1)
    acceleration_excess = (np.abs(accelerations) / limits.rad_s2[near_limit]).max(axis=1) ** 0.5
    # The largest excess of the intervals that begin between a sample and the next.
    speed_rows = speed_excess[:-1].reshape(-1, finer).max(axis=1)
    np.maximum(excess, speed_rows[: len(excess)], out=excess)
    acceleration_rows = acceleration_excess[:-1].reshape(-1, finer).max(axis=1)
    rows = len(acceleration_rows)
    np.maximum(excess[:rows], acceleration_rows, out=excess[:rows])
    # The intervals left over at the end count for the last sample.
    excess[-1] = max(excess[-1], speed_excess[-finer - 1 :].max(), acceleration_excess[-1])
    return excess


def _measure_max_deviation(track: Track, law: _TimeLaw, joints_rad: Array, rate: float) -> float:
    """Return the largest deviation of a joint from its recorded angles, over all samples.

    Each recorded pose is compared with the result at the time that the time law gives it. If a
    joint deviates by more than the tolerance, the nearby time with the least deviation counts,
    because smoothing may have moved the pose slightly in time.
    """

    def measure_errors(at_s: Array, poses: Array) -> Array:
        errors = np.abs(sample_spline(1.0 / rate, joints_rad, at_s) - poses)
        return np.asarray(errors.max(axis=1))

    law_times_s = _find_times_at(law, track.times_s - track.times_s[0])
    worst = 0.0
    for begin in range(0, len(track), 16 * _BLOCK):
        part = slice(begin, begin + 16 * _BLOCK)
        times_s, poses = law_times_s[part], track.joints_rad[part]
        deviation_rad = measure_errors(times_s, poses)
        too_far = np.flatnonzero(deviation_rad > TOLERANCE_RAD)
        for shift_s in _SEARCH_REACH_S * np.linspace(-1.0, 1.0, _NEARBY_MOMENTS):
            if not too_far.size:
                break
            errors = measure_errors(times_s[too_far] + shift_s, poses[too_far])
            deviation_rad[too_far] = np.minimum(deviation_rad[too_far], errors)
        worst = max(worst, float(deviation_rad.max()))
    return worst


def _find_times_at(law: _TimeLaw, positions_s: Array) -> Array:
    """Return the times at which the law is at these positions on the path."""
    # Positions must increase to be looked up, but rest during a pause.
    rising = law.path_s + 1e-12 * np.arange(len(law.path_s))
    return np.asarray(np.interp(positions_s, rising, np.arange(len(law.path_s)) * law.step_s))


def _make_track(track: Track, samples: _RetimedSamples, path: _Path, limits: RateLimits) -> Track:
    """Return the track with these samples; marks and the path of the root follow its time law."""
    begin_s = float(track.times_s[0])
    old_marks_s = np.array([mark.time_s - begin_s for mark in track.marks])
    marks_s = _find_times_at(samples.law, old_marks_s).tolist()
    marks = [
        Mark(begin_s + time_s, mark.label)
        for mark, time_s in zip(track.marks, marks_s, strict=True)
    ]
    duration_s = float(samples.times_s[-1])
    root = track.root
    if root is not None:
        law_s = np.arange(len(samples.law.path_s)) * samples.law.step_s
        at_s = begin_s + np.interp(samples.times_s, law_s, samples.law.path_s)
        root = root.at(track.times_s, at_s)
    much_longer = duration_s > _EXPLAINED_RATIO * track.duration_s
    why = f"; {_describe_worst_excess(track, path, limits)}" if much_longer else ""
    return track.edited(
        f"retime {track.duration_s:.2f} to {duration_s:.2f} s, "
        f"path kept within {samples.deviation_rad:.4f} rad{why}",
        times_s=begin_s + samples.times_s,
        joints_rad=samples.joints_rad,
        marks=tuple(marks),
        root=root,
    )


def _describe_worst_excess(track: Track, path: _Path, limits: RateLimits) -> str:
    """Return as text which joint requires the largest slowdown, when, and by which limit."""
    worst_slowdown, text = 0.0, ""
    units = ("rad/s", "rad/s2", "rad/s3")
    for rows, rates in iterate_peak_rates(path.step_s, path.joints_rad):
        for order, (values, joint_limits, unit) in enumerate(
            zip(rates, limits, units, strict=True), 1
        ):
            slowdowns = (values / joint_limits) ** (1.0 / order)
            row, joint = np.unravel_index(int(slowdowns.argmax()), slowdowns.shape)
            if slowdowns[row, joint] > worst_slowdown:
                worst_slowdown = float(slowdowns[row, joint])
                at_s = float(np.clip(rows[row] * path.step_s, 0.0, track.duration_s))
                text = (
                    f"{track.names[joint]} reaches {values[row, joint]:.3g} {unit} "
                    f"at {at_s:.2f} s, {joint_limits[joint]:.3g} are allowed"
                )
    return f"more than twice as long: {text}"
