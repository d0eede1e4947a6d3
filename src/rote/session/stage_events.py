"""The events of a stage conductor: what its session reports to the program."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rote.wire.stage import StartReport, Stop


@dataclass(frozen=True, slots=True)
class SectionRefused:
    """A section does not begin."""

    run: str
    section: str
    reason: str
    agents: tuple[str, ...] = ()
    """The agents concerned."""
    lost: tuple[str, ...] = ()
    """The agents that were lost after it had begun."""


@dataclass(frozen=True, slots=True)
class SectionCommitted:
    """All agents are ready: the section begins at `start_s`."""

    run: str
    section: str
    start_s: float


@dataclass(frozen=True, slots=True)
class SectionEnded:
    """A section is over."""

    run: str
    section: str
    reports: Mapping[str, StartReport | None]
    lost: tuple[str, ...] = ()
    """The agents that were lost in it."""
    faults: Mapping[str, str] = field(default_factory=dict)
    """Why agents that took part failed in it, by name."""


@dataclass(frozen=True, slots=True)
class AgentLost:
    """An agent is silent or has disconnected."""

    name: str


@dataclass(frozen=True, slots=True)
class AgentFound:
    """An agent has connected, for the first time or again."""

    name: str


@dataclass(frozen=True, slots=True)
class StopBegan:
    """A stop of all agents began."""

    stop: Stop


@dataclass(frozen=True, slots=True)
class StopConfirmed:
    """All agents have stopped; there is at least one."""

    stop: str
    after_s: float


@dataclass(frozen=True, slots=True)
class StopUnconfirmed:
    """These agents have not confirmed a stop: a person must use their remotes. Without any agent
    the stop is unconfirmed, too."""

    stop: str
    agents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ComputerSuspended:
    """The conductor's computer was suspended, and has resumed."""

    seconds: float


@dataclass(frozen=True, slots=True)
class ConductorStalled:
    """This process neither sent nor received anything for so long that the agents have stopped."""

    seconds: float


@dataclass(frozen=True, slots=True)
class ConductingBegan:
    """The agents obey this conductor from now on."""

    term: int
    section: str = ""
    """Where the show of the other conductor was interrupted; "" if there was none."""
    muted: tuple[str, ...] = ()
    """The robots that were muted in that show."""
    other_has_ended: bool = False
    """Whether the other conductor ended by itself, and was not lost."""


@dataclass(frozen=True, slots=True)
class Superseded:
    """Another conductor conducts: this one never does again."""

    term: int
    """The term of the other conductor."""


ConductorEvent = (
    ComputerSuspended
    | ConductorStalled
    | ConductingBegan
    | Superseded
    | SectionRefused
    | SectionCommitted
    | SectionEnded
    | AgentLost
    | AgentFound
    | StopBegan
    | StopConfirmed
    | StopUnconfirmed
)
