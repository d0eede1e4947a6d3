"""A recorder keeps the order of the robot's own clock, whatever the network does to it."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rote.errors import BadRequestError
from rote.messages import RobotState
from rote.model.g1 import G1_29
from rote.motion.record import Recorder


def state(time_us: int, value: float = 0.0, joints: int = 29) -> RobotState:
    return RobotState(
        joints_rad=(value,) * joints, velocities_rad_s=(0.0,) * joints, time_us=time_us
    )


def test_states_become_a_track_that_begins_at_zero() -> None:
    recorder = Recorder("a test")
    for number in range(3):
        assert recorder.add(state(5_000_000 + 10_000 * number, 0.1 * number))
    track = recorder.track()
    np.testing.assert_allclose(track.times_s, [0.0, 0.01, 0.02])
    np.testing.assert_allclose(track.joints_rad[:, 28], [0.0, 0.1, 0.2])
    assert (track.names, track.variant, track.source) == (G1_29.names, "g1-29", "a test")


def test_a_state_older_than_the_last_or_as_old_is_left_out() -> None:
    recorder = Recorder()
    taken = [recorder.add(state(time_us)) for time_us in (100, 200, 150, 200, 201, 0)]
    assert taken == [True, True, False, False, True, False]
    np.testing.assert_allclose(recorder.track().times_s, [0.0, 100e-6, 101e-6])


def test_a_state_of_another_width_is_left_out() -> None:
    recorder = Recorder()
    assert recorder.add(state(1, joints=12))
    assert not recorder.add(state(2, joints=29))
    assert recorder.add(state(3, joints=12))
    assert len(recorder) == 2
    assert recorder.track().names == G1_29.names[:12]


def test_nothing_recorded_has_all_joints_and_no_track() -> None:
    recorder = Recorder()
    assert (len(recorder), recorder.duration_s, recorder.rate_hz) == (0, 0.0, 0.0)
    assert len(recorder.names) == 29
    with pytest.raises(BadRequestError, match="at least one sample"):
        recorder.track()


def test_a_track_taken_early_does_not_grow_with_the_recording() -> None:
    recorder = Recorder()
    recorder.add(state(1))
    early = recorder.track()
    recorder.add(state(2))
    assert (len(early), len(recorder.track())) == (1, 2)


@given(st.lists(st.integers(0, 2**63), max_size=40))
def test_whatever_the_order_of_arrival_the_times_increase(times_us: list[int]) -> None:
    recorder = Recorder()
    taken = [time_us for time_us in times_us if recorder.add(state(time_us, joints=1))]
    assert len(recorder) == len(taken)
    assert all(a < b for a, b in itertools.pairwise(taken))
    # What is refused never hides a newer one: the newest of all is always among those taken.
    assert max(taken, default=0) == max(times_us, default=0)
