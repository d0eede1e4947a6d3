"""The stick figure: it stands where the robot would, and moves as long as the motion does."""

import sys
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from rote.errors import BadRequestError, MissingExtraError
from rote.model.a1 import A1, A1_STAND_RAD
from rote.model.g1 import G1, G1_29, G1_FIGURE, G1_REST_RAD
from rote.motion.body.kinematics import kinematics_of
from rote.motion.draw import figure
from rote.motion.draw.figure import LEFT, RIGHT, draw_frames, draw_gif, frames_figure
from rote.motion.draw.figure_body import pose_sticks, sticks
from rote.motion.track import Array, Track

pytest.importorskip("matplotlib")
image_of: Any = pytest.importorskip("PIL.Image")

STICKS = G1_FIGURE.sticks
REST = np.array([G1_REST_RAD])
RIGHT_SHOULDER = G1_29.names.index("right_shoulder_pitch_joint")
KNEES = [3, 9]


def raising(seconds: float = 1.0, begins_s: float = 0.0) -> Track:
    """Return the right arm going up before the body."""
    times_s = np.linspace(0.0, seconds, 40)
    joints = np.repeat(REST, 40, axis=0)
    joints[:, RIGHT_SHOULDER] -= 1.5 * times_s / seconds
    return Track(times_s=times_s + begins_s, joints_rad=joints, names=G1_29.names)


def pixels(path: Path, colour: str) -> int:
    """Return how many pixels of a picture have about this colour."""
    seen: Array = np.asarray(image_of.open(path).convert("RGB"), dtype=np.float64)
    wanted = [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
    return int((np.abs(seen - wanted).max(axis=2) < 60).sum())


def words(figure: Any) -> list[str]:
    return [text.get_text() for text in figure.axes[0].texts]


# ---- the figure itself --------------------------------------------------------------------------


def test_the_figure_stands_on_the_floor_whatever_the_legs_do() -> None:
    crouching = REST.copy()
    crouching[:, KNEES] += 1.0
    body = sticks(G1, np.vstack([REST, crouching]))
    assert body.ends_m[:, :, 2].min(axis=(0, 1)) == pytest.approx([0.0, 0.0], abs=0.01)
    assert body.head_m[2, 1] < body.head_m[2, 0] - 0.05
    assert body.head_m[2, 0] == pytest.approx(1.2, abs=0.05)


def test_hands_are_where_the_robot_has_them() -> None:
    body = sticks(G1, REST)
    between = body.hands_m[0, :, 0] - body.hands_m[1, :, 0]
    left, right = kinematics_of(G1).tips_m(kinematics_of(G1).forward(REST))[0]
    assert between == pytest.approx(left - right, abs=0.05)


def test_left_and_right_are_mirror_images_of_a_robot_at_ease() -> None:
    ends = sticks(G1, REST).ends_m[..., 0]
    sides = np.array([side for side, _, _ in STICKS])
    left, right = ends[sides == "left"], ends[sides == "right"]
    assert (left[:, :, 1].mean(), right[:, :, 1].mean()) == pytest.approx((0.12, -0.12), abs=0.03)
    assert left[:, :, [0, 2]] == pytest.approx(right[:, :, [0, 2]], abs=1e-3)


def test_sticks_hang_together() -> None:
    """Every limb is one chain: a stick begins where one before it ended, or at a known root."""
    begun = {STICKS[0][1]}
    for _, start, end in STICKS:
        assert start in begun
        begun.add(end)


def test_an_a1_stands_on_four_legs_that_bend_as_its_joints_do() -> None:
    straight, stand = np.zeros((1, 12)), np.array([A1_STAND_RAD])
    rolled = straight.copy()
    rolled[:, 0::3] = 0.3
    body = sticks(A1, np.vstack([straight, stand, rolled]))
    assert body.ends_m[:, :, 2].min(axis=(0, 1)) == pytest.approx([0.0, 0.0, 0.0], abs=1e-9)
    trunk = body.sides.index("")
    assert body.ends_m[trunk, 0, 2, :2] == pytest.approx([0.4, 0.2 * (np.cos(0.67) + np.cos(0.63))])
    assert body.hands_m[:, :, 0] == pytest.approx(
        np.array([[0.1805, 0.1308, 0.0], [0.1805, -0.1308, 0.0]])
    )
    assert (body.hands_m[:, 1, 2] > body.hands_m[:, 1, 0] + 0.1).all()  # all swing to the left
    assert body.sides.count("left") == body.sides.count("right") == 6


def test_the_robot_drawn_is_the_one_that_was_taught(tmp_path: Path) -> None:
    times_s = np.linspace(0.0, 1.0, 20)
    some = A1.names[1:]
    sitting = Track(
        times_s=times_s,
        joints_rad=np.linspace(A1_STAND_RAD, np.array(A1_STAND_RAD) + 0.2, 20)[:, 1:],
        names=some,
        variant="a1",
    )
    whole = np.linspace(A1_STAND_RAD, np.array(A1_STAND_RAD) + 0.2, 20)
    whole[:, 0] = A1_STAND_RAD[0]
    assert pose_sticks(sitting, times_s).ends_m == pytest.approx(sticks(A1, whole).ends_m)
    draw_frames(sitting, tmp_path / "sit.png", count=2)
    assert min(pixels(tmp_path / "sit.png", colour) for colour in (LEFT, RIGHT)) > 100
    arms = Track(times_s=times_s, joints_rad=np.zeros((20, 1)), names=("claw",), variant="crab")
    with pytest.raises(BadRequestError, match="the robot cannot be drawn"):
        pose_sticks(arms, times_s)


# ---- the strip ----------------------------------------------------------------------------------


def test_a_strip_has_a_moment_over_each_pose_and_both_views() -> None:
    figure = frames_figure(raising(2.0, begins_s=10.0), count=3)
    assert words(figure) == ["10.00 s", "11.00 s", "12.00 s", "front", "right side"]
    width, height = figure.get_size_inches()
    assert frames_figure(raising(), count=6).get_size_inches()[0] > 1.8 * width
    assert 4.0 < height < 6.0


def test_what_is_nearer_is_thicker_and_over_the_rest() -> None:
    """In the last front view the right arm reaches forward, the left hangs."""
    axis = frames_figure(raising(), count=2).axes[0]
    last_front = axis.get_lines()[2 * (2 + 2 * len(STICKS)) :][: 2 + 2 * len(STICKS)]
    drawn = last_front[2 + len(STICKS) :]
    hand, hanging = (
        max(i for i, (s, _, _) in enumerate(STICKS) if s == side) for side in ("right", "left")
    )
    assert drawn[hand].get_linewidth() > drawn[hanging].get_linewidth() + 0.5
    assert drawn[hand].get_zorder() > drawn[hanging].get_zorder()
    edge = last_front[2 + hand]
    assert edge.get_color() == "white"
    assert drawn[hanging].get_zorder() < edge.get_zorder() < drawn[hand].get_zorder()


def test_a_png_strip_shows_both_sides_in_their_colours(tmp_path: Path) -> None:
    path = tmp_path / "new" / "strip.png"
    draw_frames(raising(), path, count=3)
    left, right = pixels(path, LEFT), pixels(path, RIGHT)
    assert left > 1000
    assert right > left, "from the right side, the right hides some of the left"
    assert [found.name for found in path.parent.iterdir()] == ["strip.png"]


def test_an_svg_strip_is_sound_and_always_the_same(tmp_path: Path) -> None:
    first, second = tmp_path / "first.svg", tmp_path / "second.svg"
    for path in (first, second):
        draw_frames(raising(), path, count=2)
    assert ElementTree.parse(first).getroot().tag.endswith("svg")
    assert first.read_bytes() == second.read_bytes()


def test_one_sample_makes_one_pose() -> None:
    one = Track(times_s=np.ones(1), joints_rad=REST, names=G1_29.names)
    assert words(frames_figure(one)) == ["1.00 s", "front", "right side"]


@pytest.mark.parametrize("count", [0, 25])
def test_a_strip_of_no_or_too_many_poses_is_refused(count: int) -> None:
    with pytest.raises(BadRequestError, match="1 to 24"):
        frames_figure(raising(), count=count)


def test_a_track_without_joints_and_a_wrong_ending_are_refused(tmp_path: Path) -> None:
    none = Track(times_s=np.zeros(1), joints_rad=np.zeros((1, 0)), names=())
    with pytest.raises(BadRequestError, match="1 samples"):
        draw_frames(none, tmp_path / "a.png")
    with pytest.raises(BadRequestError, match="not a picture file name"):
        draw_frames(raising(), tmp_path / "a.gif")
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match="drawing the robot") as caught:
        frames_figure(raising())
    assert "rote-robot[plot]" in caught.value.remedy


# ---- the animation ------------------------------------------------------------------------------


def shown(path: Path) -> tuple[list[int], list[Array]]:
    """Return how long each picture of a GIF is shown, in ms, and the pictures."""
    durations, pictures = [], []
    with image_of.open(path) as gif:
        assert gif.format == "GIF"
        assert gif.info["loop"] == 0
        for number in range(gif.n_frames):
            gif.seek(number)
            durations.append(gif.info["duration"])
            pictures.append(np.asarray(gif.convert("RGB"), dtype=np.float64))
    return durations, pictures


def test_a_gif_lasts_as_long_as_the_motion_and_rests_at_its_end(tmp_path: Path) -> None:
    path = tmp_path / "new" / "up.gif"
    draw_gif(raising(1.0, begins_s=5.0), path)
    durations, pictures = shown(path)
    assert durations[:-1] == [70] * 15, "15 Hz, in the hundredths of a second a GIF has"
    assert durations[-1] == 600
    changed = [float(np.abs(b - a).mean()) for a, b in pairwise(pictures)]
    assert min(changed) > 0.0
    assert max(changed) < 10.0, "from one picture to the next little changes: it is smooth"
    assert pictures[0][1, 1].tolist() == [255.0, 255.0, 255.0]
    assert [found.name for found in path.parent.iterdir()] == ["up.gif"]


def test_a_gif_of_five_seconds_is_small(tmp_path: Path) -> None:
    path = tmp_path / "up.gif"
    draw_gif(raising(5.0), path, rate_hz=5)
    assert 10_000 < path.stat().st_size < 500_000
    assert sum(shown(path)[0]) == 5600


def test_a_long_gif_has_fewer_pictures_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figure, "USUAL_PICTURES", 6)
    draw_gif(raising(4.0), tmp_path / "up.gif")
    durations, _ = shown(tmp_path / "up.gif")
    assert durations == [800] * 5 + [600]


@pytest.mark.parametrize("seconds", [13.0, 14.0, 60.0, 180.0, 900.0])
def test_a_motion_of_minutes_keeps_its_time_within_the_pictures_there_are(seconds: float) -> None:
    step_s = round(100 / figure.choose_rate_hz(seconds)) / 100
    assert step_s <= 1.0
    assert seconds / step_s < (figure.USUAL_PICTURES if seconds < 190 else figure.MAX_PICTURES + 1)


def test_one_sample_makes_a_gif_that_stands_still(tmp_path: Path) -> None:
    one = Track(times_s=np.ones(1), joints_rad=REST, names=G1_29.names)
    draw_gif(one, tmp_path / "one.gif")
    with image_of.open(tmp_path / "one.gif") as gif:
        assert gif.n_frames == 1


def test_what_no_gif_can_be_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(BadRequestError, match="not a GIF file name"):
        draw_gif(raising(), tmp_path / "a.png")
    for rate_hz in (0.5, 60.0, float("nan")):
        with pytest.raises(BadRequestError, match="1 to 50 pictures"):
            draw_gif(raising(), tmp_path / "a.gif", rate_hz=rate_hz)
    with pytest.raises(BadRequestError, match="make 1001 pictures") as caught:
        draw_gif(raising(100.0), tmp_path / "a.gif", rate_hz=10)
    assert "lower rate" in caught.value.remedy
    assert list(tmp_path.iterdir()) == []
