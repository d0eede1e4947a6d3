"""The factory actions that a G1 lists and the taught ones it ships with, by their real names.

The motions are this project's own, made from the scripted hands; those of the factory are not
public.
"""

from typing import NamedTuple

import numpy as np

from rote.messages import ActionEntry
from rote.model.family import Build
from rote.motion.interpolate import minimum_jerk
from rote.sim.columns import DEFAULT_BUILD
from rote.sim.hands import ScriptedHand
from rote.sim.refusal import RefusalError
from rote.sim.store import Store, StoredAction

RELEASE = 99
"""The id of the preset that releases the arms."""
HOLD_S = 20.0
"""Seconds after which a held pose is released."""
_PRESET_S = 3.8
"""Duration of a preset. With the approach to its first pose a wave takes 4.2 s, as on a real robot.
"""
_RISE_S = 2.4
"""Duration of the motion to a held pose."""
_FAMILY = "g1"


class SimPreset(NamedTuple):
    """A factory action."""

    id: int
    name: str
    script: str
    """The scripted hand used for the motion; empty if it is a held pose of `POSES`."""
    fsm: tuple[int, ...] = ()
    """The modes in which it is allowed; empty for all."""
    mode_machine: tuple[int, ...] = ()
    """The hardware that has it, by `mode_machine`; empty for all."""


_WAIST = (5, 6)
"""Hardware with 29 joints, and with 27."""
_AIR = (4,)
"""Hardware with 23 joints."""

PRESETS: dict[int, SimPreset] = {
    preset.id: preset
    for preset in (
        SimPreset(RELEASE, "release_arm", ""),
        SimPreset(1, "turn_back_wave", "wave", (500, 501)),
        SimPreset(11, "blow_kiss_with_both_hands", "clap"),
        SimPreset(12, "blow_kiss_with_left_hand", "bow"),
        SimPreset(13, "blow_kiss_with_right_hand", "wave"),
        SimPreset(15, "both_hands_up", ""),
        SimPreset(17, "clamp", "clap"),
        SimPreset(18, "high_five", "wave"),
        SimPreset(19, "hug", "clap"),
        SimPreset(20, "heart", "", (), _WAIST),
        SimPreset(21, "right_heart", "", (), _WAIST),
        SimPreset(22, "refuse", "bow"),
        SimPreset(23, "right_hand_up", "wave"),
        SimPreset(24, "ultraman_ray", "clap"),
        SimPreset(25, "wave_under_head", "wave"),
        SimPreset(26, "wave_above_head", "wave"),
        SimPreset(27, "shake_hand", "wave"),
        SimPreset(28, "box_left_hand_win", "bow", (), _WAIST),
        SimPreset(29, "box_right_hand_win", "wave", (), _WAIST),
        SimPreset(30, "box_both_hand_win", "clap", (), _WAIST),
        SimPreset(31, "extend_right_arm_forward", "wave", (), _AIR),
        SimPreset(32, "right_hand_on_mouth", "bow", (), _AIR),
        SimPreset(33, "right_hand_on_heart", "bow"),
        SimPreset(34, "both_hands_up_deviate_right", "clap"),
        SimPreset(35, "emphasize", "bow", (), _AIR),
        SimPreset(36, "forward_push", "clap", (), _WAIST),
    )
}
# How a robot spells 20 and 21 is a guess: only their meaning is documented.

# The poses that are held at the end, until they are released, or for `HOLD_S`.
POSES: dict[int, dict[str, float]] = {
    15: {
        "left_shoulder_pitch": -1.8, "right_shoulder_pitch": -1.8,
        "left_shoulder_roll": 0.3, "right_shoulder_roll": -0.3,
        "left_elbow": 0.0, "right_elbow": 0.0,
    },
    20: {
        "left_shoulder_pitch": -1.4, "right_shoulder_pitch": -1.4,
        "left_shoulder_roll": 0.5, "right_shoulder_roll": -0.5,
        "left_shoulder_yaw": -0.6, "right_shoulder_yaw": 0.6,
        "left_elbow": -0.3, "right_elbow": -0.3,
    },
    21: {
        "right_shoulder_pitch": -1.4, "right_shoulder_roll": -0.5,
        "right_shoulder_yaw": 0.6, "right_elbow": -0.3,
    },
}  # fmt: skip


# The four taught actions that a G1 ships with: name, seconds as a G1 lists them, and the script
# that replaces the motion.
_TAUGHT_AT_FACTORY = (
    ("Waist_Drum_Dance", 9.5, "drum"),
    ("Spin_discs", 6.9, "clap"),
    ("Scratch_head", 8.1, "wave"),
    ("Throw_money", 8.1, "bow"),
)
_FACTORY_CREATED_S = 1_704_067_200


def presets_of(build: Build) -> tuple[SimPreset, ...]:
    """Return the factory actions of a build; none for robots other than a G1."""
    if build.family != _FAMILY:
        return ()
    hardware = set(build.machines[:1])  # a simulated robot reports the first
    return tuple(
        preset
        for preset in PRESETS.values()
        if not preset.mode_machine or hardware.intersection(preset.mode_machine)
    )


def motion_of(preset: SimPreset, build: Build) -> StoredAction:
    """Return the motion of a preset as an action; if it is in `POSES`, it ends in that pose."""
    pose = POSES.get(preset.id)
    if pose is None:
        return action_from_script(preset.name, preset.script, _PRESET_S, build)
    rest, end = np.array(build.rest_rad), np.array(build.rest_rad)
    for joint, value in pose.items():
        if (name := f"{joint}_joint") in build.names:
            end[build.names.index(name)] = value
    times_s = np.arange(round(_RISE_S * 100) + 1) / 100.0
    return StoredAction(
        name=preset.name,
        created_s=0,
        duration_ms=round(_RISE_S * 1000),
        times_s=times_s,
        joints_rad=minimum_jerk(rest, end, times_s / _RISE_S),
        names=build.names,
    )


def action_from_script(
    name: str, script: str, seconds: float, build: Build = DEFAULT_BUILD, created_s: int = 0
) -> StoredAction:
    """Return the motion of a scripted hand as an action, at 100 samples per second."""
    hand = ScriptedHand(script, seconds, build)
    times_s = np.arange(round(seconds * 100) + 1) / 100.0
    return StoredAction(
        name=name,
        created_s=created_s,
        duration_ms=round(seconds * 1000),
        times_s=times_s,
        joints_rad=np.array([hand.pose(float(t)) for t in times_s]),
        names=build.names,
    )


def add_factory_actions(store: Store, build: Build = DEFAULT_BUILD) -> tuple[ActionEntry, ...]:
    """Add the factory's taught actions that the store lacks; return those added."""
    existing = {entry.name for entry in store.entries()}
    added = []
    for name, length_s, script in _TAUGHT_AT_FACTORY:
        if name in existing:
            continue
        action = action_from_script(name, script, length_s, build, _FACTORY_CREATED_S)
        try:
            store.save(action)
        except RefusalError:  # the store is full: the user's own actions have priority
            break
        added.append(ActionEntry(name, action.duration_ms))
    return tuple(added)
