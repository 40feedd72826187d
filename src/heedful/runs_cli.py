"""`heedful runs` and `heedful query`: finding things again."""


def runs() -> None:
    """List every run below a folder."""


def query() -> None:
    """Ask."""
