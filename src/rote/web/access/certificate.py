"""The web UI's TLS certificate: the user's own, or one issued here for this computer's names."""

import datetime
import hashlib
import socket
import ssl
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from rote.errors import BadRequestError
from rote.platform.atomic_file import appearing
from rote.transport import certificates

DAYS = 397
"""Lifetime of a certificate issued here; browsers refuse longer ones."""
_RENEW_BEFORE = datetime.timedelta(days=7)
"""A certificate that expires sooner than this is issued again."""


class TlsFiles(NamedTuple):
    """A certificate (or a chain of them) and its private key, each as PEM."""

    certificate: Path
    key: Path


def check_files(files: TlsFiles) -> TlsFiles:
    """Return the files; raise `BadRequestError` if a server cannot use them."""
    try:
        for path in files:
            path.read_bytes()
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(*files, password=_no_password)
    except ssl.SSLError as error:
        reason = error.reason or "they do not fit together"
        raise BadRequestError(
            f"{files.certificate} and {files.key} cannot be used for TLS: {reason}",
            "Use a certificate and its private key, both as PEM and without a password.",
        ) from None
    except OSError as error:
        raise BadRequestError(
            f"{error.filename} cannot be read: {error.strerror}",
            "Check --tls-cert and --tls-key, or omit them: then rote issues a certificate.",
        ) from None
    return files


def fingerprint(certificate: Path) -> str:
    """Return the SHA-256 of a certificate, as browsers show it."""
    der = ssl.PEM_cert_to_DER_cert(_first_certificate(certificate.read_text("ascii", "replace")))
    return ":".join(f"{byte:02X}" for byte in hashlib.sha256(der).digest())


def own_certificate(folder: Path, names: Iterable[str]) -> TlsFiles:
    """Return a certificate for these names and addresses, stored in `folder`; issued if needed.

    It is reused while it is valid, so that the user has to trust it only once.
    """
    files = TlsFiles(folder / "pendant.crt", folder / "pendant.key")
    all_names = sorted({*names, "localhost", "127.0.0.1", "::1", socket.gethostname()})
    certificates.require_cryptography("issuing a certificate", "webrtc")
    if not _is_usable(files, all_names):
        folder.mkdir(parents=True, exist_ok=True)
        issued = certificates.issue_certificate("rote pendant", all_names, DAYS)
        for path, data in zip(files, issued, strict=True):
            with appearing(path, private=True) as file:
                file.write(data)
    return check_files(files)


def _no_password() -> str:
    # OpenSSL would ask for one at the terminal.
    return ""


def _first_certificate(pem: str) -> str:
    end = "-----END CERTIFICATE-----"
    return pem[pem.find("-----BEGIN CERTIFICATE-----") :].partition(end)[0] + end


def _is_usable(files: TlsFiles, names: list[str]) -> bool:
    """Whether a certificate for at least these names exists and does not expire soon."""
    try:
        check_files(files)
    except BadRequestError:
        return False
    until = certificates.read_expiry(files.certificate.read_bytes(), names)
    return until is not None and until - datetime.datetime.now(datetime.UTC) > _RENEW_BEFORE
