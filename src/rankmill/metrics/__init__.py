"""The registry of metrics, their values, and what adds them up."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankmill.metrics.base import Metric as Metric
    from rankmill.metrics.base import MetricSpec as MetricSpec
    from rankmill.metrics.registry import REGISTRY as REGISTRY
    from rankmill.metrics.registry import parse as parse

# Public name -> the module that defines it, which is loaded on first use.
_HOMES = {
    "REGISTRY": "metrics.registry",
    "Metric": "metrics.base",
    "MetricSpec": "metrics.base",
    "parse": "metrics.registry",
}

__all__ = [
    "REGISTRY",
    "Metric",
    "MetricSpec",
    "parse",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"rankmill.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
