"""X.509 certificates and their private keys, as PEM: creation, signing and inspection."""

import datetime
import importlib.util
from collections.abc import Iterable
from ipaddress import ip_address
from typing import Any, NamedTuple

from rote.errors import MissingExtraError


class KeyedCertificate(NamedTuple):
    """A certificate and its private key, each as PEM."""

    pem: bytes
    key: bytes


def require_cryptography(what: str, extra: str) -> None:
    """Raise `MissingExtraError` if `cryptography` is not installed.

    The error names the feature `what` that needs it, and the `extra` that installs it.
    """
    try:
        import cryptography  # noqa: F401, PLC0415 - heavy
    except ImportError:
        raise MissingExtraError(what, extra) from None


def can_read() -> bool:
    """Whether `cryptography`, which reads certificates, is installed."""
    return importlib.util.find_spec("cryptography") is not None


def make_authority(name: str, days: int) -> KeyedCertificate:
    """Return a new certificate authority, signed by its own key."""
    return _sign_certificate(name, days, None, [(_make_basic_constraints(ca=True), True)])


def renew_authority(authority: KeyedCertificate, days: int) -> KeyedCertificate:
    """Return the authority with a new certificate for its name and key.

    Certificates that the old one signed stay valid.
    """
    from cryptography import x509  # noqa: PLC0415 - heavy
    from cryptography.x509.oid import NameOID  # noqa: PLC0415 - heavy

    subject = x509.load_pem_x509_certificate(authority.pem).subject
    name = str(subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)
    extensions = [(_make_basic_constraints(ca=True), True)]
    return _sign_certificate(name, days, None, extensions, own_key=authority.key)


def issue_certificate(
    name: str,
    names: Iterable[str],
    days: int,
    *,
    by: KeyedCertificate | None = None,
    clients: bool = False,
) -> KeyedCertificate:
    """Return a new certificate with the common name `name`, valid for `days` days.

    It is for a server with these host names and addresses (`names`); with `clients` it is for a
    client too. It is signed by the authority `by`, or by its own key.
    """
    from cryptography import x509  # noqa: PLC0415 - heavy
    from cryptography.x509.oid import ExtendedKeyUsageOID as Usage  # noqa: PLC0415 - heavy

    uses = [Usage.SERVER_AUTH, *([Usage.CLIENT_AUTH] if clients else [])]
    extensions = [
        (_make_basic_constraints(ca=False), True),
        (x509.ExtendedKeyUsage(uses), False),
        (x509.SubjectAlternativeName(_make_alternative_names(names)), False),
    ]
    return _sign_certificate(name, days, by, extensions)


def read_expiry(pem: bytes, names: Iterable[str]) -> datetime.datetime | None:
    """Return when a certificate expires; None if it is damaged, or not for all of these names."""
    from cryptography import x509  # noqa: PLC0415 - heavy

    try:
        certificate = x509.load_pem_x509_certificate(pem)
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except (ValueError, x509.ExtensionNotFound):
        return None
    covers_names = set(_make_alternative_names(names)) <= set(extension.value)
    return certificate.not_valid_after_utc if covers_names else None


def read_end(pem: bytes) -> datetime.datetime | None:
    """Return when a certificate expires, whatever its names; None if it is damaged."""
    from cryptography import x509  # noqa: PLC0415 - heavy

    try:
        return x509.load_pem_x509_certificate(pem).not_valid_after_utc
    except ValueError:
        return None


def find_fault(
    pem: bytes, by: bytes, key: bytes, name: str, now: datetime.datetime | None = None
) -> str:
    """Return why the certificate `pem` is invalid now; "" if it is valid.

    It must be for `name`, belong to the private `key`, and be signed by the authority whose
    certificate is `by`.
    """
    from cryptography import x509  # noqa: PLC0415 - heavy
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - heavy
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - heavy
    from cryptography.x509.oid import NameOID  # noqa: PLC0415 - heavy

    now = now or datetime.datetime.now(datetime.UTC)
    try:
        own, authority = map(x509.load_pem_x509_certificate, (pem, by))
        public = serialization.load_pem_private_key(key, None).public_key()
    except (ValueError, TypeError):
        return "it, its authority or its key is damaged"
    for certificate, label in ((own, "it"), (authority, "its authority")):
        first, last = certificate.not_valid_before_utc, certificate.not_valid_after_utc
        if now > last:
            return f"{label} expired on {last:%Y-%m-%d}"
        if now < first:
            return (
                f"{label} is valid from {first:%Y-%m-%d %H:%M} UTC on, and the clock of this "
                f"computer shows {now:%Y-%m-%d %H:%M} UTC"
            )
    try:
        own.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return "it was signed by the authority of another stage"
    if own.public_key() != public:
        return "its key belongs to another certificate"
    names = [str(part.value) for part in own.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    return "" if names == [name] else f"it is for {names[0] if names else 'no name'}, not {name}"


def _make_basic_constraints(*, ca: bool) -> Any:
    from cryptography import x509  # noqa: PLC0415 - heavy

    # With path length 0 an authority cannot make further authorities.
    return x509.BasicConstraints(ca=ca, path_length=0 if ca else None)


def _make_alternative_names(names: Iterable[str]) -> list[Any]:
    from cryptography import x509  # noqa: PLC0415 - heavy

    alternatives: list[Any] = []
    for name in names:
        try:
            alternatives.append(x509.IPAddress(ip_address(name.strip("[]"))))
        except ValueError:
            alternatives.append(x509.DNSName(name))
    return alternatives


def _sign_certificate(
    name: str,
    days: int,
    by: KeyedCertificate | None,
    extensions: Iterable[tuple[Any, bool]],
    own_key: bytes | None = None,
) -> KeyedCertificate:
    """Return a new certificate for `name`, valid for `days` days, with its key.

    It is signed by the authority `by`, or by its own key. The key is new unless `own_key` is given.
    `extensions` are X.509 extensions, each with a flag that says whether it is critical.
    """
    from cryptography import x509  # noqa: PLC0415 - heavy
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415 - heavy
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415 - heavy
    from cryptography.x509.oid import NameOID  # noqa: PLC0415 - heavy

    key: Any = (
        ec.generate_private_key(ec.SECP256R1())
        if own_key is None
        else serialization.load_pem_private_key(own_key, None)
    )
    subject = issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    signing_key = key
    if by is not None:
        issuer = x509.load_pem_x509_certificate(by.pem).subject
        signing_key = serialization.load_pem_private_key(by.key, None)
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # The clock of a computer that checks the certificate may be late.
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=days))
    )
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical=critical)
    certificate = builder.sign(signing_key, hashes.SHA256())
    pem = serialization.Encoding.PEM
    private_key = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return KeyedCertificate(certificate.public_bytes(pem), private_key)
