"""Finding keys in an ascending array of keys."""

from rankmill.kernels.jit import kernel

# A search over more steps than this reads memory that is not in the cache.
FAR = 1 << 12


@kernel
def first_descent(keys, flip):
    """Return the first row whose key is not above the key of the row before, or -1.

    Each key is compared as unsigned after XOR with `flip`: 2**63 puts signed keys in order.
    """
    for row in range(1, len(keys)):
        if keys[row] ^ flip <= keys[row - 1] ^ flip:
            return row
    return -1


@kernel
def find_in_order(keys, flip, wanted, out_rows):
    """Write the row of each wanted key among ascending keys, or -1.

    Each search starts at the last match and goes outwards, so keys wanted in ascending order cost
    almost nothing. Returns how many keys were far from the match before them. The search stops
    when these are more than an eighth of all wanted keys; the remaining rows are not written.
    """
    count = len(keys)
    far = 0
    low = -1  # the last row known to be at or before the wanted key
    for i in range(len(wanted)):
        key = wanted[i]
        if low + 1 < count and keys[low + 1] == key:
            low += 1
            out_rows[i] = low
            continue
        place = key ^ flip
        step = 1
        if low >= 0 and keys[low] ^ flip > place:
            high = low
            while high - step >= 0 and keys[high - step] ^ flip > place:
                high -= step
                step *= 2
            low = max(-1, high - step)
        else:
            while low + step < count and keys[low + step] ^ flip <= place:
                low += step
                step *= 2
            high = min(count, low + step)
        far += step > FAR
        if 8 * far > len(wanted):
            return far
        while high - low > 1:
            middle = (low + high) // 2
            if keys[middle] ^ flip <= place:
                low = middle
            else:
                high = middle
        out_rows[i] = low if low >= 0 and keys[low] == key else -1
    return far
