"""Motions for training, as NPZ: mjlab's and BeyondMimic's, which look the same, and AMP's.

mjlab and BeyondMimic name no joints. mjlab orders them limb by limb, BeyondMimic as Isaac does,
level by level. The file also holds the positions of the links, so the order can be checked: they
fit the joints in one order only, unless the motion hardly moves.
"""

import io
import zipfile
from pathlib import Path

import numpy as np

from rote.errors import BadRequestError
from rote.model import registry
from rote.motion.body.root_path import RootPath
from rote.motion.files import disk
from rote.motion.files.exchange.bodies import angular_velocities, bodies, speeds
from rote.motion.files.exchange.contents import (
    MAX_BYTES,
    Contents,
    breadth_first,
    joints_in_order,
    read_bytes,
)
from rote.motion.files.metadata import FileLocation, check_length
from rote.motion.files.npz_file import FAULTS, NpzArrays
from rote.motion.track import Array, Track

TRACKING = ("joint_pos", "body_pos_w", "body_quat_w")
"""The arrays by which a file of mjlab or BeyondMimic is known."""
AMP = ("dof_positions", "dof_names")
"""The arrays by which a file of AMP is known."""

_FPS = "fps"
_AMP_ROOT = ("body_positions", "body_rotations")
_FIT_M, _UNFIT_M = 0.02, 0.04
"""Links off by less than the first distance fit; off by more than the second, they do not."""
_MAX_LINKS = 200  # each is compared with every other
_LOOKED_AT = 50  # samples, to tell the orders apart
_MAX_NAMES = 1 << 20


def array_names(data: bytes) -> tuple[str, ...]:
    """Return the names of the arrays in a file; none if it is no NPZ."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return tuple(name.removesuffix(".npy") for name in archive.namelist())
    except FAULTS:
        return ()


def read_mjlab(location: FileLocation) -> Contents:
    """Read a file whose joints are in the order of the motors, limb by limb."""
    return _read_tracking(location, "mjlab")


def read_beyondmimic(location: FileLocation) -> Contents:
    """Read a file whose joints are in Isaac's order, level by level."""
    return _read_tracking(location, "beyondmimic")


def order_misfits(location: FileLocation) -> dict[str, float]:
    """Return the error of the links in metres for each known order."""
    with _open_arrays(location) as arrays:
        _, joints, position, turn = _tracking_arrays(arrays, location)
        return _measure_misfits(arrays, joints, position, turn, location)


def fitting_order(misfits: dict[str, float]) -> str | None:
    """Return the only order that fits the links; None if both or none do."""
    near = [name for name, off_m in misfits.items() if off_m <= _FIT_M]
    far = [name for name, off_m in misfits.items() if off_m >= _UNFIT_M]
    return near[0] if len(near) == 1 and len(far) == len(misfits) - 1 else None


def describe_misfits(misfits: dict[str, float]) -> str:
    """Return the orders as text, each with the error of the links."""
    return "; ".join(
        f"read as {name} the links are {1000 * off_m:.0f} mm off" for name, off_m in misfits.items()
    )


def _read_tracking(location: FileLocation, name: str) -> Contents:
    with _open_arrays(location) as arrays:
        fps, joints, position, turn = _tracking_arrays(arrays, location)
        misfits = _measure_misfits(arrays, joints, position, turn, location)
    if misfits and misfits[name] > _UNFIT_M:
        raise location.error(
            f"it is not in the order of {name}: {describe_misfits(misfits)}",
            f"Import it as {fitting_order(misfits)}."
            if fitting_order(misfits)
            else "Look at where it came from.",
        )
    return Contents(
        names=_joint_orders(joints.shape[1])[name],
        joints_rad=joints,
        fps=fps,
        position_m=position,
        turn=turn,
    )


def _joint_orders(joints: int) -> dict[str, tuple[str, ...]]:
    """Return the joints in each order, for a file of so many."""
    names = joints_in_order(joints)
    if names is None:
        return {}
    return {"mjlab": names, "beyondmimic": tuple(n for n in breadth_first() if n in names)}


def _measure_misfits(
    arrays: NpzArrays, joints: Array, position: Array, turn: Array, location: FileLocation
) -> dict[str, float]:
    """Return the error of the links in each order: every computed link is compared with the nearest
    one in the file, so the order of the file's own links does not matter.
    """
    shown = np.linspace(0, len(joints) - 1, min(len(joints), _LOOKED_AT)).astype(int)
    links = arrays.floats("body_pos_w")[shown]
    found = {}
    for name, names in _joint_orders(joints.shape[1]).items():
        try:
            root = RootPath(position[shown], turn[shown])
        except BadRequestError as error:
            raise location.error(str(error)) from None
        track = Track(
            times_s=np.arange(len(shown), dtype=np.float64),
            joints_rad=np.clip(joints[shown], -7.0, 7.0),
            names=names,
        )
        build = registry.build_named(f"g1-{joints.shape[1]}")
        should = bodies(track, root, build).position_m.transpose(2, 1, 0)
        apart = np.linalg.norm(should[:, :, None, :] - links[:, None, :, :], axis=-1)
        found[name] = float(apart.min(axis=2).max())
    return found


def _tracking_arrays(
    arrays: NpzArrays, location: FileLocation
) -> tuple[float | None, Array, Array, Array]:
    """Return the rate, joints (n, joints), and the root's position and quaternion."""
    joints_shape = arrays.header("joint_pos").shape
    if len(joints_shape) != 2 or joints_in_order(joints_shape[1]) is None:
        raise location.error(f"its joint_pos are of shape {joints_shape}, not (n, 29), 27 or 23")
    check_length(joints_shape[0], joints_shape[1], location)
    for name, width in (("body_pos_w", 3), ("body_quat_w", 4)):
        shape = arrays.header(name).shape
        here = (*shape[:1], *shape[2:])
        if here != (joints_shape[0], width) or not 0 < shape[1] <= _MAX_LINKS:
            raise location.error(
                f"its {name} are of shape {shape}, not ({joints_shape[0]}, n, {width})"
            )
    joints = _read_finite(arrays, "joint_pos", location)
    position = _read_finite(arrays, "body_pos_w", location)[:, 0]
    return (
        _read_fps(arrays, location),
        joints,
        position,
        _read_finite(arrays, "body_quat_w", location)[:, 0],
    )


def read_amp(location: FileLocation) -> Contents:
    """Read a file that names its joints."""
    with _open_arrays(location) as arrays:
        names = _read_texts(arrays, "dof_names", location)
        shape = arrays.header("dof_positions").shape
        if shape != (*shape[:1], len(names)):
            raise location.error(f"{len(names)} names do not match dof_positions of shape {shape}")
        check_length(shape[0], len(names), location)
        position = turn = None
        if all(name in arrays for name in _AMP_ROOT):
            shapes = [arrays.header(name).shape for name in _AMP_ROOT]
            if any(len(each) != 3 or not each[1] or each[0] != shape[0] for each in shapes) or [
                each[2] for each in shapes
            ] != [3, 4]:
                raise location.error(f"its bodies are of shapes {shapes}")
            base = _base_index(arrays, shapes[0][1], location)
            position, turn = (_read_finite(arrays, name, location)[:, base] for name in _AMP_ROOT)
        return Contents(
            names=names,
            joints_rad=_read_finite(arrays, "dof_positions", location),
            fps=_read_fps(arrays, location),
            position_m=position,
            turn=turn,
        )


def _base_index(arrays: NpzArrays, links: int, location: FileLocation) -> int:
    """Return which of the links is the base: the pelvis, or the first."""
    if "body_names" not in arrays:
        return 0
    names = _read_texts(arrays, "body_names", location)
    if len(names) != links:
        raise location.error(f"{len(names)} body_names do not match {links} bodies")
    return names.index("pelvis") if "pelvis" in names else 0


class _open_arrays:  # noqa: N801 - used like a function
    """The arrays of a file; what is no NPZ is refused."""

    def __init__(self, location: FileLocation) -> None:
        self._location = location

    def __enter__(self) -> NpzArrays:
        data = read_bytes(self._location)
        try:
            self._archive = zipfile.ZipFile(io.BytesIO(data))
            numbers = (*TRACKING, AMP[0], *_AMP_ROOT, _FPS)
            arrays = NpzArrays(self._archive, self._location, numbers, (AMP[1], "body_names"))
        except FAULTS as error:
            raise self._as_bad_request(error) from None
        for name in (*TRACKING, AMP[0], *_AMP_ROOT):
            if name in arrays:
                header = arrays.header(name)
                size = 8 * int(np.prod(header.shape, dtype=np.float64))
                if size > 2 * MAX_BYTES:
                    raise self._location.error(f"its {name} unpack to {size >> 20} MB")
        return arrays

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._archive.close()
        if isinstance(error, FAULTS) and not isinstance(error, BadRequestError):
            raise self._as_bad_request(error) from None

    def _as_bad_request(self, error: BaseException) -> BadRequestError:
        if isinstance(error, BadRequestError):
            return error
        return self._location.error(f"it cannot be read as NPZ: {error}")


def _read_finite(arrays: NpzArrays, name: str, location: FileLocation) -> Array:
    values = arrays.floats(name)
    if not np.isfinite(values).all():
        sample = int(np.argmin(np.isfinite(values.reshape(len(values), -1)).all(axis=1)))
        raise location.error(f"its {name} are not numbers in sample {sample + 1}")
    return values


def _read_fps(arrays: NpzArrays, location: FileLocation) -> float | None:
    if _FPS not in arrays:
        return None
    values = arrays.floats(_FPS).ravel()
    if values.size != 1:
        raise location.error(f"its fps are {values.size} numbers instead of one")
    return float(values[0])


def _read_texts(arrays: NpzArrays, name: str, location: FileLocation) -> tuple[str, ...]:
    header = arrays.header(name)
    if len(header.shape) != 1 or header.dtype.kind not in "US":
        raise location.error(f"its {name} are not a list of words")
    values = arrays.unpack(name, _MAX_NAMES).tolist()
    try:
        return tuple(v.decode("utf-8") if isinstance(v, bytes) else v for v in values)
    except UnicodeDecodeError:
        raise location.error(f"its {name} cannot be read as text") from None


def write_mjlab(track: Track, path: Path) -> None:
    """Write a track with the joints of a build, evenly sampled, and a root."""
    columns = _training_columns(track)
    with disk.write_atomically(path) as file:
        np.savez(
            file,
            fps=np.array([round(track.rate_hz)]),
            joint_pos=columns["joints"],
            joint_vel=columns["joint_speeds"],
            body_pos_w=columns["places"],
            body_quat_w=columns["turns"],
            body_lin_vel_w=columns["speeds"],
            body_ang_vel_w=columns["turning"],
        )


def write_amp(track: Track, path: Path) -> None:
    """Write a track with the joints of a build, evenly sampled, and a root; with names."""
    columns = _training_columns(track)
    with disk.write_atomically(path) as file:
        np.savez(
            file,
            fps=np.array(round(track.rate_hz)),
            dof_names=np.array(track.names),
            body_names=np.array(_link_names(track)),
            dof_positions=columns["joints"],
            dof_velocities=columns["joint_speeds"],
            body_positions=columns["places"],
            body_rotations=columns["turns"],
            body_linear_velocities=columns["speeds"],
            body_angular_velocities=columns["turning"],
        )


def _link_names(track: Track) -> tuple[str, ...]:
    build = registry.build_named(track.variant)
    family = registry.family_of(build)
    assert family is not None
    return (family.body.base, *(joint.link for joint in family.joints))


def _training_columns(track: Track) -> dict[str, Array]:
    """Return the arrays that trainers expect, with 32 bits as usual; joints and positions have 64,
    so that a root far from the origin is restored to a micrometre."""
    assert track.root is not None
    step_s = 1.0 / track.rate_hz
    world = bodies(track, track.root, registry.build_named(track.variant))
    narrow = {
        "places": world.position_m,
        "turns": world.quaternion_wxyz,
        "speeds": speeds(world.position_m, step_s),
        "turning": angular_velocities(world.quaternion_wxyz, step_s),
        "joint_speeds": speeds(track.joints_rad.T, step_s),
    }
    found = {name: np.ascontiguousarray(v.astype(np.float32).T) for name, v in narrow.items()}
    found["places"] = found["places"].astype(np.float64)
    found["places"][:, 0] = track.root.position_m
    return {"joints": track.joints_rad, **found}
