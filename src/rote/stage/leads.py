"""Leads: how early a robot's own action or sound is requested, measured or set by a person."""

import json
import logging
import threading
from pathlib import Path

from rote.errors import BadRequestError, RoteError
from rote.platform.atomic_file import appearing

log = logging.getLogger("rote")

MAX_LEAD_S = 15.0
_MAX_ENTRIES, _MAX_NAME = 32, 120
"""Maximum number of leads that are published, and maximum length of a name."""
SOUND_LEAD = "<sound>"
"""Name of the learned lead of sounds; no action has this name."""


def check_lead(seconds: float | None) -> None:
    """Raise `BadRequestError` for a time that cannot be a lead; None means to measure it."""
    if seconds is not None and not 0.0 <= seconds <= MAX_LEAD_S:
        raise BadRequestError(
            f"a lead of {seconds} s is out of range", f"Choose 0 to {MAX_LEAD_S:g} s."
        )


class LearnedLeads:
    """The time from the request of a stored action, or sound, to its beginning, by name.

    It is measured at each playback and saved to disk, so that a rehearsal's values survive a
    restart.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._saving = threading.Lock()
        self._changed = False
        self.fault = ""
        """Why the last save failed; "" if it did not."""
        self.leads_s: dict[str, float] = {}
        self._set_by_person: set[str] = set()
        try:
            document = json.loads(file.read_text("utf-8"))
            for name, lead_s in document["leads_s"].items():
                self.learn(str(name), float(lead_s))
            self._set_by_person = {str(name) for name in document.get("set", ())}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            self.leads_s, self._set_by_person = {}, set()  # they are learned again
        self._changed = False

    def learn(self, name: str, lead_s: float) -> None:
        """Store a measured lead in seconds; an implausible one is ignored, and one that a person
        has set stays.
        """
        if 0.0 <= lead_s <= MAX_LEAD_S and name not in self._set_by_person:
            self.leads_s[name] = lead_s
            self._changed = True

    def change(self, name: str, lead_s: float | None) -> None:
        """Set a lead by hand; with None forget it, so that it is measured again."""
        self._set_by_person.discard(name)
        if lead_s is None:
            self._changed = self.leads_s.pop(name, None) is not None or self._changed
        elif 0.0 <= lead_s <= MAX_LEAD_S:
            self.learn(name, lead_s)
            self._set_by_person.add(name)

    @property
    def entries(self) -> tuple[tuple[str, float, bool], ...]:
        """Each name with its lead, and whether a person has set it."""
        found = sorted(self.leads_s.items())[:_MAX_ENTRIES]
        return tuple(
            (name[:_MAX_NAME], round(lead_s, 3), name in self._set_by_person)
            for name, lead_s in found
        )

    def _encode(self) -> bytes:
        document = {"leads_s": dict(self.leads_s), "set": sorted(self._set_by_person)}
        return json.dumps(document, indent=1).encode()

    def save(self) -> None:
        """Write changed leads to disk; if that fails, `fault` has the reason."""
        with self._saving:
            if not self._changed:
                return
            self._changed = False  # before reading them: one learned meanwhile is saved next time
            try:
                self._file.parent.mkdir(parents=True, exist_ok=True)
                with appearing(self._file) as file:
                    file.write(self._encode())
            except (OSError, RoteError) as error:
                reason = getattr(error.__cause__ or error, "strerror", None) or error
                self._changed, self.fault = True, f"the agent cannot write to its disk: {reason}"
                log.warning("the learned delays of the robot are not saved: %s", error)
            else:
                self.fault = ""
