"""The registry of metrics, their values, and what adds them up."""

from typing import TYPE_CHECKING

from rankmill.package import handed_on

if TYPE_CHECKING:
    from rankmill.metrics.base import Metric as Metric
    from rankmill.metrics.base import MetricSpec as MetricSpec
    from rankmill.metrics.registry import REGISTRY as REGISTRY
    from rankmill.metrics.registry import parse as parse

__all__ = [
    "REGISTRY",
    "Metric",
    "MetricSpec",
    "parse",
]

# Public name -> the module that defines it.
__getattr__, __dir__ = handed_on(
    __name__,
    {
        "REGISTRY": "metrics.registry",
        "Metric": "metrics.base",
        "MetricSpec": "metrics.base",
        "parse": "metrics.registry",
    },
)
