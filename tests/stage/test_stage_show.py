"""A show as a file: read, refused in words, compiled and checked before anybody moves."""

import errno
import json
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rote.errors import BadRequestError
from rote.findings import FindingKind, Severity
from rote.model.g1 import G1_29
from rote.motion.body.root_path import RootPath
from rote.motion.track import Track
from rote.stage.demo import check_demo, demo_show, demo_take
from rote.stage.score_file import name_of, pack, unpack
from rote.stage.show.check import CheckedShow, check_show
from rote.stage.show.file import Cast, CueKind, Show, TriggerKind, from_data, parse, schema
from rote.stage.show.score import compile_role

TAKE_S = 2.0


def take(name: str) -> Track:
    """Return a calm swing of one elbow around its rest; "fast" is much too fast."""
    if name == "nothing":
        raise BadRequestError("there is no take 'nothing'", "Look at the list of takes.")
    times_s = np.arange(0.0, TAKE_S + 0.001, 0.01)
    joints_rad = np.repeat(np.array(G1_29.rest_rad)[None, :], len(times_s), axis=0)
    size = 3.0 if name == "fast" else 0.2
    column = G1_29.names.index("right_elbow_joint")
    rounds = 4.0 if name == "fast" else 1.0
    joints_rad[:, column] -= size * (1 - np.cos(2 * np.pi * rounds * times_s / TAKE_S)) / 2
    return Track(times_s=times_s, joints_rad=joints_rad, names=G1_29.names, source=name)


def sound_s(name: str) -> float:
    if name != "bell.wav":
        raise BadRequestError(f"there is no sound {name!r} beside the show")
    return 1.0


def show(*clips: Mapping[str, Any], cues: tuple[Mapping[str, Any], ...] = ()) -> Show:
    section = {"name": "one", "clips": list(clips), "cues": list(cues)}
    return from_data({"rote_show": 1, "roles": {"ann": {}, "bob": {}}, "sections": [section]})


def clip(role: str = "ann", name: str = "calm", **more: Any) -> dict[str, Any]:
    return {"role": role, "take": name, **more}


def checked(*clips: Mapping[str, Any], cues: tuple[Mapping[str, Any], ...] = ()) -> CheckedShow:
    return check_show(show(*clips, cues=cues), take, sound_s, contact=False)


def motion_of(*clips: Mapping[str, Any]) -> Track:
    made = show(*clips)
    score = compile_role(made, made.sections[0], "ann", take)
    assert score.motion is not None
    return score.motion.track


# ---- the file -----------------------------------------------------------------------------------


def test_a_whole_show_is_read_with_triggers_clips_and_cues() -> None:
    made = from_data(
        {
            "rote_show": 1,
            "title": "Two greet",
            "roles": {"ann": {"build": "g1-29"}, "bob": {}},
            "sections": [
                {
                    "name": "hello",
                    "start": {"on": "at", "time": "20:00:30"},
                    "loop": 2,
                    "on_loss": "go-on",
                    "clips": [clip(at_s=1.5, speed=0.5, mirror=True, loop=3)],
                    "cues": [
                        {"at_s": 0.5, "role": "ann", "light": [255, 0, 0]},
                        {"say": "Hello", "role": "bob"},
                        {"sound": "bell.wav"},
                        {"osc": "/cue/1", "to": "127.0.0.1:53000", "args": [1, 0.5, "go"]},
                    ],
                }
            ],
        }
    )
    (section,) = made.sections
    assert section.start.on is TriggerKind.AT
    assert section.start.time_of_day_s == 20 * 3600 + 30
    assert (section.loop, section.clips[0].speed, section.clips[0].mirror) == (2, 0.5, True)
    kinds = [cue.kind for cue in section.cues]
    assert kinds == [CueKind.LIGHT, CueKind.SAY, CueKind.SOUND, CueKind.OSC]


SECTION = {"name": "one", "clips": [clip()]}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rote_show": 2}, "not a show"),
        ({"rolls": {}}, "no field 'rolls'"),
        ({"roles": {}}, "1 to 200 roles"),
        ({"sections": [{"name": "one"}]}, "'one' is empty"),
        ({"sections": [SECTION, SECTION]}, "two sections are called 'one'"),
        ({"sections": [{**SECTION, "clips": [clip("eve")]}]}, "clip 1: there is no role 'eve'"),
        ({"sections": [{**SECTION, "clips": [{"role": "ann"}]}]}, "a 'take' or an 'action'"),
        ({"sections": [{**SECTION, "clips": [clip(speed=9)]}]}, "'speed': 9 is outside of 0.1"),
        ({"sections": [{**SECTION, "clips": [clip(sped=1)]}]}, "no field 'sped'"),
        ({"sections": [{**SECTION, "clips": [clip(at_s=float("nan"))]}]}, "expected a number"),
        ({"sections": [{**SECTION, "clips": [clip(loop=1.5)]}]}, "a whole number"),
        ({"sections": [{**SECTION, "start": {"on": "whistle"}}]}, "'whistle' is not known"),
        ({"sections": [{**SECTION, "start": {"on": "osc"}}]}, "'address' is missing"),
        ({"sections": [{**SECTION, "start": {"on": "at", "time": "25:00"}}]}, "not a time of day"),
        ({"sections": [{"name": "x", "cues": [{"light": [1, 2, 3]}]}]}, "'role' is missing"),
        (
            {"sections": [{"name": "x", "cues": [{"light": [1, 2, 300], "role": "ann"}]}]},
            "0 to 255",
        ),
        ({"sections": [{"name": "x", "cues": [{"at_s": 1}]}]}, "one of sound, say, light, osc"),
        ({"sections": [{"name": "x", "cues": [{"osc": "/a", "to": "here"}]}]}, "HOST:PORT"),
        ({"sections": [{"name": "a\nb", "clips": [clip()]}]}, "invisible characters"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(change: dict[str, Any], words: str) -> None:
    data = {"rote_show": 1, "roles": {"ann": {}}, "sections": [SECTION], **change}
    with pytest.raises(BadRequestError, match=words.replace("(", r"\(")):
        from_data(data)


def test_what_is_no_json_is_refused_in_words() -> None:
    for text in ("", "[", "nul", "[" * 100_000):
        with pytest.raises(BadRequestError):
            parse(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=12,
)


@given(data=JSON, place=st.sampled_from(["roles", "sections", "clips", "cues", "start", "whole"]))
def test_any_json_is_a_show_or_refused(data: object, place: str) -> None:
    whole: Any = {"rote_show": 1, "roles": {"ann": {}}, "sections": [dict(SECTION)]}
    if place == "whole":
        whole = data
    elif place in ("roles", "sections"):
        whole[place] = data
    else:
        whole["sections"][0][place] = data
    with suppress(BadRequestError):
        assert isinstance(from_data(whole), Show)


def test_the_schema_names_every_field_that_the_reader_knows_and_no_other() -> None:
    made = schema()
    section = made["properties"]["sections"]["items"]
    assert section["required"] == ["name"]
    assert set(section["properties"]) == {
        *("name", "loop", "on_loss", "hold", "start", "clips", "cues")
    }
    clips = section["properties"]["clips"]["items"]["properties"]
    assert clips["speed"]["maximum"] == 4.0
    assert clips["take"]["type"] == "string"
    json.dumps(made, allow_nan=False)


def test_a_cast_gives_each_robot_one_role() -> None:
    assert Cast.parse({"cast": {"ann": "r1"}}).robots == {"ann": "r1"}
    many: tuple[object, ...] = (
        {},
        {"cast": []},
        {"cast": {"ann": 1}},
        {"cast": {"ann": "r1", "bob": "r1"}},
    )
    for wrong in many:
        with pytest.raises(BadRequestError):
            Cast.parse(wrong)


# ---- compiling ----------------------------------------------------------------------------------


def test_clips_follow_each_other_by_a_soft_way_at_their_times() -> None:
    track = motion_of(clip(), clip(at_s=3.0))
    assert track.duration_s == pytest.approx(3.0 + TAKE_S)
    speeds = np.abs(np.diff(track.joints_rad, axis=0)).max(axis=1) / np.diff(track.times_s)
    assert speeds.max() < 1.0


@pytest.mark.parametrize("pause_s", [0.3, 1.0, 30.0])
def test_a_pause_between_two_clips_holds_the_pose_and_is_no_gap(pause_s: float) -> None:
    clips = clip(), clip(at_s=TAKE_S + 0.5 + pause_s)
    track = motion_of(*clips)
    assert track.duration_s == pytest.approx(2 * TAKE_S + 0.5 + pause_s)
    paused = (track.times_s > TAKE_S) & (track.times_s < TAKE_S + pause_s)
    assert np.ptp(track.joints_rad[paused], axis=0).max() == 0.0
    assert not [each for each in checked(*clips).findings if each.role == "ann"]


def test_a_pause_keeps_the_path_of_a_robot_that_walks() -> None:
    def walking(name: str) -> Track:
        track = take(name)
        position_m = np.zeros((len(track), 3))
        position_m[:, 0] = track.times_s
        level = np.repeat([[1.0, 0.0, 0.0, 0.0]], len(track), axis=0)
        return replace(track, root=RootPath(position_m, level))

    made = show(clip(), clip(at_s=10.0))
    score = compile_role(made, made.sections[0], "ann", walking)
    assert score.motion is not None
    assert score.motion.track.root is not None
    assert score.motion.track.root.position_m[-1, 0] == pytest.approx(2 * TAKE_S)


def test_a_clip_is_trimmed_paced_and_looped() -> None:
    assert motion_of(clip(from_s=0.5, to_s=1.5)).duration_s == pytest.approx(1.0)
    assert motion_of(clip(speed=0.5)).duration_s == pytest.approx(2 * TAKE_S)
    assert motion_of(clip(loop=3, blend_s=0.5)).duration_s == pytest.approx(3 * TAKE_S + 2 * 0.5)


def test_a_mirrored_clip_moves_the_other_arm() -> None:
    track = motion_of(clip(mirror=True))
    moved = {
        name
        for name, part in zip(track.names, np.ptp(track.joints_rad, axis=0), strict=True)
        if part > 0.1
    }
    assert moved == {"left_elbow_joint"}


def test_clips_that_overlap_fade_or_are_refused() -> None:
    assert motion_of(clip(), clip(at_s=1.7, blend_s=0.5)).duration_s == pytest.approx(1.7 + TAKE_S)
    (finding, *_) = checked(clip(), clip(at_s=1.0)).findings
    assert finding.finding.kind is FindingKind.OVERLAP
    assert (finding.section, finding.role, finding.time_s) == ("one", "ann", 1.0)
    assert "2.00 s" in finding.finding.remedy


def test_a_rehearsal_is_slower_everywhere() -> None:
    made = show(clip(at_s=1.0), cues=({"at_s": 1.0, "role": "ann", "light": [1, 2, 3]},))
    score = compile_role(made, made.sections[0], "ann", take).at_pace(0.5)
    assert score.motion is not None
    assert (score.motion.at_s, score.motion.track.duration_s) == (2.0, 2 * TAKE_S)
    assert score.cues[0].at_s == 2.0
    assert score.without_motion().motion is None
    assert score.without_motion().cues


# ---- checking -----------------------------------------------------------------------------------


def test_a_show_that_is_well_says_only_what_was_not_checked() -> None:
    report = checked(clip(), clip("bob"))
    assert report.ok
    assert report.as_json()["ok"] is True
    assert "contact between robots" in str(report.findings[-1].finding.message)
    report.require()


def test_a_motion_that_is_too_fast_is_named_with_section_role_and_second() -> None:
    report = checked(clip("bob", "fast", at_s=4.0))
    worst = report.findings[0]
    assert worst.finding.severity is Severity.ERROR
    assert (worst.section, worst.role) == ("one", "bob")
    assert worst.time_s is not None
    assert 4.0 <= worst.time_s <= 6.0
    document = report.as_json()
    assert document["ok"] is False
    assert {"section", "role", "time_s", "message"} <= set(document["findings"][0])
    with pytest.raises(BadRequestError, match="section 'one', role 'bob', at"):
        report.require()


def test_a_finding_of_a_take_is_printed_once_with_every_role_that_uses_the_take() -> None:
    report = checked(clip("ann", "fast"), clip("bob", "fast", at_s=4.0))
    each_role = [each for each in report.findings if each.finding.severity is Severity.ERROR]
    once = [each for each in report.repeated_findings if each.finding.severity is Severity.ERROR]
    assert 2 * len(once) == len(each_role) > 0
    assert "role 'ann', at " in once[0].location
    assert "role 'bob', at " in once[0].location


def test_files_that_are_missing_and_lights_too_close_are_errors() -> None:
    cues = (
        {"at_s": 1.0, "role": "ann", "light": [1, 2, 3]},
        {"at_s": 1.1, "role": "ann", "light": [3, 2, 1]},
        {"at_s": 1.1, "role": "bob", "light": [3, 2, 1]},
        {"at_s": 2.0, "sound": "gone.wav"},
    )
    report = checked(clip("bob", "nothing"), cues=cues)
    errors = [each for each in report.findings if each.finding.severity is Severity.ERROR]
    assert {each.finding.kind for each in errors} == {FindingKind.FILE, FindingKind.CUE}
    assert len(errors) == 3


def test_words_of_another_language_are_doubted() -> None:
    cues = ({"say": "你好", "role": "ann"}, {"say": "Hello", "role": "bob"})
    (doubt, *rest) = checked(clip(), cues=cues).findings
    assert doubt.finding.severity is Severity.WARNING
    assert "'zh'" in doubt.finding.remedy
    assert all(each.finding.severity is Severity.NOTE for each in rest)


def test_a_role_that_nobody_plays_is_an_error_if_there_is_a_cast() -> None:
    cast = Cast({"ann": "r1", "eve": "r2"})
    report = check_show(show(clip()), take, sound_s, cast=cast, contact=False)
    assert not report.ok
    assert [each.role for each in report.findings if each.finding.kind is FindingKind.CAST] == [
        "bob",
        "",
    ]


def test_an_action_of_the_robot_is_not_mixed_with_takes() -> None:
    report = checked(clip(), {"role": "ann", "action": "hello", "at_s": 5.0})
    assert not report.ok
    assert "mixes" in str(report.findings[0].finding.message)


def test_the_demos_show_can_be_run() -> None:
    report = check_demo(demo_show(["a", "b", "c"]))
    assert report.ok
    assert not [each for each in report.findings if each.finding.severity is Severity.WARNING]


# ---- as bytes -----------------------------------------------------------------------------------


def test_a_score_survives_its_journey() -> None:
    cues = ({"at_s": 0.5, "role": "ann", "say": "Grüß dich"},)
    made = show(clip(at_s=1.0), cues=cues)
    score = compile_role(made, made.sections[0], "ann", take)
    data = pack(score, {"bell.wav": "ab" * 32})
    read, sounds = unpack(data)
    assert name_of(data) == name_of(pack(score, {"bell.wav": "ab" * 32}))
    assert read.motion is not None
    assert score.motion is not None
    np.testing.assert_array_equal(read.motion.track.joints_rad, score.motion.track.joints_rad)
    assert replace(read, motion=None) == replace(score, motion=None) or read.cues == score.cues
    assert sounds == {"bell.wav": "ab" * 32}


def test_a_score_needs_no_room_on_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "mkdtemp", full)
    made = show(clip(at_s=1.0))
    read, _ = unpack(pack(compile_role(made, made.sections[0], "ann", take)))
    assert read.motion is not None


@given(st.binary(max_size=200))
def test_bytes_that_are_no_score_are_refused(data: bytes) -> None:
    with pytest.raises(BadRequestError):
        unpack(data)


def test_the_demo_takes_begin_in_different_poses() -> None:
    first = [demo_take(name).joints_rad[0] for name in ("wave", "bow", "drum")]
    assert min(np.abs(a - b).max() for a, b in ((first[0], first[1]), (first[1], first[2]))) > 0.3
