"""The bus of a stage with certificates: who may say what, and who may not join at all."""

import asyncio
import json
import socket
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest

import virtual
from rote.cli import main
from rote.cli.stage import _find_refusal, _report_silence
from rote.errors import BadRequestError, LinkError
from rote.platform.system import free_port
from rote.stage import folder
from rote.stage.folder import Invitation, StageFolder, read_invitation
from rote.stage.keys import StageKeys
from rote.stage.plain_stop import stop_stage
from rote.stage.stage import open_stage
from rote.stage.watcher import StageWatcher
from rote.transport import certificates
from rote.transport.zenoh.bus import Credentials, StageBus, find_refusal
from rote.web.services.stage import PendantStage, StageService
from rote.wire.stage import AgentState, decode_stop
from stage_memory import TableBus, memory_stage

pytest.importorskip("zenoh", reason="eclipse-zenoh is not installed")

T = TypeVar("T")
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


async def publish_until(bus: StageBus, key: str, data: bytes, found: Callable[[], object]) -> None:
    """Publish again and again, as agents and conductors do: a busy bus drops messages."""
    async with asyncio.timeout(20.0):
        while not found():
            bus.publish(key, data)
            await asyncio.sleep(0.02)


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
            # Until ann knows of the subscription.
            await publish_until(ann, keys.state("ann"), b"probe", lambda: heard)
            assert await ann.ask(keys.clock, 5.0) == b"now"
            heard.clear()
            for _ in range(5):
                ann.publish(keys.state("bob"), b"forged")
                ann.publish(keys.stop, b"a foreign stop")
                ann.publish(keys.conductor, b"usurped")
            for number in range(20):
                own = (keys.state("ann"), b"%d" % number)
                await publish_until(ann, *own, lambda: own in heard)  # noqa: B023 - awaited here
            assert await ann.ask(keys.clock, 5.0) == b"now"
            assert {key for key, _ in heard} == {keys.state("ann")}
            await publish_until(bus, keys.stop, b"the stop", lambda: told)
            assert set(told) == {(keys.stop, b"the stop")}
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
    with pytest.raises(BadRequestError, match="not an invitation"):
        read_invitation(tmp_path / "no.json")
    with pytest.raises(BadRequestError, match="not a stage folder"):
        StageFolder(tmp_path)


EXPIRED_DAYS = -0.02
"""Half an hour ago; a certificate is valid from an hour before it was made."""


def expired(patch: pytest.MonkeyPatch, make: Callable[[], T]) -> T:
    """Make something whose certificates have expired."""
    with patch.context() as once:
        once.setattr(folder, "_CERTIFICATE_DAYS", EXPIRED_DAYS)
        return make()


@pytest.fixture
def hall(tmp_path: Path) -> StageFolder:
    return StageFolder.new(tmp_path / "hall", "hall", f"127.0.0.1:{free_port()}")


def test_an_invitation_that_the_conductor_would_refuse_says_why_before_it_is_used(
    hall: StageFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = read_invitation(hall.invite("ann"))
    other = read_invitation(StageFolder.new(tmp_path / "o", "hall", hall.endpoint).invite("ann"))
    old = read_invitation(expired(monkeypatch, lambda: hall.invite("ann")))
    with good.credentials() as credentials:
        assert credentials is not None
    for wrong, why in (
        (old, "it expired on 2"),
        (replace(good, certificate=other.certificate, key=other.key), "authority of another stage"),
        (replace(good, key=other.key), "its key belongs to another certificate"),
        (replace(good, name="bob"), "it is for ann, not bob"),
        (replace(good, certificate="nothing"), "damaged"),
    ):
        with pytest.raises(BadRequestError, match=why) as caught, wrong.credentials():
            pass
        assert "again on the conductor's computer" in caught.value.remedy


def test_a_clock_before_the_certificates_first_day_is_named() -> None:
    authority = certificates.make_authority("a stage", 365)
    own = certificates.issue_certificate("ann", ("ann",), 365, by=authority)
    then = datetime(2020, 1, 1, tzinfo=UTC)
    found = certificates.find_fault(own.pem, authority.pem, own.key, "ann", then)
    assert "the clock of this computer shows 2020-01-01 00:00 UTC" in found
    assert certificates.find_fault(own.pem, authority.pem, own.key, "ann") == ""


def test_who_is_refused_learns_by_which_side_and_why(
    hall: StageFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = read_invitation(hall.invite("ann"))
    old = read_invitation(expired(monkeypatch, lambda: hall.invite("ann")))
    stranger = StageFolder.new(tmp_path / "o", "hall", hall.endpoint)
    foreign = read_invitation(stranger.invite("ann"))
    mixed = replace(foreign, authority=good.authority)  # knows the conductor, is not known to it

    async def refusal(invitation: Invitation) -> str:
        files = [tmp_path / name for name in ("authority.pem", "own.pem", "key.pem")]
        texts = (invitation.authority, invitation.certificate, invitation.key)
        for file, text in zip(files, texts, strict=True):
            file.write_text(text)
        return await find_refusal(invitation.endpoint, Credentials(*files))

    async def story() -> None:
        assert await refusal(good) == "", "nothing listens there yet"
        bus = await StageBus.conduct(hall.endpoint, hall.credentials, hall.keys.grants(("ann",)))
        try:
            assert await refusal(good) == ""
            assert await find_refusal(hall.endpoint, None) == ""
            ours, theirs = "this computer refuses the certificate of the conductor", "the conductor"
            assert (await refusal(foreign)).startswith(f"{ours}: certificate signature failure")
            assert (await refusal(old)).startswith(f"{theirs} refuses the certificate of this")
            assert "certificate expired" in await refusal(old)
            assert (await refusal(mixed)).startswith(f"{theirs} refuses the certificate of this")
            damaged = await refusal(replace(good, key=foreign.key))
            assert "cannot be used: key values mismatch" in damaged
        finally:
            await bus.close()

    asyncio.run(story())


def test_a_conductor_with_an_expired_certificate_does_not_open_its_stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = expired(
        monkeypatch, lambda: StageFolder.new(tmp_path / "o", "hall", f"127.0.0.1:{free_port()}")
    )

    async def story() -> None:
        async with open_stage(old.folder):
            pass

    with pytest.raises(BadRequestError, match=r"refuse .* this conductor: it expired on") as caught:
        asyncio.run(story())
    assert "Renew the certificates" in caught.value.remedy
    old.renew()

    async def renewed() -> None:
        async with open_stage(old.folder):
            pass

    asyncio.run(renewed())


def test_the_conductor_knows_which_agents_will_be_refused(
    hall: StageFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hall.invite("ann")
    expired(monkeypatch, lambda: hall.invite("bob"))
    hall.invite("cid").write_text("damaged")
    hall.invite("dan").unlink()
    told: list[str] = []

    async def story() -> None:
        async with open_stage(hall.folder, tell=told.append) as opened:
            assert opened.refused.keys() == {"bob", "cid"}
            assert "it expired on 2" in opened.refused["bob"]
            assert [text.partition(":")[0] for text in told] == ["bob", "cid"]
            said = str(opened.make_absence_error(("ann", "bob")))
            assert "bob: its certificate will be refused: it expired on 2" in said
            page = StageService(
                PendantStage(opened, "hall", ("ann", "bob")),
                cast("Any", None),
                lambda *_, **__: None,
                lambda: None,
            )
            faults = {each["name"]: each["fault"] for each in page.document()["robots"]}
            assert (faults["ann"], "it expired" in faults["bob"]) == ("", True)

    asyncio.run(story())
    assert main(["stage", "status", "--stage", str(hall.folder), "--seconds", "0.5", "--json"]) == 1
    rows = json.loads(capsys.readouterr().out)["robots"]
    assert [row["name"] for row in rows if row["fault"]] == ["bob", "cid"]


def test_a_renewed_stage_accepts_old_and_new_invitations(
    hall: StageFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "_AUTHORITY_DAYS", 100)
    hall = StageFolder.new(hall.folder.parent / "short", "hall", f"127.0.0.1:{free_port()}")
    old = read_invitation(hall.invite("ann"))
    hall.invite("bob")
    before = hall.credentials.certificate.read_bytes()
    monkeypatch.setattr(folder, "_AUTHORITY_DAYS", 3650)
    assert [path.name for path in hall.renew()] == ["ann.invitation.json", "bob.invitation.json"]
    assert hall.credentials.certificate.read_bytes() != before
    new = read_invitation(hall.folder / "ann.invitation.json")
    assert new.authority != old.authority, "it would have ended before the new certificates"
    for invitation in (old, new):
        assert invitation.fault() == ""
        assert replace(invitation, authority=new.authority).fault() == ""
    with pytest.raises(BadRequestError, match="no agent 'eve' was invited") as caught:
        hall.renew("eve")
    assert "ann, bob" in caught.value.remedy

    async def story() -> None:
        async with open_stage(hall.folder):
            for invitation in (old, new):
                with invitation.credentials() as credentials:
                    await (await StageBus.join(hall.endpoint, credentials)).close()

    asyncio.run(story())


def test_certificates_that_end_within_thirty_days_are_reported_on_both_ends(
    hall: StageFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hall.invite("ann")
    monkeypatch.setattr(folder, "_CERTIFICATE_DAYS", 20)
    bob = read_invitation(hall.invite("bob"))
    hall.renew("bob")
    hall._locate_invitation("bob").unlink()  # the agent's computer has it
    assert bob.warning().startswith("the certificate of bob expires in 19 days, on 2")
    (warning,) = StageFolder(hall.folder).warnings()
    assert "of bob expires in 20 days" in warning or "of bob expires in 19 days" in warning
    assert warning.endswith("Renew it on the conductor's computer.")
    told: list[str] = []

    async def story() -> None:
        async with open_stage(hall.folder, tell=told.append):
            pass

    asyncio.run(story())
    assert told == [warning]
    main(["stage", "status", "--stage", str(hall.folder), "--seconds", "0.5", "--json"])
    assert json.loads(capsys.readouterr().out)["warnings"] == [warning]
    in_a_year = datetime.now(UTC) + timedelta(days=350)
    assert "the certificate of the conductor expires in 14" in hall.warnings(in_a_year)[0]


def test_a_revoked_agent_learns_the_reason_and_the_conductor_names_it(
    hall: StageFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    stolen = read_invitation(hall.invite("ann"))
    hall.revoke("ann")
    told: list[str] = []

    async def story(expected: str) -> None:
        async with open_stage(hall.folder, tell=told.append) as opened:
            with stolen.credentials() as credentials:
                bus = await StageBus.join(hall.endpoint, credentials)
                try:
                    reason = await _find_refusal(stolen, credentials, bus)
                    assert expected in reason
                    for beat in range(1, 20):
                        state = AgentState("ann", "stolen", beat)
                        bus.publish(hall.keys.state("ann"), state.encode())
                        await asyncio.sleep(0.05)
                finally:
                    await bus.close()
            assert "ann" not in opened.robots, "a revoked certificate has no rights"
            assert "revoked on 2" in opened.refused["ann"]

    asyncio.run(story("the conductor refuses it: its invitation was revoked on 2"))
    assert any("ann asks to join and is refused" in text for text in told)
    main(["stage", "status", "--stage", str(hall.folder), "--seconds", "0.5"])
    assert "revoked on 2" in " ".join(capsys.readouterr().out.split())

    hall.invite("ann")
    asyncio.run(story("its invitation was revoked on 2"))


def test_a_revoked_agent_that_is_invited_again_takes_part(hall: StageFolder) -> None:
    hall.invite("ann")
    hall.revoke("ann")
    new = read_invitation(hall.invite("ann"))
    assert (new.certificate_name, new.fault()) == ("ann.2", "")

    async def again() -> None:
        async with open_stage(hall.folder) as opened:
            with new.credentials() as credentials:
                bus = await StageBus.join(hall.endpoint, credentials)
                try:
                    assert await _find_refusal(new, credentials, bus) == ""
                    for beat in range(1, 200):
                        state = AgentState("ann", "new", beat)
                        bus.publish(hall.keys.state("ann"), state.encode())
                        await asyncio.sleep(0.05)
                        if "ann" in opened.robots:
                            return
                    raise AssertionError("the new invitation does not work")
                finally:
                    await bus.close()

    asyncio.run(again())


def test_an_agent_that_waits_says_which_certificate_is_refused(
    hall: StageFolder, tmp_path: Path
) -> None:
    stranger = StageFolder.new(tmp_path / "o", "hall", hall.endpoint)
    invitation = stranger.invite("ann")

    async def story() -> str:
        bus = await StageBus.conduct(hall.endpoint, hall.credentials, hall.keys.grants(("ann",)))
        command = ("-m", "rote", "agent", "sim://g1", "--join", str(invitation))
        agent = await asyncio.create_subprocess_exec(
            sys.executable, *command, stdout=asyncio.subprocess.PIPE
        )
        assert agent.stdout is not None
        try:
            async with asyncio.timeout(60.0):
                return (await agent.stdout.readline()).decode()
        finally:
            agent.terminate()
            await agent.communicate()
            await bus.close()

    said = asyncio.run(story())
    assert f"ann cannot join the stage at {hall.endpoint}: this computer refuses" in said
    assert "rote stage invite ann" in said


def test_an_agent_prints_within_two_seconds_that_the_conductor_is_lost_and_when_it_is_back(
    capsys: pytest.CaptureFixture[str],
) -> None:
    printed: list[list[str]] = []

    async def story() -> None:
        async with memory_stage() as one:
            reasons = ["The certificate expired.", ""]

            async def why() -> str:
                return reasons.pop(0)

            telling = asyncio.create_task(_report_silence(one.agent, why))
            await asyncio.sleep(1.0)
            for _ in range(2):
                one.bus.drops = lambda key: key == one.conductor._keys.conductor
                await asyncio.sleep(2.0)
                printed.append(capsys.readouterr().out.splitlines())
                await asyncio.sleep(7.0)
                one.bus.drops = lambda _: False
                await asyncio.sleep(3.0)
                printed.append(capsys.readouterr().out.splitlines())
            telling.cancel()

    virtual.run(story())
    lost = "The conductor is lost. ann stops softly if it moves, and waits for it."
    assert printed[0] == [lost, "The certificate expired."]
    assert printed[1] == printed[3] == ["The conductor is back after 9 s."]
    assert printed[2][0] == lost
    assert "If it was started before this agent was invited" in printed[2][1]


def test_an_agent_that_never_hears_of_a_conductor_says_so_and_when_it_comes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Waiting:
        name, silent_s, conductor_known = "ann", 0.0, False

    async def why() -> str:
        return "The certificate expired."

    async def story() -> None:
        agent = Waiting()
        telling = asyncio.create_task(_report_silence(cast("Any", agent), why))
        for silent_s in (4.9, 5.1, 5.3, 0.1, 0.3):
            agent.silent_s = silent_s
            await asyncio.sleep(0.2)
        telling.cancel()

    virtual.run(story())
    assert capsys.readouterr().out.splitlines() == [
        "No message of the conductor for 5 s.",
        "The certificate expired.",
        "The conductor is back after 5 s.",
    ]


def test_a_status_waits_for_robots_that_need_long_to_connect_and_not_longer() -> None:
    async def story() -> list[float]:
        bus, keys = TableBus(), StageKeys("hall")
        loop, took_s = asyncio.get_running_loop(), []
        for late_s in (0.0, 6.0, 60.0):
            watcher = StageWatcher(cast("Any", bus), keys, conducted=True, invited=("ann", "bob"))

            async def publish(late_s: float = late_s) -> None:
                await asyncio.sleep(late_s)
                for beat in range(1, 100):
                    for name in ("ann", "bob"):
                        state = AgentState(name, f"e{late_s}", beat)
                        bus.publish(keys.state(name), state.encode())
                    await asyncio.sleep(0.2 if beat % 5 else 1.5)  # a busy computer

            publishing = loop.create_task(publish())
            began_s = loop.time()
            await watcher.gather_agents(1.5, 10.0)
            took_s.append(loop.time() - began_s)
            assert watcher.reachable("ann") == watcher.reachable("bob") == (late_s < 10.0)
            publishing.cancel()
        return took_s

    at_once_s, late_s, never_s = virtual.run(story())
    assert 1.5 <= at_once_s < 3.5
    assert 6.0 <= late_s < 6.2
    assert never_s == pytest.approx(10.0, abs=0.1)


def test_a_stop_from_another_terminal_names_who_was_not_heard_and_fails_aloud(
    hall: StageFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("ann", "bob"):
        hall.invite(name)

    async def story() -> int:
        keys = hall.keys
        bus = await StageBus.conduct(hall.endpoint, hall.credentials, keys.grants(hall.agents))
        ann = await joined(hall, "ann")
        stopped = [""]
        ann.subscribe(keys.stop, lambda _, data: stopped.__setitem__(0, decode_stop(data).id))

        async def publish() -> None:
            for beat in range(1, 10_000):
                state = AgentState("ann", "e", beat, stopped=stopped[0])
                ann.publish(keys.state("ann"), state.encode())
                await asyncio.sleep(0.05)

        publishing = asyncio.create_task(publish())
        try:
            return await stop_stage(hall.folder, as_json=False)
        finally:
            publishing.cancel()
            await ann.close()
            await bus.close()

    assert asyncio.run(story()) == 0
    assert capsys.readouterr().out.splitlines() == [
        "Stopped: ann.",
        "No answer from: bob. If one of them moves, use its remote!",
    ]
    with socket.socket() as taken:  # not a conductor, and no place for one
        host, _, port = hall.endpoint.rpartition(":")
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind((host, int(port)))
        taken.listen()
        assert main(["show", "stop", "--stage", str(hall.folder)]) != 0
    assert "the stop did NOT reach the stage; use the remotes" in capsys.readouterr().err
