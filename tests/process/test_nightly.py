"""The examples for schedulers on the page `nightly`: each is run as its scheduler would."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankmill
from pages import FENCE
from repository import SOURCE

PAGE = (SOURCE / "docs" / "nightly.md").read_text("utf-8")
FOLDER = "/srv/rank"
RULES = '["map@12 drop <= 5% confidence none", "queries change <= 10%"]'


def block(start: str) -> str:
    """The block of the page that begins with a line."""
    (found,) = [body for _, body in FENCE.findall(PAGE) if body.startswith(f"{start}\n")]
    return found


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder as the examples have it: inputs, rules, and the command in PATH and a venv."""
    queries = range(100)
    labels = pa.table({"user_id": queries, "items": [[1]] * 100})
    pq.write_table(labels, tmp_path / "labels.parquet")
    for name, wrong in (("old", 20), ("new", 21), ("bad", 60)):
        lists = [[9] if query < wrong else [1] for query in queries]
        table = pa.table({"user_id": queries, "items": lists})
        pq.write_table(table, tmp_path / f"{name}.parquet")
    use(tmp_path, "new")
    programs = tmp_path / "bin"
    programs.mkdir()
    # A pip that only tells what it was asked for.
    pip = f'#!/bin/sh\necho "$@" >> {tmp_path}/pip\n'
    command = f'#!/bin/sh\nexec {sys.executable} -m rankmill "$@"\n'
    for name, text in {"pip": pip, "rankmill": command}.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "bin").symlink_to(programs)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    return tmp_path


def use(folder: Path, name: str) -> None:
    """Let the file of rules judge a system."""
    (folder / "rankmill.toml").write_text(
        'labels = "labels.parquet"\nbaseline = "old"\n'
        f"rules = {RULES}\n"
        f'[systems]\nold = "old.parquet"\ncandidate = "{name}.parquet"\n'
    )


def shell(command: str, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", command.replace(FOLDER, str(folder))],
        cwd=folder,
        env=os.environ | more,
        capture_output=True,
        text=True,
        check=False,
    )


def verdicts(folder: Path) -> list[str | None]:
    return [run.verdict for run in rankmill.History(folder / "history").runs]


def test_cron(jobs: Path) -> None:
    line = block("# crontab -e").splitlines()[-1]
    minute, hour, *days, command = re.split(r"\s+", line, maxsplit=5)
    assert (minute, hour, days) == ("15", "3", ["*", "*", "*"])
    assert "%" not in command
    kept = shell(command, jobs)
    assert (kept.returncode, kept.stdout, kept.stderr) == (0, "", "")  # no mail
    use(jobs, "bad")
    broken = shell(command, jobs)
    assert "regressed: map@12 is" in broken.stdout  # which cron mails
    assert verdicts(jobs) == ["held", "regressed"]
    assert (jobs / "page.html").exists()


@pytest.mark.long
def test_the_message_for_a_chat(jobs: Path) -> None:
    script = block("# nightly.sh, with SLACK_WEBHOOK in the environment")
    curl = jobs / "bin" / "curl"
    curl.write_text(f'#!/bin/sh\necho "$@" > {jobs}/asked\ncat > {jobs}/posted\n')
    curl.chmod(0o755)
    address = "https://hooks.example/1"
    assert shell(script, jobs, SLACK_WEBHOOK=address).returncode == 0
    assert not (jobs / "posted").exists()
    use(jobs, "bad")
    assert shell(script, jobs, SLACK_WEBHOOK=address).returncode == 1
    assert "map@12" in json.loads((jobs / "posted").read_text())["text"]
    assert (jobs / "asked").read_text().split()[-1] == address
    # A night that has no verdict posts no line of another night.
    (jobs / "new.parquet").unlink()
    use(jobs, "new")
    good = (jobs / "rankmill.toml").read_text()
    slow = "#!/bin/sh\nkill -9 $$\n"
    for toml, program, code, told in (
        (good, "", 3, "no verdict: no such file"),
        (f'ruls = ["x"]\n{good}', "", 2, "no verdict: did not finish: rankmill.toml, ruls: "),
        (good, slow, 137, "no verdict: rankmill did not start, exit code 137"),
    ):
        (jobs / "posted").unlink()
        (jobs / "rankmill.toml").write_text(toml)
        if program:
            (jobs / "bin" / "rankmill").write_text(program)
        assert shell(script, jobs, SLACK_WEBHOOK=address).returncode == code
        posted = json.loads((jobs / "posted").read_text())["text"]
        assert told in posted


# Those of the page that are neither run by another test nor the name of an option.
TYPED = [
    *re.findall(r"^```text\n(rankmill .*)\n", PAGE, re.M),
    *re.findall(r"`(rankmill (?:gate rankmill.toml|history prune) [^`\n]+)`", PAGE),
]


@pytest.mark.long
@pytest.mark.parametrize("command", TYPED)
def test_commands_of_the_page(command: str, jobs: Path) -> None:
    assert len(TYPED) == 4
    (jobs / "history").mkdir()
    assert shell(command, jobs).returncode == 0
    names = [word for word in command.split() if re.search(r"\.(xml|html)$", word)]
    assert all((jobs / name).is_file() for name in names)


@pytest.mark.long
def test_github_actions(jobs: Path) -> None:
    yaml = pytest.importorskip("yaml")
    workflow = yaml.safe_load(block("# .github/workflows/nightly.yml"))
    # YAML 1.1 reads "on" as a truth value; GitHub does not.
    assert workflow[True]["schedule"][0]["cron"] == "15 3 * * *"
    (job,) = workflow["jobs"].values()
    assert job["env"]["HISTORY"].startswith("s3://")
    steps = [step["run"] for step in job["steps"] if "run" in step]
    for number, (name, code) in enumerate((("new", 0), ("bad", 1))):
        use(jobs, name)
        summary = jobs / f"summary{number}"
        more = {"HISTORY": str(jobs / "history"), "GITHUB_STEP_SUMMARY": str(summary)}
        codes = [shell(f"set -e; {step}", jobs, **more).returncode for step in steps]
        assert codes == [0, code]
        assert "map@12" in summary.read_text()
    assert (jobs / "pip").read_text().splitlines()[0] == "install ./rankmill"
    files = [*job["steps"][-1]["with"]["path"].split()]
    assert all((jobs / name).exists() for name in files)
    assert verdicts(jobs) == ["held", "regressed"]


@pytest.mark.long
def test_kubernetes(jobs: Path) -> None:
    yaml = pytest.importorskip("yaml")
    made = yaml.safe_load(block("# nightly.yaml"))
    assert (made["apiVersion"], made["kind"]) == ("batch/v1", "CronJob")
    job = made["spec"]["jobTemplate"]["spec"]
    pod = job["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["restartPolicy"] == "Never"  # as podFailurePolicy needs
    policy = job["podFailurePolicy"]["rules"][0]["onExitCodes"]
    assert policy == {"containerName": container["name"], "operator": "In", "values": [1, 2, 3]}
    assert container["workingDir"] == container["volumeMounts"][0]["mountPath"] == FOLDER
    assert {one["name"] for one in container["volumeMounts"]} == {
        volume["name"] for volume in pod["volumes"]
    }
    command = [*container["command"], *container["args"]]
    ended = subprocess.run(command, cwd=jobs, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert verdicts(jobs) == ["held"]


@pytest.mark.long
def test_airflow(jobs: Path) -> None:
    text = block("# dags/nightly_gate.py")
    tree = ast.parse(text)
    compile(tree, "nightly_gate.py", "exec")
    names: dict[str, Any] = {}
    exec(text[text.index("COMMAND") : text.index("with DAG")], names)
    filled = names["COMMAND"].replace("{{ ds }}", "2026-01-08")
    filled = filled.replace("{{ run_id }}", "scheduled__2026-01-08T03:15:00+00:00")
    assert "{{" not in filled
    ended = shell(filled, jobs)
    assert ended.returncode == 0, ended.stderr
    (run,) = rankmill.History(jobs / "history").runs
    assert run.tags == {"run": "scheduled__2026-01-08T03:15:00+00:00"}
    assert (jobs / "gate-2026-01-08.xml").exists()


@pytest.mark.skipif(not importlib.util.find_spec("airflow"), reason="Airflow is not installed")
def test_airflow_knows_the_dag() -> None:
    names: dict[str, Any] = {}
    exec(block("# dags/nightly_gate.py"), names)
    assert names["ship"].upstream_task_ids == {"gate"}


def test_the_command_of_the_page(jobs: Path, run_cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(jobs)
    program, *arguments = shlex.split(FENCE.findall(PAGE)[0][1])
    assert (program, arguments[0]) == ("rankmill", "gate")
    for name, code in (("new", 0), ("bad", 1), ("missing", 3)):
        use(jobs, name)
        assert run_cli(*arguments).exit_code == code
    assert verdicts(jobs) == ["held", "regressed", "no verdict"]


def test_the_first_nights_of_a_history(
    jobs: Path, run_cli: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(jobs)
    text = 'labels = "labels.parquet"\nhistory = "history"\nbaseline = "median:7"\n'
    text += f'rules = {RULES}\n[systems]\ncandidate = "CANDIDATE.parquet"\n'
    codes = []
    for command, name in (
        *(("gate", "old"), ("evaluate", "old"), ("gate", "new"), ("gate", "bad"), ("gate", "new")),
    ):
        (jobs / "rankmill.toml").write_text(text.replace("CANDIDATE", name))
        more = () if command == "gate" else ("-m", "map@12", "--history", "history")
        ended = run_cli(command, "rankmill.toml", *more)
        codes.append(ended.exit_code)
    assert codes == [3, 0, 0, 1, 0], ended.stderr
    assert verdicts(jobs) == ["no verdict", None, "held", "regressed", "held"]
