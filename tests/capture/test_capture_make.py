"""Captures made to teach with: right to the last checksum, and what they are said to be."""

import stat
from pathlib import Path

import pytest

from capture.recorded import needs, read_datagrams, tshark
from rote.capture.model import Datagram
from rote.capture.synthetic import build as make
from rote.capture.synthetic import ethernet
from rote.capture.synthetic import script as story
from rote.errors import BadRequestError
from rote.wire.a1 import codec as a1
from rote.wire.packets import dtls, stun
from rote.wire.teaching import codec as teaching

CHECKED = (
    "-o",
    "ip.check_checksum:TRUE",
    "-o",
    "udp.check_checksum:TRUE",
)


@pytest.mark.parametrize("kind", make.KINDS)
@pytest.mark.parametrize("suffix", [".pcap", ".pcapng"])
def test_what_is_written_is_read_again(kind: str, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"made{suffix}"
    count = make.make(path, kind)
    read = read_datagrams(path)
    assert len(read) == count
    times = [one.time_ns for one in read]
    assert times == sorted(times)
    assert times[0] >= make.START_NS


@pytest.mark.slow
@needs("tshark")
@pytest.mark.each_once("kind", "suffix")
@pytest.mark.parametrize("kind", make.KINDS)
@pytest.mark.parametrize("suffix", [".pcap", ".pcapng"])
def test_tshark_finds_no_wrong_checksum_and_nothing_malformed(
    kind: str, suffix: str, tmp_path: Path
) -> None:
    path = tmp_path / f"made{suffix}"
    count = make.make(path, kind)
    fields = ("ip.checksum.status", "udp.checksum.status", "_ws.malformed")
    rows = tshark(path, *CHECKED, fields=fields)
    assert rows == [["1", "1", ""]] * count


@pytest.mark.slow
@needs("tshark")
def test_tshark_agrees_with_the_handshake_and_the_checks(tmp_path: Path) -> None:
    path = tmp_path / "made.pcapng"
    make.make(path, "webrtc", cipher="aes256")
    (hello,) = tshark(
        path,
        "-Y",
        "dtls.handshake.type == 2",
        fields=("dtls.handshake.ciphersuite", "dtls.handshake.random", "dtls.handshake.type"),
    )
    assert int(hello[0], 0) == make.CIPHERS["aes256"]
    assert hello[2] == "2,11,12,14"
    stuns = tshark(path, "-Y", "stun", fields=("stun.type", "stun.att.username"))
    ours = [one.payload for one in read_datagrams(path) if one.payload[:1] in b"\0\1"]
    assert len(stuns) == len(ours)
    assert all(stun.fingerprint_holds(payload) for payload in ours)
    requests = [stun.decode(payload).username for payload in ours]
    assert [name for _, name in stuns] == requests
    counts = tshark(path, "-Y", "dtls", fields=("dtls.record.content_type",))
    theirs = sum(len(row[0].split(",")) for row in counts)
    records = [dtls.decode_records(o.payload) for o in read_datagrams(path) if o.payload[0] > 19]
    assert theirs == sum(map(len, records))


def test_records_are_numbered_in_the_order_of_their_time() -> None:
    made = make.webrtc(story.webrtc())
    for end in {one.source for one in made.datagrams}:
        numbers = [
            record.sequence
            for one in made.datagrams
            if one.source == end and one.payload[0] > 19
            for record in dtls.decode_records(one.payload)
            if record.epoch
        ]
        assert numbers == list(range(len(numbers)))


def test_acknowledgements_have_the_size_that_was_once_taken_for_a_command() -> None:
    made = make.webrtc(story.webrtc(), cipher="chacha20")
    sizes = [len(one.payload) for one in made.datagrams if one.payload[0] == 23]
    beginning = 4  # INIT, its answer, a cookie and its echo
    assert sizes.count(57) == (len(sizes) - beginning) // 2


def test_every_made_frame_is_a_valid_one() -> None:
    asked = [teaching.decode(frame.payload) for frame in story.frames() if frame.to_robot]
    commands = {frame.command for frame in asked}
    assert commands == set(teaching.CommandId)
    assert all(a1.decode(frame.payload).fault is None for frame in story.walk())


def test_the_same_seed_makes_the_same_bytes(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        make.make(tmp_path / name, "webrtc", seed=seed)
    a, b, c = ((tmp_path / name).read_bytes() for name in "abc")
    assert a == b
    assert a != c


def test_the_key_log_is_for_its_owners_eyes_only(tmp_path: Path) -> None:
    keys = tmp_path / "keys.log"
    make.make(tmp_path / "a.pcap", "webrtc", keylog=keys)
    assert stat.S_IMODE(keys.stat().st_mode) == 0o600
    assert keys.read_text(encoding="ascii").startswith("CLIENT_RANDOM ")


def test_ipv6_and_multicast_are_made_as_well(tmp_path: Path) -> None:
    sent = [
        Datagram(1_500_000_001, ("fe80::1", 10), ("ff02::fb", 5353), b"abc"),
        Datagram(2_500_000_002, ("10.0.0.1", 10), ("231.1.1.2", 10131), b""),
    ]
    assert ethernet.write(tmp_path / "a.pcap", sent) == 2
    assert read_datagrams(tmp_path / "a.pcap") == sent


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"kind": "carrier pigeon"}, "unknown kind of session"),
        ({"cipher": "rot13"}, "unknown cipher"),
        ({"kind": "frames", "keylog": Path("keys")}, "not encrypted"),
    ],
)
def test_what_cannot_be_made_is_refused_and_leaves_no_file(
    options: dict[str, str], why: str, tmp_path: Path
) -> None:
    with pytest.raises(BadRequestError, match=why):
        make.make(tmp_path / "a.pcap", **options)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_a_file_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadRequestError, match="cannot be written"):
        make.make(tmp_path / "nowhere" / "a.pcap")
    with pytest.raises(BadRequestError, match="cannot be written"):
        make.make(tmp_path / "a.pcap", keylog=tmp_path / "nowhere" / "keys")
    with pytest.raises(BadRequestError, match="too long for UDP"):
        ethernet.write(tmp_path / "b.pcap", [Datagram(0, ("::1", 1), ("::1", 1), bytes(65_508))])
    assert not list(tmp_path.iterdir())
