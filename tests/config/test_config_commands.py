"""rankmill.toml on the command line: what evaluate and compare make of it, and rankmill init."""

from __future__ import annotations

import itertools
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import tells

import rankmill
import rankmill.spark
from cli_runs import write_dump
from flat import flat
from rankmill.errors import UsageError
from rankmill.nightly.rules.rules import parse_rules

GOOD = 'labels = "l.parquet"\npredictions = "p.parquet"\n'


# ------------------------------------------------------------------ the commands


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Labels and two systems in a folder below the working folder."""
    folder = tmp_path / "shop"
    folder.mkdir()
    write_dump(folder)
    table = pa.table({"user_id": pa.array([1, 2, 3], pa.uint16()), "item_id": [[11], [20], [5]]})
    pq.write_table(table, folder / "old.parquet")
    monkeypatch.chdir(tmp_path)
    return folder


def numbers(run: Any, *arguments: object) -> Any:
    code, shown, error = run(*arguments, "--format", "json")
    assert code == 0, error
    return json.loads(re.sub(r'"(seconds|run)": ("[^"]*"|[\d.e-]+)', r'"\1": 0', shown))


@pytest.mark.parametrize("command", ["evaluate", "compare"])
def test_a_file_gives_what_the_command_line_gives(command: str, shop: Path, run: Any) -> None:
    (shop / "rankmill.toml").write_text(
        'labels = "labels.parquet"\nmetrics = ["map@3", "hit@1"]\nconfidence = 0.9\ndepth = 2\n'
        '[systems]\nold = "old.parquet"\npredictions = "${P}.parquet"\n'
        '[columns]\nquery = "user_id"\n[semantics]\npreset = "trec_eval"\nunpredicted = "zero"\n'
    )
    inputs = ["shop/labels.parquet", "shop/old.parquet", "shop/predictions.parquet"]
    options = ["-m", "map@3", "-m", "hit@1", "--query", "user_id", "--preset", "trec_eval"]
    options += ["--semantics", "unpredicted=zero", "--depth", "2"]
    options += ["--confidence", "0.9"] if command == "compare" else []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("P", "predictions")
        found = numbers(run, command, "shop/rankmill.toml")
        assert found == numbers(run, command, *inputs, *options)
        # The command line wins over the file.
        more = ["-m", "mrr", "--depth", "1"]
        assert numbers(run, command, "shop/rankmill.toml", *more) == numbers(
            run, command, *inputs, *options[4:], *more
        )


def test_names_of_systems_are_those_of_the_file(shop: Path, run: Any) -> None:
    (shop / "x.toml").write_text(
        'labels = "labels.parquet"\nbaseline = "b w"\nmetrics = "map@3"\nmoved = 1\n'
        '[systems]\na = "old.parquet"\n"b w" = "predictions.parquet"\n[columns]\nbinary = false\n'
        'query = "user_id"\n'
    )
    found = numbers(run, "compare", "shop/x.toml")
    assert found["baseline"] == "b w"
    assert {*found["inputs"]["systems"]} == {"a", "b w"}
    shown = run("compare", "shop/x.toml")[1]
    assert re.search(
        r"rankmill explain shop/labels.parquet shop/predictions.parquet shop/old.parquet "
        r"--query-id=\d -m map@3 --query=user_id$",
        shown,
        re.M,
    )
    assert numbers(run, "compare", "shop/x.toml", "--baseline", "a")["baseline"] == "a"


def test_a_path_is_the_baseline_of_compare(shop: Path, run: Any) -> None:
    text = 'labels = "labels.parquet"\npredictions = "predictions.parquet"\nbaseline = "BASE"\n'
    for base, name in (
        ("old.parquet", "old"),
        ("sub/predictions.parquet", "sub/predictions"),
    ):
        (shop / "sub").mkdir(exist_ok=True)
        (shop / "sub" / "predictions.parquet").write_bytes((shop / "old.parquet").read_bytes())
        (shop / "x.toml").write_text(text.replace("BASE", base))
        assert numbers(run, "compare", "shop/x.toml")["baseline"] == name
        assert numbers(run, "evaluate", "shop/x.toml")["queries"] == 3  # which has no baseline
    # A system by its path is that system.
    (shop / "x.toml").write_text(
        'labels = "labels.parquet"\nbaseline = "predictions.parquet"\n'
        '[systems]\na = "old.parquet"\nb = "predictions.parquet"\n'
    )
    assert numbers(run, "compare", "shop/x.toml")["baseline"] == "b"
    (shop / "x.toml").write_text(text.replace("BASE", "last"))
    code, _, error = run("compare", "shop/x.toml")
    assert code == 2
    tells(error, ["x.toml, baseline: compare needs predictions", "last"])


def test_a_baseline_apart_from_the_system(shop: Path, run: Any) -> None:
    text = 'labels = "labels.parquet"\nRULES\nbaseline = "old"\n[systems]\n'
    text += 'new = "predictions.parquet"\nold = "old.parquet"\n'
    (shop / "x.toml").write_text(text.replace("RULES", 'rules = ["map@3 drop <= 90%"]'))
    inputs = ["shop/labels.parquet", "shop/predictions.parquet"]
    rule = ["--rule", "map@3 drop <= 90%"]
    for more in ([], ["--baseline", "new"], ["--baseline", "shop/predictions.parquet"]):
        base = "shop/predictions.parquet" if more else "shop/old.parquet"
        if more == ["--baseline", "new"]:  # then there is no candidate
            code, _, error = run("gate", "shop/x.toml", *more)
            assert code == 2
            tells(error, ["x.toml, systems: gate takes one system beside", "not 0"])
            continue
        found = numbers(run, "gate", "shop/x.toml", *more)
        assert found == numbers(run, "gate", *inputs, "--baseline", base, *rule)
    (shop / "x.toml").write_text(text.replace('old"\n[', 'odl"\n[').replace("RULES\n", ""))
    code, _, error = run("gate", "shop/x.toml", *rule)
    assert "gate takes one system beside the baseline 'shop/odl', not 2: new, old" in error
    (shop / "x.toml").write_text(text.replace("RULES", 'rules = [\n"map@3 > 0",\n"mapp >= 1"]'))
    code, _, error = run("gate", "shop/x.toml")
    assert code == 2
    tells(error, ["mapp"])


def test_a_file_stands_alone(shop: Path, run: Any) -> None:
    (shop / "x.toml").write_text(GOOD)
    code, _, error = run("evaluate", "shop/x.toml", "shop/predictions.parquet")
    assert code == 2
    tells(error, ["replaces LABELS and PREDICTIONS", "shop/predictions.parquet"])
    code, _, error = run("evaluate", "a", "b", "--date", "2024-05-01")
    assert code == 2
    tells(error, ["--date is that of a run in a history", "or give --history"])
    assert run("evaluate", "none.toml", "--help")[0] == 0
    assert run("evaluate", "none.toml", "--help-all")[0] == 0
    assert "--date" in run("evaluate", "--help-all")[1]


def test_python_gets_what_the_commands_get(shop: Path, run: Any) -> None:
    (shop / "x.toml").write_text(
        'labels = "labels.parquet"\npredictions = "predictions.parquet"\nmetrics = ["map@3"]\n'
        'per_query = "q.parquet"\nmemory = "1MB"\n[semantics]\nunpredicted = "skip"\n'
    )
    config = rankmill.config.read_config(shop / "x.toml")
    arguments = config.arguments(rankmill.evaluate)
    assert "per_query" not in arguments  # it is a truth value there
    result = flat(rankmill.evaluate, **arguments)
    assert result.metrics == numbers(run, "evaluate", "shop/x.toml")["metrics"]
    assert (shop / "q.parquet").exists()


def test_python_gets_the_baseline_where_a_function_takes_it(shop: Path, run: Any) -> None:
    text = 'labels = "labels.parquet"\nrules = "map@3 drop <= 90%"\nbaseline = "old"\nby = "x"\n'
    text += '[systems]\nnew = ["predictions.parquet"]\nold = "old.parquet"\n'
    (shop / "x.toml").write_text(text)
    config = rankmill.config.read_config("shop/x.toml")
    assert config.arguments(rankmill.gate) == {
        "labels": "shop/labels.parquet",
        "predictions": ["shop/predictions.parquet"],
        "rules": ("map@3 drop <= 90%",),
        "baseline": "shop/old.parquet",
        "by": ("x",),
    }
    assert config.arguments(rankmill.compare)["baseline"] == "old"
    with pytest.raises(UsageError, match="systems: evaluate takes one system, not 2: new"):
        config.arguments(rankmill.evaluate)
    (shop / "x.toml").write_text(
        'labels = "l"\npredictions = "run/a.parquet"\nbaseline = "old/a.parquet"\nhistory = "h"\n'
    )
    config = rankmill.config.read_config("shop/x.toml")
    given = config.arguments(rankmill.compare)
    assert given["runs"] == {"old/a": "shop/old/a.parquet", "a": "shop/run/a.parquet"}
    assert given["baseline"] == "old/a"
    assert config.arguments(rankmill.gate)["history"] == "shop/h"


def test_a_training_set_in_several_files(shop: Path, run: Any) -> None:
    for name, item in (("a", 1), ("b", 2)):
        table = pa.table({"user_id": [1], "item_id": [item]})
        pq.write_table(table, shop / f"train-{name}.parquet")
    text = 'labels = "labels.parquet"\npredictions = "predictions.parquet"\nmetrics = "novelty"\n'
    for train in ('["train-a.parquet", "train-b.parquet"]', '"train-a.parquet,train-b.parquet"'):
        (shop / "x.toml").write_text(f"{text}train = {train}\n")
        found = numbers(run, "evaluate", "shop/x.toml")["inputs"]["train"]
        assert found["rows"] == 2
    (shop / "x.toml").write_text(f"{text}train = [3]\n")
    status, _, error = run("evaluate", "shop/x.toml")
    assert status == 2
    assert "train[1]: it is the number 3; expected a path" in error


def test_who_would_count_otherwise_refuses_the_file(shop: Path, run: Any) -> None:
    text = 'labels = "labels.parquet"\npredictions = "predictions.parquet"\n'
    systems = text.replace("predictions =", 'baseline = "old.parquet"\npredictions =')
    for name, part in itertools.product(("cluster", "adjust"), ("compare", "gate")):
        (shop / "x.toml").write_text(f'{systems}rules = "map >= 0.1"\n{name} = "country"\n')
        status, _, error = run("spark", part, "shop/x.toml")
        assert status == 2
        assert f"{name}: spark {part} takes no {name}; it would count otherwise" in error


@pytest.mark.parametrize(
    ("part", "option"),
    [
        ("evaluate", "--threads"),
        ("compare", "--all-pairs"),
        ("compare", "--cluster=country"),
        ("compare", "--leaderboard"),
        ("gate", "--power"),
        ("gate", "--adjust"),
    ],
)
def test_options_of_one_machine_are_refused_by_name_on_spark(
    run: Any, part: str, option: str
) -> None:
    status, _, error = run("spark", part, "x.toml", option, "p.html")
    assert status == 2
    name = option.partition("=")[0]
    assert error.startswith(
        f"error: {name} is not supported on Spark: leave it out, or use 'rankmill {part}', "
        "which reads"
    )


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("margin = -1.0\n", "margin"),
        ("item_group = 'g'\n", "item_group, items"),
        ("[columns]\nin_order = true\nrank = 'r'\n", "columns.in_order, columns.rank"),
        (
            "[columns]\nin_order = true\n[semantics]\norder = 'expected'\n",
            "columns.in_order, semantics.order",
        ),
    ],
)
def test_errors_that_are_found_later_name_the_key(
    shop: Path, run: Any, text: str, key: str
) -> None:
    both = '[systems]\nold = "predictions.parquet"\nnew = "predictions.parquet"\n'
    tables = text.replace("[", f"{both}[", 1) if "[" in text else text + both
    (shop / "x.toml").write_text(f'labels = "labels.parquet"\n{tables}')
    status, _, error = run("compare", "shop/x.toml")
    assert status == 2
    assert f"{key})" in error.splitlines()[0].partition("(in shop/x.toml: ")[2]
    # What is typed is not of the file.
    option = f"--{text.split(' = ')[0].replace('_', '-')}"
    if "[" not in text:
        value = text.split(" = ")[1].strip("'\n")
        assert f"toml: {key}" not in run("compare", "shop/x.toml", f"{option}={value}")[2]


def test_a_recorded_run(shop: Path, run: Any) -> None:
    text = 'labels = "labels.parquet"\npredictions = "predictions.parquet"\nbaseline = "last"\n'
    text += 'rules = ["map@3 drop <= 1% confidence none"]\nhistory = "runs"\n'
    text += 'tags = { job = "nightly", n = 7 }\n'
    (shop / "x.toml").write_text(text)
    (shop / "runs").mkdir()
    # A look records nothing among the nights of a gate, unless the history is typed.
    assert run("evaluate", "shop/x.toml", "-m", "map@3")[::2] == (0, "")
    assert not [*(shop / "runs").iterdir()]
    code, _, error = run("evaluate", "shop/x.toml", "-m", "map@3", "--history", "shop/runs")
    (file,) = (shop / "runs").iterdir()
    assert (code, error) == (0, f"note: recorded as shop/runs/{file.name}, without a verdict\n")
    code, _, error = run("gate", "shop/x.toml")
    assert (code, error.startswith("held: map@3")) == (0, True), error
    assert len([*(shop / "runs").iterdir()]) == 2
    assert "nightly" in run("history", "shop/runs", "--format", "json")[1]


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (("gate", "--rul", "map@12 >= 0.1"), "No such option '--rul'"),
        (("gate", "--sum", "s = map"), "No such option '--sum'"),
        (("evaluate", "--metrc", "map@12"), "No such option '--metrc'"),
        (("compare", "-Z", "map@12"), "No such option '-Z'"),
        (("evaluate", "more.parquet", "-m", "map"), "leave out more.parquet, or shop/x.toml"),
        (("evaluate", "-", "-m", "map"), "leave out -, or shop/x.toml"),
        (("evaluate", "--", "--rul"), "leave out --rul, or shop/x.toml"),
    ],
)
def test_what_follows_a_file_is_named(
    typed: tuple[str, ...], told: str, shop: Path, run: Any
) -> None:
    (shop / "x.toml").write_text('labels = "labels.parquet"\npredictions = "predictions.parquet"\n')
    command, *more = typed
    code, _, error = run(command, "shop/x.toml", *more)
    assert (code, told in error) == (2, True), error


def test_a_part_passes_over_the_outputs_of_a_file(shop: Path, run: Any) -> None:
    (shop / "x.toml").write_text(
        'labels = "labels.parquet"\npredictions = "predictions.parquet"\nmetrics = ["map@3"]\n'
        'report = "page.html"\nhistory = "runs"\nrules = ["map@3 >= 0.1"]\n'
    )
    part = ("evaluate", "shop/x.toml", "--part", "1/2", "--state")
    code, shown, error = run(*part, "one.arrow")
    assert (code, error) == (0, "")
    assert shown.startswith("part 1 of 2")
    assert {one.name for one in (*shop.iterdir(), *Path().iterdir())}.isdisjoint(
        {"page.html", "runs"}
    )
    for more in (("--report", "a.html"), ("--history", "h"), ("-o", "a.json")):
        code, _, error = run(*part, "two.arrow", *more)
        assert (code, f"leave out {more[0]}" in error) == (2, True), error


# ------------------------------------------------------------------ rankmill init


@pytest.mark.parametrize("base", [[], ["shop/old.parquet"]])
@pytest.mark.parametrize("target", ["x.toml", "shop/x.toml", "other/x.toml"])
def test_init_writes_what_evaluate_reads(
    base: list[str], target: str, shop: Path, tmp_path: Path, run: Any
) -> None:
    (tmp_path / "other").mkdir()
    inputs = ["shop/labels.parquet", "shop/predictions.parquet", *base]
    code, shown, error = run("init", *inputs, "-o", target)
    assert (code, error) == (0, "")
    assert shown == f"wrote {target}; now: rankmill gate {target}\n"
    metrics = ["map@3", "first_hit@3", "recall@3", "ndcg@3", "gap"]
    asked = [word for name in metrics for word in ("-m", name)]
    names = ("metrics", "audit", "queries", "systems")
    found, expected = (
        (numbers(run, "evaluate", *words) for words in ([target], [*inputs, *asked]))
        if not base
        else ({}, {})
    )
    assert [found.get(name) for name in names] == [expected.get(name) for name in names]
    if base:
        assert numbers(run, "compare", target)["baseline"] == "old"
    before = Path(target).read_text()
    code, _, error = run("init", *inputs, "-o", target)
    assert code == 2
    tells(error, [f"{target} exists", "--force"])
    assert run("init", *inputs, "-o", target, "--force")[0] == 0
    assert Path(target).read_text() == before


def test_comments_of_init_are_valid(shop: Path, run: Any) -> None:
    code, text, error = run(
        "init", "shop/labels.parquet", "shop/predictions.parquet", "shop/old.parquet", "-o", "-"
    )
    assert (code, error) == (0, "")
    assert "# parquet, wide, 3 rows: query = user_id, item = item_id, score = score\n" in text
    assert '"map@3 >= 0.42",  # it is 0.444444 today' in text
    assert re.search(
        r'"map@3 drop <= 50% confidence 0.95",  # finds no drop in these data$', text, re.M
    )
    assert tomllib.loads(text)["version"] == 1
    on = tomllib.loads(text)["rules"]
    assert on == ["map@3 drop <= 50% confidence 0.95", "queries_only_labelled <= 37%"]
    head, _, rest = text.partition("# What 'rankmill gate' checks;")
    text = head + re.sub(r"^ *# (?=[\w ]+ = |\")", "", f"#{rest}", flags=re.M)
    found = tomllib.loads(text)
    (shop.parent / "x.toml").write_text(text)
    options = rankmill.config.read_config("x.toml").options
    assert {"rules", "by", "threads", "memory"} <= options.keys()
    rules = parse_rules(found["rules"])
    assert {"map@3", "ndcg@3", "queries"} <= {rule.subject for rule in rules}
    assert (
        "today"
        not in run("init", "shop/labels.parquet", "shop/old.parquet", "-o", "-", "--no-evaluate")[
            1
        ].partition("rules")[2]
    )


def test_two_rules_of_init_are_on_and_kept(shop: Path, run: Any) -> None:
    assert run("init", "shop/labels.parquet", "shop/predictions.parquet")[0] == 0
    rules = tomllib.loads(Path("rankmill.toml").read_text())["rules"]
    assert rules == ["map@3 >= 0.42", "queries_only_labelled <= 37%"]
    assert run("gate", "rankmill.toml")[0] == 0
    assert run("evaluate", "rankmill.toml")[0] == 0
    ids = pa.array([1, 2], pa.uint16())
    bad = pa.table({"user_id": ids, "item_id": [[98], [98]], "score": [[1.0], [0.5]]})
    pq.write_table(bad, "shop/predictions.parquet")
    assert run("gate", "rankmill.toml")[0] == 1
    assert run("init", "shop/labels.parquet", "shop/predictions.parquet", "--force")[0] == 0
    assert tomllib.loads(Path("rankmill.toml").read_text())["rules"][0] == "map@10 > 0"


def test_init_offers_a_rule_for_slices(shop: Path, run: Any) -> None:
    labels = pq.read_table(shop / "labels.parquet")
    country = pa.array(["it"] * labels.num_rows)
    pq.write_table(labels.append_column("country", country), shop / "labels.parquet")
    files = ["shop/labels.parquet", "shop/predictions.parquet", "-o", "-"]
    rule = '  # "map@3[country=*] drop <= 20%",  # '
    assert f"{rule}too few queries in country = it: " in run("init", *files)[1]
    told = run("init", *files, "--no-evaluate")[1]
    assert f"{rule}are its slices large enough?: 'rankmill gate --power' shows" in told


@pytest.mark.parametrize(("queries", "alone", "paired"), [(4000, 20, 10), (40000, 5, 3)])
def test_init_offers_a_limit_that_slices_can_show(
    queries: int,
    alone: int,
    paired: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    run: Any,
) -> None:
    monkeypatch.chdir(tmp_path)
    ids, right = range(queries), [bin(q).count("1") % 3 == 0 for q in range(queries)]
    labels = {"user_id": ids, "items": [[1]] * queries, "stamp": [*map(str, ids)]}
    labels["country"] = [("de", "fr")[q % 2] for q in ids]
    pq.write_table(pa.table(labels), "labels.parquet")
    lists = pa.table({"user_id": ids, "items": [[1] if one else [2] for one in right]})
    pq.write_table(lists, "run.parquet")
    pq.write_table(lists, "old.parquet")
    first = ["init", "labels.parquet", "run.parquet"]
    # A column that does not slice the queries is no reason to end.
    assert "map@10 >= " in run(*first, "-o", "-")[1]
    told = run(*first, "-o", "-", "--by", "country")[1]
    assert f'  # "map@10[country=*] drop <= {alone}%",  # needs a baseline, such as' in told
    assert run(*first, "old.parquet", "--by", "country")[0] == 0
    rules = tomllib.loads(Path("rankmill.toml").read_text())["rules"]
    assert f"map@10[country=*] drop <= {paired}%" in rules
    assert run("gate", "rankmill.toml")[0] == 0


def test_init_writes_date_where_a_name_holds_one(shop: Path, run: Any) -> None:
    files = {
        "labels": "l-20261122",
        "predictions": "2026-11-22/new-2026-11-22",
        "old": "new-2026-11-21",
    }
    Path("2026-11-22").mkdir()
    for name, other in files.items():
        (shop / f"{name}.parquet").rename(f"{other}.parquet")
    names = [f"{name}.parquet" for name in files.values()]
    code, shown, error = run("init", *names[:2])
    assert (code, error) == (0, "")
    assert shown == "wrote rankmill.toml; now: rankmill gate rankmill.toml --date 2026-11-22\n"
    found = tomllib.loads(Path("rankmill.toml").read_text())
    assert found["labels"] == "l-{date:%Y%m%d}.parquet"
    assert found["predictions"] == "{date}/new-{date}.parquet"
    assert "% confidence 0.95 since 2026-11-22" in Path("rankmill.toml").read_text()
    assert run(*shown.split("now: rankmill ")[1].split())[0] == 0
    # Another date than that of the predictions stays, and systems keep their names tomorrow.
    assert run("init", *names, "--force")[0] == 0
    found = tomllib.loads(Path("rankmill.toml").read_text())
    assert found["systems"] == {
        "new": "{date}/new-{date}.parquet",
        "new-2026-11-21": "new-2026-11-21.parquet",
    }
    assert found["baseline"] == "new-2026-11-21"
    assert run("compare", "rankmill.toml", "--date", "2026-11-22")[0] == 0


def test_init_notes_labels_of_another_night(shop: Path, run: Any) -> None:
    for name, day in (("labels", 1), ("predictions", 2), ("old", 1)):
        (shop / f"{name}.parquet").rename(f"{name}-2026-11-0{day}.parquet")
    labels = "labels-2026-11-01.parquet"
    note = "note: the labels are of 2026-11-01, and the predictions of 2026-11-02\n"
    assert run("init", labels, "predictions-2026-11-02.parquet")[::2] == (0, note)
    assert run("init", labels, "old-2026-11-01.parquet", "--force")[::2] == (0, "")


def test_init_names_a_system_by_what_stays_of_its_path(shop: Path, run: Any) -> None:
    """Tomorrow has another folder: neither its date nor its slash is a part of the name."""
    for day in ("2026-11-21", "2026-11-22"):
        Path(day).mkdir()
        pq.write_table(pq.read_table(shop / "old.parquet"), f"{day}/preds.parquet")
    names = ["2026-11-22/preds.parquet", "2026-11-21/preds.parquet"]
    assert run("init", shop / "labels.parquet", *names)[0] == 0
    found = tomllib.loads(Path("rankmill.toml").read_text())
    assert [*found["systems"]] == ["preds", "2026-11-21/preds"]


@pytest.mark.parametrize("target", ["x.toml", "shop/x.toml"])
def test_init_takes_what_slices_the_queries(target: str, shop: Path, run: Any) -> None:
    ids = pq.read_table(shop / "labels.parquet").column("user_id").unique()
    users = pa.table({"user_id": ids, "plan": ["a"] * len(ids)})
    pq.write_table(users, shop / "users.parquet")
    inputs = [f"shop/{name}.parquet" for name in ("labels", "predictions", "old")]
    more = ["--by", "shop/users.parquet", "--by", "label_count", "-o", target]
    assert run("init", *inputs, *more)[0] == 0
    found = tomllib.loads(Path(target).read_text())
    assert found["by"] == [
        "shop/users.parquet" if target == "x.toml" else "users.parquet",
        "label_count",
    ]
    assert len(found["rules"]) == 2
    rule = "map@3[plan=*] drop <= 20%"
    few = f'  # "{rule}",  # too few queries in plan = a: '
    assert few in Path(target).read_text()
    assert "map@3 where plan = a" in run("gate", target, "--rule", rule)[2]
    chosen = ["--by", "shop/users.parquet:plan", "-o", target, "--force"]
    assert run("init", *inputs, *chosen)[0] == 0
    found = tomllib.loads(Path(target).read_text())
    assert found["by"][0].endswith("users.parquet:plan")
    assert few in Path(target).read_text()
    assert "map@3 where plan = a" in run("gate", target, "--rule", rule)[2]
    code, _, error = run("init", *inputs, "--by", "land", "-o", "y.toml")
    assert code == 3
    tells(error, ["no column 'land' for the slices", "--by users.csv"])
    assert not Path("y.toml").exists()


def test_init_writes_the_columns_that_it_was_told(tmp_path: Path, run: Any) -> None:
    labels, predictions = tmp_path / 'the "labels".csv', tmp_path / "p.csv"
    labels.write_text("who,what,stars,land\n1,a,2,it\n2,b,1,fr\n")
    predictions.write_text("who,what,sim\n1,a,0.5\n1,b,0.75\n2,b,0.5\n")
    columns = ["--query", "who", "--item", "what", "--gain", "stars", "--score", "sim"]
    target = tmp_path / "x.toml"
    code, _, error = run("init", labels, predictions, "-o", target, *columns)
    assert (code, error) == (0, "")
    text = target.read_text()
    assert '[columns]\nquery = "who"\nitem = "what"\ngain = "stars"\nscore = "sim"\n' in text
    assert '# by = ["land"]\n' in text
    metrics = ["-m", "map@10,first_hit@10,recall@10,ndcg@10,gap"]
    found = numbers(run, "evaluate", target)
    assert found == numbers(run, "evaluate", labels, predictions, *metrics, *columns)


def test_names_of_columns_do_nothing_in_what_init_writes(tmp_path: Path, run: Any) -> None:
    labels = {"user_id": [1], "item_id": [[1]], 'x"\nlabels = 3 \x1b': [7]}
    pq.write_table(pa.table(labels), tmp_path / "l.parquet")
    pq.write_table(pa.table({"user_id": [1], "it\nem": [[1]]}), tmp_path / "p.parquet")
    target = tmp_path / "x.toml"
    words = (tmp_path / "l.parquet", tmp_path / "p.parquet", "--item", "it\nem")
    code, _, error = run("init", *words, "--label-item", "item_id", "-o", target)
    assert (code, error) == (0, "")
    text = target.read_text()
    assert '# by = ["x\\"\\nlabels = 3 \\u001b"]\n' in text
    assert rankmill.config.read_config(target).options == {
        "metrics": ("map@10", "first_hit@10", "recall@10", "ndcg@10"),
        "item": "it\nem",
        "label_item": "item_id",
        "rules": ("map@10 >= 0.95", "queries_only_labelled <= 1%"),
    }


@pytest.mark.parametrize(
    ("arguments", "code", "wanted"),
    [
        (["shop/labels.parquet", "none.parquet"], (2, 3), ["no such file"]),
        (["shop/labels.parquet", "-"], (2,), ["standard input"]),
        (["shop/labels.parquet", "s3://k:secret@b/x"], (2,), ["credentials", "environment"]),
        (["shop/labels.parquet", "p-{date}.parquet"], (2,), ["fills in"]),
        (
            ["shop/labels.parquet", "shop/old.parquet", "-o", "x.json"],
            (2,),
            ["local file in .toml"],
        ),
        (["shop/labels.parquet", "shop/old.parquet", "-o", "no/x.toml"], (2,), ["no/x.toml"]),
        (["shop/labels.parquet", "shop/old.parquet", "--query", "x"], (3,), ["'x'"]),
    ],
)
def test_init_refuses(
    arguments: list[str], code: tuple[int, ...], wanted: list[str], shop: Path, run: Any
) -> None:
    found, shown, error = run("init", *arguments)
    assert found in code
    assert shown == ""
    tells(error, wanted)
    assert "secret" not in error
    assert not list(shop.parent.glob("*.toml"))
