"""A motion that is paused slows down on its path, holds, and goes on without a jump."""

import numpy as np
import pytest

from rote.errors import BadRequestError
from rote.robot.pausing import RAMP_S, PausablePoses
from rote.robot.streamed_motion import PoseRows

RATE_HZ = 250.0
RAMP = round(RAMP_S * RATE_HZ)
COUNT, FIRST = 2000, 100


def make_poses() -> tuple[PausablePoses, np.ndarray]:
    times_s = np.arange(COUNT) / RATE_HZ
    path_rad = np.column_stack([np.sin(times_s), 0.5 * np.cos(3 * times_s)])
    rows = PoseRows(np.ones(COUNT), path_rad, np.zeros((COUNT, 0)), FIRST)
    return PausablePoses(rows, RATE_HZ), path_rad


def send(poses: PausablePoses, begin: int, end: int) -> np.ndarray:
    made = [poses[index] for index in range(begin, end)]
    assert [pose.number for pose in made] == list(range(begin, end)), "numbers never repeat"
    return np.array([pose.joints_rad for pose in made])


def test_without_a_pause_every_pose_is_sent_as_it_is() -> None:
    poses, path_rad = make_poses()
    assert len(poses) == COUNT
    np.testing.assert_array_equal(send(poses, 0, COUNT), path_rad)
    assert not poses.is_in_motion


def test_a_pause_is_soft_stays_on_the_path_and_is_never_faster_than_the_motion() -> None:
    poses, path_rad = make_poses()
    before = send(poses, 0, 500)
    poses.pause(500)
    held = send(poses, 500, 500 + RAMP + 1000)
    assert poses.is_held
    assert np.ptp(held[RAMP + 1 :], axis=0).max() == 0.0
    poses.resume(500 + RAMP + 1000)
    after = send(poses, 500 + RAMP + 1000, len(poses))
    sent = np.vstack([before, held, after])
    steps = np.abs(np.diff(sent, axis=0))
    assert (steps.max(axis=0) <= np.abs(np.diff(path_rad, axis=0)).max(axis=0) + 1e-12).all()
    jerks = np.abs(np.diff(sent, n=2, axis=0)).max() * RATE_HZ**2
    assert jerks < np.abs(np.diff(path_rad, n=2, axis=0)).max() * RATE_HZ**2 + 1.5 * 2.0 / RAMP_S
    distances = [np.abs(path_rad - row).max(axis=1).min() for row in sent[::7]]
    assert max(distances) < 0.01, "no pose is beside the path"
    np.testing.assert_array_equal(sent[-200:], path_rad[-200:])
    assert len(sent) == COUNT + RAMP + 1000, "it is delayed by the pause, in whole ticks"


def test_a_robot_that_pauses_late_is_together_with_the_others_after_the_pause() -> None:
    (punctual, _), (late, _) = make_poses(), make_poses()
    send(punctual, 0, 500)
    send(late, 0, 530)
    punctual.pause(500)
    late.pause(500)
    send(punctual, 500, 1500)
    send(late, 530, 1500)
    assert punctual.resume(1500) == late.resume(1500)
    together = 1500 + 30 + RAMP + 1
    send(punctual, 1500, together)
    send(late, 1500, together)
    np.testing.assert_array_equal(
        send(punctual, together, len(punctual)), send(late, together, len(late))
    )


def test_pauses_follow_each_other_and_nonsense_is_refused() -> None:
    poses, path_rad = make_poses()
    with pytest.raises(BadRequestError, match="not paused"):
        poses.resume(10)
    send(poses, 0, 300)
    assert poses.is_in_motion
    for begin in (300, 900):
        poses.pause(begin)
        with pytest.raises(BadRequestError, match="paused already"):
            poses.pause(begin)
        send(poses, begin, begin + RAMP + 50)
        poses.resume(begin + RAMP + 50)
        with pytest.raises(BadRequestError, match="paused already"):
            poses.pause(begin + RAMP + 60)
        send(poses, begin + RAMP + 50, begin + 600)
    assert len(poses) == COUNT + 2 * (RAMP + 50)
    np.testing.assert_array_equal(send(poses, 1500, len(poses))[-1], path_rad[-1])


def test_poses_that_are_packed_together_are_few_so_that_a_pause_is_prompt() -> None:
    poses, _ = make_poses()
    assert [pose.number for pose in poses[0:50]] == list(range(8))


def test_a_motion_is_paused_only_while_a_pause_would_hold_the_arms_with_full_weight() -> None:
    weights = np.ones(COUNT)
    weights[-300:] = np.linspace(1.0, 0.0, 300)  # the soft return
    rows = PoseRows(weights, np.zeros((COUNT, 2)), np.zeros((COUNT, 0)), FIRST)
    poses = PausablePoses(rows, RATE_HZ)
    could = []
    for index in range(COUNT):
        poses[index]
        could.append(poses.is_in_motion)
    assert not any(could[:FIRST])
    assert all(could[FIRST : COUNT - 300 - RAMP])
    assert not any(could[COUNT - 300 - RAMP + 1 :])
