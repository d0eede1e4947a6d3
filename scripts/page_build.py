"""Build what `rote web` shows: the page, the robot's shapes, and the licences of what is in them.

    page_build.py page [--force | --tools]     the page, from page/ into src/rote/web/static/
    page_build.py shapes                       the shapes, into src/rote/web/model/

Neither is in the repository. Each folder has a `.stamp`, which says what it was made from and which
files belong to it: nothing is done where that is still true. The build of the wheel
(hatch_build.py) uses the same functions, so that a wheel never holds anything else.

Only the standard library is used, and nothing that only Linux has. Where something cannot be made
this says why and ends with 3.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "page"
STATIC = ROOT / "src" / "rote" / "web" / "static"
MODEL = ROOT / "src" / "rote" / "web" / "model"
STAMP = ".stamp"
LICENCES = "LICENCES.txt"
NODE = 20

PACKAGE = "mjlab==1.6.0"
PACKAGE_HASH = "sha256:03d003854e2f44c48330c6dcf4c2253ff7641bb569747846825a21b9efa8540b"
MESHES = "mjlab/asset_zoo/robots/unitree_g1/xmls/assets"
_SOURCES = ("src", "public", "index.html", "package-lock.json", "tsconfig.json", "vite.config.ts")
_ADDRESS = re.compile(r"(https?|file)://[^ )`]*")
_LICENCE_FILE = re.compile(r"(licen[cs]e|copying|notice)", re.IGNORECASE)


class CannotBuildError(Exception):
    """Something that is needed is not there; the message says what."""


# ---- stamps -------------------------------------------------------------------------------------


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _files(folder: Path) -> dict[str, str]:
    """Return the hash of every file in a folder, by its name there."""
    return {
        path.relative_to(folder).as_posix(): _hash(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in {STAMP, ".gitignore"}
    }


def built(folder: Path, sources: str) -> "list[Path] | None":
    """Return the files that were made from these sources; None if they have to be made again.

    What else lies in the folder does not belong to it.
    """
    try:
        stamp = json.loads((folder / STAMP).read_text(encoding="utf-8"))
        if stamp["sources"] != sources or not stamp["files"]:
            return None
        if any(_hash(folder / name) != known for name, known in stamp["files"].items()):
            return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return [folder / name for name in stamp["files"]]


def write_stamp(folder: Path, sources: str) -> None:
    """Write which sources the page in `folder` was built from, and its files."""
    stamp = {"sources": sources, "files": _files(folder)}
    (folder / STAMP).write_text(json.dumps(stamp, indent=1) + "\n", encoding="utf-8")


def page_sources() -> str:
    """Return one hash of all that the page is made from."""
    whole = hashlib.sha256(_hash(Path(__file__)).encode())
    for name in _SOURCES:
        place = PAGE / name
        for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if path.is_file():
                whole.update(f"{path.relative_to(PAGE).as_posix()} {_hash(path)}\n".encode())
    return whole.hexdigest()


def shape_sources() -> str:
    """Return one hash of all that the shapes are made from."""
    made_by = _hash(ROOT / "scripts" / "model.mjs")
    return hashlib.sha256(f"{PACKAGE} {PACKAGE_HASH} {made_by} 3".encode()).hexdigest()


# ---- the page -----------------------------------------------------------------------------------


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise CannotBuildError(f"{name} is missing. Install Node.js {NODE} or newer")
    return found


def get_tools() -> None:
    """Install the packages that build the page, as page/package-lock.json pins them."""
    node, npm = _program("node"), _program("npm")
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    if int(version.strip().lstrip("v").partition(".")[0]) < NODE:
        raise CannotBuildError(f"Node.js is {version.strip()}. Install {NODE} or newer")
    ready, wanted = PAGE / "node_modules" / ".ready", _hash(PAGE / "package-lock.json")
    if ready.is_file() and ready.read_text(encoding="utf-8").strip() == wanted:
        return
    print("Getting the tools that build the page (once; about 15 s)...", flush=True)
    command = [npm, "ci", "--no-progress", "--loglevel=error", "--no-audit", "--no-fund"]
    done = subprocess.run(command, cwd=PAGE, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotBuildError(_reason(done.stderr, "npm ci failed"))
    ready.write_text(wanted, encoding="utf-8")


def _reason(said: str, otherwise: str) -> str:
    """Return what went wrong in one line, without the address of a package host."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    wrong = [line for line in lines if re.search(r"error", line, re.IGNORECASE)] or lines[-1:]
    return _ADDRESS.sub("the index", wrong[0]).removeprefix("ERROR: ") if wrong else otherwise


def build_page(out: Path = STATIC, *, force: bool = False) -> list[Path]:
    """Build the page unless it is there already; return its files."""
    sources = page_sources()
    there = None if force else built(out, sources)
    if there is not None:
        return there
    bundle_page(out)
    (out / LICENCES).write_text(bundled_licences(), encoding="utf-8")
    write_stamp(out, sources)
    files = built(out, sources) or []
    size = sum(path.stat().st_size for path in files)
    print(f"The page is in {_short(out)}: {len(files)} files, {size // 1000} kB.", flush=True)
    return files


def bundle_page(out: Path, *options: str) -> None:
    """Check the types of the page and bundle it into a folder, with more options for Vite."""
    get_tools()
    print("Building the page...", flush=True)
    _node("typescript/bin/tsc", "--noEmit")
    _node("vite/bin/vite.js", "build", "--logLevel", "warn", *options, ROTE_PAGE_OUT=str(out))


def _node(program: str, *arguments: str, **environment: str) -> None:
    command = [_program("node"), str(PAGE / "node_modules" / program), *arguments]
    done = subprocess.run(command, cwd=PAGE, env={**os.environ, **environment}, check=False)
    if done.returncode:
        raise CannotBuildError(f"{Path(program).stem} failed; what it said is above")


def bundled_licences() -> str:
    """Return the licence texts of the packages that end up in the page, from the packages."""
    packages = json.loads((PAGE / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    shipped = sorted(name for name, one in packages.items() if name and not one.get("dev"))
    parts = []
    for name in shipped:
        title = f"{name.removeprefix('node_modules/')} {packages[name]['version']}"
        parts.append(_licence(title, sorted((PAGE / name).iterdir())))
    return "The page of rote contains parts of these packages.\n\n" + "\n\n".join(parts)


def _licence(title: str, files: list[Path]) -> str:
    found = [path for path in files if path.is_file() and _LICENCE_FILE.match(path.name)]
    if not found:
        raise CannotBuildError(f"{title} has no licence text")
    texts = [path.read_text(encoding="utf-8").strip() for path in found]
    return "\n\n".join([f"{'=' * 20} {title} {'=' * 20}", *texts]) + "\n"


# ---- the shapes ---------------------------------------------------------------------------------


def build_shapes(out: Path = MODEL) -> list[Path]:
    """Make the robot's real shapes unless they are there already; return their files.

    They are taken from a public package and simplified here, to about 1 MB.
    """
    sources = shape_sources()
    there = built(out, sources)
    if there is not None:
        return there
    get_tools()
    print("Getting the robot's real shapes (once; about 15 s)...", flush=True)
    with tempfile.TemporaryDirectory(prefix="rote-shapes-") as name:
        work = Path(name)
        _download(work)
        (wheel,) = work.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(work / "all")
        if out.exists():
            shutil.rmtree(out)
        out.mkdir(parents=True)
        (out / ".gitignore").write_text("*\n", encoding="utf-8")
        script, meshes = ROOT / "scripts" / "model.mjs", work / "all" / MESHES
        done = subprocess.run(
            [_program("node"), str(script), str(meshes), str(out / "g1.glb")], check=False
        )
        if done.returncode:
            raise CannotBuildError("the shapes could not be simplified; see above")
        (out / LICENCES).write_text(_shape_licences(work / "all"), encoding="utf-8")
    write_stamp(out, sources)
    return built(out, sources) or []


def _download(work: Path) -> None:
    wanted = work / "wanted"
    wanted.write_text(f"{PACKAGE} --hash={PACKAGE_HASH}\n", encoding="utf-8")
    how = ["--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes"]
    command = [sys.executable, "-m", "pip", "download", *how, "--only-binary", ":all:"]
    command += ["-d", str(work), "-r", str(wanted)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    except subprocess.TimeoutExpired:
        raise CannotBuildError(f"{PACKAGE} did not come within 3 minutes") from None
    if done.returncode:
        raise CannotBuildError(_reason(done.stderr, f"{PACKAGE} could not be had"))


def _shape_licences(everything: Path) -> str:
    """Return the licences of the shapes (Unitree's, from NOTICE) and of the package with them."""
    theirs = (ROOT / "NOTICE").read_text(encoding="utf-8").partition("\nBSD 3-Clause License\n")
    files = [path for path in everything.glob("*.dist-info/licenses/**/*") if path.is_file()]
    return "\n".join(
        [
            "The shapes in g1.glb are those of Unitree Robotics' G1, simplified by rote.\n",
            f"{'=' * 20} Unitree Robotics, unitree_ros {'=' * 20}",
            theirs[1] + theirs[2],
            "They were taken from the package below.\n",
            _licence(PACKAGE, sorted(files)),
        ]
    )


def _short(path: Path) -> str:
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


def main(arguments: list[str]) -> int:
    """Do what the arguments say; return the exit code."""
    what, *options = arguments or [""]
    out = Path(os.environ.get("ROTE_PAGE_OUT", STATIC)).resolve()
    try:
        if what == "page" and options == ["--tools"]:
            get_tools()
        elif what == "page" and options in ([], ["--force"]):
            build_page(out, force=bool(options))
        elif what == "shapes" and not options:
            build_shapes()
        else:
            print(__doc__, file=sys.stderr)
            return 2
    except CannotBuildError as error:
        then = "make page" if what == "page" else "the 3D view draws shapes of its own until then"
        thing = "The page" if what == "page" else "The robot's shapes"
        print(f"{thing} cannot be built: {error}. Then: {then}.", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
