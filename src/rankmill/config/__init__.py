"""The file rankmill.toml: its values, their lines, and how a first one is written."""

from typing import TYPE_CHECKING

from rankmill.package import handed_on

if TYPE_CHECKING:
    from rankmill.config.config import Config as Config
    from rankmill.config.config import read_config as read_config

# Public name -> the module that defines it.
_HOMES = {"Config": "config.config", "read_config": "config.config"}
__all__ = [*_HOMES]
__getattr__, __dir__ = handed_on(__name__, _HOMES)
