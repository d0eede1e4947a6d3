"""Compare a trial with the assumed facts, and two trials with each other; no I/O."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from rote.trial.facts import Fact, facts
from rote.trial.steps import A1_WIRE
from rote.wire.a1 import formats as a1_formats
from rote.wire.services.json_shape import ABSENT

_SIGNALLING_NAMES = {
    "legacy": "legacy", "none": "plain", "1": "plain", "2": "static-key", "3": "device-key",
}  # fmt: skip
_COOL_C = 80


@dataclass(frozen=True, slots=True)
class FactSeen:
    """One fact and the value that was observed."""

    fact: Fact
    seen: Any
    agrees: bool | None
    """None if it was not tested."""
    note: str
    used: bool = False
    """Whether a step relied on it successfully, which does not test it."""


def read_path(measured: dict[str, Any], path: str) -> Any:
    """Return the value at a dotted path, or None. Topic names contain no dots."""
    value: Any = measured
    for name in path.split("."):
        if not isinstance(value, dict) or name not in value:
            return None
        value = value[name]
    return value


def with_derived_values(measured: dict[str, Any]) -> dict[str, Any]:
    """Return the measurements with the values derived from them."""
    values: dict[str, Any] = {**measured}
    values["connected"] = True if "connect" in measured else None
    variant = _SIGNALLING_NAMES.get(str(measured.get("signalling")))
    values["signalling_is"] = {variant: True} if variant else {}
    seen = set(read_path(measured, "bus.seen") or ())
    values["bus_has"] = {
        topic: topic in seen for topic in ("rt/arm_sdk", "rt/sportmodestate", "rt/lf/bmsstate")
    }
    if "rt/dex3/left/state" in seen:
        values["bus_has"]["rt/dex3/left/state"] = True
    if not seen:
        values["bus_has"] = {}
    topics = measured.get("topics") or {}
    values["frames_heard"] = True if "states" in topics else None
    values["frames_listed"] = True if "list" in measured else None
    values["frames_lapsed"] = True if read_path(measured, "teaching.lapse_s") else None
    values.update(_derive_a1_values(measured))
    return values


def _derive_a1_values(measured: dict[str, Any]) -> dict[str, Any]:
    a1 = measured.get("a1") or {}
    if measured.get("wire") != A1_WIRE or not a1:
        return {}
    size, level, dialect = a1.get("frame_bytes"), measured.get("a1_level"), measured.get("dialect")
    go1 = dialect == "go1"
    flags = {"low": 0xFF, "high": 0xEE if go1 else 0x00}
    values: dict[str, Any] = {
        "a1_heard": size is not None,
        "a1_length_known": size in a1_formats.BY_SIZE,
        "a1_frame_is": {str(size): True},
        "a1_flag_fits": a1.get("level_flag") == flags.get(str(level)),
        "a1_motors_fit": a1.get("motors_told") == (level == "low" or dialect in ("3.3.4", "go1")),
    }
    kinds = {"low": "LowCmd", "high": "HighCmd"}
    values["a1_command_is"] = {
        str(each.layout.size): True
        for each in a1_formats.FORMATS
        if each.kind.value == kinds.get(str(level))
        and dialect in [one.value for one in each.dialects]
    }
    if a1.get("hottest_c") is not None:
        values["a1_cool"] = a1["hottest_c"] < _COOL_C
    asked, reached = a1.get("joint_asked_rad"), a1.get("joint_reached_rad")
    if asked and reached is not None:
        values["a1_joint_share"] = round(reached / asked, 2)
    return values


def judge(
    measured: dict[str, Any], wire: str, results: dict[str, tuple[str, str]]
) -> list[FactSeen]:
    """Return every fact of a wire with the observed value.

    `results` maps the id of each step that was reached to its result and note.
    """
    values = with_derived_values(measured)
    return [_judge_fact(fact, values, results) for fact in facts() if wire in fact.wires]


def _judge_fact(
    fact: Fact, values: dict[str, Any], results: dict[str, tuple[str, str]]
) -> FactSeen:
    if not fact.step:
        return FactSeen(fact, None, None, fact.why_not)
    seen = read_path(values, fact.read)
    if seen is None:
        result, note = results.get(fact.step, ("", ""))
        reason = note or ("this robot does not show it" if result == "done" else "not reached")
        return FactSeen(fact, None, None, f"step {fact.step}: {reason}")
    if fact.only_used:
        worked = bool(_agrees(fact, seen))
        note = "used, not tested" if worked else "its use had no effect, for whatever reason"
        return FactSeen(fact, None, None, f"step {fact.step}: {note}", used=worked)
    return FactSeen(fact, seen, _agrees(fact, seen), "")


def _agrees(fact: Fact, seen: Any) -> bool:
    if isinstance(fact.assumed, bool) or not isinstance(fact.assumed, (int, float)):
        return bool(seen == fact.assumed)
    if not isinstance(seen, (int, float)) or isinstance(seen, bool):
        return False
    if fact.least and seen >= fact.assumed:
        return True
    return abs(seen - fact.assumed) <= (fact.within or 0.0)


# ---- two trials ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TrialDifference:
    """A measurement that differs between two robots."""

    what: str
    first: Any
    second: Any


_RATE_SHARE, _TIME_SHARE, _TIME_S = 0.2, 0.3, 0.35
_DELAY_S, _START_S = 0.06, 0.3
"""Tolerances of delays; a start is known only from states, ten a second."""
_LOOSE = {
    "teaching.lapse_s": 1.3,
    "teaching.lingers_s": 0.9,
    "teaching.listed_after_s": 1.8,
    "teaching.listed_s": 0.9,
    "playing.moving_s": 1.0,
    "playing.played_s": 1.0,
    "playing.listed_s": 1.0,
    "playing.return_s": 1.0,
    "playing.stop_return_s": 1.0,
}
"""Tolerances in seconds of times that vary between runs on one robot."""
_NOT_COMPARED = (
    "connect.stages", "connect.total_s", "list.format", "list.taught", "list.notes", "shapes",
    "playing.moved_rad", "playing.fastest_rad_s", "playing.first_step_rad", "mode_said",
"teaching.all_lingers_s", "bus.seen", "a1.hottest_c", "a1.joint_torque_nm",
    "a1.walk_moved_m", "a1.gravity_m_s2", "topics.faults",
)  # fmt: skip


def differences(first: dict[str, Any], second: dict[str, Any]) -> list[TrialDifference]:
    """Return the differences between the measurements of two trials beyond normal variation."""
    found = list(_compare("", first, second))
    found += _shape_differences(first.get("shapes") or {}, second.get("shapes") or {})
    formats = (read_path(first, "list.format"), read_path(second, "list.format"))
    if all(formats):
        found += _format_differences(*formats)
    return found


def _compare(path: str, first: Any, second: Any) -> Iterator[TrialDifference]:
    if path and any(path == each or path.startswith(f"{each}.") for each in _NOT_COMPARED):
        return
    if isinstance(first, dict) and isinstance(second, dict):
        for name in sorted({*first, *second}):
            inner = f"{path}.{name}" if path else name
            yield from _compare(inner, first.get(name), second.get(name))
    elif path.startswith("delays_s.") or path == "playing.starts_after_s":
        slack_s = _START_S if path == "playing.starts_after_s" else _DELAY_S
        if first and second and not _times_overlap(first, second, slack_s):
            yield TrialDifference(path, _median(first), _median(second))
    elif path == "refusals":
        yield from _refusal_differences(first or [], second or [])
    elif not _are_alike(path, first, second):
        yield TrialDifference(path, first, second)


def _are_alike(path: str, first: Any, second: Any) -> bool:
    numbers = [isinstance(each, (int, float)) for each in (first, second)]
    bools = [isinstance(each, bool) for each in (first, second)]
    if not all(numbers) or any(bools):
        return bool(first == second)
    far = float(abs(first - second))
    most = float(max(abs(first), abs(second)))
    limit = _tolerance(path, most)
    return bool(first == second) if limit is None else far <= limit


def _tolerance(path: str, most: float) -> float | None:
    """Return how far two numbers may differ on one robot; None if they must be equal."""
    if path in _LOOSE:
        return _LOOSE[path]
    if path.endswith((".hz", "_hz")):
        return _RATE_SHARE * most + 0.3
    if path.endswith(".bytes"):
        return _RATE_SHARE * most + 16
    if path.endswith(("_s", ".seconds")):
        return _TIME_SHARE * most + _TIME_S
    return 0.1 if path.endswith(("_rad", "_m", "_m_s", "roll", "pitch", "yaw")) else None


def _times_overlap(first: list[float], second: list[float], slack_s: float) -> bool:
    """Whether each median is within the spread of the other times, plus some slack."""
    for one, other in ((first, second), (second, first)):
        slack = slack_s + 0.25 * abs(_median(other))
        if not min(one) - slack <= _median(other) <= max(one) + slack:
            return False
    return True


def _median(values: list[float]) -> float:
    ordered = sorted(values)
    return round(ordered[len(ordered) // 2], 3)


def _refusal_differences(first: list[Any], second: list[Any]) -> Iterator[TrialDifference]:
    codes = [{row["when"]: row["code"] for row in rows} for rows in (first, second)]
    for when in sorted(codes[0].keys() & codes[1].keys()):
        if codes[0][when] != codes[1][when]:
            yield TrialDifference(f"code when {when}", codes[0][when], codes[1][when])


def _shape_differences(first: dict[str, Any], second: dict[str, Any]) -> list[TrialDifference]:
    found = []
    for name in sorted(first.keys() & second.keys()):
        one, other = dict(_shape_leaves(name, first[name])), dict(_shape_leaves(name, second[name]))
        found += [
            TrialDifference(f"shape of {path}", one.get(path), other.get(path))
            for path in sorted({*one, *other})
            if one.get(path) != other.get(path) and not _differ_only_at_times(one, other, path)
        ]
    return found


def _differ_only_at_times(one: dict[str, Any], other: dict[str, Any], path: str) -> bool:
    """Whether two sets of kinds differ only in values that are not always present."""
    kinds = [set(each.get(path, "").split("|")) - {"", ABSENT} for each in (one, other)]
    loose = {"int", "float"}, {"text", "empty"}
    if not kinds[0] or not kinds[1]:
        there = one.get(path) or other.get(path) or ""
        return ABSENT in there or _is_inside_optional(path, one, other)
    apart = kinds[0] ^ kinds[1]
    return any(kinds[0] & pair and kinds[1] & pair and apart <= pair for pair in loose) and not (
        (kinds[0] == {"int"} and kinds[1] == {"float"})
        or (kinds[0] == {"float"} and kinds[1] == {"int"})
    )


def _is_inside_optional(path: str, one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether a field is inside another that is sometimes empty or absent."""
    above = path.rpartition(".")[0]
    while above:
        for each in (one, other):
            kinds = set(each.get(above, "").split("|"))
            if {"text", "empty"} & kinds or ABSENT in kinds:
                return True
        above = above.rpartition(".")[0]
    return False


def _shape_leaves(path: str, shape: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield path, "|".join(shape.get("kinds", ()))
    if shape.get("count") is not None and "of" in shape and shape["count"] > 3:
        yield f"{path}.count", str(shape["count"])
    if "nulls" in shape:
        yield f"{path}.nulls", str(shape["nulls"])
    for name, inner in shape.get("fields", {}).items():
        yield from _shape_leaves(f"{path}.{name}", inner)
    if "of" in shape:
        yield from _shape_leaves(f"{path}[]", shape["of"])


def _format_differences(first: Any, second: Any) -> Iterable[TrialDifference]:
    one, other = first["parts"], second["parts"]
    if len(one) != len(other):
        return [TrialDifference("lists of actions", len(one), len(other))]
    found = []
    for number, (mine, theirs) in enumerate(zip(one, other, strict=True), start=1):
        found += [
            TrialDifference(f"list {number}, {name}", mine[name], theirs[name])
            for name in ("unnamed", "others")
            if mine[name] != theirs[name]
        ]
        if mine["taught"] and theirs["taught"]:
            found += _shape_differences(
                {f"list {number}": mine["taught"]}, {f"list {number}": theirs["taught"]}
            )
        if mine["presets"] != theirs["presets"]:
            counts = len(mine["presets"]), len(theirs["presets"])
            found.append(TrialDifference(f"list {number}, presets", *counts))
    return found
