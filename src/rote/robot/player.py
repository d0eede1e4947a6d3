"""Plays the actions that a robot stores: taught ones, and those of the factory."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from rote import messages as m
from rote.errors import NoAnswerError, RoteError, TimeLimitError
from rote.messages import Phase, RobotState
from rote.platform.loop import to_the_end
from rote.robot.action_store import ActionStore
from rote.robot.api_values import Actions, Preset, check_name
from rote.robot.arm_requests import ArmRequests
from rote.robot.frame_sender import check_keyframes
from rote.robot.link import RobotLink
from rote.robot.motion_watch import MotionWatch
from rote.robot.play_options import PlayOptions
from rote.robot.playing import ActionPlaying, Playing

PRESET_TIMEOUT_S = 40.0
"""Time limit of a factory action in seconds. Those of a G1 last less than 10 s; the reply, which
comes at the end, has a timeout of 30 s.
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
            check_name(name, in_use=True)  # names that the robot lists need no check
        if options.changes_tempo():
            self._link.require_ability("tempo", "change how an action is played")
        if options.is_partial:
            self._link.require_ability("frames", "play a part of an action, or keyframes instead")
            options.require_consistent_part()
        keyframes = check_keyframes(options.keyframes, self._link.build)
        stop_count = self._link.stops.count

        async def begin(on_request_sent: Callable[[], None]) -> float:
            action = await self._store.find_action(name, listed)
            playing.rename(action.name)
            requested_s = options.compute_requested_s(action.duration_s)
            play = m.PlayAction(
                action=action.position,
                frames=options.frames,
                duration_ms=round(requested_s * 1000),
                interpolation=options.interpolation_kind,
                loop=options.loop,
                keyframes=keyframes,
                name=action.name,
            )
            await self._arms.request_motion(play, action.name, stop_count, on_request_sent)
            if not requested_s and options.is_partial:
                return 0.0  # only the robot knows how long a part of the action takes
            return requested_s or action.duration_s

        playing = ActionPlaying(self._link, str(name), begin, loop=options.loop)
        return playing

    async def start(self, name: str | int, options: PlayOptions) -> Playing:
        """Play a taught action; return when the robot has accepted, and raise if it refuses.

        A name that is too long for a new action may exist on the robot, so its list is read first.
        """
        is_only_too_long = (
            isinstance(name, str) and m.name_problem(name) and not m.name_problem(name, None)
        )
        listed = await self._store.read_list() if is_only_too_long else None
        return await self.play(name, options, listed).started()

    async def perform(self, preset: int | str) -> None:
        """Perform a factory action, by its id or name, and wait for its end."""
        self._link.require_ability("presets", "perform factory actions")
        stop_count = self._link.stops.count
        await self._perform_and_watch(await self._store.find_preset(preset), stop_count)

    async def _perform_and_watch(self, preset: Preset, stop_count: int) -> None:
        """Request a factory action and watch the states until it ends or the robot is stopped.

        The reply alone does not prove that the robot moved. Raises `RefusedError` if a stop was
        requested since `stop_count` was read.
        """
        client, loop = self._link.client, self._link.loop
        watch = MotionWatch(preset.name, limit_s=PRESET_TIMEOUT_S)
        state_arrived = asyncio.Event()

        def on_state(state: RobotState) -> None:
            watch.on_state(state, loop.time())
            state_arrived.set()

        def on_request_sent() -> None:
            watch.on_request_sent(client.build, client.latest, loop.time())

        remove_listener = client.on_state(on_state)
        try:
            play = m.PlayPreset(preset.id)
            await self._arms.request_motion(play, preset.name, stop_count, on_request_sent)
        except BaseException:
            remove_listener()
            raise
        try:
            watch.on_accepted(0.0, loop.time())
            # A release may move nothing, and after a stop there is nothing to wait for.
            while preset.id != m.RELEASE_PRESET and self._link.stops.count == stop_count:
                state = client.latest
                if watch.begun and (state is None or state.phase is Phase.NONE):
                    return
                if (timeout_error := watch.timeout_error(loop.time())) is not None:
                    raise timeout_error
                state_arrived.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(_POLL_S):
                        await state_arrived.wait()
        except (asyncio.CancelledError, TimeLimitError, NoAnswerError):
            with suppress(RoteError):
                await to_the_end(self._link.stop())
            raise
        finally:
            remove_listener()
