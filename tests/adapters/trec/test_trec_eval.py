"""`rankmill trec_eval` prints the bytes of trec_eval: those recorded, and those of its program."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from repository import ROOT
from trec_files import random_flags, random_sides, write_sides

BESIDE_CHECKOUT = ROOT.parent / "shared" / "data" / "trec_eval"
CASES = Path(os.environ.get("RANKMILL_TREC_EVAL") or BESIDE_CHECKOUT)


def cases() -> Iterator[Any]:
    """The flags, the files and the output of each case and version that did not end in an error."""
    if not (CASES / "cases.json").is_file():
        why = f"no outputs of trec_eval in {CASES}; RANKMILL_TREC_EVAL names their folder"
        yield pytest.param({}, "9", marks=pytest.mark.skip(reason=why))
        return
    for number, case in enumerate(json.loads((CASES / "cases.json").read_text())):
        for version in ("9", "10"):
            if "stdout" in case[version]:
                yield pytest.param(case, version, id=f"{number}-{version}")


@pytest.mark.small
@pytest.mark.parametrize(("case", "version"), [*cases()])
def test_the_bytes_of_trec_eval(case: dict[str, Any], version: str, run_cli: Any) -> None:
    files = (CASES / case["qrels"], CASES / case["run"])
    outcome = run_cli("trec_eval", "--as", version, *case["flags"], *files)
    assert outcome.stderr == ""
    assert outcome.stdout == (CASES / case[version]["stdout"]).read_text()


@pytest.mark.long
@pytest.mark.parametrize("version", ["9", "10"])
def test_the_bytes_of_its_program_on_random_files(
    version: str, tmp_path: Path, run_cli: Any
) -> None:
    program = os.environ.get(f"RANKMILL_TREC_EVAL_{version}")
    if not program:
        pytest.skip(f"RANKMILL_TREC_EVAL_{version} names a program that is trec_eval {version}")
    compared = 0
    for seed in range(300):
        rng = Random(seed)
        files = write_sides(tmp_path, *random_sides(rng), rng)
        flags = random_flags(rng)
        ran = subprocess.run([program, *flags, *files], capture_output=True, check=False)
        if ran.returncode:  # it crashes now and then
            continue
        outcome = run_cli("trec_eval", "--as", version, *flags, *files)
        assert outcome.stdout == ran.stdout.decode(), flags
        compared += 1
    assert compared > 200


QRELS = "1 0 a 2\n1 0 b 0\n1 0 p -1\n2 0 a 1\n3 0 c 1\n"
RUN = "2 Q0 b 1 1 old\n1 Q0 u 1 0.9 x\n1 Q0 a 2 0.8 x\n1 Q0 p 3 0.7 bm25\n9 Q0 a 1 1 bm25\n"


@pytest.fixture
def print_it(tmp_path: Path, run_cli: Any) -> Callable[..., Any]:
    """Print what trec_eval prints about the files above."""
    (tmp_path / "qrels").write_text(QRELS)
    (tmp_path / "run").write_text(RUN)
    return lambda *flags: run_cli("trec_eval", *flags, tmp_path / "qrels", tmp_path / "run")


@pytest.mark.small
def test_lines_by_hand(print_it: Any) -> None:
    asked = ("-qm", "map", "-m", "num_rel", "-mrunid", "-m", "relstring", "--measure", "gm_map")
    lines = [
        *("num_rel               \t1\t1", "map                   \t1\t0.5000"),
        "relstring             \t1\t'-2.'",
        *("num_rel               \t2\t1", "map                   \t2\t0.0000"),
        *("relstring             \t2\t'-'", "runid                 \tall\tbm25"),
        *("num_rel               \tall\t2", "map                   \tall\t0.2500"),
        "gm_map                \tall\t0.0022",
    ]
    assert print_it(*asked).stdout.splitlines() == lines
    complete = print_it("-c", "-m", "map", "-m", "num_rel").stdout.splitlines()
    assert complete == ["num_rel               \tall\t3", "map                   \tall\t0.1667"]
    assert print_it("-n", "-m", "map").stdout == ""
    one = print_it("-D", "0.2", "-q", "-m", "map", "-n").stdout
    assert one == "map                   \t2\t0.0000\n"


@pytest.mark.small
def test_ids_are_what_is_written(tmp_path: Path, run_cli: Any) -> None:
    """Words for a missing value are ids, and 7.0 is not 7."""
    (tmp_path / "qrels").write_text("nan 0 7 1\nnan 0 null 1\nnan 0 NA 1\n")
    (tmp_path / "run").write_text("nan Q0 null 1 3 x\nnan Q0 7.0 2 2 x\nnan Q0 7 3 1 x\n")
    asked = ("-n", "-q", "-m", "num_rel_ret", "-m", "map")
    lines = run_cli("trec_eval", *asked, tmp_path / "qrels", tmp_path / "run").stdout.splitlines()
    assert lines == ["num_rel_ret           \tnan\t2", "map                   \tnan\t0.5556"]


@pytest.mark.small
def test_the_name_of_a_run_that_is_compressed_or_piped(tmp_path: Path, run_cli: Any) -> None:
    (tmp_path / "qrels").write_text(QRELS)
    (tmp_path / "run.gz").write_bytes(gzip.compress(f"{RUN}\n".encode()))
    read, write = os.pipe()
    os.write(write, RUN.encode())
    os.close(write)
    for run in (tmp_path / "run.gz", f"/dev/fd/{read}"):
        assert run_cli("trec_eval", tmp_path / "qrels", run).stdout.split()[2] == "bm25"
    os.close(read)


@pytest.mark.small
def test_qrels_without_a_line(tmp_path: Path, run_cli: Any) -> None:
    (tmp_path / "qrels").write_text("\n")
    (tmp_path / "run").write_text(RUN)
    outcome = run_cli("trec_eval", tmp_path / "qrels", tmp_path / "run")
    assert (outcome.exit_code, outcome.stdout) == (3, "")
    assert "no query is in both" in outcome.stderr


@pytest.mark.small
def test_a_list_that_is_left_empty(print_it: Any) -> None:
    """trec_eval divides 0 by 0 at recall 0, and C prints that with its sign."""
    told = print_it("-J", "-D", "0.2", "-m", "iprec_at_recall.0,0.5", "-m", "num_ret").stdout
    assert told.splitlines() == [
        *("num_ret               \tall\t0", "iprec_at_recall_0.00  \tall\t  -nan"),
        "iprec_at_recall_0.50  \tall\t0.0000",
    ]


@pytest.mark.small
def test_sums_are_taken_in_the_order_of_the_topics(tmp_path: Path, run_cli: Any) -> None:
    """The mean of these is 0.46875, of which the sum that trec_eval takes falls just short."""
    found = "55202403452110520512123001510454"
    topics = [(f"{number:02}", int(hits)) for number, hits in enumerate(found)]
    qrels = (f"{q} 0 d{n} {int(n < hits)}\n" for q, hits in topics for n in range(5))
    run = (f"{q} Q0 d{n} 1 {9 - n} x\n" for q, _ in topics for n in range(5))
    (tmp_path / "qrels").write_text("".join(qrels))
    (tmp_path / "run").write_text("".join(run))
    told = run_cli("trec_eval", "-m", "P.5", tmp_path / "qrels", tmp_path / "run").stdout
    assert told == "P_5                   \tall\t0.4687\n"


@pytest.mark.small
def test_zscores(print_it: Any, tmp_path: Path) -> None:
    (tmp_path / "means").write_text("1 map 0.25 0.5\n2 map 0 0\n")
    lines = print_it("-q", "-Z", tmp_path / "means", "-m", "map", "-m", "num_ret").stdout
    assert lines.splitlines() == [
        *("Znum_ret               \t1\t-1000000.0000", "Zmap                   \t1\t0.5000"),
        *("Znum_ret               \t2\t-1000000.0000", "Zmap                   \t2\t0.0000"),
        *("Znum_ret               \tall\t-2000000.0000", "Zmap                   \tall\t0.2500"),
    ]


@pytest.mark.small
@pytest.mark.parametrize(
    ("flags", "code", "told"),
    [
        (["-x"], 2, "option -x not recognized"),
        (["--sorted"], 2, "option --sorted not recognized"),
        (["-m", "nope"], 2, "trec_eval has no measure 'nope'"),
        (["-m", "rbp"], 2, "trec_eval has no measure 'rbp'"),
        (["-m", "P."], 2, "no measure 'P.'"),
        (["-m", "P.5,5"], 2, "expected distinct numbers"),
        (["-m", "P.0"], 2, "cutoffs from 1"),
        (["-m", "P.a"], 2, "P is given 'a'; expected an integer"),
        (["-m", "utility.1"], 2, "expected four numbers"),
        (["-m", "ndcg.x=1"], 2, "'x=1' is not one of its parameters"),
        (["-R", "other"], 2, "-R is 'other'; expected qrels"),
        (["-R", "prefs"], 2, "preferences are gone: use the program trec_eval for -R prefs"),
        (["-R", "qrels_prefs"], 2, "preferences are gone: use the program trec_eval"),
        (["-R", "qrels_jg"], 2, "qrels of several judges are gone: use the program trec_eval"),
        (["-m", "all_prefs"], 2, "preferences are gone: use the program trec_eval"),
        (["-m", "prefs_simp"], 2, "preferences are gone: use the program trec_eval"),
        (["-m", "P_avgjg.5"], 2, "qrels of several judges are gone: use the program trec_eval"),
        (["-T", "tsv"], 2, "-T is 'tsv'; expected trec_results"),
        (["-l", "x"], 2, "-l is 'x'; expected an integer"),
        (["-D", "3"], 2, "-D 3 shows how trec_eval works inside"),
        (["--as", "8"], 2, "'8' is not one of '9', '10'"),
        (["--as", "10"], 3, "has no query 3 of"),
        (["-D", "0.7"], 3, "no query is in both"),
        (["-M", "²"], 2, "-M is '²'; expected an integer"),
        (["-N", "9" * 20, "-m", "utility"], 2, "expected an integer from 0, of 18 digits"),
        (["-m", "ndcg.²=3"], 2, "'²=3' is not one of its parameters"),
        (["-m", f"ndcg.{'9' * 400}=3"], 2, "is not one of its parameters"),
        (["-m", "ndcg.1=inf"], 2, "ndcg is given 'inf'; expected a number"),
        (["-m", "relstring.nan"], 2, "relstring is given 'nan'; expected a number"),
        (["-Z", "nowhere"], 3, "nowhere cannot be read: No such file"),
        (["more"], 2, "takes two files"),
    ],
)
def test_what_is_refused(flags: list[str], code: int, told: str, print_it: Any) -> None:
    outcome = print_it(*flags)
    assert (outcome.exit_code, outcome.stdout) == (code, "")
    assert told in outcome.stderr


@pytest.mark.parametrize(
    ("qrels", "run"),
    [
        ("q1 0 a 1\nq1 0 a 0\n", "q1 Q0 a 1 2.0 r\n"),
        ("q1 0 a 1\n", "q1 Q0 a 1 2.0 r\nq1 Q0 a 2 1.0 r\n"),
        ("q1 0 a 1\n", "q1 Q0 a 1\n"),
        ("q1 0 a 1\n", "q1 Q0 a 1 2.0\n"),
        ("q1 0 a 1\n", "q1 a 1\n"),
    ],
)
def test_errors_name_no_option_that_trec_eval_lacks(
    qrels: str, run: str, tmp_path: Path, run_cli: Any
) -> None:
    (tmp_path / "qrels").write_text(qrels)
    (tmp_path / "run").write_text(run)
    told = run_cli("trec_eval", str(tmp_path / "qrels"), str(tmp_path / "run"))
    assert told.exit_code == 3
    assert "line" in told.stderr or "a second time" in told.stderr
    assert "--" not in told.stderr
    assert "repeated_" not in told.stderr
