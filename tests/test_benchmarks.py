"""Every benchmark still works, and docs/performance.md shows the run that is stored."""

import json
import os
import subprocess
import sys

import pytest
from benchmarks import report
from benchmarks.__main__ import CLAIMS
from benchmarks.process import run_process
from benchmarks.size import VARIABLE
from benchmarks.table import Row

from documentation import ROOT

WAITING = ("webrtc", "stream", "dds", "bridges", "a1", "mirror", "web")
"""They wait for servers and timers."""
DEAREST = ("retime", "adapt", "batch", "stage")
"""They let peers compute for seconds or start dozens of processes: most of the processor time."""
COMPUTING = tuple(claim for claim in CLAIMS if claim not in (*WAITING, *DEAREST))


@pytest.mark.skipif(sys.platform != "linux", reason="benchmarks choose the cores they run on")
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "chosen",
    [
        pytest.param(WAITING, id="waiting"),
        pytest.param(COMPUTING, id="computing"),
        pytest.param(DEAREST, id="dearest", marks=pytest.mark.soak),
    ],
)
def test_every_benchmark_runs_in_its_short_form(chosen: tuple[str, ...]) -> None:
    kept = {name: value for name, value in os.environ.items() if name != VARIABLE}
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", *chosen, "--short", "--json"],
        cwd=ROOT,
        env=kept,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    claims = report.Results.of(json.loads(done.stdout)).claims
    assert tuple(claims) == chosen
    for name, measured in claims.items():
        assert measured.rows or measured.missing, f"{name} measured nothing, and does not say why"


def test_the_page_shows_the_stored_run() -> None:
    page = report.PAGE.read_text(encoding="utf-8")
    assert page == report.render_page(page, report.load_results())


def test_the_page_has_a_table_for_every_claim() -> None:
    assert report.generated_parts(report.PAGE.read_text(encoding="utf-8")) == set(CLAIMS)


def test_results_survive_being_stored() -> None:
    rows = [Row("a", "s", 1.0, 2.0, "limit", at_most=1), Row("b", "/s", 3.0, 0.0, "peer")]
    claims = {"codec": report.Measured(rows, ["no peer"]), "web": report.Measured(failed="broken")}
    results = report.Results("2026-01-01", "a machine", (0.1, 1.5), 2.0, claims)
    stored = json.loads(json.dumps(results.document()))
    assert report.Results.of(stored) == results


def test_the_summary_names_missed_goals_and_what_failed() -> None:
    rows = [
        Row("quick", "s", 1.0, 2.0, "limit", at_most=1),
        Row("slow", "s", 3.0, 2.0, "limit", at_most=1),
    ]
    claims = {"codec": report.Measured(rows), "web": report.Measured(failed="OSError()")}
    results = report.Results("2026-01-01", "a machine", (0.1, 1.5), 2.0, claims)
    text = report.summarise(results)
    assert "1 goals met, 1 missed:" in text
    assert "| slow | 3 s | 2 s (limit) | 1.50 | at most 1 | no |" in text
    assert "quick" not in text
    assert "`web` could not be measured: OSError()" in text


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is in kilobytes there")
def test_peak_memory_is_not_that_of_the_process_that_measures() -> None:
    large = bytearray(b"x") * 300_000_000
    small = run_process([sys.executable, "-I", "-S", "-c", "print('done')"])
    assert len(large) > 0
    assert small.printed == "done\n"
    assert small.peak_mb < 100


def test_a_command_that_fails_is_not_measured() -> None:
    with pytest.raises(RuntimeError, match="ended with 3"):
        run_process([sys.executable, "-c", "raise SystemExit(3)"])


def test_a_claim_that_is_measured_alone_replaces_its_rows_and_says_so() -> None:
    last = report.Results(
        "2026-01-01",
        "a machine",
        (0.1, 1.5),
        2.0,
        {"codec": report.Measured(missing=["no peer"]), "web": report.Measured(failed="OSError()")},
    )
    again = report.Results("2026-01-02", "a machine", (0.2, 0.9), 1.0, {"web": report.Measured()})
    both = report.replace_claims(last, again)
    assert (both.date, both.claims["codec"]) == ("2026-01-01", last.claims["codec"])
    assert (both.failed, both.claims["web"].alone[:10]) == ({}, "2026-01-02")
