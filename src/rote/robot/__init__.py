"""The Python API: robots, takes and playbacks."""
