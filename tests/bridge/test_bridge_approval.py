"""The whole way of an approval: a terminal, an agent's program, and a person in a real browser."""

import asyncio
import json
import os
import pty
import re
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from bridge.test_bridge_agents import answered, nod
from chromium_script import write_chromium_script
from forked import Rote
from rote.cli import main
from rote.motion.files.library import Library
from web.browser.test_web_browser import PAGE, _missing

STORY = Path(__file__).with_name("story_approval.mjs")


@contextmanager
def terminal(home: Path) -> Iterator[str]:
    """Run a pendant for agents in a terminal, and yield what that shows."""
    ours, theirs = pty.openpty()
    command = ["web", "--agents", "--no-browser", "--port", "0"]
    environment = {**os.environ, "ROTE_HOME": str(home), "ROTE_ROBOT": "sim://g1?store=:memory:"}
    with Rote(*command, stdout=theirs, stderr=theirs, env=environment) as server:
        os.close(theirs)
        shown = b""
        try:
            while b"Do not give it to an agent" not in shown:
                shown += os.read(ours, 4096)
            reader = threading.Thread(target=_drain, args=(ours,), daemon=True)
            reader.start()
            yield shown.decode()
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(30)


def _drain(terminal: int) -> None:
    try:
        while os.read(terminal, 4096):
            pass
    except OSError:
        return


@pytest.mark.skipif(bool(_missing()), reason=_missing())
@pytest.mark.timeout(240)
def test_a_person_in_a_browser_approves_what_an_agents_program_proposes(tmp_path: Path) -> None:
    Library(tmp_path / "takes").save(nod(), "nod")
    with terminal(tmp_path) as shown:
        (url,) = re.findall(r"The web UI is at (\S+)", shown)
        (watching,) = re.findall(r"--pendant '(\S+)'", shown)
        (secret,) = re.findall(r"hold its button: (\S+)", shown)
        assert watching != url
        told, report = asyncio.run(_both(tmp_path, url, watching, secret))
    assert report["failure"] is None, report
    assert "nod, version 1" in report["shown"]
    assert report["locked"]
    assert report["afterTap"] == "waiting"
    assert told["played"] is True, str(told)[-600:]


async def _both(home: Path, url: str, watching: str, secret: str) -> tuple[Any, Any]:
    task = {
        "url": url,
        "secret": secret,
        "page": str(PAGE),
        "chromium": write_chromium_script(home),
        "picture": os.environ.get("ROTE_PICTURES") and os.environ["ROTE_PICTURES"] + "/agent.png",
    }
    command = StdioServerParameters(
        command=sys.executable,
        args=["-m", "rote", "mcp", "--pendant", watching],
        env={"ROTE_HOME": str(home)},
    )
    async with Client(command) as agent:
        browser = await asyncio.create_subprocess_exec(
            "node", str(STORY), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        assert browser.stdin is not None
        assert browser.stdout is not None
        browser.stdin.write(json.dumps(task).encode())
        browser.stdin.close()
        connected = (await browser.stdout.readline()).decode()
        assert connected == "connected\n", connected
        told = answered(await agent.call_tool("propose", {"take": "nod"}))
        report = json.loads(await browser.stdout.read())
        await browser.wait()
        return told, report


def test_agents_are_refused_where_the_secret_would_not_go_to_a_person(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["web", "--agents", "--no-browser", "--port", "0"]) == 2
    assert "Start it in a terminal" in capsys.readouterr().err
