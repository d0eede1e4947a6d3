"""Captured traffic: read it, classify it, and report what can and cannot be known about it."""
