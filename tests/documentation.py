"""The code in the documentation, and a reader who runs it line by line.

A comment that nobody sees stands right above a block and says what the reader cannot know:

    <!-- not run: REASON -->                    this block is not run
    <!-- line not run: BEGINNING: REASON -->    nor the lines that begin so
    <!-- run first: rote capture make x.pcap --> what gives the block its files
    <!-- run with: rote sim --webrtc 127.0.0.1 --> the robot of this block, simulated
    <!-- with file: tests/data/x.log as app.log --> a file that a reader would have
    <!-- within: async with connect() as robot: --> the block is a part of this
    <!-- arguments: x.pcap -->                  what the script is called with
    <!-- raises: DecodeError -->                how the block ends

Addresses of robots are those of simulated ones here, on a loopback address of our own. Where the
robot is in the reader's process, time is virtual.
"""

import asyncio
import multiprocessing
import os
import pty
import re
import shlex
import shutil
import signal
import sys
import tempfile
import textwrap
import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import virtual
from rig import free_domain
from rote.cli import main
from rote.errors import LinkError, ProtectionError, TimeLimitError

ROOT = Path(__file__).parents[1]
PAGES = (
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "protocol").glob("*.md")),
)
RUN = ("python", "sh")
"""Blocks in these languages are run."""
SHOWN = ("text", "mermaid", "toml", "json")
"""Blocks in these are to look at: output, drawings, a piece of a file."""
WAIT_S = 60.0
PERSON_S = 1.0
"""How long somebody moves soft arms here."""
TOO_BUSY = (7, 8)
"""A protection of an A1 tripped, or its walk took too long: so it is where the computer is busy."""
STARTED_S = 3.0
"""After this, a command that says nothing has begun."""
_BLOCK = re.compile(r"((?:^<!--[^\n]*-->\n)*)^```([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_NOTE = re.compile(r"<!-- ([a-z ]+): (.*) -->")
_ELSEWHERE = re.compile(r"^stage |(udp|webrtc|dds|a1)://|A1Simulator|rote\.sync|^discover")
_PRELOADED = (
    "rote.cli", "rote.transport.webrtc.stack", "rote.sim.quadruped.simulator", "rote.sim.dds",
    "rote.sim.server", "rote.sim.webrtc", "rote.web.server.serve", "rote.robot.g1",
    "rote.robot.quadruped.robot", "documentation",
)  # fmt: skip
_BEGUN = "(a program has begun)"
_WIRES = ("--udp", "--webrtc", "--dds", "--a1")


@dataclass(frozen=True)
class Block:
    """One block of code: where it stands, what it says, and the notes above it."""

    page: Path
    line: int
    language: str
    code: str
    notes: tuple[tuple[str, str], ...]

    def all(self, kind: str) -> list[str]:
        """Return what all notes of one kind say."""
        return [said for name, said in self.notes if name == kind]

    def one(self, kind: str) -> str | None:
        """Return what the note of this kind says, if there is one."""
        said = self.all(kind)
        assert len(said) < 2, f"{self}: two notes {kind!r}"
        return said[0] if said else None

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page: Path) -> list[Block]:
    """Return the blocks of code of one page, in their order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            page,
            text.count("\n", 0, match.start(2)) + 1,
            match[2].strip(),
            match[3],
            tuple(_NOTE.findall(match[1])),
        )
        for match in _BLOCK.finditer(text)
    ]


def has_code(page: Path) -> bool:
    """Say whether there is anything to run."""
    return any(b.language in RUN and b.one("not run") is None for b in blocks(page))


def recipe_of(target: str) -> list[str]:
    """Return the commands of a target of the Makefile."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    found = re.search(rf"^{re.escape(target)}:[^\n]*\n((?:\t[^\n]*\n)*)", text, re.MULTILINE)
    return found[1].replace("\t", "").splitlines() if found else []


def check_installable(wanted: str) -> None:
    """Check what a page tells to install: this project, with extras that it has.

    Nothing is fetched: the environment of the tests has it all.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    match = re.fullmatch(r"(\.|[a-z-]+)(?:\[([a-z0-9,]+)\])?", wanted)
    assert match, f"this cannot be installed: {wanted}"
    assert match[1] in {".", "rote-robot", project["name"]}, f"this is another project: {wanted}"
    extras = set(match[2].split(",")) if match[2] else set()
    assert extras <= set(project["optional-dependencies"]), f"there are no such extras: {wanted}"


def _command_line(
    arguments: list[str], folder: str, home: dict[str, str], out: str, tty: str
) -> None:
    """Be a `rote` of its own, with its output in a file."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(home)
    for name, how, numbers in ((tty, os.O_RDONLY, (0,)), (out, os.O_WRONLY, (1, 2))):
        opened = os.open(name, how | os.O_NOCTTY)
        for number in numbers:
            os.dup2(opened, number)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", buffering=1, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", buffering=1, closefd=False)  # noqa: SIM115
    print(_BEGUN, flush=True)
    try:
        code = main(arguments)
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)


def _files(pattern: str) -> list[str]:
    """Return what a shell makes of a word with a star."""
    return sorted(map(str, Path().glob(pattern))) if "*" in pattern else []


class Program:
    """A `rote` in a process of its own, as in another terminal."""

    def __init__(self, arguments: list[str], tty: str = os.devnull) -> None:
        self.arguments = arguments
        with tempfile.NamedTemporaryFile(dir=".", prefix="out-", delete=False) as out:
            self._out = Path(out.name).resolve()
        # Forked from a process that has imported everything: a start costs next to nothing.
        forks = multiprocessing.get_context("forkserver")
        forks.set_forkserver_preload(list(_PRELOADED))
        where = (str(Path.cwd()), dict(os.environ), str(self._out), tty)
        self._process = forks.Process(target=_command_line, args=(arguments, *where))
        self._process.start()
        self.wait_for(_BEGUN)

    @property
    def said(self) -> str:
        """All it has printed so far."""
        return f"rote {shlex.join(self.arguments)}\n" + self._out.read_text(encoding="utf-8")

    @property
    def wires(self) -> set[str]:
        """The wires it listens on; a second one cannot have the same."""
        return {*_WIRES, "web"} & {*self.arguments}

    def wait_for(self, *words: str) -> None:
        """Wait until it has printed one of these."""
        until = time.monotonic() + WAIT_S
        while not any(word in self.said.partition("\n")[2] for word in words):
            if not self._process.is_alive():
                break
            assert time.monotonic() < until, f"it does not say {words}: {self.said}"
            time.sleep(0.02)
        said = self.said.partition("\n")[2]
        assert any(word in said for word in words), f"it ended by itself: {said}"

    def end(self, *codes: int) -> None:
        """See it end, with one of these codes."""
        self._process.join(WAIT_S)
        code = self._process.exitcode
        self.kill()
        assert code in codes, f"{code}: {self.said}"
        assert "Traceback" not in self.said

    def interrupt(self) -> None:
        """Press Ctrl-C, and see it end as it should."""
        assert self._process.is_alive(), f"it ended by itself: {self.said}"
        assert self._process.pid is not None
        os.kill(self._process.pid, signal.SIGINT)
        self.end(0, 130)

    def kill(self) -> None:
        """Leave nothing behind."""
        if self._process.is_alive():
            self._process.kill()
        self._process.join()


class TooBusyError(Exception):
    """What is shown needs its time, and other programs had it."""


class Reader:
    """Somebody who begins with an empty folder and home, and does what a page says."""

    def __init__(self, page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._set_up = monkeypatch
        pid = os.getpid()
        own = f"127.{64 + pid // 250 % 100}.{pid % 250 + 1}.{PAGES.index(page) + 1}"
        self._own = own
        self._servers: list[Program] = []
        self.too_busy: list[str] = []
        """What could not be seen to its end for want of time."""
        self._replaced: tuple[tuple[str, Callable[[], str]], ...] = (
            ("127.0.0.1", lambda: own),
            (r"webrtc://(ap\b|192\.168\.[0-9.]+)", lambda: f"webrtc://{own}"),
            (r"a1://192\.168\.[0-9.]+", lambda: f"a1://{own}"),
            (r"dds://eth0", lambda: f"dds://lo?domain={free_domain('documentation')}"),
            (r"(--domain |domain=)5\b", lambda: rf"\g<1>{free_domain('documentation')}"),
            (r"asyncio\.sleep\(8\)", lambda: f"asyncio.sleep({PERSON_S})"),
            (r"--seconds 8\b", lambda: f"--seconds {PERSON_S}"),
        )
        monkeypatch.chdir(folder)
        # A home as a new user has it: empty, and nothing said about where rote keeps things.
        home = folder.with_name(f"{folder.name}-home")
        home.mkdir(exist_ok=True)
        monkeypatch.setenv("HOME", str(home))
        for name in ("ROTE_HOME", "ROTE_ROBOT", "ROTE_KEY", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
            monkeypatch.delenv(name, raising=False)

    def run(self, block: Block) -> None:
        """Do what one block says."""
        for said in block.all("with file"):
            source, _, name = said.partition(" as ")
            shutil.copy(ROOT / source, name)
        for line in block.all("run first"):
            self._command(line)
        needed = [self._start(shlex.split(self._ours(line))) for line in block.all("run with")]
        try:
            if block.language == "python":
                self._python(block)
            else:
                self._shell(block)
        except TooBusyError as error:
            self.too_busy.append(str(error))
        for server in needed:
            self._stop(server)

    def leave(self) -> None:
        """End what still runs in other terminals."""
        while self._servers:
            self._stop(self._servers[-1])

    def give_up(self) -> None:
        """Leave nothing running after a failure."""
        for server in self._servers:
            server.kill()

    def _ours(self, text: str) -> str:
        """Put our simulated robots in the place of those of the page."""
        for pattern, value in self._replaced:
            if re.search(pattern, text):
                text = re.sub(pattern, value(), text)
        return text

    def _shell(self, block: Block) -> None:
        left_out = dict.fromkeys(said.partition(": ")[0] for said in block.all("line not run"))
        met = set()
        for line in block.code.splitlines():
            beginning = next((b for b in left_out if line.startswith(b)), None)
            if beginning is not None:
                met.add(beginning)
            elif line.strip() and not line.startswith("#"):
                self._command(line)
        assert met == set(left_out), f"{block}: no such line: {set(left_out) - met}"

    def _command(self, line: str) -> None:
        words = shlex.split(self._ours(line), comments=True)
        match words:
            case ["export", setting]:
                self._set_up.setenv(*setting.split("=", 1))
            case ["rote", "sim", "--quirk", "list"]:
                self._rote(words[1:])
            case ["rote", "sim" | "web", *_]:
                self._start(words)
            case ["rote", "watch" | "ros" as which, *rest] if "--layout" not in rest:
                self._serve([*words, "0"] if which == "watch" else words)
            case ["rote", "play", *rest] if "--loop" in rest:
                self._play_until_interrupted(words)
            case ["rote", "teach", *rest] if not {"--hand", "--seconds"} & {*rest}:
                self._teach(words)
            case ["rote", *arguments]:
                self._rote(arguments)
            case ["make", target]:
                self._make(target)
            case ["pip", "install", wanted]:
                check_installable(wanted)
            case _:
                raise AssertionError(f"the reader cannot do this: {line}")

    def _make(self, target: str) -> None:
        """Do what a target of the Makefile does, in the environment that is set up already."""
        recipe = recipe_of(target)
        assert recipe, f"the Makefile has no {target}"
        for line in recipe:
            command = line.lstrip("@-").removeprefix("$(BIN)/")
            assert command.startswith("rote "), f"the reader cannot make {target}: {line}"
            self._command(command)

    def _rote(self, arguments: list[str]) -> None:
        arguments = [name for word in arguments for name in _files(word) or [word]]
        with self._set_up.context() as now:
            if not _ELSEWHERE.search(shlex.join(arguments)) and "ROTE_ROBOT" not in os.environ:
                now.setattr("rote.platform.loop.new_loop", virtual.VirtualLoop)
            code = self._unless_too_busy(arguments, lambda: main(arguments))
        # `rote doctor` ends with 1 where something is wrong with this computer, which may be so.
        allowed = (0, 1) if arguments[0] == "doctor" else (0,)
        assert code in allowed, f"{code}: rote {shlex.join(arguments)}"

    def _start(self, words: list[str]) -> Program:
        if words[:2] == ["rote", "web"]:
            words = [*words, "--port", "0", "--no-browser"]
        elif not {*_WIRES} & {*words}:
            words += ["--a1", self._own] if "a1" in words else ["--udp", f"{self._own}:49504"]
        kind = {*_WIRES, "web"} & {*words}
        for other in [server for server in self._servers if kind & server.wires]:
            self._stop(other)
        self._servers.append(Program(words[1:]))
        self._servers[-1].wait_for("Ctrl-C", '"ready"')
        return self._servers[-1]

    def _serve(self, words: list[str]) -> None:
        """Start what serves others until Ctrl-C, see it begin, and end it."""
        program = Program(words[1:])
        try:
            program.wait_for("Ctrl-C")
            program.interrupt()
        finally:
            program.kill()

    def _stop(self, server: Program) -> None:
        if server in self._servers:
            self._servers.remove(server)
        server.interrupt()

    def _teach(self, words: list[str]) -> None:
        """Teach as at a terminal: Enter when the arms are held, and Enter when it is done."""
        ours, theirs = pty.openpty()
        program = Program(words[1:], tty=os.ttyname(theirs))
        try:
            program.wait_for("Press Enter when you hold")
            os.write(ours, b"\n")
            program.wait_for("Press Enter to end")
            time.sleep(PERSON_S)
            os.write(ours, b"\n")
            program.end(0)
        finally:
            program.kill()
            os.close(ours)
            os.close(theirs)

    def _play_until_interrupted(self, words: list[str]) -> None:
        program = Program(words[1:])
        try:
            time.sleep(STARTED_S)
            program.interrupt()
        finally:
            program.kill()

    def _python(self, block: Block) -> None:
        code = self._ours(block.code)
        if (header := block.one("within")) is not None:
            body = textwrap.indent(code, "        ")
            code = (
                "import asyncio, math\nimport rote\nfrom rote import Bot\n"
                f"async def main():\n    {self._ours(header)}\n{body}\nasyncio.run(main())\n"
            )
        raises = block.one("raises")
        scope: dict[str, object] = {"__name__": "__main__"}
        with self._set_up.context() as now:
            now.setattr("sys.argv", ["shown.py", *shlex.split(block.one("arguments") or "")])
            if not _ELSEWHERE.search(code):
                now.setattr(asyncio, "run", virtual.run)
            program = compile(code, str(block), "exec")
            if raises is None:
                self._unless_too_busy(block, lambda: exec(program, dict(scope)))
                return
            with pytest.raises(Exception, match=r".") as caught:
                exec(program, scope)
        assert caught.typename == raises
        for comment in re.findall(r"^# (?:\w+Error: )?(.*)$", block.code, re.MULTILINE):
            assert comment in str(caught.value)

    @staticmethod
    def _unless_too_busy(what: object, work: Callable[[], int | None]) -> int:
        """Do it; where protections of an A1 trip all the time, this computer is too busy for it."""
        for attempt in range(3):
            try:
                code = work()
            except (ProtectionError, TimeLimitError) as error:
                code = error.exit_code
            except LinkError:
                if not attempt:
                    raise
                continue
            if code not in TOO_BUSY:
                return code or 0
        raise TooBusyError(f"this computer is too busy for the motors of an A1: {what}")
