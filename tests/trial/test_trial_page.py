"""The page of a report, also of a robot that told odd things."""

import virtual
from rote.trial.judgement import find_differences
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


def test_a_refusal_is_compared_by_its_key_and_shown_by_its_label() -> None:
    reports = [
        {"refusals": [{"when": "played while it plays", "code": code}]} for code in (7400, 7401)
    ]
    (found,) = find_differences(*reports)
    assert found.what == "code when played while it plays"
    assert found.label == "code when an action was played during a playback"


def test_a_robot_that_sent_no_state_has_a_time_line_of_steps() -> None:
    result = virtual.run(run_trial("sim://g1?store=:memory:", TrialLevel.LOOK, Answers()))
    report = build_report(result)
    report["timeline"] = [mark for mark in report["timeline"] if mark["kind"] == "step"]
    page = render_page(report)
    assert "Time line" in page
    assert "<rect" not in page
