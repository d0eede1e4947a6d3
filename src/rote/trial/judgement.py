"""Compares a trial with the assumed facts, and two trials with each other, without I/O."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from rote.trial.facts import Fact, list_facts
from rote.trial.steps import A1_WIRE
from rote.wire.a1 import formats as a1_formats
from rote.wire.services.json_shape import ABSENT

_SIGNALLING_NAMES = {
    "legacy": "legacy", "none": "plain", "1": "plain", "2": "static-key", "3": "device-key",
}  # fmt: skip
_COOL_C = 80
"""A motor at rest is cooler than this."""


@dataclass(frozen=True, slots=True)
class FactSeen:
    """One fact and the value that was observed."""

    fact: Fact
    seen: Any
    agrees: bool | None
    """Whether the value agrees with the fact; None if the fact was not tested."""
    note: str
    used: bool = False
    """Whether a step relied on the fact successfully, which does not test it."""


def read_path(measured: dict[str, Any], path: str) -> Any:
    """Return the value at a dotted path, or None. Topic names contain no dots."""
    value: Any = measured
    for name in path.split("."):
        if not isinstance(value, dict) or name not in value:
            return None
        value = value[name]
    return value


def add_derived_values(measured: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of the measurements with additional values that facts compare."""
    values: dict[str, Any] = {**measured}
    values["connected"] = True if "connect" in measured else None
    variant = _SIGNALLING_NAMES.get(str(measured.get("signalling")))
    values["signalling_is"] = {variant: True} if variant else {}
    values["bus_has"] = _check_dds_topics(set(read_path(measured, "bus.seen") or ()))
    topics = measured.get("topics") or {}
    values["frames_received"] = True if "states" in topics else None
    values["frames_listed"] = True if "list" in measured else None
    values["frames_lapsed"] = True if read_path(measured, "teaching.lapse_s") else None
    values.update(_derive_a1_values(measured))
    return values


def _check_dds_topics(seen: set[str]) -> dict[str, bool]:
    """Return which of the assumed DDS topics were seen; empty if the trial saw none at all."""
    if not seen:
        return {}
    expected = ("rt/arm_sdk", "rt/sportmodestate", "rt/lf/bmsstate")
    found = {topic: topic in seen for topic in expected}
    if "rt/dex3/left/state" in seen:
        found["rt/dex3/left/state"] = True  # never False, because a robot may have no hands
    return found


def _derive_a1_values(measured: dict[str, Any]) -> dict[str, Any]:
    """Return the values of an A1 or Go1 that facts compare, derived from its measurements."""
    a1 = measured.get("a1") or {}
    if measured.get("wire") != A1_WIRE or not a1:
        return {}
    size, level, dialect = a1.get("frame_bytes"), measured.get("a1_level"), measured.get("dialect")
    level_flags = {"low": 0xFF, "high": 0xEE if dialect == "go1" else 0x00}
    values: dict[str, Any] = {
        "a1_states_received": size is not None,
        "a1_length_known": size in a1_formats.BY_SIZE,
        "a1_frame_is": {str(size): True},
        "a1_flag_fits": a1.get("level_flag") == level_flags.get(str(level)),
        "a1_motors_fit": a1.get("motors_told") == (level == "low" or dialect in ("3.3.4", "go1")),
    }
    command_kind = {"low": "LowCmd", "high": "HighCmd"}.get(str(level))
    values["a1_command_is"] = {
        str(frame.layout.size): True
        for frame in a1_formats.FORMATS
        if frame.kind.value == command_kind and dialect in [known.value for known in frame.dialects]
    }
    if a1.get("hottest_c") is not None:
        values["a1_cool"] = a1["hottest_c"] < _COOL_C
    commanded_rad, reached_rad = a1.get("joint_asked_rad"), a1.get("joint_reached_rad")
    if commanded_rad and reached_rad is not None:
        values["a1_joint_share"] = round(reached_rad / commanded_rad, 2)
    return values


def judge(
    measured: dict[str, Any], wire: str, results: dict[str, tuple[str, str]]
) -> list[FactSeen]:
    """Return every fact of a wire with the observed value.

    `results` maps the id of each step that was reached to its result and note.
    """
    values = add_derived_values(measured)
    return [_judge_fact(fact, values, results) for fact in list_facts() if wire in fact.wires]


def _judge_fact(
    fact: Fact, values: dict[str, Any], results: dict[str, tuple[str, str]]
) -> FactSeen:
    """Compare one fact with its measured value, or state why it was not tested."""
    if not fact.step:
        return FactSeen(fact, None, None, fact.why_not)
    seen = read_path(values, fact.read)
    if seen is None:
        result, note = results.get(fact.step, ("", ""))
        reason = note or (
            "the robot did not show it" if result == "done" else "the step did not run"
        )
        return FactSeen(fact, None, None, f"step {fact.step}: {reason}")
    if fact.only_used:
        worked = bool(_agrees_with_fact(fact, seen))
        note = "used, not tested" if worked else "used without success; the cause is unknown"
        return FactSeen(fact, None, None, f"step {fact.step}: {note}", used=worked)
    return FactSeen(fact, seen, _agrees_with_fact(fact, seen), "")


def _agrees_with_fact(fact: Fact, seen: Any) -> bool:
    """Whether a measured value agrees with the assumed one, within the fact's tolerance."""
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
    """The path of the measurement, or a description."""
    first: Any
    second: Any

    @property
    def label(self) -> str:
        """The name of the measurement, as people read it."""
        if self.what.startswith(_CODE_WHEN):
            return _CODE_WHEN + describe_situation(self.what.removeprefix(_CODE_WHEN))
        return self.what.replace("_", " ")


_RATE_TOLERANCE, _TIME_TOLERANCE, _TIME_S = 0.2, 0.3, 0.35
"""Tolerances of rates and of times, as shares of the larger value; seconds added for times."""
_DELAY_S, _START_S = 0.06, 0.3
"""Tolerances of answer delays, and of start delays, which are measured by states at 10 Hz."""
_TIME_TOLERANCES_S = {
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


def find_differences(first: dict[str, Any], second: dict[str, Any]) -> list[TrialDifference]:
    """Return the differences between the measurements of two trials beyond normal variation."""
    found = list(_compare("", first, second))
    found += _find_shape_differences(first.get("shapes") or {}, second.get("shapes") or {})
    formats = (read_path(first, "list.format"), read_path(second, "list.format"))
    if all(formats):
        found += _find_format_differences(*formats)
    return found


def _compare(path: str, first: Any, second: Any) -> Iterator[TrialDifference]:
    """Yield the differences between two measurements at a dotted path, and inside them."""
    if path and any(path == ignored or path.startswith(f"{ignored}.") for ignored in _NOT_COMPARED):
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
        yield from _find_refusal_differences(first or [], second or [])
    elif not _are_alike(path, first, second):
        yield TrialDifference(path, first, second)


def _are_alike(path: str, first: Any, second: Any) -> bool:
    """Whether two values of a measurement are equal, or differ by no more than its tolerance."""
    are_numbers = all(
        isinstance(value, (int, float)) and not isinstance(value, bool) for value in (first, second)
    )
    if not are_numbers:
        return bool(first == second)
    tolerance = _find_tolerance(path, float(max(abs(first), abs(second))))
    return bool(first == second) if tolerance is None else float(abs(first - second)) <= tolerance


def _find_tolerance(path: str, largest: float) -> float | None:
    """Return the normal variation of a measurement on one robot; None if it must be equal.

    `largest` is the larger absolute value of the two that are compared.
    """
    if path in _TIME_TOLERANCES_S:
        return _TIME_TOLERANCES_S[path]
    if path.endswith((".hz", "_hz")):
        return _RATE_TOLERANCE * largest + 0.3
    if path.endswith(".bytes"):
        return _RATE_TOLERANCE * largest + 16
    if path.endswith(("_s", ".seconds")):
        return _TIME_TOLERANCE * largest + _TIME_S
    return 0.1 if path.endswith(("_rad", "_m", "_m_s", "roll", "pitch", "yaw")) else None


def _times_overlap(first: list[float], second: list[float], slack_s: float) -> bool:
    """Whether the median of each list is within the range of the other.

    The range is extended by `slack_s` and a quarter of the median.
    """
    for times, others in ((first, second), (second, first)):
        median = _median(others)
        slack = slack_s + 0.25 * abs(median)
        if not min(times) - slack <= median <= max(times) + slack:
            return False
    return True


def _median(values: list[float]) -> float:
    ordered = sorted(values)
    return round(ordered[len(ordered) // 2], 3)


_CODE_WHEN = "code when "
_SITUATIONS = {
    "asked for the mode": "the mode was requested",
    "asked for the list": "the list of actions was requested",
    "taught without balance": "teaching was requested in a mode without balance",
    "taught under a name that exists": "an existing name was taught",
    "paused while it records": "a recording was paused",
    "deleted what is not there": "a missing action was deleted",
    "renamed what is not there": "a missing action was renamed",
    "played what is not there": "a missing action was played",
    "played while it plays": "an action was played during a playback",
}
"""Labels for the situations of refusals; a report stores the keys, which must not change."""


def describe_situation(when: str) -> str:
    """Return the label for the situation of a refusal, as people read it."""
    return _SITUATIONS.get(when, when)


def _find_refusal_differences(first: list[Any], second: list[Any]) -> Iterator[TrialDifference]:
    first_codes, second_codes = (
        {row["when"]: row["code"] for row in rows} for rows in (first, second)
    )
    for when in sorted(first_codes.keys() & second_codes.keys()):
        if first_codes[when] != second_codes[when]:
            yield TrialDifference(f"{_CODE_WHEN}{when}", first_codes[when], second_codes[when])


def _find_shape_differences(first: dict[str, Any], second: dict[str, Any]) -> list[TrialDifference]:
    """Return the differences between shapes of the same name, field by field."""
    found = []
    for name in sorted(first.keys() & second.keys()):
        first_fields = dict(_list_shape_fields(name, first[name]))
        second_fields = dict(_list_shape_fields(name, second[name]))
        found += [
            TrialDifference(f"shape of {path}", first_fields.get(path), second_fields.get(path))
            for path in sorted({*first_fields, *second_fields})
            if first_fields.get(path) != second_fields.get(path)
            and not _differ_only_by_chance(first_fields, second_fields, path)
        ]
    return found


def _differ_only_by_chance(
    first_fields: dict[str, Any], second_fields: dict[str, Any], path: str
) -> bool:
    """Whether the kinds of a field in two reports differ only by chance: in optional values, or in
    kinds that one robot may mix.
    """
    first_kinds, second_kinds = (
        set(fields.get(path, "").split("|")) - {"", ABSENT}
        for fields in (first_fields, second_fields)
    )
    if not first_kinds or not second_kinds:
        # One report lacks the field: it is optional, or a part of something that is.
        present = first_fields.get(path) or second_fields.get(path) or ""
        return ABSENT in present or _is_inside_optional(path, first_fields, second_fields)
    if first_kinds | second_kinds == {"int", "float"} and not first_kinds & second_kinds:
        return False  # one robot always sends whole numbers, the other never
    # One robot may mix whole numbers with fractions, and empty texts with others.
    mixed = {"int", "float"}, {"text", "empty"}
    return any(
        first_kinds & pair and second_kinds & pair and first_kinds ^ second_kinds <= pair
        for pair in mixed
    )


def _is_inside_optional(
    path: str, first_fields: dict[str, Any], second_fields: dict[str, Any]
) -> bool:
    """Whether a field is inside another that is sometimes empty or absent."""
    parent = path.rpartition(".")[0]
    while parent:
        for fields in (first_fields, second_fields):
            kinds = set(fields.get(parent, "").split("|"))
            if {"text", "empty"} & kinds or ABSENT in kinds:
                return True
        parent = parent.rpartition(".")[0]
    return False


def _list_shape_fields(path: str, shape: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the path of each field of a shape, with its kinds or its count."""
    yield path, "|".join(shape.get("kinds", ()))
    # The length of a short list often varies on one robot.
    if shape.get("count") is not None and "of" in shape and shape["count"] > 3:
        yield f"{path}.count", str(shape["count"])
    if "nulls" in shape:
        yield f"{path}.nulls", str(shape["nulls"])
    for name, inner in shape.get("fields", {}).items():
        yield from _list_shape_fields(f"{path}.{name}", inner)
    if "of" in shape:
        yield from _list_shape_fields(f"{path}[]", shape["of"])


def _find_format_differences(first: Any, second: Any) -> Iterable[TrialDifference]:
    """Return the differences between two formats of the list of actions, list by list."""
    first_parts, second_parts = first["parts"], second["parts"]
    if len(first_parts) != len(second_parts):
        return [TrialDifference("lists of actions", len(first_parts), len(second_parts))]
    found = []
    for number, (first_part, second_part) in enumerate(
        zip(first_parts, second_parts, strict=True), start=1
    ):
        found += [
            TrialDifference(f"list {number}, {name}", first_part[name], second_part[name])
            for name in ("unnamed", "others")
            if first_part[name] != second_part[name]
        ]
        if first_part["taught"] and second_part["taught"]:
            found += _find_shape_differences(
                {f"list {number}": first_part["taught"]}, {f"list {number}": second_part["taught"]}
            )
        if first_part["presets"] != second_part["presets"]:
            counts = len(first_part["presets"]), len(second_part["presets"])
            found.append(TrialDifference(f"list {number}, presets", *counts))
    return found
