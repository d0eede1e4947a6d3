"""rote mcp: tools for an agent, over standard input and output."""

from typing import TYPE_CHECKING, Annotated

import typer

from rote.cli.options import run
from rote.errors import MissingExtraError
from rote.transport.wires import EMBEDDED

if TYPE_CHECKING:
    from rote.bridge.pendant_client import PendantClient


def mcp(
    robot: Annotated[
        str,
        typer.Option("--robot", metavar="URL", help="Which simulated robot, like sim://g1-23."),
    ] = EMBEDDED,
    pendant: Annotated[
        str | None,
        typer.Option(
            "--pendant",
            envvar="ROTE_PENDANT",
            metavar="LINK",
            help="The watch link of a running web UI: rote web --agents.",
        ),
    ] = None,
) -> int:
    """Give agents tools over MCP: inspect, check, edit, propose, stop.

    The agent's program starts this command and talks to it over standard input and output. The
    robot is simulated. With --pendant, the agent may propose motions for the robot of that web UI;
    each is played only if a person approves it there by holding a button.
    """
    try:
        import rote.bridge.mcp_server  # noqa: F401 - brings the library
    except ImportError as error:
        raise MissingExtraError("an MCP server", "mcp") from error
    from rote.bridge.agent_tools import check_simulated
    from rote.bridge.pendant_client import PendantClient

    check_simulated(robot)
    return run(_serve_agent(robot, None if pendant is None else PendantClient(pendant)))


async def _serve_agent(robot: str, pendant: "PendantClient | None") -> None:
    from rote.bridge.agent_tools import AgentTools
    from rote.bridge.mcp_server import serve
    from rote.cli.takes import library

    await serve(AgentTools(library(), robot=robot, pendant=pendant), real=pendant is not None)
