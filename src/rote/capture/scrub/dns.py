"""Replaces names and addresses in DNS, mDNS, LLMNR and NetBIOS messages; texts become zeros."""

import re

from rote.capture.scrub.masked_copy import MaskedCopy
from rote.capture.scrub.pseudonyms import GENERIC_LABELS, Pseudonyms
from rote.errors import DecodeError

_NAMED_RECORDS = {2: 0, 5: 0, 12: 0, 39: 0, 15: 2, 33: 6}
"""Records that contain one name, and where in them it begins."""
_A, _TXT, _AAAA = 1, 16, 28
_MAX_ITEMS, _MAX_JUMPS = 256, 16
_NETBIOS_LABEL = re.compile(rb"[A-P]{32}")
_IPV6_DIGITS = re.compile(rb"(?i)[0-9a-f]{32}")
_KEPT = GENERIC_LABELS | frozenset(
    b"in-addr ip6 b lb db dr r _tcp _udp _sub _services _dns-sd _http _https _ssh _smb _ipp _ipps "
    b"_printer _pdl-datastream _scanner _googlecast _airplay _raop _companion-link _homekit _hap "
    b"_device-info _spotify-connect _workstation _matter _mqtt _ntp _webrtc _ros-master".split()
)
"""Labels that name a kind of service or a domain that many share, not one device."""


def mask_dns(copy: MaskedCopy, names: Pseudonyms, *, netbios: bool = False) -> None:
    """Keep the structure of a message, and replace its names; raises `DecodeError` if damaged."""
    questions, *others = (copy.number(at) for at in range(4, 12, 2))
    if not 0 < questions + sum(others) <= _MAX_ITEMS:
        raise DecodeError("a DNS message with an implausible number of entries")
    copy.keep(0, 12)
    at = 12
    for _ in range(questions):
        at = mask_name(copy, at, names)
        copy.keep(at, 4)
        at += 4
    for _ in range(sum(others)):
        at = mask_name(copy, at, names)
        end = at + 10 + copy.number(at + 8)
        if not netbios:
            _mask_record(copy, at, end, names)
        copy.keep(at, 10)
        at = end
    if at > len(copy.old):
        raise DecodeError("a DNS message that ends too early")


def mask_dns_stream(copy: MaskedCopy, names: Pseudonyms) -> None:
    """Mask the messages of a TCP segment, each after its length; raises `DecodeError`."""
    at = 0
    while at < len(copy.old):
        stop = at + 2 + copy.number(at)
        if stop > len(copy.old):
            raise DecodeError("a message that continues in the next segment")
        inner = MaskedCopy(copy.old[at + 2 : stop])
        mask_dns(inner, names)
        copy.keep(at, 2)
        copy.embed(at + 2, inner)
        at = stop


def _mask_record(copy: MaskedCopy, at: int, end: int, names: Pseudonyms) -> None:
    kind, start = copy.number(at), at + 10
    if kind == _A and end - start == 4:
        copy.replace(start, 4, names.ipv4)
    elif kind == _AAAA and end - start == 16:
        copy.replace(start, 16, names.ipv6)
    elif kind in _NAMED_RECORDS:
        start += _NAMED_RECORDS[kind]
        copy.keep(start - 2, 2 if _NAMED_RECORDS[kind] else 0)  # the preference, or the port
        mask_name(copy, start, names)
    while kind == _TXT and start < end:
        copy.keep(start)  # how long the next text is
        start += 1 + copy.number(start, 1)


def mask_name(copy: MaskedCopy, at: int, names: Pseudonyms) -> int:
    """Replace the labels of a name up to its end or its first pointer; return what follows it."""
    spans: list[tuple[int, int]] = []
    inline, after, jumps = 0, 0, 0
    while size := copy.number(at, 1):
        if size >= 0xC0:
            if not jumps:
                copy.keep(at, 2)
                inline, after = len(spans), at + 2
            jumps += 1
            at = copy.number(at) & 0x3FFF
        else:
            spans.append((at + 1, size))
            at += 1 + size
        if jumps > _MAX_JUMPS or 63 < size < 0xC0:
            raise DecodeError("a DNS name without an end")
    if not jumps:
        inline, after = len(spans), at + 1
        copy.keep(at)
    # The labels behind a pointer are needed to recognise an address, and belong to another name.
    new = _replace_labels([copy.old[start : start + size] for start, size in spans], names)
    for (start, _), label in zip(spans[:inline], new, strict=False):
        copy.keep(start - 1)
        copy.put(start, label)
    return after


def _replace_labels(labels: list[bytes], names: Pseudonyms) -> list[bytes]:
    suffix = [label.lower() for label in labels[-2:]]
    if suffix not in ([b"in-addr", b"arpa"], [b"ip6", b"arpa"]):
        return [_replace_label(label, names) for label in labels]
    host = labels[:-2]
    numbers = [int(label) if label.isdigit() else 256 for label in host]
    if len(host) == 4 and max(numbers) < 256:
        new = [b"%d" % number for number in names.ipv4(bytes(numbers[::-1]))[::-1]]
    elif len(host) == 32 and _IPV6_DIGITS.fullmatch(digits := b"".join(host[::-1])):
        new = [digit.encode() for digit in names.ipv6(bytes.fromhex(digits.decode())).hex()[::-1]]
    else:  # a network, or a service in one
        new = [label if label.lower() in _KEPT else b"" for label in host]
    return [label.rjust(len(old), b"0") for old, label in zip(host, new, strict=True)] + suffix


def _replace_label(label: bytes, names: Pseudonyms) -> bytes:
    if _NETBIOS_LABEL.fullmatch(label):
        return b"A" * len(label)  # the form of a NetBIOS name that is empty
    return label if label.lower() in _KEPT else names.name(label)
