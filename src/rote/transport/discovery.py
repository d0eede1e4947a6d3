"""Discovery on the local network, for clients and robots: multicast sockets on every interface.

A search opens three sockets per interface: one to send queries, which receives replies to its own
address; one in the multicast groups, on the reply port; one on that port, for replies to this
computer. A responder opens one per interface and group, so it knows where a query came from.

wire/discovery.py defines the datagrams and their destinations.
"""

import asyncio
import errno
import math
import socket
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import ExitStack, aclosing
from functools import partial
from ipaddress import ip_address
from types import TracebackType
from typing import NamedTuple, Self

from rote.errors import (
    BadRequestError,
    DecodeError,
    LinkError,
    MissingExtraError,
    StageTimeoutError,
)
from rote.platform.readable import on_readable
from rote.wire import discovery as wire

Address = tuple[str, int]

REMEDY = (
    "Turn the robot on and put this computer on the same network. Some routers block multicast: "
    "then give the robot's address, webrtc://HOST (192.168.12.1 on the robot's own Wi-Fi)."
)
"""The remedy if no robot answers."""
MAX_ROBOTS = 256
"""Maximum number of robots in one search: any host on the network can fake replies."""

_PAUSES_S = (0.2, 0.4, 0.6)
"""Pauses between the first queries; a real G1 takes 0.1 to 1.7 s to answer."""
_LAST_PAUSE_S = 1.0
_IP_MULTICAST_ALL = 49  # from linux/in.h; Python has no name for it


class InterfaceAddress(NamedTuple):
    """One IPv4 address of this computer, and the interface that has it."""

    name: str
    address: str


class FoundRobot(NamedTuple):
    """A robot that answered, or announced itself."""

    serial: str
    address: str
    interface: str
    """The name of the interface on which its reply arrived."""
    after_s: float


def interfaces() -> tuple[InterfaceAddress, ...]:
    """Return the IPv4 addresses of this computer, loopback last."""
    try:
        import ifaddr  # noqa: PLC0415 - optional, the extra `webrtc`
    except ImportError:
        raise MissingExtraError("finding robots", "webrtc") from None
    known = {
        str(ip.ip): InterfaceAddress(adapter.nice_name, str(ip.ip))
        for adapter in ifaddr.get_adapters()
        for ip in adapter.ips
        if ip.is_IPv4
    }
    return tuple(sorted(known.values(), key=lambda one: ip_address(one.address).is_loopback))


async def discover(
    *,
    serials: Sequence[str] = (),
    family: str | None = None,
    seconds: float = 2.0,
    addresses: Sequence[str] | None = None,
) -> AsyncGenerator[FoundRobot, None]:
    """Yield every robot that answers, as soon as it does; see `Search`."""
    with Search(serials=serials, family=family, seconds=seconds, addresses=addresses) as search:
        async for found in search:
            yield found


async def find(serial: str, *, limit_s: float = 3.0) -> str:
    """Return the address of one robot as soon as it answers. Raises `NoAnswerError` after
    `limit_s`.
    """
    async with aclosing(discover(serials=(serial,), seconds=limit_s)) as robots:
        async for robot in robots:
            if robot.serial == serial:
                return robot.address
    seen = f"no robot with the serial {serial} answered in {limit_s:g} s"
    raise StageTimeoutError("discover", seen, REMEDY)


class _Sockets:
    """Datagram sockets of the running loop, closed together."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._open_sockets = ExitStack()

    def open(
        self,
        own: Address,
        interface: InterfaceAddress,
        receive: Callable[[socket.socket, bytes, Address], None],
        *,
        groups: Sequence[str] = (),
    ) -> socket.socket:
        """Open a socket on one interface, in `groups` if given; ports are shared with other
        programs.
        """
        with ExitStack() as undo:
            one = undo.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            one.setblocking(False)
            here = socket.inet_aton(interface.address)
            one.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, here)
            if sys.platform == "linux":  # else it receives what any socket here has joined
                one.setsockopt(socket.IPPROTO_IP, _IP_MULTICAST_ALL, 0)
            _bind_shared(one, own)
            for group in groups:
                joined = socket.inet_aton(group) + here
                one.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, joined)
            undo.callback(on_readable(self._loop, one, partial(_receive_datagram, one, receive)))
            self._open_sockets.enter_context(undo.pop_all())
        return one

    def close(self) -> None:
        self._open_sockets.close()


def _bind_shared(one: socket.socket, own: Address) -> None:
    """Bind a port that other programs may share."""
    if own[1]:  # a port that the system chooses belongs to us alone
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        one.bind(own)
    except OSError as error:
        share = getattr(socket, "SO_REUSEPORT", None)  # not on Windows
        if error.errno != errno.EADDRINUSE or share is None:
            raise
        # Another program shares the port by SO_REUSEPORT only. This is the second choice: among
        # sockets with that option Linux (6.18) picks one at random even for multicast, so that the
        # socket on one interface receives what arrived on another. Seen between two network
        # namespaces.
        one.setsockopt(socket.SOL_SOCKET, share, 1)
        one.bind(own)


def _receive_datagram(
    one: socket.socket, receive: Callable[[socket.socket, bytes, Address], None]
) -> None:
    try:
        datagram, source = one.recvfrom(wire.MAX_BODY)
    except OSError:  # the error of an earlier datagram, or a spurious wake-up
        return
    receive(one, datagram, source)


def _error_text(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


class Search:
    """Repeatedly queries all robots, and those named by `serials`; iterating yields the replies.

    A robot appears once for each address it announces. The search ends after `seconds`, or when all
    named robots have replied. `addresses` are this computer's addresses to query from; the default
    is all.
    """

    def __init__(
        self,
        *,
        serials: Sequence[str] = (),
        family: str | None = None,
        seconds: float = 2.0,
        addresses: Sequence[str] | None = None,
    ) -> None:
        if not (math.isfinite(seconds) and seconds > 0):
            raise BadRequestError(f"robots cannot be searched for {seconds:g} s", "2 is usual.")
        self.asked = 0
        """Number of queries sent, each to one group on one interface."""
        self.ignored = 0
        """Number of received datagrams that were not replies."""
        self.troubles: dict[InterfaceAddress, str] = {}
        """Interfaces that cannot be used, or not fully, and the first error of each."""
        self.missing = set(serials)
        """The named serials that have not replied."""
        self._named = bool(serials)
        self._groups = wire.groups(family)
        named = [wire.Query(serial) for serial in dict.fromkeys(serials)]
        self._questions = [wire.encode_query(query) for query in (wire.Query(), *named)]
        self._seen: set[tuple[str, str]] = set()
        self._replies: asyncio.Queue[FoundRobot | None] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._end = self._loop.call_later(seconds, self._end_search)
        self._pauses = iter(_PAUSES_S)
        self._next: asyncio.TimerHandle | None = None
        self._query_sockets: dict[InterfaceAddress, socket.socket] = {}
        self._sockets = _Sockets()
        try:
            for interface in _select_interfaces(addresses):
                self._open_sockets(interface)
            self._send_queries()
            if not self.asked:
                raise _make_no_interface_error("asked", self.troubles)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> FoundRobot:
        found = await self._replies.get()
        if found is None:
            self._end_search()  # for good
            raise StopAsyncIteration
        return found

    def close(self) -> None:
        """Stop sending queries and listening."""
        self._end.cancel()
        if self._next is not None:
            self._next.cancel()
        self._sockets.close()
        self._end_search()

    def _end_search(self) -> None:
        self._replies.put_nowait(None)

    def _open_sockets(self, interface: InterfaceAddress) -> None:
        def receive(one: socket.socket, datagram: bytes, source: Address) -> None:
            self._on_reply(interface, datagram)

        own, opened = interface.address, self._sockets.open
        try:
            self._query_sockets[interface] = opened((own, 0), interface, receive)
        except OSError as error:
            self.troubles[interface] = _error_text(error)
            return
        try:
            opened(("", wire.REPLY_PORT), interface, receive, groups=self._groups)
            opened((own, wire.REPLY_PORT), interface, receive)
        except OSError as error:
            self.troubles[interface] = (
                f"port {wire.REPLY_PORT} cannot be opened: {_error_text(error)}"
            )

    def _send_queries(self) -> None:
        for interface, one in self._query_sockets.items():
            for question in self._questions:
                for group in self._groups:
                    try:
                        one.sendto(question, (group, wire.QUERY_PORT))
                    except OSError as error:
                        self.troubles.setdefault(interface, _error_text(error))
                    else:
                        self.asked += 1
        self._next = self._loop.call_later(next(self._pauses, _LAST_PAUSE_S), self._send_queries)

    def _on_reply(self, interface: InterfaceAddress, datagram: bytes) -> None:
        try:
            reply = wire.decode_reply(datagram)
        except DecodeError:
            self.ignored += 1
            return
        robot = reply.serial, reply.address
        if robot in self._seen or len(self._seen) >= MAX_ROBOTS:
            return
        self._seen.add(robot)
        self.missing.discard(reply.serial)
        self._replies.put_nowait(
            FoundRobot(*robot, interface.name, self._loop.time() - self._began)
        )
        if self._named and not self.missing:
            self._end_search()


def _select_interfaces(addresses: Sequence[str] | None) -> Sequence[InterfaceAddress]:
    known = {one.address: one for one in interfaces()}
    if addresses is None:
        return tuple(known.values())
    for address in addresses:
        if address not in known:
            raise BadRequestError(
                f"{address!r} is not an address of this computer",
                f"It has: {', '.join(known) or 'none'}.",
            )
    return [known[address] for address in dict.fromkeys(addresses)]


def _make_no_interface_error(used: str, troubles: dict[InterfaceAddress, str]) -> LinkError:
    why = "; ".join(f"{interface.name}: {message}" for interface, message in troubles.items())
    return LinkError(
        f"no network interface can be {used} ({why or 'there is none'})",
        "Join the robot's Wi-Fi or plug in its cable, and try again.",
    )


def own_address(interface: InterfaceAddress) -> str:
    """Return the interface's address, the default address of a robot."""
    return interface.address


class Responder:
    """The robot's end: replies to queries that concern it. Created by `open_responder`."""

    def __init__(
        self,
        is_concerned: Callable[[wire.Query], bool],
        reply_on: Callable[[InterfaceAddress], bytes],
        delay_s: float,
    ) -> None:
        self.heard = 0
        """Number of queries received."""
        self.answered = 0
        """Number of queries that concerned this robot."""
        self.ignored = 0
        """Number of received datagrams that were not queries."""
        self.troubles: dict[InterfaceAddress, str] = {}
        """Interfaces on which this robot cannot be discovered, and why."""
        self._is_concerned = is_concerned
        self._reply_on = reply_on
        self._delay_s = delay_s
        self._loop = asyncio.get_running_loop()
        self._sockets = _Sockets()
        self._memberships: list[tuple[socket.socket, str, InterfaceAddress]] = []

    def listen(self, device: Sequence[InterfaceAddress], group: str) -> None:
        """Receive the queries of one group on one device, for all its addresses."""

        def receive(one: socket.socket, datagram: bytes, asker: Address) -> None:
            self._on_query(one, datagram, asker, _find_facing_address(device, asker[0]), group)

        first = device[0]
        try:
            one = self._sockets.open((group, wire.QUERY_PORT), first, receive, groups=(group,))
        except OSError as error:
            self.troubles[first] = f"port {wire.QUERY_PORT} cannot be opened: {_error_text(error)}"
        else:
            self._memberships.append((one, group, first))

    def announce(self) -> None:
        """Announce this robot's address in all groups on all interfaces."""
        for one, group, interface in self._memberships:
            self._send_reply(one, self._reply_on(interface), [(group, wire.REPLY_PORT)])

    @property
    def listening(self) -> bool:
        """Whether this robot receives queries in any group on any interface."""
        return bool(self._memberships)

    def close(self) -> None:
        """Stop listening; replies that are still due are not sent."""
        self._sockets.close()
        self._memberships.clear()

    def _on_query(
        self,
        one: socket.socket,
        datagram: bytes,
        asker: Address,
        interface: InterfaceAddress,
        group: str,
    ) -> None:
        try:
            query = wire.decode_query(datagram)
        except DecodeError:
            self.ignored += 1
            return
        self.heard += 1
        if not self._is_concerned(query):
            return
        self.answered += 1
        reply, to = self._reply_on(interface), [(group, wire.REPLY_PORT), asker]
        if self._delay_s:
            self._loop.call_later(self._delay_s, self._send_reply, one, reply, to)
        else:
            self._send_reply(one, reply, to)

    def _send_reply(self, one: socket.socket, reply: bytes, to: Sequence[Address]) -> None:
        for address in to:
            try:
                one.sendto(reply, address)
            except OSError:  # closed meanwhile, or the client has left; it will query again
                continue


async def open_responder(
    serial: str,
    address_for: Callable[[InterfaceAddress], str] = own_address,
    *,
    only_by_name: bool = False,
    announce: bool = True,
    interfaces: Sequence[InterfaceAddress] | None = None,
    delay_s: float = 0.0,
) -> Responder:
    """Make a robot discoverable, on all interfaces or on those given, until the responder is
    closed.

    `address_for` returns the robot's address for a client on the given interface. With
    `only_by_name` it answers only queries that name its serial, as newer firmware does.
    """

    def reply_on(interface: InterfaceAddress) -> bytes:
        return wire.encode_reply(wire.Reply(serial=serial, address=address_for(interface)))

    def is_concerned(query: wire.Query) -> bool:
        return query.concerns(serial, only_by_name=only_by_name)

    devices = _group_by_device(interfaces)
    for device in devices:
        reply_on(device[0])  # an invalid reply raises now, not at the first query
    responder = Responder(is_concerned, reply_on, delay_s)
    for device in devices:
        for group in wire.groups("g1"):
            responder.listen(device, group)
    if not responder.listening:
        raise _make_no_interface_error("listened on", responder.troubles)
    if announce:
        responder.announce()
    return responder


def _group_by_device(chosen: Sequence[InterfaceAddress] | None) -> list[list[InterfaceAddress]]:
    """Return the addresses by device: a device with two addresses listens only once."""
    devices: dict[str, list[InterfaceAddress]] = {}
    for interface in interfaces() if chosen is None else chosen:
        devices.setdefault(interface.name, []).append(interface)
    return list(devices.values())


def _find_facing_address(device: Sequence[InterfaceAddress], asker: str) -> InterfaceAddress:
    """Return the address of a device that the system would use to send to `asker`."""
    if len(device) == 1:
        return device[0]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((asker, wire.REPLY_PORT))  # chooses an address without sending anything
            own = probe.getsockname()[0]
        except OSError:
            own = device[0].address
    return next((one for one in device if one.address == own), device[0])
