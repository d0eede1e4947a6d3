"""Motions of other programs come in, and ours go out to theirs."""

import bz2
import gzip
import lzma
import os
import pickle
import struct
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from motion.exchange_files import (
    MADE,
    asap,
    asap_motion,
    beyondmimic,
    gmr,
    joblib_bytes,
    kimodo,
    kimodo_bones,
    seq,
    unitree_csv,
    whole_body,
    written,
)
from rote.errors import BadRequestError, DecodeError
from rote.model.g1 import G1, G1_23, G1_29
from rote.motion.body.preview_body import compile_body
from rote.motion.files import load, save
from rote.motion.files.exchange import EXCHANGE, export_motion, import_motion, recognise_format
from rote.motion.files.exchange.bodies import (
    compute_angular_velocities,
    compute_link_poses,
    compute_speeds,
)
from rote.motion.files.exchange.contents import list_joints_breadth_first
from rote.motion.files.exchange.plain_pickle import read_plain
from rote.motion.track import Track

FPS = 30.0


@pytest.mark.parametrize("name", MADE)
def test_every_format_comes_in_to_a_millionth(name: str, tmp_path: Path) -> None:
    track = whole_body(fps=FPS)
    found = import_motion(written(tmp_path, name, track), name, fps=None if name == "amp" else FPS)
    names = track.names[15:] if name == "seq" else track.names
    columns = [found.track.names.index(joint) for joint in names]
    wanted = track.joints_rad[:, track.columns_of(names)]
    assert np.abs(found.track.joints_rad[:, columns] - wanted).max() < 1e-6
    assert np.abs(found.track.times_s - track.times_s).max() < 1e-6
    assert found.format == name
    assert not found.left_out
    if name == "seq":
        assert found.track.root is None
        return
    assert found.track.root is not None
    assert track.root is not None
    assert np.abs(found.track.root.position_m - track.root.position_m).max() < 1e-6
    same = (found.track.root.quaternion_wxyz * track.root.quaternion_wxyz).sum(axis=1)
    assert np.abs(np.abs(same) - 1.0).max() < 1e-9


@pytest.mark.parametrize("name", MADE)
def test_a_file_with_one_reading_is_recognised(name: str, tmp_path: Path) -> None:
    # One that faces forward is Kimodo's beyond doubt, one that faces back Unitree's.
    track = whole_body(facing_rad=0.3 if name == "kimodo" else 2.5)
    assert recognise_format(written(tmp_path, name, track)).name == name


@pytest.mark.parametrize("name", [n for n, f in EXCHANGE.items() if f.writer])
@pytest.mark.parametrize("walks", [True, False])
def test_what_goes_out_comes_back_to_a_millionth(name: str, walks: bool, tmp_path: Path) -> None:
    track = whole_body(fps=50.0)
    track = track if walks else replace(track, root=None)
    path = tmp_path / "out.file"
    lost = export_motion(track, path, name, fps=50)
    assert "lost" in lost
    back = import_motion(path, name, fps=50 if name == "unitree-csv" else None).track
    assert np.abs(back.joints_rad - track.joints_rad).max() < 1e-6
    assert np.abs(back.times_s - track.times_s).max() < 1e-6
    assert back.root is not None
    if walks and track.root is not None:
        assert np.abs(back.root.position_m - track.root.position_m).max() < 1e-6
        assert np.abs(back.root.quaternion_wxyz - track.root.quaternion_wxyz).max() < 1e-6
    else:
        assert np.ptp(back.root.position_m, axis=0).max() == 0.0


def test_a_taught_arm_goes_out_on_a_robot_that_stands_on_its_soles(tmp_path: Path) -> None:
    times_s = np.arange(101) / 50
    elbow = Track(
        times_s=times_s, joints_rad=0.5 * np.sin(times_s)[:, None], names=("right_elbow_joint",)
    )
    export_motion(elbow, tmp_path / "wave.npz", "mjlab")
    held = np.load(tmp_path / "wave.npz")
    assert set(held) == {
        "fps", "joint_pos", "joint_vel", "body_pos_w", "body_quat_w", "body_lin_vel_w",
        "body_ang_vel_w",
    }  # fmt: skip
    assert held["fps"].tolist() == [50]
    assert held["joint_pos"].shape == (101, 29)
    assert held["body_quat_w"].shape == (101, 30, 4)
    names = ("pelvis", *(joint.link for joint in G1_29.joints))
    feet = held["body_pos_w"][:, [names.index(f"{s}_ankle_roll_link") for s in ("left", "right")]]
    sole = min(corner[2] for corner in G1.body.feet[0].corners_m)
    assert feet[:, :, 2].min() == pytest.approx(-sole, abs=0.01)
    assert 0.6 < held["body_pos_w"][0, 0, 2] < 0.8
    column = G1_29.names.index("right_elbow_joint")
    assert np.abs(held["joint_pos"][:, column] - elbow.joints_rad[:, 0]).max() < 1e-6
    rest = G1_29.rest["left_elbow_joint"]
    assert held["joint_pos"][0, G1_29.names.index("left_elbow_joint")] == rest


def test_mjlabs_own_loader_reads_what_goes_out(tmp_path: Path) -> None:
    torch = pytest.importorskip(
        "torch", reason="mjlab's loader needs torch, which no test here installs"
    )
    commands = pytest.importorskip(
        "mjlab.tasks.tracking.mdp.commands", reason="mjlab is not installed with its 142 packages"
    )
    export_motion(whole_body(), tmp_path / "walk.npz", "mjlab")
    read = commands.MotionLoader(str(tmp_path / "walk.npz"), torch.arange(30))
    assert read.joint_pos.shape[1] == 29
    assert read.body_pos_w.shape[1:] == (30, 3)


def test_where_the_links_are_is_what_mujoco_says() -> None:
    mujoco = pytest.importorskip("mujoco", reason="mujoco is not installed: extra physics")
    body = compile_body(G1_29, G1, np.zeros(len(G1.joints)), free=True, payload_kg=0.0)
    model, data = body.model, body.data
    track = whole_body(400, fps=200.0)
    assert track.root is not None
    world = compute_link_poses(track, track.root, G1_29)
    places = [model.joint(name).qposadr[0] for name in track.names]
    numbers = [model.body(name).id for name in world.names]
    lines, turns = (
        compute_speeds(world.position_m, 1 / 200),
        compute_angular_velocities(world.quaternion_wxyz, 1 / 200),
    )
    joints = compute_speeds(track.joints_rad.T, 1 / 200)
    for sample in range(1, 400, 57):
        turn = track.root.quaternion_wxyz[sample]
        data.qpos[:3], data.qpos[3:7] = track.root.position_m[sample], turn
        data.qpos[places] = track.joints_rad[sample]
        matrix = np.zeros(9)
        mujoco.mju_quat2Mat(matrix, turn)
        data.qvel[:3] = lines[:, 0, sample]
        data.qvel[3:6] = matrix.reshape(3, 3).T @ turns[:, 0, sample]
        data.qvel[[place - 1 for place in places]] = joints[:, sample]
        mujoco.mj_forward(model, data)
        assert np.abs(data.xpos[numbers] - world.position_m[:, :, sample].T).max() < 1e-6
        same = (data.xquat[numbers] * world.quaternion_wxyz[:, :, sample].T).sum(axis=1)
        assert np.abs(np.abs(same) - 1.0).max() < 1e-9
        for place, number in enumerate(numbers):
            speed = np.zeros(6)
            kind = mujoco.mjtObj.mjOBJ_XBODY
            mujoco.mj_objectVelocity(model, data, kind, number, speed, 0)
            assert np.abs(speed[:3] - turns[:, place, sample]).max() < 1e-3
            assert np.abs(speed[3:] - lines[:, place, sample]).max() < 1e-3


def test_isaacs_order_is_that_of_the_tree_and_of_the_permutation_that_others_publish() -> None:
    places = [0, 3, 6, 9, 13, 17, 1, 4, 7, 10, 14, 18, 2, 5, 8, 11, 15, 19, 21, 23, 25, 27, 12, 16,
              20, 22, 24, 26, 28]  # fmt: skip
    assert [list_joints_breadth_first()[place] for place in places] == list(G1_29.names)


# ---- two readings -------------------------------------------------------------------------------


def test_a_csv_that_could_be_read_both_ways_is_refused_with_both(tmp_path: Path) -> None:
    path = tmp_path / "forward.csv"
    path.write_bytes(unitree_csv(whole_body(facing_rad=0.0)))
    with pytest.raises(BadRequestError) as refused:
        import_motion(path)
    assert "xyzw" in str(refused.value)
    assert "wxyz" in str(refused.value)
    assert "kimodo" in str(refused.value.remedy)
    assert import_motion(path, "unitree-csv").format == "unitree-csv"


def test_a_csv_that_stands_on_its_head_as_named_is_refused_until_the_order_is_said(
    tmp_path: Path,
) -> None:
    path = tmp_path / "walk.csv"
    path.write_bytes(kimodo(whole_body(facing_rad=0.3)))
    with pytest.raises(BadRequestError, match="read as wxyz the base is tilted 0 degrees"):
        import_motion(path, "unitree-csv")
    found = import_motion(path, "unitree-csv", quat="wxyz").track
    assert found.root is not None
    assert found.root.tilt_rad.max() < 1e-6
    forced = import_motion(path, "unitree-csv", quat="xyzw").track
    assert forced.root is not None
    assert forced.root.tilt_rad.max() > 2.0


def test_an_npz_in_the_other_order_is_refused_and_says_which_it_is(tmp_path: Path) -> None:
    path = tmp_path / "isaac.npz"
    path.write_bytes(beyondmimic(whole_body()))
    with pytest.raises(BadRequestError) as refused:
        import_motion(path, "mjlab")
    assert "mm off" in str(refused.value)
    assert "beyondmimic" in str(refused.value.remedy)


def test_an_npz_in_which_nothing_moves_is_refused_unless_it_is_named(tmp_path: Path) -> None:
    track = whole_body()
    still = replace(track, joints_rad=np.zeros_like(track.joints_rad))
    path = written(tmp_path, "mjlab", still)
    with pytest.raises(BadRequestError, match="mjlab or BeyondMimic"):
        import_motion(path)
    assert import_motion(path, "beyondmimic").track.names == list_joints_breadth_first()


def test_a_rate_that_the_file_does_not_state_is_said_to_be_assumed(tmp_path: Path) -> None:
    path = written(tmp_path, "unitree-csv", whole_body())
    assumed = import_motion(path, "unitree-csv")
    assert any("rate" in str(note.message) for note in assumed.notes)
    stated = import_motion(path, "unitree-csv", fps=60)
    assert not stated.notes
    assert stated.track.rate_hz == pytest.approx(60)
    with pytest.raises(BadRequestError, match="states 30 frames"):
        import_motion(written(tmp_path, "gmr", whole_body()), "gmr", fps=50)


def test_the_upper_body_alone_comes_in_and_the_rest_is_named(tmp_path: Path) -> None:
    found = import_motion(written(tmp_path, "gmr", whole_body()), "gmr", upper_body=True)
    assert found.track.names == G1_29.names[15:]
    assert found.left_out == G1_29.names[:15]


def test_a_csv_of_23_joints_is_a_g1_of_23_joints(tmp_path: Path) -> None:
    track = whole_body()
    columns = track.columns_of(G1_23.names)
    small = replace(
        track, joints_rad=track.joints_rad[:, columns], names=G1_23.names, variant=G1_23.name
    )
    (tmp_path / "small.csv").write_bytes(unitree_csv(small))
    assert import_motion(tmp_path / "small.csv", "unitree-csv").track.variant == "g1-23"


def test_whose_motion_it_is_stays_with_it(tmp_path: Path) -> None:
    path = written(tmp_path, "gmr", whole_body())
    track = import_motion(path, licence="CC BY-NC-ND 4.0", address="example.org").track
    save(track.smooth().speed(0.5), tmp_path / "edited.npz")
    origin = load(tmp_path / "edited.npz").origin
    assert origin is not None
    assert (origin.format, origin.file) == ("gmr", "gmr.pkl")
    assert (origin.licence, origin.address) == ("CC BY-NC-ND 4.0", "example.org")


# ---- pickles ------------------------------------------------------------------------------------


class _Runs:
    """An object whose pickle would run a command."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch /tmp/rote-was-here",)


@pytest.mark.parametrize("protocol", range(6))
def test_a_pickle_is_read_whatever_its_protocol(protocol: int, tmp_path: Path) -> None:
    path = tmp_path / "motion.pkl"
    path.write_bytes(gmr(whole_body(), protocol))
    assert len(import_motion(path, "gmr").track) == 90


@pytest.mark.parametrize("protocol", range(6))
def test_a_pickle_that_would_run_something_is_refused_and_runs_nothing(
    protocol: int, tmp_path: Path
) -> None:
    path, proof = tmp_path / "motion.pkl", Path("/tmp/rote-was-here")
    path.write_bytes(pickle.dumps({"fps": 30, "dof_pos": _Runs()}, protocol=protocol))
    with pytest.raises(BadRequestError, match="system"):
        import_motion(path, "gmr")
    assert not proof.exists()


def test_a_pickle_of_lists_of_numbers_is_read_too(tmp_path: Path) -> None:
    track = whole_body()
    assert track.root is not None
    motion = {
        "fps": 30.0,
        "root_pos": track.root.position_m.tolist(),
        "root_rot": list(np.array(track.root.quaternion_wxyz[:, [1, 2, 3, 0]])),
        "dof_pos": track.joints_rad.tolist(),
    }
    (tmp_path / "lists.pkl").write_bytes(pickle.dumps(motion))
    found = import_motion(tmp_path / "lists.pkl", "gmr").track
    assert np.array_equal(found.joints_rad, track.joints_rad)


def test_a_pickle_that_would_fill_the_memory_is_refused() -> None:
    # One text, made into bytes again and again.
    text, again = b"a" * 10_000, b"h\x01h\x00X\x06\x00\x00\x00latin1\x86R"
    head = b"\x80\x02X" + struct.pack("<I", len(text)) + text + b"q\x00c_codecs\nencode\nq\x01"
    assert read_plain(head + again + b".") == text
    with pytest.raises(DecodeError, match="more bytes than the file"):
        read_plain(head + 1000 * again + b".")
    # One dictionary, copied again and again.
    copied = b"\x80\x02ccollections\nOrderedDict\n}\x85R."
    with pytest.raises(DecodeError):
        read_plain(copied)


def test_what_many_entries_of_a_pickle_share_is_shared_when_it_is_read() -> None:
    row = [0.5] * 1000
    found = read_plain(pickle.dumps({str(number): row for number in range(1000)}))
    assert found["0"] == row
    assert found["0"] is found["999"]


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("alignment", [None, 16])
def test_a_joblib_file_holds_the_arrays_that_were_written(
    protocol: int, alignment: int | None
) -> None:
    wanted: dict[str, dict[str, Any]] = {
        "one": {
            "rows": np.arange(12.0).reshape(4, 3),
            "columns": np.asfortranarray(np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)),
            "whole": np.arange(-3, 3, dtype=np.int64),
            "big end first": np.arange(5, dtype=">f4"),
            "flags": np.array([True, False]),
            "none": np.zeros((0, 3)),
            "single": np.array(2.5),
            "scalar": np.float32(1.5),
            "text": "behind all of them",
        }
    }
    found = read_plain(joblib_bytes(wanted, protocol, alignment))
    assert list(found["one"]) == list(wanted["one"])
    for name, value in wanted["one"].items():
        assert np.array_equal(found["one"][name], value), name
        assert np.shape(found["one"][name]) == np.shape(value), name


@pytest.mark.parametrize(
    "pack", [zlib.compress, gzip.compress, bz2.compress, lzma.compress, "lzma alone"]
)
def test_a_compressed_joblib_file_is_recognised_and_read(
    pack: Callable[[bytes], bytes] | str, tmp_path: Path
) -> None:
    data, path = asap(whole_body()), tmp_path / "dance.pkl"
    if callable(pack):
        path.write_bytes(pack(data))
    else:
        path.write_bytes(lzma.compress(data, format=lzma.FORMAT_ALONE))
    found = import_motion(path)
    assert found.format == "asap"
    assert np.array_equal(found.track.joints_rad, whole_body().joints_rad)


def test_a_joblib_file_that_unpacks_to_more_than_is_read_is_refused() -> None:
    with pytest.raises(DecodeError, match="unpacks to more than 64 MB"):
        read_plain(zlib.compress(bytes(65 << 20)))
    with pytest.raises(DecodeError, match="lz4"):
        read_plain(b"\x04\x22\x4d\x18" + bytes(20))
    with pytest.raises(DecodeError, match="cannot be unpacked with bz2"):
        read_plain(b"BZh9" + bytes(20))


def test_a_joblib_file_cut_anywhere_is_refused() -> None:
    data = joblib_bytes({"one": {"dof": np.arange(6.0), "fps": 30}})
    read_plain(data)
    for length in range(len(data)):
        with pytest.raises(DecodeError):
            read_plain(data[:length])


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\x80\x02cjoblib.numpy_pickle\nNumpyArrayWrapper\nK\x01\x85\x81.", "not an array"),
        (b"\x80\x02cjoblib.numpy_pickle\nNumpyArrayWrapper\n)R.", "calls something"),
        (b"\x80\x02cjoblib.numpy_pickle\nNumpyArrayWrapper\n)\x81}b.", "not a complete pickle"),
        (b"\x80\x02cnumpy\nndarray\n)\x81.", "not an array"),
        (b"\x80\x02cjoblib.numpy_pickle\nNDArrayWrapper\n)\x81.", "NDArrayWrapper"),
        (b"\x80\x02]}b.", "changes something"),
        (b"\x80\x02cos\nsystem\n.", "os.system"),
        (b"\x80\x02(ios\nsystem\n.", "could run code"),
        (b"\x01", "not an instruction"),
        (b"\x80\x05\x96" + (2**40).to_bytes(8, "little") + b"x.", "ends in the middle"),
        (b"\x80\x02" + b"N0" * 1_000_001 + b"N.", "more than 2,000,000 instructions"),
    ],
)
def test_a_pickle_that_does_more_than_build_arrays_is_refused(data: bytes, said: str) -> None:
    with pytest.raises(DecodeError, match=said):
        read_plain(data)


def test_a_joblib_file_with_an_array_of_objects_is_refused(tmp_path: Path) -> None:
    class _Objects:
        def __reduce__(self) -> tuple[object, tuple[str, bool, bool]]:
            return np.dtype, ("O8", False, True)

    wrapper = b"\x80\x02cjoblib.numpy_pickle\nNumpyArrayWrapper\n)\x81"
    state = pickle.dumps({"dtype": _Objects(), "shape": (1,), "order": "C"}, protocol=2)[2:-1]
    with pytest.raises(DecodeError, match="'O8', not of numbers"):
        read_plain(wrapper + state + b"b" + pickle.dumps(_Runs(), protocol=2) + b".")


def test_the_23_joints_of_asap_are_those_of_a_robot_without_wrists(tmp_path: Path) -> None:
    names = tuple(name for name in G1_29.names if "wrist" not in name)
    whole = whole_body()
    track = replace(whole, joints_rad=whole.joints_rad[:, whole.columns_of(names)], names=names)
    path = tmp_path / "dance.pkl"
    path.write_bytes(asap(track))
    found = import_motion(path)
    assert found.format == "asap"
    assert found.track.names == names
    assert np.array_equal(found.track.joints_rad, track.joints_rad)
    assert found.track.rate_hz == pytest.approx(30.0)
    # The joints of a G1 that is built with 23 joints turn about other axes.
    path.write_bytes(asap(replace(track, names=G1_23.names)))
    with pytest.raises(BadRequestError, match="waist_roll_joint about another axis"):
        import_motion(path)


def test_angles_of_asap_may_have_a_third_axis(tmp_path: Path) -> None:
    motion = asap_motion(whole_body())
    motion["dof"] = motion["dof"][:, :, None]
    (tmp_path / "dance.pkl").write_bytes(joblib_bytes({"dance": motion}))
    found = import_motion(tmp_path / "dance.pkl").track
    assert np.array_equal(found.joints_rad, whole_body().joints_rad)


def test_a_file_of_several_motions_is_refused_with_their_names(tmp_path: Path) -> None:
    motion = asap_motion(whole_body(10))
    (tmp_path / "all.pkl").write_bytes(joblib_bytes({"walk": motion, "jump": motion}))
    with pytest.raises(BadRequestError, match="2 motions: walk, jump"):
        import_motion(tmp_path / "all.pkl")


@pytest.mark.parametrize(
    ("held", "mounted_first"),
    [
        ("local_rot_mats", True),
        ("local_rot_mats", False),
        ("global_rot_mats", True),
        ("both", True),
    ],
)
def test_rotations_of_bones_are_read_as_angles(
    held: str, mounted_first: bool, tmp_path: Path
) -> None:
    track = whole_body()
    arrays = kimodo_bones(track, mounted_first=mounted_first)
    for name in ("local_rot_mats", "global_rot_mats"):
        if held not in {name, "both"}:
            del arrays[name]
    np.savez(tmp_path / "motion.npz", **arrays)
    found = import_motion(tmp_path / "motion.npz")
    assert found.format == "kimodo-npz"
    assert np.abs(found.track.joints_rad - track.joints_rad).max() < 1e-6
    assert not any("no joint can" in note.message for note in found.notes)
    assert any("30 frames a second" in note.message for note in found.notes)


def test_a_rotation_that_no_joint_can_make_is_left_out_with_a_note(tmp_path: Path) -> None:
    track = whole_body()
    arrays = kimodo_bones(track)
    c, s = np.cos(0.3), np.sin(0.3)
    # The left elbow turns about y, which is x in the file; this turns it about z, there y.
    arrays["local_rot_mats"][:, 21] @= np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])
    np.savez(tmp_path / "motion.npz", **arrays)
    found = import_motion(tmp_path / "motion.npz")
    assert any("left_elbow_joint by up to 0.30 rad" in note.message for note in found.notes)
    column = track.names.index("left_elbow_joint")
    assert np.abs(found.track.joints_rad - track.joints_rad)[:, column].max() < 1e-6


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda a: a | {"local_rot_mats": np.zeros((4, 77, 3, 3))}, "person: 77 bones of SOMA"),
        (lambda a: a | {"local_rot_mats": np.zeros((4, 5, 3, 3))}, "not \\(n, 34, 3, 3\\)"),
        (lambda a: a | {"local_rot_mats": 1.1 * a["local_rot_mats"]}, "not rotations in sample 1"),
        (lambda a: a | {"local_rot_mats": -a["local_rot_mats"]}, "not rotations"),
        (lambda a: a | {"root_positions": a["root_positions"][1:]}, "root_positions are of shape"),
        (lambda a: a | {"root_positions": np.nan * a["root_positions"]}, "not numbers in sample 1"),
    ],
)
def test_bones_that_cannot_be_those_of_a_g1_are_refused(
    change: Callable[[dict[str, Any]], dict[str, Any]], said: str, tmp_path: Path
) -> None:
    np.savez(tmp_path / "motion.npz", **change(kimodo_bones(whole_body(4))))
    with pytest.raises(BadRequestError, match=said):
        import_motion(tmp_path / "motion.npz")


def test_an_npz_with_more_links_than_any_robot_is_refused(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "links.npz",
        joint_pos=np.zeros((2, 29)),
        body_pos_w=np.zeros((2, 1000, 3)),
        body_quat_w=np.tile([1.0, 0.0, 0.0, 0.0], (2, 1000, 1)),
        fps=np.array([50.0]),
    )
    with pytest.raises(BadRequestError, match="of shape"):
        import_motion(tmp_path / "links.npz", "mjlab")


# ---- what cannot be used ------------------------------------------------------------------------


def test_a_seq_is_read_as_the_yaml_that_another_library_writes(tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    track = whole_body()
    frames = track.joints_rad[:, 15:].tolist()
    parts = [
        {"type": "MultiSE3Seq", "content": "MultiLinkPositionSeq", "frames": [[0.0, 1.0]]},
        {"type": "MultiValueSeq", "content": "MultiJointDisplacementSeq", "frames": frames},
    ]
    document = {"type": "CompositeSeq", "frameRate": 30, "components": parts}
    for flow in (None, False):
        text = yaml.safe_dump(document, default_flow_style=flow, sort_keys=False)
        (tmp_path / "motion.seq").write_text(text)
        found = import_motion(tmp_path / "motion.seq", "seq").track
        assert np.array_equal(found.joints_rad, track.joints_rad[:, 15:])
    assert yaml.safe_load(seq(track).decode())["components"][1]["frames"] == frames


@pytest.mark.parametrize("name", ["unitree-csv", None])
def test_quaternions_a_little_off_length_1_are_normalised_with_a_note(
    name: str | None, tmp_path: Path
) -> None:
    track = whole_body()
    path = written(tmp_path, "unitree-csv", track)
    table = np.loadtxt(path, delimiter=",")
    table[10:20, 3:7] *= 0.98
    np.savetxt(path, table, delimiter=",", fmt="%.17g")
    found = import_motion(path, name)
    assert found.track.root is not None
    assert track.root is not None
    turned = found.track.root.quaternion_wxyz - track.root.quaternion_wxyz
    assert np.abs(turned).max() < 1e-9
    assert any("0.02 from length 1" in note.message for note in found.notes)
    table[10:20, 3:7] *= 0.5
    np.savetxt(path, table, delimiter=",", fmt="%.17g")
    with pytest.raises(BadRequestError, match="length 1"):
        import_motion(path, "unitree-csv")


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("unitree-csv", b"", "no numbers"),
        ("unitree-csv", b"1,2,3\n", "3 numbers"),
        ("unitree-csv", b"\n".join([b",".join([b"0"] * 36)] * 3), "length 1"),
        ("unitree-csv", b"0," * 35 + b"0\n" + b"0," * 34 + b"0\n", "row 2 has 35 cells"),
        ("unitree-csv", b"0," * 35 + b"0\n" + b"0," * 35 + b"x\n", "row 2, column 36 is 'x'"),
        ("unitree-csv", b"0," * 35 + b"nan\n", "row 1, column 36"),
        ("bones-seed", b"Frame,root_translateX\n1,2\n", "first row"),
        ("mjlab", b"PK\x03\x04", "NPZ"),
        ("gmr", b"\x80\x04N.", "not hold a dictionary"),
        ("gmr", b"\x80\x04}.", "no 'fps'"),
        ("seq", b"components:\n", "no list of components"),
        ("nothing", b"", "there is no format"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_place(
    name: str, data: bytes, said: str, tmp_path: Path
) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    with pytest.raises(BadRequestError, match=said):
        import_motion(path, name)


def test_what_is_no_motion_at_all_is_refused_with_the_names_of_all_formats(tmp_path: Path) -> None:
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    with pytest.raises(BadRequestError) as refused:
        import_motion(tmp_path / "picture.png")
    assert all(name in str(refused.value.remedy) for name in EXCHANGE)


def test_a_format_that_is_only_read_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(BadRequestError, match="can be read, not written"):
        export_motion(whole_body(), tmp_path / "out.pkl", "gmr")
    assert not (tmp_path / "out.pkl").exists()


@pytest.mark.parametrize("named", [None, "gmr"])
def test_a_pickle_whose_quaternions_have_w_first_is_refused_rather_than_turned_over(
    named: str | None, tmp_path: Path
) -> None:
    motion = pickle.loads(gmr(whole_body()))
    motion["root_rot"] = np.tile([1.0, 0.0, 0.0, 0.0], (len(motion["dof_pos"]), 1))
    path = tmp_path / "turned.pkl"
    path.write_bytes(pickle.dumps(motion))
    with pytest.raises(BadRequestError, match="read as xyzw the base is tilted 180 degrees"):
        import_motion(path, named)
    found = import_motion(path, "gmr", quat="wxyz")
    assert found.track.root is not None
    assert found.track.root.tilt_rad.max() < 0.5
