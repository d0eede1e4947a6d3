"""A robot of three joints, as a third party would write it down: `third_party` installs it.

It turns on its base and has a paw on each side. The right paw's axis points backwards, so that both
are lifted by positive angles. Its shapes, its feet and how it is drawn nobody wrote down.
"""

from rote.model.family import (
    BodyFacts,
    Build,
    Evidence,
    Family,
    Grade,
    Joint,
    StreamFacts,
    Vector,
    X,
    Z,
)

_BACKWARDS: Vector = (-1.0, 0.0, 0.0)


def _joint(index: int, name: str, parent: str, axis: Vector, origin_m: Vector) -> Joint:
    paw = parent != "stand"
    return Joint(
        index=index,
        slot=2 * index,
        name=name,
        parent=parent,
        axis=axis,
        lower_rad=-0.4 if paw else -1.0,
        upper_rad=1.2 if paw else 1.0,
        velocity_rad_s=4.0 if paw else 2.0,
        effort_nm=3.0,
        origin_m=origin_m,
        mass_kg=0.5 if paw else 2.0,
        com_m=(0.0, 0.15 if origin_m[1] > 0 else -0.15, 0.0) if paw else (0.0, 0.0, 0.1),
    )


JOINTS = (
    _joint(0, "base_turn_joint", "stand", Z, (0.0, 0.0, 0.2)),
    _joint(1, "left_paw_joint", "base_turn_link", X, (0.0, 0.1, 0.2)),
    _joint(2, "right_paw_joint", "base_turn_link", _BACKWARDS, (0.0, -0.1, 0.2)),
)
NAMES = tuple(joint.name for joint in JOINTS)

TRIPOD = Family(
    name="tripod",
    title="a tripod with two paws",
    joints=JOINTS,
    builds=(
        Build(
            name="tripod-3",
            family="tripod",
            joints=JOINTS,
            taught=NAMES,
            streamed=NAMES,
            rest={"left_paw_joint": 0.1, "right_paw_joint": 0.1},
            machines=(77,),
            stream=StreamFacts(),
        ),
        Build(
            name="tripod-2",
            family="tripod",
            joints=JOINTS[1:],
            taught=NAMES[1:],
            machines=(78,),
            motors={78: {"left_paw_joint": (3.0, 0.5)}},
            no_stream="its base does not turn",
        ),
    ),
    body=BodyFacts(base="stand", base_mass_kg=3.0),
    mirror={"left_paw_joint": "right_paw_joint", "right_paw_joint": "left_paw_joint"},
    evidence={"joints": Evidence(Grade.CHOSEN, "a test")},
    soft_rad_s=0.5,
)
