"""Through a pose with the least change of acceleration; made playable; the band of takes."""

from pathlib import Path

import numpy as np
import pytest

from motion.exchange_files import whole_body
from rote.errors import BadRequestError
from rote.model.g1 import G1_29
from rote.motion.draw.plot import plot_spread
from rote.motion.draw.spread import spread
from rote.motion.edit.fit import fit
from rote.motion.edit.operations import resample
from rote.motion.edit.through import compute_least_bend, through
from rote.motion.track import Array, Track

ELBOW = "right_elbow_joint"


def waving(rate_hz: float = 100.0, late_s: float = 0.0, wide: float = 0.5) -> Track:
    times_s = np.arange(round(3 * rate_hz) + 1) / rate_hz
    swing = np.sin(2 * np.pi * np.clip(times_s - late_s, 0.0, 2.0) / 2.0)
    return Track(
        times_s=times_s,
        joints_rad=np.column_stack([0.6 + wide * swing, 0.2 * swing]),
        names=(ELBOW, "right_shoulder_pitch_joint"),
    )


def exact(times_s: Array, at_s: float, length_s: float) -> tuple[Array, float]:
    """Solve the problem among all curves of two polynomials of the fifth degree, by its KKT
    equations: the least integral of squared acceleration under the same conditions.
    """
    degree = 6
    powers = np.arange(degree)

    def row(u: float, order: int, piece: int) -> Array:
        values = np.zeros(2 * degree)
        for power in powers[order:]:
            factor = np.prod([power - k for k in range(order)]) if order else 1.0
            values[piece * degree + power] = factor * u ** (power - order)
        return values

    spans = (at_s, length_s - at_s)
    cost = np.zeros((2 * degree, 2 * degree))
    for piece, span in enumerate(spans):
        for i in powers[2:]:
            for k in powers[2:]:
                whole = i * (i - 1) * k * (k - 1) * span ** (i + k - 3) / (i + k - 3)
                cost[piece * degree + i, piece * degree + k] = whole
    wanted = [
        (row(0.0, 0, 0), 0.0), (row(0.0, 1, 0), 0.0),
        (row(spans[0], 0, 0), 1.0), (row(0.0, 0, 1), 1.0),
        (row(spans[0], 1, 0) - row(0.0, 1, 1), 0.0),
        (row(spans[1], 0, 1), 0.0), (row(spans[1], 1, 1), 0.0),
    ]  # fmt: skip
    equal = np.array([condition for condition, _ in wanted])
    right = np.concatenate([np.zeros(2 * degree), [value for _, value in wanted]])
    whole = np.block([[cost, equal.T], [equal, np.zeros((len(wanted), len(wanted)))]])
    found = np.linalg.lstsq(whole, right, rcond=None)[0][: 2 * degree]
    early = times_s <= at_s
    curve = np.where(
        early,
        sum(found[p] * times_s**p for p in powers),
        sum(found[degree + p] * (times_s - at_s) ** p for p in powers),
    )
    return curve, float(found @ cost @ found)


@pytest.mark.parametrize(("at_s", "length_s"), [(1.2, 3.0), (0.3, 3.0), (2.9, 3.0), (1.0, 2.0)])
def test_the_bend_is_the_solution_of_the_exact_problem(at_s: float, length_s: float) -> None:
    times_s = np.linspace(0.0, length_s, 301)
    curve, _ = exact(times_s, at_s, length_s)
    assert np.abs(compute_least_bend(times_s, at_s, length_s) - curve).max() < 1e-6


def test_no_other_smooth_bend_changes_the_acceleration_less() -> None:
    times_s = np.linspace(0.0, 3.0, 3001)
    ours = compute_least_bend(times_s, 1.2, 3.0)
    share = np.clip(np.where(times_s < 1.2, times_s / 1.2, (3.0 - times_s) / 1.8), 0.0, 1.0)
    soft = share**3 * (10 - 15 * share + 6 * share**2)
    costs = [float(np.square(np.diff(curve, 2)).sum()) for curve in (ours, soft)]
    assert costs[0] < 0.8 * costs[1]


def test_the_pose_is_met_exactly_and_the_ends_stay() -> None:
    track = waving()
    after = through(track, 1.2, {"right_elbow": 0.9})
    row = int(np.abs(after.times_s - 1.2).argmin())
    assert after.times_s[row] == pytest.approx(1.2, abs=1e-12)
    assert after.joints_rad[row, 0] == 0.9
    assert np.array_equal(after.joints_rad[[0, -1]], track.joints_rad[[0, -1]])
    begins = np.diff(after.joints_rad[:2, 0]) - np.diff(track.joints_rad[:2, 0])
    assert abs(float(begins[0])) < 2e-4
    assert np.array_equal(after.joints_rad[:, 1], track.joints_rad[:, 1])
    assert "right_elbow_joint 0.900 rad" in after.history[-1]


def test_a_moment_between_two_samples_gets_its_own_sample() -> None:
    track = waving(rate_hz=30.0)
    after = track.through(1.21, {ELBOW: 0.9})
    assert len(after) == len(track)
    assert after.joints_rad[int(np.flatnonzero(after.times_s == 1.21)[0]), 0] == 0.9


@pytest.mark.parametrize(
    ("time_s", "pose", "said"),
    [
        (0.0, {ELBOW: 0.9}, "keeps both ends"),
        (3.0, {ELBOW: 0.9}, "keeps both ends"),
        (9.0, {ELBOW: 0.9}, "moment"),
        (1.0, {ELBOW: 3.9}, ELBOW),
        (1.0, {"elbow": 0.9}, "elbow"),
        (1.0, {}, "no joint"),
    ],
)
def test_what_cannot_be_passed_through_is_refused(
    time_s: float, pose: dict[str, float], said: str
) -> None:
    with pytest.raises(BadRequestError, match=said):
        through(waving(), time_s, pose)


# ---- fit ----------------------------------------------------------------------------------------


def test_a_stranger_s_motion_is_made_playable_in_one_step() -> None:
    track = whole_body(50)
    fast = track.speed(8.0)
    elbow = fast.names.index(ELBOW)
    joints_rad = fast.joints_rad.copy()
    joints_rad[40:45, elbow] = 2.4
    after = fit(fast.edited("reach too far", joints_rad=joints_rad))
    assert set(after.names) == set(G1_29.taught)
    assert {f.kind.value for f in after.check(contact=False).errors} <= {"balance", "torque"}
    line = after.history[-1]
    assert after.history[:-1] == (*fast.history, "reach too far")
    left_out = "fit: left out, because the robot does not play them: left_hip_pitch_joint"
    assert line.startswith(left_out)
    assert f"{ELBOW} kept within its range" in line
    assert "retime" in line
    assert after.root is not None
    assert len(after.root) == len(after)


def test_a_motion_that_can_be_played_is_left_as_it_is() -> None:
    track = waving()
    after = fit(track)
    assert np.array_equal(after.joints_rad, track.joints_rad)
    assert after.history == ("fit: nothing had to be changed",)


def test_what_is_too_long_is_cut_and_said() -> None:
    long = resample(waving(), 20.0).speed(0.012)
    after = fit(long)
    assert after.duration_s <= 180.0
    assert "cut after" in after.history[-1]


# ---- the band -----------------------------------------------------------------------------------


def test_the_band_holds_every_take_and_is_widest_where_they_differ(tmp_path: Path) -> None:
    takes = [waving(), waving(wide=0.3, late_s=0.1), waving(wide=0.7, late_s=0.3)]
    band = spread(takes)
    assert (band.low_rad <= band.mean.joints_rad + 1e-9).all()
    assert (band.high_rad >= band.mean.joints_rad - 1e-9).all()
    width_rad, at_s = band.widest(ELBOW)
    assert width_rad == pytest.approx(0.4, abs=0.05)
    assert min(abs(at_s - peak_s) for peak_s in (0.5, 0.6, 0.7, 1.5, 1.6, 1.7)) < 0.25
    assert band.widest("right_shoulder_pitch_joint")[0] < 0.1
    plot_spread(band, tmp_path / "band.svg", title="three takes")
    text = (tmp_path / "band.svg").read_text()
    assert 'id="all takes"' in text
    assert 'id="average"' in text


def test_one_take_has_no_band() -> None:
    with pytest.raises(BadRequestError, match="two takes"):
        spread([waving()])
