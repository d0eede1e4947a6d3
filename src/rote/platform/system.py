"""What the operating system offers: locks of files, signals, rights, addresses, child processes.

Linux, macOS and Windows differ here. No other module asks which of them this is, and nothing is
taken for granted when rote is imported: what is missing is found out when it is needed, and then
replaced or refused in words.
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
"""Which byte of a file is locked on Windows, where nobody else can read it then: one far beyond the
end of what is recorded, and below 2 GiB, which the call needs."""
_GET_ADDRESS = {"linux": 0x8915, "darwin": 0xC020_6921}  # SIOCGIFADDR
_END_SIGNALS = ("SIGTERM", "SIGHUP", "SIGBREAK")
_NO_FILE_NAME = frozenset('<>:"/\\|?*')
_DEVICES = frozenset(
    ("con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10)))
)


def _module(name: str) -> Any:
    """Return a module of the standard library; None if this system's Python has none such."""
    try:
        return import_module(name)
    except ImportError:
        return None


# ---- files --------------------------------------------------------------------------------------


def lock(file: BinaryIO, *, wait: bool = False) -> bool:
    """Lock an open file for this process until it is closed; return False if another one has it.

    With `wait` this returns when the other one has closed it. A system without locks of files lets
    everybody in.
    """
    if (posix := _module("fcntl")) is not None:
        try:
            posix.flock(file.fileno(), posix.LOCK_EX | (0 if wait else posix.LOCK_NB))
        except BlockingIOError:
            return False
        return True
    windows = _module("msvcrt")
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
    """Put the names in a folder on the disk, so that they survive; Windows does it itself."""
    if os.name != "posix":
        return
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def renames_open_files() -> bool:
    """Whether a file can get another name while it is open."""
    return os.name == "posix"


def has_file_rights() -> bool:
    """Whether the mode of a file says who may read it."""
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
    """Call `act` in the running loop when a signal comes; return a function that ends this.

    Only in the main thread. That function brings back what the signal did before.
    """
    former = signal.getsignal(number)

    def heard(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(act)

    try:
        loop.add_signal_handler(number, act)
    except NotImplementedError:  # the loops of Windows, which are woken by any signal
        signal.signal(number, heard)

    def undo() -> None:
        with suppress(NotImplementedError):
            loop.remove_signal_handler(number)
        signal.signal(number, signal.SIG_DFL if former is None else former)

    return undo


def ends_children_softly() -> bool:
    """Whether a child process can be told to end, by the signal of Ctrl-C."""
    return os.name == "posix" and hasattr(signal, "SIGKILL")


def may_do_all() -> bool:
    """Whether this is root, who may listen on an interface; where nobody is, it is not known."""
    return not hasattr(os, "geteuid") or os.geteuid() == 0


# ---- the network --------------------------------------------------------------------------------


def interface_address(name: str) -> str | None:
    """Return the IPv4 address of an interface; "" if it has none, None if the system cannot be
    asked.
    """
    posix, request = _module("fcntl"), _GET_ADDRESS.get(sys.platform)
    if posix is None or request is None:
        return None
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        asked = struct.pack("256s", name.encode()[:15])
        try:
            answer = posix.ioctl(probe.fileno(), request, asked)
        except OSError:
            return ""
    return socket.inet_ntoa(answer[20:24])


# ---- processes ----------------------------------------------------------------------------------


def hands_sockets_on() -> bool:
    """Whether a child process can be given open sockets."""
    return os.name == "posix"


# ---- this process -------------------------------------------------------------------------------


def give_way(steps: int) -> None:
    """Let this process give way to others, where the system can."""
    if hasattr(os, "nice"):
        os.nice(steps)


def limit_memory(most_bytes: int) -> None:
    """Limit the address space of this process, and leave no core file, where the system can."""
    if (posix := _module("resource")) is not None:
        with suppress(OSError, ValueError):
            posix.setrlimit(posix.RLIMIT_AS, (most_bytes, most_bytes))
            posix.setrlimit(posix.RLIMIT_CORE, (0, 0))


def limit_cpu(most_s: float) -> None:
    """End this process once it has used `most_s` seconds more, where the system can."""
    if (posix := _module("resource")) is not None:
        with suppress(OSError, ValueError):
            limit_s = int(time.process_time() + most_s) + 2
            posix.setrlimit(posix.RLIMIT_CPU, (limit_s, posix.RLIM_INFINITY))
