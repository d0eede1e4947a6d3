"""Batches: check, convert, fit or simulate many motions, on all cores or on a Ray cluster.

`run_batch` writes a row for each motion to a results file as soon as it is done. A batch that was
interrupted, even by `kill -9`, continues where it stopped.
"""

from rote.batch.inputs import Input, Inputs, find_inputs, find_takes
from rote.batch.run import BatchProgress, run_batch
from rote.batch.summary import BatchSummary
from rote.batch.task import Task, TaskKind

__all__ = [
    "Input",
    "Inputs",
    "BatchProgress",
    "BatchSummary",
    "Task",
    "TaskKind",
    "find_inputs",
    "find_takes",
    "run_batch",
]
