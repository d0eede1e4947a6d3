"""The meaning of a capture: flows, names, time lines, and what cannot be known."""
