"""What only the documented frames have words for: numbers, parts, keyframes, and single frames."""

import asyncio
import struct
from collections.abc import Awaitable, Callable

import pytest

import virtual
from rig import Rig, client_of, rig
from rote import messages as m
from rote.errors import BadRequestError, CautionError, RefusedError, UnsafeMotionError
from rote.errors import UnsupportedError as Unsupported
from rote.messages import Code, Keyframe, Phase
from rote.model.g1 import Mode
from rote.robot.message_robot import G1

ELBOW, HIP = 18, 0
ENTER = struct.pack(">I", 1)
Story = Callable[[Rig, G1], Awaitable[None]]


def tell(story: Story, wire: str = "memory", mode: Mode = Mode.WALK) -> None:
    async def run() -> None:
        async with rig(wire, mode=mode) as one, one.connect() as robot:
            one.fill(2)
            await story(one, robot)

    virtual.run(run())


def entering(*joints_rad: float, speeds_rad_s: tuple[float, ...] = ()) -> bytes:
    positions = struct.pack(">12f", *joints_rad, *(0.0,) * (12 - len(joints_rad)))
    speeds = struct.pack(">12f", *speeds_rad_s, *(0.0,) * (12 - len(speeds_rad_s)))
    return ENTER + positions + speeds + bytes(48)


# ---- playing ------------------------------------------------------------------------------------


@pytest.mark.parametrize("wire", ["memory", "services"])
def test_an_action_is_played_by_its_number(wire: str) -> None:
    async def story(one: Rig, robot: G1) -> None:
        assert (await robot.play(2)).completed
        assert any("playing 'stored 1'" in notice.message for notice in one.world.notices)

    tell(story, wire)


def test_a_name_of_digits_is_a_name_and_a_number_is_a_number() -> None:
    async def story(one: Rig, robot: G1) -> None:
        keys = (Keyframe(joint=ELBOW, time_ms=400, value_rad=0.1),)
        save = m.SaveAction(name="1", created_s=0, duration_ms=500, keyframes=keys)
        assert one.world.obey("test", save) == m.Status(Code.OK)
        await robot.play("1")
        await robot.play(1)
        played = [n.message for n in one.world.notices if n.message.startswith("playing")]
        assert played == ["playing '1'", "playing 'stored 0'"]

    tell(story)


@pytest.mark.parametrize("number", [0, -1, 3, 16, 2**40])
def test_a_number_that_is_not_in_the_list_is_refused_with_what_there_is(number: int) -> None:
    async def story(one: Rig, robot: G1) -> None:
        with pytest.raises(RefusedError, match=f"no action number {number}") as refused:
            await robot.play(number)
        assert refused.value.remedy == "On the robot: 1 stored 0, 2 stored 1."
        assert not one.world.state().playing

    tell(story)


def test_only_some_frames_are_played() -> None:
    async def story(one: Rig, robot: G1) -> None:
        async with robot.teach("wave"):
            await robot.move_by_hand("wave", 2.0)
            await asyncio.sleep(2.0)
        lasted_s = []
        for frames in (0, 50):
            states = [progress.state async for progress in robot.play("wave", frames=frames)]
            moving_us = [state.time_us for state in states if state.phase is Phase.PLAYING]
            lasted_s.append((moving_us[-1] - moving_us[0]) / 1e6)
        assert lasted_s == pytest.approx([2.0, 0.5], abs=0.1)

    tell(story)


def test_keyframes_are_played_instead_of_what_is_stored() -> None:
    async def story(one: Rig, robot: G1) -> None:
        keys = [Keyframe(joint=ELBOW, time_ms=500, value_rad=1.2)]
        playing = await robot.start(1, keyframes=keys)
        await asyncio.sleep(1.0)
        farthest = one.world.body.joints_rad[ELBOW]
        assert (await playing).completed
        assert farthest == pytest.approx(1.2, abs=0.1)

    tell(story)


@pytest.mark.parametrize(
    ("keyframe", "error", "words"),
    [
        (Keyframe(joint=29, time_ms=1, value_rad=0.0), BadRequestError, "no joint 29"),
        (Keyframe(joint=-1, time_ms=1, value_rad=0.0), BadRequestError, "no joint -1"),
        (
            Keyframe(joint=HIP, time_ms=1, value_rad=0.1),
            BadRequestError,
            "balance controller needs it",
        ),
        (Keyframe(joint=ELBOW, time_ms=65_536, value_rad=0.1), BadRequestError, "65536 ms"),
        (Keyframe(joint=ELBOW, time_ms=400, value_rad=9.0), UnsafeMotionError, "9.00 rad"),
        (Keyframe(joint=ELBOW, time_ms=400, value_rad=float("nan")), UnsafeMotionError, "nan"),
    ],
)
def test_keyframes_that_may_not_be_are_refused_before_anything_is_sent(
    keyframe: Keyframe, error: type[Exception], words: str
) -> None:
    async def story(one: Rig, robot: G1) -> None:
        with pytest.raises(error, match=words):
            robot.play(1, keyframes=[keyframe])
        assert not one.world.state().playing

    tell(story)


def test_a_part_has_no_speed_and_no_more_keyframes_than_are_given() -> None:
    async def story(one: Rig, robot: G1) -> None:
        key = Keyframe(joint=ELBOW, time_ms=400, value_rad=0.1)
        with pytest.raises(BadRequestError, match="cannot be combined"):
            robot.play(1, frames=3, speed=0.5)
        with pytest.raises(BadRequestError, match="`frames` is 2, but the number of keyframes"):
            robot.play(1, frames=2, keyframes=[key])
        with pytest.raises(BadRequestError, match="-1 frames"):
            robot.play(1, frames=-1)
        with pytest.raises(BadRequestError, match="at most 20"):
            robot.play(1, keyframes=[key] * 21)

    tell(story)


def test_a_recording_is_saved_to_loop_and_described_as_one_likes() -> None:
    async def story(one: Rig, robot: G1) -> None:
        await robot.send(0x0D, entering())
        await robot.send(0x0F, ENTER)
        await asyncio.sleep(1.0)
        await robot.send(0x0F)
        await robot.send(0x0E)
        assert "kept all" in await robot.save("wave", 3.0, loop=True, frames=50)
        action = one.world.store.load(3)
        assert action is not None
        assert action.loop
        assert action.duration_ms == pytest.approx(1000, abs=50)

    tell(story)


@pytest.mark.parametrize(
    ("values", "words"),
    [((1.0,) * 10, "10 compensation"), ((float("nan"),) * 11, "32-bit"), ((1e39,) * 11, "32")],
)
def test_a_compensation_that_cannot_be_sent_is_refused(
    values: tuple[float, ...], words: str
) -> None:
    async def story(one: Rig, robot: G1) -> None:
        with pytest.raises(BadRequestError, match=words):
            robot.teach("wave", compensation=values)

    tell(story)


# ---- single frames ------------------------------------------------------------------------------


def test_the_whole_cycle_by_single_frames() -> None:
    async def story(one: Rig, robot: G1) -> None:
        await robot.send(0x0D, entering(0.1, 0.1))
        assert one.world.state().arms_soft
        await robot.send(0x0F, ENTER)
        await robot.move_by_hand("wave", 1.0)
        await asyncio.sleep(1.0)
        await robot.send(0x0F)
        name = b"mine".ljust(32, b"\0")
        save = name + struct.pack(">IIII", 1, 1000, 0, 1) + bytes(172)
        assert await robot.send(0x2B, save) == m.Status(Code.OK)
        listed = await robot.send(0x1A)
        assert isinstance(listed, m.ActionList)
        assert [entry.name for entry in listed.actions] == ["stored 0", "stored 1", "mine"]
        assert await robot.send(0x41, struct.pack(">I", 3) + bytes(180)) == m.Status(Code.OK)
        assert not one.world.state().arms_soft
        await robot.send(0x0E)
        await robot.send(0x41, bytes(184))
        assert one.world.phase is Phase.RETURN

    tell(story)


def test_a_play_frame_that_was_requested_before_a_stop_is_not_sent_after_it() -> None:
    async def story(one: Rig, robot: G1) -> None:
        client = client_of(robot)
        send = client.ask

        async def ask(command: m.Command) -> m.Reply:
            if isinstance(command, m.ListActions):
                await robot.stop()
            return await send(command)

        client.ask = ask  # type: ignore[method-assign]
        with pytest.raises(RefusedError) as refused:
            await robot.send(0x41, struct.pack(">I", 1) + bytes(180))
        assert refused.value.code == Code.SUPERSEDED
        assert one.world.phase is Phase.NONE

    tell(story)


@pytest.mark.parametrize(
    ("command", "payload", "error", "words"),
    [
        (0x50, b"", BadRequestError, "command 0x50 is unknown"),
        (0x00, b"", BadRequestError, "command 0x00 is unknown"),
        (0x141, b"", BadRequestError, "one byte"),
        (0x09, b"", BadRequestError, "takes or releases"),
        (0x09, b"\0\0\0\3", BadRequestError, "takes or releases"),
        (0x09, struct.pack(">II", 2, Mode.DAMP), CautionError, "sink"),
        (0x09, struct.pack(">II", 2, Mode.ZERO_TORQUE), CautionError, "sink"),
        (0x09, struct.pack(">II", 2, 77), CautionError, "sink"),
        (0x0A, b"STRM", BadRequestError, "single poses"),
        (0x0A, b"POSE" + bytes(40), BadRequestError, "single poses"),
        (0x0B, b"", BadRequestError, "all joints"),
        (0x0C, b"\0\0\0\2", BadRequestError, "ready"),
        (0x0D, entering(9.0), UnsafeMotionError, "left_hip_pitch_joint"),
        (0x0D, entering(0.0, speeds_rad_s=(99.0,)), UnsafeMotionError, "99.0 rad/s"),
        (0x0D, bytes(148), BadRequestError, "damping bit"),
        (0x0D, bytes(100), BadRequestError, "148 bytes"),
        (0x0F, b"\0\0\0\2", BadRequestError, "0 or 1"),
        (0x2B, b"mine", BadRequestError, "220 bytes"),
        (0x2B, b"mine".ljust(48, b"\0") + bytes(172), BadRequestError, "0 ms"),
        (0x41, b"", BadRequestError, "184 bytes"),
        (
            0x41,
            struct.pack(">IIIIHHf", 1, 0, 0, 0, ELBOW, 400, 9.0).ljust(184, b"\0"),
            UnsafeMotionError,
            "left_elbow_joint",
        ),
    ],
)
def test_a_frame_that_may_not_be_is_not_sent(
    command: int, payload: bytes, error: type[Exception], words: str
) -> None:
    async def story(one: Rig, robot: G1) -> None:
        before = one.world.machine.mode
        with pytest.raises(error, match=words):
            await robot.send(command, payload)
        await asyncio.sleep(3.0)
        assert one.world.machine.mode == before
        assert not one.world.state().arms_soft
        assert not one.world.state().playing

    tell(story)


def test_single_frames_do_not_make_soft_what_does_not_stand() -> None:
    async def story(one: Rig, robot: G1) -> None:
        with pytest.raises(CautionError, match="not in a balanced stand"):
            await robot.send(0x0D, entering())
        assert not one.world.state().arms_soft

    tell(story, mode=Mode.LOCK_STAND)


def test_a_mode_that_holds_may_be_asked_for_by_a_frame() -> None:
    async def story(one: Rig, robot: G1) -> None:
        await robot.send(0x09, struct.pack(">II", 2, Mode.WALK_WAIST))
        assert one.world.machine.mode == Mode.WALK_WAIST

    tell(story)


def test_a_wire_without_frames_sends_none() -> None:
    async def story(one: Rig, robot: G1) -> None:
        with pytest.raises(Unsupported, match="single frames"):
            await robot.send(0x1A)
        with pytest.raises(Unsupported, match="parameters"):
            await robot.sync_parameters(b"")
        with pytest.raises(Unsupported, match="part of an action"):
            robot.play(1, frames=5)
        with pytest.raises(Unsupported, match="loop or compensation"):
            robot.teach("wave", loop=True)

    tell(story, "services")


# ---- damping ------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [Mode.WALK, Mode.LOCK_STAND])
@pytest.mark.parametrize("wire", ["memory", "services"])
def test_a_robot_that_stands_is_not_let_sink_unasked(wire: str, mode: Mode) -> None:
    async def story(one: Rig, robot: G1) -> None:
        with pytest.raises(CautionError, match="sinks to the floor") as refused:
            await robot.modes.damp()
        assert "robot.modes.damp(yes=True)" in refused.value.remedy
        await asyncio.sleep(5.0)
        assert one.world.machine.mode == mode
        assert (await robot.modes.damp(yes=True)).id == Mode.DAMP

    tell(story, wire, mode)


def test_a_robot_that_hangs_free_may_be_damped_without_a_question() -> None:
    async def story(one: Rig, robot: G1) -> None:
        assert (await robot.modes.damp()).id == Mode.DAMP

    tell(story, mode=Mode.ZERO_TORQUE)
