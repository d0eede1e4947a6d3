"""The UDP frames of the A1 and the Go1: which one it is, whether it is sound, and what it says.

    length  frame                     dialects             the CRC covers
    143     HighCmd (ScaledHighCmd)   3.2                  136
    113     HighCmd                   3.3, 3.3.4           108
    129     HighCmd                   go1                  124
    256     HighState                 3.2                  252
    265     HighState                 3.3                  260
    1025    HighState                 3.3.4                1020
    1087    HighState                 go1                  1080
    610     LowCmd                    3.2, 3.3, 3.3.4      604
    614     LowCmd                    go1                  608
    771     LowState                  3.2, 3.3, 3.3.4      764
    807     LowState                  go1                  800

The length says which frame it is; an A1 puts nothing else in it that would. A Go1 begins every
frame with FE EF. `decode` takes what Unitree's library would take and raises `DecodeError` for
anything else; `inspect` also reads what is unsound, and says why it is.

A Go1 seals its high-level states (level flag EE) with an encrypted CRC and refuses a plain one; it
is the other way round for every other level. Of commands both forms are read: Unitree's client
sends the plain one, Unitree's receiver wants them by the same rule as states.

Floats come back as they were but for one kind: a signalling NaN returns as a quiet one, outside the
motors, whose bytes are kept.
"""

import math
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from rote.errors import BadRequestError, DecodeError
from rote.wire.a1 import layout as a1_layout
from rote.wire.a1.formats import BY_SIZE, BY_TYPE, A1Format
from rote.wire.a1.motors import IDLE
from rote.wire.a1.values import (
    GO1_HEAD,
    GO1_HIGH,
    A1FrameKind,
    AnyHeader,
    BmsCmd,
    Dialect,
    HighCmd,
    HighState,
    Lights,
    LowCmd,
    LowState,
    ScaledHighCmd,
    Value,
)

_COMMANDS = (A1FrameKind.HIGH_CMD, A1FrameKind.LOW_CMD)
# Other sizes that one may meet, and what they are.
_STRANGERS = {
    730: "the LowCmd of Unitree's A1 header, which is not what goes over the wire",
    891: "the LowState of Unitree's A1 header, which is not what goes over the wire",
    734: "the LowCmd of Unitree's Go1 header, which is not what goes over the wire",
    937: "the LowState of Unitree's Go1 header, which is not what goes over the wire",
    117: "a HighCmd of a Go1 before v3.5",
    319: "a HighState of a Go1 with v3.3.2",
    1075: "a HighState of a Go1 with v3.4",
    602: "a LowCmd of a Go1 before v3.5",
    795: "a LowState of a Go1 before v3.5",
    244: "a HighState of an Aliengo",
}


class Seal(Enum):
    """The form of a CRC."""

    PLAIN = "plain"
    ENCRYPTED = "encrypted"


class FrameFault(Enum):
    """Why a frame is rejected."""

    HEAD = "head"
    CRC = "crc"


class A1Frame(NamedTuple):
    """The content of a datagram."""

    value: Value
    kind: A1FrameKind
    dialects: tuple[Dialect, ...]
    """All dialects that could have sent it."""
    crc: bytes
    """As stated in the datagram."""
    seal: Seal | None
    """The form in which the CRC is right; None if it is in neither."""
    fault: FrameFault | None = None
    """Why it must not be used."""

    @property
    def crc_holds(self) -> bool:
        """Whether the CRC is right, in the form that such a frame must have."""
        return self.seal is not None and self.fault is not FrameFault.CRC

    def encode(self) -> bytes:
        """Return the datagram again, with its errors."""
        layout = BY_TYPE[type(self.value), self.dialects[0]].layout
        return layout.pack(self.value, verbatim=True) + self.crc


def inspect(datagram: bytes) -> A1Frame:
    """Return the content of a datagram, valid or not; raise `DecodeError` for an unknown length."""
    format_ = BY_SIZE.get(len(datagram))
    if format_ is None:
        raise _unknown_size_error(len(datagram))
    stated = datagram[-4:]
    plain = a1_layout.crc(datagram[:-4])
    seal: Seal | None = Seal.PLAIN if stated == plain else None
    fault = None if seal else FrameFault.CRC
    if format_.is_go1:
        if stated == a1_layout.encrypted(plain):
            seal = Seal.ENCRYPTED
        fault = _go1_fault(datagram, format_.kind, seal)
    value: Value = format_.layout.unpack(datagram)
    return A1Frame(value, format_.kind, format_.dialects, stated, seal, fault)


def decode(datagram: bytes) -> A1Frame:
    """Return the content of a valid datagram, or raise `DecodeError` that says what is wrong with
    it.
    """
    frame = inspect(datagram)
    if frame.fault is None:
        return frame
    if frame.fault is FrameFault.HEAD:
        raise DecodeError(
            f"a frame of {len(datagram)} bytes is a Go1's and begins with {GO1_HEAD.hex(' ')}; "
            f"this one begins with {datagram[:2].hex(' ')}"
        )
    plain = a1_layout.crc(datagram[:-4])
    wanted = a1_layout.encrypted(plain) if frame.seal is Seal.PLAIN else plain
    raise DecodeError(
        f"the checksum of this {frame.kind.value} is {frame.crc[::-1].hex()} in the frame, "
        f"{wanted[::-1].hex()} by its bytes",
        "It was damaged on its way, or another program sends datagrams of this length.",
    )


def encode(value: Value, dialect: Dialect, *, seal: Seal | None = None) -> bytes:
    """Return the datagram for a value, or raise `BadRequestError` naming what it cannot hold.

    Without a `seal` it has the usual CRC: encrypted for a Go1's high-level states, otherwise plain.
    """
    format_ = _find_format(value, dialect)
    if isinstance(value, LowCmd):
        value.motors.check()
        header, motors, led, remote, reserve, bms = value
        begin, end = _encode_around(dialect, header, led, remote, reserve, bms)
        body = begin + motors.wire + end
    else:
        if isinstance(value, HighState | LowState) and value.motors is not None:
            value.motors.check()
        body = format_.layout.pack(_with_header(value, format_))
    plain = a1_layout.crc(body)
    if not format_.is_go1:
        if seal is Seal.ENCRYPTED:
            raise BadRequestError("only a Go1 knows encrypted checksums")
        return body + plain
    if seal is None:
        encrypts = format_.kind not in _COMMANDS and body[2] == GO1_HIGH
        seal = Seal.ENCRYPTED if encrypts else Seal.PLAIN
    return body + (plain if seal is Seal.PLAIN else a1_layout.encrypted(plain))


def fit(value: Value, dialect: Dialect) -> Value:
    """Return the same value without the fields that the dialect does not have."""
    format_ = _find_format(value, dialect)
    fitted: Value = format_.layout.fit(value)
    if type(fitted.header) is not type(format_.header):
        fitted = fitted._replace(header=None)
    return fitted


def is_finite(value: Value) -> bool:
    """Whether all numbers that move a robot, or that one steers by, are finite."""
    total = sum(_floats_of(value))
    if isinstance(value, HighState | LowState | LowCmd) and value.motors is not None:
        return math.isfinite(total) and value.motors.is_finite
    return math.isfinite(total)


def _floats_of(value: Value) -> tuple[float, ...]:
    if isinstance(value, ScaledHighCmd):
        return value[2:10]
    if isinstance(value, HighCmd):
        heights = (value.foot_raise_height_m, value.body_height_m, value.yaw_speed_rad_s)
        return (*heights, *value.position_m, *value.euler_rad, *value.velocity_m_s)
    if isinstance(value, LowCmd):
        return ()
    imu = value.imu
    told = (*imu.quaternion, *imu.gyroscope_rad_s, *imu.accelerometer_m_s2, *imu.rpy_rad)
    if isinstance(value, LowState):
        return told
    moved = (*value.position_m, *value.velocity_m_s, value.yaw_speed_rad_s, value.body_height_m)
    return told + moved


def _go1_fault(datagram: bytes, kind: A1FrameKind, seal: Seal | None) -> FrameFault | None:
    if datagram[:2] != GO1_HEAD:
        return FrameFault.HEAD
    if seal is None:
        return FrameFault.CRC
    wanted = Seal.ENCRYPTED if datagram[2] == GO1_HIGH else Seal.PLAIN
    return None if kind in _COMMANDS or seal is wanted else FrameFault.CRC


def _unknown_size_error(size: int) -> DecodeError:
    if size in _STRANGERS:
        return DecodeError(f"{size} bytes are the length of {_STRANGERS[size]}")
    sizes = ", ".join(map(str, sorted(BY_SIZE)))
    return DecodeError(
        f"no frame of an A1 or Go1 is {size} bytes long", f"The lengths there are: {sizes}."
    )


def _find_format(value: Value, dialect: Dialect) -> A1Format:
    format_ = BY_TYPE.get((type(value), dialect))
    if format_ is None:
        names = {make.__name__ for make, spoken in BY_TYPE if spoken is dialect}
        raise BadRequestError(
            f"there is no {type(value).__name__} in the dialect {dialect.value}",
            f"It has {', '.join(sorted(names))}.",
        )
    return format_


def _with_header(value: Value, format_: A1Format) -> Value:
    return value if value.header is not None else value._replace(header=format_.header)


@lru_cache(maxsize=64)
def _encode_around(
    dialect: Dialect,
    header: AnyHeader | None,
    led: Lights,
    remote: bytes,
    reserve: int,
    bms: BmsCmd | None,
) -> tuple[bytes, bytes]:
    """Return what goes before and after the motors; it hardly changes from command to command."""
    format_ = BY_TYPE[LowCmd, dialect]
    value = LowCmd(header, IDLE, led, remote, reserve, bms)
    body = format_.layout.pack(_with_header(value, format_))
    begin = format_.layout.offsets["motors"]
    return body[:begin], body[begin + len(IDLE.wire) :]
