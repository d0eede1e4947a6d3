"""Turn the pictures of scripts/media/moving_picture.mjs into one small moving picture."""

import sys
from pathlib import Path

from PIL import Image, ImageChops, ImageStat

SIZE = (880, 613)
QUALITY = 62
MAX_STILL_MS = 2000
"""How long a picture is shown in which nothing changes: nobody wants to watch a page think."""
MAX_BYTES = 1_500_000
_ROBOT = (0.22, 0.13, 0.42, 0.40)
"""Where the robot stands in every picture: left, top, right and bottom as shares of its size."""
_EMPTY = 10.0
"""A picture that differs less there was taken before the robot was drawn."""


def _is_empty(picture: Image.Image) -> bool:
    width, height = picture.size
    left, top, right, bottom = _ROBOT
    box = (int(left * width), int(top * height), int(right * width), int(bottom * height))
    return ImageStat.Stat(picture.crop(box).convert("L")).stddev[0] < _EMPTY


def frames(folder: Path) -> tuple[list[Image.Image], list[int]]:
    """Return the pictures that differ, and how long each is shown in milliseconds."""
    pictures: list[Image.Image] = []
    lengths: list[int] = []
    for path in sorted(folder.glob("*.png")):
        with Image.open(path) as opened:
            picture = opened.convert("RGB").resize(SIZE, Image.Resampling.LANCZOS)
        shown_ms = int(path.stem.partition("-")[2])
        same = pictures and ImageChops.difference(picture, pictures[-1]).getbbox() is None
        if same or (pictures and _is_empty(picture)):
            lengths[-1] += shown_ms
            continue
        pictures.append(picture)
        lengths.append(shown_ms)
    return pictures, [min(length, MAX_STILL_MS) for length in lengths]


def main() -> None:
    """Write the moving picture, and say how big it is."""
    folder, target = Path(sys.argv[1]), Path(sys.argv[2])
    pictures, lengths = frames(folder)
    pictures[0].save(
        target,
        save_all=True,
        append_images=pictures[1:],
        duration=lengths,
        loop=0,
        quality=QUALITY,
        method=6,
        minimize_size=True,
    )
    size = target.stat().st_size
    print(f"{target}: {len(pictures)} pictures, {sum(lengths) / 1000:.1f} s, {size / 1e6:.2f} MB")
    if size > MAX_BYTES:
        sys.exit(f"It is too big: at most {MAX_BYTES / 1e6} MB.")


if __name__ == "__main__":
    main()
