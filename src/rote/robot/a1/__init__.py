"""The A1 and Go1 quadrupeds."""
