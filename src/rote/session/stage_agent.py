"""The state machine of a stage agent: it follows the conductor, and stops if the conductor is lost.

No I/O and no clock: messages and the time go in, effects come out. The caller carries out the
effects and reports how they ended.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from rote.session.stage_clock import StageClock
from rote.wire.stage import AgentState, ConductorState, Run, StartReport, Stop

CONDUCTOR_LOST_S = 1.0
"""Seconds without a message of the conductor after which the robot is stopped softly."""
MAX_BOUND_S = 0.010
"""Nothing is armed while the clock's error bound is larger than this."""
LATE_S = 0.02
"""A robot that would begin later than this does not begin."""
_REMEMBERED = 256


class AgentPhase(StrEnum):
    """What an agent is doing."""

    IDLE = "idle"
    LOADING = "loading"
    READY = "ready"
    """The score was loaded and can be played."""
    ARMING = "arming"
    ARMED = "armed"
    COMMITTED = "committed"
    """It will begin at its time, unless it is cancelled or stopped before."""
    RUNNING = "running"
    PAUSED = "paused"
    """It holds its pose in the section until the conductor resumes it."""
    STOPPED = "stopped"
    """Until a person resets it."""


# ---- effects ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LoadScore:
    """Fetch a score by its hash, and check it on this robot; then call `on_loaded`."""

    score: str


@dataclass(frozen=True, slots=True)
class PrepareRun:
    """Prepare a run; then call `on_prepared` with the robot's lead."""

    run: Run


@dataclass(frozen=True, slots=True)
class BeginRun:
    """Begin so that the section starts at `start_s` of our own clock; call `on_ended` after it."""

    run: Run
    start_s: float


@dataclass(frozen=True, slots=True)
class DropRun:
    """Forget what was prepared; a motion that is under way stops softly."""

    run: str
    reason: str


@dataclass(frozen=True, slots=True)
class StopRobot:
    """Stop the robot now, whatever it does; then call `on_stopped`."""

    stop: str


@dataclass(frozen=True, slots=True)
class HoldRun:
    """Pause the run, or let it go on; call `on_held` once the robot holds its pose.

    If that is not possible, call `fail`.
    """

    run: str
    holds: tuple[tuple[float, float | None], ...]
    """All pauses of the run, by our own clock."""


AgentEffect = LoadScore | PrepareRun | BeginRun | DropRun | StopRobot | HoldRun


class AgentSession:
    """The state machine of one agent."""

    def __init__(self, name: str, epoch: str) -> None:
        self.clock = StageClock()
        self.phase = AgentPhase.IDLE
        self._state = AgentState(name, epoch, 0)
        self._rank = (0, "")
        """The rank of the conductor that is obeyed. It only increases."""
        self._newest_number = -1
        self._received_s: float | None = None
        self._reset_stop = ""
        """The stop that was reset last."""
        self._run: Run | None = None
        self._dead_runs: list[str] = []
        """Runs that never begin here any more: over, cancelled, or refused."""
        self._stop: Stop | None = None

    # ---- input --------------------------------------------------------------------------

    def on_conductor_state(self, state: ConductorState, now_s: float) -> list[AgentEffect]:
        """Process a state of a conductor; an older or duplicate message is ignored.

        Only the conductor with the highest rank that was ever received is obeyed. A stop is
        obeyed from every conductor.
        """
        is_new = state.epoch != self._rank[1]
        if state.rank < self._rank or state.term < 1:
            return self.on_stop(state.stop) if is_new and state.stop is not None else []
        if is_new:
            effects = self._end_run("there is another conductor")
            self.clock.forget()
        elif state.number <= self._newest_number:
            return []
        else:
            effects = []
        self._rank, self._newest_number, self._received_s = state.rank, state.number, now_s
        if state.stop is not None:
            return effects + self.on_stop(state.stop)
        if self._stop is not None:
            if state.reset != self._stop.id or self.is_stopping:
                return effects
            self._stop, self.phase, self._reset_stop = None, AgentPhase.IDLE, state.reset
        return effects + self._follow_run(state.run, now_s)

    def on_stop(self, stop: Stop) -> list[AgentEffect]:
        """Process a stop from any source. Each new one is carried out, even after another.

        A stop that the user has reset is not new: a conductor without a connection may repeat it.
        """
        if stop.id == self._reset_stop or (self._stop is not None and self._stop.id == stop.id):
            return []
        effects = self._end_run(f"stopped by {stop.by}" if stop.by else "stopped")
        self._stop, self.phase = stop, AgentPhase.STOPPED
        return [*effects, StopRobot(stop.id)]

    def tick(self, now_s: float) -> list[AgentEffect]:
        """End the run if the conductor is lost."""
        if self._receives_conductor(now_s) or self.phase in (AgentPhase.IDLE, AgentPhase.STOPPED):
            return []
        return self._end_run("the conductor is lost")

    def resume(self, suspended_s: float) -> list[AgentEffect]:
        """Process that this computer was suspended: its clock stood still.

        A run in progress is ended, because the rest of it would be late.
        """
        self.clock.forget()
        if self._run is None:
            return []
        run, reason = self._run.id, f"its computer was suspended for {suspended_s:.1f} s"
        self._fail_run(run, reason)
        return [DropRun(run, reason)]

    # ---- how effects ended ----------------------------------------------------------------------

    def on_loaded(self, score: str, lead_s: float = 0.0, fault: str = "") -> None:
        """Process that a score was loaded and can be played with a lead, or the fault."""
        if self._run is None or self._run.scores.get(self._state.name) != score:
            return
        if fault:
            self._fail_run(score, fault)
        elif self.phase is AgentPhase.LOADING:
            self.phase = AgentPhase.READY
            self._state = replace(self._state, loaded=score, lead_s=lead_s)

    def on_prepared(self, run: str, lead_s: float, fault: str = "") -> None:
        """Process that a run is prepared, or the fault."""
        if self._run is None or self._run.id != run or self.phase is not AgentPhase.ARMING:
            return
        if fault:
            self._fail_run(run, fault)
            return
        self.phase = AgentPhase.ARMED
        self._state = replace(self._state, armed=run, lead_s=lead_s)

    def on_began(self, run: str) -> None:
        """Process that the robot was commanded to begin."""
        if self._run is not None and self._run.id == run and self.phase is AgentPhase.COMMITTED:
            self.phase = AgentPhase.RUNNING

    def on_ended(self, run: str, report: StartReport | None, fault: str = "") -> None:
        """Process that a run has ended on this agent."""
        if report is not None:
            self._state = replace(self._state, report=report)
        if self._run is None or self._run.id != run:
            return
        if fault:
            self._fail_run(run, fault)
            return
        _remember_id(self._dead_runs, run)
        self._run, self.phase = None, AgentPhase.IDLE
        self._state = replace(self._state, done=run, armed="", loaded="")

    def on_held(self, hold: int) -> None:
        """Process that the robot holds its pose in pause number `hold`; 0 if it holds none."""
        self._state = replace(self._state, held=hold)

    def fail(self, run: str, reason: str) -> list[AgentEffect]:
        """End a run that cannot go on here."""
        if self._run is None or self._run.id != run:
            return []
        self._fail_run(run, reason)
        return [DropRun(run, reason)]

    def on_stopped(self, stop: str) -> None:
        """Process that the robot has confirmed a stop."""
        self._state = replace(self._state, stopped=stop)

    # ---- output ---------------------------------------------------------------------------

    def state(self, now_s: float, **facts: object) -> AgentState:
        """Return what to publish now; the beat counts these calls. `facts` are other fields."""
        self._state = replace(self._state, beat=self._state.beat + 1)
        return replace(
            self._state,
            phase=self.phase.value,
            clock_bound_s=self.clock.bound_s(now_s),
            round_trip_s=self.clock.round_trip_s,
            term=self._rank[0],
            conductor=self._rank[1],
            conducted=self._receives_conductor(now_s),
            **facts,  # type: ignore[arg-type]
        )

    @property
    def is_stopping(self) -> bool:
        """Whether a stop was received and the robot has not confirmed it yet."""
        return self._stop is not None and self._state.stopped != self._stop.id

    @property
    def run(self) -> Run | None:
        """The run that this agent takes part in."""
        return self._run

    @property
    def conductor(self) -> str:
        """The epoch of the conductor that is obeyed; "" before the first message."""
        return self._rank[1]

    # ---- inside ---------------------------------------------------------------------------------

    def _receives_conductor(self, now_s: float) -> bool:
        """Whether the messages of the obeyed conductor arrive."""
        return self._received_s is not None and now_s - self._received_s <= CONDUCTOR_LOST_S

    def _follow_run(self, run: Run | None, now_s: float) -> list[AgentEffect]:
        """Return the effects of the run that the conductor currently requests."""
        name = self._state.name
        if run is None or name not in run.scores or run.id in self._dead_runs:
            return self._end_run("it was cancelled")
        if self._run is None or self._run.id != run.id:
            effects = self._end_run("another section was begun")
            self._run, self.phase = run, AgentPhase.LOADING
            self._state = replace(self._state, fault="", fault_of="", armed="", loaded="", held=0)
            return [*effects, LoadScore(run.scores[name])]
        before, self._run = self._run, run
        if run.holds != before.holds and self.phase in (AgentPhase.RUNNING, AgentPhase.PAUSED):
            return self._follow_holds(run, now_s)
        if run.start_s is not None and self.phase is AgentPhase.READY:
            return self._arm_run(run, now_s)
        if run.start_s is not None and self.phase is AgentPhase.ARMED and run.committed:
            return self._commit_run(run, run.start_s - self.clock.offset_s(now_s), now_s)
        return []

    def _follow_holds(self, run: Run, now_s: float) -> list[AgentEffect]:
        """Pause or go on, at the times of the conductor."""
        offset_s = self.clock.offset_s(now_s)
        holds = tuple(
            (begin_s - offset_s, None if end_s is None else end_s - offset_s)
            for begin_s, end_s in run.holds
        )
        is_paused = bool(holds) and holds[-1][1] is None
        self.phase = AgentPhase.PAUSED if is_paused else AgentPhase.RUNNING
        self._state = replace(self._state, held=0)
        return [HoldRun(run.id, holds)]

    def _arm_run(self, run: Run, now_s: float) -> list[AgentEffect]:
        bound_s = self.clock.bound_s(now_s)
        if bound_s > MAX_BOUND_S:
            # The next message tries again. If the clock stays bad, the conductor refuses the run.
            fault = f"its clock is only known to within {1000 * bound_s:.1f} ms"
            self._state = replace(self._state, fault=fault, fault_of="")
            return []
        self.phase = AgentPhase.ARMING
        self._state = replace(self._state, fault="", fault_of="")
        return [PrepareRun(run)]

    def _commit_run(self, run: Run, start_s: float, now_s: float) -> list[AgentEffect]:
        if now_s > start_s - self._state.lead_s + LATE_S:
            self._fail_run(run.id, "the commit arrived too late")
            return [DropRun(run.id, "too late")]
        self.phase = AgentPhase.COMMITTED
        return [BeginRun(run, start_s)]

    def _end_run(self, reason: str) -> list[AgentEffect]:
        if self._run is None:
            return []
        run, self._run = self._run.id, None
        _remember_id(self._dead_runs, run)
        self.phase = AgentPhase.STOPPED if self._stop is not None else AgentPhase.IDLE
        self._state = replace(self._state, armed="", loaded="", done=run)
        return [DropRun(run, reason)]

    def _fail_run(self, failed_id: str, fault: str) -> None:
        """End the run with a fault; `failed_id` is the id of the run, or the hash of its score."""
        assert self._run is not None
        _remember_id(self._dead_runs, self._run.id)
        self._run, self.phase = None, AgentPhase.IDLE
        self._state = replace(
            self._state, fault=fault[:400], fault_of=failed_id, armed="", loaded=""
        )


def _remember_id(ids: list[str], new_id: str) -> None:
    """Append an id; only the newest `_REMEMBERED` ones are kept."""
    ids.append(new_id)
    del ids[:-_REMEMBERED]
