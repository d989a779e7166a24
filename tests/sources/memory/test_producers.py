"""What libraries of retrieval hand over: datasets of Hugging Face, BEIR, MTEB, ir_datasets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from conftest import tells

import rankmill
from rankmill import UsageError

pytestmark = [pytest.mark.small, pytest.mark.filterwarnings("ignore")]  # those of the libraries

QRELS = {"q1": {"d1": 2, "d2": 0, "d3": 1}, "q2": {"d3": 1}}
RESULTS = {"q1": {"d2": 0.5, "d1": 0.75, "d9": 0.25}, "q2": {"d4": 1.5, "d3": 1.25}}
METRICS = "map,ndcg@10,recall@1,first_hit,bpref"


def long_rows(held: dict[str, dict[str, Any]], number: str) -> dict[str, list[Any]]:
    rows = [(q, item, value) for q, items in held.items() for item, value in items.items()]
    return dict(
        zip(("query_id", "item_id", number), map(list, zip(*rows, strict=True)), strict=True)
    )


LABELS, RUN = long_rows(QRELS, "gain"), long_rows(RESULTS, "score")
EXPECTED = rankmill.evaluate(pa.table(LABELS), pa.table(RUN), METRICS)


def test_dicts_of_beir_and_mteb() -> None:
    """Their evaluators take the relevant documents of a query and the scores of those found."""
    assert rankmill.evaluate(QRELS, RESULTS, METRICS).metrics == EXPECTED.metrics


FORMS: dict[str, Callable[[Any, dict[str, Any]], Any]] = {
    "a dataset": lambda hub, rows: hub.Dataset.from_dict(rows),
    "with indices": lambda hub, rows: (
        hub.Dataset.from_dict({name: [*values[::-1], values[0]] for name, values in rows.items()})
        .select(range(len(next(iter(rows.values())))))
        .shuffle(seed=1)
    ),
    "formatted": lambda hub, rows: hub.Dataset.from_dict(rows).with_format("numpy"),
    "a stream": lambda hub, rows: hub.Dataset.from_dict(rows).to_iterable_dataset(),
    "a generator": lambda hub, rows: hub.IterableDataset.from_generator(
        lambda: (dict(zip(rows, row, strict=True)) for row in zip(*rows.values(), strict=True))
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_datasets_of_hugging_face(form: str) -> None:
    hub = pytest.importorskip("datasets")
    labels, run = FORMS[form](hub, LABELS), FORMS[form](hub, RUN)
    for _ in range(2):  # they can be read again
        found = rankmill.evaluate(labels, run, METRICS)
        assert found.metrics == EXPECTED.metrics
    assert rankmill.evaluate(rankmill.Labels(labels, gain="gain"), run, METRICS) == found


def test_datasets_with_lists_and_several_splits() -> None:
    hub = pytest.importorskip("datasets")
    wide = hub.Dataset.from_dict({"query": [1, 2], "items": [["a", "b"], ["c"]]})
    assert rankmill.evaluate({1: ["b"], 2: ["c"]}, wide, "first_hit")["first_hit"] == 0.75
    with pytest.raises(UsageError) as caught:
        rankmill.evaluate({1: ["b"]}, hub.DatasetDict(train=wide), "map")
    tells(caught.value, ["the value of 'train' is a Dataset"])
    assert rankmill.head(rankmill.Predictions(wide))["columns"]


def test_qrels_of_ir_datasets(tmp_path: Path) -> None:
    formats = pytest.importorskip("ir_datasets.formats")
    from ir_datasets.util import LocalDownload

    path = tmp_path / "qrels"
    path.write_text("".join(f"{q} 0 {d} {g}\n" for q, ds in QRELS.items() for d, g in ds.items()))
    qrels = formats.TrecQrels(LocalDownload(path), {})
    run = [formats.GenericScoredDoc(*row) for row in zip(*RUN.values(), strict=True)]
    for labels in (qrels.qrels_iter(), list(qrels.qrels_iter())):
        assert rankmill.evaluate(labels, run, METRICS).metrics == EXPECTED.metrics
