"""Listwise average precision as a loss: a module of PyTorch, and the same of NumPy arrays."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankmill.training.listwise import ListwiseLoss as ListwiseLoss
    from rankmill.training.listwise import listwise_ap as listwise_ap
    from rankmill.training.listwise import listwise_ap_loss as listwise_ap_loss
    from rankmill.training.torch import ListwiseAPLoss as ListwiseAPLoss

# Public name -> the module that defines it, which is loaded on first use.
_HOMES = {
    "ListwiseAPLoss": "training.torch",
    "ListwiseLoss": "training.listwise",
    "listwise_ap": "training.listwise",
    "listwise_ap_loss": "training.listwise",
}

__all__ = [
    "ListwiseAPLoss",
    "ListwiseLoss",
    "listwise_ap",
    "listwise_ap_loss",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"rankmill.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
