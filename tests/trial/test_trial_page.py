"""The page of a report, also of a robot that told odd things."""

import virtual
from rote.trial.page import render_page
from rote.trial.report import build_report
from rote.trial.runner import run_trial
from rote.trial.steps import TrialLevel
from trial_robots import Answers


def test_a_speed_that_is_no_number_keeps_nobody_from_the_report() -> None:
    result = virtual.run(run_trial("sim://g1?store=:memory:", TrialLevel.LOOK, Answers()))
    assert result.recorder is not None
    traces = result.recorder.traces
    assert len(traces) > 3
    traces[1] = traces[1]._replace(speed_rad_s=float("nan"))
    report = build_report(result)
    assert report["traces"]["speed_rad_s"][1] is None
    page = render_page(report)
    assert "fastest joint" in page
    traces[:] = [trace._replace(speed_rad_s=float("nan")) for trace in traces]
    assert "fastest joint" not in render_page(build_report(result))
