"""A G1's services on the simulated robot: the same world in other words."""

import json
from collections.abc import Iterator

import pytest

from rote import messages as m
from rote.messages import Mode
from rote.sim.presets import PRESETS
from rote.sim.services import Answer, Services
from rote.sim.store import Store
from rote.sim.world import World
from rote.wire import rpc


@pytest.fixture
def services() -> Iterator[Services]:
    store = Store(":memory:")
    yield Services(World(store))
    store.close()


def ask(services: Services, call: rpc.Call, client: str = "app") -> Answer:
    return services.answer(client, call.request(1))


def taught(services: Services) -> list[str]:
    _, names = rpc.decode_actions(ask(services, rpc.LIST_ACTIONS).data)
    return [action.name for action in names]


def teach(services: Services, name: str, seconds: float = 1.0) -> None:
    assert ask(services, rpc.start_teaching(name)).code == 0
    services.world.obey("app", m.MoveByHand("wave", round(seconds * 1000)))
    services.world.advance(seconds)
    assert ask(services, rpc.STOP_TEACHING).code == 0


def doing(services: Services) -> rpc.ArmState:
    return rpc.decode_arm_state(services.arm_state())


def test_a_motion_is_taught_listed_played_renamed_and_deleted(services: Services) -> None:
    assert taught(services) == []
    teach(services, "mine", 2.0)
    assert taught(services) == ["mine"]
    services.world.advance(5.0)
    play = ask(services, rpc.play_taught("mine"))
    assert (play.code, play.delay_s) == (0, 0.33)
    services.world.advance(1.0)
    assert doing(services).words == "playing (mine)"
    services.world.advance(6.0)
    assert doing(services).words == "idle"
    assert ask(services, rpc.rename_taught("mine", "yours")).code == 0
    assert taught(services) == ["yours"]
    assert ask(services, rpc.delete_taught("yours")).code == 0
    assert taught(services) == []


def test_the_arms_say_what_they_do(services: Services) -> None:
    ask(services, rpc.start_teaching("mine"))
    assert doing(services).words == "recording (mine)"
    services.world.advance(0.5)
    assert ask(services, rpc.KEEP_TEACHING).code == 0
    ask(services, rpc.STOP_TEACHING)
    assert doing(services).words == "releasing (release_arm)"


def test_what_was_taught_on_one_wire_plays_on_the_other(services: Services) -> None:
    teach(services, "by service")
    services.world.advance(5.0)
    reply = services.world.obey("udp client", m.ListActions())
    assert isinstance(reply, m.ActionList)
    assert [action.name for action in reply.actions] == ["by service"]
    play = services.world.obey("udp client", m.PlayAction(action=1))
    assert play == m.Status(m.Code.OK)


def test_teaching_an_existing_name_overwrites_it_as_a_real_robot_does(services: Services) -> None:
    teach(services, "mine", 1.0)
    services.world.advance(5.0)
    teach(services, "mine", 2.0)
    (entry,) = services.world.store.entries()
    assert entry.duration_ms == pytest.approx(2000, abs=50)


def test_a_stop_without_a_teaching_is_answered_zero_and_saves_nothing(services: Services) -> None:
    assert ask(services, rpc.STOP_TEACHING).code == 0
    assert taught(services) == []


def test_a_preset_is_answered_when_it_is_over_and_shows_its_id(services: Services) -> None:
    answer = ask(services, rpc.execute_preset(27))
    assert (answer.code, answer.when_over) == (0, True)
    services.world.advance(1.0)
    assert doing(services).words == "preset 27 (shake_hand)"
    assert ask(services, rpc.execute_preset(26)).code == 7400
    services.world.advance(8.0)
    assert doing(services).words == "idle"
    assert ask(services, rpc.execute_preset(99)).code == 0
    assert doing(services).words == "releasing (release_arm)"


def test_every_preset_can_be_played(services: Services) -> None:
    for preset in PRESETS:
        assert ask(services, rpc.execute_preset(preset)).code == 0
        services.world.advance(12.0)


def test_stop_ends_what_plays(services: Services) -> None:
    ask(services, rpc.execute_preset(26))
    services.world.advance(1.0)
    assert ask(services, rpc.STOP_TAUGHT).code == 0
    assert doing(services).words == "releasing (release_arm)"


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (rpc.play_taught("nothing"), 7402),
        (rpc.delete_taught("nothing"), 7402),
        (rpc.rename_taught("nothing", "else"), 7402),
        (rpc.execute_preset(77), 7402),
        (rpc.KEEP_TEACHING, 7416),
        (rpc.set_fsm(77), 7302),
        (rpc.Call("arm", 7106, "no json"), 3204),
        (rpc.Call("arm", 7110, '{"action_name":"' + "x" * 32 + '"}'), 3204),
        (rpc.Call("arm", 7114), 3203),
        (rpc.Call("sport", 7107), 3203),
    ],
)
def test_what_cannot_be_done_is_refused_by_its_code(
    services: Services, call: rpc.Call, code: int
) -> None:
    assert ask(services, call).code == code


def test_without_balance_nothing_is_taught_or_played(services: Services) -> None:
    services.world.machine.mode = Mode.DAMP
    assert ask(services, rpc.start_teaching("mine")).code == 7404
    assert ask(services, rpc.execute_preset(27)).code == 7404
    assert ask(services, rpc.set_fsm(500)).code == 7404
    assert ask(services, rpc.set_fsm(4)).code == 0
    services.world.advance(3.0)
    assert json.loads(ask(services, rpc.GET_FSM).data) == {"data": 4}


def test_the_other_services_answer(services: Services) -> None:
    assert rpc.decode_mode_check(ask(services, rpc.CHECK_MODE).data) == "ai"
    assert rpc.decode_value(ask(services, rpc.Call("sport", 7002)).data) == 0
    listed = json.loads(ask(services, rpc.Call("robot_state", 1003)).data)
    assert "g1_arm_example" in {service["name"] for service in listed}


def test_a_broken_store_is_a_code_and_no_crash(services: Services) -> None:
    services.world.store.close()
    assert ask(services, rpc.LIST_ACTIONS).code == m.Code.STORE_FAILED
    assert ask(services, rpc.play_taught("mine")).code == 7402


def test_a_bad_new_name_is_refused_by_the_robot_too(services: Services) -> None:
    teach(services, "mine")
    renamed = services.world.obey("app", m.RenameAction("mine", "a\nb"))
    assert renamed == m.Status(m.Code.BAD_PAYLOAD)
    teach(services, "other")
    taken = services.world.obey("app", m.RenameAction("mine", "other"))
    assert taken == m.Status(m.Code.NAME_EXISTS)
