"""A stage that is controlled by OSC: the addresses, and the triggers that wait for a message."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rote.errors import BadRequestError, RoteError
from rote.transport.osc import OscPort
from rote.wire.osc import OscMessage

if TYPE_CHECKING:
    from rote.stage.stage import Stage

STOP_ADDRESS, GO_ADDRESS = "/rote/stop", "/rote/go"


class OscRemote:
    """Carries out the OSC messages that arrive for a stage."""

    def __init__(self, stage: "Stage", notify_user: Callable[[str], None]) -> None:
        self._stage, self._notify_user = stage, notify_user
        self._port: OscPort | None = None
        self._accepts_cues = True
        self._awaited_address = ""
        """The address that the next section waits for."""
        self._arrived = asyncio.Event()
        self._stops: set[asyncio.Task[Any]] = set()

    async def listen(self, host: str, port: int, *, cues: bool) -> tuple[str, int]:
        """Open a port; return its address. Only with `cues` it controls the cue list, too."""
        self._accepts_cues = cues
        self._port = await OscPort.open(self.receive, host, port)
        return self._port.address

    async def wait_for(self, address: str) -> None:
        """Wait for a message. Raises `BadRequestError` if no port is open."""
        if self._port is None:
            raise BadRequestError(
                f"a section waits for the OSC message {address}, but no OSC port is open",
                "Open a port for OSC.",
            )
        self._awaited_address = address
        self._arrived.clear()
        await self._arrived.wait()

    def receive(self, message: OscMessage) -> None:
        """Carry out a message; the user is told of one that is refused."""
        if message.address == STOP_ADDRESS:
            task = asyncio.get_running_loop().create_task(self._stage.stop("OSC"))
            self._stops.add(task)
            task.add_done_callback(self._stops.discard)
        elif message.address.startswith("/rote/"):
            try:
                self._control_cues(message)
            except RoteError as error:
                self._notify_user(f"the OSC message {message.address} is refused: {error}")
        if message.address == self._awaited_address:
            self._arrived.set()

    def _control_cues(self, message: OscMessage) -> None:
        """Carry out an OSC message that controls the cue list. Raises `BadRequestError`."""
        stage, address = self._stage, message.address
        if address == GO_ADDRESS:
            stage.go()
            return
        if not self._accepts_cues:
            raise BadRequestError("this program has no cue list", "Run the show as a cue list.")
        commands: dict[str, Callable[[], None]] = {
            "/rote/back": stage.back,
            "/rote/skip": stage.skip,
            "/rote/pause": stage.pause,
            "/rote/resume": stage.resume,
        }
        named_commands: dict[str, Callable[[str], None]] = {
            "/rote/jump": stage.jump,
            "/rote/mute": stage.mute,
            "/rote/unmute": lambda robot: stage.mute(robot, muted=False),
        }
        if address in commands:
            commands[address]()
        elif address in named_commands:
            (name, *_) = (*message.args, "")
            named_commands[address](str(name))

    def close(self) -> None:
        """Close the port."""
        if self._port is not None:
            self._port.close()
        for task in self._stops:
            task.cancel()
