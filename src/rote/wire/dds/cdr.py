"""The messages of a G1 on DDS as CDR: requests, responses, texts, the mode and the battery.

DDS carries the same requests and responses as the data channel, packed instead of written as JSON:

Request     int64 id, int64 api, int64 lease, int32 priority, bool noreply; text, bytes
Response    int64 id, int64 api, int32 code; text, bytes

Decoders raise only `DecodeError`, for any input.
"""

from rote.errors import PayloadError
from rote.wire.cdr_layout import CdrLayout
from rote.wire.services.rpc import RpcRequest, RpcResponse

_REQUEST = CdrLayout("3q i ? s y")
_RESPONSE = CdrLayout("2q i s y")
_TEXT = CdrLayout("s")
_SPORT = CdrLayout("3I f")
_BMS = CdrLayout("3B 40H 3I i 2B 12h 2H 5I 3I")
_CHARGE_INDEX = 3 + 40 + 3 + 1
"""Index of the charge among the values of `_BMS`."""
_CELLS, _CELL_SLOTS = 13, 40
_EMPTY_CELL_MV, _FULL_CELL_MV = 3_400, 4_150


def encode_request(request: RpcRequest) -> bytes:
    """Return a request as written to `rt/api/<service>/request`."""
    return _REQUEST.encode(
        request.id, request.api_id, request.lease, request.priority, request.noreply,
        request.parameter, request.binary,
    )  # fmt: skip


def decode_request(data: bytes, service: str) -> RpcRequest:
    """Return the request in `data`, which was written to `rt/api/<service>/request`."""
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
    """Return the response in `data`, which was written to `rt/api/<service>/response`."""
    number, api_id, code, text, binary = _RESPONSE.decode(data, strict=True)
    return RpcResponse(
        service=service, api_id=api_id, id=number, code=code, data=text, binary=binary
    )


def encode_text(text: str) -> bytes:
    """Return a `String_` message with a text; DDS carries JSON in such messages."""
    return _TEXT.encode(text)


def decode_text(data: bytes) -> str:
    """Return the text in a `String_` message."""
    (text,) = _TEXT.decode(data, strict=True)
    return str(text)


def encode_mode(fsm_id: int) -> bytes:
    """Return a `SportModeState_` message with the mode `fsm_id`."""
    return _SPORT.encode(fsm_id, 0, 0, 0.0)  # fsm_mode, task_id and task_time are not simulated


def decode_mode(data: bytes) -> int:
    """Return the mode id in a `SportModeState_` message."""
    return int(_SPORT.decode(data, strict=True)[0])


def encode_battery(percent: float) -> bytes:
    """Return a `BmsState_` message of a simulated battery; the voltages follow its charge."""
    cell_mv = round(_EMPTY_CELL_MV + (_FULL_CELL_MV - _EMPTY_CELL_MV) * percent / 100.0)
    return _BMS.encode(
        *(1, 0, 0),  # version and function
        *[cell_mv] * _CELLS,
        *[0] * (_CELL_SLOTS - _CELLS),
        *[cell_mv * _CELLS] * 3,  # voltages of the battery
        -2_000,  # current in mA
        round(percent),
        100,  # health in percent
        *[30] * 12,  # temperatures in °C
        *(12, 0),  # charging cycles and date of manufacture
        *[0] * 8,  # status and reserved words
    )


def decode_battery(data: bytes) -> float:
    """Return the charge of the battery in percent, from a `BmsState_` message."""
    percent = _BMS.decode(data, strict=True)[_CHARGE_INDEX]
    if percent > 100:
        raise PayloadError(f"invalid battery level: {percent} %")
    return float(percent)
