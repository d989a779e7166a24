"""Kill ``rankmill evaluate`` at random moments, and check its outputs and temporary files.

    python benchmarks/kills.py [--rounds 100] [--rows 400_000] [--seed 0]

The input is long rows in random order that exceed --memory, so they are grouped in temporary files.
The result and the values of each query replace older files. Each round has three runs, which get
SIGKILL, SIGTERM and SIGINT. The signal comes at any time in every second round, and near the end,
when files are written, in the other rounds.

After a run both outputs must be old or both must be new; only SIGKILL may come between the two. If
the process reports that a signal ended it, both must be old. No other file may be left beside the
outputs or in the folder of temporary files. The exit code must be that of the signal in a shell
(130 for SIGINT), or 0 if the run was already done.

The script prints a table; its exit code is 1 if a round failed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
ROWS_A_QUERY = 10
MEMORY = "1MB"
OLD = b"the content before"
SECONDS = 60


def make_inputs(folder: Path, rows: int) -> list[str]:
    draw = np.random.default_rng(0)
    queries = np.arange(rows // ROWS_A_QUERY)
    items = draw.integers(0, 1000, queries.size)
    labels, run = folder / "labels.parquet", folder / "run.parquet"
    pq.write_table(pa.table({"query_id": queries, "item_id": items}), labels)
    scattered = draw.permutation(np.repeat(queries, ROWS_A_QUERY))
    columns = {
        "query_id": scattered,
        "item_id": draw.integers(0, 1000, scattered.size),
        "score": draw.random(scattered.size),
    }
    pq.write_table(pa.table(columns), run, row_group_size=1 << 16)
    return [str(labels), str(run)]


class Round:
    """One run in folders of its own, with older outputs in place."""

    def __init__(self, folder: Path, inputs: list[str]) -> None:
        self.temporary, self.output = folder / "temporary", folder / "output"
        self.targets = [self.output / "result.json", self.output / "queries.parquet"]
        for place in (self.temporary, self.output):
            place.mkdir()
        for target in self.targets:
            target.write_bytes(OLD)
        written = ["-o", str(self.targets[0]), "--per-query", str(self.targets[1])]
        options = ["-m", "map@10", "-m", "gap", "--memory", MEMORY, *written]
        self.start = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "rankmill", "evaluate", *inputs, *options],
            env={**os.environ, "TMPDIR": str(self.temporary)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            # If this script is a background job of a shell, the shell may make it ignore SIGINT.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )

    def end(self) -> tuple[int | None, str]:
        """Wait; the exit code as a shell tells it, None after a hang, and standard error."""
        try:
            _, errors = self.process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            return None, ""
        code = self.process.returncode
        return code if code >= 0 else 128 - code, errors.decode(errors="replace")

    def contents(self) -> list[bytes]:
        """The two outputs, the result without the seconds that it took."""
        result, queries = (target.read_bytes() for target in self.targets)
        with suppress(ValueError):  # an old or an incomplete file is not valid JSON
            result = json.dumps({**json.loads(result), "seconds": 0}).encode()
        return [result, queries]

    def problems(self, sent: signal.Signals, new: list[bytes], code: int | None) -> list[str]:
        if code is None:
            return [f"no end within {SECONDS} s"]
        found = []
        if code not in (0, 128 + sent):
            found.append(f"exit code {code}")
        old = [OLD, OLD]
        told = {0: [new], 128 + signal.SIGKILL: [old, new, [new[0], OLD], [OLD, new[1]]]}
        if self.contents() not in told.get(code, [old]):
            found.append(f"outputs torn, or not what exit code {code} says")
        for place, expected in ((self.temporary, []), (self.output, self.targets)):
            stays = sorted(set(place.iterdir()) - set(expected))
            found += [f"left behind: {path.relative_to(place.parent)}" for path in stays]
        return found


def whole_run(inputs: list[str]) -> tuple[float, list[bytes]]:
    """The seconds of a run that nobody ends, and its outputs."""
    with tempfile.TemporaryDirectory() as folder:
        run = Round(Path(folder), inputs)
        code, errors = run.end()
        if code != 0:
            raise SystemExit(f"error: the run fails by itself: {errors}")
        return time.perf_counter() - run.start, run.contents()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=100, help="kills a signal (%(default)s)")
    parser.add_argument("--rows", type=int, default=400_000, help="(%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="(%(default)s)")
    options = parser.parse_args(arguments)
    draw = random.Random(options.seed)
    counts: Counter[tuple[signal.Signals, str]] = Counter()
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        inputs = make_inputs(Path(folder), options.rows)
        whole_run(inputs)  # this run compiles the kernels and fills the file cache
        for turn in range(options.rounds):
            if turn % 20 == 0:  # the speed of the machine may have changed
                seconds, new = whole_run(inputs)
            for sent in SIGNALS:
                earliest, code = (0.0 if turn % 2 else 0.8), 0
                while code == 0:  # a run that ended before the signal is repeated
                    moment = seconds * draw.uniform(earliest, 1)
                    earliest = 0.0
                    with tempfile.TemporaryDirectory() as own:
                        run = Round(Path(own), inputs)
                        time.sleep(moment)
                        run.process.send_signal(sent)
                        code, errors = run.end()
                        problems = run.problems(sent, new, code)
                    counts[sent, "failed" if problems else "ended" if code else "done before"] += 1
                    if problems:
                        told = "; ".join([*problems, errors.strip()[-200:]])
                        failures.append(f"{sent.name} after {moment:.2f} s: {told}")
    columns = ("ended", "done before", "failed")
    print(f"| signal | {' | '.join(columns)} |\n| --- | {'---: | ' * len(columns)}".rstrip())
    for sent in SIGNALS:
        print(f"| {sent.name} | {' | '.join(str(counts[sent, name]) for name in columns)} |")
    for failure in failures:
        print(failure)
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
