"""G1TeachingController: the documented controller, method by method, built on `rote.sync`.

    controller = G1TeachingController("192.168.1.20")
    controller.init_connection()
    print(controller.list_actions())
    controller.enter_teaching()              # the arms get soft: hold them
    controller.record_trajectory(seconds=5)  # a person moves them
    controller.save_action("my_wave", 5000)
    controller.play_action(1)
    controller.exit_teaching()

Both orders of the documents work: save and play before the exit, or after it. The arms hold again
however the program ends: by `exit_teaching`, `close`, an exception, Ctrl-C or a signal.
`G1TeachingController(url="webrtc://...")` does the same with a robot that has stock firmware.
"""

import atexit
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from rote import messages as m
from rote.errors import BadRequestError, RoteError
from rote.robot.api_values import PlayReport
from rote.sync import (
    BlockingBlock,
    BlockingConnection,
    BlockingRobot,
    BlockingTake,
    connect,
)
from rote.transport.udp.client import TeachingClient
from rote.transport.wires import unsupported
from rote.wire.teaching.codec import CommandId, decode, decode_reply, encode_command

__all__ = ["DEFAULT_PORT", "G1TeachingController"]

DEFAULT_PORT = 49504
DEFAULT_RECORD_S = 5.0
"""Default duration of `record_trajectory`: the documents' example of a gesture."""
_CONNECT_COMMANDS = frozenset(
    {
        CommandId.CONTROL_MODE,
        CommandId.PARAMETER_SYNC,
        CommandId.STATUS_SUBSCRIBE,
        CommandId.READY_SIGNAL,
    }
)


class G1TeachingController:
    """One robot, taught by the steps of the documents. It is also a context manager."""

    def __init__(self, robot_ip: str = "", port: int = DEFAULT_PORT, *, url: str = "") -> None:
        """Choose a robot by its address, or by any URL of `rote.connect`. Nothing is sent."""
        if bool(robot_ip) == bool(url):
            raise BadRequestError(
                "the robot needs either an address or a URL", "Give exactly one of them."
            )
        self.robot_ip = robot_ip
        self.port = port
        host = f"[{robot_ip}]" if ":" in robot_ip else robot_ip
        self.url = url or f"udp://{host}:{port}"
        self._connection: BlockingConnection[BlockingRobot] | None = None
        self._robot: BlockingRobot | None = None
        self._steps: _FrameSteps | _TakeSteps | None = None

    # ---- the connection -------------------------------------------------------------------------

    @property
    def sequence(self) -> int:
        """The sequence number of the next frame; 0 before `init_connection`, and over wires without
        these frames. rote counts it.
        """
        return self._client.sequence if isinstance(self._client, TeachingClient) else 0

    @property
    def socket(self) -> Any:
        """The UDP socket, to read its addresses; None if there is none. `send_command` sends."""
        return self._client.socket if isinstance(self._client, TeachingClient) else None

    @property
    def _client(self) -> object:
        """The client behind the robot; None before `init_connection`."""
        return None if self._robot is None else self._robot._target._client

    def init_connection(self) -> None:
        """Connect: 0x09 to 0x0C in the documented frames. Safe to repeat."""
        if self._robot is not None:
            return
        connection = connect(self.url)
        self._robot = connection.__enter__()
        self._connection = connection
        atexit.register(self.close)
        has_frames = "frames" in self._robot.abilities
        self._steps = (_FrameSteps if has_frames else _TakeSteps)(self._robot)

    def close(self) -> None:
        """Make the arms hold, and disconnect from the robot. Safe to repeat."""
        if self._connection is None:
            return
        connection, self._connection = self._connection, None
        atexit.unregister(self.close)
        try:
            with suppress(RoteError):
                self._connected_steps.close()
        finally:
            self._robot = self._steps = None
            connection.__exit__(None, None, None)

    def __enter__(self) -> Self:
        self.init_connection()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def robot(self) -> BlockingRobot:
        """The connected robot, as `rote.sync.connect` returns it."""
        if self._robot is None:
            raise BadRequestError("the controller is not connected", "Call init_connection first.")
        return self._robot

    @property
    def _connected_steps(self) -> "_FrameSteps | _TakeSteps":
        steps = self._steps
        if steps is None:
            raise BadRequestError("the controller is not connected", "Call init_connection first.")
        return steps

    # ---- the steps of the documents -------------------------------------------------------------

    def list_actions(self) -> list[str]:
        """Return the names of the taught actions; the first has the number 1."""
        return [action.name for action in self.robot.actions().taught]

    def parse_action_list(self, response: "m.Reply | bytes") -> list[str]:
        """Return the names in the answer to 0x1A: a reply, a payload or a whole packet."""
        if isinstance(response, bytes):
            # A whole packet begins with these bytes; a payload alone does not.
            is_packet = response[:4] == b"\x17\xfe\xfd\x00"
            payload = decode(response).payload if is_packet else response
            response = decode_reply(CommandId.LIST_ACTIONS, payload)
        if not isinstance(response, m.ActionList):
            raise BadRequestError("this is not a list of actions", "Pass the answer to 0x1A.")
        return [entry.name for entry in response.actions]

    def enter_teaching(self) -> None:
        """Make the arms soft: hold them. They stay soft until `exit_teaching` or `play_action`."""
        self._connected_steps.enter()

    def start_recording(self) -> None:
        """Start recording the motion of the arms."""
        self._connected_steps.record(on=True)

    def stop_recording(self) -> None:
        """End the recording; the arms stay soft."""
        self._connected_steps.record(on=False)

    def record_trajectory(self, seconds: float = DEFAULT_RECORD_S, *, hand: str = "") -> None:
        """Record for `seconds` while a person moves the arms. If it is interrupted, the arms hold.

        `hand` names a script that moves the arms of a simulated robot.
        """
        try:
            self.start_recording()
            if hand:
                self.robot.move_by_hand(hand, seconds)
            time.sleep(seconds)
            self.stop_recording()
        except BaseException:
            with suppress(RoteError):
                self.exit_teaching()
            raise

    def save_action(self, name: str, duration_ms: int) -> str:
        """Store the whole recording under a name; return the robot's note, usually empty.

        `duration_ms` is stored as a description; it does not cut or stretch the recording.
        """
        return self._connected_steps.save(name, duration_ms)

    def exit_teaching(self) -> None:
        """Make the arms hold. What was recorded can still be saved."""
        self._connected_steps.exit()

    def play_action(self, action_id: int) -> PlayReport:
        """Play an action by its number, from 1, and wait for its end; Ctrl-C stops it softly."""
        report: PlayReport = self.robot.play(action_id)
        self._connected_steps.note_played()
        return report

    def stop(self) -> None:
        """Stop what plays or is being taught, softly."""
        self.robot.stop()
        self._connected_steps.note_played()

    # ---- single commands ------------------------------------------------------------------------

    def send_command(
        self,
        cmd_id: int,
        payload: bytes | None = None,
        *,
        state_packet: bool = False,
        flag: int = 0,
        name: str = "",
        duration: int = 0,
        action_id: int = 0,
    ) -> m.Reply:
        """Carry out one command of the documents, and return the robot's answer.

        With a `payload` that frame is checked and sent as by `robot.send`. Without one, 0x09 to
        0x0C connect; 0x0D without `state_packet` does nothing, because rote sends keep-alives by
        itself; and 0x41 with `action_id` 0 stops. `flag` starts (1) or stops (0) the recording of
        0x0F; `name` and `duration`, in ms, are those of 0x2B.
        """
        if cmd_id in _CONNECT_COMMANDS and payload is None:
            self.init_connection()
            return m.Status()
        if payload is not None:
            return self._connected_steps.send(cmd_id, payload)
        if cmd_id == CommandId.LIST_ACTIONS:
            taught = self.robot.actions().taught
            entries = (
                m.ActionEntry(action.name, round(action.duration_s * 1000)) for action in taught
            )
            return m.ActionList(tuple(entries))
        handlers: dict[int, Callable[[], object]] = {
            CommandId.TEACHING: self.enter_teaching if state_packet else lambda: None,
            CommandId.EXIT_TEACHING: self.exit_teaching,
            CommandId.RECORD: self.start_recording if flag else self.stop_recording,
            CommandId.SAVE_ACTION: lambda: self.save_action(name, duration),
            CommandId.PLAY_ACTION: lambda: self._start_action(action_id),
        }
        if cmd_id not in handlers:
            raise BadRequestError(
                f"0x{cmd_id:02x} is not a documented command",
                "Use 0x09 to 0x0F, 0x1A, 0x2B, 0x41.",
            )
        note = handlers[cmd_id]()
        return m.Status(m.Code.OK, note if isinstance(note, str) else "")

    def _start_action(self, action_id: int) -> None:
        if action_id == 0:
            self.stop()
            return
        self.robot.start(action_id)
        self._connected_steps.note_played()


# ---- how a robot is taught step by step ---------------------------------------------------------


class _FrameSteps:
    """The teaching steps over UDP frames, which have a command for each."""

    def __init__(self, robot: BlockingRobot) -> None:
        self._robot = robot
        self._is_soft = False

    def enter(self) -> None:
        self._is_soft = True  # before the reply: if only that is lost, the arms are soft anyway
        try:
            state = self._robot.state
            self._robot.send(*encode_command(m.EnterTeaching(state)))
        except RoteError:
            with suppress(RoteError):
                self.exit()
            raise

    def record(self, *, on: bool) -> None:
        self._robot.send(CommandId.RECORD, struct.pack(">I", on))

    def save(self, name: str, duration_ms: int) -> str:
        note: str = self._robot.save(name, duration_ms / 1000)
        return note

    def exit(self) -> None:
        self._robot.send(CommandId.EXIT_TEACHING)
        self._is_soft = False

    def note_played(self) -> None:
        self._is_soft = False  # both playing and stopping end teaching

    def send(self, command: int, payload: bytes) -> m.Reply:
        reply: m.Reply = self._robot.send(command, payload)
        if command == CommandId.TEACHING:
            self._is_soft = True
        elif command == CommandId.EXIT_TEACHING:
            self._is_soft = False
        return reply

    def close(self) -> None:
        if self._is_soft:
            with suppress(RoteError):
                self.record(on=False)
            self.exit()


class _TakeSteps:
    """The teaching steps on wires that name a recording at its start and store it at its end.

    The recording gets a temporary name, which `save` changes, and is paused between steps.
    """

    def __init__(self, robot: BlockingRobot) -> None:
        self._robot = robot
        self._block: BlockingBlock[BlockingTake] | None = None
        self._take: BlockingTake | None = None
        self._name = ""
        """The temporary name of the recording; empty if there is none to save."""
        self._has_recorded = False

    def enter(self) -> None:
        """Begin a teaching under a temporary name, and pause its recording."""
        if self._block is not None:
            return
        for ability in ("rename", "pause"):
            if ability not in self._robot.abilities:
                wire = self._robot.url.partition(":")[0]
                raise unsupported("be taught step by step", wire, ability)
        self._delete_unsaved()
        name = time.strftime("teaching %H.%M.%S")
        block = self._robot.teach(name)
        self._take = block.__enter__()
        self._block, self._name, self._has_recorded = block, name, False
        self._take.pause()  # until `record`

    def record(self, *, on: bool) -> None:
        if self._block is None or self._take is None:
            if not on:
                return
            raise BadRequestError("teaching has not been entered", "Call enter_teaching first.")
        if on:
            self._has_recorded = True
            self._take.resume()
        else:
            self._take.pause()

    def save(self, name: str, duration_ms: int) -> str:
        """End the teaching, which stores the recording; rename it. `duration_ms` is not used."""
        self.exit()
        if not self._name:
            raise BadRequestError("nothing was recorded", "Call record_trajectory first.")
        self._robot.rename(self._name, name)
        self._name = ""
        return ""

    def exit(self) -> None:
        """End the teaching; without a recording nothing is stored."""
        if self._block is None or self._take is None:
            return
        block, self._block = self._block, None
        if not self._has_recorded:
            self._take.discard()
            self._name = ""
        block.__exit__(None, None, None)

    def note_played(self) -> None:
        """Do nothing: playing is refused during teaching, and a stop has ended teaching."""

    def send(self, command: int, payload: bytes) -> m.Reply:
        reply: m.Reply = self._robot.send(command, payload)  # raises: there are no frames
        return reply

    def close(self) -> None:
        try:
            self.exit()
        finally:
            self._delete_unsaved()

    def _delete_unsaved(self) -> None:
        """Delete a recording that was never saved and has only its temporary name."""
        if self._name:
            name, self._name = self._name, ""
            self._robot.delete(name)
