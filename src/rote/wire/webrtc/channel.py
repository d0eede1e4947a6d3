"""The WebRTC data channel of a Unitree robot: a message is a JSON text, or one in a binary frame.

    validation              both   a challenge; base64(MD5("UnitreeGo2_" + challenge)); ok
    heartbeat               both   every two seconds from the client, echoed by the robot
    subscribe, unsubscribe  c→r    a topic
    msg                     both   what is published on a topic
    req, res                c→r→c  requests and responses, see rpc.py
    rtc_inner_req           both   asked in `data`, answered in `info`
    vid, aud                c→r    a media track on or off
    err                     r→c    "Validation Needed."
    errors                  r→c    all faults; add_error and rm_error: one

    binary frame (r→c, little-endian):  u16 n, u16 0, n bytes JSON, payload
                                 wide:  u16 2, u16 0, u32 n, u32 0, n bytes JSON, payload

`decode` raises only `DecodeError`, for any text and any bytes; a message of an unknown type becomes
an `Unknown`. Facts are from spec/datachannel.md, section 3.
"""

import base64
import hashlib
import struct
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

from rote.errors import BadRequestError, DecodeError, PayloadError, TruncatedError
from rote.wire.services import rpc
from rote.wire.services.faults import Change, Fault, Faults
from rote.wire.services.lenient import describe_value, read_whole
from rote.wire.services.rpc import NO_STATUS, RpcRequest, RpcResponse, read_field

MAX_MESSAGE = 8 * 2**20
"""Maximum length of a message in characters or bytes; real ones have a few thousand."""
MAX_TOPIC = 256
MAX_CHUNKS = 4096
MAX_ASSEMBLED = 16 * 2**20
MAX_ASSEMBLIES = 32

SIMULATED = b"rote".hex()
"""The prefix of a simulated robot's challenge, so that rote's client offers features that only a
simulator has.
"""
VALIDATION_OK = "Validation Ok."
VALIDATION_NEEDED = "Validation Needed."
RTT_PROBE = "rtt_probe_send_from_mechine"  # sic

_HEAD = struct.Struct("<HH")
_WIDE_HEAD = struct.Struct("<HHII")
_VERBS = ("unsubscribe", "subscribe")


class MessageTooLargeError(DecodeError):
    """The message is larger than any a robot sends, so it was not decoded."""

    def __init__(self, size: int) -> None:
        super().__init__(
            f"the message has {size} characters or bytes; the maximum is {MAX_MESSAGE}"
        )
        self.args = (size,)
        self.size = size


# ---- messages -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Validation:
    """A challenge, the answer to one, or `VALIDATION_OK`."""

    data: str


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A sign of life, with the sender's local time."""

    text: str = ""
    unix_s: int = 0


@dataclass(frozen=True, slots=True)
class Subscription:
    """The client subscribes to a topic, or unsubscribes."""

    topic: str
    active: bool = True
    """False unsubscribes."""


@dataclass(frozen=True, slots=True)
class ChannelMessage:
    """A message published on a topic: any JSON, and the bytes after it in a binary frame."""

    topic: str
    data: object = None
    binary: bytes = b""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Part `index` of `count`, counted from 1, of a response; see `Assembler`."""

    response: RpcResponse
    index: int
    count: int


@dataclass(frozen=True, slots=True)
class Inner:
    """A message to or from the robot's WebRTC service itself, not its other services.

    In JSON the content of a request is the field `data`, that of an answer the field `info`.
    """

    data: dict[str, Any]
    answer: bool = False


@dataclass(frozen=True, slots=True)
class Complaint:
    """The robot rejects what it was sent: `VALIDATION_NEEDED`, or something unknown."""

    info: str


class MediaTrack(Enum):
    """A media track."""

    VIDEO = "vid"
    AUDIO = "aud"


@dataclass(frozen=True, slots=True)
class MediaRequest:
    """The client switches a media track on or off."""

    track: MediaTrack
    active: bool


@dataclass(frozen=True, slots=True)
class Unknown:
    """A message of an unknown type, kept whole; for example `rtc_report`, which no client uses."""

    type: str
    document: dict[str, Any]
    binary: bytes = b""


FromEither = Validation | Heartbeat | ChannelMessage | Inner | Unknown
FromClient = Subscription | RpcRequest | MediaRequest
FromRobot = RpcResponse | Chunk | Complaint | Faults
Value = FromEither | FromClient | FromRobot


# ---- validation, heartbeat and probe ------------------------------------------------------------


def answer_challenge(challenge: str) -> str:
    """Return a client's answer to a robot's challenge, as the robot's firmware computes it."""
    text = f"UnitreeGo2_{challenge}".encode(errors="surrogatepass")
    return base64.b64encode(hashlib.md5(text, usedforsecurity=False).digest()).decode()


def make_heartbeat(unix_s: float, utc_offset_s: float = 0.0) -> Heartbeat:
    """Return the heartbeat for a time; its text is the local time, `utc_offset_s` ahead of UTC."""
    local = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=int(unix_s + utc_offset_s))
    return Heartbeat(f"{local:%Y-%m-%d %H:%M:%S}", int(unix_s))


def make_probe_echo(inner: Inner) -> Inner | None:
    """Return the client's echo if `inner` is the robot's round-trip probe; otherwise None."""
    is_probe = inner.answer and inner.data.get("req_type") == RTT_PROBE
    return Inner(inner.data) if is_probe else None


# ---- binary frames ------------------------------------------------------------------------------


def encode_frame(text: str, payload: bytes, *, wide: bool = False) -> bytes:
    """Return the binary frame of a JSON text and a payload; a long text needs the wide layout."""
    body = text.encode()
    # A length of 2 marks the wide layout, so a text of 2 bytes needs that too.
    if wide or not 2 < len(body) < 2**16:
        return _WIDE_HEAD.pack(2, 0, len(body), 0) + body + payload
    return _HEAD.pack(len(body), 0) + body + payload


def decode_frame(frame: bytes) -> tuple[str, bytes]:
    """Return the JSON text and the payload of a binary frame."""
    is_wide = frame[:4] == _HEAD.pack(2, 0)
    start = _WIDE_HEAD.size if is_wide else _HEAD.size
    if len(frame) < start:
        raise TruncatedError(start, len(frame))
    length = _WIDE_HEAD.unpack_from(frame)[2] if is_wide else _HEAD.unpack_from(frame)[0]
    if len(frame) < start + length:
        raise TruncatedError(start + length, len(frame))
    try:
        # A lone surrogate is not valid UTF-8, but a robot's JSON may contain one.
        text = frame[start : start + length].decode(errors="surrogatepass")
    except UnicodeDecodeError:
        raise DecodeError("the JSON of a binary frame is not UTF-8") from None
    return text, frame[start + length :]


# ---- decoding -----------------------------------------------------------------------------------


def decode(message: str | bytes) -> Value:
    """Return the value of a message of the channel."""
    if len(message) > MAX_MESSAGE:
        raise MessageTooLargeError(len(message))
    text, binary = (message, b"") if isinstance(message, str) else decode_frame(message)
    document = rpc.read_json(text)
    kind = read_field(document, "type", str)
    assert isinstance(document, dict)  # or `read_field` would have raised
    decoder = _DECODERS.get(kind)
    if decoder is None:
        return Unknown(kind, document, binary)
    if binary and kind not in {"msg", "res"}:
        raise PayloadError(f"a message of type {kind!r} cannot have {len(binary)} bytes attached")
    return decoder(document, binary)


def _read_topic(document: object) -> str:
    topic = read_field(document, "topic", str)
    if not 0 < len(topic) <= MAX_TOPIC:
        raise PayloadError(f"a topic has 1 to {MAX_TOPIC} characters, not {len(topic)}")
    return topic


def _decode_heartbeat(document: dict[str, Any], _: bytes) -> Value:
    # The contents of a robot's echo are not documented; only its arrival matters.
    try:
        data = read_field(document, "data", dict)
        return Heartbeat(read_field(data, "timeInStr", str), read_field(data, "timeInNum", int))
    except PayloadError:
        return Heartbeat()


def _decode_request(document: dict[str, Any], _: bytes) -> Value:
    body = read_field(document, "data", dict)
    header = read_field(body, "header", dict)
    identity, policy = read_field(header, "identity", dict), read_field(header, "policy", dict, {})
    return RpcRequest(
        service=rpc.parse_topic(_read_topic(document), RpcRequest),
        api_id=read_field(identity, "api_id", int),
        id=read_field(identity, "id", int),
        parameter=read_field(body, "parameter", str, ""),
        priority=read_field(policy, "priority", int, 0),
        noreply=read_field(policy, "noreply", bool, False),
        lease=read_field(read_field(header, "lease", dict, {}), "id", int, 0),
    )


def _decode_response(document: dict[str, Any], binary: bytes) -> Value:
    """Decode a response. Only the id is required: it identifies the request."""
    body = read_field(document, "data", dict)
    header = _read_object(body, "header")
    identity, status = _read_object(header, "identity"), _read_object(header, "status")
    number, code = read_whole(identity.get("id")), read_whole(status.get("code"))
    if number is None:
        raise PayloadError(
            f"'id' of a response must be a number, not {describe_value(identity.get('id'))}"
        )
    response = RpcResponse(
        service=_read_service(document),
        api_id=read_whole(identity.get("api_id")) or 0,
        id=number,
        code=NO_STATUS if code is None else code,
        data=_read_response_text(body.get("data")),
        binary=binary,
    )
    content = _read_object(body, "content_info")
    is_chunked = content.get("enable_chunking")
    if is_chunked is not True and not read_whole(is_chunked):  # a number counts too
        return response
    index = read_whole(content.get("chunk_index"))
    count = read_whole(content.get("total_chunk_num"))
    if index is None or count is None or not 1 <= index <= count <= MAX_CHUNKS:
        raise PayloadError(f"a response cannot have part {index} of {count}")
    return Chunk(response, index, count)


def _read_service(document: dict[str, Any]) -> str:
    """Return the service that answers; "" if the robot leaves the topic out."""
    if document.get("topic") in (None, ""):
        return ""
    return rpc.parse_topic(_read_topic(document), RpcResponse)


def _read_object(document: dict[str, Any], key: str) -> dict[str, Any]:
    """Return the object under `key`; an empty one if there is none."""
    value = document.get(key)
    return value if isinstance(value, dict) else {}


def _read_response_text(data: object) -> str:
    """Return a response's data as JSON text; some robots send the value instead of its text."""
    if isinstance(data, str):
        return data
    try:
        return "" if data is None else rpc.write_json(data)
    except BadRequestError as error:
        raise PayloadError(f"the data of a response: {error}") from None


def _decode_inner(document: dict[str, Any], _: bytes) -> Value:
    if "info" in document:
        return Inner(read_field(document, "info", dict), answer=True)
    return Inner(read_field(document, "data", dict))


def _decode_faults(document: dict[str, Any], _: bytes) -> Value:
    change = Change(document["type"])
    data = read_field(document, "data", list)
    triples = data if change is Change.ALL else [data]
    return Faults(change, tuple(map(_read_fault, triples)))


def _read_fault(triple: object) -> Fault:
    if not isinstance(triple, list) or len(triple) != 3:
        raise PayloadError("a fault must be [time, source, code]")
    named = dict(zip(("time", "source", "code"), triple, strict=True))
    unix_s, source, code = (read_field(named, key, int) for key in named)
    if min(unix_s, source, code) < 0:
        raise PayloadError(f"a fault has a negative number: {unix_s}, {source}, {code}")
    return Fault(unix_s, source, code)


def _decode_media(document: dict[str, Any], _: bytes) -> Value:
    data = read_field(document, "data", str)
    if data not in {"on", "off"}:
        raise PayloadError(f"a media track must be on or off, not {data[:40]!r}")
    return MediaRequest(MediaTrack(document["type"]), data == "on")


_DECODERS: dict[str, Callable[[dict[str, Any], bytes], Value]] = {
    "validation": lambda d, _: Validation(read_field(d, "data", str)),
    "heartbeat": _decode_heartbeat,
    "subscribe": lambda d, _: Subscription(_read_topic(d)),
    "unsubscribe": lambda d, _: Subscription(_read_topic(d), active=False),
    "msg": lambda d, binary: ChannelMessage(_read_topic(d), d.get("data"), binary),
    "req": _decode_request,
    "res": _decode_response,
    "rtc_inner_req": _decode_inner,
    "err": lambda d, _: Complaint(read_field(d, "info", str)),
    "errors": _decode_faults,
    "add_error": _decode_faults,
    "rm_error": _decode_faults,
    "vid": _decode_media,
    "aud": _decode_media,
}


# ---- encoding -----------------------------------------------------------------------------------


def encode(value: Value, *, wide: bool = False) -> str | bytes:
    """Return the message for `value`: a text, or a binary frame if `value` has bytes.

    `wide` is for the binary frame.
    """
    text = rpc.write_json(_ENCODERS[type(value)](value))
    carrier = value.response if isinstance(value, Chunk) else value
    binary = getattr(carrier, "binary", b"")  # only some classes have bytes
    message = encode_frame(text, binary, wide=wide) if binary else text
    if len(message) > MAX_MESSAGE:
        raise BadRequestError(
            f"the message has {len(message)} characters or bytes; the maximum is {MAX_MESSAGE}"
        )
    return message


def _check_topic(topic: str) -> str:
    if not 0 < len(topic) <= MAX_TOPIC:
        raise BadRequestError(f"a topic has 1 to {MAX_TOPIC} characters, not {len(topic)}")
    return topic


def _make_document(kind: str, data: object) -> dict[str, Any]:
    return {"type": kind, "topic": "", "data": data}


def _encode_message(value: ChannelMessage) -> dict[str, Any]:
    if value.topic.startswith("rt/api/"):
        # Robots treat a published request as a request, so publishing would bypass `check_service`.
        raise BadRequestError("requests cannot be published on a topic", "Send an `RpcRequest`.")
    return {"type": "msg", "topic": _check_topic(value.topic), "data": value.data}


def _encode_request(value: RpcRequest) -> dict[str, Any]:
    rpc.check_service(value.service)
    header: dict[str, Any] = {
        "identity": {"id": value.id, "api_id": value.api_id},
        "policy": {"priority": value.priority, "noreply": value.noreply},
    }
    if value.lease:
        header["lease"] = {"id": value.lease}
    body = {"header": header, "parameter": value.parameter, "binary": []}
    return {"type": "req", "topic": rpc.make_topic(value), "data": body}


def _encode_response(value: RpcResponse) -> dict[str, Any]:
    identity = {"id": value.id, "api_id": value.api_id}
    header = {"identity": identity, "status": {"code": value.code}}
    body: dict[str, Any] = {"header": header, "data": value.data}
    return {"type": "res", "topic": rpc.make_topic(value), "data": body}


def _encode_chunk(value: Chunk) -> dict[str, Any]:
    document = _encode_response(value.response)
    document["data"]["content_info"] = {
        "enable_chunking": True,
        "chunk_index": value.index,
        "total_chunk_num": value.count,
    }
    return document


def _encode_faults(value: Faults) -> dict[str, Any]:
    triples = [[fault.unix_s, fault.source, fault.code] for fault in value.faults]
    if value.change is not Change.ALL and len(triples) != 1:
        raise BadRequestError(f"a change must contain one fault, not {len(triples)}")
    data = triples if value.change is Change.ALL else triples[0]
    return {"type": value.change.value, "data": data}


def _encode_unknown(value: Unknown) -> dict[str, Any]:
    if value.type in _DECODERS:
        raise BadRequestError(f"{value.type!r} is a known type; use its own message class")
    return {**value.document, "type": value.type}


_ENCODERS: dict[type, Callable[..., dict[str, Any]]] = {
    Validation: lambda v: _make_document("validation", v.data),
    Heartbeat: lambda v: _make_document("heartbeat", {"timeInStr": v.text, "timeInNum": v.unix_s}),
    Subscription: lambda v: {"type": _VERBS[v.active], "topic": _check_topic(v.topic)},
    ChannelMessage: _encode_message,
    RpcRequest: _encode_request,
    RpcResponse: _encode_response,
    Chunk: _encode_chunk,
    Inner: lambda v: {"type": "rtc_inner_req", "topic": "", "info" if v.answer else "data": v.data},
    Complaint: lambda v: {"type": "err", "info": v.info},
    Faults: _encode_faults,
    MediaRequest: lambda v: _make_document(v.track.value, "on" if v.active else "off"),
    Unknown: _encode_unknown,
}


# ---- chunks -------------------------------------------------------------------------------------


def split_response(response: RpcResponse, max_length: int) -> tuple[RpcResponse | Chunk, ...]:
    """Return a response in parts whose texts have at most `max_length` characters as JSON.

    A response that is short enough stays whole. The last part has the bytes of the response.
    """
    size = len(response.data) + len(response.binary)
    if size > MAX_ASSEMBLED:
        raise BadRequestError(f"the response has length {size}; the maximum is {MAX_ASSEMBLED}")
    texts = _split_text(response.data, max_length)
    if len(texts) > MAX_CHUNKS:
        raise BadRequestError(f"the response has {len(texts)} parts; the maximum is {MAX_CHUNKS}")
    if len(texts) <= 1:
        return (response,)
    count = len(texts)
    parts = [replace(response, data=text, binary=b"") for text in texts]
    parts[-1] = replace(parts[-1], binary=response.binary)
    return tuple(Chunk(part, index, count) for index, part in enumerate(parts, 1))


def _split_text(text: str, max_length: int) -> list[str]:
    """Split a text into pieces that have at most `max_length` characters as JSON."""
    pieces: list[str] = []
    start = 0
    while start < len(text):
        piece = text[start : start + max_length]
        # In JSON one character may need up to twelve, so shorten the piece until it fits.
        while len(piece) > 1:
            json_length = len(rpc.write_json(piece)) - 2  # without the quotes
            if json_length <= max_length:
                break
            piece = piece[: max(1, len(piece) * max_length // json_length)]
        pieces.append(piece)
        start += len(piece)
    return pieces


@dataclass(slots=True)
class _Assembly:
    """The parts of one response that have arrived."""

    count: int
    """Number of parts of the whole response."""
    parts: dict[int, RpcResponse] = field(default_factory=dict)
    size: int = 0
    """Characters and bytes in all parts that have arrived."""


class Assembler:
    """Joins the parts of responses; their number and size are bounded."""

    def __init__(self) -> None:
        self._incomplete: dict[tuple[str, int, int], _Assembly] = {}

    def __len__(self) -> int:
        return len(self._incomplete)

    def add(self, chunk: Chunk) -> RpcResponse | None:
        """Return the whole response if `chunk` completes it, otherwise None.

        A repeated part is ignored.
        """
        part = chunk.response
        key = (part.service, part.api_id, part.id)
        if key not in self._incomplete and len(self._incomplete) >= MAX_ASSEMBLIES:
            # The oldest is the least likely to be completed.
            del self._incomplete[next(iter(self._incomplete))]
        assembly = self._incomplete.setdefault(key, _Assembly(chunk.count))
        if chunk.index not in assembly.parts:
            assembly.parts[chunk.index] = part
            assembly.size += len(part.data) + len(part.binary)
        if assembly.count != chunk.count or assembly.size > MAX_ASSEMBLED:
            del self._incomplete[key]
            raise PayloadError("the parts of a response differ in their count or are too large")
        if len(assembly.parts) < assembly.count:
            return None
        del self._incomplete[key]
        parts = [assembly.parts[index] for index in sorted(assembly.parts)]
        data = "".join(part.data for part in parts)
        return replace(parts[-1], data=data, binary=b"".join(part.binary for part in parts))

    def forget(self, request: RpcRequest) -> None:
        """Drop the parts that have arrived of the answer to `request`."""
        self._incomplete.pop((request.service, request.api_id, request.id), None)
