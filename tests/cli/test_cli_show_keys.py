"""The keyboard of a show: Enter is GO, s is STOP, and the end of the input is neither."""

import asyncio
import os
import pty
import sys
from typing import cast

import pytest

from rote.cli.show import _Keys
from rote.stage.stage import Stage


class _Pressed:
    """A stage that counts what the keyboard asks for."""

    def __init__(self) -> None:
        self.goes = self.stops = 0

    def go(self) -> None:
        self.goes += 1

    async def stop(self, _by: str) -> None:
        self.stops += 1


@pytest.mark.slow
def test_the_end_of_the_input_is_no_go(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        stage, told = _Pressed(), list[str]()
        keyboard, terminal = pty.openpty()
        with os.fdopen(terminal) as stdin:
            monkeypatch.setattr(sys, "stdin", stdin)
            keys = _Keys(cast("Stage", stage), told.append)
            for typed in (b"\x04", b"\n", b"\x04", b"s\n"):
                await asyncio.sleep(0.1)
                os.write(keyboard, typed)
            await asyncio.sleep(0.1)
            assert (stage.goes, stage.stops) == (1, 1)
            os.close(keyboard)
            await asyncio.sleep(0.1)
            keys.close()
        assert (stage.goes, stage.stops) == (1, 1)
        assert told[1:] == ["The keyboard is gone: use `rote show stop` to stop."]

    asyncio.run(story())
