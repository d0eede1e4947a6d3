"""Finds the build and the family that a track's joints belong to.

A track names the build it was made on, but files may lose the name and other programs may write
anything. So the joints decide: the named build counts unless another family has more of them.
"""

from collections.abc import Collection, Iterator

from rote.model import registry
from rote.model.family import Build, Family, Joint
from rote.motion.track import Track

_LETTERS_WITH_AN = frozenset("aefhilmnorsx")
"""Letters whose names begin with a vowel sound: an A1, an R1, but a G1."""


def build_of(track: Track) -> Build | None:
    """Return the build of a track; None if no robot has any of the track's joints.

    That is the build that the track names, unless another family has more of its joints.
    """
    named = registry.find_build(track.variant)
    if named is not None:
        family = registry.family_of(named)
        shared = _count_shared(family, track.names)
        if shared == len(track.names):
            return named
        best = registry.family_with(track.names)  # the family with the most of the joints
        if shared and shared >= _count_shared(best, track.names):
            return named
    return build_with(track.names)


def family_of(track: Track) -> Family | None:
    """Return the family of a track; None if no robot has any of its joints."""
    build = build_of(track)
    return None if build is None else registry.family_of(build)


def build_with(names: tuple[str, ...]) -> Build | None:
    """Return the build with these joints; None if no robot has any of them.

    A build with exactly these joints is preferred, then the first of the family that has them all,
    then the default build of the family that has the most.
    """
    exact = registry.build_with(names)
    if exact is not None:
        return exact
    family = registry.family_with(names)
    if family is None:
        return None
    known_names = set(names).intersection(family.names)
    candidates = [build for build in family.builds if known_names <= set(build.names)]
    for build in candidates:
        if len(build.names) == len(known_names):
            return build
    return candidates[0] if candidates else family.default


def joints_by_name(build: Build) -> dict[str, Joint]:
    """Return all joints of a build's family, by name, with the limits of this build.

    They include joints of the family's other builds, and of the hands that can be attached.
    """
    family = registry.family_of(build)
    joints = {} if family is None else {joint.name: joint for joint in _iterate_joints(family)}
    return joints | {joint.name: joint for joint in build.joints}


def joints_of(track: Track) -> dict[str, Joint]:
    """Return those joints of a track that its robot has, by name, in the track's order."""
    build = build_of(track)
    known = {} if build is None else joints_by_name(build)
    return {name: known[name] for name in track.names if name in known}


def hand_joints(build: Build) -> frozenset[str]:
    """Return the names of the joints of all hands that can be attached to this build."""
    family = registry.family_of(build)
    hands = () if family is None else family.hands
    return frozenset(name for hand in hands for name in hand.names)


def a_robot(family: Family) -> str:
    """Return a family's name with its article: `an A1`, `a Tripod`."""
    name, first_letter = family.name, family.name[0].lower()
    # A name with a digit is spelled letter by letter, another one is pronounced as a word.
    if any(letter.isdigit() for letter in name):
        return f"{'an' if first_letter in _LETTERS_WITH_AN else 'a'} {name.upper()}"
    return f"{'an' if first_letter in 'aeiou' else 'a'} {name.capitalize()}"


def _iterate_joints(family: Family) -> Iterator[Joint]:
    """Yield the joints of a family and of the hands that can be attached."""
    for hand in family.hands:
        yield from hand.joints
    yield from family.joints


def _count_shared(family: Family | None, names: Collection[str]) -> int:
    """Return how many of these joints a robot of a family has, its hands included."""
    if family is None:
        return 0
    known = {joint.name for joint in _iterate_joints(family)}
    return sum(name in known for name in names)
