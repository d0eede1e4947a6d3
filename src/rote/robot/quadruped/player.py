"""Moves the legs of an A1 along tracks and to poses."""

from collections.abc import Sequence

import numpy as np

from rote.errors import BadRequestError
from rote.model.a1 import A1_JOINTS
from rote.motion.track import Track
from rote.robot.api_values import check_seconds
from rote.robot.play_options import TrackOptions
from rote.robot.quadruped import motion as a1_motion
from rote.robot.quadruped.leg_control import LegControl
from rote.robot.quadruped.loop import LoopStats
from rote.robot.quadruped.motion import LegMotion
from rote.robot.quadruped.playing import LegPlaying
from rote.robot.streaming import check_origin, check_rate
from rote.robot.unfinished import Unfinished
from rote.session.a1 import Level
from rote.transport.wires import unsupported
from rote.wire.a1.motors import LEG_MOTORS


class LegPlayer:
    """Plays motions on the legs of one robot."""

    def __init__(self, legs: LegControl, unfinished: Unfinished) -> None:
        self._legs = legs
        self._unfinished = unfinished

    def check_streamable(self) -> None:
        """Raise `UnsupportedError` if the walking controller drives the motors."""
        self._legs.require_level(
            Level.LOW,
            "play a motion",
            "Let it lie or hang, and connect to its motors: level=low in its URL.",
        )

    def play_track(self, track: Track, options: TrackOptions) -> LegPlaying:
        """Play a track of the twelve joints; it is checked here, or by the result if offloaded."""
        legs, offload = self._legs, options.offload
        check_origin(track, legs.client.url, imported=options.imported)
        check_rate(options.rate_hz)
        if options.hands:
            raise unsupported("play hands", "a1", "hands")
        self.check_streamable()
        legs.check_not_busy()
        ready, stops = None, legs.stops.count
        if offload is None:
            measured_rad = legs.measured_rad().tolist()
            ready = a1_motion.prepare(track, legs.safety, measured_rad, options.speed)

        async def prepare() -> LegMotion:
            if ready is not None:
                return ready
            assert offload is not None
            even = await offload(a1_motion.check_and_sample, track, legs.safety, options.speed)
            legs.stops.check_none_since(stops)
            return a1_motion.with_approach(track, even, legs.measured_rad().tolist())

        name = track.source or "a track"
        playing = LegPlaying(legs, name, prepare, options.make_start(), self._unfinished)
        legs.note_playback(playing)
        return playing

    async def move_to(self, joints_rad: Sequence[float], seconds: float | None) -> LoopStats:
        """Move the legs softly to twelve angles in rad, and hold them there."""
        legs = self._legs
        goal = np.asarray(joints_rad, dtype=float)
        if goal.shape != (LEG_MOTORS,) or not np.isfinite(goal).all():
            raise BadRequestError(f"a pose of an A1 is {LEG_MOTORS} finite angles in rad")
        for joint, angle in zip(A1_JOINTS, goal.tolist(), strict=True):
            low, high = legs.safety.lower_rad[joint.index], legs.safety.upper_rad[joint.index]
            if not low <= angle <= high:
                raise BadRequestError(
                    f"{joint.name} cannot go to {angle:g} rad", f"Choose {low:g} to {high:g} rad."
                )
        if seconds is not None:
            check_seconds(seconds, "a move")
        legs.require_level(Level.LOW, "drive motors")
        a1_motion.check_move(legs.measured_rad(), goal, seconds)
        poses = np.vstack([a1_motion.plan_soft_move(legs.measured_rad(), goal, seconds), goal])
        motion = LegMotion("a move", poses, len(poses) - 1)
        motion_clock = a1_motion.MotionClock()
        stats, _ = await legs.run_step(
            lambda _, time_s: motion.motors(motion_clock.at(time_s)), realtime=True
        )
        return stats
