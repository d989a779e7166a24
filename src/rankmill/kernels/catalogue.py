"""What lists are made of: kernels of the rows that items have in training or in the catalogue.

`rows` are those of the items, -1 for an item that is not there. Items marked in `repeat` do not
count; it is empty if there is none. `group_offsets` and `codes` are the groups of each row, such as
genres, ascending. Each group of an item has `units`[row] of it, an integer, so that sums do not
depend on their order.
"""

import numpy as np

from rankmill.kernels.identity import AHEAD, STRING, home, same_bytes, shift_of
from rankmill.kernels.intrinsics import prefetch
from rankmill.kernels.jit import helper, kernel
from rankmill.kernels.order import sort_values

# Exact sums have digits of so many bits.
HALF = 29
BELOW = (1 << HALF) - 1


@kernel
def sum_values(offsets, rows, repeat, k, values, other, mean, out):
    """Write the sum of the values of the first k items of each list, or their mean if `mean`."""
    some = len(repeat) > 0
    for q in range(len(out)):
        total = 0.0
        count = 0
        for i in range(offsets[q], min(offsets[q + 1], offsets[q] + k)):
            if not (some and repeat[i]):
                total += values[rows[i]] if rows[i] >= 0 else other
                count += 1
        out[q] = total / max(1, count) if mean else total


@kernel
def sum_largest(starts, ends, rows, k, values, other, discounts, out):
    """Write the sum of the values of all labels over discounts, the largest at the first rank."""
    for q in range(len(out)):
        worths = np.empty(ends[q] - starts[q])
        for place in range(len(worths)):
            row = rows[starts[q] + place]
            worths[place] = values[row] if row >= 0 else other
        sort_values(worths)
        out[q] = 0.0
        for rank in range(1, min(k, len(worths)) + 1):
            out[q] += worths[len(worths) - rank] / discounts[rank]


@kernel
def count_groups(offsets, rows, repeat, k, groups, other, out_counts):
    """Count the first k items of all lists by the group of each."""
    some = len(repeat) > 0
    for q in range(len(offsets) - 1):
        for i in range(offsets[q], min(offsets[q + 1], offsets[q] + k)):
            if not (some and repeat[i]):
                out_counts[groups[rows[i]] if rows[i] >= 0 else other] += 1


# ------------------------------------------------------------------ groups of items


@helper
def add_groups(row, group_offsets, codes, units, out):
    """Add the shares of an item to those of its groups; return what was added."""
    if row < 0:
        return 0
    start, end = group_offsets[row], group_offsets[row + 1]
    for i in range(start, end):
        out[codes[i]] += units[row]
    return units[row] * (end - start)


@kernel
def sum_exposure(offsets, rows, repeat, k, worths, group_offsets, codes, units, out_sums):
    """Add the places within k of each group, and what they are worth, to int64[groups, 4].

    Column 0 counts the shares of places. The others add up the shares times the worth of the rank,
    in units of 1, 2**-29 and 2**-58: exactly, and columns 2 and 3 below 2**29. `worths` are
    int64[ranks, 2]: the worth of each rank, at most 1, in units of 2**-29, and the rest in 2**-58.
    """
    some = len(repeat) > 0
    for q in range(len(offsets) - 1):
        for i in range(offsets[q], min(offsets[q + 1], offsets[q] + k)):
            row = rows[i]
            if row < 0 or (some and repeat[i]):
                continue
            upper, lower = worths[i - offsets[q], 0], worths[i - offsets[q], 1]
            share = units[row]
            for place in range(group_offsets[row], group_offsets[row + 1]):
                sums = out_sums[codes[place]]
                low = sums[3] + lower * share
                middle = sums[2] + upper * share + (low >> HALF)
                sums[0] += share
                sums[1] += middle >> HALF
                sums[2] = middle & BELOW
                sums[3] = low & BELOW


@kernel
def count_shares(rows, group_offsets, codes, units, out_counts):
    """Add the shares of items to those of their groups."""
    for i in range(len(rows)):
        add_groups(rows[i], group_offsets, codes, units, out_counts)


@kernel
def compare_shares(
    starts,
    ends,
    had,
    offsets,
    rows,
    repeat,
    k,
    group_offsets,
    codes,
    units,
    many,
    alpha,
    out_ends,
    out_shares,
    out_ratios,
):
    """Write p and p / ((1 - alpha) q + alpha p) of each group of share p among what a query had.

    q is its share among the first k of the list. Query q had the rows `had[starts[q]:ends[q]]`.
    Nothing is written where one of them has no groups; `out_ends` is where each list ends.
    """
    some = len(repeat) > 0
    written = 0
    before, now = np.zeros(many, np.int64), np.zeros(many, np.int64)
    touched = np.empty(many, np.int64)
    for q in range(len(offsets) - 1):
        total, shown, count = 0, 0, 0
        for i in range(starts[q], ends[q]):
            if had[i] >= 0:
                for place in range(group_offsets[had[i]], group_offsets[had[i] + 1]):
                    if before[codes[place]] == 0:
                        touched[count] = codes[place]
                        count += 1
                    before[codes[place]] += units[had[i]]
                    total += units[had[i]]
        end = min(offsets[q + 1], offsets[q] + k)
        for i in range(offsets[q], end):
            if not (some and repeat[i]):
                shown += add_groups(rows[i], group_offsets, codes, units, now)
        if total > 0 and shown > 0:
            sort_values(touched[:count])  # one order, whatever that of the items
            for i in range(count):
                group = touched[i]
                p = before[group] / total
                out_shares[written] = p
                out_ratios[written] = p / ((1 - alpha) * (now[group] / shown) + alpha * p)
                written += 1
        for i in range(count):
            before[touched[i]] = 0
        for i in range(offsets[q], end):
            if rows[i] >= 0:
                for place in range(group_offsets[rows[i]], group_offsets[rows[i] + 1]):
                    now[codes[place]] = 0
        out_ends[q] = written


@helper
def common_groups(one, other, group_offsets, codes):
    """Return how many groups two items have in common."""
    a, b = group_offsets[one], group_offsets[other]
    last, final = group_offsets[one + 1], group_offsets[other + 1]
    common = 0
    while a < last and b < final:
        if codes[a] == codes[b]:
            common += 1
            a += 1
            b += 1
        elif codes[a] < codes[b]:
            a += 1
        else:
            b += 1
    return common


@helper
def group_count(row, group_offsets):
    """Return how many groups an item has."""
    return group_offsets[row + 1] - group_offsets[row] if row >= 0 else 0


@kernel
def mean_distance(offsets, rows, repeat, k, group_offsets, codes, out):
    """Write the mean over the pairs of items with groups, within k, of their Jaccard distance.

    NaN where there is no pair.
    """
    some = len(repeat) > 0
    for q in range(len(out)):
        total = 0.0
        pairs = 0
        end = min(offsets[q + 1], offsets[q] + k)
        for i in range(offsets[q], end):
            size = group_count(rows[i], group_offsets)
            if size == 0 or (some and repeat[i]):
                continue
            for j in range(i + 1, end):
                other = group_count(rows[j], group_offsets)
                if other > 0 and not (some and repeat[j]):
                    common = common_groups(rows[i], rows[j], group_offsets, codes)
                    total += 1 - common / (size + other - common)
                    pairs += 1
        out[q] = total / pairs if pairs > 0 else np.nan


@kernel
def mean_distance_to_history(
    starts, ends, had, offsets, rows, repeat, k, group_offsets, codes, most, out
):
    """Write the mean Jaccard distance over the pairs of an item of a list and one its query had.

    Query q had the rows `had[starts[q]:ends[q]]`, in any order: common groups are added up as
    integers, by how many groups any of the two has, which are 2 * `most` at most. NaN where there
    is no pair.
    """
    some = len(repeat) > 0
    common = np.empty(2 * most + 1, np.int64)
    for q in range(len(out)):
        common[:] = 0
        pairs = 0
        for i in range(offsets[q], min(offsets[q + 1], offsets[q] + k)):
            size = group_count(rows[i], group_offsets)
            if size == 0 or (some and repeat[i]):
                continue
            for j in range(starts[q], ends[q]):
                other = group_count(had[j], group_offsets)
                if other > 0:
                    both = common_groups(rows[i], had[j], group_offsets, codes)
                    common[size + other - both] += both
                    pairs += 1
        total = 0.0
        for size in range(1, len(common)):
            total += common[size] / size
        out[q] = 1 - total / pairs if pairs > 0 else np.nan


@kernel
def count_direct(offsets, keys, ranks, repeat, cutoffs, lowest, out_counts):
    """Count integers in int64[n, b]; the row of one is its key - `lowest`."""
    given = len(ranks) > 0
    some = len(repeat) > 0
    end = cutoffs[-1]
    columns = len(cutoffs)
    last = len(keys) - 1
    for q in range(len(offsets) - 1):
        column = 0
        for i in range(offsets[q], offsets[q + 1]):
            rank = ranks[i] if given else i - offsets[q] + 1
            if rank > end:
                break
            while rank > cutoffs[column]:
                column += 1
            prefetch(out_counts, np.int64(keys[min(last, i + AHEAD)] - lowest) * columns)
            if not (some and repeat[i]):
                out_counts[np.int64(keys[i] - lowest), column] += 1


@helper
def same_text(data, starts, ends, ids_data, ids_starts, ids_ends, places, before, row, i):
    """Return whether the item of a row, which is new from row `before` on, is id i."""
    if row < before:
        return same_bytes(data, starts[row], ends[row], ids_data, ids_starts[i], ids_ends[i])
    j = places[row - before]
    return same_bytes(ids_data, ids_starts[j], ids_ends[j], ids_data, ids_starts[i], ids_ends[i])


@kernel
def count_hashed(
    first, offsets, ids, ranks, repeat, cutoffs, seed, starts, ends, data, count, out_table
):
    """Count any items, from list `first` on, by a table of all that were found so far.

    The table is the slots, the keys, the counts int64[n, b], and the places in `ids` of the new
    items. It holds `count` items already, whose bytes are in `data`. Returns the list at which it
    is half full, or the number of lists, and how many items it holds then.
    """
    slots, known, counts, places = out_table
    given = len(ranks) > 0
    some = len(repeat) > 0
    mask = len(slots) - 1
    shift = shift_of(len(slots))
    text = ids.kind == STRING
    keys = ids.keys
    mine = data, starts, ends
    theirs = ids.data, ids.starts, ids.ends
    columns = len(cutoffs)
    last = len(keys) - 1
    before = count
    for q in range(first, len(offsets) - 1):
        start, end = offsets[q], offsets[q + 1]
        if count + end - start > len(known):
            return q, count
        i = start
        for column in range(columns):
            while i < end and (ranks[i] if given else i - start + 1) <= cutoffs[column]:
                prefetch(slots, home(keys[min(last, i + 2 * AHEAD)], seed, shift))
                row = slots[home(keys[min(last, i + AHEAD)], seed, shift)]
                prefetch(known, max(0, row))
                prefetch(counts, max(0, row) * columns)
                slot = home(keys[i], seed, shift)
                row = slots[slot]
                while row >= 0 and (
                    known[np.uint64(row)] != keys[i]
                    or (text and not same_text(*mine, *theirs, places, before, row, i))
                ):
                    slot = (slot + 1) & mask
                    row = slots[slot]
                again = some and repeat[i]
                if row < 0 and not again:
                    row = count
                    slots[slot] = row
                    known[row] = keys[i]
                    places[row - before] = i
                    count += 1
                if not again:  # unsigned indices need no test for those below 0
                    counts[np.uint64(row), np.uint64(column)] += 1
                i += 1
    return len(offsets) - 1, count


@kernel
def sum_rows(groups, counts, out_counts):
    """Add each row of counts to the row of its group."""
    for row in range(len(groups)):
        for column in range(counts.shape[1]):
            out_counts[groups[row], column] += counts[row, column]
