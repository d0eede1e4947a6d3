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
    "The robot's WebRTC service is at 192.168.12.1 in its own Wi-Fi, at 192.168.123.161 by cable "
    "(not .164 or .18, which is the computer on its back), or where the router put it: "
    "{discover}. For a simulated robot: {simulate}.",
    discover=Act.DISCOVER,
    simulate=Act.SIMULATE_WEBRTC,
)
_BUSY = (
    "It takes one client at a time, and the phone app counts as one: close the app, or wait 10 s "
    "after a client that was cut off. To stop what another program does, end that program, or "
    "use the remote."
)
_SILENT = Text(
    "A program listens there but does not answer: is it the robot? {addresses}",
    addresses=_ADDRESSES,
)


def find_key(given: str | None, name: str) -> bytes | None:
    """Return the robot's own key: as given, from ROTE_KEY, or from the entry for `name` in the key
    file; None if there is none.
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
        remedy = "Make it a text file that you can read, or remove it."
        raise BadRequestError(f"{path} cannot be read: {error}", remedy) from None
    for number, line in enumerate(lines, start=1):
        words = line.partition("#")[0].split()
        if words and not (len(words) == 2 and _KEY.fullmatch(words[1])):
            raise BadRequestError(
                f"line {number} of {path} is not a robot and its key",
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


async def exchange(
    host: str,
    port: int | None,
    sdp: str,
    *,
    key: bytes | None,
    limit_s: float,
    own_wifi: bool,
    on_variant: Callable[[str], None] = lambda _: None,
) -> str:
    """Return the robot's answer to the offer `sdp`, with any firmware.

    `on_variant` is called with the signalling variant of the robot: legacy, none, 1, 2 or 3.
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
    refused = []
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
            refused.append(f"port {port}: {_system_error_text(error)}")
    seen = "; ".join(refused)
    raise StageTimeoutError("signal", f"no robot answered at {host} ({seen})", _ADDRESSES)


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


def _system_error_text(error: OSError) -> str:
    """Return the system's own error text; asyncio says "connect call failed" for everything."""
    if error.errno is not None and error.errno > 0:
        return os.strerror(error.errno).lower()
    return error.strerror or str(error) or type(error).__name__
