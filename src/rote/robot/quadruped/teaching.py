"""Teaching backend for the legs of an A1: soft while a hand moves them, braked afterwards."""

from collections.abc import Awaitable, Callable
from contextlib import suppress

import numpy as np

from rote.errors import RoteError
from rote.robot.quadruped.control import BRAKED, A1RobotClient, State
from rote.robot.quadruped.motion import SOFT, SoftLegs
from rote.robot.quadruped.safety import Safety
from rote.robot.take import Take
from rote.wire.a1.motors import LEG_MOTORS
from rote.wire.a1.values import LowCmd, LowState

_TICKS = 2**32


class LegTeachingBackend:
    """One teaching of an A1. The robot stores nothing: the take is on this computer only.

    Braked legs stay where they are, which means: the robot stays lying or hanging. Soft ones are
    kept from their stops by a weak spring; see `SoftLegs`.
    """

    def __init__(
        self,
        client: A1RobotClient,
        safety: Safety,
        wait_for_state: Callable[[], Awaitable[None]],
        begin: Callable[[LowCmd], None],
        end: Callable[[], None],
        on_end: Callable[[Callable[[RoteError], None]], Callable[[], None]],
    ) -> None:
        """`begin` starts teaching and `end` ends it; `on_end` adds a listener for an early end.

        `wait_for_state` waits for a new state of the robot.
        """
        self._wait_for_state = wait_for_state
        self._client = client
        self._legs = SoftLegs(safety)
        self._begin = begin
        self._end_teaching = end
        self._on_end = on_end
        self._end: Callable[[RoteError], None] = lambda _: None
        self._take: Take | None = None
        self._trouble: RoteError | None = None
        self._begun = False
        self._undo: list[Callable[[], None]] = []
        self._tick: int | None = None
        self._time_us = 0

    async def check(self) -> None:
        """Wait for a state; everything else was checked when the teaching was created.

        Raises if the robot is stopped meanwhile: legs must not go soft after a stop.
        """
        stops: list[RoteError] = []
        undo = self._on_end(stops.append)
        try:
            await self._wait_for_state()
        finally:
            undo()
        if stops:
            raise stops[0]

    async def begin(self, take: Take, end: Callable[[RoteError], None]) -> None:
        """Make the legs soft."""
        self._take, self._end = take, end
        self._begin(LowCmd(motors=SOFT))
        self._begun = True
        self._undo = [self._client.on_state(self._on_state), self._on_end(self._on_early_end)]

    async def hold(self, *, keep: bool) -> None:
        """Brake the legs; a robot in trouble was already braked when the trouble began."""
        self._end_teaching()
        if self._begun and self._trouble is None:
            self._client.command(LowCmd(motors=BRAKED))

    def stop_listening(self) -> None:
        """Stop listening to the robot."""
        for undo in self._undo:
            undo()

    async def save(self, take: Take) -> None:
        """Do nothing: an A1 stores no actions."""

    def _on_state(self, state: State) -> None:
        assert isinstance(state, LowState)
        assert self._take is not None
        before, self._tick = self._tick, state.tick
        if before is not None:
            # The robot's clock has 32 bits and wraps; a difference of more than half of it is
            # negative.
            ahead = (state.tick - before) % _TICKS
            if not 0 < ahead < _TICKS // 2:
                self._tick = before
                return
            self._time_us += ahead
        joints = state.motors.q_rad[:LEG_MOTORS]
        self._take.add(self._time_us, joints.tolist(), self._client.now())
        motors = self._legs.motors(np.asarray(joints, dtype=float))
        if motors is not None and self._trouble is None:
            with suppress(RoteError):  # a lost robot is reported by `on_end`
                self._client.command(LowCmd(motors=motors))

    def _on_early_end(self, error: RoteError) -> None:
        if self._trouble is None:
            self._trouble = error
            with suppress(RoteError):  # a lost robot was braked when it fell silent
                self._client.command(LowCmd(motors=BRAKED))
            self._end(error)
