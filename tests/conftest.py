"""Fixtures all tests share."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Several test processes share two cores: a slow example is the machine's doing, not the code's.
settings.register_profile("rote", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("rote")


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the embedded robot's store, and the user's choice of robot, out of the tests."""
    monkeypatch.setenv("ROTE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("ROTE_ROBOT", raising=False)
