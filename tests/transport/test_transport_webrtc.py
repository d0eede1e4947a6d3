"""WebRTC: addresses, stages, strict robots, hostile ones, and the simulated robot's door."""

import asyncio
import os
import secrets
import socket
import stat
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from aiortc import RTCConfiguration, RTCPeerConnection, RTCSessionDescription
from hypothesis import given, settings
from hypothesis import strategies as st

from rig import client_of
from rote import connect
from rote.errors import BadRequestError, BusyError, StageError, StageTimeoutError
from rote.model.g1 import G1_23, G1_29
from rote.robot.message_robot import G1
from rote.sim.server import Simulator
from rote.sim.store import Store
from rote.sim.webrtc import Signalling, WebRtcDoor
from rote.sim.world import World
from rote.transport.link import Carrier
from rote.transport.services.client import ServicesClient
from rote.transport.webrtc.http import post
from rote.transport.webrtc.signalling import exchange_descriptions
from rote.transport.webrtc.stack import (
    AP_ADDRESS,
    ClientCarrier,
    WebRtcTarget,
    connect_carrier,
    read_url,
)
from rote.wire.services import rpc
from rote.wire.webrtc import channel, sdp
from rote.wire.webrtc import signalling as wire
from rote.wire.webrtc.description import Side, write_answer, write_offer
from webrtc_ends import (
    KEY,
    Channel,
    Talking,
    answering,
    census,
    failure,
    on_channel,
    run,
)

# ---- addresses ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("webrtc://192.168.123.161", WebRtcTarget(host="192.168.123.161")),
        ("webrtc://robot.lan/", WebRtcTarget(host="robot.lan")),
        ("webrtc://Robot:9991", WebRtcTarget(host="robot", port=9991)),
        ("webrtc://[::1]:9991", WebRtcTarget(host="::1", port=9991)),
        ("webrtc://ap", WebRtcTarget(host=AP_ADDRESS)),
        ("webrtc://ap?media=1", WebRtcTarget(host=AP_ADDRESS, media=True)),
        ("webrtc://robot?media=0", WebRtcTarget(host="robot")),
        ("webrtc://E2100SIMULATED01", WebRtcTarget(serial="E2100SIMULATED01")),
        ("webrtc://B42D2000XXXXXXXX?media=1", WebRtcTarget(serial="B42D2000XXXXXXXX", media=True)),
        ("webrtc://robot?build=g1-23", WebRtcTarget(host="robot", build=G1_23)),
        ("webrtc://ap?build=g1&media=1", WebRtcTarget(host=AP_ADDRESS, media=True, build=G1_29)),
    ],
)
def test_an_address_says_which_robot_and_how(url: str, target: WebRtcTarget) -> None:
    assert read_url(urlsplit(url)) == target


@pytest.mark.parametrize(
    "url",
    [
        "webrtc://",
        "webrtc://:9991",
        "webrtc://host:port",
        "webrtc://host:99999",
        "webrtc://host/path",
        "webrtc://host?audio=1",
        "webrtc://host?media=yes",
        "webrtc://host#part",
        "webrtc://me:secret@host",
    ],
)
def test_nonsense_for_an_address_is_refused_with_an_example(url: str) -> None:
    error = run(failure(url))
    assert isinstance(error, BadRequestError)
    assert "webrtc://HOST" in error.remedy


def test_a_build_that_is_not_there_is_refused_with_those_that_are() -> None:
    error = run(failure("webrtc://host?build=g2"))
    assert isinstance(error, BadRequestError)
    assert "g1-29" in error.remedy


def test_a_robot_is_called_by_its_serial_or_its_address() -> None:
    assert WebRtcTarget(serial="E2100SIMULATED01", host="x").name == "E2100SIMULATED01"
    assert WebRtcTarget(host="192.168.12.1").name == "192.168.12.1"


# ---- stages -------------------------------------------------------------------------------------


@asynccontextmanager
async def simulated(**how: object) -> AsyncIterator[WebRtcDoor]:
    """Run a simulated robot behind its door."""
    store = Store(":memory:")
    simulator = Simulator(World(store))
    try:
        yield await simulator.serve_webrtc("127.0.0.1", 0, **how)  # type: ignore[arg-type]
    finally:
        await simulator.close()
        store.close()


async def fails_at(stage: str, url: str, within_s: float) -> StageError:
    loop = asyncio.get_running_loop()
    began = loop.time()
    error = await failure(url)
    assert isinstance(error, StageError)
    assert (error.stage, loop.time() - began <= within_s) == (stage, True), error
    return error


def own_side(*candidates: str) -> Side:
    return Side("ufra", "p" * 24, ":".join(["AB"] * 32), candidates)


@pytest.mark.parametrize(
    "candidates",
    [
        ("1 1 udp 2130706431 127.0.0.1 9 typ host",),
        ("1 1 udp 2130706431 192.0.2.99 5000 typ host", "1 1 tcp 1 192.0.2.2 9 typ host"),
        ("1 1 udp 1 robot.local 5000 typ host",),
        ("1 1 udp 1 not-an-address 5000 typ host", "1 1 udp 1 1.2.3.4.5 5 typ nonsense"),
        ("1 1 udp 1 127.0.0.1 9 typ srflx raddr 0.0.0.0 rport many",),
        ("1 2 udp 9999999999 ::1 0 typ host raddr",),
        (),
    ],
)
def test_where_no_datagram_comes_through_the_stage_is_ice(candidates: tuple[str, ...]) -> None:
    async def story() -> None:
        async def answer(offer: str) -> str:
            return write_answer(offer, own_side(*candidates), 1)

        before = await census()
        async with answering(answer) as url:
            error = await fails_at("ICE", url, 5.5)
            assert "firewall" in error.remedy
        assert await census() == before

    run(story())


def test_a_certificate_other_than_the_announced_one_ends_at_dtls() -> None:
    async def story() -> None:
        robot = Channel()

        async def answer(offer: str) -> str:
            said = await robot.answer(offer)
            return sdp._STRICT_LINE.sub(
                lambda line: (
                    "a=fingerprint:sha-256 " + ":".join(["AB"] * 32)
                    if line[1] == "fingerprint"
                    else line[0]
                ),
                said,
            )

        before = await census()
        async with answering(answer) as url:
            error = await fails_at("DTLS", url, 5.5)
            assert "certificate" in str(error)
        await robot.close()
        assert await census() == before

    run(story())


@pytest.mark.parametrize(
    ("strict", "stage", "limit_s"), [(True, "channel", 5.5), (False, "validation", 3.5)]
)
def test_a_robot_that_never_speaks_is_given_up(strict: bool, stage: str, limit_s: float) -> None:
    async def story() -> None:
        before = await census()
        async with on_channel(Channel(strict=strict)) as url:
            error = await fails_at(stage, url, limit_s)
            assert isinstance(error, StageTimeoutError)
            assert "off and on" in error.remedy
        assert await census() == before

    run(story())


def test_a_robot_that_never_says_ok_is_given_up_at_validation() -> None:
    class Doubting(Channel):
        def speak(self) -> None:
            self.say(channel.Validation("c0ffee"))
            self.on_message = lambda _: self.say(channel.Complaint(channel.VALIDATION_NEEDED))

    async def story() -> None:
        async with on_channel(Doubting()) as url:
            await fails_at("validation", url, 3.5)

    run(story())


@pytest.mark.parametrize("strict", [True, False])
def test_a_robot_that_leaves_while_we_connect_is_told_at_once(strict: bool) -> None:
    class Leaving(Channel):
        def speak(self) -> None:
            self.leaving = asyncio.ensure_future(self.end.close())

    async def story() -> None:
        async with on_channel(Leaving(strict=strict)) as url:
            loop = asyncio.get_running_loop()
            began = loop.time()
            error = await failure(url)
            assert isinstance(error, StageError)
            assert error.stage in {"channel", "validation"}
            assert loop.time() - began < 1.0

    run(story())


def test_what_came_before_anybody_listened_is_told_afterwards() -> None:
    async def story() -> None:
        one = Talking()
        async with on_channel(one) as url:
            carrier = await connect_carrier(read_url(urlsplit(url)))
            await asyncio.sleep(0.1)
            one.say(channel.Heartbeat("now", 7))
            await asyncio.sleep(0.1)
            await one.close()
            await asyncio.sleep(0.1)
            heard: list[channel.Value] = []
            lost: list[bool] = []
            carrier.listen(
                lambda text: heard.append(channel.decode(text)), lambda: lost.append(True)
            )
            assert heard == [channel.Validation("c0ffee"), channel.Heartbeat("now", 7)]
            assert lost == [True]
            await carrier.close()

    run(story())


def test_a_robot_that_takes_only_tiny_messages_is_given_up() -> None:
    async def story() -> None:
        robot = Talking()

        async def answer(offer: str) -> str:
            return (await robot.answer(offer)) + "a=max-message-size:5\r\n"

        robot.end.strict = True  # so that it says no size of its own
        async with answering(answer) as url:
            await fails_at("validation", url, 3.5)
        await robot.close()

    run(story())


@settings(max_examples=30)
@given(st.data())
def test_an_answer_with_damaged_lines_ends_in_a_stage(data: st.DataObject) -> None:
    noise = st.text(st.characters(exclude_characters="\r\n", codec="utf-8"), max_size=30)

    async def story() -> None:
        async def answer(offer: str) -> str:
            lines = write_answer(offer, own_side("1 1 udp 1 127.0.0.1 9 typ host"), 1).split("\r\n")
            index = data.draw(st.integers(1, len(lines) - 1))
            cut = data.draw(st.integers(0, len(lines[index])))
            lines[index] = lines[index][:cut] + data.draw(noise)
            return "\r\n".join(lines)

        async with answering(answer) as url:
            error = await failure(url, timeout=0.5)
            assert isinstance(error, StageError)
            assert error.stage in {"signal", "ICE"}

    run(story())


def test_a_connect_that_is_cancelled_at_any_moment_ends_at_once_and_leaves_nothing() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        turn = loop._run_once  # type: ignore[attr-defined]

        async def connect_until(last: int) -> int:
            """Cancel a connect in the given turn of the loop; return how many it took."""
            turns = 0
            ended_at = float("inf")

            def counted() -> None:
                nonlocal turns, ended_at
                turns += 1
                if turns == last:
                    ended_at = loop.time()
                    connecting.cancel()
                turn()

            async with on_channel(Talking()) as url:
                connecting = asyncio.ensure_future(connect(url).__aenter__())
                loop._run_once = counted  # type: ignore[attr-defined]
                (done,) = await asyncio.gather(connecting, return_exceptions=True)
                loop._run_once = turn  # type: ignore[attr-defined]
                assert loop.time() - ended_at < 0.1
                if isinstance(done, G1):
                    await done.close()
                else:
                    assert isinstance(done, asyncio.CancelledError)
            return turns

        whole = await connect_until(0)
        before = await census()
        assert whole > 40
        for last in range(1, whole + 2, max(1, whole // 80)):
            await connect_until(last)
            assert await census() == before, f"cancelled in turn {last} of {whole}"

    run(story())


# ---- a robot as strict as the real one ----------------------------------------------------------


@pytest.mark.parametrize("query", ["", "?media=1"])
@pytest.mark.parametrize("variant", ["none", "1", "2", "3"])
def test_a_strict_robot_understands_us(query: str, variant: str) -> None:
    async def story() -> None:
        key = bytes.fromhex(KEY)
        async with (
            simulated(strict=True, signalling=variant, key=key) as door,
            connect(door.url + query, key=KEY, family="g1") as robot,
        ):
            assert (await robot.actions()).presets

    run(story())


def sha_256_alone(offer: str) -> str:
    """Return an offer without fingerprints of other hashes."""
    others = ("a=fingerprint:sha-384", "a=fingerprint:sha-512")
    lines = offer.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith(others))


@pytest.mark.parametrize("filtered", [True, False])
def test_a_strict_robot_reads_the_last_fingerprint_so_only_one_may_be_sent(filtered: bool) -> None:
    async def story() -> bool:
        async with simulated(strict=True) as door:
            peer = RTCPeerConnection(RTCConfiguration(iceServers=[]))
            line = peer.createDataChannel("data")
            heard = asyncio.Event()
            line.on("message", lambda _: heard.set())
            await peer.setLocalDescription(await peer.createOffer())
            offer = peer.localDescription.sdp
            assert offer.count("a=fingerprint:") > 1
            host, port = door.address
            answer = await exchange_descriptions(
                host,
                port,
                sha_256_alone(offer) if filtered else offer,
                key=None,
                limit_s=5.0,
                own_wifi=False,
            )
            await peer.setRemoteDescription(RTCSessionDescription(answer, "answer"))
            try:
                async with asyncio.timeout(10.0):
                    await heard.wait()
            except TimeoutError:
                assert peer.iceConnectionState == "completed"  # which is what puzzles people
            await peer.close()
            return heard.is_set()

    assert run(story()) is filtered


# ---- the simulated robot's door -----------------------------------------------------------------


def test_a_second_client_is_told_that_the_robot_is_busy_until_the_first_leaves() -> None:
    async def story() -> None:
        async with simulated() as door:
            async with connect(door.url, family="g1") as first:
                assert door.clients == 1
                for _ in range(3):
                    error = await failure(door.url)
                    assert isinstance(error, BusyError)
                    assert "phone app" in error.remedy
                assert (await first.actions()).presets
            await asyncio.sleep(0.1)
            assert door.clients == 0
            async with connect(door.url, family="g1") as second:
                assert (await second.actions()).presets

    run(story())


async def target_of(door: WebRtcDoor) -> WebRtcTarget:
    return read_url(urlsplit(door.url))


def vanish(carrier: Carrier) -> None:
    """Let a client's computer be gone: its sockets say nothing any more, not even goodbye."""
    assert isinstance(carrier, ClientCarrier)
    connection = carrier.stack._ice._connection
    connection.sendto = _nothing  # type: ignore[method-assign,assignment]
    for protocol in connection._protocols:
        protocol.send_stun = lambda *_: None  # type: ignore[method-assign]


async def _nothing(*_: object) -> None:
    pass


@pytest.mark.parametrize("how", ["vanishes", "never validates"])
def test_a_client_that_falls_silent_keeps_its_place_for_ten_seconds(how: str) -> None:
    async def story() -> None:
        async with simulated() as door:
            carrier = await connect_carrier(await target_of(door))
            if how == "vanishes":
                vanish(carrier)
            await asyncio.sleep(9.0)
            assert isinstance(await failure(door.url), BusyError)
            await asyncio.sleep(2.0)
            async with connect(door.url, family="g1") as robot:
                assert (await robot.actions()).presets
            await carrier.close()

    run(story())


def test_a_client_that_signals_and_never_comes_keeps_its_place_for_a_while() -> None:
    async def story() -> None:
        async with simulated() as door:
            side = own_side("1 1 udp 2130706431 127.0.0.1 9 typ host")
            host, port = door.address
            offer = write_offer(side, secrets.randbits(62))
            assert await exchange_descriptions(
                host, port, offer, key=None, limit_s=5.0, own_wifi=False
            )
            assert isinstance(await failure(door.url), BusyError)
            await asyncio.sleep(20.0)
            async with connect(door.url, family="g1") as robot:
                assert (await robot.actions()).presets

    run(story())


Probe = Callable[[str, int], Awaitable[None]]


async def expect(status: int, host: str, port: int, path: str, body: bytes = b"") -> None:
    assert (await post(host, port, path, body)).status == status


async def look(host: str, port: int) -> None:
    for _ in range(70):
        _, writer = await asyncio.open_connection(host, port)
        writer.close()


async def post_garbage(host: str, port: int) -> None:
    for path in ("/", "/offer", "/con_ing_00000", "/con_ing_", "/con_ing_99999x", "/../etc"):
        await expect(404, host, port, path, b"{}")


async def ask_otherwise(host: str, port: int) -> None:
    for method in ("HEAD", "PUT", "DELETE", "OPTIONS"):
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(f"{method} /con_notify HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert (await reader.read()).startswith(b"HTTP/1.1 405 ")
        writer.close()


async def post_too_much(host: str, port: int) -> None:
    reader, writer = await asyncio.open_connection(host, port)
    head = f"POST /con_notify HTTP/1.1\r\nHost: x\r\nContent-Length: {10**7}\r\n\r\n"
    try:
        writer.write(head.encode() + bytes(10**7))
        await writer.drain()
        assert (await reader.read())[:12] in (b"", b"HTTP/1.1 413")
    except ConnectionError:
        pass  # it hung up on us, as it may
    finally:
        writer.close()


async def notice_of(host: str, port: int) -> wire.ConnectNotice:
    return wire.open_notice((await post(host, port, wire.NOTICE_PATH, b"")).body)


async def post_rubbish_offers(host: str, port: int) -> None:
    session_key = wire.make_session_key(bytes(16))
    head = "v=0\r\n"
    line = "m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\n"
    secret = "a=ice-ufrag:u\r\na=ice-pwd:p\r\n"
    print_of = f"a=fingerprint:sha-256 {':'.join(['AB'] * 32)}\r\n"
    for text in (
        head,
        head + "m=audio 9 x 0\r\n" + secret + print_of,
        head + line,
        head + line + secret,
        head + line + secret + "a=fingerprint:sha-256 nonsense\r\n",
        head + line + secret + print_of + "a=candidate:nonsense\r\n",
        head + line + secret + print_of + "a=sctp-port:-1\r\n",
        head + line + secret + print_of + "a=max-message-size:much\r\n",
    ):
        notice = await notice_of(host, port)
        body = wire.seal_offer(sdp.SdpOffer(sdp=text), notice.public_key, session_key)
        await expect(400, host, port, notice.path, body)
    for body in (b"", b"{}", b"[]", b"\xff", b'{"data1":1,"data2":2}', b'{"data1":"","data2":""}'):
        await expect(400, host, port, (await notice_of(host, port)).path, body)


async def use_a_path_twice(host: str, port: int) -> None:
    notice = await notice_of(host, port)
    await expect(400, host, port, notice.path, b"{}")
    await expect(404, host, port, notice.path, b"{}")


async def collect_paths(host: str, port: int) -> None:
    first = await notice_of(host, port)
    for _ in range(40):
        await notice_of(host, port)
    await expect(404, host, port, first.path, b"{}")


@pytest.mark.parametrize(
    "probe",
    [
        look,
        post_garbage,
        ask_otherwise,
        post_too_much,
        post_rubbish_offers,
        use_a_path_twice,
        collect_paths,
    ],
)
def test_the_door_stands_what_people_do_to_it(probe: Probe) -> None:
    async def story() -> None:
        async with simulated(signalling="1", strict=probe is post_rubbish_offers) as door:
            host, port = door.address
            await probe(host, port)
            assert door.clients == 0
            async with connect(door.url, family="g1") as robot:
                assert (await robot.actions()).presets

    run(story())


def test_there_are_five_ways_of_signalling_and_no_sixth() -> None:
    assert [Signalling.of(way).port for way in ("legacy", "none", "1", "2", "3")] == [
        8081,
        9991,
        9991,
        9991,
        9991,
    ]
    with pytest.raises(BadRequestError, match="unknown signalling '4'"):
        Signalling.of("4")


# ---- what comes over the channel ----------------------------------------------------------------


async def mode_read(robot: G1) -> bool:
    return bool((await client_of(robot, ServicesClient).call(rpc.GET_FSM, read=True)).data)


def dropped(robot: G1) -> dict[str, int]:
    return client_of(robot, ServicesClient).session.dropped


def send_as_text(robot: Channel, message: bytes) -> None:
    """Send bytes as text, which no decent stack lets one do."""
    sctp, line = robot.end.stack._sctp, robot.end.stack._channel
    assert line is not None
    sctp._data_channel_queue.append((line, 51, message))
    asyncio.ensure_future(sctp._data_channel_flush())  # noqa: RUF006 - it ends with the test


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("", "DecodeError"),
        ("not json", "DecodeError"),
        ("[1,2]", "PayloadError"),
        ('{"type":7}', "PayloadError"),
        ('{"type":"res","topic":"rt/api/arm/response","data":{}}', "PayloadError"),
        ('{"type":"msg","topic":"rt/lf/lowstate","data":{"motor_state":7}}', "telemetry"),
        ("[" * 50_000, "DecodeError"),
        (b"", "TruncatedError"),
        (b"\xff\xff\x00\x00{}", "TruncatedError"),
        (b"\x02\x00\x00\x00\xff\xff\xff\xff\x00\x00\x00\x00{}", "TruncatedError"),
        (b"\x02\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00{}", "PayloadError"),
        (b"\x04\x00\x00\x00\xff\xfe\xfd\xfc", "DecodeError"),
        ("x" * 10_000_000, "MessageTooLargeError"),
    ],
    ids=lambda value: f"{value[:24]!r}" if isinstance(value, str | bytes) else "",
)
def test_a_message_that_cannot_be_used_is_counted_and_the_connection_lives(
    message: str | bytes, reason: str
) -> None:
    async def story() -> None:
        one = Talking()
        async with on_channel(one) as url, connect(url, family="g1") as robot:
            one.end.send(message)
            await asyncio.sleep(0.1)
            assert dropped(robot)[reason] == 1
            assert await mode_read(robot)
            await asyncio.sleep(10.0)
            assert await mode_read(robot)

    run(story())


def test_text_that_is_not_text_is_counted_and_the_connection_lives() -> None:
    async def story() -> None:
        one = Talking()
        async with on_channel(one) as url, connect(url, family="g1") as robot:
            send_as_text(one, b'{"type":"msg\xff"}')
            await asyncio.sleep(0.1)
            assert sum(dropped(robot).values()) == 1
            assert await mode_read(robot)

    run(story())


@pytest.mark.parametrize("kind", ["rtc_report", "weather", "req", "subscribe"])
def test_an_envelope_nobody_knows_does_no_harm(kind: str) -> None:
    async def story() -> None:
        one = Talking()
        async with on_channel(one) as url, connect(url, family="g1") as robot:
            one.end.send(f'{{"type":"{kind}","topic":"rt/x","data":[1,2,3]}}')
            assert await mode_read(robot)

    run(story())


@pytest.mark.parametrize("datagram", [b"", b"\x00", b"\x16\xfe\xfd", b"\x80" * 20, bytes(1500)])
def test_datagrams_of_strangers_do_no_harm(datagram: bytes) -> None:
    async def story() -> None:
        one = Talking()
        async with on_channel(one) as url, connect(url, family="g1") as robot:
            carrier = client_of(robot, ServicesClient).connection._connection._carrier  # type: ignore[attr-defined]
            for protocol in carrier.stack._ice._connection._protocols:
                address = protocol.transport.get_extra_info("sockname")
                family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
                with socket.socket(family, socket.SOCK_DGRAM) as stranger:
                    stranger.sendto(datagram, address)
            await asyncio.sleep(3.0)
            assert await mode_read(robot)

    run(story())


def test_an_end_that_fails_at_a_message_reports_it_and_stays_connected() -> None:
    def fail(value: object) -> None:
        if isinstance(value, channel.Subscription) and value.topic == "rt/x":
            raise KeyError("a mistake of our own")

    async def story() -> None:
        one = Talking()
        one.on_message = fail
        async with on_channel(one) as url, connect(url, family="g1") as robot:
            robot.on_topic("rt/x", print)
            assert await mode_read(robot)

    run(story(), expected=("a message could not be processed",))


def test_a_listener_that_fails_is_reported_and_nobody_else_suffers() -> None:
    heard: list[object] = []

    def fail(_: object) -> None:
        raise KeyError("the listener's own mistake")

    async def story() -> None:
        one = Talking()
        async with on_channel(one) as url, connect(url, family="g1") as robot:
            robot.on_topic("rt/x", fail)
            robot.on_topic("rt/x", lambda message: heard.append(message.data))
            await mode_read(robot)
            one.say(channel.ChannelMessage("rt/x", [1]))
            await asyncio.sleep(3.0)
            assert await mode_read(robot)

    run(story(), expected=("a listener to rt/x failed",))
    assert heard == [[1]]


# ---- what we never do ---------------------------------------------------------------------------


@pytest.mark.parametrize("service", ["bashrunner", "arm/request", "", "programming_actuator"])
def test_no_request_reaches_a_service_that_is_not_on_our_list(service: str) -> None:
    async def story() -> None:
        one = Talking()
        async with on_channel(one) as url, connect(url, family="g1") as robot:
            asked = len(one.heard)
            with pytest.raises(BadRequestError, match="sends no requests"):
                await client_of(robot, ServicesClient).call(rpc.Call(service, 1001))
            with pytest.raises(BadRequestError):
                client_of(robot, ServicesClient).session.publish(f"rt/api/{service}/request", {})
            assert await mode_read(robot)
            assert len(one.heard) == asked + 1

    run(story())


def test_a_request_longer_than_a_robot_takes_is_refused_here() -> None:
    async def story() -> None:
        one = Talking()
        async with on_channel(one) as url, connect(url, family="g1") as robot:
            for size in (40_000, 10**7):
                with pytest.raises(BadRequestError, match="the request has"):
                    await client_of(robot, ServicesClient).call(rpc.play_taught('"' * size))
            assert await mode_read(robot)

    run(story())


# ---- the key log --------------------------------------------------------------------------------


def test_the_key_log_opens_every_session_and_only_to_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "keys.log"
    path.write_bytes(b"# what was there before\n")
    path.chmod(0o600)
    os.umask(os.umask(0o022))

    async def story() -> None:
        async with simulated() as door:
            for _ in range(2):
                async with connect(door.url, keylog=path, family="g1") as robot:
                    await robot.actions()

    run(story())
    first, *lines = path.read_text(encoding="ascii").splitlines()
    assert first == "# what was there before"
    assert len(lines) >= 2
    randoms = set()
    for line in lines:
        label, random, secret = line.split(" ")
        assert label == "CLIENT_RANDOM"
        assert (len(bytes.fromhex(random)), len(bytes.fromhex(secret))) == (32, 48)
        randoms.add(random)
    assert len(randoms) == 2


def test_a_new_key_log_can_be_read_by_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "keys.log"

    async def story() -> None:
        async with simulated() as door, connect(door.url, keylog=path):
            pass

    run(story())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_without_a_key_log_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    async def story() -> None:
        async with simulated() as door, connect(door.url):
            pass

    run(story())
    assert list(tmp_path.iterdir()) == []
