"""Answer: what all outcomes of functions have in common."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from rankmill.errors import UsageError, outside
from rankmill.package import check_stamp, stamp
from rankmill.results.plain import plain, read_fields
from rankmill.show import writers
from rankmill.show.tables import View

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from rankmill.show.pictures import Picture

# What may differ between two answers of the same call, or of the same data in other files.
_APART = ("rankmill", "format", "inputs", "seconds", "checksum")


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
        """
        source = f"the JSON of a {cls.__name__}"
        with outside(source):
            told = json.loads(text)
            check_stamp(told, source)
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
            A file or URL in .svg, .png or .pdf, which is written completely or not at all.

        Returns
        -------
        Picture
            Its `save` writes it to more files, and `svg` returns it as text.

        Raises
        ------
        UsageError
            If there is nothing to draw, matplotlib is needed for .png or .pdf and not installed, or
            the file cannot be written.
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
            f"there is no picture of a {type(self).__name__}; a Comparison, a Stability, a History "
            "and Results, of evaluate_runs, have one"
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
