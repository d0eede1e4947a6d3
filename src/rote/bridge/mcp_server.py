"""The tools of an agent as an MCP server on standard input and output."""

import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Annotated, Any, Literal

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import Field

from rote import __version__
from rote.bridge.agent_tools import AgentTools
from rote.errors import RoteError

_SIMULATED = (
    "rote teaches Unitree robots by hand. The robot here is simulated, and nothing can break: "
    "propose plays at once."
)
_REAL = (
    "rote teaches Unitree robots by hand. The robot here may be real. Check and simulate a motion "
    "before you propose it. It moves only after a person has held a button in the pendant; no "
    "answer of this client replaces that. Tell the person what you propose, and why."
)

Take = Annotated[str, Field(max_length=120, description="The name of a take on this computer.")]
Version = Annotated[
    int | None, Field(ge=1, description="Which version of the take; the newest by default.")
]
Speed = Annotated[
    float, Field(ge=0.05, le=4.0, description="A factor: 0.5 is half as fast as it was taught.")
]
Steps = Annotated[
    list[dict[str, Any]],
    Field(
        min_length=1,
        max_length=100,
        description='The edits in order, like {"op": "smooth", "cutoff_hz": 5}; look at "edits".',
    ),
]
What = Annotated[
    Literal["robot", "takes", "edits"],
    Field(description="What to describe: the robot, the takes on this computer, or all edits."),
]
Answer = dict[str, Any]


def make_server(tools: AgentTools, *, real: bool) -> MCPServer[None]:
    """Return an MCP server with all tools.

    With `real` it tells the agent that the robot may be real, as a pendant's robot may be.
    """

    @asynccontextmanager
    async def lifespan(_: "MCPServer[None]") -> AsyncIterator[None]:
        try:
            yield None
        finally:
            await tools.close()

    server: MCPServer[None] = MCPServer(
        "rote",
        title="rote: teach a robot by hand",
        instructions=_REAL if real else _SIMULATED,
        version=__version__,
        log_level="WARNING",
        lifespan=lifespan,
    )
    logging.getLogger("mcp").setLevel(logging.WARNING)
    for function, annotations in _make_tools(tools):
        server.add_tool(function, annotations=annotations)
    return server


def _make_tools(tools: AgentTools) -> list[tuple[Callable[..., Any], ToolAnnotations]]:
    # The agent sees the names, docstrings and parameters of these functions.
    async def look(what: What = "robot", take: Take | None = None) -> Answer:
        """Look at the robot, at the list of takes, at one take, or at the table of edits."""
        return await _run_tool(tools.inspect(what, take))

    async def check(take: Take, version: Version = None, speed: Speed = 1.0) -> Answer:
        """Check a take: limits, speed, contact, balance, torque. Nothing moves."""
        return await _run_tool(tools.check(take, version, speed))

    async def simulate(
        context: Context[Any, Any], take: Take, version: Version = None, speed: Speed = 1.0
    ) -> Answer:
        """Play a take on a separate simulated robot, in real time; returns which joints moved."""
        return await _run_tool(tools.simulate(take, version, speed, context.report_progress))

    async def edit(take: Take, steps: Steps, version: Version = None) -> Answer:
        """Edit a take. The result is a new version of it; no version is ever changed."""
        return await _run_tool(tools.edit(take, steps, version))

    async def propose(
        context: Context[Any, Any], take: Take, version: Version = None, speed: Speed = 1.0
    ) -> Answer:
        """Propose to play a take on the robot, and wait for its end. If it ended early, `played`
        is false and `reason` explains it.

        A robot that is not simulated moves only if a person approves this very motion in the
        pendant, within a minute.
        """
        return await _run_tool(tools.propose(take, version, speed, context.report_progress))

    async def stop() -> Answer:
        """Stop the robot softly, at once. No approval is needed. This is not an emergency stop."""
        return await _run_tool(tools.stop())

    read_only = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    additive = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
    moving = ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=True)
    stopping = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True)
    return [
        (look, read_only),
        (check, read_only),
        (simulate, read_only),
        (edit, additive),
        (propose, moving),
        (stop, stopping),
    ]


async def _run_tool(work: Awaitable[Answer]) -> Answer:
    """Return the answer of a tool; raise an error of rote as a `ToolError` whose text is JSON."""
    try:
        return await work
    except (RoteError, TimeoutError) as error:
        kind = error.kind if isinstance(error, RoteError) else "no-answer"
        remedy = str(error.remedy) if isinstance(error, RoteError) else ""
        document = {"error": kind, "message": str(error), "remedy": remedy}
        raise ToolError(json.dumps(document)) from error


async def serve(tools: AgentTools, *, real: bool) -> None:
    """Serve one agent on standard input and output, until it closes them."""
    await make_server(tools, real=real).run_stdio_async()
