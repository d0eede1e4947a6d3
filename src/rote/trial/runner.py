"""Runs a trial: step by step, asked for, within time limits; it ends with limbs that hold.

However it ends, by its last step, Ctrl-C or a lost robot, there is a result with what was learned
until then.
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
from rote.transport.services_client import ServicesClient
from rote.transport.tap import Tap
from rote.transport.udp.client import TeachingClient
from rote.transport.wires import wire_of
from rote.trial.a1_steps import A1_STEPS
from rote.trial.g1_steps import G1_STEPS, clean, hold
from rote.trial.recorder import BUS, CHANNEL, FRAMES, QUADRUPED, TrialRecorder
from rote.trial.scene import Scene, StepImpossibleError, TimelineMark, TrialGuide
from rote.trial.steps import TrialLevel, TrialStep, steps_for

COMPLETE, INTERRUPTED, LOST, ENDED = "complete", "interrupted", "lost", "ended"
"""How a trial ended: by its last step, by Ctrl-C, by the robot, by the person."""
FAULT = "a fault of rote, please report it:"
DONE, SKIPPED, CANNOT, FAILED = "done", "skipped", "cannot", "failed"
"""How a step ended."""
PROTOCOLS = {"webrtc": CHANNEL, "dds": BUS, "udp": FRAMES, "sim": FRAMES, "a1": QUADRUPED}
"""What is spoken on each wire."""
UNCONFIRMED = "The robot did NOT confirm the stop; use the remote (L2+B)."
_STOP_S = 3.0
_ABILITIES = {
    "presets": "do factory actions",
    "list": "list its actions",
    "rename": "rename an action",
    "delete": "delete an action",
    "pause": "pause a recording",
    "pose": "turn its body",
    "control": "be driven joint by joint",
    "teach": "be taught",
}

Open = Callable[[Tap], AbstractAsyncContextManager[Robot]]
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
    """What a trial has found."""

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
    """The person ends the trial."""


async def run_trial(
    url: str,
    level: TrialLevel,
    guide: TrialGuide,
    *,
    timeout: float = 5.0,
    key: str | None = None,
    world: World | None = None,
    opener: Open | None = None,
) -> TrialResult:
    """Run a trial of the robot at `url`; raises `RoteError` only if it cannot be connected to.

    `opener` connects instead of the URL's own wire, and `world` is a simulated robot of your own
    for `sim://`.
    """
    wire = "a1" if wire_of(url).has_levels else wire_of(url).scheme
    result = TrialResult(url, wire, level)
    tap = Tap()

    @asynccontextmanager
    async def by_url(tap: Tap) -> AsyncIterator[Robot]:
        async with connect_tapped(
            url, tap, timeout=timeout, key=key, world=world, ability=_ability(url, level)
        ) as robot:
            yield robot

    def another() -> AbstractAsyncContextManager[Robot]:
        return connect(url, timeout=timeout, key=key, reconnect=False)

    recorder = result.recorder = TrialRecorder(PROTOCOLS[wire])
    tap.on_message(recorder.hear)
    async with (opener or by_url)(tap) as robot:
        scene = Scene(robot, tap, recorder, url, wire, guide.note, another)
        scene.measured["wire"] = wire
        recorder.on_activity(lambda at_s, word: _note_activity(scene, at_s, word))
        forget = robot.on_state(recorder.see)
        running = _Running(scene, guide, result, key)
        try:
            await running.all_steps()
        finally:
            forget()
            result.measured, result.timeline = scene.measured, scene.timeline
            result.seconds = scene.now_s
    return result


def _ability(url: str, level: TrialLevel) -> str | None:
    """Return what an A1's motors are wanted for: then a robot that stands is refused, not sunk."""
    if not wire_of(url).has_levels or "level=low" not in url:
        return None
    return "states" if level is TrialLevel.LOOK else "control"


def _note_activity(scene: Scene, at_s: float, word: str) -> None:
    scene.timeline.append(TimelineMark(round(at_s, 3), "activity", word))


class _Running:
    """One trial that goes on."""

    def __init__(
        self, scene: Scene, guide: TrialGuide, result: TrialResult, key: str | None
    ) -> None:
        self._scene, self._guide, self._result, self._key = scene, guide, result, key
        self._lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        client = scene.tap.client
        if isinstance(client, (ServicesClient, TeachingClient)):
            client.on_loss(self._lose)
        elif isinstance(client, A1Client):
            client.on_trouble(self._trouble)

    def _lose(self, error: RoteError) -> None:
        if not self._lost.done():
            self._lost.set_result(str(error))

    def _trouble(self, error: RoteError) -> None:
        if isinstance(error, LinkError):
            self._lose(error)

    async def all_steps(self) -> None:
        """Take every step; then make the robot safe, and delete what the trial stored."""
        result = self._result
        try:
            for step in steps_for(result.level, result.wire):
                await self._one(step)
        except asyncio.CancelledError:
            result.ended, result.reason = INTERRUPTED, "somebody ended it"
            task = asyncio.current_task()
            if task is not None:
                task.uncancel()
        except TrialEndedError:
            result.ended, result.reason = ENDED, "the person ended it"
        except _LostError as lost:
            result.ended, result.reason = LOST, str(lost)
        except BaseException:  # a fault of rote: the limbs hold all the same
            await to_the_end(self._make_safe())
            raise
        finishing = asyncio.ensure_future(self._finish())
        with suppress(asyncio.CancelledError):  # Ctrl-C again: there is a report all the same
            await to_the_end(finishing)
        finishing.result()

    async def _finish(self) -> None:
        scene, result = self._scene, self._result
        if self._lost.done() and result.ended != LOST:
            result.ended, result.reason = LOST, self._lost.result()
        if result.ended == LOST:
            scene.mark("note", "the robot was lost")
            if await self._stop_anew():
                scene.mark("note", "a new connection has stopped it")
            else:
                self._warn_unconfirmed()
            result.left = sorted(scene.saved)
            return
        await self._make_safe()
        if scene.own:
            result.left = await clean(scene)

    async def _stop_anew(self) -> bool:
        """Stop a lost robot by a new connection; return whether it confirmed."""
        if wire_of(self._result.url).lives_here:
            return False  # a new connection would reach another simulated robot
        with suppress(RoteError, TimeoutError, OSError, RuntimeError):
            async with asyncio.timeout(2 * _STOP_S):
                await stop_at(self._result.url, key=self._key, timeout=_STOP_S)
            return True
        return False

    async def _make_safe(self) -> None:
        stopped = False
        with suppress(RoteError, TimeoutError):
            async with asyncio.timeout(_STOP_S * 3):
                await self._scene.robot.stop()
            stopped = True
        if self._scene.soft:
            with suppress(RoteError, TimeoutError):
                async with asyncio.timeout(_STOP_S * 3):
                    await hold(self._scene)
        if self._scene.soft:
            self._scene.mark("note", "the robot did not confirm that its arms hold")
            self._guide.note("The arms may still be soft: hold them, and use the robot's remote.")
        if not stopped and not self._lost.done():  # a loss has a stop of its own
            self._warn_unconfirmed()

    def _warn_unconfirmed(self) -> None:
        """Tell the operator that the robot did not confirm a stop, and whether arms may be soft."""
        self._result.stop_confirmed = False
        self._scene.mark("note", "the robot did not confirm the stop")
        if self._result.level is TrialLevel.LOOK:
            return  # nothing was made to move or to go limp
        state = self._scene.robot.state
        soft = state is None or state.arms_soft or self._scene.soft
        arms = "The arms may still be soft: hold them. " if soft else ""
        self._guide.note(f"{arms}{UNCONFIRMED}")

    async def _one(self, step: TrialStep) -> None:
        scene, at_s = self._scene, self._scene.now_s
        wanting = [need for need in step.needs if need not in scene.robot.abilities]
        if wanting:
            words = " and ".join(_ABILITIES.get(each, each) for each in wanting)
            self._ended(step, CANNOT, f"by this wire the robot cannot {words}", at_s)
            return
        answer = await self._asked(step)
        if answer == "end":
            raise TrialEndedError
        if answer == "skip":
            self._ended(step, SKIPPED, "skipped by the person", at_s)
            return
        at_s = scene.now_s
        scene.mark("step", step.title)
        self._guide.begin(step)
        try:
            result, note = await self._tried(step)
        except asyncio.CancelledError:
            self._ended(step, FAILED, "interrupted", at_s)
            raise
        except _LostError:
            self._ended(step, FAILED, "the robot was lost", at_s)
            raise
        self._ended(step, result, note, at_s)

    async def _asked(self, step: TrialStep) -> str:
        """Ask the person; a robot that is lost meanwhile ends it."""
        answer = await self._or_lost(self._guide.ask(step))
        assert isinstance(answer, str)
        return answer

    async def _tried(self, step: TrialStep) -> tuple[str, str]:
        work = {**G1_STEPS, **A1_STEPS}[step.id]
        limit = asyncio.timeout(step.limit_s)
        try:
            async with limit:
                await self._or_lost(work(self._scene))
        except StepImpossibleError as error:
            if step.level is not TrialLevel.LOOK:  # it may have begun before it was known
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
        except Exception as error:  # the other steps may still tell something
            await self._make_safe()
            if limit.expired() and isinstance(error, TimeoutError):
                return FAILED, f"it took longer than {step.limit_s:g} s and was ended"
            return FAILED, f"{FAULT} {type(error).__name__}: {error}"
        if self._scene.soft:
            await self._make_safe()
        return DONE, ""

    async def _or_lost(self, work: Awaitable[object]) -> object:
        """Await work; raise `_LostError` as soon as the robot is lost."""
        task: asyncio.Future[object] = asyncio.ensure_future(work)
        waited: set[asyncio.Future[Any]] = {task, self._lost}
        try:
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise _LostError(self._lost.result())
            return task.result()
        finally:
            if not task.done():
                task.cancel()
                with suppress(asyncio.CancelledError, RoteError, StepImpossibleError):
                    await task

    def _ended(self, step: TrialStep, result: str, note: str, at_s: float) -> None:
        seconds = self._scene.now_s - at_s
        self._result.steps.append(StepResult(step, result, note, round(at_s, 3), round(seconds, 3)))
        self._guide.end(step, result, note, seconds)


class _LostError(Exception):
    """The robot is lost."""


def level_named(name: str) -> TrialLevel:
    """Return the level of that name, or raise `BadRequestError`."""
    try:
        return TrialLevel(name)
    except ValueError:
        known = ", ".join(TrialLevel)
        raise BadRequestError(f"there is no level {name!r}", f"Use: {known}.") from None
