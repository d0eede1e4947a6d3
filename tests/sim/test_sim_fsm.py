"""Every cell of the robot's two tables, and every pair that is in neither."""

import itertools

import pytest

from rote.messages import Code
from rote.model.g1 import G1_MODES, MODES, MOVES, RUNNING, WALKING, Mode
from rote.sim.fsm import ACTIVITIES, ArmActivity, ArmInput, Machine
from rote.sim.refusal import RefusalError

# The tables once more, drawn by hand: a row is where the robot is, a column where it is to go.
DRAWN_MOVES = """
              zero_torque  damp  lock_stand  walk  walk_waist  run  run_29
zero_torque   -            0.2   no          no    no          no   no
damp          0.2          -     2.0         no    no          no   no
lock_stand    no           0.2   -           1.0   1.0         1.0  1.0
walk          no           0.2   1.0         -     0.5         0.5  0.5
walk_waist    no           0.2   1.0         0.5   -           0.5  0.5
run           no           0.2   no          0.5   0.5         -    no
run_29        no           0.2   no          0.5   0.5         no   -
"""
DRAWN_ACTIVITIES = """
          teach     exit     play     end   stop
idle      teaching  idle     playing  no    idle
teaching  teaching  idle     no       no    idle
playing   no        playing  no       idle  idle
"""


def table(drawn: str) -> dict[tuple[str, str], str]:
    header, *rows = (line.split() for line in drawn.strip().splitlines())
    return {
        (row[0], column): cell for row in rows for column, cell in zip(header, row[1:], strict=True)
    }


MODE_CELLS = table(DRAWN_MOVES)
ACTIVITY_CELLS = table(DRAWN_ACTIVITIES)


def machine_in(activity: ArmActivity) -> Machine:
    machine = Machine(G1_MODES)
    if activity is not ArmActivity.IDLE:
        machine.act(ArmInput.TEACH if activity is ArmActivity.TEACHING else ArmInput.PLAY)
    assert machine.activity is activity
    return machine


# ---- modes --------------------------------------------------------------------------------------


def test_modes_have_the_ids_a_g1_reports() -> None:
    assert {mode.name: mode.value for mode in Mode} == {
        "ZERO_TORQUE": 0,
        "DAMP": 1,
        "LOCK_STAND": 4,
        "WALK": 500,
        "WALK_WAIST": 501,
        "RUN": 801,
        "RUN_29": 802,
    }


def test_only_walking_and_running_balance_and_only_the_lowest_two_are_limp() -> None:
    assert set(MODES) == set(Mode)
    assert {mode for mode in Mode if MODES[mode].balanced} == {*WALKING, *RUNNING}
    assert {mode for mode in Mode if not MODES[mode].stiff} == {Mode.ZERO_TORQUE, Mode.DAMP}


@pytest.mark.parametrize(("here", "there"), list(itertools.product(Mode, Mode)))
def test_a_mode_changes_as_drawn_or_is_refused_and_stays(here: Mode, there: Mode) -> None:
    machine = Machine(G1_MODES, here)
    cell = MODE_CELLS[here.name.lower(), there.name.lower()]
    if cell == "no":
        with pytest.raises(RefusalError) as caught:
            machine.change_mode(there, 10.0)
        assert caught.value.code is Code.WRONG_STATE
        assert (here, there) not in MOVES
    else:
        machine.change_mode(there, 10.0)
    if cell in ("no", "-"):
        assert not machine.advance(1e9)
        assert machine.mode == here
        return
    arrival_s = 10.0 + float(cell)
    assert not machine.advance(arrival_s - 1e-6)
    assert machine.mode == here
    assert machine.advance(arrival_s)
    assert machine.mode == there
    assert not machine.advance(arrival_s + 1e9)


def test_the_table_of_moves_has_nothing_that_is_not_drawn() -> None:
    drawn = {pair for pair, cell in MODE_CELLS.items() if cell not in ("no", "-")}
    assert {(a.name.lower(), b.name.lower()) for a, b in MOVES} == drawn


@pytest.mark.parametrize("here", list(Mode))
def test_damping_is_reached_from_every_other_mode_at_once(here: Mode) -> None:
    machine = Machine(G1_MODES, here)
    machine.change_mode(Mode.DAMP, 0.0)
    machine.advance(0.2)
    assert machine.mode == Mode.DAMP


@pytest.mark.parametrize("stranger", [-1, 2, 3, 5, 499, 502, 702, 706, 800, 803, 2**32 - 1])
def test_a_mode_nobody_knows_is_a_bad_payload_and_changes_nothing(stranger: int) -> None:
    machine = Machine(G1_MODES, Mode.LOCK_STAND)
    with pytest.raises(RefusalError) as caught:
        machine.change_mode(stranger, 0.0)
    assert caught.value.code is Code.BAD_PAYLOAD
    assert not machine.advance(1e9)


def test_asking_again_for_the_mode_under_way_does_not_start_the_change_anew() -> None:
    machine = Machine(G1_MODES, Mode.DAMP)
    machine.change_mode(Mode.LOCK_STAND, 0.0)
    machine.change_mode(Mode.LOCK_STAND, 1.9)
    assert machine.advance(2.0)


def test_damping_overtakes_a_change_under_way() -> None:
    machine = Machine(G1_MODES, Mode.WALK)
    machine.change_mode(Mode.LOCK_STAND, 0.0)
    machine.change_mode(Mode.DAMP, 0.5)
    assert machine.advance(0.7)
    assert machine.mode == Mode.DAMP
    assert not machine.advance(1e9), "the first change is forgotten"


def test_a_robot_nobody_controls_falls_at_once_and_forgets_where_it_was_going() -> None:
    machine = Machine(G1_MODES, Mode.LOCK_STAND)
    machine.change_mode(Mode.WALK, 0.0)
    machine.enter_damp_mode()
    assert machine.mode == Mode.DAMP
    assert not machine.advance(1e9)


def test_a_refused_change_leaves_the_one_under_way_alone() -> None:
    machine = Machine(G1_MODES, Mode.WALK)
    machine.change_mode(Mode.LOCK_STAND, 0.0)
    with pytest.raises(RefusalError):
        machine.change_mode(Mode.ZERO_TORQUE, 0.5)
    machine.advance(1.0)
    assert machine.mode == Mode.LOCK_STAND


def test_the_way_up_from_power_on_to_balanced_standing() -> None:
    machine, now_s = Machine(G1_MODES, Mode.ZERO_TORQUE), 0.0
    for mode in (Mode.DAMP, Mode.LOCK_STAND, Mode.WALK):
        assert not machine.balanced
        machine.change_mode(mode, now_s)
        now_s += 2.0
        machine.advance(now_s)
        assert machine.mode == mode
    assert machine.balanced


# ---- activities ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("activity", "event"), list(itertools.product(ArmActivity, ArmInput)))
def test_an_activity_changes_as_drawn_or_is_refused_and_stays(
    activity: ArmActivity, event: ArmInput
) -> None:
    machine = machine_in(activity)
    cell = ACTIVITY_CELLS[activity.value, event.value]
    if cell == "no":
        with pytest.raises(RefusalError) as caught:
            machine.act(event)
        assert caught.value.code is Code.BUSY
        assert machine.activity is activity
    else:
        machine.act(event)
        assert machine.activity is ArmActivity(cell)


def test_the_table_of_activities_has_nothing_that_is_not_drawn() -> None:
    drawn = {pair for pair, cell in ACTIVITY_CELLS.items() if cell != "no"}
    assert {(a.value, event.value) for a, event in ACTIVITIES} == drawn


@pytest.mark.parametrize("activity", list(ArmActivity))
def test_stopping_is_allowed_in_every_activity_and_mode(activity: ArmActivity) -> None:
    machine = machine_in(activity)
    for mode in Mode:
        machine.mode = mode
        machine.act(ArmInput.STOP)
        assert machine.activity is ArmActivity.IDLE


@pytest.mark.parametrize("event", [ArmInput.TEACH, ArmInput.PLAY])
@pytest.mark.parametrize("mode", [mode for mode in Mode if not MODES[mode].balanced])
def test_teaching_and_playing_need_balance(mode: Mode, event: ArmInput) -> None:
    machine = Machine(G1_MODES, mode)
    with pytest.raises(RefusalError) as caught:
        machine.act(event)
    assert caught.value.code is Code.WRONG_STATE
    assert machine.activity is ArmActivity.IDLE


@pytest.mark.parametrize("event", [ArmInput.TEACH, ArmInput.PLAY])
def test_a_robot_that_is_changing_its_mode_is_not_balanced(event: ArmInput) -> None:
    machine = Machine(G1_MODES, Mode.WALK)
    machine.change_mode(Mode.WALK_WAIST, 0.0)
    with pytest.raises(RefusalError) as caught:
        machine.act(event)
    assert caught.value.code is Code.WRONG_STATE
    machine.advance(0.5)
    machine.act(event)


@pytest.mark.parametrize("mode", list(Mode))
def test_a_machine_holds_its_joints_where_its_mode_says_so(mode: Mode) -> None:
    assert Machine(G1_MODES, mode).stiff is MODES[mode].stiff
