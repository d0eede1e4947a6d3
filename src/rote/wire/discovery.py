"""Finding robots on the local network: one question by multicast, and the replies to it.

    client -> group, port 10131       {"name": "unitree_dapengche", "sn": the serial, optional}
    robot  -> group, port 10134       {"sn": "E21D...", "key": "", "name": ..., "ip": "10.0.0.2"}
              and/or the asker

Robots also announce themselves, with the reply's document, when they boot or join a Wi-Fi. G1 from
1.5.1 and every R1 answer only a question that names their own serial. Facts and sources:
spec/datachannel.md, section 2.

Decoders raise `DecodeError` and nothing else, for any bytes at all. The JSON functions here also
serve sdp.py and signalling.py.
"""

import json
from dataclasses import dataclass
from ipaddress import ip_address

from rote.errors import BadRequestError, DecodeError

QUERY_PORT, REPLY_PORT = 10131, 10134
NAME = "unitree_dapengche"
"""The same in every question and reply seen, whatever the robot."""
GROUPS: dict[str, tuple[str, ...]] = {
    "go2": ("231.1.1.1",),
    "g1": ("231.1.1.2", "239.255.1.1"),
    "r1": ("231.1.1.2", "239.255.1.1"),
}
MAX_BODY = 64 * 1024
"""The largest document of discovery and signalling: a real offer is 3 kB, and 5 kB encrypted."""
MAX_SERIAL = 64

_NO_HOST = "255.255.255.255"
_REPORT = (
    "Check that it comes from a robot; if so, rote does not know its firmware's format: "
    "please report this message and the firmware's version."
)


class DocumentError(DecodeError):
    """A document of discovery or signalling is invalid; `step` says which."""

    def __init__(self, step: str, seen: str, remedy: str = _REPORT) -> None:
        super().__init__(f"{step}: {seen}", remedy)
        self.args = (step, seen, remedy)
        self.step = step
        self.seen = seen


@dataclass(frozen=True, slots=True)
class Query:
    """A question to all robots, or with a serial to one."""

    serial: str | None = None

    def concerns(self, serial: str, *, only_by_name: bool = False) -> bool:
        """Whether the robot with `serial` answers; newer ones answer `only_by_name`."""
        return self.serial == serial or (self.serial is None and not only_by_name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The address of a robot."""

    serial: str
    address: str
    """An IP address in its usual form."""


def groups(family: str | None = None) -> tuple[str, ...]:
    """Return the groups in which robots of a family listen; all groups without a family."""
    if family is None:
        return tuple(dict.fromkeys(group for some in GROUPS.values() for group in some))
    try:
        return GROUPS[family.lower()]
    except KeyError:
        known = ", ".join(GROUPS)
        raise BadRequestError(f"no robots of the family {family!r}", f"Known: {known}.") from None


def encode_query(query: Query) -> bytes:
    """Return the datagram of `query`."""
    document: dict[str, object] = {"name": NAME}
    if query.serial is not None:
        document["sn"] = _require_valid(_serial_problem(query.serial), query.serial)
    return json_body(document)


def decode_query(datagram: bytes) -> Query:
    """Return the question in a datagram; an empty serial counts as none."""
    document = json_object(datagram, "discovery query")
    name = text_field(document, "name", "discovery query")
    if name != NAME:
        raise DocumentError("discovery query", f"it calls {name[:40]!r}, not {NAME!r}")
    if document.get("sn") in (None, ""):
        return Query()
    return Query(_read_serial(document, "discovery query"))


def encode_reply(reply: Reply) -> bytes:
    """Return the datagram of `reply`."""
    serial = _require_valid(_serial_problem(reply.serial), reply.serial)
    address = _require_valid(_address_problem(reply.address), reply.address)
    return json_body({"sn": serial, "key": "", "name": NAME, "ip": address})


def decode_reply(datagram: bytes) -> Reply:
    """Return the address of a robot. Keys other than the serial and the address are ignored."""
    step = "discovery reply"
    document = json_object(datagram, step)
    serial = _read_serial(document, step)
    address = text_field(document, "ip", step)
    if reason := _address_problem(address):
        raise DocumentError(step, reason, "Wait until the robot has joined the network; ask again.")
    return Reply(serial=serial, address=str(ip_address(address)))


def json_body(document: dict[str, object]) -> bytes:
    """Return `document` as JSON in UTF-8."""
    try:
        body = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError as error:
        raise BadRequestError(f"this document is not text: {error.reason}") from None
    return bounded(body)


def bounded(body: bytes) -> bytes:
    """Return `body` if it is short enough to be sent."""
    if len(body) > MAX_BODY:
        raise BadRequestError(f"a body of {len(body)} bytes; {MAX_BODY} are the most")
    return body


def json_object(body: bytes, step: str, remedy: str = _REPORT) -> dict[str, object]:
    """Return the JSON object in `body`; `step` and `remedy` are for the error."""
    if len(body) > MAX_BODY:
        raise DocumentError(step, f"{len(body)} bytes, where {MAX_BODY} are the most", remedy)
    try:
        document = json.loads(body.decode())
    except (ValueError, RecursionError) as error:
        seen = f"not JSON in UTF-8 ({error}); it begins {body[:40]!r}"
        raise DocumentError(step, seen, remedy) from None
    if not isinstance(document, dict):
        seen = f"a JSON {type(document).__name__}, not an object"
        raise DocumentError(step, seen, remedy)
    return document


def text_field(document: dict[str, object], key: str, step: str, default: str | None = None) -> str:
    """Return the text under `key`, or `default` if there is none."""
    value = document.get(key, default)
    if not isinstance(value, str):
        keys = ", ".join(sorted(document))[:80]
        raise DocumentError(step, f"no text under {key!r}; the keys it has: {keys!r}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise DocumentError(step, f"half a character (a lone surrogate) under {key!r}") from None
    return value


def _read_serial(document: dict[str, object], step: str) -> str:
    serial = text_field(document, "sn", step)
    if reason := _serial_problem(serial):
        raise DocumentError(step, reason)
    return serial


def _require_valid(reason: str, value: str) -> str:
    if reason:
        raise BadRequestError(reason)
    return value


def _serial_problem(serial: str) -> str:
    # It is shown to people: no escape sequences from the network.
    if 0 < len(serial) <= MAX_SERIAL and serial.isascii() and serial.isprintable():
        return ""
    return f"{serial[:40]!r} is not a serial (1 to {MAX_SERIAL} printable ASCII characters)"


def _address_problem(address: str) -> str:
    try:
        found = ip_address(address)
    except ValueError:
        return f"{address[:40]!r} is no IP address"
    # A scope (fe80::1%eth0) names an interface of the robot and could be any text.
    if found.is_unspecified or found.is_multicast or address == _NO_HOST or "%" in address:
        return f"{address[:40]!r} is not the address of one host"
    return ""
