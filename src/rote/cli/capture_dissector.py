"""rote capture dissector: the wires of the robots in Wireshark."""

from pathlib import Path
from typing import Annotated

import typer

from rote.cli.options import Json, Overwrite, print_json
from rote.errors import BadRequestError


def dissector(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="Output file; by default standard output."),
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Write a dissector for Wireshark: teaching frames, A1 frames, the data channel."""
    from rote.capture.report.dissector import lua
    from rote.platform.atomic_file import appearing, check_new

    if overwrite and file is None:
        raise BadRequestError("--overwrite does nothing without a file", "Leave it out.")
    text = lua()
    if file is not None:
        check_new(file, overwrite)
        with appearing(file) as out:
            out.write(text.encode())
    if as_json:
        print_json({"text": text} if file is None else {"file": str(file)})
    elif file is None:
        print(text, end="")
    else:
        print(f"Written. Try: wireshark -X lua_script:{file}")
