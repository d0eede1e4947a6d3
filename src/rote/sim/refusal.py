"""The error by which a part of the simulated robot refuses; the world turns it into a status."""

from rote.messages import Code


class RefusalError(Exception):
    """The robot refuses; `code` says why."""

    def __init__(self, code: Code) -> None:
        super().__init__(code)
        self.code = code
