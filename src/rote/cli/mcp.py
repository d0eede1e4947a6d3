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
    """Give agents tools by MCP: look, check, edit, propose, stop.

    An agent's program starts this, and speaks to it over standard input and output. Its robot is a
    simulated one. With --pendant it may propose motions for that web UI's robot: each moves only
    if a person approves it there, by holding a button.
    """
    try:
        import rote.bridge.mcp_server  # noqa: F401 - brings the library
    except ImportError as error:
        raise MissingExtraError("an MCP server", "mcp") from error
    from rote.bridge.agent_tools import check_simulated
    from rote.bridge.pendant_client import PendantClient

    check_simulated(robot)
    return run(_serve(robot, None if pendant is None else PendantClient(pendant)))


async def _serve(robot: str, pendant: "PendantClient | None") -> None:
    from rote.bridge.agent_tools import AgentTools
    from rote.bridge.mcp_server import serve
    from rote.cli.takes import library

    await serve(AgentTools(library(), robot=robot, pendant=pendant), real=pendant is not None)
