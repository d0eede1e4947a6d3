"""Around captures: make one, take one, share one, show one in Wireshark; read the app's log."""

import shutil
import signal
import subprocess
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rote.cli.options import Json, print_json
from rote.errors import BadRequestError

if TYPE_CHECKING:
    from rote.capture.applog import AppLog


def applog(
    file: Annotated[Path, typer.Argument(help="The app's log, as text.")],
    utc_offset: Annotated[
        float, typer.Option(help="Hours by which the phone's clock was ahead of UTC.")
    ] = 0.0,
    as_json: Json = False,
) -> None:
    """Show what the phone app asked, what the robot answered, and what it was doing."""
    from rote.capture.applog import read

    try:
        year = datetime.fromtimestamp(file.stat().st_mtime, UTC).year
        with file.open(encoding="utf-8", errors="replace") as lines:
            log = read(lines, year=year, utc_offset_s=utc_offset * 3600)
    except OSError as error:
        raise BadRequestError(f"{file} cannot be read: {error.strerror}") from None
    if as_json:
        print_json(_document(log))
        return
    print(f"{log.lines} lines, {log.messages} messages, {log.unknown} lines without one")
    for at, words in _story(log):
        print(f"{at}  {words}")
    if not log.messages:
        print("Is this the app's log? No message of a data channel is in it.")


def _document(log: "AppLog") -> dict[str, object]:
    from rote.capture.timeline import iso

    return {
        "lines": log.lines,
        "messages": log.messages,
        "unknown": log.unknown,
        "pairs": [pair.document() for pair in log.pairs],
        "states": [{"time": iso(at), "state": state.words} for at, state in log.states],
        "faults": [
            {"time": iso(at), "present": present, "fault": fault.words}
            for at, present, fault in log.faults
        ],
        "timeline": [entry.document() for entry in log.timeline],
    }


def _story(log: "AppLog") -> list[tuple[str, str]]:
    from rote.capture.timeline import iso

    rows = [(pair.asked_ns, _asked(pair.name, pair.latency_s, pair.outcome)) for pair in log.pairs]
    rows += [(at, f"the arms: {state.words}") for at, state in log.states]
    rows += [
        (at, f"{'a fault' if present else 'no longer'}: {fault.words}")
        for at, present, fault in log.faults
    ]
    return [(iso(at), words) for at, words in sorted(rows)]


def _asked(name: str, latency_s: float | None, outcome: str) -> str:
    took = "" if latency_s is None else f" after {latency_s * 1000:.0f} ms"
    return f"{name}: {outcome}{took}"


def scrub(
    file: Annotated[Path, typer.Argument(help="A capture, pcap or pcapng.")],
    to: Annotated[Path, typer.Argument(metavar="COPY", help="Where to write the copy.")],
    as_json: Json = False,
) -> None:
    """Write a copy in which addresses, serials, tokens and names are replaced.

    The same name is replaced by the same other one throughout; what is encrypted stays. Look at the
    copy before you give it away: what unknown protocols say is not touched.
    """
    from rote.capture.scrub import scrub as clean

    done = clean(file, to)
    if as_json:
        print_json({name: getattr(done, name) for name in done.__slots__})
        return
    print(
        f"{done.packets} packets written to {to}; {done.words} words replaced, with all addresses."
    )
    if done.blanked:
        print(f"{done.blanked} parts that could not be looked into are zeros now.")
    for warning in done.warnings:
        print(f"Note: {warning}.")


def make(
    file: Annotated[Path, typer.Argument(help="Where to write it: .pcap or .pcapng.")],
    kind: Annotated[str, typer.Option(help="webrtc, frames or a1.")] = "webrtc",
    cipher: Annotated[str, typer.Option(help="chacha20, aes128 or aes256.")] = "chacha20",
    keylog: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the session's secrets there.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Another seed, other random numbers.")] = 0,
    as_json: Json = False,
) -> None:
    """Write a capture of a teaching session, to learn from and to test with."""
    from rote.capture.make import make as build

    count = build(file, kind, cipher=cipher, keylog=keylog, seed=seed)
    if as_json:
        print_json({"file": str(file), "packets": count})
        return
    keys = f" --keylog {keylog}" if keylog is not None else ""
    print(f"{count} packets of a made-up session are in {file}.\nTry: rote capture {file}{keys}")


def dissector(
    file: Annotated[
        Path | None, typer.Argument(help="Where to write it; without, it is printed.")
    ] = None,
) -> None:
    """Write a dissector for Wireshark: teaching frames, A1 frames, the data channel."""
    from rote.capture.appear import appearing
    from rote.capture.dissector import lua

    if file is None:
        print(lua(), end="")
        return
    with appearing(file) as out:
        out.write(lua().encode())
    print(f"Written. Try: wireshark -X lua_script:{file}")


def live(
    interface: Annotated[str, typer.Option("-i", "--interface", help="Where to listen.")],
    file: Annotated[
        Path | None, typer.Option("-w", "--write", metavar="FILE", help="Keep the packets there.")
    ] = None,
    keylog: Annotated[
        Path | None, typer.Option(metavar="KEYS", help="The secrets of what will be heard.")
    ] = None,
    seconds: Annotated[float | None, typer.Option(help="How long; else until Ctrl-C.")] = None,
    as_json: Json = False,
) -> None:
    """Listen on an interface until Ctrl-C, then say what was heard."""
    from rote.cli.capture import read_and_show

    with tempfile.TemporaryDirectory(prefix="rote-") as folder:
        kept = file or Path(folder) / "live.pcap"
        if not as_json:
            end = "Ctrl-C ends it" if seconds is None else f"for {seconds:g} s"
            print(f"Listening on {interface}; {end}.", flush=True)
        record(interface, kept, seconds)
        words = [str(kept)]
        words += ["--json"] if as_json else []
        words += [] if keylog is None else ["--keylog", str(keylog)]
        read_and_show(words)


def record(interface: str, file: Path, seconds: float | None = None) -> None:
    """Let tcpdump or dumpcap listen until it has been long enough, or somebody has had enough."""
    process = subprocess.Popen(  # noqa: S603 # no shell: an interface and a file, and nothing else
        _listener(interface, file), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    # Ctrl-C reaches the listener too; it ends by itself, and we wait until its file is complete.
    ignored = signal.signal(signal.SIGINT, signal.SIG_IGN) if seconds is None else None
    try:
        _, said = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        _, said = process.communicate()
    finally:
        if ignored is not None:
            signal.signal(signal.SIGINT, ignored)
        if process.poll() is None:
            process.kill()
    if process.returncode not in (0, -signal.SIGINT) or not file.exists():
        lines = [line for line in said.splitlines() if line.strip()] or ["it said nothing"]
        raise BadRequestError(
            f"nothing could be recorded on {interface}: {lines[-1]}",
            "See that the interface exists (ip link), and that you may listen: run it with sudo.",
        )


def _listener(interface: str, file: Path) -> list[str]:
    if tcpdump := shutil.which("tcpdump"):
        # Without -Z it gives up its rights before it opens the file, where it may not be written.
        return [
            tcpdump,
            "-i",
            interface,
            "-s",
            "0",
            "--immediate-mode",
            "-Z",
            "root",
            "-w",
            str(file),
        ]
    if dumpcap := shutil.which("dumpcap"):
        return [dumpcap, "-i", interface, "-q", "-w", str(file)]
    raise BadRequestError(
        "neither tcpdump nor dumpcap is installed, and one of them does the listening",
        "Run: sudo apt install tcpdump",
    )
