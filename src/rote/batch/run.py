"""Runs a batch on the cores of this machine or on a Ray cluster, and keeps its results."""

import itertools
import multiprocessing
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import wait as wait_for_sentinel
from pathlib import Path
from typing import NamedTuple

from rote.batch.inputs import Input
from rote.batch.journal import Journal
from rote.batch.summary import BatchSummary, render_report, summarise
from rote.batch.task import Row, Task, hash_file, make_failed_row, process_input
from rote.errors import BadRequestError, MissingExtraError, RoteError
from rote.platform import system
from rote.platform.atomic_file import appearing

REPORT_NAME = "report.html"
MAX_FILE_S = 300.0
"""Maximum processor time for one motion. A motion that needs more is a failed row."""
_MAX_MEMORY_BYTES = 8 << 30
_QUEUED_PER_WORKER = 4
"""Motions that are handed out ahead."""
_MAX_CONNECT_S = 10.0
"""Time-out for finding out whether a Ray cluster listens at its address."""


class BatchProgress(NamedTuple):
    """How many motions of a batch are done."""

    done: int
    """The number of motions that are done, those of earlier runs included."""
    skipped: int
    """The number of motions that earlier runs had done."""


class BatchResult(NamedTuple):
    """The outcome of a run."""

    summary: BatchSummary
    processed: int
    skipped: int
    results: Path
    report: Path


def run_batch(
    task: Task,
    inputs: Iterable[Input],
    out: Path,
    *,
    workers: int | None = None,
    ray_address: str | None = None,
    retry_failed: bool = False,
    on_progress: Callable[[BatchProgress], None] = lambda progress: None,
) -> BatchResult:
    """Process all inputs that have no row in `out` yet, and return the summary of all rows.

    `workers` is the number of processes, by default one per core. With `ray_address` the motions
    are processed by a Ray cluster instead; all of its nodes must see the same files. Raises
    `BadRequestError` if `out` holds anything but the results of the same task, its disk is full, or
    the cluster cannot be reached.
    """
    if workers is not None and workers < 1:
        raise BadRequestError("a batch needs at least one worker", "Use 1 or more.")
    with Journal(out, task, retry_failed=retry_failed) as journal:
        _remove_partial_files(out)
        skipped = 0

        def select_pending() -> Iterator[Input]:
            nonlocal skipped
            for item in inputs:
                if journal.is_done(item):
                    skipped += 1
                else:
                    yield item

        if ray_address is None:
            rows = _process_locally(task, select_pending(), out, workers or os.cpu_count() or 1)
        else:
            rows = _process_on_ray(task, select_pending(), out, ray_address)
        processed = 0
        for row in rows:
            journal.append(row)
            processed += 1
            on_progress(BatchProgress(processed + skipped, skipped))
        on_progress(BatchProgress(processed + skipped, skipped))
        summary = summarise(journal.rows())
        report = out / REPORT_NAME
        with appearing(report) as file:
            file.write(render_report(summary, task).encode(errors="replace"))
    return BatchResult(summary, processed, skipped, journal.path, report)


def _remove_partial_files(out: Path) -> None:
    """Remove files that an earlier run, killed in the middle, did not finish."""
    for part in out.rglob(".*.part"):
        part.unlink(missing_ok=True)


# ---- processes of this machine ------------------------------------------------------------------


def _process_locally(task: Task, items: Iterator[Input], out: Path, workers: int) -> Iterator[Row]:
    """Yield each row when it is done; only a few motions are in memory at a time."""
    first_item = next(items, None)
    if first_item is None:
        return  # no process starts if nothing is left to do
    items = itertools.chain([first_item], items)
    pending: dict[Future[Row], Input] = {}
    pool = _start_pool(workers)
    try:
        while True:
            while (
                len(pending) < workers * _QUEUED_PER_WORKER
                and (item := next(items, None)) is not None
            ):
                pending[_submit(pool, task, item, out)] = item
            if not pending:
                return
            done, _ = wait(pending, return_when=FIRST_COMPLETED)
            if any(isinstance(future.exception(), BrokenProcessPool) for future in done):
                # One motion killed its process, and Python then gives up the whole pool. Which
                # motion it was is not known, so each gets a process of its own.
                interrupted = list(pending.items())
                pending.clear()
                _stop_pool(pool)
                for future, item in interrupted:
                    yield _get_or_reprocess(future, task, item, out)
                pool = _start_pool(workers)
            else:
                for future in done:
                    pending.pop(future)
                    yield future.result()
    finally:
        _stop_pool(pool)


def _submit(pool: ProcessPoolExecutor, task: Task, item: Input, out: Path) -> "Future[Row]":
    """Hand out a motion; if the pool is broken, the result is that error, as for motions before."""
    try:
        return pool.submit(_process_with_time_limit, task, item, out)
    except BrokenProcessPool as error:
        failed: Future[Row] = Future()
        failed.set_exception(error)
        return failed


def _get_or_reprocess(future: "Future[Row]", task: Task, item: Input, out: Path) -> Row:
    """Return a result that arrived before its pool broke, or process the motion again, alone."""
    if future.done() and future.exception() is None:
        return future.result()
    pool = _start_pool(1)
    try:
        return pool.submit(_process_with_time_limit, task, item, out).result()
    except BrokenProcessPool:
        return make_failed_row(
            item,
            hash_file(item.path),
            f"its process ended: it crashed, or needed more than {MAX_FILE_S:.0f} s or "
            f"{_MAX_MEMORY_BYTES >> 30} GB",
        )
    finally:
        _stop_pool(pool)


def _start_pool(workers: int) -> ProcessPoolExecutor:
    with _single_threaded_numpy():
        pool = ProcessPoolExecutor(
            workers,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_prepare_worker,
        )
        # A pool starts a process per submitted call. These calls start all of them now, while the
        # environment is set.
        for _ in range(workers):
            pool.submit(os.getpid)
    return pool


def _stop_pool(pool: ProcessPoolExecutor) -> None:
    """End the processes at once; the next run processes their motions again."""
    processes = list((pool._processes or {}).values())  # no public attribute has them
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.terminate()
    for process in processes:
        process.join()


@contextmanager
def _single_threaded_numpy() -> Iterator[None]:
    """Limit NumPy to one thread in processes started in this block: each core has a process."""
    name = "OPENBLAS_NUM_THREADS"
    before = os.environ.get(name)
    os.environ[name] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _prepare_worker() -> None:
    """Leave Ctrl-C to the parent, limit memory, and end when the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    system.limit_memory(_MAX_MEMORY_BYTES)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def end_with_parent() -> None:
        wait_for_sentinel([parent.sentinel])
        os._exit(1)

    threading.Thread(target=end_with_parent, name="rote parent", daemon=True).start()


def _process_with_time_limit(task: Task, item: Input, out: Path) -> Row:
    system.limit_cpu(MAX_FILE_S)
    return process_input(task, item, out)


# ---- Ray ----------------------------------------------------------------------------------------


def _process_on_ray(task: Task, items: Iterator[Input], out: Path, address: str) -> Iterator[Row]:
    """Yield rows as the nodes of a cluster complete them."""
    try:
        import ray  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingExtraError("a batch on a Ray cluster", "ray") from error
    _require_listener(address)
    try:
        ray.init(address=address, logging_level="error", log_to_driver=False)
    except (OSError, RuntimeError, ValueError) as error:
        raise _make_unreachable_error(address, error) from error
    try:
        remote_process_input = ray.remote(max_retries=1)(_process_with_time_limit)
        max_pending = max(1, int(ray.cluster_resources().get("CPU", 1))) * _QUEUED_PER_WORKER
        shared_task = ray.put(task)
        pending: dict[object, Input] = {}
        while True:
            while len(pending) < max_pending and (item := next(items, None)) is not None:
                # A node may have another working folder.
                absolute = Input(item.path.absolute(), item.name)
                reference = remote_process_input.remote(shared_task, absolute, out.absolute())
                pending[reference] = item
            if not pending:
                return
            for reference in ray.wait(list(pending), num_returns=1)[0]:
                item = pending.pop(reference)
                try:
                    row = ray.get(reference)
                except ray.exceptions.RayTaskError as error:
                    raise _unwrap_task_error(error.cause) from error
                except ray.exceptions.RayError as error:
                    row = make_failed_row(
                        item,
                        hash_file(item.path),
                        f"its process or node ended ({type(error).__name__}): it crashed, or "
                        f"needed more than {MAX_FILE_S:.0f} s",
                    )
                yield row
    finally:
        ray.shutdown()


def _require_listener(address: str) -> None:
    """Raise `BadRequestError` if nothing listens at HOST:PORT: Ray would try for minutes.

    Other forms of an address, such as `auto`, are left to Ray.
    """
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdecimal():
        return
    try:
        socket.create_connection((host, int(port)), timeout=_MAX_CONNECT_S).close()
    except (OSError, OverflowError) as error:
        raise _make_unreachable_error(address, error) from error


def _make_unreachable_error(address: str, error: Exception) -> BadRequestError:
    reason = (str(error).splitlines() or [type(error).__name__])[0]
    return BadRequestError(
        f"there is no Ray cluster at {address}: {reason}",
        "Start one with `ray start --head`, which prints its address, and repeat the command.",
    )


def _unwrap_task_error(cause: object) -> RoteError:
    """Return the error of a task as this process would raise it.

    `process_input` makes a row of every error of a motion, so all motions would have this one.
    """
    if isinstance(cause, RoteError):  # a full disk
        return cause
    return BadRequestError(
        f"a node of the Ray cluster cannot process motions: {cause}",
        "Install the same version of rote on each node.",
    )
