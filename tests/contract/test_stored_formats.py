"""What is written today is read for ever: samples of each format, and one line for a later one.

`samples/1` holds what format 1 looks like, and states of format 6; `samples/states-7` holds states
of format 7. These files never change. Where a format gets a new one,
`python tests/contract/test_stored_formats.py` writes samples of it beside the old ones.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankmill
from rankmill.analysis.explain.evaluators import EvaluatorDifferences
from rankmill.columns.seal import seal_of_json
from rankmill.config import read_config
from rankmill.errors import InputError, UsageError
from rankmill.metrics.records.state_rows import FORMAT as STATES
from rankmill.nightly.runs import runs
from rankmill.package import FORMAT, __version__
from rankmill.parts import ComparisonState, State, compare_part, evaluate_part, second_pass

SAMPLES = Path(__file__).parent.parent / "samples"
LABELS = {1: [1], 2: [3], 3: [1], 4: [2]}
OLD = {1: [(1, 0.9)], 2: [(3, 0.8)], 3: [(2, 0.7)], 4: [(5, 0.9), (2, 0.4)]}
NEW = {1: [(2, 0.9), (1, 0.8)], 2: [(3, 0.7)], 4: [(7, 0.6), (8, 0.5)]}
RUNS = {"old": OLD, "new": NEW}
METRICS = ["map", "first_hit@2", "gap"]
RULES = ["map drop <= 60%", "map >= 0.1"]
TOML = """\
version = 1
labels = "labels.parquet"
predictions = "new.parquet"
metrics = ["map@12"]
rules = ["map@12 >= 0.1"]
"""
OUTCOMES: dict[str, tuple[Any, Callable[[], Any]]] = {
    "result": (rankmill.Result, lambda: rankmill.evaluate(LABELS, OLD, METRICS)),
    "results": (rankmill.Results, lambda: rankmill.evaluate_runs(LABELS, RUNS, METRICS)),
    "comparison": (rankmill.Comparison, lambda: rankmill.compare(LABELS, RUNS, "map", moved=2)),
    "verdict": (
        rankmill.Verdict,
        lambda: rankmill.gate(LABELS, NEW, RULES, baseline=OLD),
    ),
    "trace": (rankmill.Trace, lambda: rankmill.explain(LABELS, OLD, "map", 1)),
    "evaluators": (EvaluatorDifferences, lambda: rankmill.explain_evaluators(LABELS, OLD, "map")),
}
NIGHTS = [datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2)]


def write_samples(folder: Path) -> None:
    """Write a sample of everything that is kept and read again."""
    folder.mkdir(parents=True)
    for name, (_, made) in OUTCOMES.items():
        (folder / f"{name}.json").write_text(made().to_json(indent=1) + "\n")
    result = rankmill.evaluate(LABELS, OLD, METRICS)
    pq.write_table(result.per_query, folder / "per_query.parquet")
    history = rankmill.History(folder / "history")
    for time, run in zip(NIGHTS, (OLD, NEW), strict=True):
        history.record(rankmill.gate(LABELS, run, RULES[1:]), time=time, tags={"model": "a"})
    (folder / "history.json").write_text(rankmill.History(folder / "history").to_json() + "\n")
    (folder / "rankmill.toml").write_text(TOML)


def write_states(folder: Path) -> None:
    """Write a sample of each state, which have a format of their own."""
    folder.mkdir()
    state = evaluate_part(LABELS, OLD, METRICS, part="1/1")
    counts = second_pass(state, OLD)
    pq.write_table(pa.Table.from_pylist([state.to_row()]), folder / "state.parquet")
    of_gap = pa.Table.from_pylist([counts["gap"].to_row()])
    pq.write_table(of_gap, folder / "second_pass.parquet")
    compared = compare_part(LABELS, RUNS, "map")
    pq.write_table(compared.to_table(), folder / "comparison_state.parquet")


@pytest.fixture(params=sorted(one.name for one in SAMPLES.glob("[0-9]*")))
def samples(request: pytest.FixtureRequest) -> Path:
    return SAMPLES / str(request.param)


@pytest.fixture(params=["1", *sorted(one.name for one in SAMPLES.glob("states-*"))])
def states(request: pytest.FixtureRequest) -> Path:
    """Samples of states: those of format 6 are among the others."""
    return SAMPLES / str(request.param)


def test_there_are_samples_of_these_formats() -> None:
    assert (SAMPLES / str(FORMAT)).is_dir()
    assert (SAMPLES / f"states-{STATES}").is_dir()


# ------------------------------------------------------------------ what was written is read


GONE_KEYS = ("cohen_d", "losses", "replicates", "worst_slices", "min_overlap")
"""What 0.9 wrote, and is passed over."""


def lost(written: Any, found: Any, place: str = "") -> list[str]:
    """Where what was written is not found again; keys may have come since, with their defaults."""
    if isinstance(written, dict) and isinstance(found, dict):
        names = written.keys() - {"rankmill", "format", "checksum", *GONE_KEYS}
        pairs = [(written[name], found.get(name, "nothing"), name) for name in sorted(names)]
    elif isinstance(written, list) and isinstance(found, list) and len(written) == len(found):
        pairs = [(*both, str(at)) for at, both in enumerate(zip(written, found, strict=True))]
    else:
        return [] if written == found else [f"{place}: {written!r}, now {found!r}"]
    return [one for a, b, name in pairs for one in lost(a, b, f"{place}.{name}")]


@pytest.mark.parametrize("name", OUTCOMES)
def test_json_is_read(samples: Path, name: str) -> None:
    text = (samples / f"{name}.json").read_text()
    found = OUTCOMES[name][0].from_json(text)
    written = json.loads(text)
    assert lost(written, json.loads(found.to_json())) == []
    assert {"rankmill", "format"} <= written.keys()


def test_numbers_are_those_of_today(samples: Path) -> None:
    result = rankmill.Result.from_json((samples / "result.json").read_text())
    again = rankmill.evaluate(LABELS, OLD, METRICS)
    assert result.metrics == again.metrics
    # Rows that did not fit were counted once.
    assert result.audit == again.audit | {"doubtful_rows": 0}
    comparison = rankmill.Comparison.from_json((samples / "comparison.json").read_text())
    values = rankmill.compare(LABELS, RUNS, "map", moved=2).values
    for name, one in comparison.values["map"].items():  # whose intervals left the range then
        ends = {"low": max(0.0, one.low), "high": min(1.0, one.high)}
        assert one._replace(**ends) == values["map"][name]


def test_results_verdicts_and_values_serve_as_a_baseline(samples: Path) -> None:
    result = rankmill.Result.from_json((samples / "result.json").read_text())
    verdict = rankmill.Verdict.from_json((samples / "verdict.json").read_text())
    for baseline in (result, verdict.result, str(samples / "per_query.parquet")):
        found = rankmill.gate(LABELS, OLD, ["map drop <= 0.0001%"], baseline=baseline)
        (outcome,) = found.outcomes
        # The verdict was on the newer run, which is worse.
        assert (outcome.measured == 0) is (baseline is not verdict.result)
    for name in ("result.json", "verdict.json"):
        with pytest.raises(UsageError, match="give a file of its values by query"):
            rankmill.gate(LABELS, OLD, "map drop <= 1%", baseline=str(samples / name))


@pytest.mark.parametrize("name", OUTCOMES)
def test_json_from_before_there_were_versions_is_read(name: str) -> None:
    written = json.loads((SAMPLES / "1" / f"{name}.json").read_text())
    del written["format"]
    inner = [*written["systems"].values()] if name == "results" else []
    for one in (written, *inner):
        if "checksum" in one:
            whole = {"rankmill": written["rankmill"], **one}
            one["checksum"] = seal_of_json(sealed_keys(whole))
    found = OUTCOMES[name][0].from_json(json.dumps(written))
    assert lost(written, json.loads(found.to_json())) == []


def test_states_merge_and_end(states: Path) -> None:
    (row,) = pq.read_table(states / "state.parquet").to_pylist()
    (counted,) = pq.read_table(states / "second_pass.parquet").to_pylist()
    result = State.from_row(row).result({"gap": State.read_counts(counted)})
    assert result.metrics == rankmill.evaluate(LABELS, OLD, METRICS).metrics
    compared = ComparisonState.from_table(pq.read_table(states / "comparison_state.parquet"))
    apart = replace(compared, origin=None)
    assert compared.merge(apart).whole.queries == 2 * compared.whole.queries


def test_histories_are_read(samples: Path, tmp_path: Path) -> None:
    shutil.copytree(samples / "history", tmp_path / "history")
    history = rankmill.History(tmp_path / "history")
    assert [run.time for run in history.runs] == NIGHTS
    assert [run.tags for run in history.runs] == [{"model": "a"}] * 2
    rules = ["map drop <= 60% confidence none"]
    verdict = rankmill.gate(LABELS, OLD, rules, baseline="last", history=tmp_path / "history")
    assert verdict.word == "held"
    held = rankmill.History.from_json((samples / "history.json").read_text())
    assert held.runs == history.runs


def test_rankmill_toml_is_read(samples: Path) -> None:
    config = read_config(samples / "rankmill.toml")
    assert config.options["rules"] == ("map@12 >= 0.1",)


# ------------------------------------------------------------------ a later format, in one line

LATER = re.escape(f"is of format 9, which rankmill 7.0 wrote; this is rankmill {__version__}")
LATER += f", which reads formats up to {FORMAT}: read it with rankmill 7.0 or newer"


def later(text: str) -> str:
    """The JSON that a later version would have written, with its checksum."""
    written = json.loads(text) | {"rankmill": "7.0", "format": 9}
    if "checksum" in written:
        written["checksum"] = seal_of_json(sealed_keys(written))
    return json.dumps(written)


def sealed_keys(written: dict[str, Any]) -> dict[str, Any]:
    return {name: one for name, one in written.items() if name not in ("seconds", "checksum")}


@pytest.mark.parametrize("name", OUTCOMES)
def test_json_of_a_later_format_is_refused(name: str) -> None:
    text = later((SAMPLES / "1" / f"{name}.json").read_text())
    kind = OUTCOMES[name][0]
    with pytest.raises(InputError, match=f"^the JSON of an? {kind.__name__} {LATER}$"):
        kind.from_json(text)


@pytest.mark.parametrize("other", [{}, {"metrics": []}])
def test_a_baseline_of_a_later_format_is_refused(tmp_path: Path, other: dict[str, Any]) -> None:
    path = tmp_path / "old.parquet"
    told = later((SAMPLES / "1" / "result.json").read_text())
    told = json.dumps(json.loads(told) | other)
    table = pq.read_table(SAMPLES / "1" / "per_query.parquet")
    pq.write_table(table.replace_schema_metadata({"rankmill result": told}), path)
    with pytest.raises(InputError, match=rf"old\.\w+ {LATER}$"):
        rankmill.gate(LABELS, OLD, ["map drop <= 1%"], baseline=str(path))


def test_a_table_of_runs_of_a_later_format_is_refused() -> None:
    text = later((SAMPLES / "1" / "history.json").read_text())
    with pytest.raises(InputError, match=LATER):
        rankmill.History.from_json(text)


@pytest.mark.parametrize("format", [5, 99])
@pytest.mark.parametrize("kind", ["state", "second_pass", "comparison_state"])
def test_a_state_of_another_format_is_refused(kind: str, format: int) -> None:
    """States last as long as a job: of an older format, they are to be made again."""
    table = pq.read_table(SAMPLES / "1" / f"{kind}.parquet")
    wanted = rf"of format {format}, and this version of rankmill reads formats \d+ to \d+: make and"
    read: Any = {"state": State.from_row, "second_pass": State.read_counts}.get(kind)
    other: Any = table.to_pylist()[0] | {"format": format}
    if kind == "comparison_state":
        told = json.loads(table.schema.metadata[b"rankmill comparison"]) | {"format": format}
        other = table.replace_schema_metadata({"rankmill comparison": json.dumps(told)})
        read = ComparisonState.from_table
    with pytest.raises(UsageError, match=wanted):
        read(other)


def test_a_rankmill_toml_of_a_later_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rankmill.toml"
    path.write_text(TOML.replace("version = 1", "version = 9"))
    with pytest.raises(UsageError, match=r"it is 9, and this rankmill reads 1; .* install a newer"):
        read_config(path)


def test_a_run_of_a_later_format_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "FORMAT", 9)
    rankmill.History(tmp_path).record(rankmill.evaluate(LABELS, OLD, METRICS), time=NIGHTS[0])
    monkeypatch.undo()
    with pytest.raises(InputError, match=r"\.parquet is of format 9, which rankmill .+ wrote"):
        _ = rankmill.History(tmp_path).runs


if __name__ == "__main__":
    for folder, write in (
        (SAMPLES / str(FORMAT), write_samples),
        (SAMPLES / f"states-{STATES}", write_states),
    ):
        if not folder.exists():
            write(folder)
