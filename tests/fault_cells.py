"""One cell of the fault matrix: a client program in a phase, a fault, and the body afterwards."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fault_rig import BodyRow, FaultRobot, WatchedA1World, fault_robot
from motion.motion_tracks import full_disk
from rote import messages as m
from rote.errors import RoteError
from rote.messages import Phase
from rote.model.a1 import A1 as A1_FAMILY
from rote.model.g1 import G1_29
from rote.motion.files.library import Library
from rote.motion.files.take_writer import recover, unfinished
from rote.motion.track import Track
from rote.robot.ticker import TimedStart

WIRES = ("sim", "udp", "webrtc", "dds", "a1")
PHASES = (
    "connecting",
    "teaching",
    "saving",
    "action",
    "streaming",
    "following",
    "timed start",
    "returning",
)
STALLS_S = (0.05, 0.3, 1.0, 30.0)
FAULTS = (
    *(f"suspended {seconds:g} s" for seconds in STALLS_S),
    *(f"stalled {seconds:g} s" for seconds in STALLS_S),
    "killed",
    "exception",
    "double cancel",
    "cut and restored",
    "answer lost",
    "states lost",
    "second client stops",
    "robot restarted",
    "robot power-cycled",
    "disk full",
)

ELBOW = "left_elbow_joint"
PROMISED_RAD_S = 1.0
"""docs/safety.md: no joint is faster on its way to the first pose and back."""
SPEED_LIMIT_RAD_S = 1.1 * PROMISED_RAD_S
"""A servo overshoots what it is told by a few percent. The motions played here are slower than
that themselves, so the limit holds at every moment."""
UNEVEN_LIMIT_RAD_S = 1.5 * PROMISED_RAD_S
"""The limit with real processes, to which a busy computer gives time unevenly."""
TRUE_WITHIN_S = 1.5
"""How long a client that hears the robot may report something else than what the body does."""
SILENT_S = 3.0
"""docs/safety.md: a robot that falls silent is reported within this time."""
STILL_RAD_S, SINKING_RAD_S = 0.05, 0.3
CUT_S = 4.5
TURNS = 40
RATE_HZ = 100.0
"""Poses per second of a stream. The usual 250 take longer to compute and show nothing more."""
_PROGRAM_S = 120.0
AFTERWARDS_S = 16.0
"""After this long the robot's own time-outs, 13.5 s at most, are over."""

A1_AFTERWARDS_S = 3.0
"""The same for an A1, whose motors brake after 0.1 s without a command."""


class Cell(NamedTuple):
    wire: str
    phase: str
    fault: str

    @property
    def id(self) -> str:
        return f"{self.wire}-{self.phase}-{self.fault}".replace(" ", "_")


class NotApplicable(NamedTuple):
    """Cells that cannot occur: `*` stands for every value."""

    wires: str
    phases: str
    faults: str
    reason: str

    def covers(self, cell: Cell) -> bool:
        pairs = zip((self.wires, self.phases, self.faults), cell, strict=True)
        return all(own == "*" or value in own.split(", ") for own, value in pairs)


NOT_APPLICABLE = (
    NotApplicable("a1", "action", "*", "an A1 stores no actions"),
    NotApplicable("a1", "following", "*", "an A1 follows no live poses"),
    NotApplicable("a1", "returning", "*", "an A1 holds its last pose, and does not return"),
    NotApplicable(
        "webrtc", "streaming, following, timed start, returning", "*", "WebRTC carries no stream"
    ),
    NotApplicable("sim", "*", "killed", "the embedded robot ends with its process"),
    NotApplicable("sim", "*", "cut and restored", "no network lies between client and robot"),
    NotApplicable("sim", "*", "answer lost", "no network lies between client and robot"),
    NotApplicable("sim", "*", "states lost", "no network lies between client and robot"),
    NotApplicable("sim", "*", "robot restarted", "the embedded robot ends with its process"),
    NotApplicable(
        "sim, udp, webrtc, a1",
        "*",
        "robot power-cycled",
        "only DDS announces that a robot leaves: without DDS a restart is the same",
    ),
    NotApplicable("a1", "*", "answer lost", "an A1 answers by its states only"),
    NotApplicable("a1", "*", "second client stops", "an A1 knows no stop of another client"),
    NotApplicable(
        "dds", "streaming, following, timed start", "answer lost", "a DDS stream has no request"
    ),
    NotApplicable("*", "returning", "answer lost", "nothing is asked while the arms return"),
    NotApplicable(
        "*",
        "connecting, action, streaming, following, timed start, returning",
        "disk full",
        "nothing is written to the disk",
    ),
)


def reasons(cell: Cell) -> list[str]:
    """Return why a cell cannot occur; nothing if it can."""
    return [rule.reason for rule in NOT_APPLICABLE if rule.covers(cell)]


class Boom(Exception):  # noqa: N818 - an error of the user's program, not of rote
    """What the user's program raises inside its block."""


def lifted(seconds: float = 3.5) -> Track:
    """Return a motion whose poses are soon far from rest, slower than any limit."""
    times_s = np.arange(round(seconds * 100) + 1) / 100.0
    share = np.minimum(1.0, times_s / 2.5)
    elbow = G1_29.rest[ELBOW] - 1.2 * share**2 * (3.0 - 2.0 * share)
    return Track(times_s=times_s, joints_rad=elbow[:, None], names=(ELBOW,))


def swung(seconds: float = 4.0) -> Track:
    """Return a slow motion of an A1's legs."""
    times_s = np.arange(round(seconds * 100) + 1) / 100.0
    poses = np.tile([0.0, 0.8, -1.6] * 4, (len(times_s), 1))
    poses[:, 1] += 0.4 * np.sin(np.pi * times_s / seconds) ** 2
    return Track(times_s=times_s, joints_rad=poses, names=A1_FAMILY.names, variant="a1")


class CellRun:
    """One run of a cell."""

    def __init__(self, cell: Cell, robot: FaultRobot, folder: Path) -> None:
        self.cell = cell
        self.robot = robot
        self.library = Library(folder)
        self.take: Any = None
        self.client: Any = None
        self.reached = asyncio.Event()
        """Set when the program is in the middle of its phase."""
        self.poison = asyncio.Event()
        self.outcome: BaseException | None = None
        self.stopped_at_s: float | None = None
        """When a stop was confirmed, by the robot's clock."""
        self.ended_at_s: float | None = None
        """When the program had ended, by the robot's clock."""
        self.problems: list[str] = []
        self.loses = False
        """Whether the network, or the client's computer, keeps the truth from the client now."""
        self._lost = False
        self._agreed_s = self._heard_s = asyncio.get_running_loop().time()

    # ---- what programs use ----------------------------------------------------------------------

    def watch(self, client: Any) -> None:
        """Compare what this client reports with the body from now on."""
        self.client = client
        port = getattr(client, "_client", None)
        if port is not None and hasattr(port, "on_loss"):
            port.on_loss(self._lose)
            port.on_state(self._find)

    def _lose(self, _: object) -> None:
        self._lost = True

    def _find(self, _: object) -> None:
        self._lost = False
        self._heard_s = asyncio.get_running_loop().time()

    def forgive(self) -> None:
        """Begin to compare again: nothing could be reported until now."""
        self._agreed_s = self._heard_s = asyncio.get_running_loop().time()

    async def during(self, work: Awaitable[Any], seconds: float = 3.0) -> None:
        """Wait for `work`; a program with an error of its own does not get so far."""
        if self.cell.fault == "exception":
            await self.pause(seconds)
        await work

    async def pause(self, seconds: float) -> None:
        """Wait, or fail as the user's program does."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.poison.wait()
        if self.poison.is_set():
            raise Boom

    def check_holds(self) -> None:
        """Note arms that are soft after their block, unless the network kept them so."""
        if self.cell.fault.startswith("robot "):
            return
        if self.cell.fault in ("cut and restored", "killed", "answer lost"):
            return
        if self.cell.wire == "a1":  # its next command is at most some milliseconds away
            asyncio.get_running_loop().call_later(0.05, self._note_soft)
        else:
            self._note_soft()

    def _note_soft(self) -> None:
        if self.robot.body == "soft":
            self.problems.append("the arms are soft after the block")

    async def until_phase(self, phase: Phase, more_s: float) -> None:
        """Say that the phase is reached once the body is in it."""
        while self.robot.g1.phase is not phase:
            await asyncio.sleep(0.01)
        await asyncio.sleep(more_s)
        self.reached.set()

    # ---- watching -------------------------------------------------------------------------------

    async def compare_reports(self) -> None:
        """Note a report that has been untrue for too long."""
        loop = asyncio.get_running_loop()
        while True:
            now = loop.time()
            if self.loses or self._lost or self._reports_truth():
                self._agreed_s = now
            elif now - self._agreed_s > self._allowed_s(now):
                self.problems.append(
                    f"for {now - self._agreed_s:.1f} s the client reported {self._reported()} "
                    f"while the body was {self.robot.body}"
                )
                return
            await asyncio.sleep(0.05)

    def _allowed_s(self, now: float) -> float:
        return TRUE_WITHIN_S if now - self._heard_s < 0.5 else SILENT_S

    def _reported(self) -> str:
        state = None if self.client is None else self.client.state
        if state is None:
            return "nothing"
        return "soft" if state.arms_soft else "still" if state.phase is Phase.NONE else "moving"

    def _reports_truth(self) -> bool:
        state = None if self.client is None else self.client.state
        if state is None:
            return True
        world = self.robot.world
        if isinstance(world, WatchedA1World):
            apart = np.array(state.joints_rad) - np.array(world.body.q_rad)
            return bool(np.abs(apart).max() < 0.15)
        return self._reported() in self.robot.truths

    # ---- checking -------------------------------------------------------------------------------

    @property
    def rows(self) -> list[BodyRow]:
        return self.robot.world.rows

    def check(self) -> None:
        """Raise what the body, the reports or the disk show to be wrong."""
        problems = list(self.problems)
        problems += too_fast(self.robot)
        problems += self._check_end()
        for what, since_s in (("a stop", self.stopped_at_s), ("the program", self.ended_at_s)):
            if since_s is not None and self._moves_on(since_s + 0.3):
                problems.append(f"the motion went on after {what} at {since_s:.2f} s")
        problems += self._check_take()
        if self.outcome is not None and not isinstance(
            self.outcome, RoteError | Boom | asyncio.CancelledError
        ):
            problems.append(f"the program ended with {self.outcome!r}")
        assert not problems, f"{self.cell.id}: {'; '.join(problems)} (outcome {self.outcome!r})"

    def _check_end(self) -> list[str]:
        problems = []
        last_s = self.rows[-1].time_s
        newest = [row for row in self.rows if row.time_s > last_s - 1.0]
        if any(row.soft for row in newest):
            problems.append("the arms are still soft at the end")
        fastest_rad_s = max(row.speed_rad_s for row in newest)
        if fastest_rad_s > still_rad_s(self.robot):
            problems.append(f"a joint still moves at {fastest_rad_s:.2f} rad/s at the end")
        return problems

    def _moves_on(self, since_s: float) -> bool:
        if isinstance(self.robot.world, WatchedA1World):
            late = [row for row in self.rows if row.time_s > since_s + 1.0]
            # Braked legs sink slowly where the robot hangs.
            return any(row.phase is Phase.PLAYING and row.speed_rad_s > STILL_RAD_S for row in late)
        going = (Phase.APPROACH, Phase.PLAYING)
        return any(row.phase in going for row in self.rows if row.time_s > since_s)

    def _check_take(self) -> list[str]:
        """A take that was begun is on disk, whole or recoverable, unless the program failed."""
        if self.take is None or isinstance(self.outcome, Boom | asyncio.CancelledError):
            return []
        if self.cell.fault == "disk full":
            told = self.take.file_problem is not None or self.take.file is not None
            return [] if told and self.take.samples else ["a full disk was not reported"]
        takes = list(self.library.folder.glob("*.mcap"))
        parts = [recover(part) for part in unfinished(self.library.folder)]
        kept = [self.library.load(path.stem) for path in takes] + parts
        long_s = max((track.duration_s for track in kept), default=0.0)
        return [] if long_s > 0.5 else [f"of the take {long_s:.2f} s are on disk"]


def too_fast(robot: FaultRobot) -> list[str]:
    """Return when a joint was faster than promised, if one ever was."""
    fastest = max(robot.world.rows, key=lambda row: row.speed_rad_s)
    if fastest.speed_rad_s <= SPEED_LIMIT_RAD_S:
        return []
    return [f"a joint moved at {fastest.speed_rad_s:.2f} rad/s at {fastest.time_s:.2f} s"]


def check_speed(robot: FaultRobot) -> None:
    """Raise an error if a joint was ever faster than promised."""
    assert not too_fast(robot), too_fast(robot)


def check_speed_unevenly(robot: FaultRobot) -> None:
    """The same with real processes, to which a busy computer gives time unevenly.

    What a robot does that was itself held up says nothing of its client.
    """
    rows = [row for row in robot.world.rows if not robot.is_held_up(row)]
    fastest = max(rows, key=lambda row: row.speed_rad_s)
    assert fastest.speed_rad_s <= UNEVEN_LIMIT_RAD_S, fastest


def is_at_rest(robot: FaultRobot) -> bool:
    """Whether no joint is soft, and none has moved for a second."""
    rows = robot.world.rows
    newest = [row for row in rows[-200:] if row.time_s > rows[-1].time_s - 1.0]
    return not any(row.soft or row.speed_rad_s > still_rad_s(robot) for row in newest)


def still_rad_s(robot: FaultRobot) -> float:
    """Return the speed of a body at rest: the braked legs of an A1 that hangs sink slowly."""
    return SINKING_RAD_S if robot.wire == "a1" else STILL_RAD_S


# ---- programs, by phase -------------------------------------------------------------------------


async def connect_only(run: CellRun) -> None:
    run.reached.set()
    async with run.robot.connect() as robot:
        run.watch(robot)
        await run.pause(2.0)


async def teach(run: CellRun) -> None:
    async with run.robot.connect() as robot:
        run.watch(robot)
        try:
            async with robot.teach("mine", library=run.library) as run.take:
                await asyncio.sleep(1.0)
                run.reached.set()
                await run.pause(1.5)
        finally:
            run.check_holds()


async def save(run: CellRun) -> None:
    async with run.robot.connect() as robot:
        run.watch(robot)
        try:
            async with robot.teach("mine", library=run.library) as run.take:
                await asyncio.sleep(1.0)
                run.reached.set()
                await asyncio.sleep(0)  # the fault comes as the block ends
                if run.cell.fault == "exception":
                    raise Boom
        finally:
            run.check_holds()


async def play_action(run: CellRun) -> None:
    async with run.robot.connect() as robot:
        run.watch(robot)
        reached = asyncio.create_task(run.until_phase(Phase.PLAYING, 2.0))
        try:
            playing = await robot.start("stored")
            await run.during(playing)
        finally:
            reached.cancel()


async def stream(run: CellRun) -> None:
    await _stream(run, Phase.PLAYING, 2.0)


async def come_back(run: CellRun) -> None:
    await _stream(run, Phase.RETURN, 0.3)


async def _stream(run: CellRun, phase: Phase, more_s: float) -> None:
    async with run.robot.connect() as robot:
        run.watch(robot)
        track = swung() if run.robot.wire == "a1" else lifted()
        playing = robot.play_track(track, rate_hz=RATE_HZ)
        await playing.started()
        if run.robot.wire == "a1":
            await asyncio.sleep(2.5)
            run.reached.set()
            await run.during(playing)
            return
        reached = asyncio.create_task(run.until_phase(phase, more_s))
        try:
            await run.during(playing, 20.0)
        finally:
            reached.cancel()


async def follow(run: CellRun) -> None:
    async with run.robot.connect() as robot:
        run.watch(robot)
        following = await robot.follow(contact=False, rate_hz=RATE_HZ)
        rest = G1_29.rest[ELBOW]
        for number in range(60):
            with suppress(RoteError):
                following.aim({ELBOW: rest - 0.02 * number})
            if number == 45:
                run.reached.set()
            await run.pause(0.05)
        following.end()
        await following


async def start_in_time(run: CellRun) -> None:
    loop = asyncio.get_running_loop()
    async with run.robot.connect() as robot:
        run.watch(robot)
        start = TimedStart()
        track = swung(2.0) if run.robot.wire == "a1" else lifted()
        playing = robot.play_track(track, at=start, rate_hz=RATE_HZ)
        lead_s = await start.lead_s
        start.at(loop.time() + lead_s + 1.0)
        await asyncio.sleep(0.7)
        run.reached.set()
        await run.during(playing)


PROGRAMS: dict[str, Callable[[CellRun], Awaitable[None]]] = {
    "connecting": connect_only,
    "teaching": teach,
    "saving": save,
    "action": play_action,
    "streaming": stream,
    "following": follow,
    "timed start": start_in_time,
    "returning": come_back,
}
KEY_COMMANDS: dict[str, type[m.Command]] = {
    "teaching": m.EnterTeaching,
    "saving": m.ExitTeaching,
    "action": m.PlayAction,
    "streaming": m.BeginStream,
    "following": m.BeginStream,
    "timed start": m.BeginStream,
}


# ---- faults -------------------------------------------------------------------------------------


Fault = Callable[["CellRun", asyncio.Task[None]], Awaitable[None]]


async def inject(run: CellRun, task: asyncio.Task[None]) -> None:
    """Let the fault of this cell happen to a program that has reached its phase."""
    kind, _, seconds = run.cell.fault.removesuffix(" s").partition(" ")
    if kind in ("suspended", "stalled"):
        run.robot.pass_time(float(seconds), suspended=kind == "suspended")
        run.forgive()
    else:
        await _FAULTS[run.cell.fault](run, task)


async def _kill(run: CellRun, _: asyncio.Task[None]) -> None:
    """Let the client be silent from now on; to the robot a killed one is nothing else."""
    run.robot.valve.cut = run.loses = True


async def _raise(run: CellRun, _: asyncio.Task[None]) -> None:
    run.poison.set()


async def _cut(run: CellRun, _: asyncio.Task[None]) -> None:
    run.robot.valve.cut = run.loses = True
    await asyncio.sleep(CUT_S)
    run.robot.valve.cut = run.loses = False


async def _lose_answers(run: CellRun, _: asyncio.Task[None]) -> None:
    run.robot.valve.answers_lost = True
    await asyncio.sleep(10.0)
    run.robot.valve.answers_lost = False


async def _lose_states(run: CellRun, _: asyncio.Task[None]) -> None:
    run.robot.valve.states_lost = run.loses = True
    await asyncio.sleep(4.0)
    run.robot.valve.states_lost = run.loses = False


async def _stop_from_elsewhere(run: CellRun, _: asyncio.Task[None]) -> None:
    while run.cell.phase == "timed start" and run.robot.g1.phase is not Phase.APPROACH:
        await asyncio.sleep(0.01)  # there is nothing to stop before that
    await run.robot.stop_from_elsewhere()
    run.stopped_at_s = run.robot.world.time_s


async def _restart(run: CellRun, _: asyncio.Task[None]) -> None:
    run.loses = True
    await run.robot.restart(power=run.cell.fault == "robot power-cycled")
    run.loses = False


async def _fill_disk(_: CellRun, task: asyncio.Task[None]) -> None:
    with full_disk(20_000):
        await asyncio.wait({task})


_FAULTS: dict[str, Fault] = {
    "killed": _kill,
    "exception": _raise,
    "cut and restored": _cut,
    "answer lost": _lose_answers,
    "states lost": _lose_states,
    "second client stops": _stop_from_elsewhere,
    "robot restarted": _restart,
    "robot power-cycled": _restart,
    "disk full": _fill_disk,
}


async def cancel_twice(task: asyncio.Task[None], moment: int) -> int:
    """Cancel a program, and once more at a later moment; return how many its exit had.

    The first moments are turns of the loop, in which no time passes; then 20 ms lie between them.
    """
    task.cancel()
    for passed in range(2000):
        if passed == moment:
            task.cancel()
        if task.done():
            return passed
        await asyncio.sleep(0 if passed < TURNS else 0.02)
    raise AssertionError("the program does not end")


async def run_cell(cell: Cell, folder: Path, moment: int = 0) -> int:
    """Run one cell and check it; `moment` is when the second cancel comes.

    Returns how many moments the exit took after a cancel.
    """
    took = 0
    async with fault_robot(cell.wire) as robot:
        if cell.phase == "action":
            store_action(robot)
        run = CellRun(cell, robot, folder)
        if cell.fault == "answer lost" and cell.phase != "connecting":
            arm_answer_loss(run)
        task = asyncio.create_task(program(run), name="the user's program")
        comparing = asyncio.create_task(run.compare_reports())
        reached = asyncio.create_task(run.reached.wait())
        await asyncio.wait({task, reached}, return_when=asyncio.FIRST_COMPLETED)
        reached.cancel()
        if cell.fault == "answer lost" and cell.phase != "connecting":
            await asyncio.wait({task}, timeout=20.0)
            robot.valve.answers_lost = False
        elif run.reached.is_set():
            if cell.phase == "connecting":
                await asyncio.sleep(0)
            if cell.fault == "double cancel":
                took = await cancel_twice(task, moment)
            else:
                await inject(run, task)
        else:
            raise AssertionError(f"{cell.id}: the phase was not reached") from run.outcome
        if cell.fault == "killed":
            await asyncio.sleep(_afterwards_s(cell))
            comparing.cancel()
            run.check()
            task.cancel()
            await asyncio.wait({task}, timeout=600.0)
            return took
        await asyncio.wait({task}, timeout=_PROGRAM_S)
        if not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=600.0)
            raise AssertionError(f"{cell.id}: the program does not end")
        await settle(run)
        comparing.cancel()
        run.check()
    return took


async def settle(run: CellRun) -> None:
    """Let the body come to rest, for no longer than the robot's own time-outs take.

    The embedded robot has ended with its program; its body goes on here.
    """
    robot, waited_s, rested = run.robot, 0.0, 0
    if run.cell.fault in ("exception", "double cancel"):
        run.ended_at_s = robot.world.time_s
    while waited_s < _afterwards_s(run.cell) and rested < 4:
        if run.cell.wire == "sim":
            for _ in range(25):
                robot.world.advance(0.02)
        else:
            await asyncio.sleep(0.5)
        waited_s += 0.5
        rested = rested + 1 if is_at_rest(robot) else 0


def _afterwards_s(cell: Cell) -> float:
    """Return how long the robot may take to become safe by itself."""
    if cell.wire == "a1":
        return A1_AFTERWARDS_S
    return AFTERWARDS_S if cell.phase in ("teaching", "saving") else 8.0


async def program(run: CellRun) -> None:
    """Run the program of a phase to its end, and keep what it raises."""
    try:
        await PROGRAMS[run.cell.phase](run)
    except (Exception, asyncio.CancelledError) as error:
        run.outcome = error
    finally:
        run.client = None


def arm_answer_loss(run: CellRun) -> None:
    """Lose every answer from the command on that the phase is about."""
    key = KEY_COMMANDS[run.cell.phase]

    def see(command: m.Command) -> None:
        if isinstance(command, key) and not run.robot.valve.answers_lost:
            run.robot.valve.answers_lost = True
            run.robot.g1.on_command = lambda _: None
            asyncio.get_running_loop().call_later(10.0, restore)

    def restore() -> None:
        run.robot.valve.answers_lost = False

    run.robot.g1.on_command = see


def store_action(robot: FaultRobot, slower: int = 1) -> None:
    """Put a slow action of 6 s onto the robot, or one that is slower still."""
    elbow, rest = G1_29.names.index(ELBOW), G1_29.rest[ELBOW]
    keyframes = tuple(
        m.Keyframe(joint=elbow, time_ms=1000 * slower * second, value_rad=rest - 0.2 * second)
        for second in range(1, 7)
    )
    action = m.SaveAction(
        name="stored", created_s=0, duration_ms=6000 * slower, keyframes=keyframes
    )
    assert robot.g1.obey("test", action) == m.Status(m.Code.OK)
