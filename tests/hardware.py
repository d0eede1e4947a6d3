"""The behaviour tests on a real robot: `pytest tests/test_behaviour.py --robot URL`.

Each test runs once, in real time, over the wire of the URL. Tests that move the robot or soften its
arms are marked `moves`; pytest asks once whether they may run, unless `--moves` is given. Tests
that need a simulated robot are marked `simulated`, with the reason, and are skipped. A test is also
skipped if the wire does not support it. The owner's actions are hidden from the tests and never
deleted. Actions that a test stores are deleted after it, if the wire supports deleting.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

import pytest

from rote.connection import connect
from rote.errors import RoteError, UnsupportedError
from rote.robot.api_values import Actions
from rote.robot.message_robot import G1
from rote.transport.wires import wire_of

VARIABLE = "ROTE_TESTED_ROBOT"
OPTION, CONSENT = "--robot", "--moves"
FILE = "test_behaviour.py"
_FRAMES = ("frames", "streams")


def robot_url() -> str:
    """Return the URL of the tested robot; empty for simulated robots."""
    return os.environ.get(VARIABLE, "")


class Hardware:
    """A real robot and its connection, with the parts of `rig.Rig` that a real robot can have."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.wire = url.partition(":")[0]
        self.has_services = self.wire in ("webrtc", "dds")
        self.recording_hz = {"webrtc": 50.0, "dds": 500.0}.get(self.wire, 100.0)
        self.start_s = 0.4 if self.has_services else 0.0
        self.holds_after_s = 10.0 if self.has_services else 13.5

    def __getattr__(self, name: str) -> Any:
        pytest.skip(f"only a simulated robot has {name!r}")

    @asynccontextmanager
    async def connect(self, timeout: float = 5.0) -> AsyncIterator[G1]:
        """Connect; hide the owner's actions, and delete new actions at the end."""
        async with connect(self.url, family="g1", timeout=timeout, reconnect=False) as robot:
            owners = {action.name for action in (await robot.actions()).taught}
            _hide(robot, owners)
            try:
                yield robot
            finally:
                with suppress(RoteError):
                    await robot.stop()
                    await _rest(robot)
                    await _clean(robot, owners)


def _hide(robot: G1, owners: set[str]) -> None:
    everything = robot.actions

    async def actions() -> Actions:
        told = await everything()
        own = tuple(action for action in told.taught if action.name not in owners)
        return replace(told, taught=own)

    robot.actions = actions  # type: ignore[method-assign]
    if "hand" not in robot.abilities:

        async def by_a_person(script: str, seconds: float) -> None:
            print(
                f"\nMove one arm by hand for {seconds:g} s ({script}).",
                file=sys.__stderr__,
                flush=True,
            )

        robot.move_by_hand = by_a_person  # type: ignore[method-assign]


async def _rest(robot: G1) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(15.0):
            async for state in robot.states():
                if not (state.playing or state.arms_soft or state.recording):
                    return


async def _clean(robot: G1, owners: set[str]) -> None:
    if "delete" in robot.abilities:
        for action in (await robot.actions()).taught:
            if action.name not in owners:
                await robot.delete(action.name)


def tell(story: Callable[[Any], Awaitable[None]]) -> None:
    """Run a story on the robot; skip the test if the wire does not support it."""

    async def told() -> None:
        await story(Hardware(robot_url()))

    try:
        asyncio.run(told())
    except UnsupportedError as error:
        pytest.skip(f"the wire does not support this: {error}")


# ---- choosing the tests -------------------------------------------------------------------------


def add_options(parser: pytest.Parser) -> None:
    group = parser.getgroup("rote")
    group.addoption(OPTION, metavar="URL", default="", help="run the behaviour tests on this robot")
    group.addoption(
        CONSENT, action="store_true", help="with --robot: run tests that move it, without asking"
    )


def choose(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Select the tests that can run on a real robot, once each; skip others with a reason."""
    ours = [item for item in items if item.path.name == FILE]
    dropped = [item for item in ours if not _is_first(item)]
    if dropped:
        items[:] = [item for item in items if item not in dropped]
        config.hook.pytest_deselected(items=dropped)
    left = [item for item in ours if item not in dropped]
    for item in left:
        if reason := _not_here(item):
            item.add_marker(pytest.mark.skip(reason=reason))
    moving = [item for item in left if item.get_closest_marker("moves")]
    runnable = [item for item in moving if not item.get_closest_marker("skip")]
    if runnable and not _may_move(config, len(runnable)):
        reason = f"the test moves the robot: allow this in a terminal, or with {CONSENT}"
        for item in runnable:
            item.add_marker(pytest.mark.skip(reason=reason))


def _is_first(item: pytest.Item) -> bool:
    """Whether a test is the first of several that differ only in their wire."""
    spec = getattr(item, "callspec", None)
    if spec is None:
        return True
    return all(spec.indices.get(name, 0) == 0 for name in ("wire", *_FRAMES))


def _not_here(item: pytest.Item) -> str:
    simulated = item.get_closest_marker("simulated")
    if simulated is not None:
        return f"needs a simulated robot: {simulated.args[0]}"
    names = getattr(item, "fixturenames", ())
    if any(name in names for name in _FRAMES) and not robot_url().startswith("udp"):
        return "only teaching frames support this"
    if item.get_closest_marker("moves") and "delete" not in wire_of(robot_url()).abilities:
        return "over this wire, the test could not delete the actions that it stores"
    return ""


def _may_move(config: pytest.Config, count: int) -> bool:
    if config.getoption(CONSENT):
        return True
    if sys.__stdin__ is None or not sys.__stdin__.isatty():
        return False
    capture = config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        print(
            f"\n{count} tests soften or move the arms of {robot_url()}. Before you continue, let "
            "the robot stand balanced or hang it on its gantry, keep everyone at least an arm's "
            "length away, and have a second person hold the remote."
        )
        return input("Run these tests? [y/N] ").strip().lower() == "y"
