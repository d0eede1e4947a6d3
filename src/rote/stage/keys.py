"""Where on the bus everything of a stage is, and who may do what there."""

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
        """What all keys begin with."""
        return f"rote/{self.stage}"

    @property
    def conductor(self) -> str:
        """What the conductor wants."""
        return f"{self.root}/conductor/state"

    @property
    def conductor_token(self) -> str:
        """Whether the conductor is there."""
        return f"{self.root}/conductor/here"

    @property
    def clock(self) -> str:
        """The conductor's clock, asked for."""
        return f"{self.root}/clock"

    @property
    def stop(self) -> str:
        """A stop for everybody."""
        return f"{self.root}/stop"

    def blob(self, name: str) -> str:
        """Scores and sounds, asked for by their hash."""
        return f"{self.root}/blob/{name}"

    def state(self, agent: str) -> str:
        """What an agent is doing."""
        return f"{self.root}/agent/{agent}/state"

    def token(self, agent: str) -> str:
        """Whether an agent is there."""
        return f"{self.root}/agent/{agent}/here"

    def agent_in(self, key: str) -> str:
        """Return the agent that a state or token belongs to; "" for another key."""
        parts = key.removeprefix(f"{self.root}/agent/").split("/")
        return parts[0] if len(parts) == 2 and key.startswith(f"{self.root}/agent/") else ""

    def grants(self, agents: tuple[str, ...]) -> tuple[Grant, ...]:
        """Return what each agent may do on the conductor's router: its own state and nothing of
        another's. Who holds the conductor's certificate may watch and stop."""
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
