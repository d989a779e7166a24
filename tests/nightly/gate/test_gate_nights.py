"""Gates over many nights: slices of the history as a baseline, error rates, and power."""

import itertools
import json
import random
import shlex
import statistics
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyarrow.csv import write_csv
from scipy import stats

import rankmill
import unseen_oracle
from flat import flat
from rankmill import Rules, gate, gate_power
from rankmill.errors import InputError, UsageError
from rankmill.nightly.gate.gate_request import levelled
from rankmill.nightly.history import History
from rankmill.nightly.report import page
from rankmill.nightly.rules.reports import lines, summary_line
from rankmill.nightly.rules.rules import parse_rules
from rankmill.nightly.runs.folder import Folder, open_folder

BEGIN = datetime(2026, 1, 1, 3, tzinfo=UTC)
QUERIES = 900
COUNTRIES = ("de", "fr", None)
LABELS = pa.table(
    {
        "user_id": range(QUERIES),
        "items": [[1]] * QUERIES,
        "country": [COUNTRIES[q % 3] for q in range(QUERIES)],
        "kind": ["ab"[q % 2] for q in range(QUERIES)],
    }
)


def dump(seed, rate=0.6, only=None, less=0.0):
    """Predictions that find the label at rank 1 with a rate, which is less in one country."""
    draw = random.Random(seed)
    found = []
    for q in range(QUERIES):
        lost = less if only is not None and q % 3 == only else 0.0
        found.append([1] if draw.random() < rate - lost else [2, 3])
    return pa.table({"user_id": range(QUERIES), "items": found})


def one_night(folder, number, predictions, rules, **options):
    """Gate a night and record it."""
    when = BEGIN + timedelta(days=number)
    found = flat(gate, LABELS, predictions, rules, history=folder, time=when, **options)
    History(folder).record(found, time=when)
    return found


# ------------------------------------------------------------------ slices


SLICED = "hit@1[country=*] drop <= 10%"


@pytest.mark.parametrize("how", ["last", "median:3", "tag:x=y"])
def test_slices_of_the_history_are_a_baseline(how, tmp_path):
    when = BEGIN + timedelta(days=1)
    first = gate(LABELS, dump(1), "hit@1 >= 0.1", by="country")
    assert [(one.by, one.slice) for one in first.slices] == [
        *((None, None), ("country", "de"), ("country", "fr"), ("country", "(unknown)"))
    ]
    History(tmp_path).record(first, time=BEGIN, tags={"x": "y"})
    assert gate(LABELS, dump(2), SLICED, baseline=how, history=tmp_path, time=when).word != (
        "regressed"
    )
    worse = dump(3, only=1, less=0.4)
    found = gate(LABELS, worse, SLICED, baseline=how, history=tmp_path, time=when)
    assert {one.slice: one.word for one in found.outcomes}["country = fr"] == "regressed"
    # The baseline is the value of that night, and its errors add to tonight's, as Welch has it.
    (row,) = (one for one in first.slices if one.slice == "fr")
    (french,) = (one for one in found.outcomes if one.slice == "country = fr")
    assert french.baseline == row.value
    assert row.queries == 300
    paired = gate(LABELS, worse, SLICED, baseline=dump(1))
    (same,) = (one for one in paired.outcomes if one.slice == "country = fr")
    assert same.baseline == french.baseline
    assert same.high != french.high


def test_every_gate_records_its_slices(tmp_path):
    rules = ["hit@1 >= 0.1", "hit@1[kind=*, country=*] >= 0.01"]
    plain = one_night(tmp_path, 0, dump(1), rules)
    paired = gate(LABELS, dump(1), rules, baseline=dump(1))
    assert plain.slices == paired.slices
    (path,) = tmp_path.iterdir()
    rows = [one for one in pq.read_table(path).to_pylist() if one["by"] is not None]
    names = ("by", "slice", "metric", "value", "standard_error", "queries", "effective_queries")
    assert [tuple(one[name] for name in names) for one in rows] == [
        one[:7] for one in plain.slices[1:]
    ]
    assert {one["by"] for one in rows} == {"kind", "country", "kind, country"}
    # The two names of a slice may be given in the other order.
    later = "hit@1[country=*, kind=*] drop <= 90%"
    found = gate(LABELS, dump(1), later, baseline="last", history=tmp_path)
    assert [one.word for one in found.outcomes] == ["held"] * 6
    assert all(one.value == one.baseline for one in found.outcomes)


def test_a_night_without_the_slices_is_no_silent_pass(tmp_path):
    one_night(tmp_path, 0, dump(1), "hit@1 >= 0.1", by="kind")
    asked = "has no hit@1 by country, which a rule needs: .* slices: gate.labels"
    with pytest.raises(InputError, match=asked):
        gate(LABELS, dump(2), SLICED, baseline="last", history=tmp_path)
    # A slice that only tonight has is not decided.
    few = LABELS.filter(pa.array([q % 3 != 1 for q in range(QUERIES)]))
    later = BEGIN + timedelta(days=1)
    History(tmp_path).record(gate(few, dump(1), "hit@1 >= 0.1", by="country"), time=later)
    found = gate(LABELS, dump(2), SLICED, baseline="last", history=tmp_path)
    words = {one.slice: one.word for one in found.outcomes}
    assert words["country = fr"] == "not enough data"


@pytest.mark.parametrize("how", ["last", "median:1", "ago:1d"])
def test_a_night_without_the_slices_is_passed_over(how, tmp_path):
    one_night(tmp_path, 0, dump(1), "hit@1 >= 0.1", by="country")
    one_night(tmp_path, 1, dump(2), "hit@1 >= 0.1")
    (first, bare) = History(tmp_path).runs
    asked = {"history": tmp_path, "time": BEGIN + timedelta(days=3)}
    found = gate(LABELS, dump(3), SLICED, baseline=how, **asked)
    assert first.id in found.baseline["source"]
    assert f"left out: the run {bare.id}, which lacks slices that a rule needs" in found.notes
    with pytest.raises(InputError, match=f"the run {bare.id} .* has no hit@1 by country"):
        gate(LABELS, dump(3), SLICED, baseline=bare.id, **asked)
    assert (
        bare.id
        in gate(LABELS, dump(3), "hit@1 drop <= 90%", baseline="last", **asked).baseline["source"]
    )


def test_the_first_night_begins_a_history(tmp_path):
    folder = tmp_path / "history"
    rules = [SLICED, "queries change <= 10%"]
    asked = "begin it with a gate whose rules need no baseline: "
    with pytest.raises(InputError, match=asked) as told:
        gate(LABELS, dump(1), rules, baseline="last", history=folder)
    # The advice is a line of Python, which begins it.
    advice = str(told.value).partition(asked)[2]
    names = {"History": History, "gate": gate, "labels": LABELS, "predictions": dump(1)}
    assert eval(advice, names).endswith(".parquet")
    (run,) = History(folder).runs
    assert (run.verdict, [*run.metrics]) == ("held", [(None, "hit@1")])
    found = gate(LABELS, dump(1), rules, baseline="last", history=folder)
    assert found.exit_code == 0
    # Both what evaluate and what gate gives is recorded, and the next night compares with it.
    History(folder).record(found)
    History(folder).record(found.result, time=datetime.now(UTC) + timedelta(days=1))
    tomorrow = datetime.now(UTC) + timedelta(days=2)
    rule = "hit@1 drop <= 1%"
    again = gate(LABELS, dump(1), rule, baseline="last", history=folder, time=tomorrow)
    assert again.outcomes[0].measured == 0
    assert len(History(folder)) == 3


@pytest.mark.parametrize("by", ["users.csv", "table", "kind"])
def test_the_advice_for_a_first_night_names_what_was_given(by, tmp_path, monkeypatch):
    """The slices of a rule may be of a file: the column alone would not be found."""
    monkeypatch.chdir(tmp_path)
    labels = LABELS.select(["user_id", "items", "kind"])
    users = LABELS.select(["user_id", "country"])
    write_csv(users, "users.csv")
    by = users if by == "table" else by
    rule = SLICED if by != "kind" else "hit@1[kind=*] drop <= 10%"

    def tonight(history):
        return gate(labels, dump(1), rule, baseline="last", history=history, by=by)

    names = {"History": History, "gate": gate, "labels": labels, "predictions": dump(1), "by": by}
    with pytest.raises(InputError, match="begin it with a gate") as told:
        tonight("h")
    eval(str(told.value).partition("need no baseline: ")[2], names)
    assert tonight("h").exit_code == 0
    # A night without the slices gets the same advice.
    one_night("other", 0, dump(1), "hit@1 >= 0.1")
    with pytest.raises(InputError, match="which a rule needs") as told:
        tonight("other")
    found = eval(str(told.value).partition("a night with these slices: ")[2], names)
    assert len(found.slices) == (3 if by == "kind" else 4)


def test_the_command_of_a_first_night_names_what_was_typed(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    pq.write_table(LABELS.select(["user_id", "items"]), "labels.parquet")
    pq.write_table(dump(1), "new.parquet")
    write_csv(LABELS.select(["user_id", "country"]), "users.csv")
    asked = ["gate", "labels.parquet", "new.parquet", "--history", "h"]
    more = ["--rule", SLICED, "--baseline", "last"]
    told = run(*asked, *more)[2]
    assert "--metric 'hit@1' --by 'country'" in told  # where nothing was typed
    code, _, told = run(*asked, *more, "--by", "users.csv", "--date", "2026-01-01")
    assert (code, "--metric 'hit@1' --by 'users.csv'" in told) == (3, True)
    advice = shlex.split(told.splitlines()[0].partition("need no baseline: ")[2])
    assert run(*asked, *advice, "--date", "2026-01-01")[0] == 0
    assert run(*asked, *more, "--by", "users.csv", "--date", "2026-01-02")[0] == 0


def test_a_column_that_is_missing_may_be_one_of_a_file():
    labels = LABELS.select(["user_id", "items"])
    told = r"no column 'country' for the slices; .*: choose one of these, or give a file .*by='us"
    with pytest.raises(InputError, match=told):
        gate(labels, dump(1), "hit@1[country=*] >= 0.1")


def test_a_history_that_is_not_there_says_how_one_is_written(tmp_path):
    with pytest.raises(InputError, match="expected a folder of recorded runs") as told:
        _ = History(tmp_path / "runs").runs
    advice = str(told.value).partition("write one with ")[2]
    result = gate(LABELS, dump(1), "hit@1 >= 0.1").result
    eval(advice, {"History": History, "result": result})
    assert len(History(tmp_path / "runs")) == 1


def test_the_first_night_is_a_gate_of_its_own(tmp_path):
    first = one_night(
        tmp_path, 0, dump(1), "queries > 0", metrics=["hit@1"], by="country", baseline="last"
    )
    assert (first.word, first.baseline) == ("held", None)
    rules = [SLICED, "queries change <= 10%"]
    assert one_night(tmp_path, 1, dump(1), rules, baseline="last").exit_code == 0


def test_rows_are_read_only_for_rules_about_slices(tmp_path, monkeypatch):
    for number in range(3):
        one_night(tmp_path, number, dump(number), "hit@1 >= 0.1", by="country")
    read = []
    rows = Folder._rows
    monkeypatch.setattr(Folder, "_rows", lambda self, name: read.append(name) or rows(self, name))
    gate(LABELS, dump(2), "hit@1 drop <= 10%", baseline="median:3", history=tmp_path)
    assert read == []
    gate(LABELS, dump(2), SLICED, baseline="median:3", history=tmp_path)
    assert len(read) == 1
    # Several rules, and the mix that those over all queries are compared at, ask for the same rows.
    read.clear()
    rules = [SLICED, "hit@1[country=*] drop <= 20%", "hit@1 drop <= 10%", "hit@1 drop <= 20%"]
    gate(LABELS, dump(2), rules, baseline="last", history=tmp_path, by="country")
    assert len(read) == 1


@pytest.mark.parametrize("column", ["slice", "value"])
def test_a_slice_that_was_changed_is_refused(column, tmp_path):
    one_night(tmp_path, 0, dump(1), "hit@1 >= 0.1", by="country")
    (path,) = tmp_path.iterdir()
    written = pq.read_table(path)
    cells = written[column].to_pylist()
    cells[1:3] = cells[2:0:-1]
    place = written.schema.get_field_index(column)
    pq.write_table(written.set_column(place, written.schema.field(place), [cells]), path)
    with pytest.raises(InputError, match="its checksum is not that of its values"):
        gate(LABELS, dump(1), SLICED, baseline="last", history=tmp_path)


def test_slices_of_runs_that_others_joined(tmp_path):
    for number in range(2):
        one_night(tmp_path, number, dump(number), "hit@1 >= 0.1", by="country")
    expected = [open_folder(tmp_path).slices_of(one) for one in History(tmp_path).runs]
    paths = [*tmp_path.iterdir()]
    rows = pa.concat_tables([pq.read_table(one) for one in paths])
    pq.write_table(rows.replace_schema_metadata(None), tmp_path / "joined.parquet")
    for path in paths:
        path.unlink()
    assert [open_folder(tmp_path).slices_of(one) for one in History(tmp_path).runs] == expected
    assert gate(LABELS, dump(1), SLICED, baseline="last", history=tmp_path).exit_code == 0


def test_the_slices_of_a_run_that_was_removed_meanwhile(tmp_path):
    one_night(tmp_path, 0, dump(0), "hit@1 >= 0.1", by="country")
    folder = open_folder(tmp_path)
    (run,) = folder.read(folder.files())
    Path(tmp_path, f"{run.id}.parquet").unlink()
    with pytest.raises(InputError, match="no longer exists; expected the slices of this run"):
        folder.slices_of(replace(run, slices=None))


# ------------------------------------------------------------------ slices that come and go


def crowd(seed, **countries):
    """Labels and predictions of new queries: the number of each country, and its rate of hits."""
    draw = random.Random(seed)
    names = [name for name, (count, _) in countries.items() for _ in range(count)]
    ids = draw.sample(range(10**9), len(names))
    labels = pa.table({"user_id": ids, "items": [[1]] * len(ids), "country": names})
    items = [[1] if draw.random() < countries[name][1] else [9] for name in names]
    return labels, pa.table({"user_id": ids, "items": items})


def nights_of(folder, nights, how, rules="hit@1[country=*] drop <= 20%", **options):
    """Gate and record a night for each of these countries; return the verdicts."""
    found = []
    for number, countries in enumerate(nights):
        when = BEGIN + timedelta(days=number)
        asked = {"baseline": how, "history": folder, "time": when} if number else {"time": when}
        rule = rules if number else "queries > 0"
        inputs = crowd(number, **countries)
        options |= {"metrics": "hit@1", "by": "country"}
        found.append(flat(gate, *inputs, rule, **asked, **options))
        History(folder).record(found[-1], time=when)
    return found


def words_of(found):
    letters = {"held": "H", "regressed": "R", "not enough data": "?", "bad volume": "V"}
    return "".join(letters[one.word] for one in found)


def age(found):
    """Return how old the baseline of a verdict is, in days."""
    return int(found.baseline["source"].rpartition(", ")[2].split()[0])


HOW = pytest.mark.parametrize("how", ["last", "median:3"])
TWO = {"de": (2000, 0.5), "fr": (2000, 0.6)}


@pytest.mark.rows(2)
@HOW
@pytest.mark.parametrize(("size", "rate"), [(66, 0.02), (200, 0.5), (2000, 0.5)])
def test_a_new_slice_is_named_and_stops_no_baseline(how, size, rate, tmp_path):
    nights = [TWO] * 5 + [TWO | {"pl": (size, rate)}] * 9
    found = nights_of(tmp_path, nights, how)
    # Where 200 queries fall beyond the limit by chance, the data do not decide that night.
    assert words_of(found).replace("?", "H") == "H" * 14
    assert words_of(found).count("?") <= (3 if size == 200 else 0)
    assert max(age(one) for one in found[1:]) <= 3
    (new,) = (one for one in found[5].outcomes if one.slice == "country = pl")
    assert new.reason == (
        f"new slice country = pl, {size:,} queries, hit@1 {new.value:.4g}: no baseline yet"
    )
    assert (new.word, new.counts) == ("not enough data", False)
    assert f"not judged: {new.reason}" in found[5].notes
    assert f", 1 rule held; not judged: {new.reason}\n" in summary_line(found[5], {})
    # It is judged as soon as a baseline has it: too few queries, or enough.
    judged = found[6 if how == "last" else 8]
    (pl,) = (one for one in judged.outcomes if one.slice == "country = pl")
    assert pl.baseline is not None
    assert pl.word == "held" or size < 2000


@HOW
def test_a_new_slice_that_breaks_is_seen_on_its_second_night(how, tmp_path):
    new = [TWO | {"pl": (1000, 0.5)}] * (1 if how == "last" else 3)
    found = nights_of(tmp_path, [TWO] * 3 + new + [TWO | {"pl": (1000, 0.25)}], how)
    assert words_of(found) == "H" * (len(found) - 1) + "R"
    assert [one.slice for one in found[-1].failed] == ["country = pl"]


@HOW
def test_a_slice_that_is_gone_fails_one_night(how, tmp_path):
    three = TWO | {"pl": (1000, 0.5)}
    found = nights_of(tmp_path, [three] * 5 + [TWO] * 9, how)
    assert words_of(found) == "HHHHHVHHHHHHHH"
    assert [one.slice for one in found[5].failed] == ["country = pl"]
    assert (
        found[5]
        .failed[0]
        .reason.startswith("hit@1 where country = pl: no queries, and 1,000 in the baseline (limit")
    )
    gone = (
        "not judged: slice country = pl: no queries, and 1,000 in the baseline; gone on "
        "the night before already"
    )
    # Until the baseline is a run without it.
    assert [gone in one.notes for one in found[6:]] == [True] + [False] * 7
    # A rule that names the slice is not kept by its absence.
    (tmp_path / "named").mkdir()
    named = nights_of(
        tmp_path / "named", [three] * 2 + [TWO] * 2, how, "hit@1[country=pl] drop <= 20%"
    )
    assert words_of(named) == "HHVV"


def test_a_try_of_the_night_fails_for_the_slice_that_is_gone_again(tmp_path):
    three = TWO | {"pl": (1000, 0.5)}
    nights_of(tmp_path, [three] * 2 + [TWO], "last")
    again = BEGIN + timedelta(days=2, hours=1)
    asked = {"baseline": "last", "history": tmp_path, "time": again}
    rule = "hit@1[country=*] drop <= 20%"
    assert gate(*crowd(2, **TWO), rule, **asked).word == "bad volume"
    # What comes back is held against the baseline that has it.
    back = crowd(3, **TWO, pl=(1000, 0.2))
    found = gate(*back, rule, **asked | {"time": BEGIN + timedelta(days=3)})
    assert [one.slice for one in found.failed] == ["country = pl"]


@HOW
@pytest.mark.parametrize("mean", [6, 20])
def test_a_rare_slice_neither_stops_a_baseline_nor_a_night(how, mean, tmp_path):
    draw = random.Random(mean)
    counts = [sum(draw.random() < mean / 4000 for _ in range(4000)) for _ in range(14)]
    counts[4] = counts[9] = 0 if mean == 6 else 3
    nights = [TWO | {"mt": (count, 0.5)} for count in counts]
    found = nights_of(tmp_path, nights, how)
    assert {one.exit_code for one in found} == {0}
    assert max(age(one) for one in found[1:]) <= 5
    if mean == 6:
        assert words_of(found) == "H" * 14


def test_a_slice_too_small_for_its_limit_counts_where_it_must(tmp_path):
    """If it fell beyond the limit, if no slice is decided, and with undecided="fail"."""
    small = TWO | {"pl": (200, 0.5)}
    worse = TWO | {"pl": (200, 0.34)}
    assert words_of(nights_of(tmp_path / "a", [small, worse], "last")) == "H?"
    few = {"de": (200, 0.5), "pl": (200, 0.5)}
    assert words_of(nights_of(tmp_path / "b", [few, few], "last")) == "H?"
    found = nights_of(tmp_path / "c", [small] * 2, "last", undecided="fail")[-1]
    assert (found.word, found.exit_code) == ("not enough data", 1)
    # So do those of a limit of the value.
    rule = "hit@1[country=*] >= 0.4"
    rare = nights_of(tmp_path / "d", [TWO, TWO | {"mt": (6, 0.5)}], "last", rule)[-1]
    assert (rare.word, [one.slice for one in rare.outcomes if not one.counts]) == (
        *("held", ["country = mt"]),
    )


# ------------------------------------------------------------------ tries of a night


@pytest.mark.parametrize("later", [timedelta(), timedelta(hours=-3)])
def test_the_last_try_of_a_night_is_the_one_recorded_last(later, tmp_path, monkeypatch):
    # A try after midnight, for the date before, has an earlier time of the day.
    seconds = itertools.count(1_790_000_000.0, 0.01)
    monkeypatch.setattr(
        sys.modules["rankmill.nightly.runs.runs"], "seconds_now", lambda: next(seconds)
    )
    History(tmp_path).record(gate(LABELS, dump(1, 0.5), "hit@1 >= 0.1"), time=BEGIN)
    History(tmp_path).record(gate(LABELS, dump(1, 0.7), "hit@1 >= 0.1"), time=BEGIN + later)
    found = rankmill.History(tmp_path)
    tries = sorted(found.runs, key=lambda run: run.recorded)
    for how in ("last", "median:7"):
        assert found.baseline(how, "hit@1").run == tries[1]


# ------------------------------------------------------------------ error rates


def test_a_first_night_is_recorded_if_asked_for(tmp_path):
    rules = ["hit@1 drop <= 20%", "hit@1 >= 0.1", "queries change <= 10%"]
    asked = {"baseline": "last or none", "history": tmp_path / "runs"}
    first = gate(LABELS, dump(1), rules, **asked)
    assert (first.word, first.exit_code, first.baseline) == ("held", 0, None)
    assert [one.counts for one in first.outcomes] == [False, True, False]
    assert "not enough data" not in "".join([str(first), *lines(first)])
    line = summary_line(first, {})
    assert line.startswith("⚠️ ")
    alone = gate(LABELS, dump(1), rules[0], **asked)
    assert "rules held" not in summary_line(alone, {})
    assert alone.headline == "not judged"
    assert "the others were not judged" not in page(alone)
    assert "1 rule held, not tested; not judged: hit@1: this is the first night" in line
    assert first.headline == "held for 1 of 3 rules"
    shown = page(gate(LABELS, dump(1), rules, details=True, **asked))
    assert "Held for 1 of 3 rules; the others were not judged" in shown
    assert ">not judged<" in shown
    assert "not enough data" not in shown
    History(tmp_path / "runs").record(first)
    # Another candidate of the first night is not compared with it; the next night is.
    assert gate(LABELS, dump(2), rules, **asked).baseline is None
    second = gate(LABELS, dump(2), rules, time=datetime.now(UTC) + timedelta(days=1), **asked)
    assert [one.word for one in second.outcomes] == ["held"] * 3
    assert "last or none of " in second.baseline["source"]
    assert second.headline == "held"
    with pytest.raises(rankmill.InputError, match="write the baseline as 'last or none'"):
        gate(LABELS, dump(1), rules, baseline="last", history=tmp_path / "empty")
    power = gate_power(LABELS, dump(1), rules, baseline="last or none", history=tmp_path / "empty")
    assert power.rules[0].alarms is None


def test_nothing_is_judged_until_a_night_with_the_metric_held(tmp_path):
    """A first night that failed, a try of the same night, and a new rule end no job."""
    asked = {"baseline": "last or none", "by": "country"}
    drop, new = "hit@1 drop <= 20%", ["map@3 drop <= 20%", "map@3[country=*] drop <= 30%"]
    assert one_night(tmp_path, 0, dump(1), "hit@1 >= 0.99", **asked).exit_code == 1
    for _ in range(2):  # neither the failed try nor the other one is a baseline
        (found,) = one_night(tmp_path, 0, dump(1), drop, **asked).outcomes
        assert (found.counts, "none before it held" in found.reason) == (False, True)
    found = one_night(tmp_path, 1, dump(2), [drop, *new], **asked)
    assert [one.counts for one in found.outcomes] == [True, False, False]
    later = {**asked, "history": tmp_path, "time": BEGIN + timedelta(days=2)}
    power = gate_power(LABELS, dump(3), [drop, *new], **later).rules
    assert all(one.smallest is not None for one in power)
    assert all(one.counts for one in gate(LABELS, dump(3), [drop, *new], **later).outcomes)
    with pytest.raises(InputError, match="has no recall@1; it has"):
        gate(LABELS, dump(3), "recall@1 drop <= 20%", **(later | {"baseline": "last"}))


def test_the_baseline_says_its_tags(tmp_path):
    found = gate(LABELS, dump(1), "hit@1 >= 0.1")
    History(tmp_path).record(found, tags={"model": "a"}, time=BEGIN)
    later = {"history": tmp_path, "time": BEGIN + timedelta(days=1)}
    found = gate(LABELS, dump(2), "hit@1 drop <= 90%", baseline="last", **later)
    assert found.baseline["source"].endswith(", 1 day old, model=a")


PLAIN = "hit@1 drop <= 1% confidence 0.95"


def confidences(texts, family=None):
    return [one.confidence for one in levelled(parse_rules(texts), family)]


def test_a_family_of_rules_shares_its_error_rate():
    texts = [PLAIN, "hit@1[country=*] drop <= 3%", "hit@1 >= 0.1", "queries >= 5"]
    assert confidences(texts) == [0.95, None, None, None]
    assert confidences(texts, 0.95) == pytest.approx([0.975, 0.975, None, None])
    # A rule keeps a confidence of its own that is higher.
    texts[0] = "hit@1 drop <= 1% confidence 0.99"
    assert confidences(texts, 0.95)[:2] == pytest.approx([0.99, 0.975])
    found = gate(
        LABELS, dump(2), rankmill.Rules(texts[:2], family_confidence=0.95), baseline=dump(1)
    )
    assert "at confidence 0.99," in found.outcomes[0].reason
    # Each of three slices: a third of a half of 5 %.
    assert "at confidence 0.991667," in found.outcomes[1].reason


@pytest.mark.parametrize(
    ("rules", "options", "message"),
    [
        ("hit@1 >= 0.1", {"family_confidence": 0.95}, "and there is none"),
        ("hit@1 >= 0.1 confidence 0.9", {"family_confidence": 95}, "family_confidence is 95"),
    ],
)
def test_error_rates_that_make_no_sense(rules, options, message):
    with pytest.raises(UsageError, match=message):
        flat(gate, LABELS, dump(1), rules, **options)


# ------------------------------------------------------------------ power


def test_power_tells_the_drop_that_a_rule_finds():
    rules = [
        PLAIN,
        "hit@1 >= 0.5 confidence 0.95",
        "queries >= 1",
        "hit@1 drop <= 0 confidence none",
    ]
    found = gate_power(LABELS, dump(2), rules, baseline=dump(1))
    plain, value, count, bare = found.rules
    # Queries are independent here: the error of the difference is near sqrt(2 p (1 - p) / n), and a
    # test at 5 % with a power of 80 % needs 2.8 of them.
    error = (2 * 0.24 / QUERIES) ** 0.5
    assert plain.smallest == pytest.approx(0.01 + 2.8 * error / 0.6, rel=0.15)
    assert plain.relative
    assert plain.alarms == pytest.approx(365 * stats.norm.sf(1.96 + 0.006 / error), rel=0.15)
    assert bare.alarms == pytest.approx(182.5)
    assert bare.smallest == pytest.approx(0.84 * error, rel=0.15)
    of_value = (0.24 / QUERIES) ** 0.5
    tonight = rankmill.evaluate(LABELS, dump(2), "hit@1").metrics["hit@1"]
    assert value.smallest == pytest.approx(tonight - 0.5 + 2.8 * of_value, rel=0.02)
    assert (count.smallest, count.alarms) == (None, None)
    assert "\nempty: a count, a series, a rule without an earlier run, or a system" in repr(found)
    assert "\nempty: " not in repr(gate_power(LABELS, dump(2), PLAIN, baseline=dump(1)))
    assert 182.5 < found.alarms < sum(one.alarms or 0 for one in found.rules)
    assert "whatever is lost" not in repr(found)
    # A verdict has the same drop of each rule.
    verdict = gate(LABELS, dump(2), rules, baseline=dump(1))
    assert [one.detects for one in verdict.outcomes] == [one.smallest for one in found.rules]
    shown = [f"{100 * plain.smallest:.3g}%", f"{value.smallest:.4g}", "", f"{bare.smallest:.4g}"]
    assert [row[2] for row in verdict._view().screen()[0].rows] == shown
    assert "detects" not in repr(gate(LABELS, dump(2), "queries >= 1"))
    # It is a drop of this size that the gate stops, and not one of half of it.
    worse = [dump(seed, 0.6 * (1 - plain.smallest)) for seed in range(20, 40)]
    stopped = sum(gate(LABELS, one, PLAIN, baseline=dump(1)).word == "regressed" for one in worse)
    assert 10 <= stopped <= 20
    half = [dump(seed, 0.6 * (1 - plain.smallest / 2)) for seed in range(20, 40)]
    assert sum(gate(LABELS, one, PLAIN, baseline=dump(1)).word == "regressed" for one in half) < 10


def test_power_of_slices_and_families():
    rules = [PLAIN, "hit@1[country=*] drop <= 1%"]
    plain, sliced = flat(gate_power, LABELS, dump(2), rules, baseline=dump(1)).rules
    assert plain.smallest < sliced.smallest <= sliced.largest
    given = {"baseline": dump(1), "family_confidence": 0.95}
    family = flat(gate_power, LABELS, dump(2), rules, **given).rules
    assert all(
        more.smallest > less.smallest for more, less in zip(family, (plain, sliced), strict=True)
    )
    # Nobody finds a drop of more than all there is.
    few = LABELS.slice(0, 6)
    blind = gate_power(few, dump(2), "hit@1 drop <= 90% confidence 0.99", baseline=dump(3))
    assert blind.rules[0].smallest is None
    assert repr(blind).endswith("fail in 80% of nights, whatever is lost.")


@pytest.mark.parametrize("how", ["lst or none", "latest", "meidan:7"])
def test_a_misspelt_baseline_is_no_missing_file(tmp_path, how):
    History(tmp_path).record(gate(LABELS, dump(1), "hit@1 > 0"), time=BEGIN)
    with pytest.raises(UsageError, match=f"no file '{how}', and a history has no such baseline"):
        gate(LABELS, dump(1), "hit@1 drop <= 9%", baseline=how, history=tmp_path)


@pytest.mark.long
def test_so_many_unchanged_nights_hold_as_power_says():
    def night(seed):
        draw = random.Random(seed)
        lists = [["a"] if draw.random() < 0.5 else ["b"] for _ in range(300)]
        return pa.table({"user_id": range(300), "items": lists})

    labels = pa.table({"user_id": range(300), "items": [["a"]] * 300})
    rules = [f"hit@1 drop <= {limit}%" for limit in (2, 15, 25)]
    held = Counter()
    for seed in range(200):
        found = gate(labels, night(seed), rules, baseline=night(1000 + seed))
        held.update(one.rule for one in found.outcomes if one.word == "held")
    # What one night shows differs with its values: the mean of some is told by all.
    powers = [gate_power(labels, night(n), rules, baseline=night(1000 + n)) for n in range(20)]
    for place, rule in enumerate(rules):
        told = statistics.mean(one.rules[place].held for one in powers)
        assert held[rule] / 200 == pytest.approx(told, abs=0.09), rule
    assert held[rules[0]] < 20 < held[rules[1]] < 180


def night_of(country, seed):
    """Lists with the item a at one of ten ranks, more often near the top."""
    draw = random.Random(seed)

    def items():
        others = [f"x{place}" for place in range(9)]
        place = min(int(draw.expovariate(0.35)), 9)
        return [*others[:place], "a", *others[place:]]

    return pa.table({"user_id": range(len(country)), "items": [items() for _ in country]})


def labels_by(country):
    users = {"user_id": range(len(country)), "items": [["a"]] * len(country)}
    return pa.table(users | {"country": country})


def test_power_sets_small_slices_aside():
    """A country of 20 users, which no verdict judges, made a rule that holds seem not to."""
    country = [name for name, n in {"de": 1200, "fr": 900, "at": 20}.items() for _ in range(n)]
    labels, nights = labels_by(country), [night_of(country, seed) for seed in (1, 2)]
    rules = ["map@10[country=*] drop <= 15%", "map@10[country=de] drop <= 15% confidence 0.98"]
    rules += ["map@10[country=at] drop <= 15%"]
    every, large, small = gate_power(labels, nights[0], rules, baseline=nights[1]).rules
    assert large.held > every.held > 0.7
    assert small.held < 0.1
    strict = gate_power(labels, nights[0], Rules(rules, undecided="fail"), baseline=nights[1])
    assert strict.rules[0].held < 0.1


@pytest.mark.long
def test_so_many_nights_hold_in_every_slice_as_power_says():
    sizes = {"de": 1600, "fr": 900, "it": 120, "at": 40, "ch": 25, None: 12}
    country = [name for name, n in sizes.items() for _ in range(n)]
    labels, held = labels_by(country), Counter()
    rules = [f"map@10[country=*] drop <= {limit}%" for limit in (5, 10, 15, 20)]
    rules += [f"map@10[country=*] >= {limit} confidence 0.95" for limit in (0.4, 0.45)]
    for seed in range(150):
        found = gate(labels, night_of(country, seed), rules, baseline=night_of(country, 500 + seed))
        broken = {one.rule for one in found.outcomes if one.counts and not one.kept}
        held.update(set(rules) - broken)
    nights = [(night_of(country, n), night_of(country, 500 + n)) for n in range(15)]
    powers = [gate_power(labels, new, rules, baseline=old) for new, old in nights]
    for place, rule in enumerate(rules):
        told = statistics.mean(one.rules[place].held for one in powers)
        assert held[rule] / 150 == pytest.approx(told, abs=0.1), rule


def test_the_command_shows_power_and_records_nothing(tmp_path, run):
    paths = []
    for name, one in {"labels": LABELS, "new": dump(2), "old": dump(1)}.items():
        paths.append(str(tmp_path / f"{name}.parquet"))
        pq.write_table(one, paths[-1])
    asked = ["gate", *paths[:2], "--baseline", paths[2], "--history", f"{tmp_path}/runs"]
    asked += ["--rule", PLAIN, "--rule", "hit@1 >= 0.99"]
    assert run(*asked)[0] == 1
    code, out, _ = run(*asked, "--power")
    assert code == 0
    assert "smallest drop" in out
    assert [len(rankmill.History(tmp_path / "runs"))] == [1]
    code, out, _ = run(*asked, "--power", "--format", "json")
    told = json.loads(out)
    assert [one["relative"] for one in told["rules"]] == [True, False]
    code, _, err = run(*asked, "--power", "--junit", str(tmp_path / "gate.xml"))
    assert code == 2
    assert "--power gives no verdict: leave out --junit" in err


@pytest.mark.long
def test_the_simulated_nights_have_their_rows():
    script = Path(__file__).resolve().parents[2].parent / "benchmarks" / "verdicts.py"
    few = ["--repetitions=3", "--only", "series", "told"]
    finished = subprocess.run(
        [sys.executable, str(script), *few], capture_output=True, text=True, check=False
    )
    # Three series cannot keep what thousands promise, so that the exit code may be 1.
    assert finished.stderr == ""
    assert finished.returncode in (0, 1)
    assert finished.stdout.count("\n| 10: ") == 10


# ------------------------------------------------------------------ nights without enough data


def unnamed(few):
    """Labels of which a few have no country, and the others one of two."""
    country = [None if q < few else "de" if q % 2 else "fr" for q in range(QUERIES)]
    return LABELS.drop_columns("country").append_column("country", pa.array(country))


def test_a_small_slice_without_a_name_leaves_the_other_slices_their_word(tmp_path):
    rules, when = ["hit@1[country=*] drop <= 30%", "queries > 0"], BEGIN + timedelta(days=1)
    History(tmp_path).record(gate(unnamed(6), dump(1), "hit@1 > 0", by="country"), time=BEGIN)
    asked = {"baseline": "last", "history": tmp_path, "time": when}
    found = flat(gate, unnamed(6), dump(1), rules, **asked, undecided="fail")
    assert (found.word, found.headline) == ("held", "held")
    assert [one.slice for one in found.outcomes if one.counts] == [
        *("country = de", "country = fr", "")
    ]
    (note,) = (one for one in found.notes if "(unknown)" in one)
    assert (
        note
        == "not judged: slice country = (unknown), 6 queries, hit@1 0.6667: too few to compare, "
        "and 6 in the baseline"
    )
    named = "hit@1[country=(unknown)] drop <= 30%"  # to require it
    assert gate(unnamed(6), dump(1), named, **asked).word == "not enough data"
    History(tmp_path).record(found, time=when)
    assert History(tmp_path).runs[-1].verdict == "held"
    # Where it is large enough it counts, and it is kept if the rule has no other slice.
    worse = pa.table(
        {"user_id": range(QUERIES), "items": [[2] if q < 300 else [1] for q in range(QUERIES)]}
    )
    (broken,) = gate(unnamed(300), worse, rules[0], baseline=dump(1)).failed
    assert (broken.slice, broken.word) == ("country = (unknown)", "regressed")
    alone = gate(unnamed(QUERIES), dump(1), "hit@1[country=*] drop <= 0.1%", baseline=dump(2))
    assert alone.word == "not enough data"


def test_a_night_that_is_not_decided_has_one_word(tmp_path, run):
    tables = {"labels": unnamed(0), "first": dump(1), "later": dump(2)}
    for name, one in tables.items():
        pq.write_table(one, tmp_path / f"{name}.parquet")
    labels, first, later = (str(tmp_path / f"{name}.parquet") for name in tables)
    recorded = ["--history", f"{tmp_path}/runs", "--by", "country"]
    begin = ["--rule", "hit@1 > 0", "--date", "2026-01-01"]
    assert run("gate", labels, first, *recorded, *begin)[0] == 0
    asked = ["gate", labels, later, *recorded, "--baseline", "last or none"]
    asked += ["--rule", "hit@1[country=*] drop <= 9%", "--rule", "queries > 0"]
    for day in range(2, 7):
        code, out, err = run(*asked, "--date", f"2026-01-0{day}", "--summary", "-")
        assert code == 0
        assert out.startswith(f"⚠️ later.parquet 2026-01-0{day} ")
        assert "not enough data for 1 of 2 rules: hit@1 where country = " in out
        (told,) = (one for one in err.splitlines() if one.startswith("note: too little data"))
        assert "(country = de; country = fr)" in told
        assert "--power" in told
        assert "[COLUMN=VALUE]" in told
        assert ("nights since 2026-01-01" in err) == (day > 4)
    assert "not enough data" in run("history", f"{tmp_path}/runs")[1]


def test_a_night_of_an_earlier_date_blames_no_clock(tmp_path):
    for number in range(4):
        one_night(tmp_path, number, dump(number), "hit@1 >= 0.1")
    asked = {"baseline": "last", "history": tmp_path}
    rule = "hit@1 drop <= 50%"
    (note,) = gate(LABELS, dump(9), rule, time=BEGIN + timedelta(days=1), **asked).notes
    assert "later than the date of this run, 2026-01-02 (--date)" in note
    assert "clock" not in note
    ahead = datetime.now(UTC) + timedelta(days=3)
    History(tmp_path).record(gate(LABELS, dump(8), "hit@1 > 0"), time=ahead)
    (note,) = gate(LABELS, dump(9), rule, **asked).notes
    assert note.endswith("check the clock that recorded it")


def test_a_mistyped_slice_of_the_history_is_named(tmp_path):
    one_night(tmp_path, 0, dump(1), "hit@1 >= 0.1", by=["country", "kind"])
    for rule, meant in {
        "hit@1[contry=*] drop <= 9%": r"did you mean country\? Otherwise, record[a-z ]*$",
        "hit@1[contry=*, kind=*] drop <= 9%": r"did you mean country\? Otherwise, record[a-z ]*$",
        "hit@1[season=*] drop <= 9%": r"drop <= 9%': record a night",
    }.items():
        with pytest.raises(InputError, match=meant):
            gate(LABELS, dump(2), rule, baseline="last", history=tmp_path)


def test_a_history_is_no_baseline_by_itself(tmp_path):
    one_night(tmp_path / "runs", 0, dump(1), "hit@1 >= 0.1")
    rule, runs = "hit@1 drop <= 9%", f"{tmp_path}/runs"
    for history in (None, f"{runs}/"):
        with pytest.raises(UsageError, match=f"{runs} is a history, .*the baseline 'last'"):
            gate(LABELS, dump(2), rule, baseline=runs, history=history)


def test_a_trial_of_other_rules_says_that_it_is_recorded(tmp_path, run, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, one in {"labels": LABELS, "tonight": dump(1)}.items():
        pq.write_table(one, f"{name}.parquet")
    Path("rankmill.toml").write_text(
        'labels = "labels.parquet"\npredictions = "tonight.parquet"\n'
        'rules = ["hit@1 > 0"]\nhistory = "runs"\n'
    )
    gated = ["gate", "rankmill.toml"]
    noted = "may be its next baseline"
    assert noted not in run(*gated)[2]
    assert noted not in run(*gated, "--rule", "hit@1 > 0.99")[2]  # it never is one
    assert noted not in run(*gated, "--rule", "hit@1 > 0", "--history", "other")[2]
    err = run(*gated, "--rule", "hit@1 > 0.1")[2]
    assert noted in err
    Path(err.partition("delete ")[2].partition(";")[0]).unlink()
    assert len(History("runs")) == 2


def test_a_night_of_the_history_has_the_bound_of_its_values(tmp_path):
    """As if its values were still there: it holds their third moment."""
    rule = "hit@1 drop <= 5% confidence 0.95"
    first = one_night(tmp_path, 0, dump(1), ["hit@1 >= 0.1"])
    later = {"history": tmp_path, "time": BEGIN + timedelta(days=1)}
    found = gate(LABELS, dump(2), rule, baseline="last", **later).outcomes[0]
    old, new = (
        gate(LABELS, one, "hit@1 >= 0.1").result.per_query["hit@1"].to_numpy()
        for one in (dump(1), dump(2))
    )
    assert first.slices[0].third_moment == pytest.approx(((old - old.mean()) ** 3).mean())
    ratio = 1 - found.low
    ends = zip(unseen_oracle.cumulants(new, 1.0), unseen_oracle.cumulants(old, 0.0), strict=True)
    mean, square, cube = (a + (-ratio) ** power * b for power, (a, b) in enumerate(ends, 1))
    end = stats.pearson3.isf(0.025, cube / square**1.5, mean, square**0.5)
    assert end == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("lost", ["labels", "queries"])
def test_half_of_the_labels_or_queries_is_a_bad_volume_without_a_rule(lost, tmp_path):
    one_night(tmp_path, 0, dump(1), ["hit@1 >= 0.1"])
    later = {"baseline": "last", "history": tmp_path, "time": BEGIN + timedelta(days=1)}
    rule = "hit@1 drop <= 50% confidence 0.95"
    few = slice(0, int(0.3 * QUERIES))
    labels, mine = (LABELS[few], dump(1)) if lost == "labels" else (LABELS, dump(1)[few])
    found = gate(labels, mine, rule, **later)
    assert found.word == "bad volume"
    assert f"only a rule such as {lost} change <= 90% allows" in found.outcomes[-1].reason
    allowed = [rule, "queries change <= 90%", "labels change <= 90%"]
    assert "bad volume" not in [one.word for one in gate(labels, mine, allowed, **later).outcomes]
    assert len(gate(LABELS, dump(2), rule, **later).outcomes) == 1


# ------------------------------------------------------------------ the labels of a night


def test_pairs_have_the_counts_of_the_last_night(tmp_path):
    """Predictions of the same labels are paired, and what labels lost is told by the history."""
    rules = ["hit@1 drop <= 50%", "hit@1[country=*] drop <= 60%"]
    asked = {"baseline": dump(1), "history": tmp_path, "by": "country"}
    told = [f"{one} change <= 10%" for one in ("queries", "labels", "label_rows")]
    for number in range(3):
        labels = LABELS if number < 2 else LABELS.slice(0, QUERIES * 7 // 10)
        when = BEGIN + timedelta(days=number)
        found = flat(gate, labels, dump(2), [*rules, *told], time=when, **asked)
        History(tmp_path).record(found, time=when)
        by_rule = {one.rule: one for one in found.outcomes}
        words = {by_rule[one].word for one in told}
        assert words == ({"held"} if number < 2 else {"bad volume"})
        if number:
            assert "the last night that held" in by_rule[told[0]].reason
    # What no rule is about is looked at, too.
    few = LABELS.slice(0, QUERIES // 3)
    found = flat(gate, few, dump(2), rules[:1], time=BEGIN + timedelta(days=3), **asked)
    assert "half or more is missing" in found.outcomes[-1].reason
    assert "the last night that held" in found.outcomes[-1].reason
    # A slice that is gone fails one night.
    one = pc.equal(LABELS["country"], LABELS["country"][0].as_py())
    found = flat(gate, LABELS.filter(one), dump(2), rules, time=BEGIN + timedelta(days=4), **asked)
    assert any(each.word == "bad volume" and "country = " in each.slice for each in found.outcomes)


def test_slices_of_pairs_are_those_without_a_history(tmp_path):
    rule = "hit@1[country=*] drop <= 10%"
    for number in range(1, 4):
        when = BEGIN + timedelta(days=number)
        pair = {"baseline": dump(number + 1), "by": "country", "time": when}
        found = flat(gate, LABELS, dump(number), rule, history=tmp_path, **pair)
        assert found.outcomes == flat(gate, LABELS, dump(number), rule, **pair).outcomes
        # A night that held, so that the next could be compared with it.
        held = gate(LABELS, dump(number + 5), "hit@1 > 0", by="country", time=when)
        History(tmp_path).record(held, time=when)


def test_labels_are_not_compared_with_themselves():
    for count in ("labels", "label_rows", "queries_labelled"):
        with pytest.raises(UsageError, match="compares the labels with themselves"):
            gate(LABELS, dump(2), f"{count} change <= 10%", baseline=dump(1))
    assert gate(LABELS, dump(2), "queries change <= 10%", baseline=dump(1)).exit_code == 0


def test_rows_are_counts_of_a_history(tmp_path):
    for number in range(3):
        rules = ["label_rows change <= 10%", "prediction_rows change <= 10%"]
        when = BEGIN + timedelta(days=number)
        asked = {"baseline": "last", "history": tmp_path} if number else {}
        found = gate(LABELS, dump(2), rules if number else "hit@1 > 0", time=when, **asked)
        History(tmp_path).record(found, time=when)
        assert found.word == "held"
    assert found.outcomes[0].reason.startswith(f"label_rows is {QUERIES:,}, as in the baseline")
