"""MCAP takes: others read them, and neither kill -9 nor a cut loses what was on disk."""

import os
import signal
import struct
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcap.reader import make_reader
from mcap.records import Chunk
from mcap.writer import CompressionType, Writer

from motion.motion_tracks import assert_same, full_disk, tracks, waving
from rote.errors import BadRequestError, DecodeError, MissingExtraError
from rote.motion import files
from rote.motion.files import disk, mcap_records, metadata
from rote.motion.files.joint_state import SCHEMA, SCHEMA_NAME, Decoder, Encoder
from rote.motion.files.mcap_file import TOPIC, load_mcap, read_summary, recover, save_mcap
from rote.motion.files.take_writer import TakeWriter, unfinished
from rote.motion.track import Track
from sampled import sample_examples, sample_parameters

NAMES = waving().names


@pytest.fixture
def take(tmp_path: Path) -> Path:
    path = tmp_path / "wave.mcap"
    save_mcap(waving(), path)
    return path


# ---- what others see ----------------------------------------------------------------------------


def read_cdr(data: bytes) -> tuple[int, int, str, list[str], list[list[float]]]:
    """Decode a JointState by the rules of CDR, knowing nothing of our codec."""
    assert data[:4] == b"\x00\x01\x00\x00"
    body, at = data[4:], 0

    def number(code: str, size: int) -> Any:
        nonlocal at
        at += -at % size
        (value,) = struct.unpack_from("<" + code, body, at)
        at += size
        return value

    def text() -> str:
        nonlocal at
        size = number("I", 4)
        raw, at = body[at : at + size], at + size
        assert raw[-1:] == b"\0"
        return raw[:-1].decode()

    def numbers() -> list[float]:
        return [number("d", 8) for _ in range(number("I", 4))]

    seconds, nanoseconds, frame = number("i", 4), number("I", 4), text()
    names = [text() for _ in range(number("I", 4))]
    fields = [numbers() for _ in range(3)]
    assert at == len(body)
    return seconds, nanoseconds, frame, names, fields


def test_the_reference_reader_sees_standard_joint_states(take: Path) -> None:
    with take.open("rb") as file:
        seen = list(make_reader(file, validate_crcs=True).iter_messages())
    assert len(seen) == len(waving())
    for number, (schema, channel, message) in enumerate(seen):
        assert schema is not None
        assert (schema.name, schema.encoding) == ("sensor_msgs/msg/JointState", "ros2msg")
        assert (channel.topic, channel.message_encoding) == ("/joint_states", "cdr")
        assert message.log_time == message.publish_time == number * 10_000_000
        assert message.sequence == number
        seconds, nanoseconds, frame, names, fields = read_cdr(message.data)
        assert seconds * 10**9 + nanoseconds == number * 10_000_000
        assert (frame, names) == ("", list(NAMES))
        assert fields == [waving().joints_rad[number].tolist(), [], []]


def test_the_reference_reader_sees_the_schema_with_all_it_needs(take: Path) -> None:
    with take.open("rb") as file:
        reader = make_reader(file)
        found = reader.get_summary()
        assert reader.get_header().profile == "ros2"
    assert found is not None
    assert found.statistics is not None
    (schema,) = found.schemas.values()
    lines = schema.data.decode().splitlines()
    assert lines[:2] == ["std_msgs/Header header", "string[] name"]
    assert {line[5:] for line in lines if line.startswith("MSG: ")} == {
        "std_msgs/Header",
        "builtin_interfaces/Time",
    }
    assert found.statistics.message_count == len(waving())
    assert found.statistics.message_end_time == 590_000_000


def test_the_words_are_in_a_metadata_record(take: Path) -> None:
    with take.open("rb") as file:
        found = list(make_reader(file).iter_metadata())
    assert {record.name for record in found} == {"rote.take"}
    assert found[-1].metadata["source"] == "teach wave over udp"
    assert found[-1].metadata["history"] == '["trim 0.00 to 0.59 s", "smooth at 5 Hz"]'


def test_times_before_zero_have_a_stamp_and_an_order(tmp_path: Path) -> None:
    track = replace(waving(), times_s=waving().times_s - 0.255, marks=())
    save_mcap(track, tmp_path / "take.mcap")
    with (tmp_path / "take.mcap").open("rb") as file:
        seen = [message for _, _, message in make_reader(file).iter_messages()]
    assert [message.log_time for message in seen[:2]] == [0, 10_000_000]
    assert read_cdr(seen[0].data)[:2] == (-1, 745_000_000)
    assert_same(load_mcap(tmp_path / "take.mcap"), track)


def test_times_of_a_thousandth_of_a_nanosecond_survive(tmp_path: Path) -> None:
    track = Track(times_s=np.array([0.0, 1e-12, 2e-12]), joints_rad=np.zeros((3, 3)), names=NAMES)
    save_mcap(track, tmp_path / "take.mcap")
    assert_same(load_mcap(tmp_path / "take.mcap"), track)


@pytest.mark.parametrize("time_s", [2.0**31, -(2.0**31), 1e300])
def test_times_no_stamp_can_hold_are_refused(tmp_path: Path, time_s: float) -> None:
    track = Track(times_s=np.array([time_s]), joints_rad=np.zeros((1, 3)), names=NAMES)
    with pytest.raises(BadRequestError, match="68 years"):
        save_mcap(track, tmp_path / "take.mcap")
    assert list(tmp_path.iterdir()) == []


# ---- the message --------------------------------------------------------------------------------


@given(
    names=st.lists(st.text(st.characters(codec="utf-8"), max_size=9), max_size=5),
    time_ns=st.integers(-(2**31) * 10**9, 2**31 * 10**9 - 1),
    data=st.data(),
)
def test_a_joint_state_is_read_as_it_was_written(
    names: list[str], time_ns: int, data: st.DataObject
) -> None:
    angles = data.draw(st.lists(st.floats(), min_size=len(names), max_size=len(names)))
    message = Encoder(names).encode(time_ns, angles)
    found = Decoder().decode(message)
    assert (found.time_ns, found.names) == (time_ns, tuple(names))
    assert found.joints_rad.tobytes() == np.array(angles, dtype=float).tobytes()
    seconds, nanoseconds, _, read_names, fields = read_cdr(message)
    assert (seconds * 10**9 + nanoseconds, read_names) == (time_ns, names)
    assert np.array(fields[0]).tobytes() == np.array(angles, dtype=float).tobytes()


def test_a_joint_state_from_a_machine_of_the_other_byte_order_is_read() -> None:
    text = struct.pack(">I2s", 2, b"a\0") + bytes(2)
    data = b"\0\0\0\0" + struct.pack(">iII1s3xI", 1, 5, 1, b"\0", 1) + text
    data += struct.pack(">I", 1) + bytes(-(len(data) + 4 - 4) % 8) + struct.pack(">d", 0.5)
    decoder = Decoder()
    for _ in range(2):
        found = decoder.decode(data)
        assert (found.time_ns, found.names) == (10**9 + 5, ("a",))
        assert found.joints_rad.tolist() == [0.5]


def test_joints_may_change_from_message_to_message() -> None:
    decoder = Decoder()
    for names in (("a",), ("a", "b"), ("b", "a"), ("a",)):
        assert decoder.decode(Encoder(names).encode(0, [0.0] * len(names))).names == names


@given(st.binary(max_size=80), st.booleans())
def test_arbitrary_bytes_are_no_joint_state_or_a_short_one(data: bytes, known: bool) -> None:
    decoder = Decoder()
    decoder.decode(Encoder(("a",)).encode(0, [1.0]))
    with suppress(DecodeError):
        found = decoder.decode((b"\0\1\0\0" if known else b"") + data)
        assert found.joints_rad.shape == (len(found.names),)


def test_more_names_than_positions_are_refused() -> None:
    message = bytearray(Encoder(("a",)).encode(0, [1.0]))
    place = message.index(b"a\0") + 4
    message[place : place + 4] = struct.pack("<I", 2)
    with pytest.raises(DecodeError, match="1 joint names and 2 positions"):
        Decoder().decode(bytes(message))


# ---- recording ----------------------------------------------------------------------------------


def recorded(path: Path, track: Track, **finish: Any) -> Path:
    with TakeWriter(path, track.names, variant=track.variant, source=track.source) as writer:
        for time_s, row in zip(track.times_s, track.joints_rad, strict=True):
            writer.add(float(time_s), row.tolist())
        return writer.finish(marks=track.marks, history=track.history, **finish)


def test_a_recorded_take_is_the_track(tmp_path: Path) -> None:
    assert_same(files.load(recorded(tmp_path / "wave.mcap", waving(250))), waving(250))
    assert [path.name for path in tmp_path.iterdir()] == ["wave.mcap"]


@sample_examples(12)
@given(track=tracks())
def test_any_track_can_be_recorded_or_is_too_close_in_time(track: Track) -> None:
    with tempfile.TemporaryDirectory() as folder:
        try:
            path = recorded(Path(folder) / "take.mcap", track)
        except BadRequestError:
            assert np.diff(track.times_s).min() <= 1e-9
            (Path(folder) / "take.mcap.part").unlink()
            return
        assert_same(load_mcap(path), track)


def test_the_end_of_the_block_names_the_file(tmp_path: Path) -> None:
    with TakeWriter(tmp_path / "deep" / "wave.mcap", NAMES) as writer:
        writer.add(0.0, [0.0] * 3)
        assert not writer.path.exists()
        writer.add(1.0, [1.0] * 3)
        assert len(writer) == 2
    assert len(load_mcap(tmp_path / "deep" / "wave.mcap")) == 2
    assert unfinished(tmp_path / "deep") == []


def test_a_block_that_fails_leaves_all_its_samples_to_recover(tmp_path: Path) -> None:
    with pytest.raises(KeyError), TakeWriter(tmp_path / "wave.mcap", NAMES, source="s") as writer:
        for number in range(77):
            writer.add(number / 100, [0.1] * 3)
        raise KeyError
    (part,) = unfinished(tmp_path)
    found = recover(part)
    assert (len(found), found.source) == (77, "s")
    assert found.history == ("recover a recording that was cut off",)


def test_a_take_thrown_away_leaves_nothing(tmp_path: Path) -> None:
    with TakeWriter(tmp_path / "wave.mcap", NAMES) as writer:
        writer.add(0.0, [0.0] * 3)
        writer.discard()
    assert list(tmp_path.iterdir()) == []


def test_a_take_of_one_sample_is_none(tmp_path: Path) -> None:
    writer = TakeWriter(tmp_path / "wave.mcap", NAMES)
    writer.add(0.0, [0.0] * 3)
    with pytest.raises(BadRequestError, match="2 samples, this one has 1"):
        writer.finish()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("time_s", "row", "problem"),
    [
        (1.0, [0.0, 0.0], "2 angles for 3 joints"),
        (1.0, [0.0, 0.0, float("nan")], "not a number"),
        (float("inf"), [0.0] * 3, "not a number"),
        (0.5, [0.0] * 3, "not later"),
        (0.25, [0.0] * 3, "not later"),
        (1e12, [0.0] * 3, "68 years"),
    ],
)
def test_a_bad_sample_is_refused_and_the_take_goes_on(
    tmp_path: Path, time_s: float, row: list[float], problem: str
) -> None:
    with TakeWriter(tmp_path / "wave.mcap", NAMES) as writer:
        writer.add(0.5, [0.0] * 3)
        with pytest.raises(BadRequestError, match=problem):
            writer.add(time_s, row)
        writer.add(2.0, [0.0] * 3)
    assert load_mcap(tmp_path / "wave.mcap").times_s.tolist() == [0.5, 2.0]


def test_a_recording_does_not_grow_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata, "MAX_SAMPLES", 2)
    with TakeWriter(tmp_path / "wave.mcap", NAMES) as writer:
        writer.add(0.0, [0.0] * 3)
        writer.add(1.0, [0.0] * 3)
        with pytest.raises(BadRequestError, match="more than"):
            writer.add(2.0, [0.0] * 3)


def test_two_recordings_of_one_name_at_once_are_refused(tmp_path: Path) -> None:
    with TakeWriter(tmp_path / "wave.mcap", NAMES) as writer:
        with pytest.raises(BadRequestError, match="exists already"):
            TakeWriter(tmp_path / "wave.mcap", NAMES)
        assert unfinished(tmp_path) == []  # it is being written
        writer.add(0.0, [0.0] * 3)
        writer.add(1.0, [0.0] * 3)
    assert len(load_mcap(tmp_path / "wave.mcap")) == 2


def test_a_folder_that_cannot_be_is_a_bad_request(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BadRequestError, match="cannot be written"):
        TakeWriter(tmp_path / "file" / "wave.mcap", NAMES)


def test_a_disk_full_from_the_start_leaves_nothing(tmp_path: Path) -> None:
    with full_disk(10), pytest.raises(BadRequestError, match="File too large"):
        TakeWriter(tmp_path / "wave.mcap", NAMES)
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fills_up_while_recording_keeps_what_fitted(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    wanted = rng.normal(0, 1, (5000, 3))
    with full_disk(20_000), pytest.raises(BadRequestError, match="File too large"):
        with TakeWriter(tmp_path / "wave.mcap", NAMES) as writer:
            for number, row in enumerate(wanted):
                writer.add(number / 100, row.tolist())
    (part,) = unfinished(tmp_path)
    found = recover(part)
    assert len(found) > 200
    assert found.joints_rad.tolist() == wanted[: len(found)].tolist()


def test_a_disk_that_is_full_at_the_end_keeps_the_recording(tmp_path: Path) -> None:
    writer = TakeWriter(tmp_path / "wave.mcap", NAMES)
    for number in range(60):
        writer.add(number / 100, [0.1] * 3)
    with full_disk(writer.part.stat().st_size + 10):
        with pytest.raises(BadRequestError, match="cannot be written"):
            writer.finish()
    assert not writer.path.exists()
    assert len(recover(writer.part)) >= 50


# ---- cut off ------------------------------------------------------------------------------------

CHILD = """
import os, sys
from pathlib import Path
from rote.motion.files.take_writer import TakeWriter

writer = TakeWriter(Path(sys.argv[1]), ("waist_yaw_joint", "left_elbow_joint"), source="child")
for number in range(10_000_000):
    writer.add(number / 100, (number / 1e7, -number / 1e7))
    os.write(1, b"%d\\n" % number)
"""


@contextmanager
def recording(path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a process that records as fast as it can, and be certain that it is gone at the end."""
    command = [sys.executable, "-c", CHILD, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.slow
@pytest.mark.parametrize("samples", sample_parameters([149, 55, 1000, 2345], 1))
def test_kill_9_loses_at_most_the_last_second(tmp_path: Path, samples: int) -> None:
    with recording(tmp_path / "wave.mcap") as process:
        assert process.stdout is not None
        said = b"".join(process.stdout.readline() for _ in range(samples))
        assert unfinished(tmp_path) == []
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        added = int((said + process.stdout.read()).rpartition(b"\n")[0].rpartition(b"\n")[2])
    assert [path.name for path in tmp_path.iterdir()] == ["wave.mcap.part"]
    (part,) = unfinished(tmp_path)
    found = recover(part)
    assert found.times_s[-1] >= added / 100 - 1.0
    assert found.times_s.tolist() == [number / 100 for number in range(len(found))]
    assert found.joints_rad[:, 1].tolist() == [-number / 1e7 for number in range(len(found))]
    assert found.source == "child"
    with pytest.raises(BadRequestError, match=rf"cut off after {len(found)} samples"):
        load_mcap(part)


def assert_prefix(found: Track, wanted: Track) -> None:
    count = len(found)
    assert 2 <= count <= len(wanted)
    np.testing.assert_allclose(found.times_s, wanted.times_s[:count], rtol=0, atol=1e-9)
    assert found.joints_rad.tolist() == wanted.joints_rad[:count].tolist()
    assert (found.names, found.source) == (wanted.names, wanted.source)


def test_a_take_cut_anywhere_gives_its_first_samples_or_a_bad_request(tmp_path: Path) -> None:
    track = replace(waving(56, NAMES[:1]), marks=())
    path = recorded(tmp_path / "wave.mcap", track)
    counts = []
    for size in range(path.stat().st_size - 1, -1, -3):
        os.truncate(path, size)
        try:
            found = recover(path)
        except BadRequestError:
            counts.append(0)
            continue
        assert_prefix(found, track)
        counts.append(len(found))
    # Chunks end after samples 1, 51 and 56, and one sample is no motion.
    assert counts == sorted(counts, reverse=True)
    assert set(counts) == {56, 51, 0}


@given(share=st.floats(0, 1), new=st.binary(min_size=1, max_size=12))
def test_recovering_a_damaged_take_gives_its_first_samples_or_a_bad_request(
    share: float, new: bytes
) -> None:
    track = replace(waving(56, NAMES[:1]), marks=())
    with tempfile.TemporaryDirectory() as folder:
        path = recorded(Path(folder) / "wave.mcap", track)
        data = bytearray(path.read_bytes())
        place = int(share * (len(data) - len(new)))
        data[place : place + len(new)] = new
        path.write_bytes(data)
        with suppress(BadRequestError):
            found = recover(path)
            # Words have no checksum, samples have one.
            assert_prefix(replace(found, source=track.source), track)
        with suppress(BadRequestError):
            read_summary(path)


def spans_of(data: bytes) -> list[tuple[int, int]]:
    """Return where each record begins and ends, from the file's beginning."""
    spans, place = [], 8
    while place < len(data) - 8:
        end = place + 9 + struct.unpack_from("<Q", data, place + 1)[0]
        spans.append((place, end))
        place = end
    return spans


@pytest.mark.parametrize("how", ["another kind", "as long as two", "as long as three"])
def test_no_wrong_byte_outside_the_chunks_joins_samples_over_a_hole(
    tmp_path: Path, how: str
) -> None:
    track = replace(waving(120, NAMES[:1]), marks=())
    path = recorded(tmp_path / "wave.mcap", track)
    whole = path.read_bytes()
    spans = spans_of(whole)
    counts, loaded = set(), 0
    for number, (begin, _) in enumerate(spans):
        data = bytearray(whole)
        if how == "another kind":
            data[begin] = 0x7F  # a reader passes over kinds it does not know
        else:
            _, end = spans[min(number + (1 if how == "as long as two" else 2), len(spans) - 1)]
            data[begin + 1 : begin + 9] = struct.pack("<Q", end - begin - 9)
        path.write_bytes(data)
        with suppress(BadRequestError):
            found = recover(path)
            assert_prefix(replace(found, source=track.source), track)
            counts.add(len(found))
        with suppress(BadRequestError):
            assert len(load_mcap(path)) == len(track)
            loaded += 1
    assert counts >= {51, 101, 120}
    assert loaded


def test_a_finished_take_that_lost_its_last_samples_is_known_to_be_damaged(tmp_path: Path) -> None:
    track = replace(waving(56, NAMES[:1]), marks=())
    path = recorded(tmp_path / "wave.mcap", track)
    data = bytearray(path.read_bytes())
    last = [begin for begin, _ in spans_of(bytes(data)) if data[begin] == mcap_records.CHUNK][-1]
    data[last] = 0x7F
    path.write_bytes(data)
    with pytest.raises(BadRequestError, match="damaged after 51 samples") as caught:
        load_mcap(path)
    assert "mcap_file.recover(path)" in caught.value.remedy
    assert recover(path).history[-1] == "recover a recording that was cut off"


def test_a_finished_take_is_recovered_as_it_is(take: Path) -> None:
    assert_same(recover(take), waving())


@pytest.mark.parametrize("count", [0, 1])
def test_a_recording_of_next_to_nothing_holds_nothing_to_recover(
    tmp_path: Path, count: int
) -> None:
    with pytest.raises(KeyError), TakeWriter(tmp_path / "wave.mcap", NAMES) as writer:
        for number in range(count):
            writer.add(float(number), [0.0] * 3)
        raise KeyError
    with pytest.raises(BadRequestError, match="nothing in it can be recovered"):
        recover(writer.part)
    with pytest.raises(BadRequestError) as caught:
        load_mcap(writer.part)
    assert "recover(path)" not in caught.value.remedy


def test_a_recording_that_vanishes_is_not_unfinished(tmp_path: Path) -> None:
    (tmp_path / "gone.mcap.part").symlink_to(tmp_path / "nowhere")
    assert unfinished(tmp_path) == []


# ---- files of others ----------------------------------------------------------------------------

Message = tuple[str, int, Sequence[str], Sequence[float]]


def foreign(
    path: Path,
    messages: Sequence[Message],
    *,
    compression: CompressionType = CompressionType.ZSTD,
    chunked: bool = True,
    schema: tuple[str, str, str] = (SCHEMA_NAME, "ros2msg", "cdr"),
) -> Path:
    """Write joint states as another program would: (topic, ns, names, angles) each."""
    with path.open("wb") as file:
        writer: Any = Writer(file, compression=compression, use_chunking=chunked)
        writer.start()
        name, encoding, message_encoding = schema
        schema_id = writer.register_schema(name, encoding, SCHEMA.encode())
        writer.register_channel("/log", "json", 0)
        channels = {
            topic: writer.register_channel(topic, message_encoding, schema_id)
            for topic in dict.fromkeys(message[0] for message in messages)
        }
        for topic, time_ns, names, angles in messages:
            writer.add_message(1, time_ns, b"{}", time_ns)
            data = Encoder(names).encode(time_ns, angles)
            writer.add_message(channels[topic], time_ns, data, time_ns)
        writer.add_metadata("theirs", {"a": "b"})
        writer.add_attachment(0, 0, "notes.txt", "text/plain", b"hello")
        writer.finish()
    return path


def told(topic: str = TOPIC, count: int = 3) -> list[Message]:
    return [(topic, number * 10**9, NAMES, [number / 10] * 3) for number in range(count)]


@pytest.mark.parametrize("compression", list(CompressionType))
@pytest.mark.parametrize("chunked", [True, False])
def test_joint_states_of_another_program_are_a_track(
    tmp_path: Path, compression: CompressionType, chunked: bool
) -> None:
    path = foreign(
        tmp_path / "bag.mcap", told("/robot/joints"), compression=compression, chunked=chunked
    )
    found = files.load(path)
    assert found.times_s.tolist() == [0.0, 1.0, 2.0]
    assert (found.names, found.source, found.history) == (NAMES, "file bag.mcap", ())
    said = read_summary(path)
    assert (said.samples, said.duration_s, said.metadata.names) == (3, 2.0, NAMES)


def test_of_several_topics_the_usual_one_is_taken(tmp_path: Path) -> None:
    path = foreign(tmp_path / "bag.mcap", told("/other", 5) + told(TOPIC, 3))
    assert len(files.load(path)) == 3


def test_several_topics_none_of_them_usual_are_refused_by_name(tmp_path: Path) -> None:
    path = foreign(tmp_path / "bag.mcap", told("/left") + told("/right"))
    with pytest.raises(BadRequestError, match="/left, /right"):
        files.load(path)


@pytest.mark.parametrize(
    "schema",
    [
        ("foxglove.JointStates", "jsonschema", "json"),
        (SCHEMA_NAME, "ros2idl", "cdr"),
        (SCHEMA_NAME, "ros2msg", "json"),
    ],
)
def test_other_messages_are_refused_with_what_was_found(
    tmp_path: Path, schema: tuple[str, str, str]
) -> None:
    path = foreign(tmp_path / "bag.mcap", told(), schema=schema)
    with pytest.raises(BadRequestError, match=schema[0]) as refused:
        files.load(path)
    assert "sensor_msgs/msg/JointState" in refused.value.remedy


def test_joints_that_change_on_the_way_are_refused_by_the_message(tmp_path: Path) -> None:
    path = foreign(tmp_path / "bag.mcap", [*told(), (TOPIC, 3 * 10**9, NAMES[:2], [0.0] * 2)])
    with pytest.raises(BadRequestError, match="from message 4 on: its joints are not"):
        files.load(path)
    assert len(recover(path)) == 3


def test_recovering_stops_at_the_first_sample_that_is_not_sound(tmp_path: Path) -> None:
    path = foreign(tmp_path / "bag.mcap", [*told(), (TOPIC, 10**9, NAMES, [0.0] * 3)])
    with pytest.raises(BadRequestError, match=r"message 4 cannot be read.*not later"):
        files.load(path)
    assert len(recover(path)) == 3


def rewritten(take: Path, change: Callable[[Any], None]) -> Path:
    """Return a take with more records at its end."""
    with take.open("wb") as file:
        writer: Any = Writer(file)
        writer.start()
        schema = writer.register_schema(SCHEMA_NAME, "ros2msg", SCHEMA.encode())
        channel = writer.register_channel(TOPIC, "cdr", schema)
        for number in range(3):
            data = Encoder(NAMES).encode(number * 10**9, [0.0] * 3)
            writer.add_message(channel, number * 10**9, data, 0)
        change(writer)
        writer.finish()
    return take


@pytest.mark.parametrize(
    ("metadata", "problem"),
    [
        ({"names": '["x"]'}, "different joints"),
        ({"names": "["}, "cannot be read from message 1 on"),
        ({"names": "3"}, "names cannot be read"),
        ({}, "different joints"),
    ],
)
def test_words_that_do_not_fit_the_messages_are_refused(
    take: Path, metadata: dict[str, str], problem: str
) -> None:
    rewritten(take, lambda writer: writer.add_metadata("rote.take", metadata))
    with pytest.raises(BadRequestError, match=problem):
        load_mcap(take)


@pytest.mark.parametrize(
    "data", [b"", b"\0" * 16, np.array([0.0, 1.5, 2.0]).tobytes()], ids=["none", "few", "other"]
)
def test_exact_times_of_other_messages_are_not_believed(take: Path, data: bytes) -> None:
    rewritten(take, lambda writer: writer.add_attachment(0, 0, "times_s.f64", "", data))
    assert load_mcap(take).times_s.tolist() == [0.0, 1.0, 2.0]


def chunk_of(data: bytes, compression: str = "", size: int | None = None, crc: int = 0) -> Chunk:
    return Chunk(
        compression=compression,
        data=data,
        message_start_time=0,
        message_end_time=0,
        uncompressed_crc=crc,
        uncompressed_size=len(data) if size is None else size,
    )


def test_a_chunk_is_never_larger_than_it_may_be() -> None:
    import lz4.frame
    import zstandard

    assert mcap_records.unpack_chunk(chunk_of(b"abc", crc=zlib.crc32(b"abc")), 3) == b"abc"
    with pytest.raises(DecodeError, match="too large"):
        mcap_records.unpack_chunk(chunk_of(b"abc"), 2)
    zeros = bytes(50_000_000)
    for compression, packed in (
        ("zstd", zstandard.compress(zeros)),
        ("lz4", lz4.frame.compress(zeros)),
    ):
        with pytest.raises(DecodeError, match="damaged"):
            mcap_records.unpack_chunk(chunk_of(packed, compression, 10), 100)
    with pytest.raises(DecodeError, match="damaged"):
        mcap_records.unpack_chunk(chunk_of(b"abc", crc=1), 3)
    with pytest.raises(DecodeError, match="'brotli'"):
        mcap_records.unpack_chunk(chunk_of(b"abc", "brotli"), 3)


def test_all_chunks_together_are_bounded(take: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(TOPIC, number * 10**9, NAMES, [0.0] * 3) for number in range(50)]
    foreign(take, rows, compression=CompressionType.ZSTD)
    monkeypatch.setattr(disk, "MAX_BYTES", 4000)
    assert take.stat().st_size < 4000
    with pytest.raises(BadRequestError, match="too large"):
        load_mcap(take)


def test_a_chunk_inside_a_chunk_is_not_opened(tmp_path: Path) -> None:
    path = foreign(tmp_path / "bag.mcap", told(), compression=CompressionType.NONE)
    data, place = path.read_bytes(), 8
    while data[place] != mcap_records.CHUNK:
        place += 9 + int.from_bytes(data[place + 1 : place + 9], "little")
    end = place + 9 + int.from_bytes(data[place + 1 : place + 9], "little")
    inside = data[place:end]
    chunk = struct.pack("<QQQIIQ", 0, 0, len(inside), 0, 0, len(inside)) + inside
    path.write_bytes(data[:place] + struct.pack("<BQ", 6, len(chunk)) + chunk + data[end:])
    with pytest.raises(BadRequestError, match="no joint states"):
        load_mcap(path)


# ---- without the library ------------------------------------------------------------------------


def test_without_mcap_the_extra_is_named(
    take: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mcap", None)
    for attempt in (
        lambda: files.load(take),
        lambda: files.save(waving(), tmp_path / "other.mcap"),
        lambda: TakeWriter(tmp_path / "other.mcap", NAMES),
        lambda: recover(take),
    ):
        with pytest.raises(MissingExtraError) as missing:
            attempt()
        assert "rote-robot[mcap]" in missing.value.remedy
    assert list(tmp_path.iterdir()) == [take]
