"""Edits: functions from a track to a track, each of which adds one line to its history.

Times in arguments are on the clock of the track's own `times_s`, which edits do not reset: a track
trimmed to 0.50 s begins at 0.50 s. Marks move along. The argument is never changed; a new track is
returned. An impossible value raises `BadRequestError`. Nothing here checks what a robot can do;
`rote.motion.check.rules` does, before anything is played.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rote.errors import BadRequestError
from rote.messages import Interpolation
from rote.model import registry
from rote.model.family import MOVED_RAD
from rote.motion.body.root_path import RootPath
from rote.motion.check.limits import RETIME_RAD_S2
from rote.motion.edit.table import (
    BRIDGE,
    CUTOFF,
    FACTOR,
    IDLE,
    MARGIN,
    OVERLAP,
    RATE,
    WAY_BACK,
    WEIGHT,
    Range,
)
from rote.motion.interpolate import MINIMUM_JERK_PEAK, minimum_jerk, sample
from rote.motion.track import Array, Mark, Origin, Track
from rote.motion.track_build import a_robot, family_of, hand_joints, joints_of
from rote.text import Act, Text

__all__ = [
    "trim", "trim_from_start", "trim_idle", "idle_bounds", "resample", "speed", "reverse", "smooth",
    "resample_at_exact_rate", "jerk_rms", "concatenate", "cross_fade", "blend", "layer",
    "close_loop", "keep", "drop", "to_build", "track_time_s",
]  # fmt: skip

MAX_BRIDGE_RAD_S = 3.0
"""The highest speed of a bridge or a fade in rad/s. These parts were not taught.

A speed at an end of a bridge counts only up to this, so a bridge between two ends in motion reaches
at most twice as much.
"""

_TOUCHING_RAD = 1e-3  # about the noise of an encoder; a smaller gap is no jump
_MAX_SAMPLES = 1_000_000
_BRIDGE_HZ = (20.0, 1000.0)  # lowest and highest rate of a bridge's samples
_ROUNDING_S = 1e-4  # times in arguments may be rounded by this much
# Speed is measured over this time: between two samples, noise of 1 mrad looks like 0.1 rad/s.
_IDLE_WINDOW_S = 0.1
_END_WINDOW_S = 0.05  # the speed at an end is measured over this time
_REST_RAD_S = 0.02  # slower than this is the noise of an encoder
# How long a bridge continues the speed at its end, at least and per rad/s.
_FADE_S, _FADE_S_PER_RAD_S = 0.2, 0.15


def from_zero(track: Track) -> Track:
    """Return the track with its times and marks shifted so that the first sample is at 0 s.

    The history stays as it is.
    """
    first_s = float(track.times_s[0])
    return replace(track, times_s=track.times_s - first_s, marks=_move_marks(track.marks, -first_s))


def trim(track: Track, start_s: float, end_s: float) -> Track:
    """Return the samples and marks from `start_s` to `end_s`, both included.

    Both are in seconds on the track's own clock. Raises `BadRequestError` if they are outside of
    it.
    """
    return _cut_samples(track, start_s, end_s, "trim")


def trim_from_start(
    track: Track,
    start_s: float | None = None,
    end_s: float | None = None,
    *,
    auto: bool = False,
) -> Track:
    """Return the part of a track between two times, or with `auto` the track without idle ends.

    The times are in seconds since the first sample; by default the track is kept from its beginning
    or to its end. Raises `BadRequestError` if neither times nor `auto` are given, or both.
    """
    if auto == (start_s is not None or end_s is not None):
        raise BadRequestError(
            "trim needs either times or auto", "Give a start, an end, or auto for idle ends."
        )
    if auto:
        return trim_idle(track)
    track.require_samples(2)
    first_s, last_s = float(track.times_s[0]), float(track.times_s[-1])
    begin_s = first_s if start_s is None else first_s + start_s
    # Times are shown with four digits, so a rounded end may be just after the real one.
    if end_s is None or abs(end_s - track.duration_s) < _ROUNDING_S:
        return trim(track, begin_s, last_s)
    return trim(track, begin_s, first_s + end_s)


def track_time_s(track: Track, since_s: float, what: str) -> float:
    """Return the time on the track's own clock that is `since_s` seconds after its first sample.

    Raises `BadRequestError` if that is outside the track; the message calls the time `what`.
    """
    track.require_samples(1)
    # Times are shown with four digits, so a rounded end may be just after the real one.
    if abs(since_s - track.duration_s) < _ROUNDING_S:
        return float(track.times_s[-1])
    Range(0.0, track.duration_s, "s").require(since_s, what)
    return float(track.times_s[0]) + since_s


def idle_bounds(track: Track, threshold_rad_s: float = 0.05) -> tuple[float, float]:
    """Return when movement begins and ends, in s on the track's clock; either may be off by 0.1 s.

    Movement means that any joint is faster than `threshold_rad_s` over a tenth of a second. Raises
    `BadRequestError` if no joint is.
    """
    track.require_samples(2)
    IDLE.require(threshold_rad_s, "the threshold")
    ahead = _sample_track(track, track.times_s + _IDLE_WINDOW_S, Interpolation.LINEAR)
    speeds_rad_s = np.abs(ahead - track.joints_rad).max(axis=1) / _IDLE_WINDOW_S
    moving = np.flatnonzero(speeds_rad_s > threshold_rad_s)
    if not moving.size:
        raise BadRequestError(
            f"nothing moves faster than {threshold_rad_s:g} rad/s: "
            f"the fastest joint reaches {speeds_rad_s.max():.3g} rad/s",
            "Choose a lower threshold.",
        )
    start_s, last_s = track.times_s[moving[0]], track.times_s[moving[-1]] + _IDLE_WINDOW_S
    return float(start_s), float(min(last_s, track.times_s[-1]))


def trim_idle(track: Track, threshold_rad_s: float = 0.05, margin_s: float = 0.2) -> Track:
    """Return the track without its motionless ends, except for `margin_s` seconds on both sides.

    `threshold_rad_s` and errors are those of `idle_bounds`.
    """
    start_s, end_s = idle_bounds(track, threshold_rad_s)
    MARGIN.require(margin_s, "the margin")
    start_s = max(start_s - margin_s, float(track.times_s[0]))
    return _cut_samples(
        track, start_s, min(end_s + margin_s, float(track.times_s[-1])), "trim idle"
    )


def resample(track: Track, rate_hz: float) -> Track:
    """Return the track with evenly spaced samples, by a cubic without overshoot; both ends stay.

    If the length is no whole number of steps, the rate is the nearest to `rate_hz` that ends with
    the track, and the history states it.
    """
    track.require_samples(2)
    RATE.up_to(_MAX_SAMPLES / track.duration_s).require(rate_hz, "the rate")
    steps = max(round(track.duration_s * rate_hz), 1)
    times_s = np.linspace(track.times_s[0], track.times_s[-1], steps + 1)
    used_hz = steps / track.duration_s
    line = f"resample at {rate_hz:g} Hz"
    if abs(used_hz - rate_hz) >= 1e-6 * rate_hz:
        line = f"resample at {used_hz:.4g} Hz, the rate near {rate_hz:g} Hz that fits its length"
    return _resample_at(track, times_s, line)


def resample_at_exact_rate(track: Track, rate_hz: float) -> Track:
    """Return the track with `rate_hz` samples per second, for formats that store a rate only.

    The last pose is kept: if the length is no whole number of steps, it is held until the next
    step, and the history states how much longer that is.
    """
    track.require_samples(2)
    RATE.up_to(_MAX_SAMPLES / track.duration_s).require(rate_hz, "the rate")
    steps = int(np.ceil(track.duration_s * rate_hz - 1e-6))  # rounding errors add no step
    times_s = track.times_s[0] + np.arange(max(steps, 1) + 1) / rate_hz
    held_ms = 1000 * float(times_s[-1] - track.times_s[-1])
    longer = f", its last pose held {held_ms:.0f} ms longer" if held_ms >= 0.5 else ""
    return _resample_at(track, times_s, f"resample at {rate_hz:g} Hz{longer}")


def _resample_at(track: Track, times_s: Array, line: str) -> Track:
    """Return the track with samples at these times, and `line` in its history."""
    joints_rad = _sample_track(track, times_s)
    joints_rad[-1] = track.joints_rad[-1]  # exactly, even if the last time is rounded
    root = None if track.root is None else track.root.at(track.times_s, times_s)
    return track.edited(line, times_s=times_s, joints_rad=joints_rad, root=root)


def speed(track: Track, factor: float) -> Track:
    """Return the track `factor` times as fast; it begins at the same time."""
    track.require_samples(2)
    FACTOR.require(factor, "the speed")
    begin_s = track.times_s[0]
    return track.edited(
        f"speed {factor:g} times",
        times_s=begin_s + (track.times_s - begin_s) / factor,
        root=track.root,
        marks=_move_marks(track.marks, begin_s - begin_s / factor, 1 / factor),
    )


def reverse(track: Track, joints: Collection[str] | None = None) -> Track:
    """Return the track backwards, between the same two times; with `joints` only these."""
    track.require_samples(2)
    ends_sum_s = track.times_s[0] + track.times_s[-1]  # a time t becomes `ends_sum_s` - t
    if joints is not None:
        names = track.choose_joints(joints)
        backwards = _sample_track(track, ends_sum_s - track.times_s)
        line = f"reverse {', '.join(names)}"
        return track.edited(line, joints_rad=_replace_joints(track, names, backwards))
    return track.edited(
        "reverse",
        times_s=ends_sum_s - track.times_s[::-1],
        joints_rad=track.joints_rad[::-1],
        root=None if track.root is None else track.root.rows(slice(None, None, -1)),
        marks=_move_marks(track.marks, ends_sum_s, -1.0),
    )


def jerk_rms(track: Track) -> float:
    """Return the root mean square of the third derivative over time and joints, in rad/s3."""
    track.require_samples(4)
    times_s, values = track.times_s, track.joints_rad
    for _ in range(3):
        values = np.diff(values, axis=0) / np.diff(times_s)[:, None]
        times_s = (times_s[1:] + times_s[:-1]) / 2
    return float(np.sqrt(np.square(values).mean()))


def smooth(track: Track, cutoff_hz: float, joints: Collection[str] | None = None) -> Track:
    """Return the track without frequencies above `cutoff_hz`, without delay; both end poses stay.

    With `joints` only these are smoothed. It is a second-order Butterworth filter run forwards and
    backwards: at the cutoff, half of the amplitude is left. The history states the jerk before and
    after.
    """
    before = jerk_rms(track)
    CUTOFF.up_to(track.rate_hz / 2).require(cutoff_hz, "the cutoff")
    even_s = np.linspace(track.times_s[0], track.times_s[-1], len(track))
    filtered = _filter_butterworth(_sample_track(track, even_s), cutoff_hz / track.rate_hz)
    joints_rad = sample(even_s, filtered, track.times_s, Interpolation.CUBIC)
    which = ""
    if joints is not None:
        names = track.choose_joints(joints)
        joints_rad, which = _replace_joints(track, names, joints_rad), f" {', '.join(names)}"
    after = jerk_rms(replace(track, joints_rad=joints_rad))
    line = f"smooth{which} at {cutoff_hz:g} Hz: jerk {before:.3g} to {after:.3g} rad/s3"
    return track.edited(line, joints_rad=joints_rad)


def _filter_butterworth(values: Array, cutoff: float) -> Array:
    """Filter even samples, (n, joints), with zero phase; `cutoff` is in periods per sample."""
    # The deviation from the line between both ends begins and ends at 0. Extended as an odd
    # function it is periodic without a step, and a symmetric filter keeps its ends at 0.
    line = values[0] + np.linspace(0.0, 1.0, len(values))[:, None] * (values[-1] - values[0])
    deviation = values - line
    periodic = np.concatenate([deviation, -deviation[-2:0:-1]])
    # The gain of a second-order filter, squared because it runs forwards and backwards.
    gain = 1.0 / (1.0 + (np.fft.rfftfreq(len(periodic)) / cutoff) ** 4)
    filtered = np.fft.irfft(np.fft.rfft(periodic, axis=0) * gain[:, None], len(periodic), axis=0)
    return np.asarray(line + filtered[: len(values)])


def concatenate(a: Track, b: Track, bridge_s: float = 0.5) -> Track:
    """Return `a`, a bridge of `bridge_s` seconds, then `b`.

    The bridge has minimum jerk between ends at rest. If an end is in motion, the bridge continues
    its speed and acceleration and fades them out soon, so that it hardly overshoots the pose. With
    0 there is no bridge: `b` must begin in the last pose of `a`, and that sample counts once.
    Raises `BadRequestError` if the joints differ, or the bridge would be a jump or too fast.
    """
    _require_same_joints(a, b)
    BRIDGE.require(bridge_s, "the bridge")
    end_s = float(a.times_s[-1])
    bridge_times_s, bridge_rad = _make_bridge(a, b, bridge_s)
    shift_s = end_s + bridge_s - b.times_s[0]
    return a.edited(
        f"concatenate {_describe_track(b)}, bridge {bridge_s:.2f} s",
        times_s=np.concatenate([a.times_s, bridge_times_s, b.times_s[1:] + shift_s]),
        joints_rad=np.concatenate([a.joints_rad, bridge_rad, b.joints_rad[1:]]),
        marks=_merge_marks(a, b, shift_s),
        root=_concatenate_roots(a, b, len(bridge_times_s)),
        origin=Origin.of(a, b),
    )


def close_loop(track: Track, seconds: float) -> Track:
    """Return the track followed by a return to its first pose in `seconds`, so that it can loop.

    The way back is a bridge like that of `concatenate`. Raises `BadRequestError` if it would be too
    fast.
    """
    track.require_samples(2)
    WAY_BACK.require(seconds, "the return")
    bridge_times_s, bridge_rad = _make_bridge(track, track, seconds)
    return track.edited(
        f"close the loop in {seconds:.2f} s",
        times_s=np.concatenate([track.times_s, bridge_times_s]),
        joints_rad=np.concatenate([track.joints_rad, bridge_rad]),
        root=None if track.root is None else _hold_root(track.root, len(bridge_times_s)),
    )


def cross_fade(a: Track, b: Track, overlap_s: float) -> Track:
    """Return `a` fading into `b`, which begins `overlap_s` seconds before `a` ends.

    Raises `BadRequestError` if the joints differ, or the fade would be too fast.
    """
    _require_same_joints(a, b)
    OVERLAP.up_to(min(a.duration_s, b.duration_s)).require(overlap_s, "the overlap")
    begin_s = a.times_s[-1] - overlap_s
    shift_s = begin_s - b.times_s[0]
    b_times_s = b.times_s + shift_s
    b_rad = sample(b_times_s, b.joints_rad, a.times_s, Interpolation.CUBIC)
    is_fading = a.times_s >= begin_s
    _check_bridge(a.names, (a.joints_rad - b_rad)[is_fading], overlap_s)
    weights = minimum_jerk(np.zeros(1), np.ones(1), (a.times_s - begin_s) / overlap_s)
    faded = a.joints_rad + weights * (b_rad - a.joints_rad)
    is_after_a = b_times_s > a.times_s[-1] + 1e-6  # no sample just after the last one of `a`
    return a.edited(
        f"cross-fade into {_describe_track(b)}, overlap {overlap_s:.2f} s",
        times_s=np.concatenate([a.times_s, b_times_s[is_after_a]]),
        joints_rad=np.concatenate([faded, b.joints_rad[is_after_a]]),
        marks=_merge_marks(a, b, shift_s),
        root=_fade_roots(a, b, b_times_s, weights[:, 0]),
        origin=Origin.of(a, b),
    )


def blend(a: Track, b: Track, weight: float, joints: Collection[str] | None = None) -> Track:
    """Return a mix of two takes: `weight` 0 is `a`, 1 is `b`, which is stretched to the times of
    `a`.

    With `joints` only these are mixed, and the others are those of `a`. Raises `BadRequestError`
    if the joints differ.
    """
    _require_same_joints(a, b)
    WEIGHT.require(weight, "the weight")
    stretch = b.duration_s / a.duration_s
    b_times_s = b.times_s[0] + (a.times_s - a.times_s[0]) * stretch
    b_rad = _sample_track(b, b_times_s)
    mixed = a.joints_rad + weight * (b_rad - a.joints_rad)
    stretched = f"{b.duration_s:.2f} s stretched to {a.duration_s:.2f} s"
    line = f"blend {weight:g} of {_describe_track(b)}, {stretched}"
    if joints is not None:
        names = a.choose_joints(joints)
        mixed, line = _replace_joints(a, names, mixed), f"{line}: {', '.join(names)}"
        return a.edited(line, joints_rad=mixed, origin=Origin.of(a, b))
    root = None
    if a.root is not None and b.root is not None:
        root = a.root.interpolate_to(b.root.at(b.times_s, b_times_s), weight)
    return a.edited(line, joints_rad=mixed, root=root, origin=Origin.of(a, b))


def layer(base: Track, over: Track, joints: Collection[str]) -> Track:
    """Return `joints` from `over` and the others from `base`, both from their beginnings.

    The times are those of `base`: a longer `over` is cut, a shorter one holds its last pose. Raises
    `BadRequestError` for a joint that either does not have.
    """
    base.require_samples(2)
    over.require_samples(2)
    names = base.choose_joints(joints)
    over.choose_joints(names)
    joints_rad = base.joints_rad.copy()
    over_rad = _sample_track(over, over.times_s[0] + (base.times_s - base.times_s[0]))
    joints_rad[:, base.columns_of(names)] = over_rad[:, over.columns_of(names)]
    line = f"layer {_describe_track(over)}, {over.duration_s:.2f} s on {base.duration_s:.2f} s: "
    origin = Origin.of(base, over)
    return base.edited(line + ", ".join(names), joints_rad=joints_rad, origin=origin)


def keep(track: Track, joints: Collection[str]) -> Track:
    """Return only these joints, in the order of the track's columns."""
    names = track.choose_joints(joints)
    joints_rad = track.joints_rad[:, track.columns_of(names)]
    return track.edited(f"keep {', '.join(names)}", joints_rad=joints_rad, names=names)


def drop(track: Track, joints: Collection[str]) -> Track:
    """Return the track without these joints; at least one must remain."""
    names = track.choose_joints(joints)
    kept = tuple(name for name in track.names if name not in names)
    if not kept:
        raise BadRequestError(
            f"dropping all {len(names)} joints would leave no track; keep at least 1"
        )
    joints_rad = track.joints_rad[:, track.columns_of(kept)]
    return track.edited(f"drop {', '.join(names)}", joints_rad=joints_rad, names=kept)


def to_build(track: Track, build: str, *, force: bool = False) -> Track:
    """Return the track with the joints of another build of its robot.

    Joints that the track lacks stay at rest; joints that the build lacks are dropped. Raises
    `BadRequestError` for a build of another family, and without `force` if a dropped joint moves.
    Joints of hands belong to no build, so they stay.
    """
    target = registry.build_named(build)
    hand_names = hand_joints(target)
    names = (*target.names, *(joint for joint in track.names if joint in hand_names))
    lost = [joint for joint in track.names if joint not in names]
    shared = [joint for joint in names if joint in track.names]
    family = family_of(track)
    if not shared:
        raise BadRequestError(
            f"{target.name} has none of the track's {len(lost)} joints, like {', '.join(lost[:1])}",
            "A motion can be converted only to another build of the same robot.",
        )
    if family is not None and family.name != target.family:
        raise BadRequestError(
            f"this is a motion of {a_robot(family)}, but {target.name} is another robot",
            "A motion can be converted only to another build of the same robot.",
        )
    if not force:
        _require_motionless(track, lost, target.name)
    joints_rad = np.tile([target.rest.get(joint, 0.0) for joint in names], (len(track), 1))
    columns = [names.index(joint) for joint in shared]
    joints_rad[:, columns] = track.joints_rad[:, track.columns_of(shared)]
    line = f"to {target.name}"
    if missing := [joint for joint in names if joint not in track.names]:
        line += f"; at rest: {', '.join(missing)}"
    if lost:
        line += f"; dropped: {', '.join(lost)}"
    return track.edited(line, joints_rad=joints_rad, names=names, variant=target.name)


def _replace_joints(track: Track, names: Collection[str], changed: Array) -> Array:
    """Return the angles of a track, with those of the named joints from `changed`, (n, joints)."""
    joints_rad = track.joints_rad.copy()
    columns = track.columns_of(names)
    joints_rad[:, columns] = changed[:, columns]
    return joints_rad


def _require_same_joints(a: Track, b: Track) -> None:
    """Raise `BadRequestError` if the joints or their order differ, or a track has one sample."""
    a.require_samples(2)
    b.require_samples(2)
    if a.names != b.names:
        not_shared = ", ".join(sorted(set(a.names) ^ set(b.names)))
        raise BadRequestError(
            f"the tracks have different joints: {not_shared or 'the same in another order'}",
            "Keep the joints they share, or convert both to one build.",
        )


def _require_motionless(track: Track, names: list[str], build_name: str) -> None:
    """Raise `BadRequestError` if one of these joints, which the build does not have, moves."""
    for name, column in zip(names, track.columns_of(names), strict=True):
        moved_rad = float(np.ptp(track.joints_rad[:, column]))
        if moved_rad > MOVED_RAD:
            raise BadRequestError(
                f"{build_name} has no {name}, but the motion moves it by {moved_rad:.2f} rad; at "
                f"most {MOVED_RAD} rad can be dropped",
                Text("If the motion does not need this joint: {force}.", force=Act.FORCE),
            )


def _cut_samples(track: Track, start_s: float, end_s: float, edit_name: str) -> Track:
    """Return the samples and marks from `start_s` to `end_s`; the history gets `edit_name`."""
    track.require_samples(2)
    first_s, last_s = float(track.times_s[0]), float(track.times_s[-1])
    Range(first_s, last_s, "s").require(start_s, "the start")
    Range(start_s, last_s, "s").require(end_s, "the end")
    inside = (track.times_s >= start_s) & (track.times_s <= end_s)
    if inside.sum() < 2:
        raise BadRequestError(
            f"{start_s:g} to {end_s:g} s holds {inside.sum()} samples, but 2 are needed; samples "
            f"are up to {track.longest_gap_s:.3g} s apart"
        )
    line = f"{edit_name}: kept {start_s:.2f} to {end_s:.2f} of {first_s:.2f} to {last_s:.2f} s"
    if inside.all():
        line = f"{edit_name}: nothing was cut"
    return track.edited(
        line,
        times_s=track.times_s[inside],
        joints_rad=track.joints_rad[inside],
        root=None if track.root is None else track.root.rows(inside),
        marks=tuple(mark for mark in track.marks if start_s <= mark.time_s <= end_s),
    )


def _sample_track(track: Track, at_s: Array, how: Interpolation = Interpolation.CUBIC) -> Array:
    return sample(track.times_s, track.joints_rad, at_s, how)


def _make_bridge(track: Track, after: Track, seconds: float) -> tuple[Array, Array]:
    """Return the bridge from the end of a track to the start of `after`: times, (k,), and poses.

    It ends with the first sample of `after`. Raises `BadRequestError` if it would be too fast.
    """
    end_motion, start_motion = _measure_end(track), _measure_beginning(after)
    _check_bridge(track.names, (start_motion.pose_rad - end_motion.pose_rad)[None, :], seconds)
    steps = int(np.ceil(seconds * np.clip(track.rate_hz, *_BRIDGE_HZ)))
    fractions = np.arange(1, steps + 1) / max(steps, 1)
    poses = _compute_bridge_poses(end_motion, start_motion, fractions * seconds, seconds)
    # A bridge from an end in motion overshoots its pose, but not the joint's range.
    known = joints_of(track)
    for column, name in enumerate(track.names):
        joint = known.get(name)
        if joint is not None:
            end_angles = end_motion.pose_rad[column], start_motion.pose_rad[column]
            low, high = min(joint.lower_rad, *end_angles), max(joint.upper_rad, *end_angles)
            poses[:, column] = np.clip(poses[:, column], low, high)
    return track.times_s[-1] + fractions * seconds, poses


class _EndMotion(NamedTuple):
    """Pose, speed and acceleration at an end of a track, each (joints,)."""

    pose_rad: Array
    rad_s: Array
    rad_s2: Array


def _measure_end(track: Track) -> _EndMotion:
    """Return the motion at the last sample, by a parabola through the last samples."""
    times_s = track.times_s - track.times_s[-1]
    samples_in_window = int((times_s >= -_END_WINDOW_S).sum())
    count = max(samples_in_window, min(len(track), 4))
    near_s, near_rad = times_s[-count:], track.joints_rad[-count:]
    # The parabola passes exactly through the last sample, so it has no constant term.
    degree = min(2, count - 1)
    powers = near_s[:-1, None] ** np.arange(1, degree + 1)
    coefficients = np.linalg.lstsq(powers, near_rad[:-1] - near_rad[-1], rcond=None)[0]
    rad_s = coefficients[0]
    rad_s2 = 2.0 * coefficients[1] if degree > 1 else np.zeros_like(rad_s)
    is_at_rest = np.abs(rad_s) < _REST_RAD_S
    return _EndMotion(
        near_rad[-1],
        np.where(is_at_rest, 0.0, np.clip(rad_s, -MAX_BRIDGE_RAD_S, MAX_BRIDGE_RAD_S)),
        np.where(is_at_rest, 0.0, np.clip(rad_s2, -RETIME_RAD_S2, RETIME_RAD_S2)),
    )


def _measure_beginning(track: Track) -> _EndMotion:
    """Return the motion at the first sample: that at the end of the track played backwards."""
    motion = _measure_end(
        replace(
            track,
            times_s=-track.times_s[::-1],
            joints_rad=track.joints_rad[::-1],
            root=None,
            marks=(),
        )
    )
    return motion._replace(rad_s=-motion.rad_s)  # the acceleration is the same backwards


def _compute_bridge_poses(end: _EndMotion, begin: _EndMotion, at_s: Array, seconds: float) -> Array:
    """Return the poses of a bridge at `at_s` seconds after its beginning, (k, joints).

    It is a minimum-jerk move plus the fading motion of both ends.
    """
    move = minimum_jerk(end.pose_rad, begin.pose_rad, at_s / max(seconds, 1e-9))
    after_end = _fade_out_motion(end.rad_s, end.rad_s2, at_s, seconds)
    # Before its beginning the next track's motion fades in: its motion played backwards fades out.
    before_begin = _fade_out_motion(-begin.rad_s, begin.rad_s2, seconds - at_s, seconds)
    return move + after_end + before_begin


def _fade_out_motion(rad_s: Array, rad_s2: Array, at_s: Array, max_fade_s: float) -> Array:
    """Return a movement that starts at 0 with this speed and acceleration, and ends at rest at 0.

    The result is (k, joints), `at_s` seconds after the start. It is a polynomial of fifth degree.
    Its duration grows with the speed, up to `max_fade_s`, so that the acceleration stays moderate
    and the excursion small.
    """
    fade_s = min(max(_FADE_S, _FADE_S_PER_RAD_S * float(np.abs(rad_s).max())), max_fade_s)
    u = np.clip(at_s / max(fade_s, 1e-9), 0.0, 1.0)[:, None]
    decay = (1.0 - u) ** 3
    return np.asarray(
        u * decay * (1.0 + 3.0 * u) * fade_s * rad_s + u * u * decay * fade_s**2 * rad_s2 / 2
    )


def _hold_root(root: RootPath, samples: int) -> RootPath:
    """Return the path with its last sample repeated `samples` times."""
    return RootPath.concatenate([root, root.rows([-1] * samples)])


def _concatenate_roots(a: Track, b: Track, samples: int) -> RootPath | None:
    """Return the root's path of `a`, a bridge of `samples` samples, and `b` from its second sample.

    `b` continues where `a` ends, in the direction that `a` faces. None unless both have a path.
    """
    if a.root is None or b.root is None:
        return None
    placed_b = b.root.placed_after(a.root)
    fractions = np.arange(1, samples + 1) / max(samples, 1)
    weights = minimum_jerk(np.zeros(1), np.ones(1), fractions)[:, 0]
    bridge_root = a.root.rows([-1] * samples).interpolate_to(placed_b.rows([0] * samples), weights)
    return RootPath.concatenate([a.root, bridge_root, placed_b.rows(slice(1, None))])


def _fade_roots(a: Track, b: Track, b_times_s: Array, weights: Array) -> RootPath | None:
    """Return the root's path of `a` fading into that of `b`; None unless both have one.

    `weights` are those of `b` at the times of `a`. `b` continues from where `a` is as `b` begins.
    """
    if a.root is None or b.root is None:
        return None
    a_root_at_start = a.root.at(a.times_s, b_times_s[:1])
    placed_b = b.root.placed_after(a_root_at_start)
    faded = a.root.interpolate_to(placed_b.at(b_times_s, a.times_s), weights)
    is_after_a = b_times_s > a.times_s[-1] + 1e-6
    return RootPath.concatenate([faded, placed_b.rows(is_after_a)])


def _check_bridge(names: tuple[str, ...], gaps_rad: Array, seconds: float) -> None:
    """Raise `BadRequestError` if bridging `gaps_rad`, (n, joints), would be a jump or too fast."""
    gaps = np.abs(gaps_rad).max(axis=0)
    widest = int(gaps.argmax())
    min_s = MINIMUM_JERK_PEAK * gaps[widest] / MAX_BRIDGE_RAD_S
    if gaps[widest] > _TOUCHING_RAD and seconds < min_s:
        raise BadRequestError(
            f"the two poses of {names[widest]} are {gaps[widest]:.2f} rad apart, too far for "
            f"{seconds:g} s; use {np.ceil(min_s * 100) / 100:g} s or more"
        )


def _move_marks(marks: tuple[Mark, ...], origin_s: float, slope: float = 1.0) -> tuple[Mark, ...]:
    """Return the marks with each time t changed to `origin_s` + `slope` * t."""
    return tuple(Mark(float(origin_s + slope * mark.time_s), mark.label) for mark in marks)


def _merge_marks(a: Track, b: Track, shift_s: float) -> tuple[Mark, ...]:
    """Return the marks of both; a mark on the shared sample, as after a trim, counts once."""
    return tuple(dict.fromkeys(a.marks + _move_marks(b.marks, shift_s)))


def _describe_track(track: Track) -> str:
    """Return a track's source and history as text for the history of another track."""
    edits = f" ({'; '.join(track.history)})" if track.history else ""
    return f"{track.source or 'another track'}{edits}"
