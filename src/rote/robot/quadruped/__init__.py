"""The A1 and the Go1: legs by hand, sport commands, motor loops and their safety limits."""
