"""What the counts of the audit mean under the semantics of a run."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankmill
from cli_runs import on_a_terminal
from rankmill.results import audit
from rankmill.semantics.choices import Choices
from rankmill.semantics.presets import PRESETS


@pytest.mark.small
@pytest.mark.parametrize(
    ("semantics", "name", "meaning"),
    [
        ({}, "queries_only_labelled", "labelled but never predicted: they score 0"),
        (
            {"unpredicted": "skip"},
            "queries_only_labelled",
            "labelled but never predicted: left out of means, but gap counts them",
        ),
        (
            {"unpredicted": "skip", "gap_total": "hits"},
            "queries_only_labelled",
            "labelled but never predicted: left out of means",
        ),
        (
            {},
            "queries_only_predicted",
            "predicted but without a label: left out of means; wrong in gap",
        ),
        (
            {"no_relevant": "zero"},
            "queries_only_predicted",
            "predicted but without a label: left out of means; if among the labels, they score 0; "
            "wrong in gap",
        ),
        (
            {"unlabelled": "zero", "no_relevant": "zero"},
            "queries_only_predicted",
            "predicted but without a label: they score 0 (unlabelled=skip leaves them out, as the "
            "preset kaggle_hm does); wrong in gap",
        ),
        (
            {"unlabelled": "one", "no_relevant": "one"},
            "queries_only_predicted",
            "predicted but without a label: they score 1; wrong in gap",
        ),
        (
            {},
            "empty_label_lists",
            "queries of the label input that were left without a label: left out of means",
        ),
        (
            {"no_relevant": "zero"},
            "empty_label_lists",
            "queries of the label input that were left without a label: they score 0",
        ),
        (
            {"no_relevant": "one", "unpredicted": "skip"},
            "empty_label_lists",
            "queries of the label input that were left without a label: they score 1 if "
            "predicted, else left out",
        ),
        (
            {},
            "repeated_labels",
            "labels that their query had already: dropped, and the largest gain counts",
        ),
        (
            {"repeated_labels": "count"},
            "repeated_labels",
            "labels that their query had already: R counts them, hits do not",
        ),
        (
            {},
            "repeated_items",
            "predictions that repeat an earlier one of their list: wrong",
        ),
        (
            {"repeated_predictions": "each"},
            "repeated_items",
            "predictions that repeat an earlier one of their list: hits again if the first is one",
        ),
    ],
)
def test_what_a_count_means_is_up_to_the_semantics(semantics, name, meaning):
    assert audit.meanings(Choices(**semantics))[name] == meaning


@pytest.mark.small
@pytest.mark.parametrize("name", PRESETS)
def test_every_count_has_a_meaning_and_none_tells_of_a_default(name):
    meanings = audit.meanings(PRESETS[name].semantics)
    assert tuple(meanings) == audit.FIELDS
    assert not [text for text in meanings.values() if "default" in text]


def test_all_outputs_say_what_these_semantics_do(run, tmp_path):
    labels = pa.table({"query": [1, 2, 3], "items": [[5], [6], []]})
    predictions = pa.table({"query": [1, 9], "items": [[5, 5], [6, 7]]})
    paths = [tmp_path / name for name in ("labels.parquet", "a.parquet", "b.parquet")]
    for path, table in zip(paths, (labels, predictions, predictions), strict=True):
        pq.write_table(table, path)
    for preset in ("default", "spark"):
        meanings = audit.meanings(PRESETS[preset].semantics)
        names = [f"queries_only_{side}" for side in ("labelled", "predicted")]
        wanted = [meanings[name] for name in [*names, "empty_label_lists", "repeated_items"]]
        result = rankmill.evaluate(labels, predictions, "map", semantics=preset)
        html = result._repr_html_()
        one = run("evaluate", *paths[:2], "-m", "map", "--preset", preset)[1]
        both = run("evaluate", *paths, "-m", "map", "--preset", preset)[1]
        for text in (html, one, both):
            assert not [meaning for meaning in wanted if meaning not in text]
        for drawing in (paths[:2], paths):
            arguments = ["evaluate", *map(str, drawing), "-m", "map", "--preset", preset]
            code = f"from rankmill.cli import main\nmain({arguments!r})"
            text = "\n".join(on_a_terminal(code, 300))
            assert not [meaning for meaning in wanted if meaning not in text]


@pytest.mark.parametrize("metric", ["first_hit@3", "bpref"])  # the second one keeps what is judged
@pytest.mark.parametrize("semantics", ["default", {"repeated_labels": "count"}])
def test_judges_who_disagree_are_counted(metric, semantics):
    """Each row is a label, a repeat, or judged 0 or less; so an item is judged 0 once."""
    columns = {"item_id": [10, 11, 11, 13, 13, 12], "relevance": [1, 0, 2, 0, 0, 1]}
    labels = pa.table({"user_id": [1, 1, 1, 1, 1, 2], **columns})
    found = rankmill.evaluate(labels, {1: [11, 10], 2: [12]}, metric, semantics=semantics)
    names = ("labels", "repeated_labels", "nonpositive_gains")
    assert [found.audit[name] for name in names] == [3, 2, 1]
