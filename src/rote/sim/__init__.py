"""The simulated robot: the other end of the same wires, with a body, a store and real time."""

EMBEDDED = "sim://g1"
"""The URL of one inside the program that asks for it."""
