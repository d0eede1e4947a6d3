"""Differences between firmware versions, as profiles.

The hardware is given by the build. Of a G1's two running modes, the firmware knows the one that
matches the build's joints.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from rote.errors import BadRequestError
from rote.model.family import Build, ModeFacts, ModeTable
from rote.sim.behaviour import LOGGED, Behaviour
from rote.sim.columns import family_for
from rote.sim.quirks import NO_QUIRKS, Quirks
from rote.wire.services.lowstate import SLOTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Firmware:
    """How a robot with one firmware version behaves."""

    version: str
    signalling: int | str
    """How the first answer to a WebRTC client is encrypted: 2 one key for all, 3 a key per
    robot; older ones are 1, none and legacy.
    """
    answers_everybody: bool
    """Whether it answers a search for any robot, or only one that names its serial number."""
    standing: int | None = None
    """The mode after a normal start; None for the usual one of its family."""
    ignored: frozenset[int] = frozenset()
    """Modes that it accepts but does not change to."""
    slots: int = SLOTS
    """Number of motors in its WebRTC states, whatever joints it has."""
    behaviour: Behaviour = LOGGED
    """Delays of its arms over the services."""
    quirks: Quirks = NO_QUIRKS
    """Its known oddities."""
    delays_s: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Measured answer delays by service and api id (`arm/7107`); others use the defaults."""
    codes: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """Codes that replace the usual ones, by (service and api id, usual code). A replacement for 0
    means that the request is always refused."""
    longest_name: int | None = None
    """The longest name in bytes that its services take; None for any."""


PROFILES: dict[str, Firmware] = {
    profile.version: profile
    for profile in (
        Firmware(version="1.4.7", signalling=2, answers_everybody=True, standing=500),
        Firmware(
            version="1.5.3",
            signalling=3,
            answers_everybody=False,
            standing=501,
            ignored=frozenset({500}),
        ),
    )
}
"""The profiles of a G1, by version."""
DEFAULT = PROFILES["1.4.7"]

_FAMILY = "g1"
_RUN, _RUN_29 = 801, 802
_JOINTS_OF_SMALLEST = 23
"""A G1 with this many joints runs in the first of these modes, any other in the second."""


def firmware_of(build: Build) -> Firmware:
    """Return the default firmware of a build."""
    if build.family == _FAMILY:
        return DEFAULT
    family = family_for(build)
    signalling = DEFAULT.signalling if family.signalling is None else family.signalling
    return Firmware(
        version="simulated", signalling=signalling, answers_everybody=family.answers_everybody
    )


def firmware_named(version: str, build: Build) -> Firmware:
    """Return the firmware of that version; raise `BadRequestError` with the known ones."""
    known = PROFILES if build.family == _FAMILY else {}
    if version not in known:
        raise BadRequestError(
            f"there is no firmware {version!r} of {build.name}",
            f"Use: {', '.join(known)}." if known else "Leave it out: none is known.",
        )
    return known[version]


def unknown_modes(build: Build) -> frozenset[int]:
    """Return the family's modes that a build does not know: one of a G1's two running modes."""
    if build.family != _FAMILY:
        return frozenset()
    return frozenset({_RUN_29 if len(build.joints) == _JOINTS_OF_SMALLEST else _RUN})


_DAMP, _LOCK_STAND, _WALKS = 1, 4, (500, 501)
_GETTING_UP = {
    702: ModeFacts(702, "lie to stand", "getting up from the ground", balanced=False, stiff=True),
    706: ModeFacts(706, "squat to stand", "from a squat to a stand", balanced=False, stiff=True),
}
_GET_UP_S, _LEAVE_S, _DAMP_S = 3.0, 1.0, 0.2
"""Durations of getting up, of leaving that mode, and of damping; guesses."""


def modes_of(build: Build) -> ModeTable:
    """Return the modes of a build's controller; for a G1 including the two for getting up.

    They are 702, from lying, and 706, from a squat and back. Both begin in the damped mode, because
    this robot's legs neither lie nor squat; 706 may begin in a stand too. Teaching is not possible
    there.
    """
    modes = family_for(build).modes
    if build.family != _FAMILY:
        return modes
    ways = {(_DAMP, mode): _GET_UP_S for mode in _GETTING_UP}
    ways |= {(stand, 706): _GET_UP_S for stand in (_LOCK_STAND, *_WALKS)}
    for mode in _GETTING_UP:
        ways |= {(mode, after): _LEAVE_S for after in (_LOCK_STAND, *_WALKS)}
        ways[mode, _DAMP] = _DAMP_S
    return replace(modes, all=(*modes.all, *_GETTING_UP.values()), moves={**modes.moves, **ways})
