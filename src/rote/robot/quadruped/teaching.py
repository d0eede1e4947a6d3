"""Teaching backend for the legs of an A1: soft while a hand moves them, braked afterwards."""

from collections.abc import Callable
from contextlib import suppress

import numpy as np

from rote.errors import RoteError
from rote.robot.quadruped.control import BRAKED, State
from rote.robot.quadruped.leg_control import LegControl
from rote.robot.quadruped.motion import SOFT, SoftLegs
from rote.robot.take import Take
from rote.wire.a1.motors import LEG_MOTORS
from rote.wire.a1.values import LowCmd, LowState

_TICKS = 2**32


class LegTeachingBackend:
    """One teaching of an A1. The robot stores nothing: the take is on this computer only.

    Braked legs stay where they are, which means: the robot stays lying or hanging. Soft ones are
    kept from their stops by a weak spring; see `SoftLegs`.
    """

    def __init__(self, legs: LegControl) -> None:
        self._legs = legs
        self._client = legs.client
        self._springs = SoftLegs(legs.safety)
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
        undo = self._legs.on_teaching_end(stops.append)
        try:
            await self._legs.wait_for_state()
        finally:
            undo()
        if stops:
            raise stops[0]

    async def begin(self, take: Take, end: Callable[[RoteError], None]) -> None:
        """Make the legs soft."""
        self._take, self._end = take, end
        self._legs.make_soft(LowCmd(motors=SOFT))
        self._begun = True
        self._undo = [
            self._client.on_state(self._on_state),
            self._legs.on_teaching_end(self._on_early_end),
        ]

    async def hold(self, *, keep: bool) -> None:
        """Brake the legs; a robot in trouble was already braked when the trouble began."""
        self._legs.end_softness()
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
        motors = self._springs.motors(np.asarray(joints, dtype=float))
        if motors is not None and self._trouble is None:
            with suppress(RoteError):  # a lost robot is reported by `on_teaching_end`
                self._client.command(LowCmd(motors=motors))

    def _on_early_end(self, error: RoteError) -> None:
        if self._trouble is None:
            self._trouble = error
            with suppress(RoteError):  # a lost robot was braked when it fell silent
                self._client.command(LowCmd(motors=BRAKED))
            self._end(error)
