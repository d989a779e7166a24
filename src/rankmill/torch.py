"""Listwise average precision as a loss: a module of PyTorch, and the same of NumPy arrays."""

from typing import TYPE_CHECKING

from rankmill.homes import handed_on

if TYPE_CHECKING:
    from rankmill.adapters.torch.listwise import ListwiseLoss as ListwiseLoss
    from rankmill.adapters.torch.listwise import listwise_ap as listwise_ap
    from rankmill.adapters.torch.listwise import listwise_ap_loss as listwise_ap_loss
    from rankmill.adapters.torch.loss import ListwiseAPLoss as ListwiseAPLoss

__all__ = [
    "ListwiseAPLoss",
    "ListwiseLoss",
    "listwise_ap",
    "listwise_ap_loss",
]

# Public name -> the module that defines it.
__getattr__, __dir__ = handed_on(
    __name__,
    {
        "ListwiseAPLoss": "adapters.torch.loss",
        "ListwiseLoss": "adapters.torch.listwise",
        "listwise_ap": "adapters.torch.listwise",
        "listwise_ap_loss": "adapters.torch.listwise",
    },
)
