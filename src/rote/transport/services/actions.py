"""The actions of the service arm: taught ones and presets, listed, played, renamed and deleted."""

import asyncio
from contextlib import suppress

from rote import messages as m
from rote.errors import NoAnswerError, RoteError
from rote.text import Act, Text
from rote.transport.services.connection import RpcConnection
from rote.transport.services.reports import RobotReports
from rote.wire.services import rpc
from rote.wire.services.rpc import NO_STATUS

_RELEASE_TIMEOUT_S = 1.0


class ArmActions:
    """The actions that one robot stores."""

    def __init__(self, connection: RpcConnection, reports: RobotReports) -> None:
        self._connection, self._reports = connection, reports
        self._held_by_us = False

    async def list_actions(self, _: m.ListActions) -> m.Reply:
        """Return the taught actions and the presets."""
        response = await self._connection.call(rpc.LIST_ACTIONS, read=True)
        presets, taught, notes = rpc.decode_actions(response.text)
        return m.ActionList(
            tuple(m.ActionEntry(t.name, round(t.seconds * 1000)) for t in taught),
            tuple(m.PresetEntry(p.id, p.name) for p in presets),
            notes,
        )

    async def play_action(self, command: m.PlayAction) -> m.Reply:
        """Play a taught action."""
        self._reports.note_motion()
        await self._connection.call(rpc.play_taught(command.name), verified=True)
        return m.Status()

    async def play_preset(self, command: m.PlayPreset) -> m.Reply:
        """Play a factory action; some of them hold their last pose until they are released."""
        self._reports.note_motion()
        self._held_by_us = command.id != m.RELEASE_PRESET
        await self._connection.call(rpc.execute_preset(command.id), verified=True)
        return m.Status()

    async def release_held_pose(self) -> None:
        """Release a pose that the robot holds for this client, if it is connected."""
        if self._held_by_us and self._reports.arms.holding and self._connection.failure is None:
            with suppress(RoteError, TimeoutError):
                async with asyncio.timeout(_RELEASE_TIMEOUT_S):
                    await self._connection.call(rpc.execute_preset(m.RELEASE_PRESET))

    async def rename_action(self, command: m.RenameAction) -> m.Reply:
        """Rename a taught action."""
        call = rpc.rename_taught(command.old, command.new)
        answer = await self._connection.call(call, verified=True)
        if answer.code == NO_STATUS and command.new not in await self._read_names():
            raise _make_unknown_outcome_error(f"{command.old!r} is not renamed")
        return m.Status()

    async def delete_action(self, command: m.DeleteAction | m.DiscardRecording) -> m.Reply:
        """Delete a taught action."""
        answer = await self._connection.call(rpc.delete_taught(command.name), verified=True)
        if answer.code == NO_STATUS and command.name in await self._read_names():
            raise _make_unknown_outcome_error(f"{command.name!r} is still there")
        return m.Status()

    async def _read_names(self) -> set[str]:
        """Return the names of the taught actions, to verify a request answered without a status."""
        try:
            response = await self._connection.call(rpc.LIST_ACTIONS, read=True)
        except RoteError as error:
            raise _make_unknown_outcome_error(str(error)) from error
        return {action.name for action in rpc.decode_actions(response.text).taught}


def _make_unknown_outcome_error(detail: str) -> NoAnswerError:
    return NoAnswerError(
        f"the robot's answer does not say whether it was done: it has no status; {detail}",
        Text("Look what there is ({list}), then ask again.", list=Act.LIST),
    )
