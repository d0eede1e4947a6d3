"""The format of a robot's list of actions, learned from its answers, without the owner's names.

    {"parts": [{"presets": [entries as received], "taught": shape or null, "unnamed": [entries],
                "others": [entries]}], "flat": true if the list has no parts, only entries}

A list has one part or several: usually presets, then taught actions. Presets are the factory's and
are kept as received; of taught actions only the shape is kept. Entries without a name are kept;
other entries lose their texts.
"""

from typing import Any

from rote.wire.services.json_shape import Shape, fit_to_shape, learn_shape

ListFormat = dict[str, Any]


def learn_list_format(answers: list[Any]) -> ListFormat | None:
    """Return the format of a robot's lists of actions; None if none of the answers is a list."""
    lists = [answer for answer in answers if isinstance(answer, list)]
    if not lists:
        return None
    newest = lists[-1]
    if newest and not any(isinstance(part, list) for part in newest):
        return {"flat": True, "parts": [_learn_part_format([newest], 0, is_only=True)]}
    parts = [
        _learn_part_format(
            [answer[index] for answer in lists if index < len(answer)], index, len(newest) == 1
        )
        for index in range(len(newest))
    ]
    return {"parts": parts}


def _learn_part_format(samples: list[Any], index: int, is_only: bool) -> dict[str, Any]:
    """Return the format of part `index`, learned from its `samples`, the newest last.

    `is_only` means that the list has only this part.
    """
    newest = samples[-1] if isinstance(samples[-1], list) else []
    if index > 1:  # neither presets nor taught actions: rote does not know this part
        return {"presets": [], "taught": None, "unnamed": [], "others": _remove_texts(newest)}
    presets = [entry for entry in newest if _is_preset(entry, index, is_only)]
    unnamed = [
        entry
        for entry in newest
        if not _is_preset(entry, index, is_only) and not _read_entry_name(entry)
    ]
    named = [
        entry
        for sample in samples
        if isinstance(sample, list)
        for entry in sample
        if not _is_preset(entry, index, is_only) and _read_entry_name(entry)
    ]
    return {
        "presets": presets,
        "taught": learn_shape(named) if named else None,
        "unnamed": unnamed,
        "others": [],
    }


def _is_preset(entry: Any, index: int, is_only: bool) -> bool:
    """Whether an entry of part `index` is a preset: by its part, or in an only part by its id."""
    if is_only:
        return isinstance(entry, dict) and entry.get("id") is not None
    return index == 0


def _read_entry_name(entry: Any) -> str:
    name = entry.get("name") if isinstance(entry, dict) else entry
    return name if isinstance(name, str) else ""


def _remove_texts(entries: list[Any]) -> list[Any]:
    """Return the objects among the entries with empty texts, which might name the owner."""
    return [
        {key: "" if isinstance(value, str) else value for key, value in entry.items()}
        for entry in entries
        if isinstance(entry, dict)
    ]


def apply_list_format(lists: list[Any], format_: ListFormat) -> object:
    """Return the list of a simulated robot's actions in the format of a real robot.

    `lists` are its presets and its taught actions. The presets are replaced by the real robot's.
    """
    taught_actions = lists[1]
    parts = format_["parts"]
    # Taught actions go to the part that had some, otherwise to the second part or the only one.
    with_taught = [index for index, part in enumerate(parts) if part["taught"] is not None]
    taught_index = with_taught[0] if with_taught else min(1, len(parts) - 1)
    result = []
    for index, part in enumerate(parts):
        entries = [*part["presets"], *part["unnamed"], *part["others"]]
        if index == taught_index:
            entries += [_format_entry(action, part["taught"]) for action in taught_actions]
        result.append(entries)
    return result[0] if format_.get("flat") else result


def _format_entry(action: Any, shape: Shape | None) -> object:
    """Return a taught action as it appears in a real list: fitted to `shape`, or only its name."""
    if shape is None:
        return action
    if "text" in shape["kinds"] and "object" not in shape["kinds"]:
        return action["name"]
    return fit_to_shape(action, shape)
