"""The web UI: a page that teaches a robot, and the API behind it."""
