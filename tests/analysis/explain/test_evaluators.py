"""explain_evaluators(): its values are those of evaluate(), and its changes are right."""

import math
from dataclasses import replace

import pyarrow as pa
import pytest

from dumps import dump
from preset_tables import tables
from rankmill import InputError, UsageError, evaluate, explain_evaluators
from rankmill.analysis.explain import evaluators
from rankmill.analysis.explain.evaluators import ONLY_FOR
from rankmill.engine import held_labels as engine_labels
from rankmill.metrics.registry import REGISTRY
from rankmill.semantics.choices import Choices
from rankmill.semantics.presets import PRESETS
from shown import difference_cells
from strategies import some

QUERY_METRICS = ["map@3", "map", "recall@2", "ndcg@3", "mrr", "f1@3"]


def by_query(table: pa.Table) -> dict:
    return dict(zip(*(column.to_pylist() for column in table.columns), strict=True))


def lists(labels, predictions, score=None):
    columns = {"user_id": list(predictions), "items": list(predictions.values())}
    if score is not None:
        columns["score"] = score
    return pa.table({"user_id": list(labels), "items": list(labels.values())}), pa.table(columns)


def held(change, both, metric, semantics, base, order) -> None:
    """Compare a change with evaluate() under the base and under the other semantics."""
    before = by_query(evaluate(*both, metric, semantics=base).per_query)
    result = evaluate(*both, metric, semantics=semantics)
    after = by_query(result.per_query)
    assert change.value == result[metric]
    assert change.difference == change.value - evaluate(*both, metric, semantics=base)[metric]
    touched = [query for query in order if before.get(query) != after.get(query)]
    assert change.queries == len(touched)
    if not touched:
        assert change.example is None
        return
    sizes = [abs(after.get(query, 0) - before.get(query, 0)) for query in touched]
    query = touched[sizes.index(max(sizes))]
    assert change.example == (query, before.get(query), after.get(query))


@pytest.mark.rows(1)
@pytest.mark.parametrize("metric", some(QUERY_METRICS, 2))
@pytest.mark.long
def test_every_change_is_what_evaluate_says(metric):
    labels, predictions = dump(3, repeats=True, repeated_labels=True, grades=(1, 2))
    both = tables(labels, predictions)
    order = [*labels, *sorted(predictions.keys() - labels.keys())]
    found = explain_evaluators(*both, metric, list(PRESETS))
    assert (found.metric, found.base) == (metric, "default")
    assert found.value == evaluate(*both, metric)[metric]
    assert list(found.semantics) == list(PRESETS)
    done = 0
    for name, one in PRESETS.items():
        if name == "default":
            continue
        whole, fields = found.wholes[name], found.fields[name]
        seen = {
            field: choice
            for field, choice in one.semantics.differences().items()
            if found.metric.partition("@")[0] in ONLY_FOR.get(field, REGISTRY)
            or (metric == "mrr" and field not in ONLY_FOR)
        }
        assert whole.choices == seen
        assert {field: change.choices[field] for field, change in fields.items()} == seen
        for field, change in fields.items():
            if change.value is None:
                with pytest.raises(InputError, match=f"{field} is 'error'|what order 'expected'"):
                    evaluate(*both, metric, semantics={field: seen[field]})
                assert change.reason
                assert (change.difference, change.queries, change.example) == (None, None, None)
                continue
            held(change, both, metric, {field: seen[field]}, "default", order)
            done += 1
        if whole.value is None:
            assert whole.reason
            continue
        kept = {field: getattr(Choices(), field) for field in whole.kept}
        held(whole, both, metric, replace(one.semantics, **kept), "default", order)
        alone = [change.difference for change in fields.values() if change.value is not None]
        rest = whole.difference - math.fsum(alone)
        assert found.interplay(name) == pytest.approx(rest, abs=1e-15)
    assert done > 20


@pytest.mark.small
def test_the_example_by_hand():
    labels, predictions = lists(
        {1: [10, 11, 12], 2: [20], 3: [30], 4: [40]},
        {1: [9, 10, 10], 2: [20, 20], 3: [30, 30], 5: [50]},
    )
    found = explain_evaluators(labels, predictions, "map", {"old": {}, "new": "implicit"})
    change = found.fields["new"]["repeated_predictions"]
    assert change.queries == 3
    assert change.example == (2, 1, 2)  # the change of query 3 is as large, but comes later
    found = explain_evaluators(labels, predictions, "map", ["default", "spark"])
    assert found.fields["spark"]["unpredicted"].example == (4, 0, None)
    assert found.fields["spark"]["unlabelled"].example == (5, None, 0)
    assert found.fields["spark"]["unlabelled"].queries == 1
    assert found.fields["spark"]["no_relevant"].queries == 0
    assert found.to_dict()["changes"]["spark"]["fields"]["unlabelled"]["example"] == {
        "query": 5,
        "before": None,
        "after": 0.0,
    }


@pytest.mark.small
def test_interplay_is_what_remains():
    # Each change alone turns 1 / 3 into 2 / 3: all queries count with 1, or only the predicted two.
    labels, predictions = lists({1: [10], 2: [20], 3: [30]}, {1: [10, 10], 2: [9]})
    found = explain_evaluators(labels, predictions, "map", ["default", "spark"])
    assert found.value == 1 / 3
    fields = found.fields["spark"]
    assert fields["repeated_predictions"].value == 2 / 3
    assert fields["unpredicted"].value == 1 / 2
    assert found.wholes["spark"].value == 1
    assert found.interplay("spark") == pytest.approx(1 - 1 / 3 - 1 / 3 - 1 / 6, abs=1e-15)
    (row,) = [row for row in difference_cells(found)[1] if row[0] == "  all at once"]
    assert row[2] == "+0.166667"


@pytest.mark.small
def test_gap_has_values_only():
    labels, predictions = lists({1: [10], 2: [20]}, {1: [10], 2: [9]}, [[0.5], [0.5]])
    found = explain_evaluators(labels, predictions, "gap")
    assert "sklearn" in found.wholes
    assert "spark" not in found.wholes
    assert found.value == 0.375
    whole = found.wholes["sklearn"]
    assert (whole.value, whole.queries, whole.example) == (0.5, None, None)
    assert found.fields["sklearn"]["gap_total"].value == 0.75
    assert found.fields["sklearn"]["gap_ties"].value == 0.25
    asked = explain_evaluators(labels, predictions, "gap", ["default", "spark"])
    assert "it has no gap as defined here" in repr(asked)


@pytest.mark.small
def test_presets_are_those_of_the_metric_unless_they_are_named():
    labels, predictions = lists({1: [10]}, {1: [10]})
    found = explain_evaluators(labels, predictions, "mrr@7")
    assert {"default", "ranx", "lenskit"} <= found.semantics.keys()
    assert found.semantics.keys().isdisjoint({"trec_eval", "spark", "sklearn", "isc2021"})
    assert "kaggle_whale" in explain_evaluators(labels, predictions, "first_hit@5").semantics
    assert list(explain_evaluators(labels, predictions, "map", "spark").semantics) == [
        "default",
        "spark",
    ]
    own = {"mine": Choices(ap_divisor="hits"), "theirs": {"preset": "spark"}}
    assert list(explain_evaluators(labels, predictions, "map", own).semantics) == list(own)
    for names, message in (
        (["sprak"], "did you mean spark"),
        ([], "there is no preset"),
        (Choices(), "expected names of presets, or a mapping"),
    ):
        with pytest.raises(UsageError, match=message):
            explain_evaluators(labels, predictions, "map", names)


@pytest.mark.small
def test_the_base_is_the_first_that_has_a_value():
    labels, predictions = lists(
        {1: [10], 2: [20]}, {1: [10, 10], 2: [9, 20]}, [[math.nan, 0.5], [0.9, 0.8]]
    )
    found = explain_evaluators(labels, predictions, "map", ["sklearn", "default", "spark"])
    assert found.base == "default"
    whole = found.wholes["sklearn"]
    assert whole.kept == ("repeated_predictions", "order")
    assert "column 'score' is nan" in whole.reason
    assert whole.value == 0.75
    order = found.fields["sklearn"]["order"]
    assert (order.value, order.queries) == (None, None)
    only = {"a": {"order": "confidence"}, "b": {"order": "worst"}}
    with pytest.raises(InputError, match="column 'score' is nan"):
        explain_evaluators(labels, predictions, "map", only)
    with pytest.raises(InputError, match="no such file"):
        explain_evaluators("no-labels.parquet", predictions, "map")


def test_labels_and_semantics_are_gone_over_once(monkeypatch):
    labels, predictions = lists({1: [10, 11], 2: [20]}, {1: [9, 10, 10], 2: [20]})
    reads, evaluations, reported = [], [], []

    real_read, real_run = engine_labels.read_labels, evaluators.run

    def read_labels(labels, job, workers):
        reads.append(job.semantics.repeated_labels)
        return real_read(labels, job, workers)

    def run(job, *arguments):
        evaluations.append(job.semantics)
        return real_run(job, *arguments)

    monkeypatch.setattr(engine_labels, "read_labels", read_labels)
    monkeypatch.setattr(evaluators, "run", run)
    names = ["default", "spark", "implicit", "kaggle_hm", "lenskit"]
    explain_evaluators(
        labels, predictions, "map@3", names, progress=lambda *at: reported.append(at)
    )
    assert sorted(reads) == ["count", "set"]
    assert len(evaluations) == len(set(evaluations)) == 9
    assert [done for done, _ in reported] == [2 * i for i in range(1, 10)]
    assert {rows for _, rows in reported} == {2 * 9}
