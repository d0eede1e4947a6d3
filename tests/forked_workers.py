"""Run the tests in several processes that one collection serves: `pytest --workers N`.

pytest collects once, which takes some ten seconds of processor time; xdist does so in every worker.
The workers are forked from the process that collected, so the tests are there already. Whenever a
worker is nearly done it gets the next chunk: neighbours of one file, so that fixtures of a module
are rarely set up twice. Half of the workers begin with the patient tests, one file each at a time.

A worker that ends without notice fails the test that it ran, and another one takes its place.
"""

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from io import StringIO
from itertools import groupby
from multiprocessing.connection import Connection, Pipe, wait
from tempfile import TemporaryFile
from typing import Any

import pytest
from _pytest import runner
from _pytest.capture import FDCapture
from _pytest.config import create_terminal_writer

OPTION = "--workers"
LARGEST_CHUNK = 30
"""Maximum number of tests in a chunk: the remainder of a long file goes to other workers."""

Chunk = deque[int]
"""The indices of tests in the session's list."""
_REPORTER = "terminalreporter"


def add_options(parser: pytest.Parser) -> None:
    """Add `--workers N`."""
    parser.addoption(
        OPTION,
        type=int,
        default=1,
        metavar="N",
        help="run the tests in N processes, forked after one collection",
    )


def register(config: pytest.Config, is_patient: Callable[[pytest.Item], bool]) -> None:
    """Run the tests in several processes if requested and possible."""
    count: int = config.getoption(OPTION)
    if count > 1 and hasattr(os, "fork"):
        config.pluginmanager.register(_Coordinator(count, is_patient))


def make_chunks(items: Iterable[pytest.Item]) -> Iterator[Chunk]:
    """Yield the indices of neighbours of one file."""
    for _, group in groupby(enumerate(items), lambda pair: pair[1].path):
        yield deque(index for index, _ in group)


def split_chunk(chunk: Chunk) -> Iterator[Chunk]:
    """Yield parts of a chunk that are not too large."""
    indices = list(chunk)
    for first in range(0, len(indices), LARGEST_CHUNK):
        yield deque(indices[first : first + LARGEST_CHUNK])


class _Worker:
    """A forked process, as the coordinator sees it."""

    def __init__(self, pid: int, connection: Connection, *, prefers_patient: bool) -> None:
        self.pid = pid
        self.connection = connection
        self.prefers_patient = prefers_patient
        self.pending: Chunk = deque()
        """The tests that it has been given and has not ended, in their order."""


class _Coordinator:
    """Hands out the tests, and passes the reports of the workers on to pytest."""

    def __init__(self, count: int, is_patient: Callable[[pytest.Item], bool]) -> None:
        self._count = count
        self._is_patient = is_patient
        self._workers: list[_Worker] = []
        self._patient: deque[Chunk] = deque()
        self._others: deque[Chunk] = deque()
        self._forked = 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if session.config.option.collectonly or session.testsfailed:
            return None  # what pytest does then is right for this process, too
        reporter = session.config.pluginmanager.getplugin(_REPORTER)
        if reporter is not None:
            reporter.showfspath = False  # reports of different files are mixed
        for chunk in make_chunks(session.items):
            if self._is_patient(session.items[chunk[0]]):
                self._patient.append(chunk)
            else:
                self._others += split_chunk(chunk)
        session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        try:
            for number in range(min(self._count, len(self._patient) + len(self._others))):
                self._fork(session, prefers_patient=number < self._count // 2)
            while self._workers and not (session.shouldfail or session.shouldstop):
                for connection in wait([worker.connection for worker in self._workers]):
                    worker = next(one for one in self._workers if one.connection is connection)
                    self._receive(session, worker)
        finally:
            self._end_workers()
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        return True

    def _fork(
        self, session: pytest.Session, *, prefers_patient: bool, chunk: Chunk | None = None
    ) -> None:
        here, there = Pipe()
        self._forked += 1
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            here.close()
            for other in self._workers:
                other.connection.close()
            _run_worker(session, there, self._forked)
        there.close()
        worker = _Worker(pid, here, prefers_patient=prefers_patient)
        self._workers.append(worker)
        self._give_chunk(worker, chunk or self._next_chunk(worker))

    def _next_chunk(self, worker: _Worker) -> Chunk:
        first, second = self._others, self._patient
        if worker.prefers_patient:
            first, second = second, first
        queue = first or second
        return queue.popleft() if queue else deque()

    def _give_chunk(self, worker: _Worker, chunk: Chunk) -> None:
        worker.pending += chunk
        worker.connection.send(list(chunk))

    def _receive(self, session: pytest.Session, worker: _Worker) -> None:
        try:
            what, content = worker.connection.recv()
        except (EOFError, OSError):
            self._replace(session, worker)
            return
        hook = session.config.hook
        if what == "more":
            self._give_chunk(worker, self._next_chunk(worker))
        elif what == "report":
            report = hook.pytest_report_from_serializable(config=session.config, data=content)
            hook.pytest_runtest_logreport(report=report)
        else:
            assert what == "ended"
            worker.pending.popleft()
            item = session.items[content]
            hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)

    def _replace(self, session: pytest.Session, worker: _Worker) -> None:
        """Reap a worker; if it had tests left, fail the first and let a new worker run the rest."""
        self._workers.remove(worker)
        worker.connection.close()
        code = os.waitstatus_to_exitcode(os.waitpid(worker.pid, 0)[1])
        if not worker.pending:
            return
        item = session.items[worker.pending.popleft()]
        report = pytest.TestReport(
            nodeid=item.nodeid,
            location=item.location,
            keywords={},
            outcome="failed",
            longrepr=f"the process that ran this test ended with {code}",
            when="call",
        )
        session.config.hook.pytest_runtest_logreport(report=report)
        rest = worker.pending or self._next_chunk(worker)
        if rest:
            self._fork(session, prefers_patient=worker.prefers_patient, chunk=rest)

    def _end_workers(self) -> None:
        """Let the workers end after the tests that they run, and wait for that."""
        for worker in self._workers:
            with suppress(OSError):
                worker.connection.send(None)
        for worker in self._workers:
            worker.connection.close()
            os.waitpid(worker.pid, 0)
        self._workers.clear()


class _Silence:
    """Stands in for the terminal reporter of pytest in a worker, which prints nothing."""

    def __init__(self, config: pytest.Config) -> None:
        self._tw = create_terminal_writer(config, StringIO())


class _Sender:
    """Sends the reports of a worker to the coordinator."""

    def __init__(self, config: pytest.Config, connection: Connection) -> None:
        self._config = config
        self._connection = connection

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        content: Any = self._config.hook.pytest_report_to_serializable(
            config=self._config, report=report
        )
        self._connection.send(("report", content))


def _run_worker(session: pytest.Session, connection: Connection, number: int) -> None:
    """Run chunks of tests until there is none left, then end this process."""
    code = 1
    try:
        _prepare_worker(session.config, connection, number)
        pending: Chunk = deque(connection.recv())
        while pending:
            index = pending.popleft()
            if not pending:  # fixtures stay until pytest knows what comes next
                connection.send(("more", None))
                pending += connection.recv() or ()
            following = session.items[pending[0]] if pending else None
            item = session.items[index]
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            connection.send(("ended", index))
            if connection.poll():  # it is to end
                break
        code = 0
    finally:
        _end_worker(session, code)


def _end_worker(session: pytest.Session, code: int) -> None:
    try:
        runner.pytest_sessionfinish(session)  # ends the fixtures that are left
    finally:
        os._exit(code)  # what ends this process otherwise belongs to the one that it is a copy of


def _prepare_worker(config: pytest.Config, connection: Connection, number: int) -> None:
    """Take from a worker what it shares with the coordinator: the terminal, the files with captured
    output, and the folder of temporary files, which is searched for each new one.
    """
    plugins = config.pluginmanager
    # The file objects must stay: an imported package may have kept one as its default stderr.
    captured = plugins.getplugin("capturemanager")._global_capturing
    for stream in filter(None, (captured.out, captured.err)):
        if isinstance(stream, FDCapture):
            with TemporaryFile(buffering=0) as own:
                os.dup2(own.fileno(), stream.tmpfile.fileno(), inheritable=False)
    if plugins.hasplugin(_REPORTER):
        plugins.unregister(name=_REPORTER)
        plugins.register(_Silence(config), _REPORTER)
    plugins.register(_Sender(config, connection))
    folder = config._tmp_path_factory.getbasetemp() / f"worker{number}"  # type: ignore[attr-defined]
    folder.mkdir(mode=0o700)
    config._tmp_path_factory._basetemp = folder  # type: ignore[attr-defined]
