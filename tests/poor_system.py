"""Run as a program: rote's whole command line on a system that has less than Linux.

Before rote is imported, this takes away what macOS or Windows does not have: modules, signals,
calls, kinds of sockets, and what an event loop cannot do there. Then commands run in this process,
one after the other, and what became of each is printed as JSON.
"""

import asyncio
import contextlib
import io
import json
import os
import signal
import socket
import subprocess  # noqa: F401 - looks for what is taken away when it is imported
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

MODULES = ("fcntl", "resource", "termios", "tty", "pty", "grp", "uvloop")
SIGNALS = ("SIGHUP", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGCHLD", "SIGQUIT", "SIGPIPE", "SIGWINCH")
CALLS = (
    "nice", "geteuid", "getuid", "getgid", "fork", "setsid", "killpg", "getpgid", "mkfifo", "pread",
    "pwrite", "sched_getaffinity", "sched_setaffinity", "sched_setscheduler", "sched_param",
    "getloadavg", "statvfs", "fchmod", "fchown", "chown",
)  # fmt: skip
SOCKETS = (
    "SOCK_SEQPACKET", "SOCK_NONBLOCK", "SOCK_CLOEXEC", "SO_REUSEPORT", "MSG_DONTWAIT",
    "IP_RECVERR", "SO_BINDTODEVICE",
)  # fmt: skip
LOOP = ("add_signal_handler", "remove_signal_handler", "add_reader", "remove_reader", "add_writer")


def take_away() -> None:
    """Take the names away, and put a Windows lock in the place of Linux's."""
    import fcntl

    flock, both = fcntl.flock, fcntl.LOCK_EX | fcntl.LOCK_NB
    windows: Any = ModuleType("msvcrt")
    windows.LK_NBLCK = 2
    windows.locking = lambda number, mode, count: flock(number, both)
    absent: Any = sys.modules
    for name in MODULES:
        absent[name] = None
    absent["msvcrt"] = windows
    for module, names in ((signal, SIGNALS), (os, CALLS), (socket, SOCKETS)):
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    if hasattr(os, "process_cpu_count"):  # from Python 3.13 on, which asks sched_getaffinity
        os.process_cpu_count = os.cpu_count

    def cannot(*_: object) -> None:
        raise NotImplementedError

    for name in LOOP:
        setattr(asyncio.SelectorEventLoop, name, cannot)


class Outcome:
    """What became of a command."""

    def __init__(self, arguments: list[str]) -> None:
        self.arguments = arguments
        self.code: object = None
        self.out = self.err = self.trace = ""


def run(arguments: list[str], aside: Callable[[io.StringIO], None] | None = None) -> Outcome:
    """Run one command in this process; `aside` is another thread, which sees what it prints."""
    from rote.cli import main

    outcome, out, err = Outcome(arguments), io.StringIO(), io.StringIO()
    if aside is not None:
        threading.Thread(target=aside, args=(out,), daemon=True).start()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            outcome.code = main(arguments)
        except BaseException:
            outcome.trace = traceback.format_exc()
    outcome.out, outcome.err = out.getvalue(), err.getvalue()
    return outcome


def ended_when_ready(out: io.StringIO) -> None:
    """Ask the program to end as soon as its server is ready."""
    until = time.monotonic() + 60
    while '"ready"' not in out.getvalue() and time.monotonic() < until:
        time.sleep(0.02)
    signal.raise_signal(signal.SIGTERM)


def every_help() -> list[list[str]]:
    """Return the call for the help of every command, and of every group of commands."""
    from rote.cli import commands

    found: list[list[str]] = []

    def walk(command: Any, names: list[str]) -> None:
        found.append([*names, "--help"])
        for name, inner in getattr(command, "commands", {}).items():
            walk(inner, [*names, name])

    walk(commands(), [])
    return found


def main() -> None:
    """Run everything and print what became of it."""
    take_away()
    import virtual
    from rote.platform import loop

    here = Path.cwd()
    commands: list[list[str]] = [
        *every_help(),
        ["--version"],
        ["robots", "--json"],
        ["doctor", "--json"],
        ["teach", "hello", "--hand", "wave", "--seconds", "0.5", "--json"],
        ["list", "--json"],
        ["play", "hello", "--speed", "3", "--json"],
        ["takes", "list", "--json"],
        ["takes", "export", "hello", str(here / "hello.csv")],
        ["motion", "trim", str(here / "hello.csv"), str(here / "cut.csv"), "--auto"],
        ["capture", "make", str(here / "made.pcap")],
        ["capture", str(here / "made.pcap"), "--json"],
        ["capture", "live", "--interface", "lo", "--seconds", "0.2", "--json"],
        ["demo", "--out", str(here / "demo")],
    ]
    in_real_time = [  # a thread waits for a socket
        ["a1", "status", "--robot", "sim://a1", "--json"],
        ["discover", "--seconds", "0.1", "--json"],
    ]
    served = [
        ["sim", "--udp", "127.0.0.1:0", "--store", ":memory:", "--json"],
        ["sim", "--a1", "127.0.0.1:0", "--json"],
        ["web", "--no-browser", "--port", "0", "--json"],
    ]
    real, loop.new_loop = loop.new_loop, virtual.VirtualLoop
    outcomes = [run(arguments) for arguments in commands]
    loop.new_loop = real
    outcomes += [run(arguments) for arguments in in_real_time]
    outcomes += [run(arguments, ended_when_ready) for arguments in served]
    json.dump([vars(one) for one in outcomes], sys.stdout)


if __name__ == "__main__":
    main()
