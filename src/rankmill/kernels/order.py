"""Sorting without NumPy: its functions take seconds to compile, or are slower on many numbers."""

from rankmill.kernels.jit import heavy_kernel, helper


@helper
def sort_values(values):
    """Sort an array in place (heapsort)."""
    count = len(values)
    heap = count // 2  # the values from here on are a heap
    end = count
    while end > 1:
        if heap > 0:
            heap -= 1
            value = values[heap]
        else:
            end -= 1
            value = values[end]
            values[end] = values[0]
        place = heap
        child = 2 * place + 1
        while child < end:
            if child + 1 < end and values[child] < values[child + 1]:
                child += 1
            if not value < values[child]:
                break
            values[place] = values[child]
            place = child
            child = 2 * place + 1
        values[place] = value


@heavy_kernel
def sort_floats(width, out_bits, out_spare, out_places):
    """Sort floats without NaN, given as signed integers of `width` bytes, the lowest byte first.

    The bits of negative floats ascend as the floats fall, so all but their sign are flipped in what
    is compared. out_places is int64[width, 256]. A byte that all have alike takes no time. Returns
    whether the result is in out_spare.
    """
    count = len(out_bits)
    sign = 8 * width - 1
    others = (1 << sign) - 1
    out_places[:] = 0
    for i in range(count):
        key = out_bits[i] ^ ((out_bits[i] >> sign) & others)
        for byte in range(width):
            out_places[byte, (key >> (8 * byte)) & 255] += 1
    source = out_bits
    target = out_spare
    moved = False
    for byte in range(width):
        places = out_places[byte]
        first = 128 if byte == width - 1 else 0  # the highest byte has the sign
        place = 0
        alike = False
        for value in range(256):
            some = places[value ^ first]
            alike |= some == count
            places[value ^ first] = place
            place += some
        if alike:
            continue
        for i in range(count):
            key = source[i] ^ ((source[i] >> sign) & others)
            value = (key >> (8 * byte)) & 255
            target[places[value]] = source[i]
            places[value] += 1
        source, target = target, source
        moved = not moved
    return moved
