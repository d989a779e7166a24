"""GAP from counts: where wrong confidences fall among correct ones, and the sum over ties."""

from rankmill.kernels.jit import kernel


@kernel
def count_wrong(values, wrong, out_at, out_above):
    """Count sorted wrong confidences at and above the distinct correct ones.

    values and wrong ascend. Adds to out_at[i] the number equal to values[i], and to out_above[i]
    the number between values[i] and values[i + 1]. Those below values[0] do not matter.
    """
    count = len(values)
    place = -1  # the last value that is <= the confidence at hand
    for i in range(len(wrong)):
        confidence = wrong[i]
        # Gallop, then halve: values[place] <= confidence < values[end] throughout.
        step = 1
        while place + step < count and values[place + step] <= confidence:
            place += step
            step *= 2
        end = min(count, place + step)
        while end - place > 1:
            middle = (place + end) // 2
            if values[middle] <= confidence:
                place = middle
            else:
                end = middle
        if place >= 0:
            if values[place] == confidence:
                out_at[place] += 1
            else:
                out_above[place] += 1


@kernel
def sum_ties(right, wrong_at, wrong_above, out_sums):
    """The sum over correct predictions of the precision at their place, in three orders of ties.

    The three arrays ascend by confidence, one entry a distinct correct confidence. Writes the
    expected value over all orders of tied predictions, the worst and the best case into
    out_sums[0:3]. Returns the number of predictions tied with a correct one.

    In a group of c correct among t tied predictions, with A correct and N predictions before it,
    place j is correct with chance c / t, and then (j - 1) (c - 1) / (t - 1) correct ones are
    expected before it within the group. Sums are compensated (Kahan).
    """
    correct_before = 0
    before = 0
    tied = 0
    expected = worst = best = 0.0
    expected_lost = worst_lost = best_lost = 0.0
    for i in range(len(right) - 1, -1, -1):
        before += wrong_above[i]
        c = right[i]
        t = c + wrong_at[i]
        if t > 1:
            tied += t
        share = c / t
        growth = (c - 1) / (t - 1) if t > 1 else 0.0
        for j in range(1, t + 1):
            term = share * (correct_before + 1 + (j - 1) * growth) / (before + j) - expected_lost
            total = expected + term
            expected_lost = (total - expected) - term
            expected = total
        for j in range(1, c + 1):
            term = (correct_before + j) / (before + wrong_at[i] + j) - worst_lost
            total = worst + term
            worst_lost = (total - worst) - term
            worst = total
            term = (correct_before + j) / (before + j) - best_lost
            total = best + term
            best_lost = (total - best) - term
            best = total
        correct_before += c
        before += t
    out_sums[0] = expected
    out_sums[1] = worst
    out_sums[2] = best
    return tied
