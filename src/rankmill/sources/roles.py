"""Find the role of each column of an input, by its name or alias, and check its type."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow.types as kinds

from rankmill.columns.ids import is_id_type, is_text_type
from rankmill.columns.lists import is_list_type
from rankmill.errors import InputError, UsageError
from rankmill.semantics.choices import DEFAULT, Semantics
from rankmill.sources.base import Source

Role = Literal["labels", "predictions"]

# Names are compared in lower case, without underscores, dashes and spaces.
ALIASES: dict[str, tuple[str, ...]] = {
    "query": (
        *("query", "query_id", "queries", "q_id", "qid", "user", "user_id", "uid"),
        *("customer", "customer_id", "image", "image_id", "topic", "topic_id", "session"),
        *("session_id", "visitor_id", "account_id"),
    ),
    "item": (
        *("item", "items", "item_id", "item_ids", "doc", "docs", "doc_id", "doc_ids", "docno"),
        *("document", "document_id", "article", "articles", "article_id", "article_ids"),
        *("product", "products", "product_id", "product_ids", "movie_id", "track_id"),
        *("landmark_id", "class_id"),
    ),
    "score": ("score", "scores", "confidence", "confidences", "conf", "probability", "similarity"),
    "rank": ("rank", "ranks", "position"),
    "gain": ("gain", "gains", "relevance", "rel", "grade", "grades"),
}
# Names of item columns of one side. The other side uses them only if it finds no other item column.
ITEM_ALIASES: dict[Role, tuple[str, ...]] = {
    "labels": ("label", "labels", "relevant", "truth", "ground_truth", "target", "targets"),
    "predictions": ("prediction", "predictions", "predicted", "recommendations", "recommended"),
}


@dataclass(frozen=True)
class Columns:
    """The columns of an input.

    A wide input has one row a query, with lists; a long input has one row an item. If ``nan_last``
    is true, a confidence that is NaN or null counts as minus infinity. If ``unordered`` is true,
    the lists are ranked by confidence.
    """

    query: str
    item: str
    wide: bool
    score: str | None = None
    rank: str | None = None
    gain: str | None = None
    nan_last: bool = False
    unordered: bool = False

    def mapping(self) -> dict[str, str]:
        """The role of each column that is read -> the name of the column."""
        roles = ("query", "item", "score", "rank", "gain")
        return {role: getattr(self, role) for role in roles if getattr(self, role) is not None}

    def names(self) -> list[str]:
        """The names of the columns to read, without repeats."""
        return list(dict.fromkeys(self.mapping().values()))


def find_columns(
    source: Source,
    role: Role,
    chosen: Mapping[str, str | None],
    *,
    need_score: bool = False,
    semantics: Semantics = DEFAULT,
) -> Columns:
    """Find the columns of an input and its shape.

    Parameters
    ----------
    source, role
        The opened input, and whether it is labels or predictions.
    chosen : mapping
        Role of a column -> the name that the caller gave, or None.
    need_score : bool
        Whether a metric needs confidences.
    semantics
        Decides whether confidences order the predictions, and whether some may be missing.

    Raises
    ------
    InputError
        If a column is missing or ambiguous, or has an unsuitable type; the message lists the
        existing columns.
    UsageError
        If the caller chose a column that an input of this shape cannot use.
    """
    first, schema = next(iter(source.schemas.items()))
    finder = _Finder(first, schema, chosen, role)
    for each in chosen:  # a mistyped name is an error even if its column is not needed
        finder.find(each, ())
    query = finder.require("query", ALIASES["query"])
    other: Role = "labels" if role == "predictions" else "predictions"
    item = finder.find("item", (*ALIASES["item"], *ITEM_ALIASES[role]))
    item = item or finder.require("item", ITEM_ALIASES[other])
    # All files are checked, because a column that holds only nulls has the null type.
    kinds_of_items = [
        each.field(item).type for each in source.schemas.values() if item in each.names
    ]
    wide = any(map(is_list_type, kinds_of_items))
    score = rank = gain = None
    if role == "labels":
        gain = finder.find("gain", ALIASES["gain"])
    else:
        rank = None if wide else finder.find("rank", ALIASES["rank"])
        if wide and chosen.get("rank"):
            raise UsageError(
                f"{first} holds lists in rank order, so there is no use for the rank column "
                f"{chosen['rank']!r}: leave it out"
            )
        if need_score or source.unordered:
            score = finder.require("score", ALIASES["score"])
        elif chosen.get("score") or (not wide and rank is None) or semantics.order != "given":
            score = finder.find("score", ALIASES["score"])
    nan_last = semantics.nan_confidence == "last"
    columns = Columns(query, item, wide, score, rank, gain, nan_last, source.unordered)
    for name, each in source.schemas.items():
        _check_types(name, each, columns)
    return columns


@dataclass(frozen=True)
class _Finder:
    source: str
    schema: Any
    chosen: Mapping[str, str | None]
    side: Role

    def find(self, role: str, aliases: tuple[str, ...]) -> str | None:
        """The chosen column, else the only column whose name is an alias, else None."""
        name = self.chosen.get(role)
        if name is not None:
            if self.schema.names.count(name) != 1:
                near = difflib.get_close_matches(name, self.schema.names, 1)
                hint = f", such as {near[0]}" if near else ""
                raise self._error(
                    f"no column {name!r} for the {role}", f"choose one of these{hint}"
                )
            return name
        wanted = {_plain(alias) for alias in aliases}
        found = [name for name in self.schema.names if _plain(name) in wanted]
        if len(found) > 1:
            raise self._error(
                f"several columns could be the {role}: {', '.join(found)}",
                f"say which: {_how(role, self.side)}",
            )
        return found[0] if found else None

    def require(self, role: str, aliases: tuple[str, ...]) -> str:
        """Like `find`, but raise InputError if there is no such column."""
        name = self.find(role, aliases)
        if name is None:
            why = ", which gap needs" if role == "score" else ""
            raise self._error(
                f"no column looks like the {role}{why}", f"name it: {_how(role, self.side)}"
            )
        return name

    def _error(self, what: str, todo: str) -> InputError:
        there = ", ".join(f"{field.name} ({field.type})" for field in self.schema) or "none"
        return InputError(f"{self.source}: {what}; the columns are {there}: {todo}")


def _how(role: str, side: Role) -> str:
    """The option and the argument that name a column; labels have their own for query and item."""
    if side == "labels" and role in ("query", "item"):
        return f"--label-{role} NAME on the command line, label_{role}= in Python"
    return f"--{role} NAME on the command line, {role}= in Python"


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "").replace(" ", "")


def _check_types(source: str, schema: Any, columns: Columns) -> None:
    """Raise InputError if a column of one file is missing or has an unsuitable type."""
    for role, name in columns.mapping().items():
        count = schema.names.count(name)
        if count != 1:
            found = "no column" if count == 0 else f"{count} columns"
            raise InputError(
                f"{source}: {found} {name!r} for the {role}; the columns are "
                f"{', '.join(schema.names) or 'none'}"
            )
        kind = schema.field(name).type
        expected_list = columns.wide and role != "query"
        if kinds.is_null(kind):
            continue
        if is_list_type(kind) != expected_list:
            shape = "wide: lists" if columns.wide else "long: one row an item"
            raise InputError(
                f"{source}: column {name!r} for the {role} holds {kind}, but the input is {shape}; "
                f"expected {'a list' if expected_list else 'a single value'} in each row"
            )
        value = kind.value_type if expected_list else kind
        if role in ("query", "item") and not is_id_type(value):
            castable = kinds.is_floating(value) or kinds.is_decimal(value)
            hint = ": cast them to integers or strings first" if castable else ""
            raise InputError(
                f"{source}: column {name!r} for the {role} holds {kind}; ids are integers or "
                f"strings{hint}"
            )
        if role == "rank" and not kinds.is_integer(value):
            raise InputError(
                f"{source}: column {name!r} for the rank holds {kind}; expected integers"
            )
        if role in ("score", "gain") and not (
            kinds.is_integer(value)
            or kinds.is_floating(value)
            or kinds.is_decimal(value)
            or kinds.is_null(value)
        ):
            raise InputError(
                f"{source}: column {name!r} for the {role} holds {kind}; expected numbers"
            )


def check_comparable(labels: tuple[Source, Columns], predictions: tuple[Source, Columns]) -> None:
    """Raise InputError if query ids or item ids are integers in one file, strings in another."""
    for role in ("query", "item"):
        seen: dict[bool, str] = {}
        for source, columns in (labels, predictions):
            name = getattr(columns, role)
            for file, schema in source.schemas.items():
                kind = schema.field(name).type
                value = kind.value_type if is_list_type(kind) else kind
                if not kinds.is_null(value):
                    seen.setdefault(is_text_type(value), f"{value} in column {name!r} of {file}")
        if len(seen) > 1:
            raise InputError(
                f"the {role} ids cannot be compared: {seen[False]}, but {seen[True]}; cast one of "
                "them, so that both are integers or both strings"
            )
