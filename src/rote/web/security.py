"""The checks that every request passes before anything else sees it.

- Host: a foreign page whose name points to this server (DNS rebinding) sends its own name here.
- Origin and Sec-Fetch-Site: they reveal a foreign page in the same browser.
- Token: required from clients on the network; given once by a link, then kept in a cookie.
- Size: bodies are counted while they are read, and cut off.
"""

import hashlib
import hmac
import secrets
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address
from typing import Any
from urllib.parse import parse_qs, urlsplit

from starlette.exceptions import HTTPException

from rote.errors import BadRequestError
from rote.web.problems import ProblemError, to_json

MAX_UPLOAD_BYTES = 32 * 2**20
MAX_BODY_BYTES = 256 * 2**10
MIN_TOKEN = 12
UPLOAD_PATH = "/api/takes/upload"
_FORM_BYTES = 64 * 2**10  # what a form adds around its file

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

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


def is_loopback(host: str) -> bool:
    """Whether a server at `host` can be reached from this computer only."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Gate:
    """The conditions that a request must meet."""

    host: str = "127.0.0.1"
    """The address at which the server listens."""
    token: str | None = None
    _cookie: tuple[str, str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.token is None and not is_loopback(self.host):
            raise BadRequestError(
                f"a pendant at {self.host} would obey everybody on the network",
                "Give it a token, or listen at 127.0.0.1.",
            )
        if self.token is not None and len(self.token) < MIN_TOKEN:
            raise BadRequestError(
                f"a token of {len(self.token)} characters is easily guessed",
                f"Take {MIN_TOKEN} or more, or leave it out: then one is made.",
            )
        known = (self.token or "").encode()
        digest = hmac.new(known, b"cookie of the pendant", hashlib.sha256).hexdigest()
        # Browsers share cookies between the ports of a computer; the name distinguishes two
        # servers.
        object.__setattr__(self, "_cookie", (f"rote_{digest[:8]}", digest[8:]))

    @property
    def cookie(self) -> str:
        """The cookie for a browser that has shown the token."""
        name, value = self._cookie
        return f"{name}={value}; Path=/; HttpOnly; SameSite=Strict"

    def check(self, scope: Scope) -> None:
        """Raise `ProblemError` if a request is not allowed."""
        headers = _headers(scope)
        host = headers.get("host", "")
        if not self._knows(host):
            raise ProblemError(
                403,
                "bad-host",
                f"{host!r} is not a name of this server",
                "Open the address that `rote web` has printed.",
            )
        self._check_origin(scope, headers, host)
        if self.token is not None and not self._trusts(headers):
            raise ProblemError(
                403,
                "bad-token",
                "the token is missing or wrong",
                "Open the link that `rote web` has printed, or scan its code.",
            )

    def shows_token(self, scope: Scope) -> bool:
        """Whether the request's URL contains the token."""
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
        return self.token is not None and _same(query.get("token", [""])[0], self.token)

    def _knows(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        if is_loopback(name):
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
        foreign = origin is not None and origin.lower() != f"http://{host}".lower()
        # A foreign page may link to ours, but may not read or request anything.
        site = headers.get("sec-fetch-site", "none")
        foreign |= site in {"cross-site", "same-site"} and scope["path"].startswith("/api")
        if foreign:
            raise ProblemError(
                403,
                "bad-origin",
                f"a page of {origin or 'another site'} may not ask this server",
                "Open the pendant's own page.",
            )

    def _trusts(self, headers: dict[str, str]) -> bool:
        assert self.token is not None
        scheme, _, shown = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and _same(shown, self.token):
            return True
        name, value = self._cookie
        try:
            jar = SimpleCookie(headers.get("cookie", ""))
        except CookieError:
            return False
        return name in jar and _same(jar[name].value, value)


def new_token() -> str:
    """Return a token that nobody can guess."""
    return secrets.token_urlsafe(24)


class Guard:
    """Checks every request to the application, its page and its WebSocket included."""

    def __init__(self, app: App, gate: Gate) -> None:
        self._app = app
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        web = scope["type"] == "http"
        answer = _with_headers(send, scope["path"]) if web else send
        try:
            if web and self._gate.shows_token(scope):
                await _welcome(scope, answer, self._gate.cookie)
                return
            self._gate.check(scope)
            most = _most_bytes(scope)
            if web and int(_headers(scope).get("content-length") or 0) > most:
                raise _too_large(most)
        except (ProblemError, ValueError) as error:
            await _refuse(scope, answer, error)
            return
        await self._app(scope, _counted(receive, most) if web else receive, answer)


def _headers(scope: Scope) -> dict[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


def _same(shown: str, known: str) -> bool:
    return hmac.compare_digest(shown.encode("utf-8", "replace"), known.encode())


def _most_bytes(scope: Scope) -> int:
    return MAX_UPLOAD_BYTES + _FORM_BYTES if scope["path"] == UPLOAD_PATH else MAX_BODY_BYTES


def _too_large(most: int) -> ProblemError:
    return ProblemError(
        413,
        "too-large",
        f"at most {(most - 1) // 2**20 or most / 2**20:g} MB are read",
        "Trim the take, or send it as .mcap, which is smaller.",
    )


def _counted(receive: Receive, most: int) -> Receive:
    """Read until the body is too large."""
    read = 0

    async def counting() -> Message:
        nonlocal read
        message = await receive()
        read += len(message.get("body", b""))
        if read > most:
            # At this point the framework reads the body, and it passes on only its own errors.
            raise HTTPException(413, _too_large(most).message)
        return message

    return counting


def _with_headers(send: Send, path: str) -> Send:
    kept = "public, max-age=31536000, immutable" if path.startswith("/assets/") else "no-cache"
    cached = ("cache-control", "no-store" if path.startswith("/api") else kept)

    async def adding(message: Message) -> None:
        if message["type"] == "http.response.start":
            added = [(name.encode(), value.encode()) for name, value in (*HEADERS, cached)]
            message["headers"] = [*message.get("headers", ()), *added]
        await send(message)

    return adding


async def _refuse(scope: Scope, send: Send, error: ProblemError | ValueError) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": str(error)})
        return
    if not isinstance(error, ProblemError):
        error = ProblemError(400, "bad-request", "the request's length is not a number")
    if scope["path"].startswith("/api") or scope["path"] == "/openapi.json":
        await _respond(send, error.status, "application/json", to_json(error.document()))
    else:
        text = f"{error.message}. {error.remedy}\n"
        await _respond(send, error.status, "text/plain; charset=utf-8", text.encode())


async def _welcome(scope: Scope, send: Send, cookie: str) -> None:
    """Set the token as a cookie, and open the page from here.

    A redirect would not work: browsers withhold strict cookies if another site caused it.
    """
    page = (
        b'<!doctype html><html lang="en"><meta charset="utf-8">'
        b'<meta http-equiv="refresh" content="0; url=/"><title>rote</title>'
        b'<p><a href="/">Open the pendant</a></p></html>'
    )
    body = page if scope["method"] == "GET" else b""
    await _respond(send, 200, "text/html; charset=utf-8", body, ("set-cookie", cookie))


async def _respond(send: Send, status: int, kind: str, body: bytes, *more: tuple[str, str]) -> None:
    pairs = [("content-type", kind), ("content-length", str(len(body))), *more]
    headers = [(name.encode(), value.encode("latin-1")) for name, value in pairs]
    if status == 413:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
