"""rote capture live: record on an interface, then report what was recorded.

tcpdump or dumpcap records, and ends with this program, even if that is killed.
"""

import math
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from rote.cli.options import Json, Overwrite
from rote.errors import BadRequestError
from rote.platform import system

_MIN_S, _MAX_S = 0.1, 7 * 24 * 3600.0
_POLL_S = 0.2
_END_ATTEMPTS, _END_TIMEOUT_S = 5, 1.0
"""How often a recorder is asked to end before it is killed, and the timeout each time."""
_PR_SET_PDEATHSIG = 1
_BUFFER_KIB = 16 * 1024
_DROPPED = re.compile(r"([1-9]\d*) packets? dropped by kernel")


def live(
    interface: Annotated[
        str, typer.Option("-i", "--interface", metavar="IFACE", help="Interface to listen on.")
    ],
    file: Annotated[
        Path | None,
        typer.Option("-w", "--write", metavar="FILE", help="Save the packets to this file."),
    ] = None,
    keylog: Annotated[
        Path | None,
        typer.Option(metavar="KEYS", help="File with the session's secrets for decryption."),
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Duration; by default until Ctrl-C.")
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Record on an interface until Ctrl-C, then report the traffic."""
    from dataclasses import replace

    from rote.cli.capture import read_capture, show
    from rote.platform.atomic_file import check_new

    if seconds is not None and not _MIN_S <= seconds <= _MAX_S:
        raise BadRequestError(
            f"--seconds {seconds:g} is not a valid duration",
            f"Give {_MIN_S:g} to {_MAX_S:g}, or leave it out and end it with Ctrl-C.",
        )
    if overwrite and file is None:
        raise BadRequestError("--overwrite does nothing without --write", "Leave it out.")
    if file is not None:
        check_new(file, overwrite)
    if not system.can_interrupt_children():
        raise BadRequestError(
            "rote cannot record on an interface on this system",
            "Record with Wireshark, and read its file: rote capture FILE.",
        )
    with (
        _handling_signals(_raise_exit, *system.end_signals()),
        tempfile.TemporaryDirectory(prefix="rote-") as folder,
    ):
        path = file or Path(folder) / "live.pcap"
        if not as_json:
            end = "Ctrl-C ends it" if seconds is None else f"for {seconds:g} s"
            print(f"Listening on {interface}; {end}.", flush=True)
        dropped = record(interface, path, seconds)
        report = read_capture(path, keylog)
        if dropped:
            report.warnings.append(f"{dropped:,} packets came too fast for tcpdump and are missing")
        if file is None:
            report = replace(report, name=f"recorded on {interface}, not saved")
        show(report, as_json=as_json)


def record(interface: str, file: Path, seconds: float | None = None) -> int:
    """Run tcpdump or dumpcap until the time is over or a signal arrives.

    Return the number of packets that it reports as dropped. After SIGINT the file is read; SIGTERM
    and SIGHUP end the command.
    """
    received: list[int] = []
    with _handling_signals(
        lambda number, _: received.append(number), signal.SIGINT, *system.end_signals()
    ):
        process = _start_recorder(_build_recorder_command(interface, file))
        try:
            output = _wait_for_recorder(process, seconds, received)
        finally:
            process.kill()
    if received and received[0] != signal.SIGINT:
        _raise_exit(received[0])
    if process.returncode not in (0, -signal.SIGINT, -signal.SIGKILL) or not file.exists():
        raise _make_recording_error(interface, output)
    dropped = _DROPPED.search(output)
    return int(dropped[1]) if dropped else 0


def _make_recording_error(interface: str, output: str) -> BadRequestError:
    """Return the error for a recorder that failed, with the last line of its output."""
    lines = [line for line in output.splitlines() if line.strip()]
    if not lines:
        return BadRequestError(
            f"recording on {interface} had not begun when it was ended", "Record for longer."
        )
    sudo_hint = "" if system.is_root() else " and run it with sudo, if recording is not permitted"
    return BadRequestError(
        f"nothing could be recorded on {interface}: {lines[-1]}",
        f"Check that the interface exists (ip link){sudo_hint}.",
    )


def _start_recorder(command: list[str]) -> subprocess.Popen[str]:
    """Start a recorder that does not receive a terminal's Ctrl-C; `_wait_for_recorder` ends it."""
    set_death_signal = None
    if sys.platform == "linux":
        import ctypes

        prctl = ctypes.CDLL(None).prctl  # looked up here: the child must not import anything

        def set_death_signal() -> None:
            prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

    return subprocess.Popen(  # noqa: S603 # no shell: an interface and a file, and nothing else
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=set_death_signal,  # noqa: PLW1509 # one system call, even if we are killed later
    )


def _wait_for_recorder(
    process: subprocess.Popen[str], seconds: float | None, received: list[int]
) -> str:
    """Wait until a recorder ends, the time is over, or a signal arrives; return its output.

    `received` is the list to which signal handlers append.
    """
    end_s = time.monotonic() + (seconds or math.inf)
    while not received and (remaining_s := end_s - time.monotonic()) > 0:
        with suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=min(remaining_s, _POLL_S))[1]
    # tcpdump ignores a signal while it is starting, so it is sent again.
    for _ in range(_END_ATTEMPTS):
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=_END_TIMEOUT_S)[1]
    process.kill()
    return process.communicate()[1]


def _raise_exit(number: int, _frame: FrameType | None = None) -> None:
    """End the command because of a signal, after all clean-up."""
    raise typer.Exit(128 + number)


@contextmanager
def _handling_signals(
    handler: Callable[[int, FrameType | None], object], *numbers: signal.Signals
) -> Iterator[None]:
    """Handle signals with `handler` in the block; signals that were ignored stay ignored."""
    handled = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    former_handlers = {number: signal.signal(number, handler) for number in handled}
    try:
        yield
    finally:
        for number, former_handler in former_handlers.items():
            signal.signal(number, former_handler)


def _build_recorder_command(interface: str, file: Path) -> list[str]:
    """Return the command that records with tcpdump or, without it, with dumpcap."""
    if tcpdump := shutil.which("tcpdump"):
        # In immediate mode, few packets fit into the default buffer of 2 MiB, and others are lost.
        options = ["-i", interface, "-s", "0", "--immediate-mode", "-B", str(_BUFFER_KIB)]
        # Without -Z, tcpdump gives up its rights before it opens the file, which it then may not be
        # allowed to write.
        return [tcpdump, *options, "-Z", "root", "-w", str(file)]
    if dumpcap := shutil.which("dumpcap"):
        return [dumpcap, "-i", interface, "-q", "-w", str(file)]
    raise BadRequestError(
        "neither tcpdump nor dumpcap is installed, and one of them is needed",
        "Run: sudo apt install tcpdump",
    )
