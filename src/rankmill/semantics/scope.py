"""Scope: the labels and predictions that count at all, and how much each query counts."""

from typing import Any

from rankmill.records import record


@record(frozen=True)
class Scope:
    """Which labels and predictions count, and how much, for all metrics of a job.

    The first three are trec_eval's -l, -M and -J.
    """

    # The least gain that counts as relevant, for the metrics that have this parameter; None for any
    # above 0. The names of these metrics include it.
    rel: float | None = None
    # Only so many predictions of each query count, the first ones in the order of the semantics.
    depth: int | None = None
    # Whether to drop predictions that are not judged; later predictions move up. An item is judged
    # if it is among the labels of the query with a gain of 0 or more, as in trec_eval. Those beyond
    # `depth` are cut off before.
    judged_only: bool = False
    # The column of the labels with the weight of each query; None if all count the same.
    weight: str | None = None
    # Whether predictions that their query had in training are dropped, before all else.
    drop_seen: bool = False

    @property
    def drops(self) -> bool:
        """Whether some predictions may not count."""
        return self.depth is not None or self.judged_only

    def to_dict(self) -> dict[str, Any]:
        """All fields with their values; the weight and whether seen items are dropped if so."""
        fields = dict(vars(self))
        if self.weight is None:
            del fields["weight"]
        if not self.drop_seen:
            del fields["drop_seen"]
        return fields

    def __str__(self) -> str:
        """The fields that are not as by default, in a line; "" if all are."""
        said = [
            "" if self.rel is None else f"relevant from gain {self.rel:g}",
            "" if self.depth is None else f"the first {self.depth:,} predictions of each query",
            "judged predictions only" if self.judged_only else "",
            "without items seen in training" if self.drop_seen else "",
            "" if self.weight is None else f"queries weighted by {self.weight}",
        ]
        return ", ".join(filter(None, said))


WHOLE = Scope()
