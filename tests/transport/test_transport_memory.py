"""The network in a process, and the bad network on request."""

import asyncio

import pytest

import virtual
from rote.errors import BadRequestError
from rote.transport.impair import Disturber, Impairment
from rote.transport.memory import MemoryPort


def through(impairment: Impairment, count: int = 2000) -> list[bytes]:
    """Send numbered datagrams through a bad network and return what arrives."""

    async def story() -> list[bytes]:
        arrived: list[bytes] = []
        disturber = Disturber(impairment)
        for number in range(count):
            disturber.pass_on(number.to_bytes(4, "big"), arrived.append)
            await asyncio.sleep(0.001)
        await asyncio.sleep(20.0)
        return arrived

    return virtual.run(story())


def numbered(count: int = 2000) -> list[bytes]:
    return [number.to_bytes(4, "big") for number in range(count)]


def test_a_good_network_changes_nothing() -> None:
    assert through(Impairment()) == numbered()


def test_loss_loses_the_share_asked_for() -> None:
    assert len(through(Impairment(loss=0.3))) == pytest.approx(1400, abs=80)


def test_duplication_doubles_the_share_asked_for() -> None:
    assert len(through(Impairment(duplicate=0.2))) == pytest.approx(2400, abs=80)


def test_reordering_changes_the_order_and_nothing_else() -> None:
    arrived = through(Impairment(reorder=0.2))
    assert arrived != numbered()
    assert sorted(arrived) == numbered()


def test_corruption_flips_one_bit_in_the_share_asked_for() -> None:
    arrived = through(Impairment(corrupt=0.2))
    flips = [
        (int.from_bytes(a, "big") ^ int.from_bytes(b, "big")).bit_count()
        for a, b in zip(arrived, numbered(), strict=True)
    ]
    assert set(flips) == {0, 1}
    assert sum(flips) == pytest.approx(400, abs=80)


def test_a_cut_network_passes_nothing_and_heals_when_asked() -> None:
    arrived = through(Impairment(cut_after_s=0.5, cut_for_s=0.5))
    lost = sorted(set(numbered()) - set(arrived))
    assert 490 <= len(lost) <= 510
    assert 490 <= int.from_bytes(lost[0], "big") <= 510


def test_a_seed_makes_a_bad_network_repeatable() -> None:
    bad = Impairment(loss=0.3, duplicate=0.1, reorder=0.2, corrupt=0.1, seed=5)
    assert through(bad) == through(bad)
    assert through(bad) != through(Impairment(loss=0.3, duplicate=0.1, reorder=0.2, seed=6))


@pytest.mark.parametrize(
    "bad", [{"loss": 1.1}, {"corrupt": -0.1}, {"loss": float("nan")}, {"delay_s": 11.0}]
)
def test_an_impossible_network_is_refused(bad: dict[str, float]) -> None:
    with pytest.raises(BadRequestError):
        Impairment(**bad)  # type: ignore[arg-type]


def test_clients_hear_their_own_answers_only() -> None:
    async def story() -> None:
        port = MemoryPort(lambda datagram, address: port.send(datagram.upper(), address))
        heard: dict[str, list[bytes]] = {"a": [], "b": []}
        links = {name: port.connect(heard[name].append) for name in heard}
        links["a"].send(b"one")
        links["b"].send(b"two")
        await asyncio.sleep(0.1)
        assert heard == {"a": [b"ONE"], "b": [b"TWO"]}
        links["a"].close()
        links["a"].close()
        links["b"].send(b"three")
        port.close()
        await asyncio.sleep(0.1)
        assert heard["b"] == [b"TWO"]

    virtual.run(story())
