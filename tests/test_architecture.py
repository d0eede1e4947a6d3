"""The page on architecture names every module, in the words of the module itself."""

import re

import modules

PAGE = modules.PAGE.read_text(encoding="utf-8")


def test_the_list_of_modules_is_the_tree() -> None:
    told = PAGE.partition(modules.BEGIN)[2].partition(modules.END)[0].strip()
    assert told == modules.listed().strip(), "renew it: python scripts/modules.py"


def test_every_room_of_the_picture_is_there() -> None:
    picture = PAGE.partition("```text\nsrc/rote/\n")[2].partition("```")[0]
    rooms = re.findall(r"^  ([a-z0-9_]+(?:/|\.py)) ", picture, re.MULTILINE)
    assert rooms
    there = {path.name for path in modules.SOURCE.glob("*.py")}
    there |= {f"{path.parent.name}/" for path in modules.SOURCE.glob("*/__init__.py")}
    assert set(rooms) == there - {"__init__.py", "__main__.py"}
