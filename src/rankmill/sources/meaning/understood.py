"""What an input means: its shape, the role of each column, and its ids and numbers."""

from dataclasses import replace

from rankmill.semantics.choices import DEFAULT, Choices
from rankmill.sources.input_options import InputOptions, key_of
from rankmill.sources.meaning.derived_columns import keyed
from rankmill.sources.meaning.numbers import with_numbers
from rankmill.sources.meaning.plain_ids import with_plain_ids, with_times
from rankmill.sources.meaning.roles import check_types, find_columns, likely_ids
from rankmill.sources.meaning.shapes import ranked_columns, shaped, with_ranked
from rankmill.sources.roles.columns import Columns
from rankmill.sources.roles.source import Source


def with_key(source: Source, asked: InputOptions) -> Source:
    """The source with the column of query ids that several columns make, if they do."""
    names = source.schema.names
    key = None if source.key is not None else key_of(asked.query, names)
    if key is None:
        return source
    for part in key.parts:
        source.findings.used("part of the query", part)
        source = with_plain_ids(source, part, "query")
        source = source if key.texts else with_times(source, part)
    return keyed(source, key)


def understood(
    source: Source,
    asked: InputOptions,
    *,
    need_score: bool = False,
    semantics: Choices = DEFAULT,
) -> tuple[Source, Columns]:
    """The source with plain lists, ids and numbers, and the columns that have a role.

    `need_score` says whether a metric needs confidences. The semantics decide whether confidences
    order the predictions, and whether some may be missing.
    """
    told = replace(shaped(source), exact_ids=asked.exact_ids, decimal=asked.decimal)
    source = with_key(told, asked)
    if asked.item is None and not source.bare:
        schema = source.schema
        ranked = ranked_columns(schema.names)
        if ranked and likely_ids(schema, asked.role, asked.query, None)[1] is None:
            source, item = with_ranked(source, ranked)
            asked = replace(asked, item=item)
    columns = find_columns(source, asked, need_score=need_score, semantics=semantics)
    if source.key is None:
        source = with_plain_ids(source, columns.query, "query")
    source = with_plain_ids(source, columns.item, "item")
    for role in ("score", "gain", "rank"):
        name = getattr(columns, role)
        source = source if name is None else with_numbers(source, name, role)
    check_types(source, columns, asked.role)
    return source, columns
