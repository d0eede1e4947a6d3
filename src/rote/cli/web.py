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


def web(
    host: Annotated[
        str,
        typer.Option(
            metavar="HOST", help="Address to listen on; other than loopback it requires a token."
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(metavar="PORT", min=0, max=65535, help="Port; 0 for any free one."),
    ] = DEFAULT_PORT,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Do not open a browser.")
    ] = False,
    robot: RobotUrl = EMBEDDED,
    key: Key = None,
    token: Annotated[
        str | None,
        typer.Option(
            "--token", help="Token that browsers must send; by default a new one.", metavar="TOKEN"
        ),
    ] = None,
    tls: Annotated[
        bool,
        typer.Option("--tls", help="Use HTTPS, with an automatic certificate or your own."),
    ] = False,
    tls_cert: Annotated[
        Path | None,
        typer.Option(help="Your own certificate, as PEM; with --tls-key.", metavar="FILE"),
    ] = None,
    tls_key: Annotated[
        Path | None, typer.Option(help="Its private key, as PEM.", metavar="FILE")
    ] = None,
    proxy: Annotated[
        str | None,
        typer.Option(
            help="Public origin of a reverse proxy, like https://robot.example.org.",
            metavar="ORIGIN",
        ),
    ] = None,
    proxy_from: Annotated[
        str | None,
        typer.Option(help="The proxy's address if it is another computer.", metavar="ADDRESS"),
    ] = None,
    stage: Annotated[
        str | None,
        typer.Option(
            help="Conduct this stage, for shows: its folder, or 127.0.0.1:PORT without "
            "certificates.",
            metavar="DIR",
        ),
    ] = None,
    stage_robots: Annotated[
        int | None,
        typer.Option(
            help="Conduct a stage of N simulated robots, to try it.",
            metavar="N",
            min=1,
            max=50,
        ),
    ] = None,
    osc: Annotated[
        str | None,
        typer.Option(
            help="With a stage: listen here for OSC, and send OSC cues.", metavar="HOST:PORT"
        ),
    ] = None,
    agents: Annotated[
        bool,
        typer.Option(
            "--agents",
            help="Let agents propose motions (rote mcp); a person approves each one in the page.",
        ),
    ] = False,
    as_json: Json = False,
) -> int:
    """Serve the web UI: teach, list, edit and play in a browser.

    Without --robot it has a simulated one. Ctrl-C ends it, and leaves the robot at rest.
    """
    try:
        import rote.web.server.serve  # noqa: F401 - brings the server itself
        from rote.connection import check_reachable
        from rote.transport.link import check_host
        from rote.web.access.security import Gate, is_loopback, load_server_key, new_token
        from rote.web.services.hub import Start
    except ImportError as error:
        raise MissingExtraError("the web UI", "web") from error
    from rote.bridge.tickets import new_secret
    from rote.cli.takes import library, rescue

    if not host:
        raise BadRequestError("the host is empty", "Use 0.0.0.0 to listen on all addresses.")
    check_host(host)
    check_reachable(robot)
    behind = _parse_proxy(proxy, proxy_from)
    if agents:
        _check_a_person_watches(as_json)
    # Local programs are not persons: with agents, loopback requires tokens, too.
    if token is None and (agents or behind is not None or not is_loopback(host)):
        token = new_token()
    files = _tls_files(host, tls_cert, tls_key, wanted=tls)
    # Without a token there are no cookies or links to derive from a key.
    secret = b"" if token is None else load_server_key(pendant_key_file())
    gate = Gate(host, token, secret, tls=files is not None, proxy=behind)
    recovered = tuple(entry.name for entry in rescue())
    asked = new_secret() if agents else None
    start = Start(library(), robot, key, shows=shows_folder(), recovered=recovered, secret=asked)
    which = _StageOptions(stage, stage_robots, osc)
    which.check()
    return run(_serve(start, gate, port, _ServeOptions(not no_browser, as_json, files), which))


def _check_a_person_watches(as_json: bool) -> None:
    """Refuse agents if the secret that approves their motions would not reach a person."""
    if as_json or not sys.stdout.isatty():
        raise BadRequestError(
            "--agents shows a secret to a person, and this output goes to a program or a file",
            "Start it in a terminal, without --json.",
        )


class _ServeOptions(NamedTuple):
    """How the server is run and announced."""

    browser: bool
    as_json: bool
    tls: "TlsFiles | None"


class _StageOptions(NamedTuple):
    """Which stage the server conducts, if any."""

    where: str | None
    """Its folder, or an address of this computer."""
    robots: int | None
    """How many simulated robots, for a stage of them."""
    osc: str | None

    def check(self) -> None:
        """Raise `BadRequestError` for options that do not go together."""
        if self.where is not None and self.robots is not None:
            raise BadRequestError("--stage and --stage-robots exclude each other", "Leave out one.")
        if self.osc is None:
            return
        host, _, port = self.osc.rpartition(":")
        if not host or not port.isdecimal():
            raise BadRequestError(f"{self.osc!r} is not an address", "Write HOST:PORT.")
        if self.where is None and self.robots is None:
            raise BadRequestError("--osc is for shows", "Give it a --stage, too.")

    @asynccontextmanager
    async def open_stage_service(self) -> "AsyncIterator[PendantStage | None]":
        """Conduct the stage in the block."""
        from rote.stage.demo import simulated_stage
        from rote.stage.folder import StageFolder
        from rote.stage.stage import TRY_STAGE, open_stage
        from rote.web.services.stage import PendantStage

        hears = self.osc is not None
        if self.robots is not None:
            async with simulated_stage(self.robots) as (opened, names):
                yield await self._with_osc(PendantStage(opened, TRY_STAGE, names, hears))
        elif self.where is None:
            yield None
        elif self._is_address(self.where):
            async with open_stage(endpoint=self.where) as opened:
                yield await self._with_osc(PendantStage(opened, TRY_STAGE, (), hears))
        else:
            made = StageFolder(Path(self.where))
            async with open_stage(made.folder) as opened:
                yield await self._with_osc(PendantStage(opened, made.name, made.agents, hears))

    async def _with_osc(self, made: "PendantStage") -> "PendantStage":
        if self.osc is not None:
            host, _, port = self.osc.rpartition(":")
            await made.stage.listen(host, int(port))
        return made

    @staticmethod
    def _is_address(where: str) -> bool:
        from rote.web.access.security import is_loopback

        host, _, port = where.rpartition(":")
        return port.isdecimal() and is_loopback(host) and not Path(where).exists()


def _parse_proxy(origin: str | None, address: str | None) -> "Proxy | None":
    """Return the proxy before this server, where one was named."""
    from rote.web.access.security import Proxy

    if origin is None:
        if address is not None:
            raise BadRequestError(
                "--proxy-from needs --proxy", "Say where the proxy serves the page, too."
            )
        return None
    return Proxy(origin, address)


def _tls_files(
    host: str, certificate: Path | None, key: Path | None, *, wanted: bool
) -> "TlsFiles | None":
    """Return the certificate to serve with: one's own, or one made here; None for none."""
    from rote.web.access.certificate import TlsFiles, check_files, own_certificate
    from rote.web.server.serve import own_host

    if certificate is not None and key is not None:
        return check_files(TlsFiles(certificate, key))
    if certificate is not None or key is not None:
        raise BadRequestError(
            "a certificate and its key go together", "Give both --tls-cert and --tls-key."
        )
    return own_certificate(tls_folder(), [own_host(host)]) if wanted else None


async def _serve(
    start: "Start", gate: "Gate", port: int, how: _ServeOptions, which: _StageOptions
) -> None:
    from rote.web.access.roles import PendantRole
    from rote.web.server.serve import link, server_ended_error, serving

    if which.robots is not None and not how.as_json:
        print(f"Starting {which.robots} simulated robots, each with its agent ...", flush=True)
    # The server ends before its stage does: at its end it stops a show.
    async with (
        which.open_stage_service() as stage,
        serving(replace(start, stage=stage), gate, port, how.tls) as server,
    ):
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
            if stage is not None:
                print(f"It conducts the stage {stage.name}: see its Show screen.", flush=True)
            if start.secret is not None:
                _introduce_agents(links[PendantRole.WATCH], start.secret)
        if how.browser and not how.as_json:
            await asyncio.to_thread(_open, address)
        await asyncio.wait({server.task})
        raise server_ended_error(server.task)  # it serves until this task is cancelled


def _introduce(
    links: "dict[PendantRole, str]", gate: "Gate", robot: str, tls: "TlsFiles | None"
) -> None:
    from rote.web.access.certificate import fingerprint
    from rote.web.access.roles import PendantRole
    from rote.web.server.app import how_to_get_the_page, page_is_there
    from rote.web.server.serve import qr_code

    address = links[PendantRole.TEACHER]
    print(f"The web UI is at {address}")
    if gate.token is not None:
        if sys.stdout.isatty() and shows("█▀▄"):
            print(qr_code(address))
        print("Anyone with this link can move the robot, and lock the command against all others.")
        print(f"A link that may command:  {links[PendantRole.COMMAND]}")
        print(f"A link that only watches: {links[PendantRole.WATCH]}")
        if not gate.secure:
            print("The network carries these links unencrypted: --tls encrypts them.")
    if tls is not None:
        print(f"Its certificate has the SHA-256 fingerprint {fingerprint(tls.certificate)}.")
        print("A browser that warns of it shows the same one. Compare them before you go on.")
    if not page_is_there():
        print(f"There is no page to show, only the API. {how_to_get_the_page()}")
    print(f"Its robot is {robot}. Ctrl-C ends it.", flush=True)


def _introduce_agents(watching: str, secret: str) -> None:
    print(f"An agent proposes motions by: rote mcp --pendant '{watching}'")
    print(f"To approve one, type this into the page, and hold its button: {secret}")
    print("Nobody else is shown it. Do not give it to an agent.", flush=True)


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
