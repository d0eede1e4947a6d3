"""The least that a program costs which sends 500 datagrams a second: a timer of the event loop.

Shares of a core depend on the machine, mostly on what waking up costs there. So they are compared
with the share that this timer takes in the same run.
"""

import asyncio
import socket
import time

from benchmarks.size import size

RATE_HZ = 500.0
SIZE = 63
SECONDS = size(5.0, 0.3)


async def send_bare(url: str, seconds: float = SECONDS) -> float:
    """Return the share of a core, in percent, for a timer that sends `SIZE` bytes to a URL."""
    loop = asyncio.get_running_loop()
    host, port = url.removeprefix("udp://").split(":")
    transport, _ = await loop.create_datagram_endpoint(
        asyncio.DatagramProtocol, remote_addr=(host, int(port))
    )
    done: asyncio.Future[None] = loop.create_future()
    first_s, sent = loop.time(), 0

    def tick() -> None:
        nonlocal sent
        transport.sendto(bytes(SIZE))
        sent += 1
        if sent < RATE_HZ * seconds:
            loop.call_at(first_s + sent / RATE_HZ, tick)
        else:
            done.set_result(None)

    began_s, cpu_s = time.perf_counter(), time.process_time()
    tick()
    await done
    share = (time.process_time() - cpu_s) / (time.perf_counter() - began_s)
    transport.close()
    return 100.0 * share


async def bare_timer_percent() -> float:
    """Return the share of a core, in percent, for the timer and a socket that reads nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sink:
        sink.bind(("127.0.0.1", 0))
        return await send_bare(f"udp://127.0.0.1:{sink.getsockname()[1]}")
