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

_SECRETS = ("--key", "--token", "--pendant")
_LEVELS = (logging.WARNING, logging.INFO, logging.DEBUG)
_log = logging.getLogger("rote")


class _LogFormat(logging.Formatter):
    """Lines that begin with the time of day; those of a file with the date and the time in UTC."""

    def __init__(self, *, dated: bool) -> None:
        super().__init__("%(asctime)s " + ("%(levelname)s " if dated else "") + "%(message)s")
        self._dated = dated

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802
        """Return when it happened, to the millisecond."""
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
    level = _log.level
    handlers = _handlers(verbosity, file)
    for handler in handlers:
        _log.addHandler(handler)
    _log.setLevel(min(handler.level for handler in handlers))
    try:
        _log_start(arguments)
        yield
    finally:
        _log.setLevel(level)
        for handler in handlers:
            _log.removeHandler(handler)
            handler.close()


def _parse_arguments(arguments: Sequence[str]) -> tuple[int, Path | None]:
    """Return how often -v was given, and the file of --log."""
    verbosity, file = 0, None
    before = ""
    for argument in arguments:
        if argument == "--":
            break
        if before == "--log":
            file = Path(argument)
        elif argument.startswith("--log="):
            file = Path(argument.removeprefix("--log="))
        elif argument == "--verbose":
            verbosity += 1
        elif argument.startswith("-v") and not argument.strip("-v"):
            verbosity += argument.count("v")
        before = argument
    return verbosity, file


def _handlers(verbosity: int, file: Path | None) -> list[logging.Handler]:
    shown: logging.Handler = logging.StreamHandler(sys.stderr)
    shown.setLevel(_LEVELS[min(verbosity, len(_LEVELS) - 1)])
    shown.setFormatter(_LogFormat(dated=False) if verbosity else logging.Formatter("%(message)s"))
    if file is None:
        return [shown]
    check_new(file, overwrite=True)  # appended to, never replaced
    try:
        kept = logging.FileHandler(file, encoding="utf-8")
    except OSError as error:
        raise BadRequestError(
            f"the log {file} cannot be written: {error.strerror}", "Name another file."
        ) from None
    kept.setLevel(logging.DEBUG)
    kept.setFormatter(_LogFormat(dated=True))
    return [shown, kept]


def _log_start(arguments: Sequence[str]) -> None:
    from rote import __version__

    system = f"Python {platform.python_version()} on {platform.system()} {platform.release()}"
    _log.debug("rote %s, %s: %s", __version__, system, " ".join(_without_secrets(arguments)))


def _without_secrets(arguments: Sequence[str]) -> Iterator[str]:
    before = ""
    for argument in arguments:
        name, equals, _ = argument.partition("=")
        if before in _SECRETS:
            yield "***"
        elif equals and name in _SECRETS:
            yield f"{name}=***"
        else:
            yield argument
        before = argument


def log_exit(exit_code: int) -> None:
    """Log how the command ended."""
    _log.debug("ended with exit code %d", exit_code)


def log_error(error: BaseException) -> None:
    """Log an error with its traceback."""
    _log.debug("failed", exc_info=error)
