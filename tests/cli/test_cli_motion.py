"""rote motion and rote takes: files in, files out, and words or JSON beside them."""

import asyncio
import json
import shutil
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rote.bridge.agent_tools import AgentTools
from rote.cli import main
from rote.errors import UnsafeMotionError, WarnedMotionError
from rote.findings import Finding, FindingKind, Severity
from rote.model.a1 import A1, A1_STAND_RAD
from rote.model.g1 import G1_29
from rote.motion.check.report import CheckReport
from rote.motion.edit.hand_path import hand_positions_m
from rote.motion.files import load, save
from rote.motion.files.library import Library
from rote.motion.track import Track
from rote.motion.track_build import build_of
from rote.sim.presets import action_from_script
from rote.web.services.agents import read_motion
from rote.web.work.takes import load_playable


def ask(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main([str(argument) for argument in arguments])
    return (code, *capsys.readouterr())


def ask_json(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    code, out, err = ask(capsys, *arguments, "--json")
    assert code in (0, 5), err
    found: dict[str, Any] = json.loads(out)
    return found


def played(script: str, seconds: float = 3.0) -> Track:
    """A scripted hand's motion, as a track."""
    action = action_from_script(script, script, seconds)
    assert action.times_s is not None
    assert action.joints_rad is not None
    return Track(times_s=action.times_s, joints_rad=action.joints_rad, names=G1_29.names)


@pytest.fixture
def wave(tmp_path: Path) -> Path:
    path = tmp_path / "wave.mcap"
    save(played("wave"), path)
    return path


@pytest.fixture
def drum(tmp_path: Path) -> Path:
    path = tmp_path / "drum.npz"
    save(played("drum"), path)
    return path


EDITS: dict[str, tuple[tuple[str, ...], float]] = {
    "trim": (("--start", "0.5", "--end", "2.5"), 2.0),
    "smooth": ((), 3.0),
    "resample": (("--rate", "50"), 3.0),
    "speed": (("--factor", "2"), 1.5),
    "reverse": ((), 3.0),
    "mirror": ((), 3.0),
    "loop": (("--seconds", "1.5"), 4.5),
    "keep": (("--joint", "right_arm"), 3.0),
    "drop": (("--joint", "left_arm", "--joint", "waist_yaw_joint"), 3.0),
    "convert": ((), 3.0),
}


@pytest.mark.parametrize("suffix", [".mcap", ".csv", ".npz", ".json"])
@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_writes_a_new_file_and_says_what_it_did(
    edit: str, suffix: str, wave: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options, seconds = EDITS[edit]
    before = wave.read_bytes()
    out = tmp_path / f"out{suffix}"
    said = ask_json(capsys, "motion", edit, wave, out, *options)
    assert said["duration_s"] == pytest.approx(seconds, abs=0.03)
    track = load(out)
    assert track.duration_s == pytest.approx(seconds, abs=0.03)
    assert said["samples"] == len(track)
    assert bool(said["lost"]) == (suffix == ".csv")
    assert wave.read_bytes() == before
    if edit != "convert":
        assert edit[:4] in said["done"]


def test_retiming_meets_its_limit(
    wave: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "calm.mcap"
    ask_json(capsys, "motion", "retime", wave, out, "--velocity", 1.0)
    track = load(out)
    speeds = np.abs(np.diff(track.joints_rad, axis=0)) / np.diff(track.times_s)[:, None]
    assert speeds.max() <= 1.001
    assert track.duration_s > 3.0


@pytest.mark.parametrize(
    ("edit", "seconds"), [("blend", 3.0), ("concat", 6.5), ("fade", 5.0), ("layer", 3.0)]
)
def test_two_motions_become_one(
    edit: str,
    seconds: float,
    wave: Path,
    drum: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "both.mcap"
    more = {"layer": ("--joint", "left_arm"), "fade": ("--overlap", "1.0")}.get(edit, ())
    said = ask_json(capsys, "motion", edit, wave, drum, out, *more)
    assert said["duration_s"] == pytest.approx(seconds, abs=0.03)


def test_the_average_of_takes_lies_between_them(
    wave: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    twin = tmp_path / "twin.mcap"
    shutil.copy(wave, twin)
    out = tmp_path / "mean.mcap"
    ask_json(capsys, "motion", "average", wave, twin, "--out", out)
    assert np.allclose(load(out).joints_rad, load(wave).joints_rad, atol=1e-6)
    assert ask_json(capsys, "motion", "best", wave, twin)["best"] == str(wave)


def test_info_tells_how_a_file_came_to_be(
    wave: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "cut.mcap"
    ask(capsys, "motion", "trim", wave, out, "--auto")
    said = ask_json(capsys, "motion", "info", out)
    assert said["history"][0].startswith("trim idle")
    assert len(said["joints"]) == 29
    _, shown, _ = ask(capsys, "motion", "info", out)
    assert "trim idle" in shown
    assert "most moved: right_" in shown


@pytest.mark.parametrize(
    "words",
    [
        ("motion", "check", "{csv}", "--no-contact"),
        ("motion", "trim", "{csv}", "{out}", "--end", "1"),
        ("takes", "import", "{csv}"),
        ("play", "{csv}", "--robot", "sim://g1?build=nothing"),
    ],
    ids=lambda words: words[0] + words[1],
)
def test_times_in_milliseconds_are_read_with_a_note(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "ms.csv", tmp_path / "out.csv"
    rows = (f"{10 * number},{0.001 * number}" for number in range(200))
    path.write_text("\n".join(["t,left_elbow_joint", *rows]))
    _, _, err = ask(capsys, *(word.format(csv=path, out=out) for word in words))
    note = "the times were read as milliseconds: as seconds they would be too far apart."
    assert err.splitlines()[0] == f"Note: {path}: {note}"
    if out.exists():
        assert ask(capsys, "motion", "info", out)[2] == ""


def test_a_check_says_whether_it_may_be_played(
    wave: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask_json(capsys, "motion", "check", wave)["ok"] is True
    fast = tmp_path / "fast.mcap"
    ask(capsys, "motion", "speed", wave, fast, "--factor", "20")
    report = ask_json(capsys, "motion", "check", fast)
    assert report["ok"] is False
    finding = report["findings"][0]
    assert finding["severity"] == "error"
    assert set(finding) >= {"severity", "kind", "joint", "time_s", "value", "limit", "remedy"}
    assert "rote motion retime" in finding["remedy"]
    code, shown, _ = ask(capsys, "motion", "check", fast)
    assert code == 5
    assert "Do not play this." in shown


def test_what_a_check_says_is_not_broken_in_a_pipe(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sit = tmp_path / "sit.csv"
    joints_rad = np.repeat([A1_STAND_RAD], 50, axis=0)
    save(Track(times_s=np.arange(50) / 50, joints_rad=joints_rad, names=A1.names), sit)
    code, shown, _ = ask(capsys, "motion", "check", sit)
    assert code == 0
    assert "contact were not checked: there is no data for an A1\n" in shown
    joints_rad[:, 0] = 0.81  # a little beyond its end
    save(Track(times_s=np.arange(50) / 50, joints_rad=joints_rad, names=A1.names), sit)
    assert "Fit, with warnings: review them first." in ask(capsys, "motion", "check", sit)[1]


def test_compressing_states_its_error_and_refuses_what_is_absurd(
    wave: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    by_bound = ask_json(capsys, "motion", "compress", wave, "--bound", 0.05)
    assert by_bound["max_error_rad"] <= 0.05
    by_budget = ask_json(capsys, "motion", "compress", wave, "--budget", 60, "--keyframes")
    assert by_budget["keyframes"] == len(by_budget["frames"]) <= 60
    assert by_budget["hand_error_mm"] > 0.0
    assert by_budget["worst_hand"] in {"left", "right"}
    tight = ask_json(capsys, "motion", "compress", wave, "--bound", 0.05, "--hand-mm", 2)
    assert by_bound["hand_error_mm"] > 2.0 >= tight["hand_error_mm"]
    assert tight["keyframes"] > by_bound["keyframes"]
    assert "mm off at most" in ask(capsys, "motion", "compress", wave, "--bound", 0.05)[1]
    assert ask(capsys, "motion", "compress", wave, "--budget", 9, "--hand-mm", 2)[0] == 2
    both = tmp_path / "both.mcap"
    ask(capsys, "motion", "layer", wave, wave, both, "--joint", "right_arm")
    code, _, err = ask(capsys, "motion", "compress", both, "--budget", 5)
    assert code == 2
    assert "keyframes miss the motion by" in err
    assert "--bound" in err
    assert "--force" in err
    assert "unsafe" not in err
    assert ask(capsys, "motion", "compress", both, "--budget", 5, "--force")[0] == 0
    free = ask_json(capsys, "motion", "compress", wave, "--bound", 0.05, "--free")
    assert free["keyframes"] <= by_bound["keyframes"]
    smooth = ("--free", "--interpolation", "smooth")
    code, _, err = ask(capsys, "motion", "compress", wave, "--bound", 0.05, *smooth)
    assert code == 2
    assert "linear" in err
    assert ask(capsys, "motion", "compress", wave)[0] == 2
    assert ask(capsys, "motion", "compress", wave, "--bound", 1, "--interpolation", "x")[0] == 2


def test_what_keyframes_play_is_written_as_a_motion(
    wave: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "played.csv"
    told = ask_json(capsys, "motion", "compress", wave, "--bound", "0.05", "--out", out)
    before, after = load(wave), load(out)
    apart = np.abs(before.joints_rad - after.joints_rad).max()
    assert apart == pytest.approx(told["max_error_rad"], abs=1e-6)
    frames = ask_json(capsys, "motion", "compress", wave, "--bound", "0.05", "--keyframes")
    assert {frame["name"] for frame in frames["frames"]} <= set(before.names)
    code, _, err = ask(capsys, "motion", "compress", wave, "--bound", "0.05", "--out", out)
    assert code == 2
    assert "--overwrite" in err


def test_a_motion_is_stored_on_the_robot_if_few_keyframes_hold_it(
    wave: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    elbow = tmp_path / "elbow.mcap"
    ask(capsys, "motion", "keep", wave, elbow, "--joint", "right_elbow_joint")
    told = ask_json(capsys, "store", elbow, "nod")
    assert told["keyframes"] <= 20
    assert told["max_error_rad"] < 0.15
    assert [action["name"] for action in ask_json(capsys, "list")["taught"]] == ["nod"]
    ask(capsys, "takes", "import", elbow)
    assert "Stored again" in ask(capsys, "store", "elbow", "again", "--take")[1]
    code, _, err = ask(capsys, "store", tmp_path / "drum.npz", "many")
    assert (code, "Check its name" in err) == (2, True)
    save(played("drum", 9.0), tmp_path / "drum.npz")
    code, _, err = ask(capsys, "store", tmp_path / "drum.npz", "many")
    assert code == 5
    assert "rote play" in err


def test_a_finding_says_when(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    track = played("wave")
    joints = track.joints_rad.copy()
    joints[track.times_s >= 1.5, track.names.index("right_elbow_joint")] = 2.4
    save(Track(times_s=track.times_s, joints_rad=joints, names=track.names), tmp_path / "far.mcap")
    assert (
        "error at 1.50 s: right_elbow_joint is at 2.40 rad"
        in (ask(capsys, "motion", "check", tmp_path / "far.mcap")[1])
    )


def test_two_takes_are_compared(wave: Path, drum: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask_json(capsys, "motion", "compare", wave, wave)["max_rad"] < 1e-6
    code, shown, _ = ask(capsys, "motion", "compare", wave, drum)
    assert code == 0
    assert "right_shoulder_pitch_joint" in shown


def test_a_dataset_is_written(
    wave: Path, drum: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "set"
    said = ask_json(
        capsys, "motion", "lerobot", wave, drum, "--out", folder, "--task", "wave and drum"
    )
    assert said["episodes"] == 2
    assert (folder / "meta" / "info.json").is_file()


@pytest.mark.parametrize("what", ["plot", "show"])
def test_pictures_are_drawn(
    what: str, wave: Path, drum: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "picture.png"
    more = ("--other", drum, "--findings") if what == "plot" else ("--frames", "3")
    assert ask_json(capsys, "motion", what, wave, "--out", picture, *more)["file"] == str(picture)
    assert picture.read_bytes().startswith(b"\x89PNG")
    code, _, err = ask(capsys, "motion", what, wave, "--out", picture)
    assert code == 2
    assert "--overwrite" in err


def test_a_preview_tells_how_a_body_would_follow(
    wave: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "body.mcap"
    said = ask_json(capsys, "preview", wave, "--out", out)
    assert said["ok"] is True
    assert load(out).duration_s == pytest.approx(3.0, abs=0.05)
    before = out.read_bytes()
    code, shown, err = ask(capsys, "preview", wave, "--speed", "8", "--out", out)
    assert (code, shown) == (2, "")
    assert "add --overwrite" in err
    code, shown, _ = ask(capsys, "preview", wave, "--speed", "8", "--out", out, "--overwrite")
    assert code == 5
    assert "would not follow" in shown
    assert out.read_bytes() != before
    assert ask(capsys, "preview", wave, "--base", "floating")[0] == 2


def test_a_moving_picture_is_drawn(
    wave: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    moving = tmp_path / "wave.gif"
    assert ask(capsys, "motion", "show", wave, "--out", moving)[0] == 0
    assert moving.read_bytes().startswith(b"GIF8")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("trim", "{wave}", "{out}"), "either times or auto"),
        (("trim", "{wave}", "{wave}", "--auto"), "in place"),
        (("mirror", "{wave}", "{drum}"), "already exists"),
        (("mirror", "{wave}", "{nowhere}/x.mcap"), "there is no folder"),
        (("mirror", "{nowhere}", "{out}"), "cannot be read"),
        (("mirror", "{wave}", "{out}.txt"), "is not known"),
        (("trim", "{wave}", "{out}", "--start", "9", "--end", "10"), ""),
        (("keep", "{wave}", "{out}", "--joint", "tail"), "has no tail"),
        (("convert", "{wave}", "{out}", "--variant", "g1-99"), "no robot 'g1-99'"),
    ],
)
def test_what_cannot_be_done_is_said_and_leaves_nothing_behind(
    arguments: tuple[str, ...],
    words: str,
    wave: Path,
    drum: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    places = {"wave": wave, "drum": drum, "out": tmp_path / "o.mcap", "nowhere": tmp_path / "n.csv"}
    before = sorted(tmp_path.iterdir())
    code, _, err = ask(capsys, "motion", *(argument.format(**places) for argument in arguments))
    assert code == 2
    assert words in err
    assert sorted(tmp_path.iterdir()) == before


def test_degrees_are_noticed_and_converted(
    wave: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    track = load(wave)
    rows = np.column_stack([track.times_s, np.degrees(track.joints_rad)])
    degrees = tmp_path / "degrees.csv"
    header = ",".join(("t", *track.names))
    np.savetxt(degrees, rows, delimiter=",", header=header, comments="")
    out = tmp_path / "rad.csv"
    code, _, err = ask(capsys, "motion", "convert", degrees, out)
    assert code == 2
    assert "degrees" in err
    assert ask(capsys, "motion", "convert", degrees, out, "--degrees")[0] == 0
    assert np.allclose(load(out).joints_rad, track.joints_rad, atol=1e-9)


# ---- playing a file -----------------------------------------------------------------------------


def test_a_file_is_checked_and_streamed_to_the_robot(
    wave: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    short = tmp_path / "short.mcap"
    ask(capsys, "motion", "trim", wave, short, "--start", 1.0, "--end", 1.5)
    said = ask_json(capsys, "play", short)
    assert said["completed"] is True
    assert 25.0 < said["rate_hz"] < 260.0  # 250 where the machine has nothing else to do
    code, shown, _ = ask(capsys, "play", short, "--speed", "0.5")
    assert code == 0
    assert "poses a second" in shown


def test_what_a_check_forbids_is_not_played_and_warnings_want_force(
    wave: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fast, clap = tmp_path / "fast.mcap", tmp_path / "clap.mcap"
    ask(capsys, "motion", "speed", wave, fast, "--factor", "20")
    for more in ((), ("--force",)):
        code, _, err = ask(capsys, "play", fast, *more)
        assert code == 5
        assert "unsafe motion" in err
    save(played("clap", 4.0), clap)
    code, shown, _ = ask(capsys, "motion", "check", clap)
    assert code == 0
    assert "Fit, with warnings: rote play requires --force." in shown
    code, _, err = ask(capsys, "play", clap)
    assert code == 5
    assert "--force" in err
    assert ask(capsys, "play", clap, "--loop")[0] == 2


def test_a_take_is_played_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    ask(capsys, "teach", "mine", "--hand", "wave", "--seconds", "0.5")
    assert ask_json(capsys, "play", "mine", "--take", "--force")["completed"] is True
    assert ask(capsys, "play", "nothing", "--take")[0] == 2


def made_of(kind: str) -> Track:
    """A motion with a warning, of a known or an unknown robot."""
    if kind.startswith("a1"):
        joints_rad = np.repeat([A1_STAND_RAD], 50, axis=0)
        joints_rad[:, 0] = 0.81  # a little beyond its end
        times_s = np.arange(50) / 50
        track = Track(times_s=times_s, joints_rad=joints_rad, names=A1.names, variant=A1.name)
    else:
        track = played("clap", 4.0)
    if kind.endswith("another name"):
        track = replace(track, variant="mystery")
    if kind == "unknown joints":
        names = tuple(f"feeler_{number}" for number in range(len(track.names)))
        track = replace(track, names=names, variant="mystery")
    return track


@pytest.mark.parametrize(
    "kind", ["g1", "g1 by another name", "a1", "a1 by another name", "unknown joints"]
)
def test_a_check_the_command_line_the_page_and_the_agents_decide_alike(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    track, file = made_of(kind), tmp_path / "motion.mcap"
    save(track, file)
    code, shown, _ = ask(capsys, "motion", "check", file)
    verdict = ask_json(capsys, "motion", "check", file)
    assert (code == 0) == verdict["ok"]
    warned = any(each["severity"] == "warning" for each in verdict["findings"])
    assert ("requires --force" in shown) == (verdict["ok"] and verdict["needs_force"])
    robot = "sim://a1" if kind.startswith("a1") else "sim://g1?store=:memory:"
    for force in ((), ("--force",)):
        forbidden = not verdict["ok"] or (verdict["needs_force"] and not force)
        code, _, err = ask(capsys, "play", file, "--robot", robot, "--speed", "1", *force)
        assert (code == 5 and "unsafe motion" in err) == forbidden, err
        folder = tmp_path / f"takes{len(force)}"
        library = Library(folder)
        library.save(track, "motion")
        build = build_of(track)
        if build is None:
            continue
        with pytest.raises(UnsafeMotionError) if forbidden else nullcontext():
            load_playable(folder, "motion", None, [], build, speed=1.0, force=bool(force))
        if not force:
            with pytest.raises(UnsafeMotionError) if forbidden else nullcontext():
                read_motion(folder, "motion", None, 1.0, build)
            told = asyncio.run(AgentTools(library).check("motion"))
            assert told["ok"] is not forbidden
    assert warned or kind == "unknown joints"


def test_warnings_of_an_unknown_build_need_force(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = CheckReport((Finding(Severity.WARNING, "it is near", kind=FindingKind.CLEARANCE),))
    assert report.needs_force(None)
    with pytest.raises(WarnedMotionError):
        report.permit(None)
    report.permit(None, force=True)
    assert not report.needs_force(A1)
    report.permit(A1)


# ---- takes --------------------------------------------------------------------------------------


def test_every_teaching_leaves_a_take_that_can_be_named_tagged_and_deleted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = ask(capsys, "teach", "mine", "--hand", "wave", "--seconds", "0.5")
    assert (code, err) == (0, "")
    (take,) = ask_json(capsys, "takes", "list")["takes"]
    assert (take["name"], take["version"]) == ("mine", 1)
    assert take["duration_s"] == pytest.approx(0.5, abs=0.2)
    assert ask_json(capsys, "takes", "tag", "mine", "--add", "Stage")["tags"] == ["stage"]
    assert ask_json(capsys, "takes", "rename", "mine", "yours")["name"] == "yours"
    listed = ask(capsys, "takes", "list", "stage")[1]
    assert "stage" in listed
    assert "▁" in listed  # a sketch of it
    assert "▁" not in ask(capsys, "takes", "list", "--json")[1]
    assert ask_json(capsys, "takes", "list", "nothing")["takes"] == []
    out = tmp_path / "copy.csv"
    assert ask_json(capsys, "takes", "export", "yours", out)["lost"]
    assert "add --overwrite" in ask(capsys, "takes", "export", "yours", out)[2]
    assert ask_json(capsys, "takes", "export", "yours", out, "--overwrite")["lost"]
    assert ask_json(capsys, "takes", "import", out)["name"] == "copy"
    assert ask_json(capsys, "takes", "import", out, "--name", "yours")["version"] == 2
    trash = Path(ask_json(capsys, "takes", "delete", "yours")["trash"])
    assert trash.exists()
    assert [t["name"] for t in ask_json(capsys, "takes", "list")["takes"]] == ["copy"]


def test_a_search_without_a_hit_is_no_empty_library(
    wave: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ask(capsys, "takes", "import", wave)
    assert "None of the 1 takes" in ask(capsys, "takes", "list", "nothing", "like")[1]
    assert "g1-29" in ask(capsys, "takes", "list")[1]


def test_a_take_that_is_no_file_is_named_with_the_way_to_one(
    wave: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ask(capsys, "takes", "import", wave, "--name", "my wave")
    for asked in ("my wave.mcap", "my wave"):
        code, _, err = ask(capsys, "motion", "info", asked)
        assert code == 2
        assert "rote takes export 'my wave' 'my wave.mcap'" in err
    for robot in ("sim://g1", "a1://127.0.0.1"):
        code, _, err = ask(capsys, "play", "my wave.mcap", "--robot", robot)
        assert code == 2
        assert "rote play 'my wave' --take" in err
    code, _, err = ask(capsys, "motion", "info", "no.mcap")
    assert code == 2
    assert "Check its name" in err


def test_what_the_system_bars_is_told_with_words(
    wave: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def barred(path: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "exists", barred)
    code, _, err = ask(capsys, "motion", "mirror", wave, "/far/x.mcap")
    assert code == 1
    assert "/far/x.mcap cannot be used: permission denied\n      Choose a writable path" in err


@pytest.mark.parametrize("error", [OSError(), TimeoutError(), ConnectionResetError()])
def test_what_the_system_does_not_explain_is_told_all_the_same(
    error: OSError,
    wave: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def failing(path: Path) -> bool:
        raise error

    monkeypatch.setattr(Path, "exists", failing)
    code, _, err = ask(capsys, "motion", "mirror", wave, "x.mcap")
    assert code == 1
    assert type(error).__name__ in err


def test_a_library_that_cannot_be_written_names_where_it_is_chosen(
    wave: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("ROTE_HOME", str(tmp_path / "file"))
    code, _, err = ask(capsys, "takes", "import", wave)
    assert code == 2
    assert "ROTE_HOME" in err


def test_a_take_is_shown_at_a_glance(wave: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ask(capsys, "takes", "import", wave, "--name", "mine")
    shown = ask(capsys, "takes", "show", "mine")[1]
    assert "versions: 1" in shown
    assert "right_elbow_joint" in shown
    said = ask_json(capsys, "takes", "show", "mine", "--version", 1)
    assert said["versions"] == [1]
    assert all(len(line) == 48 for line in said["motion"].values())
    assert ask(capsys, "takes", "show", "nothing")[0] == 2


def test_a_discarded_teaching_leaves_no_take(capsys: pytest.CaptureFixture[str]) -> None:
    assert "No takes" in ask(capsys, "takes", "list")[1]
    ask(capsys, "teach", "taken", "--hand", "wave", "--seconds", "0.3")
    code, _, _ = ask(capsys, "teach", "taken", "--hand", "wave", "--seconds", "0.3")
    assert code == 4
    assert len(ask_json(capsys, "takes", "list")["takes"]) == 1


def test_what_a_crash_cut_off_is_kept_on_the_next_start(
    wave: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from rote.cli.takes import library

    writer = library().record("lost", G1_29.names)
    for row in range(200):
        writer.add(row / 100, [0.0] * 29)
    writer._file.close()  # as if the process had died
    code, out, err = ask(capsys, "takes", "list")
    assert code == 0
    assert "cut off" in err
    assert "lost" in out


def test_a_learned_motion_begins_in_the_pose_of_its_own_robot_only(
    tmp_path: Path, wave: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, out = tmp_path / "wave.model", tmp_path / "new.mcap"
    ask_json(capsys, "motion", "learn", wave, wave, wave, "--out", model)
    line = ["motion", "adapt", model, out, "--start", "current"]
    for other in ("sim://r1", "sim://a1"):
        code, _, err = ask(capsys, *line, "--robot", other)
        assert code == 2
        assert "the motion was learned on" in err
        assert not out.exists()
    elbow = "right_elbow_joint=0.5"
    ask_json(capsys, *line, "--start", elbow, "--robot", "sim://g1?store=:memory:")
    begun = load(out)
    assert begun.joints_rad[0, begun.columns_of(["right_elbow_joint"])] == pytest.approx(0.5)
    rest = [G1_29.rest[name] for name in ("left_elbow_joint", "right_shoulder_pitch_joint")]
    columns = begun.columns_of(["left_elbow_joint", "right_shoulder_pitch_joint"])
    assert begun.joints_rad[0, columns] == pytest.approx(rest, abs=0.02)


def test_a_learned_motion_passes_a_point_and_names_one_that_is_far(
    tmp_path: Path, wave: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, out = tmp_path / "wave.model", tmp_path / "new.mcap"
    ask_json(capsys, "motion", "learn", wave, wave, wave, "--out", model)
    point = hand_positions_m(load(wave), "right")[150] + [0.0, 0.03, -0.05]
    text = f"1.5 s: {','.join(f'{each:.4f}' for each in point)}"
    done = ask_json(capsys, "motion", "adapt", model, out, "--through", text)["done"]
    assert "standard deviations from the takes" in done
    adapted = load(out)
    row = int(np.abs(adapted.times_s - adapted.times_s[0] - 1.5).argmin())
    assert hand_positions_m(adapted, "right")[row] == pytest.approx(point, abs=0.005)
    few = ["motion", "adapt", model, tmp_path / "none.mcap", "--through", "1.5: 0.3,-0.2"]
    assert "has 3 numbers, not 4" in ask(capsys, *few)[2]
