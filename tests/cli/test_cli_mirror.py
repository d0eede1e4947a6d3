"""rote mirror: one robot leads, others follow; what is refused, and how it ends."""

import asyncio
import json

import pytest

from rig import rig
from rote.cli import main
from rote.cli.mirror import _connect_and_mirror, _describe_follower, _MirrorOptions
from rote.robot.leading import FollowerStatus

SIMULATED = "sim://g1?store=:memory:"


def test_a_simulated_robot_leads_another_and_both_are_reported(
    capsys: pytest.CaptureFixture[str],
) -> None:
    line = ["mirror", SIMULATED, SIMULATED, "--hand", "wave", "--seconds", "1", "--json"]
    assert main([*line, "--mirrored"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["soft"], told["mirrored"]) == (True, True)
    (follower,) = told["followers"]
    assert follower["url"] == SIMULATED
    assert follower["poses"] > 0
    assert follower["held"] == ""


def test_a_person_reads_how_far_each_follower_was_behind(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["mirror", SIMULATED, SIMULATED, "--watch", "--seconds", "0.3"]) == 0
    said = capsys.readouterr()
    assert "lag not measured" in said.out
    assert "return to rest" in said.out
    assert "emergency stop" in said.err


@pytest.mark.parametrize(
    ("line", "code", "why"),
    [
        ((SIMULATED,), 2, "FOLLOWER"),
        (("udp://127.0.0.1", "udp://127.0.0.1"), 2, "named twice"),
        ((SIMULATED, "udp://127.0.0.1", "udp://127.0.0.1"), 2, "named twice"),
        ((SIMULATED, "webrtc://127.0.0.1"), 6, "follow another robot"),
        ((SIMULATED, "sim://a1"), 2, "no arms"),
        ((SIMULATED, SIMULATED, "--hand", "juggle"), 2, "unknown hand script"),
        ((SIMULATED, SIMULATED, "--hand", "wave", "--watch"), 2, "--watch"),
        ((SIMULATED, SIMULATED, "--seconds", "0"), 2, "out of range"),
        ((SIMULATED, SIMULATED, "--seconds", "nan"), 2, "out of range"),
        ((SIMULATED, SIMULATED, "--json"), 2, "time is missing"),
        ((SIMULATED, "nowhere://x"), 2, "nowhere"),
    ],
)
def test_what_cannot_be_mirrored_is_refused(
    line: tuple[str, ...], code: int, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["mirror", *line]) == code
    assert why in capsys.readouterr().err


@pytest.mark.slow
def test_ctrl_c_stops_all_robots_and_says_how_they_are_left(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def story() -> None:
        async with rig("udp") as one, rig("udp") as other:
            options = _MirrorOptions(one.url, (other.url,), False, False, 60.0, None, True)
            command = asyncio.create_task(_connect_and_mirror(options, None, 5.0))
            while not one.world.state().arms_soft:
                assert not command.done(), "it ends only when it is cancelled"
                await asyncio.sleep(0.05)
            command.cancel()
            with pytest.raises(asyncio.CancelledError):
                await command
            assert not one.world.state().arms_soft
            assert not other.world.state().playing

    asyncio.run(story())
    assert json.loads(capsys.readouterr().out)["stopped"] is True


def status(**changes: object) -> FollowerStatus:
    known: dict[str, object] = {
        "url": SIMULATED,
        "reached": True,
        "held": "",
        "limited": (),
        "lag_ms": 62.0,
        "lag_p50_ms": 60.0,
        "lag_p99_ms": 80.0,
        "poses": 10,
        "holds": 0,
        "unchecked": "",
    }
    return FollowerStatus(**{**known, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({}, "lag 62 ms"),
        ({"lag_ms": None}, "following"),
        ({"reached": False}, "approaching slowly"),
        ({"held": "the arm meets the hip"}, "held: the arm meets the hip"),
        ({"limited": ("left_elbow_joint",)}, "lag 62 ms, at its limit: left_elbow_joint"),
    ],
)
def test_the_progress_line_says_how_a_robot_follows(changes: dict[str, object], line: str) -> None:
    assert _describe_follower(status(**changes)) == line
