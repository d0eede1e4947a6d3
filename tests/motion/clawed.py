"""The tripod again, as a robot that may wear a hand of two fingers on each paw."""

from dataclasses import replace

from motion.tripod import TRIPOD
from rote.model.family import ZERO, Evidence, Grade, Hand, Joint, X, Y


def _hand(side: str) -> Hand:
    fingers = tuple(
        Joint(
            index=index,
            name=f"{side}_claw_{index}_joint",
            parent=f"{side}_paw_link",
            axis=(X, Y)[index],
            lower_rad=-0.9,
            upper_rad=0.9,
            velocity_rad_s=3.0,
            effort_nm=0.5,
            origin_m=ZERO,
            part="finger",
        )
        for index in range(2)
    )
    return Hand(
        name="claw",
        side=side,
        joints=fingers,
        state_topic=f"rt/claw/{side}/state",
        command_topic=f"rt/claw/{side}/cmd",
        evidence=Evidence(Grade.CHOSEN, "a test"),
    )


CLAWED = replace(
    TRIPOD,
    name="clawed",
    builds=tuple(
        replace(build, name=build.name.replace("tripod", "clawed"), family="clawed")
        for build in TRIPOD.builds
    ),
    hands=(_hand("left"), _hand("right")),
)
