"""Makes a motion playable in one step, as far as possible without changing its character.

Joints that a robot does not play are left out, angles beyond a joint's range are set to its limit,
an excess length is cut, and parts that are too fast are slowed down, or smoothed if the tempo is
kept. Contact, balance and weight are not fixed here: they would need another motion, and the check
still reports them.
"""

from dataclasses import replace

import numpy as np

from rote.errors import BadRequestError
from rote.model.family import MAX_MOTION_S
from rote.motion.edit.operations import keep, resample, trim
from rote.motion.edit.retime import retime
from rote.motion.edit.tempo import DENSE_HZ, is_too_fast, keep_tempo_within_limits
from rote.motion.track import Track
from rote.motion.track_build import build_of, hand_joints, joints_of

__all__ = ["fit"]


def fit(track: Track, *, keep_tempo: bool = False, slow_down: bool = False) -> Track:
    """Return the playable part of a track within all limits of its joints.

    Parts that are too fast get slower and keep their path (`slow_down`), or change their path and
    keep the length and the times of marks (`keep_tempo`, the default for a track with marks). The
    last line of the history states what was changed, and which limits are not met in that tempo.
    Raises `BadRequestError` if both `keep_tempo` and `slow_down` are requested, or no robot plays
    any of the joints.
    """
    if keep_tempo and slow_down:
        raise BadRequestError(
            "a motion cannot both slow down and keep its tempo", "Choose one of the two."
        )
    track.require_samples(2)
    build = build_of(track)
    if build is None:
        raise BadRequestError("no known robot has these joints")
    history, changes = track.history, list[str]()
    played = {*build.taught, *hand_joints(build)}
    played_names = [name for name in track.names if name in played]
    if not played_names:
        raise BadRequestError(
            f"{build.name} plays none of the joints of this motion",
            "Use a motion that includes the arms.",
        )
    if len(played_names) < len(track.names):
        left_out = [name for name in track.names if name not in played]
        track = keep(track, played_names)
        changes.append(f"left out, because the robot does not play them: {', '.join(left_out)}")
    track, notes = _clip_to_limits(track)
    changes += notes
    track, notes = _cut_to_max_length(track)
    changes += notes
    if is_too_fast(track):
        if keep_tempo or (track.marks and not slow_down):
            track, notes = keep_tempo_within_limits(track)
        else:
            track, notes = _slow_down(track)
        changes += notes
    line = "; ".join(changes) or "nothing had to be changed"
    return replace(track, history=(*history, f"fit: {line}"))


def _slow_down(track: Track) -> tuple[Track, list[str]]:
    """Return the track slowed down where it is too fast, and notes of what was changed."""
    if track.rate_hz < DENSE_HZ:
        # Between samples far apart, the smooth curve along which the track is retimed overshoots.
        track = resample(track, DENSE_HZ)
    track = retime(track)
    retimed = track.history[-1]
    track, _ = _clip_to_limits(track)  # retiming may leave the path by up to 0.01 rad
    track, notes = _cut_to_max_length(track)
    return track, [retimed, *notes]


def _clip_to_limits(track: Track) -> tuple[Track, list[str]]:
    """Return the track with each joint within its range, and a note for each changed joint."""
    known = joints_of(track)
    joints_rad, notes = track.joints_rad.copy(), []
    for column, name in enumerate(track.names):
        if name not in known:
            continue
        low, high = known[name].lower_rad, known[name].upper_rad
        excess = np.maximum(low - joints_rad[:, column], joints_rad[:, column] - high)
        if (worst := float(excess.max())) > 0.0:
            at_s = float(track.times_s[int(excess.argmax())] - track.times_s[0])
            joints_rad[:, column] = np.clip(joints_rad[:, column], low, high)
            notes.append(f"{name} kept within its range, by up to {worst:.3f} rad at {at_s:.2f} s")
    return (track.edited("limits", joints_rad=joints_rad) if notes else track), notes


def _cut_to_max_length(track: Track) -> tuple[Track, list[str]]:
    """Return the longest playable beginning of a track, and a note if the rest was cut."""
    if track.duration_s <= MAX_MOTION_S:
        return track, []
    first_s, whole_s = float(track.times_s[0]), track.duration_s
    cut = trim(track, first_s, first_s + MAX_MOTION_S)
    return cut, [f"cut after {cut.duration_s:.1f} of {whole_s:.1f} s"]
