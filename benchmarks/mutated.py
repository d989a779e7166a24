"""Mutate small files of each form: each is read as other readers read it, or refused.

    python benchmarks/mutated.py --cases 10_000 [--seed 0] [--jobs 1] [--forms CSV TREC ...]
    python benchmarks/mutated.py --seed 0 --forms CSV --case 4711 --keep FOLDER   # repeat one

Where `hostile.py` runs commands with few files of many kinds, this evaluates many files of each
form within a process. Labels and predictions are made, and the bytes of one of them are mutated:
flipped, replaced, deleted, inserted, repeated, cut off. `rankmill.evaluate` must refuse them
(InputError, UsageError), or give the value of the tests' oracle for the rows that another reader
finds (`judge.py`; "held"), where it finds any without a doubt. The process may use 6 GB, and 20 s
for a case; when it ends, another one goes on, and the case is a fault. Where only the other reader
ends it, there is no verdict.
"""

from __future__ import annotations

import argparse
import bz2
import io
import lzma
import multiprocessing
import os
import signal
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import feather, ipc

import judge
import rankmill
from broken_inputs import (
    COMPRESSED,
    FORMATS,
    NUMBERS,
    STATE,
    TEXT_METRICS,
    Lists,
    json_lines,
    some_lists,
    stored,
    usual,
    write_ipc,
)
from hostile import GOOD, compared_values, limit, metrics_of_state
from rankmill.cli.compilation import warmup

SECONDS = 20
PAIRS = 50
OURS, OTHER = "rankmill reads", "another reads"
REFUSED = rankmill.InputError, rankmill.UsageError


def zipped(raw: bytes) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("rows.csv"), raw)
    return sink.getvalue()


def packed(pack: Callable[[bytes], bytes]) -> Callable[[Lists, str], bytes]:
    return lambda lists, number: pack(FORMATS["CSV"][1](lists, number))


def json_records(lists: Lists, number: str) -> bytes:
    return b"[" + b",\n".join(json_lines(lists, number).splitlines()) + b"]\n"


def in_file(change: Callable[[Any], Any]) -> Callable[[Lists, str], bytes]:
    """An Arrow file, its columns of text in another type."""

    def write(table: pa.Table, sink: Any) -> None:
        columns = [change(one) if pa.types.is_string(one.type) else one for one in table.columns]
        write_ipc(ipc.new_file)(pa.table(columns, table.column_names), sink)

    return stored(write)


PACKS = {
    **COMPRESSED,
    "xz": lzma.compress,
    "bz2": bz2.compress,
    "zip": zipped,
    "lz4": lambda raw: pa.compress(raw, "lz4", asbytes=True),
}
FORMS: dict[str, tuple[str, Callable[[Lists, str], bytes]]] = {
    "Parquet": ("parquet", stored(partial(pq.write_table, row_group_size=16))),
    "Parquet, plain": (
        "parquet",
        stored(partial(pq.write_table, compression="none", use_dictionary=False)),
    ),
    **FORMATS,
    "Arrow file, dictionaries": ("arrow", in_file(lambda column: column.dictionary_encode())),
    "Arrow file, views": ("arrow", in_file(lambda column: column.cast(pa.string_view()))),
    "Feather, lz4": ("feather", stored(partial(feather.write_feather, compression="lz4"))),
    "JSON records": ("json", json_records),
    **{f"CSV, {name}": (f"csv.{name}", packed(pack)) for name, pack in PACKS.items()},
}
"""Form of file -> its suffix, and what writes lists with their numbers as its bytes."""


def mutated(draw: np.random.Generator, raw: bytes) -> bytes:
    """The bytes, mutated in one to three places."""
    found = bytearray(raw)
    for _ in range(1 + int(draw.integers(3)) * int(draw.integers(2))):
        place = int(draw.integers(len(found) + 1))
        end = place + int(draw.integers(1, 1 << int(draw.integers(1, 8))))
        kind = draw.integers(6)
        if kind == 0 and place < len(found):
            found[place] ^= 1 << int(draw.integers(8))
        elif kind == 1:
            found[place : place + 1] = draw.bytes(1)
        elif kind == 2:
            del found[place:end]
        elif kind == 3:
            found[place:place] = draw.bytes(end - place)
        elif kind == 4:
            found[place:place] = found[place:end] * int(draw.integers(1, 4))
        elif kind == 5 and draw.random() < 0.3:  # mostly refused at once
            del found[place:]
    return bytes(found)


# ------------------------------------------------------------------ a case


class Case(NamedTuple):
    """Files, one of which is mutated, and their form."""

    form: str
    files: dict[str, tuple[str, bytes]]  # side -> the name of its file, and its bytes


def made(form: str, seed: int, number: int) -> Case:
    """One case; the same numbers give the same one."""
    draw = np.random.default_rng([seed, number])
    if form == STATE:
        return Case(form, {STATE: ("state.parquet", mutated(draw, usual().state))})
    files = whole(form, int(draw.integers(PAIRS)))
    side = list(NUMBERS)[draw.integers(2)]
    name, raw = files[side]
    return Case(form, files | {side: (name, mutated(draw, raw))})


@cache
def whole(form: str, number: int) -> dict[str, tuple[str, bytes]]:
    """A pair of files before one of them is mutated: their names and bytes."""
    suffix, write = FORMS[form]
    draw = np.random.default_rng(number)
    return {
        side: (
            f"{side}.{suffix}",
            write(some_lists(draw, number % 2 > 0, side == "labels"), column),
        )
        for side, column in NUMBERS.items()
    }


def outcome(case: Case, folder: Path, reads: Callable[[str], object]) -> str:
    """Run a case; `reads` is told who reads the files."""
    paths = {side: folder / name for side, (name, _) in case.files.items()}
    for side, (_, raw) in case.files.items():
        paths[side].write_bytes(raw)
    try:
        if case.form == STATE:
            return outcome_of_state(paths[STATE], reads)
        found = rankmill.evaluate(*map(str, paths.values()), TEXT_METRICS, threads=1).to_dict()
    except REFUSED:
        return "refused"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    reads(OTHER)
    sides = {side: (case.form, path) for side, path in paths.items()}
    roles = {side: found["inputs"][side]["columns"] for side in paths}
    theirs = judge.evaluated(sides, roles, TEXT_METRICS)
    ours = {"queries": found["queries"], **found["metrics"]}
    return compared_values(ours, theirs) if theirs else "read"


def outcome_of_state(path: Path, reads: Callable[[str], object]) -> str:
    """Read a state as a program would: how it reads the row is no matter of rankmill."""
    reads(OTHER)
    try:
        row = pq.read_table(path).to_pylist()[0]
    except (pa.ArrowException, OSError, IndexError, ValueError, OverflowError):
        return "refused"
    reads(OURS)
    state = rankmill.parts.State.from_row(row)
    predictions = pq.read_table(pa.BufferReader(usual().predictions))
    found = state.result(rankmill.parts.second_pass(state, predictions))
    return compared_values(found.metrics, metrics_of_state())


# ------------------------------------------------------------------ the campaign


def ends(form: str, seed: int, numbers: Sequence[int]) -> dict[int, str]:
    """How each case of a form ended, from processes that go on where the last one ended."""
    found: dict[int, str] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log = folder / "log"
        while len(found) < len(numbers):
            left = numbers[len(found) :]
            log.write_bytes(b"")
            child = os.fork()
            if not child:
                run(form, seed, left, folder)
            _, status = os.waitpid(child, 0)
            told = log.read_text().splitlines()
            found |= zip(left, (one for one in told if one not in (OURS, OTHER)), strict=False)
            if len(found) < len(numbers):
                number, code = numbers[len(found)], os.waitstatus_to_exitcode(status)
                how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
                by_other = bool(told) and told[-1] == OTHER
                found[number] = "read" if by_other else f"the process ended: {how}"
    return found


def run(form: str, seed: int, numbers: Sequence[int], folder: Path) -> NoReturn:
    """Be a process that runs cases; it writes to its log how they end."""
    limit()
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 2)
    log = os.open(folder / "log", os.O_WRONLY | os.O_APPEND)

    def tell(line: str) -> None:
        os.write(log, ascii(line)[1:-1].encode() + b"\n")

    for number in numbers:
        signal.alarm(SECONDS)  # ends the process
        tell(outcome(made(form, seed, number), folder, tell))
    os._exit(0)


def ends_of(seed: int, work: tuple[str, Sequence[int]]) -> tuple[str, dict[int, str]]:
    return work[0], ends(work[0], seed, work[1])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=10_000, help="of each form (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="(%(default)s)")
    parser.add_argument("--jobs", type=int, default=1, help="processes (%(default)s)")
    parser.add_argument("--forms", nargs="+", default=[*FORMS, STATE], metavar="FORM")
    parser.add_argument("--case", type=int, metavar="NUMBER", help="only this one of each form")
    parser.add_argument("--keep", type=Path, default=Path("mutated"), help="(%(default)s)")
    options = parser.parse_args(arguments)
    warmup()
    metrics_of_state()
    if options.case is not None:
        options.keep.mkdir(parents=True, exist_ok=True)
        for form in options.forms:
            print(outcome(made(form, options.seed, options.case), options.keep, print))
        return 0
    # Forms take turns, so that a campaign that is stopped has seen all of them.
    numbers = range(options.cases)
    work = [(form, numbers[at : at + 500]) for at in numbers[::500] for form in options.forms]
    counts: dict[str, Counter[str]] = {form: Counter() for form in options.forms}
    faults = 0
    pools = multiprocessing.get_context("fork")
    with suppress(KeyboardInterrupt), pools.Pool(options.jobs) as pool:  # then it tells what it has
        for form, found in pool.imap(partial(ends_of, options.seed), work):
            counts[form].update(one if one in GOOD else "fault" for one in found.values())
            for number, end in found.items():
                if end not in GOOD:
                    faults += 1
                    print(
                        f"--seed {options.seed} --forms {form!r} --case {number}   # {end}",
                        flush=True,
                    )
    print("| form | cases | held | read, no verdict | refused | faults |")
    print("|---|---:|---:|---:|---:|---:|")
    for form, ended in counts.items():
        told = (ended.total(), *(ended[one] for one in ("held", "read", "refused", "fault")))
        print(f"| {form} | {' | '.join(f'{one:,}' for one in told)} |")
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
