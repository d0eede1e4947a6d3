"""A robot that wears hands, on real DDS: recorded, left out, played when asked, and let go of."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("cyclonedds")

import virtual
from rig import DDS_HZ, client_of, free_domain, rig
from rote.connection import connect
from rote.errors import (
    BadRequestError,
    NoAnswerError,
    PeerLostError,
    UnsafeMotionError,
    UnsupportedError,
)
from rote.findings import FindingKind
from rote.messages import BeginStream, Phase, RobotState
from rote.model.dex3 import DEX3, DEX3_LEFT, DEX3_RIGHT
from rote.model.family import Hand
from rote.model.g1 import G1_29
from rote.motion.files.library import Library
from rote.motion.track import Array, Track
from rote.robot.message_robot import G1
from rote.robot.streaming import PoseStreaming
from rote.sim.dds import DdsDoor
from rote.sim.server import Simulator
from rote.sim.store import Store
from rote.sim.world import World
from rote.transport.dds import types as dds_types
from rote.transport.dds.participant import Bus, DdsTarget
from rote.transport.impair import Impairment
from rote.wire.dds import hands as dds_hands

FINGERS = (*DEX3_LEFT.names, *DEX3_RIGHT.names)
Story = Callable[[DdsDoor, G1], Awaitable[None]]


@asynccontextmanager
async def robot_with(
    worn: tuple[Hand, ...] = DEX3, impairment: Impairment | None = None
) -> AsyncIterator[DdsDoor]:
    store = Store(":memory:")
    simulator = Simulator(World(store), impairment=impairment)
    door = await simulator.serve_dds("lo", free_domain(), lowstate_hz=DDS_HZ, hands=worn)
    try:
        yield door
    finally:
        await simulator.close()
        store.close()


def tell(story: Story, worn: tuple[Hand, ...] = DEX3, impairment: Impairment | None = None) -> None:
    async def run() -> None:
        async with robot_with(worn, impairment) as door, connect(door.url, family="g1") as robot:
            await story(door, robot)

    virtual.run(run())


def grasping(seconds: float = 2.0, fingers: tuple[str, ...] = FINGERS, far: float = 0.8) -> Track:
    """The elbows rise and fall, and the hands close and open meanwhile."""
    times_s = np.arange(round(seconds * 100) + 1) / 100.0
    bend = np.sin(np.pi * times_s / seconds) ** 2
    limits = {joint.name: joint for hand in DEX3 for joint in hand.joints}
    closed = [
        far * (limits[name].upper_rad if limits[name].upper_rad > 0.5 else limits[name].lower_rad)
        for name in fingers
    ]
    elbows = 1.0 - 0.4 * bend
    columns = [elbows, elbows, *(bend * angle for angle in closed)]
    names = ("left_elbow_joint", "right_elbow_joint", *fingers)
    return Track(times_s=times_s, joints_rad=np.column_stack(columns), names=names)


class Overheard:
    """All commands to the hands, as anybody in the domain can hear them."""

    def __init__(self) -> None:
        self.commands: dict[str, list[dds_hands.HandCommand]] = {"left": [], "right": []}
        self.times_s: list[float] = []
        self._bus = Bus(DdsTarget("lo", free_domain()))
        for hand in DEX3:
            self._bus.reader(
                hand.command_topic,
                dds_types.HAND_COMMAND,
                lambda data, hand=hand: self._take(hand, data),  # type: ignore[misc]
                depth=10_000,
            )

    def _take(self, hand: Hand, data: bytes) -> None:
        self.commands[hand.side].append(dds_hands.decode_command(data, hand))
        self.times_s.append(asyncio.get_running_loop().time())

    def places(self, side: str) -> Array:
        return np.array([command.joints_rad for command in self.commands[side]])

    def stiffness(self, side: str) -> list[float]:
        return [max(command.stiffness_nm_rad) for command in self.commands[side]]

    def check_soft(self, side: str) -> None:
        """No jump in place or stiffness, and no finger left stiff or without its own timeout."""
        stiffness = [0.0, *self.stiffness(side)]
        obeyed = np.array(stiffness[2:])[:, None] / 1.5  # a new stream begins anywhere, limp
        assert np.abs(obeyed * np.diff(self.places(side), axis=0)).max() < 0.03
        assert np.abs(np.diff(stiffness)).max() < 0.05
        assert stiffness[-1] == 0.0
        assert max(stiffness) <= 1.5 + 1e-6
        assert all(command.timeout and command.driven for command in self.commands[side])

    def close(self) -> None:
        self._bus.close()


# ---- reported and recorded ----------------------------------------------------------------------


def test_hands_that_report_are_columns_of_states_from_the_first_one_on() -> None:
    async def story(door: DdsDoor, robot: G1) -> None:
        assert robot.build.names == (*G1_29.names, *FINGERS)
        assert "hands" in robot.abilities
        door.simulated_hands[1].joints_rad = np.array([0.1, 0.2, -0.3, 0.4, 0.5, 0.6, 0.7])
        await asyncio.sleep(0.2)
        state = robot.state
        assert state is not None
        assert len(state.joints_rad) == len(state.velocities_rad_s) == 43
        assert len(state.temperatures_c) == 43
        assert state.joints_rad[-7:] == pytest.approx(door.simulated_hands[1].joints_rad)
        assert [found.kind for found in await robot.preflight()] == [FindingKind.ARMS]

    tell(story)


def test_a_robot_without_hands_is_as_it_was() -> None:
    async def story(_: DdsDoor, robot: G1) -> None:
        state = await anext(robot.states())
        assert robot.build.names == G1_29.names
        assert robot.build.hands == ()
        assert len(state.joints_rad) == 29
        assert "hands" not in robot.abilities

    tell(story, worn=())


def test_one_hand_alone_is_worn_alone() -> None:
    async def story(_: DdsDoor, robot: G1) -> None:
        assert robot.build.names == (*G1_29.names, *DEX3_RIGHT.names)

    tell(story, worn=(DEX3_RIGHT,))


def test_a_take_has_the_fingers_as_a_person_moved_them_and_is_kept_so(tmp_path: Path) -> None:
    async def story(door: DdsDoor, robot: G1) -> None:
        library = Library(tmp_path)
        async with robot.teach("grip", library=library) as take:
            await robot.move_by_hand("wave", 2.0)
            await asyncio.sleep(2.2)
        track = take.track
        assert track.names == (*G1_29.names, *FINGERS)
        moved = dict(zip(track.names, np.ptp(track.joints_rad, axis=0), strict=True))
        assert min(moved[name] for name in FINGERS) > 0.2
        assert moved["right_elbow_joint"] > 0.2
        kept = library.load("grip")
        assert (kept.names, kept.variant) == (track.names, "g1-29")
        assert kept.joints_rad == pytest.approx(track.joints_rad, abs=1e-6)
        assert door.services.world.store.load(1) is not None

    tell(story)


def test_a_hand_that_is_heard_only_later_joins_the_states_and_no_take_that_has_begun() -> None:
    async def story(door: DdsDoor, robot: G1) -> None:
        bus = Bus(door.target)
        outlet = bus.writer(DEX3_LEFT.state_topic, dds_types.HAND_STATE)
        reading = dds_hands.HandReading((0.25, 0.25, 0.25, -0.25, -0.25, -0.25, -0.25), (0.0,) * 7,
                                    (30.0,) * 7)  # fmt: skip
        async with robot.teach("arms") as take:
            await asyncio.sleep(1.0)
            for _ in range(20):
                outlet.write(dds_hands.encode_state(reading, DEX3_LEFT))
                await asyncio.sleep(0.05)
        assert take.track.names == G1_29.names
        assert take.track.duration_s > 1.5
        assert take.track.longest_gap_s < 0.05
        assert robot.build.names == (*G1_29.names, *DEX3_LEFT.names)
        state = await anext(robot.states())
        assert state.joints_rad[-7:] == pytest.approx(reading.joints_rad)
        bus.close()

    tell(story, worn=())


def test_a_hand_that_falls_silent_is_said_and_keeps_its_place_in_states_and_takes() -> None:
    async def story(door: DdsDoor, robot: G1) -> None:
        seen: list[RobotState] = []
        async with robot.teach("grip") as take:
            await robot.move_by_hand("wave", 2.0)
            await asyncio.sleep(0.8)
            door.hands_are_reporting = False
            await asyncio.sleep(0.7)
            robot.on_state(seen.append)
            await asyncio.sleep(0.5)
        assert {state.silent_hands for state in seen} == {("left", "right")}
        assert len({state.joints_rad[-14:] for state in seen}) == 1
        assert set(seen[-1].velocities_rad_s[-14:]) == {0.0}
        assert take.track.names[-14:] == FINGERS
        assert take.track.duration_s > 1.5
        words = [mark.label for mark in take.track.marks]
        assert words == [f"the {side} hand stopped reporting here" for side in ("left", "right")]
        found = [finding.message for finding in await robot.preflight()]
        assert sum("hand has stopped reporting" in each for each in found) == 2
        door.hands_are_reporting = True
        await asyncio.sleep(0.3)
        assert (await anext(robot.states())).silent_hands == ()

    tell(story)


def test_garbage_on_a_hand_s_topic_is_counted_and_does_no_harm() -> None:
    async def story(door: DdsDoor, robot: G1) -> None:
        bus = Bus(door.target)
        outlet = bus.writer(DEX3_LEFT.state_topic, dds_types.HAND_STATE)
        reading = dds_hands.HandReading((float("nan"),) * 7, (0.0,) * 7, (0.0,) * 7)
        await asyncio.sleep(0.2)
        outlet.write(dds_hands.encode_state(reading, DEX3_LEFT))
        await asyncio.sleep(0.2)
        state = await anext(robot.states())
        assert np.isfinite(state.joints_rad).all()
        bus.close()

    tell(story)


# ---- played -------------------------------------------------------------------------------------


def test_hands_are_left_out_and_named_unless_they_are_asked_for() -> None:
    async def story(door: DdsDoor, robot: G1) -> None:
        overheard = Overheard()
        playing = robot.play_track(grasping())
        assert playing.left_out == FINGERS
        assert (await playing).completed
        assert overheard.commands == {"left": [], "right": []}
        assert np.abs(door.simulated_hands[0].joints_rad).max() == 0.0
        overheard.close()

    tell(story)


def test_hands_that_are_asked_for_follow_the_take_at_the_arms_pace_and_are_let_go_of() -> None:
    async def story(door: DdsDoor, robot: G1) -> None:
        door.simulated_hands[0].joints_rad = np.array([0.3, 0.3, 0.3, -0.3, -0.3, -0.3, -0.3])
        await asyncio.sleep(0.2)
        overheard, shown = Overheard(), []
        track = grasping(4.0)
        robot.on_state(
            lambda s: shown.append(s.joints_rad[29:]) if s.phase is Phase.PLAYING else None
        )
        playing = robot.play_track(track, hands=True)
        assert playing.left_out == ()
        assert (await playing).completed
        for side in ("left", "right"):
            overheard.check_soft(side)
            assert max(overheard.stiffness(side)) == pytest.approx(1.5)
        # It begins where the fingers are, and goes where the take goes.
        assert overheard.places("left")[0] == pytest.approx([0.3] * 3 + [-0.3] * 4, abs=0.01)
        assert overheard.stiffness("left")[0] == 0.0
        furthest = np.abs(track.joints_rad[:, 2:9]).max(axis=0)
        assert np.abs(overheard.places("left")).max(axis=0) == pytest.approx(furthest, abs=0.02)
        assert np.abs(shown).max(axis=0)[:7] == pytest.approx(furthest, abs=0.15)
        gaps_s = np.diff(overheard.times_s[::2])
        assert np.median(gaps_s) == pytest.approx(1 / 250.0, abs=1e-3)
        assert all(each.relaxed for each in door.simulated_hands)
        overheard.close()

    tell(story)


def test_a_joint_that_the_take_does_not_have_stays_and_its_other_hand_is_not_told() -> None:
    async def story(door: DdsDoor, robot: G1) -> None:
        door.simulated_hands[0].joints_rad = np.array([0.2] * 3 + [-0.2] * 4)
        await asyncio.sleep(0.2)
        overheard = Overheard()
        names = ("left_hand_index_0_joint", "left_hand_index_1_joint")
        assert (await robot.play_track(grasping(2.0, names), hands=True)).completed
        assert overheard.commands["right"] == []
        places = overheard.places("left")
        assert places[:, :5] == pytest.approx(np.tile([0.2] * 3 + [-0.2] * 2, (len(places), 1)))
        assert np.abs(places[:, 5]).max() > 1.0
        overheard.close()

    tell(story)


@pytest.mark.parametrize("how", ["stop", "cancel", "leave", "cease", "silent"])
def test_fingers_are_let_go_of_softly_however_a_stream_ends(how: str) -> None:
    async def run() -> None:
        async with robot_with() as door:
            overheard = Overheard()
            async with connect(door.url, family="g1") as robot:
                streaming = robot.play_track(grasping(4.0), hands=True)
                await streaming.started()
                await asyncio.sleep(2.5)
                assert overheard.stiffness("left")[-1] == pytest.approx(1.5)
                if how == "stop":
                    await robot.stop()
                    assert not (await streaming).completed
                elif how == "cancel":
                    with pytest.raises(TimeoutError):
                        async with asyncio.timeout(0.1):
                            await streaming
                elif how == "cease":
                    assert isinstance(streaming, PoseStreaming)
                    streaming._ticker.stop()  # as if this program hung, and woke up again
                    assert not (await streaming).completed
                elif how == "silent":
                    door.hands_are_reporting = False
                    assert not (await streaming).completed
            await asyncio.sleep(4.0)
            for side in ("left", "right"):
                overheard.check_soft(side)
            assert all(each.relaxed for each in door.simulated_hands)
            overheard.close()

    virtual.run(run())


def test_hands_of_a_lost_robot_are_let_go_of_and_follow_again_when_it_is_back() -> None:
    async def story(door: DdsDoor, robot: G1) -> None:
        overheard = Overheard()
        with pytest.raises(PeerLostError):
            await robot.play_track(grasping(10.0), hands=True)
        await asyncio.sleep(4.0)
        for side in ("left", "right"):
            overheard.check_soft(side)
        assert all(each.relaxed for each in door.simulated_hands)
        state = await anext(robot.states())
        assert (len(state.joints_rad), state.silent_hands) == (43, ())
        assert (await robot.play_track(grasping(2.0), hands=True)).completed
        overheard.check_soft("right")
        overheard.close()

    tell(story, impairment=Impairment(cut_after_s=3.0, cut_for_s=3.0))


def test_a_hand_relaxes_by_itself_when_whoever_moved_it_is_gone_without_a_word() -> None:
    async def run() -> None:
        async with robot_with() as door:
            bus = Bus(door.target)
            outlet = bus.writer(DEX3_LEFT.command_topic, dds_types.HAND_COMMAND)
            await asyncio.sleep(0.3)
            for _ in range(30):
                outlet.write(dds_hands.encode_command([0.3] * 3 + [-0.3] * 4, 1.0, hand=DEX3_LEFT))
                await asyncio.sleep(0.02)
            relaxed = [door.simulated_hands[0].relaxed]
            bus.close()
            await asyncio.sleep(1.2)
            relaxed.append(door.simulated_hands[0].relaxed)
            assert relaxed == [False, True]
            assert any("relaxes" in notice.message for notice in door.services.world.notices)

    virtual.run(run())


# ---- refused ------------------------------------------------------------------------------------


def test_an_unsafe_hand_is_refused_before_anything_is_sent_and_only_where_it_would_be_played() -> (
    None
):
    async def story(_: DdsDoor, robot: G1) -> None:
        overheard = Overheard()
        beyond, fast = grasping(far=1.1), grasping(0.3, far=0.9)
        for track in (beyond, fast):
            with pytest.raises(UnsafeMotionError, match="_hand_"):
                robot.play_track(track, hands=True, force=True)
        assert (await robot.play_track(beyond)).completed
        assert overheard.commands == {"left": [], "right": []}
        overheard.close()

    tell(story)


def test_a_robot_that_reports_no_hands_or_one_too_few_is_not_told_to_move_them() -> None:
    async def none(_: DdsDoor, robot: G1) -> None:
        with pytest.raises(UnsupportedError, match="reports none"):
            robot.play_track(grasping(), hands=True)
        assert robot.play_track(grasping()).left_out == FINGERS

    async def left(_: DdsDoor, robot: G1) -> None:
        with pytest.raises(BadRequestError, match="right_hand_thumb_0_joint"):
            robot.play_track(grasping(), hands=True)
        assert (await robot.play_track(grasping(1.0, DEX3_LEFT.names, 0.3), hands=True)).completed

    tell(none, worn=())
    tell(left, worn=(DEX3_LEFT,))


def test_a_motion_without_hands_cannot_be_played_with_them() -> None:
    async def story(_: DdsDoor, robot: G1) -> None:
        with pytest.raises(BadRequestError, match="no joints of hands"):
            robot.play_track(grasping(1.0, ()), hands=True)

    tell(story)


def test_a_hand_that_reports_and_obeys_nobody_is_refused_when_the_stream_begins() -> None:
    async def story(door: DdsDoor, robot: G1) -> None:
        bus = Bus(door.target)
        outlet = bus.writer(DEX3_LEFT.state_topic, dds_types.HAND_STATE)
        reading = dds_hands.HandReading((0.0,) * 7, (0.0,) * 7, (30.0,) * 7)
        for _ in range(10):
            outlet.write(dds_hands.encode_state(reading, DEX3_LEFT))
            await asyncio.sleep(0.02)
        with pytest.raises(NoAnswerError, match="no program on the robot reads rt/dex3/left/cmd"):
            await robot.play_track(grasping(1.0, DEX3_LEFT.names, 0.3), hands=True)
        with pytest.raises(NoAnswerError, match="no right hand"):
            await client_of(robot).ask(BeginStream(("right",)))
        assert (await robot.play_track(grasping(1.0))).completed
        bus.close()

    tell(story, worn=())


@pytest.mark.parametrize("wire", ["memory", "webrtc"])
def test_a_wire_without_hands_says_which_has_them(wire: str) -> None:
    async def run() -> None:
        async with rig(wire) as one, one.connect() as robot:
            if "stream" in robot.abilities:
                with pytest.raises(UnsupportedError) as refused:
                    robot.play_track(grasping(), hands=True)
                assert refused.value.wires_that_can == ("dds://",)
                playing = robot.play_track(grasping())
                assert playing.left_out == FINGERS
                assert (await playing).completed

    virtual.run(run())


def test_a_take_with_hands_is_stored_on_a_robot_without_them() -> None:
    async def run() -> None:
        async with rig("memory") as one, one.connect() as robot:
            await robot.store_track(grasping(), "lift")
            assert [action.name for action in (await robot.actions()).taught] == ["lift"]

    virtual.run(run())


def test_of_another_build_a_take_with_hands_leaves_out_what_it_left_out_before() -> None:
    async def story(_: DdsDoor, robot: G1) -> None:
        wrist = grasping()
        names = ("left_wrist_yaw_joint", *wrist.names[1:])
        track = replace(wrist, names=names, variant="g1-23")
        report = await robot.play_track(track, mapped=True, force=True, hands=True)
        assert report.completed

    tell(story)
