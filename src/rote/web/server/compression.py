"""Gzip for what is large and holds no secret.

The length of a compressed answer reveals how similar its parts are. If a secret is next to text
that an attacker chooses, that leaks the secret piece by piece, encrypted or not. So only the
answers named here are compressed: the page's files, and data of takes, edits and robots.
Links with their tokens, the ids of browsers and the WebSocket never are.

Another thread does the work, and the compressor releases the interpreter lock: a stop does not wait
for it.
"""

import asyncio
import zlib
from collections import OrderedDict

from rote.web.access.security import App, Message, Receive, Scope, Send

MIN_BYTES = 1000
"""Shorter answers fit into one packet as they are."""
MAX_BYTES = 16 * 2**20
_KEPT_FILES = 64
_LEVEL, _FILE_LEVEL = 5, 9
_KINDS = ("text/", "application/json", "application/javascript", "image/svg+xml")
_DOCUMENTS = frozenset(
    {
        "/api/edit",
        "/api/edits",
        "/api/formats",
        "/api/robots",
        "/api/robot/joints",
        "/api/takes",
        "/api/takes/trash",
        "/openapi.json",
    }
)


def is_compressible(path: str) -> bool:
    """Whether an answer at this path holds no secret, and may be compressed."""
    if path in _DOCUMENTS:
        return True
    if path.startswith("/api/"):
        # A take's curves; its files are sent as they are.
        return path.startswith("/api/takes/") and not path.endswith("/file")
    return True


class Compression:
    """Compresses the answers of an application for browsers that understand gzip."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._kept: OrderedDict[tuple[str, bytes], bytes] = OrderedDict()
        """Page files that were compressed already, by path and ETag."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on, and compress its answer where that is possible."""
        if scope["type"] != "http" or not is_compressible(scope["path"]):
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        understood = b"gzip" in headers.get(b"accept-encoding", b"").lower()
        wanted = understood and scope["method"] != "HEAD" and b"range" not in headers
        await self._app(scope, receive, _Squeeze(self, scope["path"], send, wanted))

    async def squeezed(self, path: str, tag: bytes, body: bytes) -> bytes:
        """Return a body as gzip; that of a file of the page is kept."""
        key = (path, tag)
        kept = self._kept.get(key) if tag else None
        if kept is None:
            level = _FILE_LEVEL if tag else _LEVEL
            loop = asyncio.get_running_loop()
            kept = await loop.run_in_executor(None, _gzip, body, level)
            if tag:
                self._kept[key] = kept
                while len(self._kept) > _KEPT_FILES:
                    self._kept.popitem(last=False)
        return kept


class _Squeeze:
    """Takes the messages of one answer, and sends them on, compressed where it is worth it."""

    def __init__(self, owner: Compression, path: str, send: Send, wanted: bool) -> None:
        self._owner = owner
        self._path = path
        self._send = send
        self._wanted = wanted
        self._start: Message | None = None
        self._body = bytearray()

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = dict(message.get("headers", ()))
            if _is_large(message["status"], headers):
                more = [*message["headers"], (b"vary", b"Accept-Encoding")]
                message = {**message, "headers": more}
                if self._wanted:
                    self._start = message
                    return
        elif self._start is not None:
            self._body += message.get("body", b"")
            if not message.get("more_body", False):
                await self._finish(self._start)
            return
        await self._send(message)

    async def _finish(self, start: Message) -> None:
        tag = dict(start["headers"]).get(b"etag", b"")
        body = await self._owner.squeezed(self._path, tag, bytes(self._body))
        kept = [pair for pair in start["headers"] if pair[0].lower() != b"content-length"]
        length = str(len(body)).encode()
        more = [*kept, (b"content-encoding", b"gzip"), (b"content-length", length)]
        await self._send({**start, "headers": more})
        await self._send({"type": "http.response.body", "body": body})


def _is_large(status: int, headers: dict[bytes, bytes]) -> bool:
    kind = headers.get(b"content-type", b"").decode("latin-1")
    length = int(headers.get(b"content-length") or 0)
    return (
        status == 200
        and MIN_BYTES <= length <= MAX_BYTES
        and kind.startswith(_KINDS)
        and b"content-encoding" not in headers
        and b"set-cookie" not in headers
    )


def _gzip(body: bytes, level: int) -> bytes:
    squeezer = zlib.compressobj(level, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    return squeezer.compress(body) + squeezer.flush()
