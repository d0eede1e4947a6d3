"""What is known of a robot's modes, and how numbers with names print."""

import json

import pytest

import rote
from rote.model.g1 import G1, Mode
from rote.named_enum import NamedIntEnum
from rote.robot.quadruped.commands import Gait, HighMode


def test_a_robot_balances_in_the_modes_it_walks_and_runs_in_and_in_no_unknown_one() -> None:
    balanced = {mode_id for mode_id in range(-2, 1000) if G1.modes.balanced(mode_id)}
    assert balanced == {Mode.WALK, Mode.WALK_WAIST, Mode.RUN, Mode.RUN_29}


@pytest.mark.parametrize(
    "kind", [rote.Code, rote.Interpolation, rote.Mode, rote.Phase, Gait, HighMode]
)
def test_a_number_with_a_name_prints_its_name_and_counts_as_its_number(
    kind: type[NamedIntEnum],
) -> None:
    for member in kind:
        assert str(member) == f"{member}" == member.name
        assert f"{member:<20}" == f"{member.name:<20}"
        assert f"{member:04d}" == f"{member.value:04d}"
        assert json.loads(json.dumps(member)) == member.value == member


def test_an_error_still_tells_a_code_by_its_number() -> None:
    refused = rote.RefusedError(rote.Code.WRONG_STATE, "no")
    assert str(refused).endswith("(code 7404)")
