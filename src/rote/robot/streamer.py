"""Plays tracks and live poses of this computer on a robot, and stores tracks as its actions."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress

import numpy as np

from rote import messages as m
from rote.errors import NoAnswerError, RoteError, UnsupportedError
from rote.messages import RobotState
from rote.motion.keyframes.search import Compressed
from rote.motion.track import Track
from rote.platform.loop import clock_of, to_the_end
from rote.robot import storing, streaming
from rote.robot.action_store import ActionStore
from rote.robot.api_values import check_name
from rote.robot.arm_requests import ArmRequests
from rote.robot.following import Following, LivePoses, check_path_contact
from rote.robot.link import REPORT_MACHINE, RobotLink
from rote.robot.play_options import TrackOptions
from rote.robot.streaming import (
    Offload,
    PoseStreaming,
    StreamedMotion,
    Streaming,
    TimedStart,
)
from rote.text import Act, Text
from rote.transport.wires import unsupported, wires_with

_JOINTS_S = 3.0
"""How long a robot may take to report its joints: enough for one that does so once per second."""


class Streamer:
    """Streams poses to one robot, on wires that can."""

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
                else "Teach it, and play what it was taught.",
            )

    def play_track(self, track: Track, options: TrackOptions) -> Streaming:
        """Play a track; what forbids it is raised here, or by the result if work is offloaded."""
        link, build, offload = self._link, self._link.build, options.offload
        self.check_streamable()
        streaming.check_origin(track, link.client.url, imported=options.imported)
        if options.hands:
            self._require_hands()
        streaming.check_playing_speed(options.speed)
        prepared: StreamedMotion | None = None
        if offload is None:
            prepared = streaming.prepare(
                track,
                build,
                options.rate_hz,
                options.speed,
                force=options.force,
                mapped=options.mapped,
                known=options.checked,
            )
            if options.hands:
                prepared = streaming.with_hands(prepared, track, options.speed)
        ticker = streaming.Ticker(options.rate_hz)
        stops = link.stops.count
        start = options.make_start()

        async def begin(on_request_sent: Callable[[], None]) -> float:
            motion = prepared
            if motion is None:
                assert offload is not None
                motion = await offload(
                    streaming.prepare,
                    track,
                    build,
                    options.rate_hz,
                    options.speed,
                    force=options.force,
                    mapped=options.mapped,
                    known=options.checked,
                )
                if options.hands:
                    motion = await offload(streaming.with_hands, motion, track, options.speed)
            await motion.check_contact(await self._next_joint_state(), offload)
            await self._begin_stream(motion, ticker, start, stops, on_request_sent)
            return motion.seconds

        left_out = () if options.hands else streaming.finger_columns(track, build)
        return PoseStreaming(link, track.source or "a track", begin, ticker, left_out=left_out)

    async def _begin_stream(
        self,
        motion: StreamedMotion,
        ticker: streaming.Ticker,
        start: TimedStart | None,
        stops: int,
        on_request_sent: Callable[[], None],
    ) -> None:
        """Request the stream and start sending poses: now, or in time for `start`."""
        stream = m.BeginStream(motion.fingers.sides)
        client = self._link.client
        if start is None:
            poses = motion.poses(await self._next_joint_state())
            await self._arms.request_motion(stream, motion.name, stops, on_request_sent)
            ticker.start(client.ready(poses), len(poses))
            return
        approach_s = motion.approach_s(await self._next_joint_state())
        at_s = await self._wait_unless_stopped(start, approach_s + streaming.ASKING_S)
        await self._arms.request_motion(stream, motion.name, stops, on_request_sent)
        try:
            clock = clock_of(self._link.loop)
            state = await self._next_joint_state()
            poses = motion.poses(state, at_s - clock())
            began_s = at_s - poses.first / motion.rate_hz
            streaming.check_in_time(clock() - began_s)
        except BaseException:
            # The robot has accepted, and nothing will be sent.
            with suppress(RoteError):
                await to_the_end(self._link.stop())
            raise
        ticker.start(client.ready(poses), len(poses), began_s, poses.first)

    async def _wait_unless_stopped(self, start: TimedStart, lead_s: float) -> float:
        """Wait for a timed start and return its time; a stop ends the wait at once."""
        forget = self._link.on_stop(lambda _: start.give_up())
        try:
            return await start.wait(lead_s)
        finally:
            forget()

    async def follow(self, *, rate_hz: float, contact: bool) -> Following:
        """Let the arms follow live poses; return once the robot has accepted."""
        self.check_streamable()
        streaming.check_rate(rate_hz)
        link = self._link
        ticker, stops = streaming.Ticker(rate_hz), link.stops.count

        async def begin(on_request_sent: Callable[[], None]) -> LivePoses:
            state = await self._next_joint_state()
            live = LivePoses(link.build, state.joints_rad, rate_hz, ticker.stop)
            if contact:  # now, so that no pose has to wait until the body model is built
                here = np.array([live.pose_rad, live.pose_rad])
                await asyncio.to_thread(check_path_contact, here, link.build)
            await self._arms.request_motion(m.BeginStream(), "following", stops, on_request_sent)
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
        link.require_ability("store", "store a motion that it was not taught")
        streaming.check_origin(track, link.client.url, imported=imported)
        check_name(name)
        run = offload or asyncio.to_thread
        whole = await run(storing.make_storable, track, link.build)
        compressed = await run(storing.compress, whole, link.build, budget)
        save = m.SaveAction(
            name=name,
            created_s=int(time.time()),
            duration_ms=round(whole.duration_s * 1000),
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

    async def _next_joint_state(self) -> RobotState:
        """Return a state that is reported after this call and contains the joints' positions."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_JOINTS_S):
                async for state in self._link.states():
                    if state.joints_told and state.joints_rad:
                        return state
        raise NoAnswerError(
            "the robot does not report its joints, so nothing is streamed to it",
            Text(
                "Teach it and play what it was taught; or see why it is silent: {doctor}.",
                doctor=Act.DOCTOR,
            ),
        )
