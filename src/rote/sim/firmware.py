"""Differences between firmware versions, as profiles.

The hardware is given by the build. Of a G1's two running modes, the firmware knows the one that
matches the build's joints.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from rote.errors import BadRequestError
from rote.model.family import Build, ModeFacts, ModeTable
from rote.model.r1 import R1
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
    answers_general_search: bool
    """Whether it answers a search for any robot, or only one that names its serial number."""
    standing: int | None = None
    """The mode after a normal start; None for the usual one of its family."""
    ignored: frozenset[int] = frozenset()
    """Modes that it accepts but does not change to."""
    confirms_any_mode: bool = False
    """Whether its services confirm a mode that does not exist, or that it cannot enter now."""
    refuses_current_mode: bool = False
    """Whether its services refuse the mode that it is in."""
    slots: int = SLOTS
    """Number of motor slots in its WebRTC states, regardless of its joints."""
    behaviour: Behaviour = LOGGED
    """Delays of its arms over the services."""
    quirks: Quirks = NO_QUIRKS
    """The known oddities of the robot."""
    delays_s: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Measured answer delays by service and api id (`arm/7107`); others use the defaults."""
    codes: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """Codes that replace the usual ones, by (service and api id, usual code). A replacement for 0
    means that the request is always refused.
    """
    longest_name: int | None = None
    """The longest name, in bytes, that its services accept; None for any."""


PROFILES: dict[str, Firmware] = {
    profile.version: profile
    for profile in (
        Firmware(version="1.4.7", signalling=2, answers_general_search=True, standing=500),
        Firmware(
            version="1.5.3",
            signalling=3,
            answers_general_search=False,
            standing=501,
            ignored=frozenset({500}),
            confirms_any_mode=True,
            # The app asks for the list 0.9 s after a save, and the release takes 4.1 s.
            behaviour=replace(LOGGED, lists_late=False),
        ),
    )
}
"""The profiles of a G1 with 29 joints, by version; `firmware_named` fits them to other builds."""
DEFAULT = PROFILES["1.4.7"]

_R1_CODES = {
    ("sport/7101", 7302): 1003,
    ("sport/7101", 7404): 1001,
    ("sport/7105", 0): 127,
    ("sport/7002", 0): 3203,
    ("sport/7107", 0): 3203,
}
"""The codes that an R1 EDU with ai_sport 1.0.2.154 answered."""

_FAMILY = "g1"
_RUN_23, _RUN_29 = 801, 802
"""The running mode of a G1 with 23 joints, and that of every other G1."""


def firmware_of(build: Build) -> Firmware:
    """Return the default firmware of a build."""
    if build.family == _FAMILY:
        return DEFAULT
    family = family_for(build)
    signalling = DEFAULT.signalling if family.signalling is None else family.signalling
    is_r1 = family is R1
    return Firmware(
        version="simulated",
        signalling=signalling,
        answers_general_search=family.answers_general_search,
        codes=_R1_CODES if is_r1 else {},
        refuses_current_mode=is_r1,
    )


def firmware_named(version: str, build: Build) -> Firmware:
    """Return the firmware of a version, fitted to a build.

    Raises `BadRequestError`, which names the known versions.
    """
    known = PROFILES if build.family == _FAMILY else {}
    if version not in known:
        raise BadRequestError(
            f"unknown firmware version {version!r} for {build.name}",
            f"Use: {', '.join(known)}."
            if known
            else "Omit the version: none is known for this robot.",
        )
    profile = known[version]
    if modes_of(build).standing in profile.ignored:
        # A waist of one joint stands in 500; only software for three joints ignores it.
        return replace(profile, standing=None, ignored=frozenset())
    return profile


def unknown_modes(build: Build) -> frozenset[int]:
    """Return the family's modes that a build does not know: one of a G1's two running modes."""
    if build.family != _FAMILY:
        return frozenset()
    return frozenset({_RUN_29 if len(build.joints) == 23 else _RUN_23})


_DAMP, _LOCK_STAND, _WALKS, _SQUAT_TO_STAND = 1, 4, (500, 501), 706
"""Modes of a G1."""
_GETTING_UP = {
    702: ModeFacts(702, "lie to stand", "getting up from the ground", balanced=False, stiff=True),
    _SQUAT_TO_STAND: ModeFacts(
        706, "squat to stand", "from a squat to a stand", balanced=False, stiff=True
    ),
}
_GET_UP_S, _LEAVE_S, _DAMP_S = 3.0, 1.0, 0.2
"""Durations of getting up, of leaving that mode, and of damping; guesses."""


def modes_of(build: Build) -> ModeTable:
    """Return the modes of a build's controller; for a G1 including the two for getting up.

    These are 702, from lying, and 706, from a squat and back. Both begin in the damped mode,
    because the simulated legs neither lie nor squat; 706 may begin in a stand, too. Neither allows
    teaching.
    """
    modes = build.modes or family_for(build).modes
    if build.family != _FAMILY:
        return modes
    transitions = {(_DAMP, mode): _GET_UP_S for mode in _GETTING_UP}
    stands = (_LOCK_STAND, *_WALKS)
    transitions |= {(stand, _SQUAT_TO_STAND): _GET_UP_S for stand in stands}
    for mode in _GETTING_UP:
        transitions |= {(mode, stand): _LEAVE_S for stand in stands}
        transitions[mode, _DAMP] = _DAMP_S
    return replace(
        modes, all=(*modes.all, *_GETTING_UP.values()), moves={**modes.moves, **transitions}
    )
