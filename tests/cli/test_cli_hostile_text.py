"""Text from files, stores and robots is printed, and never controls the terminal."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rote.cli import main
from rote.messages import Keyframe
from rote.model.g1 import G1_29
from rote.motion.files import save
from rote.motion.files.library import Library
from rote.motion.files.mcap_file import save_mcap
from rote.motion.track import Mark, Origin, Track
from rote.platform.console_text import one_line, without_controls
from rote.platform.paths import store_file, takes_folder
from rote.sim.presets import action_from_script
from rote.sim.store import Store, StoredAction

FORGED = "Everything is fine."
HOSTILE = f"\x1b]0;pwned\x07\x1b[2J\x9b31m\x9d0;pwned\x9c\u202eevil\x08\r\n{FORGED}\x7f"
"""Sets the title, clears the screen, rings, turns the text around, and poses as another line."""
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
STYLES = re.compile(r"\x1b\[[0-9;?]*[mhlAK]|\r(?!\n)")
"""What rich itself sends to a terminal: colours, and the lines of a progress bar."""


def played(script: str, seconds: float = 3.0) -> Track:
    """A scripted hand's motion, as a track."""
    action = action_from_script(script, script, seconds)
    assert action.times_s is not None
    assert action.joints_rad is not None
    return Track(times_s=action.times_s, joints_rad=action.joints_rad, names=G1_29.names)


def hostile_track() -> Track:
    origin = Origin(format=HOSTILE, file=HOSTILE, licence=HOSTILE, address=HOSTILE, digest="0" * 64)
    return replace(
        played("wave"),
        source=HOSTILE,
        marks=(Mark(0.5, HOSTILE),),
        history=(HOSTILE,),
        origin=origin,
    )


def check_printed(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Run a command; what it prints has no control characters and no forged line."""
    main([str(each) for each in arguments])
    printed = "".join(capsys.readouterr())
    assert not CONTROLS.search(STYLES.sub("", printed)), (arguments, printed)
    assert FORGED not in printed.splitlines(), (arguments, printed)
    assert "Traceback" not in printed
    return printed


FORMATS = [".mcap", ".npz", ".json", ".csv"]


@pytest.fixture(params=["pipe", "terminal"])
def colours(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "terminal":
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("COLUMNS", "200")


@pytest.mark.usefixtures("colours")
@pytest.mark.parametrize("suffix", FORMATS)
def test_no_file_controls_the_terminal(
    suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, other = tmp_path / f"hostile{suffix}", tmp_path / f"other{suffix}"
    save(hostile_track(), file)
    shown = check_printed(capsys, "motion", "info", file)
    if suffix != ".csv":
        assert "evil" in shown
        assert "\\u001b]0;pwned\\u0007" in shown
    for line in (
        ("motion", "info", file, "--json"),
        ("motion", "check", file),
        ("motion", "compare", file, file),
        ("motion", "reverse", file, other),
        ("motion", "convert", file, tmp_path / "converted.mcap"),
        ("play", file, "--robot", "sim://g1?store=:memory:", "--speed", "4"),
        ("takes", "import", file, "--name", "hostile"),
        ("takes", "list"),
        ("takes", "list", "--json"),
        ("takes", "show", "hostile"),
        ("takes", "show", "hostile", "--json"),
    ):
        check_printed(capsys, *line)


@pytest.mark.parametrize("suffix", [".mcap", ".npz", ".json"])
@pytest.mark.parametrize("change", ["variant", "names"])
def test_a_hostile_build_or_joint_is_refused_or_shown_harmlessly(
    change: str, suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    track, file = hostile_track(), tmp_path / f"hostile{suffix}"
    if change == "variant":
        track = replace(track, variant=HOSTILE)
    else:
        track = replace(track, names=(HOSTILE, *track.names[1:]), variant="mystery")
    save(track, file)
    for command in ("info", "check", "reverse"):
        out = [tmp_path / f"out{suffix}"] if command == "reverse" else []
        check_printed(capsys, "motion", command, file, *out)
    check_printed(capsys, "play", file, "--robot", "sim://g1?store=:memory:")


@pytest.mark.usefixtures("colours")
@pytest.mark.parametrize("many", [1, pytest.param(200, marks=pytest.mark.soak)])
def test_no_take_of_the_library_controls_the_terminal(
    many: int, capsys: pytest.CaptureFixture[str]
) -> None:
    library = Library(takes_folder())
    takes_folder().mkdir(parents=True)
    save_mcap(hostile_track(), takes_folder() / "tagged.mcap", (HOSTILE,))
    for number in range(many):
        library.save(replace(played("wave", 0.2), source=HOSTILE, variant="g1-29"), f"t{number}")
    for line in (
        ("list",),
        ("list", "--json"),
        ("show", "tagged"),
        ("tag", "tagged", "--add", "fine"),
        ("tag", "t0", "--add", HOSTILE),
        ("delete", "t0"),
    ):
        check_printed(capsys, "takes", *line)
    check_printed(capsys, "takes", "restore")


@pytest.mark.usefixtures("colours")
def test_no_name_in_a_store_controls_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    store = Store(store_file("g1"))
    for name in (HOSTILE, "x\ny", "nul\0", "y" * 80, "\t"):
        store.save(
            StoredAction(
                name=name,
                created_s=1,
                duration_ms=300,
                keyframes=(Keyframe(joint=18, time_ms=0, value_rad=0.1),),
            )
        )
    store.close()
    assert "5 of 15 slots" in check_printed(capsys, "list")
    check_printed(capsys, "list", "--json")
    check_printed(capsys, "status")
    assert "Played" in check_printed(capsys, "play", "1", "--speed", "4")
    check_printed(capsys, "play", HOSTILE)
    check_printed(capsys, "delete", HOSTILE, "--yes")
    check_printed(capsys, "rename", HOSTILE, "good")
    check_printed(capsys, "rename", "good", HOSTILE)


def test_no_argument_controls_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    for line in (
        (HOSTILE,),
        ("play", f"{HOSTILE}.mcap"),
        ("motion", "info", f"{HOSTILE}.mcap"),
        ("status", "--robot", f"udp://{HOSTILE}"),
        ("stop", "--robot", HOSTILE),
        ("takes", "list", HOSTILE),
        ("takes", "show", HOSTILE),
        ("trial", "compare", HOSTILE, HOSTILE),
        ("capture", HOSTILE),
        ("show", "check", HOSTILE),
        ("frame", "decode", HOSTILE),
        ("robots", HOSTILE),
        ("a1", "decode", HOSTILE),
    ):
        check_printed(capsys, *line)


def test_no_report_of_a_trial_controls_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    check_printed(capsys, "trial", "--yes", "--robot", "sim://g1?store=:memory:", "--out", tmp_path)
    report = json.loads((tmp_path / "report.json").read_text())
    files = []
    for number, text in enumerate((HOSTILE, "calm")):
        report["robot"] |= {"build": text, "family": text, "mode_said": text, text: text}
        report["robot"]["delays_s"] = {text: [float(number)]}
        report["robot"]["shapes"] = {"answer": {"kind": text}}
        files.append(tmp_path / f"{number}.json")
        files[-1].write_text(json.dumps(report))
    check_printed(capsys, "trial", "compare", *files)
    check_printed(capsys, "sim", "--like", files[0], "--udp", "127.0.0.1:99999")


def test_no_show_controls_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    show: dict[str, Any] = {"format": "rote-show-1", "title": HOSTILE, "roles": [HOSTILE]}
    show["sections"] = [{"name": HOSTILE, "parts": {HOSTILE: [{"take": HOSTILE}]}}]
    file = tmp_path / "show.json"
    file.write_text(json.dumps(show))
    check_printed(capsys, "show", "check", file)
    file.write_text(json.dumps({**show, "format": HOSTILE}))
    check_printed(capsys, "show", "check", file)


@given(st.text())
def test_escaping_leaves_no_control_characters_and_keeps_json(text: str) -> None:
    assert not CONTROLS.search(without_controls(text))
    assert "\n" not in one_line(text)
    assert without_controls(without_controls(text)) == without_controls(text)
    document = json.dumps({"text": text}, ensure_ascii=False)
    assert json.loads(without_controls(document)) == {"text": text}


@pytest.mark.parametrize("show", [repr, str])
def test_plain_text_is_not_changed(show: Callable[[str], str]) -> None:
    text = show("Grüße aus Köln: 90°, é, 试, 🙂, a\N{NO-BREAK SPACE}b\tc")
    assert without_controls(text) == text
