"""Names, codes and texts of the documents: shared by commands, and the same in Python."""

import logging
import threading

import pytest

import virtual
from rote.cli import main
from rote.compat.legged_sdk import LoopFunc
from rote.compat.teaching_controller import G1TeachingController
from rote.connection import connect
from rote.errors import CautionError
from rote.messages import Code, explain
from rote.model.g1 import Mode
from rote.sim.presets import action_from_script
from rote.sim.store import Store
from rote.sim.world import World
from rote.wire.teaching.fields import get_command_numbers


def ask(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    return (code, *capsys.readouterr())


def test_send_and_frame_make_know_the_same_names(capsys: pytest.CaptureFixture[str]) -> None:
    names = get_command_numbers()
    assert (names["list"], names["list-actions"]) == (0x1A, 0x1A)
    made = {name: ask(capsys, "frame", "make", name)[:2] for name in names}
    numbered = {name: ask(capsys, "frame", "make", f"0x{names[name]:02x}")[:2] for name in names}
    assert made == numbered
    assert {code for code, _ in made.values()} == {0}
    robot = ("--robot", "sim://g1?store=:memory:")
    for name in ("list", "list-actions", "LIST_ACTIONS", "0x1a"):
        assert ask(capsys, "send", name, *robot)[:2] == (0, "command 0x1a, code 0, actions []\n")


def test_a_mistyped_command_of_send_is_suggested(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = ask(capsys, "send", "lists")
    assert code == 2
    assert "Did you mean list?" in err


def refuse_teaching(world: World) -> CautionError:
    """Try to teach a robot that cannot be taught now; return the error."""

    async def teach() -> None:
        async with connect("sim://g1", world=world) as robot, robot.teach("wave"):
            raise AssertionError

    with pytest.raises(CautionError) as caught:
        virtual.run(teach())
    return caught.value


def test_a_caution_has_the_code_that_the_robot_would_have_answered() -> None:
    error = refuse_teaching(World(Store(":memory:"), mode=Mode.DAMP))
    assert (error.code, int(error.code)) == (Code.WRONG_STATE, 7404)
    assert str(error).startswith("rote refuses: ")
    assert str(error).endswith("(code 7404)")


def test_a_full_store_has_the_code_7411_and_the_words_of_the_app() -> None:
    store = Store(":memory:")
    for number in range(15):
        store.save(action_from_script(f"wave {number}", "wave", 0.5))
    error = refuse_teaching(World(store))
    assert (error.code, int(error.code)) == (Code.STORE_FULL, 7411)
    assert "up to 15 actions can be created (code 7411)" in str(error)


def test_a_refusal_in_a_wrong_mode_uses_the_words_of_the_app() -> None:
    assert "Ensure the robot is in a balanced standing" in explain(Code.WRONG_STATE)[1]


def test_a_name_that_exists_is_refused_in_the_words_of_the_app() -> None:
    assert explain(Code.NAME_EXISTS)[0].startswith("filename already exists")


def test_the_controller_has_its_sequence_and_socket() -> None:
    controller = G1TeachingController(url="sim://g1?store=:memory:")
    assert (controller.sequence, controller.socket) == (0, None)
    with controller:
        before = controller.sequence
        assert before >= 4  # 0x09 to 0x0C
        controller.send_command(0x1A, bytes(44))
        assert controller.sequence > before
        assert controller.socket is None  # in this process there is none
    assert controller.sequence == 0


def test_an_error_in_a_loop_is_logged_when_it_happens() -> None:
    logged = threading.Event()
    texts: list[str] = []

    class Notice(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            texts.append(self.format(record))
            logged.set()

    def fail() -> None:
        raise RuntimeError("no such motor")

    logger, notice = logging.getLogger("rote"), Notice()
    logger.addHandler(notice)
    try:
        loop = LoopFunc("Control", 0.002, 0, fail)
        loop.start()
        assert logged.wait(10.0)
    finally:
        logger.removeHandler(notice)
    assert "the loop 'Control' has ended by an error" in texts[0]
    assert "RuntimeError: no such motor" in texts[0]
    with pytest.raises(RuntimeError, match="no such motor"):
        loop.shutdown()
