"""DDS: one participant on one interface, whose readers pass bytes to the event loop.

CycloneDDS calls back on threads of its own. A callback here only wakes the loop, once until the
loop has taken all samples; no other code of rote runs on a foreign thread. A reader whose samples
arrive faster than needed can be paced: then nothing wakes the loop, and the loop polls that reader.
Samples are taken and written as packed bytes; the library's own packing costs a hundred times more.

CycloneDDS calls the listener of a reader from one thread at a time. A write to a reader of this
process waits for that, so it must not hold Python's global lock, which the listener needs.
"""

import asyncio
import ctypes
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult

from cyclonedds._clayer import ddspy_take  # type: ignore[import-not-found]
from cyclonedds.builtin import (
    BuiltinDataReader,
    BuiltinTopicDcpsPublication,
    BuiltinTopicDcpsSubscription,
)
from cyclonedds.builtin_types import DcpsEndpoint
from cyclonedds.core import DDSException, Entity, Listener, Policy, Qos
from cyclonedds.domain import DomainParticipant
from cyclonedds.internal import DDS
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from cyclonedds.util import duration

from rote.errors import BadRequestError, LinkError
from rote.model.family import Build
from rote.platform.check import find_address
from rote.text import Act, Text
from rote.transport.dds.settings import VARIABLE, find_problem, merge_settings
from rote.transport.dds.types import Type
from rote.transport.link import parse_url_options

MAX_DOMAIN = 229
"""The last domain whose ports (7400, and 250 more for each domain) are valid."""
_ANY_STATE = 0x7F
"""The mask by which `ddspy_take` takes samples in any state: read or unread, new or ended."""
_BATCH = 64
"""Maximum number of samples that are taken from a reader at once."""
_BLOCKED_MS = 20
"""Maximum time in ms for which a write waits for slow readers."""
_RELIABLE = Policy.Reliability.Reliable(duration(milliseconds=_BLOCKED_MS))


class _PackedSample(ctypes.Structure):
    """A sample as CycloneDDS's function `dds_write` takes it for types of its Python library."""

    _fields_ = (("data", ctypes.c_char_p), ("size", ctypes.c_size_t))


# The library's own function holds Python's global lock; a call by ctypes does not.
_dds_write = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(_PackedSample))(
    ("dds_write", DDS._dll_handle)
)

Receive = Callable[[bytes], None]
ReceiveFrom = Callable[[bytes, object], None]
"""Called with a sample, and with an identifier of the program that sent it."""


@dataclass(frozen=True, slots=True)
class DdsTarget:
    """Which DDS domain and interface a robot is on."""

    interface: str
    domain: int = 0
    build: Build | None = None
    """Which build the robot is, if the URL names one."""
    multicast: bool = False
    """Whether samples are sent by multicast on loopback too, as some programs expect it."""


def read_url(parts: SplitResult) -> DdsTarget:
    """Parse `dds://INTERFACE[?domain=N&build=NAME]`; the domain of a robot is 0."""
    query, build = parse_url_options(parts.query)
    domain = query.pop("domain", "0")
    unexpected = parts.path.strip("/") or parts.fragment or query
    is_domain = domain.isdecimal() and int(domain) <= MAX_DOMAIN
    if not parts.netloc or unexpected or not is_domain:
        raise BadRequestError(
            f"{parts.geturl()!r} does not name a robot",
            "Write dds://INTERFACE, for example dds://eth0; ?domain=N may follow, "
            f"0 to {MAX_DOMAIN}, and build=NAME.",
        )
    return DdsTarget(parts.netloc, int(domain), build)


@contextmanager
def _interface_settings(interface: str, *, multicast: bool = False) -> Iterator[None]:
    """Set the environment variable with CycloneDDS's settings while the block runs.

    A domain could also be created with settings, but then it would have to be ended explicitly, for
    all its participants. One that is created by its first participant ends with its last.
    """
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = merge_settings(
        before, interface, find_address(interface), multicast=multicast
    )
    try:
        yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before


def list_interfaces() -> list[str]:
    """Return the names of this computer's network interfaces."""
    return [name for _, name in socket.if_nameindex()]


def check_interface(name: str) -> None:
    """Raise `BadRequestError` if this computer has no interface of that name."""
    known = list_interfaces()
    if name not in known:
        raise BadRequestError(
            f"this computer has no interface {name!r}", f"Use one of: {', '.join(known)}."
        )


class Bus:
    """One participant in a DDS domain, with its readers and writers."""

    def __init__(self, target: DdsTarget) -> None:
        self.closed = True
        self.target = target
        self._loop = asyncio.get_running_loop()
        check_interface(target.interface)
        self._inlets: list[Inlet] = []
        self._outlets: list[Outlet] = []
        try:
            with _interface_settings(target.interface, multicast=target.multicast):
                self._participant = DomainParticipant(target.domain)
        except DDSException as error:
            raise _make_unusable_error(target, error) from error
        self._topics: dict[str, Topic[Any]] = {}
        self.closed = False

    def reader(
        self, topic: str, kind: Type, receive: Receive, *, depth: int, reliable: bool = True
    ) -> "Inlet":
        """Open a reader that calls `receive` with every sample on a topic, in the event loop.

        It keeps the newest `depth` samples that wait. Unless `reliable`, lost ones are not resent.
        """
        reliability = _RELIABLE if reliable else Policy.Reliability.BestEffort
        qos = Qos(reliability, Policy.History.KeepLast(depth))
        inlet = Inlet(self._loop, receive)
        inlet.open(DataReader(self._participant, self._get_topic(topic, kind), qos, inlet.waker))
        self._inlets.append(inlet)
        return inlet

    def reader_from(self, topic: str, kind: Type, receive: ReceiveFrom, *, depth: int) -> None:
        """Open a reliable reader that calls `receive` with every sample and its sender."""
        qos = Qos(_RELIABLE, Policy.History.KeepLast(depth))
        inlet = Inlet(self._loop, receive_from=receive)
        inlet.open(DataReader(self._participant, self._get_topic(topic, kind), qos, inlet.waker))
        self._inlets.append(inlet)

    def writer(
        self,
        topic: str,
        kind: Type,
        *,
        depth: int = 1,
        latched: bool = False,
        blocked_ms: int = _BLOCKED_MS,
    ) -> "Outlet":
        """Open a writer for a topic; it is reliable for readers that request it.

        With `latched`, readers that join later also get the newest sample, if they request it. A
        write waits at most `blocked_ms` for slow readers.
        """
        qos = Qos(
            Policy.Reliability.Reliable(duration(milliseconds=blocked_ms)),
            Policy.History.KeepLast(depth),
            Policy.Durability.TransientLocal if latched else Policy.Durability.Volatile,
        )
        outlet = Outlet(topic, DataWriter(self._participant, self._get_topic(topic, kind), qos))
        self._outlets.append(outlet)  # a writer without a reference is deleted
        return outlet

    def _get_topic(self, name: str, kind: Type) -> Topic[Any]:
        if name not in self._topics:
            topic_type: Any = _TopicType(kind)
            self._topics[name] = Topic(self._participant, name, topic_type)
        return self._topics[name]

    def discovered_topics(self) -> tuple[set[str], set[str]]:
        """Return the topics that others write to, and the topics that others read."""
        written = self._find_topics_of_others(BuiltinTopicDcpsPublication)
        return written, self._find_topics_of_others(BuiltinTopicDcpsSubscription)

    def _find_topics_of_others(self, builtin: Any) -> set[str]:
        """Return the topics of others' writers or readers, as the topic `builtin` lists them."""
        reader = BuiltinDataReader(self._participant, builtin)
        own = self._participant.guid
        endpoints = [end for end in reader.read(N=4096) if isinstance(end, DcpsEndpoint)]
        _delete_entity(reader)
        return {end.topic_name for end in endpoints if end.participant_key != own}

    def close(self) -> None:
        """Leave the domain. Safe to call twice."""
        if not self.closed:
            self.closed = True
            for inlet in self._inlets:
                inlet.close()
            _delete_entity(self._participant)

    def __del__(self) -> None:
        # The garbage collector may run inside a listener, on any thread. Deleting a participant
        # there would wait for that listener for ever, so another thread does it.
        # While the interpreter ends, no thread can start, and the system closes the participant.
        if not self.closed and not sys.is_finalizing():
            with suppress(RuntimeError):
                threading.Thread(target=self.close, name="rote dds close", daemon=True).start()


class _TopicType:
    """The type of one topic, which compares as different from every other.

    Topics with equal types would share one description. CycloneDDS writes that again for each new
    topic, while its threads may be reading samples by it.
    """

    def __init__(self, kind: Type) -> None:
        self.__idl__ = kind.__idl__


def _make_unusable_error(target: DdsTarget, error: DDSException) -> LinkError:
    """Return the error for an interface that DDS cannot use, with the likely cause."""
    names = list_interfaces()
    known = (*names, *filter(None, map(find_address, names)))
    settings_problem = find_problem(os.environ.get(VARIABLE), target.interface, known)
    where = f"DDS cannot use {target.interface} in domain {target.domain}"
    if settings_problem is not None:
        reason, remedy = settings_problem
        return LinkError(f"{where}: {reason}", remedy)
    hint = f" {VARIABLE} is set and may also be wrong." if os.environ.get(VARIABLE) else ""
    return LinkError(
        f"{where}: {error}",
        Text(
            "The interface may be down, or have no IPv4 address: {doctor}.{hint}",
            doctor=Act.DOCTOR,
            hint=hint,
        ),
    )


def _delete_entity(entity: Entity) -> None:
    """Delete an entity of CycloneDDS and all its children now.

    The library's finaliser fails in the garbage collector: it finds the entity by a weak reference,
    which is gone by then. CycloneDDS would go on calling a listener that no longer exists.
    """
    entity._entities.pop(entity._ref, None)
    entity._delete(entity._ref)


class _Waker(Listener):
    """Wakes the event loop when there are samples."""

    def __init__(self, wake: Callable[[], None]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._wake = wake

    def on_data_available(self, reader: object) -> None:
        """Called by CycloneDDS, on any thread."""
        self._wake()


class Inlet:
    """A DDS reader whose samples are taken in the event loop."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        receive: Receive = lambda _: None,
        receive_from: ReceiveFrom | None = None,
    ) -> None:
        self._loop = loop
        self._receive = receive
        self._receive_from = receive_from
        self._senders: dict[int, object] = {}
        """The sender of each writer that is known, by the writer's handle."""
        self._wake_pending = False
        self._reader: DataReader[Any] | None = None
        self._every_s: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.waker = _Waker(self._wake)

    def open(self, reader: "DataReader[Any]") -> None:
        """Start taking samples from `reader`, including those that have already arrived."""
        self._reader = reader
        self._wake()

    def pace(self, every_s: float | None) -> None:
        """Deliver the newest sample every `every_s` seconds; with None, every sample as it arrives.

        Waking the loop for each of hundreds of samples per second costs more than reading them.
        """
        if every_s == self._every_s or self._reader is None:
            return
        self._every_s = every_s
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        listener = None if every_s is not None else self.waker._ref  # None: nothing wakes the loop
        self._reader._set_listener(self._reader._ref, listener)
        if every_s is None:
            self._wake()  # take the samples that arrived in between
        else:
            self._timer = self._loop.call_later(
                every_s, self._take_newest, self._loop.time() + every_s
            )

    def _take_newest(self, due_s: float) -> None:
        """Deliver the newest sample, if there is one; this check was due at `due_s`."""
        if self._every_s is None or self._reader is None:
            return
        # Periods that were missed, because the loop was busy, are skipped.
        next_due_s = max(due_s + self._every_s, self._loop.time())
        self._timer = self._loop.call_at(next_due_s, self._take_newest, next_due_s)
        newest = None
        for data, _ in self._take_samples():
            newest = data
        if newest is not None:
            self._receive(newest)

    def _wake(self) -> None:
        """Let the loop take the samples, unless it is about to; called from any thread."""
        if not self._wake_pending:
            self._wake_pending = True
            with suppress(RuntimeError):  # the event loop is closed
                self._loop.call_soon_threadsafe(self._drain)

    def _drain(self) -> None:
        self._wake_pending = False
        for data, writer in self._take_samples():
            if self._receive_from is None:
                self._receive(data)
            else:
                self._receive_from(data, self._find_sender(writer))

    def _find_sender(self, writer: int) -> object:
        """Return the participant of a writer, which identifies its program."""
        if writer not in self._senders and self._reader is not None:
            found = self._reader.get_matched_publication_data(writer)
            self._senders[writer] = writer if found is None else str(found.participant_key)
        return self._senders.get(writer, writer)

    def _take_samples(self) -> Iterator[tuple[bytes, int]]:
        """Take all waiting samples; yield each with the handle of its writer."""
        for samples in self._take_batches():
            for data, info in samples:
                if info.valid_data:
                    yield data, info.publication_handle

    def _take_batches(self) -> Iterator[list[tuple[bytes, Any]]]:
        """Take all waiting samples in batches, the oldest first."""
        while self._reader is not None:
            samples = ddspy_take(self._reader._ref, _ANY_STATE, _BATCH)
            if isinstance(samples, int):  # an error: the participant has ended
                return
            yield samples
            if len(samples) < _BATCH:
                return

    @property
    def matched(self) -> int:
        """Number of writers that DDS has connected with this reader."""
        if self._reader is None:
            return 0
        return max(0, int(self._reader._get_matched_publications(self._reader._ref, None, 0)))

    def close(self) -> None:
        """Stop reading."""
        if self._timer is not None:
            self._timer.cancel()
        reader, self._reader = self._reader, None
        if reader is not None:
            _delete_entity(reader)


class Outlet:
    """A DDS writer of packed bytes."""

    def __init__(self, topic: str, writer: "DataWriter[Any]") -> None:
        self.topic = topic
        self._writer = writer
        self._ref = writer._ref

    def write(self, data: bytes) -> None:
        """Write one sample; raises `LinkError` if it cannot be sent."""
        padding = -len(data) % 4  # CycloneDDS takes samples in whole words
        padded = data + bytes(padding) if padding else data
        result = _dds_write(self._ref, ctypes.byref(_PackedSample(padded, len(padded))))
        if result < 0:
            raise LinkError(
                f"DDS could not send to {self.topic}: {DDSException(result)}",
                Text(
                    "A program on the robot reads this topic, but does not take the message: "
                    "the network may be overloaded or cut. Check the cable and the interface "
                    "({doctor}), then try again.",
                    doctor=Act.DOCTOR,
                ),
            )

    @property
    def matched(self) -> int:
        """Number of readers that DDS has connected with this writer."""
        return max(0, int(self._writer._get_matched_subscriptions(self._ref, None, 0)))

    def readers(self) -> frozenset[int]:
        """Return the handles of the connected readers; empty if the participant has ended."""
        try:
            return frozenset(self._writer.get_matched_subscriptions())
        except DDSException:
            return frozenset()
