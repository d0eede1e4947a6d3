"""The actions of the connected robot, and a counter of their changes."""

from rote.errors import LinkError, RefusedError, UnsupportedError
from rote.messages import Code, explain
from rote.motion.files.agreed_origins import is_agreed
from rote.robot.api_values import Actions
from rote.robot.robot import Robot
from rote.transport.wires import wires_with
from rote.web.schemas.robot import Stored, StoreTake
from rote.web.server.problems import busy
from rote.web.services.activity import ActivityService
from rote.web.services.connection_keeper import ConnectionKeeper
from rote.web.services.edits import EditService
from rote.web.services.takes import TakeService


class ActionService:
    """Lists, stores, renames and deletes the actions of the connected robot."""

    def __init__(
        self,
        connection: ConnectionKeeper,
        activities: ActivityService,
        takes: TakeService,
        edits: EditService,
    ) -> None:
        self._connection, self._activities = connection, activities
        self._takes, self._edits = takes, edits
        self.known: Actions | None = None
        """What the robot can play; None if that is not known."""
        self.changes = 0
        """Incremented whenever the list of actions has changed, or must be read again."""

    def note_change(self) -> None:
        """Count a change, so that pages read the list again."""
        self.changes += 1

    def forget(self) -> None:
        """Forget the list: another robot is connected, or none."""
        self._set_known(None)

    async def read_after_connect(self, robot: Robot) -> None:
        """Read the list of a robot that was just connected."""
        self._set_known(await robot.actions() if "list" in robot.abilities else Actions((), ()))

    async def read(self) -> Actions:
        """Read the list of actions from the robot."""
        actions = await self._connection.robot.actions()
        embedded = self._connection.embedded
        if embedded is not None:
            actions = Actions(embedded.presets, actions.taught)
        self._set_known(actions)
        return actions

    async def read_or_recall(self) -> tuple[Actions | None, bool]:
        """Return what the robot can play, None if that is not known, and whether it is current.

        While a lost robot is being reconnected, this is its last known list instead of an error.
        """
        try:
            return await self.read(), True
        except (LinkError, TimeoutError):
            return self.known, False

    def preset_name(self, preset: int) -> str:
        """Return the name of a factory action, as shown to the user."""
        embedded = self._connection.embedded
        known = () if self.known is None else self.known.presets
        presets = known if embedded is None else embedded.presets
        names = {each.id: each.name.replace("_", " ") for each in presets}
        return names.get(preset, str(preset))

    async def store(self, request: StoreTake) -> Stored:
        """Store a take on the robot; return the number of keyframes and their maximum error."""
        robot = self._connection.robot
        if self._activities.busy:
            raise busy("the robot is busy")
        if "store" not in self._connection.abilities:
            raise UnsupportedError(
                "store a motion that the robot was not taught",
                self._connection.url_prefix,
                wires_with("store"),
            )
        if (await self.read()).find(request.name) is not None:
            raise RefusedError(Code.NAME_EXISTS, *explain(Code.NAME_EXISTS))
        track = await self._edits.load_edited(request)
        stored = await robot.store_track(
            track,
            request.name,
            offload=self._takes.pool.run,
            imported=is_agreed(track.origin),
        )
        return {
            "name": request.name,
            "keyframes": len(stored.keyframes),
            "max_error_rad": round(float(stored.max_error_rad), 4),
        }

    async def rename(self, old: str, new: str) -> None:
        """Rename a taught action."""
        await self._connection.robot.rename(old, new)
        self.note_change()

    async def delete(self, name: str) -> None:
        """Delete a taught action."""
        await self._connection.robot.delete(name)
        self.note_change()

    def _set_known(self, actions: Actions | None) -> None:
        if actions != self.known:
            self.known = actions
            self.note_change()
