"""Listening to a robot: who is slow misses the oldest states, and who leaves is forgotten."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

import virtual
from a1_rig import pair
from rote.errors import PeerLostError, ProtectionError
from rote.robot.link import MAX_QUEUED_STATES, iterate_states
from rote.session.a1 import Level
from rote.wire.a1.motors import MotorCmds

LOST = PeerLostError("the robot was switched off")


class Voice:
    """Tells whoever listens."""

    def __init__(self) -> None:
        self.listeners: list[Callable[[Any], object]] = []

    def on(self, listener: Callable[[Any], object]) -> Callable[[], None]:
        self.listeners.append(listener)
        return lambda: self.listeners.remove(listener)

    def say(self, what: object) -> None:
        for listener in self.listeners:
            listener(what)


@given(st.lists(st.integers(0, 2 * MAX_QUEUED_STATES), min_size=1, max_size=4))
def test_who_is_slow_gets_the_newest_states_in_order_and_then_the_loss(bursts: list[int]) -> None:
    async def story() -> None:
        states, losses = Voice(), Voice()
        heard = iterate_states(states.on, losses.on)
        first = asyncio.create_task(cast("Any", anext(heard)))
        await asyncio.sleep(0)
        states.say(-1)
        assert await first == -1
        told = 0
        for burst in bursts:
            for number in range(told, told + burst):
                states.say(number)
            told += burst
            newest = range(told)[-min(burst, MAX_QUEUED_STATES) :] if burst else []
            assert [await anext(heard) for _ in newest] == list(newest)
        states.say(told)
        losses.say(LOST)
        assert await anext(heard) == told
        with pytest.raises(PeerLostError):
            await anext(heard)
        assert states.listeners == losses.listeners == []

    virtual.run(story())


def test_a_loss_is_heard_even_where_nobody_took_a_state() -> None:
    async def story() -> None:
        states, losses = Voice(), Voice()
        heard = iterate_states(states.on, losses.on)
        first = asyncio.create_task(cast("Any", anext(heard)))
        await asyncio.sleep(0)
        for number in range(MAX_QUEUED_STATES):
            states.say(number)
        losses.say(LOST)
        got = [await first]
        with pytest.raises(PeerLostError):
            while True:
                got.append(await anext(heard))
        assert got == list(range(1, MAX_QUEUED_STATES))

    virtual.run(story())


def test_who_leaves_is_forgotten() -> None:
    async def story() -> None:
        states, losses = Voice(), Voice()
        heard = cast("AsyncGenerator[int, None]", iterate_states(states.on, losses.on))
        first = asyncio.create_task(cast("Any", anext(heard)))
        await asyncio.sleep(0)
        states.say(1)
        assert await first == 1
        await heard.aclose()
        assert states.listeners == losses.listeners == []

    virtual.run(story())


def test_after_a_protection_an_a1_is_heard_on_until_it_is_lost() -> None:
    async def story() -> None:
        async with pair(Level.LOW, start="hung") as (world, _, robot):
            heard = robot.native_states()
            await anext(heard)
            robot.set_motors(MotorCmds.servo(kd_nm_s_rad=1.0))  # only what is driven trips
            world.health.silent = True
            await asyncio.sleep(0.1)
            assert isinstance(robot.trouble, ProtectionError)
            world.health.silent = False
            states = [await anext(heard) for _ in range(100)]
            assert states[-1].imu is not states[0].imu
            world.health.silent = True
            with pytest.raises(PeerLostError):
                while True:
                    await anext(heard)

    virtual.run(story())
