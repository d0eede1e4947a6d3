"""What the README claims is true: its blocks run in test_documentation.py, the rest is here.

A claim about behaviour names the tests that show it. So a claim that is changed without its tests,
and a test that goes away with its claim left behind, both fail.
"""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import page_build
import pytest
import release_check

from documentation import ROOT
from rote.cli import commands
from rote.transport.wires import WIRES
from rote.wire.a1.values import Dialect

README = (ROOT / "README.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PEERS = ROOT / "scripts" / "peers"
SHOWN_BY = {
    "No robot? A simulated one is built in": [
        "tests/test_behaviour.py::test_a_motion_taught_by_hand_is_listed_and_played_back_closely",
    ],
    "rote web # opens the page above with a simulated G1": [
        "tests/cli/test_cli_web.py::test_it_opens_a_browser_where_there_is_one_and_shows_a_token_it_was_given",
        "tests/cli/test_cli_web.py::test_it_says_where_it_is_serves_its_robot_and_ends_when_asked_to",
    ],
    "let a scripted hand wave the robot's arm, then save the take, edit it and play it": [
        "tests/web/browser/test_web_browser.py::test_a_person_teaches_edits_plays_and_stops_with_no_error_on_the_console",
    ],
    "Linux, macOS, Windows": [
        "tests/test_platforms.py::test_every_command_works_or_is_refused_in_words_on_a_poorer_system",
    ],
    "`rote.connect` is the same with `await`": [
        "tests/test_sync.py::test_every_public_method_is_there_with_the_same_arguments",
    ],
    "`unitree-webrtc-connect` 2.0.0 to 2.2.0, unmodified": [
        "tests/interop/test_interop_webrtc.py::test_every_release_gets_what_it_asks_for",
    ],
    "a CycloneDDS 0.10.2 peer with Unitree's types": [
        "tests/interop/test_interop_dds.py::test_the_peer_is_what_robots_run",
        "tests/interop/test_interop_sdk.py::test_the_examples_of_the_vendor_run_to_their_ends",
    ],
    "`unitree-legged-sdk` 3.8, both ends": [
        "tests/interop/test_interop_a1.py::test_our_client_walks_the_makers_server",
        "tests/interop/test_interop_a1_sim.py::test_the_makers_library_walks_turns_and_poses_the_simulated_robot",
    ],
    "`rote stop` is a software stop, not an emergency stop": [
        "tests/cli/test_cli_stopping.py::test_a_stop_that_does_not_get_through_is_sent_until_it_is_confirmed",
    ],
    "Arms are soft only while you teach": [
        "tests/sim/test_sim_world_random.py::",
        "tests/test_faults.py::test_the_body_is_safe_and_the_client_tells_the_truth",
    ],
    "They hold again however teaching ends: success, error, Ctrl-C, a crash": [
        "tests/test_behaviour.py::test_a_motion_taught_by_hand_is_listed_and_played_back_closely",
        "tests/cli/test_cli_interrupted.py::test_while_it_teaches_it_says_that_nothing_was_saved",
        "tests/test_behaviour.py::test_a_failed_block_saves_nothing_and_the_arms_hold",
        "tests/test_behaviour.py::test_a_cancelled_block_saves_nothing_and_the_arms_hold",
        "tests/test_faults.py::test_a_real_process_that_is_suspended_or_killed_leaves_a_safe_body",
    ],
    "Nothing is streamed to a robot before joint positions and speeds are checked": [
        "tests/test_behaviour.py::test_an_unsafe_track_is_refused_before_anything_is_sent",
        "tests/robot/test_robot_streaming.py::test_a_track_beyond_a_limit_is_unsafe",
    ],
    "Moves to the first pose and back stay below 1 rad/s": [
        "tests/robot/test_robot_streaming.py::test_the_ends_are_soft_from_wherever_to_wherever",
    ],
    "A stop that fails is shown, and repeated until the robot confirms it": [
        "tests/cli/test_cli_stopping.py::test_a_stop_that_does_not_get_through_is_sent_until_it_is_confirmed",
    ],
    "Several robots start together and stop by one STOP": [
        "tests/session/test_session_stage.py::",
    ],
    "Every command has `--help`": [
        "tests/cli/test_cli_help.py::test_the_help_of_every_command_is_whole_and_shows_values_as_what_they_are",
    ],
    "Ctrl-C stops it softly": ["tests/cli/test_cli_interrupted.py::"],
    "Without `--robot` or `ROTE_ROBOT`, commands use the built-in robot": [
        "tests/cli/test_cli_newcomer.py::test_a_newcomers_lines_end_with_their_codes_and_in_our_own_words",
    ],
}
"""The tests of each claim; a file alone if all its tests are about it."""


@pytest.mark.parametrize("claim", SHOWN_BY)
def test_a_claim_about_behaviour_has_its_tests(claim: str) -> None:
    assert claim in " ".join(README.split())
    for named in SHOWN_BY[claim]:
        file, _, test = named.partition("::")
        assert f"def {test or 'test_'}" in (ROOT / file).read_text(encoding="utf-8"), named


def test_every_line_about_safety_has_its_tests() -> None:
    (safety,) = re.findall(r"^## Safety\n(.*?)^## ", README, re.MULTILINE | re.DOTALL)
    lines = re.findall(r"^- (.*)$", safety, re.MULTILINE)
    assert len(lines) == 4
    assert not [line for line in lines if not any(claim in line for claim in SHOWN_BY)]


def test_the_edits_that_are_named_are_commands() -> None:
    (named,) = re.findall(r"rote motion trim .*# also (.*)$", README, re.MULTILINE)
    assert {*named.split(", ")} <= {*commands("motion").commands["motion"].commands}


def test_the_wires_that_are_named_are_those_of_the_product() -> None:
    named = re.findall(r"^\| `(\w+)://", README, re.MULTILINE)
    assert sorted(named) == sorted(WIRES)


def test_no_robot_is_claimed_to_be_tried_on_hardware() -> None:
    (table,) = re.findall(r"^\| wire \|.*\n\|[-|]+\n((?:\|.*\n)+)", README, re.MULTILINE)
    rows = [line.rstrip(" |").rpartition("| ")[2] for line in table.splitlines()]
    assert {*rows} == {"\N{EN DASH}", "**not tried yet**", "**no factory robot speaks it**"}


def test_the_duration_of_the_tests_is_the_one_that_the_makefile_states() -> None:
    (stated,) = re.findall(r"make test .*: (about .*)$", README, re.MULTILINE)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert f"make check and all tests ({stated})" in makefile


def test_the_licence_is_that_of_the_package() -> None:
    own, *_ = PROJECT["license"].split(" AND ")  # the others are of what a wheel bundles
    assert f"Licence: {own}\n" in README


def test_it_can_be_read_in_three_minutes() -> None:
    assert len(README.split()) <= 700


def test_the_versions_of_python_are_those_of_the_package() -> None:
    (first, last) = re.findall(r"Python (3\.\d+) to (3\.\d+)", README)[0]
    versions = [
        each.rpartition(" ")[2]
        for each in PROJECT["classifiers"]
        if re.fullmatch(r"Programming Language :: Python :: 3\.\d+", each)
    ]
    assert (first, last) == (versions[0], versions[-1])
    assert [".".join(map(str, each)) for each in release_check.SUPPORTED] == versions


def test_the_sizes_are_those_that_a_release_is_checked_for() -> None:
    assert [int(size) for size in re.findall(r"(\d+)\sMB", README)] == [
        *release_check.SIZES_MB.values()
    ]
    assert f"`[{release_check.README_EXTRAS}]`" in README
    assert {*release_check.README_EXTRAS.split(",")} <= {*PROJECT["optional-dependencies"]}


def test_the_page_needs_the_node_that_the_build_asks_for() -> None:
    assert f"Node.js {page_build.NODE} or newer" in README


def test_the_other_programs_are_those_of_the_tests() -> None:
    clients = (PEERS / "clients").read_text(encoding="utf-8")
    (releases,) = re.findall(r"^releases=\((.*)\)$", clients, re.MULTILINE)
    newest, *_, oldest = releases.split()
    assert f"`unitree-webrtc-connect` {oldest} to {newest}, unmodified" in README
    (version,) = re.findall(r'"\$legged==(\d+\.\d+)\.', clients)
    assert f"Unitree's `unitree-legged-sdk` {version}, both ends" in README
    assert "cyclonedds-0.10.2" in (PEERS / "dds").read_text(encoding="utf-8")
    assert "a CycloneDDS 0.10.2 peer" in README
    assert len(Dialect) == 4
    assert "works, four dialects" in README


def leaves(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    below = getattr(command, "commands", None)
    if not below:
        yield path, command
    for name, each in (below or {}).items():
        if not each.hidden:
            yield from leaves(each, (*path, name))


def test_all_commands_that_report_something_have_json() -> None:
    without = {
        " ".join(path)
        for path, command in leaves(commands())
        if not any("--json" in param.opts for param in command.params)
    }
    assert without == {
        "agent", "stage router",  # run until they are ended
        "mcp",  # speaks to another program
        "trial schema", "show schema",  # print nothing but JSON
        "capture report",  # reads its own options, --json among them
        "frame make",  # a group: its commands have it
    }  # fmt: skip


def test_each_command_of_the_readme_is_one_that_a_release_is_checked_with() -> None:
    found = release_check.readme_commands(README)
    assert [arguments[0] for arguments in found] == [
        "web", "teach", "list", "play", "motion", "sim", "doctor",
    ]  # fmt: skip


def test_the_picture_is_there() -> None:
    for picture in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", README):
        assert (ROOT / picture).stat().st_size < 3_000_000


def test_the_index_of_the_site_has_the_same_picture() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert "pictures/teach-edit-play.webp" in index
    assert Path("docs/pictures/teach-edit-play.webp").as_posix() in README
