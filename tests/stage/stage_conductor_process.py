"""A process: a conductor that plays a section whenever it is told to, and says what happens.

python stage_conductor_process.py FOLDER AGENT... ; it reads "play", "stop", "reset", "gather" and
says lines of JSON with the time of this computer's monotonic clock.
"""

import asyncio
import json
import sys
import time
from dataclasses import asdict

from rote.session.stage_events import ConductorEvent
from rote.stage.conductor import SectionError
from rote.stage.demo import check_demo
from rote.stage.show.file import Cast, from_data
from rote.stage.stage import Stage, open_stage


def say(event: str, **more: object) -> None:
    print(json.dumps({"event": event, "s": time.monotonic(), **more}), flush=True)


def look(event: ConductorEvent) -> None:
    facts = {name: value for name, value in asdict(event).items() if name != "reports"}
    say(type(event).__name__, **facts)


async def play(opened: Stage, names: list[str]) -> None:
    clips = [{"role": name, "take": "wave", "to_s": 2.0} for name in names]
    show = from_data(
        {
            "rote_show": 1,
            "roles": {name: {} for name in names},
            "sections": [{"name": "one", "clips": clips}],
        }
    )
    checked = await asyncio.to_thread(check_demo, show)
    say("playing")
    try:
        report = await opened.play(checked, Cast({n: n for n in names}), automatic=True)
    except SectionError as error:
        say("ended", error=str(error))
    else:
        say("ended", error="", report=report.as_json())


async def main(folder: str, names: list[str]) -> None:
    loop = asyncio.get_running_loop()
    async with open_stage(folder) as opened:
        opened.conductor.on_event(look)
        missing = await opened.conductor.wait_for_agents(tuple(names), 60.0)
        say("gathered", missing=missing)
        tasks = set()
        while line := (await loop.run_in_executor(None, sys.stdin.readline)).strip():
            if line == "play":
                tasks.add(loop.create_task(play(opened, names)))
            elif line == "stop":
                answer = await opened.stop("the test")
                say("stopped", confirmed_s=answer.confirmed_s, unconfirmed=answer.unconfirmed)
            elif line == "reset":
                opened.reset()
            elif line == "gather":
                missing = await opened.conductor.wait_for_agents(tuple(names), 60.0)
                say("gathered", missing=missing)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2:]))
