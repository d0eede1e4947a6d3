"""What a person is told before the robot moves."""

from dataclasses import replace

import pytest

import virtual
from rig import client_of, rig
from rote.findings import Severity
from rote.messages import MAX_ACTIONS, Phase, RobotState
from rote.model.g1 import G1, G1_29, Mode
from rote.robot.api_values import Actions, ModeReport, TaughtAction
from rote.robot.preflight import find_problems
from rote.transport.dds.client import DdsClient
from rote.wire.services import rpc

HEALTHY = RobotState(
    mode=Mode.WALK,
    joints_rad=(0.0,) * 29,
    velocities_rad_s=(0.0,) * 29,
    foot_force_n=(80.0,) * 4,
)
NOTHING = Actions((), ())
FULL = Actions((), tuple(TaughtAction(f"a{i}", 1.0, i + 1) for i in range(MAX_ACTIONS)))


def test_a_healthy_robot_has_no_findings() -> None:
    assert find_problems(HEALTHY, NOTHING, G1_29) == []


@pytest.mark.parametrize(
    ("change", "severity", "words"),
    [
        ({"mode": Mode.DAMP}, Severity.ERROR, "not in a balanced stand (mode 1, damp)"),
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
    (finding,) = find_problems(replace(HEALTHY, **change), NOTHING, G1_29)  # type: ignore[arg-type]
    assert finding.severity is severity
    assert words in finding.message
    assert finding.remedy


def test_a_full_store_is_a_warning_and_the_worst_comes_first() -> None:
    found = find_problems(replace(HEALTHY, mode=Mode.ZERO_TORQUE), FULL, G1_29)
    assert [finding.severity for finding in found] == [Severity.ERROR, Severity.WARNING]
    assert "15 places" in found[1].message


def test_a_robot_that_has_not_reported_is_an_error() -> None:
    (finding,) = find_problems(None, NOTHING, G1_29)
    assert finding.severity is Severity.ERROR


def test_modes_are_described_by_their_ids() -> None:
    assert ModeReport.of(501, G1.modes) == ModeReport(
        501, "walk waist", "balanced, with a free waist", True
    )
    assert not ModeReport.of(-1, G1.modes).balanced


def test_a_service_that_moves_the_arms_beside_a_stream_is_a_note() -> None:
    (finding,) = find_problems(HEALTHY, NOTHING, G1_29, rival_service="g1_arm_example")
    assert finding.severity is Severity.NOTE
    assert "g1_arm_example" in finding.message
    assert "Before you stream" in finding.remedy


def test_over_dds_the_arm_service_is_noted_as_long_as_it_runs() -> None:
    async def story() -> None:
        async with rig("dds") as one, one.connect() as robot:
            (finding,) = await robot.preflight()
            assert "g1_arm_example" in finding.message
            client = client_of(robot, DdsClient)
            await client.call(rpc.Call("robot_state", 1001, '{"name":"g1_arm_example","switch":0}'))
            assert "g1_arm_example" not in await client.list_running_services()
            found = [str(each.message) for each in await robot.preflight()]
            assert not [message for message in found if "g1_arm_example" in message]
            assert [message for message in found if "its arm service does not answer" in message]

    virtual.run(story())


def test_where_nothing_can_be_streamed_by_arm_sdk_the_arm_service_is_not_noted() -> None:
    async def story() -> None:
        async with rig("services") as one, one.connect() as robot:
            assert await robot.preflight() == []

    virtual.run(story())
