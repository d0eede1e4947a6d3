"""A time line from sizes and times: proposals, each with a confidence and its evidence.

Inside the encryption only sizes and times can be seen. A teaching session shows as one request per
second, the app's keep-alive. The robot's action state shows as ten messages per second whose size
changes with the name of the action. The data channel's heartbeat shows as one message every two
seconds.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rote.capture.decode.dtls_numbering import HEADER as RECORD_HEADER
from rote.capture.judge.sizes import DATA, HEADER, SACK, InferredCipher, is_acknowledgement
from rote.capture.model import TimelineEntry
from rote.capture.read.flow_ids import is_one_of
from rote.capture.read.record_scan import Ints

MAX_CONFIDENCE = 0.95
"""No proposal from sizes and times has a higher confidence."""
_SECOND_NS = 1_000_000_000
_MIN_KEEP_ALIVES = 4
_SUBSCRIBE_BYTES = {
    len(f'{{"type":"{verb}","topic":"{topic}"}}')
    for verb in ("subscribe", "unsubscribe")
    for topic in ("rt/arm/action/state", "rt/lf/lowstate", "rt/lf/bmsstate", "rt/lf/sportmodestate")
}
_TOGGLE_BYTES = 52
"""Size of a message that subscribes to `rt/arm/action/state` or unsubscribes, padded to four."""
_MIN_NAMED_BYTES = 140
"""A request to the arms without a parameter has about 115 bytes, `{"action_name":""}` 20 more."""
_EMPTY_REQUEST_BYTES = (116, 120, 164, 168)
"""Requests without a parameter, padded to four: the app's, and rote's own."""
_ID_PADDING = 4
"""A longer request id may make a message longer by one step of the padding."""
_MIN_REQUEST_BYTES = 100
"""Every request is longer than this, every subscription shorter."""
_MIN_RENAME_BYTES = 36
"""Bytes that two empty names add to a request without a parameter."""
_MIN_LIST_BYTES = 100
"""A list of actions is an answer that is longer than others by at least this."""
_ANSWERED_WITHIN_NS = 400_000_000
_MIN_ANSWER_SHARE = 0.9
"""A length is that of answers if this share of its records comes soon after a request."""
_RELEASE_BYTES = 12
"""`"id":99,"name":"release_arm"` is longer than `"id":0,"name":""` by this, also when padded."""
_MAX_RELEASE_NS = 7 * _SECOND_NS
"""The robot releases its arms for 4 to 6 s after a play; its state goes on meanwhile."""
_REQUESTED_WITHIN_NS = 60_000_000
"""The app requests a play at most this long after it subscribed to the action state."""
_RATE_NS = 3 * _SECOND_NS
"""Usual period over which the rate of acknowledgements is measured."""
_MIN_RATE_S = 0.8
"""Minimum period over which a rate is measured, in seconds."""
_MIN_RISE_PER_S = 2.5
"""Minimum rise of the rate of acknowledgements in a play, which causes five or ten more."""


class SentRecords(NamedTuple):
    """The encrypted records of one direction: times, and lengths without the header."""

    time_ns: Ints
    length: NDArray[np.integer]


def propose_entries(
    sides: tuple[SentRecords, SentRecords | None],
    cipher: InferredCipher | None,
    connected: TimelineEntry,
) -> list[TimelineEntry]:
    """Return the entries that the records of one connection suggest, with `connected` itself.

    `sides` are the records of the client and, if they were captured, of the robot.
    """
    if cipher is None:
        return [connected]
    client, robot = sides
    if robot is not None and not robot.length.size:
        robot = None  # only STUN was captured in this direction
    client_messages = _select_data_messages(client, cipher.overhead)
    heartbeat, other_messages = _find_heartbeat(client_messages)
    teach_entries, empty_request_length = _find_teaching(other_messages)
    entries = [
        connected,
        *heartbeat,
        *teach_entries,
        *_find_subscriptions(other_messages, cipher.overhead),
    ]
    acknowledged = _acknowledgement_times(client, cipher.overhead)
    if robot is not None:
        robot_messages = _select_data_messages(robot, cipher.overhead)
        requests = _pair_requests(other_messages, robot_messages, cipher.overhead)
        entries = _confirm_by_states(entries, _find_state_changes(robot_messages), requests)
        entries += _find_answered_requests(requests, entries)
        return sorted(entries, key=lambda entry: (entry.start_ns, entry.kind))
    play_entries = _find_plays(other_messages, acknowledged, teach_entries, cipher.overhead)
    empty_requests = _find_empty_requests(other_messages, empty_request_length, cipher.overhead)
    play_entries = [_end_play_at_stop(play, empty_requests) for play in play_entries]
    entries += play_entries
    entries += [
        entry
        for entry in _find_listings(empty_requests, empty_request_length, teach_entries)
        if not any(abs(entry.start_ns - (play.end_ns or 0)) < _SECOND_NS for play in play_entries)
    ]
    return sorted(entries, key=lambda entry: (entry.start_ns, entry.kind))


def _select_data_messages(sent: SentRecords, overhead: int) -> SentRecords:
    """Return the records that may contain a message, in the order of time."""
    may_have_message = sent.length > overhead + HEADER + DATA
    may_have_message &= ~is_acknowledgement(sent.length, overhead)
    which = np.flatnonzero(may_have_message)
    time_ns, length = sent.time_ns[which], sent.length[which]
    if (time_ns[1:] < time_ns[:-1]).any():
        order = np.argsort(time_ns, kind="stable")
        time_ns, length = time_ns[order], length[order]
    return SentRecords(time_ns, length)


def _acknowledgement_times(sent: SentRecords, overhead: int) -> Ints:
    """Return the times of plain acknowledgements, in order."""
    return np.sort(sent.time_ns[is_acknowledgement(sent.length, overhead)])


def _has_length(sent: SentRecords, length: int) -> np.ndarray:
    """Return which records have a length; one with an acknowledgement has `SACK` bytes more."""
    has_length: np.ndarray = (sent.length == length) | (sent.length == length + SACK)
    return has_length


def _describe_lengths(length: int) -> str:
    """Return the sizes of a message with the record's header: alone and with an acknowledgement."""
    return f"{length + RECORD_HEADER} or {length + RECORD_HEADER + SACK}"


def _select_times(sent: SentRecords, length: int) -> Ints:
    return sent.time_ns[np.flatnonzero(_has_length(sent, length))]


def _list_common_lengths(sent: SentRecords) -> list[int]:
    """Return the 64 most frequent lengths; an acknowledgement in a record does not count."""
    counts = np.bincount(sent.length)
    lengths = np.flatnonzero(counts)
    count_of = dict(zip(lengths.tolist(), counts[lengths].tolist(), strict=True))
    counts_with_sack = {
        length: count + count_of.get(length + SACK, 0) for length, count in count_of.items()
    }
    return sorted(counts_with_sack, key=lambda length: (-counts_with_sack[length], length))[:64]


def _find_heartbeat(sent: SentRecords) -> tuple[list[TimelineEntry], SentRecords]:
    """Find the messages sent every two seconds; return their entry and the other messages."""
    for length in _list_common_lengths(sent):
        times = _select_times(sent, length)
        if times.size < 4 or times[-1] - times[0] < times.size * _SECOND_NS:
            continue  # too close together for most of them to be 2 s apart
        steps = np.diff(times) / _SECOND_NS
        if float((np.abs(steps - 2.0) < 0.15).mean()) >= 0.7:
            evidence = (
                f"{times.size} records of {_describe_lengths(length)} bytes, "
                f"{float(np.median(steps)):.2f} s apart: the data channel's heartbeat is sent "
                "every 2 s"
            )
            entry = TimelineEntry("heartbeat", int(times[0]), int(times[-1]), 0.7, evidence)
            different = ~_has_length(sent, length)
            return [entry], SentRecords(sent.time_ns[different], sent.length[different])
    return [], sent


def _find_regular_runs(
    times: Ints, low_s: float, high_s: float, min_count: int
) -> list[tuple[int, int]]:
    """Return the first and last index of each run of times whose steps are all within bounds."""
    steps = np.diff(times)
    is_regular = (steps >= round(low_s * _SECOND_NS)) & (steps <= round(high_s * _SECOND_NS))
    if np.count_nonzero(is_regular) + 1 < min_count:
        return []
    # Edges come in pairs: the first time of a run, and its last.
    edges = np.flatnonzero(np.diff(is_regular, prepend=False, append=False))
    return [
        (int(first), int(last))
        for first, last in edges.reshape(-1, 2).tolist()
        if last - first + 1 >= min_count
    ]


def _find_teaching(sent: SentRecords) -> tuple[list[TimelineEntry], int | None]:
    """Find keep-alives once per second, with the requests that began and ended teaching.

    Also returns the length of a request without a parameter, taken from the end of teaching.
    """
    entries: list[TimelineEntry] = []
    empty_request_length = None
    for length in _list_common_lengths(sent):
        times = _select_times(sent, length)
        for first, last in _find_regular_runs(times, 0.8, 1.25, _MIN_KEEP_ALIVES):
            begin, end = int(times[first]), int(times[last])
            if any(entry.start_ns <= end and begin <= (entry.end_ns or begin) for entry in entries):
                continue  # another length was regular at the same time
            # A keep-alive is a request with an empty name. The request that begins teaching is
            # longer, because it has a name; the one that ends it is shorter, without a parameter.
            confidence = 0.55
            evidence = (
                f"{last - first + 1} records of {_describe_lengths(length)} bytes, one "
                "a second, as the app keeps teaching alive"
            )
            earlier_requests = _select_between(
                sent, begin - int(1.3 * _SECOND_NS), begin, (length + 4, length + 72)
            )
            if earlier_requests:
                begin, start_length = earlier_requests[-1]
                confidence += 0.15
                start_bytes = start_length + RECORD_HEADER
                evidence += f"; a longer one ({start_bytes} bytes) before them, with a name"
            later_requests = _select_between(
                sent, end, end + int(1.6 * _SECOND_NS), (length - 28, length - 1)
            )
            if later_requests:
                end, confidence = later_requests[0][0], confidence + 0.15
                empty_request_length = later_requests[0][1]
                end_bytes = empty_request_length + RECORD_HEADER
                evidence += f"; a shorter one ({end_bytes} bytes) after them, to end it"
            entries.append(
                TimelineEntry("teach", begin, end, min(confidence, MAX_CONFIDENCE), evidence)
            )
    return entries, empty_request_length


def _select_between(
    sent: SentRecords, since: int, until: int, lengths: tuple[int, int]
) -> list[tuple[int, int]]:
    """Return times and lengths of the messages in a period whose length is within bounds."""
    inside = (sent.time_ns > since) & (sent.time_ns < until)
    inside &= (sent.length >= lengths[0]) & (sent.length <= lengths[1])
    return list(zip(sent.time_ns[inside].tolist(), sent.length[inside].tolist(), strict=True))


def _find_empty_requests(
    sent: SentRecords, empty_request_length: int | None, overhead: int
) -> list[int]:
    """Return the times of requests without a parameter.

    They are as long as the one that ended teaching; if no end of teaching was found, as long as
    the app's and rote's own requests are.
    """
    plain = overhead + HEADER + DATA
    if empty_request_length is None:
        lengths = [plain + size for size in _EMPTY_REQUEST_BYTES]
    else:
        lengths = [empty_request_length + step for step in (-_ID_PADDING, 0, _ID_PADDING)]
    is_empty = is_one_of(sent.length, (*lengths, *(length + SACK for length in lengths)))
    times: list[int] = sent.time_ns[is_empty].tolist()
    return times


def _find_listings(
    empty_requests: list[int], empty_request_length: int | None, teach_entries: list[TimelineEntry]
) -> list[TimelineEntry]:
    """Propose an entry for each request without a parameter: it may list the actions."""
    reason = "as long as the one that ended teaching, so one without a parameter"
    if empty_request_length is None:
        reason = "as long as one without a parameter"
    evidence = (
        f"a request {reason}: listing the actions has none, and stopping one has none either; "
        "the robot's direction, with the answer, is missing"
    )
    confidence = 0.2 if empty_request_length is None else 0.3
    return [
        TimelineEntry("list", time, None, confidence, evidence)
        for time in empty_requests[:256]
        if not any(entry.start_ns <= time <= (entry.end_ns or time) for entry in teach_entries)
    ]


def _end_play_at_stop(play: TimelineEntry, empty_requests: list[int]) -> TimelineEntry:
    """Return a play with its end at the request to stop it, if there is one before its end."""
    if play.end_ns is None:
        return play
    since = max(play.start_ns, play.end_ns - _MAX_RELEASE_NS)
    stops = [time for time in empty_requests if since < time <= play.end_ns]
    if stops:
        evidence = f"{play.evidence}; ended by a request without a parameter, as stopping has none"
        return replace(play, end_ns=stops[-1], evidence=evidence)
    evidence = (
        f"{play.evidence}; the end shown is the time of that message: the motion ended before it, "
        f"by up to {_MAX_RELEASE_NS // _SECOND_NS} s if the arms were released"
    )
    return replace(play, evidence=evidence)


def _has_subscription_length(sent: SentRecords, overhead: int) -> NDArray[np.bool_]:
    """Return which records have the length of a subscription, padded to four bytes."""
    lengths = {overhead + HEADER + DATA + size + -size % 4 for size in _SUBSCRIBE_BYTES}
    return is_one_of(sent.length, (*lengths, *(length + SACK for length in lengths)))


def _find_subscriptions(sent: SentRecords, overhead: int) -> list[TimelineEntry]:
    """Propose subscriptions: bursts of messages with the length of a subscription."""
    times = sent.time_ns[_has_subscription_length(sent, overhead)]
    if not times.size:
        return []
    # A burst begins after a quarter of a second without a subscription.
    starts = np.flatnonzero(np.diff(times, prepend=times[0] - 10 * _SECOND_NS) > _SECOND_NS // 4)
    counts = np.diff(np.append(starts, times.size))
    return [
        TimelineEntry(
            "subscribe",
            int(times[start]),
            None,
            0.3,
            f"{count} records at once, each as long as a subscription to a topic of the robot: the "
            "app changes its page",
        )
        for start, count in zip(starts.tolist(), counts.tolist(), strict=True)
        if count >= 2
    ][:256]


def _find_toggle_times(sent: SentRecords, overhead: int) -> Ints:
    """Return when the client subscribed to only the action state, or unsubscribed from it.

    Both messages have the same length after padding. Several subscriptions at once are a change of
    page in the app.
    """
    is_subscription = _has_subscription_length(sent, overhead)
    times = sent.time_ns[is_subscription]
    is_toggle = _has_length(sent, overhead + HEADER + DATA + _TOGGLE_BYTES)[is_subscription]
    if not times.size:
        return times
    has_gap = np.diff(times) > _SECOND_NS // 4
    is_alone = np.append(True, has_gap) & np.append(has_gap, True)
    toggles: Ints = times[is_toggle & is_alone]
    return toggles


def _compute_rate_per_s(times: Ints, start_ns: int, end_ns: int) -> float | None:
    """Return how many of `times` are between two times, per second; None if those are too close."""
    span_s = (end_ns - start_ns) / _SECOND_NS
    if span_s < _MIN_RATE_S:
        return None
    low, high = np.searchsorted(times, (start_ns, end_ns)).tolist()
    return float(high - low) / span_s


def _find_plays(
    sent: SentRecords, acknowledged: Ints, teach_entries: list[TimelineEntry], overhead: int
) -> list[TimelineEntry]:
    """Find plays in a capture that lacks the robot's direction.

    The app subscribes to the action state and at once requests an action by its name. While it
    plays, ten more messages per second come from the robot and are acknowledged.
    """
    toggles = _find_toggle_times(sent, overhead)
    min_length = overhead + HEADER + DATA + _MIN_NAMED_BYTES
    entries: list[TimelineEntry] = []
    for index, subscribed_ns in enumerate(toggles.tolist()):
        if entries and subscribed_ns < (entries[-1].end_ns or entries[-1].start_ns):
            continue
        is_in_teaching = any(
            entry.start_ns - _SECOND_NS <= subscribed_ns <= (entry.end_ns or 0)
            for entry in teach_entries
        )
        requests = _select_between(
            sent, subscribed_ns - 1, subscribed_ns + _REQUESTED_WITHIN_NS, (min_length, 1 << 16)
        )
        if not requests or is_in_teaching:
            continue
        end_ns = int(toggles[index + 1]) if index + 1 < toggles.size else None
        previous_ns = int(toggles[index - 1]) if index else subscribed_ns - _RATE_NS
        entries.append(
            _judge_play(sent, acknowledged, (previous_ns, subscribed_ns, end_ns), requests[0])
        )
    return entries


def _judge_play(
    sent: SentRecords,
    acknowledged: Ints,
    moments: tuple[int, int, int | None],
    request: tuple[int, int],
) -> TimelineEntry:
    """Return the entry of one play.

    Its confidence depends on how often the phone acknowledges before, during and after it.
    `moments` are the previous subscription, the one for this play and the next; `request` is the
    time and the length of the request to play.
    """
    previous_ns, subscribed_ns, end_ns = moments
    requested_ns, request_length = request
    last_ns = sent.time_ns[-1] if end_ns is None else end_ns
    before = _compute_rate_per_s(
        acknowledged, max(previous_ns, subscribed_ns - _RATE_NS), subscribed_ns
    )
    during = _compute_rate_per_s(
        acknowledged, requested_ns + _SECOND_NS // 2, min(int(last_ns), requested_ns + 4 * _RATE_NS)
    )
    after = None if end_ns is None else _compute_rate_per_s(acknowledged, end_ns, end_ns + _RATE_NS)
    confidence = 0.45
    wait_ms = (requested_ns - subscribed_ns) / 1e6
    evidence = (
        f"a subscription as long as that to the action state, and {wait_ms:.0f} ms later a request "
        f"({request_length + RECORD_HEADER} bytes) long enough for a name; the robot's direction "
        "is missing"
    )
    if before is not None and during is not None:
        rises = during - before >= _MIN_RISE_PER_S
        confidence += 0.2 if rises else -0.15
        evidence += f"; {before:.0f} acknowledgements a second before, {during:.0f} from then on"
    if during is not None and after is not None and during - after >= _MIN_RISE_PER_S:
        confidence += 0.1
        evidence += f", {after:.0f} after the next such message"
    return TimelineEntry("play", requested_ns, end_ns, round(confidence, 2), evidence)


class _Stretch(NamedTuple):
    """A period in which the action state has one length, ten times per second."""

    start_ns: int
    end_ns: int
    length: int


def _find_state_changes(sent: SentRecords) -> tuple[list[_Stretch], int | None]:
    """Return the periods in which the robot's 10 Hz state has an unusual length.

    Also returns its usual length, or None if there is no such state.
    """
    stretches: list[_Stretch] = []
    used_lengths: set[int] = set()
    for length in _list_common_lengths(sent):
        if length in used_lengths:
            continue
        times = _select_times(sent, length)
        runs = _find_regular_runs(times, 0.07, 0.14, 6)  # at 10 Hz a step takes 0.1 s
        if runs:
            used_lengths |= {length, length + SACK, length - SACK}
        run_stretches = [
            _Stretch(int(times[first]), int(times[last]), length) for first, last in runs
        ]
        # Another message of the same length may interrupt a run.
        stretches += _merge_stretches(run_stretches, gap_s=0.5)
    if not stretches:
        return [], None
    durations: dict[int, tuple[int, int]] = {}
    for stretch in stretches:
        count, total = durations.get(stretch.length, (0, 0))
        durations[stretch.length] = count + 1, total + stretch.end_ns - stretch.start_ns
    # The robot returns to its idle state most often.
    usual = max(durations, key=lambda length: durations[length])
    unusual = [stretch for stretch in sorted(stretches) if stretch.length != usual]
    return _join_actions(unusual, usual), usual


def _join_actions(stretches: list[_Stretch], usual: int) -> list[_Stretch]:
    """Join periods that follow each other: one action, which was renamed while it played.

    The period in which the arms are released after it is dropped.
    """
    actions: list[_Stretch] = []
    for stretch in stretches:
        follows = bool(actions) and stretch.start_ns - actions[-1].end_ns < 0.3 * _SECOND_NS
        if not follows:
            actions.append(stretch)
        elif stretch.length != usual + _RELEASE_BYTES:
            actions[-1] = actions[-1]._replace(end_ns=max(actions[-1].end_ns, stretch.end_ns))
    return actions


def _merge_stretches(stretches: list[_Stretch], gap_s: float) -> list[_Stretch]:
    """Join periods that follow each other directly."""
    merged: list[_Stretch] = []
    for stretch in stretches:
        if merged and stretch.start_ns - merged[-1].end_ns < gap_s * _SECOND_NS:
            last = merged[-1]
            merged[-1] = _Stretch(last.start_ns, max(last.end_ns, stretch.end_ns), last.length)
        else:
            merged.append(stretch)
    return merged


class _SizedRequest(NamedTuple):
    """A request of the client, and the number of bytes that answer it."""

    time_ns: int
    length: int
    answer_bytes: int


def _pair_requests(sent: SentRecords, replied: SentRecords, overhead: int) -> list[_SizedRequest]:
    """Return each request of `sent`, with the number of bytes of `replied` that answer it.

    A record answers a request if it comes soon after one, as nearly all records of its length do.
    """
    is_request = sent.length >= overhead + HEADER + DATA + _MIN_REQUEST_BYTES
    request_ns, length = sent.time_ns[is_request], sent.length[is_request]
    if not request_ns.size or not replied.length.size:
        return []
    # The last request before each record of the robot.
    request = np.searchsorted(request_ns, replied.time_ns, "right") - 1
    is_soon = (request >= 0) & (replied.time_ns - request_ns[request] < _ANSWERED_WITHIN_NS)
    length_count = int(replied.length.max()) + 1
    total = np.bincount(replied.length, minlength=length_count)
    share = np.bincount(replied.length[is_soon], minlength=length_count) / np.maximum(total, 1)
    seldom_answers = np.flatnonzero((share < _MIN_ANSWER_SHARE) & (total > 0))
    # An included acknowledgement makes a rare length of a frequent message.
    background = np.union1d(seldom_answers, seldom_answers + SACK)
    is_answer = is_soon & ~np.isin(replied.length, background)
    answer_bytes = np.bincount(
        request[is_answer], replied.length[is_answer], minlength=request_ns.size
    ).astype(np.int64)
    return [
        _SizedRequest(*row)
        for row in zip(request_ns.tolist(), length.tolist(), answer_bytes.tolist(), strict=True)
    ]


def _find_answered_requests(
    requests: list[_SizedRequest], found: list[TimelineEntry]
) -> list[TimelineEntry]:
    """Propose lists, by their long answers, and renames, by their long requests."""
    shortest = min((request.length for request in requests), default=0)
    shortest_answer = min(
        (request.answer_bytes for request in requests if request.answer_bytes), default=0
    )
    other_starts = [entry.start_ns for entry in found if entry.kind in ("teach", "play")]
    entries: list[TimelineEntry] = []
    for request in requests:
        extra_bytes = request.length - shortest
        extra_answer = request.answer_bytes - shortest_answer
        # Almost as short as the shortest request, perhaps with an acknowledgement.
        is_empty = extra_bytes <= 2 * _ID_PADDING or SACK <= extra_bytes <= SACK + 2 * _ID_PADDING
        if extra_answer >= _MIN_LIST_BYTES and is_empty:
            evidence = (
                f"a request without a parameter ({request.length + RECORD_HEADER} bytes), answered "
                f"by {extra_answer} bytes more than others: a list"
            )
            entries.append(TimelineEntry("list", request.time_ns, None, 0.6, evidence))
        elif (
            extra_answer < _MIN_LIST_BYTES
            and extra_bytes >= _MIN_RENAME_BYTES
            and all(abs(request.time_ns - start) > _SECOND_NS // 20 for start in other_starts)
        ):
            evidence = (
                f"a request ({request.length + RECORD_HEADER} bytes) long enough for two names, "
                "after which nothing plays: renaming an action, deleting one, or one that was "
                "refused"
            )
            entries.append(TimelineEntry("rename", request.time_ns, None, 0.3, evidence))
    return entries[:256]


def _confirm_by_states(
    entries: list[TimelineEntry],
    states: tuple[list[_Stretch], int | None],
    requests: list[_SizedRequest],
) -> list[TimelineEntry]:
    """Confirm teaching by changes of the robot's state; propose a play for each other change."""
    stretches, usual = states
    result = list(entries)
    for stretch in stretches[:256]:
        change = (
            f"the robot's 10 Hz state has {stretch.length + RECORD_HEADER} bytes instead of "
            f"{(usual or 0) + RECORD_HEADER}: another action's name"
        )
        for index, entry in enumerate(result):
            end_ns = entry.end_ns or entry.start_ns
            overlaps = entry.start_ns <= stretch.end_ns and stretch.start_ns <= end_ns
            if entry.kind == "teach" and overlaps:
                confidence = min(MAX_CONFIDENCE, entry.confidence + 0.1)
                evidence = f"{entry.evidence}; {change}"
                result[index] = TimelineEntry(
                    "teach", entry.start_ns, entry.end_ns, confidence, evidence
                )
                break
        else:
            result.append(_make_play_entry(stretch, usual or 0, requests, change))
    return result


def _make_play_entry(
    stretch: _Stretch, usual: int, requests: list[_SizedRequest], change: str
) -> TimelineEntry:
    """Return the entry of a play; it starts at the request just before the period, if any."""
    since = stretch.start_ns - int(1.5 * _SECOND_NS)
    before = [
        request.time_ns for request in requests if since <= request.time_ns <= stretch.start_ns
    ]
    evidence = change + ("; a request came just before" if before else "")
    confidence = 0.6 if before else 0.4
    if stretch.length == usual + _RELEASE_BYTES:
        confidence -= 0.1
        evidence += (
            "; the state is as long while the arms are released, so the motion may have ended "
            f"up to {_MAX_RELEASE_NS // _SECOND_NS} s earlier"
        )
    start_ns = before[-1] if before else stretch.start_ns
    return TimelineEntry("play", start_ns, stretch.end_ns, round(confidence, 2), evidence)
