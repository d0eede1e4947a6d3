"""A hall: a conductor and agents in network namespaces of their own, with cables that can be cut.

Every namespace is made here and removed at the end; the computer's own network is not touched.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

from rote.messages import Phase
from rote.stage.folder import StageFolder

HERE = Path(__file__).parent / "stage"
PATIENCE_S = 90.0
HANG_S = 4.0
Line = dict[str, Any]


def no_namespaces() -> str:
    """Return why no network namespaces can be made here; "" if they can."""
    name = f"rote{os.getpid()}try"
    try:
        made = _ip("netns", "add", name, check=False)
    except FileNotFoundError:
        return "there is no `ip`: install iproute2"
    if made.returncode:
        return f"no network namespace can be made: {made.stderr.strip()[:100]}"
    _ip("netns", "delete", name, check=False)
    return ""


def _ip(*words: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(["ip", *words], capture_output=True, text=True, check=check)


class Process:
    """A Python process in a namespace that says lines of JSON."""

    def __init__(self, namespace: str, home: Path, *arguments: str) -> None:
        self.lines: list[Line] = []
        self._more = threading.Condition()
        self._errors = (home / f"{Path(arguments[0]).stem}.{time.monotonic_ns()}.err").open("wb")
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", namespace, sys.executable, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env=os.environ | {"ROTE_HOME": str(home)},
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for text in self.process.stdout:
            with self._more:
                if text.startswith("{"):
                    self.lines.append(json.loads(text))
                self._more.notify_all()
        with self._more:
            self._more.notify_all()

    def tell(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{text}\n")
        self.process.stdin.flush()

    def wait_for(
        self, what: Callable[[Line], bool], since: int = 0, within_s: float = PATIENCE_S
    ) -> Line:
        until_s = time.monotonic() + within_s
        with self._more:
            while True:
                for line in self.lines[since:]:
                    if what(line):
                        return line
                left_s = until_s - time.monotonic()
                if left_s <= 0 or self.process.poll() is not None:
                    self._errors.flush()
                    told = Path(self._errors.name).read_text(errors="replace")[-2000:]
                    raise AssertionError(f"not said within {within_s} s: {self.lines[-8:]}\n{told}")
                self._more.wait(min(left_s, 1.0))

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join()
        for stream in (self.process.stdin, self.process.stdout, self._errors):
            if stream is not None:
                stream.close()


@dataclass
class Moment:
    """What a robot did from a moment on, until the next one."""

    at_s: float
    phase: Phase
    fastest_rad_s: float


class Player:
    """One robot of the hall: its simulated body, its agent, and the cable to the conductor."""

    def __init__(self, hall: "Hall", number: int) -> None:
        self.hall, self.name = hall, f"robot{number}"
        self.namespace, self.cable = f"{hall.prefix}r{number}", f"cable{number}"
        _ip("netns", "add", self.namespace)
        _ip(
            *("-n", hall.namespace, "link", "add", self.cable, "type", "veth"),
            *("peer", "name", "eth0", "netns", self.namespace),
        )
        _ip("-n", hall.namespace, "link", "set", self.cable, "master", "hall", "up")
        _ip("-n", self.namespace, "link", "set", "lo", "up")
        _ip("-n", self.namespace, "address", "add", f"10.77.0.{number + 1}/24", "dev", "eth0")
        _ip("-n", self.namespace, "link", "set", "eth0", "up")
        self.log, self.times = (hall.folder / f"{self.name}.{end}" for end in ("log", "times"))
        self.invitation = hall.stage.invite(self.name)
        self.robot = Process(
            self.namespace, hall.folder, str(HERE / "stage_robot.py"), str(self.log)
        )
        self.url = ""
        self.agent: Process | None = None

    def start_agent(self) -> None:
        """Start the agent, again after it was killed."""
        self.url = self.url or self.robot.wait_for(lambda line: line["event"] == "ready")["url"]
        self.agent = Process(
            self.namespace,
            self.hall.folder,
            str(HERE / "stage_agent_process.py"),
            *(str(HANG_S), str(self.times)),
            *("agent", self.url, "--join", str(self.invitation)),
        )

    def signal(self, number: int) -> None:
        assert self.agent is not None
        self.agent.process.send_signal(number)

    def cut(self, *, on: bool) -> None:
        """Cut the cable, or plug it in again."""
        _ip("-n", self.hall.namespace, "link", "set", self.cable, "down" if on else "up")

    def moments(self, since_s: float = 0.0) -> list[Moment]:
        """Return what the robot did since a time, by its own log."""
        found = []
        for line in self.log.read_text().splitlines():
            words = line.split()
            if len(words) == 3 and float(words[0]) >= since_s:
                found.append(Moment(float(words[0]), Phase(int(words[1])), float(words[2])))
        return found

    def slowest_s(self, since_s: float, *, agent: bool) -> float:
        """Return how long the robot's process was kept from its work at most by a busy computer,
        or that of its agent, if that is longer."""
        robot_s = [each.at_s for each in self.moments(since_s)]
        agent_s = (
            [float(line) for line in self.times.read_text().splitlines()[:-1]] if agent else []
        )
        gaps = [*pairwise(robot_s), *pairwise(each for each in agent_s if each >= since_s)]
        return max((after - before for before, after in gaps), default=0.0)

    def at(self, when_s: float) -> Phase:
        """Return the robot's phase at a time."""
        before = [each for each in self.moments() if each.at_s <= when_s]
        return before[-1].phase if before else Phase.NONE

    def driven_until_s(self, since_s: float) -> float:
        """Return when it was last on its way to a motion or in one; `since_s` if not since then."""
        until_s, phase = since_s, self.at(since_s)
        for moment in self.moments(since_s):
            if phase in (Phase.APPROACH, Phase.PLAYING):
                until_s = moment.at_s
            phase = moment.phase
        return time.monotonic() if phase in (Phase.APPROACH, Phase.PLAYING) else until_s

    def end(self) -> None:
        if self.agent is not None:
            self.agent.end()
        self.robot.end()
        _ip("netns", "delete", self.namespace, check=False)


class Hall:
    """The conductor, a bridge, and the players."""

    def __init__(self, folder: Path, players: int) -> None:
        self.folder = folder
        self.prefix = f"rote{os.getpid()}"
        self.namespace = f"{self.prefix}hall"
        self.stage = StageFolder.new(folder / "stage", "hall", "10.77.0.1:7447")
        _ip("netns", "add", self.namespace)
        self.players: list[Player] = []
        self.conductor: Process | None = None
        try:
            _ip("-n", self.namespace, "link", "set", "lo", "up")
            _ip("-n", self.namespace, "link", "add", "hall", "type", "bridge", "forward_delay", "0")
            _ip("-n", self.namespace, "address", "add", "10.77.0.1/24", "dev", "hall")
            _ip("-n", self.namespace, "link", "set", "hall", "up")
            for number in range(1, players + 1):
                self.players.append(Player(self, number))
        except BaseException:
            self.close()
            raise

    def start_conductor(self) -> Process:
        self.conductor = Process(
            self.namespace,
            self.folder,
            str(HERE / "stage_conductor_process.py"),
            str(self.folder / "stage"),
            *(player.name for player in self.players),
        )
        return self.conductor

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End every process, and remove the namespaces."""
        for player in self.players:
            if player.agent is not None and player.agent.process.poll() is None:
                player.signal(signal.SIGCONT)
            player.end()
        if self.conductor is not None:
            self.conductor.end()
        _ip("netns", "delete", self.namespace, check=False)
