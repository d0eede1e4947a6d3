"""python -m rote, and the `rote` command."""

import sys


def main() -> int:
    """Run the command line. Ctrl-C ends it without a traceback, even while modules are imported."""
    try:
        if sys.argv[1:2] == ["capture"]:
            from rote.capture.report.plain import show_report  # noqa: PLC0415 - seldom needed

            try:
                if show_report(sys.argv[2:]):
                    return 0
            except BrokenPipeError:  # the reader of the output closed the pipe
                sys.stderr.close()
                return 0
        from rote.cli import main as run  # noqa: PLC0415 - so that Ctrl-C during it is caught

        return run()
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
