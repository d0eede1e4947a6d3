"""Messages as values, what is known of a robot's modes, and how numbers with names print."""

import copy
import json
import pickle
from dataclasses import FrozenInstanceError, replace

import pytest

import rote
from rote.messages import ChangeMode, Keyframe, TakeControl
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


def test_a_message_cannot_be_changed() -> None:
    keyframe = Keyframe(joint=3, time_ms=20, value_rad=0.5)
    with pytest.raises(FrozenInstanceError):
        keyframe.time_ms = 40  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del keyframe.time_ms
    assert not hasattr(keyframe, "__dict__")
    assert keyframe.time_ms == 20


def test_messages_are_equal_by_class_and_fields() -> None:
    assert ChangeMode(4) == ChangeMode(4)
    assert hash(ChangeMode(4)) == hash(ChangeMode(4))
    assert ChangeMode(4) != ChangeMode(5)
    others: list[object] = [4, (4,), TakeControl()]
    assert ChangeMode(4) not in others
    assert TakeControl() == TakeControl()


def test_a_message_is_replaced_copied_and_pickled() -> None:
    keyframe = Keyframe(joint=3, time_ms=20, value_rad=0.5)
    assert replace(keyframe, time_ms=40) == Keyframe(joint=3, time_ms=40, value_rad=0.5)
    copies = [copy.copy(keyframe), copy.deepcopy(keyframe), pickle.loads(pickle.dumps(keyframe))]
    assert copies == [keyframe] * 3
    assert repr(keyframe) == "Keyframe(joint=3, time_ms=20, value_rad=0.5)"


def test_a_message_is_matched_by_its_fields() -> None:
    match ChangeMode(7):
        case ChangeMode(mode):
            assert mode == 7
        case _:
            pytest.fail("not matched")
