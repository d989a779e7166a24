"""GAP from counts: where wrong confidences fall among correct ones, and the sum over ties."""

from rankmill.kernels.jit import helper, kernel


@kernel
def split(offsets, hit_offsets, ranks, limit, confidence, out_right, out_wrong):
    """Part the confidences of each list's first `limit` predictions by whether they are hits.

    Hits and their ranks are those of rankmill.hits.Hits. Returns how many are wrong; the right
    ones are as many as hits within the limit.
    """
    right = 0
    wrong = 0
    for q in range(len(offsets) - 1):
        position = offsets[q]
        end = min(offsets[q + 1], position + limit)
        for h in range(hit_offsets[q], hit_offsets[q + 1]):
            if ranks[h] > limit:
                break
            hit = offsets[q] + ranks[h] - 1
            while position < hit:
                out_wrong[wrong] = confidence[position]
                wrong += 1
                position += 1
            out_right[right] = confidence[hit]
            right += 1
            position += 1
        while position < end:
            out_wrong[wrong] = confidence[position]
            wrong += 1
            position += 1
    return wrong


@helper
def gallop(values, start, bound, beyond_equal):
    """The first place from start on whose value is >= bound, or > bound if beyond_equal."""
    low = start - 1  # every value up to here is before the place
    step = 1
    count = len(values)
    while low + step < count and (
        values[low + step] < bound or (beyond_equal and values[low + step] == bound)
    ):
        low += step
        step *= 2
    high = min(count, low + step)
    while high - low > 1:
        middle = (low + high) // 2
        if values[middle] < bound or (beyond_equal and values[middle] == bound):
            low = middle
        else:
            high = middle
    return high


@kernel
def count_wrong(values, wrong, out_at, out_above):
    """Count sorted wrong confidences at and above the distinct correct ones.

    values and wrong ascend. Adds to out_at[i] the number equal to values[i], and to out_above[i]
    the number between values[i] and values[i + 1]. Those below values[0] do not matter.
    """
    place = 0
    for i in range(len(values)):
        first = gallop(wrong, place, values[i], False)
        if i > 0:
            out_above[i - 1] += first - place
        place = gallop(wrong, first, values[i], True)
        out_at[i] += place - first
    if len(values):
        out_above[len(values) - 1] += len(wrong) - place


@kernel
def sum_ties(right, wrong_at, wrong_above, out_sums):
    """The sum over correct predictions of the precision at their place, in three orders of ties.

    The three arrays ascend by confidence, one entry a distinct correct confidence. Writes the
    expected value over all orders of tied predictions, the worst and the best case into
    out_sums[0:3]. Returns the number of predictions in ties that hold a correct one.

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
