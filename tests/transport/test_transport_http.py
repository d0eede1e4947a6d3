"""HTTP for signalling: bounded, patient up to a limit, and never surprised."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from rote.errors import LinkError, RemoteProtocolError
from rote.transport.webrtc.http import HttpRequest, HttpResponse, Server, post
from rote.wire.discovery import MAX_BODY
from webrtc_ends import Script, run, saying, serving

OK = b"HTTP/1.1 200 OK\r\n"


def ask(script: Script) -> HttpResponse:
    async def story() -> HttpResponse:
        async with serving(script) as port:
            return await post("127.0.0.1", port, "/con_notify", b"")

    return run(story())


# ---- asking -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pieces",
    [
        (OK + b"Content-Length: 5\r\n\r\nhello",),
        (OK + b"Content-", b"Length: 5\r\n\r", b"\nhe", b"llo"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",),
        (OK + b"\r\nhel", b"lo"),
        (b"HTTP/1.1 100 Continue\r\n\r\n", OK + b"Content-Length: 5\r\n\r\nhello"),
        (b"HTTP/1.0 200 OK\r\n\r\nhello",),
    ],
    ids=["whole", "in pieces", "chunked", "until it hangs up", "after a 100", "HTTP 1.0"],
)
def test_an_answer_is_read_however_it_is_framed(pieces: tuple[bytes, ...]) -> None:
    assert ask(saying(*pieces)) == HttpResponse(200, b"hello")


@pytest.mark.parametrize(
    "pieces",
    [
        (),
        (b"",),
        (b"SSH-2.0-OpenSSH_8.9\r\n",),
        (bytes(range(256)) * 100,),
        (OK,),
        (OK + b"Content-Length: 10\r\n\r\nhello",),
        (OK + b"Content-Length: many\r\n\r\nhello",),
        (OK + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n",),
        (b"HTTP/1.1 101 Switching Protocols\r\n\r\n",),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 3,),
        (b"HTTP/1.1 " + b"2" * 200_000,),
    ],
)
def test_what_is_no_answer_is_a_named_error(pieces: tuple[bytes, ...]) -> None:
    with pytest.raises(RemoteProtocolError, match=r"not HTTP|closed before"):
        ask(saying(*pieces))


@pytest.mark.parametrize("head", [b"Content-Length: 999999999\r\n\r\n", b"\r\n"])
def test_an_endless_answer_is_given_up_when_it_is_too_long(head: bytes) -> None:
    written = 0

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal written
        writer.write(OK + head)
        while True:
            writer.write(bytes(10_000))
            written += 10_000
            await writer.drain()
            await asyncio.sleep(0)

    with pytest.raises(RemoteProtocolError, match="longer than"):
        ask(endless)
    assert written < 64 * MAX_BODY  # what kernels buffer is not ours to bound


@pytest.mark.parametrize("host", ["a" * 64, "." * 5, "a..b"])
def test_what_cannot_be_a_host_is_nobody(host: str) -> None:
    with pytest.raises(OSError):  # noqa: PT011 - its words are the system's
        run(post(host, 9991, "/", b""))


def test_an_address_of_ip_6_is_written_as_such() -> None:
    heads = []

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(OK + b"Content-Length: 0\r\n\r\n")

    async def story() -> int:
        async with serving(listen, "::1") as port:
            assert (await post("::1", port, "/x", b"")).status == 200
            return port

    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this computer has no IPv6")
    port = run(story())
    assert f"Host: [::1]:{port}\r\n".encode() in heads[0]


# ---- answering ----------------------------------------------------------------------------------


@asynccontextmanager
async def echo() -> AsyncIterator[int]:
    async def answer(request: HttpRequest) -> HttpResponse:
        return HttpResponse(200, f"{request.method} {request.path} ".encode() + request.body)

    server = Server(answer)
    await server.open("127.0.0.1", 0)
    try:
        yield server.address[1]
    finally:
        await server.close()


async def raw(port: int, *pieces: bytes) -> bytes:
    """Say something that may not be HTTP, and return all that comes back."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.01)
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


def test_a_request_is_answered() -> None:
    async def story() -> None:
        async with echo() as port:
            assert await post("127.0.0.1", port, "/x", b"body") == HttpResponse(
                200, b"POST /x body"
            )
            got = await raw(port, b"GET /con_notify HTTP/1.1\r\n", b"Host: robot\r\n\r\n")
            assert got.startswith(b"HTTP/1.1 200")
            assert got.endswith(b"GET /con_notify ")

    run(story())


HEAD = b"POST / HTTP/1.1\r\nHost: x\r\n"


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ((b"\x16\x03\x01\x02\x00\x01\x00" + bytes(200) + b"\r\n\r\n",), 400),
        ((b"POST /\r\n\r\n",), 400),
        ((b"POST / HTTP/1.1\r\n\r\n",), 400),  # no Host
        ((HEAD + b"Content-Length: -1\r\n\r\n",), 400),
        ((HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n",), 400),
        ((HEAD + b"X: " + b"x" * 100_000,), 431),
        ((HEAD + b"Content-Length: 9999999\r\n\r\n", bytes(MAX_BODY), b"x"), 413),
        ((HEAD + b"Content-Length: 5\r\n\r\nhello",), 200),
    ],
)
def test_what_is_no_request_is_told_so(said: tuple[bytes, ...], status: int) -> None:
    async def story() -> None:
        async with echo() as port:
            got = await raw(port, *said)
            assert got.startswith(f"HTTP/1.1 {status} ".encode())
            assert (await post("127.0.0.1", port, "/", b"")).status == 200

    run(story())


@pytest.mark.parametrize("size", [MAX_BODY, MAX_BODY + 1, 10 * 2**20])
def test_a_body_is_taken_up_to_its_bound(size: int) -> None:
    async def story() -> None:
        async with echo() as port:
            got = await raw(port, HEAD + f"Content-Length: {size}\r\n\r\n".encode() + bytes(size))
            # Where more was sent than is read, the connection may be reset before the answer is.
            assert b" 200 " in got[:20] if size == MAX_BODY else got[:13] in (b"", b"HTTP/1.1 413 ")
            assert (await post("127.0.0.1", port, "/", b"")).status == 200

    run(story())


def test_who_only_looks_whether_somebody_listens_leaves_no_trace() -> None:
    async def story() -> None:
        async with echo() as port:
            before = len(asyncio.all_tasks())
            for _ in range(100):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
            await asyncio.sleep(0.1)
            assert len(asyncio.all_tasks()) == before
            assert (await post("127.0.0.1", port, "/", b"")).status == 200

    run(story())


def test_who_begins_and_says_no_more_is_dropped_after_a_while_and_keeps_nobody_out() -> None:
    async def story() -> None:
        async with echo() as port:
            loop = asyncio.get_running_loop()
            idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(64)]
            idle[0][1].write(b"POST / HT")
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            assert await reader.read() == b""  # one too many
            writer.close()
            began = loop.time()
            assert await idle[0][0].read() == b""
            assert loop.time() - began <= 10.0
            assert (await post("127.0.0.1", port, "/", b"")).status == 200
            for _, writer in idle:
                writer.close()

    run(story())


def test_a_port_that_is_taken_is_a_link_error_with_a_remedy() -> None:
    async def story() -> None:
        async with echo() as port:
            with pytest.raises(LinkError, match="cannot be used") as caught:
                await Server(lambda _: asyncio.sleep(0, HttpResponse(200))).open("127.0.0.1", port)
            assert "Another program" in caught.value.remedy

    run(story())


def test_a_server_that_closes_drops_whoever_is_waiting() -> None:
    async def story() -> None:
        async def think(_: HttpRequest) -> HttpResponse:
            await asyncio.sleep(5.0)
            return HttpResponse(200)

        server = Server(think)
        await server.open("127.0.0.1", 0)
        waiting = asyncio.create_task(post("127.0.0.1", server.address[1], "/", b""))
        await asyncio.sleep(1.0)
        await server.close()
        await server.close()
        began = asyncio.get_running_loop().time()
        with pytest.raises((RemoteProtocolError, OSError)):
            await waiting
        assert asyncio.get_running_loop().time() - began < 0.1

    run(story())
