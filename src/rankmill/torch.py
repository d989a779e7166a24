"""Listwise average precision as a loss, also of NumPy arrays, and a metric of torchmetrics."""

from typing import TYPE_CHECKING

from rankmill.package import handed_on

if TYPE_CHECKING:
    from rankmill.adapters.torch.listwise import ListwiseLoss as ListwiseLoss
    from rankmill.adapters.torch.listwise import listwise_ap as listwise_ap
    from rankmill.adapters.torch.listwise import listwise_ap_loss as listwise_ap_loss
    from rankmill.adapters.torch.loss import ListwiseAPLoss as ListwiseAPLoss
    from rankmill.adapters.torch.ranking_metric import RankingMetric as RankingMetric

# Public name -> the module that defines it.
_HOMES = {
    "ListwiseAPLoss": "adapters.torch.loss",
    "ListwiseLoss": "adapters.torch.listwise",
    "RankingMetric": "adapters.torch.ranking_metric",
    "listwise_ap": "adapters.torch.listwise",
    "listwise_ap_loss": "adapters.torch.listwise",
}
__all__ = [*_HOMES]
__getattr__, __dir__ = handed_on(
    __name__, _HOMES, needs={"ListwiseAPLoss": "torch", "RankingMetric": "torchmetrics"}
)
