"""Known vulnerabilities of the locked packages: Python's by pip-audit, the page's by npm.

Both ask a service about each version. Where one cannot be reached this says so and ends with 3,
which is not a clean result; with 1 where something is known, with 0 where nothing is.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements.lock"
ENVIRONMENT = ROOT / ".venv-audit"
CLEAN, KNOWN, NOT_HAD = 0, 1, 3
_ADDRESS = re.compile(r"https?://[^ )'\"]*")


def say(what: str, said: str) -> None:
    """Print the result for one kind of packages."""
    print(f"{what}: {_ADDRESS.sub('the service', said)}", flush=True)


def pip_audit() -> Path:
    """Return pip-audit, in an environment of its own: it is no tool of the tests."""
    folder = "Scripts" if sys.platform == "win32" else "bin"
    program = ENVIRONMENT / folder / "pip-audit"
    if shutil.which(str(program)) is None:
        subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENT)], check=True)
        pip = [str(ENVIRONMENT / folder / "python"), "-m", "pip", "install", "--quiet"]
        command = [*pip, "--disable-pip-version-check", "pip-audit"]
        subprocess.run(command, check=True, capture_output=True)
    return program


def rounds(lock: str) -> list[list[str]]:
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


def _asked(program: Path, pins: list[str]) -> "list[dict[str, Any]] | str":
    """Return what is known of some versions, or why that is not known."""
    with tempfile.TemporaryDirectory() as folder:
        wanted, report = Path(folder) / "requirements.txt", Path(folder) / "report.json"
        wanted.write_text("\n".join(pins) + "\n", encoding="utf-8")
        command = [str(program), "-r", str(wanted), "--no-deps", "--disable-pip"]
        command += ["--progress-spinner=off", "--format=json", f"--output={report}"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        except subprocess.TimeoutExpired:
            return "no answer within 10 minutes"
        if not report.is_file():
            return (done.stderr.strip().splitlines() or ["no answer"])[-1][:200]
        answer: list[dict[str, Any]] = json.loads(report.read_text(encoding="utf-8"))[
            "dependencies"
        ]
    return answer


def audit_python() -> int:
    """Ask about every version in requirements.lock."""
    what = "Python packages of requirements.lock"
    try:
        program = pip_audit()
    except (subprocess.CalledProcessError, OSError) as error:
        say(what, f"pip-audit could not be had ({error})")
        return NOT_HAD
    found: list[dict[str, Any]] = []
    for pins in rounds(LOCK.read_text(encoding="utf-8")):
        answer = _asked(program, pins)
        if isinstance(answer, str):
            say(what, f"the data could not be had ({answer})")
            return NOT_HAD
        found += answer
    skipped = [one["name"] for one in found if "skip_reason" in one]
    known = [(one, each) for one in found for each in one.get("vulns", ())]
    for one, each in known:
        fixed = ", ".join(each["fix_versions"]) or "none yet"
        say(what, f"{one['name']} {one['version']}: {each['id']}; fixed in {fixed}")
    said = f"{len(found)} asked about, {len(known)} known vulnerabilities"
    if skipped:
        some = ", ".join(skipped[:5]) + (", ..." if len(skipped) > 5 else "")
        said += f", no answer for {len(skipped)} ({some})"
    say(what, said)
    return KNOWN if known else NOT_HAD if skipped else CLEAN


def audit_npm() -> int:
    """Ask about every version in page/package-lock.json."""
    what = "npm packages of page/package-lock.json"
    npm = shutil.which("npm")
    if npm is None:
        say(what, "npm is missing")
        return NOT_HAD
    done = subprocess.run(
        [npm, "audit", "--json", "--package-lock-only", "--audit=true"],
        cwd=ROOT / "page",
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    try:
        document = json.loads(done.stdout)
        counts = document["metadata"]["vulnerabilities"]
    except (ValueError, KeyError, TypeError):
        said = (done.stdout + done.stderr).strip().splitlines() or ["no answer"]
        wrong = [line for line in said if "message" in line or "error" in line.lower()] or said
        say(what, f"the data could not be had ({wrong[0].strip()[:200]})")
        return NOT_HAD
    for name, one in document.get("vulnerabilities", {}).items():
        say(what, f"{name} {one.get('range', '')}: {one.get('severity', '')}")
    asked = document["metadata"]["dependencies"]["total"]
    say(what, f"{asked} asked about, {counts['total']} known vulnerabilities")
    return KNOWN if counts["total"] else CLEAN


def main() -> int:
    """Ask about both; return the worse result."""
    print(f"Asked on {datetime.now(UTC):%Y-%m-%d}.", flush=True)
    results = {audit_python(), audit_npm()}
    return KNOWN if KNOWN in results else max(results)


if __name__ == "__main__":
    sys.exit(main())
