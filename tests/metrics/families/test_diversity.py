"""Labels with subtopics and their metrics: the oracle, ndeval, qrels of TREC, errors."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import tells
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle_diversity
import rankmill
import strategies
from flat import flat
from oracle import parameters, parse
from rankmill import InputError, UsageError

METRICS = ["alpha_ndcg@1", "alpha_ndcg@3", "alpha_ndcg", "alpha_ndcg(alpha=0)@3"]
METRICS += ["alpha_ndcg(alpha=1)", "err_ia@1", "err_ia@5", "err_ia(alpha=0.9)@3"]
METRICS += ["subtopic_recall@1", "subtopic_recall@2", "subtopic_recall"]
METRICS += ["alpha_dcg@2", "alpha_dcg(alpha=0.9)@5", "nerr_ia", "nerr_ia@2", "nerr_ia(alpha=1)@5"]
METRICS += ["nrbp", "nrbp(alpha=0.9,beta=0.8)", "nnrbp", "nnrbp(alpha=0,beta=0.9)"]
METRICS += ["p_ia@2", "p_ia@5", "map_ia"]
CLOSE = {"rel": 1e-12, "abs": 1e-12}
IDS: list[list[Any]] = [[-1, 0, 1, 2, 2**40], ["a", "b", "ab", "é", "n"]]

Rows = list[tuple[Any, Any, Any, float]]


def table(rows: Rows, **types: Any) -> pa.Table:
    """Rows of query, item, subtopic and gain."""
    names = ["query_id", "item_id", "subtopic", "relevance"]
    columns = zip(*rows, strict=True)
    return pa.table({n: pa.array(one, types.get(n)) for n, one in zip(names, columns, strict=True)})


def topics_of(rows: Rows) -> dict[Any, dict[Any, set[Any]]]:
    found: dict[Any, dict[Any, set[Any]]] = {}
    for query, item, subtopic, gain in rows:
        topics = found.setdefault(query, {})
        if gain > 0:
            topics.setdefault(item, set()).add(subtopic)
    return found


@st.composite
def judged(draw: st.DrawFn) -> tuple[Rows, dict[Any, list[Any]]]:
    ids, subtopics = (draw(st.sampled_from(IDS)) for _ in range(2))
    # Few queries and subtopics, so that hits of a list share subtopics.
    row = st.tuples(
        *map(st.sampled_from, (ids[:2], ids, subtopics[:3], [1.0, 1.0, 2.0, 0.0, -1.0]))
    )
    rows = draw(st.lists(row, min_size=draw(st.sampled_from([1, 10])), max_size=15))
    lists = st.one_of(st.permutations(ids), st.lists(st.sampled_from(ids), max_size=6))
    return rows, draw(st.dictionaries(st.sampled_from(ids[:3]), lists, min_size=1))


@pytest.mark.small
@settings(max_examples=strategies.examples(60))
@given(judged(), st.integers(0, 5))
def test_is_the_oracle(case: tuple[Rows, dict[Any, list[Any]]], seed: int) -> None:
    rows, run = case
    topics = {query: found for query, found in topics_of(rows).items() if found}
    if not topics or not any(run.values()):
        return
    kind = pa.string() if isinstance(rows[0][0], str) else pa.int64()
    predictions = pa.table({"query_id": pa.array(list(run), kind), "items": list(run.values())})
    predictions = predictions.cast(pa.schema({"query_id": kind, "items": pa.list_(kind)}))
    result = rankmill.evaluate(
        rankmill.Labels(table(rows), subtopic="subtopic"), predictions, METRICS
    )
    assert result.queries == len(topics)
    assert result.audit["labels"] == sum(map(len, topics.values()))
    for metric in METRICS:
        name, k = parse(metric)
        value, given_k = oracle_diversity.VALUES[name], {} if k is None else {"k": k}
        expected = {
            query: value(found, run.get(query, []), **given_k, **parameters(metric))
            for query, found in topics.items()
        }
        column = result.per_query[metric].to_pylist()
        found = dict(zip(result.per_query["query_id"].to_pylist(), column, strict=True))
        assert found == pytest.approx(expected, **CLOSE), metric
    # The order of rows changes no bit, and other metrics see what is relevant to any subtopic.
    shuffled = rows[:]
    random.Random(seed).shuffle(shuffled)
    again = rankmill.evaluate(
        rankmill.Labels(table(shuffled), subtopic="subtopic"), predictions, METRICS
    )
    assert again.metrics == result.metrics
    binary = ["map@3", "recall", "first_hit", "rprec"]
    some = rankmill.evaluate(rankmill.Labels(table(rows), subtopic="subtopic"), predictions, binary)
    labels = {query: list(found) for query, found in topics.items()}
    assert some.metrics == rankmill.evaluate(labels, run, binary).metrics


@pytest.mark.small
@settings(max_examples=strategies.examples(20))
@given(judged())
def test_explain_is_evaluate(case: tuple[Rows, dict[Any, list[Any]]]) -> None:
    rows, run = case
    queries = [query for query, found in topics_of(rows).items() if found and run.get(query)]
    if not queries:
        return
    found = rankmill.evaluate(
        rankmill.Labels(table(rows), subtopic="subtopic"), run, METRICS
    ).per_query
    place = found["query_id"].to_pylist().index(queries[0])
    for metric in METRICS:
        walk = rankmill.explain(
            rankmill.Labels(table(rows), subtopic="subtopic"), run, metric, queries[0]
        )
        assert walk.value == found[metric][place].as_py(), metric
        assert walk.value == walk.total / (walk.divisor or 1), metric


@pytest.mark.small
def test_the_walk_by_hand() -> None:
    """The item a is about 1 and 2, b about 1 and 3; x is not a label."""
    labels = table([("q", item, n, 1.0) for item, n in (("a", 1), ("a", 2), ("b", 1), ("b", 3))])
    run = {"q": ["a", "x", "b"]}
    walk = rankmill.explain(
        rankmill.Labels(labels, subtopic="subtopic"), run, "err_ia@3", "q"
    ).table
    assert walk["term"].to_pylist() == [2.0, 0.0, 0.5]
    walk = rankmill.explain(rankmill.Labels(labels, subtopic="subtopic"), run, "strec", "q").table
    assert walk["term"].to_pylist() == [2.0, 0.0, 1.0]


def test_ndeval() -> None:
    """On random topics; of equal scores, ndeval ranks documents by falling id."""
    pyndeval = pytest.importorskip("pyndeval", reason="pyndeval is not installed")
    there = {"alpha_ndcg": "alpha-nDCG", "err_ia": "ERR-IA", "subtopic_recall": "strec"}
    there |= {"alpha_dcg": "alpha-DCG", "nerr_ia": "nERR-IA", "p_ia": "P-IA"}
    whole = {"nrbp": "NRBP", "nnrbp": "nNRBP", "map_ia": "MAP-IA"}
    generator = random.Random(5)
    for _ in range(strategies.examples(250)):
        documents = [f"d{place}" for place in range(generator.randint(2, 14))]
        rows = [
            ("q", document, str(subtopic), float(generator.choice([0, 1, 1, 2])))
            for document in documents
            for subtopic in range(generator.randint(1, 6))
            if generator.random() < 0.6
        ]
        if not any(gain > 0 for *_, gain in rows):
            continue
        run = generator.sample([*documents, "x", "y"], generator.randint(1, len(documents)))
        names = [*(f"{name}@{k}" for name in there for k in (5, 10, 20)), *whole]
        found = rankmill.evaluate(
            rankmill.Labels(table(rows), subtopic="subtopic"), {"q": run}, names
        )
        judgements = [(query, subtopic, item, int(gain)) for query, item, subtopic, gain in rows]
        scored = [("q", item, float(-place)) for place, item in enumerate(run)]
        theirs = {
            name: whole.get(name) or "@".join([there[name.split("@")[0]], name.split("@")[1]])
            for name in names
        }
        expected = pyndeval.ndeval(judgements, scored, measures=list(theirs.values()))["q"]
        for name in names:
            assert found[name] == pytest.approx(expected[theirs[name]], abs=1e-9), (rows, run)


@pytest.mark.small
def test_by_hand() -> None:
    """The item a is about 1 and 2, b about 1, c about 3; d is not relevant."""
    rows = [("q", "a", 1, 1.0), ("q", "a", 2, 1.0), ("q", "b", 1, 1.0), ("q", "c", 3, 1.0)]
    labels, run = table([*rows, ("q", "d", 3, 0.0)]), {"q": ["b", "x", "a", "d"]}
    metrics = ["alpha_ndcg@3", "err_ia@3", "strec@1", "StRecall@3", "map"]
    found = rankmill.evaluate(rankmill.Labels(labels, subtopic="subtopic"), run, metrics)
    log3 = 1.5849625007211562
    # b adds 1, a adds 1/2 for subtopic 1 and 1 for 2; the best list is a, c, b.
    best = 2 + 1 / log3 + 0.5 / 2
    assert found["alpha_ndcg@3"] == pytest.approx((1 + 1.5 / 2) / best, rel=1e-15)
    assert found["err_ia@3"] == pytest.approx((1 + 1.5 / 3) / 3 / (1 + 0.5 / 2 + 0.25 / 3))
    assert (found["strec@1"], found["StRecall@3"]) == (1 / 3, 2 / 3)
    assert found["map"] == pytest.approx((1 + 2 / 3) / 3)


def test_trec_qrels_of_diversity(tmp_path: Path, run_cli: Any) -> None:
    qrels, run = tmp_path / "diversity.qrels", tmp_path / "a.run"
    qrels.write_text("1 1 a 1\n1 2 a 1\n1 2 b 2\n1 3 c 0\n2 1 a -2\n2 1 b 1\n")
    run.write_text("1 Q0 b 1 2.0 x\n1 Q0 a 2 1.0 x\n2 Q0 c 1 1.0 x\n")
    metrics = ["subtopic_recall@1", "alpha_ndcg@2", "map"]
    found = rankmill.evaluate(rankmill.Labels(qrels, subtopic="iteration"), run, metrics)
    assert found["subtopic_recall@1"] == 0.25
    asked = [f"--metric={name}" for name in metrics]
    shown = run_cli("evaluate", qrels, run, *asked, "--subtopic", "iteration", "--format", "csv")
    assert shown.exit_code == 0, shown.stderr
    assert "subtopic_recall@1,0.25" in shown.stdout
    # Integers where the predictions have integers.
    numbers = tmp_path / "numbers.qrels"
    numbers.write_text("1 1 7 1\n1 2 8 1\n")
    listed = pa.table({"query": [1], "items": [[7]]})
    assert (
        rankmill.evaluate(rankmill.Labels(numbers, subtopic="iteration"), listed, "strec@3")[
            "strec@3"
        ]
        == 0.5
    )


def test_weights_and_parts(tmp_path: Path) -> None:
    rows = [(q, item, item % 3, 1.0) for q in range(6) for item in range(q % 3 + 1)]
    labels = table(rows).append_column("weight", pa.array([float(row[0]) for row in rows]))
    predictions = pa.table({"query_id": list(range(6)), "items": [[0, 9], [9, 1]] * 3})
    options = {"subtopic": "subtopic", "weight": "weight"}
    whole = flat(rankmill.evaluate, labels, predictions, ["alpha_ndcg", "strec"], **options)
    pq.write_table(labels, tmp_path / "labels.parquet", row_group_size=2)
    again = flat(
        rankmill.evaluate,
        tmp_path / "labels.parquet",
        predictions,
        ["alpha_ndcg", "strec"],
        threads=1,
        **options,
    )
    assert again.metrics == whole.metrics
    assert again.inputs["labels"]["source"].endswith("labels.parquet")
    import pyarrow.compute as pc

    states = []
    for odd in (0, 1):
        sides = [
            one.filter(pc.equal(pc.bit_wise_and(one["query_id"], 1), odd))
            for one in (labels, predictions)
        ]
        states.append(
            flat(rankmill.parts.evaluate_part, *sides, ["alpha_ndcg", "strec"], **options)
        )
    assert states[1].merge(states[0]).result().metrics == whole.metrics


GOOD = table([("q", "a", 1, 1.0), ("q", "b", 2, 1.0)])
RUN = {"q": ["a"]}


@pytest.mark.small
@pytest.mark.parametrize(
    ("labels", "metric", "options", "wanted"),
    [
        (GOOD, "alpha_ndcg@3", {}, ["alpha_ndcg@3 needs labels with subtopics", "--subtopic"]),
        (GOOD, "ndcg", {"subtopic": "subtopic"}, ["ndcg looks at gains", "leave it out"]),
        (GOOD, "map(rel=2)", {"subtopic": "subtopic"}, ["map(rel=2) looks at gains"]),
        (GOOD, "map", {"subtopic": "subtopic", "gain_function": "exp"}, ["'exp'", "subtopics"]),
        (GOOD, "err_ia", {"subtopic": "subtopic"}, ["err_ia needs a cutoff"]),
        (GOOD, "alpha_ndcg(alpha=2)", {"subtopic": "subtopic"}, ["from 0 to 1"]),
        ({"q": ["a"]}, "strec", {"subtopic": "subtopic"}, ["no columns", "subtopic"]),
        (
            pa.table({"query": ["q"], "items": [["a"]], "subtopic": [1]}),
            "strec",
            {"subtopic": "subtopic"},
            ["holds lists of items", "a row for each query, item and subtopic"],
        ),
    ],
)
def test_usage_errors(labels: Any, metric: str, options: dict[str, Any], wanted: list[str]) -> None:
    with pytest.raises(UsageError) as error:
        flat(rankmill.evaluate, labels, RUN, metric, **options)
    tells(error.value, wanted)


@pytest.mark.small
@pytest.mark.parametrize(
    ("labels", "subtopic", "wanted"),
    [
        (GOOD, "topic", ["no column 'topic'"]),
        (
            GOOD.set_column(2, "subtopic", pa.array([0.5, 1.5])),
            "subtopic",
            ["'subtopic'", "double"],
        ),
        (GOOD.set_column(2, "subtopic", pa.array([1, None])), "subtopic", ["row 1", "no subtopic"]),
        (GOOD.set_column(3, "relevance", pa.array([1.0, None])), "subtopic", ["row 1", "no gain"]),
        (table([("q", "a", n, 1.0) for n in range(33)]), "subtopic", ["'q'", "33 subtopics", "32"]),
    ],
)
def test_input_errors(labels: Any, subtopic: str, wanted: list[str]) -> None:
    with pytest.raises(InputError) as error:
        rankmill.evaluate(rankmill.Labels(labels, subtopic=subtopic), RUN, "strec")
    tells(error.value, wanted)
