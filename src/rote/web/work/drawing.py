"""How a page draws a robot of any build: the tree of its links, and the shapes on them."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from rote.model.family import ZERO, Build, Family, Figure, Joint, Point, Shape
from rote.model.registry import family_of
from rote.motion.body.kinematics import Kinematics, kinematics_of
from rote.motion.draw.figure_body import figure_of
from rote.motion.edit.table import limbs_of

if TYPE_CHECKING:
    from rote.web.schemas import robot as s

MODELS = Path(__file__).parents[1] / "model"
"""Real shapes as GLB, one file for each family that the set-up has made."""


def model_of(build: Build) -> Path | None:
    """Return the file with the real shapes of a build's family; None if there is none."""
    path = MODELS / f"{build.family}.glb"
    return path if path.is_file() else None


def make_drawing(build: Build) -> "s.JointTree":
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
        "limbs": cast("Literal['arms', 'legs']", build.limbs),
        "base": build.joints[0].parent if family is None else family.body.base,
        "joints": [
            _describe_joint(joint, build, column) for column, joint in enumerate(build.joints)
        ],
        "fixed": [_describe_mount(joint) for joint in _find_fixed_joints(build, family)],
        "rest_rad": list(build.rest_rad),
        "sticks": [] if figure is None or family is None else _describe_sticks(figure, family),
        "shapes": [] if family is None else _describe_shapes(family),
        "head": None if figure is None else _describe_head(figure),
        "floor": [] if figure is None else [_describe_point(point) for point in figure.floor],
        "ends": [] if family is None else _describe_limb_ends(build, family),
        "model": model_of(build) is not None,
    }


def _describe_mount(joint: Joint) -> "s.Mount":
    return {
        "parent": joint.parent,
        "link": joint.link,
        "origin": joint.origin_m,
        "rpy": joint.origin_rpy_rad,
    }


def _describe_joint(joint: Joint, build: Build, column: int) -> "s.JointFacts":
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


def _describe_point(point: Point) -> "s.LinkPlace":
    link, offset_m = point
    return {"link": link, "at": offset_m}


def _describe_sticks(figure: Figure, family: Family) -> "list[s.Stick]":
    """Return the sticks, each with the link that moves it, for highlighting and dragging."""
    parents = {joint.link: joint.parent for joint in family.joints}
    sticks: list[s.Stick] = []
    for side, start, end in figure.sticks:
        end_link, offset_m = end
        # A stick that ends at the origin of a link, where its joint is, moves with the parent link.
        link = parents.get(end_link, end_link) if offset_m == ZERO else end_link
        sticks.append(
            {
                "side": cast("Literal['left', 'right', '']", side),
                "link": link,
                "start": _describe_point(start),
                "end": _describe_point(end),
            }
        )
    return sticks


def _describe_limb_ends(build: Build, family: Family) -> "list[s.LimbEnd]":
    """Return the ends of the limbs that are taught, each with its joints from the body outwards.

    They are the tips of arms or, for a robot without arms, the feet.
    """
    body = kinematics_of(family)
    points = family.body.tips or _find_feet(build, family)
    ends: list[s.LimbEnd] = []
    for point in points:
        link, _ = point
        joint_names = [each for each in _list_joints_outwards(body, link) if each in build.taught]
        # These joints move one point, so they belong to at most one limb that has a name.
        limb, joints = next(iter(limbs_of(joint_names).items()), ("", joint_names))
        if joints:
            ends.append({**_describe_point(point), "limb": limb, "joints": joints})
    return ends


def _list_joints_outwards(body: Kinematics, link: str) -> list[str]:
    """Return the names of the joints that move a link, the nearest to the base first."""
    moving_names = body.chain(link)
    outwards = (body.joints[index].name for index in body.order)
    return [name for name in outwards if name in moving_names]


def _find_feet(build: Build, family: Family) -> list[Point]:
    """Return the feet of a robot whose legs are taught: moving ends where no other stick starts."""
    if build.limbs != "legs":
        return []
    sticks = figure_of(family).sticks
    starts = {start for _, start, _ in sticks}
    moving_links = {joint.link for joint in family.joints}
    free_ends = [end for _, _, end in sticks if end not in starts]
    return [(link, offset_m) for link, offset_m in free_ends if link in moving_links]


def _describe_shapes(family: Family) -> "list[s.Solid]":
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


def _describe_head(figure: Figure) -> "s.Head | None":
    if figure.head_radius_m <= 0.0:
        return None
    return {**_describe_point(figure.head), "radius": figure.head_radius_m}
