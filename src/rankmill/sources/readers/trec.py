"""Read TREC's text files: qrels of three or four columns, and runs of six."""

from collections.abc import Sequence

from rankmill.errors import InputError, plural
from rankmill.sources.files.content import RUN, trec_rows
from rankmill.sources.files.files import File
from rankmill.sources.files.text_blocks import ALL, BLANKS, TextBlock, read_head
from rankmill.sources.readers.text_tables import Comments, Layout, open_text
from rankmill.sources.roles.source import InputOptions, Source

TAG = "tag"
# The second field of qrels, which holds subtopics in those of diversity, and is read if asked for.
ITERATION = "iteration"
# The number of fields of a line -> their names. The rank of a run is not read, because trec_eval
# ranks by the scores.
Kinds = dict[int, tuple[str, ...]]
RUNS: Kinds = {RUN: ("query_id", "Q0", "doc_id", "rank", "score", TAG)}
QRELS: Kinds = {
    4: ("query_id", ITERATION, "doc_id", "relevance"),
    3: ("query_id", "doc_id", "relevance"),
}
UNREAD = {"Q0", "rank"}


def open_files(files: Sequence[File], name: str, asked: InputOptions) -> Source:
    """Open runs as predictions, or qrels as labels."""
    kinds = RUNS if asked.role == "predictions" else QRELS
    layouts = [_layout(read_head(file), kinds, asked) for file in files]
    comments: Comments = {}
    format = "TREC run" if kinds is RUNS else "TREC qrels"
    return open_text(files, name, layouts, format, comments)


def _layout(head: TextBlock, kinds: Kinds, asked: InputOptions) -> Layout:
    most = RUN if kinds is RUNS else ALL
    rows = trec_rows(head.data.tobytes())
    count = min(len(rows[0][1].split()), most) if rows else next(iter(kinds))
    separator = BLANKS
    for width in kinds:
        if _are_parted_by_tabs([row for _, row in rows], width):
            count, separator = width, "\t"
    if count not in kinds:
        expected = " or ".join(f"{one} ({', '.join(names)})" for one, names in kinds.items())
        todo = (
            "name another format with --labels-as or --predictions-as, such as tsv with the names "
            "of its columns"
        )
        if count == 3:  # only a run can be here
            todo = (
                "if it is a run of MS MARCO, use --predictions-as tsv --columns query,item,rank on "
                'the command line, Predictions(format="tsv", columns="query,item,rank") in Python'
            )
        elif count in (4, 6):
            todo = f"if labels and predictions are swapped, swap them; if not, {todo}"
        line = head.first_line - 1 + rows[0][0]
        raise InputError(
            f"{head.file}: line {line}: {plural(count, 'column')}; {asked.role} in TREC's "
            f"format have {expected}: {todo}"
        )
    fields = kinds[count]
    unread = UNREAD if ITERATION in (*asked.facts, *asked.seen) else {*UNREAD, ITERATION}
    columns = tuple(name for name in fields if name not in unread)
    density = len(rows) / max(1, len(head.data))
    return Layout(fields, separator, columns, density=density, trec=True, most=most)


def _are_parted_by_tabs(rows: Sequence[bytes], width: int) -> bool:
    """Whether a tab stands between all fields, which may then hold blanks themselves.

    Runs of tabs and blanks do where there are blanks beside tabs, and all rows fit then.
    """
    tabs = [row.count(b"\t") == width - 1 for row in rows]
    mixed = any(b" \t" in row or b"\t " in row for row in rows)
    if not (all(tabs) and not mixed) and all(len(row.split()) == width for row in rows):
        return False
    return 2 * sum(tabs) >= len(rows) > 0
