"""Makes a motion playable in one step, as far as possible without changing its character.

Joints that a robot does not play are left out, angles beyond a joint's range are set to its limit,
an excess length is cut, and what is too fast is retimed. Contact, balance and weight are not fixed
here: they would need another motion, and the check still reports them.
"""

from dataclasses import replace

import numpy as np

from rote.errors import BadRequestError
from rote.findings import FindingKind, Severity
from rote.model.family import MAX_MOTION_S
from rote.motion.check.rules import check_joints
from rote.motion.edit.operations import keep, resample, trim
from rote.motion.edit.retime import retime
from rote.motion.track import Track
from rote.motion.track_build import build_of, hand_joints, joints_of

__all__ = ["fit"]

_DENSE_HZ = 200.0
_FAST = frozenset({FindingKind.VELOCITY, FindingKind.ACCELERATION})


def fit(track: Track) -> Track:
    """Return the playable part of a track within all limits of its joints.

    The last line of its history states what was changed. Raises `BadRequestError` if no robot has
    its joints, or it has none that is played.
    """
    track.require_samples(2)
    build = build_of(track)
    if build is None:
        raise BadRequestError("no known robot has these joints")
    before, changes = track.history, list[str]()
    played = {*build.taught, *hand_joints(build)}
    kept = [name for name in track.names if name in played]
    if not kept:
        raise BadRequestError(f"{build.name} plays none of its joints", "Import it with its arms.")
    if len(kept) < len(track.names):
        left_out = [name for name in track.names if name not in played]
        track = keep(track, kept)
        changes.append(f"left out, as not played: {', '.join(left_out)}")
    track, notes = _clip_to_limits(track)
    changes += notes
    track, notes = _cut_to_max_length(track)
    changes += notes
    if any(
        finding.kind in _FAST and finding.severity is not Severity.NOTE
        for finding in check_joints(track).findings
    ):
        if track.rate_hz < _DENSE_HZ:
            # Between samples far apart, the smooth curve along which it is retimed overshoots.
            track = resample(track, _DENSE_HZ)
        track = retime(track)
        changes.append(track.history[-1])
        track, _ = _clip_to_limits(track)  # it keeps the path to a hundredth of a rad
        track, notes = _cut_to_max_length(track)
        changes += notes
    line = "; ".join(changes) or "nothing had to be changed"
    return replace(track, history=(*before, f"fit: {line}"))


def _clip_to_limits(track: Track) -> tuple[Track, list[str]]:
    known = joints_of(track)
    joints_rad, notes = track.joints_rad.copy(), []
    for column, name in enumerate(track.names):
        if name not in known:
            continue
        low, high = known[name].lower_rad, known[name].upper_rad
        beyond = np.maximum(low - joints_rad[:, column], joints_rad[:, column] - high)
        if (worst := float(beyond.max())) > 0.0:
            at_s = float(track.times_s[int(beyond.argmax())] - track.times_s[0])
            joints_rad[:, column] = np.clip(joints_rad[:, column], low, high)
            notes.append(f"{name} kept within its range, by up to {worst:.3f} rad at {at_s:.2f} s")
    return (track.edited("limits", joints_rad=joints_rad) if notes else track), notes


def _cut_to_max_length(track: Track) -> tuple[Track, list[str]]:
    if track.duration_s <= MAX_MOTION_S:
        return track, []
    first_s, whole_s = float(track.times_s[0]), track.duration_s
    cut = trim(track, first_s, first_s + MAX_MOTION_S)
    return cut, [f"cut after {cut.duration_s:.1f} of {whole_s:.1f} s"]
