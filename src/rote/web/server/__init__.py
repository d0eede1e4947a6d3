"""The ASGI application, its server process, and what every response needs."""
