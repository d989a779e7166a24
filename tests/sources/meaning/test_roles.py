"""No column is silently misread: what is found, what is asked about, what is told as not read."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from conftest import tells

import rankmill
from cli_runs import process
from flat import flat
from rankmill import InputError, UsageError
from strategies import some

LABELS = pa.table({"qid": ["a", "a", "b"], "docno": ["d3", "d2", "d1"]})
RUN = pa.table({"qid": ["a", "a", "a", "b"], "docno": ["d1", "d2", "d3", "d1"]})
WIDE = pa.table({"qid": ["a", "b"], "items": [["d1", "d2", "d3"], ["d1"]]})
NUMBERS = [0.1, 0.2, 0.9, 0.3]
LISTS = [[0.1, 0.2, 0.9], [0.3]]
AS_READ, BY_NUMBERS = (1 / 2 + 2 / 3) / 2, 1.0  # AP of query "a" in either order; that of "b" is 1


def plus(table: pa.Table, **columns: Any) -> pa.Table:
    for name, values in columns.items():
        table = table.append_column(name, pa.array(values))
    return table


def ap(labels: pa.Table, predictions: Any, **options: Any) -> float:
    """The average precision of query "a"."""
    table = flat(rankmill.evaluate, labels, predictions, ["map"], **options).per_query
    assert table is not None
    return dict(zip(table["qid"].to_pylist(), table["map"].to_pylist(), strict=True))["a"]


def columns_of(labels: pa.Table, predictions: pa.Table, **options: Any) -> dict[str, Any]:
    inputs = flat(rankmill.evaluate, labels, predictions, ["map"], **options).inputs
    return {side: inputs[side]["columns"] for side in inputs}


# ------------------------------------------------------------------ the order of predictions


@pytest.mark.parametrize(
    "value",
    [*map(pa.type_for_alias, ("halffloat", "float", "double", "int16")), pa.decimal128(20, 1)],
)
def test_a_number_that_may_order_long_predictions_is_asked_about(
    value: pa.DataType, files: Any, cli_fails: Any
) -> None:
    run = plus(RUN, closeness=pa.array([1, 2, 9, 3]).cast(value))
    paths = files(LABELS, run)
    wanted = ["the-predictions.parquet", f"closeness ({value})", "--score closeness", "--in-order"]
    with pytest.raises(InputError) as caught:
        rankmill.evaluate(*paths, ["map"])
    message = tells(caught.value, wanted)
    for said in ('use Predictions(score="closeness");', "use Predictions(in_order=True)"):
        assert said in str(caught.value)
    assert ("--rank closeness" in message) == (value == pa.int16())
    cli_fails(paths, 3, wanted, ["map"])


def test_both_ways_out(files: Any, run_cli: Any) -> None:
    run = plus(RUN, closeness=NUMBERS)
    assert ap(LABELS, run, score="closeness") == BY_NUMBERS
    assert ap(LABELS, run, in_order=True) == pytest.approx(AS_READ)
    paths = files(LABELS, run)
    for options, expected in (
        (["--score", "closeness"], BY_NUMBERS),
        (["--in-order"], (AS_READ + 1) / 2),
    ):
        out = run_cli("evaluate", *paths, "-m", "map", "--format", "csv", *options)
        assert out.exit_code == 0, out.stderr
        assert float(out.stdout.splitlines()[1].split(",")[1]) == pytest.approx(expected)


def test_several_numbers_are_all_named() -> None:
    run = plus(RUN, place=[3, 2, 1, 1], closeness=NUMBERS)
    with pytest.raises(InputError) as caught:
        ap(LABELS, run)
    tells(caught.value, ["'closeness', 'place'", "--score closeness", "--rank place"])
    assert ap(LABELS, run, rank="place") == BY_NUMBERS
    many = plus(RUN, **{f"feature_{number}": NUMBERS for number in range(30)})
    with pytest.raises(InputError, match="'feature_4' and 25 more are left over"):
        ap(LABELS, many)


@pytest.mark.parametrize(
    "more",
    [
        {"tag": ["x"] * 4},
        {"clicked": [True, False, True, False]},
        {"day": pa.array([1, 2, 3, 4], pa.date32())},
        {"when": pa.array([1, 2, 3, 4], pa.timestamp("s"))},
        *({name: [1, 2, 3, 4]} for name in ("timestamp", "ts", "time", "date", "iter", "index")),
        *({name: [1, 2, 3, 4]} for name in ("event_ts", "createdAt", "__index_level_0__", "Q0")),
        *({name: [1, 2, 3, 4]} for name in ("category_id", "siteId", "SHOP_ID", "iteration")),
        {"lists": [[0.1]] * 4},
        {"nothing": pa.nulls(4)},
        {"rank": [1, 2, 3, 1], "closeness": NUMBERS},
        {"score": [4, 3, 2, 1], "closeness": NUMBERS},
    ],
    ids=lambda more: ", ".join(more),
)
def test_other_columns_are_not_asked_about(more: dict[str, Any]) -> None:
    assert ap(LABELS, plus(RUN, **more)) == pytest.approx(AS_READ)


@pytest.mark.parametrize("name", ["__index_level_0__", "Unnamed: 0", ""])
def test_the_index_of_pandas_is_no_news(tmp_path: Path, name: str) -> None:
    rows = plus(RUN, **{name: [5, 6, 7, 8]})
    pacsv.write_csv(rows, tmp_path / "run.csv")
    pq.write_table(rows, tmp_path / "run.parquet")
    for run in (rows, tmp_path / "run.csv", tmp_path / "run.parquet"):
        assert "unread" not in rankmill.evaluate(LABELS, run, "map").inputs["predictions"]
    named = rankmill.evaluate(LABELS, plus(RUN, **{f"{name}tag": ["x"] * 4}), "map")
    assert named.inputs["predictions"]["unread"] == [f"{name}tag"]


def test_the_key_of_a_partition_is_no_score(tmp_path: Path) -> None:
    for part in (0, 1):
        folder = tmp_path / f"shard={part}"
        folder.mkdir()
        pq.write_table(RUN.slice(3 * part, 3 - 2 * part), folder / "run.parquet")
    result = rankmill.evaluate(LABELS, tmp_path, ["map"])
    assert result["map"] == pytest.approx((AS_READ + 1) / 2)
    assert result.inputs["predictions"]["unread"] == ["shard"]


def test_order_of_the_semantics_asks_too() -> None:
    """Confidences order wide lists and ranked rows too if the semantics say so."""
    by_confidence: dict[str, Any] = {"semantics": {"order": "confidence"}}
    given: dict[str, Any] = {"semantics": {"preset": "trec_eval", "order": "given"}}
    ranked = plus(RUN, rank=[1, 2, 3, 1], closeness=NUMBERS)
    wide = plus(WIDE, closeness=LISTS)
    for run in (ranked, wide):
        assert ap(LABELS, run) == pytest.approx(AS_READ)
        assert ap(LABELS, run, **given) == pytest.approx(AS_READ)
        assert ap(LABELS, run, **by_confidence, score="closeness") == BY_NUMBERS
        with pytest.raises(InputError) as caught:
            ap(LABELS, run, **by_confidence)
        tells(caught.value, ["--score closeness", "--semantics order=given", "'confidence'"])
    assert ap(LABELS, plus(WIDE, years=[1, 2]), **by_confidence) == pytest.approx(AS_READ)
    long = plus(RUN, closeness=NUMBERS)
    with pytest.raises(InputError) as caught:
        ap(LABELS, long, **by_confidence)
    tells(caught.value, ["--score closeness", "--in-order", "--semantics order=given"])
    assert ap(LABELS, long, **given, in_order=True) == pytest.approx(AS_READ)


@pytest.mark.parametrize("found", ["rank", "score"])
def test_in_order_leaves_found_columns_alone(found: str) -> None:
    run = plus(RUN, **{found: [3, 2, 1, 4] if found == "rank" else NUMBERS})
    assert ap(LABELS, run) == BY_NUMBERS
    assert ap(LABELS, run, in_order=True) == pytest.approx(AS_READ)
    result = rankmill.evaluate(LABELS, rankmill.Predictions(run, in_order=True), ["map"])
    assert result.inputs["predictions"]["unread"] == [found]


@pytest.mark.parametrize("memory", [1 << 30, 1])
@pytest.mark.parametrize("scattered", [False, True])
def test_gap_reads_confidences_of_rows_in_order(scattered: bool, memory: int) -> None:
    """The rows keep their order, with all labels and numbers at hand, on disk and in two passes."""
    run = plus(RUN, score=NUMBERS, rank=[3, 2, 1, 1])
    run = run.take([0, 3, 1, 2]) if scattered else run
    asked = ["map", "gap", "gap@1"]
    result = rankmill.evaluate(
        LABELS, rankmill.Predictions(run, in_order=True), asked, memory=memory
    )
    assert result["map"] == pytest.approx((AS_READ + 1) / 2)
    # All four, by confidence: d3 (hit), d1 of "b" (hit), d2 (hit), d1. Cut off at 1: "b", then d1.
    assert result["gap"] == pytest.approx(3 / 2)
    assert result["gap@1"] == pytest.approx(1 / 2)
    assert result.audit["tied_ranks"] == result.audit["tied_confidences"] == 0


def test_in_order_in_parts_and_in_one_walk() -> None:
    run = plus(RUN, score=NUMBERS)
    options: dict[str, Any] = {"in_order": True}
    expected = flat(rankmill.evaluate, LABELS, run, ["map", "gap@1"], **options)
    state = flat(rankmill.parts.evaluate_part, LABELS, run, ["map", "gap@1"], **options)
    counts = flat(rankmill.parts.second_pass, state, run, **options)
    assert state.result(counts).metrics == expected.metrics
    walk = flat(rankmill.explain, LABELS, run, "map", "a", **options)
    assert walk.value == pytest.approx(AS_READ)
    differences = flat(
        rankmill.explain_evaluators, LABELS, run, "map", ["default", "spark"], **options
    )
    assert differences.value == expected["map"]
    assert flat(rankmill.plan, LABELS, run, ["map"], **options)["predictions"]["unread"] == [
        "score"
    ]


# ------------------------------------------------------------------ what contradicts


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"in_order": True, "rank": "place"}, ["--in-order", "in_order", "--rank"]),
        ({"in_order": True, "score": "closeness"}, ["--in-order", "in_order", "--score"]),
        ({"in_order": True, "semantics": "trec_eval"}, ["--in-order", "--semantics order=given"]),
        ({"binary": True, "gain": "stars"}, ["--binary", "binary", "--gain"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, dict) else "",
)
def test_options_that_contradict_each_other(
    options: dict[str, Any], wanted: list[str], files: Any, cli_fails: Any
) -> None:
    paths = files(LABELS, plus(RUN, closeness=NUMBERS, place=[3, 2, 1, 1]))
    with pytest.raises(UsageError) as caught:
        flat(rankmill.evaluate, *paths, ["map"], **options)
    tells(caught.value, wanted)
    words = []
    for name, value in options.items():
        option = "--preset" if name == "semantics" else f"--{name.replace('_', '-')}"
        words += [option] if value is True else [option, value]
    cli_fails(paths, 2, wanted, ["map"], *words)
    if "score" not in options:  # of long predictions only, which opening them tells
        with pytest.raises(UsageError):
            flat(rankmill.evaluate, "missing.parquet", "missing.parquet", ["map"], **options)


def test_the_second_pass_refuses_what_contradicts() -> None:
    run = plus(RUN, score=NUMBERS)
    state = rankmill.parts.evaluate_part(LABELS, run, ["gap"])
    with pytest.raises(UsageError, match=r"leave out .*in_order=True\) or .*rank="):
        rankmill.parts.second_pass(state, rankmill.Predictions(run, rank="score", in_order=True))


# ------------------------------------------------------------------ gains


@pytest.mark.parametrize("name", ["stars", "confidence", "clicks"])
def test_a_number_that_may_be_the_gain_is_warned_of(name: str, files: Any) -> None:
    labels = plus(LABELS, **{name: [2, 0, 1]})
    result = rankmill.evaluate(labels, RUN, ["map"])
    assert AS_READ in [pytest.approx(one) for one in result.per_query["map"].to_pylist()]
    expected = ["table of labels", f"{name!r} is", f'gain="{name}"', "binary=True"]
    (note,) = result.notes
    tells(note, expected)
    with pytest.warns(RuntimeWarning) as caught:
        rankmill.explain(labels, RUN, "map", labels["qid"][0].as_py())  # which has no notes
    (told,) = caught
    assert told.filename == __file__  # the caller's line, not one of ours
    assert str(told.message) == note
    for options, expected in (({"gain": name}, 1 / 3), ({"binary": True}, AS_READ)):
        assert ap(labels, RUN, **options) == pytest.approx(expected)  # and no warning


@pytest.mark.parametrize(
    ("more", "command"),
    some(
        itertools.product(
            ("", "--binary", "--gain stars"),
            ("evaluate", "evaluate --plan", "explain --query-id a"),
        ),
        4,
    ),
)
def test_the_command_line_says_so_and_goes_on(files: Any, more: str, command: str) -> None:
    paths = files(plus(LABELS, stars=[2, 0, 1]), RUN)
    with process(*command.split(), *paths, "-m", "map", *more.split()) as done:
        out, err = done.communicate()
    assert done.returncode == 0, err
    assert out
    expected = ["the-labels.parquet", "'stars'", "--gain stars", "--binary"]
    if more:
        assert (err, "is not read" in out) == ("", False)
    elif command == "evaluate":
        assert err == ""
        tells(next(line for line in out.splitlines() if "is not read" in line), expected)
    else:
        assert err.startswith("warning: ")
        assert len(err.splitlines()) == 1
        tells(err, expected)


@pytest.mark.parametrize(
    "more",
    [
        {"note": ["x"] * 3},
        {"when": pa.array([1, 2, 3], pa.timestamp("s"))},
        *({name: [1, 2, 0]} for name in ("timestamp", "ts", "unix_ts", "iter", "sales_channel_id")),
        {"gain": [1, 1, 1], "stars": [1, 2, 0]},
        {"rank": [1, 2, 3]},
    ],
    ids=lambda more: ", ".join(more),
)
def test_other_columns_of_labels_are_not_warned_of(more: dict[str, Any]) -> None:
    result = rankmill.evaluate(plus(LABELS, **more), RUN, ["map"])
    assert result["map"] == pytest.approx((AS_READ + 1) / 2)
    assert result.inputs["labels"]["unread"] == [name for name in more if name != "gain"]


# A column of labels, a value a row -> whether it is the gain, or what is asked or told of it.
GRADED = {
    "label": [True, False, True],
    "target": ["true", "false", "true"],
    "is_relevant": [1, 0, 1],
    "purchased": ["1", "0", "1"],
    "clicked": ["yes", "no", "yes"],
    "relevance": ["good", "bad", "good"],
    "esci_label": ["E", "I", "E"],
    "weight": [0.5, 0.2, 1.0],
}
FOUND = {
    "clicked": "may say which rows are relevant",
    "relevance": "write words as numbers",
    "esci_label": "not read",
    "weight": "'weight' is not read",
}


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("name", GRADED)
def test_what_may_grade_rows_is_used_or_told(name: str, wide: bool) -> None:
    values, labels = GRADED[name], LABELS
    if wide:
        labels = pa.table({"qid": ["a", "b"], "items": [["d3", "d2"], ["d1"]]})
    labels = plus(labels, **{name: [values[:2], values[2:]] if wide else values})
    if name not in FOUND and not (wide and name == "target"):  # such texts may be the items
        assert ap(labels, RUN) == pytest.approx(1 / 3)
        return
    try:
        (said,) = rankmill.evaluate(labels, RUN, "map").notes
    except InputError as error:
        said = str(error)
    tells(said, [name, FOUND.get(name, "target")])


@pytest.mark.parametrize("values", [[True, False, True], [1, 0, 1]])
def test_two_events_are_asked_about(values: list[Any]) -> None:
    with pytest.raises(InputError, match="'clicked', 'purchased' may say which rows are relevant"):
        ap(plus(LABELS, clicked=values, purchased=values[::-1]), RUN)
    assert ap(plus(LABELS, label=values, clicked=values[::-1]), RUN) == pytest.approx(1 / 3)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("gain", [{}, {"gain": [1, 1, 1]}])
def test_a_weight_of_queries_is_told(wide: bool, gain: dict[str, Any]) -> None:
    labels = plus(WIDE, weight=[0.5, 1]) if wide else plus(LABELS, weight=[0.5, 0.5, 1], **gain)
    (said,) = rankmill.evaluate(labels, RUN, "map").notes
    tells(said, ["'weight' is not read", 'weight="weight"'])
    assert ('gain="weight"' in said) == (not wide and not gain)
    told = rankmill.Labels(labels, weight="weight", binary=wide)
    assert rankmill.evaluate(told, RUN, "map").notes == []


@pytest.mark.parametrize("count", [2, 3, 4])
def test_each_of_a_few_columns_is_told(count: int) -> None:
    more = {f"feature_{i}": [i == 1, True, False] for i in range(count)}
    notes = rankmill.evaluate(plus(LABELS, **more), RUN, "map").notes
    assert len(notes) == (count if count < 4 else 1)
    assert all(any(name in note for note in notes) for name in more)


def test_what_tells_which_rows_of_a_training_set_count_is_told() -> None:
    train = plus(LABELS, clicked=[True, False, True], stars=[1, 2, 3])
    catalogue = rankmill.Catalogue(train=train)
    with pytest.warns(RuntimeWarning, match=r"'clicked' is not read, so that .*: leave out"):
        rankmill.evaluate(LABELS, RUN, "novelty@3", catalogue=catalogue)


def test_lists_of_numbers_beside_wide_labels() -> None:
    labels = pa.table({"qid": ["a", "b"], "items": [["d3", "d2"], ["d1"]], "stars": [[2, 0], [1]]})
    assert "'stars' is not read" in rankmill.evaluate(labels, RUN, "map").notes[0]
    assert ap(labels, RUN, gain="stars") == pytest.approx(1 / 3)
    assert ap(labels.rename_columns(["qid", "items", "score"]), RUN) == pytest.approx(1 / 3)
    ages = labels.drop_columns("stars").append_column("age", pa.array([40, 50]))
    assert ap(ages, RUN) == pytest.approx(AS_READ)


def test_binary_does_not_read_gains_that_are_found() -> None:
    labels = plus(LABELS, gain=[2, 0, 1])
    assert ap(labels, RUN) == pytest.approx(1 / 3)
    assert ap(labels, RUN, binary=True) == pytest.approx(AS_READ)
    result = rankmill.evaluate(rankmill.Labels(labels, binary=True), RUN, ["dcg"])
    assert result.audit["nonpositive_gains"] == 0
    assert result.inputs["labels"]["unread"] == ["gain"]
    text = labels.set_column(2, "gain", pa.array(["much", "", "little"]))
    with pytest.raises(
        InputError, match=r"'much'; expected a number for the gain: write words as .*\(binary="
    ):
        ap(text, RUN)
    assert ap(text, RUN, binary=True) == pytest.approx(AS_READ)
    ragged = rankmill.arrays.Ragged.from_lists([[1]])
    with pytest.raises(UsageError, match=r"leave out Labels\(binary=True\) or Labels\(gain="):
        rankmill.evaluate(rankmill.Labels(ragged, gain=ragged, binary=True), ragged, ["map"])


# ------------------------------------------------------------------ names


@pytest.mark.parametrize(
    "names",
    [
        *(["qid", "docno", gain] for gain in ("judgment", "Judgement", "relevance_score")),
        *(["qid", "docno", gain] for gain in ("label", "labels", "score")),
        ["q_id", "doc_id", "score"],  # qrels.parquet of ranx
        ["query-id", "corpus-id", "score"],  # qrels of BEIR
        ["query_id", "ref_id", "label"],
    ],
    ids=lambda names: names[-1] + " of " + names[-2],
)
def test_names_of_gains(names: list[str]) -> None:
    labels = plus(LABELS, gain=[2, -1, 1]).rename_columns(names)
    result = rankmill.evaluate(labels, RUN, ["dcg"])
    assert result["dcg"] == pytest.approx((2 / 2 + 1) / 2)
    assert result.audit["nonpositive_gains"] == 1
    expected = dict(zip(("query", "item", "gain"), names, strict=True))
    assert result.inputs["labels"]["columns"] == expected
    assert "unread" not in result.inputs["labels"]


def test_a_better_name_of_gains_comes_first() -> None:
    numbers = {"score": [1, 1, 1], "label": [1, 1, 0]}
    assert columns_of(plus(LABELS, **numbers), RUN)["labels"]["gain"] == "label"
    graded = plus(LABELS, **numbers, rel=[2, 0, 1])
    result = rankmill.evaluate(graded, RUN, ["map"])
    assert result.inputs["labels"]["columns"]["gain"] == "rel"
    assert result.inputs["labels"]["unread"] == ["score", "label"]
    with pytest.raises(
        InputError, match=r"several columns could be the gain: rel, grade.* Labels\(gain="
    ):
        columns_of(plus(graded, grade=[1, 1, 1]), RUN)


@pytest.mark.parametrize("values", [["d1", "d2", "d1"], [["d1"]] * 3])
def test_a_label_that_is_no_number_may_be_the_item(values: list[Any]) -> None:
    labels = plus(LABELS, label=values)
    with pytest.raises(InputError, match="several columns could be the item: docno, label"):
        columns_of(labels, RUN)
    assert "gain" not in columns_of(labels, RUN, label_item="docno")["labels"]


def test_a_label_without_another_item_column_is_the_item() -> None:
    labels = pa.table({"qid": ["a", "b"], "label": ["d2", "d1"]})
    assert columns_of(labels, RUN)["labels"] == {"query": "qid", "item": "label"}
    numbers = pa.table({"qid": [1, 2], "label": [1, 2]})
    assert columns_of(numbers, numbers)["labels"] == {"query": "qid", "item": "label"}
    for values in ([1, 0], 1):  # whatever it holds beside lists of items
        lists = pa.table({"qid": ["a"], "items": [["d1", "d2"]], "labels": [values]})
        with pytest.raises(InputError, match="several columns could be the item: items, labels"):
            columns_of(lists, RUN)
    lists = pa.table({"qid": ["a"], "items": [["d1", "d2"]], "labels": [[1, 0]]})
    assert "gain" not in columns_of(lists, RUN, label_item="items")["labels"]


SCORES = ["sim", "logit", "logits", "yhat", "y_hat", "pred", "prob", "Sim"]


@pytest.mark.parametrize("value", [pa.float32(), pa.float64(), pa.decimal128(20, 2)])
def test_fractions_beside_items_are_no_ids_but_the_score(value: pa.DataType) -> None:
    run = plus(RUN, prediction=pa.array(NUMBERS).cast(value))
    assert ap(LABELS, run) == BY_NUMBERS
    assert columns_of(LABELS, run)["predictions"]["score"] == "prediction"
    labels = plus(LABELS, truth=pa.array([0.5, 1.5, 0.5]).cast(value))
    assert columns_of(labels, RUN)["labels"] == {"query": "qid", "item": "docno"}
    assert "'truth' is not read" in rankmill.evaluate(labels, RUN, "map").notes[0]


def test_whole_predictions_beside_items_are_asked_about() -> None:
    run = plus(RUN, prediction=pa.array([1, 2, 9, 3]))
    with pytest.raises(InputError, match="several columns could be the item: docno, prediction"):
        ap(LABELS, run)
    with pytest.raises(InputError, match="'prediction' is left over"):
        ap(LABELS, run, item="docno", label_item="docno")


@pytest.mark.parametrize("name", SCORES)
def test_names_of_scores(name: str) -> None:
    run = plus(RUN, **{name: NUMBERS})
    assert ap(LABELS, run) == BY_NUMBERS
    assert rankmill.evaluate(LABELS, run, ["gap"])["gap"] == pytest.approx(3 / 2)
    assert columns_of(LABELS, plus(run, score=[4, 3, 2, 1]))["predictions"]["score"] == "score"
    assert "score" not in columns_of(LABELS, plus(run, rank=[1, 2, 3, 1]))["predictions"]
    assert ap(LABELS, plus(RUN, **{name: ["x"] * 4})) == pytest.approx(AS_READ)


def test_a_prediction_that_is_no_number_is_no_score() -> None:
    for values in (["x", "y", "z", "x"], [[0.1]] * 4, [True] * 4):
        assert ap(LABELS, plus(RUN, pred=values)) == pytest.approx(AS_READ)
    with pytest.raises(
        InputError, match=r'no column looks like the score.* Predictions\(score="pred"'
    ):
        rankmill.evaluate(LABELS, plus(WIDE, pred=LISTS), ["gap"])


# ------------------------------------------------------------------ what was not read


def test_columns_that_are_not_read_are_told(files: Any, run_cli: Any) -> None:
    more = {"tag": ["x"] * 4, "rank": [1, 2, 3, 1], "score": NUMBERS}
    paths = files(LABELS, plus(RUN, **more))
    result = rankmill.evaluate(*paths, ["map"])
    assert result.inputs["predictions"]["unread"] == ["tag", "score"]
    assert "unread" not in result.inputs["labels"]
    assert result.to_dict()["inputs"] == result.inputs
    lines = run_cli("evaluate", *paths, "-m", "map").stdout.splitlines()
    (told,) = [line for line in lines if line.startswith("predictions ")]
    assert told.endswith("query = qid, item = docno, rank = rank; not read: tag, score)")
    (told,) = [line for line in lines if line.startswith("labels ")]
    assert "not read" not in told
    result = rankmill.evaluate(*paths, ["gap"])
    assert result.inputs["predictions"]["unread"] == ["tag"]


def test_the_first_of_several_files_tells_and_long_lists_are_cut(tmp_path: Path) -> None:
    names = [f"feature_{number}" for number in range(12)]
    first = plus(RUN, score=NUMBERS, **dict.fromkeys(names, NUMBERS))
    pq.write_table(first.slice(0, 3), tmp_path / "a.parquet")
    pq.write_table(plus(RUN, score=NUMBERS, other=NUMBERS).slice(3), tmp_path / "b.parquet")
    pq.write_table(LABELS, tmp_path / "labels.parquet")
    runs = [str(tmp_path / name) for name in ("a.parquet", "b.parquet")]
    result = rankmill.evaluate(LABELS, runs, ["map"])
    assert result.inputs["predictions"]["unread"] == names
    with process("evaluate", tmp_path / "labels.parquet", ",".join(runs)) as done:
        out, _ = done.communicate()
    assert f"not read: {', '.join(names[:10])}, and 2 more)" in out


# ------------------------------------------------------------------ types


@pytest.mark.parametrize(
    ("columns", "wanted"),
    [
        ({"rank": [0.5] * 4}, ["rank", "0.5", "whole number", "--in-order"]),
        ({"score": ["x"] * 4}, ["score", "'x'", "name another column"]),
        ({"score": [[0.5]] * 4}, ["score", "list", "--score NAME"]),
    ],
    ids=["rank", "text", "lists"],
)
def test_errors_of_types_suggest_the_option(
    columns: dict[str, Any], wanted: list[str], files: Any, cli_fails: Any
) -> None:
    paths = files(LABELS, plus(RUN, **columns))
    with pytest.raises(InputError) as caught:
        rankmill.evaluate(*paths, ["map"])
    tells(caught.value, [*wanted, "the-predictions.parquet"])
    cli_fails(paths, 3, wanted, ["map"])


@pytest.mark.small
def test_names_of_recbole_and_of_other_fields() -> None:
    run = {1: [11, 10], 2: [12]}
    typed = pa.table({"user_id:token": [1, 2], "item_id:token": [10, 12], "rating:float": [5.0, 4]})
    result = rankmill.evaluate(typed, run, "first_hit")
    assert result["first_hit"] == 0.75
    assert 'use Labels(gain="rating:float"); if labels' in result.notes[0]
    passages = pa.table({"question_id": [1, 2], "id": [7, 8], "passage_id": [10, 12]})
    assert rankmill.evaluate(passages, run, "first_hit")["first_hit"] == 0.75


@pytest.mark.small
@pytest.mark.parametrize(
    ("role", "column"), [("labels", "relevance"), ("labels", "bought"), ("predictions", "rank")]
)
def test_a_number_of_later_files_only(role: str, column: str, tmp_path: Path) -> None:
    rows = pa.table({"user_id": [1, 2], "item_id": [10, 12]})
    pq.write_table(rows, tmp_path / "a.parquet")
    pq.write_table(rows.append_column(column, pa.array([1, 2])), tmp_path / "b.parquet")
    given = {"labels": rows, "predictions": rows, role: str(tmp_path)}
    with pytest.raises(InputError, match=f"no column {column!r}, which .*b.parquet has"):
        rankmill.evaluate(given["labels"], given["predictions"], "map")


@pytest.mark.small
def test_one_event_of_several_is_not_chosen() -> None:
    each = {"user_id": [1, 1], "item_id": [10, 11]}
    table = pa.table({**each, "clicked": [True, True], "bought": [True, False]})
    with pytest.raises(InputError, match="'clicked', 'bought' may say which rows are relevant"):
        rankmill.evaluate(table, {1: [11]}, "map")
    table = pa.table({**each, "clicked": [True, False]})
    assert rankmill.evaluate(table, {1: [11]}, "map").notes == [
        "no prediction is correct; ids are compared exactly, with their case and leading zeros"
    ]


@pytest.mark.small
def test_a_name_that_says_not_is_no_gain() -> None:
    table = {"user_id": [1, 1], "item_id": [10, 11], "not_clicked": [False, True]}
    with pytest.raises(InputError, match="'not_clicked' may say which rows are relevant"):
        rankmill.evaluate(pa.table(table), {1: [11]}, "map")


@pytest.mark.small
def test_a_distance_beside_a_score_is_left_over() -> None:
    table = {"user_id": [1, 1], "item_id": [10, 11], "score": [0.1, 0.2], "distance": [0.9, 0.8]}
    assert rankmill.evaluate({1: [11]}, pa.table(table), "map")["map"] == 1


RISING = [[0.1, 0.5, 0.9], [0.2, 0.3, 0.4]]


@pytest.mark.small
@pytest.mark.parametrize("form", ["columns", "text", "structs", "pairs"])
def test_scores_that_rise_within_lists_are_told(form: str, tmp_path: Path) -> None:
    """As `collect_list` and `groupby().agg(list)` make lists, in the order of the rows."""
    labels = pa.table({"user_id": ["q", "r"], "items": [["a"], ["b"]]})
    items = [["x", "y", "a"], ["x", "y", "b"]]
    for scores, told in ((RISING, True), ([one[::-1] for one in RISING], False)):
        pairs = [list(zip(*both, strict=True)) for both in zip(items, scores, strict=True)]
        run: Any = pa.table({"user_id": ["q", "r"], "items": items, "scores": scores})
        if form == "text":
            run.to_pandas().to_csv(tmp_path / "run.csv", index=False)
            run = tmp_path / "run.csv"
        elif form == "structs":
            structs = [[{"item": item, "score": score} for item, score in one] for one in pairs]
            run = pa.table({"user_id": ["q", "r"], "items": structs})
        elif form == "pairs":
            run = dict(zip("qr", pairs, strict=True))
        found = rankmill.evaluate(labels, run, "map@3")
        assert found["map@3"] == pytest.approx(1 / 3)
        assert any("rises in 2 of the first 2" in one for one in found.notes) == told
        by_score = rankmill.evaluate(labels, run, "map@3", semantics={"order": "confidence"})
        assert by_score["map@3"] == (1 if told else pytest.approx(1 / 3))
        assert not any("rises" in one for one in by_score.notes)


@pytest.mark.small
@pytest.mark.parametrize(
    ("numbers", "told"),
    [((1, 2, 3), True), ((1.0, 2.0, 3.0), True), ((3, 2, 1), False), ((0.1, 0.2, 0.3), False)],
)
def test_numbers_of_a_dict_that_may_be_ranks_are_told(numbers: Any, told: bool) -> None:
    run = {query: dict(zip("xya", numbers, strict=True)) for query in "qr"}
    notes = rankmill.evaluate({"q": ["a"], "r": ["a"]}, run, "map@3").notes
    assert ["if they are ranks, give lists" in one for one in notes] == [True] * told


@pytest.mark.small
@pytest.mark.parametrize(
    "scores",
    [
        {"score": RISING, "confidence": RISING},
        {"scores": [[[0.1], [0.2], [0.3]]] * 2},
        {"scores": [["a", "b", "c"]] * 2},
        {"scores": [None, [0.5]]},
    ],
)
def test_scores_that_are_not_read_refuse_nothing(scores: dict[str, Any]) -> None:
    labels = pa.table({"user_id": ["q", "r"], "items": [["a"], ["b"]]})
    items = [["x", "y", "a"], ["x", "y", "b"]]
    run = pa.table({"user_id": ["q", "r"], "items": items} | scores)
    found = rankmill.evaluate(labels, run, "map@3")
    assert found["map@3"] == pytest.approx(1 / 3)
    assert not any("rises" in one for one in found.notes)
