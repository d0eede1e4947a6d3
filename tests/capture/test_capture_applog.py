"""The phone app's log, in whatever form it comes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rote.capture.decode.applog import MAX_LINE, AppLog, find_messages, find_timestamp_ns, read
from rote.capture.synthetic import script as story
from rote.wire.webrtc import channel

START = 1_769_635_650


def clock(time_s: float) -> str:
    whole = int(time_s)
    return f"21:{27 + (30 + whole) // 60:02}:{(30 + whole) % 60:02}.{int(time_s % 1 * 1000):03}"


def text(line: story.ScriptLine) -> str:
    said = channel.encode(line.value)
    assert isinstance(said, str)
    return said


FORMS = {
    "plain": lambda line: f"2026-01-28 {clock(line.time_s)} [DataChannel] {text(line)}",
    "logcat": lambda line: f"01-28 {clock(line.time_s)}  1234  5678 D Rtc: {text(line)} ok",
    "iso": lambda line: f"2026-01-28T{clock(line.time_s)}Z INFO {text(line)}",
    "zone": lambda line: f"2026-01-28T{clock(line.time_s)}+00:00 {text(line)}",
    "json": lambda line: json.dumps(
        {
            "time": f"2026-01-28 {clock(line.time_s)}",
            "level": "info",
            "type": "log",
            "msg": text(line),
        }
    ),
    "nested": lambda line: json.dumps(
        {"ts": START + round(line.time_s, 3), "data": {"message": json.loads(text(line))}}
    ),
    "escaped": lambda line: f"2026-01-28 {clock(line.time_s)} recv=" + json.dumps(text(line)),
    "unix": lambda line: f"{START * 1000 + int(line.time_s * 1000)} << {text(line)}",
}


def log_of(form: str) -> AppLog:
    lines = [FORMS[form](line) for line in story.webrtc()]
    return read(lines, year=2026)


@pytest.mark.parametrize("form", FORMS)
def test_the_same_session_is_told_from_every_form_of_log(form: str) -> None:
    log = log_of(form)
    assert log.messages == log.lines == len(story.webrtc())
    assert log.unknown == 0
    kinds = [entry.kind for entry in log.timeline]
    assert kinds == ["connect", "list", "teach", "list", "play", "rename", "refused"]
    teach = log.timeline[2]
    assert teach.start_ns // 10**6 == (START + 3) * 1000
    assert (teach.end_ns or 0) // 10**6 == (START + 11) * 1000
    assert [change.state.activity.value for change in log.states] == [
        "idle",
        "recording",
        "idle",
        "playing",
        "releasing",
        "idle",
    ]
    (first,) = [pair for pair in log.pairs if pair.asked_ns // 10**6 == (START + 1) * 1000]
    assert first.latency_s == pytest.approx(0.021, abs=0.0015)


def test_lines_without_a_message_are_counted() -> None:
    lines = [
        "2026-01-28 21:27:30.000 the app has started",
        "",
        '{"type":"cat"}',
        "x" * (MAX_LINE + 1),
        '01:02:03.5 {"type":"vid","topic":"","data":"on"}',
        '{"type":"req" broken {"type":"aud","topic":"","data":"off"}',
    ]
    log = read(lines)
    assert (log.lines, log.messages, log.unknown) == (6, 2, 4)


def test_a_message_that_is_logged_twice_is_one_message() -> None:
    line = next(line for line in map(FORMS["plain"], story.webrtc()) if '"req"' in line)
    assert read([line, line]).messages == 1
    assert read([line, line.replace("21:27", "21:28")]).messages == 2


@pytest.mark.parametrize(
    ("stamp", "seconds"),
    [
        ("1970-01-01 00:00:01", 1.0),
        ("[1970/01/02 00:00:00,5]", 86_400.5),
        ("1970-01-01T01:00:00.25+01:00", 0.25),
        ("1970-01-01T00:00:00-0130", 5400.0),
        ("01-02 00:00:00.000001", 86_400.000001),
        ("00:01:00.125", 60.125),
        ("1769635650.5 x", 1_769_635_650.5),
        ("at 1769635650", 1_769_635_650.0),
        ("1970-13-01 00:00:00", None),
        ("no time at all, 12:30", None),
    ],
)
def test_time_stamps_of_every_usual_kind_are_read(stamp: str, seconds: float | None) -> None:
    found = find_timestamp_ns(stamp)
    assert found == (None if seconds is None else round(seconds * 1e9))


def test_local_time_is_brought_to_utc() -> None:
    assert find_timestamp_ns("1970-01-01 08:00:00", utc_offset_s=8 * 3600) == 0
    assert find_timestamp_ns("1970-01-01 08:00:00Z", utc_offset_s=8 * 3600) == 8 * 3600 * 10**9


@given(st.lists(st.text(max_size=60), max_size=8))
def test_arbitrary_text_raises_nothing(lines: list[str]) -> None:
    log = read(lines)
    assert log.lines == len(lines)


@given(st.text(max_size=20), st.text(max_size=20), st.integers(0, 2))
def test_a_message_is_found_whatever_stands_around_it(before: str, after: str, deep: int) -> None:
    said = '{"type":"vid","topic":"","data":"on"}'
    for _ in range(deep):
        said = json.dumps({"inner": said})
    clean = before.replace("{", "").replace('"', "").replace("\\", "")
    found = [value for _, value in find_messages(clean + said + after.replace("{", ""))]
    assert found == [channel.MediaRequest(channel.MediaTrack.VIDEO, True)]


def test_braces_without_end_take_no_time() -> None:
    assert list(find_messages('{"type":' * 50_000)) == []
    assert list(find_messages("type" + "{" * 100_000)) == []
