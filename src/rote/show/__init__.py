"""Shows: what several robots, sounds and lights do together, as a file; read, compiled, checked."""
