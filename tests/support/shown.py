"""Results, tables of texts and the like as a writer shows them."""

from collections.abc import Mapping
from typing import Any

from rankmill.analysis.explain.evaluators import EvaluatorDifferences
from rankmill.cli import draw as drawing
from rankmill.engine.results import same_queries, systems_view
from rankmill.metrics.registry import sides_of
from rankmill.results.result import Result
from rankmill.show import writers
from rankmill.show.tables import Column, Facts, Table, View


def view_all(results: Mapping[str, Result]) -> View:
    sides = sides_of(next(iter(results.values())).metrics)
    return systems_view(results, same_queries(results), sides)


def render_all(results: Mapping[str, Result], format: str) -> str:
    return writers.write(view_all(results), format)


def draw(result: Result) -> None:
    drawing.draw(result._view().screen())


def draw_all(results: Mapping[str, Result]) -> None:
    drawing.draw(view_all(results).screen())


def difference_cells(found: EvaluatorDifferences) -> tuple[list[str], list[list[str]]]:
    (table,) = found._view().page()
    header, *rows = table.texts()
    return header, rows


def aligned_numbers(values: list[float | None], digits: int) -> list[str]:
    column = Column("", "number" if digits == 6 else "error")
    return [text for (text,) in Table([column], [[one] for one in values]).texts()[1:]]


def text_table(header: list[str], rows: list[list[Any]]) -> Table:
    return Table([Column(title) for title in header], rows)


def csv_text(header: list[str], rows: list[list[Any]]) -> str:
    return writers.csv_text(text_table(header, rows))


def markdown(header: list[str], rows: list[list[str]]) -> str:
    return writers.markdown([text_table(header, rows)])


def html_table(header: list[str], rows: list[list[str]]) -> str:
    return writers.html_text([text_table(header, rows)])


def plain_table(header: list[str], rows: list[list[str]]) -> str:
    return writers.plain_text([text_table(header, rows)])


def plain_lines(texts: list[tuple[str, str]]) -> list[str]:
    return writers.plain_lines(Facts(texts))
