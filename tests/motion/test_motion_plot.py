"""A picture of two tracks, or word of what is missing to draw one."""

import struct
import sys
from pathlib import Path

import numpy as np
import pytest

from rote.errors import MissingExtraError
from rote.model import G1_29
from rote.motion.plot import plot_pair
from rote.motion.track import Track


def moving(size: float) -> Track:
    times_s = np.arange(0.0, 2.0, 0.02)
    joints = np.zeros((times_s.size, 29))
    joints[:, 22:28] = size * np.sin(3 * times_s)[:, None] * np.arange(1, 7)
    return Track(times_s=times_s, joints_rad=joints, names=G1_29.names)


def test_a_plot_is_a_png_of_a_sensible_size_in_a_new_folder(tmp_path: Path) -> None:
    path = tmp_path / "pictures" / "wave.png"
    plot_pair(moving(0.1), moving(0.11), path, title="wave", lag_s=0.02)
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert data[-8:-4] == b"IEND"
    width, height = struct.unpack(">II", data[16:24])
    assert width > height > 400


def test_another_motion_makes_another_picture(tmp_path: Path) -> None:
    first, second = tmp_path / "first.png", tmp_path / "second.png"
    plot_pair(moving(0.1), moving(0.1), first, title="wave")
    plot_pair(moving(0.1), moving(0.2), second, title="wave")
    assert first.read_bytes() != second.read_bytes()


@pytest.mark.parametrize("module", ["matplotlib.figure", "matplotlib.backends.backend_agg"])
def test_without_matplotlib_the_error_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError) as caught:
        plot_pair(moving(0.1), moving(0.1), tmp_path / "wave.png", title="wave")
    assert caught.value.extra == "plot"
    assert "rote[plot]" in caught.value.remedy
    assert list(tmp_path.iterdir()) == []
