"""Tickets: bound to one motion, approved by holding a button, worth one playback, for a minute."""

from dataclasses import replace

import numpy as np
import pytest

from rote.bridge.tickets import (
    HOLD_S,
    MAX_HOLD_S,
    MAX_WRONG,
    TICKET_S,
    ProposedMotion,
    Ticket,
    TicketBooth,
    TicketState,
    make_secret,
    motion_digest,
)
from rote.errors import NotApprovedError
from rote.motion.track import Track

SECRET = "K7QM-3XVD"
WAVE = ProposedMotion("wave", 3, "ab" * 32, 0.5, "dds://eth0", "g1-29")


def proposed() -> tuple[TicketBooth, Ticket]:
    booth = TicketBooth(SECRET)
    return booth, booth.propose(WAVE, 100.0)


def approved() -> tuple[TicketBooth, Ticket]:
    booth, ticket = proposed()
    booth.press(ticket.id, WAVE.digest, SECRET, "ann", 101.0)
    booth.hold(ticket.id, "ann", 101.0 + HOLD_S)
    return booth, ticket


def test_what_a_person_has_held_the_button_for_is_played_once() -> None:
    booth, ticket = approved()
    assert booth.redeem(ticket.id, WAVE, 110.0) is ticket
    assert ticket.state is TicketState.USED
    for _ in range(3):
        with pytest.raises(NotApprovedError, match="used"):
            booth.redeem(ticket.id, WAVE, 110.1)


@pytest.mark.parametrize(
    "other",
    [
        replace(WAVE, motion="cd" * 32),
        replace(WAVE, speed=0.51),
        replace(WAVE, robot="dds://eth1"),
        replace(WAVE, build="g1-23"),
        replace(WAVE, take="wave2"),
        replace(WAVE, version=4),
    ],
)
def test_a_ticket_is_for_one_motion_speed_robot_and_build(other: ProposedMotion) -> None:
    booth, ticket = approved()
    with pytest.raises(NotApprovedError, match="not the approved motion"):
        booth.redeem(ticket.id, other, 110.0)
    with pytest.raises(NotApprovedError, match="void"):  # and the attempt has used it up
        booth.redeem(ticket.id, WAVE, 110.0)


def test_nothing_is_redeemed_that_nobody_approved() -> None:
    booth, ticket = proposed()
    with pytest.raises(NotApprovedError, match="no person has approved"):
        booth.redeem(ticket.id, WAVE, 101.0)
    booth.press(ticket.id, WAVE.digest, SECRET, "ann", 101.0)
    with pytest.raises(NotApprovedError, match="no person has approved"):
        booth.redeem(ticket.id, WAVE, 101.0 + HOLD_S)
    with pytest.raises(NotApprovedError, match="no such ticket"):
        booth.redeem("another", WAVE, 101.0)


def test_a_minute_after_the_proposal_nothing_of_it_is_left() -> None:
    booth, ticket = approved()
    with pytest.raises(NotApprovedError, match="expired"):
        booth.redeem(ticket.id, WAVE, 100.0 + TICKET_S)
    booth, ticket = proposed()
    with pytest.raises(NotApprovedError, match="expired"):
        booth.press(ticket.id, WAVE.digest, SECRET, "ann", 100.0 + TICKET_S)


def test_a_button_is_held_by_one_browser_for_long_enough_and_not_for_ever() -> None:
    for client, held_s in (("ann", HOLD_S - 0.1), ("bob", HOLD_S), ("ann", MAX_HOLD_S + 1)):
        booth, ticket = proposed()
        booth.press(ticket.id, WAVE.digest, SECRET, "ann", 101.0)
        with pytest.raises(NotApprovedError, match=r"held for|is not held"):
            booth.hold(ticket.id, client, 101.0 + held_s)
        with pytest.raises(NotApprovedError, match="no person"):
            booth.redeem(ticket.id, WAVE, 104.0)
    booth, ticket = proposed()
    booth.press(ticket.id, WAVE.digest, SECRET, "ann", 101.0)
    booth.release(ticket.id, "ann", 101.5)
    with pytest.raises(NotApprovedError, match="is not held"):
        booth.hold(ticket.id, "ann", 101.0 + HOLD_S)


def test_the_secret_is_read_leniently_and_guessed_a_few_times_only() -> None:
    booth, ticket = proposed()
    booth.press(ticket.id, WAVE.digest, " k7qm3xvd ", "ann", 101.0)
    booth, ticket = proposed()
    for _ in range(MAX_WRONG):
        with pytest.raises(NotApprovedError, match="not the secret"):
            booth.press(ticket.id, WAVE.digest, make_secret(), "eve", 101.0)
    with pytest.raises(NotApprovedError, match="wrong secrets"):
        booth.press(ticket.id, WAVE.digest, SECRET, "ann", 101.0)
    with pytest.raises(NotApprovedError, match="no person"):
        booth.redeem(ticket.id, WAVE, 101.0)


def test_who_presses_has_read_what_is_proposed() -> None:
    booth, ticket = proposed()
    with pytest.raises(NotApprovedError, match="does not show the proposed"):
        booth.press(ticket.id, replace(WAVE, speed=1.0).digest, SECRET, "ann", 101.0)


def test_one_proposal_waits_at_a_time_and_a_stop_or_a_no_ends_it() -> None:
    booth, ticket = proposed()
    with pytest.raises(NotApprovedError, match="another proposal"):
        booth.propose(WAVE, 101.0)
    booth.refuse(ticket.id, 102.0)
    second = booth.propose(WAVE, 103.0)
    assert second.id != ticket.id
    booth.press(second.id, WAVE.digest, SECRET, "ann", 104.0)
    booth.hold(second.id, "ann", 106.0)
    booth.void()
    with pytest.raises(NotApprovedError, match="void"):
        booth.redeem(second.id, WAVE, 107.0)


def test_a_digest_tells_motions_apart_by_every_bit_that_is_played() -> None:
    track = Track(
        times_s=np.array([0.0, 0.1]),
        joints_rad=np.array([[0.0, 0.5], [0.1, 0.6]]),
        names=("a", "b"),
    )
    moved = track.joints_rad.copy()
    moved[1, 1] = np.nextafter(moved[1, 1], 1.0)
    others = [
        replace(track, joints_rad=moved),
        replace(track, times_s=np.array([0.0, np.nextafter(0.1, 1.0)])),
        replace(track, names=("b", "a")),
        replace(track, variant="g1-23"),
    ]
    digests = {motion_digest(each) for each in (track, *others)}
    assert len(digests) == 1 + len(others)
    assert motion_digest(replace(track, source="elsewhere")) == motion_digest(track)
