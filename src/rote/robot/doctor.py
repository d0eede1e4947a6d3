"""Diagnosis: checks of software, network, DDS and the robot itself.

Every check returns what it found and what is wrong, with a remedy. Nothing here moves a robot.
"""

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rote.errors import MissingExtraError, RoteError
from rote.findings import Finding, FindingKind, Severity
from rote.platform import check as host_check
from rote.platform.check import Interface
from rote.platform.distribution import NAME, find_namesake, install_line
from rote.robot.robot import Robot
from rote.transport.dds import settings as dds_settings
from rote.transport.link import import_carrier, split_url

ROBOT_NETWORK = "192.168.123."
"""The network on a G1's cable."""
UNITREE_PACKAGES = ("unitree_sdk2py", "unitree-sdk2", "unitree_dds_wrapper")
_MIN_PROVEN_DDS = (11, 0, 1)
_SEARCH_S = 2.0
_STATE_TOPIC = "rt/lowstate"
"""The DDS topic that every G1 writes."""
_REQUEST_PREFIX, _REQUEST_SUFFIX = "rt/api/", "/request"
"""Around the name of a service, in the DDS topic from which the service reads its requests."""


@dataclass(slots=True)
class Examination:
    """The result of a check: what was found, and what is wrong."""

    facts: dict[str, Any] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    @property
    def well(self) -> bool:
        """Whether nothing prevents the use of a robot."""
        return all(finding.severity is not Severity.ERROR for finding in self.findings)

    def add(self, other: "Examination") -> None:
        """Add the results of another check."""
        self.facts |= other.facts
        self.findings += other.findings


# ---- this computer ------------------------------------------------------------------------------


def check_software(scheme: str = "") -> Examination:
    """Check which wires' packages are installed, and whether their versions are safe to use.

    A missing or unproven package is an error for the wire `scheme`, a note or warning for others.
    """
    packages = {"dds": "cyclonedds", "webrtc": "aiortc"}
    versions = {name: host_check.find_installed_version(name) for name in packages.values()}
    result = Examination({"packages": {name: found or None for name, found in versions.items()}})
    for wire, package in packages.items():
        if not versions[package]:
            severity = Severity.ERROR if wire == scheme else Severity.NOTE
            missing = MissingExtraError(f"the wire {wire}://", wire)
            result.findings.append(
                Finding(severity, str(missing), missing.remedy, kind=FindingKind.SOFTWARE)
            )
    dds_version = versions["cyclonedds"]
    if dds_version and not _MIN_PROVEN_DDS <= _parse_version(dds_version) < (12,):
        result.findings.append(
            Finding(
                Severity.ERROR if scheme == "dds" else Severity.WARNING,
                f"CycloneDDS {dds_version} is installed; rote is proven only with 11.0.1 and "
                "later 11.x versions",
                f"Install the version that rote requires: {install_line('dds')}.",
                kind=FindingKind.SOFTWARE,
            )
        )
    result.findings += _find_package_conflicts(dds_version)
    return result


def _find_package_conflicts(dds_version: str) -> list[Finding]:
    """Return findings about installed packages that do not work together with rote.

    `dds_version` is the version of CycloneDDS; "" if it is not installed.
    """
    findings = []
    if other_version := find_namesake():
        findings.append(
            Finding(
                Severity.WARNING,
                f"another package called rote ({other_version}) is installed in the same "
                "environment, and the two overwrite each other's files",
                f"Keep one of them: pip uninstall rote, then pip install --force-reinstall {NAME}.",
                kind=FindingKind.SOFTWARE,
            )
        )
    unitree = [name for name in UNITREE_PACKAGES if host_check.find_installed_version(name)]
    if unitree and dds_version and _parse_version(dds_version) >= (11,):
        findings.append(
            Finding(
                Severity.ERROR,
                f"{unitree[0]} with CycloneDDS {dds_version} crashes programs on the robot: the "
                "robot's CycloneDDS 0.10.2 cannot read the type descriptions that version "
                f"{dds_version} sends",
                f"Install {unitree[0]} in a separate environment, with cyclonedds 0.10.2.",
                kind=FindingKind.SOFTWARE,
            )
        )
    return findings


def _parse_version(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())


def check_network(url: str = "") -> Examination:
    """Check this computer's interfaces, their addresses and multicast, and its firewall.

    For a `dds://` URL, the interface that it names is checked too.
    """
    found = host_check.list_interfaces()
    facts = [
        {
            "name": interface.name,
            "address": interface.address or None,
            "up": interface.up,
            "multicast": interface.multicast,
        }
        for interface in found
    ]
    firewall = host_check.find_firewall()
    result = Examination({"interfaces": facts, "firewall": firewall or None})
    result.findings += _find_connection_problems(found)
    if firewall:
        result.findings.append(
            Finding(
                Severity.WARNING,
                f"the firewall {firewall} is on: it drops a robot's answers and the "
                "fragments of its states",
                f"Allow the robot's network: sudo ufw allow from {ROBOT_NETWORK}0/24.",
                kind=FindingKind.NETWORK,
            )
        )
    result.findings += _find_dds_setting_problems(url, found)
    if split_url(url).scheme == "dds":
        requested = [interface for interface in found if interface.name == split_url(url).netloc]
        for interface in requested:
            result.findings += _find_interface_problems(interface)
    return result


def _find_connection_problems(found: list[Interface]) -> list[Finding]:
    """Return findings if this computer's addresses are unknown or it has no network connection."""
    if found and not any(interface.address for interface in found):
        missing = MissingExtraError("listing this computer's addresses", "webrtc")
        return [Finding(Severity.NOTE, str(missing), missing.remedy, kind=FindingKind.NETWORK)]
    if any(interface.usable and not interface.loopback for interface in found):
        return []
    return [
        Finding(
            Severity.WARNING,
            "this computer has no network connection: it can reach only simulated "
            "robots that run on it",
            "Join the robot's Wi-Fi, or plug in its cable.",
            kind=FindingKind.NETWORK,
        )
    ]


def _find_interface_problems(interface: Interface) -> list[Finding]:
    """Return what prevents an interface from carrying a robot's DDS traffic."""
    name = interface.name
    if not interface.up:
        return [
            Finding(
                Severity.ERROR,
                f"{name} is down",
                f"sudo ip link set {name} up",
                kind=FindingKind.NETWORK,
            )
        ]
    if not interface.address:
        return [
            Finding(
                Severity.ERROR,
                f"{name} has no IPv4 address",
                f"Give it one in the robot's network: sudo ip address add {ROBOT_NETWORK}222/24 "
                f"dev {name}",
                kind=FindingKind.NETWORK,
            )
        ]
    if interface.loopback:
        return []
    findings = []
    if not interface.multicast:
        findings.append(
            Finding(
                Severity.ERROR,
                f"multicast is off on {name}; DDS needs it to find robots",
                f"sudo ip link set {name} multicast on",
                kind=FindingKind.NETWORK,
            )
        )
    if not interface.address.startswith(ROBOT_NETWORK):
        findings.append(
            Finding(
                Severity.WARNING,
                f"{name} has the address {interface.address}; a G1's cable is in {ROBOT_NETWORK}x",
                "If a robot is connected to it, run: sudo ip address add "
                f"{ROBOT_NETWORK}222/24 dev {name}",
                kind=FindingKind.NETWORK,
            )
        )
    return findings


def _find_dds_setting_problems(url: str, found: list[Interface]) -> list[Finding]:
    """Return CycloneDDS settings in the environment that prevent the use of an interface."""
    value = os.environ.get(dds_settings.VARIABLE)
    parts = split_url(url)
    requested = parts.netloc if parts.scheme == "dds" else ""
    addresses = [interface.address for interface in found if interface.address]
    known = (*(interface.name for interface in found), *addresses)
    problem = dds_settings.find_problem(value, requested or dds_settings.LOOPBACK, known)
    if problem is None:
        return []
    # Without a requested interface, only settings that cannot be read at all are a problem.
    if not requested and not dds_settings.read_interfaces(value or "").problem:
        return []
    return [
        Finding(
            Severity.ERROR if requested else Severity.WARNING, *problem, kind=FindingKind.SOFTWARE
        )
    ]


# ---- a robot ------------------------------------------------------------------------------------


async def check_dds(url: str, timeout_s: float = _SEARCH_S) -> Examination:
    """Search for a robot by DDS for `timeout_s` seconds, and check which services it offers."""
    carrier = import_carrier(url)
    target = carrier.read_url(split_url(url))
    bus = carrier.Bus(target)
    written_topics: set[str] = set()
    read_topics: set[str] = set()
    try:
        async with asyncio.timeout(timeout_s):
            while _STATE_TOPIC not in written_topics:
                await asyncio.sleep(0.05)
                written_topics, read_topics = bus.discovered_topics()
            await asyncio.sleep(0.2)  # its other topics are discovered a little later
            written_topics, read_topics = bus.discovered_topics()
    except TimeoutError:
        pass
    finally:
        bus.close()
    services = sorted(
        topic.removeprefix(_REQUEST_PREFIX).removesuffix(_REQUEST_SUFFIX)
        for topic in read_topics
        if topic.startswith(_REQUEST_PREFIX) and topic.endswith(_REQUEST_SUFFIX)
    )
    facts = {
        "robot": _STATE_TOPIC in written_topics,
        "services": services,
        "topics": len(written_topics | read_topics),
    }
    result = Examination({"dds": {"url": url, **facts}})
    if not written_topics | read_topics:
        result.findings.append(
            Finding(
                Severity.NOTE, f"there is no DDS participant at {url}", kind=FindingKind.CONNECTION
            )
        )
    elif _STATE_TOPIC in written_topics:
        result.findings += find_service_problems(services)
    return result


def find_service_problems(services: list[str]) -> list[Finding]:
    """Return findings about services that rote needs and that the robot does not offer."""
    if "sport" not in services and "loco" in services:
        return [
            Finding(
                Severity.ERROR,
                "the robot has the service 'loco', which newer software calls 'sport'",
                "Update its software: rote needs ai_sport 8.2.0.0 or newer.",
                kind=FindingKind.CONNECTION,
            )
        ]
    missing = [name for name in ("arm", "sport") if name not in services]
    if not missing:
        return []
    return [
        Finding(
            Severity.ERROR,
            f"the robot does not offer {' and '.join(missing)}: it is in debug mode, or they "
            "are switched off",
            "Leave debug mode (switch the robot off and on), or select the controller 'ai'.",
            kind=FindingKind.CONNECTION,
        )
    ]


async def find_robots(timeout_s: float = _SEARCH_S) -> Examination:
    """Search for robots as WebRTC clients do, and return those that answer."""
    try:
        from rote.transport import discovery  # noqa: PLC0415 # brings ifaddr

        found = [robot async for robot in discovery.discover(seconds=timeout_s)]
    except (ImportError, RoteError):
        return Examination({"found": []})
    return Examination({"found": [f"{robot.serial} at {robot.address}" for robot in found]})


async def check_connected_robot(robot: Robot) -> Examination:
    """Ask a connected robot what it is, in what state it is, and what its own preflight finds."""
    build = robot.build
    result = Examination({"url": robot.url, "abilities": sorted(robot.abilities)})
    result.facts |= {"family": build.family, "build": build.name}
    try:
        result.facts |= await robot.describe()
        result.findings += await robot.preflight()
    except RoteError as error:
        result.findings.append(make_error_finding(error))
    result.findings += _find_version_differences(robot, result.facts.get("versions", {}))
    return result


def _find_version_differences(robot: Robot, versions: Mapping[str, str]) -> list[Finding]:
    """Return services whose interface version differs from the one rote was written for."""
    services = () if robot.family is None else robot.family.services
    expected = {service.name: service.version for service in services}
    return [
        Finding(
            Severity.WARNING,
            f"{service} has version {version}, but rote was written for {expected[service]}",
            "It may behave differently: try it with care.",
            kind=FindingKind.CONNECTION,
        )
        for service, version in versions.items()
        if service in expected and version.split(".")[:3] != expected[service].split(".")[:3]
    ]


def make_error_finding(error: RoteError) -> Finding:
    """Return an error of a connection as a finding."""
    return Finding(Severity.ERROR, error.text, error.remedy, kind=FindingKind.CONNECTION)
