"""Robots of the tests' own making for the WebRTC wire: hostile, broken, or just other than ours."""

import asyncio
import base64
import gc
import json
import secrets
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pytest

import virtual
from rote import connect
from rote.errors import RoteError
from rote.transport.link import Carrier
from rote.transport.webrtc.http import HttpRequest, HttpResponse, Server
from rote.transport.webrtc.stack import RobotEnd
from rote.wire.services import rpc
from rote.wire.webrtc import channel, sdp
from rote.wire.webrtc import signalling as wire

KEY = "00112233445566778899aabbccddeeff"
ROBOT_KEY = wire.RobotKey.generate()

T = TypeVar("T")
Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Answer = Callable[[str], Awaitable[str]]
Problems = list[dict[str, Any]]


def run(work: Coroutine[Any, Any, T], expected: tuple[str, ...] = ()) -> T:
    """Run in virtual time; what a task or callback raised unseen fails the test."""
    problems: Problems = []

    async def watched() -> T:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: problems.append(context))
        return await work

    result = virtual.run(watched())
    gc.collect(1)  # or a task whose error nobody looked at would complain later
    assert [problem["message"] for problem in problems] == list(expected), problems
    return result


def own_address() -> str:
    """Return an address of this computer that hardly anybody else has chosen."""
    return f"127.0.{secrets.randbelow(200) + 7}.{secrets.randbelow(254) + 1}"


class Census(NamedTuple):
    """What a program holds."""

    tasks: int
    files: int
    threads: int


async def census() -> Census:
    """Count what is held, after what is ending has ended, and between two messages."""
    await asyncio.sleep(1.0)
    tasks = []
    for _ in range(8):
        await asyncio.sleep(0.0037)
        tasks.append(len(asyncio.all_tasks()))
    return Census(min(tasks), _open_files(), _threads())


def _threads() -> int:
    """Count threads without those of the loop's executor: it keeps them, and starts one more
    whenever the last one has answered but is not yet idle.
    """
    return sum(not thread.name.startswith("asyncio_") for thread in threading.enumerate())


def _open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


async def failure(url: str, **options: Any) -> RoteError:
    """Return the error of a connect that must fail."""
    with pytest.raises(RoteError) as caught:
        async with connect(url, **options):
            pass
    assert caught.value.remedy
    return caught.value


# ---- without a network -------------------------------------------------------------------------


class ScriptedRobot(Carrier):
    """A robot at the other end of a carrier, which lets the test decide what it answers."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.requests: list[rpc.RpcRequest] = []
        self.topics: list[channel.Subscription] = []
        self.closed = False
        self.lost: Callable[[], None] = lambda: None

    def listen(self, receive: Callable[[str | bytes], None], lost: Callable[[], None]) -> None:
        self._receive, self.lost = receive, lost
        self.say(channel.Validation("c0ffee"))

    def say(self, value: channel.Value) -> None:
        self._loop.call_soon(self._receive, channel.encode(value))

    def send(self, message: str | bytes) -> None:
        value = channel.decode(message)
        if isinstance(value, channel.Validation):
            self.say(channel.Validation(channel.VALIDATION_OK))
        elif isinstance(value, channel.Heartbeat):
            self.say(value)
        elif isinstance(value, rpc.RpcRequest):
            self.requests.append(value)
        elif isinstance(value, channel.Subscription):
            self.topics.append(value)

    def answer(self, request: rpc.RpcRequest, **changes: Any) -> None:
        """Answer a request with its own parameter, or otherwise."""
        response = rpc.RpcResponse(
            service=request.service,
            api_id=request.api_id,
            id=request.id,
            data=request.parameter,
        )
        self.say(replace(response, **changes))

    async def close(self) -> None:
        self.closed = True


# ---- below HTTP ---------------------------------------------------------------------------------


@asynccontextmanager
async def serving(script: Script, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[int]:
    """Let `script` deal with every connection; gives the port."""
    tasks: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await script(reader, writer)
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            tasks.discard(task)
            writer.close()

    server = await asyncio.start_server(accept, host, port)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def saying(*pieces: bytes) -> Script:
    """Hear a question, then say `pieces` one by one, and hang up."""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.01)

    return script


# ---- signalling ---------------------------------------------------------------------------------


def notice(data1: object, **more: object) -> bytes:
    """Return a body for con_notify of any content."""
    return base64.b64encode(json.dumps({"data1": data1, **more}).encode())


@asynccontextmanager
async def posts(
    handler: Callable[[HttpRequest], HttpResponse | Awaitable[HttpResponse]],
) -> AsyncIterator[str]:
    """Answer posts by `handler`; gives the robot's URL."""

    async def answer(request: HttpRequest) -> HttpResponse:
        response = handler(request)
        return response if isinstance(response, HttpResponse) else await response

    server = Server(answer)
    await server.open("127.0.0.1", 0)
    try:
        yield f"webrtc://127.0.0.1:{server.address[1]}"
    finally:
        await server.close()


def good_notice() -> bytes:
    """Return a body for con_notify that every client can use."""
    return wire.seal_notice(
        wire.ConnectNotice(
            public_key=ROBOT_KEY.public, digits="70753", wrapping=wire.Wrapping.PLAIN
        ),
        bytes(range(wire.NOTICE_ENTROPY)),
    )


@asynccontextmanager
async def answering(answer: Answer) -> AsyncIterator[str]:
    """Be a robot that turns an offer's SDP into whatever `answer` makes of it."""

    async def handle(request: HttpRequest) -> HttpResponse:
        if request.path == wire.NOTICE_PATH:
            return HttpResponse(200, good_notice())
        opened = wire.open_offer(request.body, ROBOT_KEY)
        said = sdp.SdpAnswer(sdp=await answer(opened.offer.sdp))
        return HttpResponse(200, wire.seal_answer(said, opened.session_key))

    async with posts(handle) as url:
        yield url


# ---- the channel --------------------------------------------------------------------------------


class Channel:
    """A robot's end of a channel on which the test itself speaks."""

    def __init__(self, *, strict: bool = False) -> None:
        self.end = RobotEnd(strict=strict)
        self.end.stack.opened.add_done_callback(lambda _: None)
        self._opening: asyncio.Task[None] | None = None
        self.heard: list[channel.Value] = []
        self.on_message: Callable[[channel.Value], None] = lambda _: None
        self.gone = False

    async def answer(self, offer: str) -> str:
        answer = await self.end.answer(offer)
        self._opening = asyncio.create_task(self._open())
        return answer

    async def _open(self) -> None:
        await self.end.open()
        # So that any size can be tried: clients say nothing, which means 64 KiB.
        self.end.stack._sctp._remote_max_message_size = 0
        self.end.listen(self._hear, self._lose)
        self.speak()

    def speak(self) -> None:
        """Begin the conversation."""

    def _hear(self, message: str | bytes) -> None:
        value = channel.decode(message)
        self.heard.append(value)
        self.on_message(value)

    def _lose(self) -> None:
        self.gone = True

    def say(self, value: channel.Value) -> None:
        self.end.send(channel.encode(value))

    async def close(self) -> None:
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.gather(self._opening, return_exceptions=True)
        await self.end.close()


class Talking(Channel):
    """One that lets the client in, echoes heartbeats and says its mode."""

    def __init__(self, mode: int = 500) -> None:
        super().__init__()
        self.mode = mode

    def speak(self) -> None:
        self.say(channel.Validation("c0ffee"))

    def _hear(self, message: str | bytes) -> None:
        super()._hear(message)
        value = self.heard[-1]
        if isinstance(value, channel.Validation):
            self.say(channel.Validation(channel.VALIDATION_OK))
        elif isinstance(value, channel.Heartbeat):
            self.say(value)
        elif isinstance(value, rpc.RpcRequest) and value.service == "sport":
            self.reply(value, rpc.encode_value(self.mode))

    def reply(self, to: rpc.RpcRequest, data: str) -> None:
        self.say(rpc.RpcResponse(service=to.service, api_id=to.api_id, id=to.id, data=data))


@asynccontextmanager
async def on_channel(one: Channel) -> AsyncIterator[str]:
    """Let a robot of the test's own be reached; gives its URL."""
    try:
        async with answering(one.answer) as url:
            yield url
    finally:
        await one.close()
