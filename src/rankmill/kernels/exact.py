"""Exact sums of float64 values. The sums are integers, one for each exponent, and never round."""

import numpy as np

from rankmill.kernels.jit import kernel

MANTISSA = (1 << 52) - 1
EXPONENT = 0x7FF
LOW_WORD = (1 << 32) - 1
LOW_HALF = (1 << 27) - 1


@kernel
def accumulate(bits, counts, out_bins):
    """Add values, given as the int64 bits of float64, and their squares to int64[2048, 8] bins.

    Value i is added counts[i] times. A value is m * 2**(max(e, 1) - 1075) with an integer m below
    2**53. Bin e holds the sum of m in columns 0 and 1. Columns 2 to 7 hold the sums of the three
    parts of m**2 = high * 2**54 + middle * 2**27 + low. Each sum is split into its low 32 bits and
    the rest, which leaves room for 2**31 additions. Returns the first bin that was added to, and
    the one behind the last.
    """
    first = len(out_bins)
    end = 0
    for i in range(len(bits)):
        if bits[i] == 0:
            continue
        exponent = (bits[i] >> 52) & EXPONENT
        mantissa = bits[i] & MANTISSA
        mantissa |= np.int64(exponent > 0) << 52
        upper = mantissa >> 27
        lower = mantissa & LOW_HALF
        high = upper * upper
        middle = 2 * upper * lower
        low = lower * lower
        if bits[i] < 0:
            mantissa = -mantissa
        sums = out_bins[exponent]
        sums[0] += (mantissa & LOW_WORD) * counts[i]
        sums[1] += (mantissa >> 32) * counts[i]
        sums[2] += (high & LOW_WORD) * counts[i]
        sums[3] += (high >> 32) * counts[i]
        sums[4] += (middle & LOW_WORD) * counts[i]
        sums[5] += (middle >> 32) * counts[i]
        sums[6] += (low & LOW_WORD) * counts[i]
        sums[7] += (low >> 32) * counts[i]
        first = min(first, exponent)
        end = max(end, exponent + 1)
    return first, end
