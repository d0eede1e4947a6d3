"""Takes as MCAP: the native format, written so that a crash loses at most the last second.

A take is one topic, `/joint_states`, of ROS 2 joint states: Foxglove, PlotJuggler and rerun open
it without a plugin. A track's other fields are in the metadata record `rote.take`. A message's
time is a whole number of nanoseconds; if that is not exactly the track's time, the exact times are
in an attachment, so that a finished file loses nothing.

A recording in progress is `NAME.mcap.part`. It gets its name when it is finished; after a crash,
`recover` reads it up to its last whole chunk.

A file of any length is read chunk by chunk; in memory there is one chunk and the samples so far.
"""

import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from rote.errors import BadRequestError, DecodeError
from rote.motion.body.root_path import RootPath
from rote.motion.files import disk
from rote.motion.files import mcap_records as records
from rote.motion.files.joint_state import (
    MAX_STAMP_S,
    SCHEMA,
    SCHEMA_NAME,
    Decoder,
    Encoder,
    Stamps,
)
from rote.motion.files.metadata import (
    FileLocation,
    Summary,
    TakeMetadata,
    assemble,
    check_length,
    first_unsound,
    from_document,
    metadata_of,
    root_rows,
    to_document,
)
from rote.motion.track import Array, Track

__all__ = ["save_mcap", "load_mcap", "recover"]

TOPIC = "/joint_states"

_MESSAGE = struct.Struct("<HIQQ")
_RECORD_BYTES = 9 + _MESSAGE.size
_IN_CHUNKS = frozenset({records.SCHEMA, records.CHANNEL, records.MESSAGE})
_NOT_SUMMARY = frozenset({records.CHUNK, records.MESSAGE_INDEX, records.ATTACHMENT})
_WORDS = "rote.take"
_TIMES = "times_s.f64"
_ROOT = "root.f64"  # of each sample x, y, z in m and a quaternion, w first
_TEXTS = ("variant", "source")
_OURS = f"{SCHEMA_NAME} (ros2msg)"
_ROWS = 1000  # samples in one chunk, about 1 MB
_EXACT_NS = 2**53  # up to here a whole number is a float too


def file_location(path: Path) -> FileLocation:
    """Return how messages are counted: from 1, joint states only."""
    return FileLocation(str(path), "message")


# ---- writing ------------------------------------------------------------------------------------


def save_mcap(track: Track, path: Path, tags: tuple[str, ...] = ()) -> None:
    """Write `track`; the file appears only when it is complete."""
    metadata = metadata_of(track, tags)
    times_ns = nanoseconds(track.times_s, path)
    with disk.write_atomically(path, in_pieces=True) as file:
        stream = McapStream(file, metadata)
        for begin in range(0, len(track), _ROWS):
            part = slice(begin, begin + _ROWS)
            rows = track.joints_rad[part].tolist()
            for time_ns, row in zip(times_ns[part].tolist(), rows, strict=True):
                stream.add(time_ns, row)
            stream.flush()
            disk.check_size(path, stream.chunk_bytes * len(rows))
        stream.finish(metadata, track.times_s, times_ns, track.root)


class McapStream:
    """Writes a take's records into an open file, in order."""

    def __init__(self, file: BinaryIO, metadata: TakeMetadata) -> None:
        self._encoder = Encoder(metadata.names)
        self._writer = records.writer(file)
        self._first_ns: int | None = None
        self._count = 0
        self.chunk_bytes = 0
        """The size of a sample in a chunk, before compression."""
        self._writer.start(profile="ros2", library="rote")
        self._writer.add_metadata(_WORDS, _to_metadata(metadata))
        schema = self._writer.register_schema(SCHEMA_NAME, "ros2msg", SCHEMA.encode())
        qos = {"offered_qos_profiles": ""}
        self._channel = self._writer.register_channel(TOPIC, "cdr", schema, qos)

    def add(self, time_ns: int, row: Sequence[float]) -> None:
        """Write one sample."""
        if self._first_ns is None:
            self._first_ns = time_ns
        # The stamp inside the message has a sign, the time of its record has none.
        log_ns = time_ns - min(self._first_ns, 0)
        data = self._encoder.encode(time_ns, row)
        self.chunk_bytes = len(data) + _RECORD_BYTES
        self._writer.add_message(self._channel, log_ns, data, log_ns, self._count)
        self._count += 1

    def flush(self) -> None:
        """End the chunk, so that the added samples can be read even after a crash."""
        self._writer.flush()

    def finish(
        self,
        metadata: TakeMetadata,
        times_s: Array,
        times_ns: Stamps,
        root: RootPath | None = None,
    ) -> None:
        """Write the end of the file: the final metadata, the exact times, the root, the indexes."""
        self._writer.flush()
        self._writer.add_metadata(_WORDS, _to_metadata(metadata))
        if not np.array_equal(_to_seconds(times_ns), times_s):
            data = times_s.astype("<f8").tobytes()
            self._writer.add_attachment(0, 0, _TIMES, "application/octet-stream", data)
        if root is not None:
            data = root_rows(root).astype("<f8").tobytes()
            self._writer.add_attachment(0, 0, _ROOT, "application/octet-stream", data)
        self._writer.finish()


def _to_metadata(metadata: TakeMetadata) -> dict[str, str]:
    document = to_document(metadata)
    texts = {name: document.pop(name) for name in _TEXTS}
    return texts | {name: json.dumps(value) for name, value in document.items()}


def nanoseconds(times_s: Array, path: Path) -> Stamps:
    """Return times as the message's stamp can hold them."""
    # Whole seconds are converted separately: together they would overflow before they are refused.
    whole = np.floor(times_s)
    if times_s.size and not (abs(whole) < MAX_STAMP_S).all():
        raise BadRequestError(
            f"{path} cannot be written: MCAP holds times up to 68 years, not {times_s[-1]:g} s",
            "Let the track begin at 0.",
        )
    rest = np.rint((times_s - whole) * 1e9)
    return whole.astype(np.int64) * 10**9 + rest.astype(np.int64)


def _to_seconds(times_ns: Stamps) -> Array:
    if np.abs(times_ns).max(initial=0) < _EXACT_NS:
        return times_ns / 1e9
    # Rounded once, not twice.
    return np.array([time_ns / 10**9 for time_ns in times_ns.tolist()], dtype=np.float64)


# ---- reading ------------------------------------------------------------------------------------


def load_mcap(path: Path) -> Track:
    """Read a finished take; a `BadRequestError` names the message that cannot be used."""
    reading = _read_file(path, mend=False)
    if not reading.whole:
        lost = "damaged" if reading.finished else "cut off"
        remedy = "Record again: nothing in it can be recovered."
        if reading.samples > 1:
            remedy = f"Record again, or recover them in Python: {recover.__module__}.recover(path)."
        raise file_location(path).error(f"it is {lost} after {reading.samples} samples", remedy)
    return reading.track()


def recover(path: Path) -> Track:
    """Read a recording that was cut off, up to the last chunk that is whole."""
    reading = _read_file(path, mend=True)
    whole = reading.whole
    track = reading.track() if reading.samples else None
    if track is None or len(track) < 2:
        raise file_location(path).error("nothing in it can be recovered")
    return track if whole else track.edited("recover a recording that was cut off")


def summary(path: Path) -> Summary:
    """Return a take's summary; quickly, if it is finished and written by rote."""
    reading = _read_file(path, mend=False, skip=_NOT_SUMMARY)
    if reading.metadata and reading.counted and reading.finished:
        return Summary(reading.metadata, *reading.counted)
    track = load_mcap(path)
    return Summary(metadata_of(track), len(track), track.duration_s)


def _read_file(path: Path, *, mend: bool, skip: frozenset[int] = frozenset()) -> "_Reading":
    records.need_mcap()
    reading = _Reading(path, mend=mend)
    with disk.open_checked(path, in_pieces=records.MAGIC) as file:
        reading.read(file, skip)
    return reading


class _Samples:
    """The samples of one topic, as blocks of times in nanoseconds and positions."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.count = 0
        self._blocks: list[tuple[Stamps, Array]] = []

    def add(self, times_ns: Stamps, joints_rad: Array) -> None:
        self._blocks.append((times_ns, joints_rad))
        self.count += len(times_ns)

    def take_all(self) -> tuple[Stamps, Array]:
        """Return all times and positions, and drop the blocks, so that nothing is in memory
        twice."""
        times_ns = np.empty(self.count, dtype=np.int64)
        joints_rad = np.empty((self.count, len(self.names)))
        end = self.count
        while self._blocks:
            some_ns, some_rad = self._blocks.pop()
            begin = end - len(some_ns)
            times_ns[begin:end], joints_rad[begin:end] = some_ns, some_rad
            end = begin
        return times_ns, joints_rad


class _Reading:
    """The content read from a file so far. With `mend`, the file ends at the first fault."""

    def __init__(self, path: Path, *, mend: bool) -> None:
        self.location = file_location(path)
        self.metadata: TakeMetadata | None = None
        self.finished = False
        self.counted: tuple[int, float] | None = None
        self._mend = mend
        self._schemas: dict[int, str] = {}
        self._topics: dict[int, str] = {}
        self._samples: dict[str, _Samples] = {}
        self._sequences: dict[str, int] = {}
        self._decoder = Decoder()
        self._exact: bytes | None = None
        self._root: bytes | None = None

    @property
    def samples(self) -> int:
        return max((each.count for each in self._samples.values()), default=0)

    @property
    def whole(self) -> bool:
        """Whether the end record is there, and as many samples before it as it states."""
        counted = self.counted if self.metadata else None
        return self.finished and (counted is None or counted[0] == self.samples)

    def read(self, file: BinaryIO, skip: frozenset[int]) -> None:
        if file.read(len(records.MAGIC)) != records.MAGIC:
            raise self.location.error("it is not an MCAP file")
        try:
            self._take_records(file, skip)
        except BadRequestError:
            if not self._mend:
                raise
        except records.faults() as error:
            if not self._mend:
                number = self.samples + 1
                raise self.location.error(
                    f"it cannot be read from message {number} on: {error}"
                ) from None

    def _take_records(self, file: BinaryIO, skip: frozenset[int]) -> None:
        for code, content in records.records(file, skip, disk.MAX_BYTES):
            self._take_record(code, content)
            if self.finished:
                self.finished = file.read(len(records.MAGIC)) == records.MAGIC
                return

    def _take_record(self, code: int, content: bytes) -> None:
        if code == records.MESSAGE:
            self._take_message(content)
        elif code == records.CHUNK:
            self._take_chunk(content)
        elif code == records.SCHEMA:
            record = records.parse_record("Schema", content)
            self._schemas[record.id] = f"{record.name} ({record.encoding})"
        elif code == records.CHANNEL:
            channel = records.parse_record("Channel", content)
            schema = self._schemas.get(channel.schema_id)
            if (schema, channel.message_encoding) == (_OURS, "cdr"):
                self._topics[channel.id] = channel.topic
        elif code == records.METADATA:
            self._take_metadata(content)
        elif code == records.ATTACHMENT:
            attachment = records.parse_record("Attachment", content)
            self._exact = attachment.data if attachment.name == _TIMES else self._exact
            self._root = attachment.data if attachment.name == _ROOT else self._root
        elif code == records.STATISTICS:
            statistics = records.parse_record("Statistics", content)
            lasted_ns = statistics.message_end_time - statistics.message_start_time
            self.counted = statistics.message_count, lasted_ns / 1e9
        elif code == records.FOOTER:
            self.finished = True

    def _take_chunk(self, content: bytes) -> None:
        data = records.unpack_chunk(records.parse_record("Chunk", content), disk.MAX_BYTES)
        offset = 0
        while offset < len(data):
            record = records.record_at(data, offset)
            offset = record.end
            if record.code in _IN_CHUNKS:
                self._take_record(record.code, data[record.content : record.end])
            if record.code == records.MESSAGE:
                offset += self._take_similar_messages(data, record)

    def _take_message(self, content: bytes) -> None:
        channel, sequence, _, _ = _MESSAGE.unpack_from(content)
        topic = self._topics.get(channel)
        if topic is None:
            return
        self._check_next(topic, sequence)
        state = self._decoder.decode(content[_MESSAGE.size :])
        samples = self._samples.setdefault(topic, _Samples(state.names))
        if state.names != samples.names:
            raise DecodeError("its joints are not those of the first message")
        self._check_room(samples, 1)
        samples.add(np.array([state.time_ns]), state.joints_rad[None, :])

    def _take_similar_messages(self, data: bytes, first: records.ChunkSpan) -> int:
        """Take the messages after one that was just read, all at once; return their size in bytes.

        No message is taken that `_take_message` would read differently, or refuse.
        """
        channel, before = _MESSAGE.unpack_from(data, first.content)[:2]
        topic = self._topics.get(channel)
        rows = records.similar_records(data, first)
        if topic is None or not len(rows):
            return 0
        channel_bytes = np.frombuffer(data, np.uint8, 2, first.content)
        rows = rows[: records.count_leading((rows[:, :2] == channel_bytes).all(axis=1))]
        sequences = np.ascontiguousarray(rows[:, 2:6]).view("<u4")[:, 0].astype(np.int64)
        if self.metadata:
            follows = sequences <= np.concatenate([[before], sequences[:-1]]) + 1
            rows = rows[: records.count_leading(follows)]
        times_ns, joints_rad = self._decoder.decode_alike(rows[:, _MESSAGE.size :])
        if len(times_ns):
            samples = self._samples[topic]
            self._check_room(samples, len(times_ns))
            samples.add(times_ns, joints_rad)
            self._sequences[topic] = int(sequences[len(times_ns) - 1])
        return len(times_ns) * (first.end - first.begin)

    def _check_room(self, samples: _Samples, more: int) -> None:
        others = sum(each.count for each in self._samples.values())
        check_length(others + more, len(samples.names), self.location)

    def _check_next(self, topic: str, sequence: int) -> None:
        """Refuse a message after lost ones: the messages of a take are numbered consecutively.

        A chunk has a checksum, but its record kind and its length have none: with one wrong byte
        there, the samples before a gap would be joined to those after it.
        """
        before = self._sequences.get(topic, sequence)
        if self.metadata and sequence > before + 1:
            raise DecodeError(f"{sequence - before - 1} messages before the next one are missing")
        self._sequences[topic] = sequence

    def _take_metadata(self, content: bytes) -> None:
        metadata = records.parse_record("Metadata", content)
        if metadata.name == _WORDS:
            found = metadata.metadata
            texts = {name: found.pop(name) for name in _TEXTS if name in found}
            lists = {name: json.loads(value) for name, value in found.items()}
            self.metadata = from_document(texts | lists, self.location)

    def track(self) -> Track:
        samples = self._choose_samples()
        self._samples = {}
        names = samples.names
        metadata = self.metadata or TakeMetadata(names=names, source=self.location.source)
        if metadata.names != names:
            raise self.location.error("its metadata and its messages name different joints")
        times_ns, joints_rad = samples.take_all()
        times_s = self._exact_times_s(times_ns)
        if self._mend and (bad := first_unsound(times_s, joints_rad)) is not None:
            times_s, joints_rad = times_s[:bad].copy(), joints_rad[:bad].copy()
        joints_rad.setflags(write=False)
        return assemble(metadata, times_s, joints_rad, self.location, self._read_root(len(times_s)))

    def _read_root(self, samples: int) -> Array | None:
        """Return the root's path, (n, 7), if there is one; in a mended file only if it is whole."""
        if self._root is None:
            return None
        if len(self._root) != 7 * 8 * samples:
            if self._mend:
                return None
            raise self.location.error(f"{samples} samples do not match its root's path")
        return np.frombuffer(self._root, "<f8").astype(np.float64).reshape(samples, 7)

    def _choose_samples(self) -> _Samples:
        topics = sorted(self._samples)
        if TOPIC in topics or len(topics) == 1:
            return self._samples[TOPIC if TOPIC in topics else topics[0]]
        if topics:
            problem = f"it holds several topics with joints: {', '.join(topics)}"
            raise self.location.error(problem, f"Keep one of them, or name one {TOPIC}.")
        held = ", ".join(sorted(set(self._schemas.values()))) or "none"
        raise self.location.error(
            f"it holds no joint states; its messages: {held}",
            f"A track needs {_OURS}, encoded as cdr.",
        )

    def _exact_times_s(self, times_ns: Stamps) -> Array:
        """Return the times in seconds, exact if the attachment belongs to these messages."""
        times_s = _to_seconds(times_ns)
        if self._exact is not None and len(self._exact) == times_s.nbytes:
            exact = np.frombuffer(self._exact, "<f8").astype(np.float64)
            if (np.abs(exact - times_s) <= 1e-9 + np.spacing(np.abs(times_s))).all():
                return exact
        return times_s
