"""This computer's interfaces, addresses, firewalls and packages, for connections to robots."""

import socket
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from rote.platform.system import read_interface_address

_UP, _LOOPBACK, _MULTICAST = 0x1, 0x8, 0x1000  # Linux's IFF_ flags
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


def list_interfaces(networks: Path = _NETWORKS) -> list[Interface]:
    """Return this computer's network interfaces; `networks` has a folder of facts for each."""
    found = []
    for _, name in socket.if_nameindex():
        address = find_address(name)
        flags = _read_flags(networks / name / "flags")
        if flags is None:  # not reported by this system: assume the usual flags
            flags = _UP | (_LOOPBACK if address.startswith("127.") else _MULTICAST)
        found.append(
            Interface(
                name,
                address,
                up=bool(flags & _UP),
                loopback=bool(flags & _LOOPBACK),
                multicast=bool(flags & _MULTICAST),
            )
        )
    return found


def _read_flags(file: Path) -> int | None:
    try:
        return int(file.read_text(encoding="ascii"), 16)
    except (OSError, ValueError):
        return None


def find_address(name: str) -> str:
    """Return the IPv4 address of an interface; "" if it has none, or it is not reported."""
    address = read_interface_address(name)
    return _list_addresses().get(name, "") if address is None else address


def _list_addresses() -> dict[str, str]:
    """Return the IPv4 address of each interface, as reported by `ifaddr`; empty without it."""
    try:
        import ifaddr  # noqa: PLC0415 - optional, the extra `webrtc`
    except ImportError:
        return {}
    names = dict(socket.if_nameindex())
    return {
        names[adapter.index]: str(ip.ip)
        for adapter in ifaddr.get_adapters()
        for ip in adapter.ips
        if ip.is_IPv4 and adapter.index in names
    }


def find_firewall(settings: Path = _UFW) -> str:
    """Return the name of the active firewall; "" if none is found. Only ufw is detected."""
    try:
        lines = settings.read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    return "ufw" if "ENABLED=yes" in {line.strip() for line in lines} else ""


def find_installed_version(package: str) -> str:
    """Return the version of a Python package; "" if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
