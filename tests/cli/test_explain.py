"""`rankmill explain` and `rankmill explain-evaluators`, the whole way."""

import csv
import json
import os
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli_runs import GAP, on_a_terminal, write_dump
from preset_tables import tables
from rankmill.semantics.presets import PRESETS
from references import REFERENCES


@pytest.fixture
def dump(tmp_path):
    return write_dump(tmp_path)


# explain


@pytest.mark.small
@pytest.mark.parametrize("kind", [pa.string(), pa.binary(), pa.dictionary(pa.int8(), pa.binary())])
def test_an_id_that_is_not_utf_8(run, tmp_path, kind):
    ids = pa.array([b"\xff", b"a"]).cast(pa.binary())
    if kind == pa.string():
        ids = pa.Array.from_buffers(kind, 2, ids.buffers())  # unchecked text, as files may hold
    elif kind != pa.binary():
        ids = ids.dictionary_encode().cast(kind)
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"user_id": ids, "item_id": [[1, 2], [3]]}), path)
    asked = ["explain", path, path, "-m", "map", "--format", "json", "--query-id"]
    code, out, err = run(*asked, os.fsdecode(b"\xff"))  # Python passes such an argument like this
    assert (code, err) == (0, "")
    assert [row["item"] for row in json.loads(out)["rows"]] == [1, 2]
    code, _, err = run(*asked, os.fsdecode(b"\xfe"))
    assert code == 3
    assert "xfe' is neither in" in err
    code, _, err = run(*asked, "\ud800")
    assert code == 2
    assert "is not valid UTF-8 text" in err


@pytest.mark.small
def test_gap_as_parquet_is_whole_and_a_table_is_short(run, tmp_path):
    count = 120
    ids = list(range(count))
    labels, predictions = tmp_path / "l.parquet", tmp_path / "p.parquet"
    pq.write_table(pa.table({"query": ids, "item_id": ids}), labels)
    scores = [one / count for one in ids]
    pq.write_table(pa.table({"query": ids, "item_id": ids, "score": scores}), predictions)
    written = tmp_path / "gap.parquet"
    assert run("explain", labels, predictions, "-m", "gap", "-o", written) == (0, "", "")
    table = pq.read_table(written)
    assert table.column_names == [
        *("rank", "query", "item", "confidence", "correct", "precision", "term", "sum")
    ]
    assert table["query"].to_pylist() == ids[::-1]
    assert table["sum"].to_pylist()[-1] == count
    code, out, err = run("explain", labels, predictions, "-m", "gap")
    assert (code, err) == (0, "")
    assert "\nrows         the first 50 of 120; for all, use --rows 120\n" in out
    assert out.index("\n  50  ") < out.index("\n\npredictions  120, of which correct: 120\n")
    assert "\n  51  " not in out
    assert out.endswith("value        gap = 120.0 / 120 = 1.0\n")
    assert (
        len(run("explain", labels, predictions, "-m", "gap", "--rows", "3")[1].splitlines()) == 11
    )
    every = json.loads(run("explain", labels, predictions, "-m", "gap", "--format", "json")[1])
    assert len(every["rows"]) == count


@pytest.mark.small
def test_columns_of_any_name(run, dump, tmp_path):
    labels, predictions = tmp_path / "ls.parquet", tmp_path / "ps.parquet"
    pq.write_table(pq.read_table(dump[0]).rename_columns(["who", "what"]), labels)
    pq.write_table(pq.read_table(dump[1]).rename_columns(["u", "i", "s"]), predictions)
    names = ["--query", "u", "--item", "i", "--score", "s"]
    names += ["--label-query", "who", "--label-item", "what", "--format", "json"]
    code, out, err = run("explain", labels, predictions, "-m", "gap", *names)
    assert (code, err) == (0, "")
    assert json.loads(out)["value"] == pytest.approx(GAP, rel=1e-15)
    code, out, err = run(
        "explain-evaluators", labels, predictions, "-m", "gap", "--presets", "default", *names
    )
    assert (code, err) == (0, "")
    assert json.loads(out)["value"] == pytest.approx(GAP, rel=1e-15)


@pytest.mark.small
@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["-m", "map@3", "--query-id", "9"], 3, "query 9 is neither in "),
        (["-m", "map@3", "--query-id", "x"], 2, "query id 'x' is not a 64-bit integer"),
        (["-m", "map@3"], 2, "choose one"),
        (["-m", "gap", "--query-id", "1"], 2, "leave out"),
        (["-m", "mop@3", "--query-id", "1"], 2, "unknown metric 'mop@3'"),
        (["--query-id", "1"], 2, "missing -m METRIC (the metric to explain"),
        (["-m", "map", "--query-id", "1", "--preset", "sprak"], 2, "did you mean spark"),
        (["-m", "map", "--query-id", "1", "--rows", "0"], 2, "--rows"),
        (["-m", "map", "--query-id", "1", "-o", "no/where/x"], 2, "there is no folder"),
    ],
)
def test_wrong_usage_of_explain(run, dump, options, code, message):
    found = run("explain", *dump, *options)
    assert found[:2] == (code, "")
    assert found[2].startswith("error: ")
    assert message in found[2]


@pytest.mark.small
@pytest.mark.parametrize("command", ["explain", "explain-evaluators"])
def test_missing_files_and_inputs_as_outputs(run, dump, tmp_path, command):
    options = ["--query-id", "1"] if command == "explain" else []
    code, out, err = run(command, dump[0], tmp_path / "no.parquet", "-m", "map", *options)
    assert (code, out) == (3, "")
    assert "no such file" in err
    before = dump[1].read_bytes()
    code, out, err = run(command, *dump, "-m", "map", *options, "-o", dump[1])
    assert (code, out) == (2, "")
    assert "it is one of the inputs" in err
    assert dump[1].read_bytes() == before


@pytest.mark.parametrize("columns", [80, 120])
def test_what_is_drawn_fits_the_terminal(dump, columns):
    for command in (
        ["explain", *dump, "-m", "map@3", "--query-id", "1"],
        ["explain-evaluators", *dump, "-m", "map@3", "--presets", "default,spark"],
    ):
        arguments = list(map(str, command))
        lines = on_a_terminal(f"from rankmill.cli import main\nmain({arguments!r})", columns)
        assert max(map(len, lines)) <= columns
        text = " ".join(" ".join(lines).split())
        assert "…" not in text
        wanted = "map@3 of query 1 = " if command[0] == "explain" else "unpredicted skip"
        assert wanted in text


# explain-evaluators


def shopping(seed: int) -> tuple[dict, dict]:
    """Make customers with purchases, and lists of twelve with repeats, some without purchases."""
    draw = random.Random(seed)
    articles = [f"a{number}" for number in range(40)]
    weights = [1 / (1 + place) for place in range(len(articles))]
    labels, predictions = {}, {}
    for number in range(400):
        query = f"c{number:03}"
        if number % 4:
            bought = draw.choices(articles, weights, k=draw.randint(1, 20))
            labels[query] = [(article, 1.0) for article in dict.fromkeys(bought)]
        if number % 5:
            listed = draw.choices(articles, weights, k=12)
            predictions[query] = [(article, 1 - place / 16) for place, article in enumerate(listed)]
    return labels, predictions


def mean(values: dict) -> float:
    return sum(values.values()) / len(values)


def test_four_values_of_one_dump_and_their_reasons(run, tmp_path):
    labels, predictions = shopping(7)
    paths = tmp_path / "labels.parquet", tmp_path / "predictions.parquet"
    for table, path in zip(tables(labels, predictions), paths, strict=True):
        pq.write_table(table, path, row_group_size=64)
    names = "default,implicit,spark,trec_eval"
    asked = ("explain-evaluators", *paths, "-m", "map@12", "--presets", names)
    code, out, err = run(*asked, "--format", "json")
    assert (code, err) == (0, "")
    content = json.loads(out)
    changes = content["changes"]
    # The value of each, from references that share no code with the package.
    paired = {query: [] for query in predictions} | labels
    first_only = {
        query: [
            (item if item not in [one for one, _ in rows[:place]] else f"{item} again {place}", s)
            for place, (item, s) in enumerate(rows)
        ]
        for query, rows in predictions.items()
    }
    counted_once = {
        query: REFERENCES["kaggle_hm"]["map"](labels, first_only, 12).get(query, 0.0)
        for query in labels
    }
    wanted = {
        "default": mean(counted_once),
        "implicit": mean(REFERENCES["implicit"]["map"](labels, predictions, 12)),
        "spark": mean(REFERENCES["spark"]["map"](paired, predictions, 12)),
        "trec_eval": mean(REFERENCES["trec_eval"]["map"](labels, first_only, 12)),
    }
    values = {"default": content["value"]} | {name: one["value"] for name, one in changes.items()}
    assert values == pytest.approx(wanted, rel=1e-12)
    assert len({round(value, 4) for value in values.values()}) == 4
    # The reasons.
    assert list(changes["implicit"]["fields"]) == ["repeated_predictions"]
    assert changes["implicit"]["fields"]["repeated_predictions"]["value"] == values["implicit"]
    fields = changes["spark"]["fields"]
    assert fields["unpredicted"]["queries"] == len(labels.keys() - predictions.keys()) == 60
    assert fields["unlabelled"]["queries"] == len(predictions.keys() - labels.keys()) == 80
    assert fields["no_relevant"]["difference"] == 0
    refused = changes["trec_eval"]["fields"]["repeated_predictions"]
    assert refused["value"] is None
    assert refused["reason"].endswith("a second time, but repeated_predictions is 'error'")
    assert changes["trec_eval"]["kept"] == ["repeated_predictions"]
    assert changes["trec_eval"]["fields"]["ap_divisor"]["difference"] < 0
    for one in changes.values():
        alone = [each["difference"] or 0 for each in one["fields"].values()]
        assert one["difference"] == pytest.approx(sum(alone) + one["interplay"], abs=1e-15)
    # The same reasons as text.
    text = run(*asked)[1]
    for word in (
        f"{values['default']:.6f}",
        "trec_eval*",
        "a repeat of a label is a hit each time; default: a repeat keeps its rank and is wrong",
        "not possible on this data",
        "  all at once",
    ):
        assert word in text
    markdown = run(*asked, "--format", "markdown")[1].splitlines()
    assert markdown[1] == "| --- | ---: | ---: | ---: | --- | --- |"
    assert markdown[2].startswith("| default | ")
    written = tmp_path / "why.csv"
    assert run(*asked, "-o", written) == (0, "", "")
    rows = list(csv.DictReader(written.read_text().splitlines()))
    assert [row["preset"] for row in rows[:4]] == names.split(",")
    assert float(rows[1]["value"]) == values["implicit"]
    (row,) = [row for row in rows if row["field"] == "unlabelled"]
    assert (row["preset"], row["choice"], row["queries"]) == ("spark", "zero", "80")
    assert (row["before"], row["after"]) == ("", "0.0")


@pytest.mark.small
def test_presets_are_all_that_have_the_metric(run, dump):
    content = json.loads(run("explain-evaluators", *dump, "-m", "rprec", "--format", "json")[1])
    having = [name for name, one in PRESETS.items() if "rprec" in one.metrics]
    assert list(content["semantics"]) == ["default", *having]


@pytest.mark.small
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-m", "map", "--presets", "default,sprak"], "did you mean spark"),
        (["-m", "map", "--presets", "default,,spark"], "unknown preset ''"),
        (["-m", "mop"], "unknown metric 'mop'"),
        ([], "missing -m METRIC (the metric to explain"),
    ],
)
def test_wrong_usage_of_explain_evaluators(run, dump, options, message):
    code, out, err = run("explain-evaluators", *dump, *options)
    assert (code, out) == (2, "")
    assert message in err
