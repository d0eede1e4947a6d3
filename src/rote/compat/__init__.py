"""Interfaces of other people's libraries, under their own names."""
