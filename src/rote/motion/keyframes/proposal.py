"""Proposes a few keyframes per joint that approximate a motion, for a person to edit.

They are the fewest with which smooth steps stay near the motion (`search`). A long motion is
searched in parts, at a rate that suits the movement of a hand, so that the answer is quick.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rote.messages import Interpolation
from rote.motion.interpolate import sample
from rote.motion.keyframes.search import compress_to_bound
from rote.motion.track import Track

BOUND_RAD = 0.08
"""The maximum error of smooth steps between keyframes: about 5 degrees."""
STILL_RAD = 0.02
"""A joint that moves less than this over the whole motion has keyframes only if it is named."""

_RATE_HZ = 12.5
_PART_S = 20.0


class ProposedKeyframe(NamedTuple):
    """An angle that a joint passes through; the time is since the first sample."""

    joint: str
    time_s: float
    value_rad: float


def propose(
    track: Track, joints: Collection[str] | None = None
) -> tuple[list[ProposedKeyframe], float]:
    """Return the keyframes of all joints that move, and the largest error between them, in rad.

    With `joints` only of these. They are sorted by joint, in the track's order, then by time. The
    first and the last sample are always among them.
    """
    track.require_samples(2)
    wanted = track.names if joints is None else track.choose_joints(joints)
    moved_rad = np.ptp(track.joints_rad[:, track.columns_of(wanted)], axis=0)
    moving = [
        name
        for name, by_rad in zip(wanted, moved_rad.tolist(), strict=True)
        if joints is not None or by_rad > STILL_RAD
    ]
    if not moving:
        return [], 0.0
    coarse = _resample_coarsely(track, moving)
    rows: list[set[int]] = [{0, len(coarse) - 1} for _ in moving]
    worst_rad = 0.0
    size = round(_PART_S * _RATE_HZ)
    for begin in range(0, len(coarse) - 1, size):
        part = slice(begin, begin + size + 1)
        times_s = coarse.times_s[part]
        found = compress_to_bound(
            replace(coarse, times_s=times_s, joints_rad=coarse.joints_rad[part]),
            BOUND_RAD,
            Interpolation.SMOOTH,
        )
        worst_rad = max(worst_rad, found.max_error_rad)
        for each in found.keyframes:
            near = np.abs(times_s - times_s[0] - each.time_ms / 1000.0).argmin()
            rows[each.joint].add(begin + int(near))
        for own in rows:
            own.add(begin)
    return [
        ProposedKeyframe(name, float(coarse.times_s[row]), float(coarse.joints_rad[row, column]))
        for column, name in enumerate(moving)
        for row in sorted(rows[column])
    ], worst_rad


def _resample_coarsely(track: Track, names: list[str]) -> Track:
    """Return these joints at the rate of the search, from 0 s, with the last sample."""
    count = max(int(np.ceil(track.duration_s * _RATE_HZ)), 1) + 1
    since_s = np.linspace(0.0, track.duration_s, count)
    values = sample(
        track.times_s,
        track.joints_rad[:, track.columns_of(names)],
        track.times_s[0] + since_s,
        Interpolation.CUBIC,
    )
    return Track(times_s=since_s, joints_rad=values, names=tuple(names))
