"""What texts of metrics ask for: more cutoffs, files and sets, wherever metrics are given."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import rankmill
from rankmill.cli import main
from rankmill.cli.command import complete_metrics
from rankmill.errors import UsageError
from rankmill.metrics.registry import parse, parse_all
from rankmill.metrics.texts import SETS
from rankmill.nightly.rules.rules import parse_rule

LABELS = {"q1": {"a": 1, "b": 2}, "q2": {"c": 1}}
RUN = {"q1": [("a", 2.0), ("x", 1.0)], "q2": [("b", 2.0), ("c", 1.0)]}
OTHER = {"q1": [("x", 2.0), ("a", 1.0)], "q2": [("c", 2.0), ("b", 1.0)]}


def names(texts: str | list[str]) -> list[str]:
    return [metric.text for metric in parse_all(texts)]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("map@5,10,20", ["map@5", "map@10", "map@20"]),
        ("map@5, 10 ,mrr", ["map@5", "map@10", "mrr"]),
        ("map(rel=2)@5,10", ["map(rel=2)@5", "map(rel=2)@10"]),
        ("rbp(p=0.5,rel=2)@5,10", ["rbp(p=0.5,rel=2)@5", "rbp(p=0.5,rel=2)@10"]),
        ("map@5:median,10", ["map@5:median", "map@10:median"]),
        ("map@2..4,9", ["map@2", "map@3", "map@4", "map@9"]),
        ("map(rel=2)@9..10:median", ["map(rel=2)@9:median", "map(rel=2)@10:median"]),
        ("P_1..2", ["P_1", "P_2"]),
        ("P_5,10,map", ["P_5", "P_10", "map"]),
        ("P_5(rel=2),10", ["P_5(rel=2)", "P_10(rel=2)"]),
        ("iprec@0.1,0.5,1", ["iprec@0.1", "iprec@0.5", "iprec@1"]),
        ("map@5,10,map@10,5,ndcg@3,5", ["map@5", "map@10", "ndcg@3", "ndcg@5"]),
    ],
)
def test_a_number_is_another_cutoff(text: str, wanted: list[str]) -> None:
    assert names(text) == names([text]) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("10", ["number 10", "map@5,10"]),
        ("10,map@5", ["number 10", "'10,map@5'", "map@5,10"]),
        ("map,10", ["number 10", "write map@10"]),
        ("map(rel=2),10", ["write map(rel=2)@10"]),
        ("official,10", ["number 10", "map@5,10"]),
        ("map@5,0", ["'map@0'", "positive integer"]),
        ("map@5,-3", ["'map@-3'", "positive integer"]),
        ("map@5,2.5", ["'map@2.5'", "positive integer"]),
        ("map@5,,10", ["'map@5,,10'", "comma"]),
        ("offical", ["did you mean official?"]),
        ("official@10", ["official is a set of metrics"]),
        ("@5", ["'@5'", "cannot be read", "as in map@5"]),
        ("@missing.txt", ["'@missing.txt'", "cannot be read", "No such file"]),
    ],
)
def test_what_is_refused(text: str, wanted: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        parse_all(text)
    told = str(caught.value)
    assert "\n" not in told
    assert [one for one in wanted if one not in told] == []


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("map@5,10", "several metrics"),
        ("official", "set of metrics"),
        ("@metrics.txt", "file of metrics"),
    ],
)
def test_where_one_metric_is_expected(text: str, wanted: str) -> None:
    with pytest.raises(UsageError, match=wanted):
        parse(text)
    with pytest.raises(UsageError, match="is neither a metric, nor a count"):
        parse_rule(f"{text} drop <= 3%")


def test_a_file(tmp_path: Path) -> None:
    file = tmp_path / "metrics.txt"
    file.write_text("# ours\nmap@5,10  # two\n\nmrr, rbp( p=.8 )@10,\nndcg@5 hit@3\nRecSys\n")
    assert names(f"gap,@{file},map@5") == [
        *("gap", "map@5", "map@10", "mrr", "rbp(p=0.8)@10", "ndcg@5", "hit@3"),
        *(one for one in SETS["recsys"].metrics if one not in ("map@10",)),
    ]


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        (b"map@5\nmapp@3\n", "metrics.txt, line 2: unknown metric 'mapp@3': did you mean map@3"),
        (b"map@5\n10\n", "metrics.txt, line 2: the number 10"),
        (b"map@5\n@more.txt\n", "metrics.txt, line 2: .* no other file"),
        (b"# nothing\n", "metrics.txt' is a file of metrics that names none"),
        (
            b"map\xff",
            "cannot be read: it is not text in UTF-8",
        ),
    ],
)
def test_a_wrong_file(tmp_path: Path, content: bytes, wanted: str) -> None:
    (tmp_path / "metrics.txt").write_bytes(content)
    with pytest.raises(UsageError, match=wanted):
        parse_all(f"@{tmp_path / 'metrics.txt'}")


def test_official_is_what_trec_eval_prints() -> None:
    """runid and num_q are no numbers of queries; all else is there, and in that order."""
    printed = ["num_ret", "num_rel", "num_rel_ret", "map", "gm_map", "Rprec", "bpref", "recip_rank"]
    printed += [f"iprec_at_recall_{one / 10:.2f}" for one in range(11)]
    printed += [f"P_{k}" for k in (5, 10, 15, 20, 30, 100, 200, 500, 1000)]
    assert [one.removesuffix(":sum") for one in names("official")] == printed


@pytest.mark.parametrize("name", SETS)
def test_a_set_needs_labels_and_predictions_alone(name: str) -> None:
    for semantics in ("default", "trec_eval"):
        result = rankmill.evaluate(LABELS, RUN, name, semantics=semantics)
        assert list(result) == list(SETS[name].metrics)
        assert None not in result.metrics.values()


def test_wherever_metrics_are_given(tmp_path: Path) -> None:
    file = tmp_path / "metrics.txt"
    file.write_text("map@1,2\n")
    runs = {"old": RUN, "new": OTHER}
    for texts in ("map@1,2", ["map@1,2"], f"@{file}", ["map@1", f"@{file}"]):
        assert list(rankmill.evaluate(LABELS, RUN, texts)) == ["map@1", "map@2"]
        assert list(rankmill.compare(LABELS, runs, texts).values) == ["map@1", "map@2"]
        verdict = rankmill.gate(LABELS, RUN, ["ndcg@2 >= 0.1"], metrics=texts)
        assert list(verdict.result) == ["ndcg@2", "map@1", "map@2"]
    file.write_text("map\nprecision\n")
    found = rankmill.compare(LABELS, runs, f"@{file}", cutoffs=[1, 2])
    assert list(found.ranks) == ["map", "precision"]


def run_command(*arguments: str) -> str:
    outcome = CliRunner().invoke(main, arguments)
    assert outcome.exit_code == 0, outcome.output
    return outcome.output


def test_a_configuration_names_files_from_its_folder(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "metrics.txt").write_text("map@1,2\n")
    (tmp_path / "inner" / "labels.json").write_text(json.dumps(LABELS))
    (tmp_path / "inner" / "run.json").write_text(json.dumps({q: dict(of) for q, of in RUN.items()}))
    file = tmp_path / "inner" / "rankmill.toml"
    file.write_text(
        'labels = "labels.json"\npredictions = "run.json"\nmetrics = ["mrr,@metrics.txt"]\n'
    )
    printed = run_command("evaluate", str(file), "--format", "json")
    assert list(json.loads(printed)["metrics"]) == ["mrr", "map@1", "map@2"]
    printed = run_command(
        *("evaluate", str(file), "--format", "json"),
        *("-m", "map@2,1", "-m", f"@{tmp_path / 'inner' / 'metrics.txt'}"),
    )
    assert list(json.loads(printed)["metrics"]) == ["map@2", "map@1"]


def test_sets_are_listed_and_completed() -> None:
    printed = run_command("metrics", "--sets")
    for name, one in SETS.items():
        assert name in printed
        assert ", ".join(one.metrics) in printed
    assert list(json.loads(run_command("metrics", "--sets", "--format", "json"))) == list(SETS)
    assert "recsys" not in run_command("metrics", "--sets", "official")
    assert "official" in complete_metrics(None, None, "off")  # type: ignore[arg-type]
    assert "map@5,recsys" in complete_metrics(None, None, "map@5,rec")  # type: ignore[arg-type]
