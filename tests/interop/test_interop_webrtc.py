"""The unmodified PyPI client `unitree-webrtc-connect` against the simulated robot.

It knows nothing of this project, so what it can do with the simulated robot it can do because that
behaves as the real one. Each process is its own: the robot, and every client.
"""

from collections.abc import Iterator

import pytest

from interop.processes import (
    CURRENT,
    KEY,
    OLD,
    OTHERS,
    Line,
    Network,
    Robot,
    has_address_beyond_loopback,
    network_of_its_own,
    why_no_peers,
)

pytestmark = [
    pytest.mark.skipif(bool(why_no_peers()), reason=why_no_peers()),
    pytest.mark.usefixtures("keeps_time"),
]

SHAKE_HAND = (27, "shake_hand")
REST = (0, 99)
"""What arms do that nobody asked them to: nothing, or return."""
FACTORY = [
    ["Waist_Drum_Dance", 9.5],
    ["Spin_discs", 6.9],
    ["Scratch_head", 8.1],
    ["Throw_money", 8.1],
]
WITH_KEY, WITH_ANOTHER = ("--key", KEY), ("--key", KEY[::-1])
GONE = "the WebRTC client is gone"
GONE_WITHIN_S = 12.0
"""A robot must have noticed by then that its client was killed."""


@pytest.fixture(scope="session")
def network() -> Iterator[Network]:
    """This machine's network; one of their own where the other client could not use that."""
    if has_address_beyond_loopback():
        yield Network()
        return
    with network_of_its_own() as own:
        if isinstance(own, str):
            pytest.skip(f"the only address is on loopback, which the other client ignores; {own}")
        yield own


def tour(robot: Robot, release: str, *options: str, play: str = "Spin_discs") -> Line:
    """Let a client do once all that arms can be asked for; return what it saw."""
    wanted = ("--perform", str(SHAKE_HAND[0]), "--play", play, *options)
    with robot.peer(release, "tour", *wanted) as client:
        seen = client.end()
        assert seen["event"] == "done", (seen, client.printed)
    unknown = seen["codes"].pop("play unknown")
    assert (unknown, set(seen["codes"].values())) == (7402, {0})
    assert [arms for arms in seen["arms"] if arms[0] not in REST] == [list(SHAKE_HAND), [100, play]]
    assert seen["joints"] == 35  # motor slots, as real firmware sends them
    # 50 states of the joints a second and 10 of the arms
    joints, arms = seen["counts"]["rt/lf/lowstate"], seen["counts"]["rt/arm/action/state"]
    assert arms >= 4
    assert 3 * arms < joints < 8 * arms
    return seen


def movements(robot: Robot) -> list[str]:
    """Return what the robot's arms did until its client was gone."""
    robot.wait_until_it(GONE)
    return [words for words in robot.did() if words.startswith(("play", "stop", "teach"))]


STOPPED = "stopped: the arms return softly"
ALL_OF_IT = ["playing 'shake_hand'", STOPPED, "playing 'Spin_discs'", STOPPED]


# ---- every way to connect -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("signalling", "options"),
    [
        pytest.param("none", (), marks=pytest.mark.soak),
        pytest.param("2", (), marks=pytest.mark.soak),
        ("3", ()),
        pytest.param("legacy", (), marks=pytest.mark.soak),
        pytest.param("2", ("--strict",), marks=pytest.mark.soak),
        pytest.param("3", ("--strict",), marks=pytest.mark.soak),
    ],
)
def test_the_current_release_gets_what_it_asks_for(
    network: Network, signalling: str, options: tuple[str, ...]
) -> None:
    with Robot(network, signalling, *options) as robot:
        seen = tour(robot, CURRENT, *(WITH_KEY if signalling == "3" else ()))
        assert seen["taught"] == FACTORY
        assert list(SHAKE_HAND) in seen["presets"]
        assert movements(robot) == ALL_OF_IT


def test_a_preset_is_answered_when_it_is_over(network: Network) -> None:
    with Robot(network, "1") as robot:
        assert tour(robot, CURRENT, "--patient")["performed_s"] > 4
        assert movements(robot) == [ALL_OF_IT[0], "playback ended", *ALL_OF_IT[2:]]


@pytest.mark.parametrize(
    ("signalling", "options"),
    [
        ("none", ()),
        pytest.param("1", (), marks=pytest.mark.soak),
        pytest.param("2", ("--strict",), marks=pytest.mark.soak),
        pytest.param("legacy", (), marks=pytest.mark.soak),
    ],
)
def test_an_old_release_gets_what_it_asks_for(
    network: Network, signalling: str, options: tuple[str, ...]
) -> None:
    with Robot(network, signalling, *options) as robot:
        assert tour(robot, OLD)["taught"] == FACTORY
        assert movements(robot) == ALL_OF_IT


@pytest.mark.parametrize("options", [(), ("--polite",)], ids=["as logged", "polite"])
@pytest.mark.soak
@pytest.mark.parametrize("release", OTHERS)
def test_every_release_gets_what_it_asks_for(
    network: Network, release: str, options: tuple[str, ...]
) -> None:
    with Robot(network, "2", *options) as robot:
        assert tour(robot, release)["taught"] == FACTORY
        assert movements(robot) == ALL_OF_IT


def test_what_rote_teaches_the_other_client_lists_and_plays(network: Network) -> None:
    with Robot(network, "2", "--polite") as robot:
        with robot.own("teach", "mine") as client:
            said = client.end()
            assert said["event"] == "done", said
        robot.wait_until_it(GONE)
        seen = tour(robot, CURRENT, play="mine")
        assert [name for name, _ in seen["taught"]] == [*(name for name, _ in FACTORY), "mine"]
        assert "playing 'mine'" in robot.did()


# ---- who gets in --------------------------------------------------------------------------------


def test_without_the_right_key_a_client_stays_out_and_the_next_gets_in(network: Network) -> None:
    with Robot(network, "3") as robot:
        with (
            robot.peer(CURRENT, "hold", *WITH_ANOTHER) as wrong,
            robot.peer(CURRENT, "hold") as without,
            robot.peer(OLD, "hold") as old,
        ):
            assert wrong.end()["error"] == "AesKeyRejectedError"
            assert without.end()["error"] == "AesKeyRequiredError"
            # 2.0.4 knows nothing of device keys, and ends the program that uses it.
            assert old.end()["error"] == "SystemExit"
            old.process.wait(20)  # what it printed may be written at its end
            assert "Could not get SDP" in old.printed
        with robot.peer(CURRENT, "hold", *WITH_KEY) as right:
            right.hear("connected")
            assert right.let_go()["event"] == "done"
            robot.wait_until_it(GONE, within_s=2)


def test_a_second_client_is_told_that_the_robot_is_busy_until_the_first_was_killed(
    network: Network,
) -> None:
    with Robot(network, "2") as robot, robot.peer(CURRENT, "hold") as first:
        first.hear("connected")
        with robot.peer(CURRENT, "hold") as second, robot.peer(OLD, "hold") as third:
            assert second.end()["error"] == "RobotBusyError"
            assert third.end()["error"] == "SystemExit"
            assert "connected by another WebRTC client" in third.printed
        with robot.own("list") as ours:
            assert ours.end()["error"] == "BusyError"
        first.process.kill()
        robot.wait_until_it(GONE, within_s=GONE_WITHIN_S)
        with robot.own("list") as ours:
            said = ours.end()
            assert said["event"] == "done", said


# ---- machines without a network -----------------------------------------------------------------


def test_loopback_alone_is_enough() -> None:
    with network_of_its_own() as own:
        if isinstance(own, str):
            pytest.skip(own)
        with Robot(own, "3") as robot:
            tour(robot, CURRENT, *WITH_KEY)
            assert movements(robot) == ALL_OF_IT
