"""Show files: read, compiled into one score per robot, and checked. No I/O."""
