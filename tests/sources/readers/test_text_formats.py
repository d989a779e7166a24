"""Every format of text gives the same bits as the same rows in a table."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankmill
import text_files as text
from flat import flat
from portions import in_blocks
from rankmill.errors import InputError, UsageError
from strategies import some
from text_sides import BAD, PREDICTIONS, plain_words, side, words

METRICS = ["map@5", "ndcg@3", "mrr", "gap", "precision@2"]


def scored(labels: Any, predictions: Any, **options: Any) -> tuple[Any, ...]:
    """The values with all bits, what was counted, and the values of each query."""
    metrics = options.pop("metrics", METRICS)
    result = flat(rankmill.evaluate, labels, predictions, metrics, **options)
    rows = result.per_query.to_pydict()
    names, *columns = rows.values()
    each = sorted(zip(map(str, names), *columns, strict=True))
    return result.metrics, result.audit, each


LABELS: dict[str, tuple[str, Any, bool, dict[str, Any]]] = {
    "csv long": ("l.csv", lambda one: text.long_text(one, "gain"), False, {}),
    "csv blanks": ("l.csv", lambda one: text.wide_text(one, "gain", " "), True, {}),
    "csv json": ("l.csv", lambda one: text.brackets_text(one, "gain"), True, {}),
    "qrels": ("l.qrels", text.qrels_text, False, {}),
    "qrels of three": ("l.txt", lambda one: text.qrels_text(one, 3), False, {}),
    "beir": (
        "test.tsv",
        lambda one: text.long_text(one, "score", "\t").replace(
            b"query_id\titem_id", b"query-id\tcorpus-id"
        ),
        False,
        {},
    ),
    "jsonl": ("l.jsonl", lambda one: text.json_lines(one, "gain"), True, {}),
}


@pytest.mark.parametrize("kind", ["int", "str"])
@pytest.mark.parametrize("form", PREDICTIONS)
def test_predictions_of_text_count_as_those_of_a_table(
    tmp_path: Path, form: str, kind: str
) -> None:
    name, writer, wide, options = PREDICTIONS[form]
    labels = text.twin(side(kind, "labels"), "gain", wide=False)
    lists = side(kind, "predictions")
    path = text.write(tmp_path, name, writer(lists))
    expected = scored(labels, text.twin(lists, "score", wide=wide))
    assert scored(labels, path, **options) == expected
    assert scored(labels, path, **options, memory=1, threads=3) == expected
    assert expected[0]["map@5"] > 0


@pytest.mark.parametrize("kind", ["int", "str"])
@pytest.mark.parametrize("form", LABELS)
def test_labels_of_text_count_as_those_of_a_table(tmp_path: Path, form: str, kind: str) -> None:
    name, writer, wide, options = LABELS[form]
    lists = side(kind, "labels")
    path = text.write(tmp_path, name, writer(lists))
    predictions = text.twin(side(kind, "predictions"), "score", wide=True)
    assert scored(path, predictions, **options) == scored(
        text.twin(lists, "gain", wide=wide), predictions
    )


@pytest.mark.parametrize("form", ["csv long", "csv json", "run", "jsonl"])
@pytest.mark.parametrize("compression", ["gz", "bz2", "zst", "lz4"])
def test_compressed_text_is_the_same(tmp_path: Path, form: str, compression: str) -> None:
    name, writer, _, options = PREDICTIONS[form]
    lists = side("str", "predictions")
    labels = text.twin(side("str", "labels"), "gain", wide=True)
    plain = text.write(tmp_path, name, writer(lists))
    packed = text.write(tmp_path, name, writer(lists), compression)
    assert scored(labels, packed, **options) == scored(labels, plain, **options)
    content = Path(packed).read_bytes()
    Path(packed).write_bytes(content[: len(content) // 2])
    with pytest.raises(InputError, match=f"{Path(packed).name}"):
        scored(labels, packed, **options)


@pytest.mark.rows(6)
@pytest.mark.parametrize(("form", "size"), some(itertools.product(PREDICTIONS, (30, 100, 1000)), 2))
def test_blocks_may_end_anywhere(tmp_path: Path, form: str, size: int) -> None:
    name, writer, wide, options = PREDICTIONS[form]
    lists = side("str", "predictions")
    labels = text.twin(side("str", "labels"), "gain", wide=True)
    path = text.write(tmp_path, name, writer(lists))
    expected = scored(labels, text.twin(lists, "score", wide=wide))
    source = in_blocks(path, size, format=options.get("predictions_as"))
    assert scored(labels, source) == expected


MARK = b"\xef\xbb\xbf"  # the byte order mark
BLANK = [b"\n", b"\n\n\n", b"\r\n\r\r\n", b"  \n\n \r\n", MARK + b"\n", MARK + b" \r\n\n"]


@pytest.mark.rows(5)
@pytest.mark.parametrize(("form", "start"), some(itertools.product(PREDICTIONS, BLANK), 5))
def test_blank_lines_before_the_first(tmp_path: Path, form: str, start: bytes) -> None:
    name, writer, _, options = PREDICTIONS[form]
    labels = text.twin(side("str", "labels"), "gain", wide=True)
    content = writer(side("str", "predictions"))
    expected = scored(labels, text.write(tmp_path, name, content), **options)
    path = text.write(tmp_path, name, start + content.removeprefix(MARK))
    assert scored(labels, path, **options) == expected
    assert scored(labels, in_blocks(path, 100, format=options.get("predictions_as"))) == expected


@pytest.mark.small
@pytest.mark.parametrize(
    ("name", "content", "columns"),
    [
        ("a.csv", "1,7,0.5\n1,8,0.75\n", "query,item,score"),
        ("a.tsv", "1\t7\t2\n1\t8\t1\n", "query,item,rank"),
        ("run.txt", "1\t7\t2\n1\t8\t1\n", "query,item,rank"),  # MS MARCO
        ("run.txt", "1 Q0 7 1 0.5 x\n1 Q0 8 2 0.75 x", None),
        ("one.txt", "1 Q0 8 2 0.75 x", None),  # its only line has no end
        ("one.json", '{"1": {"8": 0.75}}', None),
    ],
)
def test_blank_lines_before_a_file_without_a_header(
    tmp_path: Path, name: str, content: str, columns: str | None
) -> None:
    for start in ("", "\n", "\r\n \n"):
        path = text.write(tmp_path, name, (start + content).encode())
        predictions = rankmill.Predictions(path, columns=columns)
        assert rankmill.evaluate({"1": ["8"]}, predictions, "mrr")["mrr"] == 1.0


def test_folders_of_text_give_columns(tmp_path: Path) -> None:
    lists = side("int", "predictions")
    names = list(lists)
    for day, part in enumerate((names[:30], names[30:])):
        folder = tmp_path / "run" / f"day={day}"
        folder.mkdir(parents=True)
        text.write(folder, "p.csv", text.long_text({q: lists[q] for q in part}, "score"), "gz")
    labels = text.twin(side("int", "labels"), "gain", wide=True)
    expected = scored(labels, text.twin(lists, "score", wide=False))
    assert scored(labels, str(tmp_path / "run")) == expected
    assert scored(labels, str(tmp_path / "run" / "*" / "*.csv.gz")) == expected
    result = rankmill.evaluate(
        rankmill.Labels(labels, query="query_id"),
        rankmill.Predictions(str(tmp_path / "run"), query="day"),
        ["map"],
    )
    assert result.inputs["predictions"]["columns"]["query"] == "day"


@pytest.mark.small
def test_json_lines_are_sliced_by_their_folders(tmp_path: Path) -> None:
    """Then only the column of the folders is read, of which a file has none."""
    for day, line in ((1, '{"query": 1, "items": [5]}'), (2, '{"query": 2, "items": [6]}')):
        (tmp_path / f"day={day}").mkdir()
        (tmp_path / f"day={day}" / "l.jsonl").write_text(f"{line}\n\n")
    found = rankmill.evaluate(str(tmp_path), {1: [5], 2: [5]}, "map@1", by="day")
    assert found.by is not None
    assert found.by["value"].to_pylist() == [1.0, 0.0]


def test_both_sides_of_text_are_compared_as_text(tmp_path: Path) -> None:
    labels = text.write(tmp_path, "l.csv", b"user,item\n1,0108775015\n2,5\n")
    predictions = text.write(tmp_path, "p.csv", b"user,items\n1,108775015 0108775015\n2,5 05\n")
    assert rankmill.evaluate(labels, predictions, ["mrr"])["mrr"] == 0.75
    integers = pa.table({"user": ["1", "2"], "items": [[108775015], [5]]})
    # 108775015 is the first of its list, and 0108775015 another item.
    assert rankmill.evaluate(integers, predictions, ["mrr"])["mrr"] == 1


@pytest.mark.small
def test_ids_of_text_beyond_int64(tmp_path: Path) -> None:
    large = 2**64 - 1
    labels = pa.table({"user": pa.array([large, 5], pa.uint64()), "items": [[1], [2]]})
    path = text.write(tmp_path, "p.csv", b"user,items\n%d,[1]\n5,[3 2]\n" % large)
    assert rankmill.evaluate(labels, path, ["mrr"])["mrr"] == 0.75
    for wrong in (b"18446744073709551616", b"-1", b"99999999999999999999"):
        text.write(tmp_path, "p.csv", b"user,items\n5,[3 2]\n%s,[1]\n" % wrong)
        result = rankmill.evaluate(labels, path, ["mrr"])  # compared as text
        assert (result["mrr"], result.audit["queries_in_both"]) == (0.25, 1)


@pytest.mark.small
def test_a_note_offers_the_ties_of_trec_eval(tmp_path: Path) -> None:
    labels = text.write(tmp_path, "l.qrels", b"1 0 a 1\n")
    run = text.write(tmp_path, "p.run", b"1 Q0 a 1 0.5 t\n1 Q0 b 2 0.5 t\n1 Q0 c 3 0.25 t\n")
    result = rankmill.evaluate(labels, run, ["mrr"])
    assert result["mrr"] == 1
    assert result.notes[0].startswith("2 predictions have the same score as another")
    result = rankmill.evaluate(labels, run, ["mrr"], semantics="trec_eval")
    assert (result["mrr"], result.notes) == (0.5, [])


@pytest.mark.long
def test_later_rows_decide_anew(tmp_path: Path) -> None:
    """Cells that may hold several items, of which the first rows have none."""
    head = b"user,item\n" + b"".join(b"u%d,i%d\n" % (i, i) for i in range(200_000))
    path = text.write(tmp_path, "l.csv", head + b"last,New York\n")
    predictions = pa.table({"user": ["last"], "items": [["New York"]]})
    assert rankmill.evaluate(path, predictions, ["map"])["map"] == 1 / 200_001
    several = pa.table({"user": ["last"], "items": [["New", "York"]]})
    assert rankmill.evaluate(path, several, ["map"])["map"] == 1 / 200_001
    with pytest.raises(
        InputError, match=r"l.csv \(column 'item'\): 'New York' may be one item, or"
    ):
        rankmill.evaluate(path, pa.table({"user": ["last"], "items": [["c"]]}), ["map"])
    once = pa.table({"user": [f"u{i}" for i in range(200_000)] + ["last"]})
    once = once.append_column("item", pa.array(["i"] * 200_000 + ["New York"]))
    with pytest.raises(InputError, match=r"\(row 200000, column 'item'\): found 'New York'; it"):
        rankmill.evaluate(once.to_reader(1000), predictions, ["map"])
    as_long = rankmill.evaluate(rankmill.Labels(path, format="csv-long"), predictions, ["map"])
    assert as_long.audit["queries_in_both"] == 1
    assert as_long["map"] == 1 / 200_001
    as_wide = rankmill.evaluate(rankmill.Labels(path, format="csv-wide"), predictions, ["map"])
    assert as_wide["map"] == 0


@pytest.mark.small
def test_names_that_contradict_a_header_are_refused(tmp_path: Path) -> None:
    """As those of a run of MS MARCO given for qrels of BEIR, whose grades would be lost."""
    content = b"query-id\tcorpus-id\tscore\nq1\ta\t1\nq1\tb\t0\n"
    path = text.write(tmp_path, "test.tsv", content)
    predictions = {"q1": ["b", "a"]}
    told = r"its first row calls 'score' what columns calls 'rank': leave the names out"
    with pytest.raises(UsageError, match=told):
        rankmill.evaluate(rankmill.Labels(path, columns="query,item,rank"), predictions, ["mrr"])
    for columns in ("query,item,gain", "query-id,corpus-id,score"):
        labels = rankmill.Labels(path, columns=columns)
        assert rankmill.evaluate(labels, predictions, ["mrr"])["mrr"] == 0.5


@pytest.mark.small
@pytest.mark.parametrize(
    ("columns", "content"),
    [
        ("query,item,score", b"1,7,0.5\n1,8,0.75\n"),
        (["query", "item", "score"], b"1,7,0.5\n1,8,0.75\n"),
        ("qid,_,docno,sim", b"1,x,7,0.5\n1,x,8,0.75\n"),
    ],
)
def test_columns_without_a_header_are_named(tmp_path: Path, columns: Any, content: bytes) -> None:
    path = text.write(tmp_path, "p.csv", content)
    labels = pa.table({"user": [1], "items": [[8]]})
    assert (
        rankmill.evaluate(
            rankmill.Labels(labels, columns=columns),
            rankmill.Predictions(path, columns=columns),
            ["mrr"],
        )["mrr"]
        == 1
    )
    with pytest.raises(UsageError, match=r"^columns names 2 columns, but .*line 1 has . columns"):
        rankmill.evaluate(
            rankmill.Labels(labels, columns="query,item"),
            rankmill.Predictions(path, columns="query,item"),
            ["mrr"],
        )


@pytest.mark.small
@pytest.mark.lengthy
@pytest.mark.parametrize("suffix", ["", "gz"])
def test_standard_input(tmp_path: Path, suffix: str) -> None:
    labels = text.write(tmp_path, "l.csv", b"user,item\n1,8\n")
    content = text.compress(b"user,item,score\n1,7,0.5\n1,8,0.75\n", suffix)
    words = ["evaluate", labels, "-", "-m", "mrr", "--format", "json"]
    command = [sys.executable, "-m", "rankmill", *words]
    ended = subprocess.run(command, input=content, capture_output=True, check=True)
    assert ended.stderr == b""
    answer = json.loads(ended.stdout)
    assert answer["metrics"]["mrr"] == 1
    assert answer["inputs"]["predictions"]["source"] == "standard input"


@pytest.mark.small
@pytest.mark.parametrize("case", BAD)
def test_bad_text_is_one_clear_line(tmp_path: Path, case: str, run: Any) -> None:
    name, content, message = BAD[case]
    path = text.write(tmp_path, name, content)
    import pyarrow.parquet as pq

    labels = tmp_path / "labels.parquet"
    pq.write_table(pa.table({"user": [1], "items": [[8]]}), labels)
    code, out, err = run("evaluate", labels, path, "-m", "map")
    assert (code, out) == (3, "")
    assert err.count("\n") == 1
    assert message in err


@st.composite
def any_lists(draw: Any, names: Any) -> text.Lists:
    queries = draw(st.lists(names, min_size=1, max_size=5, unique=True))
    scores = st.floats(allow_nan=False, allow_infinity=False)
    return {
        query: list(
            zip(
                items := draw(st.lists(names, min_size=1, max_size=4, unique=True)),
                draw(st.lists(scores, min_size=len(items), max_size=len(items))),
                strict=True,
            )
        )
        for query in queries
    }


@given(data=st.data(), form=st.sampled_from(["csv", "tsv", "json", "jsonl", "run"]))
def test_any_text_comes_back(tmp_path_factory: Any, data: Any, form: str) -> None:
    folder = tmp_path_factory.mktemp("any")
    lists = data.draw(any_lists(plain_words if form == "run" else words))
    name, content, wide = {
        "csv": ("p.csv", text.long_text, False),
        "tsv": ("p.tsv", lambda one, n: text.long_text(one, n, "\t"), False),
        "json": ("p.csv", text.brackets_text, True),
        "jsonl": ("p.jsonl", text.json_lines, True),
        "run": ("p.run", lambda one, n: text.run_text(one), False),
    }[form]
    path = text.write(folder, name, content(lists, "score"))
    labels = {query: items[-1:] for query, items in lists.items()}
    table = text.twin(labels, "gain", wide=True).select(["query_id", "items"])
    options = {"metrics": ["map", "gap"], "predictions_as": "csv-long" if form == "csv" else None}
    if form == "tsv":
        options["predictions_as"] = "tsv-long"
    assert scored(table, path, **options) == scored(
        table, text.twin(lists, "score", wide=wide), metrics=["map", "gap"]
    )


def test_a_whole_confidence_among_fractions_is_one_of_a_pair(tmp_path):
    (tmp_path / "l.csv").write_text("id,landmarks\na,8815\nb,27\n")
    (tmp_path / "p.csv").write_text("id,landmarks\na,8815 1\nb,9 0.5\nc,\n")
    result = rankmill.evaluate(str(tmp_path / "l.csv"), str(tmp_path / "p.csv"), "gap")
    assert result.metrics == {"gap": 0.5}
    (tmp_path / "p.csv").write_text("id,landmarks\na,8815 1\nb,9 27\n")  # two items each
    result = rankmill.evaluate(str(tmp_path / "l.csv"), str(tmp_path / "p.csv"), "mrr")
    assert result.metrics == {"mrr": 0.75}


@pytest.mark.parametrize(
    ("labels", "predictions", "value"),
    [
        ("display_id,ad_id,clicked\n1,5,0\n1,6,1\n", "display_id,ad_id\n1,5 6\n", 0.5),
        ("session_type,labels\n1_carts,5 6\n", "session_type,labels\n1_carts,6 5\n", 1.0),
        (",user,item\n0,1,5\n", ',user,items\n0,1,"[4, 5]"\n', 0.5),
    ],
    ids=["outbrain", "otto", "an index of pandas"],
)
def test_columns_of_competitions_are_found(labels, predictions, value, tmp_path, recwarn):
    (tmp_path / "l.csv").write_text(labels)
    (tmp_path / "p.csv").write_text(predictions)
    result = rankmill.evaluate(str(tmp_path / "l.csv"), str(tmp_path / "p.csv"), "map")
    assert result.metrics == {"map": value}
    assert not recwarn.list


def test_a_run_of_ms_marco_is_read_by_the_names_of_its_columns(tmp_path):
    qrels, run = tmp_path / "qrels.tsv", tmp_path / "run.tsv"
    qrels.write_text("7\t0\t11\t1\n8\t0\t12\t1\n")
    run.write_text("7\t13\t1\n7\t11\t2\n8\t12\t1\n")
    with pytest.raises(
        InputError, match=r"MS MARCO, use Predictions\(format=.tsv., columns=.query,item"
    ):
        rankmill.evaluate(qrels, run, "mrr@10")
    result = rankmill.evaluate(
        rankmill.Labels(qrels, columns="query,item,rank"),
        rankmill.Predictions(run, columns="query,item,rank"),
        "mrr@10",
    )
    assert result.metrics == {"mrr@10": 0.75}


def test_swapped_qrels_and_runs_are_told(tmp_path):
    qrels, run = tmp_path / "qrels.txt", tmp_path / "a.run"
    qrels.write_text("1 0 d1 1\n")
    run.write_text("1 Q0 d1 1 0.5 x\n")
    with pytest.raises(InputError, match="if labels and predictions are swapped, swap them"):
        rankmill.evaluate(run, qrels)
