"""The loss for PyTorch: equal to autograd of the formulas, and a well-behaved module."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch (extra torch) is not installed")

from conftest import tells  # noqa: E402

import rankmill.adapters.torch.loss  # noqa: E402
from listwise_autograd import dense_loss, scattered_loss  # noqa: E402
from rankmill import InputError, UsageError  # noqa: E402
from rankmill.adapters.torch.listwise import listwise_ap_loss  # noqa: E402
from rankmill.adapters.torch.loss import ListwiseAPLoss  # noqa: E402
from rankmill.errors import install  # noqa: E402

ROOT = Path(__file__).resolve().parents[2].parent


def batch(
    queries: int = 12, items: int = 50, dtype: torch.dtype = torch.float64, seed: int = 0
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return scores with a gradient, some beyond both ends, and a relevant item in each query."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.rand(queries, items, generator=generator, dtype=torch.float64) * 1.2 - 0.1
    relevance = torch.rand(queries, items, generator=generator) < 0.2
    relevance[:, 0] = True
    return scores.to(dtype).requires_grad_(), relevance


def gradient_of(scores: torch.Tensor, relevance: torch.Tensor) -> torch.Tensor:
    return torch.autograd.grad(ListwiseAPLoss()(scores, relevance), scores)[0]


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("settings", [(25, 0.0, 1.0), (7, -0.5, 0.9)])
@pytest.mark.parametrize("autograd", [dense_loss, scattered_loss])
def test_equals_autograd_of_the_formulas(tied, weighted, settings, autograd):
    scores, relevance = batch()
    weights = torch.linspace(0, 2, len(scores), dtype=torch.float64) if weighted else None
    expected = autograd(scores, relevance, *settings, tied, weights)
    (wanted,) = torch.autograd.grad(expected, scores)
    found = ListwiseAPLoss(*settings, tied=tied)(scores, relevance, weights)
    found.backward()
    assert found.item() == pytest.approx(expected.item(), abs=1e-12)
    assert torch.allclose(scores.grad, wanted, rtol=1e-9, atol=1e-12)
    assert wanted.abs().max() > 1e-4


def test_float32_is_near_autograd_in_float64():
    scores, relevance = batch(dtype=torch.float32)
    loss = ListwiseAPLoss()(scores, relevance)
    loss.backward()
    exact = scores.detach().double().requires_grad_()
    expected = dense_loss(exact, relevance)
    expected.backward()
    assert loss.dtype == scores.grad.dtype == torch.float32
    assert loss.item() == pytest.approx(expected.item(), abs=1e-7)
    assert torch.allclose(scores.grad.double(), exact.grad, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_gradcheck(tied, weighted):
    generator = torch.Generator().manual_seed(3)
    # Well between the centres of 9 bins, where the loss has no kink.
    places = torch.randint(-1, 9, (4, 11), generator=generator)
    scores = (places + 0.1 + 0.8 * torch.rand(4, 11, generator=generator)).double() / 8
    relevance = torch.rand(4, 11, generator=generator) < 0.4
    relevance[:3, 0] = True
    relevance[3] = False
    weights = torch.tensor([1.0, 0.5, 2.0, 1.0]) if weighted else None
    module = ListwiseAPLoss(9, tied=tied)
    assert torch.autograd.gradcheck(
        lambda x: module(x, relevance, weights), scores.requires_grad_(), eps=1e-6, atol=1e-7
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_scales_before_it_rounds(dtype):
    scores, relevance = batch(dtype=dtype)
    loss = ListwiseAPLoss()(scores, relevance)
    assert loss.dtype == torch.float32
    scale = 2.0**15
    (loss * scale).backward()
    assert scores.grad.dtype == dtype
    _, gradient = listwise_ap_loss(scores.detach().float().numpy(), relevance.numpy())
    wanted = (torch.from_numpy(gradient) * scale).to(dtype)
    assert torch.equal(scores.grad, wanted)
    assert (wanted != 0).any()


def test_the_upstream_gradient_scales():
    scores, relevance = batch()
    loss = ListwiseAPLoss()(scores, relevance)
    (once,) = torch.autograd.grad(loss, scores, retain_graph=True)
    (thrice,) = torch.autograd.grad(3 * loss + 1, scores)
    assert torch.equal(thrice, once * 3)


def test_inputs_that_are_not_contiguous():
    scores, relevance = batch()
    wide = torch.stack([scores.detach(), torch.zeros_like(scores)], dim=2)
    strided = wide[:, :, 0].requires_grad_()
    assert not strided.is_contiguous()
    transposed = relevance.t().contiguous().t()
    losses = [ListwiseAPLoss()(scores, relevance), ListwiseAPLoss()(strided, transposed)]
    for loss in losses:
        loss.backward()
    assert losses[0].item() == losses[1].item()
    assert torch.equal(strided.grad, scores.grad)


def test_gradient_flows_on_through_a_model():
    generator = torch.Generator().manual_seed(0)
    queries = torch.randn(8, 16, generator=generator)
    items = torch.randn(30, 16, generator=generator)
    relevance = torch.rand(8, 30, generator=generator) < 0.3
    relevance[:, 0] = True
    layer = torch.nn.Linear(16, 16)
    optimiser = torch.optim.Adam(layer.parameters(), lr=0.01)
    criterion = ListwiseAPLoss(low=-1.0)
    losses = []
    for _ in range(30):
        scores = torch.nn.functional.cosine_similarity(layer(queries)[:, None], items, dim=2)
        loss = criterion(scores, relevance)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] - 0.1


@pytest.mark.parametrize("kind", [torch.int64, torch.uint8, torch.float32, torch.bfloat16])
def test_kinds_of_relevance(kind):
    scores, relevance = batch()
    expected = ListwiseAPLoss()(scores, relevance)
    assert ListwiseAPLoss()(scores, relevance.to(kind)).item() == expected.item()


def test_no_gradient_is_computed_where_none_is_wanted(monkeypatch):
    asked = []

    def watched(*arguments, gradient, **settings):
        asked.append(gradient)
        return listwise_ap_loss(*arguments, gradient=gradient, **settings)

    monkeypatch.setattr(rankmill.adapters.torch.loss, "listwise_ap_loss", watched)
    scores, relevance = batch()
    with torch.no_grad():
        quiet = ListwiseAPLoss()(scores, relevance)
    constant = ListwiseAPLoss()(scores.detach(), relevance)
    loss = ListwiseAPLoss()(scores, relevance)
    assert asked == [False, False, True]
    assert [one.requires_grad for one in (quiet, constant, loss)] == asked
    assert quiet.item() == constant.item() == loss.item()


def test_a_second_derivative_is_an_error():
    scores, relevance = batch()
    (gradient,) = torch.autograd.grad(
        ListwiseAPLoss()(scores, relevance), scores, create_graph=True
    )
    assert torch.equal(gradient, gradient_of(scores, relevance))
    penalty = gradient.square().sum() + scores.square().sum()
    with pytest.raises(UsageError, match="cannot be differentiated again"):
        torch.autograd.grad(penalty, scores, retain_graph=True)
    with pytest.raises(UsageError, match="cannot be differentiated again"):
        penalty.backward()


def test_is_a_module_without_state():
    module = ListwiseAPLoss(bins=10, low=-1, tied=True)
    assert repr(module) == "ListwiseAPLoss(bins=10, low=-1.0, high=1.0, tied=True)"
    assert module.state_dict() == {}
    assert list(module.parameters()) == []
    with pytest.raises(UsageError, match="bins is 1"):
        ListwiseAPLoss(bins=1)


SCORES = torch.tensor([[0.5, 0.2]])
MARKS = torch.tensor([[1, 0]])


@pytest.mark.parametrize(
    ("arguments", "error", "wanted"),
    [
        (([[0.5]], MARKS), UsageError, ["scores are a list", "Tensor"]),
        ((SCORES, [[1, 0]]), UsageError, ["relevance are a list", "Tensor"]),
        ((SCORES, MARKS, [1.0]), UsageError, ["weights are a list", "Tensor"]),
        ((MARKS, MARKS), UsageError, ["torch.int64", "floating"]),
        ((SCORES, MARKS.float().requires_grad_()), UsageError, ["relevance.detach()"]),
        ((SCORES, MARKS, torch.ones(1).requires_grad_()), UsageError, ["weights.detach()"]),
        ((SCORES[0], MARKS[0]), UsageError, ["1-dimensional", "(queries, items)"]),
        ((SCORES, MARKS[:, :1]), InputError, ["(1, 1)", "(1, 2)"]),
        ((SCORES * torch.nan, MARKS), InputError, ["score 0 of query 0 is nan"]),
        ((SCORES, MARKS * 0), InputError, ["none of 1 queries"]),
    ],
)
def test_bad_arguments(arguments, error, wanted):
    with pytest.raises(error) as caught:
        ListwiseAPLoss()(*arguments)
    tells(caught.value, wanted)


# ------------------------------------------------------------------ with and without PyTorch


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_only_its_own_module_loads_torch():
    code = "import rankmill, rankmill.adapters.torch.listwise, sys; print('torch' in sys.modules)"
    assert run_python(code).stdout == "False\n"


def test_without_torch_the_error_says_what_to_install():
    finished = run_python(
        "import sys; sys.modules['torch'] = None; import rankmill.adapters.torch.loss"
    )
    assert finished.returncode == 1
    last = finished.stderr.splitlines()[-1]
    assert last.startswith("ImportError: ")
    assert install("torch") in last


@pytest.mark.long
def test_the_benchmark_runs_and_both_sides_agree():
    command = [sys.executable, str(ROOT / "benchmarks" / "listwise.py")]
    command += ["--queries=4", "--items=64", "--threads=1", "--rounds=1"]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    rows = re.findall(r"^\| (.+?) \| [\d.,]+ ms \| ", finished.stdout, re.MULTILINE)
    assert len(rows) >= 2
