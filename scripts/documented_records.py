"""Tells griffe, which reads the sources for the reference, that a `record` is a dataclass.

Then the reference shows the fields of a record as its arguments, as of every other dataclass.
"""

from typing import Any

from griffe import Class, ExprCall, ExprName, Extension

_RECORD, _DATACLASS = "rote.record.record", "dataclasses.dataclass"


class DocumentedRecords(Extension):
    """Run by mkdocs.yml on every class that was read."""

    def on_class_instance(self, *, cls: Class, **_: Any) -> None:
        """Replace the decorator."""
        for decorator in cls.decorators:
            value = decorator.value
            if getattr(value, "canonical_path", "") != _RECORD:
                continue
            if isinstance(value, ExprCall):
                value.function = ExprName(_DATACLASS)
            else:
                decorator.value = ExprName(_DATACLASS)
