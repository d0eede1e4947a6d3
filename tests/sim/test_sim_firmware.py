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
from rote.sim.store import Store
from rote.sim.world import World


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
    with pytest.raises(
        BadRequestError, match=f"unknown firmware version '{version}' for {build.name}"
    ):
        firmware_named(version, build)


@pytest.mark.parametrize("build", [G1_27, G1_23], ids=lambda build: build.name)
def test_software_that_ignores_mode_500_does_so_only_with_a_waist_of_three_joints(
    build: Build,
) -> None:
    assert PROFILES["1.5.3"].ignored == {Mode.WALK}
    firmware = firmware_named("1.5.3", build)
    assert not firmware.ignored
    assert firmware.version == "1.5.3"
    store = Store(":memory:")
    assert World(store, build=build, firmware=firmware).machine.mode == Mode.WALK
    assert World(store, build=G1_29, firmware=PROFILES["1.5.3"]).machine.mode == Mode.WALK_WAIST
    store.close()


def test_the_usual_robot_answers_a_general_search_and_newer_ones_do_not() -> None:
    assert DEFAULT.answers_general_search
    assert (DEFAULT.signalling, PROFILES["1.5.3"].signalling) == (2, 3)
    assert not PROFILES["1.5.3"].answers_general_search
