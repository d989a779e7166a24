"""ece beside torchmetrics, also where confidences are on the edges of bins."""

from __future__ import annotations

import numpy as np
import pytest

import rankmill


def pooled(confidences: np.ndarray, correct: np.ndarray) -> tuple[dict[int, list[str]], dict]:
    """A query for each prediction."""
    labels = {q: ["right"] for q in range(len(correct))}
    items = np.where(correct, "right", "wrong").tolist()
    run = {q: {items[q]: one} for q, one in enumerate(confidences.tolist())}
    return labels, run


@pytest.mark.parametrize("bins", [1, 4, 10, 15])
@pytest.mark.parametrize("edges", [False, True])
def test_ece_is_that_of_torchmetrics_but_for_the_edges(bins: int, edges: bool) -> None:
    """A bin includes its upper end, and there its lower one: just below the edge both agree."""
    torch = pytest.importorskip("torch")
    calibration = pytest.importorskip("torchmetrics.functional.classification")
    draw = np.random.default_rng(bins)
    inner = draw.random(400)
    confidences = np.append(inner, np.arange(bins + 1) / bins) if edges else inner
    correct = draw.random(len(confidences)) < confidences**2
    found = rankmill.evaluate(*pooled(confidences, correct), f"ece(bins={bins})")
    below = np.maximum(np.nextafter(confidences, -1.0), 0.0)
    peer = calibration.binary_calibration_error(
        torch.tensor(below), torch.tensor(correct.astype(np.int64)), n_bins=bins
    )
    assert found[f"ece(bins={bins})"] == pytest.approx(peer.item(), rel=1e-12)


def test_the_edges_of_bins_are_those_that_the_page_tells() -> None:
    """0.5 is in the second of four bins here, and in the third one in torchmetrics."""
    torch = pytest.importorskip("torch")
    calibration = pytest.importorskip("torchmetrics.functional.classification")
    confidences, correct = np.array([0.375, 0.5, 0.625]), np.array([True, False, True])
    found = rankmill.evaluate(*pooled(confidences, correct), "ece(bins=4)")
    assert found["ece(bins=4)"] == pytest.approx((abs(1 - 0.875) + abs(1 - 0.625)) / 3)
    peer = calibration.binary_calibration_error(
        torch.tensor(confidences), torch.tensor([1, 0, 1]), n_bins=4
    )
    assert peer.item() == pytest.approx((abs(1 - 0.375) + abs(1 - 1.125)) / 3)
