"""Write src/rote/sync.pyi: the blocking API for type checkers and editors.

It reads the source alone, because the build has none of rote's dependencies. The rules are those
of `rote.blocking`, which makes the same members at run time.
"""

import ast
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from generated_part import write_changed

SOURCE = Path(__file__).parents[2] / "src" / "rote"
STUB = SOURCE / "sync.pyi"
AWAITED = {"Playing": "PlayReport", "Streaming": "StreamReport", "LegPlaying": "StreamReport"}
"""What awaiting an object of these classes returns; both are in `rote.robot.api_values`."""
BLOCKS = {"Teaching": "Take", "Leading": "Mirroring"}
"""The classes of blocks, and the class of the value of each."""
CLASSES: tuple[tuple[str, str, str, set[str]], ...] = (
    ("robot/take.py", "Take", "Blocking", {"add"}),
    ("robot/playing.py", "Playing", "Blocking", set()),
    ("robot/leading.py", "Mirroring", "Blocking", {"interrupt"}),
    ("robot/robot.py", "Modes", "Blocking", set()),
    ("robot/robot.py", "Audio", "Blocking", set()),
    ("robot/robot.py", "Robot", "Closable", {"close"}),
    ("robot/quadruped/modes.py", "A1Modes", "BlockingModes", set()),
    ("robot/quadruped/robot.py", "A1", "BlockingRobot", {"close"}),
)
"""Where each asynchronous class is, the base of its proxy, and the members the proxy has not."""
PARTS = {"Modes", "Audio", "A1Modes"}
"""Classes whose proxy a property of that type returns."""
HEAD = '''\
"""The same API, blocking. Made by scripts/generate/sync_stub.py; see sync.py."""

from collections.abc import Iterator
from typing import Literal, Unpack, overload

from rote.blocking import Blocking, BlockingBlock, BlockingConnection, Closable
from rote.connection import Options
from rote.robot.api_values import PlayReport, StreamReport

__all__ = [
    "connect", "open", "Blocking", "BlockingA1", "BlockingA1Modes", "BlockingAudio",
    "BlockingBlock", "BlockingConnection", "BlockingG1", "BlockingMirroring", "BlockingModes",
    "BlockingPlaying", "BlockingRobot", "BlockingTake",
]

'''
CALLS = '''
class BlockingG1(BlockingRobot):
    """One connected G1, as `rote.sync.connect(url, family="g1")` returns it."""

@overload
def connect(
    url: str, *, family: Literal["a1"], **options: Unpack[Options]
) -> BlockingConnection[BlockingA1]: ...
@overload
def connect(
    url: str = ..., *, family: Literal["g1"], **options: Unpack[Options]
) -> BlockingConnection[BlockingG1]: ...
@overload
def connect(
    url: str = ..., *, family: str | None = None, **options: Unpack[Options]
) -> BlockingConnection[BlockingRobot]: ...
@overload
def open(url: str, *, family: Literal["a1"], **options: Unpack[Options]) -> BlockingA1: ...
@overload
def open(url: str = ..., *, family: Literal["g1"], **options: Unpack[Options]) -> BlockingG1: ...
@overload
def open(
    url: str = ..., *, family: str | None = None, **options: Unpack[Options]
) -> BlockingRobot: ...
'''


@dataclass
class Module:
    """A source module, and the import that each of its names needs elsewhere."""

    dotted: str
    tree: ast.Module
    imports: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, path: str) -> "Module":
        """Read a module below `src/rote`."""
        dotted = "rote." + path.removesuffix(".py").replace("/", ".")
        module = cls(dotted, ast.parse((SOURCE / path).read_text(encoding="utf-8")))
        for node in module.tree.body:
            for each in node.body if isinstance(node, ast.If) else [node]:
                module.imports |= dict(module._imports_of(each))
        return module

    def _imports_of(self, node: ast.stmt) -> Iterator[tuple[str, str]]:
        match node:
            case ast.ImportFrom():
                for alias in node.names:
                    as_name = f" as {alias.asname}" if alias.asname else ""
                    line = f"from {node.module} import {alias.name}{as_name}"
                    yield alias.asname or alias.name, line
            case ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                yield name, f"from {self.dotted} import {name}"
            case ast.Assign(targets=[ast.Name(id=name)]):
                yield name, f"from {self.dotted} import {name}"

    def class_named(self, name: str) -> ast.ClassDef:
        """Return a class of the module."""
        return next(n for n in self.tree.body if isinstance(n, ast.ClassDef) and n.name == name)


class Writer:
    """Writes the classes of the stub, and collects what they import."""

    def __init__(self) -> None:
        self.imports: set[str] = set()
        self._docs = _docs_of(ast.parse((SOURCE / "sync.py").read_text(encoding="utf-8")))

    def class_text(self, path: str, source: str, base: str, without: set[str]) -> str:
        """Return the stub of one class."""
        module = Module.read(path)
        lines = [f"\nclass Blocking{source}({base}):", _doc(self._docs[f"Blocking{source}"])]
        for node in module.class_named(source).body:
            if isinstance(node, ast.FunctionDef) and node.name == "__init__":
                lines += self._attributes(module, node)
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.name in without:
                continue
            if not node.name.startswith("_") or node.name == "__aiter__":
                doc = self._docs.get(f"{source}.{node.name}") or ast.get_docstring(node) or ""
                lines += [*self._member(module, node), textwrap.indent(_doc(doc), "    ")]
        return "\n".join(lines) + "\n"

    def _attributes(self, module: Module, init: ast.FunctionDef) -> Iterator[str]:
        """Yield the public attributes that `__init__` sets, as properties."""
        arguments = {each.arg: each.annotation for each in init.args.args + init.args.kwonlyargs}
        annotation: ast.expr | None
        for node, following in zip(init.body, [*init.body[1:], None], strict=True):
            match node:
                case ast.AnnAssign(target=ast.Attribute(attr=name), annotation=annotation):
                    pass
                case ast.Assign(targets=[ast.Attribute(attr=name)], value=ast.Name(id=value)):
                    annotation = arguments.get(value)
                case ast.Assign(targets=[ast.Attribute(attr=name)], value=ast.Constant(value)):
                    annotation = ast.Name(type(value).__name__)
                case _:
                    continue
            if name.startswith("_"):
                continue
            assert annotation is not None, f"annotate {name} of {module.dotted}"
            match following:
                case ast.Expr(value=ast.Constant(value=str(doc))):
                    pass
                case _:
                    doc = ""
            yield f"    @property\n    def {name}(self) -> {self._typed(module, annotation)}:"
            yield textwrap.indent(_doc(doc), "    ")

    def _member(
        self, module: Module, node: ast.FunctionDef | ast.AsyncFunctionDef
    ) -> Iterator[str]:
        assert node.returns is not None
        if any(
            isinstance(each, ast.Name) and each.id == "property" for each in node.decorator_list
        ):
            match node.returns:
                case ast.Name(id=name) if name in PARTS:
                    returns = f"Blocking{name}"
                case _:
                    returns = self._typed(module, node.returns)
            yield f"    @property\n    def {node.name}(self) -> {returns}:"
            return
        name = "__iter__" if node.name == "__aiter__" else node.name
        self._typed(module, node.args)
        arguments = ast.unparse(node.args).replace(": 'Robot'", ": BlockingRobot")
        yield f"    def {name}({arguments}) -> {self._result(module, node)}:"

    def _result(self, module: Module, node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
        """Return the annotation of a blocking method's result."""
        assert node.returns is not None
        is_async = isinstance(node, ast.AsyncFunctionDef) and node.name != "__aiter__"
        match _unquoted(node.returns):
            case ast.Name(id="Playing") if is_async:
                return "BlockingPlaying"
            case ast.Name(id=name) if name in AWAITED:
                return AWAITED[name]
            case ast.Name(id=name) if name in BLOCKS:
                return f"BlockingBlock[Blocking{BLOCKS[name]}]"
            case ast.Subscript(value=ast.Name(id="AsyncIterator"), slice=inner):
                return f"Iterator[{self._typed(module, inner)}]"
            case ast.Subscript(value=ast.Name(id="Awaitable"), slice=inner):
                return self._typed(module, inner)
            case returns:
                return self._typed(module, returns)

    def _typed(self, module: Module, node: ast.AST) -> str:
        """Return an annotation as text, and import its names."""
        for each in ast.walk(node):
            if isinstance(each, ast.Constant) and isinstance(each.value, str):
                inner = _unquoted(each)
                if inner is not each:
                    self._typed(module, inner)
            if isinstance(each, ast.Name) and each.id in module.imports:
                self.imports.add(module.imports[each.id])
        return ast.unparse(node)


def _docs_of(sync: ast.Module) -> dict[str, str]:
    """Return the docstrings of `rote.sync`: of its classes, and of methods that have their own."""
    docs: dict[str, str] = {}
    for node in ast.walk(sync):
        match node:
            case ast.ClassDef():
                docs[node.name] = ast.get_docstring(node) or ""
            case ast.Assign(targets=[ast.Name(id="_DOCS")], value=table):
                docs |= ast.literal_eval(table)
    return docs


def _doc(text: str) -> str:
    first, _, rest = text.strip().partition("\n")
    whole = f"{first}\n{textwrap.dedent(rest)}".strip()
    return textwrap.indent(f'"""{whole}"""', "    ")


def _unquoted(node: ast.expr) -> ast.expr:
    """Return an annotation that was written as a string, parsed."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            return ast.parse(node.value, mode="eval").body
        except SyntaxError:
            return node
    return node


def stub() -> str:
    """Return the text of the stub."""
    writer = Writer()
    classes = "".join(writer.class_text(*each) for each in CLASSES)
    return HEAD + "\n".join(sorted(writer.imports)) + "\n" + classes + CALLS


def write() -> Path:
    """Write the stub where it is missing or stale, and return its path."""
    return write_changed(STUB, stub())


if __name__ == "__main__":
    write()
