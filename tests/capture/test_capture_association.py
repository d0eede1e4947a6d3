"""SCTP put together from pieces that come late, twice, in any order, or never."""

import random

from hypothesis import given
from hypothesis import strategies as st

from rote.capture.decode import association
from rote.capture.decode.association import Association, Delivered
from rote.wire.packets import sctp
from rote.wire.packets.sctp import Data, Init, Packet

MESSAGES = st.lists(
    st.tuples(st.integers(0, 2), st.binary(min_size=1, max_size=40)), min_size=1, max_size=20
)


def pieces(
    messages: list[tuple[int, bytes]], size: int, first: int, flags: int = 0
) -> list[tuple[int, Data]]:
    """Cut messages as a sender does; each piece with the number of its message."""
    found: list[tuple[int, Data]] = []
    counts: dict[int, int] = {}
    for index, (stream, payload) in enumerate(messages):
        sequence = counts.get(stream, 0)
        counts[stream] = (sequence + 1) % 2**16
        parts = [payload[at : at + size] for at in range(0, len(payload), size)]
        for n, part in enumerate(parts):
            mark = flags | (n == 0) << 1 | (n == len(parts) - 1)
            number = (first + len(found)) % 2**32
            found.append((index, Data(number, stream, sequence, 51, part, mark)))
    return found


def receive(whole: Association, time_ns: int, *chunks: sctp.Chunk) -> list[Delivered]:
    return list(whole.receive(time_ns, True, sctp.encode(Packet(5000, 5000, 1, chunks))))


def by_stream(delivered: list[Delivered]) -> dict[int, list[bytes]]:
    streams: dict[int, list[bytes]] = {}
    for one in delivered:
        streams.setdefault(one.stream, []).append(one.payload)
    return streams


@given(MESSAGES, st.integers(1, 16), st.integers(0, 2**32 - 1), st.integers(0, 2**32))
def test_messages_come_whole_and_in_the_order_of_their_stream_whatever_the_order_of_pieces(
    messages: list[tuple[int, bytes]], size: int, first: int, seed: int
) -> None:
    chance = random.Random(seed)
    sent = [piece for _, piece in pieces(messages, size, first)]
    sent += chance.sample(sent, len(sent) // 2)
    chance.shuffle(sent)
    whole = Association()
    receive(whole, 0, Init(1, 2, 3, 4, first))
    found = [one for n, piece in enumerate(sent) for one in receive(whole, n, piece)]
    found += whole.end()
    wanted = by_stream([Delivered(0, True, stream, 51, data) for stream, data in messages])
    assert by_stream(found) == wanted
    assert whole.sides[True].lost == 0
    assert whole.sides[True].repeated == len(sent) - len(pieces(messages, size, first))
    assert whole.chunks == {"INIT": 1, "DATA": len(sent)}
    for stream in wanted:
        times = [one.time_ns for one in found if one.stream == stream]
        assert times == sorted(times)


@given(MESSAGES, st.integers(1, 16), st.integers(0, 2**32))
def test_a_message_whose_pieces_are_missing_is_lost_and_the_others_are_not(
    messages: list[tuple[int, bytes]], size: int, seed: int
) -> None:
    chance = random.Random(seed)
    cut = pieces(messages, size, 100)
    missing = {piece.number for _, piece in cut if chance.random() < 0.3}
    broken = {index for index, piece in cut if piece.number in missing}
    whole = Association()
    receive(whole, 0, Init(1, 2, 3, 4, 100))
    found = [one for _, p in cut if p.number not in missing for one in receive(whole, 1, p)]
    found += whole.end()
    kept = [message for index, message in enumerate(messages) if index not in broken]
    assert by_stream(found) == by_stream([Delivered(0, True, s, 51, data) for s, data in kept])
    overtaken = {
        (messages[index][0], index)
        for index in broken
        for later in range(index + 1, len(messages))
        if later not in broken and messages[later][0] == messages[index][0]
    }
    assert whole.sides[True].lost >= len(overtaken)


def test_unordered_messages_wait_for_nobody() -> None:
    whole = Association()
    (_, _), (_, second) = pieces([(0, b"a"), (0, b"b")], 9, 0, flags=4)
    assert [one.payload for one in receive(whole, 5, second)] == [b"b"]


def test_a_gap_is_waited_for_only_so_long() -> None:
    whole = Association()
    sent = [p for _, p in pieces([(0, b"x")] * (association.MAX_WAITING + 3), 9, 0)]
    found = [one for piece in sent[1:] for one in receive(whole, piece.number, piece)]
    assert len(found) == len(sent) - 1
    assert whole.sides[True].lost == 1
    assert [one.time_ns for one in found] == list(range(1, len(sent)))
    assert [one.payload for one in receive(whole, 9999, sent[0])] == [b"x"]


def test_what_waits_takes_bounded_memory() -> None:
    side, size = association.Inbound(), 2**20
    count = 2 * association.MAX_HELD // size
    for number in range(count):
        assert not list(side.add(0, Data(2 * number, 0, 0, 53, bytes(size), flags=0)))
    assert side._waiting_bytes <= association.MAX_HELD
    assert side.lost == count // 2


def test_whole_messages_that_wait_are_let_go_before_pieces_are_dropped() -> None:
    side, size = association.Inbound(), 2**20
    count = association.MAX_HELD // size + 2
    found = [
        run
        for number in range(1, count + 1)
        for run in side.add(0, Data(number, 0, number, 53, bytes(size)))
    ]
    assert len(found) == count
    assert side.lost == 1


def test_an_association_that_begins_anew_counts_anew() -> None:
    whole = Association()
    receive(whole, 0, Init(1, 2, 3, 4, 10))
    assert len(receive(whole, 1, Data(10, 0, 0, 51, b"a"))) == 1
    assert receive(whole, 1, Data(13, 0, 3, 51, b"late")) == []
    restarted = receive(whole, 2, Init(9, 2, 3, 4, 7000))
    assert [one.payload for one in restarted] == [b"late"]
    assert len(receive(whole, 3, Data(7000, 0, 0, 51, b"b"))) == 1
    assert receive(whole, 4, Init(9, 2, 3, 4, 7000)) == []
    assert len(receive(whole, 5, Data(7001, 0, 1, 51, b"c"))) == 1


def test_an_init_that_comes_late_changes_nothing() -> None:
    whole = Association()
    assert len(receive(whole, 0, Data(10, 0, 0, 51, b"a"))) == 1
    assert receive(whole, 0, Init(1, 2, 3, 4, 10)) == []
    assert receive(whole, 0, Data(10, 0, 0, 51, b"a")) == []
    assert whole.sides[True].repeated == 1


def test_very_old_numbers_are_repetitions_and_the_memory_of_them_is_bounded() -> None:
    side = association.Inbound()
    for number in range(140_000):
        assert len(list(side.add(0, Data(number, 0, number % 2**16, 51, b"a")))) == 1
    assert len(side._seen) <= 2 * association.MAX_REMEMBERED
    assert list(side.add(0, Data(5, 0, 5, 51, b"a"))) == []
    assert side.repeated == 1


def test_pieces_of_two_streams_are_not_glued_together() -> None:
    whole = Association()
    assert receive(whole, 0, Data(1, 0, 0, 51, b"a", 2), Data(2, 1, 0, 51, b"b", 1)) == []
    assert list(whole.end()) == []
    assert whole.sides[True].lost == 2


def test_what_is_no_sctp_is_counted() -> None:
    whole = Association()
    assert list(whole.receive(0, True, b"hello")) == []
    assert whole.bad == 1
