"""Motions of other programs come in, and ours go out to theirs."""

import os
import pickle
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from motion.exchange_files import (
    MADE,
    beyondmimic,
    gmr,
    kimodo,
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
from rote.motion.files.exchange.bodies import angular_velocities, bodies, speeds
from rote.motion.files.exchange.contents import breadth_first
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
    world = bodies(track, track.root, G1_29)
    places = [model.joint(name).qposadr[0] for name in track.names]
    numbers = [model.body(name).id for name in world.names]
    lines, turns = (
        speeds(world.position_m, 1 / 200),
        angular_velocities(world.quaternion_wxyz, 1 / 200),
    )
    joints = speeds(track.joints_rad.T, 1 / 200)
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
    assert [breadth_first()[place] for place in places] == list(G1_29.names)


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
    with pytest.raises(BadRequestError, match="mjlab or of BeyondMimic"):
        import_motion(path)
    assert import_motion(path, "beyondmimic").track.names == breadth_first()


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
        ("gmr", b"\x80\x04N.", "no dictionary"),
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
    with pytest.raises(BadRequestError, match="read here, not written"):
        export_motion(whole_body(), tmp_path / "out.pkl", "gmr")
    assert not (tmp_path / "out.pkl").exists()
