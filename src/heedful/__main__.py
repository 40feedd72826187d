"""`python -m heedful` is the command line."""

from heedful.cli.main import main

main()
