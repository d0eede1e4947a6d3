"""Finds the build and the family that a track's joints belong to.

A track names the build it was made on, but files may lose the name and other programs may write
anything. So the joints decide: the named build counts unless another family has more of them.
"""

from collections.abc import Collection, Iterator

from rote.model import registry
from rote.model.family import Build, Family, Joint
from rote.motion.track import Track

# Letters that are pronounced with a vowel first: an A1, an R1, but a G1.
_SPOKEN_WITH_A_VOWEL = frozenset("aefhilmnorsx")


def build_of(track: Track) -> Build | None:
    """Return the build of a track; None if no robot has any of its joints.

    It is the one that the track names, unless another family has more of its joints.
    """
    named = registry.find_build(track.variant)
    if named is not None:
        family = registry.family_of(named)
        shared = _count_shared(family, track.names)
        if shared == len(track.names):
            return named
        other = registry.family_with(track.names)
        if shared and shared >= _count_shared(other, track.names):
            return named
    return build_with(track.names)


def family_of(track: Track) -> Family | None:
    """Return the family of a track; None if no robot has any of its joints."""
    build = build_of(track)
    return None if build is None else registry.family_of(build)


def build_with(names: tuple[str, ...]) -> Build | None:
    """Return the build with these joints; None if no robot has any of them.

    A build with exactly these joints comes first, then the first of the family that has all.
    """
    exact = registry.build_with(names)
    if exact is not None:
        return exact
    family = registry.family_with(names)
    if family is None:
        return None
    known = set(names).intersection(family.names)
    having = [build for build in family.builds if known <= set(build.names)]
    return next(
        (build for build in having if len(build.names) == len(known)), (*having, family.default)[0]
    )


def joints_by_name(build: Build) -> dict[str, Joint]:
    """Return all joints that a robot of a build's family may have, as this build has them.

    These are its own, those of other builds, and those of the hands that can be attached.
    """
    family = registry.family_of(build)
    joints = {} if family is None else {joint.name: joint for joint in _all_joints(family)}
    return joints | {joint.name: joint for joint in build.joints}


def joints_of(track: Track) -> dict[str, Joint]:
    """Return the joints of a track that its robot has, by name, in the track's order."""
    build = build_of(track)
    known = {} if build is None else joints_by_name(build)
    return {name: known[name] for name in track.names if name in known}


def hand_joints(build: Build) -> frozenset[str]:
    """Return the names of the joints of all hands that can be attached to this build."""
    family = registry.family_of(build)
    hands = () if family is None else family.hands
    return frozenset(name for hand in hands for name in hand.names)


def a_robot(family: Family) -> str:
    """Return a family's name as in a sentence: `an A1`."""
    name = family.name
    if any(sign.isdigit() for sign in name):
        return f"{'an' if name[0].lower() in _SPOKEN_WITH_A_VOWEL else 'a'} {name.upper()}"
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name.capitalize()}"


def _all_joints(family: Family) -> Iterator[Joint]:
    for hand in family.hands:
        yield from hand.joints
    yield from family.joints


def _count_shared(family: Family | None, names: Collection[str]) -> int:
    """Return how many of these joints a robot of a family has, its hands included."""
    if family is None:
        return 0
    known = {joint.name for joint in _all_joints(family)}
    return sum(name in known for name in names)
