"""What `by` asks for: columns of the labels, tables of query ids and classes, derived classes."""

import inspect
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from rankmill.columns.buffers import numbers_of, pc
from rankmill.columns.ids import take_ids
from rankmill.engine.held_labels import placed, read_label_facts
from rankmill.engine.job import Job, parse_job
from rankmill.engine.origin import TABLES, OriginRecorder
from rankmill.engine.segments import (
    DERIVED,
    OF_PREDICTIONS,
    Classes,
    Known,
    classes_of,
    codes_of,
    compact,
    training_of,
)
from rankmill.engine.slices import GROUP, check_terms, classes_of_groups
from rankmill.errors import InputError, UsageError, outside
from rankmill.io.stores.urls import shown
from rankmill.matching.index import LabelIndex, Lookup, look_up
from rankmill.metrics.registry import registered
from rankmill.metrics.sums import read_sums
from rankmill.metrics.texts import names_file
from rankmill.semantics.semantics import Counting
from rankmill.sources.files.formats import is_path, with_columns
from rankmill.sources.inputs.any_source import open_source, reusable
from rankmill.sources.inputs.inputs import Input
from rankmill.sources.meaning.column_names import warn
from rankmill.sources.meaning.one_id_kind import with_one_id_kind
from rankmill.sources.meaning.plain_ids import with_plain_ids
from rankmill.sources.meaning.roles import among, likely_query
from rankmill.sources.meaning.shapes import Kind, find_facts
from rankmill.sources.meaning.values import keyed
from rankmill.sources.nouns import Catalogue, Given, Labels, is_spark_frame
from rankmill.sources.roles.source import Columns, InputOptions, Key, Role
from rankmill.sources.rows.facts import QueryFacts, read_facts
from rankmill.threads import Workers

# ------------------------------------------------------------------ bins of numbers and dates

# What dates are cut by -> how many characters of a date as text tell it.
PERIODS = {"year": 4, "month": 7, "day": 10}
MOST_BINS = 100
_DATE = re.compile(r"\d{4}-\d\d-\d\d")


def bins_of(text: str) -> tuple[str, str]:
    """Return the column, and its bins or "", that a text such as "age:4" names.

    Examples
    --------
    >>> bins_of("age:4"), bins_of("signup:month"), bins_of("country"), bins_of("a:b")
    (('age', '4'), ('signup', 'month'), ('country', ''), ('a:b', ''))
    """
    name, _, bins = text.rpartition(":")
    wanted = bins in PERIODS or (bins.isdecimal() and 2 <= int(bins) <= MOST_BINS)
    return (name, bins) if name and wanted else (text, "")


def binned(column: Any, bins: str, where: str = "by") -> Any:
    """Return the bin of each value of an Arrow array as text: a period of dates, or a range.

    Ranges hold about equally many of the values, and equal values are in one range.

    Raises InputError, which says `where`, if the values are no dates or no numbers.

    Examples
    --------
    >>> binned(pa.array([3, 1, None, 2, 9]), "2").to_pylist()
    ['3..9', '1..2', None, '1..2', '3..9']
    """
    column = column.dictionary_decode() if kinds.is_dictionary(column.type) else column
    if bins in PERIODS:
        texts = column.cast(pa.string())
        strange = next((one for one in texts.to_pylist() if one and not _DATE.match(one)), None)
        if strange is not None:
            raise InputError(
                f"{where}: {strange!r} is not a date such as 2026-01-31, to be cut by {bins}"
            )
        return pc.utf8_slice_codeunits(texts, 0, PERIODS[bins])
    try:
        numbers = numbers_of(column.cast(pa.float64()), null=np.nan)
    except pa.ArrowException:
        kind = "dates: cut them by year, month or day" if pa.types.is_temporal(column.type) else ""
        raise InputError(
            f"{where} holds {kind or 'no numbers, to be cut into ' + bins + ' groups'}"
        ) from None
    known = np.flatnonzero(~np.isnan(numbers))
    if not len(known):
        return pa.nulls(len(column), pa.string())
    shares = np.arange(1, int(bins)) / int(bins)
    starts = np.unique(np.quantile(numbers[known], shares, method="inverted_cdf"))
    codes = np.searchsorted(starts, numbers, side="left")
    texts = np.full(len(column), None, object)
    for code in np.unique(codes[known]):
        of_bin = known[codes[known] == code]
        low, high = (f"{end(numbers[of_bin]):.15g}" for end in (np.min, np.max))
        texts[of_bin] = low if low == high else f"{low}..{high}"
    return pa.array(texts, pa.string())


# Of what the arguments may be of a call that asks for the same job each time.
SCALARS = {str, int, bool, type(None)}


class Cuts(NamedTuple):
    """What `by` asks for, told apart; each in the order asked.

    `popularity` has the classes "label_popularity" of queries where these are not all queries.
    `cluster` is the column that tells the clusters of queries: one of a table, or of the labels.
    `adjust` is the covariate: a column of the labels, or a table.
    """

    columns: tuple[str, ...] = ()
    derived: tuple[str, ...] = ()
    tables: tuple[Any, ...] = ()
    popularity: Any = None
    cluster: str | None = None
    adjust: Any = None

    @property
    def of_labels(self) -> str | None:
        """The column of the labels that tells the clusters."""
        there = {name for one in self.tables for name in column_names(one)} if self.cluster else ()
        return None if self.cluster in there else self.cluster

    @property
    def by_part(self) -> bool:
        """Whether some queries, with all that is said of them, tell in which slices they are."""
        return not self.tables and {*self.derived} <= {"label_count"}

    @property
    def facts(self) -> dict[str, Kind]:
        """The columns of the labels that are read, and what they hold."""
        found: dict[str, Kind] = dict.fromkeys(self.read, "segment")
        if isinstance(self.adjust, str) and not is_path(self.adjust):
            found[self.adjust] = "number"
        return found

    @property
    def read(self) -> tuple[str, ...]:
        """The columns of the labels that are read."""
        more = () if self.of_labels is None else (self.of_labels,)
        return tuple(dict.fromkeys([*self.columns, *more]))


def cuts_of(by: Any) -> Cuts:
    """Return what `by` asks for: one way to cut, or several.

    A text is a name in `DERIVED`; or a table, if it has a folder, a URL or the suffix of a format
    that can be read, maybe with the columns of it; else a column of the labels. Anything else is a
    table; a Series has to tell its name, and whose values it holds.
    """
    if isinstance(by, tuple | None) and not by:
        return Cuts()
    several = [by] if isinstance(by, str | os.PathLike) or not isinstance(by, list | tuple) else by
    names = list(dict.fromkeys(one for one in several if isinstance(one, str)))
    if "" in names:
        raise UsageError("by holds an empty name; expected a column of the labels or a table")
    tables = [_opened_once(_frame_of(checked(one))) for one in several if not isinstance(one, str)]
    tables += [one for one in names if one not in DERIVED and is_path(one)]
    return Cuts(
        tuple(one for one in names if one not in DERIVED and not is_path(one)),
        tuple(one for one in names if one in DERIVED),
        tuple(tables),
    )


def checked(value: Any, what: str = "by") -> Any:
    """Return what is given as a table; UsageError if it cannot be one."""
    no_table = isinstance(value, Mapping | set | frozenset | bytes | int | float | list | tuple)
    if no_table or isinstance(value, Given | Catalogue) or inspect.isroutine(value):
        raise UsageError(
            f"{what} cannot be a {type(value).__name__}; expected the name of a column of the "
            "labels, or a table with a column of query ids, such as a pandas Series by query id"
        )
    return value


def _frame_of(table: Any) -> Any:
    """Return a pandas Series, whose index holds query ids, as a DataFrame; else what is given."""
    if len(getattr(table, "shape", ())) != 1:
        return table
    if not hasattr(table, "rename_axis"):
        raise UsageError(
            f"by is a {type(table).__name__} of values alone: give a table that has a column of "
            "query ids too, such as polars.DataFrame({'query': ids, 'country': values}), or name a "
            "column of the labels, as in by='country'"
        )
    if table.name is None:
        raise UsageError(
            "by is a Series without a name: name it after its slices, as in "
            "series.rename('country')"
        )
    if table.index.names == [None]:
        if table.index.dtype.kind in "iu":
            raise UsageError(
                f"by is the Series {table.name!r}, whose index may be row numbers or query ids: if "
                f"it is a column of the labels, say by={str(table.name)!r}; if the index holds "
                "query ids, name it, as in series.rename_axis('query')"
            )
        table = table.rename_axis("query")
    return table.to_frame()


def _opened_once(table: Any) -> Any:
    """Return an opened source for rows that are given only once, as their columns are asked for."""
    if isinstance(table, Iterator) and not hasattr(table, "__arrow_c_stream__"):
        return open_source(table, InputOptions("by"), may_be_empty=True)
    return table


def read_classes(
    cuts: Cuts,
    labels: Input,
    index: LabelIndex,
    workers: Workers,
    memory: int,
    part: bool = False,
    recorder: OriginRecorder | None = None,
    beyond: dict[str, Lookup] | None = None,
) -> tuple[dict[str, Classes], np.ndarray | None]:
    """Return the classes of all queries of the labels by each column of the labels and tables.

    Tables of a part of the queries may have no rows. With the classes is the code of the cluster of
    each query, -1 where it is not known; None without clusters. It is an error if a table cannot be
    read, two columns have one name, or a column has too many values. To `beyond`, if it is given,
    come the other queries of each column of a table, whose places follow those of the labels.
    """
    tables = [
        read_table(one, labels, workers, memory, part, recorder=recorder) for one in cuts.tables
    ]
    _check_names(cuts, labels, tables)
    found: dict[str, Any] = {}
    origin = dict.fromkeys(cuts.read, labels.source.name)
    if cuts.read:
        found = read_label_facts(labels, index, cuts.read, workers)
    for one, asked in zip(tables, cuts.tables, strict=True):
        rows = index.find(one.queries)
        strange = rows < 0
        if strange.all() and not part:
            warn_of_strangers(asked)
        at = placed(one, rows, len(index.queries.keys), beyond=beyond is not None)
        if beyond is not None and strange.any():
            others = look_up(take_ids(one.queries, np.flatnonzero(strange)))[0]
            beyond |= dict.fromkeys(at, others)
        found |= at
        origin |= dict.fromkeys(at, name_of_table(asked))
    if cuts.cluster is not None and cuts.cluster not in found:
        raise UsageError(f"cluster {cuts.cluster!r} is a column of query ids: leave it out")
    clusters = None
    if cuts.cluster is not None:
        clusters = codes_of(found[cuts.cluster])
        if cuts.cluster not in cuts.columns:
            del found[cuts.cluster]
    classes = {}
    for name, column in found.items():
        with outside(f"{origin[name]}: column {name!r}"):
            classes[name] = classes_of(name, column)
    return classes, clusters


def job_of(
    metrics: str | Iterable[str],
    labels: Labels,
    semantics: Counting,
    catalogue: Catalogue | None,
    by: Any,
    sums: str | Iterable[str],
    **more: Any,
) -> Job:
    """Return the job of a function of the face; `more` are other fields of it."""
    cuts, asked = cuts_of(by), (sums,) if isinstance(sums, str) else tuple(sums)
    names = (metrics,) if isinstance(metrics, str) else metrics
    if catalogue is None and cuts == Cuts() and not asked and isinstance(names, tuple | list):
        told = semantics, labels.weight, *names
        if {type(one) for one in (*told, *more.values())} <= SCALARS and not names_file(names):
            return _usual_job(registered(), *told, **more)
    job = parse_job(metrics, labels, semantics, catalogue, asked, **more)
    names = (*cuts.columns, *cuts.derived)
    if not cuts.tables:
        check_terms(read_sums(asked), names)
    if cuts == Cuts():
        return job
    lengths = bool(OF_PREDICTIONS & {*cuts.derived})
    return replace(job, cuts=cuts, by=names, keep_lengths=lengths)


@lru_cache(1 << 6, typed=True)
def _usual_job(
    registered: int, semantics: str, weight: str | None, *metrics: str, **more: Any
) -> Job:
    """Return the job of names and numbers alone: each step of a training asks for the same one."""
    return parse_job(metrics, Labels(None, weight=weight), semantics, **more)


def check_several(job: Job) -> None:
    """Raise UsageError if something cannot cut where several systems are scored."""
    if job.cuts is not None and "unpredicted" in job.cuts.derived:
        raise UsageError(
            "by='unpredicted' depends on all systems, which evaluate_runs scores one after the "
            "other: use compare"
        )


def with_ways(job: Job, labels: Input, index: LabelIndex, workers: Workers) -> Job:
    """Cut the queries of an index by all that is known before predictions are read.

    Return the job with the names of the ways; UsageError if sums ask for others.
    """
    cuts = job.cuts
    if job.groups is not None:
        if not index.classes:
            of_labels = labels, index, workers, job.memory, job.part
            clusters = read_classes(cuts, *of_labels)[1] if cuts.cluster is not None else None
            index.classes = {GROUP: classes_of_groups(index.queries, clusters)}
        return job
    if not index.classes:
        beyond: dict[str, Lookup] = {}
        how = labels, index, workers, job.memory, job.part, job.recorder, beyond
        found, _ = read_classes(cuts, *how)
        known = Known(index, np.zeros(0, np.int64), [], training_of(job))
        for name in cuts.derived:
            if name not in OF_PREDICTIONS:
                found[name] = DERIVED[name].classes(known)
        queries = len(index.queries.keys)
        for name, classes in found.items():
            values, codes = compact(name, classes)
            index.classes[name] = values, codes[:queries]
            if name in beyond:
                index.beyond[name] = beyond[name], np.append(codes[queries:], len(values) - 1)
    columns = (name for name in index.classes if name not in cuts.derived)
    job = replace(job, by=(*columns, *cuts.derived))
    check_terms(read_sums(job.sums, job.scope.rel), job.by)
    return job


def warn_of_strangers(table: Any) -> None:
    """Warn that no query of a table is among the labels."""
    warn(f"by: no query of {name_of_table(table)} is among the labels: check that their ids agree")


def chosen(table: Any) -> tuple[Any, tuple[str, ...]]:
    """Return a table that `by` names, and which of its columns it names, if not all."""
    return with_columns(table) if isinstance(table, str) else (table, ())


def name_of_table(table: Any) -> str:
    """Return what messages call a table that `by` names."""
    path, _ = chosen(table)
    return shown(os.fspath(path)) if isinstance(path, str | os.PathLike) else "a table"


def _check_names(cuts: Cuts, labels: Input, tables: Iterable[QueryFacts]) -> None:
    named = [(name, labels.source.name) for name in cuts.columns]
    for table, one in zip(cuts.tables, tables, strict=True):
        named += [(name, name_of_table(table)) for name in one.columns]
    named += [(name, "rankmill") for name in cuts.derived]
    names = [name for name, _ in named]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        owners = " and ".join(dict.fromkeys(owner for name, owner in named if name == twice))
        raise UsageError(
            f"two kinds of slices are called {twice!r} (of {owners}): leave one out, or rename a "
            "column; a text such as users.csv:country,age chooses columns of a file"
        )
    there = labels.source.schema.names
    both = next((name for name in cuts.derived if name in there), None)
    if both is not None:
        raise UsageError(
            f"{labels.source.name} has a column {both!r}, which is also what rankmill calls "
            f"{DERIVED[both].meaning}: rename the column"
        )


def column_names(table: Any) -> list[str]:
    """Return the names of the columns of a table that `by` names, which is only opened."""
    table, names = chosen(table)
    names = tuple(bins_of(one)[0] for one in names)
    if is_spark_frame(table):
        return [*table.columns]
    with closing(open_source(table, InputOptions("by"), may_be_empty=True)) as source:
        return list(names or source.schema.names)


def read_table(
    value: Any,
    labels: Input,
    workers: Workers,
    memory: int,
    part: bool = False,
    kind: Kind = "segment",
    recorder: OriginRecorder | None = None,
) -> QueryFacts:
    """Read a table of query ids and classes; the columns chosen cut, or all of its others.

    A part may have no rows.
    """
    one = open_cut(value, labels, memory, part, kind)
    with closing(one.source):
        one = one if recorder is None else recorder.divided(one, TABLES)
        found = read_facts(one.source, one.columns, one.columns.facts, workers)
    for name, bins in map(bins_of, chosen(value)[1]):
        if bins:
            where = f"{one.source.name}: column {name!r}"
            found.columns[name] = binned(found.columns[name], bins, where)
    return found


def open_cut(
    value: Any, labels: Input, memory: int, part: bool = False, kind: Kind = "segment"
) -> Input:
    """Open a table as `read_table` reads it; the caller closes its source."""
    role: Role = "adjust" if kind == "number" else "by"
    value, asked = chosen(value)
    if kind == "segment":
        asked = tuple(bins_of(one)[0] for one in asked)
    source = reusable(open_source(value, InputOptions(role), may_be_empty=part), memory)
    if not isinstance(value, str | os.PathLike):
        source = replace(source, name=f"the table of {role}")
    try:
        schema = source.schema
        key = labels.source.key
        query = among(schema.names, {"query": key or labels.columns.query})["query"]
        if isinstance(query, Key):
            source, query = keyed(source, query), query.name
            schema = source.schema
        query = query or (likely_query(source) if key is None else None) or ""
        if not query:
            raise InputError(
                f"{source.name} has the columns {', '.join(schema.names)}; expected one with query "
                f"ids: call it {labels.columns.query!r}, as in the labels; an index of pandas gets "
                "a name by rename_axis"
            )
        parts = (*(source.key.parts if source.key else ()), query)
        names = [name for name in schema.names if name not in parts]
        if missing := [name for name in asked if name not in names]:
            name, _, cut = missing[0].rpartition(":")
            bins = f"; {name!r} can be cut by 2 to {MOST_BINS}, or by {', '.join(PERIODS)}"
            raise UsageError(
                f"{source.name} has no column {missing[0]!r} next to its query ids {query!r}: it "
                f"has {', '.join(names) or 'no other'}{bins if cut and name in names else ''}"
            )
        names = [*dict.fromkeys(asked)] or names
        if not names:
            raise InputError(
                f"{source.name} has no column but the query ids {query!r}; expected another "
                "one, whose values define slices"
            )
        source = find_facts(source, dict.fromkeys(names, kind))
        columns = Columns(query, query, wide=True, facts=tuple(names))
        if source.key is None and labels.source.key is None:
            source = with_plain_ids(source, query, "query")
            both = [(labels.source, labels.columns), (source, columns)]
            source = with_one_id_kind(both, fixed=True, roles=("query",))[1]
        return Input(source, columns)
    except BaseException:
        source.close()
        raise
