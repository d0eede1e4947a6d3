"""What is known of a robot's modes."""

from rote.model.g1 import G1, Mode


def test_a_robot_balances_in_the_modes_it_walks_and_runs_in_and_in_no_unknown_one() -> None:
    balanced = {mode_id for mode_id in range(-2, 1000) if G1.modes.balanced(mode_id)}
    assert balanced == {Mode.WALK, Mode.WALK_WAIST, Mode.RUN, Mode.RUN_29}
