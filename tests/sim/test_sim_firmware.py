"""Profiles of software and hardware."""

import pytest

from rote.model.g1 import MODES, RUNNING
from rote.sim.firmware import DEFAULT, PROFILES, Firmware
from rote.wire.lowstate import MACHINES


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_a_profile_names_what_there_is(profile: Firmware) -> None:
    assert PROFILES[profile.version] is profile
    assert profile.signalling in (1, 2, 3)
    assert profile.mode_machine in MACHINES
    assert profile.running in RUNNING
    assert MODES[profile.standing].balanced
    assert profile.standing not in profile.ignored


def test_the_usual_robot_answers_everybody_and_newer_ones_do_not() -> None:
    assert DEFAULT.answers_everybody
    assert (DEFAULT.signalling, PROFILES["1.5.3"].signalling) == (2, 3)
    assert not PROFILES["1.5.3"].answers_everybody
