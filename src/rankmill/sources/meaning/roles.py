"""Find the role of each column of an input, by its name or alias, and check its type."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow.types as kinds

from rankmill.columns.buffers import is_number_type
from rankmill.columns.ids import is_id_type
from rankmill.columns.lists import count_true, is_list_type, lengths_of, split_lists
from rankmill.errors import InputError, UsageError
from rankmill.semantics.choices import DEFAULT, Choices
from rankmill.sources.meaning.column_names import (
    ALIASES,
    DISTANCES,
    EVENTS,
    GRADED,
    ITEM_ALIASES,
    NUMBERED,
    TRUTHS,
    WEAK_ALIASES,
    Finder,
    advice,
    are_numbers,
    how,
    is_other,
    named_columns,
    plain,
    words_of,
)
from rankmill.sources.meaning.looks import BOOLEAN, MIXED, NUMBERS, NUMERIC, head
from rankmill.sources.meaning.values import numbers_or_none
from rankmill.sources.roles.source import (
    Columns,
    InputOptions,
    Query,
    Role,
    Source,
    column_of,
    key_of,
)

# What a column looks like that grades rows in words, and one of which many values are numbers.
GRADES, MAYBE = ("words", MIXED), (*NUMERIC, MIXED)
# Of more columns that may be the gain, one sentence tells.
MOST_DOUBTS = 3
WEIGHTS = ("weight", "weights")
# What is known of an item, and no grade, which is what some engines call a score.
OUTCOMES = (EVENTS | {"truth", "ytrue"}) - {plain(one) for one in ALIASES["gain"]}


def find_columns(
    source: Source, asked: InputOptions, *, need_score: bool = False, semantics: Choices = DEFAULT
) -> Columns:
    """Find the columns of an input and its shape.

    `need_score` says whether a metric needs confidences. The semantics decide whether confidences
    order the predictions, and whether some may be missing.
    """
    usual = source.bare and source.key is None and not source.fields
    if usual and not any(asked.columns_by_role(None).values()):
        ((name, schema),) = source.schemas.items()
        return _find_in_lists(name, schema, source.unordered, asked, need_score, semantics)
    return _find_columns(source, asked, need_score, semantics)


@lru_cache(1 << 8)
def _find_in_lists(
    name: str, schema: Any, unordered: bool, asked: InputOptions, need_score: bool, how: Choices
) -> Columns:
    """The columns of lists in memory, of which none is warned: each step of a training asks."""
    source = Source(name, {name: schema}, None, unordered=unordered)
    return _find_columns(source, asked, need_score, how)


def _find_columns(
    source: Source, asked: InputOptions, need_score: bool, semantics: Choices
) -> Columns:
    role, facts, chosen = asked.role, asked.facts, asked.columns_by_role(source.key)
    finder = Finder(source, chosen, role, source.key.parts if source.key else ())
    for each in chosen:  # a mistyped name is an error even if its column is not needed
        finder.find(each, ())
    query = _find_query(finder, facts)
    item = _find_item(finder, query)
    finder = replace(finder, item=item)
    # All files are checked, because a column that holds only nulls has the null type.
    wide = finder.holds_lists(item)
    nan_last = semantics.nan_confidence == "last"
    columns = Columns(
        *(query, item, wide), nan_last=nan_last, facts=facts, seen=asked.seen, padding=asked.padding
    )
    if role == "predictions":
        unordered = source.unordered or source.numbered.get(item, ("", False))[1]
        needed = need_score or unordered
        columns = _find_order(finder, columns, needed, semantics, asked.in_order)
        columns = replace(columns, unordered=unordered)
    elif role == "train":
        columns = replace(columns, doubts=_no_interactions(finder, columns))
    elif not asked.binary:
        gain, doubts = _find_gain(finder, columns, facts)
        columns = replace(columns, gain=gain, doubts=doubts)
        _tell_weights(finder, columns, facts)
    for name, each in source.kinds().items():
        for its_role, column in columns.mapping().items():
            _check_there(name, each, column, its_role, role)
        told = columns.score or columns.gain or columns.rank or asked.binary or asked.in_order
        if role in ("labels", "predictions") and not told:
            _check_no_more(finder, name, each)
    return columns


def _check_no_more(finder: Finder, name: str, schema: Any) -> None:
    """Raise InputError if one of the later files has a number that the first has not."""
    for one in schema.names:
        if one not in finder.schema.names and words_of(one) & (NUMBERED | GRADED):
            raise InputError(
                f"{finder.file}: no column {one!r}, which {name} has; expected the same columns in "
                "all files: write it there, too, or leave it out everywhere"
            )


def check_types(source: Source, columns: Columns, role: Role) -> None:
    """Raise InputError if a column that has a role has an unsuitable type in some file."""
    for file, schema in source.kinds().items():
        _check_types(file, schema, columns, role)


def likely_ids(
    source: Source, side: Role, query: Query, item: str | None
) -> tuple[tuple[str, ...], str | None]:
    """The columns of query ids and items, as `find_columns` will find them; none if it will not."""
    schema = source.schema
    source = Source("", {"": schema}, None, fields=source.fields)
    if side not in ITEM_ALIASES:
        query, item = among(schema.names, {"query": query, "item": item}).values()
    key = key_of(query, schema.names)
    parts = key.parts if key else ()
    chosen = {"query": parts[0] if key else column_of(query), "item": item}
    finder = Finder(source, chosen, side, parts)
    try:
        found = _usual_query(finder)
        strange = not {*parts} <= {*schema.names}
        if strange or (found is None and side != "items"):  # a catalogue has no queries
            return (), None
        return parts or ((found,) if found else ()), _find_item(finder, found or "")
    except InputError:
        return (), None


def likely_query(source: Source) -> str | None:
    """The only column with a usual name of query ids; None if there is none, or several."""
    found = Finder(source, {}, "labels").named(ALIASES["query"])
    return found[0] if len(found) == 1 else None


def among(names: Sequence[str], chosen: Mapping[str, Query]) -> dict[str, Any]:
    """The columns that were chosen for another input, where this one has them."""
    found: dict[str, Any] = {}
    for role, name in chosen.items():
        key = key_of(name, names)
        whole = key is not None and {*key.parts} <= {*names}
        name = key.name if key is not None and not whole else name
        found[role] = name if whole or name in names else None
    return found


def find_item(source: Source, name: str | None, side: Role) -> str:
    """The column of the items of a catalogue, which has no queries: `name`, or by usual names."""
    found = _find_item(Finder(source, {"item": name}, side), "")
    for file, schema in source.schemas.items():
        _check_there(file, schema, found, "item", side)
    return found


def _find_query(finder: Finder, facts: Collection[str] = ()) -> str:
    """The column of query ids; "id" is one if no other column is, and facts such as "user" too."""
    for one in (replace(finder, taken=(*finder.taken, *facts)), finder):
        if (found := _usual_query(one)) is not None:
            return found
    raise finder.missing("query")


def _usual_query(finder: Finder) -> str | None:
    """The column of query ids, if there is one."""
    names = finder.schema.names
    return finder.find("query", ALIASES["query"], *WEAK_ALIASES["query"], among=names)


def _find_item(finder: Finder, query: str) -> str:
    """The column of items. Beside one that is surely it, numbers called label are gains."""
    side, other = ("labels", "predictions")
    if finder.side == "predictions":
        side, other = other, side
    own = finder.named(ITEM_ALIASES[side])
    usual = finder.named(ALIASES["item"])
    if side == "labels" and usual and not any(map(finder.holds_lists, usual)):
        graded = finder.named(WEAK_ALIASES["gain"][0])
        numbers = (*NUMERIC, *BOOLEAN)
        own = [name for name in own if name not in graded or finder.look(name) not in numbers]
    others = [name for name in finder.schema.names if name != query]
    weak = ITEM_ALIASES[other], *WEAK_ALIASES["item"]
    item = finder.find("item", (*ALIASES["item"], *own), *weak, among=others)
    if item is None:
        raise finder.missing("item")
    if finder.chosen.get("item") is None and item in finder.named(ITEM_ALIASES[other]):
        lists = [name for name in others if finder.holds_lists(name)]
        more = [name for name in lists if name != item and not finder.holds_fractions(name)]
        if item in lists and more:
            raise finder.ambiguous("item", [item, *more])
    return item


def _no_interactions(finder: Finder, columns: Columns) -> tuple[str, ...]:
    """What to say of columns that may tell which rows of a training set are no interactions."""
    found = finder.looking(("flag", *NUMBERS), columns.wide, columns.names())
    events = [name for name in found if finder.words(name) & EVENTS and finder.denies(name)]
    told = f"{named_columns(events)} {'are' if events[1:] else 'is'} not read"
    what = f"{finder.file}: {told}, so that every row counts as an interaction"
    return (f"{what}: leave out the rows that are none, or the column",) if events else ()


def _find_gain(
    finder: Finder, columns: Columns, facts: Collection[str]
) -> tuple[str | None, tuple[str, ...]]:
    """The column of gains; if there is none but some that could be it, what to say of these."""
    source, wide = finder.source, columns.wide
    if columns.item in source.numbered and finder.chosen.get("gain") is None:
        return _number_of(source, columns.item), ()
    taken = [*columns.names(), *facts]
    taken += finder.named(ITEM_ALIASES["predictions"]) if wide else []  # no gains, but lists of ids
    gain = finder.find("gain", ALIASES["gain"])
    if gain is not None:
        return gain, ()
    numbers, mixed = (finder.looking(one, wide, taken) for one in (NUMERIC, MAYBE))
    booleans = finder.looking(BOOLEAN, wide, taken)
    sure = [*mixed, *(name for name in booleans if finder.look(name) == "boolean")]
    labelled, scored, clicked = WEAK_ALIASES["gain"]
    # Lists called labels may be the items, but not the fields of these.
    fields = [name for name in sure if not wide or name in source.fields]
    gain = finder.find("gain", (), labelled, among=fields)
    if gain is not None:
        return gain, ()
    events = [name for name in booleans if finder.words(name) & EVENTS]
    events += [name for name in numbers if plain(finder.own(name)) in EVENTS]
    if not events[1:]:  # clicked is one event of several
        gain = finder.find("gain", (), clicked, among=sure)
    numbers = [name for name in numbers if wide or plain(finder.own(name)) not in WEIGHTS]
    # A score may be that of a model, so it is the gain only if nothing else may be.
    scores = [name for name in finder.named(scored) if name in sure]
    graded, flags = _beside_score(finder, scores, [*booleans, *numbers], columns.seen)
    if gain is None and not (events or graded or flags):
        gain = finder.find("gain", (), scored, among=sure)
    if gain is not None:
        return gain, ()
    told = events or graded
    if len(told) == 1 and told[0] in sure:
        return _tell_event(finder, told[0], scores), ()
    alone = len(finder.schema.names) == len({*columns.names(), *booleans[:1]})
    if told or flags or (booleans and alone):
        raise _unclear_gain(finder, told or flags or booleans, scores)
    texts = finder.looking(GRADES, wide, taken)
    words = [one for one in texts if finder.words(one) & GRADED]
    numbers, others = (
        [name for name in some if name not in columns.seen]
        for some in (_unclear(finder, numbers), [*booleans, *words])
    )
    rows = [
        f"{finder.file}: the column {one!r} is not read, so that every row is a label: leave out "
        "the rows that are none"
        for one in texts
        if finder.holds_events(one)
    ]
    return None, (*_doubts(finder, numbers, "numeric "), *_doubts(finder, others), *rows)


def _beside_score(
    finder: Finder, scores: Sequence[str], others: Sequence[str], seen: Collection[str]
) -> tuple[list[str], list[str]]:
    """Of the columns beside one called score, those that grade rows by name, or by 0 and 1."""
    if not scores:
        return [], []
    rest = _unclear(finder, [one for one in others if one not in (*scores, *seen)])
    graded = [one for one in rest if finder.words(one) & TRUTHS]
    flags = [one for one in rest if finder.look(one) in BOOLEAN or finder.holds_flags(one)]
    return graded, flags


def _tell_event(finder: Finder, event: str, scores: Sequence[str]) -> str:
    """The column of an event as the gain, which is told."""
    after = ", named after an event," if finder.words(event) & EVENTS else ""
    what = f"{finder.file}: the column {event!r}{after} is read as the gain"
    instead = f", {how('gain', 'labels', scores[0])} if that is the gain" if scores else ""
    todo = f"use --binary if every row counts as relevant{instead}"
    finder.source.findings.say(f"{what}: {todo}")
    finder.source.findings.used("named after an event", event)
    return event


def _unclear_gain(finder: Finder, unclear: Sequence[str], scores: Sequence[str]) -> InputError:
    """The error for labels with columns of which one may tell which rows are relevant."""
    ways = [f"if so, use {how('gain', 'labels', unclear[0])} with numbers such as 1 and 0"]
    ways += [f"if {one!r} is the gain, use {how('gain', 'labels', one)}" for one in scores[:1]]
    ways.append("if every row counts as relevant, use --binary")
    return finder.error(
        f"{named_columns(unclear)} may say which rows are relevant", "; ".join(ways)
    )


def _tell_weights(finder: Finder, columns: Columns, facts: Collection[str]) -> None:
    """Tell of columns that may have the weight of a query and are not read."""
    rest = [one for one in finder.schema.names if one not in {*facts, *columns.names()}]
    for one in rest:
        if plain(one) in WEIGHTS and not finder.holds_lists(one) and finder.look(one) in NUMERIC:
            said = f"{finder.file}: the numeric column {one!r} is not read: if it weighs queries, "
            said += f"use {how('weight', 'labels', one)}"
            gain = (
                "" if columns.gain or columns.wide else f"; if a gain, {how('gain', 'labels', one)}"
            )
            finder.source.findings.say(said + gain)


def _doubts(finder: Finder, unclear: Sequence[str], kind: str = "") -> list[str]:
    """What to say of each column that may be the gain and is not read; of many, once."""
    groups = [unclear] if len(unclear) > MOST_DOUBTS else [[one] for one in unclear]
    said = []
    for names in groups:
        are, it = ("are", "one of them") if names[1:] else ("is", "it")
        said.append(
            f"{finder.file}: {named_columns(names, kind)} {are} not read, so that every label "
            f"counts as relevant: if {it} is the gain, use {how('gain', 'labels', names[0])}; "
            + "if labels are just relevant or not, use --binary"
        )
    return said


def _number_of(source: Source, item: str) -> str:
    """The column of the numbers that stand in the cells of the items."""
    source.findings.used("numbers of the items", source.numbered[item][0])
    return source.numbered[item][0]


def _find_order(
    finder: Finder, columns: Columns, need_score: bool, semantics: Choices, in_order: bool
) -> Columns:
    """The columns with those of ranks and confidences that order the predictions or are needed."""
    chosen, wide = finder.chosen, columns.wide
    if in_order and not wide and not need_score and chosen.get("score"):
        raise UsageError(
            f"in_order leaves the rows of {finder.file} in their order, and no metric needs the "
            f"score column {chosen['score']!r}: leave out --in-order or --score"
        )
    beside = [one for one in finder.schema.names if finder.holds_lists(one) == wide]
    rank = None if in_order else finder.find("rank", (), ALIASES["rank"], among=beside)
    taken = [*columns.names(), *filter(None, [rank])]
    numbers, mixed = (finder.looking(one, wide, taken) for one in (NUMERIC, MAYBE))
    weak = [name for name in WEAK_ALIASES["score"][0] if not (wide and name == "pred")]
    # Beside items, predictions are numbers; whole ones may be ranks or classes.
    own = finder.named(ITEM_ALIASES["predictions"])
    weak += [] if wide else filter(finder.holds_fractions, own)
    by_score = not in_order and (semantics.order != "given" or not (wide or rank))
    score = None
    if columns.item in finder.source.numbered and not chosen.get("score"):
        score = _number_of(finder.source, columns.item) if need_score or by_score else None
    elif need_score or by_score or chosen.get("score"):
        score = finder.find("score", ALIASES["score"], weak, among=mixed)
    unclear = sorted(_unclear(finder, numbers), key=finder.holds_integers)  # likely scores first
    fields = [name for name in unclear if name in finder.source.fields]
    several = (
        fields if fields[1:] and not (rank or in_order or finder.named(ALIASES["score"])) else []
    )
    if score is None and (need_score or by_score) and len(fields) == 1:  # as Spark's rating
        score = next((name for name in fields if not finder.words(name) & OUTCOMES), None)
    # Words that mean a label are no score where another column may be it.
    unclear = [name for name in unclear if not finder.words(name) & OUTCOMES] or unclear
    far = [name for name in ([score] if score else unclear) if finder.words(name) & DISTANCES]
    if far and (need_score or by_score):
        raise finder.error(
            f"{far[0]!r} is smaller for better items, but a score is larger",
            f"give a column of scores that fall, such as -{far[0]}: {how('score', finder.side)}",
        )
    told = f"{finder.file}: {{}} not read: the predictions are in the order given"
    doubts = tuple(told.format(f"{name!r} is") for name in far[:1])
    if several and not (far or need_score or by_score):
        finder.source.findings.say(told.format(f"{named_columns(several)} are"))
    if score is None and need_score:
        raise finder.error(
            "no column looks like the score, which gap and similar metrics need",
            f"name it: {how('score', finder.side, *unclear[:1])}",
        )
    if score is None and by_score and unclear:
        raise _unclear_order(finder, unclear, wide or rank is not None, semantics)
    if wide and not (score or by_score or in_order or far):
        _tell_disorder(finder, columns.item, mixed)
    return replace(columns, score=score, rank=rank, in_order=in_order, doubts=doubts)


def _tell_disorder(finder: Finder, item: str, numbers: Sequence[str]) -> None:
    """Note that most of the first lists have scores that rise, and count as they stand."""
    source = finder.source
    names = [one for one in finder.named(ALIASES["score"]) if one in numbers]
    if item in source.numbered:
        names = [source.numbered[item][0]]
    if len(names) != 1:
        return
    (name,) = names
    try:
        offsets, values = split_lists(head(source, [name])[name])
        scores = numbers_or_none(values, name)
    except InputError:  # nothing is refused for a column that no metric reads
        return
    if scores is None or not len(scores):
        return
    rises = np.append(scores[1:] > scores[:-1], False)
    rises[offsets[1:][offsets[1:] > 0] - 1] = False  # from one list to the next
    lists = np.flatnonzero(lengths_of(offsets) > 1)
    among = np.add.reduceat(rises, offsets[lists]) if len(lists) else rises
    count = count_true(among > 0)
    if 2 * count > len(lists):
        source.findings.say(
            f"{finder.file}: lists are ranked as they stand, but {name!r} rises in {count:,} of "
            f"the first {len(lists):,}: rank by it with order=confidence of semantics if it tells "
            "which items are best"
        )


def _unclear_order(
    finder: Finder, unclear: Sequence[str], ordered: bool, semantics: Choices
) -> InputError:
    """The error for predictions that a column of numbers may order; `ordered`: they are already."""
    it = "one of them" if unclear[1:] else "it"
    whole = [one for one in unclear if finder.holds_integers(one)]
    ways = [f"if {it} is the score, use {how('score', finder.side, unclear[0])}"]
    given = f"--semantics order=given instead of {semantics.order!r}"
    if ordered:
        ways.append(f"if the predictions are in rank order, choose {given}")
    else:
        ways += [f"if {it} is the rank, use {how('rank', finder.side, one)}" for one in whole[:1]]
        also = f", and choose {given}" if semantics.order != "given" else ""
        ways.append("if the rows are in rank order, use --in-order" + also)
    missing = "score" if ordered else "rank or score"
    return finder.error(
        f"no column looks like the {missing}, but {are_numbers(unclear)} left over",
        "; ".join(ways),
    )


def _unclear(finder: Finder, numbers: Sequence[str]) -> list[str]:
    """Those of the columns of numbers that could be a score or a gain."""
    folders = re.split(r"[/\\]", finder.file)[:-1]
    keys = {unquote(folder).partition("=")[0] for folder in folders}  # of a Hive partition
    return [name for name in numbers if name not in keys and not is_other(finder.own(name))]


def _check_there(source: str, schema: Any, name: str, role: str, side: Role) -> str:
    """Raise InputError if a file does not have one such column; return how to name another."""
    count = schema.names.count(name)
    another = advice("name another with", role, side)
    if count != 1:
        found = "no column" if count == 0 else f"{count} columns"
        raise InputError(
            f"{source}: {found} {name!r} for the {role}; the columns are "
            f"{', '.join(schema.names) or 'none'}: {another}"
        )
    return another


def _check_types(source: str, schema: Any, columns: Columns, side: Role) -> None:
    """Raise InputError if a column of one file is missing or has an unsuitable type."""
    for role, name in columns.mapping().items():
        another = _check_there(source, schema, name, role, side)
        kind = schema.field(name).type
        expected_list = columns.wide and role != "query"
        if kinds.is_null(kind):
            continue
        if is_list_type(kind) != expected_list:
            shape = "wide: lists" if columns.wide else "long: one row an item"
            raise InputError(
                f"{source}: column {name!r} for the {role} holds {kind}, but the input is {shape}; "
                f"expected {'a list' if expected_list else 'a single value'} in each row: {another}"
            )
        value = kind.value_type if expected_list else kind
        if role in ("query", "item") and not is_id_type(value):
            raise InputError(
                f"{source}: column {name!r} for the {role} holds {kind}; ids are integers or "
                f"strings: cast them to integers or strings first, or {another}"
            )
        if role == "rank" and not kinds.is_integer(value):
            raise InputError(
                f"{source}: column {name!r} for the rank holds {kind}; expected integers: cast it, "
                f"or {another}; if the rows are in rank order, use --in-order"
            )
        number = is_number_type(value) or kinds.is_null(value)
        if role in ("score", "gain") and not number:
            cast = "cast it to double, or " * kinds.is_decimal(value)
            less = "; to do without, use --binary" if role == "gain" else ""
            raise InputError(
                f"{source}: column {name!r} for the {role} holds {kind}; expected numbers: "
                f"{cast}{another}{less}"
            )
