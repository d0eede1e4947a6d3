"""The edits as methods of a track: one for each row of the table, with its parameters."""

import ast
import inspect
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import track_edits_stub

import rote
from motion.motion_tracks import waving
from rote.errors import BadRequestError
from rote.motion.edit.table import EDITS, SEVERAL, ParameterKind
from rote.motion.track import Track


def wave() -> Track:
    return replace(waving(200), history=())


def test_the_stub_has_a_method_for_every_row() -> None:
    tree = ast.parse(track_edits_stub.stub())
    methods = {each.name for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)}
    assert methods >= EDITS.keys()


@pytest.mark.parametrize("name", EDITS)
def test_a_method_has_the_parameters_of_its_row(name: str) -> None:
    edit = EDITS[name]
    given = inspect.signature(getattr(Track, name)).parameters
    others = {1: [], 2: ["other"], SEVERAL: ["others"]}[edit.tracks]
    assert sorted(given) == sorted(["self", *others, *(each.name for each in edit.parameters)])
    for each in edit.parameters:
        default = given[each.name].default
        assert default is inspect.Parameter.empty if each.required else default == each.default
        by_name = given[each.name].kind is inspect.Parameter.KEYWORD_ONLY
        assert by_name == (each.kind is ParameterKind.FLAG or edit.tracks == SEVERAL)
        assert each.name in (inspect.getdoc(getattr(Track, name)) or "")


def test_edits_are_written_one_after_the_other(tmp_path: Path) -> None:
    track = wave()
    path = tmp_path / "wave.npz"
    assert track.trim(start_s=0.5).smooth().speed(2).save(str(path)) == ""
    assert track.history == ()
    loaded = rote.load(path)
    assert [line.split()[0].rstrip(":") for line in loaded.history] == ["trim", "smooth", "speed"]
    np.testing.assert_array_equal(
        loaded.joints_rad,
        EDITS["smooth"].apply([EDITS["trim"].apply([track], {"start_s": 0.5})], {}).joints_rad,
    )


def test_edits_of_several_tracks_are_methods_of_the_first() -> None:
    track = wave()
    joint = track.names[0]
    assert track.layer(track.speed(2), joint).names == track.names
    assert track.concatenate(track.reverse()).duration_s > track.duration_s
    assert track.average(track, track).duration_s == pytest.approx(track.duration_s, rel=0.01)
    assert track.keep(joint).names == (joint,)
    assert track.drop([joint]).names == track.names[1:]


def test_an_impossible_value_is_refused_as_everywhere() -> None:
    with pytest.raises(BadRequestError, match="cutoff"):
        wave().smooth(-1)
    with pytest.raises(BadRequestError, match="no such"):
        wave().keep("no such")
    with pytest.raises(TypeError):
        wave().smooth(cutof_hz=4)  # type: ignore[call-arg]


def test_a_track_prints_what_it_is() -> None:
    said = repr(wave())
    assert "samples" in said
    assert "array" not in said
    assert len(said) < 200
