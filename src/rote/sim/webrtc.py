"""The simulated robot on WebRTC: all kinds of signalling, and one client at a time."""

import asyncio
import secrets
from enum import Enum
from functools import lru_cache

from rote.errors import BadRequestError, RoteError
from rote.sim.rpc_server import RpcClientSession
from rote.sim.services import Services
from rote.transport.impair import Disturber
from rote.transport.webrtc.http import HttpRequest, HttpResponse, Server
from rote.transport.webrtc.stack import RobotEnd
from rote.wire.webrtc import sdp as wire_sdp
from rote.wire.webrtc import signalling as wire
from rote.wire.webrtc.channel import SIMULATED

_MAX_NOTICES = 16
"""Maximum number of unused notice paths; the oldest are dropped."""


@lru_cache(1)
def _get_robot_key() -> wire.RobotKey:
    """Return the key pair of all robots in this process; they share it to save 0.1 s each."""
    return wire.RobotKey.generate()


class Signalling(Enum):
    """How offer and answer are exchanged; it depends on the firmware."""

    LEGACY = "legacy"
    UNMARKED = "none"
    PLAIN = "1"
    STATIC_KEY = "2"
    DEVICE_KEY = "3"

    @classmethod
    def of(cls, text: str) -> "Signalling":
        """Return the signalling called `text`; raise `BadRequestError` if it is unknown."""
        try:
            return cls(text)
        except ValueError:
            known = ", ".join(signalling.value for signalling in cls)
            raise BadRequestError(f"unknown signalling {text!r}", f"Use: {known}.") from None

    @property
    def port(self) -> int:
        """The robot's HTTP port for this kind of signalling."""
        return wire.LEGACY_PORT if self is Signalling.LEGACY else wire.PORT


class WebRtcDoor:
    """Serves the robot's services to one client at a time."""

    def __init__(
        self,
        services: Services,
        signalling: Signalling,
        *,
        key: bytes | None = None,
        strict: bool = False,
        disturber: Disturber | None = None,
    ) -> None:
        self.services = services
        self.signalling = signalling
        self._key = key or secrets.token_bytes(16)
        self._strict = strict
        self.disturber = disturber
        self._robot_key = _get_robot_key()
        self._notices: dict[str, wire.ConnectNotice] = {}
        self._server = Server(self._handle_http)
        self._client: RobotEnd | None = None
        self._serving: asyncio.Task[None] | None = None

    @property
    def key(self) -> str:
        """The robot's own key in hex, which a client needs if signalling is 3."""
        return self._key.hex()

    @property
    def needs_key(self) -> bool:
        """Whether a client must know the robot's own key."""
        return self.signalling is Signalling.DEVICE_KEY

    @property
    def clients(self) -> int:
        """Number of connected clients: 0 or 1."""
        return int(self._client is not None)

    async def open(self, host: str, port: int | None = None) -> None:
        """Listen on a port; None means the usual one, which is the only one for many clients."""
        await self._server.open(host, self.signalling.port if port is None else port)

    @property
    def address(self) -> tuple[str, int]:
        """The host and port on which the server listens."""
        return self._server.address

    @property
    def host(self) -> str:
        """The host on which the server listens."""
        return self.address[0]

    @property
    def url(self) -> str:
        """The URL for clients."""
        host, port = self.address
        url = f"webrtc://[{host}]" if ":" in host else f"webrtc://{host}"
        return url if port == self.signalling.port else f"{url}:{port}"

    async def close(self) -> None:
        """Close the port and the connection to the client. Safe to call twice."""
        await self._server.close()
        if self._serving is not None:
            self._serving.cancel()
            await asyncio.gather(self._serving, return_exceptions=True)

    # ---- signalling -----------------------------------------------------------------------------

    async def _handle_http(self, request: HttpRequest) -> HttpResponse:
        if request.method not in {"POST", "GET"}:
            return HttpResponse(405)
        try:
            if self.signalling is Signalling.LEGACY:
                return await self._answer_legacy(request)
            return await self._answer_new(request)
        except RoteError as error:
            return HttpResponse(400, f"{error}\n".encode())

    async def _answer_legacy(self, request: HttpRequest) -> HttpResponse:
        if request.path != wire.LEGACY_PATH:
            return HttpResponse(404)
        offer = wire_sdp.decode_offer(request.body)
        return HttpResponse(
            200, wire_sdp.encode_answer(await self._admit_client(offer)), "application/json"
        )

    async def _answer_new(self, request: HttpRequest) -> HttpResponse:
        """Answer a request of the newer signalling, which takes two.

        The first gets a notice with the robot's key and a path for one use. The second sends an
        encrypted offer to that path and gets an encrypted answer.
        """
        if request.path == wire.NOTICE_PATH:
            return HttpResponse(200, self._seal_notice())
        if self._notices.pop(request.path, None) is None:
            return HttpResponse(404)
        opened = wire.open_offer(request.body, self._robot_key)
        return HttpResponse(
            200, wire.seal_answer(await self._admit_client(opened.offer), opened.session_key)
        )

    def _seal_notice(self) -> bytes:
        """Return an encrypted notice with the robot's public key and a new path for one offer."""
        wrapping = wire.Wrapping[self.signalling.name]
        digits = f"{secrets.randbelow(100_000):05}"  # they become a part of the path
        notice = wire.ConnectNotice(
            public_key=self._robot_key.public, digits=digits, wrapping=wrapping
        )
        self._notices[notice.path] = notice
        while len(self._notices) > _MAX_NOTICES:
            del self._notices[next(iter(self._notices))]
        return wire.seal_notice(notice, secrets.token_bytes(wire.NOTICE_ENTROPY), self._key)

    # ---- the client -----------------------------------------------------------------------------

    async def _admit_client(self, offer: wire_sdp.SdpOffer) -> wire_sdp.SdpAnswer | wire_sdp.Busy:
        """Answer an offer, and begin to serve the client unless another one is connected."""
        if self._client is not None:
            self.services.world.note("a second client was refused: the robot is busy")
            return wire_sdp.Busy(id=offer.id)
        quirks = self.services.world.firmware.quirks
        end = self._client = RobotEnd(
            strict=self._strict, disturber=self.disturber, message_size=quirks.message_size
        )
        try:
            sdp = quirks.change_description(await end.answer(offer.sdp))
        except BaseException:
            self._client = None
            await end.close()
            raise
        self._serving = asyncio.create_task(self._serve_client(end), name="simulated client")
        return wire_sdp.SdpAnswer(sdp=sdp, id=offer.id)

    async def _serve_client(self, end: RobotEnd) -> None:
        """Serve one client until it has left."""
        gone = asyncio.Event()
        session: RpcClientSession | None = None
        try:
            await end.open()
            challenge = SIMULATED + secrets.token_hex(12)
            session = RpcClientSession(
                self.services, end.send, challenge=challenge, on_close=gone.set
            )
            self.services.world.note("a client has connected by WebRTC")
            end.listen(session.receive, gone.set)
            await gone.wait()
        except RoteError:
            self.services.world.note("a client signalled but did not connect")
        finally:
            if session is not None:
                session.close()
                self.services.world.note("the WebRTC client is gone")
            await end.close()
            self._client = None
