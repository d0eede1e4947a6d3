"""The robot's own checks: what a motion is refused for, and what is only said."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from g1_29 import REST_RAD
from rote import messages as m
from rote.errors import UnsafeMotionError
from rote.messages import Code
from rote.model.g1 import G1_29, TAUGHT_JOINTS
from rote.motion.track import Array
from rote.sim.player import Playback, check_motion
from rote.sim.presets import PRESETS, SimPreset, motion_of
from rote.sim.store import Store, StoredAction
from rote.sim.world import World

ELBOW, ROLL = 18, 16


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    store = Store(tmp_path / "robot.db")
    yield World(store)
    store.close()


def swing(seconds: float = 2.0, joint: int = ELBOW, by_rad: float = -0.5) -> tuple[Array, Array]:
    times_s = np.arange(round(100 * seconds) + 1) / 100.0
    poses = np.repeat(REST_RAD[None, :], times_s.size, axis=0)
    poses[:, joint] += by_rad * np.sin(np.pi * times_s / seconds) ** 2
    return times_s, poses


def stored(world: World, times_s: Array, poses: Array, name: str = "swing") -> None:
    duration_ms = round(float(times_s[-1]) * 1000)
    action = StoredAction(
        name=name, created_s=1, duration_ms=duration_ms, times_s=times_s, joints_rad=poses
    )
    world.store.save(action)


def played(world: World) -> tuple[m.Reply, str]:
    reply = world.obey("me", m.PlayAction(action=1))
    return reply, "\n".join(notice.message for notice in world.notices)


def test_a_calm_motion_is_played_and_nothing_is_said(world: World) -> None:
    stored(world, *swing())
    reply, said = played(world)
    assert reply == m.Status(Code.OK)
    assert said == "playing 'swing'"


def test_a_recording_with_a_hole_is_refused_in_words(world: World) -> None:
    times_s, poses = swing()
    keep = (times_s < 0.5) | (times_s > 1.3)
    stored(world, times_s[keep], poses[keep])
    reply, said = played(world)
    assert reply == m.Status(Code.UNSAFE)
    assert "gap in the recording" in said
    assert "0.8" in said
    # What somebody sends with the request was not recorded, and has no holes.
    keyframes = (m.Keyframe(joint=ELBOW, time_ms=1000, value_rad=0.8),)
    assert world.obey("me", m.PlayAction(action=1, keyframes=keyframes)) == m.Status(Code.OK)


def test_a_motion_beyond_a_stop_or_too_fast_is_refused_in_words(world: World) -> None:
    times_s, poses = swing(by_rad=-9.0)
    stored(world, times_s, poses)
    reply, said = played(world)
    assert reply == m.Status(Code.UNSAFE)
    assert "left_elbow_joint is at" in said
    world.store.delete("swing")
    world.notices.clear()
    times_s, poses = swing()
    poses[100:, ELBOW] += 0.4
    stored(world, times_s, poses)
    reply, said = played(world)
    assert reply == m.Status(Code.UNSAFE)
    assert "rad/s, allowed 10.0 rad/s" in said


def test_a_warning_is_said_and_the_motion_is_played(world: World) -> None:
    times_s, poses = swing(0.4)
    poses[:, ELBOW] = REST_RAD[ELBOW] - 4.0 * np.minimum(times_s, 0.4 - times_s)  # turns at once
    stored(world, times_s, poses)
    reply, said = played(world)
    assert reply == m.Status(Code.OK)
    assert "a warning: left_elbow_joint would need" in said


def test_what_a_hand_could_have_led_the_arms_to_is_played(world: World) -> None:
    stored(world, *swing(joint=ROLL, by_rad=1.0))
    assert played(world)[0] == m.Status(Code.OK)


@pytest.mark.parametrize("preset", [each for each in PRESETS.values() if each.id != 99])
def test_every_factory_action_passes(preset: SimPreset) -> None:
    playback = Playback(motion_of(preset, G1_29), m.PlayAction(action=1), REST_RAD, G1_29)
    assert playback.warnings == ()


def test_only_joints_that_are_taught_are_asked_about() -> None:
    times_s, poses = swing()
    legs = [joint for joint in range(29) if joint not in TAUGHT_JOINTS]
    poses[:, legs] = 50.0
    check_motion(times_s, poses, None, G1_29)
    poses[:, ELBOW] = 50.0
    with pytest.raises(UnsafeMotionError, match="left_elbow_joint"):
        check_motion(times_s, poses, None, G1_29)
