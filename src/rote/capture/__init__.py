"""Captured traffic: read it, name it, and say what can and what cannot be known about it."""
