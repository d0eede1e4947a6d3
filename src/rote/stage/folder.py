"""A stage on disk: its name, its address, its certificates, and an invitation for each agent."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from rote.errors import BadRequestError
from rote.platform.atomic_file import appearing
from rote.stage.keys import CONDUCTOR, StageKeys, check_name
from rote.transport import certificates
from rote.transport.certificates import KeyedCertificate
from rote.transport.udp.link import host_and_port
from rote.transport.zenoh.bus import PORT, Credentials

_FILE = "stage.json"
_DAYS = 365  # validity of certificates


@dataclass(frozen=True, slots=True)
class Invitation:
    """Everything that an agent needs to join a stage, in one file. It is a secret."""

    stage: str
    endpoint: str
    name: str
    authority: str = ""
    """Certificates and key as PEM; "" on a stage for this computer only."""
    certificate: str = ""
    key: str = ""

    def check(self) -> None:
        """Raise `BadRequestError` if the conductor would refuse this agent's certificate."""
        if fault := self.fault():
            raise BadRequestError(
                f"the certificate of {self.name} will be refused: {fault}",
                f"Invite {self.name} again on the conductor's computer, and carry the new "
                "invitation here.",
            )

    def fault(self) -> str:
        """Return why the conductor refuses this agent's certificate; "" if it is valid."""
        if not self.certificate or not certificates.can_read():
            return ""
        pem, by, key = (each.encode() for each in (self.certificate, self.authority, self.key))
        return certificates.find_fault(pem, by, key, self.name)

    @contextmanager
    def credentials(self) -> Iterator[Credentials | None]:
        """Write the certificates to files for as long as they are needed.

        Raises `BadRequestError` if they are no longer valid.
        """
        if not self.certificate:
            yield None
            return
        self.check()
        with TemporaryDirectory(prefix="rote-") as folder:
            paths = [Path(folder) / name for name in ("authority.pem", "own.pem", "key.pem")]
            texts = (self.authority, self.certificate, self.key)
            for path, text in zip(paths, texts, strict=True):
                path.touch(mode=0o600)
                path.write_text(text, "ascii")
            yield Credentials(*paths)


class StageFolder:
    """The folder of a stage, on the conductor's computer."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            document = json.loads((folder / _FILE).read_text("utf-8"))
            self.name, self.endpoint = str(document["stage"]), str(document["endpoint"])
            self.agents = tuple(str(name) for name in document["agents"])
        except FileNotFoundError:
            raise BadRequestError(f"{folder} is not a stage folder", "Make one first.") from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise BadRequestError(f"{folder / _FILE} cannot be read: {error}") from None

    @classmethod
    def new(cls, folder: Path, name: str, endpoint: str) -> "StageFolder":
        """Make a stage: its authority and the conductor's certificate."""
        check_name(name, "a stage")
        host, _ = host_and_port(endpoint, PORT)
        if (folder / _FILE).exists():
            raise BadRequestError(f"{folder} is a stage already", "Choose another folder.")
        certificates.require("a stage with certificates", "stage")
        folder.mkdir(parents=True, exist_ok=True)
        authority = certificates.authority(f"stage {name} of rote", _DAYS)
        _write_private(folder / "authority.pem", authority.pem)
        _write_private(folder / "authority.key", authority.key)
        certificate, key = _sign_certificate(CONDUCTOR, authority, host)
        _write_private(folder / "conductor.pem", certificate)
        _write_private(folder / "conductor.key", key)
        _write_facts(folder, name, endpoint, ())
        return cls(folder)

    @property
    def keys(self) -> StageKeys:
        """The keys of the stage on the bus."""
        return StageKeys(self.name)

    @property
    def credentials(self) -> Credentials:
        """The conductor's certificates."""
        return Credentials(
            self.folder / "authority.pem",
            self.folder / "conductor.pem",
            self.folder / "conductor.key",
        )

    def check(self) -> None:
        """Raise `BadRequestError` if agents would refuse the conductor's certificate."""
        if not certificates.can_read():
            return
        mine = self.credentials
        try:
            files = (mine.certificate, mine.authority, mine.key)
            pem, by, key = (each.read_bytes() for each in files)
            fault = certificates.find_fault(pem, by, key, CONDUCTOR)
        except OSError as error:
            fault = f"{error.filename} cannot be read: {error.strerror}"
        if fault:
            raise BadRequestError(
                f"every agent will refuse the certificate of this conductor: {fault}",
                "Make a new stage, and invite the agents to it.",
            )

    def invitation_faults(self) -> dict[str, str]:
        """Return why invited agents will be refused, by name, as far as their invitations show."""
        found = {}
        authority = (self.folder / "authority.pem").read_text("ascii", "replace")
        for name in self.agents:
            path = self._invitation_file(name)
            if not path.is_file():  # it was moved to the agent's computer
                continue
            try:
                fault = replace(read_invitation(path), authority=authority).fault()
            except BadRequestError as error:
                fault = str(error)
            if fault:
                found[name] = f"its certificate will be refused: {fault}. Invite it again."
        return found

    def _invitation_file(self, name: str) -> Path:
        return self.folder / f"{name}.invitation.json"

    def invite(self, name: str) -> Path:
        """Write the invitation of an agent, and return its file. An older one stays valid."""
        check_name(name, "an agent")
        certificates.require("a stage with certificates", "stage")
        authority = KeyedCertificate(
            (self.folder / "authority.pem").read_bytes(),
            (self.folder / "authority.key").read_bytes(),
        )
        certificate, key = _sign_certificate(name, authority)
        invitation = Invitation(
            self.name,
            self.endpoint,
            name,
            authority.pem.decode(),
            certificate.decode(),
            key.decode(),
        )
        path = self._invitation_file(name)
        _write_private(path, json.dumps(asdict(invitation), indent=1).encode())
        if name not in self.agents:
            self.agents = (*self.agents, name)
            _write_facts(self.folder, self.name, self.endpoint, self.agents)
        return path


def read_invitation(path: Path) -> Invitation:
    """Read an invitation. Raises `BadRequestError` if the file is not one."""
    try:
        document = json.loads(path.read_text("utf-8"))
        fields = {name: str(document[name]) for name in Invitation.__dataclass_fields__}
    except OSError as error:
        raise BadRequestError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise BadRequestError(
            f"{path} is not an invitation to a stage", "Ask the conductor for one."
        ) from None
    check_name(fields["name"], "an agent")
    check_name(fields["stage"], "a stage")
    return Invitation(**fields)


def _sign_certificate(name: str, by: KeyedCertificate, *hosts: str) -> KeyedCertificate:
    """Return a certificate for a member of the stage, signed by the stage's authority."""
    return certificates.issue(name, (name, *hosts), _DAYS, by=by, clients=True)


def _write_private(path: Path, data: bytes) -> None:
    with appearing(path, private=True) as file:
        file.write(data)


def _write_facts(folder: Path, name: str, endpoint: str, agents: tuple[str, ...]) -> None:
    facts = {"stage": name, "endpoint": endpoint, "agents": list(agents)}
    _write_private(folder / _FILE, json.dumps(facts, indent=1).encode())
