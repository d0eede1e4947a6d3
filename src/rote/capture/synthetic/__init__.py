"""Captures made to teach and to test with."""
