"""Numbers from their decimal digits in a block of bytes."""

import numpy as np

from rankmill.kernels.jit import kernel

MINUS, PLUS, POINT, ZERO, NINE, LETTER_E = 45, 43, 46, 48, 57, 101
MOST_SIGNED = np.uint64((1 << 63) - 1)
MOST_EXACT = np.uint64(1 << 53)
MOST_MANTISSA = np.uint64((1 << 63) // 10)


@kernel
def parse_floats(data, starts, ends, powers, out_values, out_slow):
    """Write the numbers that decimal strings hold, such as 12, -0.5 or 1e-3.

    A number of at most 2**53 with an exponent of ten within 22 is exact in two steps (Clinger, How
    to Read Floating Point Numbers Accurately, 1990); `powers` are the powers of ten from 0 to 22.
    Other strings are marked in `out_slow`. Returns how many these are.
    """
    slow = 0
    for i in range(len(starts)):
        position = starts[i]
        end = ends[i]
        negative = position < end and data[position] == MINUS
        if negative:
            position += 1
        mantissa = np.uint64(0)
        exponent = 0
        digits = 0
        point = False
        while position < end:
            byte = data[position]
            if ZERO <= byte <= NINE:
                if mantissa > MOST_MANTISSA:
                    break
                mantissa = mantissa * np.uint64(10) + np.uint64(byte - np.uint8(ZERO))
                exponent -= point
                digits += 1
            elif byte == POINT and not point:
                point = True
            else:
                break
            position += 1
        if digits > 0 and position + 1 < end and (data[position] | 32) == LETTER_E:
            position += 1
            minus = data[position] == MINUS
            if minus or data[position] == PLUS:
                position += 1
            power = 0
            digits = 0
            while position < end and ZERO <= data[position] <= NINE and digits < 4:
                power = power * 10 + np.int64(data[position] - np.uint8(ZERO))
                digits += 1
                position += 1
            exponent += -power if minus else power
        exact = mantissa <= MOST_EXACT and -22 <= exponent <= 22
        out_slow[i] = digits == 0 or position < end or not exact
        if out_slow[i]:
            slow += 1
            continue
        value = np.float64(mantissa)
        value = value / powers[-exponent] if exponent < 0 else value * powers[exponent]
        out_values[i] = -value if negative else value
    return slow


@kernel
def parse_integers(data, starts, ends, most, out_values):
    """Write the integers that strings hold, such as 0, 12 or -7; empty strings give 0.

    Integers are at most `most`, a uint64, and at least -`most`, or 0 if `most` is beyond int64.
    What is beyond int64 is written as int64 of the same bits. Returns the first string that is no
    such integer, else -1.
    """
    for i in range(len(starts)):
        position = starts[i]
        end = ends[i]
        negative = position < end and data[position] == MINUS
        if negative:
            position += 1
        digits = end - position
        if digits == 0 and not negative:
            out_values[i] = 0
            continue
        if not 1 <= digits <= 20 or (data[position] == ZERO and (digits > 1 or negative)):
            return i
        value = np.uint64(0)
        while position < end:
            byte = data[position]
            if byte < ZERO or byte > NINE:
                return i
            digit = np.uint64(byte - np.uint8(ZERO))
            if value > (most - digit) // np.uint64(10):
                return i
            value = value * np.uint64(10) + digit
            position += 1
        if negative and most > MOST_SIGNED:
            return i
        out_values[i] = -np.int64(value) if negative else np.int64(value)
    return -1
