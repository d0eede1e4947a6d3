"""WebRTC: one data channel between a client and a robot; both ends.

aiortc's transports are used one by one (ICE, DTLS, SCTP), not through its peer connection. So every
stage has a name, a time limit and its own error, the certificate can log its keys, and the
description contains only what a robot reads.
"""

import asyncio
import re
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar
from urllib.parse import SplitResult

from aiortc import (
    RTCDataChannel,
    RTCDataChannelParameters,
    RTCDtlsFingerprint,
    RTCDtlsParameters,
    RTCDtlsTransport,
    RTCIceGatherer,
    RTCIceParameters,
    RTCSctpCapabilities,
    RTCSctpTransport,
)
from aiortc.sdp import candidate_from_sdp, candidate_to_sdp

from rote.errors import (
    BadRequestError,
    BusyError,
    DecodeError,
    StageError,
    StageTimeoutError,
)
from rote.model.family import Build
from rote.transport.address import check_host
from rote.transport.discovery import find_address
from rote.transport.impair import Disturber
from rote.transport.link import Carrier, Message, parse_url_options
from rote.transport.webrtc.aiortc_adapters import (
    DisturbedIce,
    Ice,
    KeyLogCertificate,
    Sctp,
    Unacknowledging,
)
from rote.transport.webrtc.signalling import exchange_descriptions, find_key
from rote.wire.webrtc.description import Peer, Side, read_peer, write_answer, write_offer
from rote.wire.webrtc.sdp import rewrite_as_read_strictly

AP_ADDRESS = "192.168.12.1"
"""The robot's address in its own Wi-Fi."""
LABEL = "data"
LIMITS_S = {"discover": 3.0, "signal": 5.0, "ICE": 5.0, "DTLS": 5.0, "channel": 5.0}
"""How long each stage may take, in seconds; validation has its limit in the session."""
BUSY_PAUSES_S = (0.2, 0.6)
"""Pauses before another attempt to connect to a busy robot."""
MAX_UNSENT = 4 * 2**20
"""Telemetry to a client is dropped while more than this many bytes wait to be sent."""
_SERIAL = re.compile(r"(?=[A-Z]*[0-9])[A-Z0-9]{12,64}")
"""A serial: capital letters and digits, with at least one digit."""

_T = TypeVar("_T")
_FIREWALL = (
    "Signalling works, but datagrams do not arrive: allow UDP between this computer and the "
    "robot (firewalls, guest networks and VPNs block it), and join the same network."
)
_NO_DTLS = (
    "Another device answers in place of the robot, or the robot's software is newer than rote "
    "knows. Switch the robot off and on, and try again."
)
_CLOSED = "the other end closed the connection before the channel was open"
_NO_CHANNEL = (
    "Try again, then with ?media=1 after the address. If both fail, switch the robot off and "
    "on: it may still hold an older session."
)


class ConnectTap(Protocol):
    """Observes how a connection is made."""

    signalling: str
    """The robot's variant of signalling."""

    def begin_stage(self, name: str) -> None:
        """Note that a stage of connecting begins now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebRtcTarget:
    """Which robot to connect to, by its host or its serial, and how."""

    host: str = ""
    serial: str = ""
    port: int | None = None
    """The port for signalling; None for the ports that robots use."""
    media: bool = False
    """Whether to offer audio and video too, which some robots require."""
    build: Build | None = None
    """Which build the robot is, if the URL names one."""
    key: str | None = field(default=None, repr=False)
    """The robot's own key, in hexadecimal."""
    keylog: Path | None = None
    """A file for the secrets of the session; None to log none."""
    limit_s: float = 5.0
    """Maximum time for each stage, if that is less than in `LIMITS_S`."""
    tap: ConnectTap | None = None
    """Notified of the stages of connecting."""

    @property
    def name(self) -> str:
        """The robot's name in the key file."""
        return self.serial or self.host


def read_url(parts: SplitResult) -> WebRtcTarget:
    """Parse `webrtc://HOST[:PORT]`, `webrtc://SERIAL` or `webrtc://ap`, with the options `media=1`
    and `build=NAME`.
    """
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    query, build = parse_url_options(parts.query)
    media = query.pop("media", "0")
    unexpected = parts.path.strip("/") or parts.fragment or "@" in parts.netloc or query
    if not host or unexpected or media not in ("0", "1"):
        raise BadRequestError(
            f"{parts.geturl()!r} does not name a robot",
            "Write webrtc://HOST, webrtc://SERIAL or webrtc://ap for the robot's own Wi-Fi; "
            "?media=1 and build=NAME may follow.",
        )
    has_media = media == "1"
    # `hostname` is in lower case; `netloc` is as written, which a serial needs.
    if _SERIAL.fullmatch(parts.netloc):
        return WebRtcTarget(serial=parts.netloc, media=has_media, build=build)
    address = AP_ADDRESS if host == "ap" else check_host(host)
    return WebRtcTarget(host=address, port=port, media=has_media, build=build)


# ---- one stack of transports --------------------------------------------------------------------


class Stack:
    """One end of a connection to a peer: ICE, DTLS, SCTP, and the data channel on top."""

    def __init__(
        self,
        *,
        offering: bool,
        keylog: Path | None = None,
        acknowledges: bool = True,
        disturber: Disturber | None = None,
    ) -> None:
        """The client's end is `offering`. The other end `acknowledges` the channel that the client
        opens. A `disturber` impairs the network.
        """
        self._offering = offering
        self._gatherer = RTCIceGatherer(iceServers=[])
        self._ice = (
            Ice(self._gatherer) if disturber is None else DisturbedIce(self._gatherer, disturber)
        )
        self._ice._connection.ice_controlling = offering
        self._certificate = KeyLogCertificate.generateCertificate()
        self._certificate.keylog = keylog
        self._dtls = RTCDtlsTransport(self._ice, [self._certificate])
        sctp_class = Sctp if acknowledges else Unacknowledging
        self._sctp = sctp_class(self._dtls)
        self._channel: RTCDataChannel | None = None
        self._early_messages: list[Message] = []
        self.max_message_bytes: int | None = None
        """Maximum message size that the peer accepts, in bytes; None for no limit."""
        self._receive: Callable[[Message], None] = self._early_messages.append
        self._lost: Callable[[], None] = lambda: None
        self._gathering: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._ended = False
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the channel can be used."""
        self._sctp.on("datachannel", self._adopt_channel)
        self._dtls.on("statechange", self._check_transports)
        self._ice.on("statechange", self._check_transports)

    async def gather(self) -> Side:
        """Collect this end's addresses and credentials; raises `StageError` without addresses."""
        # Shielded, because aioice never closes the sockets it has opened if it is cancelled.
        self._gathering = asyncio.ensure_future(self._gatherer.gather())
        await asyncio.shield(self._gathering)
        candidates = self._gatherer.getLocalCandidates()
        if not candidates:
            raise StageError(
                "ICE",
                "this computer has no network address for WebRTC (loopback does not count)",
                "Join the robot's network. For tests on one computer, run: ip address add "
                "10.99.0.1/32 dev lo",
            )
        local = self._gatherer.getLocalParameters()
        (sha256,) = (f for f in self._certificate.getFingerprints() if f.algorithm == "sha-256")
        return Side(
            local.usernameFragment or "",
            local.password or "",
            sha256.value,
            tuple(candidate_to_sdp(candidate) for candidate in candidates),
        )

    async def connect(
        self,
        peer: Peer,
        limits_s: dict[str, float],
        on_stage: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Connect to a peer, stage by stage; the channel opens later.

        `on_stage` is called with the name of each stage.
        """
        on_stage("ICE")
        await self._find_path(peer, limits_s)
        on_stage("DTLS")
        await self._encrypt(peer, limits_s)
        self.max_message_bytes = peer.message_size or None  # 0 means no limit
        on_stage("channel")
        await self._sctp.start(RTCSctpCapabilities(peer.message_size), peer.sctp_port)

    async def _find_path(self, peer: Peer, limits_s: dict[str, float]) -> None:
        """Find a network path to the peer by ICE; raise `StageError` if there is none."""
        usable = [candidate for candidate in peer.candidates if _is_usable(candidate)]
        for candidate in usable:
            with suppress(ValueError):  # a relay address in it may be malformed
                await self._ice.addRemoteCandidate(candidate_from_sdp(candidate))
        # A browser hides its addresses (NAME.local), or names none: its connectivity checks reveal
        # them. So the answering end waits for those checks, unless all addresses are known.
        all_known = bool(peer.candidates) and len(usable) == len(peer.candidates)
        if self._offering or all_known:
            await self._ice.addRemoteCandidate(None)  # no further candidates will come
        start = self._ice.start(RTCIceParameters(peer.ufrag, peer.password))
        await _run_stage(
            "ICE", limits_s, start, "no network path to the robot was found", _FIREWALL
        )
        if self._ice.state != "completed":
            raise StageError(
                "ICE",
                f"no network path to the robot was found ({_describe_candidates(peer)})",
                _FIREWALL,
            )

    async def _encrypt(self, peer: Peer, limits_s: dict[str, float]) -> None:
        """Make the DTLS handshake; raise `StageError` if it fails or the certificate is wrong."""
        fingerprints = [RTCDtlsFingerprint(*fingerprint) for fingerprint in peer.fingerprints]
        if peer.setup != "actpass":  # the peer has chosen its role; ours is the other one
            self._dtls._set_role("server" if peer.setup == "active" else "client")
        handshake = self._dtls.start(RTCDtlsParameters(fingerprints))
        await _run_stage("DTLS", limits_s, handshake, "the handshake did not end", _NO_DTLS)
        if self._dtls.state != "connected":
            problem = "the handshake failed, or the certificate is not the one that was announced"
            raise StageError("DTLS", problem, _NO_DTLS)

    def make_channel(self) -> None:
        """Create the data channel; only the client does this."""
        self._adopt_channel(RTCDataChannel(self._sctp, RTCDataChannelParameters(label=LABEL)))

    def listen(self, receive: Callable[[Message], None], lost: Callable[[], None]) -> None:
        """Call `receive` with every message, including those that have arrived already."""
        self._receive, self._lost = receive, lost
        early_messages, self._early_messages = self._early_messages, []
        for message in early_messages:
            receive(message)
        if self._ended:
            lost()

    def send(self, message: Message) -> None:
        """Send one message; it is dropped if it is too long for the peer or the channel is
        closing.
        """
        channel = self._channel
        if channel is not None and channel.readyState == "open":
            with suppress(ValueError):  # longer than the peer accepts
                channel.send(message)

    @property
    def unsent(self) -> int:
        """Number of bytes that wait to be sent."""
        return self._channel.bufferedAmount if self._channel is not None else 0

    async def close(self) -> None:
        """Close everything. Safe to call twice, and concurrently."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        self._lost = lambda: None
        self.opened.cancel()
        if self._gathering is not None:
            await asyncio.wait({self._gathering})
        for part in (self._sctp, self._dtls, self._ice):
            with suppress(ConnectionError):
                await part.stop()
        await asyncio.sleep(0)  # cancelled tasks end in this iteration of the loop

    def _adopt_channel(self, channel: RTCDataChannel) -> None:
        """Use the first channel, which either end may have created; ignore further ones."""
        if self._channel is not None:
            return
        self._channel = channel
        channel.on("message", self._on_message)
        channel.on("open", self._mark_opened)
        channel.on("close", self._on_closed)
        if channel.readyState == "open":
            self._mark_opened()

    def _on_message(self, message: Message) -> None:
        if self._channel is not None and self._channel.readyState == "connecting":
            # A robot may never acknowledge the channel, but a message proves that it is open.
            self._channel._setReadyState("open")
        try:
            self._receive(message)
        except Exception as error:  # in a listener; aiortc would close the channel because of it
            context = {"message": "a message could not be processed", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)

    def _mark_opened(self) -> None:
        if not self.opened.done():
            self.opened.set_result(None)

    def _check_transports(self) -> None:
        if self._dtls.state in {"closed", "failed"} or self._ice.state in {"closed", "failed"}:
            self._on_closed()

    def _on_closed(self) -> None:
        self._ended = True
        if not self.opened.done():
            self.opened.set_exception(StageError("channel", _CLOSED, _NO_CHANNEL))
            self.opened.exception()  # the error is raised where the channel is awaited
        lost, self._lost = self._lost, lambda: None
        lost()


def _is_usable(candidate: str) -> bool:
    """Whether a candidate is a UDP address that is not hidden behind an mDNS name."""
    _, _, transport, _, address, *_ = candidate.split(" ")
    return transport.lower() == "udp" and not address.endswith(".local")


async def _run_stage(
    name: str, limits_s: dict[str, float], work: Awaitable[_T], problem: str, remedy: str
) -> _T:
    """Await `work`; raise `StageTimeoutError` with `problem` after the time limit of the stage."""
    limit_s = limits_s[name]
    try:
        async with asyncio.timeout(limit_s):
            return await work
    except TimeoutError:
        raise StageTimeoutError(name, f"{problem} within {limit_s:g} s", remedy) from None


def _describe_candidates(peer: Peer) -> str:
    addresses = {candidate.split(" ")[4] for candidate in peer.candidates}
    return (
        "it announces " + ", ".join(sorted(addresses)) if addresses else "it announces no address"
    )


# ---- the client's end ---------------------------------------------------------------------------


class ClientCarrier(Carrier):
    """A channel to a robot."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.listen = stack.listen  # type: ignore[method-assign]
        self.send = stack.send  # type: ignore[method-assign]
        self.max_message_bytes = stack.max_message_bytes

    async def close(self) -> None:
        """Close the channel and everything below it."""
        await self.stack.close()


async def _retry_while_busy(exchange_offer: Callable[[], Awaitable[str]]) -> str:
    """Return the robot's answer; try again if it is busy: its last client may be disconnecting."""
    for pause_s in BUSY_PAUSES_S:
        try:
            return await exchange_offer()
        except BusyError:
            await asyncio.sleep(pause_s)
    return await exchange_offer()


def _note_signalling(tap: ConnectTap | None, variant: str) -> None:
    if tap is not None:
        tap.signalling = variant


async def connect_carrier(target: WebRtcTarget) -> Carrier:
    """Open a channel to a robot, stage by stage; an error names the stage."""
    limits_s = {stage: min(limit_s, target.limit_s) for stage, limit_s in LIMITS_S.items()}
    key = find_key(target.key, target.name)
    tap = target.tap
    on_stage: Callable[[str], None] = (lambda _: None) if tap is None else tap.begin_stage
    on_stage("discover")
    host = target.host or await find_address(target.serial, limit_s=limits_s["discover"])
    stack = Stack(offering=True, keylog=target.keylog)
    try:
        on_stage("signal")
        stack.make_channel()
        offer = write_offer(await stack.gather(), secrets.randbits(62), media=target.media)
        answer = await _retry_while_busy(
            partial(
                exchange_descriptions,
                host,
                target.port,
                offer,
                key=key,
                limit_s=limits_s["signal"],
                own_wifi=host == AP_ADDRESS,
                on_variant=partial(_note_signalling, tap),
            )
        )
        try:
            peer = read_peer(answer)
        except DecodeError as error:
            raise StageError("signal", f"its answer cannot be used: {error}", _NO_DTLS) from error
        await stack.connect(peer, limits_s, on_stage)
        problem = "the data channel did not open"
        await _run_stage("channel", limits_s, asyncio.shield(stack.opened), problem, _NO_CHANNEL)
    except BaseException:
        await stack.close()
        raise
    return ClientCarrier(stack)


# ---- the robot's end ----------------------------------------------------------------------------


class RobotEnd:
    """A simulated robot's end of one client's channel."""

    def __init__(
        self,
        *,
        strict: bool,
        disturber: Disturber | None = None,
        message_size: int | None = None,
    ) -> None:
        """Make the answering end. A `strict` one reads offers like a real robot, and does not
        acknowledge the channel. `message_size` is the maximum that it announces.
        """
        self.strict = strict
        self._message_size = message_size
        self._peer: Peer | None = None
        self.stack = Stack(offering=False, acknowledges=not strict, disturber=disturber)
        self.listen = self.stack.listen
        self.close = self.stack.close

    async def answer(self, offer: str) -> str:
        """Return the answer to an offer; raises `DecodeError` for one that cannot be used."""
        self._peer = read_peer(rewrite_as_read_strictly(offer) if self.strict else offer)
        side = await self.stack.gather()
        size = self._message_size
        if size is None and not self.strict:
            size = RTCSctpTransport.getCapabilities().maxMessageSize
        return write_answer(offer, side, secrets.randbits(62), message_size=size)

    async def open(self, limit_s: float = 15.0) -> None:
        """Connect to the client that was answered, and wait for its channel."""
        assert self._peer is not None
        limits_s = dict.fromkeys(LIMITS_S, limit_s)
        await self.stack.connect(self._peer, limits_s)
        await _run_stage(
            "channel", limits_s, asyncio.shield(self.stack.opened), "it is missing", ""
        )

    def send(self, message: Message) -> None:
        """Send one message, unless too many bytes wait for the client already."""
        if self.stack.unsent < MAX_UNSENT:
            self.stack.send(message)
