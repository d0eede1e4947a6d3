"""Claim: motions of other programs come in and go out before a person notices.

10,000 frames of a whole G1 with the path of its base, in processor time, the best of a few rounds:
reading a file into a track, and writing one, without the check that the command line makes next.
"""

import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.size import size
from benchmarks.table import Row, cpu_s
from rote.model.g1 import G1_29
from rote.motion.body.root_path import RootPath
from rote.motion.files.exchange import EXCHANGE, export_motion, import_motion
from rote.motion.files.exchange.contents import list_joints_breadth_first
from rote.motion.track import Track

FRAMES = size(10_000, 100)
FPS = 50
LIMIT_S = 0.2
ROUNDS = size(5, 1)


_BONES = ("kimodo-npz", "asap")
"""Read by the bones of a body; no motion of ours can be written like that."""


def walking() -> Track:
    """Return a robot that walks and moves every joint."""
    times_s = np.arange(FRAMES) / FPS
    lower = np.array([joint.lower_rad for joint in G1_29.joints])
    upper = np.array([joint.upper_rad for joint in G1_29.joints])
    swing = np.sin(0.9 * times_s[:, None] + np.arange(len(G1_29.names)))
    yaw, zero = 2.5 + 0.3 * np.sin(times_s), np.zeros(FRAMES)
    return Track(
        times_s=times_s,
        joints_rad=(lower + upper) / 2 + 0.3 * (upper - lower) / 2 * swing,
        names=G1_29.names,
        root=RootPath(
            np.column_stack([0.1 * times_s, zero, zero + 0.79]),
            np.column_stack([np.cos(yaw / 2), zero, zero, np.sin(yaw / 2)]),
        ),
    )


def made(track: Track, folder: Path) -> dict[str, Path]:
    """Write a file of each format, except those that are trees of bones; return them."""
    assert track.root is not None
    found = {name: folder / name for name in EXCHANGE if name not in _BONES}
    for name in ("unitree-csv", "mjlab", "amp"):
        export_motion(track, found[name], name, fps=FPS)
    turn = track.root.quaternion_wxyz
    rows = np.column_stack([track.root.position_m, turn, track.joints_rad])
    np.savetxt(found["kimodo"], rows, delimiter=",", fmt="%.9f")
    head = "Frame," + ",".join(
        [*(f"root_{what}{axis}" for what in ("translate", "rotate") for axis in "XYZ")]
        + [f"{name}_dof" for name in track.names]
    )
    flat = np.zeros((FRAMES, 2))
    yaw = np.degrees(track.root.yaw_rad)
    parts = (
        np.arange(FRAMES),
        100 * track.root.position_m,
        flat,
        yaw,
        np.degrees(track.joints_rad),
    )
    table = np.column_stack(parts)
    np.savetxt(found["bones-seed"], table, delimiter=",", fmt="%.7f", header=head, comments="")
    arrays = dict(np.load(found["mjlab"]))
    arrays["joint_pos"] = arrays["joint_pos"][:, track.columns_of(list_joints_breadth_first())]
    with found["beyondmimic"].open("wb") as file:
        np.savez(file, **arrays)
    motion = {
        "fps": FPS,
        "root_pos": np.array(track.root.position_m),
        "root_rot": np.array(turn[:, [1, 2, 3, 0]]),
        "dof_pos": np.array(track.joints_rad),
    }
    found["gmr"].write_bytes(pickle.dumps(motion))
    lines = ["components:", "  -", "    content: MultiJointDisplacementSeq", "    frameRate: 50"]
    lines += ["    frames:"]
    frames = track.joints_rad[:, 15:].tolist()
    lines += [f"      - [ {', '.join(f'{v:.9f}' for v in row)} ]" for row in frames]
    found["seq"].write_text("\n".join(lines) + "\n")
    return found


def best_s(work: Callable[[], object]) -> float:
    return min(cpu_s(work) for _ in range(ROUNDS))


def run() -> list[Row]:
    """Measure every format, in and out."""
    track = walking()
    rows = []
    with TemporaryDirectory() as name:
        folder = Path(name)
        for kind, path in made(track, folder).items():
            fps = None if EXCHANGE[kind].usual_fps is None or kind == "seq" else FPS
            seconds = best_s(partial(import_motion, path, kind, fps=fps))
            rows.append(_row(f"{kind} in, 10,000 frames", seconds))
        for kind, found in EXCHANGE.items():
            if found.writer:
                seconds = best_s(partial(export_motion, track, folder / "out", kind, fps=FPS))
                rows.append(_row(f"{kind} out, 10,000 frames", seconds))
    return rows


def _row(claim: str, seconds: float) -> Row:
    return Row(claim, "ms", 1000 * seconds, 1000 * LIMIT_S, "limit", at_most=1.0)
