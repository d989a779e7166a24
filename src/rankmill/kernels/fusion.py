"""Fusing the lists of several systems: one score for each item, and the order of the fused list."""

import numpy as np

from rankmill.kernels.identity import SIGNED, STRING, TOP_BIT, home, same_bytes, shift_of
from rankmill.kernels.jit import helper, kernel

# What an item gets from a list: its confidence as it is or normalised, or a function of its rank.
AS_IS, MIN_MAX, Z_SCORE, RANK, RECIPROCAL, INVERTED, MAX, TOTAL = 0, 1, 2, 3, 4, 5, 6, 7
BORDA, POINTS, SQUARE, GEOMETRIC, PLACE = 8, 9, 10, 11, 12
# What becomes of the numbers that an item gets from several lists.
SUM, TIMES_FACTOR, MEAN, LEAST, MOST, MEDIAN, TIMES_WEIGHTS, VOTES = 0, 1, 2, 3, 4, 5, 6, 7
# Where rates are trained, that of the rank, of its segment or its window, or the rank's times it.
UNTRAINED, BY_RANK, BY_SEGMENT, BY_WINDOW, TIMES_SCORE = 0, 1, 2, 3, 4
# Chunks of this length are sorted by insertion before they are merged.
SMALL = 16
ONE = np.uint64(1)


@kernel
def fuse_lists(
    starts, ends, ids, scores, weights, by_weight, factors, rates, norm, method, trained, k,
    parameter, absent, top, seed, out_places, out_scores, out_lengths,
):  # fmt: skip
    """Fuse the lists of each query.

    List r of query q holds the predictions ids[starts[q, r]:ends[q, r]], with `scores` beside them
    if `norm` needs any. `norm` says what an item gets from a list, multiplied by weights[r], and
    `method` what becomes of these numbers; factors[n] is for an item with n of them. If the method
    is `trained`, rates[r] are those of run r, and an item gets `absent` from a list that lacks it,
    unless that is NaN. Runs count in the order `by_weight`, of ascending weights, so that the order
    of the runs changes no bit. A repeat of an item within a list is left out.

    Writes for each query up to `top` items, the highest score first, and equal ones by ascending
    id: a place in `ids` and the score; out_lengths[q] is how many. Returns the number of repeats,
    and the first query with a number that is not finite, or -1.
    """
    keys, first, last, data, kind = ids.keys, ids.starts, ids.ends, ids.data, ids.kind
    queries, runs = starts.shape
    slots, places, seen, members, spare = tables_for(starts, ends)
    most = len(places)
    counts = np.empty(most, np.int64)  # how many numbers each distinct item of the query has
    parts = np.empty((most, runs))  # these numbers
    masses = np.empty(most)  # the weights of the lists that they are from
    order = np.empty(most, np.int64)
    fused = np.empty(most)
    bounds = np.zeros(runs + 1, np.int64)
    by = np.empty(runs)
    for i in range(runs):
        by[i] = weights[by_weight[i]]
    repeats = written = 0
    for q in range(queries):
        table = slots[: table_size(predictions_of(starts, ends, q))]
        table[:] = -1
        found = 0
        for r in range(runs):
            length, found = number_items(
                starts[q, r], ends[q, r], keys, first, last, data, kind, seed,
                table, places, seen, r, found, members[bounds[r] :], spare[bounds[r] :],
            )  # fmt: skip
            repeats += ends[q, r] - starts[q, r] - length
            bounds[r + 1] = bounds[r] + length
        counts[:found] = 0
        masses[:found] = 0.0
        for i in range(runs):
            r = by_weight[i]
            own, spots = members[bounds[r] : bounds[r + 1]], spare[bounds[r] : bounds[r + 1]]
            length = len(own)
            low, scale = scale_of(scores, spots, length, norm)
            if not np.isfinite(scale):
                return repeats, q
            weight = 1.0 if method == TIMES_WEIGHTS or method == VOTES else weights[r]
            power = 1.0 - parameter
            for rank in range(length):
                item = own[rank]
                part = part_of(scores, spots[rank], rank, length, found, norm, low, scale, k)
                if norm == GEOMETRIC:
                    part, power = power, power * parameter
                if trained != UNTRAINED:
                    part = rate_of(rates[r], rank, length, trained, parameter, absent, part)
                parts[item, counts[item]] = weight * part
                counts[item] += 1
                masses[item] += weights[r]
                seen[item] = runs + r
            part = absent_part(length, found, norm, absent)
            if not np.isnan(part):
                for item in range(found):
                    if seen[item] != runs + r:
                        parts[item, counts[item]] = weight * part
                        counts[item] += 1
                        masses[item] += weights[r]
        for item in range(found):
            order[item] = item
            fused[item] = combined(parts[item], counts[item], method, factors, masses[item])
            if not np.isfinite(fused[item]):
                return repeats, q
        for turn in range(2 if method == VOTES else 1):
            if turn == 1:  # from ascending ids, so that it does not matter where items stood
                fused[:found] = np.nan
            sort_fused(order, spare, found, fused, places, parts, by, keys, first, last, data, kind)
        if method == VOTES:
            for i in range(found):
                fused[order[i]] = found - i
        out_lengths[q] = min(found, top)
        for i in range(out_lengths[q]):
            out_places[written] = places[order[i]]
            out_scores[written] = fused[order[i]]
            written += 1
    return repeats, -1


@kernel
def count_hits(starts, ends, ids, seed, out_hits, out_lists, out_values):
    """Count how often runs are right at each rank; list 0 of a query holds its labels.

    Writes how many lists of run r are right at rank i, from 0, into out_hits[r, i], and how many
    are that long into out_lists[r, i], of queries with a label. out_values[q, r] gets the average
    precision, and the share of hits in each segment of the list.
    """
    keys, first, last, data, kind = ids.keys, ids.starts, ids.ends, ids.data, ids.kind
    queries, columns = starts.shape
    segments = out_values.shape[2] - 1
    slots, places, seen, members, spare = tables_for(starts, ends)
    for q in range(queries):
        table = slots[: table_size(predictions_of(starts, ends, q))]
        table[:] = -1
        labels = found = 0
        for r in range(columns):
            length, found = number_items(
                starts[q, r], ends[q, r], keys, first, last, data, kind, seed,
                table, places, seen, r, found, members, spare,
            )  # fmt: skip
            if r == 0:
                labels = found
            if r == 0 or labels == 0:
                continue
            values = out_values[q, r - 1]
            size = (length + segments - 1) // segments if segments else length
            hits = 0
            for rank in range(length):
                out_lists[r - 1, rank] += 1
                if members[rank] < labels:
                    hits += 1
                    out_hits[r - 1, rank] += 1
                    values[0] += hits / (rank + 1)
                    if segments:
                        values[1 + rank // size] += 1.0
            for k in range(segments):
                if k * size < length:
                    values[1 + k] /= min(size, length - k * size)
            values[0] /= labels


@helper
def tables_for(starts, ends):
    """Return the tables that `number_items` writes, with room for all predictions of any query.

    They are the slots of a hash table; where each distinct item stands first, and the last list
    that had it; and the number and the place of each item of a list.
    """
    most = 0
    for q in range(len(starts)):
        most = max(most, predictions_of(starts, ends, q))
    room = np.empty((4, most), np.int64)
    return np.empty(table_size(most), np.int64), room[0], room[1], room[2], room[3]


@helper
def number_items(
    start, end, keys, first, last, data, kind, seed, slots, places, seen, r, found, members, spare
):
    """Number the items of list r of a query, of whose earlier lists `found` items are known.

    Writes the number and the place of each, without repeats. Returns how many these are, and how
    many items are known now.
    """
    shift = shift_of(len(slots))
    length = 0
    for i in range(start, end):
        slot = home(keys[i], seed, shift)
        while slots[slot] >= 0:
            j = places[slots[slot]]
            if keys[i] == keys[j] and (
                kind != STRING or same_bytes(data, first[i], last[i], data, first[j], last[j])
            ):
                break
            slot = (slot + 1) & (len(slots) - 1)
        if slots[slot] < 0:
            slots[slot] = found
            places[found] = i
            seen[found] = -1
            found += 1
        item = slots[slot]
        if seen[item] != r:
            seen[item] = r
            members[length] = item
            spare[length] = i
            length += 1
    return length, found


@helper
def predictions_of(starts, ends, q):
    """Return the length of all lists of a query."""
    total = 0
    for r in range(starts.shape[1]):
        total += ends[q, r] - starts[q, r]
    return total


@helper
def table_size(count):
    """Return a power of two that is at least twice the count."""
    size = 2
    while size < 2 * count:
        size *= 2
    return size


@helper
def scale_of(scores, members, length, norm):
    """Return what is subtracted from the confidences of a list, and what they are divided by.

    The divisor is 1 if all are equal. It is not finite if the confidences are not, or are too far
    apart or too close for a float64, or if none is positive and the largest divides them.
    """
    if length == 0 or norm == AS_IS or norm == RANK or norm == RECIPROCAL or norm >= BORDA:
        return 0.0, 1.0
    low = high = scores[members[0]]
    for i in range(1, length):
        low = min(low, scores[members[i]])
        high = max(high, scores[members[i]])
    if not np.isfinite(high - low):
        return low, np.inf
    if norm == MAX:
        return 0.0, high if high > 0.0 else np.inf
    if high == low:
        return low, 1.0
    if norm == MIN_MAX or norm == INVERTED:
        return (low, high - low) if norm == MIN_MAX else (high, low - high)
    if norm == TOTAL:
        total = 0.0
        for i in range(length):
            total += scores[members[i]] - low
        return low, total
    # The mean is taken from the lowest, and squares from 0 to 1: none is lost or overflows.
    width = high - low
    mean = 0.0
    for i in range(length):
        mean += (scores[members[i]] - low) / width
    mean /= length
    squares = 0.0
    for i in range(length):
        apart = (scores[members[i]] - low) / width - mean
        squares += apart * apart  # a power has other bits in plain Python
    deviation = width * np.sqrt(squares / length)
    return low + mean * width, deviation if deviation > 0.0 else np.inf


@helper
def part_of(scores, place, rank, length, found, norm, low, scale, k):
    """Return what the item at a rank, from 0, gets from a list; `found` items are in any list."""
    if norm == RECIPROCAL:
        return 1.0 / (k + rank + 1)
    if norm == RANK:
        return 1.0 - rank / length
    if norm == BORDA:
        return 1.0 - rank / found
    if norm == POINTS:
        return float(found - rank)
    if norm == SQUARE:
        return 1.0 / (float(rank + 1) * float(rank + 1))
    if norm == PLACE or norm == GEOMETRIC:
        return float(rank)
    if norm == AS_IS:
        return scores[place]
    return (scores[place] - low) / scale


@helper
def absent_part(length, found, norm, absent):
    """Return what an item gets from a list that lacks it; NaN if that is nothing."""
    if norm == BORDA:  # what the list leaves over is shared
        return 0.5 - (length - 1) / (2.0 * max(1, found))
    if norm == POINTS:
        return (found - length + 1) / 2.0
    return np.inf if norm == PLACE else absent


@helper
def rate_of(rates, rank, length, trained, parameter, absent, part):
    """Return the rate of a rank, from 0; `parameter` is how many segments, or the window."""
    if trained == BY_SEGMENT:
        return rates[rank // -(-length // int(parameter))]
    if trained == BY_WINDOW:
        start, end = max(0, rank - int(parameter)), min(length, rank + int(parameter) + 1)
        total = 0.0
        for i in range(start, min(end, len(rates))):
            total += rates[i]
        return total / (end - start)
    rate = rates[rank] if rank < len(rates) else 0.0 if np.isnan(absent) else absent
    return rate * (part + 1.0) if trained == TIMES_SCORE else rate


@helper
def combined(parts, count, method, factors, mass):
    """Return the score of an item from what it gets from `count` lists; sorts these numbers.

    They are added in ascending order, so that the order of the lists changes no bit.
    """
    if method == VOTES:
        return 0.0
    for i in range(1, count):
        part = parts[i]
        j = i
        while j > 0 and parts[j - 1] > part:
            parts[j] = parts[j - 1]
            j -= 1
        parts[j] = part
    if method == LEAST:
        return parts[0]
    if method == MOST:
        return parts[count - 1]
    if method == MEDIAN:
        return (parts[(count - 1) // 2] + parts[count // 2]) / 2.0
    total = 0.0
    for i in range(count):
        total += parts[i]
    if method == TIMES_FACTOR:
        return total * factors[count]
    if method == TIMES_WEIGHTS:
        return total * mass
    return total / count if method == MEAN else total


@helper
def sort_fused(order, spare, count, fused, places, parts, weights, keys, first, last, data, kind):
    """Sort items by falling score, and equal ones by ascending id: chunks first, then merged."""
    for start in range(0, count, SMALL):
        for i in range(start + 1, min(count, start + SMALL)):
            item = order[i]
            j = i
            while j > start and precedes(
                item, order[j - 1], fused, places, parts, weights, keys, first, last, data, kind
            ):
                order[j] = order[j - 1]
                j -= 1
            order[j] = item
    width = SMALL
    while width < count:
        for start in range(0, count, 2 * width):
            middle, end = min(count, start + width), min(count, start + 2 * width)
            i, j = start, middle
            for target in range(start, end):
                right = i == middle or (
                    j < end
                    and precedes(
                        order[j], order[i], fused, places, parts, weights,
                        keys, first, last, data, kind,
                    )
                )  # fmt: skip
                spare[target] = order[j] if right else order[i]
                i, j = i + (not right), j + right
        for i in range(count):  # numba compiles the copy of a slice for two seconds
            order[i] = spare[i]
        width *= 2


@helper
def precedes(a, b, fused, places, parts, weights, keys, first, last, data, kind):
    """Return whether item a stands before item b, which is another, in the fused list.

    If their scores are NaN, lists vote by the places of items in `parts`.
    """
    if np.isnan(fused[a]):
        ahead = behind = 0.0
        for r in range(len(weights)):
            ahead += weights[r] if parts[a, r] < parts[b, r] else 0.0
            behind += weights[r] if parts[a, r] > parts[b, r] else 0.0
        if ahead != behind:
            return ahead > behind
    elif fused[a] != fused[b]:
        return fused[a] > fused[b]
    i, j = places[a], places[b]
    if kind != STRING:
        top = ONE << TOP_BIT if kind == SIGNED else np.uint64(0)
        return keys[i] ^ top < keys[j] ^ top
    for position in range(min(last[i] - first[i], last[j] - first[j])):
        one, other = data[first[i] + position], data[first[j] + position]
        if one != other:
            return one < other
    return last[i] - first[i] < last[j] - first[j]
