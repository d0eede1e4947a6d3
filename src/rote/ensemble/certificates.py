"""The certificates of a stage: an authority of its own, and one for everybody who takes part."""

import datetime
from ipaddress import ip_address
from typing import Any

from rote.errors import MissingExtraError

DAYS = 365
"""How long they are good."""


def _crypto() -> Any:
    try:
        from cryptography import x509  # noqa: PLC0415 - heavy
    except ImportError:
        raise MissingExtraError("a stage with certificates", "stage") from None
    return x509


def _pem(certificate: Any, key: Any) -> tuple[bytes, bytes]:
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - heavy

    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return certificate.public_bytes(serialization.Encoding.PEM), private


def _builder(x509: Any, subject: Any, issuer: Any, key: Any) -> Any:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=DAYS))
    )


def _named(x509: Any, name: str) -> Any:
    from cryptography.x509.oid import NameOID  # noqa: PLC0415 - heavy

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def authority(stage: str) -> tuple[bytes, bytes]:
    """Return a new authority's certificate and key."""
    x509 = _crypto()
    from cryptography.hazmat.primitives import hashes  # noqa: PLC0415 - heavy
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415 - heavy

    key = ec.generate_private_key(ec.SECP256R1())
    subject = _named(x509, f"stage {stage} of rote")
    certificate = (
        _builder(x509, subject, subject, key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    return _pem(certificate, key)


def signed(name: str, by: tuple[bytes, bytes], host: str) -> tuple[bytes, bytes]:
    """Return a certificate for `name`, signed by the authority, and its key."""
    x509 = _crypto()
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415 - heavy
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415 - heavy
    from cryptography.x509.oid import ExtendedKeyUsageOID  # noqa: PLC0415 - heavy

    issuer = x509.load_pem_x509_certificate(by[0])
    issuer_key = serialization.load_pem_private_key(by[1], None)
    key = ec.generate_private_key(ec.SECP256R1())
    usage = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    names: list[Any] = [x509.DNSName(name)]
    if host:
        try:
            names.append(x509.IPAddress(ip_address(host.strip("[]"))))
        except ValueError:
            names.append(x509.DNSName(host))
    certificate = (
        _builder(x509, _named(x509, name), issuer.subject, key)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage(usage), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(issuer_key, hashes.SHA256())
    )
    return _pem(certificate, key)
