"""A metric without a query has no value: None, null or an empty cell, and exit code 3."""

import json
import math
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankmill
from cli_runs import on_a_terminal
from flat import flat
from rankmill.errors import InputError
from rankmill.metrics.aggregates.mean import Mean
from rankmill.semantics.choices import DEFAULT
from rankmill.semantics.presets import PRESETS

# The semantics that count a query whose labels all have gain 0.
COUNTING = [
    name for name, one in PRESETS.items() if one.semantics.no_relevant in ("zero", "scored")
]


def zero_gains():
    labels = pa.table({"query": [1, 2], "items": [[5], [6, 7]], "gain": [[0.0], [-1.0, 0.0]]})
    predictions = pa.table({"query": [1, 2], "items": [[5], [6]], "score": [[0.5], [0.25]]})
    return labels, predictions


def apart():
    """Labels and predictions without a query in common."""
    labels = pa.table({"query": [1, 2], "items": [[5], [6]]})
    return labels, pa.table({"query": [8, 9], "items": [[5], [6]], "score": [[0.5], [0.25]]})


SKIP = {"unpredicted": "skip"}


@pytest.mark.small
def test_a_mean_of_nothing_is_none():
    assert Mean().mean is None
    assert Mean().standard_error is None
    result = rankmill.evaluate(*apart(), ["map", "gap", "recall@3"], semantics=SKIP)
    assert result.metrics == {"map": None, "gap": 0.0, "recall@3": None}
    with pytest.raises(InputError, match="map has no value, as no query counts"):
        result["map"]
    assert result.queries == 0
    assert result.standard_errors == {"map": None, "gap": None, "recall@3": None}
    assert json.loads(result.to_json())["metrics"] == {"map": None, "gap": 0, "recall@3": None}
    assert repr(result).splitlines()[2].split() == ["map", "0"]
    assert result.per_query.num_rows == 0


def test_the_presets_that_count_queries_without_labels():
    assert len(COUNTING) == 11


@pytest.mark.small
@pytest.mark.parametrize("name", PRESETS)
def test_labels_of_no_gain(name):
    """Rules that count no query are refused; rules that count queries without labels give 0."""
    if name not in COUNTING:
        with pytest.raises(rankmill.InputError, match="no query has a label"):
            flat(rankmill.evaluate, *zero_gains(), "map@3", gain="gain", semantics=name)
        return
    names = ["map@3", "ndcg_cut_3"]
    result = flat(rankmill.evaluate, *zero_gains(), names, gain="gain", semantics=name)
    assert result.metrics == dict.fromkeys(names, 0.0)
    assert result.queries == 2
    assert result.per_query["map@3"].to_pylist() == [0, 0]
    runs = {"a": zero_gains()[1], "b": zero_gains()[1].slice(1)}
    both = rankmill.evaluate_runs(
        rankmill.Labels(zero_gains()[0], gain="gain"), runs, "map", semantics=name
    )
    assert both["a"].metrics == both["b"].metrics == {"map": 0.0}


@pytest.mark.small
@pytest.mark.parametrize("name", PRESETS)
def test_sides_without_a_query_in_common(run, dump, name):
    """A mean over nothing has no value and the exit code is 3, unless the preset counts queries."""
    semantics = PRESETS[name].semantics
    counted = 2 * (semantics.unpredicted == "zero") + 2 * (semantics.unlabelled == "zero")
    arguments = ["evaluate", *dump[:2], "-m", "map@3", "--preset", name]
    if semantics.unlabelled == "error":
        with pytest.raises(rankmill.InputError, match="unlabelled is 'error'"):
            rankmill.evaluate(*apart(), "map@3", semantics=name)
        assert run(*arguments)[0] == 3
        return
    result = rankmill.evaluate(*apart(), "map@3", semantics=name)
    assert (result.metrics["map@3"], result.queries) == (0.0 if counted else None, counted)
    assert run(*arguments)[0] == (0 if counted else 3)
    shown = json.loads(run(*arguments, "--format", "json")[1])["metrics"]
    assert shown == {"map@3": 0.0 if counted else None}
    cell = run(*arguments, "--format", "csv")[1].splitlines()[1].split(",")[1]
    assert cell == ("0.0" if counted else "")


@pytest.mark.small
@pytest.mark.parametrize("name", PRESETS)
def test_zero_gains_on_the_command_line(run, tmp_path, name):
    paths = [tmp_path / "l.parquet", tmp_path / "p.parquet"]
    for path, table in zip(paths, zero_gains(), strict=True):
        pq.write_table(table, path)
    asked = ["-m", "map@3", "--gain", "gain", "--preset", name, "--format", "json"]
    code, out, err = run("evaluate", *paths, *asked)
    if name in COUNTING:
        assert (code, err, json.loads(out)["metrics"]) == (0, "", {"map@3": 0.0})
    else:
        assert (code, out) == (3, "")
        assert "no query has a label, so there is nothing to average" in err


@pytest.mark.small
def test_queries_that_score_one_are_a_mean_too():
    for semantics in ({"no_relevant": "one"}, {"unlabelled": "one"}):
        labels, predictions = zero_gains()
        if "unlabelled" in semantics:
            predictions = apart()[1]
        result = rankmill.evaluate(
            rankmill.Labels(labels, gain="gain"), predictions, "map", semantics=semantics
        )
        assert (result["map"], result.queries) == (1.0, 2)


@pytest.mark.small
@pytest.mark.parametrize("ties", ["expected", "ids"])
def test_gap_divided_by_nothing_has_no_value(ties):
    semantics = {"no_relevant": "zero", "gap_ties": ties}
    for total in ("labelled_queries", "label_pairs", "predicted_label_pairs"):
        options = {"gain": "gain", "semantics": semantics | {"gap_total": total}}
        result = flat(rankmill.evaluate, *zero_gains(), ["gap", "map"], **options)
        assert result.metrics == {"gap": None, "map": 0.0}
        assert result.bounds == {}
        found = flat(rankmill.explain, *zero_gains(), "gap", **options)
        assert (found.value, found.divisor) == (None, 0.0)
        assert found.headline == "gap: there is nothing to divide by"
        assert json.loads(json.dumps(found.to_dict()))["value"] is None
    # scikit-learn defines the value: it is 0 if no prediction is right.
    semantics["gap_total"] = "hits"
    result = flat(rankmill.evaluate, *zero_gains(), "gap", gain="gain", semantics=semantics)
    assert result.metrics == {"gap": 0.0}
    assert result.bounds == {"gap": (0.0, 0.0)}


@pytest.mark.small
def test_a_part_without_queries_has_no_value_and_merges():
    labels, predictions = zero_gains()
    part = rankmill.parts.evaluate_part(rankmill.Labels(labels, gain="gain"), predictions, "map")
    assert part.result().metrics == {"map": None}
    others = apart()[0].set_column(0, "query", [[3, 4]]), apart()[1]
    full = rankmill.parts.evaluate_part(
        *(one.slice(0, 1) for one in others), "map", semantics=DEFAULT
    )
    assert part.merge(full).result().metrics == {"map": 0.0}


@pytest.mark.small
def test_semantics_without_a_value_are_compared_with_the_others():
    found = rankmill.explain_evaluators(*apart(), "map", {"a": SKIP, "b": "default", "c": "spark"})
    assert (found.base, found.value) == ("b", 0.0)
    reason = "map has no value, as no query counts under these semantics"
    assert found.fields["a"]["unpredicted"].value is None
    assert found.fields["a"]["unpredicted"].reason == found.wholes["a"].reason == reason
    assert (found.wholes["a"].value, found.wholes["a"].kept) == (0.0, ("unpredicted",))
    with pytest.raises(rankmill.InputError, match=reason):
        rankmill.explain_evaluators(*apart(), "map", {"a": SKIP, "b": SKIP})


@pytest.fixture
def dump(tmp_path):
    paths = [tmp_path / name for name in ("labels.parquet", "apart.parquet", "same.parquet")]
    for path, table in zip(paths, (*apart(), apart()[0]), strict=True):
        pq.write_table(table, path)
    return paths


APART = (
    "no query is in both inputs: the labels have 1, the predictions 8; ids are compared exactly, "
    "with their case and leading zeros"
)
ASKED = ["-m", "map@3", "-m", "gap", "--semantics", "unpredicted=skip"]


@pytest.mark.small
@pytest.mark.parametrize(
    ("format", "shown"),
    [
        ("table", "\nmap@3 0\n"),
        ("csv", "\nmap@3,,,0,,\n"),
        ("markdown", "\n| map@3 |  |  | 0 |  |\n"),
        ("json", '"map@3": null,'),
    ],
)
def test_it_is_shown_as_nothing_and_the_exit_code_is_3(run, dump, tmp_path, format, shown):
    code, out, err = run("evaluate", *dump[:2], *ASKED, "--format", format)
    assert code == 3
    assert shown in re.sub(" {3,}", " ", out)
    notes = err[: err.index("error: ")]
    assert notes == (f"note: {APART}\n" if format == "csv" else "")
    assert err == (
        f"{notes}error: {dump[1]}: map@3 has no value, as no query counts under these semantics: "
        "check that the query ids of both sides agree, or count queries without labels or "
        "predictions as well\n"
    )
    written = tmp_path / "out"
    assert run("evaluate", *dump[:2], *ASKED, "--format", format, "-o", written) == (3, "", err)
    assert shown in re.sub(" {3,}", " ", written.read_text())


@pytest.mark.small
@pytest.mark.parametrize("format", ["table", "csv", "markdown", "json"])
def test_a_system_without_a_value_among_others(run, dump, format):
    asked = ["-m", "map@3", "--semantics", "unpredicted=skip", "--format", format]
    code, out, err = run("evaluate", *dump, *asked)
    assert code == 3
    assert f"error: {dump[1]}: map@3 has no value" in err
    wanted = {
        "table": "\nmap@3 1.00000  0.000\n",
        "csv": "\napart,map@3,,,0,,,",
        "markdown": "\n| apart | map@3 |  |  | 0 |\n",
        "json": '"map@3": null',
    }
    assert wanted[format] in re.sub(" {3,}", " ", out)


def test_on_a_terminal(dump):
    arguments = ["evaluate", *map(str, dump[:2]), *ASKED]
    lines = on_a_terminal(f"from rankmill.cli import main\nmain({arguments!r})", 120)
    assert any(line.split() == ["map@3", "0"] for line in lines)
    assert any(line.startswith("error: ") for line in lines)


@pytest.mark.small
def test_explain_gap_without_a_value(run, tmp_path):
    paths = [tmp_path / "l.parquet", tmp_path / "p.parquet"]
    for path, table in zip(paths, zero_gains(), strict=True):
        pq.write_table(table, path)
    code, out, err = run(
        *("explain", *paths, "-m", "gap", "--gain", "gain", "--preset", "google_landmarks_v2")
    )
    assert code == 3
    assert out.endswith("value        gap: there is nothing to divide by\n")
    assert err == f"error: {paths[1]}: gap: there is nothing to divide by\n"
    code, out, err = run("explain", *paths, "-m", "gap", "--gain", "gain", "--preset", "sklearn")
    assert (code, err) == (0, "")
    assert out.endswith("value        gap = 0.0 / 1 = 0.0\n")
    code, out, err = run(
        *("evaluate", *paths, "-m", "map", "-m", "gap", "--gain", "gain"),
        *("--preset", "google_landmarks_v2"),
    )
    assert code == 3
    assert "gap has no value, as there is nothing to divide by" in err


NO_HIT, ALL_HITS = {1: {"x": 0.5}, 2: {"y": 0.25}}, {1: {"a": 0.5}, 2: {"b": 0.5}}
# What is asked of which predictions, and why it has no value.
LACKING = [
    ("best_f1_threshold", NO_HIT, "no prediction is correct, or F1 is largest at an infinite"),
    ("best_f1_threshold", {1: {}, 2: {}}, "no prediction is correct"),
    ("best_f1_threshold@1", {1: {"a": -math.inf}, 2: {}}, "F1 is largest at an infinite confi"),
    ("roc_auc", NO_HIT, "it takes a correct and a wrong prediction"),
    ("roc_auc", ALL_HITS, "it takes a correct and a wrong prediction"),
    ("dprime", ALL_HITS, "it takes correct and wrong predictions, and confidences of one kind"),
    ("dprime", {1: {"a": 0.5}, 2: {"x": 0.5}}, "confidences of one kind that vary"),
    *((name, {1: {}, 2: {}}, "there are no predictions") for name in ("ece", "brier", "log_loss")),
]


@pytest.mark.small
@pytest.mark.parametrize(("metric", "run", "why"), LACKING)
def test_a_metric_over_all_predictions_says_what_it_lacks(metric, run, why):
    result = rankmill.evaluate({1: ["a"], 2: ["b"]}, run, [metric, "map"])
    assert result.metrics[metric] is None
    (note,) = [one for one in result.notes if one.startswith(f"{metric} has no value: ")]
    assert why in note
    for held in (result, rankmill.Result.from_json(result.to_json())):
        with pytest.raises(InputError, match=re.escape(f"{note}: leave it out, or check")):
            held[metric]
    traced = rankmill.explain({1: ["a"], 2: ["b"]}, run, metric)
    assert traced.headline == f"{metric}: there is no value"


@pytest.mark.small
def test_a_threshold_that_several_have_has_a_value():
    labels = {1: ["a"], 2: ["b"]}
    equal = rankmill.evaluate(labels, {1: {"a": 0.5, "x": 0.5}}, "best_f1_threshold,best_f1")
    assert (equal["best_f1_threshold"], equal["best_f1"]) == (0.5, 2 / (2 + 2))
    one = rankmill.evaluate(labels, {1: {"a": 0.5}, 2: {"x": math.inf}}, "best_f1_threshold")
    assert (one["best_f1_threshold"], one.notes) == (0.5, [])


@pytest.mark.small
def test_a_gap_above_1_is_explained():
    labels, run = {1: ["a", "b"], 2: ["c"]}, {1: {"a": 0.9, "b": 0.8}, 2: {"c": 0.7}}
    names = ["gap", "auprc", "best_f1", "best_f1_threshold", "map"]
    found = rankmill.evaluate(labels, run, names)
    assert (found["gap"], found["auprc"], found["best_f1"]) == (3 / 2, 3 / 2, 2 * 3 / (3 + 2))
    (note,) = found.notes
    assert note.startswith("above 1: gap, auprc, best_f1, as the divisor is the number of queries")
    assert 'Semantics(gap_total="label_pairs")' in note
    chosen = rankmill.evaluate(labels, run, names, semantics={"gap_total": "label_pairs"})
    assert (chosen["gap"], chosen["best_f1"], chosen.notes) == (1.0, 1.0, [])
    assert "above 1: gap, as" in repr(rankmill.compare(labels, {"x": run, "y": run}, "gap"))
    assert repr(rankmill.explain_evaluators(labels, run, "gap")).count("above 1: gap, as") == 1
    two = ["isc2021", "kaggle_landmark"]
    assert "above 1: gap, as" in repr(rankmill.explain_evaluators(labels, run, "gap", two))
    assert "above 1" not in repr(
        rankmill.explain_evaluators(labels, run, "gap", ["isc2021", "sklearn"])
    )


@pytest.mark.small
def test_the_command_names_the_choice_for_a_gap_above_1(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table({"query": [1], "items": [["a", "b"]]}), "l.parquet")
    lists = {"query": [1], "items": [["a", "b"]], "score": [[0.5, 0.25]]}
    pq.write_table(pa.table(lists), "p.parquet")
    for command in ("evaluate", "explain-evaluators"):
        code, out, err = run(command, "l.parquet", "p.parquet", "-m", "gap")
        assert code == 0
        assert "choose --semantics gap_total=label_pairs" in " ".join((out + err).split())
