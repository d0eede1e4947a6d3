"""The rooms of the house and who may import whom, read from the imports."""

import ast
import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "src" / "rote"
MODULES = sorted(ROOT.rglob("*.py"))

BASE = {
    "atomic_file", "console_text", "distribution", "errors", "findings", "model", "messages",
    "named_enum", "paths", "system", "text",
}  # fmt: skip
MAY_IMPORT: dict[str, set[str]] = {
    "text": set(),
    "paths": set(),
    "console_text": set(),
    "shell_completion": {"paths"},
    "distribution": set(),
    "system": set(),
    "findings": {"text"},
    "errors": {"distribution", "text"},
    "atomic_file": {"errors", "system"},
    "named_enum": set(),
    "model": {"errors", "named_enum"},
    "messages": {"model", "named_enum", "text"},
    "wire": BASE,
    "motion": BASE,
    "session": BASE | {"wire"},
    "host": BASE,
    "carrier": BASE | {"wire", "host"},
    "client": BASE | {"wire", "session", "carrier", "host"},
    "robot": BASE | {"motion", "wire", "session", "carrier", "client", "host"},
    "sim": BASE | {"motion", "wire", "session", "carrier", "host"},
    "capture": BASE | {"wire"},
    "show": BASE | {"motion"},
    "ensemble": BASE
    | {"motion", "wire", "session", "show", "carrier", "host", "robot", "sim", "connection"},
    "bridge": BASE
    | {
        "motion",
        "wire",
        "session",
        "carrier",
        "client",
        "host",
        "robot",
        "sim",
        "connection",
        "__init__",
    },
    "web": BASE
    | {
        "motion",
        "robot",
        "sim",
        "session",
        "carrier",
        "client",
        "connection",
        "show",
        "ensemble",
        "wire",
        "bridge",
        "__init__",
    },
    "connection": BASE | {"robot", "session", "sim", "carrier", "client"},
    "trial": BASE
    | {
        "wire",
        "session",
        "carrier",
        "client",
        "host",
        "robot",
        "sim",
        "capture",
        "connection",
        "__init__",
    },
    "blocking": BASE | {"host"},
    "blocking_robots": BASE | {"blocking", "motion", "robot"},
    "blocking_a1": BASE | {"blocking", "blocking_robots", "motion", "robot", "session", "wire"},
    "sync": BASE | {"blocking", "blocking_robots", "blocking_a1", "client", "connection", "robot"},
    "teaching_controller": BASE
    | {"blocking", "blocking_robots", "client", "robot", "sync", "wire"},
    "legged_sdk": BASE | {"blocking", "blocking_a1", "sync", "robot", "session", "wire"},
    "cli": BASE
    | {
        "motion",
        "robot",
        "sim",
        "carrier",
        "client",
        "host",
        "wire",
        "connection",
        "sync",
        "capture",
        "web",
        "session",
        "show",
        "ensemble",
        "bridge",
        "trial",
        "shell_completion",
        "__init__",
    },
    "__main__": {"cli", "capture", "console_text", "distribution", "shell_completion"},
    "__init__": BASE | {"connection", "ensemble", "motion", "robot", "sim", "sync", "wire"},
}

# What pure code may not touch: it gets bytes and the time as arguments.
PURE = {
    "text", "findings", "errors", "model", "messages", "named_enum", "wire", "session", "motion",
    "show",
}  # fmt: skip
IMPURE = {"asyncio", "socket", "time", "random", "logging", "threading", "subprocess"}
DISK = {"os", "tempfile", "pathlib", "shutil", "io", "fcntl"}
FILES_MAY = {
    "motion/files": DISK,
    "motion/files/exchange": DISK,
    "motion/formats.py": {"pathlib"},
    "motion/plot.py": {"pathlib"},
    "motion/figure.py": {"pathlib"},
}

# A carrier or heavy library has one home.
HOMES: dict[str, str | tuple[str, ...]] = {
    "aiortc": ("carrier/webrtc.py", "carrier/aiortc_adapters.py"),
    "cyclonedds": ("carrier/dds.py", "carrier/dds_types.py", "carrier/dds_ros_types.py"),
    "h11": "carrier/http.py",
    "zenoh": "carrier/zenoh_bus.py",
    "ifaddr": ("carrier/discovery.py", "host/check.py"),
    "lz4": ("motion/files/mcap_records.py", "capture/read/compressed.py"),
    "matplotlib": "motion/plot.py",
    "mcap": "motion/files/mcap_records.py",
    "mujoco": "motion/contact.py",
    "pandas": "motion/track.py",
    "PIL": "motion/figure.py",
    "pyarrow": "motion/files/lerobot.py",
    "zstandard": ("motion/files/mcap_records.py", "capture/read/compressed.py"),
    "cryptography": (
        "wire/signalling.py",
        "capture/decode/decrypt.py",
        "carrier/certificates.py",
    ),
    "sqlite3": ("sim/store.py", "shell_completion.py"),
    "uvloop": "host/loop.py",
    "mcp": "bridge/mcp_server.py",
    "httpx2": "bridge/pendant_client.py",
    "websockets": "bridge/foxglove_server.py",
}


def part_of(path: Path) -> str:
    relative = path.relative_to(ROOT)
    return relative.parts[0].removesuffix(".py")


@functools.cache
def imports(path: Path) -> frozenset[str]:
    """Every module a file imports, with `from rote import x` read as `rote.x`."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide an arrow"
            module = node.module or ""
            if module == "rote":
                found |= {f"rote.{alias.name}" for alias in node.names}
            else:
                found.add(module)
    return frozenset(found)


def ids(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", MODULES, ids=ids)
def test_a_module_imports_only_what_its_room_may(path: Path) -> None:
    part = part_of(path)
    inner = {name.split(".")[1] for name in imports(path) if name.startswith("rote.")}
    if "__version__" in inner:
        inner = inner - {"__version__"} | {"__init__"}
    assert inner - {part} <= MAY_IMPORT[part]


@pytest.mark.parametrize("path", [p for p in MODULES if part_of(p) in PURE], ids=ids)
def test_pure_code_has_no_clock_no_socket_and_no_disk(path: Path) -> None:
    allowed = FILES_MAY.get(ids(path), set()) | FILES_MAY.get(ids(path.parent), set())
    outer = {name.split(".")[0] for name in imports(path)}
    assert not outer & (IMPURE | (DISK - allowed))


@pytest.mark.parametrize("path", MODULES, ids=ids)
def test_a_heavy_library_has_one_home(path: Path) -> None:
    outer = {name.split(".")[0] for name in imports(path)}
    for library, home in HOMES.items():
        assert library not in outer or ids(path) in (home if isinstance(home, tuple) else (home,))


@pytest.mark.parametrize("path", MODULES, ids=ids)
def test_a_module_says_what_it_is_for(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert ast.get_docstring(ast.parse(text)), "a module's first line says what it is for"


def test_there_is_no_room_for_leftovers() -> None:
    assert not [p for p in MODULES if p.stem in {"utils", "util", "helpers", "common", "misc"}]


# ---- sentences are made at the edge -------------------------------------------------------------

EDGES = {"cli", "web", "shell_completion", "__main__"}
COMMAND = re.compile(
    r"\brote (a1|capture|delete|discover|doctor|list|modes|motion|play|preview|rename|robots|sim"
    r"|status|stop|store|takes|teach|web)\b"
)


@pytest.mark.parametrize("path", [p for p in MODULES if part_of(p) not in EDGES], ids=ids)
def test_no_room_below_the_edge_names_a_command(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documents = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    said = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in documents
    ]
    assert [text for text in said if COMMAND.search(text)] == []


def test_a_class_name_is_defined_once() -> None:
    """Who greps for a class finds one; `legged_sdk` bears the names of Unitree's library."""
    homes: dict[str, list[str]] = {}
    for path in (path for path in MODULES if path.name != "legged_sdk.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert {name: places for name, places in homes.items() if len(places) > 1} == {}


@pytest.mark.parametrize("path", MODULES, ids=[str(path.relative_to(ROOT)) for path in MODULES])
def test_a_name_is_imported_from_where_it_is_defined(path: Path) -> None:
    """`import x as x` hands on a name; only a package's `__init__` may, for its public names."""
    if path.name == "__init__.py":
        return
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import | ast.ImportFrom):
            assert [alias.name for alias in node.names if alias.name == alias.asname] == []
