"""The client of an A1 or a Go1, and the process that sends its commands."""
