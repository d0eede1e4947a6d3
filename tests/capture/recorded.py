"""A session of rote with its own simulated robot by WebRTC, listened to from inside the process."""

import asyncio
import re
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aioice.ice import StunProtocol
from aiortc import RTCCertificate, RTCDataChannel

import virtual
from rig import rig
from rote.capture.model import Datagram
from rote.capture.read.packets import PacketDecoder, iter_datagrams
from rote.capture.read.reader import open_capture
from rote.connection import connect

EPOCH_NS = 1_770_000_000 * 10**9
"""When recorded sessions began, by their own account."""
CIPHERS = {
    "ECDHE-ECDSA-AES128-GCM-SHA256": "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "ECDHE-ECDSA-AES256-GCM-SHA384": "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "ECDHE-ECDSA-CHACHA20-POLY1305": "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
}


@dataclass
class Recorded:
    """What went over the wire, and what was put into it."""

    datagrams: list[Datagram] = field(default_factory=list)
    keylog: str = ""
    cipher: str = ""
    """The suite that was forced, if one was."""
    sent: dict[int, list[str | bytes]] = field(default_factory=lambda: defaultdict(list))
    """The messages of each end of the channel, in order."""

    @property
    def said(self) -> list[list[str | bytes]]:
        """What each end said, the longer one first."""
        return sorted(self.sent.values(), key=len, reverse=True)


def listen(
    patch: pytest.MonkeyPatch, cipher: str | None = None, *, plain_secret: bool = False
) -> Recorded:
    """Record every datagram that WebRTC receives from now on, and every message it is given."""
    recorded = Recorded()
    receive, send = StunProtocol.datagram_received, RTCDataChannel.send
    create = RTCCertificate._create_ssl_context

    def heard(self: StunProtocol, data: Any, addr: Any) -> None:
        here = self.transport.get_extra_info("sockname")
        time_ns = EPOCH_NS + int(asyncio.get_running_loop().time() * 1e9)
        one = Datagram(time_ns, (addr[0], addr[1]), (here[0], here[1]), bytes(data))
        recorded.datagrams.append(one)
        receive(self, data, addr)

    def said(self: RTCDataChannel, data: str | bytes) -> None:
        recorded.sent[id(self)].append(data)
        send(self, data)

    def context(self: RTCCertificate, *args: Any, **options: Any) -> Any:
        made = create(self, *args, **options)
        if cipher is not None:
            made.set_cipher_list(cipher.encode())
        if plain_secret:
            made.set_options(1)  # SSL_OP_NO_EXTENDED_MASTER_SECRET
        return made

    patch.setattr(StunProtocol, "datagram_received", heard)
    patch.setattr(RTCDataChannel, "send", said)
    patch.setattr(RTCCertificate, "_create_ssl_context", context)
    return recorded


async def live_through(url: str, keylog: Path) -> None:
    """List, teach, play, rename and delete, as a person would."""
    async with connect(url, keylog=keylog) as robot:
        await robot.actions()
        async with robot.teach("Grüße"):
            await robot.move_by_hand("wave", 3.0)
            await asyncio.sleep(3.5)
        await robot.actions()
        await robot.play("Grüße")
        await robot.rename("Grüße", "bye")
        await robot.delete("bye")


async def list_actions(url: str, keylog: Path) -> None:
    """Ask for the actions, and leave."""
    async with connect(url, keylog=keylog) as robot:
        await robot.actions()


def record(
    folder: Path, cipher: str | None = None, *, plain_secret: bool = False, brief: bool = False
) -> Recorded:
    """Return a whole session, or one that only lists the actions, in virtual time."""

    async def session() -> None:
        async with rig("webrtc") as one:
            await (list_actions if brief else live_through)(one.url, folder / "keys.log")

    with pytest.MonkeyPatch.context() as patch:
        recorded = listen(patch, cipher, plain_secret=plain_secret)
        virtual.run(session())
    recorded.keylog = (folder / "keys.log").read_text(encoding="ascii")
    return recorded


def needs(tool: str) -> pytest.MarkDecorator:
    """Skip a test where a tool of the trade is not installed."""
    missing = shutil.which(tool) is None
    return pytest.mark.skipif(missing, reason=f"{tool} is not installed")


def tshark(capture: Path, *options: str, fields: tuple[str, ...] = ()) -> list[list[str]]:
    """Return what tshark says of each packet, field by field."""
    wanted = [part for name in fields for part in ("-e", name)]
    command = ["tshark", "-r", str(capture), *options, "-T", "fields", *wanted]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 0, ran.stderr
    assert "Lua" not in ran.stderr, ran.stderr
    return [line.split("\t") for line in ran.stdout.splitlines()]


@contextmanager
def tcpdump_on_loopback(capture: Path) -> Iterator[None]:
    """Record UDP on the loopback interface while the block runs, to the last packet of it."""
    # The kernel has room for a few dozen of the longest packets, and drops what comes then: so we
    # ask for shorter ones, and for room for 32,000 of them: other tests talk on loopback, too.
    options = ["-i", "lo", "-s", "2048", "-B", "65536", "--immediate-mode", "-U", "-Z", "root"]
    command = ["tcpdump", *options, "-w", str(capture), "udp"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as one:
        assert one.stderr is not None
        try:
            if "listening" not in one.stderr.readline():
                pytest.skip("tcpdump may not listen here")
            yield
            _wait_for_a_marker(capture)
        finally:
            one.send_signal(signal.SIGINT)
        lost = re.search(r"(\d+) packets? dropped by kernel", one.stderr.read())
        assert lost is None or lost[1] == "0", f"the machine is too busy to record: {lost[0]}"


def _wait_for_a_marker(capture: Path) -> None:
    """Send a datagram and wait until it is in the file: all that was sent before is there too."""
    marker = secrets.token_bytes(32)
    with socket.socket(type=socket.SOCK_DGRAM) as here:
        here.bind(("127.0.0.1", 0))
        here.sendto(marker, here.getsockname())
    await_true(lambda: marker in capture.read_bytes(), "tcpdump wrote what was sent last")


def await_true(condition: Callable[[], bool], words: str, seconds: float = 20.0) -> None:
    """Look again and again until another process has done something, or fail."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, f"not within {seconds} s: {words}"
        time.sleep(0.01)


def read_datagrams(path: Path) -> list[Datagram]:
    """Return the UDP datagrams of a capture file."""
    decoder = PacketDecoder()
    with open_capture(path) as capture:
        return [
            datagram
            for records in capture
            for datagram in iter_datagrams(decoder.decode(records), decoder)
        ]
