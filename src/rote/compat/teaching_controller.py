"""G1TeachingController: the controller of the documents, method by method, over `rote.sync`.

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
from typing import Self

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
from rote.transport.wires import unsupported
from rote.wire.teaching.codec import CommandId, decode, decode_reply, encode_command

__all__ = ["DEFAULT_PORT", "G1TeachingController"]

DEFAULT_PORT = 49504
RECORD_S = 5.0
"""Default duration of `record_trajectory`: the documents' example of a gesture."""
_GREETINGS = frozenset(
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
        """Name a robot by its address, or by any URL that `rote.connect` knows; nothing is sent."""
        if bool(robot_ip) == bool(url):
            raise BadRequestError("name a robot by its address or by a URL", "Give one of them.")
        self.robot_ip = robot_ip
        self.port = port
        host = f"[{robot_ip}]" if ":" in robot_ip else robot_ip
        self.url = url or f"udp://{host}:{port}"
        self._connection: BlockingConnection[BlockingRobot] | None = None
        self._robot: BlockingRobot | None = None
        self._steps: _FrameSteps | _TakeSteps | None = None

    # ---- the connection -------------------------------------------------------------------------

    def init_connection(self) -> None:
        """Connect, which is 0x09 to 0x0C in the documented frames. Safe to repeat."""
        if self._robot is not None:
            return
        connection = connect(self.url)
        self._robot = connection.__enter__()
        self._connection = connection
        atexit.register(self.close)
        by_frames = "frames" in self._robot.abilities
        self._steps = (_FrameSteps if by_frames else _TakeSteps)(self._robot)

    def close(self) -> None:
        """Make the arms hold, and disconnect from the robot. Safe to call twice."""
        if self._connection is None:
            return
        connection, self._connection = self._connection, None
        atexit.unregister(self.close)
        try:
            with suppress(RoteError):
                self._required_steps.close()
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
        """The connected robot, as `rote.sync` has it."""
        if self._robot is None:
            raise BadRequestError("the controller is not connected", "Call init_connection first.")
        return self._robot

    @property
    def _required_steps(self) -> "_FrameSteps | _TakeSteps":
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
            is_packet = response[:1] == b"\x17" and response[1:4] == b"\xfe\xfd\x00"
            payload = decode(response).payload if is_packet else response
            response = decode_reply(CommandId.LIST_ACTIONS, payload)
        if not isinstance(response, m.ActionList):
            raise BadRequestError("this is not a list of actions", "Pass the answer to 0x1A.")
        return [entry.name for entry in response.actions]

    def enter_teaching(self) -> None:
        """Make the arms soft: hold them. They are kept soft until `exit_teaching` or a play."""
        self.robot  # noqa: B018 # raises if not connected
        self._required_steps.enter()

    def start_recording(self) -> None:
        """Begin to record what the arms do."""
        self._required_steps.record(on=True)

    def stop_recording(self) -> None:
        """End the recording; the arms stay soft."""
        self._required_steps.record(on=False)

    def record_trajectory(self, seconds: float = RECORD_S, *, hand: str = "") -> None:
        """Record for `seconds` while a person moves the arms; `hand` names a script that moves the
        arms of a simulated robot. If it is interrupted in any way, the arms hold."""
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
        """Store the recording under a name, whole and at its own length, regardless of
        `duration_ms`; return the robot's note, which is usually empty."""
        return self._required_steps.save(name, duration_ms)

    def exit_teaching(self) -> None:
        """Make the arms hold. What was recorded can still be saved."""
        self._required_steps.exit()

    def play_action(self, action_id: int) -> PlayReport:
        """Play an action by its number, from 1, and wait for its end; Ctrl-C stops it softly."""
        report: PlayReport = self.robot.play(action_id)
        self._required_steps.has_played()
        return report

    def stop(self) -> None:
        """Stop what plays or is being taught, softly."""
        self.robot.stop()
        self._required_steps.has_played()

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
        """Carry out one command of the documents, with the values they name; returns the answer.

        With a `payload` the frame itself is sent, checked as `robot.send` does. 0x09 to 0x0C
        connect, 0x0D without `state_packet` is a keep-alive, which rote sends by itself, and
        `action_id` 0 stops.
        """
        if cmd_id in _GREETINGS and payload is None:
            self.init_connection()
            return m.Status()
        if payload is not None:
            return self._required_steps.send(cmd_id, payload)
        if cmd_id == CommandId.LIST_ACTIONS:
            listed = self.robot.actions().taught
            entries = (m.ActionEntry(one.name, round(one.duration_s * 1000)) for one in listed)
            return m.ActionList(tuple(entries))
        does: dict[int, Callable[[], object]] = {
            CommandId.TEACHING: self.enter_teaching if state_packet else lambda: None,
            CommandId.EXIT_TEACHING: self.exit_teaching,
            CommandId.RECORD: self.start_recording if flag else self.stop_recording,
            CommandId.SAVE_ACTION: lambda: self.save_action(name, duration),
            CommandId.PLAY_ACTION: lambda: self._start_action(action_id),
        }
        if cmd_id not in does:
            raise BadRequestError(
                f"the documents have no command 0x{cmd_id:02x}",
                "Use 0x09 to 0x0F, 0x1A, 0x2B, 0x41.",
            )
        note = does[cmd_id]()
        return m.Status(m.Code.OK, note if isinstance(note, str) else "")

    def _start_action(self, action_id: int) -> None:
        if action_id == 0:
            self.stop()
            return
        self.robot.start(action_id)
        self._required_steps.has_played()


# ---- how a robot is taught step by step ---------------------------------------------------------


class _FrameSteps:
    """The steps in the documented frames, which have a command for each."""

    def __init__(self, robot: BlockingRobot) -> None:
        self._robot = robot
        self._soft = False

    def enter(self) -> None:
        self._soft = True  # before the answer: if only that is lost, the arms are soft anyway
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
        self._soft = False

    def has_played(self) -> None:
        self._soft = False  # a play, and a stop, end the teaching

    def send(self, command: int, payload: bytes) -> m.Reply:
        reply: m.Reply = self._robot.send(command, payload)
        if command == CommandId.TEACHING:
            self._soft = True
        elif command == CommandId.EXIT_TEACHING:
            self._soft = False
        return reply

    def close(self) -> None:
        if self._soft:
            with suppress(RoteError):
                self.record(on=False)
            self.exit()


class _TakeSteps:
    """The steps on wires where a teaching is named at its start and stored at its end.

    It gets a temporary name, and `save` renames it. Between recordings the teaching is paused."""

    def __init__(self, robot: BlockingRobot) -> None:
        self._robot = robot
        self._block: BlockingBlock[BlockingTake] | None = None
        self._take: BlockingTake | None = None
        self._name = ""
        self._recorded = False

    def enter(self) -> None:
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
        self._block, self._name, self._recorded = block, name, False
        self._take.pause()

    def record(self, *, on: bool) -> None:
        if self._block is None or self._take is None:
            if not on:
                return
            raise BadRequestError("teaching has not been entered", "Call enter_teaching first.")
        if on:
            self._recorded = True
            self._take.resume()
        else:
            self._take.pause()

    def save(self, name: str, duration_ms: int) -> str:
        self.exit()
        if not self._name:
            raise BadRequestError("nothing was recorded", "Teach first.")
        self._robot.rename(self._name, name)
        self._name = ""
        return ""

    def exit(self) -> None:
        if self._block is None or self._take is None:
            return
        block, self._block = self._block, None
        if not self._recorded:
            self._take.discard()
            self._name = ""
        block.__exit__(None, None, None)

    def has_played(self) -> None:
        """Do nothing: a play is refused during teaching, and a stop has ended the teaching."""

    def send(self, command: int, payload: bytes) -> m.Reply:
        reply: m.Reply = self._robot.send(command, payload)  # raises: there are no frames
        return reply

    def close(self) -> None:
        try:
            self.exit()
        finally:
            self._delete_unsaved()

    def _delete_unsaved(self) -> None:
        """Delete a recording that was never saved: its temporary name is of no use."""
        if self._name:
            name, self._name = self._name, ""
            self._robot.delete(name)
