"""The joint names of LeRobot's own driver of a G1, which ignores all others."""

from functools import cache

from rote.model import registry
from rote.model.family import Family

DRIVER = "unitree_g1"
"""The robot type of LeRobot's own driver."""

_ENDINGS = (".q", ".pos", ".position")


def driver_name(joint: str) -> str:
    """Return the driver's name of a joint: `kLeftElbow.q`."""
    words = joint.removesuffix("_joint").split("_")
    return f"k{''.join(word.capitalize() for word in words)}.q"


def joint_named(name: str) -> str | None:
    """Return the joint of a G1 that is called `name` in a data set; None if there is none.

    Known are rote's own names, with or without `_joint`, and the driver's, in any letter case:
    older versions of it use `kLeftWristyaw`. Each may end in `.q` or `.pos`.
    """
    bare = name
    for ending in _ENDINGS:
        bare = bare.removesuffix(ending)
    return _joints_by_alias().get(bare.lower())


@cache
def _joints_by_alias() -> dict[str, str]:
    found: dict[str, str] = {}
    for joint in _g1().names:
        found[joint] = found[joint.removesuffix("_joint")] = joint
        found[driver_name(joint).removesuffix(".q").lower()] = joint
    return found


def _g1() -> Family:
    family = registry.find_family("g1")
    assert family is not None
    return family
