"""Plays tracks and live poses of this computer on a robot, and stores tracks as its actions."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np

from rote import messages as m
from rote.errors import BadRequestError, NoAnswerError, RoteError, UnsupportedError
from rote.messages import MAX_KEYFRAMES, Interpolation, RobotState
from rote.model.family import Build
from rote.motion.check.rules import check
from rote.motion.interpolate import MINIMUM_JERK_PEAK, minimum_jerk
from rote.motion.keyframes.search import Compressed, check_faithful, compress_to_budget
from rote.motion.track import Track
from rote.platform.loop import clock_of, to_the_end
from rote.robot import streamed_motion
from rote.robot.action_store import ActionStore
from rote.robot.api_values import check_name, check_seconds
from rote.robot.arm_requests import ArmRequests
from rote.robot.following import Following, LivePoses, check_path_contact
from rote.robot.link import REPORT_MACHINE, RobotLink
from rote.robot.pausing import PausablePoses
from rote.robot.play_options import TrackOptions
from rote.robot.streamed_motion import (
    Offload,
    StreamedMotion,
    check_playable,
    taught_joint_arrays,
    taught_poses,
    without_hands,
)
from rote.robot.streaming import PoseStreaming, Streaming
from rote.robot.ticker import REQUEST_RESERVE_S, Ticker, TimedStart, check_in_time
from rote.text import Act, Text
from rote.transport.wires import unsupported, wires_with

NEAR_REST_RAD = 0.05
"""A motion that begins nearer to rest than this needs no approach."""
_APPROACH_STEP_S = 0.02
"""Maximum time between two poses of an approach that is added to a motion."""


def make_storable(track: Track, build: Build) -> Track:
    """Return a track of the taught joints that is safe to play and begins at rest.

    A robot plays keyframes from the pose it is in, and between playbacks that is rest.
    """
    taught = taught_joint_arrays(build)
    track = without_hands(track, build)  # a robot's own actions have no hands
    times_s = track.times_s - track.times_s[:1]
    poses = taught_poses(track, build)
    distance_rad = float(np.abs(poses[0] - taught.rest_rad).max())
    if distance_rad > NEAR_REST_RAD:
        seconds = max(taught.soft_least_s, MINIMUM_JERK_PEAK * distance_rad / taught.soft_rad_s)
        steps = np.ceil(seconds / _APPROACH_STEP_S)
        fractions = np.arange(steps) / steps
        times_s = np.concatenate([fractions * seconds, times_s + seconds])
        poses = np.vstack([minimum_jerk(taught.rest_rad, poses[0], fractions), poses])
    else:
        poses[0] = taught.rest_rad
    check_seconds(float(times_s[-1]), "an action")
    return Track(
        times_s=times_s,
        joints_rad=check_playable(times_s, poses, build),
        names=taught.names,
        variant=build.name,
    )


def compress(track: Track, build: Build, budget: int) -> Compressed:
    """Return the keyframes of a `make_storable` track; raise `UnsafeMotionError` if they differ too
    much.

    Raises too if a check finds an error in the track. Warnings do not prevent storing.
    """
    if not 1 <= budget <= MAX_KEYFRAMES:
        raise BadRequestError(
            f"{budget} keyframes cannot be stored", f"Choose 1 to {MAX_KEYFRAMES}."
        )
    check(track, build=build.bare).permit(force=True)
    compressed = compress_to_budget(track, budget, Interpolation.LINEAR)
    check_faithful(compressed)
    if not compressed.keyframes:
        raise BadRequestError(
            "no joint moves in this motion",
            "There is nothing to store: choose a motion that moves.",
        )
    # So far a keyframe's joint is an index among the taught joints; the robot counts all joints.
    keyframes = [
        replace(keyframe, joint=build.taught_columns[keyframe.joint])
        for keyframe in compressed.keyframes
    ]
    return replace(compressed, keyframes=tuple(keyframes))


_JOINTS_TIMEOUT_S = 3.0
"""Timeout for a report of the joints; some robots report them once per second."""


class Streamer:
    """Streams poses to one robot, if its wire can carry them."""

    def __init__(self, link: RobotLink, store: ActionStore, arms: ArmRequests) -> None:
        self._link = link
        self._store = store
        self._arms = arms

    def check_streamable(self) -> None:
        """Raise `UnsupportedError` if this wire cannot stream, or the machine or its motors are not
        known.
        """
        self._link.require_ability("stream", "stream a motion")
        build = self._link.build
        if build.stream is None:
            raise UnsupportedError(
                f"stream to this robot ({build.title}): {build.no_stream}",
                f"{self._link.client.wire}://",
                remedy=REPORT_MACHINE
                if not build.known
                else "Teach the robot by hand, and play its taught actions.",
            )

    def play_track(self, track: Track, options: TrackOptions) -> Streaming:
        """Play a track. The error of an unsafe track is raised here, or by awaiting the result if
        work is offloaded.
        """
        link, build, offload = self._link, self._link.build, options.offload
        self.check_streamable()
        streamed_motion.check_origin(track, link.client.url, imported=options.imported)
        if options.hands:
            self._require_hands()
        streamed_motion.check_playing_speed(options.speed)
        prepare = partial(
            streamed_motion.prepare,
            track,
            build,
            options.rate_hz,
            options.speed,
            force=options.force,
            mapped=options.mapped,
            checked=options.checked,
        )
        prepared: StreamedMotion | None = None
        if offload is None:
            prepared = prepare()
            if options.hands:
                prepared = streamed_motion.with_hands(prepared, track, options.speed)
        ticker = Ticker(options.rate_hz)
        stop_count = link.stops.count
        start = options.make_start()

        async def begin(on_request_sent: Callable[[], None]) -> float:
            motion = prepared
            if motion is None:
                assert offload is not None
                motion = await offload(prepare)
                if options.hands:
                    motion = await offload(streamed_motion.with_hands, motion, track, options.speed)
            await motion.check_contact(await self._wait_for_joint_state(), offload)
            await self._begin_stream(motion, ticker, start, stop_count, on_request_sent)
            return motion.seconds

        left_out = () if options.hands else streamed_motion.finger_columns(track, build)
        return PoseStreaming(link, track.source or "a track", begin, ticker, left_out=left_out)

    async def _begin_stream(
        self,
        motion: StreamedMotion,
        ticker: Ticker,
        start: TimedStart | None,
        stop_count: int,
        on_request_sent: Callable[[], None],
    ) -> None:
        """Request the stream and start sending poses: now, or early enough for `start`.

        Raises `RefusedError` if a stop was requested since `stop_count` was read.
        """
        stream = m.BeginStream(motion.fingers.sides)
        client = self._link.client
        if start is None:
            rows = motion.poses(await self._wait_for_joint_state())
            await self._arms.request_motion(stream, motion.name, stop_count, on_request_sent)
            ticker.start(client.ready(rows), len(rows))
            return
        approach_s = motion.approach_s(await self._wait_for_joint_state())
        at_s = await self._wait_unless_stopped(start, approach_s + REQUEST_RESERVE_S)
        await self._arms.request_motion(stream, motion.name, stop_count, on_request_sent)
        try:
            clock = clock_of(self._link.loop)
            state = await self._wait_for_joint_state()
            poses = PausablePoses(motion.poses(state, at_s - clock()), motion.rate_hz)
            began_s = at_s - poses.first / motion.rate_hz
            check_in_time(clock() - began_s)
        except BaseException:
            # The robot has accepted the stream, but no pose will be sent.
            with suppress(RoteError):
                await to_the_end(self._link.stop())
            raise
        ticker.start(client.ready(poses), len(poses), began_s, first=poses.first, pausable=poses)

    async def _wait_unless_stopped(self, start: TimedStart, lead_s: float) -> float:
        """Wait for a timed start and return its time; a stop ends the wait at once."""
        remove_listener = self._link.on_stop(lambda _: start.give_up())
        try:
            return await start.wait(lead_s)
        finally:
            remove_listener()

    async def follow(self, *, rate_hz: float, contact: bool) -> Following:
        """Let the arms follow live poses; return once the robot has accepted."""
        self.check_streamable()
        streamed_motion.check_rate(rate_hz)
        link = self._link
        ticker, stop_count = Ticker(rate_hz), link.stops.count

        async def begin(on_request_sent: Callable[[], None]) -> LivePoses:
            state = await self._wait_for_joint_state()
            live = LivePoses(link.build, state.joints_rad, rate_hz, ticker.stop)
            if contact:  # the first check builds the body model; later ones need not wait for it
                current_rad = np.array([live.pose_rad, live.pose_rad])
                await asyncio.to_thread(check_path_contact, current_rad, link.build)
            stream = m.BeginStream()
            await self._arms.request_motion(stream, "following", stop_count, on_request_sent)
            ticker.start(link.client.ready(live), len(live))
            return live

        following = Following(link, begin, ticker, contact=contact)
        await following.started()
        return following

    async def store_track(
        self,
        track: Track,
        name: str,
        *,
        budget: int,
        overwrite: bool,
        loop: bool,
        offload: Offload | None,
        imported: bool,
    ) -> Compressed:
        """Store a track as a taught action of at most `budget` keyframes."""
        link = self._link
        link.require_ability("store", "store a motion that the robot was not taught")
        streamed_motion.check_origin(track, link.client.url, imported=imported)
        check_name(name)
        run = offload or asyncio.to_thread
        storable = await run(make_storable, track, link.build)
        compressed = await run(compress, storable, link.build, budget)
        save = m.SaveAction(
            name=name,
            created_s=int(time.time()),
            duration_ms=round(storable.duration_s * 1000),
            keyframes=compressed.keyframes,
            loop=loop,
            replace=overwrite,
        )
        await self._store.save(save)
        return compressed

    def _require_hands(self) -> None:
        """Raise `UnsupportedError` if this wire cannot command hands."""
        wire = self._link.client.wire
        if f"{wire}://" not in wires_with("hands"):
            raise unsupported("play hands", wire, "hands")

    async def _wait_for_joint_state(self) -> RobotState:
        """Return a state that is reported after this call and contains the joints' positions."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_JOINTS_TIMEOUT_S):
                async for state in self._link.states():
                    if state.has_joints and state.joints_rad:
                        return state
        raise NoAnswerError(
            "the robot does not report its joints, so nothing is streamed to it",
            Text(
                "Play actions that the robot stores, or find out why it does not report: {doctor}.",
                doctor=Act.DOCTOR,
            ),
        )
