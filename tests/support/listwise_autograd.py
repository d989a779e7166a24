"""Listwise AP losses in plain PyTorch by autograd, written from the formulas.

`dense_loss` holds the weights of all items in all bins, as published code does; `scattered_loss`
adds each score to the two bins around it. The tests and benchmarks/listwise.py compare with both.
"""

from __future__ import annotations

import torch


def dense_loss(
    scores: torch.Tensor,
    relevance: torch.Tensor,
    bins: int = 25,
    low: float = 0.0,
    high: float = 1.0,
    tied: bool = False,
    weights: torch.Tensor | None = None,
) -> torch.Tensor:
    """One minus the mean (weighted) AP or TAP of queries that all have a relevant item."""
    width = (high - low) / (bins - 1)
    centres = torch.linspace(high, low, bins, dtype=scores.dtype)[:, None]
    share = (1 - (scores.clamp(low, high)[:, None, :] - centres).abs() / width).clamp(min=0)
    marks = relevance.to(scores.dtype)[:, None, :]
    return loss_of_histograms(share.sum(-1), (share * marks).sum(-1), tied, weights)


def scattered_loss(
    scores: torch.Tensor,
    relevance: torch.Tensor,
    bins: int = 25,
    low: float = 0.0,
    high: float = 1.0,
    tied: bool = False,
    weights: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return the same value, from two additions for each item."""
    place = (high - scores.clamp(low, high)) * ((bins - 1) / (high - low))
    above = place.detach().floor().clamp(0, bins - 2)
    share = place - above
    marks = relevance.to(scores.dtype)
    index = above.long()
    empty = torch.zeros(len(scores), bins, dtype=scores.dtype)
    n = empty.scatter_add(1, index, 1 - share).scatter_add(1, index + 1, share)
    hits = empty.scatter_add(1, index, marks * (1 - share)).scatter_add(1, index + 1, marks * share)
    return loss_of_histograms(n, hits, tied, weights)


def loss_of_histograms(
    n: torch.Tensor, hits: torch.Tensor, tied: bool, weights: torch.Tensor | None
) -> torch.Tensor:
    n_sum, hits_sum = n.cumsum(-1), hits.cumsum(-1)
    if tied:
        ratio = (hits - 1).clamp(min=0) / ((n - 1).clamp(min=0) + 1e-8)
        first = n_sum - n + 1
        base = hits_sum - hits + 1 - ratio * first
        terms = hits * (n * ratio + base * torch.log((n_sum + 1) / first)) / (n + 1e-8)
    else:
        terms = hits * hits_sum / (n_sum + 1e-16)
    ap = terms.sum(-1) / hits.sum(-1)
    return 1 - (ap if weights is None else ap * weights).mean()
