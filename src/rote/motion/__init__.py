"""Trajectories: arrays in, arrays out. Only `files` touches the disk."""
