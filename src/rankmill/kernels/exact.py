"""Exact sums of float64 values, also times weights: integers by exponent, which never round."""

import numpy as np

from rankmill.kernels.jit import helper, kernel

MANTISSA = (1 << 52) - 1
EXPONENT = 0x7FF
LOW_WORD = (1 << 32) - 1
# Integers of products are held in limbs of 27 bits: a product of two limbs leaves room for sums.
LIMB = 27
LOW = (1 << LIMB) - 1


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
        upper = mantissa >> LIMB
        lower = mantissa & LOW
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


@helper
def integer_of(bits):
    """Return m and s of the float64 m * 2**(s - 1074) with these int64 bits, without its sign."""
    exponent = (bits >> 52) & EXPONENT
    mantissa = bits & MANTISSA
    if exponent > 0:
        return mantissa | (MANTISSA + 1), exponent - 1
    return mantissa, exponent


@kernel
def accumulate_weighted(values, weights, out_bins):
    """Add w v, w**2 v and w**2 v**2 for values v and their weights w to int64[6136, 18] bins.

    Both are given as the int64 bits of float64; weights are not negative. If w is m * 2**(s - 1074)
    and v is n * 2**(t - 1074), the integer m n is added to columns 0 to 3 of bin s + t, its square
    to columns 10 to 17 of the same bin, and m m n to columns 4 to 9 of bin 2 s + t. A limb counts
    2**27 times the one before it. There is room for 2**33 additions.
    """
    for i in range(len(values)):
        m, s = integer_of(weights[i])
        n, t = integer_of(values[i])
        if m == 0 or n == 0:
            continue
        sign = -1 if values[i] < 0 else 1
        m0, m1 = m & LOW, m >> LIMB
        n0, n1 = n & LOW, n >> LIMB

        low = m0 * n0
        middle = m0 * n1 + m1 * n0 + (low >> LIMB)
        high = m1 * n1 + (middle >> LIMB)
        p0, p1, p2, p3 = low & LOW, middle & LOW, high & LOW, high >> LIMB
        sums = out_bins[s + t]
        sums[0] += sign * p0
        sums[1] += sign * p1
        sums[2] += sign * p2
        sums[3] += sign * p3

        # The digits of (m n)**2 in base 2**27, before they are carried.
        d0 = p0 * p0
        d1 = 2 * p0 * p1
        d2 = 2 * p0 * p2 + p1 * p1
        d3 = 2 * (p0 * p3 + p1 * p2)
        d4 = 2 * p1 * p3 + p2 * p2
        d5 = 2 * p2 * p3
        d6 = p3 * p3
        sums[10] += d0 & LOW
        sums[11] += (d0 >> LIMB) + (d1 & LOW)
        sums[12] += (d1 >> LIMB) + (d2 & LOW)
        sums[13] += (d2 >> LIMB) + (d3 & LOW)
        sums[14] += (d3 >> LIMB) + (d4 & LOW)
        sums[15] += (d4 >> LIMB) + (d5 & LOW)
        sums[16] += (d5 >> LIMB) + (d6 & LOW)
        sums[17] += d6 >> LIMB

        # The same of m (m n).
        d0 = p0 * m0
        d1 = p1 * m0 + p0 * m1
        d2 = p2 * m0 + p1 * m1
        d3 = p3 * m0 + p2 * m1
        d4 = p3 * m1
        sums = out_bins[2 * s + t]
        sums[4] += sign * (d0 & LOW)
        sums[5] += sign * ((d0 >> LIMB) + (d1 & LOW))
        sums[6] += sign * ((d1 >> LIMB) + (d2 & LOW))
        sums[7] += sign * ((d2 >> LIMB) + (d3 & LOW))
        sums[8] += sign * ((d3 >> LIMB) + (d4 & LOW))
        sums[9] += sign * (d4 >> LIMB)
