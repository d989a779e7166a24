"""Object stores and web servers: the same bits as from the disk, whole outputs, no credentials."""

from __future__ import annotations

import gc
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankmill
from rankmill.errors import InputError, UsageError, install
from rankmill.io.stores.urls import is_url, local_path, parse, redacted, shown
from rankmill.io.whole_files import check_target, write_files
from rankmill.sources.files.files import find_files
from store_server import FAILS_EVERY, Files, Proxy, s3_server, served
from strategies import some

pytest.importorskip("moto", reason="the extra test has a server of S3")
pytest.importorskip("aiohttp", reason="the extra test has fsspec[http]")

METRICS = ["map@3", "mrr", "ndcg@5", "gap"]
SECRET = "CANARY7secret"


def dump() -> tuple[pa.Table, pa.Table]:
    """Make 400 queries with 1 to 3 labels and 6 predictions each."""
    users = range(400)
    labels = {
        "user_id": [f"u{user}" for user in users],
        "items": [[user % 7 + step * 3 for step in range(user % 3 + 1)] for user in users],
    }
    predictions = {
        "user_id": [f"u{user}" for user in reversed(users)],
        "items": [[(user * 5 + rank * 2) % 13 for rank in range(6)] for user in reversed(users)],
        "scores": [[1 / (rank + user % 5 + 1) for rank in range(6)] for user in reversed(users)],
    }
    return pa.table(labels), pa.table(predictions)


def long(table: pa.Table) -> pa.Table:
    rows = [
        dict(zip(("user_id", "item", "score"), (row["user_id"], *pair), strict=False))
        for row in table.to_pylist()
        for pair in zip(row["items"], *([row["scores"]] if "scores" in row else []), strict=True)
    ]
    return pa.Table.from_pylist(rows)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The dump in files: wide, long, parts, and Hive partitions whose folders give the user."""
    root = tmp_path_factory.mktemp("stores")
    for side, table in zip(("labels", "predictions"), dump(), strict=True):
        pq.write_table(table, root / f"{side}.parquet", row_group_size=100)
        pq.write_table(long(table), root / f"{side}_long.parquet", row_group_size=700)
        for part in range(3):
            for place in (root / f"{side}_parts", root / f"{side}_days" / f"day={part}"):
                place.mkdir(parents=True, exist_ok=True)
                pq.write_table(table.slice(part * 150, 150), place / f"part {part}.parquet")
        hive = root / f"{side}_hive"
        for row in table.slice(10, 8).to_pylist():
            place = hive / f"user_id={row.pop('user_id')}"
            place.mkdir(parents=True)
            pq.write_table(pa.Table.from_pylist([row]), place / "one.parquet")
        (hive / "_SUCCESS.parquet").write_text("no Parquet")
        (hive / ".hidden").mkdir()
        (hive / ".hidden" / "a.parquet").write_text("no Parquet")
    return root


@pytest.fixture(scope="module")
def proxy(folder: Path) -> Iterator[Proxy]:
    """An S3 server with the dump in the bucket `data`, behind a slow proxy that fails at times."""
    with s3_server() as port, served(Proxy(port)) as between, pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            patch.delenv(name)
        patch.setenv("AWS_ACCESS_KEY_ID", "testing")
        patch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        patch.setenv("AWS_ENDPOINT_URL", between.url)
        from pyarrow import fs

        server = fs.S3FileSystem(
            endpoint_override=f"http://127.0.0.1:{port}",
            region="us-east-1",
            allow_bucket_creation=True,
        )
        for bucket in ("data", "out"):
            server.create_dir(bucket)
        fs.copy_files(str(folder), "data", destination_filesystem=server)
        between.server = server
        yield between


@pytest.fixture
def objects(proxy: Proxy) -> Callable[[str], Any]:
    """Return the content of an object, or None if there is none; asked past the proxy."""

    def content(path: str) -> bytes | None:
        if not proxy.server.get_file_info(path).is_file:
            return None
        with proxy.server.open_input_file(path) as file:
            return file.read()

    return content


def same_bits(one: rankmill.Result, other: rankmill.Result) -> None:
    assert one.metrics == other.metrics
    assert one.standard_errors == other.standard_errors
    assert one.audit == other.audit
    assert one.per_query.equals(other.per_query)


# ------------------------------------------------------------------ reading

PLACES = {
    "files": ("labels.parquet", "predictions.parquet"),
    "long": ("labels_long.parquet", "predictions_long.parquet"),
    "globs": ("labels_parts/*.parquet", "predictions_parts/part [0-9].parquet"),
    "folders": ("labels_parts", "predictions_parts/"),
    "days": ("labels_days", "predictions_days/day=*"),
    "deep globs": ("labels_days/**/*.parquet", "predictions_days/*/part ?.parquet"),
    "hive": ("labels_hive", "predictions_hive"),
    "hive globs": ("labels_hive/user_id=*/one.parquet", "predictions_hive"),
}


@pytest.mark.rows(1)
@pytest.mark.parametrize("place", some(PLACES, 7))
def test_s3_gives_the_same_bits_as_the_disk(proxy: Proxy, folder: Path, place: str) -> None:
    labels, predictions = PLACES[place]
    there = [f"s3://data/{name}" for name in (labels, predictions)]
    here = [str(folder / name) for name in (labels, predictions)]
    found = rankmill.evaluate(*there, metrics=METRICS, per_query=True)
    same_bits(found, rankmill.evaluate(*here, metrics=METRICS, per_query=True))
    assert found.inputs["labels"]["source"] == there[0]


def test_requests_are_few_and_ranges_small(proxy: Proxy, folder: Path) -> None:
    before = len(proxy.seen)
    rankmill.evaluate("s3://data/labels.parquet", "s3://data/predictions.parquet", metrics=["map"])
    asked = [(method, ranged) for method, _, ranged in proxy.seen[before:]]
    assert all(ranged for method, ranged in asked if method == "GET")
    # A file: found, opened, footer. A piece (all four row groups are one): columns, unchanged. The
    # first piece is read once more, because ids of text may be integers.
    assert len(asked) <= 2 * (3 + 2 * (4 + 1)) + 3  # and what the proxy failed


@pytest.mark.long
def test_a_store_that_fails_at_times_was_tested(proxy: Proxy) -> None:
    proxy.fails_every = 20
    try:
        rankmill.evaluate("s3://data/labels_days", "s3://data/predictions_days", metrics=["map"])
        write_files([("s3://out/at_times.txt", "text")])
    finally:
        proxy.fails_every = FAILS_EVERY
    assert proxy.failed > 0


def test_an_object_that_changes_is_refused(
    proxy: Proxy, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rankmill.sources.readers import parquet

    read = parquet._batches

    def replaced(*arguments: Any) -> Any:
        with proxy.server.open_output_stream("data/changing.parquet") as stream:
            stream.write((folder / "labels.parquet").read_bytes() + b"more")
        return read(*arguments)

    with proxy.server.open_output_stream("data/changing.parquet") as stream:
        stream.write((folder / "labels.parquet").read_bytes())
    monkeypatch.setattr(parquet, "_batches", replaced)
    with pytest.raises(InputError, match=r"s3://data/changing\.parquet changed while it was read"):
        rankmill.evaluate("s3://data/changing.parquet", "s3://data/predictions.parquet")


@pytest.mark.parametrize("scheme", ["http", "memory"])
def test_fsspec_gives_the_same_bits_as_the_disk(folder: Path, scheme: str) -> None:
    fsspec = pytest.importorskip("fsspec")
    pairs = [("labels.parquet", "predictions.parquet")]
    with served(Files(folder)) as web:
        root = f"{web.url}/"
        if scheme == "memory":
            root = "memory://dump/"
            fsspec.filesystem("memory").put(str(folder), "/dump", recursive=True)
            pairs += PLACES.values()
        else:
            pairs += [("labels_long.parquet", "predictions_long.parquet")]
            web.fails_next = [503, 200, 500]
        for labels, predictions in pairs:
            found = rankmill.evaluate(
                root + labels, root + predictions, metrics=METRICS, per_query=True
            )
            here = [str(folder / name) for name in (labels, predictions)]
            same_bits(found, rankmill.evaluate(*here, metrics=METRICS, per_query=True))
        gets = [ranged for method, ranged in web.seen if method == "GET"]
        assert gets.count("") <= 2  # a file is asked for whole only where HEAD failed


@pytest.mark.parametrize("scheme", ["s3", "http"])
def test_other_formats_read_objects_as_files(proxy: Proxy, folder: Path, scheme: str) -> None:
    content = bytes(range(256)) * 20_000
    (folder / "bytes.csv").write_bytes(content)
    with proxy.server.open_output_stream("data/bytes.csv") as stream:
        stream.write(content)
    with served(Files(folder)) as web:
        root = "s3://data" if scheme == "s3" else web.url
        (file,) = find_files([f"{root}/bytes.csv"])
        assert file.identity()[2] == len(content)
        assert file.identity() == file.listed
        before = len(proxy.seen) + len(web.seen)
        with file.opened() as opened:
            assert opened.read(3) == content[:3]
            assert opened.seek(-5, os.SEEK_END) == len(content) - 5
            assert opened.read() == content[-5:]
            opened.seek(0)
            buffer = bytearray(1000)
            assert opened.readinto(buffer) == 1000
            assert bytes(buffer) + opened.read() == content
        assert len(proxy.seen) + len(web.seen) - before < 10


def test_file_urls_are_local(folder: Path, tmp_path: Path) -> None:
    labels, predictions = folder / "labels.parquet", folder / "predictions.parquet"
    found = rankmill.evaluate(f"file://{labels}", f"file://{predictions}", metrics=["map"])
    assert found.metrics == rankmill.evaluate(labels, predictions, metrics=["map"]).metrics
    write_files([(f"file://{tmp_path}/a%20b.txt", "text")])
    assert (tmp_path / "a b.txt").read_text() == "text"


def test_an_existing_path_that_looks_like_a_url_is_local(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "s3:").mkdir()
    (tmp_path / "s3:" / "x.parquet").write_bytes((folder / "labels.parquet").read_bytes())
    monkeypatch.chdir(tmp_path)
    assert rankmill.evaluate("s3://x.parquet", folder / "predictions.parquet").queries == 400


def test_local_files_load_nothing_of_stores(folder: Path) -> None:
    code = (
        "import sys, rankmill; rankmill.evaluate(*sys.argv[1:], metrics=['map']); "
        "print({'pyarrow.fs', 'fsspec', 'aiohttp'} & sys.modules.keys())"
    )
    paths = [str(folder / f"{side}.parquet") for side in ("labels", "predictions")]
    ended = subprocess.run(
        [sys.executable, "-c", code, *paths], capture_output=True, text=True, check=True
    )
    bare = subprocess.run(
        [sys.executable, "-c", "import pyarrow.parquet, sys; print('pyarrow.fs' in sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    expected = "{'pyarrow.fs'}" if bare.stdout.strip() == "True" else "set()"
    assert ended.stdout.strip() == expected


# ------------------------------------------------------------------ errors


@pytest.mark.rows(3)
@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("s3://data/none.parquet", "there is no object s3://data/none.parquet"),
        ("s3://data/none/*.parquet", "no object matches s3://data/none/"),
        ("s3://nowhere/x.parquet", "there is no bucket 'nowhere'"),
        ("s3://nowhere/*.parquet", "there is no bucket 'nowhere'"),
        ("s3://denied/x.parquet", "access was denied (ACCESS_DENIED): the credentials"),
        ("s3://badkey/*.parquet", "INVALID_ACCESS_KEY_ID"),
        ("s3://unsigned/*.parquet", "SIGNATURE_DOES_NOT_MATCH"),
        ("s3://expired/*.parquet", "access was denied"),
        ("s3://down/x.parquet", "the store did not answer, also when asked again"),
        ("s3://data/labels_hive/_SUCCESS.parquet", "cannot be read as Parquet"),
    ],
)
def test_what_cannot_be_read_is_an_error_in_one_line(
    proxy: Proxy, run: Any, url: str, wanted: str
) -> None:
    begun = time.monotonic()
    code, printed, error = run("evaluate", url, "s3://data/predictions.parquet")
    assert (code, printed) == (3, "")
    assert wanted in error
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert SECRET not in error
    assert time.monotonic() - begun < 15


@pytest.mark.long
def test_no_network_is_an_error_within_seconds(
    proxy: Proxy, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = "127.0.0.1:9"
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}")
    for url in ("s3://data/a.parquet", f"http://{host}/a.parquet"):
        begun = time.monotonic()
        code, _, error = run("evaluate", url, "p.parquet")
        assert code == 3
        assert f"{url} cannot be read: the store did not answer" in error
        assert time.monotonic() - begun < 15


@pytest.mark.long
def test_a_metadata_service_that_never_answers_costs_little(
    proxy: Proxy, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", address)
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
        monkeypatch.delenv("AWS_ACCESS_KEY_ID")
        begun = time.monotonic()
        assert run("evaluate", "s3://data/none.parquet", "p.parquet")[0] == 3
        assert time.monotonic() - begun < 10  # and not 20 seconds
    assert "AWS_EC2_METADATA_DISABLED" not in os.environ


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        (f"s3://key:{SECRET}@data/x.parquet", "was given with credentials in the URL"),
        (f"s3://{SECRET}@data/x.parquet", "was given with credentials in the URL"),
        (f"s3://key:{SECRET}/with/slash@data/x", "was given with credentials in the URL"),
        (f"s3://data/x.parquet?X-Amz-Signature={SECRET}", "has the parameters X-Amz-Signature"),
        ("s3:///x.parquet", "names no bucket"),
        ("nosuch://x/y.parquet", "nosuch://x/y.parquet cannot be opened"),
    ],
)
def test_a_url_that_makes_no_sense_is_wrong_usage(run: Any, url: str, wanted: str) -> None:
    code, printed, error = run("evaluate", url, "p.parquet")
    assert (code, printed) == (2, "")
    assert wanted in error
    assert SECRET not in error


def test_a_missing_package_is_named(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for missing, url in [("fsspec.core", "memory://a.parquet"), ("aiohttp", "https://x/a.parquet")]:
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, missing, None)
            code, _, error = run("evaluate", url, "p.parquet")
        assert code == 2
        assert install("remote") in error


def test_a_web_server_that_refuses_or_ignores_ranges(folder: Path, run: Any) -> None:
    with served(Files(folder)) as web:
        for path, wanted in [
            ("none.parquet", "there is no object"),
            ("secret/labels.parquet", "access was denied"),
            ("whole/labels.parquet", "the server ignores which range of bytes is asked for"),
        ]:
            signed = f"{web.url}/{path}?X-Amz-Signature={SECRET}"
            code, printed, error = run("evaluate", signed, folder / "predictions.parquet")
            assert (code, printed) == (3, "")
            assert f"{web.url}/{path}" in error
            assert wanted in error
            assert SECRET not in error


# ------------------------------------------------------------------ writing


def test_outputs_go_to_a_bucket(proxy: Proxy, objects: Any, folder: Path, run: Any) -> None:
    inputs = "s3://data/labels.parquet", "s3://data/predictions.parquet"
    output = ("-o", "s3://out/new/r.json", "--per-query", "s3://out/new/q.parquet")
    assert run("evaluate", *inputs, "-m", "map@3", *output)[::2] == (0, "")
    local = rankmill.evaluate(
        folder / "labels.parquet", folder / "predictions.parquet", metrics="map@3", per_query=True
    )
    told = json.loads(objects("out/new/r.json"))
    assert told["metrics"]["map@3"] == local.metrics["map@3"]
    assert pq.read_table(pa.BufferReader(objects("out/new/q.parquet"))).equals(local.per_query)
    code, planned, _ = run("evaluate", *inputs, "--plan", "--format", "json")
    assert code == 0
    assert json.loads(planned)["labels"]["source"] == inputs[0]


def test_python_writes_to_stores_too(proxy: Proxy, objects: Any, tmp_path: Path) -> None:
    import fsspec

    table = pa.table({"a": [1, 2]})
    write_files([("s3://out/t.parquet", table)])
    assert pq.read_table(pa.BufferReader(objects("out/t.parquet"))).equals(table)
    write_files([("memory://out/t.parquet", table)])
    write_files([("memory://out/t.parquet", "anew")])
    assert fsspec.filesystem("memory").find("/out") == ["/out/t.parquet"]
    assert fsspec.filesystem("memory").cat("/out/t.parquet") == b"anew"


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("s3://nowhere/r.json", "there is no bucket 'nowhere'"),
        ("s3://badkey/r.json", "INVALID_ACCESS_KEY_ID"),
        ("s3://data/labels_parts", "it is a folder"),
        ("s3://data/labels_parts/", "it is a folder"),
        ("s3://data", "it is a folder"),
        (f"http://me:{SECRET}@host/r.json?sig={SECRET}", "a web server only gives files"),
        ("nosuch://x/r.json", "cannot be opened"),
        ("s3://data/labels.parquet", "it is one of the inputs"),
        ("s3://data/labels_parts/new.parquet", "the next run over s3://data/labels_parts"),
    ],
)
def test_what_cannot_be_written_is_told_before_the_run(
    proxy: Proxy, run: Any, url: str, wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rankmill.engine import evaluate

    monkeypatch.setattr(evaluate, "evaluate_runs", None)  # is not reached
    labels = "s3://data/labels.parquet,s3://data/labels_parts"
    option = "-o" if url.endswith(".json") else "--per-query"
    code, printed, error = run("evaluate", labels, "s3://data/predictions.parquet", option, url)
    assert wanted in error
    assert (code, printed) == (2, "")
    assert SECRET not in error


def test_two_outputs_are_two_objects(proxy: Proxy, run: Any) -> None:
    pair = ("-o", "s3://out/x.json", "--per-query", "s3://out/x.json?region=us-east-1")
    code, _, error = run("evaluate", "l.parquet", "p.parquet", *pair)
    assert code == 2
    assert "the same file, s3://out/x.json" in error


def test_who_may_only_write_is_not_refused(proxy: Proxy) -> None:
    check_target("s3://denied/r.json")
    with pytest.raises(UsageError, match="access was denied"):
        write_files([("s3://denied/r.json", "text")])


def test_nothing_is_sent_before_all_contents_are_complete(proxy: Proxy, objects: Any) -> None:
    bad: Any = 5  # neither text nor bytes nor a table
    with pytest.raises(AttributeError):
        write_files([("s3://out/first.txt", "text"), ("s3://out/second.parquet", bad)])
    assert objects("out/first.txt") is None


@pytest.mark.long
def test_a_failed_upload_leaves_nothing(proxy: Proxy, objects: Any, tmp_path: Path) -> None:
    proxy.holds = lambda method, path: "partNumber=2" in path
    proxy.released.set()
    old = tmp_path / "old.txt"
    old.write_text("kept")
    try:
        with pytest.raises(UsageError, match=r"cannot write to s3://out/big\.txt: the store did"):
            write_files([(str(old), "new"), ("s3://out/big.txt", "x" * 12_000_000)])
        gc.collect()  # a stream that is freed would complete its upload
    finally:
        proxy.holds = lambda method, path: False
        proxy.released.clear()
    assert objects("out/big.txt") is None
    assert old.read_text() == "kept"


@pytest.mark.parametrize("number", some([signal.SIGTERM, signal.SIGKILL, signal.SIGINT], 3))
def test_a_process_that_ends_in_an_upload_leaves_nothing(
    proxy: Proxy, objects: Any, folder: Path, number: signal.Signals
) -> None:
    proxy.holds = lambda method, path: method in ("PUT", "POST") and "killed" in path
    proxy.held.clear()
    proxy.released.clear()
    command = [sys.executable, "-m", "rankmill", "evaluate", folder / "labels.parquet"]
    command += [folder / "predictions.parquet", "-m", "map", "-o", "s3://out/killed.json"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert proxy.held.wait(60)
        process.send_signal(number)
        _, error = process.communicate(timeout=20)
    proxy.released.set()
    proxy.holds = lambda method, path: False
    assert objects("out/killed.json") is None
    if number != signal.SIGKILL:
        assert process.returncode == 128 + number
        assert "nothing written" in error


# ------------------------------------------------------------------ servers that drip


def test_a_server_that_sends_a_byte_now_and_then_is_given_up(
    folder: Path, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rankmill.io.stores.fsspec_files.WHOLE_SECONDS", 0.4)
    with served(Files(folder)) as web:
        web.pause = 0.05  # there is always a next byte within the limit for one
        url = f"{web.url}/labels.parquet"
        begin = time.monotonic()
        code, _, error = run("evaluate", url, url, "-m", "map")
    assert time.monotonic() - begin < 10
    assert code == 3
    assert error.startswith(f"error: {url} cannot be read: the store is too slow: it took longer")


@pytest.mark.long
def test_a_large_range_is_asked_for_in_parts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    local = rankmill.evaluate(folder / "labels.parquet", folder / "labels.parquet", ["map"])
    monkeypatch.setattr("rankmill.io.stores.fsspec_files.LARGEST_RANGE", 100)
    with served(Files(folder)) as web:
        url = f"{web.url}/labels.parquet"
        assert rankmill.evaluate(url, url, ["map"]).metrics == local.metrics
        ranges = [asked.removeprefix("bytes=").split("-") for _, asked in web.seen if asked]
    assert {int(last) - int(first) < 100 for first, last in ranges} == {True}


# ------------------------------------------------------------------ credentials are never shown


@pytest.mark.long
def test_no_output_holds_credentials(folder: Path, run: Any, tmp_path: Path) -> None:
    with served(Files(folder)) as web:
        root = web.url.replace("://", f"://me:{SECRET}@")
        labels, first, second = (
            f"{root}/{name}.parquet?X-Amz-Signature={SECRET}&X-Amz-Credential={SECRET}"
            for name in ("labels", "predictions", "predictions_long")
        )
        shown_all = ""
        for form, runs in itertools.product(("table", "json", "csv"), ([first], [first, second])):
            per_query = tmp_path / f"{form}.parquet"
            asked = ("evaluate", labels, *runs, "-m", "map", "--format", form)
            code, out, error = run(*asked, "--per-query", per_query)
            assert code == 0, error
            assert SECRET.encode() not in per_query.read_bytes()
            shown_all += out + error
        shown_all += "".join(run("evaluate", labels, first, "--plan")[1:])
        shown_all += "".join(run("evaluate", labels, first, first)[1:])
        shown_all += "".join(run("evaluate", f"{labels},,x", first)[1:])
        shown_all += "".join(run("evaluate", labels, first, "--query", "none")[1:])
        shown_all += "".join(run("explain", labels, first, "-m", "map")[1:])
        shown_all += "".join(run("evaluate", labels, first, "-o", f"{root}/x.json?s={SECRET}")[1:])
        shown_all += "".join(run("evaluate", labels, first, "-o", f"s3://k:{SECRET}@b/x.pq")[1:])
        result = rankmill.evaluate(labels, first, metrics=METRICS, per_query=True)
        shown_all += repr(result) + str(result) + json.dumps(result.inputs, default=str)
        shown_all += str(result.per_query.schema)
        assert f"{web.url}/labels.parquet" in shown_all
        assert SECRET not in shown_all


def test_no_stack_trace_holds_credentials(
    folder: Path, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rankmill.sources.inputs import any_source

    def bug(*arguments: Any) -> Any:
        raise RuntimeError(f"lost https://me:{SECRET}@host/a?sig={SECRET}") from KeyError(
            f"https://host/a?sig={SECRET}"
        )

    for debug in ("", "1"):
        with monkeypatch.context() as patch:
            patch.setattr(any_source, "find_files", bug)
            patch.setenv("RANKMILL_DEBUG", debug)
            code, _, error = run("evaluate", f"https://host/a?sig={SECRET}", "p.parquet")
            assert code == 70
            assert ("Traceback" in error) == bool(debug)
            assert "https://host/a" in error
            assert SECRET not in error
    with served(Files(folder)) as web:
        url = f"{web.url}/none.parquet?sig={SECRET}"
        with pytest.raises(InputError) as caught:
            rankmill.evaluate(url, url)
        told = "".join(traceback.format_exception(caught.value))
        assert SECRET not in told


def test_progress_names_no_credentials(proxy: Proxy, folder: Path) -> None:
    from cli_runs import on_a_terminal

    with served(Files(folder)) as web:
        urls = [f"{web.url}/{side}.parquet?sig={SECRET}" for side in ("labels", "predictions")]
        code = f"from rankmill.cli import main\nmain(['evaluate', *{urls!r}, '-m', 'map'])"
        lines = "\n".join(on_a_terminal(code, 200))
    assert "map" in lines
    assert SECRET not in lines


@pytest.mark.small
@pytest.mark.parametrize(
    ("url", "left"),
    [
        ("s3://b/k.parquet", "s3://b/k.parquet"),
        ("s3://key:pa/ss@b/k", "s3://b/k"),
        ("s3://key:pass/k", "s3:///k"),
        ("s3://b/run-?.parquet", "s3://b/run-?.parquet"),
        ("s3://b/a@b.parquet?region=x", "s3://b/a@b.parquet"),
        ("https://host:8080/a@b", "https://host:8080/a@b"),
        ("https://me:pw@host:8080/a?x#y", "https://host:8080/a"),
        ("https://token@host/a#x=1", "https://host/a"),
        ("abfs://box@account.net/k", "abfs://box@account.net/k"),
        ("abfs://box:key@account.net/k", "abfs://box@account.net/k"),
        ("zip://a.pq::https://u:p@h/x?y=1", "zip://a.pq::https://h/x"),
        ("simplecache::s3://k:p@b/x", "simplecache::s3://b/x"),
        ("S3://b/k", "s3://b/k"),
        ("plain/path?x=1", "plain/path?x=1"),
    ],
)
def test_shown(url: str, left: str) -> None:
    assert shown(url) == left
    assert is_url(url) == ("://" in url)
    if "://" in url:
        assert redacted(f"({url}), '{url}'") == f"({left}), '{left}'"
        assert local_path(url) == url
        assert parse(shown(url)).query == ""


# ------------------------------------------------------------------ histories


@pytest.mark.long
def test_a_history_in_a_bucket(
    proxy: Proxy, folder: Path, run: Any, objects: Callable[[str], Any]
) -> None:
    url = "s3://out/nightly/history"
    sides = [folder / f"{side}.parquet" for side in ("labels", "predictions")]
    for model in "ab":
        options = ("-m", "map@3", "--history", url, "--tag", f"model={model}")
        code, _, error = run("evaluate", *sides, *options)
        assert (code, error) == (0, "")
    found = rankmill.History(url)
    assert [one.tags["model"] for one in found.runs] == ["a", "b"]
    assert objects(f"out/nightly/history/{found.runs[0].id}.parquet")[:4] == b"PAR1"
    assert found.baseline("last", "map@3").run == found.runs[1]
    assert run("history", "prune", url, "--keep-last", "1")[1] == "removed 1 of 2 runs\n"
    assert rankmill.History(url).runs == found.runs[1:]
    for wrong in ("s3://out/nothing", "s3://no-such-bucket/history"):
        code, _, error = run("history", wrong)
        assert code == 3
        assert wrong in error
