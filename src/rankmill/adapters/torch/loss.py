"""Losses for PyTorch. They need the extra ``torch``."""

from typing import Any

from rankmill.adapters.torch.listwise import checked_binning, listwise_ap_loss
from rankmill.columns.objects import numpy_of
from rankmill.errors import UsageError, install

try:
    import torch
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ImportError(
        f"rankmill.adapters.torch.loss needs PyTorch, which is not installed: {install('torch')}"
    ) from error


class ListwiseAPLoss(torch.nn.Module):
    r"""One minus the mean average precision over soft bins of scores, as a loss for training.

    `rankmill.torch.listwise_ap` documents the formula. `listwise_ap_loss` documents
    which queries are left out of the mean, and the derivative at kinks. The compiled kernel
    computes the value and the gradient together on the CPU. A tensor on another device is copied
    to the CPU, and its gradient is copied back. The gradient cannot be differentiated again.

    Parameters
    ----------
    bins : int
        The number of bins, 2 or more.
    low, high : float
        The centres of the last and the first bin. For cosine similarities use -1 and 1, or 0 and 1.
    tied : bool
        Whether to compute tie-aware AP.

    Raises
    ------
    UsageError
        As `listwise_ap`.

    Examples
    --------
    >>> import torch
    >>> from rankmill.torch import ListwiseAPLoss
    >>> loss = ListwiseAPLoss(bins=2)
    >>> loss
    ListwiseAPLoss(bins=2, low=0.0, high=1.0, tied=False)
    >>> scores = torch.tensor([[0.75, 0.25]], requires_grad=True)
    >>> value = loss(scores, torch.tensor([[1, 0]]))
    >>> value.backward()
    >>> value.item(), scores.grad
    (0.3125, tensor([[-0.4375,  0.5625]]))
    """

    def __init__(
        self, bins: int = 25, low: float = 0.0, high: float = 1.0, *, tied: bool = False
    ) -> None:
        super().__init__()
        self._binning = checked_binning(bins, low, high, tied)

    def forward(
        self,
        scores: torch.Tensor,
        relevance: torch.Tensor,
        weights: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Return the loss of a batch.

        Parameters
        ----------
        scores : Tensor of a floating dtype, shape (queries, items)
            Higher is more relevant. The loss is computed in float64.
        relevance : Tensor of any dtype, shape (queries, items)
            1 if the item is relevant, else 0.
        weights : Tensor, shape (queries,), optional
            The weight of each query, 0 or more.

        Returns
        -------
        Tensor, a scalar on the device of `scores`
            float64 if `scores` are float64, else float32; a loss in half precision could overflow
            when it is scaled.

        Raises
        ------
        InputError
            As `listwise_ap_loss`.
        UsageError
            If an argument is not such a tensor, or `relevance` or `weights` require a gradient.
        """
        _check_tensors(scores, relevance, weights)
        if torch.is_grad_enabled() and scores.requires_grad:
            value: torch.Tensor = _Differentiable.apply(scores, relevance, weights, self._binning)
            return value
        return _compute(scores, relevance, weights, self._binning, gradient=False)[0]

    def extra_repr(self) -> str:
        """Return the settings for the module's repr."""
        return ", ".join(f"{name}={value}" for name, value in self._binning._asdict().items())


class _Differentiable(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, scores: torch.Tensor, relevance: torch.Tensor, weights: Any, binning: Any
    ) -> torch.Tensor:
        loss, gradient = _compute(scores, relevance, weights, binning, gradient=True)
        ctx.save_for_backward(scores, gradient)
        return loss

    @staticmethod
    def backward(ctx: Any, upstream: torch.Tensor) -> tuple[Any, ...]:
        scores, gradient = ctx.saved_tensors
        # The gradient is scaled before it is rounded, because small derivatives become 0 in half
        # precision. NumPy scales it, because starting torch's threads would take longer.
        scaled = torch.from_numpy(gradient.numpy() * upstream.item())
        scaled = scaled.to(scores.device, scores.dtype)
        if torch.is_grad_enabled():  # True only if the caller wants a graph of the gradient
            scaled = _NotAgain.apply(scaled, scores)
        return scaled, None, None, None


class _NotAgain(torch.autograd.Function):
    """Ties a gradient to its scores, so differentiating it again is an error and not zero.

    torch's own once_differentiable raises no error if the upstream gradient is constant.
    """

    @staticmethod
    def forward(ctx: Any, gradient: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        return gradient.clone()

    @staticmethod
    def backward(ctx: Any, upstream: torch.Tensor) -> Any:
        raise UsageError(
            "the gradient of ListwiseAPLoss cannot be differentiated again; expected one backward "
            "pass: leave the loss out of what create_graph=True is for"
        )


def _compute(
    scores: torch.Tensor, relevance: torch.Tensor, weights: Any, binning: Any, gradient: bool
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Return the loss on the device of the scores, and the gradient on the CPU (float32 or 64)."""
    dtype = torch.float64 if scores.dtype == torch.float64 else torch.float32
    loss, slopes = listwise_ap_loss(
        numpy_of(scores.to(dtype=dtype)),
        numpy_of(relevance),
        *binning[:3],
        tied=binning.tied,
        weights=None if weights is None else numpy_of(weights),
        gradient=gradient,
    )
    value = torch.tensor(loss, dtype=dtype, device=scores.device)
    return value, torch.from_numpy(slopes) if gradient else None


def _check_tensors(scores: Any, relevance: Any, weights: Any) -> None:
    named = {"scores": scores, "relevance": relevance}
    if weights is not None:
        named["weights"] = weights
    for name, value in named.items():
        if not isinstance(value, torch.Tensor):
            raise UsageError(f"{name} are a {type(value).__name__}; expected a Tensor")
        if name != "scores" and value.requires_grad:
            raise UsageError(
                f"{name} require a gradient, but the loss has one for scores only: pass "
                f"{name}.detach()"
            )
    if not scores.is_floating_point():
        raise UsageError(f"scores are {scores.dtype}; expected a floating dtype")
