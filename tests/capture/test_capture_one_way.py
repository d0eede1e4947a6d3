"""What the phone's direction alone still tells, held against both directions with keys."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from capture import capture_files as files
from capture.capture_files import PHONE, ROBOT
from rote.capture.decode.decrypt import decrypt
from rote.capture.model import TimelineEntry
from rote.capture.report.report import report_capture
from rote.capture.synthetic import build
from rote.capture.synthetic.ethernet import write
from rote.capture.synthetic.script import ScriptLine
from rote.wire.services import rpc
from rote.wire.services.rpc import ArmState, Call, RpcResponse
from rote.wire.webrtc import channel

BACKGROUND = "rt/lf/lowstate"


class Session:
    """A person at the phone: pages, lists, teaching and plays at random times, as the app does."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.lines: list[ScriptLine] = []
        self.now_s = 0.3
        self.names = [self.chance.choice(("2026-01-28_21:27:37", "wave", "big greeting two"))]
        self.asked = 0
        self.lines += [
            ScriptLine(0.01, False, channel.Validation("c0ffee" * 4)),
            ScriptLine(0.03, True, channel.Validation(channel.answer_challenge("c0ffee" * 4))),
            ScriptLine(0.05, False, channel.Validation(channel.VALIDATION_OK)),
        ]

    def wait(self, low_s: float, high_s: float) -> None:
        self.now_s += self.chance.uniform(low_s, high_s)

    def ask(self, call: Call, data: str = "") -> None:
        self.asked += 1
        self.lines.append(ScriptLine(self.now_s, True, call.request(self.asked)))
        answer = RpcResponse(
            service=call.service, api_id=call.api_id, id=self.asked, code=0, data=data
        )
        self.lines.append(ScriptLine(self.now_s + 0.02, False, answer))

    def toggle(self, *, on: bool) -> None:
        value = channel.Subscription(rpc.ARM_STATE_TOPIC, active=on)
        self.lines.append(ScriptLine(self.now_s, True, value))

    def states(self, start_s: float, end_s: float, state: ArmState) -> None:
        at = start_s
        while at < end_s:
            message = channel.ChannelMessage(rpc.ARM_STATE_TOPIC, rpc.encode_arm_state(state))
            self.lines.append(ScriptLine(at, False, message))
            at += 0.1

    def play(self) -> None:
        self.toggle(on=True)
        self.now_s += self.chance.uniform(0.002, 0.035)
        name, start = self.chance.choice(self.names), self.now_s
        self.ask(rpc.play_taught(name))
        self.wait(3, 14)
        self.states(start + 0.05, self.now_s, ArmState(id=100, name=name))
        if self.chance.random() < 0.5:
            self.ask(rpc.STOP_TAUGHT)
            self.now_s += 0.45
        self.states(self.now_s, self.now_s + 0.1, ArmState())
        self.now_s += 0.2
        self.toggle(on=False)

    def teach(self) -> None:
        name = self.chance.choice(self.names)
        self.ask(rpc.start_teaching(name))
        self.now_s += 0.35
        self.toggle(on=True)
        start = self.now_s
        for _ in range(self.chance.randrange(5, 10)):
            self.ask(rpc.KEEP_TEACHING)
            self.now_s += 1.0
        self.ask(rpc.STOP_TEACHING)
        self.states(start, self.now_s, ArmState(id=-1, name=name))
        self.wait(1.7, 3)
        self.toggle(on=False)

    def list_actions(self) -> None:
        self.ask(rpc.LIST_ACTIONS, rpc.encode_actions((), ()))

    def page(self) -> None:
        for topic in (BACKGROUND, "rt/lf/bmsstate", "rt/lf/sportmodestate"):
            self.lines.append(ScriptLine(self.now_s, True, channel.Subscription(topic)))
            self.now_s += 0.001

    def ended(self) -> list[ScriptLine]:
        background = channel.ChannelMessage(BACKGROUND, "x" * 120)
        for at in range(int(self.now_s * 20) + 40):
            self.lines.append(ScriptLine(at / 20 + 0.11, False, background))
        for at in range(1, int(self.now_s / 2)):
            beat = channel.make_heartbeat(1_769_635_657 + 2 * at)
            self.lines.append(ScriptLine(2.0 * at + 0.017, True, beat))
        return sorted(self.lines, key=lambda line: line.time_s)


def lived(seed: int) -> list[ScriptLine]:
    session = Session(seed)
    for _ in range(session.chance.randrange(4, 9)):
        session.wait(3.2, 6)
        act = session.chance.choice(("play", "play", "teach", "list_actions", "page"))
        getattr(session, act)()
    session.wait(3, 4)
    return session.ended()


def both_ways_and_one(seed: int, folder: Path) -> tuple[list[TimelineEntry], list[dict[str, Any]]]:
    """Return the plays that the keys tell, and those that one direction suggests."""
    made = build.webrtc(lived(seed), seed=seed)
    truth = decrypt(made.datagrams, made.keylog).timeline
    phone = [one for one in made.datagrams if one.source[0] == build.PHONE]
    write(folder / f"{seed}.pcap", phone)
    found = report_capture(folder / f"{seed}.pcap").document()
    assert found["flows"][0]["packets_b_to_a"] == 0
    told = [one for one in found["timeline"] if one["kind"] in ("play", "list", "teach")]
    return [entry for entry in truth if entry.kind == "play"], told


def seconds(entry: dict[str, Any], key: str = "start") -> float:
    hours, minutes, rest = entry[key][11:-1].split(":")
    return int(hours) * 3600 + int(minutes) * 60 + float(rest)


Lived = list[tuple[list[TimelineEntry], list[dict[str, Any]]]]


@pytest.fixture(
    name="sessions",
    scope="module",
    params=[range(2), pytest.param(range(2, 6), marks=pytest.mark.soak)],
    ids=["two", "four more"],
)
def _sessions(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Lived:
    folder = tmp_path_factory.mktemp("sessions")
    return [both_ways_and_one(seed, folder) for seed in request.param]


def test_plays_are_found_in_the_phones_direction_alone(sessions: Lived) -> None:
    right = missed = wrong = 0
    for truth, told in sessions:
        starts = [entry.start_ns / 1e9 % 86_400 for entry in truth]
        plays = [one for one in told if one["kind"] == "play"]
        hits = [at for at in starts if any(abs(seconds(one) - at) < 0.05 for one in plays)]
        right += len(hits)
        missed += len(starts) - len(hits)
        wrong += len(plays) - len(hits)
        assert all(0.3 <= one["confidence"] <= 0.75 for one in plays)
    assert right >= 2 * len(sessions)
    assert missed == 0
    assert wrong == 0


def test_the_request_that_stops_a_play_is_not_called_a_list(sessions: Lived) -> None:
    for truth, told in sessions:
        for play in truth:
            assert play.end_ns is not None
            low, high = play.start_ns / 1e9 % 86_400, play.end_ns / 1e9 % 86_400
            assert not [
                one for one in told if one["kind"] == "list" and low <= seconds(one) <= high
            ]


def test_a_play_without_more_acknowledgements_is_less_sure(tmp_path: Path) -> None:
    made = build.webrtc(lived(1), seed=1)
    phone = [one for one in made.datagrams if one.source[0] == build.PHONE]
    lean = [one for n, one in enumerate(phone) if len(one.payload) != 57 or n % 9 == 0]
    write(tmp_path / "a.pcap", phone)
    write(tmp_path / "b.pcap", lean)
    sure, unsure = (
        [
            one["confidence"]
            for one in report_capture(tmp_path / name).document()["timeline"]
            if one["kind"] == "play"
        ]
        for name in ("a.pcap", "b.pcap")
    )
    assert sure
    assert max(unsure, default=0.0) < min(sure)


# ---- signalling and STUN ------------------------------------------------------------------------


def http(
    source: tuple[str, int], target: tuple[str, int], text: bytes, at: int
) -> tuple[int, bytes]:
    return files.START_NS + at * 10**6, files.tcp(source, target, text, at)


def response(body: bytes, status: bytes = b"200 OK") -> bytes:
    return b"HTTP/1.1 " + status + b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body


@pytest.mark.parametrize(
    ("path", "answer", "words", "sure"),
    [
        (
            "/offer",
            response(b'{"sdp": "v=0\\r\\n", "type": "answer"}'),
            "accepted after 40 ms",
            0.99,
        ),
        ("/offer", response(b'{"sdp": "reject", "type": "answer"}'), "rejected after 40 ms", 0.99),
        ("/con_ing_70753", response(b"A" * 1200), "accepted after 40 ms: 1,200 bytes", 0.8),
        ("/con_ing_70753", response(b"A" * 88), "rejected after 40 ms: 88 bytes", 0.8),
        ("/con_notify", response(b"A" * 500), "the robot sent its key", 0.99),
        ("/con_ing_70753", response(b"", b"404 Not Found"), "refused after 40 ms with HTTP", 0.99),
        ("/con_ing_70753", None, "no answer in this capture", 0.99),
    ],
)
def test_an_offer_is_told_with_its_answer(
    path: str, answer: bytes | None, words: str, sure: float, tmp_path: Path
) -> None:
    phone, robot = (PHONE[0], 50_000), (ROBOT[0], 9991)
    packets = [http(phone, robot, f"POST {path} HTTP/1.1\r\n\r\n".encode(), 10)]
    if answer is not None:
        packets.append(http(robot, phone, answer, 50))
    (tmp_path / "a.pcap").write_bytes(files.pcap(packets))
    (entry,) = report_capture(tmp_path / "a.pcap").document()["timeline"]
    assert entry["kind"] == "signal"
    assert words in entry["evidence"]
    assert entry["confidence"] == sure
    assert (entry["end"] is None) == (answer is None)


def test_each_of_several_offers_has_its_own_answer(tmp_path: Path) -> None:
    phone, robot = (PHONE[0], 50_000), (ROBOT[0], 9991)
    offer = b"POST /offer HTTP/1.1\r\n\r\n"
    packets = [
        http(phone, robot, offer, 10),
        http(robot, phone, response(b'{"sdp": "reject"}'), 20),
        http(phone, robot, offer, 30),
        http(phone, robot, offer, 5000),
        http(robot, phone, response(b'{"sdp": "v=0"}'), 5100),
    ]
    (tmp_path / "a.pcap").write_bytes(files.pcap(packets))
    told = [one["evidence"] for one in report_capture(tmp_path / "a.pcap").document()["timeline"]]
    assert ["rejected" in told[0], "no answer" in told[1], "accepted" in told[2]] == [True] * 3


def _checks(count: int, answered: int) -> Iterator[tuple[int, bytes]]:
    for number in range(count):
        yield files.START_NS + number, files.udp(PHONE, ROBOT, files.check(number))
    for number in range(answered):
        reply = files.check(number, answer=True)
        yield files.START_NS + 10**6 + number, files.udp(ROBOT, PHONE, reply)


@pytest.mark.parametrize(("answered", "unanswered"), [(0, 6), (4, 2), (6, 0)])
def test_stun_requests_without_an_answer_are_told(
    answered: int, unanswered: int, tmp_path: Path
) -> None:
    (tmp_path / "a.pcap").write_bytes(files.pcap(_checks(6, answered)))
    found = report_capture(tmp_path / "a.pcap").document()
    assert found["flows"][0]["stun"]["unanswered"] == unanswered
    told = [words for words in found["warnings"] if "STUN requests" in words]
    assert bool(told) == (answered == 0)
    assert all(words.startswith("6 STUN requests 10.215.173.1:55371 ->") for words in told)
