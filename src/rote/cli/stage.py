"""rote stage and rote agent: several robots as one, a computer beside each."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rote.cli.options import Json, Key, RobotChoice, connect_to, print_json, run
from rote.errors import BadRequestError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from rote.stage.agent import Agent
    from rote.stage.folder import Invitation

app = typer.Typer(
    name="stage",
    help="Several robots as one: a conductor, and an agent beside each robot.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
StageDir = Annotated[
    Path, typer.Option("--stage", metavar="DIR", help="The stage's folder: rote stage new.")
]
HERE = Path("stage")
_SILENT_S = 5.0
"""An agent reports when it has received nothing from its conductor for this time."""


@app.command()
def new(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where the stage is kept.")],
    name: Annotated[
        str, typer.Option(metavar="NAME", help="The stage's name on the network.")
    ] = "stage",
    at: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="This computer's address for the agents.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Make a stage: its certificates and the conductor's configuration."""
    from rote.stage.folder import StageFolder
    from rote.transport.zenoh.bus import PORT

    if not at:
        raise BadRequestError(
            "a stage needs this computer's address in the robots' network",
            f"Add it: --at 192.168.1.10:{PORT}",
        )
    made = StageFolder.new(folder, name, at)
    if as_json:
        print_json({"stage": made.name, "endpoint": made.endpoint, "folder": str(folder)})
        return
    print(f"Made the stage {made.name} in {folder}, at {made.endpoint}.")
    print(f"Next, for each robot: rote stage invite NAME --stage {folder}")


@app.command()
def invite(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The agent's name in the cast.")],
    stage: StageDir = HERE,
    as_json: Json = False,
) -> None:
    """Write the invitation of one agent: a file for the computer beside its robot."""
    from rote.stage.folder import StageFolder

    path = StageFolder(stage).invite(name)
    if as_json:
        print_json({"name": name, "file": str(path)})
        return
    print(f"Wrote {path}. Keep it secret: anyone who has it can join as {name}.")
    print(f"There: rote agent ROBOT_URL --join {path.name}")


@app.command()
def status(
    stage: StageDir = HERE,
    seconds: Annotated[
        float, typer.Option(min=0.5, max=60.0, metavar="SECONDS", help="How long to listen.")
    ] = 3.0,
    as_json: Json = False,
) -> int:
    """Show every robot of a stage: reachable, clock, round trip, battery, faults, what it holds."""
    return run(_status(stage, seconds, as_json))


async def _status(folder: Path, seconds: float, as_json: bool) -> int:
    import asyncio

    from rote.cli import output
    from rote.stage.folder import StageFolder
    from rote.stage.watcher import watching

    made = StageFolder(folder)
    refused = made.invitation_faults()
    async with watching(folder) as watcher:
        with output.waiting("listening"):
            await asyncio.sleep(seconds)
        names = sorted({*made.agents, *watcher.agents})
        rows = [_row(name, watcher, refused.get(name, "")) for name in names]
    if as_json:
        print_json({"conductor": watcher.conducted, "robots": rows})
    else:
        _show_status(rows, conducted=watcher.conducted)
    return 0 if all(row["reachable"] for row in rows) else 1


def _row(name: str, watcher: Any, refused: str) -> dict[str, Any]:
    state = watcher.agents.get(name)
    if state is None:
        return {"name": name, "reachable": False, "fault": refused}

    def ms(value_s: float) -> float | None:
        return round(1000 * value_s, 2) if value_s < 1e3 else None

    return {
        "name": name,
        "reachable": watcher.reachable(name),
        "robot": state.robot,
        "build": state.build,
        "phase": state.phase,
        "clock_bound_ms": ms(state.clock_bound_s),
        "round_trip_ms": ms(state.round_trip_s),
        "loss": round(watcher.loss(name), 3),
        "battery_percent": state.battery_percent,
        "fault": state.fault,
        "faults": list(state.facts),
        "holds": list(state.holds),
        "loaded": state.loaded[:12],
        "stopped": bool(state.phase == "stopped"),
    }


def _show_status(rows: list[dict[str, Any]], *, conducted: bool) -> None:
    from rich.table import Table

    from rote.cli import output

    out = output.console()
    out.print("The conductor is there." if conducted else "No conductor: nothing can be played.")
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in (
        *("robot", "state", "build", "clock", "round trip", "loss", "battery", "holds", "fault"),
    ):
        table.add_column(column)
    for row in rows:
        if not row["reachable"]:
            table.add_row(row["name"], "not reachable", *[""] * 6, row["fault"])
            continue
        battery = row["battery_percent"]
        table.add_row(
            row["name"],
            row["phase"],
            row["build"],
            _ms(row["clock_bound_ms"], "\N{PLUS-MINUS SIGN}"),
            _ms(row["round_trip_ms"]),
            f"{100 * row['loss']:.0f} %",
            "?" if battery is None else f"{battery:.0f} %",
            _describe_stored_content(row),
            "; ".join(each for each in [row["fault"], *row["faults"]] if each),
        )
    out.print(table)


def _describe_stored_content(row: dict[str, Any]) -> str:
    """Return the first actions stored on a robot and the score loaded for a section, as text."""
    actions, more = row["holds"][:3], len(row["holds"]) - 3
    parts = [", ".join(actions) + (f" and {more} more" if more > 0 else "")] if actions else []
    parts += [f"score {row['loaded']}"] if row["loaded"] else []
    return "; ".join(parts) or "-"


def _ms(value: float | None, before: str = "") -> str:
    return "?" if value is None else f"{before}{value:.1f} ms"


@app.command()
def demo(
    robots: Annotated[
        int, typer.Option(min=1, max=50, metavar="N", help="How many robots, 1 to 50.")
    ] = 5,
    as_json: Json = False,
) -> int:
    """Try it: simulated robots on this computer play a show, and are stopped in the middle."""
    return run(_demo(robots, as_json))


async def _demo(robots: int, as_json: bool) -> int:
    from rote.cli import output
    from rote.stage.demo import run_demo

    out = output.console(quiet=as_json)
    report = await run_demo(robots, lambda text: out.print(f"{text} ..."))
    if as_json:
        print_json({"robots": robots, **report.as_json()})
    for section in report.sections:
        skews_s = section.skews_s
        out.print(
            f"{section.name}: {len(skews_s)} robots, each within "
            f"{1000 * max(skews_s, default=0.0):.1f} ms of the middle one"
            + (f"; lost: {', '.join(section.lost)}" if section.lost else "")
        )
    if report.stopped_within_s is None:
        out.print(f"STOP was not confirmed by {', '.join(report.unconfirmed)}.", style="bold red")
        return 1
    out.print(f"STOP was confirmed by all within {1000 * report.stopped_within_s:.0f} ms.")
    return 0


def agent(
    robot: Annotated[str, typer.Argument(metavar="ROBOT_URL", help="The robot beside it.")],
    join: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The invitation: rote stage invite.")
    ] = None,
    name: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Without an invitation, on this computer only: the agent's name."
        ),
    ] = "",
    at: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Without an invitation: the conductor.")
    ] = "",
    key: Key = None,
) -> None:
    """Follow the conductor of a stage with one robot, until Ctrl-C.

    A robot that is lost later is connected again.
    """
    from rote.stage.folder import Invitation, read_invitation
    from rote.stage.stage import TRY_STAGE

    if (join is None) == (not name or not at):
        raise BadRequestError(
            "the invitation is missing or given twice",
            "Give --join FILE; or --name and --at for a conductor on this computer.",
        )
    invitation = Invitation(TRY_STAGE, at, name) if join is None else read_invitation(join)
    run(_agent(RobotChoice(robot, key), invitation))


async def _agent(target: RobotChoice, invitation: "Invitation") -> None:
    import asyncio

    from rote.errors import LinkError
    from rote.stage.agent import Agent

    follows = False
    with invitation.credentials() as credentials:
        while True:
            bus = await _join_stage(invitation, credentials)
            try:
                async with connect_to(target) as robot:
                    print(
                        f"{invitation.name} follows the conductor of {invitation.stage}.",
                        flush=True,
                    )
                    follows = True
                    agent = Agent(bus, robot, invitation.name, invitation.stage)
                    watching = asyncio.create_task(
                        _report_silence(agent, lambda: _find_refusal(invitation, credentials))
                    )
                    try:
                        await agent.run()
                    finally:
                        watching.cancel()
            except LinkError as error:
                if not follows:
                    raise
                print(f"The robot is lost: {error}. Connecting again ...", flush=True)
            finally:
                await bus.close()
            await asyncio.sleep(1.0)


async def _join_stage(invitation: "Invitation", credentials: Any) -> Any:
    """Join the stage, and wait for its conductor as long as it takes.

    Prints what it waits for: nothing listens there, or a certificate is refused.
    """
    import asyncio

    from rote.errors import LinkError
    from rote.transport.zenoh.bus import StageBus

    printed = ""
    while True:
        try:
            return await StageBus.join(invitation.endpoint, credentials)
        except LinkError as error:
            text = await _find_refusal(invitation, credentials)
            if not text:
                text = f"Waiting for the conductor at {invitation.endpoint} ..."
                if "Unable to connect" not in str(error):  # Zenoh's message if nothing listens
                    text += f" ({error})"
            if text != printed:
                print(text, flush=True)
                printed = text
            await asyncio.sleep(1.0)


async def _find_refusal(invitation: "Invitation", credentials: Any) -> str:
    """Return what to print if a certificate is refused; "" if none is."""
    from rote.transport.zenoh.bus import find_refusal

    if fault := invitation.fault():
        refusal = f"the certificate of this computer will be refused: {fault}"
    else:
        refusal = await find_refusal(invitation.endpoint, credentials)
    if not refusal:
        return ""
    return (
        f"{invitation.name} cannot join the stage at {invitation.endpoint}: {refusal}. "
        f"On the conductor's computer: rote stage invite {invitation.name}. "
        "If its own certificate has expired, make a new stage there: rote stage new."
    )


async def _report_silence(agent: "Agent", find_refusal: "Callable[[], Awaitable[str]]") -> None:
    """Print when the conductor has been silent for long and why, and when it is back."""
    import asyncio

    silent = False
    while True:
        await asyncio.sleep(1.0)
        if agent.silent_s > _SILENT_S and not silent:
            silent = True
            reason = await find_refusal() or (
                "Is it running? If it was started before this agent was invited, start it again."
            )
            print(f"No message of the conductor for {_SILENT_S:.0f} s. {reason}", flush=True)
        elif agent.silent_s <= _SILENT_S and silent:
            silent = False
            print("The conductor is back.", flush=True)
