"""The version of the package, which pyproject.toml reads from here, and how to install extras."""

__version__ = "0.1.0"


def install(extra: str | None = None) -> str:
    """Return how to install rankmill, with an extra, as help and errors say it.

    No package index has it yet; the pages say the same, which a test holds.
    """
    what = "." if extra is None else f"'.[{extra}]'"
    return f"pip install {what} in a checkout of rankmill"
