"""The keys of a stage on the bus, and the access rights to them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from rote.errors import BadRequestError
from rote.transport.zenoh.bus import Grant

CONDUCTOR, ROUTER = "conductor", "router"
"""The names in certificates that no agent may have."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,30}")


def is_name(text: str) -> bool:
    """Whether a text can be the name of a stage or an agent."""
    return bool(_NAME.fullmatch(text)) and text not in (CONDUCTOR, ROUTER)


def check_name(name: str, what: str) -> str:
    """Return the name of a stage or an agent, or raise `BadRequestError`."""
    if not is_name(name):
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

    @property
    def reset(self) -> str:
        """A request to the conductor to reset a stop."""
        return f"{self.root}/reset"

    @property
    def door(self) -> str:
        """Queries of an agent with a certificate of the stage: why it may not take part."""
        return f"{self.root}/door"

    def blob(self, name: str) -> str:
        """Queries for scores and sounds by their hash."""
        return f"{self.root}/blob/{name}"

    def state(self, agent: str) -> str:
        """The state of an agent."""
        return f"{self.root}/agent/{agent}/state"

    def leads(self, agent: str) -> str:
        """Changes of how early an agent requests actions and sounds."""
        return f"{self.root}/agent/{agent}/leads"

    def token(self, agent: str) -> str:
        """Whether an agent is alive."""
        return f"{self.root}/agent/{agent}/here"

    def agent_in(self, key: str) -> str:
        """Return the agent that a state or token belongs to; "" for another key."""
        parts = key.removeprefix(f"{self.root}/agent/").split("/")
        return parts[0] if len(parts) == 2 and key.startswith(f"{self.root}/agent/") else ""

    def grants(
        self,
        agents: tuple[str, ...],
        certificate_names: Mapping[str, str] | None = None,
        *,
        routed: bool = False,
    ) -> tuple[Grant, ...]:
        """Return the access rights on a router: an agent may publish only its own state; a client
        with the conductor's certificate may watch, stop and reset, and if the stage is `routed`,
        that is, has routers of its own, conduct.

        `certificate_names` has the name in an agent's certificate if it is not the agent's own.
        """
        names = certificate_names or {}
        everything = (f"{self.root}/**",)
        watcher = Grant(
            CONDUCTOR,
            publish=(self.stop, self.reset, self.leads("*")),
            subscribe=(self.conductor, self.state("*"), self.stop),
        )
        conductor = Grant(
            CONDUCTOR,
            publish=(*watcher.publish, self.conductor),
            subscribe=(*watcher.subscribe, self.reset),
            answer=(self.clock, self.blob("*"), self.door),
            token=(self.conductor_token, self.token("*")),
        )
        others = Grant(
            ROUTER,
            publish=everything,
            subscribe=everything,
            ask=everything,
            answer=everything,
            token=everything,
        )
        return (
            Grant("", ask=(self.door,)),  # for every certificate of the stage
            *((conductor, others) if routed else (watcher,)),
            *(
                Grant(
                    names.get(name, name),
                    publish=(self.state(name),),
                    subscribe=(self.conductor, self.stop, self.leads(name)),
                    ask=(self.clock, self.blob("*")),
                    token=(self.token(name),),
                    listeners=(self.state("*"),),
                )
                for name in agents
            ),
        )
