"""Look up the columns of an input by name or alias, and name them in messages."""

import difflib
import functools
import json
import re
import shlex
import sys
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds

from rankmill.columns.ids import is_text_type
from rankmill.columns.lists import is_list_type, value_type
from rankmill.errors import InputError, spoken
from rankmill.records import record
from rankmill.sources.meaning.looks import BOOLEAN, distinct_texts, first_values, look, look_of
from rankmill.sources.roles.source import Role, Source

# ------------------------------------------------------------------ the names of columns

# Names are compared in lower case, without underscores, dashes and spaces, and without the types
# that RecBole writes behind them, as in user_id:token.
ALIASES: dict[str, tuple[str, ...]] = {
    "query": (
        *("query", "query_id", "queries", "q_id", "qid", "user", "user_id", "uid"),
        *("customer", "customer_id", "image", "image_id", "topic", "topic_id", "session"),
        *("session_id", "session_type", "visitor_id", "account_id", "display_id", "order_id"),
    ),
    "item": (
        *("item", "items", "item_id", "item_ids", "doc", "docs", "doc_id", "doc_ids", "docno"),
        *("document", "document_id", "article", "articles", "article_id", "article_ids"),
        *("product", "products", "product_id", "product_ids", "movie_id", "track_id"),
        *("landmark_id", "landmark", "landmarks", "class_id", "class", "classes", "ref_id"),
        *("corpus_id", "images", "ad_id"),
    ),
    "score": ("score", "scores", "confidence", "confidences", "conf", "probability", "similarity"),
    "rank": ("rank", "ranks", "position"),
    "gain": (
        *("gain", "gains", "relevance", "rel", "grade", "grades", "judgment", "judgement"),
        "relevance_score",
    ),
}
# Names that are used only if no column has a name of ALIASES; those of scores and gains only for
# columns of numbers. If there are several groups, the names of the first group come first.
WEAK_ALIASES: dict[str, tuple[tuple[str, ...], ...]] = {
    "query": (("question", "question_id", "reviewer_id", "member_id", "person_id"), ("id",)),
    "item": (
        (
            *("iid", "pid", "passage", "passage_id", "sku", "asin", "isbn", "book_id", "video_id"),
            *("song_id", "news_id", "post_id", "hotel_id", "game_id", "recipe_id", "paper_id"),
        ),
        ("id", "ids"),
    ),
    "score": (
        (
            *("sim", "logit", "logits", "yhat", "prob", "pred", "pred_score", "value", "est"),
            *("y_score", "y_prob", "y_proba", "proba"),
        ),
    ),
    "gain": (
        ("label", "labels", "target", "relevant", "y_true"),
        ("score", "scores", "value"),
        ("clicked",),
    ),
}
# Names of item columns of one side. The other side uses them only if it finds no other item column.
ITEM_ALIASES: dict[str, tuple[str, ...]] = {
    "labels": (
        *("label", "labels", "relevant", "truth", "ground_truth", "target", "targets"),
        *("actual", "actuals", "relevant_items", "true_items"),
    ),
    "predictions": (
        *("prediction", "predictions", "predicted", "recommendations", "recommended"),
        *("preds", "recs", "predicted_items", "recommended_items"),
    ),
}
# Columns of numbers that are neither a score nor a gain: those with one of these names, and those
# whose last word is one of these words, as in category_id or createdAt.
OTHER_NUMBERS = {
    *ALIASES["rank"],
    *("time", "timestamp", "datetime", "date", "year", "month", "day", "hour"),
    *("iteration", "iter", "q0", "index", ""),
}
OTHER_WORDS = {"id", "ids", "timestamp", "ts", "date", "at", "index"}
# The names that pandas gives to an index without a name.
OF_INDEX = re.compile(r"indexlevel\d+|unnamed:\d+(\.\d+)*")


# The last words of the names of numbers that are smaller for better items.
DISTANCES = {"distance", "distances", "dist", "dists", "loss"}
# The names, or last words, of booleans that tell which rows are relevant.
EVENTS = {
    *("clicked", "click", "purchased", "purchase", "bought", "liked", "watched", "converted"),
    *("relevant", "isrelevant", "isclick", "isclicked", "iscorrect", "correct", "positive"),
    *("target", "label", "relevance", "ordered", "booked"),
}
# What a log calls that which happened, of which some is no sign that an item is relevant, and the
# parts of a data set.
HAPPENED = {
    *("impression", "exposure", "shown", "view", "detail", "pageview", "click", "clicked"),
    *("addtocart", "cart", "remove", "removefromcart", "purchase", "purchased", "buy", "order"),
    *("like", "dislike", "up", "down", "upvote", "downvote", "skip", "play", "complete"),
    *("completed", "cancel", "cancelled", "canceled", "return", "returned", "refund", "refunded"),
    *("positive", "negative", "neutral", "follow", "unfollow", "favorite", "hide", "conversion"),
    *("train", "training", "valid", "validation", "val", "dev", "test", "testing", "holdout"),
}
# The last words of names of columns that may say how relevant a row is.
TRUTHS = EVENTS | {"gain", "rel", "grade", "judgment", "judgement", "rating", "truth", "ytrue"}
GRADED = TRUTHS | {"score"}


@functools.lru_cache(1 << 12)
def plain(name: str) -> str:
    """A name as it is compared, or several with zeros between.

    Examples
    --------
    >>> plain("User ID"), plain("item_id:token")
    ('userid', 'itemid')
    """
    name = re.sub(r":(token|float)(_seq)?(?=\0|$)", "", name.lower())
    return name.replace("_", "").replace("-", "").replace(" ", "")


# What has one of these names beside an item is its number, even if it is written as text.
OF_NUMBER = {plain(one) for one in (*ALIASES["score"], *ALIASES["gain"])}
NUMBERED = OF_NUMBER | {plain(one) for one in ALIASES["rank"]}


def is_other(name: str) -> bool:
    """Whether the name tells that the numbers are neither scores nor gains."""
    if plain(name.rpartition(".")[2]) in OTHER_NUMBERS or OF_INDEX.fullmatch(plain(name)):
        return True
    return bool(words_of(name) & OTHER_WORDS)


def words_of(name: str) -> set[str]:
    """A name as it is compared, and its last word, unless a word of it is "not".

    Examples
    --------
    >>> sorted(words_of("is_relevant")), sorted(words_of("createdAt"))
    (['isrelevant', 'relevant'], ['at', 'createdat'])
    """
    words = [one.lower() for one in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", name)]
    return {plain(name), *([] if {"no", "non", "not"} & {*words} else words[-1:])}


# The most columns that a message names.
_MOST_LISTED = 5
# The most columns in the list of all, and the most characters of a name there.
_MOST_SHOWN = 50
_LONGEST_NAME = 60
NO = re.compile(r"-.*|0(\.0*)?|false|f|no|n", re.I)
ZERO_OR_ONE = re.compile(r"[01](\.0*)?")


@record(frozen=True)
class Finder:
    """Finds columns of one input by name; the first file decides what the columns are."""

    source: Source
    chosen: Mapping[str, str | None]
    side: Role
    taken: Collection[str] = ()  # they make the query ids, and nothing else unless that is told
    item: str | None = None  # once it is found, the fields of its structs are columns like others

    @property
    def file(self) -> str:
        """The name of the first file."""
        return next(iter(self.source.schemas))

    @property
    def schema(self) -> Any:
        """The schema of the first file."""
        return self.source.schema

    @cached_property
    def _schemas(self) -> list[Any]:
        """The different schemas; thousands of files usually share one."""
        others = [one for one in self.source.kinds().values() if not one.equals(self.schema)]
        return [self.schema, *others]

    def find(
        self, role: str, aliases: Sequence[str], *weak: Sequence[str], among: Collection[str] = ()
    ) -> str | None:
        """The chosen column, else the only column whose name is an alias, else None.

        The `weak` aliases follow one after the other; they are names of the columns `among` only.
        """
        name = self.chosen.get(role)
        if name is not None:
            named: list[str] = [one for one in self.schema.names if one == name]
            if not named and role in ("gain", "score", "rank"):  # it may be a field of structs
                fields = self.source.fields.items()
                named = [one for one, (of, own) in fields if name in (own, f"{of}.{own}")]
            if len(named) != 1:
                near = difflib.get_close_matches(name, self.schema.names, 1)
                hint = f", such as {near[0]}" if near else ""
                if role == "slices":
                    hint += (
                        ", or give a file that has it next to the query ids: --by users.csv on the "
                        "command line, by='users.csv' in Python"
                    )
                raise self.error(f"no column {name!r} for the {role}", f"choose one of these{hint}")
            self.source.findings.used("you named it", named[0])
            return named[0]
        for number, names in enumerate((aliases, *weak)):
            found = [one for one in self.named(names) if not number or one in among]
            if len(found) > 1 and role in ("query", "item"):
                found = [one for one in found if not self._holds_no_ids(one)] or found
            if len(found) > 1:
                raise self.ambiguous(role, found)
            if found:
                self.source.findings.used("found by its name", found[0])
                return found[0]
        return None

    def ambiguous(self, role: str, found: Sequence[str]) -> InputError:
        """The error for a column that may be one of several."""
        return self.error(
            f"several columns could be the {role}: {', '.join(found)}",
            advice("say which:", role, self.side),
        )

    def missing(self, role: str) -> InputError:
        """The error for a column that is not found."""
        # Such as a file of --per-query, which only the gate takes.
        names = self.schema.names
        others = [one for one in names if "@" not in one and not self.holds_fractions(one)]
        values = role == "item" and len(others) == 1 < len(names)
        index = role == "query" and self.source.name.startswith("the DataFrame")
        return self.error(
            f"no column looks like the {role}"
            + ", as in per-query values, which are a baseline for 'rankmill gate'" * values,
            advice("name it:", role, self.side)
            + ", or the index of pandas that holds it: frame.rename_axis('user_id')" * index,
        )

    def named(self, aliases: Sequence[str]) -> list[str]:
        """The columns whose name is an alias."""
        wanted = _plain_names(tuple(aliases))
        return [name for name in self._free() if plain(self.own(name)) in wanted]

    def _free(self) -> list[str]:
        """The columns that may have a role."""
        names, fields = self.schema.names, self.source.fields
        names = [one for one in names if fields.get(one, (self.item,))[0] == self.item]
        return [name for name in names if name not in self.taken]

    def own(self, name: str) -> str:
        """The name of a column, or of the field of structs that makes it."""
        return self.source.fields.get(name, ("", name))[1]

    def words(self, name: str) -> set[str]:
        """The words of this name; see `words_of`."""
        return words_of(self.own(name))

    def kinds_of(self, name: str) -> Iterator[Any]:
        """The types of a column in all files that have it."""
        for schema in self._schemas:
            place = schema.get_field_index(name)  # -1 if there is none, or several
            if place >= 0:
                yield schema.field(place).type

    def holds_lists(self, name: str) -> bool:
        """Whether a column holds lists, in any file."""
        return any(map(is_list_type, self.kinds_of(name)))

    def holds_integers(self, name: str) -> bool:
        """Whether a column holds integers, or lists of them, in all files."""
        return all(map(kinds.is_integer, map(value_type, self.kinds_of(name))))

    def holds_fractions(self, name: str) -> bool:
        """Whether a column holds fractions, or lists of them, in any file; these are no ids."""
        of_values = list(map(value_type, self.kinds_of(name)))
        floats = any(kinds.is_floating(one) or kinds.is_decimal(one) for one in of_values)
        return floats or (any(map(is_text_type, of_values)) and self.look(name) == "fraction")

    def look(self, name: str) -> str:
        """What the values of a column, or of its lists, look like; see `looks.look`."""
        found = (one for one in map(value_type, self.kinds_of(name)) if not kinds.is_null(one))
        kind = next(found, pa.null())
        return look_of(self.source, name) if is_text_type(kind) else look(pa.nulls(0, kind))

    def denies(self, name: str) -> bool:
        """Whether some of the first rows hold a number or a word for no."""
        return any(NO.fullmatch(one) for one in distinct_texts(first_values(self.source, name)))

    def holds_flags(self, name: str) -> bool:
        """Whether the first rows hold numbers of which each is 0 or 1, and some 0."""
        texts = distinct_texts(first_values(self.source, name))
        return all(map(ZERO_OR_ONE.fullmatch, texts)) and self.denies(name)

    def holds_events(self, name: str) -> bool:
        """Whether the first rows hold several words, and most are of `HAPPENED`."""
        texts = {plain(one) for one in distinct_texts(first_values(self.source, name))}
        known = sum(one in HAPPENED or one.removesuffix("s") in HAPPENED for one in texts)
        return len(texts) > 1 and 2 * known > len(texts)

    def _holds_no_ids(self, name: str) -> bool:
        return self.holds_fractions(name) or self.look(name) in BOOLEAN

    def looking(self, like: Collection[str], wide: bool, taken: Collection[str]) -> list[str]:
        """The columns with a value for each item that look so, without those that are taken."""
        rest = [name for name in self._free() if name not in taken]
        return [one for one in rest if self.holds_lists(one) == wide and self.look(one) in like]

    def error(self, what: str, todo: str) -> InputError:
        """The error that tells what is wrong, the existing columns, and what to do."""
        listed = [_typed(field) for field in self.schema][:_MOST_SHOWN]
        more = len(self.schema) - len(listed)
        there = (", ".join(listed) or "none") + (f" and {more} more" if more else "")
        usual = self.named(ALIASES["query"]) or self.named(ALIASES["item"])
        if self.source.format.startswith(("CSV", "TSV")) and not usual:
            todo += "; if the first line is not a header, "
            todo += {
                "labels": "name all with --label-columns A,B,...",
                "predictions": "name all with --columns A,B,... on the command line, "
                "Predictions(columns=...) in Python",
            }.get(self.side, "write one above it")
        return InputError(f"{self.file}: {what}; the columns are {there}: {todo}")


def _typed(field: pa.Field) -> str:
    """A column and its type, which of text has several names in Arrow."""
    text = kinds.is_string(field.type) or kinds.is_large_string(field.type)
    return f"{_short(field.name)} ({'text' if text else field.type})"


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}..."


def named_columns(names: Sequence[str], kind: str = "") -> str:
    """The columns as the subject of a sentence."""
    more = len(names) - _MOST_LISTED
    listed = ", ".join(map(repr, names[:_MOST_LISTED])) + (f" and {more} more" if more > 0 else "")
    return f"the {kind}column{'s' if names[1:] else ''} {listed}"


def are_numbers(names: Sequence[str]) -> str:
    """The columns of numbers as the beginning of a sentence of what they are."""
    return f"{named_columns(names, 'numeric ')} {'are' if names[1:] else 'is'}"


def warn(message: str) -> None:
    """Warn at the caller's own line, so that Python tells it again for another call."""
    level, frame = 1, sys._getframe()
    ours = ("rankmill", "contextlib")  # inputs are opened in context managers
    while frame.f_back and str(frame.f_globals.get("__name__")).partition(".")[0] in ours:
        level, frame = level + 1, frame.f_back
    warnings.warn(spoken(message), RuntimeWarning, stacklevel=level)


def how(role: str, side: Role, name: str | None = None) -> str:
    """How to name a column for a role; labels have their own options for query and item."""
    option = f"label-{role}" if side == "labels" and role in ("query", "item") else role
    typed = "NAME" if name is None else shlex.quote(name)
    value = "" if name is None else json.dumps(name, ensure_ascii=False)
    noun = side.capitalize()
    return f"--{option} {typed} on the command line, {noun}({role}={value or '...'}) in Python"


def advice(what: str, role: str, side: Role) -> str:
    """What to do for a column to be found; only those of labels and predictions have options."""
    if side in ("labels", "predictions"):
        return f"{what} {how(role, side)}"
    return {
        "say which:": "leave all but one of them out, or rename the others",
        "name it:": f"rename it to {role}_id",
        "name another with": f"give another column the name {role}_id",
    }[what]


@functools.lru_cache(1 << 8)
def _plain_names(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(map(plain, names))
