"""A Unitree G1, real or simulated: teach it by hand, list, play and stop."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable

from rote import messages as m
from rote.errors import BadRequestError, NoAnswerError, RefusedError, RoteError, UnsupportedError
from rote.messages import Code, Interpolation, Mode, RobotState
from rote.robot import preflight
from rote.robot.base import (
    Actions,
    Finding,
    ModeReport,
    Port,
    Preset,
    TaughtAction,
    check_name,
    check_seconds,
)
from rote.robot.playing import Playing
from rote.robot.teaching import Teaching

MODE_CHANGE_S = 10.0
_TO_STAND = {Mode.ZERO_TORQUE: Mode.DAMP, Mode.DAMP: Mode.LOCK_STAND, Mode.LOCK_STAND: Mode.WALK}
_OTHER_WIRES: dict[str, tuple[str, ...]] = {"tempo": ("udp://", "sim://")}
"""For what this wire cannot do: the wires that can."""


class G1:
    """One connected robot. Made by `rote.connect`; there is no half-connected one."""

    def __init__(self, port: Port) -> None:
        self._port = port
        self._stops = 0

    @property
    def url(self) -> str:
        """Where the robot is."""
        return self._port.url

    @property
    def abilities(self) -> frozenset[str]:
        """What this wire can do: list, teach, play, stop, mode, states, ..."""
        return self._port.abilities

    @property
    def state(self) -> RobotState | None:
        """The newest state the robot reported; None before the first."""
        return self._port.latest

    # ---- actions --------------------------------------------------------------------------------

    async def actions(self) -> Actions:
        """Return the presets and the taught actions."""
        reply = await self._ask(m.ListActions())
        assert isinstance(reply, m.ActionList)
        taught = (
            TaughtAction(entry.name, entry.duration_ms / 1000, position)
            for position, entry in enumerate(reply.actions, start=1)
        )
        presets = tuple(Preset(entry.id, entry.name) for entry in reply.presets)
        return Actions(presets=presets, taught=tuple(taught))

    def teach(self, name: str) -> Teaching:
        """Teach a motion: the arms are soft inside the `async with` block.

        They hold again however the block ends. On success the robot stores the motion as `name`,
        and the block's value, a `Take`, holds its track on our side. A name that exists is refused
        before anything gets soft.
        """
        check_name(name)
        stops = self._stops

        async def check() -> None:
            await self.check_teachable(name)
            self._check_not_stopped_since(stops)

        return Teaching(self._port, self._ask, check, name)

    async def check_teachable(self, name: str) -> None:
        """Raise what `teach` would: for the name, the places left, or the mode."""
        check_name(name)
        actions = await self.actions()
        if actions.find(name) is not None:
            raise _refused(Code.NAME_EXISTS)
        if actions.free_places <= 0:
            raise _refused(Code.STORE_FULL)
        if not (await self.mode()).balanced:
            raise _refused(Code.WRONG_STATE)

    async def save(self, name: str, duration_s: float) -> None:
        """Save the recording the robot still holds, after a save at the end of `teach` failed."""
        check_name(name)
        duration_ms = round(check_seconds(duration_s, "a recording") * 1000)
        created_s = int(time.time())
        await self._ask(m.SaveAction(name=name, created_s=created_s, duration_ms=duration_ms))

    def play(
        self,
        name: str,
        *,
        speed: float | None = None,
        duration: float | None = None,
        loop: bool = False,
        interpolation: str | Interpolation = Interpolation.LINEAR,
    ) -> Playing:
        """Play a taught action; await the result for its end, iterate it to watch, or `stop` it.

        It begins with a soft move to the first pose and ends with a soft return. `speed` 0.5 takes
        twice as long; `duration` in seconds says how long instead. `interpolation` is linear,
        cubic or smooth.
        """
        check_name(name)
        how = _interpolation(interpolation)
        _check_tempo(speed, duration)
        if speed is not None or duration is not None or loop or how:
            self._need("tempo", "change how an action is played")
        stops = self._stops

        async def begin() -> float:
            actions = await self.actions()
            action = actions.find(name)
            if action is None:
                known = ", ".join(each.name for each in actions.taught) or "nothing yet"
                words = f"there is no action {name!r}"
                raise RefusedError(Code.NO_SUCH_ACTION, words, f"On the robot: {known}.")
            wanted_s = duration if duration is not None else 0.0
            if speed is not None:
                wanted_s = check_seconds(action.duration_s / speed, "a playback")
            play = m.PlayAction(
                action=action.position,
                duration_ms=round(wanted_s * 1000),
                interpolation=how,
                loop=loop,
                name=name,
            )
            self._check_not_stopped_since(stops)
            await self._ask(play)
            return wanted_s or action.duration_s

        return Playing(self._port, name, begin, self.stop, loop=loop)

    async def start(
        self,
        name: str,
        *,
        speed: float | None = None,
        duration: float | None = None,
        loop: bool = False,
        interpolation: str | Interpolation = Interpolation.LINEAR,
    ) -> Playing:
        """Like `play`, but return as soon as the robot has accepted."""
        playing = self.play(
            name, speed=speed, duration=duration, loop=loop, interpolation=interpolation
        )
        return await playing.started()

    async def stop(self) -> None:
        """Stop whatever plays or is being taught, softly. Always allowed, and safe to repeat."""
        self._stops += 1
        await self._ask(m.StopMotion())

    async def rename(self, old: str, new: str) -> None:
        """Rename a taught action, on wires that can; a name that is taken is refused."""
        self._need("rename", "rename actions")
        check_name(new)
        actions = await self.actions()
        if actions.find(old) is None:
            raise _refused(Code.NO_SUCH_ACTION)
        if actions.find(new) is not None:
            raise _refused(Code.NAME_EXISTS)
        await self._ask(m.RenameAction(old, new))

    async def delete(self, name: str) -> None:
        """Delete a taught action, on wires that can. There is no way back."""
        self._need("delete", "delete actions")
        if (await self.actions()).find(name) is None:
            raise _refused(Code.NO_SUCH_ACTION)
        await self._ask(m.DeleteAction(name))

    # ---- the robot itself -----------------------------------------------------------------------

    async def states(self) -> AsyncIterator[RobotState]:
        """Yield the robot's states as they arrive; raises when the robot is lost.

        Who is too slow misses the oldest ones, never the newest.
        """
        queue: asyncio.Queue[RobotState | RoteError] = asyncio.Queue(maxsize=256)

        def put(item: RobotState | RoteError) -> None:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(item)

        undo = (self._port.on_state(put), self._port.on_loss(put))
        try:
            while True:
                item = await queue.get()
                if isinstance(item, RoteError):
                    raise item
                yield item
        finally:
            for forget in undo:
                forget()

    def on_state(self, listener: Callable[[RobotState], object]) -> Callable[[], None]:
        """Call `listener` with every state, at once and missing none; returns what ends that."""
        return self._port.on_state(listener)

    async def mode(self) -> ModeReport:
        """Return the mode the robot is in."""
        return ModeReport.of((await self._newest()).mode)

    async def preflight(self) -> list[Finding]:
        """Return what a person should know before the robot moves, the worst first."""
        await self._newest()
        return preflight.findings(self._port.latest, await self.actions())

    async def stand(self) -> ModeReport:
        """Bring the robot into a balanced standing, step by step, and wait until it is there."""
        while not (mode := await self.mode()).balanced:
            try:
                following = _TO_STAND[Mode(mode.id)]
            except (ValueError, KeyError):
                raise _refused(Code.WRONG_STATE) from None
            await self._change_mode(following)
        return mode

    async def damp(self) -> ModeReport:
        """Damp all joints. A standing robot sinks down: hold it, or hang it on its gantry."""
        return await self._change_mode(Mode.DAMP)

    async def move_by_hand(self, script: str, seconds: float) -> None:
        """Let the simulated robot's scripted hand (wave, bow, clap, drum) move the soft arms."""
        if not script or len(script.encode()) > m.MAX_NAME_BYTES:
            raise BadRequestError(f"there is no hand {script!r}")
        move = m.MoveByHand(script, round(check_seconds(seconds, "a hand") * 1000))
        try:
            await self._ask(move)
        except RefusedError as refused:
            if refused.code != Code.BAD_PAYLOAD:
                raise
            raise BadRequestError(
                f"the robot knows no hand {script!r}",
                "Simulated robots know wave, bow, clap and drum.",
            ) from None

    async def close(self) -> None:
        """Let go of the robot. `async with` does it for you."""
        await self._port.close()

    # ---- inside ---------------------------------------------------------------------------------

    async def _ask(self, command: m.Command) -> m.Reply:
        reply = await self._port.ask(command)
        if isinstance(reply, m.Status) and reply.code != Code.OK:
            raise _refused(reply.code)
        return reply

    def _check_not_stopped_since(self, stops: int) -> None:
        # What was begun before a stop and is not yet on the wire must not move the robot after it.
        if self._stops != stops:
            raise _refused(Code.SUPERSEDED)

    async def _newest(self) -> RobotState:
        """Return a state reported after now."""
        async with asyncio.timeout(MODE_CHANGE_S):
            async for state in self.states():
                return state
        raise AssertionError("states() ends by raising")  # pragma: no cover - it never just ends

    async def _change_mode(self, mode: Mode) -> ModeReport:
        await self._ask(m.ChangeMode(mode))
        # Accepted is not done: the robot is asked until it says it is there.
        try:
            async with asyncio.timeout(MODE_CHANGE_S):
                async for state in self.states():
                    if state.mode == mode:
                        break
        except TimeoutError:
            raise NoAnswerError(
                f"the robot accepted mode {mode.value} and is still not in it",
                "Look at the robot; try the buttons of its remote.",
            ) from None
        return ModeReport.of(mode)

    def _need(self, ability: str, what: str) -> None:
        if ability not in self.abilities:
            raise UnsupportedError(what, f"{self._port.wire}://", _OTHER_WIRES.get(ability, ()))


def _refused(code: int) -> RefusedError:
    return RefusedError(code, *m.words_for(code))


def _interpolation(value: str | Interpolation) -> Interpolation:
    if isinstance(value, Interpolation):
        return value
    try:
        return Interpolation[value.upper()]
    except KeyError:
        known = ", ".join(kind.name.lower() for kind in Interpolation)
        raise BadRequestError(f"there is no interpolation {value!r}", f"Use: {known}.") from None


def _check_tempo(speed: float | None, duration: float | None) -> None:
    if speed is not None and duration is not None:
        raise BadRequestError("speed and duration exclude each other", "Give one of them.")
    if duration is not None:
        check_seconds(duration, "a playback")
    if speed is not None and not 0.05 <= speed <= 4.0:
        raise BadRequestError(f"a speed of {speed} is not possible", "Choose 0.05 to 4.")
