"""Known vulnerabilities of the locked packages: Python's by pip-audit, the page's by npm.

Both ask a service about each version. The first line says whether everything, a part or nothing was
checked. Exit code 0: everything was checked and nothing is known; 1: something is known; 3: a part
or all could not be checked, which is not a clean result.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LOCK = ROOT / "requirements.lock"
ENVIRONMENT = ROOT / ".venv-audit"
CLEAN, KNOWN, NOT_CHECKED = 0, 1, 3
_ADDRESS = re.compile(r"https?://[^ )'\"]*")


class NoAnswerError(Exception):
    """The data could not be had; the text says why."""


@dataclass
class Audit:
    """The answer for one kind of packages."""

    packages: str
    checked: int = 0
    unchecked: list[str] = field(default_factory=list)
    """Packages of which the service knows nothing."""
    known: list[str] = field(default_factory=list)
    """Vulnerabilities, a line each."""
    reason: str = ""
    """Why nothing was checked."""

    @property
    def is_complete(self) -> bool:
        """Whether every package was checked."""
        return not self.reason and not self.unchecked

    def lines(self) -> list[str]:
        """Return what to print."""
        if self.reason:
            return [f"{self.packages}: not checked ({_ADDRESS.sub('the service', self.reason)})"]
        found = [f"{self.packages}: {line}" for line in self.known]
        total = f"{self.checked} checked, {len(self.known)} known vulnerabilities"
        if self.unchecked:
            some = ", ".join(self.unchecked[:5]) + (", ..." if len(self.unchecked) > 5 else "")
            total += f", no answer for {len(self.unchecked)} ({some})"
        return [*found, f"{self.packages}: {total}"]


def install_pip_audit() -> Path:
    """Return pip-audit, in an environment of its own: it is no tool of the tests."""
    folder = "Scripts" if sys.platform == "win32" else "bin"
    program = ENVIRONMENT / folder / "pip-audit"
    if shutil.which(str(program)) is None:
        subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENT)], check=True)
        pip = [str(ENVIRONMENT / folder / "python"), "-m", "pip", "install", "--quiet"]
        command = [*pip, "--disable-pip-version-check", "pip-audit"]
        subprocess.run(command, check=True, capture_output=True)
    return program


def split_pins(lock: str) -> list[list[str]]:
    """Return all pins of a lock file, no package twice in one list.

    Markers are left out: the lock is for every system, and so is the question. A package can have
    several versions, for several versions of Python.
    """
    lists: list[dict[str, str]] = []
    for name, version in re.findall(r"^([a-z0-9._-]+)==([^\s;\\]+)", lock, re.MULTILINE):
        for pins in lists:
            if name not in pins:
                pins[name] = version
                break
        else:
            lists.append({name: version})
    return [[f"{name}=={version}" for name, version in pins.items()] for pins in lists]


def run_pip_audit(program: Path, pins: list[str]) -> list[dict[str, Any]]:
    """Return what is known of some versions; raises `NoAnswerError`."""
    with tempfile.TemporaryDirectory() as folder:
        wanted, report = Path(folder) / "requirements.txt", Path(folder) / "report.json"
        wanted.write_text("\n".join(pins) + "\n", encoding="utf-8")
        command = [str(program), "-r", str(wanted), "--no-deps", "--disable-pip"]
        command += ["--progress-spinner=off", "--format=json", f"--output={report}"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        except subprocess.TimeoutExpired as error:
            raise NoAnswerError("no answer within 10 minutes") from error
        if not report.is_file():
            raise NoAnswerError((done.stderr.strip().splitlines() or ["no answer"])[-1][:200])
        answer: list[dict[str, Any]] = json.loads(report.read_text(encoding="utf-8"))[
            "dependencies"
        ]
    return answer


def audit_python() -> Audit:
    """Ask about every version in requirements.lock."""
    audit = Audit("Python packages of requirements.lock")
    try:
        program = install_pip_audit()
        found = [
            one
            for pins in split_pins(LOCK.read_text(encoding="utf-8"))
            for one in run_pip_audit(program, pins)
        ]
    except (subprocess.CalledProcessError, OSError) as error:
        audit.reason = f"pip-audit could not be installed: {error}"
    except NoAnswerError as error:
        audit.reason = str(error)
    else:
        audit.unchecked = [one["name"] for one in found if "skip_reason" in one]
        audit.checked = len(found) - len(audit.unchecked)
        for one in found:
            for each in one.get("vulns", ()):
                fixed = ", ".join(each["fix_versions"]) or "none yet"
                audit.known.append(
                    f"{one['name']} {one['version']}: {each['id']}; fixed in {fixed}"
                )
    return audit


def audit_npm() -> Audit:
    """Ask about every version in page/package-lock.json."""
    audit = Audit("npm packages of page/package-lock.json")
    npm = shutil.which("npm")
    if npm is None:
        audit.reason = "npm is missing"
        return audit
    command = [npm, "audit", "--json", "--package-lock-only", "--audit=true"]
    try:
        done = subprocess.run(
            command, cwd=ROOT / "page", capture_output=True, text=True, timeout=300, check=False
        )
    except subprocess.TimeoutExpired:
        audit.reason = "no answer within 5 minutes"
        return audit
    try:
        document = json.loads(done.stdout)
        audit.checked = document["metadata"]["dependencies"]["total"]
        found = document["vulnerabilities"].items()
    except (ValueError, KeyError, TypeError):
        printed = (done.stdout + done.stderr).strip().splitlines() or ["no answer"]
        wrong = [line for line in printed if "message" in line or "error" in line.lower()]
        audit.reason = (wrong or printed)[0].strip()[:200]
        return audit
    for name, one in found:
        audit.known.append(f"{name} {one.get('range', '')}: {one.get('severity', '')}")
    return audit


def headline(audits: list[Audit]) -> str:
    """Return the first line: how much was checked."""
    if not any(audit.checked for audit in audits):
        return "NOTHING WAS CHECKED: no service answered. This is not a clean result."
    if all(audit.is_complete for audit in audits):
        return "All locked packages were checked."
    return "NOT EVERYTHING WAS CHECKED. This is not a clean result."


def exit_code(audits: list[Audit]) -> int:
    """Return 1 for a known vulnerability, else 3 if a package was not checked, else 0."""
    if any(audit.known for audit in audits):
        return KNOWN
    return CLEAN if all(audit.is_complete for audit in audits) else NOT_CHECKED


def main() -> int:
    """Ask about both, print the answers, and return the exit code."""
    audits = [audit_python(), audit_npm()]
    print(headline(audits))
    print(f"Asked on {datetime.now(UTC):%Y-%m-%d}.")
    for audit in audits:
        for line in audit.lines():
            print(line)
    return exit_code(audits)


if __name__ == "__main__":
    sys.exit(main())
