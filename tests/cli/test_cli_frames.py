"""What the documented frames can say, from the command line; and the words before a motion."""

import json
import os
import pty
import re
import subprocess

import pytest

from forked import Rote
from rote.cli import main
from rote.messages import Keyframe
from rote.platform.paths import store_file
from rote.sim.store import Store, StoredAction

TIP = "Operator must hold remote or app for emergency stop."


def ask(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture
def stored() -> None:
    """Put three short actions into the embedded robot's store: wave, 1 and 7."""
    store = Store(store_file("g1"))
    for name in ("wave", "1", "7"):
        keys = (Keyframe(joint=18, time_ms=100, value_rad=0.02),)
        store.save(StoredAction(name=name, created_s=1, duration_ms=100, keyframes=keys))
    store.close()


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize(
    ("arguments", "played"),
    [
        (["2"], "1"),
        (["3"], "7"),
        (["7"], "7"),
        (["1", "--number"], "wave"),
        (["1", "--name"], "1"),
        (["wave"], "wave"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_digits_are_a_number_of_the_list_or_a_name(
    arguments: list[str], played: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = ask(capsys, "play", *arguments, "--json")
    document = json.loads(out)
    assert (code, document["name"], document["completed"]) == (0, played, True)


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["1"], 2, "1 is the number of 'wave' and the name of another action"),
        (["4"], 4, "there is no action number 4"),
        (["wave", "--number"], 2, "is not a number"),
        (["4", "--name"], 4, "there is no action '4'"),
        (["2", "--frames", "9"], 4, "could not read or accept"),
        (["2", "--keyframe", "18:100"], 2, "not a keyframe"),
        (["2", "--keyframe", "18:100:9"], 5, "left_elbow_joint"),
        (["2", "--frames", "1", "--speed", "2"], 2, "cannot be combined"),
        (["2", "--frames", "1", "--robot", "webrtc://127.0.0.1"], 6, "part of an action"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_meant_is_refused(
    arguments: list[str], code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    answered, out, err = ask(capsys, "play", *arguments)
    assert words in err
    assert out == ""
    assert answered == code


@pytest.mark.usefixtures("stored")
def test_keyframes_are_played_instead(capsys: pytest.CaptureFixture[str]) -> None:
    keys = ["--keyframe", "18:200:0.3", "--keyframe", "18:400:0.0"]
    code, out, _ = ask(capsys, "play", "wave", *keys, "--json")
    assert (code, json.loads(out)["completed"]) == (0, True)


@pytest.mark.usefixtures("stored")
def test_the_tip_comes_before_the_motion_on_standard_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, err = ask(capsys, "play", "wave")
    assert code == 0
    assert TIP in err
    assert out.startswith("Played wave in ")
    code, _, err = ask(capsys, "play", "wave", "--json")
    assert (code, err) == (0, "")


# ---- single frames ------------------------------------------------------------------------------


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize("command", ["0x1a", "26", "list-actions", "LIST_ACTIONS"])
def test_a_frame_is_sent_and_its_answer_shown(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = ask(capsys, "send", command, "--json")
    assert code == 0
    assert json.loads(out) == {"command": "0x1a", "code": 0, "actions": ["wave", "1", "7"]}


def test_parameters_are_sent(capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(capsys, "send", "parameter-sync", "01:02") == (0, "command 0x0a, code 0\n", "")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["juggle"], 2, "there is no command 'juggle'"),
        (["0x1a", "xyz"], 2, "is not a hexadecimal digit"),
        (["0x50"], 2, "command 0x50 is unknown"),
        (["0x41"], 2, "184 bytes"),
        (["0x0d", "00000001" + "42c80000" * 12 + "00" * 96], 5, "left_ankle_roll_joint"),
        (["0x09", "0000000200000001"], 4, "may make the robot sink"),
        (["0x1a", "--robot", "webrtc://127.0.0.1"], 6, "webrtc:// cannot send single frames"),
    ],
    ids=lambda value: " ".join(value)[:30] if isinstance(value, list) else "",
)
def test_a_frame_that_may_not_be_is_not_sent(
    arguments: list[str], code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    answered, out, err = ask(capsys, "send", *arguments)
    assert words in err
    assert out == ""
    assert answered == code


# ---- teaching and storing -----------------------------------------------------------------------


def test_an_action_is_taught_to_loop(capsys: pytest.CaptureFixture[str]) -> None:
    values = ",".join(["0.5"] * 11)
    code, out, _ = ask(
        capsys, "teach", "mine", "--hand", "wave", "--seconds", "0.3", "--loop", "--json",
        "--compensation", values,
    )  # fmt: skip
    assert (code, json.loads(out)["robot_note"]) == (0, "")
    store = Store(store_file("g1"))
    action = store.load(1)
    store.close()
    assert action is not None
    assert action.loop


@pytest.mark.parametrize(
    ("values", "words"), [("1,2", "2 compensation"), ("a,b", "list of numbers")]
)
def test_a_compensation_that_cannot_be_is_refused(
    values: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = ask(capsys, "teach", "mine", "--seconds", "0.3", "--compensation", values)
    assert code == 2
    assert words in err


# ---- damping ------------------------------------------------------------------------------------


def test_a_standing_robot_is_not_damped_where_nobody_can_be_asked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, err = ask(capsys, "modes", "damp", "--json")
    refused = json.loads(err)
    assert (code, out, refused["error"]) == (4, "", "caution")
    assert "sinks to the floor" in refused["message"]
    assert refused["remedy"].endswith("rote modes damp --yes.")


def test_yes_damps_it(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = ask(capsys, "modes", "damp", "--yes", "--json")
    assert (code, json.loads(out)["name"]) == (0, "damp")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "code", "end"), [("no", 1, "Nothing was changed."), ("yes", 0, "is in mode 1, damp")]
)
def test_a_person_is_told_what_happens_and_asked(answer: str, code: int, end: str) -> None:
    ours, theirs = pty.openpty()
    with Rote("modes", "damp", stdin=theirs, stdout=subprocess.PIPE, text=True) as asking:
        os.write(ours, f"{answer}\n".encode())
        out, _ = asking.communicate(timeout=30)
    os.close(ours)
    os.close(theirs)
    assert re.search(r"a standing robot sinks to the floor.*Type yes to damp it", out, re.DOTALL)
    assert end in out
    assert asking.returncode == code
