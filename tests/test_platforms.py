"""The whole command line on a system without what only Linux has."""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "rote"
ONLY_POSIX = {"fcntl", "resource", "termios", "tty", "pty", "grp", "pwd", "posix", "msvcrt"}
ONLY_SYSTEM = {"add_signal_handler", "remove_signal_handler", "SIGHUP", "SOCK_SEQPACKET", "flock"}


def outcomes(folder: Path) -> list[dict[str, Any]]:
    """Return what became of each command on such a system."""
    done = subprocess.run(
        [sys.executable, "-X", "utf8", str(Path(__file__).with_name("poor_system.py"))],
        cwd=folder,
        env=os.environ | {"ROTE_HOME": str(folder / "home"), "COLUMNS": "100"},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Traceback" not in done.stderr
    told: list[dict[str, Any]] = json.loads(done.stdout)
    return told


@pytest.mark.slow
def test_every_command_works_or_is_refused_in_words_on_a_poorer_system(tmp_path: Path) -> None:
    told = outcomes(tmp_path)
    for one in told:
        assert not one["trace"], f"{one['arguments']}: {one['trace']}"
        assert "Traceback" not in one["err"], one
    codes = {tuple(one["arguments"][:2]): one["code"] for one in told}
    helps = [one for one in told if one["arguments"][-1] == "--help"]
    assert len(helps) > 50
    assert {one["code"] for one in helps} == {0}
    refused = {key: code for key, code in codes.items() if code not in {0, 143}}
    told_in_words = {("doctor", "--json"), ("capture", "live"), ("discover", "--seconds")}
    assert set(refused) <= told_in_words, refused
    served = [codes["sim", "--udp"], codes["sim", "--a1"], codes["web", "--no-browser"]]
    assert served == [0, 0, 143]  # each was ended by a signal
    (demo,) = [one for one in told if one["arguments"][:2] == ["demo", "--out"]]
    assert "played" in demo["out"].lower(), demo
    assert (tmp_path / "demo" / "taught-and-played.png").is_file()


def test_no_module_imports_what_only_one_system_has() -> None:
    named = re.compile(rf"\b(?:{'|'.join(ONLY_POSIX | ONLY_SYSTEM)})\b")
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if named.search(text) else ():
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not ONLY_POSIX & {name.partition(".")[0] for name in names}, path
            if isinstance(node, ast.Attribute) and path.name != "system.py":
                assert node.attr not in ONLY_SYSTEM, (path, node.lineno)
