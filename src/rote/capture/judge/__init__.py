"""What it means: flows, names, time lines, and what cannot be known."""
