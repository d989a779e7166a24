"""Answer: what all outcomes of functions have in common."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import is_dataclass
from functools import partial
from types import NoneType, SimpleNamespace, UnionType
from typing import TYPE_CHECKING, Any, Self, TypeVar, Union, get_args, get_origin, get_type_hints

from rankmill.errors import UsageError, outside
from rankmill.package import check_stamp, stamp
from rankmill.show import writers
from rankmill.show.tables import View

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from rankmill.show.pictures import Picture

_Kind = TypeVar("_Kind")
# A field that only the JSON of this class has, or none before it.
_MARKS = {"differing": "Comparison", "same_queries": "Results", "word": "Verdict"}
_MARKS |= {"standard_errors": "Result"}
# What may differ between two answers of the same call, or of the same data in other files.
_APART = ("rankmill", "format", "inputs", "seconds", "checksum", "run")


class Answer:
    """An outcome that reads as text, tables and JSON, and is equal to others that say the same.

    A class has its `_view`, and what its dict has other than its fields; all else comes of these.
    What was read, how long it took and the tables of each query are not compared.
    """

    def _view(self) -> View:
        """Return what is shown."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON holds, as dicts, lists, strings and numbers."""
        return {**stamp(), **plain(vars(self))}

    @classmethod
    def from_dict(cls, told: dict[str, Any]) -> Self:
        """Return the object from what `to_dict` returned."""
        return read_fields(cls, told)

    def to_json(self, indent: int | None = None) -> str:
        """Return `to_dict` as one JSON object: strict JSON, plain ASCII.

        Parameters
        ----------
        indent : int, optional
            Spaces per level; without it everything is on one line.
        """
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Return what `to_json` wrote, which gives the same JSON again.

        Raises
        ------
        InputError
            If the text is not what `to_json` of this class writes.
        UsageError
            If it is the name of a file.
        """
        source = f"the JSON of a {cls.__name__}"
        if isinstance(text, str) and text.endswith(".json"):
            raise UsageError(f"from_json takes a text: give it Path({text!r}).read_text()")
        with outside(source):
            told = json.loads(text)
            check_stamp(told, source)
            kind = next((one for mark, one in _MARKS.items() if mark in told), cls.__name__)
            if kind != cls.__name__ in _MARKS.values():
                raise UsageError(f"this is the JSON of a {kind}: use rankmill.{kind}.from_json")
            return cls.from_dict(told)

    def to_arrow(self) -> pa.Table:
        """Return the table for programs, with every digit: what CSV has."""
        import pyarrow as pa

        columns, rows = self._view().exact()
        return pa.table({one.title: [row[at] for row in rows] for at, one in enumerate(columns)})

    def to_pandas(self) -> Any:
        """Return the table of `to_arrow` as a pandas DataFrame, NaN where there is no value."""
        try:
            return self.to_arrow().to_pandas()
        except ImportError:
            raise _lacking("pandas") from None

    def to_polars(self) -> Any:
        """Return the table of `to_arrow` as a polars DataFrame."""
        try:
            import polars
        except ImportError:
            raise _lacking("polars") from None
        return polars.from_arrow(self.to_arrow())

    def to_markdown(self) -> str:
        """Return the tables as Markdown."""
        return writers.write(self._view(), "markdown")

    def to_latex(self) -> str:
        """Return the tables as LaTeX, with the rules of booktabs."""
        return writers.write(self._view(), "latex")

    def to_html(self) -> str:
        """Return the tables as HTML, without colors."""
        return writers.write(self._view(), "html")

    def plot(self, path: str | Path | None = None) -> Picture:
        """Draw a picture, which a notebook shows.

        Parameters
        ----------
        path : str or Path, optional
            A file or URL in .svg, which is written completely or not at all.

        Returns
        -------
        Picture
            Its `save` writes it to more files, and `svg` returns it as text.

        Raises
        ------
        UsageError
            If there is nothing to draw, or the file cannot be written.
        """
        from rankmill.show.pictures import check_picture

        if path is not None:
            check_picture(path)
        picture = self._picture()
        if path is not None:
            picture.save(path)
        return picture

    def _picture(self) -> Picture:
        raise UsageError(
            f"a {type(self).__name__} has no picture; a Result, Results, a Comparison, a Verdict "
            "and a History have one"
        )

    def __repr__(self) -> str:
        return writers.plain_text(self._view().screen())

    def _repr_html_(self) -> str | None:
        return self.to_html().removesuffix("\n")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return bool(self._compared() == other._compared())

    __hash__ = None  # type: ignore[assignment]

    def _compared(self) -> Any:
        held = {name: one for name, one in vars(self).items() if isinstance(one, Answer)}
        return {name: one for name, one in self.to_dict().items() if name not in _APART} | held


def _lacking(library: str) -> UsageError:
    return UsageError(
        f"to_{library} makes a {library} DataFrame; install {library} first, or take to_arrow"
    )


class WhenAsked:
    """A field of a dataclass that may be set to a `partial`: it is called when first asked for."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, held_by: Any, owner: type | None = None) -> Any:
        if held_by is None:
            return None  # the default of the field
        value = vars(held_by)[self._name]
        if isinstance(value, partial):
            value = vars(held_by)[self._name] = value()
        return value

    def __set__(self, held_by: Any, value: Any) -> None:
        vars(held_by)[self._name] = value


# ------------------------------------------------------------------ as JSON, and back


def plain(value: Any) -> Any:
    """Return a value as JSON holds it; what has a `to_dict` says itself how."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if hasattr(value, "_asdict"):
        value = value._asdict()
    elif is_dataclass(value):
        value = vars(value)
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list | tuple) else value


def plain_fields(one: Any, names: str) -> dict[str, Any]:
    """Return some attributes, whose names stand between blanks, as JSON holds them."""
    return {name: plain(getattr(one, name)) for name in names.split()}


def read_fields(kind: type[_Kind], told: Mapping[str, Any]) -> _Kind:
    """Return the dataclass or named tuple that `plain` told of; what is no field is passed over."""
    fields = {name: told[name] for name in kind.__annotations__ if name in told}
    known = {
        name: _read(_kind_of(kind, name), one) for name, one in fields.items() if one is not None
    }
    return kind(**fields | known)


def _kind_of(kind: type, name: str) -> Any:
    """Return the type of a field; those of other fields may be known to type checkers only."""
    alone = SimpleNamespace(__annotations__={name: kind.__annotations__[name]})
    return get_type_hints(alone, vars(sys.modules[kind.__module__]))[name]


def _read(kind: Any, value: Any) -> Any:
    origin, of = get_origin(kind), get_args(kind)
    if value is None:
        return None
    if origin in (Union, UnionType):
        several = [one for one in of if one is not NoneType]
        return _read(several[0], value) if len(several) == 1 else value
    if origin is dict:
        as_key = int if of[0] is int else str
        return {as_key(name): _read(of[1], one) for name, one in value.items()}
    if origin is list:
        return [_read(of[0], one) for one in value]
    if origin is tuple:
        kinds = [of[0]] * len(value) if of[-1] is Ellipsis else of
        return tuple(_read(one, part) for one, part in zip(kinds, value, strict=True))
    if hasattr(kind, "from_dict"):
        return kind.from_dict(value)
    if is_dataclass(kind) or hasattr(kind, "_fields"):
        return read_fields(kind, value)
    return value
