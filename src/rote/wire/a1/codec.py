"""The UDP frames of the A1 and the Go1: identified by length, checked, and decoded.

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

Only the length identifies a frame of an A1; a Go1 begins every frame with FE EF. `decode` accepts
what Unitree's library accepts and raises `DecodeError` for anything else; `inspect` also reads
invalid frames, and reports their fault.

The CRC of a Go1's high-level states (level flag EE) must be encrypted, that of its other states
plain. Commands are read with either: Unitree's client sends a plain CRC, Unitree's receiver applies
the rule for states.

Decoding and encoding again preserves every float except a signalling NaN outside the motors, which
becomes a quiet one.
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
# Frames that rote does not read, by size.
_OTHER_FRAMES = {
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
    """The form of a frame's CRC; only a Go1 encrypts it."""

    PLAIN = "plain"
    ENCRYPTED = "encrypted"


class FrameFault(Enum):
    """Why a frame is rejected."""

    HEAD = "head"
    """A Go1's frame does not begin with FE EF."""
    CRC = "crc"


class A1Frame(NamedTuple):
    """A decoded datagram, valid or not."""

    value: Value
    kind: A1FrameKind
    dialects: tuple[Dialect, ...]
    """All dialects that could have sent it."""
    crc: bytes
    """The CRC in the datagram."""
    seal: Seal | None
    """The form in which the CRC is valid; None if it is invalid in both."""
    fault: FrameFault | None = None
    """Why the frame must not be used; None if it is valid."""

    @property
    def crc_holds(self) -> bool:
        """Whether the CRC is valid, in the form required for such a frame."""
        return self.seal is not None and self.fault is not FrameFault.CRC

    def encode(self) -> bytes:
        """Return the datagram that was decoded, with its CRC, even if that is wrong."""
        layout = BY_TYPE[type(self.value), self.dialects[0]].layout
        return layout.pack(self.value, verbatim=True) + self.crc


def inspect(datagram: bytes) -> A1Frame:
    """Return the content of a datagram, valid or not; raise `DecodeError` for an unknown length."""
    format_ = BY_SIZE.get(len(datagram))
    if format_ is None:
        raise _unknown_size_error(len(datagram))
    stated_crc, plain_crc = datagram[-4:], a1_layout.crc(datagram[:-4])
    seal: Seal | None = None
    if stated_crc == plain_crc:
        seal = Seal.PLAIN
    elif format_.is_go1 and stated_crc == a1_layout.encrypt_crc(plain_crc):
        seal = Seal.ENCRYPTED
    if format_.is_go1:
        fault = _find_go1_fault(datagram, format_.kind, seal)
    else:
        fault = None if seal else FrameFault.CRC
    value: Value = format_.layout.unpack(datagram)
    return A1Frame(value, format_.kind, format_.dialects, stated_crc, seal, fault)


def decode(datagram: bytes) -> A1Frame:
    """Return the content of a valid datagram; raise `DecodeError` for any other."""
    frame = inspect(datagram)
    if frame.fault is None:
        return frame
    if frame.fault is FrameFault.HEAD:
        raise DecodeError(
            f"a frame of {len(datagram)} bytes, as a Go1 sends it, must begin with "
            f"{GO1_HEAD.hex(' ')}; this one begins with {datagram[:2].hex(' ')}"
        )
    expected_crc = a1_layout.crc(datagram[:-4])
    if frame.seal is Seal.PLAIN:  # that is a fault only where the CRC must be encrypted
        expected_crc = a1_layout.encrypt_crc(expected_crc)
    raise DecodeError(
        f"the checksum of this {frame.kind.value} is {frame.crc[::-1].hex()} in the frame, but "
        f"{expected_crc[::-1].hex()} for its bytes",
        "It was damaged in transit, or another program sends datagrams of this length.",
    )


def encode(value: Value, dialect: Dialect, *, seal: Seal | None = None) -> bytes:
    """Return the datagram for a value, or raise `BadRequestError` naming what it cannot hold.

    Without a `seal` it has the usual CRC: encrypted for a Go1's high-level states, otherwise plain.
    """
    format_ = _find_format(value, dialect)
    if seal is Seal.ENCRYPTED and not format_.is_go1:
        raise BadRequestError("only a Go1 uses encrypted checksums")
    if isinstance(value, LowCmd):  # sent up to 500 times per second, so only motors are packed
        value.motors.check()
        header, motors, led, remote, reserve, bms = value
        begin, end = _encode_without_motors(dialect, header, led, remote, reserve, bms)
        body = begin + motors.wire + end
    else:
        if isinstance(value, HighState | LowState) and value.motors is not None:
            value.motors.check()
        body = format_.layout.pack(_add_default_header(value, format_))
    if seal is None:
        is_encrypted = format_.is_go1 and format_.kind not in _COMMANDS and body[2] == GO1_HIGH
        seal = Seal.ENCRYPTED if is_encrypted else Seal.PLAIN
    plain_crc = a1_layout.crc(body)
    return body + (plain_crc if seal is Seal.PLAIN else a1_layout.encrypt_crc(plain_crc))


def fit(value: Value, dialect: Dialect) -> Value:
    """Return the value of a command or state without the fields that the dialect lacks."""
    format_ = _find_format(value, dialect)
    fitted: Value = format_.layout.fit(value)
    if type(fitted.header) is not type(format_.header):
        fitted = fitted._replace(header=None)
    return fitted


def is_finite(value: Value) -> bool:
    """Whether all commanded or measured motion values are finite."""
    # A sum is finite only if each of its terms is.
    total = sum(_list_floats(value))
    if isinstance(value, HighState | LowState | LowCmd) and value.motors is not None:
        return math.isfinite(total) and value.motors.is_finite
    return math.isfinite(total)


def _list_floats(value: Value) -> tuple[float, ...]:
    """Return the numbers outside the motors that must be finite."""
    if isinstance(value, ScaledHighCmd):
        return value[2:10]  # from `forward` to `roll_rad`
    if isinstance(value, HighCmd):
        heights = (value.foot_raise_height_m, value.body_height_m, value.yaw_speed_rad_s)
        return (*heights, *value.position_m, *value.euler_rad, *value.velocity_m_s)
    if isinstance(value, LowCmd):
        return ()
    imu = value.imu
    imu_values = (*imu.quaternion, *imu.gyroscope_rad_s, *imu.accelerometer_m_s2, *imu.rpy_rad)
    if isinstance(value, LowState):
        return imu_values
    motion = (*value.position_m, *value.velocity_m_s, value.yaw_speed_rad_s, value.body_height_m)
    return imu_values + motion


def _find_go1_fault(datagram: bytes, kind: A1FrameKind, seal: Seal | None) -> FrameFault | None:
    """Return why a Go1's frame is invalid; None if its first bytes and its CRC are valid.

    Commands may have a CRC of either form; the level in the third byte decides for states.
    """
    if datagram[:2] != GO1_HEAD:
        return FrameFault.HEAD
    if seal is None:
        return FrameFault.CRC
    expected = Seal.ENCRYPTED if datagram[2] == GO1_HIGH else Seal.PLAIN
    return None if kind in _COMMANDS or seal is expected else FrameFault.CRC


def _unknown_size_error(size: int) -> DecodeError:
    if size in _OTHER_FRAMES:
        return DecodeError(f"{size} bytes are the length of {_OTHER_FRAMES[size]}")
    sizes = ", ".join(map(str, sorted(BY_SIZE)))
    return DecodeError(f"no frame of an A1 or Go1 is {size} bytes long", f"Known lengths: {sizes}.")


def _find_format(value: Value, dialect: Dialect) -> A1Format:
    """Return the format of a value in a dialect; raise `BadRequestError` if it has none."""
    format_ = BY_TYPE.get((type(value), dialect))
    if format_ is None:
        names = {kind.__name__ for kind, its_dialect in BY_TYPE if its_dialect is dialect}
        raise BadRequestError(
            f"the dialect {dialect.value} has no {type(value).__name__}",
            f"It has {', '.join(sorted(names))}.",
        )
    return format_


def _add_default_header(value: Value, format_: A1Format) -> Value:
    return value if value.header is not None else value._replace(header=format_.header)


@lru_cache(maxsize=64)
def _encode_without_motors(
    dialect: Dialect,
    header: AnyHeader | None,
    led: Lights,
    remote: bytes,
    reserve: int,
    bms: BmsCmd | None,
) -> tuple[bytes, bytes]:
    """Return a LowCmd's bytes before and after its motors; cached, since they seldom change."""
    format_ = BY_TYPE[LowCmd, dialect]
    value = LowCmd(header, IDLE, led, remote, reserve, bms)
    body = format_.layout.pack(_add_default_header(value, format_))
    begin = format_.layout.offsets["motors"]
    return body[:begin], body[begin + len(IDLE.wire) :]
