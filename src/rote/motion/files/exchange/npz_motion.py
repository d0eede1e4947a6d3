"""Motions for training, as NPZ: mjlab's and BeyondMimic's, which look the same, and AMP's.

mjlab and BeyondMimic name no joints. mjlab orders them limb by limb, BeyondMimic as Isaac does,
level by level. The file also holds the positions of the links, so the order can be checked: they
fit the joints in one order only, unless the motion hardly moves.
"""

import io
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from rote.errors import BadRequestError
from rote.model import registry
from rote.motion.body.root_path import RootPath
from rote.motion.files import disk
from rote.motion.files.exchange.bodies import (
    compute_angular_velocities,
    compute_link_poses,
    compute_speeds,
)
from rote.motion.files.exchange.contents import (
    MAX_BYTES,
    Contents,
    list_joints_breadth_first,
    list_joints_in_motor_order,
    read_bytes,
)
from rote.motion.files.metadata import FileLocation, check_length
from rote.motion.files.npz_file import FAULTS, NpzArrays
from rote.motion.track import Array, Track

TRACKING_ARRAYS = ("joint_pos", "body_pos_w", "body_quat_w")
"""The arrays by which a file of mjlab or BeyondMimic is recognised."""
_AMP_ANGLES, _AMP_NAMES = AMP_ARRAYS = ("dof_positions", "dof_names")
"""The arrays by which a file of AMP is recognised."""

_FPS = "fps"
_AMP_BODIES = ("body_positions", "body_rotations")
_FIT_M, _UNFIT_M = 0.02, 0.04
"""Links off by less than the first distance fit; off by more than the second, they do not."""
_MAX_LINKS = 200  # each is compared with every link of a G1
_COMPARED_SAMPLES = 50  # samples that are compared to find the order
_MAX_NAMES_BYTES = 1 << 20
_MAX_COMPARED_RAD = 7.0  # larger angles are invalid, and are refused later


def list_array_names(data: bytes) -> tuple[str, ...]:
    """Return the names of the arrays in a file; none if it is not an NPZ file."""
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


def read_order_misfits(location: FileLocation) -> dict[str, float]:
    """Return how far the links of a file are off, in m, for each order of the joints."""
    with open_arrays(location, TRACKING_ARRAYS) as arrays:
        _, joints, position, quaternions = _read_tracking_arrays(arrays, location)
        return _measure_misfits(arrays, joints, position, quaternions, location)


def choose_fitting_order(misfits: dict[str, float]) -> str | None:
    """Return the only order that fits the links; None if the others do not clearly misfit."""
    fitting = [name for name, error_m in misfits.items() if error_m <= _FIT_M]
    unfitting = [name for name, error_m in misfits.items() if error_m >= _UNFIT_M]
    is_certain = len(fitting) == 1 and len(unfitting) == len(misfits) - 1
    return fitting[0] if is_certain else None


def describe_misfits(misfits: dict[str, float]) -> str:
    """Return a text that states for each order how far the links are off."""
    return "; ".join(
        f"read as {name} the links are {1000 * error_m:.0f} mm off"
        for name, error_m in misfits.items()
    )


def _read_tracking(location: FileLocation, name: str) -> Contents:
    """Read a file of mjlab or BeyondMimic; refuse one whose joints are not in the order `name`."""
    with open_arrays(location, TRACKING_ARRAYS) as arrays:
        fps, joints, position, quaternions = _read_tracking_arrays(arrays, location)
        misfits = _measure_misfits(arrays, joints, position, quaternions, location)
    if misfits and misfits[name] > _UNFIT_M:
        fitting = choose_fitting_order(misfits)
        raise location.error(
            f"it is not in the order of {name}: {describe_misfits(misfits)}",
            f"Import it as {fitting}." if fitting else "Check which program wrote it.",
        )
    return Contents(
        names=_list_joint_orders(joints.shape[1])[name],
        joints_rad=joints,
        fps=fps,
        position_m=position,
        quaternions=quaternions,
    )


def _list_joint_orders(joint_count: int) -> dict[str, tuple[str, ...]]:
    """Return the joint names in each order; no order if no G1 has this number of joints."""
    names = list_joints_in_motor_order(joint_count)
    if names is None:
        return {}
    return {
        "mjlab": names,
        "beyondmimic": tuple(n for n in list_joints_breadth_first() if n in names),
    }


def _measure_misfits(
    arrays: NpzArrays, joints: Array, position: Array, quaternions: Array, location: FileLocation
) -> dict[str, float]:
    """Return for each order of the joints how far the links are off, in m.

    The links are computed from the joints. Each is compared with the nearest link in the file,
    because the order of the file's links is not known.
    """
    samples = np.linspace(0, len(joints) - 1, min(len(joints), _COMPARED_SAMPLES)).astype(int)
    links = arrays.floats("body_pos_w")[samples]
    misfits = {}
    for name, names in _list_joint_orders(joints.shape[1]).items():
        try:
            root = RootPath(position[samples], quaternions[samples])
        except BadRequestError as error:
            raise location.error(str(error)) from None
        track = Track(
            times_s=np.arange(len(samples), dtype=np.float64),
            joints_rad=np.clip(joints[samples], -_MAX_COMPARED_RAD, _MAX_COMPARED_RAD),
            names=names,
        )
        build = registry.build_named(f"g1-{joints.shape[1]}")
        expected_m = compute_link_poses(track, root, build).position_m.transpose(2, 1, 0)
        distances_m = np.linalg.norm(expected_m[:, :, None, :] - links[:, None, :, :], axis=-1)
        misfits[name] = float(distances_m.min(axis=2).max())
    return misfits


def _read_tracking_arrays(
    arrays: NpzArrays, location: FileLocation
) -> tuple[float | None, Array, Array, Array]:
    """Return frames a second, joints (n, joints), and position and quaternion of the base."""
    joints_shape = arrays.header("joint_pos").shape
    if len(joints_shape) != 2 or list_joints_in_motor_order(joints_shape[1]) is None:
        raise location.error(f"its joint_pos are of shape {joints_shape}, not (n, 29), 27 or 23")
    check_length(joints_shape[0], joints_shape[1], location)
    for name, width in (("body_pos_w", 3), ("body_quat_w", 4)):
        shape = arrays.header(name).shape
        shape_without_links = (*shape[:1], *shape[2:])
        if shape_without_links != (joints_shape[0], width) or not 0 < shape[1] <= _MAX_LINKS:
            raise location.error(
                f"its {name} are of shape {shape}, not ({joints_shape[0]}, n, {width})"
            )
    joints = read_finite(arrays, "joint_pos", location)
    position = read_finite(arrays, "body_pos_w", location)[:, 0]
    return (
        read_fps(arrays, location),
        joints,
        position,
        read_finite(arrays, "body_quat_w", location)[:, 0],
    )


def read_amp(location: FileLocation) -> Contents:
    """Read a file of AMP, which names its joints.

    If it also has the positions and rotations of bodies, they give the pose of the base.
    """
    with open_arrays(location, (_AMP_ANGLES, *_AMP_BODIES)) as arrays:
        names = _read_texts(arrays, _AMP_NAMES, location)
        angles_shape = arrays.header(_AMP_ANGLES).shape
        if len(angles_shape) != 2 or angles_shape[1] != len(names):
            raise location.error(
                f"{len(names)} names do not match dof_positions of shape {angles_shape}"
            )
        samples = angles_shape[0]
        check_length(samples, len(names), location)
        position = quaternions = None
        if all(name in arrays for name in _AMP_BODIES):
            shapes = [arrays.header(name).shape for name in _AMP_BODIES]
            fits_samples = all(
                len(shape) == 3 and shape[0] == samples and shape[1] for shape in shapes
            )
            if not fits_samples or [shape[2] for shape in shapes] != [3, 4]:  # xyz and quaternions
                raise location.error(
                    f"its bodies are of shapes {shapes}, "
                    f"not ({samples}, n, 3) and ({samples}, n, 4)"
                )
            base = _find_base_index(arrays, shapes[0][1], location)
            position, quaternions = (
                read_finite(arrays, name, location)[:, base] for name in _AMP_BODIES
            )
        return Contents(
            names=names,
            joints_rad=read_finite(arrays, _AMP_ANGLES, location),
            fps=read_fps(arrays, location),
            position_m=position,
            quaternions=quaternions,
        )


def _find_base_index(arrays: NpzArrays, links: int, location: FileLocation) -> int:
    """Return the index of the link that is the base: the pelvis, or 0 if none has that name."""
    if "body_names" not in arrays:
        return 0
    names = _read_texts(arrays, "body_names", location)
    if len(names) != links:
        raise location.error(f"its {len(names)} body_names do not match its {links} bodies")
    return names.index("pelvis") if "pelvis" in names else 0


class open_arrays:  # noqa: N801 - used like a function
    """A context manager that yields the arrays of a file, of which those in `numbers` may be read.

    It refuses a file that is not NPZ, or that would fill the memory. In the block, errors of numpy
    and the ZIP reader become `BadRequestError`.
    """

    def __init__(self, location: FileLocation, numbers: Sequence[str]) -> None:
        self._location = location
        self._numbers = numbers

    def __enter__(self) -> NpzArrays:
        data = read_bytes(self._location)
        try:
            self._archive = zipfile.ZipFile(io.BytesIO(data))
            numbers = (*self._numbers, _FPS)
            arrays = NpzArrays(self._archive, self._location, numbers, (_AMP_NAMES, "body_names"))
        except FAULTS as error:
            raise self._as_bad_request(error) from None
        for name in self._numbers:
            if name in arrays:
                header = arrays.header(name)
                size = 8 * int(np.prod(header.shape, dtype=np.float64))  # as 64-bit floats
                if size > 2 * MAX_BYTES:
                    raise self._location.error(f"its {name} unpack to {size >> 20} MB")
        return arrays

    def __exit__(self, error_type: object, error: BaseException | None, trace: object) -> None:
        self._archive.close()
        if isinstance(error, FAULTS) and not isinstance(error, BadRequestError):
            raise self._as_bad_request(error) from None

    def _as_bad_request(self, error: BaseException) -> BadRequestError:
        if isinstance(error, BadRequestError):
            return error
        return self._location.error(f"it cannot be read as NPZ: {error}")


def read_finite(arrays: NpzArrays, name: str, location: FileLocation) -> Array:
    """Return an array of numbers; refuse one that holds NaN or infinity."""
    values = arrays.floats(name)
    if not np.isfinite(values).all():
        sample = int(np.argmin(np.isfinite(values.reshape(len(values), -1)).all(axis=1)))
        raise location.error(f"its {name} are not numbers in sample {sample + 1}")
    return values


def read_fps(arrays: NpzArrays, location: FileLocation) -> float | None:
    """Return the frames a second; None if the file does not state them."""
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
    values = arrays.unpack(name, _MAX_NAMES_BYTES).tolist()
    try:
        return tuple(v.decode("utf-8") if isinstance(v, bytes) else v for v in values)
    except UnicodeDecodeError:
        raise location.error(f"its {name} cannot be read as text") from None


def write_mjlab(track: Track, path: Path) -> None:
    """Write a track with all joints, evenly spaced samples and a path of its base, for mjlab."""
    columns = _make_training_columns(track)
    with disk.write_atomically(path) as file:
        np.savez(
            file,
            fps=np.array([round(track.rate_hz)]),
            joint_pos=columns["joints"],
            joint_vel=columns["joint_speeds"],
            body_pos_w=columns["positions"],
            body_quat_w=columns["quaternions"],
            body_lin_vel_w=columns["speeds"],
            body_ang_vel_w=columns["angular_speeds"],
        )


def write_amp(track: Track, path: Path) -> None:
    """Write a track with all joints, evenly spaced samples and a path of its base, for AMP."""
    columns = _make_training_columns(track)
    with disk.write_atomically(path) as file:
        np.savez(
            file,
            fps=np.array(round(track.rate_hz)),
            dof_names=np.array(track.names),
            body_names=np.array(_list_link_names(track)),
            dof_positions=columns["joints"],
            dof_velocities=columns["joint_speeds"],
            body_positions=columns["positions"],
            body_rotations=columns["quaternions"],
            body_linear_velocities=columns["speeds"],
            body_angular_velocities=columns["angular_speeds"],
        )


def _list_link_names(track: Track) -> tuple[str, ...]:
    build = registry.build_named(track.variant)
    family = registry.family_of(build)
    assert family is not None
    return (family.body.base, *(joint.link for joint in family.joints))


def _make_training_columns(track: Track) -> dict[str, Array]:
    """Return the arrays that training programs expect, with samples as the first axis.

    They have 32 bits, as usual; joints and positions have 64 bits, so that the position of a base
    far from the origin is restored to a micrometre.
    """
    assert track.root is not None
    step_s = 1.0 / track.rate_hz
    world = compute_link_poses(track, track.root, registry.build_named(track.variant))
    wide_columns = {
        "positions": world.position_m,
        "quaternions": world.quaternion_wxyz,
        "speeds": compute_speeds(world.position_m, step_s),
        "angular_speeds": compute_angular_velocities(world.quaternion_wxyz, step_s),
        "joint_speeds": compute_speeds(track.joints_rad.T, step_s),
    }
    narrow_columns = {
        name: np.ascontiguousarray(column.astype(np.float32).T)
        for name, column in wide_columns.items()
    }
    narrow_columns["positions"] = narrow_columns["positions"].astype(np.float64)
    narrow_columns["positions"][:, 0] = track.root.position_m
    return {"joints": track.joints_rad, **narrow_columns}
