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
robot is in the reader's process, time is virtual. An A1 is always there, because its motors need a
command every 2 ms: `rote sim --a1` is started and ended, and a robot like it joins each command. So
is `rote sim --dds`, whose joints are then reported less often by a robot in a thread.
"""

import asyncio
import os
import pty
import re
import shlex
import shutil
import signal
import tempfile
import textwrap
import threading
import time
import tomllib
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import virtual
from forked import Rote, fork_batch_workers
from precedence import precedence
from rig import DDS_HZ, free_domain
from rote.cli import main
from rote.model.dex3 import DEX3
from rote.sim.quadruped.simulator import HIGH_PORT, LOW_PORT, A1Simulator
from rote.sim.quadruped.world import A1World
from rote.sim.server import Simulator
from rote.sim.store import Store
from rote.sim.world import World

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
"""Time in seconds for which a user of a page moves soft arms here, or watches a robot."""
SCRIPT_S = 1.5
"""Time in seconds for which a scripted hand moves them: edits of the pages name later moments."""
STARTED_S = 3.0
"""After this, a command that says nothing has begun."""
SHORTER = {
    r"asyncio\.sleep\([348]\)": f"asyncio.sleep({PERSON_S})",
    r"time\.sleep\(2\)": f"time.sleep({SCRIPT_S})",
    r"move_by_hand\((name|\"wave\"), (seconds=)?[23]\)": rf"move_by_hand(\1, \g<2>{SCRIPT_S})",
    r"mirroring\.wait\(3\)": f"mirroring.wait({SCRIPT_S})",
    r"--seconds 8\b": f"--seconds {PERSON_S}",
    r"--seconds [345]\b": f"--seconds {SCRIPT_S}",
    r"if seconds > 3": f"if seconds > {PERSON_S}",
    r"walk\(0\.[35]\)": "walk(0.2)",
    r"turn\(math\.pi / 2\)": "turn(0.4)",
    r"a1 walk 0\.5": "a1 walk 0.2",
    r"a1 turn 90": "a1 turn 20",
    r"'\*\.mcap'": "'d*.mcap'",
}
"""Patterns in code of the pages, and what is run instead: shorter or fewer motions."""
_BLOCK = re.compile(r"((?:^<!--[^\n]*-->\n)*)^```([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_NOTE = re.compile(r"<!-- ([a-z ]+): (.*) -->")
_ELSEWHERE = re.compile(r"^stage |(udp|webrtc|dds)://|A1Simulator|rote\.sync|^discover")
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


def _files(pattern: str) -> list[str]:
    """Return what a shell makes of a word with a star."""
    return sorted(map(str, Path().glob(pattern))) if "*" in pattern else []


class Program:
    """A `rote` in a process of its own, as in another terminal."""

    def __init__(self, arguments: list[str], tty: str = os.devnull) -> None:
        self.arguments = arguments
        with tempfile.NamedTemporaryFile(dir=".", prefix="out-", delete=False) as out:
            self._out = Path(out.name).resolve()
        terminal = os.open(tty, os.O_RDONLY | os.O_NOCTTY)
        with self._out.open("w") as printed:
            self._process = Rote(*arguments, stdin=terminal, stdout=printed, stderr=printed)
        os.close(terminal)

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
            if self._process.poll() is not None:
                break
            assert time.monotonic() < until, f"it does not say {words}: {self.said}"
            time.sleep(0.02)
        said = self.said.partition("\n")[2]
        assert any(word in said for word in words), f"it ended by itself: {said}"

    def end(self, *codes: int) -> None:
        """See it end, with one of these codes."""
        try:
            code = self._process.wait(WAIT_S)
        finally:
            self.kill()
        assert code in codes, f"{code}: {self.said}"
        assert "Traceback" not in self.said

    def interrupt(self) -> None:
        """Press Ctrl-C, and see it end as it should."""
        assert self._process.poll() is None, f"it ended by itself: {self.said}"
        self._process.send_signal(signal.SIGINT)
        self.end(0, 130)

    def kill(self) -> None:
        """Leave nothing behind."""
        self._process.kill()
        self._process.wait()


class DdsRobot:
    """A simulated G1 on DDS in a thread, in real time, which reports its joints at `DDS_HZ`."""

    wires = frozenset({"--dds"})

    def __init__(self, domain: int, *, has_hands: bool) -> None:
        self._precedence = ExitStack()
        self._precedence.enter_context(precedence())  # its client shares this process with it
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._run(self._open(domain, has_hands))

    async def _open(self, domain: int, has_hands: bool) -> None:
        self._store = Store(":memory:")
        self._simulator = Simulator(World(self._store))
        hands = DEX3 if has_hands else ()
        await self._simulator.serve_dds("lo", domain, lowstate_hz=DDS_HZ, hands=hands)

    async def _close(self) -> None:
        await self._simulator.close()
        self._store.close()

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(WAIT_S)

    def interrupt(self) -> None:
        """End it."""
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(WAIT_S)
        self._loop.close()
        self._precedence.close()

    def kill(self) -> None:
        """End it after a failure."""
        self.interrupt()


class _LoopWithA1(virtual.VirtualLoop):
    """A loop in virtual time, and a simulated A1 at its usual ports as long as it is open."""

    def __init__(self, world: A1World, host: str) -> None:
        super().__init__()
        self._robot = A1Simulator(world, host, high_port=HIGH_PORT, low_port=LOW_PORT)
        self.run_until_complete(self._robot.open())

    def close(self) -> None:
        if not self.is_closed():
            self.run_until_complete(self._robot.close())
        super().close()


def _run_in(
    new_loop: Callable[[], asyncio.AbstractEventLoop], work: Coroutine[Any, Any, object]
) -> object:
    """Do what `asyncio.run` does, in another loop."""
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(work)


class Reader:
    """Somebody who begins with an empty folder and home, and does what a page says."""

    def __init__(self, page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._set_up = monkeypatch
        pid = os.getpid()
        own = f"127.{64 + pid // 250 % 100}.{pid % 250 + 1}.{PAGES.index(page) + 1}"
        self._own = own
        self._servers: list[Program | DdsRobot] = []
        self._a1: A1World | None = None
        """The simulated A1 of the page, once it is started."""
        self._replaced: tuple[tuple[str, Callable[[], str]], ...] = (
            ("127.0.0.1", lambda: own),
            (r"webrtc://(ap\b|192\.168\.[0-9.]+)", lambda: f"webrtc://{own}"),
            (r"a1://192\.168\.[0-9.]+", lambda: f"a1://{own}"),
            (rf"a1://{own}\b", lambda: f"a1://{own}?sender=loop"),  # in the reader's time
            (r"\?sender=loop\?", lambda: "?sender=loop&"),
            (r"dds://eth0", lambda: f"dds://lo?domain={free_domain('documentation')}"),
            (r"(--domain |domain=)5\b", lambda: rf"\g<1>{free_domain('documentation')}"),
            *((shown, lambda run=run: run) for shown, run in SHORTER.items()),
        )
        fork_batch_workers(monkeypatch)
        monkeypatch.chdir(folder)
        monkeypatch.setattr(os, "cpu_count", lambda: 1)  # `rote batch` starts a process per core
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
        if block.language == "python":
            self._python(block)
        else:
            self._shell(block)
        for server in needed:
            if server in self._servers:
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
            robot = os.environ.get("ROTE_ROBOT", "")
            if not _ELSEWHERE.search(command := f"{shlex.join(arguments)} {robot}"):
                now.setattr("rote.platform.loop.new_loop", partial(self._new_loop, command))
            code = main(arguments)
        # `rote doctor` ends with 1 where something is wrong with this computer, which may be so.
        allowed = (0, 1) if arguments[0] == "doctor" else (0,)
        assert code in allowed, f"{code}: rote {shlex.join(arguments)}"

    def _new_loop(self, code: str) -> virtual.VirtualLoop:
        if self._a1 is None or "a1://" not in code:
            return virtual.VirtualLoop()
        return _LoopWithA1(self._a1, self._own)

    def _start(self, words: list[str]) -> Program | DdsRobot:
        if words[:2] == ["rote", "web"]:
            words = [*words, "--port", "0", "--no-browser"]
        elif not {*_WIRES} & {*words}:
            words += ["--a1", self._own] if "a1" in words else ["--udp", f"{self._own}:49504"]
        kind = {*_WIRES, "web"} & {*words}
        for other in [server for server in self._servers if kind & server.wires]:
            self._stop(other)
        program = Program(words[1:])
        self._servers.append(program)
        program.wait_for("Ctrl-C", '"ready"')
        if "--a1" in words:
            self._stop(program)
            # The commands of the pages talk only to a robot without options.
            given = " ".join(words).replace("--robot a1", "").split()
            self._a1 = A1World() if given == ["rote", "sim", "--a1", self._own] else None
        elif kind == DdsRobot.wires:
            self._stop(program)
            domain = int(words[words.index("--domain") + 1])
            self._servers.append(DdsRobot(domain, has_hands="--hands" in words))
            return self._servers[-1]
        return program

    def _serve(self, words: list[str]) -> None:
        """Start what serves others until Ctrl-C, see it begin, and end it."""
        program = Program(words[1:])
        try:
            program.wait_for("Ctrl-C")
            program.interrupt()
        finally:
            program.kill()

    def _stop(self, server: Program | DdsRobot) -> None:
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
                now.setattr(asyncio, "run", partial(_run_in, partial(self._new_loop, code)))
            program = compile(code, str(block), "exec")
            if raises is None:
                exec(program, scope)
                return
            with pytest.raises(Exception, match=r".") as caught:
                exec(program, scope)
        assert caught.typename == raises
        for comment in re.findall(r"^# (?:\w+Error: )?(.*)$", block.code, re.MULTILINE):
            assert comment in str(caught.value)
