"""Time the listwise AP loss, forward and backward, beside PyTorch's autograd of its formulas.

    python benchmarks/listwise.py [--queries 256] [--items 4096] [--threads 2] [--rounds 15]

Both sides get the same float32 scores and the same number of threads, and take turns. The script
compares their values, their gradients and the medians of their times, and prints a markdown table.
It needs the extra ``torch``.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numba
import torch

from rankmill import threads as workers
from rankmill.adapters.torch.loss import ListwiseAPLoss

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))
from listwise_autograd import dense_loss, scattered_loss

RELEVANT = 0.05
TOLERANCE = 1e-6
Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def batch(queries: int, items: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Scores like the cosine similarities of a model: relevant items higher, all within -1 to 1.

    None is at an end, where the loss bends and programs differ in which derivative they take.
    """
    generator = torch.Generator().manual_seed(0)
    relevance = torch.rand(queries, items, generator=generator) < RELEVANT
    relevance[:, 0] = True
    scores = torch.randn(queries, items, generator=generator) * 0.2 + 0.3 * relevance
    return scores.tanh().requires_grad_(), relevance


def forward_and_backward(loss: Loss, scores: torch.Tensor, relevance: torch.Tensor) -> float:
    """Seconds of one step; leaves the gradient in the scores."""
    scores.grad = None
    start = time.perf_counter()
    loss(scores, relevance).backward()
    return time.perf_counter() - start


def off_by(ours: Loss, theirs: Loss, scores: torch.Tensor, relevance: torch.Tensor) -> float:
    """The largest difference of values and of gradients, theirs computed in float64."""
    exact = scores.detach().double().requires_grad_()
    values = []
    for loss, given in ((ours, scores), (theirs, exact)):
        given.grad = None
        values.append(loss(given, relevance))
        values[-1].backward()
    gradients = (scores.grad.double() - exact.grad).abs().max()
    return max(abs(values[0].item() - values[1].item()), gradients.item())


def compare(
    name: str, ours: Loss, theirs: Loss, rounds: int, scores: torch.Tensor, relevance: torch.Tensor
) -> bool:
    """Print a row; return whether both sides agree."""
    difference = off_by(ours, theirs, scores, relevance)
    for loss in (ours, theirs):  # the first call is slower: it may compile and allocates memory
        forward_and_backward(loss, scores, relevance)
    times = [
        [forward_and_backward(loss, scores, relevance) for loss in (ours, theirs)]
        for _ in range(rounds)
    ]
    mine, other = (statistics.median(side) for side in zip(*times, strict=True))
    row = [
        name,
        f"{mine * 1000:,.2f} ms",
        f"{other * 1000:,.2f} ms",
        f"{other / mine:.1f} ×",
        f"{difference:.1e}",
    ]
    print("| " + " | ".join(row) + " |", flush=True)
    return difference <= TOLERANCE


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for option, default in (("queries", 256), ("items", 4096), ("threads", 2), ("rounds", 15)):
        parser.add_argument(f"--{option}", type=int, default=default, help="(%(default)s)")
    options = parser.parse_args()
    if min(vars(options).values()) < 1:
        parser.error("all numbers must be at least 1")
    if options.threads > workers.available_cpus():
        parser.error(f"this process may use {workers.available_cpus()} CPUs only")
    if hasattr(os, "sched_setaffinity"):  # rankmill's number of threads follows the CPU affinity
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.threads])
    torch.set_num_threads(options.threads)
    scores, relevance = batch(options.queries, options.items)
    print(
        f"{options.queries} queries × {options.items:,} items, float32, {options.threads} threads; "
        f"{platform.machine()}, Python {platform.python_version()}, torch {torch.__version__}, "
        f"numba {numba.__version__}; medians of {options.rounds} alternating rounds.\n"
    )
    print("| loss, and what it is beside | rankmill | autograd | ratio | off by |")
    print("| --- | ---: | ---: | ---: | ---: |")
    agreed = []
    for name, tied in (("AP", False), ("TAP", True)):
        ours = ListwiseAPLoss(low=-1.0, tied=tied)
        for way, rival in (("all bins", dense_loss), ("scattered", scattered_loss)):

            def theirs(s: torch.Tensor, r: torch.Tensor, rival=rival, tied=tied) -> torch.Tensor:
                return rival(s, r, low=-1.0, tied=tied)

            agreed.append(
                compare(f"{name}, {way}", ours, theirs, options.rounds, scores, relevance)
            )
    return int(not all(agreed))


if __name__ == "__main__":
    sys.exit(main())
