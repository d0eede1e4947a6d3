"""The robot's modes as tables: what may follow what, how long it takes, and what needs what.

The ids are those a G1 reports. What is not in a table is refused and changes nothing; damping is
allowed from everywhere, because it is how a person stops a robot that misbehaves.
"""

from enum import Enum

from rote.messages import Code
from rote.model.g1 import MODES, MOVES, Mode
from rote.sim.refusal import RefusalError


class Activity(Enum):
    """What the arms are doing."""

    IDLE = "idle"
    TEACHING = "teaching"
    PLAYING = "playing"


class Input(Enum):
    """What can happen to the arms."""

    TEACH = "teach"
    EXIT = "exit"
    PLAY = "play"
    END = "end"
    """The playback came to its end."""
    STOP = "stop"


# Every legal move of the arms. A pair that is not here is refused with BUSY.
ACTIVITIES: dict[tuple[Activity, Input], Activity] = {
    (Activity.IDLE, Input.TEACH): Activity.TEACHING,
    (Activity.IDLE, Input.PLAY): Activity.PLAYING,
    (Activity.IDLE, Input.EXIT): Activity.IDLE,
    (Activity.IDLE, Input.STOP): Activity.IDLE,
    (Activity.TEACHING, Input.TEACH): Activity.TEACHING,
    (Activity.TEACHING, Input.EXIT): Activity.IDLE,
    (Activity.TEACHING, Input.STOP): Activity.IDLE,
    (Activity.PLAYING, Input.EXIT): Activity.PLAYING,
    (Activity.PLAYING, Input.END): Activity.IDLE,
    (Activity.PLAYING, Input.STOP): Activity.IDLE,
}
_NEED_BALANCE = (Input.TEACH, Input.PLAY)


class Machine:
    """The mode and the activity of one robot."""

    def __init__(self, mode: Mode = Mode.WALK) -> None:
        self.mode = mode
        self.activity = Activity.IDLE
        self._target: Mode | None = None
        self._arrival_s = 0.0

    @property
    def balanced(self) -> bool:
        """Whether the arms may be taught and played now."""
        return MODES[self.mode].balanced and self._target is None

    @property
    def stiff(self) -> bool:
        """Whether joints that nobody teaches hold their places."""
        return MODES[self.mode].stiff

    def change_mode(self, target: int, now_s: float) -> None:
        """Begin to change the mode; `advance` completes it."""
        known = {mode.value: mode for mode in Mode}
        if target not in known:
            raise RefusalError(Code.BAD_PAYLOAD)
        mode = known[target]
        if mode is self.mode:
            self._target = None  # a change that had begun is called off
            return
        if mode is self._target:
            return
        if (self.mode, mode) not in MOVES:
            raise RefusalError(Code.WRONG_STATE)
        self._target, self._arrival_s = mode, now_s + MOVES[self.mode, mode]

    def fall(self) -> None:
        """Be damped at once, because nobody controls the robot any more."""
        self.mode, self._target = Mode.DAMP, None

    def advance(self, now_s: float) -> bool:
        """Complete a change of mode that has fallen due; True where one was."""
        if self._target is None or now_s < self._arrival_s:
            return False
        self.mode, self._target = self._target, None
        return True

    def act(self, event: Input) -> None:
        """Move the arms' activity by the table, or refuse."""
        if event in _NEED_BALANCE and not self.balanced:
            raise RefusalError(Code.WRONG_STATE)
        following = ACTIVITIES.get((self.activity, event))
        if following is None:
            raise RefusalError(Code.BUSY)
        self.activity = following
