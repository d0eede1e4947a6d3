"""The simulated robot in its own time: what the logs of a real one show, and a polite one."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from rote import messages as m
from rote.messages import Code
from rote.model.g1 import Mode
from rote.sim.behaviour import LOGGED, POLITE, RELEASE_S
from rote.sim.services import ServiceAnswer, Services
from rote.sim.store import Store
from rote.sim.world import World
from rote.wire.services import rpc

ANSWER_S = 0.33
MAX_START_S, MIN_LINGER_S, MAX_LINGER_S = 0.74, 0.25, 0.9
MakeServices = Callable[..., Services]


@pytest.fixture
def make() -> Iterator[MakeServices]:
    stores: list[Store] = []

    def made(*, polite: bool = False, seed: int = 0) -> Services:
        stores.append(Store(":memory:"))
        return Services(World(stores[-1], polite=polite, seed=seed))

    yield made
    for store in stores:
        store.close()


def ask(services: Services, call: rpc.Call) -> ServiceAnswer:
    return services.answer("app", call.request(1))


def doing(services: Services) -> int:
    said = services.encode_arm_state()
    assert said is not None
    return rpc.decode_arm_state(said).id


def teach(services: Services, name: str = "mine") -> None:
    assert ask(services, rpc.start_teaching(name)).code == 0
    services.world.obey("app", m.MoveByHand("wave", 1000))
    services.world.advance(1.0)
    assert ask(services, rpc.STOP_TEACHING).code == 0


def taught(services: Services) -> list[str]:
    told = rpc.decode_actions(ask(services, rpc.LIST_ACTIONS).data).taught
    return [action.name for action in told]


def seconds_of(services: Services, state: int, within_s: float = 6.0) -> float:
    """Return how long the arms' state stays as it is, which has to be `state`."""
    assert doing(services) == state
    world = services.world
    began = world.time_s
    while doing(services) == state:
        assert world.time_s - began < within_s
        world.advance(0.01)
    return world.time_s - began


def store_one(services: Services) -> None:
    key = m.Keyframe(joint=15, time_ms=1900, value_rad=0.1)
    save = m.SaveAction(name="mine", created_s=0, duration_ms=2000, keyframes=(key,))
    assert services.world.obey("test", save) == m.Status()


# ---- plays --------------------------------------------------------------------------------------


def test_starts_are_as_late_as_in_the_logs() -> None:
    chance = np.random.default_rng(1)
    drawn = np.array([LOGGED.draw_start_delay_s(chance) for _ in range(20_000)])
    assert 0.0 <= drawn.min() < 0.02
    assert 0.7 < drawn.max() <= MAX_START_S
    assert float(np.mean(drawn > 0.5)) == pytest.approx(2 / 15, abs=0.01)
    lingers = np.array([LOGGED.draw_linger_s(chance) for _ in range(20_000)])
    assert (lingers.min(), lingers.max()) == pytest.approx((0.25, 0.9), abs=0.01)


@pytest.mark.parametrize("seed", range(4))
def test_a_play_begins_only_after_its_answer(make: MakeServices, seed: int) -> None:
    services = make(seed=seed)
    store_one(services)
    before = services.world.body.setpoint_rad
    assert ask(services, rpc.play_taught("mine")) == ServiceAnswer(0, delay_s=ANSWER_S)
    waited_s = seconds_of(services, 0)
    assert ANSWER_S <= waited_s <= ANSWER_S + MAX_START_S + 0.02
    assert np.abs(services.world.body.setpoint_rad - before).max() < 1e-3, "it stood still so far"
    assert doing(services) == 100
    services.world.advance(1.5)
    assert np.abs(services.world.body.setpoint_rad - before).max() > 0.05


def test_the_delays_are_those_of_the_seed(make: MakeServices) -> None:
    def waits(seed: int) -> float:
        services = make(seed=seed)
        store_one(services)
        ask(services, rpc.play_taught("mine"))
        return seconds_of(services, 0)

    assert waits(3) == waits(3)
    assert len({waits(seed) for seed in range(6)}) > 1


def test_before_it_begins_a_second_play_is_refused_and_a_stop_stops_it(make: MakeServices) -> None:
    services = make()
    store_one(services)
    assert ask(services, rpc.play_taught("mine")).code == 0
    assert ask(services, rpc.play_taught("mine")).code == Code.BUSY
    assert ask(services, rpc.STOP_TAUGHT).code == 0
    services.world.advance(0.02)
    assert doing(services) == 99
    services.world.advance(RELEASE_S)
    assert doing(services) == 0
    assert services.world.stopped_early


def test_a_polite_robot_plays_at_once(make: MakeServices) -> None:
    services = make(polite=True)
    store_one(services)
    assert ask(services, rpc.play_taught("mine")).code == 0
    assert doing(services) == 100


# ---- after a teaching ---------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_after_a_teaching_the_state_lingers_then_the_arms_are_released(
    make: MakeServices, seed: int
) -> None:
    services = make(seed=seed)
    teach(services)
    assert not services.world.state().arms_soft, "the arms hold from the stop on"
    lingered_s = seconds_of(services, -1)
    assert MIN_LINGER_S <= lingered_s <= MAX_LINGER_S + 0.02
    assert seconds_of(services, 99) == pytest.approx(RELEASE_S, abs=0.02)
    assert doing(services) == 0


def test_until_the_release_has_ended_nothing_can_be_played_or_taught(make: MakeServices) -> None:
    services = make()
    teach(services)
    refused = (
        rpc.play_taught("mine"),
        rpc.execute_preset(27),
        rpc.start_teaching("another"),
    )
    for _ in range(2):
        assert [ask(services, call).code for call in refused] == [7400] * 3
        services.world.advance(2.0)
    assert ask(services, rpc.STOP_TAUGHT).code == 0
    services.world.advance(1.2)
    assert doing(services) == 0
    assert ask(services, rpc.play_taught("mine")).code == 0


def test_a_new_action_is_listed_after_the_release_and_an_overwritten_one_always(
    make: MakeServices,
) -> None:
    services = make()
    teach(services)
    assert taught(services) == []
    services.world.advance(5.1)
    assert taught(services) == ["mine"]
    teach(services)
    assert taught(services) == ["mine"]


def test_a_damped_robot_forgets_the_release(make: MakeServices) -> None:
    services = make()
    teach(services)
    assert ask(services, rpc.set_fsm(Mode.DAMP)).code == 0
    services.world.advance(0.5)
    assert doing(services) == 0
    assert not services.world.occupied


def test_after_a_playback_the_next_may_follow_at_once(make: MakeServices) -> None:
    services = make()
    store_one(services)
    ask(services, rpc.play_taught("mine"))
    services.world.advance(2.0)
    ask(services, rpc.STOP_TAUGHT)
    services.world.advance(0.1)
    assert doing(services) == 99
    assert ask(services, rpc.play_taught("mine")).code == 0


def test_a_polite_robot_is_ready_right_after_a_teaching(make: MakeServices) -> None:
    services = make(polite=True)
    teach(services)
    assert services.world.firmware.behaviour is POLITE
    assert doing(services) == 99
    assert taught(services) == ["mine"]
    assert ask(services, rpc.play_taught("mine")).code == 0


def test_a_teaching_over_the_frames_leaves_the_robot_ready(make: MakeServices) -> None:
    world = make().world
    save = m.SaveAction(name="mine", created_s=0, duration_ms=500)
    before: tuple[m.Command, ...] = (m.EnterTeaching(), m.Record(on=True))
    after: tuple[m.Command, ...] = (m.Record(on=False), m.ExitTeaching(), save)
    for command in before:
        assert world.obey("frames", command) == m.Status()
    world.advance(0.5)
    for command in (*after, m.PlayAction(action=1)):
        assert world.obey("frames", command) == m.Status()
    world.advance(0.1)
    assert world.doing.id == 100
