"""Can this be released? Build the archives in a clean clone, and use the wheel as a stranger would.

    release_check.py                      every Python from 3.11 on that uv finds here
    release_check.py --only-this-python   the one that runs this

The source archive and the wheel are built from what is committed, by the standard build, and looked
into. Then the wheel is installed into fresh environments, without extras, with all of them, and
once with the lowest versions that it allows. In each one rote is used: the demonstration, teaching,
takes, playing, a simulated robot on every wire, the page, the completion of a shell. One more
environment has the extras that the README recommends, and each command of the README is started in
it. The size of what is installed has a limit. For processors of ARM only the packages are resolved:
each must have a wheel. Three environments are used at a time, since most of it is waiting for
robots. The archives stay in dist/.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from email.parser import Parser
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
NAME = "rote-robot"
LOWEST = (3, 11)
SUPPORTED = ((3, 11), (3, 12), (3, 13), (3, 14))
README_EXTRAS = "web,mcap"
SIZES_MB = {"no extras": 78, f"[{README_EXTRAS}]": 112, "all extras": 640}
"""What an environment takes on disk, as the README states it. It may take 15 % more."""
ARM = ("aarch64-unknown-linux-gnu", "aarch64-apple-darwin")
SCRIPTS = "Scripts" if sys.platform == "win32" else "bin"
IN_EVERY_WHEEL = (
    "rote/__init__.py",
    "rote/py.typed",
    "rote/sync.pyi",
    "rote/motion/track_edits.pyi",
    "rote/model/g1_shapes.json",
    "rote/capture/report/dissector.lua",
)
IN_A_WHEEL_WITH_PAGE = (
    "rote/web/static/index.html",
    "rote/web/static/LICENCES.txt",
    "rote/web/model/g1.glb",
    "rote/web/model/LICENCES.txt",
)
BUNDLED = ("three", "preact", "@preact/signals")
_TIME_LIMIT_S = 180
_AT_A_TIME = 3


class UnfitError(Exception):
    """Something that keeps this from being released."""


def need(sound: object, message: str) -> None:
    """Raise `UnfitError` with a message unless something is sound."""
    if not sound:
        raise UnfitError(message)


def run(*command: "str | Path", **how: Any) -> str:
    """Run a program and return its output; a failure is an `UnfitError` with what it said."""
    arguments = list(map(str, command))
    done: subprocess.CompletedProcess[str] = subprocess.run(
        arguments, text=True, capture_output=True, check=False, **how
    )
    said = f"{done.stdout}\n{done.stderr}".strip()
    name = " ".join(map(str, command))
    need(done.returncode == 0, f"{name} ended with {done.returncode}:\n{said[-2000:]}")
    return done.stdout


# ---- the archives -------------------------------------------------------------------------------


def build(folder: Path) -> tuple[Path, Path]:
    """Build source archive and wheel from a clean clone, as a packager would; return both."""
    clone, out = folder / "clone", folder / "dist"
    run("git", "clone", "--quiet", "--no-hardlinks", ROOT, clone)
    run(sys.executable, "-m", "uv", "build", "--quiet", "--out-dir", out, clone)
    (source,) = out.glob("*.tar.gz")
    (wheel,) = out.glob("*.whl")
    return source, wheel


def look_into_source(source: Path) -> None:
    """Check what is in the source archive, and what is not."""
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for wanted in ("pyproject.toml", "hatch_build.py", "page/src/main.tsx", "tests/conftest.py"):
        need(wanted in names, f"{source.name} lacks {wanted}")
    for wanted in IN_A_WHEEL_WITH_PAGE:
        need(f"src/{wanted}" in names, f"{source.name} lacks src/{wanted}")
    strange = [name for name in names if re.search(r"node_modules|\.venv|__pycache__|\.git/", name)]
    need(not strange, f"{source.name} holds {strange[:3]}")


def look_into_wheel(wheel: Path, *, page: bool = True) -> Message:
    """Check what is in the wheel; return its metadata."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (about,) = [name for name in names if name.endswith(".dist-info/METADATA")]
        metadata = Parser().parsestr(archive.read(about).decode("utf-8"))
        texts = {
            name: archive.read(name).decode("utf-8")
            for name in names
            if name.endswith(".txt") and name.startswith("rote/")
        }
    for wanted in (*IN_EVERY_WHEEL, *(IN_A_WHEEL_WITH_PAGE if page else ())):
        need(wanted in names, f"{wheel.name} lacks {wanted}")
    strange = [name for name in names if not name.startswith(("rote/", "rote_robot-"))]
    need(not strange, f"{wheel.name} holds {strange[:3]}")
    kinds = {Path(name).suffix for name in names if name.startswith("rote/")}
    known = {
        ".py",
        ".pyi",
        ".lua",
        ".typed",
        ".json",
        ".html",
        ".js",
        ".css",
        ".svg",
        ".txt",
        ".glb",
    }
    need(kinds <= known, f"{wheel.name} holds files of the kinds {sorted(kinds - known)}")
    need(metadata["Name"] == NAME, f"the wheel is called {metadata['Name']}")
    need(
        metadata["Author"] and metadata["License-Expression"],
        "the author or the licence is missing",
    )
    if page:
        licences = texts["rote/web/static/LICENCES.txt"]
        for package in BUNDLED:
            need(f" {package} " in licences, f"the licence of {package} is not in the wheel")
        need(
            "BSD 3-Clause" in texts["rote/web/model/LICENCES.txt"]
            or "Redistribution and use" in texts["rote/web/model/LICENCES.txt"],
            "the licence of the robot's shapes is not in the wheel",
        )
    return metadata


# ---- an environment -----------------------------------------------------------------------------


class Environment:
    """A fresh Python environment with rote in it, and a home of its own."""

    def __init__(self, folder: Path, python: str) -> None:
        self.folder = folder
        self.home = folder / "home"
        uv: list[str | Path] = [sys.executable, "-m", "uv"]
        run(*uv, "venv", "--quiet", "--python", python, folder / "venv")
        self.home.mkdir(parents=True)
        self._install = [*uv, "pip", "install", "--quiet", "--python", folder / "venv"]
        self.variables = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("ROTE_", "PYTHON"))},
            "ROTE_HOME": str(self.home),
            "NO_COLOR": "1",
            "PYTHONUTF8": "1",
        }

    def install(self, *what: str) -> None:
        """Install packages, from the cache where it has them."""
        try:
            run(*self._install, "--offline", *what)
        except UnfitError:
            run(*self._install, *what)

    def program(self, name: str) -> str:
        """Return the path of a program here."""
        return str(self.folder / "venv" / SCRIPTS / name)

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        """Start `rote`."""
        return subprocess.Popen(
            [self.program("rote"), *arguments],
            cwd=self.home,
            env=self.variables,
            text=True,
            encoding="utf-8",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def ask(self, *arguments: str, code: int | None = 0) -> tuple[str, str]:
        """Run `rote` to its end; return what it printed on both streams.

        `code` is the exit code that it must have; None for any.
        """
        process = self.start(*arguments)
        try:
            out, err = process.communicate(timeout=_TIME_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            raise UnfitError(f"rote {' '.join(arguments)} did not end") from None
        said = f"rote {' '.join(arguments)} ended with {process.returncode}:\n{out}{err}"
        need(code in {None, process.returncode} and "Traceback" not in err, said)
        return out, err

    @contextmanager
    def serving(self, *arguments: str) -> "Iterator[dict[str, Any]]":
        """Run `rote` as a server in the block; yield what it says when it is ready."""
        process = self.start(*arguments, "--json")
        called = f"rote {' '.join(arguments)}"
        too_late = threading.Timer(_TIME_LIMIT_S, process.kill)
        too_late.start()
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            need(line, f"{called} did not begin")
            yield json.loads(line)
            process.terminate()
            _, err = process.communicate()
            need("Traceback" not in err, f"{called}:\n{err}")
        except UnfitError as error:
            process.kill()
            raise UnfitError(f"{error}\n{process.communicate()[1]}".rstrip()) from None
        finally:
            too_late.cancel()
            process.kill()
            process.wait()


# ---- what a stranger does -----------------------------------------------------------------------


def try_core(here: Environment, version: str) -> None:
    """Use what needs no extra."""
    out, _ = here.ask("--version")
    need(f"rote {version}, Python 3." in out, f"rote --version says {out!r}")
    here.ask("robots", "--json")
    _complete(here)
    _teach(here, ".npz")
    for wire, extra in (("--webrtc", "webrtc"), ("--dds", "dds")):
        _, err = here.ask("sim", wire, "127.0.0.1" if wire == "--webrtc" else "lo", code=1)
        need(f"{NAME}[{extra}]" in err or "has no package for Python" in err, err)
    _, err = here.ask("web", "--no-browser", code=1)
    need(f"pip install '{NAME}[web]'" in err, err)


def _complete(here: Environment) -> None:
    """Ask as a shell does when Tab is pressed."""
    script, _ = here.ask("completion", "bash")
    need("complete -F" in script, f"rote completion bash says {script!r}")
    question = here.variables | {"_ROTE_COMPLETE": "fish", "_ROTE_LINE": "rote te"}
    offered = run(here.program("rote"), env=question, cwd=here.home)
    need(offered.startswith("teach"), f"a shell is offered {offered!r}")


def _teach(here: Environment, ending: str) -> None:
    here.ask("teach", "hello", "--hand", "wave", "--seconds", "1", "--json")
    out, _ = here.ask("takes", "list", "--json")
    need('"hello"' in out, f"rote takes list says {out!r}")
    kept = list((here.home / "takes").glob("hello*"))
    need([path.suffix for path in kept] == [ending], f"the take is kept as {kept}")


def try_demo(here: Environment) -> None:
    """Run the demonstration, and play what was taught."""
    here.ask("demo")
    here.ask("play", "hello", "--speed", "2", "--json")


def try_wires(here: Environment, wires: "dict[str, tuple[str, ...]]") -> None:
    """Start a simulated robot on each wire and ask for its state."""
    for wire, options in wires.items():
        with here.serving("sim", *options) as ready:
            out, _ = here.ask("status", "--robot", ready["url"], "--json")
            need(json.loads(out), f"{wire}: no state")


def try_page(here: Environment) -> None:
    """Serve the page and fetch all that it names."""
    with here.serving("web", "--no-browser", "--port", "0") as ready:
        shown = _fetched(ready["url"])
        named = re.findall(r'(?:src|href)="\./([^"]+)"', shown.decode("utf-8"))
        need(any(name.endswith(".js") for name in named), "the page names no script")
        for name in (*named, "LICENCES.txt"):
            need(_fetched(ready["url"] + name), f"the page's {name} is empty")


def _fetched(address: str) -> bytes:
    with urllib.request.urlopen(address, timeout=30) as answer:  # noqa: S310 # ours
        whole: bytes = answer.read()
    return whole


def own_host(domain: int) -> str:
    """Return an address that no other trial uses: a robot on WebRTC has one port."""
    return "127.0.0.1" if sys.platform == "darwin" else f"127.0.0.{domain}"


def wires_here(python: tuple[int, int], domain: int) -> dict[str, tuple[str, ...]]:
    """Return how to start a simulated robot on each wire that this system and Python have."""
    wires = {
        "udp": ("--udp", "127.0.0.1:0", "--store", ":memory:"),
        "a1": ("--a1", "127.0.0.1:0"),
        "webrtc": ("--webrtc", own_host(domain), "--serial", "", "--store", ":memory:"),
    }
    if sys.platform == "linux" and python < (3, 14):
        wires["dds"] = ("--dds", "lo", "--domain", str(domain), "--store", ":memory:")
    if sys.platform == "win32":  # the client of an A1 has no process to send from there
        del wires["a1"]
    return wires


def check_size(here: Environment, what: str) -> None:
    """Raise `UnfitError` if what is installed takes more than its limit."""
    files = (path for path in (here.folder / "venv").rglob("*") if path.is_file())
    took_mb, most_mb = sum(path.lstat().st_size for path in files) / 1e6, 1.15 * SIZES_MB[what]
    print(f"    {what}: {took_mb:.0f} MB of at most {most_mb:.0f}", flush=True)
    need(took_mb <= most_mb, f"{what} take {took_mb:.0f} MB, more than {most_mb:.0f}")


def readme_commands(readme: str) -> list[list[str]]:
    """Return the arguments of every `rote` command in the shell blocks of the README, in order."""
    blocks = re.findall(r"^```sh\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    split = [shlex.split(line, comments=True) for line in lines]
    return [words[1:] for words in split if words[:1] == ["rote"]]


def try_readme(here: Environment, host: str) -> None:
    """Start each command of the README, with `host` for this computer; a server is ended once it is
    ready.
    """
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for arguments in readme_commands(readme.replace("127.0.0.1", host)):
        if arguments[0] == "web":
            with here.serving(*arguments, "--no-browser", "--port", "0"):
                pass
        elif arguments[0] == "sim":
            try_missing_or_serving(here, arguments)
        elif arguments[0] == "doctor":  # it ends with 1 if something is wrong with this computer
            need("packages" in here.ask(*arguments, code=None)[0], "rote doctor names no packages")
        else:
            here.ask(*arguments)


def try_missing_or_serving(here: Environment, arguments: list[str]) -> None:
    """Start a simulated robot of the README; its extra is added first, as its error says."""
    _, err = here.ask(*arguments, code=1)
    (extra,) = re.findall(rf"{NAME}\[(\w+)\]", err) or [""]
    need(extra, f"rote {' '.join(arguments)} names no extra: {err}")
    here.install(f"{NAME}[{extra}]")
    with here.serving(*arguments):
        pass


def resolve_for_arm(wheel: Path, python: tuple[int, int]) -> list[str]:
    """Return for which processors of ARM a package of `all` has no wheel, each as a sentence."""
    version = ".".join(map(str, python))
    wrong = []
    for platform in ARM:
        try:
            run(
                *(sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--no-header", "-"),
                *("--only-binary", ":all:", "--python-platform", platform),
                *("--python-version", version),
                input=f"{NAME}[all] @ {wheel.as_uri()}",
            )
        except UnfitError as error:
            wrong.append(f"Python {version} on {platform}: {error}")
        else:
            print(f"  Python {version} on {platform}: every package has a wheel", flush=True)
    return wrong


# ---- all of it ----------------------------------------------------------------------------------


def pythons() -> dict[tuple[int, int], str]:
    """Return the interpreters here, one for each version from the lowest on: on the path, and those
    of pyenv and uv."""
    home, suffix = Path.home(), ".exe" if sys.platform == "win32" else ""
    places = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    places += sorted(home.glob(".pyenv/versions/*/bin"), reverse=True)
    places += sorted(home.glob(".local/share/uv/python/*/bin"), reverse=True)
    found = {sys.version_info[:2]: sys.executable}
    for place in places:
        for program in sorted(place.glob(f"python3*{suffix}")):
            if re.fullmatch(rf"python3(\.\d+)?{re.escape(suffix)}", program.name):
                version = _version_of(program)
                if version is not None and version >= LOWEST:
                    found.setdefault(version, str(program))
    return dict(sorted(found.items()))


def _version_of(program: Path) -> "tuple[int, int] | None":
    """Return the version of an interpreter; None if it does not run, as some shims."""
    asked = "import sys, venv; print(*sys.version_info[:2])"
    try:
        done = subprocess.run(
            [str(program), "-c", asked], capture_output=True, text=True, timeout=20, check=False
        )
        major, minor = map(int, done.stdout.split())
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return major, minor


@dataclass(frozen=True)
class Trial:
    """One environment: a Python, what is installed into it, and what is done with it there."""

    python: tuple[int, int]
    path: str
    what: str
    wanted: tuple[str, ...]
    domain: int
    """Of DDS, where robots of two trials would meet."""

    def __str__(self) -> str:
        return f"Python {'.'.join(map(str, self.python))}, {self.what}"

    def steps(self, here: Environment, version: str) -> "dict[str, Callable[[], None]]":
        """Return all that is tried, each with what it is called."""
        wires = wires_here(self.python, self.domain)
        if self.what == "no extras":
            wires = {wire: how for wire, how in wires.items() if wire in {"udp", "a1"}}
        used: dict[str, Callable[[], None]] = {"install": lambda: here.install(*self.wanted)}
        if self.what in SIZES_MB:
            used["size"] = lambda: check_size(here, self.what)
        if self.what == f"[{README_EXTRAS}]":
            used["each command of the README"] = lambda: try_readme(here, own_host(self.domain))
            return used
        if self.what == "no extras":
            used["version, completion, teach, takes"] = lambda: try_core(here, version)
        else:
            used["teach, takes"] = lambda: _teach(here, ".mcap")
        used["demo, play"] = lambda: try_demo(here)
        used[f"sim on {', '.join(wires)}"] = lambda: try_wires(here, wires)
        if self.what == "no extras":
            used[f"pip install '{NAME}[mcap]'"] = lambda: here.install(f"{NAME}[mcap]")
        else:
            used["the page"] = lambda: try_page(here)
        return used


def trials(found: "dict[tuple[int, int], str]", wheel: Path) -> list[Trial]:
    """Return every environment that is tried."""
    made: list[tuple[tuple[int, int], str, tuple[str, ...]]] = []
    for python in found:
        made.append((python, "no extras", (str(wheel),)))
        made.append((python, "all extras", (f"{wheel}[all]",)))
    lowest = ("--resolution", "lowest-direct", f"{wheel}[all]")
    made.append((min(found), "lowest versions", lowest))
    made.append((max(found), f"[{README_EXTRAS}]", (f"{wheel}[{README_EXTRAS}]",)))
    return [
        Trial(python, found[python], what, wanted, 70 + number)
        for number, (python, what, wanted) in enumerate(made)
    ]


def tried(trial: Trial, version: str, folder: Path) -> str:
    """Try one environment, and say each step that is done; return what is wrong, else ""."""
    step = "environment"
    try:
        here = Environment(folder, trial.path)
        for step, work in trial.steps(here, version).items():
            began = time.monotonic()
            work()
            print(f"  {trial}: {step}: {time.monotonic() - began:.0f} s", flush=True)
    except (UnfitError, OSError, ValueError) as error:
        print(f"  {trial}: {step}: failed", flush=True)
        return f"{trial}: {step}: {error}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)  # all of them together are some gigabytes
    return ""


def check(found: "dict[tuple[int, int], str]", folder: Path) -> "tuple[str, list[str]]":
    """Build into `folder` and try it on all Pythons; return the version, and what is wrong."""
    print("Building in a clean clone (about a minute)...", flush=True)
    try:
        source, wheel = build(folder)
        look_into_source(source)
        version: str = look_into_wheel(wheel)["Version"]
    except UnfitError as error:
        return "", [str(error)]
    print(f"  {source.name}, {wheel.name}: {wheel.stat().st_size // 1000} kB", flush=True)
    unfit = [wrong for python in found for wrong in resolve_for_arm(wheel, python)]
    every = trials(found, wheel)
    print(f"Using it in {len(every)} fresh environments, {_AT_A_TIME} at a time...", flush=True)
    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        results = pool.map(
            lambda trial: tried(trial, version, folder / f"trial-{trial.domain}"), every
        )
        return version, [*unfit, *(result for result in results if result)]


def main(arguments: list[str]) -> int:
    """Check everything; return the exit code."""
    here = sys.version_info[:2]
    found = {here: sys.executable} if arguments == ["--only-this-python"] else pythons()
    versions = ", ".join(".".join(map(str, python)) for python in found)
    for missing in (python for python in SUPPORTED if python not in found):
        print(f"Python {missing[0]}.{missing[1]} is not tried here.", flush=True)
    with tempfile.TemporaryDirectory(prefix="rote-release-") as name:
        version, wrong = check(found, Path(name))
        for each in wrong:
            print(f"Not fit for a release: {each}", file=sys.stderr)
        if wrong:
            return 1
        shutil.rmtree(ROOT / "dist", ignore_errors=True)
        ignored = shutil.ignore_patterns(".gitignore")
        shutil.copytree(Path(name) / "dist", ROOT / "dist", ignore=ignored)
    print(f"Fit for a release: {NAME} {version} on Python {versions}. The archives are in dist/.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
