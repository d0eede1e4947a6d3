"""Write src/rote/blocking_robots.py and blocking_a1.py: the asynchronous API, without `await`.

Signatures and docstrings are read from the classes of the asynchronous API. What a blocking method
returns follows from what the asynchronous one returns:

    async def f() -> T, def f() -> Awaitable[T]   T
    def f() -> AsyncIterator[T]                   Iterator[T]
    def f() -> Playing                            the report that awaiting it returns
    async def f() -> Playing                      BlockingPlaying
    def f() -> Teaching                           a block whose value is a BlockingTake
    def f() -> T                                  T
"""

import ast
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "rote"
AWAITED = {"Playing": "PlayReport", "Streaming": "StreamReport", "LegPlaying": "StreamReport"}
"""What awaiting an object of these classes returns; both are in `rote.robot.api_values`."""
LEFT_OUT = {("Take", "add"), ("Playing", "noted_in"), ("A1", "close")}
"""What only rote itself calls, or is the same for all robots."""

OWN_WORDS = {
    ("Robot", "teach"): """Teach a motion: joints are soft inside the `with` block and hold again
        after it.

        The block's value is a `BlockingTake`. `overwrite` replaces an action of the same name,
        `force` skips rote's own doubts, a `library` keeps the take on this computer's disk. Raises
        `BadRequestError` for an impossible name, and on entering `CautionError` or `RefusedError`
        if teaching is not possible now.""",
    ("Robot", "states"): """Iterate over the robot's states as they arrive.

        Raises `LinkError` when the robot is lost.""",
    ("Robot", "play"): """Play a taught action, by its name or by its number in the list, and
        return its report when it is over.

        Ctrl-C stops the robot softly. `start` returns at once, for a motion to be watched or
        stopped.""",
    ("Robot", "start"): """Begin to play a taught action, and return when the robot has accepted;
        raise if it refuses.

        The result is iterated over to watch, or `stop`ped. Arguments are those of `play`.""",
    ("Robot", "play_track"): """Play a track of this computer, and return its report when it is
        over.

        `rate_hz` poses per second are sent; `speed` is a factor. The track is checked first: errors
        raise `UnsafeMotionError`, warnings `WarnedMotionError` unless `force` is true. A track of
        another build raises `OtherBuildError`; with `mapped` it is played by joint names. Joints of
        hands are played only with `hands`. What was `checked` of this very track is not checked
        again. Ctrl-C stops the robot softly.""",
    ("Robot", "stand"): "Bring the robot into a balanced stand, and return when it stands.",
    ("Robot", "lie_down"): "Make the robot lie down. It returns when the command is sent.",
    ("Robot", "close"): """End what was begun over this connection, then close it. Safe to repeat.

        Joints that are being taught hold, a playback stops softly. A `with rote.sync.connect(...)`
        block closes the connection by itself.""",
    ("A1", "teach"): """Teach a motion: the legs are soft inside the `with` block, and braked after
        it.

        The robot must lie or hang: soft legs carry nothing, and `force` does not change that. An A1
        stores no motions, so the take is on this computer only; with a `library` it is on its disk
        while it is recorded. Arguments and errors are those of `BlockingRobot.teach`.""",
    ("A1", "play_track"): """Play a track of the twelve joints, hold its last pose, and return the
        report.

        It is checked first, whatever was `checked` before, and begins with a soft move from where
        the legs are. Legs are always driven 500 times a second, and what only warns does not keep
        an A1 from playing. Ctrl-C stops the robot.""",
    ("A1", "damp"): """Let the legs give way softly, at once: all motors damp themselves. The robot
        sinks.

        It is this robot's stop in an emergency, so it never asks back: `yes` changes nothing.
        Dialect 3.2 knows no word for it on its high level; there the robot stands.""",
    ("A1", "stand"): "Stand upright on the spot, and return when it stands; a lying robot gets up.",
    ("A1", "lie_down"): "Lie down; dialect 3.2 cannot. It returns when the command is sent.",
    ("A1", "states"): """Iterate over the states as they arrive; a slow reader misses some.

        Raises `LinkError` when the robot is lost.""",
    ("A1", "native_states"): """Iterate over the states as the robot sends them; a slow reader
        misses some.

        Raises `LinkError` when the robot is lost.""",
    ("Playing", "__aiter__"): "Iterate over the progress until the playback is over.",
    ("Playing", "wait"): """Wait for the end, soft return included, and return the report.

        Ctrl-C in the wait does not stop the robot.""",
}  # fmt: skip
"""Docstrings of blocking methods that differ from the asynchronous ones."""


@dataclass(frozen=True)
class Face:
    """One class to write."""

    module: str
    """Where the asynchronous class is, as a path below `src/rote`."""
    source: str
    base: str
    doc: str

    @property
    def name(self) -> str:
        """The name of the blocking class."""
        return f"Blocking{self.source}"


ROBOTS = (
    Face(
        "robot/take.py", "Take", "Blocking[Take]",
        "A take, as `with robot.teach(...) as take` has it. Its `track` is the recording.",
    ),
    Face(
        "robot/playing.py", "Playing", "Blocking[Playing]",
        "What `robot.start` returns: iterate over it to watch, `wait` for the end, or `stop` it.",
    ),
    Face(
        "robot/robot.py", "Robot", "Closable[Robot]",
        "One connected robot, as `rote.sync.connect` and `rote.sync.open` return it.",
    ),
)  # fmt: skip
A1 = (
    Face(
        "robot/quadruped/robot.py", "A1", "BlockingRobot",
        "One connected A1 or Go1, as `rote.sync.connect(url, family=\"a1\")` returns it.",
    ),
)  # fmt: skip


@dataclass
class Module:
    """What one source module imports and defines: where a name comes from."""

    dotted: str
    tree: ast.Module
    lines: dict[str, str] = field(default_factory=dict)
    """The import of each name."""
    late: set[str] = field(default_factory=set)
    """Names imported for type checkers only."""

    @classmethod
    def read(cls, path: str) -> "Module":
        """Read a module below `src/rote`."""
        dotted = "rote." + path.removesuffix(".py").replace("/", ".")
        module = cls(dotted, ast.parse((SOURCE / path).read_text(encoding="utf-8")))
        for node in module.tree.body:
            if isinstance(node, ast.If):
                module._imports(node.body, late=True)
        module._imports(module.tree.body, late=False)
        return module

    def _imports(self, body: list[ast.stmt], *, late: bool) -> None:
        for node in body:
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    name = alias.asname or alias.name
                    asname = f" as {alias.asname}" if alias.asname else ""
                    self._add(name, f"from {node.module} import {alias.name}{asname}", late)
            elif isinstance(node, ast.ClassDef):
                self._add(node.name, f"from {self.dotted} import {node.name}", late)
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    if isinstance(target, ast.Name):
                        self._add(target.id, f"from {self.dotted} import {target.id}", late)

    def _add(self, name: str, line: str, late: bool) -> None:
        self.lines[name] = line
        if late:
            self.late.add(name)

    def class_named(self, name: str) -> ast.ClassDef:
        """Return a class of the module."""
        return next(n for n in self.tree.body if isinstance(n, ast.ClassDef) and n.name == name)


class Writer:
    """Writes the classes of one module, and collects what they import."""

    def __init__(self) -> None:
        self.imports: set[str] = set()
        self.late: set[str] = set()
        self._written: set[str] = set()

    def written(self, face: Face) -> str:
        """Return the source of one class."""
        module = Module.read(face.module)
        body = module.class_named(face.source).body
        self._needed(module, ast.Name(face.source))
        parts = [f"class {face.name}({face.base}):\n    {_doc(face.doc)}"]
        if face.base == "BlockingRobot":
            parts.append(f"    _target: {face.source}")
        for node in body:
            if isinstance(node, ast.FunctionDef) and node.name == "__init__":
                parts += self._attributes(face, module, node)
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                public = not node.name.startswith("_") or node.name == "__aiter__"
                if public and (face.source, node.name) not in LEFT_OUT:
                    parts.append(self._member(face, module, node))
        return "\n\n".join(parts) + "\n"

    def _needed(self, module: Module, *nodes: ast.AST) -> None:
        """Import the names in these annotations and defaults."""
        for node in nodes:
            for each in ast.walk(node):
                if isinstance(each, ast.Constant) and isinstance(each.value, str):
                    with_names = _parsed(each.value)
                    if with_names is not None:
                        self._needed(module, with_names)
                if isinstance(each, ast.Name) and each.id in module.lines:
                    late = each.id in module.late
                    (self.late if late else self.imports).add(module.lines[each.id])

    def _attributes(self, face: Face, module: Module, init: ast.FunctionDef) -> Iterator[str]:
        """Yield the public attributes that `__init__` sets, as properties."""
        arguments = {a.arg: a.annotation for a in init.args.args + init.args.kwonlyargs}
        docs = _attribute_docs(init)
        for node in init.body:
            target = _own_attribute(node)
            if target is None or target.startswith("_"):
                continue
            if isinstance(node, ast.AnnAssign):
                annotation: ast.expr | None = node.annotation
            else:
                assert isinstance(node, ast.Assign)
                value = node.value
                if isinstance(value, ast.Name):
                    annotation = arguments[value.id]
                else:
                    assert isinstance(value, ast.Constant), f"annotate {face.source}.{target}"
                    annotation = ast.Name(type(value.value).__name__)
            assert annotation is not None
            self._needed(module, annotation)
            assert target in docs, f"{face.source}.{target} has no docstring"
            yield _property(target, ast.unparse(annotation), docs[target])

    def _member(
        self, face: Face, module: Module, node: ast.FunctionDef | ast.AsyncFunctionDef
    ) -> str:
        doc = OWN_WORDS.get((face.source, node.name)) or ast.get_docstring(node, clean=False) or ""
        assert node.returns is not None
        if any(isinstance(d, ast.Name) and d.id == "property" for d in node.decorator_list):
            self._needed(module, node.returns)
            return _property(node.name, ast.unparse(node.returns), doc)
        if node.name == "__aiter__":
            return self._iteration(module, node, doc)
        if node.name == "close":
            return f"    def close(self) -> None:\n        {_doc(doc)}\n        {_CLOSE}"
        self._needed(module, node.args)
        passed = _passed(node.args)
        given = f"self._target.{node.name}"
        if passed:
            given = f"lambda: {given}({passed})"
        returns, body = self._result(module, node, given)
        return (
            f"    def {node.name}({ast.unparse(node.args)}) -> {returns}:\n"
            f"        {_doc(doc)}\n        {body}"
        )

    def _iteration(
        self, module: Module, node: ast.FunctionDef | ast.AsyncFunctionDef, doc: str
    ) -> str:
        inner = _inner(node.returns, "AsyncIterator")
        assert inner is not None
        self._needed(module, inner)
        self.imports.add("from collections.abc import Iterator")
        return (
            f"    def __iter__(self) -> Iterator[{ast.unparse(inner)}]:\n        {_doc(doc)}\n"
            "        return self._iterate(self._target.__aiter__)"
        )

    def _result(
        self, module: Module, node: ast.FunctionDef | ast.AsyncFunctionDef, given: str
    ) -> tuple[str, str]:
        """Return the annotation of a blocking method's result, and the body that makes it."""
        assert node.returns is not None
        returns, is_async = _unquoted(node.returns), isinstance(node, ast.AsyncFunctionDef)
        text = ast.unparse(returns)
        if text == "Playing" and is_async:
            face = f"BlockingPlaying(self._thread, self._run({given}))"
            return '"BlockingPlaying"', f"return {face}"
        if text in AWAITED:
            self.imports.add(f"from rote.robot.api_values import {AWAITED[text]}")
            return AWAITED[text], f"return self._run({given})"
        if text == "Teaching":
            self.imports.add("from rote.blocking import BlockingBlock")
            block = f"BlockingBlock(self._thread, self._call({given}), BlockingTake)"
            return "BlockingBlock[BlockingTake]", f"return {block}"
        if (inner := _inner(returns, "AsyncIterator")) is not None:
            self._needed(module, inner)
            self.imports.add("from collections.abc import Iterator")
            return f"Iterator[{ast.unparse(inner)}]", f"return self._iterate({given})"
        awaited = _inner(returns, "Awaitable")
        self._needed(module, awaited or node.returns)
        text = ast.unparse(awaited or node.returns)
        how = "_run" if is_async or awaited is not None else "_call"
        call = f"self.{how}({given})"
        return text, call if text == "None" else f"return {call}"


_CLOSE = "self._close(self._target.close)"


def _doc(text: str) -> str:
    """Return a docstring as it stands in a method."""
    first, _, rest = text.strip().partition("\n")
    rest = textwrap.indent(textwrap.dedent(rest), " " * 8).rstrip()
    quote = '"""'
    if not rest:
        return f"{quote}{first}{quote}"
    return f"{quote}{first}\n{rest}\n        {quote}"


def _property(name: str, annotation: str, doc: str) -> str:
    return (
        f"    @property\n    def {name}(self) -> {annotation}:\n        {_doc(doc)}\n"
        f"        return self._target.{name}"
    )


def _own_attribute(node: ast.stmt) -> str | None:
    """Return the attribute of `self` that a statement sets."""
    targets = node.targets if isinstance(node, ast.Assign) else []
    if isinstance(node, ast.AnnAssign):
        targets = [node.target]
    match targets:
        case [ast.Attribute(value=ast.Name(id="self"), attr=name)]:
            return name
    return None


def _attribute_docs(init: ast.FunctionDef) -> dict[str, str]:
    """Return what stands below each attribute as a string."""
    docs: dict[str, str] = {}
    for node, following in zip(init.body, init.body[1:], strict=False):
        name = _own_attribute(node)
        if name and isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
            docs[name] = str(following.value.value)
    return docs


def _passed(arguments: ast.arguments) -> str:
    """Return the arguments as they are handed on."""
    by_place = [a.arg for a in (*arguments.posonlyargs, *arguments.args)][1:]
    return ", ".join([*by_place, *(f"{a.arg}={a.arg}" for a in arguments.kwonlyargs)])


def _parsed(text: str) -> ast.expr | None:
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError:
        return None


def _unquoted(node: ast.expr) -> ast.expr:
    """Return an annotation that was written as a string, parsed."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _parsed(node.value) or node
    return node


def _inner(node: ast.expr | None, outer: str) -> ast.expr | None:
    """Return T of `outer[T]`, or None."""
    match node:
        case ast.Subscript(value=ast.Name(id=name), slice=inner) if name == outer:
            return inner
    return None


def _module(doc: str, faces: tuple[Face, ...], imports: set[str], more: str = "") -> str:
    writer = Writer()
    classes = "\n\n".join(writer.written(face) for face in faces) + more
    lines = sorted(writer.imports | imports)
    late = "".join(f"    {line}\n" for line in sorted(writer.late - writer.imports))
    checking = f"if TYPE_CHECKING:\n{late}\n" if late else ""
    names = [face.name for face in faces] + (["BlockingG1"] if more else [])
    head = f'"""{doc}\n\nMade by `python scripts/blocking_robots.py`; do not edit it.\n"""\n'
    typing = "from typing import TYPE_CHECKING\n" if late else ""
    text = f"{head}\n{typing}{chr(10).join(lines)}\n\n{checking}__all__ = {names!r}\n\n\n{classes}"
    return formatted(text)


def formatted(text: str) -> str:
    """Return the source of a module as `make format` would write it."""
    ruff = [sys.executable, "-m", "ruff"]
    for command in (
        [*ruff, "check", "--select", "I", "--fix", "--quiet", "-"],
        [*ruff, "format", "-"],
    ):
        command += ["--stdin-filename", str(SOURCE / "generated.py")]
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, check=True, cwd=ROOT
        )
        text = done.stdout
    return text


G1 = '''

class BlockingG1(BlockingRobot):
    """One connected G1, as `rote.sync.connect(url, family="g1")` returns it."""
'''


def generated() -> dict[Path, str]:
    """Return the text of each file."""
    closable = {"from rote.blocking import Blocking, Closable"}
    robots = "from rote.blocking_robots import BlockingRobot, BlockingTake"
    return {
        SOURCE / "blocking_robots.py": _module(
            "The robots, takes and playbacks of the API, blocking.", ROBOTS, closable, G1
        ),
        SOURCE / "blocking_a1.py": _module("The A1 and the Go1, blocking.", A1, {robots}),
    }


def main() -> None:
    """Write both files."""
    for path, text in generated().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
