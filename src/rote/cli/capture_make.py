"""rote capture make: a capture of a made-up session, to learn from and to test with."""

from pathlib import Path
from typing import Annotated

import typer

from rote.cli.options import Json, Overwrite, choice, print_json, refuse_idle

_ENCRYPTED = "webrtc"


def make(
    ctx: typer.Context,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Where to write it: .pcap or .pcapng.")
    ],
    kind: Annotated[
        str, typer.Option(metavar=choice(("webrtc", "frames", "a1")), help="The wire to simulate.")
    ] = "webrtc",
    cipher: Annotated[
        str,
        typer.Option(metavar=choice(("chacha20", "aes128", "aes256")), help="Cipher, for webrtc."),
    ] = "chacha20",
    keylog: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the session's secrets to this file.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Random seed.")] = 0,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Write a capture of a teaching session, to learn from and to test with."""
    from rote.capture.synthetic.build import make as build
    from rote.platform.atomic_file import check_new

    if kind != _ENCRYPTED:
        refuse_idle(ctx, {"cipher", "keylog"}, f"with --kind {kind}, which nothing encrypts")
    for path in (file, keylog):
        if path is not None:
            check_new(path, overwrite)
    count = build(file, kind, cipher=cipher, keylog=keylog, seed=seed)
    if as_json:
        print_json({"file": str(file), "packets": count})
        return
    keys = f" --keylog {keylog}" if keylog is not None else ""
    print(f"{count} packets of a made-up session are in {file}.\nTry: rote capture {file}{keys}")
