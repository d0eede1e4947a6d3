"""The scripts that judge coverage and known vulnerabilities say what they did not look at."""

from pathlib import Path

import audit
import coverage_gate
import pytest


def test_every_package_has_a_floor_of_coverage() -> None:
    assert coverage_gate.find_mismatches(coverage_gate.list_packages()) == []


def test_a_package_without_a_floor_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = coverage_gate.list_packages() | {"invented"}
    monkeypatch.setattr(coverage_gate, "list_packages", lambda: found)
    monkeypatch.chdir(tmp_path)
    assert coverage_gate.main() == 1
    assert "invented has no floor" in capsys.readouterr().out


def test_an_audit_without_an_answer_says_first_that_nothing_was_checked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_answer(*_: object) -> list[dict[str, object]]:
        raise audit.NoAnswerError("the service at https://example.com/json did not answer")

    monkeypatch.setattr(audit, "install_pip_audit", Path)
    monkeypatch.setattr(audit, "run_pip_audit", no_answer)
    monkeypatch.setenv("PATH", "")  # no npm
    assert audit.main() == audit.NOT_CHECKED
    first, _, *rest = capsys.readouterr().out.splitlines()
    assert first.startswith("NOTHING WAS CHECKED")
    assert all("not checked" in line for line in rest)
    assert "example.com" not in "".join(rest)


def test_an_audit_of_some_packages_is_not_clean() -> None:
    partly = [audit.Audit("Python", checked=3), audit.Audit("npm", reason="npm is missing")]
    assert audit.headline(partly).startswith("NOT EVERYTHING WAS CHECKED")
    assert audit.exit_code(partly) == audit.NOT_CHECKED


def test_a_known_vulnerability_outweighs_what_was_not_checked() -> None:
    found = [audit.Audit("Python", checked=3, known=["one"]), audit.Audit("npm", reason="no npm")]
    assert audit.exit_code(found) == audit.KNOWN
    assert audit.Audit("Python", checked=3, known=["one"]).lines()[0] == "Python: one"


def test_an_audit_that_found_nothing_is_clean() -> None:
    clean = [audit.Audit("Python", checked=3), audit.Audit("npm", checked=2)]
    assert audit.headline(clean) == "All locked packages were checked."
    assert audit.exit_code(clean) == audit.CLEAN
