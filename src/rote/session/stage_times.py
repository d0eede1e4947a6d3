"""Time limits of a stage that conductors and watchers share."""

AGENT_LOST_S = 1.0
"""An agent whose beat does not change for this many seconds is lost."""
CONFIRM_S = 1.0
"""Agents that have not confirmed a stop after this time are reported."""
