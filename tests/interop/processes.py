"""The robot and its clients, each in a process of its own, and the network they run in."""

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import ifaddr

from forked import Rote
from rig import free_domain

HERE = Path(__file__).parent
PEERS = Path(os.environ.get("ROTE_PEERS", HERE.parents[1] / ".peers"))
CURRENT, OLD = "2.2.0", "2.0.4"
OTHERS = ("2.1.2", "2.0.5", "2.0.0")
KEY = "0123456789abcdef0123456789abcdef"

# A process bound to die with this one (PR_SET_PDEATHSIG, which survives exec), so that nothing is
# left behind even where this process is killed.
LAUNCH = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
PATIENCE_S = 40.0

Line = dict[str, Any]


def why_no_peers() -> str:
    """Return why the other clients are not here; nothing where they are."""
    missing = PEERS / "missing"
    if (PEERS / ".ready").exists():
        return ""
    if missing.exists():
        return missing.read_text(encoding="utf-8").strip()
    return f"the other clients are not in {PEERS}; get them with: scripts/peers/clients"


# ---- networks -----------------------------------------------------------------------------------


class Network(NamedTuple):
    """Where processes run: what comes before their command line."""

    enter: tuple[str, ...] = ()

    @property
    def is_ours(self) -> bool:
        """Whether this process is in it as well."""
        return not self.enter


def has_address_beyond_loopback() -> bool:
    """Whether the other client finds an address to gather: it does not take 127.0.0.1."""
    addresses = (ip.ip for adapter in ifaddr.get_adapters() for ip in adapter.ips if ip.is_IPv4)
    return any(not str(address).startswith("127.") for address in addresses)


@contextmanager
def network_of_its_own() -> Iterator[Network | str]:
    """Make a network of loopback alone, with one address more; or say why that cannot be."""
    make = "ip link set lo up && ip address add 10.99.0.1/32 dev lo && echo made && read -r _"
    command = ["unshare", "--map-root-user", "--net", "sh", "-c", make]
    try:
        holder = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    except OSError as error:
        yield f"no network namespace can be made here: {error}"
        return
    with holder:  # whose standard input ends with this block, and so does the namespace
        assert holder.stdout is not None
        assert holder.stderr is not None
        if holder.stdout.readline() == "made\n":
            target = f"--target={holder.pid}"
            enter = ("nsenter", target, "--user", "--net", "--preserve-credentials")
            yield Network(enter)
        else:
            yield f"no network namespace can be made here: {holder.stderr.read().strip()}"


_taken = iter(range(1, 255))


def free_host() -> str:
    """Return an address nobody else uses: the ports of a robot are fixed, and tests run at once."""
    for last in _taken:
        pid = os.getpid()
        host = f"127.{(pid >> 8) % 254 + 1}.{pid % 256}.{last}"
        with socket.socket() as probe:
            if probe.connect_ex((host, 9991)) and probe.connect_ex((host, 8081)):
                return host
    raise AssertionError("no address is left")


# ---- processes ----------------------------------------------------------------------------------


class Speaker:
    """A Python process that says what happens in lines of JSON; it ends with the `with` block."""

    def __init__(
        self, network: Network, *arguments: str, environment: dict[str, str] | None = None
    ) -> None:
        self.lines: list[Line] = []
        self._more = threading.Condition()
        self._ended = False
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed in __exit__
        self.process = self._start(network, arguments, os.environ | (environment or {}))
        self._reader = threading.Thread(target=self._read, daemon=True)

    def _start(
        self, network: Network, arguments: tuple[str, ...], environment: dict[str, str]
    ) -> "subprocess.Popen[Any]":
        options: dict[str, Any] = {
            "stdin": subprocess.PIPE,
            "stdout": subprocess.PIPE,
            "stderr": self._errors,
            "env": environment,
            "text": True,
        }
        if network.is_ours and arguments[:2] == ("-m", "rote"):
            return Rote(*arguments[2:], **options)
        return subprocess.Popen(
            [*network.enter, sys.executable, "-c", LAUNCH, *arguments], **options
        )

    def __enter__(self) -> Self:
        self._reader.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.process.kill()
        self._reader.join()
        with self.process, self._errors:
            pass

    def _read(self) -> None:
        assert self.process.stdout is not None
        for text in self.process.stdout:
            with self._more:
                self.lines.append(json.loads(text))
                self._more.notify_all()
        with self._more:
            self._ended = True
            self._more.notify_all()

    @property
    def printed(self) -> str:
        """What it printed that is not JSON."""
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")

    def wait_for(self, what: Callable[[Line], bool], within_s: float = PATIENCE_S) -> Line:
        """Return the first line that `what` is true of, past or to come."""
        until = time.monotonic() + within_s
        seen = 0
        with self._more:
            while True:
                for line in self.lines[seen:]:
                    if what(line):
                        return line
                seen = len(self.lines)
                left = until - time.monotonic()
                if self._ended or left <= 0:
                    break
                self._more.wait(left)
        ending = "it ended" if self._ended else f"not within {within_s} s"
        raise AssertionError(f"{ending}; it said {self.lines} and printed:\n{self.printed}")

    def hear(self, event: str, within_s: float = PATIENCE_S) -> Line:
        """Return the first line about this event."""
        return self.wait_for(lambda line: line["event"] == event, within_s)

    def end(self) -> Line:
        """Return its last word."""
        return self.wait_for(lambda line: line["event"] in {"done", "failed"})

    def let_go(self) -> Line:
        """Ask a client that holds the robot to leave; return its last word."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.end()


@contextmanager
def robot_on_dds(use: str) -> Iterator[str]:
    """Run the simulated robot on DDS, in a domain that is free for this use; yield its URL."""
    domain = free_domain(use)
    where = ("--dds", "lo", "--domain", str(domain), "--store", ":memory:", "--json")
    with Speaker(Network(), "-m", "rote", "sim", *where) as speaker:
        speaker.hear("ready")
        yield f"dds://lo?domain={domain}"


class Robot(Speaker):
    """The simulated robot, as everybody runs it."""

    def __init__(self, network: Network, signalling: str, *options: str) -> None:
        self.network = network
        self.host = free_host()
        key = ("--key", KEY) if signalling == "3" else ()
        where = ("--webrtc", self.host, "--signalling", signalling, *key)
        command = ("-m", "rote", "sim", *where, "--serial", "", "--store", ":memory:", "--factory")
        super().__init__(network, *command, "--json", *options)

    def __enter__(self) -> Self:
        super().__enter__()
        self.hear("ready")
        return self

    def did(self) -> list[str]:
        """Return what the robot noticed, from the first to what it does now."""
        return [line["message"] for line in self.lines if line["event"] == "notice"]

    def wait_until_it(self, words: str, within_s: float = PATIENCE_S) -> None:
        """Wait until it notices this."""
        self.wait_for(lambda line: line.get("message") == words, within_s)

    # ---- its clients ----------------------------------------------------------------------------

    def peer(self, release: str, what: str, *options: str) -> Speaker:
        """Start a release of the other client."""
        path = os.pathsep.join(str(PEERS / part) for part in (release, "needs"))
        script = str(HERE / "peer_driver.py")
        environment = {"PYTHONPATH": path}
        return Speaker(self.network, script, what, self.host, *options, environment=environment)

    def own(self, what: str, *names: str) -> Speaker:
        """Start rote's own client."""
        return Speaker(self.network, str(HERE / "own_driver.py"), what, self.host, *names)
