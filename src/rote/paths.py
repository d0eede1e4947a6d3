"""Where rote keeps things on disk.

data folder     ROTE_HOME, else XDG_DATA_HOME/rote, else ~/.local/share/rote
  takes/        the recordings on this computer
  pendant.key   a secret from which `rote web` makes cookies and links
  tls/          the certificate that `rote web --tls` has made
  NAME.sqlite   the actions of an embedded simulated robot, one file for each family
key file        XDG_CONFIG_HOME/rote/keys, else ~/.config/rote/keys
"""

import os
from pathlib import Path


def data_folder() -> Path:
    """Return the folder for everything that rote writes on its own."""
    if home := os.environ.get("ROTE_HOME"):
        return Path(home)
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data) / "rote"


def takes_folder() -> Path:
    """Return the folder for the takes on this computer."""
    return data_folder() / "takes"


def pendant_key_file() -> Path:
    """Return where the pendant keeps the secret that its cookies and links are made from."""
    return data_folder() / "pendant.key"


def tls_folder() -> Path:
    """Return where a certificate that was made on the spot is kept."""
    return data_folder() / "tls"


def store_file(family: str) -> Path:
    """Return the store file of an embedded robot; all robots of one family share it."""
    return data_folder() / f"{family}.sqlite"


def key_file() -> Path:
    """Return the key file: one robot per line, with its serial number or address and its key."""
    folder = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(folder) / "rote" / "keys"
