"""Changes when a motion does something: moments moved to other times, marks put on a beat, and
parts found between pauses and changes of direction.

Times count from the first sample. The path of the joints stays; only its time changes.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rote.errors import BadRequestError
from rote.messages import Interpolation
from rote.motion.check.limits import MAX_PLAYED_RAD_S2, playback_limits_rad_s
from rote.motion.edit.operations import track_time_s, trim
from rote.motion.edit.tempo import is_too_fast, keep_tempo_within_limits
from rote.motion.interpolate import average_gaussian, sample
from rote.motion.track import Array, Mark, Track
from rote.motion.track_build import joints_of

__all__ = ["beat", "find_key_poses_s", "keep_part", "segments", "split_at_marks", "warp"]

TEMPO_FACTOR = 1.5
"""A tempo further from the recorded one than this factor, up or down, is stated in the history."""

_MIN_GAP_S = 0.02  # two moments cannot be nearer to each other
_SMOOTH_S = 0.06  # standard deviation of the smoothing of the speed
_STILL_RAD_S = 0.12  # speed of all joints together below which a robot rests
_MAX_DIP = 0.4  # a key pose is where the speed falls below this share of the peaks beside it
_MIN_PART_S = 0.15  # a part is at least this long
_MIN_PAUSE_S = 0.3  # a shorter rest counts as a change of direction
_STEP_S = 0.01  # between samples of the speed


# ---- moments to other times ---------------------------------------------------------------------


def warp(track: Track, moves: Sequence[Sequence[float]]) -> Track:
    """Return the track with each moment of `moves`, (from, to) in s, moved to its new time.

    Between them the time is stretched by a monotone spline. The first and last moment stay unless
    they are moved too. A result that is too fast is brought within the limits without changing
    these times (see `rote.motion.edit.tempo`). Its history states what was changed, which limits
    forbid the tempo and where, and where the tempo differs by more than `TEMPO_FACTOR`.
    """
    track.require_samples(2)
    pairs = sorted((float(old), float(new)) for old, new in moves)
    for old_s, new_s in pairs:
        track_time_s(track, old_s, "the moment")
        if not 0.0 <= new_s < 3600.0:
            raise BadRequestError(f"a moment cannot be moved to {new_s:g} s", "Choose 0 or later.")
    if not pairs or pairs[0][0] > 0.0:
        pairs.insert(0, (0.0, 0.0))
    if pairs[-1][0] < track.duration_s:
        pairs.append((track.duration_s, track.duration_s))
    line = "warp " + ", ".join(f"{old:.2f} s to {new:.2f} s" for old, new in moves)
    return _warp_within_limits(track, np.array(pairs), line)


def _warp_within_limits(track: Track, pairs: Array, line: str) -> Track:
    """Return the track with its moments `pairs[:, 0]` at `pairs[:, 1]`, and within its limits."""
    warped, tempo = _warp_time(track, pairs)
    line = "; ".join([line, *_describe_tempo(warped.times_s - warped.times_s[0], tempo)])
    known = joints_of(warped)
    unknown = [name for name in warped.names if name not in known]
    if unknown:
        line += f"; limits are not checked: those of {unknown[0]} are not known"
    elif is_too_fast(warped):
        # Limiting keeps the time and pose of marks, so each moved moment gets a temporary mark.
        marks = warped.marks
        moved_moments = tuple(
            Mark(float(warped.times_s[0]) + at_s - pairs[0, 1], "") for at_s in pairs[1:-1, 1]
        )
        warped, notes = keep_tempo_within_limits(replace(warped, marks=(*marks, *moved_moments)))
        warped, line = replace(warped, marks=marks), "; ".join([line, *notes[1:]])
    return replace(warped, history=(*track.history, line))


def _describe_tempo(times_s: Array, tempo: Array) -> list[str]:
    """Return a line for each part whose tempo is more than `TEMPO_FACTOR` from the recorded one.

    `times_s` is (n,) since the first sample; `tempo` is (n - 1,), 1 where it is as recorded.
    """
    lines = list[str]()
    for is_far, find_extreme in (
        (tempo > TEMPO_FACTOR, np.max),
        (tempo < 1.0 / TEMPO_FACTOR, np.min),
    ):
        # Runs of steps that are far off: their first steps, alternating with those after them.
        edges = np.flatnonzero(np.diff(is_far, prepend=False, append=False)).tolist()
        for begin, end in zip(edges[::2], edges[1::2], strict=True):
            factor = float(find_extreme(tempo[begin:end]))
            lines.append(
                f"{factor:.2g} times the recorded tempo from {times_s[begin]:.2f} s to "
                f"{times_s[end]:.2f} s"
            )
    return lines


def _warp_time(track: Track, pairs: Array) -> tuple[Track, Array]:
    """Return the track with its moments `pairs[:, 0]` at `pairs[:, 1]`, both increasing.

    Also return its tempo between two samples, as a multiple of the recorded one, (n - 1,).
    """
    old_s, new_s = pairs[:, 0], pairs[:, 1]
    too_near = np.flatnonzero((np.diff(new_s) < _MIN_GAP_S) | (np.diff(old_s) < 1e-9))
    if too_near.size:
        first, second = pairs[too_near[0]], pairs[too_near[0] + 1]
        raise BadRequestError(
            f"the moments at {first[0]:.2f} s and {second[0]:.2f} s would be at {first[1]:.2f} s "
            f"and {second[1]:.2f} s",
            f"Keep their order, and {_MIN_GAP_S:g} s or more between them.",
        )
    count = max(round((new_s[-1] - new_s[0]) * track.rate_hz), 1) + 1
    times_s = np.linspace(new_s[0], new_s[-1], count)
    first_s = float(track.times_s[0])
    source_s = first_s + sample(new_s, old_s[:, None], times_s, Interpolation.CUBIC)[:, 0]
    marks_s = [mark.time_s - first_s for mark in track.marks]
    new_marks_s = _map_to_new_times(times_s, source_s - first_s, np.array(marks_s))
    warped = track.edited(
        "warp",
        times_s=first_s + times_s,
        joints_rad=sample(track.times_s, track.joints_rad, source_s, Interpolation.CUBIC),
        marks=tuple(
            Mark(first_s + at_s, mark.label)
            for at_s, mark in zip(new_marks_s.tolist(), track.marks, strict=True)
        ),
        root=None if track.root is None else track.root.at(track.times_s, source_s),
    )
    return warped, np.diff(source_s) / np.diff(times_s)


def _map_to_new_times(new_s: Array, old_s: Array, moments_s: Array) -> Array:
    """Return the new times of old moments; those outside the motion keep their distance to it."""
    inside = np.interp(moments_s, old_s, new_s)
    before = np.minimum(moments_s - old_s[0], 0.0)
    after = np.maximum(moments_s - old_s[-1], 0.0)
    return np.asarray(inside + before + after)


# ---- on the beat --------------------------------------------------------------------------------


def beat(track: Track, bpm: float, per_beat: float = 1.0, first_s: float | None = None) -> Track:
    """Return the track with its marks on a grid of `bpm` beats a minute, each on the nearest.

    `per_beat` divides the beats: 2 allows half beats. The grid begins at `first_s`, by default at
    the first mark, which then stays. A part that would be too fast for the robot gets more beats;
    the history states which, and where the tempo differs from the recorded one by more than
    `TEMPO_FACTOR`. The motion before the first and after the last mark keeps its length.
    Raises `BadRequestError` if the track has fewer than two marks.
    """
    start_s = float(track.times_s[0])
    old_s = np.unique([mark.time_s - start_s for mark in track.marks])
    old_s = old_s[(old_s >= 0.0) & (old_s <= track.duration_s)]
    if old_s.size < 2:
        raise BadRequestError(
            f"the motion has {old_s.size} {'mark' if old_s.size == 1 else 'marks'}; a beat needs 2 "
            "or more",
            "Set marks, or let `segments` set one at the start of each part.",
        )
    step_s = 60.0 / (bpm * per_beat)
    origin_s = float(old_s[0]) if first_s is None else first_s
    min_durations_s = _compute_min_durations_s(track, old_s)
    steps, notes = _choose_grid_steps(old_s, (old_s - origin_s) / step_s, min_durations_s / step_s)
    new_s = origin_s + step_s * np.array(steps)
    if new_s[0] < 0:  # before the motion: move all marks by whole steps
        new_s += max(0.0, np.ceil((old_s[0] - new_s[0]) / step_s - 1e-9)) * step_s
    pairs = np.column_stack([old_s, new_s])
    # The first and last moment of the motion keep their distance to the marks.
    if old_s[0] > _MIN_GAP_S:
        pairs = np.vstack([[0.0, max(new_s[0] - old_s[0], 0.0)], pairs])
    if old_s[-1] < track.duration_s - _MIN_GAP_S:
        pairs = np.vstack([pairs, [track.duration_s, new_s[-1] + track.duration_s - old_s[-1]]])
    line = "; ".join([f"beat at {bpm:g} a minute: {old_s.size} marks on the grid", *notes])
    return _warp_within_limits(track, pairs, line)


def _choose_grid_steps(
    marks_s: Array, ideal_steps: Array, min_steps: Array
) -> tuple[list[int], list[str]]:
    """Return the step of the grid for each mark, and a note for each part that needs more steps.

    `ideal_steps` are the marks' own times, (marks,), and `min_steps` the minimum lengths of the
    parts between them, (marks - 1,), both in steps of the grid but not whole.
    """
    steps, notes = [round(ideal_steps[0])], list[str]()
    for index, min_length in enumerate(min_steps.tolist()):
        last_step, nearest_step = steps[-1], round(ideal_steps[index + 1])
        min_step = last_step + max(int(np.ceil(min_length - 1e-6)), 1)
        if min_step > max(nearest_step, last_step + 1):
            notes.append(
                f"the part from {marks_s[index]:.2f} s takes {min_step - last_step} steps of the "
                f"grid, not {max(nearest_step - last_step, 1)}: the joints cannot move faster"
            )
        steps.append(max(nearest_step, min_step))
    return steps, notes


def _compute_min_durations_s(track: Track, moments_s: Array) -> Array:
    """Return the minimum duration of each part between two moments, in s, by the joints' limits.

    A part is as much longer than recorded as its fastest sample must be slower. Joints that no
    robot has do not count.
    """
    known = joints_of(track)
    names = [name for name in track.names if name in known]
    lengths = np.diff(moments_s)
    if not names:
        return np.zeros_like(lengths)
    limits = playback_limits_rad_s([known[name] for name in names])
    times_s = track.times_s - track.times_s[0]
    values = track.joints_rad[:, track.columns_of(names)]
    speeds = np.diff(values, axis=0) / np.diff(times_s)[:, None]
    accelerations = np.diff(speeds, axis=0) / ((times_s[2:] - times_s[:-2]) / 2)[:, None]
    # By what factor each sample must be slower.
    slowdowns = np.zeros(len(times_s))
    slowdowns[1:] = (np.abs(speeds) / limits).max(axis=1)
    slowdowns[1:-1] = np.maximum(
        slowdowns[1:-1], np.sqrt(np.abs(accelerations).max(axis=1, initial=0.0) / MAX_PLAYED_RAD_S2)
    )
    part_slowdowns = [
        slowdowns[(times_s > begin) & (times_s <= end)].max(initial=0.0)
        for begin, end in zip(moments_s[:-1].tolist(), moments_s[1:].tolist(), strict=True)
    ]
    return np.asarray(lengths * np.array(part_slowdowns))


# ---- parts --------------------------------------------------------------------------------------


def segments(track: Track) -> Track:
    """Return the track with a mark where each part begins: at pauses and changes of direction.

    The parts are called `part 1`, `part 2` and so on; marks that are there already stay.
    """
    starts_s = [0.0, *_find_part_starts_s(track)]
    first_s = float(track.times_s[0])
    marks_s = [mark.time_s - first_s for mark in track.marks]
    new_marks = [
        Mark(first_s + at_s, f"part {number}")
        for number, at_s in enumerate(starts_s, 1)
        if not any(abs(at_s - mark_s) < _MIN_PART_S for mark_s in marks_s)
    ]
    return track.edited(f"segments: {len(starts_s)} parts", marks=(*track.marks, *new_marks))


def find_key_poses_s(track: Track) -> list[float]:
    """Return the times of a motion's key poses, in s from its first sample.

    They are those at which it begins, begins and ends a rest, changes direction, and ends.
    """
    return [0.0, *(at_s for dip in _find_dips(track) for at_s in dip), track.duration_s]


def split_at_marks(track: Track) -> list[tuple[str, Track]]:
    """Return the parts of a track between its marks, each with its mark's label."""
    first_s, last_s = float(track.times_s[0]), float(track.times_s[-1])
    starts = [mark for mark in track.marks if first_s <= mark.time_s < last_s]
    if not starts or starts[0].time_s - first_s > _MIN_PART_S:
        starts.insert(0, Mark(first_s, "beginning"))
    ends_s = [*(mark.time_s for mark in starts[1:]), last_s]
    return [
        (mark.label, trim(track, max(mark.time_s, first_s), end_s))
        for mark, end_s in zip(starts, ends_s, strict=True)
        if end_s - mark.time_s > _MIN_GAP_S
    ]


def keep_part(track: Track, label: str) -> Track:
    """Return the part of a track from the mark with this label to the next mark.

    Of several marks with the label the first counts. Raises `BadRequestError` if there is none.
    """
    parts = split_at_marks(track)
    for part_label, part in parts:
        if part_label == label:
            return replace(part, history=(*track.history, f"part: {label}"))
    labels = ", ".join(dict.fromkeys(part_label for part_label, _ in parts))
    raise BadRequestError(
        f"the motion has no part {label!r}",
        f"It has: {labels}." if track.marks else "Set marks, or let `segments` find parts.",
    )


def _find_part_starts_s(track: Track) -> list[float]:
    """Return when each part after the first begins: at the end of a rest, in s from the start."""
    return [dip[-1] for dip in _find_dips(track) if dip[-1] < track.duration_s - _MIN_PART_S]


def _find_dips(track: Track) -> list[tuple[float, ...]]:
    """Return when the motion is slow: (from, to) for a pause, (at,) for a change of direction."""
    track.require_samples(3)
    times_s, speeds = _smooth_speeds(track)
    lows = np.flatnonzero((speeds[1:-1] <= speeds[:-2]) & (speeds[1:-1] < speeds[2:])) + 1
    # The greatest speeds before, between and after the lows. Drop the shallowest low, which joins
    # the peaks on both sides of it, until all lows are deep.
    peaks = [float(part.max(initial=0.0)) for part in np.split(speeds, lows)]
    kept = lows.tolist()
    while kept:
        depths = [
            speeds[low] / max(min(peaks[index], peaks[index + 1]), _STILL_RAD_S)
            for index, low in enumerate(kept)
        ]
        shallowest = int(np.argmax(depths))
        if depths[shallowest] <= _MAX_DIP:
            break
        del kept[shallowest]
        peaks[shallowest : shallowest + 2] = [max(peaks[shallowest : shallowest + 2])]
    return [_measure_dip(times_s, speeds, low) for low in kept]


def _smooth_speeds(track: Track) -> tuple[Array, Array]:
    """Return evenly spaced times since the first sample, and the smoothed speed at each, in rad/s.

    The speed is that of all joints together, as the length of their vector.
    """
    count = max(round(track.duration_s / _STEP_S), 2) + 1
    times_s = np.linspace(0.0, track.duration_s, count)
    values = sample(
        track.times_s - track.times_s[0], track.joints_rad, times_s, Interpolation.CUBIC
    )
    step_s = float(times_s[1])
    smooth = average_gaussian(values, _SMOOTH_S / step_s)
    return times_s, np.linalg.norm(np.gradient(smooth, step_s, axis=0), axis=1)


def _measure_dip(times_s: Array, speeds: Array, low: int) -> tuple[float, ...]:
    """Return when the rest around the sample `low`, a minimum of the speed, begins and ends.

    If it is shorter than a pause, return only the time of that sample.
    """
    moving = np.flatnonzero(speeds > max(_STILL_RAD_S, speeds[low]))
    begin = int(moving[moving < low].max(initial=-1)) + 1
    end = int(moving[moving > low].min(initial=len(speeds))) - 1
    if times_s[end] - times_s[begin] < _MIN_PAUSE_S:
        return (float(times_s[low]),)
    return float(times_s[begin]), float(times_s[end])
