"""The page of the A1's protocol says what the code does: lengths, offsets and the map of names."""

import re

from documentation import ROOT
from rote.compat.legged_sdk import FIELDS
from rote.wire.a1 import formats
from rote.wire.a1.layout import Layout

PAGE = (ROOT / "docs" / "protocol" / "a1.md").read_text(encoding="utf-8")
LAYOUTS = {
    "HighCmd, dialect 3.2": formats.HIGH_CMD_3_2,
    "HighState, dialect 3.2": formats.HIGH_STATE_3_2,
    "HighCmd, dialects 3.3 and 3.3.4": formats.HIGH_CMD_3_3,
    "HighState, dialect 3.3": formats.HIGH_STATE_3_3,
    "HighState, dialect 3.3.4": formats.HIGH_STATE_3_3_4,
    "LowCmd, all dialects of an A1": formats.LOW_CMD,
    "LowState, all dialects of an A1": formats.LOW_STATE,
}


def places(layout: Layout) -> list[tuple[str, int, int]]:
    ends = [*layout.offsets.values(), layout.size - 4][1:]
    rows = zip(layout.offsets.items(), ends, strict=True)
    return [(name, start, end - start) for (name, start), end in rows]


def test_every_frame_is_listed_with_its_length_and_what_its_checksum_covers() -> None:
    rows = re.findall(r"^\| (\d+) \| (\w+) \| ([^|]+) \| (\d+) \|", PAGE, re.MULTILINE)
    told = [
        (int(size), kind, re.findall("`([^`]+)`", dialects)) for size, kind, dialects, _ in rows
    ]
    assert told == [
        (each.layout.size, each.kind.value, [dialect.value for dialect in each.dialects])
        for each in formats.FORMATS
    ]
    assert all(int(covered) == 4 * (int(size) // 4 - 1) for size, _, _, covered in rows)


def test_every_field_is_where_the_page_says() -> None:
    for title, layout in LAYOUTS.items():
        (fields,) = re.findall(rf"\n\n{re.escape(title)}: (.*?)\n\n", PAGE, re.DOTALL)
        told = [
            (name, int(start), int(size))
            for name, start, size in re.findall(r"`(\w+)`\s(\d+)\s\((\d+)\)", fields)
        ]
        assert told == places(layout), title


def test_the_map_of_names_is_that_of_the_code() -> None:
    part = PAGE.split("## The map of names")[1]
    rows = re.findall(r"^\| ([^|`]+) \| `([^`]+)` \| `([^`]+)` \|$", part, re.MULTILINE)
    told: dict[str, dict[str, str]] = {}
    for structure, theirs, ours in rows:
        told.setdefault(structure, {})[theirs] = ours
    assert told == FIELDS
