"""A stage on disk: its name, its address, its certificates, and an invitation for each agent."""

import datetime
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from rote.errors import BadRequestError
from rote.platform.atomic_file import appearing
from rote.stage.keys import CONDUCTOR, ROUTER, StageKeys, check_name
from rote.transport import certificates
from rote.transport.address import host_and_port
from rote.transport.certificates import KeyedCertificate
from rote.transport.zenoh.bus import (
    PORT,
    ROUTER_FILE,
    Credentials,
    Grant,
    StageBus,
    write_router,
)

_STAGE_FILE = "stage.json"
_CERTIFICATE_DAYS = 365
"""Validity of the certificates of conductor and agents."""
_AUTHORITY_DAYS = 3650
_CONDUCTOR_S = 2.0
"""Timeout for finding another conductor."""
WARN_DAYS = 30
"""A certificate that expires within this time is reported."""


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
    certificate_name: str = ""
    """The name in the certificate; "" if it is the agent's own name."""

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
        pem, authority, key = (
            text.encode() for text in (self.certificate, self.authority, self.key)
        )
        is_own = self.certificate_name.partition(".")[0] == self.name
        expected_name = self.certificate_name if is_own else self.name
        return certificates.find_fault(pem, authority, key, expected_name)

    def warning(self, now: datetime.datetime | None = None) -> str:
        """Return a warning if this agent's certificate expires soon; otherwise ""."""
        if not self.certificate or not certificates.can_read():
            return ""
        expires = certificates.read_end(self.certificate.encode())
        return _warn_of_expiry(self.name, expires, now)

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
            document = json.loads((folder / _STAGE_FILE).read_text("utf-8"))
            self.name, self.endpoint = str(document["stage"]), str(document["endpoint"])
            self.agents = tuple(str(name) for name in document["agents"])
            self.routers = tuple(str(each) for each in document.get("routers", ()))
            """The addresses of the stage's own routers; empty if its conductor is the router."""
            self._expiry = {
                str(agent): datetime.datetime.fromisoformat(expires)
                for agent, expires in document.get("ends", {}).items()
            }
            """When each agent's certificate ends, by name."""
            self._revoked = {
                str(name): [str(day) for day in days]
                for name, days in document.get("revoked", {}).items()
            }
            """The days on which invitations were revoked, by the agent's name."""
        except FileNotFoundError:
            raise BadRequestError(
                f"{folder} is not a stage folder", "Create a stage in it first."
            ) from None
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadRequestError(f"{folder / _STAGE_FILE} cannot be read: {error}") from None

    @classmethod
    def new(
        cls, folder: Path, name: str, endpoint: str = "", routers: Sequence[str] = ()
    ) -> "StageFolder":
        """Make a stage: its authority, the conductor's certificate, and a folder for each router.

        `endpoint` is the conductor's address, and not needed if there are `routers`.
        """
        check_name(name, "a stage")
        endpoint = ",".join(routers) or endpoint
        _find_hosts(endpoint)
        if (folder / _STAGE_FILE).exists():
            raise BadRequestError(f"{folder} already contains a stage", "Choose another folder.")
        certificates.require_cryptography("a stage with certificates", "stage")
        folder.mkdir(parents=True, exist_ok=True)
        authority = certificates.make_authority(f"stage {name} of rote", _AUTHORITY_DAYS)
        _write_private(folder / "authority.pem", authority.pem)
        _write_private(folder / "authority.key", authority.key)
        facts = {"stage": name, "endpoint": endpoint, "agents": [], "routers": list(routers)}
        _write_private(folder / _STAGE_FILE, json.dumps(facts, indent=1).encode())
        made = cls(folder)
        made._sign_own_certificates()
        return made

    def _sign_own_certificates(self) -> None:
        """Sign the certificates of conductor and routers, and write the routers' folders."""
        authority, hosts = self._read_authority(), _find_hosts(self.endpoint)
        certificate, key = _sign_certificate(CONDUCTOR, authority, *hosts)
        _write_private(self.folder / "conductor.pem", certificate)
        _write_private(self.folder / "conductor.key", key)
        for folder in self.router_folders:
            folder.mkdir(exist_ok=True)
            certificate, key = _sign_certificate(ROUTER, authority, *hosts)
            _write_private(folder / "authority.pem", authority.pem)
            _write_private(folder / "router.pem", certificate)
            _write_private(folder / "router.key", key)
        self._write_routers()

    def _write_routers(self) -> None:
        """Write the configuration of each router: it names the invited agents."""
        for folder, endpoint in zip(self.router_folders, self.routers, strict=True):
            others = [each for each in self.routers if each != endpoint]
            write_router(folder / ROUTER_FILE, endpoint, others, self.grants)

    @property
    def router_folders(self) -> tuple[Path, ...]:
        """A folder for each router, with all that its computer needs."""
        return tuple(self.folder / f"router-{number + 1}" for number in range(len(self.routers)))

    async def open_bus(self, *, standby: bool = False) -> StageBus:
        """Open the bus for a conductor of this stage: its routers', or a router in this process.

        Raises `LinkError` if no router can be reached or the port is in use, and `BadRequestError`
        if another conductor is connected; a `standby` may join it, but needs routers.
        """
        if standby:
            self._require_routers()
            return await StageBus.join(self.endpoint, self.credentials)
        if not self.routers:
            return await StageBus.conduct(self.endpoint, self.credentials, self.grants)
        bus, is_conducted = await self.join_routers(_CONDUCTOR_S)
        if is_conducted:
            await bus.close()
            raise BadRequestError(
                f"another conductor runs the stage {self.name}", "End it first, or use it."
            )
        return bus

    def _require_routers(self) -> None:
        if not self.routers:
            raise BadRequestError(
                f"the stage {self.name} has no routers of its own: its conductor is the router, "
                "so a standby would lose the robots together with it",
                "Make a stage with routers, and invite the robots to it.",
            )

    async def join_routers(self, timeout_s: float) -> tuple[StageBus, bool]:
        """Return a session with the routers of this stage, and whether a conductor is connected.

        It is searched for up to `timeout_s`. Raises `LinkError` if no router can be reached.
        """
        bus = await StageBus.join(self.endpoint, self.credentials)
        try:
            return bus, await bus.is_alive(self.keys.conductor_token, timeout_s)
        except BaseException:  # an open session would keep this program from ending
            await bus.close()
            raise

    @property
    def keys(self) -> StageKeys:
        """The keys of the stage on the bus."""
        return StageKeys(self.name)

    @property
    def grants(self) -> tuple[Grant, ...]:
        """The access rights of all invited agents, by their certificates."""
        names = {name: self._find_certificate_name(name) for name in self.agents}
        return self.keys.grants(self.agents, names, routed=bool(self.routers))

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
        credentials = self.credentials
        try:
            files = (credentials.certificate, credentials.authority, credentials.key)
            pem, authority, key = (each.read_bytes() for each in files)
            fault = certificates.find_fault(pem, authority, key, CONDUCTOR)
        except OSError as error:
            fault = f"{error.filename} cannot be read: {error.strerror}"
        if fault:
            raise BadRequestError(
                f"every agent will refuse the certificate of this conductor: {fault}",
                "Renew the certificates of this stage.",
            )

    def invitation_faults(self) -> dict[str, str]:
        """Return why invited agents will be refused, by name; revoked ones are included."""
        found = {
            name: f"its invitation was revoked on {days[-1]}. Invite it again to let it join."
            for name, days in self._revoked.items()
            if name not in self.agents and days
        }
        authority = (self.folder / "authority.pem").read_text("ascii", "replace")
        now = datetime.datetime.now(datetime.UTC)
        for name in self.agents:
            path = self._locate_invitation(name)
            fault = ""
            if path.is_file():
                try:
                    fault = replace(read_invitation(path), authority=authority).fault()
                except BadRequestError as error:
                    fault = str(error)
            elif (expires := self._expiry.get(name, now)) < now:  # the agent's computer has it
                fault = f"it expired on {expires:%Y-%m-%d}"
            if fault:
                found[name] = f"its certificate will be refused: {fault}. Invite it again."
        return found

    def find_refusal(self, certificate_name: str) -> str:
        """Return why the owner of a certificate of this stage may not take part; "" if it may.

        The certificate is valid, but it has no access rights.
        """
        name = certificate_name.partition(".")[0]
        if name in self.agents and certificate_name == self._find_certificate_name(name):
            return ""
        if days := self._revoked.get(name):
            return f"its invitation was revoked on {days[-1]}"
        return "it was invited after this conductor was started"

    def warnings(self, now: datetime.datetime | None = None) -> list[str]:
        """Return a warning for each certificate of this stage that expires soon."""
        if not certificates.can_read():
            return []
        found = []
        for name in ("authority", CONDUCTOR):
            expires = certificates.read_end((self.folder / f"{name}.pem").read_bytes())
            found.append(_warn_of_expiry(f"the {name}", expires, now))
        found += [_warn_of_expiry(name, self._expiry.get(name), now) for name in self.agents]
        return [each for each in found if each]

    def _locate_invitation(self, name: str) -> Path:
        return self.folder / f"{name}.invitation.json"

    def _find_certificate_name(self, name: str) -> str:
        """Return the name in an agent's certificate: a new one after each revocation, so that a
        revoked certificate has no rights when the agent is invited again.
        """
        revocations = len(self._revoked.get(name, ()))
        return f"{name}.{revocations + 1}" if revocations else name

    def invite(self, name: str) -> Path:
        """Write the invitation of an agent, and return its file. An older one stays valid."""
        check_name(name, "an agent")
        certificates.require_cryptography("a stage with certificates", "stage")
        authority = self._read_authority()
        certificate_name = self._find_certificate_name(name)
        certificate, key = _sign_certificate(certificate_name, authority)
        invitation = Invitation(
            self.name,
            self.endpoint,
            name,
            authority.pem.decode(),
            certificate.decode(),
            key.decode(),
            certificate_name,
        )
        path = self._locate_invitation(name)
        _write_private(path, json.dumps(asdict(invitation), indent=1).encode())
        if name not in self.agents:
            self.agents = (*self.agents, name)
        if (expires := certificates.read_end(certificate)) is not None:
            self._expiry[name] = expires
        self._save()
        return path

    def renew(self, *names: str) -> list[Path]:
        """Write new invitations for these agents, with certificates for another year.

        Without names, the conductor's certificate and those of all agents are renewed, and the
        authority if it would end before them. Old certificates stay valid until they end. Return
        the invitations. Raises `BadRequestError` for an agent that was not invited.
        """
        certificates.require_cryptography("a stage with certificates", "stage")
        for name in names:
            self._require_invited(name)
        if not names:
            authority = self._read_authority()
            expires = certificates.read_end(authority.pem)
            needed_until = datetime.datetime.now(datetime.UTC) + datetime.timedelta(
                days=_CERTIFICATE_DAYS + WARN_DAYS
            )
            if expires is None or expires < needed_until:
                authority = certificates.renew_authority(authority, _AUTHORITY_DAYS)
                _write_private(self.folder / "authority.pem", authority.pem)
            self._sign_own_certificates()
        return [self.invite(name) for name in names or self.agents]

    def revoke(self, name: str) -> None:
        """Let an agent's certificate no longer take part, from the conductor's next start on.

        Raises `BadRequestError` if the agent was not invited.
        """
        self._require_invited(name)
        today = datetime.datetime.now(datetime.UTC)
        self._revoked.setdefault(name, []).append(f"{today:%Y-%m-%d}")
        self.agents = tuple(each for each in self.agents if each != name)
        self._expiry.pop(name, None)
        self._save()
        self._locate_invitation(name).unlink(missing_ok=True)

    def _require_invited(self, name: str) -> None:
        if name not in self.agents:
            invited = ", ".join(self.agents) or "none"
            raise BadRequestError(
                f"no agent {name!r:.60} was invited to this stage", f"Invited agents: {invited}."
            )

    def _read_authority(self) -> KeyedCertificate:
        return KeyedCertificate(
            (self.folder / "authority.pem").read_bytes(),
            (self.folder / "authority.key").read_bytes(),
        )

    def _save(self) -> None:
        document = {
            "stage": self.name,
            "endpoint": self.endpoint,
            "agents": list(self.agents),
            "routers": list(self.routers),
            "ends": {name: ends.isoformat() for name, ends in self._expiry.items()},
            "revoked": self._revoked,
        }
        _write_private(self.folder / _STAGE_FILE, json.dumps(document, indent=1).encode())
        self._write_routers()


_INVITATION_FIELDS = ("stage", "endpoint", "name", "authority", "certificate", "key")


def read_invitation(path: Path) -> Invitation:
    """Read an invitation. Raises `BadRequestError` if the file is not one."""
    try:
        document = json.loads(path.read_text("utf-8"))
        fields = {name: str(document[name]) for name in _INVITATION_FIELDS}
        fields["certificate_name"] = str(document.get("certificate_name", ""))
    except OSError as error:
        raise BadRequestError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise BadRequestError(
            f"{path} is not an invitation to a stage", "Ask the conductor for one."
        ) from None
    check_name(fields["name"], "an agent")
    check_name(fields["stage"], "a stage")
    return Invitation(**fields)


def _find_hosts(endpoint: str) -> list[str]:
    """Return the hosts of one or several addresses, separated by commas."""
    return [host_and_port(each, PORT)[0] for each in endpoint.split(",")]


def _sign_certificate(name: str, by: KeyedCertificate, *hosts: str) -> KeyedCertificate:
    """Return a certificate for a member of the stage, signed by the stage's authority."""
    return certificates.issue_certificate(
        name, (name, *hosts), _CERTIFICATE_DAYS, by=by, clients=True
    )


def _write_private(path: Path, data: bytes) -> None:
    with appearing(path, private=True) as file:
        file.write(data)


def _warn_of_expiry(
    name: str, expires: datetime.datetime | None, now: datetime.datetime | None
) -> str:
    """Return a warning if a certificate expires within `WARN_DAYS`; otherwise ""."""
    left = None if expires is None else expires - (now or datetime.datetime.now(datetime.UTC))
    if expires is None or left is None or not 0.0 <= left.total_seconds() < WARN_DAYS * 86400.0:
        return ""
    return (
        f"the certificate of {name} expires in {left.days} days, on {expires:%Y-%m-%d}. "
        "Renew it on the conductor's computer."
    )
