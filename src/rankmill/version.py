"""The version of the package, which pyproject.toml reads from here, and how to install extras."""

__version__ = "0.1.0"

# No package index has rankmill yet; messages, help and pages say what works until one has.
INSTALL = "pip install '.[{extra}]'"


def install(extra: str) -> str:
    """Return how to install an extra of rankmill, as help and errors say it."""
    return f"{INSTALL.format(extra=extra)} in a checkout of rankmill"
