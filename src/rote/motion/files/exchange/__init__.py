"""Exchange formats: imports motions that other programs wrote, and exports tracks for trainers.

Each format is a row of the table. A file is recognised if only one format fits; if two fit, it is
refused with both, and the user has to choose. Nothing in a file is ever executed. Rote's own
formats are in `rote.motion.files`.
"""

import codecs
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import cast

import numpy as np

from rote.errors import BadRequestError
from rote.findings import Finding, FindingKind, Severity
from rote.model import registry
from rote.motion.body.root_path import RootPath
from rote.motion.edit.operations import resample_at_exact_rate, to_build
from rote.motion.files import FORMATS, FilePath, disk
from rote.motion.files.exchange.contents import (
    Contents,
    QuaternionOrder,
    TiltsByOrder,
    list_arm_joints,
    normalise_quaternions,
    read_bytes,
    to_wxyz,
)
from rote.motion.files.metadata import MAX_ANGLE_RAD, FileLocation, check_joints, find_variant
from rote.motion.track import Origin, Track
from rote.motion.track_build import a_robot, build_of, family_of, joints_of

__all__ = [
    "ENDINGS", "EXCHANGE", "ExchangeFormat", "ImportedMotion", "QuaternionOrder", "export_motion",
    "import_motion", "is_own_file", "recognise_format",
]  # fmt: skip

_PICKLE_ENDINGS = (".pkl", ".pickle", ".joblib")
ENDINGS = (".csv", ".npz", *_PICKLE_ENDINGS, ".seq")
"""The endings that other programs use for motions; the content decides the format."""

RATES_FPS = (1.0, 2000.0)
UPPER_BODY = frozenset({"arm", "wrist", "finger", "head"})
"""The parts of a robot that `upper_body` keeps."""

_WHOLE_BODY = "g1-29"
_PACKAGE = "rote.motion.files.exchange"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeFormat:
    """A format in which other programs write motions of a G1."""

    name: str
    title: str
    reader: str
    """The function that reads a file, as `module:function`."""
    writer: str = ""
    """The function that writes a file, as `module:function`; empty if rote cannot write it."""
    usual_fps: float | None = None
    """Frames a second to assume if the file does not state them: those that its authors use."""
    order_varies: bool = False
    """Whether its quaternions may be in another order than the format specifies."""
    export_fps: int | None = None
    """Frames a second that its readers expect; None keeps those of the track."""
    loss: str = ""
    """What is lost in writing, as a sentence without its full stop."""

    def read(self, location: FileLocation) -> Contents:
        """Read a file; raises `BadRequestError` that names what cannot be used."""
        return cast("Callable[[FileLocation], Contents]", _import_function(self.reader))(location)

    def write(self, track: Track, path: Path) -> None:
        """Write a track that `_complete_track` made."""
        cast("Callable[[Track, Path], None]", _import_function(self.writer))(track, path)


def _import_function(reference: str) -> object:
    """Return the function that is named as `module:function`."""
    module, _, name = reference.partition(":")
    return getattr(import_module(f"{_PACKAGE}.{module}"), name)


_LOSS = "exact times, variant, source, marks and history are lost"

EXCHANGE: dict[str, ExchangeFormat] = {
    each.name: each
    for each in (
        ExchangeFormat(
            name="unitree-csv",
            title="Unitree's CSV, as in its LAFAN1 dataset",
            reader="csv_rows:read_unitree",
            writer="csv_rows:write_unitree",
            usual_fps=30.0,
            order_varies=True,
            export_fps=30,
            loss="exact times, the rate, joint names, variant, source, marks and history are lost",
        ),
        ExchangeFormat(
            name="kimodo",
            title="Kimodo's and ARDY's CSV",
            reader="csv_rows:read_kimodo",
            usual_fps=30.0,
            order_varies=True,
        ),
        ExchangeFormat(
            name="kimodo-npz",
            title="Kimodo's and ARDY's NPZ, with a rotation for each of 34 bones",
            reader="npz_bones:read_kimodo_npz",
            usual_fps=30.0,
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
            reader="pickle_motion:read_gmr",
            order_varies=True,
        ),
        ExchangeFormat(
            name="asap",
            title="ASAP's joblib pickle of one motion",
            reader="pickle_motion:read_asap",
            order_varies=True,
        ),
        ExchangeFormat(
            name="seq",
            title="Choreonoid's sequence, as in Unitree's arm example",
            reader="seq_file:read_seq",
            usual_fps=500.0,
        ),
    )
}
"""The exchange formats, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedMotion:
    """An imported motion, and notes about how it was read."""

    track: Track
    format: str
    """The name of the format as which it was read."""
    left_out: tuple[str, ...] = ()
    """The joints of the file that are not in the track."""
    notes: tuple[Finding, ...] = ()
    """The assumptions made when it was read."""


def import_motion(
    path: FilePath,
    format: str | None = None,  # noqa: A002 - the usual name
    *,
    fps: float | None = None,
    quat: str | None = None,
    upper_body: bool = False,
    licence: str = "",
    address: str = "",
) -> ImportedMotion:
    """Read a motion that another program wrote.

    `format` is a name in `EXCHANGE`; by default the only format that fits the file. `fps` are the
    frames a second of a file that does not state them. `quat` is the order of its quaternions,
    `xyzw` or `wxyz`, if that is in doubt. `upper_body` leaves out legs and waist. `licence` and
    `address` are stored with the motion: its terms of use, and where it is from. Raises
    `BadRequestError`, which states what cannot be read, or which formats fit. This function does
    not check whether a robot can play the motion.
    """
    location = FileLocation(str(path), "frame")
    file_format = find_format(format) if format is not None else recognise_format(path)
    contents = file_format.read(location)
    rate, is_assumed = _choose_frame_rate(contents, file_format, fps, location)
    root = _make_root(contents, file_format, quat, location)
    track = make_track(contents, rate, root, location)
    name, digest = Path(path).name, hash_content(read_bytes(location))
    track = track.edited(
        f"import {name} as {file_format.name} at {rate:g} Hz",
        origin=Origin(file_format.name, name, licence.strip(), address.strip(), digest),
    )
    left_out: tuple[str, ...] = ()
    if upper_body:
        track, left_out = keep_upper_body(track, location)
    notes = [_make_note(text) for text in contents.notes]
    if format is None:
        notes.append(_make_note(f"it was recognised as {file_format.name}: {file_format.title}"))
    if is_assumed:
        notes.append(_make_rate_note(rate, file_format))
    notes += _note_normalised_quaternions(contents)
    return ImportedMotion(
        track=track, format=file_format.name, left_out=left_out, notes=tuple(notes)
    )


def _make_rate_note(rate: float, file_format: ExchangeFormat) -> Finding:
    return _make_note(
        f"the file does not state its rate; it was read at {rate:g} frames a second, "
        f"as usual for {file_format.name}",
        "If this is wrong, import it again with its rate in frames a second.",
    )


def _note_normalised_quaternions(contents: Contents) -> Iterator[Finding]:
    if contents.quaternions is not None:
        _, length_error = normalise_quaternions(contents.quaternions)
        if length_error:
            yield _make_note(
                f"quaternions of the root were up to {length_error:.2f} from length 1; they were "
                "normalised"
            )


def is_own_file(path: Path) -> bool:
    """Return whether a file has one of rote's own formats.

    The ending decides; a CSV or NPZ file that exists is also inspected, because other programs use
    these endings too.
    """
    ending = path.suffix.lower()
    if ending not in FORMATS:
        return False
    if not path.exists():
        return True
    if ending == ".csv":
        with disk.open_checked(path) as opened:
            beginning = opened.read(16)
        # Our header begins with the column t. If its separator is wrong, our reader explains that.
        return beginning.lstrip(codecs.BOM_UTF8).startswith(b"t")
    if ending == ".npz":
        from rote.motion.files.exchange.npz_motion import list_array_names  # noqa: PLC0415 - on demand

        with disk.open_checked(path) as opened:
            names = list_array_names(opened.read())
        # A file that is no NPZ, or an empty one, counts as ours: our reader explains what is wrong.
        return not names or "times_s" in names or "joints_rad" in names
    return True


def find_format(name: str) -> ExchangeFormat:
    """Return the format of that name; raises `BadRequestError` that lists all."""
    if name not in EXCHANGE:
        raise BadRequestError(f"there is no format {name!r}", f"There are: {', '.join(EXCHANGE)}.")
    return EXCHANGE[name]


def recognise_format(path: FilePath) -> ExchangeFormat:
    """Return the only format that fits a file; raises `BadRequestError` with all candidates."""
    location = FileLocation(str(path), "frame")
    data = read_bytes(location)
    if data[:2] == b"PK":  # a ZIP archive
        return _recognise_npz(data, location)
    has_protocol = data[:1] == b"\x80"  # begins a pickle of protocol 2 or later
    if has_protocol or Path(path).suffix.lower() in _PICKLE_ENDINGS:
        from rote.motion.files.exchange import pickle_motion  # noqa: PLC0415 - on demand

        return EXCHANGE[pickle_motion.recognise_pickle(location)]
    if b"\0" not in data[:4096]:  # text
        from rote.motion.files.exchange import csv_rows, seq_file  # noqa: PLC0415 - on demand

        line = csv_rows.read_first_line(location, data)
        if csv_rows.is_bones_seed_header(line):
            return EXCHANGE["bones-seed"]
        if (csv_rows.count_numbers(line) or 0) > 1:
            return _recognise_rows(location)
        if seq_file.may_be_first_line(line) and b"components" in data[:100_000]:
            return EXCHANGE["seq"]
    raise location.error("its format is not known", _CHOOSE_FORMAT)


_CHOOSE_FORMAT = f"If you know its format, name it: {', '.join(EXCHANGE)}."


def _recognise_npz(data: bytes, location: FileLocation) -> ExchangeFormat:
    from rote.motion.files.exchange import npz_bones, npz_motion  # noqa: PLC0415 - on demand

    names = npz_motion.list_array_names(data)
    if set(npz_motion.AMP_ARRAYS) <= set(names):
        return EXCHANGE["amp"]
    if npz_bones.POSITIONS in names and not set(npz_bones.ROTATIONS).isdisjoint(names):
        return EXCHANGE["kimodo-npz"]
    if set(npz_motion.TRACKING_ARRAYS) <= set(names):
        misfits = npz_motion.read_order_misfits(location)
        order = npz_motion.choose_fitting_order(misfits)
        if order is None:
            raise location.error(
                f"it may come from mjlab or BeyondMimic, and the order of its joints is in doubt: "
                f"{npz_motion.describe_misfits(misfits)}",
                "Name the format: mjlab or beyondmimic.",
            )
        return EXCHANGE[order]
    array_list = ", ".join(names[:12]) or "nothing"
    raise location.error(f"its format is not known; it holds {array_list}", _CHOOSE_FORMAT)


def _recognise_rows(location: FileLocation) -> ExchangeFormat:
    """Return which of two formats with equal rows fits: they differ in the quaternions' order."""
    contents = EXCHANGE["unitree-csv"].read(location)
    assert contents.quaternions is not None
    readings = TiltsByOrder(contents.quaternions, location)
    if readings.certain_order is None:
        raise location.error(
            f"it may be Unitree's CSV or Kimodo's, which look the same: {readings.describe()}",
            "Name the format: unitree-csv (xyzw) or kimodo (wxyz).",
        )
    return EXCHANGE["unitree-csv" if readings.certain_order is QuaternionOrder.XYZW else "kimodo"]


def _choose_frame_rate(
    contents: Contents, file_format: ExchangeFormat, fps: float | None, location: FileLocation
) -> tuple[float, bool]:
    """Return the frames a second, and whether they are only the usual ones of the format."""
    if contents.fps is not None and fps is not None and abs(fps - contents.fps) > 1e-6:
        raise location.error(
            f"it states {contents.fps:g} frames a second, not {fps:g}",
            "Leave the rate out; change the speed after the import if needed.",
        )
    stated = contents.fps if contents.fps is not None else fps
    rate = file_format.usual_fps if stated is None else stated
    if rate is None:
        raise location.error("it does not state its rate", "Give its rate in frames a second.")
    if not RATES_FPS[0] <= rate <= RATES_FPS[1]:
        raise location.error(
            f"{rate:g} frames a second is out of range",
            f"Choose {RATES_FPS[0]:g} to {RATES_FPS[1]:g}.",
        )
    return rate, stated is None


def _make_root(
    contents: Contents,
    file_format: ExchangeFormat,
    quat: str | None,
    location: FileLocation,
) -> RootPath | None:
    """Return the path of the base; None if the file has none.

    `quat` overrides the quaternions' order. Without it, the order that the format states is refused
    if the robot would be upside down.
    """
    if quat is not None and quat not in set(QuaternionOrder):
        raise BadRequestError(f"the quaternion order {quat!r} is not known", "Use xyzw or wxyz.")
    if quat is not None and not file_format.order_varies:
        raise BadRequestError(
            f"{file_format.name} files have only one quaternion order", "Leave the order out."
        )
    if contents.quaternions is None or contents.position_m is None:
        return None
    order = contents.order if quat is None else QuaternionOrder(quat)
    if file_format.order_varies and quat is None:
        readings = TiltsByOrder(contents.quaternions, location)
        if readings.certain_order not in {None, order}:
            raise location.error(
                f"{file_format.name} has quaternions as {order.value}, but here "
                f"{readings.describe()}",
                "Give the order yourself: xyzw or wxyz.",
            )
    quaternions, _ = normalise_quaternions(contents.quaternions)
    try:
        return RootPath(contents.position_m, to_wxyz(quaternions, order))
    except BadRequestError as error:
        raise location.error(str(error)) from None


def make_track(
    contents: Contents, rate: float, root: RootPath | None, location: FileLocation
) -> Track:
    """Return the contents of a file as a track; refuse what could never be played.

    `rate` are the frames a second.
    """
    joints_rad = contents.joints_rad
    if len(joints_rad) < 2:
        raise location.error(
            f"a motion needs 2 samples, but this one has {'1' if len(joints_rad) else 'none'}"
        )
    if len(set(contents.names)) < len(contents.names) or not all(contents.names):
        raise location.error("two of its joints have the same name, or one has none")
    sample, joint = divmod(int(np.abs(joints_rad).argmax()), len(contents.names))
    largest = joints_rad[sample, joint]
    if not abs(largest) <= MAX_ANGLE_RAD:
        raise location.error(
            f"{contents.names[joint]} is {largest:g} in frame {sample + 1}, and "
            f"no joint goes beyond {MAX_ANGLE_RAD:.2f} rad",
            "Check its units, and whether the format is right.",
        )
    track = Track(
        times_s=np.arange(len(joints_rad)) / rate,
        joints_rad=joints_rad,
        names=contents.names,
        # Both arms alone count as part of a whole robot, not as `g1-arms`, a bench with two arms.
        variant=_WHOLE_BODY
        if contents.names == list_arm_joints()
        else find_variant(contents.names),
        source=location.source,
        root=root,
    )
    if build_of(track) is None:
        raise location.error(f"no known robot has a joint {contents.names[0]!r:.60}")
    check_joints(track, location)
    return track


def hash_content(data: bytes) -> str:
    """Return a digest by which imported motions are recognised; half of a SHA-256 is enough."""
    return hashlib.sha256(data).hexdigest()[:32]


def keep_upper_body(track: Track, location: FileLocation) -> tuple[Track, tuple[str, ...]]:
    """Return a track without legs and waist, and the names of the joints that were left out."""
    known = joints_of(track)
    kept = tuple(name for name in track.names if name in known and known[name].part in UPPER_BODY)
    if not kept:
        raise location.error("it has no joints of an upper body", "Import all its joints.")
    left_out = tuple(name for name in track.names if name not in kept)
    joints_rad = track.joints_rad[:, track.columns_of(kept)]
    line = f"keep the upper body, {len(kept)} of {len(track.names)} joints"
    return track.edited(line, joints_rad=joints_rad, names=kept), left_out


def _make_note(message: str, remedy: str = "") -> Finding:
    return Finding(Severity.NOTE, message, remedy, kind=FindingKind.FILE)


def export_motion(
    track: Track,
    path: FilePath,
    format: str,  # noqa: A002 - the usual name
    *,
    fps: int | None = None,
) -> str:
    """Write a motion of a G1 for another program; return what is lost, as text.

    Joints that the track does not have are at rest. If the track has no path of its base, the robot
    stands with its soles on the floor. `fps` are the frames a second; the default is what readers
    of the format expect. Raises `BadRequestError` for a format that rote cannot write, and for
    other robots.
    """
    file_format = find_format(format)
    if not file_format.writer:
        writable = ", ".join(each.name for each in EXCHANGE.values() if each.writer)
        raise BadRequestError(
            f"{file_format.name} can be read, not written", f"Use one of: {writable}."
        )
    file_format.write(_complete_track(track, file_format, fps), Path(path))
    return file_format.loss


def _complete_track(track: Track, file_format: ExchangeFormat, fps: int | None) -> Track:
    """Return a track with all joints of its build, evenly spaced samples and a path of its base."""
    from rote.motion.files.exchange.bodies import make_standing_root  # noqa: PLC0415 - on demand

    track.require_samples(2)
    family, build = family_of(track), build_of(track)
    if family is None or build is None or family.name != "g1":
        robot = "an unknown robot" if family is None else a_robot(family)
        raise BadRequestError(
            f"{file_format.name} is for motions of a G1, but this is a motion of {robot}"
        )
    rate = fps or file_format.export_fps or max(round(track.rate_hz), 1)
    if not RATES_FPS[0] <= rate <= RATES_FPS[1] or rate != int(rate):
        raise BadRequestError(
            f"{rate:g} frames a second is out of range",
            f"Choose a whole number from {RATES_FPS[0]:g} to {RATES_FPS[1]:g}.",
        )
    bare = build.bare
    if track.names != bare.names or track.variant != bare.name:
        kept = tuple(name for name in track.names if name in bare.names)
        if not kept:
            raise BadRequestError("this motion moves only hands, which these files cannot hold")
        body = track.edited(
            "body", joints_rad=track.joints_rad[:, track.columns_of(kept)], names=kept
        )
        track = to_build(body, bare.name, force=True)
    track = resample_at_exact_rate(track, float(rate))
    if track.root is not None:
        return track
    return track.edited("standing", root=make_standing_root(track, registry.build_named(bare.name)))
