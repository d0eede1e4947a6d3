"""The actions that a robot stores: listed, found, saved, renamed and deleted."""

import asyncio
from contextlib import suppress

from rote import messages as m
from rote.errors import CautionError, DecodeError, NotSavedError, RefusedError
from rote.messages import Code
from rote.robot.api_values import Actions, Preset, TaughtAction, Waiting, Waits, check_name
from rote.robot.arm_requests import ArmRequests
from rote.robot.link import BY_FORCE, RobotLink, refused_error
from rote.text import Act, Text

LISTED_S = 10.0
"""How long a robot may take to list what it was taught: some write the file only after the release
of the arms.
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
        """Return the presets and the taught actions. Raises `DecodeError` if the answer is
        no list.
        """
        reply = await self._link.ask(m.ListActions())
        if not isinstance(reply, m.ActionList):
            raise DecodeError(
                "the robot answered without a list when it was asked for its actions",
                "Ask again; if it stays so, its software is one that rote does not know.",
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
        """Return a taught action by name or number; a newly taught action may be listed late.

        `actions` is a list that was just read; without it the list is requested.
        """
        if actions is None:
            actions = await self.read_list_if_readable()
        if isinstance(name, int):
            return _find_numbered(name, actions)
        action = actions.find(name)
        if action is None and not actions.notes and self._arms.taught_at(name) is not None:
            with suppress(NotSavedError):
                return await self.wait_until_listed(name, actions)
        if action is None and actions.notes:
            if "frames" in self._link.abilities:  # an action is requested by its number there
                raise _unreadable_list_error(f"whether it has {name!r}", actions, "Ask again.")
            return TaughtAction(name, 0.0, 0)  # the robot itself knows
        if action is None:
            known = ", ".join(each.name for each in actions.taught) or "nothing yet"
            message = f"there is no action {name!r}"
            raise RefusedError(Code.NO_SUCH_ACTION, message, f"On the robot: {known}.")
        return action

    async def find_preset(self, preset: int | str) -> Preset:
        """Return a factory action by its id or name; raise `RefusedError` if there is none."""
        actions = await self.read_list_if_readable()
        found = next((each for each in actions.presets if preset in (each.id, each.name)), None)
        if found is None and isinstance(preset, int):
            found = Preset(preset, str(preset))  # A list may be incomplete; the robot knows.
        if found is None and not actions.is_readable:
            raise _unreadable_list_error(
                f"which factory action {preset!r} is", actions, "Name it by its id."
            )
        if found is None:
            known = ", ".join(f"{each.id} {each.name}" for each in actions.presets) or "none"
            message = f"there is no preset {preset!r}"
            raise RefusedError(Code.NO_SUCH_ACTION, message, f"This robot has: {known}.")
        return found

    async def wait_until_listed(self, name: str, actions: Actions | None = None) -> TaughtAction:
        """Poll the list until it contains the newly taught action; `actions` is a list that was
        just read. Raises `NotSavedError` if it is not listed in time.
        """
        taught_s = self._arms.taught_at(name)
        until = (self._link.loop.time() if taught_s is None else taught_s) + LISTED_S
        if actions is None:
            actions = await self.read_list()
        action = actions.find(name)
        if action is None:
            with self._link.announce_wait(Waiting(Waits.LISTED, name, LISTED_S)):
                while action is None and self._link.loop.time() < until:
                    await asyncio.sleep(_RETRY_S)
                    actions = await self.read_list()
                    action = actions.find(name)
        if action is None and actions.notes:
            raise _unreadable_list_error(f"whether it has {name!r}", actions, "Ask again.")
        if action is None:
            raise NotSavedError(
                f"the robot ended the recording and does not list {name!r} after {LISTED_S:.0f} s",
                Text(
                    "Look what it has: {list}. What it reported while it was taught is kept here: "
                    "{takes}. Then teach again.",
                    list=Act.LIST,
                    takes=Act.TAKES,
                ),
            )
        return action

    async def check_free(self, name: str, *, overwrite: bool, force: bool) -> bool | None:
        """Return whether the robot has an action of that name, or None if its list is unreadable.

        Raises `RefusedError` if it has one and `overwrite` is false, and `CautionError` if the
        store is full, unless `force` leaves that to the robot.
        """
        actions = await self.read_list_if_readable()
        if not actions.is_readable:
            return None
        exists = actions.find(name) is not None
        if exists and not overwrite:
            raise self._name_exists_error()
        if not exists and not force and actions.free_places <= 0:
            raise self._store_full_error()
        return exists

    async def save(self, command: m.SaveAction) -> m.Reply:
        """Have the robot store an action; raise `RefusedError` if the name exists."""
        try:
            return await self._link.ask(command)
        except RefusedError as refused:
            if refused.code == Code.NAME_EXISTS:
                raise self._name_exists_error() from None
            raise

    async def rename(self, old: str, new: str) -> None:
        """Rename a taught action. Raises `RefusedError` if `new` exists or `old` does not."""
        self._link.require_ability("rename", "rename actions")
        check_name(new, may_be_long="save" not in self._link.abilities)
        actions = await self.read_list_if_readable()
        if actions.find(old) is None and not actions.notes:
            raise refused_error(Code.NO_SUCH_ACTION)
        if actions.find(new) is not None:
            raise refused_error(Code.NAME_EXISTS)
        await self._link.ask(m.RenameAction(old, new))

    async def delete(self, name: str) -> None:
        """Delete a taught action. Raises `RefusedError` if there is no action of that name."""
        self.check_can_delete()
        actions = await self.read_list_if_readable()
        if actions.find(name) is None and not actions.notes:
            raise refused_error(Code.NO_SUCH_ACTION)
        await self._link.ask(m.DeleteAction(name))

    def check_can_delete(self) -> None:
        """Raise `UnsupportedError` if this wire cannot delete; nothing is asked of the robot."""
        self._link.require_ability("delete", "delete actions")

    def _store_full_error(self) -> CautionError:
        message, remedy = m.explain(Code.STORE_FULL)
        if "delete" in self._link.abilities:
            remedy = Text("Delete one that is not needed: {delete}.", delete=Act.DELETE)
        elif "overwrite" in self._link.abilities:
            remedy = Text(
                "Replace one that is not needed: teach by its name, with {overwrite}. A simulated "
                "robot can also begin with another store: {other}.",
                overwrite=Act.OVERWRITE,
                other=Act.OTHER_STORE,
            )
        advice = Text("{remedy} {by_force}", remedy=remedy, by_force=BY_FORCE)
        return CautionError(message, advice, Code.STORE_FULL)

    def _name_exists_error(self) -> RefusedError:
        message, remedy = m.explain(Code.NAME_EXISTS)
        if "overwrite" in self._link.abilities:
            remedy = Text(
                "Choose another name, or replace that action: {overwrite}.", overwrite=Act.OVERWRITE
            )
        return RefusedError(Code.NAME_EXISTS, message, remedy)


def _find_numbered(number: int, actions: Actions) -> TaughtAction:
    numbered = actions.numbered(number)
    if numbered is None and actions.notes:
        raise _unreadable_list_error(
            f"which action is number {number}", actions, "Play it by its name."
        )
    if numbered is None:
        known = ", ".join(f"{each.position} {each.name}" for each in actions.taught)
        message = f"there is no action number {number}"
        raise RefusedError(Code.NO_SUCH_ACTION, message, f"On the robot: {known or 'nothing yet'}.")
    return numbered


def _unreadable_list_error(unknown: str, actions: Actions, remedy: str) -> DecodeError:
    """Return the error for an action list that could not be read."""
    return DecodeError(f"{unknown} is not known: {'; '.join(actions.notes)}", remedy)
