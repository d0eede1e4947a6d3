"""Run as a program: commands of rote where some packages are not installed.

    without_packages.py '[{"folder": "x", "missing": ["mcap"], "commands": [["robots"], ...]}]'

For each set of packages a process is forked in which they cannot be imported, and nothing can find
them; what needs no extra is imported once, before. What became of each command is printed as JSON,
one list for each set.
"""

import contextlib
import io
import json
import os
import sys
import traceback
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import rote.cli.takes
import rote.cli.teach
import rote.robot.message_robot
import rote.sim.server  # noqa: F401 - imported once, before the processes are forked
import virtual
from rote.cli import main
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
    out, err, trace, code = io.StringIO(), io.StringIO(), "", None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(arguments)
        except BaseException:
            trace = traceback.format_exc()
    said = {"out": out.getvalue(), "err": err.getvalue()}
    return {"arguments": arguments, "code": code, "trace": trace, **said}


def run_without(folder: Path, missing: list[str], commands: list[list[str]]) -> None:
    """Run commands in this process; write what became of them into the folder."""
    early = {name.partition(".")[0] for name in sys.modules} & {*missing}
    assert not early, f"imported before it could be missed: {early}"
    finders: Any = [Without(finder, missing) for finder in sys.meta_path]
    sys.meta_path[:] = finders
    os.chdir(folder)
    os.environ["ROTE_HOME"] = str(folder / "home")
    told = [run(arguments) for arguments in commands]
    (folder / "told.json").write_text(json.dumps(told), encoding="utf-8")


if __name__ == "__main__":
    loop.new_loop = virtual.VirtualLoop  # nobody waits for a simulated robot
    folders = []
    for wish in json.loads(sys.argv[1]):
        folders.append(Path(wish["folder"]))
        if (child := os.fork()) == 0:
            try:
                run_without(folders[-1], wish["missing"], wish["commands"])
            except BaseException:
                traceback.print_exc()
                sys.stderr.flush()
            os._exit(0)
        os.waitpid(child, 0)
    json.dump([json.loads((folder / "told.json").read_text()) for folder in folders], sys.stdout)
