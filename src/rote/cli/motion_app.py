"""What the commands of `rote motion` share: the group, their arguments, and reading a file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rote.motion.formats import endings

if TYPE_CHECKING:
    from rote.motion.track import Track

app = typer.Typer(
    name="motion",
    help=f"Look at, mend, check and convert motions. Files end in {endings()}.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Source = Annotated[Path, typer.Argument(metavar="FILE", help="The motion to begin with.")]
Second = Annotated[Path, typer.Argument(metavar="OTHER", help="The second motion.")]
Out = Annotated[Path, typer.Argument(metavar="OUT", help="Where to write; its ending says how.")]


def load(path: Path, *, degrees: bool = False) -> "Track":
    """Read a motion. If there is no such file but a take of that name, the error says how to use
    it.
    """
    from rote.cli.takes import check_no_take
    from rote.motion.files import load as load_file

    check_no_take(path, "Make a file of it: rote takes export {name} {file}")
    return load_file(path, degrees=degrees)
