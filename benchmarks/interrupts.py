"""Interrupt calls of rankmill at random moments, as Ctrl-C in a notebook does, in one process.

    python benchmarks/interrupts.py [--rounds 5000] [--users 100] [--threads 3] [--seed 0]

Another process sends SIGINT at a random moment of each call, which reads small files with several
threads, in memory or through temporary files. After the KeyboardInterrupt no thread may be left and
no file open, and the same call must give the result that it gives without an interrupt.

The script prints a table; its exit code is 1 if a round failed. An interrupt can be ignored: Python
drops one that comes while it finalises an object, such as a thread of its own, and says so, and
`convert` drops one that comes when its file is complete. If a call or what follows it does not end
within 60 s, all threads print where they are, and the script ends.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import rankmill

ITEMS_A_USER = 12
SECONDS = 60
COLUMNS = ("interrupted", "done before", "ignored", "failed")
# Reads moments, waits for each, and interrupts its parent while that lives.
SENDER = """
import os, signal, sys, time
parent = os.getppid()
for line in sys.stdin:
    time.sleep(float(line))
    if os.getppid() == parent:
        os.kill(parent, signal.SIGINT)
"""


def make_inputs(folder: Path, users: int) -> dict[str, str]:
    """Write labels, wide predictions of several files, and long ones whose users are scattered."""
    draw = np.random.default_rng(0)
    items = draw.integers(0, 50, (users, ITEMS_A_USER))
    scores = np.sort(draw.random(items.shape))[:, ::-1]
    labels = pa.table({"query_id": range(users), "items": items[:, ::5].tolist()})
    wide = pa.table({"query_id": range(users), "items": items.tolist(), "score": scores.tolist()})
    order = draw.permutation(items.size)
    users_of_rows = np.repeat(np.arange(users), ITEMS_A_USER)[order]
    columns = users_of_rows, items.ravel()[order], draw.random(items.size)
    long = pa.table(dict(zip(("query_id", "item_id", "score"), columns, strict=True)))
    found = {name: str(folder / name) for name in ("labels", "wide", "long")}
    for name, table in (("labels", labels), ("wide", wide), ("long", long)):
        (folder / name).mkdir()
        for number in range(4):
            part = table.slice(number * len(table) // 4, len(table) // 4)
            pq.write_table(part, folder / name / f"{number}.parquet", row_group_size=users // 8)
    return found


def calls(paths: Mapping[str, str], threads: int) -> dict[str, Callable[[], Any]]:
    """The calls that are interrupted, by what they do."""
    labels, wide, long = paths["labels"], paths["wide"], paths["long"]
    evaluate = partial(rankmill.evaluate, labels, metrics=["map@12", "gap"], threads=threads)
    one = partial(rankmill.evaluate_runs, labels, {"a": wide, "b": long}, "map@12", threads=threads)
    both = partial(rankmill.compare, labels, {"a": wide, "b": long}, "map@12", threads=threads)
    return {
        "wide": lambda: evaluate(wide).to_dict()["metrics"],
        "long": lambda: evaluate(long).to_dict()["metrics"],
        "long, on disk": lambda: evaluate(long, memory=1).to_dict()["metrics"],
        "two runs": lambda: [one.to_dict()["metrics"] for one in one().values()],
        "compare": lambda: both().to_dict()["pairs"],
        "convert": lambda: rankmill.convert(long, f"{long}.parquet", threads=threads),
    }


def left_over() -> tuple[int, int]:
    """The numbers of threads and of open files."""
    gc.collect()
    return threading.active_count(), len(os.listdir("/proc/self/fd"))


def interrupted(call: Callable[[], Any], sender: int, moment: float) -> str:
    """Call, and return one of COLUMNS; the interrupt has come by then."""
    done = False
    try:
        os.write(sender, f"{moment}\n".encode())  # of a buffer, the rest would follow later
        call()
        done = True
        time.sleep(moment + SECONDS / 10)
    except KeyboardInterrupt:
        return "done before" if done else "interrupted"
    return "ignored"


def problems(before: tuple[int, int]) -> list[str]:
    """What an interrupt has left behind."""
    until = time.perf_counter() + 1
    while (left := left_over()) != before and time.perf_counter() < until:
        time.sleep(0.001)
    return [] if left == before else [f"{left} threads and files are left, not {before}"]


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """The result of a call, and the seconds that it takes."""
    start = time.perf_counter()
    return call(), time.perf_counter() - start


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5000, help="interrupts (%(default)s)")
    parser.add_argument("--users", type=int, default=100, help="(%(default)s)")
    parser.add_argument("--threads", type=int, default=3, help="(%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="(%(default)s)")
    options = parser.parse_args(arguments)
    # If this script is a background job of a shell, the shell may make it ignore SIGINT.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    draw = random.Random(options.seed)
    counts: Counter[tuple[str, str]] = Counter()
    failures = []
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen([sys.executable, "-c", SENDER], stdin=subprocess.PIPE) as process,
    ):
        sender = process.stdin.fileno()  # type: ignore[union-attr]
        found = calls(make_inputs(Path(folder), options.users), options.threads)
        expected = {name: call() for name, call in found.items()}
        seconds = {name: timed(call)[1] for name, call in found.items()}
        gc.collect()
        gc.freeze()  # what is loaded needs no look at each round
        before = left_over()
        for turn in range(options.rounds):
            faulthandler.dump_traceback_later(SECONDS, exit=True)
            name = [*found][turn % len(found)]
            moment = draw.uniform(0, seconds[name])
            try:
                came = interrupted(found[name], sender, moment)
                wrong = problems(before)
                result, seconds[name] = timed(found[name])
                if result != expected[name]:
                    wrong.append("another result than without the interrupt")
            except Exception as error:
                came, wrong = "failed", [repr(error)]
            counts[name, "failed" if wrong else came] += 1
            failures += [f"{name} after {moment:.4f} s: {one}" for one in wrong]
            before = left_over() if wrong else before  # what is left is told once
    faulthandler.cancel_dump_traceback_later()
    print(f"| call | {' | '.join(COLUMNS)} |\n| --- | {'---: | ' * len(COLUMNS)}".rstrip())
    for name in found:
        print(f"| {name} | {' | '.join(str(counts[name, column]) for column in COLUMNS)} |")
    for failure in failures:
        print(failure)
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
