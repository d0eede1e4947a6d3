"""The four taught actions that a G1 ships with, by their real names and lengths.

The motions are this project's own; those of the factory are not public.
"""

from rote.messages import ActionEntry
from rote.model.family import Build
from rote.sim.columns import DEFAULT_BUILD
from rote.sim.presets import action_from_script
from rote.sim.refusal import RefusalError
from rote.sim.store import Store

# name, seconds as a G1 lists them, the script used in its place
_FACTORY = (
    ("Waist_Drum_Dance", 9.5, "drum"),
    ("Spin_discs", 6.9, "clap"),
    ("Scratch_head", 8.1, "wave"),
    ("Throw_money", 8.1, "bow"),
)
_CREATED_S = 1_704_067_200


def add_factory_actions(store: Store, build: Build = DEFAULT_BUILD) -> tuple[ActionEntry, ...]:
    """Add the missing factory actions to the store; return those added."""
    there = {entry.name for entry in store.entries()}
    added = []
    for name, length_s, script in _FACTORY:
        if name in there:
            continue
        action = action_from_script(name, script, length_s, build, _CREATED_S)
        try:
            store.save(action)
        except RefusalError:  # the store is full: the user's own actions have priority
            break
        added.append(ActionEntry(name, action.duration_ms))
    return tuple(added)
