"""The measures of trec_eval for preferences, and for several judges of a query."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from rankmill.columns.lists import offsets_of
from rankmill.errors import InputError
from rankmill.matching.hits import Hits
from rankmill.sources.files.files import find_files
from rankmill.sources.files.text_blocks import read_blocks


class Judgments(NamedTuple):
    """What judges said of a query."""

    documents: int  # how many they saw; each has a place, in the order of their ids
    # Of each judge, the places and the levels in each group that was judged together.
    judges: list[list[tuple[np.ndarray, np.ndarray]]]


def read_judgments(path: str, fields: int) -> tuple[pa.Table, dict[str, Judgments]]:
    """The documents of each query, whose gains are their places from 1, and its judgments.

    A line has a query, a judge, with five `fields` a group, a document, and a level.
    """
    found: dict[bytes, dict[bytes, dict[bytes, dict[bytes, float]]]] = {}
    for block in (block for file in find_files([path]) for block in read_blocks(file)):
        for number, line in enumerate(block.data.tobytes().split(b"\n")):
            if not (row := line.split()) or row[0].startswith(b"#"):
                continue
            try:
                query, judge, *group, document, text = row
                level = float(text)
                if len(row) != fields or not math.isfinite(level):
                    raise ValueError
            except ValueError:
                what = "query, judge, group, document" if fields == 5 else "query, judge, document"
                raise block.error(
                    number, f"{line.decode()!r}; expected {what}, and a number as level"
                ) from None
            levels = found.setdefault(query, {}).setdefault(judge, {})
            if levels.setdefault(b"".join(group), {}).setdefault(document, level) != level:
                raise block.error(number, f"a second level of {document.decode()!r} for a judge")
    columns: dict[str, list[object]] = {"query": [], "item": [], "gain": []}
    judgments = {}
    for query, judges in found.items():
        documents = sorted(
            {one for of in judges.values() for levels in of.values() for one in levels}
        )
        place = {document: n for n, document in enumerate(documents)}
        listed = [
            [
                (np.array([place[one] for one in levels]), np.array([*levels.values()]))
                for _, levels in sorted(groups.items())
            ]
            for _, groups in sorted(judges.items())
        ]
        judgments[query.decode()] = Judgments(len(documents), listed)
        columns["query"] += [query.decode()] * len(documents)
        columns["item"] += [document.decode() for document in documents]
        columns["gain"] += range(1, len(documents) + 1)
    kinds = (pa.large_string(), pa.large_string(), pa.float64())
    return pa.table(columns, pa.schema(zip(columns, kinds, strict=True))), judgments


def _places(judged: Hits, q: int) -> np.ndarray:
    """The places of the judged documents that a query found, by rank."""
    return judged.gains[judged.offsets[q] : judged.offsets[q + 1]].astype(np.int64) - 1


# ---------------------------------------------------------------------------- several judges


def by_judge(judged: Hits, of: Sequence[Judgments], judged_only: bool) -> Hits:
    """The hits of each judge of each query, one after the other, with levels as gains."""
    ranks, gains, labels, counts = [], [], [], []
    for q, one in enumerate(of):
        places = _places(judged, q)
        every = judged.ranks[judged.offsets[q] : judged.offsets[q + 1]]
        for ((seen, given),) in one.judges:
            level = np.full(one.documents, math.nan)
            level[seen] = np.trunc(given)
            found = level[places]
            kept = found >= 0 if judged_only else ~np.isnan(found)
            ranks.append(np.arange(1, kept.sum() + 1) if judged_only else every[kept])
            gains.append(found[kept])
            labels.append(-np.sort(-np.trunc(given)))
            counts.append(len(gains[-1]) if judged_only else judged.prediction_counts[q])
    return judged._replace(
        offsets=offsets_of(np.array([*map(len, ranks)])),
        ranks=np.concatenate(ranks),
        gains=np.concatenate(gains),
        label_counts=np.array([*map(len, labels)]),
        prediction_counts=np.array(counts),
        label_offsets=offsets_of(np.array([*map(len, labels)])),
        label_gains=np.concatenate(labels),
    )


# ---------------------------------------------------------------------------- preferences


class _Judge(NamedTuple):
    """What a judge prefers: pairs[i, j] if i to j; documents found come first, by rank.

    The level is NaN where the judge did not see a document. `whole` tells that all were judged
    together.
    """

    pairs: np.ndarray
    levels: np.ndarray
    whole: bool


def preference_values(judged: Hits, of: Sequence[Judgments]) -> dict[str, np.ndarray]:
    """Measure -> its value for each query."""
    rows = [_values_of(_places(judged, q), one) for q, one in enumerate(of)]
    return {name: np.array([row[name] for row in rows], np.float64) for name in rows[0]}


def _values_of(places: np.ndarray, of: Judgments) -> dict[str, float]:
    found = len(places)
    rest = np.setdiff1d(np.arange(of.documents), places)
    rank = np.argsort(np.append(places, rest))
    judges = [_judge_of(groups, rank) for groups in of.judges]
    values = {}
    for scope in ("", "_imp", "_ret"):
        counts = [_count(_within(one.pairs, found, scope), found) for one in judges]
        kept, possible = (sum(column) for column in zip(*counts, strict=True))
        values[f"prefs_simp{scope}"] = kept / possible if possible else 0.0
        shares = [one / all_ if all_ else 0.0 for one, all_ in counts]
        values[f"prefs_avgjg{scope}"] = _mean(shares)
        values[f"prefs_pair{scope}"] = _mean_of_pairs(judges, found, scope)
        if scope != "_imp":
            values[f"prefs_avgjg_Rnonrel{scope}"] = _mean(
                [_share_as_bpref(one, found, scope) for one in judges]
            )
            values[f"prefs_num_prefs_ful{scope}"] = kept
        if not scope:
            values["prefs_num_prefs_poss"] = possible
    return values


def _judge_of(groups: list[tuple[np.ndarray, np.ndarray]], rank: np.ndarray) -> _Judge:
    levels = np.full(len(rank), math.nan)
    pairs = np.zeros((len(rank), len(rank)), np.bool_)
    for seen, given in groups:
        places = rank[seen]
        if ((levels[places] * given == 0) & (levels[places] != given)).any():
            raise InputError(
                "a judge gives a document level 0 in one group and more in another: fix the levels"
            )
        levels[places] = given
        pairs[np.ix_(places, places)] |= given[:, None] > given
    while len(groups) > 1:  # what follows from preferences is one too
        known = pairs.astype(np.float32)
        more = pairs | (known @ known > 0)
        if (more == pairs).all():
            break
        pairs = more
    if (pairs & pairs.T).any():
        raise InputError("a judge prefers a document to another and the reverse: fix the levels")
    return _Judge(pairs, levels, len(groups) == 1)


def _within(pairs: np.ndarray, found: int, scope: str) -> np.ndarray:
    """The preferences of all documents, of pairs with one that was found, or with both."""
    if scope == "_ret":
        return pairs[:found, :found]
    if scope == "_imp":
        pairs = pairs.copy()
        pairs[found:, found:] = 0
    return pairs


def _count(pairs: np.ndarray, found: int) -> tuple[int, int]:
    """How many preferences are fulfilled, and how many there are."""
    return int(np.triu(pairs, 1)[:found].sum()), int(pairs.sum())


def _mean(values: Sequence[float]) -> float:
    """The mean over judges, added one after the other; 0 if one is undefined."""
    total = float(np.cumsum(values)[-1])
    return total / len(values) if total > 0 else 0.0


def _mean_of_pairs(judges: Sequence[_Judge], found: int, scope: str) -> float:
    """The mean over pairs of documents of the share of judges who are followed."""
    votes = _within(sum(one.pairs.astype(np.int64) for one in judges), found, scope)  # type: ignore[arg-type]
    both = np.triu(votes + votes.T, 1)
    if not both.any():
        return 0.0
    share = votes / np.where(both > 0, both, 1)
    parts = [
        share[:found, part][both[:found, part] > 0] for part in (slice(found), slice(found, None))
    ]
    return float(np.cumsum([0.0, *np.concatenate(parts)])[-1] / (both > 0).sum())


def _share_as_bpref(judge: _Judge, found: int, scope: str) -> float:
    """The share of preferences with as many nonrelevant documents as relevant ones."""
    pairs, levels, whole = judge
    relevant, other = levels > 0, levels <= 0 if whole else levels == 0
    inside = slice(found if scope else None)
    r, n, every = int(relevant[inside].sum()), int(other[inside].sum()), int(relevant.sum())
    kept = more = 0
    pairs = pairs.copy()
    if r >= n:
        kept, more = int(relevant[:found].sum()) * (r - n), every * (r - n)
    elif whole:  # those that are left also stand for preferences among themselves
        lowest = levels == np.nanmin(levels)
        pairs[:, lowest] = False
        pairs[:, np.flatnonzero(lowest)[:r]] = ~np.isnan(levels)[:, None]
    else:
        dropped = np.flatnonzero(other)[every:]
        pairs[dropped] = False
        pairs[:, dropped] = False
    fulfilled, possible = _count(_within(pairs, found, scope), found)
    possible += more
    return (fulfilled + kept) / possible if possible else math.nan
