"""What the files and commands of a new user come to: no number misread, no dead end.

A row is what somebody types, on files as text, and what must come of it. Rows have a number, which
groups them; the tests of each part hold the same in every format, size and order.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from click.shell_completion import ShellComplete
from click.testing import CliRunner
from conftest import tells

import rankmill
from cli_runs import on_a_terminal
from processes import python
from rankmill.cli import COMMANDS, main
from rankmill.errors import install
from rankmill.kernels import cache
from store_server import Files, served

FILES = {
    "l.csv": "query,item\n1,a\n2,b\n",
    "p.csv": "query,item,score\n1,a,0.9\n1,b,0.8\n2,a,0.5\n",
    "p2.csv": "query,item,score\n1,b,0.9\n2,b,0.5\n",
    "by.csv": "query,country\n1,x\n2,y\n",
    "q.txt": "1 0 a 0\n1 0 b 0\n2 0 a 1\n2 0 b 2\n",
    "r.run": "1 Q0 a 0 2 t\n1 Q0 b 0 1 t\n1 Q0 c 0 0.5 t\n2 Q0 a 0 1 t\n2 Q0 c 0 0 t\n",
}
BOTH = "evaluate l.csv p.csv --format csv -m"
TREC = "evaluate q.txt r.run --format csv -m"
OTTO = {
    "l.csv": "session,type,labels\n1,clicks,5\n1,carts,6 7\n2,clicks,8\n",
    "p.csv": "session,type,labels\n1,clicks,5\n1,carts,7 6\n2,clicks,8\n",
    "joined.csv": "session_type,labels\n1_clicks,5\n1_carts,7 6\n2_clicks,8\n",
}
OTTO_NAMES = ("labels", "ground_truth", "truth", "target", "relevant", "label", "item", "item_id")
OTTO_NAMES += ("items", "prediction", "predictions")
MINORITY = "query,items\n" + "".join(f"{i},a{i}{' ' if i % 10 else ';'}b\n" for i in range(1, 41))
FEW = "query,items\n" + "".join(f"{i},a{i}{' ' if i % 900 else ';'}b\n" for i in range(1, 1001))
RETURNS = FILES["l.csv"].replace("\n", "\r\r\n")
LATIN = {
    "l.csv": "query,item\n1,a\n2,\xe9\n".encode("latin-1"),
    "l.tsv": "query\titem\n1\ta\n2\t\xe9\n".encode("latin-1"),
    "l.qrels": "1 0 a 1\n2 0 \xe9 1\n".encode("latin-1"),
    "p.csv": "query,item\n1,a\n2,\xe9\n",
}
ONE_LEVEL = {"q.txt": "2 0 a 1\n"}
PADDED = {"l.csv": "query,item\n1,1\n2,2\n", "p.csv": "query,item\n1,-1\n1,1\n2,2\n2,-1\n"}
ITEMS = {"items.csv": "item\n1\n2\n-1\n"}
DEEP = "[" * 100_000 + "]" * 100_000


def halved(folder: Path) -> None:
    """Write b.parquet with other values than its checksum is of."""
    table = pq.read_table(folder / "b.parquet")
    table = table.set_column(1, "map", pc.divide(table["map"], 2))
    pq.write_table(table, folder / "b.parquet")


def full(folder: Path) -> None:
    (folder / "full.json").symlink_to("/dev/full")


def looped(folder: Path) -> None:
    """Write a history whose only run is a link to itself."""
    (folder / "runs").mkdir()
    (folder / "runs" / "a.parquet").symlink_to("a.parquet")


def strange(folder: Path) -> None:
    """Write a partition whose name is not UTF-8."""
    os.makedirs(os.fsencode(folder) + b"/d/query=\xff")
    Path(os.fsdecode(b"d/query=\xff/a.csv")).write_text("item\na\n")


def nested(folder: Path) -> None:
    (folder / "runs" / "a.parquet").mkdir(parents=True)


class Typed(NamedTuple):
    """What is typed: the exit code of the last command, and texts that it shows ("this|or that").

    A text that begins with "no: " must not stand there.
    """

    point: int
    commands: str | tuple[str | Callable[[Path], None], ...]
    code: int
    shown: list[str]
    files: Mapping[str, str | bytes] = MappingProxyType({})


def otto(name: str) -> Typed:
    files: dict[str, str | bytes] = {"l.csv": OTTO["l.csv"].replace("labels", name)}
    asked = ["l.csv", "(column '", "'6 7'", "may be one item", "csv-long", "--query session,OTHER"]
    return Typed(1, f"{BOTH} recall@20", 3, asked, OTTO | files)


JOINED = "evaluate l.csv joined.csv --format csv -m recall@20 --query session_type --label-query"
BASELINE = "gate l.csv p.csv --rule 'map drop <= 50% confidence none' --baseline"
TYPED = [
    *map(otto, OTTO_NAMES),
    Typed(1, f"{BOTH} recall@20 --query session,type", 0, ["recall@20,1.0,"], OTTO),
    Typed(1, "head l.csv --query session,type", 0, ["1,carts       2  6, 7"], OTTO),
    Typed(1, f"{JOINED} '{{session}}_{{type}}'", 0, ["recall@20,1.0,"], OTTO),
    # 2: a guess about text is a claim about all rows.
    *(
        Typed(2, how, 3, ["'a10;b' by semicolons", "4 of 40 cells"], {"l.csv": MINORITY})
        for how in (f"{BOTH} map", f"{BOTH} map --labels-as csv-wide", "head l.csv")
    ),
    Typed(
        2,
        "evaluate l.csv l.csv -m map",
        3,
        ["'a900;b' by semicolons", "1 of 1,000 cells"],
        {"l.csv": FEW},
    ),
    Typed(2, f"{BOTH} map --labels-as csv-spaces", 0, ["map,0.00625,"], {"l.csv": MINORITY}),
    Typed(2, f"{BOTH} map", 0, ["map,0.5,"], {"l.csv": RETURNS}),
    Typed(
        2,
        f"{BOTH} map --labels-as csv-long",
        3,
        ["line 2", "spaces precede a quote", "write no spaces"],
        {"l.csv": 'query,item\n1, "a"\n2, "b"\n'},
    ),
    Typed(
        2,
        f"{BOTH} map",
        3,
        [
            "(column 'item')",
            "'red;blue' may be one item, or a list of items separated by semi",
        ],
        {"l.csv": "query,item\n" + "".join(f"{i},a\n" for i in range(100_000)) + "q,red;blue\n"},
    ),
    # 3: text that is not UTF-8.
    *(
        Typed(3, command, 3, [name, f"line {line}", f"byte {byte} is 0xe9", "--encoding"], LATIN)
        for name, line, byte in (("l.csv", 3, 3), ("l.tsv", 3, 3), ("l.qrels", 2, 5))
        for command in (f"evaluate {name} p.csv -m map", f"convert {name} o.parquet --labels")
    ),
    *(
        Typed(3, f"evaluate {name} p.csv --format csv -m map {as_} latin-1", 0, ["map,1.0"], LATIN)
        for name in ("l.csv", "l.tsv", "l.qrels")
        for as_ in ("--label-encoding",)
    ),
    Typed(3, ("convert l.csv o.parquet --encoding latin-1", "head o.parquet"), 0, ["\xe9"], LATIN),
    # 4: comments, and fields behind the tag.
    Typed(4, f"{TREC} map", 0, ["map,1.0,"], {"q.txt": "# TREC track 2024\n2 0 a 1\n"}),
    Typed(
        4,
        "evaluate q.txt r.run -m map",
        0,
        ["comment_lines           1"],
        {"q.txt": "# TREC track 2024\n2 0 a 1\n"},
    ),
    Typed(4, f"{TREC} map", 0, ["map,0.5,"], {"r.run": "2 Q0 a 0 1 tag more of it\n"}),
    # 5: two programs called trec_eval. At R = 2, recall 0.3 is a label in both, 0.7 is two or one.
    Typed(5, f"{TREC} iprec@0.6 --preset trec_eval", 0, ["iprec@0.6,0.0,"]),
    Typed(5, f"{TREC} iprec@0.6 --preset trec_eval-10", 0, ["iprec@0.6,0.5,"]),
    Typed(5, f"{TREC} 11pt_avg --preset trec_eval", 0, ["11pt_avg,0.2727272727272727,"]),
    Typed(5, f"{TREC} 11pt_avg --preset trec_eval-10", 0, ["11pt_avg,0.36363636363636365,"]),
    *(
        Typed(5, f"{TREC} {name} --preset trec_eval", 2, [name, "choose the preset trec_eval-10"])
        for name in ("rbp", "rbp_resid", "unj_5")
    ),
    Typed(5, f"{TREC} graded_rbp,unj_5 --preset trec_eval-10", 0, ["unj_5,0.2,"]),
    *(
        Typed(5, f"{TREC} {name}:sum --preset trec_eval", 0, [f"{name}:sum,{value}.0,"])
        for name, value in (("num_ret", 5), ("utility", -3), ("num_nonrel_judged_ret", 2))
    ),
    Typed(5, f"{TREC} num_rel:sum --judged-only --preset trec_eval", 0, ["num_rel:sum,2.0,"]),
    *(
        Typed(5, f"{TREC} Rndcg {level} --preset trec_eval", 0, [f",{value},"], ONE_LEVEL)
        for level, value in (("", "1.0"), ("--rel 2", "0.0"))
    ),
    Typed(  # half of (3 + 4.5 / log2(3)) / (9 + 4.5 / log2(3) + 3 / 2)
        5,
        f"{TREC} ndcg --gain-map 1=3,2=9,4=4.5 --preset trec_eval",
        0,
        ["ndcg,0.218873356074"],
        {"q.txt": FILES["q.txt"] + "2 0 c 4\n"},
    ),
    Typed(
        5,
        "evaluate q.txt r.run -m infap,iprec@0.3 --preset trec_eval",
        0,
        ["infap", "no: as defined here"],
    ),
    # 6: the same name, another number.
    Typed(6, f"{BOTH} accuracy@10 --preset rectools", 2, ["RecTools", "type auc"]),
    Typed(6, f"{BOTH} 'SetF(beta=0.5)'", 2, ["squared", "type set_f(beta=0.7071067811865476)"]),
    Typed(6, f"{BOTH} ShannonEntropy@2", 2, ["RecBole", "nats", "type entropy@10"]),
    Typed(6, f"{BOTH} GiniIndex@2", 2, ["RecBole", "gini(of=N)@10"]),
    Typed(6, f"{BOTH} gini@2,gini(of=N)@2", 0, ["gini@2,0.33333", "gini(of=N)@2,0.16666"]),
    Typed(6, f"{BOTH} ndcg@10 --preset lenskit", 2, ["first two ranks", "ndcg_cut_10"]),
    Typed(
        6,
        "evaluate l.csv p.csv --preset lenskit",
        0,
        ["recall@10     0.5", "ndcg@10 is left out: in LensKit"],
    ),
    Typed(6, f"{BOTH} 'nDCG(dcg=\"exp-log2\")@10'", 0, ["nDCG(gain=exp)@10,"]),
    Typed(6, f"{BOTH} 'Compat(p=0.8)'", 0, ["Compat(p=0.8),"]),
    Typed(6, f"{BOTH} 'Accuracy@5'", 2, ["accuracy is not a metric here", "are not computed"]),
    # 7: -1 is often no item.
    Typed(7, "evaluate l.csv p.csv -m map", 0, ["end in the item -1", "--padding -1"], PADDED),
    Typed(7, f"{BOTH} map", 0, ["map,0.75,"], PADDED),
    Typed(7, f"{BOTH} map --padding -1", 0, ["map,1.0,"], PADDED),
    Typed(7, f"{BOTH} coverage@2 --items items.csv --padding -1", 0, ["@2,1.0,"], PADDED | ITEMS),
    # 8: what was written and changed since.
    Typed(
        8,
        (f"{BOTH} map --per-query b.parquet", halved, f"{BASELINE} b.parquet"),
        3,
        ["b.parquet", "does not match its checksum"],
    ),
    # 10: no output over an input.
    Typed(10, "evaluate l.csv p.csv -m map -o l.csv", 2, ["l.csv", "one of the inputs"]),
    Typed(10, "compare l.csv p.csv p2.csv --by by.csv -o by.csv", 2, ["by.csv", "of the inputs"]),
    Typed(10, ("init l.csv p.csv -o a.toml", "gate a.toml -o a.toml"), 2, ["one of the inputs"]),
    Typed(
        10,
        f"{BOTH} coverage@2 --items items.csv --per-query items.csv",
        2,
        ["items.csv", "one of the inputs"],
        ITEMS,
    ),
    # 11: an output is what its suffix says.
    Typed(11, f"{BOTH} map --per-query v.txt", 2, ["v.txt", ".parquet, .csv, .jsonl"]),
    Typed(11, f"{BOTH} map --per-query -", 2, ["standard output", ".parquet"]),
    Typed(11, "gate l.csv p.csv --rule 'map >= 0.1' -o o.md --json -", 0, ['"word": "held"']),
    *(
        Typed(11, f"{asked} {output} r.xyz", 2, ["r.xyz", ".html" if "p" in output else ".md"])
        for asked, outputs in {
            "evaluate l.csv p.csv -m map": ("-o", "--report"),
            "compare l.csv p.csv p2.csv -m map": ("-o", "--report"),
            "gate l.csv p.csv --rule 'map >= 0.1'": ("-o", "--report"),
            "explain l.csv p.csv -m map --query-id 1": ("-o",),
        }.items()
        for output in outputs
    ),
    Typed(
        11,
        (f"{BOTH} map --per-query v.arrow", f"{BASELINE} v.arrow"),
        0,
        ["held"],
    ),
    # 12: one boundary for the data of others.
    Typed(12, (full, f"{BOTH} map -o full.json"), 4, ["no room left on disk"]),
    *(
        Typed(12, f"{BASELINE} b.json", 3, ["b.json"], {"b.json": text})
        for text in (DEEP, "{", '{"metrics": 3}', '{"metrics": {"map": 0.9}}', "[]", "\x00")
    ),
    *(Typed(12, (how, "history runs"), 3, ["a.parquet"]) for how in (looped, nested)),
    Typed(
        12,
        f"{BOTH} map",
        3,
        ["l.csv", "line 2", "expected a list"],
        {"l.csv": f'query,items\n1,"{DEEP}"\n'},
    ),
    Typed(
        12,
        "evaluate l.jsonl p.csv -m map",
        3,
        ["l.jsonl", "row 0", "valid Unicode"],
        {"l.jsonl": '{"query": 1, "item": "\\ud800"}\n'},
    ),
    Typed(12, f"{BOTH} map", 0, ["map,0.5,"], {"p.csv": "query,item,score\n1,a,1e-320\n"}),
    Typed(12, (strange, "evaluate d p.csv -m map"), 3, ["name of its folder", "not UTF-8"]),
    Typed(
        12,
        "evaluate p.csv p.csv -m map",
        3,
        ["p.csv", "line 1", "byte 3 is 0xff"],
        {"p.csv": b"qu\xffery,item\n1,a\n"},
    ),
    Typed(
        12,
        f"{BOTH} map",
        3,
        ["l.csv", "no column looks like the query"],
        {"l.csv": ",".join(f"c{i}" for i in range(60_000)) + "\n" * 3000},
    ),
    # 14: what a first file holds.
    Typed(
        14,
        f"{BOTH} map",
        0,
        ["map,1.0,"],
        {
            "l.csv": "query,item_id\n1,5\n",
            "p.csv": "query,item_id,prediction\n1,7,0.25\n1,5,0.5\n",
        },
    ),
    Typed(
        14,
        f"{BOTH} map",
        3,
        ["p.csv", "line 4", "'abc'", "expected a number"],
        {"p.csv": "query,item,score\n1,a,0.5\n1,b,0.25\n2,a,abc\n"},
    ),
    # 15: few words, and those that help.
    Typed(15, f"{BOTH} mpa@10", 2, ["did you mean map@10 ", "'rankmill metrics' lists all"]),
    Typed(15, f"{BOTH} zzz", 2, ["'rankmill metrics' lists all", "no: ndcg"]),
    Typed(15, "metrics ndcg", 0, ["dcg@k / the dcg@k of the labels", "no: map["]),
    Typed(15, "report l.csv p.csv", 0, ["h2, h3, .lead, .points, thead { break-after: avoid"]),
    Typed(
        15,
        "head l.csv",
        0,
        ["of the first 1 row", "no: 1 rows", "no: 1 queries"],
        {"l.csv": "query,item\n1,a\n"},
    ),
    # 16: beside the numbers.
    *(Typed(16, f"{name} --help", 0, ["--quiet"]) for name in COMMANDS),
    Typed(16, "trec_eval --help", 0, ["-q            print each query too", "-Z FILE"]),
    Typed(16, f"{BOTH} map --quiet", 0, ["map,0.5,"]),
    Typed(16, f"{TREC} map,num_q,runid --preset trec_eval", 0, ["map,0.25,"]),
    Typed(
        16,
        "evaluate q.txt r.run -m map,num_q,runid --preset trec_eval",
        0,
        ["num_q is left out", "runid is left out"],
    ),
    Typed(16, f"{TREC} map,num_q", 2, ["num_q", "queries"]),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(FILES)
    return tmp_path


def write(files: Any) -> None:
    for name, text in files.items():
        Path(name).write_bytes(text if isinstance(text, bytes) else text.encode())


def shown_as(row: Typed) -> str:
    last = [one for one in (row.commands,) if isinstance(one, str)] or row.commands[-1:]
    return re.sub(r"[^\w@.-]+", " ", f"{row.point} {last[0]}")


@pytest.mark.rows(60)
@pytest.mark.parametrize("row", TYPED, ids=map(shown_as, TYPED))
def test_what_is_typed(row: Typed, folder: Path, run: Any) -> None:
    write(row.files)
    before = set(os.listdir())
    *earlier, last = [row.commands] if isinstance(row.commands, str) else row.commands
    for step in earlier:
        if isinstance(step, str):
            code, _, err = run(*shlex.split(step))
            assert code == 0, err
        else:
            step(folder)
    before = set(os.listdir())
    assert isinstance(last, str)
    code, out, err = run(*shlex.split(last))
    assert code == row.code, out + err
    told = tells(out + err, [one for one in row.shown if not one.startswith("no: ")])
    assert not [one for one in row.shown if one.startswith("no: ") and one[4:] in told]
    if code:
        assert set(os.listdir()) == before


# ------------------------------------------------------------------ from Python

LABELS = {1: ["a"], 2: ["b"]}
LISTS = {1: ["a", "b"], 2: ["a"]}
OTTO_LABELS = pa.table({"session": [1, 1], "type": ["clicks", "carts"], "items": [["5"], ["6"]]})


def message(call: Callable[[], Any]) -> str:
    with pytest.raises(rankmill.RankmillError) as caught:
        call()
    return tells(caught.value, []) and str(caught.value)


def changed_state() -> str:
    row = rankmill.parts.evaluate_part(LABELS, LISTS, "map").to_row()
    name = next(one for one in row if one.endswith("total") or one.endswith("queries"))
    return message(lambda: rankmill.parts.State.from_row(row | {name: row[name] * 2 + 1}))


def changed_values() -> str:
    values = rankmill.evaluate(LABELS, LISTS, "map", per_query=True).per_query
    pq.write_table(values.set_column(1, "map", pa.array([0.5, 0.5])), "v.parquet")
    return message(lambda: rankmill.gate(LABELS, LISTS, "map drop <= 9%", baseline="v.parquet"))


def refused_cache() -> str:
    folder = Path("cache")
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(RuntimeError) as caught:
        cache.check_folder(str(folder.resolve()), "")
    return str(caught.value)


def dripped() -> str:
    with served(Files(Path.cwd())) as web, pytest.MonkeyPatch.context() as patch:
        patch.setattr("rankmill.io.stores.fsspec_files.WHOLE_SECONDS", 0.2)
        web.pause = 0.05
        return message(lambda: rankmill.evaluate(f"{web.url}/l.csv", LISTS, "map"))


def by_series(index: str | None) -> str:
    """What comes of groups in a Series whose index may be query ids."""
    by = pd.Series(["x", "y"], index=pd.Index([1, 2], name=index), name="country")
    call = lambda: rankmill.compare(LABELS, {"a": LISTS, "b": LABELS}, "map", by=by)  # noqa: E731
    return repr(call()) if index else message(call)


def written(suffix: str) -> bytes:
    """The first bytes of the values of queries in a file with a suffix."""
    asked = [*shlex.split(f"{BOTH} map --per-query"), f"v.{suffix}"]
    assert CliRunner().invoke(main, asked).exit_code == 0
    return Path(f"v.{suffix}").read_bytes()[:4]


def completed(*words: str) -> set[str]:
    *typed, begun = words
    complete = ShellComplete(main, {}, "rankmill", "_RANKMILL_COMPLETE")
    return {one.value for one in complete.get_completions(typed, begun)}


def extras_told() -> list[str]:
    """The places in the source and the pages that install an extra of what no index has."""
    source = Path(rankmill.__file__).parent
    pages = [*source.rglob("*.py"), *source.rglob("*.md")]
    return [str(one) for one in pages if re.search(r"install '?rankmill\[", one.read_text())]


def without_pyarrow() -> str:
    """What the command says where pyarrow cannot be imported, as beside NumPy 1."""
    code = "import sys; sys.modules['pyarrow'] = None; from rankmill.cli import main; main()"
    answer = python(code, "evaluate", "l.csv", "p.csv")
    assert (answer.returncode, answer.stderr.count("\n")) == (2, 1)
    return answer.stderr


def at_a_terminal() -> str:
    code = "from rankmill.cli import main; main(['report', 'l.csv', 'p.csv'])"
    return " ".join(on_a_terminal(code, 200))


def drawn() -> Any:
    return rankmill.compare(LABELS, {"a": LISTS, "b": LABELS}, "map").plot()._repr_svg_()[:4]


def composite() -> Any:
    found = rankmill.evaluate(
        rankmill.Labels(OTTO_LABELS, query=["session", "type"]),
        rankmill.Predictions(OTTO_LABELS, query=["session", "type"]),
        "map",
    )
    return found.per_query.to_pydict()


def reported() -> str:
    shown: list[tuple[int, int | None]] = []
    rankmill.evaluate(LABELS, LISTS, "map", progress=lambda *at: shown.append(at))
    return str(shown[-1])


CALLED: list[tuple[int, Callable[[], Any], Any]] = [
    (1, composite, {"session,type": ["1,clicks", "1,carts"], "map": [1.0, 1.0]}),
    (
        7,
        lambda: rankmill.evaluate(
            rankmill.Labels({1: [5]}, padding=-1),
            rankmill.Predictions({1: [-1, 5]}, padding=-1),
            "map",
        )["map"],
        1.0,
    ),
    (
        1,
        lambda: message(
            lambda: rankmill.evaluate(
                rankmill.Labels(LABELS, query=[]), rankmill.Predictions(LISTS, query=[]), "map"
            )
        ),
        ["query"],
    ),
    (8, changed_state, ["checksum|not as"]),
    (8, changed_values, ["v.parquet does not hold the values"]),
    (9, refused_cache, ["can be written by everybody"]),
    *(
        (11, partial(written, suffix), begins)
        for suffix, begins in {
            "csv": b"quer",
            "jsonl": b'{"qu',
            "arrow": b"ARRO",
            "parquet": b"PAR1",
        }.items()
    ),
    (12, dripped, ["l.csv", "too slow"]),
    (13, lambda: install("torch"), ["pip install './rankmill[torch]'|.[torch]", "checkout"]),
    (13, extras_told, []),
    (14, without_pyarrow, ["cannot be loaded"]),
    (14, lambda: by_series(None), ["the Series 'country'", "rename_axis('query')"]),
    (14, lambda: by_series("query"), ["country", "x", "y"]),
    (
        14,
        lambda: message(
            lambda: rankmill.evaluate(LABELS, scipy.sparse.csr_matrix(np.eye(2)), "map")
        ),
        ["predictions are lists without query ids"],
    ),
    (
        14,
        lambda: message(lambda: rankmill.evaluate(LABELS, np.array([[0.5, 0.25]]), "map")),
        ["contains floats"],
    ),
    (15, lambda: rankmill.evaluate_runs(LABELS, {"a": LISTS}, "map")._repr_html_(), ["<table"]),
    (15, lambda: {"sys", "annotations", "ModuleType"} & {*dir(rankmill)}, set()),
    (
        15,
        lambda: message(lambda: rankmill.gate(LABELS, LISTS, "map drop <= 9%")),
        ["baseline="],
    ),
    (
        15,
        lambda: rankmill.evaluate(LABELS, LISTS, "map") == rankmill.evaluate(LABELS, LISTS, "map"),
        True,
    ),
    (15, at_a_terminal, ["-o|--output"]),
    (15, drawn, "<svg"),
    (16, reported, ["(2, 2)"]),
    (16, partial(completed, "evaluate", "a", "b", "-m", "iprec_"), {"iprec_avg"}),
    (16, partial(completed, "gate", "a", "b", "--preset", "rect"), {"rectools"}),
    (16, partial(completed, "docs", "met"), {"metrics"}),
]


@pytest.mark.parametrize(
    ("call", "wanted"),
    [one[1:] for one in CALLED],
    ids=[f"{point} {getattr(call, '__name__', '')}" for point, call, _ in CALLED],
)
def test_what_is_called(call: Callable[[], Any], wanted: Any, folder: Path) -> None:
    found = call()
    if isinstance(wanted, list) and wanted:
        tells(found, wanted)
    else:
        assert found == wanted


@pytest.mark.small
def test_every_point_has_a_row() -> None:
    assert {row.point for row in TYPED} | {one[0] for one in CALLED} == {*range(1, 17)}


def test_swapped_sides_and_labels_given_to_head_are_asked_about(tmp_path: Path, run: Any) -> None:
    """A column of scores is found as the gain of what is given as labels."""
    scored = pa.table({"user": [1, 1, 2], "item": [5, 6, 5], "score": [0.5, 0.25, 0.75]})
    rated = pa.table({"user": [1, 2], "item": [5, 5], "rating": [5, 3]})
    for name, one in {"run.parquet": scored, "gold.parquet": rated}.items():
        pq.write_table(one, tmp_path / name)
    files = tmp_path / "run.parquet", tmp_path / "gold.parquet"
    code, _, error = run("evaluate", *files, "-m", "map")
    assert (code, "did you swap labels and predictions?" in error) == (3, True)
    code, shown, _ = run("evaluate", *files, "-m", "map", "--score", "rating")
    assert (code, "did you swap labels and predictions?" in shown) == (0, True)
    assert "did you swap" not in run("evaluate", *reversed(files), "-m", "map")[1]
    # A submission as labels has full lists, and a solution as predictions hardly any.
    rows = "".join(f"u{i},{' '.join(f'i{i + j}' for j in range(12))}\n" for i in range(12))
    (tmp_path / "mine.csv").write_text(f"user,items\n{rows}")
    rows = "".join(f"u{i},{' '.join(f'i{j}' for j in range(1 + i % 3))}\n" for i in range(12))
    (tmp_path / "truth.csv").write_text(f"user,items\n{rows}")
    lists = tmp_path / "mine.csv", tmp_path / "truth.csv"
    shown = run("evaluate", *lists, "-m", "map@12")[1]
    assert "mine.csv has 12 labels, and most of " in shown
    assert "did you swap labels and predictions?" in shown
    assert "did you swap" not in run("evaluate", *reversed(lists), "-m", "map@12")[1]
    # Ranks and scores in the labels, and none in the predictions.
    ranked = pa.table({"user": [1, 1, 2], "item": [5, 6, 5], "score": [3, 2, 4], "rank": [1, 2, 1]})
    bought = pa.table({"user": [1, 2], "item": [5, 6]})
    for name, one in {"ranked.parquet": ranked, "bought.parquet": bought}.items():
        pq.write_table(one, tmp_path / name)
    both = tmp_path / "ranked.parquet", tmp_path / "bought.parquet"
    shown = run("evaluate", *both, "-m", "map")[1]
    assert "ranked.parquet are its 'score', as of predictions" in shown
    assert "did you swap labels and predictions?" in shown
    for sides in (both[::-1], (tmp_path / "gold.parquet", both[1])):
        assert "did you swap" not in run("evaluate", *sides, "-m", "map")[1]
    # Transactions with a price in place of the predictions are refused, and both sides asked about.
    rows = "".join(f"2020-09-17,u{i},i{i},0.07631\n" for i in range(12))
    (tmp_path / "week.csv").write_text(f"t_dat,user,article,price\n{rows}")
    code, _, error = run("evaluate", lists[0], tmp_path / "week.csv", "-m", "map@12")
    assert code == 3
    assert "the columns are t_dat (text), user (text), " in error
    assert "mine.csv has 12 labels: did you swap labels and predictions?" in error
    code, _, error = run("evaluate", lists[1], tmp_path / "week.csv", "-m", "map@12")
    assert (code, "did you swap" in error) == (3, False)
    code, _, error = run("head", files[1])
    assert (code, "if these are labels, use --labels" in error) == (3, True)
    shown = run("head", files[1], "--labels", "--binary")
    assert shown[0] == 0


def test_public_functions_name_what_they_take() -> None:
    import inspect

    for function in (rankmill.evaluate, rankmill.compare, rankmill.explain, rankmill.convert):
        kinds = {
            name: one.annotation for name, one in inspect.signature(function).parameters.items()
        }
        taken = {kinds.get(name) for name in ("labels", "predictions", "source")} - {None}
        assert taken <= {"LabelsLike", "PredictionsLike", "LabelsLike | PredictionsLike"}
