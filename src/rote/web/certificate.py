"""The certificate of the pendant: one's own, or one made on the spot for this computer's names."""

import datetime
import hashlib
import socket
import ssl
from collections.abc import Iterable
from ipaddress import ip_address
from pathlib import Path
from typing import Any, NamedTuple

from rote.atomic_file import appearing
from rote.errors import BadRequestError, MissingExtraError

DAYS = 397
"""How long a certificate made here is good; browsers refuse longer ones."""
_LEFT = datetime.timedelta(days=7)
"""One that is good for less than this is made again."""


class TlsFiles(NamedTuple):
    """A certificate (or a chain of them) and its private key, each as PEM."""

    certificate: Path
    key: Path


def check_files(files: TlsFiles) -> TlsFiles:
    """Return the files; raise `BadRequestError` where a server cannot use them."""
    try:
        for path in files:
            path.read_bytes()
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(*files, password=_no_password)
    except ssl.SSLError as error:
        reason = error.reason or "they do not fit together"
        raise BadRequestError(
            f"{files.certificate} and {files.key} cannot be used for TLS: {reason}",
            "Give a certificate and its own private key, both as PEM and without a password.",
        ) from None
    except OSError as error:
        raise BadRequestError(
            f"{error.filename} cannot be read: {error.strerror}",
            "Check --tls-cert and --tls-key, or leave them out: then a certificate is made.",
        ) from None
    return files


def fingerprint(certificate: Path) -> str:
    """Return the SHA-256 of a certificate, as browsers show it."""
    der = ssl.PEM_cert_to_DER_cert(_first(certificate.read_text("ascii", "replace")))
    return ":".join(f"{byte:02X}" for byte in hashlib.sha256(der).digest())


def own_certificate(folder: Path, names: Iterable[str]) -> TlsFiles:
    """Return a certificate for these names and addresses, kept in `folder`; made where needed.

    The same one is used again as long as it fits, so that a browser has to be told only once that
    it is to be trusted.
    """
    files = TlsFiles(folder / "pendant.crt", folder / "pendant.key")
    wanted = sorted({*names, "localhost", "127.0.0.1", "::1", socket.gethostname()})
    try:
        from cryptography import x509  # noqa: F401, PLC0415
    except ImportError:
        raise MissingExtraError("a certificate made on the spot", "webrtc") from None
    if not _fits(files, wanted):
        folder.mkdir(parents=True, exist_ok=True)
        for path, data in zip(files, _make(wanted), strict=True):
            with appearing(path, private=True) as file:
                file.write(data)
    return check_files(files)


def _no_password() -> str:
    # OpenSSL would ask for one at the terminal.
    return ""


def _first(pem: str) -> str:
    end = "-----END CERTIFICATE-----"
    return pem[pem.find("-----BEGIN CERTIFICATE-----") :].partition(end)[0] + end


def _names(names: Iterable[str]) -> Any:
    from cryptography import x509  # noqa: PLC0415

    found: list[x509.GeneralName] = []
    for name in names:
        try:
            found.append(x509.IPAddress(ip_address(name)))
        except ValueError:
            found.append(x509.DNSName(name))
    return x509.SubjectAlternativeName(found)


def _fits(files: TlsFiles, names: list[str]) -> bool:
    """Whether a certificate is there, for at least these names, and good for a while."""
    from cryptography import x509  # noqa: PLC0415

    try:
        check_files(files)
        found = x509.load_pem_x509_certificate(files.certificate.read_bytes())
        held = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (BadRequestError, ValueError, x509.ExtensionNotFound):
        return False
    now = datetime.datetime.now(datetime.UTC)
    return set(_names(names)) <= set(held) and found.not_valid_after_utc - now > _LEFT


def _make(names: list[str]) -> tuple[bytes, bytes]:
    """Return a new certificate, signed by its own key, and that key."""
    from cryptography import x509  # noqa: PLC0415
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID  # noqa: PLC0415

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "rote pendant")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=DAYS))
        .add_extension(_names(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return certificate.public_bytes(pem), private
