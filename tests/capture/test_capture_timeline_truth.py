"""The time line of an encrypted session, held against what the session's script did."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from capture.test_capture_one_way import Session, seconds
from rote.capture.decode.decrypt import decrypt
from rote.capture.report.report import report_capture
from rote.capture.synthetic import build
from rote.capture.synthetic.ethernet import write
from rote.wire.services import rpc
from rote.wire.services.rpc import ArmState

ACTIONS = rpc.encode_actions(
    (rpc.RpcPreset(99, "release_arm"), rpc.RpcPreset(1, "turn_back_wave", (500, 501))),
    (rpc.RpcTaughtAction("Waist_Drum_Dance", 9.5), rpc.RpcTaughtAction("Scratch_head", 6.1)),
)
NAMES = ("2026-01-28_21:27:37", "wave", "big greeting two")
START_S = (build.START_NS / 1e9 + 0.1) % 86_400
"""When the channel opens, as a time of the day."""


class Deed(NamedTuple):
    """What the session did, in seconds since the channel opened."""

    kind: str
    start_s: float
    end_s: float | None = None


class AppSession(Session):
    """A session as the app and a G1 have it: after a play the arms are released for 4 to 6 s."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.deeds: list[Deed] = []
        self.toggle(on=True)
        self._idle_since_s = self.now_s

    def show(self, until_s: float, state: ArmState) -> None:
        """Let the state go on at 10 Hz: idle up to now, then as given."""
        self.states(self._idle_since_s, self.now_s, ArmState())
        self.states(self.now_s, until_s, state)
        self.now_s = self._idle_since_s = until_s

    def play_and_release(self, name: str, *, stopped: bool) -> None:
        self.toggle(on=False)
        self.wait(0.3, 0.5)
        self.toggle(on=True)
        self.now_s += 0.01
        start_s = self.now_s
        self.ask(rpc.play_taught(name))
        self.now_s += 0.3
        self.show(self.now_s + self.chance.uniform(3, 8), ArmState(id=100, name=name))
        self.deeds.append(Deed("play", start_s, self.now_s))
        if stopped:
            self.ask(rpc.STOP_TAUGHT)
        self.show(self.now_s + self.chance.uniform(4, 6), ArmState(id=99, name="release_arm"))
        self.wait(0.1, 0.2)
        self.toggle(on=False)
        self.wait(1, 2)
        self.toggle(on=True)

    def list_all(self) -> None:
        self.deeds.append(Deed("list", self.now_s))
        self.ask(rpc.LIST_ACTIONS, ACTIONS)

    def rename(self) -> None:
        self.deeds.append(Deed("rename", self.now_s))
        self.ask(rpc.rename_taught(NAMES[0], "greeting"))

    def run(self, *, taught: bool) -> None:
        steps: list[Callable[[], object]] = [
            self.list_all,
            lambda: self.play_and_release(NAMES[0], stopped=False),
            self.list_all,
            lambda: self.play_and_release(NAMES[1], stopped=True),
            self.rename,
            self.list_all,
            lambda: self.play_and_release(NAMES[2], stopped=True),
            self.list_all,
        ]
        if taught:
            steps.insert(1, self.teach)
        for step in steps:
            self.wait(3.2, 6)
            step()
        self.wait(3, 4)
        self.states(self._idle_since_s, self.now_s, ArmState())


@cache
def record_session(seed: int, *, taught: bool) -> tuple[AppSession, build.Made]:
    session = AppSession(seed)
    session.run(taught=taught)
    return session, build.webrtc(session.ended(), seed=seed)


def compare(tmp_path: Path, *, taught: bool, robot: bool) -> dict[str, list[Any]]:
    """Return figures over three sessions: late starts and ends of plays in seconds, and others."""
    figures: dict[str, list[Any]] = {"start": [], "end": [], "missed": [], "false": [], "sure": []}
    for seed in range(3):
        session, made = record_session(seed, taught=taught)
        kept = [one for one in made.datagrams if robot or one.source[0] == build.PHONE]
        write(tmp_path / "made.pcap", kept)
        lines = report_capture(tmp_path / "made.pcap").document()["timeline"]
        lines = [one for one in lines if one["kind"] in ("play", "list", "rename")]
        for deed in session.deeds:
            at = START_S + deed.start_s
            near = [
                one for one in lines if one["kind"] == deed.kind and abs(seconds(one) - at) < 0.5
            ]
            if not near:
                figures["missed"].append(deed.kind)
                continue
            (one,) = near
            lines.remove(one)
            figures["sure"].append((deed.kind, one["confidence"]))
            if deed.end_s is not None:
                figures["start"].append(seconds(one) - at)
                figures["end"].append(seconds(one, "end") - START_S - deed.end_s)
        figures["false"] += [one["kind"] for one in lines]
    return figures


@pytest.mark.parametrize("taught", [True, False])
def test_with_both_directions_every_play_list_and_rename_is_found(
    taught: bool, tmp_path: Path
) -> None:
    found = compare(tmp_path, taught=taught, robot=True)
    assert (found["missed"], found["false"]) == ([], [])
    assert max(map(abs, found["start"])) < 0.003
    assert max(map(abs, found["end"])) < 0.2
    assert dict(found["sure"]) == {"play": 0.6, "list": 0.6, "rename": 0.3}


@pytest.mark.parametrize("taught", [True, False])
def test_without_the_robots_direction_ends_are_late_unless_a_stop_was_sent(
    taught: bool, tmp_path: Path
) -> None:
    found = compare(tmp_path, taught=taught, robot=False)
    assert found["missed"] == ["rename"] * 3
    assert found["false"] == []
    assert max(map(abs, found["start"])) < 0.003
    late = sorted(found["end"])
    assert max(map(abs, late[:6])) < 0.01  # stopped
    assert 4 < late[6] <= late[8] < 6.3  # ended by themselves, then released
    assert max(sure for kind, sure in found["sure"] if kind == "list") <= 0.3


def test_with_keys_a_play_ends_where_the_release_of_the_arms_begins() -> None:
    session = AppSession(1)
    session.run(taught=False)
    made = build.webrtc(session.ended(), seed=1)
    plays = [one for one in decrypt(made.datagrams, made.keylog).timeline if one.kind == "play"]
    deeds = [one for one in session.deeds if one.kind == "play"]
    for play, deed in zip(plays, deeds, strict=True):
        assert play.end_ns is not None
        assert deed.end_s is not None
        assert play.end_ns / 1e9 % 86_400 == pytest.approx(START_S + deed.end_s, abs=0.15)
