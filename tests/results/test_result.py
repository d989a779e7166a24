import dataclasses
import json
import pickle
import re
import subprocess
import sys

import pyarrow as pa
import pytest

import rankmill
from rankmill.results import audit
from rankmill.results.result import Result
from rankmill.show.writers import write
from shown import aligned_numbers, plain_table


def made(**changes) -> Result:
    content = {
        "metrics": {"map@12": 0.1 + 0.2, "mrr@5": 0.25, "gap": 0.0212},
        "standard_errors": {"map@12": 0.000123456, "mrr@5": 0.0023, "gap": None},
        "bounds": {"gap": (0.0211, 0.0213)},
        "queries": 1_200_000,
        "audit": audit.empty() | {"queries_labelled": 1_200_000, "tied_confidences": 4321},
        "inputs": {"labels": {"source": "l.parquet"}, "predictions": {"source": "p.parquet"}},
        "seconds": 0.5,
    }
    content |= changes
    return Result(**content, aliases={"first_hit@5": "mrr@5", "rr@5": "mrr@5"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("map@12", 0.1 + 0.2),
        ("mrr@5", 0.25),
        ("first_hit@5", 0.25),
        ("rr@5", 0.25),
        ("gap", 0.0212),
    ],
)
def test_looks_up_names_and_aliases(name, value):
    assert made()[name] == value


@pytest.mark.parametrize("name", ["map", "map@13", "first_hit", "nonsense", "map@0", "", 12, None])
def test_an_absent_metric_is_a_key_error_that_lists_the_present_ones(name):
    with pytest.raises(KeyError) as caught:
        made()[name]
    for held in ("map@12", "mrr@5", "gap"):
        assert held in str(caught.value)


def test_tab_completes_the_names_of_metrics():
    found = rankmill.evaluate([[1]], [[1]], ["map@2", "mrr"])
    assert found._ipython_key_completions_() == ["map@2", "mrr"]


def test_the_key_error_names_the_closest_metric():
    with pytest.raises(KeyError, match=r"did you mean 'map@12'\?"):
        made()["map@1"]
    with pytest.raises(KeyError) as caught:
        made()["zzzzzz"]
    assert "did you mean" not in str(caught.value)


def test_tells_which_metrics_it_holds():
    result = made()
    assert "RR@5" in result
    assert "map" not in result
    assert 12 not in result
    assert list(result) == ["map@12", "mrr@5", "gap"]


def test_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        made().queries = 3


def test_json_indent():
    assert "\n" not in made().to_json()
    assert '\n  "queries": 1200000,' in made().to_json(indent=2)
    assert json.loads(made().to_json()) == json.loads(made().to_json(indent=2))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_json_refuses_what_json_cannot_say(value):
    with pytest.raises(ValueError, match="JSON compliant"):
        made(metrics={"map": value}).to_json()


def test_html_is_escaped_and_has_no_colours():
    html = made(metrics={"<b>&": 0.5, "gap": 0.0212}, standard_errors={"<b>&": None})._repr_html_()
    assert "&lt;b&gt;&amp;" in html
    assert "<b>&<" not in html
    assert "0.0212000" in html
    assert "tied_confidences <b>4,321</b>" in html
    assert "queries_labelled" not in html
    assert not re.search(r"color|background|#[0-9a-f]{3}", html)
    for tag in ("table", "thead", "tbody", "tr", "td", "th", "div", "small"):
        assert len(re.findall(f"<{tag}[ >]", html)) == html.count(f"</{tag}>") > 0


@pytest.mark.parametrize(
    ("values", "digits", "texts"),
    [
        ([], 6, []),
        ([None], 6, [""]),
        ([0.0], 6, ["0.000000"]),
        ([1.0], 6, ["1.00000"]),
        ([0.5, None, 0.0], 3, ["0.500", "", "0.000"]),
        ([0.5, 0.0123456789], 6, ["0.5000000", "0.0123457"]),
        ([12.5, 0.25], 6, ["12.500000", "0.250000"]),
        ([1234567.8], 6, ["1234568"]),
        ([0.5, 1.25e-9], 3, ["0.500", "1.25e-09"]),
        ([1e-5], 3, ["0.0000100"]),
    ],
)
def test_numbers_of_a_column_line_up(values, digits, texts):
    assert aligned_numbers(values, digits) == texts


def test_a_table_without_rows_is_its_header():
    assert plain_table(["metric", "value"], []) == "metric  value\n------  -----"


def test_audits_add_up():
    first = audit.empty() | {"null_items": 2, "short_lists": 1}
    total = audit.add(first, {"null_items": 3})
    assert total == audit.empty() | {"null_items": 5, "short_lists": 1, audit.PADDED: 0}
    assert list(total) == [*audit.FIELDS, audit.PADDED]
    with pytest.raises(KeyError, match="nul_items"):
        audit.add(first, {"nul_items": 1})


def test_notable_counts_leave_out_zeros_and_headlines():
    counts = audit.empty() | {"queries_labelled": 5, "tied_ranks": 1, "null_items": 2}
    assert list(audit.notable(counts).items()) == [("null_items", 2), ("tied_ranks", 1)]


def test_a_result_needs_neither_numba_nor_pyarrow():
    code = (
        "import sys, rankmill.results.result, rankmill.results.audit, rankmill.io.whole_files\n"
        "print(sorted({'numba', 'pyarrow', 'numpy', 'rich'} & set(sys.modules)))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (answer.stdout, answer.stderr) == ("[]\n", "")


def test_to_arrow_has_a_row_a_metric():
    table = made().to_arrow()
    assert table.schema == pa.schema(
        {
            "metric": pa.string(),
            "value": pa.float64(),
            "standard_error": pa.float64(),
            "queries": pa.int64(),
        }
    )
    assert table.to_pylist() == [
        {"metric": name, "value": value, "standard_error": error, "queries": 1_200_000}
        for name, value, error in (
            ("map@12", 0.1 + 0.2, 0.000123456),
            ("mrr@5", 0.25, 0.0023),
            ("gap", 0.0212, None),
        )
    ]
    nothing = made(metrics={"map": None}, standard_errors={"map": None}, queries=0).to_arrow()
    assert nothing.column("value").to_pylist() == [None]
    assert made(metrics={}, standard_errors={}).to_arrow().schema == table.schema


def test_to_pandas_is_the_same_table():
    frame = made().to_pandas()
    assert list(frame.columns) == ["metric", "value", "standard_error", "queries"]
    assert frame.set_index("metric")["value"].to_dict() == made().metrics
    assert frame["standard_error"].isna().tolist() == [False, False, True]
    assert frame["queries"].dtype == "int64"
    nothing = made(metrics={"map": None}, standard_errors={}).to_pandas()
    assert nothing.dtypes["value"] == nothing.dtypes["standard_error"] == "float64"


def test_the_values_of_each_query_go_to_pandas_likewise():
    lists = pa.table({"user_id": ["b", "a"], "items": [[1], [2, 3]]})
    frame = rankmill.evaluate(lists, lists, "map@2").per_query.to_pandas()
    assert frame.to_dict("list") == {"user_id": ["b", "a"], "map@2": [1.0, 1.0]}


WITHOUT_PANDAS = """
import sys
class Absent:
    def find_spec(self, name, *_):
        if name.partition(".")[0] == "pandas":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
from rankmill.results.result import Result
result = Result({"map": 0.5}, {"map": None}, {}, 3)
print(result.to_arrow().num_rows)
result.to_pandas()
"""


def test_pandas_is_needed_for_its_frames_only():
    command = [sys.executable, "-c", WITHOUT_PANDAS]
    answer = subprocess.run(command, capture_output=True, text=True)
    assert answer.stdout == "1\n"
    assert "UsageError: to_pandas makes a pandas DataFrame; install pandas" in answer.stderr


# ------------------------------------------------------------------ equal, and side by side

GOLD = {1: [1], 2: [3], 3: [1]}
RUNS = {"a": {1: [1], 2: [3], 3: [2]}, "b": {1: [2, 1], 2: [3]}}


def test_equal_results_may_come_from_other_files_but_count_alike():
    one = rankmill.evaluate(GOLD, RUNS["a"], "map")
    table = pa.table({"query": list(GOLD), "items": list(RUNS["a"].values())})
    other = rankmill.evaluate(GOLD, table, "map")
    assert one.inputs != other.inputs
    assert one == other
    assert one != rankmill.evaluate(GOLD, RUNS["a"], "map", semantics={"unpredicted": "skip"})
    assert one != rankmill.evaluate(GOLD, RUNS["a"] | {9: [1]}, "map")  # the audit


def test_results_of_runs_are_a_dict_that_is_shown_as_a_table():
    results = rankmill.evaluate_runs(GOLD, RUNS, ["map", "gini"])
    assert isinstance(results, dict)
    assert {name: one["map"] for name, one in results.items()} == {"a": 2 / 3, "b": 0.5}
    lines = repr(results).splitlines()
    assert lines[0].split() == ["metric", "a", "error", "b", "error"]
    assert lines[2].split()[::2] == ["map", "0.333", "0.289"]
    assert lines[2].split()[1::2] == ["0.666667*", "0.500000"]
    assert "neither side is better: gini" in lines
    assert results._repr_html_().count("<tr><td") == 2 + 4
    assert pickle.loads(pickle.dumps(results)) == results


def test_one_is_no_plural():
    result = rankmill.evaluate({1: [1]}, {1: [1]}, "map")
    told = write(result._view(), "table")
    assert "(wide; 1 row; " in told
    assert "1 rows" not in told


def test_a_result_as_text_has_its_sums_and_slices_unless_they_are_many() -> None:
    labels, lists = {n: [n] for n in range(50)}, {n: [n + n % 2, n] for n in range(50)}
    few = pa.table({"query": range(50), "kind": ["de", "fr"] * 25})
    found = rankmill.evaluate(labels, lists, "map", by=few, sums="half = 0.5*map")
    text = repr(found)
    assert re.search(r"^fr +map +0\.5", text, re.M)
    assert re.search(r"^half +0\.375", text, re.M)
    assert text.endswith("\n\naudit: repeated_items 25")
    many = pa.table({"query": range(50), "kind": [*map(str, range(50))]})
    found = rankmill.evaluate(labels, lists, "map", by=many)
    assert "\n\n50 values of slices are in by\naudit: " in repr(found)
