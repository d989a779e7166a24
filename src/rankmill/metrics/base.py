"""What a metric is: a row in the file of its family, and what such rows are made of."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from rankmill.errors import UsageError
from rankmill.records import record
from rankmill.semantics.choices import Choices
from rankmill.semantics.metric_names import number_text, side_text

if TYPE_CHECKING:
    from rankmill.matching.hits import Hits

# A cutoff beyond every list stands for none.
NO_CUTOFF = 1 << 62

# The summary that is no summary of values of queries, but of what these are divided from.
MICRO = "micro"

MANNING = "Manning, Raghavan and Schütze, Introduction to Information Retrieval, 2008, chapter 8"

Better = Literal["higher", "lower", "neither"]
"""Which of two values of a metric is better; neither where it only describes lists or labels."""

Sees = Literal["ranks", "gains", "labels"]
"""What a metric looks at: ranks of hits and the number of labels; gains of hits; or all labels."""

# The ends of a range, as its text begins.
_NUMBER = r"(-?\d+(?:\.\d+)?(?:e-?\d+)?)"
_RANGE = re.compile(rf"{_NUMBER}(?: (?:to|or) {_NUMBER}(?!, and above)\b)?(?! /)")

# The columns of a walk, by name; "term" is what each rank adds to the sum.
Columns = dict[str, np.ndarray]


@record(frozen=True)
class Parameter:
    """A number that may be given in the name of a metric, above `low` and below `high`.

    `closed` allows both bounds. `words` are what may be given in place of a number, and the number
    that each stands for. Without a default it has to be given, but for ``rel``.
    """

    name: str
    meaning: str
    default: float | None = None
    low: float = -math.inf
    high: float = math.inf
    kind: type[int] | type[float] = float
    closed: bool = False
    words: tuple[tuple[str, float], ...] = ()

    @property
    def expected(self) -> str:
        """What may be given."""
        if self.words:
            return " or ".join(word for word, _ in self.words)
        above, below = ("from", "to") if self.closed else ("above", "below")
        bounds = [f"{above} {self.low:g}"] if self.low > -math.inf else []
        bounds += [f"{below} {self.high:g}"] if self.high < math.inf else []
        what = "a number" if self.kind is float else "an integer"
        return " ".join([what, (" " if self.closed else " and ").join(bounds)]).strip()

    def read(self, text: str, metric: str) -> float:
        """The number that a text is; `metric` is the name that it stands in.

        UsageError if it is none, or out of bounds.
        """
        try:
            known = {word.lower(): number for word, number in self.words}
            number = known.get(text.lower(), math.nan) if known else self.kind(text)
        except ValueError:
            number = math.nan
        inside = self.low < number < self.high
        if not inside and not (self.closed and number in (self.low, self.high)):
            raise UsageError(
                f"{self.name} of {metric!r} is {text!r}; expected {self.expected}: {self.meaning}"
            )
        return number

    def written(self, number: float) -> str:
        """The text that is read as a number."""
        words = {of: word for word, of in self.words}
        return words[number] if words else number_text(number)


# The quantities whose expected value over all orders of equal confidences is known: by a kernel of
# this name in `rankmill.kernels.expectation`, from one, or because any order gives the same.
EXPECTED = {
    *("any_hit", "count_hits", "count_hits_for", "count_hits_of_labels", "count_labels"),
    *("count_misses", "count_predictions", "count_without_gain", "enough_predictions"),
    *("hits_beyond_chance", "precision_at_multiple", "square_hits", "utility", "bpref", "dcg"),
    *("first_hit", "first_rank", "pairs_in_order", "rank_biased", "rank_biased_residual"),
    *("sum_precisions", "weighted_pairs"),
}

# Applied to the hits before a kernel sees them. In units of the gain given, whatever the gain
# function makes of it.
REL = Parameter(
    "rel",
    "the least gain that counts as relevant (without a gain column all are 1); if not given, "
    "any above 0 does",
    low=0,
)

# Two options of one metric alone, which no kernel sees either.
JUDGED_ONLY = Parameter(
    "judged_only",
    "predictions that are not judged, or of a gain below 0, are dropped before ranks are counted",
    words=(("true", 1.0),),
)
GAIN = Parameter("gain", "a gain of g is worth 2**g - 1", words=(("exp", 1.0),))


class Divisor(NamedTuple):
    """What a metric divides what it counts by, for each query.

    It is a quantity of `rankmill.metrics.quantities`, or a function of the hits where it depends on
    the semantics. Braces in the meaning, for `explain`, stand for what is chosen in the fields of
    the metric.
    """

    of: str | Callable[[Hits, Metric, Choices], np.ndarray]
    meaning: str = "{}"


@record(frozen=True)
class MetricSpec:
    """A metric: all that the rest of the package knows about it.

    Attributes
    ----------
    name, definition, range, source : str
    kernel : str, callable or None
        The quantity of `rankmill.metrics.quantities`, or the function of ``rankmill.kernels``, that
        counts for each query, by its name, or that of a user's metric (`rankmill.metrics.own`). A
        function is called with the hits, the cutoff, the values of the parameters (but for ``rel``)
        and the array to write to. None for a metric over all predictions in one list.
    expected : str or None
        Its twin in ``rankmill.kernels.expectation``, which is called with the runs of equal
        confidence before all that; by default the kernel itself if it is one of `EXPECTED`.
        With None, the metric is refused where their order is open.
    divisor : Divisor, optional
        What that is divided by.
    fields : tuple of str
        The fields of `Choices` that matter to this metric and not to all, as for its divisor.
    chosen : callable, optional
        What the kernel takes after the parameters, by the choices of `Choices`.
    cutoff : {"required", "optional", "none"}
        Whether the name takes an ``@k``.
    parameters : tuple of Parameter
        Those in parentheses after the name. With ``rel`` the hits and labels are those
        of at least that gain.
    at : Parameter, optional
        The parameter after the @ instead of a cutoff, as in ``iprec@0.1``.
    aliases : tuple of str
        Other names, in any case.
    cut_names : tuple of str
        Names that take their cutoff, or `at`, after an underscore, such as P_10.
    needs_judged : bool
        Whether hits and labels are all judged items, at any gain. With ``rel`` their gain is 1 if
        they are relevant, else 0, and those below 0 count as not judged.
    gains : {"given", "whole", "levels", "powers", "subtopics"}
        The gains that the kernel sees: as `gain_function` made them; the same with all hits and
        labels, whatever ``rel``, of queries with a relevant item; of judged items 1 if they are
        relevant, 0 if not, and -1 if their gain is below 0; 2**g - 1 of a gain g in any case; or
        the subtopics of labels that have them (`rankmill.kernels.diversity`).
    sees_all : bool
        Whether it looks at hits beyond its cutoff.
    sees_labels : bool
        Whether it looks at labels besides the hits: at their gains, or at their number.
    within_labels : bool
        Whether it looks at the first R predictions.
    undefined : callable, optional
        Why the metric has no value under some semantics; "" if it has.
    without_labels : {"scored", "list", "refused"}
        The value of a query without labels: the score that semantics give it, or the value of its
        list; only the latter; or none, because the metric has no value there. An input with a query
        of another kind is refused.
    counts_empty : bool
        Whether it may have a value other than 0 without a hit, or none.
    lacks : str
        Why it may have no value over all queries, if not for lack of a divisor.
    ideal : callable, optional
        The gains of the best possible list, shown with the walk.
    better : {"higher", "lower", "neither"}
        Which side is better. All that says "better", "lost" or "best" reads it.
    aggregate : str
        The class that adds the metric up over queries, as ``module.Class`` of ``rankmill.metrics``;
        it is a `rankmill.metrics.aggregate.Aggregate`.
    """

    name: str
    kernel: str | Callable[..., None] | None
    definition: str
    range: str
    source: str
    expected: str | None = ""
    divisor: Divisor | None = None
    fields: tuple[str, ...] = ()
    chosen: Callable[[Choices], tuple[float, ...]] | None = None
    cutoff: Literal["required", "optional", "none"] = "optional"
    parameters: tuple[Parameter, ...] = ()
    at: Parameter | None = None
    aliases: tuple[str, ...] = ()
    cut_names: tuple[str, ...] = ()
    needs_judged: bool = False
    gains: Literal["given", "whole", "levels", "powers", "subtopics"] = "given"
    sees_all: bool = False
    sees_labels: bool = True
    within_labels: bool = False
    undefined: Callable[[Metric, Choices], str] | None = None
    without_labels: Literal["scored", "list", "refused"] = "scored"
    counts_empty: bool = False
    lacks: str = ""
    ideal: Callable[[Hits, Metric, Choices], np.ndarray] | None = None
    better: Better = "higher"
    aggregate: str = "aggregates.mean.Mean"

    def __post_init__(self) -> None:
        if self.expected == "":
            found = self.kernel if self.kernel in EXPECTED else None
            object.__setattr__(self, "expected", found)

    @property
    def example(self) -> str:
        """A name of this metric, with the least that must be given."""
        if self.at is not None:
            return f"{self.name}@0.5"
        inner = ",".join(f"{one.name}=1000" for one in self.wanted)
        name = f"{self.name}({inner})" if inner else self.name
        return name if self.cutoff != "required" else f"{name}@10"

    @property
    def wanted(self) -> list[Parameter]:
        """The parameters that have to be given in parentheses."""
        others = (REL, self.at)
        return [one for one in self.parameters if one.default is None and one not in others]

    @property
    def bounds(self) -> tuple[float, float]:
        """The ends of the range, which are infinite where it has none."""
        found = _RANGE.match(self.range)
        if found is None:
            return -math.inf, math.inf
        return float(found[1]), float(found[2] or math.inf)

    @property
    def worst(self) -> float:
        """The value of a list without predictions: the worse end of the range, NaN if it has none.

        Such a list is the worst possible, so a system never gains by losing predictions.
        """
        end = self.bounds[self.better == "lower"]
        return end if math.isfinite(end) else math.nan

    @property
    def options(self) -> tuple[Parameter, ...]:
        """What may stand among its parameters besides them."""
        of_lists = self.aggregate == MetricSpec.aggregate and isinstance(self.kernel, str)
        graded = self.gains in ("given", "powers")
        if not of_lists or not graded or self.needs_judged or self.counts_empty:
            return ()
        return (JUDGED_ONLY, GAIN) if self.kernel == "dcg" else (JUDGED_ONLY,)

    @property
    def home(self) -> tuple[str, str] | tuple[()]:
        """The module and name of the function of a user's metric; otherwise empty."""
        return getattr(self.kernel, "home", ())

    @property
    def fingerprint(self) -> str:
        """A hash of the function of a user's metric; otherwise ""."""
        return getattr(self.kernel, "fingerprint", "")

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that a user's metric sees, as its function takes them; otherwise empty."""
        return getattr(self.kernel, "columns", ())

    @property
    def range_text(self) -> str:
        """The range, and which side of it is better if it is not the higher one."""
        return f"{self.range}{side_text(self.better)}"


@record(frozen=True)
class Metric:
    """A metric as asked for: its row, a cutoff or None, the text it was, the parameters given.

    `summary` is the text after a colon: how the values are summarized; "" is their mean.
    """

    spec: MetricSpec = field(repr=False)
    k: int | None
    text: str
    given: tuple[tuple[str, float], ...] = ()
    summary: str = field(default="", repr=False)

    def __hash__(self) -> int:
        return hash(self.text)  # which nearly tells it, in a hundredth of the time of all fields

    @property
    def name(self) -> str:
        """The name of its row."""
        return self.spec.name

    @property
    def better(self) -> Better:
        """Which side is better; a summary has the side of its metric."""
        return self.spec.better

    @property
    def counts_empty(self) -> bool:
        """Whether queries without predictions may add something other than 0."""
        return self.spec.counts_empty or self.summary == MICRO

    @property
    def is_mean(self) -> bool:
        """Whether it is the mean of a value of each query."""
        return bool(self.spec.kernel) and not self.summary

    @property
    def quantile(self) -> float | None:
        """Of a median or a percentile of values, the share of queries below it."""
        if self.summary == "median":
            return 0.5
        return float(self.summary[1:]) / 100 if self.summary.startswith("p") else None

    @property
    def bounds(self) -> tuple[float, float]:
        """The ends of its range, which are infinite where it has none.

        Examples
        --------
        >>> from rankmill.metrics.registry import parse
        >>> parse("map@12:median").bounds, parse("map@12:sum").bounds
        ((0.0, 1.0), (0.0, inf))
        """
        low, high = self.spec.bounds
        if self.summary == "sum":
            return (0.0 if low >= 0 else -math.inf), math.inf
        return (0.0, 1.0) if self.summary.startswith("above=") else (low, high)

    @property
    def limit(self) -> int:
        """The cutoff, or a rank beyond every list."""
        return NO_CUTOFF if self.k is None else min(self.k, NO_CUTOFF)

    @property
    def cut(self) -> float | None:
        """What follows the @: the cutoff, the parameter `at`, or None."""
        return dict(self.given).get(self.spec.at.name) if self.spec.at else self.k

    @property
    def values(self) -> dict[str, float]:
        """All parameters, those not given as by default; ``rel`` only if it is given."""
        defaults = ((one.name, one.default) for one in self.spec.parameters)
        return {name: value for name, value in defaults if value is not None} | dict(self.given)

    @property
    def rel(self) -> float | None:
        """The lowest gain that counts as relevant; None for any above 0."""
        return dict(self.given).get(REL.name)

    @property
    def judged_only(self) -> bool:
        """Whether only judged predictions count for it."""
        return JUDGED_ONLY.name in dict(self.given)

    @property
    def needs_judged(self) -> bool:
        """Whether its hits are found among all judged items."""
        return self.spec.needs_judged or self.judged_only

    @property
    def sees(self) -> Sees:
        """What it looks at.

        The kernels of metrics with ``rel`` look at no gains, as that says what is a hit.
        """
        spec = self.spec
        blind = isinstance(spec.kernel, str) and spec.gains == "given" and REL in spec.parameters
        if blind and not self.needs_judged and self.rel is None:
            return "ranks"
        cut = self.rel is not None or self.judged_only
        return "labels" if spec.sees_labels or cut or self.counts_empty else "gains"

    @property
    def arguments(self) -> list[float]:
        """The parameters that its kernel takes, those not given as by default.

        They are of the kind declared, as a kernel is compiled anew for another.
        """
        return [
            one.kind(self.values[one.name]) for one in self.spec.parameters if one.name != REL.name
        ]
