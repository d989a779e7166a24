"""Prepared labels give what others give, to the last bit, and are read once for many calls."""

import pickle
import random
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankmill
from rankmill import Labels, Predictions, Semantics
from rankmill.engine import held_labels
from rankmill.errors import UsageError

DRAW = random.Random(28)
QUERIES = [f"q{i}" for i in range(60)]
ROWS = [(q, DRAW.randrange(20), DRAW.randrange(-1, 4)) for q in QUERIES for _ in range(6)]
LONG = pa.table(
    dict(zip(("query", "item", "gain"), map(list, zip(*ROWS, strict=True)), strict=True))
)
RUNS = [
    {q: DRAW.sample(range(20), 8) for q in DRAW.sample(QUERIES, 50)} | {"stranger": [1, 2]}
    for _ in range(3)
]
CALLS = [
    {"metrics": ["map@5", "ndcg@5"]},
    {"metrics": "judged@5", "semantics": Semantics(judged_only=True)},
    {"metrics": "recall@5", "semantics": {"repeated_labels": "count"}},
    {"metrics": "ndcg", "semantics": Semantics(gain_function="exp", rel=2)},
    {"metrics": "map@5", "by": "label_count"},
    {"metrics": "map@5", "by": "list_length", "sums": "total = 0.5*map@5"},
    {"metrics": ["map@5", "ndcg@5"], "per_query": False, "threads": 1},
]


def told(result):
    """All of a result but how long it took."""
    found = result.to_dict()
    del found["seconds"]
    slices = None if result.by is None else result.by.to_pylist()
    table = result.per_query
    return found, slices, None if table is None else (table.to_pylist(), table.schema.metadata)


def forms(folder):
    """The same labels as a table, long and wide files, and text."""
    pq.write_table(LONG, folder / "labels.parquet", row_group_size=100)
    text = "".join(f"{q},{i},{g}\n" for q, i, g in ROWS)
    (folder / "labels.csv").write_text("query,item,gain\n" + text)
    (folder / "labels.qrels").write_text("".join(f"{q} 0 {i} {g}\n" for q, i, g in ROWS))
    wide: dict = {}
    for query, item, gain in ROWS:
        wide.setdefault(query, []).append((item, gain))
    return {
        "table": lambda: Labels(LONG),
        "parquet": lambda: Labels(folder / "labels.parquet"),
        "csv": lambda: Labels(folder / "labels.csv"),
        "trec": lambda: Labels(folder / "labels.qrels"),
        "dict": lambda: Labels(wide),
        "binary": lambda: Labels(LONG, binary=True),
    }


@pytest.mark.rows(2)
@pytest.mark.parametrize("form", ["table", "parquet", "csv", "trec", "dict", "binary"])
def test_each_call_has_the_bits_of_labels_that_are_not_prepared(form, tmp_path) -> None:
    make = forms(tmp_path)[form]
    prepared = make().prepare()
    for call in CALLS * 2:
        for run in RUNS[:2]:
            expected = told(rankmill.evaluate(make(), run, **call))
            assert told(rankmill.evaluate(prepared, run, **call)) == expected


def test_a_stream_is_refused() -> None:
    stream = pa.RecordBatchReader.from_batches(LONG.schema, LONG.to_batches())
    with pytest.raises(UsageError, match="can be read only once"):
        rankmill.evaluate(Labels(stream).prepare(), RUNS[0], "map@5")


def counted(monkeypatch, module=held_labels):
    """How often labels are read, in a list that grows."""
    found, read = [], module.read_labels
    monkeypatch.setattr(module, "read_labels", lambda *given: found.append(1) or read(*given))
    return found


def test_labels_are_read_once_and_again_only_for_what_is_counted_otherwise(
    tmp_path, monkeypatch
) -> None:
    path = tmp_path / "labels.parquet"
    pq.write_table(LONG, path)
    read, labels = counted(monkeypatch), Labels(path).prepare()
    for run in RUNS:
        rankmill.evaluate(labels, run, ["map@5", "ndcg@5"])
    assert len(read) == 1
    rankmill.evaluate(labels, RUNS[0], "mrr", semantics={"order": "confidence"})
    assert len(read) == 1  # the labels are the same
    for _ in range(2):
        rankmill.evaluate(labels, RUNS[0], "recall@5", semantics={"repeated_labels": "count"})
    assert len(read) == 2
    rankmill.evaluate(labels, RUNS[0], "map@5", by="label_count")
    assert rankmill.evaluate(labels, RUNS[0], "map@5").by is None
    assert len(read) == 3


def test_what_is_found_in_text_is_told_by_each_call(tmp_path) -> None:
    path = tmp_path / "labels.csv"
    rows = "".join(f'{i},"{item}"\n' for i in range(9) for item in ("a", "b "))
    path.write_text(f"query,item\n{rows}")
    run = {i: ["a", "d"] for i in range(9)}
    labels = Labels(path).prepare()
    plain = told(rankmill.evaluate(Labels(path), run, "map@5"))
    assert "in 'item', 9 ids have spaces around" in plain[0]["notes"][0]
    assert [told(rankmill.evaluate(labels, run, "map@5")) for _ in range(2)] == [plain] * 2


def test_text_ids_are_read_as_the_predictions_have_them(tmp_path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("query,item\n01,7\n2,8\n")
    labels = Labels(path).prepare()
    for run in ({1: [7], 2: [9]}, {"01": ["7"], "2": ["9"]}) * 2:
        plain, ours = (_outcome(one, run) for one in (Labels(path), labels))
        assert ours == plain


def _outcome(labels, run):
    try:
        return told(rankmill.evaluate(labels, run, "map@5"))
    except rankmill.InputError as error:
        return str(error)


def test_weights_and_subtopics_have_the_same_values() -> None:
    table = pa.table({"query": [1, 1, 2, 2], "item": [1, 1, 3, 4], "aspect": list("abab")})
    weighted = table.append_column("w", pa.array([2.0, 2.0, 0.5, 0.5]))
    run = {1: [1, 2], 2: [4, 3]}
    for given, metric in (
        (Labels(weighted, weight="w", binary=True), "map@2"),
        (Labels(table, subtopic="aspect"), "alpha_ndcg@2"),
    ):
        labels, plain = given.prepare(), told(rankmill.evaluate(given, run, metric))
        assert [told(rankmill.evaluate(labels, run, metric)) for _ in range(2)] == [plain] * 2


def test_threads_and_several_systems_share_them() -> None:
    labels, expected = Labels(LONG).prepare(), [told(rankmill.evaluate(LONG, one)) for one in RUNS]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda one: told(rankmill.evaluate(labels, one)), RUNS * 5))
    assert found == expected * 5
    results = rankmill.evaluate_runs(labels, {str(i): one for i, one in enumerate(RUNS)})
    assert {name: one.metrics for name, one in results.items()} == {
        str(i): one[0]["metrics"] for i, one in enumerate(expected)
    }


def test_all_functions_take_them() -> None:
    labels, runs = Labels(LONG).prepare(), {"old": RUNS[0], "new": RUNS[1]}
    assert rankmill.compare(labels, runs, "map@5") == rankmill.compare(LONG, runs, "map@5")
    traces = (rankmill.explain(one, RUNS[0], "map@5", "q1") for one in (labels, LONG))
    assert len({one.to_json() for one in traces}) == 1
    assert rankmill.head(labels)["role"] == rankmill.head(Labels(LONG))["role"]


def test_errors_are_those_of_other_labels() -> None:
    for labels, run in (({}, RUNS[0]), ({"q": [1]}, {"q": ["a"]}), ([[1]], {"q": [1]})):
        texts = set()
        for given in (Labels(labels), Labels(labels).prepare()):
            with pytest.raises(rankmill.RankmillError) as caught:
                rankmill.evaluate(given, run)
            texts.add(str(caught.value))
        assert len(texts) == 1
    with pytest.raises(rankmill.UsageError, match="predictions cannot be Labels"):
        rankmill.evaluate({"q": [1]}, Labels({"q": [1]}).prepare())


def test_another_process_reads_them_itself() -> None:
    labels = Labels({"q": [1]}).prepare()
    rankmill.evaluate(labels, {"q": [1]}, "map")
    moved = pickle.loads(pickle.dumps(labels))
    assert rankmill.evaluate(moved, Predictions({"q": [2, 1]}), "map")["map"] == 0.5
