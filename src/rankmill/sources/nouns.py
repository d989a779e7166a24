"""What a user hands over: labels, predictions, a catalogue, and how each is read.

None of them opens anything before it is used.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, replace
from typing import Any, ClassVar, Protocol, Self, TypeAlias

from rankmill.columns.matrix import Matrix
from rankmill.columns.ragged_lists import Ragged
from rankmill.errors import UsageError
from rankmill.package import public
from rankmill.records import record
from rankmill.semantics.semantics import noun_text
from rankmill.sources.roles.source import InputOptions, Key, Prepared, Role, column_names


class _Noun:
    """Nouns are equal if what they hold is; frames and arrays are compared by their values."""

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        mine, theirs = vars(self), vars(other)
        return all(_alike(mine[name], theirs[name]) for name in mine)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return noun_text(self)


@record(frozen=True, eq=False, repr=False)
class Given(_Noun):
    """An input whose columns tell whether it is labels or predictions."""

    role: ClassVar[Role | None] = None

    data: Any
    _: KW_ONLY
    query: str | Sequence[str] | Key | None = None
    item: str | None = None
    padding: Any = None
    exact_ids: bool = False
    decimal: str = "."
    format: str | None = None
    columns: str | Sequence[str] | None = None
    encoding: str | None = None

    @classmethod
    def of(cls, value: Any) -> Self:
        """Return what is given as labels or predictions; anything bare is read by usual names.

        Raises
        ------
        UsageError
            If it is labels instead of predictions, or the other way round.
        """
        if not isinstance(value, _Noun):
            return cls(value)
        if not isinstance(value, cls):
            raise UsageError(
                f"{cls.role} cannot be {type(value).__name__}(...): expected {cls.__name__}(...)"
            )
        return value

    def head(self) -> Any:
        """Return how this is understood, from its first rows; see `rankmill.head`."""
        return public("head")(self)

    def asked(self, role: Role | None = None, **more: Any) -> InputOptions:
        """Return what is told of an input; `more` are fields of `InputOptions`."""
        names = column_names(self.columns)
        told = self.format, names, self.query, self.item
        more |= {"padding": None if self.padding is None else str(self.padding)}
        return InputOptions(
            role or self.role or "predictions",
            *told,
            encoding=self.encoding,
            exact_ids=self.exact_ids,
            decimal=self.decimal,
            **more,
        )


@record(frozen=True, eq=False, repr=False, kw_only=True)
class Labels(Given):
    """The labels of each query, and how to read them.

    Parameters
    ----------
    data : str, path, list of paths, frame, dict, lists or Arrow data
        As the labels of `evaluate`.
    query, item : str (query also a list), optional
        The names of columns that are not found by their usual names, such as user_id and item_id.
        Where several columns make a query, `query` is a list of them, or their names with commas
        between. If predictions have one column with their joined text, it is a template of this
        text, such as "{session}_{type}". Results show the joined ids.
    gain : str or Ragged, optional
        The column of gains (graded relevance). For a `Ragged`, a Ragged with the same offsets.
    weight : str, optional
        The column with the weight of each query: 0, or a number from 1e-100 to 1e100. Means are
        then sum(weight * value) / sum(weight), with standard errors that are made for it
        (``rankmill docs numbers``), and the result has the effective number of queries. gap is
        not a mean over queries and is refused.
    subtopic : str, optional
        The column of long labels that says which subtopic of its query a row is about, for
        metrics such as alpha_ndcg and err_ia; "iteration" for TREC's qrels of diversity. Other
        metrics see an item as relevant if it is to any subtopic.
    binary : bool
        Whether to ignore gains, so every label is relevant. By default, a note of the result names
        columns of numbers that could be gains but have no name by which they are found.
    padding : int or str, optional
        The item that only fills up short lists, such as the -1 of FAISS and implicit. It is read as
        a null item: dropped, and counted as such in the audit.
    exact_ids : bool
        Whether text ids are compared as they stand. By default, spaces around them are left out,
        words such as "nan" and "NULL" are missing ids, and "7.0" is 7; a note counts them.
    decimal : str
        The decimal mark of numbers in text: "," for those like "0,95".
    format : str, optional
        The format of files, if it is not detected from their names and content: "parquet",
        "arrow", "csv", "tsv", "trec", "jsonl"; or how a cell of CSV is to be read:
        "csv-long" (one item), "csv-wide" (a list), "csv-pairs" (items and confidences in turn),
        "csv-spaces", "csv-commas", "csv-semicolons", "csv-bars" or "csv-tabs" (a list, separated
        by these).
    columns : str or sequence of str, optional
        The names of the columns of text without a header, in order, such as "query,item,gain".
    encoding : str, optional
        The encoding of text that is not UTF-8, by any name that Python has for it: "latin-1",
        "cp1252", "utf-16".

    Examples
    --------
    >>> import rankmill
    >>> rankmill.Labels("stars.csv", query="user", gain="stars")
    Labels('stars.csv', query='user', gain='stars')
    """

    role: ClassVar[Role | None] = "labels"

    gain: str | Ragged | None = None
    weight: str | None = None
    subtopic: str | None = None
    binary: bool = False

    def prepare(self) -> Self:
        """Return the same labels for many calls, such as one at each epoch of a training.

        The first call opens and reads them, and those that follow take what it made of them, so
        that the data must not change any more. They give the same results, to the last bit. What
        is counted in another way, such as by a weight or with other repeats, is read again, and so
        is what `by` cuts and what has subtopics. Threads may share them; another process reads
        them itself.

        Examples
        --------
        >>> import rankmill
        >>> labels = rankmill.Labels({"ann": [1, 2], "bob": [3]}).prepare()
        >>> epochs = {"ann": [9, 1], "bob": [8]}, {"ann": [1, 2], "bob": [3]}
        >>> [rankmill.evaluate(labels, one, "map@2")["map@2"] for one in epochs]
        [0.125, 1.0]
        """
        return replace(self, data=Prepared(self.data))

    def asked(self, role: Role | None = None, **more: Any) -> InputOptions:
        """Return the options given for these labels."""
        return super().asked(role, numbers=self.gain, binary=self.binary, **more)


@record(frozen=True, eq=False, repr=False, kw_only=True)
class Predictions(Given):
    """The ranked items of each query, and how to read them.

    Parameters
    ----------
    data : str, path, list of paths, frame, dict, lists or Arrow data
        As the predictions of `evaluate`.
    query, item, padding, exact_ids, decimal, format, columns, encoding
        As for `Labels`.
    score : str or Ragged, optional
        The column of confidences. For a `Ragged`, a Ragged with the same offsets.
    rank : str, optional
        The column of ranks.
    in_order : bool
        Whether the rows of long predictions are in rank order: neither ranks nor confidences order
        them. gap still reads the confidences. The semantics must keep the order "given".

    Examples
    --------
    >>> import rankmill
    >>> rankmill.Predictions("run.csv", score="similarity")
    Predictions('run.csv', score='similarity')
    """

    role: ClassVar[Role | None] = "predictions"

    score: str | Ragged | None = None
    rank: str | None = None
    in_order: bool = False

    def asked(self, role: Role | None = None, **more: Any) -> InputOptions:
        """Return the options given for these predictions."""
        told = {"numbers": self.score, "rank": self.rank, "in_order": self.in_order}
        return super().asked(role, **told, **more)


@record(frozen=True, eq=False, repr=False)
class Catalogue(_Noun):
    """The items that can be recommended, and those that queries had in training.

    Parameters
    ----------
    train : optional
        The items that queries had in training, in any form that labels may have; repeated rows are
        one interaction. novelty, popularity and related metrics need it (``rankmill docs
        catalogue``). The audit counts the predictions that their query had.
    items : optional
        The items, which coverage and gini are over: a table or file with a column of items, and
        other columns that metrics of your own see. By default it is the items of `train`, else of
        `features`, else all labels and predictions.
    group : str, optional
        The column of `items` with the group of each item, or a list of its groups, such as genres;
        for exposure_parity, miscalibration, ild and epd.
    features : optional
        The vectors of items, such as embeddings: a table or file with a column of items, each once,
        and a column of lists of numbers or several columns of numbers; or {item: vector}. For
        ild_cosine and epd_cosine.
    drop_seen : bool
        Whether to drop predictions that their query had in `train`; later predictions move up.

    Examples
    --------
    >>> import rankmill
    >>> rankmill.Catalogue(train="history.parquet", drop_seen=True)
    Catalogue(train='history.parquet', drop_seen=True)
    """

    _: KW_ONLY
    train: Any = None
    items: Any = None
    group: str | None = None
    features: Any = None
    drop_seen: bool = False

    @classmethod
    def of(cls, value: Catalogue | None) -> Catalogue:
        """Return what is given as a catalogue; UsageError if it is something else."""
        if value is None:
            return cls()
        if not isinstance(value, cls):
            raise UsageError(
                f"catalogue is a {type(value).__name__}; expected Catalogue(items=...), or with "
                "train, features and so on"
            )
        return value

    def of_one_query(self) -> Catalogue:
        """Return what a query alone needs of it: what was seen, where that is dropped."""
        return Catalogue(train=self.train, drop_seen=True) if self.drop_seen else Catalogue()


class ArrowTable(Protocol):
    """A table of pyarrow, Polars, pandas, DuckDB or another package that exports Arrow streams."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the capsule of a stream."""


class SparkFrame(Protocol):
    """A DataFrame of Spark."""

    @property
    def sparkSession(self) -> Any:  # noqa: N802
        """The session that it belongs to."""


TableLike: TypeAlias = (
    str | os.PathLike[str] | ArrowTable | SparkFrame | Ragged | Matrix | Iterable[Any]
)
"""A path, a table or frame, or Python objects such as dicts, lists and arrays."""
LabelsLike: TypeAlias = Labels | TableLike
"""What functions take as labels: `Labels`, or what these hold."""
PredictionsLike: TypeAlias = Predictions | TableLike
"""What functions take as predictions: `Predictions`, or what these hold."""
SlicesLike: TypeAlias = TableLike | Sequence[TableLike]
"""What functions take as `by`: the name of a column, a table, or several of these."""


def _alike(one: Any, other: Any) -> bool:
    """Return whether two values are the same; never raises, whatever they are."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(_alike(one[key], other[key]) for key in one)
    try:
        same = one.equals(other) if hasattr(one, "equals") else one == other
        return bool(same.all() if hasattr(same, "all") else same)
    except Exception:  # of objects that cannot be compared
        return False


def is_spark_frame(value: Any) -> bool:
    """Return whether a value is a DataFrame of Spark."""
    return all(hasattr(value, name) for name in ("mapInArrow", "schema", "sparkSession"))
