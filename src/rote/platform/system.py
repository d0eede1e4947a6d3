"""Differences between operating systems: file locks, signals, permissions, addresses, processes.

No other module asks which operating system this is. Importing this module needs nothing that one
of them lacks: a missing feature is noticed on first use, and then replaced or refused.
"""

import os
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    import asyncio

_RETRY_S = 0.05
_LOCKED_BYTE = 0x7FFF_0000
"""Offset of the byte that is locked on Windows, where a locked byte is unreadable for others: far
beyond the end of any recording, and below 2 GiB, the limit of the call."""
_GET_ADDRESS = {"linux": 0x8915, "darwin": 0xC020_6921}  # SIOCGIFADDR
_END_SIGNALS = ("SIGTERM", "SIGHUP", "SIGBREAK")
_NO_FILE_NAME = frozenset('<>:"/\\|?*')
_DEVICES = frozenset(
    ("con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10)))
)


def _import_optional(name: str) -> Any:
    """Return a module of the standard library, or None if this system lacks it."""
    try:
        return import_module(name)
    except ImportError:
        return None


# ---- files --------------------------------------------------------------------------------------


def lock(file: BinaryIO, *, wait: bool = False) -> bool:
    """Lock an open file until it is closed; return False if another process holds the lock.

    With `wait` this blocks until the lock is free. On a system without file
    locks this always succeeds.
    """
    if (posix := _import_optional("fcntl")) is not None:
        try:
            posix.flock(file.fileno(), posix.LOCK_EX | (0 if wait else posix.LOCK_NB))
        except BlockingIOError:
            return False
        return True
    windows = _import_optional("msvcrt")
    while windows is not None and not _lock_byte(windows, file.fileno()):
        if not wait:
            return False
        time.sleep(_RETRY_S)
    return True


def _lock_byte(windows: Any, number: int) -> bool:
    position = os.lseek(number, 0, os.SEEK_CUR)
    try:
        os.lseek(number, _LOCKED_BYTE, os.SEEK_SET)
        windows.locking(number, windows.LK_NBLCK, 1)
    except OSError:
        return False
    finally:
        os.lseek(number, position, os.SEEK_SET)
    return True


def sync_folder(folder: Path) -> None:
    """Flush directory entries to disk; Windows does it itself."""
    if os.name != "posix":
        return
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def renames_open_files() -> bool:
    """Whether an open file can be renamed."""
    return os.name == "posix"


def has_file_modes() -> bool:
    """Whether file modes control read access."""
    return os.name == "posix"


def file_name_problem(name: str, *, windows: bool = os.name == "nt") -> str:
    """Return why no file here can have this name; "" if one can. A slash is never allowed."""
    if not windows:
        return "it has a slash" if "/" in name or "\\" in name else ""
    if _NO_FILE_NAME & {*name}:
        return f"Windows allows none of {' '.join(sorted(_NO_FILE_NAME))} in the name of a file"
    if name.endswith((".", " ")) or name.partition(".")[0].casefold() in _DEVICES:
        return "Windows has no file of this name"
    return ""


# ---- signals ------------------------------------------------------------------------------------


def end_signals() -> tuple[signal.Signals, ...]:
    """Return the signals that ask a program to end, besides that of Ctrl-C.

    SIGHUP is a closed terminal; on Windows that is SIGBREAK.
    """
    found = (getattr(signal, name, None) for name in _END_SIGNALS)
    return tuple(signal.Signals(number) for number in found if number is not None)


def on_signal(
    loop: "asyncio.AbstractEventLoop", number: int, act: Callable[[], None]
) -> Callable[[], None]:
    """Call `act` in the running loop on a signal; return a function that restores the old handler.

    Only in the main thread.
    """
    former = signal.getsignal(number)

    def wake_loop(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(act)

    try:
        loop.add_signal_handler(number, act)
    except NotImplementedError:  # the loops of Windows, which are woken by any signal
        signal.signal(number, wake_loop)

    def undo() -> None:
        with suppress(NotImplementedError):
            loop.remove_signal_handler(number)
        signal.signal(number, signal.SIG_DFL if former is None else former)

    return undo


def ends_children_softly() -> bool:
    """Whether a child process can be interrupted with the signal of Ctrl-C."""
    return os.name == "posix" and hasattr(signal, "SIGKILL")


def is_root() -> bool:
    """Whether this process is root; True on systems without user ids."""
    return not hasattr(os, "geteuid") or os.geteuid() == 0


# ---- the network --------------------------------------------------------------------------------


def interface_address(name: str) -> str | None:
    """Return an interface's IPv4 address: "" if it has none, None if the platform cannot tell."""
    posix, request = _import_optional("fcntl"), _GET_ADDRESS.get(sys.platform)
    if posix is None or request is None:
        return None
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        request_bytes = struct.pack("256s", name.encode()[:15])
        try:
            answer = posix.ioctl(probe.fileno(), request, request_bytes)
        except OSError:
            return ""
    return socket.inet_ntoa(answer[20:24])


def free_port(host: str = "127.0.0.1") -> int:
    """Return a free TCP port."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port


# ---- processes ----------------------------------------------------------------------------------


def hands_sockets_on() -> bool:
    """Whether a child process can be given open sockets."""
    return os.name == "posix"


# ---- this process -------------------------------------------------------------------------------


def lower_priority(steps: int) -> None:
    """Lower the scheduling priority of this process, if supported."""
    if hasattr(os, "nice"):
        os.nice(steps)


def limit_memory(most_bytes: int) -> None:
    """Limit the address space of this process, and leave no core file, where the system can."""
    if (posix := _import_optional("resource")) is not None:
        with suppress(OSError, ValueError):
            posix.setrlimit(posix.RLIMIT_AS, (most_bytes, most_bytes))
            posix.setrlimit(posix.RLIMIT_CORE, (0, 0))


def limit_cpu(most_s: float) -> None:
    """End this process once it has used `most_s` seconds more, where the system can."""
    if (posix := _import_optional("resource")) is not None:
        with suppress(OSError, ValueError):
            limit_s = int(time.process_time() + most_s) + 2
            posix.setrlimit(posix.RLIMIT_CPU, (limit_s, posix.RLIM_INFINITY))
