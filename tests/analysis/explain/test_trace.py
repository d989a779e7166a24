"""explain() shows how a value is computed; its last line is the value of evaluate()."""

import json
import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankmill
from dumps import dump
from flat import flat
from preset_tables import tables
from rankmill import InputError, Semantics, UsageError, evaluate, explain
from rankmill.analysis.explain.walk import check_walk
from rankmill.arrays import Ragged
from rankmill.metrics.registry import check_defined, parse
from rankmill.semantics.choices import Choices
from rankmill.semantics.presets import PRESETS
from strategies import examples

METRICS = [
    *("map", "map@3", "first_hit", "first_hit@2", "hit@3", "precision@4", "recall", "recall@3"),
    *("f1@3", "rprec", "dcg", "dcg@3", "ndcg", "ndcg@3"),
    *("rbp", "rbp(p=0.5)@3", "judged@3", "bpref", "map(rel=2)@3", "rprec(rel=2)", "bpref(rel=2)"),
    *("num_rel_ret", "set_p", "set_f(beta=2)", "set_map", "set_relative_p", "binG"),
    *("infap", "inst", "auc@3", "auc", "gauc", "gauc(by=hits)@3", "fbeta(beta=2)@3", "fallout@2"),
    *(
        "mcc(items=20)@3",
        "compat",
        "rbo(p=0.5)@3",
        "tau@9",
        "nerr8(max=3)@3",
        "nerr9@3",
        "nerr10(max=2)",
    ),
    *("nerr11(max=3)", "sdcg(max=3)@3", "o_measure", "p_measure@3", "p_plus", "ncu_rb", "ncu_gu@3"),
    *("relative_p@3", "err", "err(max=3)@3", "nerr@3", "q_measure", "q_measure(beta=10)@3"),
]
COUNTED = [
    *(one.semantics for one in PRESETS.values()),
    *(
        Choices(order=order, repeated_predictions=repeats)
        for order in ("confidence", "item_ascending", "worst", "best", "expected")
        for repeats in ("drop", "each")
    ),
    Choices(ap_divisor="hits", order="worst", unpredicted="skip", no_relevant="one"),
    Choices(ap_divisor="hits", order="best", unlabelled="one", repeated_predictions="drop"),
    Choices(ideal_dcg="k", precision_divisor="min_k_predictions", recall_divisor="min_k_labels"),
]


def table_of(lists, numbers=None) -> pa.Table:
    columns = {"user_id": list(lists), "items": list(lists.values())}
    if numbers is not None:
        columns["score"] = [[float(one) for one in row] for row in numbers]
    return pa.table(columns)


def is_defined(metric: str, semantics: Choices) -> bool:
    try:
        check_defined(parse(metric), semantics)
        check_walk(parse(metric))
    except UsageError:
        return False
    return True


# Each semantics with one of two dumps: 0 has one grade, 1 has several.
@pytest.mark.rows(4)
@pytest.mark.parametrize(
    ("semantics", "seed"),
    [
        pytest.param(one, seed, marks=[pytest.mark.long][: (number + seed) % 2])
        for number, one in enumerate(COUNTED)
        for seed in range(2)
    ],
    ids=lambda one: str(one if isinstance(one, int) else one.differences()),
)
def test_the_walk_ends_at_the_value_of_evaluate(semantics, seed):
    # Half of the metrics for each of the two dumps, and under --all each for both.
    some = METRICS if examples(40) == 40 else METRICS[seed::2]
    metrics = [metric for metric in some if is_defined(metric, semantics)]
    repeats = semantics.repeated_predictions != "error" and not (
        semantics.ties_open and semantics.repeated_predictions == "once"
    )
    walked = 0
    labels, predictions = dump(
        seed,
        repeats=repeats,
        repeated_labels=semantics.repeated_labels != "error",
        grades=(0, 1, 2, 3) if seed else (1,),
        unlabelled=semantics.unlabelled != "error",
    )
    both = tables(labels, predictions)
    result = evaluate(*both, metrics, semantics=semantics)
    for query in sorted(labels.keys() | predictions.keys())[seed::2][: max(6, examples(20))]:
        at = pa.compute.index(result.per_query["query"], query).as_py()
        for metric in metrics:
            found = explain(*both, metric, query, semantics=semantics)
            assert found.query == query
            value = None if at < 0 else result.per_query[metric][at].as_py()
            if metric.startswith("gauc") and len(found.table["hit"].drop_null().unique()) < 2:
                # A list without a pair does not count.
                assert (found.value, found.total) == (None, 0)
                continue
            assert found.value == value
            sums = [one for one in found.table["sum"].to_pylist() if one is not None]
            assert found.total == (sums[-1] if sums else 0)
            if "query" in found.facts:  # the query lacks labels or predictions
                assert found.total == 0 or parse(metric).counts_empty
                continue
            assert found.total / (found.divisor or 1) == found.value
            walked += found.value > 0
    assert walked > len(metrics) / 4


TIES = ("expected", "worst", "best", "given", "ids", "threshold")


@pytest.mark.rows(4)
@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("metric", ["gap", "gap@2"])
def test_gap_is_walked_row_by_row(metric, ties):
    values = []
    for seed in range(4):
        labels, predictions = dump(seed, repeats=True)
        both = tables(labels, predictions)
        for total in ("labelled_queries", "hits", "predicted_label_pairs"):
            semantics = Choices(gap_ties=ties, gap_total=total)
            found = explain(*both, metric, semantics=semantics)
            assert found.value == evaluate(*both, metric, semantics=semantics)[metric]
            values.append(found.value)
            assert found.total / found.divisor == pytest.approx(found.value, rel=1e-15)
            rows = found.table.to_pydict()
            assert rows["rank"] == list(range(1, 1 + found.table.num_rows))
            assert rows["confidence"] == sorted(rows["confidence"], reverse=True)
            assert math.fsum(rows["term"]) == found.total
            assert rows["sum"][-1] == pytest.approx(found.total, rel=1e-14)
            listed = {query: {item for item, _ in rows} for query, rows in labels.items() if rows}
            repeated = set()
            pairs = zip(rows["query"], rows["item"], rows["correct"], strict=True)
            for query, item, correct in pairs:
                assert not correct or item in listed[query]
                if correct:
                    assert (query, item) not in repeated
                    repeated.add((query, item))
    assert max(values) > 0.1


@pytest.mark.small
def test_gap_by_hand():
    labels = table_of({1: [10], 2: [20], 3: [30]})
    predictions = table_of({2: [20, 9], 1: [8, 10]}, [[0.9, 0.5], [0.8, 0.7]])
    found = explain(labels, predictions, "gap")
    assert found.table.to_pydict() == {
        "rank": [1, 2, 3, 4],
        "query": [2, 1, 1, 2],
        "item": [20, 8, 10, 9],
        "confidence": [0.9, 0.8, 0.7, 0.5],
        "correct": [True, False, True, False],
        "precision": [1, 1 / 2, 2 / 3, 2 / 4],
        "term": [1, 0, 2 / 3, 0],
        "sum": [1, 1, 1 + 2 / 3, 1 + 2 / 3],
    }
    total = 1 + 2 / 3
    assert (found.total, found.divisor, found.value) == (total, 3, total / 3)
    assert found.headline == f"gap = {total!r} / 3 = {total / 3!r}"
    first = explain(labels, predictions, "gap", rows=2)
    assert first.table.equals(found.table.slice(0, 2))
    assert (first.value, first.total) == (found.value, found.total)
    assert first.facts["rows"] == "the first 2 of 4; for all, use rows=4"
    with pytest.raises(InputError, match=r"gap row by row holds all .* more than the 10 bytes"):
        explain(labels, predictions, "gap", memory=10)


@pytest.mark.small
def test_average_precision_by_hand():
    labels = table_of({7: [1, 2, 3, 4]})
    predictions = table_of({7: [9, 2, 2, 1, 8, 3]})
    found = explain(labels, predictions, "map@5", 7)
    assert found.table.to_pydict() == {
        "rank": [1, 2, 3, 4, 5],
        "item": [9, 2, 2, 1, 8],
        "hit": [False, True, False, True, False],
        "precision": [0, 1 / 2, 1 / 3, 2 / 4, 2 / 5],
        "term": [0, 1 / 2, 0, 1 / 2, 0],
        "sum": [0, 1 / 2, 1 / 2, 1, 1],
        "note": ["", "", "repeats rank 2", "", ""],
    }
    assert (found.total, found.divisor, found.value) == (1, 4, 0.25)
    assert found.facts == {
        "labels": "4: 1, 2, 3, 4",
        "predictions": "6, of which the first 5 count",
        "divisor": "min(k, R), which is R without a cutoff (ap_divisor min_k_labels)",
    }
    each = explain(labels, predictions, "map@5", 7, semantics={"repeated_predictions": "each"})
    assert each.table["term"].to_pylist() == pytest.approx([0, 1 / 2, 2 / 3, 3 / 4, 0])
    assert each.table["note"][2].as_py() == "repeats rank 2"


@pytest.mark.small
def test_dropped_repeats_stand_where_they_were():
    labels = table_of({7: [1, 2]})
    predictions = table_of({7: [9, 9, 1, None, 9, 2]})
    dropping = {"repeated_predictions": "drop"}
    found = explain(labels, predictions, "map", 7, semantics=dropping)
    assert found.table["rank"].to_pylist() == [1, None, 2, None, 3]
    assert found.table["item"].to_pylist() == [9, 9, 1, 9, 2]
    assert found.table["term"].drop_null().to_pylist() == pytest.approx([0, 1 / 2, 2 / 3])
    dropped = "repeats rank 1, dropped"
    assert found.table["note"].to_pylist() == ["", dropped, "", dropped, ""]
    assert found.facts["predictions"] == "3; repeats dropped: 2; null items dropped: 1"
    short = explain(labels, predictions, "map@2", 7, semantics=dropping)
    assert short.table["rank"].to_pylist() == [1, None, 2, None]


@pytest.mark.small
def test_gains_and_the_ideal_list():
    labels = pa.table({"q": ["a"], "items": [["x", "y", "z"]], "gain": [[1.0, 3.0, 2.0]]})
    predictions = pa.table({"q": ["a"], "items": [["y", "w"]]})
    found = explain(
        rankmill.Labels(labels, query="q"),
        rankmill.Predictions(predictions, query="q"),
        "ndcg",
        "a",
    )
    third = 1 / math.log2(4)
    rows = found.table.to_pydict()
    assert rows["rank"] == [1, 2, 3]
    assert rows["item"] == ["y", "w", None]
    assert rows["gain"] == [3, 0, None]
    assert rows["ideal_gain"] == [3, 2, 1]
    assert rows["ideal_sum"] == pytest.approx([3, 3 + 2 / math.log2(3), found.divisor], rel=1e-15)
    assert found.divisor == pytest.approx(3 + 2 / math.log2(3) + third, rel=1e-15)
    assert rows["note"] == ["", "", "no prediction"]
    exponential = explain(
        rankmill.Labels(labels, query="q"),
        rankmill.Predictions(predictions, query="q"),
        "dcg",
        "a",
        semantics=Semantics(gain_function="exp"),
    )
    assert (exponential.total, exponential.divisor, exponential.value) == (7, None, 7)
    assert exponential.headline == "dcg of query a = 7.0"


@pytest.mark.small
def test_equal_confidences_worst_best_and_expected():
    labels = table_of({1: [10, 11]})
    predictions = table_of({1: [10, 5, 6, 11]}, [[0.5, 0.5, 0.5, 0.1]])
    items, terms = {}, {}
    for order in ("worst", "best", "expected"):
        found = explain(labels, predictions, "map", 1, semantics={"order": order})
        items[order] = found.table["item"].to_pylist()
        terms[order] = found.table["term"].to_pylist()
        assert f"(order {order})" in found.facts["order"]
        assert found.table["confidence"].to_pylist() == [0.5, 0.5, 0.5, 0.1]
    assert items["worst"] == [5, 6, 10, 11]
    assert terms["worst"] == pytest.approx([0, 0, 1 / 3, 2 / 4])
    assert items["best"] == [10, 5, 6, 11]
    assert terms["best"] == pytest.approx([1, 0, 0, 2 / 4])
    assert terms["expected"] == pytest.approx([1 / 3, 1 / 6, 1 / 9, 1 / 2], rel=1e-15)
    assert found.table["chance"].to_pylist() == pytest.approx([1 / 3, 1 / 3, 1 / 3, 1])


@pytest.mark.small
def test_what_a_query_lacks_and_what_semantics_make_of_that():
    labels = table_of({1: [10], 2: [20], 3: []})
    predictions = table_of({1: [10], 3: [5], 4: [6]})

    def status(query, **semantics):
        found = explain(labels, predictions, "map", query, semantics=semantics)
        return found.value, found.facts.get("query"), found.headline

    assert status(1)[:2] == (1, None)
    assert status(2) == (
        0,
        "without predictions: a query with labels and no predictions scores 0 (unpredicted zero)",
        "map of query 2 = 0.0",
    )
    assert status(2, unpredicted="skip") == (
        None,
        "without predictions: a query with labels and no predictions is left out "
        "(unpredicted skip)",
        "map of query 2: it does not count",
    )
    assert status(3)[0] is None
    assert status(3)[1].startswith("without a label: ")
    assert status(3, no_relevant="one")[0] == 1
    assert status(4)[0] is None
    assert status(4)[1].startswith("not among the labels: ")
    assert status(4, unlabelled="zero")[0] == 0
    assert status(4, unlabelled="one")[2] == "map of query 4 = 1.0"
    with pytest.raises(InputError, match="query 2 has labels but no predictions"):
        status(2, unpredicted="error")
    with pytest.raises(InputError, match=r"query 4 .*is not among the labels"):
        status(4, unlabelled="error")
    with pytest.raises(InputError, match="query 5 is neither in the table of labels nor in"):
        status(5)


@pytest.mark.small
def test_ids_of_any_type_as_text_or_as_they_are():
    large = 2**64 - 1
    for kind, query, other, given in (
        (pa.uint64(), large, 5, [large, str(large), np.uint64(large)]),
        (pa.int8(), -3, 5, [-3, "-3"]),
        (pa.string(), "007", "7", ["007"]),
        (pa.dictionary(pa.int8(), pa.string()), "a b", "c", ["a b"]),
        (pa.binary(), b"\xff", b"b", [b"\xff"]),
    ):
        ids = pa.array([other, query]).cast(kind) if kind != pa.uint64() else None
        ids = ids if ids is not None else pa.array([other, query], kind)
        labels = pa.table({"query": ids, "items": [["x"], ["y"]]})
        predictions = pa.table({"query": ids, "items": [["x"], ["z", "y"]]})
        for one in given:
            found = explain(labels, predictions, "map", one)
            assert found.value == 0.5
            assert json.dumps(found.to_dict())
    with pytest.raises(UsageError, match="query id 7 is not text, but the ids in column 'query'"):
        explain(labels, predictions, "map", 7)
    labels = table_of({1: [10]})
    for wrong in ("x", "1.5", 2**64, None.__class__):
        with pytest.raises(UsageError, match="is not a 64-bit integer"):
            explain(labels, labels, "map", wrong)


@pytest.mark.small
def test_long_rows_scattered_over_files(tmp_path):
    labels = pa.table({"q": [1, 2, 1], "item_id": [10, 20, 11]})
    parts = [
        pa.table({"q": [1, 2, 1], "item_id": [9, 20, 10], "score": [0.2, 0.9, 0.1]}),
        pa.table({"q": [2, 1, 1], "item_id": [21, 11, None], "score": [0.1, 0.8, 0.5]}),
    ]
    for number, part in enumerate(parts):
        pq.write_table(part, tmp_path / f"{number}.parquet", row_group_size=1)
    found = explain(
        rankmill.Labels(labels, query="q"),
        rankmill.Predictions(str(tmp_path), query="q"),
        "map",
        "1",
    )
    assert found.table["item"].to_pylist() == [11, 9, 10]
    assert found.table["confidence"].to_pylist() == [0.8, 0.2, 0.1]
    assert found.facts["predictions"] == "3; null items dropped: 1"
    whole = evaluate(
        rankmill.Labels(labels, query="q"), rankmill.Predictions(str(tmp_path), query="q"), "map"
    ).per_query
    assert found.value == whole["map"][whole["q"].to_pylist().index(1)].as_py() == (1 + 2 / 3) / 2


@pytest.mark.small
def test_wide_rows_are_read_to_the_end(tmp_path):
    """An error that evaluate finds after the query's row is found here as well."""
    labels = table_of({1: [10], 2: [20]})
    paths = [str(tmp_path / name) for name in ("first.parquet", "second.parquet")]
    pq.write_table(table_of({1: [10], 2: [5, 20]}), paths[0])
    pq.write_table(pa.table({"user_id": [3, None], "items": [[1], [1]]}), paths[1])
    assert explain(labels, paths[:1], "map", 2).value == 0.5
    for fails in (lambda: evaluate(labels, paths, "map"), lambda: explain(labels, paths, "map", 2)):
        with pytest.raises(InputError, match="has no query id"):
            fails()


@pytest.mark.small
def test_ragged_lists_go_by_number():
    labels = Ragged.from_lists([[1], [2, 3]])
    predictions = Ragged.from_lists([[5], [2, 9, 3]])
    found = explain(labels, predictions, "map", 1)
    assert found.value == (1 + 2 / 3) / 2
    gap = explain(
        labels,
        rankmill.Predictions(predictions, score=Ragged.from_lists([[0.9], [0.8, 0.7, 0.6]])),
        "gap",
    )
    assert gap.table["query"].to_pylist() == [0, 1, 1, 1]


@pytest.mark.small
def test_infinite_confidences_are_text_in_json():
    labels = table_of({1: [10]})
    predictions = table_of({1: [10, 11]}, [[math.inf, -math.inf]])
    found = explain(labels, predictions, "gap")
    content = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert [row["confidence"] for row in content["rows"]] == ["inf", "-inf"]
    assert " -inf " in repr(found)


@pytest.mark.small
def test_the_html_table_escapes():
    labels = pa.table({"q": ["a"], "items": [["<b>"]]})
    html = explain(
        rankmill.Labels(labels, query="q"), rankmill.Predictions(labels, query="q"), "map", "a"
    )._repr_html_()
    assert '<td style="text-align: left">&lt;b&gt;</td>' in html
    assert "map of query a = 1.0 / 1 = 1.0" in html


@pytest.mark.small
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("map@3",), "has a value for each query: choose one"),
        (("gap", 1), "ranks the predictions of all queries: leave out query_id"),
        (("recall@3:micro", 1), "summary over all queries, 'micro': leave it out"),
        (("mop@3", 1), "unknown metric 'mop@3'"),
        ((["map@3"], 1), "a metric is \\['map@3'\\]"),
        (("map@3", 1.9), "query id 1.9 is not a 64-bit integer"),
    ],
)
def test_wrong_arguments(arguments, message):
    labels = table_of({1: [10]})
    with pytest.raises(UsageError, match=message):
        explain(labels, labels, *arguments)


@pytest.mark.small
def test_wrong_options():
    labels = table_of({1: [10]})
    for options, message in (
        ({"gain_function": "cubic"}, "unknown gain_function"),
        ({"rows": 0}, "rows is 0"),
        ({"rows": 1.5}, "rows is 1.5"),
        ({"threads": 0}, "threads is 0"),
        ({"threads": -1}, "threads is -1"),
        ({"semantics": "trec"}, "unknown preset 'trec': did you mean trec_eval"),
        ({"semantics": {"order": "expected", "ap_divisor": "hits"}}, "no closed form"),
    ):
        with pytest.raises(UsageError, match=message):
            flat(explain, labels, labels, "map", 1, **options)
    assert rankmill.explain is explain


@pytest.mark.small
def test_a_long_list_is_drawn_by_its_first_rows():
    labels = table_of({1: [10]})
    found = explain(labels, table_of({1: list(range(51))}), "map", 1)
    assert found.table.num_rows == len(found.to_dict()["rows"]) == 51
    *table, blank, _, _, _, drawn, _ = repr(found).splitlines()
    assert (len(table), blank) == (2 + 50, "")
    assert drawn == "drawn        the first 50 rows; `table` has all"
    assert found._repr_html_().count("<tr>") == 1 + 50
    assert "drawn" not in repr(explain(labels, table_of({1: list(range(50))}), "map", 1))


@pytest.mark.parametrize("row", [1, 3])
def test_a_query_that_stands_twice_is_refused_as_by_evaluate(row: int) -> None:
    """This also holds if the second row is far after the first."""
    queries = [7, 8, 9, 10]
    queries[row] = 7
    twice = pa.table({"query_id": queries, "items": [[1], [2], [3], [4]]})
    once = pa.table({"query_id": [7], "items": [[1]]})
    for labels, predictions in ((once, twice), (twice, once)):
        with pytest.raises(
            rankmill.InputError, match=f"query 7 appears a second time in row {row}"
        ):
            rankmill.explain(labels, predictions, "map", 7)


@pytest.mark.small
@pytest.mark.parametrize("kind", [pa.string_view(), pa.binary_view()], ids=str)
def test_items_that_are_views(kind: pa.DataType) -> None:
    items = pa.array([["a", "b"]], pa.list_(pa.large_string())).cast(pa.list_(kind))
    table = pa.table({"query": [1], "items": items})
    found = explain(table, table, "map", 1)
    assert found.value == 1.0
    assert [str(row["item"]) for row in found.rows()] == ["a", "b"]


@pytest.mark.parametrize(
    ("metric", "terms"),
    [
        ("rprec", [1, 0, 1, 0]),  # four labels, and so four ranks
        ("bpref", [1, 0, 1, 0, 0, 0]),  # d alone is judged and not relevant
        ("g", [1 / math.log2(3), 0, 2 / math.log2(3), 0, 0, 1 / math.log2(5)]),
    ],
)
def test_a_metric_without_a_cutoff_is_walked_by_ends_of_the_list(
    metric: str, terms: list[float]
) -> None:
    labels = {"q": {"a": 1.0, "b": 2.0, "c": 1.0, "d": 0.0, "e": 1.0}}
    ranked = {"q": {"a": 0.9, "x": 0.8, "b": 0.7, "d": 0.6, "y": 0.5, "c": 0.4}}
    found = rankmill.explain(labels, ranked, metric, "q", semantics="trec_eval")
    assert found.table["term"].to_pylist() == pytest.approx(terms)


def test_a_query_before_the_metric_is_told():
    with pytest.raises(
        rankmill.UsageError, match=r"the metric comes first, as in explain\(.*'map'"
    ):
        rankmill.explain({1: [1]}, {1: [1]}, 1, "map")
