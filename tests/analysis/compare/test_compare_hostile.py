"""What a hostile user gives to compare: an answer that holds, or an error that helps."""

import pyarrow as pa
import pytest

import rankmill
from rankmill.engine.segments import natural

QUERIES = list(range(24))
LABELS = pa.table({"query": QUERIES, "items": [[1]] * 24})
RUNS = {
    name: pa.table(
        {
            "query": QUERIES,
            "items": [[9, 1] if query % every else [1, 9] for query in QUERIES],
            "scores": [[0.9, 0.8 - query / 100] for query in QUERIES],
        }
    )
    for name, every in (("a", 2), ("b", 3))
}


def cut(column):
    """Return the slices by a column of the labels, and how many queries each has."""
    labels = LABELS.append_column("c", column)
    found = rankmill.compare(labels, RUNS, "map@2", by="c").slices
    return [(one.value[0], one.queries) for one in found]


@pytest.mark.small
def test_the_order_of_slices_is_the_same_in_every_process():
    values = ["nan", "inf", "1", "1.0", "01", "b", "-inf", "infinity", "NaN", "2", "b9", "b10"]
    wanted = ["-inf", "01", "1", "1.0", "2", "inf", "infinity", "NaN", "b", "b9", "b10", "nan"]
    assert sorted(values, key=natural) == sorted(values[6:] + values[:6], key=natural) == wanted


@pytest.mark.small
def test_values_of_slices_are_told_apart_as_a_reader_does():
    assert cut(pa.array([0.0, -0.0] * 12)) == [("0.0", 24)]
    assert cut(pa.array([b"x", b"\xff", None] * 8)) == [("\\xff", 8), ("x", 8), (None, 8)]
    assert cut(pa.array([float("nan"), 2.5, None] * 8)) == [("2.5", 8), ("nan", 8), (None, 8)]


@pytest.mark.small
def test_systems_have_texts_as_names():
    for name in (1, None, "a\udcff"):
        with pytest.raises(
            rankmill.UsageError, match=r"a system is called .*; expected valid UTF-8 text"
        ):
            rankmill.compare(LABELS, {name: RUNS["a"], "b": RUNS["b"]}, "map")


@pytest.mark.small
def test_what_is_no_state_is_refused():
    with pytest.raises(rankmill.UsageError, match="state is a int; expected what compare_part"):
        rankmill.parts.compare_state(3)


@pytest.mark.small
def test_what_gap_does_not_have_is_told():
    found = rankmill.compare(LABELS, RUNS, ["gap", "map@2"], by="label_count", moved=1)
    assert "gap: no slices and no queries that moved" in str(found)
    assert "no slices" not in str(rankmill.compare(LABELS, RUNS, ["gap", "map@2"]))


@pytest.mark.small
def test_the_title_of_a_p_names_its_test_and_correction():
    metrics = ["gap", "map@2", "recall@1"]
    shown = str(rankmill.compare(LABELS, RUNS, metrics, tests=["wilcoxon", "t"]))
    assert shown.count("p wilcoxon (holm)") == shown.count("p t (holm)") == 3
    alone = str(rankmill.compare(LABELS, RUNS, metrics, tests="wilcoxon"))
    assert [
        line.count("p (holm)") for line in alone.splitlines() if " value " in line and "±" in line
    ] == [1, 1, 1]


@pytest.mark.small
def test_a_comparison_of_states_names_no_inputs():
    state = rankmill.parts.compare_part(LABELS, RUNS, "map@2")
    assert "labels:" not in str(rankmill.parts.compare_state(state))


@pytest.mark.small
@pytest.mark.parametrize("ids", ["{:03}", "{}", "q{}"])
def test_a_text_file_cuts_queries_whose_ids_are_text(tmp_path, ids):
    names = [ids.format(query) for query in QUERIES]
    labels = LABELS.set_column(0, "query", pa.array(names))
    runs = {name: run.set_column(0, "query", pa.array(names)) for name, run in RUNS.items()}
    lines = [f"{name},{'odd' if i % 2 else 'even'}" for i, name in enumerate(names)]
    (tmp_path / "by.csv").write_text("\n".join(["query,parity", *lines[:20], "unknown,even", ""]))
    found = rankmill.compare(labels, runs, "map@2", by=str(tmp_path / "by.csv"))
    assert [(one.value[0], one.queries) for one in found.slices] == [
        ("even", 10),
        ("odd", 10),
        (None, 4),
    ]


@pytest.mark.small
def test_a_table_of_other_queries_is_told():
    other = pa.table({"query": [100, 101], "parity": ["even", "odd"]})
    with pytest.warns(RuntimeWarning, match="no query of a table is among the labels"):
        found = rankmill.compare(LABELS, RUNS, "map@2", by=other)
    assert [(one.value[0], one.queries) for one in found.slices] == [(None, 24)]
    empty = pa.table({"query": QUERIES, "parity": pa.nulls(24, pa.string())})
    rankmill.compare(LABELS, RUNS, "map@2", by=empty)  # known not to be known: no warning
