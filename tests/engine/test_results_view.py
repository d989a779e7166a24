"""Several systems: their join by query id, and the note if they count different queries."""

import itertools
import json
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankmill
from cli_runs import on_a_terminal
from flat import flat
from rankmill.analysis.compare.queries.alignment import join_per_query
from rankmill.engine.results import same_queries
from rankmill.semantics.choices import CHOICES
from rankmill.semantics.presets import PRESETS

DIFFERENT = "averaged over different queries, so the values are not comparable: "


def table(lists, kind=None):
    return pa.table({"query": pa.array(list(lists), kind), "items": list(lists.values())})


def evaluate_runs(labels, runs, metrics="map", **options):
    return flat(
        rankmill.evaluate_runs,
        labels,
        {name: table(one) if isinstance(one, dict) else one for name, one in runs.items()},
        metrics,
        **options,
    )


def joined_plainly(labels, results):
    """Return the rows of the join from the tables as dicts: labels in order, others by id."""
    systems = {
        name: {row["query"]: row for row in one.per_query.to_pylist()}
        for name, one in results.items()
    }
    known = labels["query"].to_pylist()
    every = set().union(*systems.values())
    order = [query for query in known if query in every] + sorted(every.difference(known))
    return [
        {"query": query}
        | {
            f"{name}:{metric}": rows.get(query, {}).get(metric)
            for name, rows in systems.items()
            for metric in results[name].metrics
        }
        for query in order
    ]


@pytest.mark.small
@pytest.mark.parametrize("unlabelled", ["skip", "zero", "one"])
@pytest.mark.parametrize("unpredicted", ["zero", "skip"])
@pytest.mark.parametrize("text", [False, True])
def test_systems_are_joined_by_id(text, unpredicted, unlabelled):
    draw = random.Random(f"{text}{unpredicted}{unlabelled}")
    some = [f"q{n}" if text else 3 * n - 20 for n in range(40)]
    for _ in range(10):

        def lists(count, least=0):
            queries = draw.sample(some, draw.randint(count, 25))
            return {q: draw.sample(range(5), draw.randint(least, 3)) for q in queries}

        labels = table(lists(3, 1))
        semantics = {"unpredicted": unpredicted, "unlabelled": unlabelled}
        semantics["no_relevant"] = draw.choice(["skip", "zero"])
        runs = {name: lists(1) for name in "abc"[: draw.randint(1, 3)]}
        results = evaluate_runs(labels, runs, ["map", "recall"], semantics=semantics)
        found = join_per_query(results)
        assert found.to_pylist() == joined_plainly(labels, results)
        sets = [set(one.per_query["query"].to_pylist()) for one in results.values()]
        same = all(one == sets[0] for one in sets)
        assert same_queries(results) is same
        bare = evaluate_runs(labels, runs, "map", semantics=semantics, per_query=False)
        assert same_queries(bare) is same


@pytest.mark.small
def test_ids_of_other_types_of_each_system_are_the_same_ids():
    semantics = {"unpredicted": "skip", "unlabelled": "zero"}
    labels = table({5: [1], 300: [1], 7: [1]}, pa.uint16())
    runs = {
        "a": table({7: [1], -1: [1]}, pa.int8()),
        "b": table({300: [1], 2**40: [1], -1: [1]}, pa.int64()),
        "c": table({5: [1]}, pa.int8())
        .slice(0, 0)
        .cast(pa.schema({"query": pa.int8(), "items": pa.list_(pa.int64())})),
    }
    with pytest.raises(rankmill.InputError, match="holds no rows"):
        evaluate_runs(labels, runs, semantics=semantics)
    del runs["c"]
    results = evaluate_runs(labels, runs, semantics=semantics)
    assert join_per_query(results).to_pydict() == {
        "query": [300, 7, -1, 2**40],
        "a:map": [None, 1, 0, None],
        "b:map": [1, None, 0, 0],
    }
    labels = table({"b": [1], "a": [1]}, pa.string())
    runs = {
        "a": table({"a": [1], "é": [1]}, pa.large_string()),
        "b": table({b"\xff": [1], b"b": [1], "é".encode(): [1]}, pa.binary()),
        "c": pa.table({"query": pa.array(["x"]).dictionary_encode(), "items": [[1]]}),
    }
    results = evaluate_runs(labels, runs, semantics=semantics)
    assert join_per_query(results).to_pydict() == {
        "query": [b"b", b"a", b"x", "é".encode(), b"\xff"],
        "a:map": [None, 1, None, 0, None],
        "b:map": [1, None, None, 0, 0],
        "c:map": [None, None, 0, None, None],
    }
    assert same_queries(results) is False


@pytest.mark.small
def test_no_column_takes_the_name_of_another():
    labels = pa.table({"a:map": [1, 2], "items": [[1], [2]]})
    runs = {"a": labels, "b": labels.slice(1)}
    results = evaluate_runs(labels, runs, query="a:map", semantics={"unpredicted": "skip"})
    assert join_per_query(results).to_pydict() == {
        "query": [1, 2],
        "a:map": [1, 1],
        "b:map": [None, 1],
    }


@pytest.mark.small
def test_results_of_two_calls_are_not_pasted():
    labels = table({1: [1], 2: [1]})
    one = evaluate_runs(labels, {"a": {1: [1]}}, semantics={"unpredicted": "skip"})
    other = evaluate_runs(labels, {"b": {2: [1]}}, semantics={"unpredicted": "skip"})
    with pytest.raises(KeyError, match=r"no system 'map' here, there are a: results\[SYSTEM\]"):
        one["map"]
    with pytest.raises(rankmill.UsageError, match=r"the results of a, b .* in one call"):
        join_per_query(one | other)
    assert same_queries(one | other) is None


KINDS = [*CHOICES["unpredicted"]]


@pytest.mark.small
@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("unpredicted", "unlabelled", "no_relevant"),
    [
        # Each two of the choices in one that is not long.
        pytest.param(*one, marks=[pytest.mark.long][: sum(map(KINDS.index, one)) % 3])
        for one in itertools.product(KINDS, repeat=3)
    ],
)
def test_what_semantics_say_of_queries_holds(unpredicted, unlabelled, no_relevant):
    """If semantics promise the same queries for all systems, no predictions may break this."""
    labels = table({1: [1], 2: [2], 3: [], 4: []})
    semantics = {"unpredicted": unpredicted, "unlabelled": unlabelled, "no_relevant": no_relevant}
    both = {1: [1], 2: [2]}
    runs = [{1: [1]}, {2: [2]}, both, both | {3: [3]}, both | {4: [3]}]
    runs += [{1: [1], 2: [], 8: [1]}, {1: [1], 2: [], 9: [1]}]
    for one in runs:
        for other in runs:
            try:
                results = evaluate_runs(labels, {"a": one, "b": other}, semantics=semantics)
            except rankmill.InputError:
                continue
            queries = [set(one.per_query["query"].to_pylist()) for one in results.values()]
            assert same_queries(results) is (queries[0] == queries[1])


@pytest.fixture
def dump(tmp_path):
    """Three systems: two count equally many but different queries, one counts fewer."""
    paths = [tmp_path / f"{name}.parquet" for name in ("labels", "a", "b", "c")]
    contents = [
        {1: [10], 2: [20], 3: [30]},
        {1: [10], 2: [20]},
        {2: [99], 3: [30]},
        {2: [99]},
    ]
    for path, content in zip(paths, contents, strict=True):
        pq.write_table(pa.table({"user_id": list(content), "items": list(content.values())}), path)
    return paths


SKIP = ["-m", "map@3", "--semantics", "unpredicted=skip"]


@pytest.mark.small
def test_per_query_values_on_the_command_line(run, dump, tmp_path):
    written = tmp_path / "q.parquet"
    code, _, err = run("evaluate", *dump, *SKIP, "--per-query", written)
    assert (code, err) == (0, "")
    assert pq.read_table(written).to_pydict() == {
        "user_id": [1, 2, 3],
        "a:map@3": [1, 1, None],
        "b:map@3": [None, 0, 1],
        "c:map@3": [None, 0, None],
    }


@pytest.mark.small
def test_nothing_is_said_where_the_queries_are_the_same(run, dump):
    for options in (["-m", "map@3"], SKIP):
        systems = dump[1:] if options != SKIP else [dump[2], dump[2].rename(dump[2].parent / "d")]
        if options == SKIP:
            systems[0].write_bytes(systems[1].read_bytes())
        for format in ("table", "csv", "markdown"):
            code, out, _ = run("evaluate", dump[0], *systems, *options, "--format", format)
            assert code == 0
            assert "different queries" not in out
        content = json.loads(run("evaluate", dump[0], *systems, *options, "--format", "json")[1])
        assert (content["same_queries"], content["note"]) == (True, None)


def test_a_terminal_says_that_queries_differ(dump):
    arguments = ["evaluate", *map(str, dump[:3]), *SKIP]
    lines = on_a_terminal(f"from rankmill.cli import main\nmain({arguments!r})", 120)
    assert f"queries  {DIFFERENT}a 2, b 2" in " ".join(" ".join(lines).split()).replace(
        "queries averaged", "queries  averaged"
    )


def test_queries_that_were_not_kept_are_said_to_differ_perhaps(tmp_path):
    """If labels do not fit in memory, nobody knows which queries count over all shares."""
    ids = list(range(400))
    paths = [tmp_path / f"{name}.parquet" for name in ("labels", "a", "b", "c")]
    for path, start, end in zip(paths, (0, 0, 1, 0), (400, 399, 400, 200), strict=True):
        part = pa.table({"user_id": ids[start:end], "items": [[one] for one in ids[start:end]]})
        pq.write_table(part, path, row_group_size=20)

    def evaluated(names, **options):
        runs = {name: str(tmp_path / f"{name}.parquet") for name in names}
        semantics = {"unpredicted": "skip"}
        return flat(
            rankmill.evaluate_runs,
            str(paths[0]),
            runs,
            "map",
            semantics=semantics,
            per_query=False,
            **options,
        )

    assert same_queries(evaluated("ab")) is False
    assert evaluated("ab", memory=5_000)["a"].counted is None
    assert same_queries(evaluated("ab", memory=5_000)) is None
    assert same_queries(evaluated("ac", memory=5_000)) is False
    code = "perhaps averaged over different queries: a 399, b 399; use per_query= to find out"
    from shown import render_all

    results = evaluated("ab", memory=5_000)
    assert f"\nqueries: {code}\n" in render_all(results, "table")
    assert json.loads(render_all(results, "json"))["same_queries"] is None


def test_presets_under_which_queries_may_differ():
    differing = {name for name, one in PRESETS.items() if one.semantics.counts_by_predictions}
    assert {"trec_eval", "ml_metrics", "spark", "sklearn", "recommenders", "lenskit"} <= differing
    assert differing.isdisjoint({"default", "kaggle_hm", "ranx", "rectools", "implicit"})


@pytest.mark.small
def test_names_that_are_no_text_have_a_column() -> None:
    lists = rankmill.arrays.Ragged.from_lists([[1], [2]])
    results = rankmill.evaluate_runs(lists, {"a\udce9": lists, "b": lists}, ["hit@1"])
    assert join_per_query(results).column_names == ["query", "a\\udce9:hit@1", "b:hit@1"]
