"""The columns of an input that have a role."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Columns:
    """The columns of an input."""

    query: str
    item: str
    wide: bool  # a row has the lists of a query; in a long input it has one item
    score: str | None = None
    rank: str | None = None
    gain: str | None = None
    nan_last: bool = False  # a confidence that is NaN or null counts as minus infinity
    in_order: bool = False  # the order of rows is that of items, whatever their confidences
    unordered: bool = False  # the lists are ranked by confidence
    facts: tuple[str, ...] = ()  # columns with a value a query, which are read apart from items
    padding: str | None = None  # items equal to it are read as nulls
    # What to say of columns that could be gains or scores and are not read.
    doubts: tuple[str, ...] = field(default=(), compare=False)

    def mapping(self) -> dict[str, str]:
        """The role of each column that is read -> the name of the column."""
        roles = ("query", "item", "score", "rank", "gain")
        return {role: getattr(self, role) for role in roles if getattr(self, role) is not None}

    def names(self) -> list[str]:
        """The names of the columns to read, without repeats."""
        return list(dict.fromkeys(self.mapping().values()))
