"""The same tasks by mink, MuJoCo and movement-primitives, on a model made from our own table."""

import time
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.size import size
from rote.model.family import Build, Family
from rote.motion.edit.hand_path import ArmSolver, hand_positions_m
from rote.motion.track import Array, Track
from rote.motion.track_build import build_of, family_of

_WEIGHTS = size(30, 8)
_ROUNDS = 20  # mink's iterations per sample, at most
_NEAR_M = 1e-4


def arm_xml(family: Family, build: Build, hand: str) -> tuple[str, list[str]]:
    """Return an arm as a MuJoCo model, its tip a site, and its joints in order."""
    (link, tip_m) = next(tip for tip in family.body.tips if tip[0].startswith(hand))
    by_link = {joint.link: joint for joint in family.joints}
    body = f'<site name="tip" pos="{_text(tip_m)}"/>'
    names: list[str] = []
    while link in by_link:
        joint = by_link[link]
        hinge = ""
        if joint.name in build.names and joint.name.startswith(f"{hand}_"):
            names.insert(0, joint.name)
            span = f"{joint.lower_rad} {joint.upper_rad}"
            hinge = f'<joint name="{joint.name}" axis="{_text(joint.axis)}" range="{span}"/>'
        pose = f'pos="{_text(joint.origin_m)}" euler="{_text(joint.origin_rpy_rad)}"'
        inertia = '<inertial mass="1" pos="0 0 0" diaginertia="0.01 0.01 0.01"/>'
        body = f"<body {pose}>{inertia}{hinge}{body}</body>"
        link = joint.parent
    head = '<compiler angle="radian" eulerseq="XYZ" autolimits="true"/>'
    return f"<mujoco>{head}<worldbody>{body}</worldbody></mujoco>", names


def _text(values: Any) -> str:
    return " ".join(f"{value:.9g}" for value in values)


def hand_path_m(track: Track, hand: str) -> Array:
    """Return the path of a hand, (n, 3): by MuJoCo if that is installed and only the arm moves."""
    build, family = build_of(track), family_of(track)
    others = [name for name in track.names if not name.startswith(f"{hand}_")]
    waist = [name for name in others if name.startswith("waist_")]
    if (
        not find_spec("mujoco")
        or build is None
        or family is None
        or np.abs(track.joints_rad[:, track.columns_of(waist)]).max(initial=0.0) > 0.0
    ):
        return hand_positions_m(track, hand)
    mujoco: Any = import_module("mujoco")
    xml, names = arm_xml(family, build, hand)
    model = mujoco.MjModel.from_xml_string(xml)
    data, columns, found = mujoco.MjData(model), track.columns_of(names), []
    for pose in track.joints_rad[:, columns]:
        data.qpos[:] = pose
        mujoco.mj_kinematics(model, data)
        found.append(data.site_xpos[0].copy())
    return np.array(found)


class MinkArm:
    """An arm that mink moves, one sample after another."""

    def __init__(self, build: Build, hand: str) -> None:
        track = Track(
            times_s=np.zeros(1), joints_rad=np.array([build.rest_rad]), names=build.names,
            variant=build.name,
        )  # fmt: skip
        family = family_of(track)
        assert family is not None
        xml, self._names = arm_xml(family, build, hand)
        self._mink: Any = import_module("mink")
        mujoco: Any = import_module("mujoco")
        self._model = mujoco.MjModel.from_xml_string(xml)

    def follow(self, track: Track, wanted_m: Array) -> tuple[float, Track]:
        """Return the processor time in s, and the track with the hand on this path."""
        mink = self._mink
        columns = track.columns_of(self._names)
        joints_rad = track.joints_rad.copy()
        reach = mink.FrameTask("tip", "site", position_cost=1.0, orientation_cost=0.0)
        posture = mink.PostureTask(self._model, cost=1e-3)
        limits = [mink.ConfigurationLimit(self._model)]
        start_s = time.process_time()
        for row, target_m in enumerate(wanted_m):
            posture.set_target(joints_rad[row, columns])
            reach.set_target(mink.SE3.from_translation(target_m))
            configuration = mink.Configuration(self._model, joints_rad[row, columns].copy())
            for _ in range(_ROUNDS):
                error = reach.compute_error(configuration)[:3]
                if np.linalg.norm(error) < _NEAR_M:
                    break
                velocity = mink.solve_ik(
                    configuration, [reach, posture], 1.0, "daqp", damping=1e-6, limits=limits
                )
                configuration.integrate_inplace(velocity, 1.0)
            joints_rad[row, columns] = configuration.q
        return time.process_time() - start_s, replace(track, joints_rad=joints_rad)


class ProMPArm:
    """An arm whose takes movement-primitives learned."""

    def __init__(self, takes: list[Track], hand: str) -> None:
        self._hand, self._take = hand, takes[0]
        self._names = ArmSolver(takes[0], [hand]).names[0]
        promp: Any = import_module("movement_primitives.promp")
        self._model = promp.ProMP(n_dims=len(self._names), n_weights_per_dim=_WEIGHTS)
        count = len(takes[0])
        shares = np.linspace(0.0, 1.0, count)
        poses = [
            np.stack([np.interp(shares * t.duration_s, t.times_s, t.joints_rad[:, c])
                      for c in t.columns_of(self._names)], axis=1)
            for t in takes
        ]  # fmt: skip
        self._shares = shares
        self._model.imitate(np.tile(shares, (len(takes), 1)), np.array(poses), n_iter=30)

    def lead_through(self, share: float, point_m: Array) -> tuple[float, float]:
        """Return how far the hand passes from a point in m, and the processor time in s."""
        row = round(share * (len(self._shares) - 1))
        mean = self._track(self._model.mean_trajectory(self._shares))
        start_s = time.process_time()
        solver = ArmSolver(
            replace(mean, times_s=np.zeros(1), joints_rad=mean.joints_rad[[row]]), [self._hand]
        )
        away = point_m - solver.positions_m()[0, 0]
        pose = solver.solve(away.reshape(1, 1, 3))[0, solver.columns[0]]
        exact = 1e-6 * np.eye(len(self._names))
        model, means = self._model, self._model.mean_trajectory(self._shares)
        for index, there in ((0, means[0]), (len(means) - 1, means[-1]), (row, pose)):
            model = model.condition_position(there, y_cov=exact, t=self._shares[index])
        found = model.mean_trajectory(self._shares)
        spent_s = time.process_time() - start_s
        passed_m = hand_path_m(self._track(found), self._hand)[row]
        return float(np.linalg.norm(passed_m - point_m)), spent_s

    def _track(self, poses: Array) -> Track:
        joints_rad = np.repeat(self._take.joints_rad[:1], len(poses), axis=0)
        joints_rad[:, self._take.columns_of(self._names)] = poses
        return replace(self._take, joints_rad=joints_rad)
