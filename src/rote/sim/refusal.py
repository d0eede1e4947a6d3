"""How a part of the simulated robot says no; the world turns it into a status."""

from rote.messages import Code


class RefusalError(Exception):
    """The robot will not do that, and `code` says why."""

    def __init__(self, code: Code) -> None:
        super().__init__(code)
        self.code = code
