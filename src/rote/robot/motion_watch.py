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

BEGIN_TIMEOUT_S = 3.0
"""Timeout in seconds for a motion to begin after it was accepted. A G1 reports the beginning up to
0.74 s later; a robot that reports once per second needs almost 2 s.
"""
MAX_REPORT_DELAY_S = 0.85
"""Maximum delay of the report that a motion began: 0.74 s in the logs of a G1, and 0.1 s between
two reports. A motion that lacks more than this counts as cut short.
"""
MAX_OVERHEAD_S = 30.0
"""Maximum time that a playback takes in addition to its motion: a soft move to the first pose, a
release of about 4 s, and late reports.
"""
STATE_TIMEOUT_S = 5.0
"""Timeout without a state during a playback; a silent connection is given up after half of it."""
MAX_SETTLING_S = 10.0
"""Maximum time for which the arms still settle from the previous motion after the robot accepted
this one: a release of a G1 takes about 4.1 s, and some robots report it 3 s late.
"""
MOTIONLESS_S = 2.0
"""Joints that did not move for this long are at rest, if the robot does not report it: longer than
a G1 pauses between a motion and its release.
"""
MAX_PAUSE_S = 3600.0
"""Maximum duration of a pause; then the motion counts as one that does not end."""
_MOTIONLESS_RAD = 0.02
"""Joints that move less are motionless: arms that hold sway less, taught motions move more."""
_MIN_COMPLETE_FRACTION = 0.9


class MotionWatch:
    """Follows one motion from its request on."""

    def __init__(self, name: str, *, loops: bool = False, limit_s: float | None = None) -> None:
        """`limit_s` is the time limit of the motion; default: derived from its duration."""
        self.name = name
        self._limit_s = limit_s
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
        self._begun_at = self._limit_counts_from = 0.0
        self._seen_at = self._settling_at = 0.0
        self._newest: RobotState | None = None
        self._phase_before = Phase.NONE
        self._reports_phase = False
        self._joints: JointWatch | None = None
        self._motion_began_us: int | None = None
        self._motion_ended_us: int | None = None

    def on_request_sent(self, build: Build, latest: RobotState | None, now: float) -> None:
        """Start watching: the motion is requested now, and `latest` is the newest state."""
        self._requested, self._seen_at = True, now
        self._phase_before = Phase.NONE if latest is None else latest.phase
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
        settling = not self.begun and _is_settling(state)
        if settling:
            self._settling_at = now
        if self._joints is not None and state.has_joints:
            if settling:
                self._joints.reset()
            self._joints.on_state(state, now)
        self._update_phase(state, now)
        if not self.begun and self._joints is not None and self._joints.moved:
            self._mark_begun(now)
            self._motion_began_us = state.time_us
        self._detect_end(state, now)

    def _mark_begun(self, now: float) -> None:
        self.begun, self._begun_at, self._limit_counts_from = True, now, now

    def _update_phase(self, state: RobotState, now: float) -> None:
        """Detect the beginning and end of the motion from the reported phase."""
        phase = state.phase
        if not state.has_phase:
            return
        # The phases of one motion only increase, so a lower one shows that an earlier motion ended.
        if phase < self._phase_before:
            self._phase_before = Phase.NONE
        if self._phase_before is not Phase.NONE:
            return  # the earlier motion, which ran when this one was requested, continues
        # Phase.RETURN does not prove a beginning: it may belong to an earlier teaching.
        is_under_way = phase in (Phase.APPROACH, Phase.PLAYING)
        if is_under_way and not self._reports_phase:
            self._reports_phase, self._motion_began_us = True, None
            if not self.begun:
                self._mark_begun(now)
        if not self._reports_phase:
            return
        if not is_under_way and self.ended_at is None:
            self.ended_at = now
        if phase is Phase.PLAYING and self._motion_began_us is None:
            self._motion_began_us = state.time_us
        elif phase is not Phase.PLAYING and self._motion_began_us is not None:
            self._motion_ended_us = self._motion_ended_us or state.time_us

    def _detect_end(self, state: RobotState, now: float) -> None:
        """Detect the end: by the phase if the robot reports it, otherwise by motionless joints."""
        if self._reports_phase and state.has_phase:
            if state.phase is Phase.NONE:
                self._mark_over(state, self._moved_s)
        elif self.begun and self._joints is not None and state.has_joints:
            self._detect_end_by_joints(state, self._joints.motionless_s(now), now)

    def _detect_end_by_joints(self, state: RobotState, motionless_s: float, now: float) -> None:
        """Detect the end, given that no joint has moved for `motionless_s` seconds."""
        if self._stopped_at is not None:
            if min(motionless_s, now - self._stopped_at) >= MOTIONLESS_S:
                self.completed, self.reason = False, "a stop was requested"
            return
        since_begin_s = now - self._begun_at
        is_due = since_begin_s >= self._duration_s and not self._loops
        if is_due and motionless_s >= MOTIONLESS_S:
            self._mark_over(state, since_begin_s - motionless_s)

    def _mark_over(self, state: RobotState, moved_s: float | None) -> None:
        """Mark the motion as over; it took `moved_s` seconds, None if that is not known."""
        self.completed = False
        if state.stopped_early:
            self.reason = "the robot reports that it was stopped"
        elif moved_s is not None and self._is_cut_short(moved_s):
            self.reason = (
                f"the robot moved for {max(moved_s, 0.0):.1f} s of {self._duration_s:.1f} s: "
                "another client, its remote or the robot itself stopped it"
            )
        else:
            self.completed = True

    def _is_cut_short(self, moved_s: float) -> bool:
        """Whether a motion that took `moved_s` must have been stopped.

        Some wires do not report stops by other clients.
        """
        return not self._loops and (
            moved_s < _MIN_COMPLETE_FRACTION * self._duration_s - MAX_REPORT_DELAY_S
        )

    @property
    def _moved_s(self) -> float | None:
        """How long it moved, by the robot's clock; None if that is not known."""
        if self._motion_began_us is None or self._motion_ended_us is None:
            return None
        return (self._motion_ended_us - self._motion_began_us) / 1e6

    # ---- every wait has an end ------------------------------------------------------------------

    def begin_pause(self) -> None:
        """Allow for a pause whose length is not known yet."""
        self._duration_s += MAX_PAUSE_S

    def end_pause(self, paused_s: float) -> None:
        """Record that the motion continues after a pause of `paused_s` seconds."""
        self._duration_s += paused_s - MAX_PAUSE_S

    def extend_deadlines(self, stall_s: float) -> None:
        """Extend all deadlines by the time during which this process did not run."""
        self._seen_at += stall_s
        self._settling_at += stall_s
        self._limit_counts_from += stall_s
        if self._accepted_at is not None:
            self._accepted_at += stall_s

    def timeout_error(self, now: float) -> RoteError | None:
        """Return the error that ends the wait; None while there is still time."""
        if self.completed is not None or self._accepted_at is None:
            return None
        if not self.begun:
            # Arms that are still settling begin the motion only afterwards.
            settled_at = min(self._settling_at, self._accepted_at + MAX_SETTLING_S)
            since = max(self._accepted_at, settled_at)
            return self._make_not_begun_error() if now - since >= BEGIN_TIMEOUT_S else None
        if now - self._seen_at >= STATE_TIMEOUT_S:
            return NoAnswerError(
                f"the robot has reported no state for {STATE_TIMEOUT_S:.0f} s while it plays "
                f"{self.name!r}; a stop was sent",
                Text(
                    "Look at the robot before you touch it. Then check its state: {status}.",
                    status=Act.STATUS,
                ),
            )
        if self._stopped_at is not None and now - self._stopped_at >= MAX_OVERHEAD_S:
            return TimeLimitError(
                f"the robot confirmed the stop of {self.name!r}, but its reports did not "
                f"show it at rest within {MAX_OVERHEAD_S:.0f} s; another stop was sent",
                Text(
                    "Look at the robot before you touch it; if it moves, use its remote "
                    "(L2+B). Then check its state: {status}.",
                    status=Act.STATUS,
                ),
            )
        limit_s = self._limit_s or (self._duration_s or MAX_MOTION_S) * 1.5 + MAX_OVERHEAD_S
        if not self._loops and now - self._limit_counts_from >= limit_s:
            return TimeLimitError(
                f"{self.name!r} should have ended, but the robot still plays it after "
                f"{limit_s:.0f} s; a stop was sent",
                Text(
                    "Look at the robot. If it is at rest, its reports are wrong; to "
                    "examine them: {doctor}.",
                    doctor=Act.DOCTOR,
                ),
            )
        return None

    def _make_not_begun_error(self) -> NotBegunError:
        state = self._newest
        if state is not None and (state.has_phase or state.has_joints):
            observation = "it reports no playback and its joints have not moved"
        else:
            observation = "it reports neither an arm phase nor joint positions"
        return NotBegunError(
            f"the robot accepted {self.name!r}, but its reports did not show it begin "
            f"within {BEGIN_TIMEOUT_S:.0f} s: {observation}. A stop was sent",
            Text(
                "Look at the robot. Check its state ({status}) and that it stands "
                "balanced, then play the motion again.",
                status=Act.STATUS,
            ),
        )

    def is_late_to_begin(self, now: float) -> bool:
        """Whether a beginning should have been reported by now, and was not."""
        accepted_at = self._accepted_at
        return (
            not self.begun and accepted_at is not None and now - accepted_at >= MAX_REPORT_DELAY_S
        )

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
    return state.has_phase and (state.phase is Phase.RETURN or state.recording)


class JointWatch:
    """Tracks whether the taught joints have moved, and how long they have been motionless."""

    def __init__(self, build: Build) -> None:
        # On an unknown machine any joint may be a taught one.
        self._columns = build.taught_columns or tuple(range(len(build.names)))
        self._start_pose: tuple[float, ...] | None = None
        self._last_moved_pose: tuple[float, ...] = ()
        self._last_moved_at = 0.0
        self.moved = False

    def on_state(self, state: RobotState, now: float) -> None:
        """Process the positions of one state."""
        joints_rad = state.joints_rad
        pose = tuple(joints_rad[column] for column in self._columns if column < len(joints_rad))
        if self._start_pose is None or len(pose) != len(self._start_pose):
            self._start_pose = self._last_moved_pose = pose
            self._last_moved_at = now
        elif _find_max_difference_rad(pose, self._last_moved_pose) > _MOTIONLESS_RAD:
            self._last_moved_pose, self._last_moved_at = pose, now
            self.moved |= _find_max_difference_rad(pose, self._start_pose) > MOVED_RAD

    def reset(self) -> None:
        """Start over: the movement so far belonged to another motion."""
        self._start_pose, self.moved = None, False

    def motionless_s(self, now: float) -> float:
        """Return for how many seconds nothing has moved."""
        return now - self._last_moved_at


def _find_max_difference_rad(first: tuple[float, ...], second: tuple[float, ...]) -> float:
    return max((abs(a - b) for a, b in zip(first, second, strict=True)), default=0.0)
