"""rote discover: which robots are on the local network, and how to connect to them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from rote.cli.options import Json, choice, print_json, run
from rote.errors import NoAnswerError

if TYPE_CHECKING:
    from rote.transport.discovery import FoundRobot, Search

_COLUMNS = ("serial", "address", "interface", "seconds", "url")
_SERIAL_REMEDY = (
    "A G1 with firmware from 1.5.1 on, and every R1, answers only a query that contains "
    "its serial number: rote discover SERIAL. "
)


def discover(
    serials: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SERIAL", help="Also query these robots, and end when all have answered."
        ),
    ] = None,
    family: Annotated[
        str | None,
        typer.Option(
            "--family", metavar=choice(("g1", "r1", "go2")), help="Query only these robots."
        ),
    ] = None,
    seconds: Annotated[
        float, typer.Option("--seconds", metavar="SECONDS", help="How long to wait for answers.")
    ] = 2.0,
    as_json: Json = False,
) -> int:
    """Find robots on the local network.

    Newer firmware answers only a query that contains its serial: rote discover SERIAL.
    """
    return run(_discover_robots(serials or [], family, seconds, as_json))


async def _discover_robots(
    serials: list[str], family: str | None, seconds: float, as_json: bool
) -> None:
    from rote.transport.discovery import Search

    robots: list[FoundRobot] = []
    with (
        _ignore_robots() if as_json else _print_robots() as show_robot,
        Search(serials=serials, family=family, seconds=seconds) as search,
    ):
        async for robot in search:
            robots.append(robot)
            show_robot(robot)
    if as_json:
        print_json({"robots": [_build_document(robot) for robot in robots], "seconds": seconds})
    if search.missing or not robots:
        raise _no_answer_error(search, seconds)


def _make_robot_url(robot: "FoundRobot") -> str:
    is_ipv6 = ":" in robot.address
    host = f"[{robot.address}]" if is_ipv6 else robot.address
    return f"webrtc://{host}"


def _build_document(robot: "FoundRobot") -> dict[str, object]:
    return robot._asdict() | {"after_s": round(robot.after_s, 3), "url": _make_robot_url(robot)}


def _build_row(robot: "FoundRobot") -> tuple[str, ...]:
    """Return the table cells of a robot, in the order of `_COLUMNS`."""
    url = _make_robot_url(robot)
    return robot.serial, robot.address, robot.interface, f"{robot.after_s:.2f}", url


@contextmanager
def _ignore_robots() -> "Iterator[Callable[[FoundRobot], None]]":
    """Yield a function like that of `_print_robots` that prints nothing."""
    yield lambda robot: None


@contextmanager
def _print_robots() -> "Iterator[Callable[[FoundRobot], None]]":
    """Yield a function that shows a robot in a table.

    On a terminal the table grows with each robot; otherwise it is printed after the block.
    """
    from rich.live import Live
    from rich.table import Table

    from rote.cli import output

    out = output.console()
    if not out.is_terminal:
        rows: list[tuple[str, ...]] = []
        yield lambda robot: rows.append(_build_row(robot))
        if rows:
            output.print_table(out, _COLUMNS, rows)
        return
    table = Table(box=None, pad_edge=False, header_style="dim", caption_justify="left")
    for column in _COLUMNS:
        table.add_column(
            column, justify="right" if column == "seconds" else "left", overflow="fold"
        )
    table.caption = "searching ..."
    try:
        with Live(table, console=out, auto_refresh=False, transient=True) as live:

            def add_robot(robot: "FoundRobot") -> None:
                table.add_row(*_build_row(robot))
                live.refresh()

            yield add_robot
    finally:
        table.caption = None
        if table.row_count:
            out.print(table)


def _no_answer_error(search: "Search", seconds: float) -> NoAnswerError:
    """Return the error if no robot answered, or not all that were named."""
    from rote.transport.discovery import REMEDY

    names = ", ".join(sorted(search.missing))
    reasons = [f"no answer from {names or 'any robot'} in {seconds:g} s"]
    reasons += [f"{interface.name}: {problem}" for interface, problem in search.troubles.items()]
    if search.ignored:
        reasons.append(f"{search.ignored} datagrams were not valid answers")
    return NoAnswerError("; ".join(reasons), REMEDY if names else _SERIAL_REMEDY + REMEDY)
