"""Clients: asyncio shells around sessions, one for each wire."""
