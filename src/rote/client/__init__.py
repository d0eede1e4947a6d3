"""Clients: asyncio code around sessions, one for each wire."""
