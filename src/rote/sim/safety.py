"""The robot's own checks of a motion before it moves: the same that clients run.

They are those of `motion.check` without contact. The contact check needs a library that a robot
need not have, and takes longer than its loop may block. The client that sends a motion runs it.
"""

from collections import OrderedDict
from collections.abc import Callable
from hashlib import blake2b

from rote.model.family import Build
from rote.motion.check.report import CheckReport
from rote.motion.check.rules import check, check_gaps
from rote.motion.track import Array, Track


def check_motion(
    times_s: Array, poses_rad: Array, recorded_s: Array | None, build: Build
) -> CheckReport:
    """Return the findings about a motion; raise `UnsafeMotionError` if it has errors.

    `poses_rad` is in the build's columns, as it would be played. `recorded_s` are the times of the
    recorded samples, if it was recorded: gaps between them are checked. Warnings do not forbid a
    motion, because the robot has no operator to confirm them.
    """
    if recorded_s is not None:
        check_gaps(recorded_s).permit(force=True)
    if not build.taught:
        return CheckReport(())
    taught = poses_rad[:, list(build.taught_columns)]
    track = Track(times_s=times_s, joints_rad=taught, names=build.taught, variant=build.name)
    report = check(track, build=build, contact=False)
    report.permit(force=True)
    return report


MotionCheck = Callable[[Array, Array, Array | None, Build], CheckReport]


class MotionCheckCache:
    """Caches the check reports of the last played motions."""

    def __init__(self, most: int = 32) -> None:
        self._most = most
        self._found: OrderedDict[bytes, CheckReport] = OrderedDict()

    def check(
        self, times_s: Array, poses_rad: Array, recorded_s: Array | None, build: Build
    ) -> CheckReport:
        """Like `check_motion`, but cached by build and numbers.

        Forbidden motions are not cached.
        """
        digest = blake2b(build.name.encode(), digest_size=16)
        for numbers in (times_s, poses_rad, recorded_s):
            shape = b"none" if numbers is None else str(numbers.shape).encode()
            digest.update(shape)
            digest.update(b"" if numbers is None else numbers.tobytes())
        key = digest.digest()
        report = self._found.get(key)
        if report is None:
            report = check_motion(times_s, poses_rad, recorded_s, build)
            self._found[key] = report
            if len(self._found) > self._most:
                self._found.popitem(last=False)
        self._found.move_to_end(key)
        return report
