"""The edits of the table as methods of a track: `track.trim(auto=True).smooth()`.

The methods are made from `rote.motion.edit.table` when this module is imported. For editors and
type checkers the build makes a stub, track_edits.pyi, with scripts/generate/track_edits_stub.py.
"""

from collections.abc import Callable
from inspect import Parameter as Argument
from inspect import Signature
from typing import Any

from rote.motion.edit.table import EDITS, KINDS, SEVERAL, Edit, Parameter, ParameterKind


class TrackEdits:
    """The edits that a track has as methods. Each returns a new track; this one stays as it is."""

    __slots__ = ()


def signature_of(edit: Edit) -> Signature:
    """Return the signature of an edit as a method; flags are given by name only."""
    flags = [each for each in edit.parameters if each.kind is ParameterKind.FLAG]
    values = [each for each in edit.parameters if each.kind is not ParameterKind.FLAG]
    arguments = [Argument("self", Argument.POSITIONAL_OR_KEYWORD)]
    if edit.tracks == SEVERAL:
        arguments.append(Argument("others", Argument.VAR_POSITIONAL, annotation="Track"))
    elif edit.tracks == 2:
        arguments.append(Argument("other", Argument.POSITIONAL_OR_KEYWORD, annotation="Track"))
    by_place = Argument.KEYWORD_ONLY if edit.tracks == SEVERAL else Argument.POSITIONAL_OR_KEYWORD
    arguments += [_argument(each, by_place) for each in values]
    arguments += [_argument(each, Argument.KEYWORD_ONLY) for each in flags]
    return Signature(arguments, return_annotation="Track")


def explanation_of(edit: Edit) -> str:
    """Return the docstring of an edit as a method."""
    return "\n\n".join([edit.summary, "\n".join(map(_explanation, edit.parameters))]).strip()


def _argument(parameter: Parameter, kind: Any) -> Argument:
    type_ = KINDS[parameter.kind].argument
    if parameter.required:
        return Argument(parameter.name, kind, annotation=type_)
    if parameter.default is None:
        type_ = type_ | None
    return Argument(parameter.name, kind, default=parameter.default, annotation=type_)


def _explanation(parameter: Parameter) -> str:
    text = f"`{parameter.name}`: {parameter.help}"
    if parameter.kind is ParameterKind.JOINTS:
        text = text.replace("May be repeated.", "Several are a list.")
    if parameter.range is not None:
        low, high, unit = parameter.range
        text += f" From {low:g} to {high:g} {unit}".rstrip() + "."
    return text


def _method(edit: Edit) -> Callable[..., Any]:
    signature = signature_of(edit)

    def apply(*args: Any, **options: Any) -> Any:
        try:
            bound = signature.bind(*args, **options)
        except TypeError as error:
            raise TypeError(f"{edit.name}() {error}") from None
        values = dict(bound.arguments)
        tracks = [values.pop("self"), *values.pop("others", ())]
        if "other" in values:
            tracks.append(values.pop("other"))
        return edit.apply(tracks, values)

    apply.__name__ = edit.name
    apply.__qualname__ = f"{TrackEdits.__name__}.{edit.name}"
    apply.__doc__ = explanation_of(edit)
    apply.__signature__ = signature  # type: ignore[attr-defined]
    return apply


for _edit in EDITS.values():
    setattr(TrackEdits, _edit.name, _method(_edit))
