"""This computer's interfaces, addresses, firewalls and packages, for connections to robots."""

import fcntl
import socket
import struct
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_UP, _LOOPBACK, _MULTICAST = 0x1, 0x8, 0x1000
_GET_ADDRESS = 0x8915  # SIOCGIFADDR
_NETWORKS = Path("/sys/class/net")
_UFW = Path("/etc/ufw/ufw.conf")


@dataclass(frozen=True, slots=True)
class Interface:
    """One network interface."""

    name: str
    address: str
    """Its IPv4 address; "" if it has none."""
    up: bool
    loopback: bool
    multicast: bool

    @property
    def usable(self) -> bool:
        """Whether it is up and has an address."""
        return self.up and bool(self.address)


def interfaces(networks: Path = _NETWORKS) -> list[Interface]:
    """Return this computer's interfaces."""
    found = []
    for _, name in socket.if_nameindex():
        flags = _flags(networks / name / "flags")
        found.append(
            Interface(
                name,
                address_of(name),
                up=bool(flags & _UP),
                loopback=bool(flags & _LOOPBACK),
                multicast=bool(flags & _MULTICAST),
            )
        )
    return found


def _flags(file: Path) -> int:
    try:
        return int(file.read_text(encoding="ascii"), 16)
    except (OSError, ValueError):
        return _UP  # if the system does not report it, assume that it is up


def address_of(name: str) -> str:
    """Return the IPv4 address of an interface; "" if it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        asked = struct.pack("256s", name.encode()[:15])
        try:
            answer = fcntl.ioctl(probe.fileno(), _GET_ADDRESS, asked)
        except OSError:
            return ""
    return socket.inet_ntoa(answer[20:24])


def firewall(settings: Path = _UFW) -> str:
    """Return the name of a firewall that is switched on; "" if none is known to be."""
    try:
        lines = settings.read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    return "ufw" if "ENABLED=yes" in {line.strip() for line in lines} else ""


def installed(package: str) -> str:
    """Return the version of a Python package; "" if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
