"""Cases in which Spark has to give the bits of one machine, each a function of a session.

`benchmarks/spark_cases.py` runs them all, `test_spark_cases.py` some of them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

import rankmill
import rankmill.spark
from data import KINDS, QUERIES, alike, frame_of, same_queries, same_verdict, same_with, tables
from flat import flat
from harm import harming
from rankmill import Catalogue, Labels
from rankmill.errors import UsageError
from rankmill.metrics.needs import ORDERED_TIES
from rankmill.metrics.registry import check_defined, parse
from rankmill.semantics.presets import PRESETS
from rankmill.spark import evaluation, systems
from rankmill.spark.exchange import tasks
from strategies import metric_names

SHAPES = [(a, b) for a in ("wide", "long") for b in ("wide", "long")]
METRICS = ["map@3", "gap@2", "gap", "first_hit", "recall@3:micro"]


class Case(NamedTuple):
    """A case: its group, what is special about it, what it does, and whether executors are killed.

    ``run`` takes a session, and raises AssertionError where bits differ.
    """

    group: str
    about: str
    run: Callable[[Any], None]
    harms: bool = False

    @property
    def name(self) -> str:
        return f"{self.group}: {self.about}"


def metrics_of(name: str) -> list[str]:
    """All metrics that a preset defines, at one cutoff and without one."""
    semantics = PRESETS[name].semantics
    found = []
    for metric in metric_names([3]):
        try:
            check_defined(parse(metric), semantics)
        except UsageError:
            continue
        spec = parse(metric).spec
        if semantics.counts_without_labels and spec.without_labels != "scored":
            continue  # queries without labels are refused
        if not (metric.startswith("gap") and semantics.gap_ties in ORDERED_TIES):
            found.append(metric)
    return found


# ------------------------------------------------------------------ evaluate


def evaluated(
    session: Any,
    both: tuple[Any, Any],
    metrics: Any,
    how: dict[str, Any] | None = None,
    spread: int = 0,
    **on_spark: Any,
) -> None:
    """Evaluate here and there; `spread` deals the rows of each side to so many partitions."""
    frames = [frame_of(session, one) for one in both]
    frames = [one.repartition(spread) for one in frames] if spread else frames
    how = how or {}
    found = flat(rankmill.spark.evaluate, *frames, metrics, **how, **on_spark)
    whole = flat(rankmill.evaluate, *both, metrics, **how)
    same_with(found, whole)
    if on_spark.get("per_query"):
        same_queries(found.per_query, whole.per_query)


def preset(session: Any, number: int, turn: int) -> None:
    name = list(PRESETS)[number]
    semantics = PRESETS[name].semantics
    if "error" in (semantics.unpredicted, semantics.unlabelled):
        semantics = replace(semantics, unpredicted="zero", unlabelled="skip")
    both = tables([*KINDS][(number + turn) % len(KINDS)], *SHAPES[(number + turn) % 4], number)
    metrics = metrics_of(name)
    assert len(metrics) > 5
    evaluated(session, both, metrics, {"semantics": semantics}, partitions=3)


def several(session: Any, shape: str, partitions: int | None) -> None:
    labels, wide = tables("strings", shape, "wide")
    runs = {"a.b": wide, "": tables("strings", shape, "long", 1)[1], "c": wide.slice(0, 9)}
    frames = {name: frame_of(session, one) for name, one in runs.items()}
    how: dict[str, Any] = {"by": "weight"}
    found = rankmill.spark.evaluate_runs(
        frame_of(session, labels), frames, METRICS[:1], partitions=partitions, per_query=True, **how
    )
    whole = rankmill.evaluate_runs(labels, runs, METRICS[:1], **how)
    for name, one in found.items():
        same_with(one, whole[name])
        same_queries(one.per_query, whole[name].per_query)


def odd(session: Any, shape: str, semantics: Any) -> None:
    """Null items, repeats, empty lists, and lists that end in -1."""
    labels = pa.table({"query": [1, 2, 3], "item": [[1], [2, 2], None]})
    rows = [(1, [None, 1, 1, -1]), (2, [5, None, 2, -1]), (3, [])]
    if shape == "long":
        predictions = pa.Table.from_pylist(
            [
                {"query": query, "item": item, "score": 1 - rank / 8}
                for query, items in rows
                for rank, item in enumerate(items)
            ]
        )
    else:
        scores = [[1 - rank / 8 for rank in range(len(items))] for _, items in rows]
        lists = pa.array([items for _, items in rows], pa.list_(pa.int64()))
        columns = {"item": lists, "score": pa.array(scores, pa.list_(pa.float64()))}
        predictions = pa.table({"query": [1, 2, 3], **columns})
    for how in ({}, {"padding": "-1"}):
        evaluated(session, (labels, predictions), METRICS, {"semantics": semantics, **how})


def own_metric(session: Any, partitions: int) -> None:
    code = (
        "import rankmill\n\ndef count(ranks):\n    return len(ranks)\n\n"
        '@rankmill.metric("travelled@k", range=(0, 9), better="higher", compile=False)\n'
        "def travelled(ranks, k, scale=1.0):\n    return scale * count(ranks) / k\n"
    )
    from rankmill.metrics import packages, registry

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "own_metrics.py"
        path.write_text(code)
        packages.load_file(str(path))
        try:
            both = tables("integers", "wide", "long")
            metrics = ["travelled@3", "travelled(scale=2.0)@3"]
            evaluated(session, both, metrics, {"weight": "weight"}, partitions=partitions)
        finally:
            for table in (registry.REGISTRY, registry.NAMES, registry._BY_NAME):
                table.pop("travelled", None)


# ------------------------------------------------------------------ catalogues and slices

_DRAW = np.random.default_rng(5)
_ITEMS = [f"id {number}" for number in range(12)]
BESIDE = {
    "items": pa.table(
        {"item": _ITEMS, "genre": [["a", "b"][: 1 + number % 2] for number in range(12)]}
    ),
    "features": pa.table(
        {
            "item": _ITEMS,
            "vector": [[float(number), 1.0, float(number**2 % 5)] for number in range(12)],
        }
    ),
    "train": pa.table(
        {
            "query": [f"id {number}" for number in _DRAW.integers(0, QUERIES, 300)],
            "item": [f"id {number}" for number in _DRAW.integers(0, 12, 300)],
        }
    ),
}
CATALOGUES: dict[str, tuple[list[str], dict[str, Any]]] = {
    "items": (["coverage@3", "gini@3", "gap"], {}),
    "features": (["coverage@3", "ild_cosine@3"], {}),
    "train": (["coverage@3", "popularity_lift@3", "novelty@3"], {}),
    "items groups": (["coverage@3", "ild@3"], {"group": "genre"}),
    "train items groups features": (["novelty@3", "ild@3", "gap"], {"group": "genre"}),
    "train dropped": (["map@3", "recall@3", "novelty@3"], {"drop_seen": True}),
}


def catalogues(session: Any, parts: str) -> tuple[Catalogue, Catalogue]:
    """A catalogue of DataFrames, and the same of tables."""
    given, options = [one for one in parts.split() if one in BESIDE], CATALOGUES[parts][1]
    frames = {name: frame_of(session, BESIDE[name]) for name in given}
    return Catalogue(**frames, **options), Catalogue(
        **{name: BESIDE[name] for name in given}, **options
    )


def catalogued(session: Any, parts: str, predictions: str, partitions: int | None) -> None:
    both = tables("strings", "wide", predictions)
    there, here = catalogues(session, parts)
    frames = [frame_of(session, one) for one in both]
    metrics = CATALOGUES[parts][0]
    found = rankmill.spark.evaluate(*frames, metrics, catalogue=there, partitions=partitions)
    same_with(found, rankmill.evaluate(*both, metrics, catalogue=here))


def subtopics(session: Any, shape: str, partitions: int | None) -> None:
    labels, predictions = tables("strings", "long", shape)
    labels = labels.append_column("topic", pa.array([row % 3 for row in range(len(labels))]))
    told: dict[str, Any] = {"subtopic": "topic", "gain": "gain", "weight": "weight"}
    metrics, by = ["alpha_ndcg@3", "err_ia@3"], "weight"
    found = rankmill.spark.evaluate(
        Labels(frame_of(session, labels), **told),
        frame_of(session, predictions),
        metrics,
        by=by,
        partitions=partitions,
    )
    same_with(found, rankmill.evaluate(Labels(labels, **told), predictions, metrics, by=by))


def classes(labels: pa.Table, step: int = 1) -> pa.Table:
    """A table with a class for some of the queries of the labels, and for another one."""
    queries = [*dict.fromkeys(labels["query"].to_pylist()), "none of them"][::step]
    return pa.table({"query": queries, "class": [f"c{i % 3}" for i in range(len(queries))]})


def sliced(session: Any, by: list[str], shape: str, partitions: int | None, sums: Any = ()) -> None:
    both = tables("strings", shape, "wide")
    ways = [classes(both[0], 2) if one == "table" else one for one in by]
    metrics = ["map@3", "recall@3:micro", "map:median"]
    metrics += [] if "table" in by else ["coverage@2"]  # which looks at queries without labels
    evaluated(session, both, metrics, {"by": ways, "sums": sums}, partitions=partitions)


# ------------------------------------------------------------------ compare and gate


def three(session: Any, kind: str, spread: int = 0) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Labels and two systems, as tables and as DataFrames."""
    labels, old = tables(kind, "long", "wide")
    here = labels, old, tables(kind, "long", "long", seed=5)[1]
    there = [frame_of(session, one) for one in here]
    return here, tuple(one.repartition(spread) for one in there) if spread else tuple(there)


def compared(
    session: Any,
    metrics: list[str],
    options: dict[str, Any],
    kind: str = "strings",
    spread: int = 0,
) -> None:
    (labels, *here), (frame, *there) = three(session, kind, spread)
    names = "old", "new"
    by, on_spark = [*options.get("by", ())], [*options.get("by", ())]
    if "table" in by:
        place, table = by.index("table"), classes(labels)
        by[place], on_spark[place] = table, frame_of(session, table)
    runs, frames = (dict(zip(names, each, strict=True)) for each in (here, there))
    catalogue = options.get("catalogue")
    of_spark, of_here = {}, {}
    if catalogue is not None:
        of_spark["catalogue"], of_here["catalogue"] = catalogues(session, catalogue)
    rest = {name: one for name, one in options.items() if name not in ("by", "catalogue")}
    found = flat(rankmill.spark.compare, frame, frames, metrics, by=on_spark, **rest, **of_spark)
    rest.pop("partitions", None)
    whole = flat(rankmill.compare, labels, runs, metrics, by=by, **rest, **of_here)
    alike(found, whole)
    if kind == "strings" and not spread:
        same_queries(found.per_query, whole.per_query)


COMPARED: list[tuple[list[str], dict[str, Any]]] = [
    (["map", "gap", "p@2", "gap@2"], {"margin": 0.1, "moved": 4, "partitions": 1}),
    (["map", "gap"], {"by": ["weight", "label_popularity", "label_count"], "partitions": 7}),
    (["map", "p@2"], {"by": ["table", "label_count"], "partitions": 40}),
    (["map"], {"by": ["unpredicted"], "semantics": {"unpredicted": "skip"}, "weight": "weight"}),
    (["first_rank", "num_ret"], {"by": ["table"], "semantics": {"unpredicted": "skip"}}),
    (["map", "p@2"], {"tests": ("randomization", "wilcoxon")}),
    (["ndcg@3", "map"], {"gain_function": "exp", "rel": 2, "partitions": 5}),
    (["map@3", "novelty@3", "gap"], {"catalogue": "train", "by": ["weight"], "moved": 3}),
    (["map@3", "ild@3"], {"catalogue": "items groups", "partitions": 3}),
    (["map@3", "recall@3"], {"catalogue": "train dropped", "by": ["label_popularity"]}),
    (["gap"], {"semantics": {"unpredicted": "skip"}, "partitions": 3}),
    (["map", "gap"], {"semantics": "trec_eval", "partitions": 17}),
]
RULES = [
    *("map@3 drop <= 1% confidence 0.95", "map@3 >= 0.1", "queries change <= 10%"),
    *("repeated_items == 0", "gap drop <= 0.1 confidence 0.9"),
]
OF_SLICES = ["map@3[weight=*] drop <= 3%", "map@3[class=*] drop <= 3% confidence 0.9"]


def gated(
    session: Any,
    rules: list[str],
    baseline: str,
    options: dict[str, Any] | None = None,
    kind: str = "strings",
    spread: int = 0,
) -> None:
    (labels, old, new), (frame, before, now) = three(session, kind, spread)
    on_spark, here = dict(options or {}), dict(options or {})
    here.pop("partitions", None)
    if "by" in here:
        here["by"] = classes(labels)
        on_spark["by"] = frame_of(session, here["by"])
    if "catalogue" in here:
        on_spark["catalogue"], here["catalogue"] = catalogues(session, here["catalogue"])
    if baseline == "predictions":
        on_spark["baseline"], here["baseline"] = before, old
    elif baseline == "values":
        values = rankmill.evaluate(labels, old, ["map@3"]).per_query
        here["baseline"] = values.replace_schema_metadata(None)  # Spark keeps none
        on_spark["baseline"] = frame_of(session, here["baseline"])
    elif baseline == "result":
        here["baseline"] = rankmill.evaluate(labels, old, ["map@3"])
        on_spark["baseline"] = rankmill.spark.evaluate(
            frame, before, ["map@3"], per_query=True, partitions=2
        )
    found = flat(rankmill.spark.gate, frame, now, rules, **on_spark)
    same_verdict(found, flat(rankmill.gate, labels, new, rules, **here))


# ------------------------------------------------------------------ executors that are killed


def harmed(session: Any, what: str, kind: Any, call: Callable[[Any], None]) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        flag = harming(patch, kind, what, Path(folder))
        call(session)
        assert flag.exists()


# ------------------------------------------------------------------ all of them


def _of_evaluate() -> Iterator[Case]:
    for turn, number in product(range(2), range(len(PRESETS))):
        about = f"{[*PRESETS][number]}, {[*KINDS][(number + turn) % len(KINDS)]}"
        yield Case("preset", about, partial(preset, number=number, turn=turn))
    counts = [*product(KINDS, (1, 7)), ("integers", 200), ("strings", 200)]
    for kind, partitions in [*counts, *product(("integers", "strings", "large strings"), (30,))]:
        both = tables(kind, "wide", "long", seed=partitions)
        call = partial(evaluated, both=both, metrics=METRICS, partitions=partitions)
        yield Case("partitions", f"{kind}, {partitions}", call)
    for how in (
        {"weight": "weight", "rel": 2},
        {"depth": 2, "gain_function": "exp", "binary": False},
        {"judged_only": True, "binary": True},
        {"rel": 2, "depth": 3},
        {"semantics": {"unpredicted": "skip"}},
        {"semantics": {"order": "expected"}},
    ):
        both = tables("strings", "long", "wide")
        metrics = ["map", "ndcg@3", "rprec"]
        if "order" in how.get("semantics", {}):
            metrics = ["p@3", "recall@3"]
        call = partial(evaluated, both=both, metrics=metrics, how=how, per_query=True)
        yield Case("option", str(how), call)
    for shape, partitions in product(("wide", "long"), (None, 2)):
        call = partial(several, shape=shape, partitions=partitions)
        yield Case("systems", f"{shape}, {partitions}", call)
    for shape, semantics in product(
        ("wide", "long"), ("default", {"repeated_predictions": "drop"})
    ):
        yield Case(
            "odd rows", f"{shape}, {semantics}", partial(odd, shape=shape, semantics=semantics)
        )
    for partitions in (2, 20):
        yield Case("own metric", str(partitions), partial(own_metric, partitions=partitions))


def _of_the_rest() -> Iterator[Case]:
    for parts, (shape, partitions) in product(
        CATALOGUES, (("wide", None), ("long", 3), ("wide", 30))
    ):
        call = partial(catalogued, parts=parts, predictions=shape, partitions=partitions)
        yield Case("catalogue", f"{parts}, {shape}, {partitions}", call)
    for shape, partitions in product(("wide", "long"), (None, 1, 30)):
        call = partial(subtopics, shape=shape, partitions=partitions)
        yield Case("subtopics", f"{shape}, {partitions}", call)
    total = "both = 0.25*map@3[weight=1.0] + 0.75*recall@3:micro"
    for by, shape, partitions, sums in (
        (["weight"], "wide", None, total),
        (["weight"], "long", 3, total),
        (["label_count"], "wide", 7, ()),
        (["list_length"], "long", 3, ()),
        (["unpredicted"], "wide", None, ()),
        (["table"], "wide", None, ()),
        (["table", "weight"], "long", 20, ()),
        (["weight", "label_count"], "long", None, ()),
    ):
        call = partial(sliced, by=by, shape=shape, partitions=partitions, sums=sums)
        yield Case("slices", f"{', '.join(by)}, {shape}, {partitions}", call)
    for metrics, options in COMPARED:
        call = partial(compared, metrics=metrics, options=options)
        yield Case("compare", f"{', '.join(metrics)}, {options}", call)
    gates: list[tuple[list[str], str, dict[str, Any]]] = [
        (RULES[1:4:2], "nothing", {}),
        (RULES, "predictions", {"partitions": 1}),
        (RULES, "predictions", {"partitions": 30}),
        ([*RULES, *OF_SLICES], "predictions", {"by": "table", "moved": 2}),
        ([RULES[0], OF_SLICES[0]], "values", {"partitions": 7}),
        ([*RULES[:4], OF_SLICES[0]], "result", {}),
        (RULES, "predictions", {"semantics": {"unpredicted": "skip"}}),
        (RULES[:4], "predictions", {"weight": "weight"}),
        ([*RULES[:1], "novelty@3 >= 0.1"], "predictions", {"catalogue": "train"}),
        ([*RULES[:1], "seen_items >= 3"], "predictions", {"catalogue": "train dropped"}),
    ]
    for rules, baseline, options in gates:
        call = partial(gated, rules=rules, baseline=baseline, options=options)
        yield Case("gate", f"{len(rules)} rules, {baseline}, {options}", call)


def _of_spread_rows() -> Iterator[Case]:
    group = "a query over 7 partitions"
    for kind, shapes in product(KINDS, SHAPES[1:]):
        both = tables(kind, *shapes, seed=7)
        call = partial(evaluated, both=both, metrics=METRICS, spread=7)
        yield Case(group, f"{kind}, {' and '.join(shapes)}", call)
    for kind in ("integers", "strings"):
        call = partial(compared, metrics=["map", "gap"], options={}, kind=kind, spread=7)
        yield Case(group, f"compare, {kind}", call)
        call = partial(gated, rules=RULES, baseline="predictions", kind=kind, spread=7)
        yield Case(group, f"gate, {kind}", call)


def _of_harm() -> Iterator[Case]:
    both = tables("integers", "wide", "long")
    score = partial(evaluated, both=both, metrics=METRICS, partitions=4)
    compare: Any = partial(compared, metrics=["map", "gap"], options={"partitions": 4})
    for what in ("executor", "python", "exception", "fetch", "slow"):
        for about, kind, call in (
            ("first pass", tasks.score, score),
            ("second pass of gap", evaluation.count, score),
        ):
            run = partial(harmed, what=what, kind=kind, call=call)
            yield Case("harm", f"{what}, {about}", run, harms=True)
    run = partial(harmed, what="executor", kind=systems.find, call=compare)
    yield Case("harm", "executor, compare", run, harms=True)


CASES = [*_of_evaluate(), *_of_the_rest(), *_of_spread_rows(), *_of_harm()]
