"""Cases for `verdicts.py` that have one right answer: each row counts the wrong ones.

They go through the functions and commands that a user calls. Each yields what a row of that table
has, as in `verdicts_of_nights.py`.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import rankmill
from rankmill.analysis.statistics.paired_differences import ClusteredPaired, fit_of
from rankmill.analysis.statistics.significance import run_test
from rankmill.errors import RankmillError
from rankmill.metrics.registry import REGISTRY
from rankmill.nightly.history import History
from verdicts_of_nights import Rate

BEGIN = datetime(2026, 1, 1, 3, tzinfo=UTC)
RULE = "hit@1 drop <= 5% confidence 0.95"


def wrong(what: str, *right: object) -> Rate:
    """Return the row of some answers, each of which must be true."""
    return what, sum(not one for one in right), len(right), 0.0, 0.0


def refusal(call: Callable[[], object]) -> str:
    """Return what a call is refused with, or ""."""
    try:
        call()
    except RankmillError as error:
        return str(error)
    return ""


def run_of(right: np.ndarray) -> pa.Table:
    """Return predictions that are right for some queries, which are called by their numbers."""
    items = [[1] if one else [9] for one in right]
    return pa.table({"user_id": np.arange(len(right)), "items": items})


def labels_of(queries: int, **more: Any) -> pa.Table:
    return pa.table({"user_id": range(queries), "items": [[1]] * queries, **more})


def ratios(random: np.random.Generator, repetitions: int) -> Iterator[Rate]:
    """The interval of a relative difference has no end where the baseline may be 0."""
    one_hit = np.arange(1000) == 0
    runs = {"old": run_of(one_hit), "new": run_of(~one_hit & (np.arange(1000) < 2))}
    found = rankmill.compare(labels_of(1000), runs, "hit@1").differences["hit@1"]["new"]
    yield wrong("1: no end above of a ratio to one hit of 1,000", found.relative_high is None)


def overlap(random: np.random.Generator, repetitions: int) -> Iterator[Rate]:
    """What a gate says of few queries in common, and of baselines without a value."""
    labels, right = labels_of(1000), np.arange(1000) < 3
    values = rankmill.evaluate(labels, run_of(right | True), "hit@1").per_query.slice(0, 3)
    few = rankmill.gate(labels, run_of(right), RULE, baseline=values)
    half = rankmill.evaluate(labels, run_of(right | True), "hit@1").per_query.slice(0, 950)
    found = rankmill.gate(labels, run_of(right), RULE, baseline=half)
    of_few, of_most = few.outcomes[0], found.outcomes[0]
    yield wrong(
        "2: few queries in common, and the own value",
        of_few.word == of_most.word == "regressed",
        of_few.value == of_most.value == 0.003,
        "not paired, as only 3 of 1,000 queries" in of_few.reason,
        "paired over 950 of 1,000 queries" in of_most.reason,
    )
    none = run_of(right & False)
    nothing = [
        one.word != "held" for one in rankmill.gate(labels, none, RULE, baseline=none).outcomes
    ]
    with tempfile.TemporaryDirectory() as name:
        earlier = Path(name, "earlier.json")
        told = json.loads(rankmill.evaluate(labels, run_of(right), "hit@1").to_json())
        refused = []
        for value in (None, 1.5):
            told["metrics"]["hit@1"] = value
            del told["checksum"]  # as of a file made by hand
            earlier.write_text(json.dumps(told))
            told["checksum"] = ""
            refused.append(
                refusal(lambda: rankmill.gate(labels, run_of(right), RULE, baseline=str(earlier)))
            )
    yield wrong("2: a baseline without a value, or out of range", *refused, *nothing)


def unknown(random: np.random.Generator, repetitions: int) -> Iterator[Rate]:
    """A slice that no query has is an error that lists those that there are."""
    labels = labels_of(60, country=["de", "fr", "it"] * 20)
    rule = "hit@1[country=itt] >= 0.5"
    said = refusal(lambda: rankmill.gate(labels, run_of(np.ones(60)), rule))
    yield wrong(
        "3: a slice that no query has", *(f"country = {one}" in said for one in ("it", "de"))
    )


def notes(random: np.random.Generator, repetitions: int) -> Iterator[Rate]:
    """Compare says where queries are too few for a test, and only there."""

    def noted(queries: int, word: str, labels: Any = None, **options: Any) -> bool:
        runs = {name: run_of(random.random(queries) < 0.5) for name in ("old", "new")}
        found = rankmill.compare(labels or labels_of(queries), runs, "hit@1", **options)
        return any(word in note for note in found.notes)

    told = []
    for queries, word in ((9, "there is no t test"), (29, "are rough"), (30, "")):
        table = labels_of(queries, weight=[1.0] * queries)
        found = noted(queries, word or "effective", rankmill.Labels(table, weight="weight"))
        told.append(found if word else not found)
    yield wrong("5: notes below 10 and below 30 effective queries", *told)


def losses(random: np.random.Generator, repetitions: int) -> Iterator[Rate]:
    """A system that loses its predictions is not better in any metric, on any path."""
    rows = [(query, f"i{item}", 1 + item % 2) for query in range(40) for item in range(3)]
    queries, items, gains = zip(*rows, strict=True)
    labels = pa.table({"query": queries, "item": items, "gain": gains, "subtopic": items})
    seen = pa.table({"query": range(40), "item": ["s"] * 40})
    right = []
    for spec in REGISTRY.values():
        if not spec.kernel:
            continue
        for lost, options in (
            (["u"], {"semantics": rankmill.Semantics(judged_only=True)}),
            (["s"], {"catalogue": rankmill.Catalogue(train=seen, drop_seen=True)}),
            ([], {}),
        ):
            kept = ["i2", "x", "i1"]
            lists = {"old": [kept] * 40, "new": [kept] * 10 + [lost] * 30}
            runs = {k: pa.table({"query": range(40), "items": v}) for k, v in lists.items()}
            with contextlib.suppress(RankmillError):  # a metric may refuse
                found = rankmill.compare(labels, runs, spec.example, **options)
                ((_, one),) = found.differences.items()
                right.append(one["new"].verdict != "better")
    yield wrong(f"9: better without predictions, {len(right)} metrics and ways", *right)


def slices(random: np.random.Generator, repetitions: int) -> Iterator[Rate]:
    """All queries are judged as they are without slices."""
    parts = pa.array([f"c{i % 20}" for i in range(600)])
    labels = labels_of(600, country=parts)
    runs = {name: run_of(random.random(600) < share) for name, share in (("a", 0.5), ("b", 0.4))}
    found = rankmill.compare(labels, runs, "hit@1", by="country")
    alone = rankmill.compare(labels, runs, "hit@1")
    same = found.differences == alone.differences
    yield wrong("8: slices change what is said of all queries", same, len(found.slices) == 20)


def clocks(random: np.random.Generator, repetitions: int) -> Iterator[Rate]:
    """A run of the future is not `last`, a retry replaces, undecided nights are no baseline."""
    right = np.arange(100)
    with tempfile.TemporaryDirectory() as folder:
        for number, hits in ((0, 50), (1, 60), (1, 70), (9, 90)):
            result = rankmill.evaluate(labels_of(100), run_of(right < hits), "hit@1")
            History(folder).record(result, time=BEGIN + timedelta(days=number, hours=number))
        served = History(folder).baseline("last", "hit@1", now=BEGIN + timedelta(days=2, hours=9))
        both = History(folder).baseline("median:7", "hit@1", now=BEGIN + timedelta(days=2, hours=9))
        yield wrong(
            "12: the future and retries are no baseline",
            served.value == 0.7,
            "later than the date of this run" in served.note,
            both.value == 0.5,  # the lower one of two nights
            len(History(folder)) == 4,
        )
        file = Path(folder, "young.csv")
        file.write_text("user_id,items\n1,1\n")
        later = (datetime.now(UTC) + timedelta(days=1)).timestamp()
        os.utime(file, (later, later))
        rule = "predictions_age <= 36h"
        said = refusal(lambda: rankmill.gate(labels_of(5), str(file), rule))
        yield wrong("12: a file younger than now is an error of its age", said)
    with tempfile.TemporaryDirectory() as folder:
        for number, hits in enumerate((70, 55)):
            rule = "hit@1 >= 0.5 confidence 0.95"
            verdict = rankmill.gate(labels_of(100), run_of(right < hits), rule)
            History(folder).record(verdict, time=BEGIN + timedelta(days=number))
        served = History(folder).baseline("last", "hit@1", now=BEGIN + timedelta(days=3))
        yield wrong("11: a night without enough data is not `last`", served.value == 0.7)


def by_hand(random: np.random.Generator, repetitions: int) -> Iterator[Rate]:
    """Errors of clusters are those of statsmodels, and CUPED is the regression by hand."""
    from statsmodels.regression.linear_model import OLS

    same, adjusted = [], []
    for number in range(20):
        # statsmodels' p knows the number of clusters, and not how unequal they are.
        equal = number % 2 == 0
        codes = np.arange(210) % 15 if equal else np.r_[:15, random.integers(0, 15, 200)]
        drawn = random.normal(0, 1, 15)[codes] + random.normal(0, 1, len(codes))
        fit = OLS(drawn, np.ones(len(drawn))).fit(
            cov_type="cluster", cov_kwds={"groups": codes}, use_t=True
        )
        one = ClusteredPaired.of(drawn, codes)
        found = one.mean, one.standard_error, run_test("t", one).p
        wanted = fit.params[0], fit.bse[0], fit.pvalues[0]
        shown = slice(3 if equal else 2)
        same.append(np.allclose(found[shown], wanted[shown], rtol=1e-9))
        before = random.exponential(1, len(drawn)) - 1
        fit = OLS(drawn, np.column_stack([np.ones(len(drawn)), before])).fit()
        one = fit_of(drawn, before)
        found = one.mean, one.standard_error, one.freedom
        adjusted.append(np.allclose(found, (fit.params[0], fit.bse[0], fit.df_resid), rtol=1e-9))
    yield wrong("13: errors of clusters as statsmodels has them, and p if they are equal", *same)
    yield wrong("13: adjusted differences as of a regression", *adjusted)


def mornings(random: np.random.Generator, repetitions: int) -> Iterator[Rate]:
    """After an outage all outputs say so; a verdict is false, and says which slice broke."""
    outputs = {"--json": "g.json", "--junit": "g.xml", "--markdown": "g.md", "--report": "g.html"}
    outputs |= {"--summary": "g.txt"}
    rows = "".join(f"{query},1\n" for query in range(60))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def command(*words: str) -> subprocess.CompletedProcess[str]:
            asked = [sys.executable, "-m", "rankmill", *words]
            return subprocess.run(asked, cwd=folder, capture_output=True, text=True, check=False)

        def gated(file: str, *more: str) -> int:
            written = [word for pair in outputs.items() for word in pair]
            return command("gate", "l.csv", file, *more, *written, "--history", "runs").returncode

        (folder / "l.csv").write_text("user_id,item_id\n" + rows)
        (folder / "empty.csv").write_text("")
        (folder / "cut.csv").write_text("user_id,item_id\n" + rows[:-3])
        (folder / "b.csv").write_text(
            "user_id,kind\n" + "".join(f"{query},{'ab'[query % 2]}\n" for query in range(60))
        )
        told = []
        for file in ("missing.csv", "empty.csv", "cut.csv"):
            told.append(gated("l.csv", "--rule", "hit@1 >= 0.5") == 0)
            told.append("held" in (folder / "g.json").read_text())
            told.append(gated(file, "--rule", "hit@1 >= 0.5") == 3)
            texts = [(folder / one).read_text() for one in outputs.values()]
            told += ["no verdict" in one.lower() and "held" not in one.lower() for one in texts]
            told.append('errors="1"' in (folder / "g.xml").read_text())
            last = History(folder / "runs").runs[-1]
            told.append(last.verdict == "no verdict" and last.reason)
        yield wrong("14: outputs after a missing, an empty and a cut input", *told)

        lost = "".join(f"{query},{1 if query % 2 else 9}\n" for query in range(60))
        (folder / "lost.csv").write_text("user_id,item_id\n" + lost)
        rule = "--rule=hit@1[kind=*] >= 0.5", "--by=b.csv"
        code = gated("lost.csv", *rule)
        line, page = ((folder / one).read_text() for one in ("g.txt", "g.html"))
        head = page[page.index("<h1>") : page.index("</h1>")]
        yield wrong(
            "16: the headline and the summary name the slice",
            code == 1,
            *("a: hit@1 0" in one and "limit 0.5" in one for one in (line, head)),
            line.count("\n") == 1,
        )
        for file in ("labels", "predictions"):
            (folder / f"{file}-2026-01-05.csv").write_text("user_id,item_id\n" + rows)
        made = command("init", "labels-2026-01-05.csv", "predictions-2026-01-05.csv")
        text = (folder / "rankmill.toml").read_text()
        dry = command("gate", "rankmill.toml", "--date", "2026-01-05")
        yield wrong(
            "17: the file of init",
            made.returncode == 0,
            text.count("{date}") >= 2,
            "rankmill gate" in (made.stdout + made.stderr).strip().splitlines()[-1],
            dry.returncode == 0 and dry.stderr.count("held: ") == 2,
        )
    verdict = rankmill.gate(labels_of(20), run_of(np.zeros(20)), "hit@1 >= 0.5")
    said = ""
    try:
        verdict.raise_for_failure()
    except Exception as error:  # its class is no matter here
        said = str(error)
    yield wrong("15: a verdict that regressed", not verdict, "hit@1" in said)


CASES = (
    ratios,
    overlap,
    unknown,
    notes,
    slices,
    losses,
    clocks,
    by_hand,
    mornings,
)


def cases(random: np.random.Generator, repetitions: int) -> Iterator[Rate]:
    """All of them."""
    for one in CASES:
        yield from one(random, repetitions)
