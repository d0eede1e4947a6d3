"""Waits for the triggers of sections."""

import asyncio
import datetime

from rote.stage.conductor import Conductor
from rote.stage.osc_remote import OscRemote
from rote.stage.show.file import Trigger, TriggerKind

_POLL_S = 0.05


async def wait_for_trigger(
    trigger: Trigger, ended_s: float, conductor: Conductor, osc: OscRemote
) -> None:
    """Wait for anything but GO that begins a section; the previous one ended at `ended_s`."""
    if trigger.on is TriggerKind.AFTER:
        due_s = ended_s + trigger.seconds
        await asyncio.sleep(max(0.0, due_s - asyncio.get_running_loop().time()))
    elif trigger.on is TriggerKind.AT:
        await asyncio.sleep(_compute_seconds_until(trigger))
    elif trigger.on is TriggerKind.OSC:
        await osc.wait_for(trigger.address)
    elif trigger.on is TriggerKind.HEARD:
        await _wait_for_word(trigger.word, conductor)


async def _wait_for_word(word: str, conductor: Conductor) -> None:
    """Wait until a robot recognises speech that contains the word."""
    before = {name: state.heard for name, state in conductor.agents.items()}
    while True:
        for name, state in conductor.agents.items():
            new_speech = set(state.heard) - set(before.get(name, ()))
            texts = [entry.partition(" ")[2] for entry in new_speech]  # after the number
            if any(word.lower() in text.lower() for text in texts):
                return
        await asyncio.sleep(_POLL_S)


def _compute_seconds_until(trigger: Trigger) -> float:
    """Return the time until the next occurrence of a time of day, in seconds."""
    now = datetime.datetime.now().astimezone()
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    remaining_s = (midnight - now).total_seconds() + trigger.time_of_day_s
    return remaining_s if remaining_s >= 0.0 else remaining_s + 86400.0
