"""`python -m heedful` and the command `heedful`: the command line, which Ctrl-C may stop while it is imported."""

import sys


def main() -> None:
    """Import and run the command line."""
    try:
        _run()
    finally:
        # `python -m` ends by the signal instead of the exit code if Ctrl-C came inside an `exec`, as imports have
        # them, however it was handled; Python forgets that at the next `exec`.
        exec("")


def _run() -> None:
    try:
        from heedful.cli.main import main as run
    except KeyboardInterrupt:
        sys.stderr.write("stopped\n")
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
