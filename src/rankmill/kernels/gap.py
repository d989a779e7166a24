"""GAP from counts: the place of all confidences among the correct ones, and the sum over ties."""

from rankmill.kernels.jit import helper, kernel


@kernel
def take_correct(confidence, correct, out_taken):
    """Write the confidences of correct predictions, with room for one more. Returns their count."""
    count = 0
    for i in range(len(confidence)):
        out_taken[count] = confidence[i]  # the next one overwrites this if the prediction is wrong
        count += correct[i]
    return count


@helper
def skip_to(confidences, place, bound, above):
    """Return the first place from `place` on whose confidence is `bound` or more; more if `above`.

    Those before it are skipped by steps of 64 first.
    """
    count = len(confidences)
    while place + 64 < count:
        last = confidences[place + 63]
        if not (last < bound or (above and last == bound)):
            break
        place += 64
    while place < count and (confidences[place] < bound or (above and confidences[place] == bound)):
        place += 1
    return place


@kernel
def count_among(values, confidences, out_at, out_above):
    """Count the sorted confidences at and between the distinct correct ones.

    values and confidences ascend. Adds the number of confidences equal to values[i] to out_at[i],
    and the number between values[i] and values[i + 1] to out_above[i]. Confidences below values[0]
    do not matter.
    """
    place = skip_to(confidences, 0, values[0], False) if len(values) else 0
    for i in range(len(values)):
        after = skip_to(confidences, place, values[i], True)
        out_at[i] += after - place
        place = len(confidences)
        if i + 1 < len(values):
            place = skip_to(confidences, after, values[i + 1], False)
        out_above[i] += place - after


@helper
def add(total, lost, term):
    """Add a term to a compensated sum (Kahan). Returns the new total and its rounding error."""
    term -= lost
    new = total + term
    return new, (new - total) - term


@kernel
def sum_ties(right, at, above, correct_before, before, out_sums):
    """Write the sum of the precisions at the correct predictions, for four ways to treat ties.

    The arrays ascend by confidence. Entry i belongs to the i-th distinct confidence of the correct
    predictions: right[i] correct ones have it, at[i] predictions in all have it, and above[i]
    predictions are between it and the next one. The predictions of higher confidence come first:
    `before` in all, of which `correct_before` are correct. The sum over predictions that are not
    tied goes to out_sums[0]. The sums over tied ones go to out_sums[1:5]: the expected value over
    all their orders, the worst case, the best case, and the value with one threshold a tie. Returns
    the number of predictions in ties that hold a correct one.

    Take a group of c correct among t tied predictions, after A correct among N predictions. Place j
    of the group is correct with probability c / t, and then (j - 1) (c - 1) / (t - 1) correct ones
    are expected before it within the group. Sums are compensated (Kahan).
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
