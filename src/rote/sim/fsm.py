"""The robot's modes as tables: what may follow what, how long it takes, and what needs what.

The ids are those a G1 reports. What is not in a table is refused and changes nothing; damping is
allowed from everywhere, because it is how a person stops a robot that misbehaves.
"""

from enum import Enum

from rote.messages import MODES, Code, Mode
from rote.sim.refusal import RefusalError

WALKING = (Mode.WALK, Mode.WALK_WAIST)
RUNNING = (Mode.RUN, Mode.RUN_29)
"""Running for robots of 23 and of 29 joints; which of them a robot knows, its firmware says."""

# Every move and the seconds it takes.
MOVES: dict[tuple[Mode, Mode], float] = {
    (Mode.ZERO_TORQUE, Mode.DAMP): 0.2,
    (Mode.DAMP, Mode.ZERO_TORQUE): 0.2,
    (Mode.DAMP, Mode.LOCK_STAND): 2.0,
    (Mode.LOCK_STAND, Mode.DAMP): 0.2,
    (Mode.LOCK_STAND, Mode.WALK): 1.0,
    (Mode.LOCK_STAND, Mode.WALK_WAIST): 1.0,
    (Mode.WALK, Mode.LOCK_STAND): 1.0,
    (Mode.WALK, Mode.WALK_WAIST): 0.5,
    (Mode.WALK, Mode.DAMP): 0.2,
    (Mode.WALK_WAIST, Mode.LOCK_STAND): 1.0,
    (Mode.WALK_WAIST, Mode.WALK): 0.5,
    (Mode.WALK_WAIST, Mode.DAMP): 0.2,
    **{(Mode.LOCK_STAND, run): 1.0 for run in RUNNING},
    **{(walk, run): 0.5 for walk in WALKING for run in RUNNING},
    **{(run, walk): 0.5 for walk in WALKING for run in RUNNING},
    **{(run, Mode.DAMP): 0.2 for run in RUNNING},
}


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
