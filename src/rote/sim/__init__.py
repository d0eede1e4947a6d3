"""The simulated robot: the other end of the same wires, with a body, a store and real time."""
