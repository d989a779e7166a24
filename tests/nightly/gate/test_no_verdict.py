"""A night without a verdict: no output keeps what it said of another night, and each says why."""

import json
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankmill
from cli_runs import process
from rankmill.nightly.runs.folder import open_folder

LABELS = "user_id,item_id\n1,10\n2,20\n"
RULES = ("--rule", "map@12 >= 0.5", "--rule", "repeated_items == 0")
OUTPUTS = {
    "-o": "result.csv",
    "--json": "gate.json",
    "--junit": "gate.xml",
    "--markdown": "gate.md",
    "--report": "page.html",
    "--summary": "line.txt",
    "--per-query": "values.parquet",
}


@pytest.fixture
def night(tmp_path, monkeypatch, run_cli):
    """Run the gate on predictions after a good night, which left all outputs and a run."""
    monkeypatch.chdir(tmp_path)
    for name in ("l.csv", "p.csv"):
        (tmp_path / name).write_text(LABELS)
    asked = [word for pair in OUTPUTS.items() for word in pair]

    def run(*more, predictions="p.csv", date="2026-01-02"):
        given = ["gate", "l.csv", predictions, *RULES, *asked, "--history", "runs", "--date", date]
        return run_cli(*given, *more)

    assert run(date="2026-01-01").exit_code == 0
    return run


def texts(folder):
    return {name: (folder / name).read_bytes() for name in OUTPUTS.values()}


def check_all_say(folder, code, reason):
    """Check that each output says that there is no verdict, and why."""
    told = json.loads((folder / "gate.json").read_text())
    assert (told["word"], told["exit_code"], told["result"]) == ("no verdict", code, None)
    assert reason in told["reason"]
    suite = ET.parse(folder / "gate.xml").getroot().find("testsuite")
    assert (suite.get("tests"), suite.get("errors"), suite.get("failures")) == ("2", "2", "0")
    assert reason in suite.find("testcase/error").get("message")
    markdown = (folder / "gate.md").read_text()
    assert markdown.startswith("## ❌ rankmill: no verdict\n")
    page = (folder / "page.html").read_text()
    assert '<header class="bad">' in page
    assert "<h1>No verdict: " in page
    assert (folder / "line.txt").read_text().split(": ", 1)[1].startswith("no verdict: ")
    rows = (folder / "result.csv").read_text().splitlines()
    assert len(rows) == 3
    assert all(",no verdict," in row for row in rows[1:])
    last = rankmill.History(folder / "runs").runs[-1]
    assert last.verdict == "no verdict"
    assert reason in last.reason
    for name in OUTPUTS.values():
        if name != "values.parquet":
            assert "Held" not in (folder / name).read_text()


BROKEN = [
    (b"user_id,item_id\n", 3, "no rows"),
    (None, 3, "no such file"),
    (b"user_id,item_id\n1,10\n2", 3, "b.csv"),
    (b"user_id,count\n1,10\n", 3, "count"),
    (b"", 3, "empty"),
]


@pytest.mark.parametrize(("content", "code", "reason"), BROKEN)
def test_all_outputs_say_that_there_is_no_verdict(night, tmp_path, content, code, reason):
    values = (tmp_path / "values.parquet").read_bytes()
    if content is not None:
        (tmp_path / "b.csv").write_bytes(content)
    outcome = night(predictions="b.csv")
    assert outcome.exit_code == code
    told = json.loads((tmp_path / "gate.json").read_text())["reason"]
    assert outcome.stderr.startswith(f"error: {told}")
    check_all_say(tmp_path, code, reason)
    # The values of queries are the baseline of the next night.
    assert (tmp_path / "values.parquet").read_bytes() == values


@pytest.mark.parametrize(("kept", "reason"), [(0, "it is empty"), (60, "it ends in")])
def test_a_cut_parquet_file_is_no_verdict(night, tmp_path, kept, reason):
    path = tmp_path / "b.parquet"
    pq.write_table(pa.table({"user_id": [1, 2], "items": [[10], [20]]}), path)
    path.write_bytes(path.read_bytes()[:kept])
    assert night(predictions="b.parquet").exit_code == 3
    check_all_say(tmp_path, 3, reason)


def test_a_mistake_of_rankmill_is_no_verdict(night, tmp_path, monkeypatch):
    def fail(*given):
        raise RuntimeError("boom")

    monkeypatch.setattr(sys.modules["rankmill.nightly.gate.gate"], "verdict_of", fail)
    assert night().exit_code == 70
    check_all_say(tmp_path, 70, "rankmill failed in a way it should not: RuntimeError: boom")


def test_a_lack_of_memory_is_no_verdict(night, tmp_path, monkeypatch):
    def fail(*given):
        raise MemoryError

    monkeypatch.setattr(sys.modules["rankmill.nightly.gate.gate"], "verdict_of", fail)
    assert night().exit_code == 4
    check_all_say(tmp_path, 4, "not enough memory")
    assert "nothing written" not in (tmp_path / "gate.md").read_text()


def check_unfinished(folder, told="did not finish"):
    """Check that each output but the values of queries says so, and names the run."""
    run = json.loads((folder / "gate.json").read_text())["run"]
    assert run.startswith("2026-01-02 ")
    for name in OUTPUTS.values():
        text = (folder / name).read_text(errors="replace")
        if name != "values.parquet":
            assert "no verdict" in text.lower()
            assert told in text
        if name not in ("values.parquet", "result.csv"):
            assert run.replace(" ", "T")[:19] in text.replace(" ", "T")
    suite = ET.parse(folder / "gate.xml").getroot().find("testsuite")
    assert int(suite.get("errors")) == int(suite.get("tests")) > 0
    assert (
        (folder / "line.txt").read_text().split(": ", 1)[1].startswith("no verdict: did not finish")
    )


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (("--rule", "map12 >= 1"), "map12"),
        (("--metric", "nope@3"), "nope"),
        (("--nope",), "--nope"),
        (("--undecided", "x"), "--undecided"),
        (("--baseline", "last:7"), "last:7"),
        (("--tag", "x"), "--tag"),
        (("--rule", "map@12 drop <= 1%"), "needs a baseline"),
        (("--date", "2026-13-01"), "2026-13-01"),
        (("--rule",), "requires an argument"),
        (("more.csv",), "more.csv"),
    ],
)
def test_a_mistyped_command_line_is_no_verdict(night, tmp_path, wrong, told):
    values = (tmp_path / "values.parquet").read_bytes()
    assert night(*wrong).exit_code in (2, 3)
    if "--date" not in wrong:
        check_unfinished(tmp_path, told)
    assert "no verdict: " in (tmp_path / "line.txt").read_text()
    assert (tmp_path / "values.parquet").read_bytes() == values
    assert len(rankmill.History(tmp_path / "runs")) == 1  # nothing is known of this night


@pytest.mark.parametrize(
    "wrong", ['ruls = ["map@12 > 0"]\n', "undecided = 3\n", 'metrics = ["nope@3"]\n']
)
def test_a_mistyped_file_is_no_verdict(night, tmp_path, run_cli, wrong):
    night()
    names = [f'{name[2:]} = "{path}"\n' for name, path in OUTPUTS.items() if name[1] == "-"]
    text = "".join(['labels = "l.csv"\npredictions = "p.csv"\n', *names]).replace("per-", "per_")
    (tmp_path / "rankmill.toml").write_text(f"{text}{wrong}")
    given = ["gate", tmp_path / "rankmill.toml", "--date", "2026-01-02", "-o", "result.csv"]
    assert run_cli(*given).exit_code == 2
    check_unfinished(tmp_path)
    assert (tmp_path / "p.csv").read_text() == LABELS


def test_what_is_no_output_of_a_gate_stays_where_a_command_line_is_wrong(tmp_path, run_cli):
    """A mistyped command line may name an input as an output."""
    files = {"l.csv": LABELS, "mine.json": '{"1": ["10"]}', "mine.txt": "notes\n"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    given = ["--json", tmp_path / "mine.json", "--summary", tmp_path / "mine.txt"]
    assert run_cli("gate", tmp_path / "l.csv", *given, *RULES).exit_code == 2
    for more in (["--markdown", tmp_path / "l.csv"], ["-o", tmp_path / "l.csv"], ["--help"]):
        run_cli("gate", tmp_path / "l.csv", *more, "--nope")
    new = ["--json", tmp_path / "new.json", "--summary", tmp_path / "none" / "new.txt"]
    assert run_cli("gate", tmp_path / "l.csv", *new, *RULES).exit_code == 2
    assert json.loads((tmp_path / "new.json").read_text())["word"] == "no verdict"
    assert {path.name for path in tmp_path.iterdir()} == {*files, "new.json"}
    assert all((tmp_path / name).read_text() == text for name, text in files.items())


def test_an_input_is_not_replaced_where_another_is_missing(night, tmp_path):
    outcome = night("--json", "l.csv", predictions="none.csv")
    assert outcome.exit_code == 2
    assert "one of the inputs" in outcome.stderr
    assert (tmp_path / "l.csv").read_text() == LABELS


def test_a_baseline_that_counted_otherwise_is_no_verdict(night, tmp_path):
    (tmp_path / "values.parquet").rename(tmp_path / "base.parquet")
    given = ["--rule", "map@12 drop <= 1%", "--baseline", "base.parquet"]
    assert night(*given).exit_code == 0
    outcome = night(*given, "--preset", "trec_eval")
    assert outcome.exit_code == 2
    assert (
        "was counted with another semantics"
        in json.loads((tmp_path / "gate.json").read_text())["reason"]
    )


def test_no_verdict_is_no_baseline(night, tmp_path, run_cli):
    (tmp_path / "b.csv").write_text("user_id,item_id\n")
    night(predictions="b.csv")
    unjudged = rankmill.History(tmp_path / "runs").runs[-1]
    drop = ["--rule", "map@12 drop <= 1%", "--baseline"]
    outcome = night(*drop, "last", date="2026-01-03")
    assert outcome.exit_code == 0
    assert "2 days old" in (tmp_path / "gate.md").read_text()
    for how in ("median:7", "ago:1d"):
        assert night(*drop, how, date="2026-01-04").exit_code == 0
    assert night(*drop, unjudged.id, date="2026-01-05").exit_code == 3
    outcome = run_cli("gate", "l.csv", "p.csv", *drop[:2], "--baseline", "gate.json")
    assert outcome.exit_code == 2
    assert "is the JSON of a result" in outcome.stderr


def test_the_history_shows_nights_without_a_verdict(night, tmp_path, run_cli):
    (tmp_path / "b.csv").write_text("user_id,item_id\n")
    night("--tag", "job=a", predictions="b.csv")
    night(date="2026-01-03")
    shown = run_cli("history", "runs", "-m", "map@12").stdout
    rows = [line.split()[0] for line in shown.splitlines() if line.startswith("2026-01-0")]
    assert rows[:3] == ["2026-01-01", "2026-01-02", "2026-01-03"]
    assert "no verdict  job=a" in shown
    assert "no rows" in shown
    assert "no verdict: " in run_cli("history", "runs").stdout
    told = json.loads(run_cli("history", "runs", "--format", "json").stdout)
    points = next(one for one in told["trends"] if one["metric"] == "map@12")["points"]
    assert [one["verdict"] for one in points] == ["held", "no verdict", "held"]
    assert [one["value"] for one in points] == [1.0, None, 1.0]
    assert points[2]["change"] == 0
    assert [one["tags"] for one in told["without_verdict"]] == [{"job": "a"}]
    assert ",no verdict,p" not in run_cli("history", "runs", "--format", "csv").stdout
    plot = tmp_path / "t.svg"
    assert run_cli("history", "runs", "--plot", plot).exit_code == 0
    assert "no verdict" in plot.read_text()


def test_a_history_of_nights_without_a_verdict(tmp_path, monkeypatch, run_cli):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "b.csv").write_text("user_id,item_id\n")
    assert run_cli("gate", "b.csv", "b.csv", *RULES, "--history", "runs").exit_code == 3
    outcome = run_cli("history", "runs")
    assert outcome.exit_code == 0
    assert "no verdict: " in outcome.stdout
    assert run_cli("history", "runs", "--plot", "t.svg").exit_code == 0
    # By its rows, as if another program had joined files.
    folder = open_folder("runs")
    (name,) = folder.files()
    (run,) = folder._rows(name)
    assert (run.metrics, run.verdict) == ({}, "no verdict")
    table = pq.read_table(tmp_path / "runs" / name)
    changed = table.set_column(table.column_names.index("reason"), "reason", [["fine"]])
    pq.write_table(changed.replace_schema_metadata(), tmp_path / "runs" / name)
    assert "checksum" in run_cli("history", "runs").stderr


def test_markdown_of_a_step_is_appended(night, tmp_path, monkeypatch):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "step.md"))
    (tmp_path / "step.md").write_text("before\n")
    night("--markdown", "-", predictions="none.csv")
    assert (tmp_path / "step.md").read_text().startswith("before\n## ❌ rankmill: no verdict\n")


def test_standard_output_says_so_where_a_program_reads_it(night, tmp_path, run_cli):
    asked = ["gate", "l.csv", "none.csv", *RULES]
    assert run_cli(*asked).stdout == ""
    assert json.loads(run_cli(*asked, "--format", "json").stdout)["word"] == "no verdict"
    outcome = run_cli(*asked, "--json", "-", "-o", "x.csv")
    assert json.loads(outcome.stdout)["word"] == "no verdict"
    assert (
        run_cli(*asked, "--summary", "-")
        .stdout.split(": ", 1)[1]
        .startswith("no verdict: no such file")
    )


def test_what_cannot_be_written_is_told_and_stops_no_other(night, tmp_path, monkeypatch):
    from rankmill.cli import gate as failed_outputs

    whole, before = failed_outputs.write_files, texts(tmp_path)

    def refuse(contents):
        if any(path == "page.html" for path, _ in contents):
            raise rankmill.UsageError("cannot write to page.html: no room")
        whole(contents)

    monkeypatch.setattr(failed_outputs, "write_files", refuse)
    outcome = night(predictions="none.csv")
    assert "warning: not every output says that there is no verdict" in outcome.stderr
    after = texts(tmp_path)
    assert after["page.html"] == before["page.html"]
    assert b"no such file" in after["gate.md"]


@pytest.mark.skipif(sys.platform == "win32", reason="no signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.long
def test_a_run_that_is_stopped_did_not_finish(night, tmp_path, number):
    values = (tmp_path / "values.parquet").read_bytes()
    asked = [word for pair in OUTPUTS.items() for word in pair]
    # Standard input that does not end keeps the run waiting.
    given = ["gate", "l.csv", "-", "--predictions-as", "csv", *RULES, *asked]
    given += ["--history", "runs", "--date", "2026-01-02"]
    with process(*given, cwd=tmp_path, stdin=subprocess.PIPE) as one:
        until = time.monotonic() + 120
        while "did not finish" not in (tmp_path / "line.txt").read_text():
            assert time.monotonic() < until
            time.sleep(0.05)
        time.sleep(0.5)  # the other outputs were written with it
        one.send_signal(number)
        one.wait(60)
        assert one.returncode in (-number, 128 + number)
        if number == signal.SIGTERM:
            assert one.stderr.read() == "error: terminated; the outputs have no verdict\n"
        one.stdin.close()
    check_unfinished(tmp_path)
    assert (tmp_path / "values.parquet").read_bytes() == values
    assert len(rankmill.History(tmp_path / "runs")) == 1
