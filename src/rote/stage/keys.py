"""The keys of a stage on the bus, and the access rights to them."""

import re
from dataclasses import dataclass

from rote.errors import BadRequestError
from rote.transport.zenoh.bus import Grant

CONDUCTOR = "conductor"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,30}")


def check_name(name: str, what: str) -> str:
    """Return the name of a stage or an agent, or raise `BadRequestError`."""
    if not _NAME.fullmatch(name) or name == CONDUCTOR:
        raise BadRequestError(
            f"{name!r:.60} cannot be the name of {what}",
            "Use up to 31 letters, digits, - and _.",
        )
    return name


@dataclass(frozen=True, slots=True)
class StageKeys:
    """The keys of one stage."""

    stage: str

    @property
    def root(self) -> str:
        """The prefix of all keys."""
        return f"rote/{self.stage}"

    @property
    def conductor(self) -> str:
        """The conductor's state: its requests to the agents."""
        return f"{self.root}/conductor/state"

    @property
    def conductor_token(self) -> str:
        """Whether the conductor is alive."""
        return f"{self.root}/conductor/here"

    @property
    def clock(self) -> str:
        """Queries for the conductor's clock."""
        return f"{self.root}/clock"

    @property
    def stop(self) -> str:
        """A stop for all agents."""
        return f"{self.root}/stop"

    def blob(self, name: str) -> str:
        """Queries for scores and sounds by their hash."""
        return f"{self.root}/blob/{name}"

    def state(self, agent: str) -> str:
        """The state of an agent."""
        return f"{self.root}/agent/{agent}/state"

    def token(self, agent: str) -> str:
        """Whether an agent is alive."""
        return f"{self.root}/agent/{agent}/here"

    def agent_in(self, key: str) -> str:
        """Return the agent that a state or token belongs to; "" for another key."""
        parts = key.removeprefix(f"{self.root}/agent/").split("/")
        return parts[0] if len(parts) == 2 and key.startswith(f"{self.root}/agent/") else ""

    def grants(self, agents: tuple[str, ...]) -> tuple[Grant, ...]:
        """Return the rights of each agent on the conductor's router: it may publish only its own
        state. The owner of the conductor's certificate may watch and stop.
        """
        watcher = Grant(
            CONDUCTOR,
            publish=(self.stop,),
            subscribe=(self.conductor, self.state("*"), self.stop),
        )
        return (
            watcher,
            *(
                Grant(
                    name,
                    publish=(self.state(name),),
                    subscribe=(self.conductor, self.stop),
                    ask=(self.clock, self.blob("*")),
                    token=(self.token(name),),
                    listeners=(self.state("*"),),
                )
                for name in agents
            ),
        )
