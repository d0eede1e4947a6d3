"""What cannot be known from a capture: what it does not contain, and what is encrypted in it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rote.capture.judge.conversations import Conversation
from rote.capture.model import PacketKind

if TYPE_CHECKING:
    from rote.capture.decode.decrypt import Decrypted

_MAX_SENTENCES = 64


def limits(found: list[Conversation], opened: "Decrypted | None") -> list[str]:
    """Return what cannot be known, the worst first: what was not captured, then what is encrypted.

    A key decrypts what is encrypted; nothing restores what was not captured.
    """
    encrypted = [one for one in found if PacketKind.DTLS in one.kinds]
    encrypted.sort(key=lambda one: -one.packets)
    sentences = [sentence for one in encrypted for sentence in _one_way(one)][:_MAX_SENTENCES]
    sentences += [sentence for one in encrypted for sentence in _without_handshake(one)][
        :_MAX_SENTENCES
    ]
    if encrypted and (opened is None or not any(one.opened for one in opened.sessions)):
        sentences.append(
            "What the encrypted records say: no key to them was given. Sizes and times are all "
            "that is left, so what probably happened is a proposal."
        )
    return sentences


def _one_way(one: Conversation) -> Iterator[str]:
    captured = [side for side in one.sides if side.tracks]
    if len(captured) == 1:
        side = captured[0]
        records = sum(track.records for track in side.tracks)
        yield (
            f"What {side.destination} said: all {records:,} DTLS records go {side.label}, and none "
            "comes back. One direction is missing in this capture."
        )


def _without_handshake(one: Conversation) -> Iterator[str]:
    sealed = any(track.epoch for side in one.sides for track in side.tracks)
    if sealed and one.suite() is None:
        yield (
            f"The keys of {one.sides[0].label}: its handshake is not in this capture, so no key "
            "log can open it. Capture from before the app connects."
        )
