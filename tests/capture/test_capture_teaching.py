"""Plain teaching frames in a capture: every command, every action, each request with its answer."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from rote import messages as m
from rote.capture.model import Datagram
from rote.capture.report.report import report_capture
from rote.capture.synthetic import build, ethernet
from rote.capture.synthetic import script as story
from rote.cli import main
from rote.wire.teaching import codec as teaching

CLIENT, ROBOT = ("192.168.12.20", 50_000), ("192.168.12.1", 49_504)
START_NS = 1_769_635_650 * 10**9
OK = m.Status()
WAVE = m.SaveAction(name="wave", created_s=1, duration_ms=3000, frames=50)


class Talk:
    """A capture of one client and one robot, written line by line."""

    def __init__(self, client: tuple[str, int] = CLIENT, robot: tuple[str, int] = ROBOT) -> None:
        self.datagrams: list[Datagram] = []
        self._ends = client, robot
        self._sequence = 0

    def ask(
        self, at_s: float, said: m.Command, reply: m.Reply | None, *, sent: int = 1, ahead: int = 0
    ) -> "Talk":
        """Add a request, sent so many times, and its answer 3 ms after the last of them."""
        command, payload = teaching.encode_command(said)
        asked = teaching.encode(teaching.Frame(command, self._sequence, payload))
        for number in range(sent):
            self._add(at_s + 0.1 * number, True, asked)
        if reply is not None:
            frame = teaching.Frame(command, self._sequence + ahead, teaching.encode_reply(reply))
            self._add(at_s + 0.1 * (sent - 1) + 0.003, False, teaching.encode(frame))
        self._sequence += 1
        return self

    def _add(self, at_s: float, to_robot: bool, payload: bytes) -> None:
        ends = self._ends if to_robot else self._ends[::-1]
        self.datagrams.append(Datagram(START_NS + round(at_s * 1e9), *ends, payload))

    def begin(self) -> "Talk":
        """Add the initialisation."""
        first: tuple[m.Command, ...] = (
            m.TakeControl(), m.SyncParameters(), m.Subscribe(), m.SignalReady(),
        )  # fmt: skip
        for n, said in enumerate(first):
            self.ask(n / 100, said, OK)
        return self

    def written(self, folder: Path, *, only: tuple[str, int] | None = None) -> Path:
        path = folder / "talk.pcap"
        kept = [one for one in self.datagrams if only is None or one.source == only]
        ethernet.write(path, iter(kept))
        return path


def kinds(document: dict[str, Any], *wanted: str) -> list[str]:
    return [line["kind"] for line in document["timeline"] if not wanted or line["kind"] in wanted]


def test_every_command_is_counted_and_every_action_named(tmp_path: Path) -> None:
    path = tmp_path / "frames.pcap"
    build.make(path, "frames")
    found = report_capture(path).document()
    assert found["commands"] == {
        "0x09": 1, "0x0a": 1, "0x0b": 1, "0x0c": 1, "0x0d": 2, "0x0e": 1, "0x0f": 2, "0x1a": 2,
        "0x2b": 1, "0x41": 1,
    }  # fmt: skip
    assert found["actions"] == [story.NEW_NAME]
    assert [one["code"] for one in found["exchanges"]] == [0] * 13


def test_saved_listed_and_played_names_are_all_there(tmp_path: Path) -> None:
    listed = m.ActionList((m.ActionEntry("Waist_Drum_Dance", 9500), m.ActionEntry("drum", 1)))
    talk = Talk().begin()
    talk.ask(1, m.ListActions(), listed)
    talk.ask(2, WAVE, OK)
    talk.ask(3, m.PlayAction(action=2), OK)
    talk.ask(4, m.PlayAction(action=3), OK)
    found = report_capture(talk.written(tmp_path))
    assert found.teaching is not None
    assert found.teaching.listed == ["Waist_Drum_Dance", "drum"]
    assert found.teaching.saved == ["wave"]
    assert found.teaching.played == ["drum", "wave"]
    assert found.document()["actions"] == ["Waist_Drum_Dance", "drum", "wave"]


def test_a_refused_teaching_is_refused_and_no_teaching(tmp_path: Path) -> None:
    talk = Talk().begin().ask(1, m.EnterTeaching(), m.Status(m.Code.WRONG_STATE))
    found = report_capture(talk.written(tmp_path)).document()
    assert kinds(found, "teach", "refused") == ["refused"]
    (line,) = (line for line in found["timeline"] if line["kind"] == "refused")
    assert "enter teaching (0x0d): refused with 7404" in line["evidence"]
    assert found["exchanges"][-1]["code"] == 7404


def test_the_note_of_an_answer_is_told(tmp_path: Path) -> None:
    talk = Talk().begin().ask(1, m.PlayAction(action=1), None)
    note = b"10.0.0.9:5000 is teaching"
    frame = teaching.Frame(0x41, 4, (7400).to_bytes(4) + note.ljust(40, b"\0"))
    talk.datagrams.append(Datagram(START_NS + 1_003_000_000, ROBOT, CLIENT, teaching.encode(frame)))
    found = report_capture(talk.written(tmp_path)).document()["exchanges"][-1]
    assert found["note"] == note.decode()
    assert found["outcome"].endswith("(10.0.0.9:5000 is teaching)")


def test_a_stop_is_no_play(tmp_path: Path) -> None:
    talk = Talk().begin().ask(1, m.StopMotion(), OK)
    assert kinds(report_capture(talk.written(tmp_path)).document(), "play", "stop") == ["stop"]


def test_an_accepted_play_soon_after_a_refused_one_is_kept(tmp_path: Path) -> None:
    talk = Talk().begin()
    talk.ask(1.0, m.PlayAction(action=1), m.Status(m.Code.BUSY))
    talk.ask(1.5, m.PlayAction(action=1), OK)
    found = report_capture(talk.written(tmp_path)).document()
    assert kinds(found, "play", "refused") == ["refused", "play"]


def test_a_refused_save_leaves_no_name(tmp_path: Path) -> None:
    talk = Talk().begin().ask(1, WAVE, m.Status(m.Code.NAME_EXISTS))
    found = report_capture(talk.written(tmp_path)).document()
    assert found["actions"] == []
    assert kinds(found, "save", "refused") == ["refused"]


def test_a_repeated_request_is_one_request(tmp_path: Path) -> None:
    talk = Talk().begin().ask(1, m.PlayAction(action=1), OK, sent=3)
    found = report_capture(talk.written(tmp_path)).document()
    assert kinds(found, "play") == ["play"]
    assert found["exchanges"][-1]["sent"] == 3
    assert found["exchanges"][-1]["latency_s"] == pytest.approx(0.203)


def test_replies_that_count_one_more_are_put_to_their_requests(tmp_path: Path) -> None:
    talk = Talk()
    asked: tuple[m.Command, ...] = m.TakeControl(), m.Record(True), m.Record(False)
    for n, said in enumerate(asked):
        reply = m.Status(m.Code.NOT_INITIALISED) if n == 1 else OK
        talk.ask(n, said, reply, ahead=1)
    found = report_capture(talk.written(tmp_path)).document()
    assert [one["code"] for one in found["exchanges"]] == [0, 7410, 0]


def test_a_request_without_an_answer_is_not_taken_for_done(tmp_path: Path) -> None:
    talk = Talk().begin().ask(1, m.EnterTeaching(), None)
    found = report_capture(talk.written(tmp_path)).document()
    assert kinds(found, "teach", "unanswered") == ["unanswered"]
    assert found["exchanges"][-1]["code"] is None


def test_where_the_robots_direction_is_missing_the_requests_are_told_as_less_sure(
    tmp_path: Path,
) -> None:
    talk = Talk().begin().ask(1, m.EnterTeaching(), OK).ask(2, m.ExitTeaching(), OK)
    found = report_capture(talk.written(tmp_path, only=CLIENT)).document()
    (teach,) = (line for line in found["timeline"] if line["kind"] == "teach")
    assert teach["confidence"] < 0.99
    assert "none of the robot's" in teach["evidence"]
    assert found["commands"]["0x0d"] == 1


def test_a_robot_on_another_port_is_known_by_what_it_sends(tmp_path: Path) -> None:
    talk = Talk(client=("10.0.0.1", 49_504), robot=("10.0.0.2", 4000)).begin()
    talk.ask(1, m.EnterTeaching(), m.Status(m.Code.BUSY))
    found = report_capture(talk.written(tmp_path)).document()
    assert found["exchanges"][-1]["client"] == "10.0.0.1:49504"
    assert found["exchanges"][-1]["code"] == 7400


def test_teaching_ends_with_a_play_by_the_same_client(tmp_path: Path) -> None:
    talk = Talk().begin().ask(1, m.EnterTeaching(), OK).ask(2, m.Record(True), OK)
    talk.ask(3, m.Record(False), OK).ask(4, m.PlayAction(action=1), OK)
    found = report_capture(talk.written(tmp_path)).document()
    ends = {line["kind"]: line["end"] for line in found["timeline"]}
    assert ends["record"].endswith("33.000000Z")
    assert ends["teach"].endswith("34.000000Z")


def test_the_report_shows_counts_names_and_answers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    talk = Talk().begin().ask(1, WAVE, OK).ask(2, m.PlayAction(action=1), m.Status(7413))
    assert main(["capture", str(talk.written(tmp_path))]) == 0
    said = capsys.readouterr().out
    assert "actions saved: wave" in said
    assert "save 'wave', 3 s, 50 frames" in said
    assert "refused with 7413" in said


# ---- packet by packet ----------------------------------------------------------------------------


def packets(path: Path, capsys: pytest.CaptureFixture[str], *options: str) -> list[dict[str, Any]]:
    assert main(["capture", "packets", str(path), "--json", *options]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


def test_packets_are_listed_field_by_field(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Talk().begin().ask(1, WAVE, m.Status(m.Code.STORE_FULL)).written(tmp_path)
    found = packets(path, capsys)
    assert len(found) == 10
    save, reply = found[-2:]
    assert (save["command"], save["direction"], save["crc_valid"]) == ("0x2b", "request", True)
    assert save["fields"]["name"]["value"] == "wave"
    assert save["fields"]["name"]["offset"] == 15
    assert reply["direction"] == "reply"
    assert reply["fields"]["code"]["value"] == 7411
    assert len(packets(path, capsys, "--first", "3")) == 3


def test_frames_that_look_alike_are_told_apart_in_the_list(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    talk = Talk(robot=("10.0.0.2", 4000)).ask(0, m.ExitTeaching(), OK).ask(1, m.Record(False), OK)
    found = packets(talk.written(tmp_path), capsys)
    assert [one["direction"] for one in found] == ["request", "reply"] * 2


def test_packets_are_printed_as_the_documents_break_them_down(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Talk().ask(0, m.EnterTeaching(), m.Status(m.Code.WRONG_STATE)).written(tmp_path)
    assert main(["capture", "packets", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("#1  21:27:30.000000  192.168.12.20:50000 -> 192.168.12.1:49504")
    assert lines[1] == "  0x0d enter-teaching, request, 167 bytes; CRC-32 holds"
    flags = next(line for line in lines if "mode_flags" in line).split()
    assert flags == ["15-18", "00", "00", "00", "01", "mode_flags", "0x01", "contradicted"]
    assert any("7404: it is not in a balanced stand" in line for line in lines)


def test_records_of_dtls_are_listed_as_what_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "phone.pcap"
    build.make(path, "webrtc")
    found = packets(path, capsys)
    assert {one["kind"] for one in found} == {"DTLS"}
    assert found[-1]["records"][0]["epoch"] == 1
    assert main(["capture", "packets", str(path), "--first", "20"]) == 0
    assert "is not a command" in capsys.readouterr().out


# ---- anything at all -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_frames_with_any_command_and_payload_are_reported_and_listed(
    seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chance = random.Random(seed)
    commands = [*teaching.COMMANDS, 0x00, 0x7F]
    sizes = (0, 4, 13, 44, 45, 56, 112, 148, 184, 220, 288, 542)
    talk = Talk()
    for number in range(400):
        payload = chance.choice((bytes, chance.randbytes))(chance.choice(sizes))
        payload = chance.choice((b"", b"", b"POSE", b"HAND", b"\0\0\x1c\xec")) + payload
        kind = chance.choice((0x17, 0x17, 0x17, 0x80, 0x81))
        frame = teaching.Frame(chance.choice(commands), chance.randrange(8), payload, kind)
        talk._add(number / 100, chance.random() < 0.5, teaching.encode(frame))
    path = talk.written(tmp_path)
    found = report_capture(path).document()
    assert found["teaching_frames"] == 400
    json.dumps(found, allow_nan=False)
    assert len(packets(path, capsys)) == 400
    assert main(["capture", str(path)]) == 0
    assert main(["capture", "packets", str(path)]) == 0
    assert "\x1b" not in capsys.readouterr().out
