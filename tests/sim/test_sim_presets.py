"""The factory actions: which there are on which robot, and that each is a motion within limits."""

import numpy as np
import pytest

from g1_29 import LOWER_RAD, REST_RAD, UPPER_RAD
from rote.model.g1 import G1_23, G1_27, G1_29
from rote.sim.presets import POSES, PRESETS, RELEASE, SimPreset, motion_of, presets_of

PLAYED = [preset for preset in PRESETS.values() if preset.id != RELEASE]


def test_the_air_and_the_others_have_different_actions() -> None:
    air, edu = ({preset.id for preset in presets_of(build)} for build in (G1_23, G1_29))
    assert air - edu == {31, 32, 35}
    assert edu - air == {20, 21, 28, 29, 30, 36}
    assert edu == {preset.id for preset in presets_of(G1_27)}
    assert {99, 1, 15, 27} <= air & edu


@pytest.mark.parametrize("preset", PLAYED, ids=lambda preset: preset.name)
def test_a_preset_begins_at_rest_and_stays_within_the_joints(preset: SimPreset) -> None:
    joints = motion_of(preset, G1_29).joints_rad
    assert joints is not None
    assert np.allclose(joints[0], REST_RAD)
    assert ((joints >= LOWER_RAD) & (joints <= UPPER_RAD)).all()
    assert np.abs(joints - REST_RAD).max() > 0.3, "something is to be seen"
    assert np.allclose(joints[-1], REST_RAD) is (preset.id not in POSES)
