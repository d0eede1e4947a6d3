"""Recognition of the machine from what it reports; never guessed.

A robot reports its `mode_machine` with its joints, and the id of its controller's mode. An id that
only one family has decides first, because other families send the same messages as a G1 and some of
them use the same numbers for other hardware. Then `mode_machine` decides. A serial number with the
prefix of other robots makes the answer uncertain; it never decides, because serials of a G1 and an
R1 begin alike. A person may name the build (`?build=NAME`). If the robot contradicts it, the named
build is kept with a note, and nothing is streamed.
"""

from collections.abc import Collection
from typing import NamedTuple

from rote.model.family import Build, Family, numbered_build
from rote.model.g1 import G1
from rote.model.registry import families, family_of, names
from rote.text import Act, Text

UNKNOWN_FAMILIES = {601: "H2"}
"""Mode ids that identify families which rote has no data about."""
UNKNOWN_SERIALS = {"B": "Go2"}
"""Serial prefixes of families which rote has no data about."""
_SEND_US = Text(
    "Send us what it reports ({status}), the name on its plate and its software's version, "
    "so that rote learns this machine.",
    status=Act.STATUS,
)


class Recognised(NamedTuple):
    """What a machine was recognised as."""

    build: Build
    note: str = ""
    """Why it is not known, or what contradicts what; empty if all is clear."""
    certain: bool = True
    """Whether the robot itself reported it, and nothing contradicts it."""


def recognise(
    machine: int, mode: int, slots: int, table: Collection[Family] | None = None
) -> Recognised:
    """Recognise a machine by its `mode_machine`, its mode and the number of its motor slots.

    `machine` is 0 and `mode` -1 if they are not reported. `table` defaults to the registry's.
    """
    if not _is_usual(mode):
        for family in _all_families(table):
            if mode in family.modes.distinctive:
                return _recognise_in_family(family, machine, mode)
        if mode in UNKNOWN_FAMILIES:
            note = f"mode {mode} is one of an {UNKNOWN_FAMILIES[mode]}, which rote does not know"
            return Recognised(numbered_build(slots, machine), note, certain=False)
    if not machine:
        note = "it does not report its mode_machine"
        return Recognised(numbered_build(slots, machine), note, certain=False)
    build = G1.of_machine(machine) or next(
        (
            found
            for family in _all_families(table)
            if (found := family.of_machine(machine)) is not None
        ),
        None,
    )
    if build is not None:
        return Recognised(build)
    note = f"rote does not know mode_machine {machine}"
    return Recognised(numbered_build(slots, machine), note, certain=False)


def is_distinctive(mode: int) -> bool:
    """Whether only one family uses this mode id."""
    return not _is_usual(mode) and (
        mode in UNKNOWN_FAMILIES or any(mode in f.modes.distinctive for f in families())
    )


def _is_usual(mode: int) -> bool:
    """Whether a G1 uses this mode too; then families of other packages need not be loaded."""
    return mode == -1 or G1.modes.find(mode) is not None


def _all_families(table: Collection[Family] | None) -> Collection[Family]:
    return families() if table is None else table


def _recognise_in_family(family: Family, machine: int, mode: int) -> Recognised:
    build = family.of_machine(machine)
    if build is not None:
        return Recognised(build)
    note = (
        f"mode {mode} is one of a {family.title}; which build, mode_machine {machine} does not "
        f"tell, so it is taken for {family.default.name}"
    )
    return Recognised(family.default, note, certain=len(family.builds) == 1)


class Identity:
    """What is known about the machine so far. It changes with what the robot reports."""

    def __init__(self, named_build: Build | None = None, serial: str = "") -> None:
        """Begin with the build that a person named, and with the robot's serial number if known."""
        self.serial = serial
        self.named_build = named_build
        """The build that a person named."""
        self.build = named_build or G1.default
        """Before the first report: the named build, or the default G1."""
        self.recognised = False
        """Whether the robot has reported which machine it is, and rote knows it."""
        self.note = ""
        """A contradiction or a doubt, as text; empty if there is none."""
        self.missing: tuple[str, ...] = ()
        """The joints of the build whose positions the robot does not report."""
        self.machine = 0
        self._mode = -1
        self._slots = 0
        self._has_reported = False
        self._agreed = False

    def on_mode(self, mode: int) -> bool:
        """Process the controller's mode; return whether this changed the build."""
        if mode == self._mode or (is_distinctive(self._mode) and not is_distinctive(mode)):
            return False  # a mode that only one family has stays decisive when a common one follows
        self._mode = mode
        return self._has_reported and self._update_build()

    def on_motors(self, machine: int, slots: int) -> bool:
        """Process the head of a motor message; return whether this changed the build."""
        if self._has_reported and machine == self.machine and slots == self._slots:
            return False
        self._has_reported, self.machine, self._slots = True, machine, slots
        return self._update_build()

    def on_missing_columns(self, columns: tuple[int, ...]) -> None:
        """Process which columns have no position."""
        self.missing = tuple(self.build.names[column] for column in columns)

    def _update_build(self) -> bool:
        before = self.build
        found = recognise(self.machine, self._mode, self._slots)
        if self.named_build is None:
            self.build, self.note, self._agreed = self._doubt_by_serial(found)
            self.recognised = found.build.known
        else:
            self.build = self.named_build.at(self.machine)
            self.note = self._find_contradiction(found)
            self._agreed = not self.note
            self.recognised = True
        if _is_same_build(before, self.build):
            self.build = before  # keep the object: callers have prepared data for it
        return self.build is not before

    def _doubt_by_serial(self, found: Recognised) -> Recognised:
        """Return the result, marked uncertain if the serial belongs to another family."""
        family = family_of(found.build)
        own = () if family is None else family.serials
        others = dict(UNKNOWN_SERIALS)
        for other in families() if self.serial else ():
            others.update({start: other.title for start in other.serials if start not in own})
        whose = next((name for start, name in others.items() if self.serial.startswith(start)), "")
        if not whose or not found.build.known:
            return found
        doubt = f"its serial begins like one of a {whose}"
        return Recognised(found.build, "; ".join(filter(None, (found.note, doubt))), certain=False)

    def _find_contradiction(self, found: Recognised) -> str:
        """Return how the robot contradicts the named build; "" if it does not."""
        assert self.named_build is not None
        theirs = found.build
        if not theirs.known or (
            theirs.family == self.named_build.family and theirs.names == self.named_build.names
        ):
            return ""
        return (
            f"the robot reports that it is {theirs.name} with {len(theirs.names)} joints "
            f"(mode_machine {self.machine}), and was named {self.named_build.name} with "
            f"{len(self.named_build.names)}"
        )

    # ---- what may be done with it ---------------------------------------------------------------

    def stream_problem(self) -> tuple[str, str] | None:
        """Return why nothing may be streamed to it, and what to do; None if it may."""
        if not self._has_reported or not self.recognised:
            return self._unknown_machine_problem(
                "nothing is streamed to a machine that rote does not know"
            )
        if why := self._why_no_stream():
            return f"nothing is streamed to this robot: {why}", _SEND_US
        if not self._agreed:
            return f"nothing is streamed: {self.note}", "Leave out ?build=, or name the right one."
        return None

    def _why_no_stream(self) -> str:
        build, stream = self.build, self.build.stream
        if stream is None:
            return build.no_stream or f"rote does not know how to stream to {build.name}"
        if build.machines and self.machine not in build.machines:
            known = ", ".join(map(str, build.machines))
            return f"its mode_machine is {self.machine}, and {build.name} has {known}"
        if stream.weight_slot in build.slots:
            return f"{build.name} has a joint where its stream's weight belongs"
        lacking = [name for name in build.streamed if name in self.missing]
        return f"it does not report {lacking[0]}" if lacking else ""

    def mode_problem(self) -> tuple[str, str] | None:
        """Return why rote does not change its mode, and what to do; None if it may."""
        if self.recognised or self.named_build is not None:
            return None
        return self._unknown_machine_problem(
            "a machine that rote does not know is not put into another mode"
        )

    def _unknown_machine_problem(self, message: str) -> tuple[str, str]:
        why = self.note if self._has_reported else "it has not reported its joints"
        return (
            f"{message}: {why}",
            Text(
                "This is rote's own caution; the robot was not asked. If you know what it is, name "
                "its build, {name_build} ({builds}). {send_us}",
                name_build=Act.NAME_BUILD,
                builds=", ".join(names()),
                send_us=_SEND_US,
            ),
        )


def _is_same_build(one: Build, other: Build) -> bool:
    return one.name == other.name and one.joints == other.joints
