"""Pictures of tracks: what is on them, and word of what is missing to draw one."""

import struct
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from motion.motion_tracks import waving
from rote.errors import BadRequestError, MissingExtraError
from rote.findings import Finding, FindingKind, Severity
from rote.model.a1 import A1, A1_STAND_RAD
from rote.model.g1 import G1_29, G1_JOINTS
from rote.motion.draw.plot import plot_pair, plot_track, printable_label, track_figure
from rote.motion.track import Mark, Track

pytest.importorskip("matplotlib")

LIMITS = {joint.name: (joint.lower_rad, joint.upper_rad) for joint in G1_JOINTS}
ELBOW = "right_elbow_joint"


def moving(size: float) -> Track:
    times_s = np.arange(0.0, 2.0, 0.02)
    joints = np.zeros((times_s.size, 29))
    joints[:, 22:28] = size * np.sin(3 * times_s)[:, None] * np.arange(1, 7)
    return Track(times_s=times_s, joints_rad=joints, names=G1_29.names)


def finding(joint: str | None, time_s: float | None, severity: Severity) -> Finding:
    return Finding(
        severity=severity,
        kind=FindingKind.TORQUE,
        message="",
        remedy="",
        joint=joint,
        time_s=time_s,
    )


def panels(figure: Any) -> dict[str, Any]:
    return {axis.get_title(): axis for axis in figure.axes if axis.get_visible()}


def lines(axis: Any, gid: str) -> list[Any]:
    return [line for line in axis.get_lines() if line.get_gid() == gid]


def out_of_reach(axis: Any) -> list[tuple[float, float]]:
    """Return the heights of the shaded parts, lowest first."""
    shades = [patch.get_bbox() for patch in axis.patches if patch.get_gid() == "out of reach"]
    return sorted((box.y0, box.y1) for box in shades)


def legend(figure: Any) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


# ---- taught against played ----------------------------------------------------------------------


def test_a_plot_is_a_png_of_a_sensible_size_in_a_new_folder(tmp_path: Path) -> None:
    path = tmp_path / "pictures" / "wave.png"
    plot_pair(moving(0.1), moving(0.11), path, title="wave", lag_s=0.02)
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert data[-8:-4] == b"IEND"
    width, height = struct.unpack(">II", data[16:24])
    assert width > height > 400


def test_another_motion_makes_another_picture(tmp_path: Path) -> None:
    first, second = tmp_path / "first.png", tmp_path / "second.png"
    plot_pair(moving(0.1), moving(0.1), first, title="wave")
    plot_pair(moving(0.1), moving(0.2), second, title="wave")
    assert first.read_bytes() != second.read_bytes()


def test_tracks_of_few_joints_make_a_picture_too(tmp_path: Path) -> None:
    plot_pair(waving(), waving(), tmp_path / "wave.svg", title="$wave_$")
    text = (tmp_path / "wave.svg").read_text()
    assert text.count("<!-- left shoulder") == 3


@pytest.mark.parametrize("module", ["matplotlib.figure", "matplotlib.backends.backend_agg"])
def test_without_matplotlib_the_error_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError) as caught:
        plot_pair(moving(0.1), moving(0.1), tmp_path / "wave.png", title="wave")
    assert caught.value.extra == "plot"
    assert "rote-robot[plot]" in caught.value.remedy
    assert list(tmp_path.iterdir()) == []


# ---- one take, or two ---------------------------------------------------------------------------


def test_the_joints_that_move_are_drawn_as_they_moved() -> None:
    track = moving(0.1)
    shown = panels(track_figure(track))
    assert list(shown) == [name[:-6].replace("_", " ") for name in G1_29.names[22:28]]
    (line,) = lines(shown["right elbow"], "take")
    assert line.get_xdata().tolist() == track.times_s.tolist()
    assert line.get_ydata().tolist() == track.joints_rad[:, 25].tolist()


def test_joints_at_rest_are_left_out_unless_all_are() -> None:
    joints = np.zeros((5, 29))
    joints[:, 3] = np.arange(5) / 10
    track = Track(times_s=np.arange(5.0), joints_rad=joints, names=G1_29.names)
    assert list(panels(track_figure(track))) == ["left knee"]
    still = replace(track, joints_rad=np.zeros((5, 29)))
    assert len(panels(track_figure(still))) == 6


def test_named_joints_are_drawn_in_the_tracks_order_and_others_refused() -> None:
    shown = panels(track_figure(moving(0.1), joints=[ELBOW, "left_knee_joint"]))
    assert list(shown) == ["left knee", "right elbow"]
    four = track_figure(moving(0.1), joints=G1_29.names[22:26])
    assert (len(panels(four)), len(four.axes)) == (4, 6), "the rest of the grid stays empty"
    with pytest.raises(BadRequestError, match="no tail"):
        track_figure(moving(0.1), joints=["tail"])


def test_what_is_out_of_reach_is_shaded_from_the_limit_on() -> None:
    axis = panels(track_figure(moving(0.7), joints=[ELBOW]))["right elbow"]
    (_, below), (above, top) = out_of_reach(axis)
    assert (below, above) == pytest.approx(LIMITS[ELBOW])
    bottom, upmost = axis.get_ylim()
    assert bottom < below
    assert above < upmost < top


def test_limits_far_away_do_not_flatten_the_motion() -> None:
    axis = panels(track_figure(moving(0.05), joints=[ELBOW]))["right elbow"]
    bottom, top = axis.get_ylim()
    assert bottom > LIMITS[ELBOW][0]
    assert top - bottom < 0.6


def test_the_bar_beside_a_panel_shows_the_part_of_the_range_that_is_used() -> None:
    calm, wild = (
        panels(track_figure(moving(size), joints=[ELBOW]))["right elbow"] for size in (0.1, 0.7)
    )
    (bar,) = calm.child_axes
    assert bar.get_ylim() == pytest.approx(LIMITS[ELBOW])
    used = bar.patches[0].get_bbox()
    assert (used.y0, used.y1) == pytest.approx((-0.4, 0.4), abs=0.05)
    assert bar.patches[0].get_facecolor() != wild.child_axes[0].patches[0].get_facecolor()


def test_a_joint_nobody_knows_is_drawn_without_limits() -> None:
    track = Track(times_s=np.arange(3.0), joints_rad=np.zeros((3, 1)), names=("tail",))
    (axis,) = panels(track_figure(track)).values()
    assert out_of_reach(axis) == []
    assert axis.child_axes == []


def test_a_second_take_begins_where_the_first_does() -> None:
    track = moving(0.1)
    other = replace(moving(0.2), times_s=track.times_s + 100.0, source="again")
    figure = track_figure(track, other=other, joints=[ELBOW])
    (line,) = lines(panels(figure)["right elbow"], "other take")
    assert line.get_xdata() == pytest.approx(track.times_s)
    assert line.get_ydata().tolist() == other.joints_rad[:, 25].tolist()
    assert legend(figure)[:2] == ["first take", "again"]
    assert legend(track_figure(other, other=other))[:2] == ["first take", "second take"]


def test_two_takes_are_called_as_they_are_titled() -> None:
    track = replace(moving(0.1), source="teach wave")
    titles: list[tuple[str | tuple[str, str], list[str]]] = [
        (("a", "b"), ["a", "b"]),
        ("a", ["a", "teach wave"]),
        (("a", "a"), ["first take", "second take"]),
    ]
    for title, names in titles:
        figure = track_figure(track, other=track, joints=[ELBOW], title=title)
        assert legend(figure)[:2] == names


def test_joints_that_only_the_second_take_moves_are_drawn() -> None:
    track = moving(0.01)
    joints = track.joints_rad.copy()
    joints[:, 3] = np.linspace(0.0, 1.0, len(track))
    shown = panels(track_figure(track, other=replace(track, joints_rad=joints)))
    assert next(iter(shown)) == "left knee"
    knee = replace(track, joints_rad=joints[:, [3]], names=G1_29.names[3:4])
    assert next(iter(panels(track_figure(track, other=knee)))) == "left knee"


def test_an_a1s_limits_are_drawn_too() -> None:
    times_s = np.arange(10) / 10
    joints = np.array(A1_STAND_RAD) + 0.1 * times_s[:, None]
    track = Track(times_s=times_s, joints_rad=joints, names=A1.names, variant=A1.name)
    figure = track_figure(track, joints=["FR_thigh_joint"])
    axis = panels(figure)["FR thigh"]
    (_, below), (above, _) = out_of_reach(axis)
    assert (below, above) == pytest.approx((-1.047198, 4.188790))
    assert legend(figure) == ["range used"]


def test_the_legend_names_only_what_is_drawn() -> None:
    track = Track(times_s=np.arange(3.0), joints_rad=np.zeros((3, 1)), names=("tail",))
    assert track_figure(track).legends == []
    assert legend(track_figure(track, other=track)) == ["first take", "second take"]


def test_names_too_long_for_the_legend_are_cut_to_two_columns() -> None:
    track = moving(0.1)
    figure = track_figure(track, other=track, joints=[ELBOW], title=("a" * 59, "b" * 59))
    figure.canvas.draw()
    assert all(text.endswith("…") for text in legend(figure)[:2])
    box = figure.legends[0].get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.x1


def test_a_hole_in_the_recording_is_dotted_and_no_line() -> None:
    track = moving(0.1)
    kept = (track.times_s < 0.5) | (track.times_s > 0.9)
    holed = replace(track, times_s=track.times_s[kept], joints_rad=track.joints_rad[kept])
    axis = panels(track_figure(holed, joints=[ELBOW]))["right elbow"]
    (line,), (dots,) = lines(axis, "take"), lines(axis, "hole")
    assert np.isnan(line.get_ydata()).sum() == 1
    assert dots.get_linestyle() == ":"
    assert dots.get_xdata() == pytest.approx([0.48, 0.92])


def test_a_second_take_without_the_joint_adds_no_line() -> None:
    empty = Track(times_s=np.zeros(1), joints_rad=np.zeros((1, 0)), names=())
    for other in (waving(), empty):
        figure = track_figure(moving(0.1), other=other, joints=[ELBOW])
        assert lines(panels(figure)["right elbow"], "other take") == []


def test_marks_are_lines_with_words_and_those_outside_do_not_stretch_the_picture() -> None:
    marks = (Mark(0.5, "up\n\x00 $x_$"), Mark(1e6, "long after"))
    axis = panels(track_figure(replace(moving(0.1), marks=marks), joints=[ELBOW]))["right elbow"]
    assert [line.get_xdata()[0] for line in lines(axis, "mark")] == [0.5]
    assert [text.get_text() for text in axis.texts] == ["up $x_$"]
    assert axis.get_xlim()[1] < 2.1


def test_marks_too_near_share_a_label_and_long_words_keep_their_beginning() -> None:
    words = "a long mark that nobody reads to its end"
    marks = (Mark(0.5, words), Mark(0.51, "b"), Mark(0.52, "c"), Mark(1.0, words), Mark(1.98, "d"))
    figure = track_figure(replace(moving(0.1), marks=marks), joints=[ELBOW])
    axis = panels(figure)["right elbow"]
    shared, alone, last = axis.texts
    assert shared.get_text().endswith("… +2")
    assert alone.get_text().startswith("a long mark that")
    figure.canvas.draw()
    for text in (shared, alone, last):
        box = text.get_window_extent()
        assert axis.bbox.y0 <= box.y0
        assert axis.bbox.x0 <= box.x0
        assert box.x1 <= axis.bbox.x1
    assert len(lines(axis, "mark")) == 5


def test_findings_are_marked_on_their_joint_at_their_moment() -> None:
    track = moving(0.1)
    found = [
        finding(ELBOW, 0.5, Severity.ERROR),
        finding("left_knee_joint", 0.7, Severity.WARNING),
        finding(None, 1.0, Severity.NOTE),
        finding(None, None, Severity.NOTE),
    ]
    figure = track_figure(track, findings=found)
    shown = panels(figure)
    assert next(iter(shown)) == "left knee", "a joint with a finding is drawn though it rests"
    sign, everywhere = lines(shown["right elbow"], "torque")
    assert (sign.get_xdata()[0], sign.get_ydata()[0]) == pytest.approx(
        (0.5, 0.4 * np.sin(1.5)), abs=1e-3
    )
    assert everywhere.get_xdata() == [1.0, 1.0]
    assert len(lines(shown["right wrist roll"], "torque")) == 1
    assert legend(figure) == ["range used", "error", "warning", "note"]


def test_a_single_sample_is_a_dot_and_no_joint_is_refused() -> None:
    one = Track(times_s=np.zeros(1), joints_rad=np.ones((1, 1)), names=(ELBOW,))
    (line,) = lines(panels(track_figure(one))["right elbow"], "take")
    assert line.get_marker() == "o"
    none = Track(times_s=np.zeros(1), joints_rad=np.zeros((1, 0)), names=())
    with pytest.raises(BadRequestError, match="1 samples"):
        track_figure(none)


def test_a_track_is_saved_as_the_file_is_called_and_always_the_same(tmp_path: Path) -> None:
    track = replace(moving(0.1), marks=(Mark(0.5, "\U0001f44b"),))
    for name in ("a.PNG", "a.svg"):
        first, second = tmp_path / name, tmp_path / "again" / name
        for path in (first, second):
            plot_track(track, path, joints=[ELBOW], title="wave $_$")
        assert first.read_bytes() == second.read_bytes()
    assert (tmp_path / "a.PNG").read_bytes().startswith(b"\x89PNG")
    root = ElementTree.parse(tmp_path / "a.svg").getroot()
    assert root.tag.endswith("svg")
    assert {"take", "mark", "out of reach"} <= {node.get("id", "") for node in root.iter()}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.PNG", "a.svg", "again"]


def test_another_ending_is_refused_before_anything_is_drawn(tmp_path: Path) -> None:
    with pytest.raises(BadRequestError) as caught:
        plot_track(moving(0.1), tmp_path / "wave.bmp")
    assert ".png, .svg" in caught.value.remedy
    assert list(tmp_path.iterdir()) == []


def test_words_are_cut_to_what_can_be_drawn() -> None:
    assert printable_label("up\x1b[1m") == "up[1m"
    assert printable_label("a" * 60) == "a" * 60
    assert printable_label("a" * 61) == "a" * 59 + "…"
