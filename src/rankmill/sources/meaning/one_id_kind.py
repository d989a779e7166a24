"""Whether the ids of a role are compared as integers or as texts: one answer for all inputs.

Integers are compared as integers. Text that is written as integers are, without leading zeros,
stands for integers beside integers. If other text turns up later, all is read again, and compared
as text; so 7 is "7", and "007" another id.
"""

import re
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from itertools import zip_longest
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds

from rankmill.columns.buffers import pc
from rankmill.columns.ids import KEEP_TEXT, as_text, drop_nulls, id_type, is_text_type, plain
from rankmill.columns.lists import value_type
from rankmill.errors import InputError, UsageError
from rankmill.records import record
from rankmill.sources.meaning.looks import LaterRows, distinct_texts, first_values, known
from rankmill.sources.meaning.plain_ids import BOOLEAN, EXACT, TIMES, UUID, times_of
from rankmill.sources.meaning.values import Convert, Values, with_values
from rankmill.sources.roles.source import Columns, Source

TEXT = pa.large_string()
# An integer as it is written without leading zeros; and one that a table of doubles left.
INTEGER = r"^(?:0|-?[1-9][0-9]*)$"
WITH_POINT = r"^(?:0|-?[1-9][0-9]*)\.0+$"
WHOLE = r"^(?:0|-?[1-9][0-9]*)(?:\.0+)?$"
# The fact that ids of a role, which were integers in the first rows, turned out to be text.
AS_TEXT = "text ids"


@record(frozen=True)
class _Side:
    """A column of ids of one input."""

    source: Source
    name: str

    @cached_property
    def types(self) -> set[Any]:
        """The types of its ids that are known, over all files."""
        found = (value_type(one.field(self.name).type) for one in self.source.kinds().values())
        return {one for one in found if not kinds.is_null(one)}

    @property
    def is_text(self) -> bool:
        return any(map(is_text_type, self.types))

    @property
    def is_integer(self) -> bool:
        return any(map(kinds.is_integer, self.types))

    def first(self) -> Any:
        """Some of its first ids, as text, without those that are missing."""
        values = drop_nulls(plain(first_values(self.source, self.name), self.name))
        return as_text(values) if is_text_type(values.type) else values.cast(TEXT)

    def texts(self) -> list[str]:
        """The different ones among its first ids."""
        return distinct_texts(self.first())


def with_one_id_kind(
    inputs: Sequence[tuple[Source, Columns]],
    *,
    fixed: bool = False,
    opened: bool = False,
    roles: Sequence[str] = ("query", "item"),
) -> list[Source]:
    """The sources with ids that can be compared, in the order of the inputs.

    If the first is `fixed`, as its ids were read before, it stays as it is. If all were `opened`
    before, these are some of their rows, of which none is refused.

    Raises
    ------
    InputError
        If all ids of one input are integers, and those of another none.
    UsageError
        If query ids are made of columns in ways that cannot be compared.
    """
    sources = [source for source, _ in inputs]
    for one in inputs[1:]:
        check_keys(inputs[0], one)
    for role in roles:
        # The parts of a key are texts already, and 7 is "7" there, too.
        if role == "query" and any(source.key is not None for source in sources):
            continue
        named = [id_columns(source, columns, role) for source, columns in inputs]
        for names in zip_longest(*named):
            sides = [
                _Side(source, name) if name else None
                for source, name in zip(sources, names, strict=True)
            ]
            sources = _alike(role, sides, sources, fixed, opened)
    return sources


def _alike(
    role: str, sides: Sequence[_Side | None], sources: list[Source], fixed: bool, opened: bool
) -> list[Source]:
    """The sources with one kind of ids in a column of each."""
    there = [one for one in sides if one is not None and one.types]
    for one in () if opened or role != "item" else there:
        others = there[:1] if one is not there[0] else there[1:]
        if one.source.ranked and others:
            from rankmill.sources.meaning.columns_per_rank import check_no_values

            check_no_values(one.source, {text for other in others for text in other.texts()})
    texts = [one for one in there if one.is_text]
    integers = [one for one in there if one.is_integer]
    change = _change_of(role, texts, integers, opened, sources[-1])
    changed = change is _as_texts and there[0] is sides[0] and there[0] in integers
    if fixed and changed and (AS_TEXT, role) not in known():
        raise LaterRows((AS_TEXT, role))
    return [
        source if one is None or not one.types else change(one)
        for source, one in zip(sources, sides, strict=True)
    ]


def _change_of(
    role: str, texts: Sequence[_Side], integers: Sequence[_Side], opened: bool, last: Source
) -> Callable[[_Side], Source]:
    """What makes the ids of each side alike; `last` is of the input that was opened last."""
    if not texts:
        return _as_texts if (AS_TEXT, role) in known() else lambda one: one.source
    if not integers and any(one.source.looks.get(one.name) in (UUID, BOOLEAN) for one in texts):
        return _in_lower_case
    firsts = [one.first() for one in texts]
    shares = [_share(first, WHOLE) for first in firsts]
    whole = [one for one, share in zip(texts, shares, strict=True) if share == 1]
    exact = any(one.source.exact_ids for one in (*integers, *texts))
    # The inputs with nothing but integers, which other text is held against.
    against = [] if exact or opened else [*integers, *whole]
    if against and 0 in shares:
        raise _not_comparable(role, against[0], texts[shares.index(0)])
    if not integers and not exact and any(map(_has_times, texts)):
        return _in_one_spelling
    for one, first, share in zip(texts, firsts, shares, strict=True):
        if against and share not in (1, None):
            last.findings.say(_mixed(role, one, first, against[0]))
    if not integers:
        of_integers = all(share in (1, None) for share in shares)
        pointed = of_integers and any(_share(first, WITH_POINT) for first in firsts)
        return _without_points if pointed else lambda one: one.source
    once = any(one.source.kept is not None or one.source.lists is not None for one in texts)
    if (AS_TEXT, role) not in known() and not once and all(share == 1 for share in shares):
        kind = pa.uint64() if any(pa.uint64() in one.types for one in integers) else pa.int64()
        return lambda one: _as_integers(one, role, kind) if one.is_text else one.source
    return _as_texts


def _share(first: Any, pattern: str) -> float | None:
    """How many of the first ids match a pattern; None if there is none."""
    if not len(first):
        return None
    return float(pc.mean(pc.match_substring_regex(first, pattern)).as_py())


def _as_integers(one: _Side, role: str, kind: Any) -> Source:
    one.source.findings.used("text as integers", one.name)
    return with_values(
        one.source,
        one.name,
        lambda found: kind if is_text_type(found) else found,
        partial(_integers, role=role, kind=kind, source=one.source),
    )


def _integers(values: Values, role: str, kind: Any, source: Source) -> Any:
    if not is_text_type(values.array.type):
        return values.array
    texts = _pointless(values, source)
    if pc.all(pc.match_substring_regex(texts, INTEGER)).as_py() is False:
        raise LaterRows((AS_TEXT, role))
    try:
        return texts.cast(kind)
    except pa.ArrowInvalid:  # beyond 64 bits
        raise LaterRows((AS_TEXT, role)) from None


def _pointless(values: Values, source: Source) -> Any:
    """Texts without a point and zeros behind an integer, which is told."""
    texts = as_text(values.array)
    marks = pc.match_substring_regex(texts, WITH_POINT)
    if not pc.any(marks).as_py():
        return texts
    todo = f"they are compared without the point; {EXACT}"
    values.tell(source, marks, "integers with a point", ("is", "are", "written with a point"), todo)
    return pc.if_else(marks, pc.replace_substring_regex(texts, r"\.0+$", ""), texts)


def _without_points(one: _Side) -> Source:
    if one.source.lists is not None or one.source.exact_ids:
        return one.source
    return _with_texts(one, partial(_pointless, source=one.source))


def _in_lower_case(one: _Side) -> Source:
    one.source.findings.used("UUIDs in lower case", one.name)
    return _with_texts(one, lambda values: pc.ascii_lower(as_text(values.array)))


def _has_times(one: _Side) -> bool:
    return one.source.looks.get(one.name) == TIMES


def _in_one_spelling(one: _Side) -> Source:
    if _has_times(one):
        return one.source
    one.source.findings.used("times in text", one.name)
    return _with_texts(one, lambda values: times_of(as_text(values.array)))


def _with_texts(one: _Side, change: Convert) -> Source:
    def made(values: Values) -> Any:
        if not is_text_type(values.array.type):  # a file without any id
            return values.array
        return change(values).view(id_type(values.array.type))

    return with_values(one.source, one.name, id_type, made)


def _as_texts(one: _Side) -> Source:
    if not one.is_integer:
        return _without_points(one)
    if one.source.lists is not None:
        raise UsageError(
            f"{one.source.name} holds integers, and the ids of the other input are text: give both "
            "as integers, or both as text"
        )
    one.source.findings.used("integers as text", one.name)
    return with_values(
        one.source, one.name, lambda found: TEXT if kinds.is_integer(found) else found, _text
    )


def _text(values: Values) -> Any:
    array = values.array
    return array.cast(TEXT) if kinds.is_integer(array.type) else array


def _shown(texts: Any) -> str:
    return repr(texts[0].as_buffer().to_pybytes().decode(errors="backslashreplace"))


def _mixed(role: str, one: _Side, first: Any, other: _Side) -> str:
    """What to say of first ids that are no integers, where all ids of another input are."""
    found = _shown(first.filter(pc.invert(pc.match_substring_regex(first, WHOLE))))
    return (
        f"{one.source.name}: {found} in {one.name!r} is no integer, as all {role} ids of "
        f"{other.source.name} are: they are compared as text"
    )


def _not_comparable(role: str, integer: _Side, text: _Side) -> InputError:
    integer.first()  # of doubles, a fraction is what is wrong
    found = _shown(text.first())
    zeros = f"keep ids as text: {KEEP_TEXT}; or " if re.fullmatch("'0[0-9]+'", found) else ""
    return InputError(
        f"the {role} ids cannot be compared: {integer.source.name} holds integers in "
        f"{integer.name!r}, and {text.source.name} none in {text.name!r}, but {found}: "
        f"{zeros}name the columns that hold the same ids, or write the ids of both inputs alike; "
        "if they are meant to differ, use --exact-ids"
    )


def id_columns(source: Source, columns: Columns, role: str) -> tuple[str, ...]:
    """The columns whose values must agree for ids to be equal: of a tuple, all its parts."""
    if role == "query" and source.key is not None and not source.key.texts:
        return source.key.parts
    name = getattr(columns, role)
    return (name,) if name else ()


def check_keys(labels: tuple[Source, Columns], predictions: tuple[Source, Columns]) -> None:
    """Raise UsageError if query ids are made of columns in ways that cannot be compared."""
    queries = labels[1].query and predictions[1].query  # the items of a catalogue have none
    several = labels[0].key is not None or predictions[0].key is not None
    if queries and several and labels[0] is not predictions[0]:
        _check_keys((labels[0], predictions[0]))


def _check_keys(sides: Sequence[Source]) -> None:
    """Raise UsageError if query ids are made in ways that no two can be equal, or be told apart."""
    keys = [one.key for one in sides]
    sizes = [len(key.parts) if key and not key.texts else 0 for key in keys]
    both = all(key and key.texts and len(key.parts) > 1 for key in keys)
    if sizes[0] == sizes[1] and not both:
        if sizes[0]:
            labels, others = (key.parts for key in keys if key)
            check_order(labels, others, sides[1].name)
        return
    parts = next(key.parts for key in keys if key)
    made = [", ".join(one.key.parts) if one.key else "one column" for one in sides]
    template = "_".join(f"{{{part}}}" for part in parts)
    raise UsageError(
        f"the query ids cannot be compared: those of {sides[0].name} consist of {made[0]}, those "
        f"of {sides[1].name} of {made[1]}: if both have the columns, use --query {','.join(parts)} "
        f"on the command line, query={[*parts]} of both in Python; if one side has a column with "
        "their joined text, name it, and give the other a template for it, as --query or "
        f"--label-query {template!r} on the command line, query={template!r} in Python"
    )


def check_order(labels: Sequence[str], others: Sequence[str], name: str) -> None:
    """Raise UsageError if two keys are made of the same columns in another order."""
    if [*labels] != [*others] and sorted(labels) == sorted(others):
        raise UsageError(
            f"the query ids of the labels consist of {', '.join(labels)}, those of {name} of "
            f"{', '.join(others)}: name the columns in the same order, as the first is compared "
            "with the first"
        )
