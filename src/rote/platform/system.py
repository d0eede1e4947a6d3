"""Differences between operating systems: file locks, signals, permissions, addresses, processes.

No other module checks which operating system this is. Importing this module works on all of them: a
missing feature is detected on first use, and then replaced or refused.
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

_LOCK_RETRY_S = 0.05
_LOCKED_BYTE = 0x7FFF_0000
"""Offset of the byte that is locked on Windows, where others cannot read a locked byte: far
beyond the end of any recording, and below 2 GiB, the limit of the call."""
_GET_ADDRESS = {"linux": 0x8915, "darwin": 0xC020_6921}
"""The number of the request SIOCGIFADDR, which reads the address of an interface."""
_END_SIGNALS = ("SIGTERM", "SIGHUP", "SIGBREAK")
_FORBIDDEN_CHARACTERS = frozenset('<>:"/\\|?*')
_DEVICE_NAMES = frozenset(
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

    With `wait` this blocks until the lock is free. On a system without file locks this always
    succeeds.
    """
    if (posix := _import_optional("fcntl")) is not None:
        flags = posix.LOCK_EX if wait else posix.LOCK_EX | posix.LOCK_NB
        try:
            posix.flock(file.fileno(), flags)
        except BlockingIOError:
            return False
        return True
    windows = _import_optional("msvcrt")
    while windows is not None and not _lock_byte(windows, file.fileno()):
        if not wait:
            return False
        time.sleep(_LOCK_RETRY_S)
    return True


def _lock_byte(windows: Any, descriptor: int) -> bool:
    """Lock one byte of an open file; return False if it is locked already.

    `windows` is the module msvcrt, which locks at the current position: restore that afterwards.
    """
    position = os.lseek(descriptor, 0, os.SEEK_CUR)
    try:
        os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
        windows.locking(descriptor, windows.LK_NBLCK, 1)
    except OSError:
        return False
    finally:
        os.lseek(descriptor, position, os.SEEK_SET)
    return True


def sync_folder(folder: Path) -> None:
    """Flush directory entries to disk; Windows does it itself."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def can_rename_open_files() -> bool:
    """Whether an open file can be renamed."""
    return os.name == "posix"


def has_file_modes() -> bool:
    """Whether file modes control read access."""
    return os.name == "posix"


def file_name_problem(name: str, *, windows: bool = os.name == "nt") -> str:
    """Return why a file name is invalid on this system; "" if it is valid."""
    if not windows:
        return "it contains a slash" if "/" in name or "\\" in name else ""
    if _FORBIDDEN_CHARACTERS & {*name}:
        return f"Windows forbids {' '.join(sorted(_FORBIDDEN_CHARACTERS))} in file names"
    if name.endswith((".", " ")) or name.partition(".")[0].casefold() in _DEVICE_NAMES:
        return "Windows reserves this file name"
    return ""


# ---- signals ------------------------------------------------------------------------------------


def end_signals() -> tuple[signal.Signals, ...]:
    """Return the signals that request the end of a program, except that of Ctrl-C.

    SIGHUP means a closed terminal; on Windows SIGBREAK does.
    """
    found = (getattr(signal, name, None) for name in _END_SIGNALS)
    return tuple(signal.Signals(number) for number in found if number is not None)


def on_signal(
    loop: "asyncio.AbstractEventLoop", number: int, handler: Callable[[], None]
) -> Callable[[], None]:
    """Call `handler` in the loop on the signal `number`; return a function that restores the old
    handler. Call both in the main thread.
    """
    old_handler = signal.getsignal(number)

    def wake_loop(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(handler)

    try:
        loop.add_signal_handler(number, handler)
    except NotImplementedError:  # the event loops of Windows
        signal.signal(number, wake_loop)

    def restore_handler() -> None:
        with suppress(NotImplementedError):
            loop.remove_signal_handler(number)
        # None: the old handler was not set by Python.
        signal.signal(number, signal.SIG_DFL if old_handler is None else old_handler)

    return restore_handler


def can_interrupt_children() -> bool:
    """Whether a child process can be interrupted with the signal of Ctrl-C."""
    return os.name == "posix" and hasattr(signal, "SIGKILL")


def is_root() -> bool:
    """Whether this process is root; True on systems without user ids."""
    return not hasattr(os, "geteuid") or os.geteuid() == 0


# ---- the network --------------------------------------------------------------------------------


def read_interface_address(name: str) -> str | None:
    """Return an interface's IPv4 address; "" if it has none, None if it cannot be read here."""
    posix, request = _import_optional("fcntl"), _GET_ADDRESS.get(sys.platform)
    if posix is None or request is None:
        return None
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        # A `struct ifreq`: the name in 16 bytes with a closing zero, then the address; padded.
        request_bytes = struct.pack("256s", name.encode()[:15])
        try:
            answer = posix.ioctl(probe.fileno(), request, request_bytes)
        except OSError:
            return ""
    return socket.inet_ntoa(answer[20:24])  # after the name, the address family and the port


def free_port(host: str = "127.0.0.1") -> int:
    """Return a free TCP port."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port


# ---- processes ----------------------------------------------------------------------------------


def can_pass_sockets() -> bool:
    """Whether a child process can be given open sockets."""
    return os.name == "posix"


_SESSION_ATTEMPTS = 5
_SESSION_ATTEMPTS_EVERY_S = 0.11

# ---- this process -------------------------------------------------------------------------------


def lower_priority(steps: int) -> None:
    """Lower the scheduling priority of this process, if supported.

    Linux may share the processors among sessions first. The session that this process has begun, if
    any, gets the same niceness; otherwise its processes would get half of the processor time.
    """
    if not hasattr(os, "nice"):
        return
    niceness = os.nice(steps)
    if os.getsid(0) == os.getpid():
        with suppress(OSError):
            _lower_session(niceness)


def _lower_session(niceness: int) -> None:
    """Give the session of this process a niceness. Linux refuses two such requests within 0.1 s."""
    for _ in range(_SESSION_ATTEMPTS):
        try:
            Path("/proc/self/autogroup").write_text(str(niceness), encoding="ascii")
        except BlockingIOError:
            time.sleep(_SESSION_ATTEMPTS_EVERY_S)
        else:
            return


def limit_memory(max_bytes: int) -> None:
    """Limit the address space of this process and disable core files, if the system supports it."""
    if (posix := _import_optional("resource")) is not None:
        with suppress(OSError, ValueError):
            posix.setrlimit(posix.RLIMIT_AS, (max_bytes, max_bytes))
            posix.setrlimit(posix.RLIMIT_CORE, (0, 0))


def limit_cpu(max_s: float) -> None:
    """End this process after `max_s` more seconds of CPU time, if the system supports it."""
    if (posix := _import_optional("resource")) is not None:
        with suppress(OSError, ValueError):
            # The limit is in whole seconds of the process's total CPU time; 2 s are a margin.
            limit_s = int(time.process_time() + max_s) + 2
            posix.setrlimit(posix.RLIMIT_CPU, (limit_s, posix.RLIM_INFINITY))
