"""The contents of another program's file before it becomes a track: numbers and notes on them."""

from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path

import numpy as np

from rote.errors import BadRequestError
from rote.model import registry
from rote.motion.body.root_path import RootPath
from rote.motion.files import disk
from rote.motion.files.metadata import FileLocation
from rote.motion.track import Array

MAX_BYTES = 64 * 2**20
"""Maximum size of a file: an hour of a whole body at 50 Hz takes less, even as text."""
UPRIGHT_RAD = 0.9
"""The base of a robot that stands, walks or bows is nearly always tilted less than this."""
OVERTURNED_RAD = 1.75
"""A base tilted further than this is upside down: the robot is not on its feet."""
_NEARLY_ALWAYS = 0.9  # of the samples

_WHOLE_BODY = "g1-29"
_BUILD_BY_JOINT_COUNT = {29: "g1-29", 27: "g1-27", 23: "g1-23"}


class QuaternionOrder(StrEnum):
    """The order of a quaternion's four numbers."""

    XYZW = "xyzw"
    WXYZ = "wxyz"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Contents:
    """The numbers of a file, in the units and the order of rote."""

    names: tuple[str, ...]
    joints_rad: Array
    """(n, joints)."""
    fps: float | None = None
    """Frames a second; None if the file does not state them."""
    position_m: Array | None = None
    """The position of the base, (n, 3)."""
    quaternions: Array | None = None
    """The orientation of the base, (n, 4), in the order of the file."""
    order: QuaternionOrder = QuaternionOrder.WXYZ
    """The order of `quaternions` that the format specifies."""
    notes: tuple[str, ...] = ()
    """Notes for the user about how it was read."""


def read_bytes(location: FileLocation) -> bytes:
    """Return the content of a file; refuse one that is too large to be read at once."""
    with disk.open_checked(Path(location.file)) as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise location.error(f"it has more than {MAX_BYTES >> 20} MB", "Cut it into pieces.")
    return data


@cache
def list_joints_in_motor_order(count: int) -> tuple[str, ...] | None:
    """Return the joints of the G1 build with `count` joints, in the order of its motors; None if
    there is no such build.
    """
    name = _BUILD_BY_JOINT_COUNT.get(count)
    return None if name is None else registry.build_named(name).names


@cache
def list_arm_joints() -> tuple[str, ...]:
    """Return the joints of both arms of a G1 in the order of its motors, the left one first."""
    build = registry.build_named(_WHOLE_BODY)
    return tuple(joint.name for joint in build.joints if joint.part not in {"leg", "waist"})


@cache
def list_joints_breadth_first() -> tuple[str, ...]:
    """Return the joints of a G1 as Isaac orders them: level by level from the pelvis outwards."""
    build = registry.build_named(_WHOLE_BODY)
    names: list[str] = []
    family = registry.family_of(build)
    assert family is not None
    level = [family.body.base]
    while level:
        level_joints = [joint for link in level for joint in build.joints if joint.parent == link]
        names += [joint.name for joint in level_joints]
        level = [joint.link for joint in level_joints]
    return tuple(names)


def to_wxyz(quaternions: Array, order: QuaternionOrder) -> Array:
    """Return quaternions, (n, 4), in the order w, x, y, z."""
    return quaternions[:, [3, 0, 1, 2]] if order is QuaternionOrder.XYZW else quaternions


def _compute_tilts_rad(quaternions: Array, order: QuaternionOrder) -> Array:
    """Return how far the base is tilted if its quaternions are read in this order, (n,)."""
    return RootPath(np.zeros((len(quaternions), 3)), to_wxyz(quaternions, order)).tilt_rad


_EXACT_LENGTH, _MAX_LENGTH_ERROR = 1e-3, 0.1
"""The largest error in a quaternion's length that is ignored as rounding, and the largest that is
corrected, because the average of quaternions is shorter than 1."""


def normalise_quaternions(quaternions: Array) -> tuple[Array, float]:
    """Return quaternions with length 1, and the largest error of their length.

    If all errors are small enough to be ignored, or one is too large to be corrected, the
    quaternions are unchanged and the error is 0.
    """
    with np.errstate(over="ignore"):
        length = np.linalg.norm(quaternions, axis=1)
    error = float(np.abs(length - 1.0).max(initial=0.0))
    if not _EXACT_LENGTH < error <= _MAX_LENGTH_ERROR:
        return quaternions, 0.0
    return quaternions / length[:, None], error


class TiltsByOrder:
    """How far the base is tilted, for each possible order of its quaternions' four numbers."""

    def __init__(self, quaternions: Array, location: FileLocation) -> None:
        try:
            self._tilts = {
                order: _compute_tilts_rad(normalise_quaternions(quaternions)[0], order)
                for order in QuaternionOrder
            }
        except BadRequestError as error:
            raise location.error(str(error)) from None

    @property
    def certain_order(self) -> QuaternionOrder | None:
        """The only order in which the robot is on its feet; None if both or none make sense."""
        for order, other in (
            (QuaternionOrder.XYZW, QuaternionOrder.WXYZ),
            (QuaternionOrder.WXYZ, QuaternionOrder.XYZW),
        ):
            is_upright = np.quantile(self._tilts[order], _NEARLY_ALWAYS) < UPRIGHT_RAD
            if is_upright and np.quantile(self._tilts[other], _NEARLY_ALWAYS) > OVERTURNED_RAD:
                return order
        return None

    def describe(self) -> str:
        """Return both readings as text, each with the tilt that it implies."""
        parts = []
        for order in QuaternionOrder:
            tilts_deg = np.degrees(self._tilts[order])
            parts.append(
                f"read as {order.value} the base is tilted {np.median(tilts_deg):.0f} degrees "
                f"(at most {tilts_deg.max():.0f})"
            )
        return "; ".join(parts)
