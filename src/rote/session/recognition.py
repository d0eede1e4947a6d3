"""Recognises the machine from its reports; it is never guessed.

A robot reports its `mode_machine` with its joints, and the id of its controller's mode. A mode id
that only one family uses decides first, because families share message formats and some share
`mode_machine` numbers. Then `mode_machine` decides. A serial number with the prefix of another
family makes the result uncertain; it never decides, because serials of a G1 and an R1 begin alike.
The user may name the build (`?build=NAME`). If the robot contradicts it, the named build is kept
with a note, and nothing is streamed.
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
_REPORT_IT_TEXT = Text(
    "Send us what it reports ({status}), the name on its plate and its software's version, so "
    "that rote can support it.",
    status=Act.STATUS,
)


class Recognised(NamedTuple):
    """The result of recognising a machine."""

    build: Build
    note: str = ""
    """Why the build is unknown or doubtful; empty if it is clear."""
    certain: bool = True
    """Whether the robot itself reported it, and nothing contradicts it."""


def recognise(
    machine: int, mode: int, slot_count: int, table: Collection[Family] | None = None
) -> Recognised:
    """Recognise a machine by its `mode_machine`, its mode id and the number of its motor slots.

    `machine` is 0 and `mode` -1 if they are not reported. A G1 is tried first, even if it is not in
    `table`: then the families of other packages need not be loaded, and cannot claim its numbers.
    After it come the families in `table`, by default all that are registered.
    """
    # A mode that a G1 may have identifies no family; then only `machine` decides.
    if not _may_be_g1_mode(mode):
        for family in _select_families(table):
            if mode in family.modes.distinctive:
                return _recognise_in_family(family, machine, mode)
        if mode in UNKNOWN_FAMILIES:
            note = f"mode {mode} belongs to an {UNKNOWN_FAMILIES[mode]}, which rote does not know"
            return Recognised(numbered_build(slot_count, machine), note, certain=False)
    if not machine:
        note = "it does not report its mode_machine"
        return Recognised(numbered_build(slot_count, machine), note, certain=False)
    build = G1.of_machine(machine)
    if build is None:  # not a G1, so search the other families
        builds = (family.of_machine(machine) for family in _select_families(table))
        build = next(filter(None, builds), None)
    if build is not None:
        return Recognised(build)
    note = f"rote does not know mode_machine {machine}"
    return Recognised(numbered_build(slot_count, machine), note, certain=False)


def is_distinctive(mode: int) -> bool:
    """Whether only one family uses this mode id."""
    if _may_be_g1_mode(mode):
        return False
    if mode in UNKNOWN_FAMILIES:
        return True
    return any(mode in family.modes.distinctive for family in families())


def _may_be_g1_mode(mode: int) -> bool:
    """Whether a G1 has this mode, or no mode was reported (-1); such a mode is not distinctive."""
    return mode == -1 or G1.modes.find(mode) is not None


def _select_families(table: Collection[Family] | None) -> Collection[Family]:
    return families() if table is None else table


def _recognise_in_family(family: Family, machine: int, mode: int) -> Recognised:
    """Return the build of a family with this `mode_machine`, otherwise the family's default."""
    build = family.of_machine(machine)
    if build is not None:
        return Recognised(build)
    note = (
        f"mode {mode} belongs to a {family.title}, but mode_machine {machine} is unknown; "
        f"{family.default.name} is assumed"
    )
    return Recognised(family.default, note, certain=len(family.builds) == 1)


class Identity:
    """Which machine a robot is, according to its reports so far."""

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
        self._is_certain = False

    def on_mode(self, mode: int) -> bool:
        """Process the controller's mode; return whether this changed the build."""
        if mode == self._mode or (is_distinctive(self._mode) and not is_distinctive(mode)):
            return False  # keep the distinctive mode, which identifies the family
        self._mode = mode
        return self._has_reported and self._update_build()

    def on_motors(self, machine: int, slots: int) -> bool:
        """Process the head of a motor message; return whether this changed the build."""
        if self._has_reported and machine == self.machine and slots == self._slots:
            return False
        self._has_reported, self.machine, self._slots = True, machine, slots
        return self._update_build()

    def on_missing_columns(self, columns: tuple[int, ...]) -> None:
        """Record the joints, by column, whose positions the robot does not report."""
        self.missing = tuple(self.build.names[column] for column in columns)

    def _update_build(self) -> bool:
        """Recognise the machine from all reports so far; return whether the build changed."""
        before = self.build
        result = recognise(self.machine, self._mode, self._slots)
        if self.named_build is None:
            self.build, self.note, self._is_certain = self._check_serial(result)
            self.recognised = result.build.known
        else:
            self.build = self.named_build.at(self.machine)
            self.note = self._find_contradiction(result)
            self._is_certain = not self.note
            self.recognised = True
        if _is_same_build(before, self.build):
            self.build = before  # keep the object: callers have prepared data for it
        return self.build is not before

    def _check_serial(self, result: Recognised) -> Recognised:
        """Return `result`, marked uncertain if the robot's serial number fits another family."""
        if not self.serial or not result.build.known:
            return result
        family = family_of(result.build)
        expected_prefixes = () if family is None else family.serials
        titles_by_prefix = dict(UNKNOWN_SERIALS)
        for other in families():
            for prefix in other.serials:
                if prefix not in expected_prefixes:
                    titles_by_prefix[prefix] = other.title
        matches = [
            title for prefix, title in titles_by_prefix.items() if self.serial.startswith(prefix)
        ]
        if not matches:
            return result
        doubt = f"its serial begins like the serial of a {matches[0]}"
        note = "; ".join(filter(None, (result.note, doubt)))
        return Recognised(result.build, note, certain=False)

    def _find_contradiction(self, result: Recognised) -> str:
        """Return how the robot contradicts the named build; "" if it does not."""
        assert self.named_build is not None
        reported, named = result.build, self.named_build
        is_same = reported.family == named.family and reported.names == named.names
        if not reported.known or is_same:
            return ""
        return (
            f"the robot reports that it is {reported.name} with {len(reported.names)} joints "
            f"(mode_machine {self.machine}), but it was named {named.name} with "
            f"{len(named.names)}"
        )

    # ---- what may be done with it ---------------------------------------------------------------

    def find_stream_problem(self) -> tuple[str, str] | None:
        """Return why nothing may be streamed to the robot, and what to do; None if it may."""
        if not self._has_reported or not self.recognised:
            return self._explain_unknown_machine(
                "nothing is streamed to a machine that rote does not know"
            )
        if reason := self._find_stream_obstacle():
            return f"nothing is streamed to this robot: {reason}", _REPORT_IT_TEXT
        if not self._is_certain:
            return f"nothing is streamed: {self.note}", "Leave out ?build=, or name the right one."
        return None

    def _find_stream_obstacle(self) -> str:
        """Return why poses cannot be streamed to this build; "" if they can."""
        build, stream = self.build, self.build.stream
        if stream is None:
            return build.no_stream or f"rote does not know how to stream to {build.name}"
        if build.machines and self.machine not in build.machines:
            known = ", ".join(map(str, build.machines))
            return f"its mode_machine is {self.machine}, and {build.name} has {known}"
        if stream.weight_slot in build.slots:
            return f"{build.name} has a joint in the motor slot that carries the stream's weight"
        missing = [name for name in build.streamed if name in self.missing]
        return f"it does not report {missing[0]}" if missing else ""

    def find_mode_problem(self) -> tuple[str, str] | None:
        """Return why rote must not change the robot's mode, and what to do; None if it may."""
        if self.recognised or self.named_build is not None:
            return None
        return self._explain_unknown_machine(
            "rote does not change the mode of a machine that it does not know"
        )

    def _explain_unknown_machine(self, message: str) -> tuple[str, str]:
        """Return `message` with the reason why the machine is unknown, and what to do."""
        reason = self.note if self._has_reported else "it has not reported its joints"
        return (
            f"{message}: {reason}",
            Text(
                "Nothing was sent to the robot. If you know its build, name it: {name_build} "
                "({builds}). {send_us}",
                name_build=Act.NAME_BUILD,
                builds=", ".join(names()),
                send_us=_REPORT_IT_TEXT,
            ),
        )


def _is_same_build(first: Build, other: Build) -> bool:
    return first.name == other.name and first.joints == other.joints
