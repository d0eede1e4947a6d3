"""rote stage and rote agent: several robots as one, a computer beside each."""

from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rote.cli.options import Json, Key, RobotChoice, connect_to, print_json, run
from rote.errors import BadRequestError, RoteError
from rote.stage import DEFAULT_FOLDER

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from rote.stage.agent import Agent
    from rote.stage.folder import Invitation, StageFolder

app = typer.Typer(
    name="stage",
    help="Several robots as one: a conductor, and an agent beside each robot.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
StageDir = Annotated[
    Path, typer.Option("--stage", metavar="DIR", help="The stage's folder: rote stage new.")
]
_LISTEN_S = 1.5
"""Minimum time for which a status listens, to measure the share of lost messages."""
_CHECK_SILENCE_S = 0.2
_REFUSAL_S = 2.0
"""Timeout for a conductor's answer why this agent may not take part."""
_SILENT_S = 5.0
"""An agent that has never received anything from its conductor reports it after this time."""


@app.command()
def new(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where the stage is kept.")],
    name: Annotated[
        str, typer.Option(metavar="NAME", help="The stage's name on the network.")
    ] = "stage",
    at: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="This computer's address for the agents.")
    ] = "",
    router: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST:PORT",
            help="The address of a router; repeat it for several. Then --at is not needed.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Make a stage: its certificates and the conductor's configuration."""
    from rote.stage.folder import StageFolder
    from rote.transport.zenoh.bus import PORT

    if bool(at) == bool(router):
        raise BadRequestError(
            "a stage needs either this computer's address in the robots' network, or routers",
            f"Add --at 192.168.1.10:{PORT}, or --router HOST:{PORT} for each router.",
        )
    stage_folder = StageFolder.new(folder, name, at, router or ())
    if as_json:
        print_json(
            {"stage": stage_folder.name, "endpoint": stage_folder.endpoint, "folder": str(folder)}
        )
        return
    print(f"Made the stage {stage_folder.name} in {folder}, at {stage_folder.endpoint}.")
    for each, address in zip(stage_folder.router_folders, stage_folder.routers, strict=True):
        print(f"Copy {each} to the computer at {address} and run there: rote stage router {each}")
    print(f"Next, for each robot: rote stage invite NAME --stage {folder}")


@app.command()
def invite(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The agent's name in the cast.")],
    stage: StageDir = DEFAULT_FOLDER,
    as_json: Json = False,
) -> None:
    """Write the invitation of one agent: a file for the computer beside its robot."""
    from rote.stage.folder import StageFolder

    stage_folder = StageFolder(stage)
    path = stage_folder.invite(name)
    if as_json:
        print_json({"name": name, "file": str(path)})
        return
    print(f"Wrote {path}. Keep it secret: anyone who has it can join as {name}.")
    print(f"There: rote agent ROBOT_URL --join {path.name}")
    _remind_of_routers(stage_folder)


@app.command("router")
def run_router(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="The folder of one router, made by rote stage new --router."
        ),
    ],
) -> None:
    """Run a router of a stage until Ctrl-C: conductor and agents are its clients.

    A zenohd of the same version reads its configuration too: zenohd -c zenoh.json5
    """
    run(_run_router(folder))


async def _run_router(folder: Path) -> None:
    import asyncio

    from rote.transport.zenoh.bus import StageBus

    bus = await StageBus.route(folder)
    try:
        print(f"Routing for the stage with the configuration in {folder}.", flush=True)
        await asyncio.Event().wait()
    finally:
        await bus.close()


@app.command()
def renew(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="Only these agents; else the whole stage."),
    ] = None,
    stage: StageDir = DEFAULT_FOLDER,
    as_json: Json = False,
) -> None:
    """Renew certificates for a year: the conductor's and all agents', or those of some agents."""
    from rote.stage.folder import StageFolder

    stage_folder = StageFolder(stage)
    files = stage_folder.renew(*(names or ()))
    if as_json:
        print_json({"conductor": not names, "files": [str(file) for file in files]})
        return
    if not names:
        print("Renewed the conductor's certificate. Start the conductor again to use it.")
    for file in files:
        print(f"Wrote {file}. Copy it to the computer beside that robot, and restart its agent.")
    _remind_of_routers(stage_folder)


@app.command()
def revoke(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The agent that was invited.")],
    stage: StageDir = DEFAULT_FOLDER,
    as_json: Json = False,
) -> None:
    """Revoke an agent's invitation: from the conductor's next start on it cannot take part."""
    from rote.stage.folder import StageFolder

    stage_folder = StageFolder(stage)
    stage_folder.revoke(name)
    if as_json:
        print_json({"name": name, "revoked": True})
        return
    print(f"Revoked the invitation of {name}. Start the conductor again if it is running:")
    print("until then it accepts the old one.")
    _remind_of_routers(stage_folder)


def _remind_of_routers(stage_folder: "StageFolder") -> None:
    """Print that the routers of a stage must read their new configuration."""
    if stage_folder.routers:
        folders = ", ".join(str(folder) for folder in stage_folder.router_folders)
        print(f"Start the routers again, each with its new folder: {folders}")


@app.command()
def status(
    stage: StageDir = DEFAULT_FOLDER,
    seconds: Annotated[
        float,
        typer.Option(
            min=0.5, max=60.0, metavar="SECONDS", help="How long to wait for a missing robot."
        ),
    ] = 10.0,
    as_json: Json = False,
) -> int:
    """Show each robot of a stage: reachable, clock, round trip, battery, stored actions, faults."""
    return run(_gather_status(stage, seconds, as_json))


async def _gather_status(folder: Path, seconds: float, as_json: bool) -> int:
    from rote.cli import output
    from rote.stage.folder import StageFolder
    from rote.stage.watcher import watching

    stage_folder = StageFolder(folder)
    refused = stage_folder.invitation_faults()
    async with watching(folder) as watcher:
        with output.show_spinner("listening"):
            await watcher.gather_agents(min(_LISTEN_S, seconds), seconds)
        names = sorted({*stage_folder.agents, *watcher.agents, *refused})
        rows = [_describe_agent(name, watcher, refused.get(name, "")) for name in names]
    warnings = stage_folder.warnings()
    if as_json:
        print_json({"conductor": watcher.conducted, "robots": rows, "warnings": warnings})
    else:
        _show_status(rows, conducted=watcher.conducted)
        for warning in warnings:
            print(f"Warning: {warning}")
    return 0 if all(row["reachable"] for row in rows if row["name"] in stage_folder.agents) else 1


def _describe_agent(name: str, watcher: Any, refusal: str) -> dict[str, Any]:
    state = watcher.agents.get(name)
    if state is None:
        return {"name": name, "reachable": False, "fault": refusal}

    def to_ms(value_s: float) -> float | None:
        return round(1000 * value_s, 2) if value_s < 1e3 else None

    return {
        "name": name,
        "reachable": watcher.reachable(name),
        "robot": state.robot,
        "build": state.build,
        "phase": state.phase,
        "clock_bound_ms": to_ms(state.clock_bound_s),
        "round_trip_ms": to_ms(state.round_trip_s),
        "loss": round(watcher.loss(name), 3),
        "battery_percent": state.battery_percent,
        "fault": state.fault,
        "faults": list(state.facts),
        "holds": list(state.holds),
        "loaded": state.loaded[:12],
        "stopped": bool(state.phase == "stopped"),
    }


def _show_status(rows: list[dict[str, Any]], *, conducted: bool) -> None:
    from rote.cli import output

    out = output.console()
    out.print("The conductor is running." if conducted else "No conductor: nothing can be played.")
    titles = ("robot", "state", "build", "clock", "round trip", "loss", "battery", "holds", "fault")
    output.print_table(out, titles, [*map(_make_status_row, rows)])


def _make_status_row(row: dict[str, Any]) -> tuple[str, ...]:
    """Return the row of one robot in the table of `rote stage status`."""
    if not row["reachable"]:
        return row["name"], "not reachable", *[""] * 6, row["fault"]
    battery = row["battery_percent"]
    return (
        row["name"],
        row["phase"],
        row["build"],
        _format_ms(row["clock_bound_ms"], "\N{PLUS-MINUS SIGN}"),
        _format_ms(row["round_trip_ms"]),
        f"{100 * row['loss']:.0f} %",
        "?" if battery is None else f"{battery:.0f} %",
        _describe_stored_content(row),
        "; ".join(each for each in [row["fault"], *row["faults"]] if each),
    )


def _describe_stored_content(row: dict[str, Any]) -> str:
    """Return the first actions stored on a robot and the score loaded for a section, as text."""
    actions, more = row["holds"][:3], len(row["holds"]) - 3
    parts = [", ".join(actions) + (f" and {more} more" if more > 0 else "")] if actions else []
    parts += [f"score {row['loaded']}"] if row["loaded"] else []
    return "; ".join(parts) or "-"


def _format_ms(value: float | None, prefix: str = "") -> str:
    return "?" if value is None else f"{prefix}{value:.1f} ms"


@app.command()
def demo(
    robots: Annotated[
        int,
        typer.Option(
            min=1,
            max=300,
            metavar="N",
            help="How many robots, 1 to 300. More than 50 have no simulated body.",
        ),
    ] = 5,
    as_json: Json = False,
) -> int:
    """Try it: simulated robots on this computer play a show, and are stopped in the middle."""
    return run(_run_demo(robots, as_json))


async def _run_demo(robots: int, as_json: bool) -> int:
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
            f"{1000 * max(skews_s, default=0.0):.1f} ms of the median robot"
            + (f"; lost: {', '.join(section.lost)}" if section.lost else "")
        )
    if report.stopped_within_s is None:
        out.print(f"STOP was not confirmed by {', '.join(report.unconfirmed)}.", style="bold red")
        return 1
    out.print(f"STOP was confirmed by all within {1000 * report.stopped_within_s:.0f} ms.")
    return 0


def agent(
    robot: Annotated[
        str, typer.Argument(metavar="ROBOT_URL", help="The robot that the agent controls.")
    ],
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
    run(_run_agent(RobotChoice(robot, key), invitation))


async def _run_agent(target: RobotChoice, invitation: "Invitation") -> None:
    """Join the stage and follow its conductor; reconnect to a robot that is lost later."""
    import asyncio

    from rote.errors import LinkError
    from rote.stage.agent import Agent

    has_followed = False
    if warning := invitation.warning():
        print(f"Warning: {warning}", flush=True)
    with invitation.credentials() as credentials:
        while True:
            bus = await _join_stage(invitation, credentials)
            try:
                async with connect_to(target) as robot:
                    print(
                        f"{invitation.name} follows the conductor of {invitation.stage}.",
                        flush=True,
                    )
                    has_followed = True
                    agent = Agent(bus, robot, invitation.name, invitation.stage)
                    silence_task = asyncio.create_task(
                        _report_silence(agent, partial(_find_refusal, invitation, credentials, bus))
                    )
                    try:
                        await agent.run()
                    finally:
                        silence_task.cancel()
            except LinkError as error:
                if not has_followed:
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


async def _find_refusal(invitation: "Invitation", credentials: Any, bus: Any = None) -> str:
    """Return what to print if a certificate is refused; "" if none is.

    A conductor that is reached over `bus` is asked whether this agent may take part.
    """
    from rote.stage.keys import StageKeys
    from rote.transport.zenoh.bus import find_refusal

    if fault := invitation.fault():
        refusal = f"the certificate of this computer will be refused: {fault}"
    else:
        refusal = await find_refusal(invitation.endpoint, credentials)
    if not refusal and bus is not None:
        name = invitation.certificate_name or invitation.name
        with suppress(RoteError):  # no answer: there is no conductor
            answer = await bus.ask(StageKeys(invitation.stage).door, _REFUSAL_S, name.encode())
            if answer:
                refusal = f"the conductor refuses it: {answer.decode('utf-8', 'replace')[:200]}"
    if not refusal:
        return ""
    return (
        f"{invitation.name} cannot join the stage at {invitation.endpoint}: {refusal}. "
        f"On the conductor's computer: rote stage invite {invitation.name}. "
        "If its own certificate has expired, renew the stage there: rote stage renew."
    )


async def _report_silence(agent: "Agent", find_refusal: "Callable[[], Awaitable[str]]") -> None:
    """Print when the conductor is lost and what the robot does then, and when it is back.

    The agent stops its robot after `CONDUCTOR_LOST_S`. An agent that has just joined may have to
    wait longer for the first message.
    """
    import asyncio

    from rote.session.stage_agent import CONDUCTOR_LOST_S

    is_silent = False
    lost_s = 0.0
    while True:
        await asyncio.sleep(_CHECK_SILENCE_S)
        silent_s = agent.silent_s
        had_conductor = agent.conductor_known
        if not is_silent and silent_s > (CONDUCTOR_LOST_S if had_conductor else _SILENT_S):
            is_silent = True
            print(
                f"The conductor is lost. {agent.name} stops softly if it moves, and waits for it."
                if had_conductor
                else f"No message of the conductor for {_SILENT_S:.0f} s.",
                flush=True,
            )
            reason = await find_refusal() or (
                "Is it running? If it was started before this agent was invited, start it again; "
                "if this agent was revoked, it needs a new invitation."
            )
            if agent.silent_s > CONDUCTOR_LOST_S:  # it has not come back meanwhile
                print(reason, flush=True)
        elif is_silent and silent_s <= CONDUCTOR_LOST_S:
            is_silent = False
            print(f"The conductor is back after {lost_s:.0f} s.", flush=True)
        lost_s = max(lost_s, silent_s) if is_silent else 0.0
