"""Bad input at the command line: a clear error, the right exit code, and nothing made or lost."""

import json
import shlex
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from rote.cli import main
from rote.model.g1 import G1_29
from rote.motion.files import load
from rote.motion.files.library import Library
from rote.motion.track import Track
from rote.platform.paths import data_folder, served_store_file, store_file, takes_folder
from rote.sim.presets import action_from_script
from rote.sim.store import Store

USAGE = 2
LONG_LABEL = "a" * 64 + ".local"


def ask(capsys: pytest.CaptureFixture[str], line: str) -> tuple[int, str, str]:
    code = main(shlex.split(line))
    return (code, *capsys.readouterr())


def refused(capsys: pytest.CaptureFixture[str], line: str) -> str:
    """Run a command that must be refused as wrong; return what it says."""
    code, out, err = ask(capsys, line)
    assert (code, out) == (USAGE, ""), err
    return err


@pytest.fixture
def teach() -> str:
    """An action of the embedded robot, and a take, both called hello."""
    action = action_from_script("hello", "wave", 1.0)
    assert action.times_s is not None
    assert action.joints_rad is not None
    store = Store(store_file("g1"))
    store.save(action)
    store.close()
    track = Track(times_s=action.times_s, joints_rad=action.joints_rad, names=G1_29.names)
    Library(takes_folder()).save(track, "hello")
    return "hello"


# ---- hosts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["a..b", LONG_LABEL, ".robot", "ä" * 60])
@pytest.mark.parametrize(
    "line",
    [
        "status --robot udp://{}",
        "status --robot webrtc://{}",
        "status --robot a1://{}",
        "stop --robot a1://{}",
        "a1 status --robot a1://{}",
        "teach x --seconds 1 --robot udp://{}",
        "sim --udp {}:0",
        "sim --webrtc {}",
        "sim --a1 {}:0",
        "web --no-browser --token abcdefghijklmnop --host {}",
    ],
)
def test_a_mistyped_host_is_a_usage_error_on_every_wire(
    line: str, host: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "is not a host name" in refused(capsys, line.format(host))


def test_a_host_name_may_end_with_a_dot_and_have_other_letters(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for host in ("robot.invalid.", "röboter.invalid"):
        code, _, err = ask(capsys, f"status --timeout 0.1 --robot udp://{host}")
        assert code == 3, err


# ---- names ---------------------------------------------------------------------------------------

BAD_NAMES = {
    "newline": "a\nb",
    "line separator": "a\u2028b",
    "bidirectional override": "a\u202eb",
    "bidirectional isolate": "a\u2066b",
    "right-to-left mark": "a\u200fb",
    "slash": "a/b",
    "backslash": "a\\b",
    "space at the end": "a ",
    "empty": "",
    "too long": "a" * 32,
}


@pytest.mark.parametrize("name", BAD_NAMES.values(), ids=BAD_NAMES.keys())
@pytest.mark.parametrize(
    "arguments",
    [
        ("teach", "NAME", "--hand", "wave", "--seconds", "0.2"),
        ("rename", "hello", "NAME"),
        ("store", "hello", "NAME", "--take"),
        ("takes", "rename", "hello", "NAME"),
        ("takes", "tag", "hello", "--add", "NAME"),
        ("takes", "import", "FILE", "--name", "NAME"),
        ("takes", "restore", "hello", "--name", "NAME"),
        ("motion", "trim", "--take", "--auto", "hello", "NAME"),
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_names_tags_and_new_names_follow_one_rule(
    arguments: tuple[str, ...],
    name: str,
    hello: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = [{"NAME": name, "FILE": str(hello)}.get(word, word) for word in arguments]
    if (words[:2], name) == (["takes", "tag"], "a "):
        pytest.skip("a tag is stripped")
    if not name and {"import", "restore"} & {*words}:
        pytest.skip("an empty name there means: its own")
    if "restore" in words:
        assert ask(capsys, "takes delete hello")[0] == 0
    before = sorted(data_folder().rglob("*.mcap"))
    code = main(words)
    err = capsys.readouterr().err
    assert code == USAGE, err
    assert sorted(data_folder().rglob("*.mcap")) == before


@pytest.fixture
def hello(tmp_path: Path, teach: str, capsys: pytest.CaptureFixture[str]) -> Path:
    """An action, a take and a file, all called hello."""
    path = tmp_path / "hello.mcap"
    assert ask(capsys, f"takes export {teach} {path}")[0] == 0
    return path


# ---- replacing -----------------------------------------------------------------------------------


def test_teach_does_not_replace_a_file_silently(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.csv"
    out.write_text("precious")
    line = f"teach new --hand wave --seconds 0.2 --out {out}"
    assert "--overwrite" in refused(capsys, line)
    assert out.read_text() == "precious"
    assert "new" not in ask(capsys, "list")[1]
    assert ask(capsys, f"{line} --overwrite")[0] == 0
    assert load(out).duration_s > 0


def test_overwrite_on_a_robot_without_actions_is_for_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = "teach new --robot sim://a1 --seconds 1 --overwrite"
    assert ask(capsys, line)[0] == 6
    out = tmp_path / "out.xyz"
    assert "is not known" in refused(capsys, f"{line} --out {out}")


def test_a_taught_name_is_no_dead_end(teach: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = ask(capsys, f"teach {teach} --hand drum --seconds 0.4")
    assert code == 4
    assert "--overwrite" in err
    code, _, err = ask(capsys, f"teach {teach} --hand drum --seconds 0.4 --overwrite")
    assert (code, err) == (0, "")
    taught = json.loads(ask(capsys, "list --json")[1])["taught"]
    assert [action["name"] for action in taught] == [teach]
    assert taught[0]["duration_s"] == pytest.approx(0.4, abs=0.1)


def test_a_motion_is_stored_over_an_action_only_by_overwrite(
    teach: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = ask(capsys, f"store {teach} {teach} --take")
    assert code == 4
    assert "--overwrite" in err
    assert ask(capsys, f"store {teach} {teach} --take --overwrite")[0] == 0


def test_the_simulated_robot_for_others_has_a_store_of_its_own() -> None:
    assert served_store_file("g1") != store_file("g1")


# ---- options without effect ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "play wave --force",
        "play wave --map",
        "play wave --name --number",
        "play x.mcap --name",
        "play wave --hands",
        "play clap --preset --speed 2 --robot webrtc://127.0.0.1",
        "play clap --preset --take --robot webrtc://127.0.0.1",
        "status --key 00112233445566778899aabbccddeeff",
        "doctor --key 00112233445566778899aabbccddeeff",
        "doctor --timeout 1",
        "modes --yes",
        "modes stand --yes",
        "sim --strict",
        "sim --signalling legacy",
        "sim --serial X",
        "sim --domain 3",
        "sim --hand paw",
        "sim --dialect go1",
        "sim --a1 127.0.0.1:0 --store x.sqlite",
        "sim --a1 127.0.0.1:0 --polite",
        "sim --robot a1 --factory",
        "demo --checklist --hand wave",
        "demo --checklist --out here",
        "capture x.pcap --overwrite",
        "capture x.pcap --csv --json",
        "capture make x.pcap --kind frames --cipher aes128",
        "capture dissector --overwrite",
        "capture live -i lo --overwrite",
        "motion compress x.mcap --budget 5 --exact",
        "motion compress x.mcap --bound 0.1 --measure rms",
        "motion compress x.mcap --bound 0.1 --overwrite",
        "motion compress x.mcap --bound 0.1 --keyframes",
        "motion show x.mcap --out x.gif --frames 3",
        "motion convert x.mcap y.csv --force",
        "preview x.mcap --overwrite",
        "web --proxy-from 127.0.0.1",
        "takes restore --name x",
        "motion convert x y.csv --take --degrees",
    ],
)
def test_an_option_without_effect_is_refused(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = ask(capsys, line)
    assert code in (USAGE, 6), err
    assert out == ""
    assert list(tmp_path.iterdir()) == []


def test_a_key_in_the_environment_is_for_robots_that_need_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ROTE_KEY", "00112233445566778899aabbccddeeff")
    assert ask(capsys, "list")[0] == 0


# ---- typos ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "sim --store typo/deep/g1.sqlite",
        "list --robot sim://g1?store=typo/deep/g1.sqlite",
        "demo --out typo/deep",
        "teach x --hand wave --seconds 0.2 --out typo/x.csv",
        "motion lerobot {take} --task x --out typo/deep/set",
        "capture make typo/x.pcap",
        "takes export hello typo/x.csv",
        "motion recover {take} typo/x.csv",
        "status --log typo/rote.log",
    ],
)
def test_a_mistyped_path_makes_no_folder(
    line: str,
    hello: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "typo" in refused(capsys, line.format(take=hello))
    assert not (tmp_path / "typo").exists()


@pytest.mark.parametrize(
    "command", ["show x", "tag x --add y", "rename x y", "delete x", "restore x"]
)
def test_a_mistyped_take_makes_no_folder(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    refused(capsys, f"takes {command}")
    assert not takes_folder().exists()


@pytest.mark.parametrize(
    "line",
    [
        "sim --udp a..b",
        "sim --webrtc a..b",
        "sim --a1 a..b",
        "sim --dds no-such-interface",
        "web --host a..b --no-browser",
        "web --host a..b --tls --no-browser",
        "web --robot udp://a..b --no-browser",
        "web --robot webrtc://a..b --no-browser",
        "web --robot a1://a..b --no-browser",
        "web --robot dds:// --no-browser",
    ],
)
def test_a_mistyped_address_makes_no_folder(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    refused(capsys, line)
    assert not takes_folder().parent.exists()


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "601", "x"])
def test_a_timeout_that_cannot_be_is_refused(
    seconds: str, capsys: pytest.CaptureFixture[str]
) -> None:
    refused(capsys, f"status --timeout {seconds}")
    refused(capsys, f"stop --robot a1://127.0.0.1 --timeout {seconds}")


# ---- a locked store ------------------------------------------------------------------------------


@contextmanager
def locked(path: Path) -> Iterator[None]:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN IMMEDIATE")
        yield


def test_a_locked_store_is_told_as_that(
    teach: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("rote.sim.store._OPEN_S", 0.1)
    with locked(store_file("g1")):
        code, _, err = ask(capsys, "teach other --hand wave --seconds 0.2")
    assert code in (1, 4)
    assert "locked" in err
    assert "silent" not in err
    assert ask(capsys, "list")[0] == 0
