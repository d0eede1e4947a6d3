"""rote web: the web UI, a page that teaches and plays."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from rote.cli.options import Json, Key, RobotUrl, print_json, run
from rote.errors import BadRequestError, MissingExtraError
from rote.platform.console_text import shows
from rote.platform.paths import pendant_key_file, shows_folder, tls_folder
from rote.transport.wires import EMBEDDED

if TYPE_CHECKING:
    from rote.web.access.certificate import TlsFiles
    from rote.web.access.roles import PendantRole
    from rote.web.access.security import Gate, Proxy
    from rote.web.services.hub import Start
    from rote.web.services.stage import PendantStage

DEFAULT_PORT = 8600


Host = Annotated[
    str,
    typer.Option(
        metavar="HOST", help="Address to listen on; other than loopback it requires a token."
    ),
]
Port = Annotated[
    int,
    typer.Option(metavar="PORT", min=0, max=65535, help="Port; 0 for any free one."),
]
NoBrowser = Annotated[bool, typer.Option("--no-browser", help="Do not open a browser.")]
Token = Annotated[
    str | None,
    typer.Option(
        "--token", help="Token that browsers must send; by default a new one.", metavar="TOKEN"
    ),
]
Tls = Annotated[
    bool,
    typer.Option("--tls", help="Use HTTPS, with an automatic certificate or your own."),
]
TlsCertificate = Annotated[
    Path | None,
    typer.Option(help="Your own certificate, as PEM; with --tls-key.", metavar="FILE"),
]
TlsKey = Annotated[
    Path | None, typer.Option(help="The certificate's private key, as PEM.", metavar="FILE")
]
ProxyOrigin = Annotated[
    str | None,
    typer.Option(
        help="Public origin of a reverse proxy, like https://robot.example.org.",
        metavar="ORIGIN",
    ),
]
ProxyAddress = Annotated[
    str | None,
    typer.Option(help="The proxy's address if it is another computer.", metavar="ADDRESS"),
]
StageName = Annotated[
    str | None,
    typer.Option(
        help="Conduct this stage, for shows: its folder, or 127.0.0.1:PORT without certificates.",
        metavar="DIR",
    ),
]
StageRobots = Annotated[
    int | None,
    typer.Option(
        help="Conduct a stage of N simulated robots, to try it.",
        metavar="N",
        min=1,
        max=50,
    ),
]
OscAddress = Annotated[
    str | None,
    typer.Option(help="With a stage: listen here for OSC, and send OSC cues.", metavar="HOST:PORT"),
]
WithAgents = Annotated[
    bool,
    typer.Option(
        "--agents",
        help="Let agents propose motions (rote mcp); a person approves each one in the page.",
    ),
]


def web(
    host: Host = "127.0.0.1",
    port: Port = DEFAULT_PORT,
    no_browser: NoBrowser = False,
    robot: RobotUrl = EMBEDDED,
    key: Key = None,
    token: Token = None,
    tls: Tls = False,
    tls_cert: TlsCertificate = None,
    tls_key: TlsKey = None,
    proxy: ProxyOrigin = None,
    proxy_from: ProxyAddress = None,
    stage: StageName = None,
    stage_robots: StageRobots = None,
    osc: OscAddress = None,
    agents: WithAgents = False,
    as_json: Json = False,
) -> int:
    """Serve the web UI: teach, list, edit and play in a browser.

    Without --robot it has a simulated one. Ctrl-C ends it, and leaves the robot at rest.
    """
    _import_server()
    from rote.bridge.tickets import make_secret
    from rote.cli.takes import library, recover_unfinished_takes
    from rote.connection import check_reachable
    from rote.transport.address import check_host
    from rote.web.access.security import Gate, is_loopback, load_server_key, new_token
    from rote.web.services.hub import Start

    if not host:
        raise BadRequestError("the host is empty", "Use 0.0.0.0 to listen on all addresses.")
    check_host(host)
    check_reachable(robot)
    reverse_proxy = _parse_proxy(proxy, proxy_from)
    if agents:
        _check_terminal(as_json)
    # Local programs are not persons: with agents, loopback requires tokens, too.
    if token is None and (agents or reverse_proxy is not None or not is_loopback(host)):
        token = new_token()
    uses_tls = tls or tls_cert is not None or tls_key is not None
    tls_files = _find_tls_files(host, tls_cert, tls_key) if uses_tls else None
    # Without a token there are no cookies or links to derive from a key.
    server_key = b"" if token is None else load_server_key(pendant_key_file())
    gate = Gate(host, token, server_key, tls=uses_tls, proxy=reverse_proxy)
    recovered = tuple(entry.name for entry in recover_unfinished_takes())
    approval_secret = make_secret() if agents else None
    start = Start(
        library(), robot, key, shows=shows_folder(), recovered=recovered, secret=approval_secret
    )
    stage_options = _StageOptions(stage, stage_robots, osc)
    stage_options.check()
    serve_options = _ServeOptions(not no_browser, as_json, tls_files)
    return run(_serve_page(start, gate, port, serve_options, stage_options))


def _import_server() -> None:
    """Import the server, or raise `MissingExtraError`."""
    try:
        import rote.web.server.serve
        import rote.web.services.hub  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("the web UI", "web") from error


def _check_terminal(as_json: bool) -> None:
    """Raise `BadRequestError` unless the output, which shows the agents' secret, is a terminal."""
    if as_json or not sys.stdout.isatty():
        raise BadRequestError(
            "--agents shows a secret to a person, and this output goes to a program or a file",
            "Start it in a terminal, without --json.",
        )


class _ServeOptions(NamedTuple):
    """How the server is run and announced."""

    opens_browser: bool
    as_json: bool
    tls: "TlsFiles | None"


class _StageOptions(NamedTuple):
    """Which stage the server conducts, if any."""

    folder_or_address: str | None
    """The stage's folder, or its address on this computer."""
    robots: int | None
    """Number of simulated robots, for a stage that has only these."""
    osc: str | None
    """The address to listen on for OSC, HOST:PORT."""

    def check(self) -> None:
        """Raise `BadRequestError` for options that do not go together."""
        if self.folder_or_address is not None and self.robots is not None:
            raise BadRequestError("--stage and --stage-robots exclude each other", "Leave out one.")
        if self.osc is None:
            return
        host, _, port = self.osc.rpartition(":")
        if not host or not port.isdecimal():
            raise BadRequestError(f"{self.osc!r} is not an address", "Write HOST:PORT.")
        if self.folder_or_address is None and self.robots is None:
            raise BadRequestError("--osc is for shows", "Give it a --stage, too.")

    @asynccontextmanager
    async def open_stage_service(self) -> "AsyncIterator[PendantStage | None]":
        """Conduct the chosen stage during the block; yield None if none was chosen."""
        from rote.stage.demo import simulated_stage
        from rote.stage.folder import StageFolder
        from rote.stage.stage import TRY_STAGE, open_stage
        from rote.web.services.stage import PendantStage

        osc_open = self.osc is not None
        if self.robots is not None:
            async with simulated_stage(self.robots) as (stage, names):
                yield await self._listen_for_osc(PendantStage(stage, TRY_STAGE, names, osc_open))
        elif self.folder_or_address is None:
            yield None
        elif self._is_address(self.folder_or_address):
            async with open_stage(endpoint=self.folder_or_address) as stage:
                yield await self._listen_for_osc(PendantStage(stage, TRY_STAGE, (), osc_open))
        else:
            folder = StageFolder(Path(self.folder_or_address))
            async with open_stage(folder.folder) as stage:
                yield await self._listen_for_osc(
                    PendantStage(stage, folder.name, folder.agents, osc_open)
                )

    async def _listen_for_osc(self, pendant_stage: "PendantStage") -> "PendantStage":
        """Let the stage listen for OSC if an address was given; return the stage."""
        if self.osc is not None:
            host, _, port = self.osc.rpartition(":")
            # No cues: the page has no cue list yet.
            await pendant_stage.stage.listen(host, int(port), cues=False)
        return pendant_stage

    @staticmethod
    def _is_address(folder_or_address: str) -> bool:
        from rote.web.access.security import is_loopback

        host, _, port = folder_or_address.rpartition(":")
        is_folder = Path(folder_or_address).exists()
        return port.isdecimal() and is_loopback(host) and not is_folder


def _parse_proxy(origin: str | None, address: str | None) -> "Proxy | None":
    """Return the reverse proxy in front of this server, if one was given."""
    from rote.web.access.security import Proxy

    if origin is None:
        if address is not None:
            raise BadRequestError(
                "--proxy-from needs --proxy", "Add --proxy with the proxy's public origin."
            )
        return None
    return Proxy(origin, address)


def _find_tls_files(host: str, certificate: Path | None, key: Path | None) -> "TlsFiles":
    """Return the user's own certificate and key, or a certificate that rote makes."""
    from rote.web.access.certificate import TlsFiles, check_files, own_certificate
    from rote.web.server.serve import own_host

    if certificate is None and key is None:
        return own_certificate(tls_folder(), [own_host(host)])
    if certificate is None or key is None:
        raise BadRequestError(
            "a certificate and its key go together", "Give both --tls-cert and --tls-key."
        )
    return check_files(TlsFiles(certificate, key))


async def _serve_page(
    start: "Start", gate: "Gate", port: int, options: _ServeOptions, stage_options: _StageOptions
) -> None:
    from rote.web.access.roles import PendantRole
    from rote.web.server.serve import link, server_ended_error, serving

    if stage_options.robots is not None and not options.as_json:
        print(
            f"Starting {stage_options.robots} simulated robots, each with its agent ...", flush=True
        )
    # The server ends before its stage does: at its end it stops a show.
    async with (
        stage_options.open_stage_service() as stage,
        serving(replace(start, stage=stage), gate, port, options.tls) as server,
    ):
        links = {role: link(gate, server.port, role) for role in PendantRole}
        address = links[PendantRole.TEACHER]
        if options.as_json:
            ready = {"event": "ready", "url": address, "robot": start.url}
            if gate.token is not None:
                ready["command_url"] = links[PendantRole.COMMAND]
                ready["watch_url"] = links[PendantRole.WATCH]
            print_json(ready)
        else:
            _print_introduction(links, gate, start.url, options.tls)
            if stage is not None:
                print(f"It conducts the stage {stage.name}: see its Show screen.", flush=True)
            if start.secret is not None:
                _print_agent_introduction(links[PendantRole.WATCH], start.secret)
        if options.opens_browser and not options.as_json:
            await asyncio.to_thread(_open_browser, address)
        await asyncio.wait({server.task})
        raise server_ended_error(server.task)  # it serves until this task is cancelled


def _print_introduction(
    links: "dict[PendantRole, str]", gate: "Gate", robot: str, tls: "TlsFiles | None"
) -> None:
    from rote.web.access.certificate import fingerprint
    from rote.web.access.roles import PendantRole
    from rote.web.server.app import has_page, page_remedy
    from rote.web.server.serve import qr_code

    address = links[PendantRole.TEACHER]
    print(f"The web UI is at {address}")
    if gate.token is not None:
        if sys.stdout.isatty() and shows("█▀▄"):  # the QR code consists of these
            print(qr_code(address))
        print("Anyone with this link can move the robot, and lock all others out of the command.")
        print(f"A link that may command:  {links[PendantRole.COMMAND]}")
        print(f"A link that only watches: {links[PendantRole.WATCH]}")
        if not gate.secure:
            print("The network carries these links unencrypted: --tls encrypts them.")
    if tls is not None:
        print(f"Its certificate has the SHA-256 fingerprint {fingerprint(tls.certificate)}.")
        print("If the browser shows a warning, compare the fingerprints before you continue.")
    if not has_page():
        print(f"The page is not installed; only the API is served. {page_remedy()}")
    print(f"Its robot is {robot}. Ctrl-C ends it.", flush=True)


def _print_agent_introduction(watch_link: str, secret: str) -> None:
    print(f"An agent proposes motions by: rote mcp --pendant '{watch_link}'")
    print(f"To approve one, type this into the page, and hold its button: {secret}")
    print("It is shown only here. Do not give it to an agent.", flush=True)


def _open_browser(address: str) -> None:
    """Open a browser if there is one with a window; a text browser would take this terminal."""
    import webbrowser

    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return
    # The library's text browsers are of this class; its subclass for the background is not one.
    is_text_browser = isinstance(browser, webbrowser.GenericBrowser) and not isinstance(
        browser, webbrowser.BackgroundBrowser
    )
    if not is_text_browser:
        browser.open(address)
