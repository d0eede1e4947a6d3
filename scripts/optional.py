"""Which optional packages cannot be had here, so that the set-up goes on without them.

    optional.py said                     say which extras this Python is known not to have
    optional.py without LOCK OUT -- CMD  write LOCK without the packages of extras that CMD cannot
                                         install, one at a time; CMD gets `-r FILE` added

An extra that cannot be had must not keep anybody from the rest. Where nothing optional is at fault,
the second ends with 1 and the set-up fails as before.
"""

import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

from rote.platform.distribution import NOT_FROM  # noqa: E402 - found by the line above

_NAME = re.compile(r"[A-Za-z0-9._-]+")


def packages_of_extras(pyproject: Path = ROOT / "pyproject.toml") -> dict[str, str]:
    """Return the extra of each optional package, by the package's name."""
    extras = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    return {
        normal(found[0]): extra
        for extra, wanted in extras.items()
        if extra != "all"
        for one in wanted
        if (found := _NAME.match(one))
    }


def normal(name: str) -> str:
    """Return a package's name as lock files write it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def blocks(lock: str) -> dict[str, str]:
    """Return the lines of a lock file that belong to each package, by its name."""
    found: dict[str, str] = {}
    name = ""
    for line in lock.splitlines(keepends=True):
        start = _NAME.match(line)
        if start and "==" in line:
            name = normal(start[0])
        if name:
            found[name] = found.get(name, "") + line
    return found


def without(lock: str, left_out: set[str]) -> str:
    """Return a lock file without some packages."""
    return "".join(lines for name, lines in blocks(lock).items() if name not in left_out)


def unavailable(lock: str, install: list[str]) -> dict[str, str]:
    """Return the optional packages that cannot be installed, each with its extra."""
    known = blocks(lock)
    missing = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, extra in packages_of_extras().items():
            if name not in known:
                continue
            one = Path(folder) / f"{name}.lock"
            one.write_text(known[name], encoding="utf-8")
            done = subprocess.run([*install, "-r", str(one)], capture_output=True, check=False)
            if done.returncode:
                missing[name] = extra
    return missing


def main(arguments: list[str]) -> int:
    """Do what the arguments say; return the exit code."""
    if arguments == ["said"]:
        for extra, (library, version) in NOT_FROM.items():
            if sys.version_info[:2] >= version:
                now = ".".join(map(str, sys.version_info[:2]))
                print(f"Left out: {extra}, because {library} has no package for Python {now}.")
        return 0
    what, source, target, dashes, *install = arguments
    assert (what, dashes) == ("without", "--"), __doc__
    lock = Path(source).read_text(encoding="utf-8")
    missing = unavailable(lock, install)
    for name, extra in missing.items():
        print(f"Left out: {extra}, because {name} cannot be installed here.")
    Path(target).write_text(without(lock, {*missing}), encoding="utf-8")
    return 0 if missing else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
