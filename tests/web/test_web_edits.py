"""What the page's time line shows of an edited take is what the next step works on."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from rote.errors import BadRequestError
from rote.motion.track import Mark, Track
from rote.web import schemas
from rote.web.edit_service import apply
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
    return apply(track, STEPS.validate_python(list(steps)), {"other": ramp(1.0, begin_s=7.0)})


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
