"""Fixtures all tests share."""

import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Several test processes share two cores: a slow example is the machine's doing, not the code's.
# Half of hypothesis' hundred examples, unless a test says otherwise: they come again every day.
settings.register_profile(
    "rote", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("rote")

# A shell ignores Ctrl-C for what it runs in the background, and programs inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the embedded robot's store, and the user's choice of robot, out of the tests."""
    monkeypatch.setenv("ROTE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("ROTE_ROBOT", raising=False)
