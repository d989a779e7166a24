"""`rankmill trec_eval -R`: preferences and several judges, as the program trec_eval prints them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import pytest

from trec_files import random_judgments

ASKED = {"prefs": "all_prefs", "qrels_prefs": "all_prefs", "qrels_jg": "qrels_jg"}


@pytest.mark.long
@pytest.mark.parametrize("form", ASKED)
@pytest.mark.parametrize("version", ["9", "10"])
def test_the_bytes_of_its_program_on_random_files(
    version: str, form: str, tmp_path: Path, run_cli: Any
) -> None:
    program = os.environ.get(f"RANKMILL_TREC_EVAL_{version}")
    if not program:
        pytest.skip(f"RANKMILL_TREC_EVAL_{version} names a program that is trec_eval {version}")
    compared = 0
    files = tmp_path / "judged", tmp_path / "run"
    for seed in range(40):
        rng = Random(seed)
        lines, run = random_judgments(rng, form)
        rows = [f"{q} Q0 {d} 1 {score} x\n" for q, one in run.items() for d, score in one.items()]
        for path, some in zip(files, (lines, rows), strict=True):
            path.write_text("".join(some))
        flags = [
            "-q",
            "-R",
            form,
            "-m",
            ASKED[form],
            *rng.choice([[], ["-c"], ["-J"], ["-M", "5"]]),
        ]
        ran = subprocess.run([program, *flags, *files], capture_output=True, check=False)
        if ran.returncode:  # 10 stops at a query that the run lacks
            continue
        outcome = run_cli("trec_eval", "--as", version, *flags, *files)
        assert outcome.stdout == ran.stdout.decode(), (seed, flags)
        compared += 1
    assert compared > 5


# The second judge prefers d to b as well, as it prefers d to a, and a to b.
PREFERENCES = """\
1 one g a 3
1 one g b 1
1 one g c 0
1 two g d 2
1 two g a 1
1 two h a 5
1 two h b 4
2 one g a 1
"""
RUN = "1 Q0 x 1 8 r\n1 Q0 b 1 9 r\n1 Q0 a 1 7 r\n"


@pytest.fixture
def print_it(tmp_path: Path, run_cli: Any) -> Any:
    """Print what trec_eval prints about these lines of judges and the run above."""
    (tmp_path / "run").write_text(RUN)

    def printed(lines: str, *flags: str) -> Any:
        (tmp_path / "judged").write_text(lines)
        return run_cli("trec_eval", *flags, tmp_path / "judged", tmp_path / "run")

    return printed


def values(outcome: Any) -> dict[str, str]:
    assert outcome.stderr == ""
    return {line.split()[0]: line.split()[2] for line in outcome.stdout.splitlines()}


@pytest.mark.small
def test_preferences_by_hand(print_it: Any) -> None:
    """Of b and a, which are found in this order, and c and d, which are not."""
    found = values(print_it(PREFERENCES, "-R", "prefs", "-m", "all_prefs", "-q"))
    assert found == {
        **{"runid": "r", "num_q": "1"},
        **{"prefs_num_prefs_poss": "6", "prefs_num_prefs_ful": "2", "prefs_num_prefs_ful_ret": "0"},
        **{"prefs_simp": "0.3333", "prefs_simp_imp": "0.3333", "prefs_simp_ret": "0.0000"},
        **{"prefs_pair": "0.4000", "prefs_pair_imp": "0.4000", "prefs_pair_ret": "0.0000"},
        **{"prefs_avgjg": "0.3333", "prefs_avgjg_imp": "0.3333", "prefs_avgjg_ret": "0.0000"},
        # With one more c for the first judge; that of two has no nonrelevant documents, and 3 more.
        "prefs_avgjg_Rnonrel": f"{((2 + 2) / (3 + 2) + (0 + 2 * 3) / (3 + 3 * 3)) / 2:.4f}",
        "prefs_avgjg_Rnonrel_ret": f"{((0 + 2 * 2) / (1 + 2 * 2) + 2 * 2 / (1 + 3 * 2)) / 2:.4f}",
    }
    whole = values(print_it(PREFERENCES, "-R", "prefs", "-m", "prefs_simp", "-c"))
    assert whole == {"prefs_simp": "0.1667"}


@pytest.mark.small
def test_qrels_are_preferences_and_of_judges(print_it: Any) -> None:
    qrels = "1 0 a 2\n1 0 b 1\n1 0 c 0\n1 1 x 1\n1 1 b 0\n"
    found = values(print_it(qrels, "-R", "qrels_prefs", "-m", "prefs"))
    # Fulfilled are a to c, b to c; x to b is not.
    assert (found["prefs_num_prefs_ful"], found["prefs_simp"]) == ("2", "0.5000")
    judges = values(print_it(qrels, "-R", "qrels_jg", "-m", "map_avgjg", "-m", "P_avgjg.1,2"))
    assert judges["map_avgjg"] == f"{((1 + 2 / 3) / 2 + 1 / 2) / 2:.4f}"
    assert (judges["P_avgjg_1"], judges["P_avgjg_2"]) == ("0.5000", "0.5000")
    judged = values(print_it(qrels, "-R", "qrels_jg", "-m", "map_avgjg", "-J"))
    assert judged["map_avgjg"] == f"{(1 + 1 / 2) / 2:.4f}"


@pytest.mark.small
@pytest.mark.parametrize(
    ("lines", "flags", "told"),
    [
        ("1 0 a 1\n", ["-m", "prefs_simp"], "prefs_simp needs qrels of another format, prefs or"),
        ("1 0 a 1\n", ["-R", "prefs", "-m", "map"], "needs qrels of another format, qrels: add"),
        ("1 0 a 1\n", ["-R", "prefs"], "official needs qrels of another format, qrels"),
        ("1 0 a 1\n", ["-R", "prefs", "-m", "prefs"], "line 1: '1 0 a 1'; expected query, judge,"),
        ("1 0 g a x\n", ["-R", "prefs", "-m", "prefs"], "and a number as level"),
        ("1 0 g a 1\n1 0 g a 2\n", ["-R", "prefs", "-m", "prefs"], "line 2: a second level of 'a'"),
        ("1 0 g a 1\n1 0 h a 0\n", ["-R", "prefs", "-m", "prefs"], "level 0 in one group and more"),
        (
            "1 0 g a 1\n1 0 g b 2\n1 0 h a 2\n1 0 h b 1\n",
            ["-R", "prefs", "-m", "prefs"],
            "prefers a document to another and the reverse",
        ),
        ("7 0 g a 1\n", ["-R", "prefs", "-m", "prefs"], "no query is in both"),
        ("1 0 a 1\n", ["-R", "other"], "-R is 'other'; expected qrels or prefs or"),
    ],
)
def test_what_is_refused(lines: str, flags: list[str], told: str, print_it: Any) -> None:
    outcome = print_it(lines, *flags)
    assert (outcome.exit_code > 0, outcome.stdout) == (True, "")
    assert told in outcome.stderr
