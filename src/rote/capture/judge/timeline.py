"""A time line from sizes and times: proposals, each with a confidence and its evidence.

Inside the encryption only sizes and times can be seen. A teaching session shows as one request per
second, the app's keep-alive. The robot's action state shows as ten messages per second whose size
changes with the name of the action. The data channel's heartbeat shows as one message every two
seconds.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rote.capture.judge.sizes import DATA, HEADER, InferredCipher, is_acknowledgement
from rote.capture.model import TimelineEntry
from rote.capture.read.flow_ids import among
from rote.capture.read.record_scan import Ints

MAX_CONFIDENCE = 0.95
"""No proposal from sizes and times has a higher confidence."""
_SECOND = 1_000_000_000
_SACK = 16
_MIN_KEEP_ALIVES = 4
_SUBSCRIBE = {
    len(f'{{"type":"{verb}","topic":"{topic}"}}')
    for verb in ("subscribe", "unsubscribe")
    for topic in ("rt/arm/action/state", "rt/lf/lowstate", "rt/lf/bmsstate", "rt/lf/sportmodestate")
}
_TOGGLE_BYTES = 52
"""Subscribing to `rt/arm/action/state`, or unsubscribing: 50 and 52 bytes, padded to four."""
_MIN_NAMED_BYTES = 140
"""A request to the arms without a parameter has about 115 bytes, `{"action_name":""}` 20 more."""
_ASKED_WITHIN_NS = 60_000_000
_RATE_NS = 3 * _SECOND
_MIN_RATE_S = 0.8
_RISE = 2.5
"""In acknowledgements per second; ten messages per second cause five or ten more."""


class SentRecords(NamedTuple):
    """The encrypted records of one direction: times, and lengths without the header."""

    time_ns: Ints
    length: NDArray[np.integer]


def propose(
    sides: tuple[SentRecords, SentRecords | None],
    cipher: InferredCipher | None,
    connected: TimelineEntry,
) -> list[TimelineEntry]:
    """Return what the records of one connection suggest; `sides` begins with the client."""
    if cipher is None:
        return [connected]
    client, robot = sides
    if robot is not None and not robot.length.size:
        robot = None  # it may have answered STUN, and nothing else was captured
    sent = _data_messages(client, cipher.overhead)
    heartbeat, rest = _find_heartbeat(sent)
    taught, empty_request_length = _find_teaching(rest)
    found = [connected, *heartbeat, *taught, *_find_subscriptions(rest, cipher.overhead)]
    acknowledged = _acknowledgement_times(client, cipher.overhead)
    played = [] if robot is not None else _find_plays(rest, acknowledged, taught, cipher.overhead)
    stops = [(play.end_ns or 0) for play in played]
    found += played
    found += [
        entry
        for entry in _find_listings(rest, empty_request_length, taught)
        if not any(abs(entry.start_ns - stop) < _SECOND for stop in stops)
    ]
    if robot is not None:
        states = _state_changes(_data_messages(robot, cipher.overhead))
        found = _confirm_by_states(found, states, rest)
    return sorted(found, key=lambda entry: (entry.start_ns, entry.kind))


def _data_messages(sent: SentRecords, overhead: int) -> SentRecords:
    """Remove plain acknowledgements and records too short for a message."""
    data = sent.length > overhead + HEADER + DATA
    data &= ~is_acknowledgement(sent.length, overhead)
    which = np.flatnonzero(data)
    time_ns, length = sent.time_ns[which], sent.length[which]
    if (time_ns[1:] < time_ns[:-1]).any():
        order = np.argsort(time_ns, kind="stable")
        time_ns, length = time_ns[order], length[order]
    return SentRecords(time_ns, length)


def _acknowledgement_times(sent: SentRecords, overhead: int) -> Ints:
    """Return the times of plain acknowledgements, in order."""
    return np.sort(sent.time_ns[is_acknowledgement(sent.length, overhead)])


def _has_length(sent: SentRecords, length: int) -> np.ndarray:
    """Return which messages have one length; an included acknowledgement adds 16."""
    found: np.ndarray = (sent.length == length) | (sent.length == length + _SACK)
    return found


def _times_of(sent: SentRecords, length: int) -> Ints:
    return sent.time_ns[np.flatnonzero(_has_length(sent, length))]


def _common_lengths(sent: SentRecords) -> list[int]:
    """Return the lengths that occur, most frequent first."""
    counts = np.bincount(sent.length)
    lengths = np.flatnonzero(counts)
    number = dict(zip(lengths.tolist(), counts[lengths].tolist(), strict=True))
    alike = {length: count + number.get(length + _SACK, 0) for length, count in number.items()}
    return sorted(alike, key=lambda length: (-alike[length], length))[:64]


def _find_heartbeat(sent: SentRecords) -> tuple[list[TimelineEntry], SentRecords]:
    """Find the message sent every two seconds; return it and the other messages."""
    for length in _common_lengths(sent):
        times = _times_of(sent, length)
        if times.size < 4 or times[-1] - times[0] < times.size * _SECOND:
            continue  # too close together for most of them to be 2 s apart
        steps = np.diff(times) / _SECOND
        if float((np.abs(steps - 2.0) < 0.15).mean()) >= 0.7:
            evidence = (
                f"{times.size} records of {length + 13} or {length + 13 + _SACK} bytes, "
                f"{float(np.median(steps)):.2f} s apart: the data channel's heartbeat is sent "
                "every 2 s"
            )
            entry = TimelineEntry("heartbeat", int(times[0]), int(times[-1]), 0.7, evidence)
            others = ~_has_length(sent, length)
            return [entry], SentRecords(sent.time_ns[others], sent.length[others])
    return [], sent


def _regular_runs(times: Ints, low_s: float, high_s: float, least: int) -> list[tuple[int, int]]:
    """Return (first, last) of runs whose steps are all within bounds."""
    steps = np.diff(times)
    good = (steps >= round(low_s * _SECOND)) & (steps <= round(high_s * _SECOND))
    if np.count_nonzero(good) + 1 < least:
        return []
    edges = np.flatnonzero(np.diff(good, prepend=False, append=False))
    return [
        (int(first), int(last))
        for first, last in edges.reshape(-1, 2).tolist()
        if last - first + 1 >= least
    ]


def _find_teaching(sent: SentRecords) -> tuple[list[TimelineEntry], int | None]:
    """Find keep-alives once per second, with the requests that began and ended teaching.

    Also returns the length of a request without a parameter, taken from the end of teaching.
    """
    found: list[TimelineEntry] = []
    empty_request_length = None
    for length in _common_lengths(sent):
        times = _times_of(sent, length)
        for first, last in _regular_runs(times, 0.8, 1.25, _MIN_KEEP_ALIVES):
            begin, end = int(times[first]), int(times[last])
            if any(entry.start_ns <= end and begin <= (entry.end_ns or begin) for entry in found):
                continue
            confidence = 0.55
            evidence = (
                f"{last - first + 1} records of {length + 13} or {length + 13 + _SACK} bytes, one "
                "a second, as the app keeps teaching alive"
            )
            before = _messages_between(
                sent, begin - int(1.3 * _SECOND), begin, (length + 4, length + 72)
            )
            if before:
                begin, confidence = before[-1][0], confidence + 0.15
                evidence += f"; a longer one ({before[-1][1] + 13} bytes) before them, with a name"
            after = _messages_between(
                sent, end, end + int(1.6 * _SECOND), (length - 28, length - 1)
            )
            if after:
                end, confidence = after[0][0], confidence + 0.15
                empty_request_length = after[0][1]
                evidence += (
                    f"; a shorter one ({empty_request_length + 13} bytes) after them, to end it"
                )
            found.append(
                TimelineEntry("teach", begin, end, min(confidence, MAX_CONFIDENCE), evidence)
            )
    return found, empty_request_length


def _messages_between(
    sent: SentRecords, since: int, until: int, lengths: tuple[int, int]
) -> list[tuple[int, int]]:
    """Return times and lengths of the messages in a period whose length is within bounds."""
    inside = (sent.time_ns > since) & (sent.time_ns < until)
    inside &= (sent.length >= lengths[0]) & (sent.length <= lengths[1])
    return list(zip(sent.time_ns[inside].tolist(), sent.length[inside].tolist(), strict=True))


def _find_listings(
    sent: SentRecords, empty_request_length: int | None, taught: list[TimelineEntry]
) -> list[TimelineEntry]:
    """Propose an entry for each request that may list the actions.

    Such a request has no parameter, so it is as long as the one that ended teaching. That length is
    `empty_request_length`; None if no end of teaching was found.
    """
    if empty_request_length is None:
        return []
    ends = {entry.end_ns for entry in taught}
    which = np.flatnonzero(_has_length(sent, empty_request_length))
    evidence = (
        "a request as long as the one that ended teaching, so one without a parameter: listing "
        "the actions has none, and stopping one has none either"
    )
    return [
        TimelineEntry("list", time, None, 0.3, evidence)
        for time in sent.time_ns[which].tolist()[:256]
        if time not in ends
    ]


def _find_subscriptions(sent: SentRecords, overhead: int) -> list[TimelineEntry]:
    """Propose subscriptions: bursts of messages with the length of a subscription."""
    lengths = {overhead + HEADER + DATA + size + -size % 4 for size in _SUBSCRIBE}
    times = sent.time_ns[among(sent.length, (*lengths, *(n + _SACK for n in lengths)))]
    if not times.size:
        return []
    starts = np.flatnonzero(np.diff(times, prepend=times[0] - 10 * _SECOND) > _SECOND // 4)
    counts = np.diff(np.append(starts, times.size))
    return [
        TimelineEntry(
            "subscribe",
            int(times[start]),
            None,
            0.3,
            f"{count} records at once, as long as subscribing to the robot's topics needs: the "
            "app changes its page",
        )
        for start, count in zip(starts.tolist(), counts.tolist(), strict=True)
        if count >= 2
    ][:256]


def _toggle_times(sent: SentRecords, overhead: int) -> Ints:
    """Return when the action state alone was subscribed to or unsubscribed from.

    Both messages have the same length after padding. Several at once are a change of page.
    """
    lengths = {overhead + HEADER + DATA + size + -size % 4 for size in _SUBSCRIBE}
    alike = among(sent.length, (*lengths, *(n + _SACK for n in lengths)))
    times = sent.time_ns[alike]
    is_toggle = _has_length(sent, overhead + HEADER + DATA + _TOGGLE_BYTES)[alike]
    gap = np.diff(times) > _SECOND // 4
    alone = np.append(True, gap) & np.append(gap, True)
    return times[is_toggle & alone] if times.size else times


def _rate_per_s(times: Ints, start_ns: int, end_ns: int) -> float | None:
    """Return the number per second between two times; None if they are too close."""
    span_s = (end_ns - start_ns) / _SECOND
    if span_s < _MIN_RATE_S:
        return None
    low, high = np.searchsorted(times, (start_ns, end_ns)).tolist()
    return float(high - low) / span_s


def _find_plays(
    sent: SentRecords, acknowledged: Ints, taught: list[TimelineEntry], overhead: int
) -> list[TimelineEntry]:
    """Find plays if the robot's direction is missing.

    The app subscribes to the action state and at once asks for an action by its name. While it
    plays, ten more messages per second come from the robot and are acknowledged.
    """
    toggles = _toggle_times(sent, overhead)
    least = overhead + HEADER + DATA + _MIN_NAMED_BYTES
    found: list[TimelineEntry] = []
    for at, begun in enumerate(toggles.tolist()):
        if found and begun < (found[-1].end_ns or found[-1].start_ns):
            continue
        within = (entry.start_ns - _SECOND <= begun <= (entry.end_ns or 0) for entry in taught)
        request = _messages_between(sent, begun - 1, begun + _ASKED_WITHIN_NS, (least, 1 << 16))
        if not request or any(within):
            continue
        end_ns = int(toggles[at + 1]) if at + 1 < toggles.size else None
        earlier = int(toggles[at - 1]) if at else begun - _RATE_NS
        found.append(_judge_play(sent, acknowledged, (earlier, begun, end_ns), request[0]))
    return found


def _judge_play(
    sent: SentRecords,
    acknowledged: Ints,
    moments: tuple[int, int, int | None],
    request: tuple[int, int],
) -> TimelineEntry:
    """Judge one play by how often the phone acknowledges before, during and after it."""
    earlier, begun, end_ns = moments
    last = sent.time_ns[-1] if end_ns is None else end_ns
    before = _rate_per_s(acknowledged, max(earlier, begun - _RATE_NS), begun)
    during = _rate_per_s(
        acknowledged, request[0] + _SECOND // 2, min(int(last), request[0] + 4 * _RATE_NS)
    )
    after = None if end_ns is None else _rate_per_s(acknowledged, end_ns, end_ns + _RATE_NS)
    sure = 0.45
    evidence = (
        f"a subscription as long as that to the action state, and "
        f"{(request[0] - begun) / 1e6:.0f} ms later a request ({request[1] + 13} bytes) long "
        "enough for a name; the robot's direction is missing"
    )
    if before is not None and during is not None:
        rises = during - before >= _RISE
        sure += 0.2 if rises else -0.15
        evidence += f"; {before:.0f} acknowledgements a second before, {during:.0f} from then on"
    if during is not None and after is not None and during - after >= _RISE:
        sure += 0.1
        evidence += f", {after:.0f} after the next such message"
    return TimelineEntry("play", request[0], end_ns, round(sure, 2), evidence)


class _Stretch(NamedTuple):
    """A period in which the action state has one length, ten times per second."""

    start_ns: int
    end_ns: int
    length: int


def _state_changes(sent: SentRecords) -> tuple[list[_Stretch], int | None]:
    """Return the periods in which the robot's 10 Hz state is longer or shorter than usual."""
    stretches: list[_Stretch] = []
    taken: set[int] = set()
    for length in _common_lengths(sent):
        if length in taken:
            continue
        times = _times_of(sent, length)
        runs = _regular_runs(times, 0.07, 0.14, 6)
        if runs:
            taken |= {length, length + _SACK, length - _SACK}
        found = [_Stretch(int(times[a]), int(times[b]), length) for a, b in runs]
        stretches += _merge_stretches(
            found, gap_s=0.5
        )  # another message of that size may come between
    if not stretches:
        return [], None
    weight: dict[int, tuple[int, int]] = {}
    for one in stretches:
        count, total = weight.get(one.length, (0, 0))
        weight[one.length] = count + 1, total + one.end_ns - one.start_ns
    # The idle state is the one that the robot returns to.
    usual = max(weight, key=lambda length: weight[length])
    # An action that is renamed while it plays goes on playing.
    return _merge_stretches(
        [one for one in sorted(stretches) if one.length != usual], gap_s=0.3
    ), usual


def _merge_stretches(stretches: list[_Stretch], gap_s: float) -> list[_Stretch]:
    """Join periods that follow each other directly."""
    merged: list[_Stretch] = []
    for one in stretches:
        if merged and one.start_ns - merged[-1].end_ns < gap_s * _SECOND:
            last = merged[-1]
            merged[-1] = _Stretch(last.start_ns, max(last.end_ns, one.end_ns), last.length)
        else:
            merged.append(one)
    return merged


def _confirm_by_states(
    found: list[TimelineEntry], states: tuple[list[_Stretch], int | None], sent: SentRecords
) -> list[TimelineEntry]:
    """Confirm teaching by the robot's state, or propose plays from it."""
    stretches, usual = states
    result = list(found)
    for stretch in stretches[:256]:
        change = (
            f"the robot's 10 Hz state has {stretch.length + 13} bytes instead of "
            f"{(usual or 0) + 13}: another action's name"
        )
        for index, entry in enumerate(result):
            end = entry.end_ns or entry.start_ns
            if (
                entry.kind == "teach"
                and entry.start_ns <= stretch.end_ns
                and stretch.start_ns <= end
            ):
                sure = min(MAX_CONFIDENCE, entry.confidence + 0.1)
                evidence = f"{entry.evidence}; {change}"
                result[index] = TimelineEntry("teach", entry.start_ns, entry.end_ns, sure, evidence)
                break
        else:
            since = stretch.start_ns - int(1.5 * _SECOND)
            request = ((sent.time_ns >= since) & (sent.time_ns <= stretch.start_ns)).any()
            evidence = change + ("; a request came just before" if request else "")
            sure = 0.6 if request else 0.4
            result.append(TimelineEntry("play", stretch.start_ns, stretch.end_ns, sure, evidence))
    return result
