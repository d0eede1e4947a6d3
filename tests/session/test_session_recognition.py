"""Which machine it is by what it says, and what may be done with it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rote.model.family import ZERO, BodyFacts, Build, Family, Joint, ModeTable, StreamFacts, X
from rote.model.g1 import G1, G1_23, G1_27, G1_29
from rote.model.registry import build_named, families
from rote.session.recognition import Identity, recognise

MACHINES = {
    1: 23, 2: 29, 3: 27, 4: 23, 5: 29, 6: 27, 9: 14, 10: 23, 11: 29, 12: 27, 13: 29, 14: 27, 15: 29,
    16: 27,
}  # fmt: skip
"""The joints of a G1 by its mode_machine, as Unitree's description of the robot has them."""


def identity(machine: int, mode: int = 500, wanted: Build | None = None) -> Identity:
    who = Identity(wanted)
    who.on_motors(machine, 35)
    who.on_mode(mode)
    return who


# ---- recognising --------------------------------------------------------------------------------


@pytest.mark.parametrize(("machine", "joints"), MACHINES.items())
def test_a_g1_is_recognised_by_its_mode_machine(machine: int, joints: int) -> None:
    found = recognise(machine, 500, 35)
    assert found.build.family == "g1"
    assert len(found.build.names) == joints
    assert found.certain
    assert found.note == ""


def test_stronger_motors_come_with_the_mode_machine() -> None:
    usual, strong = (recognise(machine, -1, 35).build for machine in (5, 15))
    for name in ("left_hip_pitch_joint", "right_wrist_yaw_joint"):
        before, after = usual.joint(name), strong.joint(name)
        assert before is not None
        assert after is not None
        assert after.effort_nm > before.effort_nm


@pytest.mark.parametrize("mode", [811, 816, 830])
@pytest.mark.parametrize("machine", [0, 5, 77])
def test_the_modes_of_an_r1_decide_whatever_mode_machine_it_says(mode: int, machine: int) -> None:
    found = recognise(machine, mode, 35)
    assert found.build.family == "r1"
    assert str(mode) in found.note


def test_the_mode_of_an_h2_makes_it_unknown_even_with_the_mode_machine_of_a_g1() -> None:
    found = recognise(5, 601, 35)
    assert not found.build.known
    assert "H2" in found.note


@pytest.mark.parametrize("machine", [0, 7, 8, 17, 255])
def test_what_is_not_in_the_table_is_unknown_and_named_by_its_slots(machine: int) -> None:
    found = recognise(machine, 500, 20)
    assert not found.build.known
    assert found.build.names == tuple(f"slot_{slot}" for slot in range(20))
    assert "mode_machine" in found.note


@given(st.integers(0, 255), st.integers(-1, 1000), st.integers(1, 64))
def test_anything_is_recognised_or_unknown_and_never_certain_without_a_reason(
    machine: int, mode: int, slots: int
) -> None:
    found = recognise(machine, mode, slots)
    assert found.build.known or not found.certain
    assert found.certain or found.note


def tripod(*machines: int, distinctive: int | None = None) -> Family:
    legs = tuple(
        Joint(
            index=index,
            name=f"leg_{index}",
            parent="base",
            axis=X,
            lower_rad=-1.0,
            upper_rad=1.0,
            velocity_rad_s=1.0,
            effort_nm=1.0,
            origin_m=ZERO,
        )
        for index in range(3)
    )
    return Family(
        name="tripod",
        title="tripod",
        joints=legs,
        builds=(Build(name="tripod", family="tripod", joints=legs, machines=machines),),
        body=BodyFacts(base="base"),
        modes=ModeTable(
            distinctive=frozenset() if distinctive is None else frozenset({distinctive})
        ),
    )


def test_a_family_of_another_package_is_recognised_by_its_own_numbers() -> None:
    assert recognise(200, 0, 3, (G1, tripod(200))).build.name == "tripod"
    assert recognise(5, 4242, 3, (G1, tripod(distinctive=4242))).build.name == "tripod"
    assert recognise(5, 500, 35, (G1, tripod(5))).build.family == "g1"  # what ships is found first


# ---- what a client knows ------------------------------------------------------------------------


def test_before_the_robot_was_heard_it_is_the_one_named_or_the_usual_g1() -> None:
    assert Identity().build is G1_29
    assert Identity(G1_23).build is G1_23
    assert not Identity().recognised
    assert Identity().find_stream_problem() is not None
    assert Identity().find_mode_problem() is not None


def test_the_same_machine_said_again_changes_nothing() -> None:
    who = Identity()
    assert who.on_motors(4, 35)
    build = who.build
    assert build.name == "g1-23"
    for _ in range(3):
        assert not who.on_motors(4, 35)
        assert not who.on_mode(500)
    assert who.build is build


def test_a_mode_that_comes_late_corrects_what_was_thought() -> None:
    who = Identity()
    assert not who.on_motors(5, 35)
    assert who.build is G1_29
    assert who.on_mode(811)
    assert who.build.family == "r1"


def test_a_robot_stays_what_it_is_when_it_changes_into_a_mode_that_others_have_too() -> None:
    who = identity(0, 811)
    build = who.build
    assert not who.on_mode(1)
    assert who.build is build


@pytest.mark.parametrize("machine", [4, 5, 10, 11, 12, 16])
def test_a_g1_may_be_streamed_to_and_put_into_another_mode(machine: int) -> None:
    who = identity(machine)
    assert who.recognised
    assert who.find_stream_problem() is None
    assert who.find_mode_problem() is None


@pytest.mark.parametrize(("machine", "mode"), [(0, 500), (77, 500), (5, 601), (0, -1)])
def test_an_unknown_machine_is_not_moved_and_the_words_say_why_and_a_way_round(
    machine: int, mode: int
) -> None:
    who = identity(machine, mode)
    assert not who.recognised
    for problem in (who.find_stream_problem(), who.find_mode_problem()):
        assert problem is not None
        words, remedy = problem
        assert who.note in words
        assert "?build=NAME" in remedy
        assert "g1-29" in remedy
        assert "Send us" in remedy


def test_no_build_of_which_that_is_contradicted_is_streamed_to() -> None:
    for family in families():
        for build in family.builds:
            if build.stream is None:
                problem = identity(0, 500, wanted=build).find_stream_problem()
                assert problem is not None
                assert build.no_stream in problem[0]


# ---- a build that was named ---------------------------------------------------------------------


def test_a_name_decides_where_the_robot_does_not_tell() -> None:
    who = identity(0, wanted=G1_23)
    assert who.build.name == "g1-23"
    assert who.note == ""
    assert who.find_mode_problem() is None
    problem = who.find_stream_problem()
    assert problem is not None  # its mode_machine proves nothing
    assert "mode_machine is 0" in problem[0]


def test_a_name_that_the_robot_confirms_has_its_motors() -> None:
    who = identity(15, wanted=G1_29)
    assert who.note == ""
    assert who.find_stream_problem() is None
    wrist = who.build.joint("left_wrist_yaw_joint")
    assert wrist is not None
    assert wrist.effort_nm == 13.4


@pytest.mark.parametrize(
    ("machine", "mode", "wanted"),
    [(5, 500, "g1-23"), (4, 500, "g1-29"), (5, 500, "g1-d"), (5, 811, "g1-29")],
)
def test_a_name_that_contradicts_the_robot_is_kept_noted_and_never_streamed_to(
    machine: int, mode: int, wanted: str
) -> None:
    who = identity(machine, mode, build_named(wanted))
    assert who.build.name == wanted
    assert wanted in who.note
    assert f"mode_machine {machine}" in who.note
    assert who.find_stream_problem() is not None
    assert who.find_mode_problem() is None


def test_a_joint_that_the_robot_does_not_tell_of_stops_a_stream_if_it_is_streamed() -> None:
    who = identity(5)
    who.on_missing_columns((G1_29.names.index("left_knee_joint"),))
    assert who.missing == ("left_knee_joint",)
    assert who.find_stream_problem() is None
    who.on_missing_columns((G1_29.names.index("left_elbow_joint"),))
    problem = who.find_stream_problem()
    assert problem is not None
    assert "left_elbow_joint" in problem[0]


def test_a_weight_where_a_joint_is_stops_a_stream() -> None:
    wrong = Build(
        name="wrong",
        family="g1",
        joints=G1_27.joints,
        streamed=G1_27.streamed,
        stream=StreamFacts(weight_slot=28),
    )
    problem = identity(0, wanted=wrong).find_stream_problem()
    assert problem is not None
    assert "weight" in problem[0]


# ---- serials ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("serial", "certain"), [("", True), ("E21D0000", True), ("X1", True), ("B42D0000", False)]
)
def test_a_serial_of_other_robots_makes_the_machine_uncertain(serial: str, certain: bool) -> None:
    who = Identity(serial=serial)
    who.on_motors(5, 35)
    assert who.build is G1_29
    assert ("Go2" in who.note) is not certain
    assert (who.find_stream_problem() is None) is certain


def test_a_serial_alone_names_no_machine() -> None:
    who = Identity(serial="E21D0000")
    who.on_motors(0, 35)
    assert not who.recognised
