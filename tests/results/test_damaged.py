"""What was written to be read again and was damaged since is refused, or says the same."""

import functools
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankmill
from flat import flat
from rankmill.columns.seal import seal_of, seal_of_table
from rankmill.nightly.history import History
from strategies import examples

pytestmark = pytest.mark.small

FLIPS = 3000
LABELS = {f"q{n}": [f"i{n % 4}", f"i{n % 3 + 4}"] for n in range(9)}
TRAIN = {f"q{n}": [f"i{(n + 1) % 7}"] for n in range(9)}
METRICS = ["map@3", "gap", "ece", "novelty@2", "coverage@2"]


def run(step: int) -> dict[str, list[tuple[str, float]]]:
    return {
        name: [(f"i{(n * step + k) % 7}", 1.0 - 0.1 * k - 0.01 * n) for k in range(3)]
        for n, name in enumerate(LABELS)
    }


@functools.cache
def state() -> rankmill.parts.State:
    return rankmill.parts.evaluate_part(
        LABELS, run(2), METRICS, catalogue=rankmill.Catalogue(train=TRAIN)
    )


def flipped(value: Any, draw: random.Random) -> Any:
    """Return a value with a bit, a character or a number changed; or of another type, or none."""
    if value is None or draw.random() < 0.1:
        return draw.choice([None, "", -1, 0.5, [], b"\xff", True])
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list):
        if not value:
            return [0]
        place = draw.randrange(len(value))
        if draw.random() < 0.2:
            return value[:place] + value[place + 1 :]
        return [*value[:place], flipped(value[place], draw), *value[place + 1 :]]
    if isinstance(value, str | bytes):
        text = bytearray(value.encode() if isinstance(value, str) else value)
        if not text:
            return "x"
        text[draw.randrange(len(text))] ^= 1 << draw.randrange(7)
        return text.decode() if isinstance(value, str) else bytes(text)
    if isinstance(value, float):
        bits = np.float64(value).view(np.uint64) ^ np.uint64(1 << draw.randrange(64))
        return bits.view(np.float64).item()
    return int(value) ^ (1 << draw.randrange(40))


def read_or_refused(read: Any, given: Any, told: Any) -> bool:
    """Return whether it was refused, in one line; what is read has to say the same."""
    try:
        found = read(given)
    except rankmill.RankmillError as error:
        message = str(error)
    else:
        assert told(found) == told(read(None))
        return False
    assert "\n" not in message
    assert len(message) < 1000
    return True


def same_row(found: Any) -> str:
    return seal_of(found.to_row())


@pytest.mark.long
def test_flips_of_the_rows_of_states_are_refused():
    row, draw = state().to_row(), random.Random(8)
    names, refused = list(row), 0
    for _ in range(FLIPS):
        name = draw.choice(names)
        changed = flipped(row[name], draw)
        refused += read_or_refused(
            lambda given: rankmill.parts.State.from_row(given or row),
            {**row, name: changed},
            same_row,
        )
    assert refused > FLIPS * 0.9
    for name in names:
        with pytest.raises(rankmill.UsageError, match="damaged"):
            rankmill.parts.State.from_row({key: row[key] for key in names if key != name})


def test_flips_of_the_rows_of_counts_are_refused():
    row = rankmill.parts.second_pass(state(), run(2))["gap"].to_row()
    draw, names, refused = random.Random(9), list(row), 0
    for _ in range(FLIPS):
        name = draw.choice(names)
        refused += read_or_refused(
            lambda given: rankmill.parts.State.read_counts(given or row),
            {**row, name: flipped(row[name], draw)},
            same_row,
        )
    assert refused > FLIPS * 0.9


@pytest.mark.parametrize("format", ["arrow", "parquet"])
def test_a_row_comes_back_from_files_beside_columns_of_others(tmp_path, format):
    row = state().to_row()
    table = pa.Table.from_pylist([row]).append_column("day", pa.array(["2026-01-01"]))
    if format == "arrow":
        with pa.OSFile(str(tmp_path / "a"), "wb") as file, pa.ipc.new_file(file, table.schema) as w:
            w.write_table(table)
        table = pa.ipc.open_file(tmp_path / "a").read_all()
    else:
        pq.write_table(table, tmp_path / "a")
        table = pq.read_table(tmp_path / "a")
    assert same_row(rankmill.parts.State.from_row(table.to_pylist()[0])) == same_row(state())


def test_flips_of_the_tables_of_comparisons_are_refused():
    runs = {"a": run(2), "b": run(3)}
    table = rankmill.parts.compare_part(LABELS, runs, ["map@3"], by="label_count").to_table()
    rows, schema, draw = table.to_pylist(), table.schema, random.Random(10)
    (key,) = schema.metadata
    refused = 0
    for _ in range(FLIPS // 10):
        changed, text = [dict(row) for row in rows], schema.metadata[key]
        if draw.random() < 0.3:
            text = flipped(text, random.Random(draw.random()))
            text = text if isinstance(text, bytes) else b"{"
        else:
            row = draw.choice(changed)
            name = draw.choice(list(row))
            row[name] = flipped(row[name], draw)
        try:
            damaged = pa.Table.from_pylist(changed, schema.with_metadata({key: text}))
        except (pa.ArrowException, TypeError, OverflowError):
            continue  # no table of this schema holds such a value
        refused += read_or_refused(
            lambda given: rankmill.parts.ComparisonState.from_table(given or table),
            damaged,
            lambda found: seal_of(sorted(map(seal_of, found.to_table().to_pylist()))),
        )
    assert refused > FLIPS // 20


def text_of(verdict: Any) -> Any:
    return [(one.baseline, one.value, one.word) for one in verdict.outcomes]


def gate(baseline: Any, **more: Any) -> Any:
    return flat(rankmill.gate, LABELS, run(2), "map@3 drop <= 0.9", baseline=baseline, **more)


def flip_file(path: Path, draw: random.Random) -> Path:
    content = bytearray(path.read_bytes())
    content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    other = path.with_name(f"flipped{path.suffix}")
    other.write_bytes(content)
    return other


@pytest.mark.lengthy
@pytest.mark.long
def test_flips_of_baselines_are_refused(tmp_path):
    result = rankmill.evaluate(LABELS, run(3), ["map@3"], per_query=True)
    path = tmp_path / "earlier.parquet"
    pq.write_table(result.per_query, path, compression="none")
    draw, refused, flips = random.Random(11), 0, examples(300)
    for _ in range(flips):
        other = flip_file(path, draw)
        refused += read_or_refused(lambda given: gate(given or path), other, text_of)
    assert refused > flips // 3


def test_a_changed_value_is_refused_by_name(tmp_path):
    result = rankmill.evaluate(LABELS, run(3), ["map@3"], per_query=True)
    values = result.per_query
    told = json.loads(values.schema.metadata[b"rankmill result"])
    told["metrics"]["map@3"] /= 2
    changed = values.replace_schema_metadata({"rankmill result": json.dumps(told)})
    pq.write_table(changed, tmp_path / "told.parquet")
    with pytest.raises(rankmill.InputError, match=r"told.parquet: .* does not match its checksum"):
        gate(str(tmp_path / "told.parquet"))
    for written in (values, gate(values).result.per_query):
        halved = pa.array(np.array(written["map@3"]) / 2)
        pq.write_table(written.set_column(1, "map@3", halved), tmp_path / "values.parquet")
        with pytest.raises(rankmill.InputError, match=r"values.parquet does not hold the values"):
            gate(str(tmp_path / "values.parquet"))
    assert gate(values.slice(1)).word == "held"  # in memory, a part is a baseline too


@pytest.mark.long
def test_flips_of_a_history_are_refused(tmp_path):
    result = rankmill.evaluate(LABELS, run(3), ["map@3"])
    (tmp_path / "runs").mkdir()
    path = Path(History(tmp_path / "runs").record(result, tags={"model": "a7"}))
    content, draw, refused = path.read_bytes(), random.Random(12), 0

    def read(given: bytes | None) -> Any:
        path.write_bytes(given or content)
        return rankmill.History(tmp_path / "runs").runs

    for _ in range(FLIPS // 5):
        damaged = bytearray(content)
        for _ in range(20):  # one alone leaves the summary or the rows as they were
            damaged[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        refused += read_or_refused(read, bytes(damaged), repr)
    assert refused


def test_changed_rows_of_a_run_are_refused(tmp_path):
    result = rankmill.evaluate(LABELS, run(3), ["map@3"])
    path = History(tmp_path).record(result)
    table = pq.read_table(path).replace_schema_metadata(None)  # as other programs join files
    pq.write_table(table, path)
    (found,) = rankmill.History(tmp_path).runs
    assert found.get("map@3").value == result["map@3"]
    place = table.column_names.index("value")
    pq.write_table(table.set_column(place, "value", pa.array([0.5])), path)
    with pytest.raises(rankmill.InputError, match="its checksum is not that of its values"):
        len(rankmill.History(tmp_path))


def test_a_table_has_one_checksum_in_any_chunks_and_types():
    table = pa.table({"q": ["a", None, "b", "c"], "n": [1, 2, None, 4], "x": [0.5, None, 1, 2]})
    same = [pa.concat_tables([table[:1], table[1:3], table[3:]])]
    same.append(table.set_column(0, "q", table["q"].cast(pa.large_string())))
    same.append(table.set_column(0, "q", table["q"].dictionary_encode()))
    same.append(table.set_column(1, "n", table["n"].cast(pa.int16())))
    assert {seal_of_table(one) for one in same} == {seal_of_table(table)}
    others = [table[:3], table.rename_columns(["q", "n", "y"]), table.take([1, 0, 2, 3])]
    others.append(table.set_column(2, "x", pa.array([None, 0.5, 1, 2])))
    assert len({seal_of_table(one) for one in [table, *others]}) == 5
