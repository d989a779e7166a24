"""Damage Parquet files in many ways, and compare rankmill's results with those of pyarrow.

    python benchmarks/hostile.py --cases 20_000 [--seed 0] [--jobs 2]
    python benchmarks/hostile.py --seed 0 --case 4711 [--keep FOLDER]   # repeat one, keep its files

A case is a pair of small files and a command: ``evaluate``, ``evaluate --plan`` or
``explain --query-id``. The files have any layout (shape, ids, codec, page version, checksums,
dictionaries, row groups). One of them is damaged: a bit is flipped, the file is truncated, or some
bytes, a page or the footer are replaced by those of another file.

The command runs in a child process with limits of time and memory, forked from a process that has
loaded all kernels. It must end with exit code 0 or 3, and with code 3 its message must not report a
bug. A value must be equal to that of the tests' oracle for the rows that pyarrow reads from the
same files, also in a child process, and the file must not contradict its footer (``judge.py``).

The script prints how the cases ended, and for each failure the command that repeats the case. The
exit code is 1 if a case failed.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import resource
import select
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import rankmill.__main__
import rankmill.cli.evaluate
import rankmill.cli.explain
import rankmill.engine.memory
import rankmill.explain.trace
from broken import COMMANDS, DAMAGES, SIDES, Case, made
from judge import METRICS, print_contradictions, print_evaluation, print_value
from rankmill.cli.warming import warmup

CLOSE = 1e-12
SECONDS = 20
ADDRESS_SPACE = 6 << 30
GOOD = ("scored", "refused")


# ------------------------------------------------------------------ children


class Ended(NamedTuple):
    """How a child ended: its exit code, a signal as a negative one, None if it was stopped."""

    code: int | None
    output: str
    errors: str


def forked(work: Callable[[], object], folder: Path) -> Ended:
    """Run in a child of this process, within limits of time and memory."""
    child = os.fork()
    if not child:
        try:
            sys.stdout, sys.stderr = (folder / "output").open("w"), (folder / "errors").open("w")
            for descriptor, stream in ((1, sys.stdout), (2, sys.stderr)):
                os.dup2(stream.fileno(), descriptor)
            resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            work()
            sys.stdout.flush()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
    descriptor = os.pidfd_open(child)
    ended, _, _ = select.select([descriptor], [], [], SECONDS)
    os.close(descriptor)
    if not ended:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    texts = [(folder / name).read_text(errors="replace") for name in ("output", "errors")]
    return Ended(os.waitstatus_to_exitcode(status) if ended else None, *texts)


def run_command(arguments: list[str]) -> None:
    """Be the command: this ends the process."""
    sys.argv = ["rankmill", *arguments]
    rankmill.__main__.run()


# ------------------------------------------------------------------ a case


def outcome(case: Case, folder: Path) -> tuple[str, str]:
    """Run a case; "scored", "refused" or what is wrong, and what the command said."""
    files = {side: folder / f"{side}.parquet" for side in SIDES}
    for side, path in files.items():
        path.write_bytes(case.files[side])
    ended = forked(partial(run_command, command_line(case, folder)), folder)
    said = ended.output + ended.errors
    if ended.code not in (0, 3) or "This is a bug" in said or "Traceback" in said:
        return ending(ended), said
    if ended.code and case.damage == "none":
        return f"refused, but it is not damaged: {ending(ended)}", said
    if ended.code:
        lines = ended.errors.splitlines()  # a warning may stand before the error
        told = any(line.startswith("error: ") for line in lines) and not ended.output
        return "refused" if told else "refused, but not told why", said
    if case.command == "plan":
        return "scored", said
    return compared(case, files, ended.output, folder), said


def roles_of_explain(case: Case, side: str) -> dict[str, str]:
    """The columns that it needs for map, by role: confidences only where they order the rows."""
    names = {"user_id": "query", "items": "item", "item_id": "item"}
    roles = {names.get(name, name): name for name in case.columns[side]}
    if case.layouts[side].long and "rank" not in roles:
        return roles
    return {role: name for role, name in roles.items() if role != "score"}


def command_line(case: Case, folder: Path) -> list[str]:
    files = [str(folder / f"{side}.parquet") for side in SIDES]
    if case.command == "explain":
        # The command names the columns, because its result does not tell which columns it found.
        labels, predictions = (roles_of_explain(case, side) for side in SIDES)
        roles = {**predictions, "gain": "gain", "label-item": labels["item"]}
        asked = [word for role, name in roles.items() for word in (f"--{role}", name)]
        asked = ["explain", *files, "--query-id", str(case.query), "-m", METRICS[0], *asked]
    else:
        asked = ["evaluate", *files, *(word for metric in METRICS for word in ("-m", metric))]
        asked += ["--plan"] * (case.command == "plan")
    return [*asked, "--format", "json", *case.options]


def compared(case: Case, files: dict[str, Path], output: str, folder: Path) -> str:
    """Hold a result against what the judge says; "scored" if they are equal."""
    result = json.loads(output)
    if case.command == "explain":
        ours = {"value": result["value"]}
        roles = {side: roles_of_explain(case, side) for side in SIDES}
        work = partial(print_value, files, roles, case.query)
    else:
        ours = {"queries": result["queries"], **result["metrics"], **result["audit"]}
        roles = {side: result["inputs"][side]["columns"] for side in SIDES}
        work = partial(print_evaluation, files, roles)
    ended = forked(work, folder)
    if ended.code != 0:
        return f"scored, but pyarrow does not read it: {ending(ended)}"
    theirs = json.loads(ended.output)
    differing = [
        f"{name} {ours[name]}, not {theirs[name]}"
        for name in theirs
        if not same(ours[name], theirs[name])
    ]
    if differing:
        return f"WRONG: {', '.join(differing)}"
    # pyarrow may end the process because of a broken footer; then there is no verdict.
    ended = forked(partial(print_contradictions, files[case.side], roles[case.side]), folder)
    told = "; ".join(ended.output.splitlines())
    return f"scored, but the file contradicts itself: {told}" if told else "scored"


def same(ours: float | None, theirs: float | None) -> bool:
    if None in (ours, theirs):
        return ours is theirs
    return math.isclose(ours, theirs, rel_tol=CLOSE, abs_tol=CLOSE)


def ending(ended: Ended) -> str:
    """How a child ended, with the line of its message that says most."""
    if ended.code is None:
        return f"no end within {SECONDS} s"
    lines = ended.errors.strip().splitlines() or [""]
    said = next((line for line in lines if line.startswith("error: ")), lines[-1])
    how = signal.Signals(-ended.code).name if ended.code < 0 else f"exit {ended.code}"
    return f"{how}: {said[:200]}"


# ------------------------------------------------------------------ the campaign


class Found(NamedTuple):
    """A case and how it ended."""

    number: int
    command: str
    damage: str
    outcome: str


def run_case(seed: int, number: int) -> Found:
    case = made(seed, number)
    with tempfile.TemporaryDirectory() as folder:
        end, _ = outcome(case, Path(folder))
    return Found(number, case.command, case.damage, end.replace(f"{folder}/", ""))


def run_again(seed: int, number: int, folder: Path) -> int:
    """Run one case, tell everything, and keep its files."""
    case = made(seed, number)
    folder.mkdir(parents=True, exist_ok=True)
    end, said = outcome(case, folder)
    print("\n".join(f"{side}: {case.layouts[side]}" for side in SIDES))
    print(f"{case.damage}, of the {case.side}\nrankmill {' '.join(command_line(case, folder))}")
    print(f"{said}\n{end}")
    return int(end not in GOOD)


def table(every: list[Found]) -> list[list[str]]:
    lines = [["damage", "command", "cases", *GOOD, "failed"], ["---", "---", *["---:"] * 4]]
    for damage in DAMAGES:
        for command in COMMANDS:
            ends = [one.outcome for one in every if one[1:3] == (command, damage)]
            good = [ends.count(end) for end in GOOD]
            counts = [len(ends), *good, len(ends) - sum(good)]
            lines.append([damage, command, *(f"{count:,}" for count in counts)])
    return lines


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=20_000, help="(%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="(%(default)s)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (%(default)s)")
    parser.add_argument("--case", type=int, metavar="NUMBER", help="only this one, with its output")
    parser.add_argument("--keep", type=Path, default=Path("hostile"), help="(%(default)s)")
    options = parser.parse_args(arguments)
    warmup()
    rankmill.engine.memory.LEAST = 1  # labels of small files, too, are then held range by range
    if options.case is not None:
        return run_again(options.seed, options.case, options.keep)
    with multiprocessing.get_context("fork").Pool(options.jobs) as pool:
        every = pool.map(partial(run_case, options.seed), range(options.cases), chunksize=10)
    for line in table(every):
        print("| " + " | ".join(line) + " |")
    failures = [one for one in every if one.outcome not in GOOD]
    for one in failures:
        again = f"python benchmarks/hostile.py --seed {options.seed} --case {one.number}"
        print(f"{again}\n    {one.command}, {one.damage}: {one.outcome}")
    print(f"{options.cases:,} cases, {len(failures):,} failed")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
