"""Trajectories: arrays in, arrays out. Only the room `files`, and a plot, touch the disk."""
