"""rote batch: many motions, one row each, whatever happens to the files and the processes."""

import errno
import json
import multiprocessing
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path, PosixPath
from typing import IO, Any, NoReturn

import numpy as np
import pytest

from forked import fork_batch_workers
from left_processes import wait_until_group_ended
from rote.batch import Input, Inputs, Task, TaskKind, find_inputs, run_batch
from rote.batch.journal import Journal
from rote.cli import main
from rote.errors import BadRequestError
from rote.model.g1 import G1_29
from rote.motion.files import load, save
from rote.motion.files.library import library
from rote.motion.track import Track

pytestmark = pytest.mark.slow

CHECK = Task(kind=TaskKind.CHECK, contact=False)
ROTE = (sys.executable, "-m", "rote")
EVERYTHING = ["data/a.json", "data/broken.json", "data/fast.csv", "data/more/b.npz"]
"""The motions that `data` contains."""


def wave(peak_rad: float = 0.2, seconds: float = 1.0) -> Track:
    times_s = np.arange(0.0, seconds, 0.02)
    joints = G1_29.taught
    angles = np.zeros((len(times_s), len(joints)))
    angles[:, joints.index("left_elbow_joint")] = peak_rad * np.sin(np.pi * times_s / seconds) ** 2
    return Track(times_s=times_s, joints_rad=angles, names=joints, variant=G1_29.name)


@pytest.fixture
def motions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with `data`: two good motions, one that breaks a limit, and one broken."""
    fork_batch_workers(monkeypatch)
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "data"
    (folder / "more").mkdir(parents=True)
    save(wave(), folder / "a.json")
    save(wave(0.3), folder / "more" / "b.npz")
    save(wave(6.0), folder / "fast.csv")
    (folder / "broken.json").write_text("{")
    (folder / ".hidden.json").write_text("{")
    (folder / "notes.md").write_text("no motion")
    return folder


def read_rows(out: Path) -> list[dict[str, Any]]:
    header, *rows = map(json.loads, (out / "results.jsonl").read_text().splitlines())
    assert header["batch"] == 1
    return rows


def statuses(out: Path) -> dict[str, str]:
    return {row["name"]: row["status"] for row in read_rows(out)}


def ask(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, dict[str, Any]]:
    code = main([*map(str, arguments), "--json"])
    out, err = capsys.readouterr()
    return code, json.loads(out or err)


def test_every_motion_has_a_row_and_a_bad_file_does_not_end_the_batch(
    motions: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, answer = ask(
        capsys, "batch", "check", "data", "--no-contact", "--workers", 1, "--out", "out"
    )
    assert code == 5
    assert (answer["motions"], answer["ok"], answer["error"], answer["failed"]) == (4, 2, 1, 1)
    assert answer["worst"] == ["data/broken.json", "data/fast.csv"]
    assert statuses(Path("out")) == {
        "data/a.json": "ok",
        "data/more/b.npz": "ok",
        "data/fast.csv": "error",
        "data/broken.json": "failed",
    }
    page = Path("out/report.html").read_text()
    assert "data/fast.csv" in page
    assert page.count("<svg") == 1  # the broken one cannot be drawn
    broken = next(row for row in read_rows(Path("out")) if row["status"] == "failed")
    assert "broken.json" in broken["error"]


def test_people_read_counts_findings_and_where_the_results_are(
    motions: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["batch", "check", "data", "--no-contact", "--workers", "1", "--out", "out"]) == 5
    text = capsys.readouterr().out
    for part in ("4 motions in", "2 no findings", "1 not playable", "1 failed", "position 1"):
        assert part in text
    assert f"Results: {Path('out/results.jsonl')}" in text
    assert main(["batch", "check", "data", "--no-contact", "--workers", "1", "--out", "out"]) == 5
    again = capsys.readouterr().out
    assert "0 motions in" in again
    assert "4 were done before." in again


def test_sources_are_folders_files_patterns_lists_and_not_the_output(motions: Path) -> None:
    listed = motions.parent / "list.txt"
    listed.write_text("# chosen\ndata/a.json\n\ndata/gone.npz\n")

    def names(*sources: str, excluded: Path | None = None) -> list[str]:
        return [item.name for item in find_inputs(sources, excluded=excluded)]

    assert names("data") == EVERYTHING
    assert names("data", excluded=motions / "more") == EVERYTHING[:-1]
    assert names("data/**/*.npz") == ["data/more/b.npz"]
    assert names("data/*.json") == ["data/a.json", "data/broken.json"]
    assert names("data/.h*.json") == []
    with pytest.raises(BadRequestError, match="not a pattern"):
        names("data/**npz")
    assert names("list.txt") == ["data/a.json", "data/gone.npz"]
    assert names(str(motions / "a.json")) == ["data/a.json"]
    with pytest.raises(BadRequestError, match=r"nowhere does not exist"):
        names("data", "nowhere")


def test_a_source_that_is_named_twice_counts_once(motions: Path) -> None:
    found = find_inputs(["data", "data/a.json", "data/*.json", str(motions)])
    assert len(found) == len(list(found)) == 4
    result = run_batch(CHECK, found, Path("out"), workers=1)
    assert (result.processed, len(read_rows(Path("out")))) == (4, 4)


def test_links_that_lead_in_a_circle_are_not_followed(motions: Path) -> None:
    (motions / "more" / "up").symlink_to(motions)
    (motions / "more" / "self.csv").symlink_to("self.csv")
    assert [item.name for item in find_inputs(["data/**/*.npz"])] == ["data/more/b.npz"]
    names = [item.name for item in find_inputs(["data"])]
    assert names == [*EVERYTHING, "data/more/self.csv"]
    run_batch(CHECK, find_inputs(["data/more"]), Path("out"), workers=1)
    assert statuses(Path("out")) == {"data/more/b.npz": "ok", "data/more/self.csv": "failed"}


def test_what_a_batch_wrote_is_not_its_source(motions: Path) -> None:
    convert = Task(kind=TaskKind.CONVERT, ending=".csv")
    for source in ("**/*.npz", "."):
        out = motions / "out"
        for _ in range(2):
            run_batch(convert, find_inputs([source], excluded=out), out, workers=1)
            assert not (out / "data" / "out").exists()
        for path in sorted(out.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
    with pytest.raises(BadRequestError, match="is in the output folder"):
        find_inputs(["data/more"], excluded=motions)


def test_two_files_of_one_name_are_refused(motions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Outside the working folder a file is named by its path, which a file inside may have, too.
    outside, inside = motions / "a.json", motions / "more" / f"{motions}/a.json".removeprefix("/")
    inside.parent.mkdir(parents=True)
    save(wave(), inside)
    monkeypatch.chdir(motions / "more")
    with pytest.raises(BadRequestError, match="would have the same name in the results"):
        find_inputs([str(outside), str(inside)])
    assert len(Inputs([Input(inside, "x"), Input(inside, "x")])) == 1


def test_odd_files_are_rows_and_end_no_batch(motions: Path) -> None:
    folder = motions / "odd"
    folder.mkdir()
    (folder / "empty.csv").touch()
    os.mkfifo(folder / "pipe.csv")
    save(wave(), folder / "snow ☃.json")
    (folder / "snow ☃.json").rename(os.fsdecode(os.fsencode(folder) + b"/\xff.json"))
    save(wave(), folder / "ünï.json")
    listed = motions / "list.txt"
    listed.write_bytes(b"odd/\xc3\xbcn\xc3\xaf.json\nodd/\xfe.csv\nnul\0.csv\n")
    found = find_inputs(["data/odd", "data/list.txt"])
    assert run_batch(CHECK, found, Path("out"), workers=1).processed == 6
    assert {
        name.removeprefix("data/"): status for name, status in statuses(Path("out")).items()
    } == {
        "odd/empty.csv": "failed",
        "odd/pipe.csv": "failed",
        "odd/\udcff.json": "ok",
        "odd/ünï.json": "ok",
        "odd/\udcfe.csv": "failed",
        "nul\0.csv": "failed",
    }
    again = run_batch(CHECK, find_inputs(["data/odd", "data/list.txt"]), Path("out"))
    assert (again.processed, again.skipped) == (0, 6)


def test_a_damaged_line_of_the_results_is_done_again(motions: Path) -> None:
    run_batch(CHECK, find_inputs(["data"]), Path("out"), workers=1)
    lines = Path("out/results.jsonl").read_bytes().splitlines(keepends=True)
    lines[2:3] = [b"\0" * 40 + b"\n", b'{"name": 3}\n', b"[]\n"]
    Path("out/results.jsonl").write_bytes(b"".join(lines) + b'{"name": "cut off')
    result = run_batch(CHECK, find_inputs(["data"]), Path("out"), workers=1)
    assert (result.processed, result.skipped, result.summary.motions) == (1, 3, 4)


class FullDiskPath(PosixPath):
    """A motion that a worker cannot write, because the disk is full."""

    def with_suffix(self, suffix: str) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_ends_the_batch_and_is_no_fault_of_a_motion(motions: Path) -> None:
    convert = Task(kind=TaskKind.CONVERT, ending=".csv")

    def inputs(kind: type[Path]) -> Iterator[Input]:
        yield Input(motions / "a.json", "first")
        yield Input(kind(motions / "a.json"), "second")

    with pytest.raises(BadRequestError, match="out cannot be written: No space left") as full:
        run_batch(convert, inputs(FullDiskPath), Path("out"), workers=1)
    assert "repeat the command" in full.value.remedy
    result = run_batch(convert, inputs(Path), Path("out"), workers=1)
    assert (result.processed, result.skipped) == (1, 1)
    assert set(statuses(Path("out")).values()) == {"ok"}


def test_a_row_that_does_not_fit_on_the_disk_is_not_left_half_written(motions: Path) -> None:
    with Journal(Path("out"), CHECK) as journal:
        size = journal.path.stat().st_size
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        handled = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, before[1]))
        try:
            with pytest.raises(BadRequestError, match="out cannot be written"):
                journal.append({"name": "x" * 100, "sha256": "", "status": "ok"})
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
            signal.signal(signal.SIGXFSZ, handled)
        assert journal.path.stat().st_size == size


def test_takes_are_named_or_all(motions: Path, capsys: pytest.CaptureFixture[str]) -> None:
    library().save(wave(), "hello")
    library().save(wave(0.1), "bye")
    for number, names in enumerate((["hello"], [])):
        out = Path(f"out{number}")
        code, _ = ask(
            capsys, "batch", "check", *names, "--take", "--no-contact", "--workers", 1, "--out", out
        )
        assert code == 0
        assert set(statuses(out)) == set(names or ["hello", "bye"])
    code, answer = ask(capsys, "batch", "check", "nope", "--take", "--out", "out")
    assert (code, answer["message"]) == (2, f"there is no take 'nope' in {library().folder}")


def test_converted_files_hold_the_same_motion_and_twins_do_not_overwrite_each_other(
    motions: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(wave(0.25), motions / "a.npz")
    save(wave(0.35), motions / "a.npz.csv")
    (motions / "fast.CSV").write_bytes((motions / "fast.csv").read_bytes())
    code, answer = ask(
        capsys, "batch", "convert", "data", "--to", "json", "--workers", 1, "--out", "out"
    )
    assert (code, answer["failed"]) == (5, 1)  # the broken one
    written = {row["name"]: row["out"] for row in read_rows(Path("out")) if "out" in row}
    assert written == {
        "data/a.json": "data/a.json.json",
        "data/a.npz": "data/a.npz.json",
        "data/a.npz.csv": "data/a.npz.csv.json",
        "data/fast.CSV": "data/fast.CSV.json",
        "data/fast.csv": "data/fast.csv.json",
        "data/more/b.npz": "data/more/b.json",
    }
    for name, out in written.items():
        np.testing.assert_allclose(load(Path("out") / out).joints_rad, load(name).joints_rad)


def test_fit_writes_a_playable_motion_and_its_row_tells_what_changed(
    motions: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _ = ask(
        capsys, "batch", "fit", "data/fast.csv", "--no-contact", "--workers", 1, "--out", "out"
    )
    assert code == 0
    (row,) = read_rows(Path("out"))
    assert row["done"].startswith("fit: left_elbow_joint kept within its range")
    assert row["seconds"] > row["seconds_before"]
    code, _ = ask(
        capsys, "batch", "check", "out/data", "--no-contact", "--workers", 1, "--out", "checked"
    )
    assert code == 0


def test_fit_keeps_the_tempo_of_all_motions_if_requested(
    motions: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ("batch", "fit", "data/fast.csv", "--no-contact", "--workers", 1, "--out", "out")
    code, _ = ask(capsys, *line, "--keep-tempo", "--slow-down")
    assert code == 2
    code, _ = ask(capsys, *line, "--keep-tempo")
    assert code == 0
    (row,) = read_rows(Path("out"))
    assert row["seconds"] == row["seconds_before"]
    assert "0 marks kept" in row["done"]


def test_a_row_notes_what_was_assumed_when_its_file_was_read(motions: Path) -> None:
    rows = (f"{10 * number},{0.001 * number}" for number in range(200))
    Path("ms.csv").write_text("\n".join(["t,left_elbow_joint", *rows]))
    half_turns = np.linspace(0.0, 1.5, 30)
    turns = np.column_stack([np.sin(half_turns), np.cos(half_turns)])
    table = np.hstack([np.tile([0, 0, 0.8, 0, 0], (30, 1)), 0.98 * turns, np.zeros((30, 29))])
    np.savetxt("lafan.csv", table, delimiter=",")
    convert = Task(kind=TaskKind.CONVERT, ending=".npz")
    run_batch(convert, find_inputs(["ms.csv", "lafan.csv"]), Path("out"), workers=1)
    notes = {
        row["name"]: "; ".join(note["message"] for note in row["findings"])
        for row in read_rows(Path("out"))
    }
    assert "the times were read as milliseconds" in notes["ms.csv"]
    assert "read at 30 frames a second" in notes["lafan.csv"]
    assert "they were normalised" in notes["lafan.csv"]


def test_preview_tells_whether_a_body_follows(
    motions: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("mujoco", reason="mujoco is not installed here")
    code, _ = ask(capsys, "batch", "preview", "data/a.json", "--workers", 1, "--out", "out")
    (row,) = read_rows(Path("out"))
    assert (code, row["follows"], row["upright"]) == (0, True, None)


def test_only_what_is_new_or_changed_is_processed_again(motions: Path) -> None:
    out = Path("out")

    def run(task: Task = CHECK, **options: Any) -> tuple[int, int]:
        result = run_batch(task, find_inputs(["data"]), out, workers=1, **options)
        return result.processed, result.skipped

    assert run() == (4, 0)
    assert run() == (0, 4)
    save(wave(0.15), motions / "new.json")
    save(wave(0.1), motions / "a.json")
    assert run() == (2, 3)
    assert run(retry_failed=True) == (1, 4)
    assert len(read_rows(out)) == 7
    with (out / "results.jsonl").open("a") as file:
        file.write('{"name": "cut o')
    assert run() == (0, 5)
    assert len(read_rows(out)) == 7
    with pytest.raises(BadRequestError, match=r"out holds the results of another task"):
        run(Task(kind=TaskKind.CHECK, contact=False, payload_kg=1.0))


def test_a_folder_with_other_files_is_left_alone(motions: Path) -> None:
    with pytest.raises(BadRequestError, match=r"data holds files, but no results of a batch"):
        run_batch(CHECK, find_inputs(["data"]), motions)


def test_a_batch_that_is_killed_leaves_no_process_and_the_next_one_completes_it(
    motions: Path,
) -> None:
    for number in range(30):
        save(wave(0.2 + number / 1000), motions / f"m{number:02}.json")
    command = [*ROTE, "batch", "check", "data", "--workers", "1", "--out", "out"]
    first = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL)
    results = Path("out/results.jsonl")
    while not results.exists() or results.read_bytes().count(b"\n") < 5:
        assert first.poll() is None, "it ended before it could be killed"
        time.sleep(0.005)
    first.kill()
    first.wait()
    second = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False)
    answer = json.loads(second.stdout)
    assert answer["motions"] == 34
    assert answer["processed"] + answer["skipped"] == 34
    assert answer["skipped"] >= 4
    names = [row["name"] for row in read_rows(Path("out"))]
    assert sorted(names) == sorted(set(names))
    assert wait_until_group_ended(first.pid), "a worker goes on without its parent"


def test_ctrl_c_stops_softly_and_says_how_to_continue(motions: Path) -> None:
    for number in range(30):
        save(wave(0.2 + number / 1000), motions / f"m{number:02}.json")
    command = [*ROTE, "batch", "check", "data", "--workers", "1", "--out", "out"]
    running = subprocess.Popen(
        command, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    results = Path("out/results.jsonl")
    while not results.exists() or results.read_bytes().count(b"\n") < 3:
        assert running.poll() is None, "it ended before it could be interrupted"
        time.sleep(0.005)
    os.killpg(running.pid, signal.SIGINT)
    out, err = running.communicate()
    assert (running.returncode, err) == (130, "")
    assert "Repeat the command to continue" in out


class DeadlyPath(PosixPath):
    """A file that ends each worker process that opens it."""

    def open(self, *args: Any, **options: Any) -> IO[Any]:  # type: ignore[override]
        if multiprocessing.parent_process() is not None:
            os._exit(9)
        opened: IO[Any] = super().open(*args, **options)
        return opened


def test_a_file_that_ends_its_process_is_a_row_and_no_other_file_is_lost(motions: Path) -> None:
    def inputs() -> Iterator[Input]:
        yield from find_inputs(["data"])
        yield Input(DeadlyPath(motions / "a.json"), "deadly")
        for number in range(6):
            yield Input(motions / "a.json", f"later{number}")

    result = run_batch(CHECK, inputs(), Path("out"), workers=2)
    assert result.processed == 11
    assert statuses(Path("out"))["deadly"] == "failed"
    assert all(statuses(Path("out"))[f"later{number}"] == "ok" for number in range(6))
    deadly = next(row for row in read_rows(Path("out")) if row["name"] == "deadly")
    assert deadly["error"].startswith("its process ended")


def test_a_process_that_ends_before_the_next_motion_is_handed_out_ends_no_batch(
    motions: Path,
) -> None:
    def inputs() -> Iterator[Input]:
        yield Input(DeadlyPath(motions / "a.json"), "deadly")
        # The next motion takes long to find, as one after thousands that are done.
        for thread in threading.enumerate():
            if type(thread).__name__ == "_ExecutorManagerThread":
                thread.join()  # it ends when it has given up the pool
        yield Input(motions / "a.json", "later")

    assert run_batch(CHECK, inputs(), Path("out"), workers=1).processed == 2
    assert statuses(Path("out")) == {"deadly": "failed", "later": "ok"}


def test_two_batches_do_not_write_to_one_folder(motions: Path) -> None:
    def inputs() -> Iterator[Input]:
        with pytest.raises(BadRequestError, match=r"another batch is writing to out"):
            run_batch(CHECK, find_inputs(["data"]), Path("out"), workers=1)
        yield from find_inputs(["data"])

    assert run_batch(CHECK, inputs(), Path("out"), workers=1).processed == 4


class LimitedPath(PosixPath):
    """A file that cannot be read; the reason is its process's limit of processor time."""

    def exists(self, **_options: Any) -> NoReturn:
        limit_s, _ = resource.getrlimit(resource.RLIMIT_CPU)
        raise OSError(errno.EIO, f"limit of {limit_s} s")


class CrashingPath(PosixPath):
    """A file that ends each process of a cluster that opens it."""

    def is_file(self) -> bool:
        if "default_worker" in sys.argv[0]:  # the program that Ray runs on its nodes
            os._exit(9)
        return super().is_file()


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[str]:
    """The address of a Ray cluster of two nodes on this computer."""
    pytest.importorskip("ray", reason="ray is not installed: it brings 240 MB")
    from ray import cloudpickle
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # its workers have no tests
    try:
        cluster.add_node(num_cpus=1)
        yield cluster.address
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
        cluster.shutdown()


def test_on_a_ray_cluster_of_two_nodes_the_results_are_the_same(
    motions: Path, ray_cluster: str
) -> None:
    run_batch(CHECK, find_inputs(["data"]), Path("here"), workers=1)
    run_batch(CHECK, find_inputs(["data"]), Path("there"), ray_address=ray_cluster)

    def by_name(out: str) -> list[dict[str, Any]]:
        return sorted(read_rows(Path(out)), key=lambda row: str(row["name"]))

    assert by_name("there") == by_name("here")


def test_on_a_ray_cluster_a_file_has_a_time_limit_and_one_that_ends_its_process_is_a_row(
    motions: Path, ray_cluster: str
) -> None:
    inputs = [
        Input(LimitedPath(motions / "a.json"), "limited"),
        Input(CrashingPath(motions / "a.json"), "deadly"),
        Input(motions / "a.json", "good"),
    ]
    run_batch(CHECK, inputs, Path("out"), ray_address=ray_cluster)
    rows = read_rows(Path("out"))
    errors = {row["name"]: str(row["error"]) for row in rows if "error" in row}
    assert sorted(row["name"] for row in rows) == ["deadly", "good", "limited"]
    assert "good" not in errors
    assert errors["deadly"].startswith("its process or node ended (WorkerCrashedError)")
    (limit_s,) = re.findall(r"limit of (\d+) s", errors["limited"])
    assert 300 <= int(limit_s) < 400


def test_on_a_ray_cluster_a_full_disk_ends_the_batch(motions: Path, ray_cluster: str) -> None:
    convert = Task(kind=TaskKind.CONVERT, ending=".csv")
    inputs = [Input(FullDiskPath(motions / "a.json"), "full")]
    with pytest.raises(BadRequestError, match="cannot be written: No space left"):
        run_batch(convert, inputs, Path("out"), ray_address=ray_cluster)
    assert statuses(Path("out")) == {}


@pytest.mark.parametrize("address", ["127.0.0.1:1", "not an address"])
def test_without_a_ray_cluster_a_batch_says_how_to_start_one(motions: Path, address: str) -> None:
    pytest.importorskip("ray", reason="ray is not installed: it brings 240 MB")
    with pytest.raises(BadRequestError, match=f"no Ray cluster at {address}") as missing:
        run_batch(CHECK, find_inputs(["data"]), Path("out"), ray_address=address)
    assert "ray start --head" in missing.value.remedy


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("check", "--out", "out"), "no source was given"),
        (("check", "data/notes.txt", "--out", "out"), "data/notes.txt does not exist"),
        (("convert", "data", "--to", "xyz", "--out", "out"), "unknown format 'xyz'"),
        (("convert", "data", "--force", "--out", "out"), "--force does nothing without --build"),
        (("check", "data", "--workers", "0", "--out", "out"), "a batch needs at least one worker"),
        (("preview", "data", "--base", "up", "--out", "out"), "unknown base 'up'"),
        (
            ("check", "data", "--workers", "2", "--ray", "auto", "--out", "out"),
            "--workers does nothing with --ray",
        ),
    ],
)
def test_a_request_that_cannot_be_met_says_so_before_any_work(
    motions: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    message: str,
) -> None:
    code, answer = ask(capsys, "batch", *arguments)
    assert (code, answer["message"]) == (2, message)
    assert not Path("out").exists()
