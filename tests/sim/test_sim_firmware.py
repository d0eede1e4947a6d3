"""Profiles of software and hardware."""

import pytest

from rote.errors import BadRequestError
from rote.model.a1 import A1_BUILD
from rote.model.family import Build
from rote.model.g1 import G1_23, G1_27, G1_29, G1_ARMS, G1_MODES, RUNNING, Mode
from rote.sim.firmware import (
    DEFAULT,
    PROFILES,
    Firmware,
    firmware_named,
    firmware_of,
    unknown_modes,
)


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_a_profile_names_what_there_is(profile: Firmware) -> None:
    assert PROFILES[profile.version] is profile
    assert profile.signalling in (1, 2, 3)
    assert profile.standing is not None
    assert G1_MODES.balanced(profile.standing)
    assert profile.standing not in profile.ignored
    assert profile.slots == 35
    assert firmware_named(profile.version, G1_29) is profile


@pytest.mark.parametrize("build", [G1_29, G1_27, G1_23, G1_ARMS], ids=lambda build: build.name)
def test_a_g1_knows_one_of_the_two_running_modes_by_its_build(build: Build) -> None:
    known = set(RUNNING) - unknown_modes(build)
    assert known == {Mode.RUN if len(build.joints) == 23 else Mode.RUN_29}


def test_a_robot_that_is_no_g1_has_a_firmware_without_a_number() -> None:
    assert firmware_of(G1_23) is DEFAULT
    assert firmware_of(A1_BUILD).version not in PROFILES
    assert not unknown_modes(A1_BUILD)


@pytest.mark.parametrize(("version", "build"), [("9.9.9", G1_29), ("1.4.7", A1_BUILD)])
def test_a_firmware_that_a_build_does_not_have_is_refused(version: str, build: Build) -> None:
    with pytest.raises(BadRequestError, match=f"no firmware '{version}' of {build.name}"):
        firmware_named(version, build)


def test_the_usual_robot_answers_everybody_and_newer_ones_do_not() -> None:
    assert DEFAULT.answers_everybody
    assert (DEFAULT.signalling, PROFILES["1.5.3"].signalling) == (2, 3)
    assert not PROFILES["1.5.3"].answers_everybody
