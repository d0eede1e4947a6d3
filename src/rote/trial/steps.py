"""The steps of a trial as data: description, precautions for the operator, and time limit.

`g1_steps` and `a1_steps` implement them.
"""

from dataclasses import dataclass
from enum import StrEnum

FRAMES_WIRES = ("udp", "sim")
SERVICE_WIRES = ("webrtc", "dds")
MESSAGE_WIRES = (*FRAMES_WIRES, *SERVICE_WIRES)
A1_WIRE = "a1"

_SOFT_ARMS_WARNING = (
    "The arms go soft: hold them lightly at the wrists before you continue, and keep your fingers "
    "out of the joints."
)
_MOVING_ARMS_WARNING = (
    "The arms move by themselves: keep an arm's length away, with the remote in hand (L2+B)."
)


class TrialLevel(StrEnum):
    """How much of the robot a trial may use; each level includes those before it."""

    LOOK = "look"
    """Nothing goes soft and nothing moves."""
    HOLD = "hold"
    """Limbs go soft in a person's hands; an A1 stands and turns its body."""
    MOVE = "move"
    """The robot moves by itself."""

    def allows(self, other: "TrialLevel") -> bool:
        """Whether a trial of this level includes the steps of `other`."""
        order = list(TrialLevel)
        return order.index(other) <= order.index(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialStep:
    """One step of a trial."""

    id: str
    level: TrialLevel
    title: str
    does: str
    """What the step will do, as shown to the operator before it."""
    watch: str
    """What the operator has to watch."""
    limit_s: float
    """Time limit; when it expires the step is ended and the limbs hold."""
    wires: tuple[str, ...] = MESSAGE_WIRES
    needs: tuple[str, ...] = ()
    """Abilities that the robot must have."""


LOOK, HOLD, MOVE = TrialLevel

STEPS: tuple[TrialStep, ...] = (
    TrialStep(
        id="discover",
        level=LOOK,
        title="Search the network",
        does="searches the local network for robots, as the phone app does",
        watch="Nothing moves.",
        limit_s=15.0,
        wires=("webrtc",),
    ),
    TrialStep(
        id="connect",
        level=LOOK,
        title="Connect",
        does="records the stages of the connection and how long each took",
        watch="Nothing moves. Let the robot stand balanced, or hang it on its gantry.",
        limit_s=30.0,
    ),
    TrialStep(
        id="listen",
        level=LOOK,
        title="Listen",
        does="receives messages for four seconds; records topics, rates and fields",
        watch="Nothing moves.",
        limit_s=30.0,
    ),
    TrialStep(
        id="services",
        level=LOOK,
        title="Query the services",
        does="requests the versions of the services, the mode and the controller",
        watch="Nothing moves.",
        limit_s=60.0,
    ),
    TrialStep(
        id="list",
        level=LOOK,
        title="Read the list of actions",
        does="requests the list of actions three times; the report does not contain your names",
        watch="Nothing moves.",
        limit_s=40.0,
        needs=("list",),
    ),
    TrialStep(
        id="wrong-mode",
        level=HOLD,
        title="Teach in a mode without balance",
        does="requests teaching while the robot is damped; the robot should refuse",
        watch="The robot must hang or sit. If it does not refuse, the arms go soft for a moment.",
        limit_s=30.0,
        needs=("teach",),
    ),
    TrialStep(
        id="teach",
        level=HOLD,
        title="Teach for two seconds",
        does="makes the arms soft for two seconds and stores the motion as rote-trial",
        watch=f"{_SOFT_ARMS_WARNING} Lead one arm slowly forward and back.",
        limit_s=60.0,
        needs=("teach",),
    ),
    TrialStep(
        id="overwrite",
        level=HOLD,
        title="Teach the same name again",
        does="teaches a longer rote-trial, and checks whether it replaces the first one",
        watch=_SOFT_ARMS_WARNING,
        limit_s=60.0,
        needs=("teach", "overwrite"),
    ),
    TrialStep(
        id="pause",
        level=HOLD,
        title="Pause a recording",
        does="teaches rote-trial-pause with a pause of two seconds in the middle",
        watch=f"{_SOFT_ARMS_WARNING} They stay soft during the pause.",
        limit_s=60.0,
        needs=("teach", "pause"),
    ),
    TrialStep(
        id="names",
        level=HOLD,
        title="Rename an action",
        does="renames rote-trial to several names, long ones and non-ASCII ones, and back",
        watch="Nothing moves.",
        limit_s=120.0,
        needs=("rename",),
    ),
    TrialStep(
        id="missing",
        level=HOLD,
        title="Request a missing action",
        does="tries to delete and to rename an action that does not exist",
        watch="Nothing should move.",
        limit_s=30.0,
        needs=("delete",),
    ),
    TrialStep(
        id="lapse",
        level=HOLD,
        title="Stop the keep-alives",
        does="makes the arms soft and sends no keep-alives until the robot makes the arms hold; "
        "after 30 s, the trial makes them hold",
        watch=f"{_SOFT_ARMS_WARNING} They stiffen without warning after about 10 s.",
        limit_s=75.0,
        needs=("teach",),
    ),
    TrialStep(
        id="play",
        level=MOVE,
        title="Play",
        does="plays rote-trial, including the slow approach and return",
        watch=_MOVING_ARMS_WARNING,
        limit_s=60.0,
        needs=("play",),
    ),
    TrialStep(
        id="stop",
        level=MOVE,
        title="Stop a playback",
        does="plays rote-trial and stops it in the middle",
        watch=_MOVING_ARMS_WARNING,
        limit_s=60.0,
        needs=("play",),
    ),
    TrialStep(
        id="refused",
        level=MOVE,
        title="Provoke refusals",
        does="requests playback of an action that does not exist, then of a second action while "
        "one plays; then stops the playback",
        watch=_MOVING_ARMS_WARNING,
        limit_s=60.0,
        needs=("play",),
    ),
    TrialStep(
        id="preset",
        level=MOVE,
        title="Play a factory action",
        does="lets the robot wave (factory action 26) or shake hands (27)",
        watch=f"{_MOVING_ARMS_WARNING} The robot raises its right arm above its head.",
        limit_s=60.0,
        needs=("presets",),
    ),
    TrialStep(
        id="other-stop",
        level=MOVE,
        title="Stop from another client",
        does="plays rote-trial, and stops it from a second connection",
        watch=_MOVING_ARMS_WARNING,
        limit_s=60.0,
        wires=("udp", "dds"),
        needs=("play",),
    ),
    TrialStep(
        id="a1-connect",
        level=LOOK,
        title="Connect",
        does="records the dialect and the port of the robot",
        watch="Nothing moves.",
        limit_s=30.0,
        wires=(A1_WIRE,),
    ),
    TrialStep(
        id="a1-listen",
        level=LOOK,
        title="Listen",
        does="receives states for three seconds; records their rate, clock and fields",
        watch="Nothing moves.",
        limit_s=30.0,
        wires=(A1_WIRE,),
    ),
    TrialStep(
        id="a1-stand",
        level=HOLD,
        title="Stand",
        does="commands the walking controller to stand",
        watch="The robot may get up: keep two metres of floor free, and the remote in hand.",
        limit_s=30.0,
        wires=(A1_WIRE,),
        needs=("pose",),
    ),
    TrialStep(
        id="a1-pose",
        level=HOLD,
        title="Turn the body",
        does="tilts the body by 0.2 rad about each axis, on the spot",
        watch="The feet stay in place. Keep two metres of floor free, and the remote in hand.",
        limit_s=30.0,
        wires=(A1_WIRE,),
        needs=("pose",),
    ),
    TrialStep(
        id="a1-joint",
        level=HOLD,
        title="Move one joint",
        does="moves one hip joint gently by 0.1 rad and back; all other joints hold",
        watch="The robot must hang or lie, without weight on its legs. Keep your hands off them.",
        limit_s=40.0,
        wires=(A1_WIRE,),
        needs=("control",),
    ),
    TrialStep(
        id="a1-walk",
        level=MOVE,
        title="Walk a step",
        does="walks forward at 0.2 m/s for 1.5 seconds, then stands",
        watch="Keep three metres of floor free in front of the robot, and the remote in hand.",
        limit_s=30.0,
        wires=(A1_WIRE,),
        needs=("walk",),
    ),
)
BY_ID: dict[str, TrialStep] = {step.id: step for step in STEPS}


def steps_for(level: TrialLevel, wire: str) -> tuple[TrialStep, ...]:
    """Return the steps of a level on a wire, in their order."""
    return tuple(step for step in STEPS if wire in step.wires and level.allows(step.level))
