"""A G1's services on the simulated robot: the same world in other words."""

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from rote import messages as m
from rote.model.family import Build
from rote.model.g1 import G1_23, G1_27, G1_29, Mode
from rote.model.r1 import R1_26
from rote.sim.firmware import PROFILES
from rote.sim.presets import PRESETS, presets_of
from rote.sim.services import ServiceAnswer, Services
from rote.sim.store import Store
from rote.sim.world import World
from rote.wire.services import rpc


@pytest.fixture
def services() -> Iterator[Services]:
    store = Store(":memory:")
    yield Services(World(store, build=G1_23, polite=True))
    store.close()


def ask(services: Services, call: rpc.Call, client: str = "app") -> ServiceAnswer:
    return services.answer(client, call.request(1))


def taught(services: Services) -> list[str]:
    names = rpc.decode_actions(ask(services, rpc.LIST_ACTIONS).data).taught
    return [action.name for action in names]


def teach(services: Services, name: str, seconds: float = 1.0) -> None:
    assert ask(services, rpc.start_teaching(name)).code == 0
    services.world.obey("app", m.MoveByHand("wave", round(seconds * 1000)))
    services.world.advance(seconds)
    assert ask(services, rpc.STOP_TEACHING).code == 0


def doing(services: Services) -> rpc.ArmState:
    said = services.encode_arm_state()
    assert said is not None
    return rpc.decode_arm_state(said)


def test_a_motion_is_taught_listed_played_renamed_and_deleted(services: Services) -> None:
    assert taught(services) == []
    teach(services, "mine", 2.0)
    assert taught(services) == ["mine"]
    services.world.advance(5.0)
    play = ask(services, rpc.play_taught("mine"))
    assert (play.code, play.delay_s) == (0, 0.33)
    services.world.advance(1.0)
    assert doing(services).label == "playing (mine)"
    services.world.advance(8.0)
    assert doing(services).label == "idle"
    assert ask(services, rpc.rename_taught("mine", "yours")).code == 0
    assert taught(services) == ["yours"]
    assert ask(services, rpc.delete_taught("yours")).code == 0
    assert taught(services) == []


def test_the_arms_say_what_they_do(services: Services) -> None:
    ask(services, rpc.start_teaching("mine"))
    assert doing(services).label == "recording (mine)"
    services.world.advance(0.5)
    assert ask(services, rpc.KEEP_TEACHING).code == 0
    ask(services, rpc.STOP_TEACHING)
    assert doing(services).label == "releasing (release_arm)"


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
    assert (answer.code, answer.after_preset) == (0, 27)
    services.world.advance(4.0)
    assert not services.can_send(answer)
    assert doing(services).label == "preset 27 (shake_hand)"
    assert ask(services, rpc.execute_preset(26)).code == 7400
    services.world.advance(0.3)
    assert services.can_send(answer)
    services.world.advance(1.0)
    assert doing(services).label == "idle"
    release = ask(services, rpc.execute_preset(99))
    assert (release.code, release.after_preset) == (0, 99)
    assert doing(services).label == "releasing (release_arm)"
    services.world.advance(4.0)
    assert not services.can_send(release)
    services.world.advance(0.2)
    assert services.can_send(release)


def test_a_preset_that_holds_is_answered_when_its_pose_is_reached(services: Services) -> None:
    answer = ask(services, rpc.execute_preset(15))
    services.world.advance(2.0)
    assert not services.can_send(answer)
    services.world.advance(2.0)
    assert services.can_send(answer)
    assert doing(services).label == "preset 15 (both_hands_up), holding"
    assert ask(services, rpc.execute_preset(27)).code == 7401
    assert ask(services, rpc.start_teaching("mine")).code == 7401
    again = ask(services, rpc.execute_preset(15))
    assert again.code == 0
    assert services.can_send(again)
    assert ask(services, rpc.execute_preset(99)).after_preset == 99


def test_a_release_during_a_preset_is_answered_at_once_and_comes_after_it(
    services: Services,
) -> None:
    ask(services, rpc.execute_preset(27))
    services.world.advance(1.0)
    release = ask(services, rpc.execute_preset(99))
    assert (release.code, release.after_preset) == (0, 0)
    assert doing(services).id == 27
    services.world.advance(4.0)
    assert doing(services).id == 99


@pytest.mark.parametrize(
    ("version", "build"), [("1.4.7", G1_23), ("1.5.3", G1_29), ("1.5.3", G1_27)]
)
def test_every_preset_that_is_listed_can_be_played_and_no_other(version: str, build: Build) -> None:
    store = Store(":memory:")
    services = Services(World(store, build=build, firmware=PROFILES[version]))
    listed = rpc.decode_actions(ask(services, rpc.LIST_ACTIONS).data).presets
    assert {preset.id for preset in listed} == {preset.id for preset in presets_of(build)}
    for preset in PRESETS:
        possible = preset in {one.id for one in listed}
        assert ask(services, rpc.execute_preset(preset)).code == (0 if possible else 7402)
        services.world.advance(0.2)
        ask(services, rpc.STOP_TAUGHT)
        services.world.advance(0.8)  # it has halted, and returns
    store.close()


def test_the_list_has_the_gates_of_the_hardware(services: Services) -> None:
    listed = rpc.decode_actions(ask(services, rpc.LIST_ACTIONS).data).presets
    presets = {preset.id: preset for preset in listed}
    assert presets[1].fsm == (500, 501)
    assert presets[31].mode_machine == (4,)
    assert not {20, 21, 28, 29, 30, 36} & presets.keys()


def test_stop_ends_what_plays(services: Services) -> None:
    ask(services, rpc.execute_preset(26))
    services.world.advance(1.0)
    assert ask(services, rpc.STOP_TAUGHT).code == 0
    assert doing(services).label == "releasing (release_arm)"


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (rpc.play_taught("nothing"), 7402),
        (rpc.delete_taught("nothing"), 7402),
        (rpc.rename_taught("nothing", "else"), 7402),
        (rpc.execute_preset(77), 7402),
        (rpc.KEEP_TEACHING, 7399),
        (rpc.execute_preset(20), 7402),
        (rpc.set_fsm(802), 7302),
        (rpc.set_fsm(77), 7302),
        (rpc.Call("arm", 7106, "no json"), 3204),
        (rpc.Call("arm", 7110, '{"action_name":"' + "x" * 32 + '"}'), 3204),
        (rpc.Call("arm", 7114), 3203),
        (rpc.Call("arm", 7111, "{}"), 3204),
        (rpc.Call("sport", 7107, '{"data":4}'), 3204),
        (rpc.Call("sport", 7105, '{"velocity":[0,0]}'), 3204),
        (rpc.Call("sport", 7105, '{"velocity":[0,0,"fast"]}'), 3204),
        (rpc.Call("sport", 7105, '{"velocity":[0,0,0],"duration":-1}'), 3204),
        (rpc.Call("sport", 7106), 3204),
        (rpc.Call("sport", 7110), 3203),
        (rpc.Call("motion_switcher", 1002, '{"name":"normal"}'), 7004),
        (rpc.Call("motion_switcher", 1004), 3203),
        (rpc.Call("robot_state", 1001, '{"name":"basic_service","switch":0}'), 5202),
        (rpc.Call("robot_state", 1001, '{"name":"nothing","switch":0}'), 5201),
        (rpc.Call("robot_state", 1001, '{"name":"ai_sport","switch":2}'), 5201),
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


@pytest.fixture
def newer_services() -> Iterator[Services]:
    """A G1 with 29 joints and the software of which logs of a real one were published."""
    store = Store(":memory:")
    yield Services(World(store, build=G1_29, firmware=PROFILES["1.5.3"]))
    store.close()


@pytest.mark.parametrize("mode", [99999, 500, 501, 801])
def test_newer_software_confirms_a_mode_that_it_does_not_enter(
    newer_services: Services, mode: int
) -> None:
    newer_services.world.machine.mode = Mode.DAMP
    assert ask(newer_services, rpc.set_fsm(mode)).code == 0
    newer_services.world.advance(3.0)
    assert newer_services.world.machine.mode == Mode.DAMP


def test_newer_software_stands_by_1_4_501_and_drops_501_until_it_stands(
    newer_services: Services,
) -> None:
    world = newer_services.world
    assert world.machine.mode == 501
    for mode in (1, 4):
        assert ask(newer_services, rpc.set_fsm(mode)).code == 0
        if mode == 4:
            world.advance(0.5)  # it is getting up
            assert ask(newer_services, rpc.set_fsm(501)).code == 0
        world.advance(3.0)
        assert world.machine.mode == mode
    assert ask(newer_services, rpc.set_fsm(501)).code == 0
    world.advance(3.0)
    assert world.machine.mode == 501


def test_newer_software_lists_a_new_action_at_once_and_plays_it_after_the_release(
    newer_services: Services,
) -> None:
    teach(newer_services, "mine")
    newer_services.world.advance(0.9)
    assert taught(newer_services) == ["mine"]
    assert ask(newer_services, rpc.play_taught("mine")).code == 7400
    newer_services.world.advance(5.0)
    assert ask(newer_services, rpc.play_taught("mine")).code == 0


@pytest.mark.parametrize("version", ["1.4.7", "1.5.3"])
def test_an_empty_object_keeps_a_teaching_alive_and_only_an_empty_text_ends_it(
    version: str,
) -> None:
    store = Store(":memory:")
    services = Services(World(store, build=G1_29, firmware=PROFILES[version]))
    assert ask(services, rpc.start_teaching("mine")).code == 0
    for _ in range(4):
        services.world.advance(8.0)
        assert ask(services, rpc.Call("arm", 7110, "{}")).code == 0
        assert services.world.teaching, "32 s are over three times the lapse"
    assert ask(services, rpc.Call("arm", 7110, "")).code == 0
    assert not services.world.teaching
    store.close()


@pytest.fixture
def r1_services() -> Iterator[Services]:
    store = Store(":memory:")
    yield Services(World(store, build=R1_26, polite=True))
    store.close()


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (rpc.set_fsm(811), 1001),
        (rpc.set_fsm(813), 1001),
        (rpc.set_fsm(0), 1001),
        (rpc.set_fsm(9999), 1003),
        (rpc.set_fsm(500), 1003),
        (rpc.Call("sport", 7105, '{"velocity":[0,0,0]}'), 127),
        (rpc.Call("sport", 7002), 3203),
        (rpc.Call("sport", 7107, '{"data":1}'), 3203),
    ],
)
def test_an_r1_refuses_by_its_own_codes(r1_services: Services, call: rpc.Call, code: int) -> None:
    assert ask(r1_services, call).code == code
    assert r1_services.world.machine.mode == 811
    assert rpc.explain("sport", code)[0] != "for a reason it does not explain"


def test_an_r1_changes_its_mode_as_in_the_log_of_a_real_one(r1_services: Services) -> None:
    for mode in (4, 811, 1, 0):
        assert ask(r1_services, rpc.set_fsm(mode)).code == 0
        r1_services.world.advance(3.0)
        assert rpc.decode_value(ask(r1_services, rpc.GET_FSM).data) == mode


def test_an_r1_does_not_report_some_of_its_modes_and_is_damped_from_there(
    r1_services: Services,
) -> None:
    for mode in (4, 813):
        assert ask(r1_services, rpc.set_fsm(mode)).code == 0
        r1_services.world.advance(3.0)
    assert r1_services.world.machine.mode == 813
    assert ask(r1_services, rpc.GET_FSM).code != 0
    assert not isinstance(r1_services.read_mode(), int)
    assert ask(r1_services, rpc.set_fsm(1)).code == 0
    r1_services.world.advance(1.0)
    assert r1_services.read_mode() == 1


def test_the_other_services_answer(services: Services) -> None:
    assert rpc.decode_mode_check(ask(services, rpc.CHECK_MODE).data) == "ai"
    assert rpc.decode_value(ask(services, rpc.Call("sport", 7002)).data) == 0
    listed = json.loads(ask(services, rpc.Call("robot_state", 1003)).data)
    assert {service["name"]: service["status"] for service in listed}["g1_arm_example"] == 0


def test_a_broken_store_is_a_code_and_no_crash(services: Services) -> None:
    services.world.store.close()
    assert ask(services, rpc.LIST_ACTIONS).code == 7399
    assert ask(services, rpc.play_taught("mine")).code == 7403
    assert ask(services, rpc.delete_taught("mine")).code == 7399


def test_an_action_that_cannot_be_read_is_told_as_such(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = Store(path)
    services = Services(World(store))
    teach(services, "mine")
    services.world.advance(5.0)
    with sqlite3.connect(path) as other:
        other.execute("UPDATE actions SET crc = crc + 1")
    other.close()
    assert ask(services, rpc.play_taught("mine")).code == 7403
    store.close()


def test_a_full_store_keeps_what_it_has_and_stop_still_answers_zero(services: Services) -> None:
    for number in range(m.MAX_ACTIONS):
        teach(services, f"action {number}", 0.1)
    teach(services, "one more", 0.1)
    assert "one more" not in taught(services)
    assert any("places" in notice.message for notice in services.world.notices)
    teach(services, "action 0", 0.1)
    assert len(taught(services)) == m.MAX_ACTIONS


def test_what_is_too_fast_is_refused_with_a_number_of_the_services(services: Services) -> None:
    wild = m.SaveAction(
        name="wild",
        created_s=0,
        duration_ms=100,
        keyframes=tuple(
            m.Keyframe(joint=15, time_ms=ms, value_rad=2.0 * (-1) ** (ms // 10))
            for ms in range(0, 100, 10)
        ),
    )
    assert services.world.obey("app", wild) == m.Status()
    assert ask(services, rpc.play_taught("wild")).code == 7399


def test_a_bad_new_name_is_refused_by_the_robot_too(services: Services) -> None:
    teach(services, "mine")
    renamed = services.world.obey("app", m.RenameAction("mine", "a\nb"))
    assert renamed == m.Status(m.Code.BAD_PAYLOAD)
    teach(services, "other")
    taken = services.world.obey("app", m.RenameAction("mine", "other"))
    assert taken == m.Status(m.Code.NAME_EXISTS)


# ---- teaching by the services' rules ------------------------------------------------------------


def test_a_teaching_without_a_keep_alive_ends_after_ten_seconds(services: Services) -> None:
    ask(services, rpc.start_teaching("mine"))
    services.world.advance(9.0)
    assert ask(services, rpc.KEEP_TEACHING).code == 0
    services.world.advance(9.9)
    assert doing(services).id == -1
    services.world.advance(0.2)
    assert doing(services).id == 99
    assert ask(services, rpc.KEEP_TEACHING).code == 7399
    assert ask(services, rpc.STOP_TEACHING).code == 0


def test_a_pause_is_always_answered_zero_and_is_left_out(services: Services) -> None:
    assert ask(services, rpc.pause_teaching(paused=True)).code == 0
    ask(services, rpc.start_teaching("mine"))
    services.world.advance(1.0)
    assert ask(services, rpc.pause_teaching(paused=True)).code == 0
    services.world.advance(3.0)
    assert doing(services).label == "recording (mine)"
    assert ask(services, rpc.pause_teaching(paused=False)).code == 0
    services.world.advance(1.0)
    ask(services, rpc.STOP_TEACHING)
    (mine,) = rpc.decode_actions(ask(services, rpc.LIST_ACTIONS).data).taught
    assert 1.9 < mine.seconds < 2.3, "without the pause, and with a soft way over it"


def test_a_second_client_can_end_a_teaching_and_not_take_it_over(services: Services) -> None:
    ask(services, rpc.start_teaching("mine"))
    assert ask(services, rpc.start_teaching("yours"), "other").code == 7400
    assert ask(services, rpc.KEEP_TEACHING, "other").code == 7399
    assert doing(services).label == "recording (mine)"
    assert ask(services, rpc.STOP_TEACHING, "other").code == 0
    assert not services.world.body.soft


def test_a_stop_of_taught_actions_does_not_end_a_teaching(services: Services) -> None:
    ask(services, rpc.start_teaching("mine"))
    assert ask(services, rpc.STOP_TAUGHT).code == 0
    assert services.world.body.soft
    assert doing(services).label == "recording (mine)"


@pytest.mark.parametrize(("fault", "code"), [((600, 0x8), 7406), ((3016, 0x10), 7407)])
def test_an_unwell_robot_neither_teaches_nor_plays(
    services: Services, fault: tuple[int, int], code: int
) -> None:
    teach(services, "mine")
    services.world.advance(5.0)
    services.world.health.add_fault(*fault)
    for call in (rpc.start_teaching("x"), rpc.play_taught("mine"), rpc.execute_preset(27)):
        assert ask(services, call).code == code
    assert [(one.source, one.code) for one in services.faults()] == [fault]
    services.world.health.clear_fault(*fault)
    assert ask(services, rpc.play_taught("mine")).code == 0


# ---- the other services -------------------------------------------------------------------------


def test_in_debug_mode_arms_and_legs_do_not_answer_at_all(services: Services) -> None:
    assert ask(services, rpc.Call("motion_switcher", 1003)).code == 0
    assert rpc.decode_mode_check(ask(services, rpc.CHECK_MODE).data) == ""
    assert ask(services, rpc.LIST_ACTIONS).silent
    assert ask(services, rpc.GET_FSM).silent
    select = rpc.Call("motion_switcher", 1002, '{"name":"ai"}')
    assert ask(services, select).code == 0
    assert ask(services, select).code == 0
    assert rpc.decode_mode_check(ask(services, rpc.CHECK_MODE).data) == "ai"
    assert rpc.decode_value(ask(services, rpc.GET_FSM).data) == Mode.DAMP


def test_a_service_that_is_switched_off_does_not_answer(services: Services) -> None:
    def switch(on: int) -> str:
        parameter = json.dumps({"name": "g1_arm_example", "switch": on})
        return ask(services, rpc.Call("robot_state", 1001, parameter)).data

    def status() -> int:
        listed = json.loads(ask(services, rpc.Call("robot_state", 1003)).data)
        return {one["name"]: int(one["status"]) for one in listed}["g1_arm_example"]

    assert json.loads(switch(0)) == {"name": "g1_arm_example", "status": 1}
    assert ask(services, rpc.LIST_ACTIONS).silent
    assert not ask(services, rpc.GET_FSM).silent
    assert status() == 1
    switch(1)
    assert not ask(services, rpc.LIST_ACTIONS).silent
    assert status() == 0


def test_the_legs_take_numbers_and_stay(services: Services) -> None:
    for getter, setter, value in ((7003, 7102, 1), (7004, 7103, 0.1), (7005, 7104, -0.05)):
        parameter = json.dumps({"data": value})
        assert ask(services, rpc.Call("sport", setter, parameter)).code == 0
        assert json.loads(ask(services, rpc.Call("sport", getter)).data) == {"data": value}
    before = services.world.body.joints_rad.copy()
    walk = rpc.Call("sport", 7105, '{"velocity":[0.3,0,0],"duration":1.0}')
    assert ask(services, walk).code == 0
    services.world.advance(1.0)
    assert abs(services.world.body.joints_rad - before).max() < 0.1
    assert ask(services, rpc.Call("sport", 7107, '{"data":3}')).code == 0
    assert ask(services, rpc.Call("robot_state", 1002, '{"interval":2}')).code == 0


def test_of_all_scripts_only_the_version_is_told(services: Services) -> None:
    def run(script: str, api: int = 1001) -> ServiceAnswer:
        parameter = json.dumps({"script": script})
        request = rpc.RpcRequest(service="bashrunner", api_id=api, id=1, parameter=parameter)
        return services.answer("app", request)

    told = json.loads(run("get_software_version.sh").data)
    assert told == {"type": "content acquisition", "info": "1.4.7"}
    assert run("get_software_version.sh; reboot").code == 3204
    assert run("get_hardware_version.sh").code == 3204
    assert run("get_software_version.sh", 1002).code == 3203


def test_without_latency_every_answer_is_at_once() -> None:
    store = Store(":memory:")
    services = Services(World(store), latency=False)
    for call in (rpc.LIST_ACTIONS, rpc.CHECK_MODE, rpc.start_teaching("x"), rpc.Call("arm", 1)):
        assert ask(services, call).delay_s == 0.0
    store.close()


# ---- getting up, arm tasks, the voice -----------------------------------------------------------


def ask_sport(services: Services, api: int, value: int) -> int:
    return ask(services, rpc.Call(rpc.SPORT, api, rpc.encode_value(value))).code


@pytest.mark.parametrize("mode", [702, 706])
def test_a_damped_robot_gets_up_by_the_documented_modes_and_stands(
    services: Services, mode: int
) -> None:
    assert ask_sport(services, 7101, Mode.DAMP) == 0
    services.world.advance(0.5)
    assert ask_sport(services, 7101, mode) == 0
    services.world.advance(4.0)
    assert rpc.decode_value(ask(services, rpc.GET_FSM).data) == mode
    assert ask(services, rpc.start_teaching("mine")).code == m.Code.WRONG_STATE
    assert ask_sport(services, 7101, Mode.WALK) == 0
    services.world.advance(2.0)
    assert ask(services, rpc.start_teaching("mine")).code == 0


def test_a_standing_robot_squats_but_does_not_get_up_from_the_ground(services: Services) -> None:
    assert ask_sport(services, 7101, 702) == m.Code.WRONG_STATE
    assert ask_sport(services, 7101, 706) == 0
    assert ask_sport(services, 7101, 707) == 7302


@pytest.mark.parametrize(("task", "preset"), [(0, 26), (1, 1), (2, 27)])
def test_an_arm_task_of_sport_is_a_preset(services: Services, task: int, preset: int) -> None:
    assert ask_sport(services, 7106, task) == 0
    assert doing(services).id == preset
    assert ask_sport(services, 7106, task) == 7301
    assert ask_sport(services, 7106, 9) == 7303


def speak(services: Services, api: int, **values: object) -> ServiceAnswer:
    request = rpc.RpcRequest(service="voice", api_id=api, id=1, parameter=json.dumps(values))
    return services.answer("app", request)


def test_the_voice_speaks_plays_and_lights_up_and_remembers_its_volume(services: Services) -> None:
    assert json.loads(speak(services, 1005).data) == {"volume": 60}
    assert speak(services, 1006, volume=85).code == 0
    assert json.loads(speak(services, 1005).data) == {"volume": 85}
    assert speak(services, 1001, index=0, speaker_id=1, text="hello").code == 0
    assert speak(services, 1003, app_name="show", stream_id="7").code == 0
    assert speak(services, 1004, app_name="show").code == 0
    assert speak(services, 1010, R=255, G=0, B=10).code == 0
    said = [notice.message for notice in services.world.notices]
    assert said == [
        "its volume is now 85 %",
        "it says 'hello'",
        "it plays the sound '7'",
        "the sounds of 'show' stop",
        "its light is now (255, 0, 10)",
    ]


@pytest.mark.parametrize(
    ("api", "values", "code"),
    [
        (1001, {}, 100),
        (1006, {"volume": 101}, 100),
        (1006, {"volume": "loud"}, 100),
        (1010, {"R": 256, "G": 0, "B": 0}, 100),
        (1010, {"R": 1}, 100),
        (1099, {}, 3203),
    ],
)
def test_the_voice_refuses_what_makes_no_sense(
    services: Services, api: int, values: dict[str, object], code: int
) -> None:
    assert speak(services, api, **values).code == code
    assert json.loads(speak(services, 1005).data) == {"volume": 60}
