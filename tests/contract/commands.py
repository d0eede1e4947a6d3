"""What every command prints with --json on the simulated robot."""

import contextlib
import io
import json
import os
import shlex
import shutil
import signal
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from a1_samples import SAMPLES
from contract.forms import normalised
from rote.cli import commands, main
from rote.model.g1 import G1_29
from rote.motion.files import save
from rote.motion.track import Track
from rote.sim.presets import action_from_script
from rote.stage.report import SectionReport, ShowReport
from rote.wire.stage import StartReport

ROOT = Path(__file__).parents[2]
NOT_RUN = {
    "batch preview": "as batch check; tests/batch covers it",
    "capture live": "it needs a network interface and the right to record from it",
    "discover": "it needs robots on the network; tests/cli/test_cli_discover.py covers it",
    "ros": "it needs DDS; tests/bridge covers it",
    "stage demo": "its agents are processes of their own, in real time; tests/ensemble covers it",
    "show run": "it needs a stage; tests/ensemble covers it, and the form of its report is below",
    "show rehearse": "as show run",
    "show stop": "it needs a conductor",
    "show reset": "it needs a conductor",
    "show offsets": "it needs agents; tests/stage covers it",
    "show lock": "it writes beside the show; tests/stage covers it",
}
"""Commands with --json that the contract does not run, each with the reason."""
SERVERS = {"sim", "web", "watch"}
"""They print one line when they are ready, and run until a signal ends them."""
EXACT = {"robots", "preview", "completion", "applog", "motion", "capture", "frame", "show"}
"""Commands that compute: their integers are part of the contract."""
OF_THE_COMPUTER = {"ok", "packages", "interfaces", "firewall", "findings"}
"""What `rote doctor` finds out about the computer it runs on."""
LINES = """
robots
robots g1
doctor --robot sim://g1
status
teach mine --hand wave --seconds 0.5
teach other --hand drum --seconds 0.5
list
play mine
play 1 --number --speed 0.5
store FILES/raise.mcap stored
rename other another
delete another --yes
send list-actions
modes
stop
sim --udp 127.0.0.1:0 --store FILES/sim.sqlite
sim --a1 127.0.0.1:0
web --no-browser --port 0 --robot sim://g1
watch 0 --foxglove
demo --checklist
mirror sim://g1 sim://g1 --hand wave --seconds 0.5
preview FILES/wave.mcap
completion bash
applog DATA/app.log
batch check FILES/wave.mcap --workers 1 --no-contact --out FILES/checked
batch convert FILES/wave.mcap --workers 1 --to json --out FILES/converted
batch fit FILES/wave.mcap --workers 1 --no-contact --out FILES/fitted
motion info FILES/wave.mcap
motion check FILES/wave.mcap
motion check FILES/fast.mcap
motion compare FILES/wave.mcap FILES/drum.npz
motion best FILES/wave.mcap FILES/drum.npz
motion compress FILES/wave.mcap --bound 0.05 --keyframes
motion lerobot FILES/wave.mcap --out FILES/lerobot --task wave
motion plot FILES/wave.mcap --out FILES/plot.svg
motion spread FILES/wave.mcap FILES/wave2.mcap
motion show FILES/wave.mcap --out FILES/show.svg
motion trim FILES/wave.mcap FILES/o1.mcap --auto
motion smooth FILES/wave.mcap FILES/o2.csv
motion speed FILES/wave.mcap FILES/o3.mcap --factor 2
motion retime FILES/wave.mcap FILES/o4.mcap --velocity 1
motion mirror FILES/wave.mcap FILES/o5.mcap
motion reverse FILES/wave.mcap FILES/o6.mcap
motion resample FILES/wave.mcap FILES/o7.mcap --rate 50
motion close-loop FILES/wave.mcap FILES/o8.mcap --seconds 1
motion keep FILES/wave.mcap FILES/o9.mcap --joint right_arm
motion drop FILES/wave.mcap FILES/o10.mcap --joint left_arm
motion to-build FILES/wave.mcap FILES/o11.mcap --build g1-23 --force
motion keyframe FILES/wave.mcap FILES/o12.mcap --time 1 --joint right_elbow_joint=0.9
motion through FILES/wave.mcap FILES/o13.mcap --at 1 --joint right_elbow_joint=0.9
motion to-robot FILES/wave.mcap FILES/o24.mcap --robot r1
motion move-hand FILES/wave.mcap FILES/o25.mcap --hand right --by 0,0,0.02
motion warp FILES/wave.mcap FILES/o26.mcap --move 1=1.2
motion segments FILES/wave.mcap FILES/parts.mcap
motion keep-part FILES/parts.mcap FILES/o30.mcap --label "part 2"
motion beat FILES/parts.mcap FILES/o27.mcap --bpm 100
motion fit FILES/wave.mcap FILES/o14.mcap
motion mark FILES/wave.mcap FILES/marked.mcap --time 1 --label high
motion change-mark FILES/marked.mcap FILES/o15.mcap --time 1 --label low
motion remove-mark FILES/marked.mcap FILES/o16.mcap --time 1
motion cross-fade FILES/wave.mcap FILES/drum.npz FILES/o17.mcap --overlap 0.5
motion concatenate FILES/wave.mcap FILES/drum.npz FILES/o18.mcap
motion blend FILES/wave.mcap FILES/drum.npz FILES/o19.mcap
motion layer FILES/wave.mcap FILES/drum.npz FILES/o20.mcap --joint left_arm
motion average FILES/wave.mcap FILES/wave2.mcap --out FILES/o21.mcap
motion merge FILES/wave.mcap FILES/wave2.mcap --from 1=2 --out FILES/o28.mcap
motion learn FILES/wave.mcap FILES/wave2.mcap FILES/wave.mcap --out FILES/wave.model
motion adapt FILES/wave.model FILES/o29.mcap --duration 3
motion convert FILES/wave.mcap FILES/o22.csv
motion recover FILES/cut.mcap FILES/o23.mcap
takes import FILES/wave.mcap --name wave
takes import FILES/wave.mcap --name wave2
takes list
takes show wave
takes tag wave --add stage
takes rename wave hello
takes export hello FILES/o24.npz
takes delete hello
takes restore
takes restore hello
a1 status --robot sim://a1
a1 monitor --seconds 0.2 --rate 10 --robot sim://a1
a1 walk 0.1 --robot sim://a1
a1 turn 5 --robot sim://a1
a1 stand --robot sim://a1
a1 lie --robot sim://a1
a1 pose --pitch 0.1 --seconds 0.5 --robot sim://a1
a1 decode A1_DATAGRAM
capture make FILES/made.pcap --kind webrtc --keylog FILES/keys.txt
capture make FILES/frames.pcap --kind frames
capture make FILES/a1.pcap --kind a1
capture report FILES/made.pcap
capture report FILES/made.pcap --keylog FILES/keys.txt
capture report FILES/frames.pcap
capture report FILES/a1.pcap
capture explain FILES/made.pcap
capture field FILES/frames.pcap 4
capture packets FILES/frames.pcap --first 3
capture scrub FILES/made.pcap FILES/scrubbed.pcap
capture dissector FILES/rote.lua
frame decode FRAME
stage new FILES/stage --at 127.0.0.1:0
stage invite ann --stage FILES/stage
stage status --stage FILES/stage --seconds 0.5
stage renew ann --stage FILES/stage
stage revoke ann --stage FILES/stage
show check SHOW/two_greet.json --cast SHOW/cast.json
show sheet SHOW/two_greet.json --cast SHOW/cast.json
show unlock SHOW/two_greet.json
show report FILES/show-report.json
trial --robot sim://g1?store=:memory: --yes --out FILES/trial
trial compare FILES/trial FILES/trial
play nothing
list --robot udp://127.0.0.1:1 --timeout 0.2
motion info FILES/missing.mcap
motion smooth
"""
"""Every line is run with --json, in this order; they share one robot and one library."""


def frame_lines() -> list[str]:
    """Return one line for every frame that can be made."""
    made = _subcommands(commands("frame").commands["frame"].commands["make"])
    return [f"frame make {name}" for name, each in made.items() if not each.hidden]


@cache
def commands_with_json() -> set[str]:
    """Return the words of every command that has --json."""
    return {" ".join(words) for words, options in _leaves(commands(), ()) if "--json" in options}


def _subcommands(command: Any) -> dict[str, Any]:
    """Return the commands of a group, also of one that makes them when they are asked for."""
    if not hasattr(command, "list_commands"):
        return {}
    return {name: command.get_command(None, name) for name in command.list_commands(None)}


def _leaves(command: Any, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], set[str]]]:
    below = _subcommands(command)
    options = {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
    if words == ("capture", "report"):  # it parses its own arguments
        options.add("--json")
    if words:
        yield words, options
    for name, each in below.items():
        if not each.hidden:
            yield from _leaves(each, (*words, name))


def command_of(line: str) -> str:
    """Return the command that a line runs."""
    known = commands_with_json()
    words = line.split()
    for length in (3, 2, 1):
        if " ".join(words[:length]) in known:
            return " ".join(words[:length])
    raise AssertionError(line)


def collect(folder: Path) -> dict[str, Any]:
    """Run every line; return the exit code and the normalised output of each."""
    files = folder / "files"
    files.mkdir()
    _write_inputs(files)
    _, frame, _ = _run(["frame", "make", "play", "--action", "1"])
    places = {
        "FILES/": f"{files}/",
        "DATA/": f"{ROOT}/tests/data/",
        "SHOW/": f"{ROOT}/examples/show/",
        "A1_DATAGRAM": SAMPLES["3.2 position 0"].datagram.hex(),
        "FRAME": frame,
    }
    found = {}
    for line in [*LINES.split("\n"), *frame_lines()]:
        if not line:
            continue
        given = line
        for name, place in places.items():
            given = given.replace(name, place)
        code, out, err = _run([*shlex.split(given), "--json"])
        found[line] = {
            "exit": code,
            "json": [_read(text, folder, line) for text in _documents(out)],
            **({"error": _read(err, folder, line)} if err else {}),
        }
    return found


def _read(text: str, folder: Path, line: str) -> Any:
    try:
        document = json.loads(text)
    except ValueError:
        raise AssertionError(f"{line}: {text}") from None
    command = line.split(maxsplit=1)[0]
    if command == "doctor":
        document |= dict.fromkeys(document.keys() & OF_THE_COMPUTER, "<computer>")
    names = {f"{folder}/files": "FILES", str(folder): "FOLDER", str(ROOT): "ROOT"}
    return normalised(document, names, exact=command in EXACT)


def _documents(out: str) -> list[str]:
    """Return the documents of an output: one, or one in each line."""
    if not out.strip():
        return []
    try:
        json.loads(out)
    except ValueError:
        return out.splitlines()
    return [out]


class _EndsServer(io.StringIO):
    """A standard output that ends a server as soon as it has printed its line."""

    def flush(self) -> None:
        super().flush()
        if self.getvalue().endswith("\n") and not self._ended:
            self._ended = True
            os.kill(os.getpid(), signal.SIGTERM)

    _ended = False


def _run(arguments: list[str]) -> tuple[int, str, str]:
    out = _EndsServer() if arguments[0] in SERVERS else io.StringIO()
    err = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(arguments)
    return code, out.getvalue(), err.getvalue()


def _write_inputs(files: Path) -> None:
    wave, drum = (_performed(script, 1.5) for script in ("wave", "drum"))
    save(wave, files / "wave.mcap")
    shutil.copy(files / "wave.mcap", files / "wave2.mcap")
    save(drum, files / "drum.npz")
    save(_raised(wave), files / "raise.mcap")
    save(wave.speed(20), files / "fast.mcap")
    whole = (files / "wave.mcap").read_bytes()
    (files / "cut.mcap").write_bytes(whole[: len(whole) * 3 // 4])
    (files / "show-report.json").write_text(json.dumps(show_report()))


def show_report() -> dict[str, Any]:
    """Return the report of a show in which a robot was lost."""
    started = StartReport(
        run="r", skew_s=0.002, resolution_s=0.001, lead_s=1.0, completed=True, cues=()
    )
    section = SectionReport("one", {"ann": started, "bob": None}, lost=("bob",))
    return ShowReport([section], ended="stopped", lost=("cid",)).as_json()


def _raised(like: Track) -> Track:
    """Return a motion of one joint that a few keyframes describe."""
    joints = np.repeat(like.joints_rad[:1], 21, axis=0)
    joints[:, G1_29.names.index("right_elbow_joint")] += np.linspace(0.0, 0.2, 21)
    return Track(times_s=np.linspace(0.0, 2.0, 21), joints_rad=joints, names=G1_29.names)


def _performed(script: str, seconds: float) -> Track:
    action = action_from_script(script, script, seconds)
    assert action.times_s is not None
    assert action.joints_rad is not None
    return Track(times_s=action.times_s, joints_rad=action.joints_rad, names=G1_29.names)
