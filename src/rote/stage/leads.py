"""The limits of a lead: how early a robot's own action or sound is requested."""

from rote.errors import BadRequestError

MAX_LEAD_S = 15.0
SOUND_LEAD = "<sound>"
"""Name of the learned lead of sounds; no action has this name."""


def check_lead(seconds: float | None) -> None:
    """Raise `BadRequestError` for a time that cannot be a lead; None means to measure it."""
    if seconds is not None and not 0.0 <= seconds <= MAX_LEAD_S:
        raise BadRequestError(
            f"a lead of {seconds} s is out of range", f"Choose 0 to {MAX_LEAD_S:g} s."
        )
