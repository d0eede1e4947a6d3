"""The table of edits: a row makes a command, a step of the API, a tool of the page, a doc line."""

import inspect
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from pydantic import TypeAdapter, ValidationError
from typer.testing import CliRunner

from rote.cli import motion as motion_commands
from rote.errors import BadRequestError
from rote.motion import files
from rote.motion.edit import table as edits
from rote.motion.edit.table import EDITS, SEVERAL, Edit, Parameter, ParameterKind, Range
from rote.motion.track import Track
from rote.web.schemas import robot as schemas
from rote.web.services.edits import edit_table

DOCS = Path(__file__).parents[2] / "docs" / "motion.md"
NAMES = ("left_elbow_joint", "right_elbow_joint")


def ramp(seconds: float = 2.0) -> Track:
    times_s = np.arange(round(seconds * 100) + 1) / 100
    return Track(times_s=times_s, joints_rad=np.tile(times_s[:, None] / 4, 2), names=NAMES)


def shake(track: Track, by_rad: float) -> Track:
    """Add a little to every pose: an edit that only this test knows."""
    return track.edited(f"shake by {by_rad:g} rad", joints_rad=track.joints_rad + by_rad)


SHAKE = Edit(
    name="shake_it",
    title="Shake",
    summary="Add a little to every pose.",
    function=f"{__name__}:shake",
    parameters=(
        Parameter(
            name="by_rad",
            title="Amount",
            help="How much, in rad.",
            range=Range(0.0, 0.5, "rad"),
            required=True,
        ),
    ),
    aliases={"shake_a_little": {"by_rad": 0.01}},
)
MORE = {**EDITS, SHAKE.name: SHAKE}


# ---- one more row -------------------------------------------------------------------------------


def test_one_more_row_is_one_more_command(tmp_path: Path) -> None:
    app = typer.Typer()
    motion_commands.add_edits(app, MORE)
    source, out = tmp_path / "in.npz", tmp_path / "out.npz"
    files.save(ramp(), source)
    run = CliRunner()
    assert "shake-it" in run.invoke(app, ["--help"]).output
    done = run.invoke(app, ["shake-it", str(source), str(out), "--by", "0.25"])
    assert (done.exit_code, done.exception) == (0, None)
    assert files.load(out).joints_rad[0, 0] == pytest.approx(0.25)


def test_an_older_name_works_and_is_not_shown(tmp_path: Path) -> None:
    app = typer.Typer()
    motion_commands.add_edits(app, MORE)
    source, out = tmp_path / "in.npz", tmp_path / "out.npz"
    files.save(ramp(), source)
    run = CliRunner()
    assert "shake-a-little" not in run.invoke(app, ["--help"]).output
    assert run.invoke(app, ["shake-a-little", str(source), str(out)]).exit_code == 0
    assert files.load(out).joints_rad[0, 0] == pytest.approx(0.01)


def test_one_more_row_is_one_more_step_of_the_api_with_the_same_range() -> None:
    (model,) = (each for each in schemas.step_models(MORE) if each.__name__ == "ShakeItStep")
    step: TypeAdapter[Any] = TypeAdapter(model)
    assert step.validate_python({"op": "shake_it", "by_rad": 0.5}).by_rad == 0.5
    for bad in ({"by_rad": 0.51}, {"by_rad": float("nan")}, {"by_rad": 0.1, "by_deg": 3}):
        with pytest.raises(ValidationError):
            step.validate_python({"op": "shake_it", **bad})


def test_one_more_row_is_one_more_tool_of_the_page() -> None:
    (tool,) = (each for each in edit_table(MORE) if each["name"] == "shake_it")
    assert (tool["title"], tool["takes"]) == ("Shake", 0)
    (parameter,) = tool["parameters"]
    assert (parameter["low"], parameter["high"], parameter["unit"]) == (0.0, 0.5, "rad")


# ---- the rows there are -------------------------------------------------------------------------


@pytest.mark.parametrize("edit", EDITS.values(), ids=lambda edit: edit.name)
def test_a_rows_function_takes_its_tracks_and_its_parameters(edit: Edit) -> None:
    module, _, name = edit.function.partition(":")
    signature = inspect.signature(getattr(import_module(module), name))
    tracks = [f"track{number}" for number in range(edit.tracks or 1)]
    values = {each.name: each.default for each in edit.parameters}
    signature.bind(*tracks, **values)
    for each in edit.parameters:
        if not each.required and each.default is not None:
            assert signature.parameters[each.name].default in (
                each.default,
                inspect.Parameter.empty,
            )


@pytest.mark.parametrize("edit", EDITS.values(), ids=lambda edit: edit.name)
def test_defaults_and_sliders_lie_within_the_range(edit: Edit) -> None:
    for each in edit.parameters:
        assert (each.range is not None) == (each.kind is ParameterKind.NUMBER)
        if each.range is None:
            continue
        for value in (each.default, *(each.slider or ())[:2]):
            if value is not None:
                each.range.require(value, each.title)


def test_names_and_aliases_are_all_different() -> None:
    names = [name for edit in EDITS.values() for name in (edit.name, *edit.aliases)]
    assert len(set(names)) == len(names)


def test_an_unknown_edit_or_parameter_is_refused_with_those_there_are() -> None:
    with pytest.raises(BadRequestError, match="no edit 'polish'") as raised:
        edits.find_edit("polish")
    assert "smooth" in raised.value.remedy
    with pytest.raises(BadRequestError, match="no parameter 'cutoff'") as raised:
        EDITS["smooth"].apply([ramp()], {"cutoff": 3.0})
    assert "cutoff_hz" in raised.value.remedy


def test_a_missing_parameter_and_a_missing_motion_are_refused() -> None:
    with pytest.raises(BadRequestError, match="factor is missing"):
        EDITS["speed"].apply([ramp()], {})
    with pytest.raises(BadRequestError, match="takes 2 motions, not 1"):
        EDITS["blend"].apply([ramp()], {})


@pytest.mark.parametrize("value", [0.0, 101.0, float("nan"), float("inf")])
def test_a_number_outside_its_range_is_refused_with_the_range(value: float) -> None:
    with pytest.raises(BadRequestError, match=r"the range is 0\.01 to 100 times"):
        EDITS["speed"].apply([ramp()], {"factor": value})


def test_an_arms_name_stands_for_its_joints() -> None:
    assert EDITS["keep"].apply([ramp()], {"joints": ["left_arm"]}).names == NAMES[:1]


def test_several_motions_go_to_one_edit() -> None:
    assert EDITS["average"].tracks == SEVERAL
    both = EDITS["average"].apply([ramp(), ramp()], {})
    assert both.joints_rad == pytest.approx(ramp().joints_rad, abs=1e-6)


def test_retiming_is_nowhere_faster_than_recorded_unless_asked() -> None:
    slow = EDITS["speed"].apply([ramp()], {"factor": 0.25})
    calm = EDITS["retime"].apply([slow], {})
    fast = EDITS["retime"].apply([slow], {"fastest": True})
    speeds = np.abs(np.diff(calm.joints_rad, axis=0)) / np.diff(calm.times_s)[:, None]
    assert speeds.max() <= 0.0625 * 1.02
    assert fast.duration_s < slow.duration_s <= calm.duration_s


# ---- some joints only ---------------------------------------------------------------------------


LEGS = ("FR_hip_joint", "FR_thigh_joint", "RL_hip_joint")


def shaken(names: tuple[str, ...]) -> Track:
    times_s = np.arange(201) / 100
    values = [0.3 * np.sin((2 + k) * times_s) + 0.01 * np.sin(200 * times_s) for k in range(4)]
    return Track(
        times_s=times_s,
        joints_rad=np.column_stack(values[: len(names)]),
        names=names,
        variant="a1" if names == LEGS else "g1-29",
    )


ARMS = ("left_elbow_joint", "right_elbow_joint", "right_wrist_roll_joint")


@pytest.mark.parametrize(
    ("name", "values", "others"),
    [
        ("smooth", {"cutoff_hz": 3.0}, 0),
        ("reverse", {}, 0),
        ("mirror", {}, 0),
        ("blend", {"weight": 1.0}, 1),
    ],
)
def test_an_edit_of_some_joints_leaves_the_others(
    name: str, values: dict[str, Any], others: int
) -> None:
    old = shaken(ARMS[:2] if name == "mirror" else ARMS)
    tracks = [old, *([EDITS["reverse"].apply([old], {})] * others)]
    new = EDITS[name].apply(tracks, {**values, "joints": ["right_arm"]})
    assert (new.joints_rad[:, 0] == old.joints_rad[:, 0]).all()
    assert np.abs(new.joints_rad[:, 1] - old.joints_rad[:, 1]).max() > 0.005
    assert (new.names, len(new.history)) == (old.names, len(tracks[-1].history) + 1 - others)
    assert "right_elbow_joint" in new.history[-1]
    with pytest.raises(BadRequestError, match="no tail"):
        EDITS[name].apply(tracks, {**values, "joints": ["tail"]})


def test_a_mirrored_arm_alone_does_what_the_other_does() -> None:
    new = EDITS["mirror"].apply([shaken(ARMS[:2])], {"joints": ["right_elbow_joint"]})
    assert new.joints_rad[:, 1] == pytest.approx(new.joints_rad[:, 0])
    with pytest.raises(BadRequestError, match="cannot be mirrored alone"):
        EDITS["mirror"].apply([shaken(ARMS)], {"joints": ["right_wrist_roll_joint"]})


def test_the_edits_that_leave_the_clock_alone_can_be_of_some_joints() -> None:
    chosen = {edit.name for edit in EDITS.values() if edit.parameter("joints")}
    assert chosen == {"smooth", "reverse", "mirror", "blend", "keep", "drop", "layer"}


def test_the_legs_of_a_quadruped_are_limbs() -> None:
    assert edits.limbs_of(LEGS) == {
        "front_right_leg": ["FR_hip_joint", "FR_thigh_joint"],
        "rear_left_leg": ["RL_hip_joint"],
    }
    kept = EDITS["keep"].apply([shaken(LEGS)], {"joints": ["front_right_leg"]})
    assert kept.names == LEGS[:2]


def test_a_pose_and_a_label_are_typed_at_the_command_line(tmp_path: Path) -> None:
    app = typer.Typer()
    motion_commands.add_edits(app)
    source, out, marked = (tmp_path / name for name in ("in.npz", "out.npz", "marked.json"))
    files.save(ramp(), source)
    run = CliRunner()
    bent = ["keyframe", str(source), str(out), "--time", "1", "--joint", "left_elbow_joint=0.75"]
    assert run.invoke(app, bent).exit_code == 0
    assert files.load(out).joints_rad[100] == pytest.approx([0.75, 0.25])
    label = ["mark", str(out), str(marked), "--time", "0.5", "--label", "half way"]
    assert run.invoke(app, label).exit_code == 0
    assert [mark.label for mark in files.load(marked).marks] == ["half way"]
    for bad in ("left_elbow_joint", "left_elbow_joint=up", "=1"):
        wrong = run.invoke(app, [*bent[:-1], bad, "--overwrite"])
        assert isinstance(wrong.exception, BadRequestError)
        assert "left_elbow_joint=0.5" in wrong.exception.remedy


def test_the_docs_have_every_edit_with_its_parameters() -> None:
    rows = [
        line.split("|")[1:4] for line in DOCS.read_text("utf-8").splitlines() if line[:3] == "| `"
    ]
    listed = {cells[0].strip(" `"): [cell.strip() for cell in cells[1:]] for cells in rows}
    for edit in EDITS.values():
        options, summary = listed[edit.command]
        assert summary == edit.summary
        shown = [option.strip(" `") for option in options.split(",") if "--" in option]
        named = [motion_commands.make_option_name(each) for each in edit.parameters]
        assert shown == named
