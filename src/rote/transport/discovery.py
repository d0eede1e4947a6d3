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
"""Pause between all later queries."""
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


def list_addresses() -> tuple[InterfaceAddress, ...]:
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
    return tuple(sorted(known.values(), key=lambda each: ip_address(each.address).is_loopback))


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


async def find_address(serial: str, *, limit_s: float = 3.0) -> str:
    """Return the address of a robot as soon as it answers.

    Raises `StageTimeoutError` after `limit_s` seconds.
    """
    async with aclosing(discover(serials=(serial,), seconds=limit_s)) as robots:
        async for robot in robots:
            if robot.serial == serial:
                return robot.address
    problem = f"no robot with the serial {serial} answered in {limit_s:g} s"
    raise StageTimeoutError("discover", problem, REMEDY)


class _Sockets:
    """Datagram sockets of the running loop, closed together."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._open_sockets = ExitStack()

    def open(
        self,
        bind_to: Address,
        interface: InterfaceAddress,
        receive: Callable[[socket.socket, bytes, Address], None],
        *,
        groups: Sequence[str] = (),
    ) -> socket.socket:
        """Open a socket on one interface, and call `receive` with each datagram and its sender.

        It joins the multicast `groups`. Its port may be shared with other programs.
        """
        with ExitStack() as opened:  # closes the socket again if a step fails
            sock = opened.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            sock.setblocking(False)
            packed_address = socket.inet_aton(interface.address)
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, packed_address)
            # By default a socket on Linux also receives the groups that other sockets have joined.
            if sys.platform == "linux":
                sock.setsockopt(socket.IPPROTO_IP, _IP_MULTICAST_ALL, 0)
            _bind_shared(sock, bind_to)
            for group in groups:
                membership = socket.inet_aton(group) + packed_address
                sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
            on_datagram = partial(_receive_datagram, sock, receive)
            opened.callback(on_readable(self._loop, sock, on_datagram))
            self._open_sockets.enter_context(opened.pop_all())
        return sock

    def close(self) -> None:
        self._open_sockets.close()


def _bind_shared(sock: socket.socket, own: Address) -> None:
    """Bind a socket so that other programs can bind the same port."""
    if own[1]:  # port 0: the system chooses an unused port
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind(own)
    except OSError as error:
        share = getattr(socket, "SO_REUSEPORT", None)  # not on Windows
        if error.errno != errno.EADDRINUSE or share is None:
            raise
        # Another program shares the port by SO_REUSEPORT only. This is the second choice: among
        # sockets with that option Linux (6.18) picks one at random even for multicast, so that the
        # socket on one interface receives what arrived on another. Seen between two network
        # namespaces.
        sock.setsockopt(socket.SOL_SOCKET, share, 1)
        sock.bind(own)


def _receive_datagram(
    sock: socket.socket, receive: Callable[[socket.socket, bytes, Address], None]
) -> None:
    try:
        datagram, source = sock.recvfrom(wire.MAX_BODY)
    except OSError:  # the error of an earlier datagram, or a spurious wake-up
        return
    receive(sock, datagram, source)


def _describe_error(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


class Search:
    """Repeatedly queries all robots, and those named by `serials`; iterating yields the replies.

    A robot appears once for each address it announces. The search ends after `seconds`, or when all
    named robots have replied. `family` limits it to the multicast groups of one robot family.
    `addresses` are this computer's addresses to query from; the default is all.
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
            raise BadRequestError(
                f"a search cannot last {seconds:g} s", "Choose a positive time; 2 s is usual."
            )
        self.asked = 0
        """Number of queries sent, each to one group on one interface."""
        self.ignored = 0
        """Number of received datagrams that were not replies."""
        self.troubles: dict[InterfaceAddress, str] = {}
        """Interfaces that cannot be used, or not fully, and the first error of each."""
        self.missing = set(serials)
        """The named serials that have not replied."""
        self._has_serials = bool(serials)
        self._groups = wire.list_groups(family)
        named = [wire.Query(serial) for serial in dict.fromkeys(serials)]
        self._queries = [wire.encode_query(query) for query in (wire.Query(), *named)]
        self._seen: set[tuple[str, str]] = set()
        self._replies: asyncio.Queue[FoundRobot | None] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._began_s = self._loop.time()
        self._end_timer = self._loop.call_later(seconds, self._end_search)
        self._pauses = iter(_PAUSES_S)
        self._query_timer: asyncio.TimerHandle | None = None
        self._query_sockets: dict[InterfaceAddress, socket.socket] = {}
        self._sockets = _Sockets()
        try:
            for interface in _select_interfaces(addresses):
                self._open_sockets(interface)
            self._send_queries()
            if not self.asked:
                raise _make_no_interface_error("search", self.troubles)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> FoundRobot:
        found = await self._replies.get()
        if found is None:
            self._end_search()  # so that the next call ends too
            raise StopAsyncIteration
        return found

    def close(self) -> None:
        """Stop sending queries and listening."""
        self._end_timer.cancel()
        if self._query_timer is not None:
            self._query_timer.cancel()
        self._sockets.close()
        self._end_search()

    def _end_search(self) -> None:
        self._replies.put_nowait(None)  # ends the iteration

    def _open_sockets(self, interface: InterfaceAddress) -> None:
        """Open three sockets on one interface: robots reply to the sender of a query, to the group,
        or to the reply port of this computer.
        """

        def receive(sock: socket.socket, datagram: bytes, source: Address) -> None:
            self._on_reply(interface, datagram)

        address, open_socket = interface.address, self._sockets.open
        try:
            self._query_sockets[interface] = open_socket((address, 0), interface, receive)
        except OSError as error:
            self.troubles[interface] = _describe_error(error)
            return
        try:
            open_socket(("", wire.REPLY_PORT), interface, receive, groups=self._groups)
            open_socket((address, wire.REPLY_PORT), interface, receive)
        except OSError as error:
            self.troubles[interface] = (
                f"port {wire.REPLY_PORT} cannot be opened: {_describe_error(error)}"
            )

    def _send_queries(self) -> None:
        """Send each query to each group on each interface, and schedule the next round."""
        for interface, sock in self._query_sockets.items():
            for query in self._queries:
                for group in self._groups:
                    try:
                        sock.sendto(query, (group, wire.QUERY_PORT))
                    except OSError as error:
                        self.troubles.setdefault(interface, _describe_error(error))
                    else:
                        self.asked += 1
        self._query_timer = self._loop.call_later(
            next(self._pauses, _LAST_PAUSE_S), self._send_queries
        )

    def _on_reply(self, interface: InterfaceAddress, datagram: bytes) -> None:
        """Queue a robot for the iteration, once for each address that it announces."""
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
        after_s = self._loop.time() - self._began_s
        self._replies.put_nowait(FoundRobot(*robot, interface.name, after_s))
        if self._has_serials and not self.missing:
            self._end_search()


def _select_interfaces(addresses: Sequence[str] | None) -> Sequence[InterfaceAddress]:
    """Return the interfaces with these addresses, or all for None.

    Raises `BadRequestError` for an address that this computer does not have.
    """
    known = {interface.address: interface for interface in list_addresses()}
    if addresses is None:
        return tuple(known.values())
    for address in addresses:
        if address not in known:
            raise BadRequestError(
                f"{address!r} is not an address of this computer",
                f"Its addresses are: {', '.join(known) or 'none'}.",
            )
    return [known[address] for address in dict.fromkeys(addresses)]


def _make_no_interface_error(activity: str, troubles: dict[InterfaceAddress, str]) -> LinkError:
    """Return the error for an `activity`, a verb, that failed on all interfaces."""
    reasons = "; ".join(f"{interface.name}: {reason}" for interface, reason in troubles.items())
    return LinkError(
        f"cannot {activity} on any network interface ({reasons or 'there is none'})",
        "Join the robot's Wi-Fi or plug in its cable, and try again.",
    )


def own_address(interface: InterfaceAddress) -> str:
    """Return the address of an interface: by default a robot announces this one."""
    return interface.address


class Responder:
    """The robot's end: replies to queries that concern it. Created by `open_responder`."""

    def __init__(
        self,
        is_concerned: Callable[[wire.Query], bool],
        reply_on: Callable[[InterfaceAddress], bytes],
        delay_s: float,
    ) -> None:
        """`is_concerned` decides whether this robot replies to a query, `reply_on` returns the
        reply for an interface. Each reply is delayed by `delay_s`.
        """
        self.received = 0
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
        """Each open socket, with the group that it has joined and its interface."""

    def listen(self, device: Sequence[InterfaceAddress], group: str) -> None:
        """Receive queries to one group on the network device that has these addresses."""

        def receive(sock: socket.socket, datagram: bytes, sender: Address) -> None:
            self._on_query(sock, datagram, sender, _find_facing_address(device, sender[0]), group)

        first = device[0]
        try:
            sock = self._sockets.open((group, wire.QUERY_PORT), first, receive, groups=(group,))
        except OSError as error:
            problem = _describe_error(error)
            self.troubles[first] = f"port {wire.QUERY_PORT} cannot be opened: {problem}"
        else:
            self._memberships.append((sock, group, first))

    def announce(self) -> None:
        """Announce this robot's address in all groups on all interfaces."""
        for sock, group, interface in self._memberships:
            self._send_reply(sock, self._reply_on(interface), [(group, wire.REPLY_PORT)])

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
        sock: socket.socket,
        datagram: bytes,
        sender: Address,
        interface: InterfaceAddress,
        group: str,
    ) -> None:
        """Reply to a query that concerns this robot, to the group and to the sender."""
        try:
            query = wire.decode_query(datagram)
        except DecodeError:
            self.ignored += 1
            return
        self.received += 1
        if not self._is_concerned(query):
            return
        self.answered += 1
        reply, receivers = self._reply_on(interface), [(group, wire.REPLY_PORT), sender]
        if self._delay_s:
            self._loop.call_later(self._delay_s, self._send_reply, sock, reply, receivers)
        else:
            self._send_reply(sock, reply, receivers)

    def _send_reply(self, sock: socket.socket, reply: bytes, receivers: Sequence[Address]) -> None:
        for address in receivers:
            try:
                sock.sendto(reply, address)
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

    `address_for` returns the robot's address for a client on an interface. With `only_by_name` the
    robot answers only queries that name its serial, as newer firmware does. With `announce` it also
    announces itself once now. Its replies are delayed by `delay_s`.
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
        for group in wire.list_groups("g1"):
            responder.listen(device, group)
    if not responder.listening:
        raise _make_no_interface_error("listen", responder.troubles)
    if announce:
        responder.announce()
    return responder


def _group_by_device(chosen: Sequence[InterfaceAddress] | None) -> list[list[InterfaceAddress]]:
    """Group addresses by device, because a device with two addresses must listen only once."""
    devices: dict[str, list[InterfaceAddress]] = {}
    for interface in list_addresses() if chosen is None else chosen:
        devices.setdefault(interface.name, []).append(interface)
    return list(devices.values())


def _find_facing_address(device: Sequence[InterfaceAddress], sender: str) -> InterfaceAddress:
    """Return the address of a device that the system would use to send to `sender`."""
    if len(device) == 1:
        return device[0]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((sender, wire.REPLY_PORT))  # chooses an address without sending anything
            source_address = probe.getsockname()[0]
        except OSError:
            return device[0]
    facing = (interface for interface in device if interface.address == source_address)
    return next(facing, device[0])
