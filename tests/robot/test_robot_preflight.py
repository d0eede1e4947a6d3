"""What a person is told before the robot moves."""

from dataclasses import replace

import pytest

from rote.findings import Severity
from rote.messages import MAX_ACTIONS, Phase, RobotState
from rote.model.g1 import G1, G1_29, Mode
from rote.robot.api_values import Actions, ModeReport, TaughtAction
from rote.robot.preflight import findings

HEALTHY = RobotState(
    mode=Mode.WALK,
    joints_rad=(0.0,) * 29,
    velocities_rad_s=(0.0,) * 29,
    foot_force_n=(80.0,) * 4,
)
NOTHING = Actions((), ())
FULL = Actions((), tuple(TaughtAction(f"a{i}", 1.0, i + 1) for i in range(MAX_ACTIONS)))


def test_a_healthy_robot_has_no_findings() -> None:
    assert findings(HEALTHY, NOTHING, G1_29) == []


@pytest.mark.parametrize(
    ("change", "severity", "words"),
    [
        ({"mode": Mode.DAMP}, Severity.ERROR, "not in a balanced standing (mode 1, damp)"),
        ({"mode": 706}, Severity.ERROR, "mode 706, unknown"),
        ({"arms_soft": True}, Severity.WARNING, "a teaching is running"),
        ({"phase": Phase.PLAYING}, Severity.WARNING, "the arms are moving"),
        ({"accelerometer_m_s2": (5.0, 0.0, 8.4)}, Severity.ERROR, "leans by 31 degrees"),
        ({"foot_force_n": (0.0,) * 4}, Severity.WARNING, "carry no weight"),
        (
            {"joints_rad": (0.0,) * 18 + (2.2,) + (0.0,) * 10},
            Severity.ERROR,
            "left_elbow_joint is 0.11 rad beyond its limit",
        ),
    ],
)
def test_what_is_wrong_is_said_with_a_remedy(
    change: dict[str, object], severity: Severity, words: str
) -> None:
    (finding,) = findings(replace(HEALTHY, **change), NOTHING, G1_29)  # type: ignore[arg-type]
    assert finding.severity is severity
    assert words in finding.message
    assert finding.remedy


def test_a_full_store_is_a_warning_and_the_worst_comes_first() -> None:
    found = findings(replace(HEALTHY, mode=Mode.ZERO_TORQUE), FULL, G1_29)
    assert [finding.severity for finding in found] == [Severity.ERROR, Severity.WARNING]
    assert "15 places" in found[1].message


def test_a_robot_that_has_not_reported_is_an_error() -> None:
    (finding,) = findings(None, NOTHING, G1_29)
    assert finding.severity is Severity.ERROR


def test_modes_are_described_by_their_ids() -> None:
    assert ModeReport.of(501, G1.modes) == ModeReport(
        501, "walk waist", "balanced, with a free waist", True
    )
    assert not ModeReport.of(-1, G1.modes).balanced
