"""CycloneDDS's settings: rote's own for one interface, merged with those in CYCLONEDDS_URI.

CycloneDDS reads a list of settings, each an XML text or the address of a file, and merges them. An
interface that appears twice is an error, so rote's part leaves out what the user's part has.
"""

import re
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

VARIABLE = "CYCLONEDDS_URI"
LOOPBACK = "lo"
_FILE = "file://"
# A comma separates two parts only before an XML text or a file: XML texts contain commas, too.
_PARTS = re.compile(r",(?=\s*(?:<|file://))")
# On loopback, robots are found in two ways: by multicast, as CycloneDDS 11 does there by default,
# and by asking every possible port, as older versions without multicast need.
_LOOPBACK_GENERAL = "<AllowMulticast>spdp</AllowMulticast>"
_LOOPBACK_DISCOVERY = (
    "<Discovery><ParticipantIndex>auto</ParticipantIndex>"
    "<MaxAutoParticipantIndex>60</MaxAutoParticipantIndex>"
    "<Peers><Peer address='127.0.0.1'/></Peers></Discovery>"
)


class NamedInterfaces(NamedTuple):
    """The interfaces that the user's settings of CycloneDDS name."""

    interfaces: tuple[str, ...] = ()
    """Names and addresses."""
    deprecated: bool = False
    """Whether they use the syntax of CycloneDDS 0.9, which excludes the newer one."""
    problem: str = ""
    """Why they cannot be read; empty if they can."""


def make_settings(interface: str, *, named: bool = False, multicast: bool = False) -> str:
    """Return rote's settings for one interface as XML; "" if none are needed.

    With `named`, the user's settings name the interface already, so it is left out. With
    `multicast`, samples are sent by multicast on loopback too, not only discovery messages.
    """
    loopback = interface == LOOPBACK
    general = _LOOPBACK_GENERAL if loopback and not multicast else ""
    if not named:
        by_multicast = " multicast='true'" if loopback else ""
        chosen = f"<NetworkInterface name={quoteattr(interface)}{by_multicast}/>"
        general = f"<Interfaces>{chosen}</Interfaces>{general}"
    discovery = _LOOPBACK_DISCOVERY if loopback else ""
    domain = (f"<General>{general}</General>" if general else "") + discovery
    return f"<CycloneDDS><Domain Id='any'>{domain}</Domain></CycloneDDS>" if domain else ""


def merge_settings(
    before: str | None, interface: str, address: str = "", *, multicast: bool = False
) -> str:
    """Return the value of CYCLONEDDS_URI for one interface, which may also be named by its address.

    The settings in `before` stay in force.
    """
    if not before:
        return make_settings(interface, multicast=multicast)
    named_before = read_interfaces(before).interfaces
    named = interface in named_before or (bool(address) and address in named_before)
    ours = make_settings(interface, named=named, multicast=multicast)
    return ",".join(part for part in (before, ours) if part)


def read_interfaces(value: str) -> NamedInterfaces:
    """Return the interfaces that the settings in CYCLONEDDS_URI name."""
    interfaces: list[str] = []
    deprecated = False
    for part in filter(None, map(str.strip, _PARTS.split(value))):
        try:
            root = _parse_part(part)
        except (OSError, ElementTree.ParseError, ValueError) as error:
            return NamedInterfaces(
                tuple(interfaces), deprecated, f"{part[:60]!r} cannot be read: {error}"
            )
        for element in root.iter():
            tag = element.tag.rpartition("}")[2].lower()  # without its namespace
            if tag == "networkinterface":
                names = (element.get("name"), element.get("address"))
                interfaces += [name for name in names if name]
            elif tag == "networkinterfaceaddress" and element.text:
                deprecated = True
                interfaces += [name.strip() for name in element.text.split(",")]
    return NamedInterfaces(tuple(interfaces), deprecated)


def _parse_part(part: str) -> ElementTree.Element:
    """Return one part as XML: the elements of an XML text, or of the file that it names."""
    if not part.startswith("<"):
        text = Path(part.removeprefix(_FILE)).read_text(encoding="utf-8")
        part = re.sub(r"<\?xml[^>]*\?>", "", text, count=1)
    if "<!DOCTYPE" in part or "<!ENTITY" in part:
        raise ValueError("it defines entities of its own")
    # Safe to parse: it is the user's own text, and it declares no entities.
    return ElementTree.fromstring(f"<all>{part}</all>")  # noqa: S314


def find_problem(
    value: str | None, interface: str, known: tuple[str, ...]
) -> tuple[str, str] | None:
    """Return what in `value`, the value of CYCLONEDDS_URI, prevents the use of `interface`, and the
    remedy; None if nothing does.

    `known` are the names and addresses of this computer's interfaces.
    """
    if not value:
        return None
    named = read_interfaces(value)
    if named.problem:
        return f"{VARIABLE} is set, and {named.problem}", f"Correct it, or unset {VARIABLE}."
    absent = [name for name in named.interfaces if name not in known]
    if absent:
        return (
            f"{VARIABLE} names the interface {absent[0]!r}, which this computer does not have",
            f"Name an existing interface, or unset {VARIABLE}; then rote uses the interface in "
            "the robot's URL.",
        )
    if named.deprecated and interface not in named.interfaces:
        return (
            f"{VARIABLE} chooses {named.interfaces[0]!r} by NetworkInterfaceAddress, which excludes"
            f" {interface!r}",
            f"Name {interface!r} there, or unset {VARIABLE}; then rote uses the interface in the "
            "robot's URL.",
        )
    return None
