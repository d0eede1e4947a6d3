"""`rote capture FILE` and `rote capture FILE --json` without the rest of the command line.

Importing all commands takes longer than reading a small capture. Every other form of the command,
and every error, is left to the command line.
"""

import gc
from collections.abc import Sequence
from pathlib import Path

from rote.platform.console_text import json_text


def show_report(arguments: Sequence[str]) -> bool:
    """Print the report on a capture; return False if the command line must do it.

    `arguments` are those after `capture`. If it returns False, nothing was printed.
    """
    as_json = list(arguments[1:]) == ["--json"]
    if not arguments or not (as_json or len(arguments) == 1):
        return False
    path = arguments[0]
    if path.startswith("-") or path.isidentifier() or not Path(path).is_file():
        return False
    # Almost nothing here is garbage, and collecting it takes a tenth of a small report's time.
    collects = gc.isenabled()
    gc.disable()
    try:
        return _try_show(path, as_json=as_json)
    finally:
        gc.freeze()
        if collects:
            gc.enable()


def _try_show(path: str, *, as_json: bool) -> bool:
    from rote.capture.report.report import report_capture  # noqa: PLC0415 - numpy, slow to load
    from rote.errors import RoteError  # noqa: PLC0415

    try:
        found = report_capture(path)
    except (RoteError, OSError):
        return False
    if as_json:
        print(json_text(found.document()), flush=True)  # noqa: T201
        return True
    from rote.capture.report import terminal  # noqa: PLC0415 - rich, slow to load

    terminal.show(terminal.console(), found)
    return True
