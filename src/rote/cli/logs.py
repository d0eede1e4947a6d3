"""Logging: -v prints to standard error, --log FILE appends to a file.

-v    requests to the robot, and its answers
-vv   everything
"""

import logging
import platform
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from rote.errors import BadRequestError
from rote.platform.atomic_file import check_new

VERBOSE_HELP = "Log requests to the robot and its answers; -vv logs everything."
LOG_HELP = "Append the complete log to this file, with timestamps."

_SECRET_OPTIONS = ("--key", "--token", "--pendant")
_LEVELS = (logging.WARNING, logging.INFO, logging.DEBUG)
"""The level for standard error by how often -v was given."""
_log = logging.getLogger("rote")


class _LogFormat(logging.Formatter):
    """Log lines with the local time of day, or, if `dated`, with the date and time in UTC."""

    def __init__(self, *, dated: bool) -> None:
        super().__init__("%(asctime)s " + ("%(levelname)s " if dated else "") + "%(message)s")
        self._dated = dated

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802
        """Return the time of a record, to the millisecond."""
        if self._dated:
            moment = datetime.fromtimestamp(record.created, UTC)
            return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        moment = datetime.fromtimestamp(record.created, UTC).astimezone()
        return moment.time().isoformat(timespec="milliseconds")


@contextmanager
def logging_as(arguments: Sequence[str]) -> Iterator[None]:
    """Log during the block according to -v and --log among the arguments.

    They are read before the command line is parsed, so that mistakes in it are logged too.
    """
    verbosity, file = _parse_arguments(arguments)
    if not verbosity and file is None:
        yield
        return
    former_level = _log.level
    handlers = _make_handlers(verbosity, file)
    for handler in handlers:
        _log.addHandler(handler)
    _log.setLevel(min(handler.level for handler in handlers))
    try:
        _log_start(arguments)
        yield
    finally:
        _log.setLevel(former_level)
        for handler in handlers:
            _log.removeHandler(handler)
            handler.close()


def _parse_arguments(arguments: Sequence[str]) -> tuple[int, Path | None]:
    """Return how often -v was given, and the file of --log."""
    verbosity = 0
    file = None
    previous = ""
    for argument in arguments:
        if argument == "--":
            break
        if previous == "--log":
            file = Path(argument)
        elif argument.startswith("--log="):
            file = Path(argument.removeprefix("--log="))
        elif argument == "--verbose":
            verbosity += 1
        elif argument.startswith("-v") and not argument.strip("-v"):  # -v, -vv and so on
            verbosity += argument.count("v")
        previous = argument
    return verbosity, file


def _make_handlers(verbosity: int, file: Path | None) -> list[logging.Handler]:
    """Return a handler for standard error, and one for the file, which logs everything."""
    stderr_handler: logging.Handler = logging.StreamHandler(sys.stderr)
    stderr_handler.setLevel(_LEVELS[min(verbosity, len(_LEVELS) - 1)])
    stderr_handler.setFormatter(
        _LogFormat(dated=False) if verbosity else logging.Formatter("%(message)s")
    )
    if file is None:
        return [stderr_handler]
    check_new(file, overwrite=True)  # appended to, never replaced
    try:
        file_handler = logging.FileHandler(file, encoding="utf-8")
    except OSError as error:
        raise BadRequestError(
            f"the log {file} cannot be written: {error.strerror}", "Name another file."
        ) from None
    file_handler.setLevel(logging.DEBUG)
    file_handler.setFormatter(_LogFormat(dated=True))
    return [stderr_handler, file_handler]


def _log_start(arguments: Sequence[str]) -> None:
    from rote import __version__

    system = f"Python {platform.python_version()} on {platform.system()} {platform.release()}"
    _log.debug("rote %s, %s: %s", __version__, system, " ".join(_hide_secrets(arguments)))


def _hide_secrets(arguments: Sequence[str]) -> Iterator[str]:
    """Yield the arguments with *** instead of each key, token and link."""
    previous = ""
    for argument in arguments:
        name, equals, _ = argument.partition("=")
        if previous in _SECRET_OPTIONS:
            yield "***"
        elif equals and name in _SECRET_OPTIONS:
            yield f"{name}=***"
        else:
            yield argument
        previous = argument


def log_exit(exit_code: int) -> None:
    """Log how the command ended."""
    _log.debug("ended with exit code %d", exit_code)


def log_error(error: BaseException) -> None:
    """Log an error with its traceback."""
    _log.debug("failed", exc_info=error)
