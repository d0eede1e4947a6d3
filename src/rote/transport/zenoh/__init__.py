"""The Zenoh bus of a stage."""
