"""One item or several: what a cell of text holds, decided for all inputs together.

"b c" is one item or two. What stands beside it tells, and what the cells of the other side hold;
where both readings fit, the user is asked.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from rankmill.columns.buffers import array_of_values, is_number_type, pc
from rankmill.columns.ids import is_text_type
from rankmill.columns.lists import is_list_type, value_type, values_in
from rankmill.errors import InputError
from rankmill.sources.meaning.column_names import NUMBERED, plain
from rankmill.sources.meaning.looks import (
    NUMBER,
    PATTERNS,
    distinct_texts,
    head,
    known,
    with_bytes,
)
from rankmill.sources.meaning.roles import likely_ids
from rankmill.sources.meaning.text_lists import (
    APART,
    CELL,
    PAIRS,
    PRINTED,
    SEPARATORS,
    with_guard,
    with_lists,
)
from rankmill.sources.roles.source import InputOptions, Source

HOW = (
    "say which by a format: csv-long if each is one item, csv-spaces, csv-commas, csv-semicolons, "
    "csv-bars, csv-tabs or csv-pairs for a list, with --labels-as or --predictions-as on the "
    "command line, Labels(format=...) or Predictions(format=...) in Python"
)
WORD = re.compile(r"[^\W\d_]{2,}[.,:;!?']*")
FRACTION = re.compile(NUMBER)
_APART = re.compile(APART)
# Most distinct cells that are looked at; of one side, some thousands of them vote.
MOST, VOTERS = 20_000, 2_000


class CellSide:
    """An input whose items may be cells of text."""

    def __init__(self, source: Source, asked: InputOptions) -> None:
        self.source, self.asked = source, asked
        schema = source.schema
        self.query: tuple[str, ...] = ()
        self.item: str | None = None
        if source.lists is None and not source.bare:
            self.query, self.item = likely_ids(source, asked.role, asked.query, asked.item)
        self.kind = "" if self.item is None else schema.field(self.item).type
        told = (asked.format or "").partition("-")[2] or (asked.format or "")
        self.told = {"long": "", "pairs": PAIRS, **{n: s for s, n in SEPARATORS.items()}}.get(told)
        self.wide_told = told == "wide"
        self.cell = self.told or ""

    @property
    def is_text(self) -> bool:
        """Whether each row has a text where its item or its items stand."""
        return self.kind != "" and is_text_type(self.kind) and not is_list_type(self.kind)

    @property
    def is_open(self) -> bool:
        """Whether it is not told what a cell holds."""
        return self.is_text and self.told is None

    @cached_property
    def beside(self) -> bool:
        """Whether a number of each row, by its name, says that a row has one item."""
        schema = self.source.schema
        told = self.asked.rank is not None or isinstance(self.asked.numbers, str)
        others = [one for one in schema.names if plain(one) in NUMBERED and one != self.item]
        rows = [name for name in others if not is_list_type(schema.field(name).type)]
        return bool(
            (told and not self._has_lists(self.asked.numbers))
            or any(not self._has_lists(name) for name in rows)
        )

    def _has_lists(self, name: Any) -> bool:
        """Whether a column of numbers holds several in a cell."""
        schema = self.source.schema
        if not isinstance(name, str) or name not in schema.names:
            return False
        kind = schema.field(name).type
        if is_list_type(kind) or not is_text_type(kind):
            return is_list_type(kind)
        some = distinct_texts(head(self.source, [name])[name])[:100]
        comma = PATTERNS["decimal comma"].fullmatch
        return any(_APART.search(one) and not comma(one) for one in some)

    @cached_property
    def rows(self) -> dict[str, Any]:
        """The first rows of the ids."""
        return head(self.source, [*self.query, str(self.item)])

    @cached_property
    def texts(self) -> list[str]:
        """The distinct items, or cells, of the first rows as texts."""
        if self.item is None:
            return []
        values = values_in(self.rows[self.item])
        found = value_type(values.type)
        if not (is_text_type(found) or is_number_type(found)):
            return []
        column = (CELL, self.source.name, self.item)
        later = sorted(one[3] for one in known() if one[:3] == column)
        return [*distinct_texts(values, MOST), *later]

    @cached_property
    def repeats(self) -> bool:
        """Whether a query has several rows."""
        columns = [with_bytes(self.rows[one]) for one in self.query]
        if len(columns) == 1:
            return bool(pc.count_distinct(columns[0], mode="all").as_py() < len(columns[0]))
        keys = list(zip(*(one.to_pylist() for one in columns), strict=True))
        return len(set(map(str, keys))) < len(keys)

    @cached_property
    def parted(self) -> bool:
        """Whether it is not told what a cell holds, and one may hold several items."""
        if not (self.is_open and self.texts):
            return False
        texts = array_of_values(self.texts, pa.string())
        return bool(pc.any(pc.match_substring_regex(texts, APART)).as_py())

    def is_compared_with(self, other: "CellSide") -> bool:
        """Whether the cells of another input, if it is no other system, tell what these hold."""
        return {self.asked.role, other.asked.role} != {"predictions"}

    @property
    def by_row(self) -> bool:
        """Whether rows surely have one item each, or lists are known."""
        return self.beside or (self.kind != "" and is_list_type(self.kind))

    def error(self, what: str, todo: str = HOW) -> InputError:
        """The error that asks."""
        return InputError(f"{self.source.name} (column {self.item!r}): {what}: {todo}")


def with_cells(sides: Sequence[tuple[Source, InputOptions]]) -> list[Source]:
    """The sources with lists in the place of cells of text that hold several items.

    Raises
    ------
    InputError
        If a cell may be one item or several, and nothing tells which.
    """
    found = [CellSide(source, asked) for source, asked in sides]
    decide(found)
    return [_read_as(one, found) for one in found]


def _read_as(side: CellSide, sides: Sequence[CellSide]) -> Source:
    source = side.source
    if not side.is_text or side.item is None:
        return source
    if side.cell:
        told = replace(source, exact_ids=side.asked.exact_ids)
        return with_lists(told, side.item, side.query, side.cell)
    if side.parted:
        source.findings.used("one item of several words", side.item)
    decided = side.parted or side.beside or not side.is_open
    return source if decided else with_guard(source, side.item, HOW)


def decide(sides: Sequence[CellSide]) -> None:
    """Set what the cells of each side hold; what is surest is decided first."""
    for one in sides:  # told lists may begin with those of one item
        if one.is_open and one.wide_told:
            one.cell = " "
    parted = [one for one in sides if one.parted]
    if not parted:
        return
    known = {id(one): one.texts for one in sides}
    parted.sort(key=lambda one: not any("|" in text for text in one.texts))
    for side in parted:
        others = [one for one in sides if one is not side and side.is_compared_with(one)]
        theirs = {text for one in others for text in known[id(one)]}
        side.cell = _Vote(side, known[id(side)], theirs, others).cell()
        if side.cell in SEPARATORS and side is not parted[-1]:  # the others are compared with these
            pieces = (text.split(_sign(side.cell)) for text in known[id(side)])
            known[id(side)] = list({one.strip() for some in pieces for one in some})
    for one in sides:
        for other in sides:
            _check_agreed(one, other)


def _check_agreed(one: CellSide, other: CellSide) -> None:
    """Raise InputError if items of one side hold what parts those of another."""
    if other.cell not in SEPARATORS or one.cell or one.told is not None:
        return  # a list of any kind says where an item ends
    if one.item is None or not one.is_text or one.beside:
        return
    many = next((text for text in one.texts if other.cell in text), None)
    if many is not None:
        name = SEPARATORS[other.cell]
        raise one.error(
            f"{many!r} in {one.item!r} would be one item, while {name} separate the items of "
            f"{other.source.name}"
        )


def _of_several(query: Sequence[str]) -> str:
    """What to do if rows repeat a query because a column is missing in its key."""
    key = [*query, "OTHER"]
    return (
        "; if several columns make a query, name them all, as --query "
        f"{','.join(key)} on the command line, query={key} in Python"
    )


def _sign(separator: str) -> str | None:
    return None if separator == " " else separator


class _Vote:
    """What speaks for one item in a cell of a side, and for several."""

    def __init__(
        self, side: CellSide, texts: list[str], theirs: set[str], others: Sequence[CellSide]
    ) -> None:
        self.side, self.every, self.theirs, self.others = side, texts, theirs, others
        self.sign = next((one for one in SEPARATORS if any(one in text for text in texts)), "")
        some = texts[:: max(1, len(texts) // VOTERS)]
        # Where few cells are parted, each of them counts.
        usual = 2 * sum(self.sign in one for one in some) > len(some)
        self.texts = some if usual else texts
        self.many = [one for one in self.texts if self.sign and self.sign in one]
        self.parts = [[one.strip() for one in text.split(_sign(self.sign))] for text in self.many]

    def cell(self) -> str:
        """What the cells hold: "" for one item, a separator, PAIRS or PRINTED."""
        side = self.side
        printed = [one for one in self.texts if self._is_printed(one)]
        if 10 * len(printed) > 9 * len(self.texts):
            return PRINTED
        if 10 * len(printed) > len(self.texts):
            other = next(one for one in self.texts if one not in printed)
            raise side.error(
                f"{side.item!r} holds lists as text, such as {printed[0]!r}, and {other!r}",
                "write all cells as lists, or use the format csv-long if each is one item",
            )
        if not self.many:
            return ""
        if self._has_number_in_items():
            raise side.error(
                f"{self.many[0]!r} holds items with a number each",
                "write an item and its number in turn, such as '12 0.9 7 0.8', or use the format "
                "csv-long if each is one item",
            )
        if side.wide_told:
            self._check_one_separator()
            return PAIRS if self._are_pairs() and self._fractions() else self.sign
        told = self._by_what_stands_beside()
        return self._by_votes() if told is None else told

    def _is_printed(self, text: str) -> bool:
        """Whether a text is a list, even one that does not end; [REC] beside a number is none."""
        if self.side.beside:
            return bool(PATTERNS["list"].fullmatch(text) and re.search(r"""[\d\s,'"]""", text))
        return bool(PATTERNS["list"].fullmatch(text) or re.fullmatch(r"\[[^]]*", text))

    def _by_what_stands_beside(self) -> str | None:
        """What other columns, rows and sides tell; None if nothing does."""
        side, sign = self.side, self.sign
        if side.beside:
            return ""
        self._check_one_separator()
        if sign == "|" and not side.repeats:
            return sign
        spaced = sign != " " and any(" " in one for some in self.parts for one in some)
        if spaced and (side.repeats or any(one in self.theirs for one in self.many)):
            return ""  # such as 'Good, the Bad and the Ugly, The'
        if self._are_pairs() and side.asked.role == "predictions" and self._fractions():
            if self._fractions(0):
                raise side.error(
                    f"{self.many[0]!r} may be an item and its confidence, or several items"
                )
            return PAIRS
        # Where both repeat queries, a column of the key may be missing.
        again = [one for one in self.others if one.is_text and one.repeats and not side.repeats]
        surely = again or any(one.by_row for one in self.others)
        hold = sum(sign in one for one in self.theirs)
        return "" if surely and 10 * hold > len(self.theirs) else None

    def _by_votes(self) -> str:
        side, sign, many, theirs = self.side, self.sign, self.many, self.theirs
        alone = theirs | {*self.every}
        apart = sum(
            not any(map(WORD.fullmatch, some)) or all(one in alone for one in some)
            for some in self.parts
        )
        whole = sum(text in theirs for text in many)
        tie = side.error(
            "rows repeat a query, and "
            * side.repeats
            + f"{many[0]!r} may be one item, or a list of items separated by "
            f"{SEPARATORS[sign]}",
            HOW + _of_several(side.query) * side.repeats,
        )
        if side.repeats:
            if 2 * apart > len(many) > 2 * whole:
                raise tie
            return ""
        if 2 * whole >= len(many) and whole > apart:
            return ""
        lengths = {*map(len, self.parts)}, {len(one.split(_sign(sign))) for one in theirs}
        if whole and len(many) == len(self.texts) and lengths[0] == lengths[1]:
            raise tie  # 'A 1' and 'A 2' are ids of as many words each
        if sign == "," and all(re.fullmatch(r"\d{1,3}(,\d{3})+", one) for one in many):
            raise tie
        self._check_one_separator()
        if 10 * apart >= 9 * len(many):
            return sign
        others = any(one.kind != "" and is_list_type(one.kind) for one in self.others)
        found = any(one in theirs for some in self.parts for one in some)
        if others and found and not any(sign in one for one in theirs):
            return sign
        raise tie

    def _check_one_separator(self) -> None:
        """Raise InputError if as many cells are lists by another separator as by the first one."""
        rest = [one for one in self.texts if self.sign not in one]
        for other, name in SEPARATORS.items():
            parted = [one for one in rest if other in one]
            lists = [one for one in parted if not any(map(WORD.fullmatch, one.split(_sign(other))))]
            if len(lists) >= len(self.many):
                raise self.side.error(
                    f"{lists[0]!r} may be a list of items separated by "
                    f"{name}, and {self.many[0]!r} by {SEPARATORS[self.sign]}, as in "
                    f"{len(self.many):,} of {len(self.texts):,} cells"
                )

    def _are_pairs(self) -> bool:
        pairs = [
            len(some) % 2 == 0 and all(map(FRACTION.fullmatch, some[1::2])) for some in self.parts
        ]
        # The others are errors that name their line.
        return self.sign == " " and 2 * sum(pairs) >= len(self.texts)

    def _fractions(self, which: int = 1) -> bool:
        """Whether half of the second, or first, words are fractions: then they are no items."""
        numbers = [one for some in self.parts for one in some[which::2]]
        return 2 * sum("." in one for one in numbers) >= len(numbers)

    def _has_number_in_items(self) -> bool:
        words = (one for text in self.many for one in re.split(r"[ ,;|]+", text))
        return all(re.fullmatch(rf".+[:=]{NUMBER}", one) for one in words)
