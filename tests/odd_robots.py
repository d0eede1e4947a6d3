"""What rote does with robots whose firmware is odd: one story, told to each of them on each wire.

Each step ends well, or in an error of rote's own; `Outcome` says which. What must never happen is
an assertion here: success without motion, an action that is called saved and is not there, a lost
take, a wait without an end, an exception that is none of rote's.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

import numpy as np

import virtual
from rig import SERVICES_HZ, Rig, rig
from rote.errors import RoteError
from rote.robot.message_robot import G1
from rote.robot.take import Lack, Take
from rote.sim.quirks import QUIRKS

WIRES = {"udp": "memory", "webrtc": "services", "dds": "dds"}
"""Which way of the tests' own stands for a wire of the table: quicker, and the same above it."""
REAL = ("connection",)
"""Groups of quirks that need the real wire."""
TOGETHER = (
    ("no-lowstate", "no-arm-state"),
    ("no-lowstate", "no-arm-state", "mode-refused"),
    ("never-moves", "no-arm-state"),
    ("never-moves", "no-lowstate"),
    ("never-moves", "frames-page"),
    ("no-tick", "lowstate-1hz", "no-arm-state"),
)
"""Quirks that are worse together."""
HARMLESS_TOGETHER = (
    ("webrtc", "arm-state-number 29-slots mode-text list-no-time list-null-fsm code-text"),
    ("webrtc", "no-arm-state no-dq mode-missing list-one no-api-id id-text unknown-messages"),
    ("webrtc", "arm-state-other-shape list-text-time list-float-id binary-answers"),
    ("webrtc", "arm-state-no-names mode-null list-three code-float data-object empty-topic"),
    ("webrtc", "busy-after-playing list-no-name no-status chunked-answers byte-order-mark"),
    ("webrtc", "arm-state-late mode-minus-1 list-null-time list-number-fsm late-answers"),
    ("webrtc", "unreadable-candidate small-message-size"),
    ("dds", "no-imu mode-refused line-breaks"),
    ("dds", "mode-float list-names-only lone-surrogate nul"),
    ("udp", "frames-12-joints busy-after-playing"),
)
"""Each quirk with which everything works, on one wire, in robots that have several of them. Left
to `make soak` is `lowstate-500hz`, which takes five times as long: it is the usual rate on DDS, and
test_transport_dds.py records it."""
LIMIT_S = 60.0
"""No single step may take longer."""
_MOVED_RAD = 0.03
_PRESET = 27
_LOOK_S = 0.02


class Outcome(NamedTuple):
    """How the steps ended that did not simply work: an error's kind, or what is lacking."""

    steps: tuple[tuple[str, str], ...]

    @property
    def words(self) -> str:
        """The same for the table."""
        return "; ".join(f"{step}: {how}" for step, how in self.steps) or "works"


def cases() -> list[tuple[tuple[str, ...], str]]:
    """Return every robot to try: the names of its quirks, and its wire."""
    alone: list[tuple[tuple[str, ...], str]] = [
        ((quirk.name,), wire) for quirk in QUIRKS.values() for wire in quirk.wires
    ]
    joined: list[tuple[tuple[str, ...], str]] = [
        (names, wire)
        for names in TOGETHER
        for wire in WIRES
        if all(wire in QUIRKS[name].wires for name in names)
    ]
    return alone + joined


def meet(quirks: tuple[str, ...], wire: str) -> Outcome:
    """Tell the story to one robot, in virtual time."""
    real = any(QUIRKS[name].group in REAL for name in quirks)
    return virtual.run(_meet(quirks, wire if real else WIRES[wire]))


async def _meet(quirks: tuple[str, ...], wire: str) -> Outcome:
    odd = rig(wire, polite=False, quirks=quirks, services_hz=SERVICES_HZ)
    async with odd as one, one.connect() as robot:
        story = _Story(one, robot, quirks)
        async with asyncio.timeout(6 * LIMIT_S):
            await story.tell()
        return Outcome(tuple(story.outcome.items()))


class _Story:
    """One robot, and what became of each step with it."""

    def __init__(self, one: Rig, robot: G1, quirks: tuple[str, ...]) -> None:
        self._one = one
        self._robot = robot
        self._tells_joints = not {"no-lowstate", "null-motors"} & set(quirks)
        self._dead = "never-moves" in quirks
        self.outcome: dict[str, str] = {}

    async def tell(self) -> None:
        robot = self._robot
        await self._step("list", robot.actions)
        await self._step("stop", robot.stop)
        await self._step("teach", self._teach)
        await self._step("play", self._play)
        if "presets" in robot.abilities:
            await self._step("preset", self._perform)
            await self._step("rename", self._rename)
            await self._step("delete", self._delete)
        await self._step("stop", robot.stop)
        assert not self._one.world.body.soft, "the arms are soft, and nobody teaches"

    async def _step(self, name: str, do: Callable[[], Awaitable[object]]) -> None:
        problem: RoteError | None = None
        try:
            async with asyncio.timeout(LIMIT_S):
                await do()
        except RoteError as error:
            problem = error
        if problem is not None:
            assert problem.remedy, f"{problem} does not say what to do"
            self.outcome[name] = problem.kind

    async def _teach(self) -> None:
        robot = self._robot
        async with robot.teach("mine") as take:
            await robot.move_by_hand("wave", 1.0)
            await asyncio.sleep(1.0)
        assert take.saved or take.robot_note, "not saved, and no reason"
        assert "mine" in self._stored, "called saved, and not there"
        assert bool(take.samples) == self._tells_joints, "a lost take"
        self._note_lacks(take)
        if not take.saved:
            self.outcome["teach"] = "stored, which no list confirms"

    def _note_lacks(self, take: Take) -> None:
        words = {
            Lack.POSITIONS: "no take here",
            Lack.JOINTS: "take without some joints",
            Lack.CLOCK: "take by this computer's clock",
            Lack.RATE: "take of too few poses",
        }
        if take.lacks:
            self.outcome["teach"] = ", ".join(words[each] for each in Lack if each in take.lacks)

    async def _play(self) -> None:
        async with self._moving():
            report = await self._robot.play("mine")
        assert report.completed
        assert report.seconds > 1.0, "over before it can have been played"

    async def _perform(self) -> None:
        async with self._moving():
            await self._robot.perform(_PRESET)

    @asynccontextmanager
    async def _moving(self) -> AsyncIterator[None]:
        """Assert that the robot moves in a block that ends well."""
        body = self._one.world.body
        start, most = body.joints_rad.copy(), [0.0]

        async def look() -> None:
            while True:
                most[0] = max(most[0], float(np.abs(body.joints_rad - start).max()))
                await asyncio.sleep(_LOOK_S)

        looking = asyncio.create_task(look())
        try:
            yield
        finally:
            looking.cancel()
        assert most[0] > _MOVED_RAD, "success without motion"
        assert not self._dead, "success of a robot that never moves"

    async def _rename(self) -> None:
        await self._robot.rename("mine", "yours")
        assert "yours" in self._stored

    async def _delete(self) -> None:
        await self._robot.delete("yours")
        assert "yours" not in self._stored

    @property
    def _stored(self) -> set[str]:
        return {entry.name for entry in self._one.world.store.entries()}


# ---- the table of docs/reliability.md ------------------------------------------------------------

BEGIN, END = "<!-- odd robots: begin -->", "<!-- odd robots: end -->"


def table(met: dict[tuple[tuple[str, ...], str], Outcome]) -> list[str]:
    """Return the lines of the table: wires where rote does the same share one."""
    lines = ["| quirk of the robot | wire | what rote does |", "|---|---|---|"]
    for quirks in dict.fromkeys(names for names, _ in met):
        by_words: dict[str, list[str]] = {}
        for (names, wire), outcome in met.items():
            if names == quirks:
                by_words.setdefault(outcome.words, []).append(wire)
        for words, wires in by_words.items():
            lines.append(f"| `{'` and `'.join(quirks)}` | {', '.join(wires)} | {words} |")
    return lines


def documented(text: str) -> dict[tuple[str, str], str]:
    """Return what the table in a document says, by quirks and wire."""
    said: dict[tuple[str, str], str] = {}
    inside = text.partition(BEGIN)[2].partition(END)[0]
    for line in inside.strip().splitlines()[2:]:
        quirks, wires, words = (part.strip() for part in line.strip("| ").split(" | "))
        for wire in wires.split(", "):
            said[quirks, wire] = words
    return said


def title(quirks: tuple[str, ...]) -> str:
    """Return how the table names a robot."""
    return f"`{'` and `'.join(quirks)}`"
