"""Free ports of this computer."""

import socket


def free_port(host: str = "127.0.0.1") -> int:
    """Return a free TCP port."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port
