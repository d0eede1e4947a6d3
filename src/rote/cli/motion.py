"""rote motion: read a motion from a file, edit it, and write it to another file.

Most commands are built from the table of edits. Defined here are `convert`, which changes a
file's format, `recover`, which reads a file that was cut off, and `learn` and `adapt`, which make a
model from several takes and a motion from a model.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter as SignatureParameter
from inspect import Signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from rote.cli.motion_app import IsTake, Out, Second, Source, app, check_out, load, write
from rote.cli.options import (
    TIMEOUT_S,
    Json,
    Key,
    Overwrite,
    RobotChoice,
    RobotUrl,
    Timeout,
    connect_to,
    print_json,
    run,
)
from rote.cli.wording import finding_json
from rote.errors import BadRequestError
from rote.motion.edit.table import EDITS, KINDS, SEVERAL, Edit, Parameter, ParameterKind
from rote.platform.console_text import one_line
from rote.transport.wires import EMBEDDED

if TYPE_CHECKING:
    from rote.motion.check.report import CheckReport
    from rote.motion.learn import MotionModel
    from rote.motion.track import Track

_UNIT_METAVARS = {"_s": "SECONDS", "_hz": "HZ", "_rad": "RAD"}
"""What the help shows for an option's value, by the unit at the end of the parameter's name."""
_Sources = Annotated[list[Path], typer.Argument(metavar="FILE", help="Takes of the same motion.")]
_OutOption = Annotated[
    Path, typer.Option("--out", metavar="OUT", help="Where to write the result.")
]
_INPUTS: dict[int, dict[str, Any]] = {
    1: {"source": Source, "out": Out},
    2: {"source": Source, "other": Second, "out": Out},
    SEVERAL: {"sources": _Sources, "out": _OutOption},
}
"""Arguments for the files that an edit reads and writes, by its number of motions."""


def add_edits(group: typer.Typer, edits: Mapping[str, Edit] = EDITS) -> None:
    """Add a command for each edit to `group`, and a hidden one for each older name."""
    for edit in edits.values():
        group.command(edit.command, help=edit.summary)(_build_command(edit, {}))
        for alias, values in edit.aliases.items():
            hidden = group.command(alias.replace("_", "-"), help=edit.summary, hidden=True)
            hidden(_build_command(edit, values))


def _build_command(edit: Edit, fixed_values: Mapping[str, Any]) -> Callable[..., None]:
    """Return the command of an edit: its options are the edit's parameters without fixed values.

    Typer reads the options from a function's signature, so the command gets one made here.
    """
    parameters = [each for each in edit.parameters if each.name not in fixed_values]

    def run_edit(**args: Any) -> None:
        sources = args["sources"] if "sources" in args else [args["source"]]
        if "other" in args:
            sources.append(args["other"])
        given_values = {each.name: _parse_value(each, args[each.name]) for each in parameters}
        edit_values = {**fixed_values, **given_values}

        def change(*tracks: "Track") -> "Track":
            return edit.apply(tracks, edit_values)

        options = _WriteOptions(args["take"], args["overwrite"], args["as_json"], edit.checks)
        _edit_files(sources, args["out"], change, options)

    arguments = {**_INPUTS[edit.tracks], **{each.name: _build_option(each) for each in parameters}}
    flags = {"take": IsTake, "overwrite": Overwrite, "as_json": Json}
    run_edit.__name__ = edit.name
    run_edit.__doc__ = edit.summary
    run_edit.__annotations__ = {**arguments, **flags, "return": None}
    defaults = {each.name: each.default for each in parameters if not each.required}
    vars(run_edit)["__signature__"] = Signature(
        [
            SignatureParameter(
                name,
                SignatureParameter.KEYWORD_ONLY,
                annotation=annotation,
                default=False if name in flags else defaults.get(name, SignatureParameter.empty),
            )
            for name, annotation in {**arguments, **flags}.items()
        ]
    )
    return run_edit


def _parse_value(parameter: Parameter, value: Any) -> Any:
    """Parse an option's value for an edit: a pose, numbers, or rows of numbers."""
    if value is None:
        return None
    if parameter.kind is ParameterKind.POSE:
        return _parse_pose(value)
    if parameter.kind is ParameterKind.NUMBERS:
        return _parse_row(parameter, value)
    if parameter.kind is ParameterKind.ROWS:
        return [_parse_row(parameter, text) for text in value]
    return value


def _parse_row(parameter: Parameter, text: str) -> list[float]:
    """Return the numbers of a text like `2.3 s: 0.35,-0.2,1.1` or `1.2=1.5`, without units."""
    words = [word for word in re.split(r"[\s,;:=]+", text.strip()) if word not in {"", "s", "m"}]
    try:
        return [float(word.removesuffix("s").removesuffix("m")) for word in words]
    except ValueError:
        raise BadRequestError(
            f"{text!r} is not a list of numbers like {parameter.form}", parameter.help
        ) from None


def _parse_pose(texts: Sequence[str]) -> dict[str, float]:
    """Parse texts like `left_elbow_joint=0.5` to angles in rad by joint."""
    pose = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        try:
            if not name:
                raise ValueError
            pose[name] = float(number)
        except ValueError:
            raise BadRequestError(
                f"{text!r} is not a joint with an angle",
                "Write it like left_elbow_joint=0.5, in rad.",
            ) from None
    return pose


def _build_option(parameter: Parameter) -> Any:
    """Return the annotation that makes a parameter an option of the command line."""
    facts = KINDS[parameter.kind]
    value_type = facts.option
    if not parameter.required and parameter.default is None:
        value_type = value_type | None
    metavar = parameter.form or "|".join(parameter.choices) or facts.form
    if facts.value is float:
        metavar = _UNIT_METAVARS.get(_find_unit(parameter.name), "N")
    option = typer.Option(make_option_name(parameter), metavar=metavar, help=parameter.help)
    return Annotated[value_type, option]


def _find_unit(name: str) -> str:
    """Return the unit at the end of a parameter's name, such as `_s`; empty if it has none."""
    return next((unit for unit in _UNIT_METAVARS if name.endswith(unit)), "")


def make_option_name(parameter: Parameter) -> str:
    """Return the option of a parameter: the one it states, or its name without the unit."""
    name = parameter.option or parameter.name.removesuffix(_find_unit(parameter.name))
    return f"--{name.replace('_', '-')}"


add_edits(app)


class _WriteOptions(NamedTuple):
    """How an edit reads, writes and reports."""

    take: bool
    overwrite: bool
    as_json: bool
    checks: bool = False


def _edit_files(
    sources: Sequence[Path],
    out: Path,
    edit: "Callable[..., Track]",
    options: _WriteOptions,
    *,
    degrees: bool = False,
) -> None:
    """Read the sources, edit them, and write one result; if a step fails, nothing is written."""
    if not options.take and any(out.resolve() == source.resolve() for source in sources):
        raise BadRequestError(f"{out} would be changed in place", "Name another file to write to.")
    check_out(out, take=options.take, overwrite=options.overwrite)
    track = edit(*(load(source, degrees=degrees, take=options.take) for source in sources))
    report = _check_track(track) if options.checks else None
    _print_result(track, out, write(track, out, take=options.take), options.as_json, report)


def _check_track(track: "Track") -> "CheckReport":
    from rote.cli.output import show_spinner
    from rote.motion.check.rules import check

    with show_spinner("checking"):
        return check(track)


def _print_result(
    track: "Track", out: Path, loss: str, as_json: bool, report: "CheckReport | None" = None
) -> None:
    """Print what was written, what the format lost, and the findings of a check."""
    last_edit = track.history[-1] if track.history else ""
    if as_json:
        findings = () if report is None else report.findings
        print_json(
            {
                "file": str(out),
                "duration_s": round(track.duration_s, 6),
                "samples": len(track),
                "rate_hz": round(track.rate_hz, 3),
                "done": last_edit,
                "lost": loss,
                **({} if report is None else {"findings": [*map(finding_json, findings)]}),
            }
        )
        return
    if last_edit:
        print(one_line(last_edit))
    print(f"{out}: {track.duration_s:.2f} s, {len(track)} samples at {track.rate_hz:.0f} Hz")
    if loss:
        print(f"Not in this format: {loss}.")
    if report is not None:
        from rote.cli import output

        output.print_findings(output.console(), report.findings)


@app.command()
def convert(
    source: Source,
    out: Out,
    degrees: Annotated[
        bool, typer.Option("--degrees", help="FILE contains degrees; convert them to rad.")
    ] = False,
    build: Annotated[
        str | None,
        typer.Option(
            "--build", metavar="BUILD", help="Also convert to this build: g1-29, g1-27 or g1-23."
        ),
    ] = None,
    variant: Annotated[str | None, typer.Option("--variant", hidden=True)] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Convert even if moving joints are lost.")
    ] = False,
    take: IsTake = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Convert a motion to another format or another build."""
    build_name = build or variant  # --variant is the older name of --build
    if force and build_name is None:
        raise BadRequestError("--force does nothing without --build", "Leave it out.")

    def convert_build(track: "Track") -> "Track":
        values = {"build": build_name, "force": force}
        return track if build_name is None else EDITS["to_build"].apply([track], values)

    options = _WriteOptions(take, overwrite, as_json)
    _edit_files((source,), out, convert_build, options, degrees=degrees)


@app.command()
def recover(
    source: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="An .mcap file that was cut off, or .mcap.part."),
    ],
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help="Where to write; its ending selects the format.")
    ],
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Recover a recording that was cut off; FILE is not changed.

    Takes that a crash cut off are recovered by the next `rote takes list` or `rote teach`.
    """
    from rote.motion.files.mcap_file import recover as recover_track

    if out.resolve() == source.resolve():
        raise BadRequestError(f"{out} would be changed in place", "Name another file to write to.")
    check_out(out, take=False, overwrite=overwrite)
    track = recover_track(source)
    _print_result(track, out, write(track, out, take=False), as_json)


@app.command("learn")
def learn_takes(
    sources: _Sources,
    out: Annotated[Path, typer.Option("--out", metavar="MODEL", help="Where to write the model.")],
    take: IsTake = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Learn a motion from three takes or more: its mean, and how the takes vary.

    `rote motion adapt` makes motions from it, with other ends or through other points.
    """
    from rote.cli.output import show_spinner
    from rote.motion.files.model_file import save_model
    from rote.motion.learn import learn
    from rote.platform.atomic_file import check_new

    check_new(out, overwrite)
    tracks = [load(source, take=take) for source in sources]
    with show_spinner("learning"):
        model = learn(tracks)
    save_model(model, out)
    if as_json:
        print_json(
            {"file": str(out), "takes": len(tracks), "duration_s": round(model.duration_s, 6)}
        )
    else:
        print(f"{out}: learned from {len(tracks)} takes, {model.duration_s:.2f} s")


_POINT = Parameter(
    name="through",
    title="Point",
    help="A time in s and a position of the hand in m from the robot's base. May be repeated.",
    kind=ParameterKind.ROWS,
    form="'T: X,Y,Z'",
)
_CURRENT_POSE = "current"
"""The value of --start for the robot's pose."""


@app.command("adapt")
def adapt_model(
    source: Annotated[
        Path, typer.Argument(metavar="MODEL", help="What `rote motion learn` wrote.")
    ],
    out: Out,
    start: Annotated[
        list[str] | None,
        typer.Option(
            metavar="JOINT=RAD",
            help="Begin with this angle; `current` begins in the robot's pose. May be repeated.",
        ),
    ] = None,
    end: Annotated[
        list[str] | None,
        typer.Option(metavar="JOINT=RAD", help="End with this angle. May be repeated."),
    ] = None,
    through: Annotated[
        list[str] | None, typer.Option(metavar=_POINT.form, help=_POINT.help)
    ] = None,
    hand: Annotated[
        str, typer.Option(metavar="left|right", help="The hand of --through.")
    ] = "right",
    duration: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="Duration; by default as learned."),
    ] = None,
    robot: RobotUrl = EMBEDDED,
    key: Key = None,
    timeout: Timeout = TIMEOUT_S,
    take: IsTake = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> int:
    """Make a motion from a model: with other ends, through points, or of another duration."""
    from rote.motion.files.model_file import load_model
    from rote.motion.learn import HandPoint

    if hand not in ("left", "right"):
        raise BadRequestError(f"there is no {hand!r} hand", "Choose left or right.")
    check_out(out, take=take, overwrite=overwrite)
    model = load_model(source)
    points = [HandPoint(*_parse_point(text), hand) for text in through or ()]
    starts_in_robot_pose = _CURRENT_POSE in (start or ())
    start_angles = [text for text in start or () if text != _CURRENT_POSE]
    target = RobotChoice(robot, key, None, timeout)

    async def adapt() -> None:
        robot_pose = await _read_pose(target, model) if starts_in_robot_pose else {}
        track = model.adapt(
            start=robot_pose | _parse_pose(start_angles),
            end=_parse_pose(end or ()),
            through=points,
            duration_s=duration,
        )
        _print_result(track, out, write(track, out, take=take), as_json, _check_track(track))

    return run(adapt())


def _parse_point(text: str) -> tuple[float, float, float, float]:
    """Parse `T: X,Y,Z`: a time in s, and a position in m."""
    row = _parse_row(_POINT, text)
    if len(row) != 4:
        raise BadRequestError(f"the point {text!r} has {len(row)} numbers, not 4", _POINT.help)
    return row[0], row[1], row[2], row[3]


async def _read_pose(target: RobotChoice, model: "MotionModel") -> dict[str, float]:
    """Return the current angles in rad of those joints of a robot that a learned motion has."""
    from rote.model.registry import find_build

    names, learned_on = model.names, find_build(model.variant)
    async with connect_to(target, "states", quiet=True) as robot:
        if learned_on is not None and robot.build.family != learned_on.family:
            raise BadRequestError(
                f"the motion was learned on {learned_on.title}, not on {robot.build.title}",
                "Choose its robot with --robot, or give the angles: --start JOINT=RAD.",
            )
        async for state in robot.states():
            # Not strict: a state may report no joints.
            angles = dict(zip(robot.build.names, state.joints_rad, strict=False))
            if angles:
                return {name: value for name, value in angles.items() if name in names}
    raise BadRequestError("the robot reports no joints", "Give the angles: --start JOINT=RAD.")
