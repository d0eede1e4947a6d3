"""Draw the pictures of docs/motion.md into a folder: a moved hand path, and the band of takes."""

import sys
from pathlib import Path
from typing import Any

import numpy as np

from rote.model.registry import build_named
from rote.motion.draw.figure import FRONT, SIDE, View
from rote.motion.draw.figure_body import Sticks, pose_sticks
from rote.motion.draw.plot import FIRST, INK, PALE, SECOND, blank_figure, plot_spread, save
from rote.motion.draw.spread import spread
from rote.motion.edit.hand_path import move_hand
from rote.motion.track import Array, Track
from rote.sim.hands import ScriptedHand

BUILD = build_named("g1-29")
SECONDS = 5.0
SHOWN_S = 2.2
UP_M = (0.0, 0.0, 0.08)
TAKES = 5
JOINTS = ("right_shoulder_pitch_joint", "right_shoulder_yaw_joint", "right_elbow_joint")
_BODY = "#868e96"
_BELOW_HIPS_M = 0.75  # the legs do not move, so they are not drawn


def take(seed: int = 0) -> Track:
    """Return a wave as a person repeats it; seed 0 is without variation."""
    chance = np.random.default_rng(seed)
    times_s = np.arange(round(SECONDS * 100) + 1) / 100
    hand = ScriptedHand("wave", SECONDS, BUILD)
    poses = np.array([hand.pose(at_s) for at_s in times_s.tolist()])
    if seed:
        moving = np.ptp(poses, axis=0) > 0.01
        away = chance.normal(0.0, 0.08, (2, len(BUILD.names)))
        share = (times_s / SECONDS)[:, None]
        poses += moving * np.sin(np.pi * share) ** 2 * (away[0] + away[1] * np.cos(3 * share))
    return Track(times_s=times_s, joints_rad=poses, names=BUILD.names, variant=BUILD.name)


def draw_moved_path(path: Path) -> None:
    """Draw a robot and the path of its right hand before and after `move_hand`."""
    before = take()
    after = move_hand(before, "right", by=UP_M)
    figure = blank_figure(7.2, 4.4, 110)
    for axis, view in zip(figure.subplots(1, 2), (FRONT, SIDE), strict=True):
        for track, colour, body, label in (
            (before, FIRST, PALE, "as taught"),
            (after, SECOND, _BODY, "moved up by 8 cm"),
        ):
            draw_arms(axis, view, pose_sticks(track, np.array([SHOWN_S])), body)
            hand_m = pose_sticks(track, track.times_s).hands_m[1]
            axis.plot(*project(view, hand_m), color=colour, lw=1.8, label=label)
        axis.set_aspect("equal")
        axis.set_axis_off()
        axis.set_title(view.label, fontsize=10, color=INK)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
    save(figure, path)


def draw_arms(axis: Any, view: View, body: Sticks, colour: str) -> None:
    """Draw the upper body of a robot in its first pose."""
    for ends_m in body.ends_m[..., 0]:
        if ends_m[:, 2].min() > _BELOW_HIPS_M:
            axis.plot(*project(view, ends_m.T), color=colour, lw=3.0, solid_capstyle="round")
    centre = project(view, body.head_m[:, :1])[:, 0]
    turn = np.linspace(0.0, 2 * np.pi, 40)
    ring = centre[:, None] + body.head_radius_m * np.array([np.cos(turn), np.sin(turn)])
    axis.fill(*ring, color=colour)


def project(view: View, points_m: Array) -> Array:
    """Return points, (3, n), as they are seen, (2, n)."""
    return np.stack([view.right @ points_m, points_m[2]])


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    draw_moved_path(folder / "adapt-path.svg")
    takes = [take(seed) for seed in range(1, TAKES + 1)]
    plot_spread(spread(takes), folder / "adapt-band.png", joints=JOINTS, title="five takes")
