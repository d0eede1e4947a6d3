"""Finding robots on the local network: one query by multicast, and the replies to it.

    client -> group, port 10131       {"name": "unitree_dapengche", "sn": the serial, optional}
    robot  -> group, port 10134       {"sn": "E21D...", "key": "", "name": ..., "ip": "10.0.0.2"}
              and/or the client

Robots also announce themselves, with the reply's document, when they boot or join a Wi-Fi. G1 from
1.5.1 and every R1 answer only a query with their own serial. Facts and sources:
spec/datachannel.md, section 2.

Decoders raise only `DecodeError`, for any bytes. sdp.py and signalling.py use the JSON functions
too.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from itertools import chain

from rote.errors import BadRequestError, DecodeError

QUERY_PORT, REPLY_PORT = 10131, 10134
NAME = "unitree_dapengche"
"""The same in every known query and reply, for all robots."""
GROUPS: dict[str, tuple[str, ...]] = {
    "go2": ("231.1.1.1",),
    "g1": ("231.1.1.2", "239.255.1.1"),
    "r1": ("231.1.1.2", "239.255.1.1"),
}
MAX_BODY = 64 * 1024
"""The largest document of discovery and signalling: a real offer is 3 kB, and 5 kB encrypted."""
MAX_SERIAL = 64

_BROADCAST = "255.255.255.255"
_REPORT = (
    "Check that it comes from a robot. If it does, rote does not know the format of its "
    "firmware: please report this message and the firmware's version."
)


class DocumentError(DecodeError):
    """A document of discovery or signalling is invalid.

    `step` names the document, and `seen` says what is wrong with it.
    """

    def __init__(self, step: str, seen: str, remedy: str = _REPORT) -> None:
        super().__init__(f"{step}: {seen}", remedy)
        self.args = (step, seen, remedy)  # with which a pickled error is made again
        self.step = step
        self.seen = seen


@dataclass(frozen=True, slots=True)
class Query:
    """A query for all robots, or for the one with a serial number."""

    serial: str | None = None

    def concerns(self, serial: str, *, only_by_name: bool = False) -> bool:
        """Whether the robot with this serial number answers the query.

        With `only_by_name` it answers only queries for its own number, as newer robots do.
        """
        return self.serial == serial or (self.serial is None and not only_by_name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A robot's answer to a query: its serial number and its address."""

    serial: str
    address: str
    """An IP address in its usual form."""


def list_groups(family: str | None = None) -> tuple[str, ...]:
    """Return the multicast groups in which robots of a family listen; without one, all groups."""
    if family is None:
        return tuple(dict.fromkeys(chain.from_iterable(GROUPS.values())))
    try:
        return GROUPS[family.lower()]
    except KeyError:
        known = ", ".join(GROUPS)
        raise BadRequestError(f"unknown family {family!r}", f"Known: {known}.") from None


def encode_query(query: Query) -> bytes:
    """Return the datagram that carries `query`."""
    document: dict[str, object] = {"name": NAME}
    if query.serial is not None:
        document["sn"] = _require_valid(query.serial, _find_serial_problem)
    return encode_json(document)


def decode_query(datagram: bytes) -> Query:
    """Return the query in a datagram; an empty serial counts as none."""
    document = decode_json_object(datagram, "discovery query")
    name = read_text_field(document, "name", "discovery query")
    if name != NAME:
        raise DocumentError("discovery query", f"its name is {name[:40]!r}, not {NAME!r}")
    if document.get("sn") in (None, ""):
        return Query()
    return Query(_read_serial(document, "discovery query"))


def encode_reply(reply: Reply) -> bytes:
    """Return the datagram that carries `reply`."""
    serial = _require_valid(reply.serial, _find_serial_problem)
    address = _require_valid(reply.address, _find_address_problem)
    return encode_json({"sn": serial, "key": "", "name": NAME, "ip": address})


def decode_reply(datagram: bytes) -> Reply:
    """Return the reply in a datagram. Keys other than `sn` and `ip` are ignored."""
    step = "discovery reply"
    document = decode_json_object(datagram, step)
    serial = _read_serial(document, step)
    address = read_text_field(document, "ip", step)
    if reason := _find_address_problem(address):
        raise DocumentError(
            step, reason, "Wait until the robot has joined the network, then try again."
        )
    return Reply(serial=serial, address=str(ip_address(address)))


def encode_json(document: dict[str, object]) -> bytes:
    """Return `document` as JSON in UTF-8."""
    try:
        body = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError as error:
        raise BadRequestError(f"the document cannot be sent as UTF-8: {error.reason}") from None
    return check_body_size(body)


def check_body_size(body: bytes) -> bytes:
    """Return `body`; raise `BadRequestError` if it is too long to be sent."""
    if len(body) > MAX_BODY:
        raise BadRequestError(f"the body has {len(body)} bytes; the maximum is {MAX_BODY}")
    return body


def decode_json_object(body: bytes, step: str, remedy: str = _REPORT) -> dict[str, object]:
    """Return the JSON object in `body`.

    Raises `DocumentError` for anything else; `step` names the document in its message.
    """
    if len(body) > MAX_BODY:
        raise DocumentError(step, f"{len(body)} bytes; the maximum is {MAX_BODY}", remedy)
    try:
        document = json.loads(body.decode())
    except (ValueError, RecursionError) as error:
        seen = f"not JSON in UTF-8 ({error}); it begins with {body[:40]!r}"
        raise DocumentError(step, seen, remedy) from None
    if not isinstance(document, dict):
        seen = f"a JSON {type(document).__name__}, not an object"
        raise DocumentError(step, seen, remedy)
    return document


def read_text_field(
    document: dict[str, object], key: str, step: str, default: str | None = None
) -> str:
    """Return the text under `key`, or `default` if the key is missing.

    Raises `DocumentError` if there is neither, or if the value is not valid text; `step` names the
    document in its message.
    """
    value = document.get(key, default)
    if not isinstance(value, str):
        keys = ", ".join(sorted(document))[:80]
        raise DocumentError(step, f"no text under {key!r}; its keys are {keys!r}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise DocumentError(step, f"the text under {key!r} has a lone surrogate") from None
    return value


def _read_serial(document: dict[str, object], step: str) -> str:
    serial = read_text_field(document, "sn", step)
    if reason := _find_serial_problem(serial):
        raise DocumentError(step, reason)
    return serial


def _require_valid(value: str, find_problem: Callable[[str], str]) -> str:
    """Return `value`; raise `BadRequestError` if `find_problem` finds something wrong with it."""
    if problem := find_problem(value):
        raise BadRequestError(problem)
    return value


def _find_serial_problem(serial: str) -> str:
    """Return what is wrong with a serial; empty if it is valid."""
    # A serial is shown on terminals, so it must not contain escape sequences.
    if 0 < len(serial) <= MAX_SERIAL and serial.isascii() and serial.isprintable():
        return ""
    return f"{serial[:40]!r} is not a serial (1 to {MAX_SERIAL} printable ASCII characters)"


def _find_address_problem(address: str) -> str:
    """Return what is wrong with a robot's address; empty if it is valid."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return f"{address[:40]!r} is not an IP address"
    # A scope (fe80::1%eth0) names an interface of the robot and could be any text.
    if parsed.is_unspecified or parsed.is_multicast or address == _BROADCAST or "%" in address:
        return f"{address[:40]!r} is not the address of one host"
    return ""
