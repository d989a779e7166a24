"""A metric for loops of training, with the interface of torchmetrics."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from rankmill.engine.evaluate import evaluate
from rankmill.errors import InputError
from rankmill.semantics.semantics import Counting, Semantics
from rankmill.sources.memory.matrices import check_flat, from_indexes

try:
    import torch
    import torchmetrics
except ModuleNotFoundError as error:
    if error.name not in ("torch", "torchmetrics"):
        raise
    raise ImportError(
        "rankmill.torch.RankingMetric needs torchmetrics, which is not installed: "
        "pip install torchmetrics"
    ) from error


class RankingMetric(torchmetrics.Metric):
    """Metrics of ranked items as a metric of torchmetrics.

    The scores, targets and queries of all updates are kept, on the device where they are, as the
    retrieval metrics of torchmetrics keep them. Ranks of a distributed run exchange them, so that
    a query may have items in several batches and on several ranks, and the value is that of
    `rankmill.evaluate` on all of them. Equal scores stand in the order of updates and ranks; with
    the semantics ``order="expected"`` their order does not matter.

    Parameters
    ----------
    metrics : str or iterable of str
        As for `evaluate`.
    semantics : str, Semantics or mapping
        As for `evaluate`: "torchmetrics" counts as its own metrics do, with 0 for queries without a
        relevant item. Where these are left out, and no query has one, the value is 0, as there.
    **kwargs
        Arguments of `torchmetrics.Metric`, such as `dist_sync_on_step`.

    Raises
    ------
    InputError, UsageError
        As `rankmill.arrays.from_indexes` and `evaluate`.

    Examples
    --------
    >>> import torch
    >>> from rankmill.torch import RankingMetric
    >>> metric = RankingMetric("map@10")
    >>> metric.update(torch.tensor([0.2, 0.7]), torch.tensor([1, 0]), torch.tensor([0, 0]))
    >>> metric.update(torch.tensor([0.9]), torch.tensor([1]), torch.tensor([1]))
    >>> metric.compute()
    tensor(0.7500, dtype=torch.float64)
    """

    is_differentiable = False
    full_state_update = False

    def __init__(
        self, metrics: str | Iterable[str], semantics: Counting = "default", **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.metrics = metrics if isinstance(metrics, str) else tuple(metrics)
        self.semantics = Semantics.of(semantics)
        self._score(*map(torch.tensor, ([0.5], [1], [0])))  # tells now if there is no such metric
        for name in ("preds", "target", "indexes"):
            self.add_state(name, default=[], dist_reduce_fx="cat")

    def update(self, preds: torch.Tensor, target: torch.Tensor, indexes: torch.Tensor) -> None:
        """Add items: their scores, their targets and the numbers of their queries, of one shape."""
        check_flat(preds, target, indexes)
        self.preds.append(torch.as_tensor(preds).detach().flatten())
        self.target.append(torch.as_tensor(target).detach().flatten())
        self.indexes.append(torch.as_tensor(indexes).detach().flatten())

    def compute(self) -> torch.Tensor | dict[str, torch.Tensor]:
        """Return the value of all items so far, float64; of several metrics a dict of them."""
        states = self.preds, self.target, self.indexes
        if not all(map(len, states)):
            raise InputError(
                "there was no update before compute, and no items have no value: call update first"
            )
        found = self._score(*map(torchmetrics.utilities.dim_zero_cat, states))
        values = {
            name: torch.tensor(found[name], dtype=torch.float64, device=self.device)
            for name in found.metrics
        }
        return values if len(values) > 1 else next(iter(values.values()))

    def _score(self, preds: Any, target: Any, indexes: Any) -> Any:
        semantics = self.semantics
        if semantics.choices.no_relevant == "skip" and not bool((target > 0).any()):
            semantics = replace(semantics, no_relevant="zero")  # a mean of no query is 0 there
        sides = from_indexes(preds, target, indexes)
        return evaluate(*sides, self.metrics, semantics=semantics, per_query=False)
