"""Read CSV and TSV, or text with other separators: every column as text."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rankmill.errors import InputError, UsageError, plural
from rankmill.kernels.text import NEWLINE
from rankmill.sources.files.content import json_kind
from rankmill.sources.files.files import File
from rankmill.sources.files.text_blocks import (
    Rows,
    TextBlock,
    begin_of,
    count_lines,
    cut_rows,
    is_number,
    read_head,
    rows_of,
    separator_of,
)
from rankmill.sources.meaning.column_names import ALIASES, ITEM_ALIASES, plain
from rankmill.sources.readers.text_tables import Layout, open_text
from rankmill.sources.roles.source import InputOptions, Source

DELIMITERS = {"csv": ",", "tsv": "\t"}
SAMPLED = 1000  # rows, which tell whether the first one is a header
USUAL = {plain(one) for names in (ALIASES, ITEM_ALIASES) for some in names.values() for one in some}


def open_files(files: Sequence[File], name: str, asked: InputOptions) -> Source:
    """Open CSV or TSV files; their first rows tell what separates their columns."""
    kind = str(asked.format).partition("-")[0]
    found = [(file, _layout(file, DELIMITERS[kind], asked)) for file in files]
    held = [(file, layout) for file, layout in found if layout is not None]
    if not held:
        raise InputError(
            f"{files[0].name} is empty; expected a header with the names of the columns"
        )
    layouts = [layout for _, layout in held]
    first = layouts[0].fields
    for file, layout in held:
        if not {*first} & {*layout.fields}:
            raise InputError(
                f"{file.name}: its first row is {', '.join(layout.fields)!r}, but that of "
                f"{held[0][0].name} is {', '.join(first)!r}; expected the same header in all files"
            )
    source = open_text([file for file, _ in held], name, layouts, kind.upper())
    notes = [f"{file.name} is empty, and left out" for file, layout in found if layout is None]
    if asked.columns:
        notes += [
            f"{file.name}: its first row holds names of columns, and is no row"
            for file, layout in held
            if layout.header
        ]
    for note in _few(notes):
        source.findings.say(note)
    return replace(source, delimiter=layouts[0].separator, written=layouts[0].written)


def _few(notes: list[str], most: int = 3) -> tuple[str, ...]:
    more = len(notes) - most
    return (*notes[:most], *([f"{more:,} more files are like these"] if more > 0 else []))


def _layout(file: File, usual: str, asked: InputOptions) -> Layout | None:
    """The layout of one file; None if it holds nothing."""
    head = read_head(file, cut_rows(usual))
    size, told = begin_of(head)
    data = head.data[size:]
    if not len(data):
        return None
    if not asked.columns and (kind := json_kind(data.tobytes())):
        raise InputError(
            f"{file.name}: its first line is JSON: name the format {kind} with --labels-as or "
            "--predictions-as"
        )
    separator = told or separator_of(data, usual, len(asked.columns))
    passed = count_lines(head.data[:size])
    first = head.first_line + passed
    block = TextBlock(data, file.name, first, head.lines - passed)
    rows = rows_of(data, separator)
    if not len(rows.lines):
        raise block.error(rows.line, rows.wrong)
    width, many = int(rows.fields[0]), len(rows.lines) > 1
    if asked.columns and len(asked.columns) != width:
        raise UsageError(
            f"columns names {plural(len(asked.columns), 'column')}, but {file.name}: line "
            f"{block.first_line} has {plural(width, 'column')}"
            + ": name those of the labels with --label-columns A,B,... on the command line, "
            "Labels(columns=...) in Python" * (asked.role == "labels")
        )
    lines = int(rows.lines[1]) if many else rows.line if rows.wrong else block.lines + 1
    if lines == 0:
        raise block.error(0, "a carriage return within the line ends a row: end all in LF or CRLF")
    sample = _sample(block, rows, separator, width, SAMPLED if asked.columns else 1)
    written = tuple(column[0] or "" for column in sample)
    names = asked.columns or tuple(name.strip() for name in written)
    if len({*names}) < width:
        again = next(one for one in names if names.count(one) > 1)
        raise block.error(0, f"two columns are called {again!r}; rename one")
    if asked.columns and not _begins_with_names(sample, names):
        lines = 0
    elif asked.columns and (
        other := [pair for pair in zip(written, names, strict=True) if _contradict(*pair)]
    ):
        raise UsageError(
            f"{file.name}: its first row calls {other[0][0]!r} what columns calls {other[0][1]!r}: "
            "leave the names out, or if they are those of the predictions, name those of the "
            "labels with --label-columns A,B,... on the command line, Labels(columns=...) in Python"
        )
    density = len(rows.lines) / len(head.data)
    return Layout(names, separator, names, first - 1 + lines, density, written=written)


def _sample(
    block: TextBlock, rows: Rows, separator: str, width: int, count: int
) -> list[list[str | None]]:
    """The first values of each column."""
    ends = np.flatnonzero(block.data == NEWLINE)
    if rows.wrong:  # the rows before this line are right
        block = block._replace(data=block.data[: ends[rows.line - 1] + 1], lines=rows.line)
    fields = tuple(map(str, range(width)))
    layout = Layout(fields, separator, fields)
    found = layout.parse(block, [*fields], None).data
    return [column.slice(0, count).to_pylist() for column in found.columns]


def _contradict(written: str, told: str) -> bool:
    """Whether two names of a column are usual, and of different roles; a gain may be a score."""
    roles = [
        next((role for role, names in ALIASES.items() if plain(one) in map(plain, names)), "")
        for one in (written, told)
    ]
    return all(roles) and len({"score" if one == "gain" else one for one in roles}) > 1


def _begins_with_names(sample: list[list[str | None]], told: Sequence[str]) -> bool:
    """Whether the first row is a header, although names are told: it holds names, and no numbers.

    They are names if they are usual, or told, or if all others of a column are numbers.
    """
    first = [column[0] or "" for column in sample]
    if any(map(is_number, first)):
        return False
    usual = {*map(plain, first)} & ({*USUAL, *map(plain, told)} - {""})
    numbers = [
        len(column) > 1 and all(is_number(one or "0") for one in column[1:]) for column in sample
    ]
    return len(usual) >= min(2, len(first)) or any(numbers)
