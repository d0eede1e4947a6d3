"""Every fault in every phase on every wire: the body stays safe, and the client reports the truth.

The table is wires x phases x faults, in virtual time. A cell is judged by the simulated body: no
joint is faster than promised, the arms end held or at rest, no motion goes on after a stop, what
the client reports is true, and the take is on disk. `make test` runs a sample in which every pair
of phase and fault and of wire and phase occurs, and every fault of the network's own wires; phases
of a stream share the faults that are not about its safety. `make soak` runs all cells.
"""

import asyncio
import itertools
import signal
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import virtual
from fault_cells import (
    AFTERWARDS_S,
    CUT_S,
    FAULTS,
    NOT_APPLICABLE,
    PHASES,
    SILENT_S,
    TRUE_WITHIN_S,
    WIRES,
    Cell,
    check_speed,
    check_speed_unevenly,
    is_at_rest,
    reasons,
    run_cell,
    store_action,
)
from fault_rig import FaultRobot, fault_robot
from rote.messages import Phase
from rote.motion.files.take_writer import unfinished
from web.pendant import Browser, one_browser

NEVER = 1_000_000
CLIENT = Path(__file__).with_name("fault_client.py")
ALL = [Cell(*values) for values in itertools.product(WIRES, PHASES, FAULTS)]
CELLS = [cell for cell in ALL if not reasons(cell)]


COSTS = {"sim": 0.3, "udp": 0.35, "webrtc": 0.6, "dds": 0.6, "a1": 3.0}
"""Seconds of processor time that a cell takes, roughly."""


STREAMS = ("streaming", "following", "timed start", "returning")
"""Phases of one kind of motion, in which the same code reacts to most faults."""
IN_EACH_PHASE = ("suspended", "stalled", "killed", "second client stops")
"""Faults that each of them meets."""


def pairs_of(cell: Cell) -> set[tuple[str, str]]:
    """Return the pairs of values that a cell has; a stall is a kind and a length.

    A length counts for a wire, and a wire's faults where its robot may be soft or in motion.
    """
    wire, phase, fault = cell
    parts = fault.split(" ", 1) if fault.endswith(" s") else [fault]
    shared = phase in STREAMS and parts[0] not in IN_EACH_PHASE
    counts = wire in ("udp", "webrtc", "dds") and phase != "connecting"
    return {
        (wire, phase),
        ("a stream" if shared else phase, parts[0]),
        *((wire, part) for part in parts if counts),
    }


def sampled() -> set[Cell]:
    """Return few cells that have all these pairs, and do not take long."""
    left = set().union(*map(pairs_of, CELLS))
    chosen: set[Cell] = set()
    while left:
        best = max(CELLS, key=lambda cell: len(pairs_of(cell) & left) / COSTS[cell.wire])
        chosen.add(best)
        left -= pairs_of(best)
    return chosen


SAMPLE = sampled()


def marks_of(*, often: bool) -> list[pytest.MarkDecorator]:
    """Return the marks of a case: `make soak` runs it, and `make test` often does, too."""
    return [] if often else [pytest.mark.soak]


def test_every_cell_is_run_or_has_one_reason_why_it_cannot_occur() -> None:
    for rule in NOT_APPLICABLE:
        assert any(rule.covers(cell) for cell in ALL), f"this rule covers nothing: {rule}"
    assert set().union(*map(pairs_of, SAMPLE)) == set().union(*map(pairs_of, CELLS))
    assert {cell.wire for cell in SAMPLE} == set(WIRES)


@pytest.mark.parametrize(
    "cell",
    [pytest.param(cell, id=cell.id, marks=marks_of(often=cell in SAMPLE)) for cell in CELLS],
)
def test_the_body_is_safe_and_the_client_tells_the_truth(cell: Cell, tmp_path: Path) -> None:
    virtual.run(run_cell(cell, tmp_path))


@pytest.mark.parametrize(
    ("wire", "phase"),
    [
        pytest.param(
            wire,
            phase,
            id=f"{wire}-{phase}".replace(" ", "_"),
            marks=marks_of(often=wire == "sim" and phase in ("teaching", "saving", "streaming")),
        )
        for wire, phase in itertools.product(WIRES, PHASES)
        if not reasons(Cell(wire, phase, "double cancel"))
    ],
)
def test_a_second_cancel_at_any_moment_of_the_exit_is_safe(
    wire: str, phase: str, tmp_path: Path
) -> None:
    cell = Cell(wire, phase, "double cancel")
    moments = virtual.run(run_cell(cell, tmp_path / "once", moment=NEVER))
    few = {1, 2, moments // 2}
    for moment in sorted(few if wire == "sim" else range(1, moments)):
        virtual.run(run_cell(cell, tmp_path / str(moment), moment=moment))


# ---- real processes -----------------------------------------------------------------------------


class Signalled(NamedTuple):
    """A client process in a phase that is suspended for some seconds, or killed."""

    wire: str
    phase: str
    seconds: float | None
    """None: it is killed."""
    restarts: bool = False
    """The robot restarts while the arms are released, and stands at rest."""

    @property
    def id(self) -> str:
        does = "SIGKILL" if self.seconds is None else f"SIGSTOP_{self.seconds:g}_s"
        does += "_and_robot_restart" if self.restarts else ""
        return f"{self.wire}-{self.phase}-{does}"


SIGNALLED = (
    Signalled("dds", "streaming", None),
    Signalled("udp", "streaming", 0.3),
    Signalled("dds", "streaming", None, restarts=True),
    Signalled("webrtc", "teaching", None),
    Signalled("dds", "streaming", 1.0),
    Signalled("a1", "streaming", None),
    Signalled("udp", "teaching", None),
    Signalled("udp", "streaming", None),
    Signalled("udp", "action", 1.0),
    Signalled("webrtc", "action", None),
    Signalled("webrtc", "teaching", 1.0),
    Signalled("dds", "streaming", 0.05),
    Signalled("dds", "teaching", None),
    Signalled("a1", "streaming", 0.05),
    Signalled("a1", "streaming", 1.0),
    Signalled("a1", "teaching", None),
)
EVERY_TIME = 3
"""The number of them that `make test` runs, too."""


@pytest.mark.slow
@pytest.mark.quiet  # speeds of a body in real time, sampled by another process
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.id, marks=marks_of(often=place < EVERY_TIME))
        for place, case in enumerate(SIGNALLED)
    ],
)
def test_a_real_process_that_is_suspended_or_killed_leaves_a_safe_body(
    case: Signalled, tmp_path: Path
) -> None:
    asyncio.run(signal_client(case, tmp_path))
    if case.phase == "teaching":
        assert unfinished(tmp_path) or list(tmp_path.glob("*.mcap")), "the take is not on disk"


async def signal_client(case: Signalled, folder: Path) -> None:
    # On a busy computer real processes have gaps that are nobody's fault.
    async with fault_robot(case.wire, harsh=False) as robot:
        if case.phase == "action":
            store_action(robot)
        command = [sys.executable, str(CLIENT), robot.url.partition("&sender")[0]]
        process = await asyncio.create_subprocess_exec(
            *command, case.phase, str(folder), stdout=asyncio.subprocess.PIPE
        )
        try:
            assert process.stdout is not None
            async with asyncio.timeout(60.0):
                assert await process.stdout.readline() == b"ready\n"
            if case.seconds is None:
                process.kill()
            else:
                process.send_signal(signal.SIGSTOP)
                await asyncio.sleep(case.seconds)
                process.send_signal(signal.SIGCONT)
            async with asyncio.timeout(60.0):
                code = await process.wait()
            assert code == (-signal.SIGKILL if case.seconds is None else 0)
            if case.restarts:
                await robot.restart(after_s=0.2)
            await rest(robot)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    check_speed_unevenly(robot)


async def rest(robot: FaultRobot) -> None:
    """Wait until the body has come to rest, for no longer than the robot's time-outs allow."""
    since_s = robot.world.time_s
    while robot.world.time_s < since_s + 1.0 or not is_at_rest(robot):
        assert robot.world.time_s < since_s + AFTERWARDS_S, "the arms do not come to rest"
        await asyncio.sleep(0.1)


# ---- the web server -----------------------------------------------------------------------------


class PageFault(NamedTuple):
    """A fault while the page teaches or plays, and whether STOP is pressed during it."""

    wire: str
    phase: str
    fault: str
    stop: bool = False

    @property
    def id(self) -> str:
        name = "-".join(("page", *self[:3])).replace(" ", "_")
        return f"{name}-STOP" if self.stop else name


PAGE_FAULTS = (
    PageFault("udp", "teaching", "cut and restored"),
    PageFault("udp", "action", "cut and restored", stop=True),
    PageFault("udp", "action", "second client stops"),
    PageFault("webrtc", "teaching", "cut and restored"),
    PageFault("dds", "teaching", "cut and restored"),
    PageFault("webrtc", "action", "cut and restored", stop=True),
    PageFault("dds", "action", "cut and restored", stop=True),
    PageFault("dds", "teaching", "second client stops"),
    PageFault("udp", "teaching", "robot restarted"),
)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.id, marks=marks_of(often=place < EVERY_TIME))
        for place, case in enumerate(PAGE_FAULTS)
    ],
)
def test_the_page_shows_what_the_body_does(case: PageFault, tmp_path: Path) -> None:
    async def story() -> None:
        async with fault_robot(case.wire) as robot:
            store_action(robot, slower=4)
            async with one_browser(tmp_path, robot.url) as (_, page):
                await show_fault(case, robot, page)
        check_speed(robot)

    virtual.run(story())


async def show_fault(case: PageFault, robot: FaultRobot, page: Browser) -> None:
    """Teach or play by the page, let the fault happen, and compare the status with the body."""
    if case.phase == "teaching":
        await page.post("/teach/start", name="mine")
    else:
        await page.post("/play", name="stored")
    await asyncio.sleep(3.0)
    assert robot.body == ("soft" if case.phase == "teaching" else "moving")
    if case.fault == "second client stops":
        await robot.stop_from_elsewhere()
    elif case.fault == "robot restarted":
        await robot.restart()
    else:
        robot.valve.cut = True
        if case.stop:
            await asyncio.sleep(0.5)
            await page.ask("POST", "/stop", json={})
        await asyncio.sleep(CUT_S)
        robot.valve.cut = False
    loop = asyncio.get_running_loop()
    restored_s = agreed_s = loop.time()
    # A robot that is restarted falls silent, which takes longer to notice.
    within_s = SILENT_S if case.fault == "robot restarted" else TRUE_WITHIN_S
    while loop.time() < restored_s + AFTERWARDS_S + 10.0:
        status = await page.get("/status")
        lost = status["connection"]["state"] != "connected"
        if lost or status_shows(status, page) in robot.truths:
            agreed_s = loop.time()
        assert loop.time() - agreed_s <= within_s, (
            f"the body is {robot.body}, and the page shows {status_shows(status, page)}"
        )
        if case.stop and not lost:
            back_s = loop.time()
            await asyncio.sleep(0.5)
            assert robot.g1.phase not in (Phase.APPROACH, Phase.PLAYING), (
                f"{back_s - restored_s:.1f} s after the link STOP is forgotten"
            )
        await asyncio.sleep(0.5)
    assert is_at_rest(robot)


def status_shows(status: dict[str, Any], page: Browser) -> str:
    """Return what a person reads of the arms."""
    if status.get("soft") is not None or status["activity"]["kind"] == "teaching":
        return "soft"
    if status["activity"]["kind"] == "playing" or page.latest["state"]["phase"] != "none":
        return "moving"
    return "still"
