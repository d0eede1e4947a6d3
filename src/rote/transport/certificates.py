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


def require(what: str, extra: str) -> None:
    """Raise `MissingExtraError` if certificates cannot be made; `what` is the feature for it."""
    try:
        import cryptography  # noqa: F401, PLC0415 - heavy
    except ImportError:
        raise MissingExtraError(what, extra) from None


def can_read() -> bool:
    """Whether the library to examine certificates is installed."""
    return importlib.util.find_spec("cryptography") is not None


def authority(name: str, days: int) -> KeyedCertificate:
    """Return a new authority: a certificate that signs others and is signed by its own key."""
    return _sign_certificate(name, days, None, [(_basic_constraints(ca=True), True)])


def issue(
    name: str,
    names: Iterable[str],
    days: int,
    *,
    by: KeyedCertificate | None = None,
    clients: bool = False,
) -> KeyedCertificate:
    """Return a new certificate for a server of these names and addresses.

    It is signed by the authority `by`, or by its own key. With `clients` it is also valid for
    clients.
    """
    from cryptography import x509  # noqa: PLC0415 - heavy
    from cryptography.x509.oid import ExtendedKeyUsageOID as Usage  # noqa: PLC0415 - heavy

    uses = [Usage.SERVER_AUTH, *([Usage.CLIENT_AUTH] if clients else [])]
    extensions = [
        (_basic_constraints(ca=False), True),
        (x509.ExtendedKeyUsage(uses), False),
        (x509.SubjectAlternativeName(_alternative_names(names)), False),
    ]
    return _sign_certificate(name, days, by, extensions)


def good_until(pem: bytes, names: Iterable[str]) -> datetime.datetime | None:
    """Return when a certificate expires; None if it is invalid, or not for all of these names."""
    from cryptography import x509  # noqa: PLC0415 - heavy

    try:
        found = x509.load_pem_x509_certificate(pem)
        held = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, x509.ExtensionNotFound):
        return None
    return found.not_valid_after_utc if set(_alternative_names(names)) <= set(held) else None


def find_fault(
    pem: bytes, by: bytes, key: bytes, name: str, now: datetime.datetime | None = None
) -> str:
    """Return why the other side refuses a certificate signed by the authority `by`; "" if it is
    valid. It must be for `name`, and belong to the private `key`.
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
    for found, which in ((own, "it"), (authority, "its authority")):
        if now > found.not_valid_after_utc:
            return f"{which} expired on {found.not_valid_after_utc:%Y-%m-%d}"
        if now < found.not_valid_before_utc:
            return (
                f"{which} is valid from {found.not_valid_before_utc:%Y-%m-%d %H:%M} UTC on, and "
                f"the clock of this computer shows {now:%Y-%m-%d %H:%M} UTC"
            )
    try:
        own.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return "it was signed by the authority of another stage"
    if own.public_key() != public:
        return "its key belongs to another certificate"
    names = [str(each.value) for each in own.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    return "" if names == [name] else f"it is for {names[0] if names else 'no name'}, not {name}"


def _basic_constraints(*, ca: bool) -> Any:
    from cryptography import x509  # noqa: PLC0415 - heavy

    return x509.BasicConstraints(ca=ca, path_length=0 if ca else None)


def _alternative_names(names: Iterable[str]) -> list[Any]:
    from cryptography import x509  # noqa: PLC0415 - heavy

    found: list[Any] = []
    for name in names:
        try:
            found.append(x509.IPAddress(ip_address(name.strip("[]"))))
        except ValueError:
            found.append(x509.DNSName(name))
    return found


def _sign_certificate(
    name: str, days: int, by: KeyedCertificate | None, extensions: Iterable[tuple[Any, bool]]
) -> KeyedCertificate:
    from cryptography import x509  # noqa: PLC0415 - heavy
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415 - heavy
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415 - heavy
    from cryptography.x509.oid import NameOID  # noqa: PLC0415 - heavy

    key: Any = ec.generate_private_key(ec.SECP256R1())
    subject = issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    signing = key
    if by is not None:
        issuer = x509.load_pem_x509_certificate(by.pem).subject
        signing = serialization.load_pem_private_key(by.key, None)
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=days))
    )
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical=critical)
    made = builder.sign(signing, hashes.SHA256())
    pem = serialization.Encoding.PEM
    private = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return KeyedCertificate(made.public_bytes(pem), private)
