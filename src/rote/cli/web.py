"""rote web: the pendant, a page that teaches and plays."""

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from rote.cli.options import Json, Key, RobotUrl, print_json, run
from rote.client.wires import EMBEDDED
from rote.errors import BadRequestError, MissingExtraError

if TYPE_CHECKING:
    from rote.web.hub import Start
    from rote.web.security import Gate

DEFAULT_PORT = 8600


def web(
    host: Annotated[
        str, typer.Option(help="Where to listen; other than loopback it asks for a token.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Which port; 0 for any that is free.")
    ] = DEFAULT_PORT,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Do not open a browser.")
    ] = False,
    robot: RobotUrl = EMBEDDED,
    key: Key = None,
    token: Annotated[
        str | None,
        typer.Option(
            "--token", help="What browsers must know; by default a new one.", metavar="TEXT"
        ),
    ] = None,
    as_json: Json = False,
) -> int:
    """Serve the pendant: teach, list, edit and play from a web page.

    Without --robot it has a simulated one. Ctrl-C ends it, and leaves the robot at rest.
    """
    try:
        from rote.connection import check_reachable
        from rote.web.hub import Start
        from rote.web.security import Gate, is_loopback, new_token
    except ImportError as error:
        raise MissingExtraError("the pendant", "web") from error
    from rote.cli.takes import library, rescue

    if not host:
        raise BadRequestError("the host is empty", "Say 0.0.0.0 to listen everywhere.")
    check_reachable(robot)
    if token is None and not is_loopback(host):
        token = new_token()
    gate = Gate(host, token)
    rescue()
    start = Start(library(), robot, key)
    return run(_serve(start, gate, port, (not no_browser, as_json)))


async def _serve(start: "Start", gate: "Gate", port: int, how: tuple[bool, bool]) -> None:
    from rote.web.serve import link, serving

    browser, as_json = how
    async with serving(start, gate, port) as server:
        address = link(gate, server.port)
        if as_json:
            print_json({"event": "ready", "url": address, "robot": start.url})
        else:
            _introduce(address, gate, start.url)
        if browser and not as_json:
            await asyncio.to_thread(_open, address)
        await asyncio.wait({server.task})


def _introduce(address: str, gate: "Gate", robot: str) -> None:
    from rote.web.serve import picture

    print(f"The pendant is at {address}")
    if gate.token is not None:
        if sys.stdout.isatty():
            print(picture(address))
        print("Who has this link can move the robot. The network carries it unencrypted.")
    print(f"Its robot is {robot}. Ctrl-C ends it.", flush=True)


def _open(address: str) -> None:
    """Open a browser if there is one."""
    import webbrowser

    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return
    if not isinstance(browser, webbrowser.GenericBrowser) or isinstance(
        browser, webbrowser.BackgroundBrowser
    ):
        browser.open(address)
