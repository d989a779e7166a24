"""Damage inputs of every kind in many ways: each is read rightly, or refused in a line.

    python benchmarks/hostile.py --cases 20_000 [--seed 0] [--jobs 2]
    python benchmarks/hostile.py --seed 0 --case 4711 [--keep FOLDER]   # repeat one, keep its files

A case is a command and its small inputs, one of which is damaged: labels or predictions in every
format, a baseline, a history, the row of a state, a ``rankmill.toml``, the file of ``--by``, or
folders with odd names. A bit is flipped, the file is cut, bytes are replaced by those of another
place or file, a value by a hostile one, a name by one that is not UTF-8.

The command runs in a child with limits of time and memory, forked from a process that has loaded
all kernels; each hundredth case is a process of its own. It must end with an exit code that the
pages name for it, and not with 4 either, as all inputs are small; no message may report a bug or
hold a traceback. A value must be equal to that of the tests' oracle for the rows that another
reader finds in the same files (``judge.py``), where it finds any without a doubt: "held".

The script prints how the cases ended by kind, and for each fault the command that repeats the case
and the folder that keeps its files. The exit code is 1 if there was a fault.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import broken
import broken_inputs
import rankmill.__main__
import rankmill.engine.first_pass
from broken import SIDES, Case
from broken_inputs import KINDS, STATE, STATE_METRICS, TEXT_METRICS, Input
from judge import METRICS, print_contradictions, print_evaluation, print_formats, print_value
from rankmill.cli import COMMANDS
from rankmill.cli.compilation import warmup

CLOSE = 1e-12
SECONDS = 20
ADDRESS_SPACE = 6 << 30
GOOD = ("read", "held", "refused")
PARQUET = "Parquet pairs"
PARQUET_WEIGHT = 20
WHOLE = 100
"""One in so many cases is a process of its own."""


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
            limit()
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


def limit() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run_command(arguments: list[str]) -> None:
    """Be the command: this ends the process."""
    sys.argv = ["rankmill", *arguments]
    rankmill.__main__.run()


def run_whole(arguments: list[str], folder: Path) -> Ended:
    """Run the command as a process of its own, with the same limits."""
    command = [sys.executable, "-m", "rankmill", *arguments]
    if arguments[0] == STATE:
        script = "import sys, broken_inputs; broken_inputs.read_state(sys.argv[1])"
        command = [sys.executable, "-c", script, arguments[1]]
    path = os.pathsep.join([str(Path(__file__).resolve().parent), *sys.path])
    options = {"cwd": folder, "env": os.environ | {"PYTHONPATH": path}, "preexec_fn": limit}
    try:
        done = subprocess.run(command, capture_output=True, timeout=3 * SECONDS, **options)
    except subprocess.TimeoutExpired:
        return Ended(None, "", "")
    texts = (one.decode(errors="replace") for one in (done.stdout, done.stderr))
    return Ended(done.returncode, *texts)


# ------------------------------------------------------------------ a case


def made(seed: int, number: int) -> Case | Input:
    """One case of a campaign; the same numbers give the same case."""
    draw = np.random.default_rng([seed, number])
    weights = {PARQUET: PARQUET_WEIGHT} | {kind: weight for kind, (weight, _) in KINDS.items()}
    kind = broken.one_of(draw, weights)
    return broken.made(seed, number) if kind == PARQUET else broken_inputs.made(draw, kind)


def outcome(case: Case | Input, folder: Path, whole: bool = False) -> tuple[str, Ended]:
    """Run a case; one of GOOD or what is wrong, and how the command ended."""
    if isinstance(case, Case):
        return outcome_of_pair(case, folder, whole)
    for name, content in case.files.items():
        put(os.path.join(os.fsencode(folder), name), content)
    work = partial(run_within, case.arguments, folder)
    ended = run_whole(case.arguments, folder) if whole else forked(work, folder)
    said = ended.output + ended.errors
    if ended.code not in case.codes or "This is a bug" in said or "Traceback" in said:
        return ending(ended), ended
    if ended.code and case.damage == "none" and case.arguments[0] != "gate":
        return f"refused, but it is not damaged: {ending(ended)}", ended
    if ended.code in (2, 3):
        told = any(line.startswith("error: ") for line in ended.errors.splitlines())
        return "refused" if told else "refused, but not told why", ended
    if case.arguments[0] == STATE:
        return compared_values(json.loads(ended.output)["metrics"], metrics_of_state()), ended
    if case.sides and not ended.code:
        return compared_formats(case, json.loads(ended.output), folder), ended
    return "read", ended


def put(path: bytes, content: bytes | str | None) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if content is None:
        os.mkdir(path)
    elif isinstance(content, str):
        os.symlink(content, path)
    else:
        Path(os.fsdecode(path)).write_bytes(content)


def run_within(arguments: list[str], folder: Path) -> None:
    os.chdir(folder)
    if arguments[0] == STATE:
        broken_inputs.read_state(arguments[1])
    else:
        run_command(arguments)


@cache
def metrics_of_state() -> dict[str, float]:
    """What a state comes to that is not damaged."""
    sides = (pq.read_table(pa.BufferReader(raw)) for raw in broken_inputs.usual()[:2])
    return dict(rankmill.evaluate(*sides, STATE_METRICS).metrics)


def compared_formats(case: Input, result: dict[str, Any], folder: Path) -> str:
    roles = {side: result["inputs"][side]["columns"] for side in SIDES}
    sides = {side: (kind, folder / name) for side, (kind, name) in case.sides.items()}
    ended = forked(partial(print_formats, sides, roles, TEXT_METRICS), folder)
    if ended.code != 0 or not ended.output:
        return "read" if ended.code in (0, -6, -11) else f"the judge fails: {ending(ended)}"
    ours = {"queries": result["queries"], **result["metrics"]}
    return compared_values(ours, json.loads(ended.output))


def compared_values(ours: dict[str, Any], theirs: dict[str, Any]) -> str:
    wrong = [
        f"{name} {ours.get(name)}, not {theirs[name]}"
        for name in theirs
        if not same(ours.get(name), theirs[name])
    ]
    return f"WRONG: {', '.join(wrong)}" if wrong else "held"


def outcome_of_pair(case: Case, folder: Path, whole: bool = False) -> tuple[str, Ended]:
    """Run a case of two Parquet files."""
    files = {side: folder / f"{side}.parquet" for side in SIDES}
    for side, path in files.items():
        path.write_bytes(case.files[side])
    asked = command_line(case, folder)
    ended = run_whole(asked, folder) if whole else forked(partial(run_command, asked), folder)
    said = ended.output + ended.errors
    if ended.code not in (0, 3) or "This is a bug" in said or "Traceback" in said:
        return ending(ended), ended
    if ended.code and case.damage == "none":
        return f"refused, but it is not damaged: {ending(ended)}", ended
    if ended.code:
        lines = ended.errors.splitlines()  # a warning may stand before the error
        told = any(line.startswith("error: ") for line in lines) and not ended.output
        return "refused" if told else "refused, but not told why", ended
    if case.command == "plan":
        return "read", ended
    return compared(case, files, ended.output, folder), ended


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
    """Hold a result against what the judge says; "held" if they are equal."""
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
        return f"read, but pyarrow does not read it: {ending(ended)}"
    found = compared_values(ours, json.loads(ended.output))
    if found != "held":
        return found
    # pyarrow may end the process because of a broken footer; then there is no verdict.
    ended = forked(partial(print_contradictions, files[case.side], roles[case.side]), folder)
    told = "; ".join(ended.output.splitlines())
    return f"read, but the file contradicts itself: {told}" if told else "held"


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
    kind: str
    damage: str
    code: int | None
    outcome: str


def run_case(seed: int, keep: Path, number: int) -> Found:
    case = made(seed, number)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        end, ended = outcome(case, folder, whole=number % WHOLE == WHOLE - 1)
        if end not in GOOD:
            shutil.copytree(folder, keep / f"{seed}-{number}", symlinks=True, dirs_exist_ok=True)
    return Found(number, kind_of(case), case.damage, ended.code, end.replace(f"{name}/", ""))


def kind_of(case: Case | Input) -> str:
    return PARQUET if isinstance(case, Case) else case.kind


def run_again(seed: int, number: int, folder: Path) -> int:
    """Run one case, tell everything, and keep its files."""
    case = made(seed, number)
    folder.mkdir(parents=True, exist_ok=True)
    end, ended = outcome(case, folder)
    if isinstance(case, Case):
        print("\n".join(f"{side}: {case.layouts[side]}" for side in SIDES))
        told = case.side, command_line(case, folder)
    else:
        told = os.fsdecode(case.damaged), case.arguments
    print(f"{kind_of(case)}, {case.damage}, of {told[0]}\nrankmill {' '.join(told[1])}")
    print(f"{ended.output}{ended.errors}\n{end}")
    return int(end not in GOOD)


def table(every: list[Found]) -> list[list[str]]:
    codes = sorted({one.code for one in every}, key=str)
    names = ["no end" if code is None else f"exit {code}" for code in codes]
    lines = [["kind", "cases", "read", "held", "refused", *names, "faults"]]
    lines.append(["---", *["---:"] * (len(lines[0]) - 1)])
    for kind in dict.fromkeys(one.kind for one in sorted(every, key=lambda one: one.kind)):
        some = [one for one in every if one.kind == kind]
        ends = [one.outcome for one in some]
        held, refused = ends.count("held"), ends.count("refused")
        read = ends.count("read") + held
        counts = [len(some), read, held, refused]
        counts += [sum(one.code == code for one in some) for code in codes]
        lines.append([kind, *(f"{one:,}" for one in (*counts, len(some) - read - refused))])
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
    for module, _ in COMMANDS.values():
        import_module(module)
    broken_inputs.usual(), metrics_of_state()  # before children are forked
    rankmill.engine.first_pass.LEAST = 1  # labels of small files, too, are then held range by range
    if options.case is not None:
        return run_again(options.seed, options.case, options.keep)
    work = partial(run_case, options.seed, options.keep)
    with multiprocessing.get_context("fork").Pool(options.jobs) as pool:
        every = []
        for one in pool.imap_unordered(work, range(options.cases), chunksize=10):
            every.append(one)
            if one.outcome not in GOOD or len(every) % 500 == 0:  # a long run may be stopped
                print(f"{len(every):,}: {one.number} {one.outcome}", file=sys.stderr, flush=True)
    every.sort(key=lambda one: one.number)
    for line in table(every):
        print("| " + " | ".join(line) + " |")
    faults = [one for one in every if one.outcome not in GOOD]
    for one in faults:
        again = f"python benchmarks/hostile.py --seed {options.seed} --case {one.number}"
        kept = options.keep / f"{options.seed}-{one.number}"
        print(f"{again}   # {kept}\n    {one.kind}, {one.damage}: {one.outcome}")
    print(f"{options.cases:,} cases, {len(faults):,} faults")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
