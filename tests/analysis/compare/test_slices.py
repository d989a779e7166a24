"""Slices of a comparison: cut by columns, tables and derived classes, tested, and merged."""

import csv
import io
import json
import random
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from scipy import stats

import rankmill
import unseen_oracle
from cuts import cut
from flat import flat
from rankmill.analysis.compare.view.comparison import view_of
from rankmill.analysis.statistics.significance import correct
from rankmill.engine.segments import natural
from rankmill.errors import InputError, UsageError
from rankmill.show import writers
from systems import numbers, table

METRICS = ["map@3", "recall@2"]


def values_of(labels, run, metric):
    found = rankmill.evaluate(labels, run, metric).per_query.to_pydict()
    return dict(zip(found["query"], found[metric], strict=True))


def test_each_slice_is_a_comparison_of_its_queries():
    labels, runs, country, age = cut()
    found = rankmill.compare(labels, runs, METRICS, by=["country", "age"])
    expected = [("country", v) for v in ("de", "fr", "it", None)]
    expected += [("age", v) for v in ("9", "10", "30")]
    assert [(*one.by, *one.value) for one in found.slices] == expected
    ps = {}
    for one in found.slices:
        of = country if one.by == ("country",) else {q: str(v) for q, v in age.items()}
        queries = [query for query, value in of.items() if value == one.value[0]]
        assert one.queries == len(queries)
        for metric in METRICS:
            both = [values_of(labels, run, metric) for run in runs.values()]
            before, after = (np.array([each[query] for query in queries]) for each in both)
            difference = one.differences[metric]["good"]
            test = stats.ttest_rel(after, before)
            assert difference.value == pytest.approx((after - before).mean(), rel=1e-13)
            assert difference.tests["t"].p == pytest.approx(test.pvalue, rel=1e-10)
            # 7 slices in two metrics: all their intervals hold together. None is narrower than
            # that of the mean with one unseen query.
            low, high = test.confidence_interval(1 - 0.05 / 14)
            low = min(low, unseen_oracle.smallest(after - before, -1, 0.025 / 14))
            high = max(high, unseen_oracle.largest(after - before, 1, 0.025 / 14))
            assert one.confidence == 1 - (1 - 0.95) / 14
            # Holm shows more, and then no interval says that it may be otherwise.
            low = max(low, 0.0) if difference.verdict == "better" else low
            assert (difference.low, difference.high) == pytest.approx((low, high), rel=1e-9)
            value = one.values[metric]["good"]
            assert value.value == pytest.approx(after.mean(), rel=1e-13)
            assert value.standard_error == pytest.approx(stats.sem(after), rel=1e-10)
            p = max(difference.tests["t"].p, difference.bound_p)
            ps[one.by, one.value, metric] = p, difference.tests["t"].corrected_p
    whole = [found.differences[metric]["good"].tests["t"] for metric in METRICS]
    whole = [(one.p, one.corrected_p) for one in whole]
    for family in ([*ps.values()], whole):
        plain, corrected = zip(*family, strict=True)
        assert [*corrected] == correct(plain, "holm")
    verdicts = {one.value[0]: one.differences["map@3"]["good"].verdict for one in found.slices}
    assert (verdicts["de"], verdicts["it"]) == ("better", "worse")


@pytest.mark.parametrize("how", ["plain", "weights", "clusters"])
def test_rare_gains_that_few_slices_show_are_no_loss(how):
    """One query of a hundred gains 0.5, and all others lose as much in all."""
    draw = np.random.default_rng(1)
    n = 2000
    gains = draw.random(n) < 0.01
    new = np.where(gains, 1.0, 0.5 - 0.0101 * draw.random(n))
    labels = pa.table(
        {
            "query": np.arange(n),
            "items": [[0, 1, 2]] * n,
            "gain": [[1.0, 0.5, float(one)] for one in new],
            "part": [f"p{q % 20}" for q in range(n)],
            "who": np.arange(n) // 20 if how == "clusters" else np.arange(n),
            "weight": np.full(n, 0.25),
        }
    )
    runs = {
        name: pa.table({"query": np.arange(n), "items": [[item]] * n})
        for item, name in ((1, "old"), (2, "new"))
    }
    given = rankmill.Labels(labels, weight="weight") if how == "weights" else labels
    more = {"cluster": "who"} if how == "clusters" else {}
    found = flat(rankmill.compare, given, runs, "ndcg@1", by="part", **more)
    every = [one.differences["ndcg@1"]["new"] for one in found.slices]
    # Student's t takes slices without a query that gains for losers.
    assert sum(one.tests["t"].p < 0.05 / 20 for one in every) > 3
    assert {one.verdict for one in every} <= {"no difference shown"}
    assert all(one.low <= 0 <= one.high for one in every)
    assert all(one.relative_low <= 0 <= one.relative_high for one in every)


def test_a_table_of_queries_cuts_as_a_column_does(tmp_path):
    labels, runs, country, _ = cut()
    order = random.Random(0).sample(list(country), len(country) - 5)
    apart = pa.table({"query": order, "land": [country[query] for query in order]})
    pq.write_table(apart, tmp_path / "users.parquet")
    (tmp_path / "users.csv").write_text(
        "user_id,land\n" + "".join(f"{q},{country[q] or ''}\n" for q in order)
    )
    known = labels.drop_columns(["country", "age"]).append_column(
        "land", pa.array([country[q] if q in order else None for q in country])
    )
    expected = [one.to_dict() for one in rankmill.compare(known, runs, METRICS, by="land").slices]
    bare = known.drop_columns("land")
    ways = apart, str(tmp_path / "users.parquet"), str(tmp_path / "users.csv"), apart.to_pandas()
    for way in ways:
        found = rankmill.compare(bare, runs, METRICS, by=way)
        assert [one.to_dict() for one in found.slices] == expected


def test_columns_behind_a_path_are_chosen(tmp_path, monkeypatch):
    labels, runs, *_ = cut()
    monkeypatch.chdir(tmp_path)
    bare, facts = labels.drop_columns(["country", "age"]), labels.drop_columns("items")
    facts = facts.append_column("visits", pa.array([str(i) for i in range(len(facts))]))
    (tmp_path / "folder").mkdir()
    # A path that holds a colon and exists is that path.
    for name in ("users.parquet", "users.parquet:age", "folder/users:1"):
        chosen = ["query", "country"] if ":" in name else facts.column_names
        pq.write_table(facts.select(chosen), tmp_path / name)
    for by, names in {
        "users.parquet:country": ["country"],
        "users.parquet:age, country": ["age", "country"],
        str(tmp_path / "users.parquet:country"): ["country"],
        "users.parquet:age": ["country"],
        "folder/users:1": ["country"],
        "folder/users:1:country": ["country"],
    }.items():
        found = rankmill.compare(bare, runs, METRICS, by=by)
        assert found.slices == rankmill.compare(labels, runs, METRICS, by=names).slices, by
    wide = pa.table({"query": range(1500), "items": [[1]] * 1500, "visits": range(1500)})
    pq.write_table(wide.drop_columns("items"), "wide.parquet")
    told = r"visits has .* values; .* by='users.parquet:country,age:4'"
    with pytest.raises(UsageError, match=told):
        rankmill.evaluate(wide.drop_columns("visits"), {1: [1]}, "map", by="wide.parquet")
    with pytest.raises(UsageError, match=r"no column 'land' next to .* 'query': it has country"):
        rankmill.compare(bare, runs, METRICS, by="users.parquet:country,land")


def test_numbers_and_dates_of_a_table_are_cut_into_bins(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ages, days = [20, 31, 40, 20, None, 64], ["2026-01-31", "2026-02-01", None] * 2
    users = pa.table({"query": range(6), "age": ages, "joined": days})
    pq.write_table(users.append_column("at", users["joined"].cast(pa.date32())), "users.parquet")
    pa.csv.write_csv(users, "users.csv")
    labels = {query: [query] for query in range(6)}
    expected = {
        "age:2": {"20..31": 3, "40..64": 2, None: 1},
        "age:100": {"20": 2, "31": 1, "40": 1, "64": 1, None: 1},
        "joined:month": {"2026-01": 2, "2026-02": 2, None: 2},
        "joined:year": {"2026": 4, None: 2},
    }
    for file in ("users.parquet", "users.csv"):
        for bins, counts in expected.items():
            by = rankmill.evaluate(labels, labels, "map", by=f"{file}:{bins}").by
            assert by["by"][0].as_py() == bins.partition(":")[0]
            assert (
                dict(zip(by["slice"].to_pylist(), by["queries"].to_pylist(), strict=True)) == counts
            )
    found = rankmill.compare(labels, {"a": labels, "b": labels}, "map", by="users.parquet:at:day")
    assert [one.value for one in found.slices] == [("2026-01-31",), ("2026-02-01",), (None,)]
    for bins, why in {
        "joined:3": "column 'joined' holds no numbers, to be cut into 3 groups",
        "at:3": "column 'at' holds dates: cut them by year, month or day",
        "age:month": "column 'age': '20' is not a date such as 2026-01-31",
    }.items():
        with pytest.raises(InputError, match=why):
            rankmill.evaluate(labels, labels, "map", by=f"users.parquet:{bins}")


def test_activity_counts_what_queries_had_in_training():
    labels = {query: [query] for query in range(3)}
    had = rankmill.Catalogue(train={0: [7, 8], 1: [7], 9: [7]})
    by = rankmill.evaluate(labels, labels, "map", by="activity", catalogue=had).by
    assert (by["slice"].to_pylist(), by["queries"].to_pylist()) == (["0", "1", "2"], [1, 1, 1])
    found = rankmill.compare(
        labels, {"a": labels, "b": labels}, "map", by="activity", catalogue=had
    )
    assert [one.value for one in found.slices] == [("0",), ("1",), ("2",)]
    with pytest.raises(UsageError, match="by='activity' counts what queries had in training: give"):
        rankmill.evaluate(labels, labels, "map", by="activity")


def test_an_output_replaces_no_table_of_which_a_column_is_chosen(tmp_path, monkeypatch, run_cli):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "l.csv").write_text("query,item\n1,2\n")
    (tmp_path / "users.csv").write_text("query,kind\n1,a\n")
    asked = ("evaluate", "l.csv", "l.csv", "-m", "map", "--by", "users.csv:kind")
    assert "kind" in run_cli(*asked).stdout
    found = run_cli(*asked, "-o", "users.csv")
    assert (found.exit_code, "users.csv" in found.stderr) == (2, True)


@pytest.mark.parametrize("text", [False, True])
def test_a_series_cuts_by_its_name_and_its_index_of_ids(text):
    labels, runs, *_ = cut()
    if text:
        labels = labels.set_column(0, "query", labels["query"].cast(pa.string()))
        runs = {
            name: one.set_column(0, "query", one["query"].cast(pa.string()))
            for name, one in runs.items()
        }
    expected = rankmill.compare(labels, runs, METRICS, by="country").slices
    bare = labels.drop_columns("country")
    series = labels.to_pandas().set_index("query")["country"]
    unnamed = series.rename_axis(None)
    for way in (series, unnamed) if text else (series, [series]):
        assert rankmill.compare(bare, runs, METRICS, by=way).slices == expected
    if not text:  # row numbers look the same
        told = r"'country', whose index may be row numbers or query ids.* by='country'.*rename_axis"
        for way in (unnamed, labels.to_pandas()["country"]):
            with pytest.raises(UsageError, match=told):
                rankmill.compare(labels, runs, METRICS, by=way)
    with pytest.raises(UsageError, match=r"without a name.*rename\('country'\)"):
        rankmill.compare(bare, runs, METRICS, by=series.rename(None))


@pytest.mark.small
def test_derived_classes_are_what_they_say():
    draw = random.Random(8)
    items = [draw.choice("aaaabbbccdefghij") for _ in range(400)]
    labels = {q: draw.sample(items, draw.randint(1, 8)) for q in range(80)}
    old = {q: [draw.choice(items) for _ in range(draw.randint(1, 30))] for q in range(70)}
    new = {q: [draw.choice(items)] for q in range(75) if q % 7}
    by = ["label_count", "list_length", "label_popularity", "unpredicted"]
    found = rankmill.compare(table(labels), {"old": table(old), "new": table(new)}, "map@3", by=by)
    counts = Counter(item for of in labels.values() for item in set(of))
    classes = {}
    total, before = sum(counts.values()), 0
    for size in sorted(set(counts.values()), reverse=True):
        same = [item for item, count in counts.items() if count == size]
        classes |= dict.fromkeys(same, min(2, 3 * before // total))
        before += size * len(same)

    def popularity(query):
        ranked = sorted(classes[item] for item in set(labels[query]))
        return ("head", "middle", "tail")[ranked[(len(ranked) - 1) // 2]]

    def count_class(count):
        bounds = [(0, 0), (1, 1), (2, 2), (3, 5), (6, 10), (11, 20), (21, 50)]
        a, b = next(one for one in bounds if one[0] <= count <= one[1])
        return str(a) if a == b else f"{a}-{b}"

    systems = {0: "by no system", 1: "by some systems", 2: "by all systems"}
    oracles = {
        "label_count": lambda q: count_class(len(set(labels[q]))),
        "list_length": lambda q: count_class(len(old.get(q, []))),
        "label_popularity": popularity,
        "unpredicted": lambda q: systems[(q in old) + (q in new)],
    }
    for name, oracle in oracles.items():
        expected = Counter(map(oracle, labels))
        assert len(expected) > 2
        there = {one.value[0]: one.queries for one in found.slices if one.by == (name,)}
        assert there == expected
        assert list(there) == sorted(there, key=natural)


def test_order_of_rows_changes_no_slice():
    labels, runs, *_ = cut()
    options = {"by": ["country", "label_popularity"]}
    whole = flat(rankmill.compare, labels, runs, METRICS, **options)
    shuffled = {
        name: one.take(np.random.default_rng(1).permutation(240)) for name, one in runs.items()
    }
    again = flat(
        rankmill.compare,
        labels.take(np.random.default_rng(2).permutation(240)),
        shuffled,
        METRICS,
        threads=1,
        **options,
    )
    assert numbers(again) == numbers(whole)


def test_the_slices_are_a_family_apart_from_the_whole():
    labels, runs, *_ = cut()
    alone = rankmill.compare(labels, runs, METRICS)
    found = rankmill.compare(labels, runs, METRICS, by="country")
    assert found.differences == alone.differences
    whole = [found.differences[metric]["good"] for metric in METRICS]
    cuts = [each.differences[metric]["good"] for each in found.slices for metric in METRICS]
    assert (len(whole), len(cuts)) == (2, 8)
    assert [one.tests["t"].corrected_p for one in whole] == correct(
        [one.tests["t"].p for one in whole]
    )
    assert [one.tests["t"].corrected_p for one in cuts] == correct(
        [max(one.tests["t"].p, one.bound_p) for one in cuts]
    )
    assert {one.confidence for one in found.slices} == {1 - (1 - 0.95) / 8}
    plain = rankmill.compare(
        labels, runs, "map@3", by="country", tests=rankmill.Tests(correction="none")
    )
    assert {one.confidence for one in plain.slices} == {0.95}


def test_a_slice_that_collapsed_is_shown_and_leaves_hits_that_were_not_seen():
    draw = random.Random(0)
    labels = {query: [query] for query in range(4000)}
    runs = {name: {q: [q] if draw.random() < 0.3 else [-1] for q in labels} for name in "ab"}
    runs["b"] |= {q: [-1] for q in labels if q % 40 == 7}
    groups = pa.table({"query": list(labels), "group": [f"g{q % 40}" for q in labels]})
    found = rankmill.compare(labels, runs, "hit@1", by=groups)
    every = {one.value[0]: one.differences["hit@1"]["b"] for one in found.slices}
    one = every.pop("g7")
    assert one.verdict == "worse"
    assert {other.verdict for other in every.values()} == {"no difference shown"}
    # That no query has a hit leaves open that some have.
    assert -1 == one.relative == one.relative_low
    assert -0.8 < one.relative_high < -0.5


@pytest.mark.parametrize("travels", [False, True])
def test_merged_parts_say_what_the_whole_says(travels):
    labels, runs, *_ = cut()
    runs["third"] = runs["poor"].slice(0, 200)
    by = ["country", "label_count"]
    tests = ("t", "wilcoxon", "randomization")
    options = {"tests": rankmill.Tests(tests, seed=2)}
    whole = flat(rankmill.compare, labels, runs, METRICS, by=by, **options)

    def part(keep):
        def of(one):
            return one.filter(pa.array([q % 3 == keep for q in one["query"].to_pylist()]))

        each = {name: of(one) for name, one in runs.items()}
        return rankmill.parts.compare_part(of(labels), each, METRICS, by=by)

    parts = [part(keep) for keep in (2, 0, 1)]
    if travels:
        parts = [rankmill.parts.ComparisonState.from_table(one.to_table()) for one in parts]
    merged = flat(rankmill.parts.compare_state, parts[0].merge(parts[1]).merge(parts[2]), **options)
    expected = numbers(whole)
    apart = {"notes": [], "audit": {}}  # states do not carry them
    assert numbers(merged) | apart == expected | apart


def test_states_of_other_comparisons_do_not_merge():
    labels, runs, *_ = cut()
    one = rankmill.parts.compare_part(labels, runs, METRICS, by="country")
    other = rankmill.parts.compare_part(labels, runs, METRICS)
    with pytest.raises(rankmill.UsageError, match="comparisons of other slices do not merge"):
        one.merge(other)
    with pytest.raises(rankmill.UsageError, match="not a table of a comparison"):
        rankmill.parts.ComparisonState.from_table(pa.table({"a": [1]}))
    with pytest.raises(rankmill.UsageError, match="label_popularity needs the labels of all"):
        rankmill.parts.compare_part(labels, runs, METRICS, by="label_popularity")


def test_more_slices_than_anybody_reads_are_told() -> None:
    for count in (50, 51):
        labels = {"query": [*range(3 * count)], "items": [[1]] * (3 * count)}
        table = pa.table(labels | {"shop": [f"s{i % count}" for i in range(3 * count)]})
        runs = {"old": {0: [1]}, "new": {1: [1]}}
        options = {"metrics": "map", "by": ["shop", "label_count"]}
        gated = rankmill.gate(table, runs["new"], "queries > 0", baseline=runs["old"], **options)
        for notes in (rankmill.compare(table, runs, **options).notes, gated.notes):
            told = [note for note in notes if note.startswith("by shop there are 51 slices")]
            assert len(told) == (count == 51)
            assert not told or "a median of 3 queries" in told[0]


@pytest.mark.parametrize(
    ("ids", "unknown"),
    [(["1", "2", "3"], 0), (["1", "2", "x"], 1), (["1", "2", "03"], 1), ([1.0, 2.0, 3.0], 0)],
)
def test_a_table_may_write_integers_otherwise(ids, unknown):
    """If some are none, all are compared as text: a code such as 03 is no 3."""
    labels = table({1: [1], 2: [2], 3: [3]})
    runs = {"a": labels, "b": table({1: [1], 2: [2], 3: [9]})}
    by = pa.table({"query": ids, "kind": ["x", "y", "z"]})
    found = rankmill.compare(labels, runs, "map@3", by=by)
    assert [one.value[0] for one in found.slices] == ["x", "y", *(["z"], [None])[unknown]]


def test_all_formats_show_slices():
    labels, runs, *_ = cut()
    runs["third"] = runs["poor"]
    found = rankmill.compare(labels, runs, METRICS, by="country")
    text = repr(found)
    assert "map@3 by country" in text
    assert "(unknown)" in text
    assert "map@3 by country; all intervals hold together at 95%" in text
    rows = list(csv.DictReader(io.StringIO(writers.write(view_of(found), "csv"))))
    assert [row["slice"] for row in rows[::3]] == [
        "",
        "",
        *(v for v in ("de", "fr", "it", "(unknown)") for _ in METRICS),
    ]
    assert len(rows) == 3 * 2 * 5
    content = json.loads(found.to_json())
    assert content["slices"][0]["value"] == ["de"]


def test_the_command_cuts(run, tmp_path):
    labels, runs, *_ = cut()
    for name, one in {"labels": labels, **runs}.items():
        pq.write_table(one, tmp_path / f"{name}.parquet")
    paths = [str(tmp_path / f"{name}.parquet") for name in ("labels", "poor", "good")]
    code, out, _ = run("compare", *paths, "-m", "map@3", "--by", "country")
    assert code == 0
    assert "map@3 by country" in out
