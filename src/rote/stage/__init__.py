"""Several robots in one show: conductor, agents, reports, and the show file."""

from pathlib import Path

DEFAULT_FOLDER = Path("stage")
"""The folder of a stage if none is named."""
