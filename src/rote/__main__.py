"""python -m rote, and the `rote` command."""

import sys


def main() -> int:
    """Run the command line. Ctrl-C ends it without a traceback, even while modules are imported."""
    try:
        _warn_of_namesake()
        code = _run_command()
        _ignore_ctrl_c()
    except KeyboardInterrupt:
        _ignore_ctrl_c()
        return 130
    return code


def _ignore_ctrl_c() -> None:
    """Ignore Ctrl-C until the interpreter ends, which would otherwise print a traceback."""
    import signal  # noqa: PLC0415

    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _run_command() -> int:
    """Run the command line. Imports are local so that Ctrl-C during them is caught."""
    import os  # noqa: PLC0415

    if "_ROTE_COMPLETE" in os.environ:
        from rote.cli.completion import answer_shell  # noqa: PLC0415

        answer_shell()
        return 0
    # rote multiplies no large matrices. numpy would start a thread for each core, which takes a
    # tenth of a second of processor time.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from rote.platform.console_text import prepare_streams  # noqa: PLC0415

    prepare_streams()
    if sys.argv[1:2] == ["capture"]:
        from rote.capture.report.plain import show_report  # noqa: PLC0415 - seldom needed

        try:
            if show_report(sys.argv[2:]):
                return 0
        except BrokenPipeError:  # the reader of the output closed the pipe
            sys.stderr.close()
            return 0
    from rote.cli import main as run  # noqa: PLC0415

    return run()


def _warn_of_namesake() -> None:
    """Warn if another distribution named `rote` shares our folder. Programs that read JSON get this
    from `rote doctor --json`.
    """
    from rote.platform.distribution import NAME, namesake  # noqa: PLC0415 - so that Ctrl-C is caught

    if "--json" in sys.argv or sys.stderr is None or not (other := namesake()):
        return
    sys.stderr.write(
        f"rote: another package called rote ({other}) is installed in the same place, and its\n"
        "      files and those of this one overwrite each other. Keep one of them:\n"
        f"      pip uninstall rote, then pip install --force-reinstall {NAME}\n"
    )


if __name__ == "__main__":
    sys.exit(main())
