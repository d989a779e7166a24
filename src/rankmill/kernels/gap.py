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


@kernel
def split_groups(confidence, group, correct, out_places, out_all, out_correct_places, out_correct):
    """Write confidences group by group: all of them, and those of correct predictions.

    out_places[g] and out_correct_places[g] are where group g goes on; they move as it is written.
    """
    for i in range(len(confidence)):
        g = group[i]
        out_all[out_places[g]] = confidence[i]
        out_places[g] += 1
        if correct[i]:
            out_correct[out_correct_places[g]] = confidence[i]
            out_correct_places[g] += 1


@helper
def sum_of_line(first, growth, before, count):
    """Return the sum over j from 0 below `count` of (first + j growth) / (before + 1 + j).

    `first` is at least `growth`. Where the divisors are large, many terms are added at once: those
    of L neighbours around the divisor M, where d is how far one is from M, by the series of
    1 / (M + d) in d / M. That is at most 1/128, so that its eighth power does not matter any more.
    Odd powers of d add up to 0.
    """
    total = lost = 0.0
    j = 0
    while j < count:
        place = before + 1 + j
        length = min(count - j, place // 64)
        if length < 64:
            total, lost = add(total, lost, (first + j * growth) / place)
            j += 1
            continue
        size = float(length)
        square = size * size
        half = (size - 1.0) / 2.0
        middle = place + half
        q = 1.0 / (middle * middle)
        second = size * (square - 1.0) / 12.0
        fourth = second * (3.0 * square - 7.0) / 20.0
        sixth = second * (3.0 * square * square - 18.0 * square + 31.0) / 112.0
        more = q * (second + q * (fourth + q * sixth))
        term = ((first + (j + half) * growth) * (size + more) - growth * middle * more) / middle
        total, lost = add(total, lost, term)
        j += length
    return total


@helper
def sum_of_tie(c, t, correct_before, before, ties):
    """Return the sum of the precisions at the c correct ones of t tied predictions.

    `ties` is 0, 1, 2 or 3: expected value, worst case, best case, one threshold. See `sum_ties`.
    """
    if ties == 0:
        growth = (c - 1) / (t - 1)
        return c / t * sum_of_line(correct_before + 1.0, growth, before, t)
    if ties == 1:
        return sum_of_line(correct_before + 1.0, 1.0, before + t - c, c)
    if ties == 2:
        return sum_of_line(correct_before + 1.0, 1.0, before, c)
    return c * ((correct_before + c) / (before + t))


@kernel
def sum_without(values, right, at, above, own, own_correct, ties):
    """Return the sum of the precisions at the correct predictions, without those of a group.

    values, right, at and above are of all predictions, as in `sum_ties`. own and own_correct are
    the ascending confidences of the predictions of the group to leave out, and of its correct ones.
    `ties` is as in `sum_of_tie`. The time depends on the number of values and of the group's own
    predictions, and almost not on how many are tied. Terms are added by sixteens, which are added
    with compensation: compensating each term would take longer than all else.
    """
    total = lost = some = 0.0
    before = correct_before = 0
    place = len(own) - 1
    correct_place = len(own_correct) - 1
    for i in range(len(values) - 1, -1, -1):
        value = values[i]
        before += above[i]
        while place >= 0 and own[place] > value:
            before -= 1
            place -= 1
        t = at[i]
        while place >= 0 and own[place] == value:
            t -= 1
            place -= 1
        c = right[i]
        while correct_place >= 0 and own_correct[correct_place] == value:
            c -= 1
            correct_place -= 1
        if c > 0:
            if t == 1:
                term = (correct_before + 1) / (before + 1)
            else:
                term = sum_of_tie(c, t, correct_before, before, ties)
            some += term
        if i % 16 == 0:
            total, lost = add(total, lost, some)
            some = 0.0
        correct_before += c
        before += t
    return total
