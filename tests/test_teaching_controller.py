"""The documents' controller, by its own method names, on simulated robots behind real sockets."""

import asyncio
import json
import signal
import struct
import subprocess
import textwrap
import threading
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

import pytest

from forked import Rote, Script
from rig import rig
from rote import messages as m
from rote.compat.teaching_controller import G1TeachingController
from rote.errors import BadRequestError, RefusedError, UnsupportedError
from rote.messages import Code
from rote.wire import PacketBuilder
from rote.wire.teaching.codec import encode_reply


class Sim:
    """`rote sim` as another process, and what it says of itself."""

    def __init__(self, *options: str, store: Path) -> None:
        command = ("sim", "--json", "--serial", "", "--store", str(store), *options)
        self.process = Rote(*command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.ready = json.loads(self.process.stdout.readline())
        self.port = int(self.ready["url"].rpartition(":")[2])

    def notices(self) -> list[str]:
        """End it, and return what a person watching it could read."""
        self.process.send_signal(signal.SIGTERM)
        # Not by `communicate`, which leaves out what was read along with the first line.
        assert self.process.stdout is not None
        events = [json.loads(line) for line in self.process.stdout]
        self.process.wait()
        return [event["message"] for event in events if event["event"] == "notice"]


@pytest.fixture
def sim(tmp_path: Path) -> Iterator[Sim]:
    running = Sim("--udp", "127.0.0.1:0", store=tmp_path / "sim.sqlite")
    yield running
    running.process.kill()
    running.process.wait()
    assert running.process.stdout is not None
    running.process.stdout.close()


def test_the_documents_steps_run_as_they_are_printed(sim: Sim) -> None:
    controller = G1TeachingController("127.0.0.1", sim.port)
    controller.init_connection()
    assert controller.list_actions() == []
    controller.enter_teaching()
    controller.record_trajectory(seconds=0.5, hand="wave")
    note = controller.save_action("my_wave", 3000)
    report = controller.play_action(1)
    controller.exit_teaching()
    assert "kept all" in note
    assert report.completed
    assert controller.list_actions() == ["my_wave"]
    controller.close()
    said = sim.notices()
    order = ["teaching: the arms are soft", "recording", "teaching ended: the arms hold"]
    assert [words for words in said if words in order] == order
    assert said[-2:] == ["playing 'my_wave'", "playback ended"]


def test_the_documents_own_bodies_run_by_send_command(sim: Sim) -> None:
    """The bodies of the printed methods, call by call; leaving before saving."""
    with G1TeachingController("127.0.0.1", sim.port) as controller:
        for cmd_id in (0x09, 0x0A, 0x0B, 0x0C):
            assert controller.send_command(cmd_id) == m.Status()
        response = controller.send_command(0x1A)
        assert controller.parse_action_list(response) == []
        controller.send_command(0x0D, state_packet=True)
        controller.send_command(0x0F, flag=0x01)
        time.sleep(0.3)
        controller.send_command(0x0D)
        controller.send_command(0x0F, flag=0x00)
        controller.send_command(0x0E)
        controller.send_command(0x2B, name="my_wave", duration=300)
        controller.send_command(0x41, action_id=1)
        controller.send_command(0x41, action_id=0)
        assert controller.list_actions() == ["my_wave"]


def embedded() -> G1TeachingController:
    return G1TeachingController(url="sim://g1?store=:memory:")


def test_any_wire_of_frames_will_do_and_frames_can_be_sent_as_bytes() -> None:
    with embedded() as controller:
        controller.send_command(0x0D, struct.pack(">I", 1) + bytes(144))
        assert controller.robot.state is not None
        controller.start_recording()
        time.sleep(0.1)
        controller.stop_recording()
        controller.save_action("a", 100)
        controller.exit_teaching()
        assert controller.send_command(0x1A, bytes(44)) == controller.send_command(0x1A)


def test_what_is_no_command_or_too_early_is_refused() -> None:
    controller = embedded()
    with pytest.raises(BadRequestError, match="not connected"):
        controller.list_actions()
    with pytest.raises(BadRequestError, match="not connected"):
        controller.enter_teaching()
    with controller:
        with pytest.raises(BadRequestError, match="0x50 is not a documented command"):
            controller.send_command(0x50)
        with pytest.raises(RefusedError, match="no action number 1"):
            controller.play_action(1)
        with pytest.raises(RefusedError, match="nothing was recorded"):
            controller.save_action("a", 100)
    controller.close()


@pytest.mark.parametrize(("robot_ip", "url"), [("", ""), ("127.0.0.1", "sim://g1")])
def test_one_robot_is_named_in_one_way(robot_ip: str, url: str) -> None:
    with pytest.raises(BadRequestError, match="address or a URL"):
        G1TeachingController(robot_ip, url=url)


def test_addresses_become_urls() -> None:
    assert G1TeachingController("192.168.1.20").url == "udp://192.168.1.20:49504"
    assert G1TeachingController("::1", 5).url == "udp://[::1]:5"


def test_a_list_is_read_from_a_reply_a_payload_or_a_packet() -> None:
    listed = m.ActionList((m.ActionEntry("wave", 5000), m.ActionEntry("Grüße", 11800)))
    payload = encode_reply(listed)
    packet = PacketBuilder().build(0x1A, payload)
    for response in (listed, payload, packet):
        assert embedded().parse_action_list(response) == ["wave", "Grüße"]
    with pytest.raises(BadRequestError, match="not a list"):
        embedded().parse_action_list(m.Status(Code.BUSY))


def test_an_interrupted_recording_leaves_the_arms_holding() -> None:
    with embedded() as controller:
        controller.enter_teaching()
        with pytest.raises(BadRequestError, match="does not know the hand script"):
            controller.record_trajectory(1.0, hand="juggle")
        time.sleep(0.1)
        state = controller.robot.state
        assert state is not None
        assert not state.arms_soft
        assert not state.recording


@pytest.mark.parametrize("end", ["raise ValueError", "os.kill(os.getpid(), 15)", "pass"])
def test_the_arms_hold_however_the_program_ends(sim: Sim, end: str, tmp_path: Path) -> None:
    program = f"""
        import os, time
        from rote.compat.teaching_controller import G1TeachingController
        controller = G1TeachingController("127.0.0.1", {sim.port})
        controller.init_connection()
        controller.enter_teaching()
        controller.start_recording()
        {end}
    """
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(program), encoding="utf-8")
    Script(script, stdout=subprocess.PIPE, stderr=subprocess.PIPE).communicate()
    said = sim.notices()
    assert "teaching ended: the arms hold" in said
    assert "the teaching client has left: the arms hold" not in said, "it was left, not lost"


@contextmanager
def stock_robot() -> Iterator[str]:
    """A simulated robot with stock firmware in a thread of its own; yields its URL."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    stack = AsyncExitStack()

    async def begin() -> str:
        return (await stack.enter_async_context(rig("webrtc"))).url

    try:
        yield asyncio.run_coroutine_threadsafe(begin(), loop).result(20)
    finally:
        asyncio.run_coroutine_threadsafe(stack.aclose(), loop).result(20)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


def test_a_robot_with_stock_firmware_is_taught_by_the_same_steps() -> None:
    with stock_robot() as url, G1TeachingController(url=url) as controller:
        controller.enter_teaching()
        controller.record_trajectory(seconds=0.5, hand="wave")
        controller.save_action("my_wave", 500)
        assert controller.list_actions() == ["my_wave"]
        assert controller.play_action(1).completed
        controller.exit_teaching()
        controller.enter_teaching()
        controller.exit_teaching()
        assert controller.list_actions() == ["my_wave"], "what was not saved is not kept"
        with pytest.raises(BadRequestError, match="nothing was recorded"):
            controller.save_action("again", 500)
        with pytest.raises(UnsupportedError, match="single frames"):
            controller.send_command(0x1A, bytes(44))
