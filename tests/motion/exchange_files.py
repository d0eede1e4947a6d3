"""Files as other programs write them, made by the tests: no motion of a data set is kept here."""

import csv
import io
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from rote.model.g1 import G1_29
from rote.motion.body.kinematics import rotation
from rote.motion.body.root_path import RootPath
from rote.motion.files.exchange.bodies import (
    compute_angular_velocities,
    compute_link_poses,
    compute_speeds,
)
from rote.motion.files.exchange.contents import list_joints_breadth_first
from rote.motion.track import Track


def whole_body(samples: int = 90, *, facing_rad: float = 2.0, fps: float = 30.0) -> Track:
    """Return a G1 that walks a curve and moves every joint within its range."""
    times_s = np.arange(samples) / fps
    lower = np.array([joint.lower_rad for joint in G1_29.joints])
    upper = np.array([joint.upper_rad for joint in G1_29.joints])
    swing = np.sin(0.9 * times_s[:, None] + np.arange(len(G1_29.names)))
    yaw = facing_rad + 0.3 * np.sin(times_s)
    zero = np.zeros(samples)
    return Track(
        times_s=times_s,
        joints_rad=(lower + upper) / 2 + 0.3 * (upper - lower) / 2 * swing,
        names=G1_29.names,
        root=RootPath(
            np.column_stack([0.4 * times_s, 0.1 * times_s, zero + 0.79]),
            np.column_stack([np.cos(yaw / 2), zero, zero, np.sin(yaw / 2)]),
        ),
    )


def _rows(track: Track, order: list[int]) -> bytes:
    assert track.root is not None
    table = np.column_stack(
        [track.root.position_m, track.root.quaternion_wxyz[:, order], track.joints_rad]
    )
    text = io.StringIO()
    np.savetxt(text, table, delimiter=",", fmt="%.17g")
    return text.getvalue().encode()


def unitree_csv(track: Track) -> bytes:
    """Return the file as numpy writes it for Unitree's readers: xyzw."""
    return _rows(track, [1, 2, 3, 0])


def kimodo(track: Track) -> bytes:
    """Return the same with wxyz."""
    return _rows(track, [0, 1, 2, 3])


def bones_seed(track: Track) -> bytes:
    """Return centimetres and degrees with a header, by the csv module; the base only turns."""
    assert track.root is not None
    out = io.StringIO()
    writer = csv.writer(out)
    places = [f"root_translate{axis}" for axis in "XYZ"]
    turns = [f"root_rotate{axis}" for axis in "XYZ"]
    writer.writerow(["Frame", *places, *turns, *(f"{name}_dof" for name in track.names)])
    for number, (place, yaw, row) in enumerate(
        zip(track.root.position_m, track.root.yaw_rad, track.joints_rad, strict=True)
    ):
        angles = [0.0, 0.0, float(np.degrees(yaw))]
        writer.writerow([number, *(100 * place), *angles, *np.degrees(row)])
    return out.getvalue().encode()


def tracking_npz(track: Track, names: tuple[str, ...] = G1_29.names) -> bytes:
    """Return an NPZ as mjlab and BeyondMimic have it, the joints in the order of `names`."""
    assert track.root is not None
    world = compute_link_poses(track, track.root, G1_29)
    step_s = 1.0 / track.rate_hz
    joints = track.joints_rad[:, track.columns_of(names)]
    return _npz(
        fps=np.array([track.rate_hz]),
        joint_pos=joints,
        joint_vel=compute_speeds(joints.T, step_s).T,
        body_pos_w=world.position_m.T,
        body_quat_w=world.quaternion_wxyz.T,
        body_lin_vel_w=compute_speeds(world.position_m, step_s).T,
        body_ang_vel_w=compute_angular_velocities(world.quaternion_wxyz, step_s).T,
    )


def beyondmimic(track: Track) -> bytes:
    """Return the same in Isaac's order."""
    return tracking_npz(track, list_joints_breadth_first())


def amp(track: Track) -> bytes:
    """Return an NPZ with names, its links not beginning with the base."""
    assert track.root is not None
    world = compute_link_poses(track, track.root, G1_29)
    order = [*range(1, len(world.names)), 0]
    return _npz(
        fps=np.int64(round(track.rate_hz)),
        dof_names=np.array(track.names),
        body_names=np.array(world.names)[order],
        dof_positions=track.joints_rad,
        body_positions=world.position_m.T[:, order],
        body_rotations=world.quaternion_wxyz.T[:, order],
    )


def _npz(**arrays: Any) -> bytes:
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def gmr(track: Track, protocol: int = 4) -> bytes:
    """Return the dictionary that GMR pickles."""
    assert track.root is not None
    motion = {
        "fps": round(track.rate_hz),
        "root_pos": np.array(track.root.position_m),
        "root_rot": np.array(track.root.quaternion_wxyz[:, [1, 2, 3, 0]]),
        "dof_pos": np.array(track.joints_rad),
        "local_body_pos": None,
        "link_body_list": None,
    }
    return pickle.dumps(motion, protocol=protocol)


class _JoblibPickler(pickle._Pickler):
    """Writes arrays as joblib does: a description, and the bytes right behind it in the file."""

    def __init__(self, file: io.BytesIO, protocol: int, alignment: int | None) -> None:
        super().__init__(file, protocol)
        self._file, self._alignment = file, alignment

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        if type(obj) is not np.ndarray:
            super().save(obj, save_persistent_id)  # type: ignore[misc]
            return
        order = "F" if obj.flags.f_contiguous and not obj.flags.c_contiguous else "C"
        state = {
            "subclass": np.ndarray,
            "shape": obj.shape,
            "order": order,
            "dtype": obj.dtype,
            "allow_mmap": True,
        }
        if self._alignment is not None:
            state["numpy_array_alignment_bytes"] = self._alignment
        self.write(b"cjoblib.numpy_pickle\nNumpyArrayWrapper\n)\x81")  # type: ignore[attr-defined]
        super().save(state)  # type: ignore[misc]
        self.write(b"b")  # type: ignore[attr-defined]
        if self.proto >= 4:  # type: ignore[attr-defined]
            self.framer.commit_frame(force=True)  # type: ignore[attr-defined]
        if self._alignment is not None:
            fill = self._alignment - (self._file.tell() + 1) % self._alignment
            self._file.write(bytes([fill]) + b"\xff" * fill)
        self._file.write(obj.tobytes(order))  # type: ignore[arg-type]


def joblib_bytes(value: Any, protocol: int = 4, alignment: int | None = 16) -> bytes:
    """Return the file that joblib writes, not compressed; before 1.1 it aligned nothing."""
    out = io.BytesIO()
    _JoblibPickler(out, protocol, alignment).dump(value)
    return out.getvalue()


def asap_motion(track: Track) -> dict[str, Any]:
    """Return the dictionary of a motion in ASAP's files."""
    assert track.root is not None
    axes = np.array([G1_29.joints[G1_29.names.index(name)].axis for name in track.names])
    pose_aa = np.zeros((len(track), len(track.names) + 4, 3), dtype=np.float32)
    pose_aa[:, 1 : len(track.names) + 1] = track.joints_rad[:, :, None] * axes
    return {
        "root_trans_offset": np.array(track.root.position_m),
        "pose_aa": pose_aa,
        "dof": np.asfortranarray(track.joints_rad),
        "root_rot": np.array(track.root.quaternion_wxyz[:, [1, 2, 3, 0]]),
        "smpl_joints": np.zeros((len(track), 24, 3), dtype=np.float32),
        "fps": round(track.rate_hz),
    }


def asap(track: Track) -> bytes:
    """Return a file of one motion as ASAP's scripts write it."""
    return joblib_bytes({"0-dance": asap_motion(track)})


def kimodo_bones(track: Track, *, mounted_first: bool = True) -> dict[str, Any]:
    """Return the arrays of Kimodo, y up and z forward: rotations of 34 bones, and their positions.

    A generated motion has `mounted_first`, one that Kimodo made of angles has not.
    """
    assert track.root is not None
    world = compute_link_poses(track, track.root, G1_29)
    to_file = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    links = [*range(7), 6, *range(7, 13), 12, *range(13, 23), 22, *range(23, 30), 29]
    parents = [-1, *range(7), 0, *range(8, 14), 0, *range(15, 25), 17, *range(26, 33)]
    w, x, y, z = world.quaternion_wxyz[:, links]
    turns = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    ).transpose(3, 2, 0, 1)
    turns = to_file @ turns @ to_file.T
    local = turns.copy()
    for bone, parent in enumerate(parents[1:], start=1):
        local[:, bone] = turns[:, parent].swapaxes(1, 2) @ turns[:, bone]
    if not mounted_first:
        bones = [*range(1, 7), *range(8, 14), *range(15, 25), *range(26, 33)]
        for bone, joint in zip(bones, G1_29.joints, strict=True):
            mount = to_file @ rotation(joint.origin_rpy_rad) @ to_file.T
            local[:, bone] = mount.T @ local[:, bone] @ mount
    return {
        "posed_joints": world.position_m[:, links].transpose(2, 1, 0) @ to_file.T,
        "global_rot_mats": turns,
        "local_rot_mats": local,
        "root_positions": track.root.position_m @ to_file.T,
        "foot_contacts": np.zeros((len(track), 4), dtype=bool),
    }


def kimodo_npz(track: Track) -> bytes:
    """Return the file that Kimodo writes for a G1."""
    return _npz(**kimodo_bones(track))


def seq(track: Track) -> bytes:
    """Return the arms as Choreonoid writes a motion."""
    rows = "".join(
        "      - [ " + ", ".join(map(repr, row)) + " ]\n"
        for row in track.joints_rad[:, 15:].tolist()
    )
    head = (
        "type: CompositeSeq\ncontent: BodyMotion\ncomponents:\n  -\n    type: MultiSE3Seq\n"
        "    content: MultiLinkPositionSeq\n    frameRate: 500\n    frames:\n"
        "      - [ [ 0, 0, 0.79, 1, 0, 0, 0 ] ]\n  -\n    type: MultiValueSeq\n"
        "    content: MultiJointDisplacementSeq\n    num_parts: 14\n"
    )
    return f"{head}    frameRate: {track.rate_hz:.6f}\n    frames:\n{rows}".encode()


MADE: dict[str, tuple[str, Callable[[Track], bytes]]] = {
    "unitree-csv": ("csv", unitree_csv),
    "kimodo": ("csv", kimodo),
    "bones-seed": ("csv", bones_seed),
    "mjlab": ("npz", tracking_npz),
    "beyondmimic": ("npz", beyondmimic),
    "amp": ("npz", amp),
    "gmr": ("pkl", gmr),
    "asap": ("pkl", asap),
    "kimodo-npz": ("npz", kimodo_npz),
    "seq": ("seq", seq),
}
"""By format: the ending of its files, and what makes one."""


def written(folder: Path, name: str, track: Track) -> Path:
    """Write a file of a format; return it."""
    ending, make = MADE[name]
    path = folder / f"{name}.{ending}"
    path.write_bytes(make(track))
    return path
