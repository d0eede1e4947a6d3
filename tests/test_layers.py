"""The packages and which of them each may import, read from the imports."""

import ast
import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1] / "src" / "rote"
MODULES = sorted(ROOT.rglob("*.py"))

VOCABULARY = {"errors", "findings", "messages", "model", "named_enum", "platform", "text"}
CODECS = VOCABULARY | {"motion", "wire"}
TRANSPORTS = CODECS | {"session", "transport"}
ROBOTS = TRANSPORTS | {"robot", "sim", "connection", "__init__"}
MAY_IMPORT: dict[str, set[str]] = {
    "named_enum": set(),
    "text": set(),
    "findings": {"text"},
    "errors": {"platform", "text"},
    "platform": {"errors", "text"},
    "model": {"errors", "named_enum", "text"},
    "messages": {"model", "named_enum", "text"},
    "wire": VOCABULARY,
    "motion": VOCABULARY | {"wire"},
    "session": VOCABULARY | {"wire"},
    "batch": VOCABULARY | {"motion"},
    "transport": VOCABULARY | {"wire", "session"},
    "robot": TRANSPORTS,
    "sim": TRANSPORTS,
    "capture": VOCABULARY | {"wire"},
    "connection": TRANSPORTS | {"robot", "sim"},
    "stage": ROBOTS,
    "bridge": ROBOTS,
    "trial": ROBOTS | {"capture"},
    "blocking": VOCABULARY,
    "sync": VOCABULARY | {"blocking", "transport", "connection", "robot"},
    "compat": ROBOTS | {"sync"},
    "web": ROBOTS | {"stage", "bridge"},
    "cli": ROBOTS | {"batch", "bridge", "capture", "stage", "sync", "trial", "web"},
    "__main__": {"cli", "capture", "errors", "platform", "stage"},
    "__init__": VOCABULARY | {"connection", "stage", "motion", "robot", "sim", "sync", "wire"},
}

# What pure code may not touch: it gets bytes and the time as arguments.
PURE = {
    "text", "findings", "errors", "model", "messages", "named_enum", "wire", "session",
    "motion", "stage/show",
}  # fmt: skip
# The parts of `platform` that pure code may import: none of them has a clock or an event loop.
PURE_PLATFORM = {"atomic_file", "console_text", "distribution", "paths", "system"}
IMPURE = {"asyncio", "socket", "time", "random", "logging", "threading", "subprocess"}
DISK = {"os", "tempfile", "pathlib", "shutil", "io", "fcntl"}
FILES_MAY = {
    "motion/files": DISK,
    "motion/files/exchange": DISK,
    "motion/formats.py": {"pathlib"},
    "motion/draw/plot.py": {"pathlib"},
    "motion/draw/figure.py": {"pathlib"},
    "model/g1.py": {"pathlib"},  # its shapes are a packaged data file
}

# A carrier or heavy library has one home.
HOMES: dict[str, str | tuple[str, ...]] = {
    "aiortc": ("transport/webrtc/stack.py", "transport/webrtc/aiortc_adapters.py"),
    "cyclonedds": (
        "transport/dds/participant.py",
        "transport/dds/types.py",
        "transport/dds/ros_types.py",
    ),
    "h11": "transport/webrtc/http.py",
    "ray": "batch/run.py",
    "zenoh": "transport/zenoh/bus.py",
    "ifaddr": ("transport/discovery.py", "platform/check.py"),
    "lz4": ("motion/files/mcap_records.py", "capture/read/compressed.py"),
    "matplotlib": "motion/draw/plot.py",
    "mcap": "motion/files/mcap_records.py",
    "mujoco": "motion/body/contact.py",
    "pandas": "motion/track.py",
    "PIL": "motion/draw/figure.py",
    "pyarrow": "motion/files/lerobot.py",
    "zstandard": ("motion/files/mcap_records.py", "capture/read/compressed.py"),
    "cryptography": (
        "wire/webrtc/signalling.py",
        "capture/decode/decrypt.py",
        "transport/certificates.py",
    ),
    "sqlite3": ("sim/store.py", "cli/completion.py"),
    "uvloop": "platform/loop.py",
    "mcp": "bridge/mcp_server.py",
    "httpx2": "bridge/pendant_client.py",
    "websockets": "bridge/foxglove_server.py",
}


def part_of(path: Path) -> str:
    relative = path.relative_to(ROOT)
    return relative.parts[0].removesuffix(".py")


class Facts(NamedTuple):
    """What the rules below ask of a module, from one reading of it."""

    imports: frozenset[str]
    """Every module that it imports, with `from rote import x` read as `rote.x`."""
    purpose: str | None
    classes: list[str]
    handed_on: list[str]
    """Names that it imports `as` themselves."""


def iterate_statements(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield every statement; expressions are most nodes, and contain no import and no class."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for block in ("body", "orelse", "handlers", "finalbody", "cases"):
            waiting += getattr(node, block, ())


@functools.cache
def facts(path: Path) -> Facts:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = list(iterate_statements(tree))
    imported: set[str] = set()
    handed_on: list[str] = []
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            handed_on += [alias.name for alias in node.names if alias.name == alias.asname]
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide an arrow"
            module = node.module or ""
            if module == "rote":
                imported |= {f"rote.{alias.name}" for alias in node.names}
            else:
                imported.add(module)
    return Facts(
        frozenset(imported),
        ast.get_docstring(tree),
        [node.name for node in nodes if isinstance(node, ast.ClassDef)],
        handed_on,
    )


def place(path: Path) -> str:
    return str(path.relative_to(ROOT))


def outer(path: Path) -> set[str]:
    """The packages that a module imports from."""
    return {name.split(".")[0] for name in facts(path).imports}


def found(wrong: Callable[[Path], Any]) -> dict[str, Any]:
    """Return what is wrong in which module."""
    judged = {place(path): wrong(path) for path in MODULES}
    return {name: what for name, what in judged.items() if what}


def test_a_module_imports_only_what_its_layer_may() -> None:
    def wrong(path: Path) -> set[str]:
        part = part_of(path)
        inner = {name.split(".")[1] for name in facts(path).imports if name.startswith("rote.")}
        if "__version__" in inner:
            inner = inner - {"__version__"} | {"__init__"}
        return inner - {part} - MAY_IMPORT[part]

    assert found(wrong) == {}


def test_motion_needs_nothing_of_wire_but_the_codec_of_its_files() -> None:
    def wrong(path: Path) -> set[str]:
        used = {name for name in facts(path).imports if name.startswith("rote.wire")}
        return used - {"rote.wire.cdr_layout"} if part_of(path) == "motion" else set()

    assert found(wrong) == {}


def test_the_parts_of_capture_import_each_other_one_way() -> None:
    order = ("read", "decode", "judge", "report")

    def wrong(path: Path) -> set[str]:
        folder = place(path.parent).removeprefix("capture/")
        if folder not in order:
            return set()
        later = {f"rote.capture.{name}" for name in order[order.index(folder) + 1 :]}
        return {name for name in facts(path).imports if ".".join(name.split(".")[:3]) in later}

    assert found(wrong) == {}


def test_pure_code_has_no_clock_no_socket_and_no_disk() -> None:
    def wrong(path: Path) -> set[str]:
        if part_of(path) not in PURE and place(path.parent) not in PURE:
            return set()
        allowed = FILES_MAY.get(place(path), set()) | FILES_MAY.get(place(path.parent), set())
        platform = {
            name.split(".")[2] for name in facts(path).imports if name.startswith("rote.platform.")
        }
        return (outer(path) & (IMPURE | (DISK - allowed))) | (platform - PURE_PLATFORM)

    assert found(wrong) == {}


def test_a_heavy_library_has_one_home() -> None:
    def wrong(path: Path) -> set[str]:
        at_home = {
            library
            for library, home in HOMES.items()
            if place(path) in (home if isinstance(home, tuple) else (home,))
        }
        return outer(path) & ({*HOMES} - at_home)

    assert found(wrong) == {}


def test_a_module_says_what_it_is_for() -> None:
    assert found(lambda path: not facts(path).purpose) == {}


def test_no_module_is_a_collection_of_leftovers() -> None:
    assert not [p for p in MODULES if p.stem in {"utils", "util", "helpers", "common", "misc"}]


def test_a_class_name_is_defined_once() -> None:
    """Who greps for a class finds one; `legged_sdk` bears the names of Unitree's library."""
    homes: dict[str, list[str]] = {}
    for path in (path for path in MODULES if path.name != "legged_sdk.py"):
        for name in facts(path).classes:
            homes.setdefault(name, []).append(place(path))
    assert {name: places for name, places in homes.items() if len(places) > 1} == {}


def test_a_name_is_imported_from_where_it_is_defined() -> None:
    """`import x as x` hands on a name; only a package's `__init__` may, for its public names."""
    assert found(lambda path: path.name != "__init__.py" and facts(path).handed_on) == {}
