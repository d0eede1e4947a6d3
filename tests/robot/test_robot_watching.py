"""When a motion has begun, when it is over, and when nobody should wait any longer."""

from dataclasses import replace

import pytest

from rote.errors import NoAnswerError, NotBegunError, TimeLimitError
from rote.messages import Phase, RobotState
from rote.model.g1 import G1_29
from rote.robot.motion_watch import (
    BEGIN_TIMEOUT_S,
    MAX_OVERHEAD_S,
    MAX_SETTLING_S,
    MOTIONLESS_S,
    STATE_TIMEOUT_S,
    MotionWatch,
)

REST = RobotState(joints_rad=G1_29.rest_rad, velocities_rad_s=(0.0,) * 29, mode=500)
ARM = G1_29.taught_columns[0]
LEG = 0


def moved(state: RobotState, column: int, by_rad: float) -> RobotState:
    positions = list(state.joints_rad)
    positions[column] += by_rad
    return replace(state, joints_rad=tuple(positions))


class Film:
    """A watch, and states one tenth of a second apart."""

    def __init__(
        self, duration_s: float = 2.0, *, latest: RobotState | None = REST, loops: bool = False
    ) -> None:
        self.now = 100.0
        self.watch = MotionWatch("wave", loops=loops)
        self.watch.on_request_sent(G1_29, latest, self.now)
        self.watch.on_accepted(duration_s, self.now)

    def show(self, state: RobotState, seconds: float) -> None:
        for _ in range(round(seconds * 10)):
            self.now += 0.1
            self.watch.on_state(replace(state, time_us=int(self.now * 1e6)), self.now)

    def shake(self, seconds: float, **how: bool) -> None:
        """The joints move and the robot says nothing of it."""
        for turn in range(round(seconds * 10)):
            self.show(moved(replace(REST, **how), ARM, 0.3 * (1 + turn % 2)), 0.1)  # type: ignore[arg-type]

    def phase(self, phase: Phase, seconds: float) -> None:
        self.show(replace(REST, phase=phase), seconds)


def test_a_robot_that_says_late_that_it_plays_has_played() -> None:
    film = Film()
    film.phase(Phase.NONE, 0.7)
    assert film.watch.timeout_error(film.now) is None
    film.phase(Phase.PLAYING, 2.0)
    film.phase(Phase.RETURN, 4.1)
    assert film.watch.completed is None
    film.phase(Phase.NONE, 0.1)
    assert film.watch.completed is True


def test_a_robot_that_says_yes_and_rests_has_not_begun() -> None:
    film = Film()
    film.phase(Phase.NONE, BEGIN_TIMEOUT_S - 0.2)
    assert film.watch.timeout_error(film.now) is None
    film.phase(Phase.NONE, 0.3)
    assert isinstance(film.watch.timeout_error(film.now), NotBegunError)
    assert film.watch.completed is None


def test_a_robot_that_says_nothing_at_all_has_not_begun() -> None:
    film = Film(latest=None)
    error = film.watch.timeout_error(film.now + BEGIN_TIMEOUT_S)
    assert isinstance(error, NotBegunError)
    assert "neither" in str(error)


def test_the_return_from_a_teaching_is_no_playback() -> None:
    film = Film()
    for turn in range(20):  # the arms sink back meanwhile
        film.show(moved(replace(REST, phase=Phase.RETURN), ARM, 0.5 - turn / 40), 0.1)
    film.phase(Phase.NONE, BEGIN_TIMEOUT_S + 0.2)
    assert film.watch.completed is None
    assert isinstance(film.watch.timeout_error(film.now), NotBegunError)


def test_a_motion_that_went_on_before_is_another_one() -> None:
    film = Film(latest=replace(REST, phase=Phase.APPROACH))
    film.phase(Phase.PLAYING, 1.0)
    film.phase(Phase.RETURN, 1.0)
    film.phase(Phase.NONE, 0.2)
    assert not film.watch.begun
    film.phase(Phase.APPROACH, 0.2)
    assert film.watch.begun


def test_arms_that_are_said_to_come_to_rest_may_begin_later_but_not_for_ever() -> None:
    film = Film()
    film.phase(Phase.RETURN, 5.0)
    film.phase(Phase.NONE, 0.5)
    assert film.watch.timeout_error(film.now) is None
    film.phase(Phase.RETURN, MAX_SETTLING_S + BEGIN_TIMEOUT_S)
    assert isinstance(film.watch.timeout_error(film.now), NotBegunError)


def test_joints_show_what_a_robot_does_not_say() -> None:
    film = Film()
    film.shake(2.5, has_phase=False)
    assert film.watch.begun
    film.show(replace(REST, has_phase=False), MOTIONLESS_S)
    assert film.watch.completed is None
    film.show(replace(REST, has_phase=False), 0.3)
    assert film.watch.completed is True


def test_joints_that_rest_long_before_the_end_were_stopped() -> None:
    film = Film(duration_s=10.0)
    film.shake(1.0, has_phase=False)
    film.show(replace(REST, has_phase=False), 8.0)
    assert film.watch.completed is None
    film.show(replace(REST, has_phase=False), 2.0)
    assert film.watch.completed is False


def test_legs_that_balance_are_no_motion() -> None:
    film = Film()
    for turn in range(40):
        film.show(moved(REST, LEG, 0.2 * (turn % 2)), 0.1)
    assert not film.watch.begun


@pytest.mark.parametrize("duration_s", [2.0, 0.0])
def test_a_robot_that_plays_for_ever_is_given_up(duration_s: float) -> None:
    film = Film(duration_s)
    most_s = (duration_s or 180.0) * 1.5 + MAX_OVERHEAD_S
    film.phase(Phase.PLAYING, most_s - 1.0)
    assert film.watch.timeout_error(film.now) is None
    film.phase(Phase.PLAYING, 2.0)
    error = film.watch.timeout_error(film.now)
    assert isinstance(error, TimeLimitError)
    assert not isinstance(error, NotBegunError)


def test_a_loop_goes_on_for_ever_as_long_as_it_is_reported() -> None:
    watch = MotionWatch("wave", loops=True)
    watch.on_request_sent(G1_29, REST, 0.0)
    watch.on_accepted(2.0, 0.0)
    watch.on_state(replace(REST, phase=Phase.PLAYING), 1.0)
    watch.on_state(replace(REST, phase=Phase.PLAYING), 4000.0)
    assert watch.timeout_error(4000.0) is None
    assert isinstance(watch.timeout_error(4000.0 + STATE_TIMEOUT_S), NoAnswerError)


def test_a_phase_that_is_no_longer_told_is_not_taken_for_the_end() -> None:
    film = Film()
    film.phase(Phase.PLAYING, 1.0)
    film.show(replace(REST, phase=Phase.NONE, has_phase=False), 1.0)
    assert film.watch.completed is None


def test_a_confirmed_stop_ends_a_motion_as_soon_as_the_joints_rest() -> None:
    film = Film(duration_s=10.0)
    film.shake(1.0, has_phase=False)
    film.watch.on_stop_confirmed(film.now)
    film.shake(1.0, has_phase=False)  # the arms return softly
    film.show(replace(REST, has_phase=False), MOTIONLESS_S - 0.3)
    early = film.watch.completed
    film.show(replace(REST, has_phase=False), 0.6)
    assert (early, film.watch.completed) == (None, False)
    assert film.watch.reason == "a stop was requested"


def test_joints_that_rested_before_a_stop_are_watched_after_it() -> None:
    film = Film(duration_s=10.0)
    film.shake(1.0, has_phase=False)
    film.show(replace(REST, has_phase=False), 4.0)
    film.watch.on_stop_confirmed(film.now)
    film.show(replace(REST, has_phase=False), MOTIONLESS_S - 0.3)
    assert film.watch.completed is None
    film.show(replace(REST, has_phase=False), 0.6)
    assert film.watch.completed is False


def test_arms_that_do_not_rest_after_a_stop_was_confirmed_end_the_wait() -> None:
    film = Film(duration_s=600.0)
    film.phase(Phase.PLAYING, 1.0)
    film.watch.on_stop_confirmed(film.now)
    film.phase(Phase.PLAYING, MAX_OVERHEAD_S / 2)
    film.watch.on_stop_confirmed(film.now)  # a repeated stop gives no more time
    film.phase(Phase.PLAYING, MAX_OVERHEAD_S / 2 - 1.0)
    assert film.watch.timeout_error(film.now) is None
    film.phase(Phase.PLAYING, 1.5)
    error = film.watch.timeout_error(film.now)
    assert isinstance(error, TimeLimitError)
    assert "confirmed the stop" in str(error)


@pytest.mark.parametrize(("played_s", "completed"), [(1.0, False), (3.9, True)])
def test_a_playback_that_the_robot_ends_much_too_early_is_not_completed(
    played_s: float, completed: bool
) -> None:
    film = Film(duration_s=4.0)
    film.phase(Phase.APPROACH, 5.0)  # the way to the first pose does not count
    film.phase(Phase.PLAYING, played_s)
    film.phase(Phase.RETURN, 4.0)
    film.phase(Phase.NONE, 0.1)
    assert film.watch.completed is completed
    assert film.watch.reason.startswith("" if completed else "the robot moved for 1.0 s of 4.0 s")


def test_a_loop_that_ends_within_a_round_is_not_cut_short() -> None:
    film = Film(duration_s=4.0, loops=True)
    film.phase(Phase.PLAYING, 1.0)
    film.phase(Phase.RETURN, 4.0)
    film.phase(Phase.NONE, 0.1)
    assert film.watch.completed is True
    assert film.watch.reason == ""


def test_a_robot_that_reports_that_it_was_stopped_has_not_completed_the_motion() -> None:
    film = Film()
    film.phase(Phase.PLAYING, 2.0)
    film.show(replace(REST, phase=Phase.RETURN, stopped_early=True), 1.0)
    film.show(replace(REST, stopped_early=True), 0.1)
    assert film.watch.completed is False
    assert film.watch.reason == "the robot reports that it was stopped"


def test_the_time_that_this_computer_did_not_run_is_not_counted() -> None:
    film = Film()
    film.watch.extend_deadlines(60.0)
    assert film.watch.timeout_error(film.now + 60.0 + BEGIN_TIMEOUT_S - 0.1) is None
    assert isinstance(film.watch.timeout_error(film.now + 60.0 + BEGIN_TIMEOUT_S), NotBegunError)
    playing = Film()
    playing.phase(Phase.PLAYING, 1.0)
    playing.watch.extend_deadlines(60.0)
    assert playing.watch.timeout_error(playing.now + 60.0 + STATE_TIMEOUT_S - 0.1) is None
    assert isinstance(
        playing.watch.timeout_error(playing.now + 60.0 + STATE_TIMEOUT_S), NoAnswerError
    )
