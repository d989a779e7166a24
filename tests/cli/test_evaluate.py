"""`rankmill evaluate`, the whole way."""

import csv
import json
import os
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli_runs import GAP, MAP, write_dump


@pytest.fixture
def dump(tmp_path):
    return write_dump(tmp_path)


# rankmill evaluate, the whole way


@pytest.mark.small
def test_output_file_takes_its_format_from_the_suffix(run, dump, tmp_path):
    written = tmp_path / "out.csv"
    assert run("evaluate", *dump, "-m", "map@3", "-o", written) == (0, "", "")
    (row,) = csv.DictReader(written.read_text().splitlines())
    assert float(row["value"]) == pytest.approx(MAP, rel=1e-12)
    assert (row["metric"], row["queries"]) == ("map@3", "3")
    code, out, _ = run("evaluate", *dump, "-m", "map@3", "--format", "csv", "-o", "-")
    assert (code, out) == (0, written.read_text())


@pytest.mark.small
def test_per_query_file_keeps_the_type_and_the_order_of_the_ids(run, dump, tmp_path):
    written = tmp_path / "users.parquet"
    code, out, _ = run(
        "evaluate", *dump, "-m", "map@3", "-m", "gap", "-m", "mrr", "--per-query", written
    )
    assert code == 0
    assert "map@3" in out
    table = pq.read_table(written)
    assert table.schema.names == ["user_id", "map@3", "mrr"]
    assert table.schema.types == [pa.uint16(), pa.float64(), pa.float64()]
    assert table["user_id"].to_pylist() == [3, 1, 2]
    assert table["map@3"].to_pylist() == pytest.approx([0, 5 / 6, 1 / 2], rel=1e-15)
    assert table["mrr"].to_pylist() == [0, 1, 0.5]


@pytest.mark.small
def test_bad_input_exits_3_and_writes_nothing(run, dump, tmp_path):
    labels, predictions = dump
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(predictions.read_bytes()[:-20])
    before = sorted(os.listdir(tmp_path))
    outputs = ["-o", tmp_path / "o.json", "--per-query", tmp_path / "q.parquet"]
    for wrong in (broken, tmp_path / "missing.parquet", f"{predictions},{tmp_path}/missing"):
        code, out, err = run("evaluate", labels, wrong, "-m", "map", *outputs)
        assert (code, out) == (3, "")
        assert err.startswith("error: ")
        assert "broken" in err or "missing" in err
        assert sorted(os.listdir(tmp_path)) == before


@pytest.mark.small
def test_an_input_is_not_overwritten(run, dump):
    labels, predictions = dump
    before = predictions.read_bytes()
    for option in ("-o", "--per-query"):
        code, _, err = run("evaluate", labels, predictions, "-m", "map", option, predictions)
        assert code == 2
        assert "is one of the inputs" in err
    assert predictions.read_bytes() == before


@pytest.mark.small
def test_several_files_and_a_comma_in_a_name(run, dump, tmp_path):
    labels, predictions = dump
    table = pq.read_table(predictions)
    pq.write_table(table[:1], tmp_path / "one.parquet")
    pq.write_table(table[1:], tmp_path / "two.parquet")
    pq.write_table(table, tmp_path / "one.parquet,two.parquet")
    for source in (
        f"{tmp_path}/one.parquet,{tmp_path}/two.parquet",
        tmp_path / "one.parquet,two.parquet",
        f"{tmp_path}/[ot][nw][eo].parquet",
    ):
        code, out, err = run("evaluate", labels, source, "-m", "map@3", "--format", "json")
        assert (code, err) == (0, "")
        assert json.loads(out)["metrics"]["map@3"] == pytest.approx(MAP, rel=1e-12)


@pytest.mark.small
def test_a_file_of_no_values_is_refused(run, tmp_path):
    dump, written = write_dump(tmp_path), tmp_path / "q.csv"
    code, _, err = run("evaluate", *dump, "-m", "coverage@3", "--per-query", written)
    assert (code, written.exists()) == (2, False)
    assert "none of coverage@3 has a value for each query" in err
    assert run("evaluate", *dump, "-m", "coverage@3", "-m", "map", "--per-query", written)[0] == 0


@pytest.mark.parametrize("option", ["-o", "--per-query"])
def test_no_file_of_a_folder_or_glob_is_overwritten(run, dump, tmp_path, option):
    labels, predictions = dump
    parts = tmp_path / "parts" / "day=1"
    parts.mkdir(parents=True)
    target = predictions.rename(parts / "p0.parquet")
    before = target.read_bytes()
    for source in (parts.parent, f"{tmp_path}/*/*/p?.parquet", f"{labels},{target}"):
        code, out, err = run("evaluate", labels, source, "-m", "map", option, target)
        assert (code, out) == (2, "")
        assert f"cannot write to {target}: it is one of the inputs" in err
        link = tmp_path / "link"
        link.symlink_to(target)
        assert run("evaluate", labels, source, "-m", "map", option, link)[0] == 2
        link.unlink()
    assert target.read_bytes() == before


# Several systems


@pytest.mark.small
def test_no_output_becomes_an_input_of_the_next_run(run, dump, tmp_path, monkeypatch):
    labels, predictions = dump
    folder = tmp_path / "run"
    (folder / "day=1" / "deep").mkdir(parents=True)
    (folder / "_out").mkdir()
    predictions.rename(folder / "day=1" / "a.parquet")
    (tmp_path / "link").symlink_to(folder)
    monkeypatch.chdir(tmp_path)
    day = folder / "day=1"
    refused = [
        (folder, folder / "q.parquet"),
        (folder, day / "deep" / "q.PQ"),
        ("link", folder / "q.parquet"),
        (folder, "link/q.parquet"),
        ("run/", "./run/q.parquet"),
        ("run/*/*.parquet", "run/day=1/q.parquet"),
        ("run/*/*", "run/day=1/q.txt"),
        ("run/day=*", "run/day=1/deep/q.parq"),
        ("run/**/*.parquet", "run/day=1/deep/q.parquet"),
        ("run/**", "run/q.parquet"),
        (f"{day}/a.parquet,{folder}/day=[0-9]", day / "q.parquet"),
    ]
    for source, target in refused:
        code, _, err = run("evaluate", labels, source, "-m", "map@3", "--per-query", target)
        assert code == 2, (source, target)
        assert f"cannot write to {target}: the next run over " in err
        assert not os.path.exists(target)
    allowed = [
        (folder, folder / "_out" / "q.parquet"),
        (folder, folder / ".q.parquet"),
        (folder, tmp_path / "q.parquet"),
        ("run/*/*.parquet", "run/q.parquet"),
        ("run/*/*.parquet", "run/day=1/q.pq"),
        ("run/*/*.parquet", "run/day=1/.q.parquet"),
        (day / "a.parquet", day / "q.parquet"),
        (folder, os.devnull),
    ]
    for source, target in allowed:
        assert run("evaluate", labels, source, "-m", "map@3", "--per-query", target)[0] == 0
        if target != os.devnull:
            os.unlink(target)
    assert run("evaluate", labels, folder, "-m", "map@3", "-o", folder / "x.json")[0] == 0
    assert run("evaluate", labels, "run/*/*", "-m", "map@3", "-o", "run/day=1/x.json")[0] == 2


@pytest.mark.small
def test_any_number_of_threads(run, dump):
    asked = ["evaluate", *dump, "-m", "map@3", "--format", "csv", "--threads"]
    expected = run(*asked, "1")
    assert expected[0] == 0
    assert run(*asked, "9" * 20) == expected


@pytest.mark.small
def test_a_pipe_is_read_as_a_file_is(run, dump, tmp_path):
    asked = "-m", "map@3", "-m", "gap", "--format", "csv"
    expected = run("evaluate", *dump, *asked)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(dump[1].read_bytes()))
    writer.start()
    assert run("evaluate", dump[0], pipe, *asked) == expected
    writer.join()
    assert expected[0] == 0


@pytest.mark.small
def test_a_pipe_is_given_alone(run, dump, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    code, _, err = run("evaluate", dump[0], f"{dump[1]},{pipe}", "-m", "map@3")
    assert code == 2
    assert f"{pipe} is a pipe, and can only be given alone" in err


@pytest.fixture
def systems(dump, tmp_path):
    """The predictions of `dump`, and those of a system that is never right, of the same name."""
    other = tmp_path / "other" / "predictions.parquet"
    other.parent.mkdir()
    table = pq.read_table(dump[1])
    wrong = pa.array([[98, 97], [96]], table.schema.field("item_id").type)
    scores = pa.array([[0.5, 0.4], [0.3]])
    pq.write_table(
        pa.table({"user_id": table["user_id"][:2], "item_id": wrong, "score": scores}), other
    )
    return dump[1], other


@pytest.mark.small
def test_several_systems(run, dump, systems, tmp_path):
    written = tmp_path / "users.parquet"
    asked = ("-m", "map@3", "-m", "gap", "--format", "json", "--per-query", written)
    code, out, err = run("evaluate", dump[0], *systems, *asked)
    assert (code, err) == (0, "")
    content = json.loads(out)
    assert [one["queries"] for one in content["systems"].values()] == [3, 3]
    name = tmp_path.name
    assert list(content["systems"]) == [f"{name}/predictions", "other/predictions"]
    right, wrong = content["systems"].values()
    assert right["metrics"] == pytest.approx({"map@3": MAP, "gap": GAP})
    assert wrong["metrics"] == {"map@3": 0, "gap": 0}
    assert right["audit"]["queries_predicted"] == 3
    assert wrong["audit"]["queries_predicted"] == 2
    assert wrong["inputs"]["predictions"]["source"] == str(systems[1])
    table = pq.read_table(written)
    assert table.schema.names == ["user_id", f"{name}/predictions:map@3", "other/predictions:map@3"]
    assert table["user_id"].to_pylist() == [3, 1, 2]
    assert table[1].to_pylist() == pytest.approx([0, 5 / 6, 1 / 2], rel=1e-15)
    assert table[2].to_pylist() == [0, 0, 0]

    code, out, _ = run("evaluate", dump[0], *systems, "-m", "map@3")
    assert code == 0
    assert "0.444444*" in out


@pytest.mark.small
def test_one_broken_system_is_an_error_and_nothing_is_written(run, dump, systems, tmp_path):
    systems[1].write_bytes(systems[0].read_bytes()[:-20])
    code, out, err = run("evaluate", dump[0], *systems, "-m", "map", "-o", tmp_path / "o.json")
    assert (code, out) == (3, "")
    assert "other/predictions.parquet" in err
    assert not (tmp_path / "o.json").exists()


# Memory and plans


@pytest.mark.small
def test_a_plan_reads_footers_only(run, dump, systems, tmp_path):
    asked = ("--plan", "-m", "map@3", "-m", "gap")
    code, out, err = run("evaluate", dump[0], *systems, *asked)
    assert (code, err) == (0, "")
    assert "to read" in out
    assert "other/predictions" in out
    code, out, _ = run("evaluate", *dump, *asked, "--format", "json")
    content = json.loads(out)
    assert content["labels"]["rows"] == 3
    assert content["labels"]["columns"] == {"query": "user_id", "item": "item_id"}
    written = tmp_path / "plan.json"
    assert run("evaluate", *dump, *asked, "-o", written) == (0, "", "")
    assert json.loads(written.read_text()) == content

    whole = bytearray(dump[1].read_bytes())
    footer = int.from_bytes(whole[-8:-4], "little") + 8
    whole[4:-footer] = bytes(len(whole) - footer - 4)  # no data is left
    dump[1].write_bytes(whole)
    code, out, err = run("evaluate", *dump, *asked, "--format", "json")
    assert (code, err) == (0, "")
    assert json.loads(out) == content
    assert run("evaluate", dump[0], tmp_path / "missing", "--plan")[0] == 3


def test_metrics_between_commas_are_as_many_options(dump, run):
    one = run(
        "evaluate", *dump, "-m", "MAP@3,mrr,rbp(p=0.5,rel=1)", "-m", "gap", "--format", "json"
    )
    several = [
        text for name in ("MAP@3", "mrr", "rbp(p=0.5,rel=1)", "gap") for text in ("-m", name)
    ]
    other = run("evaluate", *dump, *several, "--format", "json")
    found, expected = (json.loads(out)["metrics"] for _, out, _ in (one, other))
    assert list(found) == ["MAP@3", "mrr", "rbp(p=0.5,rel=1)", "gap"]
    assert found == expected
    code, _, err = run("evaluate", *dump, "-m", "map,rbp(p=2)")
    assert code == 2
    assert "p of 'rbp(p=2)' is '2'; expected a number above 0 and below 1" in " ".join(err.split())
