"""Plays the actions that a robot stores: taught ones, and those of the factory."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from rote import messages as m
from rote.errors import NoAnswerError, RoteError, TimeLimitError
from rote.messages import Phase, RobotState
from rote.platform.loop import to_the_end
from rote.robot import sending
from rote.robot.action_store import ActionStore
from rote.robot.api_values import Actions, Preset, check_name
from rote.robot.arm_requests import ArmRequests
from rote.robot.link import RobotLink
from rote.robot.motion_watch import MotionWatch
from rote.robot.play_options import PlayOptions
from rote.robot.playing import ActionPlaying, Playing

PRESET_S = 40.0
"""How long a factory action may take: those of a G1 last less than 10 s, and waiting for the
answer, which comes at the end, is given up after 30 s.
"""
_POLL_S = 0.25
"""Interval between two checks for a timeout, in seconds."""


class Player:
    """Plays stored actions of one robot."""

    def __init__(self, link: RobotLink, store: ActionStore, arms: ArmRequests) -> None:
        self._link = link
        self._store = store
        self._arms = arms

    def play(self, name: str | int, options: PlayOptions, listed: Actions | None = None) -> Playing:
        """Play a taught action. `listed` is a list of the actions that was just read."""
        if not isinstance(name, int) and name not in self._store.known_names:
            check_name(name, in_use=True)  # the names that the robot lists are its own choice
        if options.check_tempo():
            self._link.require_ability("tempo", "change how an action is played")
        if options.is_partial:
            self._link.require_ability("frames", "play a part of an action, or keyframes instead")
            options.check_part()
        instead = sending.check_keyframes(options.keyframes, self._link.build)
        stops = self._link.stops.count

        async def begin(on_request_sent: Callable[[], None]) -> float:
            action = await self._store.find_action(name, listed)
            requested_s = options.requested_s(action.duration_s)
            play = m.PlayAction(
                action=action.position,
                frames=options.frames,
                duration_ms=round(requested_s * 1000),
                interpolation=options.interpolation_kind,
                loop=options.loop,
                keyframes=instead,
                name=action.name,
            )
            await self._arms.request_motion(play, action.name, stops, on_request_sent)
            # Only the robot knows how long a part of the action takes.
            return requested_s or (0.0 if options.is_partial else action.duration_s)

        return ActionPlaying(self._link, str(name), begin, loop=options.loop)

    async def start(self, name: str | int, options: PlayOptions) -> Playing:
        """Play a taught action; return when the robot has accepted, and raise if it refuses.

        A name that is too long for a new action may be one of the robot's own: the list is read.
        """
        listed = None
        if isinstance(name, str) and m.name_problem(name) and not m.name_problem(name, None):
            listed = await self._store.read_list()
        return await self.play(name, options, listed).started()

    async def perform(self, preset: int | str) -> None:
        """Perform a factory action, by its id or name, and wait for its end."""
        self._link.require_ability("presets", "perform factory actions")
        stops = self._link.stops.count
        await self._watch_preset(await self._store.find_preset(preset), stops)

    async def _watch_preset(self, preset: Preset, stops: int) -> None:
        """Request a factory action and wait for its end; the reply alone proves no motion."""
        client, loop = self._link.client, self._link.loop
        watch = MotionWatch(preset.name, most_s=PRESET_S)
        seen = asyncio.Event()

        def on_state(state: RobotState) -> None:
            watch.on_state(state, loop.time())
            seen.set()

        def on_request_sent() -> None:
            watch.on_request_sent(client.build, client.latest, loop.time())

        forget = client.on_state(on_state)
        try:
            play = m.PlayPreset(preset.id)
            await self._arms.request_motion(play, preset.name, stops, on_request_sent)
        except BaseException:
            forget()
            raise
        try:
            watch.on_accepted(0.0, loop.time())
            # A release may move nothing, and after a stop there is nothing to wait for.
            while preset.id != m.RELEASE_PRESET and self._link.stops.count == stops:
                state = client.latest
                if watch.begun and (state is None or state.phase is Phase.NONE):
                    return
                if (timeout_error := watch.timeout_error(loop.time())) is not None:
                    raise timeout_error
                seen.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(_POLL_S):
                        await seen.wait()
        except (asyncio.CancelledError, TimeLimitError, NoAnswerError):
            with suppress(RoteError):
                await to_the_end(self._link.stop())
            raise
        finally:
            forget()
