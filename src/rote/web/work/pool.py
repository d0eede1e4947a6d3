"""Runs long work in child processes, so that it never delays a stop.

The process that stops the robot only sends requests and waits. A child is started on demand, has a
lower priority, and is limited in memory and time. Work that takes too long or was cancelled is
ended by killing its process.
"""

import asyncio
import contextlib
import os
import pickle
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import IO, Any, ParamSpec, TypeVar, cast

from rote.platform.system import limit_cpu, limit_memory, lower_priority
from rote.web.server.problems import ProblemError

MAX_CHILDREN = 2
MAX_WAITING = 64
MAX_S = 60.0
MAX_BYTES = 3 * 2**30
"""Address space of a child. Files are read up to 256 MB, and a check holds some copies of one."""
NICE = 5
"""Niceness of a child, compared with the process that stops the robot."""

_LENGTH = struct.Struct("<Q")
_ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")

P = ParamSpec("P")
T = TypeVar("T")


class WorkPool:
    """Runs functions in a few child processes; `close` ends them."""

    def __init__(self, *, children: int = MAX_CHILDREN, most_s: float = MAX_S) -> None:
        self._most_s = most_s
        self._turn = asyncio.Semaphore(children)
        # A thread for each child, which only waits for it.
        self._threads = ThreadPoolExecutor(children, thread_name_prefix="rote work")
        self._idle: list[_WorkChild] = []
        self._busy: set[_WorkChild] = set()
        self._waiting = 0

    async def run(self, function: Callable[P, T], /, *args: P.args, **options: P.kwargs) -> T:
        """Return what `function` returns, or raise what it raises, in another process.

        `function` must be a module-level function; arguments and result must be picklable. On
        cancellation the child is killed at once.
        """
        if self._waiting >= MAX_WAITING:
            raise ProblemError(
                409, "overloaded", f"{MAX_WAITING} requests are already waiting", "Try again later."
            )
        self._waiting += 1
        try:
            await self._turn.acquire()
        finally:
            self._waiting -= 1
        # The most recent one still has its files in memory.
        child = self._idle.pop() if self._idle else _WorkChild()
        self._busy.add(child)
        try:
            loop = asyncio.get_running_loop()
            answer = await loop.run_in_executor(
                self._threads, child.ask, function, args, options, self._most_s
            )
        except BaseException:
            child.kill()
            raise
        else:
            if child.alive:
                self._idle.append(child)
        finally:
            self._busy.discard(child)
            self._turn.release()
        return cast("T", _unwrap_answer(answer))

    def close(self) -> None:
        """End all children, and the work that is under way."""
        for child in (*self._idle, *self._busy):
            child.kill()
        for child in self._idle:
            child.reap()
        self._idle.clear()
        self._threads.shutdown(wait=True, cancel_futures=True)


def _unwrap_answer(answer: "tuple[bool, Any]") -> Any:
    went_well, value = answer
    if went_well:
        return value
    if isinstance(value, MemoryError):
        raise ProblemError(
            413, "too-large", "this needs more memory than is allowed", "Use a shorter motion."
        )
    raise value


class _WorkChild:
    """One child process, as its parent sees it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._ended = False

    @property
    def alive(self) -> bool:
        """Whether it accepts more work."""
        return not self._ended

    def ask(
        self, function: Callable[..., Any], args: tuple[Any, ...], options: Any, most_s: float
    ) -> tuple[bool, Any]:
        """Run a function in the child and wait for the answer; blocks the calling thread."""
        process = self._process or self._start_process()
        if process is None:
            return False, _child_ended_error()
        assert process.stdin is not None
        assert process.stdout is not None
        late = threading.Event()

        def give_up() -> None:
            late.set()
            self.kill()

        timer = threading.Timer(most_s, give_up)
        timer.start()
        try:
            _send(process.stdin, (function, args, options, most_s))
            answer: tuple[bool, Any] = _receive(process.stdout)
        except (OSError, EOFError):
            self.kill()
            self.reap()
            return False, _timeout_error(most_s) if late.is_set() else _child_ended_error()
        finally:
            timer.cancel()
        return answer

    def _start_process(self) -> "subprocess.Popen[bytes] | None":
        paths = os.pathsep.join(path or os.curdir for path in sys.path)
        environment = os.environ | {"PYTHONPATH": paths} | dict.fromkeys(_ONE_THREAD, "1")
        process = subprocess.Popen(  # noqa: S603 - ourselves
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            start_new_session=True,  # Ctrl-C is for the parent, which ends its children itself
        )
        self._process = process
        if self._ended:  # killed while it was being started
            self.kill()
            self.reap()
            return None
        return process

    def kill(self) -> None:
        """Kill it without waiting for its end. Safe to repeat, and from any thread."""
        self._ended = True
        if self._process is not None and self._process.returncode is None:
            self._process.kill()

    def reap(self) -> None:
        """Wait for its end after `kill`, and close its pipes."""
        process = self._process
        if process is not None:
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()


def _timeout_error(most_s: float) -> ProblemError:
    return ProblemError(
        413,
        "too-long",
        f"this takes longer than {most_s:.0f} s and was ended",
        "Use a shorter motion, or fewer edits at a time.",
    )


def _child_ended_error() -> ProblemError:
    return ProblemError(
        413, "ended", "the process that worked on this has ended", "Try again; or a shorter motion."
    )


def _send(pipe: IO[bytes], message: object) -> None:
    data = pickle.dumps(message, protocol=5)
    pipe.write(_LENGTH.pack(len(data)))
    pipe.write(data)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> Any:
    (length,) = _LENGTH.unpack(_read_exactly(pipe, _LENGTH.size))
    return pickle.loads(_read_exactly(pipe, length))  # noqa: S301 - of our own other half alone


def _read_exactly(pipe: IO[bytes], count: int) -> bytes:
    data = pipe.read(count)
    if len(data) < count:
        raise EOFError
    return data


# ---- in the child -------------------------------------------------------------------------------


def main() -> None:
    """Run the parent's requests until it is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asks = sys.stdin.buffer
    # Output of libraries must not get between the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    lower_priority(NICE)
    limit_memory(MAX_BYTES)
    while True:
        try:
            function, args, options, most_s = _receive(asks)
        except EOFError:
            return
        limit_cpu(most_s)  # in case the parent is gone and cannot kill it
        try:
            answer: tuple[bool, Any] = True, function(*args, **options)
        except Exception as error:  # sent to the parent
            answer = False, error
        _send(answers, answer)


if __name__ == "__main__":
    main()
