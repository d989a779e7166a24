"""GAP from counts: where confidences fall among the correct ones, and the sum over ties."""

from rankmill.kernels.jit import helper, kernel


@kernel
def correct_confidences(offsets, hit_offsets, ranks, limit, confidence, out_correct):
    """The confidences of the hits up to rank `limit`; returns how many there are."""
    count = 0
    for q in range(len(offsets) - 1):
        for h in range(hit_offsets[q], hit_offsets[q + 1]):
            if ranks[h] > limit:
                break
            out_correct[count] = confidence[offsets[q] + ranks[h] - 1]
            count += 1
    return count


@kernel
def take_correct(confidence, correct, out_taken):
    """Write the confidences of the correct ones; returns how many. Room for one more is needed."""
    count = 0
    for i in range(len(confidence)):
        out_taken[count] = confidence[i]  # written over by the next one, if this one is wrong
        count += correct[i]
    return count


@helper
def skip_below(confidences, place, bound):
    """The first place from `place` on whose confidence is not below a bound, in strides."""
    count = len(confidences)
    while place + 64 < count and confidences[place + 63] < bound:
        place += 64
    while place < count and confidences[place] < bound:
        place += 1
    return place


@helper
def skip_equal(confidences, place, value):
    """The first place from `place` on whose confidence is another one."""
    count = len(confidences)
    while place + 64 < count and confidences[place + 63] == value:
        place += 64
    while place < count and confidences[place] == value:
        place += 1
    return place


@kernel
def count_among(values, confidences, out_at, out_above):
    """Count sorted confidences at and above the distinct correct ones.

    values and confidences ascend. Adds to out_at[i] the number equal to values[i], and to
    out_above[i] the number between values[i] and values[i + 1]. Those below values[0] do not
    matter.
    """
    place = skip_below(confidences, 0, values[0]) if len(values) else 0
    for i in range(len(values)):
        after = skip_equal(confidences, place, values[i])
        out_at[i] += after - place
        place = len(confidences)
        if i + 1 < len(values):
            place = skip_below(confidences, after, values[i + 1])
        out_above[i] += place - after


@helper
def add(total, lost, term):
    """The compensated sum (Kahan) of a total and a term, and what rounding lost of it."""
    term -= lost
    new = total + term
    return new, (new - total) - term


@kernel
def sum_ties(right, at, above, correct_before, before, out_sums):
    """The sum over correct predictions of the precision at their place, for four ways with ties.

    The arrays ascend by confidence, one entry a distinct confidence of correct predictions: how
    many are correct, how many there are at it, and how many between it and the next. Predictions of
    higher confidence, `before` in all and `correct_before` correct ones, come first. Writes the
    sum over predictions that are not tied to out_sums[0], and over those that are the expected
    value over all their orders, the worst and the best case, and that of one threshold a tie to
    out_sums[1:5]. Returns the number of predictions in ties that hold a correct one.

    In a group of c correct among t tied predictions, with A correct and N predictions before it,
    place j is correct with chance c / t, and then (j - 1) (c - 1) / (t - 1) correct ones are
    expected before it within the group. Sums are compensated (Kahan).
    """
    tied = 0
    alone = expected = worst = best = threshold = 0.0
    alone_lost = expected_lost = worst_lost = best_lost = threshold_lost = 0.0
    for i in range(len(right) - 1, -1, -1):
        before += above[i]
        c = right[i]
        t = at[i]
        if t == 1:  # the usual case: one division instead of five
            alone, alone_lost = add(alone, alone_lost, (correct_before + 1) / (before + 1))
            correct_before += 1
            before += 1
            continue
        tied += t
        share = c / t
        growth = (c - 1) / (t - 1)
        for j in range(1, t + 1):
            chance = share * (correct_before + 1 + (j - 1) * growth) / (before + j)
            expected, expected_lost = add(expected, expected_lost, chance)
        for j in range(1, c + 1):
            last = (correct_before + j) / (before + t - c + j)
            worst, worst_lost = add(worst, worst_lost, last)
            first = (correct_before + j) / (before + j)
            best, best_lost = add(best, best_lost, first)
        correct_before += c
        before += t
        threshold, threshold_lost = add(threshold, threshold_lost, c * (correct_before / before))
    out_sums[0] = alone
    out_sums[1] = expected
    out_sums[2] = worst
    out_sums[3] = best
    out_sums[4] = threshold
    return tied
