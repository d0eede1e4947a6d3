"""The certificate of the pendant: one's own, or one made on the spot for this computer's names."""

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
    certificates.require("a certificate made on the spot", "webrtc")
    if not _fits(files, wanted):
        folder.mkdir(parents=True, exist_ok=True)
        made = certificates.issue("rote pendant", wanted, DAYS)
        for path, data in zip(files, made, strict=True):
            with appearing(path, private=True) as file:
                file.write(data)
    return check_files(files)


def _no_password() -> str:
    # OpenSSL would ask for one at the terminal.
    return ""


def _first(pem: str) -> str:
    end = "-----END CERTIFICATE-----"
    return pem[pem.find("-----BEGIN CERTIFICATE-----") :].partition(end)[0] + end


def _fits(files: TlsFiles, names: list[str]) -> bool:
    """Whether a certificate is there, for at least these names, and good for a while."""
    try:
        check_files(files)
    except BadRequestError:
        return False
    until = certificates.good_until(files.certificate.read_bytes(), names)
    return until is not None and until - datetime.datetime.now(datetime.UTC) > _LEFT
