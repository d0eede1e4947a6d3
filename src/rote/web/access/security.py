"""The checks that every request passes before anything else sees it.

- Host: rejects a foreign name that was made to resolve to this server (DNS rebinding).
- Origin and Sec-Fetch-Site: reject requests of other sites' pages in the same browser.
- Token: required over the network; once by link, from then on by a cookie. Each role has one.
  Guessing is rate-limited, and the body of a request without a token is not read.
- Size and time: bodies are limited in size and time while they are read.
"""

import asyncio
import hashlib
import hmac
import secrets
import socket
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from dataclasses import dataclass, field
from html import escape
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from starlette.exceptions import HTTPException

from rote.errors import BadRequestError
from rote.platform.atomic_file import appearing
from rote.web.access.guesses import RETRY_S, Guesses
from rote.web.access.roles import SCOPE_KEY, Access, PendantRole
from rote.web.server.problems import ProblemError, to_json

MAX_UPLOAD_BYTES = 32 * 2**20
MAX_BODY_BYTES = 256 * 2**10
MIN_TOKEN = 12
UPLOAD_PATHS = frozenset({"/api/takes/upload", "/api/shows/sounds/upload"})
VIEW_PATH = "/api/foxglove"
"""The live view. Foxglove sends no cookies: if a token is required, it is in the URL."""
SEAT_COOKIE = "rote_seat"
BODY_S = 10.0
"""Time limit for receiving a body; extended by what has already arrived."""
BODY_BYTES_PER_S = 32 * 2**10
_KEY_BYTES = 32
_KEY_REMEDY = "Make that folder writable, or choose another with ROTE_HOME."
_FORM_BYTES = 64 * 2**10  # what a form puts around its file

HEADERS: tuple[tuple[str, str], ...] = (
    (
        "content-security-policy",
        "default-src 'self'; img-src 'self' data: blob:; connect-src 'self' blob:; "
        "worker-src 'self' blob:; object-src 'none'; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), microphone=(), geolocation=()"),
)

_PRIVATE = tuple(
    ip_network(network)
    for network in (
        "127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16",
        "::1/128", "fe80::/10", "fc00::/7",
    )
)  # fmt: skip
"""Loopback, private (RFC 1918), link-local and unique local addresses."""

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
RoleInside = Callable[[str], PendantRole | None]
"""Returns the role of a connected client by its id."""


def is_loopback(host: str) -> bool:
    """Whether a server at `host` can be reached from this computer only."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def is_private(address: str) -> bool:
    """Whether an IP address is of this computer or of a private network."""
    try:
        ip = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    ip = getattr(ip, "ipv4_mapped", None) or ip
    return any(ip.version == network.version and ip in network for network in _PRIVATE)


async def check_private(host: str, configured: Collection[str] = ()) -> None:
    """Raise `BadRequestError` if a host has an address that is neither private nor configured.

    A browser must not be able to make this server probe other networks. A name that does not
    resolve is accepted: it has no address.
    """
    if host in configured or is_private(host):
        return
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return
    public = {str(each[4][0]) for each in found if not is_private(str(each[4][0]))}
    if public - set(configured):
        raise BadRequestError(
            f"{host!r} is not an address of a private network",
            "Use an address of this computer or of the robot's own network; others are named when "
            "this server is started.",
        )


@dataclass(frozen=True, slots=True)
class Proxy:
    """A reverse proxy in front of this server, and the origin under which it serves the page."""

    origin: str
    """Like https://robot.example.org, as browsers show it."""
    address: str | None = None
    """The address from which the proxy connects to this server; None for this computer."""

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.origin)
            whole = f"{parts.scheme}://{parts.netloc}"
            good = parts.scheme in {"http", "https"} and bool(parts.hostname)
        except ValueError:
            good, whole = False, ""
        if not good or self.origin.rstrip("/") != whole or "@" in whole:
            raise BadRequestError(
                f"{self.origin!r} is not where a proxy serves a page",
                "Give scheme and name alone, like https://robot.example.org.",
            )
        object.__setattr__(self, "origin", whole.lower())

    @property
    def host(self) -> str:
        """Its host name, and its port if it is not the default."""
        return urlsplit(self.origin).netloc

    def speaks_from(self, peer: str) -> bool:
        """Whether a connection from this address is the proxy's."""
        return is_loopback(peer) if self.address is None else _same_address(peer, self.address)


@dataclass(frozen=True, slots=True)
class Gate:
    """The conditions under which a request is accepted.

    `token` is the teacher's. The tokens of the other roles are derived from it and from `key`, so
    that a token does not reveal the token of a higher role.
    """

    host: str = "127.0.0.1"
    """The address at which the server listens."""
    token: str | None = None
    key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    """A secret of this computer. With the same key, cookies and links survive a restart."""
    tls: bool = False
    """Whether this server itself speaks HTTPS."""
    proxy: Proxy | None = None
    tokens: dict[PendantRole, str] = field(init=False, repr=False)
    """The token of each role; empty if none is required."""

    def __post_init__(self) -> None:
        if self.token is None and (self.proxy is not None or not is_loopback(self.host)):
            reachable = "its proxy" if self.proxy else "the network"
            raise BadRequestError(
                f"the web UI at {self.host} would accept commands from any client of {reachable}",
                "Give it a token, or listen at 127.0.0.1 without a proxy.",
            )
        if self.token is not None and len(self.token) < MIN_TOKEN:
            raise BadRequestError(
                f"a token of {len(self.token)} characters is easily guessed",
                f"Take {MIN_TOKEN} or more, or leave it out: then one is made.",
            )
        tokens = {}
        if self.token is not None:
            made = {role: self._keyed_digest(f"token {role.value}")[:32] for role in PendantRole}
            tokens = made | {PendantRole.TEACHER: self.token}
        object.__setattr__(self, "tokens", tokens)

    @property
    def secure(self) -> bool:
        """Whether browsers reach this server by HTTPS alone."""
        return self.tls or (self.proxy is not None and self.proxy.origin.startswith("https:"))

    def cookie(self, role: PendantRole) -> str:
        """The cookie for a browser that has sent the token of a role."""
        return f"{self._cookie_name()}={self._cookie_value(role)}; {self._cookie_kind()}"

    def seat_cookie(self) -> str:
        """A random cookie that identifies this browser."""
        return f"{SEAT_COOKIE}={secrets.token_urlsafe(24)}; {self._cookie_kind()}"

    def check(self, scope: Scope) -> Access:
        """Return the access of a request; raise `ProblemError` if it is rejected."""
        self.check_site(scope)
        role = self.role_by_cookie(scope) or self.role_by_token(bearer_of(scope))
        if role is None:
            raise bad_token()
        return Access(role, seat_of(scope))

    def check_site(self, scope: Scope) -> None:
        """Raise `ProblemError` for the page of another site, or a name made to point here."""
        self.check_host(scope)
        headers = _header_dict(scope)
        self._check_origin(scope, headers, headers.get("host", ""))

    def check_host(self, scope: Scope) -> None:
        """Raise `ProblemError` for a name made to point here."""
        host = _header_dict(scope).get("host", "")
        if not self._is_own_host(host):
            raise ProblemError(
                403,
                "bad-host",
                f"{host!r} is not a name of this server",
                "Open the address that the server printed when it began.",
            )

    def role_by_cookie(self, scope: Scope) -> PendantRole | None:
        """Return the role of a request by its cookie; the highest if no token is required."""
        if self.token is None:
            return PendantRole.TEACHER
        shown = _cookie_dict(scope).get(self._cookie_name(), "")
        return next(
            (role for role in PendantRole if _equal_secrets(shown, self._cookie_value(role))), None
        )

    def role_by_token(self, shown: str) -> PendantRole | None:
        """Return the role whose token this is."""
        found = [role for role, token in self.tokens.items() if _equal_secrets(shown, token)]
        return found[0] if found else None

    def address_of(self, scope: Scope) -> str:
        """Return the client address: the peer, or the one that a trusted proxy has appended."""
        peer = str((scope.get("client") or ("",))[0])
        if self.proxy is not None and self.proxy.speaks_from(peer):
            # The proxy appends the address of its peer; entries before that may be forged.
            named = _header_dict(scope).get("x-forwarded-for", "").rpartition(",")[2].strip()
            try:
                return str(ip_address(named))
            except ValueError:
                return peer
        return peer

    def _keyed_digest(self, what: str) -> str:
        known = f"{what}\0{self.token or ''}".encode()
        return hmac.new(self.key, known, hashlib.sha256).hexdigest()

    def _cookie_name(self) -> str:
        # Browsers share cookies between the ports of a host: the name distinguishes two servers.
        return f"rote_{self._keyed_digest('name')[:8]}"

    def _cookie_value(self, role: PendantRole) -> str:
        return self._keyed_digest(f"cookie {role.value}")

    def _cookie_kind(self) -> str:
        return "Path=/; HttpOnly; SameSite=Strict" + ("; Secure" if self.secure else "")

    def _is_own_host(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        if is_loopback(name) or (self.proxy is not None and host.lower() == self.proxy.host):
            return True
        if is_loopback(self.host):
            return False
        try:
            # IP addresses are no names, so DNS rebinding cannot affect them.
            ip_address(name)
        except ValueError:
            own = socket.gethostname().lower()
            return name in {self.host.lower(), own, f"{own}.local"}
        return True

    def _check_origin(self, scope: Scope, headers: dict[str, str], host: str) -> None:
        origin = headers.get("origin")
        own = {f"{'https' if self.tls else 'http'}://{host}".lower()}
        if self.proxy is not None:
            own.add(self.proxy.origin)
        foreign = origin is not None and origin.lower() not in own
        # A page of another site may link to ours, but may not call the API.
        site = headers.get("sec-fetch-site", "none")
        foreign |= site in {"cross-site", "same-site"} and scope["path"].startswith("/api")
        if foreign:
            raise ProblemError(
                403,
                "bad-origin",
                f"a page of {origin or 'another site'} may not send requests to this server",
                "Open the page at this server's own address.",
            )


def bad_token() -> ProblemError:
    """Return the refusal of a request without a valid token."""
    return ProblemError(
        403,
        "bad-token",
        "the token is missing or wrong",
        "Open the link that the server printed when it began, or scan its code.",
    )


def bearer_of(scope: Scope) -> str:
    """Return the bearer token of a script; empty if there is none."""
    scheme, _, shown = _header_dict(scope).get("authorization", "").partition(" ")
    return shown.strip() if scheme.lower() == "bearer" else ""


def link_token_of(scope: Scope) -> str:
    """Return the token in the request's URL; empty if there is none."""
    return _query_value(scope, "token")


def _query_value(scope: Scope, name: str) -> str:
    query: dict[str, list[str]] = parse_qs(scope.get("query_string", b"").decode("latin-1"))
    return query.get(name, [""])[0]


def seat_of(scope: Scope) -> str | None:
    """Return the cookie that identifies the browser; None if it has none."""
    return _cookie_dict(scope).get(SEAT_COOKIE) or None


def new_token() -> str:
    """Return a new random token."""
    return secrets.token_urlsafe(24)


def load_server_key(path: Path) -> bytes:
    """Return the secret for cookies and links in a file that only its owner may read.

    Creates the file if it is missing. Raises `BadRequestError` if it cannot be read or written.
    """
    try:
        found = path.read_bytes()
    except FileNotFoundError:
        found = b""
    except OSError as error:
        raise BadRequestError(f"{path} cannot be read: {error.strerror}", _KEY_REMEDY) from error
    if len(found) == _KEY_BYTES:
        return found
    made = secrets.token_bytes(_KEY_BYTES)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadRequestError(f"{path} cannot be written: {error.strerror}", _KEY_REMEDY) from error
    with appearing(path, private=True, remedy=_KEY_REMEDY) as file:
        file.write(made)
    return made


class Guard:
    """Checks every request to the application, its page and its WebSocket included."""

    def __init__(self, app: App, gate: Gate, role_inside: RoleInside = lambda _: None) -> None:
        self._app = app
        self._gate = gate
        self._role_inside = role_inside
        self._guesses = Guesses()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        web = scope["type"] == "http"
        answer = self._with_headers(send, scope) if web else send
        try:
            if not web and scope["path"] == VIEW_PATH and self._gate.token is not None:
                # The token is in the URL instead of a cookie, so other pages cannot use it.
                self._gate.check_host(scope)
                role = self._check_token(scope, link_token_of(scope) or bearer_of(scope))
                scope[SCOPE_KEY] = Access(role)
                await self._app(scope, receive, send)
                return
            self._gate.check_site(scope)
            if self._is_link(scope):
                await self._open_link(scope, answer)
                return
            scope[SCOPE_KEY] = Access(self._role_of_request(scope), seat_of(scope))
            most = _most_bytes(scope)
            if web and int(_header_dict(scope).get("content-length") or 0) > most:
                raise _too_large(most)
        except (ProblemError, ValueError) as error:
            await _send_refusal(scope, answer, error)
            return
        await self._app(scope, _limit_body(receive, most) if web else receive, answer)

    def _is_link(self, scope: Scope) -> bool:
        """Whether a request opens a link with a token."""
        opens = scope["type"] == "http" and scope["method"] == "GET" and scope["path"] == "/"
        return opens and self._gate.token is not None and bool(link_token_of(scope))

    async def _open_link(self, scope: Scope, answer: Send) -> None:
        """Set the cookie of the link's role, and open the page.

        A browser that already has a higher role is asked first. Browsers withhold strict cookies
        from a link on another site's page: the link is opened again from here, with cookies.
        """
        token = link_token_of(scope)
        role, now = self._check_token(scope, token), self._gate.role_by_cookie(scope)
        elsewhere = _header_dict(scope).get("sec-fetch-site") in {"cross-site", "same-site"}
        again = f"/?token={quote(token, safe='')}"
        if now is None and elsewhere:
            await _send_page(answer, _redirect_page(again, "Open rote"))
        elif now is not None and now.rank > role.rank and _query_value(scope, "switch") != "yes":
            await _send_page(answer, _role_question_page(now, role, f"{again}&switch=yes"))
        else:
            await _send_page(answer, _redirect_page("/", "Open rote"), self._gate.cookie(role))

    def _role_of_request(self, scope: Scope) -> PendantRole:
        """Return the role of a request; raise `ProblemError` if it has none."""
        role = self._gate.role_by_cookie(scope)
        if role is not None:
            return role
        shown = bearer_of(scope) or link_token_of(scope)
        if not shown:
            raise bad_token()
        # A connected script keeps its access while others behind its address are held off.
        inside = self._role_inside(_header_dict(scope).get("x-rote-client", ""))
        if inside is not None and self._guesses.is_held_off(self._gate.address_of(scope)):
            return inside
        return self._check_token(scope, shown)

    def _check_token(self, scope: Scope, shown: str) -> PendantRole:
        """Return the role of a token; an address with too many wrong tokens has to wait."""
        address = self._gate.address_of(scope)
        self._guesses.check(address)
        role = self._gate.role_by_token(shown)
        if role is None:
            self._guesses.note_wrong(address)
            raise bad_token()
        return role

    def _with_headers(self, send: Send, scope: Scope) -> Send:
        path = scope["path"]
        kept = "public, max-age=31536000, immutable" if path.startswith("/assets/") else "no-cache"
        more = [*HEADERS, ("cache-control", "no-store" if path.startswith("/api") else kept)]
        if path == "/" and seat_of(scope) is None:
            more.append(("set-cookie", self._gate.seat_cookie()))

        async def adding(message: Message) -> None:
            if message["type"] == "http.response.start":
                added = [(name.encode(), value.encode()) for name, value in more]
                message["headers"] = [*message.get("headers", ()), *added]
            await send(message)

        return adding


def _header_dict(scope: Scope) -> dict[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


def _cookie_dict(scope: Scope) -> dict[str, str]:
    try:
        jar = SimpleCookie(_header_dict(scope).get("cookie", ""))
    except CookieError:
        return {}
    return {name: morsel.value for name, morsel in jar.items()}


def _same_address(one: str, other: str) -> bool:
    try:
        return ip_address(one) == ip_address(other)
    except ValueError:
        return False


def _equal_secrets(shown: str, known: str) -> bool:
    return hmac.compare_digest(shown.encode("utf-8", "replace"), known.encode())


def _most_bytes(scope: Scope) -> int:
    return MAX_UPLOAD_BYTES + _FORM_BYTES if scope["path"] in UPLOAD_PATHS else MAX_BODY_BYTES


def _too_large(most: int) -> ProblemError:
    return ProblemError(
        413,
        "too-large",
        f"at most {(most - 1) // 2**20 or most / 2**20:g} MB are read",
        "Trim the take, or send it as .mcap, which is smaller.",
    )


def _limit_body(receive: Receive, most: int) -> Receive:
    """Return a `receive` that fails if the body is too large or arrives too slowly."""
    read, ended = 0, False
    begun_s = asyncio.get_running_loop().time()

    async def counting() -> Message:
        nonlocal read, ended
        due_s = None if ended else begun_s + BODY_S + read / BODY_BYTES_PER_S
        try:
            async with asyncio.timeout_at(due_s):
                message = await receive()
        except TimeoutError:
            # The framework is reading now and passes on only its own errors.
            raise HTTPException(408, "the rest of the request did not arrive in time") from None
        read += len(message.get("body", b""))
        ended = not message.get("more_body", False)
        if read > most:
            raise HTTPException(413, _too_large(most).message)
        return message

    return counting


async def _send_refusal(scope: Scope, send: Send, error: ProblemError | ValueError) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": str(error)})
        return
    if not isinstance(error, ProblemError):
        error = ProblemError(400, "bad-request", "the request's length is not a number")
    more = [("retry-after", str(RETRY_S))] if error.status == 429 else []
    if _has_body(scope):
        more.append(("connection", "close"))  # the rest of the body is not read
    if scope["path"].startswith("/api") or scope["path"] == "/openapi.json":
        document = to_json(error.document())
        await _send_response(send, error.status, "application/json", document, *more)
    else:
        text = f"{error.message}. {error.remedy}\n"
        await _send_response(send, error.status, "text/plain; charset=utf-8", text.encode(), *more)


def _has_body(scope: Scope) -> bool:
    headers = _header_dict(scope)
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"


def _redirect_page(to: str, label: str) -> str:
    """Return a page that opens another one.

    A redirect would not work: browsers withhold strict cookies if another site caused it.
    """
    return (
        f'<meta http-equiv="refresh" content="0; url={escape(to)}">'
        f'<p><a href="{escape(to)}">{label}</a></p>'
    )


def _role_question_page(now: PendantRole, role: PendantRole, switch: str) -> str:
    """Return a page that asks whether the browser should change to a lower role."""
    return (
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<h1>This link is for the role {role.value}</h1>"
        f"<p>This browser has the role {now.value}, which may do more.</p>"
        f'<p><a href="/">Keep the role {now.value}</a></p>'
        f'<p><a href="{escape(switch)}">Change to the role {role.value}</a></p>'
    )


async def _send_page(send: Send, content: str, cookie: str = "") -> None:
    page = (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        f'<link rel="icon" href="data:,"><title>rote</title>{content}</html>'
    )
    more = [("set-cookie", cookie)] if cookie else []
    await _send_response(send, 200, "text/html; charset=utf-8", page.encode(), *more)


async def _send_response(
    send: Send, status: int, kind: str, body: bytes, *more: tuple[str, str]
) -> None:
    pairs = [("content-type", kind), ("content-length", str(len(body))), *more]
    headers = [(name.encode(), value.encode("latin-1")) for name, value in pairs]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
