"""The live view, watched with the client of Foxglove's own protocol from npm."""

import asyncio
import base64
import json
import shutil
import struct
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rosbags.typesys import Stores, get_typestore
from websockets.asyncio.client import connect as websocket
from websockets.exceptions import InvalidStatus
from websockets.typing import Origin, Subprotocol

import rote
from rote.bridge import ros_messages as ros
from rote.bridge.foxglove import CHANNELS, MAX_WAITING, SUBPROTOCOLS, FoxgloveFeed, foxglove_layout
from rote.bridge.foxglove_server import make_feed, serving
from rote.bridge.live_view import LiveView
from rote.bridge.meshes import read_links, read_stl
from rote.bridge.telemetry import StateClock
from rote.errors import LinkError
from rote.findings import Finding, FindingKind, Severity
from rote.messages import RobotState
from rote.motion.files.library import Library
from rote.web.access.roles import PendantRole
from rote.web.access.security import Gate
from rote.web.server.serve import serving as serving_pendant
from rote.web.services.hub import Start
from rote.web.work.drawing import MODELS, model_of

ROOT = Path(__file__).parents[2]
PEER = ROOT / ".peers" / "foxglove"
WATCH = Path(__file__).parent / "foxglove" / "watch.cjs"
MEMORY = "sim://g1?store=:memory:"
OLD = Subprotocol("foxglove.websocket.v1")
STORE = get_typestore(Stores.ROS2_HUMBLE)
LOW = Finding(Severity.WARNING, "the battery is low", "Charge it.", kind=FindingKind.BATTERY)
ELBOW = "package://rote/g1/left_elbow_link.stl"


def _missing() -> str:
    if shutil.which("node") is None:
        return "node is not installed"
    if not (PEER / ".ready").is_file():
        return "the client of Foxglove's protocol is not there: scripts/peers/foxglove"
    return ""


needs_peer = pytest.mark.skipif(bool(_missing()), reason=_missing())


async def watched(url: str, **task: Any) -> dict[str, Any]:
    """Watch with the protocol's own client, and return what it has got."""
    wanted = {"url": url, "folder": str(PEER.resolve()), "protocols": [OLD], **task}
    process = await asyncio.create_subprocess_exec(
        "node", str(WATCH), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    told, _ = await process.communicate(json.dumps(wanted).encode())
    report: dict[str, Any] = json.loads(told)
    return report


def payload(report: dict[str, Any], topic: str) -> bytes:
    return base64.b64decode(report["messages"][topic]["data"])


def _judge(report: dict[str, Any]) -> None:
    """See that what the client has got is a G1 as rote knows it."""
    assert report["errors"] == []
    assert report["protocol"] == OLD
    assert report["info"]["capabilities"] == ["assets"]
    assert {each["topic"] for each in report["channels"]} == {each.topic for each in CHANNELS}
    joints: Any = STORE.deserialize_cdr(payload(report, "/joint_states"), ros.JOINT_STATE)
    assert joints.name[0] == "left_hip_pitch_joint"
    assert len(joints.name) == len(joints.position) == 29
    told: Any = STORE.deserialize_cdr(payload(report, "/robot_description"), ros.STRING)
    assert told.data.startswith("<?xml")
    lines: Any = STORE.deserialize_cdr(payload(report, "/diagnostics"), ros.DIAGNOSTICS)
    assert lines.status[0].hardware_id == "g1-29"
    status = json.loads(payload(report, "/rote/status"))
    assert status["build"] == "g1-29"
    schema = json.loads(next(c for c in report["channels"] if c["id"] == 4)["schema"])
    assert {*status} == {*schema["properties"]}


@needs_peer
def test_the_protocols_own_client_watches_a_robot() -> None:
    async def work() -> None:
        async with rote.connect(MEMORY) as robot:
            feed = make_feed("a test")
            view = LiveView(feed, robot, lambda: [LOW], model_of)
            async with serving(feed, 0) as port:
                view.open()
                report = await watched(
                    f"ws://127.0.0.1:{port}",
                    topics=5,
                    assets=[ELBOW, "package://rote/../../etc/passwd"],
                    say='{"op":"advertise","channels":[]}',
                )
                view.close()
            assert not feed.clients or await _left(feed)
        _judge(report)
        log = json.loads(payload(report, "/rote/findings"))
        assert log["message"] == "the battery is low Charge it."
        assert log["level"] == 3
        assert any("read-only" in each for each in report["statuses"])
        there = report["assets"]
        assert there["package://rote/../../etc/passwd"]["status"] == 1
        if (MODELS / "g1.glb").is_file():
            data = base64.b64decode(there[ELBOW]["data"])
            assert len(data) == 84 + 50 * struct.unpack_from("<I", data, 80)[0]
            told: Any = STORE.deserialize_cdr(payload(report, "/robot_description"), ros.STRING)
            assert ELBOW in told.data
        else:
            assert there[ELBOW]["status"] == 1

    asyncio.run(work())


async def _left(feed: FoxgloveFeed) -> bool:
    async with asyncio.timeout(10.0):
        while feed.clients:
            await asyncio.sleep(0.01)
    return True


@needs_peer
def test_the_same_stream_is_behind_the_checks_of_the_pendant(tmp_path: Path) -> None:
    async def work() -> None:
        gate = Gate(token="a-token-for-these-tests")
        start = Start(Library(tmp_path), MEMORY)
        async with serving_pendant(start, gate, 0) as server:
            place = f"ws://127.0.0.1:{server.port}/api/foxglove"
            foreign = {"Origin": "https://app.foxglove.dev"}
            for url, headers in ((place, {}), (f"{place}?token=guessed-wrongly", foreign)):
                report = await watched(url, headers=headers)
                assert report["refused"] == 403
            watching = gate.tokens[PendantRole.WATCH]
            _judge(await watched(f"{place}?token={watching}", headers=foreign))

    asyncio.run(work())


def test_without_a_token_the_pendants_stream_refuses_pages_of_other_sites(tmp_path: Path) -> None:
    async def work() -> None:
        async with serving_pendant(Start(Library(tmp_path), MEMORY), Gate(), 0) as server:
            place = f"ws://127.0.0.1:{server.port}/api/foxglove"
            with pytest.raises(InvalidStatus, match="403"):
                await websocket(
                    place, origin=Origin("https://evil.example"), subprotocols=[OLD], proxy=None
                )
            with pytest.raises(InvalidStatus, match="403"):
                await websocket(place, proxy=None)  # it does not speak the protocol
            async with websocket(
                place, subprotocols=[Subprotocol(each) for each in SUBPROTOCOLS], proxy=None
            ) as socket:
                assert socket.subprotocol == "foxglove.sdk.v1"
                assert json.loads(await socket.recv())["op"] == "serverInfo"

    asyncio.run(work())


@pytest.mark.parametrize(
    ("headers", "good"),
    [
        ({}, True),
        ({"Origin": "https://app.foxglove.dev"}, True),
        ({"Origin": "http://localhost:8080"}, True),
        ({"Origin": "https://evil.example"}, False),
        ({"Origin": "null"}, False),
        ({"Origin": "https://app.foxglove.dev.evil.example"}, False),
    ],
)
def test_pages_of_other_sites_cannot_watch(headers: dict[str, str], good: bool) -> None:
    async def work() -> None:
        async with serving(make_feed("a test"), 0) as port:
            with nullcontext() if good else pytest.raises(InvalidStatus, match="403"):
                async with websocket(
                    f"ws://127.0.0.1:{port}",
                    subprotocols=[OLD],
                    additional_headers=headers,
                    proxy=None,
                ) as socket:
                    assert json.loads(await socket.recv())["op"] == "serverInfo"

    asyncio.run(work())


def test_a_port_that_is_taken_is_said_so() -> None:
    async def work() -> None:
        async with serving(make_feed("one"), 0) as port:
            with pytest.raises(LinkError, match="cannot be used"):
                async with serving(make_feed("two"), port):
                    pass

    asyncio.run(work())


# ---- the protocol itself ------------------------------------------------------------------------


def joined() -> tuple[FoxgloveFeed, Any]:
    feed = FoxgloveFeed("now")
    client = feed.join(lambda: None)
    client.take_messages()
    return feed, client


def test_who_subscribes_late_gets_the_description_at_once_and_no_old_state() -> None:
    feed, client = joined()
    joints, description = CHANNELS[0], CHANNELS[1]
    feed.publish(description, 7, b"urdf")
    feed.publish(joints, 8, b"old")
    subscriptions = [{"id": 40 + each.id, "channelId": each.id} for each in (joints, description)]
    client.handle_message(json.dumps({"op": "subscribe", "subscriptions": subscriptions}))
    assert client.take_messages() == [struct.pack("<BIQ", 1, 42, 7) + b"urdf"]
    feed.publish(joints, 9, b"new")
    assert client.take_messages() == [struct.pack("<BIQ", 1, 41, 9) + b"new"]
    client.handle_message(json.dumps({"op": "unsubscribe", "subscriptionIds": [41]}))
    feed.publish(joints, 10, b"newer")
    assert client.take_messages() == []


@pytest.mark.skipif(not (MODELS / "g1.glb").is_file(), reason="no model here: scripts/model")
def test_who_joins_before_the_first_state_can_ask_for_a_mesh() -> None:
    async def work() -> None:
        async with rote.connect(MEMORY) as robot:
            feed = FoxgloveFeed("now")
            view = LiveView(feed, robot, list, model_of)
            view.open()
            client = feed.join(lambda: None)
            client.take_messages()
            client.handle_message(json.dumps({"op": "fetchAsset", "uri": ELBOW, "requestId": 7}))
            view.close()
            (answer,) = client.take_messages()
            assert isinstance(answer, bytes)
            assert struct.unpack_from("<BIBI", answer) == (4, 7, 0, 0)

    asyncio.run(work())


@pytest.mark.parametrize(
    "said",
    [
        "",
        "[]",
        "no json",
        b"\x01\x00\x00\x00\x00",
        '{"op":"subscribe"}',
        '{"op":"subscribe","subscriptions":[{"id":-1,"channelId":1}]}',
        '{"op":"subscribe","subscriptions":[{"id":1,"channelId":99}]}',
        '{"op":"subscribe","subscriptions":7}',
        '{"op":"unsubscribe","subscriptionIds":null}',
        '{"op":"fetchAsset","uri":"x"}',
        '{"op":"setParameters","parameters":[]}',
        "{" * 5000,
    ],
)
def test_what_a_client_may_not_say_is_answered_with_a_warning(said: str | bytes) -> None:
    _, client = joined()
    client.handle_message(said)
    (answer,) = client.take_messages()
    assert json.loads(answer)["op"] == "status"
    assert not any(client.subscriptions.values())


def test_a_client_that_reads_slowly_loses_the_oldest_states_and_costs_no_memory() -> None:
    feed, client = joined()
    client.handle_message('{"op":"subscribe","subscriptions":[{"id":1,"channelId":1}]}')
    for number in range(3 * MAX_WAITING):
        feed.publish(CHANNELS[0], number, b"state")
    waiting = client.take_messages()
    assert len(waiting) == MAX_WAITING
    assert client.dropped == 2 * MAX_WAITING
    assert struct.unpack_from("<BIQ", waiting[-1])[2] == 3 * MAX_WAITING - 1


def test_states_keep_the_intervals_of_the_robots_clock_and_the_date_of_ours() -> None:
    clock = StateClock()

    def stamp(time_us: int, now_ns: int) -> int:
        state = RobotState(joints_rad=(), velocities_rad_s=(), time_us=time_us)
        return clock.stamp_ns(state, now_ns)

    assert stamp(5_000, 10**18) == 10**18
    assert stamp(7_000, 10**18 + 9_000_000) == 10**18 + 2_000_000  # it came late
    assert stamp(1_000, 10**18 + 10**9) == 10**18 + 10**9  # the robot was started anew


@pytest.mark.skipif(not (MODELS / "g1.glb").is_file(), reason="no model here: scripts/model")
def test_each_link_has_its_own_mesh_in_metres() -> None:
    path = MODELS / "g1.glb"
    for link in read_links(path):
        data = read_stl(path, link)
        count = struct.unpack_from("<I", data, 80)[0]
        kind = np.dtype([("normal", "<f4", 3), ("corners", "<f4", 9), ("more", "<u2")])
        corners = np.frombuffer(data, kind, count, 84)["corners"].reshape(-1, 3)
        size_m = np.ptp(corners, axis=0).max()
        assert 0.02 < size_m < 0.6, (link, size_m)


def test_the_layout_names_topics_that_are_there() -> None:
    text = foxglove_layout()
    document = json.loads(text)
    topics = {each.topic for each in CHANNELS}
    for topic in ("/joint_states", "/robot_description", "/rote/status", "/rote/findings"):
        assert topic in topics
        assert topic in text
    used = json.dumps(document["layout"])
    assert all(panel in used for panel in document["configById"])
