"""Files as other programs write them, made by the tests: no motion of a data set is kept here."""

import csv
import io
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from rote.model.g1 import G1_29
from rote.motion.body.root_path import RootPath
from rote.motion.files.exchange.bodies import angular_velocities, bodies, speeds
from rote.motion.files.exchange.contents import breadth_first
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
    world = bodies(track, track.root, G1_29)
    step_s = 1.0 / track.rate_hz
    joints = track.joints_rad[:, track.columns_of(names)]
    return _npz(
        fps=np.array([track.rate_hz]),
        joint_pos=joints,
        joint_vel=speeds(joints.T, step_s).T,
        body_pos_w=world.position_m.T,
        body_quat_w=world.quaternion_wxyz.T,
        body_lin_vel_w=speeds(world.position_m, step_s).T,
        body_ang_vel_w=angular_velocities(world.quaternion_wxyz, step_s).T,
    )


def beyondmimic(track: Track) -> bytes:
    """Return the same in Isaac's order."""
    return tracking_npz(track, breadth_first())


def amp(track: Track) -> bytes:
    """Return an NPZ with names, its links not beginning with the base."""
    assert track.root is not None
    world = bodies(track, track.root, G1_29)
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
    "seq": ("seq", seq),
}
"""By format: the ending of its files, and what makes one."""


def written(folder: Path, name: str, track: Track) -> Path:
    """Write a file of a format; return it."""
    ending, make = MADE[name]
    path = folder / f"{name}.{ending}"
    path.write_bytes(make(track))
    return path
