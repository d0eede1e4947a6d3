"""The public names: all there, all importable, and free until used."""

import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rote

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "api-stability.md").read_text(encoding="utf-8")
PUBLIC = re.findall(r"^\| `(rote[a-z0-9_.]*)` \|", PAGE, re.MULTILINE)


def test_every_public_name_can_be_imported() -> None:
    for name in rote.__all__:
        assert getattr(rote, name) is not None
    assert sorted(rote.__all__) == dir(rote)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="wavy"):
        rote.wavy  # noqa: B018


@pytest.mark.slow
def test_importing_rote_imports_nothing_heavy() -> None:
    code = "import rote, sys; print([m for m in sys.modules if m.split('.')[0] in HEAVY])"
    heavy = {"numpy", "typer", "rich", "matplotlib", "asyncio", "sqlite3"}
    done = subprocess.run(
        [sys.executable, "-c", f"HEAVY={heavy!r}\n{code}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
def test_help_imports_neither_numpy_nor_a_network() -> None:
    code = (
        "import sys\nfrom rote.cli import main\nmain(['--help'])\n"
        "print([m for m in sys.modules if m.split('.')[0] in {'numpy', 'matplotlib', 'sqlite3'}])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("[]")


def test_the_page_of_the_public_api_lists_the_modules_that_have_public_names() -> None:
    source = ROOT / "src"
    found = []
    for path in source.rglob("*.py"):
        if re.search(r"^__all__ = ", path.read_text(encoding="utf-8"), re.MULTILINE):
            parts = path.relative_to(source).with_suffix("").parts
            found.append(".".join(parts).removesuffix(".__init__"))
    assert sorted(PUBLIC) == sorted(found)


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_there_and_says_what_it_is(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__
    assert len(module.__all__) == len(set(module.__all__))
    for public in module.__all__:
        value = getattr(module, public)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert inspect.getdoc(value), f"{name}.{public}"
