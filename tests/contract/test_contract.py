"""What programs rely on stays as it is: JSON output, the web API, signatures and report formats.

The files in tests/contract/golden hold it. `pytest tests/contract --write-contract` renews them.
"""

import difflib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import virtual
from contract import commands
from contract.api import public_api
from contract.forms import shape, text_of
from forked import fork_batch_workers
from rote.sim.store import Store
from rote.sim.world import World
from rote.trial.output import build_output
from rote.trial.report import schema
from rote.trial.steps import TrialLevel
from rote.web.server.app import openapi_document
from trial_robots import SLOW, firmware, tried

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture
def same(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with its golden file, or write the file with --write-contract."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        text = text.rstrip("\n") + "\n"
        if request.config.getoption("--write-contract"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        before = path.read_text(encoding="utf-8")
        if text != before:
            lines = difflib.unified_diff(
                before.splitlines(), text.splitlines(), f"golden/{name}", "now", lineterm="", n=4
            )
            pytest.fail(
                "\n".join(lines) + "\n\nThe public contract has changed. An intended difference is "
                "named in CHANGELOG.md;\nthen renew the files: pytest tests/contract "
                "--write-contract",
                pytrace=False,
            )

    return compare


@pytest.mark.timeout(600)
def test_the_json_of_every_command_is_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, same: Callable[[str, str], None]
) -> None:
    monkeypatch.setattr("rote.platform.loop.new_loop", virtual.VirtualLoop)
    fork_batch_workers(monkeypatch)
    same("commands.json", text_of(commands.collect(tmp_path), 4))


def test_every_command_with_json_is_in_the_contract_or_has_a_reason_not_to_be() -> None:
    lines = [*filter(None, commands.LINES.split("\n")), *commands.frame_lines()]
    run = {commands.command_of(line) for line in lines}
    assert run.isdisjoint(commands.NOT_RUN)
    assert run | set(commands.NOT_RUN) == commands.commands_with_json()


def test_the_web_api_is_as_before(same: Callable[[str, str], None]) -> None:
    document = openapi_document()
    del document["info"]
    schemas = document["components"]["schemas"]
    for name in [each for each in schemas if "ValidationError" in each]:
        del schemas[name]  # they are FastAPI's own
    same("openapi.json", text_of(_without_prose(document), 5))


def test_the_signatures_of_the_public_api_are_as_before(same: Callable[[str, str], None]) -> None:
    same("api.txt", public_api())


def test_the_formats_of_reports_are_as_before(same: Callable[[str, str], None]) -> None:
    world = World(Store(":memory:"), firmware=firmware(SLOW))
    trial_output = build_output(virtual.run(tried("pipe", world, TrialLevel.LOOK)))
    same(
        "reports.json",
        text_of(
            {
                "trial schema": _without_prose(schema()),
                "trial report": shape(trial_output.report),
                "show report": shape(commands.show_report()),
            },
            4,
        ),
    )


def _without_prose(value: Any) -> Any:
    """Return a schema without the texts that explain it."""
    if isinstance(value, dict):
        return {
            key: _without_prose(each)
            for key, each in value.items()
            if not (key in ("description", "summary", "title") and isinstance(each, str))
        }
    if isinstance(value, list):
        return [_without_prose(each) for each in value]
    return value
