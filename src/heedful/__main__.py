"""`python -m heedful` and the command `heedful`: the command line, which Ctrl-C may stop while it is imported."""

import sys


def main() -> None:
    """Import and run the command line."""
    try:
        from heedful.cli.main import main as run
    except KeyboardInterrupt:
        sys.stderr.write("stopped\n")
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
