"""UDP: addresses, foreign senders, garbage, and ports that are taken."""

import asyncio
import socket

import pytest

import virtual
from rig import client_of, rig
from rote import messages as m
from rote.errors import BadRequestError, LinkError, MissingExtraError
from rote.model.a1 import A1
from rote.model.g1 import G1_27
from rote.platform.loop import new_loop
from rote.transport.address import check_host, host_and_port
from rote.transport.link import SCHEMES, open_link, parse_url_options
from rote.transport.udp.client import TeachingClient
from rote.transport.udp.link import open_port
from rote.wire.teaching import codec as wire


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("robot", ("robot", 49504)),
        ("10.0.0.7:5000", ("10.0.0.7", 5000)),
        ("[::1]:5000", ("::1", 5000)),
        ("[::1]", ("::1", 49504)),
        ("[::]", ("::", 49504)),
        ("127.0.0.1:0", ("127.0.0.1", 0)),
    ],
)
def test_a_host_and_port_are_read(text: str, address: tuple[str, int]) -> None:
    assert host_and_port(text) == address


@pytest.mark.parametrize(
    "host",
    ["a..b", ".a", "a..", "a" * 64, "a." * 127 + "bc", "ü" * 60, "a b", "a\tb", "a\u202eb"],
)
def test_what_is_no_host_is_refused_with_an_example(host: str) -> None:
    with pytest.raises(BadRequestError) as caught:
        check_host(host)
    assert "robot.local" in caught.value.remedy


@pytest.mark.parametrize(
    "host", ["a.b.", "a" * 63, "my_robot", "röboter.local", "::1", "fe80::1%eth0", "10.0.0.7"]
)
def test_what_may_be_a_host_is_taken(host: str) -> None:
    assert check_host(host) == host


@pytest.mark.parametrize(
    "text", ["", ":5000", "host:", "host:port", "host:99999", "host:-1", "[::1:]", "[::]:"]
)
def test_what_is_no_address_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(BadRequestError) as caught:
        host_and_port(text)
    assert "HOST:PORT" in caught.value.remedy


@pytest.mark.parametrize("url", ["", "127.0.0.1", "ftp://host", "webrtcs://x"])
def test_an_unknown_wire_names_the_known_ones(url: str) -> None:
    with pytest.raises(BadRequestError) as caught:
        virtual.run(open_link(url, print))
    assert "udp://" in caught.value.remedy
    assert "sim://" in caught.value.remedy


@pytest.mark.parametrize("url", ["udp://127.0.0.1/path", "udp://127.0.0.1?x=1", "udp://"])
def test_a_url_with_more_or_less_than_an_address_is_refused(url: str) -> None:
    with pytest.raises(BadRequestError):
        virtual.run(open_link(url, print))


def test_a_url_may_name_the_build_and_no_other_than_there_is() -> None:
    async def open_and_close(url: str) -> None:
        (await open_link(url, print)).close()

    virtual.run(open_and_close("udp://127.0.0.1?build=g1-23"))
    with pytest.raises(BadRequestError) as caught:
        virtual.run(open_and_close("udp://127.0.0.1?build=g2"))
    assert "g1-23" in caught.value.remedy


def test_what_a_url_asks_for_is_told_apart_from_the_build() -> None:
    assert parse_url_options("") == ({}, None)
    assert parse_url_options("a=1&build=g1-27&b=") == ({"a": "1", "b": ""}, G1_27)
    assert parse_url_options("build=a1") == ({}, A1.default)


def test_a_host_that_does_not_exist_is_a_link_error() -> None:
    with pytest.raises(LinkError, match="cannot be reached"):
        asyncio.run(open_link("udp://no-such-host.invalid", print))


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SCHEMES, "carrier", ("rote.transport.link.not_there", "carrier-pigeon"))
    with pytest.raises(MissingExtraError) as caught:
        virtual.run(open_link("carrier://host", print))
    assert "rote-robot[carrier-pigeon]" in caught.value.remedy


@pytest.mark.filterwarnings("ignore:unclosed resource <UDPTransport")  # uvloop's own
def test_a_port_that_is_taken_is_reported_on_whichever_loop() -> None:
    async def story() -> None:
        port = await open_port("127.0.0.1", 0, lambda datagram, address: None)
        with pytest.raises(LinkError, match="address already in use") as caught:
            await open_port("127.0.0.1", port.address[1], lambda datagram, address: None)
        assert "Another program uses the port" in caught.value.remedy
        port.close()
        port.close()
        port.send(b"after closing", ("127.0.0.1", 9))
        await asyncio.sleep(0)

    virtual.run(story())
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(story())


def test_replies_from_another_address_are_not_heard() -> None:
    async def story() -> None:
        async with rig("udp") as one, one.connect() as robot:
            client = client_of(robot, TeachingClient)
            here = client.socket.getsockname()
            # A stranger forges the answer to the next request: an action that is not there.
            forged = wire.encode(
                wire.Frame(
                    command=wire.CommandId.LIST_ACTIONS,
                    sequence=client.session.sequence,
                    payload=wire.encode_reply(m.ActionList((m.ActionEntry("forged", 1),))),
                )
            )
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
                asking = asyncio.create_task(robot.actions())
                stranger.sendto(forged, here)
                assert (await asking).taught == ()

    virtual.run(story())


def test_garbage_leaves_nothing_behind_and_is_not_answered() -> None:
    async def story() -> None:
        async with rig("udp") as one:
            host, port = host_and_port(one.url.removeprefix("udp://"))
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
                stranger.setblocking(False)
                for junk in (b"", b"x", bytes(63), bytes.fromhex("17fefd0001") + bytes(52)):
                    stranger.sendto(junk, (host, port))
                heartbeat = wire.Frame(command=0, sequence=0, type=wire.MessageType.HEARTBEAT)
                stranger.sendto(wire.encode(heartbeat), (host, port))
                await asyncio.sleep(0.5)
                assert one.simulator.clients == 0
                with pytest.raises(BlockingIOError):
                    stranger.recv(100)

    virtual.run(story())


def test_a_client_that_stops_half_way_through_its_greeting_is_forgotten() -> None:
    async def story() -> None:
        async with rig("udp") as one:
            address = host_and_port(one.url.removeprefix("udp://"))
            command, payload = wire.encode_command(m.TakeControl())
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
                client.sendto(
                    wire.encode(wire.Frame(command=command, sequence=0, payload=payload)), address
                )
                await asyncio.sleep(0.1)
                assert one.simulator.clients == 1
                await asyncio.sleep(14.0)
                assert one.simulator.clients == 0

    virtual.run(story())


@pytest.mark.parametrize(
    ("first_frame", "code"),
    [
        (m.ListActions(), m.Code.NOT_INITIALISED),
        (m.StopMotion(), m.Code.NOT_INITIALISED),
        (m.SignalReady(), m.Code.NOT_INITIALISED),
        (m.ReleaseControl(), m.Code.OK),
    ],
)
def test_a_stranger_that_skips_the_greeting_is_told_so(
    first_frame: m.Command, code: m.Code
) -> None:
    async def story() -> None:
        async with rig("udp") as one:
            address = host_and_port(one.url.removeprefix("udp://"))
            command, payload = wire.encode_command(first_frame)
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
                client.setblocking(False)
                client.sendto(
                    wire.encode(wire.Frame(command=command, sequence=7, payload=payload)), address
                )
                await asyncio.sleep(0.1)
                frame = wire.decode(client.recv(1000))
                assert (frame.sequence, frame.command) == (7, command)
                assert wire.decode_reply(frame.command, frame.payload) == m.Status(code)

    virtual.run(story())
