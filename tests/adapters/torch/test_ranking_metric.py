"""RankingMetric: equal to evaluate and to the metrics of torchmetrics, on one rank and on two."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch (extra torch) is not installed")
torchmetrics = pytest.importorskip("torchmetrics", reason="torchmetrics is not installed")

from conftest import tells  # noqa: E402

import rankmill  # noqa: E402
from rankmill import InputError, UsageError  # noqa: E402
from rankmill.arrays import from_indexes  # noqa: E402
from rankmill.torch import RankingMetric  # noqa: E402


def flat(seed: int, *, items: int = 600, graded: bool = False) -> tuple[Any, Any, Any]:
    """Scores above 0 and all different, targets, and the queries they belong to, in any order."""
    generator = torch.Generator().manual_seed(seed)
    preds = (torch.randperm(items, generator=generator) + 1) / items
    target = torch.randint(0, 4 if graded else 2, (items,), generator=generator)
    target *= torch.rand(items, generator=generator) < 0.3
    return preds, target, torch.randint(0, 50, (items,), generator=generator) - 10


def batches(held: tuple[Any, ...], parts: int = 7) -> list[tuple[Any, ...]]:
    return list(zip(*(one.tensor_split(parts) for one in held), strict=True))


ZERO = {"no_relevant": "zero"}
retrieval = torchmetrics.retrieval
PEERS = [
    ("map", "torchmetrics", retrieval.RetrievalMAP()),
    ("map@5", "torchmetrics", retrieval.RetrievalMAP(top_k=5)),
    ("map@5", {**ZERO, "ap_divisor": "hits"}, retrieval.RetrievalMAP(top_k=5)),
    ("first_hit@3", "torchmetrics", retrieval.RetrievalMRR(top_k=3)),
    ("precision@4", "torchmetrics", retrieval.RetrievalPrecision(top_k=4)),
    ("hit@4", "torchmetrics", retrieval.RetrievalHitRate(top_k=4)),
    ("recall@4", ZERO, retrieval.RetrievalRecall(top_k=4)),
    ("ndcg@6", ZERO, retrieval.RetrievalNormalizedDCG(top_k=6)),
    ("rprec", ZERO, retrieval.RetrievalRPrecision()),
    ("map", "default", retrieval.RetrievalMAP(empty_target_action="skip")),
]


@pytest.mark.parametrize(("text", "semantics", "peer"), PEERS)
def test_values_are_those_of_torchmetrics(text: str, semantics: Any, peer: Any) -> None:
    held = flat(1, graded=text.startswith("ndcg"))
    metric, peer = RankingMetric(text, semantics), copy.deepcopy(peer)
    for one in batches(held):
        metric.update(*one)
        peer.update(*one)
    assert metric.compute().item() == pytest.approx(peer.compute().item(), abs=2e-7)
    whole = rankmill.evaluate(*from_indexes(*held), text, semantics=semantics)
    assert metric.compute().item() == whole[text]
    metric.reset()
    metric.update(*batches(held)[0])
    first = rankmill.evaluate(*from_indexes(*batches(held)[0]), text, semantics=semantics)
    assert metric.compute().item() == first[text]


LISTS = [[1, 1, 1], [0, 0, 0], [1, 0, 1, 0], [1, 1, 0, 0, 1], [0, 1]]


@pytest.mark.parametrize("k", [None, 1, 2, 3])
def test_queries_with_items_of_one_kind(k: int | None) -> None:
    """Also among the first k."""
    target = torch.tensor([one for row in LISTS for one in row])
    indexes = torch.tensor([q for q, row in enumerate(LISTS) for _ in row])
    preds = 1 / (1 + torch.arange(len(target)))
    at = f"@{k}" if k else ""
    for text, semantics, peer in (
        (f"fallout{at}", {"no_relevant": "scored"}, retrieval.RetrievalFallOut("neg", top_k=k)),
        (f"pair_accuracy{at}", ZERO, retrieval.RetrievalAUROC(top_k=k)),
    ):
        found = RankingMetric(text, semantics)(preds, target, indexes)
        assert found.item() == pytest.approx(peer(preds, target, indexes=indexes).item(), abs=1e-7)
    allowed = {"preset": "torchmetrics", "no_relevant": "scored"}
    ours = RankingMetric(f"fallout{at}", allowed)(preds, target, indexes).item()
    assert ours == RankingMetric(f"fallout{at}", {"no_relevant": "scored"})(preds, target, indexes)
    for text, told in ((f"fallout{at}", "no_relevant='scored'"), (f"auc{at}", "pair_accuracy@10")):
        with pytest.raises(UsageError, match=told):
            RankingMetric(text, "torchmetrics")


@pytest.mark.parametrize("semantics", ["default", "torchmetrics", {"unlabelled": "zero"}])
def test_a_mean_of_no_query_is_0_as_in_torchmetrics(semantics: Any) -> None:
    metric = RankingMetric("map@5", semantics)
    for peer in (retrieval.RetrievalMAP(top_k=5), retrieval.RetrievalMAP("skip", top_k=5)):
        none = torch.tensor([0.5, 0.25]), torch.tensor([0, 0]), torch.tensor([0, 1])
        assert metric(*none) == peer(*none[:2], indexes=none[2]) == 0
        some = none[0], torch.tensor([0, 1]), torch.tensor([1, 1])
        assert metric(*some) == peer(*some[:2], indexes=some[2])


def test_several_metrics_are_a_dict() -> None:
    metric = RankingMetric(["map@5", "ndcg@5"])
    metric.update(*flat(2))
    found = rankmill.evaluate(*from_indexes(*flat(2)), ["map@5", "ndcg@5"]).metrics
    assert {name: value.item() for name, value in metric.compute().items()} == found
    collection = torchmetrics.MetricCollection({"ours": RankingMetric("map@5")})
    collection.update(*flat(2))
    assert collection.compute()["ours"].item() == found["map@5"]


def test_it_is_a_metric_of_torchmetrics() -> None:
    held = flat(3)
    metric = RankingMetric("map@5")
    first = metric(*batches(held)[0])  # the value of the batch, and an update
    assert first == RankingMetric("map@5")(*batches(held)[0])
    for one in batches(held)[1:]:
        pickle.loads(pickle.dumps(metric)).clone().update(*one)
        metric.update(*one)
    whole = RankingMetric("map@5")
    whole.update(*(one.reshape(20, 30) for one in held))
    assert metric.compute() == whole.compute()
    assert metric.compute().dtype == torch.float64


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_scores_of_every_dtype_keep_their_values(dtype: Any) -> None:
    preds, target, indexes = flat(4, items=200)
    preds = preds.to(dtype).requires_grad_()
    metric = RankingMetric("map@5", {"order": "expected"})
    metric.update(preds, target.bool(), indexes.int())
    rows = preds.detach().double().numpy(), target.numpy(), indexes.numpy()
    expected = rankmill.evaluate(*from_indexes(*rows), "map@5", semantics={"order": "expected"})
    assert metric.compute().item() == expected["map@5"]
    assert not metric.preds[0].requires_grad


def test_ranks_exchange_what_they_hold() -> None:
    """The gathering function stands for the other rank: it returns what both of them hold."""
    held = flat(5)
    mine, other = batches(held, 2)
    names = iter(("preds", "target", "indexes"))
    of_other = dict(zip(("preds", "target", "indexes"), other, strict=True))

    def gather(state: Any, group: Any = None) -> list[Any]:
        return [state, of_other[next(names)]]

    metric = RankingMetric("map@5", dist_sync_fn=gather, distributed_available_fn=lambda: True)
    for part in batches(mine, 3):
        metric.update(*part)
    assert metric.compute().item() == rankmill.evaluate(*from_indexes(*held), "map@5")["map@5"]
    assert len(metric.preds) == 3  # unsynced again


def _rank(rank: int, path: str, held: tuple[Any, ...], out: Any) -> None:
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{path}", rank=rank, world_size=2
    )
    metric = RankingMetric("map@5,ndcg@5")
    for part in batches(batches(held, 2)[rank], 2 + rank):
        metric.update(*part)
    out.put((rank, {name: value.item() for name, value in metric.compute().items()}))
    torch.distributed.destroy_process_group()


@pytest.mark.long
def test_two_processes_have_the_value_of_one(tmp_path: Any) -> None:
    held = flat(6)
    out = torch.multiprocessing.get_context("spawn").SimpleQueue()
    torch.multiprocessing.spawn(_rank, (str(tmp_path / "store"), held, out), nprocs=2)
    expected = rankmill.evaluate(*from_indexes(*held), "map@5,ndcg@5").metrics
    assert dict(out.get() for _ in range(2)) == {0: expected, 1: expected}


def test_lists_and_arrays_are_taken_as_tensors() -> None:
    metric = RankingMetric("map@5")
    metric.update([0.25, 0.75], [1, 0], [0, 0])
    metric.update(*map(np.array, ([0.5], [True], [1])))
    assert metric.compute().item() == 0.75


def test_what_is_said_of_bad_updates() -> None:
    preds, target, indexes = flat(7)
    metric = RankingMetric("map@5")
    with pytest.raises(InputError) as caught:
        metric.update(preds, target[:5], indexes)
    tells(caught.value, ["target has the shape (5,), and preds (600,)"])
    with pytest.raises(InputError) as caught:
        metric.update(preds, target, indexes.float())
    tells(caught.value, ["indexes holds float32; expected integers"])
    with pytest.raises(InputError, match=r"layout torch.sparse_coo is not read"):
        metric.update(preds.to_sparse(), target, indexes)
    with pytest.raises(InputError) as caught:
        from_indexes(np.array(["a"]), [1], [0])
    tells(caught.value, ["preds holds <U1; expected numbers"])
    with pytest.raises(UsageError):
        RankingMetric("no_such_metric")
    with pytest.raises(UsageError):
        RankingMetric("recall@5", "torchmetrics")
    with pytest.raises(InputError, match="no update before compute"):
        metric.compute()
    metric.update(preds.log() * np.nan, target, indexes)
    with pytest.raises(InputError, match="score' is nan"):
        metric.compute()
