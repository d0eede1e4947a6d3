"""The factory actions a G1 lists, by their real ids and names.

The motions are this project's own, made from the scripted hands; what the factory's look like is
not public.
"""

from typing import NamedTuple

import numpy as np

from rote.sim.hands import ScriptedHand
from rote.sim.store import StoredAction

RELEASE = 99
_PRESET_S = 4.0


class Preset(NamedTuple):
    """A factory action."""

    id: int
    name: str
    script: str
    """The hand that stands in for the motion."""
    fsm: tuple[int, ...] = ()
    """The only modes it is allowed in, where there are such."""


PRESETS: dict[int, Preset] = {
    preset.id: preset
    for preset in (
        Preset(RELEASE, "release_arm", ""),
        Preset(1, "turn_back_wave", "wave", (500, 501)),
        Preset(11, "blow_kiss_with_both_hands", "clap"),
        Preset(12, "blow_kiss_with_left_hand", "bow"),
        Preset(13, "blow_kiss_with_right_hand", "wave"),
        Preset(15, "both_hands_up", "clap"),
        Preset(17, "clamp", "clap"),
        Preset(18, "high_five", "wave"),
        Preset(19, "hug", "clap"),
        Preset(22, "refuse", "bow"),
        Preset(23, "right_hand_up", "wave"),
        Preset(24, "ultraman_ray", "clap"),
        Preset(25, "wave_under_head", "wave"),
        Preset(26, "wave_above_head", "wave"),
        Preset(27, "shake_hand", "wave"),
        Preset(33, "right_hand_on_heart", "bow"),
        Preset(34, "both_hands_up_deviate_right", "clap"),
    )
}


def motion_of(preset: Preset) -> StoredAction:
    """Return a preset as an action that can be played."""
    return performed(preset.name, preset.script, _PRESET_S)


def performed(name: str, script: str, seconds: float, created_s: int = 0) -> StoredAction:
    """Return what a scripted hand shows, at 100 samples a second, as an action."""
    hand = ScriptedHand(script, seconds)
    times_s = np.arange(round(seconds * 100) + 1) / 100.0
    return StoredAction(
        name=name,
        created_s=created_s,
        duration_ms=round(seconds * 1000),
        times_s=times_s,
        joints_rad=np.array([hand.pose(float(t)) for t in times_s]),
    )
