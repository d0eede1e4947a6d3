"""A build's joints as arrays, one value per column: rest positions, limits and motor strength.

Every part of the simulated robot that computes with joints gets its arrays from here, so none of
them depends on a particular robot.
"""

from dataclasses import replace

import numpy as np

from rote.model.family import BodyFacts, Build, Family
from rote.model.registry import build_named, family_of
from rote.motion.track import Array

DEFAULT_BUILD: Build = build_named("g1-29")
"""The build that is simulated by default."""
UNKNOWN_EFFORT_NM = 20.0
"""Assumed maximum torque of a motor if its table does not state one."""


class Columns:
    """A build's joint properties; each array has one value per column."""

    def __init__(self, build: Build) -> None:
        joints = build.joints
        self.build = build
        self.family = family_for(build)
        self.rest_rad: Array = np.array(build.rest_rad)
        self.lower_rad: Array = np.array([joint.lower_rad for joint in joints])
        self.upper_rad: Array = np.array([joint.upper_rad for joint in joints])
        self.velocity_rad_s: Array = np.array([joint.velocity_rad_s for joint in joints])
        self.effort_nm: Array = np.array([joint.effort_nm or UNKNOWN_EFFORT_NM for joint in joints])
        self.taught = np.array(build.taught_columns, dtype=int)
        """The columns of the taught joints, in the order of `Build.taught`."""


def family_for(build: Build) -> Family:
    """Return the family of a build; if none is registered, one with that build only."""
    return family_of(build) or _make_family(build)


def _make_family(build: Build) -> Family:
    joints = tuple(replace(joint, index=index) for index, joint in enumerate(build.joints))
    moved_links = {joint.link for joint in joints}
    base = next((joint.parent for joint in joints if joint.parent not in moved_links), "base")
    body = BodyFacts(base=base)
    return Family(name=build.family, title=build.title, joints=joints, builds=(build,), body=body)
