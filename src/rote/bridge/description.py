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
_STICK_RADIUS_M = 0.03
_BALL_RADIUS_M = 0.05
"""The inertia of a link is approximated by that of a ball of this radius."""


def urdf(
    build: Build, meshes: Collection[str] = (), mesh_uri: Callable[[str], str] | None = None
) -> str:
    """Return the description of a build as XML.

    `meshes` are the links that have real shapes, `mesh_uri` returns the URI of a link's shape.
    Other links are drawn as sticks. Inertias are approximated by small balls, because only masses
    and their centres are known.
    """
    family = family_of(build)
    joints = [*build.joints]
    family_joints = () if family is None else family.joints
    fixed = [joint for joint in family_joints if joint.name not in build.names]
    base = joints[0].parent if family is None else family.body.base
    root = ElementTree.Element("robot", name=build.name)
    _add_material(root, "shell", (0.9, 0.91, 0.93))
    _add_material(root, "stick", (0.3, 0.45, 0.6))
    make_uri = mesh_uri or (lambda link: f"{PACKAGE}/{build.family}/{link}.stl")
    sticks = {} if family is None else _find_sticks(family)
    masses = {base: _find_base_mass(family)} | {
        joint.link: FixedMass(joint.link, joint.mass_kg, joint.com_m) for joint in [*joints, *fixed]
    }
    for joint in (*joints, *fixed):
        masses.setdefault(joint.parent, None)  # a link that no joint moves, like a palm
    for link, mass in masses.items():
        mesh = make_uri(link) if link in meshes else None
        _add_link(root, link, mass, mesh, sticks.get(link, []))
    for joint in joints:
        _add_joint(root, joint, "revolute")
    for joint in fixed:  # joints of the family that are rigid in this build
        _add_joint(root, joint, "fixed")
    # URDF allows one root: a link that no joint attaches is fixed to the base.
    attached = {base} | {joint.link for joint in (*joints, *fixed)}
    for link in sorted({joint.parent for joint in joints} - attached):
        element = ElementTree.SubElement(root, "joint", name=f"{link}_mount", type="fixed")
        ElementTree.SubElement(element, "parent", link=base)
        ElementTree.SubElement(element, "child", link=link)
    ElementTree.indent(root)
    return '<?xml version="1.0"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _find_base_mass(family: Family | None) -> FixedMass | None:
    if family is None:
        return None
    return FixedMass(family.body.base, family.body.base_mass_kg, family.body.base_com_m)


def _add_link(
    root: ElementTree.Element,
    name: str,
    mass: FixedMass | None,
    mesh_uri: str | None,
    sticks: list[tuple[Vector, Vector]],
) -> None:
    """Add a link with its mass if it is known, and its mesh or, without a mesh, its sticks."""
    link = ElementTree.SubElement(root, "link", name=name)
    if mass is not None and mass.mass_kg > 0:
        _add_inertial(link, mass)
    if mesh_uri is None:
        for start, end in sticks:
            _add_stick(link, start, end)
    else:
        geometry = _add_visual(link, "shell", ZERO, ZERO)
        ElementTree.SubElement(geometry, "mesh", filename=mesh_uri)


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
    ball = f"{0.4 * mass.mass_kg * _BALL_RADIUS_M**2:.6g}"  # of a solid ball: 2/5 m r^2
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
    """Add a cylinder between two points of the link's frame, in metres; none if they coincide."""
    direction = np.subtract(end, start)
    length = float(np.linalg.norm(direction))
    if length < 1e-3:
        return
    x, y, z = (np.add(start, end) / 2).tolist()
    # A cylinder in URDF lies along z: turn z into the direction of the stick.
    pitch = math.acos(max(-1.0, min(1.0, direction[2] / length)))
    yaw = math.atan2(direction[1], direction[0])
    geometry = _add_visual(link, "stick", (x, y, z), (0.0, pitch, yaw))
    radius = f"{_STICK_RADIUS_M}"
    ElementTree.SubElement(geometry, "cylinder", radius=radius, length=f"{length:.6g}")


def _find_sticks(family: Family) -> dict[str, list[tuple[Vector, Vector]]]:
    """Return the sticks of a family by link, each as two points in the frame of that link.

    A stick that ends at the next link belongs to the link where it starts; the joint is at zero.
    """
    joint_by_link = {joint.link: joint for joint in family.joints}
    sticks: dict[str, list[tuple[Vector, Vector]]] = {}
    for _, (link, start), (end_link, end) in figure_of(family).sticks:
        joint = joint_by_link.get(end_link)
        if end_link == link:
            sticks.setdefault(link, []).append((start, end))
        elif joint is not None and joint.parent == link:
            rotated = rotation(joint.origin_rpy_rad) @ np.array(end)
            x, y, z = (rotated + np.array(joint.origin_m)).tolist()
            sticks.setdefault(link, []).append((start, (x, y, z)))
    return sticks


def _add_material(root: ElementTree.Element, name: str, colour: Vector) -> None:
    element = ElementTree.SubElement(root, "material", name=name)
    ElementTree.SubElement(element, "color", rgba=f"{_format_numbers(colour)} 1")


def _add_origin(element: ElementTree.Element, at_m: Vector, rpy_rad: Vector) -> None:
    ElementTree.SubElement(
        element, "origin", xyz=_format_numbers(at_m), rpy=_format_numbers(rpy_rad)
    )


def _format_numbers(values: Vector) -> str:
    return " ".join(f"{value:.9g}" for value in values)
