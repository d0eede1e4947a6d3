"""A robot's voice and light: asked for, checked, and refused where there are none."""

import asyncio

import pytest

from rig import rig
from rote.errors import BadRequestError, UnsupportedError


@pytest.mark.parametrize("wire", ["webrtc", "dds"])
def test_a_robot_speaks_and_shines(wire: str) -> None:
    async def main() -> None:
        async with rig(wire) as one, one.connect() as robot:
            await robot.audio.say("Hello")
            await robot.audio.light(255, 128, 0)
            notices = [notice.message for notice in one.world.notices]
            assert "it says 'Hello'" in notices
            assert "its light is now (255, 128, 0)" in notices
            with pytest.raises(BadRequestError, match="zh or en"):
                await robot.audio.say("Hallo", "de")
            for text in ("", "two\nlines", "x" * 501):
                with pytest.raises(BadRequestError):
                    await robot.audio.say(text)
            with pytest.raises(BadRequestError, match="0 to 255"):
                await robot.audio.light(256, 0, 0)

    asyncio.run(main())


def test_a_robot_without_a_voice_says_which_wires_have_one() -> None:
    async def main() -> None:
        async with rig("udp") as one, one.connect() as robot:
            with pytest.raises(UnsupportedError) as refused:
                await robot.audio.say("Hello")
            assert "dds://" in refused.value.wires_that_can
            with pytest.raises(UnsupportedError):
                await robot.audio.light(1, 2, 3)

    asyncio.run(main())
