"""Exchange formats: imports motions that other programs wrote, and exports tracks for trainers.

Each format is a row of the table. A file is recognised if only one format fits; if two fit, it is
refused with both, and the user has to choose. Nothing in a file is ever executed. Rote's own
formats are in `rote.motion.files`.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import cast

import numpy as np

from rote.errors import BadRequestError
from rote.findings import Finding, FindingKind, Severity
from rote.model import registry
from rote.motion.body.root_path import RootPath
from rote.motion.edit.operations import resample, to_build
from rote.motion.files import FilePath
from rote.motion.files.exchange.contents import (
    Contents,
    Quaternion,
    Readings,
    arm_joints,
    quaternion_wxyz,
    read_bytes,
)
from rote.motion.files.metadata import MAX_ANGLE_RAD, FileLocation, check_joints, variant_with
from rote.motion.track import Origin, Track
from rote.motion.track_build import a_robot, build_of, family_of, joints_of

__all__ = [
    "EXCHANGE", "ExchangeFormat", "ImportedMotion", "Quaternion", "export_motion", "import_motion",
    "recognise_format",
]  # fmt: skip

RATES_FPS = (1.0, 2000.0)
UPPER_BODY = frozenset({"arm", "wrist", "finger", "head"})
"""The parts of a robot that `upper_body` keeps."""

_WHOLE = "g1-29"
_HERE = "rote.motion.files.exchange"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeFormat:
    """A format in which other programs write motions of a G1."""

    name: str
    title: str
    reader: str
    """`module:function` that reads a file."""
    writer: str = ""
    """The same that writes one; empty if rote does not."""
    usual_fps: float | None = None
    """Frames a second if the file does not state them: the usual rate of its authors."""
    turns: bool = False
    """Whether its quaternions may be in another order than the format specifies."""
    export_fps: int | None = None
    """Frames a second that its readers expect; None keeps those of the track."""
    loss: str = ""
    """What does not survive writing, as a sentence without its full stop."""

    def read(self, location: FileLocation) -> Contents:
        """Read a file; raises `BadRequestError` that names what cannot be used."""
        return cast("Callable[[FileLocation], Contents]", _import_function(self.reader))(location)

    def write(self, track: Track, path: Path) -> None:
        """Write a track that has all joints, a root and even samples."""
        cast("Callable[[Track, Path], None]", _import_function(self.writer))(track, path)


def _import_function(where: str) -> object:
    module, _, name = where.partition(":")
    return getattr(import_module(f"{_HERE}.{module}"), name)


_LOSS = "exact times, variant, source, marks and history are lost"

EXCHANGE: dict[str, ExchangeFormat] = {
    found.name: found
    for found in (
        ExchangeFormat(
            name="unitree-csv",
            title="Unitree's CSV, as in its LAFAN1 data set",
            reader="csv_rows:read_unitree",
            writer="csv_rows:write_unitree",
            usual_fps=30.0,
            turns=True,
            export_fps=30,
            loss="exact times, the rate, joint names, variant, source, marks and history are lost",
        ),
        ExchangeFormat(
            name="kimodo",
            title="Kimodo's and ARDY's CSV",
            reader="csv_rows:read_kimodo",
            usual_fps=30.0,
            turns=True,
        ),
        ExchangeFormat(
            name="bones-seed",
            title="BONES-SEED's CSV, in centimetres and degrees",
            reader="csv_rows:read_bones_seed",
            usual_fps=120.0,
        ),
        ExchangeFormat(
            name="mjlab",
            title="mjlab's NPZ",
            reader="npz_motion:read_mjlab",
            writer="npz_motion:write_mjlab",
            export_fps=50,
            loss=_LOSS,
        ),
        ExchangeFormat(
            name="beyondmimic",
            title="BeyondMimic's NPZ, in Isaac's order",
            reader="npz_motion:read_beyondmimic",
        ),
        ExchangeFormat(
            name="amp",
            title="AMP's NPZ, with the joints' names",
            reader="npz_motion:read_amp",
            writer="npz_motion:write_amp",
            loss=_LOSS,
        ),
        ExchangeFormat(
            name="gmr",
            title="GMR's pickle",
            reader="gmr_file:read_gmr",
            turns=True,
        ),
        ExchangeFormat(
            name="seq",
            title="Choreonoid's sequence, as in Unitree's arm example",
            reader="seq_file:read_seq",
            usual_fps=500.0,
        ),
    )
}
"""By name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedMotion:
    """An imported motion, and notes about how it was read."""

    track: Track
    format: str
    """How it was read."""
    left_out: tuple[str, ...] = ()
    """The joints of the file that the track does not have."""
    notes: tuple[Finding, ...] = ()
    """The assumptions made when it was read."""


def import_motion(
    path: FilePath,
    format: str | None = None,  # noqa: A002 - what everybody calls it
    *,
    fps: float | None = None,
    quat: str | None = None,
    upper_body: bool = False,
    licence: str = "",
    address: str = "",
) -> ImportedMotion:
    """Read a motion that another program wrote.

    `format` is a name of the table; without it only one format may fit the file. `fps` are its
    frames a second if it does not state them, `quat` is `xyzw` or `wxyz` if the order of its
    quaternions is in doubt. `upper_body` leaves out legs and waist. `licence` and `address` state
    its terms and its source. Raises `BadRequestError` that states what cannot be read, or which
    formats fit. It is not checked here whether a robot can play it.
    """
    location = FileLocation(str(path), "frame")
    found = find_format(format) if format is not None else recognise_format(path)
    contents = found.read(location)
    notes = [_make_note(text) for text in contents.notes]
    if format is None:
        notes.append(_make_note(f"it was recognised as {found.name}: {found.title}"))
    rate, assumed = _frame_rate(contents, found, fps, location)
    if assumed:
        notes.append(
            _make_note(
                f"the file does not state its rate; it was read at {rate:g} frames a second, "
                f"as usual for {found.name}",
                "If it has another, import it again and give the frames a second.",
            )
        )
    root = _read_root(contents, found, quat, format is not None, location)
    track = make_track(contents, rate, root, location)
    name = Path(path).name
    track = track.edited(
        f"import {name} as {found.name} at {rate:g} Hz",
        origin=Origin(found.name, name, licence.strip(), address.strip(), _file_digest(location)),
    )
    left_out: tuple[str, ...] = ()
    if upper_body:
        track, left_out = upper_body_of(track, location)
    return ImportedMotion(track=track, format=found.name, left_out=left_out, notes=tuple(notes))


def find_format(name: str) -> ExchangeFormat:
    """Return the format of that name; raises `BadRequestError` that lists all."""
    if name not in EXCHANGE:
        raise BadRequestError(f"there is no format {name!r}", f"There are: {', '.join(EXCHANGE)}.")
    return EXCHANGE[name]


def recognise_format(path: FilePath) -> ExchangeFormat:
    """Return the only format that fits a file; raises `BadRequestError` with all candidates."""
    location = FileLocation(str(path), "frame")
    data = read_bytes(location)
    if data[:2] == b"PK":
        return _recognise_npz(data, location)
    if data[:1] == b"\x80" or Path(path).suffix.lower() in {".pkl", ".pickle"}:
        return EXCHANGE["gmr"]
    if b"\0" not in data[:4096]:
        from rote.motion.files.exchange import csv_rows, seq_file  # noqa: PLC0415 - tables first

        line = csv_rows.first_line(location, data)
        if csv_rows.is_header(line):
            return EXCHANGE["bones-seed"]
        if (csv_rows.width_of(line) or 0) > 1:
            return _recognise_rows(location)
        if seq_file.is_first_line(line) and b"components" in data[:100_000]:
            return EXCHANGE["seq"]
    raise location.error("its format is not known", _CHOOSE_FORMAT)


_CHOOSE_FORMAT = f"If you know its format, name it: {', '.join(EXCHANGE)}."


def _recognise_npz(data: bytes, location: FileLocation) -> ExchangeFormat:
    from rote.motion.files.exchange import npz_motion  # noqa: PLC0415 - tables first

    names = npz_motion.array_names(data)
    if all(name in names for name in npz_motion.AMP):
        return EXCHANGE["amp"]
    if all(name in names for name in npz_motion.TRACKING):
        misfits = npz_motion.order_misfits(location)
        order = npz_motion.fitting_order(misfits)
        if order is None:
            raise location.error(
                f"it may be of mjlab or of BeyondMimic, and the order of its joints is in doubt: "
                f"{npz_motion.describe_misfits(misfits)}",
                "Name the format: mjlab or beyondmimic.",
            )
        return EXCHANGE[order]
    held = ", ".join(names[:12]) or "nothing"
    raise location.error(f"its format is not known; it holds {held}", _CHOOSE_FORMAT)


def _recognise_rows(location: FileLocation) -> ExchangeFormat:
    contents = EXCHANGE["unitree-csv"].read(location)
    assert contents.turn is not None
    readings = Readings(contents.turn, location)
    if readings.certain is None:
        raise location.error(
            f"it may be Unitree's CSV or Kimodo's, which look the same: {readings.describe()}",
            "Name the format: unitree-csv (xyzw) or kimodo (wxyz).",
        )
    return EXCHANGE["unitree-csv" if readings.certain is Quaternion.XYZW else "kimodo"]


def _frame_rate(
    contents: Contents, found: ExchangeFormat, fps: float | None, location: FileLocation
) -> tuple[float, bool]:
    """Return the frames a second, and whether they are only assumed."""
    if contents.fps is not None and fps is not None and abs(fps - contents.fps) > 1e-6:
        raise location.error(
            f"it states {contents.fps:g} frames a second, not {fps:g}",
            "Leave your number out; change the speed afterwards if you like.",
        )
    stated = contents.fps if contents.fps is not None else fps
    rate = found.usual_fps if stated is None else stated
    if rate is None:
        raise location.error("it does not state its rate", "Give the frames a second.")
    if not RATES_FPS[0] <= rate <= RATES_FPS[1]:
        raise location.error(
            f"{rate:g} frames a second are out of range",
            f"{RATES_FPS[0]:g} to {RATES_FPS[1]:g} are.",
        )
    return rate, stated is None


def _read_root(
    contents: Contents, found: ExchangeFormat, quat: str | None, named: bool, location: FileLocation
) -> RootPath | None:
    if quat is not None and quat not in set(Quaternion):
        raise BadRequestError(f"there is no order {quat!r} of quaternions", "xyzw or wxyz.")
    if quat is not None and not found.turns:
        raise BadRequestError(
            f"the order of quaternions is not in doubt in {found.name}", "Leave it out."
        )
    if contents.turn is None or contents.position_m is None:
        return None
    order = contents.order if quat is None else Quaternion(quat)
    if found.turns and quat is None and named:
        readings = Readings(contents.turn, location)
        if readings.certain not in {None, order}:
            raise location.error(
                f"{found.name} has quaternions as {order.value}, but here {readings.describe()}",
                "Give the order yourself: xyzw or wxyz.",
            )
    try:
        return RootPath(contents.position_m, quaternion_wxyz(contents.turn, order))
    except BadRequestError as error:
        raise location.error(str(error)) from None


def make_track(
    contents: Contents, rate: float, root: RootPath | None, location: FileLocation
) -> Track:
    """Make a track of the contents of a file; refuse one that could never be played."""
    joints_rad = contents.joints_rad
    if len(joints_rad) < 2:
        raise location.error(
            f"a motion needs 2 samples, here {'is 1' if len(joints_rad) else 'are none'}"
        )
    if len(set(contents.names)) < len(contents.names) or not all(contents.names):
        raise location.error("two of its joints have the same name, or one has none")
    worst = int(np.abs(joints_rad).argmax())
    sample, joint = divmod(worst, len(contents.names))
    if not abs(joints_rad[sample, joint]) <= MAX_ANGLE_RAD:
        raise location.error(
            f"{contents.names[joint]} is {joints_rad[sample, joint]:g} in frame {sample + 1}, and "
            f"no joint goes beyond {MAX_ANGLE_RAD:.2f} rad",
            "Check its units, and whether the format is right.",
        )
    track = Track(
        times_s=np.arange(len(joints_rad)) / rate,
        joints_rad=joints_rad,
        names=contents.names,
        # Both arms alone are those of a whole robot, not of a bench with two arms.
        variant=_WHOLE if contents.names == arm_joints() else variant_with(contents.names),
        source=location.source,
        root=root,
    )
    if build_of(track) is None:
        raise location.error(f"no robot that is known here has a joint {contents.names[0]!r:.60}")
    check_joints(track, location)
    return track


def _file_digest(location: FileLocation) -> str:
    return hashlib.sha256(read_bytes(location)).hexdigest()[:32]


def upper_body_of(track: Track, location: FileLocation) -> tuple[Track, tuple[str, ...]]:
    """Return a track without legs and waist, and the joints that were left out."""
    known = joints_of(track)
    kept = tuple(name for name in track.names if name in known and known[name].part in UPPER_BODY)
    if not kept:
        raise location.error("it has no joints of an upper body", "Import it whole.")
    left_out = tuple(name for name in track.names if name not in kept)
    joints_rad = track.joints_rad[:, track.columns_of(kept)]
    line = f"keep the upper body, {len(kept)} of {len(track.names)} joints"
    return track.edited(line, joints_rad=joints_rad, names=kept), left_out


def _make_note(message: str, remedy: str = "") -> Finding:
    return Finding(Severity.NOTE, message, remedy, kind=FindingKind.FILE)


def export_motion(
    track: Track,
    path: FilePath,
    format: str,  # noqa: A002 - what everybody calls it
    *,
    fps: int | None = None,
) -> str:
    """Write a motion of a G1 for another program; return what is lost, as text.

    Joints that the track does not have are at rest. Without a path of its root the robot stands,
    with its soles on the floor. `fps` are the frames a second; the default is what readers of the
    format expect. Raises `BadRequestError` for a format that is only read, and for other robots.
    """
    found = find_format(format)
    if not found.writer:
        able = ", ".join(each.name for each in EXCHANGE.values() if each.writer)
        raise BadRequestError(f"{found.name} is read here, not written", f"Written are: {able}.")
    found.write(_complete_track(track, found, fps), Path(path))
    return found.loss


def _complete_track(track: Track, found: ExchangeFormat, fps: int | None) -> Track:
    """Return a track with all joints of its build, even samples and a root."""
    from rote.motion.files.exchange.bodies import standing_root  # noqa: PLC0415 - tables first

    track.require_samples(2)
    family, build = family_of(track), build_of(track)
    if family is None or build is None or family.name != "g1":
        whose = "an unknown robot" if family is None else a_robot(family)
        raise BadRequestError(f"{found.name} is for motions of a G1, and this is one of {whose}")
    rate = fps or found.export_fps or max(round(track.rate_hz), 1)
    if not RATES_FPS[0] <= rate <= RATES_FPS[1] or rate != int(rate):
        raise BadRequestError(
            f"{rate:g} frames a second are out of range",
            f"{RATES_FPS[0]:g} to {RATES_FPS[1]:g} are, as a whole number.",
        )
    bare = build.bare
    if track.names != bare.names or track.variant != bare.name:
        kept = tuple(name for name in track.names if name in bare.names)
        if not kept:
            raise BadRequestError("this motion moves hands only, which such files do not have")
        body = track.edited(
            "body", joints_rad=track.joints_rad[:, track.columns_of(kept)], names=kept
        )
        track = to_build(body, bare.name, force=True)
    track = resample(track, float(rate))
    if track.root is not None:
        return track
    return track.edited("standing", root=standing_root(track, registry.build_named(bare.name)))
