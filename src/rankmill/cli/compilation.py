"""Compile every kernel in advance by evaluating small inputs of every kind."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import rankmill
from rankmill.adapters.torch.listwise import listwise_ap_loss
from rankmill.analysis.statistics.paired_differences import paired_of
from rankmill.analysis.statistics.significance import TESTS, run_test
from rankmill.columns.ids import to_ids
from rankmill.kernels.footers import CHUNK_FIELDS, parse_footer
from rankmill.kernels.plain import compile_all
from rankmill.metrics.families import confidence, diversity
from rankmill.metrics.records.item_counts import ItemCounts
from rankmill.metrics.registry import examples, parse
from rankmill.semantics.choices import DEFAULT, Choices
from rankmill.threads import available_cpus

QUERIES = 30
# Choices that are not the default and need other kernels.
SEMANTICS = (
    {"order": "item_descending", "repeated_predictions": "drop"},
    {"order": "worst", "repeated_predictions": "each", "repeated_labels": "count"},
    {"order": "expected", "repeated_predictions": "drop", "nan_confidence": "last"},
)
# A memory limit that is too small for the confidences and the scattered rows. With this limit gap
# makes a second pass, and rows are grouped on disk.
LITTLE_MEMORY = 1 << 9


def warmup() -> None:
    """Compile all kernels for all types of input, and store them.

    Numba compiles one kernel at a time in a process. Where there are two CPUs, a second process
    takes the same steps from the other end, until each finds on disk what the other one compiled.
    """
    if available_cpus() < 2:
        return _compile(1)
    code = f"from {__name__} import _compile; _compile(-1)"
    # It fails and warns as this process does, which compiles whatever it leaves.
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL):
        _compile(1)


def _compile(direction: int) -> None:
    """Take all steps, forwards (1) or backwards (-1)."""
    with compile_all():
        for step in [*_steps(direction)][::direction]:
            step()


def _steps(direction: int) -> Iterator[Callable[[], object]]:
    """Yield what to run; direction -1 turns the order of metrics around."""
    names = [*_plain(DEFAULT), "map(rel=2)", "map:median"][::direction]
    diverse = [spec.example for spec in diversity.METRICS]
    for labels, predictions, items in _tables():
        beside = rankmill.Catalogue(train=labels, items=items, group="group", features=items)
        both = labels, predictions
        yield partial(rankmill.evaluate, *both, names, threads=1, catalogue=beside)
        yield partial(rankmill.evaluate, *both, ["gap@2"], threads=1, memory=LITTLE_MEMORY)
        yield partial(
            rankmill.compare, labels, dict.fromkeys("ab", predictions), ["gap"], threads=1
        )
        weights = pa.array(np.ones(len(labels)))
        weighted = rankmill.Labels(labels.append_column("weight", weights), weight="weight")
        yield partial(rankmill.evaluate, weighted, predictions, ["map"], threads=1)
        for semantics in SEMANTICS[::direction]:
            chosen = rankmill.Semantics.of(semantics).choices
            per_query = [name for name in _plain(chosen) if parse(name).spec.kernel][::direction]
            yield partial(rankmill.evaluate, *both, per_query, threads=1, semantics=chosen)
    topics = _long(False, None, None)
    topics = topics.append_column("subtopic", pa.array(np.arange(len(topics)) % 3))
    labels = rankmill.Labels(topics, subtopic="subtopic")
    yield partial(rankmill.evaluate, labels, _wide(_long(False, None, None)), diverse, threads=1)
    yield from (_evaluate_arrays, _evaluate_text)
    yield partial(rankmill.evaluate, {"1": ["a"]}, {"1": ["a"]}, ["map"], threads=1)
    yield from (_join_counts, _compare)
    empty = np.zeros((1, 1, CHUNK_FIELDS), np.int64)
    # Parquet files need this one.
    yield partial(parse_footer, np.zeros(1, np.uint8), np.zeros(3, np.int64), empty[0], empty)


def _tables() -> Iterator[tuple[Any, Any, Any]]:
    """Yield labels, predictions and items of every kind with kernels of its own.

    The kinds are: integer and string ids; labels with and without gains; confidences of both
    widths, or ranks; wide rows, long rows with adjacent queries, and long rows with scattered
    queries; null and repeated items.
    """
    for text in (False, True):
        items = _items(text)
        for graded, width in product((False, True), (pa.float32(), pa.float64())):
            labels = _long(text, graded and "gain", width)
            scored = _long(text, "score", width)
            yield _wide(labels), _wide(scored), items
            yield labels, scored, items
            yield _scattered(labels), _scattered(scored), items
        ranked = scored.append_column("rank", pa.array(range(len(scored)), pa.int32()))
        yield _long(text, None, None), _scattered(ranked), items


def _plain(semantics: Choices) -> list[str]:
    """The metrics that any labels and predictions have.

    Those by confidence have the kernels of gap, and some of them refuse confidences above 1.
    """
    others = (*confidence.METRICS, *diversity.METRICS)
    return [name for name in examples(semantics) if parse(name).spec not in others]


def _items(text: bool) -> Any:
    """All items, each in a group and with a vector."""
    numbers = np.arange(QUERIES)
    vectors = pa.array([[1.0, float(number)] for number in numbers])
    items = pa.array(numbers).cast(pa.string() if text else pa.int64())
    return pa.table({"item_id": items, "group": numbers % 3, "vector": vectors})


def _long(text: bool, number: str | bool | None, width: Any) -> Any:
    """Long rows, five a query: a shared item twice, an item of its own twice, and a null."""
    rows = np.arange(5 * QUERIES)
    items = pa.array(np.where(rows % 5 < 2, 0, rows // 5), mask=rows % 5 == 4)
    columns = {"query_id": pa.array(rows // 5), "item_id": items}
    if text:
        columns = {name: column.cast(pa.string()) for name, column in columns.items()}
    if number:
        columns[str(number)] = pa.array(1.0 + rows % 7).cast(width)
    return pa.table(columns)


def _wide(table: Any) -> Any:
    grouped = table.group_by("query_id", use_threads=False)
    lists = grouped.aggregate([(name, "list") for name in table.column_names[1:]])
    return lists.rename_columns(table.column_names)


def _scattered(table: Any) -> Any:
    return table.take(np.argsort(np.arange(len(table)) * 7919 % len(table), kind="stable"))


def _evaluate_text() -> None:
    """Evaluate text in all its forms: TREC, and CSV with and without quotes and lists."""
    number = "1" * 30 + ".5"  # which takes the exact way of parsing
    texts = {
        "l.qrels": "1 0 a 1\n",
        "p.run": f"1 Q0 a 1 {number} t\n1 Q0 b 2 .5 t\n",
        "l.csv": "user,item\n1,a\n2,2\n",
        "p.csv": 'user,items\n1,"a ""b"""\n2,a b\n',
        "pairs.csv": "user,items\n1,a 0.5 b 0.25\n",
        "lists.csv": 'user,items,scores\n1,"[1, 2]","[1, 0.5]"\n',
    }
    with tempfile.TemporaryDirectory(prefix="rankmill-") as folder:
        paths = {name: os.path.join(folder, name) for name in texts}
        for name, text in texts.items():
            Path(paths[name]).write_text(text)
        rankmill.evaluate(paths["l.qrels"], paths["p.run"], ["map"], threads=1)
        for name in ("p.csv", "pairs.csv", "lists.csv"):
            rankmill.evaluate(paths["l.csv"], paths[name], ["map"], threads=1)
        integers = pa.table({"user": [1], "item": [1]})
        rankmill.evaluate(integers, paths["lists.csv"], ["map"], threads=1)


def _join_counts() -> None:
    """Join counts of items, as of several threads or parts."""
    one = ItemCounts(1).with_counts(to_ids(np.array([7, 9]), "items"), np.ones((2, 1), np.int64))
    one.merge(one).joined()


def _compare() -> None:
    """Run every significance test on differences that all are the same or all differ."""
    for differences in (np.arange(100.0), np.repeat([0.0, 1.0], 100)):
        for name in TESTS:
            run_test(name, paired_of(differences), replicates=1, threads=1)


def _evaluate_arrays() -> None:
    """Call the functions over arrays, with integer and with string items."""
    for items in ([[1, 2], [], [3]], [["a", "b"], [], ["c"]]):
        lists = rankmill.arrays.Ragged.from_lists(items)
        rankmill.arrays.average_precision(lists, lists, 2)
        rankmill.arrays.ndcg(
            lists, lists, 2, gain=rankmill.arrays.Ragged(lists.offsets, np.ones(3))
        )
    for width in (np.float32, np.float64):
        confidences = np.arange(2, dtype=width)
        rankmill.arrays.global_average_precision(confidences, np.ones(2, np.bool_), 2)
        listwise_ap_loss(np.ones((1, 2), width), np.ones((1, 2), np.bool_))
        rankmill.arrays.top_k(np.ones((1, 2), width), 1)
