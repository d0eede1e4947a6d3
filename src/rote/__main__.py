"""python -m rote, and the `rote` command."""

import sys


def main() -> int:
    """Run the command line. Ctrl-C ends it without a traceback, even while modules are imported."""
    try:
        _warn_of_namesake()
        code = _flush_output(_run_command())
        _ignore_ctrl_c()
    except KeyboardInterrupt:
        _ignore_ctrl_c()
        return 130  # the exit code of a shell for Ctrl-C
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
    # numpy would start a thread for each core, which costs a tenth of a second of CPU time, and
    # rote multiplies no large matrices.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from rote.platform.console_text import prepare_streams  # noqa: PLC0415

    prepare_streams()
    # Two commands avoid the import of the complete command line, which takes long.
    if sys.argv[1:2] == ["capture"]:
        from rote.capture.report.plain import show_report  # noqa: PLC0415 - seldom needed

        try:
            if show_report(sys.argv[2:]):
                return 0
        except BrokenPipeError:  # the reader of the output closed the pipe: print no error
            sys.stderr.close()
            return 0
    if sys.argv[1:3] == ["show", "stop"] and (code := _stop_show(sys.argv[1:])) is not None:
        return code
    from rote.cli import main as run  # noqa: PLC0415

    return run()


def _stop_show(arguments: list[str]) -> int | None:
    """Run `rote show stop` quickly; return None if the complete command line must parse it."""
    from rote.errors import RoteError  # noqa: PLC0415
    from rote.stage.plain_stop import run_stop  # noqa: PLC0415

    try:
        return run_stop(arguments[2:])
    except RoteError as error:
        from rote.cli import print_error  # noqa: PLC0415 - seldom needed

        return print_error(arguments, error)


def _flush_output(code: int) -> int:
    """Flush the output, and return the exit code: 1 instead of 0 if it cannot be written.

    Output that cannot be written is discarded. Otherwise the interpreter would try again when it
    ends, print an error and replace the exit code with 120.
    """
    import os  # noqa: PLC0415
    from contextlib import suppress  # noqa: PLC0415

    for stream in (sys.stdout, sys.stderr):
        if stream is None or stream.closed:
            continue
        try:
            stream.flush()
        except OSError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            # A reader that closes the pipe early is no failure.
            if code == 0 and not isinstance(error, BrokenPipeError):
                code = 1
                with suppress(OSError):
                    sys.stderr.write(f"rote: {error}\n")
    return code


def _warn_of_namesake() -> None:
    """Warn if another distribution named `rote` shares our folder, unless JSON is requested."""
    from rote.platform.distribution import NAME, find_namesake  # noqa: PLC0415

    if "--json" in sys.argv or sys.stderr is None:
        return
    other_version = find_namesake()
    if not other_version:
        return
    sys.stderr.write(
        f"rote: another package called rote ({other_version}) is installed in the same place, "
        "and its\n"
        "      files and those of this one overwrite each other. Keep one of them:\n"
        f"      pip uninstall rote, then pip install --force-reinstall {NAME}\n"
    )


if __name__ == "__main__":
    sys.exit(main())
