"""The error that parts of the simulated robot raise to refuse a command."""

from rote.messages import Code


class RefusalError(Exception):
    """The robot refuses with `code`; `note` adds details. `World.obey` turns it into a status."""

    def __init__(self, code: Code, note: str = "") -> None:
        super().__init__(code, note)
        self.code = code
        self.note = note
