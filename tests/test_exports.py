"""The public names: all there, all importable, and free until used."""

import subprocess
import sys

import pytest

import rote


def test_every_public_name_can_be_imported() -> None:
    for name in rote.__all__:
        assert getattr(rote, name) is not None
    assert sorted(rote.__all__) == dir(rote)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="wavy"):
        rote.wavy  # noqa: B018


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


def test_help_imports_neither_numpy_nor_a_network() -> None:
    code = (
        "import sys\nfrom rote.cli import main\nmain(['--help'])\n"
        "print([m for m in sys.modules if m.split('.')[0] in {'numpy', 'matplotlib', 'sqlite3'}])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("[]")
