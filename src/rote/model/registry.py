"""The table of robots: the families that rote ships, and those from other packages.

A package adds a family by an entry point of the group `rote.robots` that names a `Family`:

    [project.entry-points."rote.robots"]
    tripod = "my_robots.tripod:TRIPOD"

rote's own families are searched first, so that other packages are imported only if needed.
"""

from collections.abc import Collection, Iterator
from functools import cache

from rote.errors import BadRequestError
from rote.model.a1 import A1
from rote.model.family import Build, Family, Joint, ModeTable
from rote.model.g1 import G1
from rote.model.g1_d import G1_D
from rote.model.r1 import R1
from rote.text import suggest_names

__all__ = [
    "ENTRY_POINTS", "families", "names", "find_family", "find_build", "build_named",
    "family_of", "modes_of", "family_with", "build_with", "joint_named", "joint_names",
]  # fmt: skip

ENTRY_POINTS = "rote.robots"
# The G1 comes first: its relatives share some of its joint names, and the first match counts.
_SHIPPED: tuple[Family, ...] = (G1, A1, R1, G1_D)


@cache
def _load_external_families() -> tuple[Family, ...]:
    """Return the families of other packages; raises `BadRequestError` if one cannot be used."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - seldom needed, slow to load

    loaded: list[Family] = []
    taken_names = {name for family in _SHIPPED for name in _list_names(family)}
    for point in entry_points(group=ENTRY_POINTS):
        try:
            family = point.load()
        except Exception as error:
            raise BadRequestError(
                f"the robot {point.name!r} of another package cannot be loaded: {error!r}",
                f"Repair or remove that package; its entry point is {point.value}.",
            ) from error
        if not isinstance(family, Family):
            raise BadRequestError(
                f"the entry point {point.name!r} of {ENTRY_POINTS} is {family!r}, not a robot",
                f"It must name a rote.model.family.Family; it names {point.value}.",
            )
        if duplicates := taken_names & _list_names(family):
            raise BadRequestError(
                f"the robot {point.name!r} of another package has a name that is taken: "
                f"{', '.join(sorted(duplicates))}",
                f"Rename its family or build, or remove that package; see {point.value}.",
            )
        taken_names |= _list_names(family)
        loaded.append(family)
    return tuple(loaded)


def _list_names(family: Family) -> set[str]:
    """Return the names of a family and its builds."""
    return {family.name, *(build.name for build in family.builds)}


def forget() -> None:
    """Forget the families of other packages; they are loaded again on the next lookup."""
    _load_external_families.cache_clear()


def families() -> tuple[Family, ...]:
    """Return all families, those that rote ships first."""
    return (*_SHIPPED, *_load_external_families())


def _iterate_families() -> Iterator[Family]:
    """Yield what `families` returns, but load other packages only when they are needed."""
    yield from _SHIPPED
    yield from _load_external_families()


def find_family(name: str) -> Family | None:
    """Return the family of that name, or None."""
    return next((family for family in _iterate_families() if family.name == name), None)


def find_build(name: str) -> Build | None:
    """Return the build of that name, or the default build of the family of that name; None if
    there is neither.
    """
    for family in _iterate_families():
        if family.name == name:
            return family.default
        for build in family.builds:
            if build.name == name:
                return build
    return None


def build_named(name: str) -> Build:
    """Return the build of that name, or raise `BadRequestError` that lists the known ones."""
    build = find_build(name)
    if build is None:
        remedy = f"{suggest_names(name, names())} There are: {', '.join(names())}.".lstrip()
        raise BadRequestError(f"there is no robot {name!r}", remedy)
    return build


def names() -> tuple[str, ...]:
    """Return the names of all builds."""
    return tuple(build.name for family in families() for build in family.builds)


def family_of(build: Build) -> Family | None:
    """Return the family of a build; None if the machine is not known."""
    return find_family(build.family)


def modes_of(build: Build) -> ModeTable:
    """Return the states of a build's motion controller; an unknown machine has none."""
    family = family_of(build)
    return build.modes or (ModeTable(all=()) if family is None else family.modes)


def family_with(joints: Collection[str]) -> Family | None:
    """Return the family that has the most of these joints; None if none has any.

    Of equal families, the first one is returned: arms alone belong to a G1, not a G1-D.
    """
    requested = set(joints)
    best = max(families(), key=lambda family: len(requested.intersection(family.names)))
    return best if requested.intersection(best.names) else None


def build_with(joints: tuple[str, ...]) -> Build | None:
    """Return the build that has exactly these joints in this order; None if none has."""
    return next(
        (build for family in families() for build in family.builds if build.names == joints), None
    )


def joint_named(name: str) -> Joint | None:
    """Return the first joint of that name in any family, or None."""
    for family in _iterate_families():
        for joint in family.joints:
            if joint.name == name:
                return joint
    return None


def joint_names(robot: str = "g1") -> tuple[str, ...]:
    """Return the joints of a build, or of the first build of a family, in the order of a state.

    Raises `BadRequestError` that lists the known ones.
    """
    return build_named(robot).names
