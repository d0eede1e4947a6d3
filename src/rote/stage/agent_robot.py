"""The robot of a stage agent: its stop, and what the conductor is told of it."""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable
from typing import Any

from rote.errors import RoteError
from rote.findings import Severity
from rote.messages import HeardSpeech, Phase, SoundState
from rote.robot.robot import Robot
from rote.session.stage_agent import AgentSession

log = logging.getLogger("rote")

MAX_SPEECH, MAX_FINDINGS, MAX_ACTIONS, MAX_TEXT = 8, 8, 32, 120
"""Maximum numbers of list entries in a state, and maximum length of each, so that states stay
short."""
INSPECT_S = 5.0
"""Interval of the inspections of an idle robot: its findings and its stored actions."""
_STOP_AGAIN_S = 0.1


class AgentRobot:
    """Stops an agent's robot, and observes it: its state, findings, stored actions and speech."""

    def __init__(
        self, robot: Robot, name: str, session: AgentSession, on_speech: Callable[[], None]
    ) -> None:
        self._robot, self._name, self._session = robot, name, session
        self._on_speech = on_speech
        self._speech: deque[str] = deque(maxlen=MAX_SPEECH)
        self._speech_count = 0
        self._findings: tuple[str, ...] = ()
        self._stored_actions: tuple[str, ...] = ()
        self._stop_fault = ""
        """Why the robot could not be stopped so far; "" if no stop is pending."""

    async def stop(self) -> None:
        """Stop the robot; repeat the stop until the robot has answered."""
        while True:
            try:
                await self._robot.stop()
            except Exception as error:  # the stop must be repeated after any error
                self._stop_fault = f"the robot could not be stopped so far: {error}"
                log.error("%s: %s", self._name, self._stop_fault)
                await asyncio.sleep(_STOP_AGAIN_S)
            else:
                self._stop_fault = ""
                return

    async def watch(self) -> None:
        """Record what the robot hears. Raises `LinkError` as soon as the robot is lost."""
        can_hear = "hear" in self._robot.abilities
        remove_listener = self._robot.audio.add_listener(self._on_audio) if can_hear else None
        try:
            async for _ in self._robot.states():
                pass
        finally:
            if remove_listener is not None:
                remove_listener()

    def _on_audio(self, audio: HeardSpeech | SoundState) -> None:
        if isinstance(audio, HeardSpeech):
            self._speech_count += 1
            self._speech.append(f"{self._speech_count} {audio.text[:MAX_TEXT]}")
            self._on_speech()

    async def inspect(self) -> None:
        """Periodically read the findings and stored actions of the robot while it is idle."""
        while True:
            if self._session.run is None:
                with contextlib.suppress(RoteError):
                    found = await self._robot.preflight()
                    serious = [each for each in found if each.severity is not Severity.NOTE]
                    self._findings = tuple(
                        str(each.message)[:MAX_TEXT] for each in serious[:MAX_FINDINGS]
                    )
                    if "list" in self._robot.abilities:
                        names = [each.name for each in (await self._robot.actions()).taught]
                        shown = names[:MAX_ACTIONS]
                        self._stored_actions = tuple(name[:MAX_TEXT] for name in shown)
            await asyncio.sleep(INSPECT_S)

    def describe(self, other_fault: str) -> dict[str, Any]:
        """Return the fields of the agent's state about its robot; `other_fault` is the agent's."""
        state = self._robot.state
        faults = (self._stop_fault, other_fault)
        return {
            "robot": self._robot.url[:200],
            "build": self._robot.build.name,
            "battery_percent": None if state is None else getattr(state, "battery_percent", None),
            "moving": state is not None and state.phase is not Phase.NONE,
            "heard": tuple(self._speech),
            "facts": (*(fault[:MAX_TEXT] for fault in faults if fault), *self._findings),
            "holds": self._stored_actions,
        }
