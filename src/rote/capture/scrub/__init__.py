"""Captures that can be shown to others."""
