"""The actions that a robot stores: listed, found, saved, renamed and deleted."""

import asyncio
from contextlib import suppress

from rote import messages as m
from rote.errors import CautionError, DecodeError, NotSavedError, RefusedError
from rote.messages import Code
from rote.robot.api_values import Actions, Preset, TaughtAction, Waiting, Waits, check_name
from rote.robot.arm_requests import ArmRequests
from rote.robot.link import BY_FORCE, RobotLink
from rote.text import Act, Text, suggest_names

LISTED_S = 10.0
"""Timeout in seconds for a newly taught action to appear in the robot's list. Some robots write the
file only after the arms are released.
"""
_RETRY_S = 0.5
"""Interval between two requests for the list while waiting, in seconds."""


class ActionStore:
    """The presets and taught actions of one robot."""

    def __init__(self, link: RobotLink, arms: ArmRequests) -> None:
        self._link = link
        self._arms = arms
        self.known_names: frozenset[str] = frozenset()
        """The names in the robot's newest list."""

    async def read_list(self) -> Actions:
        """Return the presets and the taught actions. Raises `DecodeError` if the robot's answer is
        not a list of actions.
        """
        reply = await self._link.ask(m.ListActions())
        if not isinstance(reply, m.ActionList):
            raise DecodeError(
                "the robot did not answer the request for its actions with a list",
                "Try again. If it still fails, rote does not know this version of the "
                "robot's software.",
            )
        taught = (
            TaughtAction(entry.name, entry.duration_ms / 1000, position)
            for position, entry in enumerate(reply.actions, start=1)
        )
        self.known_names = frozenset(entry.name for entry in reply.actions)
        presets = tuple(Preset(entry.id, entry.name) for entry in reply.presets)
        return Actions(presets=presets, taught=tuple(taught), notes=reply.notes)

    async def read_list_if_readable(self) -> Actions:
        """Return the actions; if the list is refused or unreadable, only a note about it."""
        try:
            return await self.read_list()
        except (DecodeError, RefusedError) as error:
            return Actions((), (), (f"its list of actions cannot be read: {error}",))

    async def find_action(self, name: str | int, actions: Actions | None = None) -> TaughtAction:
        """Return a taught action by name or number. An action that was just taught and is not
        listed yet is waited for.

        `actions` is a list that was just read; without it the list is requested. Raises
        `RefusedError` if there is no such action.
        """
        if actions is None:
            actions = await self.read_list_if_readable()
        if isinstance(name, int):
            return _find_action_by_number(name, actions)
        action = actions.find(name)
        if action is not None:
            return action
        if not actions.notes and self._arms.find_taught_at(name) is not None:
            with suppress(NotSavedError):
                return await self.wait_until_listed(name, actions)
        if not actions.notes:
            raise _make_no_such_action_error(name, actions)
        # A part of the list could not be read, so the action may exist.
        if "frames" in self._link.abilities:  # frames need the number, which is in the list
            raise _make_unreadable_error(f"whether it has {name!r}", actions, "Try again.")
        return TaughtAction(name, 0.0, 0)  # the robot finds it by name, or refuses

    async def find_preset(self, preset: int | str) -> Preset:
        """Return a factory action by its id or name; raise `RefusedError` if there is none."""
        actions = await self.read_list_if_readable()
        found = next((each for each in actions.presets if preset in (each.id, each.name)), None)
        if found is not None:
            return found
        if isinstance(preset, int):
            return Preset(preset, str(preset))  # lists may be incomplete: let the robot decide
        if not actions.is_readable:
            raise _make_unreadable_error(
                f"which factory action {preset!r} is", actions, "Give its id instead of its name."
            )
        known = ", ".join(f"{each.id} {each.name}" for each in actions.presets) or "none"
        hint = suggest_names(preset, [each.name for each in actions.presets])
        remedy = f"{hint} This robot has: {known}.".lstrip()
        raise RefusedError(Code.NO_SUCH_ACTION, f"there is no preset {preset!r}", remedy)

    async def wait_until_listed(self, name: str, actions: Actions | None = None) -> TaughtAction:
        """Poll the list until it contains the newly taught action; `actions` is a list that was
        just read. Raises `NotSavedError` if it is not listed in time.
        """
        taught_at = self._arms.find_taught_at(name)
        deadline = (self._link.loop.time() if taught_at is None else taught_at) + LISTED_S
        if actions is None:
            actions = await self.read_list()
        action = actions.find(name)
        if action is None:
            with self._link.announce_wait(Waiting(Waits.LISTED, name, LISTED_S)):
                while action is None and self._link.loop.time() < deadline:
                    await asyncio.sleep(_RETRY_S)
                    actions = await self.read_list()
                    action = actions.find(name)
        if action is None and actions.notes:
            raise _make_unreadable_error(f"whether it has {name!r}", actions, "Try again.")
        if action is None:
            raise NotSavedError(
                f"the robot ended the recording, but did not list {name!r} within {LISTED_S:.0f} s",
                Text(
                    "Check the robot's list: {list}. The take on this computer is kept: {takes}. "
                    "Then teach again.",
                    list=Act.LIST,
                    takes=Act.TAKES,
                ),
            )
        return action

    async def check_can_store(self, name: str, *, overwrite: bool, force: bool) -> bool | None:
        """Return whether the robot has an action of that name, or None if its list is unreadable.

        Raises `RefusedError` if it has one and `overwrite` is false, and `CautionError` if the
        store is full, unless `force` leaves that to the robot.
        """
        actions = await self.read_list_if_readable()
        if not actions.is_readable:
            return None
        exists = actions.find(name) is not None
        if exists and not overwrite:
            raise self._make_name_exists_error()
        if not exists and not force and actions.free_places <= 0:
            raise self._make_store_full_error()
        return exists

    async def save(self, command: m.SaveAction) -> m.Reply:
        """Have the robot store an action; raise `RefusedError` if the name exists."""
        try:
            return await self._link.ask(command)
        except RefusedError as refused:
            if refused.code == Code.NAME_EXISTS:
                raise self._make_name_exists_error() from None
            raise

    async def rename(self, old: str, new: str) -> None:
        """Rename a taught action. Raises `RefusedError` if `new` exists or `old` does not."""
        self._link.require_ability("rename", "rename actions")
        check_name(new, may_be_long="save" not in self._link.abilities)
        actions = await self.read_list_if_readable()
        if actions.find(old) is None and not actions.notes:
            raise _make_no_such_action_error(old, actions)
        if actions.find(new) is not None:
            raise RefusedError(Code.NAME_EXISTS, *m.explain(Code.NAME_EXISTS))
        await self._link.ask(m.RenameAction(old, new))

    async def delete(self, name: str) -> None:
        """Delete a taught action. Raises `RefusedError` if there is no action of that name."""
        self.check_can_delete()
        actions = await self.read_list_if_readable()
        if actions.find(name) is None and not actions.notes:
            raise _make_no_such_action_error(name, actions)
        await self._link.ask(m.DeleteAction(name))

    def check_can_delete(self) -> None:
        """Raise `UnsupportedError` if this wire cannot delete. Sends nothing to the robot."""
        self._link.require_ability("delete", "delete actions")

    def _make_store_full_error(self) -> CautionError:
        message, remedy = m.explain(Code.STORE_FULL)
        if "delete" in self._link.abilities:
            remedy = Text("Delete an action that you do not need: {delete}.", delete=Act.DELETE)
        elif "overwrite" in self._link.abilities:
            remedy = Text(
                "Replace an action that you do not need: teach under its name, with "
                "{overwrite}. A simulated robot can also start with another store: "
                "{other}.",
                overwrite=Act.OVERWRITE,
                other=Act.OTHER_STORE,
            )
        advice = Text("{remedy} {by_force}", remedy=remedy, by_force=BY_FORCE)
        return CautionError(message, advice, Code.STORE_FULL)

    def _make_name_exists_error(self) -> RefusedError:
        message, remedy = m.explain(Code.NAME_EXISTS)
        if "overwrite" in self._link.abilities:
            remedy = Text(
                "Choose another name, or replace that action: {overwrite}.", overwrite=Act.OVERWRITE
            )
        return RefusedError(Code.NAME_EXISTS, message, remedy)


def _make_no_such_action_error(name: str, actions: Actions) -> RefusedError:
    """Return the error for an unknown name; its remedy lists similar names and all names."""
    names = [each.name for each in actions.taught]
    remedy = f"{suggest_names(name, names)} On the robot: {', '.join(names) or 'nothing yet'}."
    return RefusedError(Code.NO_SUCH_ACTION, f"there is no action {name!r}", remedy.lstrip())


def _find_action_by_number(number: int, actions: Actions) -> TaughtAction:
    numbered = actions.numbered(number)
    if numbered is None and actions.notes:
        raise _make_unreadable_error(
            f"which action is number {number}", actions, "Play it by its name."
        )
    if numbered is None:
        known = ", ".join(f"{each.position} {each.name}" for each in actions.taught)
        message = f"there is no action number {number}"
        raise RefusedError(Code.NO_SUCH_ACTION, message, f"On the robot: {known or 'nothing yet'}.")
    return numbered


def _make_unreadable_error(unknown: str, actions: Actions, remedy: str) -> DecodeError:
    """Return the error for a question (`unknown`) that an unreadable action list leaves open."""
    return DecodeError(f"cannot determine {unknown}: {'; '.join(actions.notes)}", remedy)
