"""python -m rote, and the `rote` command."""

import sys

from rote.cli import main

if __name__ == "__main__":
    sys.exit(main())
