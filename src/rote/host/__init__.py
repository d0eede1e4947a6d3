"""This computer: its event loop, its timers, its network."""
