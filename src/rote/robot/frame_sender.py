"""Sends single frames written by the user, each handled like the corresponding method."""

from rote import messages as m
from rote.robot import sending
from rote.robot.action_store import ActionStore
from rote.robot.arm_requests import ArmRequests
from rote.robot.link import RobotLink
from rote.robot.modes import MessageModes


class FrameSender:
    """Sends documented frames to one robot, on wires that carry them."""

    def __init__(
        self, link: RobotLink, store: ActionStore, arms: ArmRequests, modes: MessageModes
    ) -> None:
        self._link = link
        self._store = store
        self._arms = arms
        self._modes = modes

    async def send(self, command: int, payload: bytes) -> m.Reply:
        """Decode, check and send one frame; return the robot's answer."""
        self._link.require_ability("frames", "send single frames")
        message = sending.read(command, payload, self._link.build)
        match message:
            case m.StopMotion():
                await self._link.stop()
            case m.EnterTeaching():
                await self._modes.check_balanced()
                await self._arms.enter_teaching(message)
                self._arms.note_teaching("", True)
            case m.ExitTeaching():
                await self._link.ask(message)
                self._arms.note_teaching("", False)
            case m.PlayAction():
                stops = self._link.stops.count
                action = await self._store.find_action(message.action)
                await self._arms.request_motion(message, action.name, stops, lambda: None)
            case m.ChangeMode():
                await self._modes.enter(message.mode)
            case m.SaveAction():
                return await self._store.save(message)
            case _:
                return await self._link.ask(message)
        return m.Status()

    async def sync_parameters(self, parameters: bytes) -> None:
        """Send parameters, up to 44 bytes that only the robot understands."""
        self._link.require_ability("frames", "sync parameters")
        await self._link.ask(m.SyncParameters(bytes(parameters)))
