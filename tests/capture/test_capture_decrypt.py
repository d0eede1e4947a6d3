"""Decryption of our own recorded sessions: exactly what was said, however it was captured."""

import asyncio
import os
import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capture.recorded import (
    CIPHERS,
    Recorded,
    listen,
    needs,
    read_datagrams,
    record,
    tcpdump_on_loopback,
    tshark,
)
from rig import rig
from rote.capture.decode.decrypt import Decrypted, Keylog, Opener, decrypt, expand
from rote.capture.model import Datagram
from rote.capture.report import dissector
from rote.capture.synthetic import build as make
from rote.capture.synthetic import ethernet
from rote.capture.synthetic import script as story
from rote.connection import connect
from rote.wire.packets import dtls, sctp
from rote.wire.packets.dtls_handshake import (
    ClientHello,
    ExtensionType,
    ServerHello,
    encode_handshake,
)
from rote.wire.services import faults, rpc
from rote.wire.webrtc import channel

CHACHA = "ECDHE-ECDSA-CHACHA20-POLY1305"
MADE = make.webrtc(story.webrtc())
PLAIN = decrypt(MADE.datagrams, MADE.keylog)


WHOLE, *BRIEF = [*CIPHERS, "without extended master secret"]
"""The cipher of a session with every request, and those of sessions that only list the actions."""


@pytest.fixture(scope="module", params=[WHOLE, *BRIEF])
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    folder = tmp_path_factory.mktemp("recorded")
    cipher = request.param if request.param in CIPHERS else None
    recorded = record(folder, cipher, plain_secret=cipher is None, brief=request.param != WHOLE)
    recorded.cipher = CIPHERS.get(request.param, "")
    return recorded


@pytest.fixture(scope="module")
def found(session: Recorded) -> Decrypted:
    return decrypt(session.datagrams, session.keylog)


def said(found: Decrypted) -> list[list[str | bytes]]:
    """What each end said, the longer one first."""
    ends: dict[object, list[str | bytes]] = {}
    for message in found.messages:
        ends.setdefault(message.source, []).append(message.text)
    return sorted(ends.values(), key=len, reverse=True)


def kinds(found: Decrypted) -> list[str]:
    return [problem.kind for problem in found.problems]


# ---- our own sessions ---------------------------------------------------------------------------


def test_a_recorded_session_gives_exactly_the_messages_that_were_sent(
    session: Recorded, found: Decrypted
) -> None:
    assert found.problems == ()
    assert said(found) == session.said
    (one,) = found.sessions
    assert one.extended_master_secret == bool(session.cipher)
    assert not session.cipher or one.suite == session.cipher
    assert one.channels == ["data"]
    assert one.unopened == one.repeated == 0


@pytest.mark.parametrize("session", [WHOLE], indirect=True)
def test_a_recorded_session_tells_who_is_the_robot_and_what_was_done(found: Decrypted) -> None:
    for message in found.messages:
        if isinstance(message.value, rpc.RpcRequest):
            assert message.direction == "to robot"
            assert message.source != found.sessions[0].robot
        if isinstance(message.value, rpc.RpcResponse):
            assert message.direction == "to client"
    happened = [entry.kind for entry in found.timeline]
    assert [kind for kind in happened if kind != "list"] == [
        "connect",
        "teach",
        "play",
        "rename",
        "delete",
    ]
    assert all(entry.confidence == 1.0 and entry.end_ns is not None for entry in found.timeline)
    by_kind = {entry.kind: entry for entry in found.timeline}
    teach = by_kind["teach"]
    assert 3.4 < ((teach.end_ns or 0) - teach.start_ns) / 1e9 < 4.5
    assert "Grüße" in teach.evidence
    assert "kept alive 3 times" in teach.evidence
    assert all(pair.latency_s is not None and pair.latency_s < 1 for pair in found.pairs)
    states = [change.state.activity.value for change in found.states]
    assert states == ["recording", "playing", "releasing", "idle"]


@pytest.mark.slow
@needs("tshark")
def test_tshark_sees_the_same_chunks_and_payloads(
    session: Recorded, found: Decrypted, tmp_path: Path
) -> None:
    capture, keys, lua = tmp_path / "a.pcap", tmp_path / "keys.log", tmp_path / "rote.lua"
    ethernet.write(capture, session.datagrams)
    keys.write_text(session.keylog, encoding="ascii")
    lua.write_text(dissector.generate_dissector(), encoding="utf-8")
    options = ("-X", f"lua_script:{lua}", "-o", f"tls.keylog_file:{keys}")
    rows = tshark(
        capture,
        *options,
        "-Y",
        "sctp",
        fields=("sctp.chunk_type", "sctp.data_tsn_raw", "rote_channel.type"),
    )
    if "CHACHA20" in session.cipher and not rows:
        pytest.skip("this tshark does not decrypt ChaCha20-Poly1305 in DTLS")
    ours: Counter[int] = Counter()
    numbers: list[int] = []
    opener = Opener(Keylog.read(session.keylog))
    for datagram in session.datagrams:
        for opened in opener.feed(datagram):
            if opened.type == dtls.ContentType.APPLICATION_DATA:
                assert sctp.checksum_holds(opened.plain)
                for chunk in sctp.decode(opened.plain).chunks:
                    ours[sctp.ChunkType[sctp.get_chunk_name(chunk)]] += 1
                    numbers += [chunk.number] if isinstance(chunk, sctp.Data) else []
    theirs = Counter(int(kind) for row in rows for kind in row[0].split(",") if kind)
    assert theirs == ours
    assert [int(n, 0) for row in rows for n in row[1].split(",") if n] == numbers
    spoken = Counter(kind for row in rows for kind in row[2].split(",") if kind)
    envelopes = Counter(rpc.read_json(str(message.text))["type"] for message in found.messages)  # type: ignore[index]
    assert spoken == envelopes


@pytest.mark.slow
@needs("tcpdump")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may listen to an interface")
@pytest.mark.parametrize("cipher", ["ECDHE-ECDSA-AES128-GCM-SHA256", CHACHA])
def test_a_session_recorded_by_tcpdump_decrypts_whole(cipher: str, tmp_path: Path) -> None:
    capture, keys = tmp_path / "lo.pcap", tmp_path / "keys.log"

    async def session() -> None:
        async with rig("webrtc") as one, connect(one.url, keylog=keys) as robot:
            await robot.actions()

    with pytest.MonkeyPatch.context() as patch, tcpdump_on_loopback(capture):
        recorded = listen(patch, cipher)
        asyncio.run(session())
    found = decrypt(read_datagrams(capture), keys.read_text(encoding="ascii"))
    ours = [one for one in found.sessions if one.opened]
    assert [one.suite for one in ours] == [CIPHERS[cipher]], found.problems
    # What the robot said while the client hung up may not have left it, or not have been heard.
    received = said(decrypt(recorded.datagrams, keys.read_text(encoding="ascii")))
    for texts in said(found):
        assert any(sent[: len(texts)] == texts for sent in recorded.said)
        assert any(texts[: len(heard)] == heard for heard in received)
    assert "arm 7107 list actions: done" in [f"{p.name}: {p.outcome}" for p in found.pairs]


# ---- what a capture can do to a session ---------------------------------------------------------


def disorder(datagrams: list[Datagram], chance: random.Random) -> list[Datagram]:
    """Let datagrams come late and twice."""
    keyed = [(n + chance.uniform(0, 6), one) for n, one in enumerate(datagrams)]
    keyed += [(place + chance.uniform(0, 30), one) for place, one in chance.sample(keyed, 60)]
    return [one for _, one in sorted(keyed, key=lambda pair: pair[0])]


@settings(max_examples=20)
@given(st.integers(0, 2**32))
def test_records_out_of_order_and_repeated_give_the_same_messages(seed: int) -> None:
    found = decrypt(disorder(MADE.datagrams, random.Random(seed)), MADE.keylog)
    assert {tuple(side) for side in said(found)} == {tuple(side) for side in said(PLAIN)}
    assert found.sessions[0].repeated > 0


def test_records_that_come_before_the_servers_hello_wait_for_it() -> None:
    hello = next(n for n, one in enumerate(MADE.datagrams) if one.payload[:1] == b"\x16") + 1
    late = list(MADE.datagrams)
    late.insert(hello + 40, late.pop(hello))
    found = decrypt(late, MADE.keylog)
    assert len(found.messages) == len(list(story.webrtc()))
    assert found.problems == ()


@settings(max_examples=20)
@given(st.integers(0, 2**32), st.floats(0.01, 0.3))
def test_what_the_capture_missed_is_counted_and_the_rest_is_told(seed: int, share: float) -> None:
    handshake, chance = MADE.datagrams[:20], random.Random(seed)
    rest = [one for one in MADE.datagrams[20:] if chance.random() > share]
    found = decrypt([*handshake, *rest], MADE.keylog)
    for part, full in zip(said(found), said(PLAIN), strict=True):
        remaining = iter(full)
        assert all(text in remaining for text in part)
    missing = len(PLAIN.messages) - len(found.messages)
    assert missing == 0 or "lost" in kinds(found)


def test_a_session_that_moves_to_other_addresses_is_followed() -> None:
    cut = len(MADE.datagrams) // 2
    moves = {make.PHONE: "10.0.0.9", make.ROBOT: "10.0.0.1"}

    def moved(one: Datagram) -> Datagram:
        (source, port), (to, to_port) = one.source, one.destination
        return one._replace(source=(moves[source], port + 1), destination=(moves[to], to_port + 1))

    datagrams = MADE.datagrams[:cut] + [moved(one) for one in MADE.datagrams[cut:]]
    found = decrypt(datagrams, MADE.keylog)
    assert [m.value for m in found.messages] == [line.value for line in story.webrtc()]
    assert len(found.sessions) == 1
    assert found.problems == ()


def test_two_sessions_one_after_the_other_on_the_same_ports_are_two() -> None:
    second = make.webrtc(story.webrtc(), seed=1, cipher="aes256", start_ns=make.START_NS + 10**12)
    found = decrypt(MADE.datagrams + second.datagrams, MADE.keylog + second.keylog)
    assert [one.suite.split("_WITH_")[1] for one in found.sessions] == [
        "CHACHA20_POLY1305_SHA256",
        "AES_256_GCM_SHA384",
    ]
    assert Counter(message.session for message in found.messages) == {0: 292, 1: 292}


# ---- findings -----------------------------------------------------------------------------------


def test_the_key_log_of_another_session_is_a_finding() -> None:
    other = make.webrtc(story.webrtc(), seed=7)
    found = decrypt(MADE.datagrams, other.keylog)
    assert kinds(found) == ["no-key"]
    assert not found.messages
    assert not found.timeline
    assert found.sessions[0].unopened > 500
    assert "1 others" in found.problems[0].message


def test_a_wrong_secret_for_the_right_session_opens_nothing() -> None:
    label, client, _ = MADE.keylog.split()
    found = decrypt(MADE.datagrams, f"{label} {client} {'00' * 48}\n")
    assert kinds(found) == ["not-opened"]
    assert found.messages == ()


def test_a_capture_without_its_handshake_cannot_be_opened_and_says_so() -> None:
    found = decrypt(MADE.datagrams[30:], MADE.keylog)
    assert kinds(found) == ["no-handshake"]
    assert found.sessions == ()


@pytest.mark.parametrize("text", ["", "# nothing\n\n", "CLIENT_RANDOM zz 00\nhello\n", "\0\xff"])
def test_a_key_log_that_is_none_is_a_finding(text: str) -> None:
    assert "keylog" in kinds(decrypt(MADE.datagrams, text))


def test_bad_lines_of_a_key_log_are_counted_and_the_good_ones_used() -> None:
    found = decrypt(MADE.datagrams, f"CLIENT_RANDOM 00 00\n{MADE.keylog}EXPORTER 00 11\n")
    assert kinds(found) == ["keylog"]
    assert "1 lines" in found.problems[0].message
    assert len(found.messages) == 292


def handshake(*said_: tuple[bool, ClientHello | ServerHello]) -> list[Datagram]:
    ends = ("10.0.0.1", 1), ("10.0.0.2", 2)
    datagrams = []
    for number, (by_client, hello) in enumerate(said_):
        whole = encode_handshake(hello, 0)
        piece = dtls.encode_fragment(dtls.Fragment(whole.type, len(whole.body), 0, 0, whole.body))
        record_ = dtls.encode_record(dtls.DtlsRecord(22, 0, number, piece))
        way = ends if by_client else ends[::-1]
        datagrams.append(Datagram(number, *way, record_))
    sealed = dtls.encode_record(dtls.DtlsRecord(23, 1, 0, bytes(60)))
    return [*datagrams, Datagram(9, *ends, sealed)]


@pytest.mark.parametrize(
    ("suite", "extensions", "kind"),
    [
        (0xC00A, (), "suite"),
        (0x1301, ((ExtensionType.SUPPORTED_VERSIONS, b"\xfe\xfc"),), "version"),
    ],
)
def test_what_cannot_be_decrypted_here_is_named(
    suite: int, extensions: tuple[tuple[int, bytes], ...], kind: str
) -> None:
    client = ClientHello(random=bytes(32), cipher_suites=(suite,))
    server = ServerHello(random=bytes(32), cipher_suite=suite, extensions=extensions)
    keylog = f"CLIENT_RANDOM {'00' * 32} {'11' * 48}"
    assert kinds(decrypt(handshake((True, client), (False, server)), keylog)) == [kind]


def in_pieces(one: Datagram, size: int) -> list[Datagram]:
    """Cut the handshake messages of a datagram, each piece into a datagram of its own."""
    cut = []
    for record_ in dtls.decode_records(one.payload):
        bodies = [record_.fragment]
        if (record_.type, record_.epoch) == (dtls.ContentType.HANDSHAKE, 0):
            bodies = [
                dtls.encode_fragment(piece._replace(offset=at, body=piece.body[at : at + size]))
                for piece in dtls.decode_fragments(record_.fragment)
                for at in range(0, max(1, piece.length), size)
            ]
        cut += [dtls.encode_record(record_._replace(fragment=body)) for body in bodies]
    return [one._replace(payload=payload) for payload in cut]


@pytest.mark.parametrize("size", [40, 60, 90])
def test_a_handshake_in_pieces_is_read(size: int) -> None:
    datagrams = MADE.datagrams[:6] + MADE.datagrams[10:]
    pieces = [piece for one in MADE.datagrams[6:10] for piece in in_pieces(one, size)]
    datagrams[6:6] = pieces
    found = decrypt(datagrams, MADE.keylog)
    assert found.problems == ()
    assert said(found) == said(PLAIN)
    assert found.sessions[0].fingerprints == PLAIN.sessions[0].fingerprints
    assert len(found.sessions[0].fingerprints[False].split(":")) == 32


# ---- hostile captures ---------------------------------------------------------------------------


def mutate(payload: bytes, chance: random.Random) -> bytes:
    damaged = bytearray(payload)
    for _ in range(chance.randrange(4)):
        if damaged:
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
    return bytes(
        damaged[: chance.randrange(len(damaged) + 1)] if chance.random() < 0.1 else damaged
    )


@given(st.integers(0, 2**32))
def test_damaged_captures_raise_nothing(seed: int) -> None:
    chance = random.Random(seed)
    damaged = [one._replace(payload=mutate(one.payload, chance)) for one in MADE.datagrams[:120]]
    decrypt(damaged, MADE.keylog)


@given(st.lists(st.binary(max_size=60), max_size=20), st.sampled_from([b"", b"\x16\xfe\xfd"]))
def test_arbitrary_datagrams_raise_nothing(payloads: list[bytes], start: bytes) -> None:
    ends = ("10.0.0.1", 1), ("10.0.0.2", 2)
    decrypt((Datagram(n, *ends, start + one) for n, one in enumerate(payloads)), MADE.keylog)


def test_thousands_of_flows_take_bounded_memory() -> None:
    hello = encode_handshake(ClientHello(random=bytes(32)), 0)
    opener = Opener(Keylog.read(MADE.keylog))
    for number in range(6000):
        body = hello.body[:2] + number.to_bytes(32) + hello.body[34:]
        piece = dtls.encode_fragment(dtls.Fragment(1, len(body), 0, 0, body))
        record_ = dtls.encode_record(dtls.DtlsRecord(22, 0, 0, piece))
        sealed = dtls.encode_record(dtls.DtlsRecord(23, 1, 0, bytes(60)))
        source = (f"10.{number >> 8}.{number & 255}.1", 1)
        for payload in (record_, sealed):
            assert not list(opener.feed(Datagram(0, source, ("10.0.0.2", 2), payload)))
    assert len(opener.sessions) <= 4096
    assert len(opener._flows) <= 4096


# ---- the pseudo-random function -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("hash_name", "expected"),
    [
        ("sha256", "e3f229ba727be17b8d122620557cd453c2aab21d07c3d495329b52d4e61edb5a"),
        ("sha384", "7b0c18e9ced410ed1804f2cfa34a336a1c14dffb4900bb5fd7942107e81c83cd"),
    ],
)
def test_the_pseudo_random_function_gives_the_published_values(
    hash_name: str, expected: str
) -> None:
    # The vectors of the TLS working group's list, "test label".
    vectors: dict[str, tuple[str, str]] = {
        "sha256": ("9bbe436ba940f017b17652849a71db35", "a0ba9f936cda311827a6f796ffd5198c"),
        "sha384": ("b80b733d6ceefcdc71566ea48e5567df", "cd665cf6a8447dd6ff8b27555edb7465"),
    }
    secret, seed = (bytes.fromhex(text) for text in vectors[hash_name])
    assert expand(secret, b"test label", seed, 100, hash_name)[:32].hex() == expected


def test_values_of_every_kind_survive_the_journey() -> None:
    big = rpc.RpcResponse(service="arm", api_id=7107, id=1, data="x" * 5000)
    parts = channel.split_response(big, 1800)
    lines = [
        story.ScriptLine(0.5, True, rpc.LIST_ACTIONS.request(1)),
        *(story.ScriptLine(1.0 + n / 100, False, part) for n, part in enumerate(parts)),
        story.ScriptLine(2.0, False, channel.ChannelMessage("rt/lidar", {"a": 1}, b"\0\1\2" * 900)),
        story.ScriptLine(3.0, True, channel.ChannelMessage("rt/wirelesscontroller", {"lx": 0.5})),
        story.ScriptLine(4.0, False, faults.Faults(faults.Change.ALL, (faults.Fault(9, 600, 8),))),
    ]
    made = make.webrtc(lines)
    found = decrypt(made.datagrams, made.keylog)
    assert [message.value for message in found.messages] == [line.value for line in lines]
    assert found.pairs[0].response == big
    assert [note.fault.source for note in found.faults] == [600]
