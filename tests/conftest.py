"""Fixtures all tests share."""

import gc
import importlib
import itertools
import os
import signal
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import fast
import forked_workers
import hardware
import processor_time
from forked_workers import Kind
from precedence import precedence
from sampled import USUAL_EXAMPLES

# Several test processes share two cores: a slow example is the machine's doing, not the code's.
# `make test` tries the same examples every time, so that it says something about the change that it
# tests. `make soak` looks for new ones (`--hypothesis-profile search`); what it finds is kept as an
# `@example`.
_SHARED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("search", _SHARED, max_examples=400)
settings.register_profile(
    "rote", _SHARED, max_examples=USUAL_EXAMPLES, derandomize=True, database=None
)
settings.load_profile("rote")

# A shell ignores Ctrl-C for what it runs in the background, nohup a hang-up; programs inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Hundreds of tests start `rote`: let those processes keep what Python compiles, as an installation
# does. `make test` says so too; this is for pytest alone.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# The test processes share the processors already: threads of numpy's would only wait for each
# other, and each process that imports it would start them.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


USED_LATE = ("matplotlib.figure", "pandas")
"""Modules that no test file imports, but many tests do when they run."""


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Collect without a search for garbage, and leave what was collected out of every later one.

    It lives as long as the tests do, and is far more than what any of them makes. Processes that
    are forked afterwards share it, so what each of them would import is imported before.
    """
    gc.disable()
    try:
        result = yield
        if session.config.getoption(forked_workers.OPTION) > 1:
            for name in USED_LATE:
                with suppress(ImportError):
                    importlib.import_module(name)
        return result
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


PATIENT = (
    "web/browser/test_web_browser.py",
    "test_documentation.py",
    "test_benchmarks.py",
    "test_examples.py",
    "stage/test_stage_reset.py",
    "cli/test_cli_dds.py",
    "stage/test_stage_bus.py",
    "cli/test_cli_endings.py",
    "stage/test_stage_cues.py",
    "interop",
    "cli",
    "stage",
    "bridge",
    "web/browser",
    "web/test_web_schema.py",
    "robot/test_robot_hands.py",
    "transport/test_transport_dds_guardian.py",
    "test_sync.py",
    "contract",
    "test_teaching_controller.py",
    "robot/test_robot_streaming.py",
    "sim/test_sim_a1_world.py",
    "transport/test_transport_a1_client.py",
    "batch",
    "test_open.py",
    "robot/test_robot_following.py",
    "test_from_the_documents.py",
    "web/test_web_storage.py",
    "web/test_web_stop.py",
    "test_legged_sdk.py",
    "test_examples_a1.py",
    "test_faults.py",
    "transport/test_transport_watchdog.py",
    "test_a_new_robot.py",
    "web/test_web_hub.py",
    "test_documented_cycle.py",
    "robot/test_robot_take_recording.py",
    "web/test_web_learning.py",
    "robot/test_robot_sound.py",
    "transport/test_transport_arm_streamer.py",
    "test_webrtc_endurance.py",
    "test_platforms.py",
)
"""Folders and files whose tests wait in real time, those that take longest first. All other tests
compute, and may be interrupted for seconds by other programs without harm.
"""
LONG_FILES = {"test_web_browser.py": 3, "test_documentation.py": 2}
"""Files whose tests several workers share, each with the number of parts."""
_FIRST = tuple(str(Path(__file__).parent / name) for name in PATIENT)


def _classify(item: pytest.Item) -> Kind:
    if item.get_closest_marker("quiet"):
        return Kind.QUIET
    return Kind.PATIENT if str(item.path).startswith(_FIRST) else Kind.COMPUTING


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the test suite."""
    hardware.add_options(parser)
    processor_time.add_options(parser)
    fast.add_options(parser)
    forked_workers.add_options(parser)
    parser.addoption(
        "--write-contract", action="store_true", help="Renew the files in tests/contract/golden."
    )


def pytest_configure(config: pytest.Config) -> None:
    """Say which robot is tested, if it is a real one."""
    if url := config.getoption(hardware.OPTION):
        os.environ[hardware.VARIABLE] = url
    processor_time.register(config)
    fast.register(config)
    forked_workers.register(config, _classify, LONG_FILES)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the patient ones first, then all other slow ones; within these groups, keep the order."""
    if hardware.robot_url():
        hardware.choose(config, items)
    else:
        _leave_products_to_soak(items)

    def turn(item: pytest.Item) -> int:
        path = str(item.path)
        computing = len(_FIRST) + (not fast.is_slow(item))
        return next(
            (place for place, name in enumerate(_FIRST) if path.startswith(name)), computing
        )

    items.sort(key=turn)
    workers: int = getattr(config, "workerinput", {}).get("workercount", 1)
    if workers > 1:
        groups: list[list[pytest.Item]] = [[], [], []]
        for item in items:
            groups[max(0, turn(item) - len(_FIRST) + 1)].append(item)
        items[:] = _deal_to_workers(groups, workers)


def _deal_to_workers(groups: list[list[pytest.Item]], workers: int) -> list[pytest.Item]:
    """Order patient, slow and fast tests for `--dist worksteal`, which first gives each worker an
    equal run of neighbours: half of the workers begin with a share of the patient ones.
    """
    patient, slow, rapid = groups
    left = sum(map(len, groups))
    others = left - len(patient)
    patient_workers = max(1, workers // 2)
    order: list[pytest.Item] = []
    for worker in range(workers):
        size = left // (workers - worker)
        left -= size
        own = patient[worker::patient_workers] if worker < patient_workers else []
        room = max(0, size - len(own))
        count = min(room, round(len(slow) * room / others) if others else 0)
        order += own + slow[:count] + rapid[: room - count]
        slow, rapid = slow[count:], rapid[room - count :]
    return order + slow + rapid


def _leave_products_to_soak(items: list[pytest.Item]) -> None:
    """Of a product of two parameters let `make test` meet each value of either: as many tests as
    the longer of both has values. `make soak` has the others, too.
    """
    values: dict[tuple[str, str], list[object]] = {}
    places: list[tuple[pytest.Item, list[tuple[str, str]], list[int]]] = []
    for item in items:
        mark = item.get_closest_marker("each_once")
        if mark is None or not isinstance(item, pytest.Function):
            continue
        if item.get_closest_marker("soak"):
            continue  # a value that `make test` never meets is no partner for others
        keys = [(item.nodeid.partition("[")[0], name) for name in mark.args]
        at = []
        for key in keys:
            known, value = values.setdefault(key, []), item.callspec.params[key[1]]
            if value not in known:
                known.append(value)
            at.append(known.index(value))
        places.append((item, keys, at))
    for item, keys, at in places:
        one, other = (
            place % len(values[key]) for place, key in zip(at, reversed(keys), strict=True)
        )
        if one != other:
            item.add_marker(pytest.mark.soak)


@pytest.fixture(scope="session")
def _homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Names of folders that nobody had before, and that are made by whoever keeps something."""
    homes = tmp_path_factory.mktemp("homes")
    return (homes / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def _own_home(
    request: pytest.FixtureRequest, _homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keep the embedded robot's store, and the user's choice of robot, out of the tests.

    Only a test that asks for a folder of its own is given one: a folder takes longer to make than
    most tests take.
    """
    own = "tmp_path" in request.fixturenames
    home = request.getfixturevalue("tmp_path") / "home" if own else next(_homes)
    monkeypatch.setenv("ROTE_HOME", str(home))
    monkeypatch.delenv("ROTE_ROBOT", raising=False)


@pytest.fixture(autouse=True)
def ctrl_c() -> Iterator[None]:
    """Let Ctrl-C work again after a command that was run in this process: at its end it ignores it,
    and programs that other tests start would inherit that.
    """
    before = signal.getsignal(signal.SIGINT)
    yield
    if signal.getsignal(signal.SIGINT) is not before:
        signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module")
def keeps_time() -> Iterator[None]:
    """Let a module's tests take precedence over others: they move a robot in real time, on a wire
    on which a silence of 0.3 s ends the motion.
    """
    with precedence():
        yield
