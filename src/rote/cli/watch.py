"""rote watch: a robot shown live in a viewer such as Foxglove."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rote.cli.options import (
    TIMEOUT_S,
    Json,
    Key,
    Keylog,
    Overwrite,
    RobotChoice,
    RobotUrl,
    Timeout,
    connect_to,
    print_json,
    require_ability,
    run,
)
from rote.errors import BadRequestError, MissingExtraError, RoteError
from rote.transport.wires import EMBEDDED

if TYPE_CHECKING:
    from rote.findings import Finding
    from rote.robot.robot import Robot

FOXGLOVE_PORT = 8765
_FINDINGS_INTERVAL_S = 10.0


def watch(
    port: Annotated[
        int,
        typer.Argument(metavar="[PORT]", min=0, max=65535, help="Port; 0 for any free one."),
    ] = FOXGLOVE_PORT,
    foxglove: Annotated[
        bool, typer.Option("--foxglove", help="Serve live data to Foxglove.")
    ] = False,
    layout: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a layout to import in Foxglove, then exit."),
    ] = None,
    overwrite: Overwrite = False,
    robot: RobotUrl = EMBEDDED,
    key: Key = None,
    keylog: Keylog = None,
    timeout: Timeout = TIMEOUT_S,
    as_json: Json = False,
) -> int:
    """Show a robot live in Foxglove; nothing can be moved.

    In Foxglove, open a connection of the type Foxglove WebSocket to the printed address.
    Only this computer is served; over the network, use the stream of rote web.
    """
    if layout is not None:
        return _write_layout(layout, overwrite, as_json)
    if not foxglove:
        raise BadRequestError("the viewer is missing", "Use: rote watch --foxglove")
    try:
        import rote.bridge.foxglove_server  # noqa: F401 - brings the server itself
    except ImportError as error:
        raise MissingExtraError("a live view", "web") from error
    target = RobotChoice(robot, key, keylog, timeout)
    require_ability(target, "states", "be watched")
    return run(_serve_live_view(target, port, as_json))


def _write_layout(path: Path, overwrite: bool, as_json: bool) -> int:
    from rote.bridge.foxglove import foxglove_layout
    from rote.platform.atomic_file import appearing, check_new

    check_new(path, overwrite)
    with appearing(path) as file:
        file.write(foxglove_layout().encode())
    if as_json:
        print_json({"file": str(path)})
    else:
        print(f"Wrote {path}. In Foxglove: Layouts, Import from file.")
    return 0


async def _serve_live_view(target: RobotChoice, port: int, as_json: bool) -> None:
    """Serve the robot's states and findings to Foxglove until the robot is lost, or Ctrl-C."""
    from rote.bridge.foxglove_server import make_feed, serving
    from rote.bridge.live_view import LiveView
    from rote.web.work.drawing import model_of

    async with connect_to(target, "states", quiet=as_json, every_state=True) as robot:
        feed = make_feed(f"rote: {robot.build.title}")
        findings: list[Finding] = []
        view = LiveView(feed, robot, lambda: findings, model_of)
        polling = asyncio.create_task(_poll_findings(robot, findings))
        async with serving(feed, port) as bound_port:
            view.open()
            try:
                _print_introduction(f"ws://127.0.0.1:{bound_port}", robot, as_json)
                async for _ in robot.states():
                    pass
            finally:
                view.close()
                polling.cancel()


def _print_introduction(url: str, robot: "Robot", as_json: bool) -> None:
    if as_json:
        print_json({"event": "ready", "url": url, "robot": robot.url, "build": robot.build.name})
        return
    print(f"{robot.build.title} at {robot.url} can be watched at {url}")
    print("In Foxglove: Open connection, Foxglove WebSocket, and this address.")
    print("A layout for it: rote watch --layout rote.json. Ctrl-C ends it.", flush=True)


async def _poll_findings(robot: "Robot", findings: "list[Finding]") -> None:
    """Run the preflight periodically, and keep its result in the list `findings`."""
    while True:
        try:
            findings[:] = await robot.preflight()  # in place: the view reads this list
        except (RoteError, TimeoutError):
            findings.clear()
        await asyncio.sleep(_FINDINGS_INTERVAL_S)
