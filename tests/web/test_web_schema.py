"""The API keeps what its own OpenAPI document promises, whatever it is asked."""

import json
import os
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from websockets.sync.client import connect

from forked import Rote
from rote.model.g1 import G1_29
from rote.motion.files.library import Library
from rote.motion.track import Track
from rote.sim.hands import ScriptedHand
from web.pendant import MEMORY

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
GenerationMode = schemathesis.GenerationMode

# They look for other robots, and would spend their time waiting for the network.
ELSEWHERE = {"/api/connect", "/api/disconnect", "/api/discover"}


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a server in a process of its own, in real time, with one take."""
    home = tmp_path_factory.mktemp("home")
    Library(home / "takes").save(wave(), "wave")
    command = ["web", "--no-browser", "--json", "--port", "0", "--robot", MEMORY]
    with Rote(
        *command,
        stdout=subprocess.PIPE,
        env=os.environ | {"ROTE_HOME": str(home)},
    ) as process:
        assert process.stdout is not None
        try:
            ready = json.loads(process.stdout.readline())
            yield int(ready["url"].rstrip("/").rpartition(":")[2])
        finally:
            process.terminate()


@contextmanager
def client(port: int) -> Iterator[str]:
    """A page that stays alive; yields its id."""
    over = threading.Event()
    with connect(f"ws://127.0.0.1:{port}/api/live", proxy=None, ping_interval=None) as socket:
        name = json.loads(socket.recv())["client"]

        def live() -> None:
            while not over.wait(0.5):
                socket.send('{"type":"alive"}')

        def read() -> None:
            for _ in socket:
                pass

        threads = [threading.Thread(target=each, daemon=True) for each in (live, read)]
        for thread in threads:
            thread.start()
        try:
            yield name
        finally:
            over.set()
            threads[0].join(5)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("mode", "examples", "every"),
    [
        pytest.param(GenerationMode.POSITIVE, 2, 1, id="positive"),
        # To make up wrong requests takes long, and one check refuses those of all operations.
        pytest.param(GenerationMode.NEGATIVE, 2, 8, id="negative"),
        pytest.param(GenerationMode.POSITIVE, 20, 1, id="positive-20", marks=pytest.mark.soak),
        pytest.param(GenerationMode.NEGATIVE, 20, 1, id="negative-20", marks=pytest.mark.soak),
    ],
)
def test_no_request_the_document_allows_or_forbids_is_a_server_error(
    port: int, mode: Any, examples: int, every: int
) -> None:
    """Try `examples` requests of each operation, or of one in `every`."""
    answers: Counter[int] = Counter()
    with client(port) as name:
        schema = schemathesis.openapi.from_url(f"http://127.0.0.1:{port}/openapi.json")
        operations = [result.ok() for result in schema.get_all_operations()]
        assert len(operations) > 30
        here = [each for each in operations if each.path not in ELSEWHERE]
        for operation in sorted(here, key=lambda each: each.path == "/api/mode")[::every]:
            _try(operation, mode, name, examples, answers)
    # Of what is wrong on purpose little is carried out: requests without arguments.
    assert answers[200] > (20 if mode is GenerationMode.POSITIVE else 5) // every
    assert answers[404] + answers[409] + answers[422] > 20 // every


def wave() -> Track:
    hand = ScriptedHand("wave", 3.0)
    times_s = np.arange(0.0, 3.0, 0.02)
    poses = np.array([hand.pose(time_s) for time_s in times_s])
    return Track(times_s=times_s, joints_rad=poses, names=G1_29.names)


def _try(operation: Any, mode: Any, name: str, examples: int, answers: "Counter[int]") -> None:
    """Send some requests of an operation, as many as `examples`; count the answers by status."""
    checks = [schemathesis.checks.not_a_server_error]
    strategy = operation.as_strategy(generation_mode=mode)

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=strategy, known=st.booleans())
    def one(case: Any, known: bool) -> None:
        if known and mode is GenerationMode.POSITIVE:
            _name_what_is_there(case)
        case.headers = {**(case.headers or {}), "X-Rote-Client": name}
        response = case.call(timeout=20)
        answers[response.status_code] += 1
        case.validate_response(response, checks=checks)
        if response.status_code >= 400:
            assert {"error", "message", "remedy"} <= set(response.json()), response.content

    # There is nothing to be wrong in a request without arguments.
    with suppress(Unsatisfiable):
        one()


def _name_what_is_there(case: Any) -> None:
    """A name made up is the name of nothing, and what comes after that would not be tried."""
    if isinstance(case.path_parameters, dict) and "name" in case.path_parameters:
        case.path_parameters["name"] = "wave"
    if isinstance(case.body, dict):
        for field in ("take", "name"):
            if field in case.body and not case.operation.path.endswith("delete"):
                case.body[field] = "wave"
        for step in case.body.get("steps", ()):
            if "other" in step:
                step["other"] = "wave"


def test_answers_are_what_the_document_says(port: int) -> None:
    with client(port) as name:
        schema = schemathesis.openapi.from_url(f"http://127.0.0.1:{port}/openapi.json")
        for path in ("/api/status", "/api/robot/joints", "/api/actions", "/api/takes"):
            case = schema[path]["GET"].Case(headers={"X-Rote-Client": name})
            case.call_and_validate()
        stopped = schema["/api/stop"]["POST"].Case(body={}, media_type="application/json")
        stopped.call_and_validate()
