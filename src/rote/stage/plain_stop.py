"""`rote show stop`, which must be fast: it imports neither a parser nor a console."""

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from rote.errors import RoteError
from rote.stage import DEFAULT_FOLDER
from rote.stage.watcher import watching


def run_stop(arguments: Sequence[str]) -> int | None:
    """Stop all robots of a stage, print the result and return the exit code.

    `arguments` are those after `rote show stop`. Return None without any effect if they are more
    than a folder and `--json`: the complete command line explains them. Raises `RoteError` if the
    stop did not reach the stage.
    """
    folder, as_json, remaining = DEFAULT_FOLDER, False, list(arguments)
    while remaining:
        argument = remaining.pop(0)
        if argument == "--json":
            as_json = True
        elif argument == "--stage" and remaining:
            folder = Path(remaining.pop(0))
        elif argument.startswith("--stage="):
            folder = Path(argument.partition("=")[2])
        else:
            return None
    return asyncio.run(stop_stage(folder, as_json=as_json))


async def stop_stage(folder: Path, *, as_json: bool) -> int:
    """Stop all robots of a stage, print the result and return the exit code."""
    try:
        async with watching(folder) as watcher:
            unconfirmed = await watcher.stop("rote show stop")
            answered, missing = sorted(watcher.agents), watcher.missing
    except RoteError as error:
        error.headline = "the stop did NOT reach the stage; use the remotes (L2+B)"
        raise
    if as_json:
        document = {
            "robots": answered,
            "unconfirmed": list(unconfirmed),
            "unheard": list(missing),
        }
        lines = [json.dumps(document)]
    else:
        lines = _describe_result(answered, unconfirmed, missing)
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if unconfirmed or not answered else 0


def _describe_result(
    answered: Sequence[str], unconfirmed: Sequence[str], missing: Sequence[str]
) -> list[str]:
    lines = []
    if unconfirmed:
        lines.append(f"Not confirmed by {', '.join(unconfirmed)}: use the remote!")
    if stopped := [name for name in answered if name not in unconfirmed]:
        lines.append(f"Stopped: {', '.join(stopped)}.")
    if not answered:
        lines.append("No robot answered on the stage. If a robot moves, use its remote!")
    elif missing:
        lines.append(f"No answer from: {', '.join(missing)}. If one of them moves, use its remote!")
    return lines
