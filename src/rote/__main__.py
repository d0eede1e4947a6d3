"""python -m rote, and the `rote` command."""

import sys


def main() -> int:
    """Run the command line; Ctrl-C ends it quietly even while it is being loaded."""
    try:
        from rote.cli import main as run  # noqa: PLC0415 - so that Ctrl-C during it is caught

        return run()
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
