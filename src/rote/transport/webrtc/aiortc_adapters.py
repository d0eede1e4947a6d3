"""aiortc's transports with small changes: keys can be logged, and bad packets do not crash them.

These are subclasses, not patches: other users of aiortc in the same process are not affected.
"""

import asyncio
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from aiortc import RTCCertificate, RTCIceGatherer, RTCIceTransport, RTCSctpTransport
from aiortc.rtcsctptransport import SCTP_DATA_LAST_FRAG, DataChunk, InboundStream

from rote.transport.impair import Disturber

ACKNOWLEDGE_S = 0.02
"""Maximum delay of an acknowledgement; RFC 9260 allows 0.2 s."""
# Payload protocol ids of data channels (RFC 8831 and 8832), and the acknowledgement of a channel.
_TEXT, _BINARY = 51, 53
_DCEP, _ACK = 50, b"\x02"


class KeyLogCertificate(RTCCertificate):
    """A certificate that can log the secrets of its sessions, so that captures can be decrypted."""

    keylog: Path | None = None

    def _create_ssl_context(self, *args: Any, **kwargs: Any) -> Any:
        context = super()._create_ssl_context(*args, **kwargs)
        if self.keylog is not None:
            path = self.keylog
            context.set_keylog_callback(lambda _, line: _append_key(path, line))
        return context


def _append_key(path: Path, line: bytes) -> None:
    """Append a line to a file that only its owner may read: the keys decrypt the whole session."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(handle, line + b"\n")
    finally:
        os.close(handle)


class Ice(RTCIceTransport):
    """ICE that ignores empty datagrams: any host can send one, and aiortc fails on it."""

    def __init__(self, gatherer: RTCIceGatherer) -> None:
        super().__init__(gatherer)
        self._recv = self._receive

    async def _receive(self) -> bytes:
        while not (data := await self._connection.recv()):
            pass
        return data


class _WholeMessageStream(InboundStream):
    """Joins fragments only when a message is complete; aiortc tries at every fragment.

    A message of 10 MB, which is dropped anyway, then costs 3 seconds instead of 20.
    """

    def __init__(self) -> None:
        super().__init__()
        self._complete_messages = 0
        """Number of messages in the stream whose last fragment has arrived."""

    def add_chunk(self, chunk: DataChunk) -> None:
        super().add_chunk(chunk)
        self._complete_messages += bool(chunk.flags & SCTP_DATA_LAST_FRAG)

    def pop_messages(self) -> Iterator[tuple[int, int, bytes]]:
        if self._complete_messages:
            for message in super().pop_messages():
                self._complete_messages -= 1
                yield message


class Sctp(RTCSctpTransport):
    """SCTP that survives a text that is not UTF-8; aiortc fails on one.

    It also acknowledges as RFC 9260 recommends: every second packet at once, any other after
    `ACKNOWLEDGE_S`. aiortc acknowledges each packet (`sack`) before the message is processed.
    """

    _sack_timer: asyncio.TimerHandle | None = None
    _sack_task: "asyncio.Future[None] | None" = None

    async def _send_sack(self) -> None:
        """Acknowledge the packets that have arrived, now or a little later; called by aiortc."""
        is_second_packet = self._sack_timer is not None
        self._cancel_acknowledgement()
        if self._sack_misordered or self._sack_duplicates:
            await super()._send_sack()
            return
        self._sack_needed = False
        # Even without a delay, the receiver of the message runs before the timer.
        wait_s = 0.0 if is_second_packet else ACKNOWLEDGE_S
        self._sack_timer = asyncio.get_running_loop().call_later(wait_s, self._start_acknowledging)

    def _start_acknowledging(self) -> None:
        self._sack_timer = None
        self._sack_task = asyncio.ensure_future(self._acknowledge())

    async def _acknowledge(self) -> None:
        # The association may have ended between the timer and this iteration of the loop.
        if self._association_state == self.State.ESTABLISHED:
            with suppress(ConnectionError):
                await super()._send_sack()

    def _cancel_acknowledgement(self) -> None:
        if self._sack_timer is not None:
            self._sack_timer.cancel()
            self._sack_timer = None

    async def stop(self) -> None:
        """Stop the transport."""
        self._cancel_acknowledgement()
        if self._sack_task is not None:
            self._sack_task.cancel()
        await super().stop()

    async def _data_channel_receive(self, stream_id: int, pp_id: int, data: bytes) -> None:
        if pp_id == _TEXT:
            try:
                data.decode()
            except UnicodeDecodeError:
                pp_id = _BINARY  # to be dropped and counted as a bad binary frame
        await super()._data_channel_receive(stream_id, pp_id, data)

    def _get_inbound_stream(self, stream_id: int) -> InboundStream:
        return self._inbound_streams.setdefault(stream_id, _WholeMessageStream())


class Unacknowledging(Sctp):
    """SCTP as on a robot: it opens channels without acknowledging them."""

    async def _data_channel_flush(self) -> None:
        for message in tuple(self._data_channel_queue):
            _, protocol_id, data = message
            if (protocol_id, data) == (_DCEP, _ACK):
                self._data_channel_queue.remove(message)
        await super()._data_channel_flush()


class DisturbedIce(Ice):
    """ICE whose datagrams, in both directions, a `Disturber` delays, drops or alters."""

    def __init__(self, gatherer: RTCIceGatherer, disturber: Disturber) -> None:
        super().__init__(gatherer)
        self._disturber = disturber
        self._arrived: asyncio.Queue[bytes | ConnectionError] = asyncio.Queue()
        self._receive_task: asyncio.Task[None] | None = None
        self._sending: set[asyncio.Task[None]] = set()
        self._send, self._recv = self._send_impaired, self._receive_impaired

    async def _send_impaired(self, data: bytes) -> None:
        self._disturber.pass_on(data, self._start_sending)

    def _start_sending(self, data: bytes) -> None:
        async def send() -> None:
            with suppress(ConnectionError):
                await self._connection.send(data)

        task = asyncio.ensure_future(send())
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _receive_impaired(self) -> bytes:
        if self._receive_task is None:
            self._receive_task = asyncio.ensure_future(self._impair_received())
        arrived = await self._arrived.get()
        if isinstance(arrived, ConnectionError):
            raise arrived
        return arrived

    async def _impair_received(self) -> None:
        try:
            while True:
                self._disturber.pass_on(await self._receive(), self._arrived.put_nowait)
        except ConnectionError as error:
            self._arrived.put_nowait(error)
