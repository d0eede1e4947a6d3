"""How the command line prints messages: facts in rad and seconds, acts as commands."""

from collections.abc import Mapping
from typing import Any

from rote.findings import Finding
from rote.text import Act, Special, shown

COMMANDS: Mapping[Act, str] = {
    Act.STOP: "rote stop",
    Act.LIST: "rote list",
    Act.DELETE: "rote delete NAME",
    Act.TAKES: "rote takes list",
    Act.PIPE_CAPTURE: "tcpdump -i wlan0 -w - | rote capture -",
    Act.STAND: "rote modes stand",
    Act.SINK: "rote modes damp --yes",
    Act.GET_UP: "rote a1 stand",
    Act.LIE_DOWN: "rote a1 lie",
    Act.STATUS: "rote status --json",
    Act.DISCOVER: "rote discover",
    Act.DOCTOR: "rote doctor",
    Act.SIMULATE: "rote sim",
    Act.SIMULATE_WEBRTC: "rote sim --webrtc 127.0.0.1",
    Act.SIMULATE_DDS: "rote sim --dds lo",
    Act.SIMULATE_A1: "rote sim --robot a1",
    Act.OTHER_STORE: "rote sim --store FILE, or --robot 'sim://g1?store=FILE'",
    Act.PLAY_TRACK: "rote play FILE",
    Act.FORCE: "--force",
    Act.OVERWRITE: "--overwrite",
    Act.MAP_JOINTS: "--map",
    Act.PLAY_IMPORTED: "rote play --imported",
    Act.NAME_BUILD: "?build=NAME behind its address",
    Act.FROM_DEGREES: "rote motion convert --degrees",
    Act.TO_BUILD: "rote motion to-build",
    Act.TRIM: "rote motion trim",
    Act.SPEED: "rote motion speed",
    Act.RETIME: "rote motion retime",
    Act.CHECK: "rote motion check",
    Act.SHOW: "rote motion show",
    Act.PLOT: "rote motion plot",
}
"""The command, option or URL part that the user types for each act of a remedy."""


def worded(text: str) -> str:
    """Return a message as the command line prints it: with its facts and commands filled in."""
    return shown(text, _format_fact)


def finding_json(finding: Finding) -> dict[str, Any]:
    """Return a finding as JSON data, with its sentences as the command line prints them."""
    sentences = {"message": worded(finding.message), "remedy": worded(finding.remedy)}
    return {**finding.as_json(), **sentences}


def _format_fact(fact: Special) -> str:
    return COMMANDS[fact] if isinstance(fact, Act) else str(fact)
