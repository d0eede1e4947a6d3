"""The simulated robot's services for one client, over any message carrier."""

import asyncio
from collections.abc import Callable

from rote import messages as m
from rote.errors import DecodeError
from rote.session.events import PeerLost
from rote.session.rpc import Asked, Event, Heard, RpcSession, Timing
from rote.session.teaching import Role
from rote.sim.services import Answer, Services
from rote.wire import channel, rpc
from rote.wire.lowstate import (
    HAND_TOPIC,
    LOWSTATE_TOPIC,
    SPORT_TOPIC,
    encode_fsm,
    encode_lowstate,
)

_TICK_S = 0.02
_ARM_STATE_EVERY = 5
"""Ticks between two arm states: 10 Hz."""

Send = Callable[[str | bytes], None]


class RpcClientSession:
    """One client of the simulated robot's services."""

    def __init__(
        self, services: Services, send: Send, *, challenge: str, timing: Timing | None = None
    ) -> None:
        self._services = services
        self._world = services.world
        self._send = send
        self._loop = asyncio.get_running_loop()
        self.session = RpcSession(Role.ROBOT, timing=timing, now=self._loop.time())
        self.session.open(self._loop.time(), challenge=challenge)
        self._over: list[int] = []
        self._ticks = 0
        self._timer: asyncio.TimerHandle | None = self._loop.call_later(_TICK_S, self._tick)
        self._settle()

    def receive(self, message: str | bytes) -> None:
        """Take in one message from the client."""
        self.session.receive(message, self._loop.time())
        self._settle()

    def close(self) -> None:
        """The client is gone, or the robot ends. Safe to call twice."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.session.live:
            self.session.close(self._loop.time())
        self._world.forget(self)

    def _tick(self) -> None:
        self._timer = self._loop.call_later(_TICK_S, self._tick)
        self._ticks += 1
        self.session.tick(self._loop.time())
        self.session.publish(LOWSTATE_TOPIC, encode_lowstate(self._world.state()))
        if self._ticks % _ARM_STATE_EVERY == 0:
            self.session.publish(rpc.ARM_STATE_TOPIC, self._services.arm_state())
            self.session.publish(SPORT_TOPIC, encode_fsm(self._world.machine.mode))
        if self._over and self._world.doing.id == 0:
            for token in self._over:
                self.session.reply(token)
            self._over.clear()
        self._settle()

    def _settle(self) -> None:
        for event in self.session.events():
            self._handle(event)
        for message in self.session.outgoing():
            self._send(message)

    def _handle(self, event: Event) -> None:
        if isinstance(event, Asked):
            self._answer(event.token, self._services.answer(self, event.request))
        elif isinstance(event, Heard):
            self._hear(event.value)
        elif isinstance(event, PeerLost):
            self.close()

    def _answer(self, token: int, answer: Answer) -> None:
        if answer.when_over:
            self._over.append(token)
        else:
            self._loop.call_later(answer.delay_s, self._reply, token, answer)

    def _reply(self, token: int, answer: Answer) -> None:
        self.session.reply(token, answer.code, answer.data)
        self._settle()

    def _hear(self, value: channel.Value) -> None:
        """Let the scripted hand take hold, where a client of ours asks for it."""
        if not isinstance(value, channel.Message) or value.topic != HAND_TOPIC:
            return
        try:
            script = rpc.read(value.data, "script", str)
            duration_ms = rpc.read(value.data, "duration_ms", int)
        except DecodeError:
            return
        self._world.obey(self, m.MoveByHand(script, duration_ms))
