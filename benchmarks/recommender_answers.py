"""What libraries of recommenders say of a dump, as in `library_answers`, of which it goes on."""

from __future__ import annotations

import numpy as np

from library_answers import Dump, Names, Values, first, of_lists, pooled


def overlap_lenskit(dump: Dump, names: Names) -> dict[str, Values]:
    """The right items stand in the order of their gains, and first listed among equal ones."""
    from lenskit.data import ItemList
    from lenskit.metrics import GeometricRankWeight, rank_biased_overlap

    def value(query: str, name: str) -> float:
        gains, run = dump.labels[query], list(dump.run[query])
        places = {item: at for at, item in enumerate(run)}
        right = [item for item in gains if gains[item] > 0]
        ids = sorted(right, key=lambda item: (-gains[item], places.get(item, len(run)))), run
        one, other = (ItemList(item_ids=np.array(few, object), ordered=True) for few in ids)
        return float(rank_biased_overlap(one, other, GeometricRankWeight(0.85), n=3))

    return of_lists(dump, names, value)


def lists_lenskit(dump: Dump, names: Names) -> dict[str, Values]:
    from lenskit import metrics
    from lenskit.data import ItemList

    def value(query: str, name: str) -> float:
        ids = list(dump.run[query]), list(dump.labels[query])
        listed, test = (ItemList(item_ids=np.array(few, object), ordered=True) for few in ids)
        kind, _, cutoff = name.partition("@")
        if kind == "TestItemCount":  # an abstract class, of which there can be no object
            return float(metrics.TestItemCount.__call__(None, listed, test))
        measure = getattr(metrics, kind)(*([int(cutoff)] if cutoff else []))
        return float(measure.measure_list(listed, test))

    return of_lists(dump, names, value)


def lists_replay(dump: Dump, names: Names) -> dict[str, Values]:
    from replay import metrics

    found: dict[str, Values] = {}
    for metric, name in names.items():
        kind, _, summary = name.partition(", ")
        values = {}
        for query, run in dump.run.items():
            measure = getattr(metrics, kind)._get_metric_value_by_user
            (values[query],) = map(float, measure([5], list(dump.labels[query]), list(run)))
        one = np.array(list(values.values()))
        found[metric] = float(metrics.Median().cpu(one)) if summary else values
    return found


def cornac(dump: Dump, names: Names) -> dict[str, Values]:
    from cornac import metrics

    def value(query: str, name: str) -> float:
        gains, run = dump.labels[query], dump.run[query]
        ids = {item: number for number, item in enumerate({**run, **gains})}
        right = np.array([ids[item] for item in gains])
        kind, _, cutoff = name.partition("@")
        listed = np.array([ids[item] for item in run])
        return float(
            getattr(metrics, kind)(*([int(cutoff)] if cutoff else [])).compute(
                gt_pos=right,
                pd_rank=listed,
                item_indices=listed,
                pd_scores=np.array(list(run.values())),
            )
        )

    return of_lists(dump, names, value)


def recbole(dump: Dump, names: Names) -> dict[str, Values]:
    """Values of the first three predictions; it needs the names that NumPy had for float."""
    from unittest.mock import patch

    from recbole.evaluator import metrics

    config = {"topk": [3], "metric_decimal_place": 17, "tail_ratio": None}
    right, few = dump.labels, first(dump, 3)
    hits = np.array([[item in right[query] for item in listed] for query, listed in few.items()])
    labels = np.array([len(right[query]) for query in dump.run])
    found: dict[str, Values] = {}
    with patch.object(np, "float", float, create=True):
        for metric, name in names.items():
            measure = getattr(metrics, name)(config)
            given = [hits] if name in ("Hit", "MRR", "Precision") else [hits, labels]
            values = measure.metric_info(*given)[:, 2]
            found[metric] = dict(zip(dump.run, map(float, values), strict=True))
    return found


def pooled_recbole(dump: Dump, names: Names) -> dict[str, Values]:
    from recbole.evaluator import metrics

    config = {"metric_decimal_place": 17}
    right, scores = pooled(dump)
    ranks = []
    for query, run in dump.run.items():
        places = [at for at, item in enumerate(run, 1) if dump.labels[query].get(item, 0) > 0]
        ranks.append([sum(places), len(run), len(places)])
    sums, lengths, hits = np.array(ranks).T
    gauc = metrics.GAUC(config).metric_info(sums[:, None], lengths, hits)
    return {
        "gauc(by=hits)": float(gauc),
        "roc_auc": float(metrics.AUC(config).metric_info(scores, right.astype(int))),
        "log_loss": float(metrics.LogLoss(config).metric_info(scores, right.astype(int))),
    }


def catalogue_recbole(dump: Dump, names: Names) -> dict[str, Values]:
    """Its items are those of `WITH_PADDING`: it counts the padding."""
    from collections import Counter

    from recbole.evaluator import metrics

    config = {"topk": [3], "metric_decimal_place": 17}
    few = first(dump, 3).values()
    numbers = {item: at for at, item in enumerate(WITH_PADDING)}
    matrix = np.array([[numbers[item] for item in listed] for listed in few])
    trained = Counter(numbers[item] for items in dump.train.values() for item in items)
    popularity = metrics.AveragePopularity(config)
    counts = popularity.metric_info(popularity.get_pop(matrix, trained))
    return {
        "coverage@3": metrics.ItemCoverage(config).get_coverage(matrix, len(numbers)),
        "gini(of=N)@3": float(metrics.GiniIndex(config).get_gini(matrix, len(numbers))),
        "popularity@3": float(counts.mean(axis=0)[2]),
    }


WITH_PADDING = ["[PAD]", *(f"d{number:02}" for number in range(25))]


def elliot(dump: Dump, names: Names) -> dict[str, Values]:
    """Values of the first three predictions. No package index has it, but its repository does."""
    from collections import Counter, defaultdict
    from types import SimpleNamespace

    from elliot.evaluation import metrics
    from elliot.evaluation.relevance import relevance

    trained = Counter(item for items in dump.train.values() for item in items)
    given = SimpleNamespace(
        cutoff=3,
        num_items=len(dump.items),
        relevance=relevance.Relevance(dump.labels, 0 if "nDCGRendle2020" in names.values() else 1),
        data=SimpleNamespace(train_dict={u: dict.fromkeys(of) for u, of in dump.train.items()}),
        pop=SimpleNamespace(get_pop_items=lambda: defaultdict(int, trained)),
    )
    run = {query: list(listed.items()) for query, listed in dump.run.items()}
    found: dict[str, Values] = {}
    for metric, name in names.items():
        kind = metrics.parse_metric(name)
        more = [{"beta": 2}] if name == "DSC" else []
        measure = kind(run, None, None, given, *more)
        if name in ("SEntropy", "ARP", "EFD", "EPC"):
            found[metric] = float(measure.eval())
        else:
            found[metric] = {query: float(one) for query, one in measure.eval_user_metric().items()}
    return found
