"""Bytes to values and back; stateless, no I/O. One module per wire."""
