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
    assemble_track,
    check_length,
    find_invalid_sample,
    from_document,
    metadata_of,
    to_document,
    to_root_rows,
)
from rote.motion.track import Array, Track

__all__ = ["save_mcap", "load_mcap", "recover"]

TOPIC = "/joint_states"

_MESSAGE = struct.Struct("<HIQQ")  # channel, sequence number, log time, publish time
_CHANNEL_BYTES, _SEQUENCE_BYTES = slice(0, 2), slice(2, 6)
_RECORD_BYTES = 9 + _MESSAGE.size  # with the opcode and the length in front
_CHUNK_RECORDS = frozenset({records.SCHEMA, records.CHANNEL, records.MESSAGE})
_SKIPPED_BY_SUMMARY = frozenset({records.CHUNK, records.MESSAGE_INDEX, records.ATTACHMENT})
_METADATA_NAME = "rote.take"
_TIMES_ATTACHMENT = "times_s.f64"
_ROOT_ATTACHMENT = "root.f64"  # of each sample x, y, z in m and a quaternion, w first
_TEXT_FIELDS = ("variant", "source")  # of the metadata; the other fields are JSON
_JOINT_STATES = f"{SCHEMA_NAME} (ros2msg)"
_CHUNK_SAMPLES = 1000  # samples in one chunk, about 1 MB
_EXACT_NS = 2**53  # below this, a float holds every whole number


def file_location(path: Path) -> FileLocation:
    """Return how errors name a message of this file: joint states are counted from 1."""
    return FileLocation(str(path), "message")


# ---- writing ------------------------------------------------------------------------------------


def save_mcap(track: Track, path: Path, tags: tuple[str, ...] = ()) -> None:
    """Write `track`; the file appears only when it is complete."""
    metadata = metadata_of(track, tags)
    times_ns = to_nanoseconds(track.times_s, path)
    with disk.write_atomically(path, in_pieces=True) as file:
        stream = McapStream(file, metadata)
        for begin in range(0, len(track), _CHUNK_SAMPLES):
            chunk = slice(begin, begin + _CHUNK_SAMPLES)
            rows = track.joints_rad[chunk].tolist()
            for time_ns, row in zip(times_ns[chunk].tolist(), rows, strict=True):
                stream.add(time_ns, row)
            stream.flush()
            disk.check_size(path, stream.sample_bytes * len(rows))
        stream.finish(metadata, track.times_s, times_ns, track.root)


class McapStream:
    """Writes a take's records into an open file, in order."""

    def __init__(self, file: BinaryIO, metadata: TakeMetadata) -> None:
        self._encoder = Encoder(metadata.names)
        self._writer = records.open_writer(file)
        self._first_ns: int | None = None
        self._sample_count = 0
        self.sample_bytes = 0
        """The size of a sample in a chunk, before compression."""
        self._writer.start(profile="ros2", library="rote")
        self._writer.add_metadata(_METADATA_NAME, _to_metadata_fields(metadata))
        schema = self._writer.register_schema(SCHEMA_NAME, "ros2msg", SCHEMA.encode())
        qos = {"offered_qos_profiles": ""}
        self._channel = self._writer.register_channel(TOPIC, "cdr", schema, qos)

    def add(self, time_ns: int, row: Sequence[float]) -> None:
        """Write one sample."""
        if self._first_ns is None:
            self._first_ns = time_ns
        # The time of a record is unsigned, unlike the stamp in its message: if the first stamp is
        # negative, the times of the records are counted from it.
        log_ns = time_ns - min(self._first_ns, 0)
        data = self._encoder.encode(time_ns, row)
        self.sample_bytes = len(data) + _RECORD_BYTES
        self._writer.add_message(self._channel, log_ns, data, log_ns, self._sample_count)
        self._sample_count += 1

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
        self._writer.add_metadata(_METADATA_NAME, _to_metadata_fields(metadata))
        if not np.array_equal(_to_seconds(times_ns), times_s):
            data = times_s.astype("<f8").tobytes()
            self._writer.add_attachment(0, 0, _TIMES_ATTACHMENT, "application/octet-stream", data)
        if root is not None:
            data = to_root_rows(root).astype("<f8").tobytes()
            self._writer.add_attachment(0, 0, _ROOT_ATTACHMENT, "application/octet-stream", data)
        self._writer.finish()


def _to_metadata_fields(metadata: TakeMetadata) -> dict[str, str]:
    """Return metadata as text, the only type of a metadata record; lists become JSON."""
    document = to_document(metadata)
    texts = {name: document.pop(name) for name in _TEXT_FIELDS}
    return texts | {name: json.dumps(value) for name, value in document.items()}


def to_nanoseconds(times_s: Array, path: Path) -> Stamps:
    """Return times in nanoseconds; raises `BadRequestError` if a stamp cannot hold them."""
    # Whole seconds are converted separately: nanoseconds could overflow before they are refused.
    whole_s = np.floor(times_s)
    if times_s.size and not (abs(whole_s) < MAX_STAMP_S).all():
        raise BadRequestError(
            f"{path} cannot be written: MCAP holds times up to 68 years, not {times_s[-1]:g} s",
            "Let the track begin at 0.",
        )
    rest_ns = np.rint((times_s - whole_s) * 1e9)
    return whole_s.astype(np.int64) * 10**9 + rest_ns.astype(np.int64)


def _to_seconds(times_ns: Stamps) -> Array:
    if np.abs(times_ns).max(initial=0) < _EXACT_NS:
        return times_ns / 1e9
    # Dividing the integer rounds once; numpy would round it to a float first.
    return np.array([time_ns / 10**9 for time_ns in times_ns.tolist()], dtype=np.float64)


# ---- reading ------------------------------------------------------------------------------------


def load_mcap(path: Path) -> Track:
    """Read a finished take; a `BadRequestError` names the message that cannot be used."""
    content = _read_file(path, until_fault=False)
    if not content.is_complete:
        problem = "damaged" if content.has_end else "cut off"
        remedy = "Record again: nothing in it can be recovered."
        if content.sample_count > 1:
            remedy = f"Record again, or recover them in Python: {recover.__module__}.recover(path)."
        raise file_location(path).error(
            f"it is {problem} after {content.sample_count} samples", remedy
        )
    return content.make_track()


def recover(path: Path) -> Track:
    """Read a recording that was cut off, up to the last chunk that is whole."""
    content = _read_file(path, until_fault=True)
    is_complete = content.is_complete  # `make_track` drops the samples that this counts
    track = content.make_track() if content.sample_count else None
    if track is None or len(track) < 2:
        raise file_location(path).error("nothing in it can be recovered")
    return track if is_complete else track.edited("recover a recording that was cut off")


def read_summary(path: Path) -> Summary:
    """Return the metadata, the number of samples and the duration of a take.

    This reads all samples, unless rote wrote the file and finished it.
    """
    content = _read_file(path, until_fault=False, skip=_SKIPPED_BY_SUMMARY)
    if content.metadata and content.stated and content.has_end:
        return Summary(content.metadata, *content.stated)
    track = load_mcap(path)
    return Summary(metadata_of(track), len(track), track.duration_s)


def _read_file(path: Path, *, until_fault: bool, skip: frozenset[int] = frozenset()) -> "_Content":
    """Return the content of a file without the records whose opcode is in `skip`.

    With `until_fault` an invalid record ends the content; otherwise it raises `BadRequestError`.
    """
    records.require_mcap()
    content = _Content(path, until_fault=until_fault)
    with disk.open_checked(path, any_size_magic=records.MAGIC) as file:
        content.read(file, skip)
    return content


class _Samples:
    """The samples of one topic, as blocks of times in nanoseconds and positions."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.count = 0
        self._blocks: list[tuple[Stamps, Array]] = []

    def add(self, times_ns: Stamps, joints_rad: Array) -> None:
        self._blocks.append((times_ns, joints_rad))
        self.count += len(times_ns)

    def pop_all(self) -> tuple[Stamps, Array]:
        """Return all times and positions as two arrays.

        Each block is dropped when it is copied, so that the samples are not in memory twice.
        """
        times_ns = np.empty(self.count, dtype=np.int64)
        joints_rad = np.empty((self.count, len(self.names)))
        end = self.count
        while self._blocks:
            block_ns, block_rad = self._blocks.pop()
            begin = end - len(block_ns)
            times_ns[begin:end], joints_rad[begin:end] = block_ns, block_rad
            end = begin
        return times_ns, joints_rad


class _Content:
    """The content that was read from a file so far; see `_read_file`."""

    def __init__(self, path: Path, *, until_fault: bool) -> None:
        self.location = file_location(path)
        self.metadata: TakeMetadata | None = None
        self.has_end = False
        self.stated: tuple[int, float] | None = None
        """The number of messages and the duration in s that the file states at its end."""
        self._until_fault = until_fault
        self._schemas: dict[int, str] = {}
        self._topics: dict[int, str] = {}
        self._samples: dict[str, _Samples] = {}
        self._sequences: dict[str, int] = {}
        self._decoder = Decoder()
        self._exact_times: bytes | None = None
        self._root: bytes | None = None

    @property
    def sample_count(self) -> int:
        """The number of samples of the topic that has most."""
        return max((each.count for each in self._samples.values()), default=0)

    @property
    def is_complete(self) -> bool:
        """Whether the file has its end record, and as many samples as its statistics state."""
        # In a file of another program, messages may be something else than samples.
        stated = self.stated if self.metadata else None
        return self.has_end and (stated is None or stated[0] == self.sample_count)

    def read(self, file: BinaryIO, skip: frozenset[int]) -> None:
        if file.read(len(records.MAGIC)) != records.MAGIC:
            raise self.location.error("it is not an MCAP file")
        try:
            self._read_records(file, skip)
        except BadRequestError:
            if not self._until_fault:
                raise
        except records.fault_types() as error:
            if not self._until_fault:
                number = self.sample_count + 1
                raise self.location.error(
                    f"it cannot be read from message {number} on: {error}"
                ) from None

    def _read_records(self, file: BinaryIO, skip: frozenset[int]) -> None:
        for opcode, content in records.iterate_records(file, skip, disk.MAX_BYTES):
            self._add_record(opcode, content)
            if self.has_end:  # a whole file ends with the bytes that it begins with
                self.has_end = file.read(len(records.MAGIC)) == records.MAGIC
                return

    def _add_record(self, opcode: int, content: bytes) -> None:
        if opcode == records.MESSAGE:
            self._add_message(content)
        elif opcode == records.CHUNK:
            self._add_chunk(content)
        elif opcode == records.SCHEMA:
            record = records.parse_record("Schema", content)
            self._schemas[record.id] = f"{record.name} ({record.encoding})"
        elif opcode == records.CHANNEL:
            channel = records.parse_record("Channel", content)
            schema = self._schemas.get(channel.schema_id)
            if (schema, channel.message_encoding) == (_JOINT_STATES, "cdr"):
                self._topics[channel.id] = channel.topic
        elif opcode == records.METADATA:
            self._add_metadata(content)
        elif opcode == records.ATTACHMENT:
            self._add_attachment(content)
        elif opcode == records.STATISTICS:
            statistics = records.parse_record("Statistics", content)
            duration_ns = statistics.message_end_time - statistics.message_start_time
            self.stated = statistics.message_count, duration_ns / 1e9
        elif opcode == records.FOOTER:
            self.has_end = True

    def _add_chunk(self, content: bytes) -> None:
        data = records.unpack_chunk(records.parse_record("Chunk", content), disk.MAX_BYTES)
        offset = 0
        while offset < len(data):
            record = records.locate_record(data, offset)
            offset = record.end
            if record.opcode in _CHUNK_RECORDS:
                self._add_record(record.opcode, data[record.content_begin : record.end])
            if record.opcode == records.MESSAGE:
                offset += self._add_similar_messages(data, record)

    def _add_message(self, content: bytes) -> None:
        channel, sequence, _, _ = _MESSAGE.unpack_from(content)
        topic = self._topics.get(channel)
        if topic is None:
            return
        self._check_sequence(topic, sequence)
        state = self._decoder.decode(content[_MESSAGE.size :])
        samples = self._samples.setdefault(topic, _Samples(state.names))
        if state.names != samples.names:
            raise DecodeError("its joints are not those of the first message")
        self._check_total_length(samples, 1)
        samples.add(np.array([state.time_ns]), state.joints_rad[None, :])

    def _add_similar_messages(self, data: bytes, first: records.RecordSpan) -> int:
        """Add the messages after `first` that have its layout; return their size in bytes.

        This is fast, and its result equals that of `_add_message` for each. It stops before a
        message that `_add_message` would refuse.
        """
        channel, first_sequence, *_ = _MESSAGE.unpack_from(data, first.content_begin)
        topic = self._topics.get(channel)
        rows = records.find_similar_records(data, first)
        if topic is None or not len(rows):
            return 0
        channel_bytes = np.frombuffer(data, np.uint8, 2, first.content_begin)
        has_same_channel = (rows[:, _CHANNEL_BYTES] == channel_bytes).all(axis=1)
        rows = rows[: records.count_leading(has_same_channel)]
        sequences = np.ascontiguousarray(rows[:, _SEQUENCE_BYTES]).view("<u4")[:, 0]
        sequences = sequences.astype(np.int64)
        if self.metadata:  # as in `_check_sequence`
            previous = np.concatenate([[first_sequence], sequences[:-1]])
            rows = rows[: records.count_leading(sequences <= previous + 1)]
        times_ns, joints_rad = self._decoder.decode_many(rows[:, _MESSAGE.size :])
        if len(times_ns):
            samples = self._samples[topic]
            self._check_total_length(samples, len(times_ns))
            samples.add(times_ns, joints_rad)
            self._sequences[topic] = int(sequences[len(times_ns) - 1])
        return len(times_ns) * (first.end - first.begin)

    def _check_total_length(self, samples: _Samples, added: int) -> None:
        total = sum(each.count for each in self._samples.values())
        check_length(total + added, len(samples.names), self.location)

    def _check_sequence(self, topic: str, sequence: int) -> None:
        """Refuse a message after lost ones: the messages of a take are numbered consecutively.

        The content of a chunk has a checksum, but its opcode and its length have none: if one of
        these bytes is wrong, samples are lost, and those before and after the gap would be joined.
        """
        previous = self._sequences.get(topic, sequence)
        if self.metadata and sequence > previous + 1:
            missing = sequence - previous - 1
            raise DecodeError(f"{missing} messages before the next one are missing")
        self._sequences[topic] = sequence

    def _add_metadata(self, content: bytes) -> None:
        metadata = records.parse_record("Metadata", content)
        if metadata.name == _METADATA_NAME:
            fields = metadata.metadata
            texts = {name: fields.pop(name) for name in _TEXT_FIELDS if name in fields}
            lists = {name: json.loads(value) for name, value in fields.items()}
            self.metadata = from_document(texts | lists, self.location)

    def make_track(self) -> Track:
        """Return the samples as a track, and drop them here to save memory."""
        samples = self._choose_samples()
        self._samples = {}
        names = samples.names
        metadata = self.metadata or TakeMetadata(names=names, source=self.location.source)
        if metadata.names != names:
            raise self.location.error("its metadata and its messages name different joints")
        times_ns, joints_rad = samples.pop_all()
        times_s = self._compute_times_s(times_ns)
        end = find_invalid_sample(times_s, joints_rad) if self._until_fault else None
        if end is not None:
            times_s, joints_rad = times_s[:end].copy(), joints_rad[:end].copy()
        joints_rad.setflags(write=False)
        root = self._read_root(len(times_s))
        return assemble_track(metadata, times_s, joints_rad, self.location, root)

    def _read_root(self, samples: int) -> Array | None:
        """Return the path of the base, (n, 7); None if there is none.

        A path of another length is an error, or, in a file that was cut off, left out.
        """
        if self._root is None:
            return None
        if len(self._root) != 7 * 8 * samples:
            if self._until_fault:
                return None
            raise self.location.error(f"{samples} samples do not match its root's path")
        return np.frombuffer(self._root, "<f8").astype(np.float64).reshape(samples, 7)

    def _add_attachment(self, content: bytes) -> None:
        attachment = records.parse_record("Attachment", content)
        if attachment.name == _TIMES_ATTACHMENT:
            self._exact_times = attachment.data
        elif attachment.name == _ROOT_ATTACHMENT:
            self._root = attachment.data

    def _choose_samples(self) -> _Samples:
        """Return the samples of rote's own topic, or of the only topic with joint states."""
        topics = sorted(self._samples)
        if TOPIC in topics or len(topics) == 1:
            return self._samples[TOPIC if TOPIC in topics else topics[0]]
        if topics:
            problem = f"it holds several topics with joints: {', '.join(topics)}"
            raise self.location.error(problem, f"Keep one of them, or name one {TOPIC}.")
        schemas = ", ".join(sorted(set(self._schemas.values()))) or "none"
        raise self.location.error(
            f"it holds no joint states; its messages: {schemas}",
            f"A track needs {_JOINT_STATES}, encoded as cdr.",
        )

    def _compute_times_s(self, times_ns: Stamps) -> Array:
        """Return the times in seconds: those of the attachment if they fit the messages."""
        times_s = _to_seconds(times_ns)
        if self._exact_times is not None and len(self._exact_times) == times_s.nbytes:
            exact = np.frombuffer(self._exact_times, "<f8").astype(np.float64)
            # A stamp is rounded to a nanosecond, and its conversion to seconds to a float.
            if (np.abs(exact - times_s) <= 1e-9 + np.spacing(np.abs(times_s))).all():
                return exact
        return times_s
