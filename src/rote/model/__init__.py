"""Robots as frozen data with evidence: one module per family, one registry."""
