"""UDP of the A1 and the Go1."""
