"""Open labels and predictions of any kind, and read their lists."""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from rankmill.columns.lists import split_lists, value_type
from rankmill.columns.ragged_lists import Ragged
from rankmill.columns.ranked_lists import Lists
from rankmill.errors import InputError, UsageError, plural
from rankmill.semantics.choices import DEFAULT, Choices
from rankmill.sources.files.formats import check_format
from rankmill.sources.input_options import FRUGAL, MEMORY, Role, key_of
from rankmill.sources.inputs.any_source import open_source
from rankmill.sources.nouns import Given, Labels, Predictions
from rankmill.sources.roles.column_names import warn
from rankmill.sources.roles.comparable_ids import check_comparable, id_columns
from rankmill.sources.roles.derived_columns import keyed, without_padding
from rankmill.sources.roles.roles import Columns, find_columns
from rankmill.sources.roles.source import BATCH_VALUES, Batch, Block, Source, read_batches
from rankmill.sources.rows.facts import NO_FACTS, Kind, find_facts
from rankmill.sources.rows.long import group_lists, stream_rows
from rankmill.sources.rows.wide import confidences_of, wide_lists
from rankmill.threads import Workers

Value = TypeVar("Value")

# Of an input that is read ahead, so many bytes at most wait.
AHEAD_BYTES = 1 << 26


@dataclass(frozen=True)
class Input:
    """An opened source and the columns found in it."""

    source: Source
    columns: Columns

    def described(self, rows: int | None = None) -> dict[str, object]:
        """A description of this input for the result; `rows` is how many were read, if known.

        Of several files the first one decides which columns are not read.
        """
        schema = next(iter(self.source.schemas.values()))
        key = self.source.key
        read = {*self.columns.names(), *self.columns.facts, *(key.parts if key else ())}
        unread = [name for name in schema.names if name not in read]
        doubts = [] if self.source.doubts is None else self.source.doubts.all()
        wide = self.columns.wide
        return {
            "source": self.source.name,
            **({"format": self.source.format} if self.source.format else {}),
            "files": len(self.source.schemas),
            "rows": rows if self.source.rows is None else self.source.rows,
            "shape": "ragged" if self.source.positional else "wide" if wide else "long",
            "columns": self.columns.mapping(),
            **({"unread": unread} if unread else {}),
            **({"doubts": [one.to_dict() for one in doubts]} if doubts else {}),
        }

    def doubtful(self) -> dict[str, int]:
        """What the audit counts of the rows of text read so far; empty for other inputs."""
        return {} if self.source.doubts is None else self.source.doubts.counts()

    def id_types(self, role: str) -> set[Any]:
        """The Arrow types of the ids in a column, over all files; for lists, of their items."""
        return self.types(getattr(self.columns, role))

    def types(self, name: str) -> set[Any]:
        """The Arrow types of a column, over all files; for lists, of their items."""
        return {value_type(schema.field(name).type) for schema in self.source.kinds().values()}


def open_input(
    one: Labels | Predictions,
    *,
    role: Role | None = None,
    need_score: bool = False,
    semantics: Choices = DEFAULT,
    may_be_empty: bool = False,
    memory: int = MEMORY,
    facts: Mapping[str, Kind] = NO_FACTS,
    noted: bool = False,
) -> Input:
    """Open labels or predictions, and find their columns.

    `role` is what labels are given as, if not as labels, and `facts` are the columns with a value a
    query that `read_facts` will read. An input that can be read only once, and has to be read
    again, is held: `memory` bytes of it, and the others on disk. A warning shows `Columns.doubt`,
    unless the caller does, as `noted` says.
    """
    if isinstance(one.data, Input):  # opened before, as on the driver of a cluster
        return one.data
    asked = one.asked(role, facts=tuple(facts), memory=memory)
    source = one.data  # opened before, if it is read several times
    if not isinstance(source, Source):
        source = open_source(one.data, asked, may_be_empty=may_be_empty)
    try:
        if source.key is None:
            key = key_of(asked.query, next(iter(source.schemas.values())).names)
            source = source if key is None else keyed(source, key)
        found = find_columns(source, asked, need_score=need_score, semantics=semantics)
        if found.doubt and not noted:
            warn(found.doubt)
        source = find_facts(source, facts) if facts else source
        if found.padding is not None:
            source = without_padding(source, found.item, found.padding)
    except BaseException:
        source.close()
        raise
    if source.typed is not None:  # text that may hold a number as an integer or as a float
        types = {found.score: pa.float64(), found.gain: pa.float64(), found.rank: pa.int64()}
        told = {name: kind for name, kind in types.items() if name is not None}
        source = source.with_types(told)
    # Long rows are read again if the rows of a query turn out not to be adjacent, confidences if
    # they need more memory than they may take, and facts apart from the items.
    if source.kept is not None and (need_score or facts or not found.wide):
        source = source.kept(memory, list(dict.fromkeys([*found.names(), *facts])))
    return Input(source, found)


def check_told(one: Given, semantics: Choices = DEFAULT) -> None:
    """Raise UsageError if what is told of an input contradicts itself, or the semantics."""
    asked = one.asked()
    check_format(asked.format)
    if asked.encoding is not None:
        from rankmill.sources.files.encodings import check_encoding

        check_encoding(asked.encoding)
    numbers, kind = asked.numbers, asked.kind
    if isinstance(numbers, Ragged) and not isinstance(one.data, Ragged):
        raise UsageError(
            f"{kind} is a Ragged, but the {asked.role} are not: name the column that holds it, or "
            f"give both as Ragged"
        )
    if not (numbers is None or isinstance(numbers, str | Ragged)):
        raise UsageError(
            f"{kind} is a {type(numbers).__name__}; expected the name of a column, or a Ragged "
            "with a Ragged: give other lists as (item, number) pairs"
        )
    if isinstance(one, Labels) and one.binary and one.gain is not None:
        raise UsageError(
            "binary means that labels have no gains, but gains are named: leave out --binary "
            "or --gain"
        )
    if not isinstance(one, Predictions) or not one.in_order:
        return
    if one.rank is not None:
        raise UsageError(
            "in_order means that predictions are not ordered by ranks, but a rank column is named: "
            "leave out --in-order or --rank"
        )
    if semantics.order != "given":
        raise UsageError(
            "in_order means that predictions keep their order, but the semantics order them by "
            f"confidence ({semantics.order}): leave out --in-order, or choose "
            "--semantics order=given"
        )


def check_positions(labels: Source, predictions: Source, role: Role = "predictions") -> None:
    """Raise an error if only one side has places for query ids, or if they differ in length.

    `role` is what the other side is given as.
    """
    if labels.positional != predictions.positional:
        one, other = ("labels", role) if labels.positional else (role, "labels")
        raise UsageError(
            f"{one} are lists without query ids, but {other} have ids: give both as lists or "
            "Ragged, list q of both for query q, or both with ids, such as {query: [items]}"
        )
    if labels.positional and labels.rows != predictions.rows:
        raise InputError(
            f"{plural(labels.rows or 0, 'list')} of labels and {predictions.rows} of {role}; "
            "expected the same number, list q of both for query q"
        )
    if None not in (labels.width, predictions.width) and labels.width != predictions.width:
        raise InputError(
            f"{labels.name} has {plural(labels.width or 0, 'column')}, and {predictions.name} "
            f"{predictions.width}; expected the same number, column i of both for item i"
        )


@contextmanager
def open_inputs(
    labels: Labels,
    runs: Mapping[str, Predictions],
    *,
    need_score: bool = False,
    semantics: Choices = DEFAULT,
    may_be_empty: bool = False,
    memory: int = MEMORY,
    facts: Mapping[str, Kind] = NO_FACTS,
    noted: bool = False,
) -> Iterator[tuple[Input, dict[str, Input]]]:
    """Open labels and all predictions, find their columns, and check that their ids can match.

    `facts` and `noted` are of the labels, as in `open_input`. With subtopics, the gains of the
    labels say which of them they have.
    """
    if labels.subtopic is not None:
        facts = {**facts, labels.subtopic: "subtopic"}
    if not runs:
        raise UsageError(
            "there are no predictions to evaluate; expected those of one system or more"
        )
    for one in (labels, *runs.values()):
        check_told(one, semantics)
    with ExitStack() as stack:
        label_input = open_input(
            labels, may_be_empty=may_be_empty, memory=memory, facts=facts, noted=noted
        )
        stack.callback(label_input.source.close)
        inputs = {}
        for name, predictions in runs.items():
            inputs[name] = open_input(
                predictions,
                need_score=need_score,
                semantics=semantics,
                may_be_empty=may_be_empty,
                memory=memory,
            )
            stack.callback(inputs[name].source.close)
        label_input, *others = with_one_id_type([label_input, *inputs.values()])
        for each in others:
            check_positions(label_input.source, each.source)
            check_comparable((label_input.source, label_input.columns), (each.source, each.columns))
        if labels.subtopic is not None:
            from rankmill.sources.rows.subtopics import with_subtopics

            made = with_subtopics(label_input.source, label_input.columns, labels.subtopic)
            label_input = Input(*made)
        yield label_input, dict(zip(inputs, others, strict=True))


def with_one_id_type(inputs: list[Input]) -> list[Input]:
    """Read the ids of text as integers where another input has integers.

    Text alone does not tell whether 12 is an integer. If all inputs are text, ids are compared as
    texts. An id of text that is no integer, such as 007, is an error once it is read.
    """
    if not any(one.source.text_ids for one in inputs):
        return inputs
    for role in ("query", "item"):
        named = [id_columns(one.source, one.columns, role) for one in inputs]
        for names in zip_longest(*named):
            kinds = {
                kind
                for one, name in zip(inputs, names, strict=True)
                if name and not one.source.text_ids
                for kind in one.types(name)
            }
            if any(pa.types.is_integer(kind) for kind in kinds):
                kind = pa.uint64() if pa.uint64() in kinds else pa.int64()
                inputs = [
                    with_integer_ids(one, name, kind) if name and one.source.text_ids else one
                    for one, name in zip(inputs, names, strict=True)
                ]
    return inputs


def with_integer_ids(one: Input, name: str, kind: Any) -> Input:
    """An input of text whose ids in a column are read as integers."""
    return replace(one, source=one.source.with_types({name: kind}))


def map_lists(
    work: Callable[[Lists], Value],
    source: Source,
    columns: Columns,
    workers: Workers,
    *,
    together: bool = False,
    memory: int | None = None,
) -> Generator[Value, None, None]:
    """Yield work(lists) for all lists of an input, a block at a time, in the order of the input.

    The caller must close the generator. Wide rows are streamed. Long rows are streamed if
    `together` promises that the rows of each query are adjacent; if they are not, a
    ScatteredRowsError is raised or a query comes twice. Otherwise long rows are grouped by query:
    in memory or, if that needs more than `memory` bytes, in partitions on disk.
    """
    if source.lists is not None:
        return workers.read(source.lists(columns), work)
    if columns.wide:
        return read_batches(
            lambda batch: work(wide_lists(batch, columns)), source, columns.names(), workers
        )
    if together:
        portions = stream_rows(source, columns, workers)
        return workers.map(lambda rows: work(group_lists(rows, columns, together=True)), portions)
    from rankmill.sources.rows.spill import grouped_lists

    return workers.map(work, grouped_lists(source, columns, workers, memory))


def bytes_ahead(one: Input, memory: int, threads: int) -> int:
    """Return how many bytes of an input `begun` reads ahead at most: none if it is of one batch."""
    source = one.source
    if not source.format or source.lists is not None or memory < FRUGAL or threads == 1:
        return 0
    values = max(count for count, _ in source.sizes(one.columns.names()).values())
    return AHEAD_BYTES if values > BATCH_VALUES else 0


@contextmanager
def begun(one: Input, memory: int, workers: Workers) -> Iterator[Input]:
    """Give an input of which a thread begins to read the first piece at once, if it is of files."""
    most = bytes_ahead(one, memory, workers.threads) if one.source.format else 0
    if not most:
        yield one
        return
    source, columns = one.source, one.columns.names()
    with workers.ahead(source.pieces(columns), _bytes_of, most) as ahead:
        waiting = [ahead]

        def pieces(asked: list[str]) -> Sequence[Iterator[Block]]:
            return waiting.pop() if waiting and asked == columns else source.pieces(asked)

        yield replace(one, source=replace(source, pieces=pieces))


def _bytes_of(block: Block) -> int:
    """The bytes of a batch; what another thread has yet to make is not worth reading ahead."""
    return block.data.nbytes if isinstance(block, Batch) else AHEAD_BYTES


def map_confidences(
    work: Callable[[np.ndarray, np.ndarray], Value],
    source: Source,
    columns: Columns,
    workers: Workers,
    *,
    memory: int,
    arrange: Callable[[Lists], Lists] | None,
    whole: bool,
) -> Generator[Value, None, None]:
    """Yield work(offsets, confidences) for all lists in a second pass, a block at a time.

    The caller must close the generator. Only the confidences are read, unless lists must be
    arranged or long rows must be grouped. If lists count `whole`, long rows are not grouped: those
    of each batch are given as one list. Scattered rows use `memory` bytes at most, as in map_lists.
    """
    name = str(columns.score)

    def of_batch(batch: Batch) -> Value:
        column = batch.data.column(name)
        if columns.wide:
            offsets, column = split_lists(column)
        else:
            offsets = np.array([0, len(column)])
        return work(offsets, confidences_of(column, columns))

    def of_lists(lists: Lists) -> Value:
        if arrange is not None:
            lists = arrange(lists)
        return work(lists.offsets, lists.confidences)

    in_order = not columns.unordered if columns.wide else whole
    if in_order and arrange is None and source.lists is None:
        return read_batches(of_batch, source, [name], workers)
    return map_lists(of_lists, source, columns, workers, memory=memory)
