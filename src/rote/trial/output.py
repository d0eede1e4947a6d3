"""The output of a trial: a folder with the report, the conversation and a capture, all scrubbed.

Everything is built before anything is written, so the operator can review it first.
Nothing is sent anywhere.
"""

import json
import struct
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rote.capture.model import Datagram
from rote.capture.synthetic import ethernet
from rote.capture.synthetic.build import webrtc
from rote.capture.synthetic.script import ScriptMessage
from rote.errors import BadRequestError, DecodeError
from rote.platform.atomic_file import appearing
from rote.trial.page import render_page
from rote.trial.recorder import BUS, CHANNEL, FRAMES, QUADRUPED, RecordedMessage
from rote.trial.report import build_report
from rote.trial.runner import PROTOCOLS, TrialResult
from rote.trial.scrubbing import TrialScrubber
from rote.wire.teaching import codec as teaching

REPORT, PAGE, CONVERSATION, CAPTURE, KEYS = (
    "report.json", "report.html", "conversation.jsonl", "capture.pcap", "capture.keys",
)  # fmt: skip
_CLIENT, _ROBOT = "192.0.2.20", "192.0.2.1"
"""Addresses reserved for documentation (RFC 5737)."""
_START_NS = 1_700_000_000 * 10**9
"""Time of the first packet of a capture, the same for all trials."""
_MAX_UDP_BYTES = 65_000
_PORTS = {FRAMES: (50_000, 49_504), QUADRUPED: (8090, 8082), BUS: (7410, 7411)}
"""The ports of client and robot in a capture, by protocol."""


@dataclass(slots=True)
class TrialOutput:
    """The files of a trial, built but not written yet."""

    report: dict[str, Any]
    files: dict[str, bytes] = field(default_factory=dict)
    messages: int = 0
    replaced: dict[str, int] = field(default_factory=dict)
    """Number of distinct identifiers replaced, by kind."""

    def write(self, folder: Path) -> None:
        """Write the files into `folder`, creating it if needed; nothing is overwritten."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise BadRequestError(
                f"{folder} cannot be created: {reason}", "Choose another folder."
            ) from None
        for name, data in self.files.items():
            with appearing(folder / name) as file:
                file.write(data)


def check_folder(folder: Path) -> None:
    """Raise `BadRequestError` if a trial cannot write its output into `folder`."""
    if folder.exists() and not folder.is_dir():
        raise BadRequestError(f"{folder} is a file", "Choose a folder that does not exist yet.")
    existing = [name for name in (REPORT, PAGE, CONVERSATION, CAPTURE) if (folder / name).exists()]
    if existing:
        raise BadRequestError(
            f"{folder} already contains a trial ({existing[0]})",
            "Choose another folder with --out.",
        )


def build_output(result: TrialResult, *, key: bytes | None = None) -> TrialOutput:
    """Build the files of a trial, with pseudonyms for identifiers.

    The same `key` gives the same pseudonyms; None means a random one.
    """
    recorder = result.recorder
    assert recorder is not None
    protocol = PROTOCOLS[result.wire]
    scrubber = TrialScrubber(key)
    scrubber.learn_robot(result.url, recorder.lists)
    if protocol == FRAMES:
        scrubber.learn_action_names(_list_action_names(recorder.conversation))
    # All identifiers are learned first, because one may occur before it can be recognised.
    for entry in recorder.conversation:
        if entry.is_text:
            scrubber.learn(entry.message)
        elif protocol == BUS:
            scrubber.learn(bytes.fromhex(entry.message))
    conversation = [scrubber.scrub_message(entry, protocol) for entry in recorder.conversation]
    report = scrubber.scrub_document(build_report(result))
    files = {
        REPORT: (json.dumps(report, indent=1, ensure_ascii=False) + "\n").encode(),
        PAGE: render_page(report).encode(),
        CONVERSATION: b"".join(_encode_line(entry) for entry in conversation),
    }
    files |= _build_capture(conversation, protocol)
    replaced = {kind: counts["different"] for kind, counts in scrubber.tally.document().items()}
    return TrialOutput(report, files, len(conversation), replaced)


def _list_action_names(conversation: list[RecordedMessage]) -> list[str]:
    """Return the names in all lists of actions that the robot sent in teaching frames."""
    names: list[str] = []
    for entry in conversation:
        if not entry.sent and entry.api == "0x1a" and not entry.is_text:  # 0x1a: the list
            try:
                frame = teaching.decode(bytes.fromhex(entry.message))
                reply = teaching.decode_reply(frame.command, frame.payload)
            except DecodeError:
                continue
            names += [action.name for action in getattr(reply, "actions", ())]
    return names


def _encode_line(entry: RecordedMessage) -> bytes:
    """Return a message of the conversation as one line of JSON."""
    line: dict[str, Any] = {
        "at_s": round(entry.at_s, 4),
        "from": "rote" if entry.sent else "robot",
        "topic": entry.topic,
    }
    if entry.api:
        line["api"] = entry.api
    if entry.code is not None:
        line["code"] = entry.code
    line["text" if entry.is_text else "hex"] = entry.message
    return json.dumps(line, ensure_ascii=False).encode(errors="replace") + b"\n"


def _build_capture(conversation: list[RecordedMessage], protocol: str) -> dict[str, bytes]:
    """Return a capture of the scrubbed messages, between documentation addresses."""
    with TemporaryDirectory(prefix="rote-trial-") as folder:
        path = Path(folder) / CAPTURE
        if protocol == CHANNEL:
            session = webrtc(
                ScriptMessage(
                    max(entry.at_s, 0.0),
                    entry.sent,
                    entry.message if entry.is_text else bytes.fromhex(entry.message),
                )
                for entry in conversation
                if entry.message
            )
            ethernet.write(path, session.datagrams)
            return {CAPTURE: path.read_bytes(), KEYS: session.keylog.encode("ascii")}
        ethernet.write(path, _build_datagrams(conversation, protocol))
        return {CAPTURE: path.read_bytes()}


def _build_datagrams(conversation: list[RecordedMessage], protocol: str) -> list[Datagram]:
    """Return the messages as UDP datagrams; messages that are too long are left out."""
    client_port, robot_port = _PORTS[protocol]
    client, robot = (_CLIENT, client_port), (_ROBOT, robot_port)
    datagrams = []
    for number, entry in enumerate(conversation, start=1):
        data = bytes.fromhex(entry.message) if not entry.is_text else entry.message.encode()
        if protocol == BUS:
            data = _wrap_in_rtps(entry, data, number)
        source, target = (client, robot) if entry.sent else (robot, client)
        time_ns = _START_NS + round(entry.at_s * 1e9)
        if data and len(data) <= _MAX_UDP_BYTES:
            datagrams.append(Datagram(time_ns, source, target, data))
    return datagrams


def _wrap_in_rtps(entry: RecordedMessage, sample: bytes, number: int) -> bytes:
    """Wrap a sample in an RTPS message, with the topic name as an inline parameter.

    `number` is its sequence number. Lengths are multiples of 4 bytes.
    """
    topic = entry.topic.encode() + b"\0"
    topic = struct.pack("<I", len(topic)) + topic
    topic += bytes(-len(topic) % 4)
    # Parameter 5 is the topic name, and 1 ends the list.
    parameters = struct.pack("<HH", 0x0005, len(topic)) + topic + struct.pack("<HH", 0x0001, 0)
    guid_prefix = (b"\x01" if entry.sent else b"\x02") * 12
    header = b"RTPS\x02\x01\x01\x10" + guid_prefix  # version 2.1, vendor CycloneDDS
    # Flags, 16 bytes to the parameters, reader, writer (a user's, without a key), sequence number.
    body = struct.pack("<HHIIii", 0, 16, 0, 0x0303_0000, 0, number) + parameters + sample
    body += bytes(-len(body) % 4)
    length = len(body) if len(body) < 2**16 else 0  # 0: the submessage reaches to the end
    # Submessage 0x15 is DATA; its flags: little-endian, with parameters, with a sample.
    return header + struct.pack("<BBH", 0x15, 0x07, length) + body
