"""The error by which a part of the simulated robot refuses; the world turns it into a status."""

from rote.messages import Code


class RefusalError(Exception):
    """The robot will not do that, and `code` says why; `note` adds what only this robot knows."""

    def __init__(self, code: Code, note: str = "") -> None:
        super().__init__(code, note)
        self.code = code
        self.note = note
