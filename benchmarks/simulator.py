"""Claim: the simulated robot runs many times faster than real time, whatever it is doing.

A simulator that is near its limit would be late with its states, and tests would be slow.
"""

from benchmarks.size import size
from benchmarks.table import Row, cpu_s, take_turns
from rote import messages as m
from rote.sim.store import Store
from rote.sim.world import World

ROUNDS = size(5, 1)
SECONDS = size(20, 2)
PLAYING_MIN = 150
"""Number of playing robots that fit on one core."""
WHO = "a client"


def tell(world: World, command: m.Command) -> None:
    reply = world.obey(WHO, command)
    assert reply == m.Status(), f"{command}: {reply}"


def standing() -> float:
    world = World(Store(":memory:"))
    return cpu_s(lambda: world.advance(SECONDS))


def begin_teaching(world: World) -> None:
    tell(world, m.EnterTeaching())
    tell(world, m.MoveByHand("wave", SECONDS * 1000))
    tell(world, m.Record(True))


def teach(world: World) -> None:
    """Record for `SECONDS`, with a keep-alive in the middle as a client sends them."""
    world.advance(SECONDS / 2)
    tell(world, m.KeepTeaching())
    world.advance(SECONDS / 2)


def teaching() -> float:
    world = World(Store(":memory:"))
    begin_teaching(world)
    seconds = cpu_s(lambda: teach(world))
    assert world.recording
    return seconds


def playing_world() -> World:
    """Return a robot that was taught a wave, and stands."""
    world = World(Store(":memory:"))
    begin_teaching(world)
    teach(world)
    tell(world, m.ExitTeaching())
    tell(world, m.SaveAction(name="wave", created_s=0, duration_ms=SECONDS * 1000))
    world.advance(5)
    return world


def playing(world: World) -> float:
    tell(world, m.PlayAction(action=1))
    seconds = cpu_s(lambda: world.advance(SECONDS))
    assert world.state().phase is m.Phase.PLAYING
    tell(world, m.StopMotion())
    world.advance(5)
    return seconds


def run() -> list[Row]:
    player = playing_world()
    seconds = take_turns(
        ROUNDS,
        {
            "standing": standing,
            "teaching by hand, recording": teaching,
            "playing": lambda: playing(player),
        },
    )
    return [
        Row(
            f"simulator: {what}",
            "s/s",
            SECONDS / taken,
            1,
            "real time",
            at_least=PLAYING_MIN if what == "playing" else 20,
        )
        for what, taken in seconds.items()
    ]
