"""A motion that others made is played on a real robot only if a person agreed."""

from pathlib import Path

import numpy as np
import pytest

import virtual
from rig import rig
from rote.errors import ImportedMotionError
from rote.motion.files.agreed_origins import agree, is_agreed
from rote.motion.track import Origin, Track
from rote.platform.paths import agreed_file

STRANGER = Origin("gmr", "dance.pkl", "CC BY 4.0", "", "abc")


def waving(origin: Origin | None) -> Track:
    times_s = np.arange(101) / 50
    elbow = 1.0 - 0.2 * np.sin(np.pi * times_s)
    return Track(
        times_s=times_s, joints_rad=elbow[:, None], names=("left_elbow_joint",), origin=origin
    )


def test_over_a_wire_a_strangers_motion_needs_a_yes() -> None:
    async def story() -> None:
        async with rig("udp") as one, one.connect() as robot:
            with pytest.raises(ImportedMotionError) as refused:
                robot.play_track(waving(STRANGER))
            assert "dance.pkl" in str(refused.value)
            assert "CC BY 4.0" in str(refused.value)
            assert "imported=True, speed=0.5" in str(refused.value.remedy)
            with pytest.raises(ImportedMotionError):
                await robot.store_track(waving(STRANGER), "dance")
            assert (await robot.play_track(waving(None))).completed
            assert (await robot.play_track(waving(STRANGER), imported=True, force=True)).completed

    virtual.run(story())


def test_the_simulated_robot_of_this_process_plays_it_unasked() -> None:
    import rote

    async def story() -> None:
        async with rote.connect("sim://g1") as robot:
            assert (await robot.play_track(waving(STRANGER), force=True)).completed

    virtual.run(story())


def test_a_yes_counts_for_all_that_came_from_that_file_and_for_no_other() -> None:
    track = waving(STRANGER)
    assert not is_agreed(track.origin)
    agree(track.origin)
    assert is_agreed(track.speed(0.5).origin)
    other = waving(Origin("gmr", "kick.pkl", "", "", "def"))
    assert not is_agreed(other.origin)
    both = track.concatenate(other)
    assert not is_agreed(both.origin)
    assert both.origin is not None
    assert "dance.pkl" in both.origin.file
    assert "kick.pkl" in both.origin.file
    assert is_agreed(None)
    assert not is_agreed(Origin("gmr", "made by hand.pkl"))


def test_what_was_agreed_to_survives_damage_as_a_no(tmp_path: Path) -> None:
    agree(STRANGER)
    agreed_file().write_bytes(b"{ damaged")
    assert not is_agreed(STRANGER)
    agree(STRANGER)
    assert is_agreed(STRANGER)
