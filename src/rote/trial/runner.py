"""Runs a trial step by step, each confirmed by the operator and with a time limit.

However it ends (last step, Ctrl-C, lost robot), the limbs are made to hold, and the result contains
what was learned until then.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from rote.connection import connect, connect_tapped
from rote.connection import stop as stop_at
from rote.errors import BadRequestError, LinkError, RoteError
from rote.platform.loop import to_the_end
from rote.robot.robot import Robot
from rote.sim.world import World
from rote.transport.a1.client import A1Client
from rote.transport.services.client import ServicesClient
from rote.transport.tap import Tap
from rote.transport.udp.client import TeachingClient
from rote.transport.wires import wire_of
from rote.trial.a1_steps import A1_STEPS
from rote.trial.context import StepImpossibleError, TimelineMark, TrialContext, TrialGuide
from rote.trial.g1_steps import G1_STEPS, delete_own_actions, make_arms_hold
from rote.trial.recorder import BUS, CHANNEL, FRAMES, QUADRUPED, TrialRecorder
from rote.trial.steps import TrialLevel, TrialStep, steps_for

COMPLETE, INTERRUPTED, LOST, ENDED = "complete", "interrupted", "lost", "ended"
"""How a trial ended: after its last step, by Ctrl-C, robot lost, by the operator."""
FAULT = "a bug in rote, please report it:"
"""Begins the note of a step that an unexpected error ended."""
DONE, SKIPPED, CANNOT, FAILED = "done", "skipped", "cannot", "failed"
"""How a step ended."""
PROTOCOLS = {"webrtc": CHANNEL, "dds": BUS, "udp": FRAMES, "sim": FRAMES, "a1": QUADRUPED}
"""The protocol of each wire."""
UNCONFIRMED = "The robot did NOT confirm the stop; use the remote (L2+B)."
_STOP_S = 3.0
"""Timeout for one attempt to stop the robot."""
_ABILITIES = {
    "presets": "play factory actions",
    "list": "list its actions",
    "rename": "rename an action",
    "delete": "delete an action",
    "pause": "pause a recording",
    "pose": "turn its body",
    "control": "be controlled joint by joint",
    "teach": "be taught",
}
"""What a robot with an ability can do, after "the robot cannot"."""

Opener = Callable[[Tap], AbstractAsyncContextManager[Robot]]
"""Connects to the robot, with a tap on the connection."""


@dataclass(frozen=True, slots=True)
class StepResult:
    """How one step ended."""

    step: TrialStep
    result: str
    note: str
    at_s: float
    seconds: float


@dataclass(slots=True)
class TrialResult:
    """How a trial ended, and everything that it measured."""

    url: str
    wire: str
    level: TrialLevel
    ended: str = COMPLETE
    reason: str = ""
    seconds: float = 0.0
    steps: list[StepResult] = field(default_factory=list)
    measured: dict[str, Any] = field(default_factory=dict)
    timeline: list[TimelineMark] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    """The trial's own actions that remain on the robot."""
    stop_confirmed: bool = True
    """Whether the robot confirmed every stop that ended a step or the trial."""
    recorder: TrialRecorder | None = None


class TrialEndedError(Exception):
    """The operator ended the trial."""


async def run_trial(
    url: str,
    level: TrialLevel,
    guide: TrialGuide,
    *,
    timeout: float = 5.0,
    key: str | None = None,
    world: World | None = None,
    opener: Opener | None = None,
) -> TrialResult:
    """Run a trial of the robot at `url`; raises `RoteError` only if the connection fails.

    `opener` replaces connecting by URL; `world` is the simulated robot for `sim://`.
    """
    wire = "a1" if wire_of(url).has_levels else wire_of(url).scheme
    result = TrialResult(url, wire, level)
    tap = Tap()

    @asynccontextmanager
    async def connect_by_url(tap: Tap) -> AsyncIterator[Robot]:
        async with connect_tapped(
            url,
            tap,
            timeout=timeout,
            key=key,
            world=world,
            ability=_find_required_ability(url, level),
        ) as robot:
            yield robot

    def connect_another() -> AbstractAsyncContextManager[Robot]:
        return connect(url, timeout=timeout, key=key, reconnect=False)

    recorder = result.recorder = TrialRecorder(PROTOCOLS[wire])
    tap.on_message(recorder.record_message)
    async with (opener or connect_by_url)(tap) as robot:
        context = TrialContext(robot, tap, recorder, url, wire, guide.note, connect_another)
        context.measured["wire"] = wire
        recorder.on_activity(lambda at_s, activity: _note_activity(context, at_s, activity))
        unsubscribe = robot.on_state(recorder.record_state)
        trial_run = _TrialRun(context, guide, result, key)
        try:
            await trial_run.run_all_steps()
        finally:
            unsubscribe()
            result.measured, result.timeline = context.measured, context.timeline
            result.seconds = context.now_s
    return result


def _find_required_ability(url: str, level: TrialLevel) -> str | None:
    """Return the ability that a trial of an A1's motors needs; None for any other trial.

    With it the connection refuses a standing robot, which would sink when its motors are taken
    over.
    """
    if not wire_of(url).has_levels or "level=low" not in url:
        return None
    return "states" if level is TrialLevel.LOOK else "control"


def _note_activity(context: TrialContext, at_s: float, activity: str) -> None:
    context.timeline.append(TimelineMark(round(at_s, 3), "activity", activity))


class _TrialRun:
    """Runs the steps of one trial."""

    def __init__(
        self, context: TrialContext, guide: TrialGuide, result: TrialResult, key: str | None
    ) -> None:
        self._context, self._guide, self._result, self._key = context, guide, result, key
        self._lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._step_may_soften_arms = False
        """Whether the current step may make the arms soft."""
        client = context.tap.client
        if isinstance(client, (ServicesClient, TeachingClient)):
            client.on_loss(self._on_loss)
        elif isinstance(client, A1Client):
            client.on_trouble(self._on_trouble)

    def _on_loss(self, error: RoteError) -> None:
        if not self._lost.done():
            self._lost.set_result(str(error))

    def _on_trouble(self, error: RoteError) -> None:
        """Handle an error that an A1's client reports: only a lost link ends the trial."""
        if isinstance(error, LinkError):
            self._on_loss(error)

    async def run_all_steps(self) -> None:
        """Run all steps, then make the robot safe and delete what the trial stored."""
        result = self._result
        try:
            for step in steps_for(result.level, result.wire):
                await self._run_step(step)
        except asyncio.CancelledError:
            result.ended, result.reason = INTERRUPTED, "the trial was interrupted"
            task = asyncio.current_task()
            if task is not None:
                task.uncancel()
        except TrialEndedError:
            result.ended, result.reason = ENDED, "the operator ended the trial"
        except _LostError as lost:
            result.ended, result.reason = LOST, str(lost)
        except BaseException:  # a bug in rote: the limbs must still hold
            await to_the_end(self._make_safe())
            raise
        finishing = asyncio.ensure_future(self._finish())
        with suppress(asyncio.CancelledError):  # Ctrl-C again: still write a report
            await to_the_end(finishing)
        finishing.result()

    async def _finish(self) -> None:
        """Make the robot safe and delete the trial's actions; only try to stop a lost robot."""
        context, result = self._context, self._result
        if self._lost.done() and result.ended != LOST:
            result.ended, result.reason = LOST, self._lost.result()
        if result.ended == LOST:
            context.mark("note", "the robot was lost")
            if await self._stop_by_new_connection():
                context.mark("note", "a new connection stopped the robot")
            else:
                self._warn_unconfirmed()
            result.left = sorted(context.saved_actions)
            return
        await self._make_safe()
        if context.own_actions:
            result.left = await delete_own_actions(context)

    async def _stop_by_new_connection(self) -> bool:
        """Stop a lost robot through a new connection; return whether it confirmed the stop."""
        if wire_of(self._result.url).lives_here:
            return False  # a new connection would reach another simulated robot
        with suppress(RoteError, TimeoutError, OSError, RuntimeError):
            async with asyncio.timeout(2 * _STOP_S):
                await stop_at(self._result.url, key=self._key, timeout=_STOP_S)
            return True
        return False

    async def _make_safe(self) -> None:
        """Stop the robot and make its arms hold; warn the operator if it does not confirm."""
        stopped = False
        with suppress(RoteError, TimeoutError):
            async with asyncio.timeout(_STOP_S * 3):
                await self._context.robot.stop()
            stopped = True
        if self._context.arms_may_be_soft:
            with suppress(RoteError, TimeoutError):
                async with asyncio.timeout(_STOP_S * 3):
                    await make_arms_hold(self._context)
        if self._context.arms_may_be_soft:
            self._context.mark("note", "the robot did not confirm that its arms hold")
            self._guide.note("The arms may still be soft: hold them, and use the robot's remote.")
        if not stopped and not self._lost.done():  # a lost robot is stopped by `_finish`
            self._warn_unconfirmed()

    def _warn_unconfirmed(self) -> None:
        """Warn the operator that the robot did not confirm a stop, and whether arms may be soft."""
        self._result.stop_confirmed = False
        self._context.mark("note", "the robot did not confirm the stop")
        if self._result.level is TrialLevel.LOOK:
            return  # nothing was made to move or to go limp
        # A step may have made the arms soft although no state arrived that reports it.
        state = self._context.robot.state
        may_be_soft = (
            state is None
            or state.arms_soft
            or self._context.arms_may_be_soft
            or self._step_may_soften_arms
        )
        warning = "The arms may still be soft: hold them. " if may_be_soft else ""
        self._guide.note(f"{warning}{UNCONFIRMED}")

    async def _run_step(self, step: TrialStep) -> None:
        """Ask the operator, then run one step and record its result."""
        context, at_s = self._context, self._context.now_s
        missing = [need for need in step.needs if need not in context.robot.abilities]
        if missing:
            actions = " and ".join(_ABILITIES.get(ability, ability) for ability in missing)
            self._record_result(step, CANNOT, f"over this wire, the robot cannot {actions}", at_s)
            return
        answer = await self._ask_operator(step)
        if answer == "end":
            raise TrialEndedError
        if answer == "skip":
            self._record_result(step, SKIPPED, "skipped by the operator", at_s)
            return
        at_s = context.now_s
        context.mark("step", step.title)
        self._guide.begin(step)
        self._step_may_soften_arms = step.level is TrialLevel.HOLD
        try:
            result, note = await self._perform_step(step)
        except asyncio.CancelledError:
            self._record_result(step, FAILED, "interrupted", at_s)
            raise
        except _LostError:
            self._record_result(step, FAILED, "the robot was lost", at_s)
            raise
        self._step_may_soften_arms = False
        self._record_result(step, result, note, at_s)

    async def _ask_operator(self, step: TrialStep) -> str:
        """Return the operator's answer; raise `_LostError` if the robot is lost meanwhile."""
        answer = await self._await_unless_lost(self._guide.ask(step))
        assert isinstance(answer, str)
        return answer

    async def _perform_step(self, step: TrialStep) -> tuple[str, str]:
        """Run a step within its time limit; return its result and a note."""
        perform = {**G1_STEPS, **A1_STEPS}[step.id]
        limit = asyncio.timeout(step.limit_s)
        try:
            async with limit:
                await self._await_unless_lost(perform(self._context))
        except StepImpossibleError as error:
            if step.level is not TrialLevel.LOOK:  # the step may have begun already
                await self._make_safe()
            return CANNOT, str(error)
        except LinkError as error:
            if self._lost.done():
                raise _LostError(self._lost.result()) from error
            await self._make_safe()
            return FAILED, str(error)
        except RoteError as error:
            await self._make_safe()
            return FAILED, str(error)
        except _LostError:
            raise
        except Exception as error:  # the other steps can still be run
            await self._make_safe()
            if limit.expired() and isinstance(error, TimeoutError):
                return FAILED, f"it took longer than {step.limit_s:g} s, so the trial ended it"
            return FAILED, f"{FAULT} {type(error).__name__}: {error}"
        if self._context.arms_may_be_soft:
            await self._make_safe()
        return DONE, ""

    async def _await_unless_lost(self, work: Awaitable[object]) -> object:
        """Return the result of `work`; cancel it and raise `_LostError` if the robot is lost."""
        task: asyncio.Future[object] = asyncio.ensure_future(work)
        futures: set[asyncio.Future[Any]] = {task, self._lost}
        try:
            await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise _LostError(self._lost.result())
            return task.result()
        finally:
            if not task.done():
                task.cancel()
                with suppress(asyncio.CancelledError, RoteError, StepImpossibleError):
                    await task

    def _record_result(self, step: TrialStep, result: str, note: str, at_s: float) -> None:
        seconds = self._context.now_s - at_s
        self._result.steps.append(StepResult(step, result, note, round(at_s, 3), round(seconds, 3)))
        self._guide.end(step, result, note, seconds)


class _LostError(Exception):
    """The connection to the robot is lost; the message gives the reason."""


def parse_level(name: str) -> TrialLevel:
    """Return the level called `name`, or raise `BadRequestError`."""
    try:
        return TrialLevel(name)
    except ValueError:
        known = ", ".join(TrialLevel)
        raise BadRequestError(f"unknown level {name!r}", f"Use one of: {known}.") from None
