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
"""More is not read: an hour of a whole body at 50 frames a second takes less, as text too."""
UPRIGHT_RAD = 0.9
"""A base that stands, walks or bows is tilted less than this, nearly always."""
OVERTURNED_RAD = 1.75
"""A base tilted further is upside down, which no robot on its feet is."""

_G1 = "g1-29"
_WIDTHS = {29: "g1-29", 27: "g1-27", 23: "g1-23"}


class Quaternion(StrEnum):
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
    """Where the root is, (n, 3)."""
    turn: Array | None = None
    """The root's quaternion, (n, 4), in the order of the file."""
    order: Quaternion = Quaternion.WXYZ
    """The order that the format states."""
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
def joints_in_order(count: int) -> tuple[str, ...] | None:
    """Return the joints of the G1 with so many, in the order of its motors; None if none has."""
    name = _WIDTHS.get(count)
    return None if name is None else registry.build_named(name).names


@cache
def arm_joints() -> tuple[str, ...]:
    """Return the joints of both arms of a G1 in the order of its motors, the left one first."""
    build = registry.build_named(_G1)
    return tuple(joint.name for joint in build.joints if joint.part not in {"leg", "waist"})


@cache
def breadth_first() -> tuple[str, ...]:
    """Return the joints of a G1 as Isaac orders them: level by level from the pelvis outwards."""
    build = registry.build_named(_G1)
    found: list[str] = []
    family = registry.family_of(build)
    assert family is not None
    level = [family.body.base]
    while level:
        here = [joint for link in level for joint in build.joints if joint.parent == link]
        found += [joint.name for joint in here]
        level = [joint.link for joint in here]
    return tuple(found)


def quaternion_wxyz(turn: Array, order: Quaternion) -> Array:
    """Return quaternions with w first."""
    return turn[:, [3, 0, 1, 2]] if order is Quaternion.XYZW else turn


def tilts_rad(turn: Array, order: Quaternion) -> Array:
    """Return how far from upright the root is if its quaternion is read in this order, (n,)."""
    return RootPath(np.zeros((len(turn), 3)), quaternion_wxyz(turn, order)).tilt_rad


class Readings:
    """Both ways to read a quaternion, and the tilt that each implies."""

    def __init__(self, turn: Array, location: FileLocation) -> None:
        try:
            self._tilts = {order: tilts_rad(turn, order) for order in Quaternion}
        except BadRequestError as error:
            raise location.error(str(error)) from None

    @property
    def certain(self) -> Quaternion | None:
        """The only order in which the robot is on its feet; None if both or none make sense."""
        for order, other in (
            (Quaternion.XYZW, Quaternion.WXYZ),
            (Quaternion.WXYZ, Quaternion.XYZW),
        ):
            upright = np.quantile(self._tilts[order], 0.9) < UPRIGHT_RAD
            if upright and np.quantile(self._tilts[other], 0.9) > OVERTURNED_RAD:
                return order
        return None

    def describe(self) -> str:
        """Return both readings as text, each with the tilt that it implies."""
        parts = []
        for order in Quaternion:
            tilt = np.degrees(self._tilts[order])
            parts.append(
                f"read as {order.value} the base is tilted {np.median(tilt):.0f} degrees "
                f"(at most {tilt.max():.0f})"
            )
        return "; ".join(parts)
