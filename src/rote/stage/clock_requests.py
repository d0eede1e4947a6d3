"""Asks the conductor for its time, often enough that the agent knows it precisely."""

import asyncio

from rote.platform.clock import MIN_SUSPENSION_S, stall_clock
from rote.platform.loop import clock_of
from rote.session.stage_agent import AgentPhase, AgentSession
from rote.session.stage_clock import MAX_ANSWERS
from rote.stage.keys import StageKeys
from rote.transport.zenoh.bus import StageBus
from rote.wire.stage import decode_clock

CLOCK_S = 1.0
GOOD_CLOCK_S, GOOD_BOUND_S = 5.0, 0.003
"""Interval of the clock requests while the clock's error is bounded this well: with hundreds of
agents, most of the conductor's load are answers that improve nothing."""
READY_CLOCK_S = 0.1
"""Interval of the clock requests while a section is prepared, until it begins."""
FIRST_CLOCK_S = 0.02
"""Interval of the clock requests until there are many answers."""
_POLL_S = 0.05


class ClockRequests:
    """Asks the conductor that an agent obeys for its time; the answers go to its session."""

    def __init__(self, bus: StageBus, keys: StageKeys, session: AgentSession) -> None:
        self._bus, self._keys, self._session = bus, keys, session
        self._loop = asyncio.get_running_loop()
        self._clock, self._stall_clock = clock_of(self._loop), stall_clock(self._loop)

    async def run(self) -> None:
        """Ask again and again; an answer across a suspension of this computer is ignored."""
        while True:
            epoch = self._session.conductor
            if epoch:
                self._ask_clock(epoch)
            await asyncio.sleep(self._choose_interval_s() if epoch else _POLL_S)

    def _ask_clock(self, epoch: str) -> None:
        """Ask the conductor of this epoch for its time. Any other conductor has another clock."""
        sent_s, stall_sent_s = self._clock(), self._stall_clock()

        def add(received_s: float, conductor_s: float) -> None:
            if epoch == self._session.conductor:  # it may have been replaced meanwhile
                self._session.clock.add(sent_s, received_s, conductor_s)

        def on_answer(data: bytes) -> None:
            # Runs in Zenoh's thread: a delay of the event loop must not count as network delay.
            received_s, stall_received_s = self._clock(), self._stall_clock()
            suspended_s = (stall_received_s - stall_sent_s) - (received_s - sent_s)
            conductor_s = decode_clock(data)
            if conductor_s is not None and suspended_s < MIN_SUSPENSION_S:
                self._loop.call_soon_threadsafe(add, received_s, conductor_s)

        self._bus.ask_for(self._keys.clock, 1.0, on_answer, epoch.encode())

    def _choose_interval_s(self) -> float:
        session = self._session
        if session.clock.answers < MAX_ANSWERS:
            return FIRST_CLOCK_S
        if session.run is not None and session.phase is not AgentPhase.RUNNING:
            return READY_CLOCK_S
        is_good = session.clock.bound_s(self._clock()) <= GOOD_BOUND_S
        return GOOD_CLOCK_S if is_good else CLOCK_S
