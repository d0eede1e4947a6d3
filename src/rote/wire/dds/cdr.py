"""The messages of a G1 on DDS as CDR: requests, responses, texts, the mode and the battery.

DDS carries the same requests and responses as the data channel, packed instead of written as JSON:

Request     int64 id, int64 api, int64 lease, int32 priority, bool noreply; text, bytes
Response    int64 id, int64 api, int32 code; text, bytes

Decoders raise `DecodeError` and nothing else, for any input at all.
"""

from rote.errors import PayloadError
from rote.wire.cdr_layout import CdrLayout
from rote.wire.services.rpc import RpcRequest, RpcResponse

_REQUEST = CdrLayout("3q i ? s y")
_RESPONSE = CdrLayout("2q i s y")
_TEXT = CdrLayout("s")
_SPORT = CdrLayout("3I f")
_BMS = CdrLayout("3B 40H 3I i 2B 12h 2H 5I 3I")
_BMS_SOC = 3 + 40 + 3 + 1
_CELLS, _CELL_MV = 13, (3_400, 4_150)


def encode_request(request: RpcRequest) -> bytes:
    """Return a request as written to `rt/api/<service>/request`."""
    return _REQUEST.encode(
        request.id, request.api_id, request.lease, request.priority, request.noreply,
        request.parameter, request.binary,
    )  # fmt: skip


def decode_request(data: bytes, service: str) -> RpcRequest:
    """Return the request in bytes that were written for `service`."""
    number, api_id, lease, priority, noreply, parameter, binary = _REQUEST.decode(data, strict=True)
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
    return _RESPONSE.encode(
        response.id, response.api_id, response.code, response.data, response.binary
    )


def decode_response(data: bytes, service: str) -> RpcResponse:
    """Return the response in bytes that `service` has written."""
    number, api_id, code, text, binary = _RESPONSE.decode(data, strict=True)
    return RpcResponse(
        service=service, api_id=api_id, id=number, code=code, data=text, binary=binary
    )


def encode_text(text: str) -> bytes:
    """Return a `String_`, the form of JSON texts on DDS."""
    return _TEXT.encode(text)


def decode_text(data: bytes) -> str:
    """Return the text in a `String_`."""
    (text,) = _TEXT.decode(data, strict=True)
    return str(text)


def encode_mode(fsm_id: int) -> bytes:
    """Return a `SportModeState_` with this mode."""
    return _SPORT.encode(fsm_id, 0, 0, 0.0)


def decode_mode(data: bytes) -> int:
    """Return the mode in a `SportModeState_`."""
    return int(_SPORT.decode(data, strict=True)[0])


def encode_battery(percent: float) -> bytes:
    """Return a `BmsState_` with this charge."""
    empty_mv, full_mv = _CELL_MV
    cell_mv = round(empty_mv + (full_mv - empty_mv) * percent / 100.0)
    cells = [cell_mv] * _CELLS + [0] * (40 - _CELLS)
    rest = (-2_000, round(percent), 100, *[30] * 12, 12, 0, *[0] * 8)
    return _BMS.encode(1, 0, 0, *cells, *[cell_mv * _CELLS] * 3, *rest)


def decode_battery(data: bytes) -> float:
    """Return the charge of the battery in percent, from a `BmsState_`."""
    percent = _BMS.decode(data, strict=True)[_BMS_SOC]
    if percent > 100:
        raise PayloadError(f"a battery that is full to {percent} %")
    return float(percent)
