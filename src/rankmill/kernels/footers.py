"""Reading the footer of a Parquet file, which is in Thrift's compact protocol, from any bytes."""

import numpy as np

from rankmill.kernels.jit import helper, kernel

# The fields that are kept of a column chunk. A field that the footer lacks is -1.
VALUES, COMPRESSED, UNCOMPRESSED, PHYSICAL, LOW, LOW_SIZE, HIGH, HIGH_SIZE, ENCRYPTED = range(9)
CHUNK_FIELDS = 9
# By the number of a field of a column: which of these its number is.
KEPT = -1, PHYSICAL, -1, -1, -1, VALUES, UNCOMPRESSED, COMPRESSED
# The deepest nesting that is read. Real footers have about ten levels of structures and lists.
DEEPEST = 64


@helper
def unsigned_at(data, at):
    """Return the number of variable length at a place and the place after it (-1: no end)."""
    number = np.int64(0)
    for shift in range(0, 64, 7):
        if at >= len(data):
            return number, -1
        byte = np.int64(data[at])
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
    return number, -1


@helper
def signed(number):
    """Return the signed number that an unsigned one encodes: 0, -1, 1, -2 and so on."""
    return ((number >> 1) & 0x7FFFFFFFFFFFFFFF) ^ -(number & 1)


@kernel
def parse_footer(data, out_file, out_groups, out_chunks):
    """Write what a footer says, and return whether the footer is whole.

    Each place is checked before its byte is read, and a count is refused if the remaining bytes
    cannot hold so many elements. Fields have the numbers of parquet.thrift: field 4 of the file
    holds the row groups, field 1 of a row group holds its column chunks, and so on.

    Parameters
    ----------
    data : uint8[n]
        The footer, without its length and the magic bytes.
    out_file : int64[3]
        The number of rows of the file, and where the fields begin and end that say what rows it
        has: all other fields say what they are.
    out_groups : int64[row groups, 2]
        The number of rows of each row group, and its uncompressed bytes.
    out_chunks : int64[row groups, columns, CHUNK_FIELDS]
        For each column chunk: the number of values, the sizes, the physical type, the place in
        `data` and the size of the lowest and of the highest value, and 1 if it is encrypted.
    """
    size = len(data)
    # Each level is a structure (kind -1), or a list or map with `left` elements to read. The kind
    # of a list is the kind of its elements, twice; of a map, the kinds of its keys and its values.
    kinds = np.empty(DEEPEST, np.int64)
    left = np.empty(DEEPEST, np.int64)
    field = np.empty(DEEPEST, np.int64)  # the number of the field, or of the element (from 0)
    depth = at = 0
    kinds[0] = -1
    field[0] = 0
    out_file[1:] = size
    while depth >= 0:
        in_list = kinds[depth] >= 0
        if in_list:
            if left[depth] == 0:
                depth -= 1
                continue
            left[depth] -= 1
            field[depth] += 1
            kind = kinds[depth] >> 4 if left[depth] & 1 else kinds[depth] & 15
        else:
            if at >= size:
                return False
            header = np.int64(data[at])
            at += 1
            kind = header & 15
            begin = at - 1
            if kind == 0:
                depth -= 1
                continue
            field[depth] += header >> 4
            if header < 16:
                number, at = unsigned_at(data, at)
                if at < 0:
                    return False
                field[depth] = signed(number)
            if depth == 0:
                if 3 <= field[0] <= 4:
                    out_file[1] = min(out_file[1], begin)
                elif begin > out_file[1]:
                    out_file[2] = min(out_file[2], begin)

        in_group = depth >= 2 and field[0] == 4
        in_chunk = depth >= 4 and in_group and field[2] == 1
        in_column = depth >= 5 and in_chunk and field[4] == 3
        group = field[1] if in_group else 0
        chunk = field[3] if in_chunk else 0
        if group < 0 or chunk < 0 or kind == 0:
            return False
        if (in_group and group >= len(out_groups)) or (in_chunk and chunk >= out_chunks.shape[1]):
            return False

        if kind <= 2:  # true and false; in a structure they have no byte of their own
            at += in_list
        elif kind == 3:
            at += 1
        elif kind <= 6:
            number, at = unsigned_at(data, at)
            if at < 0:
                return False
            number = signed(number)
            if depth == 0 and field[0] == 3:
                out_file[0] = number
            elif in_group and depth == 2 and field[2] == 3:
                out_groups[group, 0] = number
            elif in_group and depth == 2 and field[2] == 2:
                out_groups[group, 1] = number
            elif in_column and depth == 5 and 0 <= field[5] < len(KEPT) and KEPT[field[5]] >= 0:
                out_chunks[group, chunk, KEPT[field[5]]] = number
        elif kind == 7:  # a double
            at += 8
        elif kind == 8:  # bytes
            number, at = unsigned_at(data, at)
            if at < 0 or number < 0 or number > size - at:
                return False
            if in_column and depth == 6 and field[5] == 12 and field[6] == 5:
                out_chunks[group, chunk, HIGH] = at
                out_chunks[group, chunk, HIGH_SIZE] = number
            elif in_column and depth == 6 and field[5] == 12 and field[6] == 6:
                out_chunks[group, chunk, LOW] = at
                out_chunks[group, chunk, LOW_SIZE] = number
            at += number
        elif kind == 13:  # a UUID
            at += 16
        elif kind <= 12:
            if in_chunk and depth == 4 and field[4] == 8:
                out_chunks[group, chunk, ENCRYPTED] = 1
            number = np.int64(0)
            elements = np.int64(-1)
            if kind <= 10:  # a list or a set
                if at >= size:
                    return False
                header = np.int64(data[at])
                at += 1
                number = header >> 4
                elements = (header & 15) * 17
                if number == 15:
                    number, at = unsigned_at(data, at)
            elif kind == 11:  # a map
                number, at = unsigned_at(data, at)
                elements = np.int64(0)
                if 0 <= at < size and number:
                    elements = np.int64(data[at])
                    at += 1
            depth += 1
            if at < 0 or depth == DEEPEST or number < 0 or number > size - at:
                return False
            kinds[depth] = elements
            left[depth] = 2 * number if kind == 11 else number
            field[depth] = 0 if kind == 12 else -1
        else:
            return False
        if at > size:
            return False
    return True
