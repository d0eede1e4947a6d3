"""Finding robots with real sockets, on loopback; serials are made up, for others test here too."""

import asyncio
import json
import shutil
import socket
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from pathlib import Path

import ifaddr
import pytest

import virtual
from rote.errors import BadRequestError, LinkError, MissingExtraError, StageTimeoutError
from rote.transport.discovery import (
    MAX_ROBOTS,
    FoundRobot,
    InterfaceAddress,
    Responder,
    Search,
    discover,
    find_address,
    list_addresses,
    open_responder,
)
from rote.wire import discovery as wire

HERE = ("127.0.0.1",)
LOOPBACK = InterfaceAddress("lo", "127.0.0.1")
GROUP = wire.list_groups("g1")[0]


def _why_no_multicast() -> str:
    """Why this machine's loopback cannot carry these tests, if so."""
    try:
        with _member(0) as heard, _speaker() as speaker:
            speaker.sendto(b"there?", (GROUP, heard.getsockname()[1]))
            heard.settimeout(2.0)
            heard.recv(100)
    except OSError as error:
        return f"no multicast on loopback here: {error}"
    return ""


@contextmanager
def _member(port: int) -> Iterator[socket.socket]:
    """A socket in the group, on loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        if port:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.bind((GROUP, port))
        joined = socket.inet_aton(GROUP) + socket.inet_aton(*HERE)
        one.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, joined)
        yield one


@contextmanager
def _speaker() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(*HERE))
        yield one


WHY_NOT = _why_no_multicast()
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "multicast works")


@pytest.fixture
def serial() -> str:
    return f"TEST{uuid.uuid4().hex}"


@asynccontextmanager
async def robot(
    serial: str,
    address_for: Callable[[InterfaceAddress], str] = lambda interface: interface.address,
    *,
    only_by_name: bool = False,
    announce: bool = False,
    addresses: tuple[str, ...] = HERE,
    delay_s: float = 0.0,
) -> AsyncIterator[Responder]:
    responder = await open_responder(
        serial,
        address_for,
        only_by_name=only_by_name,
        announce=announce,
        interfaces=[InterfaceAddress("lo", address) for address in addresses],
        delay_s=delay_s,
    )
    try:
        yield responder
    finally:
        responder.close()


async def first(serial: str, *, named: bool = False, seconds: float = 20.0) -> FoundRobot:
    """The first reply of one robot, in real time: it comes at once or not at all."""
    serials = (serial,) if named else ()
    async with aclosing(discover(serials=serials, seconds=seconds, addresses=HERE)) as robots:
        async for found in robots:
            if found.serial == serial:
                return found
    raise AssertionError(f"{serial} was not found")


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_every_address_of_this_computer_is_known_and_loopback_comes_last() -> None:
    known = list_addresses()
    assert LOOPBACK in known
    loopback = [one.address.startswith("127.") for one in known]
    assert loopback == sorted(loopback)
    assert len({one.address for one in known}) == len(known)


def test_without_its_library_it_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ifaddr", None)
    with pytest.raises(MissingExtraError) as caught:
        list_addresses()
    assert "rote-robot[webrtc]" in caught.value.remedy


def test_a_robot_is_found_by_a_question_to_all(serial: str) -> None:
    async def story() -> None:
        async with robot(serial) as responder:
            found = await first(serial)
            assert found[:3] == (serial, "127.0.0.1", "lo")
            assert 0 <= found.after_s < 20
            assert responder.answered >= 1

    asyncio.run(story())


def test_newer_firmware_is_found_only_by_its_name(serial: str) -> None:
    older = f"{serial}-older"

    async def story() -> None:
        async with robot(serial, only_by_name=True), robot(older):
            search = discover(seconds=8.0, addresses=HERE)
            found = {one.serial async for one in search}
            assert older in found
            assert serial not in found
            assert (await first(serial, named=True)).serial == serial

    virtual.run(story())


def test_the_search_ends_as_soon_as_all_who_were_named_have_answered(serial: str) -> None:
    two = f"{serial}-2"

    async def story() -> None:
        began = asyncio.get_running_loop().time()
        async with robot(serial), robot(two, only_by_name=True, delay_s=0.9):
            search = discover(serials=(serial, two, serial), seconds=3600.0, addresses=HERE)
            found = [one async for one in search if one.serial.startswith(serial)]
        assert {one.serial for one in found} == {serial, two}
        assert next(one for one in found if one.serial == two).after_s > 0.89
        assert asyncio.get_running_loop().time() - began < 60.0

    virtual.run(story())


def test_a_robot_that_answers_many_times_comes_once(serial: str) -> None:
    two = f"{serial}-2"

    async def story() -> None:
        async with robot(serial) as one, robot(two) as other:
            search = discover(seconds=8.0, addresses=HERE)
            found = [each.serial async for each in search if each.serial.startswith(serial)]
            assert sorted(found) == [serial, two]
            # Both groups, asked six times or more: a reply to each, and still found once.
            assert min(one.answered, other.answered) >= 6

    virtual.run(story())


def test_a_robot_that_has_moved_comes_again(serial: str) -> None:
    addresses = iter(["10.0.0.1", "10.0.0.1", "10.0.0.2"])

    async def story() -> None:
        said: list[str] = []

        def address_for(interface: InterfaceAddress) -> str:
            said.append(next(addresses, "10.0.0.2"))
            return said[-1]

        async with robot(serial, address_for):
            search = discover(seconds=8.0, addresses=HERE)
            found = [one.address async for one in search if one.serial == serial]
        assert sorted(found) == ["10.0.0.1", "10.0.0.2"]

    virtual.run(story())


def test_nobody_answers_and_the_search_ends_in_time(serial: str) -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        search = discover(serials=(serial,), seconds=2.0, addresses=HERE)
        assert serial not in [one.serial async for one in search]
        assert loop.time() - began == pytest.approx(2.0)

    virtual.run(story())


def test_the_address_of_one_robot_is_found(serial: str) -> None:
    async def story() -> None:
        async with robot(serial, lambda interface: "10.0.0.7", only_by_name=True):
            assert await find_address(serial, limit_s=20.0) == "10.0.0.7"

    asyncio.run(story())


def test_a_robot_that_is_not_there_is_missed_with_words_on_what_to_try(serial: str) -> None:
    async def story() -> None:
        with pytest.raises(StageTimeoutError) as caught:
            await find_address(serial, limit_s=1.5)
        assert caught.value.stage == "discover"
        assert serial in caught.value.seen
        assert "1.5 s" in caught.value.seen
        for hint in ("same network", "multicast", "webrtc://HOST"):
            assert hint in caught.value.remedy

    virtual.run(story())


@pytest.mark.parametrize("way", ["to the group", "to who asked", "to the computer that asked"])
def test_a_robot_is_found_whichever_way_it_replies(way: str, serial: str) -> None:
    reply = wire.encode_reply(wire.Reply(serial=serial, address="10.0.0.9"))
    to: dict[str, Callable[[tuple[str, int]], tuple[str, int]]] = {
        "to the group": lambda asker: (GROUP, wire.REPLY_PORT),
        "to who asked": lambda asker: asker,
        "to the computer that asked": lambda asker: (asker[0], wire.REPLY_PORT),
    }

    async def story() -> None:
        loop = asyncio.get_running_loop()
        with _member(wire.QUERY_PORT) as ear, _speaker() as mouth:

            def answer() -> None:
                datagram, asker = ear.recvfrom(1000)
                if serial in datagram.decode():
                    mouth.sendto(reply, to[way](asker))

            loop.add_reader(ear, answer)
            try:
                found = await first(serial, named=True)
            finally:
                loop.remove_reader(ear)
        assert found[:3] == (serial, "10.0.0.9", "lo")

    asyncio.run(story())


def test_a_robot_that_announces_itself_is_found_unasked(serial: str) -> None:
    async def story() -> None:
        with Search(seconds=20.0, addresses=HERE) as search:
            async with robot(serial, only_by_name=True, announce=True) as responder:
                async for found in search:
                    if found.serial == serial:
                        break
                assert responder.answered == 0

    asyncio.run(story())


def test_what_is_no_reply_is_ignored_and_counted(serial: str) -> None:
    junk = (
        b"", b"\xff", b"[]", b'{"sn": 7}', b'{"sn": "X", "ip": "no address"}',
        b'{"sn": "\\u001b[2J", "ip": "10.0.0.1"}', b"x" * 60_000,
    )  # fmt: skip

    async def story() -> None:
        with Search(seconds=20.0, addresses=HERE) as search, _speaker() as speaker:
            for datagram in junk:
                speaker.sendto(datagram, (GROUP, wire.REPLY_PORT))
            async with robot(serial, announce=True):
                async for found in search:
                    if found.serial == serial:
                        break
            assert search.ignored >= len(junk)

    asyncio.run(story())


def test_somebody_who_invents_robots_does_not_fill_the_memory() -> None:
    async def story() -> None:
        with Search(seconds=30.0, addresses=HERE) as search, _speaker() as speaker:
            (asker,) = search._query_sockets.values()
            for number in range(MAX_ROBOTS + 40):
                invented = wire.Reply(serial=f"TEST-INVENTED-{number}", address="10.0.0.1")
                speaker.sendto(wire.encode_reply(invented), asker.getsockname())
                await asyncio.sleep(0.01)
            found = [one async for one in search]
        assert len(found) == MAX_ROBOTS

    virtual.run(story())


def test_two_programs_search_at_once_and_both_find(serial: str) -> None:
    async def story() -> None:
        async with robot(serial):
            both = await asyncio.gather(first(serial), first(serial))
        assert [one.serial for one in both] == [serial, serial]

    asyncio.run(story())


def test_an_interface_that_cannot_be_used_does_not_stop_the_others(
    serial: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    absent = ifaddr.Adapter("gone0", "gone0", [ifaddr.IP("198.51.100.7", 24, "gone0")])
    known = [absent, *ifaddr.get_adapters()]
    monkeypatch.setattr(ifaddr, "get_adapters", lambda: known)

    async def story() -> None:
        async with robot(serial):
            with Search(serials=(serial,), seconds=20.0) as search:
                assert serial in [one.serial async for one in search]
        assert InterfaceAddress("gone0", "198.51.100.7") in search.troubles
        assert LOOPBACK not in search.troubles
        with pytest.raises(LinkError, match="gone0") as caught:
            Search(addresses=("198.51.100.7",))
        assert "Wi-Fi" in caught.value.remedy
        responder = await open_responder(serial)
        assert [one.name for one in responder.troubles] == ["gone0"]
        responder.close()

    asyncio.run(story())


def test_a_computer_without_any_network_says_so(
    serial: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ifaddr, "get_adapters", list)

    async def story() -> None:
        with pytest.raises(LinkError, match="there is none"):
            await find_address(serial)
        with pytest.raises(LinkError, match="there is none"):
            await open_responder(serial)

    virtual.run(story())


@pytest.mark.parametrize(
    "asked",
    [
        {"seconds": 0.0},
        {"seconds": float("nan")},
        {"seconds": float("inf")},
        {"family": "b2"},
        {"serials": ("",)},
        {"addresses": ("127.0.0.1", "198.51.100.7")},
    ],
    ids=str,
)
def test_what_cannot_be_asked_is_refused_and_leaves_nothing_open(asked: dict[str, object]) -> None:
    async def story() -> None:
        before = open_files()
        with pytest.raises(BadRequestError):
            Search(**asked)  # type: ignore[arg-type]
        assert open_files() == before

    virtual.run(story())


def test_leaving_early_and_being_cancelled_close_every_socket(serial: str) -> None:
    async def story() -> None:
        async with robot(serial):
            before = open_files()
            await first(serial)  # leaves at the first reply
            assert open_files() == before
            task = asyncio.create_task(find_address(f"{serial}-nobody", limit_s=3600.0))
            await asyncio.sleep(5.0)
            assert open_files() >= before + 3
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert open_files() == before

    virtual.run(story())


def test_a_closed_search_asks_no_more(serial: str) -> None:
    async def story() -> None:
        with Search(serials=(serial,), seconds=60.0, addresses=HERE) as search:
            await asyncio.sleep(1.5)
            asked = search.asked
            # At 0, 0.2, 0.6 and 1.2 s; to all and to one, in every group.
            assert asked == 4 * 2 * len(wire.list_groups())
        assert [one.serial async for one in search if one.serial == serial] == []
        await asyncio.sleep(30.0)
        assert search.asked == asked

    virtual.run(story())


def test_a_family_is_asked_in_its_own_groups(serial: str) -> None:
    async def story() -> None:
        async with robot(serial) as responder:  # a G1
            search = discover(serials=(serial,), family="go2", seconds=2.0, addresses=HERE)
            assert serial not in [one.serial async for one in search]
            search = discover(serials=(serial,), family="g1", seconds=20.0, addresses=HERE)
            assert serial in [one.serial async for one in search]
            assert responder.ignored == 0

    virtual.run(story())


def test_a_robot_says_the_address_by_which_the_asker_reaches_it(serial: str) -> None:
    async def story() -> None:
        async with robot(serial, addresses=("127.0.0.2", "127.0.0.1")) as responder:
            assert (await first(serial)).address == "127.0.0.1"
            assert responder.received >= responder.answered >= 1

    asyncio.run(story())


def test_a_closed_robot_is_silent_even_if_a_reply_was_due(serial: str) -> None:
    async def story() -> None:
        before = open_files()
        async with robot(serial, delay_s=1.0) as responder:
            with Search(serials=(serial,), seconds=30.0, addresses=HERE) as search:
                while not responder.answered:
                    await asyncio.sleep(0.01)
                responder.close()
                assert serial not in [one.serial async for one in search]
        assert open_files() == before

    virtual.run(story())


def test_a_robot_ignores_what_is_no_question_and_counts_it(serial: str) -> None:
    async def story() -> None:
        async with robot(serial) as responder, aclosing(discover(seconds=20.0)) as search:
            with _speaker() as speaker:
                speaker.sendto(b"junk", (GROUP, wire.QUERY_PORT))
                speaker.sendto(b'{"name": "somebody else"}', (GROUP, wire.QUERY_PORT))
            async for found in search:
                if found.serial == serial:
                    break
            assert responder.ignored >= 2

    asyncio.run(story())


def test_a_robot_without_a_serial_is_refused_before_it_listens() -> None:
    async def story() -> None:
        before = open_files()
        with pytest.raises(BadRequestError):
            await open_responder("", announce=False)
        assert open_files() == before

    virtual.run(story())


_TWO_COMPUTERS = """
set -e
unshare -n sleep 60 & other=$!
while [ "$(readlink /proc/$other/ns/net)" = "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done
ip link add near type veth peer name far netns $other
ip addr add 10.77.0.1/24 dev near; ip link set near up
ip addr add 10.88.0.1/24 dev near
nsenter -t $other -n sh -c 'ip addr add 10.77.0.2/24 dev far; ip link set far up; ip link set lo up'
ip link add down0 type veth peer name down1; ip addr add 10.99.0.1/24 dev down0
nsenter -t $other -n "$1" -c "$2" "$3" >/dev/null & robot=$!
"$1" -c "$4" "$3"
kill $robot $other
"""
_ROBOT = """
import asyncio, sys
from rote.transport.discovery import open_responder
async def main():
    await open_responder(sys.argv[1], announce=False)
    await asyncio.sleep(60)
asyncio.run(main())
"""
_ASKER = """
import asyncio, json, sys
from rote.transport.discovery import Search
async def main():
    with Search(serials=sys.argv[1:], seconds=20.0) as search:
        found = [robot async for robot in search]
    print(json.dumps([found, sorted(one.name for one in search.troubles)]))
asyncio.run(main())
"""


_SHARED = """
import asyncio, socket, sys
from rote.transport.discovery import Search, open_responder
holder = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
if sys.argv[2] == "shared":
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
holder.bind(("", 10134))
async def main():
    responder = await open_responder(sys.argv[1], announce=False)
    with Search(serials=sys.argv[1:2], seconds=20.0) as search:
        found = [robot async for robot in search]
    responder.close()
    print(found[0].address, *search.troubles.values())
asyncio.run(main())
"""


@pytest.fixture
def own_network() -> list[str]:
    """The command that runs another one in a network of its own, where no port is shared."""
    own = ["unshare", "-rn"]
    if shutil.which("unshare") is None:
        pytest.skip("no unshare: no network of one's own")
    made = subprocess.run(
        [*own, "ip", "link", "add", "near", "type", "veth"],
        check=False,
        capture_output=True,
        text=True,
    )
    if made.returncode:
        pytest.skip(f"no network of one's own here: {made.stderr.strip()}")
    return own


def _run(command: list[str]) -> str:
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=50)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_robot_on_another_computer_is_found_past_an_interface_that_is_down(
    serial: str, own_network: list[str]
) -> None:
    script = ["sh", "-c", _TWO_COMPUTERS, "sh", sys.executable, _ROBOT, serial, _ASKER]
    found, troubles = json.loads(_run([*own_network, *script]))
    assert [one[:3] for one in found] == [[serial, "10.77.0.2", "near"]]
    assert troubles == ["down0"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("held", "troubles"),
    [("shared", ""), ("alone", "port 10134 cannot be opened: address already in use")],
)
def test_a_port_that_another_program_holds_is_shared_or_done_without(
    held: str, troubles: str, serial: str, own_network: list[str]
) -> None:
    script = 'ip link set lo up; exec "$@"'
    command = ["sh", "-c", script, "sh", sys.executable, "-c", _SHARED, serial, held]
    assert _run([*own_network, *command]).strip() == f"127.0.0.1 {troubles}".strip()
