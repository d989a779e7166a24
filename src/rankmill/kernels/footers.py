"""Reading the footer of a Parquet file, which is in Thrift's compact protocol, from any bytes."""

import numpy as np

from rankmill.kernels.jit import helper, kernel

# What is kept of a column chunk: 1 if it is encrypted, and the fields of its metadata by their
# numbers in parquet.thrift. What the footer lacks is -1.
ENCRYPTED, VALUES, UNCOMPRESSED, COMPRESSED = 0, 5, 6, 7
CHUNK_FIELDS = 8
# The deepest nesting that is read. Real footers have about ten levels of structures and lists.
DEEPEST = 64
FAR = 1 << 62  # a place beyond the end of all footers


@helper
def byte_at(data, at):
    """Return a byte; beyond the end it is 0, which ends a number and a structure."""
    return np.int64(data[at]) if at < len(data) else np.int64(0)


@helper
def unsigned_at(data, at):
    """Return the number of variable length at a place and the place after it."""
    number = np.int64(0)
    for shift in range(0, 64, 7):
        byte = byte_at(data, at)
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
    return number, FAR  # it does not end


@helper
def signed(number):
    """Return the signed number that an unsigned one encodes: 0, -1, 1, -2 and so on."""
    return ((number >> 1) & 0x7FFFFFFFFFFFFFFF) ^ -(number & 1)


@kernel
def parse_footer(data, out_file, out_groups, out_chunks):
    """Write what a footer says, and return whether the footer is whole.

    A count is refused if the remaining bytes cannot hold so many elements. Fields have the numbers
    of parquet.thrift: field 4 of the file holds the row groups, field 1 of a row group holds its
    column chunks, and so on. Maps, which that does not have, are refused.

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
        What is kept of each column chunk.
    """
    size = len(data)
    # Each level is a structure (kind -1), or a list with `left` elements of a kind to read.
    kinds = np.full(DEEPEST, -1, np.int64)
    left = np.zeros(DEEPEST, np.int64)
    field = np.zeros(DEEPEST, np.int64)  # the number of the field, or of the element (from 0)
    depth = at = 0
    out_file[1:] = size
    while depth >= 0:
        in_list = kinds[depth] >= 0
        if in_list:
            left[depth] -= 1
            field[depth] += 1
            kind = kinds[depth] if left[depth] >= 0 else 0
        else:
            begin = at
            header = byte_at(data, at)
            at += 1
            kind = header & 15
            field[depth] += header >> 4
            if 0 < header < 16:
                number, at = unsigned_at(data, at)
                field[depth] = signed(number)
            if depth == 0 and 3 <= field[0] <= 4:
                out_file[1] = min(out_file[1], begin)
            elif depth == 0 and kind and begin > out_file[1]:
                out_file[2] = min(out_file[2], begin)
        if kind == 0:
            depth -= 1
            continue

        in_group = depth >= 2 and field[0] == 4
        in_chunk = depth >= 4 and in_group and field[2] == 1
        in_column = depth >= 5 and in_chunk and field[4] == 3
        group, chunk = field[1], field[3] if in_chunk else 0
        if in_group and not (0 <= group < len(out_groups) and 0 <= chunk < out_chunks.shape[1]):
            return False

        if kind <= 2:  # true and false; in a structure they have no byte of their own
            at += in_list
        elif kind == 3 or kind == 7:  # a byte and a double
            at += 1 if kind == 3 else 8
        elif kind <= 6:
            number, at = unsigned_at(data, at)
            number = signed(number)
            if depth == 0 and field[0] == 3:
                out_file[0] = number
            elif in_group and depth == 2 and 2 <= field[2] <= 3:
                out_groups[group, 3 - field[2]] = number
            elif in_column and depth == 5 and 0 < field[5] <= COMPRESSED:
                out_chunks[group, chunk, field[5]] = number
        elif kind == 8:  # bytes
            number, at = unsigned_at(data, at)
            if number < 0 or number > size - at:
                return False
            at += number
        elif kind in (9, 10, 12):  # a list, a set, and a structure
            if in_chunk and depth == 4 and field[4] == 8:
                out_chunks[group, chunk, ENCRYPTED] = 1
            depth += 1
            number, elements = np.int64(0), np.int64(-1)
            if kind < 12:
                header = byte_at(data, at)
                number, elements = header >> 4, header & 15
                at += 1
                if number == 15:
                    number, at = unsigned_at(data, at)
            if depth == DEEPEST or number < 0 or number > size - at:
                return False
            kinds[depth], left[depth] = elements, number
            field[depth] = -1 if kind < 12 else 0
        else:
            return False
        if at > size:
            return False
    return at <= size
