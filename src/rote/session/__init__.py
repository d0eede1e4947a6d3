"""Sessions: state machines without I/O or clock, in the roles CLIENT and ROBOT."""
