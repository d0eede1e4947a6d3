"""A take owns its samples: whoever wants them subscribes, and a pause is left out everywhere."""

import asyncio
from pathlib import Path

import numpy as np
import pytest

import virtual
from a1_rig import pair
from rig import rig
from rote.errors import UnsupportedError
from rote.model.a1 import A1_BUILD
from rote.model.g1 import G1_23, G1_29
from rote.motion import files
from rote.motion.files.library import Library
from rote.motion.interpolate import MINIMUM_JERK_PEAK
from rote.motion.record import BRIDGE_RAD_S, Recorder, Sample
from rote.robot.take import Take
from rote.session.a1 import Level

STAND = (0.0,) * len(G1_29.names)


def feed(recorder: Recorder, first_ms: int, count: int, value: float = 0.0) -> None:
    for number in range(count):
        recorder.add_sample((first_ms + 10 * number) * 1000, (value,) * len(G1_29.names))


def test_what_lies_between_a_pause_and_its_end_takes_no_time() -> None:
    recorder = Recorder()
    feed(recorder, 0, 10)
    recorder.join()
    feed(recorder, 5000, 10)
    track = recorder.track()
    assert track.duration_s == pytest.approx(0.19)
    assert np.diff(track.times_s).max() == pytest.approx(0.01)
    (mark,) = track.marks
    assert mark.time_s == pytest.approx(0.09)


def test_joints_that_were_moved_in_a_pause_get_a_soft_way_there() -> None:
    recorder = Recorder()
    feed(recorder, 0, 10)
    recorder.join()
    feed(recorder, 5000, 10, value=0.8)
    track = recorder.track()
    speeds = np.abs(np.diff(track.joints_rad, axis=0)).max(axis=1) / np.diff(track.times_s)
    assert speeds.max() <= BRIDGE_RAD_S * 1.02
    assert np.diff(track.times_s).max() == pytest.approx(0.01)
    assert track.joints_rad[-1].max() == 0.8


def test_a_pause_before_the_first_sample_leaves_nothing_out() -> None:
    recorder = Recorder()
    recorder.join()
    feed(recorder, 300, 3)
    assert recorder.track().duration_s == pytest.approx(0.02)
    assert recorder.marks == ()


def test_the_track_bears_the_names_and_the_name_of_the_build() -> None:
    recorder = Recorder("a test", G1_23)
    recorder.add_sample(0, (0.0,) * 23)
    track = recorder.track()
    assert (track.variant, track.names) == ("g1-23", G1_23.names)


def test_every_subscriber_hears_every_sample_until_it_has_enough() -> None:
    take = Take("wave", G1_29, "udp")
    first, second = list[Sample](), list[Sample]()
    take.on_sample(first.append)
    forget = take.on_sample(second.append)
    take.add(1_000, STAND)
    forget()
    take.add(2_000, STAND)
    assert [sample.time_us for sample in first] == [0, 1_000]
    assert [sample.time_us for sample in second] == [0]
    assert list(take.rows(1)) == first[1:]
    assert take.samples == 2


def test_a_wire_that_cannot_pause_says_so() -> None:
    async def main() -> None:
        with pytest.raises(UnsupportedError, match="udp:// cannot pause"):
            await Take("wave", G1_29, "udp").pause()

    asyncio.run(main())


@pytest.mark.parametrize("wire", ["webrtc", "dds"])
def test_a_pause_is_left_out_of_the_take_of_its_file_and_of_what_is_shown(
    wire: str, tmp_path: Path
) -> None:
    async def main() -> None:
        library = Library(tmp_path)
        shown: list[Sample] = []
        async with rig(wire) as one, one.connect() as robot:
            async with robot.teach("mine", library=library) as take:
                take.on_sample(shown.append)
                await robot.move_by_hand("wave", 4.0)
                await asyncio.sleep(1.5)
                await take.pause()
                assert take.paused
                await asyncio.sleep(3.0)
                await take.resume()
                await asyncio.sleep(1.0)
            (stored,) = (await robot.actions()).taught
        track = take.track
        assert take.file is not None
        kept = files.load(take.file)
        assert len(shown) == len(track) == len(kept)
        assert track.longest_gap_s < 0.1
        assert np.allclose(kept.joints_rad, track.joints_rad)
        assert np.allclose(kept.times_s, track.times_s, atol=1e-6)
        assert [mark.label for mark in kept.marks] == ["paused here"]
        # The robot's own action has no hole either, and the same soft way over the pause.
        assert stored.duration_s == pytest.approx(track.duration_s, abs=0.6)
        (mark,) = kept.marks
        paused_rad = kept.joints_rad[int(np.argmin(np.abs(kept.times_s - mark.time_s)))]
        far_rad = float(np.abs(kept.joints_rad[-1] - paused_rad).max())
        way_s = MINIMUM_JERK_PEAK * far_rad / BRIDGE_RAD_S
        assert stored.duration_s == pytest.approx(2.5 + way_s, abs=0.6), "without the pause"

    virtual.run(main())


def test_the_legs_of_an_a1_are_paused_too(tmp_path: Path) -> None:
    async def main() -> None:
        async with pair(Level.LOW, start="hung") as (_, _, robot):
            async with robot.teach("sit", library=Library(tmp_path)) as take:
                await asyncio.sleep(0.5)
                await take.pause()
                before = take.samples
                await asyncio.sleep(1.0)
                assert take.samples == before
                await take.resume()
                await asyncio.sleep(0.5)
        assert take.build is A1_BUILD
        # A second was recorded; legs that swung meanwhile get a soft way to where they are then.
        assert 0.9 < take.track.duration_s < 1.6
        assert take.track.longest_gap_s < 0.05

    virtual.run(main())
