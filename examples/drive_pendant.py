"""Drive the pendant's API from a script: teach, edit, check, play and stop, as its page does."""

import asyncio
import json
import sys

import httpx
from websockets.asyncio.client import ClientConnection, connect

SERVE = "-m rote web --no-browser --json --port 0 --robot sim://g1?store=:memory:"


async def stay_alive(live: ClientConnection) -> None:
    while True:  # a commander that is silent for 2.5 s is lost, and the robot stops
        await live.send('{"type": "alive"}')
        await asyncio.sleep(1)


async def drive(address: str) -> None:
    async with connect(address.replace("http:", "ws:") + "api/live", proxy=None) as live:
        headers = {"X-Rote-Client": json.loads(await live.recv())["client"]}
        while json.loads(await live.recv()).get("type") != "state":
            pass  # the robot is connected when it says where its joints are
        alive = asyncio.create_task(stay_alive(live))
        async with httpx.AsyncClient(base_url=address, headers=headers, timeout=30) as http:

            async def ask(path: str, **body: object) -> dict[str, object]:
                answer = await http.post(f"api/{path}", json=body)
                return dict(answer.raise_for_status().json())

            await ask("teach/start", name="wave")  # the arms are soft from here on
            await ask("teach/hand", script="wave", seconds=2)
            await asyncio.sleep(2)
            print(await ask("teach/finish", save=True))
            checked = await ask("edit", take="wave", steps=[{"op": "trim_idle"}])
            print("fit to be played:", checked["ok"])
            await ask("play", name="wave", loop=True)
            print(await ask("stop"))
        alive.cancel()


async def main() -> None:
    server = await asyncio.create_subprocess_exec(sys.executable, *SERVE.split(), stdout=-1)
    assert server.stdout is not None
    await drive(json.loads(await server.stdout.readline())["url"])
    server.terminate()  # it leaves the robot at rest
    await server.wait()


asyncio.run(main())
