"""Gzip for large answers that contain no secret.

The length of a compressed answer reveals how similar its parts are. If a secret is next to text
that an attacker chooses, that leaks the secret piece by piece, encrypted or not. So only the
answers named here are compressed: the page's files, and data of takes, edits and robots. Answers
with links or ids of browsers, and messages of the WebSocket, are never compressed.

Another thread compresses, and releases the interpreter lock meanwhile, so that a stop does not wait
for it.
"""

import asyncio
import zlib
from collections import OrderedDict

from rote.web.access.security import App, Message, Receive, Scope, Send

MIN_BYTES = 1000
"""Shorter answers fit into one packet as they are."""
MAX_BYTES = 16 * 2**20
_MAX_CACHED_FILES = 64
_API_LEVEL, _FILE_LEVEL = 5, 9
_MEDIA_TYPES = ("text/", "application/json", "application/javascript", "image/svg+xml")
_API_PATHS = frozenset(
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
    """Whether answers at this path contain no secret, so that they may be compressed."""
    if path in _API_PATHS:
        return True
    if path.startswith("/api/"):
        # A take's curves; its files are sent as they are.
        return path.startswith("/api/takes/") and not path.endswith("/file")
    return True


class Compression:
    """Compresses the answers of an application for browsers that understand gzip."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._cached_files: OrderedDict[tuple[str, bytes], bytes] = OrderedDict()
        """Page files that were compressed already, by path and ETag."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on, and compress its answer if possible."""
        if scope["type"] != "http" or not is_compressible(scope["path"]):
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        accepts_gzip = b"gzip" in headers.get(b"accept-encoding", b"").lower()
        may_compress = accepts_gzip and scope["method"] != "HEAD" and b"range" not in headers
        await self._app(scope, receive, _CompressingSender(self, scope["path"], send, may_compress))

    async def compress_body(self, path: str, etag: bytes, body: bytes) -> bytes:
        """Return a body as gzip; the page's files, which have an ETag, are cached."""
        key = (path, etag)
        compressed = self._cached_files.get(key) if etag else None
        if compressed is None:
            level = _FILE_LEVEL if etag else _API_LEVEL
            loop = asyncio.get_running_loop()
            compressed = await loop.run_in_executor(None, _gzip, body, level)
            if etag:
                self._cached_files[key] = compressed
                while len(self._cached_files) > _MAX_CACHED_FILES:
                    self._cached_files.popitem(last=False)
        return compressed


class _CompressingSender:
    """Forwards the messages of one answer, compressed if it is large enough."""

    def __init__(self, owner: Compression, path: str, send: Send, may_compress: bool) -> None:
        self._owner = owner
        self._path = path
        self._send = send
        self._may_compress = may_compress
        self._start: Message | None = None
        self._body = bytearray()

    async def __call__(self, message: Message) -> None:
        """Forward a message, or collect it until the whole body can be compressed."""
        if message["type"] == "http.response.start":
            headers = dict(message.get("headers", ()))
            if _is_worth_compressing(message["status"], headers):
                vary = (b"vary", b"Accept-Encoding")
                message = {**message, "headers": [*message["headers"], vary]}
                if self._may_compress:
                    self._start = message
                    return
        elif self._start is not None:
            self._body += message.get("body", b"")
            if not message.get("more_body", False):
                await self._send_compressed(self._start)
            return
        await self._send(message)

    async def _send_compressed(self, start: Message) -> None:
        etag = dict(start["headers"]).get(b"etag", b"")
        body = await self._owner.compress_body(self._path, etag, bytes(self._body))
        headers = [pair for pair in start["headers"] if pair[0].lower() != b"content-length"]
        length = str(len(body)).encode()
        headers += [(b"content-encoding", b"gzip"), (b"content-length", length)]
        await self._send({**start, "headers": headers})
        await self._send({"type": "http.response.body", "body": body})


def _is_worth_compressing(status: int, headers: dict[bytes, bytes]) -> bool:
    media_type = headers.get(b"content-type", b"").decode("latin-1")
    length = int(headers.get(b"content-length") or 0)
    return (
        status == 200
        and MIN_BYTES <= length <= MAX_BYTES
        and media_type.startswith(_MEDIA_TYPES)
        and b"content-encoding" not in headers
        and b"set-cookie" not in headers
    )


def _gzip(body: bytes, level: int) -> bytes:
    # Adding 16 selects the format of gzip instead of zlib.
    compressor = zlib.compressobj(level, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    return compressor.compress(body) + compressor.flush()
