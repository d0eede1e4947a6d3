"""Odd firmware on request: each quirk on the wire, and the table of them in the docs."""

import asyncio
import dataclasses
import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import pytest
import quirks as page

import virtual
from rig import rig
from rote import messages as m
from rote.cli import main
from rote.errors import BadRequestError
from rote.messages import Phase, RobotState
from rote.model.g1 import G1_29
from rote.session.events import Replied
from rote.session.teaching import Role, TeachingSession
from rote.sim.firmware import DEFAULT
from rote.sim.quirks import (
    DDS,
    FIXED_TICK_MS,
    GROUPS,
    LATE_ANSWER_S,
    LATE_ARM_STATE_S,
    QUIRKS,
    SMALL_MESSAGE,
    UDP,
    WEBRTC,
    Missing,
    Quirk,
    Quirks,
    Refused,
    quirks_named,
)
from rote.sim.rpc_server import RpcClientSession
from rote.sim.server import Simulator
from rote.sim.services import Services
from rote.sim.store import Store
from rote.sim.world import World
from rote.transport.webrtc import stack as webrtc
from rote.wire.services import rpc
from rote.wire.services.lowstate import LOWSTATE_TOPIC, SPORT_TOPIC
from rote.wire.teaching import codec as teaching
from rote.wire.teaching.state import decode_state
from rote.wire.webrtc import channel

CHALLENGE = "c0ffee"
TOPICS = (LOWSTATE_TOPIC, SPORT_TOPIC, rpc.ARM_STATE_TOPIC)
Raw = list[tuple[float, str | bytes]]


# ---- the table ----------------------------------------------------------------------------------


def test_the_list_in_the_docs_is_the_table() -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    told = text.partition(page.BEGIN)[2].partition(page.END)[0].strip()
    assert told == page.listed().strip(), "renew it: python scripts/generate/quirks.py"


def changed(quirk: Quirk) -> list[str]:
    plain = Quirk(name="", group="", wires=(), what="")
    facts = {"name", "group", "wires", "what"}
    names = [field.name for field in dataclasses.fields(Quirk) if field.name not in facts]
    return [name for name in names if getattr(quirk, name) != getattr(plain, name)]


@pytest.mark.parametrize("quirk", QUIRKS.values(), ids=list(QUIRKS))
def test_every_quirk_says_what_it_does_where_and_does_something(quirk: Quirk) -> None:
    assert changed(quirk)
    assert quirk.group in GROUPS
    assert quirk.wires
    assert set(quirk.wires) <= {UDP, WEBRTC, DDS}
    assert "\n" not in quirk.what
    assert not quirk.what.endswith(".")


def test_quirks_are_chosen_by_name_one_by_one_or_in_a_list() -> None:
    chosen = quirks_named(["no-dq, no-tick", "nul"])
    assert [quirk.name for quirk in chosen.chosen] == ["no-tick", "no-dq", "nul"]
    assert not quirks_named([])
    with pytest.raises(BadRequestError, match="unknown quirk"):
        quirks_named(["no-such"])


LOWSTATE = {
    "tick": 1,
    "imu_state": {"accelerometer": [0, 0, 9], "gyroscope": [0, 0, 0]},
    "motor_state": [{"q": 0.0, "dq": 0.0} for _ in range(35)],
}
STATE = RobotState(
    mode=500, arms_soft=True, recording=True, phase=Phase.PLAYING, stopped_early=True,
    joints_rad=(0.1,) * 29, velocities_rad_s=(0.2,) * 29, accelerometer_m_s2=(0.0, 0.0, 9.8),
    gyroscope_rad_s=(0.1, 0.1, 0.1), foot_force_n=(1.0,) * 4, time_us=5,
)  # fmt: skip
LISTS = [[{"id": 99, "name": "release_arm"}], [{"name": "mine", "time": 3.2}]]
RESPONSE = {
    "type": "res",
    "topic": "rt/api/arm/response",
    "data": {
        "header": {"identity": {"id": 7, "api_id": 7107}, "status": {"code": 0}},
        "data": "{}",
    },
}


def test_any_two_quirks_go_together() -> None:
    for pair in itertools.combinations(QUIRKS.values(), 2):
        both = Quirks(pair)
        assert {*both.chosen} == {*pair}
        both.change_arm_state({"holding": False, "id": 100, "name": "mine"})
        both.change_lowstate(LOWSTATE)
        both.change_state(STATE)
        both.change_mode(500)
        both.change_data(json.dumps(both.change_actions(LISTS)))
        both.change_message(json.dumps(both.change_response(RESPONSE)))
        both.change_description("a=candidate:1 1 udp 1 10.0.0.1 5 typ host\r\n")
        both.change_frame_state(STATE)


# ---- over the data channel ----------------------------------------------------------------------


class Raws:
    """A client that keeps what it hears as it came; the world's time follows the loop's."""

    def __init__(self, services: Services) -> None:
        self.world = services.world
        self.heard: Raw = []
        loop = asyncio.get_running_loop()
        self.robot = RpcClientSession(
            services,
            lambda message: self.heard.append((loop.time(), message)),
            challenge=CHALLENGE,
        )

    def say(self, value: channel.Value) -> None:
        self.robot.receive(channel.encode(value))

    async def wait(self, seconds: float) -> None:
        for _ in range(round(seconds / 0.05)):
            await asyncio.sleep(0.05)
            self.world.advance(0.05)

    def texts(self, mark: str) -> list[str]:
        return [text for _, text in self.heard if isinstance(text, str) and mark in text]

    def topic(self, topic: str) -> list[Any]:
        """Return what was published on a topic, read as leniently as can be."""
        told = [channel.decode(message) for _, message in self.heard if message]
        return [
            one.data
            for one in told
            if isinstance(one, channel.ChannelMessage) and one.topic == topic
        ]

    def times(self, topic: str) -> list[float]:
        return [at for at, message in self.heard if topic in str(message)]


def visited(name: str, *calls: rpc.Call, seconds: float = 1.0) -> Raws:
    """Return a client that has subscribed to all, asked, and heard for a while."""

    async def run() -> Raws:
        store = Store(":memory:")
        key = m.Keyframe(joint=15, time_ms=1900, value_rad=0.1)
        world = World(store, firmware=replace(DEFAULT, quirks=quirks_named([name])), polite=True)
        save = m.SaveAction(name="mine", created_s=0, duration_ms=2000, keyframes=(key,))
        assert world.obey("test", save) == m.Status()
        client = Raws(Services(world))
        try:
            client.say(channel.Validation(channel.answer_challenge(CHALLENGE)))
            for topic in TOPICS:
                client.say(channel.Subscription(topic))
            client.heard.clear()
            for number, call in enumerate(calls, 7):
                client.say(call.request(number))
            await client.wait(seconds)
        finally:
            client.robot.close()
            store.close()
        return client

    return virtual.run(run())


def lowstate(name: str) -> dict[str, Any]:
    told = visited(name).topic(LOWSTATE_TOPIC)[-1]
    assert isinstance(told, dict)
    return told


def motors(name: str) -> list[Any]:
    told = lowstate(name)["motor_state"]
    assert isinstance(told, list)
    return told


def answer(name: str, call: rpc.Call = rpc.LIST_ACTIONS) -> dict[str, Any]:
    """Return the answer to a call, as JSON reads it."""
    (text,) = visited(name, call).texts('"res"')
    document: dict[str, Any] = json.loads(text)
    return document


def lists(name: str) -> Any:
    return json.loads(answer(name)["data"]["data"])


def mode_told(name: str) -> tuple[object, object]:
    """Return what is answered and what is published where the mode belongs."""
    client = visited(name, rpc.GET_FSM)
    (text,) = client.texts('"res"')
    published = [one.get("fsm_id", "missing") for one in client.topic(SPORT_TOPIC)]
    body = json.loads(text)["data"]
    if body["header"]["status"]["code"]:
        return body["header"]["status"]["code"], published
    return json.loads(body["data"]), published[0]


def arm_states(name: str) -> list[Any]:
    client = visited(name, rpc.play_taught("mine"))
    return [json.loads(text) for text in client.topic(rpc.ARM_STATE_TOPIC)]


def header(name: str) -> dict[str, Any]:
    told: dict[str, Any] = answer(name)["data"]["header"]
    return told


def never_moves() -> bool:
    client = visited("never-moves", rpc.play_taught("mine"))
    (text,) = client.texts('"res"')
    ids = {json.loads(one)["id"] for one in client.topic(rpc.ARM_STATE_TOPIC)}
    return json.loads(text)["data"]["header"]["status"]["code"] == 0 and ids == {0}


def arm_state_late() -> bool:
    client = visited("arm-state-late", rpc.play_taught("mine"), seconds=LATE_ARM_STATE_S + 1.0)
    told = [json.loads(text)["id"] for text in client.topic(rpc.ARM_STATE_TOPIC)]
    # The play began at once; before it comes through, nothing at all is said.
    first_s = client.times(rpc.ARM_STATE_TOPIC)[0] - 1000.0
    return 100 in told and first_s == pytest.approx(LATE_ARM_STATE_S, abs=0.25)


def busy_after_playing() -> bool:
    calls = (rpc.play_taught("mine"), rpc.STOP_TAUGHT, rpc.play_taught("mine"))
    client = visited("busy-after-playing", *calls)
    texts = client.texts('"res"')
    codes = {
        json.loads(text)["data"]["header"]["identity"]["id"]: json.loads(text)["data"]["header"][
            "status"
        ]["code"]
        for text in texts
    }
    return codes == {7: 0, 8: 0, 9: 7400}


def binary_answers() -> bool:
    client = visited("binary-answers", rpc.LIST_ACTIONS)
    (frame,) = [message for _, message in client.heard if isinstance(message, bytes)]
    text, payload = channel.decode_frame(frame)
    return "data" not in json.loads(text)["data"] and len(json.loads(payload)) == 2


def chunked_answers() -> bool:
    texts = visited("chunked-answers", rpc.LIST_ACTIONS).texts('"res"')
    bodies = [json.loads(text)["data"] for text in texts]
    whole = "".join(body["data"] for body in bodies)
    return len(bodies) > 10 and len(json.loads(whole)) == 2


def byte_order_mark() -> bool:
    client = visited("byte-order-mark", rpc.LIST_ACTIONS)
    (text,) = client.texts('"res"')
    inner = json.loads(text.removeprefix("\ufeff"))["data"]["data"]
    every = all(str(message).startswith("\ufeff{") for _, message in client.heard)
    return every and inner.startswith("\ufeff[")


def nul() -> bool:
    (text,) = visited("nul", rpc.LIST_ACTIONS).texts('"res"')
    inner = json.loads(text.removesuffix("\0"))["data"]["data"]
    return text.endswith("}\0") and bool(inner.endswith("]\0"))


def line_breaks() -> bool:
    (text,) = visited("line-breaks", rpc.LIST_ACTIONS).texts('"res"')
    with pytest.raises(ValueError, match="control character"):
        json.loads(text)
    inner = json.loads(text, strict=False)["data"]["data"]
    with pytest.raises(ValueError, match="control character"):
        json.loads(inner)
    return bool(json.loads(inner, strict=False)[0][-1]["name"] == "two\nlines")


def late_answers() -> bool:
    client = visited("late-answers", rpc.LIST_ACTIONS, seconds=LATE_ANSWER_S + 1.0)
    ((at, _),) = [(at, one) for at, one in client.heard if '"res"' in str(one)]
    return at - 1000.0 == pytest.approx(LATE_ANSWER_S, abs=0.2)


def unknown_messages() -> bool:
    client = visited("unknown-messages", rpc.LIST_ACTIONS)
    messages = [str(message) for _, message in client.heard]
    at = next(n for n, text in enumerate(messages) if '"res"' in text)
    return messages[at - 4 : at] == list(QUIRKS["unknown-messages"].extra)


def hz(name: str) -> int:
    client = visited(name, seconds=4.0)
    return round(len(client.topic(LOWSTATE_TOPIC)) / 4.0)


CHECKS: dict[str, Callable[[], bool]] = {
    "never-moves": never_moves,
    "no-arm-state": lambda: arm_states("no-arm-state") == [],
    "arm-state-number": lambda: 100 in arm_states("arm-state-number"),
    "arm-state-no-names": lambda: {"holding": False, "id": 100} in arm_states("arm-state-no-names"),
    "arm-state-other-shape": lambda: (
        {"state": {"running": True}} in arm_states("arm-state-other-shape")
    ),
    "arm-state-late": arm_state_late,
    "busy-after-playing": busy_after_playing,
    "no-lowstate": lambda: visited("no-lowstate").topic(LOWSTATE_TOPIC) == [],
    "no-tick": lambda: "tick" not in lowstate("no-tick"),
    "fixed-tick": lambda: (
        {each["tick"] for each in visited("fixed-tick").topic(LOWSTATE_TOPIC)} == {FIXED_TICK_MS}
    ),
    "no-dq": lambda: not any("dq" in motor for motor in motors("no-dq")),
    "no-imu": lambda: lowstate("no-imu")["imu_state"] == {},
    "null-motors": lambda: motors("null-motors") == [None] * 35,
    "some-null-motors": lambda: (
        [n for n, motor in enumerate(motors("some-null-motors")) if motor is None]
        == list(range(0, 35, 5))
    ),
    "20-slots": lambda: len(motors("20-slots")) == 20,
    "29-slots": lambda: len(motors("29-slots")) == 29,
    "12-slots": lambda: len(motors("12-slots")) == 12,
    "lowstate-1hz": lambda: hz("lowstate-1hz") == 1,
    "lowstate-500hz": lambda: hz("lowstate-500hz") == pytest.approx(500, abs=5),
    "mode-refused": lambda: mode_told("mode-refused") == (3203, []),
    "mode-minus-1": lambda: mode_told("mode-minus-1") == ({"data": -1}, -1),
    "mode-text": lambda: mode_told("mode-text") == ({"data": "500"}, "500"),
    "mode-float": lambda: repr(mode_told("mode-float")) == "({'data': 500.0}, 500.0)",
    "mode-null": lambda: mode_told("mode-null") == ({"data": None}, None),
    "mode-missing": lambda: mode_told("mode-missing") == ({}, "missing"),
    "list-no-time": lambda: lists("list-no-time")[1] == [{"name": "mine"}],
    "list-null-time": lambda: lists("list-null-time")[1] == [{"name": "mine", "time": None}],
    "list-text-time": lambda: lists("list-text-time")[1] == [{"name": "mine", "time": "2.0s"}],
    "list-no-name": lambda: (
        [part[0] for part in lists("list-no-name")] == [{"id": 98}, {"time": 3.2}]
    ),
    "list-float-id": lambda: repr(lists("list-float-id")[0][0]["id"]) == "99.0",
    "list-null-fsm": lambda: {one["fsm"] for one in lists("list-null-fsm")[0]} == {None},
    "list-number-fsm": lambda: {one["fsm"] for one in lists("list-number-fsm")[0]} == {500},
    "list-names-only": lambda: lists("list-names-only")[1] == ["mine"],
    "list-one": lambda: [len(lists("list-one")), lists("list-one")[0][-1]["name"]] == [1, "mine"],
    "list-three": lambda: len(lists("list-three")) == 3,
    "list-refused": lambda: header("list-refused")["status"]["code"] == 7399,
    "code-text": lambda: header("code-text")["status"] == {"code": "0"},
    "code-float": lambda: repr(header("code-float")["status"]) == "{'code': 0.0}",
    "no-status": lambda: header("no-status") == {"identity": {"id": 7, "api_id": 7107}},
    "no-api-id": lambda: header("no-api-id")["identity"] == {"id": 7},
    "id-text": lambda: header("id-text")["identity"] == {"id": "7", "api_id": 7107},
    "data-object": lambda: len(answer("data-object")["data"]["data"]) == 2,
    "empty-topic": lambda: answer("empty-topic")["topic"] == "",
    "binary-answers": binary_answers,
    "chunked-answers": chunked_answers,
    "byte-order-mark": byte_order_mark,
    "nul": nul,
    "line-breaks": line_breaks,
    "lone-surrogate": lambda: lists("lone-surrogate")[0][-1]["name"] == "half \ud83d",
    "late-answers": late_answers,
    "unknown-messages": unknown_messages,
}
ELSEWHERE = {"unreadable-candidate", "small-message-size"}


def test_every_quirk_of_the_data_channel_is_checked_on_it() -> None:
    there = {name for name, quirk in QUIRKS.items() if WEBRTC in quirk.wires}
    assert set(CHECKS) | ELSEWHERE == there


@pytest.mark.parametrize("name", CHECKS)
def test_a_quirk_is_seen_on_the_data_channel(name: str) -> None:
    assert CHECKS[name]()


def test_a_robot_without_quirks_has_none_of_this() -> None:
    told = visited("", rpc.LIST_ACTIONS)
    assert {type(message) for _, message in told.heard} == {str}
    (text,) = told.texts('"res"')
    assert text.isprintable()
    assert len(told.topic(LOWSTATE_TOPIC)) == pytest.approx(50, abs=2)
    assert len(told.topic(rpc.ARM_STATE_TOPIC)) == 10


# ---- the description ----------------------------------------------------------------------------


def test_an_unreadable_candidate_stands_before_the_readable_ones() -> None:
    sdp = "v=0\r\na=candidate:1 1 udp 5 10.0.0.1 9 typ host\r\n"
    told = quirks_named(["unreadable-candidate"]).change_description(sdp)
    first, second = (line for line in told.split("\r\n") if line.startswith("a=candidate:"))
    assert first != second == "a=candidate:1 1 udp 5 10.0.0.1 9 typ host"


def test_a_robot_that_takes_short_messages_says_so() -> None:
    async def run() -> None:
        quirks = ("small-message-size", "unreadable-candidate")
        async with rig("webrtc", quirks=quirks) as one:
            carrier = await webrtc.connect_carrier(webrtc.read_url(urlsplit(one.url)))
            assert carrier.max_message_bytes == SMALL_MESSAGE
            await carrier.close()

    virtual.run(run())


# ---- DDS ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("no-tick", "time_us", 0),
        ("no-dq", "velocities_rad_s", (0.0,) * 29),
        ("no-imu", "accelerometer_m_s2", (0.0,) * 3),
    ],
)
def test_dds_has_a_zero_where_a_field_is_missing(name: str, field: str, value: object) -> None:
    told = quirks_named([name]).change_state(STATE)
    assert told is not None
    assert getattr(told, field) == value
    assert told.joints_rad == STATE.joints_rad


def test_what_stands_for_no_mode_is_no_mode() -> None:
    assert quirks_named(["mode-refused"]).change_mode(500) is Refused
    assert quirks_named(["mode-missing"]).change_mode(500) is Missing
    assert quirks_named(["no-lowstate"]).change_state(STATE) is None


# ---- UDP frames ---------------------------------------------------------------------------------


def frames(name: str, *commands: m.Command) -> tuple[list[RobotState], list[m.Reply]]:
    """Return the states and the replies that a client of the frames gets."""

    async def run() -> tuple[list[RobotState], list[m.Reply]]:
        store = Store(":memory:")
        key = m.Keyframe(joint=15, time_ms=1900, value_rad=0.4)
        world = World(store, firmware=replace(DEFAULT, quirks=quirks_named([name])))
        save = m.SaveAction(name="mine", created_s=0, duration_ms=2000, keyframes=(key,))
        assert world.obey("test", save) == m.Status()
        simulator = Simulator(world)
        loop = asyncio.get_running_loop()
        session = TeachingSession(Role.CLIENT, now=loop.time())
        states: list[RobotState] = []

        def receive(datagram: bytes) -> None:
            frame = teaching.decode(datagram)
            if frame.type == teaching.MessageType.STATE:
                states.append(decode_state(frame.payload))
            session.receive(datagram, loop.time())

        link = simulator.serve_memory().connect(receive)
        replies: list[m.Reply] = []
        session.open(loop.time())
        waiting = list(commands)
        try:
            for turn in range(200):
                replies += [one.reply for one in session.events() if isinstance(one, Replied)]
                if turn > 50 and waiting:
                    session.request(waiting.pop(0), loop.time())
                for datagram in session.outgoing():
                    link.send(datagram)
                await asyncio.sleep(0.01)
        finally:
            link.close()
            await simulator.close()
            store.close()
        return states, replies

    return virtual.run(run())


def test_a_robot_of_the_frames_page_tells_nothing_beyond_it() -> None:
    states, _ = frames("frames-page", m.EnterTeaching(), m.Record(on=True))
    assert states[-1].arms_soft
    assert not states[-1].recording
    assert {(state.mode, state.phase, state.time_us) for state in states} == {(-1, Phase.NONE, 0)}
    assert len(states[-1].joints_rad) == len(G1_29.joints)


def test_a_robot_of_the_documented_layout_tells_of_12_joints() -> None:
    states, _ = frames("frames-12-joints")
    assert {len(state.joints_rad) for state in states} == {12}


def test_a_refused_list_is_an_error_on_the_frames_too() -> None:
    _, replies = frames("list-refused", m.ListActions())
    assert replies == [m.Status(m.Code.STORE_FAILED)]


def test_a_play_that_never_moves_is_answered_on_the_frames_too() -> None:
    states, replies = frames("never-moves", m.PlayAction(action=1))
    assert replies == [m.Status()]
    assert {state.phase for state in states} == {Phase.NONE}


# ---- the command --------------------------------------------------------------------------------


def test_the_command_lists_every_quirk(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", "--quirk", "list"]) == 0
    told = capsys.readouterr().out
    for quirk in QUIRKS.values():
        assert f"  {quirk.name} " in told
        assert quirk.what.replace("`", "") in told
    assert main(["sim", "--quirk", "list", "--json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["name"] for line in lines] == list(QUIRKS)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--quirk", "nonsense"], "Known quirks: "),
        (["--quirk", "mode-text"], "Add --webrtc or --dds"),
        (["--webrtc", "127.0.0.1", "--quirk", "frames-page"], "Add --udp"),
        (["--a1", "127.0.0.1:0", "--quirk", "nul"], "not for a"),
    ],
)
def test_a_quirk_that_could_not_be_seen_is_refused(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sim", *arguments]) == 2
    assert words in capsys.readouterr().err
