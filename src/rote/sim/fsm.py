"""The robot's modes as tables: which transitions are allowed, how long they take, what they need.

The modes and their transitions are the family's data. A transition that is not in a table is
refused and changes nothing. A family without a motion controller has one mode and is always ready.
"""

from enum import Enum

from rote.messages import Code
from rote.model.family import ModeFacts, ModeTable
from rote.sim.refusal import RefusalError


class ArmActivity(Enum):
    """What the arms are doing."""

    IDLE = "idle"
    TEACHING = "teaching"
    PLAYING = "playing"


class ArmInput(Enum):
    """Events that change what the arms are doing."""

    TEACH = "teach"
    EXIT = "exit"
    PLAY = "play"
    END = "end"
    """The playback has ended."""
    STOP = "stop"


# Every legal transition of the arms. A pair that is not here is refused with BUSY.
ACTIVITIES: dict[tuple[ArmActivity, ArmInput], ArmActivity] = {
    (ArmActivity.IDLE, ArmInput.TEACH): ArmActivity.TEACHING,
    (ArmActivity.IDLE, ArmInput.PLAY): ArmActivity.PLAYING,
    (ArmActivity.IDLE, ArmInput.EXIT): ArmActivity.IDLE,
    (ArmActivity.IDLE, ArmInput.STOP): ArmActivity.IDLE,
    (ArmActivity.TEACHING, ArmInput.TEACH): ArmActivity.TEACHING,
    (ArmActivity.TEACHING, ArmInput.EXIT): ArmActivity.IDLE,
    (ArmActivity.TEACHING, ArmInput.STOP): ArmActivity.IDLE,
    (ArmActivity.PLAYING, ArmInput.EXIT): ArmActivity.PLAYING,
    (ArmActivity.PLAYING, ArmInput.END): ArmActivity.IDLE,
    (ArmActivity.PLAYING, ArmInput.STOP): ArmActivity.IDLE,
}
_NEED_BALANCE = (ArmInput.TEACH, ArmInput.PLAY)


class Machine:
    """The mode of one robot, and what its arms are doing."""

    def __init__(self, modes: ModeTable, mode: int | None = None) -> None:
        self.modes = modes
        self.mode = modes.standing if mode is None else mode
        self.activity = ArmActivity.IDLE
        self._target: int | None = None
        """The mode that the robot is changing to; it reaches it at `_arrival_s`."""
        self._arrival_s = 0.0

    @property
    def facts(self) -> ModeFacts:
        """The name and properties of the current mode."""
        facts = self.modes.find(self.mode)
        assert facts is not None, f"there is no mode {self.mode:d}"
        return facts

    @property
    def balanced(self) -> bool:
        """Whether the robot stands balanced, so that its arms may be taught and played now."""
        return self._target is None and self.modes.balanced(self.mode)

    @property
    def stiff(self) -> bool:
        """Whether joints that are not being taught hold their positions."""
        return self.facts.stiff

    @property
    def damped(self) -> bool:
        """Whether joints that do not hold are damped, rather than turning freely."""
        return self.mode == self.modes.damp

    @property
    def changing(self) -> bool:
        """Whether a change of mode has begun and is not complete."""
        return self._target is not None

    def change_mode(self, target: int, now_s: float) -> None:
        """Start a mode change; `advance` completes it."""
        if self.modes.find(target) is None:
            raise RefusalError(Code.BAD_PAYLOAD)
        if target == self.mode:
            self._target = None  # cancels a change that had begun
            return
        if target == self._target:
            return
        duration_s = self.modes.moves.get((self.mode, target))
        if duration_s is None:
            raise RefusalError(Code.WRONG_STATE)
        self._target, self._arrival_s = target, now_s + duration_s

    def enter_damp_mode(self) -> None:
        """Enter the damp mode at once, because no controller drives the robot."""
        if self.modes.damp is not None:
            self.mode, self._target = self.modes.damp, None

    def advance(self, now_s: float) -> bool:
        """Complete a mode change that is due; return whether there was one."""
        if self._target is None or now_s < self._arrival_s:
            return False
        self.mode, self._target = self._target, None
        return True

    def act(self, event: ArmInput) -> None:
        """Change the arms' activity as `event` requires; raise `RefusalError` if it may not."""
        if event in _NEED_BALANCE and not self.balanced:
            raise RefusalError(Code.WRONG_STATE)
        next_activity = ACTIVITIES.get((self.activity, event))
        if next_activity is None:
            raise RefusalError(Code.BUSY)
        self.activity = next_activity
