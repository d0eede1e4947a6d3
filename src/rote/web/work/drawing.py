"""How a page draws a robot of any build: the tree of its links, and the shapes on them."""

from pathlib import Path
from typing import Any

from rote.model.family import ZERO, Build, Family, Figure, Joint, Point, Shape
from rote.model.registry import family_of
from rote.motion.body.kinematics import Kinematics, kinematics_of
from rote.motion.draw.figure_body import figure_of
from rote.motion.edit.table import limbs_of

MODELS = Path(__file__).parents[1] / "model"
"""Real shapes as GLB, one file for each family that the set-up has made."""


def model_of(build: Build) -> Path | None:
    """Return the file with the real shapes of a build's family; None if there is none."""
    path = MODELS / f"{build.family}.glb"
    return path if path.is_file() else None


def make_drawing(build: Build) -> dict[str, Any]:
    """Return, as JSON, what the page needs to draw a build and to name its joints.

    A joint's `index` is its column in a state's positions. `fixed` lists the joints that only other
    builds of the family have; in this build their links are rigid.
    """
    family = family_of(build)
    figure = None if family is None else figure_of(family)
    return {
        "build": build.name,
        "family": build.family,
        "title": build.title,
        "limbs": build.limbs,
        "base": build.joints[0].parent if family is None else family.body.base,
        "joints": [
            _describe_joint(joint, build, column) for column, joint in enumerate(build.joints)
        ],
        "fixed": [_describe_mount(joint) for joint in _find_fixed_joints(build, family)],
        "rest_rad": build.rest_rad,
        "sticks": [] if figure is None or family is None else _describe_sticks(figure, family),
        "shapes": [] if family is None else _describe_shapes(family),
        "head": None if figure is None else _describe_head(figure),
        "floor": [] if figure is None else [_describe_point(point) for point in figure.floor],
        "ends": [] if family is None else _describe_limb_ends(build, family),
        "model": model_of(build) is not None,
    }


def _describe_mount(joint: Joint) -> dict[str, Any]:
    return {
        "parent": joint.parent,
        "link": joint.link,
        "origin": joint.origin_m,
        "rpy": joint.origin_rpy_rad,
    }


def _describe_joint(joint: Joint, build: Build, column: int) -> dict[str, Any]:
    return {
        "index": column,
        "name": joint.name,
        "lower_rad": joint.lower_rad,
        "upper_rad": joint.upper_rad,
        "taught": joint.name in build.taught,
        "axis": joint.axis,
        "part": joint.part,
        **_describe_mount(joint),
    }


def _find_fixed_joints(build: Build, family: Family | None) -> list[Joint]:
    return (
        [] if family is None else [each for each in family.joints if each.name not in build.names]
    )


def _describe_point(point: Point) -> dict[str, Any]:
    return {"link": point[0], "at": point[1]}


def _describe_sticks(figure: Figure, family: Family) -> list[dict[str, Any]]:
    """Return the sticks, each with the link that moves it, for highlighting and dragging."""
    above = {joint.link: joint.parent for joint in family.joints}
    return [
        {
            "side": side,
            # The end of a stick at a joint's own position moves with the parent link.
            "link": above.get(end[0], end[0]) if end[1] == ZERO else end[0],
            "start": _describe_point(start),
            "end": _describe_point(end),
        }
        for side, start, end in figure.sticks
    ]


def _describe_limb_ends(build: Build, family: Family) -> list[dict[str, Any]]:
    """Return the ends of the limbs that are taught, each with its joints from the body outwards.

    They are the tips of arms; a robot without has feet, at the ends of its sticks.
    """
    body = kinematics_of(family)
    points = family.body.tips or _find_feet(build, family)
    made = []
    for point in points:
        moved = [each for each in _joints_outwards(body, point[0]) if each in build.taught]
        limb, joints = next(iter(limbs_of(moved).items()), ("", moved))
        if joints:
            made.append(_describe_point(point) | {"limb": limb, "joints": joints})
    return made


def _joints_outwards(body: Kinematics, link: str) -> list[str]:
    """Return the names of the joints that move a link, the nearest to the base first."""
    moved = body.chain(link)
    return [body.joints[index].name for index in body.order if body.joints[index].name in moved]


def _find_feet(build: Build, family: Family) -> list[Point]:
    """Return the free end of each stick, for a robot whose legs are taught."""
    if build.limbs != "legs":
        return []
    sticks = figure_of(family).sticks
    begins = {start for _, start, _ in sticks}
    moved = {joint.link for joint in family.joints}
    return [end for _, _, end in sticks if end not in begins and end[0] in moved]


def _describe_shapes(family: Family) -> list[dict[str, Any]]:
    return [
        {
            "link": shape.link,
            "start": shape.start_m,
            "end": shape.end_m,
            "radius": shape.radius_m,
        }
        for shape in family.body.shapes
        if isinstance(shape, Shape)
    ]


def _describe_head(figure: Figure) -> dict[str, Any] | None:
    if figure.head_radius_m <= 0.0:
        return None
    return _describe_point(figure.head) | {"radius": figure.head_radius_m}
