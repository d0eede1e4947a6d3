"""Checks of a track before it may be played: limits, gaps, contact and balance."""
