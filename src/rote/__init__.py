"""Teach a Unitree robot a motion by hand and play it back."""
