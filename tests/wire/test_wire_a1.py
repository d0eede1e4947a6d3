"""The A1's and Go1's frames against a table of offsets, against themselves and against garbage."""

import math
import random
import struct

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from a1_samples import SAMPLES, bitwise_crc, sealed
from rote.errors import BadRequestError, DecodeError
from rote.wire.a1 import codec as a1
from rote.wire.a1 import layout as a1_layout
from rote.wire.a1.codec import FrameFault, Seal
from rote.wire.a1.formats import BY_SIZE, BY_TYPE, FORMATS, A1Format
from rote.wire.a1.motors import MotorCmds, MotorState, MotorStates
from rote.wire.a1.values import (
    A1FrameKind,
    BmsCmd,
    BmsState,
    Button,
    Cartesian,
    Dialect,
    Go1Header,
    Header,
    HighCmd,
    HighState,
    Imu,
    Led,
    LowCmd,
    LowState,
    Remote,
    ScaledHighCmd,
    Value,
)

# How long an example takes depends on what else the machine does, and proves nothing.
relaxed = settings(deadline=None)
GO1, OLD, MIDDLE, NEW = Dialect.GO1, Dialect.A1_3_2, Dialect.A1_3_3, Dialect.A1_3_3_4


def named(format_: A1Format) -> str:
    return f"{format_.kind.value}-{format_.layout.size}"


# ---- the layouts --------------------------------------------------------------------------------

# Offsets from Unitree's headers and, for the low level, from what its library sends.
OFFSETS: dict[tuple[type, Dialect], tuple[int, dict[str, int]]] = {
    (ScaledHighCmd, OLD): (
        143,
        {"mode": 10, "forward": 11, "left": 15, "turn": 19, "body_height": 23,
         "foot_raise_height": 27, "yaw_rad": 31, "pitch_rad": 35, "roll_rad": 39, "led": 43,
         "remote": 55, "app_remote": 95, "reserve": 135},
    ),
    (HighState, OLD): (
        256,
        {"mode": 10, "imu": 11, "velocity_m_s": 64, "yaw_speed_rad_s": 72, "body_height_m": 76,
         "rise_speed_m_s": 80, "position_m": 84, "foot_position_m": 92, "foot_velocity_m_s": 140,
         "foot_force": 188, "foot_force_estimate": 196, "tick": 204, "remote": 208,
         "reserve": 248},
    ),
    (HighCmd, MIDDLE): (
        113,
        {"mode": 10, "gait": 11, "speed_level": 12, "foot_raise_height_m": 13,
         "body_height_m": 17, "position_m": 21, "euler_rad": 29, "velocity_m_s": 41,
         "yaw_speed_rad_s": 49, "led": 53, "remote": 65, "reserve": 105},
    ),
    (HighState, MIDDLE): (
        265,
        {"mode": 10, "progress": 11, "imu": 15, "gait": 68, "foot_raise_height_m": 69,
         "position_m": 73, "body_height_m": 85, "velocity_m_s": 89, "yaw_speed_rad_s": 101,
         "foot_position_m": 105, "foot_velocity_m_s": 153, "foot_force": 201,
         "foot_force_estimate": 209, "remote": 217, "reserve": 257},
    ),
    (HighState, NEW): (
        1025,
        {"imu": 10, "motors": 63, "foot_force": 823, "foot_force_estimate": 831, "mode": 839,
         "progress": 840, "gait": 844, "foot_raise_height_m": 845, "position_m": 849,
         "body_height_m": 861, "velocity_m_s": 865, "yaw_speed_rad_s": 877,
         "foot_position_m": 881, "foot_velocity_m_s": 929, "remote": 977, "reserve": 1017},
    ),
    (LowCmd, NEW): (610, {"motors": 10, "led": 550, "remote": 562, "reserve": 602}),
    (LowState, NEW): (
        771,
        {"imu": 10, "motors": 63, "foot_force": 703, "foot_force_estimate": 711, "tick": 719,
         "remote": 723, "reserve": 763},
    ),
    (HighCmd, GO1): (
        129,
        {"mode": 22, "gait": 23, "speed_level": 24, "foot_raise_height_m": 25,
         "body_height_m": 29, "position_m": 33, "euler_rad": 41, "velocity_m_s": 53,
         "yaw_speed_rad_s": 61, "bms": 65, "led": 69, "remote": 81, "reserve": 121},
    ),
    (HighState, GO1): (
        1087,
        {"imu": 22, "motors": 75, "bms": 835, "foot_force": 869, "foot_force_estimate": 877,
         "mode": 885, "progress": 886, "gait": 890, "foot_raise_height_m": 891,
         "position_m": 895, "body_height_m": 907, "velocity_m_s": 911, "yaw_speed_rad_s": 923,
         "obstacle_m": 927, "foot_position_m": 943, "foot_velocity_m_s": 991, "remote": 1039,
         "reserve": 1079},
    ),
    (LowCmd, GO1): (614, {"motors": 22, "bms": 562, "remote": 566, "reserve": 606}),
    (LowState, GO1): (
        807,
        {"imu": 22, "motors": 75, "bms": 715, "foot_force": 739, "foot_force_estimate": 747,
         "tick": 755, "remote": 759, "reserve": 799},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("which", "facts"), OFFSETS.items())
def test_a_frame_has_its_parts_where_the_maker_has_them(
    which: tuple[type, Dialect], facts: tuple[int, dict[str, int]]
) -> None:
    layout = BY_TYPE[which].layout
    assert (layout.size, layout.offsets) == (facts[0], {"header": 0, **facts[1]})


def test_every_frame_is_in_the_table() -> None:
    assert len(OFFSETS) == len(FORMATS) == len(BY_SIZE) == 11


# ---- the CRC ------------------------------------------------------------------------------------


@relaxed
@given(st.integers(8, 1200), st.integers(0, 2**32 - 1))
def test_the_quick_crc_is_the_slow_one(size: int, seed: int) -> None:
    frame = random.Random(seed).randbytes(size)
    assert a1_layout.crc(frame[:-4]) == bitwise_crc(frame)


@pytest.mark.parametrize("format_", FORMATS, ids=named)
def test_up_to_three_bytes_before_the_crc_are_not_covered(format_: A1Format) -> None:
    datagram = a1.encode(example(format_), format_.dialects[0])
    covered = len(datagram) // 4 * 4 - 4
    for place in range(2, len(datagram) - 4):
        flipped = bytearray(datagram)
        flipped[place] ^= 0x10
        assert (a1.inspect(bytes(flipped)).fault is None) == (place >= covered), place


# ---- any value and back -------------------------------------------------------------------------

# Whole frames drawn number by number would take a minute; a seed is drawn instead.


class Chance(random.Random):
    """Numbers that a frame can hold, at random."""

    def byte(self) -> int:
        return self.randrange(256)

    def word(self) -> int:
        return self.randrange(2**32)

    def small(self) -> int:
        return self.randint(-128, 127)

    def short(self) -> int:
        return self.randint(-(2**15), 2**15 - 1)

    def real(self) -> float:
        most = self.choice((0.0, 1.0, 1e6, 3e38))
        number: float = struct.unpack("<f", struct.pack("<f", self.uniform(-most, most)))[0]
        return number

    def reals(self, count: int) -> tuple[float, ...]:
        return tuple(self.real() for _ in range(count))

    def share(self) -> float:
        return self.choice((-1.0, -0.25, 0.0, 0.5, 1.0))

    def led(self) -> tuple[Led, ...]:
        return tuple(Led(self.byte(), self.byte(), self.byte()) for _ in range(4))

    def feet(self) -> tuple[Cartesian, ...]:
        return tuple(Cartesian(*self.reals(3)) for _ in range(4))

    def forces(self) -> tuple[int, ...]:
        return tuple(self.short() for _ in range(4))

    def remote(self) -> bytes:
        return self.randbytes(40)

    def imu(self) -> Imu:
        return Imu(self.reals(4), self.reals(3), self.reals(3), self.reals(3), self.small())

    def header(self, *, go1: bool) -> Header | Go1Header:
        level, half = self.byte(), self.randrange(2**16)
        if not go1:
            return Header(level, half, self.randrange(2**16), self.word(), self.byte())
        pairs = (self.word(), self.word()), (self.word(), self.word())
        return Go1Header(level, b"\xfe\xef", self.byte(), *pairs, half)

    def motor_state(self) -> MotorState:
        return MotorState(
            self.byte(),
            self.real(),
            self.real(),
            float(self.short()),
            self.short() / 256,
            self.real(),
            self.real(),
            float(self.short()),
            self.small(),
            (self.word(), self.word()),
        )

    def motors(self, kind: A1FrameKind) -> MotorCmds | MotorStates:
        if kind is A1FrameKind.LOW_CMD:
            rows = [[self.uniform(-100, 100) for _ in range(12)] for _ in range(5)]
            names = ("q_rad", "dq_rad_s", "tau_nm", "kp_nm_rad", "kd_nm_s_rad")
            return MotorCmds.servo(**dict(zip(names, rows, strict=True)))  # type: ignore[arg-type]
        motors = MotorStates.of([self.motor_state() for _ in range(self.randrange(21))])
        return motors.to_compact() if kind is A1FrameKind.LOW_STATE else motors

    def bms(self, kind: A1FrameKind) -> BmsCmd | BmsState:
        if kind in (A1FrameKind.LOW_CMD, A1FrameKind.HIGH_CMD):
            return BmsCmd(self.byte(), (self.byte(), self.byte(), self.byte()))
        low = kind is A1FrameKind.LOW_STATE
        cells = tuple(32 * self.byte() if low else self.randrange(2**16) for _ in range(10))
        pairs = (self.small(), self.small()), (self.small(), self.small())
        current = self.randint(-(2**31), 2**31 - 1)
        version = (self.byte(), self.byte())
        return BmsState(
            version, self.byte(), self.byte(), current, self.randrange(2**16), *pairs, cells
        )

    def field(self, format_: A1Format, name: str) -> object:
        if name in {"motors", "bms"}:
            return getattr(self, name)(format_.kind)
        if name == "header":
            return self.header(go1=format_.is_go1)
        part = format_.layout.parts[name]
        if part.flatten is None and part.codes[0] == "f":
            return self.reals(len(part.labels))
        if part.span is not None:
            return self.share()
        plain = {"B": self.byte, "I": self.word, "f": self.real, "hhhh": self.forces}
        others = {"imu": self.imu, "led": self.led, "40s": self.remote, "f" * 12: self.feet}
        make = plain.get(part.codes) or others.get(name) or others[part.codes]
        return make()

    def value(self, format_: A1Format) -> Value:
        fields = {name: self.field(format_, name) for name in format_.layout.parts}
        value: Value = format_.layout.value_type(**fields)
        return value


seeds = st.integers(0, 2**32 - 1)


def example(format_: A1Format) -> Value:
    value: Value = a1.fit(format_.layout.value_type(), format_.dialects[0])
    return value


@pytest.mark.parametrize("format_", FORMATS, ids=named)
@relaxed
@given(seeds)
def test_any_value_comes_back_as_it_was(format_: A1Format, seed: int) -> None:
    value = Chance(seed).value(format_)
    for dialect in format_.dialects:
        datagram = a1.encode(value, dialect)
        frame = a1.decode(datagram)
        assert (frame.value, frame.kind, frame.dialects) == (value, format_.kind, format_.dialects)
        assert frame.encode() == datagram


@pytest.mark.parametrize("format_", FORMATS, ids=named)
@relaxed
@given(seeds)
def test_any_bytes_come_back_but_for_signalling_nans(format_: A1Format, seed: int) -> None:
    datagram = sealed(random.Random(seed).randbytes(format_.layout.size))
    again = a1.inspect(datagram).encode()
    changed = {was ^ now for was, now in zip(datagram, again, strict=True) if was != now}
    assert changed <= {0x40}, "more changed than the bit that says a NaN signals"


# ---- what cannot be read ------------------------------------------------------------------------


@relaxed
@given(st.integers(0, 2000), seeds)
def test_bytes_of_any_other_length_are_refused(size: int, seed: int) -> None:
    assume(size not in BY_SIZE)
    with pytest.raises(DecodeError, match=str(size)):
        a1.decode(random.Random(seed).randbytes(size))


@relaxed
@given(st.sampled_from(sorted(BY_SIZE)), seeds)
def test_bytes_of_a_frame_s_length_are_refused_for_their_crc(size: int, seed: int) -> None:
    datagram = random.Random(seed).randbytes(size)
    with pytest.raises(DecodeError, match=r"checksum|begins"):
        a1.decode(datagram)


def test_the_structures_of_the_header_are_known_for_what_they_are() -> None:
    with pytest.raises(DecodeError, match="not what goes over the wire"):
        a1.decode(bytes(730))
    with pytest.raises(DecodeError, match="Go1 before"):
        a1.decode(bytes(117))


def test_a_wrong_head_is_named() -> None:
    datagram = bytearray(a1.encode(HighCmd(), GO1))
    datagram[0] = 0xFD
    with pytest.raises(DecodeError, match="fe ef; this one begins with fd ef"):
        a1.decode(sealed(bytes(datagram)))
    assert a1.inspect(bytes(datagram)).fault is FrameFault.HEAD


def test_a_wrong_checksum_is_named_in_the_form_it_should_have() -> None:
    state = HighState()
    good = a1.encode(state, GO1)
    plain = a1.encode(state, GO1, seal=Seal.PLAIN)
    with pytest.raises(DecodeError) as caught:
        a1.decode(plain)
    assert plain[-4:][::-1].hex() in str(caught.value)
    assert good[-4:][::-1].hex() in str(caught.value)
    assert "damaged" in caught.value.remedy


@pytest.mark.parametrize("level", [0xEE, 0xFF, 0xF0, 0x00])
@pytest.mark.parametrize("seal", Seal)
def test_a_go1_state_is_sealed_by_its_level(level: int, seal: Seal) -> None:
    state = LowState(header=Go1Header(level))
    wanted = Seal.ENCRYPTED if level == 0xEE else Seal.PLAIN
    frame = a1.inspect(a1.encode(state, GO1, seal=seal))
    assert frame.crc_holds == (seal is wanted)
    assert a1.decode(a1.encode(state, GO1)).seal is wanted


@pytest.mark.parametrize("seal", Seal)
def test_a_go1_command_is_read_in_either_form(seal: Seal) -> None:
    assert a1.decode(a1.encode(HighCmd(), GO1, seal=seal)).seal is seal
    assert a1.decode(a1.encode(HighCmd(), GO1)).seal is Seal.PLAIN


def test_an_a1_knows_no_encryption() -> None:
    with pytest.raises(BadRequestError, match="encrypted"):
        a1.encode(HighCmd(), NEW, seal=Seal.ENCRYPTED)
    datagram = a1.encode(HighCmd(), NEW, seal=Seal.PLAIN)
    forged = datagram[:-4] + a1_layout.encrypt_crc(datagram[-4:])
    assert a1.inspect(forged).fault is FrameFault.CRC


# ---- what cannot be written ---------------------------------------------------------------------

REFUSED: list[tuple[Value, Dialect, str]] = [
    (HighCmd(velocity_m_s=(0.0, math.nan)), NEW, r"velocity_m_s\[1\] is nan"),
    (HighCmd(yaw_speed_rad_s=math.inf), NEW, "yaw_speed_rad_s is inf"),
    (HighCmd(body_height_m=1e39), NEW, r"body_height_m is 1e\+39; the frame can hold -3.4"),
    (HighCmd(mode=256), NEW, "mode is 256; the frame can hold 0 to 255"),
    (HighCmd(mode=-1), NEW, "mode is -1"),
    (HighCmd(reserve=2**32), NEW, "reserve is 4294967296"),
    (HighCmd(remote=bytes(39)), NEW, "remote needs 40 bytes"),
    (HighCmd(velocity_m_s=(0.0,)), NEW, "velocity_m_s must have 2 numbers in this dialect, not 1"),
    (HighCmd(led=(Led(300), Led(), Led(), Led())), NEW, r"led\[0\].r is 300"),
    (HighCmd(header=Header(level=999)), NEW, "header.level is 999"),
    (HighCmd(header=Go1Header()), NEW, "needs a Header, not a Go1Header"),
    (HighCmd(header=Header()), GO1, "needs a Go1Header, not a Header"),
    (HighCmd(bms=BmsCmd(1)), NEW, "HighCmd has no bms"),
    (HighCmd(bms=BmsCmd(off=256)), GO1, "bms.off is 256"),
    (HighCmd(), OLD, "dialect 3.2 has no HighCmd"),
    (ScaledHighCmd(), NEW, "dialect 3.3.4 has no ScaledHighCmd"),
    (ScaledHighCmd(forward=1.01), OLD, "forward is 1.01; the frame can hold -1 to 1"),
    (ScaledHighCmd(roll_rad=math.nan), OLD, "roll_rad is nan"),
    (LowCmd(led=(Led(1), Led(), Led(), Led())), GO1, "LowCmd has no led"),
    (LowCmd(reserve=-1), NEW, "reserve is -1"),
    (LowState(tick=-1), NEW, "tick is -1"),
    (LowState(foot_force=(40_000, 0, 0, 0)), NEW, r"foot_force\[0\] is 40000"),
    (LowState(imu=Imu(temperature_c=200)), NEW, "imu.temperature_c is 200"),
    (LowState(imu=Imu(rpy_rad=(0.0, math.nan, 0.0))), NEW, r"imu.rpy_rad\[1\] is nan"),
    (LowState(bms=BmsState(cells_mv=(9_000,) * 10)), GO1, r"bms.cells_mv\[0\] is 281"),
    (LowState(motors=MotorStates.of([MotorState(q_rad=math.nan)])), NEW, r"motors\[0\].q is nan"),
    (LowState(motors=MotorStates.of([MotorState(tau_nm=200)])), NEW, r"motors\[0\].tau is 200"),
    (HighState(motors=MotorStates()), MIDDLE, "HighState has no motors"),
    (HighState(tick=1), MIDDLE, "HighState has no tick"),
    (HighState(), OLD, "velocity_m_s must have 2 numbers in this dialect, not 3"),
]


@pytest.mark.parametrize(("value", "dialect", "words_"), REFUSED)
def test_what_a_frame_cannot_hold_is_refused_by_name(
    value: Value, dialect: Dialect, words_: str
) -> None:
    with pytest.raises(BadRequestError, match=words_):
        a1.encode(value, dialect)


def test_a_fraction_is_no_mode() -> None:
    with pytest.raises(BadRequestError, match="cannot be written"):
        a1.encode(HighCmd(mode=1.5), NEW)  # type: ignore[arg-type]


def test_a_command_that_was_read_with_a_nan_is_not_passed_on() -> None:
    datagram = bytearray(a1.encode(LowCmd(), NEW))
    datagram[11 + 27 : 15 + 27] = struct.pack("<f", math.nan)
    frame = a1.decode(sealed(bytes(datagram)))
    assert isinstance(frame.value, LowCmd)
    assert frame.encode() == sealed(bytes(datagram))
    with pytest.raises(BadRequestError, match=r"motors\[1\].q_rad is nan"):
        a1.encode(frame.value, NEW)


def test_what_was_read_and_is_sound_is_passed_on() -> None:
    sample = SAMPLES["3.2 LowCmd distinct"].datagram
    value = a1.decode(sample).value
    assert a1.encode(value, NEW) == a1.encode(value, OLD) == sample


# ---- fitting ------------------------------------------------------------------------------------

FULL_STATE = HighState(
    header=Header(1, 2),
    mode=2,
    position_m=(1.0, 2.0, 3.0),
    velocity_m_s=(4.0, 5.0, 6.0),
    rise_speed_m_s=0.5,
    tick=7,
    progress=0.25,
    gait=1,
    foot_raise_height_m=0.125,
    motors=MotorStates.of([MotorState(q_rad=0.5)]),
    bms=BmsState(charge_percent=80),
    obstacle_m=(1.0, 2.0, 3.0, 4.0),
)


def test_a_state_is_fitted_to_a_dialect() -> None:
    old = a1.fit(FULL_STATE, OLD)
    assert isinstance(old, HighState)
    assert (old.header, old.position_m, old.velocity_m_s) == (Header(1, 2), (1.0, 2.0), (4.0, 5.0))
    assert (old.tick, old.rise_speed_m_s) == (7, 0.5)
    assert (old.progress, old.motors, old.bms, old.obstacle_m) == (None,) * 4
    go1 = a1.fit(FULL_STATE, GO1)
    assert isinstance(go1, HighState)
    assert (go1.header, go1.tick, go1.bms) == (None, None, FULL_STATE.bms)


@pytest.mark.parametrize("dialect", Dialect)
def test_a_fitted_state_can_be_sent_and_comes_back(dialect: Dialect) -> None:
    fitted = a1.fit(FULL_STATE, dialect)
    back = a1.decode(a1.encode(fitted, dialect)).value
    assert back._replace(header=None) == fitted._replace(header=None)
    longer = a1.fit(a1.fit(FULL_STATE, OLD), NEW)
    assert isinstance(longer, HighState)
    assert longer.position_m == (1.0, 2.0, 0.0)


# ---- numbers that are none ----------------------------------------------------------------------

NAN = math.nan
FINITE: list[tuple[Value, bool]] = [
    (ScaledHighCmd(), True),
    (ScaledHighCmd(turn=NAN), False),
    (HighCmd(), True),
    (HighCmd(euler_rad=(0.0, 0.0, math.inf)), False),
    (LowCmd(), True),
    (LowState(), True),
    (LowState(imu=Imu(gyroscope_rad_s=(0.0, NAN, 0.0))), False),
    (LowState(motors=MotorStates.of([MotorState(dq_rad_s=NAN)])), False),
    (LowState(motors=MotorStates.of([MotorState()] * 12 + [MotorState(q_rad=NAN)])), True),
    (HighState(), True),
    (HighState(position_m=(NAN, 0.0, 0.0)), False),
    (HighState(motors=MotorStates.of([MotorState(q_rad=-math.inf)])), False),
]


@pytest.mark.parametrize(("value", "finite"), FINITE)
def test_a_value_says_whether_one_can_steer_by_it(value: Value, finite: bool) -> None:
    assert a1.is_finite(value) is finite


# ---- the remote ---------------------------------------------------------------------------------


def test_a_remote_is_read_and_written() -> None:
    held = Button.R1 | Button.A | Button.LEFT
    remote = Remote(held, left_x=0.5, right_x=-0.5, right_y=1.0, l2=0.25, left_y=-1.0)
    wire = remote.pack()
    assert wire[2:4] == bytes([0b0000_0001, 0b1000_0001])
    assert struct.unpack_from("<5f", wire, 4) == (0.5, -0.5, 1.0, 0.25, -1.0)
    assert Remote.unpack(wire) == remote


@relaxed
@given(st.binary(min_size=40, max_size=40))
def test_any_remote_can_be_read(wire: bytes) -> None:
    assert Remote.unpack(wire).head == wire[:2]


def test_bad_remotes_are_refused() -> None:
    with pytest.raises(BadRequestError, match="40 bytes, not 3"):
        Remote.unpack(bytes(3))
    with pytest.raises(BadRequestError, match="cannot be written"):
        Remote(left_x=1e39).pack()
