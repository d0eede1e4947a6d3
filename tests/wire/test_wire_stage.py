"""The messages of a stage: what is read is what was said, and anything else is refused."""

import contextlib
import json
import math
import random

import pytest

from rote.errors import DecodeError
from rote.wire.stage import (
    MAX_BYTES,
    AgentReader,
    AgentState,
    StartReport,
    decode_agent,
    decode_conductor,
    decode_stop,
)

CUES = (("light at 1 s", 0.002), ("say", None))
REPORT = StartReport("run", 0.001, 0.004, 0.5, CUES, completed=False, reason="it was stopped")
STATE = AgentState("ann", "epoch", 7, phase="ready", holds=("wave", "bow"), report=REPORT)


def test_what_an_agent_says_is_read_as_it_was_said() -> None:
    known = AgentState("ann", "epoch", 8, clock_bound_s=0.002, round_trip_s=0.001, moving=True)
    for state in (STATE, known):
        assert decode_agent(state.encode()) == state
    assert decode_agent(STATE.encode()).clock_bound_s == math.inf


def test_one_agents_messages_are_each_read_as_if_they_came_alone() -> None:
    chance, reader = random.Random(1), AgentReader()
    for beat in range(300):
        state = AgentState(
            "ann",
            chance.choice(("one life", "another life")),
            beat,
            phase=chance.choice(("idle", "ready")),
            clock_bound_s=chance.choice((0.001, math.inf)),
            report=chance.choice((None, REPORT)),
        )
        if chance.random() < 0.2:
            with pytest.raises(DecodeError):
                reader.read(state.encode()[: chance.randrange(20, 60)])
        assert reader.read(state.encode()) == state


def test_a_message_that_is_none_is_refused() -> None:
    head, body = STATE.encode().split(b"\n")
    wrong_head = json.dumps({**json.loads(head), "beat": -1}).encode()
    wrong_body = json.dumps({**json.loads(body), "name": 5}).encode()
    cases = (
        b"",
        b"\n",
        head,
        body,
        b"[]\n" + body,
        head + b"\n[]",
        wrong_head + b"\n" + body,
        head + b"\n" + wrong_body,
        STATE.encode() + b" " * MAX_BYTES,
    )
    for data in cases:
        with pytest.raises(DecodeError):
            decode_agent(data)


def test_damaged_messages_are_read_or_refused() -> None:
    chance = random.Random(2)
    for _ in range(3000):
        data = bytearray(STATE.encode())
        for _ in range(chance.randrange(1, 4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        for decode in (decode_agent, decode_conductor, decode_stop):
            with contextlib.suppress(DecodeError):
                decode(bytes(data))
