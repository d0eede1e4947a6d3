"""Run as a program: commands of rote where some packages are not installed.

    without_packages.py '{"missing": ["aiortc", ...], "commands": [["sim", "--webrtc", "x"], ...]}'

The packages cannot be imported, and nothing can find them. What became of each command is printed
as JSON.
"""

import contextlib
import io
import json
import sys
import traceback
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from typing import Any

import virtual
from rote.platform import loop


class Without:
    """A finder of modules that does not find those of the missing packages."""

    def __init__(self, finder: Any, names: Sequence[str]) -> None:
        self._finder = finder
        self._names = frozenset(names)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return where a module is; None if it is in a missing package."""
        if name.partition(".")[0] in self._names:
            return None
        found: ModuleSpec | None = self._finder.find_spec(name, path, target)
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._finder, name)


def run(arguments: list[str]) -> dict[str, object]:
    """Run one command; return what became of it."""
    from rote.cli import main

    out, err, trace, code = io.StringIO(), io.StringIO(), "", None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(arguments)
        except BaseException:
            trace = traceback.format_exc()
    said = {"out": out.getvalue(), "err": err.getvalue()}
    return {"arguments": arguments, "code": code, "trace": trace, **said}


if __name__ == "__main__":
    wish = json.loads(sys.argv[1])
    finders: Any = [Without(finder, wish["missing"]) for finder in sys.meta_path]
    sys.meta_path[:] = finders
    loop.new_loop = virtual.VirtualLoop  # nobody waits for a simulated robot
    json.dump([run(arguments) for arguments in wish["commands"]], sys.stdout)
