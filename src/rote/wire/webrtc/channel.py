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

`decode` raises `DecodeError` and nothing else, for any text and any bytes at all; a type it does
not know makes an `Unknown`. Facts are from spec/datachannel.md, section 3.
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
from rote.wire.services.lenient import seen, whole
from rote.wire.services.rpc import NO_STATUS, RpcRequest, RpcResponse, read

MAX_MESSAGE = 8 * 2**20
"""The longest message in characters or bytes; a real one has a few thousand."""
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
        super().__init__(f"a message of {size} characters or bytes; at most {MAX_MESSAGE} are read")
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
    wanted: bool = True


@dataclass(frozen=True, slots=True)
class ChannelMessage:
    """What is published on a topic: JSON of any kind, and the bytes that followed it in a binary
    frame.
    """

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
    """A message to or from the robot's WebRTC service itself. Robots answer in a field of another
    name.
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
    wanted: bool


@dataclass(frozen=True, slots=True)
class Unknown:
    """A message of an unknown type, complete. `rtc_report`, which no client uses, is one."""

    type: str
    document: dict[str, Any]
    binary: bytes = b""


FromEither = Validation | Heartbeat | ChannelMessage | Inner | Unknown
FromClient = Subscription | RpcRequest | MediaRequest
FromRobot = RpcResponse | Chunk | Complaint | Faults
Value = FromEither | FromClient | FromRobot


# ---- validation, heartbeat and probe ------------------------------------------------------------


def answer_to(challenge: str) -> str:
    """Return a client's answer to a robot's challenge."""
    text = f"UnitreeGo2_{challenge}".encode(errors="surrogatepass")
    return base64.b64encode(hashlib.md5(text, usedforsecurity=False).digest()).decode()


def heartbeat_at(unix_s: float, utc_offset_s: float = 0.0) -> Heartbeat:
    """Return the heartbeat for a time; its text is local time."""
    local = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=int(unix_s + utc_offset_s))
    return Heartbeat(f"{local:%Y-%m-%d %H:%M:%S}", int(unix_s))


def probe_echo(inner: Inner) -> Inner | None:
    """Return what a client sends back if `inner` is the robot's round-trip probe; otherwise
    None.
    """
    is_probe = inner.answer and inner.data.get("req_type") == RTT_PROBE
    return Inner(inner.data) if is_probe else None


# ---- binary frames ------------------------------------------------------------------------------


def encode_frame(text: str, payload: bytes, *, wide: bool = False) -> bytes:
    """Return the binary frame of a JSON text and a payload; a long text needs the wide layout."""
    body = text.encode()
    if wide or not 2 < len(body) < 2**16:
        return _WIDE_HEAD.pack(2, 0, len(body), 0) + body + payload
    return _HEAD.pack(len(body), 0) + body + payload


def decode_frame(frame: bytes) -> tuple[str, bytes]:
    """Return the JSON text and the payload of a binary frame."""
    start = _WIDE_HEAD.size if frame[:4] == _HEAD.pack(2, 0) else _HEAD.size
    if len(frame) < start:
        raise TruncatedError(start, len(frame))
    length = (
        _HEAD.unpack_from(frame)[0] if start == _HEAD.size else _WIDE_HEAD.unpack_from(frame)[2]
    )
    if len(frame) < start + length:
        raise TruncatedError(start + length, len(frame))
    try:
        # A lone surrogate is not valid UTF-8, but a robot's JSON may contain one.
        text = frame[start : start + length].decode(errors="surrogatepass")
    except UnicodeDecodeError:
        raise DecodeError("a binary frame whose JSON is not UTF-8") from None
    return text, frame[start + length :]


# ---- decoding -----------------------------------------------------------------------------------


def decode(message: str | bytes) -> Value:
    """Return the value of a message of the channel."""
    if len(message) > MAX_MESSAGE:
        raise MessageTooLargeError(len(message))
    text, binary = (message, b"") if isinstance(message, str) else decode_frame(message)
    document = rpc.read_json(text)
    kind = read(document, "type", str)
    assert isinstance(document, dict)  # or `read` would have raised
    decoder = _DECODERS.get(kind)
    if decoder is None:
        return Unknown(kind, document, binary)
    if binary and kind not in {"msg", "res"}:
        raise PayloadError(f"{kind!r} with {len(binary)} bytes that do not belong to it")
    return decoder(document, binary)


def _read_topic(document: object) -> str:
    topic = read(document, "topic", str)
    if not 0 < len(topic) <= MAX_TOPIC:
        raise PayloadError(f"a topic of {len(topic)} characters")
    return topic


def _decode_heartbeat(document: dict[str, Any], _: bytes) -> Value:
    # What a robot puts into its echo is unknown; only its arrival matters.
    try:
        data = read(document, "data", dict)
        return Heartbeat(read(data, "timeInStr", str), read(data, "timeInNum", int))
    except PayloadError:
        return Heartbeat()


def _decode_request(document: dict[str, Any], _: bytes) -> Value:
    body = read(document, "data", dict)
    header = read(body, "header", dict)
    identity, policy = read(header, "identity", dict), read(header, "policy", dict, {})
    return RpcRequest(
        service=rpc.service_of(_read_topic(document), RpcRequest),
        api_id=read(identity, "api_id", int),
        id=read(identity, "id", int),
        parameter=read(body, "parameter", str, ""),
        priority=read(policy, "priority", int, 0),
        noreply=read(policy, "noreply", bool, False),
        lease=read(read(header, "lease", dict, {}), "id", int, 0),
    )


def _decode_response(document: dict[str, Any], binary: bytes) -> Value:
    """Decode a response. Only the id is required: it identifies the request."""
    body = read(document, "data", dict)
    header = _object_or_empty(body, "header")
    identity, status = _object_or_empty(header, "identity"), _object_or_empty(header, "status")
    number, code = whole(identity.get("id")), whole(status.get("code"))
    if number is None:
        raise PayloadError(f"'id' of a response is a number, not {seen(identity.get('id'))}")
    response = RpcResponse(
        service=_responding_service(document),
        api_id=whole(identity.get("api_id")) or 0,
        id=number,
        code=NO_STATUS if code is None else code,
        data=_response_text(body.get("data")),
        binary=binary,
    )
    content = _object_or_empty(body, "content_info")
    if not whole(content.get("enable_chunking")) and content.get("enable_chunking") is not True:
        return response
    index, count = whole(content.get("chunk_index")), whole(content.get("total_chunk_num"))
    if index is None or count is None or not 1 <= index <= count <= MAX_CHUNKS:
        raise PayloadError(f"part {index} of {count} of a response")
    return Chunk(response, index, count)


def _responding_service(document: dict[str, Any]) -> str:
    """Return the service that answers; "" if the robot leaves the topic out."""
    topic = document.get("topic")
    return (
        "" if topic is None or topic == "" else rpc.service_of(_read_topic(document), RpcResponse)
    )


def _object_or_empty(document: dict[str, Any], key: str) -> dict[str, Any]:
    value = document.get(key)
    return value if isinstance(value, dict) else {}


def _response_text(data: object) -> str:
    """Return a response's data as the text it should be; some robots send the object itself."""
    if isinstance(data, str):
        return data
    try:
        return "" if data is None else rpc.write_json(data)
    except BadRequestError as error:
        raise PayloadError(f"the data of a response: {error}") from None


def _decode_inner(document: dict[str, Any], _: bytes) -> Value:
    if "info" in document:
        return Inner(read(document, "info", dict), answer=True)
    return Inner(read(document, "data", dict))


def _decode_faults(document: dict[str, Any], _: bytes) -> Value:
    change = Change(document["type"])
    data = read(document, "data", list)
    return Faults(
        change, tuple(_read_fault(one) for one in (data if change is Change.ALL else [data]))
    )


def _read_fault(triple: object) -> Fault:
    if not isinstance(triple, list) or len(triple) != 3:
        raise PayloadError("a fault that is not [time, source, code]")
    named = dict(zip(("time", "source", "code"), triple, strict=True))
    unix_s, source, code = (read(named, key, int) for key in named)
    if min(unix_s, source, code) < 0:
        raise PayloadError(f"a fault of negative numbers: {unix_s}, {source}, {code}")
    return Fault(unix_s, source, code)


def _decode_media(document: dict[str, Any], _: bytes) -> Value:
    data = read(document, "data", str)
    if data not in {"on", "off"}:
        raise PayloadError(f"a media track is on or off, not {data[:40]!r}")
    return MediaRequest(MediaTrack(document["type"]), data == "on")


_DECODERS: dict[str, Callable[[dict[str, Any], bytes], Value]] = {
    "validation": lambda d, _: Validation(read(d, "data", str)),
    "heartbeat": _decode_heartbeat,
    "subscribe": lambda d, _: Subscription(_read_topic(d)),
    "unsubscribe": lambda d, _: Subscription(_read_topic(d), wanted=False),
    "msg": lambda d, binary: ChannelMessage(_read_topic(d), d.get("data"), binary),
    "req": _decode_request,
    "res": _decode_response,
    "rtc_inner_req": _decode_inner,
    "err": lambda d, _: Complaint(read(d, "info", str)),
    "errors": _decode_faults,
    "add_error": _decode_faults,
    "rm_error": _decode_faults,
    "vid": _decode_media,
    "aud": _decode_media,
}


# ---- encoding -----------------------------------------------------------------------------------


def encode(value: Value, *, wide: bool = False) -> str | bytes:
    """Return the message for `value`; a binary frame if it has bytes, with the wide layout if
    asked.
    """
    text = rpc.write_json(_ENCODERS[type(value)](value))
    binary = getattr(value.response if isinstance(value, Chunk) else value, "binary", b"")
    message = encode_frame(text, binary, wide=wide) if binary else text
    if len(message) > MAX_MESSAGE:
        raise BadRequestError(f"a message of {len(message)}; at most {MAX_MESSAGE} are read")
    return message


def _check_topic(topic: str) -> str:
    if not 0 < len(topic) <= MAX_TOPIC:
        raise BadRequestError(f"a topic has 1 to {MAX_TOPIC} characters, not {len(topic)}")
    return topic


def _typed_document(kind: str, data: object) -> dict[str, Any]:
    return {"type": kind, "topic": "", "data": data}


def _encode_message(value: ChannelMessage) -> dict[str, Any]:
    if value.topic.startswith("rt/api/"):
        # Robots treat a published request as a request, so publishing would bypass `check_service`.
        raise BadRequestError("requests cannot be published", "Use a request.")
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
    return {"type": "req", "topic": rpc.topic_of(value), "data": body}


def _encode_response(value: RpcResponse) -> dict[str, Any]:
    identity = {"id": value.id, "api_id": value.api_id}
    header = {"identity": identity, "status": {"code": value.code}}
    body: dict[str, Any] = {"header": header, "data": value.data}
    return {"type": "res", "topic": rpc.topic_of(value), "data": body}


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
        raise BadRequestError(f"faults come and go one by one, not {len(triples)} at once")
    data = triples if value.change is Change.ALL else triples[0]
    return {"type": value.change.value, "data": data}


def _encode_unknown(value: Unknown) -> dict[str, Any]:
    if value.type in _DECODERS:
        raise BadRequestError(f"{value.type!r} is a known type; use its own message class")
    return {**value.document, "type": value.type}


_ENCODERS: dict[type, Callable[..., dict[str, Any]]] = {
    Validation: lambda v: _typed_document("validation", v.data),
    Heartbeat: lambda v: _typed_document("heartbeat", {"timeInStr": v.text, "timeInNum": v.unix_s}),
    Subscription: lambda v: {"type": _VERBS[v.wanted], "topic": _check_topic(v.topic)},
    ChannelMessage: _encode_message,
    RpcRequest: _encode_request,
    RpcResponse: _encode_response,
    Chunk: _encode_chunk,
    Inner: lambda v: {"type": "rtc_inner_req", "topic": "", "info" if v.answer else "data": v.data},
    Complaint: lambda v: {"type": "err", "info": v.info},
    Faults: _encode_faults,
    MediaRequest: lambda v: _typed_document(v.track.value, "on" if v.wanted else "off"),
    Unknown: _encode_unknown,
}


# ---- chunks -------------------------------------------------------------------------------------


def split(response: RpcResponse, most: int) -> tuple[RpcResponse | Chunk, ...]:
    """Return a response in parts whose texts, as JSON, have at most `most` characters.

    A response that is short enough stays whole; bytes go with the last part.
    """
    size = len(response.data) + len(response.binary)
    if size > MAX_ASSEMBLED:
        raise BadRequestError(f"a response of {size}; at most {MAX_ASSEMBLED} are put together")
    texts = _split_text(response.data, most)
    if len(texts) > MAX_CHUNKS:
        raise BadRequestError(f"a response in {len(texts)} parts; at most {MAX_CHUNKS} are read")
    if len(texts) <= 1:
        return (response,)
    last = len(texts)
    return tuple(
        Chunk(replace(response, data=text, binary=response.binary if n == last else b""), n, last)
        for n, text in enumerate(texts, 1)
    )


def _split_text(text: str, most: int) -> list[str]:
    pieces: list[str] = []
    start = 0
    while start < len(text):
        piece = text[start : start + most]
        # As JSON a character may take up to twelve.
        while len(piece) > 1 and (written := len(rpc.write_json(piece)) - 2) > most:
            piece = piece[: max(1, len(piece) * most // written)]
        pieces.append(piece)
        start += len(piece)
    return pieces


@dataclass(slots=True)
class _Assembly:
    count: int
    parts: dict[int, RpcResponse] = field(default_factory=dict)
    size: int = 0


class Assembler:
    """Joins the parts of responses; their number and size are bounded."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, int, int], _Assembly] = {}

    def __len__(self) -> int:
        return len(self._open)

    def add(self, chunk: Chunk) -> RpcResponse | None:
        """Return the whole response when its last part has arrived; a repeated part is ignored."""
        part = chunk.response
        key = (part.service, part.api_id, part.id)
        if key not in self._open and len(self._open) >= MAX_ASSEMBLIES:
            del self._open[next(iter(self._open))]  # the oldest is unlikely to be completed
        whole = self._open.setdefault(key, _Assembly(chunk.count))
        if chunk.index not in whole.parts:
            whole.parts[chunk.index] = part
            whole.size += len(part.data) + len(part.binary)
        if whole.count != chunk.count or whole.size > MAX_ASSEMBLED:
            del self._open[key]
            raise PayloadError(f"{whole.size} in parts of a response that cannot be put together")
        if len(whole.parts) < whole.count:
            return None
        del self._open[key]
        parts = [whole.parts[index] for index in sorted(whole.parts)]
        data = "".join(part.data for part in parts)
        return replace(parts[-1], data=data, binary=b"".join(part.binary for part in parts))

    def forget(self, request: RpcRequest) -> None:
        """Drop the parts of the answer to `request`."""
        self._open.pop((request.service, request.api_id, request.id), None)
