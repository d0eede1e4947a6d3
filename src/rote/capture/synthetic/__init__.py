"""Captures made for teaching and testing."""
