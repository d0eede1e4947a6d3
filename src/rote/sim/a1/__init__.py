"""A simulated A1 or Go1."""
