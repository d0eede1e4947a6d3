"""A robot as URDF, which ROS 2, Foxglove and Rerun read: its joints, its links and their shapes."""

import math
from collections.abc import Callable, Collection
from xml.etree import ElementTree

import numpy as np

from rote.model.family import ZERO, Build, Family, FixedMass, Joint, Vector
from rote.model.registry import family_of
from rote.motion.body.kinematics import rotation
from rote.motion.draw.figure_body import figure_of

PACKAGE = "package://rote"
"""The start of the URIs of meshes that this program serves."""
_SHIN_M = 0.03  # the radius of a stick
_BALL_M = 0.05  # the radius of the ball that a link's mass is taken for


def urdf(
    build: Build, meshes: Collection[str] = (), mesh_uri: Callable[[str], str] | None = None
) -> str:
    """Return the description of a build.

    `meshes` are the links that have real shapes, `mesh_uri` returns the URI of a link's shape.
    Other links are drawn as sticks. Inertias are those of small balls: only masses and their
    centres are known.
    """
    family = family_of(build)
    joints = [*build.joints]
    fixed = [] if family is None else [each for each in family.joints if _is_fixed(each, build)]
    base = joints[0].parent if family is None else family.body.base
    root = ElementTree.Element("robot", name=build.name)
    _add_material(root, "shell", (0.9, 0.91, 0.93))
    _add_material(root, "stick", (0.3, 0.45, 0.6))
    uri = mesh_uri or (lambda link: f"{PACKAGE}/{build.family}/{link}.stl")
    sticks = {} if family is None else _find_sticks(family)
    links = {base: _base_mass(family)} | {
        each.link: _joint_mass(each) for each in [*joints, *fixed]
    }
    for joint in (*joints, *fixed):  # a parent that no joint moves, like the palm of a hand
        links.setdefault(joint.parent, None)
    for link, mass in links.items():
        element = ElementTree.SubElement(root, "link", name=link)
        if mass is not None and mass.mass_kg > 0:
            _add_inertial(element, mass)
        if link in meshes:
            visual = _add_visual(element, "shell", ZERO, ZERO)
            ElementTree.SubElement(visual, "mesh", filename=uri(link))
        else:
            for start, end in sticks.get(link, ()):
                _add_stick(element, start, end)
    for joint in joints:
        _add_joint(root, joint, "revolute")
    for joint in fixed:
        _add_joint(root, joint, "fixed")
    orphans = (
        {joint.parent for joint in joints} - {base} - {each.link for each in (*joints, *fixed)}
    )
    for link in sorted(orphans):
        element = ElementTree.SubElement(root, "joint", name=f"{link}_mount", type="fixed")
        ElementTree.SubElement(element, "parent", link=base)
        ElementTree.SubElement(element, "child", link=link)
    ElementTree.indent(root)
    return '<?xml version="1.0"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _is_fixed(joint: Joint, build: Build) -> bool:
    """Whether a joint of the family is rigid in this build."""
    return joint.name not in build.names


def _joint_mass(joint: Joint) -> FixedMass:
    return FixedMass(joint.link, joint.mass_kg, joint.com_m)


def _base_mass(family: Family | None) -> FixedMass | None:
    if family is None:
        return None
    return FixedMass(family.body.base, family.body.base_mass_kg, family.body.base_com_m)


def _add_joint(root: ElementTree.Element, joint: Joint, kind: str) -> None:
    element = ElementTree.SubElement(root, "joint", name=joint.name, type=kind)
    _add_origin(element, joint.origin_m, joint.origin_rpy_rad)
    ElementTree.SubElement(element, "parent", link=joint.parent)
    ElementTree.SubElement(element, "child", link=joint.link)
    if kind == "revolute":
        ElementTree.SubElement(element, "axis", xyz=_format_numbers(joint.axis))
        ElementTree.SubElement(
            element,
            "limit",
            lower=f"{joint.lower_rad:.9g}",
            upper=f"{joint.upper_rad:.9g}",
            effort=f"{joint.effort_nm:.9g}",
            velocity=f"{joint.velocity_rad_s:.9g}",
        )


def _add_inertial(link: ElementTree.Element, mass: FixedMass) -> None:
    element = ElementTree.SubElement(link, "inertial")
    _add_origin(element, mass.com_m, ZERO)
    ElementTree.SubElement(element, "mass", value=f"{mass.mass_kg:.9g}")
    ball = f"{0.4 * mass.mass_kg * _BALL_M**2:.6g}"
    inertia = dict.fromkeys(("ixx", "iyy", "izz"), ball) | dict.fromkeys(("ixy", "ixz", "iyz"), "0")
    ElementTree.SubElement(element, "inertia", inertia)


def _add_visual(
    link: ElementTree.Element, material: str, at_m: Vector, rpy_rad: Vector
) -> ElementTree.Element:
    """Add a shape to a link; return its empty geometry element."""
    element = ElementTree.SubElement(link, "visual")
    _add_origin(element, at_m, rpy_rad)
    geometry = ElementTree.SubElement(element, "geometry")
    ElementTree.SubElement(element, "material", name=material)
    return geometry


def _add_stick(link: ElementTree.Element, start: Vector, end: Vector) -> None:
    direction = np.subtract(end, start)
    length = float(np.linalg.norm(direction))
    if length < 1e-3:
        return
    middle = tuple(float(each) for each in np.add(start, end) / 2)
    pitch = math.acos(max(-1.0, min(1.0, direction[2] / length)))
    yaw = math.atan2(direction[1], direction[0])
    geometry = _add_visual(link, "stick", (middle[0], middle[1], middle[2]), (0.0, pitch, yaw))
    ElementTree.SubElement(geometry, "cylinder", radius=f"{_SHIN_M}", length=f"{length:.6g}")


def _find_sticks(family: Family) -> dict[str, list[tuple[Vector, Vector]]]:
    """Return the sticks of a family by the link that moves them, in the frame of that link."""
    by_link = {joint.link: joint for joint in family.joints}
    found: dict[str, list[tuple[Vector, Vector]]] = {}
    for _, (link, start), (other, end) in figure_of(family).sticks:
        joint = by_link.get(other)
        if other == link:
            found.setdefault(link, []).append((start, end))
        elif joint is not None and joint.parent == link:
            turned = rotation(joint.origin_rpy_rad) @ np.array(end) + np.array(joint.origin_m)
            there = (float(turned[0]), float(turned[1]), float(turned[2]))
            found.setdefault(link, []).append((start, there))
    return found


def _add_material(root: ElementTree.Element, name: str, colour: Vector) -> None:
    element = ElementTree.SubElement(root, "material", name=name)
    ElementTree.SubElement(element, "color", rgba=f"{_format_numbers(colour)} 1")


def _add_origin(element: ElementTree.Element, at_m: Vector, rpy_rad: Vector) -> None:
    ElementTree.SubElement(
        element, "origin", xyz=_format_numbers(at_m), rpy=_format_numbers(rpy_rad)
    )


def _format_numbers(values: Vector) -> str:
    return " ".join(f"{value:.9g}" for value in values)
