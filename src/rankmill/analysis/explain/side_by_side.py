"""The lists of some queries, those of several systems side by side, with what is right in them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from rankmill.analysis.explain.list_of_query import id_of, lists_of
from rankmill.analysis.explain.trace import index_of
from rankmill.analysis.explain.walk import walk_list
from rankmill.columns.ids import id_value, join_ids, slice_ids
from rankmill.engine.held_labels import with_catalogue
from rankmill.engine.job import Job, open_job, parse_job, runs_of
from rankmill.engine.score import known_lists
from rankmill.semantics.semantics import Counting
from rankmill.sources.inputs.inputs import Input
from rankmill.sources.meaning.looks import reading_again
from rankmill.sources.nouns import Catalogue, Labels
from rankmill.sources.roles.source import MEMORY
from rankmill.threads import Workers


class Listed(NamedTuple):
    """A query: its labels, and for each system the items of its list and whether each is right."""

    query: int | str
    labels: list[int | str]
    lists: dict[str, list[tuple[int | str, bool]]]


@reading_again
def side_by_side(
    labels: Any,
    runs: Mapping[str, Any],
    queries: Sequence[int | str],
    ranks: int,
    *,
    semantics: Counting = "default",
    catalogue: Catalogue | None = None,
    threads: int | None = None,
    memory: int = MEMORY,
) -> list[Listed]:
    """Return the lists of some queries up to a rank, in the order that counts.

    All inputs are read once more. A list that the semantics drop items of is shown without these.
    Errors are those of `evaluate`.

    Examples
    --------
    >>> import rankmill
    >>> lists = rankmill.arrays.Ragged.from_lists
    >>> side_by_side(lists([[1], [2, 3]]), {"new": lists([[5], [2, 9]])}, [1], 10)
    [Listed(query=1, labels=[2, 3], lists={'new': [(2, True), (9, False)]})]
    """
    given, alone = Labels.of(labels), Catalogue.of(catalogue).of_one_query()
    # The walk of recall tells at each rank whether there is a hit, and it is always defined.
    how: Any = {"memory": memory, "keep_values": False}
    job = parse_job([f"recall@{ranks}"], given, semantics, alone, **how)
    job = replace(job, scope=replace(job.scope, weight=None))
    with (
        open_job(job, given, runs_of(runs)) as (label_input, inputs),
        Workers(threads) as workers,
    ):
        job = with_catalogue(job, alone, label_input, workers)
        ids = join_ids([id_of(one, label_input) for one in queries])
        of_labels = lists_of(ids, label_input, workers)
        of_systems = {name: lists_of(ids, one, workers) for name, one in inputs.items()}
        found = []
        for i, query in enumerate(queries):
            index = index_of(slice_ids(ids, i, i + 1), of_labels[i], job)
            items = index.labels.items
            lists = {
                name: [] if of[i] is None else _marked(of[i], index, inputs[name], job)
                for name, of in of_systems.items()
            }
            right = [id_value(items, place) for place in range(len(items.keys))]
            found.append(Listed(query, right, lists))
    return found


def _marked(lists: Any, index: Any, predictions: Input, job: Job) -> list[tuple[int | str, bool]]:
    """Return the items of the only list, and whether each is right."""
    if job.catalogue is not None:
        lists, _ = known_lists(lists, job.catalogue, job.scope.drop_seen)
    table = walk_list(job.metrics[0], lists, index, predictions, job).table
    rows = table.select(["rank", "item", "hit"]).to_pylist()
    return [(row["item"], bool(row["hit"])) for row in rows if row["rank"] is not None]
