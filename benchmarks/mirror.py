"""Claim: a robot follows another one that is moved by hand with a lag of at most 120 ms.

The arms of a simulated G1 are soft and a script waves them; another simulated G1 follows, both in
this process and in real time, with every pose checked for contact. The lag is by how much the
joints that the follower reports are behind those that the leader reports, in windows of 0.4 s. The
peer is a bare `follow` to which the leader's poses are passed as they arrive, unchecked and without
looking ahead.
"""

import asyncio
from typing import NamedTuple

import numpy as np

from benchmarks.size import size
from benchmarks.table import Row
from rote.connection import connect
from rote.messages import RobotState
from rote.model.g1 import G1_29
from rote.robot.leading import LagMeter

SECONDS = size(30.0, 3.0)
SETTLING_S = 2.0
"""The time to reach the leader's pose, which is no lag."""
MAX_LAG_MS = 120.0
MEASURED_EVERY_S = 0.1


class Lag(NamedTuple):
    """The lag of one run in ms."""

    p50: float
    p99: float


async def mirror() -> Lag:
    async with connect("sim://g1") as leader, connect("sim://g1") as follower:
        async with leader.lead(follower) as mirroring:
            await leader.move_by_hand("wave", SETTLING_S + SECONDS)
            await asyncio.sleep(SETTLING_S + SECONDS)
        (status,) = mirroring.followers
        return Lag(status.lag_p50_ms or 0.0, status.lag_p99_ms or 0.0)


async def follow() -> Lag:
    """Return the lag of a bare follower."""
    meter, loop = LagMeter(), asyncio.get_running_loop()
    columns = list(G1_29.taught_columns)

    async with connect("sim://g1") as leader, connect("sim://g1", family="g1") as follower:
        following = await follower.follow(contact=False)

        def lead(state: RobotState) -> None:
            row_rad = np.array(state.joints_rad)[columns]
            meter.add_goal(loop.time(), row_rad)
            following.aim(dict(zip(G1_29.taught, row_rad.tolist(), strict=True)))

        def note(state: RobotState) -> None:
            meter.add_state(loop.time(), np.array(state.joints_rad)[columns])

        async with leader.teach("bench") as take:
            take.discard()
            await leader.move_by_hand("wave", SETTLING_S + SECONDS)
            forget = leader.on_state(lead)
            await asyncio.sleep(SETTLING_S)
            follower.on_state(note)
            for _ in range(round(SECONDS / MEASURED_EVERY_S)):
                await asyncio.sleep(MEASURED_EVERY_S)
                meter.measure(loop.time())
            forget()
        following.end()
        await following.wait()
    return Lag(meter.percentile_ms(50.0) or 0.0, meter.percentile_ms(99.0) or 0.0)


def run() -> list[Row]:
    mirrored, bare = asyncio.run(mirror()), asyncio.run(follow())
    return [
        Row("lag of a follower, median", "ms", mirrored.p50, bare.p50, "bare follow"),
        Row("lag of a follower, p99", "ms", mirrored.p99, bare.p99, "bare follow"),
        Row("lag of a follower, p99", "ms", mirrored.p99, MAX_LAG_MS, "limit", at_most=1),
    ]
