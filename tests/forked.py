"""Start `rote`, or a script that uses it, as a process of its own without waiting for its imports.

`Rote` is a `subprocess.Popen` of `python -m rote ARGUMENTS`, `Script` of `python FILE`. On Linux
the process is forked from a server that has imported rote, which takes a tenth of the processor
time of a new interpreter. It still is a process like any other: a child of this one, with its own
streams, signals and exit. Of the environment variables that the interpreter itself reads, only
PYTHONIOENCODING and PYTHONDONTWRITEBYTECODE have an effect; tests of start-up use `subprocess`.
"""

import ctypes
import gc
import importlib
import inspect
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from precedence import take_precedence

if TYPE_CHECKING:
    import pytest

_PRELOADED = (
    "rote.cli.teach", "rote.cli.play", "rote.cli.simulate", "rote.cli.robot", "rote.cli.options",
    "rote.cli.output", "rote.cli.takes", "rote.cli.a1.simulate", "rote.sim.server",
    "rote.sim.webrtc", "rote.sim.dds", "rote.sim.quadruped.simulator", "rote.robot.message_robot",
    "rote.robot.quadruped.robot", "rote.transport.webrtc.stack", "rich.console", "typer._adapters",
)  # fmt: skip
_WEB = ("rote.cli.web", "rote.web.server.serve")
"""They take longer to import than all others: only a server that starts a web UI does it."""
_MAX_REQUEST = 1 << 17
"""Maximum size of a request in bytes: arguments and environment."""
_SET_PDEATHSIG, _SET_CHILD_SUBREAPER = 1, 36


class _Server:
    """The server of this process, started when it is first used."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._channel: socket.socket | None = None

    def start(self, arguments: list[str], cwd: str, env: dict[str, str], streams: list[int]) -> int:
        """Start `python ARGUMENTS` with these three streams; return its process id."""
        request = json.dumps([arguments, cwd, env, os.getpriority(os.PRIO_PROCESS, 0)]).encode()
        with self._lock:
            if self._channel is None:
                self._channel = self._start_server()
            # The process that forks the new one ends at once: its child becomes ours.
            _prctl(_SET_CHILD_SUBREAPER, 1)
            try:
                socket.send_fds(self._channel, [request], streams)
                return int(self._channel.recv(32))
            finally:
                _prctl(_SET_CHILD_SUBREAPER, 0)

    @staticmethod
    def _start_server() -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * _MAX_REQUEST)
        with theirs:
            # It ends when the other end of its channel is closed.
            server = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )
        server.returncode = 0  # never waited for
        return ours


_server = _Server()


class _Python(subprocess.Popen[Any]):
    def __init__(self, *arguments: str, **options: Any) -> None:
        super().__init__([sys.executable, *arguments], **options)

    if sys.platform == "linux":

        def _execute_child(self, *given: Any) -> None:
            parameters = inspect.signature(subprocess.Popen._execute_child).parameters  # type: ignore[attr-defined]
            options = dict(zip([*parameters][1:], given, strict=True))
            ours = ("p2cread", "c2pwrite", "errwrite")
            streams = [
                number if options[name] == -1 else options[name] for number, name in enumerate(ours)
            ]
            cwd = os.fspath(options["cwd"] or Path.cwd())
            env = {**(os.environ if options["env"] is None else options["env"])}
            self.pid = _server.start(options["args"][1:], cwd, env, streams)
            self._child_created = True
            pipes = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
            self._close_pipe_fds(*(options[name] for name in pipes))  # type: ignore[attr-defined]


class Rote(_Python):
    """A process that runs `rote` with these arguments; options are those of `subprocess.Popen`."""

    def __init__(self, *arguments: str, **options: Any) -> None:
        super().__init__("-m", "rote", *arguments, **options)


class Script(_Python):
    """A process that runs a file with Python, for which warnings are errors."""

    def __init__(self, path: Path, **options: Any) -> None:
        super().__init__("-Werror", str(path), **options)


def fork_batch_workers(monkeypatch: "pytest.MonkeyPatch") -> None:
    """Let `rote batch` in this process fork its workers from one that has imported what they need.

    Anywhere else each is a new interpreter, whose imports take longer than most tests.
    """
    import multiprocessing  # not in the server, which imports this file

    forked = multiprocessing.get_context("forkserver")
    forked.set_forkserver_preload(["rote.batch.task"])
    monkeypatch.setattr("rote.batch.run.multiprocessing.get_context", lambda _method: forked)


def _prctl(option: int, value: int) -> None:
    assert ctypes.CDLL(None).prctl(option, value) == 0


# ---- in the server ------------------------------------------------------------------------------


def _serve(channel: socket.socket) -> tuple[list[str], str, dict[str, str], int]:
    """Fork a process for each request, and return in it what it is to run."""
    while True:
        request, streams, _, _ = socket.recv_fds(channel, _MAX_REQUEST, 3)
        if not request:
            sys.exit()
        arguments, cwd, env, nice = json.loads(request)
        if arguments[:3] == ["-m", "rote", "web"]:
            _preload(_WEB)
        reader, writer = os.pipe()
        if (between := os.fork()) == 0:
            between = os.getpid()
            if pid := os.fork():
                os.write(writer, str(pid).encode())
                os._exit(0)
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
            os.closerange(3, max(channel.fileno(), reader, writer, *streams) + 1)
            channel.detach()
            while os.getppid() == between:
                time.sleep(0.0002)
            _prctl(_SET_PDEATHSIG, signal.SIGKILL)
            return arguments, cwd, env, nice
        os.waitpid(between, 0)
        channel.send(os.read(reader, 32))
        for number in (reader, writer, *streams):
            os.close(number)


def _preload(names: tuple[str, ...]) -> None:
    for name in names:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # so that forked processes need no copies of it


def _run() -> None:
    _preload(_PRELOADED)
    arguments, cwd, env, nice = _serve(socket.socket(fileno=int(sys.argv[1])))
    os.environ.clear()
    os.environ.update(env)
    sys.dont_write_bytecode = bool(env.get("PYTHONDONTWRITEBYTECODE"))
    os.chdir(cwd)
    os.setpriority(os.PRIO_PROCESS, 0, nice)  # that of the test, not of the server
    if arguments[:2] == ["-m", "rote"] and arguments[2:3] in (["sim"], ["agent"]):
        take_precedence()
    _open_streams()
    match arguments:
        case ["-m", module, *rest]:
            sys.path[0] = cwd
            sys.argv[1:] = rest
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        case ["-Werror", path]:
            warnings.simplefilter("error")
            sys.path[0] = str(Path(path).parent)
            sys.argv[:] = [path]
            runpy.run_path(path, run_name="__main__")


def _open_streams() -> None:
    """Open the standard streams again: those of the server are of another kind of file."""
    encoding, _, errors = os.environ.get("PYTHONIOENCODING", "").partition(":")
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        old = getattr(sys, name)
        buffering = 1 if name == "stderr" else -1  # lines, and what the kind of file asks for
        new = open(  # noqa: SIM115
            number, mode, buffering, encoding or old.encoding, errors or old.errors, closefd=False
        )
        setattr(sys, name, new)
        setattr(sys, f"__{name}__", new)


if __name__ == "__main__":
    _run()
