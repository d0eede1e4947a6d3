"""Detects the start and end of a motion from the robot's reports; without I/O or clock.

An accepted command is no proof of a motion. A motion has begun when the robot reports that it
plays, or, if it reports nothing about that, when its taught joints have moved. It is over when the
robot reports so, or when the joints have been motionless for a while and its duration has passed.
"""

from rote.errors import NoAnswerError, NotBegunError, RoteError, TimeLimitError
from rote.messages import Phase, RobotState
from rote.model.family import MAX_MOTION_S, MOVED_RAD, Build
from rote.robot.api_values import Progress
from rote.text import Act, Text

BEGIN_S = 3.0
"""Timeout for a motion to begin after it was accepted. A G1 reports
it up to 0.74 s later; a robot that reports once per second needs almost 2 s.
"""
LATE_S = 0.85
"""How late a robot may report the beginning of a motion before the motion counts as cut short: 0.74
s in the logs of a G1, and 0.1 s between two reports.
"""
ENDS_S = 30.0
"""How much longer than the motion a playback may take: a soft move to the first pose, a release of
about 4 s, and late reports.
"""
SILENT_S = 5.0
"""Timeout without a state during a playback; a silent connection is given up after half of it."""
RESTS_S = 10.0
"""How long after the robot accepted a motion its arms may still be coming to rest from the one
before: a release of a G1 takes about 4.1 s, and some robots report it 3 s late.
"""
MOTIONLESS_S = 2.0
"""Joints that did not move for this long are at rest, if the robot does not report it: longer than
a G1 pauses between a motion and its release.
"""
_MOTIONLESS_RAD = 0.02
"""Smaller than any taught motion, larger than the sway of arms that hold."""
_NEARLY_ALL = 0.9


class MotionWatch:
    """Follows one motion from its request on."""

    def __init__(self, name: str, *, loops: bool = False, most_s: float | None = None) -> None:
        """`most_s` is the time limit of the motion; default: derived from its duration."""
        self.name = name
        self._most_s = most_s
        self.begun = False
        """Whether it was seen to begin."""
        self.completed: bool | None = None
        """Whether it ran to its end; None until it is over."""
        self.ended_at: float | None = None
        """When the robot was first seen to return; None before that."""
        self.reason = ""
        """Why it was over before its end, as far as the robot reports it."""
        self._loops = loops
        self._duration_s = 0.0
        self._requested = False
        self._accepted_at: float | None = None
        self._stopped_at: float | None = None
        self._begun_at = self._counted_from = 0.0
        self._seen_at = self._resting_at = 0.0
        self._newest: RobotState | None = None
        self._before = Phase.NONE
        self._by_phase = False
        self._joints: JointWatch | None = None
        self._motion_began_us: int | None = None
        self._motion_ended_us: int | None = None

    def on_request_sent(self, build: Build, latest: RobotState | None, now: float) -> None:
        """Start watching: the motion is requested now, and `latest` is the newest state."""
        self._requested, self._seen_at = True, now
        self._before = Phase.NONE if latest is None else latest.phase
        self._joints = JointWatch(build)
        if latest is not None and latest.joints_rad:
            self._joints.on_state(latest, now)

    def on_accepted(self, duration_s: float, now: float) -> None:
        """The robot accepted; the motion itself takes `duration_s`, 0 if unknown."""
        self._duration_s, self._accepted_at = duration_s, now

    def on_stop_confirmed(self, now: float) -> None:
        """The robot confirmed a stop. Safe to repeat."""
        if self._stopped_at is None:
            self._stopped_at = now

    def on_state(self, state: RobotState, now: float) -> None:
        """Process one state."""
        if not self._requested or self.completed is not None:
            return
        self._newest, self._seen_at = state, now
        resting = not self.begun and _is_settling(state)
        if resting:
            self._resting_at = now
        if self._joints is not None and state.joints_told:
            if resting:
                self._joints.reset()
            self._joints.on_state(state, now)
        self._update_phase(state, now)
        if not self.begun and self._joints is not None and self._joints.moved:
            self._mark_begun(now)
            self._motion_began_us = state.time_us
        self._detect_end(state, now)

    def _mark_begun(self, now: float) -> None:
        self.begun, self._begun_at, self._counted_from = True, now, now

    def _update_phase(self, state: RobotState, now: float) -> None:
        phase = state.phase
        if not state.phase_told:
            return
        # After a phase, only a later phase of the same motion can follow.
        if phase < self._before:
            self._before = Phase.NONE
        if self._before is not Phase.NONE:
            return  # still the phase that was there when the motion was requested
        # A return alone may belong to a teaching before this motion.
        if phase in (Phase.APPROACH, Phase.PLAYING) and not self._by_phase:
            self._by_phase, self._motion_began_us = True, None
            if not self.begun:
                self._mark_begun(now)
        if not self._by_phase:
            return
        if phase not in (Phase.APPROACH, Phase.PLAYING) and self.ended_at is None:
            self.ended_at = now
        if phase is Phase.PLAYING and self._motion_began_us is None:
            self._motion_began_us = state.time_us
        elif phase is not Phase.PLAYING and self._motion_began_us is not None:
            self._motion_ended_us = self._motion_ended_us or state.time_us

    def _detect_end(self, state: RobotState, now: float) -> None:
        if self._by_phase and state.phase_told:
            if state.phase is Phase.NONE:
                self._mark_over(state, short_s=self._moved_s if self._cut_short else None)
        elif self.begun and self._joints is not None and state.joints_told:
            motionless_s, moved_s = self._joints.motionless_s(now), now - self._begun_at
            if self._stopped_at is not None:
                if min(motionless_s, now - self._stopped_at) >= MOTIONLESS_S:
                    self.completed, self.reason = False, "a stop was requested"
            elif motionless_s >= MOTIONLESS_S and moved_s >= self._duration_s and not self._loops:
                short = moved_s - motionless_s < _NEARLY_ALL * self._duration_s - LATE_S
                self._mark_over(state, short_s=moved_s - motionless_s if short else None)

    def _mark_over(self, state: RobotState, short_s: float | None) -> None:
        self.completed = not state.stopped_early and short_s is None
        if state.stopped_early:
            self.reason = "the robot reports that it was stopped"
        elif short_s is not None:
            self.reason = (
                f"the robot moved for {max(short_s, 0.0):.1f} s of {self._duration_s:.1f} s: "
                "another client, its remote or the robot itself stopped it"
            )

    @property
    def _cut_short(self) -> bool:
        """Whether it moved for much less than its duration: some wires do not report stops by
        other clients.
        """
        moved_s = self._moved_s
        if moved_s is None or self._loops:
            return False
        return moved_s < _NEARLY_ALL * self._duration_s - LATE_S

    @property
    def _moved_s(self) -> float | None:
        """How long it moved, by the robot's clock; None if that is not known."""
        if self._motion_began_us is None or self._motion_ended_us is None:
            return None
        return (self._motion_ended_us - self._motion_began_us) / 1e6

    # ---- every wait has an end ------------------------------------------------------------------

    def extend_deadlines(self, stall_s: float) -> None:
        """Extend all deadlines by the time during which this process did not run."""
        self._seen_at += stall_s
        self._resting_at += stall_s
        self._counted_from += stall_s
        if self._accepted_at is not None:
            self._accepted_at += stall_s

    def timeout_error(self, now: float) -> RoteError | None:
        """Return the error that ends the wait; None while there is still time."""
        if self.completed is not None or self._accepted_at is None:
            return None
        if not self.begun:
            # Arms that still come to rest begin the motion only afterwards.
            rested_at = min(self._resting_at, self._accepted_at + RESTS_S)
            since = max(self._accepted_at, rested_at)
            return self.not_begun_error() if now - since >= BEGIN_S else None
        if now - self._seen_at >= SILENT_S:
            return NoAnswerError(
                f"the robot has reported no state for {SILENT_S:.0f} s while it plays "
                f"{self.name!r}; a stop was sent",
                Text(
                    "Look at the robot before you touch it. Then ask it: {status}.",
                    status=Act.STATUS,
                ),
            )
        if self._stopped_at is not None and now - self._stopped_at >= ENDS_S:
            return TimeLimitError(
                f"the robot confirmed the stop of {self.name!r} and was not seen to rest within "
                f"{ENDS_S:.0f} s; another stop was sent",
                Text(
                    "Look at the robot before you touch it; if it moves, use its remote (L2+B). "
                    "Then ask it: {status}.",
                    status=Act.STATUS,
                ),
            )
        most_s = self._most_s or (self._duration_s or MAX_MOTION_S) * 1.5 + ENDS_S
        if not self._loops and now - self._counted_from >= most_s:
            return TimeLimitError(
                f"{self.name!r} should be over and the robot still plays after {most_s:.0f} s; "
                "a stop was sent",
                Text(
                    "Look at the robot. If it rests, its reports are wrong: {doctor}.",
                    doctor=Act.DOCTOR,
                ),
            )
        return None

    def not_begun_error(self) -> NotBegunError:
        """Return the error for a motion that the robot accepted and that did not begin."""
        silent = self._newest is None or not (self._newest.phase_told or self._newest.joints_told)
        seen = "it reports neither what its arms do nor where its joints are"
        if not silent:
            seen = "it reports no playback and its joints have not moved"
        return NotBegunError(
            f"the robot accepted {self.name!r} and was not seen to begin within {BEGIN_S:.0f} s:"
            f" {seen}. A stop was sent",
            Text(
                "Look at the robot. See what it reports ({status}) and that it stands balanced; "
                "then play it again.",
                status=Act.STATUS,
            ),
        )

    def stopped_before_it_began(self, now: float) -> bool:
        """Whether nothing began, although a stop requested in the meantime has had time to take
        effect.
        """
        accepted_at = self._accepted_at
        return not self.begun and accepted_at is not None and now - accepted_at >= LATE_S

    # ---- progress --------------------------------------------------------------------------

    @property
    def progress(self) -> Progress | None:
        """The progress by the newest state; None before the first."""
        state = self._newest
        if state is None:
            return None
        elapsed_s, rounds = 0.0, 0.0
        if self._motion_began_us is not None:
            elapsed_s = (state.time_us - self._motion_began_us) / 1e6
        if self._loops and self._duration_s:
            rounds, elapsed_s = divmod(elapsed_s, self._duration_s)
        if state.phase is Phase.RETURN:
            elapsed_s = self._duration_s
        elapsed_s = min(max(elapsed_s, 0.0), self._duration_s)
        fraction = elapsed_s / self._duration_s if self._duration_s else 0.0
        return Progress(
            phase=state.phase,
            fraction=fraction,
            remaining_s=self._duration_s - elapsed_s,
            round=int(rounds) + 1,
            state=state,
        )


def _is_settling(state: RobotState) -> bool:
    """Whether the joints are still moving from before this motion."""
    return state.phase_told and (state.phase is Phase.RETURN or state.recording)


class JointWatch:
    """Tracks whether the taught joints have moved, and how long they have been motionless."""

    def __init__(self, build: Build) -> None:
        # On an unknown machine any joint may be a taught one.
        self._columns = build.taught_columns or tuple(range(len(build.names)))
        self._start: tuple[float, ...] | None = None
        self._last: tuple[float, ...] = ()
        self._last_moved_at = 0.0
        self.moved = False

    def on_state(self, state: RobotState, now: float) -> None:
        """Process the positions of one state."""
        joints_rad = state.joints_rad
        pose = tuple(joints_rad[column] for column in self._columns if column < len(joints_rad))
        if self._start is None or len(pose) != len(self._start):
            self._start = self._last = pose
            self._last_moved_at = now
        elif _max_difference_rad(pose, self._last) > _MOTIONLESS_RAD:
            self._last, self._last_moved_at = pose, now
            self.moved |= _max_difference_rad(pose, self._start) > MOVED_RAD

    def reset(self) -> None:
        """Start over: the movement so far belonged to another motion."""
        self._start, self.moved = None, False

    def motionless_s(self, now: float) -> float:
        """Return for how many seconds nothing has moved."""
        return now - self._last_moved_at


def _max_difference_rad(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    return max((abs(a - b) for a, b in zip(one, other, strict=True)), default=0.0)
