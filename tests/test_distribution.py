"""What is released: one name, one version, and a wheel that holds what it should and works."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import optional
import page_build
import pytest
import release_check

import rote
from rote.__main__ import main
from rote.platform.distribution import NAME, find_namesake
from rote.web.server.app import page_remedy

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
TEXTS = [
    *(ROOT / "src").rglob("*.py"),
    *(ROOT / "docs").rglob("*.md"),
    *ROOT.glob("*.md"),
    *(
        path
        for path in (ROOT / "scripts").rglob("*")
        if path.is_file() and path.parent.name != "__pycache__"
    ),
]


def hook() -> ModuleType:
    """Return hatch_build.py as a module."""
    pytest.importorskip("hatchling")
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# ---- the name and the version -------------------------------------------------------------------


def test_the_distribution_has_one_name_everywhere() -> None:
    assert PROJECT["project"]["name"] == NAME == release_check.NAME
    for path in TEXTS:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"install '?rote(\[|'|\s|$)", text), path
        assert not re.search(r"\brote\[[a-z]", text), path


def test_the_version_stands_in_one_place() -> None:
    assert "version" in PROJECT["project"]["dynamic"]
    assert hook()._version(ROOT) == rote.__version__
    pages = (ROOT / "page" / "package.json", ROOT / "pyproject.toml", ROOT / "page" / "index.html")
    for path in pages:
        assert rote.__version__ not in path.read_text(encoding="utf-8"), path
    assert f"## [{rote.__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"version: {rote.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_classifiers_readme_and_ci_name_the_same_pythons() -> None:
    said = {
        one.rpartition(" ")[2]
        for one in PROJECT["project"]["classifiers"]
        if re.search(r":: 3\.\d+$", one)
    }
    assert said == {"3.11", "3.12", "3.13", "3.14"}
    assert "Python 3.11 to 3.14" in (ROOT / "README.md").read_text(encoding="utf-8")
    ci = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    assert all(f'"{version}"' in ci for version in said)
    assert {"macos-latest", "windows-latest"} <= {*re.findall(r"[a-z]+-latest", ci)}


def test_the_workflow_can_be_read_and_calls_what_the_makefile_has() -> None:
    yaml = pytest.importorskip("yaml")
    text = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    jobs = yaml.safe_load(text)["jobs"]
    ran = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    called = {name for line in ran if line.startswith("make ") for name in line.split()[1:]}
    assert {"test", "lowest", "docs", "audit"} <= called
    rules = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert called <= {*re.findall(r"^([a-z-]+):", rules, re.MULTILINE)}
    programs = [word for line in ran for word in line.split() if word.startswith("scripts/")]
    assert programs
    assert all((ROOT / name).is_file() for name in programs)


@pytest.mark.parametrize(
    ("beside", "found"),
    [
        ("rote_robot-0.2.0.dist-info", ""),
        ("rote-1.4.dist-info", "1.4"),
        ("rote-2.0-py3.11.egg-info", "2.0"),
        ("rote-notes", ""),
    ],
)
def test_another_package_of_this_name_in_the_same_place_is_told_at_start(
    beside: str,
    found: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / beside).mkdir()
    assert find_namesake(tmp_path) == found
    monkeypatch.setattr("rote.platform.distribution.find_namesake", lambda: find_namesake(tmp_path))
    for arguments, told in ((["robots"], bool(found)), (["robots", "--json"], False)):
        monkeypatch.setattr(sys, "argv", ["rote", *arguments])
        assert main() == 0
        err = capsys.readouterr().err
        assert ("another package called rote" in err) is told
        assert ("pip uninstall rote" in err) is told


# ---- the index page -----------------------------------------------------------------------------

README = """# rote
![moving](docs/demo.svg)

<!-- not run: a note -->
See [the docs](docs/web.md#security), [a site](https://example.org) and [below](#more).
"""


def test_an_index_page_has_no_path_that_leads_nowhere() -> None:
    made = hook()
    bare = made.index_page(README, "", "v1")
    assert bare == ("# rote\n\nSee the docs, [a site](https://example.org) and [below](#more).\n")
    home = "https://example.org/rote"
    shown = made.index_page(README, home, "v1")
    assert f"![moving]({home}/raw/v1/docs/demo.svg)" in shown
    assert f"[the docs]({home}/blob/v1/docs/web.md#security)" in shown
    assert made.addresses("") == {}
    assert made.addresses(home)["Source"] == home
    whole = made.index_page((ROOT / "README.md").read_text(encoding="utf-8"), "", "v1")
    left = [target for *_, target in made._LINK.findall(whole)]
    assert all("://" in target or target.startswith("#") for target in left), left


# ---- the page that is missing -------------------------------------------------------------------


def test_a_missing_page_is_built_in_a_checkout_and_installed_elsewhere(tmp_path: Path) -> None:
    assert "make page" in page_remedy(ROOT)
    installed = page_remedy(tmp_path)
    assert "make page" not in installed
    assert f"pip install --force-reinstall --no-deps {NAME}" in installed


def test_what_was_built_counts_only_as_long_as_it_is_unchanged(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<p>", encoding="utf-8")
    assert page_build.built(tmp_path, "sources") is None
    page_build.write_stamp(tmp_path, "sources")
    (tmp_path / "stray.js").write_text("alert()", encoding="utf-8")
    assert page_build.built(tmp_path, "sources") == [tmp_path / "index.html"]
    assert page_build.built(tmp_path, "other sources") is None
    (tmp_path / "index.html").write_text("<b>", encoding="utf-8")
    assert page_build.built(tmp_path, "sources") is None
    (tmp_path / page_build.STAMP).write_text("[1]", encoding="utf-8")
    assert page_build.built(tmp_path, "sources") is None


# ---- what the set-up leaves out -----------------------------------------------------------------

LOCK = """aiortc==1.16.0 \\
    --hash=sha256:aa
    # via rote-robot (pyproject.toml)
cyclonedds==11.0.1 ; python_full_version < '3.14' \\
    --hash=sha256:bb \\
    --hash=sha256:cc
numpy==2.4.6 \\
    --hash=sha256:dd
"""


@pytest.mark.slow
def test_a_package_that_cannot_be_had_is_left_out_of_the_set_up_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lock, reduced = tmp_path / "all.lock", tmp_path / "reduced.lock"
    lock.write_text(LOCK, encoding="utf-8")
    refuse = "import sys; sys.exit('cyclonedds' in open(sys.argv[-1]).read())"
    install = [sys.executable, "-c", refuse]
    assert optional.main(["without", str(lock), str(reduced), "--", *install]) == 0
    assert "Left out: dds, because cyclonedds cannot" in capsys.readouterr().out
    assert {*optional.blocks(reduced.read_text(encoding="utf-8"))} == {"aiortc", "numpy"}
    fine = [sys.executable, "-c", ""]
    assert optional.main(["without", str(lock), str(reduced), "--", *fine]) == 1


# ---- the archives -------------------------------------------------------------------------------


def tracked() -> list[str]:
    """Return the files of the repository as they are now."""
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("this is no checkout")
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]


def hatchling(folder: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run the build in this environment; the standard build makes one for it."""
    return subprocess.run(
        [sys.executable, "-m", "hatchling", "build", *arguments],
        cwd=folder,
        env=os.environ | more,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_archives_of_a_clean_copy_hold_what_they_should_and_the_wheel_works(tmp_path: Path) -> None:
    pytest.importorskip("hatchling")
    copy, out, bare = tmp_path / "copy", tmp_path / "dist", tmp_path / "no programs"
    bare.mkdir()
    for name in tracked():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, copy / name)
    # Without npm, and without the page, there is no wheel; the reason is told without a traceback.
    refused = hatchling(copy, "-t", "wheel", "-d", str(out), PATH=str(bare))
    assert refused.returncode != 0
    assert "ROTE_WITHOUT_PAGE=1" in refused.stderr
    assert "Traceback" not in refused.stderr
    page = page_build.built(page_build.STATIC, page_build.page_sources()) is not None
    page = page and page_build.built(page_build.MODEL, page_build.shape_sources()) is not None
    how = {} if page else {"ROTE_WITHOUT_PAGE": "1"}
    if page:
        for folder in (page_build.STATIC, page_build.MODEL):
            shutil.copytree(folder, copy / folder.relative_to(ROOT))
        (copy / "src/rote/web/static/assets/old.js").write_text("left over", encoding="utf-8")
    (copy / "src/rote/notes.txt").write_text("left over", encoding="utf-8")
    (copy / "src/rote/web/model").mkdir(exist_ok=True)
    (copy / "src/rote/web/model/old.glb").write_text("left over", encoding="utf-8")
    made = hatchling(copy, "-t", "sdist", "-d", str(out), **how)
    assert made.returncode == 0, made.stderr
    (source,) = out.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        archive.extractall(tmp_path, filter="data")
    unpacked = tmp_path / source.name.removesuffix(".tar.gz")
    assert not [*unpacked.rglob("old.*"), *unpacked.rglob("notes.txt")]
    made = hatchling(unpacked, "-t", "wheel", "-d", str(out), PATH=str(bare), **how)
    assert made.returncode == 0, made.stderr  # from the source archive, without npm
    (wheel,) = out.glob("*.whl")
    if page:
        release_check.look_into_source(source)
    with zipfile.ZipFile(wheel) as packed:
        names = {f"src/{name}" for name in packed.namelist()}
    assert not {name for name in tracked() if name.startswith("src/")} - names, "it lacks these"
    metadata = release_check.look_into_wheel(wheel, page=page)
    assert metadata["Version"] == rote.__version__
    assert metadata["Description-Content-Type"] == "text/markdown"
    try_fresh(tmp_path / "fresh", wheel)


def try_fresh(folder: Path, wheel: Path) -> None:
    """Install the wheel without extras into a fresh environment, if uv is here, and use it."""
    if importlib.util.find_spec("uv") is None:
        return
    fresh = release_check.Environment(folder, sys.executable)
    try:
        fresh.install(str(wheel))
    except release_check.UnfitError as error:
        pytest.skip(f"the packages cannot be had here: {str(error)[-200:]}")
    release_check.try_core(fresh, rote.__version__)


@pytest.mark.soak
def test_the_wheel_of_a_clean_clone_works_on_every_python_there_is(tmp_path: Path) -> None:
    """As `make release-check`: what is committed, without extras, with all, and the lowest."""
    version, wrong = release_check.check(release_check.pythons(), tmp_path)
    assert wrong == []
    assert version == rote.__version__
