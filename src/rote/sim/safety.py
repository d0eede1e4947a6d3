"""What the robot itself asks of a motion before it moves: the checks that everybody runs.

They are those of `motion.check` but for contact: looking for it takes a library that a robot need
not have, and longer than a robot may stand still in its loop. Whoever sends a motion looks for it.
"""

from collections import OrderedDict
from collections.abc import Callable
from hashlib import blake2b

from rote.model.family import Build
from rote.motion.check import check, check_gaps
from rote.motion.check_report import CheckReport
from rote.motion.track import Array, Track


def check_motion(
    times_s: Array, poses_rad: Array, recorded_s: Array | None, build: Build
) -> CheckReport:
    """Return what speaks against a motion; raise `UnsafeMotionError` where something forbids it.

    `poses_rad` is in the build's columns, as it would be played. `recorded_s` are the times of the
    samples it was made of, if it was recorded: between them nobody knows what was shown. Nobody is
    there who could look at a warning, so it forbids nothing.
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


class MotionChecks:
    """What was found of the motions that a robot played last, so that none is checked twice."""

    def __init__(self, most: int = 32) -> None:
        self._most = most
        self._found: OrderedDict[bytes, CheckReport] = OrderedDict()

    def check(
        self, times_s: Array, poses_rad: Array, recorded_s: Array | None, build: Build
    ) -> CheckReport:
        """Do as `check_motion` does; of the same numbers on the same build it knows the answer.

        What is forbidden is not remembered.
        """
        of = blake2b(build.name.encode(), digest_size=16)
        for numbers in (times_s, poses_rad, recorded_s):
            shape = b"none" if numbers is None else str(numbers.shape).encode()
            of.update(shape)
            of.update(b"" if numbers is None else numbers.tobytes())
        key = of.digest()
        report = self._found.get(key)
        if report is None:
            report = check_motion(times_s, poses_rad, recorded_s, build)
            self._found[key] = report
            if len(self._found) > self._most:
                self._found.popitem(last=False)
        self._found.move_to_end(key)
        return report
