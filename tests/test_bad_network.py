"""The whole cycle on a bad network: nothing saved twice, nothing lost."""

import asyncio
import time

import pytest

import virtual
from rig import FRAMES, rig
from rote.transport.impair import Impairment
from sampled import sample_parameters

ACTIONS = 2


def bad(seed: int) -> Impairment:
    return Impairment(loss=0.3, delay_s=0.005, duplicate=0.1, reorder=0.2, corrupt=0.03, seed=seed)


async def cycle(wire: str, seed: int) -> None:
    """Teach, save, list and play; look into the robot's own store at the end."""
    async with rig(wire, impairment=bad(seed)) as one:
        async with one.connect(timeout=10.0) as robot:
            assert (await robot.actions()).taught == ()
            for number in range(ACTIONS):
                async with robot.teach(f"take {number}") as take:
                    await robot.move_by_hand("wave", 0.5)
                    await asyncio.sleep(0.5)
                assert take.saved
                assert len(take.track) > 10
                (action,) = (a for a in (await robot.actions()).taught if a.name == take.name)
                assert action.duration_s == pytest.approx(take.track.duration_s, abs=0.25)
            names = [action.name for action in (await robot.actions()).taught]
            assert names == [f"take {number}" for number in range(ACTIONS)]
            assert (await robot.play("take 1")).completed
            await robot.stop()
        assert [entry.name for entry in one.world.store.entries()] == names
        words = [notice.message for notice in one.world.notices]
        assert words.count("saved 'take 0'") == 1
        assert words.count("playing 'take 1'") == 1
        assert not one.world.body.soft


@pytest.mark.parametrize("wire", FRAMES)
# Among them those whose late answers once made the client state a wrong duration.
@pytest.mark.parametrize("seed", sample_parameters([62, 73, 102, 119, *range(8)], 5))
def test_the_whole_cycle_survives_thirty_percent_loss(wire: str, seed: int) -> None:
    virtual.run(cycle(wire, seed))


@pytest.mark.soak
@pytest.mark.parametrize("wire", FRAMES)
def test_two_hundred_cycles_survive_thirty_percent_loss(wire: str) -> None:
    began = time.perf_counter()
    for seed in range(200):
        virtual.run(cycle(wire, seed))
    print(
        f"\n200 cycles over {wire} at 30 % loss: all complete, {time.perf_counter() - began:.0f} s"
    )
