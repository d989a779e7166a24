"""Sorting inside of kernels. Numba compiles NumPy's functions for it for one to two seconds."""

from rankmill.kernels.jit import helper

# Chunks of this length are sorted by insertion before they are merged.
CHUNK = 16


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


@helper
def sort_pairs(keys, members, count, spare_keys, spare_members):
    """Sort the first keys and their members by key; equal keys keep their order (merge sort)."""
    for start in range(0, count, CHUNK):
        for i in range(start + 1, min(count, start + CHUNK)):
            key, member = keys[i], members[i]
            j = i
            while j > start and key < keys[j - 1]:
                keys[j], members[j] = keys[j - 1], members[j - 1]
                j -= 1
            keys[j], members[j] = key, member
    width = CHUNK
    while width < count:
        for start in range(0, count, 2 * width):
            middle, end = min(count, start + width), min(count, start + 2 * width)
            i, j = start, middle
            for target in range(start, end):
                right = i == middle or (j < end and keys[j] < keys[i])
                source = j if right else i
                spare_keys[target], spare_members[target] = keys[source], members[source]
                i, j = i + (not right), j + right
        for i in range(count):
            keys[i], members[i] = spare_keys[i], spare_members[i]
        width *= 2
