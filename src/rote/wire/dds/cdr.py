"""The messages of a G1 on DDS as CDR: requests, responses, texts, the mode and the battery.

DDS carries the same requests and responses as the data channel, packed instead of written as JSON:

    4    00 01 00 00: plain CDR, little endian; numbers are aligned from after these bytes
    Request     int64 id, int64 api, int64 lease, int32 priority, bool noreply; text, bytes
    Response    int64 id, int64 api, int32 code; text, bytes
    a text      uint32 length with its NUL, UTF-8, NUL          bytes    uint32 length, then they

Decoders raise `DecodeError` and nothing else, for any input at all.
"""

import struct

from rote.errors import BadRequestError, DecodeError, PayloadError, TruncatedError
from rote.wire.services.rpc import RpcRequest, RpcResponse

HEADER = b"\x00\x01\x00\x00"
"""Plain CDR, little endian, as CycloneDDS writes types that are final."""

_REQUEST = struct.Struct("<4xqqqi?3x")
_RESPONSE = struct.Struct("<4xqqi")
_LENGTH = struct.Struct("<I")
_SPORT = struct.Struct("<4xIIIf")
_BMS = struct.Struct("<4x3Bx40H3IiBB12hHH2x5I3I")
_BMS_SOC = 3 + 40 + 3 + 1
_CELLS, _CELL_MV = 13, (3_400, 4_150)


def encode_request(request: RpcRequest) -> bytes:
    """Return a request as written to `rt/api/<service>/request`."""
    try:
        head = _REQUEST.pack(
            request.id, request.api_id, request.lease, request.priority, request.noreply
        )
    except struct.error as error:
        raise BadRequestError(f"a request that DDS cannot hold: {error}") from None
    return _with_tail(head, request.parameter, request.binary)


def decode_request(data: bytes, service: str) -> RpcRequest:
    """Return the request in bytes that were written for `service`."""
    _check_header(data)
    try:
        number, api_id, lease, priority, noreply = _REQUEST.unpack_from(data)
    except struct.error:
        raise TruncatedError(_REQUEST.size, len(data)) from None
    parameter, binary = _tail(data, _REQUEST.size)
    return RpcRequest(
        service=service,
        api_id=api_id,
        id=number,
        parameter=parameter,
        priority=priority,
        noreply=noreply,
        lease=lease,
        binary=binary,
    )


def encode_response(response: RpcResponse) -> bytes:
    """Return a response as written to `rt/api/<service>/response`."""
    try:
        head = _RESPONSE.pack(response.id, response.api_id, response.code)
    except struct.error as error:
        raise BadRequestError(f"a response that DDS cannot hold: {error}") from None
    return _with_tail(head, response.data, response.binary)


def decode_response(data: bytes, service: str) -> RpcResponse:
    """Return the response in bytes that `service` has written."""
    _check_header(data)
    try:
        number, api_id, code = _RESPONSE.unpack_from(data)
    except struct.error:
        raise TruncatedError(_RESPONSE.size, len(data)) from None
    text, binary = _tail(data, _RESPONSE.size)
    return RpcResponse(
        service=service, api_id=api_id, id=number, code=code, data=text, binary=binary
    )


def encode_text(text: str) -> bytes:
    """Return a `String_`, the form of JSON texts on DDS."""
    return HEADER + _packed(text)


def decode_text(data: bytes) -> str:
    """Return the text in a `String_`."""
    _check_header(data)
    return _text_at(data, len(HEADER))[0]


def encode_mode(fsm_id: int) -> bytes:
    """Return a `SportModeState_` with this mode."""
    return HEADER + _SPORT.pack(fsm_id, 0, 0, 0.0)[4:]


def decode_mode(data: bytes) -> int:
    """Return the mode in a `SportModeState_`."""
    return int(_unpacked(_SPORT, data)[0])


def encode_battery(percent: float) -> bytes:
    """Return a `BmsState_` with this charge."""
    empty_mv, full_mv = _CELL_MV
    cell_mv = round(empty_mv + (full_mv - empty_mv) * percent / 100.0)
    cells = [cell_mv] * _CELLS + [0] * (40 - _CELLS)
    rest = (-2_000, round(percent), 100, *[30] * 12, 12, 0, *[0] * 8)
    return HEADER + _BMS.pack(1, 0, 0, *cells, *[cell_mv * _CELLS] * 3, *rest)[4:]


def decode_battery(data: bytes) -> float:
    """Return the charge of the battery in percent, from a `BmsState_`."""
    percent = _unpacked(_BMS, data)[_BMS_SOC]
    if percent > 100:
        raise PayloadError(f"a battery that is full to {percent} %")
    return float(percent)


def _check_header(data: bytes) -> None:
    if len(data) < len(HEADER):
        raise TruncatedError(len(HEADER), len(data))
    if data[:2] != HEADER[:2]:
        raise DecodeError(
            f"bytes that begin with {data[:2].hex()} are not plain little-endian CDR",
            "Compare the versions of CycloneDDS on both ends.",
        )


def _unpacked(layout: struct.Struct, data: bytes) -> tuple[int, ...]:
    _check_header(data)
    if len(data) < layout.size:
        raise TruncatedError(layout.size, len(data))
    return layout.unpack_from(data)


def _packed(text: str) -> bytes:
    raw = _utf8(text) + b"\0"
    return _LENGTH.pack(len(raw)) + raw


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise BadRequestError(f"a text that cannot be written as UTF-8: {error}") from None


def _with_tail(head: bytes, text: str, binary: bytes) -> bytes:
    body = HEADER + head[4:] + _packed(text)
    return body + bytes(-len(body) % 4) + _LENGTH.pack(len(binary)) + binary


def _tail(data: bytes, start: int) -> tuple[str, bytes]:
    text, end = _text_at(data, start)
    start = end + -end % 4
    size = _length_at(data, start)
    _check_size(data, start + 4 + size)
    return text, data[start + 4 : start + 4 + size]


def _text_at(data: bytes, start: int) -> tuple[str, int]:
    size = _length_at(data, start)
    end = start + 4 + size
    _check_size(data, end)
    raw = data[start + 4 : end]
    if raw[-1:] != b"\0":
        raise PayloadError("a text that does not end with NUL")
    try:
        return raw[:-1].decode("utf-8"), end
    except UnicodeDecodeError as error:
        raise PayloadError(f"a text that is not UTF-8: {error}") from None


def _length_at(data: bytes, start: int) -> int:
    _check_size(data, start + 4)
    return int(_LENGTH.unpack_from(data, start)[0])


def _check_size(data: bytes, needed: int) -> None:
    if len(data) < needed:
        raise TruncatedError(needed, len(data))
