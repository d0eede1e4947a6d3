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

_DOMAIN_VARIABLE = "ROS_DOMAIN_ID"


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
            envvar=_DOMAIN_VARIABLE,
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

    Publishes /joint_states, /robot_description and /diagnostics. Motions sent to
    /rote/joint_trajectory or /rote/play are checked first and begin softly; /rote/stop stops them.
    /rote/result reports the outcome. Ctrl-C stops the motion and ends the command.
    """
    try:
        from rote.bridge.ros2 import check_domain
    except ImportError as error:
        raise MissingExtraError("ROS 2", "dds") from error
    check_domain(robot, interface, domain)
    if not interface:
        raise BadRequestError("the interface is empty", "Use lo for this computer only.")
    return run(_serve_ros(RobotChoice(robot, key, keylog, timeout), interface, domain, as_json))


async def _serve_ros(target: RobotChoice, interface: str, domain: int, as_json: bool) -> None:
    """Serve the robot on ROS 2 until the robot is lost, or Ctrl-C."""
    from rote.bridge.ros2 import RosBridge
    from rote.cli.takes import library
    from rote.transport.dds.participant import DdsTarget

    async with connect_to(target, quiet=as_json, every_state=True) as robot:
        bridge = RosBridge(
            robot,
            DdsTarget(interface, domain, multicast=True),
            library(),
            _write_meshes,
            on_result=_print_result_json if as_json else _print_result,
        )
        try:
            bridge.open()
            _print_introduction(robot, interface, domain, as_json)
            async for _ in robot.states():
                pass
        finally:
            await asyncio.shield(bridge.close())


def _print_introduction(robot: "Robot", interface: str, domain: int, as_json: bool) -> None:
    if as_json:
        print_json({"event": "ready", "robot": robot.url, "interface": interface, "domain": domain})
        return
    print(
        f"{robot.build.title} at {robot.url} is on ROS 2, domain {domain}, interface {interface}."
    )
    if os.environ.get(_DOMAIN_VARIABLE) != str(domain):
        print(f"There: export {_DOMAIN_VARIABLE}={domain}, then ros2 topic echo /joint_states")
    print_safety_notice(robot.build, as_json)
    print("Ctrl-C ends it.", flush=True)


def _print_result(result: "RosResult") -> None:
    prefix = "" if result.success else "refused: "
    print(f"{result.asked}: {prefix}{result.message}", file=sys.stderr, flush=True)


def _print_result_json(result: "RosResult") -> None:
    print_json({"event": "result", **result._asdict()})


def _write_meshes(build: "Build") -> dict[str, str]:
    """Write the meshes of a build to files that are missing or outdated; return their URIs by link.

    Without a model of the build, or if the files cannot be written, the result is empty: the robot
    is then described without meshes.
    """
    from rote.bridge.meshes import read_links, read_stl
    from rote.errors import RoteError
    from rote.platform.atomic_file import appearing
    from rote.web.work.drawing import model_of

    model = model_of(build)
    if model is None:
        return {}
    folder = meshes_folder() / build.family
    try:
        folder.mkdir(parents=True, exist_ok=True)
        uris = {}
        for link in read_links(model):
            file = folder / f"{link}.stl"
            if not file.is_file() or file.stat().st_mtime < model.stat().st_mtime:
                with appearing(file) as out:
                    out.write(read_stl(model, link))
            uris[link] = file.resolve().as_uri()
    except (OSError, RoteError):
        return {}
    return uris
