"""Where rote keeps things on disk.

data folder     ROTE_HOME, else XDG_DATA_HOME/rote, else ~/.local/share/rote
  takes/        the recordings on this computer
  shows/        the shows, casts and sounds that the web UI edits
  agreed.json   imported motions that may be played on a real robot
  pendant.key   the secret that signs cookies and links of `rote web`
  agents/       what agents have learned about their robots, one file each
  meshes/       shapes of robots for ROS 2, one folder for each family
  tls/          the certificate that `rote web --tls` has made
  NAME.sqlite   the actions of an embedded simulated robot, one file for each family
  sim/          the actions of the robots of `rote sim`, in files of the same names
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


def shows_folder() -> Path:
    """Return the folder for the shows that the web UI edits, with their casts and sounds."""
    return data_folder() / "shows"


def agreed_file() -> Path:
    """Return the file that lists the imported motions a person agreed to play."""
    return data_folder() / "agreed.json"


def pendant_key_file() -> Path:
    """Return the file with the secret that signs cookies and links of the web UI."""
    return data_folder() / "pendant.key"


def meshes_folder() -> Path:
    """Return the folder for the shapes of robots that other programs read from files."""
    return data_folder() / "meshes"


def tls_folder() -> Path:
    """Return the folder for the certificate that `rote web --tls` makes."""
    return data_folder() / "tls"


def agent_file(stage: str, name: str) -> Path:
    """Return the file in which an agent of a stage keeps what it has learned about its robot."""
    return data_folder() / "agents" / f"{stage}.{name}.json"


def store_file(family: str) -> Path:
    """Return the store file of an embedded robot; all robots of one family share it."""
    return data_folder() / f"{family}.sqlite"


def served_store_file(family: str) -> Path:
    """Return the store file of a robot of `rote sim`; embedded robots use `store_file`."""
    return data_folder() / "sim" / f"{family}.sqlite"


def key_file() -> Path:
    """Return the key file: one robot per line, with its serial number or address and its key."""
    folder = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(folder) / "rote" / "keys"
