"""Pictures of tracks, as PNG. Needs the extra `plot`."""

from pathlib import Path

import numpy as np

from rote.errors import MissingExtraError
from rote.motion.track import Track

_PANELS = 6
_TAUGHT, _PLAYED = "#1f6feb", "#e8590c"


def plot_pair(taught: Track, played: Track, path: Path, *, title: str, lag_s: float = 0.0) -> None:
    """Draw the joints that moved most, taught against played, into a PNG file."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - optional
        from matplotlib.figure import Figure  # noqa: PLC0415 - optional
    except ImportError as error:
        raise MissingExtraError("drawing a plot", "plot") from error
    moved = np.argsort(np.ptp(taught.joints_rad, axis=0))[::-1][:_PANELS]
    figure = Figure(figsize=(11, 6.2), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(2, 3, sharex=True).ravel()
    for axis in axes[moved.size :]:
        axis.set_visible(False)
    for axis, joint in zip(axes, sorted(moved), strict=False):
        axis.plot(taught.times_s, taught.joints_rad[:, joint], color=_TAUGHT, lw=4, alpha=0.35)
        axis.plot(played.times_s - lag_s, played.joints_rad[:, joint], color=_PLAYED, lw=1.4)
        axis.set_title(taught.names[joint].removesuffix("_joint").replace("_", " "), fontsize=10)
        axis.grid(alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
        axis.margins(x=0.01)
    for axis in axes[3:]:
        axis.set_xlabel("time, s")
    for axis in axes[::3]:
        axis.set_ylabel("angle, rad")
    lines = [*axes[0].get_lines()]
    figure.legend(lines, ["taught by hand", "played back"], loc="outside lower center", ncols=2)
    figure.suptitle(title, fontsize=12)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
