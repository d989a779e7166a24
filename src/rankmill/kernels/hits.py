"""Matching lists of items with labels, and finding the repeats in a list."""

import numpy as np

from rankmill.kernels.identity import AHEAD, MULTIPLIER, ONE, STRING, TOP_BIT, home, same, shift_of
from rankmill.kernels.intrinsics import LANES, count_ones, equal_among, first_bit, prefetch
from rankmill.kernels.jit import helper, kernel

# Lists up to LANES compare all ids at once. Those up to this length find equal ids by a prefix of
# their keys, longer ones by hash tables.
SMALL = 128
PREFIXES = 1024
PREFIX_SHIFT = np.uint64(54)


@helper
def table_for(length):
    """Return an empty hash table that is at most half full with `length` ids."""
    capacity = 64
    while capacity < 2 * length:
        capacity *= 2
    return np.full(capacity, -1, np.int64)


@helper
def first_bits(count):
    """Return a word whose first `count` bits are set, of 64."""
    return (ONE << np.uint64(count)) - ONE


@helper
def repeats_among(keys, start, end):
    """Return a bit for each key of a short list that repeats an earlier one."""
    repeats = np.uint64(0)
    for i in range(start, end):
        equal = equal_among(keys, start, keys[i])
        repeats |= equal & (equal - ONE)
    return repeats & first_bits(end - start)


@helper
def stands_before(keys, text, ids, start, i):
    """Return whether an id equal to id i is at an earlier place from `start` on."""
    for j in range(start, i):
        if keys[j] == keys[i] and (not text or same(ids, j, ids, i)):
            return True
    return False


@kernel
def mark_repeats(offsets, ids, seed, out_repeat):
    """Mark each id that repeats an earlier one of its list. Returns the number of repeats."""
    total = 0
    text = ids.kind == STRING
    keys = ids.keys
    last = np.full(PREFIXES, -1, np.int64)  # the last place of each key prefix
    for q in range(len(offsets) - 1):
        start = offsets[q]
        end = offsets[q + 1]
        if end - start <= SMALL:
            for i in range(start, end):
                prefix = (keys[i] * MULTIPLIER) >> PREFIX_SHIFT
                out_repeat[i] = last[prefix] >= start and stands_before(keys, text, ids, start, i)
                total += out_repeat[i]
                last[prefix] = i
        else:
            slots = table_for(end - start)
            mask = len(slots) - 1
            shift = shift_of(len(slots))
            for i in range(start, end):
                slot = home(keys[i], seed, shift)
                while slots[slot] >= 0:
                    other = slots[slot]
                    if keys[i] == keys[other] and (not text or same(ids, i, ids, other)):
                        break
                    slot = (slot + 1) & mask
                out_repeat[i] = slots[slot] >= 0
                total += out_repeat[i]
                if slots[slot] < 0:
                    slots[slot] = i
    return total


@kernel
def match_lists(
    label_starts,
    label_ends,
    labels,
    offsets,
    items,
    limit,
    repeats_count,
    needs_repeats,
    seed,
    out_offsets,
    out_ranks,
    out_labels,
):
    """Find the hits of each list of items, and count the items that repeat an earlier one.

    The labels of list q are those from label_starts[q] to label_ends[q]; they hold no repeats. An
    item is a hit if it is a label of its list and among the first `limit` items; a repeated item
    is a hit only if `repeats_count`. Writes the rank (from 1) and the index of the label of each
    hit, by rank within a list, and the offsets of each list's hits. Returns the number of hits and
    the number of repeats, which may be too low unless `needs_repeats`.
    """
    hits = repeats = 0
    text = items.kind == STRING
    mixed = labels.kind != items.kind
    label_keys, text_starts, text_ends, data = labels.keys, labels.starts, labels.ends, labels.data
    item_keys = items.keys
    # The last place of each key prefix, among the labels matched so far and among the items. Places
    # only grow, so an entry from an earlier list means that the current list has no equal key.
    label_at = np.full(PREFIXES, -1, np.int64)
    item_at = np.full(PREFIXES, -1, np.int64)
    before = 0  # the number of labels of all earlier lists
    count = len(offsets) - 1
    out_offsets[0] = 0
    for q in range(count):
        if q + AHEAD < count:
            prefetch(label_keys, label_starts[q + AHEAD])
            prefetch(label_keys, label_ends[q + AHEAD] - 1)  # often in the next cache line
        if text and q + 2 * AHEAD < count and len(label_keys) > 0:
            prefetch(text_starts, label_starts[q + 2 * AHEAD])
            prefetch(text_ends, label_starts[q + 2 * AHEAD])
            prefetch(data, text_starts[min(label_starts[q + AHEAD], len(label_keys) - 1)])
        start = offsets[q]
        end = offsets[q + 1]
        first = label_starts[q]
        last = label_ends[q]
        if end - start > SMALL or last - first > SMALL:
            more = _match_long_list(
                labels,
                first,
                last,
                items,
                start,
                end,
                limit,
                repeats_count,
                seed,
                hits,
                out_ranks,
                out_labels,
            )
            hits += more[0]
            repeats += more[1]
            out_offsets[q + 1] = hits
            continue
        short = max(end - start, last - first) <= LANES and not mixed
        if short and max(start - len(item_keys), first - len(label_keys)) <= -LANES:
            again = repeats_among(item_keys, start, end) if needs_repeats else np.uint64(0)
            met = np.uint64(0)
            for label in range(first, last):
                equal = equal_among(item_keys, start, label_keys[label])
                met |= equal if repeats_count else equal & (~equal + ONE)
            met &= first_bits(min(limit, end - start))
            same_text = not text or again == 0
            while met != 0 and same_text:
                i = start + first_bit(met)
                alike = equal_among(label_keys, first, item_keys[i]) & first_bits(last - first)
                label = first + first_bit(alike)
                same_text = not text or (
                    alike & (alike - ONE) == 0 and same(labels, label, items, i)
                )
                out_ranks[hits] = i - start + 1
                out_labels[hits] = label
                hits += 1
                met &= met - ONE
            if same_text:  # else two strings may have the same key
                repeats += np.int64(count_ones(again))
                out_offsets[q + 1] = hits
                continue
            hits = out_offsets[q]
        crowded = False  # whether two labels of the list have the same prefix
        shift = first - before
        for label in range(first, last):
            prefix = (label_keys[label] * MULTIPLIER) >> PREFIX_SHIFT
            crowded |= label_at[prefix] >= before
            label_at[prefix] = label - shift
        for i in range(start, end):
            key = item_keys[i]
            prefix = (key * MULTIPLIER) >> PREFIX_SHIFT
            if item_at[prefix] >= start and stands_before(item_keys, text, items, start, i):
                repeats += 1
                if not repeats_count:
                    continue
            item_at[prefix] = i
            if label_at[prefix] < before or i - start >= limit:
                continue
            if mixed and key >> TOP_BIT != 0:  # 2**64 - 1 and -1 have the same bits, but differ
                continue
            label = label_at[prefix] + shift
            if label_keys[label] != key or (text and not same(labels, label, items, i)):
                label = last if not crowded else first
                while label < last and not (
                    label_keys[label] == key and (not text or same(labels, label, items, i))
                ):
                    label += 1
            if label < last:
                out_ranks[hits] = i - start + 1
                out_labels[hits] = label
                hits += 1
        before += last - first
        out_offsets[q + 1] = hits
    return hits, repeats


@kernel
def count_last(offsets, ids, wanted):
    """Return how many lists of several ids end in the only id of `wanted`, of the same kind."""
    text = ids.kind == STRING
    keys = ids.keys
    count = len(offsets) - 1
    found = 0
    for q in range(count):
        if q + AHEAD < count:
            prefetch(keys, offsets[q + AHEAD + 1] - 1)
        last = offsets[q + 1] - 1
        if last > offsets[q]:
            found += same(ids, last, wanted, 0) if text else keys[last] == wanted.keys[0]
    return found


@helper
def _match_long_list(
    labels,
    label_start,
    label_end,
    items,
    start,
    end,
    limit,
    repeats_count,
    seed,
    first,
    out_ranks,
    out_labels,
):
    """Match one long list by hash tables, as `match_lists` does; write its hits from `first` on."""
    text = items.kind == STRING
    mixed = labels.kind != items.kind
    label_keys = labels.keys
    item_keys = items.keys
    wanted = table_for(label_end - label_start)
    wanted_mask = len(wanted) - 1
    wanted_shift = shift_of(len(wanted))
    for label in range(label_start, label_end):
        slot = home(label_keys[label], seed, wanted_shift)
        while wanted[slot] >= 0:
            slot = (slot + 1) & wanted_mask
        wanted[slot] = label
    seen = table_for(end - start)
    seen_mask = len(seen) - 1
    seen_shift = shift_of(len(seen))
    hits = repeats = 0
    for i in range(start, end):
        key = item_keys[i]
        slot = home(key, seed, seen_shift)
        while seen[slot] >= 0:
            other = seen[slot]
            if item_keys[other] == key and (not text or same(items, other, items, i)):
                break
            slot = (slot + 1) & seen_mask
        if seen[slot] >= 0:
            repeats += 1
            if not repeats_count:
                continue
        seen[slot] = i
        if i - start >= limit or (mixed and key >> TOP_BIT != 0):
            continue
        slot = home(key, seed, wanted_shift)
        while wanted[slot] >= 0:
            label = wanted[slot]
            if label_keys[label] == key and (not text or same(labels, label, items, i)):
                out_ranks[first + hits] = i - start + 1
                out_labels[first + hits] = label
                hits += 1
                break
            slot = (slot + 1) & wanted_mask
    return hits, repeats
