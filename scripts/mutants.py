"""Break safety-relevant code on purpose, one place at a time, and print what no test notices.

    python scripts/mutants.py                     the fixed list, and a random sample
    python scripts/mutants.py --sample 0          the fixed list alone
    python scripts/mutants.py --only robot/ --sample 20 --seed 7

The fixed list is `safety_mutants.json`; every entry names the test that must fail. A mutant of the
sample changes one point of a module in `TESTS`: a comparison, a constant, `and`, `or`, `not`, or a
call, a `raise` or an `await` that is left out. It is killed if one of the module's tests fails with
it, twice, and passes without it, or if the tests do not end in time. Each worker has a copy of the
tree; the work tree is not changed.

Exit code 1: a mutant of the fixed list survives or does not apply, or too few of the sample are
killed.
"""

import argparse
import ast
import contextlib
import copy
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
FIXED = Path(__file__).with_name("safety_mutants.json")
LEAST_KILLED = 0.85
TIMEOUT_S = 240.0
SAMPLE = 60
SEED = 29
SURVIVED = "survived"
NO_TEST = "has no such test"
TIMED_OUT = "did not end in time"
KILLED_BY = "killed by "
UNCLEAR = "a test fails only sometimes, or without the mutant too"

_BEHAVIOUR = ("tests/test_behaviour.py",)
_ENDINGS = ("tests/robot/test_robot_endings.py",)
_PENDING = ("tests/transport/test_transport_stop_pending.py",)
_RECONNECT = ("tests/transport/test_transport_reconnect.py", *_PENDING)
_STREAM = ("tests/robot/test_robot_streaming.py", "tests/robot/test_robot_timed_start.py")
_WEB = (
    "tests/web/test_web_lost_robot.py",
    "tests/web/test_web_teaching.py",
    "tests/web/test_web_clients.py",
    "tests/web/test_web_a1.py",
    "tests/web/test_web_robot.py",
    "tests/web/test_web_stop.py",
)
_STAGE = (
    "tests/stage/test_stage_agent.py",
    "tests/stage/test_stage_stage.py",
    "tests/session/test_session_stage.py",
    "tests/stage/test_stage_cues.py",
)
_SERVICES = ("tests/test_services_wire.py", "tests/transport/test_transport_rpc.py")
_TEACH = (
    "tests/robot/test_robot_teaching.py",
    "tests/robot/test_robot_take.py",
    "tests/robot/test_robot_take_recording.py",
    "tests/robot/test_robot_after_teaching.py",
)
_ROBOT = (
    *_ENDINGS,
    "tests/robot/test_robot_safety.py",
    "tests/robot/test_robot_g1.py",
    "tests/robot/test_robot_listening.py",
    "tests/robot/test_robot_sending.py",
    "tests/robot/test_robot_following.py",
    *_BEHAVIOUR,
)
_A1 = (
    "tests/robot/test_robot_safety.py",
    "tests/robot/test_robot_a1_send.py",
    "tests/robot/test_robot_a1.py",
)

TESTS: dict[str, tuple[str, ...]] = {
    "robot/quadruped/*.py": (
        *_A1,
        "tests/robot/test_robot_bot.py",
        "tests/robot/test_robot_loop.py",
    ),
    "robot/streaming.py": (*_ENDINGS, *_STREAM, *_BEHAVIOUR),
    "robot/streamed_motion.py": (*_STREAM, "tests/robot/test_robot_mapping.py", *_BEHAVIOUR),
    "robot/ticker.py": (*_ENDINGS, *_STREAM, *_BEHAVIOUR),
    "robot/following.py": ("tests/robot/test_robot_following.py", "tests/test_faults.py"),
    "robot/teaching.py": (*_ENDINGS, *_TEACH, *_BEHAVIOUR),
    "robot/message_teaching.py": (*_ENDINGS, *_TEACH, *_BEHAVIOUR),
    "robot/playing.py": (*_ENDINGS, *_BEHAVIOUR, "tests/robot/test_robot_watching.py"),
    "robot/motion_watch.py": ("tests/robot/test_robot_watching.py", *_ENDINGS, *_BEHAVIOUR),
    "robot/message_robot.py": _ROBOT,
    "robot/link.py": (*_ROBOT, *_A1, *_ENDINGS, *_TEACH, *_BEHAVIOUR),
    "robot/arm_requests.py": (*_ROBOT, *_TEACH),
    "robot/action_store.py": (*_ROBOT, *_TEACH),
    "robot/modes.py": _ROBOT,
    "robot/player.py": _ROBOT,
    "robot/play_options.py": _ROBOT,
    "robot/streamer.py": (
        *_ENDINGS,
        *_STREAM,
        "tests/robot/test_robot_following.py",
        "tests/robot/test_robot_storing.py",
        *_BEHAVIOUR,
    ),
    "robot/frame_sender.py": ("tests/robot/test_robot_sending.py",),
    "robot/preflight.py": ("tests/robot/test_robot_preflight.py",),
    "transport/dds/arm_streamer.py": (
        "tests/transport/test_transport_arm_streamer.py",
        "tests/transport/test_transport_dds.py",
        "tests/session/test_session_arm_stream.py",
    ),
    "transport/dds/client.py": (
        "tests/sim/test_sim_dds.py",
        "tests/transport/test_transport_dds.py",
        "tests/transport/test_transport_dds_client.py",
        "tests/transport/test_transport_dds_guardian.py",
        "tests/robot/test_robot_hands.py",
        *_BEHAVIOUR,
    ),
    "transport/services/*.py": (*_ENDINGS, *_PENDING, *_SERVICES, *_RECONNECT, *_BEHAVIOUR),
    "transport/udp/client.py": (*_RECONNECT, *_ENDINGS, *_BEHAVIOUR),
    "transport/watchdog.py": ("tests/transport/test_transport_watchdog.py", *_A1),
    "transport/a1/sender.py": ("tests/transport/test_transport_a1_client.py", *_A1),
    "session/teaching.py": ("tests/session/test_session_teaching.py",),
    "session/rpc.py": ("tests/session/test_session_rpc.py",),
    "session/dds.py": ("tests/session/test_session_dds.py",),
    "session/a1.py": ("tests/session/test_session_a1.py",),
    "session/arm_stream.py": ("tests/session/test_session_arm_stream.py",),
    "session/stage_*.py": _STAGE,
    "web/access/roles.py": ("tests/web/test_web_roles.py",),
    "web/services/stops.py": ("tests/web/test_web_stop.py", "tests/web/test_web_limits.py"),
    "web/services/hub.py": ("tests/web/test_web_hub.py", *_WEB),
    "web/services/actions.py": ("tests/web/test_web_robot.py", "tests/web/test_web_library.py"),
    "web/services/broadcaster.py": ("tests/web/test_web_hub.py", *_WEB),
    "web/services/status.py": ("tests/web/test_web_hub.py", *_WEB),
    "web/services/activity.py": _WEB,
    "web/services/teaching.py": (*_WEB, "tests/web/test_web_library.py"),
    "web/services/playing.py": (*_WEB, "tests/web/test_web_edits.py"),
    "web/services/stop_sender.py": _WEB,
    "web/access/security.py": (
        "tests/web/test_web_security.py",
        "tests/web/test_web_roles.py",
        "tests/web/test_web_limits.py",
    ),
    "web/access/clients.py": (
        "tests/web/test_web_clients.py",
        "tests/web/test_web_roles.py",
        "tests/web/test_web_hub.py",
    ),
    "web/services/connection_keeper.py": (
        "tests/web/test_web_connection_keeper.py",
        "tests/web/test_web_security.py",
        *_WEB,
    ),
    "stage/agent*.py": (*_STAGE, "tests/stage/test_stage_pause.py"),
    "stage/conductor.py": _STAGE,
    "stage/leads.py": ("tests/stage/test_stage_offsets.py", "tests/stage/test_stage_cues.py"),
    "stage/show_run.py": (*_STAGE, "tests/stage/test_stage_cue_list.py"),
    "stage/stage.py": (*_STAGE, "tests/stage/test_stage_bus.py"),
    "motion/check/rules.py": ("tests/motion/test_motion_check.py",),
    "motion/check/limits.py": (
        "tests/motion/test_motion_limits.py",
        "tests/motion/test_motion_check.py",
    ),
    "motion/body/contact.py": ("tests/motion/test_motion_contact.py",),
    "bridge/tickets.py": ("tests/bridge/test_bridge_tickets.py",),
}
"""Modules under `src/rote` whose points are sampled, and the tests that should notice."""

_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,  # codespell:ignore notin
    ast.NotIn: ast.In,  # codespell:ignore notin
}
_HARMLESS_OPTIONS = {"strict", "kw_only", "frozen", "slots", "eq", "name", "daemon", "repr"}
_HARMLESS_CALLS = ("_log.", "logging.", "self._log.")


class Mutant(NamedTuple):
    """One change of one file."""

    file: str
    """Its path below the root of the project."""
    line: int
    original: str
    mutated: str
    source: str
    """The whole file after the change."""
    tests: tuple[str, ...]

    @property
    def title(self) -> str:
        """The change in one line."""
        before, after = (" ".join(text.split())[:90] for text in (self.original, self.mutated))
        return f"{self.file}:{self.line}: {before}  ->  {after}"


@dataclass(frozen=True)
class Result:
    """What the tests said of a mutant."""

    mutant: Mutant
    killed: bool
    word: str
    seconds: float


class MutationError(Exception):
    """A mutant that cannot be applied, or tests that do not pass without one."""


# ---- the fixed list -----------------------------------------------------------------------------


def read_fixed(path: Path, root: Path) -> list[Mutant]:
    """Return the mutants of a list; raise `MutationError` naming all that do not apply."""
    mutants, problems = [], []
    for entry in json.loads(path.read_text(encoding="utf-8")):
        try:
            mutants.append(apply_text(root, **entry))
        except MutationError as error:
            problems.append(str(error))
    if problems:
        raise MutationError("\n".join(problems))
    return mutants


def apply_text(root: Path, *, file: str, original: str, mutated: str, test: str) -> Mutant:
    """Return the mutant that replaces a text, which the file must have exactly once."""
    path = root / file
    source = path.read_text(encoding="utf-8") if path.is_file() else ""
    found = source.count(original)
    if found != 1:
        raise MutationError(f"{file} has this {found} times, not once: {original!r}")
    after = source.replace(original, mutated)
    try:
        ast.parse(after)
    except SyntaxError as error:
        raise MutationError(f"{file} is no Python with {mutated!r}: {error}") from None
    line = source[: source.index(original)].count("\n") + 1
    return Mutant(file, line, original, mutated, after, tuple(test.split()))


# ---- the sample ---------------------------------------------------------------------------------


def sample(root: Path, size: int, seed: int, only: str = "") -> list[Mutant]:
    """Return a random sample of all mutants of the chosen modules."""
    every = [
        mutant
        for pattern, tests in TESTS.items()
        for path in sorted((root / "src" / "rote").glob(pattern))
        if path.name != "__init__.py" and only in path.as_posix()
        for mutant in mutants_of(path.relative_to(root).as_posix(), path.read_bytes(), tests)
    ]
    return random.Random(seed).sample(every, min(size, len(every)))


def mutants_of(file: str, source: bytes, tests: tuple[str, ...]) -> Iterator[Mutant]:
    """Return every single-point mutant of a module."""
    starts = [0]
    for row in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(row))
    for node, text in _changes(ast.parse(source)):
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        first = starts[node.lineno - 1] + node.col_offset
        last = starts[node.end_lineno - 1] + node.end_col_offset
        after = (source[:first] + text.encode() + source[last:]).decode()
        yield Mutant(file, node.lineno, source[first:last].decode(), text, after, tests)


def _changes(tree: ast.Module) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """Return nodes and the text that replaces each."""
    for node in _mutable(tree):
        if isinstance(node, ast.Raise) or _is_lone_call(node):
            assert isinstance(node, ast.stmt)
            yield node, "pass"
        elif isinstance(node, ast.Compare):
            for place, operator in enumerate(node.ops):
                other = copy.deepcopy(node)
                other.ops[place] = _OPPOSITE[type(operator)]()
                yield node, f"({ast.unparse(other)})"
        elif isinstance(node, ast.BoolOp):
            swapped = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield node, f"({ast.unparse(ast.BoolOp(swapped, node.values))})"
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield node, f"({ast.unparse(node.operand)})"
        elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            yield node, _other_number(node.value)


def _is_lone_call(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call | ast.Await)
        and not ast.unparse(node).startswith(_HARMLESS_CALLS)
    )


def _other_number(value: float) -> str:
    if isinstance(value, bool):
        return str(not value)
    return "1" if value == 0 else repr(10 * value)


def _mutable(node: ast.AST) -> Iterator[ast.AST]:
    """Return all nodes in which a change can matter: no annotations, decorators or f-strings."""
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params", "bases"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, ast.JoinedStr):
                continue
            if isinstance(child, ast.keyword) and child.arg in _HARMLESS_OPTIONS:
                continue
            if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
                continue
            yield from _mutable(child)


# ---- running ------------------------------------------------------------------------------------


class Copies:
    """Copies of the tree, each for one worker at a time."""

    def __init__(self, root: Path, folder: Path, workers: int) -> None:
        self._free: SimpleQueue[Path] = SimpleQueue()
        self._trees = [folder / str(number) for number in range(workers)]
        self._moments = count(1_000_000_000)
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(listed, cwd=root, capture_output=True, check=True).stdout
        for tree in self._trees:
            for name in filter(None, names.decode().split("\0")):
                if (root / name).is_file():
                    (tree / name).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(root / name, tree / name)
            self._free.put(tree)

    def try_one(self, mutant: Mutant, timeout_s: float) -> Result:
        """Run the tests of a mutant in a copy that has it.

        The test that fails must fail again with the mutant, and pass without it: on a loaded
        machine a test may fail by itself.
        """
        tree = self._free.get()
        path = tree / mutant.file
        before = path.read_text(encoding="utf-8")
        began = time.monotonic()
        try:
            self._write(path, mutant.source)
            word = run_tests(tree, mutant.tests, timeout_s)
            killer = word.removeprefix(KILLED_BY)
            if killer != word:
                again = run_tests(tree, [killer], timeout_s)
                self._write(path, before)
                if again == SURVIVED or run_tests(tree, [killer], timeout_s) != SURVIVED:
                    word = f"{UNCLEAR}: {killer}"
        finally:
            self._write(path, before)
            self._free.put(tree)
        killed = word not in (SURVIVED, NO_TEST) and not word.startswith(UNCLEAR)
        return Result(mutant, killed, word, time.monotonic() - began)

    def check_passes(self, tests: Sequence[str], timeout_s: float) -> str:
        """Return what is wrong with tests that should pass without a mutant; usually nothing."""
        tree = self._free.get()
        try:
            word = run_tests(tree, tests, timeout_s)
        finally:
            self._free.put(tree)
        return "" if word == SURVIVED else f"{' '.join(tests)}: {word} without any mutant"

    def kill_tests(self) -> None:
        """Kill the tests that run in any copy, and all that they started."""
        for tree in self._trees:
            _kill_all(tree)

    def _write(self, path: Path, text: str) -> None:
        path.write_text(text, encoding="utf-8")
        moment = next(self._moments)  # else Python takes the compiled file of the last mutant
        os.utime(path, (moment, moment))


def run_tests(tree: Path, tests: Sequence[str], timeout_s: float) -> str:
    """Return `SURVIVED`, or how the tests of a tree ended otherwise."""
    plain = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    if all("::" in test for test in tests):  # chosen one by one, they may be those of `make soak`
        plain += ["-m", ""]
    else:
        plain += ["-m", "not soak and not quiet"]  # other mutants are tried at the same time
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output,
        subprocess.Popen(
            [sys.executable, "-m", "pytest", *plain, *tests],
            cwd=tree,
            env={**os.environ, "PYTHONPATH": str(tree / "src")},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as pytest,
    ):
        try:
            pytest.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return TIMED_OUT
        finally:
            with contextlib.suppress(ProcessLookupError):  # the usual case: the group is empty
                os.killpg(pytest.pid, signal.SIGKILL)
            _kill_all(tree)
            pytest.wait()
        output.seek(0)
        # Lines of a test's log may begin with ERROR, too.
        failed = re.findall(r"^(?:FAILED|ERROR) (tests/.+?)(?: - |$)", output.read(), re.MULTILINE)
    if pytest.returncode == 0:
        return SURVIVED
    if pytest.returncode in (4, 5) and not failed:  # no file of that name, or no test in it
        return NO_TEST
    return KILLED_BY + failed[0] if failed else f"killed (pytest ended with {pytest.returncode})"


def _kill_all(tree: Path) -> None:
    """Kill each process whose environment names a tree, in whatever session it is (on Linux).

    Helper processes of rote have sessions of their own, and a broken `rote web` may run on after
    its test has failed.
    """
    mark = os.fsencode(tree / "src")
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or belongs to another user
            if mark in (process / "environ").read_bytes():
                os.kill(int(process.name), signal.SIGKILL)


def run_all(
    copies: Copies, mutants: Sequence[Mutant], workers: int, timeout_s: float
) -> list[Result]:
    """Try every mutant; print each as it is done."""
    results = []
    with ThreadPoolExecutor(workers) as pool:
        tasks = [pool.submit(copies.try_one, mutant, timeout_s) for mutant in mutants]
        try:
            for number, task in enumerate(as_completed(tasks), start=1):
                result = task.result()
                results.append(result)
                shown = f"{number}/{len(tasks)} {result.word} in {result.seconds:.0f} s"
                print(f"{shown}: {result.mutant.title}", flush=True)
        except BaseException:  # Ctrl-C does not reach the sessions of the tests
            pool.shutdown(wait=False, cancel_futures=True)
            while not all(task.done() for task in tasks):
                copies.kill_tests()
                time.sleep(0.1)
            raise
    return results


def report(title: str, results: Sequence[Result]) -> float:
    """Print which mutants survive, and return the share that was killed."""
    killed = sum(result.killed for result in results)
    late = [result for result in results if result.word == TIMED_OUT]
    share = killed / len(results) if results else 1.0
    print(
        f"\n{title}: {killed} of {len(results)} killed ({100 * share:.0f} %), {len(late)} by time"
    )
    for result in late:  # on a loaded machine the tests may be late without the mutant
        print(f"  {TIMED_OUT}: {result.mutant.title}\n    {' '.join(result.mutant.tests)}")
    for result in results:
        if not result.killed:
            word = "survives" if result.word == SURVIVED else result.word
            print(f"  {word}: {result.mutant.title}\n    {' '.join(result.mutant.tests)}")
    return share


def main(arguments: Sequence[str] | None = None, root: Path = ROOT, fixed: Path = FIXED) -> int:
    """Try the fixed list and a sample; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sample", type=int, default=SAMPLE, help="Size of the random sample.")
    parser.add_argument("--seed", type=int, default=SEED, help="Seed of the sample.")
    parser.add_argument("--only", default="", help="Only files whose path contains this.")
    parser.add_argument("--no-fixed", action="store_true", help="Leave out the fixed list.")
    parser.add_argument("--list", action="store_true", help="Print the mutants, and run nothing.")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--timeout", type=float, default=TIMEOUT_S, help="Seconds for each mutant.")
    parser.add_argument("--no-baseline", action="store_true", help="Trust that the tests pass.")
    options = parser.parse_args(arguments)
    try:
        listed = [] if options.no_fixed else read_fixed(fixed, root)
        listed = [mutant for mutant in listed if options.only in mutant.file]
        drawn = sample(root, options.sample, options.seed, options.only)
        if options.list:
            print("\n".join(mutant.title for mutant in (*listed, *drawn)))
            return 0
        return _try(root, listed, drawn, options)
    except MutationError as error:
        print(error, file=sys.stderr)
        return 1


def _try(root: Path, listed: list[Mutant], drawn: list[Mutant], options: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="rote-mutants-") as folder:
        copies = Copies(root, Path(folder), options.workers)
        if not options.no_baseline:
            files = sorted({test for mutant in (*listed, *drawn) for test in mutant.tests})
            with ThreadPoolExecutor(options.workers) as pool:
                parts = [files[number :: options.workers] for number in range(options.workers)]
                checks = [
                    pool.submit(copies.check_passes, part, 4 * options.timeout)
                    for part in parts
                    if part
                ]
                if problems := [problem for check in checks if (problem := check.result())]:
                    raise MutationError("\n".join(problems))
        fixed = run_all(copies, listed, options.workers, options.timeout)
        random_ones = run_all(copies, drawn, options.workers, options.timeout)
    all_killed = report("the fixed list", fixed) == 1.0
    enough = report(f"the sample with seed {options.seed}", random_ones) >= LEAST_KILLED
    return 0 if all_killed and enough else 1


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
