"""Labels that do not fit into memory: shares of the queries are evaluated one after the other.

A share is what a part of an array job has: the queries whose ids have certain hashes. Only its
labels are in memory, the states of all shares merge exactly, and the result is the same to the last
bit. The price is that both inputs are read once for each share.
"""

from dataclasses import replace

from rankmill.columns.ids import is_text_type
from rankmill.columns.lists import value_type
from rankmill.engine.job import Job
from rankmill.errors import ResourceError
from rankmill.sources.inputs.inputs import Input
from rankmill.sources.roles.shares import Sample, Share, divided

# The bytes of a query of the labels: its key and its offset; whether it has labels, was seen and
# was predicted; and its share of a hash table, which is needed if the ids do not ascend.
A_QUERY = 8 + 8 + 3 + 16
# The bytes of its weight: read with its key, grouped by query, and put in the order of the labels.
A_WEIGHT = 8 + 8 + 32 + 8
# The bytes of a label: its key. A gain takes as many.
A_LABEL = 8
# The bytes that a string takes besides its key: its offset, and its text. The text is assumed to
# take at least 16 bytes, and more if it does in the file.
A_STRING = 8
ITS_BYTES = 16
# Labels of fewer bytes take no room from others: the process alone takes several times as much.
LEAST = 32 << 20
# Labels and lists of fewer bytes are never refused.
SPARED = 64 << 20
MB = 10**6
# The bytes of an item in a list that is read, matched and scored.
A_LISTED = 64
# Shares take three quarters of the memory at most, and each reads all rows.
MOST_SHARES = 16
WHOLE = Share(1, 1)


def bytes_of_labels(labels: Input) -> int:
    """Return the bytes that all labels take in memory, from the counts and sizes in footers."""
    columns, rows = labels.columns, labels.source.rows or 0
    sizes = labels.source.sizes([columns.query, columns.item])
    values, _ = sizes[columns.item]
    held = rows * (A_QUERY + A_WEIGHT * len(columns.facts))
    held += values * A_LABEL * (2 if columns.gain else 1)
    for name, count in ((columns.query, rows), (columns.item, values)):
        if is_text_type(value_type(labels.source.schema.field(name).type)):
            held += A_STRING * count + max(ITS_BYTES * count, sizes[name][1])
    return held


def shares_of(labels: Input, predictions: Input, job: Job, whole: int) -> list[Share]:
    """Return the shares of the queries to evaluate: one, if all labels fit or have to be held.

    `whole` are the bytes of all labels.
    """
    semantics = job.semantics
    whole_is_needed = (
        job.keep_values  # the values take as much memory as the labels
        or not (job.cuts is None or job.cuts.by_part)
        or (job.by and any(aggregate.passes > 1 for aggregate in job.kinds.values()))
        or job.holds_rows
        # An "error" reports the number of wrong queries of all shares together.
        or "error" in (semantics.unlabelled, semantics.unpredicted, semantics.no_relevant)
    )
    # Files can be read again. A part of an array job, whose rows are not known, is a share itself.
    again = all(one.source.format and one.source.rows for one in (labels, predictions))
    count = min(MOST_SHARES, -(-4 * whole // (3 * job.memory)))
    if count < 2 or whole_is_needed or not again:
        return [WHOLE]
    return [Share(number, count) for number in range(1, count + 1)]


def check_room(labels: Input, predictions: Input, held: int, memory: int) -> int:
    """Return how many of the bytes allowed are left beside the labels, but a quarter at least.

    `held` are the bytes of the labels that are held at once. Raises ResourceError if files need
    more than is allowed.
    """
    values = 0
    if predictions.source.format and predictions.columns.wide and predictions.source.rows:
        item = predictions.columns.item
        values = predictions.source.sizes([item])[item][0] // predictions.source.rows
    for one, size, what, todo in (
        (labels, held, "its labels take", ", or evaluate parts: 'rankmill docs memory'"),
        (predictions, A_LISTED * values, "a list, which is read as a whole, takes", ""),
    ):
        if one.source.format and size > max(SPARED, memory):
            raise ResourceError(
                f"{one.source.name}: {what} about {size // MB + 1:,}MB in memory, and "
                f"{memory // MB:,}MB are allowed: allow {size // MB + 1}MB{todo}"
            )
    return memory if held <= LEAST else max(1, memory // 4, memory - held)


def only(one: Input, share: Share) -> Input:
    """Return an input that has only the queries of a share."""
    if share == WHOLE:
        return one
    return replace(one, source=divided(one.source, one.columns.query, share, Sample()))
