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
from rote.platform.distribution import NAME, install_line, namesake
from rote.robot.robot import Robot
from rote.transport.dds import settings as dds_settings
from rote.transport.link import import_carrier, split_url

ROBOT_NETWORK = "192.168.123."
"""The network on a G1's cable."""
VENDORS_PACKAGES = ("unitree_sdk2py", "unitree-sdk2", "unitree_dds_wrapper")
_SAFE_DDS = (11, 0, 1)
_SEARCH_S = 2.0
_LOW_PERCENT = 20
_SERVICE = ("rt/api/", "/request")


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
    """Check which wires' packages are installed, and whether one of them could endanger a robot."""
    versions = {name: host_check.installed(name) for name in ("cyclonedds", "aiortc")}
    seen = Examination({"packages": {name: found or None for name, found in versions.items()}})
    extras = {"dds": "cyclonedds", "webrtc": "aiortc"}
    for wire, package in extras.items():
        if not versions[package]:
            severity = Severity.ERROR if wire == scheme else Severity.NOTE
            missing = MissingExtraError(f"the wire {wire}://", wire)
            seen.findings.append(
                Finding(severity, str(missing), missing.remedy, kind=FindingKind.SOFTWARE)
            )
    dds = versions["cyclonedds"]
    if dds and not _SAFE_DDS <= _parse_version(dds) < (12,):
        seen.findings.append(
            Finding(
                Severity.ERROR if scheme == "dds" else Severity.WARNING,
                f"CycloneDDS {dds} is installed; rote is proven with 11.0.1 and newer 11s alone",
                f"Install what rote asks for: {install_line('dds')}.",
                kind=FindingKind.SOFTWARE,
            )
        )
    if other := namesake():
        seen.findings.append(
            Finding(
                Severity.WARNING,
                f"another package called rote ({other}) is installed in the same place, and its "
                "files and those of this one overwrite each other",
                f"Keep one of them: pip uninstall rote, then pip install --force-reinstall {NAME}.",
                kind=FindingKind.SOFTWARE,
            )
        )
    vendors = [name for name in VENDORS_PACKAGES if host_check.installed(name)]
    if vendors and dds and _parse_version(dds) >= (11,):
        seen.findings.append(
            Finding(
                Severity.ERROR,
                f"{vendors[0]} beside CycloneDDS {dds} crashes programs on the robot: it describes "
                "its types in a way that the robot's CycloneDDS 0.10.2 cannot read",
                "Keep them in environments of their own; that package needs cyclonedds 0.10.2.",
                kind=FindingKind.SOFTWARE,
            )
        )
    return seen


def _parse_version(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())


def check_network(url: str = "") -> Examination:
    """Check the interfaces, their addresses and multicast, and the firewall."""
    found = host_check.interfaces()
    facts = [
        {"name": i.name, "address": i.address or None, "up": i.up, "multicast": i.multicast}
        for i in found
    ]
    seen = Examination({"interfaces": facts, "firewall": host_check.firewall() or None})
    if found and not any(i.address for i in found):
        missing = MissingExtraError("knowing this computer's addresses", "webrtc")
        seen.findings.append(
            Finding(Severity.NOTE, str(missing), missing.remedy, kind=FindingKind.NETWORK)
        )
    elif not any(i.usable and not i.loopback for i in found):
        seen.findings.append(
            Finding(
                Severity.WARNING,
                "this computer is in no network: only robots on itself can be reached",
                "Join the robot's Wi-Fi, or plug its cable in.",
                kind=FindingKind.NETWORK,
            )
        )
    if host_check.firewall():
        seen.findings.append(
            Finding(
                Severity.WARNING,
                f"the firewall {host_check.firewall()} is on: it drops a robot's answers and the "
                "fragments of its states",
                f"Allow the robot's network: sudo ufw allow from {ROBOT_NETWORK}0/24.",
                kind=FindingKind.NETWORK,
            )
        )
    seen.findings += _dds_setting_findings(url, found)
    if split_url(url).scheme == "dds":
        requested = [i for i in found if i.name == split_url(url).netloc]
        for interface in requested:
            seen.findings += _interface_findings(interface)
    return seen


def _interface_findings(interface: Interface) -> list[Finding]:
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
                f"{name} does no multicast, by which DDS finds robots",
                f"sudo ip link set {name} multicast on",
                kind=FindingKind.NETWORK,
            )
        )
    if not interface.address.startswith(ROBOT_NETWORK):
        findings.append(
            Finding(
                Severity.WARNING,
                f"{name} has the address {interface.address}; a G1's cable is in {ROBOT_NETWORK}x",
                f"If it leads to a robot: sudo ip address add {ROBOT_NETWORK}222/24 dev {name}",
                kind=FindingKind.NETWORK,
            )
        )
    return findings


def _dds_setting_findings(url: str, found: list[Interface]) -> list[Finding]:
    """Return CycloneDDS settings in the environment that prevent the use of an interface."""
    value = os.environ.get(dds_settings.VARIABLE)
    parts = split_url(url)
    requested = parts.netloc if parts.scheme == "dds" else ""
    known = tuple(each for i in found for each in (i.name, i.address) if each)
    problem = dds_settings.problem(value, requested or dds_settings.LOOPBACK, known)
    if problem is None or (not requested and not dds_settings.read(value or "").problem):
        return []
    return [
        Finding(
            Severity.ERROR if requested else Severity.WARNING, *problem, kind=FindingKind.SOFTWARE
        )
    ]


# ---- a robot ------------------------------------------------------------------------------------


async def check_dds(url: str, timeout_s: float = _SEARCH_S) -> Examination:
    """Check which DDS participants are there, and which of a G1's services they offer."""
    carrier = import_carrier(url)
    target = carrier.read_url(split_url(url))
    bus = carrier.Bus(target)
    written: set[str] = set()
    read: set[str] = set()
    try:
        async with asyncio.timeout(timeout_s):
            while not {"rt/lowstate"} <= written:
                await asyncio.sleep(0.05)
                written, read = bus.discovered_topics()
            await asyncio.sleep(0.2)
            written, read = bus.discovered_topics()
    except TimeoutError:
        pass
    finally:
        bus.close()
    start, end = _SERVICE
    services = sorted(
        topic.removeprefix(start).removesuffix(end)
        for topic in read
        if topic.startswith(start) and topic.endswith(end)
    )
    facts = {"robot": "rt/lowstate" in written, "services": services, "topics": len(written | read)}
    seen = Examination({"dds": {"url": url, **facts}})
    if not written | read:
        seen.findings.append(
            Finding(
                Severity.NOTE, f"there is no DDS participant at {url}", kind=FindingKind.CONNECTION
            )
        )
    elif "rt/lowstate" in written:
        seen.findings += _service_findings(services)
    return seen


def _service_findings(services: list[str]) -> list[Finding]:
    if "sport" not in services and "loco" in services:
        return [
            Finding(
                Severity.ERROR,
                "the robot has the service 'loco' where newer ones have 'sport'",
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

        found = [one async for one in discovery.discover(seconds=timeout_s)]
    except (ImportError, RoteError):
        return Examination({"found": []})
    return Examination({"found": [f"{one.serial} at {one.address}" for one in found]})


async def check_connected_robot(robot: Robot) -> Examination:
    """Ask a connected robot what it is, in what state it is, and what its own preflight finds."""
    build = robot.build
    seen = Examination({"url": robot.url, "abilities": sorted(robot.abilities)})
    seen.facts |= {"family": build.family, "build": build.name}
    try:
        seen.facts |= await robot.describe()
        seen.findings += await robot.preflight()
    except RoteError as error:
        seen.findings.append(from_error(error))
    seen.findings += _version_findings(robot, seen.facts.get("versions", {}))
    return seen


def _version_findings(robot: Robot, versions: Mapping[str, str]) -> list[Finding]:
    """Return services whose interface version differs from the one rote was written for."""
    services = () if robot.family is None else robot.family.services
    expected = {service.name: service.version for service in services}
    return [
        Finding(
            Severity.WARNING,
            f"{service} has version {version}, and rote was written for {expected[service]}",
            "Compare what it does with care.",
            kind=FindingKind.CONNECTION,
        )
        for service, version in versions.items()
        if service in expected and version.split(".")[:3] != expected[service].split(".")[:3]
    ]


def from_error(error: RoteError) -> Finding:
    """Return an error as a finding."""
    return Finding(Severity.ERROR, error.text, error.remedy, kind=FindingKind.CONNECTION)
