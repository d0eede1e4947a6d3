"""`record`: a frozen dataclass with slots that is quick to define.

`dataclasses.dataclass` compiles six functions for such a class. The messages and models alone are
fifty classes, and defining them took a tenth of the time of a short command. Here one function is
compiled for each, its `__init__`, and all share the others. Fields, defaults, `replace`, `fields`,
`asdict`, pattern matching, copies and pickles are those of a dataclass.
"""

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform, overload

_Class = TypeVar("_Class", bound=type[Any])
_store = object.__setattr__


@overload
def record(cls: _Class, /) -> _Class: ...
@overload
def record(*, kw_only: bool = False, eq: bool = True) -> Callable[[_Class], _Class]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: Any = None, /, *, kw_only: bool = False, eq: bool = True) -> Any:
    """Make a class a frozen dataclass with slots; with `eq=False` only itself is equal to it."""

    def make(plain: type[Any]) -> type[Any]:
        made: type[Any] = dataclass(init=False, repr=False, eq=False, slots=True, kw_only=kw_only)(
            plain
        )
        shared = _SHARED | (_COMPARED if eq else {}) | {"__init__": _initialiser(made)}
        for name, function in shared.items():
            if name not in plain.__dict__:
                setattr(made, name, function)
        made.__record_values__ = staticmethod(_values_of(tuple(made.__dataclass_fields__)))
        return made

    return make if cls is None else make(cls)


def _initialiser(cls: type[Any]) -> Callable[..., None]:
    """Compile the `__init__` of a record from its fields."""
    given = [each for each in fields(cls) if each.init]
    known: dict[str, Any] = {"_store": _store}
    places = [_parameter(each, known) for each in given if not each.kw_only]
    keywords = [_parameter(each, known) for each in given if each.kw_only]
    parameters = ", ".join(["self", *places, *(["*", *keywords] if keywords else [])])
    body = [f"_store(self, {each.name!r}, {_value(each)})" for each in given]
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    source = f"def __init__({parameters}):\n " + "\n ".join(body or ["pass"])
    exec(source, known)  # noqa: S102 - of the names of fields only
    made: Callable[..., None] = known["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return made


def _parameter(each: Field[Any], known: dict[str, Any]) -> str:
    """Return a parameter as source; what it refers to is added to `known`."""
    if each.default_factory is not MISSING:
        known[f"_made_{each.name}"] = each.default_factory
        return f"{each.name}=_store"  # stands for a missing value; callers never pass it
    if each.default is not MISSING:
        known[f"_default_{each.name}"] = each.default
        return f"{each.name}=_default_{each.name}"
    return each.name


def _value(each: Field[Any]) -> str:
    if each.default_factory is MISSING:
        return each.name
    return f"_made_{each.name}() if {each.name} is _store else {each.name}"


# ---- what all records share ---------------------------------------------------------------------


def _values_of(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that gets the fields of these names as a tuple."""
    if not names:
        return lambda _: ()
    return attrgetter(*names, *names) if len(names) == 1 else attrgetter(*names)  # one is no tuple


def _repr(self: Any) -> str:
    shown = (f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _eq(self: Any, other: Any) -> Any:
    if type(other) is not type(self):
        return NotImplemented
    values = self.__record_values__
    return values(self) == values(other)


def _hash(self: Any) -> int:
    return hash(self.__record_values__(self))


def _no_set(self: Any, name: str, _value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _no_delete(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, name) for name in self.__dataclass_fields__]


def _restore(self: Any, values: list[Any]) -> None:
    for name, value in zip(self.__dataclass_fields__, values, strict=True):
        _store(self, name, value)


_COMPARED: dict[str, Any] = {"__eq__": _eq, "__hash__": _hash}
_SHARED: dict[str, Any] = {
    "__repr__": _repr,
    "__setattr__": _no_set,
    "__delattr__": _no_delete,
    "__getstate__": _state,
    "__setstate__": _restore,
}
