"""The edits of the table as methods of a track: `track.trim(auto=True).smooth()`.

Made by `python scripts/track_edits.py` from `rote.motion.edit.table`; do not edit it.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from rote.motion.edit.table import EDITS

if TYPE_CHECKING:
    from rote.motion.track import Track


class TrackEdits:
    """The edits that a track has as methods. Each returns a new track; this one stays as it is."""

    __slots__ = ()

    def _apply(self, name: str, others: "Sequence[Track]" = (), **values: Any) -> "Track":
        return EDITS[name].apply((cast("Track", self), *others), values)

    def trim(
        self, start_s: float | None = None, end_s: float | None = None, *, auto: bool = False
    ) -> "Track":
        """Cut off the beginning and the end: by seconds, or where nothing moves.

        `start_s`: First second to keep, counted from the beginning. From 0 to 1e+06 s.
        `end_s`: Last second to keep, counted from the beginning. From 0 to 1e+06 s.
        `auto`: Cut the still beginning and end instead.
        """
        return self._apply("trim", start_s=start_s, end_s=end_s, auto=auto)

    def smooth(self, cutoff_hz: float = 4.0, joints: str | Sequence[str] | None = None) -> "Track":
        """Take out trembling, without delay. A lower cutoff is smoother.

        `cutoff_hz`: Take out what is faster, in Hz. From 0.01 to 1000 Hz.
        `joints`: Only this joint, or limb like left_arm; all if left out. Several are a list.
        """
        return self._apply("smooth", cutoff_hz=cutoff_hz, joints=joints)

    def speed(self, factor: float) -> "Track":
        """Make it faster or slower throughout. 2 is twice as fast.

        `factor`: 2 is twice as fast. From 0.01 to 100 times.
        """
        return self._apply("speed", factor=factor)

    def retime(
        self,
        velocity: float | None = None,
        acceleration: float | None = None,
        jerk: float | None = None,
        *,
        fastest: bool = False,
    ) -> "Track":
        """Keep the path within limits of speed, acceleration and jerk. It gets slower where a
        limit is broken, and nowhere faster than recorded unless that is asked for.

        `velocity`: At most, in rad/s; what the robot plays well if left out. From 0.02 to 1000
            rad/s.
        `acceleration`: At most, in rad/s2. From 0.1 to 100000 rad/s2.
        `jerk`: At most, in rad/s3. From 1 to 1e+07 rad/s3.
        `fastest`: Also faster than recorded, as far as the limits allow.
        """
        return self._apply(
            "retime", velocity=velocity, acceleration=acceleration, jerk=jerk, fastest=fastest
        )

    def mirror(self, joints: str | Sequence[str] | None = None) -> "Track":
        """Exchange left and right; chosen joints alone become the image of the others.

        `joints`: Only this joint, or limb like left_arm; all if left out. Several are a list.
        """
        return self._apply("mirror", joints=joints)

    def reverse(self, joints: str | Sequence[str] | None = None) -> "Track":
        """Play it backwards.

        `joints`: Only this joint, or limb like left_arm; all if left out. Several are a list.
        """
        return self._apply("reverse", joints=joints)

    def resample(self, rate_hz: float = 100.0) -> "Track":
        """Space the samples evenly.

        `rate_hz`: Samples a second. From 0.1 to 10000 Hz.
        """
        return self._apply("resample", rate_hz=rate_hz)

    def close_loop(self, seconds: float = 1.0) -> "Track":
        """Return to the first pose at the end, so that it can be played in a loop.

        `seconds`: How long the way back may take. From 0.01 to 60 s.
        """
        return self._apply("close_loop", seconds=seconds)

    def keep(self, joints: str | Sequence[str]) -> "Track":
        """Keep some joints only.

        `joints`: A joint's name, or a limb's like left_arm or front_left_leg. Several are a
            list.
        """
        return self._apply("keep", joints=joints)

    def drop(self, joints: str | Sequence[str]) -> "Track":
        """Leave some joints out.

        `joints`: A joint's name, or a limb's like left_arm or front_left_leg. Several are a
            list.
        """
        return self._apply("drop", joints=joints)

    def to_build(self, build: str, *, force: bool = False) -> "Track":
        """Give it the joints of another build of its robot.

        `build`: For example g1-29, g1-27 or g1-23.
        `force`: Even if joints that move are lost.
        """
        return self._apply("to_build", build=build, force=force)

    def keyframe(
        self,
        time_s: float,
        pose: Mapping[str, float],
        to_s: float | None = None,
        before_s: float = 0.5,
        after_s: float = 0.5,
    ) -> "Track":
        """Lead joints through other angles at one moment; the motion around it follows.

        `time_s`: When, in seconds from the beginning. From 0 to 1e+06 s.
        `pose`: A joint and its angle in rad, as NAME=RAD. May be repeated.
        `to_s`: Move it there, in seconds from the beginning. From 0 to 1e+06 s.
        `before_s`: How long before it the motion begins to change. From 0 to 600 s.
        `after_s`: How long after it the motion has changed. From 0 to 600 s.
        """
        return self._apply(
            "keyframe", time_s=time_s, pose=pose, to_s=to_s, before_s=before_s, after_s=after_s
        )

    def through(self, time_s: float, pose: Mapping[str, float]) -> "Track":
        """Lead joints through other angles at one moment, with the least change of acceleration;
        both ends stay.

        `time_s`: When, in seconds from the beginning. From 0 to 1e+06 s.
        `pose`: A joint and its angle in rad, as NAME=RAD. May be repeated.
        """
        return self._apply("through", time_s=time_s, pose=pose)

    def fit(self) -> "Track":
        """Leave out what is not played, keep joints within their range, cut what is too long, and
        retime what is too fast.
        """
        return self._apply("fit")

    def mark(self, time_s: float, label: str) -> "Track":
        """Give a moment a name.

        `time_s`: When, in seconds from the beginning. From 0 to 1e+06 s.
        `label`: A few words.
        """
        return self._apply("mark", time_s=time_s, label=label)

    def change_mark(
        self, time_s: float, label: str | None = None, to_s: float | None = None
    ) -> "Track":
        """Rename the mark at a moment, or move it.

        `time_s`: When, in seconds from the beginning. From 0 to 1e+06 s.
        `label`: A few words.
        `to_s`: Move it there, in seconds from the beginning. From 0 to 1e+06 s.
        """
        return self._apply("change_mark", time_s=time_s, label=label, to_s=to_s)

    def remove_mark(self, time_s: float) -> "Track":
        """Remove the mark at a moment.

        `time_s`: When, in seconds from the beginning. From 0 to 1e+06 s.
        """
        return self._apply("remove_mark", time_s=time_s)

    def cross_fade(self, other: "Track", overlap_s: float = 0.5) -> "Track":
        """Pass into another motion while both are played.

        `overlap_s`: Seconds in which both are played. From 0.001 to 600 s.
        """
        return self._apply("cross_fade", (other,), overlap_s=overlap_s)

    def concatenate(self, other: "Track", bridge_s: float = 0.5) -> "Track":
        """Let another motion follow, with a soft bridge between.

        `bridge_s`: Seconds from one to the other. From 0 to 60 s.
        """
        return self._apply("concatenate", (other,), bridge_s=bridge_s)

    def blend(
        self, other: "Track", weight: float = 0.5, joints: str | Sequence[str] | None = None
    ) -> "Track":
        """Mix two performances of one motion. Weight 0 is the first, 1 the second.

        `weight`: 0 is the first motion, 1 the second. From 0 to 1 of the whole.
        `joints`: Only this joint, or limb like left_arm; all if left out. Several are a list.
        """
        return self._apply("blend", (other,), weight=weight, joints=joints)

    def layer(self, other: "Track", joints: str | Sequence[str]) -> "Track":
        """Take some joints from another motion: joint right_arm takes its right arm.

        `joints`: A joint's name, or a limb's like left_arm or front_left_leg. Several are a
            list.
        """
        return self._apply("layer", (other,), joints=joints)

    def average(self, *others: "Track") -> "Track":
        """Average several takes of one motion, aligned in time."""
        return self._apply("average", others)
