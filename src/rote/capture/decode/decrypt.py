"""Decrypts records with a key log, and reads the messages of the data channel.

A key log has a line `CLIENT_RANDOM <random> <master secret>` for each session, as Wireshark reads
it and `rote --keylog` writes it. The keys are derived from it and from both hellos, so the capture
must contain the handshake. A wrong key log, a missing handshake and an unknown cipher are findings
(`DecryptionProblem`), never exceptions. This is the only module of captures that uses
`cryptography`.
"""

import hmac
import struct
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from rote.capture.decode.dialogue import FaultNote, Pair, StateChange
from rote.capture.decode.dtls_session import (
    CapturedMessage,
    DecryptionProblem,
    DtlsSession,
    Endpoint,
    OpenedRecord,
    SessionReader,
    list_unread_problems,
)
from rote.capture.model import Datagram, TimelineEntry
from rote.errors import DecodeError, MissingExtraError
from rote.wire.packets import dtls
from rote.wire.packets.dtls import ContentType, DtlsRecord, HandshakeType, Suite
from rote.wire.packets.dtls_handshake import Certificate, ClientHello, ServerHello, decode_handshake

MAX_FLOWS = 4096
MAX_PENDING = 1024
"""Maximum number of records kept that came before their keys."""
MAX_EARLY = 16
"""Maximum number of records per flow kept that came before any hello."""
MAX_TRIES = 8
"""Maximum number of attempts to open a flow without a handshake with the keys of other flows."""
_TAG_BYTES = 16
"""Size of the authentication tag at the end of an encrypted record."""
# ---- keys ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Keylog:
    """Master secrets by the client's random."""

    secrets: dict[bytes, bytes]
    others: int = 0
    """Lines for other protocols, such as TLS 1.3."""
    bad: int = 0
    """Invalid lines."""

    @classmethod
    def read(cls, text: str) -> "Keylog":
        """Read a key log; invalid lines are counted."""
        secrets: dict[bytes, bytes] = {}
        others = bad = 0
        for line in text.splitlines():
            parts = line.split()
            if not parts or parts[0].startswith("#"):
                continue
            try:
                label, random, secret = parts[0], bytes.fromhex(parts[1]), bytes.fromhex(parts[2])
            except (ValueError, IndexError):
                bad += 1
                continue
            if label != "CLIENT_RANDOM":
                others += 1
            elif (len(random), len(secret)) == (32, 48):
                secrets[random] = secret
            else:
                bad += 1
        return cls(secrets, others, bad)


def expand(secret: bytes, label: bytes, seed: bytes, size: int, hash_name: str) -> bytes:
    """Return `size` bytes of the pseudo-random function of TLS 1.2 (RFC 5246, section 5)."""
    seed = label + seed
    result, chained = b"", seed
    while len(result) < size:
        chained = hmac.digest(secret, chained, hash_name)
        result += hmac.digest(secret, chained + seed, hash_name)
    return result[:size]


class Protection:
    """Decrypts and encrypts the records of one direction."""

    def __init__(self, suite: Suite, key: bytes, fixed_iv: bytes) -> None:
        self._suite = suite
        self._iv = fixed_iv
        self._aead: Any = _make_aead(suite, key)

    def open(self, record: DtlsRecord) -> bytes | None:
        """Return the decrypted content of a record, or None if this key does not fit."""
        nonce_size = self._suite.explicit_nonce_bytes
        if len(record.fragment) < self._suite.overhead:
            return None
        explicit, sealed = record.fragment[:nonce_size], record.fragment[nonce_size:]
        try:
            plain: bytes = self._aead.decrypt(
                self._make_nonce(record, explicit),
                sealed,
                _encode_associated_data(record, len(sealed) - _TAG_BYTES),
            )
        except Exception as error:
            # Recognised by name: `cryptography` is imported only when the first key is made.
            if type(error).__name__ != "InvalidTag":
                raise
            return None
        return plain

    def seal(self, record: DtlsRecord) -> DtlsRecord:
        """Return the encrypted form of `record`."""
        explicit = _encode_number(record)[: self._suite.explicit_nonce_bytes]
        nonce = self._make_nonce(record, explicit)
        associated = _encode_associated_data(record, len(record.fragment))
        sealed: bytes = self._aead.encrypt(nonce, record.fragment, associated)
        return record._replace(fragment=explicit + sealed)

    def _make_nonce(self, record: DtlsRecord, explicit: bytes) -> bytes:
        """Return the nonce of a record: with AES-GCM the record states the second part of it.

        With ChaCha20-Poly1305 it is derived from the record's number (RFC 7905).
        """
        if explicit:
            return self._iv + explicit
        mask = bytes(4) + _encode_number(record)
        return bytes(a ^ b for a, b in zip(self._iv, mask, strict=True))


def _encode_number(record: DtlsRecord) -> bytes:
    """Return epoch and sequence number as in the header of a record."""
    return record.epoch.to_bytes(2) + record.sequence.to_bytes(6)


def _encode_associated_data(record: DtlsRecord, size: int) -> bytes:
    """Return what is authenticated but not encrypted: the header, with the size of the content."""
    return _encode_number(record) + struct.pack(">BHH", record.type, record.version, size)


def _make_aead(suite: Suite, key: bytes) -> Any:
    try:
        from cryptography.hazmat.primitives.ciphers import aead  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError("the encryption of a data channel", "webrtc") from error
    return aead.AESGCM(key) if suite.aead == "aes-gcm" else aead.ChaCha20Poly1305(key)


def derive_protections(
    secret: bytes, client: bytes, server: bytes, suite: Suite
) -> list[Protection]:
    """Return the server's protection and the client's, from the master secret and both randoms."""
    sizes = [suite.key_bytes] * 2 + [suite.fixed_iv_bytes] * 2
    key_block = expand(secret, b"key expansion", server + client, sum(sizes), suite.prf)
    parts = []
    for size in sizes:
        parts.append(key_block[:size])
        key_block = key_block[size:]
    client_key, server_key, client_iv, server_iv = parts
    return [Protection(suite, server_key, server_iv), Protection(suite, client_key, client_iv)]


# ---- records ----------------------------------------------------------------------------------


Flow = tuple[Endpoint, Endpoint]


class Opener:
    """Follows the sessions in a capture and decrypts the records it has keys for."""

    def __init__(self, keylog: Keylog) -> None:
        self.sessions: list[DtlsSession] = []
        self.problems: list[DecryptionProblem] = []
        self._keylog = keylog
        self._flows: dict[Flow, DtlsSession] = {}
        self._moved: dict[Endpoint, bool] = {}
        """Whether an endpoint to which ICE moved a session is its DTLS client."""
        self._tries: Counter[Flow] = Counter()
        self._early: dict[Flow, list[tuple[Datagram, DtlsRecord]]] = {}
        """Records that came before the client hello of their flow."""
        self._strays = 0

    @property
    def strays(self) -> int:
        """How many encrypted records belong to sessions whose handshake is not in the capture."""
        waiting = (
            record.epoch > 0
            for early_records in self._early.values()
            for _, record in early_records
        )
        return self._strays + sum(waiting)

    def feed(self, datagram: Datagram) -> Iterator[OpenedRecord]:
        """Yield the records that can be decrypted now; a datagram that is not DTLS is skipped."""
        if datagram.payload[:1] not in _DTLS_FIRST_BYTES:
            return
        try:
            records = dtls.decode_records(datagram.payload)
        except DecodeError:
            return
        for record in records:
            yield from self._handle_record(datagram, record)

    def _handle_record(self, datagram: Datagram, record: DtlsRecord) -> Iterator[OpenedRecord]:
        if record.epoch == 0 and record.type == ContentType.HANDSHAKE:
            yield from self._handle_handshake(datagram, record)
        elif record.epoch > 0 and record.type != ContentType.HIDDEN:
            yield from self._handle_protected(datagram, record)

    # ---- the handshake --------------------------------------------------------------------------

    def _handle_handshake(self, datagram: Datagram, record: DtlsRecord) -> Iterator[OpenedRecord]:
        """Process a handshake record, then the records of its flow that came too early."""
        flow = _flow_key(datagram)
        try:
            fragments = dtls.decode_fragments(record.fragment)
            for fragment in fragments:
                session = self._flows.get(flow)
                if fragment.type == HandshakeType.CLIENT_HELLO:
                    session = self._find_or_start_session(datagram, fragment, session)
                if session is None:
                    self._keep_early_record(datagram, record)
                    return
                yield from self._handle_fragment(datagram, session, fragment)
        except DecodeError:
            return
        for early in self._early.pop(flow, ()):
            yield from self._handle_record(*early)

    def _keep_early_record(self, datagram: Datagram, record: DtlsRecord) -> None:
        """Keep a record that came before its hello: captures are not always in order.

        Beyond the limits, only count it.
        """
        flow = _flow_key(datagram)
        if len(self._early) < MAX_FLOWS or flow in self._early:
            held = self._early.setdefault(flow, [])
            if len(held) < MAX_EARLY:
                held.append((datagram, record))
                return
        self._strays += record.epoch > 0

    def _find_or_start_session(
        self, datagram: Datagram, fragment: dtls.Fragment, known: DtlsSession | None
    ) -> DtlsSession | None:
        """Return the session of a client hello; one with a new random starts a new session.

        `known` is the present session of this flow.
        """
        # The random is in bytes 2 to 33, so the first fragment of a hello is enough.
        if fragment.offset or len(fragment.body) < 34:
            return known
        hello: object = ClientHello(random=fragment.body[2:34])
        if len(fragment.body) == fragment.length:
            hello = decode_handshake(dtls.Handshake(fragment.type, 0, fragment.body))
        assert isinstance(hello, ClientHello)
        if known is not None and known.hello.random == hello.random:
            known.hello = hello
            return known
        session = DtlsSession(
            datagram.source, datagram.destination, hello, datagram.time_ns, datagram.time_ns
        )
        if len(self._flows) >= MAX_FLOWS:
            del self._flows[next(iter(self._flows))]
        self._flows[_flow_key(datagram)] = session
        if len(self.sessions) < MAX_FLOWS:
            self.sessions.append(session)
        return session

    def _handle_fragment(
        self, datagram: Datagram, session: DtlsSession, fragment: dtls.Fragment
    ) -> Iterator[OpenedRecord]:
        """Process a fragment of a handshake message.

        Once the server's hello is complete, the keys are known, and the waiting records are opened.
        """
        from_client = datagram.source == session.client
        session.ended_ns = datagram.time_ns
        whole = session.pieces[from_client].add(fragment)
        message = decode_handshake(whole) if whole is not None else None
        if isinstance(message, Certificate):
            session.fingerprints[from_client] = message.fingerprint
        elif isinstance(message, ServerHello) and message != session.answer:
            session.answer = message
            self._derive_keys(session)
            pending, session.pending = session.pending, []
            for time_ns, by_client, record in pending:
                yield from self._open_record(session, time_ns, by_client, record)

    def _derive_keys(self, session: DtlsSession) -> None:
        """Set the keys of a session from the key log, or add a problem that says why not."""
        assert session.answer is not None
        suite = dtls.find_suite(session.answer.cipher_suite)
        secret = self._keylog.secrets.get(session.hello.random)
        if dtls.Version.DTLS_1_3 in session.answer.versions:
            self._add_problem("version", session, "it is DTLS 1.3, which is not decrypted here")
        elif secret is None:
            start, count = session.hello.random[:4].hex(), len(self._keylog.secrets)
            reason = f"the key log, with {count} others, has no line for its random {start}..."
            self._add_problem("no-key", session, reason)
        elif not suite.aead:
            self._add_problem("suite", session, f"{suite.name} is not decrypted here")
        else:
            randoms = session.hello.random, session.answer.random
            session.keys = derive_protections(secret, *randoms, suite)

    def _add_problem(self, kind: str, session: DtlsSession, reason: str) -> None:
        (host, port), (peer, peer_port) = session.client, session.server
        if len(self.problems) < MAX_FLOWS:
            name = f"the session of {host}:{port} with {peer}:{peer_port} was not decrypted"
            self.problems.append(DecryptionProblem(kind, f"{name}: {reason}"))

    # ---- protected records ----------------------------------------------------------------------

    def _handle_protected(self, datagram: Datagram, record: DtlsRecord) -> Iterator[OpenedRecord]:
        """Open an encrypted record, or keep it until the keys of its session are known."""
        session = self._flows.get(_flow_key(datagram)) or self._find_moved_session(datagram, record)
        if session is None:
            self._keep_early_record(datagram, record)
            return
        by_client = self._moved.get(datagram.source, datagram.source == session.client)
        if session.answer is None and len(session.pending) < MAX_PENDING:
            session.pending.append((datagram.time_ns, by_client, record))
        else:
            yield from self._open_record(session, datagram.time_ns, by_client, record)

    def _find_moved_session(self, datagram: Datagram, record: DtlsRecord) -> DtlsSession | None:
        """Return the session that ICE moved to these addresses: the one whose keys fit.

        Only the first few records of a flow are tried.
        """
        flow = _flow_key(datagram)
        if self._tries[flow] >= MAX_TRIES or len(self._tries) > MAX_FLOWS:
            return None
        self._tries[flow] += 1
        for session in self.sessions[-MAX_TRIES:]:
            for by_client, keys in enumerate(session.keys):  # 0 are the keys of the server
                if keys.open(record) is not None:
                    self._flows[flow] = session
                    self._moved[datagram.source] = bool(by_client)
                    self._moved[datagram.destination] = not by_client
                    return session
        return None

    def _open_record(
        self, session: DtlsSession, time_ns: int, by_client: bool, record: DtlsRecord
    ) -> Iterator[OpenedRecord]:
        """Decrypt a record and yield it; a repeated one, or one without a key, is only counted."""
        if not session.keys:
            session.unopened += 1
            return
        plain = session.keys[by_client].open(record) if record.epoch == 1 else None
        if plain is None:
            session.unopened += 1
            return
        if not session.record_sequence(by_client, record.sequence):
            session.repeated += 1
            return
        session.opened += 1
        session.ended_ns = max(session.ended_ns, time_ns)
        if record.type == ContentType.ALERT and plain[1:] == b"\0":  # "close notify"
            session.closed = True
        yield OpenedRecord(time_ns, session, by_client, record.type, plain)


_DTLS_FIRST_BYTES = frozenset(bytes((kind,)) for kind in range(20, 64))


def _flow_key(datagram: Datagram) -> Flow:
    """Return both endpoints, the lower one first: the same for both directions."""
    endpoints = datagram.source, datagram.destination
    return endpoints if endpoints[0] <= endpoints[1] else endpoints[::-1]


# ---- a whole capture ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Decrypted:
    """Everything that was decrypted in a capture with a key log."""

    sessions: tuple[DtlsSession, ...]
    messages: tuple[CapturedMessage, ...]
    pairs: tuple[Pair, ...]
    states: tuple[StateChange, ...]
    faults: tuple[FaultNote, ...]
    timeline: tuple[TimelineEntry, ...]
    problems: tuple[DecryptionProblem, ...]
    chunks: dict[str, int]
    """How many SCTP chunks of each kind there were."""


def decrypt(datagrams: Iterable[Datagram], keylog_text: str) -> Decrypted:
    """Decrypt all sessions of a capture with a key log; `problems` lists what was not decrypted."""
    keylog = Keylog.read(keylog_text)
    opener = Opener(keylog)
    readers: dict[int, SessionReader] = {}
    for datagram in datagrams:
        for opened in opener.feed(datagram):
            session = opened.session
            if id(session) not in readers:
                readers[id(session)] = SessionReader(session)
            readers[id(session)].receive(opened)
    used_readers = [readers[id(session)] for session in opener.sessions if id(session) in readers]
    for reader in used_readers:
        reader.end()
    return Decrypted(
        sessions=tuple(opener.sessions),
        messages=tuple(
            message
            for index, session in enumerate(opener.sessions)
            if (session_reader := readers.get(id(session)))
            for message in session_reader.captured_messages(index)
        ),
        pairs=tuple(pair for reader in used_readers for pair in reader.dialogue.pairs),
        states=tuple(state for reader in used_readers for state in reader.dialogue.states),
        faults=tuple(fault for reader in used_readers for fault in reader.dialogue.faults),
        timeline=tuple(entry for reader in used_readers for entry in reader.dialogue.timeline()),
        problems=(
            *_find_keylog_problems(keylog, opener),
            *opener.problems,
            *list_unread_problems(used_readers),
        ),
        chunks=dict(sum((reader.association.chunks for reader in used_readers), Counter())),
    )


def _find_keylog_problems(keylog: Keylog, opener: Opener) -> Iterator[DecryptionProblem]:
    if not keylog.secrets:
        reason = f"it has {keylog.others} lines of other protocols and {keylog.bad} bad ones"
        yield DecryptionProblem("keylog", f"the key log holds no CLIENT_RANDOM line; {reason}")
    elif keylog.bad:
        yield DecryptionProblem("keylog", f"{keylog.bad} lines of the key log cannot be read")
    if opener.strays:
        reason = "belong to sessions whose handshake is not in the capture, and no key log can help"
        yield DecryptionProblem("no-handshake", f"{opener.strays} protected records {reason}")
    for session in opener.sessions:
        if session.keys and session.unopened:
            reason = f"{session.unopened} records are damaged or of a later epoch"
            yield DecryptionProblem("not-opened", reason)
