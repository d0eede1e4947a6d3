"""The G1's published meshes, link by link; scripts/peers/benchmarks gets them.

They are those of the manufacturer's description (g1_29dof_rev_1_0, BSD-3-Clause), as a public
package has them. They are never committed.
"""

import numpy as np

from benchmarks.peers import PEERS, PeerMissingError
from rote.motion.track import Array

NEEDS, MESHES = PEERS / "contact" / "needs", PEERS / "contact" / "meshes"

_HERE = (0.0, 0.0, 0.0)
# What hangs on a link, and where, unless it is the one mesh that bears the link's name.
_FILES = {
    "pelvis": (("pelvis", _HERE), ("pelvis_contour_link", _HERE)),
    "waist_yaw_link": (("waist_yaw_link_rev_1_0", _HERE),),
    "waist_roll_link": (("waist_roll_link_rev_1_0", _HERE),),
    "torso_link": (("torso_link_rev_1_0", _HERE), ("head_link", (0.0039635, 0.0, -0.044))),
    "left_wrist_yaw_link": (
        ("left_wrist_yaw_link", _HERE),
        ("left_rubber_hand", (0.0415, 0.003, 0.0)),
    ),
    "right_wrist_yaw_link": (
        ("right_wrist_yaw_link", _HERE),
        ("right_rubber_hand", (0.0415, -0.003, 0.0)),
    ),
}
_STL = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("spare", "<u2")])


def require_meshes() -> None:
    """Raise `PeerMissingError` if they are not installed."""
    if not (MESHES / "pelvis.STL").exists():
        raise PeerMissingError(
            f"the meshes are not in {MESHES}; get them with: scripts/peers/benchmarks"
        )


def triangles(link: str) -> Array:
    """Return the triangles of a link's meshes in its frame, (n, 3, 3), in m."""
    return np.concatenate(
        [
            np.fromfile(MESHES / f"{file}.STL", _STL, offset=84)["corners"].astype(float) + at
            for file, at in _FILES.get(link, ((link, _HERE),))
        ]
    )
