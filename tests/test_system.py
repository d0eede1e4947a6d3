"""What rote does on systems that offer less than Linux."""

import asyncio
import fcntl
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from rote.errors import BadRequestError
from rote.motion.files import disk
from rote.motion.files.library import Library, check_name
from rote.platform import check, realtime, system
from rote.platform.readable import on_readable


def _locking(number: int, mode: int, count: int) -> None:
    """Lock as Windows does: an error where another handle has it."""
    assert (mode, count) == (2, 1)
    assert os.lseek(number, 0, os.SEEK_CUR) > 2**30  # not where anybody reads
    fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.fixture(params=["linux", "windows", "neither"])
def locks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each way of locking files, by the modules that a system has."""
    if request.param != "linux":
        monkeypatch.setitem(sys.modules, "fcntl", None)
    if request.param == "windows":
        windows = SimpleNamespace(locking=_locking, LK_NBLCK=2)
        monkeypatch.setitem(sys.modules, "msvcrt", windows)
    return str(request.param)


def test_one_at_a_time_has_a_lock_and_the_file_stays_where_it_was_read(
    locks: str, tmp_path: Path
) -> None:
    path = tmp_path / "take.part"
    path.write_bytes(b"0123456789")
    with path.open("r+b") as first, path.open("r+b") as second:
        assert first.read(4) == b"0123"
        assert system.lock(first)
        assert first.read(2) == b"45"
        assert system.lock(second) is (locks == "neither")
    with path.open("rb") as third:
        assert system.lock(third)
    assert path.read_bytes() == b"0123456789"


def test_who_waits_for_a_lock_gets_it_when_the_other_has_closed(locks: str, tmp_path: Path) -> None:
    if locks == "neither":
        return
    order: list[str] = []
    waiting = threading.Event()

    def wait() -> None:
        with (tmp_path / ".lock").open("wb") as second:
            waiting.set()
            system.lock(second, wait=True)
            order.append("second")

    with (tmp_path / ".lock").open("wb") as first:
        system.lock(first)
        other = threading.Thread(target=wait)
        other.start()
        waiting.wait(5)
        order.append("first")
    other.join(5)
    assert order == ["first", "second"]


@pytest.mark.usefixtures("locks")
def test_a_library_works_on_every_kind_of_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(system, "can_rename_open_files", lambda: False)
    library = Library(tmp_path)
    with library.record("wave", ("left_elbow_joint",)) as writer:
        for number in range(3):
            writer.add(number / 10, [0.1])
    assert library.load("wave").duration_s == pytest.approx(0.2)
    assert library.unfinished() == ()
    with disk.lock_folder(tmp_path):
        assert (tmp_path / ".lock").exists()


def test_the_signals_that_ask_to_end_are_those_the_system_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert system.end_signals() == (signal.SIGTERM, signal.SIGHUP)
    monkeypatch.delattr(signal, "SIGHUP")
    assert system.end_signals() == (signal.SIGTERM,)


class PoorLoop(asyncio.SelectorEventLoop):
    """A loop as Windows has it."""

    def add_signal_handler(self, *_: object) -> None:
        raise NotImplementedError

    def remove_signal_handler(self, _: int) -> bool:
        raise NotImplementedError

    def add_reader(self, *_: object) -> None:
        raise NotImplementedError


@pytest.mark.parametrize("loop", [asyncio.SelectorEventLoop, PoorLoop])
def test_a_signal_is_handled_in_the_loop_and_left_as_it_was(
    loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    before = signal.getsignal(signal.SIGTERM)

    async def main() -> None:
        heard = asyncio.Event()
        undo = system.on_signal(asyncio.get_running_loop(), signal.SIGTERM, heard.set)
        signal.raise_signal(signal.SIGTERM)
        await asyncio.wait_for(heard.wait(), 5)
        undo()

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(main())
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Two ends of a line of datagrams."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    ours.setblocking(False)
    with ours, theirs:
        yield ours, theirs


@pytest.mark.parametrize("loop", [asyncio.SelectorEventLoop, PoorLoop])
def test_a_socket_is_read_in_the_loop_until_that_is_ended(
    loop: Callable[[], asyncio.AbstractEventLoop], pair: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = pair

    async def main() -> None:
        come: asyncio.Queue[bytes] = asyncio.Queue()
        here = threading.current_thread()

        def read() -> None:
            assert threading.current_thread() is here
            come.put_nowait(ours.recv(64))

        end = on_readable(asyncio.get_running_loop(), ours, read)
        for message in (b"one", b"two", b"three"):
            theirs.send(message)
            assert await asyncio.wait_for(come.get(), 5) == message
        end()
        theirs.send(b"four")
        await asyncio.sleep(0.05)
        assert come.empty()

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(main())
    until = time.monotonic() + 5
    while "rote socket" in {each.name for each in threading.enumerate()}:
        assert time.monotonic() < until, "the thread did not end"
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("wave", ""),
        ("a wave, 2", ""),
        ("wave: left", "Windows forbids"),
        ('say "hi"', "Windows forbids"),
        ("what?", "Windows forbids"),
        ("con", "reserves this file name"),
        ("COM1.old", "reserves this file name"),
        ("wave.", "reserves this file name"),
        ("console", ""),
    ],
)
def test_names_that_windows_does_not_allow_are_refused_there_alone(name: str, problem: str) -> None:
    assert problem in system.file_name_problem(name, windows=True)
    assert bool(problem) == bool(system.file_name_problem(name, windows=True))
    assert system.file_name_problem(name, windows=False) == ""


@pytest.mark.parametrize("name", ["a/b", "a\\b", ".hidden", "trash"])
def test_no_name_leads_out_of_the_library(name: str) -> None:
    with pytest.raises(BadRequestError, match="cannot be used"):
        check_name(name)


def test_a_cpu_cannot_be_chosen_where_the_system_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity")
    with pytest.raises(BadRequestError, match="cannot pin a thread"):
        realtime.check_cpu(0)


@pytest.mark.slow
def test_addresses_are_known_by_the_package_where_the_system_cannot_be_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("ifaddr")
    asked = {one.name: one.address for one in check.list_interfaces()}
    monkeypatch.setitem(sys.modules, "fcntl", None)
    assert system.read_interface_address("lo") is None
    assert check.find_address("lo") == asked["lo"] == "127.0.0.1"
    monkeypatch.setitem(sys.modules, "ifaddr", None)
    assert check.find_address("lo") == ""
