"""Kill ``rankmill gate`` with all its outputs at random moments, and check what it leaves.

    python benchmarks/gate_kills.py [--rounds 100] [--users 20000] [--seed 0]

Each round runs a gate with a history, a report, JUnit, Markdown, JSON and the values of each query,
and ends it with SIGKILL: in every second round at any time, in the others near the end, when files
are written. Afterwards each file must be absent or whole, and whole files must be readable; those
that name a run must name the same. The history must hold whole runs only, and nothing else may be
left beside the outputs, once the next run has removed what a dead one left.

The script prints a table; its exit code is 1 if a round failed.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import rankmill
from rankmill.io.whole_files import write_files

LENGTH = 12
RUN = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?: UTC|\")")


def _page(path: Path) -> None:
    assert path.read_text(encoding="utf-8").rstrip().endswith("</html>")


def _summary(path: Path) -> None:
    text = path.read_text(encoding="utf-8").rstrip()
    assert text.endswith("(predictions).") or "no verdict" in text


OUTPUTS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "--json": ("v.json", lambda path: json.loads(path.read_text())),
    "--junit": ("v.xml", ET.parse),
    "--markdown": ("v.md", _summary),
    "--per-query": ("q.parquet", pq.read_table),
    "--report": ("page.html", _page),
}
"""Option -> the file, and a function that fails if it is not whole."""


def make_inputs(folder: Path, users: int) -> list[str]:
    """Write labels and two systems; return their paths."""
    draw = np.random.default_rng(0)
    ids = np.arange(users)
    tables = {
        "labels": pa.table({"user_id": ids, "items": draw.integers(0, 50, (users, 1)).tolist()})
    }
    for name in ("old", "new"):
        items = draw.integers(0, 50, (users, LENGTH)).tolist()
        tables[name] = pa.table({"user_id": ids, "items": items})
    for name, table in tables.items():
        pq.write_table(table, folder / f"{name}.parquet")
    return [str(folder / f"{name}.parquet") for name in tables]


def command(inputs: list[str], out: Path) -> list[str]:
    """Return the command line of a gate that writes all that it can."""
    labels, old, new = inputs
    asked = [sys.executable, "-m", "rankmill", "gate", labels, new, "--baseline", old]
    asked += ["--rule", "map@12 drop <= 1% confidence 0.95", "--history", str(out / "runs")]
    for option, (name, _) in OUTPUTS.items():
        asked += [option, str(out / name)]
    return asked


def problems(out: Path) -> list[str]:
    """Return what is wrong with the files that a run left."""
    found = []
    for name, check in OUTPUTS.values():
        try:
            if (out / name).exists():
                check(out / name)
        except Exception as error:
            found.append(f"{name}: {error}")
    names = [out / name for name, _ in OUTPUTS.values()]
    texts = [path.read_bytes().decode(errors="replace") for path in names if path.exists()]
    told = {one[:19].replace("T", " ") for text in texts for one in RUN.findall(text)}
    found += [f"runs of {', '.join(sorted(told))}"] if len(told) > 1 else []
    known = {name for name, _ in OUTPUTS.values()} | {"runs"}
    for folder in (out, out / "runs"):
        write_files([(folder / "next.parquet", b"")])
        (folder / "next.parquet").unlink()
    found += [f"left behind: {one.name}" for one in out.iterdir() if one.name not in known]
    found += [
        f"left behind: runs/{one.name}"
        for one in (out / "runs").iterdir()
        if one.suffix != ".parquet"
    ]
    try:
        rankmill.History(out / "runs")
    except Exception as error:
        found.append(f"history: {error}")
    return found


def main() -> int:
    """Kill a gate as often as asked, and print what was left."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--users", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    counts: Counter[str] = Counter()
    failed = 0
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        inputs = make_inputs(folder, options.users)

        def fresh() -> Path:
            out = folder / "out"
            shutil.rmtree(out, ignore_errors=True)
            (out / "runs").mkdir(parents=True)
            return out

        began = time.perf_counter()
        done = subprocess.run(command(inputs, fresh()), capture_output=True, text=True, check=False)
        whole = time.perf_counter() - began
        assert done.returncode in (0, 1), done.stderr
        for number in range(options.rounds):
            out = fresh()
            started = subprocess.Popen(
                command(inputs, out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            share = draw.uniform(0, 1.1) if number % 2 else draw.uniform(0.85, 1.05)
            time.sleep(whole * share)
            started.send_signal(signal.SIGKILL)
            started.wait()
            files = sum((out / name).exists() for name, _ in OUTPUTS.values())
            files += len(list((out / "runs").glob("*.parquet")))
            counts["none" if not files else "all" if files > len(OUTPUTS) else "some"] += 1
            wrong = problems(out)
            failed += bool(wrong)
            for one in wrong:
                print(f"round {number}: {one}")
    print(f"{options.rounds} rounds of about {whole:.1f} s, killed at random")
    for kind in ("none", "some", "all"):
        print(f"{kind} of the files there: {counts[kind]}")
    print(f"rounds with a file that is not whole, or left behind: {failed}")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
