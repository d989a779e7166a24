"""Rules about a series of nights: paired ones, and those of a history."""

import json
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankmill import History, Rules, UsageError, gate, gate_power
from rankmill.nightly.gate.series import Night, PairedNight, against_pin, running_mean
from rankmill.nightly.rules.reports import summary_line
from rankmill.nightly.rules.rules import parse_rule

BEGIN = datetime(2026, 5, 1, 3, tzinfo=UTC)
PAIRED = "hit@1 drop <= 1% confidence 0.95 since 2026-05-01"
N = 2000
LABELS = pa.table({"user_id": range(N), "items": [[1]] * N, "country": ["de", "fr"] * (N // 2)})


def run_of(hits):
    return pa.table({"user_id": range(N), "items": [[1] if one else [2] for one in hits]})


def nights_of(folder, count, lose, rule=PAIRED, paired=True, seed=0, rate=0.5):
    """Gate and record nights in which a share of queries loses its hit; return the verdicts."""
    draw, found = np.random.default_rng(seed), []
    for night in range(count):
        old = draw.random(N) < rate
        new = old & (draw.random(N) >= lose(night))
        when = BEGIN + timedelta(days=night)
        given = {"baseline": run_of(old)} if paired else {}
        verdict = gate(LABELS, run_of(new), rule, history=folder, time=when, **given)
        History(folder).record(verdict, time=when)
        found.append(verdict)
    return found


def test_a_small_loss_adds_up_over_paired_nights(tmp_path):
    found = nights_of(tmp_path, 12, lambda night: 0.025)
    words = [one.word for one in found]
    assert words[0] != "regressed"
    assert words[-1] == "regressed"
    last = found[-1].outcomes[0]
    assert "mean of 12 nights since 2026-05-01" in last.reason
    assert last.low > 0.01
    assert last.measured == pytest.approx(0.025, abs=0.005)
    # What a night adds is in the history, and the whole is made of it.
    rows = [json.loads(pq.read_table(path)["outcomes"][0].as_py()) for path in tmp_path.iterdir()]
    nights = [PairedNight(*one[0]["night"]) for one in sorted(rows, key=str)]
    mean = running_mean(nights, 0.95)
    assert mean.nights == 12
    assert last.measured == pytest.approx(0.01 - mean.mean / mean.base)


def test_a_system_that_stays_is_held_and_quiet(tmp_path):
    found = nights_of(tmp_path, 10, lambda night: 0.0005)
    assert "regressed" not in [one.word for one in found]
    assert found[-1].word == "held"


def test_a_series_begins_at_its_date_and_forgets_tries_of_tonight(tmp_path):
    found = nights_of(tmp_path, 3, lambda night: 0.0)
    again = gate(
        LABELS,
        run_of([True] * N),
        PAIRED,
        baseline=run_of([True] * N),
        history=tmp_path,
        time=BEGIN + timedelta(days=2, hours=1),
    )
    assert "mean of 3 nights" in again.outcomes[0].reason
    later = PAIRED.replace("05-01", "05-03")
    alone = gate(
        LABELS,
        run_of([True] * N),
        later,
        baseline=run_of([True] * N),
        history=tmp_path,
        time=BEGIN + timedelta(days=3),
    )
    # Another rule: its series has tonight alone.
    assert "mean of 1 night since 2026-05-03" in alone.outcomes[0].reason
    typo = PAIRED.replace("2026", "2062")
    same = run_of([True] * N)
    night = {"history": tmp_path, "time": BEGIN + timedelta(days=3)}
    none = gate(LABELS, same, typo, baseline=same, **night)
    assert (none.headline, none.outcomes[0].counts) == ("not judged", False)
    assert "its series begins on 2062-05-01, after this night" in none.outcomes[0].reason
    assert found[0].outcomes[0].night is not None


def test_a_history_may_be_named_by_a_url(tmp_path):
    nights_of(tmp_path, 2, lambda night: 0.0)
    tonight = {"history": f"file://{tmp_path}", "time": BEGIN + timedelta(days=2)}
    same = run_of([True] * N)
    found = gate(LABELS, same, PAIRED, baseline=same, **tonight)
    assert "mean of 3 nights" in found.outcomes[0].reason


def test_slices_have_series_of_their_own(tmp_path):
    rule = "hit@1[country=*] drop <= 1% confidence 0.95 since 2026-05-01"
    found = nights_of(tmp_path, 6, lambda night: np.where(np.arange(N) % 2, 0.08, 0.0), rule)
    words = {one.slice: one.word for one in found[-1].outcomes}
    assert words["country = fr"] == "regressed"
    assert words["country = de"] != "regressed"


@pytest.mark.long
def test_a_leak_is_found_against_pinned_nights(tmp_path):
    rule = "hit@1 drop <= 5% confidence 0.95 since 2026-05-01"
    leak = nights_of(tmp_path / "a", 45, lambda n: 1 - 0.99 ** max(0, n - 14), rule, paired=False)
    assert {one.outcomes[0].word for one in leak[:14]} == {"not enough data"}
    assert {one.word for one in leak[:14]} == {"held"}  # and so a baseline
    assert "14 of 15 nights since 2026-05-01" in leak[13].outcomes[0].reason
    assert leak[-1].word == "regressed"
    assert "last nights against those from 2026-05-01 on" in leak[-1].outcomes[0].reason
    quiet = nights_of(tmp_path / "b", 45, lambda n: 0.0, rule, paired=False, seed=1)
    assert "regressed" not in [one.word for one in quiet]


def test_a_series_that_waits_for_nights_keeps_none_from_being_a_baseline(tmp_path):
    rules = ["hit@1 drop <= 20%", "hit@1 drop <= 5% since 2026-05-01"]
    right = np.arange(N) % 2 == 0
    words, sources = [], []
    for night in range(4):
        when = {"history": tmp_path, "time": BEGIN + timedelta(days=night)}
        tonight = run_of(right & (night != 2))
        found = gate(LABELS, tonight, rules, baseline="last or none", **when)
        History(tmp_path).record(found, time=when["time"])
        words.append((found.word, found.exit_code))
        sources.append(found.baseline and found.baseline["source"])
    assert words == [("held", 0), ("held", 0), ("regressed", 1), ("held", 0)]
    # The night that broke a rule is none.
    nights = [one.id for one in History(tmp_path).runs]
    chosen = [next((one for one in nights if one in (told or "")), None) for told in sources]
    assert chosen == [None, nights[0], nights[1], nights[1]]
    assert "4 of 15 nights since 2026-05-01" in " ".join(found.notes)


def test_a_series_without_pairs_that_is_undecided_leaves_the_verdict_to_others(tmp_path):
    rule = "hit@1 drop <= 5% since 2026-05-01"
    nights = nights_of(tmp_path, 16, lambda night: 0.0, rule, paired=False)
    (one,) = nights[-1].outcomes
    assert (one.word, one.counts, nights[-1].word) == ("not enough data", False, "held")
    assert one.low < 0.05 < one.high
    given = {"history": tmp_path, "time": BEGIN + timedelta(days=16)}
    strict = gate(LABELS, run_of(np.arange(N) % 2), Rules(rule, undecided="fail"), **given)
    assert (strict.word, strict.exit_code) == ("not enough data", 1)


def test_nights_of_a_pin_weigh_what_they_tell():
    nights = [Night(day, 0.3, 1e-5) for day in range(28)]
    nights += [Night(day, 0.2, 1e-5) for day in range(28, 35)]
    found = against_pin(nights, 0.95, 0.0, 0.95)
    assert found.mean == pytest.approx(0.2 - 0.95 * 0.3)
    assert found.high < 0
    assert against_pin(nights[:14], 0.95, 0.0, 0.95) is None
    # Days that are missing pair with no other day.
    assert against_pin([*nights[:20], *nights[23:]], 0.95, 0.0, 0.95).high < 0


def test_a_week_without_a_rare_hit_is_no_loss():
    """With no spread of their own, 15 % of quiet series of 100 queries a night were stopped."""
    nights = [Night(day, 0.01, 1e-4, 100) for day in range(28)]
    for size in (100, 10):
        none = [Night(day, 0.0, 0.0, size) for day in range(28, 35)]
        assert against_pin([*nights, *none], 1.0, 0.0, 0.95).high > 0
    # Nor are the first hits a gain, after nights of a few queries that had none.
    empty = [Night(day, 0.0, 0.0, 10) for day in range(28)]
    first = [Night(day, 0.01, 1e-6, 10_000) for day in range(28, 35)]
    assert against_pin([*empty, *first], 1.0, 0.0, 0.95).low < 0


def small_night(countries, hits, folder, night, **given):
    """Gate and record a night of a few queries, all of which hit before."""
    n, when = len(countries), BEGIN + timedelta(days=night, minutes=given.pop("minutes", 0))
    labels = pa.table({"user_id": range(n), "items": [[1]] * n, "country": [*countries]})
    new, old = (
        pa.table({"user_id": range(n), "items": [[1] if one else [2] for one in some]})
        for some in (hits, [1] * n)
    )
    rule = "hit@1[country=*] drop <= 90% since 2026-05-01"
    found = gate(labels, new, rule, baseline=old, history=folder, time=when)
    History(folder).record(found, time=when, **given)
    return found


def test_a_slice_of_one_query_decides_nothing_in_a_series(tmp_path):
    for night in range(3):
        found = small_night("a" * 60 + "b", [1] * 61, tmp_path, night)
        words = {one.slice: (one.word, one.counts) for one in found.outcomes}
        assert words["country = b"] == ("not enough data", False)
        assert words["country = a"] == ("held", True)
        assert found.word == "held"
    assert "mean of 3 nights" in found.outcomes[0].reason


def test_a_night_of_few_pairs_has_an_error_that_is_right_on_average(tmp_path):
    """That about the mean of two is half of it: 8 % of series of a year were stopped."""
    found = small_night("aa", [1, 0], tmp_path, 0)
    assert found.outcomes[0].night[1] == pytest.approx(0.5 / 2)


def test_a_series_from_nothing_tells_no_share(tmp_path):
    rule = "hit@1 drop <= 5% since 2026-05-01"
    given = {"history": tmp_path, "time": BEGIN, "baseline": run_of([False] * N)}
    (one,) = gate(LABELS, run_of(np.arange(N) < 200), rule, **given).outcomes
    assert (one.word, one.low, one.high) == ("not enough data", None, None)
    assert "no interval, as the baseline is 0" in one.reason


def test_a_date_counts_once_in_a_series_whatever_its_tags(tmp_path):
    for minutes, model in enumerate("xy"):
        tags = {"model": model}
        small_night("a" * 60, [1] * 60, tmp_path, 0, minutes=minutes, tags=tags)
    found = small_night("a" * 60, [1] * 60, tmp_path, 1)
    assert "mean of 2 nights" in found.outcomes[0].reason


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ("map drop <= 1% confidence 0.95 sequential", "write the first night of a series"),
        ("map drop <= 1% confidence none since 2026-05-01", "a series of nights has a confidence"),
        ("map drop <= 1% confidence 0.95 since May", "since May is not a date"),
        ("map >= 0.1 confidence 0.95 since 2026-05-01", "for the drop of a mean"),
        ("gap drop <= 1% confidence 0.95 since 2026-05-01", "for the drop of a mean"),
    ],
)
def test_what_is_no_series_is_refused(rule, told):
    with pytest.raises(UsageError, match=told):
        parse_rule(rule)


def test_a_series_needs_a_history_and_tells_what_it_detects(tmp_path):
    assert parse_rule(PAIRED).since == date(2026, 5, 1)
    with pytest.raises(UsageError, match="is about the nights of a history: give history="):
        gate(LABELS, run_of([True] * N), PAIRED)
    draw = np.random.default_rng(0)
    old = draw.random(N) < 0.5
    new = old ^ (draw.random(N) < 0.05)
    asked = {"baseline": run_of(old), "history": tmp_path, "time": BEGIN}
    (power,) = gate_power(LABELS, run_of(new), PAIRED, **asked).rules
    (plain,) = gate_power(LABELS, run_of(new), PAIRED.partition(" since")[0], **asked).rules
    assert 0.01 < power.smallest < plain.smallest
    assert power.alarms is None


def test_a_leak_without_a_baseline_is_told_in_a_line(tmp_path):
    """Its amount is that of the last nights, which no word says of tonight alone."""
    rule = "hit@1 drop <= 5% since 2026-05-01"
    found = nights_of(tmp_path, 26, lambda night: 0.3 * (night >= 16), rule, paired=False)
    told = found[-1]
    assert (told.word, told.baseline) == ("regressed", None)
    nights = [(one.time, one.get("hit@1").value, 0.01, "") for one in History(tmp_path).runs]
    line = summary_line(told, {"hit@1": nights})
    assert "tonight; drop of 2" in line
    assert "last nights against those from 2026-05-01 on" in line
    assert "the baseline" not in line
    highs = [one.outcomes[0].high for one in found if one.outcomes[0].high is not None]
    assert max(highs) <= 1
