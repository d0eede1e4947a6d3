"""Mistakes made once: each of these tests failed before its mistake was mended."""

from pathlib import Path

import numpy as np
import pytest

from rote import messages as m
from rote.errors import BadRequestError, StoreError, UnsafeMotionError
from rote.messages import Keyframe
from rote.model.g1 import G1_JOINTS, G1_MODES, Mode
from rote.motion.check.limits import check_joint_speeds, check_positions
from rote.motion.draw.plot import plot_pair
from rote.motion.files.csv_file import load_csv, save_csv
from rote.motion.track import Track
from rote.sim.fsm import ArmActivity, Machine
from rote.sim.store import Store
from rote.sim.world import World

KEYS = (Keyframe(joint=25, time_ms=400, value_rad=0.6),)


def world(mode: Mode = Mode.WALK) -> World:
    return World(Store(":memory:"), mode=mode)


def saved(keyframes: tuple[Keyframe, ...] = KEYS) -> World:
    w = world()
    w.obey(1, m.SaveAction(name="a", created_s=0, duration_ms=3000, keyframes=keyframes))
    return w


def test_damp_overtakes_a_change_to_zero_torque() -> None:
    machine = Machine(G1_MODES, Mode.DAMP)
    machine.change_mode(Mode.ZERO_TORQUE, 0.0)
    machine.change_mode(Mode.DAMP, 0.1)
    machine.advance(1.0)
    assert machine.mode == Mode.DAMP


def test_damp_is_allowed_while_rising() -> None:
    machine = Machine(G1_MODES, Mode.DAMP)
    machine.change_mode(Mode.LOCK_STAND, 0.0)
    machine.change_mode(Mode.DAMP, 0.5)
    machine.advance(10.0)
    assert machine.mode == Mode.DAMP


def test_a_damped_playback_is_reported_as_stopped_early() -> None:
    w = saved()
    w.obey(1, m.PlayAction(action=1))
    w.advance(1.0)
    w.obey(1, m.ChangeMode(Mode.DAMP))
    w.advance(0.3)
    assert w.state().stopped_early


def test_teaching_ends_without_balance() -> None:
    w = world()
    w.obey(1, m.EnterTeaching())
    w.obey(1, m.ChangeMode(Mode.LOCK_STAND))
    w.advance(1.5)
    assert w.machine.activity is ArmActivity.IDLE


def test_playing_ends_without_balance() -> None:
    w = saved()
    w.obey(1, m.PlayAction(action=1))
    w.advance(0.5)
    w.obey(1, m.ChangeMode(Mode.LOCK_STAND))
    w.advance(1.1)
    assert w.machine.activity is ArmActivity.IDLE


def test_a_hand_does_not_outlive_the_teaching_that_damping_ended() -> None:
    w = world()
    w.obey(1, m.EnterTeaching())
    w.obey(1, m.MoveByHand("wave", 60_000))
    w.advance(1.0)
    w.obey(1, m.ChangeMode(Mode.DAMP))
    w.advance(0.3)
    assert not w.body.held_by_hand


def test_entering_teaching_during_a_return_does_not_jump_the_waist() -> None:
    class Bend:
        def grip(self, time_s: float) -> "np.ndarray[tuple[int], np.dtype[np.float64]] | None":
            grip = np.full(29, np.nan)
            grip[13], grip[15] = 0.5, -2.5
            return grip if time_s < 3 else None

    w = world(Mode.DAMP)
    w.attach(Bend())
    w.advance(2.9)
    for mode, seconds in ((Mode.LOCK_STAND, 2.0), (Mode.WALK, 1.1)):
        w.obey(1, m.ChangeMode(mode))
        w.advance(seconds)
    before = w.body.setpoint_rad[13]
    assert w.obey(1, m.EnterTeaching()) == m.Status()
    w.advance(0.002)
    assert abs(w.body.setpoint_rad[13] - before) <= 0.002


def test_nan_is_not_safe() -> None:
    poses = np.array([[np.nan], [0.0]])
    with pytest.raises(UnsafeMotionError):
        check_positions(np.arange(2.0), poses, G1_JOINTS[:1])


def test_nan_has_no_safe_speed() -> None:
    poses = np.array([[np.nan], [0.0]])
    with pytest.raises(UnsafeMotionError):
        check_joint_speeds(np.arange(2.0), poses, G1_JOINTS[:1], np.array([1.0]))


def test_obey_never_raises() -> None:
    w = saved((Keyframe(joint=40, time_ms=400, value_rad=0.6),))
    reply = w.obey(1, m.PlayAction(action=1))
    assert isinstance(reply, m.Status)
    assert reply.code == m.Code.NO_SUCH_ACTION


def test_a_row_of_one_cell_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("t,a,b\n0.0,1,2\n0.5\n")
    with pytest.raises(BadRequestError, match="row 3"):
        load_csv(path)


@pytest.mark.parametrize("row", ["0.0,2", "0.1,nan"])
def test_a_refused_row_is_named_as_in_the_file(tmp_path: Path, row: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"t,a\n0.0,1\n{row}\n")
    with pytest.raises(BadRequestError, match=r"t\.csv.*row 3"):
        load_csv(path)


def test_a_track_of_few_joints_can_be_drawn(tmp_path: Path) -> None:
    track = Track(times_s=np.arange(3.0), joints_rad=np.zeros((3, 3)), names=("a", "b", "c"))
    plot_pair(track, track, tmp_path / "x.png", title="x")
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


def test_a_store_below_a_file_is_a_store_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError):
        Store(tmp_path / "file" / "g1.sqlite")


def test_zero_torque_gives_no_torque() -> None:
    w = world(Mode.ZERO_TORQUE)
    w.advance(1.0)
    assert not w.body.torques_nm.any()


def test_another_client_cannot_move_the_arms_of_somebody_elses_teaching() -> None:
    w = world()
    w.obey("ann", m.EnterTeaching())
    assert w.obey("bob", m.MoveByHand("wave", 1000)) == m.Status(m.Code.NOT_TEACHING)


def test_times_of_two_dimensions_are_refused() -> None:
    with pytest.raises(BadRequestError):
        Track(times_s=np.zeros((3, 1)), joints_rad=np.zeros((3, 1)), names=("a",))


def test_a_saved_csv_is_as_readable_as_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    track = Track(times_s=np.arange(3.0), joints_rad=np.zeros((3, 1)), names=("a",))
    save_csv(track, tmp_path / "t.csv")
    assert (tmp_path / "t.csv").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_file_of_one_byte_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"x")
    with pytest.raises(StoreError):
        Store(path)
