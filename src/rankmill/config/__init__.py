"""The file rankmill.toml: its values, the lines where they stand, how a first one is written."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankmill.cli.config import Config as Config
    from rankmill.cli.config import read_config as read_config

# Public name -> the module that defines it, which is loaded on first use.
_HOMES = {
    "Config": "cli.config",
    "read_config": "cli.config",
}

__all__ = [
    "Config",
    "read_config",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"rankmill.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
