"""What a trial leaves: files without identifiers, that other programs read."""

import io
import json
import re
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import dpkt  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema_rs import validator_for

import virtual
from rote import messages as m
from rote.cli import main
from rote.errors import BadRequestError
from rote.sim.store import Store, StoredAction
from rote.sim.world import World
from rote.trial.output import TrialOutput, build_output, check_folder
from rote.trial.page import render_page
from rote.trial.recorder import FRAMES, QUADRUPED
from rote.trial.report import read_report, schema
from rote.trial.scrubbing import TrialScrubber
from rote.trial.steps import TrialLevel
from rote.wire.a1 import codec
from rote.wire.a1.values import Dialect, Header, LowState
from rote.wire.teaching import codec as teaching
from sampled import sample_examples
from trial_robots import SLOW, firmware, tried

OWNERS = ("Annas Wunsch", "Waist_Drum_Dance_2", "Bo")


def with_actions() -> World:
    world = World(Store(":memory:"), firmware=firmware(SLOW))
    for name in OWNERS:
        save = m.SaveAction(
            name=name,
            created_s=0,
            duration_ms=500,
            keyframes=(m.Keyframe(joint=15, time_ms=400, value_rad=0.1),),
        )
        assert world.obey("test", save) == m.Status(m.Code.OK)
    return world


@pytest.fixture(scope="module")
def by_services() -> TrialOutput:
    return build_output(virtual.run(tried("pipe", with_actions(), TrialLevel.LOOK)))


@pytest.fixture(scope="module")
def by_frames() -> TrialOutput:
    return build_output(virtual.run(tried("udp", with_actions(), TrialLevel.LOOK)))


def test_the_report_has_the_published_form(
    by_services: TrialOutput, by_frames: TrialOutput
) -> None:
    check = validator_for(schema())
    for left in (by_services, by_frames):
        check.validate(json.loads(left.files["report.json"]))
    wrong = {**by_services.report, "facts": [{"id": "x"}]}
    assert not check.is_valid(wrong)


def test_the_owners_names_and_the_address_are_in_no_file(
    by_services: TrialOutput, by_frames: TrialOutput
) -> None:
    for left in (by_services, by_frames):
        for name, data in left.files.items():
            for owner in OWNERS[:2]:
                assert owner.encode() not in data, (owner, name)
                assert owner.encode().hex().encode() not in data, (owner, name)
            assert b'"Bo"' not in data
            assert b"192.0.2.7" not in data
        assert left.replaced


def test_factory_actions_and_the_trials_own_keep_their_names(by_services: TrialOutput) -> None:
    assert b"release_arm" in by_services.files["conversation.jsonl"]
    assert b"turn_back_wave" in by_services.files["report.json"]


def test_serials_hardware_addresses_and_keys_are_replaced_everywhere_alike() -> None:
    scrubber = TrialScrubber(b"k" * 32)
    secret = (
        '{"sn":"B42D2000AAAA1111","mac":"a4:c3:f0:11:22:33","ssid":"Familie Huber",'
        '"key":"00112233445566778899aabbccddeeff","ip":"10.1.2.3","owner":"Anna Huber"}'
    )
    scrubber.learn(secret)
    shown = scrubber.scrub_text(secret + " B42D2000AAAA1111")
    for part in ("B42D2000AAAA1111", "a4:c3:f0:11:22:33", "Huber", "0011223344", "10.1.2.3"):
        assert part not in shown
    serial = re.search(r'"sn":"([^"]+)"', shown)
    assert serial is not None
    assert shown.endswith(serial[1])


def test_a_frame_and_an_a1s_state_are_still_sound_without_their_names() -> None:
    scrubber = TrialScrubber()
    scrubber.learn_action_names(["Annas Wunsch"])
    listed = teaching.encode(
        teaching.Frame(
            teaching.CommandId.LIST_ACTIONS,
            1,
            teaching.encode_reply(m.ActionList((m.ActionEntry("Annas Wunsch", 500),))),
        )
    )
    frame = teaching.decode(scrubber.scrub_bytes(listed, FRAMES))  # raises if its CRC were wrong
    assert b"Annas" not in frame.payload
    state = codec.encode(LowState(header=Header(0xFF, serial=77_777_777)), Dialect.A1_3_3_4)
    shown = scrubber.scrub_bytes(state, QUADRUPED)
    inspected = codec.inspect(shown)
    assert inspected.fault is None
    assert struct.pack("<I", 77_777_777) not in shown


def test_the_capture_is_read_by_other_programs(
    by_services: TrialOutput,
    by_frames: TrialOutput,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    packets = list(dpkt.pcap.Reader(io.BytesIO(by_frames.files["capture.pcap"])))
    payloads = [bytes(dpkt.ethernet.Ethernet(data).data.data.data) for _, data in packets]
    assert len(payloads) > 10
    assert all(teaching.decode(payload) for payload in payloads)
    by_services.write(tmp_path / "left")
    left = tmp_path / "left"
    keys = ["--keylog", str(left / "capture.keys")]
    assert main(["capture", str(left / "capture.pcap"), *keys, "--json"]) == 0
    assert "7107" in capsys.readouterr().out


def test_the_page_loads_nothing_and_runs_nothing(by_services: TrialOutput) -> None:
    page = by_services.files["report.html"].decode()
    assert "<script" not in page
    assert not re.search(r"(?:src|href)\s*=", page)
    assert "What differs" in page
    assert page.count("<svg") >= 2


def test_texts_in_a_report_are_escaped_on_the_page(by_services: TrialOutput) -> None:
    report = {**by_services.report, "reason": "<script>alert(1)</script>"}
    assert "<script>alert" not in render_page(report)


def test_nothing_is_written_over(by_services: TrialOutput, tmp_path: Path) -> None:
    by_services.write(tmp_path / "one")
    with pytest.raises(BadRequestError, match="already contains a trial"):
        check_folder(tmp_path / "one")
    (tmp_path / "file").write_text("x")
    with pytest.raises(BadRequestError, match="is a file"):
        check_folder(tmp_path / "file")


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"format": "rote-trial-1"}', '{"format": "other", "robot": {}}']
)
def test_a_file_that_is_no_report_is_refused_with_a_remedy(text: str, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text(text)
    with pytest.raises(BadRequestError) as caught:
        read_report(path)
    assert caught.value.remedy
    with pytest.raises(BadRequestError, match="cannot be read"):
        read_report(tmp_path / "none.json")


def test_a_report_is_read_from_its_folder(by_services: TrialOutput, tmp_path: Path) -> None:
    by_services.write(tmp_path)
    assert read_report(tmp_path) == by_services.report == read_report(tmp_path / "report.json")


def test_the_conversation_is_one_json_document_per_line(by_services: TrialOutput) -> None:
    lines = [json.loads(line) for line in by_services.files["conversation.jsonl"].splitlines()]
    assert len(lines) == by_services.messages
    assert {"rote", "robot"} == {line["from"] for line in lines}
    assert any(line.get("api") == "arm/7107" and line.get("code") == 0 for line in lines)


# ---- names in every form of JSON ----------------------------------------------------------------

_LETTERS = st.sampled_from(list('aB7"\\/\n\t\x1b\x7fé试🙂 _-\u2028'))
_OWNERS = st.text(_LETTERS, min_size=1, max_size=8).filter(
    lambda name: name.strip() == name and len(set(name)) > 1
)


def _write(value: Any, escaped: set[str], upper: bool, slashes: bool) -> str:
    """JSON as any program may write it: characters as they are or as escapes."""

    def code(unit: str) -> str:
        return f"\\u{unit.upper() if upper else unit}"

    def write(character: str) -> str:
        if character in escaped:
            units = character.encode("utf-16-be").hex()
            return "".join(code(units[at : at + 4]) for at in range(0, len(units), 4))
        if character == "/" and slashes:
            return "\\/"
        return json.dumps(character, ensure_ascii=False)[1:-1]

    if isinstance(value, str):
        return f'"{"".join(map(write, value))}"'
    if isinstance(value, dict):
        inner = (f'"{key}": {_write(each, escaped, upper, slashes)}' for key, each in value.items())
        return f"{{{', '.join(inner)}}}"
    if isinstance(value, list):
        return f"[{', '.join(_write(each, escaped, upper, slashes) for each in value)}]"
    return json.dumps(value)


@st.composite
def _written(draw: st.DrawFn, value: Any, letters: str = "") -> str:
    escaped = draw(st.sets(st.sampled_from("é试🙂\x7f\u2028" + letters)))
    return _write(value, escaped, draw(st.booleans()), draw(st.booleans()))


def _texts(value: Any) -> Iterator[str]:
    """Every text in a document, also in JSON within its strings."""
    if isinstance(value, str):
        yield value
        if value[:1] in ("{", "[", '"'):
            with suppress(ValueError):
                yield from _texts(json.loads(value))
    elif isinstance(value, (list, dict)):
        for each in value.items() if isinstance(value, dict) else value:
            yield from _texts(each)
    elif isinstance(value, tuple):
        for each in value:
            yield from _texts(each)


@sample_examples(50)
@given(st.data())
def test_an_owners_name_is_replaced_in_every_form_of_json(data: st.DataObject) -> None:
    name = data.draw(_OWNERS)
    listed = data.draw(_written([[], [{"name": name, "time": 1.0}]], 'aB7"\\/_'))
    scrubber = TrialScrubber(b"k" * 32)
    scrubber.learn_robot("webrtc://192.0.2.7", [listed])
    text = data.draw(_written({"pre_name": name, "kept": "release_arm"}, 'aB7"\\/_'))
    for _ in range(data.draw(st.integers(0, 3))):
        text = data.draw(_written({"data": text}))
    shown = json.loads(scrubber.scrub_text(text))  # raises if it is no JSON any more
    found = list(_texts(shown))
    assert name not in found
    assert "release_arm" in found
    if len(name.encode()) >= 4:
        assert not any(name in each for each in found)
    assert scrubber.tally.document()
    document = scrubber.scrub_document({"note": name, "shapes": {name: [name]}})
    assert name not in list(_texts(document))


@pytest.mark.each_once("name", "wire")
@pytest.mark.parametrize("name", ['Ann"a', "a\\b\\c", "Müller", "Bo", "x/y z", 'q"', "tab\tbed"])
@pytest.mark.parametrize("wire", ["pipe", "udp"])
def test_odd_names_of_owners_are_in_no_file(
    name: str, wire: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rote.trial.g1_steps.LISTEN_S", 1.0)  # the names are told at once
    world = World(Store(":memory:"), firmware=firmware(SLOW))
    world.store.save(
        StoredAction(
            name=name,
            created_s=0,
            duration_ms=500,
            keyframes=(m.Keyframe(joint=15, time_ms=400, value_rad=0.1),),
        )
    )
    left = build_output(virtual.run(tried(wire, world, TrialLevel.LOOK)))
    assert left.replaced
    for file in ("report.json", "conversation.jsonl"):
        for line in (
            left.files[file].decode().splitlines() if "l" in file[-1] else [left.files[file]]
        ):
            assert name not in list(_texts(json.loads(line))), file
    entries = [json.loads(line) for line in left.files["conversation.jsonl"].splitlines()]
    frames = [bytes.fromhex(each["hex"]) for each in entries if "hex" in each]
    assert not any(name.encode() + b"\0" in frame for frame in frames)
