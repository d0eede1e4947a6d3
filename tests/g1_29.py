"""The G1 with 29 joints as arrays by column, for tests of what is simulated."""

import numpy as np

from rote.model.g1 import G1_29
from rote.sim import body
from rote.sim.arms import Arms
from rote.sim.columns import Columns

_COLUMNS = Columns(G1_29)
REST_RAD = _COLUMNS.rest_rad
LOWER_RAD = _COLUMNS.lower_rad
UPPER_RAD = _COLUMNS.upper_rad
EFFORT_NM = _COLUMNS.effort_nm
MAX_RAD_S = np.minimum(_COLUMNS.velocity_rad_s, body.MAX_RAD_S)
"""How fast a setpoint may move."""
SOFT_RAD_S = _COLUMNS.family.soft_rad_s
arm_weight_nm = Arms(G1_29).gravity_torque_nm
"""What gravity does to 14 joints: the left arm's, then the right arm's."""
