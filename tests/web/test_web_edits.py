"""What the page's time line shows of an edited take is what the next step works on."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from rote.errors import BadRequestError
from rote.motion.edit.steps import apply
from rote.motion.track import Mark, Track
from rote.web.schemas import robot as schemas
from rote.web.services.edits import plain_steps
from virtual import run
from web.pendant import one_browser

STEPS: TypeAdapter[list[schemas.Step]] = TypeAdapter(schemas.Steps)


def ramp(seconds: float = 6.0, begin_s: float = 0.0, name: str = "left_elbow_joint") -> Track:
    """A joint whose angle is a tenth of the time since the take began, at 100 Hz."""
    since_s = np.arange(round(seconds * 100) + 1) / 100
    return Track(
        times_s=begin_s + since_s,
        joints_rad=since_s[:, None] / 10,
        names=(name,),
        marks=(Mark(begin_s + 3.0, "half"),),
    )


def edited(track: Track, *steps: dict[str, Any]) -> Track:
    wanted = plain_steps(STEPS.validate_python(list(steps)))
    return apply(track, wanted, {"other": ramp(1.0, begin_s=7.0)})


def trim(start_s: float, end_s: float) -> dict[str, Any]:
    return {"op": "trim", "start_s": start_s, "end_s": end_s}


def test_a_second_trim_counts_from_the_beginning_of_what_the_first_has_left() -> None:
    twice = edited(ramp(begin_s=5.0), trim(1.0, 6.0), trim(0.1, 4.0))
    assert twice.joints_rad[[0, -1], 0] == pytest.approx([0.11, 0.5], abs=0.002)
    assert twice.times_s[0] == 0.0
    assert twice.duration_s == pytest.approx(3.9, abs=0.02)
    assert twice.marks[0].time_s == pytest.approx(1.9, abs=0.02)


def test_a_trim_to_an_end_that_was_rounded_keeps_the_last_sample() -> None:
    times_s = np.array([0.0, 0.5, 1.00004])
    track = Track(times_s=times_s, joints_rad=times_s[:, None], names=("left_elbow_joint",))
    for shown_s in (1.0, 1.0001):
        assert edited(track, trim(0.5, shown_s)).joints_rad[-1, 0] == 1.00004
    with pytest.raises(BadRequestError, match="step 1, trim: the end"):
        edited(track, trim(0.5, 1.1))


any_step = st.one_of(
    st.just({"op": "reverse"}),
    st.just({"op": "trim_idle"}),
    st.just({"op": "concatenate", "other": "other", "bridge_s": 2}),
    st.builds(lambda s: {"op": "close_loop", "seconds": s}, st.floats(2, 5)),
    st.builds(lambda f: {"op": "speed", "factor": f}, st.floats(0.5, 2)),
    st.builds(trim, st.floats(0, 0.4), st.floats(0.6, 0.9)),
)


@settings(max_examples=25)
@given(st.floats(-5, 5), st.lists(any_step, max_size=4))
def test_whatever_is_done_a_take_begins_at_0_s(begin_s: float, steps: list[dict[str, Any]]) -> None:
    try:
        track = edited(ramp(begin_s=begin_s), *steps)
    except BadRequestError:
        reject()
    assert track.times_s[0] == 0.0


def test_a_version_that_is_edited_stays_the_one_that_is_edited(tmp_path: Path) -> None:
    """Saving under the take's own name must not make the steps begin from what was saved."""

    async def story() -> None:
        async with one_browser(tmp_path) as (server, page):
            server.library.save(ramp(), "clap")
            asked = {"take": "clap", "steps": [trim(1.0, 5.0)]}
            first = await page.post("/edit", **asked)
            assert (first["version"], first["duration_s"]) == (1, pytest.approx(4))
            kept = await page.post("/edit/save", **asked, version=1, name="clap")
            assert (kept["version"], kept["versions"]) == (2, [1, 2])
            again = await page.post("/edit", **asked, version=1)
            assert (again["version"], again["duration_s"]) == (1, pytest.approx(4))
            newest = await page.post("/edit", take="clap", steps=[])
            assert (newest["version"], newest["duration_s"]) == (2, pytest.approx(4))
            assert newest["times_s"][0] == 0
            (take,) = (await page.get("/takes"))["takes"]
            assert (take["version"], take["versions"]) == (2, [1, 2])
            gone = await page.refused("/edit", 400, take="clap", version=3)
            assert "1, 2" in gone["remedy"]
            assert (await page.refused("/edit", 422, take="clap", version=0))["remedy"]
            await page.post("/play/take", take="clap", version=1, steps=[], force=True)
            playing = await page.status(lambda s: s["activity"]["kind"] == "playing")
            assert playing["activity"]["duration_s"] == pytest.approx(6)
            await page.post("/stop")

    run(story())


def test_a_file_that_does_not_say_where_it_came_from_came_from_itself(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (_, page):
            text = b"t,left_elbow_joint\n0.0,0.1\n0.5,0.2\n1.0,0.3\n"
            sent = {"file": ("C:\\tmp\\nod twice.csv", text)}
            entry = (await page.ask("POST", "/takes/upload", files=sent)).json()
            assert (entry["name"], entry["source"]) == ("nod twice", "file nod twice.csv")

    run(story())


def test_curves_come_without_a_check_and_a_part_of_them_with_all_samples(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (server, page):
            server.library.save(ramp(60.0), "slow")
            asked = {"take": "slow", "steps": [trim(5.0, 55.0)]}
            whole = await page.post("/edit/curves", **asked)
            assert (len(whole["times_s"]), whole["whole"]) == (1500, False)
            assert whole["limbs"] == {"left_arm": ["left_elbow_joint"]}
            assert "findings" not in whole
            part = await page.post("/edit/curves", **asked, start_s=20.0, end_s=22.0)
            assert np.diff(part["times_s"]) == pytest.approx(0.01, abs=1e-3)
            assert part["times_s"][0] <= 20.0
            assert part["times_s"][-1] >= 22.0
            assert (part["duration_s"], len(part["times_s"])) == (pytest.approx(50), 201)
            assert part["whole"]
            odd = await page.post("/edit/curves", **asked, start_s=500.0, end_s=-3.0)
            assert len(odd["times_s"]) >= 1
            both = await page.post("/edit", **asked)
            check = await page.post("/edit/check", **asked)
            assert check == {key: both[key] for key in ("version", "findings", "ok")}

    run(story())


def test_keyframes_are_proposed_moved_and_refused_beyond_a_limit(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (server, page):
            server.library.save(ramp(), "lift")
            found = (await page.post("/edit/keyframes", take="lift"))["keyframes"]
            assert [found[0]["time_s"], found[-1]["time_s"]] == pytest.approx([0, 6])
            assert {each["joint"] for each in found} == {"left_elbow_joint"}
            asked = {"take": "lift", "joints": ["left_elbow_joint"]}
            assert (await page.post("/edit/keyframes", **asked))["keyframes"] == found
            await page.refused("/edit/keyframes", 400, take="lift", joints=["tail"])
            step = {"op": "keyframe", "time_s": 3.0, "pose": {"left_elbow_joint": 1.0}}
            bent = await page.post("/edit/curves", take="lift", steps=[step])
            row = bent["times_s"].index(3.0)
            assert bent["joints_rad"][row][0] == pytest.approx(1.0)
            assert bent["marks"] == [{"time_s": 3.0, "label": "half"}]
            far = {**step, "pose": {"left_elbow_joint": 3.0}}
            said = await page.refused("/edit/curves", 400, take="lift", steps=[far])
            assert "step 1, keyframe: left_elbow_joint is 3 rad; the range is" in said["message"]
            for pose in ({}, {"left_elbow_joint": 8.0}, {"left_elbow_joint": "up"}, [1.0]):
                await page.refused("/edit", 422, take="lift", steps=[{**step, "pose": pose}])

    run(story())


def test_the_ends_of_limbs_are_told_with_the_joints_that_lead_them(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (_, page):
            arms = (await page.get("/robot/joints?build=g1-29"))["ends"]
            assert [end["limb"] for end in arms] == ["left_arm", "right_arm"]
            assert len(arms[0]["joints"]) == 7
            assert arms[0]["joints"][0] == "left_shoulder_pitch_joint"
            legs = (await page.get("/robot/joints?build=a1"))["ends"]
            assert sorted(end["limb"] for end in legs) == [
                "front_left_leg", "front_right_leg", "rear_left_leg", "rear_right_leg",
            ]  # fmt: skip
            assert legs[0]["joints"] == ["FR_hip_joint", "FR_thigh_joint", "FR_calf_joint"]

    run(story())
