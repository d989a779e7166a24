"""Read TREC's text files: qrels of three or four columns, and runs of six."""

from collections.abc import Sequence

from rankmill.errors import InputError, plural
from rankmill.sources.files.content import COMMENT, RUN
from rankmill.sources.files.doubts import Doubts
from rankmill.sources.files.files import File
from rankmill.sources.files.text_blocks import TextBlock, read_head
from rankmill.sources.input_options import InputOptions
from rankmill.sources.readers.fields import NUMBER, TEXT, FieldColumn, Layout, open_text
from rankmill.sources.roles.source import Source

Kinds = dict[int, tuple[str, dict[str, FieldColumn]]]


def _columns(**fields: int) -> dict[str, FieldColumn]:
    """The columns that are read, by their fields."""
    numbers = ("score", "relevance")
    return {name: FieldColumn(i, NUMBER if name in numbers else TEXT) for name, i in fields.items()}


# The number of fields of a line -> the fields, and the columns that are read. The rank of a run is
# not among them, because trec_eval ranks by the scores.
TAG = "tag"
RUNS: Kinds = {
    RUN: (
        "query, Q0, document, rank, score, tag",
        _columns(query_id=0, doc_id=2, score=4, **{TAG: 5}),
    )
}
# The second field of qrels, which holds subtopics in those of diversity, and is read if asked for.
ITERATION = "iteration"
QRELS: Kinds = {
    4: ("query, iteration, document, relevance", _columns(query_id=0, doc_id=2, relevance=3)),
    3: ("query, document, relevance", _columns(query_id=0, doc_id=1, relevance=2)),
}


def open_files(files: Sequence[File], name: str, asked: InputOptions) -> Source:
    """Open runs as predictions, or qrels as labels."""
    kinds = RUNS if asked.role == "predictions" else QRELS
    layouts = [_layout(read_head(file), kinds, asked) for file in files]
    format = "TREC run" if kinds is RUNS else "TREC qrels"
    return open_text(files, name, layouts, format, Doubts())


def _layout(head: TextBlock, kinds: Kinds, asked: InputOptions) -> Layout:
    line, count = _first_row(head)
    if count == 0:  # an empty file
        count = next(iter(kinds))
    if kinds is RUNS:
        count = min(count, RUN)
    if count not in kinds:
        expected = " or ".join(f"{one} ({fields})" for one, (fields, _) in kinds.items())
        todo = (
            "name another format with --labels-as or --predictions-as, such as tsv with the names "
            "of its columns"
        )
        if count == 3:  # only a run can be here
            todo = (
                "if it is a run of MS MARCO, say --predictions-as tsv --columns query,item,rank on "
                'the command line, Predictions(format="tsv", columns="query,item,rank") in Python'
            )
        elif count in (4, 6):
            todo = f"if labels and predictions are swapped, swap them; if not, {todo}"
        raise InputError(
            f"{head.file}: line {line}: {plural(count, 'column')}; {asked.role} in TREC's format "
            f"have {expected}: {todo}"
        )
    density = head.lines / max(1, len(head.data))
    columns = kinds[count][1]
    if ITERATION in asked.facts and count == 4:
        columns = {**columns, ITERATION: FieldColumn(1, TEXT)}
    return Layout(columns, count, density=density, more=kinds is RUNS)


def _first_row(head: TextBlock) -> tuple[int, int]:
    """The line of the first row, which is neither empty nor a comment, and its fields; else 0."""
    for number, line in enumerate(head.data.tobytes().split(b"\n"), head.first_line):
        fields = line.split()
        if fields and not fields[0].startswith(COMMENT):
            return number, len(fields)
    return 0, 0
