"""Captured traffic: read it, name it, and say what can and what cannot be known of it."""
