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
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from dataclasses import dataclass, field
from html import escape
from http.cookies import CookieError, SimpleCookie
from ipaddress import IPv6Address, ip_address, ip_network
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from starlette.exceptions import HTTPException

from rote.errors import BadRequestError
from rote.platform.atomic_file import appearing
from rote.web.access.roles import SCOPE_KEY, Access, PendantRole
from rote.web.server.problems import ProblemError, to_json

# ---- guesses -------------------------------------------------------------------------------------

MAX_WRONG = 10
"""Maximum number of wrong tokens of one address in `WINDOW_S`."""
WINDOW_S = 60.0
RETRY_S = 30
"""Time for which all tokens of an address with too many wrong ones are refused, even right ones."""
_MAX_ADDRESSES = 4096


@dataclass(slots=True)
class _WrongTokens:
    """The wrong tokens of one client since a time."""

    count: int
    since_s: float
    blocked_until_s: float = 0.0


class Guesses:
    """Counts the wrong tokens of each address, and blocks an address that sends too many."""

    def __init__(self) -> None:
        self._records: OrderedDict[str, _WrongTokens] = OrderedDict()
        """By network, the one whose last wrong token is the oldest first."""

    def is_blocked(self, address: str) -> bool:
        """Whether tokens of this address are refused now."""
        record = self._records.get(_find_network(address))
        return record is not None and asyncio.get_running_loop().time() < record.blocked_until_s

    def check(self, address: str) -> None:
        """Raise `ProblemError` if this address has to wait."""
        if self.is_blocked(address):
            raise ProblemError(
                429,
                "too-many-guesses",
                "too many wrong tokens came from this address",
                f"Wait {RETRY_S} s, then open the link that the server printed when it started. "
                "Pages that are already open keep working.",
            )

    def note_wrong(self, address: str) -> None:
        """Count a wrong token; block the address for `RETRY_S` after `MAX_WRONG` of them."""
        now_s, network = asyncio.get_running_loop().time(), _find_network(address)
        record = self._records.pop(network, None)
        if record is None or now_s - record.since_s > WINDOW_S:
            record = _WrongTokens(0, now_s)
        record.count += 1
        if record.count >= MAX_WRONG:
            record = _WrongTokens(0, now_s, blocked_until_s=now_s + RETRY_S)
        self._records[network] = record
        while len(self._records) > _MAX_ADDRESSES:
            self._records.popitem(last=False)


def _find_network(address: str) -> str:
    """Return the network that counts as one client: an IPv4 address, or an IPv6 /64 network."""
    try:
        ip = ip_address(address.partition("%")[0])  # "%" begins the zone of a link-local address
    except ValueError:
        return address
    if isinstance(ip, IPv6Address):
        if ip.ipv4_mapped is not None:
            return str(ip.ipv4_mapped)
        return ip.exploded[:19]  # the first four of eight groups of digits, with their colons
    return str(ip)


# ---- requests ------------------------------------------------------------------------------------


MAX_UPLOAD_BYTES = 32 * 2**20
MAX_BODY_BYTES = 256 * 2**10
MIN_TOKEN = 12
UPLOAD_PATHS = frozenset({"/api/takes/upload", "/api/shows/sounds/upload"})
WATCHER_PATHS = frozenset(
    f"/api/{path}"
    for path in (
        "stop",  # every role may stop
        "people/me",  # one's own name
        "agent/propose",  # a person approves a proposal before it begins
        "agent/begin",
        "shows/check",
        "shows/curves",
        "edit",
        "edit/curves",
        "edit/check",
        "edit/keyframes",
        "learn",
        "learn/adapt",
    )
)
"""Paths that the watch role may send POST requests to; most of them compute what is shown."""
_READING_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
VIEW_PATH = "/api/foxglove"
"""The live view. Foxglove sends no cookies: if a token is required, it is in the URL."""
SEAT_COOKIE = "rote_seat"
BODY_S = 10.0
"""Time limit for receiving a body, plus a second for each `BODY_BYTES_PER_S` received."""
BODY_BYTES_PER_S = 32 * 2**10
_KEY_BYTES = 32
_KEY_REMEDY = "Make that folder writable, or choose another with ROTE_HOME."
_FORM_BYTES = 64 * 2**10  # what a multipart form adds to its file

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

_POLICY = b"content-security-policy"
"""A document that brings its own policy keeps it alone."""

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
FindClientRole = Callable[[str], PendantRole | None]
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
    """Whether an IP address belongs to this computer or to a private network."""
    try:
        ip = ip_address(address.partition("%")[0])  # "%" begins the zone of a link-local address
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
    addresses = {str(socket_address[0]) for *_, socket_address in found}
    if any(not is_private(address) for address in addresses.difference(configured)):
        raise BadRequestError(
            f"{host!r} is not an address of a private network",
            "Use an address of this computer or of the robot's own network; other addresses must "
            "be given when this server is started.",
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
            origin = f"{parts.scheme}://{parts.netloc}"
            has_host = parts.scheme in {"http", "https"} and bool(parts.hostname)
        except ValueError:
            has_host, origin = False, ""
        has_more = self.origin.rstrip("/") != origin or "@" in origin  # a path, query or user name
        if not has_host or has_more:
            raise BadRequestError(
                f"{self.origin!r} is not the origin of a proxy",
                "Use only scheme and name, like https://robot.example.org.",
            )
        object.__setattr__(self, "origin", origin.lower())

    @property
    def host(self) -> str:
        """The host name in the origin, with the port if the origin has one."""
        return urlsplit(self.origin).netloc

    def is_peer(self, peer: str) -> bool:
        """Whether a connection from the address `peer` comes from the proxy."""
        return is_loopback(peer) if self.address is None else _is_same_address(peer, self.address)


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
                "Set a token, or listen at 127.0.0.1 without a proxy.",
            )
        if self.token is not None and len(self.token) < MIN_TOKEN:
            raise BadRequestError(
                f"a token of {len(self.token)} characters is easily guessed",
                f"Use {MIN_TOKEN} characters or more, or omit it: then rote generates one.",
            )
        tokens = {}
        if self.token is not None:
            derived = {role: self._keyed_digest(f"token {role.value}")[:32] for role in PendantRole}
            tokens = derived | {PendantRole.TEACHER: self.token}
        object.__setattr__(self, "tokens", tokens)

    @property
    def secure(self) -> bool:
        """Whether browsers connect to this server by HTTPS only."""
        return self.tls or (self.proxy is not None and self.proxy.origin.startswith("https:"))

    def make_cookie(self, role: PendantRole) -> str:
        """Return the Set-Cookie header for a browser that has sent the token of a role."""
        pair = f"{self._make_cookie_name()}={self._make_cookie_value(role)}"
        return f"{pair}; {self._format_cookie_attributes()}"

    def make_seat_cookie(self) -> str:
        """Return a Set-Cookie header with a new random value that identifies a browser."""
        return f"{SEAT_COOKIE}={secrets.token_urlsafe(24)}; {self._format_cookie_attributes()}"

    def check(self, scope: Scope) -> Access:
        """Return the access of a request; raise `ProblemError` if it is rejected."""
        self.check_site(scope)
        role = self.role_by_cookie(scope) or self.role_by_token(bearer_of(scope))
        if role is None:
            raise _bad_token_error()
        return Access(role, seat_of(scope))

    def check_site(self, scope: Scope) -> None:
        """Raise `ProblemError` for a request of another site's page, or to a foreign host name."""
        self.check_host(scope)
        self._check_origin(scope, _parse_headers(scope))

    def check_host(self, scope: Scope) -> None:
        """Raise `ProblemError` if the Host header is not a name of this server."""
        host = _parse_headers(scope).get("host", "")
        if not self._is_own_host(host):
            raise ProblemError(
                403,
                "bad-host",
                f"{host!r} is not a name of this server",
                "Open the address that the server printed when it started.",
            )

    def role_by_cookie(self, scope: Scope) -> PendantRole | None:
        """Return the role of a request by its cookie; None if the cookie is missing or wrong.

        If no token is required, every request has the highest role.
        """
        if self.token is None:
            return PendantRole.TEACHER
        presented = _parse_cookies(scope).get(self._make_cookie_name(), "")
        return next(
            (
                role
                for role in PendantRole
                if _is_same_secret(presented, self._make_cookie_value(role))
            ),
            None,
        )

    def role_by_token(self, presented: str) -> PendantRole | None:
        """Return the role whose token was presented; None if it is not the token of a role."""
        for role, token in self.tokens.items():
            if _is_same_secret(presented, token):
                return role
        return None

    def address_of(self, scope: Scope) -> str:
        """Return the client address: the peer, or the one that a trusted proxy has appended."""
        peer = str((scope.get("client") or ("",))[0])
        if self.proxy is not None and self.proxy.is_peer(peer):
            # The proxy appends the address of its peer; entries before that may be forged.
            forwarded = _parse_headers(scope).get("x-forwarded-for", "").rpartition(",")[2].strip()
            try:
                return str(ip_address(forwarded))
            except ValueError:
                return peer
        return peer

    def _keyed_digest(self, purpose: str) -> str:
        """Return an HMAC of the purpose and the teacher's token, as hexadecimal digits."""
        message = f"{purpose}\0{self.token or ''}".encode()
        return hmac.new(self.key, message, hashlib.sha256).hexdigest()

    def _make_cookie_name(self) -> str:
        # Browsers share cookies between the ports of a host: the name distinguishes two servers.
        return f"rote_{self._keyed_digest('name')[:8]}"

    def _make_cookie_value(self, role: PendantRole) -> str:
        return self._keyed_digest(f"cookie {role.value}")

    def _format_cookie_attributes(self) -> str:
        return "Path=/; HttpOnly; SameSite=Strict" + ("; Secure" if self.secure else "")

    def _is_own_host(self, host: str) -> bool:
        """Whether a Host header, a name or address with an optional port, is of this server."""
        try:
            name = urlsplit(f"//{host}").hostname or ""  # without the port
        except ValueError:
            return False
        if is_loopback(name) or (self.proxy is not None and host.lower() == self.proxy.host):
            return True
        if is_loopback(self.host):
            return False
        try:
            ip_address(name)
        except ValueError:
            hostname = socket.gethostname().lower()
            return name in {self.host.lower(), hostname, f"{hostname}.local"}
        return True  # an IP address is safe: DNS rebinding needs a name

    def _check_origin(self, scope: Scope, headers: dict[str, str]) -> None:
        """Raise `ProblemError` if a page of another origin has sent the request."""
        origin = headers.get("origin")
        own_origins = {f"{'https' if self.tls else 'http'}://{headers.get('host', '')}".lower()}
        if self.proxy is not None:
            own_origins.add(self.proxy.origin)
        has_foreign_origin = origin is not None and origin.lower() not in own_origins
        # A page of another site may link to ours, but may not call the API.
        calls_api = scope["path"].startswith("/api")
        if has_foreign_origin or (calls_api and _is_from_other_site(headers)):
            raise ProblemError(
                403,
                "bad-origin",
                f"a page of {origin or 'another site'} may not send requests to this server",
                "Open the page at this server's own address.",
            )


def _bad_token_error() -> ProblemError:
    return ProblemError(
        403,
        "bad-token",
        "the token is missing or wrong",
        "Open the link that the server printed when it started, or scan its code.",
    )


def bearer_of(scope: Scope) -> str:
    """Return the bearer token of a script; empty if there is none."""
    scheme, _, presented = _parse_headers(scope).get("authorization", "").partition(" ")
    return presented.strip() if scheme.lower() == "bearer" else ""


def link_token_of(scope: Scope) -> str:
    """Return the token in the request's URL; empty if there is none."""
    return _read_query_value(scope, "token")


def _read_query_value(scope: Scope, name: str) -> str:
    query: dict[str, list[str]] = parse_qs(scope.get("query_string", b"").decode("latin-1"))
    return query.get(name, [""])[0]


def seat_of(scope: Scope) -> str | None:
    """Return the value of the cookie that identifies the browser; None if it has none."""
    return _parse_cookies(scope).get(SEAT_COOKIE) or None


def new_token() -> str:
    """Return a new random token."""
    return secrets.token_urlsafe(24)


def load_server_key(path: Path) -> bytes:
    """Return the secret for cookies and links in a file that only its owner may read.

    Creates the file if it is missing or damaged. Raises `BadRequestError` if it cannot be read or
    written.
    """
    try:
        key = path.read_bytes()
    except FileNotFoundError:
        key = b""
    except OSError as error:
        raise BadRequestError(f"{path} cannot be read: {error.strerror}", _KEY_REMEDY) from error
    if len(key) == _KEY_BYTES:
        return key
    new_key = secrets.token_bytes(_KEY_BYTES)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadRequestError(f"{path} cannot be written: {error.strerror}", _KEY_REMEDY) from error
    with appearing(path, private=True, remedy=_KEY_REMEDY) as file:
        file.write(new_key)
    return new_key


class Guard:
    """Checks every request to the application, its page and its WebSocket included."""

    def __init__(
        self, app: App, gate: Gate, find_client_role: FindClientRole = lambda _: None
    ) -> None:
        self._app = app
        self._gate = gate
        self._find_client_role = find_client_role
        self._guesses = Guesses()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        is_http = scope["type"] == "http"
        answer = self._add_headers(send, scope) if is_http else send
        try:
            if not is_http and scope["path"] == VIEW_PATH and self._gate.token is not None:
                # The token must be in the URL or a header. Pages of other sites do not know it, so
                # the origin is not checked.
                self._gate.check_host(scope)
                role = self._check_token(scope, link_token_of(scope) or bearer_of(scope))
                scope[SCOPE_KEY] = Access(role)
                await self._app(scope, receive, send)
                return
            self._gate.check_site(scope)
            if self._is_link(scope):
                await self._open_link(scope, answer)
                return
            access = scope[SCOPE_KEY] = Access(self._find_role(scope), seat_of(scope))
            if is_http and _may_change_state(scope):
                access.require_role(PendantRole.COMMAND)
            if is_http:
                receive = _limit_body(receive, _check_body_length(scope))
        except (ProblemError, ValueError) as error:
            await _send_refusal(scope, answer, error)
            return
        await self._app(scope, receive, answer)

    def _is_link(self, scope: Scope) -> bool:
        """Whether a request opens a link with a token."""
        opens_page = scope["type"] == "http" and scope["method"] == "GET" and scope["path"] == "/"
        return opens_page and self._gate.token is not None and bool(link_token_of(scope))

    async def _open_link(self, scope: Scope, answer: Send) -> None:
        """Set the cookie of the link's role, and open the page.

        A browser that already has a higher role first asks the user. If the link is on another
        site's page, browsers withhold strict cookies, so the current role is not known: then a page
        of this server opens the link again.
        """
        token = link_token_of(scope)
        role = self._check_token(scope, token)
        current_role = self._gate.role_by_cookie(scope)
        link = f"/?token={quote(token, safe='')}"
        is_confirmed = _read_query_value(scope, "switch") == "yes"
        if current_role is None and _is_from_other_site(_parse_headers(scope)):
            await _send_page(answer, _make_redirect(link, "Open rote"))
        elif current_role is not None and current_role.rank > role.rank and not is_confirmed:
            question = _make_role_question(current_role, role, f"{link}&switch=yes")
            await _send_page(answer, question)
        else:
            cookie = self._gate.make_cookie(role)
            await _send_page(answer, _make_redirect("/", "Open rote"), cookie)

    def _find_role(self, scope: Scope) -> PendantRole:
        """Return the role of a request by its cookie or token; raise `ProblemError` without one."""
        role = self._gate.role_by_cookie(scope)
        if role is not None:
            return role
        presented = bearer_of(scope) or link_token_of(scope)
        if not presented:
            raise _bad_token_error()
        # A connected script keeps its access while other clients at its address are blocked.
        client_role = self._find_client_role(_parse_headers(scope).get("x-rote-client", ""))
        if client_role is not None and self._guesses.is_blocked(self._gate.address_of(scope)):
            return client_role
        return self._check_token(scope, presented)

    def _check_token(self, scope: Scope, presented: str) -> PendantRole:
        """Return the role of a token; an address with too many wrong tokens has to wait."""
        address = self._gate.address_of(scope)
        self._guesses.check(address)
        role = self._gate.role_by_token(presented)
        if role is None:
            self._guesses.note_wrong(address)
            raise _bad_token_error()
        return role

    def _add_headers(self, send: Send, scope: Scope) -> Send:
        """Return a `send` that adds security, caching and cookie headers to the response."""
        path = scope["path"]
        page_caching = (
            "public, max-age=31536000, immutable" if path.startswith("/assets/") else "no-cache"
        )
        headers = [
            *HEADERS,
            ("cache-control", "no-store" if path.startswith("/api") else page_caching),
        ]
        if path == "/" and seat_of(scope) is None:
            headers.append(("set-cookie", self._gate.make_seat_cookie()))

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = list(message.get("headers", ()))
                own_policy = any(name.lower() == _POLICY for name, _ in own)
                added = [(name.encode(), value.encode()) for name, value in headers]
                message["headers"] = own + [
                    each for each in added if not (own_policy and each[0] == _POLICY)
                ]
            await send(message)

        return send_with_headers


def _parse_headers(scope: Scope) -> dict[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


def _parse_cookies(scope: Scope) -> dict[str, str]:
    try:
        jar = SimpleCookie(_parse_headers(scope).get("cookie", ""))
    except CookieError:
        return {}
    return {name: morsel.value for name, morsel in jar.items()}


def _is_from_other_site(headers: dict[str, str]) -> bool:
    """Whether the browser reports that a page of another site has caused the request."""
    # "same-site" is another host name of the same domain, or another port.
    return headers.get("sec-fetch-site") in {"cross-site", "same-site"}


def _is_same_address(one: str, other: str) -> bool:
    try:
        return ip_address(one) == ip_address(other)
    except ValueError:
        return False


def _is_same_secret(presented: str, known: str) -> bool:
    return hmac.compare_digest(presented.encode("utf-8", "replace"), known.encode())


def _check_body_length(scope: Scope) -> int:
    """Return the maximum body size in bytes; raise `ProblemError` for a longer Content-Length."""
    is_upload = scope["path"] in UPLOAD_PATHS
    limit = MAX_UPLOAD_BYTES + _FORM_BYTES if is_upload else MAX_BODY_BYTES
    if int(_parse_headers(scope).get("content-length") or 0) > limit:
        raise _too_large_error(limit)
    return limit


def _may_change_state(scope: Scope) -> bool:
    """Whether a request may change something, and so needs a role above watching."""
    return scope["method"] not in _READING_METHODS and scope["path"] not in WATCHER_PATHS


def _too_large_error(limit: int) -> ProblemError:
    # Whole megabytes: the limit of an upload includes what the form adds to the file.
    limit_mb = limit // 2**20 or limit / 2**20
    return ProblemError(
        413,
        "too-large",
        f"the maximum size is {limit_mb:g} MB",
        "Trim the take, or send it as .mcap, which is smaller.",
    )


def _limit_body(receive: Receive, limit: int) -> Receive:
    """Return a `receive` that fails if the body exceeds `limit` bytes or arrives too slowly."""
    received, ended = 0, False
    begun_s = asyncio.get_running_loop().time()

    async def receive_limited() -> Message:
        nonlocal received, ended
        deadline_s = None if ended else begun_s + BODY_S + received / BODY_BYTES_PER_S
        try:
            async with asyncio.timeout_at(deadline_s):
                message = await receive()
        except TimeoutError:
            # The framework is reading now and passes on only its own errors.
            raise HTTPException(408, "the rest of the request did not arrive in time") from None
        received += len(message.get("body", b""))
        ended = not message.get("more_body", False)
        if received > limit:
            raise HTTPException(413, _too_large_error(limit).message)
        return message

    return receive_limited


async def _send_refusal(scope: Scope, send: Send, error: ProblemError | ValueError) -> None:
    """Answer a refused request: JSON from the API, otherwise text; a WebSocket is closed."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": str(error)})
        return
    if not isinstance(error, ProblemError):
        error = ProblemError(400, "bad-request", "the request's length is not a number")
    headers = [("retry-after", str(RETRY_S))] if error.status == 429 else []
    if _has_body(scope):
        headers.append(("connection", "close"))  # the rest of the body is not read
    is_page = scope["method"] in _READING_METHODS and not scope["path"].startswith("/api")
    if not is_page or scope["path"] == "/openapi.json":
        document = to_json(error.document())
        await _send_response(send, error.status, "application/json", document, *headers)
    else:
        text = f"{error.message}. {error.remedy}\n"
        await _send_response(
            send, error.status, "text/plain; charset=utf-8", text.encode(), *headers
        )


def _has_body(scope: Scope) -> bool:
    headers = _parse_headers(scope)
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"


def _make_redirect(to: str, label: str) -> str:
    """Return a page that opens another one.

    A redirect would not work: browsers withhold strict cookies if another site caused it.
    """
    return (
        f'<meta http-equiv="refresh" content="0; url={escape(to)}">'
        f'<p><a href="{escape(to)}">{label}</a></p>'
    )


def _make_role_question(current: PendantRole, role: PendantRole, switch_link: str) -> str:
    """Return a page that asks whether the browser should change to a lower role."""
    return (
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<h1>This link is for the role {role.value}</h1>"
        f"<p>This browser has the role {current.value}, which may do more.</p>"
        f'<p><a href="/">Keep the role {current.value}</a></p>'
        f'<p><a href="{escape(switch_link)}">Change to the role {role.value}</a></p>'
    )


async def _send_page(send: Send, content: str, cookie: str = "") -> None:
    page = (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        f'<link rel="icon" href="data:,"><title>rote</title>{content}</html>'
    )
    headers = [("set-cookie", cookie)] if cookie else []
    await _send_response(send, 200, "text/html; charset=utf-8", page.encode(), *headers)


async def _send_response(
    send: Send, status: int, kind: str, body: bytes, *more_headers: tuple[str, str]
) -> None:
    pairs = [("content-type", kind), ("content-length", str(len(body))), *more_headers]
    headers = [(name.encode(), value.encode("latin-1")) for name, value in pairs]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
