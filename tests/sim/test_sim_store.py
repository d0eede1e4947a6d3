"""The robot's memory: 15 places that outlive the process, and no harm to anybody else's file."""

import sqlite3
import threading
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from motion.motion_tracks import full_disk
from rote.errors import BadRequestError, StoreError, StoreLockedError
from rote.messages import ActionEntry, Code, Keyframe
from rote.model.g1 import G1_29
from rote.session.teaching import TeachingTiming
from rote.sim.refusal import RefusalError
from rote.sim.store import _LOCKED_S, Store, StoredAction, check_store_path

KEYFRAMES = (
    Keyframe(joint=18, time_ms=0, value_rad=0.5),
    Keyframe(joint=25, time_ms=65535, value_rad=-1.25),
)


def keyframed(name: str, duration_ms: int = 1000) -> StoredAction:
    return StoredAction(name=name, created_s=1, duration_ms=duration_ms, keyframes=KEYFRAMES)


def recorded(name: str, frames: int = 5) -> StoredAction:
    times_s = np.arange(frames) / 100.0
    joints = np.outer(np.cos(times_s), np.linspace(-1.5, 1.5, 29))
    return StoredAction(
        name=name, created_s=7, duration_ms=40, loop=True, times_s=times_s, joints_rad=joints
    )


def names(store: Store) -> list[str]:
    return [entry.name for entry in store.entries()]


def refusal(store: Store, action: StoredAction) -> Code:
    with pytest.raises(RefusalError) as caught:
        store.save(action)
    return caught.value.code


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "g1.sqlite"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with closing(Store(path)) as store:
        yield store


# ---- whose joints -------------------------------------------------------------------------------


def test_an_action_knows_the_joints_it_was_taught_on(store: Store) -> None:
    joints = np.array([[0.1, 0.2], [0.3, 0.4]])
    times_s = np.array([0.0, 0.5])
    mine = StoredAction(
        name="a", created_s=0, duration_ms=500, times_s=times_s, joints_rad=joints, names=("x", "y")
    )
    store.save(mine)
    again = store.load(1)
    assert again is not None
    assert again.names == ("x", "y")
    assert again.joints_rad == pytest.approx(joints)


def test_a_store_of_an_older_version_holds_actions_of_a_g1_with_29_joints(path: Path) -> None:
    with closing(Store(path)) as store:
        store.save(recorded("bow"))
    with closing(sqlite3.connect(path)) as old, old:
        ((data,),) = old.execute("SELECT data FROM actions").fetchall()
        old.execute("ALTER TABLE actions DROP COLUMN joints")
        old.execute("UPDATE actions SET crc = ?", (zlib.crc32(data),))
    for _ in range(2):  # it is brought up to date once, and then it is
        with closing(Store(path)) as store:
            action = store.load(1)
            assert action is not None
            assert action.names == G1_29.names
            assert action.joints_rad == pytest.approx(recorded("bow").joints_rad)
    with closing(Store(path)) as store:
        store.save(keyframed("wave"))
        assert names(store) == ["bow", "wave"]


def test_joints_that_are_damaged_are_reported(path: Path) -> None:
    with closing(Store(path)) as store:
        store.save(recorded("bow"))
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("UPDATE actions SET joints = '[oops'")
    with closing(Store(path)) as store, pytest.raises(StoreError, match="'bow'"):
        store.load(1)


# ---- remembered ---------------------------------------------------------------------------------


def test_a_new_store_is_empty(store: Store) -> None:
    assert store.entries() == ()
    assert store.load(1) is None


def test_actions_survive_closing_and_opening(path: Path) -> None:
    with closing(Store(path)) as store:
        store.save(keyframed("wave", 1500))
        store.save(recorded("bow"))
    with closing(Store(path)) as store:
        assert store.entries() == (ActionEntry("wave", 1500), ActionEntry("bow", 40))
        assert store.load(2) is not None


def test_actions_are_there_without_closing(store: Store, path: Path) -> None:
    store.save(keyframed("wave"))
    with closing(Store(path)) as other:
        assert names(other) == ["wave"]


def test_keyframes_come_back_as_they_were(store: Store) -> None:
    store.save(keyframed("wave"))
    action = store.load(1)
    assert action is not None
    assert (action.name, action.created_s, action.duration_ms) == ("wave", 1, 1000)
    assert (action.loop, action.frames) == (False, 2)
    assert action.keyframes == KEYFRAMES
    assert action.times_s is None
    assert action.joints_rad is None


def test_frames_come_back_as_they_were(store: Store) -> None:
    saved = recorded("bow", 300)
    store.save(saved)
    action = store.load(1)
    assert action is not None
    assert (action.name, action.created_s, action.duration_ms) == ("bow", 7, 40)
    assert (action.loop, action.frames, action.keyframes) == (True, 300, ())
    assert action.times_s is not None
    assert action.joints_rad is not None
    assert saved.times_s is not None
    assert saved.joints_rad is not None
    assert action.joints_rad.shape == (300, 29)
    np.testing.assert_allclose(action.times_s, saved.times_s, atol=1e-6)
    np.testing.assert_allclose(action.joints_rad, saved.joints_rad, atol=1e-6)


@given(
    st.lists(
        st.builds(
            Keyframe,
            joint=st.integers(0, 28),
            time_ms=st.integers(0, 65535),
            value_rad=st.floats(-4.0, 4.0, width=32),
        ),
        min_size=1,
        max_size=20,
    )
)
def test_any_keyframes_of_the_wire_come_back_to_the_bit(keyframes: list[Keyframe]) -> None:
    with closing(Store(":memory:")) as store:
        store.save(
            StoredAction(name="a", created_s=0, duration_ms=1, keyframes=tuple(keyframes)),
        )
        action = store.load(1)
    assert action is not None
    assert action.keyframes == tuple(keyframes)


@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=31))
def test_names_in_any_alphabet_come_back(name: str) -> None:
    with closing(Store(":memory:")) as store:
        store.save(keyframed(name))
        assert names(store) == [name]


def test_names_differ_by_case_and_accent(store: Store) -> None:
    for name in ("wave", "Wave", "wavé", "wave'; DROP TABLE actions; --"):
        store.save(keyframed(name))
    assert len(store.entries()) == 4


# ---- places -------------------------------------------------------------------------------------


def test_actions_are_numbered_in_the_order_they_were_saved(store: Store) -> None:
    for name in ("zebra", "ant", "mole"):
        store.save(keyframed(name))
    assert names(store) == ["zebra", "ant", "mole"]
    found = [store.load(position) for position in (1, 2, 3)]
    assert [action and action.name for action in found] == ["zebra", "ant", "mole"]


def test_there_are_15_places_and_no_more(store: Store) -> None:
    for number in range(15):
        store.save(keyframed(f"action {number}"))
    assert refusal(store, keyframed("one more")) is Code.STORE_FULL
    assert names(store) == [f"action {number}" for number in range(15)]
    assert store.load(15) is not None


def test_a_name_is_taken_once_and_what_is_stored_under_it_stays(store: Store) -> None:
    store.save(keyframed("wave", 1000))
    assert refusal(store, keyframed("wave", 2000)) is Code.NAME_EXISTS
    assert store.entries() == (ActionEntry("wave", 1000),)


def test_an_action_is_replaced_where_that_is_said(store: Store) -> None:
    store.save(keyframed("wave", 1000))
    store.save(keyframed("wave", 2000), replace=True)
    assert store.entries() == (ActionEntry("wave", 2000),)


def test_a_store_that_another_program_locks_says_so_before_clients_lose_patience(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rote.sim.store._OPEN_S", 0.1)
    monkeypatch.setattr("rote.sim.store._LOCKED_S", 0.1)
    with (
        closing(Store(path)) as store,
        closing(sqlite3.connect(path, isolation_level=None)) as other,
    ):
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreLockedError, match="locked by another program"):
            store.save(keyframed("wave"))
        other.execute("COMMIT")
        store.save(keyframed("wave"))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreLockedError, match="locked by another program"):
            Store(path)


def test_how_long_a_locked_store_is_waited_for_is_no_silence_to_a_client() -> None:
    assert TeachingTiming().robot_silence_s / 2 > _LOCKED_S


def test_a_store_that_a_person_names_makes_no_folders(tmp_path: Path) -> None:
    with pytest.raises(BadRequestError, match="does not exist"):
        check_store_path(str(tmp_path / "new" / "g1.sqlite"))
    assert not (tmp_path / "new").exists()
    assert check_store_path(":memory:") == ":memory:"
    assert check_store_path(str(tmp_path / "g1.sqlite")) == str(tmp_path / "g1.sqlite")


def test_a_refusal_leaves_the_store_in_working_order(store: Store) -> None:
    store.save(keyframed("wave"))
    refusal(store, keyframed("wave"))
    store.save(keyframed("bow"))
    assert names(store) == ["wave", "bow"]


@pytest.mark.parametrize("position", [-(2**31), -1, 0, 3, 15, 16, 2**32 - 1, 2**70])
def test_a_place_that_is_empty_or_does_not_exist_holds_nothing(store: Store, position: int) -> None:
    store.save(keyframed("wave"))
    store.save(keyframed("bow"))
    assert store.load(position) is None


# ---- two at once --------------------------------------------------------------------------------


def test_two_stores_on_one_file_see_each_others_actions(store: Store, path: Path) -> None:
    with closing(Store(path)) as other:
        store.save(keyframed("wave"))
        other.save(keyframed("bow"))
        assert names(store) == names(other) == ["wave", "bow"]
        assert refusal(other, keyframed("wave")) is Code.NAME_EXISTS


def test_two_stores_that_save_at_once_fill_15_places_together(path: Path) -> None:
    Store(path).close()
    saved: list[str] = []
    refused: list[Code] = []

    def fill(who: str) -> None:
        with closing(Store(path)) as store:
            for number in range(12):
                try:
                    store.save(keyframed(f"{who} {number}"))
                    saved.append(f"{who} {number}")
                except RefusalError as error:
                    refused.append(error.code)

    threads = [threading.Thread(target=fill, args=(who,)) for who in ("left", "right")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with closing(Store(path)) as store:
        assert sorted(names(store)) == sorted(saved)
    assert (len(saved), refused) == (15, [Code.STORE_FULL] * 9)


# ---- the file -----------------------------------------------------------------------------------


def test_a_store_makes_its_folder(tmp_path: Path) -> None:
    with closing(Store(tmp_path / "new" / "deep" / "g1.sqlite")) as store:
        store.save(keyframed("wave"))
    assert (tmp_path / "new" / "deep" / "g1.sqlite").exists()


def test_an_empty_file_becomes_a_store(path: Path) -> None:
    path.touch()
    with closing(Store(path)) as store:
        store.save(keyframed("wave"))
    with closing(Store(path)) as store:
        assert names(store) == ["wave"]


def test_a_store_in_memory_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with closing(Store(":memory:")) as store:
        store.save(keyframed("wave"))
    assert list(tmp_path.iterdir()) == []


def test_the_file_says_whose_it_is_and_writes_ahead(path: Path) -> None:
    Store(path).close()
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA application_id").fetchone() == (int.from_bytes(b"rote"),)
        assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_the_database_of_another_program_is_refused_and_unchanged(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE bookmarks (url TEXT)")
        database.execute("INSERT INTO bookmarks VALUES ('a')")
        database.commit()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="another program") as caught:
        Store(path)
    assert "store=FILE" in caught.value.remedy
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(
    "garbage",
    [
        b"no",
        b"not a database, but some text\n" * 100,
        bytes(8192),
        b"SQLite format 3\0" + b"?" * 500,
    ],
    ids=["a word", "text", "zeros", "only its head"],
)
def test_a_file_of_garbage_is_refused_and_unchanged(path: Path, garbage: bytes) -> None:
    path.write_bytes(garbage)
    with pytest.raises(StoreError, match="cannot be opened"):
        Store(path)
    assert path.read_bytes() == garbage
    assert list(path.parent.iterdir()) == [path]


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be opened"):
        Store(tmp_path)


@pytest.mark.parametrize("action", [keyframed("hurt"), recorded("hurt")], ids=["keys", "frames"])
def test_a_damaged_action_is_reported_and_the_others_can_still_be_had(
    store: Store, path: Path, action: StoredAction
) -> None:
    store.save(keyframed("sound"))
    store.save(action)
    with closing(sqlite3.connect(path)) as database:
        ((data,),) = database.execute("SELECT data FROM actions WHERE name = 'hurt'").fetchall()
        damaged = bytes([data[0] ^ 1]) + data[1:]
        database.execute("UPDATE actions SET data = ? WHERE name = 'hurt'", (damaged,))
        database.commit()
    with pytest.raises(StoreError, match=r"'hurt' .* is damaged"):
        store.load(2)
    assert names(store) == ["sound", "hurt"]
    assert store.load(1) is not None


def test_a_full_disk_is_reported_and_loses_nothing(store: Store, path: Path) -> None:
    store.save(keyframed("wave"))
    largest = max(file.stat().st_size for file in path.parent.iterdir())
    with full_disk(largest + 10_000), pytest.raises(StoreError, match="failed"):
        store.save(recorded("too long", 3000))
    assert names(store) == ["wave"]
    store.save(recorded("in time", 10))
    with closing(Store(path)) as other:
        assert names(other) == ["wave", "in time"]


def test_a_closed_store_says_so(path: Path) -> None:
    store = Store(path)
    store.close()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.entries()
    with pytest.raises(StoreError, match="closed"):
        store.save(keyframed("wave"))
