"""What the robot itself asks of a motion before it moves: the checks that everybody runs.

They are those of `motion.check` but for contact: looking for it takes a library that a robot need
not have, and longer than a robot may stand still in its loop. Whoever sends a motion looks for it.
"""

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
