"""Tracks for the tests of files, and a disk that is full."""

import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from hypothesis import strategies as st

from rote.model.g1 import G1_23, G1_27, G1_29
from rote.motion.track import Mark, Track

_VARIANTS = (G1_29, G1_27, G1_23)
_TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), max_size=12)


def waving(count: int = 60, names: tuple[str, ...] = G1_29.names[15:18]) -> Track:
    """Return a motion at 100 Hz with something in every field."""
    times_s = np.arange(count) / 100.0
    swing = np.sin(2 * np.pi * times_s)
    return Track(
        times_s=times_s,
        joints_rad=np.outer(swing, np.linspace(0.3, 0.9, len(names))),
        names=names,
        source="teach wave over udp",
        marks=(Mark(0.1, "up"), Mark(0.3, "down, and \U0001f44b")),
        history=("trim 0.00 to 0.59 s", "smooth at 5 Hz"),
    )


@st.composite
def tracks(draw: st.DrawFn) -> Track:
    """Return a sound track of any times, any angles within a turn, and any words."""
    variant = draw(st.sampled_from(_VARIANTS))
    joints = draw(st.lists(st.sampled_from(variant.names), min_size=1, max_size=4, unique=True))
    times_s = draw(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=8, unique=True))
    row = st.lists(st.floats(-6.28, 6.28), min_size=len(joints), max_size=len(joints))
    rows = draw(st.lists(row, min_size=len(times_s), max_size=len(times_s)))
    marks = draw(st.lists(st.tuples(st.floats(-1e6, 1e6), _TEXT), max_size=3))
    return Track(
        times_s=np.array(sorted(times_s)),
        joints_rad=np.array(rows),
        names=tuple(joints),
        variant=variant.name,
        source=draw(_TEXT),
        marks=tuple(Mark(*mark) for mark in marks),
        history=tuple(draw(st.lists(_TEXT, max_size=3))),
    )


def assert_same_numbers(found: Track, wanted: Track) -> None:
    assert found.times_s.tolist() == wanted.times_s.tolist()
    assert found.joints_rad.tolist() == wanted.joints_rad.tolist()
    assert found.names == wanted.names
    assert found.rate_hz == wanted.rate_hz


def assert_same(found: Track, wanted: Track) -> None:
    """Check every field, to the last bit."""
    assert_same_numbers(found, wanted)
    assert (found.variant, found.source) == (wanted.variant, wanted.source)
    assert (found.marks, found.history) == (wanted.marks, wanted.history)


@contextmanager
def full_disk(most_bytes: int) -> Iterator[None]:
    """Let no file of this process grow beyond `most_bytes`, as a full disk would not."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    # Python would leave cut-off compiled modules behind, which nothing could import again.
    compiles, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        sys.dont_write_bytecode = compiles
