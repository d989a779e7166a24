"""Metrics that the evaluator of a preset does not have are marked, in every output."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankmill
from cli_runs import on_a_terminal
from rankmill.metrics.elsewhere import notes_on
from rankmill.metrics.registry import parse
from rankmill.semantics.choices import DEFAULT
from rankmill.semantics.presets import PRESETS, preset

LABELS = pa.table({"query": [1], "items": [["a"]]})
PREDICTIONS = pa.table({"query": [1], "items": [["b", "a"]], "score": [[0.5, 0.25]]})
ASKED = ["map@3", "first_hit@3", "P_5", "q_measure"]
NOTE = "the semantics are those of trec_eval, which has no first_hit@3, q_measure as defined here"


@pytest.mark.small
@pytest.mark.parametrize("name", PRESETS)
def test_a_metric_is_marked_if_its_name_there_is_unknown(name: str) -> None:
    """Presets with the semantics of the default are none of another evaluator."""
    one = preset(name)
    known = [metric.replace("@k", "@3").replace("@x", "@0.3") for metric in one.metrics]
    assert notes_on(map(parse, known), one.semantics) == []
    marked = notes_on(map(parse, ["dcg@7", "rbp(p=0.5)"]), one.semantics)
    if one.semantics == DEFAULT:
        assert marked == []
    else:
        missing = [] if "dcg@k" in one.metrics else ["dcg@7"]
        missing += [] if name == "ranx" else ["rbp(p=0.5)"]
        start = f"the semantics are those of {name}, which has no {', '.join(missing)}"
        assert marked == [f"{start} as defined here"] * bool(missing)


@pytest.mark.small
@pytest.mark.parametrize(
    ("name", "has", "lacks"),
    [
        ("rectools", ["coverage@3", "serendipity@3", "novelty@3"], ["coverage", "gini@3"]),
        ("replay", ["coverage@3"], ["user_coverage@3"]),
        ("recommenders", ["entropy", "coverage"], ["coverage@3"]),
        ("sklearn", ["brier", "auc"], ["ece"]),
    ],
)
def test_no_note_denies_what_the_table_of_names_has(
    name: str, has: list[str], lacks: list[str]
) -> None:
    lack = f"which has no {', '.join(lacks)} as defined here"
    told = f"the semantics are those of {name}, {lack}"
    assert notes_on(map(parse, [*has, *lacks]), preset(name).semantics) == [told]


@pytest.mark.small
def test_a_changed_preset_is_of_no_evaluator() -> None:
    changed = {"preset": "trec_eval", "unpredicted": "zero"}
    assert rankmill.evaluate(LABELS, PREDICTIONS, ASKED, semantics=changed).notes == []


@pytest.mark.small
def test_results_and_parts_have_the_notes() -> None:
    result = rankmill.evaluate(LABELS, PREDICTIONS, ASKED, semantics="trec_eval")
    assert result.notes == json.loads(result.to_json())["notes"] == [NOTE]
    assert NOTE in repr(result).splitlines()
    assert NOTE in result._repr_html_()
    part = rankmill.parts.evaluate_part(LABELS, PREDICTIONS, ASKED, semantics="trec_eval")
    assert part.result().notes == [NOTE]
    # The relevance level is a rule of the job, which trec_eval has too.
    of_two = rankmill.evaluate(
        LABELS, PREDICTIONS, "map", semantics=rankmill.Semantics("trec_eval", rel=2)
    )
    assert of_two.notes == []


def test_all_outputs_show_the_notes(run: Any, tmp_path: Any) -> None:
    paths = [tmp_path / name for name in ("labels.parquet", "a.parquet", "b.parquet")]
    for path, table in zip(paths, (LABELS, PREDICTIONS, PREDICTIONS), strict=True):
        pq.write_table(table, path)
    metrics = [part for metric in ASKED for part in ("-m", metric)]
    for inputs in (paths[:2], paths):
        asked = ["evaluate", *map(str, inputs), *metrics, "--preset", "trec_eval"]
        for format in ("table", "markdown"):
            assert NOTE in run(*asked, "--format", format)[1].splitlines()
        content = json.loads(run(*asked, "--format", "json")[1])
        for one in content.get("systems", {"": content}).values():
            assert one["notes"] == [NOTE]
        drawn = on_a_terminal(f"from rankmill.cli import main\nmain({asked!r})", 120)
        assert NOTE in [line.rstrip() for line in drawn]


def test_names_elsewhere_are_lines_for_people(run):
    code, shown, _ = run("metrics", "ndcg", "--elsewhere")
    lines = shown.splitlines()
    assert code == 0
    assert lines[0].startswith("ndcg: trec_eval ndcg, ndcg_cut_k; ")
    assert "torchmetrics" not in lines[0]  # it has none
    assert "ir_measures nDCG, NDCG: ndcg@10" in lines
    assert "  " not in run("metrics", "--elsewhere")[1]
