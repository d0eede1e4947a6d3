"""rote web: the pendant, a page that teaches and plays."""

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from rote.cli.options import Json, Key, RobotUrl, print_json, run
from rote.client.wires import EMBEDDED
from rote.errors import BadRequestError, MissingExtraError
from rote.paths import pendant_key_file, tls_folder

if TYPE_CHECKING:
    from rote.web.certificate import TlsFiles
    from rote.web.hub import Start
    from rote.web.roles import PendantRole
    from rote.web.security import Gate, Proxy

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
    tls: Annotated[
        bool,
        typer.Option("--tls", help="Speak HTTPS, with a certificate made here or one's own."),
    ] = False,
    tls_cert: Annotated[
        Path | None,
        typer.Option(help="A certificate of one's own, as PEM; with --tls-key.", metavar="FILE"),
    ] = None,
    tls_key: Annotated[
        Path | None, typer.Option(help="Its private key, as PEM.", metavar="FILE")
    ] = None,
    proxy: Annotated[
        str | None,
        typer.Option(
            help="Where a proxy serves this page, like https://robot.example.org.", metavar="ORIGIN"
        ),
    ] = None,
    proxy_from: Annotated[
        str | None,
        typer.Option(help="The proxy's address, where it is another computer.", metavar="ADDRESS"),
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
        from rote.web.server_key import server_key
    except ImportError as error:
        raise MissingExtraError("the pendant", "web") from error
    from rote.cli.takes import library, rescue

    if not host:
        raise BadRequestError("the host is empty", "Say 0.0.0.0 to listen everywhere.")
    check_reachable(robot)
    behind = _behind(proxy, proxy_from)
    if token is None and (behind is not None or not is_loopback(host)):
        token = new_token()
    files = _tls(host, tls_cert, tls_key, wanted=tls)
    # Without a token there are no cookies and links to be made from a key.
    secret = b"" if token is None else server_key(pendant_key_file())
    gate = Gate(host, token, secret, tls=files is not None, proxy=behind)
    rescue()
    start = Start(library(), robot, key)
    return run(_serve(start, gate, port, _How(not no_browser, as_json, files)))


class _How(NamedTuple):
    """How the server is run and announced."""

    browser: bool
    as_json: bool
    tls: "TlsFiles | None"


def _behind(origin: str | None, address: str | None) -> "Proxy | None":
    """Return the proxy before this server, where one was named."""
    from rote.web.security import Proxy

    if origin is None:
        if address is not None:
            raise BadRequestError(
                "--proxy-from needs --proxy", "Say where the proxy serves the page, too."
            )
        return None
    return Proxy(origin, address)


def _tls(
    host: str, certificate: Path | None, key: Path | None, *, wanted: bool
) -> "TlsFiles | None":
    """Return the certificate to serve with: one's own, or one made here; None for none."""
    from rote.web.certificate import TlsFiles, check_files, own_certificate
    from rote.web.serve import own_host

    if certificate is not None and key is not None:
        return check_files(TlsFiles(certificate, key))
    if certificate is not None or key is not None:
        raise BadRequestError(
            "a certificate and its key go together", "Give both --tls-cert and --tls-key."
        )
    return own_certificate(tls_folder(), [own_host(host)]) if wanted else None


async def _serve(start: "Start", gate: "Gate", port: int, how: _How) -> None:
    from rote.web.roles import PendantRole
    from rote.web.serve import link, serving

    async with serving(start, gate, port, how.tls) as server:
        links = {role: link(gate, server.port, role) for role in PendantRole}
        address = links[PendantRole.TEACHER]
        if how.as_json:
            ready = {"event": "ready", "url": address, "robot": start.url}
            if gate.token is not None:
                ready["command_url"] = links[PendantRole.COMMAND]
                ready["watch_url"] = links[PendantRole.WATCH]
            print_json(ready)
        else:
            _introduce(links, gate, start.url, how.tls)
        if how.browser and not how.as_json:
            await asyncio.to_thread(_open, address)
        await asyncio.wait({server.task})


def _introduce(
    links: "dict[PendantRole, str]", gate: "Gate", robot: str, tls: "TlsFiles | None"
) -> None:
    from rote.web.certificate import fingerprint
    from rote.web.roles import PendantRole
    from rote.web.serve import picture

    address = links[PendantRole.TEACHER]
    print(f"The pendant is at {address}")
    if gate.token is not None:
        if sys.stdout.isatty():
            print(picture(address))
        print("Who has this link can move the robot, and lock the command against all others.")
        print(f"A link that may command:  {links[PendantRole.COMMAND]}")
        print(f"A link that only watches: {links[PendantRole.WATCH]}")
        if not gate.secure:
            print("The network carries these links unencrypted: --tls encrypts them.")
    if tls is not None:
        print(f"Its certificate has the SHA-256 fingerprint {fingerprint(tls.certificate)}.")
        print("A browser that warns of it shows the same one. Compare them before you go on.")
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
