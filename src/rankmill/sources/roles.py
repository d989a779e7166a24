"""Find the role of each column of an input, by its name or alias, and check its type."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow.types as kinds

from rankmill.columns.ids import is_id_type, is_text_type
from rankmill.columns.lists import is_list_type
from rankmill.errors import InputError, UsageError
from rankmill.semantics.choices import DEFAULT, Semantics
from rankmill.sources.base import Source
from rankmill.sources.finding import Finder, Role, how

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
        *("landmark_id", "class_id", "ref_id", "corpus_id"),
    ),
    "score": ("score", "scores", "confidence", "confidences", "conf", "probability", "similarity"),
    "rank": ("rank", "ranks", "position"),
    "gain": (
        *("gain", "gains", "relevance", "rel", "grade", "grades", "judgment", "judgement"),
        "relevance_score",
    ),
}
# Names that are used only for a column of numbers, and only if no column has a name of ALIASES. If
# there are several groups, the names of the first group come first.
WEAK_ALIASES: dict[str, tuple[tuple[str, ...], ...]] = {
    "score": (("sim", "logit", "logits", "yhat", "prob", "pred"),),
    "gain": (("label", "labels"), ("score", "scores")),
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
    is true, a confidence that is NaN or null counts as minus infinity.
    """

    query: str
    item: str
    wide: bool
    score: str | None = None
    rank: str | None = None
    gain: str | None = None
    nan_last: bool = False

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
    finder = Finder(source, chosen, role)
    for each in chosen:  # a mistyped name is an error even if its column is not needed
        finder.find(each, ())
    query = finder.require("query", ALIASES["query"])
    item = _find_item(finder)
    # All files are checked, because a column that holds only nulls has the null type.
    wide = finder.holds_lists(item)
    columns = Columns(query, item, wide, nan_last=semantics.nan_confidence == "last")
    if role == "labels":
        columns = replace(columns, gain=_find_gain(finder, columns))
    else:
        columns = _find_order(finder, columns, need_score, semantics)
    for name, each in source.schemas.items():
        _check_types(name, each, columns)
    return columns


def _find_item(finder: Finder) -> str:
    """The column of items. Beside one that is surely it, a number called label is a gain."""
    own = finder.named(ITEM_ALIASES[finder.side])
    usual = finder.named(ALIASES["item"])
    if finder.side == "labels" and usual and not any(map(finder.holds_lists, usual)):
        graded, numbers = finder.named(WEAK_ALIASES["gain"][0]), finder.numbers(False, ())
        own = [name for name in own if name not in graded or name not in numbers]
    other: Role = "labels" if finder.side == "predictions" else "predictions"
    item = finder.find("item", (*ALIASES["item"], *own))
    return item or finder.require("item", ITEM_ALIASES[other])


def _find_gain(finder: Finder, columns: Columns) -> str | None:
    """The column of gains, if there is one."""
    numbers = finder.numbers(columns.wide, columns.names())
    weak = WEAK_ALIASES["gain"][1:] if columns.wide else WEAK_ALIASES["gain"]
    return finder.find("gain", ALIASES["gain"], *weak, among=numbers)


def _find_order(
    finder: Finder, columns: Columns, need_score: bool, semantics: Semantics
) -> Columns:
    """The columns with those of ranks and confidences that order the predictions or are needed."""
    chosen, wide = finder.chosen, columns.wide
    if wide and chosen.get("rank"):
        raise UsageError(
            f"{finder.file} holds lists in rank order, so there is no use for the rank column "
            f"{chosen['rank']!r}: leave it out"
        )
    rank = None if wide else finder.find("rank", ALIASES["rank"])
    numbers = finder.numbers(wide, [*columns.names(), *filter(None, [rank])])
    weak = [name for name in WEAK_ALIASES["score"][0] if not (wide and name == "pred")]
    by_score = semantics.order != "given" or not (wide or rank)
    score = None
    if need_score or by_score or chosen.get("score"):
        score = finder.find("score", ALIASES["score"], weak, among=numbers)
    if score is None and need_score:
        raise finder.error(
            "no column looks like the score, which gap needs",
            f"name it: {how('score', finder.side)}",
        )
    return replace(columns, score=score, rank=rank)


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
            hint = ": cast them to integers or strings first" if kinds.is_floating(value) else ""
            raise InputError(
                f"{source}: column {name!r} for the {role} holds {kind}; ids are integers or "
                f"strings{hint}"
            )
        if role == "rank" and not kinds.is_integer(value):
            raise InputError(
                f"{source}: column {name!r} for the rank holds {kind}; expected integers"
            )
        if role in ("score", "gain") and not (
            kinds.is_integer(value) or kinds.is_floating(value) or kinds.is_null(value)
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
