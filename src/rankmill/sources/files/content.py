"""Tell the format of a file by its name, and where that does not decide, by its first bytes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from rankmill.errors import InputError, is_shortage
from rankmill.sources.files.files import File
from rankmill.sources.files.formats import (
    FIRST_BYTES,
    NO_ORC,
    ORC,
    UNSURE,
    binary_kind,
    format_of_name,
)
from rankmill.sources.roles.source import InputOptions

if TYPE_CHECKING:
    from rankmill.sources.files.text_blocks import TextBlock

# The first bytes of binary files -> their format.
MAGIC = {b"PAR1": "parquet", b"PARE": "parquet", b"ORC": ORC}
# Arrow files, Arrow streams, and Feather version 1, whose error the module for Arrow tells.
MAGIC |= dict.fromkeys((b"ARROW1", b"\xff\xff\xff\xff", b"FEA1"), "arrow")
# A line of TREC's formats that begins with it holds no row, as in trec_eval 10.
COMMENT = b"#"
# The number of fields of a line of a run: what stands behind the tag is not read.
RUN = 6
# The number of fields of a line in TREC's format -> those that are numbers, and those that are
# whole, and short: no time of a rating.
NUMBERS_OF_TREC = {RUN: ((4,), (3,)), 4: ((3,), ()), 3: ((), (2,))}
LONGEST_WHOLE = 6
# So many lines have to be as the format wants them; the others are bad lines of such a file.
MOST = 0.9


def format_of(file: File, asked: InputOptions, *, alone: bool = False) -> str:
    """The format of a file, if the caller did not tell it; empty if nothing tells it.

    `alone` says that there is no other file.
    """
    kind = format_of_name(file.name)
    if kind is None or kind in UNSURE:
        kind = _format_of_content(file, kind, asked, alone)
    if kind == ORC:
        raise InputError(f"{file.name}: {NO_ORC}")
    return kind


def _format_of_content(file: File, kind: str | None, asked: InputOptions, alone: bool) -> str:
    """The format by the first bytes; `kind` is what the name says if these do not decide."""
    try:
        with file.opened() as opened:
            start = bytes(opened.read(FIRST_BYTES))
    except OSError as error:
        if is_shortage(error, f"reading {file.name}"):
            raise
        raise InputError(f"{file.name} cannot be opened: {error.strerror or error}") from None
    if not start:
        return kind or ""
    for magic, binary in MAGIC.items():
        if start.startswith(magic):
            return binary
    if what := binary_kind(start):
        raise InputError(f"{file.name} is {what}")
    from rankmill.sources.files.text_blocks import (
        NulError,
        last_character,
        last_line_end,
        read_head,
        shown,
    )

    try:
        # JSON may stand in one line of any length.
        head = read_head(file, lambda *some: last_line_end(*some) or last_character(*some))
    except NulError:
        return kind or "parquet"
    if not head.data.tobytes().strip():
        return kind or ""
    found = kind_of_text(head, alone, len(asked.columns)) or kind
    if kind == "jsonl" and found != "json":
        return kind
    if found is None:
        line = next(line for line in head.data.tobytes().splitlines() if line.strip())
        begins = shown(np.frombuffer(line, np.uint8), 0, len(line))
        raise InputError(
            f"{file.name}: its name and its first line, {begins}, do not show the format: name "
            "it, such as trec or csv, with --labels-as or --predictions-as"
        )
    if found != "trec" or not asked.columns:
        return found
    tabs = head.data.tobytes().lstrip(b" \r\n").partition(b"\n")[0].count(b"\t")
    # TREC's format has no names of columns: who names them has TSV, such as a run of MS MARCO.
    if asked.role == "predictions" and (kind == "tsv" or tabs + 1 == len(asked.columns)):
        return "tsv"
    if tabs + 1 == len(asked.columns):
        raise InputError(
            f"{file.name} can be read as TREC, or as TSV with the {len(asked.columns)} columns "
            "that are named: choose tsv or trec with --labels-as"
        )
    return found


def kind_of_text(head: TextBlock, alone: bool = False, columns: int = 0) -> str | None:
    """The format of the first lines of a text; None if they look like none.

    `alone` says that there is no other file, and `columns` how many have a name that was told.
    """
    from rankmill.sources.files.text_blocks import (
        BLANKS,
        begin_of,
        is_number,
        rows_of,
        separator_of,
    )

    text = head.data.tobytes()
    if kind := json_kind(text, alone):
        return kind
    first = text.strip().partition(b"\n")[0]
    rows = [row for _, row in trec_rows(text)]
    if is_trec([row.split() for row in rows]) or is_trec([row.split(b"\t") for row in rows]):
        return "trec"
    size, told = begin_of(head)
    data = head.data[size:]
    separator = told or separator_of(data, ",", columns)
    fields = rows_of(data, separator).fields
    # A run and qrels have no header, lists of items neither: then blanks tell nothing.
    bare = separator == BLANKS and any(map(is_number, first.split()))
    if not len(fields) or fields[0] == 1 or (bare and not columns):
        return None
    return "tsv" if separator == "\t" else "csv"


def json_kind(text: bytes, alone: bool = True) -> str:
    r"""The format of JSON that the first lines of a text look like; empty if they look like none.

    Examples
    --------
    >>> json_kind(b'{"user_id": 1}\n{"user_id": 2}\n'), json_kind(b"user_id,item_id\n")
    ('jsonl', '')
    """
    first, _, others = text.strip().partition(b"\n")
    if first[:1] not in (b"{", b"["):
        return ""
    # A single object may be a row, or all rows.
    several = not alone or others.strip()
    return "jsonl" if several and is_object(first.strip()) else "json"


def is_object(line: bytes) -> bool:
    """Whether a line is a whole object of JSON, or a broken one that does not go on."""
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return line.startswith(b"{") and line.endswith(b"}")


def trec_rows(text: bytes) -> list[tuple[int, bytes]]:
    """The rows of TREC's formats in a text, each with its line, counted from 1."""
    lines = enumerate(text.split(b"\n"), 1)
    return [(i, row) for i, row in lines if (begin := row.lstrip()) and begin[:1] != COMMENT]


def is_trec(rows: list[list[bytes]]) -> bool:
    """Whether rows of fields are those of a run or of qrels, which have no header.

    The second of four fields or more is the same in all lines of a file: who has items there, such
    as ratings of users, has no run, and no qrels.
    """
    from rankmill.sources.files.text_blocks import is_number

    count = len(rows[0]) if rows else 0
    width = min(count, RUN)  # what stands behind the tag of a run is nothing
    if width not in NUMBERS_OF_TREC:
        return False
    numbers, whole = NUMBERS_OF_TREC[width]
    good = [
        row
        for row in rows
        if (len(row) == count or len(row) >= width == RUN)
        and all(is_number(row[i]) for i in numbers)
        and all(row[i].removeprefix(b"-").isdigit() and len(row[i]) <= LONGEST_WHOLE for i in whole)
    ]
    second = {row[1] for row in good} if width != 3 else {b""}
    # A run has Q0 there, or 0: the same number in all lines may be what is recommended most.
    other = width == RUN and any(one != b"0" and is_number(one) for one in second)
    # The first row may be a header.
    return good[:1] == rows[:1] and len(good) >= MOST * len(rows) and len(second) == 1 and not other
