"""OSC over UDP: receivers are found before anything is sent."""

import asyncio

import pytest

from rote.errors import LinkError
from rote.transport.osc import OscPort
from rote.wire.osc import OscMessage


def test_a_message_goes_to_a_name_that_was_found_before() -> None:
    async def story() -> None:
        heard: asyncio.Future[OscMessage] = asyncio.get_running_loop().create_future()
        desk = await OscPort.open(heard.set_result, "127.0.0.1", 0)
        sender = await OscPort.open(lambda _: None, "127.0.0.1", 0)
        try:
            to = f"localhost:{desk.address[1]}"
            await sender.resolve(to)
            sender.send(OscMessage("/go", (1, "x")), to)
            assert await asyncio.wait_for(heard, 10.0) == OscMessage("/go", (1, "x"))
        finally:
            sender.close()
            desk.close()

    asyncio.run(story())


@pytest.mark.parametrize("to", ["[::1]:9000", "256.1.1.1:9000"])
def test_a_receiver_that_cannot_be_found_is_refused_and_not_lost_in_silence(to: str) -> None:
    async def story() -> None:
        sender = await OscPort.open(lambda _: None, "127.0.0.1", 0)
        try:
            with pytest.raises(LinkError, match="cannot be sent"):
                await sender.resolve(to)
        finally:
            sender.close()

    asyncio.run(story())
