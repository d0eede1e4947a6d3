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
"""Maximum address space of a child: a check holds several copies of a file of up to 256 MB."""
NICE = 5
"""Niceness of a child, compared with the process that stops the robot."""

_LENGTH = struct.Struct("<Q")
_THREAD_COUNT_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")

P = ParamSpec("P")
T = TypeVar("T")


class IdleChildren:
    """Child processes that wait for work; several pools may share them."""

    def __init__(self) -> None:
        self._children: list[_WorkChild] = []

    def take(self) -> "_WorkChild":
        """Return the child that was used last, whose caches are newest, or a new one."""
        return self._children.pop() if self._children else _WorkChild()

    def add(self, child: "_WorkChild") -> None:
        """Keep a child for later."""
        self._children.append(child)

    def close(self) -> None:
        """Kill the children, and wait for their end."""
        for child in self._children:
            child.kill()
        for child in self._children:
            child.reap()
        self._children.clear()


class WorkPool:
    """Runs functions in a few child processes.

    `close` ends them; those of `idle`, if given, stay for other pools until `idle` is closed.
    """

    def __init__(
        self,
        *,
        children: int = MAX_CHILDREN,
        max_s: float = MAX_S,
        idle: IdleChildren | None = None,
    ) -> None:
        self._max_s = max_s
        self._free_children = asyncio.Semaphore(children)
        # A thread for each child, which only waits for it.
        self._threads = ThreadPoolExecutor(children, thread_name_prefix="rote work")
        self._owns_idle = idle is None
        self._idle = idle or IdleChildren()
        self._busy: set[_WorkChild] = set()
        self._killed: list[_WorkChild] = []
        """Children of work that was cancelled; most were reaped by the thread that used them."""
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
            await self._free_children.acquire()
        finally:
            self._waiting -= 1
        child = self._idle.take()
        self._busy.add(child)
        try:
            loop = asyncio.get_running_loop()
            answer = await loop.run_in_executor(
                self._threads, child.run, function, args, options, self._max_s
            )
        except BaseException:
            child.kill()
            self._killed.append(child)
            raise
        else:
            if child.alive:
                self._idle.add(child)
        finally:
            self._busy.discard(child)
            self._free_children.release()
        return cast("T", _unwrap_answer(answer))

    def close(self) -> None:
        """End the work that is under way, and the pool's own idle children."""
        for child in self._busy:
            child.kill()
        if self._owns_idle:
            self._idle.close()
        self._threads.shutdown(wait=True, cancel_futures=True)
        for child in self._killed:
            child.reap()
        self._killed.clear()


def _unwrap_answer(answer: "tuple[bool, Any]") -> Any:
    """Return the result in a child's answer, or raise the error in it."""
    succeeded, value = answer
    if succeeded:
        return value
    if isinstance(value, MemoryError):
        raise ProblemError(
            413, "too-large", "this needs more memory than is allowed", "Use a shorter motion."
        )
    raise value


class _WorkChild:
    """The parent's end of one child process, which is started by its first work."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._ended = False

    @property
    def alive(self) -> bool:
        """Whether it accepts more work."""
        return not self._ended

    def run(
        self, function: Callable[..., Any], args: tuple[Any, ...], options: Any, max_s: float
    ) -> tuple[bool, Any]:
        """Run a function in the child; return whether it succeeded, and its result or error.

        Blocks the calling thread.
        """
        process = self._process or self._start_process()
        if process is None:
            return False, _child_ended_error()
        assert process.stdin is not None
        assert process.stdout is not None
        timed_out = threading.Event()

        def kill_after_timeout() -> None:
            timed_out.set()
            self.kill()

        timer = threading.Timer(max_s, kill_after_timeout)
        timer.start()
        try:
            _send_message(process.stdin, (function, args, options, max_s))
            answer: tuple[bool, Any] = _receive_message(process.stdout)
        except (OSError, EOFError):
            self.kill()
            self.reap()
            return False, _timeout_error(max_s) if timed_out.is_set() else _child_ended_error()
        finally:
            timer.cancel()
        return answer

    def _start_process(self) -> "subprocess.Popen[bytes] | None":
        paths = os.pathsep.join(path or os.curdir for path in sys.path)  # "": current folder
        environment = (
            os.environ | {"PYTHONPATH": paths} | dict.fromkeys(_THREAD_COUNT_VARIABLES, "1")
        )
        process = subprocess.Popen(  # noqa: S603 - this program
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


def _timeout_error(max_s: float) -> ProblemError:
    return ProblemError(
        413,
        "too-long",
        f"this takes longer than {max_s:.0f} s and was ended",
        "Use a shorter motion, or fewer edits at a time.",
    )


def _child_ended_error() -> ProblemError:
    return ProblemError(
        413,
        "ended",
        "the process that worked on this has ended",
        "Try again, or use a shorter motion.",
    )


def _send_message(pipe: IO[bytes], message: object) -> None:
    data = pickle.dumps(message, protocol=5)
    pipe.write(_LENGTH.pack(len(data)))
    pipe.write(data)
    pipe.flush()


def _receive_message(pipe: IO[bytes]) -> Any:
    (length,) = _LENGTH.unpack(_read_exactly(pipe, _LENGTH.size))
    return pickle.loads(_read_exactly(pipe, length))  # noqa: S301 - from this module only


def _read_exactly(pipe: IO[bytes], count: int) -> bytes:
    data = pipe.read(count)
    if len(data) < count:
        raise EOFError
    return data


# ---- in the child -------------------------------------------------------------------------------


def main() -> None:
    """Run the parent's requests until the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requests = sys.stdin.buffer
    # Answers go to the original standard output (1). What libraries print must not mix with them,
    # so it goes to standard error (2).
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    lower_priority(NICE)
    limit_memory(MAX_BYTES)
    while True:
        try:
            function, args, options, max_s = _receive_message(requests)
        except EOFError:
            return
        limit_cpu(max_s)  # in case the parent is gone and cannot kill it
        try:
            answer: tuple[bool, Any] = True, function(*args, **options)
        except Exception as error:  # sent to the parent
            answer = False, error
        _send_message(answers, answer)


if __name__ == "__main__":
    main()
