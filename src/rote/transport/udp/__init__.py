"""UDP teaching frames."""
