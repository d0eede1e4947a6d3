"""rote ros: a robot on ROS 2, without an installation of ROS."""

import asyncio
import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from rote.cli.options import (
    TIMEOUT_S,
    Json,
    Key,
    Keylog,
    RobotChoice,
    RobotUrl,
    Timeout,
    connect_to,
    print_json,
    print_safety_notice,
    run,
)
from rote.errors import BadRequestError, MissingExtraError
from rote.platform.paths import meshes_folder
from rote.transport.wires import EMBEDDED

if TYPE_CHECKING:
    from rote.bridge.ros2 import RosResult
    from rote.model.family import Build
    from rote.robot.robot import Robot

_DOMAIN = "ROS_DOMAIN_ID"


def ros(
    interface: Annotated[
        str, typer.Option(metavar="IF", help="The network interface of ROS 2; lo is loopback.")
    ] = "lo",
    domain: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=0,
            max=229,
            envvar=_DOMAIN,
            show_envvar=True,
            help="The domain of ROS 2, never the robot's own.",
        ),
    ] = 1,
    robot: RobotUrl = EMBEDDED,
    key: Key = None,
    keylog: Keylog = None,
    timeout: Timeout = TIMEOUT_S,
    as_json: Json = False,
) -> int:
    """Put a robot on ROS 2: states, description, checked motions.

    It publishes /joint_states, /robot_description and /diagnostics. What is sent to
    /rote/joint_trajectory or /rote/play is checked first and begins softly; /rote/stop stops.
    /rote/result says what became of it. Ctrl-C ends it, and what it plays.
    """
    try:
        from rote.bridge.ros2 import check_domain
    except ImportError as error:
        raise MissingExtraError("ROS 2", "dds") from error
    check_domain(robot, interface, domain)
    if not interface:
        raise BadRequestError("the interface is empty", "Say lo for this computer alone.")
    return run(_serve(RobotChoice(robot, key, keylog, timeout), interface, domain, as_json))


async def _serve(target: RobotChoice, interface: str, domain: int, as_json: bool) -> None:
    from rote.bridge.ros2 import RosBridge
    from rote.cli.takes import library
    from rote.transport.dds.participant import DdsTarget

    async with connect_to(target, quiet=as_json, every_state=True) as robot:
        bridge = RosBridge(
            robot,
            DdsTarget(interface, domain, multicast=True),
            library(),
            _mesh_uris,
            on_result=_print_result_json if as_json else _print_result,
        )
        try:
            bridge.open()
            _introduce(robot, interface, domain, as_json)
            async for _ in robot.states():  # until it is lost, or Ctrl-C
                pass
        finally:
            await asyncio.shield(bridge.close())


def _introduce(robot: "Robot", interface: str, domain: int, as_json: bool) -> None:
    if as_json:
        print_json({"event": "ready", "robot": robot.url, "interface": interface, "domain": domain})
        return
    print(
        f"{robot.build.title} at {robot.url} is on ROS 2, domain {domain}, interface {interface}."
    )
    if os.environ.get(_DOMAIN) != str(domain):
        print(f"There: export {_DOMAIN}={domain}, then ros2 topic echo /joint_states")
    print_safety_notice(robot.build, as_json)
    print("Ctrl-C ends it.", flush=True)


def _print_result(result: "RosResult") -> None:
    how = "" if result.success else "refused: "
    print(f"{result.asked}: {how}{result.message}", file=sys.stderr, flush=True)


def _print_result_json(result: "RosResult") -> None:
    print_json({"event": "result", **result._asdict()})


def _mesh_uris(build: "Build") -> dict[str, str]:
    """Write the meshes of a build where other programs find them, once; return their URIs."""
    from rote.bridge.meshes import links_of, stl_of
    from rote.errors import RoteError
    from rote.platform.atomic_file import appearing
    from rote.web.work.drawing import model_of

    path = model_of(build)
    if path is None:
        return {}
    folder = meshes_folder() / build.family
    try:
        folder.mkdir(parents=True, exist_ok=True)
        found = {}
        for link in links_of(path):
            file = folder / f"{link}.stl"
            if not file.is_file() or file.stat().st_mtime < path.stat().st_mtime:
                with appearing(file) as out:
                    out.write(stl_of(path, link))
            found[link] = file.resolve().as_uri()
    except (OSError, RoteError):
        return {}
    return found
