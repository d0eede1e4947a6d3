"""Pieces of work for a child process, in a module that is quick to import there."""

import os
import time
from pathlib import Path

import numpy as np

from rote.errors import BadRequestError


def double(value: int) -> int:
    return 2 * value


def process() -> int:
    return os.getpid()


def fail(message: str) -> None:
    raise BadRequestError(message, "Do it otherwise.")


def sleep(seconds: float, left: Path | None = None) -> int:
    if left is not None:
        left.write_text(str(os.getpid()))
    time.sleep(seconds)
    return os.getpid()


def fill() -> int:
    return len(np.ones(2**40))


def print_and_die() -> None:
    print("to standard output")
    os.abort()
