"""The bus of a stage with certificates: who may say what, and who may not join at all."""

import asyncio
from pathlib import Path

import pytest

from rote.carrier.zenoh_bus import StageBus
from rote.ensemble.folder import StageFolder, read_invitation
from rote.errors import BadRequestError, LinkError
from rote.host.ports import free_port

pytest.importorskip("zenoh", reason="eclipse-zenoh is not installed")

Heard = list[tuple[str, bytes]]


async def joined(folder: StageFolder, name: str) -> StageBus:
    invitation = read_invitation(folder.invite(name))
    with invitation.credentials() as credentials:
        return await StageBus.join(invitation.endpoint, credentials)


async def until(found: object, within_s: float = 10.0) -> None:
    """Wait for what other threads bring about."""
    async with asyncio.timeout(within_s):
        while not found():  # type: ignore[operator]
            await asyncio.sleep(0.01)


def test_an_agent_says_its_own_state_and_nothing_else(tmp_path: Path) -> None:
    async def story() -> None:
        stage = StageFolder.new(tmp_path / "stage", "try", f"127.0.0.1:{free_port()}")
        for name in ("ann", "bob"):
            stage.invite(name)
        keys, heard, here = stage.keys, Heard(), list[tuple[str, bool]]()
        bus = await StageBus.conduct(stage.endpoint, stage.credentials, keys.grants(stage.agents))
        ann, bob = await joined(stage, "ann"), await joined(stage, "bob")
        try:
            for key in (keys.state("*"), keys.stop, keys.conductor):
                bus.subscribe(key, lambda key, data: heard.append((key, data)))
            bus.answer(keys.clock, lambda _key, _data: b"now")
            bus.watch(keys.token("*"), lambda key, is_there: here.append((key, is_there)))
            told = Heard()
            bob.subscribe(keys.stop, lambda key, data: told.append((key, data)))
            ann.declare(keys.token("ann"))
            await until(lambda: here)
            ann.publish(keys.state("bob"), b"forged")
            ann.publish(keys.stop, b"a foreign stop")
            ann.publish(keys.conductor, b"usurped")
            ann.publish(keys.state("ann"), b"mine")
            assert await ann.ask(keys.clock, 5.0) == b"now"
            await until(lambda: heard)
            assert heard == [(keys.state("ann"), b"mine")]
            for number in range(20):
                ann.publish(keys.state("ann"), b"%d" % number)
                await until(lambda: len(heard) == 2 + number)  # noqa: B023 - awaited here
            assert {key for key, _ in heard} == {keys.state("ann")}
            bus.publish(keys.stop, b"the stop")
            await until(lambda: told)
            assert told == [(keys.stop, b"the stop")]
            await ann.close()
            await until(lambda: (keys.token("ann"), False) in here)
        finally:
            for each in (ann, bob, bus):
                await each.close()

    asyncio.run(story())


def test_nobody_joins_without_a_certificate_of_this_stage(tmp_path: Path) -> None:
    async def story() -> None:
        stage = StageFolder.new(tmp_path / "stage", "try", f"127.0.0.1:{free_port()}")
        bus = await StageBus.conduct(stage.endpoint, stage.credentials, stage.keys.grants(()))
        try:
            other = StageFolder.new(tmp_path / "other", "try", stage.endpoint)
            with pytest.raises(LinkError):
                await joined(other, "ann")
            with pytest.raises(LinkError):
                await StageBus.join(stage.endpoint)
        finally:
            await bus.close()

    asyncio.run(story())


def test_who_collects_gets_the_newest_of_each_key_and_a_fault_of_a_listener_is_its_own() -> None:
    async def story() -> None:
        endpoint = f"127.0.0.1:{free_port()}"
        bus, other = await StageBus.conduct(endpoint), await StageBus.join(endpoint)
        faults, heard = list[str](), Heard()
        asyncio.get_running_loop().set_exception_handler(
            lambda _loop, context: faults.append(str(context["exception"]))
        )

        def failing(_key: str, data: bytes) -> None:
            raise ValueError(data.decode())

        try:
            take = bus.collect("rote/try/*")
            bus.subscribe("rote/try/b", failing)
            bus.subscribe("rote/try/b", lambda key, data: heard.append((key, data)))
            found: dict[str, bytes] = {}
            other.announce("rote/try/b", urgent=True)

            def all_came() -> bool:
                other.publish("rote/try/a", b"first")
                other.publish("rote/try/a", b"second")
                other.publish("rote/try/b", b"third")
                found.update(take())
                newest = {"rote/try/a": b"second", "rote/try/b": b"third"}
                return found == newest and bool(faults) and bool(heard)

            await until(all_came)
            assert set(faults) == {"third"}
            assert set(heard) == {("rote/try/b", b"third")}
        finally:
            await other.close()
            await bus.close()
        assert take() == {}

    asyncio.run(story())


def test_without_certificates_a_stage_is_for_this_computer_alone() -> None:
    async def story() -> None:
        with pytest.raises(BadRequestError, match="certificates"):
            await StageBus.conduct("0.0.0.0:7447")

    asyncio.run(story())


def test_an_invitation_is_private_and_anything_else_is_refused(tmp_path: Path) -> None:
    stage = StageFolder.new(tmp_path / "stage", "try", "127.0.0.1:7447")
    path = stage.invite("ann")
    assert path.stat().st_mode & 0o077 == 0
    assert StageFolder(stage.folder).agents == ("ann",)
    for name in ("", "a/b", "a b", "conductor", "*", "x" * 32):
        with pytest.raises(BadRequestError):
            stage.invite(name)
    with pytest.raises(BadRequestError, match="already"):
        StageFolder.new(stage.folder, "try", "127.0.0.1:7447")
    (tmp_path / "no.json").write_text("[]")
    with pytest.raises(BadRequestError, match="no invitation"):
        read_invitation(tmp_path / "no.json")
    with pytest.raises(BadRequestError, match="no stage"):
        StageFolder(tmp_path)
