"""A G1 that answers, and says nothing of itself."""

from collections.abc import Callable

import virtual
from rig import Pipe
from rote.robot.message_robot import G1
from rote.sim.server import Simulator
from rote.sim.services import Services
from rote.sim.store import Store
from rote.sim.world import World
from rote.transport.link import Carrier
from rote.transport.services.client import ServicesClient
from rote.transport.webrtc.connection import ChannelConnection


class Stateless(Pipe):
    """A way to a robot of which every answer comes through, and no state."""

    def listen(self, receive: Callable[[str | bytes], None], lost: Callable[[], None]) -> None:
        def answers(message: str | bytes) -> None:
            if "lowstate" not in str(message):
                receive(message)

        super().listen(answers, lost)


def test_a_robot_that_reports_no_state_is_asked_for_its_mode_and_the_lack_is_told() -> None:
    async def story() -> None:
        store = Store(":memory:")
        simulator = Simulator(World(store))

        async def dial() -> Carrier:
            return Stateless(Services(simulator.world))

        client = ServicesClient("services://g1", ChannelConnection(dial))
        await client.open()
        robot = G1(client)
        assert not (await robot.actions()).taught
        assert (await robot.modes.read()).balanced
        found = await robot.preflight()
        assert any("no joint positions" in finding.message for finding in found)
        assert all(finding.remedy for finding in found)
        await robot.stop()
        await client.close()
        await simulator.close()
        store.close()

    virtual.run(story())
