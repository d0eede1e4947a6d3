"""The signatures of the public API, as text."""

import ast
import enum
import inspect
import re
import textwrap
import typing
from collections.abc import Iterator
from typing import Any

import rote
from rote.model.family import Build

_MODULE = re.compile(r"\b(?:[a-z_][a-z_0-9]*\.)+(?=[A-Za-z_])")
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_DUNDERS = ("__aiter__", "__iter__", "__len__", "__getitem__", "__call__", "__add__")


def public_api() -> str:
    """Return every public name with its signature, and the members of every class."""
    lines = [line for name in sorted(rote.__all__) for line in described(name, getattr(rote, name))]
    return "\n".join([*lines, *_blocking()]) + "\n"


def described(name: str, value: Any) -> Iterator[str]:
    """Yield the lines of one name."""
    if inspect.isclass(value):
        bases = ", ".join(each.__name__ for each in value.__bases__ if each is not object)
        yield f"class {name}({bases})"
        if value.__init__ is not object.__init__ and not issubclass(
            value, BaseException | enum.Enum
        ):
            yield f"  def __init__{_signature(value.__init__)}"
        yield from _members(value)
    elif callable(value):
        yield f"def {name}{_signature(value)}"
    elif inspect.ismodule(value):
        yield f"module {name}: {', '.join(sorted(value.__all__))}"
        yield from (
            f"  def {each}{_signature(getattr(value, each))}" for each in ("connect", "open")
        )
    else:
        yield f"{name}: {type(value).__name__}"


def _members(of: type) -> Iterator[str]:
    if issubclass(of, enum.Enum):
        yield from (f"  {each.name} = {each.value!r}" for each in of)
        return
    found: dict[str, str] = {name: f"  {name}" for name in _attributes(of)}
    for each in reversed(of.__mro__):
        if not each.__module__.startswith("rote"):
            continue
        for name, value in vars(each).items():
            if name in _DUNDERS or not name.startswith("_"):
                found[name] = f"  {_member(name, value)}"
    yield from (line for _, line in sorted(found.items()))


def _member(name: str, value: Any) -> str:
    if isinstance(value, property):
        assert value.fget is not None
        return f"{name} -> {_plain(inspect.signature(value.fget).return_annotation)}"
    if isinstance(value, classmethod | staticmethod):
        return f"{type(value).__name__} {name}{_signature(value.__func__)}"
    if inspect.isfunction(value):
        start = "async def" if inspect.iscoroutinefunction(value) else "def"
        return f"{start} {name}{_signature(value)}"
    return name


def _attributes(of: type) -> set[str]:
    """Return the public attributes that `__init__` sets, of the class and of what it inherits."""
    found: set[str] = set()
    for each in of.__mro__:
        init = vars(each).get("__init__")
        if not each.__module__.startswith("rote") or not inspect.isfunction(init):
            continue
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(init)))
        except OSError:  # made at run time: its signature has the fields
            continue
        for node in ast.walk(tree):
            match node:
                case ast.Attribute(value=ast.Name(id="self"), ctx=ast.Store(), attr=name):
                    found.add(name)
    return {name for name in found if not name.startswith("_")}


def _signature(of: Any) -> str:
    try:
        signature = inspect.signature(of)
    except ValueError:
        return "(...)"
    text = _plain(signature)
    for each in signature.parameters.values():
        if isinstance(each.default, Build):  # its name says which; its data may change
            text = text.replace(_plain(each.default), each.default.name)
        if each.kind is each.VAR_KEYWORD and (unpacked := typing.get_args(each.annotation)):
            keywords = unpacked[0]
            named = ", ".join(keywords.__annotations__)
            text = text.replace(f"*<class {keywords.__name__}>", f"{keywords.__name__}({named})")
    return text


def _plain(value: object) -> str:
    """Return an annotation or a signature without modules, quotes and addresses."""
    text = inspect.formatannotation(value) if not isinstance(value, inspect.Signature) else value
    return _ADDRESS.sub("", _MODULE.sub("", str(text)).replace("'", ""))


def _blocking() -> Iterator[str]:
    """Yield the members of what `rote.sync` hands out."""
    with rote.sync.connect("sim://g1?store=:memory:", family="g1") as robot:
        with robot.teach("motion") as take:
            for _ in zip(range(30), robot.states(), strict=False):
                pass  # a recording needs samples
        playing = robot.start("motion")
        playing.stop()
        for each in (robot, robot.modes, robot.audio, take, playing):
            yield f"sync {type(each).__name__}"
            yield from _proxy_members(each)
    with rote.sync.connect("sim://a1", family="a1") as dog:
        for part in (dog, dog.modes):
            yield f"sync {type(part).__name__}"
            yield from _proxy_members(part)


def _proxy_members(proxy: object) -> list[str]:
    attributes = {name for name in dir(proxy) if not name.startswith("_")}
    own = attributes - set(dir(type(proxy)))
    return sorted([*_members(type(proxy)), *(f"  {name}" for name in own)])
