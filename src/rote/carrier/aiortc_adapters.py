"""aiortc's transports, bent a little: keys can be logged, and nothing from the network kills them.

Subclasses, no patches: other users of aiortc in the same process are not touched.
"""

import asyncio
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from aiortc import RTCCertificate, RTCIceGatherer, RTCIceTransport, RTCSctpTransport
from aiortc.rtcsctptransport import SCTP_DATA_LAST_FRAG, DataChunk, InboundStream

from rote.carrier.impair import Disturber

ACKNOWLEDGE_S = 0.02
"""How long a packet may wait for its acknowledgement; 0.2 s is the most."""
_TEXT, _BINARY = 51, 53
_DCEP, _ACK = 50, b"\x02"


class KeyLogCertificate(RTCCertificate):
    """A certificate whose sessions can be read by whoever has the key log."""

    keylog: Path | None = None

    def _create_ssl_context(self, *args: Any, **kwargs: Any) -> Any:
        context = super()._create_ssl_context(*args, **kwargs)
        if self.keylog is not None:
            path = self.keylog
            context.set_keylog_callback(lambda _, line: _append(path, line))
        return context


def _append(path: Path, line: bytes) -> None:
    """Add a line to a file only its owner may read: it opens the conversation to its reader."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(handle, line + b"\n")
    finally:
        os.close(handle)


class Ice(RTCIceTransport):
    """ICE that is not led astray: anybody can send an empty datagram, and aiortc dies of one."""

    def __init__(self, gatherer: RTCIceGatherer) -> None:
        super().__init__(gatherer)
        self._recv = self._receive

    async def _receive(self) -> bytes:
        while not (data := await self._connection.recv()):
            pass
        return data


class _Inbound(InboundStream):
    """What arrives in pieces, put together when there is an end: aiortc tries at every piece.

    So a message of 10 MB, which is dropped all the same, costs 3 seconds and not 20.
    """

    def __init__(self) -> None:
        super().__init__()
        self._ends = 0

    def add_chunk(self, chunk: DataChunk) -> None:
        super().add_chunk(chunk)
        self._ends += bool(chunk.flags & SCTP_DATA_LAST_FRAG)

    def pop_messages(self) -> Iterator[tuple[int, int, bytes]]:
        if self._ends:
            for message in super().pop_messages():
                self._ends -= 1
                yield message


class Sctp(RTCSctpTransport):
    """SCTP that is not led astray: aiortc dies of a text that is not UTF-8.

    And it acknowledges as RFC 9260 wants it, every second packet or after a moment: aiortc sends an
    acknowledgement for each, before the message is even looked at.
    """

    _later: asyncio.TimerHandle | None = None
    _catching_up: "asyncio.Future[None] | None" = None

    async def _send_sack(self) -> None:
        second = self._later is not None
        self._forget()
        if self._sack_misordered or self._sack_duplicates:
            await super()._send_sack()
            return
        self._sack_needed = False
        # The second too can wait until whoever waited for its message has gone on.
        wait_s = 0.0 if second else ACKNOWLEDGE_S
        self._later = asyncio.get_running_loop().call_later(wait_s, self._catch_up)

    def _catch_up(self) -> None:
        self._later = None
        self._catching_up = asyncio.ensure_future(self._acknowledge())

    async def _acknowledge(self) -> None:
        # Between the timer and this turn of the loop the association may have ended.
        if self._association_state == self.State.ESTABLISHED:
            with suppress(ConnectionError):
                await super()._send_sack()

    def _forget(self) -> None:
        if self._later is not None:
            self._later.cancel()
            self._later = None

    async def stop(self) -> None:
        """Stop the transport."""
        self._forget()
        if self._catching_up is not None:
            self._catching_up.cancel()
        await super().stop()

    async def _data_channel_receive(self, stream_id: int, pp_id: int, data: bytes) -> None:
        if pp_id == _TEXT:
            try:
                data.decode()
            except UnicodeDecodeError:
                pp_id = _BINARY  # to be dropped, and counted, as a bad binary frame
        await super()._data_channel_receive(stream_id, pp_id, data)

    def _get_inbound_stream(self, stream_id: int) -> InboundStream:
        return self._inbound_streams.setdefault(stream_id, _Inbound())


class Unacknowledging(Sctp):
    """SCTP as a robot has it: it opens channels and never says so."""

    async def _data_channel_flush(self) -> None:
        unwanted = [item for item in self._data_channel_queue if item[1:] == (_DCEP, _ACK)]
        for item in unwanted:
            self._data_channel_queue.remove(item)
        await super()._data_channel_flush()


class DisturbedIce(Ice):
    """ICE over a bad network."""

    def __init__(self, gatherer: RTCIceGatherer, disturber: Disturber) -> None:
        super().__init__(gatherer)
        self._disturber = disturber
        self._arrived: asyncio.Queue[bytes | ConnectionError] = asyncio.Queue()
        self._pump: asyncio.Task[None] | None = None
        self._sending: set[asyncio.Task[None]] = set()
        self._send, self._recv = self._send_badly, self._receive_badly

    async def _send_badly(self, data: bytes) -> None:
        self._disturber.pass_on(data, self._pass_on)

    def _pass_on(self, data: bytes) -> None:
        async def send() -> None:
            with suppress(ConnectionError):
                await self._connection.send(data)

        task = asyncio.ensure_future(send())
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _receive_badly(self) -> bytes:
        if self._pump is None:
            self._pump = asyncio.ensure_future(self._receive_all())
        arrived = await self._arrived.get()
        if isinstance(arrived, ConnectionError):
            raise arrived
        return arrived

    async def _receive_all(self) -> None:
        try:
            while True:
                self._disturber.pass_on(await self._receive(), self._arrived.put_nowait)
        except ConnectionError as error:
            self._arrived.put_nowait(error)
