"""`rote capture FILE` and `rote capture FILE --json` without the rest of the command line.

Importing all commands takes longer than reading a small capture. Every other form of the command,
and every error, is left to the command line.
"""

import gc
from collections.abc import Sequence
from pathlib import Path

from rote.platform.console_text import json_text


def show_report(arguments: Sequence[str]) -> bool:
    """Print the report on a capture, if the arguments are a file and perhaps `--json`.

    `arguments` are those after `rote capture`. Return False, with nothing printed, if the full
    command line must handle them.
    """
    as_json = list(arguments[1:]) == ["--json"]
    if not arguments or not (as_json or len(arguments) == 1):
        return False
    path = arguments[0]
    # A word that looks like an identifier may be a command, such as `live`.
    if path.startswith("-") or path.isidentifier() or not Path(path).is_file():
        return False
    # There is almost no garbage, and the search for it takes a tenth of a small report's time.
    # `freeze` exempts the present objects from the search at the program's end too.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return _try_show(path, as_json=as_json)
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()


def _try_show(path: str, *, as_json: bool) -> bool:
    """Print the report; return False, with nothing printed, if the capture cannot be read."""
    from rote.capture.report.report import report_capture  # noqa: PLC0415 - numpy, slow to load
    from rote.errors import RoteError  # noqa: PLC0415

    try:
        report = report_capture(path)
    except (RoteError, OSError):
        return False
    if as_json:
        print(json_text(report.document()), flush=True)  # noqa: T201
        return True
    from rote.capture.report import terminal  # noqa: PLC0415 - rich, slow to load

    terminal.print_report(terminal.make_console(), report)
    return True
