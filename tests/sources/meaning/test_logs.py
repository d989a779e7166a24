"""Logs of events with the scores of a model: which number is the gain, and which the score."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import rankmill
from rankmill import InputError

pytestmark = pytest.mark.small

LABELS = {"user_id": [1, 1, 2], "item_id": [10, 11, 12]}
WIDE = {"user_id": [1, 2], "items": [[10, 11], [12]]}
RUN = {1: [11, 10], 2: [12]}
SCORES = [0.8, 0.9, 0.7]


def first_hit(labels: Any, predictions: Any = RUN) -> float | None:
    return rankmill.evaluate(labels, predictions, "first_hit")["first_hit"]


# A column beside the scores of a model -> whether it is the gain, or what is asked.
LOGGED = {
    "clicked": [1, 0, 1],
    "purchased": [True, False, True],
    "converted": ["true", "false", "true"],
    "is_relevant": [1, 0, 1],
    "ordered": [1, 0, 1],
    "rating": [1, 0, 1],
    "y_true": [1, 0, 1],
}
ASKED = {"is_new": [True, False, True], "engaged": [1, 0, 1], "bought": ["yes", "no", "yes"]}


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("name", [*LOGGED, *ASKED])
def test_the_score_is_the_gain_only_if_nothing_else_may_be(name: str, wide: bool) -> None:
    values = (LOGGED | ASKED)[name]
    labels = pa.table(LABELS | {name: values, "score": SCORES})
    if wide:
        lists = {one: [some[:2], some[2:]] for one, some in ((name, values), ("score", SCORES))}
        labels = pa.table(WIDE | lists)
    if name in ASKED:
        with pytest.raises(InputError, match=rf"'{name}' may say .*if 'score' is the gain, use"):
            first_hit(labels)
        assert first_hit(rankmill.Labels(labels, gain="score")) == 1
        return
    result = rankmill.evaluate(labels, RUN, "first_hit")
    assert result["first_hit"] == 0.75
    assert result.inputs["labels"]["unread"] == ["score"]
    assert all('Labels(gain="score")' in note for note in result.notes)


def test_two_events_beside_a_score_are_asked_about() -> None:
    labels = pa.table(LABELS | {"clicked": [1, 1, 1], "purchased": [1, 0, 1], "score": SCORES})
    with pytest.raises(InputError, match=r"'clicked', 'purchased' may say .*Labels\(gain="):
        first_hit(labels)


def test_a_score_beside_other_numbers_is_the_gain() -> None:
    labels = LABELS | {"score": [1, 0, 2], "price": [9.5, 2.0, 3.0], "votes": [3, 4, 0]}
    result = rankmill.evaluate(pa.table(labels), RUN, "first_hit")
    assert (result["first_hit"], result.notes) == (0.75, [])


def test_labels_beside_scores_are_not_suggested_as_these() -> None:
    run = {"user_id": [1, 1, 2], "item_id": [10, 11, 12], "y_true": [1, 0, 1], "rating": [5, 4, 3]}
    for name in ("y_score", "y_proba"):
        assert first_hit(pa.table(LABELS), pa.table(run | {name: SCORES})) == 1
        both = pa.table(LABELS | {"y_true": [1, 0, 1], name: SCORES})
        assert first_hit(both, both) == 0.75
    for name in ("y_pred", "guess"):
        with pytest.raises(InputError, match=rf"'{name}', 'rating' .*score=\"{name}\""):
            first_hit(pa.table(LABELS), pa.table(run | {name: SCORES}))


@pytest.mark.parametrize(
    ("name", "values", "told"),
    [
        ("event_type", ["click", "impression", "click"], True),
        ("split", ["train", "test", "test"], True),
        ("split", ["test", "test", "test"], False),
        ("action", ["Purchases", "add_to_cart", "Purchases"], True),
        ("vote", ["up", "down", "up"], True),
        ("event_type", ["click", "click", "click"], False),
        ("city", ["Rome", "Oslo", "Rome"], False),
    ],
)
def test_words_of_events_that_are_not_read_are_told(
    name: str, values: list[str], told: bool
) -> None:
    labels = pa.table(LABELS | {name: values})
    notes = " ".join(rankmill.evaluate(labels, RUN, "first_hit").notes)
    assert ("is not read, so that every row is a label" in notes) == told
