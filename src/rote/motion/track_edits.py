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
    """Return the signature of an edit as a method.

    Flags are given by name only; so are all parameters if the method takes any number of tracks.
    """
    flags = [parameter for parameter in edit.parameters if parameter.kind is ParameterKind.FLAG]
    values = [
        parameter for parameter in edit.parameters if parameter.kind is not ParameterKind.FLAG
    ]
    arguments = [Argument("self", Argument.POSITIONAL_OR_KEYWORD)]
    if edit.tracks == SEVERAL:
        arguments.append(Argument("others", Argument.VAR_POSITIONAL, annotation="Track"))
    elif edit.tracks == 2:
        arguments.append(Argument("other", Argument.POSITIONAL_OR_KEYWORD, annotation="Track"))
    value_kind = Argument.KEYWORD_ONLY if edit.tracks == SEVERAL else Argument.POSITIONAL_OR_KEYWORD
    arguments += [_make_argument(parameter, value_kind) for parameter in values]
    arguments += [_make_argument(parameter, Argument.KEYWORD_ONLY) for parameter in flags]
    return Signature(arguments, return_annotation="Track")


def explanation_of(edit: Edit) -> str:
    """Return the docstring of an edit as a method."""
    return "\n\n".join([edit.summary, "\n".join(map(_explain_parameter, edit.parameters))]).strip()


def _make_argument(parameter: Parameter, inspect_kind: Any) -> Argument:
    """Return the `inspect.Parameter` for a parameter of an edit."""
    annotation = KINDS[parameter.kind].argument
    if parameter.required:
        return Argument(parameter.name, inspect_kind, annotation=annotation)
    if parameter.default is None:
        annotation = annotation | None
    return Argument(parameter.name, inspect_kind, default=parameter.default, annotation=annotation)


def _explain_parameter(parameter: Parameter) -> str:
    """Return the line of a method's docstring for one parameter."""
    text = f"`{parameter.name}`: {parameter.help}"
    if parameter.kind is ParameterKind.JOINTS:
        # The help text is written for the command line.
        text = text.replace("May be repeated.", "Give several as a list.")
    if parameter.range is not None:
        low, high, unit = parameter.range
        text += f" From {low:g} to {high:g} {unit}".rstrip() + "."
    return text


def _make_method(edit: Edit) -> Callable[..., Any]:
    """Return the method of `Track` that applies an edit, with its signature and docstring."""
    signature = signature_of(edit)

    def apply(*args: Any, **options: Any) -> Any:
        try:
            bound = signature.bind(*args, **options)
        except TypeError as error:
            raise TypeError(f"{edit.name}() {error}") from None
        values = dict(bound.arguments)
        # The names that `signature_of` gives to the arguments that are tracks.
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
    setattr(TrackEdits, _edit.name, _make_method(_edit))
