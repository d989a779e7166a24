"""Tell the format of a file by its name, and where that does not decide, by its first bytes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from rankmill.errors import InputError, is_shortage
from rankmill.sources.files.files import File
from rankmill.sources.files.formats import UNSURE, format_of_name
from rankmill.sources.input_options import InputOptions

if TYPE_CHECKING:
    from rankmill.sources.files.text_blocks import TextBlock

# The first bytes of binary files -> their format.
MAGIC = {b"PAR1": "parquet", b"PARE": "parquet", b"ORC": "orc"}
# Arrow files, Arrow streams, and Feather version 1, whose error the module for Arrow tells.
MAGIC |= dict.fromkeys((b"ARROW1", b"\xff\xff\xff\xff", b"FEA1"), "arrow")
LINES = 100  # so many lines of a text are looked at
# A line of TREC's formats that begins with it holds no row, as in trec_eval 10.
COMMENT = b"#"
# The number of fields of a line of a run: what stands behind the tag is not read.
RUN = 6
# The number of fields of a line in TREC's format -> the fields that are numbers.
NUMBERS_OF_TREC = {RUN: (3, 4), 4: (3,), 3: (2,)}


def format_of(file: File, asked: InputOptions) -> str:
    """The format of a file, if the caller did not tell it."""
    kind = format_of_name(file.name)
    if kind is not None and kind not in UNSURE:
        return kind
    try:
        with file.opened() as opened:
            start = bytes(opened.read(8))
    except OSError as error:
        if is_shortage(error, f"reading {file.name}"):
            raise
        raise InputError(f"{file.name} cannot be opened: {error.strerror or error}") from None
    if not start:
        raise InputError(f"{file.name} is empty: it holds no byte")
    for magic, binary in MAGIC.items():
        if start.startswith(magic):
            return binary
    from rankmill.sources.files.encodings import NulError
    from rankmill.sources.files.text_blocks import read_head, shown

    try:
        head = read_head(file)
    except NulError:
        return kind or "parquet"
    found = kind_of_text(head) or kind
    if found is None:
        line = next(line for line in head.data.tobytes().splitlines() if line.strip())
        begins = shown(np.frombuffer(line, np.uint8), 0, len(line))
        raise InputError(
            f"{file.name}: its name and its first line, {begins}, do not show the format: name "
            "it, such as trec or csv, with --labels-as or --predictions-as"
        )
    if found != "trec" or not asked.columns:
        return found
    tabs = head.data.tobytes().partition(b"\n")[0].count(b"\t")
    # TREC's format has no names of columns: who names them has TSV, such as a run of MS MARCO.
    if asked.role == "predictions" and (kind == "tsv" or tabs + 1 == len(asked.columns)):
        return "tsv"
    if tabs + 1 == len(asked.columns):
        raise InputError(
            f"{file.name} can be read as TREC, or as TSV with the {len(asked.columns)} columns "
            "that are named: choose tsv or trec with --labels-as"
        )
    return found


def kind_of_text(head: TextBlock) -> str | None:
    """The format of the first lines of a text; None if they look like none."""
    text = head.data.tobytes()
    lines = [line for line in text.splitlines()[:LINES] if line.strip()]
    if not lines:
        return "csv"  # whose error is that it is empty
    if lines[0].lstrip().startswith(b"{"):
        return "jsonl" if is_row(lines[0]) else "json"
    if is_trec([line.split() for line in lines if not line.lstrip().startswith(COMMENT)]):
        return "trec"
    if b"\t" in lines[0]:
        return "tsv"
    return "csv" if b"," in lines[0] else None


def is_row(line: bytes) -> bool:
    """Whether a line of JSON is an object that holds anything else than objects: a row."""
    try:
        found = json.loads(line)
    except ValueError:  # the object goes on in the next line, or is a broken row
        return line.rstrip().endswith(b"}")
    return not isinstance(found, dict) or not all(isinstance(one, dict) for one in found.values())


def is_trec(rows: list[list[bytes]]) -> bool:
    """Whether rows of fields are those of a run or of qrels, which have no header."""
    count = len(rows[0]) if rows else 0
    fields = min(count, RUN)  # what stands behind the tag of a run is nothing
    if fields not in NUMBERS_OF_TREC:
        return False
    good = [
        (len(row) == count or len(row) >= fields == RUN)
        and all(_is_number(row[i]) for i in NUMBERS_OF_TREC[fields])
        for row in rows
    ]
    return good[0] and 2 * sum(good) > len(rows)  # the others are bad lines of such a file


def _is_number(text: bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
