"""The steps of a trial as data: what each does, what the operator has to watch, its time limit.

`g1_steps` and `a1_steps` implement them.
"""

from dataclasses import dataclass
from enum import StrEnum

FRAMES_WIRES = ("udp", "sim")
SERVICE_WIRES = ("webrtc", "dds")
MESSAGE_WIRES = (*FRAMES_WIRES, *SERVICE_WIRES)
A1_WIRE = "a1"

_SOFT = (
    "The arms get soft: hold them lightly at the wrists before you go on, and keep fingers out of "
    "the joints."
)
_CLEAR = "The arms move by themselves: nobody within an arm's length, the remote in hand (L2+B)."


class TrialLevel(StrEnum):
    """How much of the robot a trial may use; each level includes those before it."""

    LOOK = "look"
    """Nothing gets soft and nothing moves."""
    HOLD = "hold"
    """Limbs get soft in a person's hands; an A1 stands and turns its body."""
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
    """What it will do, as shown to the operator before the step."""
    watch: str
    """What the operator has to watch."""
    limit_s: float
    """Time limit; when it expires the step is ended and the limbs hold."""
    wires: tuple[str, ...] = MESSAGE_WIRES
    needs: tuple[str, ...] = ()
    """Abilities without which it cannot be done."""


LOOK, HOLD, MOVE = TrialLevel

STEPS: tuple[TrialStep, ...] = (
    TrialStep(
        id="discover",
        level=LOOK,
        title="Search the network",
        does="asks the local network for robots, as the phone app does, and waits for replies",
        watch="Nothing moves.",
        limit_s=15.0,
        wires=("webrtc",),
    ),
    TrialStep(
        id="connect",
        level=LOOK,
        title="Connect",
        does="notes how the connection came about, and how long each stage took",
        watch="Nothing moves. The robot stands balanced, or hangs.",
        limit_s=30.0,
    ),
    TrialStep(
        id="listen",
        level=LOOK,
        title="Listen",
        does="listens for four seconds: which topics come, how often, with which fields",
        watch="Nothing moves.",
        limit_s=30.0,
    ),
    TrialStep(
        id="services",
        level=LOOK,
        title="Ask the services",
        does="asks which services there are, their versions, the mode and the controller",
        watch="Nothing moves.",
        limit_s=60.0,
    ),
    TrialStep(
        id="list",
        level=LOOK,
        title="Read the list of actions",
        does="asks for the list of actions three times; their names are not shared",
        watch="Nothing moves.",
        limit_s=40.0,
        needs=("list",),
    ),
    TrialStep(
        id="wrong-mode",
        level=HOLD,
        title="Teach in a mode without balance",
        does="asks to teach, which it should refuse; only if the robot is damped already",
        watch="The robot hangs or sits; should it accept, the arms get soft for a moment.",
        limit_s=30.0,
        needs=("teach",),
    ),
    TrialStep(
        id="teach",
        level=HOLD,
        title="Teach two seconds",
        does="makes the arms soft for two seconds and stores the motion as rote-trial",
        watch=f"{_SOFT} Lead one arm slowly forward and back.",
        limit_s=60.0,
        needs=("teach",),
    ),
    TrialStep(
        id="overwrite",
        level=HOLD,
        title="Teach the same name again",
        does="teaches rote-trial once more, longer, and looks whether it replaced the first",
        watch=_SOFT,
        limit_s=60.0,
        needs=("teach", "overwrite"),
    ),
    TrialStep(
        id="pause",
        level=HOLD,
        title="Pause a recording",
        does="teaches rote-trial-pause with a pause of two seconds in the middle",
        watch=f"{_SOFT} They stay soft in the pause.",
        limit_s=60.0,
        needs=("teach", "pause"),
    ),
    TrialStep(
        id="names",
        level=HOLD,
        title="Names",
        does="renames rote-trial to a few names, long ones and foreign ones, and back",
        watch="Nothing moves.",
        limit_s=120.0,
        needs=("rename",),
    ),
    TrialStep(
        id="missing",
        level=HOLD,
        title="Ask for what is not there",
        does="asks to delete and to rename an action that does not exist",
        watch="Nothing should move.",
        limit_s=30.0,
        needs=("delete",),
    ),
    TrialStep(
        id="lapse",
        level=HOLD,
        title="Keep-alives cease",
        does="makes the arms soft and then says nothing, until the robot itself makes them hold; "
        "after 30 s the arms are told to hold in any case",
        watch=f"{_SOFT} They get stiff without a warning, in about 10 s.",
        limit_s=75.0,
        needs=("teach",),
    ),
    TrialStep(
        id="play",
        level=MOVE,
        title="Play",
        does="plays rote-trial, from a soft approach to the soft return",
        watch=_CLEAR,
        limit_s=60.0,
        needs=("play",),
    ),
    TrialStep(
        id="stop",
        level=MOVE,
        title="Stop a playback",
        does="plays rote-trial and stops it in the middle",
        watch=_CLEAR,
        limit_s=60.0,
        needs=("play",),
    ),
    TrialStep(
        id="refused",
        level=MOVE,
        title="Refusals",
        does="asks to play an action that does not exist, and a second one while one plays; then "
        "it stops",
        watch=_CLEAR,
        limit_s=60.0,
        needs=("play",),
    ),
    TrialStep(
        id="preset",
        level=MOVE,
        title="A factory action",
        does="lets the robot wave, by its factory action 26, or shake hands, 27",
        watch=f"{_CLEAR} It raises its right arm above the head.",
        limit_s=60.0,
        needs=("presets",),
    ),
    TrialStep(
        id="other-stop",
        level=MOVE,
        title="Somebody else stops it",
        does="plays rote-trial and lets a second connection stop it",
        watch=_CLEAR,
        limit_s=60.0,
        wires=("udp", "dds"),
        needs=("play",),
    ),
    TrialStep(
        id="a1-connect",
        level=LOOK,
        title="Connect",
        does="notes which dialect and which port the robot uses",
        watch="Nothing moves.",
        limit_s=30.0,
        wires=(A1_WIRE,),
    ),
    TrialStep(
        id="a1-listen",
        level=LOOK,
        title="Listen",
        does="listens for three seconds: how often states come, their clock and their fields",
        watch="Nothing moves.",
        limit_s=30.0,
        wires=(A1_WIRE,),
    ),
    TrialStep(
        id="a1-stand",
        level=HOLD,
        title="Stand",
        does="asks the walking controller to stand",
        watch="The robot may get up: two metres of free floor, the remote in hand.",
        limit_s=30.0,
        wires=(A1_WIRE,),
        needs=("pose",),
    ),
    TrialStep(
        id="a1-pose",
        level=HOLD,
        title="Turn the body",
        does="tilts the body by 0.2 rad about each axis, on the spot",
        watch="The feet stay where they are: two metres of free floor, the remote in hand.",
        limit_s=30.0,
        wires=(A1_WIRE,),
        needs=("pose",),
    ),
    TrialStep(
        id="a1-joint",
        level=HOLD,
        title="Move one joint",
        does="moves one hip by 0.1 rad and back, softly, by the motors; all others hold",
        watch="Only for a robot that hangs or lies: its legs carry nothing. Hands off the legs.",
        limit_s=40.0,
        wires=(A1_WIRE,),
        needs=("control",),
    ),
    TrialStep(
        id="a1-walk",
        level=MOVE,
        title="Walk a step",
        does="walks forward at 0.2 m/s for 1.5 seconds, then stands",
        watch="Three metres of free floor in front, the remote in hand.",
        limit_s=30.0,
        wires=(A1_WIRE,),
        needs=("walk",),
    ),
)
BY_ID: dict[str, TrialStep] = {step.id: step for step in STEPS}


def steps_for(level: TrialLevel, wire: str) -> tuple[TrialStep, ...]:
    """Return the steps of a level on a wire, in their order."""
    return tuple(step for step in STEPS if wire in step.wires and level.allows(step.level))
