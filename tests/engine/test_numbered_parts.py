"""Parts by a hash of the query ids: the same bits as one process, and wrong mixes are refused."""

from __future__ import annotations

import functools
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import rankmill
import strategies
from parts_of_inputs import FIELDS, merged, sent
from rankmill.columns.ids import to_ids
from rankmill.parts import State, evaluate_part, second_pass

METRICS = ["map@3", "first_hit", "ndcg@5", "recall@4:median", "recall@4:micro", "mrr@2:p90"]
POOLED = ["gap", "gap@2"]


def in_parts(labels: Any, predictions: Any, metrics: list[str], of: int, **more: Any) -> Any:
    """The result of all parts, merged in any order, with states and counts sent as rows."""
    draw = random.Random(of)
    numbers = [f"{i + 1}/{of}" for i in range(of)]
    states = [evaluate_part(labels, predictions, metrics, part=one, **more) for one in numbers]
    state = merged(states, draw)
    if not state.two_passes:
        return state.result()
    counts = [second_pass(state, predictions, part=one) for one in numbers]
    among = {name: merged([one[name] for one in counts], draw) for name in state.two_passes}
    return state.result(among)


def check_same(one: Any, other: Any) -> None:
    for field in FIELDS:
        assert getattr(one, field) == getattr(other, field), field


def dump(queries: int = 400, text: bool = False) -> tuple[pa.Table, pa.Table]:
    """Wide labels and predictions, each in an order of its own; some queries have one side only."""
    draw = np.random.default_rng(1)
    tables = []
    for longest, drop in ((5, 30), (9, 70)):
        ids = draw.permutation(queries)[drop:]
        lengths = draw.integers(0, longest, len(ids))
        offsets = pa.array(np.append(0, np.cumsum(lengths)), pa.int32())
        items = pa.ListArray.from_arrays(offsets, pa.array(draw.integers(0, 30, lengths.sum())))
        scores = pa.array(draw.integers(0, 9, lengths.sum()).astype(np.float32))
        kind = pa.array([f"user {one}" for one in ids]) if text else pa.array(ids)
        columns = {"user_id": kind, "items": items, "weight": ids % 3, "country": ids % 4}
        tables.append(pa.table(columns | {"score": pa.ListArray.from_arrays(offsets, scores)}))
    labels, predictions = tables
    return labels.drop_columns("score"), predictions.drop_columns(["weight", "country"])


@pytest.mark.parametrize("of", [1, 2, 7, 120])
def test_every_metric_in_any_number_of_parts(of: int) -> None:
    labels, predictions = dump(100)
    whole = rankmill.evaluate(labels, predictions, ["recsys", "official", *POOLED])
    check_same(in_parts(labels, predictions, ["recsys", "official", *POOLED], of), whole)


def test_kinds_of_ids_and_texts_divide_alike(tmp_path: Path) -> None:
    # The ids of a text are integers once the other side has integers.
    labels, predictions = dump()
    pa_csv.write_csv(exploded(predictions), tmp_path / "run.csv")
    given = labels.set_column(0, "user_id", labels["user_id"].cast(pa.uint16()))
    pq.write_table(given, tmp_path / "labels.parquet")
    paths = tmp_path / "labels.parquet", tmp_path / "run.csv"
    whole = rankmill.evaluate(*paths, ["map@3", "gap"])
    check_same(in_parts(*paths, ["map@3", "gap"], 3), whole)


def exploded(table: pa.Table) -> pa.Table:
    import pyarrow.compute as pc

    parents = pc.list_parent_indices(table["items"])
    items, scores = (pc.list_flatten(table[name]) for name in ("items", "score"))
    queries = table["user_id"].take(parents)
    return pa.table({"user_id": queries, "item_id": items, "score": scores})


@pytest.mark.parametrize("view", [pa.string_view(), pa.dictionary(pa.int32(), pa.string())])
def test_views_and_dictionaries(view: pa.DataType) -> None:
    labels, predictions = dump(text=True)
    ids = strategies.array(predictions["user_id"].to_pylist(), view)
    texts = [[str(one) for one in items] for items in predictions["items"].to_pylist()]
    listed = strategies.lists(texts, pa.string_view())
    predictions = predictions.set_column(0, "user_id", ids).set_column(1, "items", listed)
    wanted = [[str(one) for one in items] for items in labels["items"].to_pylist()]
    labels = labels.set_column(1, "items", strategies.lists(wanted, pa.string_view()))
    whole = rankmill.evaluate(labels, predictions, METRICS)
    check_same(in_parts(labels, predictions, METRICS, 3), whole)


def test_lists_by_place_are_divided_by_place() -> None:
    labels, predictions = [[1], [2, 3], [], [4]] * 5, [[2], [3], [1], [4, 5]] * 5
    whole = rankmill.evaluate(labels, predictions, ["map"])
    check_same(in_parts(labels, predictions, ["map"], 3), whole)
    # Without numbers, each part begins with place 0, and nothing is known of its queries.
    halves = [evaluate_part(labels[at:][:10], predictions[at:][:10], ["map"]) for at in (0, 10)]
    assert halves[0].merge(halves[1]).result().metrics == whole.metrics


def test_errors_name_the_row_of_the_file() -> None:
    labels, predictions = dump(150)
    twice = pa.concat_tables([predictions, predictions.slice(7, 1)])
    messages = set()
    for number in range(1, 4):
        try:
            evaluate_part(labels, twice, ["map"], part=f"{number}/3")
        except rankmill.InputError as error:
            messages.add(str(error))
    with pytest.raises(rankmill.InputError) as whole:
        rankmill.evaluate(labels, twice, ["map"])
    assert messages == {str(whole.value)}


def test_a_row_without_an_id_is_an_error_in_every_part() -> None:
    labels, predictions = dump(150)
    ids = [*predictions["user_id"].to_pylist()[:-1], None]
    predictions = predictions.set_column(0, "user_id", pa.array(ids))
    assert len(predictions) == 80
    for part in ("1/2", "2/2", None):
        with pytest.raises(rankmill.InputError, match="row 79 has no query id"):
            evaluate_part(labels, predictions, part=part)


# ------------------------------------------------------------------ what is refused


def test_parts_are_named_that_are_missing_or_doubled() -> None:
    sides = dump()
    states = [evaluate_part(*sides, ["map"], part=f"{i}/4") for i in (1, 2, 3, 4)]
    with pytest.raises(rankmill.UsageError, match="parts 2, 4 of 4 are missing"):
        states[0].merge(states[2]).result()
    with pytest.raises(rankmill.UsageError, match="part 2 of 4 is missing"):
        functools.reduce(State.merge, [states[3], states[0], states[2]]).result()
    with pytest.raises(rankmill.UsageError, match="both hold part 1 of 4"):
        states[0].merge(states[1]).merge(sent(states[0]))
    with pytest.raises(rankmill.UsageError, match="one is one of 4 parts, and the other one of 3"):
        states[0].merge(evaluate_part(*sides, ["map"], part="2/3"))
    with pytest.raises(rankmill.UsageError, match="the other no numbered part"):
        states[0].merge(evaluate_part(*sides, ["map"]))


def test_parts_of_other_inputs_do_not_merge() -> None:
    labels, predictions = dump()
    one = evaluate_part(labels, predictions, ["map"], part="1/2")
    for less, side in (
        ((labels.slice(40), predictions), "labels"),
        ((labels, predictions.slice(40)), "predictions"),
    ):
        with pytest.raises(rankmill.UsageError, match=f"parts of other {side}"):
            one.merge(evaluate_part(*less, ["map"], part="2/2"))


def test_splits_that_share_queries_do_not_merge() -> None:
    labels, predictions = dump()
    ids = np.asarray(predictions["user_id"])

    def halves(table: pa.Table, half: Any) -> list[pa.Table]:
        inside = half(np.asarray(table["user_id"]))
        return [table.filter(pa.array(inside)), table.filter(pa.array(~inside))]

    right = [halves(one, lambda ids: ids % 2 == 0) for one in (labels, predictions)]
    states = [evaluate_part(*both, ["map"]) for both in zip(*right, strict=True)]
    whole = rankmill.evaluate(labels, predictions, ["map"])
    assert states[0].merge(states[1]).result().metrics == whole.metrics
    with_all = [evaluate_part(labels, one, ["map"]) for one in right[1]]
    with pytest.raises(rankmill.UsageError, match="their labels share queries"):
        with_all[0].merge(with_all[1])
    other = halves(predictions, lambda ids: ids < np.median(ids))
    crossed = [evaluate_part(*both, ["map"]) for both in zip(right[0], other, strict=True)]
    with pytest.raises(rankmill.UsageError, match="the labels of one and the predictions of the"):
        crossed[0].merge(crossed[1])
    overlap = predictions.slice(0, 200), predictions.slice(190)
    assert len({*ids[:200]} & {*ids[190:]}) == 10
    none = labels.slice(0, 0)
    with pytest.raises(rankmill.UsageError, match="their predictions share queries"):
        evaluate_part(none, overlap[0], ["map"]).merge(evaluate_part(none, overlap[1], ["map"]))


@pytest.mark.parametrize("part", ["0/3", "4/3", "3", "1/0", "a/b", "1/2/3", "-1/2", "", 1])
def test_what_is_no_part(part: Any) -> None:
    with pytest.raises(rankmill.UsageError, match="is not a part; expected I/N"):
        evaluate_part(*dump(90), part=part)
    with pytest.raises(rankmill.UsageError, match="is not a part; expected I/N"):
        second_pass(evaluate_part(*dump(90), "gap"), dump(90)[1], part=part)


# ------------------------------------------------------------------ how queries are divided

PLACES = [554, 248, 301, 229]
OF_TEXTS = [128, 807, 339, 639]


def test_parts_are_of_equal_size_and_the_same_in_every_process() -> None:
    from rankmill.columns.seal import SEEDS, hash_ids

    ids = to_ids(pa.array(range(100_000)), "ids")
    counts = np.bincount((hash_ids(ids, SEEDS[0]) % np.uint64(16)).astype(int))
    assert abs(counts - 6250).max() < 5 * 6250**0.5
    # Another process, machine or version of NumPy has to divide in the same way.
    assert [int(one % np.uint64(1000)) for one in hash_ids(ids, SEEDS[0])[:4]] == PLACES
    texts = to_ids(pa.array(["", "a", "user 1", "日本語"]), "ids")
    assert [int(one % np.uint64(1000)) for one in hash_ids(texts, SEEDS[0])] == OF_TEXTS


def test_states_of_means_take_kilobytes_whatever_the_number_of_users() -> None:
    sizes = []
    for queries in (400, 4000):
        row = evaluate_part(*dump(queries), ["map@3", "ndcg@5", "recall@4"]).to_row()
        sizes.append(pa.Table.from_pylist([row]).nbytes)
    assert max(sizes) < 10_000
