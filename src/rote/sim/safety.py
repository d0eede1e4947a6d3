"""The robot's own checks of a motion before it moves: the same that clients run.

They are those of `motion.check` without contact. Contact needs a library that a robot need not
have, and takes longer than its loop may stand still. The client that sends a motion checks it.
"""

from rote.model.family import Build
from rote.motion.check import check, check_gaps
from rote.motion.check_report import CheckReport
from rote.motion.track import Array, Track


def check_motion(
    times_s: Array, poses_rad: Array, recorded_s: Array | None, build: Build
) -> CheckReport:
    """Return what speaks against a motion; raise `UnsafeMotionError` if something forbids it.

    `poses_rad` is in the build's columns, as it would be played. `recorded_s` are the times of the
    recorded samples, if it was recorded: gaps between them are checked. Warnings forbid nothing,
    because nobody is there to look at them.
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
