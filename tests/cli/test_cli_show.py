"""What commands print for people: a name is shown as it is, whatever it looks like."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from rote.cli import main, output
from rote.findings import Finding, FindingKind, Severity
from rote.messages import Keyframe
from rote.platform.paths import store_file
from rote.robot.api_values import Actions, Preset, TaughtAction
from rote.sim.store import Store, StoredAction

ODD = "[/b] [red]x :wave: [1]"
"""To rich, unescaped, this is an error, a colour and a picture."""


def ask(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    return (code, *capsys.readouterr())


def test_an_action_is_told_by_the_name_that_anybody_gave_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    store_file("g1").parent.mkdir(parents=True)
    store = Store(store_file("g1"))
    frame = Keyframe(joint=18, time_ms=0, value_rad=0.5)
    store.save(StoredAction(name=ODD, created_s=1, duration_ms=100, keyframes=(frame,)))
    store.close()
    code, out, _ = ask(capsys, "list")
    assert (code, f"1  {ODD} " in out) == (0, True)
    code, out, _ = ask(capsys, "play", ODD)
    assert (code, out.startswith(f"Played {ODD} in ")) == (0, True)


def test_what_was_taught_is_told_by_the_name_it_was_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "[red]x :wave:"
    url = f"sim://g1?store={tmp_path}/[red].sqlite"
    code, out, _ = ask(capsys, "status", "--robot", url)
    assert (code, out.startswith(f"{url}  mode 500")) == (0, True)
    teach = ("teach", name, "--hand", "wave", "--seconds", "0.2", "--robot", url)
    code, out, _ = ask(capsys, *teach)
    assert code == 0
    assert f"Saved {name}: 0." in out
    assert f"The take is in {tmp_path}/home/takes/{name}.mcap." in out
    assert f"play '{name}' --robot '{url}'" in out
    code, out, _ = ask(capsys, "takes", "list")
    assert (code, f"{name} " in out) == (0, True)


def test_what_a_robot_says_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    out = output.console()
    fault = f"a fault: {ODD}"
    finding = Finding(Severity.WARNING, fault, f"Mend {ODD}", kind=FindingKind.FAULT)
    output.print_findings(out, [finding])
    output.print_actions(out, Actions((Preset(1, ODD),), (TaughtAction(ODD, 1.0, 1),)))
    output.print_joint_table(out, ("joint", "off"), [(ODD, "1")])
    shown = capsys.readouterr().out
    assert shown.count(ODD) == 5
    assert f"warning a fault: {ODD}\n" in shown


def test_what_goes_on_is_shown_as_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = io.StringIO()
    with output.show_progress(
        Console(file=screen, force_terminal=True, width=200), f"to {ODD}"
    ) as move:
        move(0.5, f"at {ODD}")
    assert f"to {ODD}" in screen.getvalue()
    assert f"at {ODD}" in screen.getvalue()
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    with output.show_spinner(f"performing {ODD}"):
        pass
    assert f"performing {ODD}" in capsys.readouterr().err
