"""The format of a robot's list of actions, learned from its answers, without the owner's names.

    {"parts": [{"presets": [entries as they came], "taught": shape or null, "unnamed": [entries],
                "others": [entries]}]}

A list is one part or several. Presets are the factory's and stay as they came; of taught actions
only the shape is kept. An entry of neither kind, or without a name, is kept if it names nothing.
"""

from typing import Any

from rote.wire.services.json_shape import Shape, fit_to_shape, shape_of

ListFormat = dict[str, Any]


def list_format(answers: list[Any]) -> ListFormat | None:
    """Return the format of answers to a request for the list; None if none of them is a list."""
    lists = [answer for answer in answers if isinstance(answer, list)]
    if not lists:
        return None
    newest = lists[-1]
    if newest and not any(isinstance(part, list) for part in newest):
        return {"flat": True, "parts": [_part_format([newest], 0, alone=True)]}
    parts = [
        _part_format(
            [answer[index] for answer in lists if index < len(answer)], index, len(newest) == 1
        )
        for index in range(len(newest))
    ]
    return {"parts": parts}


def _part_format(samples: list[Any], index: int, alone: bool) -> dict[str, Any]:
    newest = samples[-1] if isinstance(samples[-1], list) else []
    if index > 1:
        return {"presets": [], "taught": None, "unnamed": [], "others": _remove_texts(newest)}
    is_preset = [_is_preset(entry, index, alone) for entry in newest]
    presets = [entry for entry, so in zip(newest, is_preset, strict=True) if so]
    unnamed = [
        entry
        for entry, so in zip(newest, is_preset, strict=True)
        if not so and not _entry_name(entry)
    ]
    seen = [
        entry
        for sample in samples
        if isinstance(sample, list)
        for entry in sample
        if not _is_preset(entry, index, alone) and _entry_name(entry)
    ]
    return {
        "presets": presets,
        "taught": shape_of(seen) if seen else None,
        "unnamed": unnamed,
        "others": [],
    }


def _is_preset(entry: Any, index: int, alone: bool) -> bool:
    if alone:
        return isinstance(entry, dict) and entry.get("id") is not None
    return index == 0


def _entry_name(entry: Any) -> str:
    name = entry.get("name") if isinstance(entry, dict) else entry
    return name if isinstance(name, str) else ""


def _remove_texts(entries: list[Any]) -> list[Any]:
    """Return entries of an unknown list, their texts left out."""
    return [
        {key: "" if isinstance(value, str) else value for key, value in entry.items()}
        for entry in entries
        if isinstance(entry, dict)
    ]


def formatted(lists: list[Any], format_: ListFormat) -> object:
    """Return the two lists of a simulated robot in a format."""
    taught = lists[1]
    parts = format_["parts"]
    usual = min(1, len(parts) - 1)
    owner = next((n for n, part in enumerate(parts) if part["taught"] is not None), usual)
    result = []
    for index, part in enumerate(parts):
        entries = [*part["presets"], *part["unnamed"], *part["others"]]
        if index == owner:
            entries += [_format_entry(action, part["taught"]) for action in taught]
        result.append(entries)
    return result[0] if format_.get("flat") else result


def _format_entry(action: Any, shape: Shape | None) -> object:
    if shape is None:
        return action
    if "text" in shape["kinds"] and "object" not in shape["kinds"]:
        return action["name"]
    return fit_to_shape(action, shape)
