"""Open labels and predictions of any kind, and read their lists."""

import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import pyarrow.types as kinds

from rankmill.columns.buffers import floats_of
from rankmill.columns.lists import lengths_of, split_lists, value_type
from rankmill.columns.ragged_lists import Ragged
from rankmill.columns.ranked_lists import Lists
from rankmill.errors import InputError, UsageError, plural
from rankmill.records import record
from rankmill.semantics.choices import DEFAULT, Choices
from rankmill.sources.files.formats import check_format
from rankmill.sources.inputs.any_source import open_source
from rankmill.sources.meaning.cells import with_cells
from rankmill.sources.meaning.column_names import ALIASES, plain, warn
from rankmill.sources.meaning.looks import first_values, head
from rankmill.sources.meaning.one_id_kind import with_one_id_kind
from rankmill.sources.meaning.plain_ids import without_padding
from rankmill.sources.meaning.shapes import NO_FACTS, Kind, find_facts, shaped, understood
from rankmill.sources.meaning.values import with_column
from rankmill.sources.nouns import Given, Labels, Predictions
from rankmill.sources.roles.source import (
    MEMORY,
    PARTS,
    Batch,
    Columns,
    InputOptions,
    Role,
    Source,
    read_batches,
)
from rankmill.sources.rows.long import group_lists, stream_rows
from rankmill.sources.rows.wide import confidences_of, wide_lists
from rankmill.threads import Workers

Value = TypeVar("Value")

# The names of scores, which are no usual names of gains.
_SCORES, _RANKS = ({plain(name) for name in ALIASES[role]} for role in ("score", "rank"))
_LISTS = 10  # so many lists of the same length are no accident
_SWAPPED = "did you swap labels and predictions?"
# What pandas calls an index without a name, in Parquet, in CSV, and read from CSV: row numbers.
ROW_NUMBERS = re.compile(r"(__index_level_[0-9]+__|Unnamed: 0([.][0-9]+)?)?")


@record(frozen=True)
class Input:
    """An opened source and the columns found in it."""

    source: Source
    columns: Columns

    def described(self, rows: int | None = None) -> dict[str, object]:
        """A description of this input for the result; `rows` is how many were read, if known.

        Of several files the first one decides which columns are not read; row numbers are no news.
        """
        schema = self.source.schema
        rules = self.source.findings.rules()
        read = {*self.columns.every()}
        read |= {name for name, some in rules.items() if PARTS.intersection(some)}
        others = (name for name in schema.names if name not in read)
        unread = [name for name in others if not ROW_NUMBERS.fullmatch(name)]
        wide = self.columns.wide
        return {
            "source": self.source.name,
            **({"format": self.source.format} if self.source.format else {}),
            "files": len(self.source.schemas),
            "rows": rows if self.source.rows is None else self.source.rows,
            "shape": "ragged" if self.source.positional else "wide" if wide else "long",
            "columns": self.columns.mapping(),
            **({"unread": unread} if unread else {}),
        }

    def comment_lines(self) -> dict[str, int]:
        """The count of comments that were read so far, as the audit has it; empty without any."""
        counts = self.source.comments
        return {"comment_lines": sum(list(counts.values()))} if counts else {}

    def id_types(self, role: str) -> set[Any]:
        """The Arrow types of the ids in a column, over all files; for lists, of their items."""
        name = getattr(self.columns, role)
        return {value_type(schema.field(name).type) for schema in self.source.kinds().values()}


def open_input(
    one: Labels | Predictions,
    *,
    opened: Source | None = None,
    role: Role | None = None,
    need_score: bool = False,
    semantics: Choices = DEFAULT,
    may_be_empty: bool = False,
    memory: int = MEMORY,
    facts: Mapping[str, Kind] = NO_FACTS,
    seen: Mapping[str, str] = NO_FACTS,
    noted: bool = False,
) -> Input:
    """Open labels or predictions, and find their columns.

    `role` is what labels are given as, if not as labels, `facts` are the columns with a value a
    query that `read_facts` will read, and `seen` those with a value a label, each with the metric
    that sees it. An input that can be read only once, and has to be read
    again, is held: `memory` bytes of it, and the others on disk. Warnings show `Columns.doubts`,
    unless the caller does, as `noted` says.
    """
    if isinstance(one.data, Input):  # opened before, as on the driver of a cluster
        return one.data
    asked = one.asked(role, facts=tuple(facts), seen=tuple(seen), memory=memory)
    source = opened or one.data  # opened before, if it is read several times
    if not isinstance(source, Source):
        (source,) = open_sources([(one.data, asked)], may_be_empty=may_be_empty)
    try:
        source, found = understood(source, asked, need_score=need_score, semantics=semantics)
        for doubt in () if noted else found.doubts:
            warn(doubt)
        source = find_facts(source, facts) if facts else source
        for name, metric in seen.items():  # those of text become numbers when they are read
            with_column(source, name, metric, (found.query, found.item), lists=found.wide)
        if found.padding is not None:
            source = without_padding(source, found.item, found.padding)
    except BaseException:
        source.close()
        raise
    # Long rows are read again if the rows of a query turn out not to be adjacent, confidences if
    # they need more memory than they may take, and facts apart from the items.
    if source.kept is not None and (need_score or facts or seen or not found.wide):
        held = source.kept(memory, found.every())
        # All that is known of it, and what will be told of it, stays.
        again = {name: getattr(held, name) for name in ("pieces", "sizes", "end", "kept", "peek")}
        source = replace(source, **again, whole=False)
    return Input(source, found)


def open_sources(
    given: Sequence[tuple[Any, InputOptions]],
    *,
    may_be_empty: bool = False,
    beside: Sequence[Input] = (),
) -> list[Source]:
    """Open data, and decide for all of them together what cells of text hold; see `with_cells`.

    The inputs `beside` were opened before, and have an item a row or lists.
    """
    with ExitStack() as stack:
        opened = []
        for data, asked in given:
            source = data  # opened before, if it is read several times
            if not isinstance(data, Source):
                source = shaped(open_source(data, asked, may_be_empty=may_be_empty))
            stack.callback(source.close)
            opened.append((source, asked))
        for one in beside:
            query, item = one.columns.query, one.columns.item
            known = InputOptions("labels", query=query, item=item, format="csv-long")
            opened.append((one.source, known))
        found = with_cells(opened)[: len(given)]
        stack.pop_all()
        return found


def check_told(one: Given, semantics: Choices = DEFAULT) -> None:
    """Raise UsageError if what is told of an input contradicts itself, or the semantics."""
    asked = one.asked()
    check_format(asked.format)
    if asked.encoding is not None:
        from rankmill.sources.files.text_blocks import check_encoding

        check_encoding(asked.encoding)
    if asked.decimal not in (".", ","):
        raise UsageError(f"decimal is {asked.decimal!r}; expected '.' or ','")
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


@contextmanager
def _swapped(given: Labels, labels: Input) -> Iterator[None]:
    """Ask in an error about predictions whether both sides were swapped.

    That is likely if the gains of the labels were found in a column of scores, or if all lists of
    labels have one length.
    """
    try:
        yield
    except InputError as error:
        gain = labels.columns.gain or ""
        if given.gain is None and plain(gain) in _SCORES:
            sign = f"{labels.source.name} has the column {gain!r}"
        elif length := _full_lists(labels):
            sign = f"each query of {labels.source.name} has {length} labels"
        else:
            raise
        raise InputError(f"{error}; {sign}: {_SWAPPED}") from None


def _ask_if_swapped(labels: Input, predictions: Input) -> None:
    """Note that both sides may be swapped: gains have decimals, and scores are integers.

    Or all lists of labels have one length, as in a submission, and most predictions are fewer.
    """
    # Counts are known from footers: the lists of files that are not swapped need no look.
    wide = _wide(labels) and _wide(predictions)
    known = wide and _mean_length(predictions) >= _mean_length(labels) > 1
    if wide and not known and (length := _full_lists(labels)):
        lengths = _first_lengths(predictions)
        if len({*lengths.tolist()}) > 1 and np.median(lengths) < length:
            labels.source.findings.say(
                f"each query of {labels.source.name} has {length} labels, and most of "
                f"{predictions.source.name} have fewer predictions: {_SWAPPED}"
            )
    gain, score = labels.columns.gain, predictions.columns.score
    if gain is not None and score is None and plain(gain) in _SCORES:
        ranked = any(plain(name) in _RANKS for name in labels.source.schema.names)
        if ranked or (_first_gains(labels, gain) % 1 > 0).any():
            labels.source.findings.say(
                f"the gains of {labels.source.name} are its {gain!r}, as of predictions, and "
                f"{predictions.source.name} has no scores: {_SWAPPED}"
            )
    if gain is None or score is None:
        return
    of_gain, of_score = (
        value_type(one.source.schema.field(name).type)
        for one, name in ((labels, gain), (predictions, score))
    )
    whole = kinds.is_floating(of_gain) and kinds.is_integer(of_score)
    if whole and (_first_gains(labels, gain) % 1 > 0).any():
        labels.source.findings.say(
            f"the gains of {labels.source.name} ({gain!r}) have decimals, and the scores of "
            f"{predictions.source.name} ({score!r}) have none: {_SWAPPED}"
        )


def _note_if_same(labels: Input, predictions: Input, same_object: bool) -> None:
    """Note that both sides are one column of the same files, or of the same object.

    With gains they are not: a table of candidates has both.
    """
    if labels.columns.gain is not None:
        return
    mine, theirs, item = labels.source, predictions.source, labels.columns.item
    same = same_object or (mine.format and {*mine.schemas} == {*theirs.schemas})
    if same and item == predictions.columns.item:
        theirs.findings.say(f"the predictions are the labels: both are {item!r} of {mine.name}")


def _wide(one: Input) -> bool:
    return bool(one.columns.wide) and one.source.lists is None


def _full_lists(labels: Input) -> int:
    """Return the one length of the first lists of labels, as in a submission; 0 if they differ."""
    full = _first_lengths(labels) if _wide(labels) else np.zeros(0, np.int64)
    return int(full[0]) if len(full) >= _LISTS and full[0] > 1 and (full == full[0]).all() else 0


def _mean_length(one: Input) -> float:
    """How many items a list has; at most 1 if that is not known before it is read."""
    item, rows = one.columns.item, one.source.rows
    return one.source.sizes([item])[item][0] / rows if rows else 0


def _first_lengths(one: Input) -> np.ndarray:
    item = one.columns.item
    return lengths_of(split_lists(head(one.source, [item])[item])[0])


def _first_gains(labels: Input, gain: str) -> np.ndarray:
    return floats_of(first_values(labels.source, gain), f"{labels.source.name}: column {gain!r}")


def check_positions(labels: Source, predictions: Source, role: Role = "predictions") -> None:
    """Raise an error if only one side has places for query ids, or if they differ in length.

    Rows of tables on both sides are asked about: taken for lists, they hold their queries as items.
    `role` is what the other side is given as.
    """
    if labels.tuples and predictions.tuples:
        raise UsageError(
            f"labels and {role} are tuples, which may be rows, such as (query, item), or lists "
            "of items: give rows as a DataFrame or as {query: [items]}, and the items of each "
            "query as a list: [list(one) for one in ...]"
        )
    if labels.positional != predictions.positional:
        one, other = ("labels", role) if labels.positional else (role, "labels")
        listed = labels if labels.positional else predictions
        # Lists in a file are wrong data, those of a program a wrong call.
        raise (InputError if listed.format else UsageError)(
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
    seen: Mapping[str, str] = NO_FACTS,
    noted: bool = False,
) -> Iterator[tuple[Input, dict[str, Input]]]:
    """Open labels and all predictions, find their columns, and check that their ids can match.

    `facts`, `seen` and `noted` are of the labels, as in `open_input`. With subtopics, the gains of
    the labels say which of them they have.
    """
    if labels.subtopic is not None:
        facts = {**facts, labels.subtopic: "subtopic"}
    if not runs:
        raise UsageError(
            "there are no predictions to evaluate; expected those of one system or more"
        )
    for one in (labels, *runs.values()):
        check_told(one, semantics)
    given = [labels, *runs.values()]
    with ExitStack() as stack:
        fresh = [one for one in given if not isinstance(one.data, Input)]
        named: dict[int, Any] = {id(labels): {"facts": tuple(facts), "seen": tuple(seen)}}
        asked = [(one.data, one.asked(**named.get(id(one), {}), memory=memory)) for one in fresh]
        opened = open_sources(asked, may_be_empty=may_be_empty)
        for source in opened:  # ends what stays open if a later one is wrong
            stack.callback(source.close)
        of_noun: dict[int, Source] = {
            id(one): source for one, source in zip(fresh, opened, strict=True)
        }
        found = of_noun.get(id(labels))
        of_labels: Any = {"facts": facts, "seen": seen, "noted": noted}
        label_input = open_input(labels, opened=found, memory=memory, **of_labels)
        stack.callback(label_input.source.close)
        inputs = {}
        for name, predictions in runs.items():
            with _swapped(labels, label_input):
                inputs[name] = open_input(
                    predictions,
                    opened=of_noun.get(id(predictions)),
                    need_score=need_score,
                    semantics=semantics,
                    memory=memory,
                )
            stack.callback(inputs[name].source.close)
        for name, each in inputs.items():
            _ask_if_swapped(label_input, each)
            _note_if_same(label_input, each, labels.data is runs[name].data)
            check_positions(label_input.source, each.source)
        label_input, *others = alike([label_input, *inputs.values()], opened=not fresh)
        if labels.subtopic is not None:
            from rankmill.sources.rows.subtopics import with_subtopics

            made = with_subtopics(label_input.source, label_input.columns, labels.subtopic)
            label_input = Input(*made)
        yield label_input, dict(zip(inputs, others, strict=True))


def alike(inputs: Sequence[Input], *, fixed: bool = False, opened: bool = False) -> list[Input]:
    """The inputs with ids that can be compared; see `with_one_id_kind`."""
    given = [(one.source, one.columns) for one in inputs]
    sources = with_one_id_kind(given, fixed=fixed, opened=opened)
    first, *others = (one.findings for one in sources)
    first.compared = [*first.compared, *others] if fixed else others
    for one in others:
        one.compared = [first]
    return [Input(source, one.columns) for one, source in zip(inputs, sources, strict=True)]


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
    from rankmill.sources.rows.long import grouped_lists

    return workers.map(work, grouped_lists(source, columns, workers, memory))


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
        return work(offsets, confidences_of(column, columns, batch.source))

    def of_lists(lists: Lists) -> Value:
        if arrange is not None:
            lists = arrange(lists)
        return work(lists.offsets, lists.confidences)

    in_order = not columns.unordered if columns.wide else whole
    if in_order and arrange is None and source.lists is None:
        return read_batches(of_batch, source, [name], workers)
    return map_lists(of_lists, source, columns, workers, memory=memory)
