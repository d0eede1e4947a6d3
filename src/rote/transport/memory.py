"""Both ends in one process: datagrams go through the event loop instead of a socket."""

import asyncio
from collections.abc import Callable
from itertools import count

from rote.transport.impair import Disturber, Impairment
from rote.transport.link import Link, Receiver

Address = str


class MemoryPort:
    """The robot's end: any number of clients may connect to it."""

    def __init__(
        self,
        receive: Callable[[bytes, Address], None],
        impairment: Impairment | None = None,
    ) -> None:
        self._receive = receive
        self._loop = asyncio.get_running_loop()
        self._disturber = Disturber(impairment) if impairment else None
        self._clients: dict[Address, Receiver] = {}
        self._numbers = count(1)
        self._closed = False

    def connect(self, receive: Receiver) -> Link:
        """Return a client's link to this port."""
        address = f"memory:{next(self._numbers)}"
        self._clients[address] = receive
        return _MemoryLink(self, address)

    def send(self, datagram: bytes, address: Address) -> None:
        """Send one datagram to one client."""
        self._transmit(datagram, lambda arriving: self._deliver_to_client(arriving, address))

    def close(self) -> None:
        """Disconnect all clients; no further datagrams are delivered."""
        self._clients.clear()
        self._closed = True

    def send_to_robot(self, datagram: bytes, address: Address) -> None:
        """Send one datagram from a client to the robot."""
        self._transmit(datagram, lambda arriving: self._deliver_to_robot(arriving, address))

    def disconnect(self, address: Address) -> None:
        """Remove a client that has closed its link."""
        self._clients.pop(address, None)

    def _transmit(self, datagram: bytes, deliver: Callable[[bytes], None]) -> None:
        if self._disturber is None:
            self._loop.call_soon(deliver, datagram)
        else:
            self._disturber.pass_on(datagram, deliver)

    def _deliver_to_client(self, datagram: bytes, address: Address) -> None:
        receive = self._clients.get(address)
        if receive is not None:
            receive(datagram)

    def _deliver_to_robot(self, datagram: bytes, address: Address) -> None:
        if not self._closed:
            self._receive(datagram, address)


class _MemoryLink:
    """The client's end."""

    def __init__(self, port: MemoryPort, address: Address) -> None:
        self._port = port
        self._address = address

    def send(self, datagram: bytes) -> None:
        """Send one datagram to the robot."""
        self._port.send_to_robot(datagram, self._address)

    def close(self) -> None:
        """Close the link; datagrams on their way still arrive."""
        self._port.disconnect(self._address)
