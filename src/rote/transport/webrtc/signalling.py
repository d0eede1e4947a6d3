"""The client's part of signalling: posts an offer to the robot by HTTP and reads the answer."""

import asyncio
import os
import re
import secrets
import stat
from collections.abc import Callable
from pathlib import Path

from rote.errors import (
    BadRequestError,
    BusyError,
    DecodeError,
    RemoteProtocolError,
    StageError,
    StageTimeoutError,
)
from rote.platform.paths import key_file
from rote.platform.system import has_file_modes
from rote.text import Act, Text
from rote.transport.webrtc.http import HttpResponse, post
from rote.wire.webrtc import sdp as wire_sdp
from rote.wire.webrtc import signalling as wire

KEY_VARIABLE = "ROTE_KEY"
_KEY = re.compile("[0-9a-fA-F]{32}")
_ADDRESSES = Text(
    "The robot's WebRTC service has the address 192.168.12.1 in its own Wi-Fi and "
    "192.168.123.161 by cable (.164 and .18 are the computer on its back). In another network, "
    "find its address: {discover}. To use a simulated robot: {simulate}.",
    discover=Act.DISCOVER,
    simulate=Act.SIMULATE_WEBRTC,
)
_BUSY = (
    "The robot accepts one client at a time, and the phone app counts as one: close the app, or "
    "wait 10 s if a client lost its connection. To stop a motion of another program, end that "
    "program, or use the remote."
)
_SILENT = Text(
    "A program listens there but does not answer. Check that it is the robot. {addresses}",
    addresses=_ADDRESSES,
)


def find_key(given: str | None, name: str) -> bytes | None:
    """Return the robot's own key; None if there is none.

    It is the `given` one, that in ROTE_KEY, or that in the key file's line for `name` or for `*`.
    """
    text = given or os.environ.get(KEY_VARIABLE)
    if text:
        return wire.parse_device_key(text)
    path = key_file()
    try:
        _check_private(path)
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeError) as error:
        remedy = "Make it a readable text file, or remove it."
        raise BadRequestError(f"{path} cannot be read: {error}", remedy) from None
    for number, line in enumerate(lines, start=1):
        words = line.partition("#")[0].split()
        if words and not (len(words) == 2 and _KEY.fullmatch(words[1])):
            raise BadRequestError(
                f"line {number} of {path} does not have a robot and its key",
                "Write one robot per line: its serial or address, a space, 32 hex characters.",
            )
        if words and words[0] in (name, "*"):
            return wire.parse_device_key(words[1])
    return None


def _check_private(path: Path) -> None:
    mode = path.stat().st_mode
    if has_file_modes() and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise BadRequestError(
            f"{path} can be read by other users, so its keys are not used",
            f"Run: chmod 600 {path}",
        )


async def exchange_descriptions(
    host: str,
    port: int | None,
    sdp: str,
    *,
    key: bytes | None,
    limit_s: float,
    own_wifi: bool,
    on_variant: Callable[[str], None] = lambda _: None,
) -> str:
    """Post the offer `sdp` to the robot, and return the description in its answer.

    Without a `port`, those of newer and of older firmware are tried. Some firmware needs the
    robot's own `key`. `own_wifi` tells that this computer is in the robot's own Wi-Fi. `on_variant`
    is called with the robot's variant of signalling: legacy, none, 1, 2 or 3.
    """
    offer = wire_sdp.SdpOffer(sdp=sdp, id="" if own_wifi else wire_sdp.STATION_ID)
    ports = (wire.PORT, wire.LEGACY_PORT) if port is None else (port,)
    try:
        async with asyncio.timeout(limit_s):
            answer = await _exchange_at_first_open_port(host, ports, offer, key, on_variant)
    except StageError:
        raise
    except TimeoutError:
        raise StageTimeoutError(
            "signal", f"no robot answered at {host} within {limit_s:g} s", _SILENT
        ) from None
    if isinstance(answer, wire_sdp.Busy):
        raise BusyError("signal", f"the robot at {host} is connected to another client", _BUSY)
    return answer.sdp


async def _exchange_at_first_open_port(
    host: str,
    ports: tuple[int, ...],
    offer: wire_sdp.SdpOffer,
    key: bytes | None,
    on_variant: Callable[[str], None],
) -> wire_sdp.SdpAnswer | wire_sdp.Busy:
    """Return the answer from the first open port; raise `StageError` for an unusable answer."""
    failures = []
    for port in ports:
        try:
            if port == wire.LEGACY_PORT:
                answer = await _exchange_legacy(host, port, offer)
                on_variant("legacy")
                return answer
            return await _exchange_sealed(host, port, offer, key, on_variant)
        except wire.KeyNeededError as error:
            raise StageError("key", error.seen, error.remedy) from error
        except (DecodeError, RemoteProtocolError) as error:
            raise StageError("signal", str(error), error.remedy or _ADDRESSES) from error
        except OSError as error:
            failures.append(f"port {port}: {_describe_error(error)}")
    reasons = "; ".join(failures)
    raise StageTimeoutError("signal", f"no robot answered at {host} ({reasons})", _ADDRESSES)


async def _exchange_legacy(
    host: str, port: int, offer: wire_sdp.SdpOffer
) -> wire_sdp.SdpAnswer | wire_sdp.Busy:
    body = wire_sdp.encode_offer(offer)
    response = await post(host, port, wire.LEGACY_PATH, body, "application/json")
    return wire_sdp.decode_answer(_check_response(response, wire.LEGACY_PATH))


async def _exchange_sealed(
    host: str,
    port: int,
    offer: wire_sdp.SdpOffer,
    key: bytes | None,
    on_variant: Callable[[str], None],
) -> wire_sdp.SdpAnswer | wire_sdp.Busy:
    """Request the robot's public key, then post an offer that is encrypted with it."""
    response = await post(host, port, wire.NOTICE_PATH, b"")
    notice = wire.open_notice(_check_response(response, wire.NOTICE_PATH), key)
    on_variant("none" if notice.wrapping.value is None else str(notice.wrapping.value))
    session_key = wire.make_session_key(secrets.token_bytes(wire.SESSION_KEY_ENTROPY))
    body = wire.seal_offer(offer, notice.public_key, session_key)
    response = await post(host, port, notice.path, body, wire.SEALED_OFFER_TYPE)
    return wire.open_answer(_check_response(response, notice.path), session_key)


def _check_response(response: HttpResponse, path: str) -> bytes:
    if response.status != 200:
        raise RemoteProtocolError(f"HTTP status {response.status} for {path}", _ADDRESSES)
    return response.body


def _describe_error(error: OSError) -> str:
    """Return the operating system's text for an error; asyncio's own text names no cause."""
    if error.errno is not None and error.errno > 0:  # others are numbers of the resolver
        return os.strerror(error.errno).lower()
    return error.strerror or str(error) or type(error).__name__
