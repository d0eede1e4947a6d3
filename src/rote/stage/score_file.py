"""Encodes a score as bytes, named by their hash, which a conductor sends to an agent."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from rote.errors import BadRequestError
from rote.motion.files.npz_file import npz_bytes, track_from_npz
from rote.stage.show.file import Cue, CueKind
from rote.stage.show.score import PlacedAction, PlacedTrack, Score

MAX_BYTES = 64 * 2**20
_HEAD_BYTES = 4 * 2**20
_HASH = re.compile(r"[0-9a-f]{64}")


def name_of(data: bytes) -> str:
    """Return the name of these bytes: their SHA-256."""
    return hashlib.sha256(data).hexdigest()


def pack(score: Score, sounds: Mapping[str, str] | None = None) -> bytes:
    """Return a score as bytes. `sounds` has the hash of each sound of the robot, by name."""
    head = {
        "rote_score": 1,
        "section": score.section,
        "role": score.role,
        "at_s": None if score.motion is None else score.motion.at_s,
        "actions": [asdict(action) for action in score.actions],
        "cues": [{**asdict(cue), "kind": cue.kind.value} for cue in score.cues],
        "sounds": dict(sounds or {}),
    }
    data = json.dumps(head, separators=(",", ":")).encode() + b"\n"
    if score.motion is not None:
        data += npz_bytes(score.motion.track)
    if len(data) > MAX_BYTES:
        raise BadRequestError(
            f"the score of {score.role!r} in {score.section!r} has {len(data) / 2**20:.0f} MB, "
            f"more than {MAX_BYTES // 2**20} MB",
            "Split the section.",
        )
    return data


def unpack(data: bytes) -> tuple[Score, dict[str, str]]:
    """Return a score, and the hash of each sound it needs, by name.

    Raises `BadRequestError` if the bytes are not a score.
    """
    if len(data) > MAX_BYTES:
        raise BadRequestError(f"a score of {len(data)} bytes is too large")
    head, _, npz = data.partition(b"\n")
    try:
        if len(head) > _HEAD_BYTES:
            raise ValueError(f"its first line is longer than {_HEAD_BYTES} bytes")
        document = json.loads(head)
        if document["rote_score"] != 1:
            raise ValueError("its version is not known")
        motion = PlacedTrack(float(document["at_s"]), track_from_npz(npz)) if npz else None
        score = Score(
            str(document["section"]),
            str(document["role"]),
            motion,
            tuple(_read_action(each) for each in document["actions"]),
            tuple(_read_cue(each) for each in document["cues"]),
        )
        sounds = {str(name): _check_hash(value) for name, value in document["sounds"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, BadRequestError):
            raise
        raise BadRequestError(f"this is not a score: {error}") from None
    return score, sounds


def _check_hash(value: object) -> str:
    if not isinstance(value, str) or not _HASH.fullmatch(value):
        raise ValueError("a sound has no valid hash")
    return value


def _read_action(document: Mapping[str, Any]) -> PlacedAction:
    return PlacedAction(float(document["at_s"]), str(document["name"]), float(document["speed"]))


def _read_cue(document: Mapping[str, Any]) -> Cue:
    red, green, blue = (int(part) for part in document["colour"])
    return Cue(
        CueKind(document["kind"]),
        float(document["at_s"]),
        str(document["role"]),
        str(document["value"]),
        str(document["language"]),
        (red, green, blue),
        str(document["to"]),
        tuple(document["args"]),
    )
