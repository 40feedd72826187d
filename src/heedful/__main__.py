"""`python -m heedful` and the command `heedful`: the command line, which Ctrl-C may stop while it is imported."""

import _thread
import signal
import sys
import threading

INTERRUPTED = 130  # exit code of a command that Ctrl-C stopped


def main() -> None:
    """Import and run the command line.

    Ctrl-C may come inside the constructor of a library's object, whose destructor then fails; Python reports such
    errors at once. They are held back, and reported only where the command was not interrupted. A Ctrl-C that Python
    drops, since it came where a library calls back, is sent again.
    """
    errors: list[sys.UnraisableHookArgs] = []

    def hold(error: "sys.UnraisableHookArgs") -> None:
        if error.exc_type is KeyboardInterrupt:
            again = threading.Timer(0.05, _thread.interrupt_main)
            again.daemon = True
            again.start()
        else:
            errors.append(error)

    sys.unraisablehook = hold
    interrupted = False
    try:
        _run()
    except SystemExit as stop:
        interrupted = stop.code == INTERRUPTED
        raise
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the command has ended; the interpreter ends in a moment
        if not interrupted:
            sys.unraisablehook = sys.__unraisablehook__
            for error in errors:
                sys.__unraisablehook__(error)
        # `python -m` ends by the signal instead of the exit code if Ctrl-C came inside an `exec`, as imports have
        # them, however it was handled; Python forgets that at the next `exec`.
        exec("")


def _run() -> None:
    try:
        from heedful.cli.main import main as run
    except KeyboardInterrupt:
        sys.stderr.write("stopped\n")
        sys.exit(INTERRUPTED)
    run()


if __name__ == "__main__":
    main()
