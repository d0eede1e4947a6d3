"""Work that takes long, in child processes: nothing that is done there holds up a stop.

The process that stops the robot only asks and waits. A child is started when there is work for it,
gives way to everything else on this computer, and is limited in memory and in time. Work that takes
too long, or that nobody waits for any more, ends with its process.
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
"""How far a child gives way to the process that stops the robot."""

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

        It is a function of a module, and all it gets and returns can be pickled. Cancelled, it is
        ended at once, wherever it is.
        """
        if self._waiting >= MAX_WAITING:
            raise ProblemError(
                409, "overloaded", f"{MAX_WAITING} pieces of work wait already", "Try again later."
            )
        self._waiting += 1
        try:
            await self._turn.acquire()
        finally:
            self._waiting -= 1
        # The one that worked last has its files in memory still.
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
        return cast("T", _unpacked(answer))

    def close(self) -> None:
        """End all children, and the work that is under way."""
        for child in (*self._idle, *self._busy):
            child.kill()
        for child in self._idle:
            child.bury()
        self._idle.clear()
        self._threads.shutdown(wait=True, cancel_futures=True)


def _unpacked(answer: "tuple[bool, Any]") -> Any:
    went_well, value = answer
    if went_well:
        return value
    if isinstance(value, MemoryError):
        raise ProblemError(
            413, "too-large", "this needs more memory than it may have", "Use a shorter motion."
        )
    raise value


class _WorkChild:
    """One child process, as its parent sees it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._ended = False

    @property
    def alive(self) -> bool:
        """Whether it can be asked again."""
        return not self._ended

    def ask(
        self, function: Callable[..., Any], args: tuple[Any, ...], options: Any, most_s: float
    ) -> tuple[bool, Any]:
        """Have it do something, and wait for the answer; by a thread that may wait."""
        process = self._process or self._begin()
        if process is None:
            return False, _ended()
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
            self.bury()
            return False, _too_late(most_s) if late.is_set() else _ended()
        finally:
            timer.cancel()
        return answer

    def _begin(self) -> "subprocess.Popen[bytes] | None":
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
            self.bury()
            return None
        return process

    def kill(self) -> None:
        """End it at once, without waiting for that. Safe to repeat, and from any thread."""
        self._ended = True
        if self._process is not None and self._process.returncode is None:
            self._process.kill()

    def bury(self) -> None:
        """Wait until it is gone, after a `kill`, and let go of its pipes."""
        process = self._process
        if process is not None:
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()


def _too_late(most_s: float) -> ProblemError:
    return ProblemError(
        413,
        "too-long",
        f"this takes longer than {most_s:.0f} s and was ended",
        "Use a shorter motion, or fewer edits at a time.",
    )


def _ended() -> ProblemError:
    return ProblemError(
        413, "ended", "the process that worked on this has ended", "Try again; or a shorter motion."
    )


def _send(pipe: IO[bytes], message: object) -> None:
    data = pickle.dumps(message, protocol=5)
    pipe.write(_LENGTH.pack(len(data)))
    pipe.write(data)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> Any:
    (length,) = _LENGTH.unpack(_exactly(pipe, _LENGTH.size))
    return pickle.loads(_exactly(pipe, length))  # noqa: S301 - of our own other half alone


def _exactly(pipe: IO[bytes], count: int) -> bytes:
    data = pipe.read(count)
    if len(data) < count:
        raise EOFError
    return data


# ---- in the child -------------------------------------------------------------------------------


def main() -> None:
    """Do what the parent asks for, until it is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asks = sys.stdin.buffer
    # What a library prints must not get between the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    lower_priority(NICE)
    limit_memory(MAX_BYTES)
    while True:
        try:
            function, args, options, most_s = _receive(asks)
        except EOFError:
            return
        limit_cpu(most_s)  # where the parent is gone and cannot end it
        try:
            answer: tuple[bool, Any] = True, function(*args, **options)
        except Exception as error:  # it is told whoever asked
            answer = False, error
        _send(answers, answer)


if __name__ == "__main__":
    main()
