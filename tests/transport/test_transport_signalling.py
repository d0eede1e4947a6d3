"""Signalling with robots that are not there, not robots, broken or hostile; and where keys lie."""

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given, settings
from hypothesis import strategies as st

from rote import connect
from rote.errors import BadRequestError, BusyError, StageError, StageTimeoutError
from rote.platform.paths import key_file
from rote.sim.server import Simulator
from rote.sim.store import Store
from rote.sim.world import World
from rote.transport.webrtc.http import HttpRequest, HttpResponse
from rote.transport.webrtc.signalling import KEY_VARIABLE, exchange_descriptions, find_key
from rote.wire.webrtc import sdp
from rote.wire.webrtc import signalling as wire
from rote.wire.webrtc.description import Side, write_answer
from webrtc_ends import (
    KEY,
    ROBOT_KEY,
    answering,
    failure,
    good_notice,
    notice,
    own_address,
    posts,
    run,
    saying,
    serving,
)

SPKI = (serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
OFFER = "v=0\r\ns=Grüße aus Köln, 你好\r\n"
SIDE = Side("ufra", "p" * 24, ":".join(["AB"] * 32), ("1 1 udp 1 127.0.0.1 9 typ host",))


def signal(url: str, key: bytes | None = None) -> Awaitable[str]:
    """Exchange an offer with the robot at `url`."""
    host, port = url.removeprefix("webrtc://").split(":")
    return exchange_descriptions(host, int(port), OFFER, key=key, limit_s=5.0, own_wifi=False)


def seen_from(
    handler: Callable[[HttpRequest], HttpResponse], key: bytes | None = None
) -> StageError:
    """Return the error of signalling with a robot that answers by `handler`."""

    async def story() -> StageError:
        async with posts(handler) as url:
            with pytest.raises(StageError) as caught:
                await signal(url, key)
            return caught.value

    error = run(story())
    assert error.remedy
    return error


# ---- nobody, or something else ------------------------------------------------------------------


def test_nobody_there_is_told_at_once_with_the_addresses_to_try() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        error = await failure("webrtc://127.0.0.1:1")
        assert isinstance(error, StageTimeoutError)
        assert error.stage == "signal"
        assert "refused" in str(error)
        assert "192.168.123.161" in error.remedy
        assert loop.time() - began < 1.0

    run(story())


def test_both_ports_are_tried_and_named() -> None:
    error = run(failure(f"webrtc://{own_address()}"))
    assert "port 9991: " in str(error)
    assert "port 8081: " in str(error)


def test_a_robot_of_the_old_kind_is_found_on_its_port() -> None:
    async def story() -> None:
        store = Store(":memory:")
        simulator = Simulator(World(store))
        try:
            address = own_address()
            door = await simulator.serve_webrtc(address, signalling="legacy")
            assert door.url == f"webrtc://{address}"
            async with connect(door.url) as robot:
                assert (await robot.actions()).presets
        finally:
            await simulator.close()
            store.close()

    run(story())


@pytest.mark.parametrize("timeout", [1.0, 5.0, 60.0])
def test_a_port_that_says_nothing_is_given_up_at_the_limit(timeout: float) -> None:
    async def mute(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()
        await asyncio.sleep(3600)

    async def story() -> None:
        loop = asyncio.get_running_loop()
        async with serving(mute) as port:
            began = loop.time()
            error = await failure(f"webrtc://127.0.0.1:{port}", timeout=timeout)
            assert isinstance(error, StageTimeoutError)
            assert error.stage == "signal"
            assert loop.time() - began == pytest.approx(min(timeout, 5.0), abs=0.1)

    run(story())


@pytest.mark.parametrize(
    "pieces",
    [
        (),
        (b"SSH-2.0-OpenSSH_8.9\r\n",),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",),
        (b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n",),
        (b"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n",),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n", bytes(200_000)),
    ],
    ids=["hangs up", "no HTTP", "404", "500", "302", "endless"],
)
def test_what_is_no_robot_is_told_with_the_addresses_to_try(pieces: tuple[bytes, ...]) -> None:
    async def story() -> None:
        async with serving(saying(*pieces)) as port:
            error = await failure(f"webrtc://127.0.0.1:{port}")
            assert isinstance(error, StageError)
            assert error.stage == "signal"
            assert "192.168.123.161" in error.remedy

    run(story())


def test_who_hangs_up_before_the_question_is_no_robot() -> None:
    async def story() -> None:
        async def hang_up(_: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
            return

        async with serving(hang_up) as port:
            error = await failure(f"webrtc://127.0.0.1:{port}")
            assert isinstance(error, StageError)
            assert error.stage == "signal"

    run(story())


def test_a_name_that_means_nobody_is_told() -> None:
    error = asyncio.run(failure("webrtc://no-such-robot.invalid"))
    assert isinstance(error, StageTimeoutError)
    assert error.stage == "signal"


@pytest.mark.parametrize("host", ["a" * 64, "robot..lan"])
def test_a_name_that_nobody_can_have_is_told_at_once(host: str) -> None:
    error = asyncio.run(failure(f"webrtc://{host}"))
    assert isinstance(error, BadRequestError)
    assert "host name" in str(error)


# ---- the notice ---------------------------------------------------------------------------------


def key_text(der: bytes, tail: str = "IHLAGHRFKD") -> str:
    return "0123456789" + base64.b64encode(der).decode() + tail


def sealed(text: str, key: bytes) -> str:
    nonce = bytes(12)
    whole = AESGCM(key).encrypt(nonce, text.encode(), None)
    return base64.b64encode(whole[:-16] + nonce + whole[-16:]).decode()


def rsa_der(exponent: int) -> bytes:
    """Return a public key with an exponent of which no private one can be made here."""
    modulus = rsa.generate_private_key(65537, 2048).public_key().public_numbers().n
    return rsa.RSAPublicNumbers(exponent, modulus).public_key().public_bytes(*SPKI)


EC_DER = ec.generate_private_key(ec.SECP256R1()).public_key().public_bytes(*SPKI)
GOOD = key_text(ROBOT_KEY.public)
SHORT_RSA = base64.b64decode(
    "MFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBAKj34GkxFhD90vcNLYLInFEX6Ppy1tPf9Cnzj4p4WGeKLs1Pt8Qu"
    "KUpRKfFLfRYC9AIKjbJTWit+CqvjWYzvQwECAwEAAQ=="
)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"!!!!",
        b"not base64 at all",
        base64.b64encode(b"not json"),
        base64.b64encode(b"[1, 2]"),
        base64.b64encode(b"{}"),
        base64.b64encode(b'{"data2": 2}'),
        base64.b64encode(b'{"data1": NaN'),
        base64.b64encode(b"\xff\xfe"),
        base64.b64encode(b"[" * 30_000),
        notice(7),
        notice(None),
        notice(["text"]),
        notice(GOOD, data2=7),
        notice(GOOD, data2="2"),
        notice(GOOD, data2=True),
        notice(GOOD, data2=1.0),
        notice(""),
        notice("short"),
        notice("0123456789" + "IHLAGHRFKD"),
        notice("0123456789" + "?" * 40 + "IHLAGHRFKD"),
        notice("Ü" * 400),
        notice(GOOD, data2=2),
        notice("AAAA", data2=2),
        notice(sealed("x" * 200, wire.STATIC_KEY), data2=2),
        notice(sealed(GOOD, bytes(16)), data2=2),
        notice(key_text(EC_DER)),
        notice(key_text(SHORT_RSA)),
        notice(key_text(bytes(294))),
        notice(key_text(ROBOT_KEY.public[:-1])),
        notice(key_text(ROBOT_KEY.public, "IHLAGHRFKK")),
        notice(key_text(ROBOT_KEY.public, "IHLAGHRF0é")),
        notice(key_text(ROBOT_KEY.public, "ihlaghrfkd")),
    ],
    ids=lambda _: "notice",  # keys are random, and all workers must agree on the names
)
def test_a_notice_that_cannot_be_used_is_told_at_its_stage(body: bytes) -> None:
    assert seen_from(lambda _: HttpResponse(200, body)).stage == "signal"


def test_the_errors_of_a_notice_say_what_was_seen() -> None:
    def words(body: bytes) -> str:
        return str(seen_from(lambda _: HttpResponse(200, body)))

    assert "data2 is 7" in words(notice(GOOD, data2=7))
    assert "not RSA" in words(notice(key_text(EC_DER)))
    assert "not RSA of 1024" in words(notice(key_text(SHORT_RSA)))
    assert "'K' in its end 'IHLAGHRFKK' is not one of the letters A to J" in words(
        notice(key_text(ROBOT_KEY.public, "IHLAGHRFKK"))
    )
    assert "404" in str(seen_from(lambda _: HttpResponse(404)))


@settings(max_examples=15)
@given(st.binary(max_size=200), st.sampled_from([None, 1, 2, 3]))
def test_any_data1_ends_in_a_named_stage(data: bytes, data2: int | None) -> None:
    body = notice(base64.b64encode(data).decode(), data2=data2)
    error = seen_from(lambda _: HttpResponse(200, body), bytes.fromhex(KEY))
    assert error.stage in {"signal", "key"}


@pytest.mark.parametrize("key", [None, KEY[::-1]])
def test_a_robots_own_key_that_is_missing_or_wrong_is_a_stage_of_its_own(key: str | None) -> None:
    body = notice(sealed(GOOD, bytes.fromhex(KEY)), data2=3)

    async def story() -> None:
        async with posts(lambda _: HttpResponse(200, body)) as url:
            error = await failure(url, key=key)
            assert isinstance(error, StageError)
            assert error.stage == "key"
            assert "device/bind/list" in error.remedy

    run(story())


@pytest.mark.parametrize("exponent", [3, 17, 65537])
def test_a_key_of_any_exponent_is_taken_to_the_path_it_came_with(exponent: int) -> None:
    der = rsa_der(exponent)
    asked: list[HttpRequest] = []

    def robot(request: HttpRequest) -> HttpResponse:
        asked.append(request)
        if request.path == wire.NOTICE_PATH:
            return HttpResponse(200, notice(key_text(der), data2=1))
        return HttpResponse(404)

    assert "404 for /con_ing_70753" in str(seen_from(robot))
    assert [request.path for request in asked] == ["/con_notify", "/con_ing_70753"]
    sent = json.loads(asked[1].body)
    assert len(base64.b64decode(sent["data2"])) == 256


# ---- the answer ---------------------------------------------------------------------------------


def answer_of(make: Callable[[str], bytes]) -> Callable[[HttpRequest], HttpResponse]:
    """Answer sealed offers with what `make` makes of the session key."""

    def robot(request: HttpRequest) -> HttpResponse:
        if request.path == wire.NOTICE_PATH:
            return HttpResponse(200, good_notice())
        return HttpResponse(200, make(wire.open_offer(request.body, ROBOT_KEY).session_key))

    return robot


def seal(document: object, session_key: str) -> bytes:
    return wire.seal_document(json.dumps(document).encode(), session_key)


@pytest.mark.parametrize(
    "make",
    [
        lambda _: b"",
        lambda _: b"not base64!",
        lambda _: base64.b64encode(b"fifteen bytes.."),
        lambda _: base64.b64encode(bytes(160)),
        lambda _: seal({"type": "answer", "sdp": "v=0"}, "0" * 32),
        lambda key: wire.seal_document(b"not json", key),
        lambda key: wire.seal_document(b"\xff" * 40, key),
        lambda key: seal([], key),
        lambda key: seal({"type": "answer"}, key),
        lambda key: seal({"type": "answer", "sdp": None}, key),
        lambda key: seal({"type": "answer", "sdp": ""}, key),
        lambda key: seal({"type": "answer", "sdp": "rejected"}, key),
        lambda key: seal({"type": "offer", "sdp": "v=0"}, key),
        lambda key: seal({"type": "answer", "sdp": "v=0", "id": 7}, key),
    ],
)
def test_an_answer_that_cannot_be_used_is_told_at_its_stage(make: Callable[[str], bytes]) -> None:
    assert seen_from(answer_of(make)).stage == "signal"


def test_an_answer_in_plain_text_is_no_answer() -> None:
    plain = sdp.encode_answer(sdp.SdpAnswer(sdp="v=0"))
    assert seen_from(answer_of(lambda _: plain)).stage == "signal"


def test_a_robot_that_rejects_is_busy_and_the_remedy_names_the_phone_app() -> None:
    async def story() -> None:
        def busy(key: str) -> bytes:
            return wire.seal_answer(sdp.Busy(), key)

        async with posts(answer_of(busy)) as url:
            error = await failure(url)
            assert isinstance(error, BusyError)
            assert error.stage == "signal"
            assert "phone app" in error.remedy

    run(story())


def test_an_offer_goes_through_in_any_language() -> None:
    async def story() -> None:
        async def same(offer: str) -> str:
            assert offer == OFFER
            return offer

        async with answering(same) as url:
            assert await signal(url) == OFFER

    run(story())


def without(*starts: str) -> Callable[[str], Awaitable[str]]:
    """Answer an offer as it should be, but for some of its lines."""

    async def answer(offer: str) -> str:
        lines = write_answer(offer, SIDE, 1).split("\r\n")
        return "\r\n".join(line for line in lines if not line.startswith(starts))

    return answer


@pytest.mark.parametrize("lacking", ["a=fingerprint", "a=ice-ufrag", "a=ice-pwd", "m=application"])
def test_an_answer_that_lacks_what_a_connection_needs_is_told(lacking: str) -> None:
    async def story() -> None:
        async with answering(without(lacking)) as url:
            error = await failure(url, timeout=1.0)
            assert isinstance(error, StageError)
            assert error.stage == "signal"
            assert "its answer cannot be used" in str(error)

    run(story())


def test_an_answer_without_candidates_ends_at_ice() -> None:
    async def story() -> None:
        async with answering(without("a=candidate")) as url:
            error = await failure(url, timeout=1.0)
            assert isinstance(error, StageError)
            assert error.stage == "ICE"
            assert "announces no address" in str(error)

    run(story())


# ---- keys ---------------------------------------------------------------------------------------


@pytest.fixture
def keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the key file belongs, with no other key in sight."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    path = key_file()
    path.parent.mkdir(parents=True)
    return path


def write(path: Path, text: str, mode: int = 0o600) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)


ONE, TWO, THREE = "11" * 16, "22" * 16, "33" * 16


def test_what_is_given_comes_before_the_variable_and_that_before_the_file(
    keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_key(None, "robot") is None
    write(keys, f"robot {THREE}\n")
    assert find_key(None, "robot") == bytes.fromhex(THREE)
    monkeypatch.setenv(KEY_VARIABLE, TWO)
    assert find_key(None, "robot") == bytes.fromhex(TWO)
    assert find_key(ONE, "robot") == bytes.fromhex(ONE)


def test_a_key_file_names_robots_or_all_and_has_room_for_remarks(keys: Path) -> None:
    text = f"# my robots\n\nrobot {ONE} # the white one\n192.168.123.161\t{TWO.upper()}\n"
    write(keys, text)
    assert find_key(None, "robot") == bytes.fromhex(ONE)
    assert find_key(None, "192.168.123.161") == bytes.fromhex(TWO)
    assert find_key(None, "other") is None
    write(keys, f"{text}* {THREE}\n")
    assert find_key(None, "other") == bytes.fromhex(THREE)
    assert find_key(None, "robot") == bytes.fromhex(ONE)


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660, 0o777])
def test_a_key_file_others_can_read_is_refused_with_the_command_that_mends_it(
    keys: Path, mode: int
) -> None:
    write(keys, f"robot {ONE}\n", mode)
    with pytest.raises(BadRequestError, match="read by other users") as caught:
        find_key(None, "robot")
    assert f"chmod 600 {keys}" in caught.value.remedy


@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_a_key_file_only_its_owner_can_read_is_used(keys: Path, mode: int) -> None:
    write(keys, f"robot {ONE}\n", mode)
    assert find_key(None, "robot") == bytes.fromhex(ONE)


@pytest.mark.parametrize("line", ["robot", "robot key", f"robot {ONE}0", f"my robot {ONE}", ONE])
def test_a_bad_line_of_the_key_file_is_named(keys: Path, line: str) -> None:
    write(keys, f"# first\n{line}\nrobot {ONE}\n")
    with pytest.raises(BadRequestError, match="line 2 of") as caught:
        find_key(None, "robot")
    assert "32 hex" in caught.value.remedy
    assert ONE not in str(caught.value)


def test_a_key_file_that_cannot_be_read_is_told(keys: Path) -> None:
    keys.write_bytes(b"\xff\xfe\x00")
    keys.chmod(0o600)
    with pytest.raises(BadRequestError, match="cannot be read"):
        find_key(None, "robot")
    keys.unlink()
    keys.mkdir(mode=0o700)
    with pytest.raises(BadRequestError, match="cannot be read"):
        find_key(None, "robot")


@pytest.mark.parametrize("key", ["xyz", "1" * 31, "1" * 33, "ÄÖ" * 16])
def test_a_key_that_is_none_is_refused_before_anybody_is_asked(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for options in ({"key": key}, {}):
        if not options:
            monkeypatch.setenv(KEY_VARIABLE, key)
        error = run(failure("webrtc://127.0.0.1:1", **options))
        assert isinstance(error, BadRequestError)
        assert "32 hex characters" in str(error)


def test_a_robot_with_a_key_of_its_own_lets_in_who_has_it(keys: Path) -> None:
    async def story(**options: Any) -> None:
        store = Store(":memory:")
        simulator = Simulator(World(store))
        try:
            door = await simulator.serve_webrtc(
                "127.0.0.1", 0, signalling="3", key=bytes.fromhex(KEY)
            )
            async with connect(door.url, **options) as robot:
                assert (await robot.actions()).presets
        finally:
            await simulator.close()
            store.close()

    run(story(key=KEY))
    with pytest.raises(StageError) as caught:
        run(story())
    assert caught.value.stage == "key"
    write(keys, f"127.0.0.1 {KEY}\n")
    run(story())
