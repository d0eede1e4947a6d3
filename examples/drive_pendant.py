"""Drive the pendant's API from a script: teach, edit, check, play and stop, as its page does."""

import asyncio
import json
import os
import sys
import tempfile

import httpx
from websockets.asyncio.client import ClientConnection, connect


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
                return dict((await http.post(f"api/{path}", json=body)).raise_for_status().json())

            await ask("teach/start", name="wave")  # the arms are soft from here on
            await ask("teach/hand", script="wave", seconds=2)
            await asyncio.sleep(2)
            print(await ask("teach/finish", save=True))
            print("playable:", (await ask("edit", take="wave", steps=[{"op": "trim_idle"}]))["ok"])
            await ask("play", name="wave", loop=True)
            print(await ask("stop"))
        alive.cancel()


async def main() -> None:
    serve = ["-m", "rote", "web", "--no-browser", "--json", "--port", "0"]
    server = await asyncio.create_subprocess_exec(sys.executable, *serve, stdout=-1)
    assert server.stdout is not None
    await drive(json.loads(await server.stdout.readline())["url"])
    server.terminate()  # it leaves the robot at rest
    await server.wait()


with tempfile.TemporaryDirectory() as os.environ["ROTE_HOME"]:  # not your own robot and library
    asyncio.run(main())
